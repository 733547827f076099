//! The native path: parts of a plan as command buffers.
//!
//! Drivers take a command buffer on queues with the properties of the one it was recorded for, so there is one set of
//! command buffers for each set of properties: the first is made at finalize, another when it is first needed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Objects;
use crate::cl::buffer::Mem;
use crate::cl::command_buffer::{CommandBuffer, Recording};
use crate::cl::queue::DriverQueue;
use crate::error::{DriverError, Error, Status};
use crate::ir::{NodeId, Place};
use crate::plan::{Action, Path, Plan};

/// The command buffers of a plan for queues with one set of properties.
#[derive(Debug)]
pub(super) struct Recorded {
    /// Those of all native parts, in order.
    buffers: Vec<CommandBuffer>,
    /// The queue that they were recorded for: some drivers do not keep it.
    _queue: DriverQueue,
    told: AtomicBool,
}

/// Why there are no command buffers.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The driver refused some nodes, and may take the others.
    Nodes(Vec<(NodeId, DriverError)>),
    /// It makes no command buffer at all.
    All(Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(nodes) => match nodes.first() {
                Some((node, error)) if nodes.len() == 1 => write!(f, "{error} for node {}", node.0),
                Some((node, error)) => write!(f, "{error} for node {} and others, {} in all", node.0, nodes.len()),
                None => f.write_str("nothing was refused"),
            },
            Self::All(error) => error.fmt(f),
        }
    }
}

impl Recorded {
    pub(super) fn buffers(&self) -> &[CommandBuffer] {
        &self.buffers
    }

    /// A command buffer could not be enqueued, and its commands were replayed: worth telling, once.
    pub(super) fn tell_once(&self, error: &DriverError) {
        if !self.told.swap(true, Ordering::Relaxed) {
            log::warn!(
                "{error}: this part of the submission was replayed, and so will be others when the driver refuses them"
            );
        }
    }
}

/// Records the native parts of a plan, each in chunks.
///
/// It goes on after a refusal, so that all nodes that a driver refuses are known at once.
pub(super) fn record(plan: &Plan, objects: &Objects, views: &[Mem], queue: &DriverQueue) -> Result<Recorded, Refusal> {
    let mut buffers = Vec::new();
    let mut refused = Vec::new();
    for segment in plan.segments.iter().filter(|segment| segment.path == Path::Native) {
        for chunk in segment.chunks() {
            let mut recording = Recording::new(queue).map_err(Refusal::All)?;
            let refused_before = refused.len();
            for step in &plan.steps[chunk.clone()] {
                if let Err(error) = command(&mut recording, plan, objects, views, &step.action) {
                    refused.push((step.node, error));
                    // A driver may take nothing more after it: whether it takes the others is asked of another one.
                    recording = Recording::new(queue).map_err(Refusal::All)?;
                }
            }
            if refused.len() > refused_before {
                continue;
            }
            match recording.finalize() {
                Ok(buffer) => buffers.push(buffer),
                Err(error) => refused.extend(plan.steps[chunk].iter().map(|step| (step.node, error))),
            }
        }
    }
    if refused.is_empty() {
        Ok(Recorded { buffers, _queue: queue.clone(), told: AtomicBool::new(false) })
    } else {
        Err(Refusal::Nodes(refused))
    }
}

fn command(
    recording: &mut Recording,
    plan: &Plan,
    objects: &Objects,
    views: &[Mem],
    action: &Action,
) -> Result<(), DriverError> {
    let at = |place: &Place| -> (&Mem, usize) { (&views[place.view.index()], place.offset) };
    match action {
        Action::Launch { object, grid } => {
            recording.kernel(objects.get(*object), grid.dims, &grid.offset, &grid.global, grid.local.as_ref())
        }
        Action::Copy { src, dst, size } => recording.copy(at(src), at(dst), *size),
        Action::CopyRect(rect) => recording.copy_rect(
            (&views[rect.src.index()], &rect.src_origin),
            (&views[rect.dst.index()], &rect.dst_origin),
            &rect.region,
            &rect.pitches,
        ),
        Action::Fill { dst, size, pattern } => recording.fill(at(dst), &plan.patterns[pattern.clone()], *size),
        // There is no such command. The planner asks for none, and its checker looks.
        Action::Write { .. } | Action::Read { .. } => {
            Err(DriverError::new("recording a host transfer", Status(opencl_sys::CL_INVALID_OPERATION)))
        }
    }
}
