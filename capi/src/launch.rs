//! Launches of kernels: how C describes them, and the nodes that are made of them.

use std::ffi::c_void;

use rust::{AsRegion, BufferArg, DynamicGlobal, ExecuteKernel, Graph, Kernel, KernelNode, NdRange, Sampler};

use crate::graph::{add_or_replace, clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle;
use crate::image::{AnyImage, clg_image, clg_sampler};
use crate::number;
use crate::objects::{clg_kernel, clg_range, with_slice};
use crate::parameter::{AnyParameter, clg_parameter};
use crate::pointers::{self, Flag};
use crate::program::clg_global;
use crate::status::{Failure, Outcome, clg_status, enter};
use crate::task::clg_use;

/// What an argument of a kernel is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_arg_kind {
    /// A value: `data` points to `size` bytes.
    CLG_ARG_VALUE = 0,
    /// Memory that the kernel only reads: `range`.
    CLG_ARG_READ = 1,
    /// Memory that the kernel only writes: `range`. Bytes that it does not write keep their values.
    CLG_ARG_WRITE = 2,
    /// Memory that the kernel reads and writes: `range`.
    CLG_ARG_READ_WRITE = 3,
    /// Local memory of `size` bytes.
    CLG_ARG_LOCAL = 4,
    /// A null pointer.
    CLG_ARG_NULL = 5,
    /// A parameter of a value, of local memory or of a sampler: `parameter`.
    CLG_ARG_PARAMETER = 6,
    /// A parameter of memory or of an image that the kernel only reads: `parameter`.
    CLG_ARG_PARAMETER_READ = 7,
    /// A parameter of memory or of an image that the kernel only writes: `parameter`.
    CLG_ARG_PARAMETER_WRITE = 8,
    /// A parameter of memory or of an image that the kernel reads and writes: `parameter`.
    CLG_ARG_PARAMETER_READ_WRITE = 9,
    /// An image that the kernel only reads: `image`.
    CLG_ARG_IMAGE_READ = 10,
    /// An image that the kernel only writes: `image`.
    CLG_ARG_IMAGE_WRITE = 11,
    /// An image that the kernel reads and writes: `image`.
    CLG_ARG_IMAGE_READ_WRITE = 12,
    /// A sampler: `sampler`.
    CLG_ARG_SAMPLER = 13,
    /// No argument, but one more parameter of the argument before it: `parameter`. That argument then has the value of
    /// whichever of its parameters was set last.
    CLG_ARG_ALSO_PARAMETER = 14,
}

/// An argument of a kernel. Fields that its kind does not name are not looked at.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_arg {
    /// What it is: a `clg_arg_kind`.
    pub kind: i32,
    /// A size in bytes.
    pub size: usize,
    /// A value, which is copied.
    pub data: *const c_void,
    /// Memory. A kernel gets the whole buffer; the range says which bytes it uses.
    pub range: clg_range,
    /// A parameter.
    pub parameter: clg_parameter,
    /// An image.
    pub image: clg_image,
    /// A sampler.
    pub sampler: clg_sampler,
    /// Of which type a value is, a `clg_value_type`: 0 if it is not said.
    pub value_type: i32,
    /// For memory: how many bytes belong to each work-item, or 0. The program then promises that the work-item with
    /// `get_global_linear_id() == i` touches of this memory only the bytes from `i` times as many on, counted from the address that the
    /// kernel gets. Launches with this promise for all memory that one of them writes can become one (`clg_finalize_options.fuse`).
    /// If the environment variable CLGRAPH_CHECK_ELEMENTWISE is `1` when a graph is finalized, its submissions check the promise.
    pub elementwise: usize,
}

/// How a kernel uses a device global of its program.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_global_use {
    /// The device global.
    pub global: clg_global,
    /// Whether the kernel reads it.
    pub reads: Flag,
    /// Whether the kernel writes it.
    pub writes: Flag,
}

/// A launch of a kernel.
#[repr(C)]
pub struct clg_launch {
    /// The kernel.
    pub kernel: clg_kernel,
    /// Its arguments, in order.
    pub args: *const clg_arg,
    /// How many.
    pub num_args: usize,
    /// The number of dimensions, from 1 to 3.
    pub work_dim: u32,
    /// The first work-item in each dimension.
    pub offset: [usize; 3],
    /// The number of work-items in each dimension.
    pub global: [usize; 3],
    /// The size of a work-group in each dimension, or zeros: the driver chooses.
    pub local: [usize; 3],
    /// The largest number of work-items in each dimension that an update can set, or zeros: the number cannot change.
    pub bound: [usize; 3],
    /// Memory that the kernel reaches by addresses in other memory, or null.
    pub indirect: *const clg_use,
    /// How many.
    pub num_indirect: usize,
    /// The device globals of its program that the kernel uses, or null: all of them, for reading and writing.
    pub globals: *const clg_global_use,
    /// How many.
    pub num_globals: usize,
    /// Whether the kernel uses none of the device globals of its program.
    pub no_globals: Flag,
    /// Whether the kernel prints.
    pub prints: Flag,
}

/// How a kernel uses memory.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Read,
    Write,
    ReadWrite,
}

impl Access {
    pub(crate) fn of(reads: Flag, writes: Flag) -> Outcome<Self> {
        match (reads.is_set(), writes.is_set()) {
            (true, true) => Ok(Self::ReadWrite),
            (true, false) => Ok(Self::Read),
            (false, true) => Ok(Self::Write),
            (false, false) => Err(Failure::invalid("a use of memory is neither a read nor a write")),
        }
    }
}

fn set_memory<T>(to: &mut ExecuteKernel<'_>, memory: &impl BufferArg<T>, access: Access) {
    match access {
        Access::Read => to.set_arg_read(memory),
        Access::Write => to.set_arg_write(memory),
        Access::ReadWrite => to.set_arg_read_write(memory),
    };
}

fn set_indirect<T>(to: &mut ExecuteKernel<'_>, memory: &impl AsRegion<T>, access: Access) {
    match access {
        Access::Read => to.set_indirect_read(memory),
        Access::Write => to.set_indirect_write(memory),
        Access::ReadWrite => to.set_indirect(memory),
    };
}

fn set_global(to: &mut ExecuteKernel<'_>, global: &DynamicGlobal, access: Access) {
    match access {
        Access::Read => to.set_global_read(global),
        Access::Write => to.set_global_write(global),
        Access::ReadWrite => to.set_global_read_write(global),
    };
}

fn add_arg(to: &mut ExecuteKernel<'_>, arg: &clg_arg) -> Outcome<()> {
    use clg_arg_kind as kind;
    let is = |of: kind| arg.kind == of as i32;
    let parameter = || handle::get::<AnyParameter>(arg.parameter.addr());
    let access = |first: [kind; 3]| {
        let at = first.into_iter().position(is)?;
        [Access::Read, Access::Write, Access::ReadWrite].into_iter().nth(at)
    };
    if let Some(access) = access([kind::CLG_ARG_READ, kind::CLG_ARG_WRITE, kind::CLG_ARG_READ_WRITE]) {
        with_slice!(arg.range.slice()?, |memory| set_memory(to, memory, access));
        return Ok(());
    }
    if let Some(access) = access([kind::CLG_ARG_IMAGE_READ, kind::CLG_ARG_IMAGE_WRITE, kind::CLG_ARG_IMAGE_READ_WRITE])
    {
        match handle::get::<AnyImage>(arg.image.addr())? {
            AnyImage::Whole(image) => set_memory(to, &image, access),
            AnyImage::Layers(layers) => set_memory(to, &layers, access),
        }
        return Ok(());
    }
    if let Some(access) =
        access([kind::CLG_ARG_PARAMETER_READ, kind::CLG_ARG_PARAMETER_WRITE, kind::CLG_ARG_PARAMETER_READ_WRITE])
    {
        match parameter()? {
            AnyParameter::Buffer(parameter) => set_memory(to, &*parameter, access),
            AnyParameter::Memory(parameter) => set_memory(to, &*parameter, access),
            AnyParameter::Image(parameter) => set_memory(to, &*parameter, access),
            AnyParameter::Bytes(_) | AnyParameter::Number(_) | AnyParameter::Local(_) | AnyParameter::Sampler(_) => {
                return Err(Failure::invalid("the parameter is not one of memory or of an image"));
            }
        }
        return Ok(());
    }
    if is(kind::CLG_ARG_VALUE) {
        // SAFETY: **caller**.
        number::give_value(to, arg.value_type, unsafe { pointers::value("data", arg.data, arg.size) }?)?;
    } else if is(kind::CLG_ARG_LOCAL) {
        to.set_arg_local_buffer(arg.size);
    } else if is(kind::CLG_ARG_NULL) {
        to.set_arg_null();
    } else if is(kind::CLG_ARG_SAMPLER) {
        to.set_arg(&handle::get::<Sampler>(arg.sampler.addr())?);
    } else if is(kind::CLG_ARG_PARAMETER) {
        match parameter()? {
            AnyParameter::Bytes(parameter) => _ = to.set_arg(&*parameter),
            AnyParameter::Number(parameter) => parameter.give(to),
            AnyParameter::Local(parameter) => _ = to.set_arg(&*parameter),
            AnyParameter::Sampler(parameter) => _ = to.set_arg(&*parameter),
            AnyParameter::Buffer(_) | AnyParameter::Memory(_) | AnyParameter::Image(_) => {
                return Err(Failure::invalid("for a parameter of memory, say how the kernel uses the memory"));
            }
        }
    } else if is(kind::CLG_ARG_ALSO_PARAMETER) {
        match parameter()? {
            AnyParameter::Bytes(parameter) => _ = to.set_arg_also(&parameter),
            AnyParameter::Number(parameter) => parameter.also(to),
            AnyParameter::Local(parameter) => _ = to.set_arg_also(&parameter),
            AnyParameter::Buffer(parameter) => _ = to.set_arg_also(&parameter),
            AnyParameter::Memory(parameter) => _ = to.set_arg_also(&parameter),
            AnyParameter::Image(parameter) => _ = to.set_arg_also(&parameter),
            AnyParameter::Sampler(parameter) => _ = to.set_arg_also(&parameter),
        }
    } else {
        return Err(Failure::invalid(format!("{} is no kind of argument (clg_arg_kind)", arg.kind)));
    }
    Ok(())
}

/// Returns as many numbers of C as dimensions, or none if all are zero.
fn numbers(of: &[usize; 3], dims: usize) -> &[usize] {
    if *of == [0; 3] { &[] } else { &of[..dims] }
}

/// Returns the numbers that a pointer of C points to, or none if it is null or all are zero.
///
/// # Safety
/// **caller**: null, or valid for reads of that many numbers meanwhile.
unsafe fn given_numbers<'a>(what: &str, of: *const usize, dims: usize) -> Outcome<Option<&'a [usize]>> {
    if of.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let given: &[usize] = unsafe { pointers::list(what, of, dims) }?;
    Ok(Some(given).filter(|given| given.iter().any(|number| *number != 0)))
}

fn dimensions(work_dim: u32) -> Outcome<usize> {
    match work_dim {
        1..=3 => Ok(work_dim as usize),
        other => Err(Failure::invalid(format!("work_dim is {other}; it must be 1, 2 or 3"))),
    }
}

/// Gives a launch what C says.
///
/// # Safety
/// **caller**.
pub(crate) unsafe fn fill_in(to: &mut ExecuteKernel<'_>, launch: &clg_launch) -> Outcome<()> {
    // SAFETY: **caller**.
    let args = unsafe { pointers::list("launch->args", launch.args, launch.num_args) }?;
    let mut count = 0_usize;
    for arg in args {
        // What belongs to the argument before has no number of its own.
        count += usize::from(arg.kind != clg_arg_kind::CLG_ARG_ALSO_PARAMETER as i32);
        add_arg(to, arg).map_err(|failure| failure.within(format!("argument {}", count.saturating_sub(1))))?;
        if arg.elementwise > 0 {
            to.set_elementwise(count.saturating_sub(1), arg.elementwise);
        }
    }
    // SAFETY: **caller**.
    let indirect = unsafe { pointers::list("launch->indirect", launch.indirect, launch.num_indirect) }?;
    for one in indirect {
        let access = Access::of(one.reads, one.writes)?;
        with_slice!(one.range.slice()?, |memory| set_indirect(to, memory, access));
    }
    // SAFETY: **caller**.
    let globals = unsafe { pointers::list("launch->globals", launch.globals, launch.num_globals) }?;
    for one in globals {
        let global = handle::get::<DynamicGlobal>(one.global.addr())?;
        set_global(to, &global, Access::of(one.reads, one.writes)?);
    }
    if launch.no_globals.is_set() {
        to.set_no_globals();
    }
    if launch.prints.is_set() {
        to.set_prints();
    }
    let dims = dimensions(launch.work_dim)?;
    to.set_global_work_sizes(&launch.global[..dims]);
    let [bound, offset, local] = [&launch.bound, &launch.offset, &launch.local].map(|sizes| numbers(sizes, dims));
    if !bound.is_empty() {
        to.set_global_work_size_bound(bound);
    }
    if !offset.is_empty() {
        to.set_global_work_offsets(offset);
    }
    if !local.is_empty() {
        to.set_local_work_sizes(local);
    }
    Ok(())
}

/// Reads a launch from C as a node.
///
/// # Safety
/// **caller**.
pub(crate) unsafe fn launch<'g>(graph: &'g Graph, launch: *const clg_launch) -> Outcome<KernelNode<'g>> {
    // SAFETY: **caller**.
    let launch = unsafe { pointers::read("launch", launch) }?;
    let kernel = handle::get::<Kernel>(launch.kernel.addr())?;
    let mut execute = ExecuteKernel::new(&kernel);
    // SAFETY: **caller**.
    unsafe { fill_in(&mut execute, launch) }?;
    Ok(execute.into_node(graph))
}

/// Adds a launch of a kernel, or replaces one: arguments, ranges and, if the driver can, the kernel.
///
/// The program promises what OpenCL leaves to it: the kernel stays inside its memory, uses it as declared, and has no
/// data races, for all values that its parameters get.
///
/// # Safety
/// The promise above. The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_kernel(
    graph: clg_graph,
    launch: *const clg_launch,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let (options, launch) = unsafe { (self::options(options)?, self::launch(&graph, launch)?) };
        // SAFETY: **caller**: the promise of this function.
        unsafe { add_or_replace!(launch, options, node, |old| old.node()) }
    })
}

/// Gives a kernel node another argument, found by its index from 0. The other arguments, the range and all edges stay, and
/// executables get the change when they are updated. It is for nodes whose launch the program has not written itself: those of a
/// capture. An argument keeps its kind, and a value its size.
///
/// # Safety
/// The promise of `clg_graph_kernel`, for the launch with the new argument. `arg` is null or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_set_arg(
    graph: clg_graph,
    node: clg_node,
    index: usize,
    arg: *const clg_arg,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let arg = unsafe { pointers::read("arg", arg) }?;
        let kernel = graph.kernel_of(node.node())?;
        let mut execute = ExecuteKernel::new(&kernel);
        add_arg(&mut execute, arg).map_err(|failure| failure.within(format!("argument {index}")))?;
        if arg.elementwise > 0 {
            execute.set_elementwise(0, arg.elementwise);
        }
        // SAFETY: **caller**: the promise of this function.
        Ok(unsafe { execute.into_node(&graph).replace_arg(node.node(), index) }?)
    })
}

/// Sets the range of a kernel node: up to the bound of its launch. Executables get it when they are updated. `offset`
/// and `local` are as in `clg_launch`, and may be null.
///
/// # Safety
/// `global`, `offset` and `local` are null or point to as many numbers as `work_dim` says. The promise of
/// `clg_graph_kernel` holds for the range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_set_range(
    graph: clg_graph,
    node: clg_node,
    work_dim: u32,
    global: *const usize,
    offset: *const usize,
    local: *const usize,
) -> clg_status {
    enter(|| {
        let (graph, dims) = (handle::get::<Graph>(graph.addr())?, dimensions(work_dim)?);
        // SAFETY: **caller**.
        let global: &[usize] = unsafe { pointers::list("global", global, dims) }?;
        let mut range = NdRange::new(global);
        // SAFETY: **caller**.
        if let Some(offset) = unsafe { given_numbers("offset", offset, dims) }? {
            range = range.offset(offset);
        }
        // SAFETY: **caller**.
        if let Some(local) = unsafe { given_numbers("local", local, dims) }? {
            range = range.work_group(local);
        }
        Ok(graph.set_nd_range(node.node(), range)?)
    })
}
