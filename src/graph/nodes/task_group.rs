//! Command groups of host tasks: several functions for one node, of which one is active.
//!
//! A node of such a group is an ordinary host task. Choosing another function replaces the function of the node, so
//! code that reads the node, or updates an executable, need not know of the group.

use std::sync::Arc;

use crate::cl::memory::region::Region;
use crate::command::Command;
use crate::error::{BuildError, GroupError, Result};
use crate::graph::nodes::command_group::{CommandGroup, Member, Which, same_accesses};
use crate::graph::nodes::host_task::{HostTaskNode, Task, TaskFn};
use crate::graph::nodes::request::Requested;
use crate::graph::tables::Tables;
use crate::graph::writer::Writer;
use crate::graph::{After, Graph};
use crate::ir::{Access, ById, Mode, NodeId};

/// A group in a graph's tables.
#[derive(Clone, Debug)]
pub(crate) struct TaskGroup {
    functions: Vec<TaskFn>,
    pub(in crate::graph) active: usize,
    /// The memory that every function uses.
    uses: Vec<(Region, Mode)>,
    pub(in crate::graph) nodes: Vec<NodeId>,
}

impl TaskGroup {
    pub(in crate::graph) fn len(&self) -> usize {
        self.functions.len()
    }
}

impl Graph {
    /// Makes a group of host tasks, which can then be added as one node or several
    /// ([`command_group_node`](Self::command_group_node)).
    ///
    /// Tasks must have no `after` or `label`: the node has them. All tasks declare that they use the same memory in the
    /// same way.
    ///
    /// # Errors
    /// Those of [`HostTaskNode::add`] for each task; [`GroupError::Empty`] for an empty list,
    /// [`GroupError::Options`] for a task with `after` or `label`, and [`GroupError::Accesses`] for tasks
    /// whose memory differs.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let tasks = ["left", "right"].map(|word| {
    ///     let sender = sender.clone();
    ///     graph.host_task(move |_| sender.send(word))
    /// });
    /// let group = graph.host_task_group(tasks)?;
    /// let node = graph.command_group_node(&group).add()?;
    /// let executable = graph.finalize(Finalize::new().updatable())?;
    /// group.set_active_index(1)?;
    /// executable.update(&node)?;
    /// executable.submit(&queue)?.wait()?;
    /// assert_eq!(receiver.recv(), Ok("right"));
    /// # Ok(()) }
    /// ```
    pub fn host_task_group<'g>(&self, tasks: impl IntoIterator<Item = HostTaskNode<'g>>) -> Result<CommandGroup> {
        let tasks: Vec<(Task, After)> = tasks.into_iter().map(HostTaskNode::into_parts).collect();
        let fail = |at: usize, cause| BuildError::new(format!("host task {at} of a command group"), cause);
        let what = "host task";
        let Some((first, _)) = tasks.first() else {
            return Err(BuildError::new("command group", GroupError::Empty { what }).into());
        };
        let uses = first.uses.clone();
        for (at, (task, after)) in tasks.iter().enumerate() {
            if after.waits() || after.label.is_some() {
                return Err(fail(at, GroupError::Options { what }.into()).into());
            }
            task.check_memory(&self.target()).map_err(|cause| fail(at, cause))?;
        }
        let mut state = self.lock();
        let crate::graph::State { tables, index, .. } = &mut *state;
        let mut to = Writer { tables: Arc::make_mut(tables), index };
        let all: Vec<Vec<Access>> = tasks
            .iter()
            .map(|(task, _)| task.uses.iter().map(|(region, mode)| to.access(region, *mode)).collect())
            .collect();
        let wrong = all.iter().position(|accesses| !same_accesses(&all[0], accesses, &to.tables.ir.views));
        // A group has no accesses of its own, so these are released.
        all.iter().flatten().for_each(|access| to.release(access.view));
        if let Some(at) = wrong {
            let dropped = state.dropped();
            drop(state);
            drop(dropped);
            return Err(fail(at, GroupError::Accesses { what }.into()).into());
        }
        let functions = tasks.into_iter().map(|(task, _)| task.function.at_home(self.id())).collect();
        to.tables.task_groups.push(TaskGroup { functions, active: 0, uses, nodes: Vec::new() });
        let which = Which::Tasks(to.tables.task_groups.len() - 1);
        let dropped = state.dropped();
        drop(state);
        drop(dropped);
        Ok(CommandGroup::new(self.weak(), which))
    }
}

impl Member {
    /// Adds a node of a group of host tasks to the tables.
    pub(in crate::graph) fn lower_task(
        group: usize,
        state: &mut Writer<'_>,
        accesses: &mut Vec<Access>,
    ) -> Option<Command<ById>> {
        let node = NodeId(state.ir.len() as u32);
        let group = state.tables.task_groups.get_mut(group)?;
        group.nodes.push(node);
        let function = group.functions.get(group.active)?.clone();
        Requested::new(Command::Task(function), group.uses.clone()).lower(state, accesses)
    }
}

impl Tables {
    /// Makes another function of a group the active one, in all nodes of the group.
    pub(in crate::graph) fn activate_task(&mut self, group: usize, active: usize) {
        let Some(group) = self.task_groups.get_mut(group) else { return };
        let Some(function) = group.functions.get(active) else { return };
        group.active = active;
        for node in &group.nodes {
            if let Command::Task(task) = self.ir.command(*node) {
                let of = &mut self.tasks[task.index()];
                // The group keeps the previous function.
                *of = of.replaced_by(function);
            }
        }
    }

    /// Whether a node belongs to a group of host tasks.
    pub(in crate::graph) fn is_in_task_group(&self, node: NodeId) -> bool {
        self.task_groups.iter().any(|group| group.nodes.contains(&node))
    }
}
