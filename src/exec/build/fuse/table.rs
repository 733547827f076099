//! The table of a fused kernel: values of its launches, in memory of their own, because a kernel cannot have so many bytes of arguments, or not
//! fast.
//!
//! Nothing writes that memory after it is made. An update makes new memory for the kernel: so each submission sees the values that it was
//! submitted with.

use std::ops::Range;

use super::Fusing;
use crate::cl::memory::region::AsRegion;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::InContext;
use crate::error::Result;
use crate::lower::{Chain, Need};

/// What is in the table of a fused kernel.
pub(in crate::exec) struct Table {
    /// The argument of the fused kernel that is its memory: the number of those before it, which are not in the table.
    pub(in crate::exec) argument: u32,
    /// Where each of the others is.
    pub(in crate::exec) places: Vec<Range<usize>>,
    pub(in crate::exec) bytes: Vec<u8>,
}

impl Table {
    /// Returns where an argument is in the table, if it is.
    pub(in crate::exec) fn place(&self, slot: u32) -> Option<Range<usize>> {
        self.places.get(slot.checked_sub(self.argument)? as usize).cloned()
    }
}

impl Fusing<'_> {
    /// Returns the table of a chain, if it has one.
    pub(super) fn table(&self, chain: &Chain) -> Option<Table> {
        if chain.tabled == 0 {
            return None;
        }
        let places = self.kernel(chain, &[]).table();
        let first = chain.needs.len() - chain.tabled;
        let mut bytes = vec![0; places.last()?.end];
        for (place, need) in places.iter().zip(&chain.needs[first..]) {
            match need {
                Need::Value(_, value) => bytes[place.clone()].copy_from_slice(value),
                Need::Size(size) => bytes[place.clone()].copy_from_slice(&size.to_ne_bytes()),
                Need::Memory(_) | Need::Local(..) => {}
            }
        }
        Some(Table { argument: first as u32, places, bytes })
    }
}

/// Makes the memory of a table.
pub(in crate::exec) fn memory_of(context: &impl InContext, bytes: &[u8]) -> Result<Mem> {
    Ok(Buffer::from_slice(context, bytes)?.region().mem)
}
