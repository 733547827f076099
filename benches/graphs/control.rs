//! Loops that a number in memory ends, compared with a loop by hand that reads the number before each turn.

use std::rc::Rc;
use std::time::Duration;

use clgraph::{Buffer, Finalize, Fuse, Graph, Loops, Path, Program, Queue};

use crate::Failure;
use crate::raw::{self, Arg, Kernels};
use crate::rounds::{Times, Variant, timed};
use crate::submissions::settle_fused;

/// Works for some rounds in each work-item; the last kernel of a turn counts the turns down.
const SOURCE: &str = "
kernel void nothing(global uint *left) {}
kernel void work(global uint *value, global uint *left, uint rounds, uint counts) {
    size_t i = get_global_id(0);
    uint x = value[i];
    for (uint round = 0; round < rounds; round++) x = x * 1664525u + 1013904223u;
    value[i] = x;
    if (i == 0) left[0] -= counts;
}";

/// All variants of `turns` turns of `width` kernels of `items` work-items, each of which works for some rounds.
pub fn variants(
    queue: &Queue,
    turns: u32,
    (width, items): (usize, usize),
    rounds: u32,
) -> Result<Vec<Variant<'_>>, Failure> {
    let program = Program::from_source(queue, SOURCE)?;
    let kernel = program.kernel("work")?;
    let (value, left) = (Buffer::from_slice(queue, &vec![1_u32; items])?, Buffer::from_slice(queue, &[0_u32])?);
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
            raw::enqueue_sized(queue, of_all.iter(), items, None)?;
        }
        Ok(())
    };
    let latch = Kernels::with_args(&program.kernel("nothing")?, &[vec![Arg::Memory(number)]])?;
    let of_latched = Rc::clone(&kernels);
    let unseen = move || {
        raw::write_number(queue, number, turns)?;
        for _ in 0..turns {
            raw::enqueue_sized(queue, kernels.iter(), items, None)?;
        }
        raw::finish(queue)
    };
    // What turns ahead do, by hand: a launch more in each turn, and a look at the number after each 32.
    let latched = move || {
        raw::write_number(queue, number, turns)?;
        for turn in 0..turns {
            raw::enqueue_sized(queue, latch.iter(), 1, None)?;
            raw::enqueue_sized(queue, of_latched.iter(), items, None)?;
            if turn % 32 == 31 {
                raw::read_number(queue, number)?;
            }
        }
        raw::finish(queue)
    };
    // What host-decided turns do, by hand: a thread loops, and the caller waits for it.
    let of_thread = by_hand.clone();
    let on_a_thread = move || {
        let work = OnAThread(&of_thread);
        std::thread::scope(|scope| scope.spawn(move || work.run()).join()).map_err(|_| "the thread panicked")??;
        Ok(())
    };
    let mut variants = vec![
        whole("loop", by_hand.clone()),
        whole("loop_again", by_hand),
        whole("loop_on_a_thread", on_a_thread),
        whole("unseen", unseen),
        whole("latched", latched),
    ];
    let ways = [
        ("replay", Path::Replay, None, Fuse::Off),
        ("host_decided", Path::Auto, Some(Loops::HostDecided), Fuse::Off),
        ("ahead", Path::Auto, Some(Loops::Ahead), Fuse::Off),
        ("unfused", Path::Auto, None, Fuse::Off),
        ("fused", Path::Auto, None, Fuse::Now),
        ("auto", Path::Auto, None, Fuse::Auto),
        ("counted_unfused", Path::Auto, None, Fuse::Off),
        ("counted_by_host", Path::Auto, Some(Loops::HostDecided), Fuse::Now),
        ("counted_fused", Path::Auto, None, Fuse::Now),
    ];
    for (variant, path, loops, fuse) in ways {
        let is_counted = variant.starts_with("counted");
        let body = Graph::new(queue)?;
        for at in 0..width {
            // SAFETY: each work-item touches its own value, and the first one the number of turns.
            unsafe {
                let launch = body.kernel(&kernel).read_write(&value).read_write(&left);
                launch.arg(rounds).arg(counts(at)).range(items).add()?;
            }
        }
        let body = body.finalize(Finalize::new().path(path))?;
        let graph = Graph::new(queue)?;
        graph.write(&left, [turns]).add()?;
        match is_counted {
            true => graph.repeat(turns.into(), &body).add()?,
            false => graph.repeat_while(&left, &body).add()?,
        };
        // Without an option CLGRAPH_LOOPS counts.
        let options = Finalize::new().path(path).fuse(fuse).fuse_after(Duration::ZERO);
        // Then a loop that counts its turns is not unrolled.
        let options = if is_counted { options.updatable() } else { options };
        let executable = graph.finalize(loops.map_or(options.clone(), |loops| options.loops(loops)))?;
        settle_fused(&executable, queue)?;
        variants.push(whole(variant, move || Ok(executable.submit(queue)?.wait()?)));
    }
    Ok(variants)
}

/// Work for another thread, for which this one waits.
struct OnAThread<'a, F>(&'a F);

// SAFETY: the thread that it comes from does nothing until it has run.
unsafe impl<F> Send for OnAThread<'_, F> {}

impl<F: Fn() -> Result<(), Failure>> OnAThread<'_, F> {
    fn run(&self) -> Result<(), String> {
        (self.0)().map_err(|error| error.to_string())
    }
}

/// A variant whose work is measured as a whole.
pub fn whole<'a>(variant: &'static str, work: impl Fn() -> Result<(), Failure> + 'a) -> Variant<'a> {
    let run = move || {
        let ((), total) = timed(&work)?;
        Ok(Times { total, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}
