//! The native path: records segments of a plan into command buffers.
//!
//! Drivers accept a command buffer only on queues with the properties of the queue that it was recorded for. So there
//! is one set of command buffers for each set of queue properties. The first set is recorded at finalize, another one
//! when it is first needed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cl::commands::command::record as record_command;
use crate::cl::completion::reentrancy::ReentrancyGuard;
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::command_buffer::{CommandBuffer, CommandBufferRecorder, Handle};
use crate::cl::objects::queue::DriverQueue;
use crate::command::Command;
use crate::error::{DriverError, Error};
use crate::exec::build::values::{Objects, Resolver, Values};
use crate::graph::NativeRecording;
use crate::handles::Node;
use crate::ir::{ById, NodeId};
use crate::plan::{Path, Plan, can_hold};

/// The command buffers of a plan for queues with one set of properties.
#[derive(Clone, Debug)]
pub(in crate::exec) struct Recorded {
    /// The chunks of all native segments, in order.
    chunks: Vec<Arc<Chunk>>,
    /// The queue that they were recorded for, kept here because some drivers do not retain it.
    queue: DriverQueue,
    logged: Arc<AtomicBool>,
}

/// Some consecutive steps as one command buffer. There is no command buffer if the steps have nothing to do, or if an
/// update has made them something that a command buffer cannot hold.
#[derive(Debug, Default)]
pub(in crate::exec) struct Chunk {
    pub(in crate::exec) steps: Range<usize>,
    pub(in crate::exec) buffer: Option<CommandBuffer>,
    /// The kernel objects that it names. Their arguments must not change, because some drivers read them when the
    /// command buffer is enqueued.
    pub(in crate::exec) _objects: Objects,
    /// By step of the chunk: the handle for changes in place. Empty if the driver can change nothing.
    pub(in crate::exec) handles: Vec<Option<Handle>>,
    /// Whether the steps are replayed.
    pub(in crate::exec) replayed: bool,
}

/// Why there are no command buffers.
#[derive(Debug)]
pub(in crate::exec) enum Refusal {
    /// The driver refused some nodes, and may accept the others.
    Nodes(Vec<(NodeId, DriverError)>),
    /// The driver makes no command buffer at all.
    All(Error),
    /// The function of a native command returned an error.
    Function(NodeId, String),
}

impl Refusal {
    /// Describes the refusal for the log, with the nodes of the graph.
    pub(in crate::exec) fn describe(&self, node: impl Fn(NodeId) -> Node) -> String {
        match self {
            Self::Nodes(nodes) => match nodes.first() {
                Some((first, error)) if nodes.len() == 1 => format!("{}: {error}", node(*first)),
                Some((first, error)) => format!("{} nodes, the first of them {}: {error}", nodes.len(), node(*first)),
                None => "nothing".to_owned(),
            },
            Self::All(error) => error.to_string(),
            Self::Function(at, text) => format!("{} (native command): {text}", node(*at)),
        }
    }
}

impl Recorded {
    pub(in crate::exec) fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    /// Returns the chunks of a native segment.
    pub(in crate::exec) fn of(&self, steps: &Range<usize>) -> &[Arc<Chunk>] {
        let first = self.chunks.partition_point(|chunk| chunk.steps.start < steps.start);
        let end = self.chunks.partition_point(|chunk| chunk.steps.start < steps.end);
        &self.chunks[first..end]
    }

    pub(in crate::exec) fn queue(&self) -> &DriverQueue {
        &self.queue
    }

    /// Replaces a command buffer, and returns the old one.
    pub(in crate::exec) fn replace(&mut self, at: usize, chunk: Arc<Chunk>) -> Option<Arc<Chunk>> {
        self.chunks.get_mut(at).map(|old| std::mem::replace(old, chunk))
    }

    /// Returns a command buffer that has no other holder.
    pub(in crate::exec) fn chunk_mut(&mut self, at: usize) -> Option<&mut Chunk> {
        self.chunks.get_mut(at).and_then(Arc::get_mut)
    }

    /// Logs, once, that a command buffer could not be enqueued and its commands were replayed.
    pub(in crate::exec) fn log_once(&self, error: &DriverError) {
        if !self.logged.swap(true, Ordering::Relaxed) {
            log_later!(
                Info,
                "{error}: the driver refused a command buffer, so clgraph replayed its commands, and will do so again \
                 (logged once for each executable)"
            );
        }
    }
}

/// Records the native segments of a plan, each in command buffers of at most so many commands.
///
/// It goes on after a refusal, so that all nodes that a driver refuses are known at once.
pub(in crate::exec) fn record(
    plan: &Plan,
    values: &Values,
    queue: &DriverQueue,
    most: usize,
) -> Result<Recorded, Refusal> {
    let mut chunks = Vec::new();
    let mut refused = Vec::new();
    for segment in plan.segments.iter().filter(|segment| segment.path == Path::Native) {
        for steps in segment.chunks(most) {
            match chunk(plan, values, queue, steps) {
                Ok(chunk) => chunks.push(Arc::new(chunk)),
                Err(Refusal::Nodes(nodes)) => refused.extend(nodes),
                Err(refusal) => return Err(refusal),
            }
        }
    }
    if refused.is_empty() {
        Ok(Recorded { chunks, queue: queue.clone(), logged: Arc::default() })
    } else {
        Err(Refusal::Nodes(refused))
    }
}

/// Records some steps.
pub(in crate::exec) fn chunk(
    plan: &Plan,
    values: &Values,
    queue: &DriverQueue,
    steps: Range<usize>,
) -> Result<Chunk, Refusal> {
    let (ir, caps) = (&values.tables.ir, queue.device().caps());
    // Possible only after an update: the planner leaves such nodes out.
    if plan.updatable && plan.steps[steps.clone()].iter().any(|step| !can_hold(ir, step.node, caps)) {
        return Ok(Chunk { steps, replayed: true, ..Chunk::default() });
    }
    let mut refused = Vec::new();
    let mut recording = None;
    let (mut objects, mut handles) = (Objects::default(), Vec::new());
    for (index, step) in steps.clone().zip(&plan.steps[steps.clone()]) {
        if values.command(step).is_noop() {
            continue;
        }
        let recording = match &mut recording {
            Some(recording) => recording,
            none => none.insert(CommandBufferRecorder::new(queue, plan.updatable).map_err(Refusal::All)?),
        };
        if let Command::Native { functions, .. } = values.command(step) {
            let _inside = ReentrancyGuard::native_command();
            let (raw, abi) = recording.raw_parts();
            let to = NativeRecording::new(raw, abi, queue, &values.tables, step.node);
            let outcome = values.tables.natives[functions.index()].record(&to);
            outcome.map_err(|text| Refusal::Function(step.node, text))?;
            continue;
        }
        let handle = match command(recording, values, index, values.command(step), &mut objects) {
            Ok(handle) => handle,
            Err(error) => {
                refused.push((step.node, error));
                // After a refusal a driver may accept no more commands, so the other nodes are tried in a new command
                // buffer.
                *recording = CommandBufferRecorder::new(queue, plan.updatable).map_err(Refusal::All)?;
                continue;
            }
        };
        if handle.is_some() {
            handles.resize(steps.len(), None);
            handles[index - steps.start] = handle;
        }
    }
    if !refused.is_empty() {
        return Err(Refusal::Nodes(refused));
    }
    let buffer = recording.map(CommandBufferRecorder::finalize).transpose();
    let buffer = buffer
        .map_err(|error| Refusal::Nodes(plan.steps[steps.clone()].iter().map(|step| (step.node, error)).collect()))?;
    Ok(Chunk { steps, buffer, _objects: objects, handles, replayed: false })
}

/// Records a command, and adds the kernel object that it names. Returns the handle for changes in place.
fn command(
    recording: &mut CommandBufferRecorder,
    values: &Values,
    index: usize,
    of: &Command<ById>,
    objects: &mut Objects,
) -> Result<Option<Handle>, DriverError> {
    let Command::Kernel { kernel, args, grid, .. } = of else {
        return record_command(recording, &of.translate(&mut Resolver { values, bindings: None })?);
    };
    let object = values.object(index, *kernel, *args)?.shared();
    let launch =
        Command::Kernel { kernel: &*object, args: (), grid: *grid, bound: None, prints: false, elementwise: None };
    let handle = record_command(recording, &launch);
    objects.0.push(Some(object));
    handle
}
