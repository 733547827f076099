//! Branches and loops: nodes of graphs, and calls of queues, which decide now or record such nodes.

use std::cell::{Cell, RefCell};
use std::sync::{PoisonError, RwLockReadGuard};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use rust::{BufferSlice, ControlHandle, GlobalSlice, LoopBounds, MemorySlice, QueueState, RawNode, SubmitError};

use crate::adding::options;
use crate::errors::{self, invalid, type_of, wrong_type};
use crate::executable::Executable;
use crate::gate::{self, Own, call, check};
use crate::graph::Graph;
use crate::held::{ExecutableHeld, Held, Holder};
use crate::memory::{self, Place, Scope};
use crate::node::{self, Node, SubGraph};
use crate::queue::{Pause, Queue};
use crate::task::check_function;

/// Defines the class of a branch or loop.
macro_rules! control_class {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[pyclass(frozen, extends = Node, module = "clgraph")]
        pub(crate) struct $name {
            pub(crate) of: Own<rust::$name>,
        }

        impl $name {
            fn make(py: Python<'_>, of: rust::$name, raw: RawNode, kind: &'static str) -> PyResult<Py<Self>> {
                let part = Self { of: Own::new(of) };
                Py::new(py, PyClassInitializer::from(Node::of(raw, kind)).add_subclass(part))
            }

            fn own(py: Python<'_>, of: rust::$name, kind: &'static str) -> PyResult<Py<Self>> {
                let raw = of.node().to_raw();
                Self::make(py, of, raw, kind)
            }

            /// The same branch or loop as part of a node of another graph.
            pub(crate) fn within(inner: &Bound<'_, Self>, of: rust::$name) -> PyResult<Py<Self>> {
                let raw = of.to_raw();
                Self::make(inner.py(), of, raw, inner.as_super().get().kind)
            }
        }
    };
}

control_class! {
    /// A branch, by `Graph.when` or `Graph.switch`.
    Branch
}
control_class! {
    /// A loop, by `Graph.repeat_while` or `Graph.repeat`.
    Loop
}

#[pymethods]
impl Branch {
    /// Returns a body as a SubGraph, which finds its inputs, results, branches and loops as those of this graph: 0 is `then`
    /// and 1 `otherwise`, or it is the case.
    fn body(slf: &Bound<'_, Self>, index: usize) -> PyResult<Py<SubGraph>> {
        check()?;
        let Some(body) = slf.get().of.body(index) else {
            let text =
                format!("the branch has no body {index}; one that is part of a sub-graph has its bodies in that graph");
            return Err(PyIndexError::new_err(text));
        };
        SubGraph::of(slf.py(), body, slf.as_super().get().kind)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let node = slf.as_super().get();
        format!("Branch({}, {})", node.raw.index, node.kind)
    }
}

#[pymethods]
impl Loop {
    /// The body as a SubGraph, which finds its inputs, results, branches and loops as those of this graph.
    #[getter]
    fn body(slf: &Bound<'_, Self>) -> PyResult<Py<SubGraph>> {
        check()?;
        let body = slf
            .get()
            .of
            .body()
            .ok_or_else(|| invalid("a loop that is part of a sub-graph has its body in that graph"))?;
        SubGraph::of(slf.py(), body, slf.as_super().get().kind)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let node = slf.as_super().get();
        format!("Loop({}, {})", node.raw.index, node.kind)
    }
}

/// Returns how many turns a branch or loop had.
pub(crate) fn turns(run: &rust::Submission, node: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = node.py();
    if let Ok(branch) = node.cast::<Branch>() {
        let branch = branch.get();
        return call(py, || run.turns(&*branch.of));
    }
    let Ok(of) = node.cast::<Loop>() else {
        return Err(wrong_type(format!(
            "turns are those of a clgraph.Branch or a clgraph.Loop, not {}",
            type_of(node)
        )));
    };
    let of = of.get();
    call(py, || run.turns(&*of.of))
}

/// A number in memory that decides.
enum Number {
    Buffer(BufferSlice<u32>),
    Slice(MemorySlice<u32>),
    Global(GlobalSlice<u32>),
}

/// Runs code with a number in any memory.
macro_rules! with_number {
    ($number:expr, |$name:ident| $code:expr) => {
        match $number {
            Number::Buffer($name) => $code,
            Number::Slice($name) => $code,
            Number::Global($name) => $code,
        }
    };
}

impl Number {
    fn of(place: &Place) -> rust::Result<Self> {
        Ok(match place {
            Place::Buffer(buffer) => Self::Buffer(buffer.slice(..4)?.cast()?),
            Place::Part(slice, _) => Self::Buffer(slice.slice(..4)?.cast()?),
            Place::Slice(slice) => Self::Slice(slice.slice(..4)?.cast()?),
            Place::Graph(memory) => Self::Slice(memory.slice(..4)?.cast()?),
            Place::Global(global) => Self::Global(global.slice(..4)?.cast()?),
        })
    }

    /// The first number of some memory. The memory itself is for what keeps it.
    fn find(object: &Bound<'_, PyAny>, scope: Scope<'_>, what: &str) -> PyResult<(Self, Place)> {
        let memory = memory::memory(object, scope, what)?;
        if let Some(layout) = &memory.layout {
            let dtype = layout.dtype.bind(object.py());
            let kind: String = dtype.getattr("kind")?.extract()?;
            let is_native = dtype.getattr("isnative")?.is_truthy()?;
            if layout.item != 4 || !matches!(kind.as_str(), "i" | "u") || !is_native {
                return Err(wrong_type(format!("{what} is of integers of 32 bits, int32 or uint32, not of {dtype}")));
            }
        }
        if memory.place.size() < 4 {
            let text = format!("{what} has {} bytes: it is a number of 32 bits", memory.place.size());
            return Err(invalid(text));
        }
        let number = call(object.py(), || Self::of(&memory.place))?;
        Ok((number, memory.place))
    }
}

/// The label, `after` and `replaces` of a node.
type NodeArguments<'a, 'py> = (Option<&'a str>, Option<&'a Bound<'py, PyAny>>, Option<&'a Bound<'py, PyAny>>);

/// Adds a branch or loop, or has it replace another one, and returns its handle.
macro_rules! add {
    ($graph:expr, $py:expr, $builder:expr, $with:expr, $number:expr, $bodies:expr, $class:ident($kind:expr)) => {{
        let (graph, py, (label, after, replaces)): (&Graph, Python<'_>, NodeArguments<'_, '_>) = ($graph, $py, $with);
        let bodies: Vec<&ExecutableHeld> = $bodies.into_iter().map(|body| body.get().held()).collect();
        let _nesting: Vec<_> = bodies.iter().map(|body| body.nesting()).collect();
        let builder = options!($builder, label, node::after(after)?);
        let number: Option<&Place> = $number;
        let made = match replaces {
            None => {
                let added = graph.add(py, || builder.add())?;
                if let Some(place) = number {
                    graph.note(|cache| cache.note(place));
                }
                $class::own(py, added, $kind)?
            }
            Some(old) => {
                let Ok(old) = old.cast::<$class>() else {
                    let text = concat!("it replaces a clgraph.", stringify!($class));
                    return Err(wrong_type(format!("{text}, not {}", type_of(old))));
                };
                let of = &*old.get().of;
                graph.add(py, || builder.replace(of))?;
                graph.replaced(py);
                old.clone().unbind()
            }
        };
        bodies.iter().for_each(|body| body.nest(py, graph.held().get().held()));
        Ok(made)
    }};
}

/// Adds a branch.
pub(crate) fn when(
    graph: &Graph,
    flag: &Bound<'_, PyAny>,
    then: &Bound<'_, Executable>,
    otherwise: Option<&Bound<'_, Executable>>,
    with: NodeArguments<'_, '_>,
) -> PyResult<Py<Branch>> {
    let (number, place) = Number::find(flag, graph.scope(), "a condition")?;
    let mut node = with_number!(&number, |number| graph.graph.when(number, &then.get().executable));
    if let Some(otherwise) = otherwise {
        node = node.otherwise(&otherwise.get().executable);
    }
    add!(graph, flag.py(), node, with, Some(&place), [then].into_iter().chain(otherwise), Branch("when"))
}

/// Adds a branch with several cases.
pub(crate) fn switch(
    graph: &Graph,
    index: &Bound<'_, PyAny>,
    cases: &Bound<'_, PyAny>,
    with: NodeArguments<'_, '_>,
) -> PyResult<Py<Branch>> {
    let (number, place) = Number::find(index, graph.scope(), "an index")?;
    let cases = list(cases, "clgraph.Executable", |case| {
        let wrong = || wrong_type(format!("a case is a clgraph.Executable, not {}", type_of(case)));
        Ok(case.cast::<Executable>().map_err(|_| wrong())?.clone())
    })?;
    let bodies = cases.iter().map(|case| &*case.get().executable);
    let node = with_number!(&number, |number| graph.graph.switch(number, bodies));
    add!(graph, index.py(), node, with, Some(&place), &cases, Branch("switch"))
}

/// Adds a loop that a number in memory ends.
pub(crate) fn repeat_while(
    graph: &Graph,
    flag: &Bound<'_, PyAny>,
    body: &Bound<'_, Executable>,
    (at_least_once, at_most): (bool, Option<u64>),
    with: NodeArguments<'_, '_>,
) -> PyResult<Py<Loop>> {
    let (number, place) = Number::find(flag, graph.scope(), "a condition")?;
    let mut node = with_number!(&number, |number| graph.graph.repeat_while(number, &body.get().executable));
    if at_least_once {
        node = node.at_least_once();
    }
    if let Some(turns) = at_most {
        node = node.at_most(turns);
    }
    add!(graph, flag.py(), node, with, Some(&place), [body], Loop("repeat_while"))
}

/// Adds a loop with a known number of turns.
pub(crate) fn repeat(
    graph: &Graph,
    turns: u64,
    body: &Bound<'_, Executable>,
    with: NodeArguments<'_, '_>,
) -> PyResult<Py<Loop>> {
    let node = graph.graph.repeat(turns, &body.get().executable);
    add!(graph, body.py(), node, with, None, [body], Loop("repeat"))
}

/// What is in an iterable now.
fn list<'py, T>(
    cases: &Bound<'py, PyAny>,
    what: &str,
    one: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let all =
        cases.try_iter().map_err(|_| wrong_type(format!("cases are a list of {what}, not {}", type_of(cases))))?;
    all.map(|case| one(&case?)).collect()
}

/// What a queue calls in place of bodies, or to record them.
struct Functions {
    queue: Py<Queue>,
    all: Vec<Py<PyAny>>,
    /// What the recorded bodies keep.
    held: Py<Holder>,
}

/// A call of a queue, while the interpreter's lock is given up.
struct Calling<'a> {
    functions: &'a Functions,
    pause: &'a Pause,
    /// If the queue records, keeps the recording going on, except while functions of the program run: they may add nodes
    /// to the graph.
    recording: RefCell<Option<RwLockReadGuard<'a, ()>>>,
    /// What a function has raised.
    raised: Cell<Option<PyErr>>,
}

impl Calling<'_> {
    /// Calls a function with the queue that it has to use.
    fn call(&self, queue: &rust::Queue, index: usize) -> rust::Result<()> {
        let is_recorded = self.recording.take().is_some();
        // The interpreter may be at its end: then the call ends too, and nobody sees how.
        let called = Python::try_attach(|py| self.functions.call(py, queue, index));
        if is_recorded {
            self.recording.replace(Some(self.pause.read().unwrap_or_else(PoisonError::into_inner)));
        }
        let Some(called) = called else { return Err(SubmitError::NotComplete.into()) };
        called.map_err(|error| {
            self.raised.set(Some(error));
            // It ends the call, and nobody sees it.
            SubmitError::NotComplete.into()
        })
    }
}

impl Functions {
    fn new<'a, 'py: 'a>(
        queue: &Bound<'py, Queue>,
        all: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let one = |function: &Bound<'py, PyAny>| {
            check_function(function, "what a queue calls")?;
            Ok(function.clone().unbind())
        };
        let all = all.into_iter().map(one).collect::<PyResult<_>>()?;
        Ok(Self { queue: queue.clone().unbind(), all, held: Holder::new(queue.py())? })
    }

    fn call(&self, py: Python<'_>, queue: &rust::Queue, index: usize) -> PyResult<()> {
        // The function may be one that looks for no signal.
        py.check_signals()?;
        let is_own = queue.raw() == self.queue.get().queue.raw();
        let called = if is_own {
            self.all[index].call1(py, (&self.queue,))
        } else {
            let held = self.held.get();
            held.recording_begins(queue);
            let called = Py::new(py, Queue::of(queue.clone())).and_then(|queue| self.all[index].call1(py, (queue,)));
            held.recording_ends(py);
            called
        };
        gate::end_child(py, called.as_ref().err());
        called.map(drop)
    }

    /// Has a queue decide or record: `code` is what clgraph is asked for.
    fn run<R: Send>(
        &self,
        py: Python<'_>,
        code: impl FnOnce(&rust::Queue, &Calling<'_>) -> rust::Result<Option<R>> + Send,
    ) -> PyResult<Option<R>> {
        check()?;
        let queue = self.queue.get();
        // Which of these graphs has got the bodies is known afterwards.
        let before = Held::of_recordings(&queue.queue);
        let (outcome, raised, was_recorded) = py.detach(|| {
            let pause = queue.pause();
            let recording = pause.read().unwrap_or_else(PoisonError::into_inner);
            // A queue that executes waits for commands: then nobody waits to add a node.
            let recording = (queue.queue.state() == QueueState::Recording).then_some(recording);
            let was_recorded = recording.is_some();
            let calling =
                Calling { functions: self, pause: &pause, recording: RefCell::new(recording), raised: Cell::new(None) };
            let outcome = code(&queue.queue, &calling);
            (outcome, calling.raised.take(), was_recorded)
        });
        if let Some(error) = raised {
            return Err(error);
        }
        let node = outcome.map_err(errors::of)?;
        if node.is_some() {
            // Also a recording that has begun meanwhile.
            let graphs = before.iter().chain(&Held::of_recordings(&queue.queue)).cloned().collect::<Vec<_>>();
            graphs.iter().for_each(|graph| graph.keep_all(self.held.clone_ref(py)));
        } else if was_recorded {
            // The recording has ended meanwhile, so the bodies run now. What they use is kept until they have ended.
            drop(py.detach(|| queue.queue.finish()));
        }
        Ok(node)
    }
}

/// Has a queue decide between functions, or record a branch.
pub(crate) fn queue_when(
    queue: &Bound<'_, Queue>,
    flag: &Bound<'_, PyAny>,
    then: &Bound<'_, PyAny>,
    otherwise: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Py<Branch>>> {
    let py = queue.py();
    let (number, _) = Number::find(flag, queue.get().scope(), "a condition")?;
    let functions = Functions::new(queue, [then].into_iter().chain(otherwise))?;
    let has_other = otherwise.is_some();
    let branch = functions.run(py, |queue, calling| {
        let then = |queue: &rust::Queue| calling.call(queue, 0);
        with_number!(&number, |number| if has_other {
            queue.when_else(number, then, |queue| calling.call(queue, 1))
        } else {
            queue.when(number, then)
        })
    })?;
    branch.map(|branch| Branch::own(py, branch, "when")).transpose()
}

/// Has a queue call one of several functions, or record a branch.
pub(crate) fn queue_switch(
    queue: &Bound<'_, Queue>,
    index: &Bound<'_, PyAny>,
    cases: &Bound<'_, PyAny>,
) -> PyResult<Option<Py<Branch>>> {
    let py = queue.py();
    let (number, _) = Number::find(index, queue.get().scope(), "an index")?;
    let functions = Functions::new(queue, &list(cases, "functions", |case| Ok(case.clone()))?)?;
    let count = functions.all.len();
    let branch = functions.run(py, |queue, calling| {
        with_number!(&number, |number| queue.switch(number, count, |queue, case| calling.call(queue, case)))
    })?;
    branch.map(|branch| Branch::own(py, branch, "switch")).transpose()
}

/// Has a queue call a function as long as a number is not zero, or record a loop.
pub(crate) fn queue_repeat_while(
    queue: &Bound<'_, Queue>,
    flag: &Bound<'_, PyAny>,
    function: &Bound<'_, PyAny>,
    (at_least_once, at_most): (bool, Option<u64>),
) -> PyResult<Option<Py<Loop>>> {
    let py = queue.py();
    let mut bounds = LoopBounds::new();
    if at_least_once {
        bounds = bounds.at_least_once();
    }
    if let Some(turns) = at_most {
        bounds = bounds.at_most(turns);
    }
    let (number, _) = Number::find(flag, queue.get().scope(), "a condition")?;
    let functions = Functions::new(queue, [function])?;
    let made = functions.run(py, |queue, calling| {
        with_number!(&number, |number| queue.repeat_while_with(number, bounds, |queue| calling.call(queue, 0)))
    })?;
    made.map(|made| Loop::own(py, made, "repeat_while")).transpose()
}

/// Has a queue call a function several times, or record a loop.
pub(crate) fn queue_repeat(
    queue: &Bound<'_, Queue>,
    turns: u64,
    function: &Bound<'_, PyAny>,
) -> PyResult<Option<Py<Loop>>> {
    let (py, functions) = (queue.py(), Functions::new(queue, [function])?);
    let made = functions.run(py, |queue, calling| queue.repeat(turns, |queue| calling.call(queue, 0)))?;
    made.map(|made| Loop::own(py, made, "repeat")).transpose()
}
