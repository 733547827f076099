//! Bodies of branches and loops that this thread records. Meanwhile nothing may be recorded into the graph around a body: it would run
//! once and before the branch or loop, and not in each turn.

use std::cell::RefCell;
use std::marker::PhantomData;

use super::queue::Queue;
use crate::error::RecordError;
use crate::graph::GraphRef;

thread_local! {
    /// The graphs around the bodies, outer ones first.
    static AROUND: RefCell<Vec<GraphRef>> = const { RefCell::new(Vec::new()) };
}

/// A body that this thread records. Nothing is recorded into the graph around it until this is dropped.
#[derive(Debug)]
pub(crate) struct RecordsBody<'q> {
    queue: &'q Queue,
    around: Option<GraphRef>,
    _of_this_thread: PhantomData<*const ()>,
}

impl<'q> RecordsBody<'q> {
    /// Begins a body of a branch or loop that a queue is to record.
    pub(crate) fn begin(queue: &'q Queue) -> Result<Self, RecordError> {
        let around = queue.0.machine.lock().goal().cloned();
        // None: the recording has ended meanwhile, by another thread.
        if let Some(around) = &around {
            check(around)?;
            AROUND.with_borrow_mut(|all| all.push(around.clone()));
        }
        Ok(Self { queue, around, _of_this_thread: PhantomData })
    }

    /// The body is recorded: checks that the queue still records what is around it. A recording may have been interrupted. `ended`:
    /// the body ended its own.
    pub(crate) fn end(self, ended: bool) -> Result<(), RecordError> {
        let is_same = self.around.is_none() || self.queue.0.machine.lock().goal() == self.around.as_ref();
        if is_same && !ended { Ok(()) } else { Err(RecordError::EndedInBody) }
    }
}

impl Drop for RecordsBody<'_> {
    fn drop(&mut self) {
        if self.around.is_some() {
            AROUND.with_borrow_mut(Vec::pop);
        }
    }
}

/// Checks that a graph is not around a body that this thread records.
pub(super) fn check(goal: &GraphRef) -> Result<(), RecordError> {
    let is_around = AROUND.with_borrow(|all| all.contains(goal));
    if is_around { Err(RecordError::AroundBody) } else { Ok(()) }
}
