//! The extension functions of a platform.
//!
//! No library exports these functions, and loaders know only some of them. So clgraph asks the driver for each
//! function, for each platform, once in a process. An address does not mean that a device of the platform has the
//! extension.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use opencl_sys::{CL_SUCCESS, cl_platform_id};

use crate::caps::RecordAbi;
use crate::cl::check;
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::context::Context;
use crate::cl::objects::device::Device;
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::error::{DriverError, DriverFault, Result, SetupError, Status};
use crate::ffi::Lookup;
use crate::ffi::capture::CaptureFns;
use crate::ffi::command_buffer::{CommandBufferFns, Missing};
use crate::ffi::core::Core;
use crate::ffi::global_variable::GlobalVariableFns;
use crate::ffi::mutable_dispatch::MutableDispatchFns;
use crate::ffi::usm::UsmFns;

/// The function tables of one platform.
pub(crate) struct Extensions {
    /// `cl_khr_command_buffer`, or the list of required functions that the driver lacks.
    pub(in crate::cl) command_buffer: Result<CommandBufferFns, Missing>,
    /// `cl_khr_command_buffer_mutable_dispatch`.
    pub(in crate::cl) mutable_dispatch: Option<MutableDispatchFns>,
    /// `cl_intel_unified_shared_memory`.
    pub(in crate::cl) usm: Option<UsmFns>,
    /// `cl_intel_global_variable_access`.
    pub(in crate::cl) global_variables: Option<GlobalVariableFns>,
    /// Captures, if clgraph's layer is loaded and serves the platform.
    pub(in crate::cl) capture: Option<&'static CaptureFns>,
    /// Found by trial at the first need.
    record_abi: Mutex<Option<Result<RecordAbi, SetupError>>>,
}

impl Extensions {
    /// Asks for every function.
    pub(in crate::cl) fn load(lookup: Lookup<'_>) -> Self {
        Self {
            command_buffer: CommandBufferFns::load(lookup),
            mutable_dispatch: MutableDispatchFns::load(lookup),
            usm: UsmFns::load(lookup),
            global_variables: GlobalVariableFns::load(lookup),
            capture: CaptureFns::load(lookup),
            record_abi: Mutex::new(None),
        }
    }

    /// Returns the tables of a platform. They live as long as the process, because the platform does too.
    pub(in crate::cl) fn of_platform(core: &'static Core, platform: cl_platform_id) -> &'static Self {
        static KNOWN: Mutex<Option<HashMap<usize, &'static Extensions>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().entry(platform.addr()).or_insert_with(|| {
            let extensions = match core.clGetExtensionFunctionAddressForPlatform {
                None => Self::load(&|_| std::ptr::null_mut()),
                // SAFETY: the driver returned the platform, and the name ends with zero.
                Some(address) => Self::load(&|name| unsafe { address(platform, name.as_ptr()) }),
            };
            Box::leak(Box::new(extensions))
        })
    }

    /// Returns the functions of `cl_khr_command_buffer` that the driver lacks.
    pub(in crate::cl) fn missing_command_buffer_functions(&self) -> Missing {
        self.command_buffer.as_ref().map_or_else(Missing::clone, CommandBufferFns::missing)
    }

    /// Returns the signature of the functions that record commands.
    pub(in crate::cl) fn record_abi(&self, device: &Device, fns: &CommandBufferFns) -> Result<RecordAbi> {
        // The lock is held during the trial, so that only one thread tries.
        let mut known = self.record_abi.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(known.clone()?);
        }
        // An error, for example a lack of memory, is not kept, so a later call tries again. An answer is kept.
        let answer = try_record(device, fns)?;
        if let Ok(abi) = &answer {
            log_later!(Debug, "device `{}`: the functions of command buffers have the signature {abi}", device.name());
        }
        Ok(known.insert(answer).clone()?)
    }
}

/// Tries to record barriers into a command buffer that is then released.
fn try_record(device: &Device, fns: &CommandBufferFns) -> Result<Result<RecordAbi, SetupError>> {
    let unknown = |why: String| SetupError::CommandBufferAbi { device: device.name().to_owned(), why };
    if cfg!(all(windows, target_arch = "x86")) {
        // On 32-bit Windows the callee cleans the stack, so a call with the wrong signature corrupts it. Versions are
        // not reliable either.
        return Ok(Err(unknown("it is not safe to try them on 32-bit Windows".to_owned())));
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
        return Err(DriverError::faulty("clCreateCommandBufferKHR", DriverFault::NoObject).into());
    }
    // SAFETY: the call succeeded, and nothing else uses the command buffer.
    let found = unsafe { fns.probe(buffer) };
    // SAFETY: **live**; this is its only reference.
    if let Err(error) = check("clReleaseCommandBufferKHR", unsafe { (fns.release)(buffer) }) {
        log_later!(Error, "{error}: the object is not released");
    }
    Ok(found.map_err(|status| unknown(format!("a barrier failed with both, at last with {}", Status(status)))))
}
