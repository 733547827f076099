//! Kernels with their arguments, as launches have them. Launches of one kernel with the same arguments share one.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use opencl_sys::{CL_INVALID_CONTEXT, cl_kernel, cl_uint};

use super::buffer::QueueFacts;
use super::make::clone;
use super::owned::{Kernel, Memory};
use super::{kernels, query};
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
    /// What the arguments take, from the first update on.
    pub(super) kinds: Arc<OnceLock<Vec<Kind>>>,
    pub(super) facts: launch::Kernel,
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
        let (missing, memory) = kernels::arguments(kernel);
        // SAFETY: the driver knows the kernel.
        let own = unsafe { clone(kernel) }?;
        let prepared = Arc::new(Prepared { named, kernel: own, missing, memory, kinds: Arc::default(), facts });
        self.0.insert(kernel.addr(), (version, Arc::clone(&prepared)));
        Ok(prepared)
    }
}
