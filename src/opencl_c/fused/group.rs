//! Kernels whose work-items wait for each other, or share local memory, in a fused kernel.
//!
//! A work-group of the fused kernel has as many work-items as one of the launch. It does the work-groups of the launch one after the
//! other. The kernel's local variables are the fused kernel's, and parameters of the functions:
//!
//! ```text
//! #pragma push_macro("tile")
//! #undef tile
//! #define tile (*(clgraph_fuse_local_tile + 0))
//! void clgraph_fuse_item_sum(global float *a, local float (*clgraph_fuse_local_tile)[64], const clgraph_fuse_id clgraph_fuse_x, ..) { .. }
//! #pragma pop_macro("tile")
//! void clgraph_fuse_run1_sum(global float *a, local float (*clgraph_fuse_local_tile)[64], const uint clgraph_fuse_dims, ..) {
//!     uint clgraph_fuse_g = 0;
//!     do {
//!         clgraph_fuse_item_sum(a, clgraph_fuse_local_tile, ..);
//!         barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
//!     } while (++clgraph_fuse_g < ..);
//! }
//! typedef float clgraph_fuse_type3_sum_tile[64];
//! kernel void clgraph_fused_0(global void *clgraph_fuse_a0, ..) {
//!     local clgraph_fuse_type3_sum_tile clgraph_fuse_local3_sum_tile;
//!     clgraph_fuse_run1_sum(clgraph_fuse_a0, &clgraph_fuse_local3_sum_tile, 1, ..);
//! }
//! ```

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use super::super::source::LocalText;
use super::{Callee, Dialect, Form, Function, RANGE_NAMES};

/// Returns the body of a kernel, in which nothing declares a local variable. `at` is where it is in the source.
pub(super) fn body<'a>(text: &'a str, at: usize, locals: &[LocalText]) -> Cow<'a, str> {
    let mut body = Cow::Borrowed(text);
    let mut places: Vec<Range<usize>> = locals.iter().map(|local| local.at.start - at..local.at.end - at).collect();
    places.dedup();
    // From the last one, so that the others stay where they are.
    for place in places.into_iter().rev() {
        let lines = text[place.clone()].matches('\n').collect::<String>();
        body.to_mut().replace_range(place, &lines);
    }
    body
}

/// Returns the parameters for local variables, each with a comma behind it: pointers to them.
pub(super) fn params(locals: &[LocalText]) -> String {
    let param = |LocalText { type_text, name, dims, .. }: &LocalText| {
        format!("local {type_text} (*clgraph_fuse_local_{name}){dims}, ")
    };
    locals.iter().map(param).collect()
}

/// Returns the names of these parameters, each with a comma behind it.
pub(super) fn names(locals: &[LocalText]) -> String {
    locals.iter().map(|local| format!("clgraph_fuse_local_{}, ", local.name)).collect()
}

/// Writes that the names of local variables mean what the parameters point to, or that they do so no more. The sum keeps an inner
/// declaration of the name from being one of a pointer. Another program's function of the name may have made it a macro before.
pub(super) fn write_macros(all: &mut String, locals: &[LocalText], begins: bool) {
    for LocalText { name, .. } in locals {
        // Writing to a string never fails.
        let _ = match begins {
            true => writeln!(
                all,
                "#pragma push_macro(\"{name}\")\n#undef {name}\n#define {name} (*(clgraph_fuse_local_{name} + 0))"
            ),
            false => writeln!(all, "#pragma pop_macro(\"{name}\")"),
        };
    }
}

/// Returns how the name of a local variable ends in a fused kernel. The length keeps `f` with `g_n` apart from `f_g` with `n`.
fn own_name(callee: &Callee, local: &LocalText) -> String {
    let of = callee.to_string();
    format!("{}_{of}_{}", of.len(), local.name)
}

/// Writes the types of the local variables of a kernel, in the words of its program.
pub(super) fn write_types(all: &mut String, callee: &Callee, locals: &[LocalText]) {
    for local in locals {
        let (type_text, dims) = (&local.type_text, &local.dims);
        let _ = writeln!(all, "typedef {type_text} clgraph_fuse_type{}{dims};", own_name(callee, local));
    }
}

/// What the address of each local variable of a fused kernel is a multiple of.
pub(crate) const LOCAL_ALIGNMENT: usize = 128;

/// Declares the local variables of a kernel in a fused kernel. They begin where they would in a kernel of their own.
pub(super) fn declare(all: &mut String, callee: &Callee, locals: &[LocalText]) {
    for name in locals.iter().map(|local| own_name(callee, local)) {
        let _ = writeln!(
            all,
            "    local clgraph_fuse_type{name} clgraph_fuse_local{name} __attribute__((aligned({LOCAL_ALIGNMENT})));"
        );
    }
}

/// Returns the arguments that are the local variables of a kernel.
pub(super) fn args<'a>(callee: &'a Callee, locals: &'a [LocalText]) -> impl Iterator<Item = String> + 'a {
    locals.iter().map(move |local| format!("&clgraph_fuse_local{}", own_name(callee, local)))
}

/// Writes the body of the function that runs all work-groups of a launch. `names` are the arguments of its work-items.
pub(super) fn write_run(all: &mut String, callee: &Callee, names: &str, is_line: bool) {
    // Written as a number, it decides what is computed for ids.
    let range = if is_line { RANGE_NAMES.replacen("clgraph_fuse_dims", "1", 1) } else { RANGE_NAMES.to_owned() };
    let (groups, ids) = if is_line {
        (
            "clgraph_fuse_n0 / clgraph_fuse_l0",
            "(clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_g * (clgraph_fuse_id)clgraph_fuse_l0 \
             + (clgraph_fuse_id)clgraph_fuse_v, 0, 0",
        )
    } else {
        (
            "clgraph_fuse_w * clgraph_fuse_h * (clgraph_fuse_n2 / clgraph_fuse_l2)",
            "clgraph_fuse_o0 + clgraph_fuse_g % clgraph_fuse_w * clgraph_fuse_l0 + clgraph_fuse_v % clgraph_fuse_l0, \
             clgraph_fuse_o1 + clgraph_fuse_g / clgraph_fuse_w % clgraph_fuse_h * clgraph_fuse_l1 \
             + clgraph_fuse_v / clgraph_fuse_l0 % clgraph_fuse_l1, \
             clgraph_fuse_o2 + clgraph_fuse_g / (clgraph_fuse_w * clgraph_fuse_h) * clgraph_fuse_l2 \
             + clgraph_fuse_v / (clgraph_fuse_l0 * clgraph_fuse_l1)",
        )
    };
    all.push_str("    const uint clgraph_fuse_v = (uint)get_local_id(0);\n");
    if !is_line {
        all.push_str("    const uint clgraph_fuse_w = clgraph_fuse_n0 / clgraph_fuse_l0;\n");
        all.push_str("    const uint clgraph_fuse_h = clgraph_fuse_n1 / clgraph_fuse_l1;\n");
    }
    // A launch has a work-group at least. For a loop that may have no turn rusticl's code takes twice as long, and PoCL's compiler copies what
    // follows (`Dialect::copies_behind_loops`).
    let _ = writeln!(
        all,
        "    uint clgraph_fuse_g = 0;
    do {{
        clgraph_fuse_item_{callee}({names}{ids}, {range});
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }} while (++clgraph_fuse_g < {groups});
}}"
    );
}

/// After each launch but the last one, where a work-group runs them; on PoCL after that one too.
pub(super) const BARRIER: &str = "    barrier(CLK_GLOBAL_MEM_FENCE);\n";

/// Returns what comes after a launch. Work-items that wait for each other have done so, also where the function has a barrier at its end
/// (`run::write_whole`), and in parts each has elements of its own.
pub(super) fn after(function: Option<&Function<'_>>, dialect: Dialect) -> &'static str {
    let has_waited = dialect.copies_behind_loops || function.is_some_and(|function| function.is_group);
    if dialect.form == Form::OneGroup && dialect.part.is_none() && !has_waited { BARRIER } else { "" }
}
