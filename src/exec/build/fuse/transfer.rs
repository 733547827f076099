//! Fills and copies of memory as launches of kernels that clgraph writes, so that a fused kernel can do them: a work-item a word.

use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::{Fusing, InTurn};
use crate::command::{Command, Location};
use crate::graph::Tables;
use crate::ir::{NodeId, ViewId, ViewKind};
use crate::lower::{BYTES, Need, Piece, Pointer};
use crate::opencl_c::fused::{COPY, FILL};

/// A fill or a copy as a launch.
pub(in crate::exec) struct Transfer {
    pub(in crate::exec) kernel: &'static str,
    pub(in crate::exec) memory: SmallVec<[ViewId; 2]>,
    /// The word to fill with, or by how many words the source is behind the destination.
    pub(in crate::exec) number: u32,
    /// The first word of the destination, and how many there are.
    first: u32,
    words: u32,
}

const WORD: usize = size_of::<u32>();

impl Transfer {
    /// Returns a fill or a copy as a launch; None if it is no such command, or if it is not of whole words in plain buffers, which
    /// numbers of 32 bits can count.
    pub(in crate::exec) fn of(tables: &Tables, node: NodeId) -> Option<Self> {
        let ir = &tables.ir;
        let word = |at: usize| at.is_multiple_of(WORD).then(|| u32::try_from(at / WORD).ok())?;
        let plain = |view: ViewId, forbidden: u64| {
            let kind = ir.views[view.index()].kind;
            let is_plain = matches!(kind, ViewKind::Buffer | ViewKind::SubBuffer | ViewKind::Placed { .. });
            let may = tables.mem(view)?.flags() & forbidden == 0;
            (is_plain && may).then_some(view)
        };
        match ir.command(node) {
            Command::Fill { dst: Location { mem, offset }, size, pattern, area: None } => {
                let number = one_word(ir.bytes(*pattern))?;
                let (memory, first, words) = (smallvec![plain(*mem, CL_MEM_READ_ONLY)?], word(*offset)?, word(*size)?);
                first.checked_add(words)?;
                Some(Self { kernel: FILL, memory, number, first, words })
            }
            Command::Copy { src, dst, size } => {
                let memory = smallvec![plain(src.mem, CL_MEM_WRITE_ONLY)?, plain(dst.mem, CL_MEM_READ_ONLY)?];
                let (from, first, words) = (word(src.offset)?, word(dst.offset)?, word(*size)?);
                from.checked_add(words).and(first.checked_add(words))?;
                Some(Self { kernel: COPY, memory, number: from.wrapping_sub(first), first, words })
            }
            _ => None,
        }
    }

    /// Returns whether it takes less time in a kernel than as a command.
    pub(in crate::exec) fn fits(&self, rules: InTurn) -> bool {
        u64::from(self.words) <= rules.most_better
    }

    /// Returns offset, global size and local size.
    pub(in crate::exec) fn range(&self) -> [[usize; 3]; 3] {
        [[self.first as usize, 0, 0], [self.words as usize, 1, 1], [1; 3]]
    }

    /// Returns its memory, which is touched byte by byte.
    pub(in crate::exec) fn pointers(&self) -> impl Iterator<Item = Pointer<ViewId>> {
        self.memory.iter().map(|to| Pointer { to: *to, is_constant: false, element: Some(BYTES) })
    }
}

/// Returns a pattern as a word that has it again and again.
fn one_word(pattern: &[u8]) -> Option<u32> {
    let word: Vec<u8> = pattern.iter().copied().cycle().take(WORD).collect();
    let is_same = |part: &[u8]| part == &word[..part.len()];
    let fits = !pattern.is_empty() && (WORD.is_multiple_of(pattern.len()) || pattern.len().is_multiple_of(WORD));
    (fits && pattern.chunks(WORD).all(is_same)).then(|| word.try_into().map(u32::from_ne_bytes).ok())?
}

impl Fusing<'_> {
    /// Adds fills and copies that a launch waits for, or that wait for one, or for one another: they may be in its kernel. In the body of
    /// a loop whose turns a kernel may do, they need not.
    pub(super) fn add_transfers(&mut self, is_left: impl Fn(&Self, NodeId) -> bool) {
        let ir = &self.tables.ir;
        let mut programs: FxHashMap<NodeId, usize> =
            self.pieces.iter().map(|(node, piece)| (*node, piece.program)).collect();
        let of =
            |node| Some((node, Transfer::of(self.tables, node).filter(|of| of.words > 0 && of.fits(self.in_turn))?));
        let all: Vec<(NodeId, Transfer)> = ir.ids().filter_map(of).filter(|(node, _)| !is_left(self, *node)).collect();
        // One of the numbers of programs in a body, if it has several: then it is no chain anyway.
        let in_turning = programs.iter().map(|(node, program)| (self.flows.of(*node), *program));
        let of_loops: FxHashMap<usize, usize> =
            in_turning.filter(|(flow, _)| self.turning.contains_key(flow)).collect();
        // Of a row of them, those behind a launch are found first, and then those before one.
        for (node, transfer) in all.iter().chain(all.iter().rev()) {
            let node = *node;
            if programs.contains_key(&node) {
                continue;
            }
            let beside = ir.topology.succs(node).chain(ir.topology.preds(node));
            let mut beside = beside.filter(|other| self.flows.are_one(node, *other));
            let flow = self.flows.of(node);
            let of_loop = || of_loops.get(&flow).copied();
            let Some(program) = beside.find_map(|other| programs.get(&other).copied()).or_else(of_loop) else {
                continue;
            };
            programs.insert(node, program);
            let piece = self.piece_of_transfer(node, program, transfer);
            self.pieces.insert(node, piece);
        }
    }

    fn piece_of_transfer(&mut self, node: NodeId, program: usize, transfer: &Transfer) -> Piece {
        let number = self.number_of_type((None, "uint".to_owned())) as usize;
        let mut needs: Vec<Need> = transfer.memory.iter().copied().map(Need::Memory).collect();
        let mut shares: Vec<u32> = (0..needs.len()).map(|need| self.shares.get(node, need)).collect();
        // Numbers that are equal only by chance would keep updates from being followed.
        let own = |need: usize| match self.shares.get(node, need) {
            0 if self.shares.are_for_updates => OWN | node.0.wrapping_mul(MOST_NEEDS).wrapping_add(need as u32),
            share => share,
        };
        shares.push(own(needs.len()));
        needs.push(Need::Value(number, transfer.number.to_ne_bytes().to_vec()));
        let all = needs.len();
        for (at, size) in transfer.range().as_flattened().iter().enumerate().filter(|(_, size)| **size > 1) {
            needs.push(Need::Size(*size as u32));
            shares.push(own(all + at));
        }
        let pointers = transfer.pointers().collect();
        let turns = self.turning.contains_key(&self.flows.of(node));
        let items = transfer.words.into();
        Piece {
            program,
            needs,
            shares,
            pointers,
            in_turn: true,
            items,
            waiting: None,
            each_item: None,
            turns,
            begins: false,
            launch: false,
        }
    }
}

/// Shares with this bit are those of fills and copies: parameters are counted from 1, and are fewer.
const OWN: u32 = 1 << 31;

/// The most arguments and sizes of a fill or copy: two buffers, a number and a range. Two nodes may have one share in a graph of more than
/// 2^27 nodes: then an update may tear a form, which is built again.
const MOST_NEEDS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::one_word;

    #[test]
    fn patterns_that_a_word_repeats_are_words() {
        let word = |bytes: &[u8]| one_word(bytes).map(u32::to_ne_bytes);
        assert_eq!(word(&[7]), Some([7; 4]));
        assert_eq!(word(&[1, 2]), Some([1, 2, 1, 2]));
        assert_eq!(word(&[1, 2, 3, 4]), Some([1, 2, 3, 4]));
        assert_eq!(word(&[1, 2, 3, 4, 1, 2, 3, 4]), Some([1, 2, 3, 4]));
        assert_eq!(word(&[0; 16]), Some([0; 4]));
        assert_eq!(word(&[0; 12]), Some([0; 4]));
        for none in [&[1, 2, 3][..], &[1, 2, 3, 4, 1, 2, 3, 5], &[1, 2, 3, 4, 5, 6], &[]] {
            assert_eq!(word(none), None);
        }
    }
}
