//! The commands of a queue, with the names and the order of arguments of `opencl3`.

use std::marker::PhantomData;
use std::sync::Arc;

use super::deferred::defer;
use super::detached::{Detached, commands};
use super::event::Event;
use super::execute::{no_event, run};
use super::pending_read::PendingRead;
use super::queue::{List, Queue, entering};
use crate::cl::commands::enqueue::{self, To, Waits};
use crate::cl::completion::{event_reaper, reentrancy};
use crate::cl::memory::allocation::Entering;
use crate::cl::memory::host::{Element, HostData, Slot};
use crate::cl::memory::map::{MapMode, Mapped};
use crate::cl::memory::region::{AsDestination, AsRegion, AsSource, Region};
use crate::cl::objects::event::{COMMAND, CommandStatus, DriverEvent};
use crate::command::{Command, Hint, Location};
#[allow(unused_imports)] // The documentation names it.
use crate::error::MemoryError;
use crate::error::{BuildCause, BuildError, DriverError, RecordError, Result};
use crate::graph::CommandGroup;
use crate::graph::nodes::command_group::Member;
use crate::graph::nodes::fill::Fill;
use crate::graph::nodes::hint::HintRequest;
use crate::graph::nodes::map::Map;
use crate::graph::nodes::rect::{Rect, RectSide};
use crate::graph::nodes::request::{CommandRequest, Request};
use crate::graph::nodes::transfer::{Copy, Empty, Read, Write, check_write};
use crate::graph::recorder::Order;

/// The `size` bytes of a buffer from `offset` on, or the error if they are not all inside the buffer.
pub(super) fn region(what: &'static str, whole: Region, offset: usize, size: usize) -> Result<Region, BuildCause> {
    match offset.checked_add(size) {
        Some(end) if end <= whole.size => Ok(Region { mem: whole.mem, offset: whole.offset + offset, size }),
        end => Err(BuildCause::OutOfBounds {
            what,
            offset: offset as u64,
            end: end.map_or(u64::MAX, |end| end as u64),
            len: whole.size as u64,
        }),
    }
}

impl Queue {
    fn copy_buffer(
        &self,
        want: bool,
        (src, dst): (Region, Region),
        (src_offset, dst_offset, size): (usize, usize, usize),
        waits: &[&Event],
    ) -> Result<Option<Event>> {
        let wrong = |cause| BuildError::new("copy", cause);
        let copy = Copy {
            src: region("source", src, src_offset, size).map_err(wrong)?,
            dst: region("destination", dst, dst_offset, size).map_err(wrong)?,
        };
        self.submit(&copy, waits, want)
    }

    #[allow(clippy::too_many_arguments)] // As in OpenCL.
    fn copy_buffer_rect(
        &self,
        want: bool,
        (src, dst): (Region, Region),
        (src_origin, dst_origin, region): ([usize; 3], [usize; 3], [usize; 3]),
        [src_row, src_slice, dst_row, dst_slice]: [usize; 4],
        waits: &[&Event],
    ) -> Result<Option<Event>> {
        let side = |region, origin, row_pitch, slice_pitch| RectSide { region, origin, row_pitch, slice_pitch };
        let rect = Rect {
            element: 1,
            region: Some(region),
            src: side(src, src_origin, src_row, src_slice),
            dst: side(dst, dst_origin, dst_row, dst_slice),
        };
        self.submit(&rect, waits, want)
    }

    fn fill_buffer<T: Element>(
        &self,
        want: bool,
        buffer: &impl AsDestination<T>,
        pattern: &[T],
        (offset, size): (usize, usize),
        waits: &[&Event],
    ) -> Result<Option<Event>> {
        let dst =
            region("destination", buffer.region(), offset, size).map_err(|cause| BuildError::new("fill", cause))?;
        self.submit(&Fill { dst, pattern: bytemuck::cast_slice(pattern).to_vec() }, waits, want)
    }

    /// A write that does not block. The queue keeps the data until the command is complete.
    fn write_buffer_owned<T: Element>(
        &self,
        want: bool,
        buffer: &impl AsDestination<T>,
        offset: usize,
        data: HostData<T>,
        waits: &[&Event],
    ) -> Result<Option<Event>> {
        let data = data.into_bytes();
        let dst = region("destination", buffer.region(), offset, data.len())
            .map_err(|cause| BuildError::new("host write", cause))?;
        self.submit(&Write { dst, data }, waits, want)
    }

    /// A write of borrowed data. An executing queue blocks; a recording queue copies the data.
    fn write_buffer<T: Element>(
        &self,
        want: bool,
        buffer: &impl AsDestination<T>,
        offset: usize,
        data: &[T],
        waits: &[&Event],
    ) -> Result<Option<Event>> {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let wrong = |cause| BuildError::new("host write", cause);
        let dst = region("destination", buffer.region(), offset, bytes.len()).map_err(wrong)?;
        if self.records(waits) {
            let write = Write { dst: dst.clone(), data: HostData::from(data).into_bytes() };
            if let Some(event) = self.record_if(&write, Order::Plain, waits)? {
                return Ok(Some(event));
            }
        }
        check_write(&self.target(), &dst, bytes.len()).map_err(wrong)?;
        let waiting = self.wait_on_host(waits)?;
        let to = To { queue: self.driver(), waits: &Waits::NONE, event: want };
        if bytes.is_empty() {
            return Ok(enqueue::nothing(&to)?.map(Event::from));
        }
        if self.blocks_too_long() {
            drop(waiting);
            let event = self.submit(&Write { dst, data: HostData::from(data).into_bytes() }, &[], true)?;
            event.iter().try_for_each(Event::wait)?;
            return Ok(event);
        }
        let mut entering = Entering::default();
        entering.add(&dst.mem)?;
        let at = Location { mem: &dst.mem, offset: dst.offset };
        let event = enqueue::write_blocking(&To { event: true, ..to }, &at, bytes)?;
        entering.entered_somewhere(self.driver(), event.as_ref());
        through(event.as_ref())?;
        Ok(event.map(Event::from))
    }

    /// Reads from byte `offset` on into borrowed memory, and blocks until the data is there.
    ///
    /// It reads as many elements as `data` has. It waits for the wait list on the host, so that a failed event is an
    /// error and nothing is read. While the queue records, use
    /// [`enqueue_read_buffer_owned`](Self::enqueue_read_buffer_owned).
    ///
    /// # Errors
    /// [`RecordError::NotRecordable`]; [`BuildCause::OutOfBounds`], [`BuildCause::AccessForbidden`],
    /// [`BuildCause::OtherContext`], in a [`BuildError`]; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    #[doc(alias = "clEnqueueReadBuffer")]
    pub fn enqueue_read_buffer<T: Element>(
        &self,
        buffer: &impl AsSource<T>,
        offset: usize,
        data: &mut [T],
        event_wait_list: &[&Event],
    ) -> Result<Event> {
        let wrong = |cause| BuildError::new("host read", cause);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
        let src = region("source", buffer.region(), offset, bytes.len()).map_err(wrong)?;
        let read = Read { src, align: 1 };
        read.check(&self.target()).map_err(wrong)?;
        if self.records(event_wait_list) {
            let instead = "it would wait for a result, but a recording runs nothing; use `enqueue_read_buffer_owned`, \
                           whose result each submission returns";
            return Err(RecordError::NotRecordable { what: "a read into a borrowed slice", instead }.into());
        }
        let waiting = self.wait_on_host(event_wait_list)?;
        if self.blocks_too_long() {
            drop(waiting);
            return self.read_owned::<u8>(read, List::Now(Waits::NONE))?.wait_into(bytes);
        }
        let to = To { queue: self.driver(), waits: &Waits::NONE, event: true };
        let mut entering = Entering::default();
        entering.add(&read.src.mem)?;
        let event = if bytes.is_empty() {
            enqueue::nothing(&to)?
        } else {
            enqueue::read_blocking(&to, &Location { mem: &read.src.mem, offset: read.src.offset }, bytes)?
        };
        entering.entered_somewhere(self.driver(), event.as_ref());
        through(event.as_ref())?;
        Ok(event.ok_or(no_event("clEnqueueReadBuffer"))?.into())
    }

    /// Reads `len` elements from byte `offset` on into memory of its own, and does not block.
    ///
    /// The read may be recorded: then each submission of the executable has its own result. The returned
    /// [`PendingRead`] may be dropped early: the queue keeps the memory until the command is complete.
    ///
    /// # Errors
    /// As [`enqueue_read_buffer`](Self::enqueue_read_buffer); [`BuildCause::NotSupported`] for elements with an
    /// alignment above 128 bytes; and [`BuildCause::HostMemory`] when the host has no memory for the result.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// let buffer = clgraph::Buffer::from_slice(&queue, &[1_u32, 2, 3, 4])?;
    /// let pending = queue.enqueue_read_buffer_owned(&buffer, 8, 2, &[])?;
    /// assert_eq!(pending.wait()?, [3, 4]);
    /// # Ok(()) }
    /// ```
    pub fn enqueue_read_buffer_owned<T: Element>(
        &self,
        buffer: &impl AsSource<T>,
        offset: usize,
        len: usize,
        event_wait_list: &[&Event],
    ) -> Result<PendingRead<T>> {
        let wrong = |cause| BuildError::new("host read", cause);
        let size = len.saturating_mul(size_of::<T>());
        let read =
            Read { src: region("source", buffer.region(), offset, size).map_err(wrong)?, align: align_of::<T>() };
        if let Some(event) = self.record_if(&read, Order::Plain, event_wait_list)? {
            return Ok(PendingRead { event, slot: None, element: PhantomData });
        }
        read.check(&self.target()).map_err(wrong)?;
        self.read_owned(read, self.list(event_wait_list, false)?)
    }

    /// Returns whether a blocking transfer is enqueued without blocking, through memory of its own, and then waited for.
    /// PoCL and rusticl make a blocking transfer on an out-of-order queue wait for all commands of the queue. And a host
    /// task that waits has to know what the transfer comes after, which may be more than what was there when it looked.
    pub(super) fn blocks_too_long(&self) -> bool {
        self.driver().properties().out_of_order || reentrancy::in_task()
    }

    /// Enqueues a checked read into memory of its own, which the queue keeps until the read is complete.
    pub(super) fn read_owned<T>(&self, read: impl CommandRequest<Checked = ()>, list: List) -> Result<PendingRead<T>> {
        let subject = read.subject();
        let requested = read.command(());
        let Command::Read { size: bytes, .. } = requested.command else { return Err(no_event("a host read").into()) };
        let none = || BuildError::new(subject, BuildCause::HostMemory { bytes });
        let slot = Arc::new(Slot::new(bytes).ok_or_else(none)?);
        let entering = entering(|each| requested.memory(each))?;
        let into = Arc::clone(&slot);
        let run = move |to: &To<'_>| run(&requested.command, Some(&into), to);
        let event = match list {
            List::Later(events) => Some(defer(self, events, false, entering, run)?),
            List::Now(waits) => {
                let _order = self.lock_order(&waits, !entering.is_empty())?;
                let event = run(&To { queue: self.driver(), waits: &waits, event: true })?;
                entering.entered(self.driver(), event.as_ref());
                event.map(Event::from)
            }
        };
        let Some(event) = event else {
            // Without an event nobody knows when the driver has finished with the memory, so the memory has to leak.
            std::mem::forget(slot);
            return Err(no_event("a host read").into());
        };
        event_reaper::keep_until(event.driver("waited for")?.clone(), Arc::clone(&slot));
        Ok(PendingRead { event, slot: Some(slot), element: PhantomData })
    }

    /// Maps memory for the host: a buffer, SVM, or USM that the host can access.
    ///
    /// It waits for the wait list on the host. On an in-order queue it also blocks until all commands enqueued before
    /// are complete.
    ///
    /// Commands that are enqueued on any queue after the unmapping see what the host has written. For memory that the
    /// host accesses by its address, [`Memory::host`](crate::Memory::host) is a safe alternative that does not wait.
    /// [`enqueue_map`](Self::enqueue_map) maps memory later, for a function, and can be recorded.
    ///
    /// # Errors
    /// [`RecordError::NotRecordable`] while the queue records; [`MemoryError::NotHostAccessible`] for USM of the
    /// device, [`MemoryError::Empty`], [`MemoryError::ElementAlign`]; [`BuildCause::OtherContext`],
    /// [`BuildCause::AccessForbidden`], and [`BuildCause::NotSupported`] for [`GraphMemory`](crate::GraphMemory), in a
    /// [`BuildError`]; and those of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    ///
    /// # Safety
    /// Until the memory is unmapped, no command of any queue, no executable and no other map writes to it; and, if the
    /// host writes, none reads it. A [`Mapped`] that is never dropped is never unmapped.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{Buffer, MapWrite, Queue};
    /// let queue = Queue::new(&clgraph::best_device()?)?;
    /// let buffer = Buffer::from_slice(&queue, &[1_u32, 2, 3, 4])?;
    /// // SAFETY: nothing else uses the buffer.
    /// let mut mapped = unsafe { queue.map(&buffer, MapWrite, &[])? };
    /// mapped[0] += mapped[3];
    /// mapped.unmap()?;
    /// let mut back = [0; 4];
    /// queue.enqueue_read_buffer(&buffer, 0, &mut back, &[])?;
    /// assert_eq!(back, [5, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clEnqueueMapBuffer")]
    #[doc(alias = "clEnqueueSVMMap")]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn map<T: Element, M: MapMode>(
        &self,
        memory: &(impl AsSource<T> + AsDestination<T>),
        mode: M,
        event_wait_list: &[&Event],
    ) -> Result<Mapped<T, M>> {
        let instead = "use `enqueue_map`, which gives the mapped memory to a function in each submission";
        self.check_executing("mapping memory", instead)?;
        let region = memory.region();
        Map::of_memory(region.clone(), mode.access()).check_alone(self.driver())?;
        let _waiting = self.wait_on_host(event_wait_list)?;
        self.wait_in_order()?;
        Mapped::new(self.driver(), region, mode)
    }

    /// Waits for the commands that were enqueued before on an in-order queue.
    pub(super) fn wait_in_order(&self) -> Result<()> {
        if self.driver().properties().out_of_order { Ok(()) } else { self.driver().finish() }
    }

    /// Hints to the driver that memory is needed on the device soon.
    ///
    /// A driver that does not support the hint does nothing. A prefetch of a part of a buffer moves the whole buffer.
    ///
    /// # Errors
    /// [`BuildCause::OtherContext`], in a [`BuildError`]; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    #[doc(alias = "clEnqueueMigrateMemObjects")]
    #[doc(alias = "clEnqueueSVMMigrateMem")]
    #[doc(alias = "clEnqueueMigrateMemINTEL")]
    pub fn enqueue_prefetch<T>(&self, memory: &impl AsRegion<T>, event_wait_list: &[&Event]) -> Result<Event> {
        self.give_hint(memory.region(), Hint::ToDevice, event_wait_list)
    }

    /// Hints to the driver that memory is needed on the host soon. Otherwise as
    /// [`enqueue_prefetch`](Self::enqueue_prefetch).
    ///
    /// # Errors
    /// As [`enqueue_prefetch`](Self::enqueue_prefetch).
    pub fn enqueue_prefetch_to_host<T>(&self, memory: &impl AsRegion<T>, event_wait_list: &[&Event]) -> Result<Event> {
        self.give_hint(memory.region(), Hint::ToHost, event_wait_list)
    }

    /// Hints to the driver how memory is going to be used, by a `cl_mem_advice_intel` value of that driver.
    ///
    /// Only USM supports the hint. For other memory it does nothing.
    ///
    /// # Errors
    /// As [`enqueue_prefetch`](Self::enqueue_prefetch).
    #[doc(alias = "clEnqueueMemAdviseINTEL")]
    pub fn enqueue_advise<T>(
        &self,
        memory: &impl AsRegion<T>,
        advice: u32,
        event_wait_list: &[&Event],
    ) -> Result<Event> {
        self.give_hint(memory.region(), Hint::Advice(advice), event_wait_list)
    }

    fn give_hint(&self, of: Region, hint: Hint, waits: &[&Event]) -> Result<Event> {
        let event = self.submit(&HintRequest { of, hint }, waits, true)?;
        Ok(event.ok_or(no_event("clEnqueueMigrateMemObjects"))?)
    }

    /// Records a node of a command group of the graph that the queue records into.
    ///
    /// # Errors
    /// [`RecordError::NotRecording`] on a queue that executes;
    /// [`GroupError::OtherGraph`](crate::GroupError::OtherGraph) for a group of another graph; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    pub fn enqueue_command_group(&self, group: &CommandGroup, event_wait_list: &[&Event]) -> Result<Event> {
        let event = self.record_if(&Member(group.clone()), Order::Plain, event_wait_list)?;
        event.ok_or_else(|| RecordError::NotRecording.into())
    }

    /// Enqueues a marker: it is complete when the events of the wait list are, or, without a list, when every command
    /// before it is.
    ///
    /// Later commands do not wait for it. A recorded marker is an empty node after the same commands.
    ///
    /// # Errors
    /// As [`enqueue_copy_buffer`](Self::enqueue_copy_buffer), for the wait list.
    #[doc(alias = "clEnqueueMarkerWithWaitList")]
    pub fn enqueue_marker_with_wait_list(&self, event_wait_list: &[&Event]) -> Result<Event> {
        if let Some(event) = self.record_if(&Empty, Order::Marker, event_wait_list)? {
            return Ok(event);
        }
        let waits = match self.list(event_wait_list, true)? {
            List::Now(waits) => waits,
            List::Later(events) => return defer(self, events, false, Entering::default(), |_| Ok(None)),
        };
        let apart = if event_wait_list.is_empty() { self.driver().apart() } else { Vec::new() };
        if !apart.is_empty() {
            // The driver would hold up all later commands behind a marker that waits for these.
            return defer(self, apart, false, Entering::default(), |_| Ok(None));
        }
        let _order = self.lock_order(&waits, false)?;
        // Without a wait list it waits for all earlier commands, which only a marker does.
        let mark = if waits.is_empty() {
            enqueue::marker(self.driver(), &waits)?
        } else {
            enqueue::entry(self.driver(), &waits)?
        };
        Ok(mark.into())
    }

    /// Enqueues a barrier: a marker that all later commands of the queue wait for.
    ///
    /// A recorded barrier orders the later nodes of this queue only, not those of other queues.
    ///
    /// # Errors
    /// As [`enqueue_copy_buffer`](Self::enqueue_copy_buffer), for the wait list.
    #[doc(alias = "clEnqueueBarrierWithWaitList")]
    pub fn enqueue_barrier_with_wait_list(&self, event_wait_list: &[&Event]) -> Result<Event> {
        if let Some(event) = self.record_if(&Empty, Order::Barrier, event_wait_list)? {
            return Ok(event);
        }
        let mut waits = match self.list(event_wait_list, true)? {
            List::Now(waits) => waits,
            List::Later(events) => return defer(self, events, true, Entering::default(), |_| Ok(None)),
        };
        if event_wait_list.is_empty() {
            self.driver().apart().into_iter().for_each(|event| waits.push(event));
        }
        let _order = self.lock_order(&waits, false)?;
        Ok(enqueue::barrier(self.driver(), &waits)?.into())
    }

    /// Whether a command with this wait list would be recorded now. The answer can change before the command is
    /// submitted, which decides again under the lock.
    pub(super) fn records(&self, waits: &[&Event]) -> bool {
        self.state() == super::QueueState::Recording || waits.iter().any(|event| event.node().is_some())
    }
}

/// Checks that a blocking command has completed. Intel's CPU runtime returns from a write as soon as it has copied the
/// data, and a driver may report a failure by the event only.
pub(super) fn through(event: Option<&DriverEvent>) -> Result<()> {
    let Some(event) = event else { return Ok(()) };
    match event.status()? {
        CommandStatus::Complete => Ok(()),
        CommandStatus::Failed(status) => Err(DriverError::new(COMMAND, status).into()),
        CommandStatus::Waiting | CommandStatus::Running => Ok(event.wait_on_any_queue()?),
    }
}

commands! {
    /// Copies `size` bytes from buffer to buffer. Offsets are in bytes.
    ///
    /// # Errors
    /// Of the command, in a [`BuildError`], the same whether the queue executes or records:
    /// [`BuildCause::OutOfBounds`], [`BuildCause::Overlap`], [`BuildCause::OtherContext`]; [`BuildCause::GraphMemory`]
    /// for memory of a graph that the queue does not record into; [`BuildCause::NotSupported`] for memory that the
    /// device cannot reach; `BuildCause::CopyKernel` where a kernel has to copy. Also [`BuildCause::Full`] on a
    /// recording queue, and [`MemoryError::HeldByHost`] on an executing queue while a guard of
    /// [`Memory::host`](crate::Memory::host) exists.
    ///
    /// For the wait list on an executing queue: [`SubmitError::EventFailed`](crate::SubmitError::EventFailed) and
    /// [`SubmitError::OtherContext`](crate::SubmitError::OtherContext). For an event of a recorded command, by which
    /// the queue joins the recording: [`RecordError::RecordingEnded`], [`RecordError::OtherGraph`],
    /// [`RecordError::CannotJoin`]. For the wait list on a recording queue: [`RecordError::RunningEvent`],
    /// [`RecordError::OtherGraph`].
    ///
    /// [`crate::DriverError`] when the driver refuses.
    #[doc(alias = "clEnqueueCopyBuffer")]
    fn enqueue_copy_buffer<T>(
        src_buffer: &impl AsSource<T>,
        dst_buffer: &impl AsDestination<T>,
        src_offset: usize,
        dst_offset: usize,
        size: usize,
    ) "clEnqueueCopyBuffer" => |queue, want, waits| {
        queue.copy_buffer(want, (src_buffer.region(), dst_buffer.region()), (src_offset, dst_offset, size), waits)
    };

    /// Copies a rectangle or a box from buffer to buffer.
    ///
    /// The first component of origins and of `region` is in bytes, the second in rows, the third in slices. Pitches are
    /// in bytes; a pitch of 0 means that rows or slices lie close to each other.
    ///
    /// # Errors
    /// Those of [`CopyRectNode::add`](crate::CopyRectNode::add) for region and pitches, in a [`BuildError`]; and those
    /// of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (picture, tile) = (Buffer::<u32>::new(&queue, 64 * 48)?, Buffer::<u32>::new(&queue, 16 * 16)?);
    /// // A tile of 16 x 16 elements of 4 bytes, from column 8, row 4 on.
    /// let (from, size) = ([8 * 4, 4, 0], [16 * 4, 16, 1]);
    /// queue.enqueue_copy_buffer_rect(&picture, &tile, from, [0; 3], size, 64 * 4, 0, 0, 0, &[])?.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clEnqueueCopyBufferRect")]
    fn enqueue_copy_buffer_rect<T>(
        src_buffer: &impl AsSource<T>,
        dst_buffer: &impl AsDestination<T>,
        src_origin: [usize; 3],
        dst_origin: [usize; 3],
        region: [usize; 3],
        src_row_pitch: usize,
        src_slice_pitch: usize,
        dst_row_pitch: usize,
        dst_slice_pitch: usize,
    ) "clEnqueueCopyBufferRect" => |queue, want, waits| {
        let regions = (src_buffer.region(), dst_buffer.region());
        let pitches = [src_row_pitch, src_slice_pitch, dst_row_pitch, dst_slice_pitch];
        queue.copy_buffer_rect(want, regions, (src_origin, dst_origin, region), pitches, waits)
    };

    /// Fills `size` bytes from byte `offset` on with a pattern of any size.
    ///
    /// OpenCL has a command for patterns of 1, 2, 4, 8, 16, 32, 64 and 128 bytes, if the range starts at a multiple of
    /// the pattern's size. Any other fill is done by a kernel of clgraph.
    ///
    /// # Errors
    /// [`BuildCause::EmptyPattern`], [`BuildCause::PatternRange`], and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer).
    #[doc(alias = "clEnqueueFillBuffer")]
    fn enqueue_fill_buffer<T: Element>(
        buffer: &impl AsDestination<T>,
        pattern: &[T],
        offset: usize,
        size: usize,
    ) "clEnqueueFillBuffer" => |queue, want, waits| {
        queue.fill_buffer(want, buffer, pattern, (offset, size), waits)
    };

    /// Writes borrowed data to a buffer, from byte `offset` on.
    ///
    /// An executing queue waits for the wait list on the host, and blocks until the data is in the buffer. A recording
    /// queue copies the data.
    ///
    /// # Errors
    /// [`BuildCause::AccessForbidden`], and those of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer).
    #[doc(alias = "clEnqueueWriteBuffer")]
    fn enqueue_write_buffer<T: Element>(
        buffer: &impl AsDestination<T>,
        offset: usize,
        data: &[T],
    ) "clEnqueueWriteBuffer" => |queue, want, waits| {
        queue.write_buffer(want, buffer, offset, data, waits)
    };

    /// Writes data that the queue takes ownership of, and does not block.
    ///
    /// # Errors
    /// As [`enqueue_write_buffer`](Self::enqueue_write_buffer).
    fn enqueue_write_buffer_owned<T: Element>(
        buffer: &impl AsDestination<T>,
        offset: usize,
        data: impl Into<HostData<T>>,
    ) "clEnqueueWriteBuffer" => |queue, want, waits| {
        queue.write_buffer_owned(want, buffer, offset, data.into(), waits)
    };
}
