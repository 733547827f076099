//! Which commands are enqueued together, in a graph with host tasks.
//!
//! Commands that wait for a task are enqueued after the task has succeeded. So nodes are grouped into *pieces* by the
//! tasks that must have succeeded before them. Of these tasks only those count that no other of them is after. The
//! nodes of a piece can be enqueued at once; nodes that a task waits for come first. There the piece is cut into
//! *partitions*, so that a task waits for no more than it has to. Without tasks there is one partition, in the order of
//! nodes.

use std::ops::Range;

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

use super::PlanError;
use crate::ir::flows::Flows;
use crate::ir::{Ir, NodeId};

/// The order of nodes, and how host tasks divide it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Partitions {
    /// The host tasks, each after those that it waits for.
    pub(crate) tasks: Vec<TaskPlan>,
    /// In the order in which they are enqueued when several can be. One partition without tasks.
    pub(crate) partitions: Vec<NodePartition>,
    /// By node: its partition. Empty without tasks; [`NONE`] for tasks themselves.
    pub(crate) of: Vec<u32>,
    /// Whether they always run in this order.
    pub(crate) in_order: bool,
    /// By partition: all tasks that have succeeded when it runs.
    after: Vec<FixedBitSet>,
}

impl Partitions {
    /// Whether a partition always runs after another one, or is the same.
    pub(super) fn follows(&self, this: u32, other: u32) -> bool {
        this == other || (other < this && self.after[other as usize].is_subset(&self.after[this as usize]))
    }

    /// Replaces partitions without commands that tasks wait for by those with commands before them.
    pub(super) fn only_commands(
        &mut self,
        ir: &Ir,
        order: &[NodeId],
        flows: &Flows,
        has_commands: impl Fn(usize) -> bool,
    ) {
        if self.tasks.is_empty() {
            return;
        }
        let mut with_commands: Vec<Vec<u32>> = Vec::with_capacity(self.partitions.len());
        for (at, partition) in self.partitions.iter().enumerate() {
            if has_commands(at) {
                with_commands.push(vec![at as u32]);
                continue;
            }
            let nodes = order[partition.nodes.clone()].iter().filter(|node| self.of[node.index()] == at as u32);
            let preds = nodes.flat_map(|node| preds(ir, flows, *node)).map(|pred| self.of[pred.index()] as usize);
            let mut before: Vec<u32> = preds.filter_map(|pred| with_commands.get(pred)).flatten().copied().collect();
            before.sort_unstable();
            before.dedup();
            with_commands.push(before);
        }
        for task in &mut self.tasks {
            let all = task.partitions.iter().flat_map(|partition| with_commands[*partition as usize].iter().copied());
            task.commands = all.collect();
            task.commands.sort_unstable();
            task.commands.dedup();
        }
    }
}

/// A node that is in no partition.
pub(crate) const NONE: u32 = u32::MAX;

/// A host task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskPlan {
    pub(crate) node: NodeId,
    /// Partitions that must be enqueued, because they have nodes before it.
    pub(crate) partitions: Vec<u32>,
    /// Partitions with commands that must be complete, on one queue. See [`Partitions::only_commands`].
    pub(crate) commands: Vec<u32>,
    /// Tasks that must have succeeded.
    pub(crate) tasks: Vec<u32>,
    /// Partitions that wait for this task.
    pub(crate) then_partitions: Vec<u32>,
    /// Tasks that wait for this task.
    pub(crate) then_tasks: Vec<u32>,
}

/// Commands that are enqueued together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodePartition {
    /// Tasks that must have succeeded.
    pub(crate) tasks: Vec<u32>,
    /// Tasks that wait for this partition.
    pub(crate) then_tasks: Vec<u32>,
    /// Where its nodes are in the order, with host tasks between them.
    pub(crate) nodes: Range<usize>,
}

/// The sets of tasks that nodes wait for, each once. A key is the index of a set.
struct Keys {
    /// Sorted sets of tasks, of which none is after another.
    sets: Vec<Vec<u32>>,
    known: FxHashMap<Vec<u32>, u32>,
    /// By task: all tasks before it.
    before: Vec<FixedBitSet>,
    /// The number of tasks.
    tasks: usize,
}

impl Keys {
    fn new(tasks: usize) -> Self {
        let (sets, known) = (vec![Vec::new()], FxHashMap::from_iter([(Vec::new(), 0)]));
        Self { sets, known, before: Vec::new(), tasks }
    }

    fn of(&mut self, set: Vec<u32>) -> u32 {
        if let Some(known) = self.known.get(&set) {
            return *known;
        }
        let key = self.sets.len() as u32;
        self.known.insert(set.clone(), key);
        self.sets.push(set);
        key
    }

    /// Returns the key of a node that waits for all of these keys.
    fn join(&mut self, keys: &mut Vec<u32>) -> u32 {
        keys.sort_unstable();
        keys.dedup();
        let keys = if keys.first() == Some(&0) { &keys[1..] } else { &keys[..] };
        if keys.len() < 2 {
            return keys.first().copied().unwrap_or(0);
        }
        let mut all: Vec<u32> = keys.iter().flat_map(|key| self.sets[*key as usize].iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        let mut implied = FixedBitSet::with_capacity(self.tasks);
        all.iter().for_each(|task| implied.union_with(&self.before[*task as usize]));
        all.retain(|task| !implied.contains(*task as usize));
        self.of(all)
    }

    /// Returns all tasks that have succeeded when those of a key have.
    fn all(&self, key: u32) -> FixedBitSet {
        let mut tasks = FixedBitSet::with_capacity(self.tasks);
        for task in &self.sets[key as usize] {
            tasks.union_with(&self.before[*task as usize]);
            tasks.insert(*task as usize);
        }
        tasks
    }
}

/// Returns the predecessors of a node in its flow.
fn preds<'a>(ir: &'a Ir, flows: &'a Flows, node: NodeId) -> impl Iterator<Item = NodeId> + 'a {
    ir.topology.preds(node).filter(move |pred| flows.are_one(*pred, node))
}

/// Divides a flow into partitions, and changes the order of its nodes to theirs.
pub(super) fn partitions(ir: &Ir, order: &mut [NodeId], flows: &Flows) -> Result<Partitions, PlanError> {
    let is_task = |node: NodeId| ir.command(node).is_host();
    if !order.iter().any(|node| is_task(*node)) {
        let whole = NodePartition { nodes: 0..order.len(), ..NodePartition::default() };
        return Ok(Partitions { partitions: vec![whole], in_order: true, ..Partitions::default() });
    }
    let tasks: Vec<NodeId> = order.iter().copied().filter(|node| is_task(*node)).collect();
    let number: FxHashMap<NodeId, u32> = tasks.iter().copied().zip(0..).collect();
    let topology = &ir.topology;

    // The tasks that each node waits for.
    let mut keys = Keys::new(tasks.len());
    let (mut key_of, mut of_preds) = (vec![0_u32; ir.len()], Vec::new());
    for &node in order.iter() {
        of_preds.clear();
        for pred in preds(ir, flows, node) {
            of_preds.push(match number.get(&pred) {
                Some(task) => keys.of(vec![*task]),
                None => key_of[pred.index()],
            });
        }
        let key = keys.join(&mut of_preds);
        key_of[node.index()] = key;
        if is_task(node) {
            let before = keys.all(key);
            keys.before.push(before);
        }
    }
    // The first task that waits for a node, if any does.
    let mut wanted = vec![NONE; ir.len()];
    for &node in order.iter().rev() {
        let succs = topology.succs(node).filter(|next| flows.are_one(node, *next));
        let first = succs.map(|next| number.get(&next).copied().unwrap_or(wanted[next.index()])).min();
        wanted[node.index()] = first.unwrap_or(NONE);
        if let Some(task) = number.get(&node) {
            wanted[node.index()] = *task;
        }
    }
    // A piece is after all pieces that it can wait for: these have fewer tasks before them.
    let all: Vec<FixedBitSet> = (0..keys.sets.len() as u32).map(|key| keys.all(key)).collect();
    let mut place = vec![0_u32; ir.len()];
    order.iter().zip(0..).for_each(|(node, at)| place[node.index()] = at);
    let sizes: Vec<u32> = all.iter().map(|tasks| tasks.count_ones(..) as u32).collect();
    order.sort_by_key(|node| {
        let key = key_of[node.index()];
        (sizes[key as usize], key, wanted[node.index()], place[node.index()])
    });

    let (mut partitions, mut of) = (Vec::<NodePartition>::new(), vec![NONE; ir.len()]);
    let mut last = None;
    for (at, &node) in order.iter().enumerate().filter(|(_, node)| !is_task(**node)) {
        let kind = (key_of[node.index()], wanted[node.index()]);
        if last != Some(kind) {
            let tasks = keys.sets[kind.0 as usize].clone();
            partitions.push(NodePartition { tasks, then_tasks: Vec::new(), nodes: at..at });
            last = Some(kind);
        }
        if let Some(partition) = partitions.last_mut() {
            partition.nodes.end = at + 1;
        }
        of[node.index()] = partitions.len() as u32 - 1;
    }
    // A partition is complete when it and all partitions before it in its piece are: they are on one queue.
    let plan = |&node: &NodeId| {
        let mut waits: Vec<u32> =
            preds(ir, flows, node).map(|pred| of[pred.index()]).filter(|partition| *partition != NONE).collect();
        waits.sort_unstable();
        waits.dedup();
        let before = keys.sets[key_of[node.index()] as usize].clone();
        let (commands, partitions) = (waits.clone(), waits);
        TaskPlan { node, partitions, commands, tasks: before, then_partitions: Vec::new(), then_tasks: Vec::new() }
    };
    let mut planned: Vec<TaskPlan> = tasks.iter().map(plan).collect();
    for task in 0..planned.len() {
        for before in planned[task].tasks.clone() {
            planned[before as usize].then_tasks.push(task as u32);
        }
        for partition in planned[task].partitions.clone() {
            partitions[partition as usize].then_tasks.push(task as u32);
        }
    }
    for (partition, of) in partitions.iter().enumerate() {
        of.tasks.iter().for_each(|task| planned[*task as usize].then_partitions.push(partition as u32));
    }
    let inside = |a: u32, b: u32| all[a as usize].is_subset(&all[b as usize]);
    let mut used: Vec<u32> = order.iter().map(|node| key_of[node.index()]).collect();
    used.dedup();
    let in_order = used.windows(2).all(|pair| inside(pair[0], pair[1]));
    let mut after = Vec::with_capacity(partitions.len());
    for partition in &partitions {
        let key = key_of[order[partition.nodes.start].index()];
        after.push(all[key as usize].clone());
    }
    Ok(Partitions { tasks: planned, partitions, of, in_order, after })
}
