//! The memory of an executable, which takes the place of the graph's own allocations.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::cl::commands::enqueue::{self, To, Waits};
use crate::cl::memory::region::AsRegion;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::InContext;
use crate::cl::objects::device::Device;
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::command::Location;
use crate::error::{Error, FinalizeError, MemoryError, Result};
use crate::graph::{Flat, Tables};
use crate::ir::{AllocId, ArenaId, NodeId, ViewId, ViewKind};
use crate::plan::{Life, MemoryLayout, Plan, Spot};
use crate::report::summary::{AllocationReport, MemoryReport};

/// Makes the memory and puts it into a copy of the tables. Returns the same tables if the graph has no memory of its
/// own.
pub(in crate::exec) fn place(
    context: &impl InContext,
    device: &Device,
    tables: &Arc<Tables>,
    layout: &MemoryLayout,
) -> Result<Arc<Tables>> {
    if tables.ir.allocs.is_empty() {
        return Ok(Arc::clone(tables));
    }
    let failed = |source| FinalizeError::Memory { bytes: layout.placement.total(), source };
    let unwrap = |error| match error {
        Error::Memory(source) => Error::from(failed(source)),
        Error::Driver(source) => failed(MemoryError::Driver(source)).into(),
        error => error,
    };
    let arenas = layout.placement.arenas.iter().map(|size| Buffer::<u8>::new(context, *size));
    let arenas = arenas.collect::<Result<Vec<_>>>().map_err(unwrap)?;
    let spot_of: FxHashMap<AllocId, usize> =
        layout.allocs.iter().enumerate().map(|(at, (alloc, _))| (*alloc, at)).collect();
    let arenas_of_sub_graphs = tables.ir.views.iter().filter_map(|view| match view.kind {
        ViewKind::Placed { arena, .. } => Some(arena.0 + 1),
        _ => None,
    });
    let first = arenas_of_sub_graphs.max().unwrap_or(0);
    let mut own = (**tables).clone();
    let mut placed = FxHashMap::default();
    for view in 0..own.views.len() {
        let ViewKind::Owned(alloc) = own.ir.views[view].kind else { continue };
        let (Some(mem), Some(at)) = (own.views[view].clone(), spot_of.get(&alloc)) else { continue };
        let spot = layout.placement.spots[*at];
        let start = spot.offset + mem.offset_in_root();
        let part = arenas[spot.arena].sub_buffer(start..start + mem.size()).map_err(unwrap)?;
        placed.insert((alloc, mem.offset_in_root()), ViewId(view as u32));
        own.views[view] = Some(part.region().mem);
        let arena = ArenaId(first + spot.arena as u32);
        own.ir.views[view].kind = ViewKind::Placed { arena, start: spot.offset };
    }
    own.placed = Some(Arc::new(placed));
    let zeros = layout
        .allocs
        .iter()
        .zip(&layout.placement.spots)
        .filter(|((alloc, _), _)| tables.ir.allocs[alloc.index()].zero);
    let zeros: Vec<(Mem, usize, usize)> = zeros
        .map(|((alloc, _), spot)| (arenas[spot.arena].region().mem, spot.offset, tables.ir.allocs[alloc.index()].size))
        .collect();
    if !zeros.is_empty() {
        clear(context, device, &zeros).map_err(unwrap)?;
    }
    Ok(Arc::new(own))
}

/// Returns the memory as the report shows it.
pub(in crate::exec) fn report(layout: &MemoryLayout, flat: &Flat) -> MemoryReport {
    let allocation = |(((alloc, kept), life), spot): ((&(AllocId, bool), &Life), &Spot)| {
        let node = flat.tables.ir.allocs[alloc.index()].node;
        AllocationReport {
            node: flat.origins.of(node).node.index(),
            label: flat.tables.label(node).cloned(),
            bytes: life.size,
            buffer: spot.arena,
            offset: spot.offset,
            first: life.steps.start,
            last: (!kept).then(|| life.steps.end - 1),
        }
    };
    let MemoryLayout { allocs, lifetimes, placement, apart } = layout;
    MemoryReport {
        bytes: placement.total(),
        bytes_apart: *apart,
        buffers: placement.arenas.clone(),
        allocations: allocs.iter().zip(lifetimes).zip(&placement.spots).map(allocation).collect(),
    }
}

/// Where in the order of nodes an executable's own memory may be used. Updates that give nodes other memory check it.
pub(in crate::exec) struct OwnMemory {
    /// By node. Empty if the executable has no such memory.
    place: Vec<u32>,
    /// By view: the allocation, and the places in the order between which it exists.
    between: FxHashMap<ViewId, (AllocId, Range<usize>)>,
}

/// Why a node cannot use an allocation.
pub(in crate::exec) struct OutOfTime {
    pub(in crate::exec) alloc: AllocId,
    pub(in crate::exec) why: &'static str,
}

impl OwnMemory {
    pub(in crate::exec) fn new(plan: &Plan, tables: &Tables) -> Self {
        let views = tables.placed.iter().flat_map(|placed| placed.iter());
        let between = views.filter_map(|((alloc, _), view)| {
            let life = plan.lifetimes.of.get(alloc.index())?.as_ref()?;
            Some((*view, (*alloc, life.between.clone())))
        });
        Self { place: plan.lifetimes.place.clone(), between: between.collect() }
    }

    /// Checks that a node uses an executable's own memory only while it exists. At other times another allocation may
    /// have its bytes.
    pub(in crate::exec) fn check(&self, tables: &Tables, node: NodeId) -> Result<(), OutOfTime> {
        let Some(place) = self.place.get(node.index()).map(|place| *place as usize) else { return Ok(()) };
        for access in tables.ir.accesses(node) {
            let Some((alloc, between)) = self.between.get(&access.view) else { continue };
            if !between.contains(&place) {
                let why = if place < between.start { "before it is allocated" } else { "after it is freed" };
                return Err(OutOfTime { alloc: *alloc, why });
            }
        }
        Ok(())
    }
}

/// Fills memory with zeros, and waits until that is complete.
fn clear(context: &impl InContext, device: &Device, zeros: &[(Mem, usize, usize)]) -> Result<()> {
    let queue = DriverQueue::with_properties(context, device, QueueProperties::default())?;
    for (mem, offset, size) in zeros {
        let dst = Location { mem, offset: *offset };
        enqueue::fill(&To { queue: &queue, waits: &Waits::NONE, event: false }, &dst, &[0], *size)?;
    }
    queue.finish()
}
