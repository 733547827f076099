//! The extension functions of a platform.
//!
//! No library exports them, and loaders know only some: the driver is asked for each, by platform, once in a process. An
//! address does not mean that a device of the platform has the extension.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use opencl_sys::{CL_SUCCESS, cl_platform_id};

use super::check;
use super::context::Context;
use super::device::Device;
use super::queue::{DriverQueue, QueueProperties};
use crate::caps::RecordAbi;
use crate::error::{DriverError, Fault, Result, SetupError, Status};
use crate::ffi::Lookup;
use crate::ffi::command_buffer::{CommandBufferFns, Missing};
use crate::ffi::core::Core;
use crate::ffi::global_variable::GlobalVariableFns;
use crate::ffi::mutable_dispatch::MutableDispatchFns;
use crate::ffi::usm::UsmFns;

/// The tables of one platform.
pub(crate) struct Extensions {
    /// `cl_khr_command_buffer`, or the functions that the driver lacks of those without which it cannot be used.
    pub(super) command_buffer: Result<CommandBufferFns, Missing>,
    /// `cl_khr_command_buffer_mutable_dispatch`.
    pub(super) mutable_dispatch: Option<MutableDispatchFns>,
    /// `cl_intel_unified_shared_memory`.
    pub(super) usm: Option<UsmFns>,
    /// `cl_intel_global_variable_access`.
    pub(super) global_variables: Option<GlobalVariableFns>,
    /// Found by trying, at the first need.
    record_abi: Mutex<Option<Result<RecordAbi, SetupError>>>,
}

impl Extensions {
    /// Asks for every function.
    pub(super) fn load(lookup: Lookup<'_>) -> Self {
        Self {
            command_buffer: CommandBufferFns::load(lookup),
            mutable_dispatch: MutableDispatchFns::load(lookup),
            usm: UsmFns::load(lookup),
            global_variables: GlobalVariableFns::load(lookup),
            record_abi: Mutex::new(None),
        }
    }

    /// The tables of a platform, which live as long as the process, as the platform does.
    pub(super) fn of_platform(core: &'static Core, platform: cl_platform_id) -> &'static Self {
        static KNOWN: Mutex<Option<HashMap<usize, &'static Extensions>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().entry(platform.addr()).or_insert_with(|| {
            let extensions = match core.clGetExtensionFunctionAddressForPlatform {
                None => Self::load(&|_| std::ptr::null_mut()),
                // SAFETY: the platform was named by the driver, and the name ends with zero.
                Some(address) => Self::load(&|name| unsafe { address(platform, name.as_ptr()) }),
            };
            Box::leak(Box::new(extensions))
        })
    }

    /// The functions of `cl_khr_command_buffer` that the driver lacks.
    pub(super) fn missing_command_buffer_functions(&self) -> Missing {
        self.command_buffer.as_ref().map_or_else(Missing::clone, CommandBufferFns::missing)
    }

    /// Which signature the functions have that record commands.
    pub(super) fn record_abi(&self, device: &Device, fns: &CommandBufferFns) -> Result<RecordAbi> {
        // Held while trying: one try is enough.
        let mut known = self.record_abi.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(known.clone()?);
        }
        // What failed for want of memory, say, may be tried again; an answer stays.
        let answer = try_record(device, fns)?;
        if let Ok(abi) = &answer {
            log::debug!("device `{}`: command buffers record {abi}", device.name());
        }
        Ok(known.insert(answer).clone()?)
    }
}

/// Records barriers into a command buffer that is then thrown away.
fn try_record(device: &Device, fns: &CommandBufferFns) -> Result<Result<RecordAbi, SetupError>> {
    let unknown = |why: String| SetupError::CommandBufferAbi { device: device.name().to_owned(), why };
    if cfg!(all(windows, target_arch = "x86")) {
        // Callees clean the stack there, so a call by the wrong signature breaks it, and versions are no guide.
        return Ok(Err(unknown("on 32-bit Windows it is not safe to find out".to_owned())));
    }
    let required = device.caps().command_buffers.as_ref().map(|caps| caps.required_queue).unwrap_or_default();
    let properties = QueueProperties::new().out_of_order(required.out_of_order).profiling(required.profiling);
    let context = Context::new(std::slice::from_ref(device))?;
    let queue = DriverQueue::with_properties(&context, device, properties)?;
    let (list, mut status) = ([queue.raw()], CL_SUCCESS);
    // SAFETY: **live**, **lists**; no properties.
    let buffer = unsafe { (fns.create)(1, list.as_ptr(), std::ptr::null(), &raw mut status) };
    check("clCreateCommandBufferKHR", status)?;
    if buffer.is_null() {
        return Err(DriverError::faulty("clCreateCommandBufferKHR", Fault::NoObject).into());
    }
    // SAFETY: the call succeeded, and nobody else knows the command buffer.
    let found = unsafe { fns.probe(buffer) };
    // SAFETY: **live**; this is its one reference.
    if let Err(error) = check("clReleaseCommandBufferKHR", unsafe { (fns.release)(buffer) }) {
        log::error!("{error}: the object is not released");
    }
    Ok(found.map_err(|status| unknown(format!("both refused a barrier, the last with {}", Status(status)))))
}
