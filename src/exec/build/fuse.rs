//! Fusing: which launches of a graph one kernel does, and the kernels that do them.
//!
//! What cannot be fused is no error: it runs as it is, and the report says why.

mod attempt;
mod cuts;
mod groups;
mod in_turn;
mod layout;
mod lines;
mod nodes;
mod programs;
mod shares;
mod table;
mod transfer;
mod turning;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cl::objects::device::Device;
use crate::cl::objects::fused::{self, Item, NotFused};
use crate::cl::objects::kept_programs::{KeptPrograms, MadeProgram};
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::program::Program;
use crate::command::{Arg, Command, Grid, Location};
use crate::exec::build::options::Loops;
use crate::graph::{Flat, FusedChain, Tables};
use crate::ir::flows::Flows;
use crate::ir::{ById, NodeId, ViewId};
use crate::lower::{self, Chain, Chains, EachItem, Need, Order, Piece, Pointer, Uses, Waiting};
use crate::opencl_c::fused::{
    Callee, Dialect, Form, FusedArg, FusedKernel, FusedLaunch, FusedParam, LOCAL_ALIGNMENT, ValueType, Way,
};
use crate::opencl_c::source::{Barriers, Loops as KernelLoops, ParamKind};
use crate::quirks;
use crate::report::fused::{FusedForm, FusedReport, NotFusedReport, WhyNotFused};

use self::attempt::Attempt;
use self::cuts::Cuts;
use self::groups::{Promised, TextOf};
pub(in crate::exec) use self::groups::{fits_in_parts, in_parts};
pub(in crate::exec) use self::in_turn::InTurn;
pub(in crate::exec) use self::layout::{LaidChain, LaidLaunch, Layout, Place, Turns};
pub(in crate::exec) use self::nodes::{FusedCommand, FusedNode};
use self::programs::Programs;
pub(in crate::exec) use self::shares::Shares;
pub(in crate::exec) use self::table::{Table, memory_of};
pub(in crate::exec) use self::transfer::Transfer;
use self::turning::{in_loops, turning};

/// A fused kernel, how it is launched, and what it is given.
pub(in crate::exec) struct FusedLaunches {
    pub(in crate::exec) kernel: Kernel,
    pub(in crate::exec) grid: Grid,
    pub(in crate::exec) needs: Vec<Need>,
    /// How many of these, the last ones, are in a table.
    pub(in crate::exec) tabled: usize,
    /// Whether the kernel does the turns of a loop.
    pub(in crate::exec) turns: bool,
}

/// A graph in which launches are fused.
pub(in crate::exec) struct FusedGraph {
    pub(in crate::exec) flat: Flat,
    pub(in crate::exec) reports: Reports,
    /// Empty if nothing was fused.
    pub(in crate::exec) launches: Vec<FusedLaunches>,
    pub(in crate::exec) layout: Layout,
    /// By node: which node it was, or the first that it stands for. Empty if nothing was fused.
    pub(in crate::exec) first_of: Vec<NodeId>,
    /// The programs that are to be kept, or were.
    pub(in crate::exec) made: Vec<MadeProgram>,
}

/// How a graph is fused.
#[derive(Clone, Copy)]
pub(in crate::exec) struct How<'a> {
    pub(in crate::exec) device: &'a Device,
    pub(in crate::exec) shares: &'a Shares,
    /// Whether nodes that no edges order keep their order.
    pub(in crate::exec) keeps_order: bool,
    /// How loops run.
    pub(in crate::exec) loops: Loops,
    /// Where fused kernels are kept for the next process.
    pub(in crate::exec) kept: Option<&'a KeptPrograms>,
}

/// What was fused, and why the rest was not.
#[derive(Default)]
pub(in crate::exec) struct Reports {
    pub(in crate::exec) fused: Vec<FusedReport>,
    pub(in crate::exec) not_fused: Vec<NotFusedReport>,
    /// For drawings: in the order of the planned nodes.
    pub(in crate::exec) nodes: Vec<FusedNode>,
}

/// The most work-groups of a launch that one work-group does in turn, if their work-items wait for each other.
const MOST_GROUPS: u64 = lower::MOST_ROUNDS;

/// The bytes of local memory that are left for tables of arguments and for the condition of a loop.
const TABLES: usize = 17 << 10;

/// Returns that no launch of a graph is fused, and why.
pub(in crate::exec) fn none(flat: &Flat, why: &WhyNotFused) -> Vec<NotFusedReport> {
    let ir = &flat.tables.ir;
    let all = ir.ids().filter(|node| matches!(ir.command(*node), Command::Kernel { .. }));
    all.map(|node| NotFusedReport { node: flat.origins.of(node).node.index(), why: why.clone() }).collect()
}

/// Fuses what fits.
pub(in crate::exec) fn fuse(flat: Flat, how: How<'_>) -> FusedGraph {
    let attempt = |joins| Attempt::new(&flat, how, joins);
    let Attempt { fusing, chains, mut built, not_fused, made } = match attempt(true) {
        // A compiler may refuse the text of several programs.
        failed if failed.joins_in_vain() => attempt(false),
        made => made,
    };
    let mut reports = Reports { not_fused, ..Reports::default() };
    let mut say = |node: NodeId, why: WhyNotFused| {
        reports.not_fused.push(NotFusedReport { node: flat.origins.of(node).node.index(), why });
    };
    let in_chain: FxHashSet<NodeId> = chains.chains.iter().flat_map(|chain| &chain.launches).copied().collect();
    let alone = fusing.pieces.iter().filter(|(node, piece)| piece.launch && !in_chain.contains(*node));
    let cuts = Cuts::of(&chains.cuts);
    alone.for_each(|(node, _)| {
        say(*node, cuts.beside(*node).map_or(WhyNotFused::Alone, |why| WhyNotFused::Apart { why }))
    });
    reports.not_fused.sort_by_key(|report| report.node);
    let form = |chain: &Chain| match (chain.order, fusing.form(chain)) {
        (Order::EachItem, _) => FusedForm::EachItem,
        (Order::EachGroup, _) => FusedForm::EachGroup,
        (Order::InTurn, Form::OneItem) => FusedForm::OneItem,
        (Order::InTurn, Form::OneGroup) => FusedForm::OneGroup,
    };
    let mut launches = Vec::new();
    for (chain, built) in chains.chains.iter().zip(&mut built) {
        if let Some(built) = built {
            let node = |node: &NodeId| flat.origins.of(*node).node.index();
            let (nodes, lanes) = (chain.launches.iter().map(node).collect(), fusing.lanes(chain));
            let ends = chain.launches.iter().find_map(|launch| cuts.behind(*launch));
            let report = FusedReport { nodes, form: form(chain), lanes, ends };
            built.label = format!("fused: {report}").into();
            reports.fused.push(report);
            let (kernel, grid, needs) = (built.kernel.clone(), built.grid, chain.needs.clone());
            let tabled = chain.tabled;
            launches.push(FusedLaunches { kernel, grid, needs, tabled, turns: built.turns.is_some() });
        }
    }
    let has_kernel: Vec<bool> = built.iter().map(Option::is_some).collect();
    match flat.fused(&chains, built) {
        Some((fused, origins)) => {
            let layout = fusing.layout(&chains, &fused, &origins);
            let its = chains.chains.iter().zip(&has_kernel).filter(|(_, has_kernel)| **has_kernel).zip(&reports.fused);
            let its = its.map(|((chain, _), report)| (chain, fusing.lane_ends(chain), report));
            reports.nodes = nodes::of(&flat, its, &origins);
            let first_of = (0..).zip(&origins).map(|(at, of)| of.first().copied().unwrap_or(NodeId(at))).collect();
            FusedGraph { flat: fused, reports, launches, layout, first_of, made }
        }
        None => {
            reports.fused.clear();
            let (launches, layout, first_of, made) = Default::default();
            FusedGraph { flat, reports, launches, layout, first_of, made }
        }
    }
}

/// What a launch has that fits.
struct Fits<'a> {
    item: Item<'a>,
    items: u64,
    in_turn: bool,
    /// If they fit in turn.
    sizes: Option<Sizes>,
    /// If its work-items may do it on their own.
    uses: Option<Uses>,
}

/// Returns whether a launch fits, but for its arguments.
fn fits<'a>(tables: &'a Tables, device: &Device, node: NodeId) -> Result<Fits<'a>, WhyNotFused> {
    let Command::Kernel { kernel, grid, .. } = tables.ir.command(node) else { return Err(WhyNotFused::Alone) };
    let kernel = &tables.kernels[kernel.index()];
    let of_kernel = |why: NotFused| WhyNotFused::Kernel { kernel: kernel.name().to_owned(), why: why.to_string() };
    let uses = Uses::of(&tables.ir, node);
    let items = items_of(grid, uses.is_some())?;
    let item = kernel.fused_item(device).map_err(of_kernel)?;
    let (promises, uses) = (uses.is_some(), uses.filter(|_| item.is_own));
    let waiting = match item.is_group {
        true => Some(quirks::waiting_items_in_fused_kernels(device.caps()).ok_or_else(|| of_kernel(NotFused::Waits))?),
        false => None,
    };
    let range = range_fits(kernel.name(), grid, (item.may_see_groups, waiting), uses.is_some());
    let (in_turn, sizes) = match range {
        Err(WhyNotFused::Size { .. } | WhyNotFused::Range) if promises && !item.is_own && !item.is_group => {
            return Err(of_kernel(item.not_own));
        }
        range => range?,
    };
    Ok(Fits { item, items, in_turn, sizes, uses })
}

/// Returns how many work-items a launch has, if they are not too many. `is_own`: they may do the launch on their own.
fn items_of(grid: &Grid, is_own: bool) -> Result<u64, WhyNotFused> {
    let items = grid.global.iter().try_fold(1_u64, |all, size| all.checked_mul(*size as u64));
    let fit = |items: &u64| *items > 0 && (is_own || *items <= in_turn::MOST_ITEMS);
    items.filter(fit).ok_or(WhyNotFused::Size { items: items.unwrap_or(u64::MAX) })
}

/// Offset, global size and local size in three dimensions.
type Sizes = [u32; 9];

/// Returns whether the range of a launch fits in turn, and its sizes, if they do. `may_see_groups`: the kernel may ask how it is divided;
/// `waiting`: its work-items may wait for each other, and each work-group has a multiple of so many; `is_own`: the work-items may do the
/// launch on their own.
pub(in crate::exec) fn range_fits(
    kernel: &str,
    grid: &Grid,
    (may_see_groups, waiting): (bool, Option<usize>),
    is_own: bool,
) -> Result<(bool, Option<Sizes>), WhyNotFused> {
    let items = items_of(grid, is_own)?;
    let is_small = items <= in_turn::MOST_ITEMS;
    let divides = |local: &[usize; 3]| (0..3).all(|dim| local[dim] > 0 && grid.global[dim].is_multiple_of(local[dim]));
    if grid.local.as_ref().map_or(may_see_groups, |local| !divides(local)) {
        return Err(WhyNotFused::Divided { kernel: kernel.to_owned() });
    }
    if let (Some(multiple), Some(local)) = (waiting, grid.local) {
        let group: usize = local.iter().product();
        if !group.is_multiple_of(multiple) {
            return Err(WhyNotFused::WorkGroup { kernel: kernel.to_owned(), items: group, multiple });
        }
        let (groups, most) = (items.div_ceil(group as u64), MOST_GROUPS);
        if groups > most {
            return Err(WhyNotFused::WorkGroups { kernel: kernel.to_owned(), groups, most });
        }
    }
    let (all, mut sizes) = (range(grid), [0_u32; 9]);
    let fits = |(size, of): (&usize, &mut u32)| u32::try_from(*size).map(|size| *of = size).is_ok();
    // In turn, the last work-item of a dimension has a number of 31 bits.
    let ends_well =
        |sizes: &Sizes, dim: usize| sizes[dim].checked_add(sizes[3 + dim]).is_some_and(|end| end <= i32::MAX as u32);
    let fit = all.as_flattened().iter().zip(&mut sizes).all(fits) && (0..3).all(|dim| ends_well(&sizes, dim));
    if !fit && !is_own {
        return Err(WhyNotFused::Range);
    }
    Ok((is_small && fit, fit.then_some(sizes)))
}

/// The range of launches that may be in one chain: their flow and the group of their program, and the dimensions with offset, global and local
/// size.
type Range = ([usize; 2], u32, [[usize; 3]; 3]);

/// The launches of a graph that fit.
struct Fusing<'a> {
    tables: &'a Tables,
    device: &'a Device,
    kept: Option<&'a KeptPrograms>,
    in_turn: InTurn,
    pieces: FxHashMap<NodeId, Piece>,
    programs: Programs<'a>,
    /// The types of values, and of what is in memory, with the number of the program if they mean something in it only.
    types: Vec<(Option<usize>, String)>,
    /// The ranges of launches with promises.
    ranges: FxHashMap<Range, usize>,
    /// By number of such a range.
    promised: FxHashMap<usize, Promised>,
    /// What loops the kernels of launches have.
    loops: FxHashMap<NodeId, KernelLoops>,
    shares: &'a Shares,
    flows: Flows,
    /// The flows of bodies whose turns a kernel may do, with where the conditions of their loops are; None if the number of turns is known.
    turning: BTreeMap<usize, Option<Location<ViewId>>>,
}

impl<'a> Fusing<'a> {
    /// `joins`: launches of several programs may be in one chain. `by_host`: bodies whose turns the host counts.
    fn new(
        tables: &'a Tables,
        How { device, shares, loops, kept, .. }: How<'a>,
        (joins, by_host): (bool, &BTreeSet<usize>),
        say: &mut impl FnMut(NodeId, WhyNotFused),
    ) -> Self {
        let (pieces, programs, types) = (FxHashMap::default(), Programs::new(joins), Vec::new());
        let in_turn = InTurn::of(device.caps());
        let (ranges, flows) = (FxHashMap::default(), Flows::new(&tables.ir));
        let mut turning = if loops == Loops::Auto { turning(tables) } else { BTreeMap::new() };
        turning.retain(|flow, _| !by_host.contains(flow));
        let (promised, loops) = (FxHashMap::default(), FxHashMap::default());
        let mut this = Self {
            tables,
            device,
            kept,
            in_turn,
            pieces,
            programs,
            types,
            ranges,
            promised,
            loops,
            shares,
            flows,
            turning,
        };
        let in_loops = in_loops(tables);
        let ir = &tables.ir;
        for node in ir.ids() {
            let Command::Kernel { kernel, args, grid, .. } = ir.command(node) else { continue };
            let piece = match in_loops.contains(&node) && !this.turning.contains_key(&this.flows.of(node)) {
                true => Err(WhyNotFused::InLoop),
                false => this.piece(node, &tables.kernels[kernel.index()], ir.args(*args), grid),
            };
            match piece {
                Ok(piece) => drop(this.pieces.insert(node, piece)),
                Err(why) => say(node, why),
            }
        }
        this.choose_groups();
        this.add_transfers(|this, node| in_loops.contains(&node) && !this.turning.contains_key(&this.flows.of(node)));
        this
    }

    /// Returns what a launch needs, or why it does not fit.
    fn piece(
        &mut self,
        node: NodeId,
        kernel: &'a Kernel,
        args: &[Arg<ById>],
        grid: &Grid,
    ) -> Result<Piece, WhyNotFused> {
        let Fits { item, items, in_turn, sizes, uses } = fits(self.tables, self.device, node)?;
        let mut needs = Vec::with_capacity(args.len());
        let mut pointers = Vec::new();
        if args.iter().any(|arg| matches!(arg, Arg::Indirect(_))) {
            return Err(WhyNotFused::Indirect { kernel: kernel.name().to_owned() });
        }
        if args.len() != item.text.each().len() {
            return Err(WhyNotFused::Argument { kernel: kernel.name().to_owned(), argument: args.len() });
        }
        let program = self.programs.add(node, kernel.program());
        for (argument, (arg, param)) in args.iter().zip(item.text.each()).enumerate() {
            needs.push(match (arg, param.kind) {
                (Arg::Memory(view), ParamKind::Global { is_constant }) => {
                    let element = item.element(param).map(|element| self.number_of(program, element));
                    pointers.push(Pointer { to: *view, is_constant, element });
                    Need::Memory(*view)
                }
                (Arg::Local(size), ParamKind::Local) => {
                    let is_local = |need: &&Need| matches!(need, Need::Local(..));
                    Need::Local(needs.iter().filter(is_local).count() as u32, *size)
                }
                (Arg::Value(bytes), ParamKind::Value) => {
                    let number = self.number_of(program, param.type_text.clone());
                    Need::Value(number as usize, self.tables.ir.bytes(*bytes).to_vec())
                }
                _ => return Err(WhyNotFused::Argument { kernel: kernel.name().to_owned(), argument }),
            });
        }
        let mut shares: Vec<u32> = (0..needs.len()).map(|need| self.shares.get(node, need)).collect();
        for (at, size) in sizes.into_iter().flatten().enumerate().filter(|(_, size)| *size > 1) {
            needs.push(Need::Size(size));
            shares.push(self.shares.get(node, args.len() + at));
        }
        let next = self.ranges.len();
        let group = self.programs.group(program);
        let number =
            ([self.flows.of(node), group], grid.dims, [grid.offset, grid.global, grid.local.unwrap_or_default()]);
        let each_item = uses.map(|uses| {
            let range = *self.ranges.entry(number).or_insert(next);
            self.promised.entry(range).or_insert(Promised::NONE).add(&item, grid, sizes.is_some());
            EachItem { range, uses, is_better: items > self.in_turn.most_better, in_groups: false }
        });
        let turns = self.turning.contains_key(&self.flows.of(node));
        let refuse = |why: NotFused| WhyNotFused::Kernel { kernel: kernel.name().to_owned(), why: why.to_string() };
        if turns && item.is_group && quirks::copies_behind_loops(self.device.caps()) {
            return Err(refuse(NotFused::WaitsInTurns));
        }
        if self.in_turn.form == Form::OneItem {
            let loops = match item.is_group.then(|| kernel.barriers()) {
                None => kernel.loops(),
                Some(Barriers::Straight) => KernelLoops::None,
                Some(Barriers::InLoop) => KernelLoops::Others,
                Some(Barriers::Conditional) => return Err(refuse(NotFused::WaitsUnderConditions)),
            };
            self.loops.insert(node, loops);
        }
        // A fused kernel leaves room before each local variable.
        let beside = item.text.locals().len() * LOCAL_ALIGNMENT;
        let own_local = kernel.facts(self.device).map_or(usize::MAX, |facts| facts.local_memory as usize);
        if beside > 0 && own_local == 0 && quirks::crashes_without_local_memory(self.device.caps()) {
            return Err(refuse(NotFused::Local));
        }
        let own_local = own_local.saturating_add(beside);
        let waiting = grid.local.filter(|_| item.is_group).map(|local| Waiting {
            group: local.iter().product(),
            own_local,
            most_local: (self.device.caps().local_memory as usize).saturating_sub(TABLES),
            is_apart: self.in_turn.form == Form::OneItem,
        });
        Ok(Piece {
            program: group,
            needs,
            shares,
            pointers,
            in_turn,
            items,
            waiting,
            each_item,
            turns,
            begins: false,
            launch: true,
        })
    }

    /// Returns the number of a type as a program has it.
    fn number_of(&mut self, program: usize, type_text: String) -> u32 {
        let new = self.type_in(program, type_text);
        self.number_of_type(new)
    }

    fn number_of_type(&mut self, new: (Option<usize>, String)) -> u32 {
        let number = self.types.iter().position(|known| *known == new).unwrap_or_else(|| {
            self.types.push(new);
            self.types.len() - 1
        });
        number as u32
    }

    fn type_in(&self, program: usize, type_text: String) -> (Option<usize>, String) {
        ((!self.programs.is_plain(program, &type_text)).then_some(program), type_text)
    }

    /// Builds the fused kernels of chains. Returns them with the arguments of each; None for a chain that stays as it is. `all` gets the
    /// programs that are to be kept, or were.
    fn build(
        &self,
        chains: &Chains,
        all: &mut Vec<MadeProgram>,
        say: &mut impl FnMut(NodeId, WhyNotFused),
    ) -> Vec<Option<FusedChain>> {
        let mut built: Vec<Option<FusedChain>> = chains.chains.iter().map(|_| None).collect();
        let caps = self.device.caps();
        let in_turn = |form, part| {
            Way::InTurn(Dialect {
                form,
                part,
                size_beyond: quirks::size_of_a_fourth_dimension(caps),
                vectorizes: quirks::vectorizes_loops_rightly(caps),
                joins_items: quirks::makes_vectors_of_items(caps),
                copies_behind_loops: quirks::copies_behind_loops(caps),
            })
        };
        let texts: Vec<TextOf> = chains.chains.iter().map(|chain| self.text(chain)).collect();
        let unlike: BTreeSet<_> = texts.iter().collect();
        for text in unlike {
            let (_, order, form, option) = text;
            let way = match order {
                Order::InTurn => in_turn(*form, None),
                Order::EachGroup => in_turn(*form, self.in_turn.part),
                Order::EachItem => Way::EachItem { in_range: false },
            };
            let of: Vec<usize> = (0..texts.len()).filter(|at| texts[*at] == *text).collect();
            let mut fuse = |of: &[usize]| {
                let its = of.iter().map(|at| &chains.chains[*at]);
                let units = self.programs.of_all(its.clone().flat_map(|chain| chain.launches.iter().copied()));
                let programs: Vec<&Program> = units.iter().map(|number| self.programs.program(*number)).collect();
                let kernels: Vec<FusedKernel> = its.map(|chain| self.kernel(chain, &units)).collect();
                let (kernels, made) = fused::fuse(&programs, (way, option.as_deref()), &kernels, self.kept)?;
                all.extend(made);
                Ok(kernels)
            };
            let mut refused = |at: usize, why: &NotFused| {
                for node in &chains.chains[at].launches {
                    let Some(kernel) = self.kernel_of(*node) else { continue };
                    let kernel = kernel.name().to_owned();
                    say(*node, WhyNotFused::Kernel { kernel, why: why.to_string() });
                }
            };
            let made = match fuse(&of) {
                Err(NotFused::NotBuilt) => {
                    let parts = self.parts(chains, &of);
                    match parts.len() {
                        2..=MOST_PARTS => parts.into_iter().map(|part| (fuse(&part), part)).collect(),
                        _ => vec![(Err(NotFused::NotBuilt), of)],
                    }
                }
                made => vec![(made, of)],
            };
            for (made, its) in made {
                let its = its.into_iter();
                match made {
                    Ok(made) => {
                        for (at, kernel) in its.zip(made) {
                            built[at] = self.launch(&chains.chains[at], kernel);
                            if built[at].is_none() {
                                refused(at, &NotFused::Driver);
                            }
                        }
                    }
                    Err(why) => its.for_each(|at| refused(at, &why)),
                }
            }
        }
        built
    }

    /// Divides chains by the kernels whose launches they are: one that cannot be a function keeps only those from being built that have
    /// it.
    fn parts(&self, chains: &Chains, of: &[usize]) -> Vec<Vec<usize>> {
        let mut parts: BTreeMap<BTreeSet<(usize, &str)>, Vec<usize>> = BTreeMap::new();
        for at in of {
            let launches = chains.chains[*at].launches.iter();
            let names = launches.filter_map(|node| Some((self.programs.of(*node)?, self.kernel_of(*node)?.name())));
            parts.entry(names.collect()).or_default().push(*at);
        }
        parts.into_values().collect()
    }

    fn kernel_of(&self, node: NodeId) -> Option<&'a Kernel> {
        match self.tables.ir.command(node) {
            Command::Kernel { kernel, .. } => Some(&self.tables.kernels[kernel.index()]),
            _ => None,
        }
    }

    /// Returns the name of a kernel, how many arguments it has, its dimensions and its range.
    fn described(&self, node: NodeId) -> Option<(String, usize, u32, [[usize; 3]; 3])> {
        if let Command::Kernel { kernel, args, grid, .. } = self.tables.ir.command(node) {
            let name = self.tables.kernels[kernel.index()].name().to_owned();
            return Some((name, args.len(), grid.dims, range(grid)));
        }
        let transfer = Transfer::of(self.tables, node)?;
        Some((transfer.kernel.to_owned(), transfer.memory.len() + 1, 1, transfer.range()))
    }

    /// Describes the fused kernel of a chain. `units` are the programs of which it is made.
    fn kernel(&self, chain: &Chain, units: &[usize]) -> FusedKernel {
        let unit = |program: usize| units.iter().position(|unit| *unit == program).unwrap_or(0);
        let value = |number: usize| match &self.types[number] {
            (None, text) => ValueType::Plain(text.clone()),
            (Some(program), text) => ValueType::Of(unit(*program), text.clone()),
        };
        let param = |need: &Need| match need {
            Need::Memory(_) => FusedParam::Memory,
            Need::Value(number, bytes) => FusedParam::Value(value(*number), bytes.len()),
            Need::Size(_) => FusedParam::Size,
            Need::Local(..) => FusedParam::Local,
        };
        let launches = chain.launches.iter().zip(&chain.places).filter_map(|(node, places)| {
            let (kernel, args, dims, all) = self.described(*node)?;
            let mut places = places.iter().map(|place| FusedArg::Param(*place as usize));
            let args = places.by_ref().take(args).collect();
            // Sizes of at most 1 are written; where each work-item is on its own, no size is needed.
            let size = |size: usize| match size {
                0 | 1 => FusedArg::Number(size as u32),
                _ => places.next().unwrap_or(FusedArg::Number(1)),
            };
            let range: Vec<FusedArg> = all.into_iter().flatten().map(size).collect();
            let range = [0, 3, 6].map(|at| [range[at], range[at + 1], range[at + 2]]);
            let kernel = Callee { unit: self.programs.of(*node).map_or(0, unit), kernel };
            Some(FusedLaunch { kernel, args, dims, range })
        });
        let (params, launches) = (chain.needs.iter().map(param).collect(), launches.collect());
        let turns = self.turning.contains_key(&chain.flow());
        let lane_ends = self.lane_ends(chain);
        let is_one_item = self.in_turn.form == Form::OneItem && chain.order != Order::EachItem;
        let is_stated = is_one_item || quirks::understates_work_groups(self.device.caps());
        let group = self.group(chain).filter(|_| is_stated && self.option(chain).is_none());
        FusedKernel { params, tabled: chain.tabled, launches, lane_ends, group, turns }
    }

    /// Returns where the lanes of a chain end that run side by side. The lanes of a loop's body would have to wait for each other, and a lane is
    /// under a condition, where some compilers do not take a barrier.
    fn lane_ends(&self, chain: &Chain) -> Vec<usize> {
        let is_apart = quirks::copies_behind_loops(self.device.caps()) && self.form(chain) == Form::OneGroup;
        if is_apart || self.turning.contains_key(&chain.flow()) { Vec::new() } else { chain.lane_ends.clone() }
    }

    fn lanes(&self, chain: &Chain) -> usize {
        self.lane_ends(chain).len() + 1
    }
}

/// The most parts that are built one by one.
const MOST_PARTS: usize = 4;

/// Returns offset, global size and local size of a launch. The local size is 1 if the driver chooses it, which no kernel sees that is
/// fused.
pub(in crate::exec) fn range(grid: &Grid) -> [[usize; 3]; 3] {
    [grid.offset, grid.global, grid.local.unwrap_or([1; 3])]
}
