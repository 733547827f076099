//! The fused form of an executable, which comes while the executable is used ([`Fuse::Auto`](crate::Fuse::Auto)).
//!
//! | state | next |
//! |---|---|
//! | waiting: submissions have not yet taken a multiple of what a build takes | building |
//! | building: on a thread in the background (`build/fused_tier.rs`); submissions go on as before | ready, or ended |
//! | ready: the autotuner tries the fused form among the program's submissions | stays, as a strategy like any other, or ended |
//! | ended: the executable costs as much as one that was never to be fused | |
//!
//! The fused form has a plan of its own, and the executable's memory, results and host functions. A submission takes its form under
//! the lock of the executable's state, so it is one or the other as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::exec::build::values::Values;
use crate::exec::finalized::Finalized;
use crate::plan::{Path, Strategy};
use crate::report::fused::{FusingState, NotFusedReport};

/// An executable's fused form.
pub(in crate::exec) struct FusedPlan {
    pub(in crate::exec) fixed: Finalized,
    pub(in crate::exec) values: Arc<Values>,
}

/// The fused form, or why there is none.
pub(in crate::exec) type Built = Result<FusedPlan, (FusingState, Vec<NotFusedReport>)>;

/// How the fused form is submitted.
pub(in crate::exec) const FUSED: Strategy = Strategy { path: Path::Replay, chunk: 0, queues: 0, fused: true };

/// What has become of an executable's fused form.
#[derive(Default)]
pub(in crate::exec) enum Tier {
    /// None is wanted.
    #[default]
    Off,
    Waiting(Waiting),
    Building(Waiting),
    /// Submissions try it, or use it. Whether it was the fastest in its first trial: then it is a strategy like any other.
    Ready {
        form: Arc<FusedPlan>,
        stays: bool,
    },
    Ended(FusingState, Vec<NotFusedReport>),
}

/// What a form needs to be built.
#[derive(Clone)]
pub(in crate::exec) struct Waiting {
    /// After how many nanoseconds of submissions; None for a multiple of what the last build took.
    pub(in crate::exec) after: Option<u64>,
    /// Has it built. It is called without a lock.
    pub(in crate::exec) build: Arc<dyn Fn() + Send + Sync>,
}

/// How long the last build took, in nanoseconds; before the first one, a guess.
static BUILD: AtomicU64 = AtomicU64::new(500_000_000);

/// A build is worth its time when submissions have taken so many times as long.
const WORTH: u64 = 10;

/// Notes how long a build took.
pub(in crate::exec) fn build_took(nanos: u128) {
    BUILD.store(u64::try_from(nanos).unwrap_or(u64::MAX).min(u64::MAX / WORTH), Ordering::Relaxed);
}

impl Tier {
    /// Whether the form is to be built, if submissions have taken so many nanoseconds.
    #[inline]
    pub(in crate::exec) fn is_due(&self, spent: u64) -> bool {
        match self {
            Self::Waiting(Waiting { after, .. }) => {
                spent >= after.unwrap_or_else(|| WORTH * BUILD.load(Ordering::Relaxed))
            }
            _ => false,
        }
    }

    /// Begins to build. Returns what builds, which the caller calls without a lock.
    #[cold]
    pub(in crate::exec) fn begin(&mut self) -> Option<Arc<dyn Fn() + Send + Sync>> {
        let Self::Waiting(waiting) = std::mem::take(self) else { return None };
        let build = Arc::clone(&waiting.build);
        *self = Self::Building(waiting);
        Some(build)
    }

    /// Notes that something else is being built, and that this one is due again after `after` nanoseconds of submissions.
    pub(in crate::exec) fn put_off(&mut self, after: u64) {
        if let Self::Building(waiting) = self {
            *self = Self::Waiting(Waiting { after: Some(after), ..waiting.clone() });
        }
    }

    pub(in crate::exec) fn state(&self, is_taken: bool) -> FusingState {
        match self {
            Self::Off => FusingState::Off,
            Self::Waiting(_) => FusingState::Waiting,
            Self::Building(_) => FusingState::Building,
            Self::Ready { .. } if is_taken => FusingState::Taken,
            // It was the fastest once.
            Self::Ready { stays: true, .. } => FusingState::NotFaster,
            Self::Ready { .. } => FusingState::Trying,
            Self::Ended(state, _) => *state,
        }
    }
}
