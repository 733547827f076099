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

/// What ends when nothing more will happen in a frame.
#[derive(Debug)]
pub(in crate::exec) enum Over {
    Submission,
    /// Its branch or loop goes on.
    Turn(Turn),
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

    /// Notes that a task has ended, and whether well.
    pub(in crate::exec) fn task_ended(&mut self, flow: &Flow, task: TaskAt, well: bool) {
        if let Some(frame) = self.get_mut(task.frame) {
            frame.failed |= !well;
            frame.frontier.task_ended(flow, task.task, well);
        }
    }

    /// Returns what ends, if nothing more will happen in a frame. Whoever asks after the last task has ended, under the same
    /// lock, is the only one that is told: a turn is left then, and its frame is free.
    pub(in crate::exec) fn over(&mut self, frame: usize) -> Option<Over> {
        if !self.get(frame)?.frontier.is_over() {
            return None;
        }
        if frame == ROOT {
            return Some(Over::Submission);
        }
        let Frame { last, failed, of, .. } = self.frames.get_mut(frame)?.take()?;
        let (of, turns) = of?;
        Some(Over::Turn(Turn { of, turns: turns + 1, last, failed }))
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

/// Every order in which threads can meet. docs/testing.md has the command.
#[cfg(all(test, loom))]
mod every_order {
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    use super::*;
    use crate::ir::NodeId;
    use crate::plan::{Schedule, TaskPlan};

    /// Tasks that wait for nothing.
    fn flow(tasks: usize) -> Flow {
        let task = |at| TaskPlan {
            node: NodeId(at),
            commands: Vec::new(),
            partitions: Vec::new(),
            tasks: Vec::new(),
            then_partitions: Vec::new(),
            then_tasks: Vec::new(),
        };
        let schedule = Schedule {
            instructions: Vec::new(),
            begin: 0..0,
            blocks: Vec::new(),
            end: 0..0,
            streams: 1,
            events: 0,
            tasks: Vec::new(),
        };
        let tasks = (0..tasks as u32).map(task).collect();
        Flow { steps: 0..0, first_task: 0, tasks, partitions: Vec::new(), schedule }
    }

    /// A graph of a loop and a host task, whose body is two host tasks.
    struct Shared {
        flows: [Flow; 2],
        frames: Mutex<Frames>,
    }

    const TURNS: u64 = 2;
    const LOOP: TaskAt = TaskAt { frame: ROOT, flow: 0, task: 0 };
    const BESIDE: TaskAt = TaskAt { frame: ROOT, flow: 0, task: 1 };

    impl Shared {
        /// Begins a turn, and returns its tasks.
        fn begin(&self, turn: Turn) -> Vec<TaskAt> {
            let mut frames = self.frames.lock().unwrap();
            let frame = frames.enter(1, &self.flows[1], None, turn);
            let runnable = frames.get_mut(frame).unwrap().frontier.go_on(&self.flows[1], |_| true);
            runnable.into_iter().map(|task| TaskAt { frame, flow: 1, task }).collect()
        }

        /// What a thread does after a task, and with all that it lets go on: in the last turn of the loop, the loop ends. Returns
        /// how many turns and submissions it saw end.
        fn run(&self, task: TaskAt, well: bool) -> (u64, usize) {
            let (mut next, mut turns, mut ends) = (vec![(task, well)], 0, 0);
            while let Some((task, well)) = next.pop() {
                let flow = &self.flows[task.flow];
                let mut frames = self.frames.lock().unwrap();
                frames.task_ended(flow, task, well);
                assert!(frames.get_mut(task.frame).unwrap().frontier.go_on(flow, |_| true).is_empty());
                let over = frames.over(task.frame);
                drop(frames);
                match over {
                    None => {}
                    Some(Over::Submission) => ends += 1,
                    Some(Over::Turn(turn)) => {
                        turns += 1;
                        assert_eq!(turn.of, LOOP);
                        if turn.failed || turn.turns == TURNS {
                            next.push((LOOP, !turn.failed));
                        } else {
                            next.extend(self.begin(turn).into_iter().map(|task| (task, true)));
                        }
                    }
                }
            }
            (turns, ends)
        }
    }

    /// The two tasks of a turn end on two threads, and a task beside the loop on a third. One thread alone sees the turn end, and goes
    /// on with the loop; one alone sees the submission end. A task that fails ends the loop with its turn.
    #[test]
    fn one_thread_goes_on_with_a_loop_and_one_ends_the_submission() {
        for well in [true, false] {
            loom::model(move || {
                let flows = [flow(2), flow(2)];
                let mut frames = Frames::new(&flows[0], None);
                assert_eq!(frames.get_mut(ROOT).unwrap().frontier.go_on(&flows[0], |_| true), [0, 1]);
                let shared = Arc::new(Shared { flows, frames: Mutex::new(frames) });
                let tasks = shared.begin(Turn { of: LOOP, turns: 0, last: None, failed: false });
                let others = [(tasks[1], well), (BESIDE, true)].map(|(task, well)| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || shared.run(task, well))
                });
                let (mut turns, mut ends) = shared.run(tasks[0], true);
                for other in others {
                    let seen = other.join().unwrap();
                    (turns, ends) = (turns + seen.0, ends + seen.1);
                }
                assert_eq!((turns, ends), (if well { TURNS } else { 1 }, 1));
                assert!(shared.frames.lock().unwrap().get(1).is_none(), "its frame is free");
            });
        }
    }
}
