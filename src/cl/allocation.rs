//! Allocations behind pointers: unified shared memory (USM) and shared virtual memory (SVM), and who uses them.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use opencl_sys::{CL_MEM_READ_WRITE, CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_SUCCESS};
use smallvec::SmallVec;

use super::check;
use super::context::Context;
use super::device::Device;
use super::enqueue;
use super::event::DriverEvent;
use super::freed::Memory;
use super::handle::{Handle, ProgramKind};
use super::mem::Mem;
use super::queue::DriverQueue;
use super::watch;
use crate::caps::MemoryKind;
use crate::error::{DriverError, ErrorKind, Fault, MemoryError, Result, Status};
use crate::ffi::core::Core;
use crate::ffi::usm::{
    CL_MEM_ALLOC_BASE_PTR_INTEL, CL_MEM_ALLOC_SIZE_INTEL, CL_MEM_ALLOC_TYPE_INTEL, CL_MEM_TYPE_UNKNOWN_INTEL, UsmFns,
};
use crate::known;

/// Memory behind a pointer.
pub(crate) struct Allocation {
    pointer: NonNull<c_void>,
    size: usize,
    kind: MemoryKind,
    context: Context,
    device: Device,
    api: Api,
    owner: Owner,
    use_: Mutex<Use>,
    /// Who may have commands under way that use it.
    users: Mutex<Vec<Weak<dyn User>>>,
}

// SAFETY: **threads**: the address is used by commands, whose order is the user's affair, and by the host under guards only.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:p}", self.kind, self.pointer)
    }
}

/// Who gives memory back.
pub(super) enum Owner {
    /// The allocation.
    Itself,
    /// The context, at its end.
    Context,
    /// A program, of which it is a variable. It is kept.
    Program(Arc<Handle<ProgramKind>>),
    /// Somebody else: it is not followed either.
    Foreign,
}

/// The functions that take such pointers.
#[derive(Clone, Copy)]
pub(super) enum Api {
    Svm,
    Usm(&'static UsmFns),
}

/// Who submits commands again and again that use an allocation.
pub(crate) trait User: Send + Sync {
    /// Whether some may be under way, or are just being submitted. It waits for nobody.
    fn may_run(&self) -> bool;
}

/// Uses of an allocation that are not an executable's.
#[derive(Default)]
struct Use {
    /// Guards of the host: so many that read, or -1 for one that writes.
    guards: isize,
    /// Somebody is finding out whether there can be one more.
    trying: bool,
    /// Commands that are being enqueued.
    entering: usize,
    /// Commands that were enqueued. Of each segment of a queue in order the last one.
    commands: Vec<Command>,
    /// When to look which of them are complete, because there are so many.
    many: usize,
}

/// A command that uses an allocation.
struct Command {
    /// Its queue, by the C handle, and the segment of that. None where no order puts it behind others.
    place: Option<(usize, u64)>,
    event: DriverEvent,
}

impl Allocation {
    pub(super) fn new(context: &Context, device: &Device, kind: MemoryKind, size: usize) -> Result<Self> {
        let (pointer, api) = allocate(context, device, kind, size)?;
        Ok(Self::of(context, device, kind, api, pointer, size, Owner::Itself))
    }

    pub(super) fn of(
        context: &Context,
        device: &Device,
        kind: MemoryKind,
        api: Api,
        pointer: NonNull<c_void>,
        size: usize,
        owner: Owner,
    ) -> Self {
        let (use_, users, context, device) = (Mutex::default(), Mutex::default(), context.clone(), device.clone());
        Self { pointer, size, kind, context, device, api, owner, use_, users }
    }

    /// Gives it to whoever gives the memory back from now on.
    pub(super) fn into_raw(mut self) -> (NonNull<c_void>, Api) {
        self.owner = Owner::Foreign;
        (self.pointer, self.api)
    }

    /// Whether commands of a device may use it, and if not, why.
    pub(crate) fn check_device(&self, device: &Device) -> Result<(), String> {
        let one = match self.kind {
            MemoryKind::UsmDevice => true,
            MemoryKind::UsmShared => !device.caps().usm.is_some_and(|usm| usm.cross_device),
            _ => false,
        };
        if self.device != *device && (one || !device.caps().has_memory(self.kind)) {
            return Err(format!("it belongs to device `{}`, and is not for `{}`", self.device.name(), device.name()));
        }
        Ok(())
    }

    pub(super) fn api(&self) -> Api {
        self.api
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.owner, Owner::Foreign)
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// Whether the host can reach it safely at all.
    pub(crate) fn may_have_guards(&self) -> bool {
        self.kind.is_host_accessible() && !self.is_foreign()
    }

    /// Where it starts.
    pub(super) fn address(&self) -> usize {
        self.pointer.as_ptr().addr()
    }

    /// The address of a byte.
    pub(super) fn at(&self, offset: usize) -> *mut c_void {
        self.pointer.as_ptr().wrapping_byte_add(offset)
    }

    fn uses(&self) -> MutexGuard<'_, Use> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The uses, once nobody is finding out whether there can be a guard.
    fn settled(&self) -> MutexGuard<'_, Use> {
        loop {
            let uses = self.uses();
            if !uses.trying {
                return uses;
            }
            drop(uses);
            // Whoever tries waits for nobody.
            std::thread::yield_now();
        }
    }

    /// Whether the host has it now.
    pub(crate) fn is_guarded(&self) -> bool {
        self.settled().guards != 0
    }

    /// From now on a guard of the host asks whether this user has commands under way.
    pub(crate) fn add_user(&self, user: Weak<dyn User>) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|known| known.strong_count() > 0 && !Weak::ptr_eq(known, &user));
        users.push(user);
    }

    /// The user has no commands under way that use it, and will have none.
    pub(crate) fn remove_user(&self, user: &Weak<dyn User>) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|known| !Weak::ptr_eq(known, user));
    }

    /// A command that uses it is going to be enqueued.
    fn enter(&self) -> Result<(), MemoryError> {
        let mut uses = self.settled();
        if uses.guards != 0 {
            return Err(MemoryError::HostHasIt { kind: self.kind });
        }
        uses.entering += 1;
        Ok(())
    }

    /// It was not enqueued after all.
    fn left(&self) {
        self.uses().entering -= 1;
    }

    /// It was enqueued.
    fn entered(&self, place: Option<(usize, u64)>, event: &DriverEvent) {
        let mut uses = self.uses();
        uses.entering -= 1;
        if place.is_some() {
            // What was there in the same segment is before it.
            uses.commands.retain(|command| command.place != place);
        }
        if uses.commands.len() >= uses.many {
            uses.commands.retain(|command| command.event.may_run());
            uses.many = (2 * uses.commands.len()).max(64);
        }
        uses.commands.push(Command { place, event: event.clone() });
    }

    /// Takes a guard, if nothing uses it. Waits for nobody.
    pub(super) fn guard(&self, exclusive: bool) -> Result<(), MemoryError> {
        let busy = |why| MemoryError::Busy { kind: self.kind, why };
        let mut uses = self.settled();
        if uses.guards < 0 || (exclusive && uses.guards > 0) {
            return Err(busy("another guard of it lives: drop that first"));
        }
        uses.commands.retain(|command| command.event.may_run());
        if uses.entering > 0 || !uses.commands.is_empty() {
            return Err(busy("a command of a queue uses it: wait for the command first"));
        }
        // A submission that comes from now on waits for the outcome; one that came before is seen.
        uses.trying = true;
        drop(uses);
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_used = users.iter().filter_map(Weak::upgrade).any(|user| user.may_run());
        let mut uses = self.uses();
        uses.trying = false;
        if is_used {
            return Err(busy("a submission uses it: wait for the submission first"));
        }
        uses.guards = if exclusive { -1 } else { uses.guards + 1 };
        Ok(())
    }

    pub(super) fn unguard(&self, exclusive: bool) {
        let mut uses = self.uses();
        uses.guards = if exclusive { 0 } else { uses.guards - 1 };
    }
}

/// The allocations that a command of an executing queue uses, while it is enqueued.
#[derive(Default)]
pub(crate) struct Entering(SmallVec<[Arc<Allocation>; 4]>);

impl Entering {
    /// Notes that a command is going to use memory, unless the host has it.
    pub(crate) fn add(&mut self, mem: &Mem) -> Result<(), MemoryError> {
        if let Some(allocation) = mem.allocation().filter(|allocation| !allocation.is_foreign()) {
            allocation.enter()?;
            self.0.push(Arc::clone(allocation));
        }
        Ok(())
    }

    /// Whether nobody has to know when the command is complete.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The command was enqueued on a queue, and this event is complete when it is. The caller holds [`DriverQueue::whole`] from
    /// before the command was enqueued, so that it is in the segment that the queue has now.
    pub(crate) fn entered(self, queue: &DriverQueue, event: Option<&DriverEvent>) {
        let place = (!queue.properties().out_of_order).then(|| (queue.raw().addr(), queue.segment()));
        self.entered_at(place, queue, event);
    }

    /// The same for who does not hold it: the command may be in any segment.
    pub(crate) fn entered_somewhere(self, queue: &DriverQueue, event: Option<&DriverEvent>) {
        self.entered_at(None, queue, event);
    }

    fn entered_at(mut self, place: Option<(usize, u64)>, queue: &DriverQueue, event: Option<&DriverEvent>) {
        if self.is_empty() {
            return;
        }
        // A driver that owes an event: a marker tells, or nobody does, and then the memory is in use for good.
        match event.cloned().map_or_else(|| enqueue::last_marker(queue), Ok) {
            Ok(event) => self.0.drain(..).for_each(|allocation| allocation.entered(place, &event)),
            Err(error) => watch::lose(error, std::mem::take(&mut self.0)),
        }
    }
}

impl Drop for Entering {
    /// It was not enqueued.
    fn drop(&mut self) {
        self.0.drain(..).for_each(|allocation| allocation.left());
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // What is to be there until no command uses it.
        let context = self.context.clone();
        let kept: Arc<dyn Send + Sync> = match &self.owner {
            Owner::Foreign => return,
            Owner::Itself => Arc::new(Free { pointer: self.pointer, api: self.api, context }),
            Owner::Context => Arc::new(context),
            Owner::Program(program) => Arc::new((Arc::clone(program), context)),
        };
        let mut uses = std::mem::take(&mut *self.uses());
        uses.commands.retain(|command| command.event.may_run());
        for Command { event, .. } in uses.commands {
            // Commands of an executing queue. (Executables keep what they use.)
            watch::keep_until(event, Arc::clone(&kept));
        }
    }
}

/// Frees memory when dropped: no command uses it any more.
struct Free {
    pointer: NonNull<c_void>,
    api: Api,
    context: Context,
}

// SAFETY: **threads**; nobody else has the address any more.
unsafe impl Send for Free {}
// SAFETY: as above.
unsafe impl Sync for Free {}

impl Drop for Free {
    fn drop(&mut self) {
        // SAFETY: **live**; the memory came from an allocation of this context, no command uses it, and it is given back once.
        unsafe {
            let memory = Memory::new(self.pointer, self.api);
            if self.context.frees_late() {
                self.context.freed().add(memory, self.context.raw());
            } else {
                memory.give_back(self.context.raw());
            }
        }
    }
}

/// Between two attempts to allocate.
const A_MOMENT: Duration = Duration::from_millis(2);

/// Allocates memory of a kind, with undefined content, which nobody gives back yet.
pub(super) fn allocate(
    context: &Context,
    device: &Device,
    kind: MemoryKind,
    size: usize,
) -> Result<(NonNull<c_void>, Api)> {
    check_kind(device, kind)?;
    let limit = device.caps().max_allocation;
    if size as u64 > limit {
        return Err(MemoryError::TooLarge { asked: size as u64, limit, device: device.name().to_owned() }.into());
    }
    let api = api(device, kind)?;
    let core = Core::get()?;
    let allocate = || {
        let mut status = CL_SUCCESS;
        let (none, place) = (std::ptr::null(), &raw mut status);
        // SAFETY: **live**; no properties, and the alignment that the driver chooses.
        let (call, pointer) = unsafe {
            match (api, kind) {
                (Api::Usm(fns), MemoryKind::UsmHost) => {
                    ("clHostMemAllocINTEL", (fns.alloc_host)(context.raw(), none, size, 0, place))
                }
                (Api::Usm(fns), MemoryKind::UsmShared) => {
                    ("clSharedMemAllocINTEL", (fns.alloc_shared)(context.raw(), device.raw(), none, size, 0, place))
                }
                (Api::Usm(fns), _) => {
                    ("clDeviceMemAllocINTEL", (fns.alloc_device)(context.raw(), device.raw(), none, size, 0, place))
                }
                (Api::Svm, kind) => {
                    let fine = if kind == MemoryKind::SvmFine { CL_MEM_SVM_FINE_GRAIN_BUFFER } else { 0 };
                    let alloc = core.clSVMAlloc.ok_or_else(|| lacks("clSVMAlloc"))?;
                    ("clSVMAlloc", alloc(context.raw(), CL_MEM_READ_WRITE | fine, size, 0))
                }
            }
        };
        check(call, status).map_err(MemoryError::from)?;
        // SVM's says no more than this.
        let failed = DriverError::new(call, Status(opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE));
        NonNull::new(pointer).ok_or(MemoryError::Driver(failed))
    };
    let pointer = if known::frees_late(device.caps()) {
        let mut freed = context.freed();
        // SAFETY: **live**; the context's own, as below.
        unsafe { freed.settle(false, context.raw()) };
        // What is yet to be given back may be what is missing.
        allocate().or_else(|error| {
            let is_lack = error.kind() == ErrorKind::OutOfMemory;
            // SAFETY: **live**; as above.
            if is_lack && unsafe { freed.settle(true, context.raw()) } { allocate() } else { Err(error) }
        })?
    } else {
        let mut outcome = allocate();
        for _ in 1..known::attempts_to_allocate(device.caps()) {
            if !outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::OutOfMemory) {
                break;
            }
            std::thread::sleep(A_MOMENT);
            outcome = allocate();
        }
        outcome?
    };
    Ok((pointer, api))
}

fn lacks(call: &'static str) -> MemoryError {
    DriverError::faulty(call, Fault::Missing).into()
}

/// Says no to a kind of memory that a device does not have.
pub(super) fn check_kind(device: &Device, kind: MemoryKind) -> Result<(), MemoryError> {
    let caps = device.caps();
    if caps.has_memory(kind) {
        return Ok(());
    }
    Err(MemoryError::NoSuchMemory { kind, device: device.name().to_owned(), has: kinds(device) })
}

/// The kinds of memory that a device has, for error texts.
pub(super) fn kinds(device: &Device) -> String {
    let has = MemoryKind::ALL.into_iter().filter(|kind| device.caps().has_memory(*kind));
    has.map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ")
}

pub(super) fn api(device: &Device, kind: MemoryKind) -> Result<Api, MemoryError> {
    match kind {
        MemoryKind::UsmDevice | MemoryKind::UsmHost | MemoryKind::UsmShared => {
            device.extensions().usm.as_ref().map(Api::Usm).ok_or_else(|| lacks("clDeviceMemAllocINTEL"))
        }
        MemoryKind::SvmCoarse | MemoryKind::SvmFine | MemoryKind::Buffer => Ok(Api::Svm),
    }
}

/// Says no to a pointer that a driver does not know as USM, or whose allocation ends before `size` bytes.
pub(super) fn check_pointer(
    context: &Context,
    device: &Device,
    api: Api,
    pointer: NonNull<c_void>,
    size: usize,
) -> Result<(), MemoryError> {
    let Api::Usm(fns) = api else { return Ok(()) };
    let ask = |name, place: *mut c_void, size| {
        // SAFETY: **live**, **query**; any address may be asked for.
        let status = unsafe { (fns.info)(context.raw(), pointer.as_ptr(), name, size, place, std::ptr::null_mut()) };
        check("clGetMemAllocInfoINTEL", status)
    };
    let (mut kind, mut start, mut len) = (0_u32, 0_usize, 0_usize);
    ask(CL_MEM_ALLOC_TYPE_INTEL, (&raw mut kind).cast(), size_of_val(&kind))?;
    if kind == CL_MEM_TYPE_UNKNOWN_INTEL {
        // Memory of the host, which a device may take.
        return if device.caps().usm.is_some_and(|usm| usm.system) { Ok(()) } else { Err(MemoryError::UnknownPointer) };
    }
    ask(CL_MEM_ALLOC_BASE_PTR_INTEL, (&raw mut start).cast(), size_of_val(&start))?;
    ask(CL_MEM_ALLOC_SIZE_INTEL, (&raw mut len).cast(), size_of_val(&len))?;
    let offset = pointer.as_ptr().addr().saturating_sub(start);
    if len.saturating_sub(offset) < size {
        return Err(MemoryError::BeyondAllocation { offset, size, len });
    }
    Ok(())
}
