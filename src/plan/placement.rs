//! Where the memory that a graph owns lies: allocations whose lifetimes do not overlap share bytes of arenas.
//!
//! A lifetime is a range of steps of the order that was chosen, so sharing adds no edge. Several strategies of placing
//! are tried, the quick ones first, and the best result counts. All are greedy, because optimal placement is NP-hard.
//! No placement can need less than the most bytes that live at once.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

/// An allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// In bytes, not 0.
    pub(crate) size: usize,
    /// The steps, from the first to the last, that need the bytes. Not empty.
    pub(crate) steps: Range<usize>,
}

/// Where an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) arena: usize,
    pub(crate) offset: usize,
}

/// Where all allocations are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The bytes of each arena.
    pub(crate) arenas: Vec<usize>,
    /// By allocation.
    pub(crate) spots: Vec<Spot>,
}

impl Placement {
    /// Returns the bytes of all arenas.
    pub(crate) fn total(&self) -> usize {
        self.arenas.iter().sum()
    }
}

/// Places allocations at multiples of `align`, in arenas of at most `limit` bytes. Each allocation fits into an arena,
/// and their [`sum`] does not overflow.
pub(crate) fn place(lifetimes: &[Life], align: usize, limit: usize) -> Placement {
    let mut placement = Placement { arenas: Vec::new(), spots: vec![Spot { arena: 0, offset: 0 }; lifetimes.len()] };
    let mut left: Vec<usize> = (0..lifetimes.len()).collect();
    while !left.is_empty() {
        let some: Vec<Life> = left.iter().map(|at| aligned(&lifetimes[*at], align)).collect();
        let offsets = best(&some);
        // No other allocation can use the bytes between the end and the next aligned place.
        let end_of = |at: usize| offsets[at] + lifetimes[left[at]].size;
        let fits: Vec<bool> = (0..some.len()).map(|at| offsets[at] == 0 || end_of(at) <= limit).collect();
        let end = (0..some.len()).filter(|at| fits[*at]).map(end_of).max().unwrap_or(0);
        let arena = placement.arenas.len();
        placement.arenas.push(end);
        let mut later = Vec::new();
        for (at, index) in left.into_iter().enumerate() {
            if fits[at] {
                placement.spots[index] = Spot { arena, offset: offsets[at] };
            } else {
                later.push(index);
            }
        }
        left = later;
    }
    placement
}

/// Places allocations where only some pairs may not share bytes: those that `meet`. The largest come first, each in the
/// lowest gap. Otherwise as [`place`].
pub(crate) fn place_by_pairs(
    sizes: &[usize],
    meet: impl Fn(usize, usize) -> bool,
    align: usize,
    limit: usize,
) -> Placement {
    let mut placement = Placement { arenas: Vec::new(), spots: vec![Spot { arena: 0, offset: 0 }; sizes.len()] };
    let mut left: Vec<usize> = (0..sizes.len()).collect();
    left.sort_by_key(|at| std::cmp::Reverse(sizes[*at]));
    while !left.is_empty() {
        let (arena, mut end) = (placement.arenas.len(), 0);
        // By offset.
        let mut placed: Vec<(usize, usize)> = Vec::new();
        left.retain(|&at| {
            let mut offset = 0_usize;
            for (start, other) in placed.iter().filter(|(_, other)| meet(at, *other)) {
                if offset + sizes[at] <= *start {
                    break;
                }
                offset = offset.max((start + sizes[*other]).next_multiple_of(align.max(1)));
            }
            let is_too_far = offset > 0 && offset + sizes[at] > limit;
            if !is_too_far {
                placement.spots[at] = Spot { arena, offset };
                placed.insert(placed.partition_point(|(start, _)| *start < offset), (offset, at));
                end = end.max(offset + sizes[at]);
            }
            is_too_far
        });
        placement.arenas.push(end);
    }
    placement
}

/// Places each allocation on its own bytes.
pub(crate) fn apart(lifetimes: &[Life], align: usize, limit: usize) -> Placement {
    let mut placement = Placement::default();
    for life in lifetimes {
        let offset = placement.arenas.last().map_or(0, |end| end.next_multiple_of(align.max(1)));
        match placement.arenas.last_mut().filter(|_| offset + life.size <= limit) {
            Some(end) => {
                *end = offset + life.size;
                placement.spots.push(Spot { arena: placement.arenas.len() - 1, offset });
            }
            None => {
                placement.spots.push(Spot { arena: placement.arenas.len(), offset: 0 });
                placement.arenas.push(life.size);
            }
        }
    }
    placement
}

/// Returns the bytes of all allocations if none are shared. None if `usize` cannot count them; [`place`] and [`apart`]
/// count no further.
pub(crate) fn sum(lifetimes: &[Life], align: usize) -> Option<usize> {
    lifetimes.iter().try_fold(0_usize, |sum, life| sum.checked_add(life.size.checked_next_multiple_of(align.max(1))?))
}

fn aligned(life: &Life, align: usize) -> Life {
    Life { size: life.size.next_multiple_of(align.max(1)), steps: life.steps.clone() }
}

/// Returns the most bytes that live at once.
pub(crate) fn peak(lifetimes: &[Life], align: usize) -> usize {
    let mut changes: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for life in lifetimes {
        let size = aligned(life, align).size;
        changes.entry(life.steps.start).or_default().0 += size;
        changes.entry(life.steps.end).or_default().1 += size;
    }
    let (mut now, mut most) = (0, 0);
    for (born, died) in changes.into_values() {
        now = now - died + born;
        most = most.max(now);
    }
    most
}

/// How near to the bound is near enough, in percent above it.
const ENOUGH: usize = 3;
/// The limit on how many neighbours are looked at in search of a better placement: some tens of milliseconds for 10 000
/// allocations.
const WORK: usize = 13_000_000;
/// How many holes are looked at for the lowest one that is large enough.
const NEAR: usize = 64;

/// Returns offsets for all. Allocations that are always needed are below the others, so that the search ignores them.
fn best(lifetimes: &[Life]) -> Vec<usize> {
    let first = lifetimes.iter().map(|life| life.steps.start).min().unwrap_or(0);
    let last = lifetimes.iter().map(|life| life.steps.end).max().unwrap_or(0);
    let mut offsets = vec![0; lifetimes.len()];
    let (mut base, mut others) = (0, Vec::new());
    for (at, life) in lifetimes.iter().enumerate() {
        if life.steps == (first..last) {
            offsets[at] = base;
            base += life.size;
        } else {
            others.push(at);
        }
    }
    let above = greedy(&others.iter().map(|at| lifetimes[*at].clone()).collect::<Vec<_>>());
    for (at, offset) in others.into_iter().zip(above) {
        offsets[at] = base + offset;
    }
    offsets
}

/// Returns the offsets of the best strategy.
fn greedy(lifetimes: &[Life]) -> Vec<usize> {
    let bound = peak(lifetimes, 1);
    let turned: Vec<Life> = lifetimes.iter().map(backwards).collect();
    let strategies = [(lifetimes, true), (&turned[..], true), (lifetimes, false), (&turned[..], false)];
    let strategies = strategies.map(|(lifetimes, lowest)| in_time(lifetimes, lowest));
    let found = strategies.into_iter().min_by_key(|offsets| end(lifetimes, offsets)).unwrap_or_default();
    if is_enough(end(lifetimes, &found), bound) {
        return found;
    }
    match by_rank(lifetimes, bound) {
        Some(ranked) if end(lifetimes, &ranked) < end(lifetimes, &found) => ranked,
        _ => found,
    }
}

fn is_enough(end: usize, bound: usize) -> bool {
    end <= bound + bound / 100 * ENOUGH
}

/// Returns the end of the last allocation.
fn end(lifetimes: &[Life], offsets: &[usize]) -> usize {
    offsets.iter().zip(lifetimes).map(|(offset, life)| offset + life.size).max().unwrap_or(0)
}

/// Returns the same lifetime with time reversed.
fn backwards(life: &Life) -> Life {
    Life { size: life.size, steps: usize::MAX - life.steps.end..usize::MAX - life.steps.start }
}

/// Places allocations step by step, as an allocator would: in the smallest hole that is large enough, or else at the
/// end.
fn in_time(lifetimes: &[Life], lowest: bool) -> Vec<usize> {
    let mut born: Vec<usize> = (0..lifetimes.len()).collect();
    // Among allocations that begin at once, the largest comes first.
    born.sort_by_key(|at| (lifetimes[*at].steps.start, std::cmp::Reverse(lifetimes[*at].size)));
    let mut offsets = vec![0; lifetimes.len()];
    let mut dying: BinaryHeap<(std::cmp::Reverse<usize>, usize)> = BinaryHeap::new();
    let mut holes = Holes::default();
    for at in born {
        while let Some(&(std::cmp::Reverse(step), dead)) = dying.peek() {
            if step > lifetimes[at].steps.start {
                break;
            }
            dying.pop();
            holes.give(offsets[dead], lifetimes[dead].size);
        }
        offsets[at] = holes.take(lifetimes[at].size, lowest);
        dying.push((std::cmp::Reverse(lifetimes[at].steps.end), at));
    }
    offsets
}

/// Free bytes below the end of an arena.
#[derive(Default)]
struct Holes {
    by_offset: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
    end: usize,
}

impl Holes {
    fn take(&mut self, size: usize, lowest: bool) -> usize {
        let fit = if lowest {
            self.by_offset.iter().take(NEAR).find(|(_, hole)| **hole >= size).map(|(offset, hole)| (*hole, *offset))
        } else {
            None
        };
        let fit = fit.or_else(|| self.by_size.range((size, 0)..).next().copied());
        // The last hole grows with the arena.
        let last = self.by_offset.last_key_value().map(|(offset, size)| (*size, *offset));
        let grows = last.filter(|(size, offset)| offset + size == self.end);
        match (fit, grows) {
            (Some((hole, offset)), _) => {
                self.remove(offset, hole);
                if hole > size {
                    self.insert(offset + size, hole - size);
                }
                offset
            }
            (None, Some((hole, offset))) => {
                self.remove(offset, hole);
                self.end = offset + size;
                offset
            }
            (None, None) => {
                self.end += size;
                self.end - size
            }
        }
    }

    fn give(&mut self, offset: usize, size: usize) {
        let (mut start, mut end) = (offset, offset + size);
        if let Some((&before, &len)) = self.by_offset.range(..offset).next_back()
            && before + len == offset
        {
            self.remove(before, len);
            start = before;
        }
        if let Some(&len) = self.by_offset.get(&end) {
            self.remove(end, len);
            end += len;
        }
        self.insert(start, end - start);
    }

    fn insert(&mut self, offset: usize, size: usize) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: usize, size: usize) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}

/// Places allocations by rank: the largest, or the longest-lived, or both first, each in the lowest gap between those
/// that live at some time with it. If that is not good enough, the highest allocations are placed earlier, and the best
/// order counts. None if that is too much work.
fn by_rank(lifetimes: &[Life], bound: usize) -> Option<Vec<usize>> {
    let mut shelves = Shelves::new(lifetimes);
    let time = |at: usize| lifetimes[at].steps.len();
    // Classes are quarters of an octave: sizes of one class are alike, and are placed in the order of their begin.
    let class = |at: usize, (quarters, from): (usize, usize)| {
        let size = lifetimes[at].size.max(4);
        let octave = size.ilog2();
        (((octave as usize) << 2 | (size >> (octave - 2)) & 3) + from) / quarters
    };
    let classes = [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3)];
    let rank = |strategy: usize, at: usize| match strategy {
        0 => (lifetimes[at].size, 0),
        1 => (time(at), lifetimes[at].size),
        2 => (lifetimes[at].size.saturating_mul(time(at)), 0),
        strategy => (class(at, classes[strategy - 3]), 0),
    };
    let mut found: Option<(usize, Vec<usize>, Vec<usize>)> = None;
    for strategy in 0..3 + classes.len() {
        let mut order: Vec<usize> = (0..lifetimes.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(rank(strategy, *at)), lifetimes[*at].steps.start));
        let Some(offsets) = shelves.first_fit(lifetimes, &order) else { break };
        let end = end(lifetimes, &offsets);
        if found.as_ref().is_none_or(|(least, ..)| end < *least) {
            found = Some((end, order, offsets));
        }
        if is_enough(end, bound) {
            break;
        }
    }
    let (mut least, mut order, mut offsets) = found?;
    // A sequence without a seed, so that the same graph is always placed in the same way.
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..400 {
        if is_enough(least, bound) {
            break;
        }
        let highest = |at: &usize| offsets[*at] + lifetimes[*at].size == least;
        let Some(from) = order.iter().position(highest).filter(|from| *from > 0) else { break };
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let into = (random % from as u64) as usize;
        order[into..=from].rotate_right(1);
        let Some(other) = shelves.first_fit(lifetimes, &order) else { break };
        let reaches = end(lifetimes, &other);
        if reaches <= least {
            (offsets, least) = (other, reaches);
        } else {
            order[into..=from].rotate_left(1);
        }
    }
    Some(offsets)
}

/// What is placed, by time: a shelf holds all allocations that live at some of its steps.
struct Shelves {
    /// The number of steps of a shelf.
    width: usize,
    /// Allocations by offset: start, end and lifetime.
    shelves: Vec<Vec<(usize, usize, Range<usize>)>>,
    /// Occupied bytes, when several shelves are looked at.
    taken: Vec<(usize, usize)>,
    /// How many allocations were looked at in all.
    looked: usize,
}

impl Shelves {
    fn new(lifetimes: &[Life]) -> Self {
        let last = lifetimes.iter().map(|life| life.steps.end).max().unwrap_or(0);
        // Most lifetimes are within one shelf: a shelf is as wide as four usual lifetimes in a row.
        let usual: usize = lifetimes.iter().map(|life| life.steps.len()).sum::<usize>() / lifetimes.len().max(1);
        let count = (last / (4 * usual).max(1)).clamp(1, 1024);
        Self { width: last / count + 1, shelves: vec![Vec::new(); count], taken: Vec::new(), looked: 0 }
    }

    fn of(&self, steps: &Range<usize>) -> Range<usize> {
        let last = self.shelves.len() - 1;
        (steps.start / self.width).min(last)..((steps.end - 1) / self.width).min(last) + 1
    }

    /// Places one allocation after another, each in the lowest gap between those that live at some time with it. None
    /// if the limit on work is reached.
    fn first_fit(&mut self, lifetimes: &[Life], order: &[usize]) -> Option<Vec<usize>> {
        self.shelves.iter_mut().for_each(Vec::clear);
        let mut offsets = vec![0; lifetimes.len()];
        for &at in order {
            if self.looked > WORK {
                return None;
            }
            let Life { size, steps } = &lifetimes[at];
            let shelves = self.of(steps);
            self.looked += shelves.len();
            let meets = |of: &Range<usize>| of.start < steps.end && steps.start < of.end;
            let mut offset = 0;
            // Returns whether the gap below is large enough, or else where the next gap may begin.
            let mut look = |start: usize, end: usize| {
                let found = offset + size <= start;
                if !found {
                    offset = offset.max(end);
                }
                found
            };
            if shelves.len() == 1 {
                let shelf = &self.shelves[shelves.start];
                self.looked += shelf.len();
                let _ = shelf.iter().filter(|(.., of)| meets(of)).any(|(start, end, _)| look(*start, *end));
            } else {
                self.taken.clear();
                for shelf in &self.shelves[shelves.clone()] {
                    self.looked += shelf.len();
                    let those = shelf.iter().filter(|(.., of)| meets(of));
                    self.taken.extend(those.map(|(start, end, _)| (*start, *end)));
                }
                self.looked += 3 * self.taken.len();
                self.taken.sort();
                let _ = self.taken.iter().any(|(start, end)| look(*start, *end));
            }
            offsets[at] = offset;
            for shelf in &mut self.shelves[shelves] {
                let place = shelf.partition_point(|(start, ..)| *start < offset);
                shelf.insert(place, (offset, offset + size, steps.clone()));
            }
        }
        Some(offsets)
    }
}

/// Checks a placement independently: that no two allocations share a byte at some time, none leaves its arena or is
/// misaligned, and no arena is too large. It goes through time with the bytes in use, and shares no code with the
/// strategies of placing.
pub(crate) fn check(lifetimes: &[Life], placement: &Placement, align: usize, limit: usize) -> Result<(), String> {
    let (arenas, spots) = (&placement.arenas, &placement.spots);
    if spots.len() != lifetimes.len() {
        return Err(format!("{} spots for {} allocations", spots.len(), lifetimes.len()));
    }
    let mut largest = 0;
    let mut events = Vec::with_capacity(2 * lifetimes.len());
    for (at, (life, spot)) in lifetimes.iter().zip(spots).enumerate() {
        let size = arenas.get(spot.arena).copied().unwrap_or(0);
        if spot.offset + life.size > size || spot.offset % align.max(1) != 0 {
            return Err(format!("allocation {at} of {} bytes at {spot:?} of {size}", life.size));
        }
        largest = largest.max(life.size);
        // Ends come before begins.
        events.push((life.steps.end, false, at));
        events.push((life.steps.start, true, at));
    }
    if let Some(arena) = arenas.iter().find(|arena| **arena > limit.max(largest)) {
        return Err(format!("an arena of {arena} bytes, and {limit} are the most"));
    }
    events.sort_unstable();
    let mut used: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (_, is_born, at) in events {
        let Spot { arena, offset } = spots[at];
        if !is_born {
            used.remove(&(arena, offset));
            continue;
        }
        let before = used.range(..(arena, offset + lifetimes[at].size)).next_back();
        if let Some(((of, start), other)) = before
            && *of == arena
            && start + lifetimes[*other].size > offset
        {
            return Err(format!("allocations {other} and {at} share bytes of arena {arena}"));
        }
        used.insert((arena, offset), at);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
