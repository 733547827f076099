//! Kernels `dest += src`, of which some get other memory and another range before each submission.

use std::rc::Rc;

use clgraph::{Buffer, Finalize, Graph, Kernel, Node, Parameter, Path, Program, Queue};

use crate::Failure;
use crate::raw::{self, Arg, Kernels, MutableBuffer};
use crate::rounds::{Times, Variant, timed};
use crate::submissions::{PATHS, is_trying};

const SOURCE: &str = "kernel void add(global uint *dest, global const uint *src) {
    dest[get_global_id(0)] += src[get_global_id(0)];
}";
/// Numbers of work-items, by turns.
const RANGES: [usize; 2] = [64, 32];

/// What the variants share.
struct Load<'a> {
    queue: &'a Queue,
    kernel: Kernel,
    /// A destination and a source, by turns.
    memory: [[Buffer<u32>; 2]; 2],
    len: usize,
    /// The indices of the nodes that change.
    places: Vec<usize>,
}

/// The variants of changing each so-many-th of `len` kernels and of running them all.
pub fn variants(queue: &Queue, len: usize, every: usize) -> Result<Vec<Variant<'_>>, Failure> {
    let buffer = || Buffer::new(queue, RANGES[0]);
    let load = Rc::new(Load {
        queue,
        kernel: Program::from_source(queue, SOURCE)?.kernel("add")?,
        memory: [[buffer()?, buffer()?], [buffer()?, buffer()?]],
        len,
        places: (0..len).step_by(every).collect(),
    });
    let mut variants = vec![load.by_hand("loop")?, load.by_hand("loop_again")?];
    variants.extend(load.by_command_buffer()?);
    for (variant, path) in PATHS {
        variants.push(load.by_graph(variant, path)?);
    }
    Ok(variants)
}

impl<'a> Load<'a> {
    fn kernels(&self) -> Result<Kernels, Failure> {
        Kernels::with_args(&self.kernel, &vec![self.args(0).to_vec(); self.len])
    }

    fn args(&self, turn: usize) -> [Arg; 2] {
        self.memory[turn].each_ref().map(|buffer| Arg::Memory(buffer.raw()))
    }

    /// Kernel objects whose arguments are set, and a loop of enqueues.
    fn by_hand(self: &Rc<Self>, variant: &'static str) -> Result<Variant<'a>, Failure> {
        let (load, kernels) = (Rc::clone(self), self.kernels()?);
        let (mut ranges, mut turn) = (vec![RANGES[0]; load.len], 0);
        let run = move || {
            turn = 1 - turn;
            let update = || {
                for place in &load.places {
                    for (index, arg) in (0..).zip(load.args(turn)) {
                        kernels.set(*place, index, arg)?;
                    }
                    ranges[*place] = RANGES[turn];
                }
                Ok(())
            };
            let ((), update) = timed(update)?;
            let submit = || raw::enqueue_each(load.queue, kernels.iter().zip(ranges.iter().copied()));
            measured(update, submit, |()| raw::finish(load.queue))
        };
        Ok(Variant { name: variant, run: Box::new(run) })
    }

    /// One command buffer that is changed, if the device can.
    fn by_command_buffer(self: &Rc<Self>) -> Result<Option<Variant<'a>>, Failure> {
        let load = Rc::clone(self);
        let Some(buffer) = MutableBuffer::record(load.queue, load.kernels()?, RANGES[0], true)? else {
            return Ok(None);
        };
        let mut turn = 0;
        let run = move || {
            turn = 1 - turn;
            let [dest, src] = load.args(turn);
            let ((), update) = timed(|| buffer.set(&load.places, &[(0, dest), (1, src)], Some(RANGES[turn])))?;
            measured(update, || buffer.enqueue(load.queue), |()| raw::finish(load.queue))
        };
        Ok(Some(Variant { name: "raw_mutable", run: Box::new(run) }))
    }

    fn by_graph(self: &Rc<Self>, variant: &'static str, path: Path) -> Result<Variant<'a>, Failure> {
        let load = Rc::clone(self);
        let graph = Graph::new(load.queue)?;
        let [dest, src] = load.memory[0].each_ref().map(Parameter::buffer);
        let changing: Vec<bool> = (0..load.len).map(|at| load.places.binary_search(&at).is_ok()).collect();
        let mut nodes: Vec<Node> = Vec::with_capacity(load.places.len());
        for changes in changing {
            let node = graph.kernel(&load.kernel);
            if changes {
                let node = node.read_write(&dest).read(&src).range(RANGES[0]).range_up_to(RANGES[0]);
                // SAFETY: a work-item touches its own elements.
                nodes.push(unsafe { node.add()? });
            } else {
                let [dest, src] = &load.memory[0];
                // SAFETY: as above.
                unsafe { node.read_write(dest).read(src).range(RANGES[0]).add()? };
            }
        }
        let executable = graph.finalize(Finalize::new().path(path).updatable())?;
        let (mut turn, mut trying) = (0, true);
        let run = move || {
            turn = 1 - turn;
            let update = || {
                let [new_dest, new_src] = &load.memory[turn];
                dest.set(new_dest)?;
                src.set(new_src)?;
                for node in &nodes {
                    graph.set_nd_range(*node, RANGES[turn])?;
                }
                Ok(executable.update(&nodes)?)
            };
            let ((), update) = timed(update)?;
            let times = measured(update, || Ok(executable.submit(load.queue)?), |run| Ok(run.wait()?))?;
            trying = trying && is_trying(&executable);
            Ok(Times { trying, ..times })
        };
        Ok(Variant { name: variant, run: Box::new(run) })
    }
}

/// A submission after an update that took so long.
fn measured<T>(
    update: std::time::Duration,
    submit: impl FnOnce() -> Result<T, Failure>,
    wait: impl FnOnce(T) -> Result<(), Failure>,
) -> Result<Times, Failure> {
    let (submitted, submit) = timed(submit)?;
    let ((), wait) = timed(|| wait(submitted))?;
    Ok(Times { update: Some(update), submit: Some(submit), total: update + submit + wait, ..Times::default() })
}
