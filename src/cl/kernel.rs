//! Kernels, what is known of their parameters, and kernel objects with their arguments set.

use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use opencl_sys::{
    CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_READ_ONLY, CL_KERNEL_ARG_ACCESS_READ_WRITE,
    CL_KERNEL_ARG_ACCESS_WRITE_ONLY, CL_KERNEL_ARG_ADDRESS_CONSTANT, CL_KERNEL_ARG_ADDRESS_GLOBAL,
    CL_KERNEL_ARG_ADDRESS_LOCAL, CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_NAME, CL_KERNEL_ARG_TYPE_CONST,
    CL_KERNEL_ARG_TYPE_NAME, CL_KERNEL_ARG_TYPE_PIPE, CL_KERNEL_ARG_TYPE_QUALIFIER, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
    CL_KERNEL_CONTEXT, CL_KERNEL_EXEC_INFO_SVM_PTRS, CL_KERNEL_FUNCTION_NAME, CL_KERNEL_LOCAL_MEM_SIZE,
    CL_KERNEL_NUM_ARGS, CL_KERNEL_PROGRAM, CL_KERNEL_WORK_GROUP_SIZE, cl_kernel,
};

use super::allocation::Api;
use super::check;
use super::context::InContext;
use super::device::Device;
use super::handle::{Handle, KernelKind};
use super::info::{self, ask};
use super::mem::{Address, Mem, WeakMem};
use super::program::{Program, c_string};
use super::sampler::Sampler;
use crate::caps::{MemoryKind, Version};
use crate::error::{DriverError, ProgramError, Result, SetupError, Status};
use crate::ffi::core::Core;
use crate::ffi::usm::USM_ACCESS;

/// A kernel function of a program. Cheap to clone.
///
/// It carries no arguments: those belong to the nodes that use it.
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
    /// Arguments are never set on it. The lock is for clCloneKernel, which is not thread-safe on its source.
    prototype: Mutex<Handle<KernelKind>>,
    /// For launches outside of graphs, made when first needed.
    launcher: Mutex<Option<Launcher>>,
    program: Program,
    name: CString,
    shared_name: Arc<str>,
    num_args: u32,
    params: Option<Vec<Param>>,
    by_device: Vec<(Device, DeviceFacts)>,
}

/// A parameter of a kernel, as far as the program tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) space: Space,
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) is_const: bool,
    /// What it may do to an image.
    pub(crate) access: Option<ImageUse>,
    /// Bytes of a by-value parameter whose type is a scalar or a vector of OpenCL C.
    pub(crate) value_size: Option<usize>,
}

/// The access qualifier of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageUse {
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

/// What a parameter takes.
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

/// What a device says of a kernel that was built for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceFacts {
    /// Work-items of the largest work-group.
    pub(crate) max_work_group: usize,
    /// `reqd_work_group_size`, where the kernel has that attribute.
    pub(crate) required_work_group: Option<[usize; 3]>,
    /// Bytes of local memory that the kernel declares itself.
    pub(crate) local_memory: u64,
    /// Whether every work-group must be full.
    pub(crate) uniform: bool,
}

impl Kernel {
    pub(super) fn of_program(program: &Program, name: &str) -> Result<Self> {
        let core = Core::get()?;
        let name = c_string("the kernel's name", name)?;
        let mut status = 0;
        // SAFETY: **live**; `name` ends with zero.
        let raw = unsafe { (core.clCreateKernel)(program.raw(), name.as_ptr(), &raw mut status) };
        if status == opencl_sys::CL_INVALID_KERNEL_NAME {
            let has = program.kernel_names().unwrap_or_default().join(", ");
            return Err(ProgramError::NoSuchKernel { name: name.to_string_lossy().into_owned(), has }.into());
        }
        check("clCreateKernel", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle: Handle<KernelKind> = unsafe { Handle::from_owned(raw) }?;
        let raw = handle.raw();
        let num_args = info::value::<u32>("clGetKernelInfo", ask!(core, clGetKernelInfo, raw, CL_KERNEL_NUM_ARGS))?;
        let params = read_params(core, &handle, num_args);
        let mut by_device = Vec::new();
        for device in program.context().devices() {
            if program.is_built_for(device)? {
                by_device.push((device.clone(), read_facts(core, &handle, program, device)?));
            }
        }
        let (prototype, launcher, shared_name) = (Mutex::new(handle), Mutex::new(None), name.to_string_lossy().into());
        let program = program.clone();
        Ok(Self(Arc::new(Inner { prototype, launcher, program, name, shared_name, num_args, params, by_device })))
    }

    /// The kernel function of an `opencl3` kernel of a context. The arguments set on that kernel object play no part.
    ///
    /// # Errors
    /// [`ProgramError::OtherContext`], [`crate::DriverError`].
    pub fn from_opencl3(context: &impl InContext, kernel: &opencl3::kernel::Kernel) -> Result<Self> {
        // SAFETY: an `opencl3` kernel owns a reference.
        unsafe { Self::from_raw(context, kernel.get()) }
    }

    /// The kernel function of a raw kernel of a context. The arguments set on that kernel object play no part.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`], [`ProgramError::OtherContext`], [`crate::DriverError`].
    ///
    /// # Safety
    /// `raw` is null or a live kernel, and nobody builds its program again while clgraph uses it.
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
        // SAFETY: a live kernel keeps its program alive; the caller's promise for the rest.
        let program = unsafe { Program::from_raw(context, std::ptr::with_exposed_provenance_mut(program)) }?;
        Self::of_program(&program, &name)
    }

    /// A new `opencl3` kernel object of the same function, without arguments.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver makes none.
    pub fn to_opencl3(&self) -> Result<opencl3::kernel::Kernel> {
        let handle = self.create()?;
        Ok(opencl3::kernel::Kernel::new(handle.retained_raw()?))
    }

    /// The function's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.shared_name
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.0.shared_name)
    }

    /// Number of arguments.
    #[must_use]
    pub fn num_args(&self) -> u32 {
        self.0.num_args
    }

    /// The program that it belongs to.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// Whether the program tells the kinds of its parameters, so that arguments are checked before a driver sees them.
    /// Programs that clgraph builds from source do.
    #[must_use]
    pub fn has_arg_info(&self) -> bool {
        self.0.params.is_some()
    }

    pub(crate) fn params(&self) -> Option<&[Param]> {
        self.0.params.as_deref()
    }

    /// What is known for a device, or `None` when the program was not built for it.
    #[inline]
    pub(crate) fn facts(&self, device: &Device) -> Option<&DeviceFacts> {
        self.facts_at(self.place_of(device))
    }

    /// Which of the devices that the program was built for a device is.
    #[inline]
    pub(crate) fn place_of(&self, device: &Device) -> Option<usize> {
        self.0.by_device.iter().position(|(of, _)| of == device)
    }

    /// What is known for one of them.
    #[inline]
    pub(crate) fn facts_at(&self, place: Option<usize>) -> Option<&DeviceFacts> {
        self.0.by_device.get(place?).map(|(_, facts)| facts)
    }

    fn create(&self) -> Result<Handle<KernelKind>> {
        let core = Core::get()?;
        let mut status = 0;
        // SAFETY: **live**; the name ends with zero.
        let raw = unsafe { (core.clCreateKernel)(self.0.program.raw(), self.0.name.as_ptr(), &raw mut status) };
        check("clCreateKernel", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        Ok(unsafe { Handle::from_owned(raw) }?)
    }

    /// A new kernel object without arguments.
    fn object(&self) -> Result<KernelObject> {
        let core = Core::get()?;
        let clone = core
            .clCloneKernel
            .filter(|_| self.0.by_device.iter().all(|(device, _)| device.caps().version >= Version::new(2, 1)));
        let Some(clone) = clone else { return Ok(KernelObject(self.create()?)) };
        let prototype = self.0.prototype.lock().unwrap_or_else(PoisonError::into_inner);
        let mut status = 0;
        // SAFETY: **live**, and **threads**: the lock is held.
        let raw = unsafe { clone(prototype.raw(), &raw mut status) };
        check("clCloneKernel", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        Ok(KernelObject(unsafe { Handle::from_owned(raw) }?))
    }

    /// A new kernel object with its arguments set, which nobody changes from then on.
    pub(crate) fn with_args<'a>(
        &self,
        args: impl Iterator<Item = SetArg<'a>>,
    ) -> Result<KernelObject, KernelObjectError> {
        let mut object = self.object().map_err(KernelObjectError::Create)?;
        object.set_all(args).map_err(|(index, source)| KernelObjectError::Argument { index, source })?;
        Ok(object)
    }

    /// Calls `launch` with an object that has these arguments, and that nobody else has meanwhile: arguments are state of
    /// the object, and an enqueue takes them as they are then.
    #[inline(always)]
    pub(crate) fn launch<'a, R>(
        &self,
        args: impl Iterator<Item = SetArg<'a>>,
        launch: impl FnOnce(&KernelObject) -> R,
    ) -> Result<R, KernelObjectError> {
        let mut launcher = self.0.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        let launcher = match &mut *launcher {
            Some(launcher) => launcher,
            none => none.insert(Launcher {
                object: self.object().map_err(KernelObjectError::Create)?,
                args: vec![Remembered::Nothing; self.0.num_args as usize],
            }),
        };
        for (index, (arg, known)) in args.zip(&mut launcher.args).enumerate() {
            if known.is(&arg) {
                continue;
            }
            *known = Remembered::Nothing;
            launcher.object.set(index, arg).map_err(|source| KernelObjectError::Argument { index, source })?;
            known.remember(&arg);
        }
        Ok(launch(&launcher.object))
    }
}

/// A kernel object that is launched with one set of arguments after the other.
struct Launcher {
    object: KernelObject,
    /// Those that are set, so that only what differs is set anew.
    args: Vec<Remembered>,
}

#[derive(Clone)]
enum Remembered {
    Nothing,
    /// Does not keep the buffer, but keeps its address from being another one's.
    Mem(WeakMem),
    Null,
    Local(usize),
    Value(Vec<u8>),
}

impl Remembered {
    fn is(&self, arg: &SetArg<'_>) -> bool {
        match (self, arg) {
            (Self::Mem(known), SetArg::Mem(mem)) => known.is(mem),
            (Self::Null, SetArg::Null) => true,
            (Self::Local(known), SetArg::Local(size)) => known == size,
            (Self::Value(known), SetArg::Value(bytes)) => known == bytes,
            _ => false,
        }
    }

    fn remember(&mut self, arg: &SetArg<'_>) {
        *self = match arg {
            SetArg::Mem(mem) => Self::Mem(mem.downgrade()),
            SetArg::Null => Self::Null,
            SetArg::Local(size) => Self::Local(*size),
            SetArg::Value(bytes) => Self::Value(bytes.to_vec()),
            // Launches with these have objects of their own.
            SetArg::Indirect(_) => Self::Nothing,
            // There may be another one with this handle later.
            SetArg::Sampler(_) => Self::Nothing,
        };
    }
}

impl PartialEq for Kernel {
    /// The same function of the same program.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.program == other.0.program && self.0.name == other.0.name)
    }
}

impl Eq for Kernel {}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({:?}, {} arguments)", self.name(), self.num_args())
    }
}

/// A value for one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SetArg<'a> {
    Mem(&'a Mem),
    /// A null pointer where a buffer belongs.
    Null,
    /// Bytes of local memory.
    Local(usize),
    Value(&'a [u8]),
    /// Memory with an address that the kernel finds in memory. These stand behind the kernel's own arguments.
    Indirect(&'a Mem),
    Sampler(&'a Sampler),
}

/// Why there is no kernel object.
#[derive(Debug)]
pub(crate) enum KernelObjectError {
    Create(crate::Error),
    Argument { index: usize, source: DriverError },
}

/// A `cl_kernel` with its arguments.
#[derive(Debug)]
pub(crate) struct KernelObject(Handle<KernelKind>);

impl KernelObject {
    /// Sets all arguments. An error tells which it was.
    pub(crate) fn set_all<'a>(&mut self, args: impl Iterator<Item = SetArg<'a>>) -> Result<(), (usize, DriverError)> {
        let (mut svm, mut usm) = (Vec::new(), [false; 3]);
        let mut first = 0;
        for (index, arg) in args.enumerate() {
            match arg {
                SetArg::Indirect(mem) => match mem.kind() {
                    MemoryKind::UsmHost => usm[0] = true,
                    MemoryKind::UsmDevice => usm[1] = true,
                    MemoryKind::UsmShared => usm[2] = true,
                    // No buffer: the checks of a launch let none through.
                    _ => svm.extend(mem.allocation().map(|allocation| allocation.at(0))),
                },
                arg => {
                    self.set(index, arg).map_err(|source| (index, source))?;
                    first = index + 1;
                }
            }
        }
        if !svm.is_empty() {
            self.set_exec_info(CL_KERNEL_EXEC_INFO_SVM_PTRS, &svm).map_err(|source| (first, source))?;
        }
        // By kind, and not one by one: a kernel with a list of USM cannot be enqueued on Intel's CPU runtime (-59).
        for (name, _) in USM_ACCESS.into_iter().zip(usm).filter(|(_, reached)| *reached) {
            self.set_exec_info(name, &[1_u32]).map_err(|source| (first, source))?;
        }
        Ok(())
    }

    fn set_exec_info<T>(&mut self, name: u32, value: &[T]) -> Result<(), DriverError> {
        let call = "clSetKernelExecInfo";
        let lacks = DriverError::new(call, Status(opencl_sys::CL_INVALID_OPERATION));
        let set = Core::get().ok().and_then(|core| core.clSetKernelExecInfo).ok_or(lacks)?;
        // SAFETY: **live**, **lists**, and **threads**: the object is borrowed exclusively. The value has the size given.
        check(call, unsafe { set(self.0.raw(), name, size_of_val(value), value.as_ptr().cast()) })
    }

    /// Sets an argument. Launches that are enqueued have taken theirs with them.
    pub(crate) fn set(&mut self, index: usize, arg: SetArg<'_>) -> Result<(), DriverError> {
        let call = "clSetKernelArg";
        let core = Core::get().map_err(|_| DriverError { call, status: Status(opencl_sys::CL_INVALID_KERNEL) })?;
        let null: *mut c_void = std::ptr::null_mut();
        let raw;
        let (size, value) = match arg {
            SetArg::Mem(mem) => match mem.address(0) {
                Address::Buffer(handle, _) => {
                    raw = handle;
                    (size_of_val(&raw), (&raw const raw).cast::<c_void>())
                }
                Address::Pointer(pointer, allocation) => {
                    return self.set_pointer(core, index, pointer, allocation.api());
                }
            },
            // Set with all of them only: it is a list.
            SetArg::Indirect(_) => return Err(DriverError { call, status: Status(opencl_sys::CL_INVALID_ARG_INDEX) }),
            SetArg::Null => (size_of_val(&null), (&raw const null).cast()),
            SetArg::Sampler(sampler) => {
                raw = sampler.raw();
                (size_of_val(&raw), (&raw const raw).cast())
            }
            SetArg::Local(size) => (size, std::ptr::null()),
            SetArg::Value(bytes) => (bytes.len(), bytes.as_ptr().cast()),
        };
        // SAFETY: **live**, and **threads**: the object is borrowed exclusively. The value has the size given, or is the
        // size of local memory.
        check(call, unsafe { (core.clSetKernelArg)(self.0.raw(), index as u32, size, value) })
    }

    fn set_pointer(&mut self, core: &Core, index: usize, pointer: *mut c_void, api: Api) -> Result<(), DriverError> {
        match api {
            Api::Svm => {
                let call = "clSetKernelArgSVMPointer";
                let set = core.clSetKernelArgSVMPointer;
                let set = set.ok_or(DriverError::new(call, Status(opencl_sys::CL_INVALID_OPERATION)))?;
                // SAFETY: **live**, and **threads**: the object is borrowed exclusively.
                check(call, unsafe { set(self.0.raw(), index as u32, pointer) })
            }
            Api::Usm(fns) => {
                // SAFETY: as above.
                let status = unsafe { (fns.set_arg)(self.0.raw(), index as u32, pointer) };
                check("clSetKernelArgMemPointerINTEL", status)
            }
        }
    }

    pub(super) fn raw(&self) -> cl_kernel {
        self.0.raw()
    }
}

/// All parameters, or `None` when the program does not tell (CL_KERNEL_ARG_INFO_NOT_AVAILABLE).
fn read_params(core: &'static Core, kernel: &Handle<KernelKind>, num_args: u32) -> Option<Vec<Param>> {
    const CALL: &str = "clGetKernelArgInfo";
    let raw = kernel.raw();
    (0..num_args)
        .map(|index| {
            let number = |name| info::value::<u32>(CALL, ask!(core, clGetKernelArgInfo, raw, index, name)).ok();
            let text = |name| info::text(CALL, ask!(core, clGetKernelArgInfo, raw, index, name)).ok();
            // A cl_bitfield, 64 bits, whatever `opencl_sys` makes of the type.
            let qualifier =
                info::value::<u64>(CALL, ask!(core, clGetKernelArgInfo, raw, index, CL_KERNEL_ARG_TYPE_QUALIFIER))
                    .ok()?;
            let type_name = text(CL_KERNEL_ARG_TYPE_NAME)?;
            let access = match number(CL_KERNEL_ARG_ACCESS_QUALIFIER) {
                Some(CL_KERNEL_ARG_ACCESS_READ_ONLY) => Some(ImageUse::ReadOnly),
                Some(CL_KERNEL_ARG_ACCESS_WRITE_ONLY) => Some(ImageUse::WriteOnly),
                Some(CL_KERNEL_ARG_ACCESS_READ_WRITE) => Some(ImageUse::ReadWrite),
                _ => None,
            };
            let space = match number(CL_KERNEL_ARG_ADDRESS_QUALIFIER)? {
                _ if qualifier & u64::from(CL_KERNEL_ARG_TYPE_PIPE) != 0 => Space::Pipe,
                // Only images have an access qualifier, and some have a type of a name of the program's own.
                _ if is_image(&type_name) || access.is_some() => Space::Image,
                _ if type_name == "sampler_t" => Space::Sampler,
                CL_KERNEL_ARG_ADDRESS_GLOBAL | CL_KERNEL_ARG_ADDRESS_CONSTANT => Space::Buffer,
                CL_KERNEL_ARG_ADDRESS_LOCAL => Space::Local,
                _ => Space::Value,
            };
            Some(Param {
                access,
                space,
                name: text(CL_KERNEL_ARG_NAME)?,
                is_const: qualifier & u64::from(CL_KERNEL_ARG_TYPE_CONST) != 0,
                value_size: if space == Space::Value { size_of_type(&type_name) } else { None },
                type_name,
            })
        })
        .collect()
}

/// Whether a type is one of OpenCL C's images, `image2d_array_t` for example.
pub(crate) fn is_image(type_name: &str) -> bool {
    ["image1d", "image2d", "image3d"].iter().any(|kind| type_name.starts_with(kind)) && type_name.ends_with("_t")
}

/// Bytes of a scalar or vector type of OpenCL C by its name; `None` for structs and for types that differ by device.
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
    let max_work_group =
        info::value::<usize>(CALL, ask!(core, clGetKernelWorkGroupInfo, raw, id, CL_KERNEL_WORK_GROUP_SIZE))?;
    let required = info::value::<[usize; 3]>(
        CALL,
        ask!(core, clGetKernelWorkGroupInfo, raw, id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE),
    )?;
    Ok(DeviceFacts {
        max_work_group,
        required_work_group: (required != [0; 3]).then_some(required),
        local_memory: info::value::<u64>(
            CALL,
            ask!(core, clGetKernelWorkGroupInfo, raw, id, CL_KERNEL_LOCAL_MEM_SIZE),
        )?,
        uniform: !device.caps().non_uniform_work_groups || program.needs_uniform_work_groups(device),
    })
}

#[cfg(test)]
mod tests {
    use super::{is_image, size_of_type};

    #[test]
    fn images_are_known_by_their_names_and_others_are_none() {
        assert!(is_image("image2d_t") && is_image("image1d_buffer_t") && is_image("image2d_array_msaa_depth_t"));
        assert!(!is_image("image_size") && !is_image("image2d_size*") && !is_image("imagery_t"));
    }

    /// What argument checks rest on: a wrong size here would refuse a right argument.
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
}
