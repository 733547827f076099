//! Why a source is not read.

use std::fmt;

/// Why a source, or a kernel of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unreadable {
    /// A comment or constant has no end, or parentheses or braces do not match.
    Unbalanced,
    /// A compiler may read some of its characters in another way than clgraph does.
    Odd,
    /// It includes other files.
    Include,
    /// It has a pragma that clgraph does not know.
    Pragma(String),
    /// It is built with an option that clgraph does not know, or with quotes.
    Option(String),
    /// Braces depend on a condition of the preprocessor.
    ConditionalBraces,
    /// A macro that the source uses joins tokens.
    Joins(String),
    /// A macro has the name of a keyword, or something has a name of clgraph's.
    Keyword(String),
    /// A macro that the source uses may declare something, or change what is inside of what.
    Macro(String),
    /// There is a variable at program scope, or a static one.
    Variable(String),
    /// A kernel enqueues kernels.
    Enqueues,
    /// A kernel is declared with attributes before it is defined.
    Attributes(String),
    /// The version of the language is C++.
    CPlusPlus,
    /// The source does not define the kernel by name.
    NoKernel,
    /// It defines the kernel more than once.
    Twice,
    /// The parameters of the kernel cannot be read.
    Params,
    /// A macro in the kernel is defined anew later.
    Redefined(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbalanced => f.write_str("its parentheses, braces or comments do not match"),
            Self::Odd => f.write_str(
                "it has trigraphs, digraphs, other characters than ASCII outside of comments, or a backslash outside of macros",
            ),
            Self::Include => f.write_str("it includes another file"),
            Self::Pragma(name) => write!(f, "clgraph does not know its pragma `{name}`"),
            Self::Option(option) => write!(f, "clgraph does not know its build option `{option}`"),
            Self::ConditionalBraces => f.write_str("its braces depend on a condition of the preprocessor"),
            Self::Joins(name) => write!(f, "macro `{name}`, which it uses, joins tokens"),
            Self::Keyword(name) => write!(f, "`{name}` means something of its own in OpenCL C, in an attribute, or in clgraph"),
            Self::Macro(name) => write!(f, "macro `{name}`, which it uses, may be more than an expression"),
            Self::Variable(name) => write!(f, "it has the variable `{name}`, which would exist twice"),
            Self::Enqueues => f.write_str("its kernels enqueue kernels"),
            Self::Attributes(name) => write!(f, "kernel `{name}` is declared with attributes before it is defined"),
            Self::CPlusPlus => f.write_str("it is C++"),
            Self::NoKernel => f.write_str("it does not define the kernel by name"),
            Self::Twice => f.write_str("it defines the kernel twice"),
            Self::Params => f.write_str("the kernel's parameters are not plain"),
            Self::Redefined(name) => write!(f, "`{name}`, a name in the kernel, is defined again after it"),
        }
    }
}
