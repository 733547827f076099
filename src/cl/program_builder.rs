//! Building programs.

use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use opencl_sys::CL_PROGRAM_BUILD_LOG;

use super::check;
use super::context::{Context, InContext};
use super::device::Device;
use super::handle::{Handle, ProgramKind};
use super::info::{self, ask};
use super::program::{Program, c_string, form_not_supported, list_or_none};
use super::program_globals::{Bound, Listing};
use crate::caps::{GlobalWay, Version};
use crate::device_global::{DeviceGlobal, host_access, scope};
use crate::error::{ProgramError, Result, SetupError};
use crate::ffi::core::Core;

/// Added to what clgraph builds from source: it lets arguments be checked before a driver sees them.
const ARG_INFO: &str = "-cl-kernel-arg-info";

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
    globals: Listing,
}

impl ProgramBuilder {
    /// Builds for every device of a context.
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

    /// Sets a specialization constant of a SPIR-V module, by its `SpecId`.
    #[doc(alias = "clSetProgramSpecializationConstant")]
    pub fn specialize<T: Pod>(mut self, id: u32, value: T) -> Self {
        self.constants.push((id, bytemuck::bytes_of(&value).to_vec()));
        self
    }

    /// Lets the program use a [`DeviceGlobal`], by a name in OpenCL C.
    ///
    /// The source declares it by `CLG_DEVICE_GLOBAL(type, name);`, and uses it as `CLG_GLOBAL(name)`, in functions that have
    /// `CLG_PARAMS` at the end of their parameters and are called with `CLG_ARGS` at the end of the arguments. What these are is
    /// clgraph's affair: the same source works on every device. All of it is in `kernels-cl/device_global.h`, which is put
    /// before the source.
    ///
    /// How kernels get to it is one of the [ways of the device](crate::Caps::global_ways); [`Program::globals`] tells which. A
    /// pointer in the program needs OpenCL C 2.0 or 3.0: that is added to the options unless they name a version, and with
    /// `-cl-std=CL1.2` a hidden argument is taken. The driver does not see hidden arguments as such:
    /// [`Kernel::num_args`](crate::Kernel::num_args) does not count them, `clGetKernelInfo` does.
    ///
    /// Errors are those of building.
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
    /// let program = clgraph::ProgramBuilder::new(&queue).global("hits", &HITS).global("limits", &LIMITS).source(source)?;
    /// for global in program.globals() {
    ///     println!("{global}");
    /// }
    /// assert_eq!(program.kernel("count")?.num_args(), 1);
    /// # Ok(()) }
    /// ```
    pub fn global<T: Pod, A: host_access::Property, S: scope::Property>(
        mut self,
        c_name: &str,
        global: &'static DeviceGlobal<T, A, S>,
    ) -> Self {
        self.globals.add(c_name, global.declared());
        self
    }

    /// Says how kernels get to device globals, instead of by the best way that the device has.
    pub fn globals_by(mut self, way: GlobalWay) -> Self {
        self.globals.by(way);
        self
    }

    /// Builds OpenCL C source. `-cl-kernel-arg-info` is added to the options, unless the program builds only without it.
    ///
    /// # Errors
    /// [`ProgramError::BuildFailed`] with the build log; [`ProgramError::FormNotSupported`] on a device without a
    /// compiler, or with specialization constants, which source does not have; [`ProgramError::Empty`],
    /// [`ProgramError::ZeroByte`]; [`crate::DriverError`]. With device globals those of [`crate::GlobalError`] that name a program, and
    /// [`crate::MemoryError::TooLarge`].
    pub fn source(self, source: &str) -> Result<Program> {
        self.sources(&[source])
    }

    /// Builds one program of several sources, one behind the other: what one declares, those behind it have. A device global may
    /// be declared in each of them.
    ///
    /// # Errors
    /// As [`source`](Self::source).
    pub fn sources(mut self, sources: &[&str]) -> Result<Program> {
        if sources.iter().all(|source| source.is_empty()) {
            return Err(ProgramError::Empty { what: "the source" }.into());
        }
        self.no_constants("source with specialization constants")?;
        for device in self.context.devices() {
            if !device.caps().compiler {
                return Err(form_not_supported(device, "source".to_owned(), "no compiler".to_owned()).into());
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

    /// The text that [`source`](Self::source) gives to the compiler: to make SPIR-V of it elsewhere, for devices where kernels get to
    /// device globals in the same way.
    ///
    /// # Errors
    /// Those of [`source`](Self::source) that do not come from building.
    pub fn source_text(&self, source: &str) -> Result<String> {
        let bound = self.globals.bind(&self.context, &self.options)?;
        Ok(bound.map_or_else(|| source.to_owned(), |bound| bound.text(&[source])))
    }

    /// `needs_info`: without argument information nobody could call the kernels.
    fn build_text(&self, text: &str, needs_info: bool) -> Result<Program> {
        let text = c_string("the source", text)?;
        if self.options.contains(ARG_INFO) {
            return self.build_source(&text);
        }
        let checked = self.clone().options(ARG_INFO).build_source(&text);
        if let Err(crate::Error::Program(ProgramError::BuildFailed { .. })) = &checked
            && !needs_info
        {
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
    /// [`ProgramError::Empty`]; [`crate::DriverError`]. With device globals [`crate::GlobalError::NotInProgram`] and others of
    /// [`crate::GlobalError`].
    pub fn il(self, il: &[u8]) -> Result<Program> {
        let bound = self.globals.bind(&self.context, &self.options)?;
        loaded(bound, self.build_il(il)?)
    }

    fn build_il(self, il: &[u8]) -> Result<Program> {
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
    /// [`ProgramError::FormNotSupported`] with specialization constants; [`crate::DriverError`]. With device globals
    /// [`crate::GlobalError::NotInProgram`] and others of [`crate::GlobalError`].
    pub fn binary(self, binary: &[u8]) -> Result<Program> {
        let bound = self.globals.bind(&self.context, &self.options)?;
        loaded(bound, self.build_binary(binary)?)
    }

    fn build_binary(self, binary: &[u8]) -> Result<Program> {
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

/// A program that was made elsewhere, with its globals.
fn loaded(bound: Option<Bound>, program: Program) -> Result<Program> {
    match bound {
        Some(bound) => bound.into_loaded(program),
        None => Ok(program),
    }
}
