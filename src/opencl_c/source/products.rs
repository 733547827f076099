//! Products whose factors may be constants for some work-items. A compiler that knows the work-item computes such a product itself, and one that
//! does not may contract it with the addition that follows, which rounds otherwise: see `quirks::contracts_otherwise_in_fused_kernels`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::opencl_c::source::counted::mark;
use crate::opencl_c::source::{Piece, Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind, closing, is_whole_number};
use crate::opencl_c::words::{IDS, is_keyword, is_type};

/// Functions with no product in them, and how the names of others begin.
const WITHOUT: [&str; 18] = [
    "min", "max", "clamp", "select", "abs", "fabs", "fmin", "fmax", "floor", "ceil", "trunc", "rint", "round", "sign",
    "copysign", "fma", "any", "all",
];
const BEGIN_WITHOUT: [&str; 7] = ["convert_", "as_", "vload", "vstore", "get_", "is", "atom"];

/// Words before parentheses that call nothing.
const NO_CALLS: [&str; 7] = ["if", "for", "while", "switch", "return", "sizeof", "__attribute__"];

/// The most tokens of a function that is looked at: what is longer counts as having such a product.
const MOST_TOKENS: usize = 1 << 14;

/// Of each parameter of a function: whether all calls give it something that no compiler knows.
type Given = BTreeMap<String, Vec<bool>>;

impl Source {
    /// Returns a product of a kernel, or of a function that it reaches, of which both factors may be constants for some work-items and that an
    /// addition may follow. None if there is none.
    pub(crate) fn open_product(&self, kernel: &str) -> Option<&str> {
        let found = |name: &str| self.open_products.get(name).map(String::as_str);
        let (mut open, mut seen) = (vec![kernel], BTreeSet::from([kernel]));
        while let Some(name) = open.pop() {
            if let Some(product) = found(name) {
                return Some(product);
            }
            let words = self.words.get(name).into_iter().flatten().map(String::as_str);
            open.extend(words.filter(|word| self.words.contains_key(*word) && seen.insert(word)));
        }
        None
    }
}

impl Reader<'_> {
    /// Finds such products in all functions. By name: the product, as text.
    pub(super) fn open_products(&self, tokens: &[Token]) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        if self.contracts_nothing(tokens) {
            return found;
        }
        // What a macro hands on is not known.
        let in_macros = self.macros.keys().flat_map(|name| self.pieces(name));
        let mut given: Given = in_macros
            .filter(|word| self.found.functions.contains(*word))
            .map(|word| (word.to_owned(), Vec::new()))
            .collect();
        let (mut done, mut unread) = (BTreeSet::new(), false);
        // Functions come before those that call them, but for those that are declared first: these are looked at again.
        let mut open: Vec<(usize, bool)> = (0..self.functions.defined.len()).map(|at| (at, false)).collect();
        let mut again = BTreeSet::new();
        while let Some((at, is_again)) = open.pop() {
            let (name, shape, params, body) = &self.functions.defined[at];
            let is_kernel = shape.words.iter().any(|word| matches!(*word, "kernel" | "__kernel"));
            let is_read = |token: &&Token| token.kind != TokenKind::Directive;
            let body: Vec<Token> = tokens[body.clone()].iter().filter(is_read).cloned().collect();
            if body.len() > MOST_TOKENS {
                found.insert((*name).to_owned(), format!("{name}(..)"));
                unread = true;
                continue;
            }
            let mut function = Function::new(self, &body);
            let known = given.get(*name).filter(|_| !unread && !is_again).map(Vec::as_slice).unwrap_or_default();
            function.read_params(&tokens[params.clone()], (!is_kernel).then_some(known));
            function.read_variables();
            for (callee, args) in function.calls() {
                let args: Vec<bool> = args.into_iter().map(|arg| function.is_open(arg)).collect();
                if done.contains(callee) && args.contains(&false) && again.insert(callee) {
                    let is_it = |at: &usize| self.functions.defined[*at].0 == callee;
                    open.extend((0..self.functions.defined.len()).filter(is_it).map(|at| (at, true)));
                }
                match given.get_mut(callee) {
                    Some(all) => all.iter_mut().enumerate().for_each(|(at, all)| *all &= args.get(at) == Some(&true)),
                    None => _ = given.insert(callee.to_owned(), args),
                }
            }
            done.insert(*name);
            if let Some(product) = function.product() {
                found.entry((*name).to_owned()).or_insert(product);
            }
        }
        found
    }

    /// Whether compilers contract nothing in the whole source.
    fn contracts_nothing(&self, tokens: &[Token]) -> bool {
        let begin = self.functions.defined.first().map_or(0, |(_, shape, ..)| tokens[shape.begin].at.start);
        let mut pragmas = self.places.pragmas.iter().filter(|pragma| pragma.setting.contains("FP_CONTRACT")).peekable();
        pragmas.peek().is_some_and(|first| first.at < begin)
            && pragmas.all(|pragma| pragma.setting.ends_with("OFF") && !pragma.is_conditional)
    }

    /// Whether a macro makes whole numbers of such ones.
    fn macro_is_whole(&self, name: &str) -> bool {
        let reached = self.reached(name);
        let params: BTreeSet<&str> = reached
            .iter()
            .filter_map(|word| self.macros.get(word))
            .flat_map(|of| of.params.iter().map(String::as_str))
            .collect();
        let is_fine = |word: &String| match self.macros.get(word) {
            Some(of) => !of.has_fraction,
            None => is_whole(word) || IDS.contains(&word.as_str()) || params.contains(word.as_str()),
        };
        self.macros.contains_key(name) && reached.iter().all(is_fine)
    }

    /// Whether a macro may have a product that is not one of plain numbers.
    fn macro_multiplies(&self, name: &str) -> bool {
        let has = |word: &String| {
            self.macros
                .get(word)
                .is_some_and(|of| of.body.iter().any(|piece| matches!(piece, Piece::Mark(b'*' | b'#'))))
        };
        self.macros.contains_key(name) && !self.is_number(name) && self.reached(name).iter().any(has)
    }
}

/// What a compiler may know of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    /// It may be any constant.
    Known,
    /// If it is a constant, it is 0 or a power of two.
    Plain,
    Unknown,
}

/// How many parentheses are in others at most: what is deeper counts as known.
const MOST_INSIDE: usize = 32;

/// A function, of which products are looked for.
struct Function<'a, 'r> {
    reader: &'a Reader<'r>,
    body: &'a [Token],
    /// Names of values that no compiler knows, and of memory.
    open: BTreeSet<&'r str>,
    /// Names of values that no compiler knows, or that are 0 or a power of two: such a product has nothing to round.
    plain: BTreeSet<&'r str>,
    /// Names of whole numbers.
    whole: BTreeSet<&'r str>,
}

impl<'a, 'r> Function<'a, 'r> {
    fn new(reader: &'a Reader<'r>, body: &'a [Token]) -> Self {
        Self { reader, body, open: BTreeSet::new(), plain: BTreeSet::new(), whole: BTreeSet::new() }
    }

    fn word(&self, at: usize) -> Option<&'r str> {
        let token = self.body.get(at)?;
        (token.kind == TokenKind::Word).then(|| &self.reader.text[token.at.clone()])
    }

    fn mark(&self, at: usize) -> u8 {
        mark(self.body, at)
    }

    /// Returns the word at a place if it is no member.
    fn name(&self, at: usize) -> Option<&'r str> {
        self.word(at).filter(|_| at.checked_sub(1).is_none_or(|before| self.mark(before) != b'.'))
    }

    /// `given`: of which no compiler knows what calls give; None if of none.
    fn read_params(&mut self, params: &[Token], given: Option<&[bool]>) {
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
            if is_pointer || given.is_none_or(|given| given.get(number) == Some(&true)) {
                self.open.insert(name);
            }
            if !is_pointer && types.iter().any(|word| is_whole(word)) {
                self.whole.insert(name);
            }
        }
    }

    /// Finds the variables: one is open if all that it gets is.
    fn read_variables(&mut self) {
        let (mut sets, mut never): (Vec<(&str, Range<usize>, bool)>, BTreeSet<&str>) = Default::default();
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
            let is_address =
                before == b'&' && at.checked_sub(2).is_some_and(|at| matches!(self.mark(at), b'(' | b',' | b'='));
            // An element or a member of it may be set, too.
            let mut end = at + 1;
            loop {
                end = match self.mark(end) {
                    b'[' => self.closes(end, b'[', b']'),
                    b'.' if self.word(end + 1).is_some() => end + 2,
                    _ => break,
                };
            }
            let by = self.mark(end);
            if is_address {
                never.insert(name);
            } else if self.open.contains(name) && end > at + 1 {
                // That is memory.
            } else if by == b'=' && self.mark(end + 1) != b'=' {
                sets.push((name, end + 1..self.value_ends(end + 1), false));
            } else if b"+-*/".contains(&by) && self.mark(end + 1) == b'=' {
                sets.push((name, end + 2..self.value_ends(end + 2), true));
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
                let value = if self.plain.contains(name) || self.open.contains(name) {
                    self.value(value.clone(), 0)
                } else {
                    continue;
                };
                // What a compiler does not know it does not know after an addition.
                let is_kept = value == Value::Unknown || (*adds && self.open.contains(name));
                if is_kept || (value == Value::Plain && !adds && self.plain.contains(name)) {
                    continue;
                }
                is_same = false;
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
    fn value_ends(&self, begin: usize) -> usize {
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

    /// Returns the names in a range that are not within an index.
    fn names(&self, range: Range<usize>) -> impl Iterator<Item = &'r str> {
        let mut depth = 0_usize;
        range.filter_map(move |at| {
            match self.mark(at) {
                b'[' => depth += 1,
                b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 { self.name(at) } else { None }
        })
    }

    /// Whether no compiler knows a value.
    fn is_open(&self, range: Range<usize>) -> bool {
        self.value(range, 0) == Value::Unknown
    }

    /// Returns what a compiler may know of a value, which is in so many parentheses.
    fn value(&self, range: Range<usize>, inside: usize) -> Value {
        let mut range = range;
        // Signs, casts, and parentheses around all of it.
        loop {
            let at = range.start;
            let end = if self.mark(at) == b'(' { self.group_ends(at) } else { at };
            if at < range.end && b"+-".contains(&self.mark(at)) {
                range.start += 1;
            } else if end > at && end < range.end && self.is_cast(end - 1) {
                range.start = end;
            } else if end > at && end == range.end {
                range = at + 1..end - 1;
            } else {
                break;
            }
        }
        if inside > MOST_INSIDE || range.is_empty() {
            return Value::Known;
        }
        let (mut at, mut choice, mut depth) = (range.start, None, 0_usize);
        let mut known = Value::Known;
        while at < range.end {
            match self.mark(at) {
                b'[' => {
                    at = self.closes(at, b'[', b']');
                    continue;
                }
                b'(' => {
                    let end = self.group_ends(at);
                    let has_choice = (at..end).any(|at| self.mark(at) == b'?');
                    if has_choice {
                        known = known.max(if self.value(at..end, inside + 1) == Value::Unknown {
                            Value::Unknown
                        } else {
                            Value::Known
                        });
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
                _ if self.name(at).is_some_and(|name| self.open.contains(name)) => known = Value::Unknown,
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

    /// Whether all in a range is of whole numbers, which nothing rounds.
    fn is_whole(&self, range: Range<usize>) -> bool {
        let is_number = |at: usize| {
            let token = &self.body[at];
            token.kind != TokenKind::Number || is_whole_number(&self.reader.text[token.at.clone()])
        };
        let is_name = |name: &str| {
            self.whole.contains(name) || is_whole(name) || IDS.contains(&name) || self.reader.macro_is_whole(name)
        };
        range.clone().all(is_number) && self.names(range).all(is_name)
    }

    /// Returns the first product whose factors may both be constants, in a statement that adds something.
    fn product(&self) -> Option<String> {
        let mut depth = 0_usize;
        (0..self.body.len()).find_map(|at| {
            match self.mark(at) {
                b'[' => depth += 1,
                b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            let of = match (self.mark(at), self.name(at)) {
                _ if depth > 0 => None,
                (b'*', _) if self.mark(at + 1) != b'=' && self.ends_operand(at.checked_sub(1)?) => {
                    let all = self.operand_begins(at - 1)..self.operand_ends(at + 1);
                    (self.adds(at)).then_some(all)
                }
                (_, Some(name)) if self.reader.macro_multiplies(name) => {
                    let is_call = self.mark(at + 1) == b'(';
                    Some(at + 1..if is_call { self.group_ends(at + 1) } else { at + 1 })
                }
                (_, Some(name)) if self.mark(at + 1) == b'(' && self.may_multiply(name) => {
                    // `mad(x, y, z)` is a product of the first two.
                    let end = self.args(at + 1).get(1).filter(|_| name == "mad").map(|second| second.end);
                    Some(at + 1..end.unwrap_or_else(|| self.group_ends(at + 1)))
                }
                _ => None,
            }?;
            let text = |of: Range<usize>| {
                let (first, last) = (&self.body[of.start], &self.body[of.end.min(self.body.len()) - 1]);
                self.reader.text[first.at.start..last.at.end].to_owned()
            };
            let begin = if self.mark(at) == b'*' { of.start } else { at };
            // A macro may multiply whole numbers by others.
            let is_whole = self
                .name(begin)
                .is_none_or(|name| !self.reader.macro_multiplies(name) || self.reader.macro_is_whole(name));
            let is_fine = self.rounds_nothing(of.clone()) || (is_whole && self.is_whole(of.clone()));
            (!is_fine).then(|| text(begin..of.end.max(begin + 1)))
        })
    }

    /// Whether one of the factors, or all that a function is given, is no constant for which a product is rounded.
    fn rounds_nothing(&self, range: Range<usize>) -> bool {
        let (mut begin, mut at) = (range.start, range.start);
        while at < range.end {
            at = match self.mark(at) {
                b'(' => self.group_ends(at),
                b'[' => self.closes(at, b'[', b']'),
                b'*' | b'/' => {
                    if self.value(begin..at, 0) > Value::Known {
                        return true;
                    }
                    begin = at + 1;
                    begin
                }
                _ => at + 1,
            };
        }
        self.value(begin..range.end, 0) > Value::Known
    }

    /// Whether a function of OpenCL C may multiply.
    fn may_multiply(&self, name: &str) -> bool {
        let is_own = self.reader.found.functions.contains(name) || self.reader.macros.contains_key(name);
        let is_known = is_type(name) || is_keyword(name) || NO_CALLS.contains(&name) || WITHOUT.contains(&name);
        !is_own && !is_known && !BEGIN_WITHOUT.iter().any(|begin| name.starts_with(begin))
    }

    /// Whether the statement of a place has an addition or subtraction.
    fn adds(&self, at: usize) -> bool {
        let ends = |at: &usize| matches!(self.mark(*at), b';' | b'{' | b'}');
        let begin = (0..at).rev().find(ends).map_or(0, |end| end + 1);
        let end = (at..self.body.len()).find(ends).unwrap_or(self.body.len());
        let is_sum = |at: usize| {
            let sign = self.mark(at);
            let is_step =
                self.mark(at + 1) == sign || at.checked_sub(1).is_some_and(|before| self.mark(before) == sign);
            b"+-".contains(&sign) && !is_step && at.checked_sub(1).is_some_and(|before| self.ends_operand(before))
        };
        (begin..end).any(is_sum)
    }

    /// Whether an operand may end at a place: otherwise what follows is a sign, or the star of a pointer.
    fn ends_operand(&self, at: usize) -> bool {
        let is_value = |word: &str| !is_type(word) && !NO_CALLS.contains(&word) && !is_keyword(word);
        let kind = self.body[at].kind;
        kind == TokenKind::Number || matches!(self.mark(at), b')' | b']') || self.word(at).is_some_and(is_value)
    }

    /// Returns where the product of which an operand ends at a place begins.
    fn operand_begins(&self, mut at: usize) -> usize {
        loop {
            at = match self.mark(at) {
                b')' => self.opens(at, b'(', b')'),
                b']' => self.opens(at, b'[', b']'),
                _ => at,
            };
            let Some(before) = at.checked_sub(1) else { return at };
            let is_called = b"([".contains(&self.mark(at)) && self.ends_operand(before);
            at = match self.mark(before) {
                // Of a call or an index, a cast, or a product.
                _ if is_called => before,
                b'.' if before > 0 => before - 1,
                b')' => before,
                b'*' | b'/' if before > 0 && self.ends_operand(before - 1) => before - 1,
                _ => return at,
            };
        }
    }

    /// Returns where the product of which an operand begins at a place ends.
    fn operand_ends(&self, mut at: usize) -> usize {
        while at < self.body.len() {
            at = match self.mark(at) {
                b'(' => self.group_ends(at),
                b'[' => self.closes(at, b'[', b']'),
                b'.' | b'-' | b'+' | b'~' | b'!' | b'*' | b'/' | b'&' => {
                    // Behind an operand, a sum ends it, and so does what is assigned.
                    let is_behind = at.checked_sub(1).is_some_and(|before| self.ends_operand(before));
                    let is_end = is_behind && (b"+-&!~".contains(&self.mark(at)) || self.mark(at + 1) == b'=');
                    if is_end && !self.is_cast(at - 1) {
                        return at;
                    }
                    at + 1
                }
                0 => at + 1,
                _ => return at,
            };
        }
        at
    }

    /// Whether the parenthesis that closes at a place is of a cast.
    fn is_cast(&self, at: usize) -> bool {
        let begin = if self.mark(at) == b')' { self.opens(at, b'(', b')') } else { at };
        begin + 1 < at && (begin + 1..at).all(|at| self.word(at).is_some_and(is_type))
    }

    fn opens(&self, at: usize, open: u8, close: u8) -> usize {
        let mut depth = 0_usize;
        let opens = |at: &usize| {
            let mark = self.mark(*at);
            depth += usize::from(mark == close);
            depth = depth.saturating_sub(usize::from(mark == open));
            depth == 0
        };
        (0..=at).rev().find(opens).unwrap_or(0)
    }

    fn closes(&self, at: usize, open: u8, close: u8) -> usize {
        closing(self.body, at, open, close).unwrap_or(self.body.len())
    }

    fn group_ends(&self, at: usize) -> usize {
        self.closes(at, b'(', b')')
    }

    /// Returns the arguments of a call, from its parenthesis.
    fn args(&self, begin: usize) -> Vec<Range<usize>> {
        let end = self.group_ends(begin).saturating_sub(1);
        let (mut args, mut at) = (Vec::new(), begin + 1);
        while at < end {
            let last = self.value_ends(at).min(end);
            args.push(at..last);
            at = last + 1;
        }
        args
    }

    /// Returns the calls of functions of the source.
    fn calls(&self) -> Vec<(&'r str, Vec<Range<usize>>)> {
        let call = |at: usize| {
            let name = self.name(at).filter(|name| self.reader.found.functions.contains(*name))?;
            Some((name, if self.mark(at + 1) == b'(' { self.args(at + 1) } else { Vec::new() }))
        };
        (0..self.body.len()).filter_map(call).collect()
    }
}

/// Whether a word is a type of whole numbers.
fn is_whole(word: &str) -> bool {
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
    number.is_some_and(|number| number == 0.0 || (number.is_normal() && number.to_bits() << 12 == 0))
}
