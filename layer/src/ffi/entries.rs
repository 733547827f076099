//! The entry points that loaders look for.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use opencl_sys::{
    CL_INVALID_OPERATION, CL_INVALID_PROPERTY, CL_INVALID_VALUE, CL_OUT_OF_HOST_MEMORY, CL_SUCCESS, cl_int,
    cl_properties, cl_uint,
};

use super::{command_buffer, observe, process, quietly, targets, watch};
use crate::settings::{Report, Serves, Settings};

const CL_LAYER_API_VERSION: cl_uint = 0x4240;
const CL_LAYER_NAME: cl_uint = 0x4241;
const CL_LAYER_API_VERSION_100: cl_uint = 100;
const NAME: &CStr = c"clgraph_layer";

/// The wrappers stand in a loader's table: there is one set of them, and one table that they call.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// See CL/cl_layer.h: tells the version of the interface, and the layer's name.
///
/// # Safety
/// `value` is null or has `size` bytes; `size_ret` is null or has room.
#[unsafe(no_mangle)]
unsafe extern "system" fn clGetLayerInfo(
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    let version = CL_LAYER_API_VERSION_100.to_ne_bytes();
    let answer: &[u8] = match name {
        CL_LAYER_API_VERSION => &version,
        CL_LAYER_NAME => NAME.to_bytes_with_nul(),
        _ => return CL_INVALID_VALUE,
    };
    if !value.is_null() {
        if size < answer.len() {
            return CL_INVALID_VALUE;
        }
        // SAFETY: there is room for `size` bytes.
        unsafe { ptr::copy_nonoverlapping(answer.as_ptr(), value.cast(), answer.len()) };
    }
    if !size_ret.is_null() {
        // SAFETY: the caller's place.
        unsafe { size_ret.write(answer.len()) };
    }
    CL_SUCCESS
}

/// See CL/cl_layer.h: gives the loader the layer's table. Older loaders call it.
///
/// # Safety
/// `target` has `count` entries; the other two are null or have room.
#[unsafe(no_mangle)]
unsafe extern "system" fn clInitLayer(
    count: cl_uint,
    target: *const *mut c_void,
    count_ret: *mut cl_uint,
    table_ret: *mut *const *mut c_void,
) -> cl_int {
    // SAFETY: as the caller promises.
    quietly(|| unsafe { init(count, target, count_ret, table_ret) }).unwrap_or(CL_OUT_OF_HOST_MEMORY)
}

/// As [`clInitLayer`]; newer loaders call it. There are no properties yet.
///
/// # Safety
/// As for [`clInitLayer`]; `properties` is null or ends with 0.
#[unsafe(no_mangle)]
unsafe extern "system" fn clInitLayerWithProperties(
    count: cl_uint,
    target: *const *mut c_void,
    count_ret: *mut cl_uint,
    table_ret: *mut *const *mut c_void,
    properties: *const cl_properties,
) -> cl_int {
    // SAFETY: a list has at least the 0.
    if !properties.is_null() && unsafe { properties.read() } != 0 {
        return CL_INVALID_PROPERTY;
    }
    // SAFETY: as the caller promises.
    unsafe { clInitLayer(count, target, count_ret, table_ret) }
}

/// The newest loaders call it before they close the layer: what can be reported is reported. Functions that are called
/// afterwards are not reported any more.
#[unsafe(no_mangle)]
extern "system" fn clDeinitLayer() -> cl_int {
    let done = quietly(|| {
        watch::end();
        TAKEN.store(false, Ordering::Release);
    });
    done.map_or(CL_OUT_OF_HOST_MEMORY, |()| CL_SUCCESS)
}

/// # Safety
/// As for [`clInitLayer`].
unsafe fn init(
    count: cl_uint,
    target: *const *mut c_void,
    count_ret: *mut cl_uint,
    table_ret: *mut *const *mut c_void,
) -> cl_int {
    if target.is_null() || count_ret.is_null() || table_ret.is_null() {
        return CL_INVALID_VALUE;
    }
    let settings = settings();
    let (serves, reports) = (settings.serves != Serves::Never, settings.report != Report::Off);
    let entries = if !serves && !reports {
        // Nothing is wrapped, for any number of loaders.
        0
    } else {
        if TAKEN.swap(true, Ordering::AcqRel) {
            // With two targets the wrappers would call the wrong one, or themselves for ever if the layer is named twice.
            watch::record(|recorder| recorder.refused = true);
            return CL_INVALID_OPERATION;
        }
        let observers = if reports { observe::wrappers() } else { Vec::new() };
        let wrappers = if serves { command_buffer::wrappers() } else { Vec::new() };
        // SAFETY: the loader's table; wrappers with their places.
        let entries = unsafe { targets::take(count as usize, target, &observers, &wrappers) };
        if serves {
            command_buffer::begin(settings.serves, settings.version);
        }
        if reports {
            watch::begin(&settings.report);
            process::at_end_and_in_children(watch::ended, watch::forked);
        }
        entries
    };
    // SAFETY: the loader's places.
    unsafe {
        count_ret.write(entries as cl_uint);
        table_ret.write(targets::table());
    }
    CL_SUCCESS
}

/// Returns what the environment asked for when it was read: once.
fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let variable = |name: &str| std::env::var_os(name);
        let folder = std::env::current_dir().ok();
        let (mut settings, faults) = Settings::read(variable, folder.as_deref());
        if matches!(settings.report, Report::File(_)) && process::is_privileged() {
            settings.report = Report::Off;
        }
        for fault in faults {
            process::without_signals(|| watch::say(&format!("clgraph_layer: {fault}\n")));
        }
        settings
    })
}
