//! Where maps are enqueued: on a queue of the context's own, one after the other, each of them waited for.
//!
//! An unmapping on PoCL (3.1 to 7.1) takes the first mapping with its address when it is enqueued, and frees that when it runs: a
//! map of the same memory that waits on another queue then looks into what is freed. Intel's CPU runtime (2026.2) refuses
//! unmappings of parts that overlap while another is under way. On a queue with nothing else a map is complete at once, so that
//! all take turns, and none of them waits for something that waits for it.
//!
//! What has to be complete before a map is the caller's affair. The queue runs no kernels, which rusticl would not survive.
//! Turns are taken in the context, whatever the device: it is the memory that PoCL keeps the list of mappings with.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opencl_sys::{cl_command_queue, cl_event, cl_int};

use super::context::{Context, InContext};
use super::device::Device;
use super::enqueue::{self, To, Waits};
use super::event::DriverEvent;
use super::queue::{DriverQueue, Last, QueueProperties};
use crate::error::{DriverError, Result};
use crate::ffi::core::Core;
use crate::known;

/// The queues of a context: one for each device where something was mapped.
#[derive(Default)]
pub(super) struct MapQueues {
    queues: Mutex<Vec<(usize, Arc<Last>)>>,
    turn: Mutex<Svm>,
}

/// How often an address of SVM is mapped now.
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

    fn turn(&self) -> MutexGuard<'_, Svm> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue to map and to unmap by.
pub(super) struct MapQueue(DriverQueue);

impl MapQueue {
    /// That of a queue's context and device.
    pub(super) fn of(queue: &DriverQueue) -> Result<Self> {
        let context = queue.context();
        Ok(Self(context.map_queues().get(context, queue.device())?))
    }

    /// Enqueues a map, which does not block by itself, and waits for it: what came of that is the inner result. Memory is mapped
    /// then either way.
    pub(super) fn map(
        &self,
        name: &'static str,
        svm: Option<NonNull<c_void>>,
        call: impl FnOnce(cl_command_queue, &Core, u32, *const cl_event, *mut cl_event) -> cl_int,
    ) -> Result<Result<(), DriverError>, DriverError> {
        let mut turn = self.0.context().map_queues().turn();
        let event = self.enqueue(name, call)?;
        if let Some(start) = svm {
            *turn.entry(start.addr().get()).or_default() += 1;
        }
        Ok(self.wait(event))
    }

    /// Enqueues an unmapping, and waits for it: whoever uses the memory next may do so on another queue. Of SVM that is mapped
    /// several times at an address a driver may want to hear of the last only.
    pub(super) fn unmap(
        &self,
        name: &'static str,
        svm: Option<NonNull<c_void>>,
        call: impl FnOnce(cl_command_queue, &Core, u32, *const cl_event, *mut cl_event) -> cl_int,
    ) -> Result<(), DriverError> {
        let mut turn = self.0.context().map_queues().turn();
        let address = svm.map(|start| start.addr().get());
        let left = address.and_then(|address| turn.get(&address)).map_or(0, |count| count.saturating_sub(1));
        let mut given_back = || match address {
            Some(address) if left > 0 => drop(turn.insert(address, left)),
            Some(address) => drop(turn.remove(&address)),
            None => {}
        };
        if left > 0 && !known::counts_svm_maps(self.0.device().caps()) {
            given_back();
            return Ok(());
        }
        match self.enqueue(name, call) {
            Ok(event) => {
                given_back();
                self.wait(event)
            }
            Err(error) => {
                // It may be on its way all the same, and is not to meet what comes next.
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
