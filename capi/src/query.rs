//! What graphs are made of, as lists, drawings and names; and what devices can do.

use std::ffi::{c_char, c_int};

use rust::{Device, DrawingDetail, Graph};

use crate::graph::{clg_graph, clg_node};
use crate::handle;
use crate::opencl::cl_device_id;
use crate::pointers;
use crate::status::{Failure, Outcome, clg_status, enter};

/// Which nodes of a graph are meant.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_nodes {
    /// All nodes, in the order in which they were added.
    CLG_NODES_ALL = 0,
    /// The nodes that wait for no other node.
    CLG_NODES_ROOTS = 1,
    /// The nodes that a node waits for.
    CLG_NODES_BEFORE = 2,
    /// The nodes that wait for a node.
    CLG_NODES_AFTER = 3,
}

/// Lists nodes of a graph: `which` is a `clg_nodes`, and `of` the node for CLG_NODES_BEFORE and CLG_NODES_AFTER.
///
/// # Safety
/// `nodes` is null or has room for `room` nodes; `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_nodes(
    graph: clg_graph,
    which: i32,
    of: clg_node,
    room: usize,
    nodes: *mut clg_node,
    count: *mut usize,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        let is = |one: clg_nodes| which == one as i32;
        let found = if is(clg_nodes::CLG_NODES_ALL) {
            graph.nodes()
        } else if is(clg_nodes::CLG_NODES_ROOTS) {
            graph.roots()
        } else if is(clg_nodes::CLG_NODES_BEFORE) {
            graph.predecessors(of.node())?
        } else if is(clg_nodes::CLG_NODES_AFTER) {
            graph.successors(of.node())?
        } else {
            return Err(Failure::invalid(format!("{which} is no selection of nodes (clg_nodes)")));
        };
        let found = found.into_iter().map(|node| node.to_raw().into());
        // SAFETY: **caller**.
        unsafe { pointers::give_list("nodes", found, room, nodes, count) }
    })
}

/// Writes what kind of node a node is, for example "kernel".
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_node_kind(
    graph: clg_graph,
    node: clg_node,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let kind = handle::get::<Graph>(graph.addr())?.kind(node.node())?.to_string();
        // SAFETY: **caller**.
        unsafe { pointers::give_text(kind, room, text, size) }
    })
}

/// Writes the label of a node, which is empty if it has none.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_node_label(
    graph: clg_graph,
    node: clg_node,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let label = handle::get::<Graph>(graph.addr())?.label(node.node())?.unwrap_or_default();
        // SAFETY: **caller**.
        unsafe { pointers::give_text(label, room, text, size) }
    })
}

/// Gives a node a label.
///
/// # Safety
/// `label` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_set_node_label(
    graph: clg_graph,
    node: clg_node,
    label: *const c_char,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let label = unsafe { pointers::text("label", label) }?.ok_or_else(|| Failure::null("label"))?;
        Ok(handle::get::<Graph>(graph.addr())?.set_label(node.node(), label)?)
    })
}

/// How much a drawing shows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_drawing_detail {
    /// Edges, kinds, numbers and kernel names. In a large graph, SVG shows nodes that repeat once, with "x N".
    CLG_DRAWING_BRIEF = 0,
    /// Every node, with edges, kinds, numbers and kernel names.
    CLG_DRAWING_FULL = 1,
    /// Every node, with arguments, ranges and addresses too.
    CLG_DRAWING_VERBOSE = 2,
}

/// Reads a `clg_drawing_detail`.
pub(crate) fn detail(detail: i32) -> Outcome<DrawingDetail> {
    let is = |of: clg_drawing_detail| detail == of as i32;
    if is(clg_drawing_detail::CLG_DRAWING_BRIEF) {
        Ok(DrawingDetail::Brief)
    } else if is(clg_drawing_detail::CLG_DRAWING_FULL) {
        Ok(DrawingDetail::Full)
    } else if is(clg_drawing_detail::CLG_DRAWING_VERBOSE) {
        Ok(DrawingDetail::Verbose)
    } else {
        Err(Failure::invalid(format!("{detail} is no detail of drawings (clg_drawing_detail)")))
    }
}

/// Draws the graph in the DOT language. `detail` is a `clg_drawing_detail`. `size` gets the number of bytes with the
/// zero at the end.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_to_dot(
    graph: clg_graph,
    detail: c_int,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let dot = handle::get::<Graph>(graph.addr())?.to_dot(self::detail(detail)?);
        // SAFETY: **caller**.
        unsafe { pointers::give_text(dot, room, text, size) }
    })
}

/// Draws the graph as SVG. `detail` is a `clg_drawing_detail`. `size` gets the number of bytes with the zero at the
/// end.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_to_svg(
    graph: clg_graph,
    detail: c_int,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let svg = handle::get::<Graph>(graph.addr())?.to_svg(self::detail(detail)?)?;
        // SAFETY: **caller**.
        unsafe { pointers::give_text(svg, room, text, size) }
    })
}

/// Writes what clgraph has found out about a device, as JSON: the same as `clgraph devices --json`.
///
/// # Safety
/// `device` is null or a device; `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_device_caps(
    device: cl_device_id,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let device = unsafe { Device::from_raw(device.cast()) }?;
        let caps = serde_json::to_string(device.caps()).map_err(|error| Failure::invalid(error.to_string()))?;
        // SAFETY: **caller**.
        unsafe { pointers::give_text(caps, room, text, size) }
    })
}
