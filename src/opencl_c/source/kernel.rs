//! Kernels in a source: how they are declared, and which of them can be written as a function of one work-item.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use super::barriers::Conditions;
use super::helpers::Uses;
use super::later::is_variable;
use super::local::LocalText;
use super::{Piece, Reader, Shape, Source};
use crate::opencl_c::tokens::{Token, TokenKind, plain_directive};
use crate::opencl_c::unreadable::Unreadable;
use crate::opencl_c::words::{
    BARRIERS, BUILDS, HERE, HINTS, IDS, LOCAL, OF_KERNELS, PLACES, QUALIFIERS, is_type, is_word, waits,
};

/// How a kernel is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelText {
    /// Its attributes.
    pub(in crate::opencl_c) attributes: String,
    /// The parameters, without parentheses.
    pub(in crate::opencl_c) params: String,
    pub(in crate::opencl_c) names: Vec<String>,
    /// The parameters one by one.
    pub(in crate::opencl_c) each: Vec<ParamText>,
    /// The bytes of its body in the source, with braces.
    pub(in crate::opencl_c) body: Range<usize>,
    /// What is before its name, where it is written again.
    pub(in crate::opencl_c) type_text: String,
    /// Whether the body has an operator, type or function that takes low bits of a number.
    pub(super) takes_low_bits: bool,
    /// Whether all that the body takes for an index into memory is a global id.
    pub(super) takes_ids_as_indices: bool,
    /// Whether the body has little to compute.
    pub(super) is_light: bool,
    /// Whether all loops of the body have a number of turns that the text says, for all work-items.
    pub(super) counts_turns: bool,
    /// What may be left out in the body.
    pub(super) conditions: Conditions,
    /// Its local variables, or why they are not known.
    locals: Result<Vec<LocalText>, NotItem>,
    /// Atomic functions that its body calls on local memory, if no effect of them depends on the order of work-items.
    atomics: BTreeSet<String>,
    /// Why the body cannot be written elsewhere.
    pub(super) moves: Result<(), NotItem>,
    /// How it uses names that may be those of functions.
    pub(super) uses: Uses,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParamText {
    /// Everything but its name.
    pub(crate) type_text: String,
    pub(crate) kind: ParamKind,
}

impl ParamText {
    /// Returns the type of what a pointer points to, without qualifiers. Different texts may be one type.
    pub(crate) fn element(&self) -> String {
        let is_of_type = |word: &&str| !word.is_empty() && !OF_POINTERS.contains(word) && !RESTRICT.contains(word);
        self.type_text.split(|c: char| c == '*' || c.is_whitespace()).filter(is_of_type).collect::<Vec<_>>().join(" ")
    }
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamKind {
    /// An address in global memory. A compiler may take the memory for constant while the kernel runs if it is `const restrict`.
    Global { is_constant: bool },
    /// A number, vector or struct, or something that a name hides.
    Value,
    /// An address in local memory.
    Local,
    /// Constant memory, or an address of another kind.
    Other,
}

/// Why a kernel cannot be written as a function of one work-item, which other code calls with the ids of the work-item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NotItem {
    Unreadable(Unreadable),
    /// Work-items wait for others of their group, or share memory with them, in a way that a fused kernel does not do.
    Waits,
    /// A local variable is declared in a way that is not read.
    Local(String),
    /// It has a function whose result, or whose effect, depends on the order of work-items.
    Order(String),
    /// A function that it calls asks for ids, and cannot be written again.
    Helper(String, Box<NotItem>),
    /// Its parameters are not plain.
    Params,
    /// It calls something that is no function of the source or of OpenCL C.
    Unknown(String),
    /// It calls a kernel.
    Kernel(String),
    /// It is defined more than once.
    Twice,
    /// A condition of the preprocessor says whether it is defined.
    Conditional,
    /// Other functions may have its name.
    Overloaded,
    /// It has a word that means something else at another place.
    Place(String),
    /// It has a line of the preprocessor that is no condition.
    Directive,
    /// It uses the name of a function for ids, or of one that asks for them, without a call.
    Name(String),
    /// It has the name of something that is declared after it.
    Later(String),
    /// After it comes a pragma that may change what it means.
    Pragma(String),
    /// A condition in it asks for a name that is a macro where it is written again.
    Condition(String),
    /// A macro makes a text of its arguments.
    Quotes(String),
    /// It has a variable that only a kernel may have.
    Constant(String),
    /// It has an attribute that clgraph does not know.
    Attribute(String),
    /// A function that it calls has such an attribute.
    FunctionAttribute(String, String),
}

/// Words before a type that say where it is, or what is done with it.
const OF_POINTERS: [&str; 5] = ["global", "__global", "const", "__const", "volatile"];

/// Words for pointers whose memory is reached by no other one.
pub(super) const RESTRICT: [&str; 3] = ["restrict", "__restrict", "__restrict__"];

impl fmt::Display for NotItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "clgraph cannot read the program: {why}"),
            Self::Waits => f.write_str("its work-items wait for each other, or share local memory"),
            Self::Local(name) => write!(f, "clgraph does not read how its local variable `{name}` is declared or used"),
            Self::Order(word) => write!(f, "what `{word}` does depends on the order of work-items"),
            Self::Helper(name, why) => write!(f, "function `{name}`, which it calls, asks for ids: {why}"),
            Self::Params => f.write_str("its parameters are not plain"),
            Self::Unknown(name) => {
                write!(
                    f,
                    "it calls `{name}`, which is neither a function that the source defines nor one that clgraph knows"
                )
            }
            Self::Kernel(name) => write!(f, "it calls `{name}`, which is a kernel itself"),
            Self::Twice => f.write_str("it is defined more than once"),
            Self::Conditional => f.write_str("a condition of the preprocessor says whether it is defined"),
            Self::Overloaded => f.write_str("other functions may have its name"),
            Self::Place(word) => write!(f, "`{word}` means something else at another place"),
            Self::Directive => f.write_str("it has a line of the preprocessor that is no condition"),
            Self::Name(word) => write!(f, "it uses `{word}` without calling it"),
            Self::Later(word) => write!(f, "`{word}`, a name in it, is declared after it"),
            Self::Pragma(text) => write!(f, "pragma `{text}` after it may change what it means"),
            Self::Condition(word) => write!(f, "a condition of the preprocessor in it asks for `{word}`"),
            Self::Quotes(name) => write!(f, "macro `{name}`, which it uses, makes a text of its arguments"),
            Self::Constant(word) => write!(f, "by `{word}` it has a variable that only a kernel may have"),
            Self::Attribute(word) => write!(f, "clgraph does not know its attribute `{word}`"),
            Self::FunctionAttribute(name, word) => {
                write!(f, "function `{name}`, which it calls, has the attribute `{word}`, which clgraph does not know")
            }
        }
    }
}

impl KernelText {
    /// Returns the parameters one by one.
    pub(crate) fn each(&self) -> &[ParamText] {
        &self.each
    }

    /// Returns its local variables.
    pub(crate) fn locals(&self) -> &[LocalText] {
        self.locals.as_deref().unwrap_or_default()
    }

    /// The body cannot be written elsewhere.
    pub(super) fn stays(&mut self, why: NotItem) {
        self.moves = self.moves.clone().and(Err(why));
    }
}

/// Functions that are written again, by name.
pub(crate) type Helpers<'a> = BTreeMap<&'a str, &'a KernelText>;

impl Source {
    /// Returns the kernels that cannot be functions of one work-item for how they are written, and not for what they do.
    pub(in crate::opencl_c) fn unknown(&self) -> BTreeSet<&str> {
        let is_known = |name: &&String| match self.item(name) {
            Ok(_) => true,
            Err(why) => matches!(why, NotItem::Waits | NotItem::Order(_) | NotItem::Kernel(_)),
        };
        self.kernels.keys().filter(|name| !is_known(name)).map(String::as_str).collect()
    }

    /// Returns a kernel that can be written as a function of one work-item.
    pub(crate) fn item(&self, name: &str) -> Result<&KernelText, NotItem> {
        self.item_with_helpers(name).map(|(text, _)| text)
    }

    /// Returns it with the functions that it reaches and that have to be written again with it, because they ask for ids.
    pub(crate) fn item_with_helpers(&self, name: &str) -> Result<(&KernelText, Helpers<'_>), NotItem> {
        let text = self.kernel(name).map_err(NotItem::Unreadable)?;
        text.moves.clone()?;
        if let Some(word) = self.attributes.get(name) {
            return Err(NotItem::Attribute(word.clone()));
        }
        if let Some(word) = HINTS.iter().find(|word| self.macros.contains(**word)) {
            return Err(NotItem::Unreadable(Unreadable::Keyword((*word).to_owned())));
        }
        // The functions and macros that it reaches, and for each by which function that stays where it is.
        let mut open: Vec<(&str, Option<&str>)> = vec![(name, None)];
        let (mut seen, mut helpers) = (BTreeSet::new(), Helpers::new());
        while let Some((of, stays)) = open.pop() {
            for word in self.words.get(of).into_iter().flatten() {
                let is_function = of == name || self.functions.contains(of);
                let is_known = BARRIERS.contains(&word.as_str()) || (HERE.contains(&word.as_str()) && is_function);
                if !is_known && (waits(word) || LOCAL.contains(&word.as_str())) {
                    return Err(NotItem::Waits);
                }
                let is_order = |part: &&str| word.contains(*part) && !word.starts_with('.');
                let is_local = of == name && text.atomics.contains(word) && !self.words.contains_key(word);
                if !is_local && ["atom", "__sync", "printf", "pipe", "ndrange"].iter().any(is_order) {
                    return Err(NotItem::Order(word.clone()));
                }
                if let Some(id) = self.naming_ids.get(word) {
                    return Err(NotItem::Name(id.clone()));
                }
                if let (true, Some(helper)) = (IDS.contains(&word.as_str()), stays) {
                    return Err(NotItem::Helper(helper.to_owned(), Box::new(NotItem::Name(word.clone()))));
                }
                if BUILDS.contains(&word.as_str()) || (stays.is_none() && PLACES.contains(&word.as_str())) {
                    return Err(NotItem::Place(word.clone()));
                }
                if stays.is_none() && self.quoting.contains(word) {
                    return Err(NotItem::Quotes(word.clone()));
                }
                if self.kernels.contains_key(word) {
                    return Err(NotItem::Kernel(word.clone()));
                }
                if let Some(helper) = self.helpers.get(word) {
                    let own = if of == name { Some(text) } else { helpers.get(of).copied() };
                    if own.is_some_and(|own| own.uses.bare.contains(word)) {
                        return Err(NotItem::Name(word.clone()));
                    }
                    let known =
                        helper.as_ref().map_err(Clone::clone).and_then(|text| text.moves.clone().map(|()| text));
                    let known = known.map_err(|why| NotItem::Helper(word.clone(), Box::new(why)))?;
                    if helpers.insert(word, known).is_none() {
                        open.push((word, None));
                    }
                } else if let Some(attribute) = self.attributes.get(word) {
                    return Err(NotItem::FunctionAttribute(word.clone(), attribute.clone()));
                } else if self.words.contains_key(word) {
                    let stays = if self.macros.contains(word) { stays } else { Some(stays.unwrap_or(word)) };
                    if seen.insert((word, stays.is_some())) {
                        open.push((word, stays));
                    }
                }
            }
            if let Some(unknown) = self.unknown_call(of) {
                return Err(NotItem::Unknown(unknown.to_owned()));
            }
        }
        text.locals.as_ref().map_err(Clone::clone)?;
        Ok((text, helpers))
    }

    /// Returns whether a kernel, or a function that it reaches, has a word.
    pub(crate) fn reaches(&self, kernel: &str, is_it: impl Fn(&str) -> bool) -> bool {
        let (mut open, mut seen) = (vec![kernel], BTreeSet::from([kernel]));
        while let Some(name) = open.pop() {
            for word in self.words.get(name).into_iter().flatten() {
                if is_it(word) {
                    return true;
                }
                if seen.insert(word) {
                    open.push(word);
                }
            }
        }
        false
    }
}

impl<'a> Reader<'a> {
    /// A word must mean the same at the end of the source as where the kernel is, through all macros.
    pub(super) fn check_later(&self, word: &str, end: usize) -> Result<(), Unreadable> {
        let later = |at: Option<&usize>| at.is_some_and(|at| *at > end);
        let (mut seen, mut open) = (BTreeSet::from([word]), vec![word]);
        while let Some(name) = open.pop() {
            let of = self.macros.get(name);
            if later(self.undefined.get(name)) || later(of.and_then(|of| of.last.as_ref())) {
                return Err(Unreadable::Redefined(name.to_owned()));
            }
            for piece in of.into_iter().flat_map(|of| &of.body) {
                if let Piece::Word(inner) = piece
                    && seen.insert(inner)
                {
                    open.push(inner);
                }
            }
        }
        Ok(())
    }

    /// Reads a kernel, or a function that one reaches. `params` has its parentheses, and `body` its braces.
    pub(super) fn kernel(
        &mut self,
        own_name: &str,
        shape: &Shape<'a>,
        tokens: &[Token],
        params: Range<usize>,
        body: Range<usize>,
    ) -> Result<KernelText, Unreadable> {
        let (params, body) = (&tokens[params], &tokens[body]);
        let place = body[0].at.start..body[body.len() - 1].at.end;
        let end = place.end;
        let inside = &params[1..params.len() - 1];
        let text = |tokens: &[Token]| {
            let words: Vec<&str> = tokens.iter().map(|token| &self.text[token.at.clone()]).collect();
            words.join(" ")
        };
        let (mut names, mut each) = (Vec::new(), Vec::new());
        let one_by_one = inside.split(|token| token.kind == TokenKind::Mark(b','));
        let is_empty = matches!(inside, []) || matches!(inside, [only] if self.word(only) == Some("void"));
        for param in one_by_one.filter(|_| !is_empty) {
            let plain = |token: &Token| matches!(token.kind, TokenKind::Word | TokenKind::Mark(b'*'));
            let words = param.iter().filter(|token| token.kind == TokenKind::Word).count();
            if !param.iter().all(plain) || words < 2 {
                return Err(Unreadable::Params);
            }
            let Some(name) = param.last().and_then(|last| self.word(last)) else { return Err(Unreadable::Params) };
            for word in param.iter().filter_map(|token| self.word(token)) {
                self.check_macro(word, false).map_err(|_| Unreadable::Params)?;
                self.check_later(word, end)?;
            }
            if self.macros.contains_key(name)
                || name == own_name
                || is_type(name)
                || names.iter().any(|known| known == name)
            {
                return Err(Unreadable::Params);
            }
            names.push(name.to_owned());
            each.push(self.param(param, text(&param[..param.len() - 1])));
        }
        for word in
            shape.attributes.iter().flat_map(|range| &tokens[range.clone()]).filter_map(|token| self.word(token))
        {
            self.check_later(word, end)?;
        }
        let attributes = shape.attributes.iter().map(|range| format!("__attribute__{}", text(&tokens[range.clone()])));
        let attributes: Vec<String> = attributes.collect();
        let params = if is_empty { String::new() } else { text(inside) };
        let head = self.head(own_name, shape, tokens, end);
        let (type_text, head) = head.map_or_else(|why| (String::new(), Err(why)), |text| (text, Ok(())));
        let moves = head.and_then(|()| self.moves(&names, body, end)).map(|mut free| {
            let types = inside
                .iter()
                .filter_map(|token| self.word(token))
                .filter(|word| !names.iter().any(|name| name == word));
            free.extend(types.flat_map(|word| self.reached(word)));
            self.places.free.push((own_name.to_owned(), place.clone(), free));
        });
        let locals = self.locals(body, &names);
        let atomics = self.local_atomics(body, locals.as_deref().unwrap_or_default());
        let takes_low_bits = self.takes_low_bits(body) || self.takes_low_bits(inside);
        let kinds = names.iter().map(String::as_str).zip(each.iter().map(|param| param.kind));
        let takes_ids_as_indices = self.takes_ids_as_indices(body, kinds);
        let (is_light, counts_turns) = (self.is_light(body), self.counts_turns(body));
        let conditions = self.conditions(body);
        let (attributes, uses, body) = (attributes.join(" "), self.uses(inside, body), place);
        Ok(KernelText {
            attributes,
            params,
            names,
            each,
            body,
            type_text,
            takes_low_bits,
            takes_ids_as_indices,
            is_light,
            counts_turns,
            conditions,
            locals,
            atomics,
            moves,
            uses,
        })
    }

    fn param(&self, tokens: &[Token], type_text: String) -> ParamText {
        let (mut words, mut open) = (BTreeSet::new(), Vec::new());
        open.extend(tokens.iter().filter_map(|token| self.word(token)));
        while let Some(word) = open.pop() {
            if words.insert(word) {
                open.extend(self.pieces(word));
            }
        }
        let is_pointer = tokens.iter().any(|token| token.kind == TokenKind::Mark(b'*'));
        let has = |names: &[&str]| names.iter().any(|name| words.contains(name));
        let kind = if !is_pointer && !has(&["local", "__local", "constant", "__constant", "pipe", "__pipe"]) {
            ParamKind::Value
        } else if is_pointer && has(&["global", "__global"]) && !has(&["local", "__local", "constant", "__constant"]) {
            // A name may hide that it is constant.
            let is_plain = |word: &&str| {
                is_type(word) || QUALIFIERS.contains(word) || RESTRICT.contains(word) || self.macros.contains_key(*word)
            };
            let own_name = tokens.last().and_then(|token| self.word(token));
            let is_hidden = !words.iter().filter(|word| Some(**word) != own_name).all(is_plain);
            let is_constant = (has(&["const", "__const"]) || is_hidden) && has(&RESTRICT);
            ParamKind::Global { is_constant }
        } else if is_pointer && has(&HERE) && !has(&["global", "__global", "constant", "__constant"]) {
            ParamKind::Local
        } else {
            ParamKind::Other
        };
        ParamText { type_text, kind }
    }

    /// Returns the words of a macro.
    pub(super) fn pieces(&self, name: &str) -> impl Iterator<Item = &str> {
        let pieces = self.macros.get(name).into_iter().flat_map(|of| &of.body);
        pieces.filter_map(|piece| if let Piece::Word(word) = piece { Some(word.as_str()) } else { None })
    }

    /// Returns an attribute that is none of these, which may change what a function does.
    pub(super) fn unknown_attribute(&self, tokens: &[Token], known: &[&str]) -> Option<&'a str> {
        let mut depth = 0;
        tokens.iter().find_map(|token| match token.kind {
            TokenKind::Mark(b'(') => {
                depth += 1;
                None
            }
            TokenKind::Mark(b')') => {
                depth -= 1;
                None
            }
            _ if depth > 2 => None,
            _ => self.word(token).filter(|word| !known.contains(word) || self.macros.contains_key(*word)),
        })
    }

    /// Returns why the body of a kernel cannot be written again at the end of the source, or the names in it that are neither
    /// parameters nor its own variables.
    fn moves(&self, params: &[String], body: &[Token], end: usize) -> Result<BTreeSet<String>, NotItem> {
        let (mut seen, mut free) = (BTreeSet::new(), BTreeSet::new());
        let mut check = |word: &str| {
            let is_new = seen.insert(word.to_owned());
            if is_new { self.check_later(word, end).map_err(NotItem::Unreadable) } else { Ok(()) }
        };
        let mut own: BTreeSet<&str> = params.iter().map(String::as_str).collect();
        let (mut depth, mut conditions) = (0_usize, 0_usize);
        for (at, token) in body.iter().enumerate() {
            match token.kind {
                TokenKind::Mark(b'{' | b'(' | b'[') => depth += 1,
                TokenKind::Mark(b'}' | b')' | b']') => depth = depth.saturating_sub(1),
                TokenKind::Directive => {
                    let plain = plain_directive(&self.text[token.at.clone()]);
                    let line = plain.trim_start_matches('#').trim_start();
                    let mut words = line.split(|c| !is_word(c)).filter(|word| !word.is_empty());
                    let name = words.next();
                    match name {
                        Some("if" | "ifdef" | "ifndef") => conditions += 1,
                        Some("endif") => conditions = conditions.saturating_sub(1),
                        None | Some("pragma" | "else" | "elif" | "elifdef" | "elifndef") => {}
                        Some(_) => return Err(NotItem::Directive),
                    }
                    for word in words {
                        check(word)?;
                        if name != Some("pragma") {
                            self.check_condition(word)?;
                        }
                    }
                }
                _ => {}
            }
            let Some(word) = self.word(token) else { continue };
            check(word)?;
            let next = body.get(at + 1).map(|next| next.kind);
            let is_called = next == Some(TokenKind::Mark(b'('));
            if IDS.contains(&word) && !is_called {
                return Err(NotItem::Name(word.to_owned()));
            }
            let is_constant = matches!(word, "constant" | "__constant") && is_variable(body, at);
            if is_constant || self.places.constants.contains(word) {
                return Err(NotItem::Constant(word.to_owned()));
            }
            if own.contains(word) || free.contains(word) || self.has_member(body, at) {
                continue;
            }
            // `float x` outside of all parentheses and inner braces is known to the end.
            let is_plain = |word: &&str| !self.macros.contains_key(*word);
            let before = at.checked_sub(1).and_then(|before| self.word(&body[before])).filter(is_plain);
            if before.is_some_and(is_type) && is_plain(&word) && !is_called && depth == 1 && conditions == 0 {
                own.insert(word);
                continue;
            }
            free.extend(self.reached(word).into_iter().filter(|word| !own.contains(word.as_str())));
        }
        let of_kernels = OF_KERNELS.into_iter().find(|word| free.contains(*word));
        of_kernels.map_or(Ok(free), |word| Err(NotItem::Constant(word.to_owned())))
    }

    /// A condition must not ask for what is a macro at the end.
    fn check_condition(&self, word: &str) -> Result<(), NotItem> {
        for word in self.reached(word) {
            if IDS.contains(&word.as_str()) || word.starts_with("clgraph_") {
                return Err(NotItem::Condition(word));
            }
            if PLACES.contains(&word.as_str()) {
                return Err(NotItem::Place(word));
            }
        }
        Ok(())
    }
}
