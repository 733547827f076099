//! Which arguments the program's kernels have. No driver can be asked for that.
//!
//! It is looked at from when the program asks for a function of command buffers. Of kernels that were made before, and where
//! functions set arguments that the layer does not see, nothing is known: then drivers say what is missing, when it runs, and the
//! program has to keep the memory.
#![allow(unsafe_code, non_snake_case)]

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use opencl_sys::{
    CL_INVALID_OPERATION, CL_KERNEL_NUM_ARGS, CL_PROGRAM_NUM_KERNELS, CL_SUCCESS, cl_context, cl_int, cl_kernel,
    cl_mem, cl_program, cl_sampler, cl_uint, cl_ulong,
};

use super::owned::{Memory, Sampler};
use super::{calls, query};
use crate::command_buffer::Checked;
use crate::command_buffer::arguments::{Value, Values};
use crate::ffi::{quietly, targets::next};

/// Nothing is looked at.
const OFF: u8 = 0;
const ON: u8 = 1;
/// Arguments may be set where the layer does not see it.
const BLIND: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(OFF);
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// What was seen.
#[derive(Default)]
struct Known {
    kernels: HashMap<usize, Arguments>,
    /// Memory objects and samplers, with the references that the program has to each.
    objects: HashMap<usize, Object>,
}

/// An object that arguments can be.
struct Object {
    references: usize,
    is_sampler: bool,
}

/// A reference to an object that an argument is.
#[derive(Debug)]
pub(super) enum Kept {
    Memory(Memory),
    Sampler(Sampler),
}

impl Kept {
    /// Holds a reference of its own.
    ///
    /// # Safety
    /// The program has references to the object.
    unsafe fn also(handle: usize, is_sampler: bool) -> Option<Self> {
        let handle = ptr::without_provenance_mut(handle);
        // SAFETY: the caller's promise.
        unsafe {
            if is_sampler { Sampler::also(handle).map(Self::Sampler) } else { Memory::also(handle).map(Self::Memory) }
                .ok()
        }
    }

    /// Holds another reference.
    pub(super) fn again(&self) -> Checked<Self> {
        // SAFETY: an object that is held.
        unsafe {
            match self {
                Self::Memory(memory) => Memory::also(memory.raw()).map(Self::Memory),
                Self::Sampler(sampler) => Sampler::also(sampler.raw()).map(Self::Sampler),
            }
        }
    }
}

/// The arguments of a kernel.
#[derive(Clone, Default)]
struct Arguments {
    /// Objects by their handles.
    values: Values<usize>,
    /// `clSetKernelExecInfo` was called.
    has_exec_info: bool,
    /// The references that the program has to the kernel.
    references: usize,
    /// How often the kernel was changed.
    version: u64,
}

fn known() -> MutexGuard<'static, Option<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program may record commands from now on.
pub(super) fn begin() {
    let _ = STATE.compare_exchange(OFF, ON, Ordering::AcqRel, Ordering::Relaxed);
}

/// An object that arguments can be was made when nothing was looked at, or may be made where nothing looks.
static MADE_BEFORE: AtomicBool = AtomicBool::new(false);

/// Whether a function of this name makes objects that arguments can be.
pub(super) fn makes_objects(name: &[u8]) -> bool {
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
    let makes = name.starts_with(b"clCreate") || name.starts_with(b"clImport");
    makes
        && [&b"Buffer"[..], b"Image", b"From", b"Pipe", b"Sampler", b"Mem"].into_iter().any(has)
        && ![&b"CommandBuffer"[..], b"Event", b"Context"].into_iter().any(has)
}

/// The program gets a driver's function that makes objects, perhaps some that arguments can be.
pub(super) fn make_elsewhere() {
    MADE_BEFORE.store(true, Ordering::Relaxed);
}

/// Whether eight bytes that are no object's handle may be one all the same: of an object that was not seen to be made.
pub(super) fn may_not_know(bytes: &[u8]) -> bool {
    MADE_BEFORE.load(Ordering::Relaxed) && bytes.iter().any(|byte| *byte != 0)
}

/// The program gets a driver's function that sets arguments. Returns the layer's in its place, which sees what it sets; or the same,
/// and from then on nothing is known, as of a function that the layer does not know.
///
/// # Safety
/// The function has the name.
pub(super) unsafe fn set_elsewhere(name: &[u8], function: *mut c_void) -> *mut c_void {
    if name == b"clSetKernelArgMemPointerINTEL"
        // SAFETY: its signature (cl_ext.h).
        && let Some(wrapper) = by_pointer(unsafe { std::mem::transmute::<*mut c_void, ByPointer>(function) })
    {
        return wrapper as *const () as *mut c_void;
    }
    STATE.store(BLIND, Ordering::Release);
    function
}

type ByPointer = unsafe extern "system" fn(cl_kernel, cl_uint, *const c_void) -> cl_int;

/// The drivers' functions that set pointers. Each has a wrapper of its own, as a call does not say which driver it is for.
static BY_POINTER: [OnceLock<ByPointer>; 4] = [const { OnceLock::new() }; 4];

fn by_pointer(function: ByPointer) -> Option<ByPointer> {
    let wrappers: [ByPointer; 4] = [set_by_pointer::<0>, set_by_pointer::<1>, set_by_pointer::<2>, set_by_pointer::<3>];
    let is_it = |of: &OnceLock<ByPointer>| {
        let of: ByPointer = *of.get_or_init(|| function);
        std::ptr::fn_addr_eq(of, function)
    };
    Some(wrappers[BY_POINTER.iter().position(is_it)?])
}

unsafe extern "system" fn set_by_pointer<const OF: usize>(
    kernel: cl_kernel,
    index: cl_uint,
    value: *const c_void,
) -> cl_int {
    let Some(function) = BY_POINTER[OF].get() else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    let status = unsafe { function(kernel, index, value) };
    if status == CL_SUCCESS && is_on() {
        quietly(|| change(kernel, |arguments, _| arguments.values.set(index, Value::IntelPointer(value.addr()))));
    }
    status
}

fn is_on() -> bool {
    STATE.load(Ordering::Acquire) == ON
}

/// Returns a number that changes whenever the kernel does, if that is seen.
pub(super) fn version(kernel: cl_kernel) -> Option<u64> {
    if !is_on() {
        return None;
    }
    known().as_ref()?.kernels.get(&kernel.addr()).map(|arguments| arguments.version)
}

/// What is known of a kernel's arguments, with references to the objects that they are.
#[derive(Default)]
pub(super) struct Held {
    pub(super) values: Values<Kept>,
    pub(super) has_exec_info: bool,
}

/// Returns what is known of a kernel's arguments.
pub(super) fn arguments(kernel: cl_kernel) -> Held {
    if !is_on() {
        return Held::default();
    }
    let (has_exec_info, live) = {
        let known = known();
        let Some(Known { kernels, objects }) = known.as_ref() else { return Held::default() };
        let Some(of) = kernels.get(&kernel.addr()) else { return Held::default() };
        let live = of.values.map(|handle| Some((*handle, objects.get(handle)?.is_sampler)));
        (of.has_exec_info, live)
    };
    // SAFETY: objects that the program has as long as it may launch the kernel.
    let values = live.map(|(handle, is_sampler)| unsafe { Kept::also(*handle, *is_sampler) });
    Held { values, has_exec_info }
}

/// Returns whether an object is a sampler, if it was seen made.
pub(super) fn is_sampler(handle: usize) -> Option<bool> {
    if !is_on() {
        return None;
    }
    known().as_ref()?.objects.get(&handle).map(|object| object.is_sampler)
}

/// Returns what a value for an argument is, with a reference to the object, if it is one.
///
/// # Safety
/// `size` bytes at `value`, or null.
pub(super) unsafe fn value(size: usize, value: *const c_void) -> Value<Kept> {
    // SAFETY: as the caller promises.
    let value = unsafe { Given::of(size, value) };
    let handle = value.handle().filter(|_| is_on());
    let is_sampler = handle.and_then(|handle| Some(known().as_ref()?.objects.get(&handle)?.is_sampler));
    if let (Some(handle), Some(is_sampler)) = (handle, is_sampler) {
        // SAFETY: an object that the program gives.
        return unsafe { Kept::also(handle, is_sampler) }.map_or(Value::Unknown, Value::Object);
    }
    value.plain()
}

/// A value for an argument, as the program gave it.
#[derive(Clone, Copy)]
enum Given<'a> {
    Nothing(usize),
    Bytes(&'a [u8]),
}

impl<'a> Given<'a> {
    /// # Safety
    /// `size` bytes at `value`, or null.
    unsafe fn of(size: usize, value: *const c_void) -> Self {
        if value.is_null() {
            return Self::Nothing(size);
        }
        // SAFETY: that many bytes, of any alignment.
        Self::Bytes(unsafe { slice::from_raw_parts(value.cast(), size) })
    }

    /// The handle, if it is as large as one.
    fn handle(self) -> Option<usize> {
        let Self::Bytes(bytes) = self else { return None };
        Some(usize::from_ne_bytes(bytes.try_into().ok()?))
    }

    fn plain<O>(self) -> Value<O> {
        match self {
            Self::Nothing(bytes) => Value::Nothing(bytes),
            Self::Bytes(bytes) => Value::Bytes(bytes.into()),
        }
    }
}

/// A kernel was made. Its handle may have been another one's.
fn made(kernel: cl_kernel, arguments: Option<Arguments>) {
    let mut known = known();
    let kernels = &mut known.get_or_insert_default().kernels;
    match arguments {
        Some(arguments) => kernels.insert(kernel.addr(), arguments),
        None => kernels.remove(&kernel.addr()),
    };
}

/// # Safety
/// A new kernel, or null.
unsafe fn made_without(kernel: cl_kernel) {
    if !kernel.is_null() {
        // SAFETY: a kernel.
        let count = unsafe { query::one::<_, cl_uint>(calls::clGetKernelInfo, kernel, CL_KERNEL_NUM_ARGS) };
        let arguments = |count| Arguments { values: Values::none_of(count), references: 1, ..Arguments::default() };
        made(kernel, count.ok().map(arguments));
    }
}

/// A kernel was changed.
fn change(kernel: cl_kernel, change: impl FnOnce(&mut Arguments, &HashMap<usize, Object>)) {
    let mut known = known();
    let Some(Known { kernels, objects }) = known.as_mut() else { return };
    if let Some(arguments) = kernels.get_mut(&kernel.addr()) {
        arguments.version += 1;
        change(arguments, objects);
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
            let arguments = known().as_ref().and_then(|known| known.kernels.get(&from.addr()).cloned());
            made(kernel, arguments.map(|arguments| Arguments { references: 1, ..arguments }));
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
        // SAFETY: rule A.
        let given = unsafe { Given::of(size, value) };
        quietly(|| {
            change(kernel, |arguments, objects| {
                let handle = given.handle().filter(|handle| objects.contains_key(handle));
                arguments.values.set(index, handle.map_or_else(|| given.plain(), Value::Object));
            });
        });
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
        quietly(|| change(kernel, |arguments, _| arguments.values.set(index, Value::Pointer(value.addr()))));
    }
    status
}

unsafe extern "system" fn clSetKernelExecInfo(
    kernel: cl_kernel,
    name: cl_uint,
    size: usize,
    value: *const c_void,
) -> cl_int {
    type Function = unsafe extern "system" fn(cl_kernel, cl_uint, usize, *const c_void) -> cl_int;
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(135) }) else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    let status = unsafe { function(kernel, name, size, value) };
    if status == CL_SUCCESS && is_on() {
        quietly(|| change(kernel, |arguments, _| arguments.has_exec_info = true));
    }
    status
}

/// Declares wrappers of functions that count the program's references: what it has none to is known no more. They look before the driver
/// releases, because afterwards the handle may be another object's, and after it has retained.
macro_rules! counts_references {
    ($( $retain_place:literal $retain:ident $release_place:literal $release:ident ($handle:ty) |$known:ident, $of:ident| $entry:expr, $end:expr; )*) => {
        $(
            unsafe extern "system" fn $retain(object: $handle) -> cl_int {
                // SAFETY: rule T.
                let Some(function) = (unsafe { next::<unsafe extern "system" fn($handle) -> cl_int>($retain_place) }) else {
                    return CL_INVALID_OPERATION;
                };
                // SAFETY: rule V.
                let status = unsafe { function(object) };
                if status == CL_SUCCESS && is_on() {
                    quietly(|| {
                        let mut known = known();
                        let Some($known) = known.as_mut() else { return };
                        let $of = object.addr();
                        if let Some(references) = $entry {
                            *references += 1;
                        }
                    });
                }
                status
            }

            unsafe extern "system" fn $release(object: $handle) -> cl_int {
                // SAFETY: rule T.
                let Some(function) = (unsafe { next::<unsafe extern "system" fn($handle) -> cl_int>($release_place) }) else {
                    return CL_INVALID_OPERATION;
                };
                if is_on() {
                    quietly(|| {
                        let mut known = known();
                        let Some($known) = known.as_mut() else { return };
                        let $of = object.addr();
                        let Some(references) = $entry else { return };
                        *references = references.saturating_sub(1);
                        if *references == 0 {
                            $end;
                        }
                    });
                }
                // SAFETY: rule V.
                unsafe { function(object) }
            }
        )*

        fn of_references() -> Vec<(usize, *mut c_void)> {
            vec![$(
                ($retain_place, $retain as *const () as *mut c_void),
                ($release_place, $release as *const () as *mut c_void),
            )*]
        }
    };
}

counts_references! {
    17 clRetainMemObject 18 clReleaseMemObject (cl_mem)
        |known, of| known.objects.get_mut(&of).map(|object| &mut object.references), known.objects.remove(&of);
    23 clRetainSampler 24 clReleaseSampler (cl_sampler)
        |known, of| known.objects.get_mut(&of).map(|object| &mut object.references), known.objects.remove(&of);
    36 clRetainKernel 37 clReleaseKernel (cl_kernel)
        |known, of| known.kernels.get_mut(&of).map(|arguments| &mut arguments.references), known.kernels.remove(&of);
}

/// Declares wrappers of functions that make memory objects, or samplers.
macro_rules! makes_objects {
    ($( $place:literal $name:ident ($($arg:ident: $type:ty),*) $is_sampler:literal; )*) => {
        $(
            #[allow(clippy::too_many_arguments)]
            unsafe extern "system" fn $name($($arg: $type,)* status: *mut cl_int) -> *mut c_void {
                type Function = unsafe extern "system" fn($($type,)* *mut cl_int) -> *mut c_void;
                // SAFETY: rule T.
                let Some(function) = (unsafe { next::<Function>($place) }) else { return ptr::null_mut() };
                // SAFETY: rule V.
                let object = unsafe { function($($arg,)* status) };
                if !is_on() {
                    MADE_BEFORE.store(true, Ordering::Relaxed);
                } else if !object.is_null() {
                    let made = Object { references: 1, is_sampler: $is_sampler };
                    quietly(|| known().get_or_insert_default().objects.insert(object.addr(), made));
                }
                object
            }
        )*

        fn of_objects() -> Vec<(usize, *mut c_void)> {
            vec![$( ($place, $name as *const () as *mut c_void) ),*]
        }
    };
}

makes_objects! {
    14 clCreateBuffer(context: cl_context, flags: cl_ulong, size: usize, host: *mut c_void) false;
    15 clCreateImage2D(
        context: cl_context, flags: cl_ulong, format: *const c_void, width: usize, height: usize, row: usize,
        host: *mut c_void
    ) false;
    16 clCreateImage3D(
        context: cl_context, flags: cl_ulong, format: *const c_void, width: usize, height: usize, depth: usize,
        row: usize, slice: usize, host: *mut c_void
    ) false;
    82 clCreateSubBuffer(buffer: cl_mem, flags: cl_ulong, kind: cl_uint, place: *const c_void) false;
    96 clCreateImage(
        context: cl_context, flags: cl_ulong, format: *const c_void, form: *const c_void, host: *mut c_void
    ) false;
    124 clCreatePipe(context: cl_context, flags: cl_ulong, packet: cl_uint, packets: cl_uint, list: *const isize) false;
    146 clCreateBufferWithProperties(
        context: cl_context, list: *const cl_ulong, flags: cl_ulong, size: usize, host: *mut c_void
    ) false;
    147 clCreateImageWithProperties(
        context: cl_context, list: *const cl_ulong, flags: cl_ulong, format: *const c_void, form: *const c_void,
        host: *mut c_void
    ) false;
    66 clCreateFromGLBuffer(context: cl_context, flags: cl_ulong, name: cl_uint) false;
    67 clCreateFromGLTexture2D(context: cl_context, flags: cl_ulong, target: cl_uint, level: cl_int, name: cl_uint) false;
    68 clCreateFromGLTexture3D(context: cl_context, flags: cl_ulong, target: cl_uint, level: cl_int, name: cl_uint) false;
    69 clCreateFromGLRenderbuffer(context: cl_context, flags: cl_ulong, name: cl_uint) false;
    108 clCreateFromGLTexture(context: cl_context, flags: cl_ulong, target: cl_uint, level: cl_int, name: cl_uint) false;
    119 clCreateFromEGLImageKHR(
        context: cl_context, display: *mut c_void, image: *mut c_void, flags: cl_ulong, list: *const isize
    ) false;
    22 clCreateSampler(context: cl_context, normalized: cl_uint, addressing: cl_uint, filter: cl_uint) true;
    133 clCreateSamplerWithProperties(context: cl_context, list: *const cl_ulong) true;
}

pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
    let mut all = of_objects();
    all.extend(of_references());
    all.extend([
        (34, clCreateKernel as *const () as *mut c_void),
        (35, clCreateKernelsInProgram as *const () as *mut c_void),
        (38, clSetKernelArg as *const () as *mut c_void),
        (134, clSetKernelArgSVMPointer as *const () as *mut c_void),
        (135, clSetKernelExecInfo as *const () as *mut c_void),
        (137, clCloneKernel as *const () as *mut c_void),
    ]);
    all
}
