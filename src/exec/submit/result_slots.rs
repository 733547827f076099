//! The slots of a host read: each submission's result has its own memory.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::cl::memory::host::Slot;
use crate::error::SubmitError;
use crate::handles::Node;

/// How many slots are searched for a free one before a new slot is made. If many results are held, about one slot in
/// this many is free.
const LOOKS: usize = 8;

/// Slots for the results of one read node. A new slot is made if none is free.
///
/// A slot is free if nothing but the ring holds it: no submission and no result. A submission whose handle was dropped
/// may still write to it; the next submission that gets the slot is ordered after that submission.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Least recently used first.
    slots: VecDeque<Arc<Slot>>,
    /// The largest number of slots. None if there is no bound.
    limit: Option<usize>,
    size: usize,
}

impl Ring {
    /// Makes a ring of slots of `size` bytes.
    pub(crate) fn new(limit: Option<usize>, size: usize) -> Self {
        Self { slots: VecDeque::new(), limit, size }
    }

    /// Takes a free slot for a node's result. The slot is held from now on.
    pub(crate) fn take(&mut self, node: Node) -> Result<Arc<Slot>, SubmitError> {
        let is_full = self.limit == Some(self.slots.len());
        let looks = if is_full { usize::MAX } else { LOOKS };
        for _ in 0..self.slots.len().min(looks) {
            self.slots.rotate_left(1);
            // `get_mut` reads the count, and also synchronizes with the last holder, so that its writes are seen here.
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

    /// Frees a slot if many are free. The caller knows that no submission runs, so nothing writes to slots that nobody
    /// holds.
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
    use crate::handles::GraphId;
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
        // The number of held results stays the same, and always other results are held.
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
