//! Kernels whose work-items wait for each other or share local memory, in chains that one work-group runs: rule Z1. Random programs of
//! such kernels and of others, alone and several together, fused and not.
//!
//! `CLGRAPH_TEST_RANDOM` is the number of programs, and `CLGRAPH_TEST_SEED` repeats a run.

mod common;

use std::fmt::Write;
use std::time::Duration;

use clgraph::{
    Buffer, Finalize, Fuse, FusedForm, FusingState, Graph, Kernel, Path, ProgramBuilder, Report, WhyNotFused,
};
use common::Bench;
use fastrand::Rng;

const LONG: Duration = Duration::from_secs(300);
/// The elements of a buffer.
const LEN: usize = 256;
const BUFFERS: usize = 4;
/// Why an update takes a form away.
const FEWER: &str = "to fewer work-items than the work-group of its fused kernel";
const KERNELS: usize = 8;

/// What all programs have. In `sum`, the work-items of a group add up their elements; in `flip`, they exchange them in two dimensions; in
/// `scan`, whose memory is given, they add up those before them.
const SOURCE: &str = "
    #define TILE 64
    #define AT (get_global_id(0) - get_global_offset(0) + get_global_size(0) * (get_global_id(1) - get_global_offset(1)))
    #define ME (get_local_id(0) + get_local_size(0) * get_local_id(1))
    #define ALL (get_local_size(0) * get_local_size(1))
    #define SYNC barrier(CLK_LOCAL_MEM_FENCE)
    #if __OPENCL_C_VERSION__ >= 200
    #define MEET work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group)
    #else
    #define MEET barrier(CLK_LOCAL_MEM_FENCE)
    #endif
    uint late(local float *of) { barrier(CLK_LOCAL_MEM_FENCE); const uint at = get_local_id(0); SYNC; return at + (of[0] < 1.0f); }
    float both(local float *of, uint at, uint ahead) { return of[at] + of[at + ahead]; }
    kernel void plain(global float *to, global const float *from, float by) {
        to[AT] = from[AT] * by + 0.25f;
    }
    kernel void sum(global float *to, global const float *from, float by) {
        local float tile[TILE];
        const uint me = ME;
        tile[me] = from[AT] * by;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint ahead = ALL / 2; ahead > 0; ahead /= 2) {
            if (me < ahead) tile[me] = both(tile, me, ahead);
            SYNC;
        }
        if (me >= 3) return;
        to[AT] += tile[0];
    }
    kernel void flip(global float *to, global const float *from, float by) {
        __local float tile[8][8 + 1], last;
        local uint count;
        const uint x = get_local_id(0), y = get_local_id(1);
        tile[y][x] = from[AT];
        if (x == 0 && y == 0) { last = by; count = get_group_id(0) + 2 * get_group_id(1); }
        MEET;
        const uint other = (get_local_size(1) - 1 - y);
        to[AT] = tile[other][get_local_size(0) - 1 - x] + (last + count) * get_num_groups(0);
    }
    kernel void scan(global float *to, global const float *from, float by, local float *one, local float *two) {
        const uint me = ME;
        one[me] = from[AT];
        for (uint back = 1; back < ALL; back *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            two[me] = one[me] + (me >= back ? one[me - back] : 0.0f);
            barrier(CLK_LOCAL_MEM_FENCE);
            one[me] = two[me] * by;
        }
        to[AT] = one[me];
    }
";

/// A kernel of a program.
struct Shape {
    name: String,
    has_arrays: bool,
}

/// Writes a kernel whose work-items share local memory between barriers.
fn kernel(rng: &mut Rng, all: &mut String, number: usize, asks: bool) -> Shape {
    let name = format!("k{number}");
    let is_given = rng.bool();
    let has_flag = rng.bool();
    let given = if is_given { ", local float *one, local float *two" } else { "" };
    let _ = writeln!(all, "kernel void {name}(global float *to, global const float *from, float by{given}) {{");
    if !is_given {
        let _ = writeln!(
            all,
            "{}",
            ["    local float one[TILE], two[64];", "    __local float one[TILE];\n    local float two[TILE + 2 * 4];"]
                [rng.usize(..2)]
        );
    }
    if has_flag {
        let _ = writeln!(all, "    local volatile uint flag;");
    }
    // Atomics whose effect does not depend on the order of work-items.
    let counts = ["add", "sub", "min", "max", "and", "or", "xor"][rng.usize(..7)];
    let has_counts = rng.bool();
    if has_counts {
        let _ = writeln!(all, "    local uint counts[4];");
    }
    let _ = writeln!(
        all,
        "    const uint me = ME, all = ALL;\n    float x = from[AT];\n    one[me] = x; two[all - 1 - me] = x * by;"
    );
    if has_flag {
        let _ = writeln!(all, "    if (me == {}) {{ flag = 1 + get_group_id(0); }}", rng.u8(..2));
    }
    if has_counts {
        let _ = writeln!(all, "    if (me < 4u) counts[me] = 77u;");
    }
    for _ in 0..rng.usize(1..5) {
        let other = format!("(me * {} + {}) % all", rng.u8(1..7), rng.u8(..9));
        let (from, to) = if rng.bool() { ("one", "two") } else { ("two", "one") };
        let _ = writeln!(all, "    SYNC;");
        if has_counts && rng.bool() {
            let (head, at) = (["", "if (me & 1u) ", "for (uint k = 0; k < 3u; k++) "][rng.usize(..3)], rng.u8(1..5));
            let to = ["&counts[me & 3u]", "counts + (me * 3u & 3u)", "&counts[2]"][rng.usize(..3)];
            let _ = writeln!(all, "    {head}atomic_{counts}({to}, me * {at}u + get_group_id(0));");
        }
        let _ = match rng.u8(..if asks { 5 } else { 4 }) {
            4 => writeln!(all, "    x += late({from}) + get_group_id(0);"),
            0 => writeln!(all, "    if ({from}[{other}] < x) {{ x = x * 0.5f + {from}[me]; }}"),
            1 => writeln!(
                all,
                "    for (uint k = 0; k < {}u; k++) {{ x += {from}[(me + k) % all]; SYNC; {to}[me] = x; SYNC; }}",
                rng.u8(1..4)
            ),
            2 => writeln!(
                all,
                "    x = {from}[{other}] - get_group_id(1);\n    SYNC;\n    {to}[me] = x + get_local_id(0);"
            ),
            _ => writeln!(all, "    x += both({from}, me / 2, all / 2);"),
        };
    }
    if has_flag {
        let _ = writeln!(all, "    if (flag > 2u) x += flag;");
    }
    if has_counts {
        let _ = writeln!(all, "    SYNC;\n    x += counts[me & 3u] & 255u;");
    }
    if rng.bool() {
        let _ = writeln!(all, "    if (me % {} == 0) return;", rng.u8(2..5));
    }
    let _ = writeln!(all, "    to[AT] {} x;\n}}", ["=", "+=", "-="][rng.usize(..3)]);
    Shape { name, has_arrays: is_given }
}

struct Field {
    bench: Bench,
    buffers: Vec<Buffer<f32>>,
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
struct Launch {
    kernel: usize,
    to: usize,
    from: usize,
    by: f32,
    group: [usize; 2],
    groups: [usize; 2],
    offset: [usize; 2],
    /// Elements of local memory beyond those that it needs.
    more: usize,
}

impl Launch {
    fn new(rng: &mut Rng, shapes: &[Shape], group: [usize; 2]) -> Self {
        let kernel = rng.usize(..shapes.len());
        let to = rng.usize(..BUFFERS);
        let from = (to + rng.usize(1..BUFFERS)) % BUFFERS;
        let most = (LEN / (group[0] * group[1])).min(16);
        let wide = rng.usize(1..=most);
        let groups = [wide, rng.usize(1..=most / wide)];
        let (offset, more) = ([rng.usize(..4), rng.usize(..4)], rng.usize(..3));
        Self { kernel, to, from, by: rng.f32(), group, groups, offset, more }
    }
}

impl Field {
    fn new() -> Self {
        let bench = Bench::new();
        let buffers = (0..BUFFERS).map(|_| Buffer::new(&bench.queue, LEN).unwrap()).collect();
        Self { bench, buffers }
    }

    /// Whether the driver is PoCL of a version.
    fn is_pocl(&self, version: &str) -> bool {
        let caps = self.bench.queue.device().caps();
        caps.platform.contains("Portable") && caps.driver_version.starts_with(version)
    }

    /// Whether kernels with local variables are fused: PoCL 6.0 does not say how much memory they have, and 7.1 gets some wrong.
    fn has_groups(&self) -> bool {
        !self.is_pocl("6.") && !self.is_pocl("7.")
    }

    /// Whether kernels are one with others whose work-items do not wait.
    fn mixes(&self) -> bool {
        !self.bench.queue.device().caps().platform.contains("Portable")
    }

    fn program(&self, source: &str) -> clgraph::Program {
        let std = if self.bench.queue.device().caps().version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" };
        ProgramBuilder::new(&self.bench.queue).options(std).source(source).unwrap()
    }

    fn start(&self) {
        for (at, buffer) in self.buffers.iter().enumerate() {
            let data: Vec<f32> = (0..LEN).map(|i| (i % 37 * 5 + at) as f32 * 0.125 - 3.0).collect();
            self.bench.queue.enqueue_write_buffer(buffer, 0, &data, &[]).unwrap();
        }
        self.bench.queue.finish().unwrap();
    }

    fn bits(&self) -> Vec<Vec<u32>> {
        self.buffers.iter().map(|buffer| self.bench.content(&buffer.cast().unwrap())).collect()
    }

    fn add(&self, graph: &Graph, launch: &Launch, kernels: &[Kernel], shapes: &[Shape]) {
        let Launch { kernel, to, from, by, group, groups, offset, more } = *launch;
        let node = graph.kernel(&kernels[kernel]).read_write(&self.buffers[to]).read(&self.buffers[from]).arg(by);
        let items = group[0] * group[1];
        let node = if shapes[kernel].has_arrays { node.local::<f32>(items + more).local::<f32>(items) } else { node };
        let node = node.range([group[0] * groups[0], group[1] * groups[1]]).offset(offset).work_group(group);
        // SAFETY: work-items write their own elements, of which there are at most as many as the buffer has.
        unsafe { node.add() }.unwrap();
    }

    /// Runs a graph plainly and fused, on memory that begins so. `expected`: how many launches each fused kernel does.
    fn is_the_same_fused(&self, graph: &Graph, (memory, data): (&Buffer<u32>, &[u32]), expected: &[usize]) {
        let [plain, now] = [(Fuse::Off, &[][..]), (Fuse::Now, expected)].map(|(fuse, expected)| {
            let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
            let report = executable.report();
            let fused: Vec<usize> = report.fused.iter().map(|of| of.nodes.len()).collect();
            assert_eq!(fused, expected, "{report}");
            self.bench.queue.enqueue_write_buffer(memory, 0, data, &[]).map(drop).unwrap();
            executable.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
            self.bench.content(memory)
        });
        assert_eq!(plain, now);
    }

    /// Runs launches plainly and fused. Returns where memory differs, and the report of the fused ones.
    fn differences(
        &self,
        launches: &[Launch],
        path: Path,
        (kernels, shapes): (&[Kernel], &[Shape]),
    ) -> (Vec<String>, Report) {
        let graph = self.bench.graph();
        launches.iter().for_each(|launch| self.add(&graph, launch, kernels, shapes));
        let mut report = None;
        let [plain, now] = [Fuse::Off, Fuse::Now].map(|fuse| {
            let executable = graph.finalize(Finalize::new().path(path).fuse(fuse)).unwrap();
            self.start();
            for _ in 0..2 {
                executable.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
            }
            report = Some(executable.report());
            self.bits()
        });
        let differs = |(at, (plain, now)): (usize, (&Vec<u32>, &Vec<u32>))| {
            let all = plain.iter().zip(now).enumerate().filter(|(_, (plain, now))| plain != now);
            all.take(3).map(|(i, (plain, now))| format!("{at}[{i}]: {plain:#x}, fused {now:#x}")).collect::<Vec<_>>()
        };
        (plain.iter().zip(&now).enumerate().flat_map(differs).collect(), report.unwrap())
    }

    /// Checks that memory is the same fused and not, and that these nodes become one where work-groups run fused kernels.
    #[track_caller]
    fn fuses(&self, graph: &Graph, nodes: &[usize]) {
        let [plain, fused] = [Fuse::Off, Fuse::Now].map(|fuse| {
            let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
            self.start();
            executable.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
            let (fuses, report) = (fuse == Fuse::Now && self.has_groups(), executable.report());
            let fused: Vec<&[usize]> = report.fused.iter().map(|of| of.nodes.as_slice()).collect();
            assert_eq!(fused, if fuses { vec![nodes] } else { Vec::new() }, "{report}");
            self.bits()
        });
        assert_eq!(fused, plain);
    }
}

/// Rule Z1: local memory, given and declared, in one and two dimensions, beside kernels that do not wait.
#[test]
fn kernels_that_wait_are_fused() {
    let field = Field::new();
    let shapes =
        ["plain", "sum", "flip", "scan"].map(|name| Shape { name: name.to_owned(), has_arrays: name == "scan" });
    let program = field.program(SOURCE);
    let kernels: Vec<Kernel> = shapes.iter().map(|shape| program.kernel(&shape.name).unwrap()).collect();
    let launch = |kernel: usize, group: [usize; 2]| Launch {
        kernel,
        to: kernel,
        from: (kernel + 3) % BUFFERS,
        by: 0.5,
        group,
        groups: [2, 2],
        offset: [1, 0],
        more: 0,
    };
    for group in [[8, 4], [4, 8], [8, 8]] {
        let launches: Vec<Launch> = (0..12).map(|at| launch(at % 4, group)).collect();
        let (differing, report) = field.differences(&launches, Path::Auto, (&kernels, &shapes));
        assert_eq!(differing, Vec::<String>::new());
        let fused: Vec<usize> = report.fused.iter().map(|of| of.nodes.len()).collect();
        if field.has_groups() {
            let fits: &[usize] = if field.mixes() { &[12] } else { &[3, 3, 3] };
            assert_eq!(fused, fits, "{report}");
        }
        if !field.has_groups() {
            let why = match field.is_pocl("6.") {
                true => "the driver does not say how much local memory",
                false => "the driver's compiler gets some fused kernels with barriers wrong",
            };
            assert!(report.not_fused.iter().any(|of| of.why.to_string().contains(why)), "{report}");
        }
        if !field.mixes() && !field.is_pocl("7.") {
            assert!(
                report.to_string().contains("wait for each other in work-groups, and one work-item does"),
                "{report}"
            );
        }
    }
    // Local memory by arguments alone, in one dimension.
    let graph = field.bench.graph();
    for _ in 0..2 {
        let launch = graph.kernel(&kernels[3]).read_write(&field.buffers[0]).read(&field.buffers[1]).arg(0.5_f32);
        let launch = launch.local::<f32>(32).local::<f32>(32).range(64).work_group(32);
        // SAFETY: work-items write their own elements, inside the buffers, and have local memory for each.
        unsafe { launch.add() }.unwrap();
    }
    let [plain, fused] = [Fuse::Off, Fuse::Now].map(|fuse| {
        let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
        field.start();
        executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(
            executable.report().fused.len(),
            usize::from(fuse == Fuse::Now && !field.is_pocl("7.")),
            "{}",
            executable.report()
        );
        field.bits()
    });
    assert_eq!(fused, plain);
    // Two sizes of work-groups are two chains; on Intel's runtime a work-group must be full vectors.
    let launches: Vec<Launch> = (0..8).map(|at| launch(1 + at % 3, if at < 4 { [8, 8] } else { [4, 4] })).collect();
    let (differing, report) = field.differences(&launches, Path::Auto, (&kernels, &shapes));
    assert_eq!((differing, report.fused.len()), (Vec::new(), if field.has_groups() { 2 } else { 0 }), "{report}");
    let launches: Vec<Launch> = (0..8).map(|_| launch(1, [5, 2])).collect();
    let (differing, report) = field.differences(&launches, Path::Auto, (&kernels, &shapes));
    let is_intel = field.bench.queue.device().caps().platform.contains("Intel");
    let fused = usize::from(field.has_groups() && !is_intel);
    assert_eq!((differing, report.fused.len()), (Vec::new(), fused), "{report}");
    let says =
        report.not_fused.iter().any(|of| of.why.to_string().contains("in work-groups of 10, which is no multiple"));
    assert_eq!(says, is_intel, "{report}");
    // One work-group would take longer for many.
    let many = Launch { groups: [1, 17], ..launch(1, [5, 3]) };
    let (differing, report) = field.differences(&vec![many; 4], Path::Auto, (&kernels, &shapes));
    assert_eq!((differing, report.fused.len()), (Vec::new(), 0), "{report}");
    let why = WhyNotFused::WorkGroups { kernel: "sum".to_owned(), groups: 17, most: 16 };
    assert!(!field.has_groups() || is_intel || report.not_fused.iter().all(|of| of.why == why), "{report}");
}

/// Rule Z3: a kernel that a fused one cannot have does not keep others from being fused.
#[test]
fn a_local_variable_with_the_name_of_a_member_keeps_its_kernel_alone() {
    let field = Field::new();
    let source = "
        kernel void own(global float *to, global const float *from) {
            local float x[16];
            const uint me = get_local_id(0);
            float4 v = (float4)(from[get_global_id(0)]);
            x[me] = v.y;
            barrier(CLK_LOCAL_MEM_FENCE);
            to[get_global_id(0)] = x[15 - me] + v.x;
        }
        kernel void other(global float *to, global const float *from) {
            local float y[16];
            const uint me = get_local_id(0);
            y[me] = from[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            to[get_global_id(0)] += y[15 - me];
        }";
    let program = field.program(source);
    let graph = field.bench.graph();
    for name in ["own", "other", "other", "other"] {
        let kernel = program.kernel(name).unwrap();
        let launch = graph.kernel(&kernel).read_write(&field.buffers[0]).read(&field.buffers[1]);
        // SAFETY: work-items write their own elements, inside the buffers.
        unsafe { launch.range(64).work_group(16).add() }.unwrap();
    }
    field.fuses(&graph, &[1, 2, 3]);
}

/// Rule Z3: PoCL's compiler takes minutes for a reduction that is written so, in a chain.
#[test]
fn barriers_under_conditions_stay_launches_on_pocl() {
    let field = Field::new();
    let step = |n: usize| {
        let half = n / 2;
        format!("if (n >= {n}) {{ if (me < {half}) t[me] += t[me + {half}]; barrier(CLK_LOCAL_MEM_FENCE); }}")
    };
    let steps: String = [256, 128, 64, 32, 16, 8, 4, 2].map(step).concat();
    let source = format!(
        "kernel void reduce(global float *to, global const float *from, float by) {{
            local float t[256]; const uint n = get_local_size(0), me = get_local_id(0);
            t[me] = from[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);
            {steps}
            to[get_global_id(0)] = t[0] * by;
        }}"
    );
    let reduce = field.program(&source).kernel("reduce").unwrap();
    let graph = field.bench.graph();
    for at in 0..2 {
        let launch = graph.kernel(&reduce).read_write(&field.buffers[at + 1]).read(&field.buffers[at]).arg(0.5_f32);
        // SAFETY: work-items write their own elements, inside the buffers.
        unsafe { launch.range(128).work_group(64).add() }.unwrap();
    }
    let [plain, fused] = [Fuse::Off, Fuse::Now].map(|fuse| {
        let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
        field.start();
        executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
        let report = executable.report();
        let fuses = fuse == Fuse::Now && field.mixes();
        assert_eq!(report.fused.len(), usize::from(fuses), "{report}");
        let says = report.to_string().contains("it has a barrier under a condition");
        assert_eq!(says, fuse == Fuse::Now && (field.is_pocl("3.") || field.is_pocl("6.")), "{report}");
        field.bits()
    });
    assert_eq!(fused, plain);
}

/// Rules Z1, Z8: counts in local memory, whose order nothing sees.
#[test]
fn histograms_are_fused() {
    let field = Field::new();
    let source = "
        kernel void own(global float *to, global const float *from) {
            local uint bins[16];
            const uint me = get_local_id(0);
            if (me < 16) bins[me] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            atomic_inc(&bins[(uint)(fabs(from[get_global_id(0)]) * 9.0f) & 15]);
            barrier(CLK_LOCAL_MEM_FENCE);
            to[get_global_id(0)] += bins[me & 15];
        }
        kernel void most(global float *to, global const float *from) {
            local uint bins[16];
            const uint me = get_local_id(0);
            if (me < 16) bins[me] = 77;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (me & 1) atomic_max(bins + ((uint)(fabs(from[get_global_id(0)]) * 9.0f) & 15), me);
            barrier(CLK_LOCAL_MEM_FENCE);
            to[get_global_id(0)] -= bins[me & 15];
        }
        kernel void order(global float *to, global const float *from) {
            local uint last;
            if (get_local_id(0) == 0) last = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            const uint at = atomic_inc(&last);
            to[get_global_id(0)] = from[get_global_id(0)] + (at > 99 ? 1.0f : 0.0f);
        }";
    let program = field.program(source);
    let graph = field.bench.graph();
    for name in ["own", "most", "own", "own", "most", "order"] {
        let kernel = program.kernel(name).unwrap();
        let launch = graph.kernel(&kernel).read_write(&field.buffers[0]).read(&field.buffers[1]);
        // SAFETY: work-items write their own elements, inside the buffers.
        unsafe { launch.range(128).work_group(32).add() }.unwrap();
    }
    field.fuses(&graph, &[0, 1, 2, 3, 4]);
}

/// Rule Z2: what a fused kernel's local memory is more than that of its launches is counted, or the driver would refuse it.
#[test]
fn many_local_variables_have_room() {
    let field = Field::new();
    let device = field.bench.queue.device();
    // All but what is left for tables, in one array, and words that need a few bytes each but for where they begin.
    let (words, all) = (200, device.caps().local_memory.min(1 << 18) as usize - (20 << 10));
    let join = |of: &dyn Fn(usize) -> String, by: &str| (0..words).map(of).collect::<Vec<_>>().join(by);
    let source = format!(
        "kernel void f(global float *to, global const float *from) {{
            local float tile[{}]; {};
            const uint me = get_local_id(0);
            tile[me] = from[get_global_id(0)]; if (me == 0) {{ {}; }}
            barrier(CLK_LOCAL_MEM_FENCE);
            to[get_global_id(0)] = tile[15 - me] + {};
        }}",
        all / 4 - words,
        join(&|at| format!("local float v{at}"), "; "),
        join(&|at| format!("v{at} = from[{at}]"), "; "),
        join(&|at| format!("v{at}"), " + "),
    );
    let kernel = field.program(&source).kernel("f").unwrap();
    let graph = field.bench.graph();
    for _ in 0..3 {
        let launch = graph.kernel(&kernel).read_write(&field.buffers[0]).read(&field.buffers[1]);
        // SAFETY: work-items write their own elements, inside the buffers.
        unsafe { launch.range(64).work_group(16).add() }.unwrap();
    }
    let [plain, fused] = [Fuse::Off, Fuse::Now].map(|fuse| {
        let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
        field.start();
        executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
        field.bits()
    });
    assert_eq!(fused, plain);
}

/// Rule Z5: what changes of local memory and work-groups is followed, or ends the fused form.
#[test]
fn updates_of_kernels_that_wait_do_what_they_do_otherwise() {
    let field = Field::new();
    let program = field.program(SOURCE);
    let scan = program.kernel("scan").unwrap();
    let [a, b] = [&field.buffers[0], &field.buffers[1]];
    let graph = field.bench.graph();
    let of = |to, from, by: f32, local: usize, items: usize, group: usize| {
        let launch = graph.kernel(&scan).read_write(to).read(from).arg(by).local::<f32>(local).local::<f32>(local);
        launch.range(items).work_group(group)
    };
    let launch = |by, local, items, group| of(a, b, by, local, items, group);
    // SAFETY: of all: work-items write their own elements, inside the buffers, and have local memory for each.
    let node = unsafe { launch(0.5, 32, 64, 32).add() }.unwrap();
    // SAFETY: as above.
    unsafe { of(b, a, 0.25, 32, 96, 32).add() }.unwrap();
    let [off, now] = [Fuse::Off, Fuse::Now].map(|fuse| graph.finalize(Finalize::new().updatable().fuse(fuse)).unwrap());
    let same = |is_fused: Option<bool>| {
        let [plain, fused] = [&off, &now].map(|executable| {
            field.start();
            executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
            field.bits()
        });
        assert_eq!(fused, plain, "{}", now.report());
        let is = now.report().fusing == FusingState::Taken;
        assert!(is_fused.is_none_or(|expected| is == (expected && !field.is_pocl("7."))), "{}", now.report());
    };
    same(Some(true));
    let ends = "the size of work-groups whose work-items wait for each other";
    let cases = [
        (launch(0.75, 32, 64, 32), Some(true), ""),
        (launch(0.75, 32, 32, 32), Some(true), ""),
        (launch(0.75, 32, 192, 32), Some(true), ""),
        // A form that was lost is built again at once, the first time.
        (launch(0.5, 64, 192, 32), None, "the size of local memory"),
        (launch(0.5, 64, 192, 64), None, ends),
        (launch(0.5, 64, 60, 20), None, ends),
    ];
    for (launch, is_fused, ends) in cases {
        // SAFETY: as above.
        unsafe { launch.replace(node) }.unwrap();
        [&off, &now].iter().for_each(|executable| executable.update(&node).unwrap());
        let report = now.report();
        if report.fusing == FusingState::Outdated {
            // On Intel's runtime groups of 20 fit on no account.
            // Where it was built again already, the other launch has another size.
            let said = [ends, "which is no multiple of 16", "in work-groups of different sizes"];
            let is_said = said.iter().any(|words| report.to_string().contains(words));
            assert!(!ends.is_empty() && is_said, "{report}");
        }
        same(is_fused);
    }
}

/// Rules Z1, Z2, Z5: on PoCL a work-group does launches in turn whose loops have a number of turns that the text says, as long as no launch
/// has fewer work-items.
#[test]
fn loops_with_a_number_of_turns_are_done_by_a_work_group() {
    let field = Field::new();
    let source = "
        #define AT (get_global_id(0) - get_global_offset(0) + get_global_size(0) * (get_global_id(1) - get_global_offset(1)))
        #define TURNS 12
        kernel void counted(global float *to, global const float *from, float by) {
            float x = from[AT];
            for (int k = 0; k < TURNS; ++k) { if (x > 1.0f) x *= 0.5f; else x += by; for (uint l = 2; l > 0; l--) x += l; }
            to[AT] = x;
        }
        kernel void light(global float *to, global const float *from, float by) { to[AT] = from[AT] * by; }
        kernel void other(global float *to, global const float *from, float by) {
            float x = from[AT];
            for (int k = 0; k < (int)(by * 4.0f); ++k) x += by;
            to[AT] = x;
        }";
    let program = field.program(source);
    let is_pocl = field.bench.queue.device().caps().platform.contains("Portable");
    let graph = field.bench.graph();
    let add = |graph: &Graph, name: &str, at: usize, size: [usize; 2]| {
        let kernel = program.kernel(name).unwrap();
        let [to, from] = [(at + 1) % BUFFERS, at % BUFFERS].map(|at| &field.buffers[at]);
        let launch = graph.kernel(&kernel).read_write(to).read(from).arg(0.25_f32);
        let launch = if size[1] == 1 { launch.range(size[0]).offset(3) } else { launch.range(size).offset([3, 1]) };
        // SAFETY: work-items write their own elements, inside the buffers.
        unsafe { launch.add() }.unwrap()
    };
    // In no order that repeats they would be many kernels of a work-group, and are one of a work-item.
    let mut rng = Rng::with_seed(7);
    let mixed: Vec<&str> = (0..120).map(|_| ["counted", "light"][rng.usize(..2)]).collect();
    // In one turn and some work-items, in many, in fewer than a group has, and in rows that no group divides.
    for (names, size, is_group) in [
        (&["counted", "counted", "counted"][..], [200, 1], true),
        (&["counted", "light", "light", "light", "counted"], [64, 1], true),
        (&["counted"; 8], [17, 1], true),
        (&["counted", "light"], [13, 19], true),
        (&["counted", "counted"], [15, 1], false),
        (&["counted", "light", "light", "light", "light"], [64, 1], false),
        (&["counted", "counted", "other"], [64, 1], false),
        (&mixed, [64, 1], false),
    ] {
        let graph = field.bench.graph();
        names.iter().enumerate().for_each(|(at, name)| _ = add(&graph, name, at, size));
        let [plain, fused] = [Fuse::Off, Fuse::Now].map(|fuse| {
            let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
            field.start();
            (0..2).for_each(|_| executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap());
            let (report, form) =
                (executable.report(), if is_group || !is_pocl { FusedForm::OneGroup } else { FusedForm::OneItem });
            let forms: Vec<FusedForm> = report.fused.iter().map(|of| of.form).collect();
            assert_eq!(forms, vec![form; usize::from(fuse == Fuse::Now)], "{names:?} of {size:?}: {report}");
            field.bits()
        });
        assert_eq!(fused, plain, "{names:?} of {size:?}");
    }
    let nodes: Vec<_> = (0..3).map(|at| add(&graph, "counted", at, [64, 1])).collect();
    let [off, now] = [Fuse::Off, Fuse::Now].map(|fuse| graph.finalize(Finalize::new().updatable().fuse(fuse)).unwrap());
    for size in [64, 200, 65, 40] {
        for (at, node) in nodes.iter().enumerate() {
            let kernel = program.kernel("counted").unwrap();
            let [to, from] = [(at + 1) % BUFFERS, at % BUFFERS].map(|at| &field.buffers[at]);
            let launch = graph.kernel(&kernel).read_write(to).read(from).arg(0.25_f32).range(size).offset(3);
            // SAFETY: work-items write their own elements, inside the buffers.
            unsafe { launch.replace(*node) }.unwrap();
        }
        // All at once, because they share a size.
        [&off, &now].iter().for_each(|executable| executable.update(&nodes).unwrap());
        let [plain, fused] = [&off, &now].map(|executable| {
            if std::ptr::eq(executable, &now) {
                let report = executable.report();
                let is_lost = is_pocl && size == 40;
                assert_eq!(report.fusing == FusingState::Taken, !is_lost, "{size}: {report}");
                assert_eq!(is_lost, report.to_string().contains(FEWER), "{size}: {report}");
            }
            field.start();
            executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
            field.bits()
        });
        assert_eq!(fused, plain, "{size}");
    }
}

/// The same for fills and copies, whose words are work-items.
#[test]
fn fills_and_copies_among_loops_stay_in_their_bytes() {
    let field = Field::new();
    let source = "kernel void counted(global float *to, global const float *from) {
            float x = from[get_global_id(0)];
            for (int k = 0; k < 12; ++k) x = x * 0.5f + k;
            to[get_global_id(0)] = x;
        }";
    let counted = field.program(source).kernel("counted").unwrap();
    let is_pocl = field.bench.queue.device().caps().platform.contains("Portable");
    let graph = field.bench.graph();
    let add = |to: usize, from: usize| {
        let launch = graph.kernel(&counted).read_write(&field.buffers[to]).read(&field.buffers[from]).range(100);
        // SAFETY: work-items write their own elements, inside the buffers.
        unsafe { launch.add() }.unwrap()
    };
    let fill = graph.fill(&field.buffers[0].slice(8..108).unwrap(), 3.5).add().unwrap();
    add(1, 0);
    let copy =
        graph.copy(&field.buffers[1].slice(20..120).unwrap(), &field.buffers[2].slice(50..150).unwrap()).add().unwrap();
    add(3, 2);
    add(0, 3);
    let [off, now] = [Fuse::Off, Fuse::Now].map(|fuse| graph.finalize(Finalize::new().updatable().fuse(fuse)).unwrap());
    for words in [100, 120, 64, 40, 4, 1] {
        graph.fill(&field.buffers[0].slice(8..8 + words).unwrap(), 2.5).replace(fill).unwrap();
        let [from, to] =
            [field.buffers[1].slice(20..20 + words).unwrap(), field.buffers[2].slice(50..50 + words).unwrap()];
        graph.copy(&from, &to).replace(copy).unwrap();
        [&off, &now].iter().for_each(|executable| executable.update(&[fill, copy]).unwrap());
        let report = now.report();
        if is_pocl && words == 40 {
            assert!(report.fusing != FusingState::Taken && report.to_string().contains(FEWER), "{report}");
        } else if words > 40 {
            assert_eq!((report.fusing, report.fused[0].nodes.len()), (FusingState::Taken, 5), "{words}: {report}");
        }
        let [plain, fused] = [&off, &now].map(|executable| {
            field.start();
            executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
            field.bits()
        });
        assert_eq!(fused, plain, "{words}: {report}");
    }
}

/// Rule Z1: on PoCL the first work-item decides for all of a group whether they do what follows the last barrier of a kernel, if that barrier
/// is under a condition, and another condition is inside. Launches still have no work-items beyond their range.
#[test]
fn the_last_launch_has_its_own_work_items_alone() {
    let field = Field::new();
    let source = "
        kernel void counted(global float *to, global const float *from, float by) {
            float x = from[get_global_id(0)];
            for (int k = 0; k < 12; ++k) x = x * 0.5f + by;
            to[get_global_id(0)] = x;
        }
        kernel void stores(global float *to, global const float *from, float by) {
            float x = from[get_global_id(0)];
            for (int k = 0; k < 12; ++k) x = x * 0.5f + by;
            if (from[get_global_id(0)] > 1.0f) to[get_global_id(0)] = x;
        }
        kernel void returns(global float *to, global const float *from, float by) {
            const size_t i = get_global_id(0);
            if ((i & 3) == 1) return;
            if (from[i] > 2.0f) to[i] += by;
        }
        kernel void either(global float *to, global const float *from, float by) {
            const size_t i = get_global_id(0);
            float x = from[i];
            for (int k = 0; k < 12; ++k) x -= by;
            if (x < 0.0f) to[i] = x; else if ((i & 1) == 0) to[i] *= 2.0f;
        }";
    let program = field.program(source);
    for names in ["stores", "returns", "either"].map(|last| ["counted", "counted", last]) {
        for size in [64, 65, 100, 127, 128, 200] {
            let graph = field.bench.graph();
            for (at, name) in names.iter().enumerate() {
                let kernel = program.kernel(name).unwrap();
                let launch = graph.kernel(&kernel).read_write(&field.buffers[at + 1]).read(&field.buffers[at]);
                // SAFETY: work-items write their own elements, inside the buffers.
                unsafe { launch.arg(0.25_f32).range(size).add() }.unwrap();
            }
            let [plain, fused] = [Fuse::Off, Fuse::Now].map(|fuse| {
                let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
                let report = executable.report();
                let forms: Vec<FusedForm> = report.fused.iter().map(|of| of.form).collect();
                assert_eq!(forms, vec![FusedForm::OneGroup; usize::from(fuse == Fuse::Now)], "{report}");
                field.start();
                executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
                field.bits()
            });
            assert_eq!(fused, plain, "{names:?} of {size}");
        }
    }
}

/// Rule Z1: a local variable may have the name of a function that two programs have.
#[test]
fn a_local_variable_named_like_a_function_of_two_programs_is_fused() {
    let field = Field::new();
    let source = |kernels: &str, by: u32| {
        let sync = "barrier(CLK_LOCAL_MEM_FENCE);";
        let kernels = kernels.replace("SYNC", sync);
        format!("uint tile(uint a) {{ return a * {by}; }}\n{kernels}")
    };
    let one = "
        kernel void has_tile(global uint *x) {
            local uint tile[16];
            tile[get_local_id(0)] = x[get_global_id(0)];
            SYNC
            x[get_global_id(0)] = tile[15 - get_local_id(0)];
        }
        kernel void calls_tile(global uint *x) {
            local uint other[16];
            other[get_local_id(0)] = x[get_global_id(0)];
            SYNC
            x[get_global_id(0)] = tile(other[15 - get_local_id(0)]);
        }";
    let other = "
        kernel void calls_tile(global uint *x) {
            local uint own[16];
            own[get_local_id(0)] = tile(x[get_global_id(0)]);
            SYNC
            x[get_global_id(0)] = own[get_local_id(0) / 2];
        }";
    let programs = [field.program(&source(one, 3)), field.program(&source(other, 7))];
    let memory = field.bench.buffer(&[0; 64]);
    let graph = field.bench.graph();
    for (program, name) in [(0, "has_tile"), (1, "calls_tile"), (0, "calls_tile"), (0, "has_tile")] {
        let kernel = programs[program].kernel(name).unwrap();
        // SAFETY: each work-item writes its own element.
        unsafe { graph.kernel(&kernel).read_write(&memory).range(64).work_group(16).add() }.unwrap();
    }
    let data: Vec<u32> = (1..65).collect();
    field.is_the_same_fused(&graph, (&memory, &data), if field.has_groups() { &[4] } else { &[] });
}

/// Rule Z7: PoCL's compiler takes long for many barriers in a kernel, so few calls of such kernels are in one.
#[test]
fn kernels_with_many_barriers_are_few_in_a_kernel() {
    let field = Field::new();
    let kernel = |number: usize| {
        format!(
            "kernel void k{number}(global uint *x, local uint *t, uint n) {{
                const uint me = get_local_id(0);
                uint v = x[get_global_id(0)] + {number};
                for (uint k = 0; k < n; ++k) {{ STEP STEP }}
                x[get_global_id(0)] = v;
            }}\n"
        )
    };
    let step = "t[me] = v; barrier(CLK_LOCAL_MEM_FENCE); v += t[(me + 5) % 16]; barrier(CLK_LOCAL_MEM_FENCE);";
    let source: String = (0..4).map(kernel).collect();
    let program = field.program(&format!("#define STEP {step}\n{source}"));
    let memory = field.bench.buffer(&[0; 64]);
    let graph = field.bench.graph();
    for number in 0..8 {
        let kernel = program.kernel(&format!("k{}", [0, 1, 2, 3, 1, 0, 3, 2][number])).unwrap();
        let launch = graph.kernel(&kernel).read_write(&memory).local::<u32>(16).arg(number as u32 % 3);
        // SAFETY: each work-item touches its own element.
        unsafe { launch.range(64).work_group(16).add() }.unwrap();
    }
    // On PoCL 16 at most, and there are four in each.
    let expected: &[usize] = match field.mixes() {
        true => &[8],
        false if field.is_pocl("7.") => &[],
        false => &[4, 4],
    };
    let data: Vec<u32> = (0..64).collect();
    field.is_the_same_fused(&graph, (&memory, &data), expected);
}

/// Rule Z1: a work-item of a large group can have few registers on a GPU.
#[test]
fn kernels_of_many_values_are_fused_in_large_work_groups() {
    let field = Field::new();
    let source = "
        #define VALUES 96
        uint mixed(global const uint *from, size_t i, uint by) {
            uint v[VALUES], all = by;
            for (uint k = 0; k < VALUES; ++k) v[k] = from[(i + k * 7) % 1024] * by + k;
            for (uint turn = 0; turn < 3; ++turn)
                for (uint k = 0; k < VALUES; ++k) v[k] = rotate(v[k], v[(k + 5) % VALUES] & 15u) + v[(k + 31) % VALUES];
            for (uint k = 0; k < VALUES; ++k) all ^= v[k] * (k + 1u);
            return all;
        }
        kernel void many(global uint *to, global const uint *from, uint by) { to[get_global_id(0)] = mixed(from, get_global_id(0), by); }
        #define WAITS(name, group) \
            kernel __attribute__((reqd_work_group_size(group, 1, 1))) void name(global uint *to, global const uint *from, uint by) { \
                local uint tile[group]; \
                const uint me = get_local_id(0); \
                tile[me] = mixed(from, get_global_id(0), by); \
                barrier(CLK_LOCAL_MEM_FENCE); \
                to[get_global_id(0)] = tile[get_local_size(0) - 1 - me]; \
            }
        WAITS(waits_512, 512)
        WAITS(waits_320, 320)";
    let program = field.program(source);
    let buffers: Vec<Buffer<u32>> = (0..2).map(|_| Buffer::new(&field.bench.queue, 1024).unwrap()).collect();
    let data: Vec<u32> = (0..1024_u32).map(|i| i.wrapping_mul(2_654_435_769)).collect();
    for (name, size, group) in [
        ("many", 300, None),
        ("many", 512, None),
        ("many", 1024, None),
        ("waits_512", 1024, Some(512)),
        ("waits_320", 960, Some(320)),
    ] {
        let kernel = program.kernel(name).unwrap();
        let graph = field.bench.graph();
        for at in 0..4 {
            let launch =
                graph.kernel(&kernel).read_write(&buffers[(at + 1) % 2]).read(&buffers[at % 2]).arg(3 + at as u32);
            let launch = launch.range(size);
            let launch = match group {
                Some(group) => launch.work_group(group),
                None => launch,
            };
            // SAFETY: work-items write their own elements, inside the buffers.
            unsafe { launch.add() }.unwrap();
        }
        let [plain, fused] = [Fuse::Off, Fuse::Now].map(|fuse| {
            let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
            if fuse == Fuse::Now && (name == "many" || !field.is_pocl("")) {
                let report = executable.report();
                let fused: Vec<usize> = report.fused.iter().map(|of| of.nodes.len()).collect();
                assert_eq!(fused, [4], "{report}");
            }
            buffers
                .iter()
                .for_each(|buffer| field.bench.queue.enqueue_write_buffer(buffer, 0, &data, &[]).map(drop).unwrap());
            executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
            [0, 1].map(|at| field.bench.content(&buffers[at]))
        });
        assert_eq!(fused, plain, "{name} of {size}");
    }
}

/// Rule Z1
#[test]
fn random_kernels_that_wait_do_the_same_when_they_are_fused() {
    let seed = std::env::var("CLGRAPH_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CLGRAPH_TEST_SEED={seed}");
    let (field, mut rng) = (Field::new(), Rng::with_seed(seed));
    // PoCL 3.1 takes 5 s for one.
    let few = if field.is_pocl("3.") { 2 } else { 4 };
    let count = std::env::var("CLGRAPH_TEST_RANDOM").map_or(few, |count| count.parse().unwrap());
    let (mut launches, mut fused, mut fitting) = (0, 0, false);
    let is_intel = field.bench.queue.device().caps().platform.contains("Intel");
    // There kernels that call functions which ask for ids are not fused.
    let is_rusticl = field.bench.queue.device().caps().platform == "rusticl";
    for _ in 0..count {
        let (mut sources, mut shapes, mut kernels) = (String::new(), Vec::new(), Vec::new());
        for _ in 0..rng.usize(1..3) {
            let mut source = SOURCE.to_owned();
            let mut its: Vec<Shape> = ["plain", "sum", "flip", "scan"]
                .map(|name| Shape { name: name.to_owned(), has_arrays: name == "scan" })
                .into();
            its.extend((0..KERNELS).map(|number| kernel(&mut rng, &mut source, number, !is_rusticl)));
            let program = field.program(&source);
            kernels.extend(its.iter().map(|shape| program.kernel(&shape.name).unwrap()));
            shapes.extend(its);
            sources += &source;
        }
        let all: [[usize; 2]; 8] = [[64, 1], [8, 8], [8, 4], [32, 1], [4, 8], [2, 2], [20, 1], [4, 4]];
        let mut list: Vec<Launch> = Vec::new();
        for _ in 0..rng.usize(2..5) {
            let group = all[rng.usize(..all.len())];
            fitting |= !is_intel || (group[0] * group[1]).is_multiple_of(16);
            let fits = |launch: &Launch| shapes[launch.kernel].name != "flip" || group.iter().all(|size| *size <= 8);
            let few = (0..rng.usize(2..9)).map(|_| Launch::new(&mut rng, &shapes, group));
            let few: Vec<Launch> = few.filter(fits).collect();
            list.extend((0..rng.usize(1..6)).flat_map(|_| few.clone()));
        }
        let path = [Path::Auto, Path::Native, Path::Replay, Path::Queues][rng.usize(..4)];
        let compare = |list: &[Launch]| field.differences(list, path, (&kernels, &shapes));
        let (mut differing, report) = compare(&list);
        launches += list.len();
        fused += report.fused.iter().map(|of| of.nodes.len()).sum::<usize>();
        if !differing.is_empty() {
            // As few launches as show it.
            let mut at = 0;
            while at < list.len() {
                let mut fewer = list.clone();
                fewer.remove(at);
                let (now, _) = compare(&fewer);
                if now.is_empty() { at += 1 } else { (list, differing) = (fewer, now) }
            }
            panic!("{sources}\n{list:#?}\n{differing:#?}");
        }
    }
    if field.has_groups() {
        // On Intel's runtime some sizes of work-groups are not.
        let least = if is_intel || field.is_pocl("3.") { usize::from(fitting) } else { launches * 9 / 10 };
        assert!(fused >= least, "only {fused} of {launches} launches were fused");
    }
}
