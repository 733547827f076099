//! Where the memory that a graph owns lies: allocations whose lives do not overlap share bytes of arenas.
//!
//! A life is a range of steps of the order that was chosen, so sharing adds no edge. Several ways of placing are tried, the
//! quick ones first, and the best counts; all are greedy, as optimal placement is NP-hard. The bound that none can beat is
//! the most bytes that live at once.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

/// An allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Bytes, not 0.
    pub(crate) size: usize,
    /// The steps between whose first and last it needs its bytes. Not empty.
    pub(crate) steps: Range<usize>,
}

/// Where an allocation lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) arena: usize,
    pub(crate) offset: usize,
}

/// Where everything lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Bytes of each arena.
    pub(crate) arenas: Vec<usize>,
    /// By allocation.
    pub(crate) spots: Vec<Spot>,
}

impl Placement {
    /// Bytes of all arenas.
    pub(crate) fn total(&self) -> usize {
        self.arenas.iter().sum()
    }
}

/// Places allocations, at multiples of `align`, in arenas of at most `limit` bytes, in which each of them fits. Their
/// [`sum`] is a number.
pub(crate) fn place(lives: &[Life], align: usize, limit: usize) -> Placement {
    let mut placement = Placement { arenas: Vec::new(), spots: vec![Spot { arena: 0, offset: 0 }; lives.len()] };
    let mut left: Vec<usize> = (0..lives.len()).collect();
    while !left.is_empty() {
        let some: Vec<Life> = left.iter().map(|at| aligned(&lives[*at], align)).collect();
        let offsets = best(&some);
        // Nobody needs the bytes between its end and the next place that is aligned.
        let end_of = |at: usize| offsets[at] + lives[left[at]].size;
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

/// Places each allocation on bytes of its own.
pub(crate) fn apart(lives: &[Life], align: usize, limit: usize) -> Placement {
    let mut placement = Placement::default();
    for life in lives {
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

/// Bytes of all when each has bytes of its own. None where `usize` cannot count them; [`place`] and [`apart`] count no further.
pub(crate) fn sum(lives: &[Life], align: usize) -> Option<usize> {
    lives.iter().try_fold(0_usize, |sum, life| sum.checked_add(life.size.checked_next_multiple_of(align.max(1))?))
}

fn aligned(life: &Life, align: usize) -> Life {
    Life { size: life.size.next_multiple_of(align.max(1)), steps: life.steps.clone() }
}

/// The most bytes that live at once.
pub(crate) fn peak(lives: &[Life], align: usize) -> usize {
    let mut changes: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for life in lives {
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

/// How near to the bound is near enough: hundredths above.
const ENOUGH: usize = 3;
/// How many neighbours may be looked at in search of something better: some tens of milliseconds for 10 000 allocations.
const WORK: usize = 13_000_000;
/// How many holes are looked at for the lowest that is large enough.
const NEAR: usize = 64;

/// Offsets for all. Those that are needed all the time lie below the others, which then need not look at them.
fn best(lives: &[Life]) -> Vec<usize> {
    let first = lives.iter().map(|life| life.steps.start).min().unwrap_or(0);
    let last = lives.iter().map(|life| life.steps.end).max().unwrap_or(0);
    let mut offsets = vec![0; lives.len()];
    let (mut base, mut others) = (0, Vec::new());
    for (at, life) in lives.iter().enumerate() {
        if life.steps == (first..last) {
            offsets[at] = base;
            base += life.size;
        } else {
            others.push(at);
        }
    }
    let above = greedy(&others.iter().map(|at| lives[*at].clone()).collect::<Vec<_>>());
    for (at, offset) in others.into_iter().zip(above) {
        offsets[at] = base + offset;
    }
    offsets
}

/// The offsets of the best way.
fn greedy(lives: &[Life]) -> Vec<usize> {
    let bound = peak(lives, 1);
    let turned: Vec<Life> = lives.iter().map(backwards).collect();
    let ways = [(lives, true), (&turned[..], true), (lives, false), (&turned[..], false)];
    let ways = ways.map(|(lives, lowest)| in_time(lives, lowest));
    let found = ways.into_iter().min_by_key(|offsets| end(lives, offsets)).unwrap_or_default();
    if is_enough(end(lives, &found), bound) {
        return found;
    }
    match by_rank(lives, bound) {
        Some(ranked) if end(lives, &ranked) < end(lives, &found) => ranked,
        _ => found,
    }
}

fn is_enough(end: usize, bound: usize) -> bool {
    end <= bound + bound / 100 * ENOUGH
}

/// Where the last byte is, and one more.
fn end(lives: &[Life], offsets: &[usize]) -> usize {
    offsets.iter().zip(lives).map(|(offset, life)| offset + life.size).max().unwrap_or(0)
}

/// The same life in a time that runs backwards.
fn backwards(life: &Life) -> Life {
    Life { size: life.size, steps: usize::MAX - life.steps.end..usize::MAX - life.steps.start }
}

/// As an allocator would that is asked step by step: the smallest hole that is large enough, or else the end.
fn in_time(lives: &[Life], lowest: bool) -> Vec<usize> {
    let mut born: Vec<usize> = (0..lives.len()).collect();
    // Of those that are born at once the largest first.
    born.sort_by_key(|at| (lives[*at].steps.start, std::cmp::Reverse(lives[*at].size)));
    let mut offsets = vec![0; lives.len()];
    let mut dying: BinaryHeap<(std::cmp::Reverse<usize>, usize)> = BinaryHeap::new();
    let mut holes = Holes::default();
    for at in born {
        while let Some(&(std::cmp::Reverse(step), dead)) = dying.peek() {
            if step > lives[at].steps.start {
                break;
            }
            dying.pop();
            holes.give(offsets[dead], lives[dead].size);
        }
        offsets[at] = holes.take(lives[at].size, lowest);
        dying.push((std::cmp::Reverse(lives[at].steps.end), at));
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

/// The largest, or the longest-lived, or both first, each in the lowest gap between those that live at some time with it. As
/// long as it is not good enough, what lies highest is placed earlier, and the best order counts. None where that is too much
/// work.
fn by_rank(lives: &[Life], bound: usize) -> Option<Vec<usize>> {
    let mut shelves = Shelves::new(lives);
    let time = |at: usize| lives[at].steps.len();
    // Quarters of an octave: sizes of one class are alike, and are placed as they are born.
    let class = |at: usize, (quarters, from): (usize, usize)| {
        let size = lives[at].size.max(4);
        let octave = size.ilog2();
        (((octave as usize) << 2 | (size >> (octave - 2)) & 3) + from) / quarters
    };
    let classes = [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3)];
    let rank = |way: usize, at: usize| match way {
        0 => (lives[at].size, 0),
        1 => (time(at), lives[at].size),
        2 => (lives[at].size.saturating_mul(time(at)), 0),
        way => (class(at, classes[way - 3]), 0),
    };
    let mut found: Option<(usize, Vec<usize>, Vec<usize>)> = None;
    for way in 0..3 + classes.len() {
        let mut order: Vec<usize> = (0..lives.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(rank(way, *at)), lives[*at].steps.start));
        let Some(offsets) = shelves.first_fit(lives, &order) else { break };
        let end = end(lives, &offsets);
        if found.as_ref().is_none_or(|(least, ..)| end < *least) {
            found = Some((end, order, offsets));
        }
        if is_enough(end, bound) {
            break;
        }
    }
    let (mut least, mut order, mut offsets) = found?;
    // A sequence without a seed: the same graph is placed in the same way everywhere.
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..400 {
        if is_enough(least, bound) {
            break;
        }
        let highest = |at: &usize| offsets[*at] + lives[*at].size == least;
        let Some(from) = order.iter().position(highest).filter(|from| *from > 0) else { break };
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let into = (random % from as u64) as usize;
        order[into..=from].rotate_right(1);
        let Some(other) = shelves.first_fit(lives, &order) else { break };
        let reaches = end(lives, &other);
        if reaches <= least {
            (offsets, least) = (other, reaches);
        } else {
            order[into..=from].rotate_left(1);
        }
    }
    Some(offsets)
}

/// What is placed, by time: a shelf holds all that live at some of its steps.
struct Shelves {
    /// Steps of a shelf.
    width: usize,
    /// Allocations by offset: start, end and life.
    shelves: Vec<Vec<(usize, usize, Range<usize>)>>,
    /// Bytes that are taken, when several shelves are looked at.
    taken: Vec<(usize, usize)>,
    /// How many were looked at in all.
    looked: usize,
}

impl Shelves {
    fn new(lives: &[Life]) -> Self {
        let last = lives.iter().map(|life| life.steps.end).max().unwrap_or(0);
        // Most lives lie in one shelf: four of them in a row would.
        let usual: usize = lives.iter().map(|life| life.steps.len()).sum::<usize>() / lives.len().max(1);
        let count = (last / (4 * usual).max(1)).clamp(1, 1024);
        Self { width: last / count + 1, shelves: vec![Vec::new(); count], taken: Vec::new(), looked: 0 }
    }

    fn of(&self, steps: &Range<usize>) -> Range<usize> {
        let last = self.shelves.len() - 1;
        (steps.start / self.width).min(last)..((steps.end - 1) / self.width).min(last) + 1
    }

    /// One after the other, each in the lowest gap between those that live at some time with it. None when the work that all
    /// calls may do is done.
    fn first_fit(&mut self, lives: &[Life], order: &[usize]) -> Option<Vec<usize>> {
        self.shelves.iter_mut().for_each(Vec::clear);
        let mut offsets = vec![0; lives.len()];
        for &at in order {
            if self.looked > WORK {
                return None;
            }
            let Life { size, steps } = &lives[at];
            let shelves = self.of(steps);
            self.looked += shelves.len();
            let meets = |of: &Range<usize>| of.start < steps.end && steps.start < of.end;
            let mut offset = 0;
            // Whether the gap below is large enough, or else where the next one may begin.
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

/// An independent look: which two allocations share a byte at some time, which one leaves its arena, is misaligned, or which
/// arena is too large. It walks through time with the bytes in use, and shares nothing with the ways of placing.
pub(crate) fn check(lives: &[Life], placement: &Placement, align: usize, limit: usize) -> Result<(), String> {
    let (arenas, spots) = (&placement.arenas, &placement.spots);
    if spots.len() != lives.len() {
        return Err(format!("{} spots for {} allocations", spots.len(), lives.len()));
    }
    let mut largest = 0;
    let mut events = Vec::with_capacity(2 * lives.len());
    for (at, (life, spot)) in lives.iter().zip(spots).enumerate() {
        let size = arenas.get(spot.arena).copied().unwrap_or(0);
        if spot.offset + life.size > size || spot.offset % align.max(1) != 0 {
            return Err(format!("allocation {at} of {} bytes at {spot:?} of {size}", life.size));
        }
        largest = largest.max(life.size);
        // Who dies goes before who is born.
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
        let before = used.range(..(arena, offset + lives[at].size)).next_back();
        if let Some(((of, start), other)) = before
            && *of == arena
            && start + lives[*other].size > offset
        {
            return Err(format!("allocations {other} and {at} share bytes of arena {arena}"));
        }
        used.insert((arena, offset), at);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
