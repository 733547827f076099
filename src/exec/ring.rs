//! The slots of a host read: each submission's result has memory of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::cl::host::Slot;
use crate::error::SubmitError;
use crate::graph::Node;

/// How many slots are looked at for a free one before another is made: with many results held, one in so many is free then.
const LOOKS: usize = 8;

/// Slots for one read node, made when there is none that is free.
///
/// A slot is free when nobody but the ring holds it: no submission and no result. It may still be written by a
/// submission whose handle was dropped; the next submission that gets it is ordered behind that one.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Given longest ago first.
    slots: VecDeque<Arc<Slot>>,
    /// How many there may be.
    limit: Option<usize>,
    size: usize,
}

impl Ring {
    /// A ring of slots of `size` bytes.
    pub(crate) fn new(limit: Option<usize>, size: usize) -> Self {
        Self { slots: VecDeque::new(), limit, size }
    }

    /// A free slot for a node's result, held from now on.
    pub(crate) fn take(&mut self, node: Node) -> Result<Arc<Slot>, SubmitError> {
        let is_full = self.limit == Some(self.slots.len());
        let looks = if is_full { usize::MAX } else { LOOKS };
        for _ in 0..self.slots.len().min(looks) {
            self.slots.rotate_left(1);
            // `get_mut` is the look at the count that also sees what the last holder did before it let go.
            if let Some(slot) = self.slots.back_mut()
                && Arc::get_mut(slot).is_some()
            {
                return Ok(Arc::clone(slot));
            }
        }
        if is_full {
            return Err(SubmitError::NoSlot { node, slots: self.slots.len() });
        }
        let slot = Slot::new(self.size).ok_or(SubmitError::HostMemory { node, bytes: self.size })?;
        let slot = Arc::new(slot);
        self.slots.push_back(Arc::clone(&slot));
        Ok(slot)
    }

    /// Lets go of a slot if many are free. No submission is under way, so nobody writes those that nobody holds.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.slots.len() > LOOKS {
            self.trim_one();
        }
    }

    #[cold]
    fn trim_one(&mut self) {
        if self.slots.range_mut(..LOOKS).all(|slot| Arc::get_mut(slot).is_some()) {
            self.slots.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphId;
    use crate::ir::NodeId;

    fn node() -> Node {
        Node::new(GraphId::default(), NodeId(0))
    }

    #[test]
    fn a_slot_that_is_held_is_not_given_again_and_a_full_ring_says_so() {
        let mut ring = Ring::new(Some(2), 5);
        let (a, b) = (ring.take(node()).unwrap(), ring.take(node()).unwrap());
        assert!(!Arc::ptr_eq(&a, &b));
        assert!(matches!(ring.take(node()), Err(SubmitError::NoSlot { slots: 2, .. })));
        let freed = Arc::as_ptr(&a);
        drop(a);
        assert_eq!(Arc::as_ptr(&ring.take(node()).unwrap()), freed);
        assert_eq!(b.len(), 5);
    }

    #[test]
    fn free_slots_are_used_in_turn() {
        let mut ring = Ring::new(None, 1);
        let held: Vec<_> = (0..3).map(|_| ring.take(node()).unwrap()).collect();
        drop(held);
        let turn: Vec<_> = (0..6).map(|_| Arc::as_ptr(&ring.take(node()).unwrap())).collect();
        assert_eq!(turn[..3], turn[3..]);
    }

    #[test]
    fn slots_grow_with_what_is_held_and_shrink_with_what_is_free() {
        let mut ring = Ring::new(None, 1);
        let mut held: Vec<_> = (0..1000).map(|_| ring.take(node()).unwrap()).collect();
        assert_eq!(ring.slots.len(), 1000);
        // As many as before are held all the time, and always others.
        for _ in 0..10_000 {
            held.remove(0);
            held.push(ring.take(node()).unwrap());
            ring.trim();
        }
        assert!(ring.slots.len() < 1500, "{}", ring.slots.len());
        drop(held);
        for _ in 0..2000 {
            ring.trim();
            ring.take(node()).unwrap();
        }
        assert_eq!(ring.slots.len(), LOOKS);
    }
}
