//! Command groups of host tasks: several functions for one node, of which one is active.
//!
//! A node of one is a host task like any other. What is active is put into its place when it changes, so whoever looks at the
//! node, or updates an executable, need not know of the group.

use std::sync::Arc;

use super::group::{CommandGroup, Member, Which, same_accesses};
use super::host_task::{HostTaskNode, Task, TaskFn};
use super::tables::{Tables, Writer};
use super::{After, Graph};
use crate::cl::buffer::Region;
use crate::error::{BuildCause, BuildError, Result};
use crate::ir::{Access, Mode, NodeId, Op};

/// A group in a graph's tables.
#[derive(Clone, Debug)]
pub(crate) struct TaskGroup {
    functions: Vec<TaskFn>,
    pub(super) active: usize,
    /// The memory that every function uses.
    uses: Vec<(Region, Mode)>,
    pub(super) nodes: Vec<NodeId>,
}

impl TaskGroup {
    pub(super) fn len(&self) -> usize {
        self.functions.len()
    }
}

impl Graph {
    /// Makes a group of host tasks, to be added as one node or several ([`group`](Self::group)). What their `after` says must be
    /// nothing, because it is the node that waits, and all say that they use the same memory in the same way.
    ///
    /// # Errors
    /// Those of [`HostTaskNode::add`] for each; [`BuildCause::Group`] for an empty list, for a task with `after` or
    /// `label`, and for tasks whose memory differs.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let (say, said) = std::sync::mpsc::channel();
    /// let tasks = ["left", "right"].map(|word| {
    ///     let say = say.clone();
    ///     graph.host_task(move |_| say.send(word))
    /// });
    /// let group = graph.host_task_group(tasks)?;
    /// let node = graph.group(&group).add()?;
    /// let executable = graph.finalize(Finalize::new().updatable())?;
    /// group.set_active_index(1)?;
    /// executable.update(&node)?;
    /// executable.submit(&queue)?.wait()?;
    /// assert_eq!(said.recv(), Ok("right"));
    /// # Ok(()) }
    /// ```
    pub fn host_task_group<'g>(&self, tasks: impl IntoIterator<Item = HostTaskNode<'g>>) -> Result<CommandGroup> {
        let tasks: Vec<(Task, After)> = tasks.into_iter().map(HostTaskNode::into_parts).collect();
        let fail = |at: usize, cause| BuildError::new(format!("host task {at} of a command group"), cause);
        let group = |why: &str| BuildCause::Group { why: why.to_owned() };
        let Some((first, _)) = tasks.first() else {
            return Err(BuildError::new("command group".to_owned(), group("it has no host task")).into());
        };
        let uses = first.uses.clone();
        for (at, (task, after)) in tasks.iter().enumerate() {
            if after.waits() || after.label.is_some() {
                return Err(
                    fail(at, group("give `after` and `label` to the node, because they hold for all tasks")).into()
                );
            }
            task.check_memory(&self.target()).map_err(|cause| fail(at, cause))?;
        }
        let mut state = self.lock();
        let super::State { tables, index, .. } = &mut *state;
        let mut to = Writer { tables: Arc::make_mut(tables), index };
        let all: Vec<Vec<Access>> = tasks
            .iter()
            .map(|(task, _)| task.uses.iter().map(|(region, mode)| to.access(region, *mode)).collect())
            .collect();
        let wrong = all.iter().position(|accesses| !same_accesses(&all[0], accesses, &to.tables.ir.views));
        // A group has no accesses of its own.
        all.iter().flatten().for_each(|access| to.release(access.view));
        if let Some(at) = wrong {
            let dropped = state.dropped();
            drop(state);
            drop(dropped);
            let why =
                "it uses other memory, or in another way, than the first: all tasks of a group have the same accesses";
            return Err(fail(at, group(why)).into());
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
    /// A node of a group of host tasks.
    pub(super) fn lower_task(group: usize, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let node = NodeId(state.ir.len() as u32);
        let group = state.tables.task_groups.get_mut(group)?;
        group.nodes.push(node);
        let function = group.functions.get(group.active)?.clone();
        let task = Task { function, uses: group.uses.clone(), map: None };
        task.push(state, accesses)
    }
}

impl Tables {
    /// Makes another function of a group the active one, in all its nodes.
    pub(super) fn activate_task(&mut self, group: usize, active: usize) {
        let Some(group) = self.task_groups.get_mut(group) else { return };
        let Some(function) = group.functions.get(active) else { return };
        group.active = active;
        for node in &group.nodes {
            if let Op::Task(task) = self.ir.op(*node) {
                let of = &mut self.tasks[task.index()];
                // The group keeps the one before.
                *of = of.replaced_by(function);
            }
        }
    }

    /// Whether a node is one of a group of host tasks.
    pub(super) fn is_in_task_group(&self, node: NodeId) -> bool {
        self.task_groups.iter().any(|group| group.nodes.contains(&node))
    }
}
