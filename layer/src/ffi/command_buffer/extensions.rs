//! What programs read of the extensions, and how they get the functions.
#![allow(unsafe_code, non_snake_case)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use opencl_sys::{
    CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR, CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR,
    CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR,
    CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR,
    CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR, CL_DEVICE_COMMAND_BUFFER_SYNC_DEVICES_KHR,
    CL_DEVICE_EXTENSIONS, CL_DEVICE_EXTENSIONS_WITH_VERSION, CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR,
    CL_DEVICE_PLATFORM, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, CL_DEVICE_TYPE_ALL, CL_INVALID_OPERATION, CL_INVALID_VALUE,
    CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR, CL_PLATFORM_EXTENSIONS, CL_PLATFORM_EXTENSIONS_WITH_VERSION,
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROFILING_ENABLE, CL_SUCCESS, cl_device_id, cl_int,
    cl_platform_id, cl_uint, cl_ulong,
};

use super::{buffer, calls, capture, enqueue, enter, kernels, query, record, update, visit};
use crate::command_buffer::properties::FIELDS;
use crate::command_buffer::version::{self, Native, Version};
use crate::command_buffer::{Checked, ensure};
use crate::ffi::targets::{next, target};
use crate::ffi::{process, quietly, watch};
use crate::settings::Serves;

/// `CL_COMMAND_BUFFER_CAPABILITY_OUT_OF_ORDER_KHR`, before revision 0.9.6.
const OUT_OF_ORDER: cl_ulong = 1 << 3;
/// The first version of OpenCL in which kernels can be cloned.
const SINCE: (u32, u32) = (2, 1);

/// What the environment asked for.
static ASKED: OnceLock<(Serves, Version)> = OnceLock::new();

/// Begins to answer for the extensions.
pub(in crate::ffi) fn begin(serves: Serves, version: Version) {
    let _ = ASKED.set((serves, version));
}

fn version() -> Version {
    ASKED.get().map_or(Version::NEWEST, |(_, version)| *version)
}

/// Whether the layer answers for the devices of a platform that can have it: see [`Serves`].
fn serves(platform: cl_platform_id) -> bool {
    static KNOWN: Mutex<Vec<(usize, bool)>> = Mutex::new(Vec::new());
    if platform.is_null() {
        return false;
    }
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, serves)) = known().iter().find(|(of, _)| *of == platform.addr()) {
        return *serves;
    }
    // SAFETY: drivers check that it is a platform.
    let Ok(devices) = (unsafe { devices(platform) }) else { return false };
    let can = |device: &cl_device_id| {
        // SAFETY: devices of the platform.
        unsafe { query::version(*device) >= Some(SINCE) }
    };
    // SAFETY: as above.
    let native = |device: &cl_device_id| version::native(&unsafe { query::extensions_with_version(*device) });
    if ASKED.get().is_some_and(|(serves, _)| *serves == Serves::Always)
        && !devices.is_empty()
        && !devices.iter().any(can)
    {
        // SAFETY: as above.
        let version = devices.first().and_then(|device| unsafe { query::version(*device) });
        let of =
            version.map_or("no version that is known".to_owned(), |(major, minor)| format!("OpenCL {major}.{minor}"));
        process::without_signals(|| {
            watch::say(&format!(
                "clgraph_layer: the devices of a platform have {of}, and get no command buffers: kernels cannot be cloned before OpenCL 2.1\n"
            ));
        });
    }
    let serves = devices.iter().any(can)
        && clones_kernels()
        && match ASKED.get() {
            Some((Serves::Always, _)) => true,
            Some((Serves::Auto, _)) => {
                !devices.iter().any(|device| native(device) == Native::WithoutProperties)
                    && !devices.iter().all(|device| native(device) == Native::Both)
            }
            Some((Serves::Never, _)) | None => false,
        };
    known().push((platform.addr(), serves));
    serves
}

/// # Safety
/// Drivers check that it is a platform.
unsafe fn devices(platform: cl_platform_id) -> Checked<Vec<cl_device_id>> {
    let mut count = 0;
    // SAFETY: the caller's promise; the number is written.
    let status = unsafe { calls::clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, ptr::null_mut(), &raw mut count) };
    ensure(status == CL_SUCCESS, status)?;
    let mut devices = vec![ptr::null_mut(); count as usize];
    // SAFETY: there is room for so many.
    let status =
        unsafe { calls::clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.as_mut_ptr(), ptr::null_mut()) };
    ensure(status == CL_SUCCESS, status)?;
    Ok(devices)
}

/// Whether the layer answers for a device.
///
/// # Safety
/// What the program gave for a device. Drivers check that it is one.
pub(super) unsafe fn serves_device(device: cl_device_id) -> bool {
    // SAFETY: the caller's promise.
    let platform = unsafe { query::one(calls::clGetDeviceInfo, device, CL_DEVICE_PLATFORM) };
    // SAFETY: a device.
    platform.is_ok_and(serves) && unsafe { query::version(device) >= Some(SINCE) }
}

type Info<H> = unsafe extern "system" fn(H, cl_uint, usize, *mut c_void, *mut usize) -> cl_int;

/// # Safety
/// As for the C function.
unsafe extern "system" fn clGetDeviceInfo(
    device: cl_device_id,
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    let is_ours = matches!(
        name,
        CL_DEVICE_EXTENSIONS
            | CL_DEVICE_EXTENSIONS_WITH_VERSION
            | CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR
            | CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR
            | CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR
            | CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR
            | CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR
            | CL_DEVICE_COMMAND_BUFFER_SYNC_DEVICES_KHR
    );
    // SAFETY: what the program gave.
    if is_ours && !device.is_null() && quietly(|| unsafe { serves_device(device) }).unwrap_or(false) {
        // SAFETY: a device, and the caller's places.
        return enter(|| unsafe {
            let ask = calls::clGetDeviceInfo;
            let status = match name {
                CL_DEVICE_EXTENSIONS => query::answer(&text(&query::list(ask, device, name)?), size, value, size_ret),
                CL_DEVICE_EXTENSIONS_WITH_VERSION => {
                    let list = query::list(ask, device, name)?;
                    query::answer(&version::extensions_with_version(&list, version()), size, value, size_ret)
                }
                CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR => {
                    query::answer(&[capabilities(device)], size, value, size_ret)
                }
                CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR => {
                    let host: cl_ulong = query::one(ask, device, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES)?;
                    let known = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
                    query::answer(&[host & known], size, value, size_ret)
                }
                CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR => query::answer(&[FIELDS], size, value, size_ret),
                // The driver's, of the extension for several devices, which is not listed.
                CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR | CL_DEVICE_COMMAND_BUFFER_SYNC_DEVICES_KHR => {
                    CL_INVALID_VALUE
                }
                _ => query::answer(&[0 as cl_ulong], size, value, size_ret),
            };
            ensure(status == CL_SUCCESS, status)
        });
    }
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Info<cl_device_id>>(3) }) else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    unsafe { function(device, name, size, value, size_ret) }
}

/// # Safety
/// It is a device.
unsafe fn capabilities(device: cl_device_id) -> cl_ulong {
    let mut bits = CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR | CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR;
    // SAFETY: the caller's promise.
    unsafe {
        if query::has_device_enqueue(device) {
            bits |= CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR;
        }
        let host: Checked<cl_ulong> = query::one(calls::clGetDeviceInfo, device, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES);
        let out_of_order = host.is_ok_and(|host| host & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0);
        if out_of_order && version().has_out_of_order_capability() {
            bits |= OUT_OF_ORDER;
        }
    }
    bits
}

/// Returns a driver's list of extensions, rewritten, with a 0 at its end.
fn text(list: &[u8]) -> Vec<u8> {
    let list = list.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut list = version::extensions(&String::from_utf8_lossy(list)).into_bytes();
    list.push(0);
    list
}

/// # Safety
/// As for the C function.
unsafe extern "system" fn clGetPlatformInfo(
    platform: cl_platform_id,
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    let is_ours = matches!(
        name,
        CL_PLATFORM_EXTENSIONS | CL_PLATFORM_EXTENSIONS_WITH_VERSION | CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR
    );
    // A platform lists what all its devices have.
    let all = || -> Checked<bool> {
        if !serves(platform) {
            return Ok(false);
        }
        // SAFETY: the driver knows the platform.
        let devices = unsafe { devices(platform) }?;
        // SAFETY: its devices.
        Ok(devices.iter().all(|device| unsafe { query::version(*device) } >= Some(SINCE)))
    };
    if is_ours && quietly(all).is_some_and(|all| all == Ok(true)) {
        // SAFETY: a platform, and the caller's places.
        return enter(|| unsafe {
            // As for devices.
            ensure(name != CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR, CL_INVALID_VALUE)?;
            let list = query::list(calls::clGetPlatformInfo, platform, name)?;
            let status = if name == CL_PLATFORM_EXTENSIONS {
                query::answer(&text(&list), size, value, size_ret)
            } else {
                query::answer(&version::extensions_with_version(&list, version()), size, value, size_ret)
            };
            ensure(status == CL_SUCCESS, status)
        });
    }
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Info<cl_platform_id>>(1) }) else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    unsafe { function(platform, name, size, value, size_ret) }
}

/// Returns the layer's function of a name.
fn function(name: &CStr) -> Option<*mut c_void> {
    /// Those that record, in the form that the reported revision has.
    macro_rules! form {
        ($with:ident, $without:ident) => {
            if version().has_properties() {
                record::$with as *const () as *mut c_void
            } else {
                record::$without as *const () as *mut c_void
            }
        };
    }
    Some(match name.to_bytes() {
        b"clCreateCommandBufferKHR" => buffer::create as *const () as *mut c_void,
        b"clRetainCommandBufferKHR" => buffer::retain as *const () as *mut c_void,
        b"clReleaseCommandBufferKHR" => buffer::release as *const () as *mut c_void,
        b"clFinalizeCommandBufferKHR" => buffer::finalize as *const () as *mut c_void,
        b"clGetCommandBufferInfoKHR" => buffer::info as *const () as *mut c_void,
        b"clEnqueueCommandBufferKHR" => enqueue::enqueue as *const () as *mut c_void,
        b"clUpdateMutableCommandsKHR" => update::update as *const () as *mut c_void,
        b"clGetMutableCommandInfoKHR" => update::info as *const () as *mut c_void,
        b"clBeginCaptureCLG" => capture::begin as *const () as *mut c_void,
        b"clEndCaptureCLG" => capture::end as *const () as *mut c_void,
        b"clGetCaptureInfoCLG" => capture::info as *const () as *mut c_void,
        b"clGetCapturedCommandsCLG" => capture::commands as *const () as *mut c_void,
        b"clGetCaptureTableCLG" => visit::table as *const () as *mut c_void,
        b"clCommandNDRangeKernelKHR" => record::launch as *const () as *mut c_void,
        b"clCommandBarrierWithWaitListKHR" => form!(barrier, barrier_without),
        b"clCommandCopyBufferKHR" => form!(copy_buffer, copy_buffer_without),
        b"clCommandCopyBufferRectKHR" => form!(copy_buffer_rect, copy_buffer_rect_without),
        b"clCommandCopyBufferToImageKHR" => form!(copy_buffer_to_image, copy_buffer_to_image_without),
        b"clCommandCopyImageKHR" => form!(copy_image, copy_image_without),
        b"clCommandCopyImageToBufferKHR" => form!(copy_image_to_buffer, copy_image_to_buffer_without),
        b"clCommandFillBufferKHR" => form!(fill_buffer, fill_buffer_without),
        b"clCommandFillImageKHR" => form!(fill_image, fill_image_without),
        b"clCommandSVMMemcpyKHR" => form!(copy_addresses, copy_addresses_without),
        b"clCommandSVMMemFillKHR" => form!(fill_addresses, fill_addresses_without),
        _ => return None,
    })
}

/// Whether the loader has `clCloneKernel`: one from before OpenCL 2.1 has not.
fn clones_kernels() -> bool {
    // SAFETY: rule T; it is not called.
    unsafe { target::<unsafe extern "system" fn()>(137) }.is_some()
}

/// Looks at a name that the program asks for. Returns the layer's function, if it is one of its own and `serves` says so; and null for
/// one of the driver's that takes the driver's command buffers: there are none, where the layer serves.
///
/// # Safety
/// A name, or null.
unsafe fn asked(name: *const c_char, serves: impl FnOnce() -> bool) -> Option<*mut c_void> {
    if name.is_null() {
        return None;
    }
    quietly(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(name) };
        let Some(function) = function(name) else {
            return (version::takes_command_buffers(name.to_bytes()) && serves()).then_some(ptr::null_mut());
        };
        if !serves() {
            return None;
        }
        watch::record(|recorder| recorder.function_was_asked_for(name.to_bytes()));
        if matches!(name.to_bytes(), b"clCreateCommandBufferKHR" | b"clBeginCaptureCLG" | b"clGetCaptureTableCLG") {
            kernels::begin();
        }
        Some(function)
    })
    .flatten()
}

/// Looks at a function of the driver's that the program gets. Returns one that is to stand in its place.
///
/// # Safety
/// A name, or null, and what the driver has for it.
unsafe fn got(name: *const c_char, function: *mut c_void) -> *mut c_void {
    if name.is_null() || function.is_null() {
        return function;
    }
    quietly(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        if kernels::makes_objects(name) {
            kernels::make_elsewhere();
        }
        // SAFETY: the driver's function of that name.
        if name.starts_with(b"clSetKernel") { unsafe { kernels::set_elsewhere(name, function) } } else { function }
    })
    .unwrap_or(function)
}

/// # Safety
/// As for the C function.
unsafe extern "system" fn clGetExtensionFunctionAddressForPlatform(
    platform: cl_platform_id,
    name: *const c_char,
) -> *mut c_void {
    // SAFETY: the caller's name.
    if let Some(function) = unsafe { asked(name, || serves(platform)) } {
        return function;
    }
    type Function = unsafe extern "system" fn(cl_platform_id, *const c_char) -> *mut c_void;
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(107) }) else { return ptr::null_mut() };
    // SAFETY: rule V, and the caller's name.
    unsafe { got(name, function(platform, name)) }
}

/// The function from before OpenCL 1.2 has no platform: the layer's functions are those of all platforms that it serves.
///
/// # Safety
/// As for the C function.
unsafe extern "system" fn clGetExtensionFunctionAddress(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's name.
    if let Some(function) = unsafe { asked(name, serves_any) } {
        return function;
    }
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<unsafe extern "system" fn(*const c_char) -> *mut c_void>(65) }) else {
        return ptr::null_mut();
    };
    // SAFETY: rule V, and the caller's name.
    unsafe { got(name, function(name)) }
}

fn serves_any() -> bool {
    let mut count = 0;
    // SAFETY: the number is written.
    let status = unsafe { calls::clGetPlatformIDs(0, ptr::null_mut(), &raw mut count) };
    let mut platforms = vec![ptr::null_mut(); if status == CL_SUCCESS { count as usize } else { 0 }];
    // SAFETY: there is room for so many.
    let status = unsafe { calls::clGetPlatformIDs(count, platforms.as_mut_ptr(), ptr::null_mut()) };
    status == CL_SUCCESS && platforms.into_iter().any(serves)
}

pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
    vec![
        (1, clGetPlatformInfo as *const () as *mut c_void),
        (3, clGetDeviceInfo as *const () as *mut c_void),
        (65, clGetExtensionFunctionAddress as *const () as *mut c_void),
        (107, clGetExtensionFunctionAddressForPlatform as *const () as *mut c_void),
    ]
}
