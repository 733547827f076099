//! Platforms and devices.

use std::sync::{Arc, Mutex, PoisonError};

use opencl_sys::{
    CL_DEVICE_NOT_FOUND, CL_DEVICE_PLATFORM, CL_DEVICE_TYPE_ALL, CL_PLATFORM_NAME, CL_PLATFORM_VENDOR,
    CL_PLATFORM_VERSION, cl_device_id, cl_platform_id, cl_platform_info,
};

use crate::caps::{Abi, Caps, CommandBufferCaps, DetectedBy, MutableCaps, UpdateAbi};
use crate::cl::check;
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::handle::{DeviceKind, Handle};
use crate::cl::query::capabilities;
use crate::cl::query::extensions::Extensions;
use crate::cl::query::info::{self, ask};
use crate::env;
use crate::error::{DriverError, Error, Result, SetupError};
use crate::ffi::core::Core;
use crate::ffi::drivers;

/// The status of `clGetPlatformIDs` if the loader finds no driver (`cl_khr_icd`).
const CL_PLATFORM_NOT_FOUND_KHR: i32 = -1001;

/// An OpenCL device. Clones are cheap. Two values are equal if they are the same device.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    handle: Handle<DeviceKind>,
    caps: Caps,
    extensions: &'static Extensions,
}

impl Device {
    /// Wraps an `opencl3` device.
    ///
    /// # Errors
    /// [`SetupError::NoLibrary`], [`SetupError::MissingFunction`]; [`SetupError::Environment`] for a wrong
    /// `CLGRAPH_ASSUME`; [`crate::DriverError`] if the driver refuses a query.
    #[doc(alias = "clGetDeviceInfo")]
    pub fn from_opencl3(device: &opencl3::device::Device) -> Result<Self> {
        // SAFETY: an `opencl3` device is a device of a driver.
        unsafe { Self::from_raw(device.id()) }
    }

    /// Wraps a raw device, and retains it if it is a sub-device.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`]; those of [`from_opencl3`](Self::from_opencl3).
    ///
    /// # Safety
    /// `raw` is null or a valid device.
    pub unsafe fn from_raw(raw: cl_device_id) -> Result<Self> {
        let assume = env::assume()?;
        // SAFETY: the caller's promise.
        let handle = unsafe { Handle::from_borrowed(raw) }?;
        let core = Core::get()?;
        let platform = info::value::<usize>("clGetDeviceInfo", ask!(core, clGetDeviceInfo, raw, CL_DEVICE_PLATFORM))?;
        let platform = std::ptr::with_exposed_provenance_mut(platform);
        let extensions = Extensions::of_platform(core, platform);
        let caps = capabilities::read(core, platform, handle.raw(), extensions, assume)?;
        Ok(Self(Arc::new(Inner { handle, caps, extensions })))
    }

    /// Returns the same device with other extension functions and capabilities, for tests.
    #[cfg(test)]
    pub(crate) fn with_fakes(&self, extensions: &'static Extensions, change: impl FnOnce(&mut Caps)) -> Result<Self> {
        let mut caps = self.0.caps.clone();
        change(&mut caps);
        Ok(Self(Arc::new(Inner { handle: self.0.handle.try_clone()?, caps, extensions })))
    }

    /// Returns the same device for `opencl3`.
    #[must_use]
    pub fn to_opencl3(&self) -> opencl3::device::Device {
        opencl3::device::Device::new(self.raw())
    }

    /// Returns the C handle, which is valid while this object lives.
    #[must_use]
    pub fn raw(&self) -> cl_device_id {
        self.0.handle.raw()
    }

    /// Returns the capabilities of the device.
    #[must_use]
    #[doc(alias("clGetDeviceInfo", "clinfo"))]
    pub fn caps(&self) -> &Caps {
        &self.0.caps
    }

    /// Returns the signatures of the driver's command-buffer functions, or `None` if command buffers cannot be used.
    /// They cannot be used if the device does not list the extension (unless `CLGRAPH_ASSUME` adds it), or if the
    /// driver lacks functions.
    ///
    /// The first call for a platform finds the signatures by trial: it records barriers into a temporary command
    /// buffer, which is never enqueued. The answer is kept.
    ///
    /// # Errors
    /// [`SetupError::CommandBufferAbi`] if the driver accepts neither signature; [`crate::DriverError`] if it cannot
    /// make a queue or a command buffer for the trial.
    pub fn abi(&self) -> Result<Option<Abi>> {
        let Some(caps) = self.usable_command_buffers() else { return Ok(None) };
        let Ok(fns) = &self.0.extensions.command_buffer else { return Ok(None) };
        let record = self.0.extensions.record_abi(self, fns)?;
        let mutable = caps.mutable.filter(|_| self.0.extensions.mutable_dispatch.is_some());
        let update = mutable.and_then(|mutable| UpdateAbi::credible(mutable.version, record));
        Ok(Some(Abi { record, update }))
    }

    /// Returns which fields of recorded kernels can be updated. Nothing can be updated if the signature is unknown.
    pub(crate) fn mutable(&self) -> Option<MutableCaps> {
        // A caller that asks for the signatures gets this error.
        self.abi().ok()??.update?;
        self.caps().command_buffers.as_ref()?.mutable
    }

    /// Returns the capabilities of command buffers, if they can be used.
    fn usable_command_buffers(&self) -> Option<&CommandBufferCaps> {
        self.0.caps.command_buffers.as_ref().filter(|caps| caps.detected_by != DetectedBy::Hidden)
    }

    pub(in crate::cl) fn extensions(&self) -> &'static Extensions {
        self.0.extensions
    }

    /// Returns the name of the device.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.caps.name
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl Eq for Device {}

impl std::hash::Hash for Device {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw().hash(state);
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({:?} of {:?})", self.0.caps.name, self.0.caps.platform)
    }
}

/// An OpenCL platform: a driver with its devices.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Platform {
    /// `CL_PLATFORM_NAME`.
    pub name: String,
    /// `CL_PLATFORM_VENDOR`.
    pub vendor: String,
    /// `CL_PLATFORM_VERSION`, as the driver writes it.
    pub version: String,
    /// The devices, in the order of the driver.
    pub devices: Vec<Device>,
    /// Why devices of the platform are not in `devices`.
    pub left_out: Vec<Error>,
    /// The handle as a number, because a pointer cannot be sent to other threads.
    id: usize,
}

impl Platform {
    /// Returns the C handle, which is valid as long as the process runs.
    #[must_use]
    pub fn raw(&self) -> cl_platform_id {
        std::ptr::with_exposed_provenance_mut(self.id)
    }
}

/// Returns all platforms, in the order of the loader.
///
/// A device that cannot be queried is not in [`Platform::devices`]; [`Platform::left_out`] has its error.
///
/// # Errors
/// [`SetupError::NoLibrary`], [`SetupError::MissingFunction`], [`SetupError::NoPlatform`],
/// [`SetupError::NoDriverWorks`]; [`SetupError::Environment`] for a wrong `CLGRAPH_ASSUME`; [`crate::DriverError`] if
/// the loader refuses a query.
///
/// ```
/// for platform in clgraph::platforms()? {
///     println!("{} ({}): {} devices", platform.name, platform.version, platform.devices.len());
/// }
/// # Ok::<(), clgraph::Error>(())
/// ```
#[doc(alias = "clGetPlatformIDs")]
pub fn platforms() -> Result<Vec<Platform>> {
    // PoCL 3.1: while one thread makes the first call of a process, other threads see a platform without devices.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    env::assume()?;
    let core = Core::get()?;
    platform_ids(core)?.into_iter().map(|id| platform(core, id)).collect()
}

fn platform(core: &'static Core, id: cl_platform_id) -> Result<Platform> {
    let text = |name: cl_platform_info| info::text("clGetPlatformInfo", ask!(core, clGetPlatformInfo, id, name));
    let (mut devices, mut left_out) = (Vec::new(), Vec::new());
    match device_ids(core, id) {
        Ok(ids) => {
            for id in ids {
                // SAFETY: the driver has just listed the device.
                match unsafe { Device::from_raw(id) } {
                    Ok(device) => devices.push(device),
                    // A device that cannot be queried must not hide the others.
                    Err(error) => left_out.push(error),
                }
            }
        }
        Err(error) => left_out.push(error.into()),
    }
    let (name, id) = (text(CL_PLATFORM_NAME)?, id.expose_provenance());
    for error in &left_out {
        log_later!(Debug, "platform {name}: {error}: clgraph ignores this device");
    }
    let (vendor, version) = (text(CL_PLATFORM_VENDOR)?, text(CL_PLATFORM_VERSION)?);
    Ok(Platform { name, vendor, version, devices, left_out, id })
}

/// Returns all devices of all platforms, in the order of the drivers.
///
/// # Errors
/// As [`platforms`], and [`SetupError::NoDevice`].
///
/// ```
/// for device in clgraph::devices()? {
///     println!("{} ({})", device.name(), device.caps().platform);
/// }
/// # Ok::<(), clgraph::Error>(())
/// ```
#[doc(alias = "clGetDeviceIDs")]
pub fn devices() -> Result<Vec<Device>> {
    let platforms = platforms()?;
    let found: Vec<Device> = platforms.iter().flat_map(|platform| platform.devices.iter().cloned()).collect();
    if found.is_empty() {
        let described = platforms.iter().map(|platform| match platform.left_out.first() {
            Some(error) => format!("{}: {error}", platform.name),
            None => platform.name.clone(),
        });
        return Err(SetupError::NoDevice { platforms: described.collect::<Vec<_>>().join(", ") }.into());
    }
    Ok(found)
}

/// Returns an error for each driver that is registered with the loader (`/etc/OpenCL/vendors`, `OCL_ICD_VENDORS`) and
/// does not work: [`SetupError::BrokenDriver`], with the reason.
///
/// No loader reports such drivers, so a missing device may belong to one of them. The list is empty where drivers are
/// not registered by files, as on Windows and macOS.
///
/// ```
/// for error in clgraph::broken_drivers() {
///     eprintln!("{error}");
/// }
/// ```
#[must_use]
pub fn broken_drivers() -> Vec<SetupError> {
    drivers::broken()
}

/// Returns the device that most programs want: the first GPU, or the first device if there is no GPU.
///
/// # Errors
/// As [`devices`].
pub fn best_device() -> Result<Device> {
    let devices = devices()?;
    let best = devices.iter().find(|device| device.caps().gpu).or(devices.first());
    Ok(best.cloned().ok_or(SetupError::NoDevice { platforms: String::new() })?)
}

fn platform_ids(core: &Core) -> Result<Vec<cl_platform_id>> {
    let mut count = 0;
    // SAFETY: **lists**: null and room for 0 handles, so the driver only writes the count.
    let status = unsafe { (core.clGetPlatformIDs)(0, std::ptr::null_mut(), &raw mut count) };
    if status == CL_PLATFORM_NOT_FOUND_KHR || (status == 0 && count == 0) {
        let broken = drivers::broken();
        let nothing = if broken.is_empty() { SetupError::NoPlatform } else { SetupError::NoDriverWorks { broken } };
        return Err(nothing.into());
    }
    check("clGetPlatformIDs", status)?;
    let mut ids = vec![std::ptr::null_mut(); count as usize];
    // SAFETY: the list has room for `count` handles.
    check("clGetPlatformIDs", unsafe { (core.clGetPlatformIDs)(count, ids.as_mut_ptr(), std::ptr::null_mut()) })?;
    Ok(ids)
}

fn device_ids(core: &Core, platform: cl_platform_id) -> Result<Vec<cl_device_id>, DriverError> {
    let mut count = 0;
    // SAFETY: **lists**; the driver has listed the platform.
    let status =
        unsafe { (core.clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 0, std::ptr::null_mut(), &raw mut count) };
    if status == CL_DEVICE_NOT_FOUND || (status == 0 && count == 0) {
        return Ok(Vec::new());
    }
    check("clGetDeviceIDs", status)?;
    let mut ids = vec![std::ptr::null_mut(); count as usize];
    // SAFETY: the list has room for `count` handles.
    let status =
        unsafe { (core.clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, count, ids.as_mut_ptr(), std::ptr::null_mut()) };
    check("clGetDeviceIDs", status)?;
    Ok(ids)
}
