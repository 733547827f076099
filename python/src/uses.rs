//! Memory that functions of the program say they use: host tasks and native commands.

use pyo3::prelude::*;
use rust::Image;

use crate::errors::{type_of, wrong_type};
use crate::memory::{self, Memory, Place, Scope, is_image};

/// A use of memory or of an image.
pub(crate) enum Use {
    Reads(Place),
    Writes(Place),
    ReadsImage(Image),
    WritesImage(Image),
}

impl Use {
    pub(crate) fn is_image(&self) -> bool {
        matches!(self, Self::ReadsImage(_) | Self::WritesImage(_))
    }
}

/// Declares uses of memory to a builder.
macro_rules! with_uses {
    ($builder:expr, $uses:expr) => {
        $uses.iter().fold($builder, |builder, one| match one {
            $crate::uses::Use::Reads(place) => $crate::memory::with_place!(place, |memory| builder.reads(memory)),
            $crate::uses::Use::Writes(place) => {
                $crate::memory::with_place!(place, |memory| builder.reads_and_writes(memory))
            }
            $crate::uses::Use::ReadsImage(image) => builder.reads(image),
            $crate::uses::Use::WritesImage(image) => builder.reads_and_writes(image),
        })
    };
}
pub(crate) use with_uses;

/// The memory that a function reads and writes: what it reads comes first. `who` is the function, for texts.
pub(crate) fn uses(
    reads: Option<&Bound<'_, PyAny>>,
    writes: Option<&Bound<'_, PyAny>>,
    scope: Scope<'_>,
    who: &str,
) -> PyResult<Vec<Use>> {
    let what = format!("memory that {who} uses");
    let place = |object: &Bound<'_, PyAny>| memory::memory(object, scope, &what).map(|memory| memory.place);
    let mut all = Vec::new();
    for object in list(reads)? {
        let image = is_image(&object);
        all.push(if image { Use::ReadsImage(scope.image(&object)?) } else { Use::Reads(place(&object)?) });
    }
    for object in list(writes)? {
        let image = is_image(&object);
        all.push(if image { Use::WritesImage(scope.image(&object)?) } else { Use::Writes(place(&object)?) });
    }
    Ok(all)
}

/// One object, or an iterable of them.
fn list<'py>(object: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let Some(object) = object else { return Ok(Vec::new()) };
    if object.cast::<Memory>().is_ok() || crate::interop::kind(object).is_some() {
        return Ok(vec![object.clone()]);
    }
    let list = object.try_iter().map_err(|_| {
        wrong_type(format!("`reads` and `writes` are memory, or lists of memory, not {}", type_of(object)))
    })?;
    list.collect()
}
