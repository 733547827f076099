//! An OpenCL layer for the tests (`OPENCL_LAYERS`). It is between the loader and the driver, counts calls and live
//! objects, and makes one call fail when a test asks for it. `tests/faults` uses it. With `CLGRAPH_LAYER_HIDES_IMAGES`
//! devices report no images (`tests/image_errors.rs`), with `CLGRAPH_LAYER_HIDES_SVM` no shared virtual memory, with
//! `CLGRAPH_LAYER_IS_OLD` OpenCL 1.2, and with `CLGRAPH_LAYER_IS_NARROW` 32 bits, images of 8 pixels at most and sub-buffers that begin
//! at multiples of 64 KiB (`layer/tests/command_buffers.rs`).
//!
//! Every argument is passed on as a word. This is right if the calling convention puts one argument into one register
//! or slot of 64 bits: Linux on x86-64 and AArch64.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// More functions than any loader's table has.
const MOST: usize = 512;
/// Places after those of the loader's table, for functions that are requested by name.
const EXTENSIONS: usize = 256;

/// Kinds of object that are counted.
#[derive(Clone, Copy)]
enum Kind {
    Device,
    Context,
    Queue,
    Mem,
    Program,
    Kernel,
    Event,
    CommandBuffer,
    Memory,
    Sampler,
    Mapping,
}

/// The names of the kinds, in their order.
const KINDS: [&CStr; 11] = [
    c"device",
    c"context",
    c"queue",
    c"mem",
    c"program",
    c"kernel",
    c"event",
    c"command buffer",
    c"USM or SVM",
    c"sampler",
    c"mapping",
];

static LIVE: [AtomicI64; KINDS.len()] = [const { AtomicI64::new(0) }; KINDS.len()];
static CALLS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];
static TARGET: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// The function that is to fail, at which call from now on, and with which status. -1: none.
static ARMED: AtomicI32 = AtomicI32::new(-1);
static SKIP: AtomicU32 = AtomicU32::new(0);
static STATUS: AtomicI32 = AtomicI32::new(0);

/// Counts a call, and returns whether it is to fail.
fn enter(function: usize) -> Option<i32> {
    CALLS[function].fetch_add(1, SeqCst);
    if ARMED.load(SeqCst) != function as i32 {
        return None;
    }
    if SKIP.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
        return None;
    }
    let status = ARMED.compare_exchange(function as i32, -1, SeqCst, SeqCst).is_ok().then(|| STATUS.load(SeqCst))?;
    if status == NEVER {
        HANGS.store(true, SeqCst);
        loop {
            std::thread::park();
        }
    }
    Some(status)
}

/// In place of a status: the call does not return.
const NEVER: i32 = i32::MAX;
static HANGS: AtomicBool = AtomicBool::new(false);

/// Whether launches of fused kernels take long.
static SLOWS: AtomicBool = AtomicBool::new(false);
/// How long: no chain of which the tests make it slow takes so long.
const SLOW: Duration = Duration::from_millis(20);
/// How the names of fused kernels begin.
const FUSED: &[u8] = b"clgraph_fused_";
const CL_KERNEL_FUNCTION_NAME: usize = 0x1190;

/// Holds up the launch of a fused kernel, if the tests ask for that.
fn hold_up(kernel: usize) {
    type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> usize;
    if !SLOWS.load(SeqCst) {
        return;
    }
    let mut name = [0_u8; 256];
    // SAFETY: the driver's function of that place in the table, and room for as many bytes as it is told.
    let status = unsafe {
        let function = std::mem::transmute::<usize, Function>(TARGET[KERNEL_INFO].load(SeqCst));
        function(kernel, CL_KERNEL_FUNCTION_NAME, name.len(), name.as_mut_ptr().expose_provenance(), 0)
    };
    if status as i32 == 0 && name.starts_with(FUSED) {
        std::thread::sleep(SLOW);
    }
}

fn count(kind: Kind, by: i64) {
    LIVE[kind as usize].fetch_add(by, SeqCst);
}

/// Declares wrappers, and the table of their names.
///
/// Record functions of `cl_khr_command_buffer` have one parameter more since 0.9.5. The wrappers have the longer list:
/// a parameter that a caller of the older version did not pass is a word of its stack, which the older function does
/// not read.
macro_rules! wrappers {
    (
        create { $( $c_at:literal $c_name:ident $c_kind:ident ($($c_arg:ident)*); )* }
        call { $( $p_at:literal $p_name:ident ($($p_arg:ident)*); )* }
        device { $( $d_at:literal $d_name:ident; )* }
        enqueue { $( $e_at:literal $e_name:ident ($($e_arg:ident)*); )* }
        map { $( $a_at:literal $a_name:ident ($($a_arg:ident)*); )* }
        unmap { $( $u_at:literal $u_name:ident ($($u_arg:ident)*); )* }
        last { $( $l_at:literal $l_name:ident ($($l_arg:ident)*); )* }
        retain { $( $r_at:literal $r_name:ident $r_kind:ident; )* }
        release { $( $f_at:literal $f_name:ident $f_kind:ident; )* }
        free { $( $m_at:literal $m_name:ident; )* }
    ) => {
        #[allow(non_snake_case)]
        mod wrapped {
            use super::*;

            $(
                /// The last argument is the address for the status.
                pub(super) unsafe extern "C" fn $c_name($($c_arg: usize,)* status: usize) -> usize {
                    type Function = unsafe extern "C" fn($($c_arg: wrappers!(@word $c_arg),)* usize) -> usize;
                    if let Some(error) = enter($c_at) {
                        if status != 0 {
                            // SAFETY: the caller's place for the status.
                            unsafe { *ptr::with_exposed_provenance_mut::<i32>(status) = error };
                        }
                        return 0;
                    }
                    // SAFETY: the driver's function of that place in the table.
                    let object = unsafe {
                        let function = std::mem::transmute::<usize, Function>(TARGET[$c_at].load(SeqCst));
                        function($($c_arg,)* status)
                    };
                    if object != 0 {
                        count(Kind::$c_kind, 1);
                    }
                    object
                }
            )*
            $(
                pub(super) unsafe extern "C" fn $p_name($($p_arg: usize),*) -> usize {
                    type Function = unsafe extern "C" fn($($p_arg: wrappers!(@word $p_arg)),*) -> usize;
                    if let Some(error) = enter($p_at) {
                        return error as usize;
                    }
                    // SAFETY: as above.
                    unsafe { std::mem::transmute::<usize, Function>(TARGET[$p_at].load(SeqCst))($($p_arg),*) }
                }
            )*
            $(
                pub(super) unsafe extern "C" fn $d_name(
                    device: usize,
                    name: usize,
                    size: usize,
                    place: usize,
                    size_of: usize,
                ) -> usize {
                    type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> usize;
                    if let Some(error) = enter($d_at) {
                        return error as usize;
                    }
                    // SAFETY: as above.
                    let status = unsafe {
                        let function = std::mem::transmute::<usize, Function>(TARGET[$d_at].load(SeqCst));
                        function(device, name, size, place, size_of)
                    };
                    if status as i32 == 0 && place != 0 {
                        // SAFETY: the caller's place, to which the driver has just written what this name has.
                        unsafe { device_says(name as u32, place) };
                    }
                    status
                }
            )*
            $(
                /// The last argument is the address for an event.
                pub(super) unsafe extern "C" fn $e_name($($e_arg: usize,)* event: usize) -> usize {
                    type Function = unsafe extern "C" fn($($e_arg: wrappers!(@word $e_arg),)* usize) -> usize;
                    if let Some(error) = enter($e_at) {
                        return error as usize;
                    }
                    if $e_at == LAUNCH {
                        // The second is the kernel.
                        hold_up([$($e_arg),*][1]);
                    }
                    // SAFETY: as above.
                    let status = unsafe {
                        let function = std::mem::transmute::<usize, Function>(TARGET[$e_at].load(SeqCst));
                        function($($e_arg,)* event)
                    };
                    if status as i32 == 0 && event != 0 {
                        count(Kind::Event, 1);
                    }
                    if status as i32 == 0 && $e_at == SVM_MAP {
                        count(Kind::Mapping, 1);
                    }
                    status
                }
            )*
            $(
                /// The last arguments are the addresses for an event and for the status.
                pub(super) unsafe extern "C" fn $a_name($($a_arg: usize,)* event: usize, status: usize) -> usize {
                    type Function =
                        unsafe extern "C" fn($($a_arg: wrappers!(@word $a_arg),)* usize, usize) -> usize;
                    if let Some(error) = enter($a_at) {
                        if status != 0 {
                            // SAFETY: the caller's place for the status.
                            unsafe { *ptr::with_exposed_provenance_mut::<i32>(status) = error };
                        }
                        return 0;
                    }
                    // SAFETY: as above.
                    let address = unsafe {
                        let function = std::mem::transmute::<usize, Function>(TARGET[$a_at].load(SeqCst));
                        function($($a_arg,)* event, status)
                    };
                    if address != 0 {
                        count(Kind::Mapping, 1);
                        count(Kind::Event, i64::from(event != 0));
                    }
                    address
                }
            )*
            $(
                /// Does its work even if it reports a failure, because mapped memory would leak. Then it returns no
                /// event.
                pub(super) unsafe extern "C" fn $u_name($($u_arg: usize,)* event: usize) -> usize {
                    type Function = unsafe extern "C" fn($($u_arg: wrappers!(@word $u_arg),)* usize) -> usize;
                    let failed = enter($u_at);
                    let event = if failed.is_some() { 0 } else { event };
                    // SAFETY: as above.
                    let status = unsafe {
                        let function = std::mem::transmute::<usize, Function>(TARGET[$u_at].load(SeqCst));
                        function($($u_arg,)* event)
                    };
                    if status as i32 == 0 {
                        count(Kind::Mapping, -1);
                        count(Kind::Event, i64::from(event != 0));
                    }
                    failed.map_or(status, |error| error as usize)
                }
            )*
            $(
                /// Does its work even if it reports a failure, because commands after an event that is not completed
                /// wait for ever.
                pub(super) unsafe extern "C" fn $l_name($($l_arg: usize),*) -> usize {
                    type Function = unsafe extern "C" fn($($l_arg: wrappers!(@word $l_arg)),*) -> usize;
                    let failed = enter($l_at);
                    // SAFETY: as above.
                    let status = unsafe {
                        std::mem::transmute::<usize, Function>(TARGET[$l_at].load(SeqCst))($($l_arg),*)
                    };
                    failed.map_or(status, |error| error as usize)
                }
            )*
            $(
                pub(super) unsafe extern "C" fn $r_name(object: usize) -> usize {
                    wrapped_reference($r_at, object, Kind::$r_kind, 1)
                }
            )*
            $(
                /// Does its work even if it reports a failure, because the object would leak.
                pub(super) unsafe extern "C" fn $f_name(object: usize) -> usize {
                    wrapped_reference($f_at, object, Kind::$f_kind, -1)
                }
            )*
            $(
                /// As above, for a context.
                pub(super) unsafe extern "C" fn $m_name(context: usize, memory: usize) -> usize {
                    type Function = unsafe extern "C" fn(usize, usize) -> usize;
                    let failed = enter($m_at);
                    // SAFETY: as above.
                    let status = unsafe {
                        std::mem::transmute::<usize, Function>(TARGET[$m_at].load(SeqCst))(context, memory)
                    };
                    count(Kind::Memory, -1);
                    failed.map_or(status, |error| error as usize)
                }
            )*

            /// Without a status: null is the only report of a failure.
            pub(super) unsafe extern "C" fn clSVMAlloc(a: usize, b: usize, c: usize, d: usize) -> usize {
                type Function = unsafe extern "C" fn(usize, usize, usize, usize) -> usize;
                if enter(SVM_ALLOC).is_some() {
                    return 0;
                }
                // SAFETY: as above.
                let function = unsafe { std::mem::transmute::<usize, Function>(TARGET[SVM_ALLOC].load(SeqCst)) };
                // SAFETY: as above.
                let memory = unsafe { function(a, b, c, d) };
                if memory != 0 {
                    count(Kind::Memory, 1);
                }
                memory
            }
        }

        /// Every wrapper: place, name, address.
        fn table() -> Vec<(usize, &'static str, usize)> {
            vec![
                $( ($c_at, stringify!($c_name), wrapped::$c_name as *const () as usize), )*
                $( ($p_at, stringify!($p_name), wrapped::$p_name as *const () as usize), )*
                $( ($d_at, stringify!($d_name), wrapped::$d_name as *const () as usize), )*
                $( ($e_at, stringify!($e_name), wrapped::$e_name as *const () as usize), )*
                $( ($a_at, stringify!($a_name), wrapped::$a_name as *const () as usize), )*
                $( ($u_at, stringify!($u_name), wrapped::$u_name as *const () as usize), )*
                $( ($r_at, stringify!($r_name), wrapped::$r_name as *const () as usize), )*
                $( ($l_at, stringify!($l_name), wrapped::$l_name as *const () as usize), )*
                $( ($f_at, stringify!($f_name), wrapped::$f_name as *const () as usize), )*
                $( ($m_at, stringify!($m_name), wrapped::$m_name as *const () as usize), )*
                (SVM_ALLOC, "clSVMAlloc", wrapped::clSVMAlloc as *const () as usize),
            ]
        }
    };
    (@word $arg:ident) => { usize };
}

fn wrapped_reference(at: usize, object: usize, kind: Kind, by: i64) -> usize {
    type Function = unsafe extern "C" fn(usize) -> usize;
    let failed = enter(at);
    if let Some(error) = failed.filter(|_| by > 0) {
        return error as usize;
    }
    // SAFETY: the driver's function of that place in the table.
    let status = unsafe { std::mem::transmute::<usize, Function>(TARGET[at].load(SeqCst))(object) };
    if status as i32 == 0 {
        count(kind, by);
    }
    failed.map_or(status, |error| error as usize)
}

// Places are those of `struct _cl_icd_dispatch` in CL/cl_icd.h.
wrappers! {
    create {
        4 clCreateContext Context (a b c d e);
        9 clCreateCommandQueue Queue (a b c);
        14 clCreateBuffer Mem (a b c d);
        22 clCreateSampler Sampler (a b c d);
        96 clCreateImage Mem (a b c d e);
        26 clCreateProgramWithSource Program (a b c d);
        27 clCreateProgramWithBinary Program (a b c d e f);
        97 clCreateProgramWithBuiltInKernels Program (a b c d);
        138 clCreateProgramWithIL Program (a b c);
        34 clCreateKernel Kernel (a b);
        82 clCreateSubBuffer Mem (a b c d);
        84 clCreateUserEvent Event (a);
        123 clCreateCommandQueueWithProperties Queue (a b c);
        137 clCloneKernel Kernel (a);
        256 clCreateCommandBufferKHR CommandBuffer (a b c);
        266 clHostMemAllocINTEL Memory (a b c d);
        267 clDeviceMemAllocINTEL Memory (a b c d e);
        268 clSharedMemAllocINTEL Memory (a b c d e);
    }
    call {
        0 clGetPlatformIDs (a b c);
        1 clGetPlatformInfo (a b c d e);
        2 clGetDeviceIDs (a b c d e);
        8 clGetContextInfo (a b c d e);
        12 clGetCommandQueueInfo (a b c d e);
        19 clGetSupportedImageFormats (a b c d e f);
        21 clGetImageInfo (a b c d e);
        25 clGetSamplerInfo (a b c d e);
        20 clGetMemObjectInfo (a b c d e);
        30 clBuildProgram (a b c d e f);
        32 clGetProgramInfo (a b c d e);
        33 clGetProgramBuildInfo (a b c d e f);
        38 clSetKernelArg (a b c d);
        39 clGetKernelInfo (a b c d e);
        40 clGetKernelWorkGroupInfo (a b c d e f);
        41 clWaitForEvents (a b);
        42 clGetEventInfo (a b c d e);
        45 clGetEventProfilingInfo (a b c d e);
        46 clFlush (a);
        47 clFinish (a);
        81 clSetEventCallback (a b c d);
        83 clSetMemObjectDestructorCallback (a b c);
        101 clGetKernelArgInfo (a b c d e f);
        134 clSetKernelArgSVMPointer (a b c);
        135 clSetKernelExecInfo (a b c d);
        257 clFinalizeCommandBufferKHR (a);
        258 clCommandNDRangeKernelKHR (a b c d e f g h i j k l);
        261 clCommandBarrierWithWaitListKHR (a b c d e f g);
        262 clCommandCopyBufferKHR (a b c d e f g h i j k l);
        263 clCommandCopyBufferRectKHR (a b c d e f g h i j k l m n o p);
        264 clCommandFillBufferKHR (a b c d e f g h i j k l);
        265 clUpdateMutableCommandsKHR (a b c d);
        270 clSetKernelArgMemPointerINTEL (a b c);
        271 clGetMemAllocInfoINTEL (a b c d e f);
        276 clCommandSVMMemcpyKHR (a b c d e f g h i j);
        277 clCommandSVMMemFillKHR (a b c d e f g h i j k);
        278 clCommandCopyImageKHR (a b c d e f g h i j k l);
        279 clCommandCopyImageToBufferKHR (a b c d e f g h i j k l);
        280 clCommandCopyBufferToImageKHR (a b c d e f g h i j k l);
        281 clCommandFillImageKHR (a b c d e f g h i j k);
        283 clGetDeviceGlobalVariablePointerINTEL (a b c d e);
    }
    device {
        3 clGetDeviceInfo;
    }
    enqueue {
        48 clEnqueueReadBuffer (a b c d e f g h);
        49 clEnqueueWriteBuffer (a b c d e f g h);
        50 clEnqueueCopyBuffer (a b c d e f g h);
        51 clEnqueueReadImage (a b c d e f g h i j);
        52 clEnqueueWriteImage (a b c d e f g h i j);
        53 clEnqueueCopyImage (a b c d e f g h);
        54 clEnqueueCopyImageToBuffer (a b c d e f g h);
        55 clEnqueueCopyBufferToImage (a b c d e f g h);
        59 clEnqueueNDRangeKernel (a b c d e f g h);
        88 clEnqueueCopyBufferRect (a b c d e f g h i j k l);
        102 clEnqueueFillBuffer (a b c d e f g h);
        103 clEnqueueFillImage (a b c d e f g);
        104 clEnqueueMigrateMemObjects (a b c d e f);
        105 clEnqueueMarkerWithWaitList (a b c);
        106 clEnqueueBarrierWithWaitList (a b c);
        129 clEnqueueSVMMemcpy (a b c d e f g);
        130 clEnqueueSVMMemFill (a b c d e f g);
        131 clEnqueueSVMMap (a b c d e f g);
        139 clEnqueueSVMMigrateMem (a b c d e f g);
        259 clEnqueueCommandBufferKHR (a b c d e);
        272 clEnqueueMemcpyINTEL (a b c d e f g);
        273 clEnqueueMemFillINTEL (a b c d e f g);
        274 clEnqueueMigrateMemINTEL (a b c d e f);
        275 clEnqueueMemAdviseINTEL (a b c d e f);
        282 clEnqueueWriteGlobalVariableINTEL (a b c d e f g h i);
    }
    map {
        56 clEnqueueMapBuffer (a b c d e f g h);
        57 clEnqueueMapImage (a b c d e f g h i j);
    }
    unmap {
        58 clEnqueueUnmapMemObject (a b c d e);
        132 clEnqueueSVMUnmap (a b c d);
    }
    last {
        85 clSetUserEventStatus (a b);
    }
    retain {
        6 clRetainContext Context;
        10 clRetainCommandQueue Queue;
        17 clRetainMemObject Mem;
        23 clRetainSampler Sampler;
        28 clRetainProgram Program;
        36 clRetainKernel Kernel;
        43 clRetainEvent Event;
        94 clRetainDevice Device;
    }
    release {
        7 clReleaseContext Context;
        11 clReleaseCommandQueue Queue;
        18 clReleaseMemObject Mem;
        24 clReleaseSampler Sampler;
        29 clReleaseProgram Program;
        37 clReleaseKernel Kernel;
        44 clReleaseEvent Event;
        95 clReleaseDevice Device;
        260 clReleaseCommandBufferKHR CommandBuffer;
    }
    free {
        127 clSVMFree;
        269 clMemFreeINTEL;
    }
}

const CL_DEVICE_ADDRESS_BITS: u32 = 0x100d;
const CL_DEVICE_IMAGE2D_MAX_WIDTH: u32 = 0x1011;
const CL_DEVICE_IMAGE_SUPPORT: u32 = 0x1016;
const CL_DEVICE_MEM_BASE_ADDR_ALIGN: u32 = 0x1019;
const CL_DEVICE_SVM_CAPABILITIES: u32 = 0x1053;
const CL_DEVICE_VERSION: u32 = 0x102f;

/// Whether a variable of the environment is there: each is read once.
macro_rules! is_set {
    ($name:literal) => {{
        static IS: OnceLock<bool> = OnceLock::new();
        *IS.get_or_init(|| std::env::var_os($name).is_some())
    }};
}

/// Changes what a device says of itself.
///
/// # Safety
/// The driver has written there what it has for that name.
unsafe fn device_says(name: u32, place: usize) {
    // SAFETY: a number has the type of its name. The version is a text: `OpenCL 3.0 ...`.
    unsafe {
        match name {
            CL_DEVICE_IMAGE_SUPPORT if is_set!("CLGRAPH_LAYER_HIDES_IMAGES") => {
                *ptr::with_exposed_provenance_mut::<u32>(place) = 0;
            }
            CL_DEVICE_MEM_BASE_ADDR_ALIGN if is_set!("CLGRAPH_LAYER_IS_NARROW") => {
                *ptr::with_exposed_provenance_mut::<u32>(place) = 8 << 16;
            }
            CL_DEVICE_ADDRESS_BITS if is_set!("CLGRAPH_LAYER_IS_NARROW") => {
                *ptr::with_exposed_provenance_mut::<u32>(place) = 32;
            }
            CL_DEVICE_SVM_CAPABILITIES if is_set!("CLGRAPH_LAYER_HIDES_SVM") => {
                *ptr::with_exposed_provenance_mut::<u64>(place) = 0;
            }
            CL_DEVICE_IMAGE2D_MAX_WIDTH if is_set!("CLGRAPH_LAYER_IS_NARROW") => {
                *ptr::with_exposed_provenance_mut::<usize>(place) = 8;
            }
            CL_DEVICE_VERSION if is_set!("CLGRAPH_LAYER_IS_OLD") => {
                *ptr::with_exposed_provenance_mut::<u8>(place + 7) = b'1';
                *ptr::with_exposed_provenance_mut::<u8>(place + 9) = b'2';
            }
            _ => {}
        }
    }
}

/// The place of `clGetKernelInfo` in the table.
const KERNEL_INFO: usize = 39;

/// The place of `clEnqueueNDRangeKernel` in the table.
const LAUNCH: usize = 59;

/// The place of `clEnqueueSVMMap` in the table.
const SVM_MAP: usize = 131;

/// The place of `clSVMAlloc` in the table.
const SVM_ALLOC: usize = 126;

/// The place of `clGetExtensionFunctionAddressForPlatform` in the table.
const ADDRESS: usize = 107;

/// Functions of `cl_khr_command_buffer` are requested by name, and wrapped here.
unsafe extern "C" fn address(platform: usize, name: *const c_char) -> usize {
    type Function = unsafe extern "C" fn(usize, *const c_char) -> usize;
    // SAFETY: the driver's function of that place in the table.
    let found = unsafe { std::mem::transmute::<usize, Function>(TARGET[ADDRESS].load(SeqCst))(platform, name) };
    // SAFETY: the caller's name, which ends with zero.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default();
    match table().into_iter().find(|(at, of, _)| *at >= EXTENSIONS && *of == name) {
        Some((at, _, wrapper)) if found != 0 => {
            TARGET[at].store(found, SeqCst);
            wrapper
        }
        _ => found,
    }
}

/// See `CL/cl_layer.h`.
///
/// # Safety
/// The loader calls it, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetLayerInfo(name: u32, size: usize, value: *mut c_void, size_ret: *mut usize) -> i32 {
    const CL_LAYER_API_VERSION: u32 = 0x4240;
    const CL_LAYER_NAME: u32 = 0x4241;
    let version = 100_u32.to_ne_bytes();
    let answer: &[u8] = match name {
        CL_LAYER_API_VERSION => &version,
        CL_LAYER_NAME => b"clgraph's tests\0",
        _ => return -30,
    };
    // SAFETY: the loader's places, as large as it says.
    unsafe {
        if !size_ret.is_null() {
            *size_ret = answer.len();
        }
        if !value.is_null() {
            if size < answer.len() {
                return -30;
            }
            ptr::copy_nonoverlapping(answer.as_ptr(), value.cast(), answer.len());
        }
    }
    0
}

/// See `CL/cl_layer.h`. Takes the driver's table, and returns one with the wrappers in it.
///
/// # Safety
/// The loader calls it, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayer(
    count: u32,
    target: *const usize,
    count_ret: *mut u32,
    layer: *mut *const usize,
) -> i32 {
    static TABLE: OnceLock<Vec<usize>> = OnceLock::new();
    if count as usize > EXTENSIONS || count_ret.is_null() || layer.is_null() {
        return -30;
    }
    let wrapped = TABLE.get_or_init(|| {
        // SAFETY: the loader's table has that many functions.
        let target = unsafe { std::slice::from_raw_parts(target, count as usize) };
        target.iter().zip(&TARGET).for_each(|(function, place)| place.store(*function, SeqCst));
        let mut wrapped = target.to_vec();
        for (at, _, wrapper) in table() {
            if let Some(place) = wrapped.get_mut(at).filter(|place| **place != 0) {
                *place = wrapper;
            }
        }
        if let Some(place) = wrapped.get_mut(ADDRESS) {
            *place = address as *const () as usize;
        }
        wrapped
    });
    // SAFETY: the loader's places.
    unsafe {
        *count_ret = wrapped.len() as u32;
        *layer = wrapped.as_ptr();
    }
    0
}

/// As [`clInitLayer`], which the newest loaders do not look for.
///
/// # Safety
/// The loader calls it, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayerWithProperties(
    count: u32,
    target: *const usize,
    count_ret: *mut u32,
    layer: *mut *const usize,
    _properties: *const u64,
) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { clInitLayer(count, target, count_ret, layer) }
}

/// See `CL/cl_layer.h`. What the wrappers need stays.
#[unsafe(no_mangle)]
pub extern "C" fn clDeinitLayer() -> i32 {
    0
}

fn place_of(name: *const c_char) -> Option<usize> {
    // SAFETY: the tests give names that end with zero.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    table().into_iter().find(|(_, of, _)| *of == name).map(|(at, ..)| at)
}

/// For the tests: returns the name of the n-th function, or null.
#[unsafe(no_mangle)]
pub extern "C" fn layer_function(index: usize) -> *const c_char {
    static NAMES: OnceLock<Vec<std::ffi::CString>> = OnceLock::new();
    let names = NAMES
        .get_or_init(|| table().into_iter().filter_map(|(_, name, _)| std::ffi::CString::new(name).ok()).collect());
    names.get(index).map_or(ptr::null(), |name| name.as_ptr())
}

/// For the tests: returns how often a function was called since the last [`layer_reset`].
#[unsafe(no_mangle)]
pub extern "C" fn layer_calls(name: *const c_char) -> u32 {
    place_of(name).map_or(0, |at| CALLS[at].load(SeqCst))
}

/// For the tests: sets the counts of calls to zero, and makes no function fail.
#[unsafe(no_mangle)]
pub extern "C" fn layer_reset() {
    ARMED.store(-1, SeqCst);
    CALLS.iter().for_each(|calls| calls.store(0, SeqCst));
}

/// For the tests: makes a call of a function fail, after `skip` more that do not; or never return, with the largest status.
#[unsafe(no_mangle)]
pub extern "C" fn layer_fail(name: *const c_char, skip: u32, status: i32) {
    if let Some(at) = place_of(name) {
        SKIP.store(skip, SeqCst);
        STATUS.store(status, SeqCst);
        ARMED.store(at as i32, SeqCst);
    }
}

/// For the tests: from now on launches of fused kernels take long, or do not.
#[unsafe(no_mangle)]
pub extern "C" fn layer_slows_fused(slows: bool) {
    SLOWS.store(slows, SeqCst);
}

/// For the tests: returns whether a call hangs.
#[unsafe(no_mangle)]
pub extern "C" fn layer_hangs() -> bool {
    HANGS.load(SeqCst)
}

/// For the tests: returns whether a call that was to fail has failed.
#[unsafe(no_mangle)]
pub extern "C" fn layer_has_failed() -> bool {
    ARMED.load(SeqCst) == -1
}

/// For the tests: returns how many references to objects of the n-th kind were not released.
#[unsafe(no_mangle)]
pub extern "C" fn layer_live(kind: usize) -> i64 {
    LIVE.get(kind).map_or(0, |live| live.load(SeqCst))
}

/// For the tests: returns the name of the n-th kind, or null.
#[unsafe(no_mangle)]
pub extern "C" fn layer_kind(kind: usize) -> *const c_char {
    KINDS.get(kind).map_or(ptr::null(), |name| name.as_ptr())
}
