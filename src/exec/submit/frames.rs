//! Where a deferred submission is: a frame for the graph itself, and one for each turn of a body with host tasks that is
//! going on. A turn without host tasks is enqueued at once, and needs none.
//!
//! A branch or loop inside a body has frames of its own, so frames form a tree: a frame knows the branch or loop whose turn
//! it is, and in which frame that is.

use crate::cl::objects::event::DriverEvent;
use crate::exec::submit::frontier::Frontier;
use crate::exec::submit::interpreter::StreamEvents;
use crate::plan::Flow;

/// The frame of the graph itself.
pub(in crate::exec) const ROOT: usize = 0;

/// A host task, branch or loop of a submission: the frame, the flow that the frame goes through, and the number in the
/// flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) struct TaskAt {
    pub(in crate::exec) frame: usize,
    pub(in crate::exec) flow: usize,
    pub(in crate::exec) task: usize,
}

/// A branch or loop between two turns.
#[derive(Clone, Debug)]
pub(in crate::exec) struct Turn {
    pub(in crate::exec) of: TaskAt,
    /// How many turns there were.
    pub(in crate::exec) turns: u64,
    /// The last command of the turns before, if the host has not read something behind it.
    pub(in crate::exec) last: Option<DriverEvent>,
    /// Whether something failed in it.
    pub(in crate::exec) failed: bool,
}

/// A run through a flow.
pub(in crate::exec) struct Frame {
    pub(in crate::exec) flow: usize,
    pub(in crate::exec) frontier: Frontier,
    /// The events that the schedule keeps.
    pub(in crate::exec) kept: Option<Box<StreamEvents>>,
    /// The end of the partition that was enqueued last, on one queue: in this run, in a turn of a body inside it, or in a
    /// turn before it.
    pub(in crate::exec) last: Option<DriverEvent>,
    /// The end of the turns before, if the host has not read something behind it. A task that waits for nothing in its
    /// body waits for this.
    pub(in crate::exec) before: Option<DriverEvent>,
    /// Whether something in it failed.
    pub(in crate::exec) failed: bool,
    /// The branch or loop whose turn it is, and how many turns came before. None for the graph itself.
    of: Option<(TaskAt, u64)>,
}

/// The frames that are going on.
pub(in crate::exec) struct Frames {
    frames: Vec<Option<Frame>>,
}

impl Frame {
    fn new(number: usize, flow: &Flow, kept: Option<Box<StreamEvents>>, of: Option<(TaskAt, u64)>) -> Self {
        let frontier = Frontier::new(flow);
        Self { flow: number, frontier, kept, last: None, before: None, failed: false, of }
    }
}

impl Frames {
    /// Begins with the frame of the graph itself.
    pub(in crate::exec) fn new(main: &Flow, kept: Option<Box<StreamEvents>>) -> Self {
        Self { frames: vec![Some(Frame::new(0, main, kept, None))] }
    }

    /// Begins a turn of a branch or loop whose body has host tasks, and returns its frame.
    pub(in crate::exec) fn enter(
        &mut self,
        number: usize,
        flow: &Flow,
        kept: Option<Box<StreamEvents>>,
        Turn { of, turns, last, .. }: Turn,
    ) -> usize {
        let frame = Frame { before: last.clone(), last, ..Frame::new(number, flow, kept, Some((of, turns))) };
        match self.frames.iter().position(Option::is_none) {
            Some(free) => {
                self.frames[free] = Some(frame);
                free
            }
            None => {
                self.frames.push(Some(frame));
                self.frames.len() - 1
            }
        }
    }

    /// Ends a turn that is over. Returns the branch or loop, which goes on; None for the graph itself.
    pub(in crate::exec) fn leave(&mut self, frame: usize) -> Option<Turn> {
        let place = self.frames.get_mut(frame).filter(|_| frame != ROOT)?;
        let Frame { last, failed, of, .. } = place.take()?;
        let (of, turns) = of?;
        Some(Turn { of, turns: turns + 1, last, failed })
    }

    /// Notes the end of a partition of a frame, which is also one of those around it. None if the host reads something
    /// behind it.
    pub(in crate::exec) fn enqueued(&mut self, frame: usize, last: Option<&DriverEvent>) {
        let mut at = last.map(|_| frame);
        while let Some(frame) = at.and_then(|at| self.get_mut(at)) {
            frame.last = last.cloned();
            at = frame.of.map(|(of, _)| of.frame);
        }
    }

    pub(in crate::exec) fn get_mut(&mut self, frame: usize) -> Option<&mut Frame> {
        self.frames.get_mut(frame)?.as_mut()
    }

    pub(in crate::exec) fn get(&self, frame: usize) -> Option<&Frame> {
        self.frames.get(frame)?.as_ref()
    }

    /// Returns the frame, among one and those around it, that goes through a flow.
    pub(in crate::exec) fn around(&self, mut frame: usize, flow: usize) -> Option<&Frame> {
        loop {
            let one = self.get(frame)?;
            if one.flow == flow {
                return Some(one);
            }
            frame = one.of?.0.frame;
        }
    }
}
