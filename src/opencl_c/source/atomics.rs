//! Atomics on local memory that a fused kernel may have: their effect does not depend on the order of work-items.

use std::collections::BTreeSet;

use super::kernel::{ParamKind, ParamText};
use super::local::LocalText;
use super::{NotItem, Reader};
use crate::opencl_c::tokens::{Token, TokenKind};

/// Operations by what they may come between: those of one row in any order have one effect.
const KINDS: [&[&str]; 6] = [&["add", "sub", "inc", "dec"], &["min"], &["max"], &["and"], &["or"], &["xor"]];

/// Words of the types of whole numbers.
const WHOLE: [&str; 8] = ["int", "uint", "long", "ulong", "unsigned", "signed", "volatile", "*"];

/// Returns the kind of a function, by its name.
fn kind(word: &str) -> Option<usize> {
    let operation = word.strip_prefix("atomic_").or_else(|| word.strip_prefix("atom_"))?;
    KINDS.iter().position(|all| all.contains(&operation))
}

impl Reader<'_> {
    /// Returns the atomic functions that a kernel's body calls, if no effect depends on the order of work-items: each call is a
    /// statement, so that nothing sees its result; each changes a whole number in local memory; and all are of one kind. It is empty if
    /// there are others.
    pub(super) fn local_atomics(
        &self,
        body: &[Token],
        (names, each): (&[String], &[ParamText]),
        locals: &Result<Vec<LocalText>, NotItem>,
    ) -> BTreeSet<String> {
        let is_whole = |type_text: &str, of_memory: &[&str]| {
            let mut words = type_text.split_whitespace();
            words.all(|word| (WHOLE.contains(&word) || of_memory.contains(&word)) && !self.macros.contains_key(word))
        };
        let given = names.iter().zip(each).filter(|(name, param)| {
            let is_pointer = param.type_text.matches('*').count() == 1;
            param.kind == ParamKind::Local
                && is_pointer
                && is_whole(&param.type_text, &["local", "__local"])
                && !self.may_be_declared(body, name)
        });
        let own = locals.iter().flatten().filter(|local| is_whole(&local.type_text, &[]));
        let memory: BTreeSet<&str> =
            given.map(|(name, _)| name.as_str()).chain(own.map(|local| local.name.as_str())).collect();
        let (mut found, mut kinds) = (BTreeSet::new(), BTreeSet::new());
        // How much is open, and whether what was open last was the head of a statement.
        let (mut depth, mut is_head) = (0_usize, false);
        for (at, token) in body.iter().enumerate() {
            match token.kind {
                TokenKind::Mark(b'(' | b'[') => {
                    if depth == 0 {
                        let before = at.checked_sub(1).and_then(|before| self.word(&body[before]));
                        is_head = before.is_some_and(|word| ["if", "for", "while"].contains(&word));
                    }
                    depth += 1;
                }
                TokenKind::Mark(b')' | b']') => depth = depth.saturating_sub(1),
                _ => {}
            }
            let Some(word) = self.word(token).filter(|word| word.contains("atom")) else { continue };
            let begins = match at.checked_sub(1).map(|before| &body[before]) {
                Some(before) => match before.kind {
                    TokenKind::Mark(b';' | b'{' | b'}') => true,
                    TokenKind::Mark(b')') => is_head,
                    TokenKind::Word => self.word(before).is_some_and(|word| ["else", "do"].contains(&word)),
                    _ => false,
                },
                None => false,
            };
            let is_one = begins && depth == 0 && !self.macros.contains_key(word);
            let Some(kind) = kind(word).filter(|_| is_one && self.is_call_on(&body[at + 1..], &memory)) else {
                return BTreeSet::new();
            };
            found.insert(word.to_owned());
            kinds.insert(kind);
        }
        if kinds.len() > 1 { BTreeSet::new() } else { found }
    }

    /// Returns whether these are the arguments of a call, whose first is in memory of these names, and the end of a statement.
    fn is_call_on(&self, tokens: &[Token], memory: &BTreeSet<&str>) -> bool {
        let mark = |at: usize| match tokens.get(at).map(|token| token.kind) {
            Some(TokenKind::Mark(mark)) => Some(mark),
            _ => None,
        };
        let takes_address = mark(1) == Some(b'&');
        let name = if takes_address { 2 } else { 1 };
        let is_memory = tokens.get(name).and_then(|token| self.word(token)).is_some_and(|word| memory.contains(word));
        let follows = if takes_address { [b'[', b',', b')'] } else { [b'+', b',', b')'] };
        if mark(0) != Some(b'(') || !is_memory || !mark(name + 1).is_some_and(|mark| follows.contains(&mark)) {
            return false;
        }
        let (mut depth, mut is_first) = (1_usize, true);
        for (at, token) in tokens.iter().enumerate().skip(name + 1) {
            let is_bare = depth == 1 && is_first;
            match token.kind {
                TokenKind::Mark(b'(' | b'[') => depth += 1,
                TokenKind::Mark(b')' | b']') => depth -= 1,
                TokenKind::Mark(b',') if depth == 1 => is_first = false,
                // An element's address, or a sum: nothing else is outside of brackets.
                TokenKind::Mark(mark) if is_bare && (takes_address || mark != b'+') => return false,
                TokenKind::Word | TokenKind::Number if is_bare && takes_address => return false,
                TokenKind::Directive => return false,
                _ => {}
            }
            if depth == 0 {
                return mark(at + 1) == Some(b';');
            }
        }
        false
    }

    /// Whether something else may have the name in the body.
    fn may_be_declared(&self, body: &[Token], name: &str) -> bool {
        body.iter().enumerate().any(|(at, token)| {
            let before = |back: usize| at.checked_sub(back).map(|before| &body[before]);
            let is_type = |token: Option<&Token>| {
                let word = token.and_then(|token| self.word(token));
                word.is_some_and(|word| !["return", "else", "do"].contains(&word))
            };
            let is_mark = |token: Option<&Token>, mark| token.is_some_and(|token| token.kind == TokenKind::Mark(mark));
            self.word(token).is_some_and(|word| self.reached(word).contains(name))
                && (self.word(token) != Some(name)
                    || is_type(before(1))
                    || (is_mark(before(1), b'*')
                        && (is_type(before(2)) || is_mark(before(2), b',') || is_mark(before(2), b'*')))
                    || (is_mark(before(1), b',') && !self.is_enclosed(body, at)))
        })
    }

    /// Whether a token is inside of parentheses or brackets.
    fn is_enclosed(&self, body: &[Token], at: usize) -> bool {
        let open = body[..at].iter().fold(0_usize, |open, token| match token.kind {
            TokenKind::Mark(b'(' | b'[') => open + 1,
            TokenKind::Mark(b')' | b']') => open.saturating_sub(1),
            _ => open,
        });
        open > 0
    }
}
