//! Live objects by their handles, and sync points.
//!
//! A handle is a number that is never used again, and no address: so one that is stale, or is not of the layer, is never taken for
//! another object, and none is looked into.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The live objects of one kind.
#[derive(Debug)]
pub(crate) struct Live<T>(RwLock<Option<HashMap<usize, Arc<T>>>>);

/// Handles of all kinds are different, so one that is of the wrong kind is known.
static NEXT: AtomicUsize = AtomicUsize::new(1);

impl<T> Live<T> {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(None))
    }

    /// Adds the object that `make` returns for its handle, and returns both.
    pub(crate) fn add(&self, make: impl FnOnce(usize) -> T) -> Arc<T> {
        // Spaced like addresses, for who looks at the lowest bits.
        let handle = NEXT.fetch_add(1, Ordering::Relaxed) << 4;
        let object = Arc::new(make(handle));
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.get_or_insert_default().insert(handle, Arc::clone(&object));
        object
    }

    pub(crate) fn find(&self, handle: usize) -> Option<Arc<T>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.as_ref()?.get(&handle).cloned()
    }

    /// The handle is one no more. The object is returned, to be dropped by the caller: not under the lock.
    pub(crate) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.as_mut()?.remove(&handle)
    }
}

/// The references to an object. The last one that is released ends it.
#[derive(Debug)]
pub(crate) struct References(AtomicU32);

impl References {
    pub(crate) fn one() -> Self {
        Self(AtomicU32::new(1))
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns whether there is one more: not if the last one is released at this moment.
    pub(crate) fn retain(&self) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| (count > 0).then(|| count.wrapping_add(1)))
            .is_ok()
    }

    /// Returns how many are left, if there was one to release.
    pub(crate) fn release(&self) -> Option<u32> {
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| count.checked_sub(1));
        before.ok().map(|before| before - 1)
    }
}

/// The sync points of one command buffer, by the places of its commands. A number is of one command buffer of the process, until
/// there were four thousand million of them.
#[derive(Debug, Default)]
pub(crate) struct Points(Vec<u32>);

static NEXT_POINT: AtomicU32 = AtomicU32::new(1);

impl Points {
    /// Adds that of the next command.
    pub(crate) fn add(&mut self) -> u32 {
        loop {
            let point = NEXT_POINT.fetch_add(1, Ordering::Relaxed);
            if point != 0 {
                self.0.push(point);
                return point;
            }
        }
    }

    /// Returns the place of the command of a sync point.
    pub(crate) fn find(&self, point: u32) -> Option<u32> {
        // In ascending order, unless the numbers began again meanwhile.
        let place = self.0.binary_search(&point).ok().or_else(|| {
            let began_again = self.0.first() > self.0.last();
            self.0.iter().position(|one| *one == point).filter(|_| began_again)
        });
        place.map(|place| place as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_those_of_live_objects_of_one_kind() {
        let (numbers, words) = (Live::new(), Live::new());
        let one = numbers.add(|handle| handle);
        let word = words.add(|handle| handle.to_string());
        assert_eq!(numbers.find(*one).as_deref(), Some(&*one));
        assert_eq!(words.find(*one), None);
        assert_eq!(words.find(word.parse().unwrap()).as_deref(), Some(&*word));
        for nothing in [0, 1, usize::MAX, *one + 1] {
            assert_eq!(numbers.find(nothing), None);
        }
        assert!(numbers.remove(*one).is_some());
        assert_eq!((numbers.find(*one), numbers.remove(*one)), (None, None));
        let two = numbers.add(|handle| handle);
        assert_ne!(one, two);
    }

    #[test]
    fn the_last_reference_ends() {
        let references = References::one();
        assert!(references.retain());
        assert_eq!(references.count(), 2);
        assert_eq!([(); 3].map(|()| references.release()), [Some(1), Some(0), None]);
        assert!(!references.retain());
    }

    #[test]
    fn sync_points_are_of_one_command_buffer() {
        let (mut first, mut second) = (Points::default(), Points::default());
        let points: Vec<u32> = (0..4).map(|_| first.add()).collect();
        let other = second.add();
        let last = first.add();
        for (place, point) in points.iter().chain([&last]).enumerate() {
            assert_eq!(first.find(*point), Some(place as u32));
            assert_eq!(second.find(*point), None);
        }
        assert_eq!(first.find(other), None);
        assert_eq!([0, last + 100].map(|point| first.find(point)), [None; 2]);
        let around = Points(vec![u32::MAX - 1, u32::MAX, 1, 2]);
        assert_eq!([u32::MAX, 1, 2, 3].map(|point| around.find(point)), [Some(1), Some(2), Some(3), None]);
    }
}
