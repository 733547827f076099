//! Functions that ask for ids, and that kernels call. Where a kernel is written again with ids of its own, they are too, and macros stand
//! for their names. So each of these names must be followed by the mark that calls it: a macro stands for no other, and the old function
//! would ask the driver.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::ops::Range;

use super::kernel::{KernelText, NotItem};
use super::later::is_member;
use super::{Piece, Reader, Shape, Source};
use crate::opencl_c::builtins::is_builtin;
use crate::opencl_c::tokens::{Token, TokenKind, closing, plain_directive};
use crate::opencl_c::unreadable::Unreadable;
use crate::opencl_c::words::{ATTRIBUTES, HARMLESS, IDS, LINKING, OF_CALLED, OF_STATEMENTS, is_word};

/// What is known of functions before it is known which of them ask for ids.
#[derive(Default)]
pub(super) struct Functions<'a> {
    /// All definitions, in order: the name, what is before the body, and where the parameters and the body are.
    pub(super) defined: Vec<(&'a str, Shape<'a>, Range<usize>, Range<usize>)>,
    /// The names in each macro that may be those of functions, and that nothing calls.
    pub(super) bare: BTreeMap<String, BTreeSet<String>>,
    /// Attributes of prototypes that may change what a function does.
    attributes: BTreeMap<&'a str, &'a str>,
    /// Words of declarations that give names to types.
    pub(super) types: BTreeSet<&'a str>,
}

/// How a text uses names that may be those of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    /// Those that stand without the mark that calls a function, or where one may be declared.
    pub(super) bare: BTreeSet<String>,
    /// Those for which conditions of the preprocessor ask.
    asked: BTreeSet<String>,
}

/// Words that may be before a call.
const BEFORE_CALLS: [&str; 5] = ["return", "else", "do", "case", "sizeof"];

/// Whether a word calls a function of its name. `before` is the word before it: behind another one, a function may be declared.
fn calls(word: &str, before: Option<&str>, is_called: bool) -> bool {
    is_called && (IDS.contains(&word) || before.is_none_or(|before| BEFORE_CALLS.contains(&before)))
}

/// Returns the words of a macro that call no function, without members.
pub(super) fn bare(body: &[Piece]) -> impl Iterator<Item = String> + '_ {
    body.iter().enumerate().filter_map(|(at, piece)| {
        let Piece::Word(word) = piece else { return None };
        let mark =
            |before: usize| if let Piece::Mark(mark) = body.get(at.checked_sub(before)?)? { Some(*mark) } else { None };
        let before =
            at.checked_sub(1).and_then(|at| if let Piece::Word(word) = &body[at] { Some(word.as_str()) } else { None });
        let is_called = body.get(at + 1) == Some(&Piece::Mark(b'('));
        (!calls(word, before, is_called) && !is_member(mark)).then(|| word.clone())
    })
}

/// Returns what is read of a kernel, or of another function that asks for ids.
pub(super) fn text_of<'a>(found: &'a mut Source, name: &str) -> Option<&'a mut KernelText> {
    match found.kernels.get_mut(name) {
        Some(kernel) => kernel.as_mut().ok(),
        None => found.helpers.get_mut(name)?.as_mut().ok(),
    }
}

fn is_kernel(shape: &Shape<'_>) -> bool {
    shape.words.iter().any(|word| matches!(*word, "kernel" | "__kernel"))
}

impl<'a> Reader<'a> {
    /// Remembers the attributes of a prototype.
    pub(super) fn prototype(&mut self, name: &'a str, shape: &Shape<'a>, tokens: &[Token]) {
        let of = |range: &Range<usize>| self.unknown_attribute(&tokens[range.clone()], &HARMLESS);
        if let Some(word) = shape.attributes.iter().find_map(of) {
            self.functions.attributes.insert(name, word);
        }
    }

    /// Remembers a function if an attribute of it may matter where its calls are in a fused kernel.
    pub(super) fn note_attributes(&mut self, name: &str, shape: &Shape<'a>, tokens: &[Token]) {
        let known = [&HARMLESS[..], &OF_CALLED].concat();
        let of = |range: &Range<usize>| self.unknown_attribute(&tokens[range.clone()], &known);
        if !is_kernel(shape)
            && let Some(word) = shape.attributes.iter().find_map(of)
        {
            self.found.attributes.insert(name.to_owned(), word.to_owned());
        }
    }

    /// Remembers a function or kernel if there are such attributes inside of it, of a prototype maybe.
    pub(super) fn note_attributes_inside(&mut self, name: &str, body: &[Token]) {
        let known = [&HARMLESS[..], &OF_CALLED, &OF_STATEMENTS].concat();
        for (at, token) in body.iter().enumerate() {
            if matches!(self.word(token), Some("__attribute__" | "__attribute"))
                && let Some(end) = closing(body, at + 1, b'(', b')')
                && let Some(word) = self.unknown_attribute(&body[at + 1..end], &known)
            {
                self.found.attributes.insert(name.to_owned(), word.to_owned());
            }
        }
    }

    /// Returns what is before the name of a function where it is written again.
    pub(super) fn head(&self, name: &str, shape: &Shape<'a>, tokens: &[Token], end: usize) -> Result<String, NotItem> {
        let unknown = |word: &str| Err(NotItem::Attribute(word.to_owned()));
        let is_kernel = is_kernel(shape);
        let known: &[&str] = if is_kernel { &ATTRIBUTES } else { &HARMLESS };
        let of = |range: &Range<usize>| self.unknown_attribute(&tokens[range.clone()], known);
        let (attribute, known) = (shape.attributes.iter().find_map(of), ["kernel", "__kernel", "void", name]);
        if is_kernel {
            let other = shape.words.iter().copied().find(|word| !known.contains(word));
            return other.or(attribute).map_or_else(|| Ok("void".to_owned()), unknown);
        }
        if let Some(word) = attribute.or_else(|| self.functions.attributes.get(name).copied()) {
            return unknown(word);
        }
        let (mut words, mut at) = (Vec::new(), shape.begin);
        let own_name = shape.params.as_ref().map_or(shape.begin, |params| params.start.saturating_sub(1));
        while at < own_name {
            let skipped = shape.attributes.iter().find(|range| range.start == at + 1);
            if let Some(range) = skipped {
                at = range.end;
                continue;
            }
            let token = &tokens[at];
            at += 1;
            match (token.kind, self.word(token)) {
                (TokenKind::Mark(b'*'), _) => words.push("*"),
                (_, Some("extern")) => return unknown("extern"),
                (_, Some(word)) => {
                    self.check_later(word, end).map_err(NotItem::Unreadable)?;
                    // Macros may hide such words too.
                    let is_left_out =
                        |word: &String| LINKING.contains(&word.as_str()) || self.macros.contains_key(word);
                    let reached = self.reached(word);
                    if reached.iter().any(|word| word == "extern" || LINKING.contains(&word.as_str()))
                        && !reached.iter().all(is_left_out)
                    {
                        return unknown(word);
                    }
                    if !reached.iter().all(is_left_out) {
                        words.push(word);
                    }
                }
                _ => return unknown(&self.text[token.at.clone()]),
            }
        }
        if words.is_empty() {
            // No type.
            return unknown(name);
        }
        let of_functions = |range: &Range<usize>| &tokens[range.clone()];
        let mut attributes = shape.attributes.iter().flat_map(of_functions).filter_map(|token| self.word(token));
        let keeps_out = attributes.any(|word| matches!(word, "noinline" | "__noinline__"));
        Ok(format!("{}{}", if keeps_out { "__attribute__((noinline)) " } else { "" }, words.join(" ")))
    }

    /// Returns how a function uses names. `params` are without parentheses.
    pub(super) fn uses(&self, params: &[Token], body: &[Token]) -> Uses {
        let mut uses = Uses::default();
        uses.bare.extend(params.iter().filter_map(|token| self.word(token)).map(str::to_owned));
        for (at, token) in body.iter().enumerate() {
            if token.kind == TokenKind::Directive {
                let plain = plain_directive(&self.text[token.at.clone()]);
                let words = plain.split(|c| !is_word(c)).filter(|word| !word.is_empty());
                uses.asked.extend(words.skip(1).flat_map(|word| self.reached(word)));
            }
            let Some(word) = self.word(token) else { continue };
            let before = at.checked_sub(1).and_then(|before| self.word(&body[before]));
            let is_called = body.get(at + 1).is_some_and(|next| next.kind == TokenKind::Mark(b'('));
            if !calls(word, before, is_called) && !self.has_member(body, at) {
                uses.bare.insert(word.to_owned());
            }
        }
        uses
    }

    /// Reads the functions that ask for ids, when all is declared.
    pub(super) fn helpers(&mut self, tokens: &[Token]) {
        let (asking, defined) = (self.asking(), take(&mut self.functions.defined));
        let conditional = self.conditional(tokens);
        for (name, shape, params, body) in defined {
            if !asking.contains(name) {
                continue;
            }
            let depth = conditional.partition_point(|(at, _)| *at < shape.begin);
            let is_conditional = depth.checked_sub(1).is_some_and(|at| conditional[at].1 > 0);
            let read = if self.found.helpers.contains_key(name) {
                Err(NotItem::Twice)
            } else if is_kernel(&shape) {
                Err(NotItem::Kernel(name.to_owned()))
            } else if is_conditional {
                Err(NotItem::Conditional)
            } else if self.places.is_overloaded(name) || is_builtin(name) {
                Err(NotItem::Overloaded)
            } else {
                self.kernel(name, &shape, tokens, params, body).map_err(|why| match why {
                    Unreadable::Params => NotItem::Params,
                    other => NotItem::Unreadable(other),
                })
            };
            self.found.helpers.insert(name.to_owned(), read);
        }
        let Source { kernels, helpers, naming_ids, .. } = &mut self.found;
        let names: BTreeSet<String> = helpers.keys().cloned().collect();
        let texts = kernels.values_mut().filter_map(|text| text.as_mut().ok());
        for text in texts.chain(helpers.values_mut().filter_map(|text| text.as_mut().ok())) {
            let uses = take(&mut text.uses);
            if let Some(word) = uses.asked.intersection(&names).next() {
                text.stays(NotItem::Condition(word.clone()));
            }
            text.uses.bare = uses.bare.intersection(&names).cloned().collect();
        }
        for (of, words) in take(&mut self.functions.bare) {
            let is_helper = |word: &String| IDS.contains(&word.as_str()) || names.contains(word);
            if let Some(word) = words.into_iter().find(is_helper) {
                naming_ids.insert(of, word);
            }
        }
    }

    /// Returns the functions and macros that ask for ids, themselves or by others.
    fn asking(&self) -> BTreeSet<String> {
        let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (of, words) in &self.found.words {
            for word in words {
                if IDS.contains(&word.as_str()) || self.found.words.contains_key(word) {
                    users.entry(word).or_default().push(of);
                }
            }
        }
        let (mut asking, mut open) = (BTreeSet::new(), IDS.to_vec());
        while let Some(word) = open.pop() {
            for of in users.get(word).into_iter().flatten() {
                if asking.insert((*of).to_owned()) {
                    open.push(of);
                }
            }
        }
        asking
    }

    /// Returns where conditions begin and end, and how many are open from there on.
    fn conditional(&self, tokens: &[Token]) -> Vec<(usize, usize)> {
        let (mut open, mut all) = (0_usize, Vec::new());
        for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Directive) {
            let plain = plain_directive(&self.text[token.at.clone()]);
            let line = plain.trim_start_matches('#').trim_start();
            if line.starts_with("if") {
                open += 1;
            } else if line.starts_with("endif") {
                open = open.saturating_sub(1);
            } else {
                continue;
            }
            all.push((at, open));
        }
        all
    }
}
