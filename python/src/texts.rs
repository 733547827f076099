//! Texts of errors, with the names that things have in Python.

/// Names of Rust, between backquotes in the texts of errors, and what Python calls them.
const NAMES: &[(&str, &str)] = &[
    ("`range_up_to`", "`up_to`"),
    ("`work_group`", "`local_size`"),
    ("`launch`", "`kernel`"),
    ("`reads`", "`reads=`"),
    ("`writes`", "`writes=`"),
    ("`Submit::with_event`", "`submit(events=)`"),
    ("`Submit::with_signal`", "`submit(signals=)`"),
    ("`with_event`", "`submit(events=)`"),
    ("`with_signal`", "`submit(signals=)`"),
    ("`Finalize::allow_conflicts`", "`finalize(allow_conflicts=True)`"),
    ("`Finalize::updatable`", "`finalize(updatable=True)`"),
    ("`Finalize::profiling`", "`finalize(profiling=True)`"),
    ("`Finalize::result_slots`", "`finalize(result_slots=)`"),
    ("`Parameter`", "`Param`"),
    ("`Parameter::set`", "`Param.set`"),
    ("`buffer_or_null`", "`Param(memory, or_null=True)`"),
    ("`memory_or_null`", "`Param(memory, or_null=True)`"),
    ("`enqueue_read_buffer_owned`", "`Queue.read`"),
    ("`enqueue_read_image_owned`", "`Queue.read`"),
    ("`enqueue_map`", "`Graph.map`"),
    ("`enqueue_map_image`", "`Graph.map`"),
    ("`Queue::record_event_wait`", "`Queue.wait_event`"),
    ("`usize`", "an address"),
    ("`Buffer::slice`", "a slice of a Memory"),
    ("`ProgramBuilder::global`", "`Program(globals=)`"),
    ("`ProgramBuilder`", "`Program`"),
    ("`device_image_scope`", "`of_program=True`"),
    ("`at_most`", "`at_most=`"),
    ("`Graph::command_group_node`", "`Graph.command_group`"),
    ("`Buffer::from_raw_with_owner`", "`hostbuf=`"),
    ("`replace`", "`Graph.replace_kernel`"),
    ("`i8`", "`numpy.int8`"),
    ("`u8`", "`numpy.uint8`"),
    ("`i16`", "`numpy.int16`"),
    ("`u16`", "`numpy.uint16`"),
    ("`i32`", "`numpy.int32`"),
    ("`u32`", "`numpy.uint32`"),
    ("`i64`", "`numpy.int64`"),
    ("`u64`", "`numpy.uint64`"),
    ("`f32`", "`numpy.float32`"),
    ("`f64`", "`numpy.float64`"),
];

/// Words outside of backquotes, and what Python calls them.
const WORDS: &[(&str, &str)] = &[
    ("an `numpy.", "a `numpy."),
    ("`Param(memory, or_null=True)` or `Param(memory, or_null=True)`", "`Param(memory, or_null=True)`"),
    ("given to opencl3", "given to pyopencl"),
    ("or the bytes of the value as an array", "or the bytes of the value"),
];

/// Returns a text of clgraph with the names that things have in Python.
pub(crate) fn in_python(text: &str) -> String {
    // Every other part is between backquotes. What is not in the table keeps its name: `Graph.add_edge`.
    let mut out = String::with_capacity(text.len());
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 0 {
            out.push_str(part);
            continue;
        }
        let quoted = format!("`{part}`");
        match NAMES.iter().find(|(rust, _)| *rust == quoted) {
            Some((_, python)) => out.push_str(python),
            None => out.push_str(&quoted.replace("::", ".")),
        }
    }
    WORDS.iter().fold(out, |out, (rust, python)| out.replace(rust, python))
}
