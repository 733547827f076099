//! Words and marks by which a source may do what this reader does not follow, wherever they are.

use super::{Piece, Reader};
use crate::opencl_c::tokens::{Token, TokenKind, begins_block, opening};
use crate::opencl_c::unreadable::Unreadable;
use crate::opencl_c::words::check_word;

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
            match token.kind {
                TokenKind::Mark(b'[') if open > 0 && self.may_be_first(tokens, at) => {
                    return Err(Unreadable::Keyword("[[".to_owned()));
                }
                TokenKind::Mark(b'[') => open += 1,
                TokenKind::Mark(b']') => open -= 1,
                // A block, which may be called by any name.
                TokenKind::Mark(b'^')
                    if !before.is_some_and(|before| self.is_operand(before)) || begins_block(tokens, at) =>
                {
                    return Err(Unreadable::Keyword("^".to_owned()));
                }
                _ => {}
            }
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

    /// Whether a word is a macro that may be nothing, or only what it is given.
    fn may_be_nothing(&self, word: &str) -> bool {
        let is_macro = |piece: &Piece| matches!(piece, Piece::Word(word) if self.macros.contains_key(word));
        self.macros.get(word).is_some_and(|of| of.takes_arguments || of.may_be_empty || of.body.iter().all(is_macro))
    }
}
