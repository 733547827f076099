//! Checks that arguments match the parameters of a kernel. They come before any call to the driver, because some
//! drivers crash on arguments that do not match.

use std::fmt;

use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};

use crate::caps::Caps;
use crate::cl::memory::region::Region;
use crate::cl::objects::context::InContext;
use crate::cl::objects::image::{formats, limits, names};
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::kernel_params::{ImageUse, Number, Param, Space, is_image};
use crate::command::{Arg, Command};
use crate::error::BuildCause;
use crate::graph::nodes::request::ByHandle;
use crate::graph::nodes::request::Target;
use crate::graph::nodes::transfer::forbid;
use crate::graph::tables::Tables;
use crate::images::{ImageAccess, ImageInfo, ImageKind, ImageShape};
use crate::ir::{ById, KernelId, Mode, NodeId};
use crate::quirks;

/// What the arguments contain, collected in the same pass as the checks.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::graph) struct Among {
    /// The bytes of all local memory arguments.
    pub(in crate::graph) local: u64,
    pub(in crate::graph) images: bool,
    /// Objects that some drivers do not keep alive while a launch waits: samplers, and images that are made of buffers.
    pub(in crate::graph) loose: bool,
    /// Whether there is memory with an address.
    pub(in crate::graph) addresses: bool,
}

/// Names an argument in error texts. Formatted only when there is an error.
pub(in crate::graph) struct ArgumentName(pub(in crate::graph) &'static str, pub(in crate::graph) usize);

impl fmt::Display for ArgumentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

/// Checks that arguments match the parameters of a kernel, as far as the program reports its parameters.
#[inline(always)] // See `ExecuteKernel::go`.
pub(in crate::graph) fn check_args(
    target: &Target<'_>,
    kernel: &Kernel,
    args: &[Arg<ByHandle>],
    caps: &Caps,
) -> Result<Among, BuildCause> {
    let mut among = Among::default();
    let params = kernel.params();
    // The count comes first, because a wrong count means that nobody knows which argument belongs to which parameter.
    if args.len() != kernel.num_args() as usize {
        let signature = params.map(|params| signature(kernel.name(), params));
        return Err(BuildCause::ArgumentCount { expected: kernel.num_args(), given: args.len(), signature });
    }
    for (index, arg) in args.iter().enumerate() {
        if let Some(param) = params.map(|params| &params[index]) {
            check_param(index, arg, param, caps)?;
        }
        match arg {
            Arg::Memory((region, mode)) => {
                let what = &ArgumentName("argument", index);
                target.check_context(region, what)?;
                // A kernel that reads write-only memory, or writes read-only memory, is undefined (OpenCL 3.0,
                // clCreateBuffer).
                if mode.writes() {
                    forbid(region, what, CL_MEM_READ_ONLY, "CL_MEM_READ_ONLY", "writing by kernels")?;
                }
                if *mode != Mode::Write {
                    forbid(region, what, CL_MEM_WRITE_ONLY, "CL_MEM_WRITE_ONLY", "reading by kernels")?;
                }
                // Where the program does not report access qualifiers, an argument that was declared as read and
                // written may only be read, or only be written.
                let both = params.is_some_and(|all| all[index].access == Some(ImageUse::ReadWrite));
                among.addresses |= !region.mem.is_buffer();
                if let Some(info) = region.mem.image() {
                    (among.images, among.loose) = (true, among.loose || info.of_buffer);
                    check_on_device(target, info.shape)?;
                    if both {
                        let access = "reading and writing by one kernel";
                        forbid(region, what, CL_MEM_READ_ONLY, "CL_MEM_READ_ONLY", access)?;
                        forbid(region, what, CL_MEM_WRITE_ONLY, "CL_MEM_WRITE_ONLY", access)?;
                        check_read_write(target, index, info, caps)?;
                    }
                }
            }
            Arg::Value((range, _)) => {
                // The limit is for all arguments together. The values are stored one after another, so the end of this
                // one counts them all.
                if range.is_empty() || range.end > caps.max_parameter_size {
                    let (given, before, limit) = (range.len(), range.start, caps.max_parameter_size);
                    return Err(BuildCause::ArgumentBytes { index, given, before, limit });
                }
            }
            Arg::Local(0) => return Err(BuildCause::NoLocalMemory { index }),
            Arg::Sampler(sampler) if sampler.context() != target.context => {
                return Err(BuildCause::OtherContext { what: format!("argument {index}") });
            }
            Arg::Local(size) => among.local = among.local.saturating_add(*size as u64),
            Arg::Sampler(_) => among.loose = true,
            // The last three have lists of their own.
            Arg::Null(_) | Arg::Indirect(_) | Arg::Global(_) | Arg::Unused(_) => {}
        }
    }
    Ok(among)
}

fn check_param(index: usize, arg: &Arg<ByHandle>, param: &Param, caps: &Caps) -> Result<(), BuildCause> {
    let unsupported = |what: &str| BuildCause::NotSupported {
        what: format!("argument {index} `{}`, {what}", param.name),
        why: "clgraph does not support pipes; use a buffer".to_owned(),
    };
    let fits = match param.space {
        Space::Buffer => {
            matches!(arg, Arg::Null(_)) || matches!(arg, Arg::Memory((region, _)) if region.mem.image().is_none())
        }
        Space::Local => matches!(arg, Arg::Local(_)),
        // A type name of the program's own may stand for any type, also for a sampler's.
        Space::Value => matches!(arg, Arg::Value(_)) || (matches!(arg, Arg::Sampler(_)) && param.value_size.is_none()),
        Space::Image => return check_image(index, arg, param, caps),
        Space::Sampler => matches!(arg, Arg::Sampler(_)),
        Space::Pipe => return Err(unsupported("a pipe")),
    };
    if matches!(arg, Arg::Sampler(_)) && param.space == Space::Value && fits && quirks::ignores_typedefs(caps) {
        return Err(named_type(index, param, "a sampler", "sampler_t"));
    }
    let name = || param.name.clone();
    if !fits {
        let expected = match param.space {
            Space::Buffer => format!("a buffer (`{}`)", param.type_name),
            Space::Local => format!("local memory (`{}`)", param.type_name),
            Space::Sampler => format!("a sampler (`{}`)", param.type_name),
            _ => format!("a value (`{}`)", param.type_name),
        };
        return Err(BuildCause::ArgumentKind { index, name: name(), expected, given: arg.what().to_owned() });
    }
    if let Arg::Value((_, number)) = arg {
        check_number(index, *number, param)?;
    }
    if let (Arg::Value((range, _)), Some(expected)) = (arg, param.value_size)
        && range.len() != expected
    {
        let type_name = param.type_name.clone();
        return Err(BuildCause::ArgumentSize { index, name: name(), type_name, expected, given: range.len() });
    }
    Ok(())
}

/// Checks that a number has the kind that the parameter has: a driver takes any bytes.
#[inline(always)]
pub(in crate::graph) fn check_number(index: usize, number: Number, param: &Param) -> Result<(), BuildCause> {
    if number.class().clashes(param.class) { Err(other_number(index, number, param)) } else { Ok(()) }
}

#[cold]
fn other_number(index: usize, number: Number, param: &Param) -> BuildCause {
    let expected = match &*param.type_name {
        "float" => "an `f32`",
        "double" => "an `f64`",
        "char" => "an `i8`",
        "short" => "an `i16`",
        "int" => "an `i32`",
        "long" => "an `i64`",
        "uchar" | "unsigned char" => "a `u8`",
        "ushort" | "unsigned short" => "a `u16`",
        "uint" | "unsigned int" => "a `u32`",
        _ => "a `u64`",
    };
    let rust = number.name();
    let given = format!("{} `{rust}`", if rust.starts_with('u') { "a" } else { "an" });
    let (name, type_name) = (param.name.clone(), param.type_name.clone());
    BuildCause::ArgumentType { index, name, type_name, given, expected }
}

/// Checks that the device supports an image of this shape: the devices of a context may differ.
pub(in crate::graph) fn check_on_device(target: &Target<'_>, shape: ImageShape) -> Result<(), BuildCause> {
    let why = match &target.device.caps().images {
        None => "has no images; use buffers".to_owned(),
        Some(caps) => {
            let limits = limits(caps, shape.kind());
            if shape.region().iter().zip(&limits).all(|(size, limit)| size <= limit) {
                return Ok(());
            }
            format!("has such images with sizes up to {limits:?} only")
        }
    };
    let (what, device) = (format!("an {shape}"), target.device.name());
    Err(BuildCause::NotSupported { what, why: format!("device `{device}` {why}") })
}

/// Checks that an image matches its parameter: some drivers accept any image, and crash.
fn check_image(index: usize, arg: &Arg<ByHandle>, param: &Param, caps: &Caps) -> Result<(), BuildCause> {
    let name = || param.name.clone();
    let image = match arg {
        Arg::Memory((region, mode)) => region.mem.image().map(|info| (info, *mode)),
        _ => None,
    };
    let wrong = |given: String| {
        let expected = format!("an image (`{}`)", param.type_name);
        Err(BuildCause::ArgumentKind { index, name: name(), expected, given })
    };
    let Some((info, mode)) = image else { return wrong(arg.what().to_owned()) };
    let type_name = info.shape.kind().type_name(info.format);
    // A type name of the program's own may stand for any kind of image.
    if type_name != param.type_name && is_image(&param.type_name) {
        return wrong(format!("an {type_name}"));
    }
    if !is_image(&param.type_name) && quirks::ignores_typedefs(caps) {
        return Err(named_type(index, param, "an image", "read_only image2d_t"));
    }
    let (qualifier, fits) = match param.access {
        Some(ImageUse::ReadOnly) => ("read_only", mode == Mode::Read),
        Some(ImageUse::WriteOnly) => ("write_only", mode == Mode::Write),
        Some(ImageUse::ReadWrite) | None => return Ok(()),
    };
    if fits {
        return Ok(());
    }
    let declared = match mode {
        Mode::Read => "read",
        Mode::Write => "written",
        Mode::ReadWrite => "read and written",
    };
    Err(BuildCause::ImageAccess { index, name: name(), qualifier, declared })
}

/// The error for a driver that does not recognise the type of a parameter whose type has a name of the program's own.
fn named_type(index: usize, param: &Param, kind: &str, written: &str) -> BuildCause {
    BuildCause::NotSupported {
        what: format!("argument {index} `{}`, {kind} of type `{}`", param.name, param.type_name),
        why: format!("this driver recognizes {kind} only by the name of its type; write `{written}` in the kernel"),
    }
}

/// Checks that one kernel can both read and write an image of this format.
fn check_read_write(target: &Target<'_>, index: usize, info: &ImageInfo, caps: &Caps) -> Result<(), BuildCause> {
    let (kind, format) = (info.shape.kind(), info.format);
    let wrong = |why: String| {
        let what = format!("argument {index}, an {kind} of format {format} that one kernel reads and writes");
        Err(BuildCause::NotSupported { what, why })
    };
    if kind == ImageKind::Image1dBuffer && quirks::crashes_on_read_write_buffer_images(caps) {
        return wrong("this driver crashes; use the buffer of the image".to_owned());
    }
    if caps.images.is_none_or(|images| images.max_read_write == 0) {
        let why = "the device has no such images (CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS is 0); use two images, or a \
                   buffer";
        return wrong(why.to_owned());
    }
    match formats(target.context, kind, ImageAccess::ReadWriteInKernel) {
        Ok(has) if !has.contains(&format) => wrong(format!("the device supports this for {} only", names(&has))),
        // A driver that cannot report its formats may still support this one.
        _ => Ok(()),
    }
}

/// Memory as an argument.
pub(in crate::graph) struct ArgUse {
    pub(in crate::graph) index: usize,
    pub(in crate::graph) region: Region,
    pub(in crate::graph) mode: Mode,
}

/// Checks that an image which other arguments use too, directly or through its buffer, is only read. Otherwise the
/// content that the kernel finds is undefined, even after its own barriers (OpenCL 3.0, clCreateImage and the mapping
/// of image formats).
pub(in crate::graph) fn check_shared_images(uses: &[ArgUse]) -> Result<(), BuildCause> {
    let bytes = |region: &Region| {
        let start = region.mem.offset_in_root() + region.offset;
        start..start + region.size
    };
    for image in uses.iter().filter(|one| one.region.mem.image().is_some()) {
        let shares = uses.iter().find(|other| {
            let (mine, theirs) = (&image.region.mem, &other.region.mem);
            // Ranges cannot separate an image from its buffer, or two uses of one image.
            let apart = mine.id() != theirs.id() && !mine.is_made_of(theirs) && !theirs.is_made_of(mine) && {
                let (a, b) = (bytes(&image.region), bytes(&other.region));
                a.end <= b.start || b.end <= a.start
            };
            other.index != image.index
                && mine.root() == theirs.root()
                && !apart
                && (image.mode.writes() || other.mode.writes())
        });
        if let Some(other) = shares {
            return Err(BuildCause::ImageShared { image: image.index, other: other.index });
        }
    }
    Ok(())
}

/// A launch that is declared to write an argument which its kernel declares `const`.
pub(crate) struct WritesConst {
    pub(crate) node: NodeId,
    /// For a command group: the index of the launch, if it is not the active one.
    pub(crate) launch: Option<usize>,
    pub(crate) kernel: KernelId,
    pub(crate) arg: usize,
}

impl Tables {
    /// Finds launches that contradict the `const` of their kernels. It looks at the nodes as they are now, so it covers
    /// building, recording, replacing, parameters, and groups.
    pub(crate) fn writes_to_const(&self) -> Vec<WritesConst> {
        let mut found = Vec::new();
        // Nearly no program has any, so nobody looks at all nodes for it.
        if !self.has_written_const {
            return found;
        }
        let mut look = |node, launch, op: &Command<ById>, modes: &mut dyn Iterator<Item = Mode>| {
            let Command::Kernel { kernel, args, .. } = op else { return };
            let Some(params) = self.kernels[kernel.index()].params() else { return };
            // The accesses of arguments come first, before other uses of memory.
            for (arg, (given, param)) in self.ir.args(*args).iter().zip(params).enumerate() {
                let mode = if given.view().is_some() { modes.next() } else { None };
                if param.is_const && mode.is_some_and(Mode::writes) && !matches!(given, Arg::Null(_)) {
                    found.push(WritesConst { node, launch, kernel: *kernel, arg });
                }
            }
        };
        for id in self.ir.ids() {
            look(id, None, self.ir.command(id), &mut self.ir.accesses(id).iter().map(|access| access.mode));
        }
        for group in &self.groups {
            let Some(&node) = group.nodes.first() else { continue };
            for (at, other) in group.alternatives.iter().enumerate().filter(|(at, _)| *at != group.active) {
                look(node, Some(at), &other.command, &mut other.modes());
            }
        }
        found
    }
}

fn signature(name: &str, params: &[Param]) -> String {
    let params: Vec<_> = params
        .iter()
        .map(|param| {
            let space = if param.space == Space::Local { "local " } else { "" };
            format!("{space}{} {}", param.type_name, param.name)
        })
        .collect();
    format!("{name}({})", params.join(", "))
}
