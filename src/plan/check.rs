//! An independent checker of plans. It shares no code with the passes.
//!
//! Its theory: a plan is right if
//! 1. every node that does something, or may do so after an update, has exactly one step, and no other node has one;
//! 2. every edge of the graph leads forward in the order, and the steps are in that order;
//! 3. every launch uses a kernel object with its own kernel and argument values. One with an argument that a parameter gives
//!    uses it alone; of the others no two objects are alike;
//! 4. segments tile the steps; no transfer from or to the host is in a command buffer; and each native command is where
//!    one of its forms is possible. A schedule takes command buffers of recorded segments only, and enqueues nothing
//!    that can only be recorded;
//! 5. any two nodes that use the same memory, one of them writing, are connected by a path of edges, unless conflicts
//!    are allowed;
//! 6. the edges that are kept reach exactly what all edges reach;
//! 7. the graph's own memory is used only between the node that makes it and the node that frees it. Its lifetime has
//!    every place that uses it; with updates, every place between the two nodes; all places if nothing frees it; and
//!    the places before it if it is to be zero;
//! 8. partitions tile the steps; a node's partition waits for all host tasks before the node, and for no others;
//!    everything before a host task is complete when the partitions and tasks that it waits for are, or was complete
//!    for one of these tasks already;
//! 9. the instructions of a schedule cover all steps in their order. Two commands that a path of edges connects are
//!    connected by the order of a queue, by waits, and by what the host has waited for; and a host task waits for all
//!    commands before it;
//! 10. on several queues, the order of each is known although partitions run in any order, each begins after the begin,
//!     and the end is after all commands;
//! 11. of two allocations that share bytes on several queues, one is used only by commands that are complete before any
//!     use of the other begins. Neither is kept, and the other is not to be zero, unless one is never used;
//! 12. the flows tile the steps: each node is in the flow of its innermost body, or of the graph. The rules 8 to 10 hold
//!     for each flow by itself.
//!
//! The rules 5, 6, 8, 10 and 11, and what rule 9 says of pairs, are left out for large graphs, because they compare all pairs.

mod segments;

use std::collections::HashSet;

use super::{Conflicts, Flow, Instruction, Options, Plan, Schedule};
use crate::command::{Arg, Command};
use crate::ir::{AllocId, Body, Ir, NodeId, Span, ViewKind};

/// The largest number of nodes for which pairs are compared.
const ALL_PAIRS: usize = 96;

/// Returns what is wrong with the plan, if anything is.
pub(super) fn check(ir: &Ir, order: &[NodeId], plan: &Plan, options: &Options<'_>) -> Result<(), String> {
    order_and_steps(ir, order, plan, options.updatable)?;
    objects(ir, plan, options)?;
    segments::segments(ir, plan)?;
    lifetimes(ir, order, plan, options.updatable)?;
    flows(ir, plan)?;
    for schedule in plan.flows.iter().map(|flow| &flow.schedule).chain(&plan.on_streams) {
        segments::instructions(ir, plan, schedule)?;
    }
    if ir.len() <= ALL_PAIRS {
        pairs(ir, order, plan, options.conflicts)?;
        plan.flows.iter().try_for_each(|flow| partitions(ir, plan, flow))?;
    }
    plan.flows.iter().try_for_each(|flow| schedule(ir, plan, flow, &flow.schedule))?;
    plan.on_streams.as_ref().map_or(Ok(()), |on_streams| schedule(ir, plan, plan.main(), on_streams))
}

/// Rules 9 and 10: the instructions of a schedule.
fn schedule(ir: &Ir, plan: &Plan, flow: &Flow, schedule: &Schedule) -> Result<(), String> {
    let steps = plan.steps.len();
    // By step: its stream, its partition, and what it comes after by itself. By event: the step, or None for the begin.
    let (mut place, mut waits) = (vec![None; steps], vec![Vec::new(); steps]);
    let mut events: Vec<Option<Option<usize>>> = vec![None; schedule.events];
    let mut pending: Vec<Vec<usize>> = vec![Vec::new(); schedule.streams];
    let mut begun = vec![false; schedule.streams];
    begun[0] = true;
    let mut end = Vec::new();
    let all = std::iter::once((None, schedule.begin.clone()))
        .chain(schedule.blocks.iter().cloned().enumerate().map(|(block, range)| (Some(block), range)))
        .chain([(None, schedule.end.clone())]);
    let mut next = flow.steps.start;
    for (block, range) in all {
        for instruction in &schedule.instructions[range] {
            match instruction {
                Instruction::Wait { stream, event } => match events.get(*event).copied().flatten() {
                    Some(Some(step)) => pending[*stream].push(step),
                    Some(None) => begun[*stream] = true,
                    None => return fail(format!("a wait for event {event}, which nothing has made")),
                },
                Instruction::Barrier { event: Some(event), .. } => events[*event] = Some(None),
                Instruction::Barrier { stream, event: None } => {
                    end = std::mem::take(&mut pending[*stream]);
                    end.extend(flow.steps.clone().rev().find(|step| place[*step].is_some_and(|(of, _)| of == *stream)));
                }
                Instruction::Run { stream, steps: run, event }
                | Instruction::Native { stream, steps: run, event, .. } => {
                    let Some(block) = block else { return fail("steps outside of all partitions".to_owned()) };
                    if run.start != next || !flow.partitions[block].steps.contains(&run.start) {
                        return fail(format!("steps {run:?} where {next} comes next"));
                    }
                    if !begun[*stream] {
                        return fail(format!("stream {stream} does not wait for the begin"));
                    }
                    next = run.end;
                    for step in run.clone() {
                        (place[step], waits[step]) = (Some((*stream, block)), std::mem::take(&mut pending[*stream]));
                    }
                    if let Some(event) = event {
                        events[*event] = Some(Some(run.end - 1));
                    }
                }
            }
        }
    }
    if next != flow.steps.end {
        return fail(format!("the instructions end at step {next} of {}", flow.steps.end));
    }
    if schedule.streams == 1
        && !schedule.instructions.iter().all(|one| matches!(one, Instruction::Run { .. } | Instruction::Native { .. }))
    {
        return fail("a wait on a single queue".to_owned());
    }
    if ir.len() > ALL_PAIRS {
        return Ok(());
    }
    let before = |node: NodeId| before(ir, node);
    let blocks = 0..flow.partitions.len();
    let tasks: Vec<HashSet<usize>> =
        flow.partitions.iter().map(|partition| with_earlier_tasks(ir, flow, &partition.tasks)).collect();
    // The partitions that always run before one.
    let earlier: Vec<Vec<usize>> =
        blocks.map(|block| (0..block).filter(|other| tasks[*other].is_subset(&tasks[block])).collect()).collect();
    // The last step of a partition on a stream, before a certain one.
    let last =
        |stream: usize, block: usize, end: usize| (0..end).rev().find(|step| place[*step] == Some((stream, block)));
    // What must be complete when a step begins. By task: what the host has waited for when the task has succeeded.
    let directly_before = |step: usize, on_host: &[HashSet<usize>]| {
        let Some((stream, block)) = place[step] else { return Vec::new() };
        let mut all = waits[step].clone();
        all.extend(last(stream, block, step));
        all.extend(earlier[block].iter().filter_map(|other| last(stream, *other, step)));
        all.extend(tasks[block].iter().filter_map(|task| on_host.get(*task)).flatten());
        all
    };
    // Returns all steps that are complete when some steps are, by going back.
    let complete = |first: Vec<usize>, on_host: &[HashSet<usize>]| {
        let (mut seen, mut todo) = (HashSet::new(), first);
        while let Some(step) = todo.pop() {
            if seen.insert(step) {
                todo.extend(directly_before(step, on_host));
            }
        }
        seen
    };
    let mut on_host: Vec<HashSet<usize>> = Vec::new();
    for (number, task) in flow.tasks.iter().enumerate() {
        let mut first: Vec<usize> = Vec::new();
        for event in &schedule.tasks[number] {
            first.extend(events.get(*event as usize).copied().flatten().flatten());
        }
        let earlier = with_earlier_tasks(ir, flow, &task.tasks);
        first.extend(earlier.iter().filter_map(|task| on_host.get(*task)).flatten());
        let (complete, needed) = (complete(first, &on_host), before(task.node));
        let is_missed = |step: &usize| needed.contains(&plan.steps[*step].node) && !complete.contains(step);
        if let Some(missed) = flow.steps.clone().find(is_missed) {
            return fail(format!("task {} does not wait for step {missed}", task.node.0));
        }
        on_host.push(complete);
    }
    let mut complete_before = Vec::with_capacity(steps);
    for step in flow.steps.clone() {
        let Some((stream, block)) = place[step] else { return fail(format!("step {step} is nowhere")) };
        let is_unordered = |other: &usize| {
            place[*other].is_some_and(|(of, other)| of == stream && other != block && !earlier[block].contains(&other))
        };
        if let Some(other) = (flow.steps.start..step).find(is_unordered).filter(|_| schedule.streams > 1) {
            return fail(format!("nobody knows which of the steps {other} and {step} comes first on stream {stream}"));
        }
        let complete = complete(directly_before(step, &on_host), &on_host);
        let needed = before(plan.steps[step].node);
        let is_missed = |other: &usize| needed.contains(&plan.steps[*other].node) && !complete.contains(other);
        if let Some(missed) = (flow.steps.start..step).find(is_missed) {
            return fail(format!("step {step} does not come after step {missed}"));
        }
        complete_before.push(complete);
    }
    if schedule.streams > 1 {
        shared_bytes(ir, plan, &complete_before, &on_host)?;
        let complete = complete(end, &on_host);
        if let Some(missed) = flow.steps.clone().find(|step| !complete.contains(step)) {
            return fail(format!("the end does not come after step {missed}"));
        }
    }
    Ok(())
}

/// Rule 11: memory that shares bytes. By step: the steps that are complete before it; by task: those that the host has
/// seen complete when it has succeeded.
fn shared_bytes(ir: &Ir, plan: &Plan, complete: &[HashSet<usize>], on_host: &[HashSet<usize>]) -> Result<(), String> {
    // By its arena (the graph's own ones are apart), its first byte, and its end: the roots of memory.
    let mut places: Vec<(crate::ir::RootId, (bool, usize), usize, usize)> = Vec::new();
    for view in &ir.views {
        let (arena, start) = match view.kind {
            ViewKind::Placed { arena, start } => ((true, arena.index()), start),
            ViewKind::Owned(alloc) => match plan.layout.allocs.iter().position(|(of, _)| *of == alloc) {
                Some(at) => ((false, plan.layout.placement.spots[at].arena), plan.layout.placement.spots[at].offset),
                None => continue,
            },
            _ => continue,
        };
        if places.iter().all(|(root, ..)| *root != view.root) {
            places.push((view.root, arena, start, start + view.root_size));
        }
    }
    // With updates, every command between the two nodes of an allocation may come to use it.
    let may_come = |root: crate::ir::RootId, node: NodeId| {
        let is_it =
            |alloc: AllocId| ir.views.iter().any(|view| view.root == root && view.kind == ViewKind::Owned(alloc));
        let between = |(alloc, life): (u32, &Option<super::lifetimes::Lifetime>)| {
            let place = plan.lifetimes.place[node.index()] as usize;
            life.as_ref().is_some_and(|life| life.between.contains(&place)) && is_it(AllocId(alloc))
        };
        plan.updatable && (0..).zip(&plan.lifetimes.of).any(between)
    };
    let uses = |root: crate::ir::RootId, node: NodeId| {
        ir.accesses(node).iter().any(|access| ir.views[access.view.index()].root == root) || may_come(root, node)
    };
    let of_steps: Vec<(crate::ir::RootId, Vec<usize>, Vec<usize>)> = places
        .iter()
        .map(|(root, ..)| {
            let steps = (0..plan.steps.len()).filter(|step| uses(*root, plan.steps[*step].node)).collect();
            let tasks =
                (0..plan.main().tasks.len()).filter(|task| uses(*root, plan.main().tasks[*task].node)).collect();
            (*root, steps, tasks)
        })
        .collect();
    let of = |root: crate::ir::RootId| of_steps.iter().find(|(of, ..)| *of == root).into_iter();
    let steps_of = |root| of(root).flat_map(|(_, steps, _)| steps.iter().copied());
    let tasks_of = |root| of(root).flat_map(|(_, _, tasks)| tasks.iter().copied());
    let is_before = |first, second| {
        tasks_of(first).next().is_none()
            && steps_of(first).all(|one| {
                steps_of(second).all(|other| complete[other].contains(&one))
                    && tasks_of(second).all(|task| on_host[task].contains(&one))
            })
    };
    let is_kept = |root| {
        let is_it =
            |alloc: AllocId| ir.views.iter().any(|view| view.root == root && view.kind == ViewKind::Owned(alloc));
        let kept = plan.layout.allocs.iter().any(|(alloc, kept)| *kept && is_it(*alloc));
        let zero = ir.allocs.iter().zip(0..).any(|(decl, alloc)| decl.zero && is_it(AllocId(alloc)));
        (kept, zero)
    };
    for (at, (a, arena, start, end)) in places.iter().enumerate() {
        for (b, other_arena, other_start, other_end) in &places[at + 1..] {
            if arena != other_arena || start >= other_end || other_start >= end {
                continue;
            }
            let ((a_kept, a_zero), (b_kept, b_zero)) = (is_kept(*a), is_kept(*b));
            let is_used = |root| steps_of(root).next().is_some() || tasks_of(root).next().is_some();
            let is_ordered =
                (is_before(*a, *b) && !(b_zero && is_used(*a))) || (is_before(*b, *a) && !(a_zero && is_used(*b)));
            if (a_kept && is_used(*b)) || (b_kept && is_used(*a)) || !is_ordered {
                return fail(format!("memory {} and {} share bytes and are used at once", a.0, b.0));
            }
        }
    }
    Ok(())
}

/// Returns all nodes before a node, by going back.
fn before(ir: &Ir, node: NodeId) -> HashSet<NodeId> {
    let (mut seen, mut todo) = (HashSet::new(), vec![node]);
    while let Some(node) = todo.pop() {
        todo.extend(ir.topology.preds(node).filter(|pred| seen.insert(*pred)));
    }
    seen
}

/// Returns the tasks that have succeeded when some tasks have.
fn with_earlier_tasks(ir: &Ir, flow: &Flow, tasks: &[u32]) -> HashSet<usize> {
    let mut all: HashSet<usize> = tasks.iter().map(|task| *task as usize).collect();
    for task in tasks {
        let before = before(ir, flow.tasks[*task as usize].node);
        all.extend((0..flow.tasks.len()).filter(|other| before.contains(&flow.tasks[*other].node)));
    }
    all
}

fn fail(text: String) -> Result<(), String> {
    Err(text)
}

fn order_and_steps(ir: &Ir, order: &[NodeId], plan: &Plan, updatable: bool) -> Result<(), String> {
    let mut at = vec![usize::MAX; ir.len()];
    for (position, node) in order.iter().enumerate() {
        if std::mem::replace(&mut at[node.index()], position) != usize::MAX {
            return fail(format!("node {} is twice in the order", node.0));
        }
    }
    for node in ir.ids() {
        if at[node.index()] == usize::MAX {
            return fail(format!("node {} is not in the order", node.0));
        }
        for pred in ir.topology.preds(node) {
            if at[pred.index()] >= at[node.index()] {
                return fail(format!("node {} does not come after its predecessor {}", node.0, pred.0));
            }
        }
    }
    let mut has_step = vec![false; ir.len()];
    let mut last = None;
    for (number, step) in plan.steps.iter().enumerate() {
        if plan.flows.iter().any(|flow| flow.steps.start == number) {
            last = None;
        }
        let position = at[step.node.index()];
        if last.is_some_and(|last| last >= position) {
            return fail(format!("the step of node {} is out of order", step.node.0));
        }
        last = Some(position);
        has_step[step.node.index()] = true;
    }
    for node in ir.ids() {
        let works = match ir.command(node) {
            Command::Empty
            | Command::SubGraph(_)
            | Command::Alloc(_)
            | Command::Free(_)
            | Command::Task(_)
            | Command::Control(_)
            | Command::Event { .. } => false,
            command if command.is_host() => false,
            Command::Native { .. } => true,
            // An update may make it do something.
            _ if updatable => true,
            Command::Kernel { grid, .. } => grid.global.iter().all(|&size| size > 0),
            Command::CopyRect(rect) => rect.region.iter().all(|&size| size > 0),
            Command::CopyImage(copy) => copy.region.iter().all(|&size| size > 0),
            Command::Copy { size, .. }
            | Command::Fill { size, .. }
            | Command::Write { size, .. }
            | Command::Read { size, .. }
            | Command::Hint { size, .. } => *size > 0,
        };
        if works != has_step[node.index()] {
            return fail(format!("node {} has a step: {}, does something: {works}", node.0, has_step[node.index()]));
        }
    }
    Ok(())
}

/// Returns the innermost body that has each node.
fn innermost_bodies(ir: &Ir) -> Vec<Option<usize>> {
    let range = |(number, body): (usize, &Body)| match body {
        Body::Inlined { nodes, .. } => Some((nodes.clone(), number)),
        Body::Executable(_) => None,
    };
    let mut bodies: Vec<(std::ops::Range<u32>, usize)> = ir.bodies.iter().enumerate().filter_map(range).collect();
    // Outer ones first.
    bodies.sort_unstable_by_key(|(nodes, _)| (nodes.start, std::cmp::Reverse(nodes.end)));
    let (mut next, mut open) = (bodies.into_iter().peekable(), Vec::<(std::ops::Range<u32>, usize)>::new());
    let of = |node: NodeId| {
        open.extend(std::iter::from_fn(|| next.next_if(|(nodes, _)| nodes.start <= node.0)));
        while open.pop_if(|(nodes, _)| nodes.end <= node.0).is_some() {}
        open.last().map(|(_, number)| *number)
    };
    ir.ids().map(of).collect()
}

/// Rule 12: the flows tile the steps, and each step is in the flow of the innermost body that has its node.
fn flows(ir: &Ir, plan: &Plan) -> Result<(), String> {
    let mut next = 0;
    let innermost = innermost_bodies(ir);
    for (number, flow) in plan.flows.iter().enumerate() {
        if flow.steps.start != next {
            return fail(format!("flow {number} starts at step {}, and not at {next}", flow.steps.start));
        }
        next = flow.steps.end;
        let nodes = plan.steps[flow.steps.clone()].iter().map(|step| step.node);
        for node in nodes.chain(flow.tasks.iter().map(|task| task.node)) {
            if number != innermost[node.index()].map_or(0, |body| body + 1) {
                return fail(format!("node {} is in flow {number}, which is not its body", node.0));
            }
        }
    }
    if next != plan.steps.len() || plan.flows.len() != ir.bodies.len() + 1 {
        return fail(format!("{} flows end at step {next} of {}", plan.flows.len(), plan.steps.len()));
    }
    Ok(())
}

/// Rule 8: host tasks and the partitions between them.
fn partitions(ir: &Ir, plan: &Plan, flow: &Flow) -> Result<(), String> {
    let mut next = flow.steps.start;
    for partition in &flow.partitions {
        if partition.steps.start != next {
            return fail(format!("a partition starts at step {}, and not at {next}", partition.steps.start));
        }
        next = partition.steps.end;
    }
    if next != flow.steps.end {
        return fail(format!("the partitions end at step {next} of {}", flow.steps.end));
    }
    let before = |node: NodeId| before(ir, node);
    let number = |node: NodeId| flow.tasks.iter().position(|task| task.node == node);
    let tasks_before = |node: NodeId| before(node).into_iter().filter_map(number).collect::<HashSet<usize>>();
    let all_earlier = |tasks: &[u32]| with_earlier_tasks(ir, flow, tasks);
    let partition_of = |node: NodeId| {
        let step = plan.steps.iter().position(|step| step.node == node)?;
        flow.partitions.iter().position(|partition| partition.steps.contains(&step))
    };
    for step in &plan.steps[flow.steps.clone()] {
        let Some(partition) = partition_of(step.node) else {
            return fail(format!("node {} is in no partition", step.node.0));
        };
        if all_earlier(&flow.partitions[partition].tasks) != tasks_before(step.node) {
            return fail(format!("the partition of node {} does not wait for the tasks before it", step.node.0));
        }
    }
    for task in &flow.tasks {
        if all_earlier(&task.tasks) != tasks_before(task.node) {
            return fail(format!("task {} does not wait for the tasks before it", task.node.0));
        }
        for node in before(task.node) {
            let Some(partition) = partition_of(node) else { continue };
            let done = |other: &u32| {
                let other = *other as usize;
                partition <= other
                    && all_earlier(&flow.partitions[partition].tasks)
                        .is_subset(&all_earlier(&flow.partitions[other].tasks))
            };
            let of_another =
                || all_earlier(&task.tasks).iter().any(|one| before(flow.tasks[*one].node).contains(&node));
            if !task.partitions.iter().any(done) && !of_another() {
                return fail(format!("task {} does not wait for node {}", task.node.0, node.0));
            }
        }
    }
    Ok(())
}

/// Returns an argument list by value.
fn values(ir: &Ir, args: crate::ir::Span) -> Vec<(u8, usize, Vec<u8>)> {
    ir.args(args)
        .iter()
        .map(|arg| match arg {
            Arg::Memory(view) => (0, view.index(), Vec::new()),
            Arg::Indirect(view) => (4, view.index(), Vec::new()),
            Arg::Global(view) => (6, view.index(), Vec::new()),
            Arg::Unused(view) => (7, view.index(), Vec::new()),
            Arg::Null(_) => (1, 0, Vec::new()),
            Arg::Sampler(sampler) => (5, sampler.index(), Vec::new()),
            Arg::Local(size) => (2, *size, Vec::new()),
            Arg::Value(span) => (3, 0, ir.bytes(*span).to_vec()),
        })
        .collect()
}

fn objects(ir: &Ir, plan: &Plan, options: &Options<'_>) -> Result<(), String> {
    let is_alone = |args: Span| options.parameters.iter().any(|arg| (args.ends().0..args.ends().1).contains(arg));
    let mut distinct = HashSet::new();
    for object in plan.objects.iter().filter(|object| !is_alone(object.args)) {
        if !distinct.insert((object.kernel, values(ir, object.args))) {
            return fail(format!("two kernel objects are alike, the second is of node {}", object.first.0));
        }
    }
    let mut used = HashSet::new();
    for step in &plan.steps {
        let Command::Kernel { kernel, args, .. } = ir.command(step.node) else {
            if step.object.is_some() {
                return fail(format!("node {} launches nothing and has a kernel object", step.node.0));
            }
            continue;
        };
        let Some(object) = step.object else { return fail(format!("node {} has no kernel object", step.node.0)) };
        let is_first = used.insert(object);
        let object = &plan.objects[object.index()];
        if !is_first && is_alone(*args) {
            return fail(format!("node {} shares a kernel object although a parameter gives an argument", step.node.0));
        }
        if object.kernel != *kernel || values(ir, object.args) != values(ir, *args) {
            return fail(format!("node {} got a kernel object of other values", step.node.0));
        }
    }
    Ok(())
}

fn lifetimes(ir: &Ir, order: &[NodeId], plan: &Plan, updatable: bool) -> Result<(), String> {
    if plan.lifetimes.of.len() != ir.allocs.len() {
        return fail(format!("{} lifetimes for {} allocations", plan.lifetimes.of.len(), ir.allocs.len()));
    }
    for (alloc, (life, decl)) in plan.lifetimes.of.iter().zip(&ir.allocs).enumerate() {
        let is_it = |view: crate::ir::ViewId| ir.views[view.index()].kind == ViewKind::Owned(AllocId(alloc as u32));
        let (mut made, mut freed, mut uses) = (None, None, Vec::new());
        for (at, node) in order.iter().enumerate() {
            match ir.command(*node) {
                Command::Alloc(of) if of.index() == alloc => made = Some(at),
                Command::Free(of) if of.index() == alloc => freed = Some(at),
                Command::Alloc(_) | Command::Free(_) => {}
                _ if ir.accesses(*node).iter().any(|access| is_it(access.view)) => uses.push(at),
                _ => {}
            }
        }
        let made = made.ok_or_else(|| format!("nothing makes allocation {alloc}"))?;
        let Some(life) = life else {
            if updatable || !uses.is_empty() {
                return fail(format!("allocation {alloc} has no life"));
            }
            continue;
        };
        let end = freed.unwrap_or(order.len());
        if life.between != (made + 1..end) || life.kept != freed.is_none() {
            return fail(format!("allocation {alloc} exists in {:?}", life.between));
        }
        if let Some(at) = uses.iter().find(|at| !life.between.contains(at) || !life.needed.contains(at)) {
            return fail(format!("allocation {alloc} is used at {at}, and lifetimes in {:?}", life.needed));
        }
        let short = (updatable && (life.needed.start > made || life.needed.end < end))
            || (life.kept && life.needed != (0..order.len()))
            || (decl.zero && life.needed.start > 0);
        if short {
            return fail(format!("allocation {alloc} has a life that is too short: {:?}", life.needed));
        }
    }
    let wrong =
        order.iter().enumerate().find(|(at, node)| plan.lifetimes.place.get(node.index()) != Some(&(*at as u32)));
    match wrong.filter(|_| !ir.allocs.is_empty()) {
        Some((at, node)) => fail(format!("node {} is not known to be at {at}", node.0)),
        None => Ok(()),
    }
}

/// Returns which nodes are before each, by a list of edges and an order that the edges follow.
fn reach(len: usize, order: &[NodeId], edges: &[(NodeId, NodeId)]) -> Vec<Vec<bool>> {
    let mut before = vec![vec![false; len]; len];
    for node in order {
        for (from, _) in edges.iter().filter(|(_, to)| to == node) {
            let theirs = before[from.index()].clone();
            before[node.index()].iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
            before[node.index()][from.index()] = true;
        }
    }
    before
}

fn pairs(ir: &Ir, order: &[NodeId], plan: &Plan, conflicts: Conflicts) -> Result<(), String> {
    let all: Vec<_> = ir.ids().flat_map(|node| ir.topology.preds(node).map(move |pred| (pred, node))).collect();
    let before = reach(ir.len(), order, &all);
    let before_by_needed = reach(ir.len(), order, &plan.edges.needed);
    if before != before_by_needed {
        return fail("the edges that are kept do not reach what all edges reach".to_owned());
    }
    if all.len() != plan.edges.needed.len() + plan.edges.implied_by_path {
        return fail("an edge is neither kept nor counted as implied".to_owned());
    }
    for a in ir.ids() {
        for b in (a.0 + 1..ir.len() as u32).map(NodeId) {
            let conflict = ir.accesses(a).iter().any(|first| {
                let real = |access: &crate::ir::Access| !access.range.is_empty();
                ir.accesses(b)
                    .iter()
                    .any(|second| real(first) && real(second) && first.conflicts_with(second, &ir.views))
            });
            if conflict
                && conflicts != Conflicts::Allowed
                && !before[b.index()][a.index()]
                && !before[a.index()][b.index()]
            {
                return fail(format!("nodes {} and {} share memory and no edges order them", a.0, b.0));
            }
        }
    }
    Ok(())
}
