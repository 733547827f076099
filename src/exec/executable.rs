//! The public handle of an executable, and what is behind it: what finalize fixed, and what changes.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cl::completion::reentrancy;
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::exec::finalized::Finalized;
use crate::exec::submit::exclusive::ExclusiveUse;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::tier::Tier;
use crate::report::Report;

/// A finalized graph, with everything prepared that can be prepared. Each submission runs it once.
///
/// The topology of an executable is fixed. Its values change only by [`update`](Self::update): later changes of the
/// graph do not reach it. An executable keeps alive everything that it uses, and may be dropped while it runs. The
/// functions of host tasks and native commands are shared with the graph and with the graph's other executables; they
/// are called one after another. An executable is cheap to clone: clones are the same executable. Submissions of one
/// executable never overlap: a later submission waits for the earlier ones, also on other queues and from other
/// threads.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, Finalize, Graph, Queue};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// let graph = Graph::new(&queue)?;
/// let buffer = Buffer::<u32>::new(&queue, 8)?;
/// graph.fill(&buffer, 7).add()?;
/// let result = graph.read(&buffer).add()?;
/// let executable = graph.finalize(Finalize::new())?;
/// for _ in 0..3 {
///     let run = executable.submit(&queue)?;
///     run.wait()?;
///     assert_eq!(*run.get(&result)?, [7; 8]);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[doc(alias = "cudaGraphExec_t")]
pub struct Executable(pub(in crate::exec) Arc<Inner>);

pub(in crate::exec) struct Inner {
    pub(in crate::exec) fixed: Finalized,
    pub(in crate::exec) exec_state: Mutex<ExecutableState>,
    pub(in crate::exec) exclusive: ExclusiveUse,
}

impl Executable {
    /// Returns how many bytes the executable has allocated for its graph's own memory
    /// ([`Graph::alloc`](crate::Graph::alloc)); 0 if the graph has none. [`report`](Self::report) says which allocation
    /// is where.
    #[must_use]
    pub fn required_memory(&self) -> usize {
        self.0.fixed.report.memory.bytes
    }

    /// Returns what finalize decided, and why. It also says how submissions are enqueued now, which an automatic path
    /// finds by timing them; this part is empty inside the function of a native command.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.0.fixed.report.clone();
        if reentrancy::check_call().is_ok() {
            let mut exec_state = self.0.lock_state();
            report.tuning = exec_state.tuning_report();
            let is_fused = exec_state.autotuner.strategy().fused;
            report.fusing = exec_state.tier.state(is_fused);
            match &exec_state.tier {
                Tier::Ready { form, .. } if is_fused => {
                    let of = &form.plan.fixed.report;
                    report = Report { tuning: report.tuning, fusing: report.fusing, ..of.clone() };
                }
                Tier::Ready { form, stays: false, .. } => report.fused.clone_from(&form.plan.fixed.report.fused),
                Tier::Ended(_, why) => report.not_fused.clone_from(why),
                Tier::Waiting(of) | Tier::Building(of) => report.not_fused.extend_from_slice(&of.lost),
                Tier::Off | Tier::Ready { stays: true, .. } => {}
            }
            report.fuse_build = exec_state.fuse_build.or(self.0.fixed.report.fuse_build);
            // The form that runs is the one that has measured.
            let (values, plan) = match &exec_state.tier {
                Tier::Ready { form, .. } if is_fused => (&form.values, &form.plan.fixed.plan),
                _ => (&exec_state.values, &self.0.fixed.plan),
            };
            for of in &mut report.loops {
                of.on_device = values.guards.on_device(of.flow).is_some();
                if of.on_device {
                    of.host_decided = None;
                    continue;
                }
                let Some(guard) = values.guards.of_flow(of.flow) else { continue };
                of.host_decided = guard.condition(values, plan).err();
                of.ahead = guard.pace().is_ahead().filter(|_| of.host_decided.is_none());
            }
            let leftovers = exec_state.leftovers();
            drop(exec_state);
            leftovers.run(&self.0.exclusive);
        }
        report
    }

    /// Returns the native command buffers that finalize made, as `cl_command_buffer_khr`, in the order of the plan.
    ///
    /// They are for in-order queues without profiling; if the executable was finalized for profiling, they are for
    /// in-order queues with profiling. The list is empty if nothing was recorded, and inside the function of a native
    /// command. Replayed commands are in no command buffer. An automatic path may enqueue other command buffers, or
    /// none: see [`TuningReport`](crate::TuningReport).
    ///
    /// The handles are valid while the executable exists and is not updated. If you enqueue a command buffer yourself,
    /// clgraph does not know it: submissions are not ordered after it, and you must keep alive the memory and kernels
    /// that its commands use, because drivers do not keep the arguments of recorded kernels.
    #[must_use]
    #[doc(alias = "clEnqueueCommandBufferKHR")]
    pub fn command_buffers(&self) -> Vec<*mut std::ffi::c_void> {
        if reentrancy::check_call().is_err() { Vec::new() } else { self.0.lock_state().command_buffers() }
    }

    /// Returns the device of the executable.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.fixed.device
    }
}

impl InContext for Executable {
    fn context(&self) -> &Context {
        &self.0.fixed.context
    }
}

impl Inner {
    pub(in crate::exec) fn lock_state(&self) -> MutexGuard<'_, ExecutableState> {
        self.exec_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Executable {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Executable {}

impl std::hash::Hash for Executable {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.fixed.id.hash(state);
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executable")
            .field("device", &self.0.fixed.device)
            .field("commands", &self.0.fixed.plan.steps.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // OpenCL keeps its own objects until the enqueued commands that use them are complete. It does not keep the
        // objects that a command buffer uses, nor host memory: this must.
        let exec_state = self.exec_state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = exec_state.outliving(self.exclusive.user()) {
            self.exclusive.keep_while_running(kept);
        }
    }
}
