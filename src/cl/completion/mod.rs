//! What happens when commands end: who is called, what may be released, and how the end of earlier commands is awaited.
//!
//! Input: events of the driver, and closures to run when these events complete. Output: calls of these closures, on
//! clgraph's own threads; events at the end of earlier commands of a queue; and whether a call is allowed on this
//! thread. No driver gets an event that may fail, so the order of an in-order queue always holds.
//!
//! Read `event_reaper.rs` first, then `queue_order.rs`.
//!
//! | file | what is there |
//! |---|---|
//! | `event_reaper.rs` | the thread that sees events complete, and the thread that runs users' callbacks |
//! | `queue_order.rs` | markers before a blocked command, so that the end of earlier commands can be awaited |
//! | `gates.rs` | which closed gates something comes after, to detect that a host task would wait for itself |
//! | `deferred_release.rs` | objects that were dropped while a gate was closed are released when the gate is open |
//! | `completion_time.rs` | a timer that stops when a command is complete, for the autotuner |
//! | `user_code.rs` | closures, wakers and values of the program: called or dropped where no lock is held |
//! | `threads.rs` | how threads of clgraph start, and whether this is one |
//! | `workers.rs` | threads for host tasks, wakers and jobs of clgraph; which waits of host tasks are refused |
//! | `background.rs` | work that nobody waits for, at low priority |
//! | `countdown.rs` | what goes on after the last of several ends |
//! | `one_at_a_time.rs` | functions of the program that run once at a time, although several submissions call them |
//! | `polled.rs` | futures that host tasks poll: how long they count as waits |
//! | `reentrancy.rs` | which calls are refused while a function of the program runs on this thread |
//!
//! Invariants: the driver's callback only posts to a channel. No lock is held while code of the program runs, and
//! nobody waits for that code; only the functions of native commands are called under locks, and `reentrancy.rs`
//! refuses calls in them. Nothing is released while a gate is closed that was closed when the object was dropped.

pub(crate) mod background;
pub(crate) mod completion_time;
pub(crate) mod countdown;
pub(in crate::cl) mod deferred_release;
pub(crate) mod event_reaper;
pub(crate) mod gates;
pub(crate) mod one_at_a_time;
pub(crate) mod polled;
pub(in crate::cl) mod queue_order;
pub(crate) mod reentrancy;
pub(in crate::cl) mod threads;
pub(crate) mod user_code;
pub(crate) mod workers;
