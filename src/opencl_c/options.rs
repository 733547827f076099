//! The options that a program is built with.

use super::unreadable::Unreadable;
use super::words::is_word;

/// The options that a program is built with, as far as they matter for what its source means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options<'a> {
    /// Macros: the name, with parameters if it has some, and the body.
    pub(crate) macros: Vec<(&'a str, &'a str)>,
    /// Those that are not for the preprocessor.
    pub(crate) others: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// Reads options, and refuses those that may change what a source means in a way that is not known.
    pub(crate) fn read(options: &'a str) -> Result<Self, Unreadable> {
        let unknown = |option: &str| Err(Unreadable::Option(option.to_owned()));
        if let Some(at) = options.find(|c: char| matches!(c, '"' | '\'' | '\\') || !(' '..='~').contains(&c)) {
            return unknown(&options[at..]);
        }
        let mut all = Self::default();
        let mut words = options.split_whitespace();
        while let Some(word) = words.next() {
            if word.to_ascii_lowercase().contains("clc++") {
                return Err(Unreadable::CPlusPlus);
            }
            if let Some(rest) = word.strip_prefix("-D") {
                let definition = if rest.is_empty() { words.next().unwrap_or_default() } else { rest };
                let (name, body) = definition.split_once('=').unwrap_or((definition, "1"));
                // A compiler may take another part of it for the name.
                let params = name.trim_start_matches(is_word);
                if params.len() == name.len()
                    || !(params.is_empty() || (params.starts_with('(') && params.ends_with(')')))
                {
                    return unknown(word);
                }
                all.macros.push((name, body));
            } else if word == "-I" {
                // Only for files that the source includes.
                words.next();
            } else if word.starts_with("-cl-") || ["-w", "-Werror", "-g"].contains(&word) {
                all.others.push(word);
            } else if !word.starts_with("-I") {
                return unknown(word);
            }
        }
        Ok(all)
    }

    /// Returns the names of the macros.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.macros.iter().map(|(name, _)| name.split('(').next().unwrap_or(name))
    }
}
