//! What a compiler may know of the values of a function: constants, and what it makes of ids where it knows the work-item.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::opencl_c::source::counted::mark;
use crate::opencl_c::source::{Piece, Reader};
use crate::opencl_c::tokens::{Token, TokenKind, closing, is_whole_number};
use crate::opencl_c::words::{IDS, QUALIFIERS, is_keyword, is_type};

/// Words before parentheses that call nothing.
pub(super) const NO_CALLS: [&str; 7] = ["if", "for", "while", "switch", "return", "sizeof", "__attribute__"];

/// What pointers lead to that no compiler knows.
const MEMORY: [&str; 4] = ["global", "__global", "local", "__local"];

/// Functions that make whole numbers of such ones.
const WHOLE: [&str; 8] = ["min", "max", "clamp", "abs", "mul24", "mad24", "popcount", "rotate"];

/// What a compiler may know of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    /// It may be any constant.
    Known,
    /// If it is a constant, it is 0 or a power of two.
    Plain,
    Unknown,
}

/// How many choices and lists are in others at most: what is deeper counts as known.
const MOST_INSIDE: usize = 32;

/// A function whose values are looked at.
pub(super) struct Function<'a, 'r> {
    pub(super) reader: &'a Reader<'r>,
    pub(super) body: &'a [Token],
    /// Names of values that no compiler knows.
    open: BTreeSet<&'r str>,
    /// Names of values that no compiler knows, or that are 0 or a power of two: such a number times another has nothing to round.
    plain: BTreeSet<&'r str>,
    /// Names of values that may be anything from the begin on.
    closed: BTreeSet<&'r str>,
    /// Names of pointers to memory.
    memory: BTreeSet<&'r str>,
    /// Whether what may be a constant is stored in memory.
    pub(super) stores_known: bool,
    /// Names of whole numbers.
    whole: BTreeSet<&'r str>,
}

impl<'a, 'r> Function<'a, 'r> {
    pub(super) fn new(reader: &'a Reader<'r>, body: &'a [Token]) -> Self {
        let (open, plain, closed, memory, whole) = Default::default();
        Self { reader, body, open, plain, closed, memory, stores_known: false, whole }
    }

    pub(super) fn word(&self, at: usize) -> Option<&'r str> {
        let token = self.body.get(at)?;
        (token.kind == TokenKind::Word).then(|| &self.reader.text[token.at.clone()])
    }

    pub(super) fn mark(&self, at: usize) -> u8 {
        mark(self.body, at)
    }

    /// Returns the word at a place if it is no member.
    pub(super) fn name(&self, at: usize) -> Option<&'r str> {
        self.word(at)
            .filter(|_| at.checked_sub(1).is_none_or(|before| self.mark(before) != b'.' && !self.is_arrow(before)))
    }

    /// Whether `->` ends at a place.
    pub(super) fn is_arrow(&self, at: usize) -> bool {
        self.mark(at) == b'>'
            && at.checked_sub(1).is_some_and(|before| self.mark(before) == b'-' && self.touches(before))
    }

    /// Whether nothing is between a token and the next one.
    pub(super) fn touches(&self, at: usize) -> bool {
        self.body.get(at).zip(self.body.get(at + 1)).is_some_and(|(one, next)| one.at.end == next.at.start)
    }

    /// `given`: of which no compiler knows what calls give; None if of none.
    pub(super) fn read_params(&mut self, params: &[Token], given: Option<&[bool]>) {
        let inside = params.get(1..params.len().saturating_sub(1)).unwrap_or_default();
        for (number, param) in inside.split(|token| token.kind == TokenKind::Mark(b',')).enumerate() {
            let reader = self.reader;
            let words: Vec<&'r str> = param
                .iter()
                .filter(|token| token.kind == TokenKind::Word)
                .map(|token| &reader.text[token.at.clone()])
                .collect();
            let Some((name, types)) = words.split_last() else { continue };
            let is_pointer = param.iter().any(|token| token.kind == TokenKind::Mark(b'*'));
            // Private memory may have constants.
            let is_memory = is_pointer && types.iter().any(|word| MEMORY.contains(word));
            if is_memory || given.is_none_or(|given| given.get(number) == Some(&true)) {
                self.open.insert(name);
            } else {
                self.closed.insert(name);
            }
            if is_memory {
                self.memory.insert(name);
            }
            if !is_pointer && types.iter().any(|word| is_whole(word)) {
                self.whole.insert(name);
            }
        }
    }

    /// Finds the variables: one is open if all that it gets is.
    pub(super) fn read_variables(&mut self) {
        // What each gets, and whether it is added to it.
        let mut sets: Vec<(&str, Range<usize>, bool)> = Vec::new();
        let mut never = self.closed.clone();
        // How many parentheses are open, and were at the type of whole numbers that begins this declaration.
        let (mut depth, mut type_at) = (0_usize, None);
        for at in 0..self.body.len() {
            match self.mark(at) {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth = depth.saturating_sub(1),
                b';' | b'{' | b'}' => type_at = None,
                _ => {}
            }
            type_at = type_at.filter(|of| *of <= depth);
            let Some(name) = self.name(at) else { continue };
            if is_type(name) {
                type_at = is_whole(name).then_some(depth);
                continue;
            }
            let before = at.checked_sub(1).map_or(0, |before| self.mark(before));
            let is_behind_type = before == 0 && at.checked_sub(1).and_then(|at| self.word(at)).is_some();
            if type_at == Some(depth) && (is_behind_type || before == b',') && !self.open.contains(name) {
                self.whole.insert(name);
            }
            let is_of_memory = self.memory.contains(name) && self.mark(at + 1) == b'[';
            let is_address = before == b'&'
                && !is_of_memory
                && at.checked_sub(2).is_some_and(|at| !self.ends_operand(at) || self.is_cast(at));
            // An element or a member of it may be set, too.
            let mut end = at + 1;
            loop {
                end = match self.mark(end) {
                    b'[' => self.closes(end, b'[', b']'),
                    b'.' if self.word(end + 1).is_some() => end + 2,
                    b'-' if self.is_arrow(end + 1) => end + 3,
                    _ => break,
                };
            }
            let by = self.mark(end);
            if is_address {
                never.insert(name);
            } else if by == b'=' && self.mark(end + 1) != b'=' {
                sets.push((name, end + 1..self.value_ends(end + 1), false));
            } else if b"+-*/%&|^".contains(&by) && self.mark(end + 1) == b'=' {
                sets.push((name, end + 2..self.value_ends(end + 2), true));
            } else if b"<>".contains(&by) && self.mark(end + 1) == by && self.mark(end + 2) == b'=' {
                sets.push((name, end + 3..self.value_ends(end + 3), true));
            } else if (b"+-".contains(&by) && self.mark(end + 1) == by)
                || (b"+-".contains(&before) && at.checked_sub(2).map(|at| self.mark(at)) == Some(before))
            {
                sets.push((name, end..end, true));
            }
        }
        let set = sets.iter().filter(|(.., adds)| !adds).map(|(name, ..)| *name).filter(|name| !never.contains(name));
        self.open.extend(set);
        self.open.retain(|name| !never.contains(name));
        // One that is not may be in what others get.
        loop {
            let mut is_same = true;
            for (name, value, adds) in &sets {
                if !self.plain.contains(name) && !self.open.contains(name) {
                    continue;
                }
                let value = self.value(value.clone(), 0);
                // What a compiler does not know it does not know after an addition.
                let is_kept = value == Value::Unknown || (*adds && self.open.contains(name));
                if is_kept || (value == Value::Plain && !adds && self.plain.contains(name)) {
                    continue;
                }
                is_same = false;
                // Whoever reads it may know it.
                self.stores_known |= self.memory.contains(name) && value == Value::Known;
                if self.open.remove(name) && value == Value::Plain {
                    self.plain.insert(name);
                } else {
                    self.open.remove(name);
                    self.plain.remove(name);
                }
            }
            if is_same {
                return;
            }
        }
    }

    /// Returns where a value that begins at a place ends.
    pub(super) fn value_ends(&self, begin: usize) -> usize {
        let mut depth = 0_usize;
        let ends = |at: &usize| match self.mark(*at) {
            b'(' | b'[' | b'{' => {
                depth += 1;
                false
            }
            b')' | b']' | b'}' if depth > 0 => {
                depth -= 1;
                false
            }
            b')' | b']' | b'}' | b';' => true,
            b',' => depth == 0,
            _ => false,
        };
        (begin..self.body.len()).find(ends).unwrap_or(self.body.len())
    }

    /// Returns the names in a range that are not within an index, or in what `sizeof` is asked for.
    pub(super) fn names(&self, range: Range<usize>) -> impl Iterator<Item = &'r str> {
        let (mut depth, mut behind) = (0_usize, 0);
        range.filter_map(move |at| {
            if at < behind {
                return None;
            }
            if self.word(at) == Some("sizeof") {
                behind = self.group_ends(at + 1).max(at + 1);
                return None;
            }
            match self.mark(at) {
                b'[' => depth += 1,
                b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 { self.name(at) } else { None }
        })
    }

    /// Whether no compiler knows a value.
    pub(super) fn is_open(&self, range: Range<usize>) -> bool {
        self.value(range, 0) == Value::Unknown
    }

    /// Returns what a compiler may know of a value, which is in so many parentheses.
    pub(super) fn value(&self, range: Range<usize>, inside: usize) -> Value {
        let mut range = range;
        // Signs, casts, and parentheses around all of it.
        loop {
            let at = range.start;
            let end = if self.mark(at) == b'(' { self.group_ends(at) } else { at };
            if at < range.end && b"+-".contains(&self.mark(at)) {
                range.start += 1;
            } else if end > at && end < range.end && self.is_cast(end - 1) {
                range.start = end;
            } else if self.mark(at) == b'{' && self.closes(at, b'{', b'}') == range.end {
                range = at + 1..range.end - 1;
            } else if end > at && end == range.end {
                range = at + 1..end - 1;
            } else {
                break;
            }
        }
        if inside > MOST_INSIDE || range.is_empty() {
            return Value::Known;
        }
        let first_ends = self.value_ends(range.start);
        if first_ends < range.end && self.mark(first_ends) == b',' {
            // A vector or a list.
            let (mut least, mut at) = (Value::Unknown, range.start);
            while at < range.end {
                let end = self.value_ends(at).min(range.end);
                least = least.min(self.value(at..end, inside + 1));
                at = end + 1;
            }
            return least;
        }
        let (mut at, mut choice, mut depth) = (range.start, None, 0_usize);
        let (mut known, mut groups) = (Value::Known, Vec::new());
        let may_choose = range.clone().any(|at| self.mark(at) == b'?');
        while at < range.end {
            match self.mark(at) {
                b'[' => {
                    at = self.closes(at, b'[', b']');
                    continue;
                }
                b'(' => {
                    let end = self.group_ends(at);
                    let has_choice = may_choose && (at..end).any(|at| self.mark(at) == b'?');
                    if has_choice {
                        groups.push(at..end);
                        at = end;
                        continue;
                    }
                }
                b'?' => {
                    depth += 1;
                    choice = choice.or(Some((at, None)));
                }
                b':' => {
                    depth = depth.saturating_sub(1);
                    if let Some((begin, None)) = choice.filter(|_| depth == 0) {
                        choice = Some((begin, Some(at)));
                    }
                }
                _ if self.name(at).is_some_and(|name| self.open.contains(name) || self.is_element(name)) => {
                    known = Value::Unknown
                }
                _ => {}
            }
            at += 1;
        }
        match choice {
            Some((begin, Some(middle))) => {
                let one = self.value(begin + 1..middle, inside + 1);
                return one.min(self.value(middle + 1..range.end, inside + 1));
            }
            Some(_) => return Value::Known,
            None if groups.into_iter().any(|group| self.value(group, inside + 1) == Value::Unknown) => {
                return Value::Unknown;
            }
            None => {}
        }
        let first = &self.body[range.start];
        let is_element = || self.mark(range.start + 1) == b'[' && self.closes(range.start + 1, b'[', b']') == range.end;
        let is_plain = match first.kind {
            TokenKind::Number => range.len() == 1 && is_power(&self.reader.text[first.at.clone()]),
            TokenKind::Word => {
                let is_plain = self.name(range.start).is_some_and(|name| self.plain.contains(name));
                is_plain && (range.len() == 1 || is_element())
            }
            _ => false,
        };
        if is_plain { known.max(Value::Plain) } else { known }
    }

    /// Whether a macro is an element of what no compiler knows, as `x[(row) * N + (column)]`.
    fn is_element(&self, name: &str) -> bool {
        self.reader.macros.get(name).is_some_and(|of| match of.body.as_slice() {
            [Piece::Word(word), Piece::Mark(b'['), ..] => {
                self.open.contains(word.as_str()) && !of.params.contains(word)
            }
            _ => false,
        })
    }

    /// Whether all in a range is of whole numbers, which nothing rounds.
    pub(super) fn is_whole(&self, range: Range<usize>) -> bool {
        let is_number = |at: usize| {
            let token = &self.body[at];
            token.kind != TokenKind::Number || is_whole_number(&self.reader.text[token.at.clone()])
        };
        let is_name = |name: &str| {
            let is_call = WHOLE.contains(&name) || name.starts_with("convert_int") || name.starts_with("convert_uint");
            self.whole.contains(name)
                || is_whole(name)
                || is_call
                || IDS.contains(&name)
                || self.reader.macro_is_whole(name)
        };
        range.clone().all(is_number) && self.names(range).all(is_name)
    }

    /// Whether all in a range is written as numbers: every compiler knows it, wherever it is.
    pub(super) fn is_written(&self, range: Range<usize>) -> bool {
        range.clone().all(|at| self.word(at).is_none_or(|word| is_type(word) || self.reader.macro_is_written(word)))
    }

    /// Whether an operand may end at a place: otherwise what follows is a sign, or the star of a pointer.
    pub(super) fn ends_operand(&self, at: usize) -> bool {
        let is_other = |word: &str| NO_CALLS.contains(&word) || ["else", "do", "case"].contains(&word);
        let is_value = |word: &str| !self.names_type(word) && !is_other(word) && !is_keyword(word);
        let kind = self.body[at].kind;
        kind == TokenKind::Number || matches!(self.mark(at), b')' | b']') || self.word(at).is_some_and(is_value)
    }

    /// Whether the parenthesis that closes at a place is of a cast.
    pub(super) fn is_cast(&self, at: usize) -> bool {
        let begin = if self.mark(at) == b')' { self.opens(at, b'(', b')') } else { at };
        // Of values, and of pointers.
        let is_part = |at: usize| {
            let is_word = |word: &str| self.names_type(word) || QUALIFIERS.contains(&word);
            self.mark(at) == b'*' || self.word(at).is_some_and(is_word)
        };
        let is_size = begin.checked_sub(1).and_then(|at| self.word(at)) == Some("sizeof");
        !is_size && begin + 1 < at && self.word(begin + 1).is_some() && (begin + 1..at).all(is_part)
    }

    fn names_type(&self, word: &str) -> bool {
        is_type(word) || (self.reader.functions.types.contains(word) && !self.reader.macros.contains_key(word))
    }

    pub(super) fn opens(&self, at: usize, open: u8, close: u8) -> usize {
        let mut depth = 0_usize;
        let opens = |at: &usize| {
            let mark = self.mark(*at);
            depth += usize::from(mark == close);
            depth = depth.saturating_sub(usize::from(mark == open));
            depth == 0
        };
        (0..=at).rev().find(opens).unwrap_or(0)
    }

    pub(super) fn closes(&self, at: usize, open: u8, close: u8) -> usize {
        closing(self.body, at, open, close).unwrap_or(self.body.len())
    }

    pub(super) fn group_ends(&self, at: usize) -> usize {
        self.closes(at, b'(', b')')
    }

    /// Returns the arguments of a call, from its parenthesis.
    pub(super) fn args(&self, begin: usize) -> Vec<Range<usize>> {
        let end = self.group_ends(begin).saturating_sub(1);
        let (mut args, mut at) = (Vec::new(), begin + 1);
        while at < end {
            let last = self.value_ends(at).min(end);
            args.push(at..last);
            at = last + 1;
        }
        args
    }
}

/// Whether a word is a type of whole numbers.
pub(super) fn is_whole(word: &str) -> bool {
    let is_other = ["float", "double", "half", "void"].iter().any(|other| word.starts_with(other));
    is_type(word) && !is_other
}

/// Whether a number is 0 or a power of two.
fn is_power(text: &str) -> bool {
    let number: Option<f64> = match is_whole_number(text) {
        true => text.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok(),
        false => text.trim_end_matches(['f', 'F', 'h', 'H']).parse().ok(),
    };
    // All bits of the fraction are zero.
    let number = number.filter(|_| !text.starts_with("0x") && !text.starts_with("0X"));
    number.is_some_and(|number| number == 0.0 || (number.is_normal() && number.to_bits() << 12 == 0))
}
