//! Fused kernels: kernels that do what several launches do, one after the other.
//!
//! The body of each kernel is written again as a function of one work-item, whose ids are parameters. In it, the functions that
//! tell ids are macros. A second function runs it for all work-items of a launch, and a fused kernel calls that function once for
//! each launch:
//!
//! ```text
//! void clgraph_fuse_item_scale(global float *a, float by, const uint clgraph_fuse_x, ..) { size_t i = get_global_id(0); a[i] *= by; }
//! void clgraph_fuse_run_scale(global float *a, float by, const uint clgraph_fuse_dims, ..) { for (..) clgraph_fuse_item_scale(a, by, x, ..); }
//! kernel void clgraph_fused_0(global void *clgraph_fuse_a0, float clgraph_fuse_a1, uint clgraph_fuse_a2) {
//!     clgraph_fuse_run_scale(clgraph_fuse_a0, clgraph_fuse_a1, 1, ..);
//!     clgraph_fuse_run_scale(clgraph_fuse_a0, clgraph_fuse_a1, 1, ..);
//! }
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use super::source::{KernelText, Source};

/// How a fused kernel runs the work-items of its launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    /// One work-item runs all of them, in order.
    OneItem,
    /// The work-items of one work-group share them, and wait for each other after each launch.
    OneGroup,
}

/// What the driver makes of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) form: Form,
    /// What the driver's functions return for the sizes of a fourth dimension. OpenCL says 1.
    pub(crate) size_beyond: u32,
    /// Whether its compiler vectorizes loops over work-items rightly.
    pub(crate) vectorizes: bool,
}

/// A parameter of a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FusedParam {
    /// Global memory.
    Memory,
    /// A value of this type.
    Value(String),
    /// A size of a range.
    Size,
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FusedArg {
    /// The parameter of the fused kernel with this number.
    Param(usize),
    /// A size that is written as it is.
    Number(u32),
}

/// A launch in a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FusedLaunch {
    pub(crate) kernel: String,
    pub(crate) args: Vec<FusedArg>,
    pub(crate) dims: u32,
    /// Offset, global size and local size, each in three dimensions.
    pub(crate) range: [[FusedArg; 3]; 3],
}

/// A fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FusedKernel {
    pub(crate) params: Vec<FusedParam>,
    pub(crate) launches: Vec<FusedLaunch>,
}

/// Returns the name of a fused kernel of a source.
pub(crate) fn name(number: usize) -> String {
    format!("clgraph_fused_{number}")
}

/// Comes before the source, so that no macro of it changes anything here.
const OWN: &str = "\
size_t clgraph_fuse_pick(uint clgraph_fuse_d, size_t clgraph_fuse_0, size_t clgraph_fuse_1, size_t clgraph_fuse_2, size_t clgraph_fuse_3) {
    return clgraph_fuse_d == 0 ? clgraph_fuse_0 : clgraph_fuse_d == 1 ? clgraph_fuse_1 : clgraph_fuse_d == 2 ? clgraph_fuse_2 : clgraph_fuse_3;
}
";

/// The range of a launch, in the parameters of its functions.
pub(super) const RANGE: &str = "const uint clgraph_fuse_dims, \
    const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, \
    const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, \
    const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2";
pub(super) const RANGE_NAMES: &str = "clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, \
    clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2";

/// What the functions for ids are while the bodies are written again (OpenCL C 3.0, section 6.15.1).
const IDS: [(&str, &str); 11] = [
    ("get_work_dim()", "clgraph_fuse_dims"),
    ("get_global_id(d)", "clgraph_fuse_pick(d, clgraph_fuse_x, clgraph_fuse_y, clgraph_fuse_z, 0)"),
    (
        "get_global_size(d)",
        "clgraph_fuse_pick(d, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_beyond)",
    ),
    ("get_global_offset(d)", "clgraph_fuse_pick(d, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, 0)"),
    (
        "get_global_linear_id()",
        "((size_t)(((clgraph_fuse_z - clgraph_fuse_o2) * clgraph_fuse_n1 + clgraph_fuse_y - clgraph_fuse_o1) * clgraph_fuse_n0 \
         + clgraph_fuse_x - clgraph_fuse_o0))",
    ),
    (
        "get_local_id(d)",
        "clgraph_fuse_pick(d, (clgraph_fuse_x - clgraph_fuse_o0) % clgraph_fuse_l0, \
         (clgraph_fuse_y - clgraph_fuse_o1) % clgraph_fuse_l1, (clgraph_fuse_z - clgraph_fuse_o2) % clgraph_fuse_l2, 0)",
    ),
    (
        "get_local_size(d)",
        "clgraph_fuse_pick(d, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2, clgraph_fuse_beyond)",
    ),
    (
        "get_enqueued_local_size(d)",
        "clgraph_fuse_pick(d, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2, clgraph_fuse_beyond)",
    ),
    (
        "get_local_linear_id()",
        "((size_t)((((clgraph_fuse_z - clgraph_fuse_o2) % clgraph_fuse_l2) * clgraph_fuse_l1 \
         + (clgraph_fuse_y - clgraph_fuse_o1) % clgraph_fuse_l1) * clgraph_fuse_l0 \
         + (clgraph_fuse_x - clgraph_fuse_o0) % clgraph_fuse_l0))",
    ),
    (
        "get_group_id(d)",
        "clgraph_fuse_pick(d, (clgraph_fuse_x - clgraph_fuse_o0) / clgraph_fuse_l0, \
         (clgraph_fuse_y - clgraph_fuse_o1) / clgraph_fuse_l1, (clgraph_fuse_z - clgraph_fuse_o2) / clgraph_fuse_l2, 0)",
    ),
    (
        "get_num_groups(d)",
        "clgraph_fuse_pick(d, clgraph_fuse_n0 / clgraph_fuse_l0, clgraph_fuse_n1 / clgraph_fuse_l1, \
         clgraph_fuse_n2 / clgraph_fuse_l2, clgraph_fuse_beyond)",
    ),
];

/// Returns a source that has all of `text` and these fused kernels, whose launches are of kernels that the source can give as
/// functions of one work-item ([`Source::item`]).
pub(crate) fn fused(text: &str, source: &Source, dialect: Dialect, kernels: &[FusedKernel]) -> String {
    let Dialect { size_beyond, .. } = dialect;
    // By kernel: whether a launch has one dimension, and whether one has more.
    let mut used: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
    for launch in kernels.iter().flat_map(|kernel| &kernel.launches) {
        used.entry(&launch.kernel).or_default()[usize::from(launch.dims > 1)] = true;
    }
    let used = used.into_iter().filter_map(|(name, dims)| Some((name, source.item(name).ok()?, dims)));
    let used: Vec<(&str, &KernelText, [bool; 2])> = used.collect();
    let mut all = format!("{OWN}#line 1\n{text}\n");
    // Writing to a string never fails.
    let _ = writeln!(all, "#define clgraph_fuse_beyond {size_beyond}");
    for (function, meaning) in IDS {
        let _ = writeln!(all, "#define {function} {meaning}");
    }
    for (name, kernel, _) in &used {
        let (params, body) = (listed(&kernel.params), &text[kernel.body.clone()]);
        let ids = "const uint clgraph_fuse_x, const uint clgraph_fuse_y, const uint clgraph_fuse_z";
        let _ = writeln!(all, "void clgraph_fuse_item_{name}({params}{ids}, {RANGE}) {body}");
    }
    for (function, _) in IDS {
        let end = function.find('(').unwrap_or(function.len());
        let _ = writeln!(all, "#undef {}", &function[..end]);
    }
    for (name, kernel, dims) in &used {
        for (number, _) in dims.iter().enumerate().filter(|(_, is_used)| **is_used) {
            run(&mut all, name, kernel, dialect, number == 0);
        }
    }
    for (number, kernel) in kernels.iter().enumerate() {
        write_kernel(&mut all, number, kernel, dialect.form);
    }
    all
}

/// Returns a list with a comma behind it, if it has something.
fn listed(list: &str) -> String {
    if list.is_empty() { String::new() } else { format!("{list}, ") }
}

/// Writes the function that runs all work-items of a launch.
fn run(all: &mut String, name: &str, kernel: &KernelText, dialect: Dialect, is_line: bool) {
    let (params, names) = (listed(&kernel.params), listed(&kernel.names.join(", ")));
    let dims = if is_line { "1" } else { "3" };
    // Without `noinline` compilers take minutes for hundreds of launches.
    let _ = writeln!(all, "__attribute__((noinline)) void clgraph_fuse_run{dims}_{name}({params}{RANGE}) {{");
    let body = match (dialect.form, is_line) {
        (Form::OneItem, true) => {
            "for (uint clgraph_fuse_x = clgraph_fuse_o0; clgraph_fuse_x < clgraph_fuse_o0 + clgraph_fuse_n0; ++clgraph_fuse_x)\n        \
             CALL(clgraph_fuse_x, 0, 0)"
        }
        (Form::OneItem, false) => {
            "for (uint clgraph_fuse_z = clgraph_fuse_o2; clgraph_fuse_z < clgraph_fuse_o2 + clgraph_fuse_n2; ++clgraph_fuse_z)\n    \
             for (uint clgraph_fuse_y = clgraph_fuse_o1; clgraph_fuse_y < clgraph_fuse_o1 + clgraph_fuse_n1; ++clgraph_fuse_y)\n    \
             for (uint clgraph_fuse_x = clgraph_fuse_o0; clgraph_fuse_x < clgraph_fuse_o0 + clgraph_fuse_n0; ++clgraph_fuse_x)\n        \
             CALL(clgraph_fuse_x, clgraph_fuse_y, clgraph_fuse_z)"
        }
        (Form::OneGroup, true) => {
            "for (uint clgraph_fuse_v = (uint)get_local_id(0); clgraph_fuse_v < clgraph_fuse_n0; \
             clgraph_fuse_v += (uint)get_local_size(0))\n        CALL(clgraph_fuse_o0 + clgraph_fuse_v, 0, 0)"
        }
        (Form::OneGroup, false) => {
            "for (uint clgraph_fuse_v = (uint)get_local_id(0); \
             clgraph_fuse_v < clgraph_fuse_n0 * clgraph_fuse_n1 * clgraph_fuse_n2; \
             clgraph_fuse_v += (uint)get_local_size(0))\n        \
             CALL(clgraph_fuse_o0 + clgraph_fuse_v % clgraph_fuse_n0, \
             clgraph_fuse_o1 + clgraph_fuse_v / clgraph_fuse_n0 % clgraph_fuse_n1, \
             clgraph_fuse_o2 + clgraph_fuse_v / (clgraph_fuse_n0 * clgraph_fuse_n1))"
        }
    };
    let (before, ids) = body.split_once("CALL(").unwrap_or((body, ")"));
    let ids = ids.strip_suffix(')').unwrap_or(ids);
    // The innermost loop is the last.
    let before = match before.rsplit_once("for (") {
        Some((outer, inner)) if !dialect.vectorizes && dialect.form == Form::OneItem => {
            format!("{outer}\n#pragma clang loop vectorize(disable) interleave(disable)\n    for ({inner}")
        }
        _ => before.to_owned(),
    };
    let _ = writeln!(all, "    {before}clgraph_fuse_item_{name}({names}{ids}, {RANGE_NAMES});\n}}");
}

/// Writes a fused kernel.
fn write_kernel(all: &mut String, number: usize, kernel: &FusedKernel, form: Form) {
    let param = |(at, param): (usize, &FusedParam)| match param {
        FusedParam::Memory => format!("global void *clgraph_fuse_a{at}"),
        FusedParam::Value(type_text) => format!("{type_text} clgraph_fuse_a{at}"),
        FusedParam::Size => format!("const uint clgraph_fuse_a{at}"),
    };
    let mut params: Vec<String> = kernel.params.iter().enumerate().map(param).collect();
    params.push("const uint clgraph_fuse_go".to_owned());
    let size = if form == Form::OneItem { "__attribute__((reqd_work_group_size(1, 1, 1))) " } else { "" };
    let _ = writeln!(all, "kernel {size}void {}({}) {{", name(number), params.join(", "));
    // For a first launch that has nothing to do: drivers compile a kernel when it is first enqueued.
    all.push_str("    if (clgraph_fuse_go == 0) return;\n");
    let arg = |arg: &FusedArg| match arg {
        FusedArg::Param(at) => format!("clgraph_fuse_a{at}"),
        FusedArg::Number(number) => number.to_string(),
    };
    for (at, launch) in kernel.launches.iter().enumerate() {
        if at > 0 && form == Form::OneGroup {
            all.push_str("    barrier(CLK_GLOBAL_MEM_FENCE);\n");
        }
        let dims = if launch.dims > 1 { "3" } else { "1" };
        let dims_now = [FusedArg::Number(launch.dims)];
        let args = launch.args.iter().chain(&dims_now).chain(launch.range.iter().flatten());
        let args: Vec<String> = args.map(arg).collect();
        let _ = writeln!(all, "    clgraph_fuse_run{dims}_{}({});", launch.kernel, args.join(", "));
    }
    all.push_str("}\n");
}
