//! Device globals, and the programs whose kernels use them.

use std::ffi::{c_char, c_void};

use rust::{DynamicGlobal, Program, ProgramBuilder, Queue};

use crate::handle::{self, handled};
use crate::objects::{self, AnyMemory, clg_kernel, clg_memory, clg_queue};
use crate::opencl::{cl_context, cl_program};
use crate::pointers;
use crate::status::{Failure, clg_status, enter};

/// What a `clg_global` names.
pub struct clg_global_object {
    _private: [u8; 0],
}

/// A variable in device memory, which the kernels of several programs can use.
pub type clg_global = *mut clg_global_object;

handled!(DynamicGlobal, 15, "clg_global");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_global_retain(object: clg_global) -> clg_status {
    enter(|| handle::retain::<DynamicGlobal>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_global_release(object: clg_global) -> clg_status {
    enter(|| handle::release::<DynamicGlobal>(object.addr()))
}

/// What a `clg_program` names.
pub struct clg_program_object {
    _private: [u8; 0],
}

/// A program whose kernels use device globals.
pub type clg_program = *mut clg_program_object;

handled!(Program, 14, "clg_program");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_program_retain(object: clg_program) -> clg_status {
    enter(|| handle::retain::<Program>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_program_release(object: clg_program) -> clg_status {
    enter(|| handle::release::<Program>(object.addr()))
}

/// Declares a device global of `size` bytes. Each device of each context has one instance of it, with the value
/// `initial`, or zero if that is null. With `of_program` it belongs to one program: see `docs/guide/device_globals.md`.
/// A declaration is never freed: declare each global once.
///
/// # Safety
/// `name` is null or a text; `initial` is null or points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_global_create(
    name: *const c_char,
    size: usize,
    initial: *const c_void,
    of_program: bool,
    result: *mut clg_global,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (place, name) = unsafe { (pointers::place("result", result)?, pointers::text("name", name)?) };
        let name = name.ok_or_else(|| Failure::null("name"))?;
        if name.is_empty() {
            return Err(Failure::invalid("the name of a device global is empty: give it one, for drawings and errors"));
        }
        if size > isize::MAX as usize {
            return Err(Failure::invalid(format!("device global `{name}` cannot have {size} bytes")));
        }
        let initial = if initial.is_null() {
            None
        } else {
            // SAFETY: **caller**.
            Some(pointers::copy_of(unsafe { pointers::list("initial", initial.cast::<u8>(), size) }?)?)
        };
        let declare = if of_program { DynamicGlobal::of_program } else { DynamicGlobal::new };
        place.set(handle::new(declare(name, size, initial.as_deref())?)? as clg_global);
        Ok(())
    })
}

/// Returns the memory of a device global on the device of a queue, for all commands.
#[unsafe(no_mangle)]
pub extern "C" fn clg_global_memory(global: clg_global, queue: clg_queue, result: *mut clg_memory) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let memory = handle::get::<DynamicGlobal>(global.addr())?.on(&queue)?;
        place.set(handle::new(AnyMemory::Global(memory))? as clg_memory);
        Ok(())
    })
}

/// A device global under the name that it has in a program.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_program_global {
    /// The name in OpenCL C, for `CLG_DEVICE_GLOBAL` and `CLG_GLOBAL`.
    pub name: *const c_char,
    /// The device global.
    pub global: clg_global,
}

/// Builds OpenCL C source whose kernels use device globals. `options` are those of clBuildProgram, and may be null. For
/// programs without device globals use clCreateProgramWithSource, and `clg_kernel_from_cl`.
///
/// # Safety
/// `context` is null or a live context; `source` and `options` are null or texts; `globals` points to as many globals
/// as `num_globals` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_program_build(
    context: cl_context,
    source: *const c_char,
    options: *const c_char,
    globals: *const clg_program_global,
    num_globals: usize,
    result: *mut clg_program,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (place, context) = unsafe { (pointers::place("result", result)?, objects::context(context)?) };
        // SAFETY: **caller**.
        let (source, options) = unsafe { (pointers::text("source", source)?, pointers::text("options", options)?) };
        let source = source.ok_or_else(|| Failure::null("source"))?;
        let mut builder = ProgramBuilder::new(&context).options(options.unwrap_or_default());
        // SAFETY: **caller**.
        for one in unsafe { pointers::list("globals", globals, num_globals) }? {
            // SAFETY: **caller**.
            let name = unsafe { pointers::text("globals->name", one.name) }?;
            let name = name.ok_or_else(|| Failure::null("globals->name"))?;
            builder = builder.global(name, &handle::get::<DynamicGlobal>(one.global.addr())?);
        }
        place.set(handle::new(builder.source(source)?)? as clg_program);
        Ok(())
    })
}

/// Returns a kernel of a program.
///
/// # Safety
/// `name` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_program_kernel(
    program: clg_program,
    name: *const c_char,
    result: *mut clg_kernel,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (place, name) = unsafe { (pointers::place("result", result)?, pointers::text("name", name)?) };
        let name = name.ok_or_else(|| Failure::null("name"))?;
        place.set(handle::new(handle::get::<Program>(program.addr())?.kernel(name)?)? as clg_kernel);
        Ok(())
    })
}

/// Returns the `cl_program`, without a reference for the program. It may be asked for its binaries, for example. Its kernels
/// may have more arguments than in the source: clgraph sets these.
#[unsafe(no_mangle)]
pub extern "C" fn clg_program_to_cl(program: clg_program, result: *mut cl_program) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::get::<Program>(program.addr())?.raw().cast());
        Ok(())
    })
}

/// Writes the names of the kernels of a program, with `;` between them.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_program_kernel_names(
    program: clg_program,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let names = handle::get::<Program>(program.addr())?.kernel_names()?.join(";");
        // SAFETY: **caller**.
        unsafe { pointers::give_text(names, room, text, size) }
    })
}

/// Writes how the kernels of a program reach each of its device globals, a line for each.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_program_globals(
    program: clg_program,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let globals = handle::get::<Program>(program.addr())?.globals();
        let lines: String = globals.iter().map(|global| format!("{global}\n")).collect();
        // SAFETY: **caller**.
        unsafe { pointers::give_text(lines, room, text, size) }
    })
}
