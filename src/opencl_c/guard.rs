//! Guarded kernels: kernels that run only if a number in memory is not zero.
//!
//! A loop whose turns are enqueued ahead of its condition has such kernels in its body. A kernel of one work-item at the head of
//! each turn latches the condition, and the kernels of the turn look at the latch alone, because the turn may change the condition.

use super::source::Source;
use crate::opencl_c::source::Unreadable;

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

/// The kernels that clgraph itself adds to a program with guarded kernels.
const OWN: &str = "\
kernel void clgraph_loop_latch(global uint *state, global const uint *condition, ulong at, uint is_read, uint begins, uint counts) {
    uint turns = begins != 0 ? 0 : state[1];
    uint goes_on = (begins != 0 || state[0] != 0) && (is_read == 0 || condition[at] != 0);
    state[0] = goes_on;
    state[1] = turns + (counts != 0 ? goes_on : 0);
}
kernel void clgraph_loop_fill(global const uint *state, global uchar *to, ulong first, uint4 pattern, uint size) {
    size_t i = get_global_id(0);
    uint at = (uint)(i % size);
    uint word = at < 4 ? pattern.x : at < 8 ? pattern.y : at < 12 ? pattern.z : pattern.w;
    if (state[0] != 0) to[first + i] = (uchar)(word >> (8 * (at & 3)));
}
kernel void clgraph_loop_fill_words(global const uint *state, global uint *to, ulong first, uint4 pattern, uint size) {
    size_t i = get_global_id(0);
    uint at = (uint)(i % size);
    if (state[0] != 0) to[first + i] = at == 0 ? pattern.x : at == 1 ? pattern.y : at == 2 ? pattern.z : pattern.w;
}
kernel void clgraph_loop_copy(global const uint *state, global const uchar *from, ulong first, global uchar *to, ulong into) {
    size_t i = get_global_id(0);
    if (state[0] != 0) to[into + i] = from[first + i];
}
kernel void clgraph_loop_copy_words(global const uint *state, global const uint *from, ulong first, global uint *to, ulong into) {
    size_t i = get_global_id(0);
    if (state[0] != 0) to[into + i] = from[first + i];
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
                "kernel {attributes} void {PREFIX}{name}({params}{separator}global const uint *clgraph_goes_on) {{\n    \
                 if (clgraph_goes_on[0] != 0) {name}({names});\n}}\n"
            ));
        })));
    }
    (all, outcomes)
}
