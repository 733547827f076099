//! Kernels, and what devices report about them.

use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use opencl_sys::{
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_CONTEXT, CL_KERNEL_FUNCTION_NAME, CL_KERNEL_LOCAL_MEM_SIZE,
    CL_KERNEL_NUM_ARGS, CL_KERNEL_PROGRAM, CL_KERNEL_WORK_GROUP_SIZE, cl_kernel,
};

use crate::caps::Version;
use crate::cl::check;
use crate::cl::commands::command::ByRef;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::InContext;
use crate::cl::objects::device::Device;
use crate::cl::objects::handle::{Handle, KernelKind};
use crate::cl::objects::kernel_object::{KernelObject, KernelObjectError, Launcher};
use crate::cl::objects::kernel_params::{Param, read_params};
use crate::cl::objects::program::{Program, c_string, list_or_none};
use crate::cl::query::info::{self, ask};
use crate::command::Arg;
use crate::device_global::Declared;
use crate::error::{DriverError, ProgramError, Result, SetupError};
use crate::ffi::core::Core;
use crate::quirks;

/// A kernel function of a program. Clones are cheap.
///
/// It has no arguments: they belong to the nodes that use the kernel.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Program, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let program = Program::from_source(&queue, "kernel void f(global const int *a, float b) {}")?;
/// let kernel = program.kernel("f")?;
/// assert_eq!((kernel.name(), kernel.num_args()), ("f", 2));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

struct Inner {
    /// Arguments are never set on this object. The lock is for `clCloneKernel`, which is not thread-safe for its
    /// source.
    prototype: Mutex<Handle<KernelKind>>,
    program: Program,
    name: CString,
    shared_name: Arc<str>,
    /// The number of arguments that users see.
    num_args: u32,
    /// The program's device globals whose hidden arguments come after the visible ones.
    hidden: Vec<usize>,
    params: Option<Vec<Param>>,
    by_device: Vec<ForDevice>,
}

/// The data of a kernel for one device that its program was built for.
struct ForDevice {
    device: Device,
    facts: DeviceFacts,
    /// For launches outside of graphs. It is made when it is first needed.
    launcher: Mutex<Option<Launcher>>,
}

/// What a device reports about a kernel that was built for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceFacts {
    /// Largest number of work-items in a work-group.
    pub(crate) max_work_group: usize,
    /// `reqd_work_group_size`, if the kernel has that attribute.
    pub(crate) required_work_group: Option<[usize; 3]>,
    /// Bytes of local memory that the kernel itself declares.
    pub(crate) local_memory: u64,
    /// Whether all work-groups must have the full size.
    pub(crate) uniform: bool,
}

impl Kernel {
    pub(in crate::cl) fn of_program(program: &Program, name: &str) -> Result<Self> {
        let core = Core::get()?;
        let name = c_string("the kernel's name", name)?;
        let mut status = 0;
        // SAFETY: **live**; `name` ends with zero.
        let raw = unsafe { (core.clCreateKernel)(program.raw(), name.as_ptr(), &raw mut status) };
        if status == opencl_sys::CL_INVALID_KERNEL_NAME {
            let has = match program.kernel_names() {
                Ok(names) => list_or_none(&names, "kernels"),
                Err(error) => format!("the driver does not report their names: {error}"),
            };
            return Err(ProgramError::NoSuchKernel { name: name.to_string_lossy().into_owned(), has }.into());
        }
        check("clCreateKernel", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle: Handle<KernelKind> = unsafe { Handle::from_owned("clCreateKernel", raw) }?;
        let raw = handle.raw();
        let num_args = info::value::<u32>("clGetKernelInfo", ask!(core, clGetKernelInfo, raw, CL_KERNEL_NUM_ARGS))?;
        let params = read_params(core, &handle, num_args);
        let names = params.as_ref().map(|params| params.iter().map(|param| param.name.as_str()));
        let names = names.map_err(|error| *error);
        let (num_args, hidden) = program.bound_globals().hidden(&name.to_string_lossy(), names, num_args)?;
        let mut params = params.ok();
        params.iter_mut().for_each(|params| params.truncate(num_args as usize));
        let mut by_device = Vec::new();
        for device in program.context().devices() {
            if program.is_built_for(device)? {
                let facts = read_facts(core, &handle, program, device)?;
                by_device.push(ForDevice { device: device.clone(), facts, launcher: Mutex::new(None) });
            }
        }
        let (prototype, shared_name) = (Mutex::new(handle), name.to_string_lossy().into());
        let program = program.clone();
        Ok(Self(Arc::new(Inner { prototype, program, name, shared_name, num_args, hidden, params, by_device })))
    }

    /// Wraps the function of an `opencl3` kernel of a context. The arguments that were set on that kernel object are
    /// not used.
    ///
    /// # Errors
    /// [`ProgramError::OtherContext`], [`crate::DriverError`].
    pub fn from_opencl3(context: &impl InContext, kernel: &opencl3::kernel::Kernel) -> Result<Self> {
        // SAFETY: an `opencl3` kernel owns a reference.
        unsafe { Self::from_raw(context, kernel.get()) }
    }

    /// Wraps the function of a raw kernel of a context. The arguments that were set on that kernel object are not used.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`], [`ProgramError::OtherContext`], [`crate::DriverError`].
    ///
    /// # Safety
    /// `raw` is null or a live kernel, and nothing builds its program again while clgraph uses it.
    pub unsafe fn from_raw(context: &impl InContext, raw: cl_kernel) -> Result<Self> {
        if raw.is_null() {
            return Err(SetupError::NullHandle { what: "cl_kernel" }.into());
        }
        let core = Core::get()?;
        let call = "clGetKernelInfo";
        let of = info::value::<usize>(call, ask!(core, clGetKernelInfo, raw, CL_KERNEL_CONTEXT))?;
        if of != context.context().raw().addr() {
            return Err(ProgramError::OtherContext.into());
        }
        let program = info::value::<usize>(call, ask!(core, clGetKernelInfo, raw, CL_KERNEL_PROGRAM))?;
        let name = info::text(call, ask!(core, clGetKernelInfo, raw, CL_KERNEL_FUNCTION_NAME))?;
        // SAFETY: a live kernel keeps its program alive; the caller promises the rest.
        let program = unsafe { Program::from_raw(context, std::ptr::with_exposed_provenance_mut(program)) }?;
        Self::of_program(&program, &name)
    }

    /// Makes a new `opencl3` kernel object of the same function, without arguments.
    ///
    /// Hidden arguments for [device globals](crate::ProgramBuilder::global) are set, with the memory of the first
    /// device that the program was built for. Launch such an object with `clEnqueueNDRangeKernel`, because
    /// `opencl3::kernel::ExecuteKernel` requires all arguments to be set through it. The object may be launched while
    /// the [`Program`] lives, which keeps the memory of its device globals alive.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver cannot make the object.
    pub fn to_opencl3(&self) -> Result<opencl3::kernel::Kernel> {
        let mut object = KernelObject::of(self.create()?);
        if let Some(of) = self.0.by_device.first() {
            self.bind_globals(&mut object, &of.device)?;
        }
        Ok(opencl3::kernel::Kernel::new(object.handle().retained_raw()?))
    }

    /// Gives a new kernel object access to the device globals of its program: it sets the hidden arguments, and tells
    /// the driver which memory the program's pointers lead to.
    fn bind_globals(&self, object: &mut KernelObject, device: &Device) -> Result<(), DriverError> {
        let globals = self.0.program.bound_globals();
        for (index, global) in (self.0.num_args as usize..).zip(&self.0.hidden) {
            if let Some(mem) = globals.list()[*global].mem(device) {
                object.set(index, Arg::Memory(mem))?;
            }
        }
        object.set_all(globals.reached(device)).map_err(|(_, source)| source)
    }

    /// Returns the name of the function.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.shared_name
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.0.shared_name)
    }

    /// Returns the number of arguments, without hidden ones.
    #[must_use]
    pub fn num_args(&self) -> u32 {
        self.0.num_args
    }

    /// Returns the program of the kernel.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// Returns whether the program reports the kinds of its parameters (`clGetKernelArgInfo`), so that clgraph can
    /// check arguments before a driver gets them.
    ///
    /// Programs that clgraph builds from source report them, unless the compiler rejects `-cl-kernel-arg-info`. Most
    /// binaries and SPIR-V programs do not. [`Report::unchecked_kernels`](crate::Report::unchecked_kernels) lists the
    /// kernels without them.
    #[must_use]
    #[doc(alias = "clGetKernelArgInfo")]
    pub fn has_arg_info(&self) -> bool {
        self.0.params.is_some()
    }

    pub(crate) fn params(&self) -> Option<&[Param]> {
        self.0.params.as_deref()
    }

    /// Returns what is known for a device, or `None` if the program was not built for it.
    #[inline]
    pub(crate) fn facts(&self, device: &Device) -> Option<&DeviceFacts> {
        self.facts_at(self.place_of(device))
    }

    /// Returns the index of a device among the devices that the program was built for.
    #[inline]
    pub(crate) fn place_of(&self, device: &Device) -> Option<usize> {
        self.0.by_device.iter().position(|of| of.device == *device)
    }

    /// Returns what is known for the device at this index.
    #[inline]
    pub(crate) fn facts_at(&self, place: Option<usize>) -> Option<&DeviceFacts> {
        self.0.by_device.get(place?).map(|of| &of.facts)
    }

    /// Returns whether the program of the kernel has any device globals.
    #[inline]
    pub(crate) fn has_globals(&self) -> bool {
        !self.0.program.bound_globals().list().is_empty()
    }

    /// Returns the program's device globals and their memory on the device at this index.
    pub(crate) fn globals_at(&self, place: Option<usize>) -> impl Iterator<Item = (&Declared, &Mem)> {
        let device = place.and_then(|place| self.0.by_device.get(place)).map(|of| &of.device);
        let globals = self.0.program.bound_globals().list().iter();
        globals.filter_map(move |global| Some((&global.declared, global.mem(device?)?)))
    }

    fn create(&self) -> Result<Handle<KernelKind>> {
        let core = Core::get()?;
        let mut status = 0;
        // SAFETY: **live**; the name ends with zero.
        let raw = unsafe { (core.clCreateKernel)(self.0.program.raw(), self.0.name.as_ptr(), &raw mut status) };
        check("clCreateKernel", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        Ok(unsafe { Handle::from_owned("clCreateKernel", raw) }?)
    }

    /// Makes a new kernel object without arguments.
    fn object(&self) -> Result<KernelObject> {
        let core = Core::get()?;
        let clone = core
            .clCloneKernel
            .filter(|_| self.0.by_device.iter().all(|of| of.device.caps().version >= Version::new(2, 1)));
        let Some(clone) = clone else { return Ok(KernelObject::of(self.create()?)) };
        let prototype = self.0.prototype.lock().unwrap_or_else(PoisonError::into_inner);
        let mut status = 0;
        // SAFETY: **live**, and **threads**: the lock is held.
        let raw = unsafe { clone(prototype.raw(), &raw mut status) };
        check("clCloneKernel", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        Ok(KernelObject::of(unsafe { Handle::from_owned("clCloneKernel", raw) }?))
    }

    /// Makes a kernel object for a device and sets its arguments. Nothing changes them afterwards.
    pub(crate) fn with_args<'a>(
        &'a self,
        device: &'a Device,
        args: impl Iterator<Item = Arg<ByRef<'a>>>,
    ) -> Result<KernelObject, KernelObjectError> {
        let mut object = self.object().map_err(KernelObjectError::Create)?;
        let globals = self.0.program.bound_globals();
        if globals.list().is_empty() {
            object.set_all(args).map_err(|(index, source)| KernelObjectError::Argument { index, source })?;
        } else {
            self.bind_globals(&mut object, device).map_err(|error| KernelObjectError::Create(error.into()))?;
            // This list replaces the list that was set before, so it must contain everything that the kernel reaches.
            let args = args.chain(globals.reached(device));
            object.set_all(args).map_err(|(index, source)| KernelObjectError::Argument { index, source })?;
        }
        Ok(object)
    }

    /// Calls `launch` with a kernel object for the device at an [index](Self::place_of), with these arguments set.
    /// Nothing else uses the object meanwhile, because an enqueue takes the arguments that the object has at that
    /// moment.
    #[inline(always)]
    pub(crate) fn launch<'a, R>(
        &self,
        place: usize,
        args: impl Iterator<Item = Arg<ByRef<'a>>>,
        launch: impl FnOnce(&KernelObject) -> R,
    ) -> Result<R, KernelObjectError> {
        let none = || KernelObjectError::Create(ProgramError::NotBuilt.into());
        let of = self.0.by_device.get(place).ok_or_else(none)?;
        let mut launcher = of.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        let launcher = match &mut *launcher {
            Some(launcher) => launcher,
            none => {
                let mut object = self.object().map_err(KernelObjectError::Create)?;
                self.bind_globals(&mut object, &of.device).map_err(|error| KernelObjectError::Create(error.into()))?;
                none.insert(Launcher::new(object, self.0.num_args as usize))
            }
        };
        launcher.set(args)?;
        Ok(launch(launcher.object()))
    }
}

impl PartialEq for Kernel {
    /// Returns whether both are the same function of the same program.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.program == other.0.program && self.0.name == other.0.name)
    }
}

impl Eq for Kernel {}

impl std::hash::Hash for Kernel {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.0.program, &self.0.name).hash(state);
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({:?}, {} arguments)", self.name(), self.num_args())
    }
}

fn read_facts(
    core: &'static Core,
    kernel: &Handle<KernelKind>,
    program: &Program,
    device: &Device,
) -> Result<DeviceFacts, DriverError> {
    const CALL: &str = "clGetKernelWorkGroupInfo";
    let (raw, id) = (kernel.raw(), device.raw());
    let said = info::value::<usize>(CALL, ask!(core, clGetKernelWorkGroupInfo, raw, id, CL_KERNEL_WORK_GROUP_SIZE))?;
    let required = info::value::<[usize; 3]>(
        CALL,
        ask!(core, clGetKernelWorkGroupInfo, raw, id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE),
    )?;
    let required_work_group = (required != [0; 3]).then_some(required);
    let max_work_group = match required_work_group {
        _ if !quirks::understates_work_groups(device.caps()) => said,
        Some(required) => said.max(required.iter().product()),
        None => device.caps().max_work_group_size,
    };
    Ok(DeviceFacts {
        max_work_group,
        required_work_group,
        local_memory: info::value::<u64>(
            CALL,
            ask!(core, clGetKernelWorkGroupInfo, raw, id, CL_KERNEL_LOCAL_MEM_SIZE),
        )?,
        uniform: !device.caps().non_uniform_work_groups || program.needs_uniform_work_groups(device),
    })
}
