//! What comes after a kernel in the source, and would change what its body means at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::kernel::NotItem;
use super::{Piece, Reader};
use crate::opencl_c::tokens::{Token, TokenKind, closing};
use crate::opencl_c::unreadable::Unreadable;
use crate::opencl_c::words::{QUALIFIERS, is_keyword, is_type, is_word};

/// What a source declares and sets, and where.
#[derive(Default)]
pub(super) struct Places {
    pub(super) pragmas: Vec<Pragma>,
    /// Names of functions, types, enumerators and constants.
    declared: BTreeMap<String, Declared>,
    /// Those that are declared for sure, if they are no macros.
    pub(super) names: BTreeSet<String>,
    /// The bodies of functions, in order.
    bodies: Vec<Range<usize>>,
    /// Names of types in constant memory.
    pub(super) constants: BTreeSet<String>,
    /// Of each kernel: its body, and the names in it that may be of the source or of OpenCL C.
    pub(super) free: Vec<(String, Range<usize>, BTreeSet<String>)>,
}

/// Where something is declared.
struct Declared {
    first: usize,
    last: usize,
    /// Whether other functions may have its name.
    is_overloaded: bool,
}

impl Places {
    /// Whether other functions may have a name.
    pub(super) fn is_overloaded(&self, name: &str) -> bool {
        self.declared.get(name).is_some_and(|of| of.is_overloaded)
    }
}

pub(super) struct Pragma {
    pub(super) at: usize,
    /// What it sets.
    name: String,
    pub(super) setting: String,
    pub(super) is_conditional: bool,
    /// Whether it holds no longer than the function that it is in.
    is_scoped: bool,
    is_extension: bool,
}

impl Pragma {
    /// Whether code that compiles without it means the same with it.
    pub(super) fn adds_only(&self) -> bool {
        // Without numbers of these sizes, constants have other types.
        self.is_extension
            && self.setting.ends_with(" enable")
            && self.name.starts_with("cl_")
            && !self.name.contains("fp")
    }
}

/// Whether a word is a member of a struct or vector. `mark` tells the marks before it, the nearest as 1.
pub(super) fn is_member(mark: impl Fn(usize) -> Option<u8>) -> bool {
    match mark(1) {
        Some(b'.') => mark(2) != Some(b'.'),
        Some(b'>') => mark(2) == Some(b'-') && mark(3) != Some(b'-'),
        _ => false,
    }
}

/// Whether the name of a type or variable is before a token, and no part of a type.
fn ends_declarator(next: Option<(TokenKind, Option<&str>)>) -> bool {
    match next {
        None => true,
        Some((TokenKind::Mark(mark), _)) => matches!(mark, b',' | b'=' | b'[' | b')'),
        Some((_, word)) => matches!(word, Some("__attribute__" | "__attribute")),
    }
}

impl Reader<'_> {
    /// Whether the word at a place is a member.
    pub(super) fn has_member(&self, tokens: &[Token], at: usize) -> bool {
        let mark = |before: usize| match tokens.get(at.checked_sub(before)?)?.kind {
            TokenKind::Mark(mark) => Some(mark),
            _ => None,
        };
        // A macro may be more than its name.
        self.word(&tokens[at]).is_some_and(|word| !self.macros.contains_key(word)) && is_member(mark)
    }

    /// Returns a word, and the words of the macros that it reaches, without members.
    pub(super) fn reached(&self, word: &str) -> BTreeSet<String> {
        let (mut seen, mut open) = (BTreeSet::from([word.to_owned()]), vec![word.to_owned()]);
        while let Some(name) = open.pop() {
            let inner = self.macros.get(&name).into_iter().flat_map(|of| self.plain_words(&of.body));
            for word in inner.filter(|word| !word.starts_with('.')) {
                if seen.insert(word.clone()) {
                    open.push(word);
                }
            }
        }
        seen
    }

    /// Returns the words of a macro's body. Members have a dot before them.
    pub(super) fn plain_words(&self, body: &[Piece]) -> Vec<String> {
        let mark = |at: Option<usize>| if let Piece::Mark(mark) = body.get(at?)? { Some(*mark) } else { None };
        let word = |(at, piece): (usize, &Piece)| {
            let Piece::Word(word) = piece else { return None };
            let is_member = !self.macros.contains_key(word) && is_member(|before| mark(at.checked_sub(before)));
            Some(if is_member { format!(".{word}") } else { word.clone() })
        };
        body.iter().enumerate().filter_map(word).collect()
    }

    /// Reads a pragma, of which this is the text behind its name.
    pub(super) fn pragma(&mut self, text: &str, at: usize, is_conditional: bool) -> Result<(), Unreadable> {
        let words: Vec<&str> = text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
        let (name, is_scoped, is_extension) = match words.as_slice() {
            ["OPENCL", "EXTENSION", name, ..] => (*name, false, true),
            ["OPENCL" | "STDC", name, ..] => {
                (*name, matches!(*name, "FP_CONTRACT" | "FENV_ACCESS" | "CX_LIMITED_RANGE"), false)
            }
            [name @ ("unroll" | "nounroll"), ..] => (*name, true, false),
            _ => {
                let name = text.split_whitespace().next().unwrap_or_default();
                return Err(Unreadable::Pragma(name.to_owned()));
            }
        };
        let (name, setting) = (name.to_owned(), words.join(" "));
        self.places.pragmas.push(Pragma { at, name, setting, is_conditional, is_scoped, is_extension });
        Ok(())
    }

    /// Remembers what a declaration at program scope declares. `function` is what it names if it is a function; then the tokens end
    /// before its parameters.
    pub(super) fn declares(&mut self, tokens: &[Token], function: Option<&str>, is_overloaded: bool) {
        let (mut open, mut in_value, mut before_members, mut tag): (Vec<(u8, bool)>, _, _, Option<usize>) =
            (Vec::new(), false, false, None);
        let is_typedef = tokens.first().and_then(|token| self.word(token)) == Some("typedef");
        let mut names = BTreeSet::new();
        let mut end_of_attribute = 0;
        for (at, token) in tokens.iter().enumerate() {
            let depth = open.len();
            match token.kind {
                _ if at < end_of_attribute => {}
                TokenKind::Mark(mark @ (b'{' | b'(' | b'[')) => {
                    let in_enum = open.last().is_some_and(|(_, in_enum)| *in_enum);
                    let begins = mark == b'{' && before_members;
                    if mark == b'{' {
                        (before_members, tag) = (false, None);
                    }
                    open.push((mark, in_enum || begins));
                }
                TokenKind::Mark(b'}' | b')' | b']') => drop(open.pop()),
                TokenKind::Mark(b'=') if depth == 0 => in_value = true,
                TokenKind::Mark(b',') if depth == 0 => in_value = false,
                TokenKind::Word => {
                    let Some(word) = self.word(token) else { continue };
                    if matches!(word, "struct" | "union" | "enum") {
                        (tag, before_members) = (Some(depth), word == "enum");
                        continue;
                    }
                    if matches!(word, "__attribute__" | "__attribute") {
                        end_of_attribute = closing(tokens, at, b'(', b')').unwrap_or(0);
                    }
                    if is_keyword(word) || is_type(word) || QUALIFIERS.contains(&word) {
                        continue;
                    }
                    let is_tag = tag == Some(depth);
                    if is_tag {
                        tag = None;
                    }
                    let in_enum = open.last().is_some_and(|(_, in_enum)| *in_enum);
                    let is_name = !in_value && open.iter().all(|(mark, _)| is_typedef && *mark == b'(');
                    let is_own = match function {
                        Some(name) => word == name,
                        None => is_name && ends_declarator(tokens.get(at + 1).map(|next| (next.kind, self.word(next)))),
                    };
                    let begins_enumerator =
                        at > 0 && matches!(tokens[at - 1].kind, TokenKind::Mark(b'{' | b',') | TokenKind::Directive);
                    if is_tag || is_own || (in_enum && begins_enumerator) {
                        self.places.names.insert(word.to_owned());
                    }
                    if is_tag || in_enum || is_name {
                        names.extend(self.reached(word).into_iter().map(|name| (name, token.at.start)));
                    }
                }
                _ => {}
            }
        }
        for (name, at) in names {
            let is_overloaded = is_overloaded && function == Some(name.as_str());
            let known =
                self.places.declared.entry(name).or_insert(Declared { first: at, last: at, is_overloaded: false });
            known.last = known.last.max(at);
            known.is_overloaded |= is_overloaded;
        }
    }

    /// Remembers a function. `head` is all before its body, or its prototype.
    pub(super) fn declares_function(&mut self, head: &[Token], params: usize, name: &str, body: Option<Range<usize>>) {
        let words = head.iter().filter_map(|token| self.word(token));
        let is_overloaded =
            words.flat_map(|word| self.reached(word)).any(|word| word.trim_matches('_') == "overloadable");
        self.declares(&head[..params.min(head.len())], Some(name), is_overloaded);
        self.places.bodies.extend(body);
    }

    /// Whether a pragma holds no longer than the function that it is in.
    pub(super) fn is_inside(&self, pragma: &Pragma) -> bool {
        let inside = self.places.bodies.partition_point(|of| of.end < pragma.at);
        pragma.is_scoped && self.places.bodies.get(inside).is_some_and(|of| of.contains(&pragma.at))
    }

    /// Returns why a body that is written again at the end would mean something else there.
    pub(super) fn check_after(&self, body: &Range<usize>, free: &BTreeSet<String>) -> Result<(), NotItem> {
        for name in free {
            if let Some(of) = self.places.declared.get(name)
                && (of.first > body.start || (of.is_overloaded && of.last > body.start))
            {
                return Err(NotItem::Later(name.clone()));
            }
        }
        let mut settings: BTreeMap<&str, &str> = BTreeMap::new();
        for pragma in &self.places.pragmas {
            if self.is_inside(pragma) {
                continue;
            }
            let (name, setting) = (pragma.name.as_str(), pragma.setting.as_str());
            let is_same = settings.get(name) == Some(&setting);
            if pragma.at > body.start {
                if name == "all" || !(is_same || pragma.adds_only()) {
                    return Err(NotItem::Pragma(pragma.setting.clone()));
                }
                continue;
            }
            if name == "all" {
                settings.clear();
            } else if pragma.is_conditional {
                // What holds is not known.
                if !is_same {
                    settings.remove(name);
                }
            } else {
                settings.insert(name, setting);
            }
        }
        Ok(())
    }
}

/// Whether a word for constant or local memory is that of a variable, and not of what a pointer points to.
pub(super) fn is_variable(tokens: &[Token], word: usize) -> bool {
    let mut after = tokens.iter().skip(word + 1).skip_while(|token| token.kind == TokenKind::Word);
    if after.next().is_none_or(|token| token.kind != TokenKind::Mark(b'*')) {
        return true;
    }
    // Another variable may follow that is no pointer.
    let mut depth = 0;
    for token in after {
        match token.kind {
            TokenKind::Mark(b'(' | b'[' | b'{') => depth += 1,
            TokenKind::Mark(b')' | b']' | b'}') if depth == 0 => return false,
            TokenKind::Mark(b')' | b']' | b'}') => depth -= 1,
            TokenKind::Mark(b';') if depth == 0 => return false,
            TokenKind::Mark(b',') if depth == 0 => return true,
            _ => {}
        }
    }
    false
}
