//! The functions that the loader has given, and the table that it gets.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// More functions than any loader's table has today (150); those behind are passed through.
pub(super) const PLACES: usize = 160;

static TARGETS: [AtomicPtr<c_void>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];
static WRAPPERS: [AtomicPtr<c_void>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];

/// Takes the loader's table, and puts wrappers where it has functions. Returns how many entries the layer's table has.
///
/// # Safety
/// `table` has `count` entries.
pub(super) unsafe fn take(count: usize, table: *const *mut c_void, wrappers: &[(usize, *mut c_void)]) -> usize {
    let count = count.min(PLACES);
    for place in 0..PLACES {
        let function = if place < count {
            // SAFETY: within the table.
            unsafe { table.add(place).read() }
        } else {
            ptr::null_mut()
        };
        TARGETS[place].store(function, Ordering::Relaxed);
        WRAPPERS[place].store(ptr::null_mut(), Ordering::Relaxed);
    }
    for (place, wrapper) in wrappers {
        if !TARGETS[*place].load(Ordering::Relaxed).is_null() {
            WRAPPERS[*place].store(*wrapper, Ordering::Relaxed);
        }
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
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let function = TARGETS[place].load(Ordering::Relaxed);
    if function.is_null() {
        return None;
    }
    // SAFETY: the caller names the type.
    Some(unsafe { std::mem::transmute_copy(&function) })
}
