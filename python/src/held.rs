//! What graphs and executables keep of Python: functions of nodes, and buffers of pools, whose memory may not go back.
//!
//! Python's garbage collector sees all of it, because a function often holds the graph or the executable that keeps it.
//! So only Python objects own what is kept: a graph and its executables own [`Holder`]s, and clgraph's own tables have
//! functions weakly. A submission that runs owns holders where the collector does not look: it takes that for a use from
//! outside, and collects nothing that may still be called.
//!
//! Buffers of pools are let go of when nothing uses them any more, because nodes get other memory as often as the program
//! likes. clgraph's own tables say when that is: what is in them has a reference to the memory ([`Held::let_go`]).

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::gate::{Kept, call};
use crate::interop;
use crate::raised::Running;
use crate::submission::Submission;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Buffers of pools, by their addresses: each object once, however often it is used. One that was kept again has a new `Arc`.
type Pooled = BTreeMap<usize, Arc<Py<PyAny>>>;

/// The buffers of pools that a graph keeps.
#[derive(Default)]
struct Objects {
    /// Submissions that run share it.
    all: Arc<Pooled>,
    /// The address from which on they are looked at next.
    next: usize,
}

/// How many buffers are looked at when one is added or replaced. So few of them are of no use, however many there are.
pub(crate) const FEW: usize = 8;

/// What a graph keeps. All of it is changed with the interpreter's lock, so nobody waits for its locks.
#[derive(Default)]
pub(crate) struct Held {
    objects: Mutex<Objects>,
    functions: Mutex<Vec<Arc<KeptFunction>>>,
    /// What executables keep that are a part of the graph.
    inner: Mutex<Vec<Py<Holder>>>,
}

/// The owner of what is kept.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Holder(Arc<Held>);

/// The recordings under way: the C handle of the queue, and what the graph holds.
static RECORDINGS: Mutex<Vec<(usize, Weak<Held>)>> = Mutex::new(Vec::new());

impl Held {
    /// Keeps a buffer of a pool, until nothing of clgraph uses it. The caller has an object of clgraph over it.
    pub(crate) fn keep(&self, object: &Bound<'_, PyAny>) {
        let kept = Arc::new(object.clone().unbind());
        let old = Arc::make_mut(&mut lock(&self.objects).all).insert(object.as_ptr().addr(), kept);
        if old.is_none() {
            self.let_go(object.py(), FEW);
        }
    }

    /// Lets go of buffers that nothing uses, of so many that are looked at.
    ///
    /// Only a buffer's own object refers to its memory then: nodes, executables, and whoever is about to add a node have
    /// references of their own. Submissions that run may have none, and keep the object.
    pub(crate) fn let_go(&self, py: Python<'_>, count: usize) {
        let mut looked_at: Vec<_> = {
            let mut objects = lock(&self.objects);
            let from = objects.next;
            let all = objects.all.range(from..).chain(objects.all.range(..from));
            let these: Vec<_> = all.take(count).map(|(at, object)| (*at, Arc::clone(object))).collect();
            objects.next = these.last().map_or(0, |(at, _)| at + 1);
            these
        };
        // Without the lock: Python's code runs here, and so may another thread, which keeps the buffer again.
        looked_at.retain(|(_, object)| interop::is_alone(object.bind(py)));
        if looked_at.is_empty() {
            return;
        }
        let mut objects = lock(&self.objects);
        let all = Arc::make_mut(&mut objects.all);
        for (at, object) in &looked_at {
            if all.get(at).is_some_and(|now| Arc::ptr_eq(now, object)) {
                all.remove(at);
            }
        }
        drop(objects);
        // Here buffers go back to their pools.
        drop(looked_at);
    }

    /// What commands of a queue may become nodes of: the graph that it records into. A queue that does not record may
    /// join any recording, by an event that it waits for.
    pub(crate) fn of_recordings(queue: &rust::Queue) -> Vec<Arc<Self>> {
        let all = lock(&RECORDINGS);
        let alive = |only: Option<usize>| {
            let these = all.iter().filter(move |(of, _)| only.is_none_or(|queue| *of == queue));
            these.filter_map(|(_, held)| held.upgrade()).collect::<Vec<_>>()
        };
        let own = alive(Some(queue.raw().addr()));
        if own.is_empty() { alive(None) } else { own }
    }

    /// Keeps what an executable keeps that is a part of the graph: once, however often it is one.
    pub(crate) fn keep_all(&self, of: Py<Holder>) {
        let mut inner = lock(&self.inner);
        if !inner.iter().any(|known| known.is(&of)) {
            inner.push(of);
        }
    }

    fn is_empty(&self) -> bool {
        lock(&self.objects).all.is_empty() && lock(&self.functions).is_empty() && lock(&self.inner).is_empty()
    }
}

impl Holder {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Py<Self>> {
        Py::new(py, Self(Arc::default()))
    }

    pub(crate) fn held(&self) -> &Arc<Held> {
        &self.0
    }

    /// A queue begins to record into the graph that this is of.
    pub(crate) fn recording_begins(&self, queue: &rust::Queue) {
        lock(&RECORDINGS).push((queue.raw().addr(), Arc::downgrade(&self.0)));
    }

    /// No queue records into the graph any more. It lets go of what ran beside the recording.
    pub(crate) fn recording_ends(&self, py: Python<'_>) {
        let own = Arc::downgrade(&self.0);
        lock(&RECORDINGS).retain(|(_, held)| held.strong_count() > 0 && !held.ptr_eq(&own));
        self.0.let_go(py, usize::MAX);
    }
}

#[pymethods]
impl Holder {
    /// Called at any time, also while this thread changes what is kept: then it is not looked at, and so not collected.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let (Ok(objects), Ok(functions), Ok(inner)) =
            (self.0.objects.try_lock(), self.0.functions.try_lock(), self.0.inner.try_lock())
        else {
            return Ok(());
        };
        objects.all.values().try_for_each(|object| visit.call(&**object))?;
        functions.iter().try_for_each(|function| visit.call(&function.0))?;
        inner.iter().try_for_each(|held| visit.call(held))
    }

    fn __clear__(&self) {
        // Dropped without the locks: the program's code may run then.
        let objects = std::mem::take(&mut *lock(&self.0.objects));
        let functions = std::mem::take(&mut *lock(&self.0.functions));
        let inner = std::mem::take(&mut *lock(&self.0.inner));
        drop((objects, functions, inner));
    }
}

/// The one reference of a holder to a function.
struct KeptFunction(Py<PyAny>);

/// A function of Python that clgraph calls.
pub(crate) struct Function {
    /// Until a graph keeps the function, and for a command that runs at once.
    own: Mutex<Option<Kept<Py<PyAny>>>>,
    /// Where graphs keep it: usually in one place.
    kept: Mutex<Vec<Weak<KeptFunction>>>,
}

impl Function {
    pub(crate) fn new(function: &Bound<'_, PyAny>) -> Arc<Self> {
        Arc::new(Self { own: Mutex::new(Some(Kept::new(function.clone().unbind()))), kept: Mutex::default() })
    }

    /// The function. It is an error if nothing keeps it: then no submission should call it.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(function) = &*lock(&self.own) {
            return Ok(function.bind(py).clone());
        }
        let kept = lock(&self.kept).iter().find_map(|kept| kept.upgrade().map(|kept| kept.0.bind(py).clone()));
        kept.ok_or_else(|| {
            crate::errors::invalid("the function is gone with the graph and the executables that kept it")
        })
    }

    /// Has what graphs hold keep the function, in place of clgraph itself.
    pub(crate) fn hand_over(&self, py: Python<'_>, to: &[Arc<Held>]) -> PyResult<()> {
        for held in to {
            let kept = Arc::new(KeptFunction(self.get(py)?.unbind()));
            lock(&self.kept).push(Arc::downgrade(&kept));
            lock(&held.functions).push(kept);
        }
        let own = if to.is_empty() { None } else { lock(&self.own).take() };
        drop(own);
        Ok(())
    }
}

/// What an executable keeps: what its graph keeps, and what the graph keeps whose values it took last
/// (`Executable.update_from`).
pub(crate) struct ExecutableHeld {
    graph: Py<Holder>,
    all: Py<Holder>,
    /// How often it is or may become part of a graph, which may have any of its values.
    nested: AtomicUsize,
    updates: Updates,
}

/// An executable that may become a part of a graph.
pub(crate) struct Nesting<'a>(&'a ExecutableHeld);

impl Drop for Nesting<'_> {
    fn drop(&mut self) {
        self.0.nested.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The updates from graphs. Which one came last is known if no two run at a time.
#[derive(Default)]
struct Updates {
    begun: AtomicUsize,
    running: AtomicUsize,
}

impl ExecutableHeld {
    pub(crate) fn new(py: Python<'_>, graph: Py<Holder>) -> PyResult<Self> {
        let all = Holder::new(py)?;
        all.get().0.keep_all(graph.clone_ref(py));
        Ok(Self { graph, all, nested: AtomicUsize::new(0), updates: Updates::default() })
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.graph)?;
        visit.call(&self.all)
    }

    fn inner(&self) -> MutexGuard<'_, Vec<Py<Holder>>> {
        lock(&self.all.get().0.inner)
    }

    /// The executable may become a part of a graph, until this is dropped: no update drops what the graph may have then.
    pub(crate) fn nesting(&self) -> Nesting<'_> {
        self.nested.fetch_add(1, Ordering::Relaxed);
        Nesting(self)
    }

    /// Has a graph keep it that the executable becomes a part of. That may be its own graph, which does not keep itself.
    pub(crate) fn nest(&self, py: Python<'_>, into: &Arc<Held>) {
        self.nested.fetch_add(1, Ordering::Relaxed);
        if Arc::ptr_eq(into, &self.graph.get().0) {
            let all = self.inner();
            let others = all.iter().filter(|held| !held.is(&self.graph)).map(|held| held.clone_ref(py));
            let others = others.collect::<Vec<_>>();
            drop(all);
            others.into_iter().for_each(|held| into.keep_all(held));
        } else {
            into.keep_all(self.all.clone_ref(py));
        }
    }

    /// Updates the executable from a graph. What it used before is kept by the submissions that use it.
    pub(crate) fn update_from(
        &self,
        py: Python<'_>,
        graph: &Py<Holder>,
        update: impl FnOnce() -> PyResult<()>,
    ) -> PyResult<()> {
        let Updates { begun, running } = &self.updates;
        let number = begun.fetch_add(1, Ordering::Relaxed) + 1;
        let is_first = running.fetch_add(1, Ordering::Relaxed) == 0;
        // Again if it is kept already: another thread may drop that one meanwhile.
        self.inner().push(graph.clone_ref(py));
        let updated = update();
        running.fetch_sub(1, Ordering::Relaxed);
        let is_alone = is_first && begun.load(Ordering::Relaxed) == number;
        let mut all = self.inner();
        let dropped: Vec<_> = match &updated {
            Ok(()) if is_alone && self.nested.load(Ordering::Relaxed) == 0 => {
                let old = std::mem::replace(&mut *all, vec![self.graph.clone_ref(py)]);
                if !graph.is(&self.graph) {
                    all.push(graph.clone_ref(py));
                }
                old
            }
            // Nothing has changed, and this graph or another reference to it was added.
            Err(_) if is_alone => {
                all.iter().rposition(|held| held.is(graph)).map(|at| all.remove(at)).into_iter().collect()
            }
            // It may have the values of any of these graphs.
            _ => {
                let all: &mut Vec<_> = &mut all;
                let again: Vec<_> =
                    (0..all.len()).filter(|at| all[..*at].iter().any(|held| held.is(&all[*at]))).collect();
                again.into_iter().rev().map(|at| all.remove(at)).collect()
            }
        };
        drop(all);
        drop(dropped);
        updated
    }

    /// Lets go of buffers that an update has replaced.
    pub(crate) fn let_go(&self, py: Python<'_>) {
        self.graph.get().0.let_go(py, FEW);
    }

    /// What a submission uses now.
    fn used(&self, py: Python<'_>) -> Used {
        let holders: Vec<_> = self.inner().iter().map(|held| held.clone_ref(py)).collect();
        let mut found: Vec<_> = holders.iter().map(|holder| Arc::clone(&holder.get().0)).collect();
        // Sub-graphs may be in a circle.
        let (mut seen, mut objects) = (HashSet::new(), Vec::new());
        while let Some(held) = found.pop() {
            if !seen.insert(Arc::as_ptr(&held)) {
                continue;
            }
            let all = Arc::clone(&lock(&held.objects).all);
            if !all.is_empty() {
                objects.push(all);
            }
            found.extend(lock(&held.inner).iter().map(|inner| Arc::clone(&inner.get().0)));
        }
        Used { _holders: holders, _objects: objects }
    }

    /// Whether submissions to a queue have nothing to keep, and no graph has to keep the executable for them.
    pub(crate) fn has_nothing(&self, queue: &rust::Queue) -> bool {
        self.is_empty() && Held::of_recordings(queue).is_empty()
    }

    fn is_empty(&self) -> bool {
        // A graph that keeps what sub-graphs keep is asked no further: it may be in a circle of them.
        self.inner().iter().all(|held| held.get().0.is_empty())
    }

    /// Submits to a queue. What the executable uses is kept until the submission has ended, whether the program keeps the
    /// submission or not. If the queue records, or joins a recording, the graph keeps it.
    pub(crate) fn submit(
        &self,
        py: Python<'_>,
        queue: &rust::Queue,
        submit: impl FnOnce() -> rust::Result<rust::Submission> + Send,
    ) -> PyResult<Submission> {
        // Which of these graphs has got it is known afterwards.
        let (recordings, _nesting) = (Held::of_recordings(queue), self.nesting());
        let run = self.run(py, submit)?;
        if run.is_recorded() {
            // Also a recording that has begun meanwhile.
            recordings.iter().chain(&Held::of_recordings(queue)).for_each(|held| self.nest(py, held));
        }
        Ok(run)
    }

    fn run(
        &self,
        py: Python<'_>,
        submit: impl FnOnce() -> rust::Result<rust::Submission> + Send,
    ) -> PyResult<Submission> {
        if self.is_empty() {
            return Ok(Submission::new(call(py, submit)?));
        }
        // What an update replaced while submissions ran.
        self.let_go(py);
        let (before, running) = (self.used(py), Running::new());
        let run = Submission::new(call(py, submit)?);
        if !run.is_recorded() {
            // Another thread may have updated the executable meanwhile.
            run.ends_with(py, Kept::new([before, self.used(py)]), running)?;
        }
        Ok(run)
    }
}

/// What a submission uses: it keeps that until it has ended.
pub(crate) struct Used {
    _holders: Vec<Py<Holder>>,
    /// A graph may let go of a buffer while a submission still has it.
    _objects: Vec<Arc<Pooled>>,
}
