//! Work-groups: how fused kernels are launched, and which launches each work-group does for its part of the work-items.

use super::attempt::MOST_EACH_ITEM_OF_CPUS;
use super::{Fusing, KernelLoops, Table, memory_of};
use crate::cl::memory::region::AsRegion;
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::fused::Item;
use crate::cl::objects::kernel::Kernel;
use crate::command::{Command, Grid};
use crate::graph::FusedChain;
use crate::ir::NodeId;
use crate::lower::{Chain, Order};
use crate::opencl_c::fused::{Form, ONE_ITEM, TURNS_WORDS};
use crate::quirks;

/// The most work-items of launches that work-groups do part by part: their numbers have 31 bits.
const MOST_ITEMS: u64 = i32::MAX as u64;

/// What decides about the text of a chain's kernel: the number of its programs, how it is written, and what the compiler is told beside the
/// programs' options. Kernels of chains with the same are in one program.
pub(super) type TextOf = (usize, Order, Form, Option<String>);

/// The most work-items of a group that wait for each other between the launches of a chain and not in them, and the fewest that are worth it.
const MOST_IN_GROUP: usize = 64;
const LEAST_IN_GROUP: usize = 16;

/// Of so many launches, one whose loops have a number of turns makes a work-group faster than a work-item, where that depends on it.
const COUNTED_OF: usize = 4;

/// The most parts of launches that take as long in turn: with four of 512 work-items, 64 launches of `exp` take 0.7 to 1.0 of that on two cores,
/// and with eight 0.4 to 0.7. Where launches in turn may have fewer work-items, that decides.
const MOST_PARTS_IN_TURN: u64 = 2;

/// Returns how many work-groups do a range in parts of so many work-items. A part is some of a row, or some rows: see
/// `opencl_c/fused/parts.rs`.
fn parts_of(global: [usize; 3], part: u32) -> Option<usize> {
    let ([row, ..], part) = (global, part as usize);
    let rows = global[1].checked_mul(global[2])?;
    if row > part { rows.checked_mul(row.div_ceil(part)) } else { Some(rows.div_ceil(part / row.max(1))) }
}

fn grid_of(groups: usize, items: usize) -> Option<Grid> {
    let global = groups.checked_mul(items)?;
    Some(Grid { dims: 1, offset: [0; 3], global: [global, 1, 1], local: Some([items, 1, 1]) })
}

/// Returns how a fused kernel is launched whose work-groups do their parts of a range, if it was launched for another range as `was`.
pub(in crate::exec) fn in_parts(range: &Grid, part: u32, was: &Grid) -> Option<Grid> {
    let [items, ..] = was.local?;
    grid_of(parts_of(range.global, part)?, items)
}

/// Returns whether work-groups can do a range part by part that fits in turn but for the number of its work-items.
pub(in crate::exec) fn fits_in_parts(range: &Grid) -> bool {
    let items = range.global.iter().try_fold(1_u64, |all, size| all.checked_mul(*size as u64));
    items.is_some_and(|items| items <= MOST_ITEMS)
}

/// Launches with promises that may be in one chain, as far as their ranges say.
#[derive(Clone, Copy)]
pub(super) struct Promised {
    /// Whether work-groups can do all of them in parts.
    fit_in_parts: bool,
    count: usize,
    /// How many compute more than a little.
    heavy: usize,
}

impl Promised {
    pub(super) const NONE: Self = Self { fit_in_parts: true, count: 0, heavy: 0 };

    /// Adds a launch. `has_sizes`: its range fits in turn but for the number of its work-items.
    pub(super) fn add(&mut self, item: &Item<'_>, grid: &Grid, has_sizes: bool) {
        self.fit_in_parts &= item.vectorizes_in_loops && has_sizes && fits_in_parts(grid);
        self.count += 1;
        self.heavy += usize::from(!item.is_light);
    }

    /// Returns whether they are better in parts: one that computes more makes a kernel slow of as many as each work-item would do.
    fn go_in_parts(&self) -> bool {
        self.fit_in_parts && self.heavy > 0 && self.heavy * MOST_EACH_ITEM_OF_CPUS >= self.count
    }
}

impl Fusing<'_> {
    /// Decides which launches each work-group does part by part, and which go in turn for it.
    pub(super) fn choose_groups(&mut self) {
        for (node, piece) in &mut self.pieces {
            let Some(of) = &mut piece.each_item else { continue };
            if let Some(part) = self.in_turn.part {
                of.in_groups = self.promised.get(&of.range).is_some_and(Promised::go_in_parts);
                of.is_better |= of.in_groups && piece.items > MOST_PARTS_IN_TURN * u64::from(part);
            }
            // A kernel does the turns of a loop only where the launches of its body go in turn. With a condition that saves more than anything
            // else; without one the host counts, if the launches are better on their own.
            let has_condition = || self.turning.get(&self.flows.of(*node)).is_some_and(Option::is_some);
            of.is_better &= !(piece.turns && has_condition());
        }
    }

    /// Returns how many work-groups do the launches of a chain in parts.
    fn groups(&self, chain: &Chain) -> Option<usize> {
        let Command::Kernel { grid, .. } = self.tables.ir.command(chain.launches[0]) else { return None };
        parts_of(grid.global, self.in_turn.part?)
    }

    /// Returns how many work-items of a chain wait for each other.
    pub(super) fn group_of(&self, chain: &Chain) -> Option<usize> {
        chain.launches.iter().find_map(|node| self.pieces[node].waiting.as_ref()).map(|waiting| waiting.group)
    }

    /// Returns how the launches of a chain run that go in turn.
    pub(super) fn form(&self, chain: &Chain) -> Form {
        let is_group = chain.order == Order::InTurn
            && self.in_turn.form == Form::OneItem
            && (self.group_of(chain).is_some() || self.whole_group(chain).is_some());
        if is_group { Form::OneGroup } else { self.in_turn.form }
    }

    /// If a work-group does launches in turn that a work-item could do, because their loops let it: returns how many work-items it has. No launch has
    /// fewer.
    pub(super) fn whole_group(&self, chain: &Chain) -> Option<usize> {
        if self.turning.contains_key(&chain.flow()) { None } else { self.group_for_loops(chain) }
    }

    /// The same, if no kernel does the turns of a loop whose body the chain is.
    pub(super) fn group_for_loops(&self, chain: &Chain) -> Option<usize> {
        let is_of_one = self.in_turn.form == Form::OneItem && chain.order == Order::InTurn;
        if !is_of_one || !chain.lane_ends.is_empty() {
            return None;
        }
        let loops = |node: &NodeId| self.loops.get(node).copied().unwrap_or(KernelLoops::None);
        let counted = chain.launches.iter().filter(|node| loops(node) == KernelLoops::Counted).count();
        let others = chain.launches.iter().any(|node| loops(node) == KernelLoops::Others);
        if others || counted * COUNTED_OF < chain.launches.len() || self.group_of(chain).is_some() {
            return None;
        }
        let least = chain.launches.iter().map(|node| self.pieces[node].items).min()?;
        let items = 1 << least.checked_ilog2()?.min(MOST_IN_GROUP.min(self.most_in_group()).ilog2());
        (items >= LEAST_IN_GROUP).then_some(items)
    }

    /// Returns about how many calls the kernel of a chain has at most.
    pub(super) fn most_calls(&self, chain: &Chain) -> usize {
        let caps = self.device.caps();
        let others = || chain.launches.iter().any(|node| self.loops.get(node) == Some(&KernelLoops::Others));
        if self.form(chain) == Form::OneItem || !quirks::copies_behind_loops(caps) {
            return quirks::most_calls_in_fused_kernels(caps);
        }
        let [straight, in_loops] = quirks::MOST_WITH_BARRIERS;
        let most = if others() { in_loops } else { straight };
        let waits = chain.launches.iter().filter_map(|node| self.kernel_of(*node)).map(Kernel::waits).max();
        most.calls.min(most.barriers / waits.unwrap_or(0).max(1)).max(1)
    }

    /// Returns the most work-items of a work-group that does launches in turn.
    fn most_in_group(&self) -> usize {
        let caps = self.device.caps();
        quirks::most_in_groups_of_fused_kernels(caps).unwrap_or(usize::MAX).min(caps.max_work_group_size.max(1))
    }

    /// Returns the work-group of a fused kernel, if the driver does not choose it.
    pub(super) fn group(&self, chain: &Chain) -> Option<[usize; 3]> {
        if chain.order == Order::EachItem {
            let Command::Kernel { grid, .. } = self.tables.ir.command(chain.launches[0]) else { return None };
            return grid.local;
        }
        let items = match self.form(chain) {
            Form::OneItem => ONE_ITEM,
            Form::OneGroup => self.group_of(chain).or_else(|| self.whole_group(chain)).unwrap_or_else(|| {
                let all = chain.launches.iter().filter_map(|node| self.described(*node));
                let items = all.map(|(.., [_, global, _])| global.iter().product::<usize>());
                items.max().unwrap_or(1).next_power_of_two().min(self.most_in_group())
            }),
        };
        Some([items, 1, 1])
    }

    /// Returns what the compiler is told for the work-group of a fused kernel, if the source does not require it. A program that is built with
    /// such an option keeps its own. Where each work-item is on its own, an update may bring another work-group.
    pub(super) fn option(&self, chain: &Chain) -> Option<String> {
        let is_free = |node: &NodeId| {
            let program = self.programs.of(*node).map(|number| self.programs.program(number));
            program.and_then(|program| program.parts()).is_none_or(|(_, options)| !options.contains(quirks::REGISTERS))
        };
        let group = self.group(chain).filter(|_| chain.order != Order::EachItem)?;
        let option = quirks::option_for_work_group(self.device.caps(), group.iter().product())?;
        chain.launches.iter().all(is_free).then_some(option)
    }

    /// Returns what decides about the text of a chain's kernel, and its program.
    pub(super) fn text(&self, chain: &Chain) -> TextOf {
        (self.pieces[&chain.launches[0]].program, chain.order, self.form(chain), self.option(chain))
    }

    /// Returns how the fused kernel of a chain is launched. None if the driver takes fewer work-items in a work-group than it has.
    pub(super) fn launch(&self, chain: &Chain, kernel: Kernel) -> Option<FusedChain> {
        let facts = kernel.facts(self.device);
        let most = facts.map_or(1, |facts| facts.max_work_group).max(1);
        let local = self.group(chain);
        let fits = local.is_none_or(|local| local.iter().product::<usize>() <= most);
        if chain.order == Order::EachItem {
            let Command::Kernel { grid, .. } = self.tables.ir.command(chain.launches[0]) else { return None };
            return fits.then(|| FusedChain { kernel, grid: *grid, label: "".into(), table: None, turns: None });
        }
        // Fewer work-items share a launch too, if they do not wait for each other.
        let is_free = self.in_turn.form == Form::OneGroup && self.group_of(chain).is_none();
        let is_free = is_free && facts.is_none_or(|facts| facts.required_work_group.is_none());
        let items = match local {
            Some([items, ..]) if fits => items,
            Some(_) if is_free => most,
            _ => return None,
        };
        let groups = if chain.order == Order::EachGroup { self.groups(chain)? } else { self.lanes(chain) };
        let grid = grid_of(groups, items)?;
        let turns = match self.turning.get(&chain.flow()) {
            Some(condition) => {
                let state = Buffer::<u32>::new(kernel.program(), TURNS_WORDS).ok()?;
                Some((state.region().mem, *condition))
            }
            None => None,
        };
        let table = match self.table(chain) {
            Some(Table { bytes, .. }) => Some(memory_of(kernel.program(), &bytes).ok()?),
            None => None,
        };
        Some(FusedChain { kernel, grid, label: "".into(), table, turns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_some_of_a_row_or_some_rows() {
        let line = |items| parts_of([items, 1, 1], 512);
        assert_eq!([1, 512, 513, 1_024, 262_144].map(line), [1, 1, 2, 2, 512].map(Some));
        assert_eq!(parts_of([1_500, 15, 1], 512), Some(45));
        assert_eq!(parts_of([24, 32, 31], 512), Some(48), "21 rows in each, of 992");
        assert_eq!(parts_of([1, 1_000, 2], 512), Some(4));
        assert_eq!(parts_of([600, usize::MAX, 2], 512), None);
        let range = Grid { dims: 2, offset: [3, 4, 0], global: [1_024, 6, 1], local: Some([8, 2, 1]) };
        let was = grid_of(1, 64).unwrap();
        assert_eq!(in_parts(&range, 512, &was), grid_of(12, 64));
        assert!(fits_in_parts(&range));
        assert!(!fits_in_parts(&Grid { global: [1 << 20, 1 << 11, 1], ..range }));
    }
}
