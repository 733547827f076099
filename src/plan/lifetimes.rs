//! When the memory that a graph owns is needed. Also checks that it is used only between its allocation and its
//! free.

use std::ops::Range;

use super::PlanError;
use crate::command::Command;
use crate::ir::{AllocId, Ir, NodeId, ViewKind};

/// When the graph's own memory is needed, as places in the order of nodes. The place of a node is the number of nodes
/// before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// By allocation. None if no node needs it.
    pub(crate) of: Vec<Option<Lifetime>>,
    /// By node. Empty if the graph owns no memory.
    pub(crate) place: Vec<u32>,
}

/// The lifetime of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// The places that need its bytes: no other allocation that is needed there may have them.
    pub(crate) needed: Range<usize>,
    /// Where nodes may use it: after the node that makes it, and before the one that frees it, if there is one.
    pub(crate) between: Range<usize>,
    /// Whether it is never freed, and keeps its content from one submission to the next.
    pub(crate) kept: bool,
}

/// Finds the lifetimes. An allocation that is not freed is needed everywhere. An allocation that is to be zero shares
/// no bytes with one that is needed before it.
pub(super) fn lifetimes(ir: &Ir, order: &[NodeId], updatable: bool) -> Result<Lifetimes, PlanError> {
    #[derive(Clone, Default)]
    struct Seen {
        made: Option<usize>,
        first: Option<usize>,
        last: Option<usize>,
        freed: Option<(usize, NodeId)>,
    }
    if ir.allocs.is_empty() {
        return Ok(Lifetimes::default());
    }
    let mut seen = vec![Seen::default(); ir.allocs.len()];
    let mut place = vec![0; ir.len()];
    let unknown = |alloc: &AllocId| PlanError::Defect(format!("there is no allocation {}", alloc.0));
    for (at, &node) in order.iter().enumerate() {
        place[node.index()] = at as u32;
        match ir.command(node) {
            Command::Alloc(alloc) => seen.get_mut(alloc.index()).ok_or_else(|| unknown(alloc))?.made = Some(at),
            Command::Free(alloc) => {
                let seen = seen.get_mut(alloc.index()).ok_or_else(|| unknown(alloc))?;
                if let Some((_, freed)) = seen.freed {
                    return Err(PlanError::Late { alloc: *alloc, freed, node, why: "is freed twice" });
                }
                seen.freed = Some((at, node));
            }
            _ => {
                for access in ir.accesses(node) {
                    let ViewKind::Owned(alloc) = ir.views[access.view.index()].kind else { continue };
                    let seen = seen.get_mut(alloc.index()).ok_or_else(|| unknown(&alloc))?;
                    if let Some((_, freed)) = seen.freed {
                        return Err(PlanError::Late { alloc, freed, node, why: "is used after it is freed" });
                    }
                    if seen.made.is_none() {
                        return Err(PlanError::Early { alloc, node });
                    }
                    seen.first = seen.first.or(Some(at));
                    seen.last = Some(at);
                }
            }
        }
    }
    let life = |(seen, decl): (&Seen, &crate::ir::AllocDecl)| {
        let between = seen.made? + 1..seen.freed.map_or(order.len(), |(at, _)| at);
        let kept = seen.freed.is_none();
        let needed = match (seen.first, seen.last) {
            // An update may bring a use anywhere in between.
            _ if updatable => between.start - 1..between.end,
            (Some(first), Some(last)) => first..last + 1,
            _ => return None,
        };
        let start = if kept || decl.zero { 0 } else { needed.start };
        let end = if kept { order.len() } else { needed.end };
        Some(Lifetime { needed: start..end, between, kept })
    };
    Ok(Lifetimes { of: seen.iter().zip(&ir.allocs).map(life).collect(), place })
}
