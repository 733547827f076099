//! The builder of programs.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytemuck::Pod;
use opencl_sys::CL_PROGRAM_BUILD_LOG;

use crate::caps::{GlobalAccess, Version};
use crate::cl::check;
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::program_globals::{Bound, Listing};
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::objects::handle::{Handle, ProgramKind};
use crate::cl::objects::program::{Program, c_string, form_not_supported};
use crate::cl::query::info::{self, ask};
use crate::device_global::{AnyDeviceGlobal, declaration};
use crate::error::{ProgramError, Result, SetupError};
use crate::ffi::core::Core;
use crate::quirks;

/// Added to the options for source, so that clgraph can check arguments before a driver gets them.
const ARG_INFO: &str = "-cl-kernel-arg-info";

/// Builds a program with options, device globals and specialization constants.
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
    globals: Listing,
}

/// How long the longest `clBuildProgram` of this process took, in nanoseconds.
static LONGEST_BUILD: AtomicU64 = AtomicU64::new(0);

/// Returns how long the longest build of a program in this process took, in nanoseconds.
pub(crate) fn longest_build() -> u64 {
    LONGEST_BUILD.load(Ordering::Relaxed)
}

impl ProgramBuilder {
    /// Makes a builder for all devices of a context.
    pub fn new(context: &impl InContext) -> Self {
        let (context, globals) = (context.context().clone(), Listing::default());
        Self { context, options: String::new(), constants: Vec::new(), globals }
    }

    /// Adds compiler options, for example `-cl-std=CL3.0 -DWIDTH=64`.
    pub fn options(mut self, options: &str) -> Self {
        if !self.options.is_empty() {
            self.options.push(' ');
        }
        self.options.push_str(options);
        self
    }

    /// Sets a specialization constant of a SPIR-V module by its `SpecId`, for [`il`](Self::il). All other forms of
    /// programs are refused with it. The value must have as many bytes as the constant; a boolean has one.
    #[doc(alias = "clSetProgramSpecializationConstant")]
    pub fn specialize<T: Pod>(mut self, id: u32, value: T) -> Self {
        self.constants.push((id, bytemuck::bytes_of(&value).to_vec()));
        self
    }

    /// Gives the program access to a [`DeviceGlobal`](crate::DeviceGlobal), under a name in OpenCL C.
    ///
    /// | in OpenCL C | meaning |
    /// |---|---|
    /// | `CLG_DEVICE_GLOBAL(type, name);` | declares the variable; write it before the first use |
    /// | `CLG_DEVICE_GLOBAL_ARRAY(type, name, [4][2]);` | declares an array |
    /// | `CLG_GLOBAL(name)` | the variable itself, in global memory: assign it, take its address, use atomics |
    /// | `CLG_PARAMS`, `CLG_ARGS` | the last parameters of each kernel and function that uses a device global or calls a function that does, and the last arguments of each call; without a comma before them |
    /// | `CLG_ONLY_PARAMS`, `CLG_ONLY_ARGS` | the same if there are no other parameters or arguments |
    ///
    /// clgraph defines these macros, so the same source works on every device. A compiler detects a missing
    /// `CLG_PARAMS` only if the access method is [`GlobalAccess::Argument`]: test a program with
    /// `CLGRAPH_GLOBALS=argument` too.
    ///
    /// Kernels use one of the [access methods of the device](crate::Caps::global_access); [`Program::globals`] returns
    /// which. A pointer in the program needs OpenCL C 2.0 or 3.0: clgraph adds that version to the options, unless they
    /// name one. With `-cl-std=CL1.2`, clgraph uses hidden arguments. [`Kernel::num_args`](crate::Kernel::num_args)
    /// does not count hidden arguments, but `clGetKernelInfo` does.
    ///
    /// This call returns no errors; building the program does.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// clgraph::device_global! {
    ///     static HITS: u32;
    ///     static LIMITS: [f32; 2] = [0.25, 0.75];
    /// }
    /// let source = "
    ///     CLG_DEVICE_GLOBAL(uint, hits);
    ///     CLG_DEVICE_GLOBAL_ARRAY(float, limits, [2]);
    ///     int is_inside(float x CLG_PARAMS) { return x >= CLG_GLOBAL(limits)[0] && x < CLG_GLOBAL(limits)[1]; }
    ///     kernel void count(global const float *in CLG_PARAMS) {
    ///         if (is_inside(in[get_global_id(0)] CLG_ARGS)) atomic_inc(&CLG_GLOBAL(hits));
    ///     }";
    /// let builder = clgraph::ProgramBuilder::new(&queue).global("hits", &HITS).global("limits", &LIMITS);
    /// let program = builder.source(source)?;
    /// for global in program.globals() {
    ///     println!("{global}");
    /// }
    /// assert_eq!(program.kernel("count")?.num_args(), 1);
    /// # Ok(()) }
    /// ```
    pub fn global(mut self, c_name: &str, global: impl AnyDeviceGlobal) -> Self {
        self.globals.add(c_name, declaration(&global));
        self
    }

    /// Sets the method by which kernels access device globals, instead of the best method of the device.
    pub fn global_access(mut self, access: GlobalAccess) -> Self {
        self.globals.by(access);
        self
    }

    /// Builds OpenCL C source. `-cl-kernel-arg-info` is added to the options, unless the program builds only without
    /// it.
    ///
    /// # Errors
    /// [`ProgramError::BuildFailed`] with the build log; [`ProgramError::FormNotSupported`] on a device without a
    /// compiler, or with specialization constants, which source does not have; [`ProgramError::Empty`],
    /// [`ProgramError::ZeroByte`]; [`crate::DriverError`]. With device globals also those of [`crate::GlobalError`]
    /// that name a program, and [`crate::MemoryError::TooLarge`].
    pub fn source(self, source: &str) -> Result<Program> {
        self.sources(&[source])
    }

    /// Builds one program from several sources, which are joined in their order: each source can use the declarations
    /// of the sources before it. Each source may declare the same device global.
    ///
    /// # Errors
    /// As [`source`](Self::source).
    pub fn sources(mut self, sources: &[&str]) -> Result<Program> {
        if sources.iter().all(|source| source.is_empty()) {
            return Err(ProgramError::Empty { what: "the source" }.into());
        }
        let macros = "OpenCL has these for SPIR-V only; use a macro (`options(\"-DNAME=VALUE\")`)";
        self.no_constants("source with specialization constants", macros)?;
        for device in self.context.devices() {
            if !device.caps().compiler {
                let why = "the device has no compiler; use a binary or SPIR-V";
                return Err(form_not_supported(device, "source", why.to_owned()).into());
            }
        }
        let Some(bound) = self.globals.bind(&self.context, &self.options)? else {
            return self.build_text(&sources.join("\n"), false);
        };
        if let Some(std) = bound.std() {
            self = self.options(std);
        }
        match self.clone().build_text(&bound.text(sources), bound.needs_arg_info()) {
            Ok(program) => bound.into_program(program),
            Err(crate::Error::Program(error)) => {
                let sizes = || self.build_text(&bound.sizes_text(sources), false).ok();
                Err(bound.explain(&error, sizes).map_or_else(|| error.into(), crate::Error::from))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the text that [`source`](Self::source) gives to the compiler. With it, you can make SPIR-V elsewhere,
    /// for devices on which kernels access device globals by the same method.
    ///
    /// # Errors
    /// Those of [`source`](Self::source) that do not come from the build itself.
    pub fn source_text(&self, source: &str) -> Result<String> {
        let bound = self.globals.bind(&self.context, &self.options)?;
        Ok(bound.map_or_else(|| source.to_owned(), |bound| bound.text(&[source])))
    }

    /// Builds a text. `needs_info`: the kernels cannot be called without argument information, so there is no build
    /// without it.
    fn build_text(&self, text: &str, needs_info: bool) -> Result<Program> {
        let text = c_string("the source", text)?;
        if self.options.contains(ARG_INFO) {
            return self.build_source(&text);
        }
        let checked = self.clone().options(ARG_INFO).build_source(&text);
        if let Err(crate::Error::Program(ProgramError::BuildFailed { .. })) = &checked
            && !needs_info
        {
            // NVIDIA's compiler (580) fails on a kernel without parameters if it has this option. Without argument
            // information clgraph checks less, and the report says so.
            if let Ok(program) = self.build_source(&text) {
                log_later!(
                    Info,
                    "a program builds only without {ARG_INFO}: clgraph checks less of the arguments of its \
                            kernels"
                );
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
        self.build(core, unsafe { Handle::from_owned("clCreateProgramWithSource", raw) }?)
    }

    /// Builds a program from an intermediate language, such as SPIR-V.
    ///
    /// # Errors
    /// [`ProgramError::FormNotSupported`] on a device that accepts no intermediate language;
    /// [`ProgramError::BuildFailed`], [`ProgramError::Empty`]; [`crate::DriverError`]. With device globals also
    /// [`crate::GlobalError::NotInProgram`] and others of [`crate::GlobalError`].
    ///
    /// # Safety
    /// `il` is a valid module of one of [`Caps::il_versions`](crate::Caps::il_versions). For SPIR-V, `spirv-val` of the
    /// SPIRV-Tools can check this. Most drivers do not check it: of 90 damaged modules, 67 ended the process on Intel's
    /// CPU runtime, and 40 on PoCL 7.1.
    pub unsafe fn il(self, il: &[u8]) -> Result<Program> {
        let bound = self.globals.bind(&self.context, &self.options)?;
        loaded(bound, self.build_il(il)?)
    }

    fn build_il(self, il: &[u8]) -> Result<Program> {
        if il.is_empty() {
            return Err(ProgramError::Empty { what: "the intermediate language" }.into());
        }
        for device in self.context.devices() {
            let caps = device.caps();
            let why = if caps.version < Version::new(2, 1) {
                format!("the device has OpenCL {}, but SPIR-V needs 2.1; build from source", caps.version)
            } else if caps.il_versions.is_empty() {
                "the device lists no intermediate language; build from source".to_owned()
            } else {
                continue;
            };
            return Err(form_not_supported(device, "SPIR-V", why).into());
        }
        let core = Core::get()?;
        let Some(create) = core.clCreateProgramWithIL else {
            let (library, function) = (core.path.clone(), "clCreateProgramWithIL");
            return Err(SetupError::MissingFunction { library, function, needs: "2.1" }.into());
        };
        let mut status = 0;
        // SAFETY: **live**; `il` has the given length.
        let raw = unsafe { create(self.context.raw(), il.as_ptr().cast(), il.len(), &raw mut status) };
        check("clCreateProgramWithIL", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle = unsafe { Handle::from_owned("clCreateProgramWithIL", raw) }?;
        if !self.constants.is_empty() {
            let version = |device: &&Device| device.caps().version;
            if let Some(older) = self.context.devices().iter().find(|device| version(device) < Version::new(2, 2)) {
                let why = format!(
                    "the device has OpenCL {}, but specialization constants need 2.2; compile the values into the \
                     SPIR-V",
                    version(&older)
                );
                return Err(form_not_supported(older, "specialization constants", why).into());
            }
            let (library, function) = (core.path.clone(), "clSetProgramSpecializationConstant");
            let missing = SetupError::MissingFunction { library, function, needs: "2.2" };
            let set = core.clSetProgramSpecializationConstant.ok_or(missing)?;
            for (id, value) in &self.constants {
                // SAFETY: **live**; the value has the given size.
                let status = unsafe { set(handle.raw(), *id, value.len(), value.as_ptr().cast()) };
                check("clSetProgramSpecializationConstant", status)?;
            }
        }
        self.build(core, handle)
    }

    /// Builds a program from a binary of [`Program::binary`], for the first device of the context.
    ///
    /// # Errors
    /// [`ProgramError::BinaryRefused`], [`ProgramError::BuildFailed`], [`ProgramError::Empty`];
    /// [`ProgramError::FormNotSupported`] with specialization constants; [`crate::DriverError`]. With device globals
    /// also [`crate::GlobalError::NotInProgram`] and others of [`crate::GlobalError`].
    ///
    /// # Safety
    /// `binary` is a complete and unchanged result of [`Program::binary`] for the same device, or bytes that this
    /// driver is known to refuse, such as a binary of another version of the driver.
    ///
    /// A binary is code that the driver runs without checks: of 109 damaged binaries, 95 ended the process on PoCL. So
    /// a program that keeps binaries in files must protect these files from changes by others, and check them with a
    /// checksum.
    pub unsafe fn binary(self, binary: &[u8]) -> Result<Program> {
        let bound = self.globals.bind(&self.context, &self.options)?;
        loaded(bound, self.build_binary(binary)?)
    }

    fn build_binary(self, binary: &[u8]) -> Result<Program> {
        if binary.is_empty() {
            return Err(ProgramError::Empty { what: "the binary" }.into());
        }
        let built = "OpenCL has these for SPIR-V only; build the binary with the values that you need";
        self.no_constants("a binary with specialization constants", built)?;
        let device = self.context.devices().first().cloned().ok_or(SetupError::NoDevices)?;
        let core = Core::get()?;
        let (ids, lengths, binaries) = ([device.raw()], [binary.len()], [binary.as_ptr()]);
        let (mut binary_status, mut status) = (0, 0);
        // SAFETY: **live**; three lists of one entry, and the binary has the given length.
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
            // SAFETY: the driver may have made a program in spite of the error; its reference is ours.
            drop(unsafe { Handle::<ProgramKind>::from_owned("clCreateProgramWithBinary", raw) });
            return Err(ProgramError::BinaryRefused { device: device.name().to_owned() }.into());
        }
        check("clCreateProgramWithBinary", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        self.build(core, unsafe { Handle::from_owned("clCreateProgramWithBinary", raw) }?)
    }

    fn no_constants(&self, form: &str, why: &str) -> Result<(), ProgramError> {
        match self.context.devices().first().filter(|_| !self.constants.is_empty()) {
            Some(device) => Err(form_not_supported(device, form, why.to_owned())),
            None => Ok(()),
        }
    }

    fn build(&self, core: &'static Core, handle: Handle<ProgramKind>) -> Result<Program> {
        let options = c_string("the build options", &self.options)?;
        let _building = self.lock_builds();
        let begun = Instant::now();
        // SAFETY: **live**; NULL and 0 mean every device of the program; there is no callback, so the call returns
        // after the build.
        let status = unsafe {
            (core.clBuildProgram)(handle.raw(), 0, std::ptr::null(), options.as_ptr(), None, std::ptr::null_mut())
        };
        LONGEST_BUILD.fetch_max(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
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

    /// Takes the lock for builds where programs must be built one at a time.
    fn lock_builds(&self) -> Option<MutexGuard<'static, ()>> {
        static BUILDING: Mutex<()> = Mutex::new(());
        let one_at_a_time = |device: &Device| quirks::builds_one_at_a_time(device.caps());
        let devices = self.context.devices();
        devices.iter().any(one_at_a_time).then(|| BUILDING.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn log(&self, core: &'static Core, program: &Program, device: &Device) -> String {
        let query = ask!(core, clGetProgramBuildInfo, program.raw(), device.raw(), CL_PROGRAM_BUILD_LOG);
        match info::text("clGetProgramBuildInfo", query) {
            Ok(log) if log.trim().is_empty() => "(the log is empty)".to_owned(),
            Ok(log) => log,
            Err(error) => format!("(the driver returned no log: {error})"),
        }
    }
}

/// Returns a program that was made elsewhere, with its device globals.
fn loaded(bound: Option<Bound>, program: Program) -> Result<Program> {
    match bound {
        Some(bound) => bound.into_loaded(program),
        None => Ok(program),
    }
}
