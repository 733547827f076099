//! Loops whose turns a fused kernel does: it looks at the condition itself, if there is one, so the host decides only whether there is another
//! launch.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::cast_slice;

use crate::cl::commands::enqueue::{self, NOTHING, To};
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::queue::DriverQueue;
use crate::command::{Command, ControlKind, Location};
use crate::error::DriverError;
use crate::exec::tune::pace::LaunchPace;
use crate::graph::Tables;
use crate::opencl_c::fused::TURNS_WORDS;
use crate::plan::Plan;

/// A loop whose turns a kernel does.
#[derive(Debug)]
pub(in crate::exec) struct DeviceLoop {
    /// The flow of its body.
    flow: usize,
    state: Mem,
    pace: Mutex<LaunchPace>,
}

impl DeviceLoop {
    /// Returns the loops of a graph whose turns a kernel does, in the order of the flows of their bodies.
    pub(in crate::exec) fn all(tables: &Tables, plan: &Plan) -> Vec<Self> {
        let of = |node| {
            let Command::Control(control) = tables.ir.command(node) else { return None };
            let (ControlKind::While { .. } | ControlKind::Repeat { .. }) = control.kind else { return None };
            let flow = control.bodies.ends().0 as usize + 1;
            let steps = plan.flows.get(flow)?.steps.clone();
            let kernel = plan.steps.get(steps)?.iter().find_map(|step| match tables.ir.command(step.node) {
                Command::Kernel { kernel, .. } => Some(*kernel),
                _ => None,
            })?;
            Some(Self { flow, state: tables.turning.get(&kernel)?.clone(), pace: Mutex::default() })
        };
        let mut all: Vec<Self> =
            if tables.turning.is_empty() { Vec::new() } else { tables.ir.ids().filter_map(of).collect() };
        all.sort_unstable_by_key(|one| one.flow);
        all
    }

    pub(in crate::exec) fn flow(&self) -> usize {
        self.flow
    }

    pub(in crate::exec) fn pace(&self) -> MutexGuard<'_, LaunchPace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the next launch how many turns it does at most, and whether the first one begins whatever the condition is.
    pub(in crate::exec) fn prepare(&self, queue: &DriverQueue, most: u32, is_free: bool) -> Result<(), DriverError> {
        let to = To { queue, waits: &NOTHING, event: false };
        let words: [u32; TURNS_WORDS] = [most, u32::from(!is_free), 0, 0];
        let state = Location { mem: &self.state, offset: 0 };
        enqueue::fill(&to, &state, cast_slice(&words), size_of_val(&words)).map(drop)
    }

    /// Reads whether the loop goes on, and how many turns the launch did.
    pub(in crate::exec) fn read(&self, queue: &DriverQueue) -> Result<(bool, u32), DriverError> {
        let mut words = [0_u32; TURNS_WORDS];
        let to = To { queue, waits: &NOTHING, event: false };
        let state = Location { mem: &self.state, offset: 0 };
        enqueue::read_blocking(&to, &state, bytemuck::cast_slice_mut(&mut words))?;
        let [_, _, goes_on, done] = words;
        Ok((goes_on != 0, done))
    }
}
