//! Launches of which each work-group does its part, one launch after the other, and waits for no other work-group.
//!
//! A part is some of a row, or some rows. The kernel tells the functions where its part of a row is, and which rows those are:
//!
//! ```text
//! void clgraph_fuse_run1_scale(global float *a, float by, const uint clgraph_fuse_dims, ..,
//!         const uint clgraph_fuse_from, const uint clgraph_fuse_to, const uint clgraph_fuse_row, const uint clgraph_fuse_end) {
//!     for (uint clgraph_fuse_x = clgraph_fuse_o0 + clgraph_fuse_from; clgraph_fuse_x < clgraph_fuse_o0 + clgraph_fuse_to; ++clgraph_fuse_x)
//!         clgraph_fuse_item_scale(a, by, clgraph_fuse_x, 0, 0, ..);
//! }
//! ```
//!
//! What a part touches stays in the cache from launch to launch, and compilers see loops as short as those of the launches.

use std::fmt::Write;

use super::ids::RANGE_NAMES;
use super::{Callee, FusedLaunch, Names};

/// The part of a work-group, in the parameters of the functions that run it: places in a row, and rows. They count from the begin of the range,
/// without its offset.
pub(super) const PART: &str = ", const uint clgraph_fuse_from, const uint clgraph_fuse_to, \
    const uint clgraph_fuse_row, const uint clgraph_fuse_end";
pub(super) const PART_NAMES: [&str; 4] =
    ["clgraph_fuse_from", "clgraph_fuse_to", "clgraph_fuse_row", "clgraph_fuse_end"];

/// Writes which part a work-group has. All launches have the range of the first.
pub(super) fn write_part(all: &mut String, first: &FusedLaunch, part: u32, names: &Names) {
    let [width, height, depth] = first.range[1].map(|size| names.arg(&size));
    // Writing to a string never fails.
    let _ = writeln!(
        all,
        "    const uint clgraph_fuse_width = {width}, clgraph_fuse_height = {height} * {depth};
    const uint clgraph_fuse_of_row = (clgraph_fuse_width + {}) / {part};
    const uint clgraph_fuse_rows = clgraph_fuse_width > {part} ? 1 : {part} / clgraph_fuse_width;
    const uint clgraph_fuse_from = (uint)get_group_id(0) % clgraph_fuse_of_row * {part};
    const uint clgraph_fuse_to = clgraph_fuse_width - clgraph_fuse_from > {part} ? clgraph_fuse_from + {part} : clgraph_fuse_width;
    const uint clgraph_fuse_row = (uint)get_group_id(0) / clgraph_fuse_of_row * clgraph_fuse_rows;
    const uint clgraph_fuse_end = clgraph_fuse_height - clgraph_fuse_row > clgraph_fuse_rows ? clgraph_fuse_row + clgraph_fuse_rows : clgraph_fuse_height;",
        part - 1,
    );
}

/// The loops of one work-item over its part: they end where `CALL` has the ids.
pub(super) const LINE_BY_ITEM: &str = "for (uint clgraph_fuse_x = clgraph_fuse_o0 + clgraph_fuse_from; clgraph_fuse_x < clgraph_fuse_o0 + clgraph_fuse_to; ++clgraph_fuse_x)\n        \
    CALL(clgraph_fuse_x, 0, 0)";
pub(super) const ROWS_BY_ITEM: &str = "for (uint clgraph_fuse_r = clgraph_fuse_row; clgraph_fuse_r < clgraph_fuse_end; ++clgraph_fuse_r)\n    \
    for (uint clgraph_fuse_x = clgraph_fuse_o0 + clgraph_fuse_from; clgraph_fuse_x < clgraph_fuse_o0 + clgraph_fuse_to; ++clgraph_fuse_x)\n        \
    CALL(clgraph_fuse_x, clgraph_fuse_o1 + clgraph_fuse_r % clgraph_fuse_n1, clgraph_fuse_o2 + clgraph_fuse_r / clgraph_fuse_n1)";

/// Writes the body of the function for the work-items of a group, of which each has the same elements in all launches. Some compilers make
/// vectors of them: in the loop whose vectors are side by side, all do as many turns. Those of a row that do not fill a turn come behind it.
/// Rows shorter than a turn are shared as they come.
pub(super) fn write_by_group(all: &mut String, callee: &Callee, names: &str, is_line: bool) {
    let call = |at: &str, row: &str| {
        let x = format!("(clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_from + {at}");
        let others = match is_line {
            true => "0, 0".to_owned(),
            false => format!(
                "(clgraph_fuse_id)clgraph_fuse_o1 + (clgraph_fuse_id)({row} % clgraph_fuse_n1), \
                 (clgraph_fuse_id)clgraph_fuse_o2 + (clgraph_fuse_id)({row} / clgraph_fuse_n1)"
            ),
        };
        format!("clgraph_fuse_item_{callee}({names}{x}, {others}, {RANGE_NAMES});")
    };
    let in_turn = "(clgraph_fuse_id)clgraph_fuse_i * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v";
    let behind = "(clgraph_fuse_id)clgraph_fuse_turns * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v";
    let _ = writeln!(
        all,
        "    const uint clgraph_fuse_items = clgraph_fuse_to - clgraph_fuse_from, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_turns = clgraph_fuse_items / clgraph_fuse_group;
    const clgraph_fuse_id clgraph_fuse_v = (clgraph_fuse_id)get_local_id(0);"
    );
    let of_row = |row: &str| {
        format!(
            "    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_turns; ++clgraph_fuse_i)
        {}
    if (clgraph_fuse_turns * clgraph_fuse_group + (uint)clgraph_fuse_v < clgraph_fuse_items)
        {}",
            call(in_turn, row),
            call(behind, row),
        )
    };
    let _ = match is_line {
        true => writeln!(all, "{}\n}}", of_row("")),
        false => writeln!(
            all,
            "    for (uint clgraph_fuse_r = clgraph_fuse_row; clgraph_fuse_turns > 0 && clgraph_fuse_r < clgraph_fuse_end; ++clgraph_fuse_r) {{
{}
    }}
    const uint clgraph_fuse_all = clgraph_fuse_turns > 0 ? 0 : clgraph_fuse_items * (clgraph_fuse_end - clgraph_fuse_row);
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_all; clgraph_fuse_i += clgraph_fuse_group) {{
        const uint clgraph_fuse_at = clgraph_fuse_i + (uint)clgraph_fuse_v;
        if (clgraph_fuse_at < clgraph_fuse_all)
            {}
    }}
}}",
            of_row("clgraph_fuse_r"),
            call(
                "(clgraph_fuse_id)(clgraph_fuse_at % clgraph_fuse_items)",
                "(clgraph_fuse_row + clgraph_fuse_at / clgraph_fuse_items)",
            ),
        ),
    };
}
