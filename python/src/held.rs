//! What graphs and executables keep of Python: functions of nodes, and buffers of pools, whose memory may not go back.
//!
//! Python's garbage collector sees all of it, because a function often holds the graph or the executable that keeps it.
//! So only Python objects own what is kept: a graph and its executables own [`Holder`]s, and clgraph's own tables have
//! functions weakly. A submission that runs owns holders where the collector does not look: it takes that for a use from
//! outside, and collects nothing that may still be called.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::gate::{Kept, call};
use crate::raised::Running;
use crate::submission::Submission;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a graph keeps. All of it is changed with the interpreter's lock, so nobody waits for its locks.
#[derive(Default)]
pub(crate) struct Held {
    /// Buffers of pools, by their addresses: each object once, however often it is used.
    objects: Mutex<HashMap<usize, Py<PyAny>>>,
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
    pub(crate) fn keep(&self, object: &Bound<'_, PyAny>) {
        lock(&self.objects).entry(object.as_ptr().addr()).or_insert_with(|| object.clone().unbind());
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

    fn keep_all(&self, of: Py<Holder>) {
        lock(&self.inner).push(of);
    }

    fn is_empty(&self) -> bool {
        lock(&self.objects).is_empty() && lock(&self.functions).is_empty() && lock(&self.inner).is_empty()
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

    /// No queue records into the graph any more.
    pub(crate) fn recording_ends(&self) {
        let own = Arc::downgrade(&self.0);
        lock(&RECORDINGS).retain(|(_, held)| held.strong_count() > 0 && !held.ptr_eq(&own));
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
        objects.values().try_for_each(|object| visit.call(object))?;
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
    /// Whether it is part of a graph, which may have any of its values.
    is_nested: AtomicBool,
}

impl ExecutableHeld {
    pub(crate) fn new(py: Python<'_>, graph: Py<Holder>) -> PyResult<Self> {
        let all = Holder::new(py)?;
        all.get().0.keep_all(graph.clone_ref(py));
        Ok(Self { graph, all, is_nested: AtomicBool::new(false) })
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.graph)?;
        visit.call(&self.all)
    }

    fn inner(&self) -> MutexGuard<'_, Vec<Py<Holder>>> {
        lock(&self.all.get().0.inner)
    }

    /// Has a graph keep it that the executable becomes a part of. That may be its own graph, which does not keep itself.
    pub(crate) fn nest(&self, py: Python<'_>, into: &Arc<Held>) {
        self.is_nested.store(true, Ordering::Relaxed);
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
        self.all.get().0.keep_all(graph.clone_ref(py));
        let updated = update();
        if !self.is_nested.load(Ordering::Relaxed) {
            let mut all = self.inner();
            // In a failure nothing changed, and the graph was the last in the list, or another thread has added one.
            let dropped: Vec<_> = match &updated {
                Ok(()) => all.extract_if(.., |held| !held.is(&self.graph) && !held.is(graph)).collect(),
                Err(_) => all.iter().rposition(|held| held.is(graph)).map(|at| all.remove(at)).into_iter().collect(),
            };
            drop(all);
            drop(dropped);
        }
        updated
    }

    /// Submits. What the executable uses is kept until the submission has ended, whether the program keeps the
    /// submission or not.
    pub(crate) fn submit(
        &self,
        py: Python<'_>,
        submit: impl FnOnce() -> rust::Result<rust::Submission> + Send,
    ) -> PyResult<Submission> {
        let list = || self.inner().iter().map(|held| held.clone_ref(py)).collect::<Vec<_>>();
        // A graph that keeps what sub-graphs keep is asked no further: it may be in a circle of them.
        if self.inner().iter().all(|held| held.get().0.is_empty()) {
            return Ok(Submission::new(call(py, submit)?));
        }
        let (mut held, running) = (list(), Running::new());
        let run = call(py, submit)?;
        // Another thread may have updated the executable meanwhile.
        held.extend(list());
        let (held, run) = (Kept::new(held), Submission::new(run));
        run.ends_with(py, held, running)?;
        Ok(run)
    }
}
