//! Loops that a number in memory ends, compared with a loop by hand that reads the number before each turn.

use std::rc::Rc;

use clgraph::{Buffer, Finalize, Graph, Loops, Path, Program, Queue};

use crate::Failure;
use crate::raw::{self, Arg, Kernels};
use crate::rounds::{Times, Variant, timed};

/// Works for some rounds with one work-item; the last kernel of a turn counts the turns down.
const SOURCE: &str = "
kernel void work(global uint *value, global uint *left, uint rounds, uint counts) {
    uint x = value[0];
    for (uint round = 0; round < rounds; round++) x = x * 1664525u + 1013904223u;
    value[0] = x;
    left[0] -= counts;
}";

/// All variants of `turns` turns of `width` kernels, each of which works for some rounds.
pub fn variants(queue: &Queue, turns: u32, width: usize, rounds: u32) -> Result<Vec<Variant<'_>>, Failure> {
    let kernel = Program::from_source(queue, SOURCE)?.kernel("work")?;
    let (value, left) = (Buffer::from_slice(queue, &[1_u32])?, Buffer::from_slice(queue, &[0_u32])?);
    let counts = |at: usize| u32::from(at + 1 == width);
    let launches = (0..width).map(|at| {
        vec![Arg::Memory(value.raw()), Arg::Memory(left.raw()), Arg::Number(rounds), Arg::Number(counts(at))]
    });
    let kernels = Rc::new(Kernels::with_args(&kernel, &launches.collect::<Vec<_>>())?);
    let (number, of_all) = (left.raw(), Rc::clone(&kernels));
    // What `value` and `left` are kept for.
    let held = (value.clone(), left.clone());
    let by_hand = move || {
        let _ = &held;
        raw::write_number(queue, number, turns)?;
        while raw::read_number(queue, number)? != 0 {
            raw::enqueue(queue, of_all.iter())?;
        }
        Ok(())
    };
    let unseen = move || {
        raw::write_number(queue, number, turns)?;
        for _ in 0..turns {
            raw::enqueue(queue, kernels.iter())?;
        }
        raw::finish(queue)
    };
    let mut variants = vec![whole("loop", by_hand.clone()), whole("loop_again", by_hand), whole("unseen", unseen)];
    let ways = [
        ("replay", Path::Replay, None),
        ("host_decided", Path::Auto, Some(Loops::HostDecided)),
        ("ahead", Path::Auto, Some(Loops::Ahead)),
        ("auto", Path::Auto, None),
    ];
    for (variant, path, loops) in ways {
        let body = Graph::new(queue)?;
        for at in 0..width {
            // SAFETY: its one work-item touches the first element of each.
            unsafe {
                let launch = body.kernel(&kernel).read_write(&value).read_write(&left);
                launch.arg(rounds).arg(counts(at)).range(1).add()?;
            }
        }
        let body = body.finalize(Finalize::new().path(path))?;
        let graph = Graph::new(queue)?;
        graph.write(&left, [turns]).add()?;
        graph.repeat_while(&left, &body).add()?;
        // Without an option CLGRAPH_LOOPS counts.
        let options = Finalize::new().path(path);
        let executable = graph.finalize(loops.map_or(options.clone(), |loops| options.loops(loops)))?;
        variants.push(whole(variant, move || Ok(executable.submit(queue)?.wait()?)));
    }
    Ok(variants)
}

fn whole<'a>(variant: &'static str, work: impl Fn() -> Result<(), Failure> + 'a) -> Variant<'a> {
    let run = move || {
        let ((), total) = timed(&work)?;
        Ok(Times { total, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}
