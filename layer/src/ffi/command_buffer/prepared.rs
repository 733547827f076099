//! Kernels with their arguments, as launches have them. Launches of one kernel with the same arguments share one.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::ptr;
use std::sync::{Arc, OnceLock};

use opencl_sys::{CL_INVALID_CONTEXT, CL_INVALID_KERNEL, CL_SUCCESS, cl_kernel, cl_uint};

use super::buffer::QueueFacts;
use super::kernels::{self, Held};
use super::owned::{Kernel, Memory};
use super::{calls, query};
use crate::command_buffer::arguments::{Kind, Missing};
use crate::command_buffer::{Checked, ensure, launch};

/// A kernel with its arguments: rule K.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The program's kernel. It is named to the program, and never launched.
    pub(super) named: Arc<Kernel>,
    /// The layer's own, with the arguments.
    pub(super) kernel: Kernel,
    pub(super) missing: Missing,
    /// The memory that arguments are, where it was seen. The program may release its own references.
    pub(super) memory: BTreeMap<cl_uint, Memory>,
    /// Bytes of a work-group's own memory, for arguments that are such.
    pub(super) local: BTreeMap<cl_uint, usize>,
    /// What the arguments take, from the first update on.
    pub(super) kinds: Arc<OnceLock<Vec<Kind>>>,
    pub(super) facts: launch::Kernel,
}

/// Makes a kernel with the same arguments. Those that are a work-group's own memory are set again: PoCL 3.1 reads beyond what it has cloned
/// of them.
///
/// # Safety
/// The driver knows the kernel.
pub(super) unsafe fn clone(kernel: cl_kernel, local: &BTreeMap<cl_uint, usize>) -> Checked<Kernel> {
    let mut status = CL_SUCCESS;
    // SAFETY: the caller's promise.
    let cloned = unsafe { calls::clCloneKernel(kernel, &raw mut status) };
    // SAFETY: a reference that is new.
    let cloned = unsafe { Kernel::from_raw(cloned) };
    ensure(status == CL_SUCCESS, status)?;
    let cloned = cloned.ok_or(CL_INVALID_KERNEL)?;
    for (index, bytes) in local {
        // SAFETY: a kernel that nobody else has.
        let status = unsafe { calls::clSetKernelArg(cloned.raw(), *index, *bytes, ptr::null()) };
        ensure(status == CL_SUCCESS, status)?;
    }
    Ok(cloned)
}

/// The kernels of a command buffer that is recorded, by their handles. None of them is another one's meanwhile: they are held.
#[derive(Debug, Default)]
pub(super) struct Kernels(HashMap<usize, (Option<u64>, Arc<Prepared>)>);

impl Kernels {
    /// Returns a kernel with the arguments that it has now.
    ///
    /// # Safety
    /// What the program gave for a kernel. Drivers check that it is one.
    pub(super) unsafe fn prepare(&mut self, kernel: cl_kernel, on: &QueueFacts) -> Checked<Arc<Prepared>> {
        let version = kernels::version(kernel);
        let (facts, named) = match self.0.get(&kernel.addr()) {
            Some((then, prepared)) if version.is_some() && *then == version => return Ok(Arc::clone(prepared)),
            Some((_, prepared)) => (prepared.facts, Arc::clone(&prepared.named)),
            None => {
                // SAFETY: the caller's promise, and a device.
                let given = unsafe { query::kernel(kernel, on.device()) }?;
                ensure(given.context == on.context(), CL_INVALID_CONTEXT)?;
                // SAFETY: the driver knows the kernel.
                (given.launches, Arc::new(unsafe { Kernel::also(kernel) }?))
            }
        };
        let Held { missing, memory, local } = kernels::arguments(kernel);
        // SAFETY: the driver knows the kernel.
        let own = unsafe { clone(kernel, &local) }?;
        let prepared = Prepared { named, kernel: own, missing, memory, local, kinds: Arc::default(), facts };
        let prepared = Arc::new(prepared);
        self.0.insert(kernel.addr(), (version, Arc::clone(&prepared)));
        Ok(prepared)
    }
}
