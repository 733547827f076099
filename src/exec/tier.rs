//! The fused form of an executable, which comes while the executable is used ([`Fuse::Auto`](crate::Fuse::Auto)).
//!
//! | state | next |
//! |---|---|
//! | waiting: submissions have not yet taken a multiple of what a build takes | building |
//! | building: on a thread in the background (`build/fused_tier.rs`); submissions go on as before | ready, or ended |
//! | ready: the autotuner tries the fused form among the program's submissions | stays, as a strategy like any other, or ended |
//! | ended: the executable costs as much as one that was never to be fused | |
//!
//! With [`Fuse::Now`](crate::Fuse::Now), an executable that can be updated is built to be ready, and the fused form is pinned: it is
//! taken without a trial.
//!
//! The fused form follows updates (`update/following.rs`). An update that it cannot follow takes it away: then the state is waiting again,
//! each time for twice as long, so that an executable that is updated so again and again is not built again and again.
//!
//! The fused form has a plan of its own, and the executable's memory, results and host functions. A submission takes its form under
//! the lock of the executable's state, so it is one or the other as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cl::objects::program_builder::longest_build;
use crate::exec::build::fuse::{LaidChain, Layout};
use crate::exec::build::values::Values;
use crate::exec::finalized::Finalized;
use crate::graph::edit::undo::Edit;
use crate::graph::{Index, Tables};
use crate::plan::{Path, Strategy};
use crate::report::fused::{FusingState, NotFusedReport};

/// What is fixed of an executable's fused form.
pub(in crate::exec) struct FusedPlan {
    pub(in crate::exec) fixed: Finalized,
    /// Where the executable's planned nodes are.
    pub(in crate::exec) layout: Layout,
    /// By node of the form: its step.
    pub(in crate::exec) step_of: Vec<Option<u32>>,
}

/// An executable's fused form.
pub(in crate::exec) struct Form {
    pub(in crate::exec) plan: Arc<FusedPlan>,
    pub(in crate::exec) values: Arc<Values>,
    /// Made at the first update of more than values.
    pub(in crate::exec) index: Option<Index>,
    /// It is empty between updates.
    pub(in crate::exec) edit: Edit,
    /// By chain and slot: how many of those that share it an update has changed. All are 0 between updates.
    pub(in crate::exec) counts: Vec<Vec<u32>>,
    /// Room for the slots that one update changes, and then the arguments of fused kernels: with their chains.
    pub(in crate::exec) begun: Vec<(u32, u32)>,
    /// By chain: what is in its table.
    pub(in crate::exec) tabled: Vec<Vec<u8>>,
}

impl Form {
    pub(in crate::exec) fn new(plan: FusedPlan, values: Values) -> Self {
        let counts = plan.layout.chains.iter().map(|chain| vec![0; chain.sharers.len()]).collect();
        let tabled = |chain: &LaidChain| chain.table.as_ref().map_or_else(Vec::new, |table| table.bytes.clone());
        let tabled = plan.layout.chains.iter().map(tabled).collect();
        Self {
            plan: Arc::new(plan),
            values: Arc::new(values),
            index: None,
            edit: Edit::default(),
            counts,
            begun: Vec::new(),
            tabled,
        }
    }
}

/// A fused form that was built, with the executable's values of which it was made; or why there is none.
pub(in crate::exec) type Built = Result<(Form, Arc<Tables>), (FusingState, Vec<NotFusedReport>)>;

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
        form: Box<Form>,
        stays: bool,
        /// How it is built again when an update has taken it away.
        again: Waiting,
    },
    Ended(FusingState, Vec<NotFusedReport>),
}

/// What a form needs to be built.
#[derive(Clone)]
pub(in crate::exec) struct Waiting {
    /// After how many nanoseconds of submissions; None for a multiple of what a build is expected to take.
    pub(in crate::exec) after: Option<u64>,
    /// Has it built. It is called without a lock.
    pub(in crate::exec) build: Arc<dyn Fn() + Send + Sync>,
    /// How it is submitted if it is taken without a trial.
    pub(in crate::exec) pinned: Option<Strategy>,
    /// How many updates have taken it away, and the last one's reason.
    pub(in crate::exec) losses: u32,
    pub(in crate::exec) lost: Vec<NotFusedReport>,
}

impl Waiting {
    pub(in crate::exec) fn new(
        after: Option<u64>,
        pinned: Option<Strategy>,
        build: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self { after, build, pinned, losses: 0, lost: Vec::new() }
    }

    /// Returns when it is built again, after an update has taken it away when submissions had taken `spent` nanoseconds.
    pub(in crate::exec) fn after_loss(mut self, spent: u64, lost: Vec<NotFusedReport>) -> Self {
        let build = BUILDS.expected(longest_build);
        let first = if self.pinned.is_some() { 0 } else { build * WORTH };
        // Each time twice as long.
        let more = if self.losses == 0 { first } else { build.saturating_mul(WORTH << self.losses.min(MOST_DOUBLED)) };
        self.losses = self.losses.saturating_add(1);
        Self { after: Some(spent.saturating_add(more)), lost, ..self }
    }
}

/// How often the time until it is built again is doubled at most.
const MOST_DOUBLED: u32 = 20;

/// A build is worth its time when submissions have taken so many times as long. With what its trial may cost
/// ([`autotuner`](super::tune::autotuner)) that is a tenth of their time, but for what the first two submissions of a form cost.
const WORTH: u64 = 12;

/// How long builds of this process take.
static BUILDS: Builds = Builds(AtomicU64::new(0));

/// How long builds take, in nanoseconds; 0 before the first one.
struct Builds(AtomicU64);

impl Builds {
    /// The least that is expected of the first one.
    const GUESS: u64 = 500_000_000;
    /// A fused kernel takes longer to build than the programs of its launches.
    const MORE: u64 = 2;

    /// Notes how long a build took. After a long one, the next ones may be as long.
    fn took(&self, nanos: u64) {
        let nanos = nanos.max(self.0.load(Ordering::Relaxed) / 2).clamp(1, u64::MAX / WORTH);
        self.0.store(nanos, Ordering::Relaxed);
    }

    /// Returns how long the next one may take. `longest`: the longest build of a program so far.
    #[inline]
    fn expected(&self, longest: impl FnOnce() -> u64) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => longest().saturating_mul(Self::MORE).clamp(Self::GUESS, u64::MAX / WORTH),
            nanos => nanos,
        }
    }
}

/// Notes how long a build took.
pub(in crate::exec) fn build_took(took: Duration) {
    BUILDS.took(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
}

impl Tier {
    /// Whether the form is to be built, if submissions have taken so many nanoseconds.
    #[inline]
    pub(in crate::exec) fn is_due(&self, spent: u64) -> bool {
        match self {
            Self::Waiting(Waiting { after, .. }) => {
                spent >= after.unwrap_or_else(|| WORTH * BUILDS.expected(longest_build))
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
            Self::Waiting(Waiting { losses: 1.., .. }) => FusingState::Outdated,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule Z2: executables whose submissions take as long as they must have all been built for a tenth of that, as long as no build
    /// takes longer than those before it let expect.
    #[test]
    fn builds_take_at_most_a_tenth_of_the_submissions_before_them() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..1000 {
            let (builds, longest) = (Builds(AtomicU64::new(0)), rng.u64(..5_000_000_000));
            let (mut spent, mut built) = (0, 0);
            for _ in 0..rng.usize(1..20) {
                let expected = builds.expected(|| longest);
                assert!(built > 0 || expected >= Builds::GUESS.max(2 * longest));
                // Each executable begins to build when its own submissions have taken so long.
                spent += WORTH * expected;
                let took = rng.u64(1..=expected);
                builds.took(took);
                built += took;
                assert!(built * WORTH <= spent, "{built} of {spent}");
                assert!(builds.expected(|| longest) >= took);
            }
        }
        let builds = Builds(AtomicU64::new(0));
        builds.took(0);
        assert_eq!(builds.expected(|| 0), 1, "a build has been measured");
        builds.took(u64::MAX);
        assert!(builds.expected(|| 0).checked_mul(WORTH).is_some());
        assert!(Builds(AtomicU64::new(0)).expected(|| u64::MAX).checked_mul(WORTH).is_some());
    }

    /// Rule Z5
    #[test]
    fn each_loss_makes_the_next_build_wait_twice_as_long() {
        let waiting = |is_pinned: bool| Waiting::new(None, is_pinned.then_some(FUSED), Arc::new(|| {}));
        for is_pinned in [false, true] {
            let (mut all, mut last) = (waiting(is_pinned), 0);
            for loss in 0..40 {
                all = all.after_loss(1000, Vec::new());
                let after = all.after.unwrap_or_default() - 1000;
                assert!(loss == 0 || after >= last, "{after} after {last}");
                assert!(loss == 0 || is_pinned || after > 0);
                assert_eq!(loss == 0 && is_pinned, after == 0, "a pinned form is built again at once, the first time");
                assert_eq!(Tier::Waiting(all.clone()).state(false), FusingState::Outdated);
                last = after;
            }
        }
        let again = waiting(false).after_loss(u64::MAX - 1, Vec::new());
        assert!(!Tier::Waiting(again).is_due(u64::MAX - 1));
    }
}
