//! Reads a source as declarations: which kernels it defines, and what keeps them from being called by another kernel.

mod atomics;
mod barriers;
mod calls;
mod checks;
mod counted;
mod helpers;
mod joining;
mod kernel;
mod known;
mod later;
mod light;
mod local;
mod macros;
mod products;
mod threes;
mod types;
mod wraps;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(crate) use barriers::Barriers;
pub(crate) use counted::Loops;
pub(crate) use joining::Joining;
pub(crate) use kernel::{Helpers, KernelText, NotItem, ParamKind, ParamText};
pub(crate) use local::LocalText;

use self::counted::LOOPS;
use self::helpers::{Functions, text_of};
use self::later::Places;
use self::products::Products;
use self::threes::Threes;
use self::types::Pointers;

use super::options::Options;
use super::tokens::{NotSplit, Token, TokenKind, closing, definition, directive, plain_directive, split};
use super::unreadable::Unreadable;
use super::words::{BUILDS, LOCAL, QUALIFIERS, divides, is_keyword, is_type, is_word, waits};

/// What a source has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    kernels: BTreeMap<String, Result<KernelText, Unreadable>>,
    /// The words of functions and macros, by name. Functions of one name count as one. Members have a dot before them.
    words: BTreeMap<String, BTreeSet<String>>,
    /// About how many barriers functions and macros have, by name.
    waits: BTreeMap<String, usize>,
    macros: BTreeSet<String>,
    functions: BTreeSet<String>,
    /// What functions, kernels and macros call, by name, and the words with which macros end.
    calls: BTreeMap<String, BTreeSet<String>>,
    ends: BTreeMap<String, BTreeSet<String>>,
    /// Words of declarations that give names to types.
    types: BTreeSet<String>,
    /// Macros that make texts of their arguments.
    quoting: BTreeSet<String>,
    /// Macros that name a function for ids, or one that asks for them, without the mark that calls it.
    naming_ids: BTreeMap<String, String>,
    /// Functions that ask for ids, themselves or by others, and why one cannot be written again.
    helpers: BTreeMap<String, Result<KernelText, NotItem>>,
    /// Functions with an attribute that lets compilers join, leave out or move calls of them in a way that matters in a fused kernel.
    attributes: BTreeMap<String, String>,
    hides_types: bool,
    /// By function, kernel and macro.
    pointers: BTreeMap<String, Pointers>,
    names_types: bool,
    products: Products,
    threes: Threes,
    joining: Option<Joining>,
}

/// What a kernel and the functions that it reaches may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// Whether work-items may wait for others of their group, or share memory with them: there are barriers, functions that work on
    /// groups, or local memory.
    pub(crate) may_wait: bool,
    /// Whether they may see how work-items are divided into groups.
    pub(crate) may_see_groups: bool,
    /// Whether there are loops in the source.
    pub(crate) may_loop: bool,
    /// Whether one of them may take or return a vector of three components, itself.
    pub(crate) may_pass_threes: bool,
}

/// A macro of the source or of the build options.
#[derive(Clone, Debug)]
struct Macro {
    takes_arguments: bool,
    /// Whether there are names for its arguments.
    has_params: bool,
    params: BTreeSet<String>,
    /// Whether it has a number that is not whole.
    has_fraction: bool,
    /// Whether one of its definitions has no body.
    may_be_empty: bool,
    body: Vec<Piece>,
    /// Where in the source it was defined last; None for an option.
    last: Option<usize>,
}

/// A token of a macro's body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Word(String),
    Mark(u8),
    Other,
}

impl Source {
    /// Reads a source that is built with these options.
    pub(crate) fn read(text: &str, options: &str) -> Result<Self, Unreadable> {
        let tokens = split(text).map_err(|error| match error {
            NotSplit::Odd => Unreadable::Odd,
            NotSplit::Open => Unreadable::Unbalanced,
        })?;
        let (macros, undefined, unread) = Default::default();
        let (found, places, functions) = Default::default();
        let options = Options::read(options)?;
        // From OpenCL C 2.0 on, addresses may be of any memory.
        let is_generic =
            options.others.iter().any(|option| ["-cl-std=CL2", "-cl-std=CL3"].iter().any(|of| option.starts_with(of)));
        let mut reader = Reader { text, macros, undefined, unread, found, places, functions, is_generic };
        options.macros.iter().try_for_each(|(name, body)| reader.define(name, body, None))?;
        reader.directives(&tokens)?;
        for (name, of) in &reader.macros {
            let words = reader.plain_words(&of.body);
            reader.found.words.entry(name.clone()).or_default().extend(words);
        }
        reader.note_waits_of_macros();
        reader.note_pointers_of_macros();
        reader.words(&tokens)?;
        reader.found.threes.are_named = reader.names_threes(&tokens);
        reader.declarations(&tokens)?;
        reader.found.products = reader.products(&tokens);
        reader.helpers(&tokens);
        reader.check_kernels();
        reader.found.joining = reader.joining(&tokens, &options);
        reader.found.hides_types = reader.hides_types(&tokens);
        reader.found.names_types = reader.names_types(&tokens);
        reader.found.types = reader.functions.types.iter().map(|name| (*name).to_owned()).collect();
        reader.found.macros = reader.macros.into_keys().collect();
        Ok(reader.found)
    }

    /// Returns what a kernel may do.
    pub(crate) fn effects(&self, kernel: &str) -> Effects {
        let (mut effects, mut open, mut seen) = (Effects::default(), vec![kernel], BTreeSet::from([kernel]));
        while let Some(name) = open.pop() {
            effects.may_pass_threes |= self.threes.passed_by.contains(name);
            for word in self.words.get(name).into_iter().flatten() {
                // Some drivers do not give a kernel that is called local variables of its own for each group.
                effects.may_wait |= waits(word);
                effects.may_wait |= LOCAL.contains(&word.as_str());
                effects.may_see_groups |= effects.may_wait || divides(word);
                effects.may_loop |= LOOPS.contains(&word.as_str());
                if seen.insert(word) {
                    open.push(word);
                }
            }
        }
        effects
    }

    /// Returns what has to be known to make one text of the source and others. None if that may change what it means.
    pub(crate) fn joining(&self) -> Option<&Joining> {
        self.joining.as_ref()
    }

    /// Returns how a kernel is declared.
    pub(crate) fn kernel(&self, name: &str) -> Result<&KernelText, Unreadable> {
        self.kernels.get(name).ok_or(Unreadable::NoKernel)?.as_ref().map_err(Clone::clone)
    }
}

struct Reader<'a> {
    text: &'a str,
    macros: BTreeMap<String, Macro>,
    /// Macros that the source takes back, and where it does so last.
    undefined: BTreeMap<String, usize>,
    /// Macros that are not read, and why. None of them is used.
    unread: BTreeMap<String, Unreadable>,
    found: Source,
    places: Places,
    functions: Functions<'a>,
    /// Whether addresses may be of any memory where the source does not say of which.
    is_generic: bool,
}

impl<'a> Reader<'a> {
    fn word(&self, token: &Token) -> Option<&'a str> {
        (token.kind == TokenKind::Word).then(|| &self.text[token.at.clone()])
    }

    /// Reads all lines of the preprocessor, wherever they are.
    fn directives(&mut self, tokens: &[Token]) -> Result<(), Unreadable> {
        // What is open, and for each open condition, how much was open at its begin.
        let (mut open, mut conditions): (Vec<u8>, Vec<usize>) = Default::default();
        let mut has_braces_inside = false;
        for token in tokens {
            match token.kind {
                TokenKind::Mark(mark @ (b'{' | b'(' | b'[')) => {
                    has_braces_inside |= mark == b'{' && open.iter().any(|open| *open != b'}');
                    open.push(match mark {
                        b'{' => b'}',
                        b'(' => b')',
                        _ => b']',
                    });
                }
                TokenKind::Mark(mark @ (b'}' | b')' | b']')) => {
                    if open.pop() != Some(mark) {
                        return Err(Unreadable::Unbalanced);
                    }
                    if conditions.last().is_some_and(|at_begin| open.len() < *at_begin) {
                        return Err(Unreadable::ConditionalBraces);
                    }
                }
                TokenKind::Directive => {
                    let plain = plain_directive(&self.text[token.at.clone()]);
                    let (name, rest) = directive(&plain);
                    match name {
                        "include" | "import" | "include_next" | "embed" => return Err(Unreadable::Include),
                        "define" => {
                            let (head, body) = definition(rest).ok_or(Unreadable::Unbalanced)?;
                            self.define(head, body, Some(token.at.start))?;
                        }
                        "undef" => {
                            let name = rest.split(|c: char| !is_word(c)).next().unwrap_or_default();
                            self.undefined.insert(name.to_owned(), token.at.start);
                        }
                        "pragma" => self.pragma(rest, token.at.start, !conditions.is_empty())?,
                        "if" | "ifdef" | "ifndef" => conditions.push(open.len()),
                        "else" | "elif" | "elifdef" | "elifndef" if conditions.last() != Some(&open.len()) => {
                            return Err(Unreadable::ConditionalBraces);
                        }
                        "endif" if conditions.pop() != Some(open.len()) => return Err(Unreadable::ConditionalBraces),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        if !conditions.is_empty() {
            return Err(Unreadable::ConditionalBraces);
        }
        self.check_macros(tokens, has_braces_inside)
    }

    /// Reads the declarations at program scope.
    fn declarations(&mut self, tokens: &[Token]) -> Result<(), Unreadable> {
        let mut at = 0;
        while at < tokens.len() {
            match tokens[at].kind {
                TokenKind::Directive | TokenKind::Mark(b';') => at += 1,
                _ => at = self.declaration(tokens, at)?,
            }
        }
        Ok(())
    }

    /// Reads a declaration, and returns where it ends.
    fn declaration(&mut self, tokens: &[Token], begin: usize) -> Result<usize, Unreadable> {
        let is_typedef = self.word(&tokens[begin]) == Some("typedef");
        let mut shape = Shape { begin, is_typedef, ..Shape::default() };
        let (mut at, mut in_value) = (begin, false);
        while let Some(token) = tokens.get(at) {
            match token.kind {
                // Whether what follows belongs to it depends on a condition.
                TokenKind::Directive => return Err(Unreadable::ConditionalBraces),
                TokenKind::Mark(b';') => {
                    self.check_declaration(&shape)?;
                    match (&shape.params, shape.name) {
                        (Some(params), Some(name)) if !shape.is_typedef => {
                            self.declares_function(&tokens[begin..at], params.start - begin, name, None);
                            self.prototype(name, &shape, tokens);
                            self.note_attributes(name, &shape, tokens);
                        }
                        _ => self.declares(&tokens[begin..at], None, false),
                    }
                    if shape.is_typedef {
                        self.functions.types.extend(&shape.words);
                    }
                    // The names of a prototype's parameters are its own.
                    let own = shape.name.filter(|_| shape.params.is_some() && !shape.is_typedef);
                    self.mark_names(&tokens[begin..at], shape.is_typedef, own);
                    self.note_structs(&shape);
                    return Ok(at + 1);
                }
                TokenKind::Mark(b'(') => {
                    let end = closing(tokens, at, b'(', b')').ok_or(Unreadable::Unbalanced)?;
                    let follows = shape.words.last().copied();
                    if matches!(follows, Some("__attribute__" | "__attribute")) {
                        shape.words.pop();
                        shape.attributes.push(at..end);
                    } else if shape.params.is_none() && !shape.has_value {
                        shape.params = Some(at..end);
                        shape.name = follows.filter(|_| at > begin && self.word(&tokens[at - 1]).is_some());
                        shape.before_params = shape.words.len();
                    } else {
                        shape.has_more |= !shape.has_value;
                    }
                    at = end;
                }
                TokenKind::Mark(b'{') => {
                    let end = closing(tokens, at, b'{', b'}').ok_or(Unreadable::Unbalanced)?;
                    let is_type = shape.words.iter().any(|word| matches!(*word, "struct" | "union" | "enum"));
                    if shape.params.is_some() && !shape.has_value {
                        self.function(&shape, tokens, begin, at..end)?;
                        return Ok(end);
                    }
                    if !is_type && !shape.has_value {
                        return Err(Unreadable::Unbalanced);
                    }
                    at = end;
                    shape.has_members |= !shape.has_value;
                    if !shape.has_value {
                        shape.words.clear();
                        shape.words.push("struct");
                    }
                }
                TokenKind::Mark(b'}' | b')') => return Err(Unreadable::Unbalanced),
                TokenKind::Mark(b'=') => {
                    (shape.has_value, in_value) = (true, true);
                    at += 1;
                }
                TokenKind::Mark(b',') => {
                    (shape.has_more, in_value) = (true, false);
                    at += 1;
                }
                TokenKind::Mark(b'*') => {
                    *(if shape.has_value { &mut shape.has_star } else { &mut shape.is_pointer }) = true;
                    at += 1;
                }
                TokenKind::Word => {
                    let word = &self.text[token.at.clone()];
                    self.check_macro(word, in_value)?;
                    if !shape.has_value {
                        shape.words.push(word);
                    }
                    at += 1;
                }
                _ => at += 1,
            }
        }
        // Something without an end.
        Err(Unreadable::Unbalanced)
    }

    /// The names in a declaration that has local memory, such as that of a type, stand for local memory. Constants may hide where or
    /// when they are compiled, and types that they are constants. `only`: the one name that it gives.
    fn mark_names(&mut self, tokens: &[Token], is_typedef: bool, only: Option<&str>) {
        let (mut seen, mut open) = (BTreeSet::new(), Vec::new());
        open.extend(tokens.iter().filter_map(|token| self.word(token)).map(str::to_owned));
        let own: Vec<String> = only.map_or_else(|| open.clone(), |name| vec![name.to_owned()]);
        while let Some(word) = open.pop() {
            if seen.insert(word.clone()) {
                open.extend(self.pieces(&word).map(str::to_owned));
                // Types that are made of others.
                open.extend(self.found.words.get(&word).into_iter().flatten().cloned());
            }
        }
        let has_local = seen.iter().any(|word| LOCAL.contains(&word.as_str()));
        let mut marks: Vec<&str> = BUILDS.into_iter().filter(|word| seen.contains(*word)).collect();
        marks.extend(has_local.then_some("local"));
        let of_memory = |word: &str| matches!(word.trim_matches('_'), "constant" | "opencl_constant");
        let has_constant = |word: &String| of_memory(word) || self.places.constants.contains(word);
        let is_constant = is_typedef && seen.iter().any(has_constant);
        for name in own.into_iter().filter(|name| !is_keyword(name) && !is_type(name)) {
            for mark in &marks {
                // As a member too.
                for name in [name.clone(), format!(".{name}")] {
                    self.found.words.entry(name).or_default().insert((*mark).to_owned());
                }
            }
            if is_constant {
                self.places.constants.insert(name);
            }
        }
    }

    /// A macro at program scope must not be able to declare anything by itself. `in_value`: it is a part of a value, which ends with a
    /// comma or semicolon.
    fn check_macro(&self, word: &str, in_value: bool) -> Result<(), Unreadable> {
        let mut seen = BTreeSet::new();
        let mut open = vec![word.to_owned()];
        while let Some(name) = open.pop() {
            let Some(of) = self.macros.get(&name) else { continue };
            if !seen.insert(name) {
                continue;
            }
            let is_harmful = |piece: &Piece| match piece {
                Piece::Mark(mark) => {
                    matches!(mark, b';' | b'{' | b'}' | b',' | b'=' | b'#' | b'^')
                        || (!in_value && matches!(mark, b'(' | b')' | b'[' | b'*'))
                }
                Piece::Word(word) => {
                    matches!(word.as_str(), "global" | "__global" | "static" | "kernel" | "__kernel" | "typedef")
                }
                Piece::Other => false,
            };
            if of.takes_arguments || of.body.iter().any(is_harmful) {
                return Err(Unreadable::Macro(word.to_owned()));
            }
            open.extend(
                of.body
                    .iter()
                    .filter_map(|piece| if let Piece::Word(word) = piece { Some(word.clone()) } else { None }),
            );
        }
        Ok(())
    }

    /// A declaration that ends with a semicolon must not be a variable, unless it is a constant one.
    fn check_declaration(&self, shape: &Shape<'a>) -> Result<(), Unreadable> {
        if shape.is_typedef {
            return Ok(());
        }
        let variable = || Unreadable::Variable(shape.words.last().copied().unwrap_or_default().to_owned());
        // Constants, and samplers.
        let first = shape.words.iter().find(|word| !matches!(**word, "static" | "const"));
        if matches!(first, Some(&"constant" | &"__constant" | &"sampler_t")) {
            // A pointer to constants may be a variable itself.
            let may_be_pointer = shape.is_pointer || (shape.has_star && shape.has_more);
            return if may_be_pointer || shape.params.is_some() { Err(variable()) } else { Ok(()) };
        }
        if shape.has_more {
            return Err(variable());
        }
        let is_kind = shape.words.first().is_some_and(|word| matches!(*word, "struct" | "union" | "enum"));
        // `struct name;` or `struct name { .. };`
        if is_kind
            && !shape.has_value
            && shape.params.is_none()
            && shape.words.len() <= if shape.has_members { 1 } else { 2 }
            && !shape.words.iter().any(|word| self.macros.contains_key(*word))
        {
            return Ok(());
        }
        // A prototype has a type and a name, and nothing behind its parameters: in `const uint (count);` the parentheses have a name.
        if let (Some(name), false) = (shape.name, shape.has_value) {
            let types = &shape.words[..shape.before_params.saturating_sub(1)];
            let is_type_word =
                |word: &&str| !QUALIFIERS.contains(word) && !word.starts_with('_') && !self.macros.contains_key(*word);
            self.check_name(name)?;
            let is_kernel = shape.words.iter().any(|word| matches!(*word, "kernel" | "__kernel"));
            if is_kernel && !shape.attributes.is_empty() {
                return Err(Unreadable::Attributes(name.to_owned()));
            }
            let has_type = types.iter().any(is_type_word);
            if shape.words.len() == 1 {
                return Err(Unreadable::Macro(name.to_owned()));
            }
            if has_type
                && shape.words.len() == shape.before_params
                && !is_type(name)
                && !self.functions.types.contains(name)
            {
                return Ok(());
            }
        }
        Err(variable())
    }

    /// Reads a function.
    fn function(
        &mut self,
        shape: &Shape<'a>,
        tokens: &[Token],
        begin: usize,
        body: Range<usize>,
    ) -> Result<(), Unreadable> {
        let (Some(name), Some(params)) = (shape.name, shape.params.clone()) else { return Err(Unreadable::Unbalanced) };
        self.check_name(name)?;
        if shape.has_more || is_type(name) {
            return Err(Unreadable::Unbalanced);
        }
        let word = |at: usize| {
            let word = self.word(&tokens[at])?;
            Some(if self.has_member(tokens, at) { format!(".{word}") } else { word.to_owned() })
        };
        let words: BTreeSet<String> = params.clone().chain(body.clone()).filter_map(word).collect();
        if words.contains("static") {
            return Err(Unreadable::Variable("static".to_owned()));
        }
        self.found.words.entry(name.to_owned()).or_default().extend(words);
        self.note_waits(name, &tokens[body.clone()]);
        let place = tokens[body.start].at.start..tokens[body.end - 1].at.end;
        self.declares_function(&tokens[begin..body.start], params.start - begin, name, Some(place));
        if shape.words.len() < 2 {
            return Err(Unreadable::Macro(name.to_owned()));
        }
        self.note_calls(name, &tokens[body.clone()]);
        self.note_threes(name, shape, &tokens[params.clone()]);
        self.note_attributes(name, shape, tokens);
        self.note_attributes_inside(name, &tokens[body.clone()]);
        self.note_pointers(name, &tokens[params.clone()], &tokens[body.clone()]);
        self.functions.defined.push((name, shape.clone(), params.clone(), body.clone()));
        if !shape.words.iter().any(|word| matches!(*word, "kernel" | "__kernel")) {
            self.found.functions.insert(name.to_owned());
            return Ok(());
        }
        let read = self.kernel(name, shape, tokens, params, body);
        let twice = self.found.kernels.contains_key(name);
        self.found.kernels.insert(name.to_owned(), if twice { Err(Unreadable::Twice) } else { read });
        Ok(())
    }

    /// Checks what comes after what could be functions of one work-item.
    fn check_kernels(&mut self) {
        for (name, body, free) in &self.places.free {
            if let Err(why) = self.check_after(body, free)
                && let Some(text) = text_of(&mut self.found, name)
            {
                text.stays(why);
            }
        }
    }
}

/// What is known of a declaration while it is read.
#[derive(Clone, Default)]
struct Shape<'a> {
    begin: usize,
    /// Its words outside of parentheses and braces, before a value.
    words: Vec<&'a str>,
    attributes: Vec<Range<usize>>,
    /// The first parentheses that are no attribute's.
    params: Option<Range<usize>>,
    /// The word before them.
    name: Option<&'a str>,
    /// How many words are before them.
    before_params: usize,
    has_value: bool,
    has_members: bool,
    /// Whether it declares several things, or has more parentheses.
    has_more: bool,
    is_pointer: bool,
    /// Whether there is a star behind the first value: of a product, or of another declarator.
    has_star: bool,
    is_typedef: bool,
}
