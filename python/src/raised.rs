//! Exceptions that functions of the program have raised, on their way to the exceptions of submissions, whose
//! `__cause__` they become.
//!
//! clgraph carries a text from a function to its submission. So the text ends with a number between two marks:
//! [`split`] takes it off where an exception is made of the text, and [`find`] has the exception of the number.
//!
//! An exception leads to all that its function has seen, also to the submission itself. So a Python object owns it,
//! where Python's garbage collector looks: a submission, or the user event that was failed by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::errors;
use crate::gate::{self, Kept};

/// A noncharacter of Unicode, for which texts have no use. `split` leaves one that a text has.
const MARK: char = '\u{10FFFE}';

enum Owner {
    /// Nobody yet. Its submission has this number at most.
    Nobody(Kept<Py<PyAny>>, u64),
    Raised(Weak<Raised>),
}

/// The number of the last submission that has functions, and those that have not ended.
///
/// An exception waits for its submission, which takes it when it has ended: that may be long after, because callbacks run
/// one after the other. It waits in vain if the submission has failed by another one. So it is dropped when all that
/// were under way when it was raised have ended.
static RUNNING: Mutex<(u64, BTreeSet<u64>)> = Mutex::new((0, BTreeSet::new()));

/// A submission, from before its functions can be called until it has taken its exceptions.
pub(crate) struct Running(u64);

impl Running {
    pub(crate) fn new() -> Self {
        let mut running = lock(&RUNNING);
        running.0 += 1;
        let number = running.0;
        running.1.insert(number);
        Self(number)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&RUNNING).1.remove(&self.0);
    }
}

struct All {
    next: u64,
    owners: BTreeMap<u64, Owner>,
}

/// Used with the interpreter's lock, and no object is dropped or made meanwhile: so nobody waits for it.
static ALL: Mutex<All> = Mutex::new(All { next: 0, owners: BTreeMap::new() });

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl All {
    fn add(&mut self, owner: Owner) -> u64 {
        self.next += 1;
        self.owners.insert(self.next, owner);
        self.next
    }

    /// Takes out those that a question is answered with yes for, for the caller to drop.
    fn take(&mut self, is_taken: impl Fn(u64, &Owner) -> bool) -> Vec<Owner> {
        let taken = self.owners.iter().filter(|(number, owner)| is_taken(**number, owner)).map(|(number, _)| *number);
        let taken: Vec<u64> = taken.collect();
        taken.iter().filter_map(|number| self.owners.remove(number)).collect()
    }

    /// Takes out what is of no use any more.
    fn useless(&mut self) -> Vec<Owner> {
        let first = lock(&RUNNING).1.first().copied().unwrap_or(u64::MAX);
        self.take(|_, owner| match owner {
            Owner::Nobody(_, last) => *last < first,
            Owner::Raised(raised) => raised.strong_count() == 0,
        })
    }
}

/// The exceptions of a submission, or that of a user event.
#[derive(Default)]
pub(crate) struct Raised(Mutex<Vec<(u64, Py<PyAny>)>>);

impl Raised {
    fn get(&self, py: Python<'_>, number: u64) -> Option<Py<PyAny>> {
        lock(&self.0).iter().find(|(of, _)| *of == number).map(|(_, error)| error.clone_ref(py))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(all) = self.0.try_lock() else { return Ok(()) };
        all.iter().try_for_each(|(_, error)| visit.call(error))
    }

    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        drop(all);
    }

    /// Owns an exception, and returns what the text of a failure ends with.
    pub(crate) fn own(self: &Arc<Self>, error: Py<PyAny>) -> String {
        let mut all = lock(&ALL);
        let number = all.add(Owner::Raised(Arc::downgrade(self)));
        let useless = all.useless();
        drop(all);
        drop(useless);
        lock(&self.0).push((number, error));
        end(number)
    }
}

fn end(number: u64) -> String {
    format!("{MARK}{number}{MARK}")
}

/// The text of a failure by an exception, for clgraph to carry.
pub(crate) fn text(py: Python<'_>, error: &PyErr) -> String {
    gate::end_child(py, Some(error));
    let text = errors::describe(py, error);
    let error = Kept::new(error.clone_ref(py).into_value(py).into_any());
    let last = lock(&RUNNING).0;
    let mut all = lock(&ALL);
    let number = all.add(Owner::Nobody(error, last));
    let useless = all.useless();
    drop(all);
    drop(useless);
    text + &end(number)
}

/// Takes the numbers of exceptions off a text.
pub(crate) fn split(text: String) -> (String, Vec<u64>) {
    if !text.contains(MARK) {
        return (text, Vec::new());
    }
    let (mut rest, mut plain, mut numbers) = (text.as_str(), String::new(), Vec::new());
    while let Some((before, after)) = rest.split_once(MARK) {
        plain.push_str(before);
        let number = after.split_once(MARK).and_then(|(number, after)| Some((number.parse().ok()?, after)));
        rest = match number {
            Some((number, after)) => {
                numbers.push(number);
                after
            }
            None => {
                plain.push(MARK);
                after
            }
        };
    }
    (plain + rest, numbers)
}

/// Finds the exception of a number, and has `raised` own it, or nobody.
pub(crate) fn find(py: Python<'_>, numbers: &[u64], raised: Option<&Arc<Raised>>) -> Option<Py<PyAny>> {
    numbers.iter().find_map(|number| {
        if let Some(error) = raised.and_then(|raised| raised.get(py, *number)) {
            return Some(error);
        }
        let mut all = lock(&ALL);
        match all.owners.get(number)? {
            Owner::Raised(raised) => {
                let raised = raised.upgrade();
                drop(all);
                raised?.get(py, *number)
            }
            Owner::Nobody(error, _) => {
                let error = error.clone_ref(py);
                let old = raised.and_then(|raised| {
                    lock(&raised.0).push((*number, error.clone_ref(py)));
                    all.owners.insert(*number, Owner::Raised(Arc::downgrade(raised)))
                });
                drop(all);
                drop(old);
                Some(error)
            }
        }
    })
}

/// Drops exceptions that nobody owns.
pub(crate) fn forget(numbers: &[u64]) {
    let mut all = lock(&ALL);
    let useless = all.take(|number, owner| numbers.contains(&number) && matches!(owner, Owner::Nobody(..)));
    drop(all);
    drop(useless);
}

/// A submission has taken its exceptions: drops those that nobody will take.
pub(crate) fn ended(running: Running) {
    drop(running);
    let useless = lock(&ALL).useless();
    drop(useless);
}
