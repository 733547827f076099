//! Errors of parameters, and of updating executables.

use super::{BuildCause, DriverError, ErrorKind};
use crate::handles::{Node, NodeKind};

/// A parameter cannot have this value. It keeps the value that it has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The value is outside the bound of the parameter.
    #[error(
        "the value given is {given}, but the bound of the parameter is {bound}: give a value within the bound, or make \
         the parameter with a wider bound"
    )]
    OutOfBound {
        /// The value given.
        given: String,
        /// The bound.
        bound: String,
    },
    /// The parameter has no bound, so that only an unsafe call can change it.
    #[error(
        "the parameter was made without a bound, so its value cannot be checked: make it with a bound (`within`, \
         `checked` or `any`), or use the unsafe `set_unchecked`"
    )]
    Unbounded,
    /// The bytes given are not as many as the parameter has.
    #[error(
        "the parameter has {size} bytes, but {given} bytes were given: give as many bytes as the kernel's argument has"
    )]
    Size {
        /// The bytes of the parameter.
        size: usize,
        /// The bytes given.
        given: usize,
    },
    /// The buffer is smaller than what kernels use of it.
    #[error(
        "the buffer has {given} bytes, but kernels use the first {needed} bytes of the parameter: give a buffer of at \
         least {needed} bytes"
    )]
    TooSmall {
        /// The bytes that the buffer must have.
        needed: u64,
        /// The bytes that it has.
        given: u64,
    },
    /// The parameter cannot be null.
    #[error(
        "the parameter cannot be null, because kernels do not expect it: make it with `buffer_or_null` or \
         `memory_or_null` if each kernel checks for null"
    )]
    NeverNull,
    /// The image has another shape or format.
    #[error(
        "the parameter is an {expected}, but an {given} was given: give an image of the same shape and format, or \
         replace the node"
    )]
    Image {
        /// The shape and format of the parameter.
        expected: String,
        /// The shape and format of the image given.
        given: String,
    },
    /// The slice does not start where its buffer starts.
    #[error(
        "the slice starts at byte {offset} of its buffer, but a kernel argument starts at the first byte of a buffer: \
         give the whole buffer, or a `sub_buffer` of it"
    )]
    Offset {
        /// Where the slice starts, in bytes.
        offset: usize,
    },
    /// The memory or the sampler belongs to another context.
    #[error(
        "the memory or sampler given belongs to another OpenCL context than the parameter: give an object of the same \
         context"
    )]
    OtherContext,
}

impl ParameterError {
    /// Returns the sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

/// An executable was not updated. It is as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The executable was finalized without the option.
    #[error("the executable cannot be updated: finalize the graph with `Finalize::updatable`")]
    NotUpdatable,
    /// A node would use memory of the graph before it is allocated or after it is freed, when other allocations may
    /// have its bytes.
    #[error(
        "{node} would use the allocation of {alloc} {why}, and an update does not change the order of an executable: \
         finalize the graph again"
    )]
    GraphMemory {
        /// The node.
        node: Node,
        /// The node that allocates the memory.
        alloc: Node,
        /// `before it is allocated` or `after it is freed`.
        why: &'static str,
    },
    /// The graph of the executable was dropped, and with it what a sub-graph, a branch or a loop runs.
    #[error("{node} runs an executable, and the graph that keeps it was dropped: keep the graph to update this node")]
    GraphGone {
        /// The node.
        node: Node,
    },
    /// An event of a running command was given where a node is needed.
    #[error(
        "entry {index} of the list is an event of a running command, and does not stand for a node: give nodes, or \
         events of recorded commands"
    )]
    NotANode {
        /// Which entry of the list, from 0.
        index: usize,
    },
    /// A node belongs to another graph, or was added after the executable was finalized.
    #[error("{node} is not in the executable: {why}")]
    NotInExecutable {
        /// The node.
        node: Node,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// A node allocates or frees memory of the graph, which no update changes.
    #[error(
        "{node} ({kind}) cannot be updated, because no update changes allocations of a graph: update the nodes that \
         use the memory"
    )]
    Fixed {
        /// The node.
        node: Node,
        /// Its kind.
        kind: NodeKind,
    },
    /// A node cannot run with its new values.
    #[error("{node}: {cause}")]
    Node {
        /// The node.
        node: Node,
        /// What is wrong.
        cause: BuildCause,
    },
    /// Two nodes would use the same memory, at least one of them would write to it, and no edge orders them.
    #[error(
        "{first} ({first_use}) and {second} ({second_use}) would use the same memory, but no edge orders them: {} before you \
         finalize, or finalize with `Finalize::allow_conflicts`",
        super::run::edge(first, second)
    )]
    Conflict {
        /// The node that is enqueued first.
        first: Node,
        /// Its kind, and its use of the memory.
        first_use: String,
        /// The other node.
        second: Node,
        /// Its kind, and its use of the memory.
        second_use: String,
    },
    /// The graph given does not match the executable.
    #[error(
        "the graph does not match the executable: {difference}; update from a graph of the same structure, or finalize \
         the graph given"
    )]
    Differs {
        /// The first difference. Compared are, in this order: context, device, number of nodes, edges, and for each
        /// node its kind, kernel and sizes.
        difference: String,
    },
    /// The function of a native command returned an error or panicked while it recorded. All changes were undone.
    #[error("{node} (native command) could not be recorded: {text}")]
    NativeCommand {
        /// The native command.
        node: Node,
        /// The error of its function.
        text: String,
    },
    /// The driver refused the update. All changes were undone.
    #[error("{node} could not be updated{}: {source}", refused(*argument))]
    Driver {
        /// The node.
        node: Node,
        /// The kernel argument that the driver refused, from 0, if it was an argument.
        argument: Option<usize>,
        /// The error of the driver.
        source: DriverError,
    },
}

impl UpdateError {
    /// Returns the sort of this error.
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
    argument.map_or_else(String::new, |index| format!(", because the driver refused argument {index}"))
}
