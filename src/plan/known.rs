//! What is known of drivers beyond what they say. The measurements are in `docs/drivers.md`.

use crate::caps::Caps;

/// Drivers with something to know about their command buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// PoCL on a CPU, all versions with command buffers (3.1 to 7.1): enqueues each command anew, and takes more time and
    /// stack than a loop would.
    Pocl,
    /// Intel's CPU runtime (2026.2): slower than a loop, and never gives back about 1.9 KB for each command at each enqueue
    /// of a command buffer.
    IntelCpu,
    /// Nothing is known.
    Other,
}

/// Which of them a device belongs to.
pub(crate) fn driver(caps: &Caps) -> Driver {
    match caps.platform.as_str() {
        "Portable Computing Language" if !caps.gpu => Driver::Pocl,
        // Its emulation of FPGAs is the same runtime under another name.
        name if name.starts_with("Intel(R)") && !caps.gpu => Driver::IntelCpu,
        _ => Driver::Other,
    }
}

/// Whether it is faster to hold a long submission by a user event until all of it is enqueued. On PoCL the thread that
/// enqueues and those that run get into each other's way: long chains of empty kernels take about 0.9 of the time when they
/// do not, and their host 0.6 of the time to enqueue them. Short ones take longer: see `docs/drivers.md`.
pub(crate) fn gate_pays(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// Whether command buffers may be changed while they run: what is enqueued keeps the values of before. Probed on Intel's CPU
/// runtime with gated, running and pipelined submissions. PoCL refuses; of others nothing is known.
pub(crate) fn keeps_enqueued(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Whether the event of a command that runs says so. Mesa's rusticl mostly shows it as submitted until it is complete.
pub(crate) fn tells_start(caps: &Caps) -> bool {
    caps.platform != "rusticl"
}
