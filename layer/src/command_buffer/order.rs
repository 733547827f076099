//! Which commands a command runs after.

use std::collections::HashSet;

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
    /// `points` are the commands that it was told to wait for. A barrier that was told none waits for all.
    pub(crate) fn add(&mut self, points: &[u32], is_barrier: bool) -> Vec<u32> {
        let at = self.count;
        let mut after: Vec<u32> = if self.in_order {
            at.checked_sub(1).into_iter().collect()
        } else if is_barrier && points.is_empty() {
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
        if is_barrier {
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
        assert_eq!(order.add(&[], false), [0; 0]);
        assert_eq!(order.add(&[], false), [0]);
        // What it is told is true already.
        assert_eq!(order.add(&[0], false), [1]);
        assert_eq!(order.add(&[], true), [2]);
        assert_eq!(order.add(&[], false), [3]);
        assert_eq!(order.leaves(), [4]);
    }

    #[test]
    fn sync_points_order_commands() {
        let mut order = Order::new(false);
        assert_eq!(order.add(&[], false), [0; 0]);
        assert_eq!(order.add(&[0, 0], false), [0]);
        assert_eq!(order.add(&[0], false), [0]);
        assert_eq!(order.leaves(), [1, 2]);
        assert_eq!(order.add(&[2, 1], false), [1, 2]);
        assert_eq!(order.add(&[], false), [0; 0]);
        assert_eq!(order.leaves(), [3, 4]);
    }

    #[test]
    fn a_barrier_waits_and_holds_back() {
        let mut order = Order::new(false);
        order.add(&[], false);
        order.add(&[], false);
        // With points it waits for them only, and still holds back what comes later.
        assert_eq!(order.add(&[0], true), [0]);
        assert_eq!(order.add(&[], false), [2]);
        assert_eq!(order.add(&[1], false), [1, 2]);
        assert_eq!(order.add(&[], true), [3, 4]);
        assert_eq!(order.add(&[], true), [5]);
        assert_eq!(order.add(&[0], false), [0, 6]);
        assert_eq!(order.leaves(), [7]);
    }
}
