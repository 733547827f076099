//! Device globals in programs: which ones a program lists, the method by which its kernels access them, and binding
//! them after the program is built.

use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use opencl_sys::CL_TRUE;

use crate::caps::{Caps, GlobalAccess, MemoryKind, Version};
use crate::cl::check;
use crate::cl::commands::command::ByRef;
use crate::cl::commands::enqueue::{self, To, Waits};
use crate::cl::memory::allocation::{self, Allocation, Owner};
use crate::cl::memory::globals::{initialize, own, shared};
use crate::cl::memory::untyped::{Address, Mem};
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::kernel_object::KernelObjectError;
use crate::cl::objects::program::{Program, c_string};
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::command::Arg;
use crate::device_global::Declared;
use crate::device_global::text::{self, Form, Named};
use crate::env;
use crate::error::{DriverError, DriverFault, GlobalError, ProgramError, Result, SetupError};
use crate::ffi::global_variable::GlobalVariableFns;
use crate::quirks;

/// The device globals of a program. Most programs have none.
#[derive(Debug, Default)]
pub(crate) struct ProgramGlobals {
    list: Vec<ProgramGlobal>,
    access: Option<GlobalAccess>,
    /// Whether the program has any kernel.
    has_kernels: bool,
}

/// A device global in a program.
#[derive(Debug)]
pub(crate) struct ProgramGlobal {
    c_name: String,
    pub(crate) declared: Declared,
    form: Form,
    mems: Vec<(Device, Mem)>,
}

impl ProgramGlobal {
    /// Returns its memory on a device of the program's context.
    pub(crate) fn mem(&self, device: &Device) -> Option<&Mem> {
        self.mems.iter().find(|(of, _)| of == device).map(|(_, mem)| mem)
    }

    fn size_error(&self, in_c: usize) -> GlobalError {
        let Declared { name, type_name, size, .. } = self.declared;
        GlobalError::Size { name, type_name, size, c_name: self.c_name.clone(), in_c }
    }
}

impl ProgramGlobals {
    pub(crate) fn list(&self) -> &[ProgramGlobal] {
        &self.list
    }

    /// Returns the memory on a device of a device global that belongs to the program.
    pub(in crate::cl) fn memory_of(&self, global: &Declared, device: &Device) -> Result<Mem, GlobalError> {
        let none = |why| GlobalError::NoProgram { name: global.name, why };
        if !self.has_kernels {
            return Err(none("the program that has the global has no kernel"));
        }
        let found = self.list.iter().find(|known| known.declared.is(global));
        found.and_then(|found| found.mem(device)).cloned().ok_or(none("no program has the global"))
    }

    /// Returns the memory of all device globals on all devices.
    pub(crate) fn mems(&self) -> impl Iterator<Item = &Mem> {
        self.list.iter().flat_map(|global| global.mems.iter().map(|(_, mem)| mem))
    }

    /// Returns the memory that kernels reach through pointers of the program.
    pub(in crate::cl) fn reached(&self, device: &Device) -> impl Iterator<Item = Arg<ByRef<'_>>> {
        let pointers = self.list.iter().filter(|global| global.form == Form::Pointer);
        pointers.filter_map(move |global| global.mem(device).map(Arg::Indirect))
    }

    /// Returns the number of a kernel's visible parameters, and the device globals of its hidden parameters.
    pub(in crate::cl) fn hidden<'p>(
        &self,
        kernel: &str,
        names: Result<impl Iterator<Item = &'p str>, DriverError>,
        num_args: u32,
    ) -> Result<(u32, Vec<usize>), GlobalError> {
        if num_args == 0 || !self.list.iter().any(|global| global.form == Form::Argument) {
            return Ok((num_args, Vec::new()));
        }
        let names = names.map_err(|source| GlobalError::HiddenArguments { kernel: kernel.to_owned(), source })?;
        let mut hidden = Vec::new();
        for name in names {
            let global = text::hidden(name).map(|c_name| self.list.iter().position(|global| global.c_name == c_name));
            match global {
                Some(Some(global)) => hidden.push(global),
                None if hidden.is_empty() => {}
                // The kernel belongs to a program with other device globals, or has parameters after the hidden ones.
                _ => return Err(GlobalError::OtherArguments { kernel: kernel.to_owned(), name: name.to_owned() }),
            }
        }
        Ok((num_args - hidden.len() as u32, hidden))
    }

    /// Returns the description for users.
    pub(crate) fn bindings(&self, device: Option<&Device>) -> Vec<GlobalBinding> {
        let of = |global: &ProgramGlobal| {
            let mem = device.and_then(|device| global.mem(device)).or_else(|| global.mems.first().map(|(_, mem)| mem));
            GlobalBinding {
                c_name: global.c_name.clone(),
                name: global.declared.name,
                bytes: global.declared.size,
                access: self.access.unwrap_or(GlobalAccess::Argument),
                kind: mem.map_or(MemoryKind::Buffer, Mem::kind),
                is_image_scope: global.declared.is_image_scope,
                is_variable: global.form == Form::Variable,
            }
        };
        self.list.iter().map(of).collect()
    }
}

/// How the kernels of a program access a device global.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobalBinding {
    /// Its name in OpenCL C.
    pub c_name: String,
    /// Its full name in Rust: module and name.
    pub name: &'static str,
    /// Its size in bytes.
    pub bytes: usize,
    /// The access method of the program.
    pub access: GlobalAccess,
    /// The kind of its memory.
    pub kind: MemoryKind,
    /// Whether it belongs to the program (`device_image_scope`).
    pub is_image_scope: bool,
    /// Whether it is a variable of the program itself, so that kernels access it directly.
    pub is_variable: bool,
}

impl fmt::Display for GlobalBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { c_name, name, bytes, access, kind, is_image_scope, is_variable } = self;
        let of = if *is_image_scope { ", the program's own" } else { "" };
        write!(f, "`{c_name}` is {name} ({bytes} bytes{of}): ")?;
        if *is_variable { write!(f, "a variable of the program") } else { write!(f, "{kind}, by {access}") }
    }
}

/// The device globals that are listed for a program before it is built.
#[derive(Clone, Debug, Default)]
pub(in crate::cl) struct Listing {
    globals: Vec<(String, Declared)>,
    access: Option<GlobalAccess>,
}

/// The device globals of a program that is being built.
#[derive(Debug)]
pub(in crate::cl) struct Bound {
    access: GlobalAccess,
    /// `None` if the options of the user name a version of OpenCL C.
    std: Option<&'static str>,
    globals: Vec<ProgramGlobal>,
}

impl Listing {
    pub(in crate::cl) fn add(&mut self, c_name: &str, global: Declared) {
        self.globals.push((c_name.to_owned(), global));
    }

    pub(in crate::cl) fn by(&mut self, access: GlobalAccess) {
        self.access = Some(access);
    }

    /// Chooses the access method and allocates the memory, before anything is built. Returns `None` without device
    /// globals.
    pub(in crate::cl) fn bind(&self, context: &Context, options: &str) -> Result<Option<Bound>> {
        if self.globals.is_empty() {
            return Ok(None);
        }
        let registry = context.globals();
        for (at, (c_name, global)) in self.globals.iter().enumerate() {
            let name = global.name;
            if !text::is_identifier(c_name) {
                return Err(GlobalError::NotAName { c_name: c_name.clone(), name }.into());
            }
            if let Some((as_name, before)) =
                self.globals[..at].iter().find(|(as_name, it)| as_name == c_name || it.is(global))
            {
                let for_what = if as_name == c_name {
                    format!("also lists `{}` by this name", before.name)
                } else {
                    format!("also lists the same global as `{as_name}`")
                };
                return Err(GlobalError::ListedTwice { c_name: c_name.clone(), second: name, for_what }.into());
            }
            registry.declare(global)?;
            if global.is_image_scope {
                registry.check_place(global)?;
            }
        }
        let (access, std) = self.access(context, options)?;
        let globals = self.globals.iter().map(|(c_name, global)| {
            let form = form(context, access, global);
            let mem = |device: &Device| -> Result<_> {
                let mem = if global.is_image_scope { own } else { shared }(context, device, global)?;
                Ok((device.clone(), mem))
            };
            let mems = match form {
                // The memory is known only after the program is built.
                Form::Variable => Vec::new(),
                Form::Pointer | Form::Argument => context.devices().iter().map(mem).collect::<Result<_>>()?,
            };
            Ok(ProgramGlobal { c_name: c_name.clone(), declared: *global, form, mems })
        });
        let globals = globals.collect::<Result<_>>()?;
        Ok(Some(Bound { access, std, globals }))
    }

    /// Returns the access method, and the version of OpenCL C that it needs.
    fn access(&self, context: &Context, options: &str) -> Result<(GlobalAccess, Option<&'static str>)> {
        let asked = match (self.access, env::globals().as_deref()) {
            (Some(access), _) => Some(access),
            (None, None) => None,
            (None, Some("named")) => Some(GlobalAccess::NamedWrite),
            (None, Some("kernel")) => Some(GlobalAccess::Kernel),
            (None, Some("argument")) => Some(GlobalAccess::Argument),
            (None, Some(given)) => {
                let (variable, given) = ("CLGRAPH_GLOBALS", given.to_owned());
                return Err(
                    SetupError::Environment { variable, given, allowed: "`named`, `kernel` or `argument`" }.into()
                );
            }
        };
        let all = || context.devices().iter().map(Device::caps);
        let mut accesses = all().next().map(Caps::global_access).unwrap_or_default();
        accesses.retain(|access| all().all(|caps| caps.global_access().contains(access)));
        let is_shared = context.devices().len() > 1 && all().any(quirks::shares_variables);
        if is_shared {
            accesses.retain(|access| *access == GlobalAccess::Argument);
        }
        let std = options.split_whitespace().filter_map(|option| option.strip_prefix("-cl-std=")).next_back();
        let is_old = std.is_some_and(|std| std.starts_with("CL1"));
        let access = match asked {
            Some(access) if access != GlobalAccess::Argument && is_old => {
                let why = "the build options ask for a version of OpenCL C that has no variables (`-cl-std=CL1`); ask \
                           for a newer version, or let clgraph choose the access";
                return Err(GlobalError::Access { access, why: why.to_owned() }.into());
            }
            Some(access) if !accesses.contains(&access) => {
                let has = accesses.iter().map(GlobalAccess::to_string).collect::<Vec<_>>().join(", or ");
                let why = match context.devices().first().map_or("", Device::name) {
                    _ if is_shared => format!(
                        "the driver's devices share variables of a program, so the only access \
                                               is by {has}"
                    ),
                    device => format!("the only access on device `{device}` is by {has}"),
                };
                let why = format!("{why}; ask for this, or let clgraph choose the access");
                return Err(GlobalError::Access { access, why }.into());
            }
            Some(access) => access,
            None if is_old => GlobalAccess::Argument,
            None => accesses.first().copied().unwrap_or(GlobalAccess::Argument),
        };
        let newest = all().all(|caps| caps.version >= Version::new(3, 0));
        let std = match access {
            GlobalAccess::Argument => None,
            _ if std.is_some() => None,
            _ if newest => Some("-cl-std=CL3.0"),
            _ => Some("-cl-std=CL2.0"),
        };
        Ok((access, std))
    }
}

/// Returns the form of a device global in a program with this access method.
fn form(context: &Context, access: GlobalAccess, global: &Declared) -> Form {
    let has_variable = |device: &Device| {
        let fns = device.extensions().global_variables.as_ref();
        fns.is_some_and(|fns| fns.pointer.is_some()) && global.size <= device.caps().max_global_variable_size
    };
    match access {
        GlobalAccess::Argument => Form::Argument,
        GlobalAccess::NamedWrite if global.is_image_scope && context.devices().iter().all(has_variable) => {
            Form::Variable
        }
        GlobalAccess::NamedWrite | GlobalAccess::Kernel => Form::Pointer,
    }
}

impl Bound {
    fn named(&self) -> Vec<Named<'_>> {
        let of = |global: &ProgramGlobal| (global.declared.size, global.form);
        let named = self.globals.iter().map(|global| (global.c_name.as_str(), of(global)));
        named.map(|(c_name, (size, form))| Named { c_name, size, form }).collect()
    }

    /// Returns the option that sets the version of OpenCL C.
    pub(in crate::cl) fn std(&self) -> Option<&'static str> {
        self.std
    }

    /// Returns whether clgraph needs the names of parameters to find the hidden ones.
    pub(in crate::cl) fn needs_arg_info(&self) -> bool {
        self.access == GlobalAccess::Argument
    }

    /// Returns the whole text for the compiler.
    pub(in crate::cl) fn text(&self, sources: &[&str]) -> String {
        let named = self.named();
        let mut all = text::before(&named);
        match sources {
            [one] => all = format!("{all}#line 1\n{one}"),
            many => {
                for (index, source) in many.iter().enumerate() {
                    all = format!("{all}\n#line 1 \"source {index}\"\n{source}");
                }
            }
        }
        all + &text::appended(&named)
    }

    /// Returns the text of a program that reports the sizes of the device globals.
    pub(in crate::cl) fn sizes_text(&self, sources: &[&str]) -> String {
        text::sizes(&sources.join("\n"), &self.named())
    }

    /// Returns the error that explains a failed build, if a device global is the cause.
    pub(in crate::cl) fn explain(
        &self,
        error: &ProgramError,
        sizes: impl Fn() -> Option<Program>,
    ) -> Option<GlobalError> {
        let ProgramError::BuildFailed { log, .. } = error else { return None };
        if log.contains("clgraph_size_of_")
            && let Some(program) = sizes()
        {
            let sized = |global| Some((global, size_in_c(&program, global)?));
            let mut sizes = self.globals.iter().filter_map(sized);
            if let Some((global, bytes)) = sizes.find(|(global, bytes)| global.declared.size != *bytes) {
                return Some(global.size_error(bytes));
            }
        }
        let lacks = |what: &str, global: &ProgramGlobal| {
            let name = format!("'{what}{}'", global.c_name);
            ["undeclared identifier ", "unknown type name "].iter().any(|says| log.contains(&format!("{says}{name}")))
        };
        let names = |global: &ProgramGlobal| (global.c_name.clone(), global.declared.name, log.clone());
        if let Some(global) = self.globals.iter().find(|global| lacks(text::PARAMETER, global)) {
            let (c_name, name, log) = names(global);
            return Some(GlobalError::NoParameter { c_name, name, log });
        }
        let (c_name, name, log) = names(self.globals.iter().find(|global| lacks(text::TYPE, global))?);
        Some(GlobalError::NotDeclared { c_name, name, log })
    }

    /// Binds the device globals to a program that was not built here, after checking its marker kernel.
    pub(in crate::cl) fn into_loaded(self, program: Program) -> Result<Program> {
        let marker = text::marker(&self.named());
        if !program.all_kernel_names()?.contains(&marker) {
            let names: Vec<_> = self.globals.iter().map(|global| format!("`{}`", global.c_name)).collect();
            return Err(GlobalError::NotInProgram { names: names.join(", "), access: self.access }.into());
        }
        self.into_program(program)
    }

    /// Binds the device globals to a program that was built.
    pub(in crate::cl) fn into_program(mut self, program: Program) -> Result<Program> {
        let context = program.context().clone();
        for device in context.devices() {
            if !program.is_built_for(device)? {
                // A binary is for one device only.
                continue;
            }
            let queue = DriverQueue::with_properties(&context, device, QueueProperties::new())?;
            for global in &mut self.globals {
                if global.form == Form::Variable {
                    let mem = variable(&program, device, global)?;
                    initialize(&context, device, &mem, &global.declared)?;
                    global.mems.push((device.clone(), mem));
                }
            }
            match self.access {
                GlobalAccess::NamedWrite => self.write_pointers(&program, device, &queue)?,
                GlobalAccess::Kernel => self.set_pointers(&program, device, &queue)?,
                GlobalAccess::Argument => {}
            }
        }
        let own = self.globals.iter().filter(|global| global.declared.is_image_scope);
        let own: Vec<_> = own.map(|global| global.declared.name).collect();
        let has_kernels = !program.kernel_names()?.is_empty();
        let globals = ProgramGlobals { list: self.globals, access: Some(self.access), has_kernels };
        let program = program.with_globals(globals)?;
        context.globals().take_places(&own, &program)?;
        Ok(program)
    }

    /// Returns the memory that the program's pointers point to, in the order of its variable.
    fn pointees<'a>(&'a self, device: &'a Device) -> Result<Vec<&'a Mem>, DriverError> {
        let none = || DriverError::faulty("clBuildProgram", DriverFault::NoAddress);
        let of = |name: &&str| self.globals.iter().find(|global| global.c_name == **name)?.mem(device);
        text::pointers(&self.named()).iter().map(|name| of(name).ok_or_else(none)).collect()
    }

    /// Sets the program's pointers by the name of their variable.
    fn write_pointers(&self, program: &Program, device: &Device, queue: &DriverQueue) -> Result<()> {
        let call = "clEnqueueWriteGlobalVariableINTEL";
        let addresses = self.pointees(device)?.into_iter().map(|mem| match mem.address(0) {
            Address::Pointer(pointer, _) => Ok(pointer),
            Address::Buffer(..) => Err(DriverError::faulty(call, DriverFault::NoAddress)),
        });
        let addresses: Vec<_> = addresses.collect::<Result<_, _>>()?;
        if addresses.is_empty() {
            return Ok(());
        }
        let fns = functions(device, call)?;
        let name = c_string("the variable's name", text::POINTERS)?;
        let to = To { queue, waits: &Waits::NONE, event: false };
        let written = enqueue::enqueue(call, &to, |_, count, list, event| {
            let (from, size) = (addresses.as_ptr().cast::<c_void>(), size_of_val(addresses.as_slice()));
            // SAFETY: **live**, **lists**; `name` ends with zero; the call blocks until the driver has read the
            // pointers.
            unsafe {
                (fns.write)(queue.raw(), program.raw(), name.as_ptr(), CL_TRUE, size, 0, from, count, list, event)
            }
        });
        drop(written?);
        Ok(())
    }

    /// Sets the program's pointers with a kernel of the program.
    fn set_pointers(&self, program: &Program, device: &Device, queue: &DriverQueue) -> Result<()> {
        let mems = self.pointees(device)?;
        if mems.is_empty() {
            return Ok(());
        }
        let kernel = program.kernel(&text::marker(&self.named()))?;
        let object = kernel.with_args(device, mems.into_iter().map(Arg::Memory)).map_err(|error| match error {
            KernelObjectError::Create(error) => error,
            KernelObjectError::Argument { source, .. } => source.into(),
        })?;
        let to = To { queue, waits: &Waits::NONE, event: true };
        match enqueue::kernel(&to, &object, 1, &[0; 3], &[1; 3], None)? {
            Some(event) => Ok(event.wait()?),
            // The driver returned no event.
            None => Ok(enqueue::last_marker(queue)?.wait()?),
        }
    }
}

fn functions(device: &Device, call: &'static str) -> Result<&'static GlobalVariableFns, DriverError> {
    let lacks = DriverError::faulty(call, DriverFault::Missing);
    device.extensions().global_variables.as_ref().ok_or(lacks)
}

/// Returns a variable of a program as memory.
fn variable(program: &Program, device: &Device, global: &ProgramGlobal) -> Result<Mem> {
    let call = "clGetDeviceGlobalVariablePointerINTEL";
    let lacks = DriverError::faulty(call, DriverFault::Missing);
    let tell = functions(device, call)?.pointer.ok_or(lacks)?;
    let name: CString = c_string("the variable's name", &text::variable(&global.c_name))?;
    let (mut size, mut pointer) = (0_usize, std::ptr::null_mut());
    // SAFETY: **live**; `name` ends with zero, and the output pointers have the types of the function.
    let status = unsafe { tell(device.raw(), program.raw(), name.as_ptr(), &raw mut size, &raw mut pointer) };
    let bytes = global.declared.size;
    check(call, status)?;
    if size != bytes {
        return Err(global.size_error(size).into());
    }
    let pointer = NonNull::new(pointer).ok_or(DriverError::faulty(call, DriverFault::NoAddress))?;
    let kind = device.caps().own_memory_kind();
    let api = allocation::api(device, kind)?;
    let owner = Owner::Program(Arc::new(program.handle().try_clone()?));
    let context = program.context();
    Ok(Mem::of_allocation(Arc::new(Allocation::of(context, device, kind, api, pointer, bytes, owner))))
}

/// Returns the size in OpenCL C that a program made of [`text::sizes`] reports.
fn size_in_c(program: &Program, global: &ProgramGlobal) -> Option<usize> {
    let kernel: Kernel = program.kernel(&format!("clgraph_size__{}", global.c_name)).ok()?;
    let device = program.context().devices().first()?;
    kernel.facts(device)?.required_work_group.map(|size| size[0])
}
