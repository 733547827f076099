//! Kernels, and what is known about their parameters.

use std::any::TypeId;
use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use opencl_sys::{
    CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_READ_ONLY, CL_KERNEL_ARG_ACCESS_READ_WRITE,
    CL_KERNEL_ARG_ACCESS_WRITE_ONLY, CL_KERNEL_ARG_ADDRESS_CONSTANT, CL_KERNEL_ARG_ADDRESS_GLOBAL,
    CL_KERNEL_ARG_ADDRESS_LOCAL, CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_NAME, CL_KERNEL_ARG_TYPE_CONST,
    CL_KERNEL_ARG_TYPE_NAME, CL_KERNEL_ARG_TYPE_PIPE, CL_KERNEL_ARG_TYPE_QUALIFIER, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
    CL_KERNEL_CONTEXT, CL_KERNEL_FUNCTION_NAME, CL_KERNEL_LOCAL_MEM_SIZE, CL_KERNEL_NUM_ARGS, CL_KERNEL_PROGRAM,
    CL_KERNEL_WORK_GROUP_SIZE, cl_kernel,
};

use crate::caps::Version;
use crate::cl::check;
use crate::cl::commands::command::ByRef;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::InContext;
use crate::cl::objects::device::Device;
use crate::cl::objects::handle::{Handle, KernelKind};
use crate::cl::objects::kernel_object::{KernelObject, KernelObjectError, Launcher};
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

/// A parameter of a kernel, as far as the program reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) space: Space,
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) is_const: bool,
    /// How the kernel may use an image.
    pub(crate) access: Option<ImageUse>,
    /// Size in bytes of a by-value parameter whose type is a scalar or vector of OpenCL C.
    pub(crate) value_size: Option<usize>,
    /// The kind of number, if the type is a scalar of OpenCL C.
    pub(crate) class: Class,
}

/// Kinds of numbers. The same bytes mean different values in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not a number, or unknown.
    Unknown,
    Integer,
    Float,
}

impl Class {
    /// Returns whether one of the two is an integer kind and the other is not.
    #[inline(always)]
    pub(crate) fn clashes(self, other: Self) -> bool {
        matches!((self, other), (Self::Integer, Self::Float) | (Self::Float, Self::Integer))
    }

    /// Returns the kind of a type of OpenCL C, by the name of the type.
    fn of_type(name: &str) -> Self {
        match name.strip_prefix("unsigned ").unwrap_or(name) {
            "float" | "double" => Self::Float,
            "char" | "uchar" | "short" | "ushort" | "int" | "uint" | "long" | "ulong" => Self::Integer,
            _ => Self::Unknown,
        }
    }
}

macro_rules! numbers {
    ($($name:ident $number:ident $class:ident;)*) => {
        /// A number type of Rust. It has one byte, so that arguments do not become larger.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Number {
            /// Not a number, or unknown.
            Any,
            $($name,)*
        }

        impl Number {
            /// Returns the number type of a Rust type. The compiler evaluates this.
            #[inline(always)]
            pub(crate) fn of<T: 'static>() -> Self {
                $(if TypeId::of::<T>() == TypeId::of::<$number>() {
                    return Self::$name;
                })*
                Self::Any
            }

            #[inline(always)]
            pub(crate) fn class(self) -> Class {
                match self {
                    Self::Any => Class::Unknown,
                    $(Self::$name => Class::$class,)*
                }
            }

            /// Returns the name of the type.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    Self::Any => "",
                    $(Self::$name => stringify!($number),)*
                }
            }
        }
    };
}

numbers! {
    F32 f32 Float;
    F64 f64 Float;
    I8 i8 Integer;
    I16 i16 Integer;
    I32 i32 Integer;
    I64 i64 Integer;
    Isize isize Integer;
    U8 u8 Integer;
    U16 u16 Integer;
    U32 u32 Integer;
    U64 u64 Integer;
    Usize usize Integer;
}

/// The access qualifier of an image parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageUse {
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

/// The kind of argument that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// A pointer to global or constant memory.
    Buffer,
    Local,
    Value,
    Image,
    Sampler,
    Pipe,
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

/// Reads all parameters. Many programs do not report them (CL_KERNEL_ARG_INFO_NOT_AVAILABLE).
fn read_params(core: &'static Core, kernel: &Handle<KernelKind>, num_args: u32) -> Result<Vec<Param>, DriverError> {
    const CALL: &str = "clGetKernelArgInfo";
    let raw = kernel.raw();
    (0..num_args)
        .map(|index| {
            let number = |name| info::value::<u32>(CALL, ask!(core, clGetKernelArgInfo, raw, index, name));
            let text = |name| info::text(CALL, ask!(core, clGetKernelArgInfo, raw, index, name));
            // The qualifier is a cl_bitfield of 64 bits, although `opencl_sys` declares it differently.
            let qualifier =
                info::value::<u64>(CALL, ask!(core, clGetKernelArgInfo, raw, index, CL_KERNEL_ARG_TYPE_QUALIFIER))?;
            let type_name = text(CL_KERNEL_ARG_TYPE_NAME)?;
            let access = match number(CL_KERNEL_ARG_ACCESS_QUALIFIER) {
                Ok(CL_KERNEL_ARG_ACCESS_READ_ONLY) => Some(ImageUse::ReadOnly),
                Ok(CL_KERNEL_ARG_ACCESS_WRITE_ONLY) => Some(ImageUse::WriteOnly),
                Ok(CL_KERNEL_ARG_ACCESS_READ_WRITE) => Some(ImageUse::ReadWrite),
                _ => None,
            };
            let address = number(CL_KERNEL_ARG_ADDRESS_QUALIFIER)?;
            let space = match address {
                _ if qualifier & u64::from(CL_KERNEL_ARG_TYPE_PIPE) != 0 => Space::Pipe,
                // Only images have an access qualifier. A program may give image types its own names.
                _ if is_image(&type_name) || access.is_some() => Space::Image,
                _ if type_name == "sampler_t" => Space::Sampler,
                CL_KERNEL_ARG_ADDRESS_GLOBAL | CL_KERNEL_ARG_ADDRESS_CONSTANT => Space::Buffer,
                CL_KERNEL_ARG_ADDRESS_LOCAL => Space::Local,
                _ => Space::Value,
            };
            Ok(Param {
                access,
                space,
                name: text(CL_KERNEL_ARG_NAME)?,
                // Some drivers do not report constant memory as const.
                is_const: qualifier & u64::from(CL_KERNEL_ARG_TYPE_CONST) != 0
                    || address == CL_KERNEL_ARG_ADDRESS_CONSTANT,
                value_size: if space == Space::Value { size_of_type(&type_name) } else { None },
                class: if space == Space::Value { Class::of_type(&type_name) } else { Class::Unknown },
                type_name,
            })
        })
        .collect()
}

/// Returns whether a type is an image type of OpenCL C, for example `image2d_array_t`.
pub(crate) fn is_image(type_name: &str) -> bool {
    ["image1d", "image2d", "image3d"].iter().any(|kind| type_name.starts_with(kind)) && type_name.ends_with("_t")
}

/// Returns the size in bytes of a scalar or vector type of OpenCL C, by its name. Returns `None` for structs and for
/// types whose size depends on the device.
fn size_of_type(name: &str) -> Option<usize> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (base, lanes) = name.split_at(name.len() - digits);
    let lanes = match lanes {
        "" => 1,
        "2" => 2,
        // "The size and alignment of a 3-component vector is that of a 4-component one" (OpenCL C, 6.1.5).
        "3" | "4" => 4,
        "8" => 8,
        "16" => 16,
        _ => return None,
    };
    let base = match base {
        "char" | "uchar" | "unsigned char" => 1,
        "short" | "ushort" | "unsigned short" | "half" => 2,
        "int" | "uint" | "unsigned int" | "float" => 4,
        "long" | "ulong" | "unsigned long" | "double" => 8,
        _ => return None,
    };
    Some(base * lanes)
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

#[cfg(test)]
mod tests {
    use super::{Class, Number, is_image, size_of_type};

    #[test]
    fn images_are_known_by_their_names_and_others_are_none() {
        assert!(is_image("image2d_t") && is_image("image1d_buffer_t") && is_image("image2d_array_msaa_depth_t"));
        assert!(!is_image("image_size") && !is_image("image2d_size*") && !is_image("imagery_t"));
    }

    /// The argument checks depend on these sizes: a wrong size would reject a correct argument.
    #[test]
    fn sizes_of_types_are_known_by_name_and_unknown_ones_are_left_alone() {
        assert_eq!(size_of_type("int"), Some(4));
        assert_eq!(size_of_type("float3"), Some(16));
        assert_eq!(size_of_type("uchar16"), Some(16));
        assert_eq!(size_of_type("half"), Some(2));
        assert_eq!(size_of_type("ulong2"), Some(16));
        assert_eq!(size_of_type("struct point"), None);
        assert_eq!(size_of_type("point3"), None);
        assert_eq!(size_of_type("int5"), None);
        assert_eq!(size_of_type("size_t"), None);
        assert_eq!(size_of_type(""), None);
    }

    /// The argument checks reject a wrong kind, so a kind must be known for certain.
    #[test]
    fn kinds_of_numbers_are_known_by_name_and_others_are_none() {
        for name in ["float", "double"] {
            assert_eq!(Class::of_type(name), Class::Float, "{name}");
        }
        for name in ["char", "uchar", "short", "unsigned short", "int", "unsigned int", "uint", "long", "ulong"] {
            assert_eq!(Class::of_type(name), Class::Integer, "{name}");
        }
        for name in ["half", "float2", "int4", "size_t", "real", "struct point", "enum mode", ""] {
            assert_eq!(Class::of_type(name), Class::Unknown, "{name}");
        }
        assert_eq!((Number::of::<f64>().class(), Number::of::<f64>().name()), (Class::Float, "f64"));
        assert_eq!((Number::of::<usize>().class(), Number::of::<usize>().name()), (Class::Integer, "usize"));
        assert_eq!(Number::of::<[f32; 1]>(), Number::Any);
        assert!(!Class::Unknown.clashes(Class::Float) && !Class::Integer.clashes(Class::Integer));
        assert!(Class::Integer.clashes(Class::Float) && Class::Float.clashes(Class::Integer));
    }
}
