//! Captures of queues, by clgraph's layer, and what was captured.
//!
//! - **captured**: a [`CapturedBuffer`] owns a reference to a command buffer of the layer. All objects that its commands name
//!   live as long, and none of their handles is another object's meanwhile. Who asks for its commands has the promise of
//!   `Graph::capture`: nothing builds the programs of the kernels again while clgraph uses them, and memory of the host that buffers
//!   use, or that reads write to, lives as long as commands may use it.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::Arc;

use opencl_sys::{
    CL_COMMAND_BARRIER, CL_COMMAND_COPY_BUFFER, CL_COMMAND_FILL_BUFFER, CL_COMMAND_MARKER, CL_COMMAND_NDRANGE_KERNEL,
    CL_INVALID_OPERATION, CL_OUT_OF_HOST_MEMORY, CL_SUCCESS, cl_int, cl_kernel, cl_mem, cl_sampler, cl_uint, cl_ulong,
};

use crate::cl::check;
use crate::cl::memory::region::{AsRegion, Region};
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::InContext;
use crate::cl::objects::image::Image;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::queue::DriverQueue;
use crate::cl::objects::sampler::Sampler;
use crate::error::{DriverError, Error, MemoryError, RecordError, Result};
use crate::ffi::capture::{
    CL_CAPTURE_COMMAND_COUNT_CLG, CL_CAPTURE_FAULT_CLG, CL_CAPTURE_MODE_CLG, CL_CAPTURE_RELAXED_CLG,
    CL_CAPTURE_STATUS_CLG, CL_CAPTURED_BYTES_CLG, CL_CAPTURED_INTEL_POINTER_CLG, CL_CAPTURED_MEMORY_CLG,
    CL_CAPTURED_NOTHING_CLG, CL_CAPTURED_POINTER_CLG, CL_CAPTURED_READ_CLG, CL_CAPTURED_SAMPLER_CLG, CaptureFns,
    CapturedCommand, CapturedMemory, RawCaptured,
};

/// The functions of the layer, for a queue.
fn functions(queue: &DriverQueue) -> Result<&'static CaptureFns, RecordError> {
    let device = queue.device();
    device.extensions().capture.ok_or_else(|| RecordError::NoLayer { platform: device.caps().platform.clone() })
}

/// Begins a capture of a queue.
pub(crate) fn begin(queue: &DriverQueue, is_relaxed: bool) -> Result<()> {
    let functions = functions(queue)?;
    let list: [cl_ulong; 3] = [CL_CAPTURE_MODE_CLG, if is_relaxed { CL_CAPTURE_RELAXED_CLG } else { 0 }, 0];
    // SAFETY: **live**, **lists**.
    match unsafe { (functions.begin)(queue.raw(), list.as_ptr()) } {
        // The layer says the same of a device that it does not serve.
        CL_INVALID_OPERATION if count(queue)?.is_some() => Err(RecordError::AlreadyCaptured.into()),
        status => Ok(check("clBeginCaptureCLG", status)?),
    }
}

/// Ends a capture. It fails, and the queue runs again, if a call has spoilt the capture.
pub(crate) fn end(queue: &DriverQueue) -> Result<CapturedBuffer> {
    let functions = functions(queue)?;
    if count(queue)?.is_none() {
        return Err(RecordError::NotCaptured.into());
    }
    let fault = fault(functions, queue);
    let mut raw = ptr::null_mut();
    // SAFETY: **live**, and a place of this function.
    let status = unsafe { (functions.end)(queue.raw(), &raw mut raw) };
    if status == CL_INVALID_OPERATION {
        // Without a name, another thread has spoilt it since, or has ended it.
        let call = fault.unwrap_or_else(|| "a call of another thread".to_owned());
        return Err(RecordError::CaptureSpoilt { call }.into());
    }
    check("clEndCaptureCLG", status)?;
    Ok(CapturedBuffer(Arc::new(Owned { raw, functions })))
}

/// Returns how many commands of a queue were captured, or `None` if it is not captured.
pub(crate) fn count(queue: &DriverQueue) -> Result<Option<usize>, DriverError> {
    let Some(functions) = queue.device().extensions().capture else { return Ok(None) };
    let number = |name| {
        let mut value: cl_uint = 0;
        let (size, at) = (size_of::<cl_uint>(), (&raw mut value).cast());
        // SAFETY: **live**, and a place with its size.
        let status = unsafe { (functions.info)(queue.raw(), name, size, at, ptr::null_mut()) };
        check("clGetCaptureInfoCLG", status).map(|()| value)
    };
    let is_captured = number(CL_CAPTURE_STATUS_CLG)? != 0;
    let count = number(CL_CAPTURE_COMMAND_COUNT_CLG)?;
    Ok(is_captured.then_some(count as usize))
}

/// Returns the call that has spoilt the capture of a queue.
fn fault(functions: &CaptureFns, queue: &DriverQueue) -> Option<String> {
    let mut name = [0_u8; 128];
    let value = name.as_mut_ptr().cast();
    // SAFETY: **live**, and a place with its size.
    let status = unsafe { (functions.info)(queue.raw(), CL_CAPTURE_FAULT_CLG, name.len(), value, ptr::null_mut()) };
    let text = CStr::from_bytes_until_nul(&name).ok()?.to_string_lossy();
    (status == CL_SUCCESS && !text.is_empty()).then(|| text.into_owned())
}

/// Captured commands, as the layer has them.
#[derive(Clone)]
pub(crate) struct CapturedBuffer(Arc<Owned>);

struct Owned {
    raw: RawCaptured,
    functions: &'static CaptureFns,
}

// SAFETY: the layer looks the number up, and its functions may be called by any thread.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: **captured**. There is nobody to tell of a failure.
        let _ = unsafe { (self.functions.release)(self.raw) };
    }
}

/// A captured command.
pub(crate) struct Captured {
    /// What it is, with an article.
    pub(crate) name: &'static str,
    /// The commands that it comes after, counted from 0.
    pub(crate) after: Vec<u32>,
    /// Whether it had a wait list.
    pub(crate) has_list: bool,
    pub(crate) what: Result<What, Fault>,
}

/// What a captured command does.
pub(crate) enum What {
    Barrier,
    Marker,
    /// It is a command without bytes or work-items.
    Nothing,
    Launch(CapturedLaunch),
    Copy {
        src: Region,
        dst: Region,
    },
    Fill {
        dst: Region,
        pattern: Vec<u8>,
    },
    /// What the layer enqueues. The flags say whether memory is written.
    Other(Vec<(Region, bool)>),
}

/// A captured launch of a kernel.
pub(crate) struct CapturedLaunch {
    pub(crate) kernel: Kernel,
    pub(crate) arguments: Vec<CapturedValue>,
    pub(crate) dimensions: usize,
    pub(crate) offset: [usize; 3],
    pub(crate) global: [usize; 3],
    /// Zeros if the driver chooses.
    pub(crate) local: [usize; 3],
}

/// A captured argument.
pub(crate) enum CapturedValue {
    Bytes(Vec<u8>),
    Memory(Region),
    Sampler(Sampler),
    /// So many bytes of local memory, or no buffer.
    Nothing(usize),
}

impl CapturedBuffer {
    /// Enqueues one command after all earlier ones of a queue in order.
    pub(crate) fn enqueue(&self, place: u32, queue: *mut c_void) -> Result<(), DriverError> {
        let Owned { raw, functions } = &*self.0;
        // SAFETY: **captured**; the layer checks the queue.
        let status = unsafe { (functions.enqueue)(*raw, place, queue, 0, ptr::null(), ptr::null_mut()) };
        check("the layer's enqueue", status)
    }

    /// Returns the commands, with objects of the context of a queue. One that cannot be a node has the reason.
    pub(crate) fn commands(&self, queue: &DriverQueue) -> Result<Vec<Captured>> {
        let mut seen: Vec<Seen> = Vec::new();
        let Owned { raw, functions } = &*self.0;
        // SAFETY: **captured**; `see` gets a list of its type.
        let status = unsafe { (functions.visit)(*raw, Some(see), (&raw mut seen).cast()) };
        check("the layer's visit", status)?;
        let mut known = Known { queue, kernels: HashMap::new(), memory: HashMap::new() };
        Ok(seen
            .into_iter()
            .map(|seen| {
                let (name, after, has_list) = (seen.name(), seen.after.clone(), seen.has_list);
                // SAFETY: **captured**.
                let what = unsafe { known.what(seen) };
                Captured { name, after, has_list, what }
            })
            .collect())
    }
}

/// A command as the layer tells it.
struct Seen {
    kind: cl_uint,
    is_work: bool,
    has_list: bool,
    after: Vec<u32>,
    memory: Vec<CapturedMemory>,
    pattern: Vec<u8>,
    kernel: cl_kernel,
    has_exec_info: bool,
    dimensions: usize,
    offset: [usize; 3],
    global: [usize; 3],
    local: [usize; 3],
    arguments: Vec<SeenArgument>,
}

enum SeenArgument {
    Unknown,
    Bytes(Vec<u8>),
    Memory(cl_mem),
    Sampler(cl_sampler),
    Nothing(usize),
    Address,
}

/// # Safety
/// As `slice::from_raw_parts`, or a length of 0.
unsafe fn list<'a, T>(first: *const T, len: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    if len == 0 { &[] } else { unsafe { slice::from_raw_parts(first, len) } }
}

/// Takes a command of the layer's. `to` is a `Vec<Seen>`.
unsafe extern "system" fn see(to: *mut c_void, command: *const CapturedCommand) -> cl_int {
    // Nothing unwinds into the layer.
    let seen = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the layer's command, valid during the call (`clgraph_layer.h`).
        let command = unsafe { &*command };
        // SAFETY: as above: lists with their lengths.
        let (after, memory, pattern, arguments) = unsafe {
            (
                list(command.after, command.after_count),
                list(command.memory, command.memory_count),
                list(command.pattern.cast::<u8>(), command.pattern_size),
                list(command.arguments, command.argument_count),
            )
        };
        let arguments = arguments.iter().map(|argument| match argument.kind {
            CL_CAPTURED_BYTES_CLG => {
                // SAFETY: so many bytes, as above.
                SeenArgument::Bytes(unsafe { list(argument.value.cast::<u8>(), argument.size) }.to_vec())
            }
            CL_CAPTURED_MEMORY_CLG => SeenArgument::Memory(argument.value.cast_mut()),
            CL_CAPTURED_SAMPLER_CLG => SeenArgument::Sampler(argument.value.cast_mut()),
            CL_CAPTURED_NOTHING_CLG => SeenArgument::Nothing(argument.size),
            CL_CAPTURED_POINTER_CLG | CL_CAPTURED_INTEL_POINTER_CLG => SeenArgument::Address,
            _ => SeenArgument::Unknown,
        });
        Seen {
            kind: command.kind,
            is_work: command.is_work != 0,
            has_list: command.has_list != 0,
            after: after.to_vec(),
            memory: memory.to_vec(),
            pattern: pattern.to_vec(),
            kernel: command.kernel,
            has_exec_info: command.has_exec_info != 0,
            dimensions: command.dimensions as usize,
            offset: command.offset,
            global: command.global,
            local: command.local,
            arguments: arguments.collect(),
        }
    }));
    let Ok(seen) = seen else { return CL_OUT_OF_HOST_MEMORY };
    // SAFETY: the list that `commands` gives, and that nobody else has meanwhile.
    unsafe { (*to.cast::<Vec<Seen>>()).push(seen) };
    CL_SUCCESS
}

impl Seen {
    fn name(&self) -> &'static str {
        match self.kind {
            CL_COMMAND_NDRANGE_KERNEL => "a kernel",
            CL_COMMAND_BARRIER => "a barrier",
            CL_COMMAND_MARKER => "a marker",
            CL_COMMAND_COPY_BUFFER => "a copy",
            CL_COMMAND_FILL_BUFFER => "a fill",
            opencl_sys::CL_COMMAND_READ_BUFFER | opencl_sys::CL_COMMAND_READ_BUFFER_RECT => "a read",
            opencl_sys::CL_COMMAND_READ_IMAGE => "a read of an image",
            opencl_sys::CL_COMMAND_COPY_BUFFER_RECT => "a copy of a rectangle",
            opencl_sys::CL_COMMAND_FILL_IMAGE => "a fill of an image",
            opencl_sys::CL_COMMAND_SVM_MEMCPY => "a copy of shared virtual memory",
            opencl_sys::CL_COMMAND_SVM_MEMFILL => "a fill of shared virtual memory",
            _ => "a copy with an image",
        }
    }
}

/// The objects of a capture that are wrapped already, by their handles.
struct Known<'a> {
    queue: &'a DriverQueue,
    kernels: HashMap<usize, Kernel>,
    memory: HashMap<usize, Region>,
}

/// Why a captured command is no command of clgraph's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(
        "the value of argument {index} of kernel `{kernel}` was not seen: make memory and kernels after clgraph has looked at \
         the platform (`devices`, or `import clgraph`), and set arguments by clSetKernelArg"
    )]
    Unknown { kernel: String, index: usize },
    #[error("{0}")]
    Object(#[from] Error),
}

impl Known<'_> {
    /// # Safety
    /// As for [`CapturedBuffer::commands`], whose handles these are.
    unsafe fn what(&mut self, seen: Seen) -> Result<What, Fault> {
        match seen.kind {
            CL_COMMAND_BARRIER => return Ok(What::Barrier),
            CL_COMMAND_MARKER => return Ok(What::Marker),
            _ if !seen.is_work => return Ok(What::Nothing),
            _ => {}
        }
        if seen.kind == CL_COMMAND_NDRANGE_KERNEL {
            // SAFETY: the caller's promise.
            return unsafe { self.launch(seen) };
        }
        let mut uses = Vec::new();
        for used in &seen.memory {
            // SAFETY: the caller's promise.
            let mut region = unsafe { self.memory(used.memory) }?;
            if used.size > 0 {
                // The layer has checked it.
                region.offset += used.offset;
                region.size = used.size;
            }
            uses.push((region, used.access != CL_CAPTURED_READ_CLG));
        }
        Ok(match (seen.kind, &uses[..]) {
            (CL_COMMAND_COPY_BUFFER, [(src, _), (dst, _)]) => What::Copy { src: src.clone(), dst: dst.clone() },
            (CL_COMMAND_FILL_BUFFER, [(dst, _)]) => What::Fill { dst: dst.clone(), pattern: seen.pattern },
            _ => What::Other(uses),
        })
    }

    /// # Safety
    /// As above.
    unsafe fn launch(&mut self, seen: Seen) -> Result<What, Fault> {
        let kernel = if let Some(kernel) = self.kernels.get(&seen.kernel.addr()) {
            kernel.clone()
        } else {
            // SAFETY: the caller's promise.
            let kernel = unsafe { Kernel::from_raw(self.queue, seen.kernel) }?;
            self.kernels.insert(seen.kernel.addr(), kernel.clone());
            kernel
        };
        let (name, own) = (|| kernel.name().to_owned(), kernel.num_args() as usize);
        let (mut arguments, mut has_addresses) = (Vec::new(), false);
        // Hidden ones come behind, and clgraph sets them itself.
        for (index, argument) in seen.arguments.into_iter().take(own).enumerate() {
            arguments.push(match argument {
                SeenArgument::Bytes(bytes) => CapturedValue::Bytes(bytes),
                // SAFETY: the caller's promise.
                SeenArgument::Memory(memory) => CapturedValue::Memory(unsafe { self.memory(memory) }?),
                SeenArgument::Sampler(sampler) => {
                    // SAFETY: the caller's promise.
                    CapturedValue::Sampler(unsafe { Sampler::from_raw(self.queue, sampler) }?)
                }
                SeenArgument::Nothing(bytes) => CapturedValue::Nothing(bytes),
                SeenArgument::Address => {
                    has_addresses = true;
                    CapturedValue::Nothing(size_of::<usize>())
                }
                SeenArgument::Unknown => return Err(Fault::Unknown { kernel: name(), index }),
            });
        }
        if arguments.len() < own {
            return Err(Fault::Unknown { kernel: name(), index: arguments.len() });
        }
        // Of a program with device globals, the call was clgraph's: its kernel objects are told of the globals.
        if has_addresses || seen.has_exec_info && !kernel.has_globals() {
            // Which memory addresses lead to is not known, and only the layer's kernel object was told by clSetKernelExecInfo what it
            // reaches. So the layer launches it, in the order of the queue.
            let memory = arguments.into_iter().filter_map(|argument| match argument {
                CapturedValue::Memory(region) => Some((region, true)),
                _ => None,
            });
            return Ok(What::Other(memory.collect()));
        }
        let Seen { dimensions, offset, global, local, .. } = seen;
        Ok(What::Launch(CapturedLaunch { kernel, arguments, dimensions, offset, global, local }))
    }

    /// Wraps a whole memory object.
    ///
    /// # Safety
    /// As above.
    unsafe fn memory(&mut self, raw: cl_mem) -> Result<Region, Error> {
        if let Some(region) = self.memory.get(&raw.addr()) {
            return Ok(region.clone());
        }
        // SAFETY: the caller's promise, here and below.
        let region = match unsafe { Buffer::<u8>::from_raw(self.queue, raw) } {
            Err(Error::Memory(MemoryError::NotABuffer { .. })) => {
                // SAFETY: as above.
                unsafe { Image::of_raw(self.queue.context(), raw, true) }?.region()
            }
            Err(Error::Memory(MemoryError::HostMemory { .. })) => {
                // SAFETY: as above: the memory outlives all commands.
                unsafe { Buffer::<u8>::from_raw_with_owner(self.queue, raw, ()) }?.region()
            }
            buffer => buffer?.region(),
        };
        self.memory.insert(raw.addr(), region.clone());
        Ok(region)
    }
}
