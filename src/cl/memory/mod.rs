//! Memory, as commands name it: buffers, addresses (USM, SVM), host memory, maps, device globals.
//!
//! Input: buffers, pointers and vectors of the program. Output: `Mem` (memory without its element type, which graphs
//! and commands use), host memory that stays in place while a transfer runs, and mapped slices.
//!
//! Read `untyped.rs` first: all commands name memory by its `Mem` and `Address`.
//!
//! | file | what is there |
//! |---|---|
//! | `untyped.rs` | a buffer, a sub-buffer or an address without its element type, and how drivers are given it |
//! | `region.rs` | ranges of memory: what commands are given, and what all types of slices have |
//! | `typed.rs` | the public `Memory<T>`: USM or SVM with an element type, and the host's guards on it |
//! | `allocation.rs` | one allocation with an address: made, freed, and which queues and executables use it |
//! | `freed.rs` | when memory is freed: at once, or later if a driver needs that |
//! | `host.rs` | host memory that transfers read (`HostData`) and write (`Slot`): owned, aligned, never moved |
//! | `map.rs`, `map_image.rs` | memory and images that are mapped for the host |
//! | `map_queue.rs` | the queue of a context on which all maps are enqueued, one at a time |
//! | `globals.rs` | device globals of a context: their memory on each device |
//! | `program_globals.rs` | device globals of a program: how its kernels reach them |
//!
//! Invariants: **guard** and **host memory** of `cl/mod.rs`. Drivers do not count the uses of memory with an
//! address, so `allocation.rs` does. Rules: G1 to G17 (device globals), H7 (maps), F6 (host data).

pub(crate) mod allocation;
pub(in crate::cl) mod freed;
pub(crate) mod globals;
pub(crate) mod host;
pub(crate) mod map;
pub(crate) mod map_image;
pub(in crate::cl) mod map_queue;
pub(crate) mod program_globals;
pub(crate) mod region;
pub(crate) mod typed;
pub(crate) mod untyped;
