//! Texts of errors, with the names that things have in C.

/// Names of Rust, as they stand between backquotes in the texts of errors, and what C calls them.
const NAMES: &[(&str, &str)] = &[
    ("Buffer::from_raw", "clg_memory_from_cl"),
    ("Buffer::slice", "clg_range"),
    ("Color", "clg_color_kind"),
    ("CommandGroup::set_active_index", "clg_command_group_set_active"),
    ("Finalize::allow_conflicts", "clg_finalize_options.allow_conflicts"),
    ("Finalize::profiling", "clg_finalize_options.profiling"),
    ("Finalize::tuning_cache", "clg_finalize_options.tuning_cache"),
    ("Finalize::updatable", "clg_finalize_options.updatable"),
    ("Graph::add_edge", "clg_graph_add_edge"),
    ("GraphProperties::no_cycle_check", "clg_graph_properties.no_cycle_check"),
    ("Image::from_raw", "clg_image_from_cl"),
    ("Memory::host", "clg_memory_access_host"),
    ("Memory::host_accessible", "CLG_MEMORY_HOST_ACCESSIBLE"),
    ("Memory::host_mut", "clg_memory_access_host"),
    ("Memory::new", "clg_memory_allocate"),
    ("Memory::with_kind", "clg_memory_allocate"),
    ("ProgramBuilder", "clg_program_build"),
    ("ProgramBuilder::global", "clg_program_build"),
    ("Queue::record_event_wait", "clg_record_wait_event"),
    ("SubGraph::signal_event", "clg_sub_graph_port"),
    ("SubGraph::wait_event", "clg_sub_graph_port"),
    ("SubGraph::write", "clg_sub_graph_port"),
    ("Submission::turns", "clg_submission_turns"),
    ("Submit::with_event", "clg_submit_options.node_events"),
    ("Submit::with_signal", "clg_submit_options.node_events"),
    ("after", "clg_node_options.after"),
    ("also_parameter", "CLG_ARG_ALSO_PARAMETER"),
    ("any", "clg_parameter_create"),
    ("buffer_or_null", "or_null"),
    ("checked", "clg_parameter_create"),
    ("complete", "clg_user_event_complete"),
    ("enqueue_map", "clg_enqueue_map"),
    ("enqueue_map_image", "clg_enqueue_map_image"),
    ("enqueue_read_buffer_owned", "clg_enqueue_read_buffer"),
    ("enqueue_read_image_owned", "clg_enqueue_read_image"),
    ("fail", "clg_user_event_fail"),
    ("label", "clg_node_options.label"),
    ("memory_or_null", "or_null"),
    ("range", "clg_launch.global"),
    ("range_up_to", "clg_launch.bound"),
    ("read_write", "CLG_ARG_READ_WRITE"),
    ("reads", "clg_use.reads"),
    ("reads_and_writes", "clg_use.reads` and `clg_use.writes"),
    ("replace", "clg_node_options.replaces"),
    ("result_slots", "clg_finalize_options.result_slots"),
    ("set_unchecked", "clg_parameter_set"),
    ("submit", "clg_executable_submit"),
    ("sub_buffer", "clCreateSubBuffer"),
    ("wait", "clg_submission_wait"),
    ("within", "clg_parameter_create"),
    ("work_group", "clg_launch.local"),
    ("writes", "clg_use.writes"),
    ("f32", "cl_float"),
    ("f64", "cl_double"),
    ("i16", "cl_short"),
    ("i32", "cl_int"),
    ("i64", "cl_long"),
    ("i8", "cl_char"),
    ("u16", "cl_ushort"),
    ("u32", "cl_uint"),
    ("u64", "cl_ulong"),
    ("u8", "cl_uchar"),
];

/// Words of Rust outside of backquotes, and what C calls them.
const WORDS: &[(&str, &str)] = &[
    ("drop the guard", "release the access"),
    ("another guard", "another access"),
    ("drop that guard", "release that access"),
    ("dropped", "released"),
    ("drop ", "release "),
    ("given to opencl3", "given as a cl_event"),
    ("or the bytes of the value as an array", "or the bytes as CLG_TYPE_UNKNOWN"),
];

/// Returns a text of clgraph with the names that things have in C.
pub(crate) fn in_c(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Every other part is between backquotes, if these are closed.
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push('`');
        }
        if index % 2 == 1 {
            out.push_str(NAMES.iter().find(|(rust, _)| *rust == part).map_or(part, |(_, c)| c));
        } else {
            out.push_str(&WORDS.iter().fold(part.to_owned(), |part, (rust, c)| part.replace(rust, c)));
        }
    }
    // Two functions of Rust can have one name in C.
    for name in ["`or_null`", "`clg_memory_access_host`"] {
        out = out.replace(&format!("{name} or {name}"), name);
    }
    out.replace("an `cl_", "a `cl_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_become_names_of_c() {
        let text = "`a` has no bound: give it one by `range_up_to`, or see `Finalize::updatable` and `unknown`";
        let expected = "`a` has no bound: give it one by `clg_launch.bound`, or see `clg_finalize_options.updatable` and `unknown`";
        assert_eq!(in_c(text), expected);
        let held = "drop the guard of `Memory::host` or `Memory::host_mut` first; the graph was dropped: drop results";
        assert_eq!(
            in_c(held),
            "release the access of `clg_memory_access_host` first; the graph was released: release results"
        );
        let busy = "another guard of the memory exists; drop that guard first";
        assert_eq!(in_c(busy), "another access of the memory exists; release that access first");
        assert_eq!(in_c("an open ` is left"), "an open ` is left");
        assert_eq!(in_c(""), "");
    }
}
