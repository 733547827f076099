//! The automatic path: which strategy is the fastest for one executable.
//!
//! Input: the strategies of the plan (`plan/strategies.rs`) and the times of the program's own submissions. Output: the
//! strategy of the next submission. Nothing waits here, and no submission is added.
//!
//! | file | what is there |
//! |---|---|
//! | `autotuner.rs` | rounds of trials, the choice, later checks: read it first. It knows times and no OpenCL |
//! | `autotuner/tried.rs` | what is known of one strategy |
//! | `autotuner/tests.rs` | its tests, on fake drivers |
//! | `pace.rs` | how many turns of a loop are enqueued before the host looks at its condition again |
//! | `cache.rs` | the tuning cache: a file that keeps the choice for the next process |
//!
//! A time comes from a timer that the driver's callback stops (`cl/completion/completion_time.rs`). What is known of a
//! driver before anything is measured is in `quirks.rs`, and decides in `plan/strategies.rs` which strategies are
//! tried. The automatic path is part of rule F1.

pub(in crate::exec) mod autotuner;
pub(in crate::exec) mod cache;
pub(in crate::exec) mod pace;
