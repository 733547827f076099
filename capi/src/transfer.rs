//! Nodes that copy, fill, write and read memory, and that begin and end the life of memory of a graph.

use std::ffi::c_void;

use rust::{Graph, HostRead, HostWrite};

use crate::graph::{add_or_replace, clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle;
use crate::objects::{AnyMemory, clg_memory, clg_range, with_slice};
use crate::pointers::{self, Release, UserData};
use crate::status::{Failure, Outcome, clg_status, enter};

/// Adds a copy of bytes from memory to memory, of ranges of one size.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_copy(
    graph: clg_graph,
    from: clg_range,
    to: clg_range,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let (from, to) = (from.slice()?, to.slice()?);
        let copy = with_slice!(from, |from| with_slice!(to, |to| graph.copy(from, to)));
        add_or_replace!(copy, options, node, |old| old.node())
    })
}

/// Adds a fill of memory with a pattern, of a size that divides the size of the range.
///
/// # Safety
/// `pattern` points to as many bytes as `pattern_size` says; the other pointers are null or point to what their types
/// say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_fill(
    graph: clg_graph,
    to: clg_range,
    pattern: *const c_void,
    pattern_size: usize,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let to = to.slice()?;
        let size = with_slice!(to, |to| to.size());
        // SAFETY: **caller**.
        let pattern = unsafe { pointers::pattern(pattern, pattern_size, size) }?;
        let fill = with_slice!(to, |to| graph.fill_pattern(to, pattern));
        add_or_replace!(fill, options, node, |old| old.node())
    })
}

/// Adds a write of host data to memory. Each submission writes this data, or data of its own: the node is also the
/// name of the input.
///
/// Without `release` the data is copied. With `release` it is used where it is, until `release(user)` gives it back: it
/// is called exactly once, on any thread, also if this call fails.
///
/// # Safety
/// `data` points to as many bytes as the range has; the other pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_write(
    graph: clg_graph,
    to: clg_range,
    data: *const c_void,
    data_size: usize,
    release: Option<extern "C" fn(user: *mut c_void)>,
    user: *mut c_void,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        let user = UserData::new(user, release as Release);
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let to = to.slice()?;
        let size = with_slice!(to, |to| to.size());
        // SAFETY: **caller**.
        let data = unsafe { pointers::data(data, data_size, size, user) }?;
        let write = with_slice!(to, |to| graph.write::<u8>(to, data));
        add_or_replace!(write, options, node, |old| &HostWrite::<u8>::from_raw(old.raw()))
    })
}

/// Adds a read of memory into host memory. The node is also the name of the result of each submission.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_read(
    graph: clg_graph,
    from: clg_range,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let from = from.slice()?;
        let read = with_slice!(from, |from| graph.read::<u8>(from));
        add_or_replace!(read, options, node, |old| &HostRead::<u8>::from_raw(old.raw()))
    })
}

/// Adds an allocation of `size` bytes of memory that belongs to the graph. Each executable has memory of its own for it.
/// With `zero_init` it is zero when the graph is finalized; submissions do not make it zero again.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_allocate(
    graph: clg_graph,
    size: usize,
    zero_init: bool,
    options: *const clg_node_options,
    memory: *mut clg_memory,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("memory", memory) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?.only_added("an allocation")?;
        let alloc = with_options!(graph.alloc::<u8>(size), options);
        let memory = if zero_init { alloc.zero_init() } else { alloc }.add()?;
        place.set(handle::new(AnyMemory::Graph(memory))? as clg_memory);
        Ok(())
    })
}

/// Returns memory of a graph from its handle.
pub(crate) fn graph_memory(memory: clg_memory) -> Outcome<rust::GraphMemory<u8>> {
    match handle::get(memory.addr())? {
        AnyMemory::Graph(memory) => Ok(memory),
        _ => Err(Failure::invalid("only memory of a graph (clg_graph_allocate) is freed by a command")),
    }
}

/// Adds the end of the life of memory of the graph.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_free(
    graph: clg_graph,
    memory: clg_memory,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?.only_added("the end of an allocation")?;
        give_node(with_options!(graph.free(&graph_memory(memory)?), options).add()?.to_raw(), node)
    })
}

/// Two sides of a copy of a rectangle or a box. Origins and region: bytes, rows, slices.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_rect {
    /// Where the copy begins in the source.
    pub src_origin: [usize; 3],
    /// Where it begins in the destination.
    pub dst_origin: [usize; 3],
    /// How much is copied.
    pub region: [usize; 3],
    /// The bytes from one row of the source to the next, or 0: rows are packed.
    pub src_row_pitch: usize,
    /// The bytes from one slice of the source to the next, or 0: slices are packed.
    pub src_slice_pitch: usize,
    /// The bytes from one row of the destination to the next, or 0.
    pub dst_row_pitch: usize,
    /// The bytes from one slice of the destination to the next, or 0.
    pub dst_slice_pitch: usize,
}

/// Adds a copy of a rectangle or a box from memory to memory.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_copy_rect(
    graph: clg_graph,
    from: clg_range,
    to: clg_range,
    rect: *const clg_rect,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let (options, rect) = unsafe { (self::options(options)?, pointers::read("rect", rect)?) };
        let (from, to) = (from.slice()?, to.slice()?);
        let copy = with_slice!(from, |from| with_slice!(to, |to| graph.copy_rect(from, to)))
            .src_origin(rect.src_origin)
            .dst_origin(rect.dst_origin)
            .region(rect.region)
            .src_pitch(rect.src_row_pitch, rect.src_slice_pitch)
            .dst_pitch(rect.dst_row_pitch, rect.dst_slice_pitch);
        add_or_replace!(copy, options, node, |old| old.node())
    })
}

/// What a driver is told about memory with an address.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_hint {
    /// The device uses it soon.
    CLG_HINT_TO_DEVICE = 0,
    /// The host uses it soon.
    CLG_HINT_TO_HOST = 1,
    /// The advice of the vendor's extension.
    CLG_HINT_ADVICE = 2,
}

/// Adds a hint about memory: a `clg_hint`, and for CLG_HINT_ADVICE a number of the vendor's extension.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_hint(
    graph: clg_graph,
    range: clg_range,
    hint: i32,
    advice: u32,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let range = range.slice()?;
        let is = |of: clg_hint| hint == of as i32;
        let hint = if is(clg_hint::CLG_HINT_TO_DEVICE) {
            with_slice!(range, |range| graph.prefetch(range))
        } else if is(clg_hint::CLG_HINT_TO_HOST) {
            with_slice!(range, |range| graph.prefetch_to_host(range))
        } else if is(clg_hint::CLG_HINT_ADVICE) {
            with_slice!(range, |range| graph.advise(range, advice))
        } else {
            return Err(Failure::invalid(format!("{hint} is no hint (clg_hint)")));
        };
        add_or_replace!(hint, options, node, |old| old.node())
    })
}
