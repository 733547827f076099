//! Counted references to OpenCL objects, and their release.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use opencl_sys::cl_int;

use crate::cl::check;
use crate::cl::completion::deferred_release::{self, Release};
use crate::error::{DriverError, DriverFault, SetupError};
use crate::ffi::core::Core;

/// A kind of reference-counted OpenCL object.
pub(crate) trait ObjectKind {
    /// The name of the C type, for error texts.
    const TYPE: &'static str;
    /// The name of the C function that adds a reference.
    const RETAIN: &'static str;
    /// The name of the C function that releases a reference.
    const RELEASE: &'static str;
    /// Whether objects must not be released while a command waits for a user event: all but events.
    const WAITS_FOR_GATES: bool;
    /// Returns the function named by [`Self::RETAIN`].
    fn retain(core: &Core) -> unsafe extern "system" fn(*mut c_void) -> cl_int;
    /// Returns the function named by [`Self::RELEASE`].
    fn release(core: &Core) -> unsafe extern "system" fn(*mut c_void) -> cl_int;
}

macro_rules! kinds {
    ($( $kind:ident $type:literal $retain:ident $release:ident $waits:literal; )*) => {
        $(
            /// The kind of OpenCL object that the name says.
            pub(crate) enum $kind {}
            impl ObjectKind for $kind {
                const TYPE: &'static str = $type;
                const RETAIN: &'static str = stringify!($retain);
                const RELEASE: &'static str = stringify!($release);
                const WAITS_FOR_GATES: bool = $waits;
                fn retain(core: &Core) -> unsafe extern "system" fn(*mut c_void) -> cl_int { core.$retain }
                fn release(core: &Core) -> unsafe extern "system" fn(*mut c_void) -> cl_int { core.$release }
            }
        )*
    };
}

kinds! {
    DeviceKind "cl_device_id" clRetainDevice clReleaseDevice true;
    ContextKind "cl_context" clRetainContext clReleaseContext true;
    QueueKind "cl_command_queue" clRetainCommandQueue clReleaseCommandQueue true;
    MemKind "cl_mem" clRetainMemObject clReleaseMemObject true;
    ProgramKind "cl_program" clRetainProgram clReleaseProgram true;
    KernelKind "cl_kernel" clRetainKernel clReleaseKernel true;
    EventKind "cl_event" clRetainEvent clReleaseEvent false;
    SamplerKind "cl_sampler" clRetainSampler clReleaseSampler true;
}

/// One counted reference to an OpenCL object of kind `K`. Cloning retains the object, dropping releases it.
pub(crate) struct Handle<K: ObjectKind> {
    raw: NonNull<c_void>,
    kind: PhantomData<fn() -> K>,
}

// SAFETY: **threads**. A handle is a counted pointer; calls that must not run at once are guarded where they are made.
unsafe impl<K: ObjectKind> Send for Handle<K> {}
// SAFETY: as above.
unsafe impl<K: ObjectKind> Sync for Handle<K> {}

impl<K: ObjectKind> Handle<K> {
    /// Takes over a reference that an OpenCL call has just returned.
    ///
    /// # Safety
    /// `raw` is null or an object of kind `K`. The caller owns a reference to it and gives the reference away.
    pub(crate) unsafe fn from_owned(call: &'static str, raw: *mut c_void) -> Result<Self, DriverError> {
        let raw = NonNull::new(raw).ok_or(DriverError::faulty(call, DriverFault::NoObject))?;
        Ok(Self { raw, kind: PhantomData })
    }

    /// Adds a reference to an object that the caller does not own.
    ///
    /// # Safety
    /// `raw` is null or a live object of kind `K`.
    pub(crate) unsafe fn from_borrowed(raw: *mut c_void) -> Result<Self, crate::Error> {
        let core = Core::get()?;
        let raw = NonNull::new(raw).ok_or(SetupError::NullHandle { what: K::TYPE })?;
        // SAFETY: **live**, by the caller's promise.
        check(K::RETAIN, unsafe { K::retain(core)(raw.as_ptr()) })?;
        Ok(Self { raw, kind: PhantomData })
    }

    /// Returns the C handle, which is valid while `self` lives.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw.as_ptr()
    }

    /// Adds a reference. It returns an error if the driver refuses.
    pub(crate) fn try_clone(&self) -> Result<Self, DriverError> {
        if let Ok(core) = Core::get() {
            // SAFETY: **live**.
            check(K::RETAIN, unsafe { K::retain(core)(self.raw()) })?;
        }
        Ok(Self { raw: self.raw, kind: PhantomData })
    }

    /// Gives the reference away.
    pub(crate) fn into_raw(self) -> NonNull<c_void> {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }

    /// Takes back what [`Self::into_raw`] gave away.
    ///
    /// # Safety
    /// `raw` is an object of kind `K`. The caller owns a reference to it and gives the reference away.
    pub(crate) unsafe fn from_raw(raw: NonNull<c_void>) -> Self {
        Self { raw, kind: PhantomData }
    }

    /// Adds a reference and gives it to the caller, as C programs expect.
    pub(crate) fn retained_raw(&self) -> Result<*mut c_void, DriverError> {
        Ok(self.try_clone()?.into_raw().as_ptr())
    }
}

impl<K: ObjectKind> PartialEq for Handle<K> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<K: ObjectKind> fmt::Debug for Handle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:p})", K::TYPE, self.raw)
    }
}

impl<K: ObjectKind> Drop for Handle<K> {
    #[inline]
    fn drop(&mut self) {
        // A handle exists, so the library is loaded.
        if let Ok(core) = Core::get() {
            let release = Release { call: K::RELEASE, function: K::release(core) };
            if K::WAITS_FOR_GATES {
                deferred_release::release_in_time(self.raw, release);
            } else {
                release.now(self.raw);
            }
        }
    }
}
