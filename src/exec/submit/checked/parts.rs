//! The ranges of a check, and what it makes of the bytes. There is no OpenCL here.

use std::ops::Range;

/// How many ranges a launch is checked in.
const RANGES: u64 = 4;

/// Returns ranges that together are all work-items. They end where no power of two does, so that they cut rows, vectors and work-groups.
pub(super) fn ranges(items: u64) -> Vec<Range<u64>> {
    let end = |number: u64| (items / RANGES).saturating_mul(number) | 1;
    let mut ends: Vec<u64> = (1..RANGES).map(end).filter(|end| *end < items).collect();
    ends.push(items);
    ends.dedup();
    let starts: Vec<u64> = [0].into_iter().chain(ends.iter().copied()).collect();
    starts.into_iter().zip(ends).map(|(start, end)| start..end).collect()
}

/// Returns which bytes of memory belong to some work-items.
pub(super) fn own(items: &Range<u64>, bytes: usize, size: usize) -> Range<usize> {
    let place = |item: u64| usize::try_from(item).unwrap_or(usize::MAX).saturating_mul(bytes).min(size);
    place(items.start)..place(items.end)
}

/// Returns so many zeros, or that the host has no memory for them.
pub(super) fn zeros(size: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| format!("the host has no memory for another {size} bytes"))?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// Returns the bytes, and all but `own` changed: each bit is another one.
pub(super) fn changed(saved: &[u8], own: &Range<usize>) -> Result<Vec<u8>, String> {
    let mut bytes = zeros(saved.len())?;
    bytes.copy_from_slice(saved);
    bytes[..own.start].iter_mut().for_each(|byte| *byte = !*byte);
    bytes[own.end..].iter_mut().for_each(|byte| *byte = !*byte);
    Ok(bytes)
}

/// Returns the first byte beside `own` that is not as [`changed`] made it.
pub(super) fn stray(found: &[u8], saved: &[u8], own: &Range<usize>) -> Option<usize> {
    let is_stray = |at: &usize| found.get(*at).copied() != saved.get(*at).map(|byte| !byte);
    (0..own.start).chain(own.end..saved.len()).find(is_stray)
}

/// Returns the first byte of `own` that is not as expected.
pub(super) fn differs(found: &[u8], expected: &[u8], own: &Range<usize>) -> Option<usize> {
    own.clone().find(|at| found.get(*at) != expected.get(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_all_work_items_once_and_end_at_odd_numbers() {
        for items in (1..300).chain([4096, 1_000_003, u64::MAX]) {
            let ranges = ranges(items);
            assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, items));
            assert!(ranges.iter().all(|range| range.start < range.end), "{ranges:?}");
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].end % 2 == 1), "{ranges:?}");
            assert!(ranges.len() == 4 || items < 8, "{ranges:?}");
        }
        assert_eq!(ranges(1024), [0..257, 257..513, 513..769, 769..1024]);
    }

    #[test]
    fn bytes_beside_those_of_a_range_are_changed_and_found() {
        let saved: Vec<u8> = (0..12).collect();
        assert_eq!(own(&(1..3), 4, 10), 4..10);
        assert_eq!(own(&(1..u64::MAX), usize::MAX, 10), 10..10);
        let own = own(&(1..2), 4, 12);
        let changed = changed(&saved, &own).unwrap();
        assert_eq!(changed, [255, 254, 253, 252, 4, 5, 6, 7, 247, 246, 245, 244]);
        assert_eq!((stray(&changed, &saved, &own), differs(&changed, &saved, &own)), (None, None));
        for (at, beside) in [(0, true), (3, true), (4, false), (7, false), (8, true), (11, true)] {
            let mut found = changed.clone();
            found[at] ^= 1;
            let expected = if beside { (Some(at), None) } else { (None, Some(at)) };
            assert_eq!((stray(&found, &saved, &own), differs(&found, &saved, &own)), expected);
        }
    }
}
