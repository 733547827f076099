//! Requests. A request is a command with everything that belongs to it, on its way into a graph or to the driver.

use std::convert::Infallible;
use std::fmt::Display;

use smallvec::SmallVec;

use crate::cl::memory::host::HostBytes;
use crate::cl::memory::region::Region;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::Context;
use crate::cl::objects::device::Device;
use crate::cl::objects::kernel_params::Number;
use crate::cl::objects::sampler::Sampler;
use crate::command::{ArgRefs, Command, Refs, Translate};
use crate::error::BuildCause;
use crate::graph::nodes::host_task::TaskFn;
use crate::graph::nodes::launch::CheckedLaunch;
use crate::graph::nodes::native_command::NativeFn;
use crate::graph::tables::{Child, UseHandle};
use crate::graph::writer::Writer;
use crate::graph::{Graph, State};
use crate::handles::GraphId;
use crate::ir::{
    Access, AllocId, ById, ChildId, DataId, ExternalId, KernelId, Mode, NativeId, ResultId, Span, TaskId, ViewId,
};

/// A command that graphs and queues accept.
pub(crate) trait Request {
    /// The results of the checks that later steps need.
    type Checked;

    /// The kind and name of the command, for error texts.
    fn subject(&self) -> String;

    /// Checks everything that does not depend on a graph. It changes nothing.
    fn check(&self, target: &Target<'_>) -> Result<Self::Checked, BuildCause>;

    /// Checks what depends on the graph, and updates the state that is shared in the graph.
    fn prepare(&self, _: &Graph, _: &mut State) -> Result<(), BuildCause> {
        Ok(())
    }

    /// The exclusive uses of the executables that the command runs. Commands that run the same executable run one after
    /// another.
    fn uses(&self) -> &[UseHandle] {
        &[]
    }

    /// Writes the command and its memory accesses into the tables of a graph. Returns `None` when a table is full.
    fn lower(self, checked: Self::Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>)
    -> Option<Command<ById>>;
}

/// A request that is no more than a command and the memory that it uses. A queue that executes can run it.
pub(crate) trait CommandRequest: Request {
    /// Returns the command.
    fn command(self, checked: Self::Checked) -> Requested;
}

/// The command of a request, and the memory that it uses.
#[derive(Debug)]
pub(crate) struct Requested {
    pub(crate) command: Command<ByHandle>,
    /// Empty for a kernel, whose arguments say what it uses.
    pub(crate) uses: MemoryUses,
}

/// Memory and how a command uses it.
pub(crate) type MemoryUses = SmallVec<[(Region, Mode); 2]>;

/// Commands and arguments that refer to objects by handles, which keep the objects alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByHandle {}

impl Refs for ByHandle {
    type Mem = Mem;
    /// With its arguments.
    type Kernel = Box<CheckedLaunch>;
    type Args = ();
    type Bytes = Vec<u8>;
    type Data = HostBytes;
    /// Each run has its own memory for the result.
    type Output = ();
    type Task = TaskFn;
    type Event = ();
    type Native = NativeFn;
    type Executable = Child;
    /// A branch or loop is a request of its own.
    type Bodies = Infallible;
    /// Allocations have numbers only in a graph.
    type Alloc = Infallible;
}

impl ArgRefs for ByHandle {
    type Mem = (Region, Mode);
    /// How memory in its place is used.
    type NoMem = Mode;
    /// A range of the launch's bytes.
    type Value = (std::ops::Range<usize>, Number);
    type Sampler = Sampler;
}

impl Requested {
    pub(crate) fn new(command: Command<ByHandle>, uses: impl IntoIterator<Item = (Region, Mode)>) -> Self {
        Self { command, uses: uses.into_iter().collect() }
    }

    /// Returns a copy or a fill for which OpenCL has no command, as a kernel.
    pub(in crate::graph) fn launch(checked: Box<CheckedLaunch>) -> Self {
        let CheckedLaunch { launch, checked: facts } = &*checked;
        let (grid, bound) = (launch.sizes(facts.built).grid(), launch.bound.map(|bound| Box::new(bound.sizes)));
        let (prints, elementwise) = (launch.prints, launch.elementwise());
        Self::new(Command::Kernel { kernel: checked, args: (), grid, bound, prints, elementwise }, [])
    }

    /// Calls `each` with the memory that the command uses.
    pub(crate) fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        self.uses.iter().for_each(|(region, _)| each(&region.mem));
        if let Command::Kernel { kernel, .. } = &self.command {
            kernel.launch.all_memory(each);
        }
    }

    /// Writes the command and its memory accesses into the tables of a graph. Returns `None` when a table is full.
    pub(in crate::graph) fn lower(&self, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        accesses.extend(self.uses.iter().map(|(region, mode)| to.access(region, *mode)));
        self.command.translate(&mut Lower { to, accesses }).ok()
    }
}

/// Writes what a command refers to into the tables of a graph. An error means that a table is full.
struct Lower<'l, 'w> {
    to: &'l mut Writer<'w>,
    accesses: &'l mut Vec<Access>,
}

/// A table is full.
struct Full;

impl<'a> Translate<'a, ByHandle, ById> for Lower<'_, '_> {
    type Error = Full;

    fn mem(&mut self, mem: &'a Mem) -> Result<ViewId, Full> {
        Ok(self.to.view(mem))
    }

    fn kernel(&mut self, kernel: &'a Box<CheckedLaunch>, (): &'a ()) -> Result<(KernelId, Span), Full> {
        let CheckedLaunch { launch, checked } = (**kernel).clone();
        match launch.lower(checked, self.to, self.accesses) {
            Some(Command::Kernel { kernel, args, .. }) => Ok((kernel, args)),
            _ => Err(Full),
        }
    }

    fn bytes(&mut self, bytes: &'a Vec<u8>) -> Result<Span, Full> {
        self.to.ir.push_bytes(bytes).ok_or(Full)
    }

    fn data(&mut self, data: &'a HostBytes, _: usize) -> Result<DataId, Full> {
        self.to.data(data.clone()).ok_or(Full)
    }

    fn output(&mut self, (): &'a (), size: usize) -> Result<ResultId, Full> {
        self.to.output(size).ok_or(Full)
    }

    fn task(&mut self, task: &'a TaskFn) -> Result<TaskId, Full> {
        self.to.task(task.clone()).ok_or(Full)
    }

    fn event(&mut self, (): &'a ()) -> Result<ExternalId, Full> {
        self.to.external().ok_or(Full)
    }

    fn native(&mut self, functions: &'a NativeFn) -> Result<NativeId, Full> {
        self.to.native(functions.clone()).ok_or(Full)
    }

    fn executable(&mut self, executable: &'a Child) -> Result<ChildId, Full> {
        self.to.child(executable.clone()).ok_or(Full)
    }

    fn bodies(&mut self, never: &'a Infallible) -> Result<Span, Full> {
        match *never {}
    }

    fn alloc(&mut self, never: &'a Infallible) -> Result<AllocId, Full> {
        match *never {}
    }
}

/// The context, device and graph that a command is checked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) context: &'a Context,
    pub(crate) device: &'a Device,
    /// The graph that the command is added to, or `None` if it is executed at once.
    pub(crate) graph: Option<GraphId>,
}

impl Target<'_> {
    pub(in crate::graph) fn check_context(&self, region: &Region, what: impl Display) -> Result<(), BuildCause> {
        if region.mem.context() != self.context {
            return Err(BuildCause::OtherContext { what: what.to_string() });
        }
        if region.mem.is_buffer() {
            return Ok(());
        }
        if let Some(allocation) = region.mem.graph_allocation()
            && self.graph.is_none_or(|graph| allocation.graph() != Some(graph.number()))
        {
            let what = what.to_string();
            let by = if self.graph.is_some() { "in another graph" } else { "by a queue that executes" };
            return Err(BuildCause::GraphMemory { what, by });
        }
        let Some(allocation) = region.mem.allocation() else { return Ok(()) };
        allocation.check_device(self.device).map_err(|why| BuildCause::NotSupported { what: what.to_string(), why })
    }
}
