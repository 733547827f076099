//! How much is kept. All of it together takes a few hundred KiB in most programs, and at most about 64 MiB.

/// Calls of one run that are kept one by one. The calls behind them are counted, and tell runs apart.
pub(crate) const CALLS: usize = 4096;
/// Calls and their parts of all runs together.
pub(crate) const ROOM: usize = 1 << 18;
/// Calls, and parts, that an open run has room for when it has no calls.
pub(crate) const OPEN: usize = 256;
/// Different runs of a queue.
pub(crate) const RUNS: usize = 256;
/// Runs one after another, of which a queue knows the order.
pub(crate) const ORDER: usize = 4096;
/// Queues.
pub(crate) const QUEUES: usize = 64;
/// Threads with open runs.
pub(crate) const THREADS: usize = 256;
/// Memory objects, and events, that are known by their handles.
pub(crate) const HANDLES: usize = 1 << 16;
/// Kernel objects that are, and arguments of one.
pub(crate) const KERNELS: usize = 1 << 13;
pub(crate) const ARGUMENTS: usize = 128;
/// Names of kernels, and bytes of one.
pub(crate) const NAMES: usize = 4096;
pub(crate) const NAME: usize = 120;
/// Names of functions that are asked for.
pub(crate) const FUNCTIONS: usize = 16;
