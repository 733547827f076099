//! Where the graph's own memory lies, and whether several streams may use it.
//!
//! Two allocations may share bytes if all uses of one are over before any use of the other begins. On one queue the
//! order of the nodes says so. On several streams only clocks do: how far each stream has come when the first use
//! begins, and how far each must have come for the last use to be over.

use rustc_hash::FxHashMap;

use super::exclusions::Exclusion;
use super::lifetimes::Lifetimes;
use super::placement::{self, Life, Placement, Spot};
use super::streams::{Clock, Found, MOST};
use super::{Options, Path, PlanError, Step};
use crate::ir::{AllocId, Ir, RootId, ViewKind};

/// What the device demands of memory, and what the program asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryOptions {
    /// Allocations begin at multiples of so many bytes.
    pub(crate) align: usize,
    /// The largest number of bytes of an arena.
    pub(crate) limit: usize,
    /// Whether allocations may share bytes.
    pub(crate) share: bool,
}

/// Where the graph's own memory lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryLayout {
    /// The allocations that are needed, and whether each is kept from one submission to the next.
    pub(crate) allocs: Vec<(AllocId, bool)>,
    /// By needed allocation.
    pub(crate) lifetimes: Vec<Life>,
    pub(crate) placement: Placement,
    /// How many bytes it would be without sharing.
    pub(crate) apart: usize,
}

/// The largest number of allocations of which all pairs are compared.
const ALL_PAIRS: usize = 4096;

/// Places the memory for one queue. `in_order` says whether the nodes always run in their order.
pub(super) fn layout(
    ir: &Ir,
    lifetimes: &Lifetimes,
    options: &MemoryOptions,
    in_order: bool,
) -> Result<MemoryLayout, PlanError> {
    let needed = (0..).map(AllocId).zip(&lifetimes.of).filter_map(|(alloc, life)| {
        let life = life.as_ref()?;
        Some(((alloc, life.kept), Life { size: ir.allocs[alloc.index()].size, steps: life.needed.clone() }))
    });
    let (allocs, lifetimes): (Vec<(AllocId, bool)>, Vec<Life>) = needed.unzip();
    if allocs.is_empty() {
        return Ok(MemoryLayout::default());
    }
    let MemoryOptions { align, limit, share } = *options;
    placement::sum(&lifetimes, align).ok_or(PlanError::MemoryTooLarge)?;
    let apart = placement::apart(&lifetimes, align, limit);
    let unshared = apart.total();
    let placement = if share && in_order { placement::place(&lifetimes, align, limit) } else { apart };
    // If two allocations shared a byte by mistake, results would be wrong, so an independent check follows.
    placement::check(&lifetimes, &placement, align, limit).map_err(PlanError::Defect)?;
    Ok(MemoryLayout { allocs, lifetimes, placement, apart: unshared })
}

/// Between which clocks some memory is used.
#[derive(Clone, Copy, Debug)]
struct UsePeriod {
    /// How far each stream has come at least when a use begins.
    begin: Clock,
    /// How far each stream must have come for all uses to be over.
    end: Clock,
}

impl UsePeriod {
    const NEVER: Self = Self { begin: [u32::MAX; MOST], end: [0; MOST] };

    fn is_before(&self, other: &Self) -> bool {
        self.end.iter().zip(&other.begin).all(|(end, begin)| end <= begin)
    }

    fn meets(&self, other: &Self) -> bool {
        !self.is_before(other) && !other.is_before(self)
    }

    fn begins_at(&mut self, clock: &Clock) {
        self.begin.iter_mut().zip(clock).for_each(|(begin, clock)| *begin = (*begin).min(*clock));
    }

    /// Adds a command on a stream, with what is complete when it is.
    fn add(&mut self, stream: usize, clock: &Clock) {
        // The command itself is the last one of the clock.
        self.end[stream] = self.end[stream].max(clock[stream]);
        let mut before = *clock;
        before[stream] -= 1;
        self.begins_at(&before);
    }

    fn never_share(&mut self) {
        (self.begin, self.end) = ([0; MOST], [u32::MAX; MOST]);
    }
}

/// Bytes of an arena, and their use.
struct Bytes {
    arena: usize,
    start: usize,
    size: usize,
    of: UsePeriod,
}

/// Returns whether one use is over before the other begins, for all that share bytes.
fn are_ordered(mut all: Vec<Bytes>) -> bool {
    all.sort_unstable_by_key(|one| (one.arena, one.start));
    all.iter().enumerate().all(|(at, one)| {
        let share = |other: &&Bytes| other.arena == one.arena && other.start < one.start + one.size;
        !all[at + 1..].iter().take_while(share).any(|other| one.of.meets(&other.of))
    })
}

/// Sees to it that several streams can use the memory, and places it again if they cannot. An error says why only one
/// queue can use it. It costs no more memory than one queue needs, unless the program has asked for several.
pub(super) fn on_streams(
    ir: &Ir,
    steps: &[Step],
    found: &Found,
    lifetimes: &Lifetimes,
    options: &Options<'_>,
    layout: &mut MemoryLayout,
) -> Result<(), Exclusion> {
    if layout.allocs.is_empty() && !ir.shares_bytes {
        return Ok(());
    }
    if layout.allocs.len() > ALL_PAIRS {
        return Err(Exclusion::GraphMemory);
    }
    let (own, of_sub_graphs) = uses(ir, steps, found, lifetimes, options.updatable);
    if of_sub_graphs.len() > ALL_PAIRS || !are_ordered(of_sub_graphs) {
        return Err(Exclusion::GraphMemory);
    }
    let own: Vec<UsePeriod> = layout.allocs.iter().map(|(alloc, _)| own[alloc.index()]).collect();
    let sizes: Vec<usize> = layout.lifetimes.iter().map(|life| life.size).collect();
    let are_right = |placement: &Placement| {
        let bytes = |((spot, of), size): ((&Spot, &UsePeriod), &usize)| Bytes {
            arena: spot.arena,
            start: spot.offset,
            size: *size,
            of: *of,
        };
        are_ordered(placement.spots.iter().zip(&own).zip(&sizes).map(bytes).collect())
    };
    if are_right(&layout.placement) {
        return Ok(());
    }
    let MemoryOptions { align, limit, .. } = options.memory;
    let placement = placement::place_by_pairs(&sizes, |a, b| own[a].meets(&own[b]), align, limit);
    let is_enough = options.path == Path::Queues || placement.total() <= layout.placement.total();
    if !is_enough || !are_right(&placement) {
        return Err(Exclusion::GraphMemory);
    }
    layout.placement = placement;
    Ok(())
}

/// Returns the uses of the graph's own memory, by allocation, and those of memory that sub-graphs have placed.
fn uses(
    ir: &Ir,
    steps: &[Step],
    found: &Found,
    lifetimes: &Lifetimes,
    updatable: bool,
) -> (Vec<UsePeriod>, Vec<Bytes>) {
    let mut own = vec![UsePeriod::NEVER; ir.allocs.len()];
    let mut placed: FxHashMap<RootId, Bytes> = FxHashMap::default();
    let mut add = |node, stream: Option<usize>, clock: &Clock| {
        for access in ir.accesses(node) {
            let view = &ir.views[access.view.index()];
            let of = match view.kind {
                ViewKind::Owned(alloc) => &mut own[alloc.index()],
                ViewKind::Placed { arena, start } => {
                    let bytes = || Bytes { arena: arena.index(), start, size: view.root_size, of: UsePeriod::NEVER };
                    &mut placed.entry(view.root).or_insert_with(bytes).of
                }
                _ => continue,
            };
            match stream {
                Some(stream) => of.add(stream, clock),
                // Commands wait for host tasks, but no clock shows that one is over.
                None => {
                    of.end = [u32::MAX; MOST];
                    of.begins_at(clock);
                }
            }
        }
    };
    for (at, step) in steps.iter().enumerate() {
        add(step.node, Some(found.streams.stream(at)), &found.clocks[step.node.index()]);
    }
    for task in ir.ids().filter(|node| ir.command(*node).is_host()) {
        add(task, None, &found.clocks[task.index()]);
    }
    if updatable {
        // An update may bring a use to each command between the two nodes in the order, also to a host task.
        let has_tasks = ir.ids().any(|node| ir.command(node).is_host());
        let place = |step: &Step| lifetimes.place[step.node.index()] as usize;
        for (of, life) in own.iter_mut().zip(&lifetimes.of) {
            let Some(life) = life else { continue };
            let first = steps.partition_point(|step| place(step) < life.between.start);
            let between = steps[first..].iter().take_while(|step| place(step) < life.between.end);
            for (at, step) in (first..).zip(between) {
                of.add(found.streams.stream(at), &found.clocks[step.node.index()]);
            }
            if has_tasks {
                of.never_share();
            }
        }
    }
    for ((of, life), decl) in own.iter_mut().zip(&lifetimes.of).zip(&ir.allocs) {
        if life.as_ref().is_some_and(|life| life.kept) {
            of.never_share();
        } else if decl.zero {
            of.begin = [0; MOST];
        }
    }
    (own, placed.into_values().collect())
}
