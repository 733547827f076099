//! Whether a kernel computes little. Compilers of CPUs make vectors of a long chain of launches that each work-item does on its own only if
//! each of them does: see `quirks::part_of_each_work_group`.

use crate::opencl_c::source::{Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::IDS;

/// Functions that are one operation.
const OPERATIONS: [&str; 2] = ["fma", "mad"];

/// The most marks of operators in the body of a kernel that computes little: `size_t i = get_global_id(0); t[i] = s[i] * x + y;` has four. With
/// six or seven, 262 144 work-items and 64 launches, work-groups that do their parts take 0.3 to 0.75 of the time on PoCL (3.1 and 7.1) and Intel's
/// CPU runtime (2026.2), and with four 1.5 to 2 times as long.
const MOST_MARKS: usize = 4;

impl Source {
    /// Returns whether a kernel computes little, as far as its text says: a few operators, without branches, loops, divisions, or calls
    /// of functions but for ids.
    pub(crate) fn is_light(&self, kernel: &str) -> bool {
        // A macro may be anything.
        let is_own = |word: &String| self.words.contains_key(word) || self.macros.contains(word);
        self.kernel(kernel).is_ok_and(|text| text.is_light) && !self.words.get(kernel).into_iter().flatten().any(is_own)
    }
}

impl Reader<'_> {
    /// Returns whether the body of a kernel has little to compute.
    pub(super) fn is_light(&self, body: &[Token]) -> bool {
        let mut marks = 0;
        let is_plain = |(at, token): (usize, &Token)| match token.kind {
            TokenKind::Word => {
                let is_called = body.get(at + 1).is_some_and(|next| next.kind == TokenKind::Mark(b'('));
                let word = &self.text[token.at.clone()];
                !is_called || IDS.contains(&word) || OPERATIONS.contains(&word)
            }
            TokenKind::Mark(b'/' | b'%' | b'?') | TokenKind::Directive => false,
            TokenKind::Mark(mark) => {
                marks += usize::from(b"+-*&|^~<>=!".contains(&mark));
                true
            }
            TokenKind::Number | TokenKind::Text => true,
        };
        body.iter().enumerate().all(is_plain) && marks <= MOST_MARKS
    }
}
