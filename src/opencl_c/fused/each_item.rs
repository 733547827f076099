//! Fused kernels in which each work-item does its part of all launches, one after the other, and waits for no other.
//!
//! The range is that of the launches, so the functions that tell ids are the driver's. Everything is inlined: compilers see one kernel
//! without loops or barriers, and make of its work-items what they make of those of any kernel:
//!
//! ```text
//! __attribute__((always_inline)) void clgraph_fuse_item_scale(global float *a, float by) { a[get_global_id(0)] *= by; }
//! kernel void clgraph_fused_0(global void *clgraph_fuse_a0, float clgraph_fuse_a1, float clgraph_fuse_a2, ..) {
//!     clgraph_fuse_item_scale(clgraph_fuse_a0, clgraph_fuse_a1);
//!     clgraph_fuse_item_scale(clgraph_fuse_a0, clgraph_fuse_a2);
//! }
//! ```
//!
//! Where the work-items of a range alone are to do their parts, the others return at once. The last two parameters are the range:
//!
//! ```text
//! kernel void clgraph_fused_0(global void *clgraph_fuse_a0, float clgraph_fuse_a1, const ulong clgraph_fuse_a2, const ulong clgraph_fuse_a3, ..) {
//!     if (.. || clgraph_fuse_linear() < clgraph_fuse_a2 || clgraph_fuse_linear() >= clgraph_fuse_a3) return;
//!     clgraph_fuse_item_scale(clgraph_fuse_a0, clgraph_fuse_a1);
//! }
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;

use super::ids::INLINED;
use super::unit::{self, Types};
use super::{Callee, FusedKernel, Names, Unit, write_begin};

/// Comes before the source, so that no macro of it changes anything here. OpenCL C before 2.0 has no function for it.
const LINEAR: &str = "\
__attribute__((always_inline)) ulong clgraph_fuse_linear(void) {
    return ((ulong)(get_global_id(2) - get_global_offset(2)) * get_global_size(1) + get_global_id(1) - get_global_offset(1))
        * get_global_size(0) + get_global_id(0) - get_global_offset(0);
}
";

/// Returns a source that has all of the programs' texts and these fused kernels, whose launches are of kernels that the sources can give as
/// functions of one work-item ([`Source::item`](super::super::source::Source::item)). `in_range`: the last two parameters say which
/// work-items do something.
pub(crate) fn each_item(units: &[Unit<'_>], kernels: &[FusedKernel], in_range: bool) -> String {
    let mut all = if in_range { LINEAR.to_owned() } else { String::new() };
    let callees: BTreeSet<&Callee> =
        kernels.iter().flat_map(|kernel| &kernel.launches).map(|launch| &launch.kernel).collect();
    let types = Types::of(kernels);
    for (number, unit) in units.iter().enumerate() {
        unit::begin(&mut all, units, number);
        types.write(&mut all, number);
        for callee in callees.iter().filter(|callee| callee.unit == number) {
            let Ok(kernel) = unit.source.item(&callee.kernel) else { continue };
            let params = if kernel.params.is_empty() { "void" } else { &kernel.params };
            let body = &unit.text[kernel.body.clone()];
            // Writing to a string never fails.
            let _ = writeln!(all, "{INLINED}void clgraph_fuse_item_{callee}({params}) {body}");
        }
        unit::end(&mut all, units, number);
    }
    for (number, kernel) in kernels.iter().enumerate() {
        let others = match kernel.params.len() {
            end @ 2.. if in_range => {
                let (first, end) = (end - 2, end - 1);
                format!(
                    " || clgraph_fuse_linear() < clgraph_fuse_a{first} || clgraph_fuse_linear() >= clgraph_fuse_a{end}"
                )
            }
            _ => String::new(),
        };
        write_begin(&mut all, (number, kernel), &others, &types);
        let names = Names::of(kernel, &types);
        for launch in &kernel.launches {
            let args: Vec<String> = launch.args.iter().map(|arg| names.arg(arg)).collect();
            let _ = writeln!(all, "    clgraph_fuse_item_{}({});", launch.kernel, args.join(", "));
        }
        all.push_str("}\n");
    }
    all
}
