//! Chains of small kernels, as a loop by hand, as a fused kernel by hand, and as graphs that are fused or not. Each kernel has
//! a number of its own, and in most chains a buffer, so that no compiler folds two of them.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fmt::Write;
use std::rc::Rc;

use clgraph::{Buffer, Graph, Kernel, Program, Queue};

use crate::Failure;
use crate::cuda;
use crate::raw::{self, Arg, Kernels};
use crate::rounds::{Times, Variant, timed};
use crate::submissions::fused_or_not;

/// What the work-items of a chain do.
pub struct Body {
    /// The names of the rows, and their work-items.
    pub rows: &'static [(&'static str, usize)],
    /// From `s` (and `s1` to `s6`) to `t`, for work-item `i` of `n`, with the number `x`.
    text: &'static str,
    over: Over,
    /// How many different kernels there are, in turn: `KIND` in the text is the number of each.
    kinds: usize,
    /// Whether each work-item touches its own elements only.
    elementwise: bool,
    /// Whether work-groups of a kernel by hand do their parts of the work-items then, launch after launch, on a CPU.
    in_parts: bool,
    /// Whether its loops have a number of turns that the text says: then a work-group does it by hand on PoCL.
    counted: bool,
    /// Whether the work-items of a work-group wait for each other, and share `tile`. There, `l` is a work-item's place in it.
    waits: bool,
}

/// Returns the name of a kernel.
fn name(kind: usize) -> String {
    format!("advance{kind}")
}

/// How many work-items are in a work-group that wait for each other.
const GROUP: usize = 64;

/// How many work-items a work-group of a kernel by hand does launch after launch, if each touches its own elements.
const PART: usize = 512;

/// Which buffers the kernels of a chain use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// Each reads what the one before has written.
    All,
    /// The same, with two buffers in turn.
    Two,
    /// The same, and each kernel has half the work-items of the one before, from the half of all to one.
    Halves,
    /// All read and write the same one.
    One,
    /// Each reads what the seven before have written.
    Eight,
    /// Each has two of its own, so they can run side by side.
    Own,
}

/// One launch of a chain.
struct Launch {
    /// Which of the different kernels it is.
    kind: usize,
    /// The buffers that it reads, and the one that it writes.
    buffers: Vec<usize>,
    number: f32,
    /// How often its work-items are halved.
    halved: u32,
}

impl Body {
    /// Returns so many launches.
    fn launches(&self, items: usize, n: usize) -> Vec<Launch> {
        let one = |at: usize| Launch {
            kind: at % self.kinds,
            buffers: match self.over {
                Over::All => vec![at, at + 1],
                Over::Two | Over::Halves => vec![at % 2, (at + 1) % 2],
                Over::One => vec![0, 0],
                Over::Eight => (at..at + 8).collect(),
                Over::Own => vec![2 * at, 2 * at + 1],
            },
            number: 0.25 + (at % 251) as f32 * 0.001,
            halved: if self.over == Over::Halves { 1 + at as u32 % items.ilog2() } else { 0 },
        };
        (0..n).map(one).collect()
    }

    /// Returns how long the chains of a row are.
    pub fn lengths(&self, items: usize, all: bool) -> &'static [usize] {
        match self.over {
            _ if !all || items > 1024 || self.waits => &[32],
            _ if self.kinds > 1 => &[100, 929],
            Over::Own => &[4, 32],
            _ if items == 64 || self.text == LIGHT => &[4, 32, 256, 1000],
            _ => &[4, 32, 256],
        }
    }

    /// Returns the parameters of a kernel.
    fn params(&self) -> String {
        let more = 1..if self.over == Over::Eight { 7 } else { 1 };
        let more: String = more.map(|at| format!("global const float *s{at}, ")).collect();
        format!("global const float *s, {more}global float *t, float x, uint n")
    }

    fn plain_source(&self) -> String {
        let params = self.params();
        let tile = if self.waits { "local float tile[64]; const uint l = get_local_id(0);" } else { "" };
        let kernel = |kind: usize| {
            let (name, text) = (name(kind), self.text_of(kind));
            format!("kernel void {name}({params}) {{ {tile} size_t i = get_global_id(0); {text} }}\n")
        };
        (0..self.kinds).map(kernel).collect()
    }

    fn text_of(&self, kind: usize) -> String {
        self.text.replace("KIND", &kind.to_string())
    }
}

const LIGHT: &str = "t[i] = s[i] * x + s[i + 1];";
const EXP: &str = "t[i] = exp(s[i] * -x) + sqrt(fabs(s[i]));";

pub const BODIES: &[Body] = &[
    Body {
        rows: &[
            ("sums of 64 items that wait for each other", 64),
            ("sums of 1024 items that wait for each other", 1024),
        ],
        text: "tile[l] = s[i] * x; barrier(CLK_LOCAL_MEM_FENCE); \
               for (uint a = 32; a > 0; a /= 2) { if (l < a) tile[l] += tile[l + a]; barrier(CLK_LOCAL_MEM_FENCE); } \
               t[i] = s[i] * 0.5f + tile[0] * 0.001f;",
        over: Over::Two,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: false,
        waits: true,
    },
    Body {
        rows: &[
            ("light kernels of 64 items", 64),
            ("light kernels of 1024 items", 1024),
            ("light kernels of 16384 items", 16_384),
        ],
        text: LIGHT,
        over: Over::All,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: false,
        waits: false,
    },
    Body {
        rows: &[("light kernels of 64 items, two buffers", 64), ("light kernels of 1024 items, two buffers", 1024)],
        text: LIGHT,
        over: Over::Two,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: false,
        waits: false,
    },
    Body {
        rows: &[("light kernels of 1024 items, side by side", 1024)],
        text: LIGHT,
        over: Over::Own,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: false,
        waits: false,
    },
    Body {
        rows: &[
            ("exp kernels of 64 items", 64),
            ("exp kernels of 1024 items", 1024),
            ("exp kernels of 16384 items", 16_384),
        ],
        text: EXP,
        over: Over::All,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: false,
        waits: false,
    },
    Body {
        rows: &[
            ("inner kernels of 64 items", 64),
            ("inner kernels of 1024 items", 1024),
            ("inner kernels of 16384 items", 16_384),
        ],
        text: "float v = s[i]; for (int k = 0; k < 16; k++) { if (v > 1.0f) v *= 0.5f; else v += x; } t[i] = v;",
        over: Over::All,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: true,
        waits: false,
    },
    Body {
        rows: &[
            ("hash kernels of 64 items", 64),
            ("hash kernels of 1024 items", 1024),
            ("hash kernels of 16384 items", 16_384),
        ],
        text: "uint v = as_uint(s[i]); for (int k = 0; k < 32; k++) v = (v ^ (v >> 7)) * 2654435769u + 1u; \
               t[i] = (float)(v & 1023u) * x;",
        over: Over::All,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: true,
        waits: false,
    },
    Body {
        rows: &[
            ("kernels of 64 items, eight pointers", 64),
            ("kernels of 1024 items, eight pointers", 1024),
            ("kernels of 16384 items, eight pointers", 16_384),
        ],
        text: "t[i] = (s[i] + s1[i] + s2[i] + s3[i] + s4[i] + s5[i] + s6[i]) * x;",
        over: Over::Eight,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: false,
        waits: false,
    },
    Body {
        rows: &[
            ("tree reductions of 64 items", 64),
            ("tree reductions of 1024 items", 1024),
            ("tree reductions of 16384 items", 16_384),
        ],
        text: "t[i] = s[2 * i] * x + s[2 * i + 1];",
        over: Over::Halves,
        kinds: 1,
        elementwise: false,
        in_parts: false,
        counted: false,
        waits: false,
    },
    Body {
        rows: &[
            ("elementwise kernels of 16384 items, one buffer", 16_384),
            ("elementwise kernels of 262144 items, one buffer", 262_144),
        ],
        text: "t[i] = s[i] * x + 0.5f;",
        over: Over::One,
        kinds: 1,
        elementwise: true,
        in_parts: false,
        counted: false,
        waits: false,
    },
    Body {
        rows: &[
            ("elementwise kernels of 16384 items, two buffers", 16_384),
            ("elementwise kernels of 262144 items, two buffers", 262_144),
        ],
        text: "t[i] = s[i] * x + 0.5f;",
        over: Over::Two,
        kinds: 1,
        elementwise: true,
        in_parts: false,
        counted: false,
        waits: false,
    },
    Body {
        rows: &[
            ("elementwise exp kernels of 16384 items, two buffers", 16_384),
            ("elementwise exp kernels of 262144 items, two buffers", 262_144),
        ],
        text: EXP,
        over: Over::Two,
        kinds: 1,
        elementwise: true,
        in_parts: true,
        counted: false,
        waits: false,
    },
];

/// The kernels of a layer of a decoder, each another one.
pub const LAYER: &Body = &Body {
    rows: &[("59 different kernels of 64 items", 64)],
    text: "t[i] = s[i] * x + s[(i + KIND) & 63];",
    over: Over::Two,
    kinds: 59,
    elementwise: false,
    in_parts: false,
    counted: false,
    waits: false,
};

/// How many buffers one fused kernel by hand has: its arguments are within the limits of all drivers.
const BUFFERS: usize = 88;

/// How many launches one fused kernel by hand does.
const AT_ONCE: usize = 80;

/// The same where a work-group does them on PoCL, whose compiler takes seconds for so many.
const AT_ONCE_BY_GROUP: usize = 16;

/// Returns the source of a fused kernel by hand of this name, and the buffers that are its first arguments.
fn by_hand(body: &Body, launches: &[Launch], name: &str, is_pocl: bool) -> (String, Vec<usize>) {
    let params = body.params();
    if body.waits {
        return by_waiting_hand(body, launches);
    }
    if name == "by_part" {
        return by_part_by_hand(body, launches, is_pocl);
    }
    let (begin, range, after) = match name {
        "by_item" => ("__attribute__((noinline)) void", "for (uint i = 0; i < n; i++)", ""),
        "by_group" => (
            "__attribute__((noinline)) void",
            "for (uint i = get_local_id(0); i < n; i += get_local_size(0))",
            " barrier(CLK_GLOBAL_MEM_FENCE);",
        ),
        "by_vector" | "by_whole_group" => ("__attribute__((noinline)) void", "", " barrier(CLK_GLOBAL_MEM_FENCE);"),
        _ => ("static inline void", "size_t i = get_global_id(0);", ""),
    };
    let function = |text: String| match name {
        // Ids are signed, so that none wraps, and work-items that do not fill a turn are apart.
        "by_vector" => format!(
            "const int l = (int)get_local_id(0); for (int k = 0; k < (int)n / {GROUP}; k++) {{ const int i = k * {GROUP} + l; {text} }} \
             if (l < (int)n % {GROUP}) {{ const int i = (int)n / {GROUP} * {GROUP} + l; {text} }}"
        ),
        "by_whole_group" => format!(
            "uint first = 0; do {{ const uint i = first + (uint)get_local_id(0); {text} barrier(CLK_GLOBAL_MEM_FENCE); }} \
             while ((first += {GROUP}) < n);"
        ),
        _ => format!("{range} {{ {text} }}"),
    };
    let mut all = String::new();
    for kind in launches.iter().map(|launch| launch.kind).collect::<BTreeSet<_>>() {
        let _ = writeln!(all, "{begin} all{kind}({params}) {{ {} }}", function(body.text_of(kind)));
    }
    let used: BTreeSet<usize> = launches.iter().flat_map(|launch| launch.buffers.iter().copied()).collect();
    let of_kernel: String = used.iter().map(|at| format!("global float *b{at}, ")).collect();
    let numbers: String = (0..launches.len()).map(|at| format!("float x{at}, ")).collect();
    let _ = writeln!(all, "kernel void {name}({of_kernel}{numbers}uint n) {{");
    for (at, launch) in launches.iter().enumerate() {
        let buffers: String = launch.buffers.iter().map(|buffer| format!("b{buffer}, ")).collect();
        let _ = writeln!(all, "    all{}({buffers}x{at}, n >> {});{after}", launch.kind, launch.halved);
    }
    all.push_str("}\n");
    (all, used.into_iter().collect())
}

/// The same, of kernels that compute more than a little, on a CPU: work-groups do their parts launch after launch, on PoCL by one work-item.
fn by_part_by_hand(body: &Body, launches: &[Launch], by_item: bool) -> (String, Vec<usize>) {
    let (text, params) = (body.text, body.params());
    let range = match by_item {
        true => "for (uint i = from; i < to; i++)".to_owned(),
        false => format!(
            "for (uint k = 0; k < (to - from) / {GROUP}; k++) {{ size_t i = (int)from + (int)k * {GROUP} + (int)get_local_id(0);"
        ),
    };
    let end = if by_item { "" } else { " }" };
    let mut all = format!(
        "__attribute__((noinline)) void part({params}, uint from, uint to) {{ {range} {{ {text} }}{end} }}\n\
         kernel void by_part(global float *b0, global float *b1, "
    );
    all.extend((0..launches.len()).map(|at| format!("float x{at}, ")));
    let others = if by_item { " if (get_local_id(0) != 0) return;" } else { "" };
    let _ = writeln!(all, "uint n) {{{others} uint from = get_group_id(0) * {PART}, to = min(from + {PART}, n);");
    for (at, launch) in launches.iter().enumerate() {
        let [from, to] = [0, 1].map(|of| launch.buffers[of]);
        let _ = writeln!(all, "    part(b{from}, b{to}, x{at}, n, from, to);");
    }
    (all + "}\n", vec![0, 1])
}

/// The same, of kernels whose work-items wait for each other.
fn by_waiting_hand(body: &Body, launches: &[Launch]) -> (String, Vec<usize>) {
    let (text, params) = (body.text, body.params());
    let mut all = format!(
        "__attribute__((noinline)) void group({params}, local float *tile) {{ const uint l = get_local_id(0); \
         uint first = 0; do {{ const uint i = first + l; {text} \
         barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); }} while ((first += 64) < n); }}\n\
         kernel void by_group(global float *b0, global float *b1, "
    );
    all.extend((0..launches.len()).map(|at| format!("float x{at}, ")));
    all.push_str("uint n) {\n    local float tile[64];\n");
    for (at, launch) in launches.iter().enumerate() {
        let [from, to] = [0, 1].map(|of| launch.buffers[of]);
        let _ = writeln!(all, "    group(b{from}, b{to}, x{at}, n, tile);");
    }
    (all + "}\n", vec![0, 1])
}

/// The kernel of one chain, `n` launches of `items` work-items, in all variants: those of OpenCL, and those of CUDA, which do not take turns
/// with them, because a GPU needs time to change from OpenCL's context to CUDA's.
pub fn variants<'a>(queue: &'a Queue, body: &Body, items: usize, n: usize) -> Result<[Vec<Variant<'a>>; 2], Failure> {
    let program = Program::from_source(queue, &body.plain_source())?;
    let kernels = (0..body.kinds).map(|kind| program.kernel(&name(kind))).collect::<Result<Vec<_>, _>>()?;
    let launches = body.launches(items, n);
    let data: Vec<f32> = (0..=items).map(|i| (i % 97) as f32 * 0.01 + 0.1).collect();
    let count = launches.iter().flat_map(|launch| &launch.buffers).max().map_or(0, |last| last + 1);
    let buffers = (0..count).map(|_| Buffer::from_slice(queue, &data)).collect::<Result<Vec<_>, _>>()?;
    let args = |launch: &Launch| {
        let memory = launch.buffers.iter().map(|at| Arg::Memory(buffers[*at].raw()));
        let numbers = [launch.number.to_bits(), (items >> launch.halved) as u32].map(Arg::Number);
        memory.chain(numbers).collect::<Vec<_>>()
    };
    let of_launch = |launch: &Launch| Kernels::with_args(&kernels[launch.kind], &[args(launch)]);
    let plain = Rc::new(launches.iter().map(of_launch).collect::<Result<Vec<_>, _>>()?);
    let sizes: Vec<usize> = launches.iter().map(|launch| items >> launch.halved).collect();
    let by_item = queue.device().caps().platform != "rusticl" && !queue.device().caps().gpu;
    let is_pocl = queue.device().caps().platform.contains("Portable");
    let (by, hand_items, group) = match (body.elementwise, by_item) {
        (true, true) if body.in_parts => {
            let group = if is_pocl { 2 } else { GROUP };
            ("by_part", items / PART * group, Some(group))
        }
        (true, _) => ("by_each", items, None),
        (false, _) if body.waits => ("by_group", GROUP, Some(GROUP)),
        (false, true) if is_pocl && body.counted => ("by_whole_group", GROUP, Some(GROUP)),
        (false, true) if is_pocl => ("by_item", 1, Some(1)),
        (false, true) => ("by_vector", GROUP, Some(GROUP)),
        (false, false) => ("by_group", items.min(1024), Some(items.min(1024))),
    };
    let mut parts = Vec::new();
    let at_once = match by {
        "by_whole_group" => AT_ONCE_BY_GROUP,
        _ if body.over == Over::Own => BUFFERS / 2,
        _ => AT_ONCE,
    };
    for part in launches.chunks(at_once) {
        let (source, used) = by_hand(body, part, by, is_pocl);
        let mut args: Vec<Arg> = used.iter().map(|at| Arg::Memory(buffers[*at].raw())).collect();
        args.extend(part.iter().map(|launch| Arg::Number(launch.number.to_bits())));
        args.push(Arg::Number(items as u32));
        parts.push(Kernels::with_args(&Program::from_source(queue, &source)?.kernel(by)?, &[args])?);
    }
    let group_of_each = body.waits.then_some(GROUP);
    let held = Rc::new(buffers.clone());
    let of_fused = Rc::clone(&held);
    let enqueue = move || {
        let _ = &held;
        let mut each = plain.iter().zip(&sizes);
        each.try_for_each(|(kernel, size)| raw::enqueue_sized(queue, kernel.iter(), *size, group_of_each))
    };
    let of_gated = enqueue.clone();
    let hand_loop = move || {
        enqueue()?;
        raw::finish(queue)
    };
    let gated = move || {
        let held = raw::Held::new(queue)?;
        of_gated()?;
        drop(held);
        raw::finish(queue)
    };
    let fused_by_hand = move || {
        let _ = &of_fused;
        for part in &parts {
            raw::enqueue_sized(queue, part.iter(), hand_items, group)?;
        }
        raw::finish(queue)
    };
    let mut all = vec![
        whole("loop", hand_loop.clone()),
        whole("loop_again", hand_loop),
        whole("gated_loop", gated),
        whole("fused_by_hand", fused_by_hand),
    ];
    let of_cuda = launches.iter().map(|launch| cuda::Launch {
        kernel: launch.kind,
        memory: launch.buffers.clone(),
        numbers: vec![launch.number.to_bits(), (items >> launch.halved) as u32],
        items: items >> launch.halved,
    });
    all.extend(fused_or_not(queue, &chain(queue, &kernels, &buffers, body, items, &launches)?)?);
    if body.waits {
        return Ok([all, Vec::new()]);
    }
    let names = (0..body.kinds).map(|kind| CString::new(name(kind))).collect::<Result<Vec<_>, _>>()?;
    let cuda = cuda::launches(queue, &body.plain_source(), &names, size_of_val(&data[..]), of_cuda.collect())?;
    Ok([all, cuda])
}

fn chain(
    queue: &Queue,
    kernels: &[Kernel],
    buffers: &[Buffer<f32>],
    body: &Body,
    items: usize,
    launches: &[Launch],
) -> Result<Graph, Failure> {
    let graph = Graph::new(queue)?;
    for Launch { kind, buffers: of, number, halved } in launches {
        let Some((to, from)) = of.split_last() else { continue };
        let mut launch = graph.kernel(&kernels[*kind]);
        for from in from {
            launch = launch.read(&buffers[*from]);
        }
        let to = &buffers[*to];
        launch =
            if body.elementwise { launch.read_write(to).elementwise(0, 4).elementwise(1, 4) } else { launch.write(to) };
        let range = items >> halved;
        let launch = launch.arg(*number).arg(range as u32).range(range);
        let launch = if body.waits { launch.work_group(GROUP) } else { launch };
        // SAFETY: each work-item touches elements inside the buffers, and writes its own.
        unsafe { launch.add()? };
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
