//! Whether arguments fit a kernel's parameters: before a driver hears of them, as some crash over what does not fit.

use std::fmt;

use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};

use super::launch::Given;
use super::request::Target;
use super::tables::Tables;
use super::transfer::forbid;
use crate::caps::Caps;
use crate::cl::buffer::Region;
use crate::cl::context::InContext;
use crate::cl::image::{ImageAccess, formats, limits, names};
use crate::cl::kernel::{ImageUse, Kernel, Number, Param, Space, is_image};
use crate::error::BuildCause;
use crate::images::{ImageInfo, ImageKind, ImageShape};
use crate::ir::{Arg, KernelId, Mode, NodeId, Op};
use crate::known;

/// What there is among arguments, so that they are looked through once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Among {
    /// Bytes of local memory.
    pub(super) local: u64,
    pub(super) images: bool,
    /// What drivers are known not to keep while a launch waits: samplers, and images that are made of buffers.
    pub(super) loose: bool,
    /// Memory with addresses.
    pub(super) addresses: bool,
}

/// Which argument, for error texts: what to call it, and its number. Made into text only where there is an error.
pub(super) struct Place(pub(super) &'static str, pub(super) usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

/// Whether arguments fit the parameters of a kernel, as far as the program tells.
#[inline(always)] // See `ExecuteKernel::go`.
pub(super) fn check_args(
    target: &Target<'_>,
    kernel: &Kernel,
    args: &[Given],
    caps: &Caps,
) -> Result<Among, BuildCause> {
    let mut among = Among::default();
    let params = kernel.params();
    // First, because without the count nobody knows which argument belongs where.
    if args.len() != kernel.num_args() as usize {
        let names = params.map_or_else(String::new, |params| format!(": it is `{}`", signature(kernel.name(), params)));
        return Err(BuildCause::ArgumentCount { expected: kernel.num_args(), given: args.len(), names });
    }
    for (index, arg) in args.iter().enumerate() {
        if let Some(param) = params.map(|params| &params[index]) {
            check_param(index, arg, param, caps)?;
        }
        match arg {
            Given::Buffer(region, mode) => {
                let what = &Place("argument", index);
                target.check_context(region, what)?;
                // A kernel that reads what it must not, or writes it, is undefined (OpenCL 3.0, clCreateBuffer).
                if mode.writes() {
                    forbid(region, what, CL_MEM_READ_ONLY, "CL_MEM_READ_ONLY", "writing by kernels")?;
                }
                if *mode != Mode::Write {
                    forbid(region, what, CL_MEM_WRITE_ONLY, "CL_MEM_WRITE_ONLY", "reading by kernels")?;
                }
                // Where the program does not tell its qualifiers, an argument may say both and mean one of them.
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
            Given::Value(range, _) => {
                // The limit is that of all arguments together; values lie one behind the other.
                if range.is_empty() || range.end > caps.max_parameter_size {
                    let (given, before, limit) = (range.len(), range.start, caps.max_parameter_size);
                    return Err(BuildCause::ArgumentBytes { index, given, before, limit });
                }
            }
            Given::Local(0) => return Err(BuildCause::NoLocalMemory { index }),
            Given::Sampler(sampler) if sampler.context() != target.context => {
                return Err(BuildCause::OtherContext { what: format!("argument {index}") });
            }
            Given::Local(size) => among.local = among.local.saturating_add(*size as u64),
            Given::Sampler(_) => among.loose = true,
            Given::Null(_) => {}
        }
    }
    Ok(among)
}

fn check_param(index: usize, arg: &Given, param: &Param, caps: &Caps) -> Result<(), BuildCause> {
    let unsupported = |what: &str| BuildCause::NotSupported {
        what: format!("argument {index} `{}`, {what}", param.name),
        why: "clgraph has no pipes: use a buffer".to_owned(),
    };
    let fits = match param.space {
        Space::Buffer => {
            matches!(arg, Given::Null(_)) || matches!(arg, Given::Buffer(region, _) if region.mem.image().is_none())
        }
        Space::Local => matches!(arg, Given::Local(_)),
        // Behind a name of the program's own is a type that nobody tells, of samplers too.
        Space::Value => {
            matches!(arg, Given::Value(..)) || (matches!(arg, Given::Sampler(_)) && param.value_size.is_none())
        }
        Space::Image => return check_image(index, arg, param, caps),
        Space::Sampler => matches!(arg, Given::Sampler(_)),
        Space::Pipe => return Err(unsupported("a pipe")),
    };
    if matches!(arg, Given::Sampler(_)) && param.space == Space::Value && fits && known::misses_named_types(caps) {
        return Err(named_type(index, param, "a sampler", "sampler_t"));
    }
    let name = || format!(" `{}`", param.name);
    if !fits {
        let expected = match param.space {
            Space::Buffer => format!("a buffer (`{}`)", param.type_name),
            Space::Local => format!("local memory (`{}`)", param.type_name),
            Space::Sampler => format!("a sampler (`{}`)", param.type_name),
            _ => format!("a value (`{}`)", param.type_name),
        };
        return Err(BuildCause::ArgumentKind { index, name: name(), expected, given: arg.what() });
    }
    if let Given::Value(_, number) = arg {
        check_number(index, *number, param)?;
    }
    if let (Given::Value(range, _), Some(expected)) = (arg, param.value_size)
        && range.len() != expected
    {
        let type_name = format!("`{}`", param.type_name);
        return Err(BuildCause::ArgumentSize { index, name: name(), type_name, expected, given: range.len() });
    }
    Ok(())
}

/// Whether a number is of the kind that a parameter has: a driver takes any bytes.
#[inline(always)]
pub(super) fn check_number(index: usize, number: Number, param: &Param) -> Result<(), BuildCause> {
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
    let (name, type_name) = (format!(" `{}`", param.name), param.type_name.clone());
    BuildCause::ArgumentType { index, name, type_name, given, expected }
}

/// Whether the device can have such an image: those of a context may differ.
pub(super) fn check_on_device(target: &Target<'_>, shape: ImageShape) -> Result<(), BuildCause> {
    let why = match &target.device.caps().images {
        None => "has none".to_owned(),
        Some(caps) => {
            let limits = limits(caps, shape.kind());
            if shape.region().iter().zip(&limits).all(|(size, limit)| size <= limit) {
                return Ok(());
            }
            format!("has them up to {limits:?}")
        }
    };
    let (what, device) = (format!("an {shape}"), target.device.name());
    Err(BuildCause::NotSupported { what, why: format!("device `{device}` {why}") })
}

/// Whether an image fits its parameter: drivers are known that take any, and crash.
fn check_image(index: usize, arg: &Given, param: &Param, caps: &Caps) -> Result<(), BuildCause> {
    let name = || format!(" `{}`", param.name);
    let image = match arg {
        Given::Buffer(region, mode) => region.mem.image().map(|info| (info, *mode)),
        _ => None,
    };
    let wrong = |given: &'static str| {
        let expected = format!("an image (`{}`)", param.type_name);
        Err(BuildCause::ArgumentKind { index, name: name(), expected, given })
    };
    let Some((info, mode)) = image else { return wrong(arg.what()) };
    let type_name = info.shape.kind().type_name(info.format);
    // Behind a name of the program's own is an image of a kind that nobody tells.
    if type_name != param.type_name && is_image(&param.type_name) {
        return wrong(type_name);
    }
    if !is_image(&param.type_name) && known::misses_named_types(caps) {
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

/// A driver that takes what has a type of the program's own for something else.
fn named_type(index: usize, param: &Param, kind: &str, written: &str) -> BuildCause {
    BuildCause::NotSupported {
        what: format!("argument {index} `{}`, {kind} of type `{}`", param.name, param.type_name),
        why: format!("this driver sees {kind} only where its type is written out, as in `{written}`"),
    }
}

/// Whether a kernel can both read and write an image of this format.
fn check_read_write(target: &Target<'_>, index: usize, info: &ImageInfo, caps: &Caps) -> Result<(), BuildCause> {
    let (kind, format) = (info.shape.kind(), info.format);
    let wrong = |why: String| {
        let what = format!("argument {index}, an {kind} of format {format} that one kernel reads and writes");
        Err(BuildCause::NotSupported { what, why })
    };
    if kind == ImageKind::Image1dBuffer && known::dies_of_read_write_rows(caps) {
        return wrong("this driver crashes over it: use the buffer".to_owned());
    }
    if caps.images.is_none_or(|images| images.max_read_write == 0) {
        return wrong("the device has no such images (CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS is 0)".to_owned());
    }
    match formats(target.context, kind, ImageAccess::ReadWriteInKernel) {
        Ok(has) if !has.contains(&format) => wrong(format!("the device can do so with {}", names(&has))),
        // If the driver cannot say, it cannot say no.
        _ => Ok(()),
    }
}

/// Memory as an argument.
pub(super) struct ArgUse {
    pub(super) index: usize,
    pub(super) region: Region,
    pub(super) mode: Mode,
}

/// Whether an image that other arguments have too, by itself or by its buffer, is only read: otherwise it is undefined what the
/// kernel finds, also behind its own barriers (OpenCL 3.0, clCreateImage and the mapping of image formats).
pub(super) fn check_shared_images(uses: &[ArgUse]) -> Result<(), BuildCause> {
    let bytes = |region: &Region| {
        let start = region.mem.offset_in_root() + region.offset;
        start..start + region.size
    };
    for image in uses.iter().filter(|one| one.region.mem.image().is_some()) {
        let shares = uses.iter().find(|other| {
            let (mine, theirs) = (&image.region.mem, &other.region.mem);
            // Between an image and its buffer, and of one image, ranges do not count.
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

/// A launch that is said to write an argument which its kernel declares `const`.
pub(crate) struct WritesConst {
    pub(crate) node: NodeId,
    /// Of a command group, which launch it is where that is not the active one.
    pub(crate) launch: Option<usize>,
    pub(crate) kernel: KernelId,
    pub(crate) arg: usize,
}

impl Tables {
    /// Where launches contradict their kernels' `const`. Asked of the nodes as they are, whatever brought them there: building,
    /// recording, replacing, parameters, or a group.
    pub(crate) fn writes_to_const(&self) -> Vec<WritesConst> {
        let mut found = Vec::new();
        let has_const =
            |kernel: &Kernel| kernel.params().is_some_and(|params| params.iter().any(|param| param.is_const));
        let looked_at: Vec<bool> = self.kernels.iter().map(has_const).collect();
        if !looked_at.contains(&true) {
            return found;
        }
        let mut look = |node, launch, op: &Op, modes: &mut dyn Iterator<Item = Mode>| {
            let Op::Kernel { kernel, args, .. } = op else { return };
            let Some(params) = self.kernels[kernel.index()].params().filter(|_| looked_at[kernel.index()]) else {
                return;
            };
            // Other uses of memory come after those of the kernel's own parameters.
            for (arg, (given, param)) in self.ir.args(*args).iter().zip(params).enumerate() {
                let mode = if given.view().is_some() { modes.next() } else { None };
                if param.is_const && mode.is_some_and(Mode::writes) && !matches!(given, Arg::Null(_)) {
                    found.push(WritesConst { node, launch, kernel: *kernel, arg });
                }
            }
        };
        for id in self.ir.ids() {
            look(id, None, self.ir.op(id), &mut self.ir.accesses(id).iter().map(|access| access.mode));
        }
        for group in &self.groups {
            let Some(&node) = group.nodes.first() else { continue };
            for (at, other) in group.alternatives.iter().enumerate().filter(|(at, _)| *at != group.active) {
                look(node, Some(at), &other.op, &mut other.modes());
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
