//! Submitting: one run of an executable, from `submit()` to its end.
//!
//! Input: a queue, events to wait for, input data and external events. Output: a [`Submission`](crate::Submission),
//! which can be waited for and has the results.
//!
//! What happens at submit:
//!
//! 1. `builder.rs` (`Submit::submit`) checks the call. On a recording queue the executable becomes a node, and nothing runs. Otherwise
//!    each event to wait for is asked for its status: complete, failed (an error at once), enqueued, or still able to
//!    fail.
//! 2. `executable_state.rs` (`ExecutableState::accept`) takes the state of the executable under its lock: exclusive use
//!    (`exclusive.rs`), so that uses never overlap; and slots for results (`result_slots.rs`).
//! 3. If nothing that the submission waits for can fail, and the graph has no host tasks or external events, the
//!    commands are enqueued at once on the caller's thread (`submit_now`): the autotuner (`exec/tune`) names the
//!    strategy; for an out-of-order queue they go to a queue of the executable's own, between two joining commands; a
//!    snapshot of values and command buffers is taken (`snapshot.rs`); and `interpreter.rs` carries out
//!    the plan's schedule, on one queue or on several. `replay.rs` enqueues single commands. Then, without the lock, `leftovers.rs` opens
//!    the gate of `Path::Gated`, flushes queues, and drops what is left.
//! 4. Otherwise, or if an earlier use of the executable is deferred, the submission is deferred (`deferred.rs`): a gate
//!    holds back the caller's queue, and the commands are enqueued on a queue of the executable's own after everything
//!    that it waits for (`blocker.rs`) has succeeded, partition by partition. Host tasks and external events (`tasks.rs`) go on
//!    between partitions, on threads of `cl/completion/workers.rs`.
//! 5. `submission_state.rs` learns of the end, opens the gate, wakes those that wait and releases retained host memory.
//!
//! | other files | what is there |
//! |---|---|
//! | `submission.rs`, `completion.rs`, `formatting.rs` | the public handle; as a future; as text and compared |
//! | `dependency.rs` | what a submission can wait for, and the state that it is in |
//! | `bindings.rs` | what a submission brings of its own: result slots, inputs, events |
//! | `external_events.rs`, `user_event.rs` | events given to a submission; events that the program completes |
//! | `queue_host_task.rs`, `queue_native_command.rs` | host tasks, maps and native commands given to a queue |
//! | `trampoline.rs` | calls that would recurse over a chain of submissions run one after the other |
//! | `work.rs` | what a deferred submission runs, and what it holds until it has ended |
//! | `control.rs` | branches and loops: the host decides |
//! | `fused_form.rs` | the fused form comes, follows updates, and goes |
//! | `frames.rs` | the graph itself, and the turns of bodies that are going on |
//! | `ahead.rs`, `on_device.rs` | turns that the host does not decide one by one: enqueued before their condition is known, or done by a kernel |
//! | `checked.rs` | launches whose promises are checked |
//! | `frontier.rs` | what of a deferred submission can go on, as plain data |
//! | `leftovers.rs` | what is dropped, and queues that are flushed, after the lock is released |
//!
//! Read `builder.rs` first, then `executable_state.rs`, then `interpreter.rs`.
//!
//! Invariants: no driver waits for an event that may fail. A command buffer is enqueued at most once for each
//! submission. Host memory of a transfer stays until the transfer ends. What drops values of the program, or flushes a
//! queue, is left in `Leftovers` until the lock is released. Rules: S1 to S10, H1 to H7, N6, X1, I4.

mod ahead;
pub(in crate::exec) mod bindings;
pub(in crate::exec) mod blocker;
pub(in crate::exec) mod builder;
mod checked;
pub(in crate::exec) mod completion;
pub(in crate::exec) mod control;
mod deferred;
pub(in crate::exec) mod dependency;
pub(in crate::exec) mod exclusive;
pub(in crate::exec) mod executable_state;
pub(in crate::exec) mod external_events;
pub(in crate::exec) mod formatting;
mod frames;
mod frontier;
mod fused_form;
pub(in crate::exec) mod interpreter;
pub(in crate::exec) mod leftovers;
mod on_device;
pub(in crate::exec) mod queue_host_task;
pub(in crate::exec) mod queue_native_command;
pub(in crate::exec) mod replay;
pub(crate) mod result_slots;
pub(in crate::exec) mod snapshot;
pub(in crate::exec) mod submission;
pub(in crate::exec) mod submission_state;
pub(in crate::exec) mod tasks;
pub(in crate::exec) mod trampoline;
pub(in crate::exec) mod user_event;
mod work;
