//! Kernel objects: `cl_kernel`s, which contain their arguments.

use std::convert::Infallible;
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use opencl_sys::{CL_KERNEL_EXEC_INFO_SVM_PTRS, cl_kernel};

use crate::caps::MemoryKind;
use crate::cl::check;
use crate::cl::commands::command::ByRef;
use crate::cl::memory::allocation::Api;
use crate::cl::memory::untyped::{Address, WeakMem};
use crate::cl::objects::handle::{Handle, KernelKind};
use crate::command::{Arg, ArgRefs};
use crate::error::{DriverError, DriverFault};
use crate::ffi::core::Core;
use crate::ffi::usm::USM_ACCESS;

/// Why a kernel object could not be made.
#[derive(Debug)]
pub(crate) enum KernelObjectError {
    Create(crate::Error),
    Argument { index: usize, source: DriverError },
}

/// A `cl_kernel` with its arguments.
#[derive(Debug)]
pub(crate) struct KernelObject {
    handle: Handle<KernelKind>,
    made: u64,
    /// Whether it runs only if a number in memory is not zero.
    is_guarded: bool,
}

/// How many kernel objects were made so far.
static MADE: AtomicU64 = AtomicU64::new(0);

impl KernelObject {
    /// Makes a kernel object from a `cl_kernel` that nothing else uses.
    pub(in crate::cl) fn of(handle: Handle<KernelKind>) -> Self {
        Self { handle, made: MADE.fetch_add(1, Relaxed), is_guarded: false }
    }

    /// It is one of a guarded kernel, and has its last argument.
    pub(in crate::cl) fn guarded(self) -> Self {
        Self { is_guarded: true, ..self }
    }

    pub(crate) fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// Returns a number that is greater than that of any object made before.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    pub(in crate::cl) fn handle(&self) -> &Handle<KernelKind> {
        &self.handle
    }

    /// Sets all arguments. An error includes the index of the argument that failed.
    pub(crate) fn set_all<'a>(
        &mut self,
        args: impl Iterator<Item = Arg<ByRef<'a>>>,
    ) -> Result<(), (usize, DriverError)> {
        let (mut svm, mut usm) = (Vec::new(), [false; 3]);
        let mut first = 0;
        for (index, arg) in args.enumerate() {
            match arg {
                Arg::Indirect(mem) => match mem.kind() {
                    MemoryKind::UsmHost => usm[0] = true,
                    MemoryKind::UsmDevice => usm[1] = true,
                    MemoryKind::UsmShared => usm[2] = true,
                    // The memory is not a buffer: the checks of a launch exclude that.
                    _ => svm.extend(mem.allocation().map(|allocation| allocation.at(0))),
                },
                Arg::Global(_) | Arg::Unused(()) => {}
                arg => {
                    self.set(index, arg).map_err(|source| (index, source))?;
                    first = index + 1;
                }
            }
        }
        if !svm.is_empty() {
            self.set_exec_info(CL_KERNEL_EXEC_INFO_SVM_PTRS, &svm).map_err(|source| (first, source))?;
        }
        // Access is allowed for each kind of USM, not for each pointer: on Intel's CPU runtime a kernel with a list of
        // USM pointers cannot be enqueued (-59).
        for (name, _) in USM_ACCESS.into_iter().zip(usm).filter(|(_, reached)| *reached) {
            self.set_exec_info(name, &[1_u32]).map_err(|source| (first, source))?;
        }
        Ok(())
    }

    fn set_exec_info<T>(&mut self, name: u32, value: &[T]) -> Result<(), DriverError> {
        let call = "clSetKernelExecInfo";
        let lacks = DriverError::faulty(call, DriverFault::Missing);
        let set = Core::get().ok().and_then(|core| core.clSetKernelExecInfo).ok_or(lacks)?;
        // SAFETY: **live**, **lists**, and **threads**: the object is borrowed exclusively. The value has the given
        // size.
        check(call, unsafe { set(self.handle.raw(), name, size_of_val(value), value.as_ptr().cast()) })
    }

    /// Sets an argument. Launches that are already enqueued keep their old arguments.
    pub(crate) fn set(&mut self, index: usize, arg: Arg<ByRef<'_>>) -> Result<(), DriverError> {
        let call = "clSetKernelArg";
        let core = Core::get().map_err(|_| DriverError::faulty(call, DriverFault::Missing))?;
        let null: *mut c_void = std::ptr::null_mut();
        let raw;
        let (size, value) = match arg {
            Arg::Memory(mem) => match mem.address(0) {
                Address::Buffer(handle, _) => {
                    raw = handle;
                    (size_of_val(&raw), (&raw const raw).cast::<c_void>())
                }
                Address::Pointer(pointer, allocation) => {
                    return self.set_pointer(core, index, pointer, allocation.api());
                }
            },
            // These can only be set together with all others, because they form one list.
            Arg::Indirect(_) | Arg::Global(_) | Arg::Unused(()) => {
                return Err(DriverError::faulty(call, DriverFault::Defect));
            }
            Arg::Null(()) => (size_of_val(&null), (&raw const null).cast()),
            Arg::Sampler(sampler) => {
                raw = sampler.raw();
                (size_of_val(&raw), (&raw const raw).cast())
            }
            Arg::Local(size) => (size, std::ptr::null()),
            Arg::Value(bytes) => (bytes.len(), bytes.as_ptr().cast()),
        };
        // SAFETY: **live**, and **threads**: the object is borrowed exclusively. The value has the given size, or the
        // size is that of local memory.
        check(call, unsafe { (core.clSetKernelArg)(self.handle.raw(), index as u32, size, value) })
    }

    fn set_pointer(&mut self, core: &Core, index: usize, pointer: *mut c_void, api: Api) -> Result<(), DriverError> {
        match api {
            Api::Svm => {
                let call = "clSetKernelArgSVMPointer";
                let set = core.clSetKernelArgSVMPointer;
                let set = set.ok_or(DriverError::faulty(call, DriverFault::Missing))?;
                // SAFETY: **live**, and **threads**: the object is borrowed exclusively.
                check(call, unsafe { set(self.handle.raw(), index as u32, pointer) })
            }
            Api::Usm(fns) => {
                // SAFETY: as above.
                let status = unsafe { (fns.set_arg)(self.handle.raw(), index as u32, pointer) };
                check("clSetKernelArgMemPointerINTEL", status)
            }
        }
    }

    pub(in crate::cl) fn raw(&self) -> cl_kernel {
        self.handle.raw()
    }
}

/// A kernel object that is launched with changing arguments.
pub(in crate::cl) struct Launcher {
    object: KernelObject,
    /// The current arguments, so that only changed ones are set again.
    args: Vec<Option<Arg<Last>>>,
}

impl Launcher {
    pub(in crate::cl) fn new(object: KernelObject, num_args: usize) -> Self {
        Self { object, args: vec![None; num_args] }
    }

    pub(in crate::cl) fn object(&self) -> &KernelObject {
        &self.object
    }

    /// Sets these arguments.
    #[inline(always)]
    pub(in crate::cl) fn set<'a>(
        &mut self,
        args: impl Iterator<Item = Arg<ByRef<'a>>>,
    ) -> Result<(), KernelObjectError> {
        for (index, (arg, last)) in args.zip(&mut self.args).enumerate() {
            if last.as_ref().is_some_and(|last| last.is(&arg)) {
                continue;
            }
            *last = None;
            self.object.set(index, arg).map_err(|source| KernelObjectError::Argument { index, source })?;
            *last = Arg::last(&arg);
        }
        Ok(())
    }
}

/// How the last arguments of a kernel object are kept, for comparing.
#[derive(Clone, Copy, Debug)]
enum Last {}

impl ArgRefs for Last {
    /// A weak reference: it does not keep the buffer alive, but no other buffer can get the same handle while it
    /// exists.
    type Mem = WeakMem;
    type NoMem = ();
    type Value = Vec<u8>;
    /// Samplers are not kept, because a later sampler may have the same handle.
    type Sampler = Infallible;
}

impl Arg<Last> {
    #[inline(always)]
    fn is(&self, arg: &Arg<ByRef<'_>>) -> bool {
        match (self, arg) {
            (Self::Memory(last), Arg::Memory(mem)) => last.is(mem),
            (Self::Null(()), Arg::Null(())) => true,
            (Self::Local(last), Arg::Local(size)) => last == size,
            (Self::Value(last), Arg::Value(bytes)) => last == bytes,
            _ => false,
        }
    }

    fn last(arg: &Arg<ByRef<'_>>) -> Option<Self> {
        match arg {
            Arg::Memory(mem) => Some(Self::Memory(mem.downgrade())),
            Arg::Null(()) => Some(Self::Null(())),
            Arg::Local(size) => Some(Self::Local(*size)),
            Arg::Value(bytes) => Some(Self::Value(bytes.to_vec())),
            // Launches with memory that they reach indirectly have their own kernel objects.
            Arg::Indirect(_) | Arg::Global(_) | Arg::Unused(()) | Arg::Sampler(_) => None,
        }
    }
}
