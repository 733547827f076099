//! Pass 2: which commands can be enqueued when, in a graph with host tasks.
//!
//! What waits for a task is enqueued when that has succeeded. So nodes fall into *pieces* by the tasks that have to have
//! succeeded before them, of which those count that no other one of them is behind. A piece is enqueued at once, in an order in
//! which those come first for which tasks wait, and is cut there into *parts*, so that a task does not wait for more than it
//! has to. Without tasks there is one part, in the order of nodes.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::PlanError;
use crate::ir::{Ir, NodeId};

/// The order of nodes, and how host tasks cut it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The host tasks, each behind those that it waits for.
    pub(crate) tasks: Vec<TaskPlan>,
    /// In the order in which they are enqueued when several can be. One without tasks.
    pub(crate) parts: Vec<Part>,
    /// By node: which part it is in. Empty without tasks; [`NONE`] for tasks themselves.
    pub(crate) of: Vec<u32>,
    /// Whether they always run in this order.
    pub(crate) in_order: bool,
}

/// A node that is in no part.
pub(crate) const NONE: u32 = u32::MAX;

/// A host task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskPlan {
    pub(crate) node: NodeId,
    /// Parts that have to be complete.
    pub(crate) parts: Vec<u32>,
    /// Tasks that have to have succeeded.
    pub(crate) tasks: Vec<u32>,
    /// Parts that wait for it.
    pub(crate) then_parts: Vec<u32>,
    /// Tasks that do.
    pub(crate) then_tasks: Vec<u32>,
}

/// Commands that are enqueued together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Tasks that have to have succeeded.
    pub(crate) tasks: Vec<u32>,
    /// Tasks that wait for it.
    pub(crate) then_tasks: Vec<u32>,
    /// Where its nodes are in the order, with host tasks between them.
    pub(crate) nodes: Range<usize>,
}

/// A set of tasks, one bit each.
type Bits = Vec<u64>;

fn has(bits: &Bits, task: u32) -> bool {
    bits[task as usize / 64] & 1 << (task % 64) != 0
}

/// The sets of tasks that nodes wait for, each once.
struct Keys {
    /// Tasks of which none is behind another, sorted.
    sets: Vec<Vec<u32>>,
    known: FxHashMap<Vec<u32>, u32>,
    /// By task: all tasks before it.
    before: Vec<Bits>,
    words: usize,
}

impl Keys {
    fn new(tasks: usize) -> Self {
        let (sets, known) = (vec![Vec::new()], FxHashMap::from_iter([(Vec::new(), 0)]));
        Self { sets, known, before: Vec::new(), words: tasks.div_ceil(64) }
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

    /// The key of what waits for all of them.
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
        let mut behind = vec![0; self.words];
        for task in &all {
            behind.iter_mut().zip(&self.before[*task as usize]).for_each(|(bits, before)| *bits |= before);
        }
        all.retain(|task| !has(&behind, *task));
        self.of(all)
    }

    /// All tasks that have succeeded when those of a key have.
    fn all(&self, key: u32) -> Bits {
        let mut bits = vec![0; self.words];
        for task in &self.sets[key as usize] {
            bits.iter_mut().zip(&self.before[*task as usize]).for_each(|(bits, before)| *bits |= before);
            bits[*task as usize / 64] |= 1 << (task % 64);
        }
        bits
    }
}

/// Cuts the graph. The order is changed to that of the parts.
pub(super) fn parts(ir: &Ir, order: &mut [NodeId]) -> Result<Parts, PlanError> {
    let is_task = |node: NodeId| ir.op(node).is_host();
    if (ir.tasks == 0 && ir.externals == 0) || !order.iter().any(|node| is_task(*node)) {
        let whole = Part { nodes: 0..order.len(), ..Part::default() };
        return Ok(Parts { parts: vec![whole], in_order: true, ..Parts::default() });
    }
    let tasks: Vec<NodeId> = order.iter().copied().filter(|node| is_task(*node)).collect();
    let number: FxHashMap<NodeId, u32> = tasks.iter().copied().zip(0..).collect();
    let topology = &ir.topology;

    // What each node waits for.
    let mut keys = Keys::new(tasks.len());
    let (mut key_of, mut of_preds) = (vec![0_u32; ir.len()], Vec::new());
    for &node in order.iter() {
        of_preds.clear();
        for pred in topology.preds(node) {
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
        let first = topology.succs(node).map(|next| number.get(&next).copied().unwrap_or(wanted[next.index()])).min();
        wanted[node.index()] = first.unwrap_or(NONE);
        if let Some(task) = number.get(&node) {
            wanted[node.index()] = *task;
        }
    }
    // A piece stands behind all that it can wait for: they have fewer tasks before them.
    let all: Vec<Bits> = (0..keys.sets.len() as u32).map(|key| keys.all(key)).collect();
    let count = |key: u32| all[key as usize].iter().map(|word| word.count_ones()).sum::<u32>();
    let mut place = vec![0_u32; ir.len()];
    order.iter().zip(0..).for_each(|(node, at)| place[node.index()] = at);
    let sizes: Vec<u32> = (0..keys.sets.len() as u32).map(count).collect();
    order.sort_by_key(|node| {
        let key = key_of[node.index()];
        (sizes[key as usize], key, wanted[node.index()], place[node.index()])
    });

    let (mut parts, mut of) = (Vec::<Part>::new(), vec![NONE; ir.len()]);
    let mut last = None;
    for (at, &node) in order.iter().enumerate().filter(|(_, node)| !is_task(**node)) {
        let kind = (key_of[node.index()], wanted[node.index()]);
        if last != Some(kind) {
            let tasks = keys.sets[kind.0 as usize].clone();
            parts.push(Part { tasks, then_tasks: Vec::new(), nodes: at..at });
            last = Some(kind);
        }
        if let Some(part) = parts.last_mut() {
            part.nodes.end = at + 1;
        }
        of[node.index()] = parts.len() as u32 - 1;
    }
    // A part is complete when it and all before it in its piece are: they are in one queue.
    let plan = |&node: &NodeId| {
        let mut waits: Vec<u32> =
            topology.preds(node).map(|pred| of[pred.index()]).filter(|part| *part != NONE).collect();
        waits.sort_unstable();
        waits.dedup();
        let before = keys.sets[key_of[node.index()] as usize].clone();
        TaskPlan { node, parts: waits, tasks: before, then_parts: Vec::new(), then_tasks: Vec::new() }
    };
    let mut planned: Vec<TaskPlan> = tasks.iter().map(plan).collect();
    for task in 0..planned.len() {
        for before in planned[task].tasks.clone() {
            planned[before as usize].then_tasks.push(task as u32);
        }
        for part in planned[task].parts.clone() {
            parts[part as usize].then_tasks.push(task as u32);
        }
    }
    for (part, of) in parts.iter().enumerate() {
        of.tasks.iter().for_each(|task| planned[*task as usize].then_parts.push(part as u32));
    }
    let inside = |a: u32, b: u32| all[a as usize].iter().zip(&all[b as usize]).all(|(a, b)| a & !b == 0);
    let mut used: Vec<u32> = order.iter().map(|node| key_of[node.index()]).collect();
    used.dedup();
    let in_order = used.windows(2).all(|pair| inside(pair[0], pair[1]));
    Ok(Parts { tasks: planned, parts, of, in_order })
}
