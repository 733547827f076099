//! The different runs of a queue. Equal ones are one entry.

use std::collections::VecDeque;

use super::call::{Call, KINDS, Map, Part, What, mix};
use super::limits;
use super::repeats::{self, Loop};

/// What a run ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// Its last call waits.
    Blocking,
    /// This function waits, for the run's queue or for events.
    Wait(&'static str),
    /// This function waits, for another queue.
    Elsewhere(&'static str),
    /// The queue is released.
    Released,
    /// The process ends.
    Exit,
}

/// How many calls and parts may still be kept.
#[derive(Debug)]
pub(crate) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(limits::ROOM)
    }
}

impl Room {
    fn take(&mut self, count: usize) -> bool {
        let left = self.0.checked_sub(count);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    fn give(&mut self, count: usize) {
        self.0 += count;
    }
}

/// A run that has not ended.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// The first ones, as many as are kept.
    calls: Vec<Call>,
    parts: Vec<Part>,
    /// All calls, how many of each kind, and what tells runs apart.
    pub(crate) total: u64,
    kinds: [u64; KINDS],
    shape: u64,
    nanoseconds: u64,
    /// How often a callback was set, and behind which call the first one.
    callbacks: u64,
    first_callback: u64,
}

impl Open {
    /// Adds a call.
    pub(crate) fn push(&mut self, call: Call, parts: &[(What, u32)], time: u64, room: &mut Room) {
        self.total += 1;
        self.kinds[call.kind as usize] += 1;
        self.shape = mix(self.shape, call.identity);
        self.nanoseconds += time;
        // Calls behind one that was not kept are not kept: places are those of the run.
        let kept =
            self.calls.len() as u64 + 1 == self.total && self.calls.len() < limits::CALLS && room.take(1 + parts.len());
        if kept {
            self.calls.push(Call { parts: parts.len() as u32, ..call });
            self.parts.extend(parts.iter().map(|(what, hash)| Part { what: *what, hash: *hash, changed: false }));
        }
    }

    pub(crate) fn callback(&mut self) {
        self.callbacks += 1;
        if self.callbacks == 1 {
            self.first_callback = self.total;
        }
    }

    fn cost(&self) -> usize {
        self.calls.len() + self.parts.len()
    }

    /// Is as new, with the memory that it has, unless that is much: there may be many queues and threads.
    fn clear(&mut self) {
        let (mut calls, mut parts) = (std::mem::take(&mut self.calls), std::mem::take(&mut self.parts));
        calls.clear();
        parts.clear();
        calls.shrink_to(limits::OPEN);
        parts.shrink_to(limits::OPEN);
        *self = Self { calls, parts, ..Self::default() };
    }
}

/// A run that has come once or more.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) number: u64,
    pub(crate) end: End,
    /// All calls of it, and how many of each kind.
    pub(crate) total: u64,
    pub(crate) kinds: [u64; KINDS],
    /// The kept ones; of a loop only the first turn.
    pub(crate) calls: Vec<Call>,
    pub(crate) parts: Vec<Part>,
    /// How many were kept before the turns of a loop became one.
    pub(crate) kept: u64,
    pub(crate) repeats: Option<Loop>,
    pub(crate) count: u64,
    /// What all parts of the first one were, and whether all others had the same.
    whole: u64,
    same: bool,
    /// Nanoseconds in the calls: of the first time, which compiles and allocates, and of all others.
    pub(crate) first: u64,
    pub(crate) others: u64,
    pub(crate) callbacks: u64,
    pub(crate) first_callback: u64,
}

impl Run {
    fn new(number: u64, end: End, open: &Open) -> Self {
        let sequence: Vec<u64> = open.calls.iter().map(|call| call.identity).collect();
        let mut run = Self {
            number,
            end,
            total: open.total,
            kinds: open.kinds,
            calls: Vec::new(),
            parts: Vec::new(),
            kept: open.calls.len() as u64,
            repeats: repeats::find(&sequence),
            count: 0,
            whole: 0,
            same: true,
            first: 0,
            others: 0,
            callbacks: 0,
            first_callback: 0,
        };
        run.add(open);
        run
    }

    /// Counts a run that is the same, and marks what differs. The first one makes the entry: of a loop, its first turn does.
    fn add(&mut self, open: &Open) {
        self.count += 1;
        *(if self.count == 1 { &mut self.first } else { &mut self.others }) += open.nanoseconds;
        if self.callbacks == 0 {
            self.first_callback = open.first_callback;
        }
        self.callbacks += open.callbacks;
        let makes = self.count == 1;
        let whole = open.parts.iter().fold(0, |hash, part| mix(mix(hash, u64::from(part.hash)), part.what.number()));
        if makes {
            self.whole = whole;
        }
        self.same &= self.whole == whole;
        let starts = |calls: &[Call]| -> Vec<usize> {
            let each = calls.iter().scan(0, |at, call| Some(std::mem::replace(at, *at + call.parts as usize)));
            each.collect()
        };
        let mut mine = starts(&self.calls);
        let mut at = 0;
        for (place, call) in open.calls.iter().enumerate() {
            let given = &open.parts[at..at + call.parts as usize];
            at += given.len();
            let place = self.repeats.as_ref().map_or(place, |found| found.fold(place));
            if makes && place == self.calls.len() {
                mine.push(self.parts.len());
                self.parts.extend_from_slice(given);
                self.calls.push(*call);
            } else if let (Some(known), Some(start)) = (self.calls.get_mut(place), mine.get(place)) {
                known.user_waits = known.user_waits.max(call.user_waits);
                known.foreign_waits = known.foreign_waits.max(call.foreign_waits);
                let parts = &mut self.parts[*start..*start + known.parts as usize];
                let differ = parts.len() != given.len();
                for (at, part) in parts.iter_mut().enumerate() {
                    let same = given.get(at).is_some_and(|given| (given.what, given.hash) == (part.what, part.hash));
                    part.changed |= differ || !same;
                }
            }
        }
    }

    fn cost(&self) -> usize {
        self.calls.len() + self.parts.len()
    }

    /// Whether a part was not the same each time. Where a run came several times, turns of a loop in it may differ, and do so in the
    /// same way each time.
    pub(crate) fn changes(&self, part: &Part) -> bool {
        part.changed && !self.is_same()
    }

    /// Whether it came several times, and was the same each time.
    pub(crate) fn is_same(&self) -> bool {
        self.count > 1 && self.same
    }

    /// Whether the turns of a loop in it are the same.
    pub(crate) fn turns_are_same(&self) -> bool {
        !self.parts.iter().any(|part| part.changed)
    }

    /// The number of a call among all calls of the run; the first is 1.
    pub(crate) fn number_of(&self, place: usize) -> u64 {
        let skipped = self.repeats.as_ref().filter(|found| place >= found.places.start + found.body);
        (place + skipped.map_or(0, |found| found.places.len() - found.body)) as u64 + 1
    }
}

/// All runs of a queue.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    table: Map<(u64, End), Run>,
    /// The numbers of the last ones, in their order.
    order: VecDeque<u64>,
    next: u64,
    /// All that have ended.
    pub(crate) ended: u64,
    /// Runs that came once, and gave their place to later ones.
    pub(crate) forgotten: u64,
    /// Runs that found no place.
    pub(crate) left_out: u64,
}

impl Runs {
    /// Takes a run that has ended, and leaves an empty one.
    pub(crate) fn close(&mut self, open: &mut Open, end: End, room: &mut Room) {
        if open.total > 0 {
            self.ended += 1;
            let number = self.take(open, end);
            let kept = self.cost_of_new(number, open, end);
            // What the entry keeps has been paid for by the open run.
            room.give(open.cost() - kept);
            if self.table.len() > limits::RUNS {
                self.forget(number, room);
            }
            if self.order.len() == limits::ORDER {
                self.order.pop_front();
            }
            self.order.push_back(number);
        }
        open.clear();
    }

    fn take(&mut self, open: &Open, end: End) -> u64 {
        let key = (mix(open.shape, open.total), end);
        if let Some(run) = self.table.get_mut(&key) {
            run.add(open);
            return run.number;
        }
        self.next += 1;
        self.table.insert(key, Run::new(self.next, end, open));
        self.next
    }

    /// What an entry that was just made costs, and 0 for one that was there.
    fn cost_of_new(&self, number: u64, open: &Open, end: End) -> usize {
        let run = self.table.get(&(mix(open.shape, open.total), end));
        run.filter(|run| run.number == number && run.count == 1).map_or(0, Run::cost)
    }

    /// Takes the oldest run away that came once, but the one with this number if there is another.
    fn forget(&mut self, newest: u64, room: &mut Room) {
        let once = self.table.iter().filter(|(_, run)| run.count == 1);
        let Some((key, number)) = once.map(|(key, run)| (*key, run.number)).min_by_key(|(_, number)| *number) else {
            return;
        };
        if let Some(run) = self.table.remove(&key) {
            room.give(run.cost());
        }
        *(if number == newest { &mut self.left_out } else { &mut self.forgotten }) += 1;
    }

    /// The runs by their numbers.
    pub(crate) fn sorted(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.table.values().collect();
        runs.sort_by_key(|run| run.number);
        runs
    }

    /// The runs that come one after another again and again, in their order, and how often they were seen to. One alone is no
    /// such cycle.
    pub(crate) fn cycle(&self) -> Option<(Vec<&Run>, usize)> {
        let order: Vec<u64> = self.order.iter().copied().collect();
        let found = repeats::find(&order).filter(|found| found.body > 1)?;
        let turn = &order[found.places.start..found.places.start + found.body];
        let find = |number: &u64| self.table.values().find(|run| run.number == *number);
        let mut runs: Vec<&Run> = turn.iter().map(find).collect::<Option<_>>()?;
        // A turn begins with the run that came first.
        let first = turn.iter().enumerate().min_by_key(|(_, number)| **number)?.0;
        runs.rotate_left(first);
        Some((runs, found.turns()))
    }
}
