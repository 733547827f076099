//! The slots of a host read: each submission's result has memory of its own.

use std::sync::Arc;

use crate::cl::host::Slot;
use crate::error::SubmitError;
use crate::graph::Node;

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

    /// A free slot for a node's result, held from now on.
    pub(crate) fn take(&mut self, node: Node) -> Result<Arc<Slot>, SubmitError> {
        let len = self.slots.len();
        for at in (0..len).map(|step| (self.next + step) % len) {
            // `get_mut` is the look at the count that also sees what the last holder did before it let go.
            if Arc::get_mut(&mut self.slots[at]).is_some() {
                self.next = (at + 1) % len;
                return Ok(Arc::clone(&self.slots[at]));
            }
        }
        if len == self.limit {
            return Err(SubmitError::NoSlot { node, slots: self.limit });
        }
        let slot = Slot::new(self.size).ok_or(SubmitError::HostMemory { node, bytes: self.size })?;
        let slot = Arc::new(slot);
        self.slots.push(Arc::clone(&slot));
        Ok(slot)
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
    fn a_slot_that_is_held_is_not_given_again_and_an_empty_ring_says_so() {
        let mut ring = Ring::new(2, 5);
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
        let mut ring = Ring::new(3, 1);
        let held: Vec<_> = (0..3).map(|_| ring.take(node()).unwrap()).collect();
        drop(held);
        let turn: Vec<_> = (0..6).map(|_| Arc::as_ptr(&ring.take(node()).unwrap())).collect();
        assert_eq!(turn[..3], turn[3..]);
    }
}
