//! Where the barriers of a kernel are. Some compilers copy what follows a barrier that may be left out, once for each way to get there: see
//! `quirks::copies_behind_loops`.

use std::collections::BTreeSet;

use crate::opencl_c::source::counted::{LOOPS, mark, statement};
use crate::opencl_c::source::{Macro, Piece, Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::waits;

/// Where the barriers of a kernel are whose work-items wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barriers {
    /// All work-items run each of them as often as the text says.
    Straight,
    /// There is a loop whose number of turns the text does not say.
    InLoop,
    /// One may be left out, as far as this reads it, or there are several such loops.
    Conditional,
}

/// What may be left out in the body of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    words: BTreeSet<String>,
    /// How many loops have a number of turns that the text does not say.
    loops: usize,
}

/// What is not followed: all of the body may be left out then.
const JUMPS: [&str; 5] = ["break", "continue", "goto", "switch", "do"];

/// What a macro must not hide, and a function with a barrier but for the first, with which it may end.
const CONTROL: [&str; 10] = ["return", "if", "else", "for", "while", "break", "continue", "goto", "switch", "do"];

impl Source {
    /// Returns about how many barriers a compiler sees in a kernel, in the functions that it calls and the macros that it uses.
    pub(crate) fn waits(&self, kernel: &str) -> usize {
        match self.waits.get(kernel) {
            Some(count) => *count,
            // In a function that comes behind it.
            None if self.reaches(kernel, waits) => usize::MAX,
            None => 0,
        }
    }

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
                    if may_wait(word) && self.reaches(word, |word| CONTROL[1..].contains(&word)) {
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

/// So deep macros are followed that use others.
const DEPTH: usize = 8;

impl Reader<'_> {
    /// Counts the barriers of macros.
    pub(super) fn note_waits_of_macros(&mut self) {
        for _ in 0..DEPTH {
            let count = |(name, of): (&String, &Macro)| {
                let words = of.body.iter().filter_map(|piece| match piece {
                    Piece::Word(word) => Some(word.as_str()),
                    _ => None,
                });
                Some((name.clone(), self.count_waits(words))).filter(|(_, count)| *count > 0)
            };
            let counts = self.macros.iter().filter_map(count).collect();
            if counts == self.found.waits {
                break;
            }
            self.found.waits = counts;
        }
    }

    /// Counts the barriers of a function. Those that it calls come before it, but for those that are declared only.
    pub(super) fn note_waits(&mut self, function: &str, body: &[Token]) {
        let count = self.count_waits(body.iter().filter_map(|token| self.word(token)));
        if count > 0 {
            let known = self.found.waits.entry(function.to_owned()).or_default();
            *known = known.saturating_add(count);
        }
    }

    fn count_waits<'a>(&self, words: impl Iterator<Item = &'a str>) -> usize {
        let count = |word| usize::from(waits(word)) + self.found.waits.get(word).copied().unwrap_or(0);
        words.map(count).fold(0, usize::saturating_add)
    }

    /// Returns what may be left out in the body of a kernel.
    pub(super) fn conditions(&self, body: &[Token]) -> Conditions {
        let body = self.without_pragmas(body);
        let body = body.as_slice();
        let word = |at: usize| body.get(at).and_then(|token| self.word(token));
        // Tokens from `left_from` on may be left out, and those in `is_left`.
        let (mut left_from, mut is_left, mut loops) = (body.len(), vec![false; body.len()], 0);
        let (mut heads, mut ends_of_loops) = (BTreeSet::new(), 0);
        for (at, token) in body.iter().enumerate() {
            let head = word(at)
                .filter(|word| ["if", "for", "while", "switch"].contains(word))
                .map(|_| head_ends(body, at + 1));
            heads.extend(head);
            let range = match word(at) {
                Some("if") if mark(body, at + 1) == b'(' => {
                    let mut its = statement(body, head.unwrap_or(at));
                    while word(its.end) == Some("else") {
                        its.end = statement(body, its.end + 1).end;
                    }
                    its
                }
                Some("for" | "while") => {
                    loops += usize::from(self.counted_head(body, at + 1).is_none());
                    ends_of_loops = ends_of_loops.max(statement(body, head.unwrap_or(at)).end);
                    continue;
                }
                // Behind it nothing runs; in a loop, what is before it may not run again.
                Some("return") if at >= ends_of_loops && is_left[at] => {
                    left_from = left_from.min(at);
                    continue;
                }
                Some("return") if at >= ends_of_loops => continue,
                Some("return" | "if") => 0..body.len(),
                Some(word) if JUMPS.contains(&word) || self.hides_control(word) => 0..body.len(),
                Some(_) => continue,
                None if token.kind == TokenKind::Directive => 0..body.len(),
                // Braces of a value end no statement, which is not read.
                None if mark(body, at) == b'{' && at > 0 && mark(body, at - 1) == b')' && !heads.contains(&at) => {
                    0..body.len()
                }
                None if mark(body, at) == b'?' => statement(body, at),
                None if b"&|".contains(&mark(body, at)) && mark(body, at + 1) == mark(body, at) => statement(body, at),
                None => continue,
            };
            if range.len() == body.len() {
                left_from = 0;
            }
            is_left[range].fill(true);
        }
        let left = (0..body.len()).filter(|at| *at >= left_from || is_left[*at]);
        let words: BTreeSet<&str> = left.filter_map(word).collect();
        Conditions { words: words.into_iter().map(str::to_owned).collect(), loops }
    }

    /// Returns whether a word is a macro that may be a condition, a loop or a jump.
    fn hides_control(&self, word: &str) -> bool {
        self.macros.contains_key(word)
            && self.reached(word).iter().any(|word| {
                let pieces = self.macros.get(word).map(|of| of.body.as_slice()).unwrap_or_default();
                let is_twice = |of: &[Piece]| of[0] == of[1] && matches!(of[0], Piece::Mark(b'&' | b'|'));
                CONTROL.contains(&word.as_str())
                    || pieces.contains(&Piece::Mark(b'?'))
                    || pieces.windows(2).any(is_twice)
            })
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
