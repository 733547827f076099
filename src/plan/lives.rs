//! When the memory that a graph owns is needed, and whether it is used in between only.

use std::ops::Range;

use super::PlanError;
use crate::ir::{AllocId, Ir, NodeId, Op, ViewKind};

/// By allocation: the steps of the order that need it, or none if no node does.
///
/// One that is not freed is needed for ever. One that is to be zero shares nothing with what is needed before it.
pub(super) fn lives(ir: &Ir, order: &[NodeId], updatable: bool) -> Result<Vec<Option<Range<usize>>>, PlanError> {
    #[derive(Clone, Default)]
    struct Seen {
        made: Option<usize>,
        first: Option<usize>,
        last: Option<(usize, NodeId)>,
        freed: Option<(usize, NodeId)>,
    }
    if ir.allocs.is_empty() {
        return Ok(Vec::new());
    }
    let mut seen = vec![Seen::default(); ir.allocs.len()];
    let wrong = |alloc: AllocId, first, second, why| PlanError::Memory { alloc, first, second, why };
    for (at, &node) in order.iter().enumerate() {
        match ir.op(node) {
            Op::Alloc(alloc) => seen[alloc.index()].made = Some(at),
            Op::Free(alloc) => {
                let seen = &mut seen[alloc.index()];
                if let Some((_, first)) = seen.freed {
                    return Err(wrong(*alloc, first, node, "is freed twice"));
                }
                seen.freed = Some((at, node));
            }
            _ => {
                for access in ir.accesses(node) {
                    let ViewKind::Owned(alloc) = ir.views[access.view.index()].kind else { continue };
                    let seen = &mut seen[alloc.index()];
                    if let Some((_, freed)) = seen.freed {
                        return Err(wrong(alloc, freed, node, "is used after it is freed"));
                    }
                    if seen.made.is_none() {
                        let made = ir.allocs[alloc.index()].node;
                        return Err(wrong(alloc, node, made, "is used before it is there"));
                    }
                    seen.first = seen.first.or(Some(at));
                    seen.last = Some((at, node));
                }
            }
        }
    }
    let life = |(seen, decl): (&Seen, &crate::ir::AllocDecl)| {
        // What an update brings lies between the two nodes.
        let (first, last) = match (seen.first, seen.last) {
            _ if updatable => (seen.made?, seen.freed.map_or(order.len(), |(at, _)| at)),
            (Some(first), Some((last, _))) => (first, last),
            _ => return None,
        };
        let steps = if seen.freed.is_some() { first..last + 1 } else { 0..usize::MAX / 2 };
        Some(if decl.zero { 0..steps.end } else { steps })
    };
    Ok(seen.iter().zip(&ir.allocs).map(life).collect())
}
