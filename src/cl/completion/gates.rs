//! Which closed gates something comes after, to detect deadlocks.
//!
//! A host task runs while a gate holds back what comes after its submission. If the task waited for something that can
//! only end when that gate has opened, the task and the gate would wait for each other for ever. So events and queues
//! know the gates that their commands directly come after, and each closed gate knows the gates after which it can
//! open. A wait inside a host task follows these first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

/// The number of a gate. No two gates of a process have the same.
pub(crate) type GateId = u64;

/// Some gates, each once, in the order of their numbers: mostly the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gates(SmallVec<[GateId; 2]>);

static CLOSED: Mutex<ClosedGates> = Mutex::new(ClosedGates { gates: BTreeMap::new(), named: BTreeMap::new() });

/// The closed gates, and what names them.
struct ClosedGates {
    /// By number.
    gates: BTreeMap<GateId, Closed>,
    /// How many times the entries of closed gates name a gate. A gate that nothing names cannot be reached from others, so
    /// nobody has to look for it.
    named: BTreeMap<GateId, usize>,
}

#[derive(Debug, Default)]
struct Closed {
    /// The gates that have to open before it can.
    after: Gates,
    /// The gates that host tasks of its submission wait for now: see [`Wait`]. A gate that two of them wait for is there
    /// twice.
    waits: SmallVec<[GateId; 2]>,
    /// The same for waits by futures.
    polls: SmallVec<[GateId; 2]>,
    /// For a gate that stands for all gates that a barrier comes after, and is open when they are: how many of these,
    /// from the oldest on, have to be looked at. The newer ones were open.
    stands_for: Option<usize>,
    /// For a user event that a submission completes: what has to open before it does so, which may be long before its own
    /// gate opens. Waits of its host tasks that run before are among the waits of the event: see [`Wait::begin`].
    completed_after: Option<Gates>,
}

fn closed() -> MutexGuard<'static, ClosedGates> {
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClosedGates {
    /// Returns whether a gate is closed. One that stands for others is forgotten when it is not.
    fn is_closed(&mut self, gate: GateId) -> bool {
        let mut ahead: SmallVec<[GateId; 8]> = SmallVec::from_slice(&[gate]);
        while let Some(&next) = ahead.last() {
            let Some(Closed { after, stands_for, .. }) = self.gates.get(&next) else {
                ahead.pop();
                continue;
            };
            let Some(left) = *stands_for else { return true };
            // The newest first: an older one that stands for others is likely to be open. Those that were open are left
            // out next time, or each question would look at all of them.
            let newest = after.0.iter().take(left).rposition(|other| self.gates.contains_key(other));
            let (other, all) = (newest.map(|at| after.0[at]), after.0.len());
            let entry = self.gates.get_mut(&next);
            match (other, entry) {
                (Some(other), Some(entry)) => {
                    entry.stands_for = newest.map(|at| at + 1);
                    ahead.push(other);
                }
                // A user event may be registered again, by another submission.
                (None, Some(entry)) if left < all => entry.stands_for = Some(all),
                _ => {
                    self.remove(next);
                    ahead.pop();
                }
            }
        }
        false
    }

    /// A gate opens after others.
    fn add(&mut self, gate: GateId, after: &Gates) {
        let known = &mut self.gates.entry(gate).or_default().after;
        for other in &after.0 {
            if known.insert(*other) {
                *self.named.entry(*other).or_default() += 1;
            }
        }
    }

    fn remove(&mut self, gate: GateId) {
        let Some(Closed { after, waits, polls, completed_after, .. }) = self.gates.remove(&gate) else { return };
        self.forget_names(&after.0);
        self.forget_names(&waits);
        self.forget_names(&polls);
        self.forget_names(&completed_after.unwrap_or_default().0);
    }

    /// Returns whether one of some user events would be completed only after itself, if each is completed after the gates
    /// with it.
    fn closes_circle(&self, events: &[(GateId, Gates)]) -> bool {
        let own: BTreeMap<GateId, &Gates> = events.iter().map(|(event, after)| (*event, after)).collect();
        let mut later = events.iter().flat_map(|(_, after)| &after.0);
        // Mostly nothing waits for any of them.
        if !own.keys().any(|event| self.named.contains_key(event)) && !later.any(|gate| own.contains_key(gate)) {
            return false;
        }
        // Each gate is left when all that has to open before it was looked at. Until then it is on the way to them.
        let mut ahead: Vec<(GateId, bool)> = own.keys().map(|event| (*event, false)).collect();
        let (mut is_on_the_way, mut links) = (BTreeMap::new(), Vec::new());
        while let Some((gate, leaves)) = ahead.pop() {
            if leaves {
                is_on_the_way.insert(gate, false);
                continue;
            }
            match is_on_the_way.get(&gate) {
                Some(true) => return true,
                Some(false) => continue,
                None => {}
            }
            let entry = self.gates.get(&gate);
            match (own.get(&gate), entry) {
                (Some(after), _) => links.extend_from_slice(&after.0),
                (None, Some(Closed { completed_after: Some(after), .. })) => links.extend_from_slice(&after.0),
                (None, Some(entry)) => links.extend_from_slice(&entry.after.0),
                (None, None) => {}
            }
            entry.into_iter().for_each(|entry| entry.add_waits(&mut links, true));
            is_on_the_way.insert(gate, true);
            ahead.push((gate, true));
            ahead.extend(links.drain(..).map(|next| (next, false)));
        }
        false
    }

    fn name(&mut self, gates: &[GateId]) {
        for gate in gates {
            *self.named.entry(*gate).or_default() += 1;
        }
    }

    fn forget_names(&mut self, gates: &[GateId]) {
        for gate in gates {
            if let Some(count) = self.named.get_mut(gate) {
                *count -= 1;
                if *count == 0 {
                    self.named.remove(gate);
                }
            }
        }
    }
}

impl Gates {
    pub(crate) fn of(gate: GateId) -> Self {
        Self(SmallVec::from_slice(&[gate]))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a gate. Returns false if it is there.
    fn insert(&mut self, gate: GateId) -> bool {
        // Mostly it is the newest.
        if self.0.last().is_none_or(|last| *last < gate) {
            self.0.push(gate);
            return true;
        }
        match self.0.binary_search(&gate) {
            Ok(_) => false,
            Err(at) => {
                self.0.insert(at, gate);
                true
            }
        }
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        if others.0.len() < FEW_OF_QUEUE {
            for gate in &others.0 {
                self.insert(*gate);
            }
            return;
        }
        self.0.extend_from_slice(&others.0);
        // Two parts that are sorted: this takes linear time.
        self.0.sort();
        self.0.dedup();
    }

    /// Removes the gates that have opened.
    fn prune(&mut self) {
        let mut closed = closed();
        self.0.retain(|gate| closed.is_closed(*gate));
    }

    /// Returns whether one of them is closed.
    pub(crate) fn any_closed(&self) -> bool {
        !self.is_empty() && {
            let mut closed = closed();
            self.0.iter().any(|gate| closed.is_closed(*gate))
        }
    }

    /// Removes the gates that have opened and are newer than all that have not. If some are left, the last is closed.
    fn prune_newest(&mut self) {
        let mut closed = closed();
        while self.0.last().is_some_and(|last| !closed.is_closed(*last)) {
            self.0.pop();
        }
    }

    /// Returns whether a gate is one of these, or has to open before one of these can. Waits by futures do not count.
    pub(crate) fn come_after(&self, gate: GateId) -> bool {
        self.come_after_in(&closed(), gate, false)
    }

    fn come_after_in(&self, closed: &ClosedGates, gate: GateId, polls: bool) -> bool {
        if !closed.named.contains_key(&gate) {
            return self.0.binary_search(&gate).is_ok();
        }
        let (mut ahead, mut seen) = (self.0.to_vec(), BTreeSet::new());
        while let Some(next) = ahead.pop() {
            if next == gate {
                return true;
            }
            if seen.insert(next)
                && let Some(before) = closed.gates.get(&next)
            {
                before.add_links(&mut ahead, polls);
            }
        }
        false
    }
}

impl Closed {
    /// Adds the gates that have to open before this one can.
    fn add_links(&self, to: &mut Vec<GateId>, polls: bool) {
        to.extend_from_slice(&self.after.0);
        self.add_waits(to, polls);
    }

    /// Adds the gates that host tasks of its submission wait for.
    fn add_waits(&self, to: &mut Vec<GateId>, polls: bool) {
        to.extend_from_slice(&self.waits);
        if polls {
            to.extend_from_slice(&self.polls);
        }
    }

    fn waits_by(&mut self, by: By) -> &mut SmallVec<[GateId; 2]> {
        match by {
            By::Call => &mut self.waits,
            By::Future => &mut self.polls,
        }
    }
}

/// How a host task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cl) enum By {
    /// By a call, which returns when the wait is over.
    Call,
    /// By a future that was polled. It may be one of several of which the first ends the wait, and it may be dropped, or
    /// polled elsewhere.
    Future,
}

/// What a wait would close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cl) enum Circle {
    /// Of calls only: it never ends.
    OfCalls,
    /// It ends if a future does not wait after all.
    OfFutures,
}

/// A wait of a host task, until this is dropped: the gate of its submission opens after the gates that it waits for. So
/// another task that waits for this one's submission, by whatever way, and is waited for by it, is found.
#[derive(Debug)]
pub(in crate::cl) struct Wait {
    /// The gates of the submissions whose tasks wait on this thread, and of the user events that they complete later.
    own: SmallVec<[GateId; 2]>,
    of: Gates,
    by: By,
}

impl Wait {
    /// Begins a wait. Returns the circle if the gates would open only after one of the task's own. `later` are the user
    /// events that its submission completes after the task: they are completed after the wait too, and those that would
    /// complete what the task waits for must know.
    pub(in crate::cl) fn begin(
        mut own: SmallVec<[GateId; 2]>,
        later: &Gates,
        of: &Gates,
        by: By,
    ) -> Result<Self, Circle> {
        // Checked and registered under one lock: of two tasks that begin to wait for each other, one is refused.
        let mut closed = closed();
        let closes = |polls| own.iter().any(|gate| of.come_after_in(&closed, *gate, polls));
        if closes(true) {
            return Err(if closes(false) { Circle::OfCalls } else { Circle::OfFutures });
        }
        own.extend_from_slice(&later.0);
        for gate in &own {
            if let Some(entry) = closed.gates.get_mut(gate) {
                entry.waits_by(by).extend_from_slice(&of.0);
                closed.name(&of.0);
            }
        }
        Ok(Self { own, of: of.clone(), by })
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut closed = closed();
        for gate in &self.own {
            let Some(entry) = closed.gates.get_mut(gate) else { continue };
            let waits = entry.waits_by(self.by);
            let take = |of: &GateId| waits.iter().position(|waited| waited == of).map(|at| waits.swap_remove(at));
            let found: SmallVec<[GateId; 2]> = self.of.0.iter().filter_map(take).collect();
            closed.forget_names(&found);
        }
    }
}

/// Returns a number for a new gate.
pub(in crate::cl) fn number() -> GateId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Registers a closed gate, and the gates that have to open before it can.
pub(crate) fn close(gate: GateId, after: Gates) {
    closed().add(gate, &after);
}

/// Registers the gates of user events that a submission completes, each after some gates. Returns false, and does nothing, if
/// one of these can open only after the event: a host task waits for it, or for what comes after it.
pub(crate) fn complete_by(events: &[(GateId, Gates)], submission: GateId) -> bool {
    // All are looked at before one is registered: another wait must not see a submission that is refused.
    let mut closed = closed();
    if closed.closes_circle(events) {
        return false;
    }
    for (event, after) in events {
        closed.add(*event, &Gates::of(submission));
        closed.name(&after.0);
        let entry = closed.gates.entry(*event).or_default();
        if let Some(old) = entry.completed_after.replace(after.clone()) {
            closed.forget_names(&old.0);
        }
    }
    true
}

/// Returns the place of the first of some gates that has to open before something that a host task waits for.
pub(in crate::cl) fn first_awaited(mut of: impl Iterator<Item = Option<GateId>>) -> Option<usize> {
    let closed = closed();
    let waits = closed.gates.values().flat_map(|entry| entry.waits.iter().chain(&entry.polls));
    let (mut ahead, mut seen): (Vec<GateId>, _) = (waits.copied().collect(), BTreeSet::new());
    while let Some(next) = ahead.pop() {
        if seen.insert(next)
            && let Some(before) = closed.gates.get(&next)
        {
            before.add_links(&mut ahead, true);
        }
    }
    of.position(|gate| gate.is_some_and(|gate| seen.contains(&gate)))
}

/// Returns one gate that is open when all of these are.
fn one_for(all: Gates) -> Gates {
    if all.0.len() < 2 {
        return all;
    }
    let (mut closed, one) = (closed(), number());
    closed.name(&all.0);
    let stands_for = Some(all.0.len());
    closed.gates.insert(one, Closed { after: all, stands_for, ..Closed::default() });
    // Entries of open gates are removed when somebody asks for them, which may never happen. So all entries are checked
    // from time to time: when as many new ones have come as the last check left.
    if NEW.fetch_add(1, Ordering::Relaxed) >= LEFT.load(Ordering::Relaxed).max(FEW) {
        let stand_ins: Vec<GateId> =
            closed.gates.iter().filter(|(_, entry)| entry.stands_for.is_some()).map(|(gate, _)| *gate).collect();
        // The oldest first, as newer ones stand for older ones too.
        for gate in stand_ins {
            closed.is_closed(gate);
        }
        let left = closed.gates.values().filter(|entry| entry.stands_for.is_some()).count();
        LEFT.store(left, Ordering::Relaxed);
        NEW.store(0, Ordering::Relaxed);
    }
    Gates::of(one)
}

/// How many gates of a queue are so few that no other stands for them.
const FEW_OF_QUEUE: usize = 8;

/// How many gates that stand for others are so few that it does not matter whether all of them are needed.
const FEW: usize = 256;

/// How many gates that stand for others are new since all were looked through, and how many were left then.
static NEW: AtomicUsize = AtomicUsize::new(0);
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Returns whether all gates with numbers are open.
pub(in crate::cl) fn none_closed() -> bool {
    closed().gates.is_empty()
}

/// The user events of gates that are not open, by C handle, with the numbers of the gates.
static EVENTS: Mutex<BTreeMap<usize, Option<GateId>>> = Mutex::new(BTreeMap::new());

fn events() -> MutexGuard<'static, BTreeMap<usize, Option<GateId>>> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers the user event of a gate.
pub(in crate::cl) fn made(event: usize, gate: Option<GateId>) {
    events().insert(event, gate);
}

/// Forgets the user event of a gate, which its owner is about to set. Returns whether it still has to be set.
pub(in crate::cl) fn ends(event: usize) -> bool {
    events().remove(&event).is_some()
}

/// Returns whether there is no user event of a gate.
pub(in crate::cl) fn no_events() -> bool {
    events().is_empty()
}

/// Returns the gate of a user event.
pub(in crate::cl) fn of_event(event: usize) -> Gates {
    events().get(&event).copied().flatten().map(Gates::of).unwrap_or_default()
}

/// Sets all user events of gates, by a function that is called while nobody can release them.
pub(in crate::cl) fn set_all(mut set: impl FnMut(usize)) {
    let mut events = events();
    std::mem::take(&mut *events).into_keys().for_each(&mut set);
}

/// Forgets a gate that has opened.
pub(crate) fn open(gate: GateId) {
    closed().remove(gate);
}

/// The gates that the commands of a queue come after.
///
/// A command adds its gates before the driver gets it, and a command reads them after the driver got it. So a command
/// knows the gates of all that the driver has before it, whichever threads enqueue; it may know some that are not.
#[derive(Debug, Default)]
pub(in crate::cl) struct QueueGates {
    /// Whether there may be some. The usual case needs no lock.
    some: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The last one was closed a moment ago. Others may have opened since they were added.
    all: Gates,
    /// How many there were when all of them were last looked at.
    were: usize,
    /// Those of the barriers of an out-of-order queue, which all later commands come after.
    of_barriers: Gates,
    /// How many barriers after everything the driver is getting now. They come after gates that are added meanwhile.
    barriers_to_come: usize,
}

/// The driver is getting a barrier after everything, until this is dropped.
pub(in crate::cl) struct BarrierToCome<'a>(&'a QueueGates);

impl Drop for BarrierToCome<'_> {
    fn drop(&mut self) {
        self.0.lock().barriers_to_come -= 1;
    }
}

impl QueueGates {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there may be some.
    #[inline]
    pub(in crate::cl) fn may_be_some(&self) -> bool {
        self.some.load(Ordering::Acquire)
    }

    /// Forgets gates that have opened. Mostly it looks at few of them: every command of a queue calls this, and each may have
    /// a gate of its own.
    fn changed(&self, known: &mut Known) {
        if known.all.0.len() > 2 * known.were + FEW {
            known.all.prune();
            known.were = known.all.0.len();
        }
        known.all.prune_newest();
        self.some.store(!known.all.is_empty(), Ordering::Release);
    }

    /// Returns all that are closed. One stands for many, so that each is looked at once, however often somebody asks.
    fn all(&self, known: &mut Known) -> Gates {
        known.all.prune();
        if known.all.0.len() > FEW_OF_QUEUE {
            known.all = one_for(std::mem::take(&mut known.all));
        }
        known.were = known.all.0.len();
        self.some.store(!known.all.is_empty(), Ordering::Release);
        known.all.clone()
    }

    /// Returns the gates that are closed.
    pub(in crate::cl) fn get(&self) -> Gates {
        if !self.may_be_some() {
            return Gates::default();
        }
        self.all(&mut self.lock())
    }

    /// Returns the closed gates of the barriers.
    pub(in crate::cl) fn of_barriers(&self) -> Gates {
        if !self.may_be_some() {
            return Gates::default();
        }
        let mut known = self.lock();
        if known.barriers_to_come > 0 {
            return self.all(&mut known);
        }
        known.of_barriers.prune();
        known.of_barriers.clone()
    }

    /// Adds gates that a command comes after.
    pub(in crate::cl) fn add(&self, more: &Gates) {
        let mut known = self.lock();
        known.all.extend(more);
        self.changed(&mut known);
    }

    /// Adds gates that a barrier with a wait list comes after.
    pub(in crate::cl) fn add_of_barrier(&self, more: &Gates) {
        let mut known = self.lock();
        known.of_barriers.extend(more);
        known.of_barriers.prune();
        known.of_barriers = one_for(std::mem::take(&mut known.of_barriers));
        let of_barriers = known.of_barriers.clone();
        known.all.extend(&of_barriers);
        self.changed(&mut known);
    }

    /// Begins a barrier after everything.
    pub(in crate::cl) fn begin_barrier(&self) -> BarrierToCome<'_> {
        self.lock().barriers_to_come += 1;
        BarrierToCome(self)
    }

    /// Returns the gates that a barrier after everything comes after, which all later commands come after too: one stands
    /// for all.
    pub(in crate::cl) fn after_all(&self) -> Gates {
        let mut known = self.lock();
        known.all.prune();
        known.all = one_for(std::mem::take(&mut known.all));
        known.of_barriers = known.all.clone();
        self.changed(&mut known);
        known.all.clone()
    }

    /// Adds a gate that all later commands come after. It may open before those that are there: one stands for all.
    pub(in crate::cl) fn hold(&self, gate: GateId) {
        let mut known = self.lock();
        known.all.extend(&Gates::of(gate));
        known.all.prune();
        known.all = one_for(std::mem::take(&mut known.all));
        self.changed(&mut known);
    }
}

#[cfg(test)]
mod tests;
