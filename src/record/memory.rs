//! Recording allocations that the graph owns. An executing queue refuses them.

use super::event::Event;
use super::queue::Queue;
use crate::cl::memory::host::Element;
use crate::cl::memory::region::AsRegion;
use crate::error::{RecordError, Result};
use crate::graph::nodes::memory::{Alloc, Free};
use crate::graph::recorder::Order;
use crate::graph::{GraphMemory, MemoryPool};

impl Queue {
    /// Records an allocation of `len` elements, which belongs to the graph. See [`Graph::alloc`](crate::Graph::alloc).
    ///
    /// It returns no event, because commands that use the memory wait for the allocation.
    ///
    /// # Errors
    /// [`RecordError::NotRecording`] on a queue that executes; those of [`AllocNode::add`](crate::AllocNode::add) for
    /// the size; and those of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{Buffer, Finalize, Graph, Queue};
    /// let queue = Queue::new(&clgraph::best_device()?)?;
    /// let buffer = Buffer::from_slice(&queue, &[1_u32, 2, 3, 4])?;
    /// let graph = Graph::new(&queue)?;
    /// let back = graph.record(&queue, || {
    ///     let kept = queue.enqueue_alloc::<u32>(4, &[])?;
    ///     queue.enqueue_copy_buffer(&buffer, &kept, 0, 0, 16, &[])?;
    ///     queue.enqueue_fill_buffer(&buffer, &[0], 0, 16, &[])?;
    ///     let back = queue.enqueue_read_buffer_owned(&kept, 0, 4, &[])?;
    ///     queue.enqueue_free(&kept, &[])?;
    ///     Ok(back)
    /// })?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&back.host_read()?)?, [1, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "async_malloc")]
    #[doc(alias = "cudaMallocAsync")]
    pub fn enqueue_alloc<T: Element>(&self, len: usize, event_wait_list: &[&Event]) -> Result<GraphMemory<T>> {
        self.enqueue_alloc_from_pool(MemoryPool::new(), len, event_wait_list)
    }

    /// Records an allocation of `len` elements with the properties of a memory pool.
    ///
    /// # Errors
    /// [`MemoryError::PoolNotOfDevice`](crate::MemoryError::PoolNotOfDevice), in a [`BuildError`](crate::BuildError),
    /// and those of [`enqueue_alloc`](Self::enqueue_alloc).
    #[doc(alias = "async_malloc_from_pool")]
    #[doc(alias = "cudaMallocFromPoolAsync")]
    pub fn enqueue_alloc_from_pool<T: Element>(
        &self,
        pool: MemoryPool,
        len: usize,
        event_wait_list: &[&Event],
    ) -> Result<GraphMemory<T>> {
        let alloc = Alloc::new(&self.target(), len.checked_mul(size_of::<T>()), pool)?;
        let event = self.record_if(&alloc, Order::Plain, event_wait_list)?;
        let node = event.and_then(|event| event.node()).ok_or(RecordError::NotRecording)?;
        Ok(GraphMemory::of(alloc.mem, node))
    }

    /// Records the end of an allocation, after all commands that use it. See [`Graph::free`](crate::Graph::free).
    ///
    /// # Errors
    /// [`RecordError::NotRecording`] on a queue that executes;
    /// [`BuildCause::GraphMemory`](crate::BuildCause::GraphMemory) for an allocation of another graph; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    #[doc(alias = "async_free")]
    #[doc(alias = "cudaFreeAsync")]
    pub fn enqueue_free<T>(&self, memory: &GraphMemory<T>, event_wait_list: &[&Event]) -> Result<Event> {
        let event = self.record_if(&Free(memory.region()), Order::Plain, event_wait_list)?;
        event.ok_or_else(|| RecordError::NotRecording.into())
    }
}
