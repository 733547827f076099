//! Placing: fixed cases, and random cases against the checker and the peak.

use std::time::Instant;

use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::*;

#[derive(Clone, Debug)]
struct Lifetimes(Vec<Life>);

impl Arbitrary for Lifetimes {
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

/// Compares all pairs in all arenas.
fn overlaps(lifetimes: &[Life], placement: &Placement) -> bool {
    let meet = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
    let bytes = |at: usize| placement.spots[at].offset..placement.spots[at].offset + lifetimes[at].size;
    (0..lifetimes.len()).any(|b| {
        (0..b).any(|a| {
            placement.spots[a].arena == placement.spots[b].arena
                && meet(&lifetimes[a].steps, &lifetimes[b].steps)
                && meet(&bytes(a), &bytes(b))
        })
    })
}

#[test]
fn no_two_live_allocations_overlap_and_the_checker_agrees() {
    fn property(lifetimes: Lifetimes, align: u8, limit: u16) -> bool {
        let (align, limit) = (1 << (align % 9), usize::from(limit));
        let placement = place(&lifetimes.0, align, limit);
        let apart = apart(&lifetimes.0, align, limit);
        let sum: usize = lifetimes.0.iter().map(|life| life.size.next_multiple_of(align)).sum();
        !overlaps(&lifetimes.0, &placement)
            && check(&lifetimes.0, &placement, align, limit).is_ok()
            && check(&lifetimes.0, &apart, align, limit).is_ok()
            && !overlaps(&lifetimes.0, &apart)
            && apart.total() <= sum
            && placement.total() <= sum
            && apart.arenas.iter().chain(&placement.arenas).all(|arena| *arena <= limit.max(1000))
    }
    QuickCheck::new().tests(2_000).quickcheck(property as fn(Lifetimes, u8, u16) -> bool);
}

#[test]
fn the_checker_finds_what_is_wrong() {
    fn property(lifetimes: Lifetimes, which: usize, offset: u8) -> bool {
        let mut placement = place(&lifetimes.0, 1, usize::MAX);
        if lifetimes.0.is_empty() {
            return true;
        }
        placement.spots[which % lifetimes.0.len()].offset = usize::from(offset);
        let fits =
            lifetimes.0.iter().zip(&placement.spots).all(|(life, spot)| spot.offset + life.size <= placement.arenas[0]);
        check(&lifetimes.0, &placement, 1, usize::MAX).is_ok() == (fits && !overlaps(&lifetimes.0, &placement))
    }
    QuickCheck::new().tests(2_000).quickcheck(property as fn(Lifetimes, usize, u8) -> bool);
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

/// Sizes in bytes by step, as in a network: each layer reads what earlier layers made.
fn assert_near(what: &str, lifetimes: &[Life]) {
    let (align, limit) = (128, usize::MAX);
    let begin = Instant::now();
    let placement = place(lifetimes, align, limit);
    let time = begin.elapsed();
    check(lifetimes, &placement, align, limit).unwrap();
    let (total, bound) = (placement.total(), peak(lifetimes, align));
    println!("{what}: {total} bytes, {:.3} of the peak, in {time:?}", total as f64 / bound as f64);
    assert!(total <= bound + bound / 10, "{what}: {total} bytes for a peak of {bound}");
}

#[test]
fn more_bytes_than_can_be_counted_are_noticed() {
    let life = |size| Life { size, steps: 0..1 };
    assert_eq!(sum(&[life(5), life(8)], 8), Some(16));
    assert_eq!(sum(&[life(usize::MAX - 7)], 8), Some(usize::MAX - 7));
    assert_eq!(sum(&[life(usize::MAX)], 8), None);
    assert_eq!(sum(&[life(usize::MAX - 7), life(1)], 8), None);
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

/// Four times as many allocations take about four times as long, not sixteen. Both are timed here by turns, and the
/// best of several times counts.
#[test]
fn placing_takes_time_that_grows_with_the_number() {
    let timed = |lifetimes: &[Life]| {
        let begin = Instant::now();
        drop(place(lifetimes, 128, usize::MAX));
        begin.elapsed().as_secs_f64()
    };
    let (few, many) = (random(5_000, 50, 1 << 24), random(20_000, 50, 1 << 24));
    let times: Vec<_> = (0..3).map(|_| (timed(&few), timed(&many))).collect();
    let (few, many) = times.iter().fold((f64::MAX, f64::MAX), |best, times| (best.0.min(times.0), best.1.min(times.1)));
    assert!(many < 10.0 * few, "{few} s for a quarter, {many} s for all");
}

#[test]
fn arenas_are_near_the_peak() {
    let life = |size: usize, steps: Range<usize>| Life { size, steps };
    let chain: Vec<_> = (0..1000).map(|at| life(1000 + at % 7 * 512, at..at + 2)).collect();
    assert_near("a chain", &chain);
    let diamond = |at: usize| [life(4096, at..at + 3), life(2048, at + 1..at + 4), life(8192, at + 2..at + 4)];
    assert_near("diamonds", &(0..300).flat_map(|at| diamond(at * 3)).collect::<Vec<_>>());
    // Stages of blocks: two convolutions, and a sum with the input of the block. Each stage halves the picture and
    // doubles the channels.
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
    // More than 4 GiB in all, which 32 bits cannot count.
    let largest = if usize::BITS < 64 { 1 << 16 } else { 1 << 24 };
    // Half of them are needed all the time; the other lifetimes are as long as half of all steps.
    let mut kept = random(10_000, 50, largest);
    kept.iter_mut().step_by(2).for_each(|life| life.steps = 0..10_050);
    assert_near("half of 10000 kept", &kept);
    let mut long = random(10_000, 50, 1 << 16);
    long.iter_mut().for_each(|life| life.steps = life.steps.start / 2..life.steps.start / 2 + 5_000);
    assert_near("10000 of a half", &long);
}
