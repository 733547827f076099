//! Random kernels in random graphs, fused and not: rule Z1. They ask for their ids, return early, have loops and branches, and call
//! functions; each work-item writes its own elements, and reads others that no work-item writes. Some launches come again and again.
//! Others have more work-items, and most of them read their own elements only, which they promise (rule Z4). They are of one program, or of
//! several.
//!
//! `CLGRAPH_TEST_RANDOM` is the number of programs, and `CLGRAPH_TEST_SEED` repeats a run.

mod common;

use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

use clgraph::{Buffer, Finalize, Fuse, FusedForm, Graph, Kernel, Path, Program, ProgramBuilder};
use common::Bench;
use fastrand::Rng;

const CONTRACTS_NOTHING: &str = "#pragma OPENCL FP_CONTRACT OFF\n";
const LONG: Duration = Duration::from_secs(300);
const KERNELS: usize = 10;
/// The elements of a buffer.
const LEN: usize = 256;
/// The same, where work-items touch their own elements.
const LONG_LEN: usize = 20_000;
/// How many buffers of each type there are.
const BUFFERS: usize = 3;

/// What a kernel takes, in order: memory that it writes, memory that it reads, a number of each type.
#[derive(Clone, Copy)]
struct Shape {
    writes_floats: bool,
    reads_floats: bool,
    /// Whether it asks how its range is divided.
    sees_groups: bool,
    /// Whether each work-item reads its own element only.
    reads_own: bool,
    /// Whether it takes a vector, too.
    wide: Option<Wide>,
}

/// What the kernels of a program compute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bodies {
    Any,
    /// No index can wrap, so every compiler makes vectors of loops over their work-items.
    Plain,
    /// A few operations, which some drivers do in another way than more.
    Light,
    /// Low bits of numbers are taken, but every index is a global id.
    Ids,
    /// Loops have as many turns for all work-items, which some drivers do in another way than others.
    Counted,
}

/// A vector as an argument: its type, how many bytes that has, and its last component.
type Wide = (&'static str, usize, &'static str);

/// First those of three components.
const WIDE: [Wide; 8] = [
    ("uint3", 16, "s2"),
    ("ushort3", 8, "s2"),
    ("uchar3", 4, "s2"),
    ("uint2", 8, "s1"),
    ("uint4", 16, "s3"),
    ("uchar16", 16, "sf"),
    ("ushort2", 4, "s1"),
    ("uint4", 16, "s3"),
];

/// Writes a float or an integer expression of a kernel in which no index can wrap: compilers vectorize more of those.
fn plain_expression(rng: &mut Rng, is_float: bool, depth: usize, ids: &[&str]) -> String {
    if depth == 0 || rng.u8(..5) == 0 {
        return match (is_float, rng.u8(..4)) {
            (true, 0) => format!("{:.3}f", rng.f32() * 4.0 - 2.0),
            (true, 1) => "x".to_owned(),
            (true, _) => "fx".to_owned(),
            (false, 0) => format!("{}u", rng.u32(..)),
            (false, 1) => "u".to_owned(),
            (false, 2) => "ux".to_owned(),
            (false, _) => format!("(uint){}", ids[rng.usize(1..ids.len())]),
        };
    }
    let mut of = |is_float| plain_expression(rng, is_float, depth - 1, ids);
    let (a, b) = (of(is_float), of(is_float));
    let (condition, number) = (format!("{} < {}", of(!is_float), of(!is_float)), of(false));
    match (is_float, rng.u8(..10)) {
        (_, 0) => format!("({a} + {b})"),
        (_, 1) => format!("({a} - {b})"),
        (_, 2) => format!("({a} * {b})"),
        (true, 3) => format!("({a} / ({b} + 1.5f))"),
        (true, 4) => format!("sqrt(fabs({a}))"),
        (true, 5) => format!("exp(fmin({a}, 3.0f))"),
        (true, 6) => format!("sin({a})"),
        (true, 7) => format!("fmin(fmax({a}, -100.0f), {b})"),
        (true, 8) => format!("convert_float({number})"),
        (false, 3) => format!("max({a}, {b})"),
        (false, 4) => format!("({a} / (min({b}, 7u) + 1u))"),
        (_, _) => format!("({condition} ? {a} : {b})"),
    }
}

/// PoCL 3.1 does not link some kernels in which `get_work_dim` is called in a loop, and ends the process.
fn without_dims<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    ids.iter().copied().filter(|id| *id != "get_work_dim()").collect()
}

/// Writes the body of a kernel in which no index can wrap.
fn plain_body(rng: &mut Rng, all: &mut String, shape: &Shape, ids: &[&str]) {
    let _ = writeln!(
        all,
        "    const size_t i = get_global_id(0) - get_global_offset(0) + get_global_size(0) * (get_global_id(1) - \
         get_global_offset(1));"
    );
    let ids = without_dims(ids);
    let ids = ids.as_slice();
    let index = format!("i + {} < {LEN} ? i + {0} : i", rng.usize(1..9));
    let index = if shape.reads_own { "i" } else { &index };
    let read = if shape.reads_floats { "x" } else { "u" };
    let _ = writeln!(all, "    float x = fx;\n    uint u = ux;\n    {read} = from[{index}];");
    for _ in 0..rng.usize(..3) {
        let is_float = rng.bool();
        let (name, value) = (if is_float { "x" } else { "u" }, plain_expression(rng, is_float, 2, ids));
        let _ = match rng.u8(..4) {
            0 => writeln!(all, "    for (uint k = 0; k < {}u; k++) {name} = {value};", rng.u8(1..6)),
            1 => writeln!(all, "    if ({} > 9u && fx < 1.0f) {name} = {value};", plain_expression(rng, false, 1, ids)),
            _ => writeln!(all, "    {name} = {value};"),
        };
    }
    let value = plain_expression(rng, shape.writes_floats, 3, ids);
    let old = if rng.bool() { "to[i] +" } else { "" };
    let _ = writeln!(all, "    to[i] = {old} ({value});\n}}");
}

/// Writes the body of a kernel whose loops have a number of turns that the text says.
fn counted_body(rng: &mut Rng, all: &mut String, shape: &Shape, ids: &[&str]) {
    let _ = writeln!(
        all,
        "    const size_t i = get_global_id(0) - get_global_offset(0) + get_global_size(0) * (get_global_id(1) - \
         get_global_offset(1));"
    );
    let ids = without_dims(ids);
    let ids = ids.as_slice();
    // Some indices wrap, which some compilers vectorize wrongly.
    let index = match rng.bool() {
        true => format!("i + {} < {LEN} ? i + {0} : i", rng.usize(1..9)),
        false => format!("(i * {} + {}) % {LEN}", rng.usize(1..7), rng.usize(..9)),
    };
    let read = if shape.reads_floats { "x" } else { "u" };
    let _ = writeln!(all, "    float x = fx;\n    uint u = ux;\n    {read} = from[{index}];");
    for _ in 0..rng.usize(1..4) {
        let is_float = rng.bool();
        let (name, other) = if is_float { ("x", "u") } else { ("u", "x") };
        let (value, changed) = (plain_expression(rng, is_float, 2, ids), plain_expression(rng, !is_float, 1, ids));
        let (n, m) = (rng.u8(1..40), rng.u8(1..6));
        let last = m - 1;
        let condition = format!("{} > 9u", plain_expression(rng, false, 1, ids));
        let _ = match rng.u8(..6) {
            0 => writeln!(all, "    for (uint k = 0; k < {n}u; k++) {name} = {value};"),
            1 => writeln!(
                all,
                "    for (int k = {n}; k > 0; --k) {{ {name} = {value}; if ({condition}) {other} = {changed}; }}"
            ),
            2 => writeln!(
                all,
                "    for (uint k = 1; k <= {n}; k *= 2) for (uint l = 0; l < {m}; ++l) {{ {name} = {value}; u += k * l; }}"
            ),
            3 if rng.bool() => writeln!(
                all,
                "    for (int k = 0; k < {n}; k++) {{ x = x * 0.5f + convert_float(SWAP(u) & 255u); u += (uint)from[(i * {m} + k) % {LEN}]; }}"
            ),
            3 => writeln!(
                all,
                "    {{ float of[{m}]; for (int k = 0; k < {m}; k++) {{ of[k] = x; x += {m}; }} for (int k = {last}; k >= 0; k--) x -= of[k] * 0.5f; }}"
            ),
            4 => writeln!(all, "    if ({condition}) {name} = {value}; else {other} = {changed};"),
            _ => writeln!(all, "    {name} = {value};"),
        };
    }
    let condition = format!("({} & 3u) != 1u", plain_expression(rng, false, 1, ids));
    let condition = match rng.u8(..6) {
        0 => format!("if ({condition}) "),
        1 => format!("if (!({condition})) return;\n    "),
        _ => String::new(),
    };
    let value = plain_expression(rng, shape.writes_floats, 3, ids);
    let old = if rng.bool() { "to[i] +" } else { "" };
    let _ = writeln!(all, "    {condition}to[i] = {old} ({value});\n}}");
}

/// Writes the body of a kernel whose indices are global ids, which are those of elements where there is one dimension and no offset.
fn body_of_ids(rng: &mut Rng, all: &mut String, shape: &Shape) {
    let id = ["const size_t i", "uint i", "const int i"][rng.usize(..3)];
    let index = if shape.reads_own || rng.bool() { ["i", "get_global_id(0)"][rng.usize(..2)] } else { "i" };
    let (read, ids) = (if shape.reads_floats { "x" } else { "u" }, ["i", "i", "get_global_size(0)"]);
    let _ =
        writeln!(all, "    {id} = get_global_id(0);\n    float x = fx;\n    uint u = ux;\n    {read} = from[{index}];");
    for _ in 0..rng.usize(1..4) {
        let value = plain_expression(rng, false, 2, &ids);
        let _ = match rng.u8(..5) {
            0 => writeln!(all, "    for (uint k = 0; k < (u & 7u); k++) u = u * 5u + {value};"),
            1 => writeln!(all, "    u = (u ^ ({value} >> 3)) % ({value} | 1u);"),
            2 => writeln!(all, "    u = rotate(u, {value} & 15u);"),
            3 => writeln!(all, "    if ((u & 3u) == 1u) x = {};", plain_expression(rng, true, 2, &ids)),
            _ => writeln!(all, "    x = convert_float(u % 99u) / (fabs(x) + 1.5f);"),
        };
    }
    let _ = writeln!(
        all,
        "    to[i] = {};\n}}",
        if shape.writes_floats { "x + convert_float(u & 255u)" } else { "u ^ as_uint(x)" }
    );
}

/// Writes a float or an integer expression.
fn expression(rng: &mut Rng, is_float: bool, depth: usize, ids: &[&str]) -> String {
    if depth == 0 || rng.u8(..5) == 0 {
        return match (is_float, rng.u8(..5)) {
            (true, 0) => format!("{:.3}f", rng.f32() * 4.0 - 2.0),
            (true, 1) => "x".to_owned(),
            (true, 2) => "fx".to_owned(),
            (true, 3) => "convert_float(u & 1023u)".to_owned(),
            (true, _) => "convert_float((uint)(HERE & 15))".to_owned(),
            (false, 0) => format!("{}u", rng.u32(..)),
            (false, 1) => "u".to_owned(),
            (false, 2) => "ux".to_owned(),
            (false, 3) => format!("(uint){}", ids[rng.usize(..ids.len())]),
            (false, _) => "as_uint(x)".to_owned(),
        };
    }
    let mut of = |is_float| expression(rng, is_float, depth - 1, ids);
    let (a, b) = (of(is_float), of(is_float));
    let condition = format!("{} < {}", of(!is_float), of(!is_float));
    match (is_float, rng.u8(..8)) {
        (true, 0) => format!("({a} + {b})"),
        (true, 1) => format!("({a} - {b})"),
        (true, 2) => format!("({a} * {b})"),
        (true, 3) => format!("({a} / ({b} + 1.5f))"),
        (true, 4) => format!("sqrt(fabs({a}))"),
        (true, 5) => format!("helper({a}, {b})"),
        (true, 6) => format!("fmin(fmax({a}, -100.0f), {b})"),
        (false, 0) => format!("({a} + {b})"),
        (false, 1) => format!("({a} * {b})"),
        (false, 2) => format!("({a} ^ ({b} >> 3))"),
        (false, 3) => format!("rotate({a}, {b})"),
        (false, 4) => format!("({a} % ({b} | 1u))"),
        (false, 5) => format!("count({a})"),
        (false, 6) => format!("SWAP({a})"),
        (_, _) => format!("({condition} ? {a} : {b})"),
    }
}

/// Functions that ask for ids.
#[derive(Default)]
struct Asking {
    /// Calls of them, as numbers.
    numbers: Vec<String>,
    /// Calls as statements, which change `u`.
    statements: Vec<String>,
}

/// Writes functions that ask for ids, themselves or by those before, whose names begin with `begin`.
fn asking(rng: &mut Rng, all: &mut String, begin: &str, ids: &[&str]) -> Asking {
    let mut asking = Asking::default();
    for number in 0..rng.usize(2..6) {
        let ids: Vec<&str> = ids.iter().copied().chain(asking.numbers.iter().map(String::as_str)).collect();
        let are_floats: Vec<bool> = (0..rng.usize(..4)).map(|_| rng.bool()).collect();
        let (name, kind) = (format!("{begin}{number}"), rng.u8(..3));
        let param = |(at, is_float): (usize, &bool)| format!("{} p{at}", if *is_float { "float" } else { "uint" });
        let mut params: Vec<String> = are_floats.iter().enumerate().map(param).collect();
        let mut args: Vec<&str> = are_floats.iter().map(|is_float| if *is_float { "x" } else { "ux" }).collect();
        if kind == 2 {
            params.push("private uint *v".to_owned());
            args.push("&u");
        }
        let first = |is_float: bool, or: &str| {
            are_floats.iter().position(|is| *is == is_float).map_or(or.to_owned(), |at| format!("p{at}"))
        };
        let head =
            ["", "static inline ", "__attribute__((noinline)) ", "__attribute__((always_inline)) "][rng.usize(..4)];
        let _ = writeln!(
            all,
            "{head}{} {name}({}) {{\n    float x = {}, fx = 1.25f;\n    uint u = {}, ux = 11u;",
            ["float", "uint", "void"][kind as usize],
            params.join(", "),
            first(true, "0.75f"),
            first(false, "5u"),
        );
        if rng.bool() {
            let _ = writeln!(all, "    for (uint k = 0; k < 3u; k++) u = {};", expression(rng, false, 2, &ids));
        }
        if rng.bool() {
            let _ = writeln!(
                all,
                "    if ({} > 9u) x = {};",
                expression(rng, false, 1, &ids),
                expression(rng, true, 2, &ids)
            );
        }
        let call = format!("{name}({})", args.join(", "));
        let to = ["return", "return", "*v ="][kind as usize];
        let _ = writeln!(
            all,
            "    {to} {} + ({});\n}}",
            if kind == 0 { "x" } else { "u" },
            expression(rng, kind == 0, 2, &ids)
        );
        match kind {
            0 => asking.numbers.push(format!("as_uint({call})")),
            1 => asking.numbers.push(call),
            _ => asking.statements.push(call),
        }
    }
    asking
}

/// Writes a kernel. `asking` are functions that ask for ids; the second ones see groups. `threes`: it may take a vector of three.
fn kernel(
    rng: &mut Rng,
    all: &mut String,
    number: usize,
    (bodies, reads_own, threes): (Bodies, bool, bool),
    asking: &[Asking; 2],
) -> Shape {
    let sees_groups = rng.u8(..3) == 0;
    let wide =
        (bodies != Bodies::Light && rng.u8(..4) == 0).then(|| WIDE[rng.usize(if threes { 0 } else { 3 }..WIDE.len())]);
    let shape = Shape { writes_floats: rng.bool(), reads_floats: rng.bool(), sees_groups, reads_own, wide };
    // So each launch reads what the one before it has written, and they are one chain.
    let is_counted = bodies == Bodies::Counted;
    let shape = if is_counted { Shape { writes_floats: true, reads_floats: true, ..shape } } else { shape };
    let name = |is_float| if is_float { "float" } else { "uint" };
    let (to, from) = (name(shape.writes_floats), name(shape.reads_floats));
    let mut ids = vec![
        "HERE",
        "get_global_id(0)",
        "get_global_size(1)",
        "get_work_dim()",
        "get_global_id(1)",
        "get_global_offset(0)",
    ];
    if shape.sees_groups {
        ids.extend([
            "get_local_id(0)",
            "get_group_id(0)",
            "get_local_size(1)",
            "get_num_groups(0)",
            "get_local_linear_id()",
        ]);
    }
    let (param, taken) = match shape.wide {
        Some((name, _, last)) => {
            (format!(", {name} wide"), format!("    ux += (uint)wide.s0 + 3u * (uint)wide.{last};\n"))
        }
        None => Default::default(),
    };
    let _ = writeln!(
        all,
        "kernel void k{number}(global {to} *to, global const {from} *from, float fx, uint ux{param}) {{\n{taken}"
    );
    if bodies == Bodies::Light {
        let operator = ["+", "-", "*"][rng.usize(..3)];
        let _ = writeln!(
            all,
            "    to[get_global_linear_id()] {operator}= from[{}] * ux;\n}}",
            if reads_own { "get_global_linear_id()" } else { "7" },
        );
        return shape;
    }
    if bodies == Bodies::Ids {
        body_of_ids(rng, all, &shape);
        return shape;
    }
    if bodies == Bodies::Counted {
        counted_body(rng, all, &shape, &ids);
        return shape;
    }
    if bodies == Bodies::Plain || rng.u8(..3) == 0 {
        plain_body(rng, all, &shape, &ids);
        return shape;
    }
    let asking = &asking[..if shape.sees_groups { 2 } else { 1 }];
    ids.extend(asking.iter().flat_map(|of| &of.numbers).map(String::as_str));
    let statements: Vec<&String> = asking.iter().flat_map(|of| &of.statements).collect();
    let in_loops = without_dims(&ids);
    let index = format!("(i * {} + {}) % {LEN}", rng.usize(1..7), rng.usize(..9));
    let index = if reads_own { "i" } else { &index };
    let _ = writeln!(all, "    const size_t i = HERE;\n    const {from} read = from[{index}];");
    let (x, u) = if shape.reads_floats { ("read", "as_uint(read)") } else { ("convert_float(read & 255u)", "read") };
    let _ = writeln!(all, "    float x = {x};\n    uint u = {u};");
    if rng.bool() {
        let _ = writeln!(all, "    if ({} % 5u == {}u) return;", expression(rng, false, 1, &ids), rng.u8(..5));
    }
    for _ in 0..rng.usize(..4) {
        let (is_float, way) = (rng.bool(), rng.u8(..4));
        if !statements.is_empty() && rng.bool() {
            let _ = writeln!(all, "    {};", statements[rng.usize(..statements.len())]);
        }
        let ids = if way == 0 { &in_loops } else { &ids };
        let (name, value) = (if is_float { "x" } else { "u" }, expression(rng, is_float, 2, ids));
        let _ = match way {
            0 => writeln!(
                all,
                "    for (uint k = 0; k < (ux & 3u) + 1u; k++) {{ {name} = {value}; if (u == k) break; }}"
            ),
            1 => writeln!(all, "    if ({}) {name} = {value}; else ux += 1u;", expression(rng, false, 1, ids)),
            _ => writeln!(all, "    {name} = {value};"),
        };
    }
    let value = expression(rng, shape.writes_floats, 3, &ids);
    let (old, join) = if rng.bool() { ("to[i]", if shape.writes_floats { "*" } else { "^" }) } else { ("", "") };
    let _ = writeln!(all, "    to[i] = {old} {join} ({value});\n}}");
    shape
}

/// Writes a program. `own` says whether most of its kernels read their own elements, and `asks` whether kernels call functions that ask for
/// ids, which are not fused on rusticl; `threes`, whether they take vectors of three, which are not fused on Intel's runtime.
fn program(rng: &mut Rng, (own, bodies): (bool, Bodies), (asks, threes): (bool, bool)) -> (String, Vec<Shape>) {
    let mut all = "#define HERE (get_global_id(0) - get_global_offset(0) + get_global_size(0) \\\n    \
                   * (get_global_id(1) - get_global_offset(1)))\n\
                   #define SWAP(v) (((v) << 16) | ((v) >> 16))\n\
                   float helper(float a, float b) { float c = a; for (int i = 0; i < 3; i++) c = c * 0.5f + b; return c; }\n\
                   uint count(uint a) { return popcount(a) + (a >> 31 ? 7u : 0u); }\n"
        .to_owned();
    let places = ["HERE", "get_global_id(0)", "get_global_size(1)", "get_global_id(1)", "get_global_offset(0)"];
    let groups =
        ["get_local_id(0)", "get_group_id(0)", "get_local_size(1)", "get_num_groups(0)", "get_local_linear_id()"];
    let mut asking = [("asks", places), ("sees", groups)].map(|(begin, ids)| asking(rng, &mut all, begin, &ids));
    if !asks {
        asking.iter_mut().for_each(|of| (of.numbers, of.statements) = (Vec::new(), Vec::new()));
    }
    let shapes = (0..KERNELS)
        .map(|number| {
            let reads_own = own && rng.u8(..5) > 0;
            kernel(rng, &mut all, number, (bodies, reads_own, threes), &asking)
        })
        .collect();
    (all, shapes)
}

struct Field {
    bench: Bench,
    len: usize,
    floats: Vec<Buffer<f32>>,
    numbers: Vec<Buffer<u32>>,
}

impl Field {
    fn new(len: usize) -> Self {
        let bench = Bench::new();
        let floats = (0..BUFFERS).map(|_| Buffer::new(&bench.queue, len).unwrap()).collect();
        let numbers = (0..BUFFERS).map(|_| Buffer::new(&bench.queue, len).unwrap()).collect();
        Self { bench, len, floats, numbers }
    }

    fn start(&self) {
        for (at, (floats, numbers)) in self.floats.iter().zip(&self.numbers).enumerate() {
            let data: Vec<f32> = (0..self.len).map(|i| (i % 256 * 7 + at) as f32 * 0.013 - 1.0).collect();
            self.bench.queue.enqueue_write_buffer(floats, 0, &data, &[]).unwrap();
            let data: Vec<u32> = (0..self.len as u32).map(|i| i.wrapping_mul(2_654_435_769) >> (at * 5)).collect();
            self.bench.queue.enqueue_write_buffer(numbers, 0, &data, &[]).unwrap();
        }
        self.bench.queue.finish().unwrap();
    }

    fn bits(&self) -> Vec<Vec<u32>> {
        let floats = self.floats.iter().map(|buffer| self.bench.content(&buffer.cast().unwrap()));
        floats.chain(self.numbers.iter().map(|buffer| self.bench.content(buffer))).collect()
    }

    /// Adds a launch.
    fn add(&self, graph: &Graph, launch: &Launch, kernels: &[Kernel], shapes: &[Shape]) {
        let Launch { kernel, to, from, numbers, size: (w, h), offset: (dx, dy), group } = *launch;
        let shape = &shapes[kernel];
        let node = graph.kernel(&kernels[kernel]);
        let node =
            if shape.writes_floats { node.read_write(&self.floats[to]) } else { node.read_write(&self.numbers[to]) };
        let node = if shape.reads_floats { node.read(&self.floats[from]) } else { node.read(&self.numbers[from]) };
        let node = node.arg(numbers.0).arg(numbers.1);
        let word = |at: u32| numbers.1.wrapping_mul(2_654_435_769).rotate_left(at * 5);
        let node = match shape.wide {
            Some((_, 4, _)) => node.arg([word(0)]),
            Some((_, 8, _)) => node.arg([0, 1].map(word)),
            Some(_) => node.arg([0, 1, 2, 3].map(word)),
            None => node,
        };
        let node = if self.len == LONG_LEN { node.elementwise(0, 4) } else { node };
        let node = if shape.reads_own { node.elementwise(1, 4) } else { node };
        let node = match (h, group) {
            (1, None) => node.range(w).offset(dx),
            (1, Some((x, _))) => node.range(w).offset(dx).work_group(x),
            (_, None) => node.range([w, h]).offset([dx, dy]),
            (_, Some((x, y))) => node.range([w, h]).offset([dx, dy]).work_group([x, y]),
        };
        // SAFETY: work-items write their own elements, of which there are at most as many as the buffer has.
        unsafe { node.add() }.unwrap();
    }

    /// Runs launches. Returns what memory has then, and how many were fused, and by work-groups.
    fn run(
        &self,
        launches: &[Launch],
        (path, fuse): (Path, Fuse),
        kernels: &[Kernel],
        shapes: &[Shape],
    ) -> (Vec<Vec<u32>>, [usize; 2]) {
        let graph = self.bench.graph();
        launches.iter().for_each(|launch| self.add(&graph, launch, kernels, shapes));
        let executable = graph.finalize(Finalize::new().path(path).fuse(fuse)).unwrap();
        self.start();
        for _ in 0..2 {
            executable.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
        }
        let report = executable.report();
        let groups = report.fused.iter().filter(|of| of.form == FusedForm::OneGroup);
        let [all, by_group] = [report.fused.iter().collect::<Vec<_>>(), groups.collect()]
            .map(|of| of.iter().map(|of| of.nodes.len()).sum());
        (self.bits(), [all, by_group])
    }
}

/// What launches do one by one, and fused.
struct Compared {
    plain: Vec<Vec<u32>>,
    now: Vec<Vec<u32>>,
    /// How many were fused, and by work-groups.
    fused: [usize; 2],
}

impl Compared {
    /// Returns where memory differs.
    fn differences(&self) -> Vec<String> {
        let differs = |(at, (plain, now)): (usize, (&Vec<u32>, &Vec<u32>))| {
            let all = plain.iter().zip(now).enumerate().filter(|(_, (plain, now))| plain != now);
            all.take(3).map(|(i, (plain, now))| format!("{at}[{i}]: {plain:#x}, fused {now:#x}")).collect::<Vec<_>>()
        };
        self.plain.iter().zip(&self.now).enumerate().flat_map(differs).collect()
    }

    /// Whether memory differs in nothing but the signs of NaNs, which OpenCL C leaves open: a compiler may add in another order.
    fn differ_in_nans_alone(&self) -> bool {
        let is_nan = |word: u32| f32::from_bits(word).is_nan();
        let mut both = self.plain.iter().zip(&self.now).enumerate().flat_map(|(at, (plain, now))| {
            plain.iter().zip(now).filter(|(plain, now)| plain != now).map(move |(plain, now)| (at, *plain, *now))
        });
        // The first buffers have floats.
        both.all(|(at, plain, now)| at < BUFFERS && is_nan(plain) && is_nan(now) && plain << 1 == now << 1)
    }
}

/// Whether memory differs where no launch writes.
fn differ_beyond(list: &[Launch], shapes: &[Shape], found: &Compared) -> bool {
    let mut written = [0; 2 * BUFFERS];
    for launch in list {
        let at = if shapes[launch.kernel].writes_floats { launch.to } else { BUFFERS + launch.to };
        written[at] = written[at].max(launch.size.0 * launch.size.1);
    }
    written.iter().enumerate().any(|(at, end)| found.plain[at][*end..] != found.now[at][*end..])
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
struct Launch {
    kernel: usize,
    /// The buffers that it writes and reads.
    to: usize,
    from: usize,
    numbers: (f32, u32),
    size: (usize, usize),
    offset: (usize, usize),
    group: Option<(usize, usize)>,
}

impl Launch {
    fn new(rng: &mut Rng, shapes: &[Shape]) -> Self {
        let kernel = rng.usize(..shapes.len());
        Self::of(rng, shapes, kernel)
    }

    fn of(rng: &mut Rng, shapes: &[Shape], kernel: usize) -> Self {
        let shape = &shapes[kernel];
        let (to, from) = (rng.usize(..BUFFERS), rng.usize(..BUFFERS));
        // Nothing reads what its own launch writes.
        let from = if to == from && shape.writes_floats == shape.reads_floats { (from + 1) % BUFFERS } else { from };
        let (w, h) = if rng.bool() { (rng.usize(2..LEN), 1) } else { (rng.usize(2..16), rng.usize(1..16)) };
        // PoCL 7.1 does not run some kernels, fused or not, whose work-groups have one work-item.
        let group =
            [(w, h), (w, 1), (if w.is_multiple_of(2) && w > 2 { 2 } else { w }, 1), (1, h.max(2))][rng.usize(..4)];
        let group = if h.is_multiple_of(group.1) && group != (1, 1) { group } else { (w, 1) };
        let group = (shape.sees_groups || rng.bool()).then_some(group);
        let (numbers, offset) = ((rng.f32(), rng.u32(..64)), (rng.usize(..3), rng.usize(..3)));
        Self { kernel, to, from, numbers, size: (w, h), offset, group }
    }

    /// Launches whose work-items write their own elements, over few ranges, so that many fit together. Those of the kernels in `order` come
    /// first.
    fn own(rng: &mut Rng, shapes: &[Shape], order: &mut Vec<usize>, bodies: Bodies) -> Vec<Self> {
        let ranges = [((19_200, 1), (0, 0), (64, 1)), ((160, 120), (2, 1), (16, 2)), ((16_500, 1), (7, 0), (66, 1))];
        let ranges = if bodies == Bodies::Ids { &ranges[..1] } else { &ranges };
        let mut all = Vec::new();
        for _ in 0..rng.usize(1..5) {
            let (size, offset, group) = ranges[rng.usize(..ranges.len())];
            let has_group = rng.bool();
            for _ in 0..rng.usize(2..10) {
                let kernel = order.pop().unwrap_or_else(|| rng.usize(..shapes.len()));
                let mut next = Self::of(rng, shapes, kernel);
                let has_group = has_group || shapes[next.kernel].sees_groups;
                (next.size, next.offset, next.group) = (size, offset, has_group.then_some(group));
                all.push(next);
            }
        }
        all
    }

    /// Some launches that come again and again, with buffers, numbers and sizes that are the same in all turns, walk, or are random.
    fn turns(rng: &mut Rng, shapes: &[Shape]) -> Vec<Self> {
        // A fused kernel has turns of many launches, too.
        let (launches, most_turns) = if rng.u8(..4) == 0 { (rng.usize(9..20), 7) } else { (rng.usize(1..4), 12) };
        let once: Vec<(Self, [u8; 4])> = (0..launches)
            .map(|_| (Self::new(rng, shapes), [rng.u8(..3), rng.u8(..3), rng.u8(..3), rng.u8(..3)]))
            .collect();
        let mut all = Vec::new();
        for turn in 0..rng.usize(4..most_turns) {
            for (first, [memory, floats, numbers, size]) in &once {
                let mut next = first.clone();
                let shape = &shapes[next.kernel];
                match memory {
                    0 => {}
                    1 => (next.to, next.from) = ((next.to + turn) % BUFFERS, (next.from + turn) % BUFFERS),
                    _ => (next.to, next.from) = (rng.usize(..BUFFERS), rng.usize(..BUFFERS)),
                }
                if next.to == next.from && shape.writes_floats == shape.reads_floats {
                    next.from = (next.from + 1) % BUFFERS;
                }
                match floats {
                    0 => {}
                    1 => next.numbers.0 += (turn % 2) as f32,
                    _ => next.numbers.0 = rng.f32(),
                }
                match numbers {
                    0 => {}
                    1 => next.numbers.1 += turn as u32,
                    _ => next.numbers.1 = rng.u32(..64),
                }
                if next.group.is_none() && next.size.1 == 1 && *size > 0 {
                    let size = if *size == 1 { 2 + (next.size.0 + turn) % 3 } else { rng.usize(2..LEN) };
                    (next.size.0, next.offset.0) = (size, rng.usize(..3));
                }
                all.push(next);
            }
        }
        all
    }
}

#[test]
fn random_kernels_do_the_same_when_they_are_fused() {
    let (launches, fused) = random(false, "random_kernels_do_the_same_when_they_are_fused");
    assert!(fused * 10 > launches * 9, "only {fused} of {launches} launches were fused");
}

/// Rule Z4
#[test]
fn random_kernels_of_many_work_items_do_the_same_when_they_are_fused() {
    let (launches, fused) = random(true, "random_kernels_of_many_work_items_do_the_same_when_they_are_fused");
    let caps = Bench::new().queue.device().caps().clone();
    // There kernels with loops are not fused by their promises.
    let is_loopless = caps.platform == "Portable Computing Language" && caps.driver_version.starts_with("7.");
    assert!(is_loopless || fused * 3 > launches, "only {fused} of {launches} launches were fused");
}

/// Intel's runtime does not survive one of a hundred programs, fused or not: its compiler joins the halves of indices (`docs/drivers.md`).
/// Runs a test in another process, and again with other programs where that is ended by a signal.
fn in_another_process(test: &str) {
    for _ in 0..5 {
        let seed = fastrand::u64(..);
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([test, "--exact", "--nocapture"]).env("CLGRAPH_TEST_SEED", seed.to_string());
        let output = child.output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // A signal leaves no code.
        if output.status.code().is_some() {
            assert!(output.status.success(), "{said}");
            return;
        }
        println!("with CLGRAPH_TEST_SEED={seed} the driver ended the process: {}", output.status);
    }
    panic!("the driver survives no programs");
}

/// Compares random programs. Returns the number of launches, and of those that were fused.
fn random(own: bool, test: &str) -> (usize, usize) {
    let count = std::env::var("CLGRAPH_TEST_RANDOM").map_or(4, |count| count.parse().unwrap());
    let seed = match std::env::var("CLGRAPH_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) if Bench::new().queue.device().caps().platform.starts_with("Intel") => {
            in_another_process(test);
            return (1, 1);
        }
        Err(_) => fastrand::u64(..),
    };
    println!("CLGRAPH_TEST_SEED={seed}");
    let (field, mut rng) = (Field::new(if own { LONG_LEN } else { LEN }), Rng::with_seed(seed));
    let (mut launches, mut fused, mut excused) = (0, 0, 0);
    let (mut all_kernels, mut all, mut chained, mut by_group) = (0, 0, 0, 0);
    let caps = field.bench.queue.device().caps();
    let (is_rusticl, is_intel) = (caps.platform == "rusticl", caps.platform.starts_with("Intel"));
    let is_pocl7 = caps.platform == "Portable Computing Language" && caps.driver_version.starts_with("7.");
    let fuses_unasked = !is_rusticl && caps.platform != "NVIDIA CUDA";
    // Many kernels that contract are not fused on PoCL 3.1, where they would round otherwise: most programs contract nothing there.
    let is_pocl3 = caps.platform == "Portable Computing Language" && caps.driver_version.starts_with("3.");
    let contracting = rng.usize(..4);
    for number in 0..count {
        let contracts = !is_pocl3 || number % 4 == contracting;
        let std = if caps.version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" };
        let bodies = match own {
            true => [Bodies::Any, Bodies::Any, Bodies::Plain, Bodies::Light, Bodies::Ids][rng.usize(..5)],
            false => [Bodies::Any, Bodies::Any, Bodies::Counted, Bodies::Counted][number % 4],
        };
        // The kernels of some programs have the same names, and their macros and functions other meanings.
        let programs: Vec<(String, Vec<Shape>)> =
            (0..rng.usize(1..4)).map(|_| program(&mut rng, (own, bodies), (!is_rusticl, !is_intel))).collect();
        all_kernels += programs.len() * KERNELS;
        let (mut source, mut built, mut texts) = (String::new(), Vec::new(), Vec::new());
        for (text, _) in &programs {
            // Without Mesa's own libclc rusticl does not build these.
            let is_left_out = |text: &str| text.replace("exp(", "fabs(").replace("sin(", "fabs(");
            let text = if is_rusticl { is_left_out(text) } else { text.clone() };
            // PoCL 7.1 does not link `c ? get_global_id(0) : get_global_id(1)`, and runs another kernel of the name (`docs/drivers.md`).
            let of_one = |text: String| text.replace("(uint)get_global_id(1)", "(uint)get_global_offset(0)");
            let text = if is_pocl7 { of_one(text) } else { text };
            let text = if contracts { text } else { CONTRACTS_NOTHING.to_owned() + &text };
            built.push(ProgramBuilder::new(&field.bench.queue).options(std).source(&text).unwrap());
            texts.push(text.clone());
            source += &text;
        }
        let kernels = |built: &[Program]| -> Vec<Kernel> {
            let all = |program: &Program| -> Vec<Kernel> {
                (0..KERNELS).map(|at| program.kernel(&format!("k{at}")).unwrap()).collect()
            };
            built.iter().flat_map(all).collect()
        };
        let shapes: Vec<Shape> = programs.into_iter().flat_map(|(_, shapes)| shapes).collect();
        // Those of one graph each.
        let mut lists: Vec<Vec<Launch>> = Vec::new();
        let mut order: Vec<usize> = (0..shapes.len()).collect();
        rng.shuffle(&mut order);
        if own {
            let parts = 0..rng.usize(1..6);
            lists.push(parts.flat_map(|_| Launch::own(&mut rng, &shapes, &mut order, bodies)).collect());
            all_kernels -= order.len();
        } else {
            for some in order.chunks(rng.usize(2..10)) {
                let mut list: Vec<Launch> = some.iter().map(|kernel| Launch::of(&mut rng, &shapes, *kernel)).collect();
                if rng.u8(..4) == 0 {
                    list.extend(Launch::turns(&mut rng, &shapes));
                }
                match lists.last_mut() {
                    Some(last) if bodies != Bodies::Counted && rng.bool() => last.extend(list),
                    _ => lists.push(list),
                }
            }
        }
        if bodies == Bodies::Counted {
            for (at, launch) in lists.iter_mut().flat_map(|list| list.iter_mut().enumerate()) {
                (launch.to, launch.from) = ((at + 1) % BUFFERS, at % BUFFERS);
                // Most have as many work-items as a group needs.
                if rng.u8(..20) > 0 && launch.size.0 * launch.size.1 < 16 {
                    (launch.size, launch.group) = ((16 + launch.size.0, 1), None);
                    launch.group = shapes[launch.kernel].sees_groups.then_some((launch.size.0, 1));
                }
            }
        }
        let path = [Path::Auto, Path::Native, Path::Replay, Path::Queues][rng.usize(..4)];
        let plainly = |list: &[Launch], kernels: &[Kernel]| field.run(list, (path, Fuse::Off), kernels, &shapes).0;
        let compare = |list: &[Launch], kernels: &[Kernel]| {
            let (now, fused) = field.run(list, (path, Fuse::Now), kernels, &shapes);
            Compared { plain: plainly(list, kernels), now, fused }
        };
        let built = kernels(&built);
        let mut is_excused = false;
        for mut list in lists {
            let found = compare(&list, &built);
            if !is_pocl3 || !contracts {
                (launches, fused) = (launches + list.len(), fused + found.fused[0]);
            }
            (all, by_group, chained) = (all + list.len(), by_group + found.fused[1], chained + found.fused[0]);
            if found.plain == found.now {
                continue;
            }
            let mut differing = found.differences();
            let other = |change: &dyn Fn(&str) -> String| {
                let build = |text: &String| ProgramBuilder::new(&field.bench.queue).options(std).source(&change(text));
                kernels(&texts.iter().map(|text| build(text).unwrap()).collect::<Vec<_>>())
            };
            // PoCL 7.1 compiles some kernels with loops wrongly that are launched one by one (`docs/drivers.md`), but not if it must keep
            // the loop's counter in memory, or chooses the work-group.
            let is_wrong_alone = || {
                let in_memory = |text: &str| {
                    text.replace("for (uint k", "for (volatile uint k").replace("for (int k", "for (volatile int k")
                };
                let mut free = list.clone();
                let ungrouped = free.iter_mut().filter(|launch| !shapes[launch.kernel].sees_groups);
                ungrouped.for_each(|launch| launch.group = None);
                is_pocl7 && (plainly(&list, &other(&in_memory)) == found.now || plainly(&free, &built) == found.now)
            };
            // A compiler joins multiplications and additions or not, as it suits what is around them. That says something only if as much is
            // fused without, and in that form.
            let exact = other(&|text| CONTRACTS_NOTHING.to_owned() + text);
            let exactly = compare(&list, &exact);
            let is_contracted = exactly.differ_in_nans_alone()
                && exactly.fused.iter().zip(&found.fused).all(|(exactly, found)| exactly >= found);
            let writes_beyond = |list: &[Launch], found: &Compared| differ_beyond(list, &shapes, found);
            let is_beyond = writes_beyond(&list, &found);
            let again = compare(&list, &built);
            let comes_again = again.plain == found.plain && again.now == found.now;
            let excuse = if is_wrong_alone() {
                Some("is wrong where it is launched one by one")
            } else if is_beyond || !comes_again {
                // No rounding does that, or comes and goes.
                None
            } else if found.differ_in_nans_alone() {
                Some("has other signs of NaNs")
            } else {
                is_contracted.then_some("rounds otherwise where it is contracted")
            };
            if let Some(excuse) = excuse {
                println!("program {number} {excuse}: {differing:#?}");
                is_excused = true;
                continue;
            }
            // As few launches as show it, and without contraction if that is not the reason.
            let contracts = is_beyond || exactly.plain == exactly.now;
            let (built, begin) = if contracts { (&built, "") } else { (&exact, CONTRACTS_NOTHING) };
            let mut at = 0;
            while at < list.len() {
                let mut fewer = list.clone();
                fewer.remove(at);
                let found = compare(&fewer, built);
                let shows = if is_beyond { writes_beyond(&fewer, &found) } else { found.plain != found.now };
                if shows { (list, differing) = (fewer, found.differences()) } else { at += 1 }
            }
            let found = format!("{begin}{source}\n{list:#?}\n{differing:#?}");
            // These fuse only where the program asks for it, and may round otherwise: `docs/drivers.md`.
            if !fuses_unasked && !is_beyond && comes_again {
                println!("{found}");
                common::skip(common::Reason::ComputesOtherwise);
                return (1, 1);
            }
            panic!("{found}");
        }
        excused += usize::from(is_excused);
        assert!(!fuses_unasked || excused <= 1 + count / 10, "so many are not known");
    }
    println!("{all_kernels} kernels: {chained} of {all} launches fused, {by_group} by work-groups");
    (launches, fused)
}
