//! Atomics on local memory that a fused kernel may have: their effect does not depend on the order of work-items.

use std::collections::BTreeSet;

use super::kernel::{ParamKind, ParamText};
use super::local::LocalText;
use super::{NotItem, Piece, Reader};
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
                        is_head = before.is_some_and(|word| {
                            ["if", "for", "while"].contains(&word) && !self.macros.contains_key(word)
                        });
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
                    TokenKind::Word => self
                        .word(before)
                        .is_some_and(|word| ["else", "do"].contains(&word) && !self.macros.contains_key(word)),
                    _ => false,
                },
                None => false,
            };
            let is_own = self.macros.contains_key(word) || self.places.names.contains(word);
            let is_one = begins && depth == 0 && !is_own;
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
                // It may be more than a summand: `0 ? a : a`.
                TokenKind::Word if is_bare && self.word(token).is_some_and(|word| self.is_more(word)) => return false,
                TokenKind::Directive => return false,
                _ => {}
            }
            if depth == 0 {
                return mark(at + 1) == Some(b';');
            }
        }
        false
    }

    /// Whether a word is a macro that has marks outside of parentheses, over all that it reaches.
    fn is_more(&self, word: &str) -> bool {
        self.reached(word).iter().filter_map(|name| self.macros.get(name)).any(|of| {
            let is_one = of.body.len() <= 1;
            let encloses = of.body.first() == Some(&Piece::Mark(b'(')) && of.body.last() == Some(&Piece::Mark(b')'));
            !is_one && !encloses
        })
    }

    /// Whether something else may have the name in the body, or the name may be given another address.
    fn may_be_declared(&self, body: &[Token], name: &str) -> bool {
        const BEFORE: [&str; 6] = ["return", "else", "do", "if", "while", "sizeof"];
        body.iter().enumerate().any(|(at, token)| {
            let before = |back: usize| at.checked_sub(back).map(|before| &body[before]);
            let mark = |token: Option<&Token>| match token?.kind {
                TokenKind::Mark(mark) => Some(mark),
                _ => None,
            };
            let (one, two) = (mark(before(1)), mark(before(2)));
            let word = |back| before(back).and_then(|token| self.word(token));
            let is_type = |back| word(back).is_some_and(|word| !BEFORE.contains(&word));
            // A function that is called, and no type: `T (given) = a;`.
            let is_called = |back| {
                word(back).is_some_and(|word| {
                    BEFORE.contains(&word) || kind(word).is_some() || self.found.functions.contains(word)
                })
            };
            let opens = |back| is_type(back) && !is_called(back);
            let (next, then) = (mark(body.get(at + 1)), mark(body.get(at + 2)));
            let is_set = match next {
                Some(b'=') => then != Some(b'='),
                Some(b'+' | b'-') => then == Some(b'=') || then == next,
                _ => false,
            };
            let is_stepped = matches!(one, Some(b'+' | b'-')) && one == two;
            let is_declared = match one {
                // `struct { .. } given`, and behind an attribute.
                Some(b'}' | b')') => !self.ends_statement(body, at - 1),
                Some(b'*') => match two {
                    Some(b'(') => opens(3) || mark(before(3)) == Some(b'*'),
                    Some(b',' | b'*' | b'}' | b')') => true,
                    _ => is_type(2),
                },
                Some(b'(') => opens(2) || two == Some(b'*') || two == Some(b')'),
                Some(b',') => !self.is_argument(body, at),
                // Its own address.
                Some(b'&') => two != Some(b'&') && next != Some(b'['),
                _ => is_type(1),
            };
            self.word(token).is_some_and(|word| self.reached(word).contains(name))
                && (self.word(token) != Some(name) || is_declared || is_set || is_stepped)
        })
    }

    /// Whether what a brace or parenthesis closes is a block, or the head of a statement.
    fn ends_statement(&self, body: &[Token], at: usize) -> bool {
        let mark = |at: usize| match body[at].kind {
            TokenKind::Mark(mark) => Some(mark),
            _ => None,
        };
        let is_plain = |word: &&str| !self.macros.contains_key(*word);
        let mut closed = at;
        loop {
            let Some(before) = self.opening(body, closed).and_then(|open| open.checked_sub(1)) else { return false };
            let word = self.word(&body[before]).filter(is_plain);
            match mark(closed) {
                Some(b')') => return word.is_some_and(|word| ["if", "for", "while", "switch"].contains(&word)),
                _ if word.is_some_and(|word| ["else", "do"].contains(&word)) => return true,
                _ if matches!(mark(before), Some(b';' | b'{' | b'}')) => return true,
                _ if mark(before) == Some(b')') => closed = before,
                _ => return false,
            }
        }
    }

    /// Returns where what is closed at a place was opened.
    fn opening(&self, body: &[Token], at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        (0..=at).rev().find(|at| {
            match body[*at].kind {
                TokenKind::Mark(b')' | b']' | b'}') => depth += 1,
                TokenKind::Mark(b'(' | b'[' | b'{') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        })
    }

    /// Whether what a token is directly inside of are the parentheses of a call, and no head of a loop or braces.
    fn is_argument(&self, body: &[Token], at: usize) -> bool {
        let mut open = Vec::new();
        for (at, token) in body[..at].iter().enumerate() {
            match token.kind {
                TokenKind::Mark(b'(' | b'[' | b'{') => open.push(at),
                TokenKind::Mark(b')' | b']' | b'}') => drop(open.pop()),
                _ => {}
            }
        }
        let before = open.last().filter(|open| body[**open].kind == TokenKind::Mark(b'('));
        let before = before.and_then(|open| self.word(&body[open.checked_sub(1)?]));
        before.is_some_and(|word| word != "for")
    }
}
