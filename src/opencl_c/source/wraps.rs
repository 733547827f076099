//! Whether a kernel's text has something by which an index into memory may wrap. Some compilers vectorize loops over work-items wrongly
//! where one does.

use crate::opencl_c::source::kernel::KernelText;
use crate::opencl_c::source::{ParamKind, Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};

/// Words that may name or make a narrow type.
const NAMING: [&str; 5] = ["typedef", "struct", "union", "enum", "typeof"];

/// Parts of words that take low bits of a number.
const NARROW: [&str; 10] = ["char", "short", "24", "rotate", "bool", "bit", "_hi", "shuffle", "upsample", "asm"];

/// Words of loops that may.
const LOOPS: [&str; 3] = ["while", "do", "goto"];

/// Words that begin with an underscore and name no type.
const PLAIN: [&str; 5] = ["__global", "__private", "__const", "__restrict", "__kernel"];

/// Types of variables that a global id fits into: ranges end within 31 bits.
const OF_IDS: [&str; 6] = ["size_t", "uint", "int", "ulong", "long", "unsigned"];

impl Source {
    /// Returns whether a kernel's text has nothing that is known to take low bits of a number: no such operator, type or function, no
    /// division, and no function, macro or type of the source; or whether all that it takes for an index is a global id as it is. In the first
    /// case it may still have an index that wraps in a way that is not known here.
    pub(crate) fn wraps_no_index(&self, kernel: &str) -> bool {
        let is_own = |word: &String| self.words.contains_key(word) || self.macros.contains(word);
        let is_known = |text: &KernelText| text.takes_ids_as_indices || (!self.names_types && !text.takes_low_bits);
        self.kernel(kernel).is_ok_and(is_known) && !self.words.get(kernel).into_iter().flatten().any(is_own)
    }
}

impl Reader<'_> {
    /// Returns whether the source gives types names of its own.
    pub(super) fn names_types(&self, tokens: &[Token]) -> bool {
        tokens.iter().filter_map(|token| self.word(token)).any(|word| NAMING.contains(&word))
    }

    /// Returns whether the body of a kernel reaches memory only as `a[i]` or `a[get_global_id(0)]`, where `a` is a parameter, and `i` a variable
    /// that is a global id and never anything else. Such an index does not wrap, whatever else the body computes.
    pub(super) fn takes_ids_as_indices<'n>(
        &self,
        body: &[Token],
        params: impl Iterator<Item = (&'n str, ParamKind)>,
    ) -> bool {
        let mut pointers = Vec::new();
        for (name, kind) in params {
            match kind {
                ParamKind::Global { .. } => pointers.push(name),
                ParamKind::Value => {}
                ParamKind::Local | ParamKind::Other => return false,
            }
        }
        let word = |at: usize| body.get(at).and_then(|token| self.word(token));
        let mark = |at: usize, of: u8| body.get(at).is_some_and(|token| token.kind == TokenKind::Mark(of));
        // `get_global_id(0)` at a place, and what is behind it.
        let id_ends = |at: usize| {
            let is_number = body.get(at + 2).is_some_and(|token| token.kind == TokenKind::Number);
            let is_id = word(at) == Some("get_global_id") && mark(at + 1, b'(') && is_number && mark(at + 3, b')');
            is_id.then_some(at + 4)
        };
        // `const size_t i = get_global_id(0);`, with its own place.
        let begins_well = |at: usize| {
            let before = at.checked_sub(1);
            before.is_some_and(|at| {
                let is_begin = [b'{', b'}', b';'].iter().any(|of| mark(at, *of));
                is_begin || matches!(word(at), Some("const" | "unsigned"))
            })
        };
        let declared = |at: usize| {
            let is_type = word(at).is_some_and(|of| OF_IDS.contains(&of)) && begins_well(at);
            let ends = is_type && mark(at + 2, b'=') && id_ends(at + 3).is_some_and(|end| mark(end, b';'));
            ends.then(|| word(at + 1)).flatten().map(|name| (name, at + 1))
        };
        let ids: Vec<(&str, usize)> = (0..body.len()).filter_map(declared).collect();
        let is_id = |name: &str| ids.iter().any(|(id, _)| *id == name);
        // An assignment, or what changes a number by one, on either side; an address may lead to one.
        let is_changed = |at: usize| {
            let is_set = mark(at + 1, b'=') && !mark(at + 2, b'=');
            let is_by = b"+-*/%&|^".iter().any(|of| mark(at + 1, *of) && (mark(at + 2, b'=') || mark(at + 2, *of)));
            let is_shifted = b"<>".iter().any(|of| mark(at + 1, *of) && mark(at + 2, *of) && mark(at + 3, b'='));
            let before = |back: usize, of: u8| at.checked_sub(back).is_some_and(|at| mark(at, of));
            let is_before = b"+-".iter().any(|of| before(1, *of) && before(2, *of)) || before(1, b'&');
            // `(i) = 1` and the like; but `f(i)` and `(float)(i)` change nothing.
            let is_wrapped = before(1, b'(') && mark(at + 1, b')');
            let is_taken = at.checked_sub(2).is_some_and(|at| word(at).is_some() || mark(at, b')'));
            is_set || is_by || is_shifted || is_before || (is_wrapped && !is_taken)
        };
        (0..body.len()).all(|at| match (body[at].kind, word(at)) {
            (TokenKind::Directive, _) => false,
            (TokenKind::Mark(b'['), _) => {
                let is_of_pointer = at.checked_sub(1).and_then(word).is_some_and(|name| pointers.contains(&name));
                let end = if word(at + 1).is_some_and(is_id) { Some(at + 2) } else { id_ends(at + 1) };
                is_of_pointer && end.is_some_and(|end| mark(end, b']'))
            }
            (_, Some(name)) if pointers.contains(&name) => mark(at + 1, b'['),
            (_, Some(name)) if is_id(name) => ids.contains(&(name, at)) || !is_changed(at),
            _ => true,
        })
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
