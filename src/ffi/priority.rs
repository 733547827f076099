//! The priority of a thread: `setpriority` of the C library.

/// Lowers the priority of the calling thread, where the system has priorities of threads: others go first.
pub(crate) fn lower() {
    #[cfg(target_os = "linux")]
    {
        use std::ffi::c_int;
        unsafe extern "C" {
            fn setpriority(which: c_int, who: c_int, priority: c_int) -> c_int;
        }
        const PRIO_PROCESS: c_int = 0;
        // SAFETY: **headers**; 0 is the calling thread on Linux. If it is refused, the priority stays.
        let _ = unsafe { setpriority(PRIO_PROCESS, 0, 10) };
    }
}
