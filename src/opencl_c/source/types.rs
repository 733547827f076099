//! Whether a source may touch memory by another type than that of the parameter that points to it.

use crate::opencl_c::source::kernel::RESTRICT;
use crate::opencl_c::source::{Piece, Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::{QUALIFIERS, is_type};

/// Words behind which a type can be anything. (Sources with `typeof` are not read.)
const ANY: [&str; 2] = ["union", "may_alias"];

impl Source {
    /// Returns whether it may touch memory by another type than that of a parameter.
    pub(crate) fn hides_types(&self) -> bool {
        self.hides_types
    }

    /// Returns whether the text of a type means the same in all sources.
    pub(crate) fn is_plain(&self, type_text: &str) -> bool {
        const PLAIN: [&str; 4] = ["const", "volatile", "private", "__private"];
        let is_plain = |word: &str| (is_type(word) || PLAIN.contains(&word)) && !self.macros.contains(word);
        type_text.split_whitespace().all(is_plain)
    }
}

impl Reader<'_> {
    /// Returns whether pointers may have other types than parameters: by a cast, a name for a type of pointers, `void`, or a union. A
    /// macro counts as if it were used.
    pub(super) fn hides_types(&self, tokens: &[Token]) -> bool {
        let mut all = Types::default();
        let of_macros = self.macros.values().any(|of| {
            let mut types = Types::default();
            of.body.iter().for_each(|piece| types.read(piece));
            // What follows the macro may end it.
            types.found || types.behind_star
        });
        tokens.iter().for_each(|token| {
            all.read(&match token.kind {
                TokenKind::Word => Piece::Word(self.text[token.at.clone()].to_owned()),
                TokenKind::Mark(mark) => Piece::Mark(mark),
                TokenKind::Number | TokenKind::Text | TokenKind::Directive => Piece::Other,
            });
        });
        of_macros || all.found
    }
}

#[derive(Default)]
struct Types {
    found: bool,
    /// Behind a star, and qualifiers.
    behind_star: bool,
    behind_void: bool,
    in_typedef: bool,
}

impl Types {
    fn read(&mut self, piece: &Piece) {
        if let Piece::Word(word) = piece {
            self.found |= ANY.contains(&word.as_str());
        }
        if let Piece::Word(word) = piece
            && (QUALIFIERS.contains(&word.as_str()) || RESTRICT.contains(&word.as_str()))
        {
            return;
        }
        // A product does not end in a star: so this is a type, in a cast or as the argument of a macro.
        let ends = matches!(piece, Piece::Mark(b')' | b','));
        let is_star = matches!(piece, Piece::Mark(b'*'));
        self.found |= (self.behind_star && ends) || (is_star && (self.in_typedef || self.behind_void));
        self.behind_star = is_star;
        self.behind_void = false;
        match piece {
            Piece::Word(word) => {
                self.behind_void = word == "void";
                self.in_typedef |= word == "typedef";
            }
            Piece::Mark(b';') => self.in_typedef = false,
            Piece::Mark(_) | Piece::Other => {}
        }
    }
}
