//! Enqueuing: one function for each command.
//!
//! Input: a queue, a wait list and a command's operands. Output: the OpenCL call is made, and an event is returned only
//! where the caller asked for one. No function here blocks, and none checks bounds: the request was checked when its
//! node was added. The caller keeps everything that the command uses alive and in place until the command is complete.
//!
//! Read `command.rs` first, then `enqueue.rs`: `To` says where a command goes, and `Waits` is its wait list.
//!
//! | file | what is there |
//! |---|---|
//! | `command.rs` | the two calls that take any command: one enqueues it, one records it |
//! | `enqueue.rs` | kernels, copies, fills, writes, reads, hints, markers, barriers |
//! | `hold.rs` | holds a queue by a gate, for commands that wait on the host |
//! | `image_commands.rs` | the commands on images, enqueued and recorded |
//! | `copy_sides.rs` | how the two sides of a copy are named to drivers, enqueued or recorded |
//! | `copier.rs` | clgraph's own kernel that copies where OpenCL has no command (`kernels-cl/copy.cl`) |
//!
//! Invariants: **promise**, **lists** and **host memory** of `cl/mod.rs`. Recorded commands are in
//! `cl/objects/command_buffer.rs`.

pub(crate) mod capture;
pub(crate) mod command;
pub(crate) mod copier;
pub(crate) mod copy_sides;
pub(crate) mod enqueue;
pub(crate) mod hold;
pub(crate) mod image_commands;
