//! Errors of building a graph: which node, edge or command, and what is wrong with it.

use super::{DriverError, ErrorKind, GlobalError, GroupError, RectError, WorkGroupError};
use crate::handles::Node;
use crate::images::ImageFormat;

/// A node, an edge or a command cannot be added, or the graph cannot answer a question about a node.
///
/// The graph is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {cause}")]
#[non_exhaustive]
pub struct BuildError {
    /// What the call was about, for example ``kernel `blur` (to be node 7)``.
    pub subject: String,
    /// What is wrong with it.
    pub cause: Box<BuildCause>,
}

impl BuildError {
    pub(crate) fn new(subject: impl Into<String>, cause: impl Into<BuildCause>) -> Self {
        Self { subject: subject.into(), cause: Box::new(cause.into()) }
    }

    /// Returns the sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.cause.kind()
    }
}

impl BuildCause {
    /// Returns the sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotSupported { .. } => ErrorKind::FeatureNotSupported,
            Self::HostMemory { .. } => ErrorKind::OutOfMemory,
            Self::Memory(error) => error.kind(),
            Self::CopyKernel(error) => error.kind(),
            Self::Global(error) => error.kind(),
            Self::Driver(error) => error.kind(),
            _ => ErrorKind::Invalid,
        }
    }
}

/// What is wrong with a node, an edge, a command or a question. Sizes and offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildCause {
    /// The number of arguments is not the number of the kernel's parameters.
    #[error(
        "the number of arguments is {given}, but the kernel has {expected} parameters{}: give one argument for each \
         parameter, in the order of the parameters",
        in_brackets(signature.as_deref())
    )]
    ArgumentCount {
        /// The number of the kernel's parameters.
        expected: u32,
        /// The number of arguments given.
        given: usize,
        /// The kernel with its parameters, as in `scale(float* data, float by)`, if the program has argument
        /// information.
        signature: Option<String>,
    },
    /// A kernel node has no such argument.
    #[error("there is no argument {index}: the kernel has {count} arguments, which count from 0")]
    ArgumentIndex {
        /// Which argument was named.
        index: usize,
        /// The number of the kernel's arguments.
        count: usize,
    },
    /// An argument is of another kind than the kernel's parameter.
    #[error("argument {index} `{name}` is {expected}, but {given} was given: give what the kernel declares")]
    ArgumentKind {
        /// Which argument, from 0.
        index: usize,
        /// The name of the parameter.
        name: String,
        /// What the kernel declares, with an article, for example ``a buffer (`float*`)``.
        expected: String,
        /// What was given, with an article, for example `a sampler`.
        given: String,
    },
    /// An image argument declares another use than its parameter does.
    #[error(
        "argument {index} `{name}` is {qualifier} in the kernel, but the node declares it as {declared}: give the image \
         with `read` for read_only, and with `write` for write_only"
    )]
    ImageAccess {
        /// Which argument, from 0.
        index: usize,
        /// The name of the parameter.
        name: String,
        /// The qualifier in the kernel: `read_only` or `write_only`.
        qualifier: &'static str,
        /// The use that was declared: `read`, `written` or `read and written`.
        declared: &'static str,
    },
    /// A kernel takes an image twice, or an image and the buffer that it is made of, and writes to one of the two.
    #[error(
        "argument {image} is an image of the same memory as argument {other}, and one of the two is written: OpenCL \
         leaves the result undefined; use two kernels, or other memory"
    )]
    ImageShared {
        /// The argument that is an image, from 0.
        image: usize,
        /// The other argument.
        other: usize,
    },
    /// The memory of a condition is too small for a number of 32 bits.
    #[error("the condition has no number: give memory of at least one element")]
    ConditionEmpty,
    /// A condition does not start at a multiple of four bytes.
    #[error(
        "the condition starts at byte {offset} of its memory: a number of 32 bits has to start at a multiple of 4 bytes"
    )]
    ConditionMisaligned {
        /// Where it starts, in bytes from the start of the memory.
        offset: usize,
    },
    /// A body of a branch or loop has an external event, which would happen in each turn.
    #[error(
        "body {body} has an external event, which can happen once only, but a body may run any number of times: put the \
         event before or after the branch or loop"
    )]
    EventInBody {
        /// Which body, from 0.
        body: usize,
    },
    /// A part of an image is not inside the image.
    #[error(
        "{what}: the region {region:?} at origin {origin:?} is not inside an {shape}: in each dimension, origin plus \
         region must be at most the size of the image"
    )]
    ImageArea {
        /// Which image.
        what: &'static str,
        /// Where the region starts, in pixels, rows and slices or layers.
        origin: [usize; 3],
        /// The size of the region, in pixels, rows and slices or layers.
        region: [usize; 3],
        /// The image.
        shape: String,
    },
    /// A copy is between images of different formats.
    #[error(
        "the source has format {src}, but the destination has format {dst}, and a copy does not convert pixels: use \
         images of the same format, or convert the pixels in a kernel"
    )]
    ImageFormats {
        /// The format of the source.
        src: ImageFormat,
        /// The format of the destination.
        dst: ImageFormat,
    },
    /// A colour has another type of number than the image.
    #[error(
        "the colour has {given}, but an image of format {format} has {has}: give a `Color` of the type that the image \
         has"
    )]
    ImageColor {
        /// The format of the image.
        format: ImageFormat,
        /// The type of the numbers in the image.
        has: &'static str,
        /// The type of the numbers given.
        given: &'static str,
    },
    /// A by-value argument has another size than the kernel's parameter.
    #[error(
        "argument {index} `{name}` is `{type_name}` of {expected} bytes, but the value given has {given} bytes: give a \
         value of that size"
    )]
    ArgumentSize {
        /// Which argument, from 0.
        index: usize,
        /// The name of the parameter.
        name: String,
        /// The OpenCL C type of the parameter.
        type_name: String,
        /// The size of the parameter in bytes.
        expected: usize,
        /// The size of the value given in bytes.
        given: usize,
    },
    /// A floating-point number was given for an integer parameter, or an integer for a floating-point parameter.
    #[error(
        "argument {index} `{name}` is `{type_name}`, but {given} was given: give {expected}, or the bytes of the value \
         as an array"
    )]
    ArgumentType {
        /// Which argument, from 0.
        index: usize,
        /// The name of the parameter.
        name: String,
        /// The OpenCL C type of the parameter.
        type_name: String,
        /// The Rust type given, with an article: ``a `u32` ``.
        given: String,
        /// A Rust type that fits, with an article: ``an `f32` ``.
        expected: &'static str,
    },
    /// A by-value argument has no bytes, or the values together have more bytes than the device takes for one kernel.
    #[error(
        "argument {index} has {given} bytes, after {before} bytes of earlier values: each value must have at least 1 \
         byte, and all values together at most {limit} bytes (CL_DEVICE_MAX_PARAMETER_SIZE); put large values into a \
         buffer"
    )]
    ArgumentBytes {
        /// Which argument, from 0.
        index: usize,
        /// The size of the argument in bytes.
        given: usize,
        /// The bytes of the values before it.
        before: usize,
        /// The device's limit in bytes.
        limit: usize,
    },
    /// A kernel node has no range.
    #[error("the kernel node has no range: give the global work size with `range`")]
    NoRange,
    /// A range has more than three dimensions.
    #[error("the range has {given} dimensions, but OpenCL allows at most 3: give a range of 1, 2 or 3 dimensions")]
    RangeDimensions {
        /// The number of dimensions given.
        given: u32,
    },
    /// An offset, a work-group size or a new range has another number of dimensions than the range.
    #[error("the {what} has {given} dimensions, but {of} has {range}: give both the same number of dimensions")]
    Dimensions {
        /// `work-group size`, `global offset` or `new range`.
        what: &'static str,
        /// The number of dimensions given.
        given: u32,
        /// `the range` or `the node's range`.
        of: &'static str,
        /// The number of dimensions of that range.
        range: u32,
    },
    /// The device cannot count the work-items of a range, or represent their global ids.
    #[error(
        "the range {range:?} at offset {offset:?} is too large, because its global ids and its number of work-items \
         must fit the device's size_t: make the range smaller, or launch it in parts with offsets"
    )]
    RangeTooLarge {
        /// Work-items in each dimension.
        range: Vec<usize>,
        /// The first global id in each dimension.
        offset: Vec<usize>,
    },
    /// What is wrong with a work-group size.
    #[error(transparent)]
    WorkGroup(#[from] WorkGroupError),
    /// A local memory argument has no bytes.
    #[error("argument {index} asks for no bytes of local memory: ask for at least one element")]
    NoLocalMemory {
        /// Which argument, from 0.
        index: usize,
    },
    /// A kernel needs more local memory than the device has.
    #[error(
        "the kernel needs {needed} bytes of local memory (it declares {own} of these itself), but the device has \
         {limit}: ask for less, for example with smaller work-groups"
    )]
    LocalMemory {
        /// The bytes of local memory in all.
        needed: u64,
        /// The bytes that the kernel itself declares.
        own: u64,
        /// The device's limit in bytes.
        limit: u64,
    },
    /// An object belongs to another context than the graph or the queue.
    #[error("{what} belongs to another OpenCL context than the graph or the queue: use an object of the same context")]
    OtherContext {
        /// Which object.
        what: String,
    },
    /// An executable is for another device than the graph.
    #[error(
        "{what} is for device `{device}`, but the graph is for device `{graph_device}`: finalize the sub-graph for the \
         device of the graph"
    )]
    OtherDevice {
        /// Which object.
        what: &'static str,
        /// The device of the executable.
        device: String,
        /// The device of the graph.
        graph_device: String,
    },
    /// A range is outside the buffer.
    #[error(
        "{what} bytes {offset}..{end} are outside the buffer, which has {len} bytes: use a range inside the buffer, or \
         a larger buffer"
    )]
    OutOfBounds {
        /// `source`, `destination` or the like.
        what: &'static str,
        /// The first byte.
        offset: u64,
        /// One past the last byte.
        end: u64,
        /// The size of the buffer in bytes.
        len: u64,
    },
    /// The source and the destination of a copy share bytes or pixels.
    #[error(
        "source {src} and destination {dst} of one buffer or image overlap: copy between parts that do not overlap"
    )]
    Overlap {
        /// The source: bytes of the whole buffer, or pixels.
        src: String,
        /// The destination: bytes of the whole buffer, or pixels.
        dst: String,
    },
    /// The two sides of a transfer have different sizes.
    #[error("{left} has {left_bytes} bytes and {right} has {right_bytes} bytes: give both the same size")]
    SizeMismatch {
        /// The one side.
        left: &'static str,
        /// Its size in bytes.
        left_bytes: u64,
        /// The other side.
        right: &'static str,
        /// Its size in bytes.
        right_bytes: u64,
    },
    /// A rectangular copy has no region.
    #[error("the copy has no region: give the size of the rectangle with `region`")]
    NoRegion,
    /// What is wrong with a rectangle.
    #[error(transparent)]
    Rect(#[from] RectError),
    /// The pattern of a fill has no bytes.
    #[error("the fill pattern has no bytes: give at least one element, of a type that has a size")]
    EmptyPattern,
    /// The range of a fill is not a whole number of patterns.
    #[error(
        "the range has {len} bytes, which is not a multiple of the {pattern} bytes of the pattern: fill a range that \
         is a multiple"
    )]
    PatternRange {
        /// The size of the range in bytes.
        len: u64,
        /// The size of the pattern in bytes.
        pattern: u64,
    },
    /// A buffer or an image was created with a flag that forbids this use.
    #[error("{what} was created with {flag}, which forbids {access}: create it without that flag")]
    AccessForbidden {
        /// Which buffer or image.
        what: String,
        /// The OpenCL flag.
        flag: &'static str,
        /// What the node would do.
        access: &'static str,
    },
    /// A host task maps memory without having declared this use when the task was added.
    #[error(
        "the host task maps memory, but its node does not declare that the task {access} all of this memory, so no \
         edge orders the task after other users of the memory: declare the memory with `{by}` when you add the task"
    )]
    Undeclared {
        /// What the map would do: `reads`, `writes` or `reads and writes`.
        access: &'static str,
        /// The method that declares it.
        by: &'static str,
    },
    /// A node belongs to another graph, or to a graph that was dropped.
    #[error("{node} belongs to another graph, or to a graph that was dropped: use a node of this graph")]
    OtherGraph {
        /// The node given.
        node: Node,
    },
    /// An event of a running command was given where a node is needed.
    #[error(
        "the event belongs to a running command, and does not stand for a node of a graph: wait for the event when you \
         submit the executable, or give an event of a recorded command"
    )]
    NotANode,
    /// A queue records into the graph.
    #[error("a queue records into the graph: end the recording before you add to the graph explicitly")]
    Recording,
    /// An edge leads from a node to itself.
    #[error("an edge from {node} to itself would close a cycle: leave this edge out")]
    SameNode {
        /// The node.
        node: Node,
    },
    /// An edge would close a cycle.
    #[error(
        "the edge would close a cycle: {}; leave out this edge, or another edge of the cycle",
        super::show_path(nodes)
    )]
    Cycle {
        /// The nodes of the cycle, in order. The new edge leads from the last node to the first.
        nodes: Vec<Node>,
    },
    /// A parameter does not match the argument that it was given for.
    #[error(
        "argument {index} is {argument}, but it was registered with a parameter that is {parameter}: make the \
         parameter from what the argument is"
    )]
    Parameter {
        /// The argument, from 0.
        index: usize,
        /// What the parameter is, with an article.
        parameter: String,
        /// What the argument is, with an article.
        argument: String,
    },
    /// A launch on a queue that executes has a parameter.
    #[error(
        "argument {index} is a parameter, which only nodes of graphs can have: record the queue, or give a value \
         instead of the parameter"
    )]
    ParameterExecuted {
        /// The argument, from 0.
        index: usize,
    },
    /// The node is of another kind than the call needs: for example, it has no range, is no host write, or belongs to a
    /// command group.
    #[error("{node} is {is}, so {given} is not possible: {why}")]
    OtherKind {
        /// The node.
        node: Node,
        /// What the node is, with an article.
        is: String,
        /// What was given or asked for.
        given: String,
        /// Why this is not possible, or what to do instead.
        why: &'static str,
    },
    /// What is wrong with a command group.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A node cannot be replaced by what was given.
    #[error("{node} cannot be replaced by this: {why}")]
    Replace {
        /// The node.
        node: Node,
        /// Why not.
        why: String,
    },
    /// [`elementwise`](crate::KernelNode::elementwise) does not fit the launch.
    #[error("the promise `elementwise` of argument {index} does not fit the launch: {why}")]
    Elementwise {
        /// Which argument, from 0.
        index: usize,
        /// Why not.
        why: String,
    },
    /// A range is larger than the bound of the kernel node.
    #[error(
        "the range {range:?} at offset {offset:?} exceeds the bound {bound:?} of the kernel node: give a smaller \
         range, or add the node with a larger `range_up_to`"
    )]
    RangeBound {
        /// Work-items in each dimension.
        range: Vec<usize>,
        /// The first global id in each dimension.
        offset: Vec<usize>,
        /// The bound given to `range_up_to`: for each dimension, the largest sum of offset and range.
        bound: Vec<usize>,
    },
    /// A kernel node has no bound for its range, so that its range cannot change.
    #[error(
        "the kernel node was added without a bound, so its range cannot change: add the node with `range_up_to`, or \
         put another launch in its place by `replace`"
    )]
    RangeFixed,
    /// The graph has as many nodes, edges, arguments or bytes of values as clgraph can count.
    #[error("the graph is full: it can have at most {limit} nodes, edges, arguments and bytes of values each")]
    Full {
        /// The limit of each.
        limit: u64,
    },
    /// The device, the driver or clgraph does not support this.
    #[error("{what} is not supported: {why}")]
    NotSupported {
        /// What is not supported.
        what: String,
        /// Who does not support it, and what to do instead.
        why: String,
    },
    /// The host has no memory for a result.
    #[error("the host has no memory for the {bytes} bytes of the result: read it in smaller parts")]
    HostMemory {
        /// The size of the result in bytes.
        bytes: usize,
    },
    /// A profile belongs to another executable.
    #[error("the profile is from a submission of another executable: give a profile of this executable")]
    OtherExecutable,
    /// The graph has more nodes than a drawing can show.
    #[error(
        "the graph has {nodes} nodes, but at most {most} can be drawn: write a `.dot` file, or draw parts of it as \
         graphs of their own"
    )]
    TooManyToDraw {
        /// The number of nodes. For an executable, this counts the nodes of its sub-graphs.
        nodes: usize,
        /// The largest number of nodes that can be drawn.
        most: usize,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {why}", path.display())]
    File {
        /// The path given.
        path: std::path::PathBuf,
        /// Why not.
        why: String,
    },
    /// Memory that a graph owns is used outside that graph.
    #[error("{what} belongs to a graph and is used {by}: use it only in nodes of the graph that owns it")]
    GraphMemory {
        /// What the memory is in the command.
        what: String,
        /// Where it is used.
        by: &'static str,
    },
    /// clgraph could not build its own kernel for a copy that OpenCL has no command for.
    #[error(
        "OpenCL has no command for this copy, and clgraph's kernel for the copy could not be built on this device: {0}"
    )]
    CopyKernel(super::ProgramError),
    /// What is wrong with a device global.
    #[error(transparent)]
    Global(#[from] GlobalError),
    /// What is wrong with memory, or with a part of it.
    #[error(transparent)]
    Memory(#[from] super::MemoryError),
    /// A call to the driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// A space and the text in brackets, or nothing.
fn in_brackets(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(" (`{text}`)"))
}
