//! Guarded kernels: kernels that run only if a number in memory is not zero.
//!
//! A loop whose turns are enqueued ahead of its condition has such kernels in its body. A kernel of one work-item at the head of
//! each turn latches the condition, and the kernels of the turn look at the latch alone, because the turn may change the condition.

use super::source::Source;
use crate::opencl_c::unreadable::Unreadable;

/// What the names of kernels begin with that clgraph adds.
pub(crate) const PREFIX: &str = "clgraph_guarded_";

/// Latches the condition for the next turn. Arguments: state, memory of the condition, its index, whether it is looked at, whether
/// turns begin that are counted from 0 on, whether to count.
pub(crate) const LATCH: &str = "clgraph_loop_latch";
/// Fills memory with a pattern of at most 16 bytes. Arguments: state, memory, first byte, pattern, its bytes. A work-item a byte.
pub(crate) const FILL: &str = "clgraph_loop_fill";
/// The same for patterns and places of whole words. A work-item a word of four bytes; all sizes are in words.
pub(crate) const FILL_WORDS: &str = "clgraph_loop_fill_words";
/// Copies memory. Arguments: state, source, its first byte, destination, its first byte. A work-item a byte.
pub(crate) const COPY: &str = "clgraph_loop_copy";
/// The same for whole words.
pub(crate) const COPY_WORDS: &str = "clgraph_loop_copy_words";

/// The words of the state, which is memory of each loop: whether turns still run, and how many did.
pub(crate) const STATE_WORDS: usize = 2;

/// The kernels that clgraph itself adds to a program with guarded kernels. They come before the source, and every word in them is
/// a keyword that no macro may have, or one that begins with `clgraph_loop_`: so build options cannot change them.
pub(super) const OWN: &str = "\
kernel void clgraph_loop_latch(global uint *clgraph_loop_state, global const uint *clgraph_loop_condition, ulong clgraph_loop_at,
                               uint clgraph_loop_is_read, uint clgraph_loop_begins, uint clgraph_loop_counts) {
    uint clgraph_loop_turns = clgraph_loop_begins != 0 ? 0 : clgraph_loop_state[1];
    uint clgraph_loop_goes_on = (clgraph_loop_begins != 0 || clgraph_loop_state[0] != 0)
        && (clgraph_loop_is_read == 0 || clgraph_loop_condition[clgraph_loop_at] != 0);
    clgraph_loop_state[0] = clgraph_loop_goes_on;
    clgraph_loop_state[1] = clgraph_loop_turns + (clgraph_loop_counts != 0 ? clgraph_loop_goes_on : 0);
}
kernel void clgraph_loop_fill(global const uint *clgraph_loop_state, global uchar *clgraph_loop_to, ulong clgraph_loop_first,
                              uint4 clgraph_loop_pattern, uint clgraph_loop_size) {
    size_t clgraph_loop_i = get_global_id(0);
    if (clgraph_loop_state[0] != 0)
        clgraph_loop_to[clgraph_loop_first + clgraph_loop_i] = ((private uchar *)&clgraph_loop_pattern)[clgraph_loop_i % clgraph_loop_size];
}
kernel void clgraph_loop_fill_words(global const uint *clgraph_loop_state, global uint *clgraph_loop_to, ulong clgraph_loop_first,
                                    uint4 clgraph_loop_pattern, uint clgraph_loop_size) {
    size_t clgraph_loop_i = get_global_id(0);
    if (clgraph_loop_state[0] != 0)
        clgraph_loop_to[clgraph_loop_first + clgraph_loop_i] = ((private uint *)&clgraph_loop_pattern)[clgraph_loop_i % clgraph_loop_size];
}
kernel void clgraph_loop_copy(global const uint *clgraph_loop_state, global const uchar *clgraph_loop_from, ulong clgraph_loop_first,
                              global uchar *clgraph_loop_to, ulong clgraph_loop_into) {
    size_t clgraph_loop_i = get_global_id(0);
    if (clgraph_loop_state[0] != 0) clgraph_loop_to[clgraph_loop_into + clgraph_loop_i] = clgraph_loop_from[clgraph_loop_first + clgraph_loop_i];
}
kernel void clgraph_loop_copy_words(global const uint *clgraph_loop_state, global const uint *clgraph_loop_from, ulong clgraph_loop_first,
                                    global uint *clgraph_loop_to, ulong clgraph_loop_into) {
    size_t clgraph_loop_i = get_global_id(0);
    if (clgraph_loop_state[0] != 0) clgraph_loop_to[clgraph_loop_into + clgraph_loop_i] = clgraph_loop_from[clgraph_loop_first + clgraph_loop_i];
}
";

/// A kernel's name, and why there is no guarded one.
pub(crate) type Outcome<'a> = (&'a str, Result<(), Unreadable>);

/// Returns a source that has all of `text`, guarded kernels for those of `kernels` that can be read, and clgraph's own. Also
/// returns why there is none for others.
pub(crate) fn guarded<'a>(
    text: &str,
    source: &Source,
    kernels: impl IntoIterator<Item = &'a str>,
) -> (String, Vec<Outcome<'a>>) {
    let mut all = format!("{OWN}#line 1\n{text}\n");
    let mut outcomes = Vec::new();
    for name in kernels {
        outcomes.push((name, source.kernel(name).map(|kernel| {
            let separator = if kernel.params.is_empty() { "" } else { ", " };
            let (attributes, params, names) = (&kernel.attributes, &kernel.params, kernel.names.join(", "));
            all.push_str(&format!(
                "kernel {attributes} void {PREFIX}{name}({params}{separator}global const uint *clgraph_loop_goes_on) {{\n    \
                 if (clgraph_loop_goes_on[0] != 0) {name}({names});\n}}\n"
            ));
        })));
    }
    (all, outcomes)
}
