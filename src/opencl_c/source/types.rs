//! Whether a kernel may touch memory by another type than that of the parameter that points to it.

use std::collections::{BTreeMap, BTreeSet};

use crate::opencl_c::source::kernel::RESTRICT;
use crate::opencl_c::source::{Piece, Reader, Source};
use crate::opencl_c::tokens::{Token, TokenKind};
use crate::opencl_c::words::{QUALIFIERS, is_type};

/// Words behind which a type can be anything. (Sources with `typeof` are not read.)
const ANY: [&str; 2] = ["union", "may_alias"];

/// Words for global memory.
const GLOBAL: [&str; 2] = ["global", "__global"];

/// Words for other memory.
const ELSEWHERE: [&str; 6] = ["private", "__private", "local", "__local", "constant", "__constant"];

/// Words that are a part of a type.
const OF_TYPES: [&str; 3] = ["struct", "union", "enum"];

/// To what the pointers to global memory point that a function or macro has, as the texts of types.
#[derive(Clone, Debug, Default)]
pub(super) struct Pointers {
    params: BTreeSet<String>,
    inside: BTreeSet<String>,
}

impl Source {
    /// Returns whether a kernel may touch memory by another type than that of its parameter: there are casts to pointers and their like
    /// in the source, or the kernel reaches a pointer to something that no parameter of its points to, which may have got an address
    /// without a cast.
    pub(crate) fn hides_types(&self, kernel: &str) -> bool {
        let none = Pointers::default();
        let of = |name: &str| self.pointers.get(name).unwrap_or(&none);
        let known = &of(kernel).params;
        let is_other = |name: &str| {
            let Pointers { params, inside } = of(name);
            !inside.is_subset(known) || (name != kernel && !params.is_subset(known))
        };
        self.hides_types || is_other(kernel) || self.reaches(kernel, is_other)
    }

    /// Returns whether the text of a type means the same in all sources.
    pub(crate) fn is_plain(&self, type_text: &str) -> bool {
        const PLAIN: [&str; 4] = ["const", "volatile", "private", "__private"];
        let is_plain = |word: &str| (is_type(word) || PLAIN.contains(&word)) && !self.macros.contains(word);
        type_text.split_whitespace().all(is_plain)
    }
}

/// Whether a word may be between a star and what it ends, and means nothing for it. Names that begin so are the compiler's.
fn is_qualifier(word: &str) -> bool {
    let is_own =
        word.starts_with("__") || word.strip_prefix('_').is_some_and(|rest| rest.starts_with(char::is_uppercase));
    is_own || QUALIFIERS.contains(&word) || RESTRICT.contains(&word)
}

impl Reader<'_> {
    fn all_pieces(&self, tokens: &[Token]) -> Vec<Piece> {
        let piece = |token: &Token| match token.kind {
            TokenKind::Word => Some(Piece::Word(self.text[token.at.clone()].to_owned())),
            TokenKind::Mark(mark) => Some(Piece::Mark(mark)),
            TokenKind::Number | TokenKind::Text => Some(Piece::Other),
            // What is around a line of the preprocessor belongs together.
            TokenKind::Directive => None,
        };
        tokens.iter().filter_map(piece).collect()
    }

    /// Returns whether there are casts to pointers, names for types of pointers, `void`, or unions. A macro counts as if it were used.
    pub(super) fn hides_types(&self, tokens: &[Token]) -> bool {
        let nothing: BTreeSet<&str> =
            self.macros.keys().map(String::as_str).filter(|name| self.is_nothing(name)).collect();
        let of_macros = self.macros.values().any(|of| {
            let mut types = Types::default();
            of.body.iter().for_each(|piece| types.read(piece, self, &nothing));
            // What is around the macro may begin or end it.
            let begins = of.body.first() == Some(&Piece::Mark(b'*'));
            types.found || types.behind_star || begins
        });
        let (mut all, pieces) = (Types::default(), self.all_pieces(tokens));
        pieces.iter().for_each(|piece| all.read(piece, self, &nothing));
        let gives_types = || {
            let stars = self.stars();
            let gives = |pieces: &[Piece]| self.gives_types(pieces, &stars, &nothing);
            gives(&pieces) || self.macros.values().any(|of| gives(&of.body))
        };
        of_macros || all.found || gives_types()
    }

    /// Whether a macro is nothing, or only words that mean nothing behind a star, or what it is given.
    fn is_nothing(&self, name: &str) -> bool {
        let Some(macro_of) = self.macros.get(name) else { return false };
        let is_nothing = |word: &String| {
            let plain = |piece: &Piece| matches!(piece, Piece::Word(_));
            let otherwise = || macro_of.has_params || is_qualifier(word);
            self.macros.get(word).map_or_else(otherwise, |of| of.body.iter().all(plain))
        };
        self.reached(name).iter().all(is_nothing)
    }

    /// Returns the macros that take arguments and reach one with a star that does.
    fn stars(&self) -> BTreeSet<&str> {
        let has_star = |word: &String| {
            self.macros.get(word).is_some_and(|of| of.has_params && of.body.contains(&Piece::Mark(b'*')))
        };
        let reaches = |(name, of): &(&String, &super::Macro)| of.has_params && self.reached(name).iter().any(has_star);
        self.macros.iter().filter(reaches).map(|(name, _)| name.as_str()).collect()
    }

    /// Whether a macro that has a star gets a type, or nothing, in one of its arguments: then the star may be that of a pointer.
    fn gives_types(&self, pieces: &[Piece], stars: &BTreeSet<&str>, nothing: &BTreeSet<&str>) -> bool {
        let of_pointers = |word: &String| QUALIFIERS.contains(&word.as_str()) || RESTRICT.contains(&word.as_str());
        (1..pieces.len()).filter(|at| pieces[*at] == Piece::Mark(b'(')).any(|at| {
            let Piece::Word(word) = &pieces[at - 1] else { return false };
            if !stars.contains(word.as_str()) {
                return false;
            }
            let (mut depth, mut says_nothing) = (0, true);
            for piece in &pieces[at..] {
                match piece {
                    Piece::Mark(b'(') if depth == 0 => depth = 1,
                    Piece::Mark(b')' | b',') if depth == 1 && says_nothing => return true,
                    Piece::Mark(b')') if depth == 1 => return false,
                    Piece::Mark(b',') if depth == 1 => says_nothing = true,
                    Piece::Word(word) if depth == 1 && self.reached(word).iter().any(of_pointers) => return true,
                    Piece::Word(word) if nothing.contains(word.as_str()) => {}
                    Piece::Word(_) | Piece::Other => says_nothing = false,
                    Piece::Mark(mark) => {
                        depth += i32::from(*mark == b'(') - i32::from(*mark == b')');
                        says_nothing = false;
                    }
                }
            }
            true
        })
    }

    /// Takes in the pointers of a function. `params` and `body` have their parentheses and braces.
    pub(super) fn note_pointers(&mut self, name: &str, params: &[Token], body: &[Token]) {
        let of = |tokens: &[Token]| self.pointers(&self.all_pieces(tokens));
        let (params, inside) = (of(params), of(body));
        let known = self.found.pointers.entry(name.to_owned()).or_default();
        known.params.extend(params);
        known.inside.extend(inside);
    }

    /// Takes in the pointers of macros.
    pub(super) fn note_pointers_of_macros(&mut self) {
        let of = |(name, of): (&String, &super::Macro)| {
            let pointers = Pointers { params: BTreeSet::new(), inside: self.pointers(&of.body) };
            (name.clone(), pointers)
        };
        let all: BTreeMap<String, Pointers> = self.macros.iter().map(of).collect();
        self.found.pointers.extend(all);
    }

    /// Returns to what pointers to global memory point: `global T *p`, `global T (*p)`, `global T p[]`, and where addresses may be of any
    /// memory, `T *p`.
    fn pointers(&self, pieces: &[Piece]) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let mut words: Vec<&str> = Vec::new();
        for piece in pieces {
            if let Piece::Word(word) = piece {
                words.push(word);
                continue;
            }
            let is_global = words.iter().any(|word| GLOBAL.contains(word));
            let is_any = || {
                self.is_generic
                    && words.iter().any(|word| is_type(word))
                    && !words.iter().any(|word| ELSEWHERE.contains(word))
            };
            let element = match piece {
                Piece::Mark(b'*') if is_global || is_any() => &words[..],
                Piece::Mark(b'(') if is_global => &words[..],
                Piece::Mark(b'[') if is_global => &words[..words.len() - 1],
                _ => &[],
            };
            let element = self.element(element);
            if !element.is_empty() {
                all.insert(element);
            }
            words.clear();
        }
        all
    }

    /// Returns the text of a type without qualifiers, as far as macros and spellings go.
    fn element(&self, words: &[&str]) -> String {
        let mut element: Vec<&str> = Vec::new();
        for word in words {
            // A macro that stands for one word.
            let (mut word, mut count) = (*word, 0);
            while let Some(of) = self.macros.get(word)
                && let ([Piece::Word(only)], false) = (of.body.as_slice(), of.takes_arguments)
                && count < self.macros.len()
            {
                (word, count) = (only, count + 1);
            }
            let means_nothing = is_qualifier(word) || matches!(word, "kernel" | "__kernel") || self.is_nothing(word);
            if OF_TYPES.contains(&word) || !means_nothing {
                element.push(word);
            }
        }
        let text = element.join(" ");
        for (long, short) in [("char", "uchar"), ("short", "ushort"), ("int", "uint"), ("long", "ulong")] {
            if text.strip_prefix("unsigned ") == Some(long) {
                return short.to_owned();
            }
        }
        if text == "unsigned" { "uint".to_owned() } else { text }
    }
}

#[derive(Default)]
struct Types {
    found: bool,
    /// Behind a star, and qualifiers.
    behind_star: bool,
    behind_void: bool,
    in_typedef: bool,
}

impl Types {
    fn read(&mut self, piece: &Piece, reader: &Reader<'_>, nothing: &BTreeSet<&str>) {
        if let Piece::Word(word) = piece {
            // A name for a type in global memory would hide what is.
            let is_named = self.in_typedef && GLOBAL.contains(&word.as_str());
            self.found |= is_named || ANY.contains(&word.as_str());
            let known = reader.macros.get(word);
            if known.map_or_else(|| is_qualifier(word), |_| nothing.contains(word.as_str())) {
                // What follows in parentheses would hide what comes behind it.
                let is_open = known.is_some_and(|of| of.takes_arguments) || word.starts_with("__attribute");
                self.found |= self.behind_star && is_open;
                return;
            }
        }
        // A product does not end in a star: so this is a type, in a cast or as the argument of a macro.
        let ends = matches!(piece, Piece::Mark(b')' | b','));
        let is_star = matches!(piece, Piece::Mark(b'*'));
        self.found |= (self.behind_star && ends) || (is_star && (self.in_typedef || self.behind_void));
        self.behind_star = is_star;
        self.behind_void = false;
        match piece {
            Piece::Word(word) => {
                self.behind_void = word == "void";
                self.in_typedef |= word == "typedef";
            }
            Piece::Mark(b';') => self.in_typedef = false,
            Piece::Mark(_) | Piece::Other => {}
        }
    }
}
