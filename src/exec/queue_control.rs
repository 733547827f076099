//! Branches and loops on queues: decided here where the queue executes, and nodes where it records.

use std::sync::Arc;

use crate::cl::memory::region::{AsSource, Region};
use crate::command::ControlKind;
use crate::error::{BuildError, Result, SubmitError};
use crate::exec::build::options::Finalize;
use crate::exec::control_node::{Branch, Condition, Loop, LoopBounds};
use crate::exec::executable::Executable;
use crate::exec::submit::builder::submit_alone;
use crate::graph::nodes::control::Control;
use crate::graph::nodes::request::Request;
use crate::graph::{Graph, RecordedBody};
use crate::handles::Node;
use crate::record::{Queue, QueueState, RecordsBody};

/// A recorded body.
struct Body {
    executable: Executable,
    graph: Graph,
}

impl Body {
    /// The recorded bodies in it and itself, as far as they can change.
    fn recorded(&self) -> Vec<RecordedBody> {
        let mut recorded = self.graph.recorded();
        if self.executable.0.fixed.updatable.is_some() {
            recorded.push(self.executable.as_recorded(&self.graph));
        }
        recorded
    }
}

impl Queue {
    /// Runs `then` if the first number of `condition` is not zero.
    ///
    /// Where the queue executes, the call waits for the queue, reads the number, and calls `then` or not. Where the queue
    /// records, it calls `then` once, with a queue whose commands become the body of a [`Graph::when`], and returns the
    /// handle of that node. `then` has to use the queue that it is given: meanwhile the queues that record into the graph around
    /// the body refuse commands of this thread, because these would run once, before the branch, and not in it.
    ///
    /// # Errors
    /// [`BuildCause::ConditionEmpty`](crate::BuildCause::ConditionEmpty),
    /// [`BuildCause::ConditionMisaligned`](crate::BuildCause::ConditionMisaligned), and those of
    /// [`enqueue_read_buffer`](Self::enqueue_read_buffer) and of `then`; where the queue records, those of
    /// [`Graph::finalize`] for the body, those of [`WhenNode::add`](crate::WhenNode::add), and
    /// [`RecordError::AroundBody`](crate::RecordError::AroundBody), also for commands in `then`; and
    /// [`RecordError::EndedInBody`](crate::RecordError::EndedInBody). After an error of `then` nothing was recorded.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (flag, data) = (Buffer::from_slice(&queue, &[1_u32])?, Buffer::from_slice(&queue, &[0_u32])?);
    /// let program = |queue: &Queue| -> clgraph::Result<()> {
    ///     queue.when(&flag, |queue| queue.enqueue_fill_buffer(&data, &[7], 0, 4, &[]).map(drop))?;
    ///     Ok(())
    /// };
    /// program(&queue)?; // the host decides now
    /// let graph = Graph::new(&queue)?;
    /// graph.record(&queue, || program(&queue))?; // the graph decides in each submission
    /// graph.finalize(Finalize::new())?.submit(&queue)?.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "if")]
    pub fn when<T: Condition>(
        &self,
        condition: &impl AsSource<T>,
        then: impl FnOnce(&Queue) -> Result<()>,
    ) -> Result<Option<Branch>> {
        if self.is_recorded() {
            let bodies = vec![self.body(then)?];
            return self.branch(ControlKind::When, condition, bodies);
        }
        if self.number(ControlKind::When, condition)? != 0 {
            then(self)?;
        }
        Ok(None)
    }

    /// Runs `then` if the first number of `condition` is not zero, and `otherwise` if it is. Otherwise as
    /// [`when`](Self::when).
    ///
    /// # Errors
    /// As [`when`](Self::when).
    #[doc(alias = "else")]
    pub fn when_else<T: Condition>(
        &self,
        condition: &impl AsSource<T>,
        then: impl FnOnce(&Queue) -> Result<()>,
        otherwise: impl FnOnce(&Queue) -> Result<()>,
    ) -> Result<Option<Branch>> {
        if self.is_recorded() {
            let bodies = vec![self.body(then)?, self.body(otherwise)?];
            return self.branch(ControlKind::When, condition, bodies);
        }
        if self.number(ControlKind::When, condition)? != 0 {
            then(self)?
        } else {
            otherwise(self)?
        }
        Ok(None)
    }

    /// Runs the case whose index, from 0, is the first number of `index`; none if it is `cases` or more. Where the queue
    /// records, `case` is called once for each index. Otherwise as [`when`](Self::when).
    ///
    /// # Errors
    /// As [`when`](Self::when).
    #[doc(alias = "match")]
    pub fn switch<T: Condition>(
        &self,
        index: &impl AsSource<T>,
        cases: usize,
        mut case: impl FnMut(&Queue, usize) -> Result<()>,
    ) -> Result<Option<Branch>> {
        if self.is_recorded() {
            let bodies = (0..cases).map(|number| self.body(|queue| case(queue, number)));
            let bodies = bodies.collect::<Result<Vec<Body>>>()?;
            return self.branch(ControlKind::Switch, index, bodies);
        }
        let number = self.number(ControlKind::Switch, index)? as usize;
        if number < cases {
            case(self, number)?;
        }
        Ok(None)
    }

    /// Runs `body` as long as the first number of `condition` is not zero. Where the queue records, `body` is called
    /// once. Otherwise as [`when`](Self::when), and the node is that of [`Graph::repeat_while`].
    ///
    /// # Errors
    /// As [`when`](Self::when).
    #[doc(alias("while", "loop"))]
    pub fn repeat_while<T: Condition>(
        &self,
        condition: &impl AsSource<T>,
        body: impl FnMut(&Queue) -> Result<()>,
    ) -> Result<Option<Loop>> {
        self.repeat_while_with(condition, LoopBounds::new(), body)
    }

    /// As [`repeat_while`](Self::repeat_while), with bounds, as the node has them
    /// ([`RepeatWhileNode`](crate::RepeatWhileNode)).
    ///
    /// # Errors
    /// As [`when`](Self::when), and [`SubmitError::TooManyTurns`] where the queue executes. Memory is then as the last turn left
    /// it.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Error, LoopBounds, Queue, SubmitError};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (on, data) = (Buffer::from_slice(&queue, &[1_u32])?, Buffer::<u32>::new(&queue, 4)?);
    /// let bounds = LoopBounds::new().at_least_once().at_most(5);
    /// let fills = |queue: &Queue| queue.enqueue_fill_buffer(&data, &[7], 0, 16, &[]).map(drop);
    /// let outcome = queue.repeat_while_with(&on, bounds, fills); // nothing ends it
    /// assert!(matches!(outcome, Err(Error::Submit(SubmitError::TooManyTurns { turns: 5, .. }))));
    /// # Ok(()) }
    /// ```
    pub fn repeat_while_with<T: Condition>(
        &self,
        condition: &impl AsSource<T>,
        bounds: LoopBounds,
        mut body: impl FnMut(&Queue) -> Result<()>,
    ) -> Result<Option<Loop>> {
        let LoopBounds { at_least_once, at_most } = bounds;
        let kind = ControlKind::While { at_least_once, at_most };
        if self.is_recorded() {
            let bodies = vec![self.body(body)?];
            return Ok(self
                .control(kind, Some(condition.region()), bodies)?
                .map(|(node, bodies)| Loop::new(node, bodies)));
        }
        self.check_condition(kind, condition)?;
        let mut turns = 0;
        while at_least_once && turns == 0 || self.number(kind, condition)? != 0 {
            if at_most.is_some_and(|most| turns >= most) {
                return Err(
                    SubmitError::TooManyTurns { node: None, what: "a loop of a queue".to_owned(), turns }.into()
                );
            }
            body(self)?;
            turns += 1;
        }
        Ok(None)
    }

    /// Runs `body` so many times. Where the queue records, `body` is called once. Otherwise as [`when`](Self::when), and
    /// the node is that of [`Graph::repeat`].
    ///
    /// # Errors
    /// As [`when`](Self::when), without those of the condition.
    #[doc(alias = "for")]
    pub fn repeat(&self, turns: u64, mut body: impl FnMut(&Queue) -> Result<()>) -> Result<Option<Loop>> {
        if self.is_recorded() {
            let bodies = vec![self.body(body)?];
            let kind = ControlKind::Repeat { turns };
            return Ok(self.control(kind, None, bodies)?.map(|(node, bodies)| Loop::new(node, bodies)));
        }
        (0..turns).try_for_each(|_| body(self))?;
        Ok(None)
    }

    fn is_recorded(&self) -> bool {
        self.state() == QueueState::Recording
    }

    /// Records a body into a graph of its own, by a queue of its own.
    fn body(&self, body: impl FnOnce(&Queue) -> Result<()>) -> Result<Body> {
        let recording = RecordsBody::begin(self)?;
        let queue = Queue::with_properties(self, self.device(), self.properties())?;
        let graph = Graph::for_body(self)?;
        let mut ended = false;
        graph.record(&queue, || {
            body(&queue)?;
            // What it enqueued after it ended its recording has run.
            ended = !queue.recording_graph().is_ok_and(|into| into.id() == graph.id());
            Ok(())
        })?;
        recording.end(ended)?;
        // Conflicts are the affair of the graph around it.
        let options = Finalize::new().allow_conflicts();
        let options = if graph.can_change() { options.updatable() } else { options };
        Ok(Body { executable: graph.finalize(options)?, graph })
    }

    fn branch<T: Condition>(
        &self,
        kind: ControlKind,
        condition: &impl AsSource<T>,
        bodies: Vec<Body>,
    ) -> Result<Option<Branch>> {
        Ok(self.control(kind, Some(condition.region()), bodies)?.map(|(node, bodies)| Branch::new(node, bodies)))
    }

    /// Records a branch or loop. If the recording has ended meanwhile, it runs, and there is no node.
    fn control(
        &self,
        kind: ControlKind,
        condition: Option<Region>,
        bodies: Vec<Body>,
    ) -> Result<Option<(Node, Arc<[Executable]>)>> {
        let into = self.recording_graph().ok();
        let request = Control::new(kind, condition, bodies.iter().map(|body| body.executable.as_body()).collect());
        let submission = submit_alone(self, request, &[])?;
        let Err(event) = submission.parts() else { return Ok(None) };
        if let Some(into) = into.filter(|into| into.id() == event.node.graph()) {
            // Updates of the graph reach what is recorded in bodies by this. Inner bodies come first.
            into.keep_recorded(event.node.id(), bodies.iter().flat_map(Body::recorded).collect());
        }
        Ok(Some((event.node, bodies.into_iter().map(|body| body.executable).collect())))
    }

    /// Makes the same checks as of a node.
    fn check_condition<T: Condition>(&self, kind: ControlKind, condition: &impl AsSource<T>) -> Result<()> {
        let request = Control::new(kind, Some(condition.region()), Vec::new());
        Ok(request.check(&self.target()).map(drop).map_err(|cause| BuildError::new(request.subject(), cause))?)
    }

    /// Returns the first number of some memory, behind everything on the queue.
    fn number<T: Condition>(&self, kind: ControlKind, condition: &impl AsSource<T>) -> Result<u32> {
        self.check_condition(kind, condition)?;
        let mut number = [T::zeroed()];
        let before =
            if self.properties().out_of_order { Some(self.enqueue_barrier_with_wait_list(&[])?) } else { None };
        let waits: Vec<_> = before.iter().collect();
        self.enqueue_read_buffer(condition, 0, &mut number, &waits)?;
        Ok(bytemuck::cast(number))
    }
}
