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

/// Places allocations, at multiples of `align`, in arenas of at most `limit` bytes, in which each of them fits.
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
mod tests {
    use std::time::Instant;

    use quickcheck::{Arbitrary, Gen, QuickCheck};

    use super::*;

    #[derive(Clone, Debug)]
    struct Lives(Vec<Life>);

    impl Arbitrary for Lives {
        fn arbitrary(g: &mut Gen) -> Self {
            let count = usize::arbitrary(g) % 40;
            let life = |g: &mut Gen| {
                let start = usize::arbitrary(g) % 30;
                Life { size: 1 + usize::arbitrary(g) % 1000, steps: start..start + 1 + usize::arbitrary(g) % 10 }
            };
            Self((0..count).map(|_| life(g)).collect())
        }

        fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
            let all = self.0.clone();
            Box::new((0..all.len()).map(move |at| {
                let mut fewer = all.clone();
                fewer.remove(at);
                Self(fewer)
            }))
        }
    }

    /// All pairs, all arenas.
    fn overlaps(lives: &[Life], placement: &Placement) -> bool {
        let meet = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        let bytes = |at: usize| placement.spots[at].offset..placement.spots[at].offset + lives[at].size;
        (0..lives.len()).any(|b| {
            (0..b).any(|a| {
                placement.spots[a].arena == placement.spots[b].arena
                    && meet(&lives[a].steps, &lives[b].steps)
                    && meet(&bytes(a), &bytes(b))
            })
        })
    }

    #[test]
    fn no_two_live_allocations_overlap_and_the_checker_agrees() {
        fn property(lives: Lives, align: u8, limit: u16) -> bool {
            let (align, limit) = (1 << (align % 9), usize::from(limit));
            let placement = place(&lives.0, align, limit);
            let apart = apart(&lives.0, align, limit);
            let sum: usize = lives.0.iter().map(|life| life.size.next_multiple_of(align)).sum();
            !overlaps(&lives.0, &placement)
                && check(&lives.0, &placement, align, limit).is_ok()
                && check(&lives.0, &apart, align, limit).is_ok()
                && !overlaps(&lives.0, &apart)
                && apart.total() <= sum
                && placement.total() <= sum
                && apart.arenas.iter().chain(&placement.arenas).all(|arena| *arena <= limit.max(1000))
        }
        QuickCheck::new().tests(2_000).quickcheck(property as fn(Lives, u8, u16) -> bool);
    }

    #[test]
    fn the_checker_finds_what_is_wrong() {
        fn property(lives: Lives, which: usize, offset: u8) -> bool {
            let mut placement = place(&lives.0, 1, usize::MAX);
            if lives.0.is_empty() {
                return true;
            }
            placement.spots[which % lives.0.len()].offset = usize::from(offset);
            let fits =
                lives.0.iter().zip(&placement.spots).all(|(life, spot)| spot.offset + life.size <= placement.arenas[0]);
            check(&lives.0, &placement, 1, usize::MAX).is_ok() == (fits && !overlaps(&lives.0, &placement))
        }
        QuickCheck::new().tests(2_000).quickcheck(property as fn(Lives, usize, u8) -> bool);
        let life = |size| Life { size, steps: 0..1 };
        let wrong = |spots: &[usize], arena, align, limit| {
            let spots = spots.iter().map(|offset| Spot { arena: 0, offset: *offset }).collect();
            check(&[life(8), life(8)], &Placement { arenas: vec![arena], spots }, align, limit).unwrap_err()
        };
        assert!(wrong(&[0, 4], 16, 4, 64).contains("share bytes"));
        assert!(wrong(&[0, 9], 17, 4, 64).contains("at Spot"));
        assert!(wrong(&[0, 8], 16, 4, 12).contains("the most"));
        assert!(wrong(&[0], 16, 4, 64).contains("1 spots"));
    }

    /// Sizes in bytes by step, as a network has them: each layer reads what the ones before made.
    fn assert_near(what: &str, lives: &[Life]) {
        let (align, limit) = (128, usize::MAX);
        let begin = Instant::now();
        let placement = place(lives, align, limit);
        let time = begin.elapsed();
        check(lives, &placement, align, limit).unwrap();
        let (total, bound) = (placement.total(), peak(lives, align));
        println!("{what}: {total} bytes, {:.3} of the peak, in {time:?}", total as f64 / bound as f64);
        assert!(total * 100 <= bound * 110, "{what}: {total} bytes for a peak of {bound}");
    }

    fn random(count: usize, longest: usize, largest: usize) -> Vec<Life> {
        // A generator of its own, so that the numbers are always the same.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % most as u64) as usize
        };
        let life = |at: usize, next: &mut dyn FnMut(usize) -> usize| Life {
            size: 1 + next(largest),
            steps: at..at + 1 + next(longest),
        };
        (0..count).map(|at| life(at, &mut next)).collect()
    }

    /// Four times as many take about four times as long, not sixteen: both timed here in turns, the best of some.
    #[test]
    fn placing_takes_time_that_grows_with_the_number() {
        let timed = |lives: &[Life]| {
            let begin = Instant::now();
            drop(place(lives, 128, usize::MAX));
            begin.elapsed().as_secs_f64()
        };
        let (few, many) = (random(5_000, 50, 1 << 24), random(20_000, 50, 1 << 24));
        let times: Vec<_> = (0..3).map(|_| (timed(&few), timed(&many))).collect();
        let (few, many) =
            times.iter().fold((f64::MAX, f64::MAX), |best, times| (best.0.min(times.0), best.1.min(times.1)));
        assert!(many < 10.0 * few, "{few} s for a quarter, {many} s for all");
    }

    #[test]
    fn arenas_are_near_the_peak() {
        let life = |size: usize, steps: Range<usize>| Life { size, steps };
        let chain: Vec<_> = (0..1000).map(|at| life(1000 + at % 7 * 512, at..at + 2)).collect();
        assert_near("a chain", &chain);
        let diamond = |at: usize| [life(4096, at..at + 3), life(2048, at + 1..at + 4), life(8192, at + 2..at + 4)];
        assert_near("diamonds", &(0..300).flat_map(|at| diamond(at * 3)).collect::<Vec<_>>());
        // Stages of blocks: two convolutions and a sum with what came in; each stage halves the picture and doubles the
        // channels.
        let mut resnet = Vec::new();
        let mut step = 0;
        for (stage, blocks) in [3, 4, 6, 3].into_iter().enumerate() {
            let bytes = 4 * 256 * (56 >> stage) * (56 >> stage) * (1 << stage);
            for _ in 0..blocks {
                resnet.push(life(bytes / 4, step..step + 2));
                resnet.push(life(bytes / 4, step + 1..step + 3));
                resnet.push(life(bytes, step + 2..step + 4));
                resnet.push(life(bytes, step + 3..step + 7));
                step += 4;
            }
        }
        assert_near("a residual network", &resnet);
        let mut transformer = Vec::new();
        let (tokens, width, heads) = (512, 768, 12);
        for layer in 0..24 {
            let step = layer * 9;
            let plane = 4 * tokens * width;
            transformer.extend((0..3).map(|of| life(plane, step + of..step + 5)));
            transformer.push(life(4 * tokens * tokens * heads, step + 3..step + 5));
            transformer.push(life(plane, step + 4..step + 6));
            transformer.push(life(plane, step + 5..step + 9));
            transformer.push(life(4 * plane, step + 6..step + 8));
            transformer.push(life(plane, step + 7..step + 10));
        }
        assert_near("a transformer", &transformer);
        for (count, longest, largest) in
            [(100, 10, 1 << 20), (1_000, 20, 1 << 20), (1_000, 300, 1 << 16), (10_000, 50, 1 << 24)]
        {
            assert_near(&format!("random {count}, {longest}"), &random(count, longest, largest));
        }
        // Half of them are needed all the time; and lives as long as the half of all.
        let mut kept = random(10_000, 50, 1 << 24);
        kept.iter_mut().step_by(2).for_each(|life| life.steps = 0..10_050);
        assert_near("half of 10000 kept", &kept);
        let mut long = random(10_000, 50, 1 << 16);
        long.iter_mut().for_each(|life| life.steps = life.steps.start / 2..life.steps.start / 2 + 5_000);
        assert_near("10000 of a half", &long);
    }
}
