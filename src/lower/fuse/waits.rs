//! Which launches one kernel may do where work-items wait for each other: one work-group does all of them.

use std::collections::HashSet;

use super::{Piece, WhyApart};
use crate::command::Command;
use crate::ir::{Ir, KernelId, NodeId};

/// What a launch needs whose work-items wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// How many work-items are in each of its work-groups. All such launches of a chain have as many.
    pub(crate) group: usize,
    /// The bytes of its kernel's local variables. Launches of one kernel share them.
    pub(crate) own_local: usize,
    /// The most bytes of local memory of a chain.
    pub(crate) most_local: usize,
    /// Whether launches that do not wait are not in a kernel with it: they are faster in another one.
    pub(crate) is_apart: bool,
}

/// How many times the work-items of its work-group a launch may have beside launches whose work-items wait for each other: one
/// work-group does all of them.
pub(crate) const MOST_ROUNDS: u64 = 16;

/// What launches have together whose work-items wait for each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    /// How many work-items wait for each other.
    group: Option<usize>,
    /// The most work-items of a launch.
    items: u64,
    /// The kernels whose local variables are counted, and all bytes of local memory.
    kernels: HashSet<KernelId>,
    local: usize,
}

impl Waits {
    /// Returns the bytes of local memory with one more launch, to which `given` bytes are given that no launch before it has.
    pub(super) fn local_with(&self, ir: &Ir, node: NodeId, piece: &Piece, given: usize) -> Result<usize, WhyApart> {
        let (mut group, mut local) = (self.group, self.local);
        if let (Some(waiting), Command::Kernel { kernel, .. }) = (&piece.waiting, ir.command(node)) {
            let own = if self.kernels.contains(kernel) { 0 } else { waiting.own_local };
            local = local.saturating_add(own).saturating_add(given);
            if *group.get_or_insert(waiting.group) != waiting.group {
                return Err(WhyApart::WorkGroups);
            }
            if local > waiting.most_local {
                return Err(WhyApart::Local);
            }
        }
        let items = self.items.max(piece.items);
        let is_small = group.is_none_or(|group| items <= MOST_ROUNDS.saturating_mul(group as u64));
        if is_small { Ok(local) } else { Err(WhyApart::Rounds) }
    }

    pub(super) fn add(&mut self, ir: &Ir, node: NodeId, piece: &Piece, local: usize) {
        if let (Some(waiting), Command::Kernel { kernel, .. }) = (&piece.waiting, ir.command(node)) {
            self.group = Some(waiting.group);
            self.kernels.insert(*kernel);
        }
        (self.items, self.local) = (self.items.max(piece.items), local);
    }
}
