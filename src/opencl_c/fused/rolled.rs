//! Which launches of a fused kernel are the turns of a loop.
//!
//! Launches that come again and again are a loop: `(a, b), (b, c), (c, d), ..` are the turns
//! `(table[turn], table[turn + 1])`. An argument that is the same in all turns is written as it is. Of the others, those that walk over
//! the same arguments share a table. The order of the launches stays.
//!
//! At each launch the loop is taken that saves most. The work is bounded: for each short period it is about one look at each launch, and
//! turns of many launches are looked for at some launches only.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::{Callee, FusedArg, FusedKernel, FusedLaunch, FusedParam};

/// The most launches in a turn that are looked for at each launch.
const MOST_LAUNCHES: usize = 8;
/// The most launches in a turn. More than `MOST_LAUNCHES` are looked for at one launch in `STEP`.
const MOST_IN_LONG: usize = 1024;
const STEP: usize = 16;
/// The fewest turns that are worth a loop.
const LEAST_TURNS: usize = 4;
/// The most bytes of tables in a kernel: OpenCL promises twice as many of local memory.
const MOST_BYTES: usize = 16 << 10;

/// The launches of a fused kernel, as lines and loops.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rolled {
    pub(super) lanes: Vec<Lane>,
    /// Lane by lane.
    pub(super) tables: Vec<Table>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) parts: Vec<Part>,
    /// Which tables it has.
    pub(super) tables: Range<usize>,
}

impl Rolled {
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.lanes.iter().flat_map(|lane| &lane.parts)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The launch with this number.
    Launch(usize),
    Loop(Loop),
}

/// Launches that come again and again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// The first launch of the first turn.
    pub(super) start: usize,
    pub(super) turns: usize,
    /// By launch of a turn: its arguments, and then its range.
    pub(super) args: Vec<Vec<Place>>,
}

/// Where an argument is in each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the same in all turns.
    Same(FusedArg),
    /// In this table, at the number of the turn and this many more.
    Table(usize, usize),
}

/// What arguments are in the turns of a loop.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) kind: FusedParam,
    pub(super) entries: Vec<FusedArg>,
}

/// Which parameters of a kernel are in memory, and where: as [`FusedKernel::table`].
pub(super) struct InMemory {
    first: usize,
    places: Vec<usize>,
}

impl InMemory {
    pub(super) fn of(kernel: &FusedKernel) -> Self {
        Self { first: kernel.first_tabled(), places: kernel.table().into_iter().map(|place| place.start).collect() }
    }

    /// Returns where a parameter is, if it is in memory.
    pub(super) fn place(&self, param: usize) -> Option<usize> {
        self.places.get(param.checked_sub(self.first)?).copied()
    }
}

impl Table {
    /// If its entries are values in memory, each as far behind the one before: returns where the first one is, and how far that is.
    pub(super) fn in_memory(&self, memory: &InMemory) -> Option<(usize, usize)> {
        let place = |entry: &FusedArg| if let FusedArg::Param(at) = entry { memory.place(*at) } else { None };
        let (first, second) = (place(self.entries.first()?)?, place(self.entries.get(1)?)?);
        let step = second.checked_sub(first)?;
        let follows = |(at, entry): (usize, &FusedArg)| place(entry) == Some(first + at * step);
        self.entries.iter().enumerate().all(follows).then_some((first, step))
    }

    /// Returns the bytes that it takes.
    fn bytes(&self, memory: &InMemory) -> usize {
        if self.in_memory(memory).is_some() { 0 } else { self.entries.len() * self.kind.size() }
    }

    /// Returns where it has a column, if need be with one entry more. `Err` if the entry comes first, which moves all others.
    fn place(&mut self, column: &[FusedArg]) -> Option<Result<usize, ()>> {
        let (count, len) = (column.len(), self.entries.len());
        if let Some(at) = self.entries.windows(count).position(|window| window == column) {
            return Some(Ok(at));
        }
        let (first, last) = (column.first()?, column.last()?);
        if self.entries[len + 1 - count..] == column[..count - 1] {
            self.entries.push(*last);
            return Some(Ok(len + 1 - count));
        }
        if self.entries[..count - 1] == column[1..] {
            self.entries.insert(0, *first);
            return Some(Err(()));
        }
        None
    }
}

/// Returns the arguments of a launch, and then its range.
pub(super) fn args(launch: &FusedLaunch) -> impl Iterator<Item = &FusedArg> {
    launch.args.iter().chain(launch.range.iter().flatten())
}

/// Finds the loops in the launches of a fused kernel.
pub(super) fn rolled(kernel: &FusedKernel) -> Rolled {
    let search = Search::new(kernel);
    let mut rolled = Rolled::default();
    let mut left = MOST_BYTES;
    for lane in kernel.lanes() {
        let first = rolled.tables.len();
        let parts = lane_of(&search, lane, &mut rolled.tables, &mut left);
        rolled.lanes.push(Lane { parts, tables: first..rolled.tables.len() });
    }
    rolled
}

/// Finds the loops in one lane. `left`: bytes that its tables may have.
fn lane_of(search: &Search<'_>, lane: Range<usize>, all_tables: &mut Vec<Table>, left: &mut usize) -> Vec<Part> {
    let mut parts = Vec::new();
    // By period: before this launch there is no room for the tables of a loop.
    let mut full = [0; MOST_LAUNCHES];
    // Up to which launch there is no room for the tables of a long turn.
    let (mut at, mut next_long, mut full_long) = (lane.start, lane.start, lane.start);
    while at < lane.end {
        let mut best: Option<Found> = None;
        if at >= next_long {
            next_long = at + STEP;
            let periods = search.long_periods(at, lane.end);
            for (period, turns) in &periods {
                let found = search.with_tables(at, *period, *turns, *left);
                let found = found.filter(|found| found.turns >= LEAST_TURNS && found.worth().0 > 0);
                best = best.into_iter().chain(found).max_by_key(Found::worth);
            }
            if best.is_none() {
                // A later beginning changes little.
                let ends = periods.iter().map(|(period, turns)| at + turns * period);
                full_long = ends.fold(full_long, usize::max);
                next_long = next_long.max(full_long);
            }
        }
        for period in 1..=MOST_LAUNCHES {
            let most = (lane.end - at) / period;
            let turns = search.turns(&search.same, at, period).min(most);
            let mut found = vec![Found::without_tables(turns, period)];
            let (same, turns) = (turns, search.turns(&search.alike, at, period).min(most));
            if turns > same && turns >= LEAST_TURNS && at >= full[period - 1] {
                match search.with_tables(at, period, turns, *left) {
                    // Fewer turns, for want of room, may be worth nothing.
                    Some(found) if found.turns < turns && found.worth().0 <= 0 => {
                        full[period - 1] = at + turns * period
                    }
                    Some(with_tables) => found.push(with_tables),
                    None => full[period - 1] = at + turns * period,
                }
            }
            for found in found.into_iter().filter(|found| found.turns >= LEAST_TURNS && found.worth().0 > 0) {
                if best.as_ref().is_none_or(|best| found.worth() > best.worth()) {
                    best = Some(found);
                }
            }
        }
        let Some(Found { turns, period, args, tables, .. }) = best else {
            parts.push(Part::Launch(at));
            at += 1;
            continue;
        };
        let args = args.unwrap_or_else(|| search.lists[at..at + period].iter().map(|list| same(list)).collect());
        let before = all_tables.len();
        let moved = |place: Place| match place {
            Place::Table(table, ahead) => Place::Table(before + table, ahead),
            same @ Place::Same(_) => same,
        };
        let args = args.into_iter().map(|list| list.into_iter().map(moved).collect()).collect();
        *left = left.saturating_sub(search.bytes(&tables));
        all_tables.extend(tables);
        parts.push(Part::Loop(Loop { start: at, turns, args }));
        at += turns * period;
        next_long = at.max(full_long);
    }
    parts
}

fn same(list: &[FusedArg]) -> Vec<Place> {
    list.iter().map(|arg| Place::Same(*arg)).collect()
}

/// A loop that begins at a launch.
struct Found {
    turns: usize,
    period: usize,
    /// None: all arguments are the same in all turns.
    args: Option<Vec<Vec<Place>>>,
    tables: Vec<Table>,
    /// Lines that the tables cost.
    cost: usize,
}

impl Found {
    fn without_tables(turns: usize, period: usize) -> Self {
        Self { turns, period, args: None, tables: Vec::new(), cost: 0 }
    }

    /// The lines that it saves, less what its tables cost; of equal ones, that with fewer tables.
    fn worth(&self) -> (isize, Reverse<usize>) {
        let saved = self.turns * self.period - self.period;
        (saved as isize - self.cost as isize, Reverse(self.cost))
    }
}

/// How often each launch comes again.
struct Search<'a> {
    kernel: &'a FusedKernel,
    memory: InMemory,
    /// By launch: its arguments, and then its range.
    lists: Vec<Vec<FusedArg>>,
    /// By launch: a number for its kernel, its dimensions and how many arguments it has.
    names: Vec<usize>,
    /// By period and launch: how many launches from there on have the kernel of the launch that is one period later.
    alike: Vec<Vec<u32>>,
    /// The same, with all arguments.
    same: Vec<Vec<u32>>,
}

impl<'a> Search<'a> {
    fn new(kernel: &'a FusedKernel) -> Self {
        let launches = &kernel.launches;
        let lists: Vec<Vec<FusedArg>> = launches.iter().map(|launch| args(launch).copied().collect()).collect();
        let mut names: BTreeMap<(&Callee, u32, usize), usize> = BTreeMap::new();
        let name = |launch: &'a FusedLaunch| {
            let next = names.len();
            *names.entry((&launch.kernel, launch.dims, launch.args.len())).or_insert(next)
        };
        let names: Vec<usize> = launches.iter().map(name).collect();
        let alike = runs(launches.len(), |one, other| names[one] == names[other]);
        let same = runs(launches.len(), |one, other| names[one] == names[other] && lists[one] == lists[other]);
        Self { kernel, memory: InMemory::of(kernel), lists, names, alike, same }
    }

    /// Returns periods of many launches after which the kernels come again from a launch on, with the number of turns until `end`: the
    /// shortest one, two of them, and as many of them after which the arguments come again, too. Launches that come again after fewer
    /// are a part of such a turn.
    fn long_periods(&self, at: usize, end: usize) -> Vec<(usize, usize)> {
        let names = &self.names[at..end];
        let near = agreements(&names[..names.len().min(LEAST_TURNS * MOST_IN_LONG)]);
        let is_period = |period: &usize| near[*period] >= (LEAST_TURNS - 1) * period;
        let most_short = (MOST_LAUNCHES + 1).min(near.len());
        let short = (1..most_short).find(is_period).map_or(0, |period| near[period] + period);
        let first = short.max(MOST_LAUNCHES + 1);
        let Some(shortest) = (first..near.len()).find(is_period) else { return Vec::new() };
        let all = names.iter().zip(&names[shortest..]).take_while(|(one, other)| one == other).count();
        let turns = |period: usize| (all + shortest) / period;
        let most = MOST_IN_LONG.min((all + shortest) / LEAST_TURNS);
        let comes_again = |period: &usize| {
            let lists = &self.lists[at..at + LEAST_TURNS * period];
            lists.iter().zip(&lists[*period..]).all(|(one, other)| one == other)
        };
        let multiples = (shortest..=most).step_by(shortest);
        let mut periods: Vec<usize> = multiples.clone().take(2).collect();
        periods.extend(multiples.skip(2).find(comes_again));
        periods.into_iter().map(|period| (period, turns(period))).collect()
    }

    /// Returns how many turns there are from a launch on.
    fn turns(&self, runs: &[Vec<u32>], at: usize, period: usize) -> usize {
        runs[period - 1].get(at).map_or(1, |run| *run as usize / period + 1)
    }

    /// Returns the bytes that tables take.
    fn bytes(&self, tables: &[Table]) -> usize {
        tables.iter().map(|table| table.bytes(&self.memory)).sum()
    }

    fn kind(&self, arg: &FusedArg) -> &FusedParam {
        match arg {
            FusedArg::Param(at) => self.kernel.params.get(*at).unwrap_or(&FusedParam::Size),
            FusedArg::Number(_) => &FusedParam::Size,
        }
    }

    /// Returns a loop with tables of at most `left` bytes, which may have fewer turns. None if there is no room for the fewest turns.
    fn with_tables(&self, at: usize, period: usize, turns: usize, left: usize) -> Option<Found> {
        let found = self.tables(at, period, turns)?;
        let bytes = |found: &Found| self.bytes(&found.tables);
        if bytes(&found) <= left {
            return Some(found);
        }
        let takes_some = |table: &&Table| self.bytes(std::slice::from_ref(table)) > 0;
        let of_turn: usize = found.tables.iter().filter(takes_some).map(|table| table.kind.size()).sum();
        // Some tables have entries for more than the turns.
        let more = bytes(&found).saturating_sub(of_turn * turns);
        let fitting = left.saturating_sub(more).checked_div(of_turn).unwrap_or(0);
        if fitting < LEAST_TURNS {
            return None;
        }
        self.tables(at, period, fitting.min(turns)).filter(|found| bytes(found) <= left)
    }

    /// Returns a loop with the tables that it needs. None if an argument is not always of one kind.
    fn tables(&self, at: usize, period: usize, turns: usize) -> Option<Found> {
        let mut tables: Vec<Table> = Vec::new();
        let mut all: Vec<Vec<Place>> = Vec::with_capacity(period);
        for member in 0..period {
            let count = self.lists[at + member].len();
            all.push(Vec::with_capacity(count));
            for number in 0..count {
                let of_turn = |turn: usize| self.lists[at + turn * period + member].get(number).copied();
                let column = (0..turns).map(of_turn).collect::<Option<Vec<FusedArg>>>()?;
                let first = *column.first()?;
                let place = if column.iter().all(|arg| *arg == first) {
                    Place::Same(first)
                } else {
                    let kind = self.kind(&first);
                    // There are no tables of local memory.
                    if *kind == FusedParam::Local || column.iter().any(|arg| self.kind(arg) != kind) {
                        return None;
                    }
                    table(&mut tables, &mut all, kind, column)
                };
                all[member].push(place);
            }
        }
        let cost = |table: &Table| match &table.kind {
            _ if table.in_memory(&self.memory).is_some() => 0,
            FusedParam::Memory => 2,
            _ => 1,
        };
        let cost = tables.iter().map(cost).sum();
        Some(Found { turns, period, args: Some(all), tables, cost })
    }
}

/// Returns the place of a column in one of the tables, or in a new one. `placed` are the places of other columns.
fn table(tables: &mut Vec<Table>, placed: &mut [Vec<Place>], kind: &FusedParam, column: Vec<FusedArg>) -> Place {
    for (number, table) in tables.iter_mut().enumerate().filter(|(_, table)| table.kind == *kind) {
        match table.place(&column) {
            Some(Ok(ahead)) => return Place::Table(number, ahead),
            Some(Err(())) => {
                for place in placed.iter_mut().flatten() {
                    if let Place::Table(of, ahead) = place
                        && *of == number
                    {
                        *ahead += 1;
                    }
                }
                return Place::Table(number, 0);
            }
            None => {}
        }
    }
    tables.push(Table { kind: kind.clone(), entries: column });
    Place::Table(tables.len() - 1, 0)
}

/// Returns by place, how many names from there on are those from the beginning on (the "Z function").
fn agreements(names: &[usize]) -> Vec<usize> {
    let mut all = vec![0; names.len()];
    // Where the names that were seen to agree begin and end.
    let (mut begin, mut end) = (0, 0);
    for at in 1..names.len() {
        let mut count = if at < end { all[at - begin].min(end - at) } else { 0 };
        while at + count < names.len() && names[count] == names[at + count] {
            count += 1;
        }
        if at + count > end {
            (begin, end) = (at, at + count);
        }
        all[at] = count;
    }
    all
}

/// Returns by period and launch, how many launches from there on are equal to the launch that is one period later.
fn runs(count: usize, equal: impl Fn(usize, usize) -> bool) -> Vec<Vec<u32>> {
    let of_period = |period: usize| {
        let mut runs = vec![0_u32; count];
        for at in (0..count.saturating_sub(period)).rev() {
            if equal(at, at + period) {
                runs[at] = runs[at + 1] + 1;
            }
        }
        runs
    };
    (1..=MOST_LAUNCHES).map(of_period).collect()
}
