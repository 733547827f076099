//! Which commands a command runs after.

use std::collections::HashSet;

/// What a command is for the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Work,
    /// Ends when those that it waits for have ended; all, if it was told none.
    Marker,
    /// A marker behind which all later commands run.
    Barrier,
}

/// The order of the commands that were recorded so far. Commands are counted from 0.
#[derive(Debug, Default)]
pub(crate) struct Order {
    count: u32,
    /// Each command runs after the one before.
    in_order: bool,
    /// The last barrier: all later commands run after it.
    barrier: Option<u32>,
    /// The commands that no other runs after. When they are done, all are.
    leaves: Vec<u32>,
}

impl Order {
    pub(crate) fn new(in_order: bool) -> Self {
        Self { in_order, ..Self::default() }
    }

    /// Adds a command, and returns which ones it runs after, in ascending order. They stand for all that these run after.
    ///
    /// `points` are the commands that it was told to wait for.
    pub(crate) fn add(&mut self, points: &[u32], role: Role) -> Vec<u32> {
        let at = self.count;
        let mut after: Vec<u32> = if self.in_order {
            at.checked_sub(1).into_iter().collect()
        } else if role != Role::Work && points.is_empty() {
            self.leaves.clone()
        } else {
            points.iter().copied().chain(self.barrier).collect()
        };
        after.sort_unstable();
        after.dedup();
        match after.as_slice() {
            [] => {}
            [one] => self.leaves.retain(|leaf| leaf != one),
            many => {
                let many: HashSet<u32> = many.iter().copied().collect();
                self.leaves.retain(|leaf| !many.contains(leaf));
            }
        }
        self.leaves.push(at);
        if role == Role::Barrier {
            self.barrier = Some(at);
        }
        self.count += 1;
        after
    }

    pub(crate) fn leaves(&self) -> &[u32] {
        &self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_in_order_orders_commands() {
        let mut order = Order::new(true);
        assert_eq!(order.add(&[], Role::Work), [0; 0]);
        assert_eq!(order.add(&[], Role::Work), [0]);
        // What it is told is true already.
        assert_eq!(order.add(&[0], Role::Work), [1]);
        assert_eq!(order.add(&[], Role::Barrier), [2]);
        assert_eq!(order.add(&[], Role::Work), [3]);
        assert_eq!(order.leaves(), [4]);
    }

    #[test]
    fn sync_points_order_commands() {
        let mut order = Order::new(false);
        assert_eq!(order.add(&[], Role::Work), [0; 0]);
        assert_eq!(order.add(&[0, 0], Role::Work), [0]);
        assert_eq!(order.add(&[0], Role::Work), [0]);
        assert_eq!(order.leaves(), [1, 2]);
        assert_eq!(order.add(&[2, 1], Role::Work), [1, 2]);
        assert_eq!(order.add(&[], Role::Work), [0; 0]);
        assert_eq!(order.leaves(), [3, 4]);
    }

    #[test]
    fn a_barrier_waits_and_holds_back() {
        let mut order = Order::new(false);
        order.add(&[], Role::Work);
        order.add(&[], Role::Work);
        // With points it waits for them only, and still holds back what comes later.
        assert_eq!(order.add(&[0], Role::Barrier), [0]);
        assert_eq!(order.add(&[], Role::Work), [2]);
        assert_eq!(order.add(&[1], Role::Work), [1, 2]);
        assert_eq!(order.add(&[], Role::Barrier), [3, 4]);
        assert_eq!(order.add(&[], Role::Barrier), [5]);
        assert_eq!(order.add(&[0], Role::Work), [0, 6]);
        assert_eq!(order.leaves(), [7]);
    }

    #[test]
    fn a_marker_waits_and_holds_nothing_back() {
        let mut order = Order::new(false);
        order.add(&[], Role::Work);
        order.add(&[], Role::Work);
        assert_eq!(order.add(&[], Role::Marker), [0, 1]);
        assert_eq!(order.add(&[], Role::Work), [0; 0]);
        assert_eq!(order.add(&[3], Role::Marker), [3]);
        assert_eq!(order.leaves(), [2, 4]);
    }
}
