//! Device globals on devices: what each context knows about them, and their memory as commands name it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::RangeBounds;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use bytemuck::Pod;
use opencl_sys::{CL_MEM_READ_WRITE, cl_context, cl_program};

use crate::caps::MemoryKind;
use crate::cl::commands::enqueue::{self, To, Waits};
use crate::cl::completion::event_reaper;
use crate::cl::memory::allocation::{Allocation, Api, Owner};
use crate::cl::memory::freed::{self, Freed};
use crate::cl::memory::host::{Element, HostBytes, HostData};
use crate::cl::memory::map_queue::MapQueues;
use crate::cl::memory::program_globals::ProgramGlobals;
use crate::cl::memory::region::{AsDestination, AsRegion, AsSource, Region, slice_type, whole_elements};
use crate::cl::memory::untyped::{Backing, Mem, MemInner};
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::{Context, OnDevice};
use crate::cl::objects::device::Device;
use crate::cl::objects::handle::{ContextKind, Handle, MemKind};
use crate::cl::objects::program::{Program, WeakProgram};
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::cl::objects::retired_queues::RetiredQueues;
use crate::command::Location;
use crate::device_global::host_access::{Property as Access, ReadWrite, Readable, Writable};
use crate::device_global::scope::Property as Scope;
use crate::device_global::{Declared, DeviceGlobal, DeviceGlobalType, DynamicGlobal, declaration};
use crate::error::{GlobalError, MemoryError, Result};

/// What all [`Context`]s that wrap one `cl_context` share: device globals, queues for maps, and memory that is still to
/// be freed. The memory of the device globals is freed with the last reference to this; each use of that memory holds
/// one.
pub(in crate::cl) struct Registry {
    known: Mutex<Known>,
    pub(in crate::cl) maps: MapQueues,
    pub(in crate::cl) freed: Mutex<Freed>,
    /// Held for reading while a thread of clgraph enqueues commands of the program: see [`Freed`].
    pub(in crate::cl) enqueuing: RwLock<()>,
    pub(in crate::cl) retired_queues: RetiredQueues,
    /// The context that owns the memory.
    context: Handle<ContextKind>,
}

#[derive(Default)]
struct Known {
    /// The first declaration of each name.
    declared: HashMap<&'static str, Declared>,
    /// The memory of each device global, by name and device.
    shared: HashMap<(&'static str, usize), Shared>,
    /// The device globals that belong to one program.
    places: HashMap<&'static str, OwnerProgram>,
    /// The programs that have device globals, by C handle.
    programs: HashMap<usize, WeakProgram>,
}

/// The program that a device global belongs to.
struct OwnerProgram {
    /// Alive as long as the program.
    taken: Weak<()>,
    globals: Weak<ProgramGlobals>,
}

/// The memory of a device global. It holds no reference to the context, because each use of the memory does.
enum Shared {
    Buffer { handle: Handle<MemKind>, size: usize },
    Pointer { pointer: NonNull<c_void>, api: Api, kind: MemoryKind, size: usize, last: Weak<Allocation> },
}

// SAFETY: **threads**; only commands use the address, and the user orders commands.
unsafe impl Send for Shared {}

/// The registries of all contexts, by C handle.
static ALL: Mutex<Option<HashMap<usize, Weak<Registry>>>> = Mutex::new(None);

impl Registry {
    /// Returns the registries of all contexts.
    pub(in crate::cl) fn all() -> Vec<Arc<Self>> {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().flat_map(HashMap::values).filter_map(Weak::upgrade).collect()
    }

    /// Returns the registry of a context.
    pub(in crate::cl) fn of(context: &Handle<ContextKind>) -> Result<Arc<Self>> {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        let address = context.raw().addr();
        if let Some(known) = all.get(&address).and_then(Weak::upgrade) {
            return Ok(known);
        }
        all.retain(|_, registry| registry.strong_count() > 0);
        let (known, maps, freed) = (Mutex::default(), MapQueues::default(), Mutex::default());
        let (enqueuing, retired_queues) = (RwLock::default(), RetiredQueues::default());
        let context = context.try_clone()?;
        let registry = Arc::new(Self { known, maps, freed, enqueuing, retired_queues, context });
        all.insert(address, Arc::downgrade(&registry));
        Ok(registry)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error for a second variable with the same name.
    pub(in crate::cl) fn declare(&self, global: &Declared) -> Result<(), GlobalError> {
        self.lock().declare(global)
    }

    /// Returns an error if a device global that belongs to one program already has a program.
    pub(in crate::cl) fn check_place(&self, global: &Declared) -> Result<(), GlobalError> {
        self.lock().check_place(global.name)
    }

    /// Makes device globals belong to a program, all or none of them, and registers the program by its C handle.
    pub(in crate::cl) fn take_places(&self, globals: &[&'static str], program: &Program) -> Result<(), GlobalError> {
        let mut known = self.lock();
        globals.iter().try_for_each(|name| known.check_place(name))?;
        let place = || OwnerProgram { taken: program.place(), globals: Arc::downgrade(program.bound_globals()) };
        known.places.extend(globals.iter().map(|name| (*name, place())));
        known.programs.retain(|_, program| program.is_alive());
        known.programs.insert(program.raw().addr(), program.downgrade());
        Ok(())
    }

    /// Returns the program with device globals that has this C handle.
    pub(in crate::cl) fn program_of(&self, raw: cl_program) -> Option<Program> {
        self.lock().programs.get(&raw.addr()).and_then(WeakProgram::upgrade)
    }

    /// Returns the globals of the program that a device global belongs to.
    fn place_of(&self, global: &Declared) -> Result<Arc<ProgramGlobals>, GlobalError> {
        let mut known = self.lock();
        known.declare(global)?;
        let place = known.places.get(global.name).filter(|place| place.taken.strong_count() > 0);
        let globals = place.and_then(|place| place.globals.upgrade());
        globals.ok_or(GlobalError::NoProgram { name: global.name, why: "no program has the global" })
    }
}

impl Known {
    fn check_place(&self, name: &'static str) -> Result<(), GlobalError> {
        let is_taken = self.places.get(name).is_some_and(|place| place.taken.strong_count() > 0);
        if is_taken { Err(GlobalError::OtherProgram { name }) } else { Ok(()) }
    }

    fn declare(&mut self, global: &Declared) -> Result<(), GlobalError> {
        let first = self.declared.entry(global.name).or_insert(*global);
        if first.is(global) {
            return Ok(());
        }
        Err(GlobalError::NameClash {
            name: global.name,
            first: first.location,
            first_type: first.type_name,
            second: global.location,
            second_type: global.type_name,
        })
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let known = self.known.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, shared) in known.shared.drain() {
            // SAFETY: **live** for the context; each user of the memory kept a `Context`, which keeps this registry.
            unsafe { shared.give_back(self.context.raw()) };
        }
        let freed = self.freed.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the memory belongs to this context, which is still alive.
        unsafe { freed.free_ready(true, self.context.raw()) };
    }
}

impl Shared {
    /// Allocates memory for a device global and writes its initial value.
    fn new(context: &Context, device: &Device, global: &Declared) -> Result<Self> {
        let kind = device.caps().own_memory_kind();
        if kind == MemoryKind::Buffer {
            let mem = Buffer::<u8>::new(context, global.size)?.region().mem;
            initialize(context, device, &mem, global)?;
            return Ok(Self::Buffer { handle: mem.handle()?.try_clone()?, size: global.size });
        }
        let allocation = Arc::new(Allocation::new(context, device, kind, global.size)?);
        initialize(context, device, &Mem::of_allocation(Arc::clone(&allocation)), global)?;
        // No other reference to the allocation was given away.
        let allocation = Arc::into_inner(allocation).ok_or(MemoryError::NotAPointer)?;
        let (pointer, api) = allocation.into_raw();
        Ok(Self::Pointer { pointer, api, kind, size: global.size, last: Weak::new() })
    }

    /// # Safety
    /// The memory was allocated in this context, and nothing uses it.
    unsafe fn give_back(self, context: cl_context) {
        if let Self::Pointer { pointer, api, .. } = self {
            // SAFETY: the caller's promise; the memory came from an allocation, and only this call frees it.
            unsafe { freed::Memory::new(pointer, api).give_back(context) };
        }
    }

    fn mem(&mut self, context: &Context, device: &Device) -> Result<Mem> {
        match self {
            Self::Buffer { handle, size } => {
                let (handle, size) = (handle.try_clone()?, *size);
                let (root, parent, image) = (handle.raw().addr(), None, None);
                let (backing, context) = (Backing::Buffer(handle), context.clone());
                let flags = CL_MEM_READ_WRITE;
                Ok(Mem::new(MemInner {
                    root,
                    root_size: size,
                    backing,
                    context,
                    offset: 0,
                    size,
                    parent,
                    image,
                    flags,
                }))
            }
            Self::Pointer { pointer, api, kind, size, last } => {
                let allocation = last.upgrade().unwrap_or_else(|| {
                    let of = Allocation::of(context, device, *kind, *api, *pointer, *size, Owner::Context);
                    let allocation = Arc::new(of);
                    *last = Arc::downgrade(&allocation);
                    allocation
                });
                Ok(Mem::of_allocation(allocation))
            }
        }
    }
}

/// Returns the memory of a device global that the programs of a context share.
pub(in crate::cl) fn shared(context: &Context, device: &Device, global: &Declared) -> Result<Mem> {
    context.check_device(device)?;
    // The lock is held until the initial value is written: a second caller gets the same memory with its value.
    let mut known = context.globals().lock();
    known.declare(global)?;
    let key = (global.name, device.raw().addr());
    if let Some(shared) = known.shared.get_mut(&key) {
        return shared.mem(context, device);
    }
    let mut shared = Shared::new(context, device, global)?;
    let mem = shared.mem(context, device);
    known.shared.insert(key, shared);
    mem
}

/// Allocates memory for a program that has a device global of its own.
pub(in crate::cl) fn own(context: &Context, device: &Device, global: &Declared) -> Result<Mem> {
    let kind = device.caps().own_memory_kind();
    let mem = match kind {
        MemoryKind::Buffer => Buffer::<u8>::new(context, global.size)?.region().mem,
        kind => Mem::of_allocation(Arc::new(Allocation::new(context, device, kind, global.size)?)),
    };
    initialize(context, device, &mem, global)?;
    Ok(mem)
}

/// Writes the initial value to memory, and waits until it is written.
pub(in crate::cl) fn initialize(context: &Context, device: &Device, mem: &Mem, global: &Declared) -> Result<()> {
    let queue = DriverQueue::with_properties(context, device, QueueProperties::new())?;
    let to = To { queue: &queue, waits: &Waits::NONE, event: true };
    let dst = Location { mem, offset: 0 };
    let event = match global.initial {
        None => enqueue::fill(&to, &dst, &[0], global.size)?,
        // The value lives as long as the process.
        Some(value) => enqueue::write(&to, &dst, &static_bytes(value))?,
    };
    let event = match event.map_or_else(|| enqueue::last_marker(&queue), Ok) {
        Ok(event) => event,
        Err(error) => {
            // Nobody can know when the command ends, so the memory is never freed.
            std::mem::forget(mem.clone());
            return Err(error.into());
        }
    };
    event.wait().map_err(|error| {
        // The command may still be running.
        event_reaper::keep_until(event, mem.clone());
        error.into()
    })
}

fn static_bytes(value: &'static [u8]) -> HostBytes {
    HostData::shared(Arc::new(value)).into_bytes()
}

impl<T: Pod, A: Access, S: Scope> DeviceGlobal<T, A, S> {
    /// Returns its memory on a device, as elements of the innermost type: a `[[i32; 2]; 3]` has six numbers.
    ///
    /// All copies, fills, reads and writes of queues and graphs take this memory, or a [part](GlobalSlice::slice) of
    /// it.
    ///
    /// # Errors
    /// [`GlobalError::NameClash`]; with `device_image_scope` [`GlobalError::NoProgram`]. At the first use on a device
    /// also [`MemoryError::TooLarge`] and [`crate::DriverError`].
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// clgraph::device_global! { static TABLE: [[i32; 2]; 3] = [[1, 2], [3, 4], [5, 6]]; }
    /// let table = TABLE.on(&queue)?;
    /// queue.enqueue_write_buffer(&table.slice(3..5)?, 0, &[40, 50], &[])?;
    /// let mut all = [0; 6];
    /// queue.enqueue_read_buffer(&table, 0, &mut all, &[])?;
    /// assert_eq!(all, [1, 2, 3, 40, 50, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// A use that `host_access` forbids does not compile:
    ///
    /// ```compile_fail,E0277
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// clgraph::device_global! { #[host_access(read)] static RESULT: u32; }
    /// queue.enqueue_write_buffer(&RESULT.on(&queue)?, 0, &[1], &[])?;
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// clgraph::device_global! { #[host_access(write)] static INPUT: u32; }
    /// let graph = clgraph::Graph::new(&queue)?;
    /// graph.read(&INPUT.on(&queue)?).add()?;
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// clgraph::device_global! { #[host_access(none)] static SECRET: u32; static OPEN: u32; }
    /// let graph = clgraph::Graph::new(&queue)?;
    /// graph.copy(&SECRET.on(&queue)?, &OPEN.on(&queue)?).add()?;
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// clgraph::device_global! { #[host_access(none)] static SECRET: u32; }
    /// queue.enqueue_fill_buffer(&SECRET.on(&queue)?, &[1], 0, 4, &[])?;
    /// # Ok(()) }
    /// ```
    pub fn on(&'static self, on: &impl OnDevice) -> Result<GlobalSlice<T::Element, A>>
    where
        T: DeviceGlobalType,
    {
        const {
            let element = size_of::<T::Element>();
            assert!(element > 0 && size_of::<T>().is_multiple_of(element), "a type is a whole number of its elements");
        }
        self.elements(on)
    }

    /// Returns its memory on a device as [`on`](Self::on) does, but as one element of its whole type.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn on_whole(&'static self, on: &impl OnDevice) -> Result<GlobalSlice<T, A>> {
        self.elements(on)
    }

    fn elements<E>(&'static self, on: &impl OnDevice) -> Result<GlobalSlice<E, A>> {
        memory_on(&self.declared(), on)
    }
}

impl DynamicGlobal {
    /// Declares a device global of `size` bytes, which all programs of a context share. Without an initial value it is
    /// zero. The name is for errors and reports; a second declaration of one name clashes with the first where a
    /// context sees both.
    ///
    /// # Errors
    /// [`GlobalError::Empty`] for no bytes;
    /// [`GlobalError::InitialSize`] for an initial value of another size.
    pub fn new(name: &str, size: usize, initial: Option<&[u8]>) -> Result<Self> {
        declared_as(name, size, initial, false)
    }

    /// Declares a device global that belongs to one program, as
    /// [`device_global!`](macro@crate::device_global) does with `#[device_image_scope]`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_program(name: &str, size: usize, initial: Option<&[u8]>) -> Result<Self> {
        declared_as(name, size, initial, true)
    }

    /// Returns its memory on a device, as [`DeviceGlobal::on`] does: as bytes, which
    /// [`cast`](GlobalSlice::cast) makes elements.
    ///
    /// # Errors
    /// As [`DeviceGlobal::on`].
    pub fn on(&self, on: &impl OnDevice) -> Result<GlobalSlice<u8>> {
        memory_on(&declaration(&self), on)
    }
}

fn declared_as(name: &str, size: usize, initial: Option<&[u8]>, is_image_scope: bool) -> Result<DynamicGlobal> {
    if size == 0 {
        return Err(GlobalError::Empty { name: name.to_owned() }.into());
    }
    if let Some(initial) = initial.filter(|initial| initial.len() != size) {
        return Err(GlobalError::InitialSize { name: name.to_owned(), size, given: initial.len() }.into());
    }
    Ok(DynamicGlobal::declare(name, size, initial, is_image_scope))
}

fn memory_on<E, A>(declared: &Declared, on: &impl OnDevice) -> Result<GlobalSlice<E, A>> {
    let (context, device) = (on.context(), on.device());
    let mem = if declared.is_image_scope {
        context.check_device(device)?;
        context.globals().place_of(declared)?.memory_of(declared, device)?
    } else {
        shared(context, device, declared)?
    };
    Ok(GlobalSlice::of(Region { mem, offset: 0, size: declared.size }))
}

slice_type! {
    /// The memory of a [`DeviceGlobal`] on a device, or a part of it, as elements of type `E`.
    ///
    /// `A` is the property `host_access` of the device global: copies can read this memory only if `A` allows reading,
    /// and write it only if `A` allows writing. As a kernel argument it is a pointer, like a
    /// [`MemorySlice`](crate::MemorySlice).
    ///
    /// It keeps the memory alive, and for a device global with `device_image_scope` the memory of its program.
    GlobalSlice<E, A = ReadWrite>
}

impl<E, A> GlobalSlice<E, A> {
    /// Returns the kind of the memory.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        self.region.mem.kind()
    }

    /// Returns a range of its elements. The range may be empty.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let part = self.region.part::<E>(&range)?;
        // Memory with an address starts at the part.
        let from = part.offset - self.region.offset;
        Ok(Self::of(if part.mem.kind().is_pointer() && from < part.mem.size() {
            Region { mem: part.mem.part(from), offset: 0, size: part.size }
        } else {
            part
        }))
    }

    /// Returns the same bytes as elements of another type.
    ///
    /// # Errors
    /// [`MemoryError::ElementSize`] if the size is no multiple of the size of `U`; [`MemoryError::ElementAlign`] if the
    /// start is not aligned for `U`.
    pub fn cast<U: Element>(&self) -> Result<GlobalSlice<U, A>> {
        whole_elements::<U>(self.size())?;
        if !(self.region.mem.base() + self.region.offset).is_multiple_of(align_of::<U>()) {
            return Err(MemoryError::ElementAlign { align: align_of::<U>() }.into());
        }
        Ok(GlobalSlice::of(self.region.clone()))
    }

    /// Returns the same memory as bytes, so that [`slice`](Self::slice) can take any range of bytes.
    #[must_use]
    pub fn bytes(&self) -> GlobalSlice<u8, A> {
        GlobalSlice::of(self.region.clone())
    }
}

impl<E, A> AsRegion<E> for GlobalSlice<E, A> {
    fn region(&self) -> Region {
        self.region.clone()
    }
}

impl<E, A: Readable> AsSource<E> for GlobalSlice<E, A> {}
impl<E, A: Writable> AsDestination<E> for GlobalSlice<E, A> {}
