//! Words and marks by which a source may do what this reader does not follow, wherever they are.

use std::collections::BTreeSet;

use super::{Piece, Reader};
use crate::opencl_c::tokens::{Token, TokenKind, begins_block, opening};
use crate::opencl_c::unreadable::Unreadable;
use crate::opencl_c::words::{QUALIFIERS, check_word, is_keyword, is_type};

impl Reader<'_> {
    /// Checks all words, in functions too.
    pub(super) fn words(&self, tokens: &[Token]) -> Result<(), Unreadable> {
        // Brackets that are open. One in another one may make an attribute, `[[name]]`.
        let mut open = 0_i64;
        for (at, token) in tokens.iter().enumerate() {
            if let Some(word) = self.word(token) {
                check_word(word)?;
            }
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            let is_value_type = |token: &Token| self.word(token).is_some_and(|word| is_type(word) && word != "void");
            match token.kind {
                TokenKind::Mark(b'[') if open > 0 && self.may_be_first(tokens, at) => {
                    return Err(Unreadable::Keyword("[[".to_owned()));
                }
                TokenKind::Mark(b'[') => open += 1,
                TokenKind::Mark(b']') => open -= 1,
                // A block, which may be called by any name.
                TokenKind::Mark(b'^')
                    if !before.is_some_and(|before| self.is_operand(before))
                        || begins_block(tokens, at, is_value_type) =>
                {
                    return Err(Unreadable::Keyword("^".to_owned()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The name of a function must be its own: where it is a macro, the function has another name, and where it is a keyword or a
    /// function of OpenCL C that clgraph calls, that means another thing.
    pub(super) fn check_name(&self, name: &str) -> Result<(), Unreadable> {
        if self.macros.contains_key(name) {
            return Err(Unreadable::Macro(name.to_owned()));
        }
        if is_keyword(name) || QUALIFIERS.contains(&name) || name.starts_with("__") {
            return Err(Unreadable::Keyword(name.to_owned()));
        }
        Ok(())
    }

    /// Whether a token may end what an operator has on its left.
    fn is_operand(&self, token: &Token) -> bool {
        match token.kind {
            TokenKind::Word => !self.word(token).is_some_and(|word| ["return", "else", "do", "case"].contains(&word)),
            TokenKind::Number => true,
            TokenKind::Mark(mark) => matches!(mark, b')' | b']'),
            TokenKind::Text | TokenKind::Directive => false,
        }
    }

    /// Whether a bracket, in others, may be the first thing in them: where macros are nothing, or what they are given.
    fn may_be_first(&self, tokens: &[Token], mut at: usize) -> bool {
        while let Some(before) = at.checked_sub(1) {
            let is_macro = |at: usize| self.word(&tokens[at]).is_some_and(|word| self.may_be_nothing(word));
            match tokens[before].kind {
                TokenKind::Mark(b'[' | b'(' | b',') => return true,
                TokenKind::Word if is_macro(before) => at = before,
                TokenKind::Mark(b')') => match opening(tokens, before).and_then(|begin| begin.checked_sub(1)) {
                    Some(name) if is_macro(name) => at = name,
                    _ => return false,
                },
                _ => return false,
            }
        }
        false
    }

    /// Whether a word is a macro that may be nothing, or begin with what it is given.
    fn may_be_nothing(&self, word: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![word]);
        while let Some(name) = open.pop() {
            let Some(of) = self.macros.get(name) else { return false };
            let begins_with_word = matches!(of.body.first(), Some(Piece::Word(_)));
            if of.may_be_empty || (of.has_params && begins_with_word) {
                return true;
            }
            // One that begins with a macro that may be nothing may begin with what follows: that is rare enough to be refused.
            if let Some(Piece::Word(first)) = of.body.first()
                && seen.insert(first.as_str())
            {
                open.push(first);
            }
        }
        false
    }
}
