//! Allocations with an address: unified shared memory (USM) and shared virtual memory (SVM), and which commands use
//! them.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use opencl_sys::{CL_MEM_READ_WRITE, CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_SUCCESS};
use smallvec::SmallVec;

use crate::caps::MemoryKind;
use crate::cl::check;
use crate::cl::commands::enqueue;
use crate::cl::completion::event_reaper;
use crate::cl::memory::freed::Memory;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::Context;
use crate::cl::objects::device::Device;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::handle::{Handle, ProgramKind};
use crate::cl::objects::queue::DriverQueue;
use crate::error::{DriverError, DriverFault, ErrorKind, MemoryError, Result, Status};
use crate::ffi::core::Core;
use crate::ffi::usm::{
    CL_MEM_ALLOC_BASE_PTR_INTEL, CL_MEM_ALLOC_SIZE_INTEL, CL_MEM_ALLOC_TYPE_INTEL, CL_MEM_TYPE_UNKNOWN_INTEL, UsmFns,
};
use crate::quirks;

/// Memory with an address.
pub(crate) struct Allocation {
    pointer: NonNull<c_void>,
    size: usize,
    kind: MemoryKind,
    context: Context,
    device: Device,
    api: Api,
    owner: Owner,
    use_: Mutex<AllocationUse>,
    /// The executables that may have running commands that use the memory.
    users: Mutex<Vec<Weak<dyn User>>>,
}

// SAFETY: **threads**: commands use the address, and the user orders commands; the host uses it under guards only.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:p}", self.kind, self.pointer)
    }
}

/// Who frees the memory.
pub(in crate::cl) enum Owner {
    /// The allocation itself.
    Itself,
    /// The context, when it ends.
    Context,
    /// A program, whose variable the memory is. The allocation keeps the program alive.
    Program(Arc<Handle<ProgramKind>>),
    /// Somebody outside clgraph. clgraph does not track the uses of such memory.
    Foreign,
}

/// The functions that take this kind of pointer.
#[derive(Clone, Copy)]
pub(in crate::cl) enum Api {
    Svm,
    Usm(&'static UsmFns),
}

/// An object that submits commands repeatedly that use an allocation.
pub(crate) trait User: Send + Sync {
    /// Returns whether such commands may be running, or are being submitted. It never waits.
    fn may_run(&self) -> bool;
}

/// The uses of an allocation, except those of executables.
#[derive(Default)]
struct AllocationUse {
    /// Guards of the host: the number of guards that read, or -1 for one guard that writes.
    guards: isize,
    /// A thread is checking whether one more guard is possible.
    trying: bool,
    /// Number of commands that are being enqueued now.
    entering: usize,
    /// Commands that were enqueued: of each in-order queue, only the last one.
    commands: Vec<Command>,
    /// If there are this many commands, remove those that are complete.
    many: usize,
}

/// A command that uses an allocation.
struct Command {
    /// The C handle of its in-order queue, or `None` if no order of a queue holds for the command.
    place: Option<usize>,
    event: DriverEvent,
}

impl Allocation {
    pub(in crate::cl) fn new(context: &Context, device: &Device, kind: MemoryKind, size: usize) -> Result<Self> {
        let (pointer, api) = allocate(context, device, kind, size)?;
        Ok(Self::of(context, device, kind, api, pointer, size, Owner::Itself))
    }

    pub(in crate::cl) fn of(
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

    /// Gives the memory away: from now on the caller has to free it.
    pub(in crate::cl) fn into_raw(mut self) -> (NonNull<c_void>, Api) {
        self.owner = Owner::Foreign;
        (self.pointer, self.api)
    }

    /// Checks that commands of a device may use the memory. The error says why not.
    pub(crate) fn check_device(&self, device: &Device) -> Result<(), String> {
        let one = match self.kind {
            MemoryKind::UsmDevice => true,
            MemoryKind::UsmShared => !device.caps().usm.is_some_and(|usm| usm.cross_device),
            _ => false,
        };
        if self.device != *device && (one || !device.caps().has_memory(self.kind)) {
            return Err(format!(
                "the memory belongs to device `{}`, but the command runs on device `{}`; use memory of this device",
                self.device.name(),
                device.name()
            ));
        }
        Ok(())
    }

    pub(in crate::cl) fn api(&self) -> Api {
        self.api
    }

    pub(in crate::cl) fn device(&self) -> &Device {
        &self.device
    }

    pub(in crate::cl) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.owner, Owner::Foreign)
    }

    pub(in crate::cl) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// Returns whether the host can ever access the memory safely.
    pub(crate) fn may_have_guards(&self) -> bool {
        self.kind.is_host_accessible() && !self.is_foreign()
    }

    /// Returns the address of the first byte.
    pub(in crate::cl) fn address(&self) -> usize {
        self.pointer.as_ptr().addr()
    }

    /// Returns the address of a byte.
    pub(in crate::cl) fn at(&self, offset: usize) -> *mut c_void {
        self.pointer.as_ptr().wrapping_byte_add(offset)
    }

    fn uses(&self) -> MutexGuard<'_, AllocationUse> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the uses, at a moment when no thread is checking for a guard.
    fn settled(&self) -> MutexGuard<'_, AllocationUse> {
        loop {
            let uses = self.uses();
            if !uses.trying {
                return uses;
            }
            drop(uses);
            // The check never waits, so it ends soon.
            std::thread::yield_now();
        }
    }

    /// Returns whether the host holds a guard now.
    pub(crate) fn is_guarded(&self) -> bool {
        self.settled().guards != 0
    }

    /// Adds a user: from now on, guards of the host ask whether it has running commands.
    pub(crate) fn add_user(&self, user: Weak<dyn User>) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|known| known.strong_count() > 0 && !Weak::ptr_eq(known, &user));
        users.push(user);
    }

    /// Removes a user that has no running commands that use the memory, and will have none.
    pub(crate) fn remove_user(&self, user: &Weak<dyn User>) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|known| !Weak::ptr_eq(known, user));
    }

    /// Registers a command that is about to be enqueued and uses the memory.
    fn enter(&self) -> Result<(), MemoryError> {
        let mut uses = self.settled();
        if uses.guards != 0 {
            return Err(MemoryError::HeldByHost { kind: self.kind });
        }
        uses.entering += 1;
        Ok(())
    }

    /// Removes a registered command that was not enqueued.
    fn left(&self) {
        self.uses().entering -= 1;
    }

    /// Records that a registered command was enqueued.
    fn entered(&self, place: Option<usize>, event: &DriverEvent) {
        let mut uses = self.uses();
        uses.entering -= 1;
        if place.is_some() {
            // Earlier commands of the same in-order queue complete before this command.
            uses.commands.retain(|command| command.place != place);
        }
        if uses.commands.len() >= uses.many {
            uses.commands.retain(|command| command.event.may_run());
            uses.many = (2 * uses.commands.len()).max(64);
        }
        uses.commands.push(Command { place, event: event.clone() });
    }

    /// Takes a guard if nothing uses the memory. It never waits.
    pub(in crate::cl) fn guard(&self, exclusive: bool) -> Result<(), MemoryError> {
        let busy = |why| MemoryError::Busy { kind: self.kind, why };
        let mut uses = self.settled();
        if uses.guards < 0 || (exclusive && uses.guards > 0) {
            return Err(busy("another guard of the memory exists; drop that guard first"));
        }
        uses.commands.retain(|command| command.event.may_run());
        if uses.entering > 0 || !uses.commands.is_empty() {
            return Err(busy("a command of a queue uses it; wait for the command first"));
        }
        // A submission from now on waits for the result of this check. Earlier submissions are seen below.
        uses.trying = true;
        drop(uses);
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_used = users.iter().filter_map(Weak::upgrade).any(|user| user.may_run());
        let mut uses = self.uses();
        uses.trying = false;
        if is_used {
            return Err(busy("a submission uses it; wait for the submission first"));
        }
        uses.guards = if exclusive { -1 } else { uses.guards + 1 };
        Ok(())
    }

    pub(in crate::cl) fn unguard(&self, exclusive: bool) {
        let mut uses = self.uses();
        uses.guards = if exclusive { 0 } else { uses.guards - 1 };
    }
}

/// The allocations that a command of an executing queue uses, while the command is being enqueued.
#[derive(Default)]
pub(crate) struct Entering(SmallVec<[Arc<Allocation>; 4]>);

impl Entering {
    /// Registers that a command is about to use memory. Returns an error if the host holds a guard.
    pub(crate) fn add(&mut self, mem: &Mem) -> Result<(), MemoryError> {
        if let Some(allocation) = mem.allocation().filter(|allocation| !allocation.is_foreign()) {
            allocation.enter()?;
            self.0.push(Arc::clone(allocation));
        }
        Ok(())
    }

    /// Returns whether no allocation needs to know when the command is complete.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records that the command was enqueued on a queue; `event` is complete when the command is. The caller has held
    /// [`DriverQueue::lock_order`] since before the command was enqueued, so this is called in the order of the
    /// commands.
    pub(crate) fn entered(self, queue: &DriverQueue, event: Option<&DriverEvent>) {
        let place = (!queue.properties().out_of_order).then(|| queue.raw().addr());
        self.entered_at(place, queue, event);
    }

    /// Records the same for a caller that does not hold [`DriverQueue::lock_order`]: other commands may
    /// have been enqueued since.
    pub(crate) fn entered_somewhere(self, queue: &DriverQueue, event: Option<&DriverEvent>) {
        self.entered_at(None, queue, event);
    }

    fn entered_at(mut self, place: Option<usize>, queue: &DriverQueue, event: Option<&DriverEvent>) {
        if self.is_empty() {
            return;
        }
        // If the driver returned no event, a marker replaces it. If the marker fails too, the memory counts as in use
        // for ever.
        match event.cloned().map_or_else(|| enqueue::last_marker(queue), Ok) {
            Ok(event) => self.0.drain(..).for_each(|allocation| allocation.entered(place, &event)),
            Err(error) => event_reaper::leak(error, std::mem::take(&mut self.0)),
        }
    }
}

impl Drop for Entering {
    /// The command was not enqueued.
    fn drop(&mut self) {
        self.0.drain(..).for_each(|allocation| allocation.left());
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // Must stay alive until no command uses the memory.
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
            // These are commands of an executing queue. Executables keep alive what they use.
            event_reaper::keep_until(event, Arc::clone(&kept));
        }
    }
}

/// Frees the memory when it is dropped, at a time when no command uses the memory.
struct Free {
    pointer: NonNull<c_void>,
    api: Api,
    context: Context,
}

// SAFETY: **threads**; nothing else has the address any more.
unsafe impl Send for Free {}
// SAFETY: as above.
unsafe impl Sync for Free {}

impl Drop for Free {
    fn drop(&mut self) {
        // SAFETY: **live**; the memory came from an allocation of this context, no command uses it, and it is freed
        // once.
        unsafe {
            let memory = Memory::new(self.pointer, self.api);
            if self.context.must_free_late() {
                self.context.freed().add(memory, self.context.raw());
            } else {
                memory.give_back(self.context.raw());
            }
        }
    }
}

/// The pause between two attempts to allocate.
const A_MOMENT: Duration = Duration::from_millis(2);

/// Allocates memory of a kind. The content is undefined, and the caller has to free it.
pub(in crate::cl) fn allocate(
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
        // SAFETY: **live**; no properties, and the driver chooses the alignment.
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
        // `clSVMAlloc` returns no status, only a null pointer.
        let failed = DriverError::new(call, Status(opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE));
        NonNull::new(pointer).ok_or(MemoryError::Driver(failed))
    };
    let pointer = if quirks::must_free_late(device.caps()) {
        let mut freed = context.freed();
        // SAFETY: **live**; the memory belongs to this context.
        unsafe { freed.free_ready(false, context.raw()) };
        // Freeing the memory that is still to be freed may make room.
        allocate().or_else(|error| {
            let is_lack = error.kind() == ErrorKind::OutOfMemory;
            // SAFETY: **live**; as above.
            if is_lack && unsafe { freed.free_ready(true, context.raw()) } { allocate() } else { Err(error) }
        })?
    } else {
        let mut outcome = allocate();
        for _ in 1..quirks::allocation_attempts(device.caps()) {
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
    DriverError::faulty(call, DriverFault::Missing).into()
}

/// Returns an error for a kind of memory that a device does not have.
pub(in crate::cl) fn check_kind(device: &Device, kind: MemoryKind) -> Result<(), MemoryError> {
    let caps = device.caps();
    if caps.has_memory(kind) {
        return Ok(());
    }
    Err(MemoryError::NoSuchMemory { kind, device: device.name().to_owned(), has: kinds(device) })
}

/// Returns the kinds of memory that a device has, for error texts.
pub(in crate::cl) fn kinds(device: &Device) -> String {
    let has = MemoryKind::ALL.into_iter().filter(|kind| device.caps().has_memory(*kind));
    has.map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ")
}

pub(in crate::cl) fn api(device: &Device, kind: MemoryKind) -> Result<Api, MemoryError> {
    match kind {
        MemoryKind::UsmDevice | MemoryKind::UsmHost | MemoryKind::UsmShared => {
            device.extensions().usm.as_ref().map(Api::Usm).ok_or_else(|| lacks("clDeviceMemAllocINTEL"))
        }
        MemoryKind::SvmCoarse | MemoryKind::SvmFine | MemoryKind::Buffer => Ok(Api::Svm),
    }
}

/// Returns an error for a pointer that the driver does not know as USM, or whose allocation ends before `size` bytes.
pub(in crate::cl) fn check_pointer(
    context: &Context,
    device: &Device,
    api: Api,
    pointer: NonNull<c_void>,
    size: usize,
) -> Result<(), MemoryError> {
    let Api::Usm(fns) = api else { return Ok(()) };
    let ask = |name, place: *mut c_void, size| {
        // SAFETY: **live**, **query**; the function accepts any address.
        let status = unsafe { (fns.info)(context.raw(), pointer.as_ptr(), name, size, place, std::ptr::null_mut()) };
        check("clGetMemAllocInfoINTEL", status)
    };
    let (mut kind, mut start, mut len) = (0_u32, 0_usize, 0_usize);
    ask(CL_MEM_ALLOC_TYPE_INTEL, (&raw mut kind).cast(), size_of_val(&kind))?;
    if kind == CL_MEM_TYPE_UNKNOWN_INTEL {
        // This is host memory, which some devices can use.
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
