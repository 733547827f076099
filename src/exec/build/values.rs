//! The current values of an executable. Submissions read them and updates write them; they are stored nowhere else.

use std::any::Any;
use std::convert::Infallible;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::cl::commands::command::ByRef;
use crate::cl::memory::host::{HostBytes, Slot};
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::device::Device;
use crate::cl::objects::kernel_object::{KernelObject, KernelObjectError};
use crate::command::{Arg, Command, Translate};
use crate::error::{DriverError, DriverFault, Error};
use crate::exec::build::guards::Guards;
use crate::exec::submit::bindings::SubmissionBindings;
use crate::graph::Tables;
use crate::ir::{AllocId, ById, ChildId, DataId, ExternalId, KernelId, NativeId, ResultId, Span, TaskId, ViewId};
use crate::plan::{Plan, Step};

/// What the commands do. A submission that is enqueued later keeps the values that it was submitted with.
#[derive(Clone, Debug)]
pub(in crate::exec) struct Values {
    pub(in crate::exec) device: Device,
    pub(in crate::exec) tables: Arc<Tables>,
    /// By step: the kernel object of a launch, with its arguments set. Steps with equal values may share an object.
    pub(in crate::exec) objects: Objects,
    /// Steps whose objects have other arguments than the tables. Such an object is not needed as long as the recorded
    /// kernel, which was changed in place, is enqueued instead.
    pub(in crate::exec) stale: Stale,
    /// The loops that can go ahead: the kernels in their bodies have guards.
    pub(in crate::exec) guards: Arc<Guards>,
}

/// A set of steps, one bit for each.
#[derive(Clone, Debug, Default)]
pub(in crate::exec) struct Stale(Vec<u64>);

/// An object that later submissions do not use. Commands that are enqueued already may still use it.
pub(in crate::exec) type Old = Arc<dyn Any + Send + Sync>;

/// A step that has a new kernel object, and its old object.
pub(in crate::exec) type Replaced = (usize, Option<Arc<KernelObject>>);

/// The kernel object of a launch: the stored one, or a new one if the stored one is stale.
pub(in crate::exec) enum Object<'a> {
    Kept(&'a Arc<KernelObject>),
    Made(KernelObject),
}

impl Object<'_> {
    /// Returns the object for a holder that names it.
    pub(in crate::exec) fn shared(self) -> Arc<KernelObject> {
        match self {
            Self::Kept(object) => Arc::clone(object),
            Self::Made(object) => Arc::new(object),
        }
    }
}

/// Kernel objects, by step.
///
/// They are released newest first. PoCL keeps the kernels of a program in a list, newest first, and searches the list
/// at each release: 100 000 kernels take 12 s in the order of creation and 0.01 s in reverse (PoCL 3.1 to 7.1).
#[derive(Clone, Debug, Default)]
pub(in crate::exec) struct Objects(pub(in crate::exec) Vec<Option<Arc<KernelObject>>>);

/// Returns arguments in OpenCL's form. Memory that no longer exists cannot be among them; the driver would refuse it.
pub(in crate::exec) fn set_args(tables: &Tables, args: Span) -> impl Iterator<Item = Arg<ByRef<'_>>> {
    tables.ir.args(args).iter().map(|arg| set_arg(tables, arg))
}

#[inline(always)]
pub(in crate::exec) fn set_arg<'a>(tables: &'a Tables, arg: &Arg<ById>) -> Arg<ByRef<'a>> {
    match arg {
        Arg::Memory(view) => tables.mem(*view).map_or(Arg::Null(()), Arg::Memory),
        Arg::Null(_) => Arg::Null(()),
        Arg::Sampler(id) => tables.sampler_of(*id).map_or(Arg::Null(()), Arg::Sampler),
        Arg::Local(size) => Arg::Local(*size),
        Arg::Value(span) => Arg::Value(tables.ir.bytes(*span)),
        Arg::Global(view) => tables.mem(*view).map_or(Arg::Unused(()), Arg::Global),
        Arg::Unused(_) => Arg::Unused(()),
        // If the memory no longer exists, there is nothing to reach; null would be taken as an argument after the
        // kernel's own.
        Arg::Indirect(view) => tables.mem(*view).map_or(Arg::Unused(()), Arg::Indirect),
    }
}

/// Why a kernel object does not have its arguments.
pub(in crate::exec) struct NotMade {
    /// The argument that was refused.
    pub(in crate::exec) argument: Option<usize>,
    pub(in crate::exec) source: DriverError,
}

impl From<DriverError> for NotMade {
    fn from(source: DriverError) -> Self {
        Self { argument: None, source }
    }
}

impl From<NotMade> for DriverError {
    fn from(not: NotMade) -> Self {
        not.source
    }
}

impl Values {
    /// What a step does.
    pub(in crate::exec) fn command(&self, step: &Step) -> &Command<ById> {
        self.tables.ir.command(step.node)
    }

    /// Returns the kernel object of a launch, with the arguments of the tables.
    #[inline]
    pub(in crate::exec) fn object(&self, step: usize, kernel: KernelId, args: Span) -> Result<Object<'_>, DriverError> {
        match self.kernel_object(step) {
            Some(object) => Ok(Object::Kept(object)),
            None => Ok(Object::Made(self.make(step, kernel, args)?)),
        }
    }

    /// Returns the stored kernel object of a launch, if it has the arguments of the tables.
    #[inline(always)]
    pub(in crate::exec) fn kernel_object(&self, step: usize) -> Option<&Arc<KernelObject>> {
        self.objects.0.get(step)?.as_ref().filter(|_| !self.stale.has(step))
    }

    /// Makes a kernel object with the arguments of the tables. A kernel that an update gives to the body of a loop may have no
    /// guarded twin: then the host decides the turns of the loop.
    #[cold]
    fn make(&self, step: usize, kernel: KernelId, args: Span) -> Result<KernelObject, NotMade> {
        let (tables, kernel) = (&self.tables, &self.tables.kernels[kernel.index()]);
        let guard = self.guards.of_step(step);
        let guarded = guard.and_then(|guard| guard.make(&self.device, tables, kernel, args));
        let made = guarded.unwrap_or_else(|| kernel.with_args(&self.device, set_args(tables, args)));
        made.map_err(|error| match error {
            KernelObjectError::Argument { index, source } => NotMade { argument: Some(index), source },
            KernelObjectError::Create(Error::Driver(source)) => source.into(),
            // Finalize has made an object of this kernel for this device, so creating another cannot fail for the
            // kernel's sake.
            KernelObjectError::Create(_) => DriverError::faulty("clCreateKernel", DriverFault::Defect).into(),
        })
    }

    /// Gives a launch a new kernel object, and returns the old one.
    pub(in crate::exec) fn replace(
        &mut self,
        step: usize,
        kernel: KernelId,
        args: Span,
    ) -> Result<Option<Arc<KernelObject>>, NotMade> {
        let made = Arc::new(self.make(step, kernel, args)?);
        self.stale.remove(step);
        Ok(self.objects.0.get_mut(step).and_then(|object| object.replace(made)))
    }

    /// Gives some steps other objects with the arguments of the tables: objects of `spare` that have no other holder,
    /// or new ones. The old objects are not changed, because PoCL 3.1 reads the arguments of recorded kernels when
    /// command buffers are enqueued.
    pub(in crate::exec) fn replace_objects(
        &mut self,
        plan: &Plan,
        steps: Range<usize>,
        spare: &mut Objects,
        replaced: &mut Vec<Replaced>,
    ) -> Result<(), DriverError> {
        let mut from = steps.start;
        while let Some(step) = self.stale.next(from..steps.end) {
            from = step + 1;
            let Command::Kernel { kernel, args, .. } = *self.tables.ir.command(plan.steps[step].node) else { continue };
            let takes = |object: &mut KernelObject| object.set_all(set_args(&self.tables, args)).is_ok();
            let mut place = spare.0.get_mut(step);
            let own = place.as_mut().and_then(|place| Arc::get_mut(place.as_mut()?));
            let before = if own.is_some_and(takes) {
                self.stale.remove(step);
                let object = place.and_then(Option::take);
                self.objects.0.get_mut(step).and_then(|own| std::mem::replace(own, object))
            } else {
                self.replace(step, kernel, args)?
            };
            replaced.push((step, before));
        }
        Ok(())
    }

    /// Gives the objects of some steps the arguments of the tables. Adds replaced objects to `old`.
    pub(in crate::exec) fn sync_arguments(
        &mut self,
        plan: &Plan,
        steps: Range<usize>,
        old: &mut Vec<Old>,
    ) -> Result<(), DriverError> {
        let mut from = steps.start;
        while let Some(step) = self.stale.next(from..steps.end) {
            from = step + 1;
            let tables = &*self.tables;
            let Command::Kernel { kernel, args, .. } = *tables.ir.command(plan.steps[step].node) else { continue };
            // Indirectly reached memory cannot be removed from a kernel object.
            let kept = !tables.ir.args(args).iter().any(|arg| matches!(arg, Arg::Indirect(_)));
            let object = self.objects.0.get_mut(step).and_then(Option::as_mut).and_then(Arc::get_mut);
            match object.filter(|_| kept) {
                // OpenCL copies the arguments of enqueued launches (OpenCL 3.0, clSetKernelArg), so the object can be
                // changed.
                Some(object) => {
                    object.set_all(set_args(tables, args)).map_err(|(_, source)| source)?;
                    self.stale.remove(step);
                }
                // The object has other holders: steps with equal values, a command buffer, or a submission that is not
                // enqueued yet.
                None => old.extend(self.replace(step, kernel, args)?.map(|old| old as Old)),
            }
        }
        Ok(())
    }
}

/// Finds the objects that a command of the tables refers to.
pub(in crate::exec) struct Resolver<'a> {
    pub(in crate::exec) values: &'a Values,
    /// Only submissions have them, and only they transfer host memory.
    pub(in crate::exec) bindings: Option<&'a SubmissionBindings>,
}

/// Each thing that a command of an executable refers to is in its tables, so this is an error of clgraph.
const MISSING: DriverError = DriverError::faulty("a command without its objects", DriverFault::Defect);

impl<'a> Translate<'a, ById, ByRef<'a>> for Resolver<'a> {
    type Error = DriverError;

    fn mem(&mut self, mem: &'a ViewId) -> Result<&'a Mem, DriverError> {
        self.values.tables.mem(*mem).ok_or(MISSING)
    }

    fn kernel(&mut self, _: &'a KernelId, _: &'a Span) -> Result<(&'a KernelObject, ()), DriverError> {
        // `Values::object` finds them by step.
        Err(MISSING)
    }

    fn bytes(&mut self, bytes: &'a Span) -> Result<&'a [u8], DriverError> {
        Ok(self.values.tables.ir.bytes(*bytes))
    }

    /// The data of the submission, or that of the executable. The last one for an id counts.
    fn data(&mut self, data: &'a DataId, _: usize) -> Result<&'a HostBytes, DriverError> {
        let inputs = &self.bindings.ok_or(MISSING)?.inputs;
        let end = inputs.partition_point(|(id, _)| id <= data);
        let given = inputs[..end].last().filter(|(id, _)| id == data).map(|(_, bytes)| bytes);
        Ok(given.unwrap_or_else(|| &self.values.tables.data[data.index()]))
    }

    fn output(&mut self, output: &'a ResultId, _: usize) -> Result<&'a Slot, DriverError> {
        let slot = self.bindings.and_then(|bindings| bindings.slots.get(output.index()));
        slot.map(|slot| &**slot).ok_or(MISSING)
    }

    fn task(&mut self, _: &'a TaskId) -> Result<Infallible, DriverError> {
        Err(MISSING)
    }

    fn event(&mut self, _: &'a ExternalId) -> Result<Infallible, DriverError> {
        Err(MISSING)
    }

    fn native(&mut self, _: &'a NativeId) -> Result<Infallible, DriverError> {
        Err(MISSING)
    }

    fn executable(&mut self, _: &'a ChildId) -> Result<Infallible, DriverError> {
        Err(MISSING)
    }

    fn bodies(&mut self, _: &'a Span) -> Result<Infallible, DriverError> {
        Err(MISSING)
    }

    fn alloc(&mut self, _: &'a AllocId) -> Result<Infallible, DriverError> {
        Err(MISSING)
    }
}

impl Objects {
    /// Returns how many objects there are. Steps may share one.
    pub(in crate::exec) fn count(&self) -> usize {
        let all = self.0.iter().flatten().map(|object| Arc::as_ptr(object).addr());
        all.collect::<std::collections::BTreeSet<usize>>().len()
    }

    /// Stores the object of a step, and returns the old one.
    pub(in crate::exec) fn keep(&mut self, step: usize, object: Arc<KernelObject>) -> Option<Arc<KernelObject>> {
        if self.0.len() <= step {
            self.0.resize(step + 1, None);
        }
        self.0[step].replace(object)
    }
}

impl Stale {
    pub(in crate::exec) fn add(&mut self, step: usize) {
        if self.0.len() <= step / 64 {
            self.0.resize(step / 64 + 1, 0);
        }
        self.0[step / 64] |= 1 << (step % 64);
    }

    pub(in crate::exec) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Returns the first step of a range that is in the set.
    fn next(&self, steps: Range<usize>) -> Option<usize> {
        let mut step = steps.start;
        while step < steps.end {
            let word = self.0.get(step / 64)? >> (step % 64);
            if word != 0 {
                return Some(step + word.trailing_zeros() as usize).filter(|step| *step < steps.end);
            }
            step = (step / 64 + 1) * 64;
        }
        None
    }

    fn remove(&mut self, step: usize) {
        if let Some(word) = self.0.get_mut(step / 64) {
            *word &= !(1 << (step % 64));
        }
    }

    #[inline]
    fn has(&self, step: usize) -> bool {
        self.0.get(step / 64).is_some_and(|word| word & (1 << (step % 64)) != 0)
    }
}

impl Deref for Object<'_> {
    type Target = KernelObject;

    #[inline]
    fn deref(&self) -> &KernelObject {
        match self {
            Self::Kept(object) => object,
            Self::Made(object) => object,
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let made = |object: &Option<Arc<KernelObject>>| object.as_deref().map(KernelObject::made);
        if !self.0.is_sorted_by_key(made) {
            self.0.sort_unstable_by_key(made);
        }
        while let Some(object) = self.0.pop() {
            drop(object);
        }
    }
}
