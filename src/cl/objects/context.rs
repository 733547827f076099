//! Contexts.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard};

use opencl_sys::{CL_CONTEXT_DEVICES, cl_context};

use crate::cl::check;
use crate::cl::completion::deferred_release;
use crate::cl::completion::threads;
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::freed::Freed;
use crate::cl::memory::globals::Registry;
use crate::cl::memory::map_queue::MapQueues;
use crate::cl::objects::device::Device;
use crate::cl::objects::handle::{ContextKind, Handle, ProgramKind};
use crate::cl::objects::image::Formats;
use crate::cl::query::info::{self, ask};
use crate::error::{Result, SetupError};
use crate::ffi::core::Core;
use crate::images::{ImageAccess, ImageKind};
use crate::quirks;

/// An OpenCL context with its devices. Clones are cheap. Two values are equal if they are the same context.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// let device = clgraph::best_device()?;
/// let context = clgraph::Context::new(&[device.clone()])?;
/// assert_eq!(context.devices(), [device]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    /// See [`copier`](crate::cl::commands::copier).
    copier: Mutex<Option<Handle<ProgramKind>>>,
    /// See [`image`](crate::cl::objects::image).
    image_formats: Mutex<HashMap<(ImageKind, ImageAccess), Formats>>,
    /// See [`globals`](crate::cl::memory::globals).
    globals: Arc<Registry>,
    handle: Handle<ContextKind>,
    devices: Vec<Device>,
    /// See [`Context::must_free_late`].
    must_free_late: bool,
}

impl Context {
    /// Makes a context for devices of one platform. Messages of the driver go to the `log` crate at level `debug`.
    ///
    /// # Errors
    /// [`SetupError::NoDevices`]; [`crate::DriverError`], for example for devices of two platforms.
    #[doc(alias = "clCreateContext")]
    pub fn new(devices: &[Device]) -> Result<Self> {
        let core = Core::get()?;
        if devices.is_empty() {
            return Err(SetupError::NoDevices.into());
        }
        let ids: Vec<_> = devices.iter().map(Device::raw).collect();
        let mut status = 0;
        // SAFETY: **lists**, not empty; **live** for the devices; `log_message` has the type of the headers and uses no
        // user data.
        let raw = unsafe {
            (core.clCreateContext)(
                std::ptr::null(),
                ids.len() as u32,
                ids.as_ptr(),
                Some(log_message),
                std::ptr::null_mut(),
                &raw mut status,
            )
        };
        check("clCreateContext", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle = unsafe { Handle::from_owned("clCreateContext", raw) }?;
        Self::of(handle, devices.to_vec())
    }

    /// Wraps an `opencl3` context. The `opencl3` context may be dropped first.
    ///
    /// # Errors
    /// Those of [`Device::from_opencl3`].
    pub fn from_opencl3(context: &opencl3::context::Context) -> Result<Self> {
        // SAFETY: an `opencl3` context owns a reference.
        unsafe { Self::from_raw(context.get()) }
    }

    /// Wraps and retains a raw context.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`]; those of [`Device::from_opencl3`].
    ///
    /// # Safety
    /// `raw` is null or a live context.
    pub unsafe fn from_raw(raw: cl_context) -> Result<Self> {
        // SAFETY: the caller's promise.
        let handle: Handle<ContextKind> = unsafe { Handle::from_borrowed(raw) }?;
        let core = Core::get()?;
        let ids = info::values::<usize>("clGetContextInfo", ask!(core, clGetContextInfo, raw, CL_CONTEXT_DEVICES))?;
        let devices = ids
            .into_iter()
            // SAFETY: the driver has just listed the device.
            .map(|id| unsafe { Device::from_raw(std::ptr::with_exposed_provenance_mut(id)) })
            .collect::<Result<Vec<_>>>()?;
        Self::of(handle, devices)
    }

    fn of(handle: Handle<ContextKind>, devices: Vec<Device>) -> Result<Self> {
        let globals = Registry::of(&handle)?;
        let (copier, image_formats) = (Mutex::default(), Mutex::default());
        let must_free_late = devices.iter().any(|device| quirks::must_free_late(device.caps()));
        Ok(Self(Arc::new(Inner { copier, image_formats, globals, handle, devices, must_free_late })))
    }

    pub(in crate::cl) fn globals(&self) -> &Registry {
        &self.0.globals
    }

    pub(in crate::cl) fn map_queues(&self) -> &MapQueues {
        &self.0.globals.maps
    }

    pub(in crate::cl) fn copier(&self) -> MutexGuard<'_, Option<Handle<ProgramKind>>> {
        self.0.copier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether memory has to go through [`Self::freed`] on one of its devices.
    pub(crate) fn must_free_late(&self) -> bool {
        self.0.must_free_late
    }

    /// Drops the sub-buffers of [`Self::freed`] to which nothing else has a reference, if no thread of clgraph enqueues
    /// meanwhile. While a gate is closed they stay: another thread would release them when it opens.
    pub(in crate::cl) fn drop_unused(&self) {
        if threads::is_own() || deferred_release::holds() {
            return;
        }
        let Ok(_nobody_enqueues) = self.0.globals.enqueuing.try_write() else { return };
        let unused = self.freed().unused();
        drop(unused);
    }

    /// A thread of clgraph enqueues commands of the program, until this is dropped.
    pub(crate) fn enqueue_elsewhere(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let enqueuing = &self.0.globals.enqueuing;
        self.must_free_late().then(|| enqueuing.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the lock under which memory with an address is allocated and freed.
    pub(in crate::cl) fn freed(&self) -> MutexGuard<'_, Freed> {
        self.0.globals.freed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::cl) fn image_formats(&self) -> MutexGuard<'_, HashMap<(ImageKind, ImageAccess), Formats>> {
        self.0.image_formats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the same context for `opencl3`, with its own reference.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::context::Context> {
        let ids: Vec<_> = self.devices().iter().map(Device::raw).collect();
        Ok(opencl3::context::Context::new(self.0.handle.retained_raw()?, &ids))
    }

    /// Returns the C handle, which is valid while this object lives.
    #[must_use]
    pub fn raw(&self) -> cl_context {
        self.0.handle.raw()
    }

    /// Returns the devices of the context.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    /// Returns limits that hold on each device of the context, in bytes: the alignment of sub-buffers and the size of
    /// the largest buffer.
    pub(crate) fn buffer_limits(&self) -> (usize, usize) {
        let caps = || self.devices().iter().map(Device::caps);
        let align = caps().map(|caps| caps.sub_buffer_align).max().unwrap_or(1).max(1);
        let largest = caps().map(|caps| caps.max_allocation).min().unwrap_or(0);
        (align, usize::try_from(largest).unwrap_or(usize::MAX))
    }

    /// Returns an error for a device that does not belong to this context.
    pub(crate) fn check_device(&self, device: &Device) -> Result<()> {
        if self.devices().contains(device) {
            return Ok(());
        }
        let of_context = self.devices().iter().map(Device::name).collect::<Vec<_>>().join(", ");
        Err(SetupError::DeviceOutsideContext { device: device.name().to_owned(), of_context }.into())
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl Eq for Context {}

impl std::hash::Hash for Context {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw().hash(state);
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("raw", &self.0.handle).field("devices", &self.0.devices).finish()
    }
}

/// A type that belongs to one context: a context itself, a queue or a graph. Functions that need a context take any of
/// them.
///
/// You can implement it for types that hold one of these. It must always return the same context.
pub trait InContext {
    /// Returns the context.
    fn context(&self) -> &Context;
}

/// A type that belongs to one device of its context: a queue or a graph. Functions that need a device take any of them.
///
/// You can implement it for types that hold one of these. It must always return the same device, which belongs to the
/// context.
pub trait OnDevice: InContext {
    /// Returns the device.
    fn device(&self) -> &Device;
}

impl InContext for Context {
    fn context(&self) -> &Context {
        self
    }
}

/// The message callback for drivers. It may run on any thread, so it only logs.
unsafe extern "system" fn log_message(text: *const c_char, _: *const c_void, _: usize, _: *mut c_void) {
    if !text.is_null() {
        // SAFETY: "errinfo is a pointer to an error string" (OpenCL 3.0, clCreateContext), valid during the call.
        let text = unsafe { CStr::from_ptr(text) };
        log_later!(Debug, "the driver reports: {}", text.to_string_lossy());
    }
}
