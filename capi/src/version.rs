//! Which version the header and the library are, and what is still alive.

use std::ffi::c_char;
use std::sync::atomic::Ordering;

use crate::handle;
use crate::status::{Failure, clg_status, enter};

/// The version of the header. The library must have the same major and minor number.
pub const CLG_VERSION_MAJOR: u32 = 0;
/// The minor number of the version.
pub const CLG_VERSION_MINOR: u32 = 1;
/// The third number of the version.
pub const CLG_VERSION_PATCH: u32 = 0;

/// Returns how many objects of the process have handles: 0 when a program has released all that it made.
#[unsafe(no_mangle)]
pub extern "C" fn clg_live_objects() -> usize {
    handle::LIVE.load(Ordering::Relaxed)
}

/// Fails if the library that was loaded is not for this header: pass CLG_VERSION_MAJOR and CLG_VERSION_MINOR, before any
/// other call. `clgraph.hpp` does so itself.
#[unsafe(no_mangle)]
pub extern "C" fn clg_check_version(major: u32, minor: u32) -> clg_status {
    enter(|| {
        if (major, minor) == (CLG_VERSION_MAJOR, CLG_VERSION_MINOR) {
            return Ok(());
        }
        let library = env!("CARGO_PKG_VERSION");
        Err(Failure::invalid(format!(
            "the program was compiled with the header of clgraph {major}.{minor}, and the library is {library}: compile it \
             again, or load the library of its version"
        )))
    })
}

/// Returns the version of the library that was loaded, for example "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn clg_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
