//! Fusing: which launches of a graph one kernel does, and the kernels that do them.
//!
//! What cannot be fused is no error: it runs as it is, and the report says why.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cl::objects::device::Device;
use crate::cl::objects::fused::NotFused;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::program::Program;
use crate::command::{Arg, Command, ControlKind, Grid};
use crate::exec::build::options::{Finalize, Fuse};
use crate::graph::{Flat, FusedChain, Tables};
use crate::ir::{Body, ById, NodeId};
use crate::lower::{self, Chain, Chains, EachItem, Need, Piece, Uses};
use crate::opencl_c::fused::{Dialect, Form, FusedArg, FusedKernel, FusedLaunch, FusedParam, ONE_ITEM, Way};
use crate::opencl_c::source::ParamKind;
use crate::quirks;
use crate::report::fused::{FusedForm, FusedReport, NotFusedReport, WhyNotFused};

/// A fused kernel, how it is launched, and what it is given.
pub(in crate::exec) struct FusedLaunches {
    pub(in crate::exec) kernel: Kernel,
    pub(in crate::exec) grid: Grid,
    pub(in crate::exec) needs: Vec<Need>,
}

/// What was fused, and why the rest was not.
#[derive(Default)]
pub(in crate::exec) struct Reports {
    pub(in crate::exec) fused: Vec<FusedReport>,
    pub(in crate::exec) not_fused: Vec<NotFusedReport>,
}

/// The most work-items of a launch that is fused: more are done faster by several cores. One work-group does more work-items in the
/// same time than one work-item does.
fn most_items(form: Form) -> u64 {
    match form {
        Form::OneItem => 16_384,
        Form::OneGroup => 4_096,
    }
}

/// The most work-items of launches that are better in turn, where each work-item could do them on its own too: that is one more launch for
/// the driver to divide.
fn most_in_turn(form: Form) -> u64 {
    match form {
        Form::OneItem => 4_096,
        Form::OneGroup => 256,
    }
}

/// Fuses what fits. Returns the graph to plan, and the fused kernels in it.
pub(in crate::exec) fn fuse(
    flat: Flat,
    device: &Device,
    options: &Finalize,
    asked: Fuse,
) -> (Flat, Reports, Vec<FusedLaunches>) {
    let mut reports = Reports::default();
    let ir = &flat.tables.ir;
    let mut launches = Vec::new();
    let all = || ir.ids().filter(|node| matches!(ir.command(*node), Command::Kernel { .. }));
    let mut say = |node: NodeId, why: WhyNotFused| {
        reports.not_fused.push(NotFusedReport { node: flat.origins.of(node).node.index(), why });
    };
    match asked {
        Fuse::Off | Fuse::Auto => {}
        Fuse::Now if options.updatable => all().for_each(|node| say(node, WhyNotFused::Updatable)),
        Fuse::Now if options.profiling => all().for_each(|node| say(node, WhyNotFused::Profiled)),
        Fuse::Now => {
            let fusing = Fusing::new(&flat.tables, device, &mut say);
            let most = device.caps().max_parameter_size.saturating_sub(size_of::<u32>());
            let chains = lower::chains(ir, most, |node| fusing.pieces.get(&node));
            let mut built = fusing.build(&chains, &mut say);
            let in_chain: FxHashSet<NodeId> = chains.chains.iter().flat_map(|chain| &chain.launches).copied().collect();
            fusing
                .pieces
                .keys()
                .filter(|node| !in_chain.contains(node))
                .for_each(|node| say(*node, WhyNotFused::Alone));
            reports.not_fused.sort_by_key(|report| report.node);
            let form = |chain: &Chain| match fusing.form {
                _ if chain.each_item => FusedForm::EachItem,
                Form::OneItem => FusedForm::OneItem,
                Form::OneGroup => FusedForm::OneGroup,
            };
            for (chain, built) in chains.chains.iter().zip(&mut built) {
                if let Some(built) = built {
                    let node = |node: &NodeId| flat.origins.of(*node).node.index();
                    let report = FusedReport { nodes: chain.launches.iter().map(node).collect(), form: form(chain) };
                    built.label = format!("fused: {report}").into();
                    reports.fused.push(report);
                    let (kernel, grid, needs) = (built.kernel.clone(), built.grid, chain.needs.clone());
                    launches.push(FusedLaunches { kernel, grid, needs });
                }
            }
            if let Some(fused) = flat.fused(&chains, built) {
                return (fused, reports, launches);
            }
            reports.fused.clear();
        }
    }
    (flat, reports, Vec::new())
}

/// The launches of a graph that fit.
struct Fusing<'a> {
    tables: &'a Tables,
    device: &'a Device,
    form: Form,
    pieces: FxHashMap<NodeId, Piece>,
    /// By number of the pieces.
    programs: Vec<&'a Program>,
    /// The types of values.
    types: Vec<String>,
    /// The ranges of launches that work-items may do on their own, with the number of dimensions.
    ranges: FxHashMap<(u32, [[usize; 3]; 3]), usize>,
}

impl<'a> Fusing<'a> {
    fn new(tables: &'a Tables, device: &'a Device, say: &mut impl FnMut(NodeId, WhyNotFused)) -> Self {
        let (pieces, programs, types) = (FxHashMap::default(), Vec::new(), Vec::new());
        let form = if quirks::fuses_by_one_item(device.caps()) { Form::OneItem } else { Form::OneGroup };
        let mut this = Self { tables, device, form, pieces, programs, types, ranges: FxHashMap::default() };
        let in_loops = in_loops(tables);
        let ir = &tables.ir;
        for node in ir.ids() {
            let Command::Kernel { kernel, args, grid, .. } = ir.command(node) else { continue };
            let piece = match in_loops.contains(&node) {
                true => Err(WhyNotFused::InLoop),
                false => this.piece(node, &tables.kernels[kernel.index()], ir.args(*args), grid),
            };
            match piece {
                Ok(piece) => drop(this.pieces.insert(node, piece)),
                Err(why) => say(node, why),
            }
        }
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
        let of_kernel = |why: NotFused| WhyNotFused::Kernel { kernel: kernel.name().to_owned(), why: why.to_string() };
        let items = grid.global.iter().try_fold(1_u64, |all, size| all.checked_mul(*size as u64));
        let too_many = || WhyNotFused::Size { items: items.unwrap_or(u64::MAX) };
        let Some(items) = items.filter(|items| *items > 0) else { return Err(too_many()) };
        let uses = Uses::of(&self.tables.ir, node);
        let mut in_turn = items <= most_items(self.form);
        if !in_turn && uses.is_none() {
            return Err(too_many());
        }
        let item = kernel.item(self.device).map_err(of_kernel)?;
        let divides =
            |local: &[usize; 3]| (0..3).all(|dim| local[dim] > 0 && grid.global[dim].is_multiple_of(local[dim]));
        if grid.local.as_ref().map_or(item.may_see_groups, |local| !divides(local)) {
            return Err(WhyNotFused::Divided { kernel: kernel.name().to_owned() });
        }
        let mut needs = Vec::with_capacity(args.len());
        let mut constant = Vec::new();
        if args.len() != item.text.each().len() {
            return Err(WhyNotFused::Argument { kernel: kernel.name().to_owned(), argument: args.len() });
        }
        for (argument, (arg, param)) in args.iter().zip(item.text.each()).enumerate() {
            needs.push(match (arg, param.kind) {
                (Arg::Memory(view), ParamKind::Global { is_constant }) => {
                    constant.extend(is_constant.then_some(*view));
                    Need::Memory(*view)
                }
                (Arg::Value(bytes), ParamKind::Value) => {
                    let known = self.types.iter().position(|known| *known == param.type_text);
                    let number = known.unwrap_or_else(|| {
                        self.types.push(param.type_text.clone());
                        self.types.len() - 1
                    });
                    Need::Value(number, self.tables.ir.bytes(*bytes).to_vec())
                }
                _ => return Err(WhyNotFused::Argument { kernel: kernel.name().to_owned(), argument }),
            });
        }
        // In turn, the last work-item of a dimension has a number of 32 bits.
        let sizes: Result<Vec<u32>, _> = range(grid).into_iter().flatten().map(u32::try_from).collect();
        match sizes {
            Ok(sizes) if (0..3).all(|dim| sizes[dim].checked_add(sizes[3 + dim]).is_some()) => {
                needs.extend(sizes.into_iter().filter(|size| *size > 1).map(Need::Size));
            }
            _ if uses.is_none() => return Err(WhyNotFused::Range),
            _ => in_turn = false,
        }
        let next = self.ranges.len();
        let number = (grid.dims, [grid.offset, grid.global, grid.local.unwrap_or_default()]);
        let each_item = uses.map(|uses| EachItem {
            range: *self.ranges.entry(number).or_insert(next),
            uses,
            is_better: items > most_in_turn(self.form),
        });
        let program = self.programs.iter().position(|known| known.is(kernel.program()));
        let program = program.unwrap_or_else(|| {
            self.programs.push(kernel.program());
            self.programs.len() - 1
        });
        Ok(Piece { program, needs, constant, in_turn, each_item })
    }

    /// Builds the fused kernels of chains. Returns them with the arguments of each; None for a chain that stays as it is.
    fn build(&self, chains: &Chains, say: &mut impl FnMut(NodeId, WhyNotFused)) -> Vec<Option<FusedChain>> {
        let mut built: Vec<Option<FusedChain>> = chains.chains.iter().map(|_| None).collect();
        let caps = self.device.caps();
        let in_turn = Way::InTurn(Dialect {
            form: self.form,
            size_beyond: quirks::size_of_a_fourth_dimension(caps),
            vectorizes: quirks::vectorizes_loops_rightly(caps),
        });
        let both = |at| [in_turn, Way::EachItem].map(|way| (at, way));
        for ((number, program), way) in self.programs.iter().enumerate().flat_map(both) {
            let is_of = |at: &usize| {
                let chain = &chains.chains[*at];
                chain.each_item == (way == Way::EachItem) && self.pieces[&chain.launches[0]].program == number
            };
            let of: Vec<usize> = (0..chains.chains.len()).filter(is_of).collect();
            if of.is_empty() {
                continue;
            }
            let kernels: Vec<FusedKernel> = of.iter().map(|at| self.kernel(&chains.chains[*at])).collect();
            let mut refused = |at: usize, why: &NotFused| {
                for node in &chains.chains[at].launches {
                    let kernel = self.kernel_of(*node).name().to_owned();
                    say(*node, WhyNotFused::Kernel { kernel, why: why.to_string() });
                }
            };
            let all: Vec<usize> = (0..of.len()).collect();
            let parts = match program.fuse(way, &kernels) {
                Err(NotFused::NotBuilt) if (2..=MOST_PARTS).contains(&parts(&kernels).len()) => {
                    let fuse = |part: Vec<usize>| {
                        let its: Vec<FusedKernel> = part.iter().map(|at| kernels[*at].clone()).collect();
                        (program.fuse(way, &its), part)
                    };
                    parts(&kernels).into_iter().map(fuse).collect()
                }
                made => vec![(made, all)],
            };
            for (made, part) in parts {
                let its = part.into_iter().map(|at| of[at]);
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

    fn kernel_of(&self, node: NodeId) -> &'a Kernel {
        match self.tables.ir.command(node) {
            Command::Kernel { kernel, .. } => &self.tables.kernels[kernel.index()],
            // Only launches are pieces.
            _ => &self.tables.kernels[0],
        }
    }

    /// Describes the fused kernel of a chain.
    fn kernel(&self, chain: &Chain) -> FusedKernel {
        let param = |need: &Need| match need {
            Need::Memory(_) => FusedParam::Memory,
            Need::Value(number, bytes) => FusedParam::Value(self.types[*number].clone(), bytes.len()),
            Need::Size(_) => FusedParam::Size,
        };
        let place = |need: &Need| FusedArg::Param(chain.needs.iter().position(|known| known == need).unwrap_or(0));
        let size = |size: usize| match u32::try_from(size) {
            Ok(size) if size > 1 => place(&Need::Size(size)),
            _ => FusedArg::Number(size.min(1) as u32),
        };
        let launch = |node: &NodeId| {
            let Command::Kernel { kernel, args, grid, .. } = self.tables.ir.command(*node) else { return None };
            let count = args.len();
            let needs = &self.pieces[node].needs;
            Some(FusedLaunch {
                kernel: self.tables.kernels[kernel.index()].name().to_owned(),
                args: needs[..count].iter().map(place).collect(),
                dims: grid.dims,
                range: range(grid).map(|sizes| sizes.map(size)),
            })
        };
        FusedKernel {
            params: chain.needs.iter().map(param).collect(),
            launches: chain.launches.iter().filter_map(launch).collect(),
        }
    }

    /// Returns how the fused kernel of a chain is launched. None if the driver takes fewer work-items in a work-group than it has.
    fn launch(&self, chain: &Chain, kernel: Kernel) -> Option<FusedChain> {
        if chain.each_item {
            let Command::Kernel { grid, .. } = self.tables.ir.command(chain.launches[0]) else { return None };
            let most = kernel.facts(self.device).map_or(1, |facts| facts.max_work_group);
            let fits = grid.local.is_none_or(|local| local.iter().product::<usize>() <= most);
            return fits.then(|| FusedChain { kernel, grid: *grid, label: "".into() });
        }
        let items = match self.form {
            Form::OneItem => ONE_ITEM,
            Form::OneGroup => {
                let items = chain.launches.iter().map(|node| match self.tables.ir.command(*node) {
                    Command::Kernel { grid, .. } => grid.global.iter().product::<usize>(),
                    _ => 1,
                });
                let most = kernel.facts(self.device).map_or(1, |facts| facts.max_work_group).max(1);
                items.max().unwrap_or(1).next_power_of_two().min(most)
            }
        };
        let grid = Grid { dims: 1, offset: [0; 3], global: [items, 1, 1], local: Some([items, 1, 1]) };
        Some(FusedChain { kernel, grid, label: "".into() })
    }
}

/// The most parts that are built one by one.
const MOST_PARTS: usize = 4;

/// Divides fused kernels by the kernels whose launches they do: one that cannot be a function keeps only those from being built that
/// have it.
fn parts(kernels: &[FusedKernel]) -> Vec<Vec<usize>> {
    let mut parts: BTreeMap<BTreeSet<&str>, Vec<usize>> = BTreeMap::new();
    for (at, kernel) in kernels.iter().enumerate() {
        let names = kernel.launches.iter().map(|launch| launch.kernel.as_str());
        parts.entry(names.collect()).or_default().push(at);
    }
    parts.into_values().collect()
}

/// Returns offset, global size and local size of a launch. The local size is 1 if the driver chooses it, which no kernel sees that is
/// fused.
fn range(grid: &Grid) -> [[usize; 3]; 3] {
    [grid.offset, grid.global, grid.local.unwrap_or([1; 3])]
}

/// Returns the nodes in bodies of loops that a condition ends. Their turns can go ahead of the condition, which takes less time.
fn in_loops(tables: &Tables) -> FxHashSet<NodeId> {
    let ir = &tables.ir;
    let mut all = FxHashSet::default();
    for node in ir.ids() {
        if let Command::Control(control) = ir.command(node)
            && matches!(control.kind, ControlKind::While { .. })
        {
            for body in control.bodies.of(&ir.bodies) {
                if let Body::Inlined { nodes, .. } = body {
                    all.extend(nodes.clone().map(NodeId));
                }
            }
        }
    }
    all
}
