//! The functions that the OpenCL library exports, loaded once at run time.
//!
//! `opencl3` has its own table. clgraph does not call through it, for two reasons: it asks for an event on every
//! enqueue, which is expensive for a replay of ten thousand commands; and it gives C functions the types of Rust
//! functions, which is undefined behaviour. Both tables come from the same library, so objects can be used with both.

use std::env;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use dlopen2::raw::Library;
use opencl_sys::{
    cl_addressing_mode, cl_bool, cl_buffer_create_type, cl_buffer_region, cl_command_queue, cl_command_queue_info,
    cl_command_queue_properties, cl_context, cl_context_info, cl_context_properties, cl_device_id, cl_device_info,
    cl_device_type, cl_event, cl_event_info, cl_filter_mode, cl_image_format, cl_image_info, cl_int, cl_kernel,
    cl_kernel_arg_info, cl_kernel_exec_info, cl_kernel_info, cl_kernel_work_group_info, cl_map_flags, cl_mem,
    cl_mem_flags, cl_mem_info, cl_mem_migration_flags, cl_mem_object_type, cl_platform_id, cl_platform_info,
    cl_profiling_info, cl_program, cl_program_build_info, cl_program_info, cl_queue_properties, cl_sampler,
    cl_sampler_info, cl_svm_mem_flags, cl_uint,
};

use super::image::ImageDesc;
use crate::error::SetupError;

/// `pfn_notify` of `clCreateContext`.
pub(crate) type ContextNotify = unsafe extern "system" fn(*const c_char, *const c_void, usize, *mut c_void);
/// `pfn_notify` of `clBuildProgram`.
pub(crate) type ProgramNotify = unsafe extern "system" fn(cl_program, *mut c_void);
/// `pfn_notify` of `clSetMemObjectDestructorCallback`.
pub(crate) type MemNotify = unsafe extern "system" fn(cl_mem, *mut c_void);
/// `pfn_notify` of `clSetEventCallback`.
pub(crate) type EventNotify = unsafe extern "system" fn(cl_event, cl_int, *mut c_void);

/// Declares the table and its loader, and which functions a library may lack.
macro_rules! core_table {
    (
        required { $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty; )* }
        optional { $( $(#[$odoc:meta])* fn $oname:ident($($oarg:ident: $oty:ty),* $(,)?) -> $oret:ty; )* }
    ) => {
        /// Every core function that clgraph calls, with the types of the OpenCL headers.
        #[allow(non_snake_case)]
        pub(crate) struct Core {
            $( $(#[$doc])* pub(crate) $name: unsafe extern "system" fn($($arg: $ty),*) -> $ret, )*
            $( $(#[$odoc])* pub(crate) $oname: Option<unsafe extern "system" fn($($oarg: $oty),*) -> $oret>, )*
            /// The path or name of the library.
            pub(crate) path: String,
            /// Keeps the functions above mapped. The table lives as long as the process.
            _library: Library,
        }

        impl Core {
            fn from_library(library: Library, path: &str) -> Result<Self, SetupError> {
                Ok(Self {
                    $(
                        // SAFETY: the headers' signature of this very name (the invariant of `ffi`).
                        $name: unsafe { library.symbol(stringify!($name)) }.map_err(|_| SetupError::MissingFunction {
                            library: path.to_owned(),
                            function: stringify!($name),
                            needs: "1.2",
                        })?,
                    )*
                    $(
                        // SAFETY: the headers' signature of this very name (the invariant of `ffi`).
                        $oname: unsafe { library.symbol(stringify!($oname)) }.ok(),
                    )*
                    path: path.to_owned(),
                    _library: library,
                })
            }
        }
    };
}

core_table! {
    required {
        fn clGetPlatformIDs(num_entries: cl_uint, platforms: *mut cl_platform_id, num_platforms: *mut cl_uint) -> cl_int;
        fn clGetPlatformInfo(platform: cl_platform_id, name: cl_platform_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clGetDeviceIDs(platform: cl_platform_id, kind: cl_device_type, num_entries: cl_uint, devices: *mut cl_device_id, num_devices: *mut cl_uint) -> cl_int;
        fn clGetDeviceInfo(device: cl_device_id, name: cl_device_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clRetainDevice(device: cl_device_id) -> cl_int;
        fn clReleaseDevice(device: cl_device_id) -> cl_int;

        fn clCreateContext(properties: *const cl_context_properties, num_devices: cl_uint, devices: *const cl_device_id, notify: Option<ContextNotify>, user_data: *mut c_void, status: *mut cl_int) -> cl_context;
        fn clRetainContext(context: cl_context) -> cl_int;
        fn clReleaseContext(context: cl_context) -> cl_int;
        fn clGetContextInfo(context: cl_context, name: cl_context_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;

        fn clCreateCommandQueue(context: cl_context, device: cl_device_id, properties: cl_command_queue_properties, status: *mut cl_int) -> cl_command_queue;
        fn clRetainCommandQueue(queue: cl_command_queue) -> cl_int;
        fn clReleaseCommandQueue(queue: cl_command_queue) -> cl_int;
        fn clGetCommandQueueInfo(queue: cl_command_queue, name: cl_command_queue_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clFlush(queue: cl_command_queue) -> cl_int;
        fn clFinish(queue: cl_command_queue) -> cl_int;

        fn clCreateBuffer(context: cl_context, flags: cl_mem_flags, size: usize, host_ptr: *mut c_void, status: *mut cl_int) -> cl_mem;
        fn clCreateSubBuffer(buffer: cl_mem, flags: cl_mem_flags, kind: cl_buffer_create_type, region: *const cl_buffer_region, status: *mut cl_int) -> cl_mem;
        fn clRetainMemObject(mem: cl_mem) -> cl_int;
        fn clReleaseMemObject(mem: cl_mem) -> cl_int;
        fn clSetMemObjectDestructorCallback(mem: cl_mem, notify: Option<MemNotify>, user_data: *mut c_void) -> cl_int;
        fn clGetMemObjectInfo(mem: cl_mem, name: cl_mem_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;

        fn clGetSupportedImageFormats(context: cl_context, flags: cl_mem_flags, kind: cl_mem_object_type, num_entries: cl_uint, formats: *mut cl_image_format, num_formats: *mut cl_uint) -> cl_int;
        fn clGetImageInfo(image: cl_mem, name: cl_image_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clCreateSampler(context: cl_context, normalized: cl_bool, addressing: cl_addressing_mode, filter: cl_filter_mode, status: *mut cl_int) -> cl_sampler;
        fn clRetainSampler(sampler: cl_sampler) -> cl_int;
        fn clReleaseSampler(sampler: cl_sampler) -> cl_int;
        fn clGetSamplerInfo(sampler: cl_sampler, name: cl_sampler_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;

        fn clCreateProgramWithSource(context: cl_context, count: cl_uint, strings: *const *const c_char, lengths: *const usize, status: *mut cl_int) -> cl_program;
        fn clCreateProgramWithBinary(context: cl_context, num_devices: cl_uint, devices: *const cl_device_id, lengths: *const usize, binaries: *const *const u8, binary_status: *mut cl_int, status: *mut cl_int) -> cl_program;
        fn clCreateProgramWithBuiltInKernels(context: cl_context, num_devices: cl_uint, devices: *const cl_device_id, names: *const c_char, status: *mut cl_int) -> cl_program;
        fn clBuildProgram(program: cl_program, num_devices: cl_uint, devices: *const cl_device_id, options: *const c_char, notify: Option<ProgramNotify>, user_data: *mut c_void) -> cl_int;
        fn clRetainProgram(program: cl_program) -> cl_int;
        fn clReleaseProgram(program: cl_program) -> cl_int;
        fn clGetProgramInfo(program: cl_program, name: cl_program_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clGetProgramBuildInfo(program: cl_program, device: cl_device_id, name: cl_program_build_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;

        fn clCreateKernel(program: cl_program, name: *const c_char, status: *mut cl_int) -> cl_kernel;
        fn clRetainKernel(kernel: cl_kernel) -> cl_int;
        fn clReleaseKernel(kernel: cl_kernel) -> cl_int;
        fn clSetKernelArg(kernel: cl_kernel, index: cl_uint, size: usize, value: *const c_void) -> cl_int;
        fn clGetKernelInfo(kernel: cl_kernel, name: cl_kernel_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clGetKernelArgInfo(kernel: cl_kernel, index: cl_uint, name: cl_kernel_arg_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clGetKernelWorkGroupInfo(kernel: cl_kernel, device: cl_device_id, name: cl_kernel_work_group_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;

        fn clCreateUserEvent(context: cl_context, status: *mut cl_int) -> cl_event;
        fn clSetUserEventStatus(event: cl_event, status: cl_int) -> cl_int;
        fn clRetainEvent(event: cl_event) -> cl_int;
        fn clReleaseEvent(event: cl_event) -> cl_int;
        fn clGetEventProfilingInfo(event: cl_event, name: cl_profiling_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clGetEventInfo(event: cl_event, name: cl_event_info, size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int;
        fn clSetEventCallback(event: cl_event, kind: cl_int, notify: Option<EventNotify>, user_data: *mut c_void) -> cl_int;
        fn clWaitForEvents(num_events: cl_uint, events: *const cl_event) -> cl_int;

        fn clEnqueueNDRangeKernel(queue: cl_command_queue, kernel: cl_kernel, dims: cl_uint, offset: *const usize, global: *const usize, local: *const usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueCopyBuffer(queue: cl_command_queue, src: cl_mem, dst: cl_mem, src_offset: usize, dst_offset: usize, size: usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueCopyBufferRect(queue: cl_command_queue, src: cl_mem, dst: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize, src_row_pitch: usize, src_slice_pitch: usize, dst_row_pitch: usize, dst_slice_pitch: usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueFillBuffer(queue: cl_command_queue, buffer: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueWriteBuffer(queue: cl_command_queue, buffer: cl_mem, blocking: cl_bool, offset: usize, size: usize, ptr: *const c_void, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueReadBuffer(queue: cl_command_queue, buffer: cl_mem, blocking: cl_bool, offset: usize, size: usize, ptr: *mut c_void, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueMapBuffer(queue: cl_command_queue, buffer: cl_mem, blocking: cl_bool, flags: cl_map_flags, offset: usize, size: usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event, status: *mut cl_int) -> *mut c_void;
        fn clEnqueueUnmapMemObject(queue: cl_command_queue, mem: cl_mem, pointer: *mut c_void, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueWriteImage(queue: cl_command_queue, image: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row_pitch: usize, slice_pitch: usize, ptr: *const c_void, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueReadImage(queue: cl_command_queue, image: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row_pitch: usize, slice_pitch: usize, ptr: *mut c_void, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueCopyImage(queue: cl_command_queue, src: cl_mem, dst: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueCopyImageToBuffer(queue: cl_command_queue, src: cl_mem, dst: cl_mem, src_origin: *const usize, region: *const usize, dst_offset: usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueCopyBufferToImage(queue: cl_command_queue, src: cl_mem, dst: cl_mem, src_offset: usize, dst_origin: *const usize, region: *const usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueMapImage(queue: cl_command_queue, image: cl_mem, blocking: cl_bool, flags: cl_map_flags, origin: *const usize, region: *const usize, row_pitch: *mut usize, slice_pitch: *mut usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event, status: *mut cl_int) -> *mut c_void;
        fn clEnqueueMigrateMemObjects(queue: cl_command_queue, count: cl_uint, mems: *const cl_mem, flags: cl_mem_migration_flags, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueMarkerWithWaitList(queue: cl_command_queue, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        fn clEnqueueBarrierWithWaitList(queue: cl_command_queue, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
    }
    optional {
        /// OpenCL 1.2. Without this function, a loader has no extension functions.
        fn clGetExtensionFunctionAddressForPlatform(platform: cl_platform_id, name: *const c_char) -> *mut c_void;
        /// OpenCL 1.2.
        fn clCreateImage(context: cl_context, flags: cl_mem_flags, format: *const cl_image_format, desc: *const ImageDesc, host: *mut c_void, status: *mut cl_int) -> cl_mem;
        /// OpenCL 1.2.
        fn clEnqueueFillImage(queue: cl_command_queue, image: cl_mem, color: *const c_void, origin: *const usize, region: *const usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        /// OpenCL 2.0.
        fn clCreateCommandQueueWithProperties(context: cl_context, device: cl_device_id, properties: *const cl_queue_properties, status: *mut cl_int) -> cl_command_queue;
        /// OpenCL 2.0.
        fn clSVMAlloc(context: cl_context, flags: cl_svm_mem_flags, size: usize, alignment: cl_uint) -> *mut c_void;
        /// OpenCL 2.0.
        fn clSVMFree(context: cl_context, pointer: *mut c_void) -> ();
        /// OpenCL 2.0.
        fn clSetKernelArgSVMPointer(kernel: cl_kernel, index: cl_uint, pointer: *const c_void) -> cl_int;
        /// OpenCL 2.0.
        fn clSetKernelExecInfo(kernel: cl_kernel, name: cl_kernel_exec_info, size: usize, value: *const c_void) -> cl_int;
        /// OpenCL 2.0.
        fn clEnqueueSVMMemcpy(queue: cl_command_queue, blocking: cl_bool, dst: *mut c_void, src: *const c_void, size: usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        /// OpenCL 2.0.
        fn clEnqueueSVMMemFill(queue: cl_command_queue, dst: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        /// OpenCL 2.0.
        fn clEnqueueSVMMap(queue: cl_command_queue, blocking: cl_bool, flags: cl_map_flags, pointer: *mut c_void, size: usize, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        /// OpenCL 2.0.
        fn clEnqueueSVMUnmap(queue: cl_command_queue, pointer: *mut c_void, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        /// OpenCL 2.1.
        fn clEnqueueSVMMigrateMem(queue: cl_command_queue, count: cl_uint, pointers: *const *const c_void, sizes: *const usize, flags: cl_mem_migration_flags, num_events: cl_uint, wait_list: *const cl_event, event: *mut cl_event) -> cl_int;
        /// OpenCL 2.1.
        fn clCreateProgramWithIL(context: cl_context, il: *const c_void, length: usize, status: *mut cl_int) -> cl_program;
        /// OpenCL 2.1.
        fn clCloneKernel(source: cl_kernel, status: *mut cl_int) -> cl_kernel;
        /// OpenCL 2.2.
        fn clSetProgramSpecializationConstant(program: cl_program, id: cl_uint, size: usize, value: *const c_void) -> cl_int;
    }
}

static CORE: OnceLock<Result<Core, SetupError>> = OnceLock::new();

impl Core {
    /// Returns the table of this process, and loads it at the first call.
    ///
    /// The library is `OPENCL_DYLIB_PATH` (a list separated by `;`, as for `opencl3`), or the usual library of the
    /// platform.
    #[inline]
    pub(crate) fn get() -> Result<&'static Self, SetupError> {
        match CORE.get() {
            Some(Ok(core)) => Ok(core),
            _ => Self::first(),
        }
    }

    #[cold]
    fn first() -> Result<&'static Self, SetupError> {
        CORE.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Self, SetupError> {
        const USUAL: &str = if cfg!(target_os = "windows") {
            "OpenCL.dll"
        } else if cfg!(target_os = "macos") {
            "/System/Library/Frameworks/OpenCL.framework/OpenCL"
        } else {
            "libOpenCL.so.1"
        };
        let named = env::var_os("OPENCL_DYLIB_PATH");
        let paths = named.as_ref().map_or(USUAL.into(), |paths| paths.to_string_lossy());
        let mut tried = Vec::new();
        for path in paths.split(';').filter(|path| !path.is_empty()) {
            match Library::open(path) {
                Ok(library) => return Self::from_library(library, path),
                Err(error) => tried.push(format!("{path}: {error}")),
            }
        }
        let tried = if tried.is_empty() { "OPENCL_DYLIB_PATH, which is empty".to_owned() } else { tried.join("; ") };
        let instead = match named {
            Some(_) => "correct OPENCL_DYLIB_PATH, or unset it",
            None => "set OPENCL_DYLIB_PATH to the path of the library",
        };
        Err(SetupError::NoLibrary { tried, instead })
    }
}
