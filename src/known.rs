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

/// Whether transfers of the host's memory behind a user event return at once, as they should: tried with gated submissions of all
/// kinds.
pub(crate) fn takes_bytes_behind_gates(caps: &Caps) -> bool {
    driver(caps) != Driver::Other || ["rusticl", "NVIDIA CUDA"].contains(&caps.platform.as_str())
}

/// Whether kernels of several queues may run at once. Mesa's rusticl (26.2, on llvmpipe) corrupts the heap when two queues of a
/// context run kernels, in a few lines of plain OpenCL as well.
pub(crate) fn runs_queues_at_once(caps: &Caps) -> bool {
    caps.platform != "rusticl"
}

/// Whether command buffers may be changed while they run: what is enqueued keeps the values of before. Probed on Intel's CPU
/// runtime with gated, running and pipelined submissions. PoCL refuses; of others nothing is known.
pub(crate) fn keeps_enqueued(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Whether many commands are changed faster in a few long command buffers than in many short ones, also by hand: Intel's CPU runtime
/// (2026.2). Chains of up to 1 000 kernels are enqueued in the same time in buffers of 256 as of 64, longer ones a little more slowly.
pub(crate) fn updates_long_buffers_faster(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Whether the event of a command that runs says so. Mesa's rusticl mostly shows it as submitted until it is complete.
pub(crate) fn tells_start(caps: &Caps) -> bool {
    caps.platform != "rusticl"
}

/// Whether images and samplers stay unseen behind a type name of the program's own: PoCL (3.1 to 7.1) gives the kernel something
/// else then, says that all is well, and crashes over samplers.
pub(crate) fn misses_named_types(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// Whether images cannot be made of sub-buffers (PoCL, 3.1 to 7.1: -38).
pub(crate) fn makes_images_of_whole_buffers(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// Whether copies between layers of one array of images go wrong: Intel's CPU runtime (2026.2) refuses them as if they
/// overlapped, and NVIDIA's driver (580, on an H200) copies other pixels.
pub(crate) fn mistakes_layers(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu || caps.platform == "NVIDIA CUDA"
}

/// Whether copies from an array of rows to an image of another kind copy other pixels (Mesa's rusticl, 26).
pub(crate) fn miscopies_1d_arrays(caps: &Caps) -> bool {
    caps.platform == "rusticl"
}

/// Whether copies between an array of rows and a buffer are refused (NVIDIA's driver, 580, on an H200: -30 for all layers but the
/// first).
pub(crate) fn refuses_rows(caps: &Caps) -> bool {
    caps.platform == "NVIDIA CUDA"
}

/// Whether a fill of an image that is a buffer ends the process (PoCL 3.1).
pub(crate) fn dies_of_buffer_fills(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("3.")
}

/// Whether SVM that was mapped once is never given back, though it is unmapped, and the next allocation at its address ends the
/// process (PoCL 7.1: "Overlapping BDA pointer"). The device is the host there, so its commands being complete is enough.
pub(crate) fn keeps_mapped_svm(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("7.")
}

/// How often to try to allocate memory with an address. On NVIDIA (580) `clSVMAlloc` says now and then that there is none, while
/// other memory is given back.
pub(crate) fn attempts_to_allocate(caps: &Caps) -> usize {
    if caps.platform == "NVIDIA CUDA" { 20 } else { 1 }
}

/// Whether SVM that is mapped several times at an address is to be unmapped as often. NVIDIA (580) refuses all but the first.
pub(crate) fn counts_svm_maps(caps: &Caps) -> bool {
    caps.platform != "NVIDIA CUDA"
}

/// Whether a kernel that reads and writes an `image1d_buffer_t` ends the process (PoCL 3.1 and 6.0).
pub(crate) fn dies_of_read_write_rows(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && ["3.", "6."].iter().any(|version| caps.driver_version.starts_with(version))
}

/// Whether copies to images of two dimensions that are made of buffers, and from one to another image, copy other pixels when they
/// have several rows (Mesa's rusticl, 26).
pub(crate) fn miscopies_pictures(caps: &Caps) -> bool {
    caps.platform == "rusticl"
}

/// Whether recording a kernel with a sampler, or anything with an image that is a buffer, ends the process (PoCL, 3.1 to 7.1).
pub(crate) fn dies_of_recording(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// Whether the devices of a program share its variables (PoCL 6.0: those of one device that was divided). OpenCL gives each its
/// own.
pub(crate) fn shares_variables(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// Whether SVM, USM and sub-buffers are to be given back a while after their last command says that it is complete (PoCL 7.1): see
/// `cl/freed.rs`.
pub(crate) fn frees_late(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("7.")
}
