//! Host tasks that a queue is given, and memory that they map.

use super::Submission;
use super::submit::submit_alone;
use crate::cl::buffer::{AsDestination, AsSource};
use crate::cl::host::Element;
use crate::cl::image::Image;
use crate::cl::map::{MapMode, Mapped};
use crate::cl::map_image::MappedImage;
use crate::error::Result;
#[allow(unused_imports)] // The documentation names it.
use crate::graph::Graph;
use crate::graph::host_task::Task;
use crate::graph::{HostTask, TaskOutcome, map};
use crate::record::{Event, Queue};

impl Queue {
    /// Gives the queue a host task: a function that runs on the host when what it waits for is complete.
    ///
    /// It waits for the list, and on an in-order queue for all that came before, and what comes behind it there waits for it.
    /// It does not block. Executed, it is a submission of its own, and [`Submission::wait`] tells how the function failed, if it
    /// did; what the queue is given behind it runs all the same, as after any command that fails. Recorded, it is a node, as
    /// of [`Graph::host_task`], and what waits for it does not run when it fails. [`Submission::event`] is for wait lists.
    ///
    /// The function knows no reads and writes but those of a graph that it was recorded into: of recorded reads by
    /// [`PendingRead::host_read`](crate::PendingRead::host_read), of recorded writes by [`Graph::host_write`]. A write that comes
    /// behind the task is recorded later, so the function gets its handle by a [`OnceLock`](std::sync::OnceLock), say.
    ///
    /// # Errors
    /// Those of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
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
        function: impl FnMut(&HostTask<'_>) -> R + Send + 'static,
        event_wait_list: &[&Event],
    ) -> Result<Submission> {
        submit_alone(self, Task::new(function), event_wait_list)
    }

    /// Maps memory for a function, on a thread of clgraph's own: what [`Graph::map`] does, as a command of the queue.
    ///
    /// It waits as [`enqueue_host_task`](Self::enqueue_host_task) does, does not block, and can be recorded, which
    /// [`map`](Self::map) cannot. Executed, it cannot have [`GraphMemory`](crate::GraphMemory).
    ///
    /// # Errors
    /// Those of [`enqueue_host_task`](Self::enqueue_host_task), and those that [`Graph::map`] tells of a node that is added.
    ///
    /// # Safety
    /// That of [`Graph::map`]: nothing that is not ordered against it uses the memory.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, MapMode, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let buffer = Buffer::<u32>::new(&queue, 4)?;
    /// queue.enqueue_fill_buffer(&buffer, &[7], 0, 16, &[])?;
    /// let (sender, sums) = std::sync::mpsc::channel();
    /// // SAFETY: only this queue, which is in order, uses the buffer.
    /// let sum = unsafe {
    ///     queue.enqueue_map(&buffer, MapMode::Read, move |_, data| sender.send(data.iter().sum::<u32>()), &[])?
    /// };
    /// sum.wait()?;
    /// assert_eq!(sums.recv(), Ok(28));
    /// # Ok(()) }
    /// ```
    #[doc(alias("clEnqueueMapBuffer", "clEnqueueSVMMap"))]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn enqueue_map<T: Element, R: TaskOutcome>(
        &self,
        memory: &(impl AsSource<T> + AsDestination<T>),
        mode: MapMode,
        function: impl FnMut(&HostTask<'_>, &mut Mapped<T>) -> R + Send + 'static,
        event_wait_list: &[&Event],
    ) -> Result<Submission> {
        submit_alone(self, map::of_memory(memory, mode, function), event_wait_list)
    }

    /// The same for a part of an image, as [`Graph::map_image`] has it.
    ///
    /// # Errors
    /// Those of [`enqueue_host_task`](Self::enqueue_host_task), and those that [`Graph::map_image`] tells of a node that is added.
    ///
    /// # Safety
    /// That of [`Graph::map`].
    #[doc(alias = "clEnqueueMapImage")]
    #[allow(unsafe_code)] // As above.
    pub unsafe fn enqueue_map_image<T: Element, R: TaskOutcome>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        mode: MapMode,
        function: impl FnMut(&HostTask<'_>, &mut MappedImage<T>) -> R + Send + 'static,
        event_wait_list: &[&Event],
    ) -> Result<Submission> {
        submit_alone(self, map::of_image(image, origin, region, mode, function), event_wait_list)
    }
}
