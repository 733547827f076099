//! Allocations behind pointers: unified shared memory (USM) and shared virtual memory (SVM), and who uses them.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use opencl_sys::{CL_MEM_READ_WRITE, CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_SUCCESS};
use smallvec::SmallVec;

use super::check;
use super::context::Context;
use super::device::Device;
use super::event::{DriverEvent, Progress};
use super::mem::Mem;
use super::watch;
use crate::caps::MemoryKind;
use crate::error::{DriverError, MemoryError, Result, Status};
use crate::ffi::core::Core;
use crate::ffi::usm::{
    CL_MEM_ALLOC_BASE_PTR_INTEL, CL_MEM_ALLOC_SIZE_INTEL, CL_MEM_ALLOC_TYPE_INTEL, CL_MEM_TYPE_UNKNOWN_INTEL, UsmFns,
};

/// Memory behind a pointer.
pub(crate) struct Allocation {
    pointer: NonNull<c_void>,
    size: usize,
    kind: MemoryKind,
    context: Context,
    api: Api,
    /// Somebody else's: it is neither freed nor followed.
    foreign: bool,
    use_: Mutex<Use>,
    /// Who may have commands under way that use it.
    users: Mutex<Vec<Weak<dyn User>>>,
}

// SAFETY: **threads**: the address is used by commands, whose order is the user's affair, and by the host under guards only.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

/// The functions that take such pointers.
#[derive(Clone, Copy)]
pub(super) enum Api {
    Svm,
    Usm(&'static UsmFns),
}

/// Who submits commands again and again that use an allocation.
pub(crate) trait User: Send + Sync {
    /// Whether some may be under way.
    fn may_run(&self) -> bool;
}

/// Uses of an allocation that are not an executable's.
#[derive(Default)]
struct Use {
    /// Guards of the host: so many that read, or -1 for one that writes.
    guards: isize,
    /// Commands that are being enqueued.
    entering: usize,
    /// Commands that were enqueued.
    commands: Vec<DriverEvent>,
}

impl Allocation {
    pub(super) fn new(context: &Context, device: &Device, kind: MemoryKind, size: usize) -> Result<Self> {
        check_kind(device, kind)?;
        let api = api(device, kind)?;
        let core = Core::get()?;
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
        let failed = DriverError { call, status: Status(opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE) };
        let pointer = NonNull::new(pointer).ok_or(MemoryError::Driver(failed))?;
        Ok(Self::of(context, kind, api, pointer, size, false))
    }

    pub(super) fn of(
        context: &Context,
        kind: MemoryKind,
        api: Api,
        pointer: NonNull<c_void>,
        size: usize,
        foreign: bool,
    ) -> Self {
        let (use_, users, context) = (Mutex::default(), Mutex::default(), context.clone());
        Self { pointer, size, kind, context, api, foreign, use_, users }
    }

    pub(super) fn api(&self) -> Api {
        self.api
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// Whether the host can reach it safely at all.
    pub(crate) fn may_have_guards(&self) -> bool {
        self.kind.is_host_accessible() && !self.foreign
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

    /// Whether the host has it now.
    pub(crate) fn is_guarded(&self) -> bool {
        self.uses().guards != 0
    }

    /// From now on a guard of the host asks whether this user has commands under way.
    pub(crate) fn add_user(&self, user: Weak<dyn User>) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|known| known.strong_count() > 0 && !Weak::ptr_eq(known, &user));
        users.push(user);
    }

    /// A command that uses it is going to be enqueued.
    fn enter(&self) -> Result<(), MemoryError> {
        let mut uses = self.uses();
        if uses.guards != 0 {
            return Err(MemoryError::HostHasIt { kind: self.kind });
        }
        uses.entering += 1;
        Ok(())
    }

    /// It was enqueued, or not.
    fn entered(&self, event: Option<&DriverEvent>) {
        let mut uses = self.uses();
        uses.entering -= 1;
        if let Some(event) = event {
            uses.commands.retain(may_run);
            uses.commands.push(event.clone());
        }
    }

    pub(super) fn guard(&self, exclusive: bool) -> Result<(), MemoryError> {
        let busy = |why| MemoryError::Busy { kind: self.kind, why };
        let mut uses = self.uses();
        if uses.guards < 0 || (exclusive && uses.guards > 0) {
            return Err(busy("another guard of it lives: drop that first"));
        }
        uses.commands.retain(may_run);
        if uses.entering > 0 || !uses.commands.is_empty() {
            return Err(busy("a command of a queue uses it: wait for the command first"));
        }
        uses.guards = if exclusive { -1 } else { uses.guards + 1 };
        drop(uses);
        // A submission that has not seen the guard is seen here.
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if users.iter().filter_map(Weak::upgrade).any(|user| user.may_run()) {
            self.unguard(exclusive);
            return Err(busy("a submission uses it: wait for the submission first"));
        }
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

    /// The command was enqueued, and this event is complete when it is. Without one it is complete now.
    pub(crate) fn entered(mut self, event: Option<&DriverEvent>) {
        self.0.drain(..).for_each(|allocation| allocation.entered(event));
    }
}

impl Drop for Entering {
    /// It was not enqueued.
    fn drop(&mut self) {
        self.0.drain(..).for_each(|allocation| allocation.entered(None));
    }
}

fn may_run(event: &DriverEvent) -> bool {
    !matches!(event.progress(), Ok(Progress::Complete | Progress::Failed(_)))
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.foreign {
            return;
        }
        let mut uses = std::mem::take(&mut *self.uses());
        uses.commands.retain(may_run);
        let free = Free { pointer: self.pointer, api: self.api, context: self.context.clone() };
        let free = Arc::new(free);
        for event in uses.commands {
            // Commands of an executing queue. (Executables keep what they use.)
            watch::keep_until(event, Arc::clone(&free));
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
        let pointer = self.pointer.as_ptr();
        match self.api {
            Api::Svm => {
                let Ok(core) = Core::get() else { return };
                if let Some(free) = core.clSVMFree {
                    // SAFETY: **live**; the memory came from `clSVMAlloc` of this context, and is given back once.
                    unsafe { free(self.context.raw(), pointer) };
                }
            }
            Api::Usm(fns) => {
                // SAFETY: **live**; the memory came from an allocation of this context, and is given back once.
                let status = unsafe { (fns.free)(self.context.raw(), pointer) };
                if status != CL_SUCCESS {
                    log::error!("clMemFreeINTEL failed with {}", Status(status));
                }
            }
        }
    }
}

fn lacks(call: &'static str) -> MemoryError {
    DriverError::new(call, Status(opencl_sys::CL_INVALID_OPERATION)).into()
}

/// Says no to a kind of memory that a device does not have.
pub(super) fn check_kind(device: &Device, kind: MemoryKind) -> Result<(), MemoryError> {
    let caps = device.caps();
    if caps.has_memory(kind) {
        return Ok(());
    }
    let has = MemoryKind::ALL.into_iter().filter(|kind| caps.has_memory(*kind));
    let has = has.map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ");
    Err(MemoryError::NoSuchMemory { kind, device: device.name().to_owned(), has })
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
