//! One argument of a kernel node becomes another one.

use crate::cl::objects::kernel::Kernel;
use crate::command::{Arg, Command};
use crate::error::{BuildCause, BuildError, Result};
use crate::graph::edit::change::other_kind;
use crate::graph::nodes::launch::Launch;
use crate::graph::{After, Graph};
use crate::handles::Node;

impl Graph {
    /// Returns the kernel of a kernel node.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # let zero = Program::from_source(&queue, "kernel void zero(global int *a) { a[get_global_id(0)] = 0; }")?.kernel("zero")?;
    /// # let (graph, numbers) = (Graph::new(&queue)?, Buffer::<i32>::new(&queue, 4)?);
    /// // SAFETY: a work-item touches its own element.
    /// let node = unsafe { graph.kernel(&zero).write(&numbers).range(4).add()? };
    /// assert_eq!(graph.kernel_of(node)?.name(), "zero");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`BuildCause::OtherKind`] for a node that is not a kernel; [`BuildCause::OtherGraph`].
    pub fn kernel_of(&self, node: impl Into<Node>) -> Result<Kernel> {
        let (node, state) = (node.into(), self.lock());
        let fail = |cause| BuildError::new(format!("kernel of {node}"), cause);
        let id = self.resolve(&state, node).map_err(fail)?;
        match state.ir.command(id) {
            Command::Kernel { kernel, .. } => Ok(state.kernels[kernel.index()].clone()),
            op => Err(fail(other_kind(node, op, "its kernel", "only kernel nodes have one")).into()),
        }
    }

    /// Gives a kernel node the argument at `from` of a launch. Memory is used as the launch says, or, with `as_before`, as the memory
    /// before.
    pub(crate) fn put_arg(
        &self,
        node: Node,
        index: usize,
        (given, from, as_before): (Launch, usize, bool),
        after: &After,
    ) -> Result<()> {
        self.replace_by(node, after, format!("argument {index} of {node}"), |state, id| {
            let Some(mut launch) = Launch::of_node(&state.tables, self.device(), id) else {
                let why = "only kernel nodes have arguments";
                return Err(other_kind(node, state.ir.command(id), "another argument", why));
            };
            let count = launch.args.len();
            if index >= count {
                return Err(BuildCause::ArgumentIndex { index, count });
            }
            if given.args.len() != from + 1 {
                let why = format!("{} arguments were given: give the one that is to be replaced", given.args.len());
                return Err(BuildCause::Replace { node, why });
            }
            launch.change(index, given, as_before);
            Ok(launch)
        })
    }
}

impl Launch {
    /// Gives the launch the last argument of another one.
    fn change(&mut self, index: usize, given: Self, as_before: bool) {
        let Some(from) = given.args.len().checked_sub(1) else { return };
        let before = match &self.args[index] {
            Arg::Memory((_, mode)) | Arg::Null(mode) => Some(*mode),
            _ => None,
        };
        self.args[index] = match given.args.into_iter().next_back() {
            Some(Arg::Value((range, number))) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&given.bytes[range]);
                Arg::Value((start..self.bytes.len(), number))
            }
            Some(Arg::Memory((region, mode))) => Arg::Memory((region, before.filter(|_| as_before).unwrap_or(mode))),
            Some(Arg::Null(mode)) => Arg::Null(before.unwrap_or(mode)),
            Some(other) => other,
            None => return,
        };
        self.parameter_bound.retain(|bound| bound.arg != index);
        let bound = given.parameter_bound.into_iter().filter(|bound| bound.arg == from);
        self.parameter_bound.extend(bound.map(|bound| bound.at(index)));
        self.parameter_bound.sort_by_key(|bound| bound.arg);
        if let Some((_, bytes)) = given.elementwise.iter().find(|(of, _)| *of == from) {
            self.elementwise.retain(|(of, _)| *of != index);
            self.elementwise.push((index, *bytes));
        }
        self.misplaced = given.misplaced;
    }
}
