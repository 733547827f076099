//! Host tasks and maps of memory as commands of a queue.

use crate::cl::memory::host::Element;
use crate::cl::memory::map::{MapMode, Mapped};
use crate::cl::memory::map_image::MappedImage;
use crate::cl::memory::region::{AsDestination, AsSource};
use crate::cl::objects::image::Image;
use crate::error::Result;
use crate::exec::Submission;
use crate::exec::submit::builder::submit_alone;
#[allow(unused_imports)] // Only the documentation names it.
use crate::graph::Graph;
use crate::graph::nodes::host_task::Task;
use crate::graph::nodes::map;
use crate::graph::{HostTaskContext, TaskOutcome};
use crate::record::{Event, Queue};

impl Queue {
    /// Enqueues a host task: a function that runs on the host after the commands that it waits for are complete.
    ///
    /// The task waits for the wait list; on an in-order queue it also waits for all earlier commands, and later
    /// commands wait for it. The call does not block. [`Submission::event`] is the task's event for wait lists.
    ///
    /// If the queue executes, the task is a submission of its own. If the function fails, [`Submission::wait`] returns
    /// the error, and later commands of the queue still run, as after any command that fails. If the queue records, the
    /// task is a node as of [`Graph::host_task`], and nodes after it do not run if it fails.
    ///
    /// The function can use only reads and writes of the graph that it was recorded into:
    /// [`PendingRead::host_read`](crate::PendingRead::host_read) returns the handle of a recorded read, and
    /// [`Graph::host_write`] the handle of a recorded write. A write after the task is recorded later than the task, so
    /// the function can get its handle through a [`OnceLock`](std::sync::OnceLock), for example.
    ///
    /// # Errors
    /// The errors of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let buffer = Buffer::<u32>::new(&queue, 4)?;
    /// let (sender, frames) = std::sync::mpsc::channel();
    /// graph.record(&queue, || {
    ///     queue.enqueue_fill_buffer(&buffer, &[7], 0, 16, &[])?;
    ///     queue.enqueue_host_task(move |_| sender.send("filled"), &[])?;
    ///     clgraph::Result::Ok(())
    /// })?;
    /// graph.finalize(Finalize::new())?.submit(&queue)?.wait()?;
    /// assert_eq!(frames.recv(), Ok("filled"));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clEnqueueNativeKernel")]
    pub fn enqueue_host_task<R: TaskOutcome>(
        &self,
        function: impl FnMut(&HostTaskContext<'_>) -> R + Send + 'static,
        event_wait_list: &[&Event],
    ) -> Result<Submission> {
        submit_alone(self, Task::new(function), event_wait_list)
    }

    /// Enqueues a map: a function that gets the mapped memory, on a thread of clgraph's own. It is [`Graph::map`] as a
    /// command of the queue.
    ///
    /// The command waits as [`enqueue_host_task`](Self::enqueue_host_task) does. The call does not block, and can be
    /// recorded, unlike [`map`](Self::map). If the queue executes, it cannot map [`GraphMemory`](crate::GraphMemory).
    ///
    /// # Errors
    /// The errors of [`enqueue_host_task`](Self::enqueue_host_task), and those that [`Graph::map`] reports when a node
    /// is added.
    ///
    /// # Safety
    /// As [`Graph::map`]: everything that uses the memory must be ordered against this command.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, MapRead, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let buffer = Buffer::<u32>::new(&queue, 4)?;
    /// queue.enqueue_fill_buffer(&buffer, &[7], 0, 16, &[])?;
    /// let (sender, sums) = std::sync::mpsc::channel();
    /// // SAFETY: only this queue, which is in order, uses the buffer.
    /// let sum = unsafe {
    ///     queue.enqueue_map(&buffer, MapRead, move |_, data| sender.send(data.iter().sum::<u32>()), &[])?
    /// };
    /// sum.wait()?;
    /// assert_eq!(sums.recv(), Ok(28));
    /// # Ok(()) }
    /// ```
    #[doc(alias("clEnqueueMapBuffer", "clEnqueueSVMMap"))]
    #[allow(unsafe_code)] // A declaration: the caller makes the promise. Nothing unsafe is done here.
    pub unsafe fn enqueue_map<T: Element, M: MapMode, R: TaskOutcome>(
        &self,
        memory: &(impl AsSource<T> + AsDestination<T>),
        mode: M,
        function: impl FnMut(&HostTaskContext<'_>, &mut Mapped<T, M>) -> R + Send + 'static,
        event_wait_list: &[&Event],
    ) -> Result<Submission> {
        submit_alone(self, map::of_memory(memory, mode, function), event_wait_list)
    }

    /// Enqueues a map of a part of an image, as [`Graph::map_image`].
    ///
    /// # Errors
    /// The errors of [`enqueue_host_task`](Self::enqueue_host_task), and those that [`Graph::map_image`] reports when a
    /// node is added.
    ///
    /// # Safety
    /// As [`Graph::map`].
    #[doc(alias = "clEnqueueMapImage")]
    #[allow(unsafe_code)] // As above.
    pub unsafe fn enqueue_map_image<T: Element, M: MapMode, R: TaskOutcome>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        mode: M,
        function: impl FnMut(&HostTaskContext<'_>, &mut MappedImage<T, M>) -> R + Send + 'static,
        event_wait_list: &[&Event],
    ) -> Result<Submission> {
        submit_alone(self, map::of_image(image, origin, region, mode, function), event_wait_list)
    }
}
