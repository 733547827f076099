//! OpenCL's own handles, with the names that they have in `CL/cl.h`. The header declares them in the same way, so it needs
//! no header of OpenCL, and a handle of another type does not compile.

/// What a `cl_context` points to.
pub struct _cl_context {
    _private: [u8; 0],
}

/// A context of OpenCL.
pub type cl_context = *mut _cl_context;

/// What a `cl_device_id` points to.
pub struct _cl_device_id {
    _private: [u8; 0],
}

/// A device of OpenCL.
pub type cl_device_id = *mut _cl_device_id;

/// What a `cl_command_queue` points to.
pub struct _cl_command_queue {
    _private: [u8; 0],
}

/// A command queue of OpenCL.
pub type cl_command_queue = *mut _cl_command_queue;

/// What a `cl_kernel` points to.
pub struct _cl_kernel {
    _private: [u8; 0],
}

/// A kernel of OpenCL.
pub type cl_kernel = *mut _cl_kernel;

/// What a `cl_program` points to.
pub struct _cl_program {
    _private: [u8; 0],
}

/// A program of OpenCL.
pub type cl_program = *mut _cl_program;

/// What a `cl_mem` points to.
pub struct _cl_mem {
    _private: [u8; 0],
}

/// A buffer or an image of OpenCL.
pub type cl_mem = *mut _cl_mem;

/// What a `cl_sampler` points to.
pub struct _cl_sampler {
    _private: [u8; 0],
}

/// A sampler of OpenCL.
pub type cl_sampler = *mut _cl_sampler;

/// What a `cl_event` points to.
pub struct _cl_event {
    _private: [u8; 0],
}

/// An event of OpenCL.
pub type cl_event = *mut _cl_event;

/// What a `cl_command_buffer_khr` points to.
pub struct _cl_command_buffer_khr {
    _private: [u8; 0],
}

/// A command buffer of OpenCL.
pub type cl_command_buffer_khr = *mut _cl_command_buffer_khr;
