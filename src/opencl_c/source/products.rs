//! Products whose factors may be constants for some work-items. A compiler that knows the work-item computes such a product itself, and one that
//! does not may contract it with the addition that follows, which rounds otherwise: see `quirks::contracts_otherwise_in_fused_kernels`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::opencl_c::source::known::{Function, NO_CALLS, Value, is_whole};
use crate::opencl_c::source::{Macro, Piece, Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::{IDS, is_keyword, is_type};

/// Functions with no product in them, and how the names of others begin.
const WITHOUT: [&str; 18] = [
    "min", "max", "clamp", "select", "abs", "fabs", "fmin", "fmax", "floor", "ceil", "trunc", "rint", "round", "sign",
    "copysign", "fma", "any", "all",
];
const BEGIN_WITHOUT: [&str; 7] = ["convert_", "as_", "vload", "vstore", "get_", "is", "atom"];

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
        let in_macro = |(name, of): (&'_ String, &'_ Macro)| {
            let words: Vec<&str> = self.pieces(name).filter(|word| !of.params.contains(*word)).collect();
            words
        };
        let in_macros = self.macros.iter().flat_map(in_macro);
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

    /// Whether a macro has nothing but numbers, and types to which they are converted.
    pub(super) fn macro_is_written(&self, name: &str) -> bool {
        let is_fine = |word: &String| self.macros.contains_key(word) || is_type(word);
        self.macros.contains_key(name) && self.reached(name).iter().all(is_fine)
    }

    /// Whether a macro makes whole numbers of such ones.
    pub(super) fn macro_is_whole(&self, name: &str) -> bool {
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
        self.macros.contains_key(name) && !self.macro_is_written(name) && self.reached(name).iter().any(has)
    }
}

impl<'r> Function<'_, 'r> {
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
            let is_fine = self.rounds_nothing(of.clone())
                || (is_whole && self.is_whole(of.clone()))
                || (begin == of.start && self.is_written(of.clone()));
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

    /// Returns the calls of functions of the source.
    fn calls(&self) -> Vec<(&'r str, Vec<Range<usize>>)> {
        let call = |at: usize| {
            let name = self.name(at).filter(|name| self.reader.found.functions.contains(*name))?;
            Some((name, if self.mark(at + 1) == b'(' { self.args(at + 1) } else { Vec::new() }))
        };
        (0..self.body.len()).filter_map(call).collect()
    }
}
