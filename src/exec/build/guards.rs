//! Loops whose turns can be enqueued before their condition is known: what they need beside the plan.
//!
//! In the body of such a loop each kernel is a guarded one, which runs only if the loop still goes on, whoever decides the turn.
//! If the host decides, the guard is open. Nothing here is an error: a loop that cannot go ahead is decided by the host, and the
//! report says why. Loops whose turns a kernel does are listed here too (`device_loops.rs`).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::cast_slice;
use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use rustc_hash::FxHashMap;

use crate::cl::commands::command::ByRef;
use crate::cl::commands::enqueue::{self, NOTHING, To};
use crate::cl::memory::region::AsRegion;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::InContext;
use crate::cl::objects::device::Device;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::guarded::LoopKernels;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::kernel_object::{KernelObject, KernelObjectError};
use crate::cl::objects::queue::DriverQueue;
use crate::command::{Arg, Command, ControlKind, Grid, Location, Translate};
use crate::error::{DriverError, DriverFault};
use crate::exec::build::device_loops::DeviceLoop;
use crate::exec::build::options::Loops;
use crate::exec::build::values::{Objects, Resolver, Values, set_args};
use crate::exec::submit::bindings::SubmissionBindings;
use crate::exec::tune::pace::Pace;
use crate::graph::Tables;
use crate::handles::NodeKind;
use crate::ir::{ById, NodeId, Span, ViewId};
use crate::opencl_c::guard::STATE_WORDS;
use crate::plan::{Flow, Plan, Step};
use crate::quirks;
use crate::report::loops::HostDecided;

/// How the condition is latched.
#[derive(Clone, Copy, Debug)]
pub(in crate::exec) struct Latch {
    /// Whether the loop ends if the condition is zero.
    pub(in crate::exec) is_read: bool,
    /// Whether turns begin, which are counted from 0 on.
    pub(in crate::exec) begins: bool,
    /// Whether a turn follows.
    pub(in crate::exec) counts: bool,
}

/// Fails if a kernel would compute something else behind a guard, because of its work-groups.
fn check_groups(of: &Kernel, grid: &Grid, device: &Device) -> Result<(), HostDecided> {
    let kernel = || of.name().to_owned();
    if grid.local.is_none() && of.may_see_groups() {
        return Err(HostDecided::Divided { kernel: kernel() });
    }
    if quirks::repeats_what_is_before_loops(device.caps()) && may_have_groups_of_one(grid) && of.may_loop() {
        return Err(HostDecided::OneItem { kernel: kernel() });
    }
    Ok(())
}

/// Whether a work-group may have one work-item. A driver that chooses takes a divisor of the range.
fn may_have_groups_of_one(grid: &Grid) -> bool {
    match grid.local {
        Some(local) => local.iter().all(|size| *size == 1),
        None => grid.global.iter().all(|size| !(2..=256).any(|divisor| size.is_multiple_of(divisor))),
    }
}

/// The longest pattern of a fill that goes ahead, in bytes.
const PATTERN: usize = 16;

/// The loops of an executable that do not wait for the host in each turn. Each list is in the order of their flows.
#[derive(Debug, Default)]
pub(in crate::exec) struct Guards {
    /// Those that can go ahead.
    ahead: Vec<Guard>,
    /// Those whose turns a kernel does.
    on_device: Vec<DeviceLoop>,
}

/// A loop that can go ahead.
pub(in crate::exec) struct Guard {
    /// The loop's node.
    node: NodeId,
    /// The flow of its body.
    flow: usize,
    steps: Range<usize>,
    /// Whether turns still run, and how many did.
    state: Mem,
    kernels: LoopKernels,
    /// The place of the device among those of the kernels.
    place: usize,
    /// Memory that stands for the host's in turns ahead, by step: a write takes its input from it, and a read leaves its result in
    /// it.
    stages: Vec<(usize, Mem)>,
    /// Whether the state may say that no turn runs.
    is_closed: AtomicBool,
    pace: Mutex<Pace>,
}

impl Guards {
    /// Returns the loop whose body is a flow, if it can go ahead.
    pub(in crate::exec) fn of_flow(&self, flow: usize) -> Option<&Guard> {
        self.ahead.binary_search_by_key(&flow, |guard| guard.flow).ok().map(|at| &self.ahead[at])
    }

    /// Returns the loop whose body is a flow, if a kernel does its turns.
    pub(in crate::exec) fn on_device(&self, flow: usize) -> Option<&DeviceLoop> {
        self.on_device.binary_search_by_key(&flow, DeviceLoop::flow).ok().map(|at| &self.on_device[at])
    }

    /// Returns the loop that has a step in its body.
    pub(in crate::exec) fn of_step(&self, step: usize) -> Option<&Guard> {
        // Flows are in the order of their steps.
        let at = self.ahead.partition_point(|guard| guard.steps.end <= step);
        self.ahead.get(at).filter(|guard| guard.steps.contains(&step))
    }

    /// Returns whether a plan has the bodies where they were. The steps depend on the graph alone, not on what a driver records.
    pub(in crate::exec) fn fit(&self, plan: &Plan) -> bool {
        self.ahead.iter().all(|guard| plan.flows.get(guard.flow).is_some_and(|flow| flow.steps == guard.steps))
    }

    /// Gives the loops that can go ahead guarded kernels. Returns them, and for each other loop, in the order of the flows of their
    /// bodies, why the host decides it.
    pub(in crate::exec) fn new(
        context: &impl InContext,
        device: &Device,
        tables: &Tables,
        plan: &Plan,
        asked: Loops,
        profiled: bool,
        objects: &mut Objects,
    ) -> (Self, Vec<(usize, HostDecided)>) {
        let (mut all, mut others) = (Vec::new(), Vec::new());
        let on_device = DeviceLoop::all(tables, plan);
        for id in tables.ir.ids() {
            let Command::Control(control) = tables.ir.command(id) else { continue };
            let flow = control.bodies.ends().0 as usize + 1;
            if on_device.binary_search_by_key(&flow, DeviceLoop::flow).is_ok() {
                continue;
            }
            let outcome = match control.kind {
                ControlKind::While { .. } if asked == Loops::HostDecided => Err(HostDecided::Asked),
                ControlKind::While { .. } if profiled => Err(HostDecided::Profiled),
                ControlKind::While { .. } => {
                    Guard::new(context, device, tables, plan, (id, flow), objects, asked == Loops::Ahead)
                }
                _ => continue,
            };
            match outcome {
                Ok(guard) => all.push(guard),
                Err(why) => others.push((flow, why)),
            }
        }
        all.sort_unstable_by_key(|guard: &Guard| guard.flow);
        others.sort_unstable_by_key(|(flow, _)| *flow);
        (Self { ahead: all, on_device }, others)
    }
}

impl Guard {
    fn new(
        context: &impl InContext,
        device: &Device,
        tables: &Tables,
        plan: &Plan,
        (node, flow): (NodeId, usize),
        objects: &mut Objects,
        always: bool,
    ) -> Result<Self, HostDecided> {
        let Flow { tasks, steps, .. } = &plan.flows[flow];
        if let Some(task) = tasks.first() {
            return Err(HostDecided::Node(NodeKind::of(tables.ir.command(task.node))));
        }
        let mut first = None;
        for step in &plan.steps[steps.clone()] {
            if let Some((kernel, grid)) = goes_ahead(tables, step)? {
                let of = &tables.kernels[kernel.index()];
                of.guarded(device).map_err(|why| not_guarded(of, &why))?;
                check_groups(of, grid, device)?;
                first.get_or_insert(of);
            }
        }
        let first = first.ok_or(HostDecided::NoKernel)?;
        let refused = |_| HostDecided::Driver;
        let kernels = first.loop_kernels().map_err(|_| HostDecided::Driver)?;
        let place = kernels.latch.place_of(device).ok_or(HostDecided::Driver)?;
        let state = Buffer::<u32>::new(context, STATE_WORDS).map_err(refused)?.region().mem;
        let (is_closed, pace) = (AtomicBool::new(true), Mutex::new(Pace::new(always)));
        let mut stages = Vec::new();
        for index in steps.clone() {
            if let Some(size) = staged(tables.ir.command(plan.steps[index].node)) {
                stages.push((index, Buffer::<u8>::new(context, size).map_err(refused)?.region().mem));
            }
        }
        let guard = Self { node, flow, steps: steps.clone(), state, kernels, place, stages, is_closed, pace };
        // All or none: kernels without a guard would run when the loop has ended.
        let mut made: FxHashMap<_, Arc<KernelObject>> = FxHashMap::default();
        let mut new = Vec::new();
        for index in steps.clone() {
            let Step { node, object } = plan.steps[index];
            let Command::Kernel { kernel, args, .. } = *tables.ir.command(node) else { continue };
            let known = object.and_then(|object| made.get(&object).cloned());
            let object_of_step = match known {
                Some(known) => known,
                None => {
                    let own = guard.make(device, tables, &tables.kernels[kernel.index()], args);
                    let own = Arc::new(own.ok_or(HostDecided::Driver)?.map_err(|_| HostDecided::Driver)?);
                    object.map(|object| made.insert(object, Arc::clone(&own)));
                    own
                }
            };
            new.push((index, object_of_step));
        }
        for (index, object) in new {
            objects.keep(index, object);
        }
        Ok(guard)
    }

    /// Makes a kernel object with a guard. None if the kernel has no guarded twin.
    pub(in crate::exec) fn make(
        &self,
        device: &Device,
        tables: &Tables,
        kernel: &Kernel,
        args: Span,
    ) -> Option<Result<KernelObject, KernelObjectError>> {
        let twin = kernel.guarded(device).ok()?;
        Some(twin.guarded_with_args(device, set_args(tables, args), &self.state))
    }

    pub(in crate::exec) fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the condition is, or why the host decides with the values that the loop has now: updates may have changed
    /// them.
    pub(in crate::exec) fn condition<'v>(
        &self,
        values: &'v Values,
        plan: &Plan,
    ) -> Result<Location<&'v Mem>, HostDecided> {
        let tables = &*values.tables;
        let place = match tables.ir.command(self.node) {
            Command::Control(control) => control.condition.as_ref(),
            _ => None,
        };
        let place = place.and_then(|place| Some(Location { mem: tables.mem(place.mem)?, offset: place.offset }));
        let condition = place.ok_or(HostDecided::Driver)?;
        // The host reads a number at any address, but the latch needs a whole word.
        if !is_of_words(condition.mem) || !condition.offset.is_multiple_of(size_of::<u32>()) {
            return Err(HostDecided::Anywhere);
        }
        if condition.mem.flags() & CL_MEM_WRITE_ONLY != 0 {
            return Err(HostDecided::Access);
        }
        for index in self.steps.clone() {
            let step = &plan.steps[index];
            let size = staged(values.command(step));
            if size.is_some_and(|size| self.stage(index).is_none_or(|stage| stage.size() != size)) {
                return Err(HostDecided::Driver);
            }
            let Some((kernel, grid)) = goes_ahead(tables, step)? else { continue };
            let of = &tables.kernels[kernel.index()];
            if !values.objects.0[index].as_ref().is_some_and(|object| object.is_guarded()) {
                return Err(of.guarded(&values.device).err().map_or(HostDecided::Driver, |why| not_guarded(of, &why)));
            }
            check_groups(of, grid, &values.device)?;
        }
        Ok(condition)
    }

    pub(in crate::exec) fn flow(&self) -> usize {
        self.flow
    }

    /// Lets the kernels of the body run, before a turn that the host has decided.
    pub(in crate::exec) fn open(&self, queue: &DriverQueue) -> Result<(), DriverError> {
        if !self.is_closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let to = To { queue, waits: &NOTHING, event: false };
        let first: [u32; STATE_WORDS] = [1, 0];
        let state = Location { mem: &self.state, offset: 0 };
        enqueue::fill(&to, &state, cast_slice(&first), size_of_val(&first))?;
        self.is_closed.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Latches the condition: what comes next on the queue runs only if the loop goes on.
    pub(in crate::exec) fn latch(
        &self,
        queue: &DriverQueue,
        condition: &Location<&Mem>,
        latch: Latch,
    ) -> Result<(), DriverError> {
        let Latch { is_read, begins, counts } = latch;
        self.is_closed.store(true, Ordering::Relaxed);
        let at = (condition.offset / size_of::<u32>()) as u64;
        let [is_read, begins, counts] = [is_read, begins, counts].map(|flag| u32::from(flag).to_ne_bytes());
        let at = at.to_ne_bytes();
        let args = [
            Arg::Memory(&self.state),
            Arg::Memory(condition.mem),
            Arg::Value(&at[..]),
            Arg::Value(&is_read[..]),
            Arg::Value(&begins[..]),
            Arg::Value(&counts[..]),
        ];
        let to = To { queue, waits: &NOTHING, event: false };
        self.launch(&self.kernels.latch, args, &to, 1).map(drop)
    }

    /// Reads whether the loop goes on, and how many turns there were since the guard was opened.
    pub(in crate::exec) fn read(&self, queue: &DriverQueue) -> Result<(bool, u32), DriverError> {
        let mut words = [0_u32; STATE_WORDS];
        let to = To { queue, waits: &NOTHING, event: false };
        let state = Location { mem: &self.state, offset: 0 };
        enqueue::read_blocking(&to, &state, bytemuck::cast_slice_mut(&mut words))?;
        Ok((words[0] != 0, words[1]))
    }

    fn stage(&self, step: usize) -> Option<&Mem> {
        self.stages.binary_search_by_key(&step, |(of, _)| *of).ok().map(|at| &self.stages[at].1)
    }

    /// Brings the inputs of the body to where turns ahead find them.
    pub(in crate::exec) fn stage_inputs(
        &self,
        values: &Values,
        plan: &Plan,
        bindings: &SubmissionBindings,
        queue: &DriverQueue,
    ) -> Result<(), DriverError> {
        let to = To { queue, waits: &NOTHING, event: false };
        for (index, stage) in &self.stages {
            if let Command::Write { size, data, .. } = values.command(&plan.steps[*index]) {
                let data = Resolver { values, bindings: Some(bindings) }.data(data, *size)?;
                enqueue::write(&to, &Location { mem: stage, offset: 0 }, data)?;
            }
        }
        Ok(())
    }

    /// Brings the results of the last turn ahead to the host. Returns the end of that; None if there are no results.
    pub(in crate::exec) fn read_results(
        &self,
        values: &Values,
        plan: &Plan,
        bindings: &SubmissionBindings,
        queue: &DriverQueue,
    ) -> Result<Option<DriverEvent>, DriverError> {
        let mut last = None;
        for (index, stage) in &self.stages {
            if let Command::Read { size, output, .. } = values.command(&plan.steps[*index]) {
                let slot = Resolver { values, bindings: Some(bindings) }.output(output, *size)?;
                let to = To { queue, waits: &NOTHING, event: true };
                let event = enqueue::read(&to, &Location { mem: stage, offset: 0 }, slot)?;
                last = Some(event.map_or_else(|| enqueue::last_marker(queue), Ok)?);
            }
        }
        Ok(last)
    }

    /// Enqueues the command of a step as a kernel with a guard, if it is no kernel itself.
    pub(in crate::exec) fn enqueue(
        &self,
        values: &Values,
        step: usize,
        command: &Command<ById>,
        to: &To<'_>,
    ) -> Option<Result<Option<DriverEvent>, DriverError>> {
        const MISSING: DriverError = DriverError::faulty("a command without its objects", DriverFault::Defect);
        let mem = |view: ViewId| values.tables.mem(view).ok_or(MISSING);
        let stage = || self.stage(step).ok_or(MISSING);
        match command {
            command if command.is_noop() => None,
            Command::Fill { dst, size, pattern, area: None } => {
                let pattern = values.tables.ir.bytes(*pattern);
                Some(mem(dst.mem).and_then(|to_mem| self.fill(to, to_mem, dst.offset, *size, pattern)))
            }
            Command::Copy { src, dst, size } => Some(mem(src.mem).and_then(|from| {
                let offsets = [src.offset, dst.offset];
                self.copy(to, from, mem(dst.mem)?, offsets, *size)
            })),
            Command::Write { dst, size, area: None, .. } => {
                Some(stage().and_then(|from| self.copy(to, from, mem(dst.mem)?, [0, dst.offset], *size)))
            }
            Command::Read { src, size, area: None, .. } => {
                Some(stage().and_then(|into| self.copy(to, mem(src.mem)?, into, [src.offset, 0], *size)))
            }
            // Its kernel object has the guard.
            Command::Kernel { .. } => None,
            // These do not go ahead (`goes_ahead`): without a guard they would run after the last turn.
            Command::Empty | Command::SubGraph(_) | Command::Alloc(_) | Command::Free(_) => None,
            Command::Task(_) | Command::Event { .. } | Command::Control(_) | Command::Native { .. } => None,
            Command::CopyRect(_) | Command::CopyImage(_) | Command::Fill { area: Some(_), .. } => None,
            Command::Write { area: Some(_), .. } | Command::Read { area: Some(_), .. } | Command::Hint { .. } => None,
        }
    }

    fn fill(
        &self,
        to: &To<'_>,
        mem: &Mem,
        offset: usize,
        size: usize,
        pattern: &[u8],
    ) -> Result<Option<DriverEvent>, DriverError> {
        let mut period = pattern.len();
        // Short patterns fill whole words.
        while period < 4 && 4 % period == 0 {
            period *= 2;
        }
        let mut bytes = [0; PATTERN];
        bytes.iter_mut().zip(pattern.iter().cycle()).take(period).for_each(|(byte, of)| *byte = *of);
        let words = is_of_words(mem) && [offset, size, period].iter().all(|number| number % 4 == 0);
        let (kernel, unit) = if words { (&self.kernels.fill_words, 4) } else { (&self.kernels.fill, 1) };
        let (first, period) = (((offset / unit) as u64).to_ne_bytes(), ((period / unit) as u32).to_ne_bytes());
        let args = [
            Arg::Memory(&self.state),
            Arg::Memory(mem),
            Arg::Value(&first[..]),
            Arg::Value(&bytes[..]),
            Arg::Value(&period[..]),
        ];
        self.launch(kernel, args, to, size / unit)
    }

    fn copy(
        &self,
        to: &To<'_>,
        from: &Mem,
        into: &Mem,
        offsets: [usize; 2],
        size: usize,
    ) -> Result<Option<DriverEvent>, DriverError> {
        let words = offsets.iter().chain([&size]).all(|number| number % 4 == 0);
        let words = words && is_of_words(from) && is_of_words(into);
        let (kernel, unit) = if words { (&self.kernels.copy_words, 4) } else { (&self.kernels.copy, 1) };
        let [src, dst] = offsets.map(|offset| ((offset / unit) as u64).to_ne_bytes());
        let args = [
            Arg::Memory(&self.state),
            Arg::Memory(from),
            Arg::Value(&src[..]),
            Arg::Memory(into),
            Arg::Value(&dst[..]),
        ];
        self.launch(kernel, args, to, size / unit)
    }

    fn launch<'a, const N: usize>(
        &self,
        kernel: &Kernel,
        args: [Arg<ByRef<'a>>; N],
        to: &To<'_>,
        items: usize,
    ) -> Result<Option<DriverEvent>, DriverError> {
        let launch = |object: &KernelObject| enqueue::kernel(to, object, 1, &[0; 3], &[items, 1, 1], None);
        kernel.launch(self.place, args.into_iter(), launch).map_err(|error| match error {
            KernelObjectError::Argument { source, .. } => source,
            KernelObjectError::Create(crate::Error::Driver(source)) => source,
            KernelObjectError::Create(_) => DriverError::faulty("clCreateKernel", DriverFault::Defect),
        })?
    }
}

/// Whether memory is known to begin where a word may be. Memory of the host may begin anywhere.
fn is_of_words(mem: &Mem) -> bool {
    mem.base().is_multiple_of(size_of::<u32>())
}

fn not_guarded(kernel: &Kernel, why: &impl ToString) -> HostDecided {
    HostDecided::Kernel { kernel: kernel.name().to_owned(), why: why.to_string() }
}

/// A kernel of a step, and its range.
type Launch<'a> = (crate::ir::KernelId, &'a crate::command::Grid);

/// Returns how many bytes of the host's a command transfers, if it goes ahead with a stage.
fn staged(command: &Command<ById>) -> Option<usize> {
    match command {
        Command::Write { size, area: None, .. } | Command::Read { size, area: None, .. } if *size > 0 => Some(*size),
        Command::Write { .. } | Command::Read { .. } | Command::Fill { .. } => None,
        Command::Copy { .. } | Command::CopyRect(_) | Command::CopyImage(_) | Command::Hint { .. } => None,
        Command::Kernel { .. } | Command::Native { .. } | Command::Task(_) | Command::Event { .. } => None,
        Command::Control(_) | Command::Empty | Command::SubGraph(_) | Command::Alloc(_) | Command::Free(_) => None,
    }
}

/// Returns whether a kernel may do what a transfer does.
fn may_be_a_kernel(tables: &Tables, command: &Command<ById>) -> bool {
    let may = |view, forbidden| tables.mem(view).is_some_and(|mem| mem.flags() & forbidden == 0);
    match command {
        Command::Fill { dst, .. } | Command::Write { dst, .. } => may(dst.mem, CL_MEM_READ_ONLY),
        Command::Read { src, .. } => may(src.mem, CL_MEM_WRITE_ONLY),
        Command::Copy { src, dst, .. } => may(src.mem, CL_MEM_WRITE_ONLY) && may(dst.mem, CL_MEM_READ_ONLY),
        Command::CopyRect(_) | Command::CopyImage(_) | Command::Hint { .. } | Command::Kernel { .. } => true,
        Command::Native { .. } | Command::Task(_) | Command::Event { .. } | Command::Control(_) => true,
        Command::Empty | Command::SubGraph(_) | Command::Alloc(_) | Command::Free(_) => true,
    }
}

/// Returns the kernel of a step, if it has one, or why the step cannot go ahead.
fn goes_ahead<'a>(tables: &'a Tables, step: &Step) -> Result<Option<Launch<'a>>, HostDecided> {
    match tables.ir.command(step.node) {
        Command::Kernel { kernel, grid, .. } => Ok(Some((*kernel, grid))),
        command if command.is_noop() => Ok(None),
        command if !may_be_a_kernel(tables, command) => Err(HostDecided::Access),
        Command::Fill { pattern, area: None, .. } if tables.ir.bytes(*pattern).len() <= PATTERN => Ok(None),
        Command::Fill { area: None, .. } => Err(HostDecided::Pattern),
        Command::Copy { .. } => Ok(None),
        command if staged(command).is_some() => Ok(None),
        other => Err(HostDecided::Node(NodeKind::of(other))),
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("flow", &self.flow).field("steps", &self.steps).finish_non_exhaustive()
    }
}
