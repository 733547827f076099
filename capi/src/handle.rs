//! Handles: numbers that look like pointers to C, and name entries of a table.
//!
//! A handle is never dereferenced. It says its type, its place in the table of that type, and how often the place was
//! used, so a handle that is null, released, of another type, or made up is found, and is an error.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::status::{Failure, Outcome};

/// How many bits of a handle are the type and the place; the rest is the number of uses of the place.
const TAG_BITS: u32 = 5;
const PLACE_BITS: u32 = if usize::BITS == 64 { 27 } else { 17 };

/// An object that has handles.
pub(crate) trait Handled: Clone + Send + Sync + 'static {
    /// The type's number, from 1 to 31.
    const TAG: usize;
    /// The type's name in C.
    const NAME: &'static str;

    fn table() -> &'static Table<Self>;
}

pub(crate) struct Table<T>(RwLock<Entries<T>>);

struct Entries<T> {
    all: Vec<Entry<T>>,
    free: Vec<usize>,
}

struct Entry<T> {
    /// How often the place was used.
    uses: usize,
    references: u32,
    object: Option<T>,
}

impl<T: Handled> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(Entries { all: Vec::new(), free: Vec::new() }))
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits a handle into its place and the number of uses.
fn split<T: Handled>(handle: usize) -> Result<(usize, usize), Failure> {
    if handle == 0 {
        return Err(Failure::invalid(format!("the handle of type {} is null", T::NAME)));
    }
    if handle & ((1 << TAG_BITS) - 1) != T::TAG {
        return Err(Failure::invalid(format!("a handle is not one of type {}", T::NAME)));
    }
    let place = handle >> TAG_BITS & ((1 << PLACE_BITS) - 1);
    Ok((place, handle >> (TAG_BITS + PLACE_BITS)))
}

fn dead<T: Handled>() -> Failure {
    Failure::invalid(format!("the handle of type {} was released, or never existed", T::NAME))
}

/// How many objects have handles.
pub(crate) static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Makes a handle with one reference.
pub(crate) fn new<T: Handled>(object: T) -> Outcome<usize> {
    let mut entries = T::table().write();
    let place = match entries.free.pop() {
        Some(place) => place,
        None if entries.all.len() >> PLACE_BITS == 0 => {
            entries.all.push(Entry { uses: 0, references: 0, object: None });
            entries.all.len() - 1
        }
        None => {
            drop(entries);
            return Err(Failure::out_of_memory(format!("there are too many handles of type {}", T::NAME)));
        }
    };
    let entry = &mut entries.all[place];
    (entry.references, entry.object) = (1, Some(object));
    LIVE.fetch_add(1, Ordering::Relaxed);
    Ok(T::TAG | place << TAG_BITS | entry.uses << (TAG_BITS + PLACE_BITS))
}

/// Returns the object of a handle.
pub(crate) fn get<T: Handled>(handle: usize) -> Outcome<T> {
    let (place, uses) = split::<T>(handle)?;
    let entries = T::table().read();
    let entry = entries.all.get(place).filter(|entry| entry.uses == uses);
    entry.and_then(|entry| entry.object.clone()).ok_or_else(dead::<T>)
}

/// Adds a reference.
pub(crate) fn retain<T: Handled>(handle: usize) -> Outcome<()> {
    let (place, uses) = split::<T>(handle)?;
    let mut entries = T::table().write();
    let entry = entries.all.get_mut(place).filter(|entry| entry.uses == uses && entry.object.is_some());
    let entry = entry.ok_or_else(dead::<T>)?;
    entry.references = entry.references.checked_add(1).ok_or_else(|| {
        Failure::out_of_memory(format!("there are too many references to one object of type {}", T::NAME))
    })?;
    Ok(())
}

/// Removes a reference. The last one drops the object.
pub(crate) fn release<T: Handled>(handle: usize) -> Outcome<()> {
    let (place, uses) = split::<T>(handle)?;
    let mut entries = T::table().write();
    let entry = entries.all.get_mut(place).filter(|entry| entry.uses == uses && entry.object.is_some());
    let entry = entry.ok_or_else(dead::<T>)?;
    entry.references -= 1;
    if entry.references > 0 {
        return Ok(());
    }
    let object = entry.object.take();
    LIVE.fetch_sub(1, Ordering::Relaxed);
    entry.uses = (entry.uses + 1) & (usize::MAX >> (TAG_BITS + PLACE_BITS));
    entries.free.push(place);
    // The drop may call the program.
    drop(entries);
    drop(object);
    Ok(())
}

/// Declares that a type has handles: its number from 1 to 31, and its name in C.
macro_rules! handled {
    ($object:ty, $tag:literal, $name:literal) => {
        impl $crate::handle::Handled for $object {
            const TAG: usize = $tag;
            const NAME: &'static str = $name;

            fn table() -> &'static $crate::handle::Table<Self> {
                static TABLE: $crate::handle::Table<$object> = $crate::handle::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use handled;
