//! Native commands as commands of a queue.

use crate::error::Result;
use crate::exec::Submission;
use crate::exec::submit::builder::submit_alone;
#[allow(unused_imports)] // Only the documentation names it.
use crate::graph::Graph;
use crate::graph::NativeCommand;
use crate::record::{Event, Queue};

impl Queue {
    /// Enqueues a native command.
    ///
    /// The command waits for the wait list, and on an in-order queue for all earlier commands. [`Submission::event`] is
    /// its event for wait lists.
    ///
    /// If the queue executes, the command is a submission of its own. Its function is called before this call returns,
    /// unless the command has to wait for an event that may still fail. If the queue records, the command is a node as
    /// of [`Graph::native_command`], and its function is called when the graph is finalized or submitted.
    ///
    /// # Errors
    /// The errors of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list;
    /// [`BuildCause::OtherContext`](crate::BuildCause::OtherContext) for memory. If the queue executes, also those of
    /// [`Graph::finalize`] and [`Submit::submit`](crate::Submit::submit).
    ///
    /// # Safety
    /// As [`NativeCommandNode::add`](crate::NativeCommandNode::add).
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
    #[allow(unsafe_code)] // A declaration: the caller makes the promise. Nothing unsafe is done here.
    pub unsafe fn enqueue_native_command(
        &self,
        command: NativeCommand,
        event_wait_list: &[&Event],
    ) -> Result<Submission> {
        submit_alone(self, command, event_wait_list)
    }
}
