//! Sources as they are read: as they stand, or, where more can be said of them then, plain: without conditions and with macros written out.

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
    /// Reads a source that is built with these options. `kernels` compiles another one, with the same options, and returns the names of
    /// its kernels. It is asked at most once, for [`Skeleton`]s, and only where conditions keep something from being read.
    pub(crate) fn read(
        text: String,
        options: &str,
        kernels: impl FnOnce(&str) -> Option<Vec<String>>,
    ) -> Result<Self, Unreadable> {
        let as_it_stands = Source::read(&text, options);
        let is_hopeless = matches!(
            as_it_stands,
            Err(Unreadable::Odd | Unreadable::Include | Unreadable::CPlusPlus | Unreadable::Option(_))
        );
        let (all, known) = as_it_stands.as_ref().map_or((1, 0), Source::counts);
        let macros = Options::read(options);
        let Some(macros) = macros.ok().filter(|_| !is_hopeless && known < all) else {
            return as_it_stands.map(|source| Self { text, source });
        };
        let decided = Skeleton::of(&text, &macros).and_then(|of| of.decided(&kernels(&of.text)?));
        let mut plain = decided.unwrap_or_else(|| text.clone());
        if let Some(written) = expanded(&plain, options) {
            plain = written;
        }
        match (Source::read(&plain, options), as_it_stands) {
            (Ok(source), Err(_)) => Ok(Self { text: plain, source }),
            (Ok(source), Ok(_)) if source.counts().1 > known => Ok(Self { text: plain, source }),
            (_, Ok(source)) => Ok(Self { text, source }),
            // What is in the way then says more.
            (Err(why), Err(_)) => Err(why),
        }
    }
}
