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
         ocl-icd-libopencl1 pocl-opencl-icd`, or {instead}"
    )]
    NoLibrary {
        /// Each path and what the system's loader said of it.
        tried: String,
        /// What to do about OPENCL_DYLIB_PATH.
        instead: &'static str,
    },
    /// The library is there and lacks a function: one that clgraph cannot do without, or that the call needs.
    #[error("the OpenCL library {library} has no function {function}: install a loader for OpenCL {needs} or newer")]
    MissingFunction {
        /// The path of the library.
        library: String,
        /// The function that it lacks.
        function: &'static str,
        /// The version of OpenCL that has it.
        needs: &'static str,
    },
    /// The library knows no driver.
    #[error(
        "OpenCL is installed, but no driver is: install one, on Debian `apt-get install pocl-opencl-icd` for the CPU \
         (drivers are listed in /etc/OpenCL/vendors or the folder that OCL_ICD_VENDORS names)"
    )]
    NoPlatform,
    /// A driver that is listed for the loader, and cannot be loaded or offers nothing.
    #[error("the OpenCL driver `{library}` does not work: {why}: install it again, or correct {file}, which names it")]
    BrokenDriver {
        /// Its library.
        library: String,
        /// The file, or the environment variable, that names it.
        file: String,
        /// Why not.
        why: String,
    },
    /// The library knows no driver, and those that are listed do not work.
    #[error("OpenCL is installed, and no driver works: {}", broken.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NoDriverWorks {
        /// Each of them, and why.
        broken: Vec<SetupError>,
    },
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
        "device `{device}` has command buffers, and clgraph cannot tell which of two signatures their functions have ({why}): \
         graphs are replayed there; please report the driver"
    )]
    CommandBufferAbi {
        /// The device.
        device: String,
        /// What was tried, and what came of it.
        why: String,
    },
    /// A context without devices.
    #[error("a context needs a device, and the list is empty: name at least one")]
    NoDevices,
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
            | Self::NoDevices
            | Self::Environment { .. }
            | Self::NullHandle { .. } => ErrorKind::Invalid,
            _ => ErrorKind::FeatureNotSupported,
        }
    }
}

/// Making, wrapping, naming a part of, mapping or reaching memory: buffers, images, USM, SVM, and memory of graphs. Sizes and
/// offsets are in bytes unless said otherwise.
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
        "a buffer or image of {asked} bytes is more than the largest allocation of device `{device}`, {limit} bytes: split it"
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
    #[error("{what} {start}..{end} are outside 0..{len}: a range must not start behind its end, nor end behind {len}")]
    OutOfBounds {
        /// `elements`, `layers`, `rows` or `slices`.
        what: &'static str,
        /// The first of the range.
        start: usize,
        /// One past its last.
        end: usize,
        /// How many elements, layers, rows or slices there are.
        len: usize,
    },
    /// A part of a buffer, to be an argument of kernels, that does not start where the device can address one.
    #[error(
        "a part of a buffer that kernels take as an argument cannot start at byte {offset}: its start must be a multiple of \
         {align} bytes (CL_DEVICE_MEM_BASE_ADDR_ALIGN); start it there, or give the kernel the whole buffer and the index, and \
         name the range by `Buffer::slice` (copies, fills, reads and writes take any)"
    )]
    Misaligned {
        /// Where it was to start, in bytes.
        offset: usize,
        /// The alignment in bytes.
        align: usize,
    },
    /// A sub-buffer of a sub-buffer, which OpenCL does not have.
    #[error("a sub-buffer of a sub-buffer is not possible in OpenCL: take it from the whole buffer")]
    SubBufferOfSubBuffer,
    /// A size in bytes that holds no whole number of elements.
    #[error("{bytes} bytes are no whole number of elements of {element} bytes: use elements of another size")]
    ElementSize {
        /// Bytes of the buffer.
        bytes: usize,
        /// Bytes of an element.
        element: usize,
    },
    /// A buffer or an image over host memory that clgraph cannot keep alive.
    #[error("the {what} uses host memory ({flag}) that clgraph cannot keep alive: {instead}")]
    HostMemory {
        /// `buffer` or `image`.
        what: &'static str,
        /// The OpenCL flag or query that told so.
        flag: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// A buffer of another context.
    #[error("the buffer or image belongs to another OpenCL context than the one given with it: give its own")]
    OtherContext,
    /// A `cl_mem` that is an image or a pipe.
    #[error("the cl_mem is no buffer but {}: give a buffer", object(*object_type))]
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
    #[error("{given} bytes for an {shape} of format {format}, which has {bytes}: give all of its pixels, and no more")]
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
    /// A `cl_mem` that is no image.
    #[error("the cl_mem is no image but {}: give an image", object(*object_type))]
    NotAnImage {
        /// The `cl_mem_object_type`.
        object_type: u32,
    },
    /// An image of a format that this version does not know.
    #[error("the image has format {format}, whose pixels this version of clgraph cannot count: use another format")]
    UnknownFormat {
        /// Its format.
        format: ImageFormat,
    },
    /// Memory that is no object of OpenCL, where one is needed.
    #[error("{what} has no cl_mem: only buffers and images have one")]
    NoHandle {
        /// What it is.
        what: String,
    },
    /// Layers of an image that has none.
    #[error("an {kind} has no layers: only arrays of images have")]
    NoLayers {
        /// The kind of image.
        kind: ImageKind,
    },
    /// A sampler that OpenCL does not have.
    #[error(
        "a sampler that repeats the image needs normalized coordinates: ask for those, or for another addressing mode"
    )]
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
    /// A device without memory that the host reaches by its address.
    #[error(
        "device `{device}` has no memory that the host reaches by itself: it has {has}; use `Memory::new`, and read and write by \
         a queue or a graph"
    )]
    NotHostReachable {
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
    #[error(
        "{size} bytes from byte {offset} on are more than the allocation behind the pointer has, which is {len}: name fewer"
    )]
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
    #[error("the memory does not start at a multiple of {align} bytes, which its elements need: `cast` it to `u8`")]
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
            Self::NoSuchMemory { .. }
            | Self::NotHostReachable { .. }
            | Self::NoImages { .. }
            | Self::ImageFormat { .. }
            | Self::ImageSize { .. } => ErrorKind::FeatureNotSupported,
            Self::Busy { .. } | Self::HostHasIt { .. } => ErrorKind::NotReady,
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
    #[error("device `{device}` takes no {form}: {why}")]
    FormNotSupported {
        /// The device.
        device: String,
        /// `SPIR-V`, `built-in kernel "name"` or `source`.
        form: String,
        /// What the device lacks or has, and what to do instead.
        why: String,
    },
    /// A binary that the driver does not accept for a device.
    #[error(
        "device `{device}` does not accept the binary: it may be of another driver, version or device; build the program from \
         its source again"
    )]
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
    #[error("the program or kernel belongs to another OpenCL context than the one given with it: give its own")]
    OtherContext,
    /// A program that was not built, or not for a device of its context.
    #[error("the program has not been built: build it before its kernels are used")]
    NotBuilt,
    /// A binary is asked for that the program does not have.
    #[error("the program has no binary for device `{device}`: it was not built for it")]
    NoBinary {
        /// The device.
        device: String,
    },
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

/// What a memory object is, of its `cl_mem_object_type`.
fn object(object_type: u32) -> String {
    match ImageKind::of(object_type) {
        Some(kind) => format!("an {kind}: wrap it by `Image::from_raw`"),
        None if object_type == opencl_sys::CL_MEM_OBJECT_BUFFER => "a buffer: wrap it by `Buffer::from_raw`".to_owned(),
        None => format!("an object of type {object_type:#x}"),
    }
}
