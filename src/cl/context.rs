//! Contexts.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opencl_sys::{CL_CONTEXT_DEVICES, cl_context};

use super::check;
use super::device::Device;
use super::freed::Freed;
use super::globals::Registry;
use super::handle::{ContextKind, Handle, ProgramKind};
use super::image::{Formats, ImageAccess};
use super::info::{self, ask};
use super::map_queue::MapQueues;
use crate::error::{Result, SetupError};
use crate::ffi::core::Core;
use crate::images::ImageKind;
use crate::known;

/// An OpenCL context with its devices. Cheap to clone; equal when it is the same context.
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
    /// See [`copier`](super::copier).
    copier: Mutex<Option<Handle<ProgramKind>>>,
    /// See [`image`](super::image).
    image_formats: Mutex<HashMap<(ImageKind, ImageAccess), Formats>>,
    /// See [`globals`](super::globals).
    globals: Arc<Registry>,
    handle: Handle<ContextKind>,
    devices: Vec<Device>,
}

impl Context {
    /// Makes a context for devices of one platform. Driver messages go to the `log` crate at the level `debug`.
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
        // SAFETY: **lists**, not empty; **live** for the devices; `log_message` has the type of the headers and needs
        // no user data.
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

    /// Wraps an `opencl3` context, which may be dropped before this one.
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
            // SAFETY: the driver has just listed it.
            .map(|id| unsafe { Device::from_raw(std::ptr::with_exposed_provenance_mut(id)) })
            .collect::<Result<Vec<_>>>()?;
        Self::of(handle, devices)
    }

    fn of(handle: Handle<ContextKind>, devices: Vec<Device>) -> Result<Self> {
        let globals = Registry::of(&handle)?;
        let (copier, image_formats) = (Mutex::default(), Mutex::default());
        Ok(Self(Arc::new(Inner { copier, image_formats, globals, handle, devices })))
    }

    pub(super) fn globals(&self) -> &Registry {
        &self.0.globals
    }

    pub(super) fn map_queues(&self) -> &MapQueues {
        &self.0.globals.maps
    }

    pub(super) fn copier(&self) -> MutexGuard<'_, Option<Handle<ProgramKind>>> {
        self.0.copier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether [`Self::freed`] is for one of its devices.
    pub(super) fn frees_late(&self) -> bool {
        self.0.devices.iter().any(|device| known::frees_late(device.caps()))
    }

    /// Gives back the sub-buffers of [`Self::freed`] that nobody else has any more.
    pub(super) fn drop_unused(&self) {
        let unused = self.freed().unused();
        drop(unused);
    }

    /// The lock under which memory with an address is allocated and given back.
    pub(super) fn freed(&self) -> MutexGuard<'_, Freed> {
        self.0.globals.freed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn image_formats(&self) -> MutexGuard<'_, HashMap<(ImageKind, ImageAccess), Formats>> {
        self.0.image_formats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same context for `opencl3`, with a reference of its own.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::context::Context> {
        let ids: Vec<_> = self.devices().iter().map(Device::raw).collect();
        Ok(opencl3::context::Context::new(self.0.handle.retained_raw()?, &ids))
    }

    /// The C handle, valid while this object lives.
    #[must_use]
    pub fn raw(&self) -> cl_context {
        self.0.handle.raw()
    }

    /// The devices of the context.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    /// What every device of the context can do: what sub-buffers start at a multiple of, and the largest buffer, in bytes.
    pub(crate) fn buffer_limits(&self) -> (usize, usize) {
        let caps = || self.devices().iter().map(Device::caps);
        let align = caps().map(|caps| caps.sub_buffer_align).max().unwrap_or(1).max(1);
        let largest = caps().map(|caps| caps.max_allocation).min().unwrap_or(0);
        (align, usize::try_from(largest).unwrap_or(usize::MAX))
    }

    /// Says no to a device that is not of this context.
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

/// What belongs to one context: a context itself, a queue, a graph. Functions that need a context take any of them. It may be
/// implemented for types that hold one of these: the answer never changes.
pub trait InContext {
    /// The context that it belongs to.
    fn context(&self) -> &Context;
}

/// What leads to one device of its context: a queue, a graph. Functions that need a device take any of them. It may be
/// implemented for types that hold one of these: the answer never changes, and the device is one of the context.
pub trait OnDevice: InContext {
    /// The device that it leads to.
    fn device(&self) -> &Device;
}

impl InContext for Context {
    fn context(&self) -> &Context {
        self
    }
}

/// The driver's message callback. It may run on any thread, so it only logs.
unsafe extern "system" fn log_message(text: *const c_char, _: *const c_void, _: usize, _: *mut c_void) {
    if !text.is_null() {
        // SAFETY: "errinfo is a pointer to an error string" (OpenCL 3.0, clCreateContext), valid during the call.
        let text = unsafe { CStr::from_ptr(text) };
        log::debug!("the driver reports: {}", text.to_string_lossy());
    }
}
