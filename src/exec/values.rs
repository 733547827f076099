//! The current values of an executable: the one place that submissions read and that updates write.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::follow::Old;
use crate::cl::device::Device;
use crate::cl::host::HostBytes;
use crate::cl::image_commands::PixelsAt;
use crate::cl::kernel_object::{KernelObject, KernelObjectError, SetArg};
use crate::cl::mem::Mem;
use crate::error::{DriverError, Error, Fault};
use crate::graph::Tables;
use crate::ir::{Arg, DataId, KernelId, Op, Pixels, Place, Span, ViewId};
use crate::plan::{Plan, Step};

/// What the commands do. A submission that is enqueued later keeps the values that it was submitted with.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) device: Device,
    pub(super) tables: Arc<Tables>,
    /// By step: the kernel object of a launch, with its arguments set. Steps with the same values may share one.
    pub(super) objects: Objects,
    /// Steps whose objects have other arguments than the tables: nobody needs the object of a recorded kernel that was
    /// changed in place.
    pub(super) stale: Stale,
}

/// A set of steps, one bit for each.
#[derive(Clone, Debug, Default)]
pub(super) struct Stale(Vec<u64>);

/// A step that has another kernel object, and the one before.
pub(super) type Replaced = (usize, Option<Arc<KernelObject>>);

/// The kernel object of a launch: the one that is kept, or another where that is stale.
pub(super) enum Object<'a> {
    Kept(&'a Arc<KernelObject>),
    Made(KernelObject),
}

impl Object<'_> {
    /// To be kept by who names it.
    pub(super) fn shared(self) -> Arc<KernelObject> {
        match self {
            Self::Kept(object) => Arc::clone(object),
            Self::Made(object) => Arc::new(object),
        }
    }
}

/// Kernel objects, by step.
///
/// They are released newest first: PoCL keeps the kernels of a program in a list, newest first, and walks it at each
/// release: 100 000 kernels take 12 s in the order of making and 0.01 s in reverse (PoCL 3.1 to 7.1).
#[derive(Clone, Debug, Default)]
pub(super) struct Objects(pub(super) Vec<Option<Arc<KernelObject>>>);

/// Some arguments as OpenCL takes them. Memory that is gone cannot be among them, and would be refused by the driver.
pub(super) fn set_args(tables: &Tables, args: Span) -> impl Iterator<Item = SetArg<'_>> {
    tables.ir.args(args).iter().map(|arg| set_arg(tables, arg))
}

pub(super) fn set_arg<'a>(tables: &'a Tables, arg: &Arg) -> SetArg<'a> {
    match arg {
        Arg::Buffer(view) => tables.mem(*view).map_or(SetArg::Null, SetArg::Mem),
        Arg::Null(_) => SetArg::Null,
        Arg::Sampler(id) => tables.sampler_of(*id).map_or(SetArg::Null, SetArg::Sampler),
        Arg::Local(size) => SetArg::Local(*size),
        Arg::Value(span) => SetArg::Value(tables.ir.bytes(*span)),
        Arg::Global(_) | Arg::Unused(_) => SetArg::Kept,
        // Without its memory it names no byte: null would be an argument behind the kernel's.
        Arg::Indirect(view) => tables.mem(*view).map_or(SetArg::Null, SetArg::Indirect),
    }
}

/// Why a kernel object does not have its arguments.
pub(super) struct NotMade {
    /// The argument that was refused.
    pub(super) argument: Option<usize>,
    pub(super) source: DriverError,
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
    pub(super) fn op(&self, step: &Step) -> &Op {
        self.tables.ir.op(step.node)
    }

    /// The kernel object of a launch, with the arguments of the tables.
    #[inline]
    pub(super) fn object(&self, step: usize, kernel: KernelId, args: Span) -> Result<Object<'_>, DriverError> {
        match self.kept(step) {
            Some(object) => Ok(Object::Kept(object)),
            None => Ok(Object::Made(self.make(kernel, args)?)),
        }
    }

    /// The kernel object of a launch, if it has the arguments of the tables.
    #[inline(always)]
    pub(super) fn kept(&self, step: usize) -> Option<&Arc<KernelObject>> {
        self.objects.0.get(step)?.as_ref().filter(|_| !self.stale.has(step))
    }

    /// Makes a kernel object with arguments of the tables.
    #[cold]
    fn make(&self, kernel: KernelId, args: Span) -> Result<KernelObject, NotMade> {
        let made = self.tables.kernels[kernel.index()].with_args(&self.device, set_args(&self.tables, args));
        made.map_err(|error| match error {
            KernelObjectError::Argument { index, source } => NotMade { argument: Some(index), source },
            KernelObjectError::Create(Error::Driver(source)) => source.into(),
            // Finalize has made one of this kernel, for this device.
            KernelObjectError::Create(_) => DriverError::faulty("clCreateKernel", Fault::Defect).into(),
        })
    }

    /// Gives a launch a new kernel object; returns the one before.
    pub(super) fn replace(
        &mut self,
        step: usize,
        kernel: KernelId,
        args: Span,
    ) -> Result<Option<Arc<KernelObject>>, NotMade> {
        let made = Arc::new(self.make(kernel, args)?);
        self.stale.remove(step);
        Ok(self.objects.0.get_mut(step).and_then(|object| object.replace(made)))
    }

    /// Gives some steps other objects with the arguments of the tables: those of `spare` that nobody else has, or new ones. Those
    /// before stay as they are: PoCL 3.1 reads the arguments of recorded kernels when command buffers are enqueued.
    pub(super) fn renew(
        &mut self,
        plan: &Plan,
        steps: Range<usize>,
        spare: &mut Objects,
        replaced: &mut Vec<Replaced>,
    ) -> Result<(), DriverError> {
        let mut from = steps.start;
        while let Some(step) = self.stale.next(from..steps.end) {
            from = step + 1;
            let Op::Kernel { kernel, args, .. } = *self.tables.ir.op(plan.steps[step].node) else { continue };
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

    /// Makes the objects of some steps have the arguments of the tables. Adds to `old` what was replaced.
    pub(super) fn freshen(&mut self, plan: &Plan, steps: Range<usize>, old: &mut Vec<Old>) -> Result<(), DriverError> {
        let mut from = steps.start;
        while let Some(step) = self.stale.next(from..steps.end) {
            from = step + 1;
            let tables = &*self.tables;
            let Op::Kernel { kernel, args, .. } = *tables.ir.op(plan.steps[step].node) else { continue };
            // Nobody can take from an object what it reaches indirectly.
            let kept = !tables.ir.args(args).iter().any(|arg| matches!(arg, Arg::Indirect(_)));
            let object = self.objects.0.get_mut(step).and_then(Option::as_mut).and_then(Arc::get_mut);
            match object.filter(|_| kept) {
                // Enqueued launches have taken their arguments with them (OpenCL 3.0, clSetKernelArg).
                Some(object) => {
                    object.set_all(set_args(tables, args)).map_err(|(_, source)| source)?;
                    self.stale.remove(step);
                }
                // Others have it too: steps with the same values, a command buffer, or a submission that is not enqueued yet.
                None => old.extend(self.replace(step, kernel, args)?.map(|old| old as Old)),
            }
        }
        Ok(())
    }

    /// Some memory. There is one for each id that a command has.
    pub(super) fn mem(&self, view: ViewId) -> Result<&Mem, DriverError> {
        let missing = DriverError::faulty("a command without its memory", Fault::Defect);
        self.tables.mem(view).ok_or(missing)
    }

    pub(super) fn at(&self, place: &Place) -> Result<(&Mem, usize), DriverError> {
        Ok((self.mem(place.view)?, place.offset))
    }

    /// Where pixels are.
    pub(super) fn pixels<'a>(&'a self, of: &'a Pixels) -> Result<PixelsAt<'a>, DriverError> {
        Ok(match of {
            Pixels::Image(view, origin) => PixelsAt::Image(self.mem(*view)?, origin),
            Pixels::Buffer(place) => PixelsAt::Buffer(self.mem(place.view)?, place.offset),
        })
    }

    pub(super) fn bytes(&self, span: Span) -> &[u8] {
        self.tables.ir.bytes(span)
    }

    pub(super) fn data(&self, id: DataId) -> &HostBytes {
        &self.tables.data[id.index()]
    }
}

impl Objects {
    /// Keeps the object of a step, and gives the one that was there.
    pub(super) fn keep(&mut self, step: usize, object: Arc<KernelObject>) -> Option<Arc<KernelObject>> {
        if self.0.len() <= step {
            self.0.resize(step + 1, None);
        }
        self.0[step].replace(object)
    }
}

impl Stale {
    pub(super) fn add(&mut self, step: usize) {
        if self.0.len() <= step / 64 {
            self.0.resize(step / 64 + 1, 0);
        }
        self.0[step / 64] |= 1 << (step % 64);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The first one of a range.
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
