//! Macros: which are expressions, types or names, and which are more. Those that are more are only in the way if the source uses them.

use std::collections::BTreeSet;

use super::helpers::bare;
use super::{Macro, Piece, Reader};
use crate::opencl_c::tokens::{Token, TokenKind, is_whole_number, split};
use crate::opencl_c::unreadable::Unreadable;
use crate::opencl_c::words::{DECLARING, check_word, is_keyword, is_word};

impl Reader<'_> {
    /// Reads a macro: `NAME body` or `NAME(parameters) body`.
    pub(super) fn define(&mut self, name: &str, body: &str, at: Option<usize>) -> Result<(), Unreadable> {
        let why = match self.read_macro(name, body, at) {
            Err(why @ (Unreadable::Macro(_) | Unreadable::Joins(_))) => why,
            read => return read,
        };
        let name = name.split('(').next().unwrap_or_default();
        let known = self.macros.entry(name.to_owned()).or_insert_with(Macro::new);
        known.last = at.or(known.last);
        self.unread.entry(name.to_owned()).or_insert(why);
        Ok(())
    }

    fn read_macro(&mut self, name: &str, body: &str, at: Option<usize>) -> Result<(), Unreadable> {
        let (name, params) = name.split_once('(').map_or((name, None), |(name, params)| (name, Some(params)));
        let takes_arguments = params.is_some();
        let has_params = params.is_some_and(|params| params.contains(is_word) || params.contains('.'));
        check_word(name)?;
        if is_keyword(name) {
            return Err(Unreadable::Keyword(name.to_owned()));
        }
        if body.contains("##") || body.contains("%:") {
            return Err(Unreadable::Joins(name.to_owned()));
        }
        // A number sign makes a text of an argument.
        let pieces = split(&body.replace('#', " ")).map_err(|_| Unreadable::Macro(name.to_owned()))?;
        let in_text = |at| pieces.iter().any(|token| token.kind == TokenKind::Text && token.at.contains(&at));
        if body.match_indices('#').any(|(at, _)| !in_text(at)) {
            self.found.quoting.insert(name.to_owned());
        }
        let piece = |token: &Token| match token.kind {
            TokenKind::Word => Piece::Word(body[token.at.clone()].to_owned()),
            TokenKind::Mark(mark) => Piece::Mark(mark),
            TokenKind::Number | TokenKind::Text => Piece::Other,
            TokenKind::Directive => Piece::Mark(b'#'),
        };
        let has_fraction =
            pieces.iter().any(|token| token.kind == TokenKind::Number && !is_whole_number(&body[token.at.clone()]));
        let body: Vec<Piece> = pieces.iter().map(piece).collect();
        self.functions.bare.entry(name.to_owned()).or_default().extend(bare(&body));
        self.note_calls_of_macro(name, &body, params);
        // Expressions and types, but nothing that declares something or changes what is inside of what, and no part of an attribute.
        let mut open = Vec::new();
        if body.first() == Some(&Piece::Mark(b'[')) {
            return Err(Unreadable::Macro(name.to_owned()));
        }
        for piece in &body {
            let fits = match piece {
                Piece::Mark(b'(') => {
                    open.push(b')');
                    true
                }
                Piece::Mark(b'[') => {
                    open.push(b']');
                    true
                }
                Piece::Mark(mark @ (b')' | b']')) => open.pop() == Some(*mark),
                Piece::Mark(mark) => !matches!(mark, b'{' | b'}' | b';' | b'#'),
                Piece::Word(word) => !DECLARING.contains(&word.as_str()),
                Piece::Other => true,
            };
            if !fits {
                return Err(Unreadable::Macro(name.to_owned()));
            }
        }
        if !open.is_empty() {
            return Err(Unreadable::Macro(name.to_owned()));
        }
        for piece in &body {
            if let Piece::Word(word) = piece {
                check_word(word)?;
            }
        }
        // What it was before counts too.
        let known = self.macros.entry(name.to_owned()).or_insert_with(Macro::new);
        known.takes_arguments |= takes_arguments;
        known.has_params |= has_params;
        let names = params.unwrap_or_default().split(|c: char| !is_word(c)).filter(|name| !name.is_empty());
        known.params.extend(names.map(str::to_owned));
        known.has_fraction |= has_fraction;
        known.may_be_empty |= body.is_empty();
        known.body.extend(body);
        known.last = at.or(known.last);
        Ok(())
    }

    /// Checks the macros that the source uses. `has_braces_inside`: somewhere braces are in parentheses.
    pub(super) fn check_macros(&self, tokens: &[Token], has_braces_inside: bool) -> Result<(), Unreadable> {
        let mut open: Vec<&str> = tokens.iter().filter_map(|token| self.word(token)).collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some(of) = self.macros.get(name).filter(|_| seen.insert(name)) else { continue };
            if let Some(why) = self.unread.get(name) {
                return Err(why.clone());
            }
            // It may drop some of its arguments, and the braces in them.
            if of.takes_arguments && has_braces_inside {
                return Err(Unreadable::Macro(name.to_owned()));
            }
            open.extend(
                of.body.iter().filter_map(|piece| if let Piece::Word(word) = piece { Some(&**word) } else { None }),
            );
        }
        Ok(())
    }
}

impl Macro {
    fn new() -> Self {
        Self {
            takes_arguments: false,
            has_params: false,
            params: BTreeSet::new(),
            has_fraction: false,
            may_be_empty: false,
            body: Vec::new(),
            last: None,
        }
    }
}
