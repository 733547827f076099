//! What is to be done after the lock of an executable's state is released.

use std::sync::Arc;

use crate::cl::completion::completion_time::CompletionTimer;
use crate::cl::objects::event::Gate;
use crate::cl::objects::queue::DriverQueue;
use crate::exec::build::values::Old;
use crate::exec::submit::bindings::SubmissionBindings;
use crate::exec::submit::exclusive::ExclusiveUse;
use crate::exec::submit::submission_state::{self, RetainedMemory};
use crate::exec::tier::Form;
use crate::exec::tune::autotuner::Times;
use crate::exec::tune::cache::TuningCache;
use crate::plan::Strategy;

/// What is to be done after the lock is released: dropping input may run code of the program, and a driver may call
/// such code in a flush. Most submissions leave nothing.
#[derive(Default)]
pub(in crate::exec) struct Leftovers(Option<Box<Left>>);

/// What is left, by kind.
#[derive(Default)]
pub(in crate::exec) struct Left {
    /// Gates to open. Opening releases objects whose owner may have a `Drop` of its own.
    pub(in crate::exec) gates: Vec<Gate>,
    pub(in crate::exec) flush: Vec<DriverQueue>,
    pub(in crate::exec) release: Vec<RetainedMemory>,
    /// The bindings of submissions that failed before anything was enqueued.
    pub(in crate::exec) bindings: Vec<SubmissionBindings>,
    /// Kernel objects that were replaced.
    pub(in crate::exec) old: Vec<Old>,
    /// The timer to stop after everything else is done.
    pub(in crate::exec) timer: Option<Arc<CompletionTimer>>,
    /// What the autotuner found, and the cache to keep it in.
    pub(in crate::exec) found: Option<(Arc<TuningCache>, (Strategy, Times))>,
    /// Has the fused form built.
    pub(in crate::exec) build: Option<Arc<dyn Fn() + Send + Sync>>,
    /// A fused form that is used no more. Commands that are enqueued already may still run.
    pub(in crate::exec) fused: Option<Box<Form>>,
}

impl Leftovers {
    /// Returns what is left so far, to leave more.
    pub(in crate::exec) fn left(&mut self) -> &mut Left {
        self.0.get_or_insert_default()
    }

    /// Whether a fused form is to be released.
    pub(in crate::exec) fn have_fused_form(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.fused.is_some())
    }

    #[inline]
    pub(in crate::exec) fn run(self, exclusive: &ExclusiveUse) {
        if let Some(left) = self.0 {
            left.run(exclusive);
        }
    }
}

impl Left {
    fn run(self, exclusive: &ExclusiveUse) {
        drop((self.gates, self.bindings));
        for queue in self.flush {
            submission_state::flush(&queue);
        }
        self.release.iter().for_each(|retained| retained.release());
        if !self.old.is_empty() {
            exclusive.keep_until_idle(self.old);
        }
        if let Some(timer) = self.timer {
            timer.enqueued();
        }
        if let Some(fused) = self.fused {
            exclusive.keep_until_idle(fused);
        }
        if let Some(build) = self.build {
            build();
        }
        if let Some((tuning_cache, found)) = self.found {
            tuning_cache.keep(found);
        }
    }
}
