//! The functions that the loader has given, and the table that it gets.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// More functions than any loader's table has today (150); those behind are passed through.
pub(super) const PLACES: usize = 160;

static TARGETS: [AtomicPtr<c_void>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];
/// What looks at calls of the program: the report's wrappers. Null where there is none.
static OBSERVERS: [AtomicPtr<c_void>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];
static WRAPPERS: [AtomicPtr<c_void>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];

/// Takes the loader's table, and puts wrappers where it has functions. Returns how many entries the layer's table has.
///
/// A wrapper calls the observer of its place, if there is one, and that one the loader's function.
///
/// # Safety
/// `table` has `count` entries. The functions are of the types of their places.
pub(super) unsafe fn take(
    count: usize,
    table: *const *mut c_void,
    observers: &[(usize, *mut c_void)],
    wrappers: &[(usize, *mut c_void)],
) -> usize {
    let count = count.min(PLACES);
    for place in 0..PLACES {
        let function = if place < count {
            // SAFETY: within the table.
            unsafe { table.add(place).read() }
        } else {
            ptr::null_mut()
        };
        TARGETS[place].store(function, Ordering::Relaxed);
        OBSERVERS[place].store(ptr::null_mut(), Ordering::Relaxed);
        WRAPPERS[place].store(ptr::null_mut(), Ordering::Relaxed);
    }
    let has = |place: &usize| !TARGETS[*place].load(Ordering::Relaxed).is_null();
    for (place, observer) in observers.iter().filter(|(place, _)| has(place)) {
        OBSERVERS[*place].store(*observer, Ordering::Relaxed);
        WRAPPERS[*place].store(*observer, Ordering::Relaxed);
    }
    for (place, wrapper) in wrappers.iter().filter(|(place, _)| has(place)) {
        WRAPPERS[*place].store(*wrapper, Ordering::Relaxed);
    }
    count
}

/// The layer's table. Places with null are passed through.
pub(super) fn table() -> *const *mut c_void {
    // An `AtomicPtr` has the representation of a pointer, and the loader reads it when nothing writes.
    WRAPPERS.as_ptr().cast()
}

/// Returns the loader's function of a place, if it has one.
///
/// # Safety
/// `F` is the type of the function of that place.
pub(super) unsafe fn target<F: Copy>(place: usize) -> Option<F> {
    // SAFETY: the caller names the type.
    unsafe { typed(TARGETS[place].load(Ordering::Relaxed)) }
}

/// Returns what a wrapper calls: the observer of its place, or the loader's function.
///
/// # Safety
/// As for [`target`].
pub(super) unsafe fn next<F: Copy>(place: usize) -> Option<F> {
    let observer = OBSERVERS[place].load(Ordering::Relaxed);
    // SAFETY: the caller names the type.
    unsafe { if observer.is_null() { target(place) } else { typed(observer) } }
}

/// # Safety
/// `F` is the function's type.
unsafe fn typed<F: Copy>(function: *mut c_void) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    if function.is_null() {
        return None;
    }
    // SAFETY: the caller names the type.
    Some(unsafe { std::mem::transmute_copy(&function) })
}
