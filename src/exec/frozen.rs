//! What a submission runs: the values and command buffers as they are when it is made, and the way that it goes.

use std::sync::Arc;

use super::lane::Lane;
use super::native::{self, Recorded, Refusal};
use super::values::Values;
use super::{Inner, finalize};
use crate::cl::command_buffer::CommandBuffer;
use crate::cl::queue::{DriverQueue, QueueProperties};
use crate::cl::stamp::Stamp;
use crate::error::{Result, SubmitError};
use crate::plan::{Path, Way};

/// Command buffers for queues with some properties.
pub(super) struct Set {
    pub(super) properties: QueueProperties,
    /// Commands in each, at most.
    pub(super) most: usize,
    /// None: the driver made none.
    pub(super) recorded: Option<Arc<Recorded>>,
}

/// What a submission runs: an update afterwards does not change it.
pub(super) struct Frozen {
    pub(super) values: Arc<Values>,
    pub(super) recorded: Option<Arc<Recorded>>,
    pub(super) way: Way,
    /// The executable's own queues, for what goes over several.
    pub(super) others: Arc<[DriverQueue]>,
    /// Where it is timed.
    pub(super) stamp: Option<Arc<Stamp>>,
}

impl Lane {
    /// The command buffers for queues like this one, which is in order, recorded when first needed.
    fn recorded_for(&mut self, exec: &Inner, queue: &DriverQueue, way: Way) -> Result<Option<Arc<Recorded>>> {
        if way.path != Path::Native || self.recorded.is_empty() {
            return Ok(None);
        }
        let (properties, most) = (queue.properties(), way.chunk);
        if let Some(known) = self.recorded.iter().find(|set| set.properties == properties && set.most == most) {
            return Ok(known.recorded.clone());
        }
        let supported = finalize::profiles(exec.device.caps());
        self.freshen(exec);
        let recorded = if supported { Some(record_for(exec, &self.values, properties, most)) } else { None };
        let recorded = match recorded {
            Some(Ok(recorded)) => Some(Arc::new(recorded)),
            // Asked again, it may do better.
            Some(Err(Refusal::Function(node, text))) => {
                let node = exec.node(exec.origins.of(node).node);
                return Err(SubmitError::NativeCommand { node, text }.into());
            }
            Some(Err(refusal)) => {
                let told = refusal.told(|node| exec.node(exec.origins.of(node).node));
                log::info!("{told}: submissions to {} are replayed", queues_with(properties));
                None
            }
            None => {
                let (device, queues) = (exec.device.name(), queues_with(properties));
                log::info!(
                    "command buffers of device `{device}` do not run on {queues}: submissions to those are replayed"
                );
                None
            }
        };
        self.recorded.push(Set { properties, most, recorded: recorded.clone() });
        Ok(recorded)
    }

    /// The values and command buffers as they are now, for a queue in order.
    pub(super) fn freeze(
        &mut self,
        exec: &Inner,
        queue: &DriverQueue,
        (mut way, mut stamp): (Way, Option<Arc<Stamp>>),
    ) -> Result<Frozen> {
        let mut others = Arc::default();
        if way.path == Path::Queues {
            match self.other_queues(exec, way.queues - 1) {
                Ok(queues) => others = queues,
                Err(error) => {
                    log::info!("{error}: no queues to run side by side on, so everything runs on one");
                    self.choice.cannot(way, stamp.take().as_ref());
                    way = Way::by(Path::Replay);
                }
            }
        }
        let recorded = self.recorded_for(exec, queue, way)?;
        if recorded.is_none() {
            self.freshen(exec);
        }
        Ok(Frozen { recorded, values: Arc::clone(&self.values), way, others, stamp })
    }

    /// In-order queues besides the one that a submission goes to, made when first needed.
    fn other_queues(&mut self, exec: &Inner, count: usize) -> Result<Arc<[DriverQueue]>> {
        if self.others.len() < count {
            let queue = |_| DriverQueue::with_properties(&exec.context, &exec.device, QueueProperties::new());
            self.others = (0..count).map(queue).collect::<Result<_>>()?;
        }
        Ok(Arc::clone(&self.others))
    }

    /// Makes all kernel objects have their arguments. What cannot be set now is made anew by each submission.
    pub(super) fn freshen(&mut self, exec: &Inner) {
        if self.values.stale.is_empty() {
            return;
        }
        let steps = 0..exec.plan.steps.len();
        if let Err(error) = Arc::make_mut(&mut self.values).freshen(&exec.plan, steps, &mut self.leftovers.old) {
            log::debug!("{error}: the arguments of some kernels are set again at each submission");
        }
    }

    /// The C handles of the command buffers that finalize has made.
    pub(super) fn command_buffers(&self) -> Vec<*mut std::ffi::c_void> {
        let first = self.recorded.first().and_then(|set| set.recorded.as_ref());
        let buffers = first.map(|recorded| recorded.chunks().iter().filter_map(|chunk| chunk.buffer.as_ref()));
        buffers.map(|buffers| buffers.map(CommandBuffer::raw).collect()).unwrap_or_default()
    }
}

/// For the log: command buffers are for queues in order, so this is what is left to differ.
fn queues_with(properties: QueueProperties) -> &'static str {
    if properties.profiling { "queues that profile" } else { "queues without profiling" }
}

/// Records the native parts of an executable once more, for queues with other properties.
fn record_for(exec: &Inner, values: &Values, properties: QueueProperties, most: usize) -> Result<Recorded, Refusal> {
    let queue = DriverQueue::with_properties(&exec.context, &exec.device, properties).map_err(Refusal::All)?;
    native::record(&exec.plan, values, &queue, most)
}
