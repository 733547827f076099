//! Sources as they are read: as they stand, or, where more can be said of them then, plain: without conditions and with macros written out.

use std::collections::BTreeSet;

use super::compiler_macros::{answer, question};
use super::conditions::Skeleton;
use super::expand::expanded;
use super::options::Options;
use super::source::Source;
use super::unreadable::Unreadable;

/// A source that was read, and its text.
pub(crate) struct Plain {
    pub(crate) text: String,
    pub(crate) source: Source,
}

impl Plain {
    /// Reads a source that is built with these options. `kernels` compiles another one, with options that it is given too, and returns the
    /// names of its kernels. It is asked twice at most, and only where the source as it stands leaves something open.
    pub(crate) fn read(
        text: String,
        options: &str,
        kernels: impl FnMut(&str, &str) -> Option<Vec<String>>,
    ) -> Result<Self, Unreadable> {
        let as_it_stands = Source::read(&text, options);
        let is_hopeless = matches!(
            as_it_stands,
            Err(Unreadable::Odd | Unreadable::Include | Unreadable::CPlusPlus | Unreadable::Option(_))
        );
        let is_known = as_it_stands.as_ref().is_ok_and(|source| source.unknown().is_empty());
        let plain = if is_hopeless || is_known { None } else { plain(&text, options, kernels) };
        let Some(plain) = plain else { return as_it_stands.map(|source| Self { text, source }) };
        match (Source::read(&plain, options), as_it_stands) {
            (Ok(source), Err(_)) => Ok(Self { text: plain, source }),
            (Ok(source), Ok(before)) => {
                let is_better =
                    source.unknown().len() < before.unknown().len() && source.unknown().is_subset(&before.unknown());
                Ok(if is_better { Self { text: plain, source } } else { Self { text, source: before } })
            }
            (Err(_), Ok(source)) => Ok(Self { text, source }),
            // What is in the way then says more.
            (Err(why), Err(_)) => Err(why),
        }
    }
}

/// Returns a source without conditions, and with its macros written out. None if the compiler does not answer, or cannot be asked.
fn plain(text: &str, options: &str, mut kernels: impl FnMut(&str, &str) -> Option<Vec<String>>) -> Option<String> {
    let of_options = Options::read(options).ok()?;
    let skeleton = Skeleton::of(text, &of_options)?;
    let mut decided = skeleton.decided(&kernels(&skeleton.text, options)?)?;
    // A macro of the options may be the compiler's too, and then it may win.
    let named: BTreeSet<String> = of_options.names().map(str::to_owned).collect();
    decided.macros.retain(|name| !named.contains(name));
    if !named.is_empty() {
        let without = of_options.others.join(" ");
        decided.macros.extend(answer(&named, &kernels(&question(&named)?, &without)?)?);
    }
    Some(expanded(&decided.text, &of_options, &decided.macros).unwrap_or(decided.text))
}
