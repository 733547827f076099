//! The slots of a host read: each submission's result has memory of its own.

use std::sync::Arc;

use crate::cl::host::Slot;

/// Slots for one read node, made when first needed, up to a limit.
///
/// A slot is free when nobody but the ring holds it: no submission and no result. It may still be written by a
/// submission whose handle was dropped; the next submission that gets it is ordered behind that one.
#[derive(Debug)]
pub(crate) struct Ring {
    slots: Vec<Arc<Slot>>,
    next: usize,
    limit: usize,
    size: usize,
}

impl Ring {
    /// A ring of at most `limit` slots of `size` bytes.
    pub(crate) fn new(limit: usize, size: usize) -> Self {
        Self { slots: Vec::new(), next: 0, limit, size }
    }

    /// A free slot, held from now on; `None` when all are held.
    pub(crate) fn take(&mut self) -> Option<Arc<Slot>> {
        let len = self.slots.len();
        for at in (0..len).map(|step| (self.next + step) % len) {
            // `get_mut` is the look at the count that also sees what the last holder did before it let go.
            if Arc::get_mut(&mut self.slots[at]).is_some() {
                self.next = (at + 1) % len;
                return Some(Arc::clone(&self.slots[at]));
            }
        }
        if len == self.limit {
            return None;
        }
        let slot = Arc::new(Slot::new(self.size));
        self.slots.push(Arc::clone(&slot));
        Some(slot)
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_held_is_not_given_again_and_an_empty_ring_says_so() {
        let mut ring = Ring::new(2, 5);
        let (a, b) = (ring.take().unwrap(), ring.take().unwrap());
        assert!(!Arc::ptr_eq(&a, &b));
        assert!(ring.take().is_none());
        let freed = Arc::as_ptr(&a);
        drop(a);
        assert_eq!(Arc::as_ptr(&ring.take().unwrap()), freed);
        assert_eq!(b.len(), 5);
    }

    #[test]
    fn free_slots_are_used_in_turn() {
        let mut ring = Ring::new(3, 1);
        let held: Vec<_> = (0..3).map(|_| ring.take().unwrap()).collect();
        drop(held);
        let turn: Vec<_> = (0..6).map(|_| Arc::as_ptr(&ring.take().unwrap())).collect();
        assert_eq!(turn[..3], turn[3..]);
    }
}
