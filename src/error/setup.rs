//! Errors of everything that exists before a graph does: the library, devices, queues, buffers, programs.

use super::{DriverError, ErrorKind};
use crate::{ImageAccess, ImageFormat, ImageKind, MemoryKind, PoolKind};

/// Finding OpenCL, a platform, a device, a context or a queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// No OpenCL library could be loaded.
    #[error(
        "no OpenCL library could be loaded (tried {tried}): install a loader and a driver, on Debian `apt-get install \
         ocl-icd-libopencl1 pocl-opencl-icd`, or name the library in OPENCL_DYLIB_PATH"
    )]
    NoLibrary {
        /// Each path and what the system's loader said of it.
        tried: String,
    },
    /// The library is there and lacks a function of OpenCL 1.2.
    #[error("the OpenCL library {library} has no function {function}: clgraph needs a loader for OpenCL 1.2 or newer")]
    MissingFunction {
        /// The path of the library.
        library: String,
        /// The function that it lacks.
        function: &'static str,
    },
    /// The library knows no driver.
    #[error(
        "OpenCL is installed, but no driver is: install one, on Debian `apt-get install pocl-opencl-icd` for the CPU \
         (drivers are listed in /etc/OpenCL/vendors or the folder that OCL_ICD_VENDORS names)"
    )]
    NoPlatform,
    /// There are drivers and none has a device.
    #[error(
        "no OpenCL driver has a device ({platforms}): see what `clinfo` lists, and whether you may open the device"
    )]
    NoDevice {
        /// The platforms that were asked, each with what a query of a device came to, if that failed.
        platforms: String,
    },
    /// A device that does not belong to the context it is to be used with.
    #[error("device `{device}` does not belong to the context: use one of {of_context}, or make the context with it")]
    DeviceOutsideContext {
        /// The device given.
        device: String,
        /// The devices of the context.
        of_context: String,
    },
    /// A queue with a property that the device does not have.
    #[error("device `{device}` has no {property} queues: ask for a queue without that property")]
    QueueProperty {
        /// The device.
        device: String,
        /// The property that it lacks.
        property: &'static str,
    },
    /// A queue that runs on the device itself, made with `CL_QUEUE_ON_DEVICE`.
    #[error("the queue is a device-side queue, to which a host cannot enqueue: give a host queue")]
    DeviceQueue,
    /// An environment variable with a value that clgraph does not know.
    #[error("the environment variable {variable} is `{given}`: it must be {allowed}")]
    Environment {
        /// Its name.
        variable: &'static str,
        /// Its value.
        given: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// The functions that record commands answer to neither of their two signatures.
    #[error(
        "device `{device}` has command buffers, and which of their two signatures its functions have is unknown: {why}; \
         graphs are replayed there, and a report of the driver is welcome"
    )]
    CommandBufferAbi {
        /// The device.
        device: String,
        /// What was tried, and what came of it.
        why: String,
    },
    /// A null handle.
    #[error("a null {what} was given: give a valid handle")]
    NullHandle {
        /// The C type of the handle.
        what: &'static str,
    },
}

impl SetupError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::DeviceOutsideContext { .. }
            | Self::DeviceQueue
            | Self::Environment { .. }
            | Self::NullHandle { .. } => ErrorKind::Invalid,
            _ => ErrorKind::FeatureNotSupported,
        }
    }
}

/// Making or wrapping a buffer, or naming a part of one. Sizes and offsets are in bytes unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A buffer or a part of one with no bytes.
    #[error("{what} of zero bytes: OpenCL has none, ask for at least one element")]
    Empty {
        /// What was to be made.
        what: &'static str,
    },
    /// More than the device can allocate in one piece.
    #[error(
        "a buffer or image of {asked} bytes is more than the largest allocation of device `{device}`, {limit} bytes"
    )]
    TooLarge {
        /// Bytes asked for.
        asked: u64,
        /// The device's limit in bytes.
        limit: u64,
        /// The device.
        device: String,
    },
    /// A range outside a buffer.
    #[error("elements or layers {start}..{end} are outside: there are {len}")]
    OutOfBounds {
        /// First element of the range.
        start: usize,
        /// One past its last element.
        end: usize,
        /// Elements of the buffer.
        len: usize,
    },
    /// A sub-buffer that does not start where the device can address one.
    #[error(
        "a sub-buffer cannot start at byte {offset} of its buffer: every device of the context needs a multiple of \
         {align} (CL_DEVICE_MEM_BASE_ADDR_ALIGN); `slice` names a range for dependencies without this limit"
    )]
    Misaligned {
        /// Start of the sub-buffer in its parent.
        offset: usize,
        /// The alignment in bytes.
        align: usize,
    },
    /// A sub-buffer of a sub-buffer, which OpenCL does not have.
    #[error("a sub-buffer of a sub-buffer is not possible in OpenCL: take it from the whole buffer")]
    SubBufferOfSubBuffer,
    /// A size in bytes that holds no whole number of elements.
    #[error("{bytes} bytes are no whole number of elements of {element} bytes")]
    ElementSize {
        /// Bytes of the buffer.
        bytes: usize,
        /// Bytes of an element.
        element: usize,
    },
    /// A buffer over host memory that clgraph cannot keep alive.
    #[error(
        "the buffer or image uses host memory ({flag}) that clgraph cannot keep alive: wrap it with the unsafe \
         `Buffer::from_raw_with_owner` and give what owns that memory"
    )]
    HostMemory {
        /// The OpenCL flag or query that told so.
        flag: &'static str,
    },
    /// A buffer of another context.
    #[error("the buffer or image belongs to another OpenCL context than the one given")]
    OtherContext,
    /// A `cl_mem` that is an image or a pipe.
    #[error("the cl_mem is no buffer but an object of type {object_type:#x}")]
    NotABuffer {
        /// The `cl_mem_object_type`.
        object_type: u32,
    },
    /// A device without images.
    #[error("device `{device}` has no images: use buffers")]
    NoImages {
        /// The device.
        device: String,
    },
    /// A format that the device does not have for a kind of image.
    #[error("device `{device}` has no {kind} of format {format} for {access}: it has {has}")]
    ImageFormat {
        /// The format asked for.
        format: ImageFormat,
        /// The kind of image.
        kind: ImageKind,
        /// What it was to be for.
        access: ImageAccess,
        /// The device.
        device: String,
        /// The formats that it has.
        has: String,
    },
    /// An image with a size of zero, or beyond what the device has.
    #[error("an {shape} is not possible on device `{device}`: its sizes are 1 to {limits:?}")]
    ImageSize {
        /// What was asked for.
        shape: String,
        /// The largest sizes.
        limits: [usize; 3],
        /// The device.
        device: String,
    },
    /// Host data of another size than an image.
    #[error("{given} bytes for an {shape} of format {format}, which has {bytes}")]
    PixelBytes {
        /// Bytes given.
        given: usize,
        /// Bytes of the image.
        bytes: usize,
        /// The image.
        shape: String,
        /// What a pixel is.
        format: ImageFormat,
    },
    /// An image that cannot be made of a buffer.
    #[error("no such image can be made of a buffer: {why}")]
    ImageOfBuffer {
        /// Why not.
        why: String,
    },
    /// A `cl_mem` that is no image, or one of a format that this version does not know.
    #[error("the cl_mem is no image of a known format but an object of type {object_type:#x}")]
    NotAnImage {
        /// The `cl_mem_object_type`.
        object_type: u32,
    },
    /// Layers of an image that has none.
    #[error("an {kind} has no layers: only arrays of images have")]
    NoLayers {
        /// The kind of image.
        kind: ImageKind,
    },
    /// A sampler that OpenCL does not have.
    #[error("a sampler that repeats the image needs normalized coordinates")]
    Sampler,
    /// Memory of a graph that is to be other than the device's.
    #[error("a graph owns memory of the device only, and the pool is of {kind} memory: allocate that with `Memory`")]
    NotOfDevice {
        /// The kind of the pool.
        kind: PoolKind,
    },
    /// A kind of memory that a device does not have.
    #[error("device `{device}` has no {kind}: it has {has}")]
    NoSuchMemory {
        /// The kind asked for.
        kind: MemoryKind,
        /// The device.
        device: String,
        /// The kinds that it has.
        has: String,
    },
    /// A buffer where a kind of memory with an address is needed.
    #[error("a buffer has no address: name the kind of USM or SVM that the pointer leads to")]
    NotAPointer,
    /// A pointer that the driver does not know.
    #[error(
        "the driver knows no USM allocation behind this pointer: it was freed, or belongs to another context, or is plain \
         memory of the host, which this device does not take"
    )]
    UnknownPointer,
    /// More elements than the allocation behind a pointer has.
    #[error("{size} bytes from byte {offset} on are more than the allocation behind the pointer has, which is {len}")]
    BeyondAllocation {
        /// Where in its allocation the pointer leads.
        offset: usize,
        /// Bytes asked for.
        size: usize,
        /// Bytes of the allocation.
        len: usize,
    },
    /// Host access to memory that the host cannot reach, or not safely.
    #[error(
        "the host cannot reach this memory ({kind}) by itself: read and write it by a queue or a graph, or make it with \
         `Memory::host_accessible`; memory that somebody else has allocated is reached by its own pointer"
    )]
    NotHostAccessible {
        /// The kind of memory.
        kind: MemoryKind,
    },
    /// Host access by a type that wants more alignment than the memory has.
    #[error(
        "elements that are aligned to {align} bytes cannot be reached here: the memory starts elsewhere; `cast` it to bytes"
    )]
    ElementAlign {
        /// Alignment of the element type in bytes.
        align: usize,
    },
    /// A write to memory that was mapped to be read.
    #[error("the memory was mapped to be read: map it by `MapMode::Write` to write to it")]
    MappedToRead,
    /// Host access to memory that something else has.
    #[error("the host cannot have this memory ({kind}) now: {why}")]
    Busy {
        /// The kind of memory.
        kind: MemoryKind,
        /// Who has it.
        why: &'static str,
    },
    /// A command that uses memory which the host has.
    #[error("the host has this memory ({kind}) now: drop the guard of `Memory::host` or `host_mut` first")]
    HostHasIt {
        /// The kind of memory.
        kind: MemoryKind,
    },
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl MemoryError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Driver(error) => error.kind(),
            Self::TooLarge { .. } => ErrorKind::OutOfMemory,
            Self::NoSuchMemory { .. } => ErrorKind::FeatureNotSupported,
            _ => ErrorKind::Invalid,
        }
    }
}

/// Making a program or a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The program does not build. The log is the compiler's own text.
    #[error("the program does not build for device `{device}` with options `{options}` ({status}):\n{log}")]
    BuildFailed {
        /// The device.
        device: String,
        /// The options that were given to the compiler, clgraph's own among them.
        options: String,
        /// The status of `clBuildProgram`.
        status: super::Status,
        /// The build log.
        log: String,
    },
    /// The device does not take this form of program.
    #[error("device `{device}` takes no {form}: it has {has}")]
    FormNotSupported {
        /// The device.
        device: String,
        /// `SPIR-V`, `built-in kernel "name"` or `source`.
        form: String,
        /// What the device has instead.
        has: String,
    },
    /// A binary that the driver does not accept for a device.
    #[error("the binary was not accepted for device `{device}`: it was made by another driver, version or device")]
    BinaryRefused {
        /// The device.
        device: String,
    },
    /// A driver that lists a built-in kernel and cannot make it.
    #[error(
        "device `{device}` lists the built-in kernels {names} and cannot make them ({status}): a fault of the driver"
    )]
    BuiltInUnusable {
        /// The device.
        device: String,
        /// The kernels.
        names: String,
        /// The status of `clBuildProgram`.
        status: super::Status,
    },
    /// A program text, option or name that C cannot take, because it holds a zero byte.
    #[error("{what} holds a zero byte, at position {position}")]
    ZeroByte {
        /// What holds it.
        what: &'static str,
        /// Where, in bytes.
        position: usize,
    },
    /// Nothing was given to make a program of.
    #[error("{what} is empty: a program needs at least one byte")]
    Empty {
        /// What is empty.
        what: &'static str,
    },
    /// No kernel has this name.
    #[error("the program has no kernel `{name}`: it has {has}")]
    NoSuchKernel {
        /// The name given.
        name: String,
        /// The kernels that the program has.
        has: String,
    },
    /// A program or kernel of another context.
    #[error("the program or kernel belongs to another OpenCL context than the one given")]
    OtherContext,
    /// A program that was not built, or not for a device of its context.
    #[error("the program has not been built: build it before its kernels are used")]
    NotBuilt,
    /// A kernel that is launched on a device for which its program was not built.
    #[error("kernel `{kernel}` cannot run on device `{device}`: its program was not built for this device")]
    NotBuiltFor {
        /// The kernel's name.
        kernel: String,
        /// The queue's device.
        device: String,
    },
    /// The driver refused to set a kernel argument.
    #[error("kernel `{kernel}`: argument {index} was refused: {source}")]
    Argument {
        /// The kernel's name.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// What the driver said.
        source: DriverError,
    },
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl ProgramError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Driver(error) | Self::Argument { source: error, .. } => error.kind(),
            Self::NotBuiltFor { .. } => ErrorKind::KernelNotSupported,
            Self::FormNotSupported { .. } => ErrorKind::FeatureNotSupported,
            Self::BinaryRefused { .. } | Self::BuiltInUnusable { .. } => ErrorKind::KernelNotSupported,
            _ => ErrorKind::Invalid,
        }
    }
}
