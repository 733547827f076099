//! Chains of small kernels, as a loop by hand, as a fused kernel by hand, and as graphs that are fused or not. Each kernel has
//! a number of its own, and in most chains a buffer, so that no compiler folds two of them.

use std::fmt::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clgraph::{Buffer, Executable, Finalize, Fuse, FusingState, Graph, Kernel, Path, Program, Queue};

use crate::Failure;
use crate::raw::{self, Arg, Kernels};
use crate::rounds::{Times, Variant, timed};

/// What the work-items of a chain do.
pub struct Body {
    /// The names of the rows, and their work-items.
    pub rows: &'static [(&'static str, usize)],
    /// From `s` to `t`, for work-item `i` of `n`, with the number `x`.
    text: &'static str,
    over: Over,
    /// Whether each work-item touches its own elements only.
    elementwise: bool,
}

/// Which buffers the kernels of a chain use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// Each reads what the one before has written.
    All,
    /// The same, with two buffers in turn.
    Two,
    /// All read and write the same one.
    One,
}

impl Body {
    /// Returns how many buffers so many launches have.
    fn buffers(&self, launches: usize) -> usize {
        match self.over {
            Over::All => launches + 1,
            Over::Two => 2,
            Over::One => 1,
        }
    }
}

pub const BODIES: &[Body] = &[
    Body {
        rows: &[("light kernels of 64 items", 64), ("light kernels of 1024 items", 1024)],
        text: "t[i] = s[i] * x + s[i + 1];",
        over: Over::All,
        elementwise: false,
    },
    Body {
        rows: &[("light kernels of 64 items, two buffers", 64), ("light kernels of 1024 items, two buffers", 1024)],
        text: "t[i] = s[i] * x + s[i + 1];",
        over: Over::Two,
        elementwise: false,
    },
    Body {
        rows: &[("exp kernels of 64 items", 64), ("exp kernels of 1024 items", 1024)],
        text: "t[i] = exp(s[i] * x) + sqrt(fabs(s[i]));",
        over: Over::All,
        elementwise: false,
    },
    Body {
        rows: &[("inner kernels of 64 items", 64), ("inner kernels of 1024 items", 1024)],
        text: "float v = s[i]; for (int k = 0; k < 16; k++) { if (v > 1.0f) v *= 0.5f; else v += x; } t[i] = v;",
        over: Over::All,
        elementwise: false,
    },
    Body {
        rows: &[("hash kernels of 64 items", 64), ("hash kernels of 1024 items", 1024)],
        text: "uint v = as_uint(s[i]); for (int k = 0; k < 32; k++) v = (v ^ (v >> 7)) * 2654435769u + 1u; \
               t[i] = (float)(v & 1023u) * x;",
        over: Over::All,
        elementwise: false,
    },
    Body {
        rows: &[("elementwise kernels of 262144 items, one buffer", 262_144)],
        text: "t[i] = s[i] * x + 0.5f;",
        over: Over::One,
        elementwise: true,
    },
    Body {
        rows: &[("elementwise kernels of 262144 items, two buffers", 262_144)],
        text: "t[i] = s[i] * x + 0.5f;",
        over: Over::Two,
        elementwise: true,
    },
];

/// How many launches one fused kernel by hand does: their arguments are within the limits of all drivers.
const AT_ONCE: usize = 80;

fn source(body: &Body, launches: usize) -> String {
    let text = body.text;
    let mut all = format!(
        "kernel void advance(global const float *s, global float *t, float x, uint n) {{ size_t i = get_global_id(0); {text} }}\n"
    );
    let _ = writeln!(
        all,
        "__attribute__((noinline)) void all(global const float *s, global float *t, float x, uint n) {{ \
         for (uint i = 0; i < n; i++) {{ {text} }} }}\n\
         __attribute__((noinline)) void group(global const float *s, global float *t, float x, uint n) {{ \
         for (uint i = get_local_id(0); i < n; i += get_local_size(0)) {{ {text} }} }}\n\
         static inline void each(global const float *s, global float *t, float x, uint n) {{ size_t i = get_global_id(0); {text} }}"
    );
    let forms =
        [("by_item", "all", ""), ("by_group", "group", "barrier(CLK_GLOBAL_MEM_FENCE);"), ("by_each", "each", "")];
    for (name, function, after) in forms {
        let params: Vec<String> = (0..launches).map(|at| format!("float x{at}")).collect();
        let count = body.buffers(launches);
        let buffers: Vec<String> = (0..count).map(|at| format!("global float *b{at}")).collect();
        let _ = writeln!(all, "kernel void {name}({}, {}, uint n) {{", buffers.join(", "), params.join(", "));
        for at in 0..launches {
            let _ = writeln!(all, "    {function}(b{}, b{}, x{at}, n); {after}", at % count, (at + 1) % count);
        }
        let _ = writeln!(all, "}}");
    }
    all
}

/// The kernel of one chain, `n` launches of `items` work-items, in all variants.
pub fn variants<'a>(queue: &'a Queue, body: &Body, items: usize, n: usize) -> Result<Vec<Variant<'a>>, Failure> {
    let kernel = Program::from_source(queue, &source(body, 1))?.kernel("advance")?;
    let data: Vec<f32> = (0..=items).map(|i| (i % 97) as f32 * 0.01 + 0.1).collect();
    let buffers = (0..body.buffers(n)).map(|_| Buffer::from_slice(queue, &data)).collect::<Result<Vec<_>, _>>()?;
    let number = |at: usize| 0.25 + (at % 251) as f32 * 0.001;
    let launches = (0..n).map(|at| {
        vec![
            Arg::Memory(buffers[at % buffers.len()].raw()),
            Arg::Memory(buffers[(at + 1) % buffers.len()].raw()),
            Arg::Number(number(at).to_bits()),
            Arg::Number(items as u32),
        ]
    });
    let plain = Rc::new(Kernels::with_args(&kernel, &launches.collect::<Vec<_>>())?);
    let by_item = clgraph::Device::caps(queue.device()).platform != "rusticl" && !queue.device().caps().gpu;
    let mut by_hand = Vec::new();
    for start in (0..n).step_by(AT_ONCE) {
        let count = AT_ONCE.min(n - start);
        let program = Program::from_source(queue, &source(body, count))?;
        let fused = program.kernel(match (body.elementwise, by_item) {
            (true, _) => "by_each",
            (false, true) => "by_item",
            (false, false) => "by_group",
        })?;
        let of_part = (start..start + body.buffers(count)).map(|at| &buffers[at % buffers.len()]);
        let mut args: Vec<Arg> = of_part.map(|buffer| Arg::Memory(buffer.raw())).collect();
        args.extend((start..start + count).map(|at| Arg::Number(number(at).to_bits())));
        args.push(Arg::Number(items as u32));
        by_hand.push(Kernels::with_args(&fused, &[args])?);
    }
    let (hand_items, group) = match (body.elementwise, by_item) {
        (true, _) => (items, None),
        (false, true) => (1, Some(1)),
        (false, false) => (items.min(1024), Some(items.min(1024))),
    };
    let held = Rc::new(buffers.clone());
    let (of_loop, of_fused) = (Rc::clone(&held), Rc::clone(&held));
    let hand_loop = move || {
        let _ = &of_loop;
        raw::enqueue_sized(queue, plain.iter(), items, None)?;
        raw::finish(queue)
    };
    let fused_by_hand = move || {
        let _ = &of_fused;
        for part in &by_hand {
            raw::enqueue_sized(queue, part.iter(), hand_items, group)?;
        }
        raw::finish(queue)
    };
    let mut all =
        vec![whole("loop", hand_loop.clone()), whole("loop_again", hand_loop), whole("fused_by_hand", fused_by_hand)];
    for (name, fuse) in [("unfused", Fuse::Off), ("fused", Fuse::Now), ("auto", Fuse::Auto)] {
        let graph = chain(queue, &kernel, &buffers, (items, n), number, body.elementwise)?;
        let options = Finalize::new().path(Path::Auto).fuse(fuse).fuse_after(Duration::ZERO);
        let executable = graph.finalize(options)?;
        settle(&executable, queue)?;
        all.push(whole(name, move || Ok(executable.submit(queue)?.wait()?)));
    }
    Ok(all)
}

/// Submits until it is known whether the executable stays fused.
fn settle(executable: &Executable, queue: &Queue) -> Result<(), Failure> {
    let begun = Instant::now();
    let is_open = |state| matches!(state, FusingState::Waiting | FusingState::Building | FusingState::Trying);
    while is_open(executable.report().fusing) && begun.elapsed() < Duration::from_secs(30) {
        for _ in 0..20 {
            executable.submit(queue)?.wait()?;
        }
    }
    Ok(())
}

fn chain(
    queue: &Queue,
    kernel: &Kernel,
    buffers: &[Buffer<f32>],
    (items, n): (usize, usize),
    number: impl Fn(usize) -> f32,
    elementwise: bool,
) -> Result<Graph, Failure> {
    let graph = Graph::new(queue)?;
    for at in 0..n {
        let (from, to) = (&buffers[at % buffers.len()], &buffers[(at + 1) % buffers.len()]);
        // SAFETY: each work-item touches elements inside the buffers, and writes its own.
        unsafe {
            let launch = graph.kernel(kernel).read(from);
            let launch =
                if elementwise { launch.read_write(to).elementwise(0, 4).elementwise(1, 4) } else { launch.write(to) };
            launch.arg(number(at)).arg(items as u32).range(items).add()?;
        }
    }
    Ok(graph)
}

fn whole<'a>(variant: &'static str, work: impl Fn() -> Result<(), Failure> + 'a) -> Variant<'a> {
    let run = move || {
        let ((), total) = timed(&work)?;
        Ok(Times { total, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}
