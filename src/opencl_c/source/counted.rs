//! Whether all loops of a kernel have as many turns for each work-item. Some compilers put the loop over the work-items of a group into such
//! loops: see `quirks::fuses_by_one_item`.

use std::ops::Range;

use crate::opencl_c::source::{Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind, plain_directive};

/// The loops of a kernel and of the functions that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loops {
    None,
    /// Each has a number of turns that the text says, all work-items do all turns of all of them, and they are in the kernel itself.
    Counted,
    Others,
}

/// What begins a loop.
pub(super) const LOOPS: [&str; 4] = ["for", "while", "do", "goto"];

/// What ends a loop or a kernel early, or jumps.
const JUMPS: [&str; 7] = ["return", "break", "continue", "goto", "while", "do", "switch"];

impl Source {
    /// Returns what loops a kernel has.
    pub(crate) fn loops(&self, kernel: &str) -> Loops {
        if !self.effects(kernel).may_loop {
            return Loops::None;
        }
        let is_counted = self.kernel(kernel).is_ok_and(|text| text.counts_turns);
        // A function or macro may hide a loop or a jump.
        let own = self.words.get(kernel).into_iter().flatten().filter(|word| self.words.contains_key(*word));
        let hides = |word: &str| LOOPS.contains(&word) || JUMPS[1..].contains(&word);
        let mut own = own.filter(|word| *word != kernel);
        match is_counted && !own.any(|word| self.reaches(word, hides)) {
            true => Loops::Counted,
            false => Loops::Others,
        }
    }
}

impl Reader<'_> {
    /// Returns whether all loops in the body of a kernel have a number of turns that the text says, and nothing leaves one early, or leaves it out.
    pub(super) fn counts_turns(&self, body: &[Token]) -> bool {
        let body = self.without_pragmas(body);
        let body = body.as_slice();
        // For each block: whether all work-items run it.
        let mut blocks = Vec::new();
        // Behind the head of a loop: where its body begins.
        let mut begins_at = None;
        let mut at = 0;
        while let Some(token) = body.get(at) {
            match token.kind {
                TokenKind::Word if self.word(token).is_some_and(|word| JUMPS.contains(&word)) => return false,
                TokenKind::Word if self.word(token) == Some("for") => {
                    let is_statement = begins_at == Some(at)
                        || at.checked_sub(1).is_some_and(|before| b";{}".contains(&mark(body, before)));
                    let is_for_all = is_statement && blocks.iter().all(|is_for_all| *is_for_all);
                    let Some(end) = self.counted_head(body, at + 1).filter(|_| is_for_all) else { return false };
                    (at, begins_at) = (end, Some(end));
                    continue;
                }
                TokenKind::Mark(b'{') => {
                    let is_alone = at.checked_sub(1).is_none_or(|before| b";{}".contains(&mark(body, before)));
                    blocks.push(is_alone || begins_at == Some(at));
                }
                TokenKind::Mark(b'}') => _ = blocks.pop(),
                TokenKind::Directive => return false,
                _ => {}
            }
            at += 1;
        }
        true
    }

    /// Leaves pragmas out, which are hints in a body.
    pub(super) fn without_pragmas(&self, body: &[Token]) -> Vec<Token> {
        let is_pragma = |token: &&Token| {
            let text = || plain_directive(&self.text[token.at.clone()]);
            token.kind == TokenKind::Directive && text().trim_start_matches(['#', ' ', '\t']).starts_with("pragma")
        };
        body.iter().filter(|token| !is_pragma(token)).cloned().collect()
    }

    /// Reads the head of a loop, `(int k = 0; k < 16; ++k)`, from its parenthesis. Returns where its body begins, if nothing in `body` but the head
    /// changes its variable.
    pub(super) fn counted_head(&self, body: &[Token], at: usize) -> Option<usize> {
        let mark = |at| mark(body, at);
        let word = |at: usize| body.get(at).and_then(|token| self.word(token));
        let end = at + body.get(at..)?.iter().position(|token| token.kind == TokenKind::Mark(b')'))?;
        let parts: Vec<usize> = (at..end).filter(|at| mark(*at) == b';').collect();
        let [first, second] = parts.as_slice() else { return None };
        // `int k = 0`
        let begin = (at..*first).find(|at| mark(*at) == b'=')?;
        let variable = word(begin - 1)?;
        let is_begin = mark(at) == b'(' && begin + 2 == *first && self.counts(&body[begin + 1]);
        let is_declared = begin >= at + 3 && (at + 1..begin).all(|at| word(at).is_some());
        // `k < 16`, `k >= 1`, `k != 4`
        let compared = first + 2..second - 1;
        let is_compared = word(first + 1) == Some(variable)
            && matches!(compared.len(), 1 | 2)
            && compared.clone().all(|at| b"<>=!".contains(&mark(at)))
            && self.counts(&body[second - 1]);
        // `++k`, `k--`, `k += 2`, `k /= 2`
        let step = second + 1..end;
        let (names, others): (Vec<usize>, Vec<usize>) = step.partition(|at| word(*at) == Some(variable));
        let is_mark = |at: &usize| b"+-*/<>=".contains(&mark(*at));
        let is_step = names.len() == 1
            && others.len() >= 2
            && others.iter().filter(|at| !is_mark(at)).all(|at| self.counts(&body[*at]));
        let mut its = statement(body, end + 1);
        while word(its.end) == Some("else") {
            its.end = statement(body, its.end).end;
        }
        let is_kept = !its.clone().any(|at| word(at) == Some(variable) && changes(body, at));
        (is_begin && is_declared && is_compared && is_step && is_kept).then_some(end + 1)
    }

    /// Returns whether a token is a number, or a macro that is one.
    fn counts(&self, token: &Token) -> bool {
        token.kind == TokenKind::Number || self.word(token).is_some_and(|word| self.is_number(word))
    }
}

pub(super) fn mark(body: &[Token], at: usize) -> u8 {
    match body.get(at).map(|token| token.kind) {
        Some(TokenKind::Mark(mark)) => mark,
        _ => 0,
    }
}

/// Returns the tokens of the statement that begins at a token, without an `else` behind it.
pub(super) fn statement(body: &[Token], at: usize) -> Range<usize> {
    let mut open = 0_usize;
    let ends = |at: &usize| {
        let mark = mark(body, *at);
        open += usize::from(b"({[".contains(&mark));
        open = open.saturating_sub(usize::from(b")}]".contains(&mark)));
        open == 0 && b";}".contains(&mark)
    };
    at..(at..body.len()).find(ends).map_or(body.len(), |end| end + 1)
}

/// Returns whether a variable may be changed, or its address taken, where its name is.
fn changes(body: &[Token], at: usize) -> bool {
    let [before, last] = [2, 1].map(|back| at.checked_sub(back).map_or(0, |at| mark(body, at)));
    let [next, behind, third] = [1, 2, 3].map(|ahead| mark(body, at + ahead));
    let is_counted = |first, second| first == second && b"+-".contains(&first);
    let is_assigned = next == b'=' && behind != b'=';
    let is_changed = b"+-*/%&|^".contains(&next) && behind == b'=';
    let is_shifted = b"<>".contains(&next) && behind == next && third == b'=';
    is_counted(before, last) || is_counted(next, behind) || is_assigned || is_changed || is_shifted || last == b'&'
}
