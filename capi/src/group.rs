//! Groups of launches or of host tasks, of which one is active.

use rust::{CommandGroup, Graph};

use crate::graph::{clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle::{self, handled};
use crate::launch::{clg_launch, launch};
use crate::pointers;
use crate::status::{Outcome, clg_status, enter};

/// What a `clg_command_group` names.
pub struct clg_command_group_object {
    _private: [u8; 0],
}

/// Several launches, or several host tasks, of which one is active.
pub type clg_command_group = *mut clg_command_group_object;

handled!(CommandGroup, 16, "clg_command_group");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_command_group_retain(object: clg_command_group) -> clg_status {
    enter(|| handle::retain::<CommandGroup>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_command_group_release(object: clg_command_group) -> clg_status {
    enter(|| handle::release::<CommandGroup>(object.addr()))
}

/// Makes a group of launches, of which the first is active. They use the same memory in the same ways. A node of it is
/// added by `clg_graph_command_group_node`.
///
/// # Safety
/// The promise of `clg_graph_kernel`, for each launch. `launches` points to as many launches as `num_launches` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_command_group(
    graph: clg_graph,
    launches: *const clg_launch,
    num_launches: usize,
    result: *mut clg_command_group,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let (place, all) =
            unsafe { (pointers::place("result", result)?, pointers::list("launches", launches, num_launches)?) };
        let read = |(index, one): (usize, &clg_launch)| {
            // SAFETY: **caller**.
            let launch = unsafe { launch(&graph, one) };
            launch.map_err(|failure| failure.within(format!("launch {index}")))
        };
        let launches: Vec<_> = all.iter().enumerate().map(read).collect::<Outcome<_>>()?;
        // SAFETY: **caller**: the promise of this function.
        let group = unsafe { graph.command_group(launches) }?;
        place.set(handle::new(group)? as clg_command_group);
        Ok(())
    })
}

/// Adds a node of a group: it does what is active in the group.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_command_group_node(
    graph: clg_graph,
    group: clg_command_group,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?.only_added("a node of a group")?;
        let group = handle::get::<CommandGroup>(group.addr())?;
        give_node(with_options!(graph.command_group_node(&group), options).add()?.to_raw(), node)
    })
}

/// Makes another launch or host task of a group active, by its index from 0. Executables get it when they are updated.
#[unsafe(no_mangle)]
pub extern "C" fn clg_command_group_set_active(group: clg_command_group, index: usize) -> clg_status {
    enter(|| Ok(handle::get::<CommandGroup>(group.addr())?.set_active_index(index)?))
}

/// Returns which launch or host task of a group is active, by its index from 0.
#[unsafe(no_mangle)]
pub extern "C" fn clg_command_group_active(group: clg_command_group, result: *mut usize) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::get::<CommandGroup>(group.addr())?.active_index()?);
        Ok(())
    })
}
