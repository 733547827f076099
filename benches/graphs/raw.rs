//! Hand-written OpenCL, as an expert would write it: arguments set beforehand, no unnecessary events, one wait at the
//! end. `opencl3` asks for an event on every enqueue, so the functions are called directly.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use clgraph::{Device, Kernel, Queue, RecordAbi};
use opencl3::types::{cl_command_queue, cl_context, cl_event, cl_kernel, cl_platform_id};

use crate::Failure;

/// Functions of a library that is loaded when the first is needed. A variable of the environment or a default names the
/// library.
macro_rules! library {
    ($variable:literal, $library:literal; $( fn $name:ident($($arg:ty),*) $(-> $ret:ty)?; )*) => {
        #[allow(non_snake_case)]
        struct Functions {
            $( $name: unsafe extern "system" fn($($arg),*) $(-> $ret)?, )*
            _library: dlopen2::raw::Library,
        }

        impl Functions {
            fn load() -> Result<Self, String> {
                let path = std::env::var($variable).unwrap_or_else(|_| $library.to_owned());
                let library = dlopen2::raw::Library::open(&path).map_err(|error| format!("{path}: {error}"))?;
                Ok(Self {
                    $(
                        // SAFETY: the headers' signature of that name.
                        $name: unsafe { library.symbol(stringify!($name)) }.map_err(|error| error.to_string())?,
                    )*
                    _library: library,
                })
            }
        }

        fn functions() -> Result<&'static Functions, crate::Failure> {
            static FUNCTIONS: std::sync::OnceLock<Result<Functions, String>> = std::sync::OnceLock::new();
            Ok(FUNCTIONS.get_or_init(Functions::load).as_ref().map_err(Clone::clone)?)
        }
    };
}
pub(crate) use library;

library! {
    "OPENCL_DYLIB_PATH", "libOpenCL.so.1";
    fn clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, u32, *const usize, *const usize, *const usize, u32, *const cl_event, *mut cl_event) -> i32;
    fn clFinish(cl_command_queue) -> i32;
    fn clFlush(cl_command_queue) -> i32;
    fn clEnqueueCopyBuffer(cl_command_queue, *mut c_void, *mut c_void, usize, usize, usize, u32, *const cl_event, *mut cl_event) -> i32;
    fn clEnqueueWriteBuffer(cl_command_queue, *mut c_void, u32, usize, usize, *const c_void, u32, *const cl_event, *mut cl_event) -> i32;
    fn clEnqueueReadBuffer(cl_command_queue, *mut c_void, u32, usize, usize, *mut c_void, u32, *const cl_event, *mut cl_event) -> i32;
    fn clEnqueueBarrierWithWaitList(cl_command_queue, u32, *const cl_event, *mut cl_event) -> i32;
    fn clEnqueueMarkerWithWaitList(cl_command_queue, u32, *const cl_event, *mut cl_event) -> i32;
    fn clWaitForEvents(u32, *const cl_event) -> i32;
    fn clCreateUserEvent(cl_context, *mut i32) -> cl_event;
    fn clSetUserEventStatus(cl_event, i32) -> i32;
    fn clReleaseEvent(cl_event) -> i32;
    fn clGetEventProfilingInfo(cl_event, u32, usize, *mut c_void, *mut usize) -> i32;
    fn clCloneKernel(cl_kernel, *mut i32) -> cl_kernel;
    fn clSetKernelArg(cl_kernel, u32, usize, *const c_void) -> i32;
    fn clReleaseKernel(cl_kernel) -> i32;
    fn clGetExtensionFunctionAddressForPlatform(cl_platform_id, *const c_char) -> *mut c_void;
}

/// Turns a status into an error that names the call.
pub fn check(call: &str, status: i32) -> Result<(), Failure> {
    if status == 0 { Ok(()) } else { Err(format!("{call} failed with {status}").into()) }
}

const ONE: [usize; 1] = [1];

/// Enqueues kernels one after another.
pub fn enqueue(queue: &Queue, kernels: impl Iterator<Item = cl_kernel>) -> Result<(), Failure> {
    let functions = functions()?;
    for kernel in kernels {
        // SAFETY: live objects, one dimension, no lists.
        let status = unsafe {
            (functions.clEnqueueNDRangeKernel)(
                queue.raw(),
                kernel,
                1,
                ptr::null(),
                ONE.as_ptr(),
                ptr::null(),
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        };
        check("clEnqueueNDRangeKernel", status)?;
    }
    Ok(())
}

/// Kernels of a size, and of a work-group if one is given.
pub fn enqueue_sized(
    queue: &Queue,
    kernels: impl Iterator<Item = cl_kernel>,
    items: usize,
    group: Option<usize>,
) -> Result<(), Failure> {
    let functions = functions()?;
    let local = group.as_ref().map_or(ptr::null(), ptr::from_ref);
    for kernel in kernels {
        let (none, size) = (ptr::null(), &raw const items);
        // SAFETY: live objects, one dimension, no lists.
        let status = unsafe {
            (functions.clEnqueueNDRangeKernel)(
                queue.raw(),
                kernel,
                1,
                none,
                size,
                local,
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        };
        check("clEnqueueNDRangeKernel", status)?;
    }
    Ok(())
}

/// [`enqueue`] with an event of each, released at once.
pub fn enqueue_with_events(queue: &Queue, kernels: impl Iterator<Item = cl_kernel>) -> Result<(), Failure> {
    let functions = functions()?;
    kernels.into_iter().try_for_each(|kernel| launch_with_event(functions, queue, kernel))
}

/// One after another on an out-of-order queue: each waits for the event of the one before.
pub fn enqueue_in_a_row(queue: &Queue, kernels: impl Iterator<Item = cl_kernel>) -> Result<(), Failure> {
    let functions = functions()?;
    let mut before: cl_event = ptr::null_mut();
    for kernel in kernels {
        let mut event = ptr::null_mut();
        let (count, list) = if before.is_null() { (0, ptr::null()) } else { (1, &raw const before) };
        // SAFETY: live objects, one dimension, one event at most.
        let status = unsafe {
            let (none, size) = (ptr::null(), ONE.as_ptr());
            (functions.clEnqueueNDRangeKernel)(queue.raw(), kernel, 1, none, size, none, count, list, &raw mut event)
        };
        check("clEnqueueNDRangeKernel", status)?;
        if !before.is_null() {
            // SAFETY: a live event, which is given back once.
            check("clReleaseEvent", unsafe { (functions.clReleaseEvent)(before) })?;
        }
        before = event;
    }
    // SAFETY: as above.
    if before.is_null() { Ok(()) } else { check("clReleaseEvent", unsafe { (functions.clReleaseEvent)(before) }) }
}

/// A kernel several times, and a wait for the last.
pub fn enqueue_and_wait(queue: &Queue, kernel: cl_kernel, count: usize) -> Result<(), Failure> {
    enqueue(queue, std::iter::repeat_n(kernel, count.saturating_sub(1)))?;
    let functions = functions()?;
    let event = launch(functions, queue, kernel)?;
    // SAFETY: a live event, which is given back once.
    unsafe {
        let status = (functions.clWaitForEvents)(1, &raw const event);
        check("clReleaseEvent", (functions.clReleaseEvent)(event))?;
        check("clWaitForEvents", status)
    }
}

/// A kernel several times, flushed. Returns the event of the last.
pub fn enqueue_to_event(queue: &Queue, kernel: cl_kernel, count: usize) -> Result<cl_event, Failure> {
    enqueue(queue, std::iter::repeat_n(kernel, count.saturating_sub(1)))?;
    let event = launch(functions()?, queue, kernel)?;
    flush(queue)?;
    Ok(event)
}

/// A kernel several times on a queue with profiling, a wait for the last, and a query of when each was queued, started
/// and ended. Returns the nanoseconds of all.
pub fn enqueue_and_time(queue: &Queue, kernel: cl_kernel, count: usize) -> Result<u64, Failure> {
    let functions = functions()?;
    let events: Vec<cl_event> = (0..count).map(|_| launch(functions, queue, kernel)).collect::<Result<_, _>>()?;
    if let Some(last) = events.last() {
        // SAFETY: a live event.
        check("clWaitForEvents", unsafe { (functions.clWaitForEvents)(1, last) })?;
    }
    let mut sum = 0;
    for event in events {
        let mut times = [0_u64; 3];
        // CL_PROFILING_COMMAND_QUEUED, _START, _END.
        for (what, time) in [0x1280, 0x1282, 0x1283].into_iter().zip(&mut times) {
            let (time, none) = (std::ptr::from_mut(time).cast(), ptr::null_mut());
            // SAFETY: a live event, and room for eight bytes.
            let status = unsafe { (functions.clGetEventProfilingInfo)(event, what, 8, time, none) };
            check("clGetEventProfilingInfo", status)?;
        }
        sum += times[2].saturating_sub(times[1]);
        // SAFETY: a live event, which is given back once.
        check("clReleaseEvent", unsafe { (functions.clReleaseEvent)(event) })?;
    }
    Ok(sum)
}

/// One kernel, whose arguments are set before each launch, with an event of each launch.
pub fn enqueue_with_numbers(
    queue: &Queue,
    kernel: cl_kernel,
    buffers: [*mut c_void; 2],
    count: usize,
) -> Result<(), Failure> {
    let functions = functions()?;
    (0..count as u32).try_for_each(|number| {
        set_numbers(functions, kernel, &buffers, number)?;
        launch_with_event(functions, queue, kernel)
    })
}

fn launch_with_event(functions: &Functions, queue: &Queue, kernel: cl_kernel) -> Result<(), Failure> {
    let event = launch(functions, queue, kernel)?;
    // SAFETY: a live event, which is given back once.
    check("clReleaseEvent", unsafe { (functions.clReleaseEvent)(event) })
}

/// Enqueues a kernel, and returns its event.
fn launch(functions: &Functions, queue: &Queue, kernel: cl_kernel) -> Result<cl_event, Failure> {
    let (list, place) = (ptr::null(), ptr::null());
    let mut event = ptr::null_mut();
    let enqueue = functions.clEnqueueNDRangeKernel;
    // SAFETY: live objects, one dimension, no lists.
    let status = unsafe { enqueue(queue.raw(), kernel, 1, place, ONE.as_ptr(), place, 0, list, &raw mut event) };
    check("clEnqueueNDRangeKernel", status)?;
    Ok(event)
}

/// Sets two buffers, in an order that changes, and a number.
fn set_numbers(
    functions: &Functions,
    kernel: cl_kernel,
    buffers: &[*mut c_void; 2],
    number: u32,
) -> Result<(), Failure> {
    let (from, into) = (&buffers[number as usize % 2], &buffers[(number as usize + 1) % 2]);
    for (index, size, value) in [
        (0, size_of::<usize>(), ptr::from_ref(from).cast()),
        (1, size_of::<usize>(), ptr::from_ref(into).cast()),
        (2, 4, ptr::from_ref(&number).cast::<c_void>()),
    ] {
        // SAFETY: a live kernel, and values of the sizes given.
        check("clSetKernelArg", unsafe { (functions.clSetKernelArg)(kernel, index, size, value) })?;
    }
    Ok(())
}

/// A queue that is held: what is enqueued from then on does not run until the queue is released.
pub struct Held(cl_event);

impl Held {
    pub fn new(queue: &Queue) -> Result<Self, Failure> {
        let functions = functions()?;
        let mut status = 0;
        // SAFETY: a live context.
        let gate = unsafe { (functions.clCreateUserEvent)(queue.context().raw(), &raw mut status) };
        check("clCreateUserEvent", status)?;
        let held = Self(gate);
        // SAFETY: live objects, one event.
        let status =
            unsafe { (functions.clEnqueueBarrierWithWaitList)(queue.raw(), 1, &raw const held.0, ptr::null_mut()) };
        check("clEnqueueBarrierWithWaitList", status)?;
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Ok(functions) = functions() else { return };
        // SAFETY: a live event, set once and given back once.
        unsafe {
            (functions.clSetUserEventStatus)(self.0, 0);
            (functions.clReleaseEvent)(self.0);
        }
    }
}

/// The same, but a user event holds the commands back until the last is enqueued.
pub fn enqueue_gated(queue: &Queue, mut kernels: impl Iterator<Item = cl_kernel>) -> Result<(), Failure> {
    let functions = functions()?;
    let mut status = 0;
    // SAFETY: a live context.
    let gate = unsafe { (functions.clCreateUserEvent)(queue.context().raw(), &raw mut status) };
    check("clCreateUserEvent", status)?;
    if let Some(first) = kernels.next() {
        // SAFETY: live objects, one dimension, one event.
        let status = unsafe {
            (functions.clEnqueueNDRangeKernel)(
                queue.raw(),
                first,
                1,
                ptr::null(),
                ONE.as_ptr(),
                ptr::null(),
                1,
                &raw const gate,
                ptr::null_mut(),
            )
        };
        check("clEnqueueNDRangeKernel", status)?;
    }
    let rest = enqueue(queue, kernels);
    // SAFETY: a live event, set once and given back once.
    check("clSetUserEventStatus", unsafe { (functions.clSetUserEventStatus)(gate, 0) })?;
    // SAFETY: as above.
    check("clReleaseEvent", unsafe { (functions.clReleaseEvent)(gate) })?;
    rest
}

/// Enqueues kernels over so many work-items, one after the other.
pub fn enqueue_over(queue: &Queue, kernels: impl Iterator<Item = cl_kernel>, items: usize) -> Result<(), Failure> {
    enqueue_each(queue, kernels.map(|kernel| (kernel, items)))
}

/// The same, each over its own number of work-items.
pub fn enqueue_each(queue: &Queue, kernels: impl Iterator<Item = (cl_kernel, usize)>) -> Result<(), Failure> {
    let enqueue = functions()?.clEnqueueNDRangeKernel;
    let (none, list, no_event) = (ptr::null(), ptr::null(), ptr::null_mut());
    for (kernel, items) in kernels {
        // SAFETY: live objects, one dimension, no lists.
        let status = unsafe { enqueue(queue.raw(), kernel, 1, none, &raw const items, none, 0, list, no_event) };
        check("clEnqueueNDRangeKernel", status)?;
    }
    Ok(())
}

/// Enqueues a copy of the first bytes of a buffer.
pub fn copy(queue: &Queue, from: *mut c_void, into: *mut c_void, bytes: usize) -> Result<(), Failure> {
    let copy = functions()?.clEnqueueCopyBuffer;
    // SAFETY: live objects, which have so many bytes, and no lists.
    let status = unsafe { copy(queue.raw(), from, into, 0, 0, bytes, 0, ptr::null(), ptr::null_mut()) };
    check("clEnqueueCopyBuffer", status)
}

/// Enqueues a write of memory that lives until the queue has finished.
pub fn write(queue: &Queue, into: *mut c_void, data: &[f32]) -> Result<(), Failure> {
    let (write, bytes) = (functions()?.clEnqueueWriteBuffer, size_of_val(data));
    let (data, list, no_event) = (data.as_ptr().cast(), ptr::null(), ptr::null_mut());
    // SAFETY: live objects, which have so many bytes, and no lists.
    let status = unsafe { write(queue.raw(), into, 0, 0, bytes, data, 0, list, no_event) };
    check("clEnqueueWriteBuffer", status)
}

/// Enqueues a read into memory that lives, and that nothing reads, until the read was waited for.
pub fn read(queue: &Queue, from: *mut c_void, data: &mut [f32]) -> Result<cl_event, Failure> {
    let (read, bytes) = (functions()?.clEnqueueReadBuffer, size_of_val(data));
    let mut event = ptr::null_mut();
    // SAFETY: live objects, which have so many bytes, and no lists.
    let status =
        unsafe { read(queue.raw(), from, 0, 0, bytes, data.as_mut_ptr().cast(), 0, ptr::null(), &raw mut event) };
    check("clEnqueueReadBuffer", status)?;
    Ok(event)
}

/// Writes a number to the start of a buffer, and waits for that.
pub fn write_number(queue: &Queue, into: *mut c_void, number: u32) -> Result<(), Failure> {
    let (write, bytes, number) = (functions()?.clEnqueueWriteBuffer, size_of::<u32>(), ptr::from_ref(&number).cast());
    // SAFETY: live objects with so many bytes, no lists, and the call returns when the number was read.
    let status = unsafe { write(queue.raw(), into, 1, 0, bytes, number, 0, ptr::null(), ptr::null_mut()) };
    check("clEnqueueWriteBuffer", status)
}

/// Reads the number at the start of a buffer, behind everything on the queue.
pub fn read_number(queue: &Queue, from: *mut c_void) -> Result<u32, Failure> {
    let (read, mut number) = (functions()?.clEnqueueReadBuffer, 0_u32);
    let (bytes, into) = (size_of::<u32>(), ptr::from_mut(&mut number).cast());
    // SAFETY: live objects with so many bytes, no lists, and the call returns when the number is there.
    let status = unsafe { read(queue.raw(), from, 1, 0, bytes, into, 0, ptr::null(), ptr::null_mut()) };
    check("clEnqueueReadBuffer", status)?;
    Ok(number)
}

/// Waits for an event, and releases it.
pub fn wait(event: cl_event) -> Result<(), Failure> {
    let functions = functions()?;
    // SAFETY: a live event, given back once.
    unsafe {
        let status = (functions.clWaitForEvents)(1, &raw const event);
        check("clReleaseEvent", (functions.clReleaseEvent)(event))?;
        check("clWaitForEvents", status)
    }
}

/// Returns an event of everything on a queue until now.
pub fn mark(queue: &Queue) -> Result<cl_event, Failure> {
    let mut event = ptr::null_mut();
    // SAFETY: a live queue and no list.
    let status = unsafe { (functions()?.clEnqueueMarkerWithWaitList)(queue.raw(), 0, ptr::null(), &raw mut event) };
    check("clEnqueueMarkerWithWaitList", status)?;
    Ok(event)
}

/// Has everything that comes on a queue wait for an event.
pub fn follow(queue: &Queue, event: cl_event) -> Result<(), Failure> {
    // SAFETY: a live queue and a live event.
    let status =
        unsafe { (functions()?.clEnqueueBarrierWithWaitList)(queue.raw(), 1, &raw const event, ptr::null_mut()) };
    check("clEnqueueBarrierWithWaitList", status)
}

/// Releases an event.
pub fn release(event: cl_event) -> Result<(), Failure> {
    // SAFETY: a live event, given back once.
    check("clReleaseEvent", unsafe { (functions()?.clReleaseEvent)(event) })
}

/// Flushes the queue.
pub fn flush(queue: &Queue) -> Result<(), Failure> {
    // SAFETY: a live queue.
    check("clFlush", unsafe { (functions()?.clFlush)(queue.raw()) })
}

/// Waits for everything on a queue.
pub fn finish(queue: &Queue) -> Result<(), Failure> {
    // SAFETY: a live queue.
    check("clFinish", unsafe { (functions()?.clFinish)(queue.raw()) })
}

/// Kernel objects with arguments, one for each launch. They are released newest first, because in the other order PoCL
/// needs time that grows with the square of their number.
pub struct Kernels(Vec<cl_kernel>);

impl Kernels {
    /// Clones of a kernel with two buffers and a number, each with its own number.
    pub fn with_numbers(kernel: &Kernel, buffers: [*mut c_void; 2], count: usize) -> Result<Self, Failure> {
        let (functions, source) = (functions()?, kernel.to_opencl3()?);
        let mut kernels = Self(Vec::with_capacity(count));
        for number in 0..count as u32 {
            let mut status = 0;
            // SAFETY: a live kernel.
            let clone = unsafe { (functions.clCloneKernel)(source.get(), &raw mut status) };
            check("clCloneKernel", status)?;
            kernels.0.push(clone);
            set_numbers(functions, clone, &buffers, number)?;
        }
        Ok(kernels)
    }

    /// Clones of a kernel, each with its own memory and numbers, argument by argument.
    pub fn with_args(kernel: &Kernel, launches: &[Vec<Arg>]) -> Result<Self, Failure> {
        let (functions, source) = (functions()?, kernel.to_opencl3()?);
        let mut kernels = Self(Vec::with_capacity(launches.len()));
        for args in launches {
            let mut status = 0;
            // SAFETY: a live kernel.
            let clone = unsafe { (functions.clCloneKernel)(source.get(), &raw mut status) };
            check("clCloneKernel", status)?;
            kernels.0.push(clone);
            for (index, arg) in (0..).zip(args) {
                let (size, value) = arg.value();
                // SAFETY: a live kernel, and a value of the size given.
                check("clSetKernelArg", unsafe { (functions.clSetKernelArg)(clone, index, size, value) })?;
            }
        }
        Ok(kernels)
    }

    /// Sets an argument of one of them.
    pub fn set(&self, at: usize, index: u32, arg: Arg) -> Result<(), Failure> {
        let (set, (size, value)) = (functions()?.clSetKernelArg, arg.value());
        // SAFETY: a live kernel, and a value of the size given.
        check("clSetKernelArg", unsafe { set(self.0[at], index, size, value) })
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The handles.
    pub fn iter(&self) -> impl Iterator<Item = cl_kernel> {
        self.0.iter().copied()
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy)]
pub enum Arg {
    Memory(*mut c_void),
    Number(u32),
}

impl Arg {
    /// Returns its size, and the address of its value.
    fn value(&self) -> (usize, *const c_void) {
        match self {
            Self::Memory(mem) => (size_of_val(mem), ptr::from_ref(mem).cast()),
            Self::Number(number) => (size_of_val(number), ptr::from_ref(number).cast()),
        }
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        let Ok(functions) = functions() else { return };
        while let Some(kernel) = self.0.pop() {
            // SAFETY: a live kernel, given back once.
            unsafe { (functions.clReleaseKernel)(kernel) };
        }
    }
}

type Handle = *mut c_void;
type Create = unsafe extern "system" fn(u32, *const Handle, *const u64, *mut i32) -> Handle;
type OfBuffer = unsafe extern "system" fn(Handle) -> i32;
type EnqueueBuffer = unsafe extern "system" fn(u32, *mut Handle, Handle, u32, *const Handle, *mut Handle) -> i32;
type Record = unsafe extern "system" fn(
    Handle,
    Handle,
    *const u64,
    Handle,
    u32,
    *const usize,
    *const usize,
    *const usize,
    u32,
    *const u32,
    *mut u32,
    *mut Handle,
) -> i32;

/// Returns a function of an extension.
fn find(queue: &Queue, name: &CStr) -> Result<Handle, Failure> {
    let platform = queue.device().to_opencl3().platform()?;
    // SAFETY: a live platform, and a name that ends with zero.
    let address = unsafe { (functions()?.clGetExtensionFunctionAddressForPlatform)(platform, name.as_ptr()) };
    if address.is_null() { Err(Failure::from(format!("no {}", name.to_string_lossy()))) } else { Ok(address) }
}

/// `cl_mutable_dispatch_arg_khr`.
#[repr(C)]
struct DispatchArg {
    index: u32,
    size: usize,
    value: *const c_void,
}

impl DispatchArg {
    /// Valid as long as the argument exists.
    fn of((index, arg): &(u32, Arg)) -> Self {
        let (size, value) = arg.value();
        Self { index: *index, size, value }
    }
}

/// `cl_mutable_dispatch_config_khr` of 0.9.2 and later.
#[repr(C)]
struct DispatchConfig {
    command: Handle,
    num_args: u32,
    num_svm_args: u32,
    num_exec_infos: u32,
    work_dim: u32,
    args: *const DispatchArg,
    lists: [*const c_void; 2],
    offset: *const usize,
    range: *const usize,
    work_group: *const usize,
}

type Update = unsafe extern "system" fn(Handle, u32, *const u32, *const *const DispatchConfig) -> i32;

/// A command buffer whose kernels can be changed, with what it was recorded from.
pub struct MutableBuffer {
    buffer: CommandBuffer,
    handles: Vec<Handle>,
    update: Update,
    _kernels: Kernels,
}

impl MutableBuffer {
    /// Records kernels over so many work-items. None if the device cannot change arguments, or ranges if these are to
    /// be changed, or if it has the older signature.
    pub fn record(queue: &Queue, kernels: Kernels, items: usize, ranges: bool) -> Result<Option<Self>, Failure> {
        let caps = queue.device().caps().command_buffers.as_ref();
        let can = caps.and_then(|caps| caps.mutable);
        let can = can.is_some_and(|mutable| mutable.arguments && (mutable.global_size || !ranges));
        let array = queue.device().abi()?.is_some_and(|abi| abi.update == Some(clgraph::UpdateAbi::Array));
        if !(can && array) {
            return Ok(None);
        }
        let mut handles = Vec::new();
        let buffer = CommandBuffer::record_with(queue, kernels.iter(), items, Some(&mut handles))?;
        // SAFETY: the headers' signature of this name.
        let update = unsafe { std::mem::transmute::<Handle, Update>(find(queue, c"clUpdateMutableCommandsKHR")?) };
        Ok(Some(Self { buffer, handles, update, _kernels: kernels }))
    }

    /// Sets arguments of some kernels, the same for each, and the number of work-items if that changes, in one call.
    pub fn set(&self, places: &[usize], args: &[(u32, Arg)], items: Option<usize>) -> Result<(), Failure> {
        let args: Vec<DispatchArg> = args.iter().map(DispatchArg::of).collect();
        self.change(places.iter().map(|place| (*place, args.as_slice())), items)
    }

    /// Sets an argument of some kernels in one call. Each has its own value, as in a program.
    pub fn set_each(&self, places: &[usize], index: u32, arg: Arg) -> Result<(), Failure> {
        let values: Vec<(u32, Arg)> = places.iter().map(|_| (index, arg)).collect();
        let args: Vec<DispatchArg> = values.iter().map(DispatchArg::of).collect();
        self.change(places.iter().copied().zip(args.chunks(1)), None)
    }

    fn change<'a>(
        &self,
        args: impl Iterator<Item = (usize, &'a [DispatchArg])>,
        items: Option<usize>,
    ) -> Result<(), Failure> {
        let config = |(place, args): (usize, &[DispatchArg])| DispatchConfig {
            command: self.handles[place],
            num_args: args.len() as u32,
            num_svm_args: 0,
            num_exec_infos: 0,
            work_dim: if items.is_some() { 1 } else { 0 },
            args: args.as_ptr(),
            lists: [ptr::null(); 2],
            offset: ptr::null(),
            range: items.as_ref().map_or(ptr::null(), ptr::from_ref),
            work_group: ptr::null(),
        };
        let configs: Vec<DispatchConfig> = args.map(config).collect();
        let list: Vec<*const DispatchConfig> = configs.iter().map(ptr::from_ref).collect();
        let kinds = vec![0_u32; configs.len()];
        // SAFETY: live objects, and as many entries as counted.
        let status = unsafe { (self.update)(self.buffer.raw, configs.len() as u32, kinds.as_ptr(), list.as_ptr()) };
        check("clUpdateMutableCommandsKHR", status)
    }

    /// Runs it once.
    pub fn enqueue(&self, queue: &Queue) -> Result<(), Failure> {
        self.buffer.enqueue(queue)
    }
}

/// One command buffer with everything.
pub struct CommandBuffer {
    raw: Handle,
    enqueue: EnqueueBuffer,
    release: OfBuffer,
}

impl CommandBuffer {
    /// Whether the device has command buffers.
    pub fn is_there(device: &Device) -> Result<Option<RecordAbi>, Failure> {
        Ok(device.abi()?.map(|abi| abi.record))
    }

    /// Records kernels. The kernel command has one signature in all revisions.
    pub fn record(queue: &Queue, kernels: impl Iterator<Item = cl_kernel>) -> Result<Self, Failure> {
        Self::record_with(queue, kernels, 1, None)
    }

    /// The same, with a handle of each kernel to change it by, if handles are wanted.
    fn record_with(
        queue: &Queue,
        kernels: impl Iterator<Item = cl_kernel>,
        items: usize,
        mut handles: Option<&mut Vec<Handle>>,
    ) -> Result<Self, Failure> {
        let find = |name: &CStr| find(queue, name);
        // SAFETY: the headers' signatures of these names.
        let (create, record, finalize, enqueue, release) = unsafe {
            (
                std::mem::transmute::<Handle, Create>(find(c"clCreateCommandBufferKHR")?),
                std::mem::transmute::<Handle, Record>(find(c"clCommandNDRangeKernelKHR")?),
                std::mem::transmute::<Handle, OfBuffer>(find(c"clFinalizeCommandBufferKHR")?),
                std::mem::transmute::<Handle, EnqueueBuffer>(find(c"clEnqueueCommandBufferKHR")?),
                std::mem::transmute::<Handle, OfBuffer>(find(c"clReleaseCommandBufferKHR")?),
            )
        };
        // CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR: needed by programs that do not wait.
        // Also CL_COMMAND_BUFFER_MUTABLE_KHR.
        let flags = [0x1293_u64, if handles.is_some() { 3 } else { 1 }, 0];
        let simultaneous = queue.device().caps().command_buffers.as_ref().is_some_and(|caps| caps.simultaneous_use);
        let properties = if simultaneous { flags.as_ptr() } else { ptr::null() };
        let (raw_queue, mut status) = (queue.raw(), 0);
        // SAFETY: a live queue, and a list that ends with 0.
        let raw = unsafe { create(1, &raw const raw_queue, properties, &raw mut status) };
        check("clCreateCommandBufferKHR", status)?;
        let buffer = Self { raw, enqueue, release };
        for kernel in kernels {
            let mut handle = ptr::null_mut();
            let place = if handles.is_some() { &raw mut handle } else { ptr::null_mut() };
            // SAFETY: live objects, one dimension, no lists.
            let status = unsafe {
                record(
                    raw,
                    ptr::null_mut(),
                    ptr::null(),
                    kernel,
                    1,
                    ptr::null(),
                    &raw const items,
                    ptr::null(),
                    0,
                    ptr::null(),
                    ptr::null_mut(),
                    place,
                )
            };
            check("clCommandNDRangeKernelKHR", status)?;
            if let Some(handles) = &mut handles {
                handles.push(handle);
            }
        }
        // SAFETY: a live command buffer.
        check("clFinalizeCommandBufferKHR", unsafe { finalize(raw) })?;
        Ok(buffer)
    }

    /// Runs it once.
    pub fn enqueue(&self, queue: &Queue) -> Result<(), Failure> {
        let mut raw_queue = queue.raw();
        // SAFETY: live objects, no lists.
        let status = unsafe { (self.enqueue)(1, &raw mut raw_queue, self.raw, 0, ptr::null(), ptr::null_mut()) };
        check("clEnqueueCommandBufferKHR", status)
    }
}

impl Drop for CommandBuffer {
    fn drop(&mut self) {
        // SAFETY: a live command buffer, given back once.
        unsafe { (self.release)(self.raw) };
    }
}
