//! Local variables of kernels. A fused kernel declares them itself, because functions may not have any.

use std::ops::Range;

use super::later::is_variable;
use super::{NotItem, Piece, Reader};
use crate::opencl_c::tokens::{Token, TokenKind, plain_directive};
use crate::opencl_c::words::{HERE, QUALIFIERS, is_type, is_word};

/// A local variable of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalText {
    /// Its type, without the word for local memory.
    pub(in crate::opencl_c) type_text: String,
    pub(in crate::opencl_c) name: String,
    /// Its dimensions, with brackets. Empty if it is no array.
    pub(in crate::opencl_c) dims: String,
    /// The bytes of the source that declare it, with the semicolon. Variables that are declared together have the same.
    pub(in crate::opencl_c) at: Range<usize>,
}

/// Words before the name of a local variable that are no type.
const PLAIN: [&str; 3] = ["const", "volatile", "struct"];

impl Reader<'_> {
    /// Reads the local variables of a kernel's body. A pointer to local memory is none.
    pub(super) fn locals(&self, body: &[Token], params: &[String]) -> Result<Vec<LocalText>, NotItem> {
        let mut all: Vec<LocalText> = Vec::new();
        // Where the statement begins, and how much is open.
        let (mut begin, mut depth, mut conditions) = (0, 0_usize, 0_usize);
        let mut at = 0;
        while let Some(token) = body.get(at) {
            match token.kind {
                TokenKind::Mark(b'{' | b'(' | b'[') => depth += 1,
                TokenKind::Mark(b'}' | b')' | b']') => depth = depth.saturating_sub(1),
                TokenKind::Directive => {
                    let plain = plain_directive(&self.text[token.at.clone()]);
                    let line = plain.trim_start_matches('#').trim_start();
                    conditions += usize::from(line.starts_with("if"));
                    conditions = conditions.saturating_sub(usize::from(line.starts_with("endif")));
                }
                _ => {}
            }
            let ends = matches!(token.kind, TokenKind::Mark(b'{' | b'}' | b';') | TokenKind::Directive);
            if self.word(token).is_some_and(|word| HERE.contains(&word)) && is_variable(body, at) {
                let end = body[at..].iter().position(|token| token.kind == TokenKind::Mark(b';'));
                let found = end.filter(|_| depth == 1 && conditions == 0).map(|end| at + end);
                let declared = found.and_then(|end| self.declared_local(&body[begin..=end], params, &all));
                let (Some(end), Some(declared)) = (found, declared) else {
                    let name = body[at..]
                        .iter()
                        .filter_map(|token| self.word(token))
                        .find(|word| !HERE.contains(word) && !is_type(word) && !PLAIN.contains(word));
                    return Err(NotItem::Local(name.unwrap_or("local").to_owned()));
                };
                all.extend(declared);
                (at, begin) = (end + 1, end + 1);
                continue;
            }
            at += 1;
            let is_open = begin + 1 < at;
            if ends && !(is_open && token.kind == TokenKind::Directive) {
                begin = at;
            }
        }
        // A type of the body's own may hide one of OpenCL C's, which the fused kernel would take: `typedef float uint;`.
        let mut words = body.iter().filter_map(|token| self.word(token));
        if let Some(local) = all.first()
            && words.any(|word| self.reached(word).contains("typedef"))
        {
            return Err(NotItem::Local(local.name.clone()));
        }
        match all.iter().find(|local| !self.is_plainly_used(body, local)) {
            Some(local) => Err(NotItem::Local(local.name.clone())),
            None => Ok(all),
        }
    }

    /// Reads a statement that declares local variables. None if it is not plain.
    fn declared_local(&self, statement: &[Token], params: &[String], known: &[LocalText]) -> Option<Vec<LocalText>> {
        let (first, last) = (statement.first()?, statement.last()?);
        let at = first.at.start..last.at.end;
        let mut tokens = statement[..statement.len() - 1].iter().peekable();
        let mut words: Vec<&str> = Vec::new();
        while let Some(word) = tokens.peek().and_then(|token| self.word(token)) {
            words.push(word);
            tokens.next();
        }
        let mut name = words.pop()?;
        let types: Vec<&str> = words.into_iter().filter(|word| !HERE.contains(word)).collect();
        if types.is_empty() || !types.iter().all(|word| self.is_type_of_local(word)) {
            return None;
        }
        let mut all: Vec<LocalText> = Vec::new();
        loop {
            let is_known = |other: &str| {
                let mut locals = known.iter().chain(&all);
                locals.any(|local| local.name == other) || params.iter().any(|param| param == other)
            };
            if is_type(name) || QUALIFIERS.contains(&name) || self.macros.contains_key(name) || is_known(name) {
                return None;
            }
            let mut dims = String::new();
            let mut depth = 0;
            let next = loop {
                let Some(token) = tokens.next() else { break None };
                match token.kind {
                    TokenKind::Mark(b'[') => depth += 1,
                    TokenKind::Mark(b']') if depth > 0 => depth -= 1,
                    TokenKind::Mark(b',') if depth == 0 => break tokens.next(),
                    TokenKind::Mark(b'(' | b')' | b'+' | b'-' | b'*' | b'/' | b'<' | b'>') | TokenKind::Number
                        if depth > 0 => {}
                    TokenKind::Word if depth > 0 && self.word(token).is_some_and(|word| self.is_number(word)) => {}
                    _ => return None,
                }
                dims.push_str(&self.text[token.at.clone()]);
                dims.push(' ');
            };
            all.push(LocalText { type_text: types.join(" "), name: name.to_owned(), dims, at: at.clone() });
            match next {
                None => return Some(all),
                Some(token) => name = self.word(token)?,
            }
        }
    }

    /// Whether a word of a type means the same outside of the body. Names of the source's own types may be hidden by the body's.
    fn is_type_of_local(&self, word: &str) -> bool {
        let is_plain = |word: &str| is_type(word) || PLAIN[..2].contains(&word);
        is_plain(word)
            || (self.macros.contains_key(word) && self.macro_has_only(word, is_plain) && self.is_without_marks(word))
    }

    /// Whether a word is a macro that is a number.
    pub(super) fn is_number(&self, word: &str) -> bool {
        self.macros.contains_key(word) && self.macro_has_only(word, |_| false)
    }

    /// Whether a macro, and all macros that it reaches, has no marks.
    fn is_without_marks(&self, word: &str) -> bool {
        let is_word = |piece: &Piece| matches!(piece, Piece::Word(_));
        let has_words = |word: &String| self.macros.get(word).is_none_or(|of| of.body.iter().all(is_word));
        self.reached(word).iter().all(has_words)
    }

    /// Whether a macro has, over all macros that it reaches, only words that are macros or such.
    fn macro_has_only(&self, word: &str, is_such: impl Fn(&str) -> bool) -> bool {
        let is_fine = |word: &String| self.macros.contains_key(word) || is_such(word);
        self.reached(word).iter().all(is_fine)
    }

    /// Whether each use of a local variable means the same where its name is a macro: nothing else has the name before, no condition
    /// asks for it, and it is no member's. Declarations of that name in inner blocks do not compile then; where a type says that there is
    /// one, this returns false, so that other kernels are fused.
    fn is_plainly_used(&self, body: &[Token], local: &LocalText) -> bool {
        let name = local.name.as_str();
        body.iter().enumerate().all(|(at, token)| match token.kind {
            TokenKind::Directive => {
                let plain = plain_directive(&self.text[token.at.clone()]);
                let mut words = plain.split(|c| !is_word(c)).filter(|word| !word.is_empty());
                !words.any(|word| self.reached(word).contains(name))
            }
            TokenKind::Word if token.at.start < local.at.start => {
                let word = &self.text[token.at.clone()];
                self.has_member(body, at) || (word != name && !self.reached(word).contains(name))
            }
            TokenKind::Word if token.at.start >= local.at.end && &self.text[token.at.clone()] == name => {
                let before = at.checked_sub(1).and_then(|before| self.word(&body[before]));
                !self.has_member(body, at) && !before.is_some_and(is_type)
            }
            _ => true,
        })
    }
}
