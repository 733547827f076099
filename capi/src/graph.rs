//! Graphs, and the nodes other than kernels and host tasks.

use std::ffi::{c_char, c_void};

use rust::{Device, DrawingDetail, Executable, Graph, HostRead, HostWrite, InContext, Node, Queue, RawNode};

use crate::handle::{self, handled};
use crate::objects::{AnyMemory, clg_memory, clg_queue, clg_range, with_slice};
use crate::pointers::{self, Release, UserData};
use crate::status::{Failure, Outcome, clg_status, enter};

/// What a `clg_graph` names.
pub struct clg_graph_object {
    _private: [u8; 0],
}

/// A graph of commands for one device of one context.
pub type clg_graph = *mut clg_graph_object;

handled!(Graph, 6, "clg_graph");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_graph_retain(object: clg_graph) -> clg_status {
    enter(|| handle::retain::<Graph>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_graph_release(object: clg_graph) -> clg_status {
    enter(|| handle::release::<Graph>(object.addr()))
}

/// A node of a graph, or a write, read or event inside a sub-graph. It is a plain value and keeps nothing alive.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct clg_node {
    /// The number of the graph.
    pub graph: u64,
    /// The position of the node in the order in which nodes were added, from 0.
    pub index: u32,
    /// Which write, read or event inside a sub-graph node; 0 for all other nodes.
    pub part: u32,
}

impl clg_node {
    pub(crate) fn raw(self) -> RawNode {
        RawNode { graph: self.graph, index: self.index, part: self.part }
    }

    pub(crate) fn node(self) -> Node {
        Node::from_raw(self.raw())
    }
}

impl From<RawNode> for clg_node {
    fn from(raw: RawNode) -> Self {
        Self { graph: raw.graph, index: raw.index, part: raw.part }
    }
}

/// What every node can have. Null in its place is nothing of it.
#[repr(C)]
pub struct clg_node_options {
    /// Nodes that the node waits for, beside those that used the same memory before.
    pub after: *const clg_node,
    /// How many.
    pub num_after: usize,
    /// A name for drawings, profiles and errors, or null.
    pub label: *const c_char,
}

/// Options of a node, read from C.
pub(crate) struct Options<'a> {
    pub(crate) after: Vec<Node>,
    pub(crate) label: Option<&'a str>,
}

/// # Safety
/// **caller**.
pub(crate) unsafe fn options<'a>(options: *const clg_node_options) -> Outcome<Options<'a>> {
    if options.is_null() {
        return Ok(Options { after: Vec::new(), label: None });
    }
    // SAFETY: **caller**.
    let options = unsafe { pointers::read("options", options) }?;
    // SAFETY: **caller**.
    let after = unsafe { pointers::list("options->after", options.after, options.num_after) }?;
    // SAFETY: **caller**.
    let label = unsafe { pointers::text("options->label", options.label) }?;
    Ok(Options { after: after.iter().map(|node| node.node()).collect(), label })
}

/// Gives a builder the options of its node.
macro_rules! with_options {
    ($builder:expr, $options:expr) => {{
        let $crate::graph::Options { after, label } = $options;
        let builder = $builder.after(after);
        match label {
            Some(label) => builder.label(label),
            None => builder,
        }
    }};
}
pub(crate) use with_options;

/// Puts a new node where C wants it. Null is nowhere.
pub(crate) fn give_node(node: RawNode, to: *mut clg_node) -> Outcome<()> {
    if !to.is_null() {
        // SAFETY: **caller**.
        unsafe { pointers::place("node", to) }?.set(node.into());
    }
    Ok(())
}

/// Makes a graph for the context and device of a queue.
#[unsafe(no_mangle)]
pub extern "C" fn clg_graph_create(queue: clg_queue, result: *mut clg_graph) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::new(Graph::new(&handle::get::<Queue>(queue.addr())?)?)? as clg_graph);
        Ok(())
    })
}

/// Makes a graph for a device of a context.
///
/// # Safety
/// `context` is null or a live context, and `device` is null or a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_create_for_device(
    context: *mut c_void,
    device: *mut c_void,
    result: *mut clg_graph,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        // SAFETY: **caller**.
        let (context, device) = unsafe { (crate::objects::context(context)?, Device::from_raw(device)?) };
        let graph = Graph::with_properties(context.context(), &device, rust::GraphProperties::new())?;
        place.set(handle::new(graph)? as clg_graph);
        Ok(())
    })
}

/// Returns the number of nodes.
#[unsafe(no_mangle)]
pub extern "C" fn clg_graph_size(graph: clg_graph, result: *mut usize) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::get::<Graph>(graph.addr())?.len());
        Ok(())
    })
}

/// Makes a node wait for another one.
#[unsafe(no_mangle)]
pub extern "C" fn clg_graph_add_edge(graph: clg_graph, before: clg_node, after: clg_node) -> clg_status {
    enter(|| Ok(handle::get::<Graph>(graph.addr())?.add_edge(before.node(), after.node())?))
}

/// Adds a node that does nothing, and only orders others.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_empty(
    graph: clg_graph,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        give_node(with_options!(graph.empty(), options).add()?.to_raw(), node)
    })
}

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
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let (from, to) = (from.slice()?, to.slice()?);
        let copy = with_slice!(from, |from| with_slice!(to, |to| graph.copy(from, to)));
        give_node(with_options!(copy, options).add()?.to_raw(), node)
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
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        // SAFETY: **caller**.
        let pattern: &[u8] = unsafe { pointers::list("pattern", pattern.cast::<u8>(), pattern_size) }?;
        let to = to.slice()?;
        let fill = with_slice!(to, |to| graph.fill_pattern(to, pattern));
        give_node(with_options!(fill, options).add()?.to_raw(), node)
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
    let user = UserData::new(user, release as Release);
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        // SAFETY: **caller**.
        let data = unsafe { pointers::data(data, data_size, user) }?;
        let to = to.slice()?;
        let write: HostWrite<u8> = with_slice!(to, |to| with_options!(graph.write(to, data), options).add()?);
        give_node(write.to_raw(), node)
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
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let from = from.slice()?;
        let read: HostRead<u8> = with_slice!(from, |from| with_options!(graph.read(from), options).add()?);
        give_node(read.to_raw(), node)
    })
}

/// Adds an allocation of memory that belongs to the graph. Each executable has memory of its own for it.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_allocate(
    graph: clg_graph,
    size: usize,
    zeroed: bool,
    options: *const clg_node_options,
    memory: *mut clg_memory,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("memory", memory) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let alloc = with_options!(graph.alloc::<u8>(size), options);
        let memory = if zeroed { alloc.zero_init() } else { alloc }.add()?;
        place.set(handle::new(AnyMemory::Graph(memory))? as clg_memory);
        Ok(())
    })
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
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let AnyMemory::Graph(memory) = handle::get(memory.addr())? else {
            return Err(Failure::invalid("only memory of a graph (clg_graph_allocate) can be freed by a node"));
        };
        give_node(with_options!(graph.free(&memory), options).add()?.to_raw(), node)
    })
}

/// Adds all commands of an executable as one node.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_sub_graph(
    graph: clg_graph,
    executable: crate::execute::clg_executable,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        let executable = handle::get::<Executable>(executable.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        give_node(with_options!(graph.sub_graph(&executable), options).add()?.node().to_raw(), node)
    })
}

/// Adds a node that waits for an event, which each submission is given for it.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_wait_event(
    graph: clg_graph,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        give_node(with_options!(graph.wait_event(), options).add()?.to_raw(), node)
    })
}

/// Adds a node that completes a user event, which each submission is given for it.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_signal_event(
    graph: clg_graph,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        give_node(with_options!(graph.signal_event(), options).add()?.to_raw(), node)
    })
}

/// Draws the graph in the DOT language. `size` gets the number of bytes with the zero at the end.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_to_dot(
    graph: clg_graph,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let dot = handle::get::<Graph>(graph.addr())?.to_dot(DrawingDetail::default());
        // SAFETY: **caller**.
        unsafe { pointers::give_text(dot, room, text, size) }
    })
}

/// Draws the graph as SVG. `size` gets the number of bytes with the zero at the end.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_to_svg(
    graph: clg_graph,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let svg = handle::get::<Graph>(graph.addr())?.to_svg(DrawingDetail::default())?;
        // SAFETY: **caller**.
        unsafe { pointers::give_text(svg, room, text, size) }
    })
}
