//! `atexit` of the C library: code that runs when the process ends, before the libraries of drivers are torn down.

/// Calls a function at the end of the process. Libraries that are loaded before this call are torn down after it.
///
/// On Windows nothing is called: there all other threads have ended before libraries are torn down.
pub(crate) fn on_end(function: extern "C" fn()) {
    #[cfg(unix)]
    {
        use std::ffi::c_int;
        unsafe extern "C" {
            fn atexit(function: extern "C" fn()) -> c_int;
        }
        // SAFETY: **headers**; the function lives as long as the process. If the C library has no memory for it, it is
        // not called.
        let _ = unsafe { atexit(function) };
    }
    #[cfg(not(unix))]
    let _ = function;
}
