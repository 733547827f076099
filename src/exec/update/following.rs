//! How the fused form of an executable follows updates.
//!
//! An update changes the executable as if nothing were fused: so what is allowed, what fails and what conflicts does not depend on
//! fusing. Only then the fused form gets what has changed. A node that is alone there gets its values as from a graph. An argument of a
//! launch in a chain is an argument of the fused kernel, maybe together with equal arguments of other launches.
//!
//! The form does not fit any more if arguments that are one get different values, if a launch could not be in such a chain, or if memory
//! of a chain meets in a way in which it would not have been built. Then the executable goes on without it. So nothing is undone here: a
//! form that was changed halfway is dropped.

use std::sync::Arc;

use crate::command::{Arg, Command, ControlKind, Grid};
use crate::exec::build::fuse::{self, LaidChain, LaidLaunch, Place, Transfer, Turns};
use crate::exec::build::values::{Objects, Old, Stale, Values, set_arg};
use crate::exec::finalized::Finalized;
use crate::exec::tier::{Form, FusedPlan};
use crate::exec::update::destinations::Destination;
use crate::exec::update::editing::Touched;
use crate::exec::update::transaction::apply_to_object;
use crate::graph::edit::undo::Edit;
use crate::graph::{Index, Tables, Writer};
use crate::ir::{ById, NodeId, Span, ViewId};
use crate::lower::{Order, Pointer, Together, Uses};
use crate::opencl_c::fused::FusedArg;
use crate::report::WhyNotFused;

/// Why a fused form cannot follow an update.
pub(in crate::exec) struct Unfit {
    /// The planned node of the executable.
    pub(in crate::exec) node: NodeId,
    pub(in crate::exec) why: WhyNotFused,
    /// Arguments that are not to be one with others when it is built again: the nodes, and the needs of their pieces.
    pub(in crate::exec) apart: Vec<(NodeId, u32)>,
}

impl Unfit {
    fn new(node: NodeId, change: impl Into<String>) -> Self {
        Self { node, why: WhyNotFused::Update { change: change.into() }, apart: Vec::new() }
    }
}

/// A new value of an argument of a fused kernel.
enum New<'a> {
    Bytes(&'a [u8]),
    Memory(ViewId),
}

/// What is changed of the chains of a form.
struct Changing<'a> {
    plan: &'a FusedPlan,
    counts: &'a mut [Vec<u32>],
    /// The arguments of fused kernels that are changed: chain and argument.
    begun: &'a mut Vec<(u32, u32)>,
}

/// The count of an argument whose sharers get different values.
const TORN: u32 = u32::MAX;

impl Changing<'_> {
    /// Notes that an argument of a launch is changed. `differs`: the fused kernel had another value until now.
    #[inline]
    fn note(&mut self, (chain, slot): (u32, u32), differs: bool) {
        let count = &mut self.counts[chain as usize][slot as usize];
        match (*count, differs) {
            (0, false) => return,
            (0, true) => self.begun.push((chain, slot)),
            // Another launch has just given it another value.
            (_, true) => *count = TORN,
            (_, false) => {}
        }
        *count = count.saturating_add(1);
    }

    /// Whether all arguments that are one got the new value. Otherwise those remain that did not.
    #[inline]
    fn end(&mut self) -> bool {
        let Self { plan, counts, begun } = self;
        let mut is_torn = false;
        for (chain, slot) in &**begun {
            is_torn |= counts[*chain as usize][*slot as usize] != sharers(plan, (*chain, *slot));
        }
        let is_torn_one =
            |at: &(u32, u32)| std::mem::take(&mut counts[at.0 as usize][at.1 as usize]) != sharers(plan, *at);
        if is_torn {
            begun.retain(is_torn_one);
        } else {
            begun.iter().for_each(|(chain, slot)| counts[*chain as usize][*slot as usize] = 0);
        }
        !is_torn
    }

    /// Returns which of some arguments of launches are not to be one with others any more: nodes and needs.
    #[cold]
    fn torn(&self, moved: impl Iterator<Item = (NodeId, u32)>) -> Unfit {
        let is_torn = |(node, need): &(NodeId, u32)| {
            let Place::Launch { chain, at } = self.plan.layout.places[node.index()] else { return false };
            let slot = slot_of(&self.plan.layout.chains[chain as usize].launches[at as usize], *need);
            slot.is_some_and(|slot| self.begun.contains(&(chain, slot)))
        };
        let apart: Vec<(NodeId, u32)> = moved.filter(is_torn).collect();
        let node = apart.first().map_or(NodeId(0), |(node, _)| *node);
        Unfit { apart, ..Unfit::new(node, "a value that other launches of its fused kernel share") }
    }
}

/// Returns how many arguments and sizes of launches an argument of a fused kernel is.
#[inline]
fn sharers(plan: &FusedPlan, (chain, slot): (u32, u32)) -> u32 {
    plan.layout.chains[chain as usize].sharers[slot as usize]
}

/// Returns which argument of the fused kernel a need of a launch is.
fn slot_of(launch: &LaidLaunch, need: u32) -> Option<u32> {
    let need = need as usize;
    if let Some(slot) = launch.args.get(need) {
        return Some(*slot);
    }
    match launch.range.as_flattened().get(need - launch.args.len()) {
        Some(FusedArg::Param(slot)) => Some(*slot as u32),
        _ => None,
    }
}

/// The arguments of a node that is a kernel.
fn args_of(tables: &Tables, node: NodeId) -> Span {
    match tables.ir.command(node) {
        Command::Kernel { args, .. } => *args,
        _ => Span::default(),
    }
}

/// Writes a value in the place of one of the same size. Returns whether it is another one.
fn write(tables: &mut Tables, place: Arg<ById>, bytes: &[u8]) -> Option<bool> {
    let Arg::Value(span) = place else { return None };
    write_bytes(tables.ir.bytes_mut(span), bytes)
}

fn write_bytes(place: &mut [u8], bytes: &[u8]) -> Option<bool> {
    if place.len() != bytes.len() {
        return None;
    }
    let differs = place != bytes;
    place.copy_from_slice(bytes);
    Some(differs)
}

/// Does so for an argument of a fused kernel, which may be in its table.
fn write_slot(
    (tables, tabled): (&mut Tables, &mut [Vec<u8>]),
    laid: &LaidChain,
    (chain, slot): (u32, u32),
    bytes: &[u8],
) -> Option<bool> {
    match laid.table.as_ref().and_then(|table| table.place(slot)) {
        Some(place) => write_bytes(tabled[chain as usize].get_mut(place)?, bytes),
        None => write(tables, tables.ir.args(laid.args)[slot as usize], bytes),
    }
}

impl Form {
    /// Brings values to their places, of nodes in which nothing but values of parameters has changed. `main` has the executable's values.
    pub(in crate::exec) fn follow_values<'d>(
        &mut self,
        exec: &Finalized,
        main: &Tables,
        changed: impl Iterator<Item = &'d Destination> + Clone,
        old: &mut Vec<Old>,
    ) -> Result<(), Unfit> {
        let Self { plan, values, counts, begun, tabled, index, .. } = self;
        let (plan, values) = (&**plan, Arc::make_mut(values));
        let Values { tables, objects, stale, .. } = &mut *values;
        let tables = Arc::make_mut(tables);
        begun.clear();
        let mut changing = Changing { plan, counts, begun };
        let mut shared = Vec::new();
        let node_of = |one: &Destination| exec.plan.steps[one.step as usize].node;
        for one in changed.clone() {
            let (node, arg) = (node_of(one), usize::from(one.arg));
            let bytes = one.value(main);
            let other_kind = || Unfit::new(node, "an argument to one of another kind");
            match plan.layout.places[node.index()] {
                Place::Launch { chain, at } => {
                    let laid = &plan.layout.chains[chain as usize];
                    let slot = laid.launches[at as usize].args[arg];
                    let to = (&mut *tables, &mut **tabled);
                    let differs = write_slot(to, laid, (chain, slot), bytes).ok_or_else(other_kind)?;
                    changing.note((chain, slot), differs);
                }
                Place::Node(new) => {
                    let place = tables.ir.args(args_of(tables, new)).get(arg).copied().ok_or_else(other_kind)?;
                    write(tables, place, bytes).ok_or_else(other_kind)?;
                    let step = plan.step_of[new.index()].map_or(0, |step| step as usize);
                    set((tables, objects, stale), step, (arg, place), &mut shared).map_err(|()| refused(node))?;
                }
                Place::Order => {}
            }
        }
        if !changing.end() {
            return Err(changing.torn(changed.map(|one| (node_of(one), u32::from(one.arg)))));
        }
        renew_tables((tables, index.as_mut()), plan, (begun, tabled))?;
        set_all(values, plan, begun, shared, old)
    }

    /// Brings what all updates have changed since the executable had the values `was`.
    pub(in crate::exec) fn catch_up(
        &mut self,
        exec: &Finalized,
        was: &Tables,
        is: &Tables,
        old: &mut Vec<Old>,
    ) -> Result<(), Unfit> {
        let (touched, scratch) = differences(exec, was, is);
        old.push(scratch);
        self.follow(exec, is, &touched?, old)
    }

    /// Brings what an update has changed to its places. `main` has the executable's values.
    pub(in crate::exec) fn follow(
        &mut self,
        exec: &Finalized,
        main: &Tables,
        touched: &[Touched],
        old: &mut Vec<Old>,
    ) -> Result<(), Unfit> {
        let Self { plan, values, index, edit, counts, begun, tabled } = self;
        let (plan, values) = (&**plan, Arc::make_mut(values));
        let tables = Arc::make_mut(&mut values.tables);
        let index = index.get_or_insert_with(|| Index::of(tables));
        let mut to = Writer { tables, index };
        begun.clear();
        let mut changing = Changing { plan, counts, begun };
        let (mut alone, mut chains) = (Vec::new(), Vec::new());
        for one in touched {
            match plan.layout.places[one.node.index()] {
                Place::Node(new) => {
                    let changed = edit.assign(&mut to, new, main, one.node);
                    let changed =
                        changed.map_err(|why| Unfit::new(one.node, format!("what it cannot follow: {why}")))?;
                    let on_device = |flow| values.guards.on_device(flow).is_some();
                    if changed.memory && flow_of_body(&to, new).is_some_and(on_device) {
                        return Err(Unfit::new(one.node, "the condition of a loop whose turns a kernel does"));
                    }
                    alone.push((one.node, Touched { node: new, origin: one.origin, changed }));
                }
                Place::Launch { chain, at } => {
                    if change((chain, at), main, one, (&mut to, tabled), edit, &mut changing)? {
                        chains.push(chain);
                    }
                }
                Place::Order => {}
            }
        }
        if !changing.end() {
            return Err(changing.torn(touched.iter().flat_map(|one| needs(main, one))));
        }
        chains.sort_unstable();
        chains.dedup();
        for chain in chains {
            let laid = &plan.layout.chains[chain as usize];
            let Some(grid) = holds(laid, main)? else { continue };
            let Command::Kernel { kernel, .. } = to.ir.command(laid.node) else { continue };
            if laid.order == Order::EachGroup {
                let part = plan.layout.rules.and_then(|rules| rules.part);
                let of = to.tables.ir.grid_mut(laid.node).zip(part);
                let now = of.as_ref().and_then(|(of, part)| fuse::in_parts(&grid, *part, of));
                let (Some((of, _)), Some(now)) = (of, now) else {
                    return Err(Unfit::new(laid.launches[0].node, "its range to what its fused kernel cannot do"));
                };
                *of = now;
                continue;
            }
            let facts = to.kernels[kernel.index()].facts(&exec.device);
            let most = facts.map_or(1, |facts| facts.max_work_group);
            let required = facts.and_then(|facts| facts.required_work_group);
            let is_too_large = grid.local.is_some_and(|local| local.iter().product::<usize>() > most);
            if is_too_large || required.is_some_and(|required| grid.local != Some(required)) {
                let change = "its work-group to one that its fused kernel does not take";
                return Err(Unfit::new(laid.launches[0].node, change));
            }
            if let Some(of) = to.tables.ir.grid_mut(laid.node) {
                *of = grid;
            }
        }
        // What it owned is dropped where no lock is held.
        old.push(Arc::new(edit.commit(&mut to)));
        old.push(Arc::new(to.index.released(to.tables)));
        renew_tables((to.tables, Some(to.index)), plan, (begun, tabled))?;
        let mut replaced = Vec::new();
        for (node, one) in alone {
            let Some(step) = plan.step_of[one.node.index()] else { continue };
            let is_kernel = matches!(values.tables.ir.command(one.node), Command::Kernel { .. });
            if is_kernel && (one.changed.switched || !one.changed.args.is_empty()) {
                apply_to_object(values, step as usize, &one, &mut replaced).map_err(|_| refused(node))?;
            }
        }
        old.extend(replaced.into_iter().filter_map(|(_, object)| object).map(|object| object as Old));
        set_all(values, plan, begun, Vec::new(), old)
    }
}

/// Returns the flow of the body of a loop.
fn flow_of_body(tables: &Tables, node: NodeId) -> Option<usize> {
    match tables.ir.command(node) {
        Command::Control(control) if matches!(control.kind, ControlKind::While { .. }) => {
            Some(control.bodies.ends().0 as usize + 1)
        }
        _ => None,
    }
}

fn refused(node: NodeId) -> Unfit {
    Unfit::new(node, "an argument that the driver refused")
}

/// The arguments and sizes of a launch that an update has changed, as needs of its piece. Of a fill or copy, all that there may be.
fn needs(main: &Tables, Touched { node, changed, .. }: &Touched) -> Vec<(NodeId, u32)> {
    if !matches!(main.ir.command(*node), Command::Kernel { .. }) {
        return (0..3 + 9).map(|need| (*node, need)).collect();
    }
    let count = main.ir.args(args_of(main, *node)).len();
    let sizes = if changed.grid.is_some() { count..count + 9 } else { 0..0 };
    changed.args.of(count).chain(sizes).map(|need| (*node, need as u32)).collect()
}

/// Gives a kernel object an argument, or notes its step if others have the object too.
fn set(
    (tables, objects, stale): (&Tables, &mut Objects, &mut Stale),
    step: usize,
    (index, arg): (usize, Arg<ById>),
    shared: &mut Vec<usize>,
) -> Result<(), ()> {
    match objects.0.get_mut(step).and_then(Option::as_mut).map(Arc::get_mut) {
        // Enqueued launches have taken their arguments with them (OpenCL 3.0, clSetKernelArg).
        Some(Some(object)) => object.set(index, set_arg(tables, &arg)).map_err(drop),
        _ => {
            stale.add(step);
            shared.push(step);
            Ok(())
        }
    }
}

/// Makes memory for tables that have other values now. In place of these values, their memory is what is begun.
fn renew_tables(
    (tables, mut index): (&mut Tables, Option<&mut Index>),
    plan: &FusedPlan,
    (begun, tabled): (&mut Vec<(u32, u32)>, &[Vec<u8>]),
) -> Result<(), Unfit> {
    let table_of = |chain: u32| plan.layout.chains[chain as usize].table.as_ref();
    let argument = |(chain, slot): (u32, u32)| match table_of(chain) {
        Some(table) if slot >= table.argument => (chain, table.argument),
        _ => (chain, slot),
    };
    if !plan.layout.has_tables {
        return Ok(());
    }
    begun.iter_mut().for_each(|at| *at = argument(*at));
    begun.sort_unstable();
    begun.dedup();
    for (chain, slot) in &**begun {
        let laid = &plan.layout.chains[*chain as usize];
        if laid.table.as_ref().is_none_or(|table| table.argument != *slot) {
            continue;
        }
        let Arg::Memory(view) = tables.ir.args(laid.args)[*slot as usize] else { continue };
        let made = fuse::memory_of(&plan.fixed.context, &tabled[*chain as usize]);
        let made = made.map_err(|_| refused(laid.launches[0].node))?;
        // Drivers keep memory for launches that are enqueued.
        drop(tables.renew(index.as_deref_mut(), view, made));
    }
    Ok(())
}

/// Gives the kernel objects of chains their arguments.
fn set_all(
    values: &mut Values,
    plan: &FusedPlan,
    begun: &[(u32, u32)],
    mut shared: Vec<usize>,
    old: &mut Vec<Old>,
) -> Result<(), Unfit> {
    let Values { tables, objects, stale, .. } = &mut *values;
    for (chain, slot) in begun {
        let laid = &plan.layout.chains[*chain as usize];
        let arg = tables.ir.args(laid.args)[*slot as usize];
        let step = plan.step_of[laid.node.index()].map_or(0, |step| step as usize);
        set((tables, objects, stale), step, (*slot as usize, arg), &mut shared)
            .map_err(|()| refused(laid.launches[0].node))?;
    }
    shared.sort_unstable();
    shared.dedup();
    for step in shared {
        let made = values.sync_arguments(&plan.fixed.plan, step..step + 1, old);
        made.map_err(|_| refused(plan.fixed.plan.steps[step].node))?;
    }
    Ok(())
}

/// Brings what has changed of a launch to its chain. Returns whether the whole chain has to be looked at.
fn change(
    (chain, at): (u32, u32),
    main: &Tables,
    Touched { node, changed, .. }: &Touched,
    (to, tabled): (&mut Writer<'_>, &mut [Vec<u8>]),
    edit: &mut Edit,
    changing: &mut Changing<'_>,
) -> Result<bool, Unfit> {
    let plan = changing.plan;
    let unfit = |change: &str| Unfit::new(*node, change);
    if changed.switched {
        return Err(unfit("its kernel"));
    }
    let laid = &plan.layout.chains[chain as usize];
    let launch = &laid.launches[at as usize];
    let fused = laid.args;
    let mut give = |slot: u32, new: New<'_>| {
        let differs = match new {
            New::Bytes(bytes) => {
                let written = write_slot((to.tables, tabled), laid, (chain, slot), bytes);
                written.ok_or_else(|| unfit("the size of a value"))?
            }
            New::Memory(view) => {
                edit.assign_memory(to, (fused, slot as usize), main, view).map_err(|why| unfit(&why))?
            }
        };
        changing.note((chain, slot), differs);
        Ok(())
    };
    let Command::Kernel { kernel, args, grid, .. } = main.ir.command(*node) else {
        let transfer = Transfer::of(main, *node).filter(|_| launch.is_transfer);
        let transfer =
            transfer.ok_or_else(|| unfit("a fill or copy to one that is not of whole words in plain buffers"))?;
        if !plan.layout.rules.is_some_and(|rules| transfer.fits(rules)) {
            return Err(unfit("a fill or copy to a larger one than a kernel does well"));
        }
        let range = transfer.range();
        if (range[1][0] as u64) < laid.least_items {
            return Err(unfit(FEWER));
        }
        for (place, size) in launch.range.iter().flatten().zip(range.as_flattened()) {
            let size = *size as u32;
            match place {
                FusedArg::Param(slot) => give(*slot as u32, New::Bytes(&size.to_ne_bytes()))?,
                FusedArg::Number(number) if *number == size => {}
                FusedArg::Number(_) => return Err(unfit("the place of a fill or copy")),
            }
        }
        for (slot, view) in launch.args.iter().zip(&transfer.memory) {
            give(*slot, New::Memory(*view))?;
        }
        if let Some(slot) = launch.args.get(transfer.memory.len()) {
            give(*slot, New::Bytes(&transfer.number.to_ne_bytes()))?;
        }
        if laid.turns == Turns::Condition && changed.memory {
            return Err(unfit("the memory, or the place in it, of a loop whose turns a kernel does"));
        }
        return Ok(laid.depends_on_memory && changed.memory);
    };
    let args = main.ir.args(*args);
    for index in changed.args.of(args.len()) {
        let new = match args[index] {
            Arg::Value(span) => New::Bytes(main.ir.bytes(span)),
            Arg::Memory(view) => New::Memory(view),
            Arg::Local(_) => return Err(unfit("the size of local memory")),
            _ => return Err(unfit("an argument to what is no plain memory")),
        };
        give(launch.args[index], new)?;
    }
    if changed.grid.is_some() || changed.promise {
        let is_own = laid.order != Order::InTurn && Uses::of(&main.ir, *node).is_some();
        let name = main.ir.kernels[kernel.index()].name.as_ref();
        let fits = fuse::range_fits(name, grid, (launch.may_see_groups, launch.waiting), is_own);
        let (in_turn, sizes) = fits.map_err(|why| unfit(&format!("its range or promise: {why}")))?;
        let keeps_its_form = match laid.order {
            Order::InTurn => in_turn,
            Order::EachItem => is_own,
            Order::EachGroup => is_own && sizes.is_some() && fuse::fits_in_parts(grid),
        };
        let items = grid.global.iter().product::<usize>() as u64;
        if items < laid.least_items {
            return Err(unfit(FEWER));
        }
        if !keeps_its_form {
            return Err(unfit("its range or promise to what its fused kernel cannot do"));
        }
    }
    if let Some(before) = changed.grid.as_deref().filter(|_| laid.order != Order::EachItem) {
        let (old, new) = (fuse::range(before), fuse::range(grid));
        let items = |[.., local]: &[[usize; 3]; 3]| local.iter().product::<usize>();
        if launch.waiting.is_some() && items(&old) != items(&new) {
            return Err(unfit("the size of work-groups whose work-items wait for each other"));
        }
        for (at, place) in launch.range.iter().flatten().enumerate() {
            let (old, new) = (old[at / 3][at % 3], new[at / 3][at % 3]);
            let size = u32::try_from(new).map_err(|_| unfit("its range to one beyond 32 bits"))?;
            match place {
                FusedArg::Param(slot) if old != new => {
                    give(*slot as u32, New::Bytes(&size.to_ne_bytes()))?;
                }
                FusedArg::Number(number) if *number != size => {
                    return Err(unfit("a size of its range that the text of its fused kernel has"));
                }
                FusedArg::Param(_) | FusedArg::Number(_) => {}
            }
        }
    }
    if laid.turns == Turns::Condition && changed.memory {
        return Err(unfit("the memory, or the place in it, of a loop whose turns a kernel does"));
    }
    let depends = laid.order != Order::InTurn || laid.depends_on_memory;
    Ok(depends && (changed.memory || changed.promise || changed.grid.is_some()))
}

/// Work-items beyond the range would run otherwise.
const FEWER: &str = "its range, or its words, to fewer work-items than the work-group of its fused kernel has";

/// Checks that the launches of a chain would be one with the memory and ranges that they have now. Returns the range of the first.
fn holds(laid: &LaidChain, main: &Tables) -> Result<Option<Grid>, Unfit> {
    let (mut together, mut first) = (Together::default(), None);
    // In turns each launch comes after itself too.
    let again: &[LaidLaunch] = if laid.turns == Turns::None { &[] } else { &laid.launches };
    for LaidLaunch { node, pointers, .. } in laid.launches.iter().chain(again) {
        let Command::Kernel { args, grid, .. } = main.ir.command(*node) else {
            let pointers: Vec<Pointer<ViewId>> =
                Transfer::of(main, *node).iter().flat_map(Transfer::pointers).collect();
            if together.takes(&main.ir, *node, &pointers, None).is_err() {
                return Err(Unfit::new(*node, "its memory to what another launch of its fused kernel uses"));
            }
            continue;
        };
        let args = main.ir.args(*args);
        let now = |pointer: &Pointer<u32>| {
            let to = args.get(pointer.to as usize)?.view()?;
            Some(Pointer { to, is_constant: pointer.is_constant, element: pointer.element })
        };
        let pointers: Vec<Pointer<ViewId>> = pointers.iter().filter_map(now).collect();
        let is_promised = laid.order != Order::InTurn;
        let uses = if is_promised { Uses::of(&main.ir, *node) } else { None };
        if is_promised && *first.get_or_insert(*grid) != *grid {
            return Err(Unfit::new(
                *node,
                "its range, which is not that of the other launches of its fused kernel any more",
            ));
        }
        if uses.is_some() != is_promised || together.takes(&main.ir, *node, &pointers, uses.as_ref()).is_err() {
            return Err(Unfit::new(*node, "its memory to what another launch of its fused kernel uses"));
        }
    }
    Ok(first)
}

/// Returns in what an executable's values differ from what they were, and what was needed to find it, to be dropped where no lock is held.
fn differences(exec: &Finalized, was: &Tables, is: &Tables) -> (Result<Vec<Touched>, Unfit>, Old) {
    let mut tables = was.clone();
    let mut index = Index::of(&tables);
    let (mut edit, mut touched) = (Edit::default(), Vec::new());
    let mut outcome = Ok(());
    for node in is.ir.ids() {
        match edit.assign(&mut Writer { tables: &mut tables, index: &mut index }, node, is, node) {
            Ok(changed) if changed.is_nothing() => {}
            Ok(changed) => touched.push(Touched { node, origin: exec.origins.of(node).node, changed }),
            Err(why) => outcome = Err(Unfit::new(node, format!("what it cannot follow: {why}"))),
        }
    }
    (outcome.map(|()| touched), Arc::new(std::sync::Mutex::new((tables, index, edit))))
}
