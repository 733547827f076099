//! Functions that run all work-items of a launch.

use std::fmt::Write;

use super::group::BARRIER;
use super::{Callee, Dialect, Form, Function, RANGE, RANGE_NAMES, Run, group, listed, parts};

/// Keeps a compiler from vectorizing the loop that follows.
pub(super) const SCALAR: &str = "#pragma clang loop vectorize(disable) interleave(disable)";

/// Writes the function that runs all work-items of a launch.
pub(super) fn write_run(
    all: &mut String,
    callee: &Callee,
    function: &Function<'_>,
    dialect: Dialect,
    (is_line, run): (bool, Run),
) {
    let locals = function.locals;
    let (params, names) =
        (listed(function.params) + &group::params(locals), listed(&function.names) + &group::names(locals));
    let attribute = if run == Run::Line { "__attribute__((noinline)) " } else { "" };
    let part = if dialect.part.is_some() { parts::PART } else { "" };
    let _ = writeln!(all, "{attribute}void {}({params}{RANGE}{part}) {{", run.name(callee, is_line));
    if function.is_group {
        return group::write_run(all, callee, &names, is_line);
    }
    let body = match (dialect.form, is_line) {
        (Form::OneGroup, _) if dialect.part.is_some() => return parts::write_by_group(all, callee, &names, is_line),
        (Form::OneItem, true) if dialect.part.is_some() => parts::LINE_BY_ITEM,
        (Form::OneItem, false) if dialect.part.is_some() => parts::ROWS_BY_ITEM,
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
        (Form::OneGroup, _) if dialect.copies_behind_loops => return write_whole(all, callee, &names, is_line),
        (Form::OneGroup, _) if dialect.joins_items => return write_joined(all, callee, &names, is_line),
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
    // Such a compiler is wrong only where it knows where a loop begins.
    let hides_begin = dialect.form == Form::OneItem && !dialect.vectorizes;
    let body = if hides_begin { body.replace("clgraph_fuse_o", "clgraph_fuse_b") } else { body.to_owned() };
    if hides_begin {
        for dim in 0..if is_line { 1 } else { 3 } {
            let _ = writeln!(
                all,
                "    volatile uint clgraph_fuse_v{dim} = clgraph_fuse_o{dim};\n    const uint clgraph_fuse_b{dim} = clgraph_fuse_v{dim};"
            );
        }
    }
    let (before, ids) = body.split_once("CALL(").unwrap_or((&body, ")"));
    let ids = ids.strip_suffix(')').unwrap_or(ids);
    let is_scalar = hides_begin && !function.wraps_no_index;
    let before = match before.split_once("for (") {
        Some(_) if is_scalar => {
            let loops =
                before.split("for (").skip(1).map(|rest| format!("{SCALAR}\n    for ({}", rest.trim_end_matches(' ')));
            loops.collect::<String>() + "        "
        }
        _ => format!("    {before}"),
    };
    let _ = writeln!(all, "{before}clgraph_fuse_item_{callee}({names}{ids}, {RANGE_NAMES});\n}}");
}

/// Writes the body of the function for a compiler that makes vectors of work-items. In the loop whose vectors are side by side, all do as many
/// turns. In one dimension the work-items that do not fill a turn come behind it; in more, a turn is a part of a row, and if rows cannot be
/// divided so, elements come one by one. Ids are signed, because then nothing wraps.
fn write_joined(all: &mut String, callee: &Callee, names: &str, is_line: bool) {
    let call = |ids: [&str; 3]| {
        let id = |(dim, id): (usize, &str)| {
            if id == "0" { id.to_owned() } else { format!("(clgraph_fuse_id)clgraph_fuse_o{dim} + {id}") }
        };
        let ids: Vec<String> = ids.into_iter().enumerate().map(id).collect();
        format!("clgraph_fuse_item_{callee}({names}{}, {RANGE_NAMES});", ids.join(", "))
    };
    let items = if is_line { "clgraph_fuse_n0" } else { "clgraph_fuse_n0 * clgraph_fuse_n1 * clgraph_fuse_n2" };
    // Writing to a string never fails.
    let _ = writeln!(
        all,
        "    const uint clgraph_fuse_items = {items}, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_turns = clgraph_fuse_items / clgraph_fuse_group;
    const clgraph_fuse_id clgraph_fuse_v = (clgraph_fuse_id)get_local_id(0);"
    );
    let turns = "for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_turns; ++clgraph_fuse_i)";
    let _ = if is_line {
        let in_turn = "(clgraph_fuse_id)clgraph_fuse_i * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v";
        let behind = "(clgraph_fuse_id)clgraph_fuse_turns * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v";
        writeln!(
            all,
            "    {turns}
        {}
    if (clgraph_fuse_turns * clgraph_fuse_group + (uint)clgraph_fuse_v < clgraph_fuse_items)
        {}
}}",
            call([in_turn, "0", "0"]),
            call([behind, "0", "0"]),
        )
    } else {
        let of_row = call([
            "(clgraph_fuse_id)(clgraph_fuse_i * clgraph_fuse_group % clgraph_fuse_n0) + clgraph_fuse_v",
            "(clgraph_fuse_id)(clgraph_fuse_i * clgraph_fuse_group / clgraph_fuse_n0 % clgraph_fuse_n1)",
            "(clgraph_fuse_id)(clgraph_fuse_i * clgraph_fuse_group / (clgraph_fuse_n0 * clgraph_fuse_n1))",
        ]);
        let of_all = call([
            "(clgraph_fuse_id)(clgraph_fuse_at % clgraph_fuse_n0)",
            "(clgraph_fuse_id)(clgraph_fuse_at / clgraph_fuse_n0 % clgraph_fuse_n1)",
            "(clgraph_fuse_id)(clgraph_fuse_at / (clgraph_fuse_n0 * clgraph_fuse_n1))",
        ]);
        writeln!(
            all,
            "    if (clgraph_fuse_n0 % clgraph_fuse_group == 0) {{
        {turns}
            {of_row}
        return;
    }}
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_items; clgraph_fuse_i += clgraph_fuse_group) {{
        const uint clgraph_fuse_at = clgraph_fuse_i + (uint)clgraph_fuse_v;
        if (clgraph_fuse_at < clgraph_fuse_items)
            {of_all}
    }}
}}"
        )
    };
}

/// Writes the body of the function for a compiler that puts the loop over the work-items of a group between barriers, and copies what follows a
/// loop that may have no turn. A launch has as many work-items as the group, or more, so the loop has a turn. Those that do not fill a turn come
/// behind it. After them all work-items wait, also after the last launch: without a barrier there, such a compiler has the first work-item decide
/// for all whether they are in the range.
fn write_whole(all: &mut String, callee: &Callee, names: &str, is_line: bool) {
    let at = "(clgraph_fuse_i + clgraph_fuse_v)";
    let (items, ids) = match is_line {
        true => ("clgraph_fuse_n0", format!("clgraph_fuse_o0 + {at}, 0, 0")),
        false => (
            "clgraph_fuse_n0 * clgraph_fuse_n1 * clgraph_fuse_n2",
            format!(
                "clgraph_fuse_o0 + {at} % clgraph_fuse_n0, clgraph_fuse_o1 + {at} / clgraph_fuse_n0 % clgraph_fuse_n1, \
                 clgraph_fuse_o2 + {at} / (clgraph_fuse_n0 * clgraph_fuse_n1)"
            ),
        ),
    };
    let call = format!("clgraph_fuse_item_{callee}({names}{ids}, {RANGE_NAMES});");
    // Writing to a string never fails.
    let _ = writeln!(
        all,
        "    const uint clgraph_fuse_items = {items}, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_v = (uint)get_local_id(0);
    uint clgraph_fuse_i = 0;
    do {{
        {call}
        barrier(CLK_GLOBAL_MEM_FENCE);
        clgraph_fuse_i += clgraph_fuse_group;
    }} while (clgraph_fuse_i + clgraph_fuse_group <= clgraph_fuse_items);
    if (clgraph_fuse_i + clgraph_fuse_v < clgraph_fuse_items)
        {call}
{BARRIER}}}"
    );
}
