//! References to the driver's objects that command buffers hold.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use opencl_sys::{CL_SUCCESS, cl_command_queue, cl_event, cl_kernel, cl_mem, cl_sampler};

use super::calls;
use crate::command_buffer::{Checked, ensure};

/// Declares types that hold one reference to an object, and release it. `new` and `also` say where references come from: from calls
/// that return a new object, or from objects of the program's.
macro_rules! owned {
    ($( $(#[$doc:meta])* $name:ident: $handle:ty, release $release:ident $(, new $new:ident)? $(, also $retain:ident)?; )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub(super) struct $name(NonNull<std::ffi::c_void>);

            // SAFETY: objects of OpenCL may be used by any thread; `Kernel` says what it is not used for.
            unsafe impl Send for $name {}
            // SAFETY: as above.
            unsafe impl Sync for $name {}

            impl $name {
                $(
                    /// Holds the reference that a call has returned. Nothing is held of null.
                    ///
                    /// # Safety
                    /// The caller has one reference, and gives it away.
                    pub(super) unsafe fn $new(handle: $handle) -> Option<Self> {
                        NonNull::new(handle).map(Self)
                    }
                )?

                $(
                    /// Holds a reference of its own.
                    ///
                    /// # Safety
                    /// The driver knows the object, or checks that it is one.
                    pub(super) unsafe fn also(handle: $handle) -> Checked<Self> {
                        let object = NonNull::new(handle).ok_or(opencl_sys::CL_INVALID_VALUE)?;
                        // SAFETY: as the caller promises.
                        let status = unsafe { calls::$retain(handle) };
                        ensure(status == CL_SUCCESS, status)?;
                        Ok(Self(object))
                    }
                )?

                pub(super) fn raw(&self) -> $handle {
                    self.0.as_ptr()
                }

                /// Where the handle is, as bytes.
                #[allow(dead_code)] // of two types
                pub(super) fn bytes(&self) -> *const std::ffi::c_void {
                    (&raw const self.0).cast()
                }
            }

            impl Drop for $name {
                fn drop(&mut self) {
                    // SAFETY: the reference that is held. There is nobody to tell of a failure.
                    let _ = unsafe { calls::$release(self.0.as_ptr()) };
                }
            }
        )*
    };
}

owned! {
    Queue: cl_command_queue, release clReleaseCommandQueue, also clRetainCommandQueue;
    Memory: cl_mem, release clReleaseMemObject, new from_raw, also clRetainMemObject;
    Sampler: cl_sampler, release clReleaseSampler, also clRetainSampler;
    Event: cl_event, release clReleaseEvent, new from_raw, also clRetainEvent;
    /// A kernel that is the layer's alone has its arguments from before other threads see it, and they are never set again.
    Kernel: cl_kernel, release clReleaseKernel, new from_raw, also clRetainKernel;
}

impl Event {
    /// The event as a list of one.
    pub(super) fn as_list(&self) -> &[cl_event] {
        // SAFETY: a pointer that is not null has the form of a pointer.
        unsafe { std::slice::from_raw_parts((&raw const self.0).cast::<cl_event>(), 1) }
    }

    /// Gives the reference to the program.
    pub(super) fn give_away(self) -> cl_event {
        let raw = self.raw();
        std::mem::forget(self);
        raw
    }
}
