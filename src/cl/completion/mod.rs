//! What happens when commands end: who is called, what may be released, and what the end of a command proves.
//!
//! Events of the driver, and closures to run at their end, come in. Out go calls of these closures, on threads of
//! clgraph's own, and answers: whether a queue keeps its order, whether a call is allowed on this thread.
//!
//! Read `event_reaper.rs` first, then `queue_order.rs`.
//!
//! | file | what is there |
//! |---|---|
//! | `event_reaper.rs` | the thread that sees events complete, and the thread that runs users' callbacks |
//! | `queue_order.rs` | epochs of a queue: after a command that can fail, the order of a queue proves nothing |
//! | `deferred_release.rs` | objects that were dropped while a gate was closed are released when the gate is open |
//! | `completion_time.rs` | a timer that stops when a command is complete, for the autotuner |
//! | `user_code.rs` | closures, wakers and values of the program: called or dropped where no lock is held |
//! | `reentrancy.rs` | which calls are refused while a function of the program runs on this thread |
//!
//! What holds here: the driver's callback only posts to a channel. No lock is held while code of the program runs, and
//! nobody waits for that code; only the functions of native commands are called under locks, and `reentrancy.rs`
//! refuses calls in them. Nothing is released while a gate is closed that was closed when the object was dropped.

pub(crate) mod completion_time;
pub(in crate::cl) mod deferred_release;
pub(crate) mod event_reaper;
pub(crate) mod gates;
pub(in crate::cl) mod queue_order;
pub(crate) mod reentrancy;
pub(crate) mod user_code;
