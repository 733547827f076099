//! Which arguments the program's kernels have. No driver can be asked for that.
//!
//! It is looked at from when the program asks for a function of command buffers. Of kernels that were made before, and where
//! functions set arguments that the layer does not see, nothing is known: then drivers say what is missing, when it runs.
#![allow(unsafe_code, non_snake_case)]

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opencl_sys::{
    CL_INVALID_OPERATION, CL_KERNEL_NUM_ARGS, CL_PROGRAM_NUM_KERNELS, CL_SUCCESS, cl_int, cl_kernel, cl_program,
    cl_uint,
};

use super::{calls, query};
use crate::command_buffer::arguments::Missing;
use crate::ffi::{quietly, targets::next};

/// Nothing is looked at.
const OFF: u8 = 0;
const ON: u8 = 1;
/// Arguments may be set where the layer does not see it.
const BLIND: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(OFF);
static KERNELS: Mutex<Option<HashMap<usize, Missing>>> = Mutex::new(None);

fn kernels() -> MutexGuard<'static, Option<HashMap<usize, Missing>>> {
    KERNELS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program may record commands from now on.
pub(super) fn begin() {
    let _ = STATE.compare_exchange(OFF, ON, Ordering::AcqRel, Ordering::Relaxed);
}

/// The program has a function that sets arguments, and is not the layer's.
pub(super) fn are_set_elsewhere() {
    STATE.store(BLIND, Ordering::Release);
}

fn is_on() -> bool {
    STATE.load(Ordering::Acquire) == ON
}

/// Returns which of a kernel's arguments are known to be missing.
pub(super) fn missing(kernel: cl_kernel, count: cl_uint) -> Missing {
    if !is_on() || count == 0 {
        return Missing::default();
    }
    kernels().as_ref().and_then(|kernels| kernels.get(&kernel.addr()).cloned()).unwrap_or_default()
}

/// A kernel was made. Its handle may have been another one's.
fn made(kernel: cl_kernel, missing: Option<Missing>) {
    let mut kernels = kernels();
    let kernels = kernels.get_or_insert_default();
    match missing {
        Some(missing) => kernels.insert(kernel.addr(), missing),
        None => kernels.remove(&kernel.addr()),
    };
}

/// # Safety
/// A new kernel, or null.
unsafe fn made_without(kernel: cl_kernel) {
    if !kernel.is_null() {
        // SAFETY: a kernel.
        let count = unsafe { query::one::<_, cl_uint>(calls::clGetKernelInfo, kernel, CL_KERNEL_NUM_ARGS) };
        made(kernel, count.ok().map(Missing::all));
    }
}

fn set(kernel: cl_kernel, argument: cl_uint) {
    if let Some(missing) = kernels().as_mut().and_then(|kernels| kernels.get_mut(&kernel.addr())) {
        missing.set(argument);
    }
}

unsafe extern "system" fn clCreateKernel(program: cl_program, name: *const c_char, status: *mut cl_int) -> cl_kernel {
    type Function = unsafe extern "system" fn(cl_program, *const c_char, *mut cl_int) -> cl_kernel;
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(34) }) else { return ptr::null_mut() };
    // SAFETY: rule V.
    let kernel = unsafe { function(program, name, status) };
    if is_on() {
        // SAFETY: rule A.
        quietly(|| unsafe { made_without(kernel) });
    }
    kernel
}

unsafe extern "system" fn clCreateKernelsInProgram(
    program: cl_program,
    room: cl_uint,
    kernels: *mut cl_kernel,
    count: *mut cl_uint,
) -> cl_int {
    type Function = unsafe extern "system" fn(cl_program, cl_uint, *mut cl_kernel, *mut cl_uint) -> cl_int;
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(35) }) else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    let status = unsafe { function(program, room, kernels, count) };
    if status == CL_SUCCESS && is_on() && !kernels.is_null() {
        quietly(|| {
            // SAFETY: rule A. The program need not have asked how many there are.
            let all = unsafe { query::one::<_, usize>(calls::clGetProgramInfo, program, CL_PROGRAM_NUM_KERNELS) };
            for at in 0..all.unwrap_or(0).min(room as usize) {
                // SAFETY: the driver has written that many.
                unsafe { made_without(kernels.add(at).read()) };
            }
        });
    }
    status
}

unsafe extern "system" fn clCloneKernel(from: cl_kernel, status: *mut cl_int) -> cl_kernel {
    type Function = unsafe extern "system" fn(cl_kernel, *mut cl_int) -> cl_kernel;
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(137) }) else { return ptr::null_mut() };
    // SAFETY: rule V.
    let kernel = unsafe { function(from, status) };
    if is_on() && !kernel.is_null() {
        quietly(|| {
            let missing = kernels().as_ref().and_then(|kernels| kernels.get(&from.addr()).cloned());
            made(kernel, missing);
        });
    }
    kernel
}

unsafe extern "system" fn clSetKernelArg(
    kernel: cl_kernel,
    index: cl_uint,
    size: usize,
    value: *const c_void,
) -> cl_int {
    type Function = unsafe extern "system" fn(cl_kernel, cl_uint, usize, *const c_void) -> cl_int;
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(38) }) else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    let status = unsafe { function(kernel, index, size, value) };
    if status == CL_SUCCESS && is_on() {
        quietly(|| set(kernel, index));
    }
    status
}

unsafe extern "system" fn clSetKernelArgSVMPointer(kernel: cl_kernel, index: cl_uint, value: *const c_void) -> cl_int {
    type Function = unsafe extern "system" fn(cl_kernel, cl_uint, *const c_void) -> cl_int;
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(134) }) else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    let status = unsafe { function(kernel, index, value) };
    if status == CL_SUCCESS && is_on() {
        quietly(|| set(kernel, index));
    }
    status
}

pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
    vec![
        (34, clCreateKernel as *const () as *mut c_void),
        (35, clCreateKernelsInProgram as *const () as *mut c_void),
        (38, clSetKernelArg as *const () as *mut c_void),
        (134, clSetKernelArgSVMPointer as *const () as *mut c_void),
        (137, clCloneKernel as *const () as *mut c_void),
    ]
}
