//! Reads a source as declarations: which kernels it defines, and what keeps them from being called by another kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use super::tokens::{NotSplit, Token, TokenKind, plain_directive, split};

/// What a source has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    kernels: BTreeMap<String, Result<KernelText, Unreadable>>,
    /// The words of functions and macros, by name. Functions of one name count as one.
    words: BTreeMap<String, BTreeSet<String>>,
}

/// What a kernel and the functions that it reaches may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// Whether work-items may wait for others of their group: there are barriers, or functions that work on groups.
    pub(crate) may_wait: bool,
    /// Whether they may see how work-items are divided into groups.
    pub(crate) may_see_groups: bool,
}

/// How a kernel is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelText {
    /// Its attributes.
    pub(super) attributes: String,
    /// The parameters, without parentheses.
    pub(super) params: String,
    pub(super) names: Vec<String>,
}

/// Why a source, or a kernel of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unreadable {
    /// A comment or constant has no end, or parentheses or braces do not match.
    Unbalanced,
    /// A line outside of the preprocessor's is continued by a backslash.
    Continued,
    /// It includes other files.
    Include,
    /// Braces depend on a condition of the preprocessor.
    ConditionalBraces,
    /// A macro joins tokens.
    Joins(String),
    /// A macro has the name of a keyword.
    Keyword(String),
    /// A macro outside of functions may declare anything.
    Macro(String),
    /// There is a variable at program scope, or a static one.
    Variable(String),
    /// A kernel enqueues kernels.
    Enqueues,
    /// The version of the language is C++.
    CPlusPlus,
    /// The source does not define the kernel by name.
    NoKernel,
    /// It defines the kernel more than once.
    Twice,
    /// The parameters of the kernel cannot be read.
    Params,
    /// A name in the parameters is defined anew later.
    Redefined(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbalanced => f.write_str("its parentheses, braces or comments do not match"),
            Self::Continued => f.write_str("a line ends with a backslash"),
            Self::Include => f.write_str("it includes another file"),
            Self::ConditionalBraces => f.write_str("its braces depend on a condition of the preprocessor"),
            Self::Joins(name) => write!(f, "macro `{name}` joins tokens"),
            Self::Keyword(name) => write!(f, "macro `{name}` has the name of a keyword"),
            Self::Macro(name) => write!(f, "macro `{name}` is used outside of functions"),
            Self::Variable(name) => write!(f, "it has the variable `{name}`, which would exist twice"),
            Self::Enqueues => f.write_str("its kernels enqueue kernels"),
            Self::CPlusPlus => f.write_str("it is C++"),
            Self::NoKernel => f.write_str("it does not define the kernel by name"),
            Self::Twice => f.write_str("it defines the kernel twice"),
            Self::Params => f.write_str("the kernel's parameters are not plain"),
            Self::Redefined(name) => write!(f, "`{name}`, a name in the kernel's parameters, is defined again later"),
        }
    }
}

/// Words that have to mean what they mean in OpenCL C, because kernels are declared or guarded by them.
const KEYWORDS: [&str; 33] = [
    "kernel",
    "__kernel",
    "global",
    "__global",
    "local",
    "__local",
    "constant",
    "__constant",
    "private",
    "__private",
    "const",
    "void",
    "if",
    "for",
    "return",
    "static",
    "inline",
    "typedef",
    "struct",
    "union",
    "enum",
    "extern",
    "uchar",
    "uint",
    "ulong",
    "uint4",
    "size_t",
    "__attribute__",
    "restrict",
    "get_global_id",
    "sampler_t",
    "auto",
    "volatile",
];

/// Beginnings of functions by which a work-item waits for others of its group, or works with them.
const WAITING: [&str; 7] =
    ["barrier", "work_group_", "sub_group_", "async_work_group_", "wait_group_events", "intel_sub_group_", "split_"];

/// Functions that tell how work-items are divided.
const DIVIDING: [&str; 8] = [
    "get_local_id",
    "get_group_id",
    "get_local_size",
    "get_enqueued_local_size",
    "get_num_groups",
    "get_local_linear_id",
    "get_sub_group",
    "get_num_sub_groups",
];

/// A macro of the source or of the build options.
#[derive(Clone, Debug)]
struct Macro {
    takes_arguments: bool,
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
            NotSplit::Continued => Unreadable::Continued,
            NotSplit::Open => Unreadable::Unbalanced,
        })?;
        if options.contains("CLC++") {
            return Err(Unreadable::CPlusPlus);
        }
        let mut reader = Reader { text, macros: BTreeMap::new(), undefined: BTreeMap::new(), found: Self::default() };
        reader.options(options)?;
        reader.directives(&tokens)?;
        reader.words(&tokens)?;
        reader.declarations(&tokens)?;
        Ok(reader.found)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.kernels.values().filter(|kernel| kernel.is_ok()).count()
    }

    /// Returns what a kernel may do.
    pub(crate) fn effects(&self, kernel: &str) -> Effects {
        let (mut effects, mut open, mut seen) = (Effects::default(), vec![kernel], BTreeSet::from([kernel]));
        while let Some(name) = open.pop() {
            for word in self.words.get(name).into_iter().flatten() {
                effects.may_wait |= WAITING.iter().any(|begin| word.starts_with(begin));
                effects.may_see_groups |= effects.may_wait || DIVIDING.iter().any(|begin| word.starts_with(begin));
                if seen.insert(word) {
                    open.push(word);
                }
            }
        }
        effects
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
    found: Source,
}

impl<'a> Reader<'a> {
    fn word(&self, token: &Token) -> Option<&'a str> {
        (token.kind == TokenKind::Word).then(|| &self.text[token.at.clone()])
    }

    /// Reads the macros that options define.
    fn options(&mut self, options: &str) -> Result<(), Unreadable> {
        let mut words = options.split_whitespace();
        while let Some(word) = words.next() {
            let Some(rest) = word.trim_matches(['"', '\'']).strip_prefix("-D") else { continue };
            let definition = if rest.is_empty() { words.next().unwrap_or_default() } else { rest };
            let (name, body) = definition.split_once('=').unwrap_or((definition, "1"));
            self.define(name, body, None)?;
        }
        Ok(())
    }

    /// Reads a macro: `NAME body` or `NAME(parameters) body`.
    fn define(&mut self, name: &str, body: &str, at: Option<usize>) -> Result<(), Unreadable> {
        let (name, takes_arguments) = name.split_once('(').map_or((name, false), |(name, _)| (name, true));
        if KEYWORDS.contains(&name) {
            return Err(Unreadable::Keyword(name.to_owned()));
        }
        if body.contains("##") || body.contains("%:") {
            return Err(Unreadable::Joins(name.to_owned()));
        }
        let pieces = split(body).map_err(|_| Unreadable::Macro(name.to_owned()))?;
        let piece = |token: &Token| match token.kind {
            TokenKind::Word => Piece::Word(body[token.at.clone()].to_owned()),
            TokenKind::Mark(mark) => Piece::Mark(mark),
            TokenKind::Number | TokenKind::Text => Piece::Other,
            TokenKind::Directive => Piece::Mark(b'#'),
        };
        let body: Vec<Piece> = pieces.iter().map(piece).collect();
        for piece in &body {
            if let Piece::Word(word) = piece {
                check_word(word)?;
                self.found.words.entry(name.to_owned()).or_default().insert(word.clone());
            }
        }
        // What it was before counts too.
        let known =
            self.macros.entry(name.to_owned()).or_insert(Macro { takes_arguments, body: Vec::new(), last: None });
        known.takes_arguments |= takes_arguments;
        known.body.extend(body);
        known.last = at.or(known.last);
        Ok(())
    }

    /// Reads all lines of the preprocessor, wherever they are.
    fn directives(&mut self, tokens: &[Token]) -> Result<(), Unreadable> {
        // For each open condition, how many braces and parentheses were open.
        let (mut open, mut conditions) = (0_i64, Vec::new());
        for token in tokens {
            match token.kind {
                TokenKind::Mark(b'{' | b'(') => open += 1,
                TokenKind::Mark(b'}' | b')') => open -= 1,
                TokenKind::Directive => {
                    let plain = plain_directive(&self.text[token.at.clone()]);
                    let line = plain.trim_start_matches('#').trim_start();
                    let end = line.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(line.len());
                    let (name, rest) = (&line[..end], line[end..].trim_start());
                    match name {
                        "include" | "import" | "include_next" => return Err(Unreadable::Include),
                        "define" => {
                            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
                            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                            let end = if rest[end..].starts_with('(') {
                                rest.find(')').ok_or(Unreadable::Unbalanced)? + 1
                            } else {
                                end
                            };
                            self.define(&rest[..end], &rest[end..], Some(token.at.start))?;
                        }
                        "undef" => {
                            self.undefined.insert(rest.trim_end().to_owned(), token.at.start);
                        }
                        "if" | "ifdef" | "ifndef" => conditions.push(open),
                        "else" | "elif" | "elifdef" | "elifndef" if conditions.last() != Some(&open) => {
                            return Err(Unreadable::ConditionalBraces);
                        }
                        "endif" if conditions.pop() != Some(open) => return Err(Unreadable::ConditionalBraces),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        if conditions.is_empty() { Ok(()) } else { Err(Unreadable::ConditionalBraces) }
    }

    /// Checks all words, in functions too.
    fn words(&self, tokens: &[Token]) -> Result<(), Unreadable> {
        tokens.iter().filter_map(|token| self.word(token)).try_for_each(check_word)
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
        let mut shape = Shape::default();
        let mut at = begin;
        while let Some(token) = tokens.get(at) {
            match token.kind {
                TokenKind::Mark(b';') => {
                    self.check_declaration(&shape)?;
                    return Ok(at + 1);
                }
                TokenKind::Mark(b'(') => {
                    let end = closing(tokens, at, b'(', b')')?;
                    let follows = shape.words.last().copied();
                    if follows == Some("__attribute__") {
                        shape.words.pop();
                        shape.attributes.push(at..end);
                    } else if shape.params.is_none() && !shape.has_value {
                        shape.params = Some(at..end);
                        shape.name = follows.filter(|_| at > begin && self.word(&tokens[at - 1]).is_some());
                    }
                    at = end;
                }
                TokenKind::Mark(b'{') => {
                    let end = closing(tokens, at, b'{', b'}')?;
                    let is_type = shape.words.iter().any(|word| matches!(*word, "struct" | "union" | "enum"));
                    if shape.params.is_some() && !shape.has_value {
                        self.function(&shape, tokens, at..end)?;
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
                    shape.has_value = true;
                    at += 1;
                }
                TokenKind::Mark(b'#') => return Err(Unreadable::Unbalanced),
                TokenKind::Word => {
                    let word = &self.text[token.at.clone()];
                    self.check_macro(word)?;
                    shape.is_typedef |= word == "typedef";
                    shape.is_constant |= matches!(word, "constant" | "__constant" | "sampler_t");
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

    /// A macro at program scope must not be able to declare anything by itself.
    fn check_macro(&self, word: &str) -> Result<(), Unreadable> {
        let mut seen = BTreeSet::new();
        let mut open = vec![word.to_owned()];
        while let Some(name) = open.pop() {
            let Some(of) = self.macros.get(&name) else { continue };
            if !seen.insert(name) {
                continue;
            }
            let is_harmful = |piece: &Piece| match piece {
                Piece::Mark(mark) => matches!(mark, b';' | b'{' | b'}' | b'(' | b')' | b',' | b'=' | b'#' | b'['),
                Piece::Word(word) => {
                    matches!(word.as_str(), "global" | "__global" | "static" | "kernel" | "__kernel" | "typedef")
                }
                Piece::Other => true,
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
        if shape.is_typedef || shape.is_constant {
            return Ok(());
        }
        let is_type = shape.words.first().is_some_and(|word| matches!(*word, "struct" | "union" | "enum"));
        // `struct name;` or `struct name { .. };`
        if is_type
            && !shape.has_value
            && shape.params.is_none()
            && shape.words.len() <= if shape.has_members { 1 } else { 2 }
        {
            return Ok(());
        }
        // A prototype has a type and a name.
        if shape.params.is_some() && !shape.has_value && shape.words.len() >= 2 && shape.name.is_some() {
            return Ok(());
        }
        if shape.params.is_some() && !shape.has_value {
            return Err(Unreadable::Macro(shape.words.last().copied().unwrap_or_default().to_owned()));
        }
        Err(Unreadable::Variable(shape.words.last().copied().unwrap_or_default().to_owned()))
    }

    /// Reads a function.
    fn function(&mut self, shape: &Shape<'a>, tokens: &[Token], body: Range<usize>) -> Result<(), Unreadable> {
        let (Some(name), Some(params)) = (shape.name, shape.params.clone()) else { return Err(Unreadable::Unbalanced) };
        let words: BTreeSet<&str> = tokens[body.clone()].iter().filter_map(|token| self.word(token)).collect();
        if words.contains("static") {
            return Err(Unreadable::Variable("static".to_owned()));
        }
        self.found.words.entry(name.to_owned()).or_default().extend(words.into_iter().map(str::to_owned));
        if shape.words.len() < 2 {
            return Err(Unreadable::Macro(name.to_owned()));
        }
        if !shape.words.iter().any(|word| matches!(*word, "kernel" | "__kernel")) {
            return Ok(());
        }
        let end = tokens[body.end - 1].at.end;
        let read = self.kernel(shape, &tokens[params], tokens, end);
        let twice = self.found.kernels.contains_key(name);
        self.found.kernels.insert(name.to_owned(), if twice { Err(Unreadable::Twice) } else { read });
        Ok(())
    }

    /// A word must mean the same at the end of the source as where the kernel is.
    fn check_later(&self, word: &str, end: usize) -> Result<(), Unreadable> {
        let later = |at: Option<&usize>| at.is_some_and(|at| *at > end);
        if later(self.undefined.get(word)) || later(self.macros.get(word).and_then(|of| of.last.as_ref())) {
            return Err(Unreadable::Redefined(word.to_owned()));
        }
        Ok(())
    }

    /// Reads the parameters of a kernel. `params` has its parentheses.
    fn kernel(
        &self,
        shape: &Shape<'a>,
        params: &[Token],
        tokens: &[Token],
        end: usize,
    ) -> Result<KernelText, Unreadable> {
        let inside = &params[1..params.len() - 1];
        let text = |tokens: &[Token]| {
            let words: Vec<&str> = tokens.iter().map(|token| &self.text[token.at.clone()]).collect();
            words.join(" ")
        };
        let mut names = Vec::new();
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
                self.check_macro(word).map_err(|_| Unreadable::Params)?;
                self.check_later(word, end)?;
            }
            if self.macros.contains_key(name) {
                return Err(Unreadable::Params);
            }
            names.push(name.to_owned());
        }
        for word in
            shape.attributes.iter().flat_map(|range| &tokens[range.clone()]).filter_map(|token| self.word(token))
        {
            self.check_later(word, end)?;
        }
        let attributes = shape.attributes.iter().map(|range| format!("__attribute__{}", text(&tokens[range.clone()])));
        let attributes: Vec<String> = attributes.collect();
        let params = if is_empty { String::new() } else { text(inside) };
        Ok(KernelText { attributes: attributes.join(" "), params, names })
    }
}

/// Checks a word anywhere in the source.
fn check_word(word: &str) -> Result<(), Unreadable> {
    if matches!(word, "enqueue_kernel" | "enqueue_marker") { Err(Unreadable::Enqueues) } else { Ok(()) }
}

/// What is known of a declaration while it is read.
#[derive(Default)]
struct Shape<'a> {
    /// Its words outside of parentheses and braces, before a value.
    words: Vec<&'a str>,
    attributes: Vec<Range<usize>>,
    /// The first parentheses that are no attribute's.
    params: Option<Range<usize>>,
    /// The word before them.
    name: Option<&'a str>,
    has_value: bool,
    has_members: bool,
    is_typedef: bool,
    is_constant: bool,
}

/// Returns where what opens at a place is closed, behind the closing mark.
fn closing(tokens: &[Token], begin: usize, open: u8, close: u8) -> Result<usize, Unreadable> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token.kind {
            TokenKind::Mark(mark) if mark == open => depth += 1,
            TokenKind::Mark(mark) if mark == close => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
    }
    Err(Unreadable::Unbalanced)
}
