//! Memory of launches whose work-items go through a chain each on its own: which launches may be beside each other there.
//!
//! A work-item may be ahead of others by any number of launches. So memory that one launch writes must be touched by all of them in the
//! same way: each work-item its own bytes, counted from the same start.

use std::collections::HashMap;
use std::ops::Range;

use crate::command::{Arg, Command};
use crate::ir::{ArenaId, Ir, NodeId, RootId, View, ViewId, ViewKind};

/// How a launch uses a part of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    bytes: Range<usize>,
    /// How many bytes belong to each work-item. None if it may touch any.
    of_item: Option<usize>,
    writes: bool,
}

impl Use {
    /// Returns whether a work-item may do one of them while others have not yet done the other.
    fn fits(&self, other: &Self) -> bool {
        let apart = self.bytes.end <= other.bytes.start || other.bytes.end <= self.bytes.start;
        let same = self.of_item.is_some() && self.of_item == other.of_item && self.bytes.start == other.bytes.start;
        apart || same || !(self.writes || other.writes)
    }
}

/// What has bytes that memory can share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Space {
    Root(RootId),
    /// Memory that was placed there may share bytes.
    Arena(ArenaId),
}

/// Returns where memory is.
pub(super) fn place(view: &View) -> (Space, Range<usize>) {
    let (space, start) = match view.kind {
        ViewKind::Placed { arena, start } => (Space::Arena(arena), start + view.offset),
        _ => (Space::Root(view.root), view.offset),
    };
    (space, start..start + view.size)
}

/// How a launch uses its memory, if its work-items may go ahead of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uses(Vec<(Space, Use)>);

impl Uses {
    /// Returns how a launch uses memory, if each work-item has bytes of its own in all memory that it writes.
    pub(crate) fn of(ir: &Ir, node: NodeId) -> Option<Self> {
        let Command::Kernel { args, elementwise: Some(elementwise), .. } = ir.command(node) else { return None };
        // By memory: the promise, which must be the same for all arguments that are this memory.
        let mut promised: HashMap<ViewId, Option<usize>> = HashMap::new();
        for (argument, arg) in ir.args(*args).iter().enumerate() {
            if let Arg::Memory(view) = arg {
                let bytes = elementwise.bytes(argument);
                let known = promised.entry(*view).or_insert(bytes);
                *known = known.filter(|_| *known == bytes);
            }
        }
        let mut uses: HashMap<ViewId, (Space, Use)> = HashMap::new();
        for access in ir.accesses(node) {
            let view = &ir.views[access.view.index()];
            // Nobody knows what shares bytes with it.
            if view.kind == ViewKind::Foreign {
                return None;
            }
            let (space, bytes) = place(view);
            let of_item = promised.get(&access.view).copied().flatten();
            let (_, of) = uses.entry(access.view).or_insert((space, Use { bytes, of_item, writes: false }));
            of.writes |= access.mode.writes();
        }
        let mut list: Vec<(ViewId, (Space, Use))> = uses.into_iter().collect();
        list.sort_unstable_by_key(|(view, _)| *view);
        let uses = Self(list.into_iter().map(|(_, of)| of).collect());
        // The launch with itself.
        let mut memory = Memory::default();
        memory.add(&uses);
        memory.takes(&uses).then_some(uses)
    }
}

/// How the launches of a chain use memory.
#[derive(Debug, Default)]
pub(super) struct Memory(HashMap<Space, Vec<Use>>);

impl Memory {
    /// Returns whether one more launch fits.
    pub(super) fn takes(&self, uses: &Uses) -> bool {
        let known = |space: &Space| self.0.get(space).map_or(&[][..], Vec::as_slice);
        uses.0.iter().all(|(space, of)| known(space).iter().all(|other| of.fits(other)))
    }

    pub(super) fn add(&mut self, uses: &Uses) {
        for (space, of) in &uses.0 {
            let known = self.0.entry(*space).or_default();
            if !known.contains(of) {
                known.push(of.clone());
            }
        }
    }
}
