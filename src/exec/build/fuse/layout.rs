//! Where the nodes of a graph are after launches were fused. Updates need it.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Fusing, InTurn, Table, Transfer};
use crate::command::Command;
use crate::graph::Flat;
use crate::ir::{NodeId, Span};
use crate::lower::{Chain, Chains, Order, Pointer};
use crate::opencl_c::fused::{FusedArg, FusedLaunch};
use crate::opencl_c::source::ParamKind;
use crate::quirks;

/// Where the nodes of a graph are after launches were fused, for updates.
#[derive(Default)]
pub(in crate::exec) struct Layout {
    /// By node before.
    pub(in crate::exec) places: Vec<Place>,
    pub(in crate::exec) chains: Vec<LaidChain>,
    /// The limits of its ranges.
    pub(in crate::exec) rules: Option<InTurn>,
    /// Whether a chain has a table.
    pub(in crate::exec) has_tables: bool,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::exec) enum Place {
    /// It is the node with this number now.
    Node(NodeId),
    /// It is a launch of a chain.
    Launch { chain: u32, at: u32 },
    /// It only orders others.
    Order,
}

/// Whether a kernel does the turns of the loop whose body its chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) enum Turns {
    None,
    /// As long as a condition holds.
    Condition,
    /// A number of them that is known.
    Counted,
}

/// Launches that are one node now.
pub(in crate::exec) struct LaidChain {
    pub(in crate::exec) node: NodeId,
    /// The arguments of the node.
    pub(in crate::exec) args: Span,
    pub(in crate::exec) order: Order,
    pub(in crate::exec) turns: Turns,
    /// The fewest work-items that a launch may have.
    pub(in crate::exec) least_items: u64,
    /// Whether other memory could divide it: a compiler may take some for constant, or launches touch memory by several types.
    pub(in crate::exec) depends_on_memory: bool,
    pub(in crate::exec) launches: Vec<LaidLaunch>,
    /// By slot, which is an argument of the fused kernel or a value in its table: how many arguments and sizes of launches it is.
    pub(in crate::exec) sharers: Vec<u32>,
    /// Where some of these are that are in memory.
    pub(in crate::exec) table: Option<Table>,
}

pub(in crate::exec) struct LaidLaunch {
    /// The node before.
    pub(in crate::exec) node: NodeId,
    /// By argument: its slot.
    pub(in crate::exec) args: Vec<u32>,
    /// Offset, global size and local size: slots, or written in the text of the fused kernel.
    pub(in crate::exec) range: [[FusedArg; 3]; 3],
    /// The arguments that are memory.
    pub(in crate::exec) pointers: SmallVec<[Pointer<u32>; 4]>,
    /// Whether the kernel may ask how its range is divided.
    pub(in crate::exec) may_see_groups: bool,
    /// If its work-items may wait for each other, what the work-items of a work-group are a multiple of. Work-groups keep their size.
    pub(in crate::exec) waiting: Option<usize>,
    /// Whether it is a fill or a copy.
    pub(in crate::exec) is_transfer: bool,
}

impl Fusing<'_> {
    /// Returns where the nodes are in the graph with fused nodes. `origins` are the nodes of each of its nodes.
    pub(super) fn layout<'c>(&self, chains: &'c Chains, fused: &Flat, origins: &[Vec<NodeId>]) -> Layout {
        let mut layout = Layout { rules: Some(self.in_turn), ..Layout::default() };
        layout.places = vec![Place::Order; self.tables.ir.len()];
        let first = |chain: &'c Chain| Some((*chain.launches.first()?, chain));
        let chain_of: FxHashMap<NodeId, &Chain> = chains.chains.iter().filter_map(first).collect();
        for (new, of) in (0..).map(NodeId).zip(origins) {
            let alone = of.as_slice().first().filter(|_| !fused.tables.is_fused(new, self.tables.kernels.len()));
            let Some(alone) = alone else {
                let Some(chain) = of.first().and_then(|first| chain_of.get(first)) else { continue };
                let number = layout.chains.len() as u32;
                for (at, node) in (0..).zip(&chain.launches) {
                    layout.places[node.index()] = Place::Launch { chain: number, at };
                }
                let Command::Kernel { args, .. } = fused.tables.ir.command(new) else { continue };
                layout.chains.push(self.laid(chain, new, *args));
                continue;
            };
            layout.places[alone.index()] = Place::Node(new);
        }
        layout.has_tables = layout.chains.iter().any(|chain| chain.table.is_some());
        layout
    }

    fn laid(&self, chain: &Chain, new: NodeId, args: Span) -> LaidChain {
        let mut sharers = vec![0; chain.needs.len()];
        chain.places.iter().flatten().for_each(|place| sharers[*place as usize] += 1);
        let launches = chain.launches.iter().zip(self.kernel(chain, &[]).launches);
        let launches: Vec<LaidLaunch> = launches.map(|(node, launch)| self.laid_launch(*node, launch)).collect();
        let mut pointers = launches.iter().flat_map(|launch| &launch.pointers);
        let first = pointers.clone().next().and_then(|pointer| pointer.element);
        let depends =
            |pointer: &Pointer<u32>| pointer.is_constant || pointer.element.is_none() || pointer.element != first;
        let depends_on_memory = pointers.any(depends);
        let turns = match self.turning.get(&chain.flow()) {
            None => Turns::None,
            Some(Some(_)) => Turns::Condition,
            Some(None) => Turns::Counted,
        };
        let order = chain.order;
        let table = self.table(chain);
        let least_items = self.whole_group(chain).map_or(0, |items| items as u64);
        LaidChain { node: new, args, order, turns, least_items, depends_on_memory, launches, sharers, table }
    }

    fn laid_launch(&self, node: NodeId, FusedLaunch { args, range, .. }: FusedLaunch) -> LaidLaunch {
        let param = |arg: &FusedArg| match arg {
            FusedArg::Param(at) => *at as u32,
            // Arguments of launches are parameters.
            FusedArg::Number(_) => 0,
        };
        let (mut pointers, mut may_see_groups, mut waiting) = (SmallVec::new(), true, None);
        let is_transfer = self.kernel_of(node).is_none();
        if let Some(transfer) = Transfer::of(self.tables, node) {
            let of = transfer.pointers();
            pointers.extend((0..).zip(of).map(|(to, Pointer { is_constant, element, .. })| Pointer {
                to,
                is_constant,
                element,
            }));
            may_see_groups = false;
        } else if let Some(Ok(item)) = self.kernel_of(node).map(|kernel| kernel.fused_item(self.device)) {
            let known = |element: String| {
                let of = self.type_in(self.programs.of(node)?, element);
                self.types.iter().position(|known| *known == of)
            };
            pointers.extend((0..).zip(item.text.each()).filter_map(|(to, param)| {
                let ParamKind::Global { is_constant } = param.kind else { return None };
                let element = item.element(param).and_then(known).map(|number| number as u32);
                Some(Pointer { to, is_constant, element })
            }));
            may_see_groups = item.may_see_groups;
            waiting = item.is_group.then(|| quirks::waiting_items_in_fused_kernels(self.device.caps())).flatten();
        }
        let args = args.iter().map(param).collect();
        LaidLaunch { node, args, range, pointers, may_see_groups, waiting, is_transfer }
    }
}
