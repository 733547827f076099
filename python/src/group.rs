//! Command groups: several launches, or several host tasks, of which one is active.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{self, invalid, type_of, wrong_type};
use crate::gate::{Own, call};
use crate::graph::Graph;
use crate::launch::{Given, Launch};
use crate::task::TaskFunction;
use crate::uses::{self, with_uses};

/// A launch of a kernel, for a CommandGroup. It takes what `Graph.kernel` takes, and is in no graph yet.
#[pyclass(frozen, module = "clgraph", name = "Launch")]
pub(crate) struct Described {
    kernel: Py<PyAny>,
    global: Py<PyAny>,
    args: Py<PyTuple>,
    local: Option<Py<PyAny>>,
    offset: Option<Py<PyAny>>,
    up_to: Option<Py<PyAny>>,
    prints: bool,
    globals: Option<Py<PyAny>>,
    elementwise: Option<Py<PyAny>>,
}

#[pymethods]
impl Described {
    #[new]
    #[pyo3(signature = (kernel, global_size, *args, local_size=None, offset=None, up_to=None, prints=false,
                        globals=None, elementwise=None))]
    fn new(
        kernel: Py<PyAny>,
        global_size: Py<PyAny>,
        args: Py<PyTuple>,
        local_size: Option<Py<PyAny>>,
        offset: Option<Py<PyAny>>,
        up_to: Option<Py<PyAny>>,
        prints: bool,
        globals: Option<Py<PyAny>>,
        elementwise: Option<Py<PyAny>>,
    ) -> Self {
        Self { kernel, global: global_size, args, local: local_size, offset, up_to, prints, globals, elementwise }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let name =
            self.kernel.bind(py).getattr("function_name").map_or_else(|_| String::new(), |name| name.to_string());
        format!("Launch({name}, {}, {} arguments)", self.global, self.args.bind(py).len())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.kernel)?;
        visit.call(&self.global)?;
        visit.call(&self.args)?;
        let others = [&self.local, &self.offset, &self.up_to, &self.globals, &self.elementwise];
        others.into_iter().try_for_each(|object| visit.call(object))
    }
}

impl Described {
    /// Reads the launch for a graph.
    fn read<'py>(&self, py: Python<'py>, graph: &Graph) -> PyResult<Launch<'py>> {
        let option = |object: &Option<Py<PyAny>>| object.as_ref().map(|object| object.bind(py).clone());
        let (local, offset, up_to) = (option(&self.local), option(&self.offset), option(&self.up_to));
        let (globals, elementwise) = (option(&self.globals), option(&self.elementwise));
        let given = Given {
            kernel: self.kernel.bind(py),
            global: self.global.bind(py),
            args: self.args.bind(py),
            local: local.as_ref(),
            offset: offset.as_ref(),
            up_to: up_to.as_ref(),
            prints: self.prints,
            globals: globals.as_ref(),
            elementwise: elementwise.as_ref(),
        };
        Launch::read(&given, graph.scope())
    }
}

/// Several launches, or several host tasks, of which one is active: at first the first.
///
/// `CommandGroup(graph, [Launch(kernel, 64, In(a), Out(b)), ...])` chooses between launches, which use the same memory
/// in the same ways. `CommandGroup(graph, [function, ...], reads=a, writes=b)` chooses between host tasks, which all use
/// this memory. `Graph.command_group` adds nodes of the group, which do what is active. `group.active = 1` makes
/// another one active in all of them; executables get it when they are updated.
///
/// The program promises for each launch what it promises for `Graph.kernel`.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct CommandGroup {
    pub(crate) group: Own<rust::CommandGroup>,
    pub(crate) kind: &'static str,
    len: usize,
}

fn no_members(object: &Bound<'_, PyAny>) -> PyErr {
    wrong_type(format!(
        "a command group is a list of launches, or a list of functions for host tasks, not {}",
        type_of(object)
    ))
}

#[pymethods]
impl CommandGroup {
    #[new]
    #[pyo3(signature = (graph, members, reads=None, writes=None))]
    fn new(
        graph: &Bound<'_, Graph>,
        members: &Bound<'_, PyAny>,
        reads: Option<&Bound<'_, PyAny>>,
        writes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, graph) = (graph.py(), graph.get());
        let members: Vec<_> = members.try_iter().map_err(|_| no_members(members))?.collect::<PyResult<_>>()?;
        let described: Vec<_> = members.iter().filter_map(|member| member.cast::<Described>().ok()).collect();
        if described.is_empty() && !members.is_empty() {
            let uses = uses::uses(reads, writes, graph.scope(), "a host task")?;
            let (mut tasks, mut functions) = (Vec::new(), Vec::new());
            for member in &members {
                if !member.is_callable() {
                    return Err(no_members(member));
                }
                let (run, function) = TaskFunction::new(member)?;
                functions.push(function);
                tasks.push(with_uses!(graph.graph.host_task(move |context| run.run(context)), uses));
            }
            let group = call(py, || graph.graph.host_task_group(tasks))?;
            functions.iter().try_for_each(|function| graph.keep(py, function))?;
            return Ok(Self { group: Own::new(group), kind: "host task", len: members.len() });
        }
        if described.len() < members.len() {
            return Err(wrong_type("a command group has launches or host tasks, and not both"));
        }
        if reads.is_some() || writes.is_some() {
            return Err(wrong_type("a launch says by In, Out or InOut of its arguments which memory it uses"));
        }
        let mut launches = Vec::new();
        for (index, one) in described.iter().enumerate() {
            let read = one.get().read(py, graph);
            launches.push(read.map_err(|error| errors::within(py, error, &format!("launch {index}")))?);
        }
        let launches: Vec<_> = launches.iter().map(|launch| launch.node(&graph.graph)).collect();
        // SAFETY: **kernel**: the program promises it for each launch, as with pyopencl.
        let group = call(py, || unsafe { graph.graph.command_group(launches) })?;
        Ok(Self { group: Own::new(group), kind: "kernel", len: members.len() })
    }

    /// Which launch or host task is active: its index, from 0.
    #[getter]
    fn active(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || self.group.active_index())
    }

    #[setter]
    fn set_active(&self, index: &Bound<'_, PyAny>) -> PyResult<()> {
        let wrong = |error: PyErr| match error.is_instance_of::<pyo3::exceptions::PyOverflowError>(index.py()) {
            true => invalid(format!("{index} is no index of a command group: the first launch or host task is 0")),
            false => error,
        };
        let number: usize = index.extract().map_err(wrong)?;
        call(index.py(), || self.group.set_active_index(number))
    }

    fn __len__(&self) -> usize {
        self.len
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let active = py.detach(|| self.group.active_index());
        let active = active.map_or_else(|_| "its graph is gone".to_owned(), |index| format!("active {index}"));
        format!(
            "CommandGroup({} {}, {active})",
            self.len,
            if self.kind == "kernel" { "launches" } else { "host tasks" }
        )
    }
}
