//! Whether a source may touch memory by another type than that of the parameter that points to it.

use std::collections::BTreeSet;

use crate::opencl_c::source::kernel::RESTRICT;
use crate::opencl_c::source::{Piece, Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::{QUALIFIERS, is_type};

/// Words behind which a type can be anything. (Sources with `typeof` are not read.)
const ANY: [&str; 2] = ["union", "may_alias"];

/// Words for global memory.
const GLOBAL: [&str; 2] = ["global", "__global"];

/// Words that are a part of a type.
const OF_TYPES: [&str; 3] = ["struct", "union", "enum"];

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

/// Whether a word may be between a star and what it ends, and means nothing for it. Names that begin with `_` are the compiler's.
fn is_qualifier(word: &str) -> bool {
    QUALIFIERS.contains(&word) || RESTRICT.contains(&word) || word.starts_with('_')
}

impl Reader<'_> {
    /// Returns whether pointers may have other types than parameters: by a cast, a name for a type of pointers, `void`, a union, or a
    /// pointer to something that no kernel has as a parameter. A macro counts as if it were used.
    pub(super) fn hides_types(&self, tokens: &[Token]) -> bool {
        let piece = |token: &Token| match token.kind {
            TokenKind::Word => Piece::Word(self.text[token.at.clone()].to_owned()),
            TokenKind::Mark(mark) => Piece::Mark(mark),
            TokenKind::Number | TokenKind::Text | TokenKind::Directive => Piece::Other,
        };
        let of_macros = self.macros.values().any(|of| {
            let mut types = Types::default();
            of.body.iter().for_each(|piece| types.read(piece, self));
            // What is around the macro may begin or end it.
            let begins = of.body.first() == Some(&Piece::Mark(b'*'));
            types.found || types.behind_star || begins
        });
        let (mut all, pieces) = (Types::default(), tokens.iter().map(piece).collect::<Vec<_>>());
        pieces.iter().for_each(|piece| all.read(piece, self));
        let gives_types = || self.gives_types(&pieces) || self.macros.values().any(|of| self.gives_types(&of.body));
        of_macros || all.found || self.points_elsewhere(&pieces) || gives_types()
    }

    /// Whether a macro is nothing, or only words that mean nothing behind a star.
    fn is_nothing(&self, word: &str) -> bool {
        let is_nothing = |word: &String| {
            let plain = |piece: &Piece| matches!(piece, Piece::Word(_));
            self.macros.get(word).map_or_else(|| is_qualifier(word), |of| of.body.iter().all(plain))
        };
        self.macros.contains_key(word) && self.reached(word).iter().all(is_nothing)
    }

    /// Whether a macro that has a star gets a type, or nothing, in one of its arguments: then the star may be that of a pointer.
    fn gives_types(&self, pieces: &[Piece]) -> bool {
        let has_star = |word: &String| {
            self.macros.get(word).is_some_and(|of| of.has_params && of.body.contains(&Piece::Mark(b'*')))
        };
        let of_pointers = |word: &String| QUALIFIERS.contains(&word.as_str()) || RESTRICT.contains(&word.as_str());
        (1..pieces.len()).filter(|at| pieces[*at] == Piece::Mark(b'(')).any(|at| {
            let Piece::Word(word) = &pieces[at - 1] else { return false };
            if !self.macros.contains_key(word) || !self.reached(word).iter().any(has_star) {
                return false;
            }
            let (mut depth, mut says_nothing) = (0, true);
            for piece in &pieces[at..] {
                match piece {
                    Piece::Mark(b'(') if depth == 0 => depth = 1,
                    Piece::Mark(b')' | b',') if depth == 1 && says_nothing => return true,
                    Piece::Mark(b')') if depth == 1 => return false,
                    Piece::Mark(b',') if depth == 1 => says_nothing = true,
                    Piece::Word(word) if self.reached(word).iter().any(of_pointers) => return true,
                    Piece::Word(word) if self.is_nothing(word) => {}
                    Piece::Word(_) | Piece::Other => says_nothing = false,
                    Piece::Mark(mark) => {
                        depth += i32::from(*mark == b'(') - i32::from(*mark == b')');
                        says_nothing = false;
                    }
                }
            }
            true
        })
    }

    /// Whether a pointer to global memory, of a function or a variable, points to something that no kernel has as a parameter, so that an
    /// address of another type may be in it without a cast.
    fn points_elsewhere(&self, pieces: &[Piece]) -> bool {
        let kernels = self.found.kernels.values().filter_map(|kernel| kernel.as_ref().ok());
        let known: BTreeSet<String> = kernels.flat_map(|kernel| kernel.each()).map(|param| param.element()).collect();
        let word = |piece: &'_ Piece| if let Piece::Word(word) = piece { Some(word.clone()) } else { None };
        (0..pieces.len()).filter(|at| pieces[*at] == Piece::Mark(b'*')).any(|at| {
            let mut words: Vec<String> = pieces[..at].iter().rev().map_while(word).collect();
            words.reverse();
            let is_global = words.iter().any(|word| GLOBAL.contains(&word.as_str()));
            let is_element = |word: &String| {
                let word = word.as_str();
                OF_TYPES.contains(&word)
                    || !(QUALIFIERS.contains(&word) || RESTRICT.contains(&word) || word == "__const")
            };
            words.retain(is_element);
            is_global && !known.contains(&words.join(" "))
        })
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
    fn read(&mut self, piece: &Piece, reader: &Reader<'_>) {
        if let Piece::Word(word) = piece {
            self.found |= ANY.contains(&word.as_str());
            if is_qualifier(word) || reader.is_nothing(word) {
                // What follows in parentheses would hide what comes behind it.
                let is_open =
                    reader.macros.get(word).is_some_and(|of| of.takes_arguments) || word.starts_with("__attribute");
                self.found |= self.behind_star && is_open;
                return;
            }
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
