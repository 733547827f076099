//! Kernels with their arguments, as launches have them. Launches of one kernel with the same arguments share one.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, OnceLock};

use opencl_sys::{CL_INVALID_CONTEXT, CL_INVALID_KERNEL, CL_SUCCESS, cl_kernel};

use super::buffer::QueueFacts;
use super::kernels::{self, Held, Kept};
use super::owned::Kernel;
use super::{calls, query};
use crate::command_buffer::arguments::{Kind, Value, Values};
use crate::command_buffer::ranges::Target;
use crate::command_buffer::{Checked, ensure, launch};

/// A kernel with its arguments: rule K.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The program's kernel. It is named to the program, and never launched.
    pub(super) named: Arc<Kernel>,
    /// The layer's own, with the arguments.
    pub(super) kernel: Kernel,
    /// What the arguments are, where it was seen. The program may release its own references to the objects.
    pub(super) values: Values<Kept>,
    /// It was told more than arguments: `clSetKernelExecInfo`.
    pub(super) has_exec_info: bool,
    /// What the arguments take, from the first update on.
    pub(super) kinds: Arc<OnceLock<Vec<Kind>>>,
    pub(super) facts: launch::Kernel,
}

impl Prepared {
    /// Returns what the arguments take.
    pub(super) fn kinds(&self) -> Checked<&[Kind]> {
        if let Some(kinds) = self.kinds.get() {
            return Ok(kinds);
        }
        // SAFETY: a kernel that is held.
        let kinds = unsafe { query::arguments(self.named.raw()) }?;
        Ok(self.kinds.get_or_init(|| kinds))
    }

    /// Checks the objects among the arguments for a device that may not take all of its context's.
    pub(super) fn check_on(&self, target: &Target) -> Checked {
        if target.limits.is_none() {
            return Ok(());
        }
        self.values.list().iter().try_for_each(|value| match value {
            // SAFETY: an object that is held.
            Value::Object(Kept::Memory(memory)) => unsafe { query::is_argument(memory.raw(), target) },
            _ => Ok(()),
        })
    }
}

/// Makes a kernel with the same arguments. Those without a value are set again: PoCL 3.1 reads beyond what it has
/// cloned of a work-group's own memory.
///
/// # Safety
/// The driver knows the kernel.
pub(super) unsafe fn clone(kernel: cl_kernel, values: &Values<Kept>) -> Checked<Kernel> {
    let mut status = CL_SUCCESS;
    // SAFETY: the caller's promise.
    let cloned = unsafe { calls::clCloneKernel(kernel, &raw mut status) };
    // SAFETY: a reference that is new.
    let cloned = unsafe { Kernel::from_raw(cloned) };
    ensure(status == CL_SUCCESS, status)?;
    let cloned = cloned.ok_or(CL_INVALID_KERNEL)?;
    for (index, bytes) in values.nothings() {
        // SAFETY: a kernel that nobody else has.
        let status = unsafe { calls::clSetKernelArg(cloned.raw(), index, bytes, ptr::null()) };
        ensure(status == CL_SUCCESS, status)?;
    }
    Ok(cloned)
}

/// The kernels of a command buffer that is recorded, by their handles. None of them is another one's meanwhile: they are held.
#[derive(Debug, Default)]
pub(super) struct Kernels(HashMap<usize, (Option<u64>, Arc<Prepared>)>);

impl Kernels {
    /// What is there of a kernel.
    pub(super) fn find(&self, kernel: cl_kernel) -> Option<(Option<u64>, Arc<Prepared>)> {
        self.0.get(&kernel.addr()).cloned()
    }

    /// Keeps a kernel for the next launch. Returns the one before, which the caller drops: not under a lock.
    #[must_use]
    pub(super) fn keep(
        &mut self,
        kernel: cl_kernel,
        version: Option<u64>,
        prepared: Arc<Prepared>,
    ) -> Option<(Option<u64>, Arc<Prepared>)> {
        self.0.insert(kernel.addr(), (version, prepared))
    }
}

/// Returns a kernel with the arguments that it has now. `before` is what there was of it, and is returned if nothing has changed.
///
/// # Safety
/// What the program gave for a kernel. Drivers check that it is one.
pub(super) unsafe fn prepare(
    kernel: cl_kernel,
    on: &QueueFacts,
    version: Option<u64>,
    before: Option<(Option<u64>, Arc<Prepared>)>,
) -> Checked<Arc<Prepared>> {
    let (facts, named, kinds) = match before {
        Some((then, prepared)) if version.is_some() && then == version => return Ok(prepared),
        Some((_, prepared)) => (prepared.facts, Arc::clone(&prepared.named), Arc::clone(&prepared.kinds)),
        None => {
            // SAFETY: the caller's promise, and a device.
            let given = unsafe { query::kernel(kernel, on.device()) }?;
            ensure(given.context == on.context(), CL_INVALID_CONTEXT)?;
            // SAFETY: the driver knows the kernel.
            (given.launches, Arc::new(unsafe { Kernel::also(kernel) }?), Arc::default())
        }
    };
    let Held { values, has_exec_info } = kernels::arguments(kernel);
    // SAFETY: the driver knows the kernel.
    let own = unsafe { clone(kernel, &values) }?;
    Ok(Arc::new(Prepared { named, kernel: own, values, has_exec_info, kinds, facts }))
}
