//! The native path: parts of a plan as command buffers.
//!
//! Drivers take a command buffer on queues with the properties of the one it was recorded for, so there is one set of
//! command buffers for each set of properties: the first is made at finalize, another when it is first needed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::values::{Objects, Values};
use crate::cl::command_buffer::{CommandBuffer, Handle, Recording};
use crate::cl::queue::DriverQueue;
use crate::cl::reentrancy::Inside;
use crate::error::{DriverError, Error, Fault};
use crate::graph::{NativeRecording, Node};
use crate::ir::{NodeId, Op};
use crate::plan::{Path, Plan, can_hold};

/// The command buffers of a plan for queues with one set of properties.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// Those of all native parts, in order.
    chunks: Vec<Arc<Chunk>>,
    /// The queue that they were recorded for: some drivers do not keep it.
    queue: DriverQueue,
    told: Arc<AtomicBool>,
}

/// Some consecutive steps as a command buffer, or as none when they have nothing to do, or when an update has brought what
/// no command buffer holds.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) steps: Range<usize>,
    pub(super) buffer: Option<CommandBuffer>,
    /// The kernel objects that it names, whose arguments nobody changes meanwhile: some drivers read them when it is enqueued.
    pub(super) _objects: Objects,
    /// By step of the chunk: what the driver can change. Empty where it can change nothing.
    pub(super) handles: Vec<Option<Handle>>,
    /// Whether the steps are replayed.
    pub(super) replayed: bool,
}

/// Why there are no command buffers.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The driver refused some nodes, and may take the others.
    Nodes(Vec<(NodeId, DriverError)>),
    /// It makes no command buffer at all.
    All(Error),
    /// The function of a native command said no.
    Function(NodeId, String),
}

impl Refusal {
    /// For the log, with the nodes of the graph.
    pub(super) fn told(&self, node: impl Fn(NodeId) -> Node) -> String {
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
    pub(super) fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    /// Those of a native part.
    pub(super) fn of(&self, steps: &Range<usize>) -> &[Arc<Chunk>] {
        let first = self.chunks.partition_point(|chunk| chunk.steps.start < steps.start);
        let end = self.chunks.partition_point(|chunk| chunk.steps.start < steps.end);
        &self.chunks[first..end]
    }

    pub(super) fn queue(&self) -> &DriverQueue {
        &self.queue
    }

    /// Puts a command buffer in the place of another, and gives that.
    pub(super) fn replace(&mut self, at: usize, chunk: Arc<Chunk>) -> Option<Arc<Chunk>> {
        self.chunks.get_mut(at).map(|old| std::mem::replace(old, chunk))
    }

    /// A command buffer that nobody else has.
    pub(super) fn chunk_mut(&mut self, at: usize) -> Option<&mut Chunk> {
        self.chunks.get_mut(at).and_then(Arc::get_mut)
    }

    /// A command buffer could not be enqueued, and its commands were replayed: worth telling, once.
    pub(super) fn tell_once(&self, error: &DriverError) {
        if !self.told.swap(true, Ordering::Relaxed) {
            log::info!(
                "{error}: a command buffer was replayed, and later ones are where the driver refuses (told once for each executable)"
            );
        }
    }
}

/// Records the native parts of a plan, each in command buffers of so many commands at most.
///
/// It goes on after a refusal, so that all nodes that a driver refuses are known at once.
pub(super) fn record(plan: &Plan, values: &Values, queue: &DriverQueue, most: usize) -> Result<Recorded, Refusal> {
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
        Ok(Recorded { chunks, queue: queue.clone(), told: Arc::default() })
    } else {
        Err(Refusal::Nodes(refused))
    }
}

/// Records some steps.
pub(super) fn chunk(plan: &Plan, values: &Values, queue: &DriverQueue, steps: Range<usize>) -> Result<Chunk, Refusal> {
    let (ir, caps) = (&values.tables.ir, queue.device().caps());
    // Only after an update: the planner leaves it out.
    if plan.updatable && plan.steps[steps.clone()].iter().any(|step| !can_hold(ir, step.node, caps)) {
        return Ok(Chunk { steps, replayed: true, ..Chunk::default() });
    }
    let mut refused = Vec::new();
    let mut recording = None;
    let (mut objects, mut handles) = (Objects::default(), Vec::new());
    for (index, step) in steps.clone().zip(&plan.steps[steps.clone()]) {
        if values.op(step).is_noop() {
            continue;
        }
        let recording = match &mut recording {
            Some(recording) => recording,
            none => none.insert(Recording::new(queue, plan.updatable).map_err(Refusal::All)?),
        };
        if let Op::Native { command, .. } = values.op(step) {
            let _inside = Inside::native_command();
            let (raw, abi) = recording.raw_parts();
            let to = NativeRecording::new(raw, abi, queue, &values.tables, step.node);
            let said = values.tables.natives[command.index()].record(&to);
            said.map_err(|text| Refusal::Function(step.node, text))?;
            continue;
        }
        let handle = match command(recording, values, index, values.op(step), &mut objects) {
            Ok(handle) => handle,
            Err(error) => {
                refused.push((step.node, error));
                // A driver may take nothing more after it: whether it takes the others is asked of another one.
                *recording = Recording::new(queue, plan.updatable).map_err(Refusal::All)?;
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
    let buffer = recording.map(Recording::finalize).transpose();
    let buffer = buffer
        .map_err(|error| Refusal::Nodes(plan.steps[steps.clone()].iter().map(|step| (step.node, error)).collect()))?;
    Ok(Chunk { steps, buffer, _objects: objects, handles, replayed: false })
}

/// Records a command; gives what the driver can change in it. Adds the kernel object that it names.
fn command(
    recording: &mut Recording,
    values: &Values,
    index: usize,
    op: &Op,
    objects: &mut Objects,
) -> Result<Option<Handle>, DriverError> {
    match op {
        Op::Kernel { kernel, args, grid, .. } => {
            let object = values.object(index, *kernel, *args)?.shared();
            let handle = recording.kernel(&object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref());
            objects.0.push(Some(object));
            return handle;
        }
        Op::Copy { src, dst, size } => recording.copy(values.at(src)?, values.at(dst)?, *size)?,
        Op::CopyRect(rect) => recording.copy_rect(
            (values.mem(rect.src)?, &rect.src_origin),
            (values.mem(rect.dst)?, &rect.dst_origin),
            &rect.region,
            &rect.pitches,
        )?,
        Op::CopyImage(copy) => {
            recording.copy_image(values.pixels(&copy.src)?, values.pixels(&copy.dst)?, &copy.region)?;
        }
        Op::Fill { dst, pattern, area: Some(area), .. } => {
            recording.fill_image(values.mem(dst.view)?, area, values.bytes(*pattern))?;
        }
        Op::Fill { dst, size, pattern, area: None } => {
            recording.fill(values.at(dst)?, values.bytes(*pattern), *size)?
        }
        // There is no such command. The planner asks for none, and its checker looks.
        Op::Empty
        | Op::SubGraph(_)
        | Op::Alloc(_)
        | Op::Task(_)
        | Op::Event { .. }
        | Op::Native { .. }
        | Op::Free(_)
        | Op::Write { .. }
        | Op::Read { .. }
        | Op::Hint { .. } => {
            return Err(DriverError::faulty("the recording of a host transfer or a hint", Fault::Defect));
        }
    }
    Ok(None)
}
