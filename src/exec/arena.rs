//! The memory of an executable: what it puts in the place of its graph's own.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::report::{AllocationReport, MemoryReport};
use crate::cl::buffer::{AsRegion, Buffer};
use crate::cl::context::InContext;
use crate::cl::device::Device;
use crate::cl::enqueue::{self, To, Waits};
use crate::cl::mem::Mem;
use crate::cl::queue::{DriverQueue, QueueProperties};
use crate::error::{Error, FinalizeError, MemoryError, Result};
use crate::graph::{Flat, Tables};
use crate::ir::{AllocId, NodeId, ViewId, ViewKind};
use crate::plan::Plan;
use crate::plan::placement::{self, Life, Placement, Spot};

/// Where the graph's own memory lies.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) lives: Vec<Life>,
    /// Which allocations of the graph they are, as some are not needed; and which of them are kept for ever.
    pub(super) allocs: Vec<(usize, bool)>,
    pub(super) placement: Placement,
    /// Bytes without sharing.
    pub(super) apart: usize,
}

/// Makes the memory and puts it into a copy of the tables. Without any the tables are the same.
pub(super) fn place(
    context: &impl InContext,
    device: &Device,
    tables: &Arc<Tables>,
    plan: &Plan,
    share: bool,
) -> Result<(Arc<Tables>, Layout)> {
    if tables.ir.allocs.is_empty() {
        return Ok((Arc::clone(tables), Layout::default()));
    }
    let layout = lay_out(context, tables, plan, share)?;
    let failed = |source| FinalizeError::Memory { bytes: layout.placement.total(), source };
    let unwrap = |error| match error {
        Error::Memory(source) => Error::from(failed(source)),
        Error::Driver(source) => failed(MemoryError::Driver(source)).into(),
        error => error,
    };
    let arenas = layout.placement.arenas.iter().map(|size| Buffer::<u8>::new(context, *size));
    let arenas = arenas.collect::<Result<Vec<_>>>().map_err(unwrap)?;
    let spot_of: FxHashMap<usize, usize> =
        layout.allocs.iter().enumerate().map(|(at, (alloc, _))| (*alloc, at)).collect();
    let mut own = (**tables).clone();
    let mut placed = FxHashMap::default();
    for view in 0..own.views.len() {
        let ViewKind::Owned(alloc) = own.ir.views[view].kind else { continue };
        let (Some(mem), Some(at)) = (own.views[view].clone(), spot_of.get(&alloc.index())) else { continue };
        let spot = layout.placement.spots[*at];
        let start = spot.offset + mem.offset_in_root();
        let part = arenas[spot.arena].sub_buffer(start..start + mem.size()).map_err(unwrap)?;
        placed.insert((alloc, mem.offset_in_root()), ViewId(view as u32));
        own.views[view] = Some(part.region().mem);
        own.ir.views[view].kind = ViewKind::Placed;
    }
    own.placed = Some(Arc::new(placed));
    let zeros =
        layout.allocs.iter().zip(&layout.placement.spots).filter(|((alloc, _), _)| tables.ir.allocs[*alloc].zero);
    let zeros: Vec<(Mem, usize, usize)> = zeros
        .map(|((alloc, _), spot)| (arenas[spot.arena].region().mem, spot.offset, tables.ir.allocs[*alloc].size))
        .collect();
    if !zeros.is_empty() {
        clear(context, device, &zeros).map_err(unwrap)?;
    }
    Ok((Arc::new(own), layout))
}

impl Layout {
    /// As the report shows it.
    pub(super) fn report(&self, flat: &Flat) -> MemoryReport {
        let allocation = |(((alloc, kept), life), spot): ((&(usize, bool), &Life), &Spot)| AllocationReport {
            node: flat.origins.of(flat.tables.ir.allocs[*alloc].node).node.index(),
            bytes: life.size,
            buffer: spot.arena,
            offset: spot.offset,
            first: life.steps.start,
            last: (!kept).then(|| life.steps.end - 1),
        };
        MemoryReport {
            bytes: self.placement.total(),
            bytes_apart: self.apart,
            buffers: self.placement.arenas.clone(),
            allocations: self.allocs.iter().zip(&self.lives).zip(&self.placement.spots).map(allocation).collect(),
        }
    }
}

/// Where in the order nodes may use an executable's own memory, for those that updates bring.
pub(super) struct OwnMemory {
    /// By node. Empty where there is no such memory.
    place: Vec<u32>,
    /// The allocation that a view is of, and the places between which it is there.
    between: FxHashMap<ViewId, (AllocId, Range<usize>)>,
}

/// Why a node cannot use an allocation.
pub(super) struct OutOfTime {
    pub(super) alloc: AllocId,
    pub(super) why: &'static str,
}

impl OwnMemory {
    pub(super) fn new(plan: &Plan, tables: &Tables) -> Self {
        let views = tables.placed.iter().flat_map(|placed| placed.iter());
        let between = views.filter_map(|((alloc, _), view)| {
            let life = plan.lives.of.get(alloc.index())?.as_ref()?;
            Some((*view, (*alloc, life.between.clone())))
        });
        Self { place: plan.lives.place.clone(), between: between.collect() }
    }

    /// Whether a node of an executable uses this memory only while it is there. Others may have its bytes at other times.
    pub(super) fn check(&self, tables: &Tables, node: NodeId) -> Result<(), OutOfTime> {
        let Some(place) = self.place.get(node.index()).map(|place| *place as usize) else { return Ok(()) };
        for access in tables.ir.accesses(node) {
            let Some((alloc, between)) = self.between.get(&access.view) else { continue };
            if !between.contains(&place) {
                let why = if place < between.start { "before it is there" } else { "after it is freed" };
                return Err(OutOfTime { alloc: *alloc, why });
            }
        }
        Ok(())
    }
}

fn lay_out(context: &impl InContext, tables: &Tables, plan: &Plan, share: bool) -> Result<Layout> {
    let needed = plan.lives.of.iter().enumerate().filter_map(|(alloc, life)| {
        let life = life.as_ref()?;
        Some(((alloc, life.kept), Life { size: tables.ir.allocs[alloc].size, steps: life.needed.clone() }))
    });
    let (allocs, lives): (Vec<(usize, bool)>, Vec<Life>) = needed.unzip();
    let (align, limit) = context.context().buffer_limits();
    placement::sum(&lives, align).ok_or(FinalizeError::OwnMemory)?;
    let apart = placement::apart(&lives, align, limit);
    let unshared = apart.total();
    let placement = if share { placement::place(&lives, align, limit) } else { apart };
    // Whoever shares a byte that it must not would compute something else.
    placement::check(&lives, &placement, align, limit).map_err(|what| FinalizeError::Defect { what })?;
    Ok(Layout { lives, allocs, placement, apart: unshared })
}

/// Fills with zeros, and waits until it is done.
fn clear(context: &impl InContext, device: &Device, zeros: &[(Mem, usize, usize)]) -> Result<()> {
    let queue = DriverQueue::with_properties(context, device, QueueProperties::default())?;
    for (mem, offset, size) in zeros {
        enqueue::fill(&To { queue: &queue, waits: &Waits::NONE, event: false }, (mem, *offset), &[0], *size)?;
    }
    queue.finish()
}
