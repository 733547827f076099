//! Products whose factors may be constants for some work-items. A compiler that knows the work-item computes such a product itself, and one that
//! does not may contract it with the addition that follows, which rounds otherwise: see `quirks::contracts_otherwise_in_fused_kernels`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::opencl_c::source::known::{Function, NO_CALLS, Value, is_whole};
use crate::opencl_c::source::{Piece, Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind, is_whole_number};
use crate::opencl_c::words::{IDS, is_keyword, is_type};

/// Functions with no product in them, and how the names of others begin.
const WITHOUT: [&str; 29] = [
    "min",
    "max",
    "clamp",
    "select",
    "abs",
    "fabs",
    "fmin",
    "fmax",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "round",
    "sign",
    "copysign",
    "fma",
    "any",
    "all",
    "sqrt",
    "fmod",
    "fdim",
    "ldexp",
    "step",
    "mem_fence",
    "read_mem_fence",
    "write_mem_fence",
    "work_group_barrier",
    "barrier",
    "prefetch",
];
const BEGIN_WITHOUT: [&str; 9] =
    ["read_image", "write_image", "convert_", "as_", "vload", "vstore", "get_", "is", "atom"];

/// The most tokens of a function that is looked at: what is longer counts as having such a product.
const MOST_TOKENS: usize = 1 << 14;

/// How many parentheses are in others at most: what is deeper counts so too.
const MOST_DEEP: usize = 256;

/// Of each parameter of a function: whether all calls give it something that no compiler knows. Of those that are not there that is not known.
type Given = BTreeMap<String, Vec<bool>>;

/// What is found in the functions of a source.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    /// By function: a product of which no factor is surely unknown to a compiler, as text.
    open: BTreeMap<String, String>,
    /// Functions that store in memory what a compiler may know.
    storing: BTreeSet<String>,
}

impl Source {
    /// Returns whether a kernel may store in memory what a compiler knows, for products of another one that the same work-item does.
    pub(crate) fn stores_known(&self, kernel: &str) -> bool {
        let is_it = |name: &str| self.products.storing.contains(name);
        is_it(kernel) || self.reaches(kernel, is_it)
    }

    /// Returns a product of a kernel, or of a function that it reaches, of which no factor is surely unknown to a compiler and that an
    /// addition may follow. None if there is none.
    pub(crate) fn open_product(&self, kernel: &str) -> Option<&str> {
        let found = |name: &str| self.products.open.get(name).map(String::as_str);
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
    /// Finds such products in all functions, and functions that store what a compiler may know.
    pub(super) fn products(&self, tokens: &[Token]) -> Products {
        let mut products = Products::default();
        if self.contracts_nothing(tokens) {
            return products;
        }
        let found = &mut products.open;
        // What a macro hands on is not known.
        let in_macros =
            self.macros.iter().flat_map(|(name, of)| self.pieces(name).filter(|word| !of.params.contains(*word)));
        let mut given: Given = in_macros
            .filter(|word| self.found.functions.contains(*word))
            .map(|word| (word.to_owned(), Vec::new()))
            .collect();
        let (mut done, mut unread) = (BTreeSet::new(), false);
        // Functions come before those that call them, but for those that are declared first: these are looked at again, as if nothing were known of
        // what they are given.
        let mut open: Vec<(usize, bool)> = (0..self.functions.defined.len()).map(|at| (at, false)).collect();
        let mut again = BTreeSet::new();
        while let Some((at, is_again)) = open.pop() {
            let (name, shape, params, body) = &self.functions.defined[at];
            let is_kernel = shape.words.iter().any(|word| matches!(*word, "kernel" | "__kernel"));
            let is_read = |token: &&Token| token.kind != TokenKind::Directive;
            let body: Vec<Token> = tokens[body.clone()].iter().filter(is_read).cloned().collect();
            if body.len() > MOST_TOKENS || is_deep(&body) {
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
            if function.stores_known {
                products.storing.insert((*name).to_owned());
            }
            if let Some(product) = function.product() {
                found.entry((*name).to_owned()).or_insert(product);
            }
        }
        products
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
        self.macros.contains_key(name) && !self.macro_is_written(name) && self.macro_has(name, b"*#")
    }

    /// Whether a macro may add something.
    fn macro_adds(&self, name: &str) -> bool {
        self.macros.contains_key(name) && !self.macro_is_written(name) && self.macro_has(name, b"+-#")
    }

    /// Whether a macro, or one that it reaches, has a mark outside of indices.
    fn macro_has(&self, name: &str, marks: &[u8]) -> bool {
        self.reached(name).iter().filter_map(|word| self.macros.get(word)).any(|of| {
            let mut depth = 0_usize;
            of.body.iter().any(|piece| {
                let Piece::Mark(mark) = piece else { return false };
                depth += usize::from(*mark == b'[');
                depth = depth.saturating_sub(usize::from(*mark == b']'));
                depth == 0 && marks.contains(mark)
            })
        })
    }
}

impl<'r> Function<'_, 'r> {
    /// Returns the first product of which no factor is surely unknown, in a statement that adds something.
    fn product(&self) -> Option<String> {
        // Indices are whole numbers, unless something else is converted to one. For each that is open: whether it is looked at.
        let mut indices = Vec::new();
        for at in 0..self.body.len() {
            match self.mark(at) {
                b'[' => indices.push(self.converts(at..self.closes(at, b'[', b']'))),
                b']' => _ = indices.pop(),
                _ => {}
            }
            if indices.contains(&false) {
                continue;
            }
            let found = match (self.mark(at), self.name(at)) {
                (b'*', _) if at > 0 && self.is_product(at) => self.open_chain(at),
                (_, Some(name)) if self.reader.macro_multiplies(name) => self.open_call(at, name),
                (_, Some(name)) if self.mark(at + 1) == b'(' && self.may_multiply(name) => self.open_call(at, name),
                _ => None,
            };
            if let Some(Range { start, end }) = found {
                let (first, last) = (&self.body[start], &self.body[end.clamp(start + 1, self.body.len()) - 1]);
                return Some(self.reader.text[first.at.start..last.at.end].to_owned());
            }
        }
        None
    }

    /// Whether a star is of a product, and not of a pointer.
    fn is_product(&self, at: usize) -> bool {
        !matches!(self.mark(at + 1), b'=' | b')') && self.ends_operand(at - 1)
    }

    /// Whether something in a range may be converted to a whole number.
    fn converts(&self, range: Range<usize>) -> bool {
        let is_other = |word: &str| ["convert_", "float", "double", "half"].iter().any(|part| word.starts_with(part));
        range.into_iter().any(|at| {
            let Some(token) = self.body.get(at) else { return false };
            let is_fraction = || !is_whole_number(&self.reader.text[token.at.clone()]);
            (token.kind == TokenKind::Number && is_fraction()) || self.word(at).is_some_and(is_other)
        })
    }

    /// Returns the product that a star is in, if it may be rounded and added.
    fn open_chain(&self, star: usize) -> Option<Range<usize>> {
        let all = self.operand_begins(star - 1)..self.operand_ends(star + 1);
        let is_fine = || self.rounds_nothing(all.clone()) || self.is_whole(all.clone()) || self.is_written(all.clone());
        (self.adds(star) && !is_fine()).then_some(all)
    }

    /// Returns a call, or a macro, if a product in it may be rounded.
    fn open_call(&self, at: usize, name: &str) -> Option<Range<usize>> {
        let is_call = self.mark(at + 1) == b'(';
        let (end, args) = if is_call { (self.group_ends(at + 1), self.args(at + 1)) } else { (at + 1, Vec::new()) };
        let values =
            |args: &[Range<usize>]| -> Vec<Value> { args.iter().map(|arg| self.value(arg.clone(), 0)).collect() };
        let is_fine = match args.as_slice() {
            // `mad(x, y, z)` is a product of the first two.
            [one, other, _] if name == "mad" => is_exact(&values(&[one.clone(), other.clone()])),
            args => {
                let known =
                    args.iter().all(|arg| self.value(arg.clone(), 0) > Value::Known || self.is_written(arg.clone()));
                let is_whole = || args.iter().all(|arg| self.is_whole(arg.clone()));
                let is_macro = self.reader.macros.contains_key(name);
                let is_made_whole = !is_macro || self.reader.macro_is_whole(name);
                (known && values(args).iter().any(|value| *value > Value::Known)) || (is_made_whole && is_whole())
            }
        };
        (!is_fine).then_some(at..end)
    }

    /// Whether a product of a range is of something that no compiler knows, or is exact.
    fn rounds_nothing(&self, range: Range<usize>) -> bool {
        let (mut begin, mut at, mut factors) = (range.start, range.start, Vec::new());
        while at < range.end {
            at = match self.mark(at) {
                b'(' => self.group_ends(at),
                b'[' => self.closes(at, b'[', b']'),
                b'*' | b'/' if at > begin => {
                    factors.push(self.value(begin..at, 0));
                    begin = at + 1;
                    begin
                }
                _ => at + 1,
            };
        }
        factors.push(self.value(begin..range.end, 0));
        is_exact(&factors)
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
        // `++`, `--`
        let is_step = |at: usize| self.mark(at) == self.mark(at + 1) && self.touches(at);
        let is_sum = |at: usize| {
            let Some(before) = at.checked_sub(1).filter(|_| b"+-".contains(&self.mark(at))) else { return false };
            let is_behind_step =
                before.checked_sub(1).is_some_and(|before| b"+-".contains(&self.mark(before)) && is_step(before));
            let is_arrow = self.is_arrow(at + 1);
            !is_step(at) && !is_step(before) && !is_arrow && (is_behind_step || self.ends_operand(before))
        };
        (begin..end).any(|at| is_sum(at) || self.name(at).is_some_and(|name| self.reader.macro_adds(name)))
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
                b'>' if before > 1 && self.is_arrow(before) => before - 2,
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
                b'-' if self.is_arrow(at + 1) => at + 2,
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

/// Whether the product of some values is of something that no compiler knows, or exact.
fn is_exact(factors: &[Value]) -> bool {
    let known = factors.iter().filter(|value| **value == Value::Known).count();
    // 0 or a power of two, and at most one other.
    factors.contains(&Value::Unknown) || known < 2.min(factors.len())
}

/// Whether too many parentheses are in others.
fn is_deep(body: &[Token]) -> bool {
    let mut depth = 0_usize;
    body.iter().any(|token| {
        depth += usize::from(matches!(token.kind, TokenKind::Mark(b'(' | b'[' | b'{')));
        depth = depth.saturating_sub(usize::from(matches!(token.kind, TokenKind::Mark(b')' | b']' | b'}'))));
        depth > MOST_DEEP
    })
}
