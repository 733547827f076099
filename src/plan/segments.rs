//! Which path each command takes, and the segments: runs of consecutive commands that take the same path for
//! the same reason.

use std::ops::Range;

use super::{CommandKind, Path, PathReason};
use super::{Options, Segment, Step};
use crate::caps::Caps;
use crate::command::{Arg, Command, Form};
use crate::ir::{Access, Ir, NodeId, ViewKind};
use crate::quirks;

/// Returns the path for all commands that can take it, and why.
fn choose(caps: &Caps, options: &Options<'_>) -> (Path, PathReason) {
    match options.path {
        Path::Auto if options.profiled => (Path::Replay, PathReason::Profiled),
        Path::Auto => caps.path(),
        path => {
            let path = if path == Path::Native { path } else { Path::Replay };
            (path, if options.from_environment { PathReason::Environment } else { PathReason::Asked })
        }
    }
}

/// Returns whether command buffers of the device can hold what a node does now, which an update may have changed.
pub(crate) fn can_hold(ir: &Ir, node: NodeId, caps: &Caps) -> bool {
    matches!(ir.command(node), Command::Native { .. })
        || CommandKind::of(ir.command(node), &ir.views).is_none_or(|command| caps.can_record(command).is_ok())
            && crashes(ir, node, caps).is_none()
}

/// Returns why a driver is not asked to record a node: recording it is known to crash the process.
fn crashes(ir: &Ir, node: NodeId, caps: &Caps) -> Option<PathReason> {
    if !quirks::crashes_recording_samplers_and_buffer_images(caps) {
        return None;
    }
    let of_buffer = |access: &Access| ir.views[access.view.index()].kind == ViewKind::ImageOfBuffer;
    if ir.accesses(node).iter().any(of_buffer) {
        return Some(PathReason::ImageOfBuffer);
    }
    let Command::Kernel { args, .. } = ir.command(node) else { return None };
    ir.args(*args).iter().any(|arg| matches!(arg, Arg::Sampler(_))).then_some(PathReason::Sampler)
}

/// Returns the path of a node, and why. No other function decides that.
fn path_of(
    ir: &Ir,
    node: NodeId,
    caps: &Caps,
    options: &Options<'_>,
    chosen: (Path, PathReason),
) -> (Path, PathReason) {
    match ir.command(node) {
        Command::Native { form: Form::Recorded, .. } => return (Path::Native, PathReason::OnlyRecorded),
        Command::Native { form: Form::Enqueued, .. } if chosen.0 == Path::Native => {
            return (Path::Replay, PathReason::OnlyEnqueued);
        }
        _ => {}
    }
    let command = match ir.command(node) {
        // Nothing more is known about what the function records.
        Command::Native { .. } => Some(CommandKind::Kernel),
        op => CommandKind::of(op, &ir.views),
    };
    let (Path::Native, Some(command)) = (chosen.0, command) else { return chosen };
    // Buffers may be made for other devices of the context, and some drivers crash where they should refuse to record.
    let view = |access: &Access| ir.views[access.view.index()];
    let too_large = |access: &Access| view(access).root_size as u64 > caps.max_allocation;
    let align = caps.sub_buffer_align.max(1);
    let misaligned = |access: &Access| view(access).is_sub_buffer() && !view(access).offset.is_multiple_of(align);
    let why_not = match options.denied.get(&node).copied().or(options.no_native) {
        Some(why) => Some(why),
        None if ir.accesses(node).iter().any(too_large) => Some(PathReason::TooLarge),
        None if ir.accesses(node).iter().any(misaligned) => Some(PathReason::Misaligned),
        None => caps.can_record(command).err().or_else(|| crashes(ir, node, caps)),
    };
    why_not.map_or(chosen, |why| (Path::Replay, why))
}

/// The smallest number of consecutive commands that an automatic path records.
const SHORT: usize = 4;

/// Divides the steps into segments that run by one path each, for one reason.
pub(super) fn segments(
    ir: &Ir,
    steps: &[Step],
    range: Range<usize>,
    caps: &Caps,
    options: &Options<'_>,
) -> Vec<Segment> {
    let chosen = choose(caps, options);
    let segment = |steps, (path, why)| Segment { steps, path, why };
    let mut segments: Vec<Segment> = Vec::new();
    for index in range {
        let node = steps[index].node;
        push(&mut segments, segment(index..index + 1, path_of(ir, node, caps, options, chosen)));
    }
    if chosen != (Path::Native, PathReason::Available) {
        return segments;
    }
    let mut long = Vec::new();
    for one in segments {
        let short = (one.path, one.why) == chosen && one.steps.len() < SHORT;
        push(&mut long, if short { segment(one.steps, (Path::Replay, PathReason::TooShort)) } else { one });
    }
    long
}

/// Adds a segment, to the last one if both have the same path and reason.
fn push(segments: &mut Vec<Segment>, segment: Segment) {
    match segments.last_mut() {
        Some(last) if (last.path, last.why) == (segment.path, segment.why) => last.steps.end = segment.steps.end,
        _ => segments.push(segment),
    }
}

impl Segment {
    /// Returns how many command buffers of at most so many commands the segment needs.
    pub(crate) fn command_buffers(&self, most: usize) -> usize {
        if self.path == Path::Native { self.chunks(most).len() } else { 0 }
    }

    /// Returns the steps of each command buffer of a native segment: as few command buffers as possible, of about the
    /// same length.
    pub(crate) fn chunks(&self, most: usize) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
        let (start, len) = (self.steps.start, self.steps.len());
        let count = len.div_ceil(most.max(1));
        (0..count).map(move |at| start + len * at / count..start + len * (at + 1) / count)
    }
}

/// Returns whether a marker has to show when the first command starts: no driver reports that for a command buffer, and
/// a native command may be several commands.
pub(super) fn marked(ir: &Ir, steps: &[Step], segments: &[Segment], caps: &Caps) -> bool {
    segments.first().is_some_and(|first| first.path == Path::Native)
        || steps.first().is_some_and(|first| matches!(ir.command(first.node), Command::Native { .. }))
        || !quirks::reports_running_status(caps)
}
