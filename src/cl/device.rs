//! Devices, and what they can do.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use opencl_sys::{
    CL_DEVICE_ADDRESS_BITS, CL_DEVICE_BUILT_IN_KERNELS, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_EXTENSIONS,
    CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_IL_VERSION, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_COMPUTE_UNITS,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_PARAMETER_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE,
    CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_MEM_BASE_ADDR_ALIGN, CL_DEVICE_NAME,
    CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, CL_DEVICE_NOT_FOUND, CL_DEVICE_PLATFORM, CL_DEVICE_QUEUE_PROPERTIES,
    CL_DEVICE_TYPE, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_GPU, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION,
    CL_PLATFORM_NAME, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROFILING_ENABLE, cl_device_id, cl_device_info,
    cl_platform_id,
};

use super::check;
use super::handle::{DeviceKind, Handle};
use super::info::{self, ask};
use crate::caps::{Caps, Version};
use crate::error::{DriverError, Result, SetupError};
use crate::ffi::core::Core;

/// The status of `clGetPlatformIDs` when the loader knows no driver (`cl_khr_icd`).
const CL_PLATFORM_NOT_FOUND_KHR: i32 = -1001;

/// An OpenCL device. Cheap to clone; equal when it is the same device.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    handle: Handle<DeviceKind>,
    caps: Caps,
}

impl Device {
    /// Wraps an `opencl3` device.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses a query.
    #[doc(alias = "clGetDeviceInfo")]
    pub fn from_opencl3(device: &opencl3::device::Device) -> Result<Self> {
        // SAFETY: an `opencl3` device names a device of a driver.
        unsafe { Self::from_raw(device.id()) }
    }

    /// Wraps a raw device. A sub-device is retained.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`]; [`crate::DriverError`] when the driver refuses a query.
    ///
    /// # Safety
    /// `raw` is null or a valid device.
    pub unsafe fn from_raw(raw: cl_device_id) -> Result<Self> {
        // SAFETY: the caller's promise.
        let handle = unsafe { Handle::from_borrowed(raw) }?;
        let caps = read_caps(Core::get()?, handle.raw())?;
        Ok(Self(Arc::new(Inner { handle, caps })))
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
    pub fn caps(&self) -> &Caps {
        &self.0.caps
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

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({:?} of {:?})", self.0.caps.name, self.0.caps.platform)
    }
}

/// Every device of every platform, in the order of the drivers.
///
/// # Errors
/// [`SetupError::NoLibrary`], [`SetupError::NoPlatform`], [`SetupError::NoDevice`].
///
/// ```
/// for device in clgraph::devices()? {
///     println!("{} ({})", device.name(), device.caps().platform);
/// }
/// # Ok::<(), clgraph::Error>(())
/// ```
#[doc(alias = "clGetDeviceIDs")]
pub fn devices() -> Result<Vec<Device>> {
    // PoCL 3.1: while one thread makes the first call of a process, the others see a platform without devices.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let core = Core::get()?;
    let platforms = platforms(core)?;
    let mut found = Vec::new();
    let mut names = Vec::new();
    for platform in platforms {
        names.push(info::text("clGetPlatformInfo", ask!(core, clGetPlatformInfo, platform, CL_PLATFORM_NAME))?);
        let ids = device_ids(core, platform).unwrap_or_else(|error| {
            log::warn!("the devices of {} are left out: {error}", names.join(", "));
            Vec::new()
        });
        for id in ids {
            // SAFETY: the driver has just listed it.
            match unsafe { Device::from_raw(id) } {
                Ok(device) => found.push(device),
                // One that cannot be asked does not hide the others.
                Err(error) => log::warn!("a device of {} is left out: {error}", names.join(", ")),
            }
        }
    }
    if found.is_empty() { Err(SetupError::NoDevice { platforms: names.join(", ") }.into()) } else { Ok(found) }
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

fn platforms(core: &Core) -> Result<Vec<cl_platform_id>> {
    let mut count = 0;
    // SAFETY: **lists**: no place and room for none, so only the count is written.
    let status = unsafe { (core.clGetPlatformIDs)(0, std::ptr::null_mut(), &raw mut count) };
    if status == CL_PLATFORM_NOT_FOUND_KHR || (status == 0 && count == 0) {
        return Err(SetupError::NoPlatform.into());
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

fn read_caps(core: &'static Core, device: *mut c_void) -> Result<Caps, DriverError> {
    let text = |name: cl_device_info| info::text("clGetDeviceInfo", ask!(core, clGetDeviceInfo, device, name));
    let number =
        |name: cl_device_info| info::value::<u32>("clGetDeviceInfo", ask!(core, clGetDeviceInfo, device, name));
    let long = |name: cl_device_info| info::value::<u64>("clGetDeviceInfo", ask!(core, clGetDeviceInfo, device, name));
    let size =
        |name: cl_device_info| info::value::<usize>("clGetDeviceInfo", ask!(core, clGetDeviceInfo, device, name));
    let words = |text: String, mark: char| -> Vec<String> {
        text.split(mark).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };

    let platform: usize = size(CL_DEVICE_PLATFORM)?;
    let platform = std::ptr::with_exposed_provenance_mut::<c_void>(platform);
    let version = Version::parse(&text(CL_DEVICE_VERSION)?).unwrap_or_default();
    let item_sizes =
        info::values::<usize>("clGetDeviceInfo", ask!(core, clGetDeviceInfo, device, CL_DEVICE_MAX_WORK_ITEM_SIZES))?;
    let mut max_work_item_sizes = [1; 3];
    for (limit, size) in max_work_item_sizes.iter_mut().zip(item_sizes) {
        *limit = size;
    }
    let queue_properties = long(CL_DEVICE_QUEUE_PROPERTIES)?;
    Ok(Caps {
        name: text(CL_DEVICE_NAME)?,
        vendor: text(CL_DEVICE_VENDOR)?,
        platform: info::text("clGetPlatformInfo", ask!(core, clGetPlatformInfo, platform, CL_PLATFORM_NAME))?,
        driver_version: text(CL_DRIVER_VERSION)?,
        version,
        gpu: long(CL_DEVICE_TYPE)? & CL_DEVICE_TYPE_GPU != 0,
        compiler: number(CL_DEVICE_COMPILER_AVAILABLE)? != 0,
        address_bits: number(CL_DEVICE_ADDRESS_BITS)?,
        compute_units: number(CL_DEVICE_MAX_COMPUTE_UNITS)?,
        max_work_group_size: size(CL_DEVICE_MAX_WORK_GROUP_SIZE)?,
        max_work_item_sizes,
        // OpenCL 2.x always has them; OpenCL 3.0 made them a question; 1.x never has them.
        non_uniform_work_groups: match version.major {
            0 | 1 => false,
            2 => true,
            _ => number(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT).unwrap_or(0) != 0,
        },
        global_memory: long(CL_DEVICE_GLOBAL_MEM_SIZE)?,
        max_allocation: long(CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        local_memory: long(CL_DEVICE_LOCAL_MEM_SIZE)?,
        max_parameter_size: size(CL_DEVICE_MAX_PARAMETER_SIZE)?,
        sub_buffer_align: (number(CL_DEVICE_MEM_BASE_ADDR_ALIGN)? as usize / 8).max(1),
        out_of_order: queue_properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0,
        profiling: queue_properties & CL_QUEUE_PROFILING_ENABLE != 0,
        // A query of OpenCL 2.1: drivers without it have no intermediate language either.
        il_versions: words(text(CL_DEVICE_IL_VERSION).unwrap_or_default(), ' '),
        builtin_kernels: words(text(CL_DEVICE_BUILT_IN_KERNELS)?, ';'),
        extensions: words(text(CL_DEVICE_EXTENSIONS)?, ' '),
    })
}
