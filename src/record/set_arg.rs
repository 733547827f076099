//! One argument of a kernel node becomes another one.

use super::execute_kernel::KernelArg;
use crate::command::Arg;
#[allow(unused_imports)] // The documentation names it.
use crate::error::BuildCause;
use crate::error::Result;
use crate::graph::nodes::launch::Launch;
use crate::graph::{After, Graph, LaunchRef};
use crate::handles::Node;

impl Graph {
    /// Gives a kernel node another argument, found by its index from 0. The other arguments, the range and all edges stay.
    /// Executables get the change when they are updated.
    ///
    /// It is for nodes whose launch the program has not written itself: those of a [`capture`](Self::capture). An argument keeps
    /// its kind, and a value its size, as in [`KernelNode::replace`](crate::KernelNode::replace); memory is used as the memory
    /// before. An argument that was bound to a parameter is bound to it no more.
    ///
    /// # Errors
    /// [`BuildCause::OtherKind`] for a node that is not a kernel, and for one of a command group;
    /// [`BuildCause::ArgumentIndex`]; those of [`KernelNode::replace`](crate::KernelNode::replace);
    /// [`BuildCause::OtherGraph`]. After an error nothing has changed.
    ///
    /// # Safety
    /// As [`KernelNode::add`](crate::KernelNode::add), for the launch with the new argument.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let source = "kernel void add(global int *a, int number) { a[get_global_id(0)] += number; }";
    /// let add = Program::from_source(&queue, source)?.kernel("add")?;
    /// let numbers = Buffer::from_slice(&queue, &[1_i32, 2])?;
    /// let graph = Graph::new(&queue)?;
    /// // SAFETY: a work-item touches its own element, and there are two. A number may be any.
    /// let node = unsafe { graph.kernel(&add).read_write(&numbers).arg(1_i32).range(2).add()? };
    /// let executable = graph.finalize(Finalize::new().updatable())?;
    /// // SAFETY: as above.
    /// unsafe { graph.set_arg(node, 1, &10_i32)? };
    /// executable.update(&node)?;
    /// executable.submit(&queue)?.wait()?;
    /// let mut back = [0; 2];
    /// queue.enqueue_read_buffer(&numbers, 0, &mut back, &[])?;
    /// assert_eq!(back, [11, 12]);
    /// # Ok(()) }
    /// ```
    #[doc(alias("clSetKernelArg", "cudaGraphKernelNodeSetParams"))]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn set_arg<A: KernelArg + ?Sized>(&self, node: impl Into<Node>, index: usize, arg: &A) -> Result<()> {
        let node = node.into();
        let mut launch = Launch::new(&self.kernel_of(node)?);
        // What memory is used for by default depends on the place.
        launch.args.resize(index.min(MOST), Arg::Local(1));
        arg.give(&mut LaunchRef::new(&mut launch));
        launch.resolve();
        self.put_arg(node, index, (launch, index.min(MOST), true), &After::default())
    }
}

/// More arguments than kernels have.
const MOST: usize = 4096;
