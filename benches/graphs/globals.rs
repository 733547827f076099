//! Device globals, compared with arguments.

use clgraph::{
    Buffer, Executable, Finalize, GlobalAccess, Graph, Kernel, Path, Program, ProgramBuilder, Queue, device_global,
};

use crate::Failure;
use crate::raw;
use crate::rounds::{Times, Variant, timed};
use crate::submissions::submission;

device_global! {
    static TOTAL: u32;
}

const BY_GLOBAL: &str = "CLG_DEVICE_GLOBAL(uint, total);
    kernel void tick(CLG_ONLY_PARAMS) { CLG_GLOBAL(total)++; }";
const BY_ARGUMENT: &str = "kernel void tick(global uint *total) { total[0]++; }";

/// All variants of running `n` kernels that count. The loop's kernel object has the hidden argument set.
pub fn variants(queue: &Queue, n: usize) -> Result<Vec<Variant<'_>>, Failure> {
    let finish = || raw::finish(queue);
    let by = |access| -> clgraph::Result<Kernel> {
        ProgramBuilder::new(queue).global("total", &TOTAL).global_access(access).source(BY_GLOBAL)?.kernel("tick")
    };
    let kernel = by(GlobalAccess::Argument)?.to_opencl3()?;
    let plain = move || raw::enqueue(queue, std::iter::repeat_n(kernel.get(), n));
    let mut variants = vec![submission("loop", plain.clone(), finish), submission("loop_again", plain, finish)];
    let total = Buffer::from_slice(queue, &[0_u32])?;
    let kernel = Program::from_source(queue, BY_ARGUMENT)?.kernel("tick")?;
    variants.push(replayed(queue, "explicit", chain(queue, n, &kernel, Some(&total))?));
    for access in queue.device().caps().global_access() {
        let variant = match access {
            GlobalAccess::NamedWrite => "named_write",
            GlobalAccess::Kernel => "kernel",
            _ => "argument",
        };
        variants.push(replayed(queue, variant, chain(queue, n, &by(access)?, None)?));
    }
    Ok(variants)
}

fn chain(queue: &Queue, n: usize, kernel: &Kernel, total: Option<&Buffer<u32>>) -> Result<Executable, Failure> {
    let graph = Graph::new(queue)?;
    for _ in 0..n {
        let node = graph.kernel(kernel).range(1);
        let node = if let Some(total) = total { node.read_write(total) } else { node };
        // SAFETY: its one work-item touches the one element.
        unsafe { node.add()? };
    }
    Ok(graph.finalize(Finalize::new().path(Path::Replay))?)
}

fn replayed<'a>(queue: &'a Queue, variant: &'static str, executable: Executable) -> Variant<'a> {
    let run = move || {
        let (run, submit) = timed(|| Ok(executable.submit(queue)?))?;
        let ((), wait) = timed(|| Ok(run.wait()?))?;
        Ok(Times { submit: Some(submit), total: submit + wait, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}
