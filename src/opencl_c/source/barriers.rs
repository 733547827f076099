//! Where the barriers of a kernel are. Some compilers copy what follows a barrier that may be left out, once for each way to get there: see
//! `quirks::copies_behind_loops`.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::opencl_c::source::counted::{LOOPS, mark, statement};
use crate::opencl_c::source::{Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::waits;

/// Where the barriers of a kernel are whose work-items wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barriers {
    /// All work-items run each of them as often as the text says.
    Straight,
    /// There is a loop whose number of turns the text does not say.
    InLoop,
    /// One is under a condition, or there are several such loops.
    Conditional,
}

/// What is under a condition in the body of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    words: BTreeSet<String>,
    /// How many loops have a number of turns that the text does not say.
    loops: usize,
}

/// What ends a kernel, a loop or a turn of one early.
const EXITS: [&str; 4] = ["return", "break", "continue", "goto"];

impl Source {
    /// Returns where the barriers of a kernel are.
    pub(crate) fn barriers(&self, kernel: &str) -> Barriers {
        let Ok(text) = self.kernel(kernel) else { return Barriers::Conditional };
        let may_wait = |word: &str| waits(word) || self.reaches(word, waits);
        if text.conditions.words.iter().any(|word| may_wait(word)) {
            return Barriers::Conditional;
        }
        let (mut loops, mut open, mut seen) = (text.conditions.loops, vec![kernel], BTreeSet::from([kernel]));
        while let Some(name) = open.pop() {
            for word in self.words.get(name).into_iter().flatten() {
                if seen.insert(word) && self.words.contains_key(word) {
                    let has = |of: &[&str]| self.words[word].iter().any(|word| of.contains(&word.as_str()));
                    loops += usize::from(has(&LOOPS));
                    if has(&["if", "switch", "else", "for", "while", "do", "goto"]) && may_wait(word) {
                        return Barriers::Conditional;
                    }
                    open.push(word);
                }
            }
        }
        match loops {
            0 => Barriers::Straight,
            1 => Barriers::InLoop,
            _ => Barriers::Conditional,
        }
    }
}

impl Reader<'_> {
    /// Returns what is under a condition in the body of a kernel.
    pub(super) fn conditions(&self, body: &[Token]) -> Conditions {
        let body = self.without_pragmas(body);
        let body = body.as_slice();
        let word = |at: usize| body.get(at).and_then(|token| self.word(token));
        let (mut ranges, mut loops): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
        for (at, token) in body.iter().enumerate() {
            let behind = |at: usize| {
                let mut its = statement(body, at);
                while word(its.end) == Some("else") {
                    its.end = statement(body, its.end + 1).end;
                }
                its
            };
            let range = match word(at) {
                Some("if" | "switch") => behind(head_ends(body, at + 1)),
                Some("goto") => 0..body.len(),
                Some("for") if self.counted_head(body, at + 1).is_some() => continue,
                // The end of a `do` has no statement.
                Some("while") if mark(body, head_ends(body, at + 1)) == b';' => continue,
                Some("for" | "while" | "do") => {
                    loops += 1;
                    continue;
                }
                None if token.kind == TokenKind::Directive => 0..body.len(),
                None if mark(body, at) == b'?' => statement(body, at),
                None if b"&|".contains(&mark(body, at)) && mark(body, at + 1) == mark(body, at) => statement(body, at),
                _ => continue,
            };
            // What comes behind is left out, too.
            let is_left = range.clone().any(|at| word(at).is_some_and(|word| EXITS.contains(&word)));
            ranges.push(if is_left { range.start..body.len() } else { range });
        }
        let words = ranges.into_iter().flatten().filter_map(|at| word(at).map(str::to_owned));
        Conditions { words: words.collect(), loops }
    }
}

/// Returns where what follows a head in parentheses begins.
fn head_ends(body: &[Token], at: usize) -> usize {
    let mut open = 0_usize;
    for at in at..body.len() {
        match mark(body, at) {
            b'(' => open += 1,
            b')' if open <= 1 => return at + 1,
            b')' => open -= 1,
            _ => {}
        }
    }
    body.len()
}
