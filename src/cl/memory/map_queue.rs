//! The queue for maps: each context has one for each device. Maps and unmaps run one after the other, and the host
//! waits for each of them.
//!
//! On PoCL (3.1 to 7.1) an unmap selects, when it is enqueued, the first mapping with its address, and frees that
//! mapping when it runs. A map of the same memory that waits on another queue then reads freed memory. Intel's CPU
//! runtime (2026.2) refuses an unmap while another unmap of an overlapping part is running. A queue without other
//! commands completes a map at once. So all maps can take turns, and no map waits for a command that waits for the map
//! itself.
//!
//! The caller makes sure that the necessary commands are complete before a map. The queue runs no kernels, because
//! rusticl cannot run kernels on two queues. All devices of a context take turns together, because PoCL keeps the list
//! of mappings with the memory.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opencl_sys::{cl_command_queue, cl_event, cl_int};

use crate::cl::commands::enqueue::{self, To, Waits};
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::cl::objects::retired_queues::Last;
use crate::error::{DriverError, Result};
use crate::ffi::core::Core;
use crate::quirks;

/// The queues of a context: one for each device on which something was mapped.
#[derive(Default)]
pub(in crate::cl) struct MapQueues {
    queues: Mutex<Vec<(usize, Arc<Last>)>>,
    svm: Mutex<Svm>,
}

/// For each address of SVM: how many times it is mapped now.
type Svm = HashMap<usize, usize>;

impl MapQueues {
    fn get(&self, context: &Context, device: &Device) -> Result<DriverQueue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, last)) = queues.iter().find(|(of, _)| *of == device.raw().addr()) {
            return Ok(DriverQueue::in_order(last, context.clone(), device.clone()));
        }
        let queue = DriverQueue::with_properties(context, device, QueueProperties::new())?;
        queues.push((device.raw().addr(), Arc::clone(queue.last())));
        Ok(queue)
    }

    fn lock(&self) -> MutexGuard<'_, Svm> {
        self.svm.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue that only maps and unmaps.
pub(in crate::cl) struct MapQueue(DriverQueue);

impl MapQueue {
    /// Returns the map queue for the context and device of a queue.
    pub(in crate::cl) fn of(queue: &DriverQueue) -> Result<Self> {
        let context = queue.context();
        Ok(Self(context.map_queues().get(context, queue.device())?))
    }

    /// Enqueues a non-blocking map and waits for it. The inner result is the outcome of the wait: the memory is mapped
    /// in either case.
    pub(in crate::cl) fn map(
        &self,
        name: &'static str,
        svm: Option<NonNull<c_void>>,
        call: impl FnOnce(cl_command_queue, &Core, u32, *const cl_event, *mut cl_event) -> cl_int,
    ) -> Result<Result<(), DriverError>, DriverError> {
        let mut counts = self.0.context().map_queues().lock();
        let event = self.enqueue(name, call)?;
        if let Some(start) = svm {
            *counts.entry(start.addr().get()).or_default() += 1;
        }
        Ok(self.wait(event))
    }

    /// Enqueues an unmap and waits for it, because the next command that uses the memory may be on another queue. If
    /// SVM is mapped several times at one address, some drivers accept only one unmap: it is sent with the last map.
    pub(in crate::cl) fn unmap(
        &self,
        name: &'static str,
        svm: Option<NonNull<c_void>>,
        call: impl FnOnce(cl_command_queue, &Core, u32, *const cl_event, *mut cl_event) -> cl_int,
    ) -> Result<(), DriverError> {
        let mut counts = self.0.context().map_queues().lock();
        let address = svm.map(|start| start.addr().get());
        let left = address.and_then(|address| counts.get(&address)).map_or(0, |count| count.saturating_sub(1));
        let mut given_back = || match address {
            Some(address) if left > 0 => drop(counts.insert(address, left)),
            Some(address) => drop(counts.remove(&address)),
            None => {}
        };
        if left > 0 && !quirks::counts_svm_maps(self.0.device().caps()) {
            given_back();
            return Ok(());
        }
        match self.enqueue(name, call) {
            Ok(event) => {
                given_back();
                self.wait(event)
            }
            Err(error) => {
                // The unmap may be running in spite of the error, and must end before the next command.
                let _ = self.wait(None);
                Err(error)
            }
        }
    }

    fn enqueue(
        &self,
        name: &'static str,
        call: impl FnOnce(cl_command_queue, &Core, u32, *const cl_event, *mut cl_event) -> cl_int,
    ) -> Result<Option<DriverEvent>, DriverError> {
        let to = To { queue: &self.0, waits: &Waits::NONE, event: true };
        enqueue::enqueue(name, &to, |core, count, list, event| call(self.0.raw(), core, count, list, event))
    }

    fn wait(&self, event: Option<DriverEvent>) -> Result<(), DriverError> {
        let event = event.map_or_else(|| enqueue::marker(&self.0, &Waits::NONE), Ok)?;
        event.wait_surely()
    }
}
