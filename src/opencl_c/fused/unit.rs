//! The programs whose kernels fused kernels launch. One after the other, their texts become one.
//!
//! Where another program has a word that one declares for all of its text, a macro stands for it. All macros are for one text alone:
//!
//! ```text
//! #pragma push_macro("N")
//! #pragma push_macro("scale")
//! #ifdef N
//! #error the compiler has a macro N
//! #endif
//! #undef N
//! #define N 3
//! #undef scale
//! #define scale clgraph_fuse_2_scale
//! #line 1
//! void scale(global float *a) { a[0] *= N; }
//! #pragma pop_macro("N")
//! #pragma pop_macro("scale")
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::super::options::Options;
use super::super::source::Source;
use super::{FusedKernel, FusedParam};

/// A program whose kernels fused kernels launch.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'a> {
    pub(crate) text: &'a str,
    pub(crate) source: &'a Source,
    /// The options that it is built with.
    pub(crate) options: &'a str,
}

impl<'a> Unit<'a> {
    /// Returns a program that is built without options, as the only one.
    #[cfg(test)]
    pub(crate) fn alone(text: &'a str, source: &'a Source) -> [Self; 1] {
        [Self { text, source, options: "" }]
    }
}

/// A kernel of one of the programs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Callee {
    pub(crate) unit: usize,
    pub(crate) kernel: String,
}

/// In names: no kernel of the first program has a name that begins with a number.
impl fmt::Display for Callee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            0 => f.write_str(&self.kernel),
            unit => write!(f, "{}_{}", unit + 1, self.kernel),
        }
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ValueType {
    /// It means the same in all programs.
    Plain(String),
    /// What it means in the program with this number.
    Of(usize, String),
}

/// The types of values that mean something in one program only.
pub(super) struct Types<'a>(BTreeSet<(usize, &'a str)>);

impl<'a> Types<'a> {
    pub(super) fn of(kernels: &'a [FusedKernel]) -> Self {
        let of = |param: &'a FusedParam| match param {
            FusedParam::Value(ValueType::Of(unit, text), _) => Some((*unit, text.as_str())),
            _ => None,
        };
        Self(kernels.iter().flat_map(|kernel| &kernel.params).filter_map(of).collect())
    }

    /// Returns what a type is called where no program's text is.
    pub(super) fn name(&self, of: &'a ValueType) -> Cow<'a, str> {
        match of {
            ValueType::Plain(text) => Cow::Borrowed(text),
            ValueType::Of(unit, text) => {
                let number = self.0.range(..(*unit, text.as_str())).count();
                Cow::Owned(format!("clgraph_fuse_type{number}"))
            }
        }
    }

    /// Writes what the types of a program are.
    pub(super) fn write(&self, all: &mut String, unit: usize) {
        for (number, (_, text)) in self.0.iter().enumerate().filter(|(_, (of, _))| *of == unit) {
            // Writing to a string never fails.
            let _ = writeln!(all, "typedef {} clgraph_fuse_type{number};", of_values(text));
        }
    }
}

/// Returns a type without the words by which nothing could be written to it.
pub(super) fn of_values(type_text: &str) -> String {
    let of_value = |word: &&str| !["const", "volatile", "private", "__private"].contains(word);
    type_text.split(' ').filter(of_value).collect::<Vec<_>>().join(" ")
}

/// The macros of a program's text that are not for the other texts.
#[derive(Default)]
struct Own<'a> {
    /// All of them.
    all: BTreeSet<&'a str>,
    /// Those that stand for names that another program has too.
    renamed: BTreeSet<&'a str>,
}

impl<'a> Own<'a> {
    /// Returns those of the program with a number. A single one has none.
    fn of(units: &[Unit<'a>], number: usize) -> Self {
        let Some(joining) = units[number].source.joining().filter(|_| units.len() > 1) else { return Self::default() };
        let others = units.iter().enumerate().filter(|(other, _)| *other != number);
        let others: Vec<&BTreeSet<String>> =
            others.filter_map(|(_, other)| Some(&other.source.joining()?.words)).collect();
        let is_shared = |name: &&String| others.iter().any(|words| words.contains(*name));
        let renamed: BTreeSet<&str> = joining.names.iter().filter(is_shared).map(String::as_str).collect();
        let all = joining.macros.iter().map(String::as_str).chain(renamed.iter().copied()).collect();
        Self { all, renamed }
    }
}

/// Writes the text of a program. What comes behind it, up to [`end`], is in its words.
pub(super) fn begin(all: &mut String, units: &[Unit<'_>], number: usize) {
    let (Unit { text, options, .. }, own) = (units[number], Own::of(units, number));
    // Writing to a string never fails.
    for name in own.all {
        let _ = writeln!(all, "#pragma push_macro(\"{name}\")");
    }
    // A single one is built with its options.
    let options = if units.len() > 1 { Options::read(options).unwrap_or_default() } else { Options::default() };
    let plain = |name: &'_ str| name.split('(').next().unwrap_or_default().to_owned();
    // Whether the compiler's own macro or that of the options is the last one differs from compiler to compiler.
    let names: BTreeSet<String> = options.macros.iter().map(|(name, _)| plain(name)).collect();
    for name in names {
        let _ = writeln!(all, "#ifdef {name}\n#error the compiler has a macro {name}\n#endif");
    }
    for (name, body) in options.macros {
        let _ = writeln!(all, "#undef {}\n#define {name} {body}", plain(name));
    }
    for name in own.renamed {
        let _ = writeln!(all, "#undef {name}\n#define {name} clgraph_fuse_{}_{name}", number + 1);
    }
    let _ = writeln!(all, "#line 1\n{text}");
}

/// Ends what begins with the text of a program.
pub(super) fn end(all: &mut String, units: &[Unit<'_>], number: usize) {
    for name in Own::of(units, number).all {
        let _ = writeln!(all, "#pragma pop_macro(\"{name}\")");
    }
}
