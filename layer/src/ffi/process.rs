//! The end of the process, and children that it forks.
#![allow(unsafe_code)]

use std::sync::Once;

/// Calls a function when the process ends by itself, and another one in each child that it forks. Only the first call counts.
pub(super) fn at_end_and_in_children(end: extern "C" fn(), child: extern "C" fn()) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: functions of this library, which stays in memory (build.rs); where it does not, the system calls the first one
        // when it unloads the library.
        unsafe {
            // If one cannot be registered there is no report, or none of children: the program goes on as it would.
            let _ = libc::atexit(end);
            #[cfg(unix)]
            let _ = pthread_atfork(None, None, Some(child));
            #[cfg(not(unix))]
            let _ = child;
        }
    });
}

#[cfg(unix)]
unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

/// Whether the process has more rights than who started it: then variables must not choose files to write.
pub(super) fn is_privileged() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: no conditions.
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(all(unix, not(target_os = "linux")))]
    // SAFETY: no conditions.
    return unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() };
    #[cfg(not(unix))]
    false
}
