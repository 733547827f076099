//! Errors of what a program makes before a graph: the OpenCL library, devices, contexts, queues, memory and programs.

use super::{DriverError, ErrorKind};
use crate::caps::{MemoryKind, PoolKind};
use crate::images::{ImageAccess, ImageFormat, ImageKind};

/// Finding OpenCL, a platform or a device, or making a context or a queue, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// No OpenCL library could be loaded.
    #[error(
        "no OpenCL library could be loaded (tried {tried}): install a loader and a driver, on Debian `apt-get install \
         ocl-icd-libopencl1 pocl-opencl-icd`, or {instead}"
    )]
    NoLibrary {
        /// Each path that was tried, with the error of the operating system.
        tried: String,
        /// What else to do, about OPENCL_DYLIB_PATH.
        instead: &'static str,
    },
    /// The library lacks a function that clgraph always needs, or that this call needs.
    #[error("the OpenCL library {library} has no function {function}: install a loader for OpenCL {needs} or newer")]
    MissingFunction {
        /// The path of the library.
        library: String,
        /// The missing function.
        function: &'static str,
        /// The first version of OpenCL that has the function.
        needs: &'static str,
    },
    /// No driver is installed.
    #[error(
        "OpenCL is installed, but no driver is installed: install a driver, for example on Debian `apt-get install \
         pocl-opencl-icd` for the CPU (the loader finds drivers in /etc/OpenCL/vendors, or in the folder that \
         OCL_ICD_VENDORS names)"
    )]
    NoPlatform,
    /// A driver is listed for the loader, but cannot be loaded or offers no platform.
    #[error("the OpenCL driver `{library}` does not work: {why}; install it again, or correct {file}, which names it")]
    BrokenDriver {
        /// The library of the driver.
        library: String,
        /// The file, or the environment variable, that names the library.
        file: String,
        /// Why not.
        why: String,
    },
    /// Drivers are installed, but none of them works.
    #[error("OpenCL is installed, but no driver works: {}", list(broken))]
    NoDriverWorks {
        /// Each of these drivers, as a [`BrokenDriver`](Self::BrokenDriver).
        broken: Vec<SetupError>,
    },
    /// Drivers work, but none of them has a device.
    #[error(
        "no OpenCL driver has a device ({platforms}): check what `clinfo` lists, and whether you have permission to \
         open the device"
    )]
    NoDevice {
        /// The platforms that were asked, each with the error of a query, if one failed.
        platforms: String,
    },
    /// A device does not belong to the context.
    #[error(
        "device `{device}` does not belong to the context: use a device of the context ({of_context}), or make a \
         context with this device"
    )]
    DeviceOutsideContext {
        /// The device given.
        device: String,
        /// The devices of the context.
        of_context: String,
    },
    /// The device does not support a property of the queue.
    #[error("device `{device}` does not support {property} queues: make a queue without this property")]
    QueueProperty {
        /// The device.
        device: String,
        /// The property, for example `out-of-order`.
        property: &'static str,
    },
    /// The queue is a device-side queue, made with `CL_QUEUE_ON_DEVICE`.
    #[error("the queue is a device-side queue, and the host cannot enqueue to it: give a host queue")]
    DeviceQueue,
    /// The system starts no thread that would wait for the ends of commands.
    #[error(
        "no thread could be started that waits for the ends of commands ({error}): let the program have fewer threads, or \
         raise its limit (`ulimit -u`)"
    )]
    NoThread {
        /// The error of the operating system.
        error: String,
    },
    /// An environment variable has a value that clgraph does not know.
    #[error("the environment variable {variable} is `{given}`: it must be {allowed}")]
    Environment {
        /// The name of the variable.
        variable: &'static str,
        /// Its value.
        given: String,
        /// The values allowed.
        allowed: &'static str,
    },
    /// The driver's functions for command buffers match neither of the two known signatures.
    #[error(
        "device `{device}` has command buffers, but clgraph cannot find out which of two signatures their functions \
         have ({why}): clgraph replays graphs on this device; please report the driver"
    )]
    CommandBufferAbi {
        /// The device.
        device: String,
        /// Why clgraph could not find out.
        why: String,
    },
    /// The list of devices for a context is empty.
    #[error("a context needs a device, but the list of devices is empty: list at least one device")]
    NoDevices,
    /// A raw handle is null.
    #[error("a null {what} was given: give a valid handle")]
    NullHandle {
        /// The C type of the handle.
        what: &'static str,
    },
}

impl SetupError {
    /// Returns the sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::DeviceOutsideContext { .. }
            | Self::DeviceQueue
            | Self::NoDevices
            | Self::Environment { .. }
            | Self::NullHandle { .. } => ErrorKind::Invalid,
            Self::NoThread { .. } => ErrorKind::OutOfMemory,
            _ => ErrorKind::FeatureNotSupported,
        }
    }
}

/// Making, wrapping, slicing, mapping or accessing memory failed: buffers, images, USM, SVM, or memory of graphs. Sizes
/// and offsets are in bytes unless a field says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Memory, or a part of it, has no bytes.
    #[error("{what} of zero bytes is not possible in OpenCL: ask for at least one element")]
    Empty {
        /// What was asked for, with an article.
        what: &'static str,
    },
    /// Memory is larger than the device can allocate at once.
    #[error(
        "memory of {asked} bytes is more than the largest allocation of device `{device}`, which is {limit} bytes: \
         split the memory"
    )]
    TooLarge {
        /// Bytes asked for.
        asked: u64,
        /// The device's limit in bytes.
        limit: u64,
        /// The device.
        device: String,
    },
    /// A range is outside the memory.
    #[error(
        "{what} {start}..{end} are outside 0..{len}: a range must not start after its end, and not end after {len}"
    )]
    OutOfBounds {
        /// `elements`, `layers`, `rows` or `slices`.
        what: &'static str,
        /// The start of the range.
        start: usize,
        /// The end of the range, which is not part of it.
        end: usize,
        /// How many elements, layers, rows or slices there are.
        len: usize,
    },
    /// A part of a buffer for a kernel argument starts at an offset that the device cannot address.
    #[error(
        "a part of a buffer that is a kernel argument cannot start at byte {offset}: its start must be a multiple of \
         {align} bytes (CL_DEVICE_MEM_BASE_ADDR_ALIGN); start it at such a byte, or give the kernel the whole buffer \
         and an index (copies, fills, reads and writes by `Buffer::slice` may start anywhere)"
    )]
    Misaligned {
        /// Where the part starts, in bytes.
        offset: usize,
        /// The alignment in bytes.
        align: usize,
    },
    /// A sub-buffer was asked for of a sub-buffer.
    #[error("a sub-buffer of a sub-buffer is not possible in OpenCL: make it from the whole buffer")]
    SubBufferOfSubBuffer,
    /// A size in bytes is not a whole number of elements.
    #[error("{bytes} bytes are not a whole number of elements of {element} bytes: use elements of another size")]
    ElementSize {
        /// The size of the memory in bytes.
        bytes: usize,
        /// The size of an element in bytes.
        element: usize,
    },
    /// A buffer or an image uses host memory whose owner clgraph does not have.
    #[error("the {what} uses host memory ({flag}) that clgraph cannot keep alive: {instead}")]
    HostMemory {
        /// `buffer` or `image`.
        what: &'static str,
        /// The OpenCL flag or query that reports this.
        flag: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// A buffer or an image belongs to another context.
    #[error(
        "the buffer or image belongs to another OpenCL context than the context given: give the context that it was \
         made in"
    )]
    OtherContext,
    /// A `cl_mem` is not a buffer.
    #[error("the cl_mem is not a buffer but {}", object(*object_type))]
    NotABuffer {
        /// The `cl_mem_object_type` of the object.
        object_type: u32,
    },
    /// The device does not support images.
    #[error("device `{device}` does not support images: use buffers")]
    NoImages {
        /// The device.
        device: String,
    },
    /// The device does not support a format for this kind of image and this access.
    #[error(
        "device `{device}` does not support an {kind} of format {format} for {access}: use a supported format ({has})"
    )]
    ImageFormat {
        /// The format asked for.
        format: ImageFormat,
        /// The kind of image.
        kind: ImageKind,
        /// The access asked for.
        access: ImageAccess,
        /// The device.
        device: String,
        /// The formats that the device supports.
        has: String,
    },
    /// An image has a size of zero, or is larger than the device supports.
    #[error("an {shape} is not possible on device `{device}`: give sizes from 1 to {limits:?}")]
    ImageSize {
        /// The shape asked for.
        shape: String,
        /// The largest sizes that the device supports.
        limits: [usize; 3],
        /// The device.
        device: String,
    },
    /// The data for an image does not have the size of the image.
    #[error(
        "an {shape} of format {format} has {bytes} bytes, but {given} bytes were given: give exactly all of its pixels"
    )]
    PixelBytes {
        /// The bytes given.
        given: usize,
        /// The bytes of the image.
        bytes: usize,
        /// The shape of the image.
        shape: String,
        /// The format of the image.
        format: ImageFormat,
    },
    /// An image cannot be made of a buffer in this manner.
    #[error("this image cannot be made of a buffer: {why}")]
    ImageOfBuffer {
        /// Why not, and what to do.
        why: String,
    },
    /// A `cl_mem` is not an image.
    #[error("the cl_mem is not an image but {}", object(*object_type))]
    NotAnImage {
        /// The `cl_mem_object_type` of the object.
        object_type: u32,
    },
    /// An image has a format that this version of clgraph does not know.
    #[error(
        "the image has format {format}, whose pixel size this version of clgraph does not know: use another format"
    )]
    UnknownFormat {
        /// The format of the image.
        format: ImageFormat,
    },
    /// A `cl_mem` was asked for of memory that has none.
    #[error("{what} has no cl_mem: use a buffer or an image, because only these have a cl_mem")]
    NoHandle {
        /// The memory.
        what: String,
    },
    /// Layers were asked for of an image that is not an array.
    #[error("an {kind} has no layers: use an array of images")]
    NoLayers {
        /// The kind of image.
        kind: ImageKind,
    },
    /// A sampler would repeat the image with coordinates that are not normalized, which OpenCL forbids.
    #[error("a sampler that repeats the image needs normalized coordinates: use these, or another addressing mode")]
    Sampler,
    /// A graph was to allocate from a pool that is not device memory.
    #[error("a graph can own device memory only, but the pool has {kind} memory: allocate this memory with `Memory`")]
    PoolNotOfDevice {
        /// The kind of the pool.
        kind: PoolKind,
    },
    /// The device does not support a kind of memory.
    #[error("device `{device}` does not support {kind}: use a supported kind ({has})")]
    NoSuchMemory {
        /// The kind asked for.
        kind: MemoryKind,
        /// The device.
        device: String,
        /// The kinds that the device supports.
        has: String,
    },
    /// The device has no memory that the host can access directly.
    #[error(
        "device `{device}` has no memory that the host can access directly, only {has}: use `Memory::new`, and read \
         and write with a queue or a graph"
    )]
    NotHostReachable {
        /// The device.
        device: String,
        /// The kinds that the device supports.
        has: String,
    },
    /// A pointer was given as a buffer, but a buffer has no address.
    #[error(
        "a buffer has no address, so a pointer cannot be a buffer: give the kind of USM or SVM that the pointer points \
         to"
    )]
    NotAPointer,
    /// The driver does not know the allocation of a pointer.
    #[error(
        "the driver knows no USM allocation at this pointer: it was freed, or belongs to another context, or is \
         ordinary host memory, which this device does not support; give a pointer to USM of this context"
    )]
    UnknownPointer,
    /// More bytes were asked for than the allocation of a pointer has.
    #[error(
        "{size} bytes at byte {offset} go over the end of the allocation of the pointer, which has {len} bytes: ask \
         for fewer"
    )]
    BeyondAllocation {
        /// The offset of the pointer in its allocation.
        offset: usize,
        /// The bytes asked for.
        size: usize,
        /// The size of the allocation in bytes.
        len: usize,
    },
    /// The host cannot access this memory, or not safely.
    #[error(
        "the host cannot access this memory ({kind}) directly: read and write it with a queue or a graph, or make it \
         with `Memory::host_accessible`; use your own pointer for memory that clgraph did not allocate"
    )]
    NotHostAccessible {
        /// The kind of memory.
        kind: MemoryKind,
    },
    /// The element type needs a larger alignment than the memory has.
    #[error(
        "the memory does not start at a multiple of {align} bytes, as its element type requires: `cast` the memory to \
         `u8`"
    )]
    ElementAlign {
        /// The alignment of the element type in bytes.
        align: usize,
    },
    /// The host cannot access memory now, because something else uses it.
    #[error("the host cannot access this memory ({kind}) now: {why}")]
    Busy {
        /// The kind of memory.
        kind: MemoryKind,
        /// What uses the memory, and what to do.
        why: &'static str,
    },
    /// A command cannot use memory, because a guard on the host holds it.
    #[error("the host holds this memory ({kind}) now: drop the guard of `Memory::host` or `Memory::host_mut` first")]
    HeldByHost {
        /// The kind of memory.
        kind: MemoryKind,
    },
    /// A call to the driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl MemoryError {
    /// Returns the sort of this error.
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
            Self::Busy { .. } | Self::HeldByHost { .. } => ErrorKind::NotReady,
            _ => ErrorKind::Invalid,
        }
    }
}

/// Making a program or a kernel failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The compiler reported errors.
    #[error("the program does not build for device `{device}` with options `{options}` ({status}):\n{log}")]
    BuildFailed {
        /// The device.
        device: String,
        /// The options that the compiler got, including those that clgraph adds.
        options: String,
        /// The status of `clBuildProgram`.
        status: super::Status,
        /// The compiler's log.
        log: String,
    },
    /// The device does not support this form of program.
    #[error("device `{device}` does not support {form}: {why}")]
    FormNotSupported {
        /// The device.
        device: String,
        /// `SPIR-V`, `built-in kernel "name"` or `source`.
        form: String,
        /// What the device supports, and what to do instead.
        why: String,
    },
    /// The driver does not accept a binary for a device.
    #[error(
        "device `{device}` does not accept the binary, which may be from another driver, version or device: build the \
         program from source again"
    )]
    BinaryRefused {
        /// The device.
        device: String,
    },
    /// The driver lists built-in kernels, but cannot make them.
    #[error(
        "device `{device}` lists the built-in kernels {names}, but cannot make them ({status}): this is a defect of \
         the driver; use kernels of your own"
    )]
    BuiltInUnusable {
        /// The device.
        device: String,
        /// The kernels.
        names: String,
        /// The status of `clBuildProgram`.
        status: super::Status,
    },
    /// A source, an option or a name has a zero byte, which ends a string in C.
    #[error("{what} has a zero byte at position {position}: remove it, because a zero byte ends a string in C")]
    ZeroByte {
        /// What has the zero byte.
        what: &'static str,
        /// Its position, in bytes from the start.
        position: usize,
    },
    /// There is nothing to make a program of.
    #[error("{what} is empty: a program needs at least one byte")]
    Empty {
        /// What is empty.
        what: &'static str,
    },
    /// The program has no kernel of this name.
    #[error("the program has no kernel `{name}`: use a kernel that it has ({has})")]
    NoSuchKernel {
        /// The name given.
        name: String,
        /// The kernels that the program has.
        has: String,
    },
    /// A program or a kernel belongs to another context.
    #[error(
        "the program or kernel belongs to another OpenCL context than the context given: give the context that it was \
         made in"
    )]
    OtherContext,
    /// A program was not built, or not for a device of its context.
    #[error("the program has not been built: build it before you use its kernels")]
    NotBuilt,
    /// The program has no binary for a device.
    #[error("the program has no binary for device `{device}`: build the program for this device first")]
    NoBinary {
        /// The device.
        device: String,
    },
    /// A kernel was launched on a device for which its program was not built.
    #[error("kernel `{kernel}` cannot run on device `{device}`: build its program for this device")]
    NotBuiltFor {
        /// The name of the kernel.
        kernel: String,
        /// The device of the queue.
        device: String,
    },
    /// The driver refused a kernel argument.
    #[error("kernel `{kernel}`: the driver refused argument {index}: {source}")]
    Argument {
        /// The name of the kernel.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// The error of the driver.
        source: DriverError,
    },
    /// A call to the driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl ProgramError {
    /// Returns the sort of this error.
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

fn list(broken: &[SetupError]) -> String {
    broken.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a memory object is by its `cl_mem_object_type`, and what to do with it.
fn object(object_type: u32) -> String {
    match ImageKind::of(object_type) {
        Some(kind) => format!("an {kind}: wrap it by `Image::from_raw`"),
        None if object_type == opencl_sys::CL_MEM_OBJECT_BUFFER => "a buffer: wrap it by `Buffer::from_raw`".to_owned(),
        None => format!("an object of type {object_type:#x}: give a buffer or an image"),
    }
}
