//! Kernel nodes and their arguments.

use std::ffi::c_void;

use rust::{Graph, Kernel, KernelNode};

use crate::graph::{clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle;
use crate::objects::{AnyParameter, clg_kernel, clg_parameter, clg_range, with_slice};
use crate::pointers;
use crate::status::{Failure, Outcome, clg_status, enter};

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
    /// A parameter of a value or of local memory: `parameter`.
    CLG_ARG_PARAMETER = 6,
    /// A parameter of memory that the kernel only reads: `parameter`.
    CLG_ARG_PARAMETER_READ = 7,
    /// A parameter of memory that the kernel only writes: `parameter`.
    CLG_ARG_PARAMETER_WRITE = 8,
    /// A parameter of memory that the kernel reads and writes: `parameter`.
    CLG_ARG_PARAMETER_READ_WRITE = 9,
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
}

fn add_arg<'g>(launch: KernelNode<'g>, index: usize, arg: &clg_arg) -> Outcome<KernelNode<'g>> {
    use clg_arg_kind as kind;
    let in_arg = |failure: Failure| failure.within(format!("argument {index}"));
    let slice = || arg.range.slice().map_err(in_arg);
    let parameter = || handle::get::<AnyParameter>(arg.parameter.addr()).map_err(in_arg);
    let memory = || match parameter()? {
        AnyParameter::Memory(parameter) => Ok(parameter),
        _ => Err(in_arg(Failure::invalid("the parameter is not one of memory"))),
    };
    let is = |of: kind| arg.kind == of as i32;
    Ok(if is(kind::CLG_ARG_VALUE) {
        // SAFETY: **caller**.
        launch.bytes(unsafe { pointers::list("data", arg.data.cast::<u8>(), arg.size) }.map_err(in_arg)?)
    } else if is(kind::CLG_ARG_READ) {
        with_slice!(slice()?, |memory| launch.read(memory))
    } else if is(kind::CLG_ARG_WRITE) {
        with_slice!(slice()?, |memory| launch.write(memory))
    } else if is(kind::CLG_ARG_READ_WRITE) {
        with_slice!(slice()?, |memory| launch.read_write(memory))
    } else if is(kind::CLG_ARG_LOCAL) {
        launch.local::<u8>(arg.size)
    } else if is(kind::CLG_ARG_NULL) {
        launch.null()
    } else if is(kind::CLG_ARG_PARAMETER) {
        match parameter()? {
            AnyParameter::Bytes(parameter) => launch.arg(&*parameter),
            AnyParameter::Local(parameter) => launch.arg(&*parameter),
            AnyParameter::Memory(_) => {
                return Err(in_arg(Failure::invalid("for a parameter of memory, say how the kernel uses the memory")));
            }
        }
    } else if is(kind::CLG_ARG_PARAMETER_READ) {
        launch.read(&*memory()?)
    } else if is(kind::CLG_ARG_PARAMETER_WRITE) {
        launch.write(&*memory()?)
    } else if is(kind::CLG_ARG_PARAMETER_READ_WRITE) {
        launch.read_write(&*memory()?)
    } else {
        return Err(in_arg(Failure::invalid(format!("{} is no kind of argument (clg_arg_kind)", arg.kind))));
    })
}

/// Reads a launch from C.
///
/// # Safety
/// **caller**.
unsafe fn launch<'g>(graph: &'g Graph, launch: *const clg_launch) -> Outcome<KernelNode<'g>> {
    // SAFETY: **caller**.
    let launch = unsafe { pointers::read("launch", launch) }?;
    let kernel = handle::get::<Kernel>(launch.kernel.addr())?;
    // SAFETY: **caller**.
    let args = unsafe { pointers::list("launch->args", launch.args, launch.num_args) }?;
    let mut node = graph.kernel(&kernel);
    for (index, arg) in args.iter().enumerate() {
        node = add_arg(node, index, arg)?;
    }
    let has = |sizes: &[usize; 3]| sizes.iter().any(|size| *size != 0);
    macro_rules! dimensions {
        ($($dims:literal $sizes:expr;)*) => {
            match launch.work_dim {
                $($dims => {
                    let of = |all: &[usize; 3]| -> [usize; $dims] { $sizes(all) };
                    node = node.range(of(&launch.global));
                    if has(&launch.bound) {
                        node = node.range_up_to(of(&launch.bound));
                    }
                    if has(&launch.offset) {
                        node = node.offset(of(&launch.offset));
                    }
                    if has(&launch.local) {
                        node = node.work_group(of(&launch.local));
                    }
                })*
                other => return Err(Failure::invalid(format!("work_dim is {other}; it must be 1, 2 or 3"))),
            }
        };
    }
    dimensions! {
        1 |all: &[usize; 3]| [all[0]];
        2 |all: &[usize; 3]| [all[0], all[1]];
        3 |all: &[usize; 3]| *all;
    }
    Ok(node)
}

/// Adds a launch of a kernel.
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
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        // SAFETY: **caller**.
        let launch = unsafe { self::launch(&graph, launch) }?;
        // SAFETY: **caller**: the promise of this function.
        let added = unsafe { with_options!(launch, options).add() }?;
        give_node(added.to_raw(), node)
    })
}

/// Replaces the launch of a kernel node: arguments, ranges and, if the node was added so, the kernel. Edges stay.
/// Executables get the change when they are updated.
///
/// # Safety
/// As of `clg_graph_kernel`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_replace_kernel(
    graph: clg_graph,
    node: clg_node,
    launch: *const clg_launch,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let launch = unsafe { self::launch(&graph, launch) }?;
        // SAFETY: **caller**: the promise of this function.
        Ok(unsafe { launch.replace(node.node()) }?)
    })
}
