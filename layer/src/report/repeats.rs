//! Loops in sequences of numbers.

use std::ops::Range;

/// The longest body of a loop that is looked for.
const LONGEST: usize = 64;
/// The fewest turns.
const TURNS: usize = 3;

/// A loop in a sequence: these places are whole turns of `body` places each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    pub(crate) places: Range<usize>,
    pub(crate) body: usize,
}

impl Loop {
    pub(crate) fn turns(&self) -> usize {
        self.places.len() / self.body
    }

    /// Returns the place of the first turn that is the same as this one.
    pub(crate) fn fold(&self, place: usize) -> usize {
        if self.places.contains(&place) {
            self.places.start + (place - self.places.start) % self.body
        } else if place >= self.places.end {
            place - (self.places.len() - self.body)
        } else {
            place
        }
    }
}

/// Finds the loop that covers most of a sequence, and of several the one with the shortest body. It covers at least half.
pub(crate) fn find(sequence: &[u64]) -> Option<Loop> {
    let mut best: Option<Loop> = None;
    for body in 1..=LONGEST.min(sequence.len() / TURNS) {
        // A stretch in which each place is the same as the one a body before.
        let mut start = body;
        for place in body..=sequence.len() {
            if place < sequence.len() && sequence[place] == sequence[place - body] {
                continue;
            }
            let len = (place - start + body) / body * body;
            let found = start - body..start - body + len;
            if len / body >= TURNS
                && len * 2 >= sequence.len()
                && best.as_ref().is_none_or(|best| len > best.places.len())
            {
                best = Some(Loop { places: found, body });
            }
            start = place + 1;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(Range<usize>, usize)> {
        find(&text.bytes().map(u64::from).collect::<Vec<_>>()).map(|found| (found.places, found.body))
    }

    #[test]
    fn a_loop_is_found_wherever_it_begins() {
        assert_eq!(found("abcabcabcabc"), Some((0..12, 3)));
        assert_eq!(found("wabcabcabcr"), Some((1..10, 3)));
        assert_eq!(found("aaaa"), Some((0..4, 1)));
        // Half a turn at the end is none.
        assert_eq!(found("abababa"), Some((0..6, 2)));
        // Loops of loops are the longer body, if that covers more.
        assert_eq!(found("aabaabaab"), Some((0..9, 3)));
    }

    #[test]
    fn what_does_not_come_three_times_is_no_loop() {
        for text in ["", "a", "ab", "abcabc", "abcdefgh", "xyzaaaqrs"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn places_behind_a_loop_move_to_its_front() {
        let found = Loop { places: 1..10, body: 3 };
        assert_eq!(
            (found.turns(), (0..12).map(|at| found.fold(at)).collect::<Vec<_>>()),
            (3, vec![0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5])
        );
    }
}
