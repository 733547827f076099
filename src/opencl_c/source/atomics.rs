//! Atomics on local memory that a fused kernel may have: their effect does not depend on the order of work-items.

use std::collections::BTreeSet;

use super::local::LocalText;
use super::{Piece, Reader};
use crate::opencl_c::tokens::{Token, TokenKind};

/// Operations by what they may come between: those of one row in any order have one effect.
const KINDS: [&[&str]; 6] = [&["add", "sub", "inc", "dec"], &["min"], &["max"], &["and"], &["or"], &["xor"]];

/// Words of the types of whole numbers.
const WHOLE: [&str; 7] = ["int", "uint", "long", "ulong", "unsigned", "signed", "volatile"];

/// Returns the kind of a function, by its name.
fn kind(word: &str) -> Option<usize> {
    let operation = word.strip_prefix("atomic_").or_else(|| word.strip_prefix("atom_"))?;
    KINDS.iter().position(|all| all.contains(&operation))
}

fn mark(token: Option<&Token>) -> Option<u8> {
    match token?.kind {
        TokenKind::Mark(mark) => Some(mark),
        _ => None,
    }
}

impl Reader<'_> {
    /// Returns the atomic functions that a kernel's body calls, if no effect depends on the order of work-items: each call is a
    /// statement, so that nothing sees its result; each changes a whole number of the kernel's own in local memory; and all are of one
    /// kind. It is empty if there are others.
    ///
    /// Memory of a parameter is left out: without scopes nobody knows what else has its name. Nothing else can have that of a local
    /// variable, because it is a macro in the function that the kernel becomes.
    pub(super) fn local_atomics(&self, body: &[Token], locals: &[LocalText]) -> BTreeSet<String> {
        let is_whole = |word: &str| WHOLE.contains(&word) && !self.macros.contains_key(word);
        let own = locals.iter().filter(|local| local.type_text.split_whitespace().all(is_whole));
        let memory: BTreeSet<&str> = own.map(|local| local.name.as_str()).collect();
        let is_plain = |word: &str, words: &[&str]| words.contains(&word) && !self.macros.contains_key(word);
        let (mut found, mut kinds) = (BTreeSet::new(), BTreeSet::new());
        // How much is open, and whether what was open last was the head of a statement.
        let (mut depth, mut is_head) = (0_usize, false);
        for (at, token) in body.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &body[before]);
            let word_before = before.and_then(|before| self.word(before));
            match token.kind {
                TokenKind::Mark(b'(' | b'[') => {
                    if depth == 0 {
                        is_head = word_before.is_some_and(|word| is_plain(word, &["if", "for", "while"]));
                    }
                    depth += 1;
                }
                TokenKind::Mark(b')' | b']') => depth = depth.saturating_sub(1),
                _ => {}
            }
            let Some(word) = self.word(token).filter(|word| word.contains("atom")) else { continue };
            let begins = match mark(before) {
                Some(b';' | b'{' | b'}') => true,
                Some(b')') => is_head,
                _ => word_before.is_some_and(|word| is_plain(word, &["else", "do"])),
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
        let takes_address = mark(tokens.get(1)) == Some(b'&');
        let name = if takes_address { 2 } else { 1 };
        let is_memory = tokens.get(name).and_then(|token| self.word(token)).is_some_and(|word| memory.contains(word));
        let follows = if takes_address { [b'[', b',', b')'] } else { [b'+', b',', b')'] };
        let is_followed = mark(tokens.get(name + 1)).is_some_and(|mark| follows.contains(&mark));
        if mark(tokens.first()) != Some(b'(') || !is_memory || !is_followed {
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
                TokenKind::Word if is_bare && self.word(token).is_some_and(|word| self.is_more(word)) => return false,
                TokenKind::Directive => return false,
                _ => {}
            }
            if depth == 0 {
                return mark(tokens.get(at + 1)) == Some(b';');
            }
        }
        false
    }

    /// Whether a word is a macro that may be more than a summand, over all that it reaches: `0 ? a : a`.
    fn is_more(&self, word: &str) -> bool {
        self.reached(word).iter().filter_map(|name| self.macros.get(name)).any(|of| {
            let is_one = of.body.len() <= 1;
            let encloses = of.body.first() == Some(&Piece::Mark(b'(')) && of.body.last() == Some(&Piece::Mark(b')'));
            !is_one && !encloses
        })
    }
}
