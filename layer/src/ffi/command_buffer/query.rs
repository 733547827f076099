//! What drivers say of their objects.
#![allow(unsafe_code)]

use std::ptr;

use opencl_sys::{
    CL_CONTEXT_NUM_DEVICES, CL_DEVICE_ADDRESS_BITS, CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES,
    CL_DEVICE_EXTENSIONS_WITH_VERSION, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE,
    CL_DEVICE_IMAGE_SUPPORT, CL_DEVICE_IMAGE2D_MAX_HEIGHT, CL_DEVICE_IMAGE2D_MAX_WIDTH, CL_DEVICE_IMAGE3D_MAX_DEPTH,
    CL_DEVICE_IMAGE3D_MAX_HEIGHT, CL_DEVICE_IMAGE3D_MAX_WIDTH, CL_DEVICE_MAX_PARAMETER_SIZE,
    CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_MEM_BASE_ADDR_ALIGN, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT,
    CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_FINE_GRAIN_SYSTEM, CL_DEVICE_VERSION, CL_EVENT_COMMAND_EXECUTION_STATUS,
    CL_EVENT_CONTEXT, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_IMAGE_ARRAY_SIZE, CL_IMAGE_BUFFER,
    CL_IMAGE_DEPTH, CL_IMAGE_ELEMENT_SIZE, CL_IMAGE_FORMAT, CL_IMAGE_HEIGHT, CL_IMAGE_WIDTH, CL_INVALID_ARG_VALUE,
    CL_INVALID_CONTEXT, CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_KERNEL, CL_INVALID_MEM_OBJECT,
    CL_INVALID_PROGRAM_EXECUTABLE, CL_INVALID_SAMPLER, CL_INVALID_VALUE, CL_KERNEL_ARG_ACCESS_NONE,
    CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_READ_ONLY, CL_KERNEL_ARG_ACCESS_WRITE_ONLY,
    CL_KERNEL_ARG_ADDRESS_CONSTANT, CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ADDRESS_LOCAL,
    CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_TYPE_NAME, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_CONTEXT,
    CL_KERNEL_NUM_ARGS, CL_KERNEL_PROGRAM, CL_KERNEL_WORK_GROUP_SIZE, CL_MEM_ASSOCIATED_MEMOBJECT, CL_MEM_CONTEXT,
    CL_MEM_FLAGS, CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY, CL_MEM_IMMUTABLE_EXT,
    CL_MEM_OBJECT_BUFFER, CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE1D_BUFFER,
    CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE3D, CL_MEM_OBJECT_PIPE, CL_MEM_OFFSET, CL_MEM_READ_ONLY,
    CL_MEM_SIZE, CL_MEM_TYPE, CL_MEM_WRITE_ONLY, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, CL_PROGRAM_BUILD_OPTIONS,
    CL_PROGRAM_SOURCE, CL_SUCCESS, cl_bool, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem, cl_program,
    cl_uint, cl_ulong,
};

use super::calls::{self, Query, number};
use super::kernels;
use crate::command_buffer::arguments::{Access, Kind, Space};
use crate::command_buffer::launch::{Device, Kernel};
use crate::command_buffer::ranges::{Image, Limits, Memory, Place, Shape, Target};
use crate::command_buffer::{Checked, ensure};

/// Types that are right for any bytes.
pub(super) trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for cl_uint {}
impl Plain for cl_ulong {}
impl Plain for usize {}
impl<T> Plain for *mut T {}
impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Asks for a value of one size.
///
/// # Safety
/// The object is one that the program may give to the driver.
pub(super) unsafe fn one<H, T: Plain>(ask: Query<H>, of: H, name: cl_uint) -> Checked<T> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: there is room for the size that is given.
    let status = unsafe { ask(of, name, size_of::<T>(), value.as_mut_ptr().cast(), ptr::null_mut()) };
    ensure(status == CL_SUCCESS, status)?;
    // SAFETY: any bytes are right, and those that the driver has not written are 0.
    Ok(unsafe { value.assume_init() })
}

/// Asks for a value of one size. What an older driver does not know is 0.
///
/// # Safety
/// As for [`one`].
unsafe fn known<H, T: Plain + Default>(ask: Query<H>, of: H, name: cl_uint) -> Checked<T> {
    // SAFETY: as for `one`.
    match unsafe { one(ask, of, name) } {
        Err(CL_INVALID_VALUE) => Ok(T::default()),
        answer => answer,
    }
}

/// Returns a driver's status where it says that something is lacking, and otherwise the status of what was wrong.
fn lack_or(status: cl_int, wrong: cl_int) -> cl_int {
    if matches!(status, CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY) { status } else { wrong }
}

/// Asks for a list.
///
/// # Safety
/// As for [`one`].
pub(super) unsafe fn list<H: Copy, T: Plain + Default>(ask: Query<H>, of: H, name: cl_uint) -> Checked<Vec<T>> {
    let mut size = 0;
    // SAFETY: only the size is written.
    let status = unsafe { ask(of, name, 0, ptr::null_mut(), &raw mut size) };
    ensure(status == CL_SUCCESS, status)?;
    let mut values = vec![T::default(); size / size_of::<T>()];
    if !values.is_empty() {
        // SAFETY: there is room for the size that is given.
        let status = unsafe { ask(of, name, size_of_val(&*values), values.as_mut_ptr().cast(), ptr::null_mut()) };
        ensure(status == CL_SUCCESS, status)?;
    }
    Ok(values)
}

/// What a device is, as far as command buffers go.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) launches: Device,
    /// Of a device that is not alone in its context.
    pub(super) limits: Option<Limits>,
    /// The most bytes of a launch's arguments.
    pub(super) argument_bytes: usize,
    pub(super) has_images: bool,
    /// `CL_DEVICE_SVM_CAPABILITIES`.
    svm: cl_ulong,
}

impl Facts {
    pub(super) fn has_svm(&self) -> bool {
        self.svm != 0
    }

    /// Whether kernels may be told that they use all of the program's memory. In a context of several devices another one may have it.
    pub(super) fn may_have_system_svm(&self) -> bool {
        self.svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0 || self.limits.is_some()
    }
}

/// # Safety
/// It is a device of the context.
pub(super) unsafe fn facts(device: cl_device_id, context: usize) -> Checked<Facts> {
    let ask = calls::clGetDeviceInfo;
    // SAFETY: a device and a context. What an older driver does not know is not there.
    unsafe {
        let context: cl_context = ptr::with_exposed_provenance_mut(context);
        let is_alone = one::<_, cl_uint>(calls::clGetContextInfo, context, CL_CONTEXT_NUM_DEVICES)? == 1;
        let address_bits: cl_uint = one(ask, device, CL_DEVICE_ADDRESS_BITS)?;
        let is_older = checked_version(device)? < Some((3, 0));
        Ok(Facts {
            launches: Device {
                most: list(ask, device, CL_DEVICE_MAX_WORK_ITEM_SIZES)?,
                // From 2.0 to 2.2 all devices can do it.
                has_non_uniform: is_older
                    || known::<_, cl_bool>(ask, device, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT)? != 0,
                widest: if address_bits == 32 { u32::MAX as usize } else { usize::MAX },
            },
            limits: if is_alone { None } else { Some(limits(device)?) },
            argument_bytes: one(ask, device, CL_DEVICE_MAX_PARAMETER_SIZE)?,
            has_images: known::<_, cl_bool>(ask, device, CL_DEVICE_IMAGE_SUPPORT)? != 0,
            svm: known(ask, device, CL_DEVICE_SVM_CAPABILITIES)?,
        })
    }
}

/// # Safety
/// It is a device.
unsafe fn limits(device: cl_device_id) -> Checked<Limits> {
    // SAFETY: a device. What an older driver does not know is 0, as all is of a device without images.
    let most = |name| unsafe { known::<_, usize>(calls::clGetDeviceInfo, device, name) };
    // SAFETY: a device.
    let bits: cl_uint = unsafe { one(calls::clGetDeviceInfo, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) }?;
    Ok(Limits {
        alignment: (bits / 8) as usize,
        row_of_buffer: most(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE)?,
        plane: [most(CL_DEVICE_IMAGE2D_MAX_WIDTH)?, most(CL_DEVICE_IMAGE2D_MAX_HEIGHT)?],
        volume: [
            most(CL_DEVICE_IMAGE3D_MAX_WIDTH)?,
            most(CL_DEVICE_IMAGE3D_MAX_HEIGHT)?,
            most(CL_DEVICE_IMAGE3D_MAX_DEPTH)?,
        ],
        layers: most(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE)?,
    })
}

/// Returns the version of OpenCL that a device has, if it says so.
///
/// # Safety
/// It is a device.
pub(super) unsafe fn version(device: cl_device_id) -> Option<(u32, u32)> {
    // SAFETY: a device.
    unsafe { checked_version(device) }.ok()?
}

/// The same; an error if the driver fails.
///
/// # Safety
/// It is a device.
unsafe fn checked_version(device: cl_device_id) -> Checked<Option<(u32, u32)>> {
    // SAFETY: a device.
    let text = unsafe { list::<_, u8>(calls::clGetDeviceInfo, device, CL_DEVICE_VERSION) }?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let number = text.strip_prefix("OpenCL ").and_then(|text| text.split(' ').next()?.split_once('.'));
    Ok(number.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?))))
}

/// Returns a device's list of extensions with versions. It may be empty.
///
/// # Safety
/// It is a device.
pub(super) unsafe fn extensions_with_version(device: cl_device_id) -> Vec<u8> {
    // SAFETY: a device.
    unsafe { list(calls::clGetDeviceInfo, device, CL_DEVICE_EXTENSIONS_WITH_VERSION) }.unwrap_or_default()
}

/// Whether kernels can enqueue kernels.
///
/// # Safety
/// It is a device.
pub(super) unsafe fn has_device_enqueue(device: cl_device_id) -> bool {
    // SAFETY: a device.
    unsafe { one::<_, cl_ulong>(calls::clGetDeviceInfo, device, CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES) }
        .is_ok_and(|bits| bits != 0)
}

/// A memory object, and of which kind it is.
///
/// # Safety
/// What the program gave for a memory object. Drivers check that it is one.
unsafe fn memory(memory: cl_mem) -> Checked<(cl_uint, Memory)> {
    ensure(!memory.is_null(), CL_INVALID_MEM_OBJECT)?;
    let ask = calls::clGetMemObjectInfo;
    // SAFETY: the caller's promise.
    unsafe {
        let kind: cl_uint = one(ask, memory, CL_MEM_TYPE)?;
        let flags: cl_ulong = one(ask, memory, CL_MEM_FLAGS)?;
        let parent: cl_mem = one(ask, memory, CL_MEM_ASSOCIATED_MEMOBJECT)?;
        let is_part = kind == CL_MEM_OBJECT_BUFFER && !parent.is_null();
        let facts = Memory {
            context: number(one(ask, memory, CL_MEM_CONTEXT)?),
            size: one(ask, memory, CL_MEM_SIZE)?,
            root: if is_part { parent.addr() } else { memory.addr() },
            offset: if is_part { one(ask, memory, CL_MEM_OFFSET)? } else { 0 },
            is_immutable: flags & CL_MEM_IMMUTABLE_EXT != 0,
            host_reads: flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS) == 0,
            host_writes: flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS) == 0,
        };
        Ok((kind, facts))
    }
}

/// Checks that it is a memory object of a context.
///
/// # Safety
/// What the program gave for a memory object. Drivers check that it is one.
pub(super) unsafe fn is_of(given: cl_mem, context: usize) -> Checked {
    // SAFETY: the caller's promise.
    let (_, facts) = unsafe { memory(given) }?;
    ensure(facts.context == context, CL_INVALID_CONTEXT)
}

/// # Safety
/// What the program gave for a buffer. Drivers check that it is a memory object.
pub(super) unsafe fn buffer(given: cl_mem) -> Checked<Memory> {
    // SAFETY: the caller's promise.
    let (kind, facts) = unsafe { memory(given) }?;
    ensure(kind == CL_MEM_OBJECT_BUFFER, CL_INVALID_MEM_OBJECT)?;
    Ok(facts)
}

/// # Safety
/// As for [`buffer`], for an image.
pub(super) unsafe fn image(given: cl_mem) -> Checked<Image> {
    // SAFETY: the caller's promise.
    let (kind, memory) = unsafe { memory(given) }?;
    ensure(kind != CL_MEM_OBJECT_BUFFER && kind != CL_MEM_OBJECT_PIPE, CL_INVALID_MEM_OBJECT)?;
    let ask = calls::clGetImageInfo;
    // SAFETY: an image.
    unsafe {
        let (format, pixel) = (one(ask, given, CL_IMAGE_FORMAT)?, one(ask, given, CL_IMAGE_ELEMENT_SIZE)?);
        let shape = match kind {
            CL_MEM_OBJECT_IMAGE1D => Shape::Row,
            CL_MEM_OBJECT_IMAGE1D_BUFFER => Shape::RowOfBuffer,
            CL_MEM_OBJECT_IMAGE1D_ARRAY => Shape::Rows,
            CL_MEM_OBJECT_IMAGE2D_ARRAY => Shape::Planes,
            CL_MEM_OBJECT_IMAGE3D => Shape::Volume,
            _ => Shape::Plane,
        };
        // Drivers may answer what the program gave for a field that images of this shape do not have.
        let extent = |name| one::<_, usize>(ask, given, name).map(|extent| extent.max(1));
        let (width, height) = (|| extent(CL_IMAGE_WIDTH), || extent(CL_IMAGE_HEIGHT));
        let extents = match shape {
            Shape::Row | Shape::RowOfBuffer => [width()?, 1, 1],
            Shape::Rows => [width()?, extent(CL_IMAGE_ARRAY_SIZE)?, 1],
            Shape::Plane => [width()?, height()?, 1],
            Shape::Planes => [width()?, height()?, extent(CL_IMAGE_ARRAY_SIZE)?],
            Shape::Volume => [width()?, height()?, extent(CL_IMAGE_DEPTH)?],
        };
        let of_buffer = if kind == CL_MEM_OBJECT_IMAGE1D_BUFFER {
            number(one::<_, cl_mem>(ask, given, CL_IMAGE_BUFFER)?)
        } else {
            0
        };
        Ok(Image { memory, extents, format, pixel, shape, of_buffer })
    }
}

/// Checks that a memory object may be an argument of a launch on the target's device.
///
/// # Safety
/// What the program gave for a memory object. Drivers check that it is one.
pub(super) unsafe fn is_argument(given: cl_mem, target: &Target) -> Checked {
    // SAFETY: the caller's promise.
    let (kind, facts) = unsafe { memory(given) }?;
    match kind {
        CL_MEM_OBJECT_BUFFER => target.is_aligned(&facts),
        CL_MEM_OBJECT_PIPE => Ok(()),
        // SAFETY: the caller's promise.
        _ => target.takes(&unsafe { image(given) }?),
    }
}

/// What is asked of a kernel when it is recorded.
pub(super) struct Given {
    pub(super) launches: Kernel,
    pub(super) context: usize,
}

/// # Safety
/// What the program gave for a kernel, and a device. Drivers check that it is a kernel.
pub(super) unsafe fn kernel(kernel: cl_kernel, device: cl_device_id) -> Checked<Given> {
    ensure(!kernel.is_null(), CL_INVALID_KERNEL)?;
    // SAFETY: the caller's promise.
    unsafe {
        let context = number(one(calls::clGetKernelInfo, kernel, CL_KERNEL_CONTEXT)?);
        Ok(Given { launches: launches(kernel, device)?, context })
    }
}

/// # Safety
/// A kernel and a device.
unsafe fn launches(kernel: cl_kernel, device: cl_device_id) -> Checked<Kernel> {
    let ask = |name, size, value| {
        // SAFETY: a kernel, a device, and room for the size.
        unsafe { calls::clGetKernelWorkGroupInfo(kernel, device, name, size, value, ptr::null_mut()) }
    };
    let (mut most, mut required): (usize, Place) = (0, [0; 3]);
    let status = ask(CL_KERNEL_WORK_GROUP_SIZE, size_of_val(&most), (&raw mut most).cast());
    ensure(status == CL_SUCCESS, lack_or(status, CL_INVALID_PROGRAM_EXECUTABLE))?;
    let status = ask(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, size_of_val(&required), (&raw mut required).cast());
    ensure(status == CL_SUCCESS, status)?;
    // SAFETY: a kernel and a device.
    let is_uniform = unsafe { is_uniform(kernel, device) };
    Ok(Kernel { most, required: (required[0] > 0).then_some(required), is_uniform })
}

/// Whether a kernel's program was built for work-groups that are all of one size: before OpenCL C 2.0, and by an option.
///
/// # Safety
/// A kernel and a device.
unsafe fn is_uniform(kernel: cl_kernel, device: cl_device_id) -> bool {
    // SAFETY: a kernel.
    let program = unsafe { one::<_, cl_program>(calls::clGetKernelInfo, kernel, CL_KERNEL_PROGRAM) };
    let Ok(program) = program else { return true };
    let ask = |size, value, size_ret| {
        // SAFETY: a program, a device, and room for the size.
        unsafe { calls::clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, size, value, size_ret) }
    };
    let mut size = 0;
    if ask(0, ptr::null_mut(), &raw mut size) != CL_SUCCESS {
        return true;
    }
    let mut options = vec![0_u8; size];
    if ask(size, options.as_mut_ptr().cast(), ptr::null_mut()) != CL_SUCCESS {
        return true;
    }
    let options = String::from_utf8_lossy(&options);
    // SAFETY: a program.
    let source = unsafe { list::<_, u8>(calls::clGetProgramInfo, program, CL_PROGRAM_SOURCE) };
    // Of programs that are linked, or come from binaries or SPIR-V, the options say nothing.
    let has_source = source.is_ok_and(|source| source.iter().any(|byte| *byte != 0));
    let may_differ = ["-cl-std=CL2", "-cl-std=CL3", "-cl-std=CLC++"].iter().any(|option| options.contains(option));
    options.contains("-cl-uniform-work-group-size") || has_source && !may_differ
}

/// Returns what a kernel's arguments take. Programs of binaries, and some drivers, tell nothing; a lack of memory is told.
///
/// # Safety
/// It is a kernel.
pub(super) unsafe fn arguments(kernel: cl_kernel) -> Checked<Vec<Kind>> {
    // SAFETY: a kernel.
    let count: cl_uint = unsafe { one(calls::clGetKernelInfo, kernel, CL_KERNEL_NUM_ARGS) }?;
    (0..count)
        .map(|index| {
            let ask = |name, size, value, size_ret| {
                // SAFETY: a kernel, and room for the size.
                match unsafe { calls::clGetKernelArgInfo(kernel, index, name, size, value, size_ret) } {
                    CL_SUCCESS => Ok(true),
                    status @ (CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY) => Err(status),
                    _ => Ok(false),
                }
            };
            let (mut space, mut size) = (0 as cl_uint, 0);
            let of = CL_KERNEL_ARG_ADDRESS_QUALIFIER;
            let has_space = ask(of, size_of_val(&space), (&raw mut space).cast(), ptr::null_mut())?;
            let has_name = ask(CL_KERNEL_ARG_TYPE_NAME, 0, ptr::null_mut(), &raw mut size)?;
            let mut name = vec![0_u8; size];
            if !has_space
                || !has_name
                || !ask(CL_KERNEL_ARG_TYPE_NAME, size, name.as_mut_ptr().cast(), ptr::null_mut())?
            {
                return Ok(Kind::Any);
            }
            let space = match space {
                CL_KERNEL_ARG_ADDRESS_GLOBAL | CL_KERNEL_ARG_ADDRESS_CONSTANT => Space::Global,
                CL_KERNEL_ARG_ADDRESS_LOCAL => Space::Local,
                _ => Space::Private,
            };
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let mut access = CL_KERNEL_ARG_ACCESS_NONE;
            let of = CL_KERNEL_ARG_ACCESS_QUALIFIER;
            let has_access = ask(of, size_of_val(&access), (&raw mut access).cast(), ptr::null_mut())?;
            let access = match access {
                CL_KERNEL_ARG_ACCESS_READ_ONLY if has_access => Access::Reads,
                CL_KERNEL_ARG_ACCESS_WRITE_ONLY if has_access => Access::Writes,
                _ => Access::Any,
            };
            Ok(Kind::of(space, &String::from_utf8_lossy(name), access))
        })
        .collect()
}

/// Checks a value for an argument.
///
/// # Safety
/// `size` bytes at `value`, or null.
pub(super) unsafe fn value(context: usize, kind: Kind, size: usize, value: *const std::ffi::c_void) -> Checked {
    kind.check(size, !value.is_null())?;
    if !matches!(kind, Kind::Buffer | Kind::Image(..) | Kind::Sampler) || value.is_null() {
        return Ok(());
    }
    // SAFETY: the size of a handle was checked.
    let object = unsafe { value.cast::<cl_mem>().read_unaligned() };
    let is_sampler = kernels::is_sampler(object.addr());
    if kind == Kind::Sampler {
        // Drivers check one that the layer has not seen made.
        return ensure(!object.is_null() && is_sampler != Some(false), CL_INVALID_SAMPLER);
    }
    if object.is_null() {
        return ensure(kind == Kind::Buffer, CL_INVALID_MEM_OBJECT);
    }
    ensure(is_sampler != Some(true), CL_INVALID_MEM_OBJECT)?;
    // SAFETY: drivers check that it is a memory object.
    let (of, facts) = unsafe { memory(object) }?;
    ensure((of == CL_MEM_OBJECT_BUFFER) == (kind == Kind::Buffer), CL_INVALID_MEM_OBJECT)?;
    ensure(facts.context == context, CL_INVALID_CONTEXT)?;
    let Kind::Image(access, shape) = kind else { return Ok(()) };
    // SAFETY: an image.
    let (flags, is) = unsafe { (one::<_, cl_ulong>(calls::clGetMemObjectInfo, object, CL_MEM_FLAGS)?, image(object)?) };
    let forbids = match access {
        Access::Reads => CL_MEM_WRITE_ONLY,
        Access::Writes => CL_MEM_READ_ONLY,
        Access::Any => 0,
    };
    ensure(flags & forbids == 0 && shape.is_none_or(|shape| shape == is.shape), CL_INVALID_ARG_VALUE)
}

/// Checks a list of events: rules of `clEnqueue...`. One that has failed before is not given to drivers: some run what waits for it.
///
/// # Safety
/// What the program gave.
pub(super) unsafe fn events(context: usize, count: cl_uint, list: *const cl_event) -> Checked {
    ensure(list.is_null() == (count == 0), CL_INVALID_EVENT_WAIT_LIST)?;
    for at in 0..count as usize {
        // SAFETY: within the list.
        let event = unsafe { list.add(at).read() };
        ensure(!event.is_null(), CL_INVALID_EVENT_WAIT_LIST)?;
        // SAFETY: drivers check that it is an event.
        let of = unsafe { one(calls::clGetEventInfo, event, CL_EVENT_CONTEXT) };
        let of = number(of.map_err(|status| lack_or(status, CL_INVALID_EVENT_WAIT_LIST))?);
        ensure(of == context, CL_INVALID_CONTEXT)?;
        // SAFETY: an event.
        let status: cl_uint = unsafe { one(calls::clGetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS) }?;
        ensure(status.cast_signed() >= 0, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)?;
    }
    Ok(())
}

/// Gives an answer to a query: as all `clGet...Info` functions do.
///
/// # Safety
/// `value` is null or has `size` bytes; `size_ret` is null or has room.
pub(super) unsafe fn answer<T: Plain>(
    values: &[T],
    size: usize,
    value: *mut std::ffi::c_void,
    size_ret: *mut usize,
) -> cl_int {
    let bytes = size_of_val(values);
    if !value.is_null() {
        if size < bytes {
            return CL_INVALID_VALUE;
        }
        // SAFETY: there is room.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), value.cast(), bytes) };
    }
    if !size_ret.is_null() {
        // SAFETY: the caller's place.
        unsafe { size_ret.write(bytes) };
    }
    CL_SUCCESS
}
