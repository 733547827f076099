//! Macros, and what is known of each name.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::pieces::{Piece, PieceKind, has_odd_tokens, pieces_of};
use crate::opencl_c::options::Options;
use crate::opencl_c::tokens::{Token, TokenKind, definition, directive, plain_directive, split};
use crate::opencl_c::words::{PLACES, is_word};

/// The most arguments of a macro.
const MOST_PARAMS: usize = 128;

/// A macro of the source or of the options.
pub(super) struct Macro {
    /// The names of its arguments, if it takes any.
    pub(super) params: Option<Vec<Rc<str>>>,
    /// Whether the last of them stands for any number of arguments.
    pub(super) is_variadic: bool,
    pub(super) body: Vec<Piece>,
}

impl Macro {
    /// Returns None if it does something that is not written out here, such as texts of arguments.
    pub(super) fn read(head: &str, body: &str) -> Option<Self> {
        let params = head.split_once('(').map(|(_, params)| params.trim_end_matches(')'));
        if params.is_some_and(|params| params.matches(',').count() >= MOST_PARAMS) {
            return None;
        }
        let mut names: Vec<Rc<str>> = Vec::new();
        let mut is_variadic = false;
        for name in params.into_iter().filter(|params| !params.trim().is_empty()).flat_map(|params| params.split(',')) {
            let is_plain = !is_variadic && !name.trim().is_empty();
            match name.trim() {
                "..." if is_plain => {
                    is_variadic = true;
                    names.push("__VA_ARGS__".into());
                }
                name if is_plain && name.chars().all(is_word) && !names.iter().any(|known| &**known == name) => {
                    names.push(name.into());
                }
                _ => return None,
            }
        }
        let mut pieces = Vec::new();
        for (at, part) in body.split("##").enumerate() {
            if at > 0 {
                let join = Piece { text: "##".into(), kind: PieceKind::Join, is_glued: false, hides: Rc::default() };
                pieces.push(join);
            }
            // A text may have been divided, and one number sign makes a text of an argument.
            let tokens = split(part).ok().filter(|tokens| tokens.iter().all(|of| of.kind != TokenKind::Directive))?;
            pieces.extend(pieces_of(part, &tokens));
        }
        let is_join = |piece: &Piece| piece.kind == PieceKind::Join;
        let is_at_end = pieces.first().is_some_and(is_join) || pieces.last().is_some_and(is_join);
        let is_double = pieces.windows(2).any(|two| two.iter().all(is_join));
        let has_others = pieces.iter().any(|piece| &*piece.text == "__VA_OPT__");
        let joins_any = is_variadic && pieces.iter().any(is_join);
        if joins_any || has_others || is_double || is_at_end || has_odd_tokens(&pieces) {
            return None;
        }
        Some(Self { params: params.map(|_| names), is_variadic, body: pieces })
    }

    /// Whether what it gives is one argument for another macro: it has commas in parentheses only, and these match.
    pub(super) fn is_one(&self) -> bool {
        let mut depth = 0_usize;
        let fits = |piece: &Piece| match piece.kind {
            PieceKind::Token(TokenKind::Mark(b'(')) => {
                depth += 1;
                true
            }
            PieceKind::Token(TokenKind::Mark(b')')) => {
                depth = depth.wrapping_sub(1);
                depth != usize::MAX
            }
            PieceKind::Token(TokenKind::Mark(b',')) => depth > 0,
            _ => true,
        };
        !self.is_variadic && self.body.iter().all(fits) && depth == 0
    }
}

/// What is known of a name that is a macro somewhere.
#[derive(Default)]
pub(super) struct Known {
    /// Its definitions in order, each with where it is (None for an option). Where a definition is None, `#undef` takes the one before back.
    pub(super) all: Vec<(Option<usize>, Option<Macro>)>,
    /// Whether one of them is under a condition, or is not read, or the compiler has one of this name. Those of the compiler's are taken to be
    /// expressions.
    pub(super) is_open: bool,
    /// Whether one of them is not read.
    pub(super) is_odd: bool,
}

impl Known {
    /// Whether the options define it.
    pub(super) fn is_option(&self) -> bool {
        self.all.first().is_some_and(|(from, _)| from.is_none())
    }

    pub(super) fn definitions(&self) -> impl Iterator<Item = &Macro> {
        self.all.iter().filter_map(|(_, of)| of.as_ref())
    }
}

#[derive(Default)]
pub(super) struct Macros {
    pub(super) all: BTreeMap<String, Known>,
    /// Whether there are no conditions, and it is known of all what they are, so that nobody asks for the source's.
    pub(super) are_certain: bool,
    /// Names that may be more or less than one argument, when all is replaced in them.
    pub(super) not_one: BTreeSet<String>,
    /// Names that take arguments, or lead to one that does.
    pub(super) taking: BTreeSet<String>,
    /// Names that lead to others.
    pub(super) leading: BTreeSet<String>,
    /// Names that make more of arguments than what these stand for.
    pub(super) joining: BTreeSet<String>,
}

impl Macros {
    /// `own`: names that are macros of the compiler's too.
    pub(super) fn read(source: &str, tokens: &[Token], options: &Options<'_>, own: &BTreeSet<String>) -> Option<Self> {
        let mut macros = Self::default();
        for (head, body) in &options.macros {
            macros.define(head, body, None, true);
        }
        // Text that is moved would name another place.
        let is_place = |word: &str| PLACES.contains(&word);
        if options.macros.iter().any(|(_, body)| body.split(|c| !is_word(c)).any(is_place)) {
            return None;
        }
        let (mut open, mut has_conditions) = (0_usize, false);
        // Words of pragmas, in which macros may be replaced.
        let mut asked = BTreeSet::new();
        for token in tokens {
            let (text, from) = (&source[token.at.clone()], Some(token.at.start));
            if token.kind != TokenKind::Directive {
                if is_place(text) {
                    return None;
                }
                continue;
            }
            let plain = plain_directive(text);
            if plain.split(|c| !is_word(c)).any(is_place) {
                return None;
            }
            let (name, rest) = directive(&plain);
            match name {
                "pragma" => asked.extend(rest.split(|c| !is_word(c)).map(str::to_owned)),
                "define" => {
                    let (head, body) = definition(rest)?;
                    macros.define(head, body, from, open == 0);
                }
                "undef" => {
                    let name = rest.split(|c| !is_word(c)).next().unwrap_or_default();
                    macros.set(name, (from, None), open == 0);
                }
                "if" | "ifdef" | "ifndef" => (open, has_conditions) = (open + 1, true),
                "endif" => open = open.checked_sub(1)?,
                "include" | "import" | "include_next" | "embed" => return None,
                _ => {}
            }
        }
        for name in own {
            macros.all.entry(name.clone()).or_default().is_open = true;
        }
        let is_certain = |known: &Known| !known.is_open || known.all.is_empty();
        macros.are_certain = !has_conditions
            && macros.all.values().all(is_certain)
            && !asked.iter().any(|word| macros.all.contains_key(word));
        macros.not_one = macros.leading_to(|of| !of.is_one());
        macros.taking = macros.leading_to(|of| of.params.is_some());
        let has_others = |of: &Macro| of.body.iter().any(|piece| macros.all.contains_key(&*piece.text));
        macros.leading = macros.leading_to(has_others);
        macros.joining = macros.leading_to(|of| of.body.iter().any(|piece| piece.kind == PieceKind::Join));
        Some(macros)
    }

    fn define(&mut self, head: &str, body: &str, from: Option<usize>, holds: bool) {
        let name = head.split('(').next().unwrap_or_default();
        let read = Macro::read(head, body);
        let is_odd = read.is_none();
        self.set(name, (from, read), holds && !is_odd);
        if let Some(known) = self.all.get_mut(name) {
            known.is_odd |= is_odd;
        }
    }

    fn set(&mut self, name: &str, now: (Option<usize>, Option<Macro>), holds: bool) {
        let known = self.all.entry(name.to_owned()).or_default();
        known.is_open |= !holds;
        known.all.push(now);
    }

    /// Returns the names that lead to a definition of a kind, or to one that is not known.
    fn leading_to(&self, is_so: impl Fn(&Macro) -> bool) -> BTreeSet<String> {
        let (mut users, mut open): (BTreeMap<&str, Vec<&str>>, Vec<&str>) = Default::default();
        for (name, known) in &self.all {
            if known.is_odd || known.definitions().any(&is_so) {
                open.push(name);
            }
            for word in known.definitions().flat_map(|of| &of.body).filter(|piece| piece.is_word()) {
                users.entry(&word.text).or_default().push(name);
            }
        }
        let mut found = BTreeSet::new();
        while let Some(name) = open.pop() {
            if found.insert(name.to_owned()) {
                open.extend(users.get(name).into_iter().flatten());
            }
        }
        found
    }
}
