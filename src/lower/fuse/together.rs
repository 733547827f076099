//! Which launches one kernel may do, by the memory that they use: what a compiler knows of it must still be true.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::ir::{Ir, NodeId, RootId, ViewId, ViewKind};
use crate::lower::elementwise::{self, Memory, Space, Uses};
use crate::lower::fuse::WhyApart;

/// What a compiler knows of memory that a kernel is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer<M> {
    pub(crate) to: M,
    /// Whether it may take the memory for constant.
    pub(crate) is_constant: bool,
    /// The number of the type by which the kernel touches the memory. None if there may be several.
    pub(crate) element: Option<u32>,
}

/// The number of the type of bytes, by which a compiler expects any memory to be touched.
pub(crate) const BYTES: u32 = u32::MAX;

/// Memory of launches that are one.
#[derive(Debug, Default)]
pub(crate) struct Together {
    constant: Roots,
    written: Roots,
    /// The types by which memory is touched.
    types: HashMap<Space, Vec<Typed>>,
    /// The same, of memory that is not clgraph's: nobody knows what shares bytes with it.
    foreign: Vec<Typed>,
    /// What work-items touch that are on their own.
    memory: Memory,
}

impl Together {
    /// Adds a launch, if its memory allows it. `uses` is there if each work-item does it on its own.
    pub(crate) fn takes(
        &mut self,
        ir: &Ir,
        node: NodeId,
        pointers: &[Pointer<ViewId>],
        uses: Option<&Uses>,
    ) -> Result<(), WhyApart> {
        if !uses.is_none_or(|uses| self.memory.takes(uses)) {
            return Err(WhyApart::Elements);
        }
        let writes = ir.accesses(node).iter().filter(|access| access.mode.writes());
        let writes = Roots::of(ir, writes.map(|access| access.view));
        let constant = Roots::of(ir, pointers.iter().filter(|pointer| pointer.is_constant).map(|pointer| pointer.to));
        if self.written.meets(&constant) || self.constant.meets(&writes) {
            return Err(WhyApart::Constant);
        }
        // Within a launch, types are the program's affair.
        let typed: Vec<(Space, Typed)> = pointers.iter().map(|pointer| Typed::of(ir, node, pointer)).collect();
        let of = |space: &Space| self.types.get(space).map_or(&[][..], Vec::as_slice);
        let fits = |(space, one): &(Space, Typed)| {
            let fits = |other: &Typed| one.fits(other);
            let all = || self.types.values().flatten().all(fits);
            self.foreign.iter().all(fits) && if one.is_foreign() { all() } else { of(space).iter().all(fits) }
        };
        if !typed.iter().all(fits) {
            return Err(WhyApart::Types);
        }
        for (space, one) in typed {
            let known = if one.is_foreign() { &mut self.foreign } else { self.types.entry(space).or_default() };
            if !known.contains(&one) {
                known.push(one);
            }
        }
        uses.into_iter().for_each(|uses| self.memory.add(uses));
        self.written.extend(writes);
        self.constant.extend(constant);
        Ok(())
    }
}

/// Memory, as what it is a part of.
#[derive(Debug, Default)]
struct Roots {
    known: BTreeSet<RootId>,
    /// Whether there is memory that is not clgraph's.
    has_foreign: bool,
}

impl Roots {
    fn of(ir: &Ir, all: impl Iterator<Item = ViewId>) -> Self {
        let mut roots = Self::default();
        for view in all {
            let view = &ir.views[view.index()];
            roots.has_foreign |= view.kind == ViewKind::Foreign;
            roots.known.insert(view.root);
        }
        roots
    }

    /// Whether some bytes may be in both.
    fn meets(&self, other: &Self) -> bool {
        let is_some = |one: &Self, other: &Self| one.has_foreign && !other.known.is_empty();
        is_some(self, other) || is_some(other, self) || !self.known.is_disjoint(&other.known)
    }

    fn extend(&mut self, other: Self) {
        self.known.extend(other.known);
        self.has_foreign |= other.has_foreign;
    }
}

/// The type by which a launch touches a part of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Typed {
    /// None if it may be any memory.
    bytes: Option<Range<usize>>,
    element: Option<u32>,
    writes: bool,
}

impl Typed {
    fn of(ir: &Ir, node: NodeId, pointer: &Pointer<ViewId>) -> (Space, Self) {
        let view = &ir.views[pointer.to.index()];
        let (space, bytes) = elementwise::place(view);
        let bytes = Some(bytes).filter(|_| view.kind != ViewKind::Foreign);
        let writes = ir.accesses(node).iter().any(|access| access.view == pointer.to && access.mode.writes());
        (space, Self { bytes, element: pointer.element, writes })
    }

    fn is_foreign(&self) -> bool {
        self.bytes.is_none()
    }

    fn is_apart(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (&self.bytes, &other.bytes) else { return false };
        one.end <= other.start || other.end <= one.start
    }

    /// Returns whether one kernel may do both. Compilers take it that accesses by different types are not to the same bytes: so they may
    /// change the order of accesses that two kernels would do one after the other.
    fn fits(&self, other: &Self) -> bool {
        let is_bytes = [self.element, other.element].contains(&Some(BYTES));
        let is_one = self.element.is_some() && self.element == other.element;
        self.is_apart(other) || is_bytes || is_one || !(self.writes || other.writes)
    }
}

/// Returns whether a launch may write some bytes of memory in a way that one kernel may not see that does the launch and looks at these
/// bytes as a word: by a type for which `is_word` is false, because compilers take it that accesses by different types are not to the
/// same bytes; or by a sub-buffer of memory that is looked at as a buffer, or the other way round.
pub(crate) fn writes_otherwise(
    ir: &Ir,
    node: NodeId,
    pointers: &[Pointer<ViewId>],
    (view, bytes): (ViewId, Range<usize>),
    is_word: impl Fn(u32) -> bool,
) -> bool {
    let (space, place) = elementwise::place(&ir.views[view.index()]);
    let word = Some(place.start + bytes.start..place.start + bytes.end);
    let word = Typed { bytes: word, element: None, writes: false };
    pointers.iter().any(|pointer| {
        let (of, typed) = Typed::of(ir, node, pointer);
        let is_same = ir.views[pointer.to.index()].is_sub_buffer() == ir.views[view.index()].is_sub_buffer();
        let is_seen = (is_same || typed.is_foreign()) && typed.element.is_some_and(&is_word);
        (of == space || typed.is_foreign()) && typed.writes && !word.is_apart(&typed) && !is_seen
    })
}
