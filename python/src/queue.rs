//! Queues that execute, or record into a graph.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rust::{PendingRead, QueueState};

use crate::control::{self, Branch, Loop};
use crate::device::Device;
use crate::errors::{type_of, wrong_type};
use crate::event::{Event, Pending, wait_list};
use crate::executable::Executable;
use crate::gate::{Kept, Own, call, check};
use crate::group::CommandGroup;
use crate::held::{Function, Held};
use crate::interop::{self, Kind};
use crate::launch::{Given, Launch};
use crate::memory::{self, MemoryUser, Scope, is_image, with_place};
use crate::native;
use crate::numpy;
use crate::picture::{self, triple};
use crate::raised::Running;
use crate::submission::Submission;
use crate::task::TaskFunction;
use crate::transfer::{element, only_images, pattern, result_layout};

/// A queue around a pyopencl.CommandQueue: `Queue(queue)`. `Queue(device)` makes a queue for a clgraph.Device.
///
/// Its methods have the names of those of Graph. They run at once, without waiting, or, in a block `with Graph(queue)`,
/// become nodes of the graph. `after` is one event or a list of events. What is enqueued on the pyopencl queue itself is
/// never recorded.
#[pyclass(frozen, module = "clgraph", weakref)]
pub(crate) struct Queue {
    pub(crate) queue: Own<rust::Queue>,
    pause: Pause,
}

/// Keeps commands away from a queue while its recording is interrupted: see `Graph::add`.
pub(crate) type Pause = Arc<RwLock<()>>;

impl Queue {
    pub(crate) fn of(queue: rust::Queue) -> Self {
        Self { queue: Own::new(queue), pause: Pause::default() }
    }

    /// The lock that a graph takes while it interrupts the recording.
    pub(crate) fn pause(&self) -> Pause {
        Arc::clone(&self.pause)
    }

    /// Enqueues or records a command.
    fn command<R: Send>(&self, py: Python<'_>, code: impl FnOnce() -> rust::Result<R> + Send) -> PyResult<R> {
        call(py, || {
            let _recording_goes_on = self.pause.read().unwrap_or_else(PoisonError::into_inner);
            code()
        })
    }

    /// Enqueues or records a function, which a graph keeps if the queue has recorded it.
    fn submission(
        &self,
        py: Python<'_>,
        function: &Function,
        code: impl FnOnce() -> rust::Result<rust::Submission> + Send,
    ) -> PyResult<Submission> {
        let running = Running::new();
        // Which of these graphs has got it is known afterwards, and then the recording may be over.
        let mut graphs = Held::of_recordings(&self.queue);
        let run = Submission::new(self.command(py, code)?);
        if run.recorded(py).is_some() {
            for new in Held::of_recordings(&self.queue) {
                if graphs.iter().all(|known| !Arc::ptr_eq(known, &new)) {
                    graphs.push(new);
                }
            }
            function.hand_over(py, &graphs)?;
        } else {
            run.ends_with(py, Kept::new(()), running)?;
        }
        Ok(run)
    }

    /// The queue that an object of clgraph or of pyopencl is.
    pub(crate) fn find(object: &Bound<'_, PyAny>) -> PyResult<rust::Queue> {
        match object.cast::<Self>() {
            Ok(queue) => Ok(queue.get().queue.clone()),
            Err(_) => interop::queue(object),
        }
    }

    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope { context: self.queue.context(), user: MemoryUser::Queue(&self.queue) }
    }
}

#[pymethods]
impl Queue {
    #[new]
    fn new(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        check()?;
        let py = queue.py();
        if let Ok(device) = queue.cast::<Device>() {
            let device = device.get().get();
            return Ok(Self::of(call(py, || rust::Queue::new(&device))?));
        }
        if interop::kind(queue) != Some(Kind::Queue) {
            let text =
                format!("a Queue is made of a pyopencl.CommandQueue or a clgraph.Device, not {}", type_of(queue));
            return Err(wrong_type(text));
        }
        Ok(Self::of(interop::queue(queue)?))
    }

    /// Whether the queue records into a graph.
    #[getter]
    fn recording(&self, py: Python<'_>) -> PyResult<bool> {
        call(py, || Ok(self.queue.state() == QueueState::Recording))
    }

    /// The device.
    #[getter]
    fn device(&self) -> Device {
        Device::new(self.queue.device().clone())
    }

    /// The context, as a pyopencl.Context.
    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check()?;
        // SAFETY: **live**: `self` keeps it alive.
        unsafe { interop::wrap(py, "Context", self.queue.context().raw(), "`Queue.context`") }
    }

    /// The same queue as a pyopencl.CommandQueue.
    #[getter]
    fn queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check()?;
        // SAFETY: **live**: `self` owns it.
        unsafe { interop::wrap(py, "CommandQueue", self.queue.raw(), "`Queue.queue`") }
    }

    /// Launches a kernel: see `Graph.kernel`. A queue that executes takes no Param.
    #[pyo3(signature = (kernel, global_size, *args, local_size=None, offset=None, up_to=None, prints=false, globals=None,
                        elementwise=None, after=None))]
    fn kernel(
        &self,
        kernel: &Bound<'_, PyAny>,
        global_size: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        local_size: Option<&Bound<'_, PyAny>>,
        offset: Option<&Bound<'_, PyAny>>,
        up_to: Option<&Bound<'_, PyAny>>,
        prints: bool,
        globals: Option<&Bound<'_, PyAny>>,
        elementwise: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Event> {
        let (global, local) = (global_size, local_size);
        let given = Given { kernel, global, args, local, offset, up_to, prints, globals, elementwise };
        let launch = Launch::read(&given, self.scope())?;
        let waits = wait_list(after)?;
        let mut launch = launch.enqueue(&waits);
        // SAFETY: **kernel**: the program promises it, as with pyopencl.
        Ok(Event::of(self.command(kernel.py(), || unsafe { launch.enqueue_nd_range(&self.queue) })?))
    }

    /// Copies memory to memory of the same size, or pixels: see `Graph.copy`.
    #[pyo3(signature = (src, dst, *, after=None))]
    fn copy(
        &self,
        src: &Bound<'_, PyAny>,
        dst: &Bound<'_, PyAny>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Event> {
        if is_image(src) || is_image(dst) {
            return self.copy_rect(src, dst, None, None, None, None, None, after);
        }
        let (py, waits) = (src.py(), wait_list(after)?);
        let waits: Vec<&rust::Event> = waits.iter().collect();
        let src = memory::memory(src, self.scope(), "the source")?.place;
        let dst = memory::memory(dst, self.scope(), "the destination")?.place;
        if src.size() != dst.size() {
            let text = format!("a copy of {} bytes to {} bytes: both have one size", src.size(), dst.size());
            return Err(crate::errors::invalid(text));
        }
        let queue = &*self.queue;
        let event = self.command(py, || {
            with_place!(&src, |from| with_place!(&dst, |to| queue.enqueue_copy_buffer(
                from,
                to,
                0,
                0,
                src.size(),
                &waits
            )))
        })?;
        Ok(Event::of(event))
    }

    /// Copies a rectangle or a box: see `Graph.copy_rect`.
    #[pyo3(signature = (src, dst, region=None, *, src_origin=None, dst_origin=None, src_pitch=None, dst_pitch=None,
                        after=None))]
    fn copy_rect(
        &self,
        src: &Bound<'_, PyAny>,
        dst: &Bound<'_, PyAny>,
        region: Option<&Bound<'_, PyAny>>,
        src_origin: Option<&Bound<'_, PyAny>>,
        dst_origin: Option<&Bound<'_, PyAny>>,
        src_pitch: Option<&Bound<'_, PyAny>>,
        dst_pitch: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Event> {
        let (py, scope, queue, waits) = (src.py(), self.scope(), &*self.queue, wait_list(after)?);
        let waits: Vec<&rust::Event> = waits.iter().collect();
        let from = triple(src_origin, 0, "src_origin")?.unwrap_or([0; 3]);
        let into = triple(dst_origin, 0, "dst_origin")?.unwrap_or([0; 3]);
        let region = triple(region, 1, "region")?;
        if is_image(src) || is_image(dst) {
            if src_pitch.is_some() || dst_pitch.is_some() {
                return Err(wrong_type(
                    "a copy of pixels has no pitch: an image has its own, and other pixels are packed",
                ));
            }
            let of_image = if is_image(src) { scope.image(src)? } else { scope.image(dst)? };
            let region = region.unwrap_or_else(|| of_image.shape().region());
            let event = match (is_image(src), is_image(dst)) {
                (true, true) => {
                    let (src, dst) = (scope.image(src)?, scope.image(dst)?);
                    self.command(py, || queue.enqueue_copy_image(&src, &dst, from, into, region, &waits))?
                }
                (true, false) => {
                    let (src, dst) = (scope.image(src)?, memory::memory(dst, scope, "the destination")?.place);
                    self.command(py, || {
                        with_place!(&dst, |dst| queue.enqueue_copy_image_to_buffer(&src, dst, from, region, 0, &waits))
                    })?
                }
                _ => {
                    let (src, dst) = (memory::memory(src, scope, "the source")?.place, scope.image(dst)?);
                    self.command(py, || {
                        with_place!(&src, |src| queue.enqueue_copy_buffer_to_image(src, &dst, 0, into, region, &waits))
                    })?
                }
            };
            return Ok(Event::of(event));
        }
        let src = memory::memory(src, scope, "the source")?;
        let dst = memory::memory(dst, scope, "the destination")?;
        let item = element(&src, &dst)?;
        let bytes = |[x, y, z]: [usize; 3]| [x.saturating_mul(item), y, z];
        let pitch = |pitch, what| -> PyResult<(usize, usize)> {
            let [row, slice, _] = triple(pitch, 0, what)?.unwrap_or([0; 3]);
            Ok((row.saturating_mul(item), slice.saturating_mul(item)))
        };
        let (src_pitch, dst_pitch) = (pitch(src_pitch, "src_pitch")?, pitch(dst_pitch, "dst_pitch")?);
        let Some(region) = region else {
            return Err(wrong_type("a copy of a rectangle between memory needs a region: (columns, rows, slices)"));
        };
        let (from, into, region) = (bytes(from), bytes(into), bytes(region));
        let event = self.command(py, || {
            with_place!(&src.place, |src| with_place!(&dst.place, |dst| queue.enqueue_copy_buffer_rect(
                src,
                dst,
                from,
                into,
                region,
                src_pitch.0,
                src_pitch.1,
                dst_pitch.0,
                dst_pitch.1,
                &waits
            )))
        })?;
        Ok(Event::of(event))
    }

    /// Fills memory with a pattern, or an image with a colour: see `Graph.fill`.
    #[pyo3(signature = (dst, pattern, *, origin=None, region=None, after=None))]
    fn fill(
        &self,
        dst: &Bound<'_, PyAny>,
        pattern: &Bound<'_, PyAny>,
        origin: Option<&Bound<'_, PyAny>>,
        region: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Event> {
        let (py, queue, waits) = (dst.py(), &*self.queue, wait_list(after)?);
        let waits: Vec<&rust::Event> = waits.iter().collect();
        if is_image(dst) {
            let image = self.scope().image(dst)?;
            let (origin, region) = picture::area(&image, origin, region)?;
            let color = picture::color(&image, pattern)?;
            return Ok(Event::of(
                self.command(py, || queue.enqueue_fill_image(&image, color, origin, region, &waits))?,
            ));
        }
        only_images(origin, region)?;
        let memory = memory::memory(dst, self.scope(), "the destination")?;
        let pattern = self::pattern(pattern, memory.layout.as_ref())?;
        let size = memory.place.size();
        let event = self.command(py, || {
            with_place!(&memory.place, |dst| queue.enqueue_fill_buffer::<u8>(dst, &pattern, 0, size, &waits))
        })?;
        Ok(Event::of(event))
    }

    /// Writes host data to memory or to an image, without waiting: see `Graph.write`. The data is copied, or, with
    /// `copy=False`, used where it is until the event is complete. The event of a recorded write names the input:
    /// `submit(inputs={event: data})`.
    #[pyo3(signature = (dst, data, *, copy=true, origin=None, region=None, after=None))]
    fn write(
        &self,
        dst: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        copy: bool,
        origin: Option<&Bound<'_, PyAny>>,
        region: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Event> {
        let (py, queue, waits) = (dst.py(), &*self.queue, wait_list(after)?);
        let waits: Vec<&rust::Event> = waits.iter().collect();
        if is_image(dst) {
            let image = self.scope().image(dst)?;
            let (origin, region) = picture::area(&image, origin, region)?;
            picture::input_layout(&image, region, data)?;
            let data = numpy::host_data(data, copy, "the data of a write")?;
            let event =
                self.command(py, || queue.enqueue_write_image_owned::<u8>(&image, origin, region, data, &waits))?;
            return Ok(Event::of(event));
        }
        only_images(origin, region)?;
        let memory = memory::memory(dst, self.scope(), "the destination")?;
        if let Some(layout) = &memory.layout {
            layout.check(data, "the destination")?;
        }
        let data = numpy::host_data(data, copy, "the data of a write")?;
        if data.len() != memory.place.size() {
            let text = format!("the destination has {} bytes, and the data {}", memory.place.size(), data.len());
            return Err(crate::errors::invalid(text));
        }
        let event = self.command(py, || {
            with_place!(&memory.place, |dst| queue.enqueue_write_buffer_owned::<u8>(dst, 0, data, &waits))
        })?;
        Ok(Event::of(event))
    }

    /// Reads memory or an image into host memory, without waiting: see `Graph.read`. Returns a Pending:
    /// `pending.get()` waits, and returns a numpy array. A recorded read names the result: `run[pending]`.
    #[pyo3(signature = (src, dtype=None, shape=None, *, origin=None, region=None, after=None))]
    fn read(
        &self,
        src: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
        region: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Pending>> {
        let (py, queue, waits) = (src.py(), &*self.queue, wait_list(after)?);
        let waits: Vec<&rust::Event> = waits.iter().collect();
        if is_image(src) {
            let image = self.scope().image(src)?;
            let (origin, region) = picture::area(&image, origin, region)?;
            let layout = picture::layout(py, &image, region, dtype, shape)?;
            let read = self.command(py, || queue.enqueue_read_image_owned::<u8>(&image, origin, region, &waits))?;
            return Pending::make(py, read, layout);
        }
        only_images(origin, region)?;
        let memory = memory::memory(src, self.scope(), "the source")?;
        let (layout, size) = (result_layout(py, &memory, dtype, shape)?, memory.place.size());
        let read: PendingRead<u8> = self.command(py, || {
            with_place!(&memory.place, |src| queue.enqueue_read_buffer_owned::<u8>(src, 0, size, &waits))
        })?;
        Pending::make(py, read, layout)
    }

    /// Calls the function `then` if the first number of some memory, of 32 bits, is not zero, and `otherwise`, if it is
    /// given, if the number is zero.
    ///
    /// A queue that executes waits for its commands, reads the number, and calls one function or none. A queue that
    /// records calls each function once: what it asks for becomes a body of a branch (`Graph.when`), which is returned. The
    /// function gets the queue to use, and the call raises what the function raises.
    #[pyo3(signature = (flag, then, otherwise=None))]
    fn when(
        slf: &Bound<'_, Self>,
        flag: &Bound<'_, PyAny>,
        then: &Bound<'_, PyAny>,
        otherwise: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<Branch>>> {
        control::queue_when(slf, flag, then, otherwise)
    }

    /// Calls the function whose index in a list is the number in memory, or none. Otherwise as `when`; see `Graph.switch`.
    fn switch(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        cases: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Py<Branch>>> {
        control::queue_switch(slf, index, cases)
    }

    /// Calls a function as long as the number in memory is not zero; a queue that records calls it once. The bounds are those of
    /// `Graph.repeat_while`. Otherwise as `when`.
    #[pyo3(signature = (flag, function, at_least_once=false, at_most=None))]
    fn repeat_while(
        slf: &Bound<'_, Self>,
        flag: &Bound<'_, PyAny>,
        function: &Bound<'_, PyAny>,
        at_least_once: bool,
        at_most: Option<u64>,
    ) -> PyResult<Option<Py<Loop>>> {
        control::queue_repeat_while(slf, flag, function, (at_least_once, at_most))
    }

    /// Calls a function so many times; a queue that records calls it once. Otherwise as `when`; see `Graph.repeat`.
    fn repeat(slf: &Bound<'_, Self>, n: u64, function: &Bound<'_, PyAny>) -> PyResult<Option<Py<Loop>>> {
        control::queue_repeat(slf, n, function)
    }

    /// Runs a Python function on a thread of clgraph after what it waits for: see `Graph.host_task`. Returns a
    /// Submission.
    #[pyo3(signature = (function, *, after=None))]
    fn host_task(&self, function: &Bound<'_, PyAny>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Submission> {
        let waits = wait_list(after)?;
        let waits: Vec<&rust::Event> = waits.iter().collect();
        let (run, kept) = TaskFunction::new(function)?;
        let queue = &*self.queue;
        self.submission(function.py(), &kept, || queue.enqueue_host_task(move |context| run.run(context), &waits))
    }

    /// Enqueues a native command: see `Graph.native_command`, also for what the program promises. Returns a Submission.
    ///
    /// A queue that executes calls the function before this call returns, unless the command waits for an event that may
    /// still fail.
    #[pyo3(signature = (function, reads=None, writes=None, *, after=None))]
    fn native_command(
        &self,
        function: &Bound<'_, PyAny>,
        reads: Option<&Bound<'_, PyAny>>,
        writes: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Submission> {
        let waits = wait_list(after)?;
        let waits: Vec<&rust::Event> = waits.iter().collect();
        let (command, kept) = native::command(function, reads, writes, self.scope())?;
        let queue = &*self.queue;
        // SAFETY: **native**: the program promises it.
        self.submission(function.py(), &kept, || unsafe { queue.enqueue_native_command(command, &waits) })
    }

    /// Records a node of a command group of the graph that the queue records into: see `Graph.command_group`.
    #[pyo3(signature = (group, *, after=None))]
    fn command_group(&self, py: Python<'_>, group: &CommandGroup, after: Option<&Bound<'_, PyAny>>) -> PyResult<Event> {
        let waits = wait_list(after)?;
        let waits: Vec<&rust::Event> = waits.iter().collect();
        Ok(Event::of(self.command(py, || self.queue.enqueue_command_group(&group.group, &waits))?))
    }

    /// Records a node that waits for an event: see `Graph.wait_event`. Each submission is given it for the Event that this
    /// returns, `submit(events={event: other})`. A queue that executes waits by `after=`.
    #[pyo3(signature = (*, after=None))]
    fn wait_event(&self, py: Python<'_>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Event> {
        let waits = wait_list(after)?;
        let waits: Vec<&rust::Event> = waits.iter().collect();
        Ok(Event::of(self.command(py, || self.queue.record_event_wait(&waits))?.1))
    }

    /// Records a node that completes a UserEvent: see `Graph.signal_event`. Each submission is given it for the Event
    /// that this returns, `submit(signals={event: user_event})`.
    #[pyo3(signature = (*, after=None))]
    fn signal_event(&self, py: Python<'_>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Event> {
        let waits = wait_list(after)?;
        let waits: Vec<&rust::Event> = waits.iter().collect();
        Ok(Event::of(self.command(py, || self.queue.record_event_signal(&waits))?.1))
    }

    /// Enqueues a marker: it is complete when what it waits for is, or, without `after`, when all commands before are.
    #[pyo3(signature = (*, after=None))]
    fn marker(&self, py: Python<'_>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Event> {
        let waits = wait_list(after)?;
        let waits: Vec<&rust::Event> = waits.iter().collect();
        Ok(Event::of(self.command(py, || self.queue.enqueue_marker_with_wait_list(&waits))?))
    }

    /// Enqueues a barrier: a marker that all later commands of the queue wait for.
    #[pyo3(signature = (*, after=None))]
    fn barrier(&self, py: Python<'_>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Event> {
        let waits = wait_list(after)?;
        let waits: Vec<&rust::Event> = waits.iter().collect();
        Ok(Event::of(self.command(py, || self.queue.enqueue_barrier_with_wait_list(&waits))?))
    }

    /// Submits an executable: `executable.submit(queue)`. A queue that records adds it as a sub-graph.
    fn submit(&self, py: Python<'_>, executable: &Executable) -> PyResult<Submission> {
        executable.held().submit(py, &self.queue, || {
            let _recording_goes_on = self.pause.read().unwrap_or_else(PoisonError::into_inner);
            executable.executable.submit(&self.queue)
        })
    }

    /// Submits all enqueued commands to the device, without waiting for them.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || Ok(self.queue.flush()?))
    }

    /// Waits until everything enqueued so far is complete. Other Python threads run meanwhile.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.queue.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = if self.recording(py)? { "recording" } else { "executing" };
        Ok(format!("Queue({state}, on {})", self.queue.device().name()))
    }
}
