//! Faults and peculiarities of drivers that no query of OpenCL reports. `docs/drivers.md` has the measurements.
//!
//! Each function answers one question about a device. The first line of its documentation names the driver, the
//! version, and what the driver does. To add a quirk, write a function here and a line in the table of
//! `docs/drivers.md`.

use crate::caps::Caps;

/// The drivers whose command buffers have a known quirk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// PoCL on a CPU, all versions with command buffers (3.1 to 7.1). It enqueues each recorded command again, and
    /// needs more time and more stack than separate enqueues.
    Pocl,
    /// Intel's CPU runtime (2026.2). Its command buffers are slower than separate enqueues. Each time that a command
    /// buffer is enqueued, the runtime loses about 1.9 KB of memory for each recorded command.
    IntelCpu,
    /// Any other driver: no quirk is known.
    Other,
}

/// Returns the driver that a device belongs to.
pub(crate) fn driver(caps: &Caps) -> Driver {
    match caps.platform.as_str() {
        "Portable Computing Language" if !caps.gpu => Driver::Pocl,
        // Intel's FPGA emulation has another name, and is the same runtime.
        name if name.starts_with("Intel(R)") && !caps.gpu => Driver::IntelCpu,
        _ => Driver::Other,
    }
}

/// PoCL on a CPU (3.1 to 7.1): the thread that enqueues and the threads that run commands slow each other down.
///
/// Returns whether a long submission is faster if a user event holds it back until all its commands are enqueued. On
/// PoCL, long chains of empty kernels then take about 0.9 of the time, and the host takes 0.6 of the time to enqueue
/// them. Short chains take longer: see `docs/drivers.md`.
pub(crate) fn gate_pays(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// PoCL's device `basic` (3.1), which has no threads: the call that completes a user event runs the commands that wait for it, and then
/// waits for a lock that it holds.
pub(crate) fn hangs_when_a_gate_is_opened(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.name.starts_with("basic-")
}

/// PoCL on a CPU, Intel's CPU runtime, rusticl and NVIDIA: a transfer of host memory that waits for a user event
/// returns at once, as OpenCL requires. This is tested with gated submissions of all kinds. For all other drivers the
/// answer is unknown, and this function returns `false`.
pub(crate) fn gated_transfers_do_not_block(caps: &Caps) -> bool {
    driver(caps) != Driver::Other || ["rusticl", "NVIDIA CUDA"].contains(&caps.platform.as_str())
}

/// Mesa's rusticl (26.2, on llvmpipe): the heap is corrupted when two queues of a context run kernels at once. A few
/// lines of plain OpenCL show the same.
///
/// Returns whether kernels of several queues may run at once.
pub(crate) fn runs_queues_at_once(caps: &Caps) -> bool {
    caps.platform != "rusticl"
}

/// rusticl (Mesa 26.2): a command of an out-of-order queue that waits for an event holds up all later ones.
///
/// On NVIDIA (580) it does too, but there the remedy does harm: after a user event has failed, a wait for another one returns before
/// that is complete (`tests/failing_events.rs`).
pub(crate) fn holds_up_what_is_behind_a_wait(caps: &Caps) -> bool {
    caps.platform == "rusticl"
}

/// rusticl (Mesa 26.2) and NVIDIA (580): the commands of an out-of-order queue run in order.
pub(crate) fn runs_in_order(caps: &Caps) -> bool {
    ["rusticl", "NVIDIA CUDA"].contains(&caps.platform.as_str())
}

/// Intel's CPU runtime (2026.2): it builds one program at a time in any case, and if several threads build at once, one
/// of them can enter an endless loop.
pub(crate) fn builds_one_at_a_time(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Intel's CPU runtime (2026.2): programs that make and release out-of-order queues all the time hang, crash, or read
/// wrong bytes, whatever they wait for before the release.
pub(crate) fn must_keep_out_of_order_queues(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Intel's CPU runtime (2026.2): the process hangs or crashes if commands run, or wait for an event, while it ends.
pub(crate) fn queues_must_be_empty_at_the_end(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Intel's CPU runtime (2026.2): a command buffer may be changed while it runs, and what is already enqueued keeps its
/// old values. This is tested with gated, running and pipelined submissions. PoCL refuses such a change. For all other
/// drivers the answer is unknown, and this function returns `false`.
pub(crate) fn update_keeps_enqueued_values(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Intel's CPU runtime (2026.2): many commands are updated faster in a few long command buffers than in many short
/// ones. This is also true for updates that a program makes by hand. Chains of up to 1 000 kernels are enqueued in the
/// same time in command buffers of 256 commands as of 64; longer chains a little more slowly.
pub(crate) fn updates_long_buffers_faster(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Mesa's rusticl (26.2): the event of a running command mostly has the status "submitted" until the command is
/// complete.
///
/// Returns whether the event of a running command has the status "running".
pub(crate) fn reports_running_status(caps: &Caps) -> bool {
    caps.platform != "rusticl"
}

/// PoCL on a CPU (3.1 to 7.1): work-groups are counted in 32 bits. A kernel of 2^32 or more work-groups ends the process, never
/// completes, or leaves out work-groups.
///
/// Returns the largest number of work-groups of a kernel.
pub(crate) fn max_work_groups(caps: &Caps) -> u64 {
    if driver(caps) == Driver::Pocl { u64::from(u32::MAX) } else { u64::MAX }
}

/// PoCL on a CPU (3.1 to 7.1): an image or sampler parameter whose type is a `typedef` of the program is not
/// recognized. PoCL then passes something else to the kernel and reports success; with samplers it crashes.
pub(crate) fn ignores_typedefs(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// PoCL on a CPU (3.1 to 7.1): an image cannot be made of a sub-buffer (-38).
pub(crate) fn makes_images_of_whole_buffers(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// Intel's CPU runtime (2026.2) and NVIDIA (580, on an H200): copies between layers of one image array fail. Intel's
/// runtime refuses them as overlapping; NVIDIA's driver copies other pixels.
pub(crate) fn mishandles_layer_copies(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu || caps.platform == "NVIDIA CUDA"
}

/// Mesa's rusticl (26): a copy from an `image1d_array_t` to an image of another kind copies other pixels.
pub(crate) fn miscopies_1d_arrays(caps: &Caps) -> bool {
    caps.platform == "rusticl"
}

/// NVIDIA (580, on an H200): a copy between an `image1d_array_t` and a buffer is refused (-30) for all layers but the
/// first.
pub(crate) fn rejects_1d_array_layers(caps: &Caps) -> bool {
    caps.platform == "NVIDIA CUDA"
}

/// PoCL on a CPU (3.1): a fill of an `image1d_buffer_t` ends the process.
pub(crate) fn crashes_filling_buffer_images(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("3.")
}

/// PoCL on a CPU (7.1): SVM that was mapped once is never freed, although it is unmapped. The next allocation at its
/// address ends the process ("Overlapping BDA pointer").
///
/// Where this returns `true`, clgraph maps SVM without a command: the device is the host, so it is enough that the
/// commands that use the memory are complete.
pub(crate) fn keeps_mapped_svm(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("7.")
}

/// NVIDIA (580): `clSVMAlloc` sometimes reports that there is no memory, while other memory is being freed.
///
/// Returns how many times to try to allocate memory with an address.
pub(crate) fn allocation_attempts(caps: &Caps) -> usize {
    if caps.platform == "NVIDIA CUDA" { 20 } else { 1 }
}

/// NVIDIA (580): SVM that is mapped several times at one address can be unmapped only once; further unmaps are refused.
///
/// Returns whether each map needs its own unmap.
pub(crate) fn counts_svm_maps(caps: &Caps) -> bool {
    caps.platform != "NVIDIA CUDA"
}

/// PoCL on a CPU (3.1 and 6.0): a kernel that reads and writes an `image1d_buffer_t` ends the process.
pub(crate) fn crashes_on_read_write_buffer_images(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && ["3.", "6."].iter().any(|version| caps.driver_version.starts_with(version))
}

/// Mesa's rusticl (26): a copy of several rows to a two-dimensional image that is made of a buffer copies other pixels.
/// A copy from one such image to another image does too.
pub(crate) fn miscopies_images_of_buffers(caps: &Caps) -> bool {
    caps.platform == "rusticl"
}

/// PoCL on a CPU (3.1 to 7.1): the process ends when a kernel with a sampler, or any command with an
/// `image1d_buffer_t`, is recorded.
pub(crate) fn crashes_recording_samplers_and_buffer_images(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// PoCL on a CPU (seen in 6.0, assumed for all versions): sub-devices of one device share the program-scope variables of a program. OpenCL gives each
/// device its own.
pub(crate) fn shares_variables(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// PoCL on a CPU (7.1): SVM, USM and sub-buffers that are freed as soon as their last command reports completion can
/// end the process. Where this returns `true`, clgraph frees them a while later: see `cl/memory/freed.rs`.
pub(crate) fn must_free_late(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("7.")
}

/// PoCL on a CPU (3.1 and 6.0): `get_global_size(3)` and its like are 0. OpenCL says 1 (OpenCL C 3.0, section 6.15.1), as do PoCL 7.1
/// and others.
///
/// Returns what kernels get for the sizes of a dimension that does not exist.
pub(crate) fn size_of_a_fourth_dimension(caps: &Caps) -> u32 {
    let is_old = driver(caps) == Driver::Pocl && !caps.driver_version.starts_with("7.");
    u32::from(!is_old)
}

/// PoCL on a CPU (3.1 and 6.0): its compiler vectorizes some loops wrongly in which an index wraps, such as `s[(i * 3) % 256]` for `i`
/// from 0 to 214, if it knows where the loop begins: they read beyond the memory.
pub(crate) fn vectorizes_loops_rightly(caps: &Caps) -> bool {
    driver(caps) != Driver::Pocl || caps.driver_version.starts_with("7.")
}

/// PoCL on a CPU (3.1 and 7.1) and Intel's CPU runtime (2026.2): all random programs gave the same bits fused and not, but for a few whose
/// launches, one by one, PoCL 7.1 compiles wrongly. The compiler of PoCL 6.0 ends the process at some programs ("Instruction Combining did
/// not reach a fixpoint"), which no call can catch. On rusticl (Mesa 26.2) two of 512 random programs gave other last bits of floating
/// point, and on NVIDIA (580) seven of twelve runs of 40: see `docs/drivers.md`. For all other drivers the answer is unknown, and this
/// function returns `false`.
///
/// Returns whether launches are fused that the program does not ask to fuse.
pub(crate) fn fuses_unasked(caps: &Caps) -> bool {
    match driver(caps) {
        Driver::Pocl => !caps.driver_version.starts_with("6."),
        Driver::IntelCpu => true,
        Driver::Other => false,
    }
}

/// rusticl (Mesa 26.2): the compiler ends the process ("stack smashing detected") at a call of a function with 80 parameters or more. With
/// 79 it compiles, and a fused kernel's functions have up to 13 of their own.
///
/// Returns how many arguments a kernel may have that another kernel calls.
pub(crate) fn most_arguments_of_functions(caps: &Caps) -> Option<usize> {
    (caps.platform == "rusticl").then_some(64)
}

/// rusticl (Mesa 26.2): of 440 random programs whose kernels call functions that ask for ids, four ended the process (SIGSEGV) when their
/// fused kernel first ran. Of 512 without such functions none did. On other drivers none was seen.
///
/// Returns whether functions that ask for ids are written again.
pub(crate) fn writes_functions_again(caps: &Caps) -> bool {
    caps.platform != "rusticl"
}

/// PoCL on a CPU (3.1 to 7.1): one work-item that loops over the work-items of a kernel is faster than a work-group, but for kernels
/// whose loops have a number of turns that the text says. The compiler puts the work-items of a group into these loops, and makes vectors
/// of them: 32 such launches of 1 024 work-items take 0.2 (3.1 and 6.0) and 0.5 to 1.0 (7.1) of the time that they take one by one, and by
/// one work-item 0.8 and 3.2. On rusticl (llvmpipe) and on GPUs a work-group is faster. On Intel's CPU runtime (2026.2) it depends on the
/// kernel, and the compiler crashes on some loops over work-items, with the process.
pub(crate) fn fuses_by_one_item(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// Intel's CPU runtime (2026.2) makes vectors of the work-items of a group. Where their ids may wrap, as unsigned ones of 32 bits, or where they do
/// not do as many turns of a loop, it loads and stores their elements one by one: light launches of 1 024 work-items take eight times as long.
pub(crate) fn makes_vectors_of_items(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// On CPUs, a chain of launches that each work-item does on its own is a long text, of which compilers make vectors only if each launch computes
/// little. With 262 144 work-items, 64 launches of `exp` take 3.4 (PoCL 3.1), 3.9 (PoCL 7.1) and 1.8 times (Intel 2026.2) as long as one by
/// one. Where a work-item, on Intel's runtime a work-group, does its part launch after launch, they take 0.9, 0.86 and 0.6 to 0.8 times as long,
/// and with 16 384 work-items 0.43, 0.5 and 0.19. On rusticl (Mesa 26.2) neither way is faster for all kernels: 0.73 and 0.52 for `exp`, 0.04 and
/// 0.37 for an addition and a multiplication.
///
/// Returns how many work-items a work-group does launch after launch, whose memory fits into the first cache.
pub(crate) fn part_of_each_work_group(caps: &Caps) -> Option<u32> {
    match driver(caps) {
        Driver::Pocl => Some(512),
        Driver::IntelCpu => Some(1_024),
        Driver::Other => None,
    }
}

/// How long compilers take grows faster than the number of calls in a fused kernel. PoCL on a CPU (7.1): 64 launches of five kernels take 0.6 s,
/// 256 take 3, and 1 024 take 86. Intel's CPU runtime (2026.2): 0.4, 2.2 and more than 150. PoCL 3.1 and 6.0 take 1.1 to 1.5 s for 1 024, NVIDIA
/// (580) 2.7 s for 2 048. On rusticl (Mesa 26.2) the kernel itself is slower: a launch of 64 work-items takes 1.9 us among 512, and 5.2 among 2 048.
///
/// Returns about how many calls of functions a fused kernel has at most.
pub(crate) fn most_calls_in_fused_kernels(caps: &Caps) -> usize {
    match driver(caps) {
        Driver::IntelCpu => 128,
        Driver::Pocl if caps.driver_version.starts_with("7.") => 128,
        _ if caps.platform == "rusticl" => 512,
        _ => 4_096,
    }
}

/// Intel's CPU runtime (2026.2): the vector and the scalar versions of these functions differ in the last bits, so a loop over
/// work-items computes other bits than the work-items do.
///
/// Returns how the names of such functions begin.
pub(crate) fn rounds_otherwise_in_fused_kernels(caps: &Caps) -> Option<&'static [&'static str]> {
    (driver(caps) == Driver::IntelCpu).then_some(&["rsqrt", "native_", "half_"])
}

/// PoCL on a CPU (3.1): launched one by one, the work-items of a small work-group are constants to its compiler, so it computes `0.353f *
/// convert_float(i & 15)` itself, rounds it, and adds it. In a fused kernel it contracts product and sum, as PoCL 6.0 and 7.1 do in both.
///
/// Returns whether a kernel is not fused that has a product of what may be constants.
pub(crate) fn contracts_otherwise_in_fused_kernels(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("3.")
}

/// Intel's CPU runtime (2026.2): a function that is not inlined gets other values than it is given for a parameter that is a vector of
/// three components, if work-items are in one vector.
pub(crate) fn loses_vectors_of_three(caps: &Caps) -> bool {
    driver(caps) == Driver::IntelCpu
}

/// Between barriers, drivers of CPUs do the work-items of a group in a loop, and what they know on both sides of one goes through memory. rusticl
/// (Mesa 26.2): with 1 024 work-items a chain of launches of 1 024 takes 1.3 to 2.1 times as long as with 64. Intel's CPU runtime (2026.2): chains
/// take 0.8 to 1.0 of what they take with 256.
///
/// Returns how many work-items share the launches of a fused kernel at most, if it is fewer than a work-group may have.
pub(crate) fn most_in_groups_of_fused_kernels(caps: &Caps) -> Option<usize> {
    let is_cpu = driver(caps) == Driver::IntelCpu || (caps.platform == "rusticl" && !caps.gpu);
    is_cpu.then_some(64)
}

/// PoCL on a CPU (3.1 to 7.1) copies all that follows a loop with a barrier that may have no turn, once for each way to get there: eight
/// launches one after the other take a minute to compile, and loops that have a turn in any case two seconds.
pub(crate) fn copies_behind_loops(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// PoCL on a CPU (3.1 to 7.1): how long its compiler takes grows with the calls between barriers: 16 take 1.2 to 4 s. If a launch has
/// loops that may have no turn, it grows faster: four calls take 1 to 2 s, and eight more than 20.
///
/// It grows with the square of all barriers too: 16 calls take 6 s if each kernel has 20 of them, 26 s if it has 40, and 520 s if it has 160.
///
/// About how much a fused kernel with barriers has at most, and how much if it has such loops.
pub(crate) const MOST_WITH_BARRIERS: [WithBarriers; 2] =
    [WithBarriers { calls: 16, barriers: 256 }, WithBarriers { calls: 4, barriers: 16 }];

/// How much a fused kernel with barriers has: see [`MOST_WITH_BARRIERS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithBarriers {
    pub(crate) calls: usize,
    /// In the kernels that it calls, together.
    pub(crate) barriers: usize,
}

/// Intel's CPU runtime (2026.2) compiles a loop with barriers wrongly for the last work-items of a group that do not fill a vector: some
/// of them do not run what is between the barriers. A vector has up to 16. PoCL on a CPU (7.1) gives other values for some fused kernels
/// with loops or atomic functions beside barriers. PoCL 3.1 and 6.0, rusticl (Mesa 26.2) and NVIDIA (580) compile them rightly. Other
/// drivers fuse only if the program asks for it, and are taken to be right.
///
/// Returns what the work-items of a group must be a multiple of that wait for each other in a fused kernel; None if they cannot.
pub(crate) fn waiting_items_in_fused_kernels(caps: &Caps) -> Option<usize> {
    match driver(caps) {
        Driver::Pocl if ["3.", "6."].iter().any(|version| caps.driver_version.starts_with(version)) => Some(1),
        Driver::Pocl => None,
        Driver::IntelCpu => Some(16),
        Driver::Other => Some(1),
    }
}

/// PoCL on a CPU (3.1 to 7.1) ends the process where a kernel has more bytes of local variables than the device has, and 6.0 says of all kernels
/// that they have none.
pub(crate) fn crashes_without_local_memory(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl
}

/// NVIDIA (580, on an H200): a kernel is said to take 256 work-items in a work-group (CL_KERNEL_WORK_GROUP_SIZE), and takes as many as its source
/// requires; if it requires none, as many as the device does and its registers allow.
pub(crate) fn understates_work_groups(caps: &Caps) -> bool {
    caps.platform == "NVIDIA CUDA"
}

/// NVIDIA (580, on an H200): where a source requires a work-group of 1 024, the compiler schedules loads for so many work-items, and a launch of
/// 16 384 that reads seven buffers takes 2.5 times as long as without. If it requires none, a kernel may have more registers than a work-group of
/// more than 256 has for each work-item, and its launch fails (-5).
///
/// Returns the build option that leaves so many work-items of a fused kernel their registers, if that is better than to require the work-group.
pub(crate) fn option_for_work_group(caps: &Caps, items: usize) -> Option<String> {
    /// Without an option the compiler leaves registers to so many.
    const ANY_KERNEL: usize = 256;
    (understates_work_groups(caps) && items > ANY_KERNEL).then(|| format!("{REGISTERS}={}", most_registers(items)))
}

/// NVIDIA's option for the most registers of a work-item.
pub(crate) const REGISTERS: &str = "-cl-nv-maxrregcount";

/// Returns how many registers each of so many work-items of a group can have on NVIDIA's GPUs: each of the four parts of a multiprocessor has
/// 16 384 for its warps of 32 work-items, and gives each work-item a multiple of eight.
fn most_registers(items: usize) -> usize {
    16_384 / (items.div_ceil(128) * 32) / 8 * 8
}

/// PoCL on a CPU (7.1): what stands before a loop is left out for some work-items, if a `return` under a condition comes before it. A fused
/// kernel in which each work-item does its part of several launches has both more often than a kernel of a program.
pub(crate) fn leaves_out_what_is_before_loops(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("7.")
}

/// PoCL on a CPU (7.1): in a work-group of one work-item, what stands before a loop of a kernel is run twice if another kernel calls that
/// one under a condition.
pub(crate) fn repeats_what_is_before_loops(caps: &Caps) -> bool {
    driver(caps) == Driver::Pocl && caps.driver_version.starts_with("7.")
}

/// PoCL on a CPU (3.1 to 7.1): a kernel with a barrier, or with a function that works on groups, is compiled wrongly if another
/// kernel calls it under a condition: wrong results, or the process ends. One with local variables and no barrier too: groups
/// that run at once share them. Calls without any of that are right.
///
/// Returns whether a kernel may call one that has barriers or local memory under a condition.
pub(crate) fn calls_barriers_under_conditions(caps: &Caps) -> bool {
    driver(caps) != Driver::Pocl
}

#[cfg(test)]
mod tests {
    use super::most_registers;

    #[test]
    fn every_work_item_of_a_group_has_its_registers() {
        assert_eq!([1024, 897, 896, 512, 300, 257].map(most_registers), [64, 64, 72, 128, 168, 168]);
        for items in 257..=1024_usize {
            let warps_of_a_part = items.div_ceil(32).div_ceil(4);
            assert!(warps_of_a_part * 32 * most_registers(items) <= 16_384, "{items}");
        }
    }
}
