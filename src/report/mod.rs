//! What finalize decided and what submissions took, as data, text and pictures.
//!
//! Input: the plan, the tables, and the events of profiled submissions. Output: reports, profiles, traces, pictures of
//! memory, and dumps. `exec` fills them; nothing here knows an executable.
//!
//! | file | what is there |
//! |---|---|
//! | `summary.rs` | the public `Report`: segments, memory, edges, warnings. Read it first |
//! | `tuning.rs`, `loops.rs`, `fused.rs` | parts of it: the autotuner; loops; what one kernel does for several launches |
//! | `memory_map.rs` | a picture of the graph's own memory: when each allocation lives, and at which bytes |
//! | `profile.rs` | the times of a submission and of each of its nodes |
//! | `trace.rs` | profiles as a trace for Chrome and Perfetto |
//! | `dump.rs` | `CLGRAPH_DUMP`: the files that each finalize, and each fusing after it, writes |
//!
//! Pictures of executables are in `exec/drawing.rs`. Rules: F1, M3 and Q1 to Q3.

pub(crate) mod dump;
pub(crate) mod fused;
pub(crate) mod loops;
pub(crate) mod memory_map;
pub(crate) mod profile;
pub(crate) mod summary;
pub(crate) mod trace;
pub(crate) mod tuning;

pub use fused::{FusedForm, FusedReport, FusingState, NotFusedReport, WhyApart, WhyNotFused};
pub use loops::{HostDecided, LoopReport};
pub use profile::{Clock, NodeProfile, NodeSum, Profile, RanOn, TitleProfile};
pub use summary::{
    AllocationReport, ExcludedPath, HostNodeReport, MemoryReport, Report, SegmentReport, SubGraphReport, UpdateReport,
};
pub use trace::Trace;
pub use tuning::{StrategyReport, TuningReport, TuningState};
