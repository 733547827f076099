//! Whether a kernel computes little. Compilers of CPUs make vectors of a long chain of launches that each work-item does on its own only if
//! each of them does: see `quirks::part_of_each_work_group`.

use crate::opencl_c::source::{Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::IDS;

/// Functions that are one operation.
const OPERATIONS: [&str; 2] = ["fma", "mad"];

/// The most operators in the body of a kernel that computes little: `size_t i = get_global_id(0); t[i] = s[i] * x + y;` has four. With five to
/// seven, 262 144 work-items and 64 launches, work-groups that do their parts take 0.25 to 0.76 of the time on PoCL (3.1 and 7.1) and Intel's CPU
/// runtime (2026.2), and with four 1.5 to 2 times as long.
const MOST_OPERATORS: usize = 4;

/// The same for a body with a branch, as `if (i < n)`: compilers make worse loops of it. With four operators besides, parts take 1.4 (PoCL 3.1) to
/// 5 times as long, with six 0.8 to 2.6 times, and with ten as long or less.
const MOST_WITH_BRANCH: usize = 6;

impl Source {
    /// Returns whether a kernel computes little, as far as its text says: a few operators, and no loops, divisions, or calls of functions but
    /// for ids.
    pub(crate) fn is_light(&self, kernel: &str) -> bool {
        // A macro may be anything.
        let is_own = |word: &String| self.words.contains_key(word) || self.macros.contains(word);
        self.kernel(kernel).is_ok_and(|text| text.is_light) && !self.words.get(kernel).into_iter().flatten().any(is_own)
    }
}

impl Reader<'_> {
    /// Returns whether the body of a kernel has little to compute. Comparisons are free: they are those of branches.
    pub(super) fn is_light(&self, body: &[Token]) -> bool {
        let mark = |at: usize| match body.get(at).map(|token| token.kind) {
            Some(TokenKind::Mark(mark)) => mark,
            _ => 0,
        };
        let before = |at: usize| at.checked_sub(1).map_or(0, mark);
        let (mut operators, mut most) = (0, MOST_OPERATORS);
        for (at, token) in body.iter().enumerate() {
            match token.kind {
                TokenKind::Word => match &self.text[token.at.clone()] {
                    "if" => most = MOST_WITH_BRANCH,
                    word if mark(at + 1) == b'(' && !IDS.contains(&word) && !OPERATIONS.contains(&word) => {
                        return false;
                    }
                    _ => {}
                },
                TokenKind::Mark(b'/' | b'%' | b'?') | TokenKind::Directive => return false,
                // `+=` is one operator, as are `++`, `<<` and `&&`, and `<=` and `==` are none.
                TokenKind::Mark(b'=') => {
                    operators += usize::from(!b"+-*^&|<>=!".contains(&before(at)) && mark(at + 1) != b'=');
                }
                TokenKind::Mark(of @ (b'+' | b'-' | b'*' | b'^' | b'~' | b'&' | b'|')) => {
                    operators += usize::from(before(at) != of);
                }
                TokenKind::Mark(of @ (b'<' | b'>')) => operators += usize::from(mark(at + 1) == of),
                TokenKind::Mark(_) | TokenKind::Number | TokenKind::Text => {}
            }
        }
        operators <= most
    }
}
