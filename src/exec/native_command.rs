//! Native commands that a queue is given.

use super::Submission;
use super::submit::submit_alone;
use crate::error::Result;
#[allow(unused_imports)] // The documentation names it.
use crate::graph::Graph;
use crate::graph::NativeCommand;
use crate::record::{Event, Queue};

impl Queue {
    /// Gives the queue a native command.
    ///
    /// It waits for the list, and on an in-order queue for all that came before. Executed, it is a submission of its own, and its
    /// function is called before this returns unless it has to wait for an event that may still fail. Recorded, it is a node, as of
    /// [`Graph::native_command`], and its function is called when the graph is finalized or submitted. [`Submission::event`] is
    /// for wait lists.
    ///
    /// # Errors
    /// Those of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list;
    /// [`BuildCause::OtherContext`](crate::BuildCause::OtherContext) for memory. Executed, those of [`Graph::finalize`] and
    /// [`Submit::submit`](crate::Submit::submit) too.
    ///
    /// # Safety
    /// That of [`NativeCommandNode::add`](crate::NativeCommandNode::add).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{NativeCommand, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let barrier = NativeCommand::enqueued(|to| {
    ///     let queue = to.to_opencl3()?;
    ///     // SAFETY: there are no events to wait for.
    ///     let barrier = unsafe { queue.enqueue_barrier_with_wait_list(&[]) };
    ///     barrier.map(drop).map_err(|error| Box::<dyn std::error::Error + Send + Sync>::from(error.to_string()))
    /// });
    /// // SAFETY: it touches no memory.
    /// unsafe { queue.enqueue_native_command(barrier, &[])? }.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "ext_codeplay_enqueue_native_command")]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn enqueue_native_command(
        &self,
        command: NativeCommand,
        event_wait_list: &[&Event],
    ) -> Result<Submission> {
        submit_alone(self, command, event_wait_list)
    }
}
