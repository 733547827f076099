//! One file for each kind of node: the builder that users see, and the request behind it.
//!
//! A builder collects a command's operands, dependencies and label. Its `add` hands a request to `Graph::insert`. A
//! method of a queue makes the same request, and the queue either records or executes it. A request is checked by
//! `check`. Then it is a `Command` that refers to things by handles, with the memory that it uses: a queue that executes
//! runs this command, and `lower` writes it into a graph's tables, where it refers to things by numbers.
//!
//! Read `request.rs` first, then `hint.rs`, which is short. A hint is never recorded into a command buffer: read
//! `fill.rs` for that.
//!
//! | file | kind of node, or what is shared |
//! |---|---|
//! | `request.rs` | the trait `Request`: `check`, `prepare`, `lower`; and `Target`, the graph or queue that a command is checked for |
//! | `after.rs` | the methods of all builders: `after`, `after_all_leaves`, `label` |
//! | `transfer.rs`, `fill.rs` | empty nodes, copies, host writes and host reads; fills |
//! | `rect.rs`, `copier.rs` | rectangular copies; copies for which OpenCL has no command, as launches of a kernel |
//! | `kernel.rs`, `launch.rs` | kernel nodes; launches, for graphs and queues alike |
//! | `argument.rs`, `argument_checks.rs`, `range.rs` | what a kernel takes as an argument; whether it fits; ND-ranges |
//! | `command_group.rs`, `task_group.rs` | several launches, or several host tasks, of which one is active |
//! | `image.rs`, `image_copy.rs` | fills, host writes and host reads of images; copies of pixels |
//! | `hint.rs` | prefetches and memory advice |
//! | `memory.rs` | allocations and frees of memory that the graph owns |
//! | `host_task.rs`, `map.rs` | functions of the host; functions that get mapped memory |
//! | `external_event.rs` | nodes that wait for an event of each submission, or complete it |
//! | `native_command.rs` | commands that a function of the program enqueues or records |
//! | `sub_graph.rs` | an executable as a node; its builder is in `exec/sub_graph.rs` |
//!
//! To add a kind of node, see first whether it can become a command that exists: `fill.rs` makes kernels of fills that
//! OpenCL has no command for, and needs only steps 2, 4 and 5. Otherwise:
//!
//! 1. a variant of `Command` in `command.rs`, and a `NodeKind` in `handles.rs`;
//! 2. a file here, with a builder, a request, `impl Request` and `impl CommandRequest`; and the builder in the `pub use`
//!    lines of `graph/mod.rs` and `lib.rs`;
//! 3. the call that enqueues it and the call that records it, in `cl/commands/command.rs`. Queues that execute, replay,
//!    recording, inlining and updates then have it too, because they translate commands without a look at their kind;
//! 4. what the compiler asks for, because it finds each `match` over `Command`: whether a command buffer can hold it
//!    (`plan/command_kind.rs`), what the device must have (`plan/runnable.rs`), the checker (`plan/check.rs`), what must
//!    stay the same in an update (`graph/edit/assign.rs`), its name and picture (`graph/query.rs`, `graph/drawing.rs`).
//!    The head of `command.rs` lists all of them. For queues, a method in `record/enqueue.rs`;
//! 5. functions in C and Python (`capi/coverage.txt` lists the counterparts), a rule in `docs/SEMANTICS.md`, and a test
//!    that names the rule.
//!
//! Invariants: `check` finds all that can be wrong, and changes nothing. Rules: B2, B14, C1 to C6, D1, H1 to H7,
//! I3 to I5, M1 to M8, N1 to N3, R16, X1.

pub(in crate::graph) mod after;
pub(in crate::graph) mod argument;
pub(in crate::graph) mod argument_checks;
pub(crate) mod command_group;
pub(crate) mod control;
pub(in crate::graph) mod copier;
pub(crate) mod external_event;
pub(crate) mod fill;
pub(crate) mod hint;
pub(crate) mod host_task;
pub(crate) mod image;
pub(crate) mod image_copy;
pub(crate) mod kernel;
pub(crate) mod launch;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod native_command;
pub(in crate::graph) mod range;
pub(crate) mod rect;
pub(crate) mod request;
pub(crate) mod sub_graph;
pub(in crate::graph) mod task_group;
pub(crate) mod transfer;
