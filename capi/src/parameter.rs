//! Parameters: values, local memory, memory, images and samplers that can change between submissions.

use std::ffi::c_void;
use std::sync::Arc;

use rust::{Buffer, Image, LocalMemory, Memory, Parameter, Sampler};

use crate::handle::{self, handled};
use crate::image::{AnyImage, clg_image, clg_sampler};
use crate::number::NumberParameter;
use crate::objects::{Slice, clg_range, with_slice};
use crate::pointers;
use crate::status::{Failure, Outcome, clg_status, enter};

#[derive(Clone)]
pub(crate) enum AnyParameter {
    Bytes(Arc<Parameter<[u8]>>),
    Number(NumberParameter),
    Local(Arc<Parameter<LocalMemory>>),
    Buffer(Arc<Parameter<Buffer<u8>>>),
    Memory(Arc<Parameter<Memory<u8>>>),
    Image(Arc<Parameter<Image>>),
    Sampler(Arc<Parameter<Sampler>>),
}

/// What a `clg_parameter` names.
pub struct clg_parameter_object {
    _private: [u8; 0],
}

/// A value, a size of local memory, or memory, which several kernel nodes can use and which can change.
pub type clg_parameter = *mut clg_parameter_object;

handled!(AnyParameter, 4, "clg_parameter");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_retain(object: clg_parameter) -> clg_status {
    enter(|| handle::retain::<AnyParameter>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_release(object: clg_parameter) -> clg_status {
    enter(|| handle::release::<AnyParameter>(object.addr()))
}

pub(crate) fn new_parameter(result: *mut clg_parameter, make: impl FnOnce() -> Outcome<AnyParameter>) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::new(make()?)? as clg_parameter);
        Ok(())
    })
}

/// Makes a parameter of a value: a number, a vector or a struct, as many bytes as the kernel's parameter has. (A number
/// with its type: `clg_parameter_create_number`.)
///
/// The program promises that every value which it gives the parameter is fine for the kernels that use it.
///
/// # Safety
/// `value` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_parameter_create(
    value: *const c_void,
    size: usize,
    result: *mut clg_parameter,
) -> clg_status {
    new_parameter(result, || {
        // SAFETY: **caller**.
        let value: &[u8] = unsafe { pointers::value("value", value, size) }?;
        if value.is_empty() {
            return Err(Failure::invalid("a parameter of a value has at least one byte"));
        }
        Ok(AnyParameter::Bytes(Arc::new(Parameter::any_bytes(value))))
    })
}

/// Makes a parameter of local memory, of a size in bytes. The program promises that every size which it sets is fine for
/// the kernels that use it.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_create_local(size: usize, result: *mut clg_parameter) -> clg_status {
    new_parameter(result, || Ok(AnyParameter::Local(Arc::new(Parameter::local_within(size, 1..)?))))
}

/// Makes a parameter of memory. Kernels get the whole of it and use the bytes of the range, and so it must be with all
/// memory that is set later. With `or_null` it can also become a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_create_memory(
    range: clg_range,
    or_null: bool,
    result: *mut clg_parameter,
) -> clg_status {
    new_parameter(result, || {
        Ok(match (range.slice()?, or_null) {
            (Slice::Buffer(part), false) => AnyParameter::Buffer(Arc::new(Parameter::buffer(&part))),
            (Slice::Buffer(part), true) => AnyParameter::Buffer(Arc::new(Parameter::buffer_or_null(&part))),
            (part, false) => AnyParameter::Memory(Arc::new(with_slice!(part, |part| Parameter::memory(part)))),
            (part, true) => AnyParameter::Memory(Arc::new(with_slice!(part, |part| Parameter::memory_or_null(part)))),
        })
    })
}

/// Makes a parameter of an image. Images that are set later have its shape and format.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_create_image(image: clg_image, result: *mut clg_parameter) -> clg_status {
    new_parameter(result, || Ok(AnyParameter::Image(Arc::new(Parameter::image(&AnyImage::whole(image)?)))))
}

/// Makes a parameter of a sampler.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_create_sampler(sampler: clg_sampler, result: *mut clg_parameter) -> clg_status {
    new_parameter(result, || {
        let sampler = handle::get::<Sampler>(sampler.addr())?;
        Ok(AnyParameter::Sampler(Arc::new(Parameter::sampler(&sampler)?)))
    })
}

/// Sets the value of a parameter, of as many bytes as before. Executables get it when they are updated.
///
/// # Safety
/// `value` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_parameter_set(parameter: clg_parameter, value: *const c_void, size: usize) -> clg_status {
    enter(|| match handle::get::<AnyParameter>(parameter.addr())? {
        AnyParameter::Bytes(parameter) => {
            // SAFETY: **caller**.
            let value: &[u8] = unsafe { pointers::value("value", value, size) }?;
            Ok(parameter.set(value)?)
        }
        AnyParameter::Number(parameter) => {
            // SAFETY: **caller**.
            parameter.set(unsafe { pointers::value("value", value, size) }?)
        }
        _ => Err(Failure::invalid(
            "the parameter has no value: use clg_parameter_set_local, _memory, _image, _sampler or _null",
        )),
    })
}

/// Writes the value that a parameter has now, of as many bytes as it was made with; for a parameter of local memory its
/// size, a `size_t`.
///
/// # Safety
/// `value` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_parameter_get(parameter: clg_parameter, value: *mut c_void, size: usize) -> clg_status {
    enter(|| {
        let bytes = match handle::get::<AnyParameter>(parameter.addr())? {
            AnyParameter::Bytes(parameter) => parameter.get().into_vec(),
            AnyParameter::Number(parameter) => parameter.get(),
            AnyParameter::Local(parameter) => parameter.get().to_ne_bytes().to_vec(),
            _ => return Err(Failure::invalid("the parameter is one of an object, and has no value")),
        };
        // SAFETY: **caller**.
        unsafe { crate::submission::copy_out(&bytes, value, size) }
    })
}

/// Sets the size of a parameter of local memory, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_set_local(parameter: clg_parameter, size: usize) -> clg_status {
    enter(|| match handle::get::<AnyParameter>(parameter.addr())? {
        AnyParameter::Local(parameter) => Ok(parameter.set(size)?),
        _ => Err(Failure::invalid("the parameter is not one of local memory")),
    })
}

/// Sets the memory of a parameter of memory. It holds the bytes that kernels use, in the same place.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_set_memory(parameter: clg_parameter, range: clg_range) -> clg_status {
    enter(|| match (handle::get::<AnyParameter>(parameter.addr())?, range.slice()?) {
        (AnyParameter::Buffer(parameter), Slice::Buffer(part)) => Ok(parameter.set(&part)?),
        (AnyParameter::Buffer(_), _) => {
            Err(Failure::invalid("the parameter was created with a buffer (clg_memory_from_cl): set a buffer"))
        }
        (AnyParameter::Memory(parameter), part) => Ok(with_slice!(part, |part| parameter.set(part))?),
        _ => Err(Failure::invalid("the parameter is not one of memory")),
    })
}

/// Makes a parameter of memory that was created with `or_null` a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_set_null(parameter: clg_parameter) -> clg_status {
    enter(|| match handle::get::<AnyParameter>(parameter.addr())? {
        AnyParameter::Buffer(parameter) => Ok(parameter.set_null()?),
        AnyParameter::Memory(parameter) => Ok(parameter.set_null()?),
        _ => Err(Failure::invalid("the parameter is not one of memory")),
    })
}

/// Sets the image of a parameter of an image.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_set_image(parameter: clg_parameter, image: clg_image) -> clg_status {
    enter(|| match handle::get::<AnyParameter>(parameter.addr())? {
        AnyParameter::Image(parameter) => Ok(parameter.set(&AnyImage::whole(image)?)?),
        _ => Err(Failure::invalid("the parameter is not one of an image")),
    })
}

/// Sets the sampler of a parameter of a sampler.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_set_sampler(parameter: clg_parameter, sampler: clg_sampler) -> clg_status {
    enter(|| match handle::get::<AnyParameter>(parameter.addr())? {
        AnyParameter::Sampler(parameter) => Ok(parameter.set(&handle::get::<Sampler>(sampler.addr())?)?),
        _ => Err(Failure::invalid("the parameter is not one of a sampler")),
    })
}
