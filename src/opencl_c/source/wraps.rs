//! Whether a kernel's text has something by which an index into memory may wrap. Some compilers vectorize loops over work-items wrongly
//! where one does.

use crate::opencl_c::source::{Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};

/// Words that may name or make a narrow type.
const NAMING: [&str; 5] = ["typedef", "struct", "union", "enum", "typeof"];

/// Parts of words that take low bits of a number.
const NARROW: [&str; 10] = ["char", "short", "24", "rotate", "bool", "bit", "_hi", "shuffle", "upsample", "asm"];

/// Words of loops that may.
const LOOPS: [&str; 3] = ["while", "do", "goto"];

/// Words that begin with an underscore and name no type.
const PLAIN: [&str; 5] = ["__global", "__private", "__const", "__restrict", "__kernel"];

impl Source {
    /// Returns whether a kernel's text has nothing that is known to take low bits of a number: no such operator, type or function, no
    /// division, and no function, macro or type of the source. It may still have an index that wraps in a way that is not known here.
    pub(crate) fn wraps_no_index(&self, kernel: &str) -> bool {
        let is_own = |word: &String| self.words.contains_key(word) || self.macros.contains(word);
        !self.names_types
            && self.kernel(kernel).is_ok_and(|text| !text.takes_low_bits)
            && !self.words.get(kernel).into_iter().flatten().any(is_own)
    }
}

impl Reader<'_> {
    /// Returns whether the source gives types names of its own.
    pub(super) fn names_types(&self, tokens: &[Token]) -> bool {
        tokens.iter().filter_map(|token| self.word(token)).any(|word| NAMING.contains(&word))
    }

    /// Returns whether a text has an operator, type or function that takes low bits of a number.
    pub(super) fn takes_low_bits(&self, body: &[Token]) -> bool {
        let mark = |at: usize| body.get(at).map(|token| (token.kind, token.at.start));
        // `&&` and `||` take no bits; a shift is one sign twice.
        let is_double = |at: usize| {
            let (one, next) = (mark(at), mark(at + 1));
            one.zip(next).is_some_and(|((one, from), (next, at))| one == next && at == from + 1)
        };
        let mut skip = false;
        body.iter().enumerate().any(|(at, token)| {
            let behind = std::mem::take(&mut skip);
            match token.kind {
                TokenKind::Word => {
                    let word = &self.text[token.at.clone()];
                    (word.starts_with('_') && !PLAIN.contains(&word))
                        || LOOPS.contains(&word)
                        || NARROW.iter().any(|part| word.contains(part))
                }
                TokenKind::Mark(b'%' | b'^' | b'~' | b'/') => true,
                TokenKind::Mark(b'&' | b'|') => {
                    skip = !behind && is_double(at);
                    !behind && !skip
                }
                TokenKind::Mark(b'<' | b'>') => is_double(at),
                TokenKind::Directive => true,
                TokenKind::Mark(_) | TokenKind::Number | TokenKind::Text => false,
            }
        })
    }
}
