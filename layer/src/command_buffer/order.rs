//! Which commands a command runs after.

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
    /// Each command runs after the one before.
    in_order: bool,
    /// The last barrier: all later commands run after it.
    barrier: Option<u32>,
    /// For each command, whether another one runs after it.
    has_later: Vec<bool>,
    /// All commands before this one have later ones.
    settled: usize,
}

impl Order {
    pub(crate) fn new(in_order: bool) -> Self {
        Self { in_order, ..Self::default() }
    }

    /// Adds a command, and returns which ones it runs after, in ascending order. They stand for all that these run after.
    ///
    /// `points` are the commands that it was told to wait for.
    pub(crate) fn add(&mut self, points: &[u32], role: Role) -> Vec<u32> {
        let at = self.has_later.len() as u32;
        let mut after: Vec<u32> = if self.in_order {
            at.checked_sub(1).into_iter().collect()
        } else if role != Role::Work && points.is_empty() {
            self.leaves()
        } else {
            points.iter().copied().chain(self.barrier).collect()
        };
        after.sort_unstable();
        after.dedup();
        for before in &after {
            self.has_later[*before as usize] = true;
        }
        while self.has_later.get(self.settled) == Some(&true) {
            self.settled += 1;
        }
        self.has_later.push(false);
        if role == Role::Barrier {
            self.barrier = Some(at);
        }
        after
    }

    /// Returns the commands that no other runs after. When they are done, all are.
    pub(crate) fn leaves(&self) -> Vec<u32> {
        let rest = self.has_later.iter().enumerate().skip(self.settled);
        rest.filter(|(_, has_later)| !**has_later).map(|(at, _)| at as u32).collect()
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
