//! Programs, made from all forms that OpenCL knows.

use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use opencl_sys::{
    CL_BUILD_SUCCESS, CL_PROGRAM_BINARIES, CL_PROGRAM_BINARY_SIZES, CL_PROGRAM_BUILD_OPTIONS, CL_PROGRAM_BUILD_STATUS,
    CL_PROGRAM_CONTEXT, CL_PROGRAM_DEVICES, CL_PROGRAM_KERNEL_NAMES, CL_PROGRAM_NUM_KERNELS, CL_PROGRAM_SOURCE, cl_int,
    cl_program,
};

use crate::cl::check;
use crate::cl::memory::program_globals::{GlobalBinding, ProgramGlobals};
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::objects::fused::FusedPrograms;
use crate::cl::objects::guarded::{GuardedProgram, NotGuarded};
use crate::cl::objects::handle::{Handle, ProgramKind};
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::program_builder::ProgramBuilder;
use crate::cl::objects::program_source::{NotRewritten, ProgramSource};
use crate::cl::query::info::{self, ask};
use crate::device_global::text;
use crate::error::{GlobalError, ProgramError, Result, SetupError, Status};
use crate::ffi::core::Core;

/// A built program. Clones are cheap and refer to the same program.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Program, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let program = Program::from_source(&queue, "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }")?;
/// assert_eq!(program.kernel_names()?, ["twice"]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    handle: Handle<ProgramKind>,
    context: Context,
    /// The program consists of built-in kernels. It needs no build, and drivers report different build states for it.
    built_in: bool,
    globals: Arc<ProgramGlobals>,
    /// While this lives, the device globals that belong to one program belong to this one.
    place: Arc<()>,
    /// What the driver has as source, read when it is first needed.
    source: OnceLock<Result<Arc<ProgramSource>, NotRewritten>>,
    fused: Mutex<FusedPrograms>,
    /// The same program with guarded kernels, made when it is first needed.
    guarded: OnceLock<Result<GuardedProgram, NotGuarded>>,
}

/// A weak reference to a program.
pub(in crate::cl) struct WeakProgram(Weak<Inner>);

impl WeakProgram {
    pub(in crate::cl) fn upgrade(&self) -> Option<Program> {
        self.0.upgrade().map(Program)
    }

    pub(in crate::cl) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Program {
    /// Wraps a program that was built for every device of its context.
    pub(in crate::cl) fn of_handle(context: &Context, handle: Handle<ProgramKind>) -> Self {
        Self::wrap(handle, context)
    }

    /// Returns the same program with the device globals that were bound to it.
    pub(in crate::cl) fn with_globals(self, globals: ProgramGlobals) -> Result<Self> {
        let (handle, context) = (self.0.handle.try_clone()?, &self.0.context);
        Ok(Self::new(handle, context, self.0.built_in, globals))
    }

    fn new(handle: Handle<ProgramKind>, context: &Context, built_in: bool, globals: ProgramGlobals) -> Self {
        let (globals, place) = (Arc::new(globals), Arc::new(()));
        let (source, fused, guarded) = (OnceLock::new(), Mutex::default(), OnceLock::new());
        let context = context.clone();
        Self(Arc::new(Inner { handle, context, built_in, globals, place, source, fused, guarded }))
    }

    pub(in crate::cl) fn place(&self) -> Weak<()> {
        Arc::downgrade(&self.0.place)
    }

    pub(in crate::cl) fn downgrade(&self) -> WeakProgram {
        WeakProgram(Arc::downgrade(&self.0))
    }

    pub(crate) fn bound_globals(&self) -> &Arc<ProgramGlobals> {
        &self.0.globals
    }

    /// Returns the device globals that the program uses, in the order of
    /// [`ProgramBuilder::global`](crate::ProgramBuilder::global), and how its kernels access them.
    #[must_use]
    pub fn globals(&self) -> Vec<GlobalBinding> {
        self.0.globals.bindings(None)
    }

    /// Returns a number that no other program has as long as this one lives.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns the source that the driver has, if clgraph can write it anew.
    pub(in crate::cl) fn source(&self) -> Result<&Arc<ProgramSource>, &NotRewritten> {
        self.0.source.get_or_init(|| ProgramSource::read(self).map(Arc::new)).as_ref()
    }

    pub(in crate::cl) fn fused_programs(&self) -> MutexGuard<'_, FusedPrograms> {
        self.0.fused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the same program with guarded kernels.
    pub(in crate::cl) fn guarded(&self) -> Result<&GuardedProgram, NotGuarded> {
        let guarded = match self.0.guarded.get() {
            Some(guarded) => guarded,
            None => match GuardedProgram::build(self) {
                // A driver that refuses something now may do it later.
                Err(NotGuarded::Driver) => return Err(NotGuarded::Driver),
                built => self.0.guarded.get_or_init(|| built),
            },
        };
        guarded.as_ref().map_err(Clone::clone)
    }

    pub(in crate::cl) fn handle(&self) -> &Handle<ProgramKind> {
        &self.0.handle
    }

    /// Builds OpenCL C source for every device of a context. [`ProgramBuilder`] has more options.
    ///
    /// # Errors
    /// [`ProgramError::BuildFailed`] with the build log, and the others of [`ProgramBuilder::source`].
    #[doc(alias = "clCreateProgramWithSource")]
    #[doc(alias = "clBuildProgram")]
    pub fn from_source(context: &impl InContext, source: &str) -> Result<Self> {
        ProgramBuilder::new(context).source(source)
    }

    /// Builds a program from an intermediate language, such as SPIR-V.
    ///
    /// # Errors
    /// As [`ProgramBuilder::il`].
    ///
    /// # Safety
    /// As [`ProgramBuilder::il`]: `il` is a valid module.
    #[doc(alias = "clCreateProgramWithIL")]
    pub unsafe fn from_il(context: &impl InContext, il: &[u8]) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { ProgramBuilder::new(context).il(il) }
    }

    /// Builds a program from a binary of [`Self::binary`], for the first device of a context. The driver must be the
    /// same.
    ///
    /// # Errors
    /// As [`ProgramBuilder::binary`].
    ///
    /// # Safety
    /// As [`ProgramBuilder::binary`]: `binary` is a complete and unchanged result of [`Self::binary`].
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let program = Program::from_source(&queue, "kernel void one(global int *a) { a[0] = 1; }")?;
    /// let binary = program.binary(queue.device())?;
    /// // SAFETY: the driver has just returned it.
    /// let again = unsafe { Program::from_binary(&queue, &binary) }?;
    /// assert_eq!(again.kernel_names()?, ["one"]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clCreateProgramWithBinary")]
    pub unsafe fn from_binary(context: &impl InContext, binary: &[u8]) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { ProgramBuilder::new(context).binary(binary) }
    }

    /// Makes a program from kernels that are built into the devices of a context.
    ///
    /// # Errors
    /// [`ProgramError::FormNotSupported`] for a name that a device does not have; [`ProgramError::BuiltInUnusable`] if
    /// the driver lists a kernel that it cannot make; [`ProgramError::Empty`]; [`crate::DriverError`].
    #[doc(alias = "clCreateProgramWithBuiltInKernels")]
    pub fn from_builtin_kernels(context: &impl InContext, names: &[&str]) -> Result<Self> {
        let context = context.context();
        if names.is_empty() {
            return Err(ProgramError::Empty { what: "the list of built-in kernels" }.into());
        }
        for device in context.devices() {
            let has = &device.caps().builtin_kernels;
            if let Some(name) = names.iter().find(|name| !has.iter().any(|own| own == *name)) {
                let why = format!("use a built-in kernel that it has ({})", list_or_none(has, "built-in kernels"));
                return Err(form_not_supported(device, &format!("built-in kernel `{name}`"), why).into());
            }
        }
        let list = c_string("the list of built-in kernels", &names.join(";"))?;
        let core = Core::get()?;
        let ids: Vec<_> = context.devices().iter().map(Device::raw).collect();
        let mut status = 0;
        // SAFETY: **live**; **lists**, not empty; `list` ends with zero.
        let raw = unsafe {
            (core.clCreateProgramWithBuiltInKernels)(
                context.raw(),
                ids.len() as u32,
                ids.as_ptr(),
                list.as_ptr(),
                &raw mut status,
            )
        };
        check("clCreateProgramWithBuiltInKernels", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle = unsafe { Handle::from_owned("clCreateProgramWithBuiltInKernels", raw) }?;
        let program = Self::new(handle, context, true, ProgramGlobals::default());
        // Built-in kernels need no build, but PoCL has no kernels in the program before this call.
        // SAFETY: **live**; as in `ProgramBuilder::build`.
        let status = unsafe {
            (core.clBuildProgram)(program.raw(), 0, std::ptr::null(), c"".as_ptr(), None, std::ptr::null_mut())
        };
        if program.kernel_names().is_ok_and(|has| !has.is_empty()) {
            Ok(program)
        } else {
            let device = context.devices().first().map_or("", Device::name).to_owned();
            Err(ProgramError::BuiltInUnusable { device, names: names.join(", "), status: Status(status) }.into())
        }
    }

    /// Wraps an `opencl3` program of a context. The program must be built. The `opencl3` program may be dropped first.
    ///
    /// # Errors
    /// [`ProgramError::NotBuilt`], [`ProgramError::OtherContext`], [`crate::DriverError`].
    pub fn from_opencl3(context: &impl InContext, program: &opencl3::program::Program) -> Result<Self> {
        // SAFETY: an `opencl3` program owns a reference.
        unsafe { Self::from_raw(context, program.get()) }
    }

    /// Wraps and retains a raw program of a context. The program must be built.
    ///
    /// If a `Program` with [device globals](crate::DeviceGlobal) exists for this handle, the result is that `Program`.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`], [`ProgramError::NotBuilt`], [`ProgramError::OtherContext`], [`crate::DriverError`];
    /// [`GlobalError::ProgramGone`] for a program with device globals whose own `Program` was dropped.
    ///
    /// # Safety
    /// `raw` is null or a live program, and nothing builds it again while clgraph uses it.
    pub unsafe fn from_raw(context: &impl InContext, raw: cl_program) -> Result<Self> {
        if raw.is_null() {
            return Err(SetupError::NullHandle { what: "cl_program" }.into());
        }
        let context = context.context();
        let core = Core::get()?;
        let of = info::value::<usize>("clGetProgramInfo", ask!(core, clGetProgramInfo, raw, CL_PROGRAM_CONTEXT))?;
        if of != context.raw().addr() {
            return Err(ProgramError::OtherContext.into());
        }
        if let Some(program) = context.globals().program_of(raw) {
            return Ok(program);
        }
        // SAFETY: the caller's promise.
        let program = Self::wrap(unsafe { Handle::from_borrowed(raw) }?, context);
        for device in context.devices() {
            if program.is_built_for(device)? {
                if program.all_kernel_names()?.iter().any(|name| text::is_own(name)) {
                    return Err(GlobalError::ProgramGone.into());
                }
                return Ok(program);
            }
        }
        Err(ProgramError::NotBuilt.into())
    }

    pub(in crate::cl) fn wrap(handle: Handle<ProgramKind>, context: &Context) -> Self {
        Self::new(handle, context, false, ProgramGlobals::default())
    }

    /// Returns the C handle, which is valid while this object lives. Other code may launch its kernels during that time
    /// too, because this object keeps the memory of its [device globals](crate::DeviceGlobal) alive.
    #[must_use]
    pub fn raw(&self) -> cl_program {
        self.0.handle.raw()
    }

    /// Returns the kernel with this name.
    ///
    /// # Errors
    /// [`ProgramError::NoSuchKernel`], [`ProgramError::ZeroByte`], [`crate::DriverError`].
    #[doc(alias = "clCreateKernel")]
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        Kernel::of_program(self, name)
    }

    /// Returns the names of all kernels, without those that clgraph adds.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses the query.
    pub fn kernel_names(&self) -> Result<Vec<String>> {
        let mut names = self.all_kernel_names()?;
        names.retain(|name| !text::is_own(name));
        Ok(names)
    }

    /// Returns the names of all kernels, including those that clgraph adds.
    pub(in crate::cl) fn all_kernel_names(&self) -> Result<Vec<String>> {
        let core = Core::get()?;
        let count = ask!(core, clGetProgramInfo, self.raw(), CL_PROGRAM_NUM_KERNELS);
        if info::value::<usize>("clGetProgramInfo", count)? == 0 {
            // For a program without kernels, the query for names crashes on NVIDIA (580), and Intel's CPU runtime
            // refuses it.
            return Ok(Vec::new());
        }
        let names = info::text("clGetProgramInfo", ask!(core, clGetProgramInfo, self.raw(), CL_PROGRAM_KERNEL_NAMES))?;
        Ok(names.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Returns the binary for a device. The program can keep it and give it to [`Self::from_binary`] later.
    ///
    /// # Errors
    /// [`SetupError::DeviceOutsideContext`]; [`ProgramError::NoBinary`] if there is no binary for the device;
    /// [`crate::DriverError`].
    #[doc(alias = "CL_PROGRAM_BINARIES")]
    pub fn binary(&self, device: &Device) -> Result<Vec<u8>> {
        self.0.context.check_device(device)?;
        let core = Core::get()?;
        let call = "clGetProgramInfo";
        let devices = info::values::<usize>(call, ask!(core, clGetProgramInfo, self.raw(), CL_PROGRAM_DEVICES))?;
        let sizes = info::values::<usize>(call, ask!(core, clGetProgramInfo, self.raw(), CL_PROGRAM_BINARY_SIZES))?;
        let mut binaries: Vec<Vec<u8>> = sizes.iter().map(|&size| vec![0; size]).collect();
        let mut places: Vec<*mut u8> = binaries.iter_mut().map(|binary| binary.as_mut_ptr()).collect();
        // SAFETY: **live**; the driver writes each binary to its own memory, which has the size that the driver
        // reported.
        let status = unsafe {
            (core.clGetProgramInfo)(
                self.raw(),
                CL_PROGRAM_BINARIES,
                size_of_val(&places[..]),
                places.as_mut_ptr().cast(),
                std::ptr::null_mut(),
            )
        };
        check(call, status)?;
        devices
            .iter()
            .zip(binaries)
            .find(|(id, binary)| **id == device.raw().addr() && !binary.is_empty())
            .map(|(_, binary)| binary)
            .ok_or_else(|| ProgramError::NoBinary { device: device.name().to_owned() }.into())
    }

    /// Returns whether the program was built for a device.
    pub(crate) fn is_built_for(&self, device: &Device) -> Result<bool> {
        let core = Core::get()?;
        if self.0.built_in {
            return Ok(true);
        }
        let query = ask!(core, clGetProgramBuildInfo, self.raw(), device.raw(), CL_PROGRAM_BUILD_STATUS);
        Ok(info::value::<cl_int>("clGetProgramBuildInfo", query)? == CL_BUILD_SUCCESS)
    }

    /// Returns whether the version of OpenCL C of the source requires all work-groups to have the full size.
    pub(crate) fn needs_uniform_work_groups(&self, device: &Device) -> bool {
        let Ok(core) = Core::get() else { return true };
        let query = ask!(core, clGetProgramBuildInfo, self.raw(), device.raw(), CL_PROGRAM_BUILD_OPTIONS);
        let options = info::text("clGetProgramBuildInfo", query).unwrap_or_default();
        // The version is an option for source only. For binaries and SPIR-V, the driver decides.
        let source = info::bytes("clGetProgramInfo", ask!(core, clGetProgramInfo, self.raw(), CL_PROGRAM_SOURCE));
        if source.is_ok_and(|source| source.len() <= 1) {
            return options.contains("-cl-uniform-work-group-size");
        }
        let newer = ["-cl-std=CL2", "-cl-std=CL3", "-cl-std=CLC++"].iter().any(|option| options.contains(option));
        !newer || options.contains("-cl-uniform-work-group-size")
    }
}

impl InContext for Program {
    fn context(&self) -> &Context {
        &self.0.context
    }
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl Eq for Program {}

impl std::hash::Hash for Program {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw().hash(state);
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({:?})", self.0.handle)
    }
}

pub(in crate::cl) fn c_string(what: &'static str, text: &str) -> Result<CString, ProgramError> {
    CString::new(text).map_err(|error| ProgramError::ZeroByte { what, position: error.nul_position() })
}

pub(in crate::cl) fn list_or_none(names: &[String], what: &str) -> String {
    if names.is_empty() { format!("no {what}") } else { format!("`{}`", names.join("`, `")) }
}

pub(in crate::cl) fn form_not_supported(device: &Device, form: &str, why: String) -> ProgramError {
    ProgramError::FormNotSupported { device: device.name().to_owned(), form: form.to_owned(), why }
}
