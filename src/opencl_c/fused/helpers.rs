//! Functions that kernels call and that ask for ids. They are written again with the ids as parameters, as the kernels are; while bodies
//! are written, a macro stands for each name:
//!
//! ```text
//! float clgraph_fuse_of_at(global float *a, const clgraph_fuse_id clgraph_fuse_x, ..);
//! #define at(...) clgraph_fuse_of_at(__VA_ARGS__, clgraph_fuse_x, ..)
//! float clgraph_fuse_of_at(global float *a, const clgraph_fuse_id clgraph_fuse_x, ..) { return a[get_global_id(0)]; }
//! ```

use std::fmt::Write;

use super::super::source::Helpers;
use super::{Callee, RANGE, RANGE_NAMES, Unit, listed};

/// The ids of a work-item, in the parameters of functions.
pub(super) const ITEM: &str =
    "const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z";
const ITEM_NAMES: &str = "clgraph_fuse_x, clgraph_fuse_y, clgraph_fuse_z";

/// Writes the functions that some kernels need. Returns the names of the macros that stand for them.
pub(super) fn write_helpers<'a>(
    all: &mut String,
    (number, unit): (usize, &Unit<'a>),
    kernels: impl Iterator<Item = &'a str>,
) -> Vec<&'a str> {
    let Unit { text, source, .. } = *unit;
    let own_name = |name: &str| Callee { unit: number, kernel: name.to_owned() };
    let of = |name| source.item_with_helpers(name).map(|(_, helpers)| helpers).unwrap_or_default();
    let helpers: Helpers<'a> = kernels.flat_map(of).collect();
    let begin = |name: &str| {
        let helper = &helpers[name];
        format!("{} clgraph_fuse_of_{}({}{ITEM}, {RANGE})", helper.type_text, own_name(name), listed(&helper.params))
    };
    // Writing to a string never fails.
    for name in helpers.keys() {
        let _ = writeln!(all, "{};", begin(name));
    }
    for (name, helper) in &helpers {
        let (params, args) = if helper.params.is_empty() { ("", "") } else { ("...", "__VA_ARGS__, ") };
        let own_name = own_name(name);
        let _ = writeln!(
            all,
            "#undef {name}\n#define {name}({params}) clgraph_fuse_of_{own_name}({args}{ITEM_NAMES}, {RANGE_NAMES})"
        );
    }
    for (name, helper) in &helpers {
        let _ = writeln!(all, "{} {}", begin(name), &text[helper.body.clone()]);
    }
    helpers.into_keys().collect()
}
