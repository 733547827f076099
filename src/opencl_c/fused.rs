//! Fused kernels: kernels that do what several launches do, one after the other.
//!
//! The body of each kernel is written again as a function of one work-item, whose ids are parameters. In it, the functions that
//! tell ids are macros. A second function runs it for all work-items of a launch, and a fused kernel calls that function once for
//! each launch:
//!
//! ```text
//! void clgraph_fuse_item_scale(global float *a, float by, const clgraph_fuse_id clgraph_fuse_x, ..) { size_t i = get_global_id(0); a[i] *= by; }
//! void clgraph_fuse_run1_scale(global float *a, float by, const uint clgraph_fuse_dims, ..) { for (..) clgraph_fuse_item_scale(a, by, x, ..); }
//! kernel void clgraph_fused_0(global void *clgraph_fuse_a0, float clgraph_fuse_a1, uint clgraph_fuse_a2) {
//!     clgraph_fuse_run1_scale(clgraph_fuse_a0, clgraph_fuse_a1, 1, ..);
//!     clgraph_fuse_run1_scale(clgraph_fuse_a0, clgraph_fuse_a1, 1, ..);
//! }
//! ```
//!
//! `clgraph_fuse_id` is `uint`, or `int` where the compiler makes vectors of work-items ([`Dialect::joins_items`]).
//!
//! Launches that come again and again are a loop (`fused/rolled.rs`). Arguments that differ from turn to turn are in tables, which one
//! work-item has in private memory, and a work-group in local memory:
//!
//! ```text
//! kernel void clgraph_fused_0(global void *clgraph_fuse_a0, .., uint clgraph_fuse_a9) {
//!     float clgraph_fuse_t0[] = {clgraph_fuse_a1, clgraph_fuse_a2, ..};
//!     for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 8; ++clgraph_fuse_turn) {
//!         clgraph_fuse_turn1_scale(clgraph_fuse_a0, clgraph_fuse_t0[clgraph_fuse_turn], 1, ..);
//!     }
//! }
//! ```
//!
//! Values that are too many for parameters are in memory that nothing writes (`fused/tables.rs`), and are read there:
//!
//! ```text
//! kernel void clgraph_fused_0(global void *clgraph_fuse_a0, global const uchar *clgraph_fuse_table, ..) {
//!     for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 8; ++clgraph_fuse_turn) {
//!         clgraph_fuse_turn1_scale(clgraph_fuse_a0, *(global const float *)(clgraph_fuse_table + 0 + clgraph_fuse_turn * 4), 1, ..);
//!     }
//! }
//! ```
//!
//! Launches that are the body of a loop may have its turns around them, at most so many in one launch of the kernel:
//!
//! ```text
//! kernel void clgraph_fused_0(.., global uint *clgraph_fuse_state, volatile global const uint *clgraph_fuse_condition, ..) {
//!     for (; clgraph_fuse_goes_on != 0 && clgraph_fuse_done < clgraph_fuse_most; ++clgraph_fuse_done) { .. }
//! }
//! ```
//!
//! Launches with promises go part by part, if the driver is faster so: each work-group does its part of all (`fused/parts.rs`).
//!
//! Launches that no edge orders are in different lanes, up to a number. Each lane has a work-item, or work-group, of its own:
//!
//! ```text
//! kernel void clgraph_fused_0(global void *clgraph_fuse_a0, global void *clgraph_fuse_a1, uint clgraph_fuse_a2) {
//!     const uint clgraph_fuse_lane = get_group_id(0);
//!     if (clgraph_fuse_lane == 0) {
//!         clgraph_fuse_run1_scale(clgraph_fuse_a0, 1, ..);
//!     }
//!     if (clgraph_fuse_lane == 1) {
//!         clgraph_fuse_run1_scale(clgraph_fuse_a1, 1, ..);
//!     }
//! }
//! ```
//!
//! The texts of several programs become one (`fused/unit.rs`). What means something in one of them only, such as the types of its values, gets a
//! name of clgraph's there.
//!
//! There are straight lines and such loops only: some compilers get calls wrong that some work-items make and others do not, and PoCL those
//! under any condition if there is a barrier. All work-items see the same number of turns, all of a work-group are in the same lane, and on
//! PoCL there is no barrier in a lane.

mod each_item;
mod group;
mod helpers;
#[cfg(test)]
mod helpers_tests;
mod ids;
mod parts;
mod rolled;
#[cfg(test)]
mod rolled_tests;
mod run;
mod tables;
mod transfers;
mod unit;
#[cfg(test)]
mod unit_tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use self::helpers::{ITEM, write_helpers};
use self::ids::{IDS, LOCAL_ID, OWN, inlined};
use self::ids::{RANGE, RANGE_NAMES};
use self::rolled::{Lane, Loop, Part, Place, Rolled, Table, rolled};
use self::run::{SCALAR, write_run};
use self::tables::{Names, declare_tables, fill_tables, write_sizes};
use self::unit::Types;
use super::source::{KernelText, LocalText};

pub(crate) use self::each_item::each_item;
pub(crate) use self::group::LOCAL_ALIGNMENT;
pub(crate) use self::unit::{Callee, Unit, ValueType};

/// How a fused kernel runs the work-items of its launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    /// One work-item of the kernel, or of a work-group, runs all of them, in order.
    OneItem,
    /// The work-items of a work-group share them, and wait for each other after each launch, but for parts.
    OneGroup,
}

/// How fused kernels are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Launch after launch, all work-items or each work-group its part.
    InTurn(Dialect),
    /// Each work-item does all launches on its own. `in_range`: others than those from one linear id up to another do nothing.
    EachItem { in_range: bool },
}

/// What the driver makes of a source, and what the source is to be for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) form: Form,
    /// If each work-group does its part of the work-items, and waits for no other: how many those are.
    pub(crate) part: Option<u32>,
    /// What the driver's functions return for the sizes of a fourth dimension. OpenCL says 1.
    pub(crate) size_beyond: u32,
    /// Whether its compiler vectorizes all loops over work-items rightly. If not, loops hide where they begin, and those in which an index
    /// may wrap are not vectorized.
    pub(crate) vectorizes: bool,
    /// Whether its compiler makes vectors of the work-items of a group. Memory that they touch is side by side to it only if nothing wraps when
    /// their ids are computed, and if they do as many turns of a loop.
    pub(crate) joins_items: bool,
    /// Whether its compiler copies what follows a loop that may have no turn, if a barrier is inside.
    pub(crate) copies_behind_loops: bool,
}

/// How many work-items run a kernel of [`Form::OneItem`]. All but the first return at once: PoCL 7.1 compiles some kernels wrongly
/// for work-groups of one work-item, which then do nothing, or compute other values.
pub(crate) const ONE_ITEM: usize = 2;

/// A parameter of a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FusedParam {
    /// Global memory.
    Memory,
    /// Local memory.
    Local,
    /// A value of this type, of so many bytes.
    Value(ValueType, usize),
    /// A size of a range.
    Size,
}

impl FusedParam {
    /// Returns the bytes of the argument.
    fn size(&self) -> usize {
        match self {
            Self::Memory | Self::Local => 8,
            Self::Value(_, bytes) => *bytes,
            Self::Size => 4,
        }
    }
}

/// No type of OpenCL C has a larger alignment, as a power of two: `double16` has that of its size.
const MOST_ALIGNED: u32 = 7;

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FusedArg {
    /// The parameter of the fused kernel with this number.
    Param(usize),
    /// A size that is written as it is.
    Number(u32),
}

/// A launch in a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FusedLaunch {
    pub(crate) kernel: Callee,
    pub(crate) args: Vec<FusedArg>,
    pub(crate) dims: u32,
    /// Offset, global size and local size, each in three dimensions.
    pub(crate) range: [[FusedArg; 3]; 3],
}

/// A fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FusedKernel {
    pub(crate) params: Vec<FusedParam>,
    /// How many of these, the last ones, are values in a table. Then the kernel has its memory as a parameter after the others.
    pub(crate) tabled: usize,
    /// Lane by lane.
    pub(crate) launches: Vec<FusedLaunch>,
    /// Where each lane but the last ends. Launches of different lanes may run at the same time.
    pub(crate) lane_ends: Vec<usize>,
    /// The work-group with which it is launched, if its source has to say so.
    pub(crate) group: Option<[usize; 3]>,
    /// Whether it does them again as long as a condition in memory is not zero. Then it has three more parameters: its state, the memory
    /// of the condition, and the condition's index.
    pub(crate) turns: bool,
}

impl FusedKernel {
    /// Returns the number of the first parameter in the table.
    pub(crate) fn first_tabled(&self) -> usize {
        self.params.len().saturating_sub(self.tabled)
    }

    /// Returns where each parameter of the table is in it: its bytes.
    pub(crate) fn table(&self) -> Vec<Range<usize>> {
        let mut end = 0_usize;
        let place = |param: &FusedParam| {
            let size = param.size();
            // What the alignment of any type of this size divides.
            let start = end.next_multiple_of(1 << size.trailing_zeros().min(MOST_ALIGNED));
            end = start + size;
            start..end
        };
        self.params[self.first_tabled()..].iter().map(place).collect()
    }

    /// Returns which launches are in each lane. There is one at least.
    fn lanes(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let ends = self.lane_ends.iter().copied();
        std::iter::once(0).chain(ends.clone()).zip(ends.chain([self.launches.len()])).map(|(start, end)| start..end)
    }
}

/// A kernel of clgraph's that fills memory: memory, and a word. A work-item a word.
pub(crate) const FILL: &str = "clgraph_fuse_fill";
/// A kernel of clgraph's that copies memory: source, destination, and by how many words the source is behind.
pub(crate) const COPY: &str = "clgraph_fuse_copy";

/// The words of the state of a kernel that does turns: the most turns of a launch; 0 if the first one begins whatever the condition is;
/// then what a launch leaves: whether the loop goes on, and how many turns it did.
pub(crate) const TURNS_WORDS: usize = 4;

/// The names of fused kernels begin so.
pub(crate) const FUSED: &str = "clgraph_fused_";

/// Returns the name of a fused kernel in the text that is written.
fn name(number: usize) -> String {
    format!("{FUSED}{number}")
}

/// The functions that run all work-items of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Run {
    /// Not inlined: compilers would take minutes for hundreds of lines.
    Line,
    /// Inlined, which is faster, for the few calls in loops.
    Turn,
}

/// Whether launches of a kernel have one dimension, and how they are called.
type Runs = BTreeSet<(bool, Run)>;

/// The most calls in the loops of a kernel that are inlined, and in one of them.
const MOST_INLINED: (usize, usize) = (16, 8);

impl Run {
    /// Returns how the launches in loops of a kernel are called.
    fn in_loops(rolled: &Rolled) -> Self {
        let calls = |part: &Part| if let Part::Loop(of) = part { of.args.len() } else { 0 };
        let all: usize = rolled.parts().map(calls).sum();
        let is_few = all <= MOST_INLINED.0 && rolled.parts().all(|part| calls(part) <= MOST_INLINED.1);
        if is_few { Self::Turn } else { Self::Line }
    }

    /// Returns the name of the function for a kernel, for launches of one dimension or of more.
    fn name(self, kernel: &Callee, is_line: bool) -> String {
        let run = match self {
            Self::Line => "run",
            Self::Turn => "turn",
        };
        format!("clgraph_fuse_{run}{}_{kernel}", if is_line { "1" } else { "3" })
    }
}

/// Returns how many calls the parts of a fused kernel are, each with the number of its first launch: a launch is one call, and a loop those of
/// a turn.
pub(crate) fn calls(kernel: &FusedKernel) -> Vec<(usize, usize)> {
    let of_part = |part: &Part| match part {
        Part::Launch(at) => (*at, 1),
        Part::Loop(of) => (of.start, of.args.len()),
    };
    rolled(kernel).parts().map(of_part).collect()
}

/// Returns a source that has all of the programs' texts and these fused kernels, whose launches are of kernels that the sources can give as
/// functions of one work-item ([`Source::item`](super::source::Source::item)). `rolls` says whether launches that come again are loops.
pub(crate) fn fused(units: &[Unit<'_>], dialect: Dialect, kernels: &[FusedKernel], rolls: bool) -> String {
    let lines = |kernel: &FusedKernel| {
        kernel.lanes().map(|lane| Lane { parts: lane.map(Part::Launch).collect(), tables: 0..0 }).collect()
    };
    let roll = |kernel| if rolls { rolled(kernel) } else { Rolled { lanes: lines(kernel), tables: Vec::new() } };
    let all_rolled: Vec<Rolled> = kernels.iter().map(roll).collect();
    let mut used: BTreeMap<&Callee, Runs> = BTreeMap::new();
    for (kernel, rolled) in kernels.iter().zip(&all_rolled) {
        for part in rolled.parts() {
            let (launches, run) = match part {
                Part::Launch(at) => (*at..at + 1, Run::Line),
                Part::Loop(of) => (of.start..of.start + of.args.len(), Run::in_loops(rolled)),
            };
            for launch in &kernel.launches[launches] {
                used.entry(&launch.kernel).or_default().insert((launch.dims <= 1, run));
            }
        }
    }
    let (mut functions, types): (Functions<'_>, _) = (BTreeMap::new(), Types::of(kernels));
    let id = if dialect.joins_items { "int" } else { "uint" };
    let (inlined, beyond) = (inlined(dialect), dialect.size_beyond);
    let mut all = format!("{inlined}{OWN}typedef {id} clgraph_fuse_id;\n#define clgraph_fuse_beyond {beyond}\n");
    for (number, unit) in units.iter().enumerate() {
        unit::begin(&mut all, units, number);
        types.write(&mut all, number);
        let its = used.iter().filter(|(callee, _)| callee.unit == number);
        let its = its.filter_map(|(callee, runs)| Some((*callee, Function::of(&callee.kernel, unit)?, runs)));
        let its: Vec<(&Callee, Function<'_>, &Runs)> = its.collect();
        write_items(&mut all, (number, unit), &its, inlined);
        for (callee, function, runs) in its {
            for (is_line, run) in runs {
                write_run(&mut all, callee, &function, dialect, (*is_line, *run));
            }
            group::write_types(&mut all, callee, function.locals);
            functions.insert(callee, function);
        }
        unit::end(&mut all, units, number);
    }
    write_sizes(&mut all, kernels, &types);
    for (number, (kernel, rolled)) in kernels.iter().zip(&all_rolled).enumerate() {
        write_kernel(&mut all, (number, kernel), rolled, dialect, (&functions, &types));
    }
    all
}

/// Writes kernels as functions of one work-item, and the functions that they need.
fn write_items(
    all: &mut String,
    (number, unit): (usize, &Unit<'_>),
    its: &[(&Callee, Function<'_>, &Runs)],
    inlined: &str,
) {
    // Writing to a string never fails.
    for (function, meaning) in IDS {
        let _ = writeln!(all, "#define {function} {meaning}");
    }
    let helpers = write_helpers(all, (number, unit), its.iter().map(|(callee, ..)| callee.kernel.as_str()));
    for is_group in [false, true] {
        let inlined = if is_group { "" } else { inlined };
        let mut its = its.iter().filter(|(_, function, _)| function.is_group == is_group).peekable();
        if is_group && its.peek().is_some() {
            let _ = writeln!(all, "#undef get_local_id\n#define {} {}", LOCAL_ID.0, LOCAL_ID.1);
        }
        for (callee, Function { params, locals, body, .. }, _) in its {
            let params = listed(params) + &group::params(locals);
            group::write_macros(all, locals, true);
            let _ = writeln!(all, "{inlined}void clgraph_fuse_item_{callee}({params}{ITEM}, {RANGE}) {body}");
            group::write_macros(all, locals, false);
        }
    }
    let ids = IDS.iter().filter_map(|(id, _)| id.split('(').next());
    helpers.into_iter().chain(ids).for_each(|name| _ = writeln!(all, "#undef {name}"));
}

/// What a kernel is as a function of one work-item.
struct Function<'a> {
    params: &'a str,
    names: String,
    locals: &'a [LocalText],
    body: Cow<'a, str>,
    /// Whether its work-items wait for each other, or share local memory.
    is_group: bool,
    /// Whether nothing is known by which an index into memory may wrap.
    wraps_no_index: bool,
}

/// By kernel.
type Functions<'a> = BTreeMap<&'a Callee, Function<'a>>;

impl<'a> Function<'a> {
    fn of(name: &str, unit: &Unit<'a>) -> Option<Self> {
        let Unit { text, source, .. } = *unit;
        let own = |params, names: &str, body| {
            let (names, body) = (names.to_owned(), Cow::Borrowed(body));
            Some(Self { params, names, locals: &[], body, is_group: false, wraps_no_index: false })
        };
        match name {
            FILL => own(transfers::FILL_PARAMS, "clgraph_fuse_to, clgraph_fuse_word", transfers::FILL_BODY),
            COPY => own(
                transfers::COPY_PARAMS,
                "clgraph_fuse_from, clgraph_fuse_to, clgraph_fuse_behind",
                transfers::COPY_BODY,
            ),
            _ => {
                let kernel: &KernelText = source.item(name).ok()?;
                let (params, names, locals) = (&kernel.params, kernel.names.join(", "), kernel.locals());
                let body = group::body(&text[kernel.body.clone()], kernel.body.start, locals);
                let (is_group, wraps_no_index) = (source.effects(name).may_wait, source.wraps_no_index(name));
                Some(Self { params, names, locals, body, is_group, wraps_no_index })
            }
        }
    }
}

/// Returns a list with a comma behind it, if it has something.
fn listed(list: &str) -> String {
    if list.is_empty() { String::new() } else { format!("{list}, ") }
}

/// Writes a fused kernel.
fn write_kernel(
    all: &mut String,
    (number, kernel): (usize, &FusedKernel),
    rolled: &Rolled,
    dialect: Dialect,
    (functions, types): (&Functions<'_>, &Types<'_>),
) {
    let (form, names) = (dialect.form, Names::of(kernel, types));
    let others = match form {
        Form::OneItem => " || get_local_id(0) != 0",
        Form::OneGroup => "",
    };
    write_begin(all, (number, kernel), others, types);
    let used: BTreeSet<&Callee> = kernel.launches.iter().map(|launch| &launch.kernel).collect();
    used.iter()
        .filter_map(|name| functions.get_key_value(name))
        .for_each(|(callee, of)| group::declare(all, callee, of.locals));
    if let (Some(part), Some(first)) = (dialect.part, kernel.launches.first()) {
        parts::write_part(all, first, part, &names);
    }
    let has_lanes = rolled.lanes.len() > 1;
    let begins_filled = !has_lanes && form == Form::OneItem;
    declare_tables(all, (&rolled.tables, types), &names, form, begins_filled);
    if !has_lanes && !begins_filled {
        fill_tables(all, &rolled.tables, 0..rolled.tables.len(), &names, form);
    }
    if kernel.turns {
        all.push_str("    const uint clgraph_fuse_most = clgraph_fuse_state[0];\n    uint clgraph_fuse_done = 0;\n");
        write_look(all, form, "uint clgraph_fuse_goes_on", "clgraph_fuse_state[1] == 0 || ");
        if !dialect.vectorizes && form == Form::OneItem {
            let _ = writeln!(all, "{SCALAR}");
        }
        let _ = writeln!(
            all,
            "    for (; clgraph_fuse_goes_on != 0 && clgraph_fuse_done < clgraph_fuse_most; ++clgraph_fuse_done) {{"
        );
    }
    let mut waits = "";
    if has_lanes {
        all.push_str("    const uint clgraph_fuse_lane = (uint)get_group_id(0);\n");
    }
    for (number, lane) in rolled.lanes.iter().enumerate() {
        if has_lanes {
            let _ = writeln!(all, "    if (clgraph_fuse_lane == {number}) {{");
            fill_tables(all, &rolled.tables, lane.tables.clone(), &names, form);
        }
        waits = "";
        for part in &lane.parts {
            all.push_str(waits);
            match part {
                Part::Launch(at) => {
                    let launch = &kernel.launches[*at];
                    let name = Run::Line.name(&launch.kernel, launch.dims <= 1);
                    let function = functions.get(&launch.kernel);
                    let args = rolled::args(launch).map(|arg| names.arg(arg));
                    write_call(all, "    ", &name, (launch, function, dialect), args);
                    waits = group::after(function, dialect);
                }
                Part::Loop(of) => {
                    write_loop(all, (kernel, of), (&names, &rolled.tables), Run::in_loops(rolled), dialect, functions);
                    // There is one after each turn.
                    waits = "";
                }
            }
        }
        if has_lanes {
            all.push_str("    }\n");
        }
    }
    if kernel.turns {
        all.push_str(waits);
        write_look(all, form, "clgraph_fuse_goes_on", "");
        let _ = write!(all, "    }}\n{AFTER_TURNS}");
    }
    all.push_str("}\n");
}

const AFTER_TURNS: &str = "    if (get_local_id(0) == 0) {
        clgraph_fuse_state[2] = clgraph_fuse_goes_on;
        clgraph_fuse_state[3] = clgraph_fuse_done;
    }
";

/// Writes that a loop looks at its condition. One work-item looks for all of a group: others may see another value, if something else
/// changes it meanwhile, and would not wait for each other then.
fn write_look(all: &mut String, form: Form, into: &str, or: &str) {
    let look = format!("{or}clgraph_fuse_condition[clgraph_fuse_at] != 0");
    let _ = match form {
        Form::OneItem => writeln!(all, "    {into} = {look};"),
        Form::OneGroup => writeln!(
            all,
            "    if (get_local_id(0) == 0) clgraph_fuse_seen = {look};\n    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n    \
             {into} = clgraph_fuse_seen;"
        ),
    };
}

/// Writes the begin of a fused kernel, and which work-items have nothing to do.
fn write_begin(all: &mut String, (number, kernel): (usize, &FusedKernel), others: &str, types: &Types<'_>) {
    let param = |(at, param): (usize, &FusedParam)| match param {
        FusedParam::Memory => format!("global void *clgraph_fuse_a{at}"),
        // With a type: NVIDIA's driver (580) gives a kernel no memory whose local arguments are all `local void *`.
        FusedParam::Local => format!("local ulong16 *clgraph_fuse_p{at}"),
        FusedParam::Value(of, _) => format!("{} clgraph_fuse_a{at}", types.name(of)),
        FusedParam::Size => format!("const uint clgraph_fuse_a{at}"),
    };
    let mut params: Vec<String> = kernel.params[..kernel.first_tabled()].iter().enumerate().map(param).collect();
    if kernel.tabled > 0 {
        params.push("global const uchar *clgraph_fuse_table".to_owned());
    }
    params.push("const uint clgraph_fuse_go".to_owned());
    if kernel.turns {
        params.push("global uint *clgraph_fuse_state".to_owned());
        params.push("volatile global const uint *clgraph_fuse_condition".to_owned());
        params.push("const ulong clgraph_fuse_at".to_owned());
    }
    let group = kernel.group.map(|[x, y, z]| format!("__attribute__((reqd_work_group_size({x}, {y}, {z}))) "));
    let _ = writeln!(all, "kernel {}void {}({}) {{", group.unwrap_or_default(), name(number), params.join(", "));
    // For a first launch that has nothing to do: drivers compile a kernel when it is first enqueued.
    let _ = writeln!(all, "    if (clgraph_fuse_go == 0{others}) return;");
    for at in (0..kernel.params.len()).filter(|at| kernel.params[*at] == FusedParam::Local) {
        let _ = writeln!(all, "    local void *clgraph_fuse_a{at} = (local void *)clgraph_fuse_p{at};");
    }
    if kernel.turns && others.is_empty() {
        all.push_str("    local uint clgraph_fuse_seen;\n");
    }
}

/// Writes the turns of a loop.
fn write_loop(
    all: &mut String,
    (kernel, of): (&FusedKernel, &Loop),
    (names, tables): (&Names, &[Table]),
    run: Run,
    dialect: Dialect,
    functions: &Functions<'_>,
) {
    // Where each launch has one work-item, this is the innermost loop.
    if !dialect.vectorizes && dialect.form == Form::OneItem {
        let _ = writeln!(all, "{SCALAR}");
    }
    let turns = of.turns;
    let _ = writeln!(all, "    for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < {turns}; ++clgraph_fuse_turn) {{");
    let in_turn = |place: &Place| match place {
        Place::Same(same) => names.arg(same),
        Place::Table(table, ahead) => names.in_turn(&tables[*table], *ahead).unwrap_or_else(|| match ahead {
            0 => format!("clgraph_fuse_t{table}[clgraph_fuse_turn]"),
            _ => format!("clgraph_fuse_t{table}[clgraph_fuse_turn + {ahead}]"),
        }),
    };
    for (launch, places) in kernel.launches[of.start..].iter().zip(&of.args) {
        let name = run.name(&launch.kernel, launch.dims <= 1);
        let function = functions.get(&launch.kernel);
        write_call(all, "        ", &name, (launch, function, dialect), places.iter().map(in_turn));
        let after = group::after(function, dialect);
        if !after.is_empty() {
            let _ = write!(all, "    {after}");
        }
    }
    all.push_str("    }\n");
}

/// Writes the call that runs a launch. `args` has its range too.
fn write_call(
    all: &mut String,
    indent: &str,
    name: &str,
    (launch, function, dialect): (&FusedLaunch, Option<&Function<'_>>, Dialect),
    args: impl Iterator<Item = String>,
) {
    let mut args: Vec<String> = args.collect();
    let range = args.split_off(launch.args.len());
    args.extend(group::args(&launch.kernel, function.map_or(&[], |function| function.locals)));
    args.push(launch.dims.to_string());
    args.extend(range);
    args.extend(dialect.part.into_iter().flat_map(|_| parts::PART_NAMES.map(str::to_owned)));
    let _ = writeln!(all, "{indent}{name}({});", args.join(", "));
}
