//! The tokens of sources and macros while macros are replaced.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::opencl_c::tokens::{Token, TokenKind, split};
use crate::opencl_c::words::PLACES;

/// The longest token that two others become, in bytes.
const LONGEST: usize = 4_096;

/// A token, of the source or of a macro.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) text: Rc<str>,
    pub(super) kind: PieceKind,
    /// Whether there is nothing between it and the token before.
    pub(super) is_glued: bool,
    /// The macros that it comes from, which are not replaced in it.
    pub(super) hides: Rc<BTreeSet<Rc<str>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    Token(TokenKind),
    /// Two number signs, which join what is beside them.
    Join,
    /// An argument without tokens, beside such a mark.
    Nothing,
}

impl Piece {
    pub(super) fn is_mark(&self, mark: u8) -> bool {
        self.kind == PieceKind::Token(TokenKind::Mark(mark))
    }

    pub(super) fn is_word(&self) -> bool {
        self.kind == PieceKind::Token(TokenKind::Word)
    }

    pub(super) fn apart(self) -> Self {
        Self { is_glued: false, ..self }
    }
}

pub(super) fn pieces_of(text: &str, tokens: &[Token]) -> Vec<Piece> {
    let none = Rc::default();
    let mut end = None;
    let piece = |token: &Token| {
        let is_glued = end.replace(token.at.end) == Some(token.at.start);
        Piece {
            text: text[token.at.clone()].into(),
            kind: PieceKind::Token(token.kind),
            is_glued,
            hides: Rc::clone(&none),
        }
    };
    tokens.iter().map(piece).collect()
}

pub(super) fn write_pieces(all: &mut String, pieces: &[Piece]) {
    for piece in pieces {
        if !piece.is_glued {
            all.push(' ');
        }
        all.push_str(&piece.text);
    }
    all.push(' ');
}

/// Whether there are several tokens that would be read as one, such as `1e` and `+x` that a macro puts together, or one that clgraph reads as
/// several, such as `L'x'`.
pub(super) fn has_odd_tokens(pieces: &[Piece]) -> bool {
    let is = |piece: &Piece, kind| piece.kind == PieceKind::Token(kind);
    let is_text =
        |two: &[Piece]| matches!(two, [word, text] if word.is_word() && is(text, TokenKind::Text) && text.is_glued);
    let is_number = |three: &[Piece]| {
        let [number, sign, next] = three else { return false };
        is(number, TokenKind::Number)
            && number.text.ends_with(['e', 'E', 'p', 'P'])
            && (sign.is_mark(b'+') || sign.is_mark(b'-'))
            && (sign.is_glued && next.is_glued)
            && (next.is_word() || next.is_mark(b'.'))
    };
    pieces.windows(2).any(is_text) || pieces.windows(3).any(is_number)
}

pub(super) fn with(hides: &Rc<BTreeSet<Rc<str>>>, name: &Rc<str>) -> Rc<BTreeSet<Rc<str>>> {
    let mut all = BTreeSet::clone(hides);
    all.insert(Rc::clone(name));
    Rc::new(all)
}

/// Joins two tokens. None if they do not make one.
pub(super) fn joined(left: Piece, right: Piece) -> Option<Piece> {
    if right.kind == PieceKind::Nothing {
        return Some(left);
    }
    if left.kind == PieceKind::Nothing {
        return Some(Piece { is_glued: left.is_glued, ..right });
    }
    let text = format!("{}{}", left.text, right.text);
    if text.len() > LONGEST || PLACES.contains(&&*text) {
        return None;
    }
    let tokens = split(&text).ok()?;
    let [only] = &tokens[..] else { return None };
    let is_whole = only.at == (0..text.len()) && matches!(only.kind, TokenKind::Word | TokenKind::Number);
    let hides = left.hides.intersection(&right.hides).cloned().collect();
    is_whole.then(|| Piece {
        text: text.into(),
        kind: PieceKind::Token(only.kind),
        is_glued: left.is_glued,
        hides: Rc::new(hides),
    })
}
