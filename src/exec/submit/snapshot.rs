//! A snapshot: what a submission runs. It has the values and command buffers of the time when the submission was made,
//! and the strategy by which it is enqueued.

use std::sync::Arc;

use crate::cl::completion::completion_time::CompletionTimer;
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::command_buffer::CommandBuffer;
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::error::{DriverError, DriverFault, Error, Result, SubmitError};
use crate::exec::build::record::{self, Recorded, Refusal};
use crate::exec::build::values::Values;
use crate::exec::finalized::Finalized;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::tier::{FusedPlan, Tier};
use crate::plan::{Path, Strategy};

/// Command buffers for queues with certain properties.
pub(in crate::exec) struct Set {
    pub(in crate::exec) properties: QueueProperties,
    /// The largest number of commands in each.
    pub(in crate::exec) most: usize,
    /// None if the driver made none.
    pub(in crate::exec) recorded: Option<Arc<Recorded>>,
}

/// What a submission runs. A later update does not change it.
pub(in crate::exec) struct Snapshot {
    pub(in crate::exec) values: Arc<Values>,
    pub(in crate::exec) recorded: Option<Arc<Recorded>>,
    pub(in crate::exec) strategy: Strategy,
    /// The plan to carry out, if it is not the executable's first one.
    pub(in crate::exec) fused: Option<Arc<FusedPlan>>,
    /// The executable's own queues, for submissions that use several queues.
    pub(in crate::exec) others: Arc<[DriverQueue]>,
    /// The timer, if the submission is timed.
    pub(in crate::exec) timer: Option<Arc<CompletionTimer>>,
}

impl Snapshot {
    /// Returns the plan that the submission carries out, with what finalize fixed beside it.
    pub(in crate::exec) fn planned<'a>(&'a self, exec: &'a Finalized) -> &'a Finalized {
        self.fused.as_ref().map_or(exec, |form| &form.fixed)
    }
}

impl ExecutableState {
    /// Returns the command buffers for queues with the properties of this one, which is in order. They are recorded
    /// when they are first needed, and again behind an update that failed halfway.
    fn recorded_for(
        &mut self,
        exec: &Finalized,
        queue: &DriverQueue,
        strategy: Strategy,
    ) -> Result<Option<Arc<Recorded>>> {
        if strategy.path != Path::Native || !exec.plan.is_native() {
            return Ok(None);
        }
        let (properties, most) = (queue.properties(), strategy.chunk);
        if let Some(known) = self.recorded.iter().find(|set| set.properties == properties && set.most == most) {
            return Ok(known.recorded.clone());
        }
        let supported = exec.device.caps().records_for_profiling();
        self.sync_arguments(exec);
        let recorded = if supported { Some(record_for(exec, &self.values, properties, most)) } else { None };
        let recorded = match recorded {
            Some(Ok(recorded)) => Some(Arc::new(recorded)),
            // A function may succeed the next time, and so may the driver where some nodes can only be recorded. So the
            // refusal is not stored.
            Some(Err(refusal)) if exec.plan.only_recorded || matches!(refusal, Refusal::Function(..)) => {
                return Err(not_recorded(exec, refusal));
            }
            Some(Err(refusal)) => {
                let reason = refusal.describe(|node| exec.node(exec.origins.of(node).node));
                log_later!(
                    Info,
                    "the driver refused to record: {reason}; submissions to {} are \
                            replayed",
                    queues_with(properties)
                );
                None
            }
            None => {
                let (device, queues) = (exec.device.name(), queues_with(properties));
                log_later!(
                    Info,
                    "command buffers of device `{device}` do not run on {queues}: submissions to such queues are \
                     replayed"
                );
                None
            }
        };
        self.recorded.push(Set { properties, most, recorded: recorded.clone() });
        Ok(recorded)
    }

    /// Takes the values and command buffers as they are now, for an in-order queue.
    pub(in crate::exec) fn take_snapshot(
        &mut self,
        exec: &Finalized,
        queue: &DriverQueue,
        (mut strategy, mut timer): (Strategy, Option<Arc<CompletionTimer>>),
    ) -> Result<Snapshot> {
        if strategy.fused {
            if let Tier::Ready { form, .. } = &self.tier {
                let (values, fused) = (Arc::clone(&form.values), Some(Arc::clone(&form.plan)));
                return Ok(Snapshot { recorded: None, values, strategy, fused, others: Arc::default(), timer });
            }
            strategy.fused = false;
        }
        let mut others = Arc::default();
        if strategy.path == Path::Queues {
            match self.other_queues(exec, strategy.queues - 1) {
                Ok(queues) => others = queues,
                Err(error) => {
                    log_later!(Info, "{error}: clgraph could not make more queues, so all commands run on one queue");
                    self.autotuner.cannot(strategy, timer.take().as_ref());
                    strategy = Strategy::by(Path::Replay);
                }
            }
        }
        let recorded = self.recorded_for(exec, queue, strategy)?;
        if recorded.is_none() {
            self.sync_arguments(exec);
        }
        Ok(Snapshot { recorded, values: Arc::clone(&self.values), strategy, fused: None, others, timer })
    }

    /// Returns further in-order queues for submissions that use several queues. They are made when they are first
    /// needed.
    fn other_queues(&mut self, exec: &Finalized, count: usize) -> Result<Arc<[DriverQueue]>> {
        if self.others.len() < count {
            let properties = QueueProperties::new().profiling(exec.names.is_some());
            let queue = |_| DriverQueue::with_properties(&exec.context, &exec.device, properties);
            self.others = (0..count).map(queue).collect::<Result<_>>()?;
        }
        Ok(Arc::clone(&self.others))
    }

    /// Sets outdated arguments of all kernel objects. If that fails now, each submission makes the kernel object anew.
    pub(in crate::exec) fn sync_arguments(&mut self, exec: &Finalized) {
        if self.values.stale.is_empty() {
            return;
        }
        let steps = 0..exec.plan.steps.len();
        if let Err(error) =
            Arc::make_mut(&mut self.values).sync_arguments(&exec.plan, steps, &mut self.leftovers.left().old)
        {
            log_later!(Debug, "{error}: clgraph sets the arguments of some kernels again at each submission");
        }
    }

    /// Returns the C handles of the command buffers that finalize made.
    pub(in crate::exec) fn command_buffers(&self) -> Vec<*mut std::ffi::c_void> {
        let first = self.recorded.first().and_then(|set| set.recorded.as_ref());
        let buffers = first.map(|recorded| recorded.chunks().iter().filter_map(|chunk| chunk.buffer.as_ref()));
        buffers.map(|buffers| buffers.map(CommandBuffer::raw).collect()).unwrap_or_default()
    }
}

/// Describes queue properties for the log. Command buffers are for in-order queues, so these properties are all that
/// can differ.
fn queues_with(properties: QueueProperties) -> &'static str {
    if properties.profiling { "queues that profile" } else { "queues without profiling" }
}

/// Returns the error of a submission that needs command buffers, which could not be recorded.
fn not_recorded(exec: &Finalized, refusal: Refusal) -> Error {
    let node = |node| exec.node(exec.origins.of(node).node);
    match refusal {
        Refusal::Function(at, text) => SubmitError::NativeCommand { node: node(at), text }.into(),
        Refusal::All(error) => error,
        Refusal::Nodes(nodes) => match nodes.first() {
            Some((first, source)) => {
                let (node, total) = (node(*first), exec.plan.steps.len());
                SubmitError::Enqueue { node, commands: 1, fused: false, enqueued: 0, total, source: *source }.into()
            }
            None => DriverError::faulty("clCreateCommandBufferKHR", DriverFault::Defect).into(),
        },
    }
}

/// Records the native segments of an executable again, for queues with other properties.
fn record_for(
    exec: &Finalized,
    values: &Values,
    properties: QueueProperties,
    most: usize,
) -> Result<Recorded, Refusal> {
    let queue = DriverQueue::with_properties(&exec.context, &exec.device, properties).map_err(Refusal::All)?;
    record::record(&exec.plan, values, &queue, most)
}
