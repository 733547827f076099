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

/// Does work that writes where nobody may read any more, or where a limit of sizes is reached: then the write fails, and the program
/// is not ended by SIGPIPE or SIGXFSZ.
pub(super) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(unix)]
    {
        // SAFETY: sets of signals are plain data; each call has its own places, and is about this thread alone.
        unsafe {
            let set = |signals: &[libc::c_int]| {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&raw mut set);
                for signal in signals {
                    libc::sigaddset(&raw mut set, *signal);
                }
                set
            };
            let waits = |signal: libc::c_int| {
                let mut pending = std::mem::zeroed();
                libc::sigpending(&raw mut pending) == 0 && libc::sigismember(&raw const pending, signal) == 1
            };
            let signals = [libc::SIGPIPE, libc::SIGXFSZ];
            let had = signals.map(waits);
            let (all, mut before) = (set(&signals), std::mem::zeroed());
            let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before) == 0;
            let done = work();
            if blocked {
                // Those that the work has caused are taken away, or they would come when they are not blocked any more.
                for (signal, had) in signals.into_iter().zip(had) {
                    if !had && waits(signal) {
                        let (one, mut came) = (set(&[signal]), 0);
                        libc::sigwait(&raw const one, &raw mut came);
                    }
                }
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
            }
            done
        }
    }
    #[cfg(not(unix))]
    work()
}
