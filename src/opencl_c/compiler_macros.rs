//! Macros of the compiler's own: a text asks for each word, and has a kernel where it is a macro.

use std::collections::BTreeSet;

/// The names of the kernels that are asked for begin so, and no name of a source does.
pub(super) const ASKED: &str = "clgraph_fuse_asked";

/// The most words that are asked for at once.
const MOST_WORDS: usize = 8_192;

/// Returns an empty kernel. NVIDIA's driver does not build one without parameters, if it is to tell what these are
/// (`-cl-kernel-arg-info`).
pub(super) fn kernel(name: &str) -> String {
    format!("kernel void {name}(uint {ASKED}) {{}}\n")
}

/// Words that are no macros, and of which a compiler does not take the question.
const NEVER: [&str; 3] = ["defined", "__VA_ARGS__", "__VA_OPT__"];

/// Returns a text that asks for words. None if they are too many.
pub(super) fn question(words: &BTreeSet<String>) -> Option<String> {
    let ask = |(number, word): (usize, &String)| {
        format!("#ifdef {word}\n{}#endif\n", kernel(&format!("{ASKED}_word_{number}")))
    };
    let all = words.iter().enumerate().filter(|(_, word)| !NEVER.contains(&word.as_str()));
    (words.len() <= MOST_WORDS).then(|| kernel(ASKED) + &all.map(ask).collect::<String>())
}

/// Returns the words that are macros, by the names of the kernels that a compiler has found. None if it has found no kernel.
pub(super) fn answer(words: &BTreeSet<String>, kernels: &[String]) -> Option<BTreeSet<String>> {
    let found: BTreeSet<&str> = kernels.iter().map(String::as_str).collect();
    let is_macro = |(number, _): &(usize, &String)| found.contains(&*format!("{ASKED}_word_{number}"));
    let all = words.iter().enumerate().filter(is_macro).map(|(_, word)| word.clone());
    found.contains(ASKED).then(|| all.collect())
}
