//! Programs, from every form that OpenCL knows.

use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use opencl_sys::{
    CL_BUILD_SUCCESS, CL_PROGRAM_BINARIES, CL_PROGRAM_BINARY_SIZES, CL_PROGRAM_BUILD_LOG, CL_PROGRAM_BUILD_OPTIONS,
    CL_PROGRAM_BUILD_STATUS, CL_PROGRAM_CONTEXT, CL_PROGRAM_DEVICES, CL_PROGRAM_KERNEL_NAMES, CL_PROGRAM_SOURCE,
    cl_int, cl_program,
};

use super::check;
use super::context::{Context, InContext};
use super::device::Device;
use super::handle::{Handle, ProgramKind};
use super::info::{self, ask};
use super::kernel::Kernel;
use crate::caps::Version;
use crate::error::{ProgramError, Result, SetupError, Status};
use crate::ffi::core::Core;

/// Added to what clgraph builds from source: it lets arguments be checked before a driver sees them.
const ARG_INFO: &str = "-cl-kernel-arg-info";

/// A built program. Cheap to clone: clones are the same program.
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
    /// Made of built-in kernels: there is nothing to build, and drivers differ in what they call the state of it.
    built_in: bool,
}

impl Program {
    /// A program that was built for every device of its context.
    pub(super) fn of_handle(context: &Context, handle: Handle<ProgramKind>) -> Self {
        Self(Arc::new(Inner { handle, context: context.clone(), built_in: false }))
    }

    pub(super) fn handle(&self) -> &Handle<ProgramKind> {
        &self.0.handle
    }

    /// Builds OpenCL C source for every device of a context. More options: [`ProgramBuilder`].
    ///
    /// # Errors
    /// [`ProgramError::BuildFailed`] with the build log, and the others of [`ProgramBuilder::source`].
    #[doc(alias = "clCreateProgramWithSource")]
    pub fn from_source(context: &impl InContext, source: &str) -> Result<Self> {
        ProgramBuilder::new(context).source(source)
    }

    /// Builds a program of an intermediate language, such as SPIR-V.
    ///
    /// # Errors
    /// As [`ProgramBuilder::il`].
    #[doc(alias = "clCreateProgramWithIL")]
    pub fn from_il(context: &impl InContext, il: &[u8]) -> Result<Self> {
        ProgramBuilder::new(context).il(il)
    }

    /// Builds a program of a binary made by [`Self::binary`], by the same driver, for the first device of a context.
    ///
    /// # Errors
    /// As [`ProgramBuilder::binary`].
    #[doc(alias = "clCreateProgramWithBinary")]
    pub fn from_binary(context: &impl InContext, binary: &[u8]) -> Result<Self> {
        ProgramBuilder::new(context).binary(binary)
    }

    /// A program of kernels that are built into the devices of a context.
    ///
    /// # Errors
    /// [`ProgramError::FormNotSupported`] for a name that a device lacks; [`ProgramError::BuiltInUnusable`] where the
    /// driver lists a kernel that it cannot make; [`ProgramError::Empty`]; [`crate::DriverError`].
    #[doc(alias = "clCreateProgramWithBuiltInKernels")]
    pub fn from_builtin_kernels(context: &impl InContext, names: &[&str]) -> Result<Self> {
        let context = context.context();
        if names.is_empty() {
            return Err(ProgramError::Empty { what: "the list of built-in kernels" }.into());
        }
        for device in context.devices() {
            let has = &device.caps().builtin_kernels;
            if let Some(name) = names.iter().find(|name| !has.iter().any(|own| own == *name)) {
                let form = format!("built-in kernel `{name}`");
                return Err(form_not_supported(device, form, list_or_none(has, "built-in kernels")).into());
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
        let handle = unsafe { Handle::from_owned(raw) }?;
        let program = Self(Arc::new(Inner { handle, context: context.clone(), built_in: true }));
        // There is nothing to build, and still some drivers (PoCL) have no kernels before they were told to.
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

    /// Wraps an `opencl3` program of a context, already built, which may be dropped before this one.
    ///
    /// # Errors
    /// [`ProgramError::NotBuilt`], [`ProgramError::OtherContext`], [`crate::DriverError`].
    pub fn from_opencl3(context: &impl InContext, program: &opencl3::program::Program) -> Result<Self> {
        // SAFETY: an `opencl3` program owns a reference.
        unsafe { Self::from_raw(context, program.get()) }
    }

    /// Wraps and retains a raw program of a context, already built.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`], [`ProgramError::NotBuilt`], [`ProgramError::OtherContext`], [`crate::DriverError`].
    ///
    /// # Safety
    /// `raw` is null or a live program, and nobody builds it again while clgraph uses it.
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
        // SAFETY: the caller's promise.
        let program = Self::wrap(unsafe { Handle::from_borrowed(raw) }?, context);
        for device in context.devices() {
            if program.is_built_for(device)? {
                return Ok(program);
            }
        }
        Err(ProgramError::NotBuilt.into())
    }

    fn wrap(handle: Handle<ProgramKind>, context: &Context) -> Self {
        Self(Arc::new(Inner { handle, context: context.clone(), built_in: false }))
    }

    /// The C handle, valid while this object lives.
    #[must_use]
    pub fn raw(&self) -> cl_program {
        self.0.handle.raw()
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`ProgramError::NoSuchKernel`], [`ProgramError::ZeroByte`], [`crate::DriverError`].
    #[doc(alias = "clCreateKernel")]
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        Kernel::of_program(self, name)
    }

    /// The names of all kernels.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses the query.
    pub fn kernel_names(&self) -> Result<Vec<String>> {
        let core = Core::get()?;
        let names = info::text("clGetProgramInfo", ask!(core, clGetProgramInfo, self.raw(), CL_PROGRAM_KERNEL_NAMES))?;
        Ok(names.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// The binary for a device, to be kept and given to [`Self::from_binary`].
    ///
    /// # Errors
    /// [`SetupError::DeviceOutsideContext`]; [`ProgramError::NotBuilt`] when there is no binary for the device;
    /// [`crate::DriverError`].
    pub fn binary(&self, device: &Device) -> Result<Vec<u8>> {
        self.0.context.check_device(device)?;
        let core = Core::get()?;
        let call = "clGetProgramInfo";
        let devices = info::values::<usize>(call, ask!(core, clGetProgramInfo, self.raw(), CL_PROGRAM_DEVICES))?;
        let sizes = info::values::<usize>(call, ask!(core, clGetProgramInfo, self.raw(), CL_PROGRAM_BINARY_SIZES))?;
        let mut binaries: Vec<Vec<u8>> = sizes.iter().map(|&size| vec![0; size]).collect();
        let mut places: Vec<*mut u8> = binaries.iter_mut().map(|binary| binary.as_mut_ptr()).collect();
        // SAFETY: **live**; the driver writes each binary to its place, which has the size that it named.
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
            .ok_or_else(|| ProgramError::NotBuilt.into())
    }

    /// Whether the program was built for a device.
    pub(crate) fn is_built_for(&self, device: &Device) -> Result<bool> {
        let core = Core::get()?;
        if self.0.built_in {
            return Ok(true);
        }
        let query = ask!(core, clGetProgramBuildInfo, self.raw(), device.raw(), CL_PROGRAM_BUILD_STATUS);
        Ok(info::value::<cl_int>("clGetProgramBuildInfo", query)? == CL_BUILD_SUCCESS)
    }

    /// Whether every work-group of its kernels must be full, because of the version of OpenCL C it is written in.
    pub(crate) fn needs_uniform_work_groups(&self, device: &Device) -> bool {
        let Ok(core) = Core::get() else { return true };
        let query = ask!(core, clGetProgramBuildInfo, self.raw(), device.raw(), CL_PROGRAM_BUILD_OPTIONS);
        let options = info::text("clGetProgramBuildInfo", query).unwrap_or_default();
        // The version is an option for source only; what is made of binaries and SPIR-V is left to the driver.
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

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({:?})", self.0.handle)
    }
}

/// Builds a program with options and specialization constants.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{ProgramBuilder, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let program = ProgramBuilder::new(&queue)
///     .options("-DSTEP=4")
///     .source("kernel void add(global int *a) { a[get_global_id(0)] += STEP; }")?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `source`, `il` or `binary` is called"]
pub struct ProgramBuilder {
    context: Context,
    options: String,
    constants: Vec<(u32, Vec<u8>)>,
}

impl ProgramBuilder {
    /// Builds for every device of a context.
    pub fn new(context: &impl InContext) -> Self {
        Self { context: context.context().clone(), options: String::new(), constants: Vec::new() }
    }

    /// Adds compiler options, for example `-cl-std=CL3.0 -DWIDTH=64`.
    pub fn options(mut self, options: &str) -> Self {
        if !self.options.is_empty() {
            self.options.push(' ');
        }
        self.options.push_str(options);
        self
    }

    /// Sets a specialization constant of a SPIR-V module, by its `SpecId`.
    #[doc(alias = "clSetProgramSpecializationConstant")]
    pub fn specialize<T: Pod>(mut self, id: u32, value: T) -> Self {
        self.constants.push((id, bytemuck::bytes_of(&value).to_vec()));
        self
    }

    /// Builds OpenCL C source. `-cl-kernel-arg-info` is added to the options, unless the program builds only without it.
    ///
    /// # Errors
    /// [`ProgramError::BuildFailed`] with the build log; [`ProgramError::FormNotSupported`] on a device without a
    /// compiler, or with specialization constants, which source does not have; [`ProgramError::Empty`],
    /// [`ProgramError::ZeroByte`]; [`crate::DriverError`].
    pub fn source(self, source: &str) -> Result<Program> {
        if source.is_empty() {
            return Err(ProgramError::Empty { what: "the source" }.into());
        }
        self.no_constants("source with specialization constants")?;
        for device in self.context.devices() {
            if !device.caps().compiler {
                return Err(form_not_supported(device, "source".to_owned(), "no compiler".to_owned()).into());
            }
        }
        let text = c_string("the source", source)?;
        if self.options.contains(ARG_INFO) {
            return self.build_source(&text);
        }
        let checked = self.clone().options(ARG_INFO).build_source(&text);
        if let Err(crate::Error::Program(ProgramError::BuildFailed { .. })) = &checked {
            // NVIDIA's compiler (580) stumbles over a kernel without parameters then. Without argument information
            // clgraph checks less, and the report says so.
            if let Ok(program) = self.build_source(&text) {
                log::info!("a program does not build with {ARG_INFO}, and builds without it");
                return Ok(program);
            }
        }
        checked
    }

    fn build_source(&self, text: &CString) -> Result<Program> {
        let core = Core::get()?;
        let (strings, lengths) = ([text.as_ptr()], [text.as_bytes().len()]);
        let mut status = 0;
        // SAFETY: **live**; one string of the length given.
        let raw = unsafe {
            (core.clCreateProgramWithSource)(self.context.raw(), 1, strings.as_ptr(), lengths.as_ptr(), &raw mut status)
        };
        check("clCreateProgramWithSource", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        self.build(core, unsafe { Handle::from_owned(raw) }?)
    }

    /// Builds a program of an intermediate language, such as SPIR-V.
    ///
    /// # Errors
    /// [`ProgramError::FormNotSupported`] on a device that takes none; [`ProgramError::BuildFailed`],
    /// [`ProgramError::Empty`]; [`crate::DriverError`].
    pub fn il(self, il: &[u8]) -> Result<Program> {
        if il.is_empty() {
            return Err(ProgramError::Empty { what: "the intermediate language" }.into());
        }
        for device in self.context.devices() {
            let caps = device.caps();
            if caps.il_versions.is_empty() || caps.version < Version::new(2, 1) {
                let has = list_or_none(&caps.il_versions, "intermediate languages");
                return Err(form_not_supported(device, "SPIR-V".to_owned(), has).into());
            }
        }
        let core = Core::get()?;
        let Some(create) = core.clCreateProgramWithIL else {
            return Err(SetupError::MissingFunction {
                library: "in use".to_owned(),
                function: "clCreateProgramWithIL",
            }
            .into());
        };
        let mut status = 0;
        // SAFETY: **live**; `il` has the length given.
        let raw = unsafe { create(self.context.raw(), il.as_ptr().cast(), il.len(), &raw mut status) };
        check("clCreateProgramWithIL", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle = unsafe { Handle::from_owned(raw) }?;
        if !self.constants.is_empty() {
            let newer = self.context.devices().iter().all(|device| device.caps().version >= Version::new(2, 2));
            let Some(set) = core.clSetProgramSpecializationConstant.filter(|_| newer) else {
                return Err(self.constants_not_supported("specialization constants (OpenCL 2.2)"));
            };
            for (id, value) in &self.constants {
                // SAFETY: **live**; the value has the size given.
                let status = unsafe { set(handle.raw(), *id, value.len(), value.as_ptr().cast()) };
                check("clSetProgramSpecializationConstant", status)?;
            }
        }
        self.build(core, handle)
    }

    /// Builds a program of a binary made by [`Program::binary`], for the first device of the context.
    ///
    /// # Errors
    /// [`ProgramError::BinaryRefused`], [`ProgramError::BuildFailed`], [`ProgramError::Empty`];
    /// [`ProgramError::FormNotSupported`] with specialization constants; [`crate::DriverError`].
    pub fn binary(self, binary: &[u8]) -> Result<Program> {
        if binary.is_empty() {
            return Err(ProgramError::Empty { what: "the binary" }.into());
        }
        self.no_constants("a binary with specialization constants")?;
        let Some(device) = self.context.devices().first().cloned() else {
            return Err(SetupError::NullHandle { what: "device" }.into());
        };
        let core = Core::get()?;
        let (ids, lengths, binaries) = ([device.raw()], [binary.len()], [binary.as_ptr()]);
        let (mut binary_status, mut status) = (0, 0);
        // SAFETY: **live**; three lists of one entry, the binary of the length given.
        let raw = unsafe {
            (core.clCreateProgramWithBinary)(
                self.context.raw(),
                1,
                ids.as_ptr(),
                lengths.as_ptr(),
                binaries.as_ptr(),
                &raw mut binary_status,
                &raw mut status,
            )
        };
        if status == opencl_sys::CL_INVALID_BINARY || (status == 0 && binary_status != 0) {
            // SAFETY: a program may have been made all the same; its reference is ours.
            drop(unsafe { Handle::<ProgramKind>::from_owned(raw) });
            return Err(ProgramError::BinaryRefused { device: device.name().to_owned() }.into());
        }
        check("clCreateProgramWithBinary", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        self.build(core, unsafe { Handle::from_owned(raw) }?)
    }

    fn no_constants(&self, form: &str) -> Result<()> {
        if self.constants.is_empty() { Ok(()) } else { Err(self.constants_not_supported(form)) }
    }

    fn constants_not_supported(&self, form: &str) -> crate::Error {
        let device = self.context.devices().first().map_or("", Device::name).to_owned();
        let has = "them for SPIR-V only, from OpenCL 2.2 on".to_owned();
        ProgramError::FormNotSupported { device, form: form.to_owned(), has }.into()
    }

    fn build(&self, core: &'static Core, handle: Handle<ProgramKind>) -> Result<Program> {
        let options = c_string("the build options", &self.options)?;
        let _turn = self.turn();
        // SAFETY: **live**; NULL and 0 mean every device of the program; no callback, so the call returns when done.
        let status = unsafe {
            (core.clBuildProgram)(handle.raw(), 0, std::ptr::null(), options.as_ptr(), None, std::ptr::null_mut())
        };
        let program = Program::wrap(handle, &self.context);
        let Err(error) = check("clBuildProgram", status) else { return Ok(program) };
        let culprit = self.context.devices().iter().find(|device| !program.is_built_for(device).unwrap_or(false));
        let Some(device) = culprit else { return Err(error.into()) };
        Err(ProgramError::BuildFailed {
            device: device.name().to_owned(),
            options: self.options.clone(),
            status: error.status,
            log: self.log(core, &program, device),
        }
        .into())
    }

    /// Intel's CPU runtime builds one program at a time in any case, and among threads that try at once one can come into a
    /// loop that never ends: so they wait here.
    fn turn(&self) -> Option<MutexGuard<'static, ()>> {
        static BUILDING: Mutex<()> = Mutex::new(());
        let loops = |device: &Device| device.caps().platform.starts_with("Intel(R)") && !device.caps().gpu;
        self.context.devices().iter().any(loops).then(|| BUILDING.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn log(&self, core: &'static Core, program: &Program, device: &Device) -> String {
        let query = ask!(core, clGetProgramBuildInfo, program.raw(), device.raw(), CL_PROGRAM_BUILD_LOG);
        info::text("clGetProgramBuildInfo", query).unwrap_or_default()
    }
}

pub(super) fn c_string(what: &'static str, text: &str) -> Result<CString, ProgramError> {
    CString::new(text).map_err(|error| ProgramError::ZeroByte { what, position: error.nul_position() })
}

fn list_or_none(names: &[String], what: &str) -> String {
    if names.is_empty() { format!("no {what}") } else { names.join(", ") }
}

fn form_not_supported(device: &Device, form: String, has: String) -> ProgramError {
    ProgramError::FormNotSupported { device: device.name().to_owned(), form, has }
}
