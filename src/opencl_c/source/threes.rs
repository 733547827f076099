//! Which functions may take or return vectors of three components: Intel's runtime loses them on the way (`quirks.rs`).

use std::collections::BTreeSet;

use crate::opencl_c::source::kernel::RESTRICT;
use crate::opencl_c::source::{Piece, Reader, Shape};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::{QUALIFIERS, is_type};

/// What is known of vectors of three components.
#[derive(Clone, Debug, Default)]
pub(super) struct Threes {
    /// Whether there are any, also where a macro has them that nothing uses.
    pub(super) are_named: bool,
    /// The functions and kernels that may take or return one, itself: not an address.
    pub(super) passed_by: BTreeSet<String>,
    /// Names for types that are none: structs and enumerations.
    structs: BTreeSet<String>,
}

const STRUCTS: [&str; 3] = ["struct", "union", "enum"];

/// Words before the types of images.
const OF_IMAGES: [&str; 6] = ["read_only", "__read_only", "write_only", "__write_only", "read_write", "__read_write"];

/// Whether a word may make a type a vector of three components.
fn makes_three(word: &str) -> bool {
    (is_type(word) && word.ends_with('3')) || word.contains("vector_size") || word.contains("vector_type")
}

impl<'a> Reader<'a> {
    /// Returns whether there are vectors of three components.
    pub(super) fn names_threes(&self, tokens: &[Token]) -> bool {
        let in_macro = |piece: &Piece| matches!(piece, Piece::Word(word) if makes_three(word));
        self.macros.values().any(|of| of.body.iter().any(in_macro))
            || tokens.iter().filter_map(|token| self.word(token)).any(makes_three)
    }

    /// Takes in the names that a declaration gives to structs.
    pub(super) fn note_structs(&mut self, shape: &Shape<'a>) {
        if shape.is_typedef && shape.words.iter().any(|word| STRUCTS.contains(word)) {
            self.found.threes.structs.extend(shape.words.iter().map(|word| (*word).to_owned()));
        }
    }

    /// Takes in a function. `params` are its parameters with their parentheses.
    pub(super) fn note_threes(&mut self, name: &str, shape: &Shape<'a>, params: &[Token]) {
        let returns: Vec<&str> = shape.words.iter().copied().filter(|word| *word != name).collect();
        let of_param = |param: &[Token]| {
            let words: Vec<&str> = param.iter().filter_map(|token| self.word(token)).collect();
            // The last one is the parameter's name, but for `void` and macros.
            let of_type = &words[..if words.len() > 1 { words.len() - 1 } else { words.len() }];
            let is_address = param.iter().any(|token| token.kind == TokenKind::Mark(b'*'));
            !is_address && self.may_be_three(of_type)
        };
        let mut params = params.split(|token| matches!(token.kind, TokenKind::Mark(b'(' | b',' | b')')));
        if (!shape.is_pointer && self.may_be_three(&returns)) || params.any(of_param) {
            self.found.threes.passed_by.insert(name.to_owned());
        }
    }

    /// Returns whether these words may be the type of a vector of three components. A name may stand for one, if the source has any.
    fn may_be_three(&self, words: &[&str]) -> bool {
        let threes = &self.found.threes;
        let is_object = |word: &str| {
            word == "sampler_t"
                || (["image1d", "image2d", "image3d"].iter().any(|of| word.starts_with(of)) && word.ends_with("_t"))
        };
        let is_word = |word: &str| {
            is_type(word)
                || is_object(word)
                || QUALIFIERS.contains(&word)
                || RESTRICT.contains(&word)
                || OF_IMAGES.contains(&word)
        };
        let is_known = |word: &&str| {
            (is_word(word) || matches!(*word, "kernel" | "__kernel") || threes.structs.contains(*word))
                && !self.macros.contains_key(*word)
        };
        words.iter().any(|word| makes_three(word))
            || (threes.are_named && !words.iter().any(|word| STRUCTS.contains(word)) && !words.iter().all(is_known))
    }
}
