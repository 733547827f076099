//! What a work-item knows of itself in functions that are written again.

use super::Dialect;

/// Makes a compiler inline a function.
pub(super) const INLINED: &str = "__attribute__((always_inline)) ";

/// Returns what comes before a function of a work-item that waits for no other. rusticl's compiler makes slower code of what it inlines by itself, by
/// up to 2.4 times. PoCL 3.1 gets some kernels with barriers wrong whose functions are inlined so, and compilers that make vectors of work-items
/// are as fast without.
pub(super) fn inlined(dialect: Dialect) -> &'static str {
    if dialect.copies_behind_loops || dialect.joins_items { "" } else { INLINED }
}

/// Comes before the source, so that no macro of it changes anything here.
pub(super) const OWN: &str = "\
size_t clgraph_fuse_pick(uint clgraph_fuse_d, size_t clgraph_fuse_0, size_t clgraph_fuse_1, size_t clgraph_fuse_2, size_t clgraph_fuse_3) {
    return clgraph_fuse_d == 0 ? clgraph_fuse_0 : clgraph_fuse_d == 1 ? clgraph_fuse_1 : clgraph_fuse_d == 2 ? clgraph_fuse_2 : clgraph_fuse_3;
}
";

/// The range of a launch, in the parameters of its functions.
pub(in crate::opencl_c) const RANGE: &str = "const uint clgraph_fuse_dims, \
    const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, \
    const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, \
    const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2";
pub(in crate::opencl_c) const RANGE_NAMES: &str = "clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, \
    clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2";

/// What the functions for ids are while the bodies are written again (OpenCL C 3.0, section 6.15.1).
pub(super) const IDS: [(&str, &str); 11] = [
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
        "clgraph_fuse_pick(d, (uint)(clgraph_fuse_x - clgraph_fuse_o0) % clgraph_fuse_l0, \
         (uint)(clgraph_fuse_y - clgraph_fuse_o1) % clgraph_fuse_l1, (uint)(clgraph_fuse_z - clgraph_fuse_o2) % clgraph_fuse_l2, 0)",
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
        "((size_t)((((uint)(clgraph_fuse_z - clgraph_fuse_o2) % clgraph_fuse_l2) * clgraph_fuse_l1 \
         + (uint)(clgraph_fuse_y - clgraph_fuse_o1) % clgraph_fuse_l1) * clgraph_fuse_l0 \
         + (uint)(clgraph_fuse_x - clgraph_fuse_o0) % clgraph_fuse_l0))",
    ),
    (
        "get_group_id(d)",
        "clgraph_fuse_pick(d, (uint)(clgraph_fuse_x - clgraph_fuse_o0) / clgraph_fuse_l0, \
         (uint)(clgraph_fuse_y - clgraph_fuse_o1) / clgraph_fuse_l1, (uint)(clgraph_fuse_z - clgraph_fuse_o2) / clgraph_fuse_l2, 0)",
    ),
    (
        "get_num_groups(d)",
        "clgraph_fuse_pick(d, clgraph_fuse_n0 / clgraph_fuse_l0, clgraph_fuse_n1 / clgraph_fuse_l1, \
         clgraph_fuse_n2 / clgraph_fuse_l2, clgraph_fuse_beyond)",
    ),
];

/// What `get_local_id` is where a work-group of the fused kernel has as many work-items as one of the launch: in one dimension nothing is divided, which takes
/// a GPU longer than the rest of a small kernel. Within its own text the name is the driver's function.
pub(super) const LOCAL_ID: (&str, &str) = (
    "get_local_id(d)",
    "clgraph_fuse_pick(d, \
     clgraph_fuse_dims == 1 ? (uint)get_local_id(0) : (uint)get_local_id(0) % clgraph_fuse_l0, \
     (uint)get_local_id(0) / clgraph_fuse_l0 % clgraph_fuse_l1, \
     (uint)get_local_id(0) / (clgraph_fuse_l0 * clgraph_fuse_l1), 0)",
);
