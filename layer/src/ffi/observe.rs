//! The wrappers that look at calls. What they may do say the rules in [`super`].
#![allow(unsafe_code)]

mod commands;
mod objects;
mod seen;

use std::ffi::c_void;

/// Returns all wrappers, with their places in the table.
pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
    let mut all = commands::wrappers();
    all.extend(objects::wrappers());
    all
}
