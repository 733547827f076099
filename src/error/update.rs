//! Errors of parameters, and of updating executables.

use super::{BuildCause, DriverError, ErrorKind};
use crate::graph::{Node, NodeKind};

/// A value that a parameter cannot have. It keeps the one that it has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// Outside the bound that the parameter was made with.
    #[error(
        "{given} is not within the parameter's bound, {bound}: give a value that is, or make the parameter with a wider bound"
    )]
    OutOfBound {
        /// The value given.
        given: String,
        /// The bound.
        bound: String,
    },
    /// No bound was given, so no safe call can change it.
    #[error(
        "the parameter was made without a bound: make it with one (`within`, `checked`, `any`), or use `set_unchecked`"
    )]
    Unbounded,
    /// By-value parameters keep their size.
    #[error(
        "the parameter has {size} bytes, and what was given has {given}: its size is that of the kernel's argument"
    )]
    Size {
        /// Bytes that it has.
        size: usize,
        /// Bytes given.
        given: usize,
    },
    /// The buffer does not hold what kernels use of it.
    #[error(
        "kernels use the first {needed} bytes of the parameter's buffer, and the buffer has {given}: give one of at least that size"
    )]
    TooSmall {
        /// Bytes that it has to have.
        needed: u64,
        /// Bytes that it has.
        given: u64,
    },
    /// Kernels are not prepared for a null pointer.
    #[error(
        "the parameter was made to be memory always: make it with `buffer_or_null` or `memory_or_null`, for kernels that look whether it is null"
    )]
    NeverNull,
    /// An image of another shape or format.
    #[error("the parameter is an {expected}, and an {given} was given")]
    Image {
        /// What the parameter is.
        expected: String,
        /// What was given.
        given: String,
    },
    /// A range of a buffer that does not start where the buffer does.
    #[error(
        "the slice starts at byte {offset} of its buffer, and as an argument a buffer starts at its first byte: give the \
         buffer, or a `sub_buffer` of it"
    )]
    Offset {
        /// Where it starts, in bytes.
        offset: usize,
    },
    /// Memory or a sampler of another context.
    #[error(
        "what was given belongs to another OpenCL context than what the parameter was before: give something of that context"
    )]
    OtherContext,
}

impl ParameterError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

/// An update that was not made. The executable is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The executable was finalized without the option.
    #[error("the executable cannot be updated: finalize the graph with `Finalize::updatable`")]
    NotUpdatable,
    /// A node would use memory of the graph's own at a time when others may have its bytes.
    #[error(
        "{node} would use the allocation of {alloc} {why}: the executable keeps the order that it was finalized with; finalize \
         the graph again"
    )]
    GraphMemory {
        /// The node.
        node: Node,
        /// The node that allocates it.
        alloc: Node,
        /// `before it is there` or `after it is freed`.
        why: &'static str,
    },
    /// The graph that the executable was made of is gone, and with it the executable that a node was.
    #[error("the graph of the executable is gone, and {node} is a sub-graph of it: keep the graph to update it")]
    GraphGone {
        /// The node.
        node: Node,
    },
    /// An event of work that runs, where a node is asked for.
    #[error(
        "entry {index} of the list is an event of work that runs, and stands for no node: give nodes, or events of recorded work"
    )]
    NotANode {
        /// Which entry, from 0.
        index: usize,
    },
    /// A node that is not in the executable: of another graph, or added after it was finalized.
    #[error("{node} is not in the executable: {why}")]
    NotInExecutable {
        /// The node.
        node: Node,
        /// Why not.
        why: &'static str,
    },
    /// A node that no update changes.
    #[error("{node} ({kind}) is about the graph's own memory, which no update changes: update the nodes that use it")]
    Fixed {
        /// The node.
        node: Node,
        /// What it is.
        kind: NodeKind,
    },
    /// What a node is now cannot run.
    #[error("{node}: {cause}")]
    Node {
        /// The node.
        node: Node,
        /// What is wrong.
        cause: BuildCause,
    },
    /// Two nodes that use the same memory, one of them writing, and that no edges order.
    #[error(
        "{first} ({first_use}) and {second} ({second_use}) would use the same memory, and no edge orders them: add one by \
         `Graph::add_edge` before finalizing, or finalize with `Finalize::allow_conflicts`"
    )]
    Conflict {
        /// The one that is enqueued first.
        first: Node,
        /// What it is, and what it would do to the memory.
        first_use: String,
        /// The other.
        second: Node,
        /// What that is, and what it would do.
        second_use: String,
    },
    /// A graph that does not match: the first difference.
    #[error(
        "the graph does not match the executable: {difference}; update from a graph that was built alike, or finalize this one"
    )]
    Differs {
        /// The first difference, in the order of context, device, number of nodes, edges, and node by node kind, kernel and
        /// sizes.
        difference: String,
    },
    /// The function of a native command could not record, or panicked. What was changed before was changed back.
    #[error("{node} (native command) could not be recorded: {text}")]
    NativeCommand {
        /// The native command.
        node: Node,
        /// What its function said.
        text: String,
    },
    /// The driver refused. What was changed before was changed back.
    #[error("{node} could not be updated{}: {source}", refused(*argument))]
    Driver {
        /// The node.
        node: Node,
        /// The kernel's argument that was refused, from 0, if it was one.
        argument: Option<usize>,
        /// What the driver said.
        source: DriverError,
    },
}

impl UpdateError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Node { cause, .. } => cause.kind(),
            Self::Driver { source, .. } => source.kind(),
            Self::NativeCommand { .. } => ErrorKind::Failed,
            _ => ErrorKind::Invalid,
        }
    }
}

fn refused(argument: Option<usize>) -> String {
    argument.map_or_else(String::new, |index| format!(", argument {index} was refused"))
}
