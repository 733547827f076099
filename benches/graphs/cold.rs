//! From the start of a process to its first result: this program once more, as a child.

use std::process::Command;

use clgraph::{Buffer, Device, Finalize, Graph, Program, Queue};

use crate::Failure;
use crate::raw;
use crate::rounds::{Times, Way, timed};

const SOURCE: &str = "kernel void cold(global float *a) { a[get_global_id(0)] += 1.0f; }";
const LEN: usize = 1024;

/// What a child does: everything from finding the device to the bytes of the result.
pub fn child(variant: &str, device: &Device) -> Result<(), Failure> {
    let queue = Queue::new(device)?;
    let kernel = Program::from_source(&queue, SOURCE)?.kernel("cold")?;
    let buffer = Buffer::from_slice(&queue, &[1.0_f32; LEN])?;
    let mut result = vec![0.0_f32; LEN];
    if variant == "loop" {
        let kernels = raw::Kernels::with_args(&kernel, &[vec![raw::Arg::Memory(buffer.raw())]])?;
        raw::enqueue_over(&queue, kernels.iter(), LEN)?;
        let event = raw::read(&queue, buffer.raw(), &mut result)?;
        raw::wait(event)?;
    } else {
        let graph = Graph::new(&queue)?;
        // SAFETY: a work-item reads and writes its own element.
        unsafe { graph.kernel(&kernel).read_write(&buffer).range(LEN).add()? };
        let read = graph.read(&buffer).add()?;
        let run = graph.finalize(Finalize::new())?.submit(&queue)?;
        run.wait()?;
        result.copy_from_slice(&run.get(&read)?);
    }
    if result.iter().all(|element| *element == 2.0) { Ok(()) } else { Err("the result is wrong".into()) }
}

/// A process that launches by hand, and one that makes a graph.
pub fn ways<'a>(driver: &str) -> Result<Vec<Way<'a>>, Failure> {
    let program = std::env::current_exe()?;
    let way = |(variant, child): (&'static str, &'static str)| {
        let (program, driver) = (program.clone(), driver.to_owned());
        let run = move || {
            let (output, total) =
                timed(|| Ok(Command::new(&program).args(["--cold", child, "--driver", &driver]).output()?))?;
            if !output.status.success() {
                return Err(format!("a child failed: {}", String::from_utf8_lossy(&output.stderr)).into());
            }
            Ok(Times { total, ..Times::default() })
        };
        Way { variant, run: Box::new(run) as Box<_> }
    };
    Ok([("loop", "loop"), ("loop_again", "loop"), ("auto", "graph")].map(way).into_iter().collect())
}
