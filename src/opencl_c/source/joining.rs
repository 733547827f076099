//! What has to be known of a source that becomes one text with others.

use std::collections::BTreeSet;

use super::Reader;
use crate::opencl_c::builtins::is_builtin;
use crate::opencl_c::options::Options;
use crate::opencl_c::tokens::{Token, TokenKind, closing, plain_directive};
use crate::opencl_c::words::{FILES, HINTS, PLACES, is_component, is_word};

/// What has to be known of a source that becomes one text with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Joining {
    /// The names of functions, types, enumerators and constants that it declares for all of the text. A macro may stand for each.
    pub(in crate::opencl_c) names: BTreeSet<String>,
    /// The macros that it or its options define, or that it takes back.
    pub(in crate::opencl_c) macros: BTreeSet<String>,
    /// All of its words, and those of its options.
    pub(in crate::opencl_c) words: BTreeSet<String>,
    /// What differs between sources that cannot become one text: what pragmas set, and options that are no macros.
    pub(crate) dialect: String,
}

impl Reader<'_> {
    /// Returns what has to be known to make one text of the source and others. None if that may change what it means.
    pub(super) fn joining(&self, tokens: &[Token], options: &Options<'_>) -> Option<Joining> {
        let names = &self.places.names;
        let of_text = self.macros.keys().chain(self.undefined.keys());
        let macros: BTreeSet<String> = of_text.filter(|name| !name.is_empty()).cloned().collect();
        let (mut words, mut asked, mut components): (BTreeSet<String>, BTreeSet<String>, BTreeSet<String>) =
            Default::default();
        for (at, token) in tokens.iter().enumerate() {
            match token.kind {
                TokenKind::Word => {
                    let word = &self.text[token.at.clone()];
                    words.insert(word.to_owned());
                    if is_component(word) && self.has_member(tokens, at) {
                        components.insert(word.to_owned());
                    }
                    if matches!(word, "__attribute__" | "__attribute") {
                        let end = closing(tokens, at, b'(', b')').unwrap_or(at);
                        asked.extend(tokens[at..end].iter().filter_map(|token| self.word(token)).map(str::to_owned));
                    }
                }
                TokenKind::Directive => {
                    let plain = plain_directive(&self.text[token.at.clone()]);
                    let mut its = plain.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned);
                    let is_body = its.next().as_deref() == Some("define");
                    let its: Vec<String> = its.collect();
                    asked.extend(its.iter().filter(|_| !is_body).cloned());
                    words.extend(its);
                }
                _ => {}
            }
        }
        let of_options = options.macros.iter().flat_map(|(name, body)| [name, body]);
        let of_options = of_options.flat_map(|text| text.split(|c| !is_word(c)));
        words.extend(of_options.filter(|word| !word.is_empty()).map(str::to_owned));
        // No macro can stand for a name that the preprocessor or an attribute has, that is also a component of a vector or comes with
        // clgraph's functions, or that OpenCL C has too.
        let asked: BTreeSet<String> = asked.iter().flat_map(|word| self.reached(word)).collect();
        let stays = |name: &String| {
            let is_asked = [&macros, &asked, &components].iter().any(|names| names.contains(name));
            is_asked || HINTS.contains(&name.as_str()) || is_builtin(name)
        };
        // The compiler's own text, which comes behind macros of options, may see one of OpenCL C's names.
        let changes_more = options.macros.iter().any(|(name, _)| is_builtin(name.split('(').next().unwrap_or(name)));
        // Texts are made of names that macros stand for, and lines before another text may say which file it is of.
        let sees_place = |word: &&str| *word != "__LINE__" && words.contains(*word);
        let sees_more = PLACES.iter().chain(&FILES).any(sees_place) || !self.found.quoting.is_empty();
        if names.iter().any(stays) || changes_more || sees_more {
            return None;
        }
        let dialect = format!("{}\n{}", options.others.join(" "), self.settings(tokens, options)?);
        Some(Joining { names: names.clone(), macros, words, dialect })
    }

    /// Returns what the pragmas set. None if they do not set it for all of the source.
    fn settings(&self, tokens: &[Token], options: &Options<'_>) -> Option<String> {
        let begin = tokens.iter().find(|token| token.kind != TokenKind::Directive);
        let begin = begin.map_or(self.text.len(), |token| token.at.start);
        let (mut settings, mut is_conditional) = (Vec::new(), false);
        for pragma in self.places.pragmas.iter().filter(|pragma| !pragma.adds_only() && !self.is_inside(pragma)) {
            if pragma.at > begin {
                return None;
            }
            settings.push(pragma.setting.as_str());
            is_conditional |= pragma.is_conditional;
        }
        let mut settings = settings.join("\n");
        if is_conditional {
            // The conditions are true for both, or for none.
            settings += &format!("\n{}\n{:?}", &self.text[..begin], options.macros);
        }
        Some(settings)
    }
}
