//! Devices, and what they can do.

use std::sync::{Arc, Mutex, PoisonError};

use opencl_sys::{
    CL_DEVICE_NOT_FOUND, CL_DEVICE_PLATFORM, CL_DEVICE_TYPE_ALL, CL_PLATFORM_NAME, CL_PLATFORM_VENDOR,
    CL_PLATFORM_VERSION, cl_device_id, cl_platform_id, cl_platform_info,
};

use super::capabilities;
use super::check;
use super::extensions::Extensions;
use super::handle::{DeviceKind, Handle};
use super::info::{self, ask};
use crate::caps::{Abi, Caps, Claim, CommandBufferCaps, MutableCaps, UpdateAbi};
use crate::env;
use crate::error::{DriverError, Error, Result, SetupError};
use crate::ffi::core::Core;
use crate::ffi::drivers;

/// The status of `clGetPlatformIDs` when the loader knows no driver (`cl_khr_icd`).
const CL_PLATFORM_NOT_FOUND_KHR: i32 = -1001;

/// An OpenCL device. Cheap to clone; equal when it is the same device.
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
    /// `CLGRAPH_ASSUME`; [`crate::DriverError`] when the driver refuses a query.
    #[doc(alias = "clGetDeviceInfo")]
    pub fn from_opencl3(device: &opencl3::device::Device) -> Result<Self> {
        // SAFETY: an `opencl3` device names a device of a driver.
        unsafe { Self::from_raw(device.id()) }
    }

    /// Wraps a raw device. A sub-device is retained.
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

    /// The same device with other extension functions and capabilities, for tests.
    #[cfg(test)]
    pub(crate) fn with_fakes(&self, extensions: &'static Extensions, change: impl FnOnce(&mut Caps)) -> Result<Self> {
        let mut caps = self.0.caps.clone();
        change(&mut caps);
        Ok(Self(Arc::new(Inner { handle: self.0.handle.try_clone()?, caps, extensions })))
    }

    /// The same device for `opencl3`.
    #[must_use]
    pub fn to_opencl3(&self) -> opencl3::device::Device {
        opencl3::device::Device::new(self.raw())
    }

    /// The C handle, valid while this object lives.
    #[must_use]
    pub fn raw(&self) -> cl_device_id {
        self.0.handle.raw()
    }

    /// What the device can do.
    #[must_use]
    #[doc(alias("clGetDeviceInfo", "clinfo"))]
    pub fn caps(&self) -> &Caps {
        &self.0.caps
    }

    /// The signatures of the driver's command-buffer functions; `None` where command buffers cannot be used: the device does
    /// not list the extension (and `CLGRAPH_ASSUME` does not say otherwise), or the driver lacks functions.
    ///
    /// They are found by trying: at the first call for a platform, barriers are recorded into a scratch command buffer that
    /// is never enqueued. The answer is kept.
    ///
    /// # Errors
    /// [`SetupError::CommandBufferAbi`] when the driver answers to neither signature; [`crate::DriverError`] when it makes
    /// no queue or command buffer to try with.
    pub fn abi(&self) -> Result<Option<Abi>> {
        let Some(caps) = self.usable_command_buffers() else { return Ok(None) };
        let Ok(fns) = &self.0.extensions.command_buffer else { return Ok(None) };
        let record = self.0.extensions.record_abi(self, fns)?;
        let mutable = caps.mutable.filter(|_| self.0.extensions.mutable_dispatch.is_some());
        let update = mutable.and_then(|mutable| UpdateAbi::credible(mutable.version, record));
        Ok(Some(Abi { record, update }))
    }

    /// What can be changed in place in recorded kernels: none without a signature to call by.
    pub(crate) fn mutable(&self) -> Option<MutableCaps> {
        // Whoever asks for the signatures gets the error.
        self.abi().ok()??.update?;
        self.caps().command_buffers.as_ref()?.mutable
    }

    /// What is known of the command buffers that may be used.
    fn usable_command_buffers(&self) -> Option<&CommandBufferCaps> {
        self.0.caps.command_buffers.as_ref().filter(|caps| caps.claim != Claim::Hidden)
    }

    pub(super) fn extensions(&self) -> &'static Extensions {
        self.0.extensions
    }

    /// The device's name.
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

/// An OpenCL platform: a driver, with its devices.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Platform {
    /// `CL_PLATFORM_NAME`.
    pub name: String,
    /// `CL_PLATFORM_VENDOR`.
    pub vendor: String,
    /// `CL_PLATFORM_VERSION`, as the driver writes it.
    pub version: String,
    /// Its devices, in the order of the driver.
    pub devices: Vec<Device>,
    /// Why devices are not among them.
    pub left_out: Vec<Error>,
    /// Its address as a number, because a pointer would keep it from other threads.
    id: usize,
}

impl Platform {
    /// The C handle, which is valid for as long as the process runs.
    #[must_use]
    pub fn raw(&self) -> cl_platform_id {
        std::ptr::with_exposed_provenance_mut(self.id)
    }
}

/// Every platform, in the order of the loader.
///
/// # Errors
/// [`SetupError::NoLibrary`], [`SetupError::MissingFunction`], [`SetupError::NoPlatform`],
/// [`SetupError::NoDriverWorks`]; [`SetupError::Environment`] for a wrong `CLGRAPH_ASSUME`; [`crate::DriverError`] when
/// the loader refuses a query. Devices that cannot be asked are left out, and say why.
///
/// ```
/// for platform in clgraph::platforms()? {
///     println!("{} ({}): {} devices", platform.name, platform.version, platform.devices.len());
/// }
/// # Ok::<(), clgraph::Error>(())
/// ```
#[doc(alias = "clGetPlatformIDs")]
pub fn platforms() -> Result<Vec<Platform>> {
    // PoCL 3.1: while one thread makes the first call of a process, the others see a platform without devices.
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
                // SAFETY: the driver has just listed it.
                match unsafe { Device::from_raw(id) } {
                    Ok(device) => devices.push(device),
                    // One that cannot be asked does not hide the others.
                    Err(error) => left_out.push(error),
                }
            }
        }
        Err(error) => left_out.push(error.into()),
    }
    let (name, id) = (text(CL_PLATFORM_NAME)?, id.expose_provenance());
    left_out.iter().for_each(|error| log::debug!("platform {name}: {error}: left out"));
    let (vendor, version) = (text(CL_PLATFORM_VENDOR)?, text(CL_PLATFORM_VERSION)?);
    Ok(Platform { name, vendor, version, devices, left_out, id })
}

/// Every device of every platform, in the order of the drivers.
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
        let told = platforms.iter().map(|platform| match platform.left_out.first() {
            Some(error) => format!("{}: {error}", platform.name),
            None => platform.name.clone(),
        });
        return Err(SetupError::NoDevice { platforms: told.collect::<Vec<_>>().join(", ") }.into());
    }
    Ok(found)
}

/// The drivers that are listed for the loader (`/etc/OpenCL/vendors`, `OCL_ICD_VENDORS`) and do not work, each with why:
/// [`SetupError::BrokenDriver`]. No loader tells of them, so a device that is missing may be of one. Nothing where drivers are
/// not listed by files, as on Windows and macOS.
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

/// The device that most programs want: the first GPU, or else the first device.
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
    // SAFETY: **lists**: no place and room for none, so only the count is written.
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
    // SAFETY: **lists**; the platform was listed by the driver.
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
