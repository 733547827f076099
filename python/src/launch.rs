//! Launches of kernels, for graphs and for queues.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};
use rust::{ExecuteKernel, Extent, Graph, Kernel, KernelNode, NdRange};

use crate::arguments::{self, Argument, Globals};
use crate::errors::{invalid, type_of, wrong_type};
use crate::interop;
use crate::memory::{Cache, Scope};

/// A launch as Python gives it.
pub(crate) struct Launch<'py> {
    kernel: Kernel,
    arguments: Vec<Argument<'py>>,
    global: Sizes,
    local: Option<Sizes>,
    offset: Option<Sizes>,
    up_to: Option<Sizes>,
    prints: bool,
    globals: Option<Globals>,
    /// By argument, how many bytes belong to each work-item.
    elementwise: Vec<(usize, usize)>,
}

/// What a launch is read from.
pub(crate) struct Given<'a, 'py> {
    pub(crate) kernel: &'a Bound<'py, PyAny>,
    pub(crate) global: &'a Bound<'py, PyAny>,
    pub(crate) args: &'a Bound<'py, PyTuple>,
    pub(crate) local: Option<&'a Bound<'py, PyAny>>,
    pub(crate) offset: Option<&'a Bound<'py, PyAny>>,
    pub(crate) up_to: Option<&'a Bound<'py, PyAny>>,
    pub(crate) prints: bool,
    pub(crate) globals: Option<&'a Bound<'py, PyAny>>,
    pub(crate) elementwise: Option<&'a Bound<'py, PyAny>>,
}

/// One to three sizes.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    sizes: [usize; 3],
    dims: usize,
}

impl Sizes {
    pub(crate) fn read(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        if let Ok(one) = object.extract::<usize>() {
            return Ok(Self { sizes: [one, 1, 1], dims: 1 });
        }
        let wrong = || {
            let text = format!("`{what}` is a number from 0 on, or a tuple of one to three of them, not {object}");
            // A number is too small or too large, if it is a whole one.
            let is_float = object.extract::<f64>().is_ok() && !is_whole(object);
            if is_float { wrong_type(text) } else { invalid(text) }
        };
        if is_whole(object) {
            return Err(wrong());
        }
        if object.try_iter().is_err() {
            return Err(wrong_type(format!("`{what}` is a number or a tuple of numbers, not {}", type_of(object))));
        }
        let (mut sizes, mut dims) = ([1; 3], 0);
        for size in object.try_iter()? {
            let size = size?.extract::<usize>().map_err(|_| wrong())?;
            *sizes.get_mut(dims).ok_or_else(wrong)? = size;
            dims += 1;
        }
        if dims == 0 { Err(wrong()) } else { Ok(Self { sizes, dims }) }
    }

    fn option(object: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Option<Self>> {
        object.filter(|object| !object.is_none()).map(|object| Self::read(object, what)).transpose()
    }

    pub(crate) fn extent(self) -> Extent {
        let [x, y, z] = self.sizes;
        match self.dims {
            1 => x.into(),
            2 => [x, y].into(),
            _ => [x, y, z].into(),
        }
    }

    fn list(&self) -> &[usize] {
        &self.sizes[..self.dims]
    }
}

/// Whether an object is a whole number of any size.
fn is_whole(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyInt>() || object.extract::<i64>().is_ok()
}

impl<'py> Launch<'py> {
    pub(crate) fn read(given: &Given<'_, 'py>, scope: Scope<'_>) -> PyResult<Self> {
        Ok(Self {
            kernel: interop::kernel(scope.context, given.kernel)?,
            arguments: arguments::read(given.kernel, given.args, scope)?,
            global: Sizes::read(given.global, "global_size")?,
            local: Sizes::option(given.local, "local_size")?,
            offset: Sizes::option(given.offset, "offset")?,
            up_to: Sizes::option(given.up_to, "up_to")?,
            prints: given.prints,
            globals: arguments::globals(given.globals)?,
            elementwise: elementwise(given.elementwise)?,
        })
    }

    /// The launch as a node to be added to a graph.
    pub(crate) fn node<'g>(&self, graph: &'g Graph) -> KernelNode<'g> {
        let mut node = graph.kernel(&self.kernel).range(self.global.extent());
        if let Some(local) = self.local {
            node = node.work_group(local.extent());
        }
        if let Some(offset) = self.offset {
            node = node.offset(offset.extent());
        }
        if let Some(bound) = self.up_to {
            node = node.range_up_to(bound.extent());
        }
        if self.prints {
            node = node.prints();
        }
        if let Some(globals) = &self.globals {
            node = globals.give_node(node);
        }
        let node = self.elementwise.iter().fold(node, |node, (argument, bytes)| node.elementwise(*argument, *bytes));
        self.arguments.iter().fold(node, |node, argument| argument.give_node(node))
    }

    /// Notes what a node of the launch uses.
    pub(crate) fn note(&self, cache: &mut Cache) {
        self.arguments.iter().for_each(|argument| note(argument, cache));
    }

    /// The launch as a command of a queue.
    pub(crate) fn enqueue(&self, waits: &[rust::Event]) -> ExecuteKernel<'_> {
        let mut launch = ExecuteKernel::new(&self.kernel);
        launch.set_global_work_sizes(self.global.list());
        if let Some(local) = &self.local {
            launch.set_local_work_sizes(local.list());
        }
        if let Some(offset) = &self.offset {
            launch.set_global_work_offsets(offset.list());
        }
        if let Some(bound) = &self.up_to {
            launch.set_global_work_size_bound(bound.list());
        }
        if self.prints {
            launch.set_prints();
        }
        if let Some(globals) = &self.globals {
            globals.give_launch(&mut launch);
        }
        for (argument, bytes) in &self.elementwise {
            launch.set_elementwise(*argument, *bytes);
        }
        self.arguments.iter().for_each(|argument| argument.give_launch(&mut launch));
        waits.iter().for_each(|event| {
            launch.set_wait_event(event);
        });
        launch
    }
}

/// Notes what a node with an argument uses.
pub(crate) fn note(argument: &Argument<'_>, cache: &mut Cache) {
    match argument {
        Argument::Memory(place, _) => cache.note(place),
        Argument::Image(image, _) => cache.note_image(image),
        _ => {}
    }
}

/// Reads which bytes of memory belong to each work-item.
fn elementwise(object: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(usize, usize)>> {
    let Some(object) = object else { return Ok(Vec::new()) };
    let wrong = |object: &Bound<'_, PyAny>| {
        let what = "`elementwise` gives numbers of bytes to numbers of arguments";
        if is_whole(object) {
            invalid(format!("{what}, not {object}"))
        } else {
            wrong_type(format!("{what}, not {}", type_of(object)))
        }
    };
    let dict =
        object.cast::<PyDict>().map_err(|_| wrong_type(format!("`elementwise` is a dict, not {}", type_of(object))))?;
    let number = |object: Bound<'_, PyAny>| object.extract::<usize>().map_err(|_| wrong(&object));
    dict.iter().map(|(argument, bytes)| Ok((number(argument)?, number(bytes)?))).collect()
}

/// Another range for a kernel node.
pub(crate) fn range(
    global: &Bound<'_, PyAny>,
    local: Option<&Bound<'_, PyAny>>,
    offset: Option<&Bound<'_, PyAny>>,
) -> PyResult<NdRange> {
    let mut range = NdRange::new(Sizes::read(global, "global_size")?.extent());
    if let Some(local) = Sizes::option(local, "local_size")? {
        range = range.work_group(local.extent());
    }
    if let Some(offset) = Sizes::option(offset, "offset")? {
        range = range.offset(offset.extent());
    }
    Ok(range)
}
