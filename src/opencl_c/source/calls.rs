//! What a kernel calls has to be read, or to be a function of OpenCL C: what a function of another name does nobody knows.

use std::collections::BTreeSet;

use super::kernel::RESTRICT;
use super::{Piece, Reader, Source};
use crate::opencl_c::builtins::is_known;
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::{
    ATTRIBUTES, HARMLESS, OF_CALLED, OF_STATEMENTS, QUALIFIERS, is_keyword, is_type, is_word,
};

/// Words before parentheses that call nothing.
const OTHERS: [&str; 15] = [
    "if",
    "for",
    "while",
    "switch",
    "return",
    "sizeof",
    "case",
    "else",
    "do",
    "alignof",
    "_Alignof",
    "__alignof__",
    "generic",
    "__generic",
    "defined",
];

/// The most pieces that are looked at in parentheses.
const MOST_LOOKED: usize = 1 << 20;

/// Those of them whose parentheses a statement may follow that begins with another one.
const CONDITIONS: [&str; 4] = ["if", "for", "while", "switch"];

impl Reader<'_> {
    /// Notes what a function calls.
    pub(super) fn note_calls(&mut self, name: &str, body: &[Token]) {
        let piece = |at: usize| match (&body[at].kind, self.word(&body[at])) {
            (_, Some(word)) if !self.has_member(body, at) => Piece::Word(word.to_owned()),
            (TokenKind::Mark(mark), _) => Piece::Mark(*mark),
            // What comes next depends on a condition: it may call the word before.
            (TokenKind::Directive, _) => Piece::Mark(b'#'),
            _ => Piece::Other,
        };
        let pieces: Vec<Piece> = (0..body.len()).map(piece).collect();
        self.found.calls.entry(name.to_owned()).or_default().extend(calls(&pieces));
    }

    /// Notes what a macro calls, and the word at its end: if what the macro gives is called, that is. `params` are the names of its arguments, if
    /// it takes any: what they are is not known.
    pub(super) fn note_calls_of_macro(&mut self, name: &str, body: &[Piece], params: Option<&str>) {
        let names: BTreeSet<&str> = params.unwrap_or_default().split(|c: char| !is_word(c)).collect();
        let known = |word: String| if names.contains(word.as_str()) { format!("{word} of {name}") } else { word };
        let called: Vec<String> = calls(body).into_iter().map(known).collect();
        self.found.calls.entry(name.to_owned()).or_default().extend(called);
        let mut inside = body;
        while let [Piece::Mark(b'('), within @ .., Piece::Mark(b')')] = inside {
            inside = within;
        }
        if params.is_some() {
            // It may be called, which says nothing of what it gives.
            self.found.ends.entry(name.to_owned()).or_default();
        }
        if let Some(Piece::Word(word)) = inside.last() {
            let given = if params.is_some() { result_of(name) } else { name.to_owned() };
            self.found.ends.entry(given).or_default().insert(known(word.clone()));
        }
    }
}

/// Returns what stands for the result of a function-like macro.
fn result_of(name: &str) -> String {
    format!("{name}()")
}

/// Returns what is called: words before parentheses, and in parentheses before others, where they may be a type too.
fn calls(pieces: &[Piece]) -> BTreeSet<String> {
    let word = |at: usize| if let Some(Piece::Word(word)) = pieces.get(at) { Some(word.as_str()) } else { None };
    let is_open = |at: usize| pieces.get(at) == Some(&Piece::Mark(b'('));
    let may_open = |at: usize| is_open(at) || pieces.get(at) == Some(&Piece::Mark(b'#'));
    let mut all = BTreeSet::new();
    // Where parentheses are open, and how many pieces were looked at in others: none is called so often.
    let (mut open, mut looked) = (Vec::new(), 0);
    for (at, piece) in pieces.iter().enumerate() {
        if looked > MOST_LOOKED {
            all.insert("(".to_owned());
            break;
        }
        match piece {
            Piece::Word(word) if may_open(at + 1) => _ = all.insert(word.clone()),
            Piece::Mark(b'(') => open.push(at),
            Piece::Mark(b')') => {
                let begin: Option<usize> = open.pop();
                let before = begin.and_then(|begin| begin.checked_sub(1)).and_then(word);
                if is_open(at + 1) && !before.is_some_and(|before| CONDITIONS.contains(&before)) {
                    all.extend(before.map(result_of));
                    all.extend(at.checked_sub(1).and_then(word).map(str::to_owned));
                    // Of a type, or of an expression that gives what is called. Only a type ends with a star.
                    let ends_with_star =
                        at.checked_sub(1).and_then(|last| pieces.get(last)) == Some(&Piece::Mark(b'*'));
                    if before.is_none_or(|before| OTHERS.contains(&before)) && !ends_with_star {
                        let inside = begin.map_or(0, |begin| begin + 1)..at;
                        looked += inside.len();
                        let is_tag = |at: usize| matches!(word(at), Some("struct" | "union" | "enum"));
                        let named = inside.filter(|at| !is_tag(at.wrapping_sub(1))).filter_map(word);
                        all.extend(named.map(str::to_owned));
                    }
                }
            }
            _ => {}
        }
    }
    all
}

impl Source {
    /// Returns something that a function, kernel or macro calls and that is not known.
    pub(super) fn unknown_call(&self, of: &str) -> Option<&str> {
        let mut open: Vec<&str> = self.calls.get(of)?.iter().map(String::as_str).collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            // The result of what is no macro is never called.
            let of_macro = self.macros.contains(name.trim_end_matches("()"));
            match self.ends.get(name) {
                Some(ends) if of_macro => open.extend(ends.iter().map(String::as_str)),
                // It may be nothing: then the word before it is called.
                None if of_macro => return Some(name),
                _ if !name.ends_with(')') && !self.is_known_call(name) => return Some(name),
                _ => {}
            }
        }
        None
    }

    fn is_known_call(&self, name: &str) -> bool {
        let lists: [&[&str]; 7] = [&OTHERS, &ATTRIBUTES, &HARMLESS, &OF_CALLED, &OF_STATEMENTS, &QUALIFIERS, &RESTRICT];
        is_type(name)
            || is_keyword(name)
            || lists.iter().any(|list| list.contains(&name))
            || self.functions.contains(name)
            || self.kernels.contains_key(name)
            || self.types.contains(name)
            || is_known(name)
    }
}
