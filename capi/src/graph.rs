//! Graphs: their creation, what every node can have, edges, and nodes that only order others.

use std::ffi::c_char;

use rust::{Device, Graph, GraphProperties, InContext, Node, Queue, RawNode};

use crate::handle::{self, handled};
use crate::objects::clg_queue;
use crate::opencl::{cl_context, cl_device_id};
use crate::pointers::{self, Flag, Target};
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

/// A node of a graph, or a write, read, event, branch or loop inside a sub-graph or a body. It is a plain value and keeps nothing alive.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct clg_node {
    /// The number of the graph.
    pub graph: u64,
    /// The position of the node in the order in which nodes were added, from 0.
    pub index: u32,
    /// Which write, read, event, branch or loop inside a node that has executables in it; 0 for all other nodes.
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
    /// A node that gets this command in place of its own, or null. Then no node is added: edges and label stay, so the
    /// other options are empty, and executables get the change when they are updated. Nodes that only order others,
    /// allocations, sub-graphs and events cannot be replaced.
    pub replaces: *const clg_node,
    /// Whether the node also waits for every node that no other node waits for when it is added.
    pub after_all_leaves: Flag,
}

/// Options of a node, read from C.
pub(crate) struct Options<'a> {
    pub(crate) after: Vec<Node>,
    pub(crate) label: Option<&'a str>,
    pub(crate) replaces: Option<clg_node>,
    pub(crate) after_all_leaves: bool,
}

impl Options<'_> {
    /// Fails if a node is named for a command that cannot be replaced.
    pub(crate) fn only_added(self, kind: &str) -> Outcome<Self> {
        match self.replaces {
            Some(_) => Err(Failure::invalid(format!("{kind} cannot replace another node: add it"))),
            None => Ok(self),
        }
    }
}

/// # Safety
/// **caller**.
pub(crate) unsafe fn options<'a>(options: *const clg_node_options) -> Outcome<Options<'a>> {
    if options.is_null() {
        return Ok(Options { after: Vec::new(), label: None, replaces: None, after_all_leaves: false });
    }
    // SAFETY: **caller**.
    let options = unsafe { pointers::read("options", options) }?;
    // SAFETY: **caller**.
    let after = unsafe { pointers::list("options->after", options.after, options.num_after) }?;
    // SAFETY: **caller**.
    let label = unsafe { pointers::text("options->label", options.label) }?;
    let replaces = if options.replaces.is_null() {
        None
    } else {
        // SAFETY: **caller**.
        Some(*unsafe { pointers::read("options->replaces", options.replaces) }?)
    };
    let after = after.iter().map(|node| node.node()).collect();
    Ok(Options { after, label, replaces, after_all_leaves: options.after_all_leaves.is_set() })
}

/// Gives a builder the options of its node.
macro_rules! with_options {
    ($builder:expr, $options:expr) => {{
        let $crate::graph::Options { after, label, after_all_leaves, .. } = $options;
        let mut builder = $builder.after(after);
        if after_all_leaves {
            builder = builder.after_all_leaves();
        }
        match label {
            Some(label) => builder.label(label),
            None => builder,
        }
    }};
}
pub(crate) use with_options;

/// Adds the node of a builder, or gives its command to the node that the options name.
macro_rules! add_or_replace {
    ($builder:expr, $options:expr, $to:expr, |$old:ident| $handle:expr) => {{
        let options = $options;
        let replaces = options.replaces;
        let builder = with_options!($builder, options);
        match replaces {
            None => give_node(builder.add()?.to_raw(), $to),
            Some($old) => {
                builder.replace($handle)?;
                give_node($old.raw(), $to)
            }
        }
    }};
}
pub(crate) use add_or_replace;

/// Puts a new node where C wants it.
pub(crate) fn give_node(node: RawNode, to: Target<'_, clg_node>) -> Outcome<()> {
    if let Some(to) = to {
        to.set(node.into());
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

/// What a graph is like, for `clg_graph_create_for_device`. All false are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_graph_properties {
    /// Edges are not checked for cycles when they are added. A cycle is then found by finalize.
    pub no_cycle_check: Flag,
    /// The graph keeps no references to buffers: they live as long as the graph and its executables are used.
    pub assume_buffer_outlives_graph: Flag,
}

/// Makes a graph for a device of a context. `properties` may be null.
///
/// # Safety
/// `context` is null or a live context, and `device` is null or a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_create_for_device(
    context: cl_context,
    device: cl_device_id,
    properties: *const clg_graph_properties,
    result: *mut clg_graph,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        // SAFETY: **caller**.
        let (context, device) = unsafe { (crate::objects::context(context)?, Device::from_raw(device.cast())?) };
        let mut given = GraphProperties::new();
        if !properties.is_null() {
            // SAFETY: **caller**.
            let properties = unsafe { pointers::read("properties", properties) }?;
            if properties.no_cycle_check.is_set() {
                given = given.no_cycle_check();
            }
            if properties.assume_buffer_outlives_graph.is_set() {
                given = given.assume_buffer_outlives_graph();
            }
        }
        let graph = Graph::with_properties(context.context(), &device, given)?;
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
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let options = options.only_added("an empty node")?;
        give_node(with_options!(graph.empty(), options).add()?.to_raw(), node)
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
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let options = options.only_added("a node of an event")?;
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
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let options = options.only_added("a node of an event")?;
        give_node(with_options!(graph.signal_event(), options).add()?.to_raw(), node)
    })
}
