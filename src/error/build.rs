//! Errors of building: which node, and what is wrong with it.

use super::{DriverError, ErrorKind, GlobalError};
use crate::ImageFormat;
use crate::graph::Node;

/// A node or an edge that cannot be added, or a question about a node that the graph cannot answer.
///
/// The graph is as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {cause}")]
#[non_exhaustive]
pub struct BuildError {
    /// What was being added, for example ``kernel `blur` (to be node 7)``.
    pub subject: String,
    /// What is wrong with it.
    pub cause: Box<BuildCause>,
}

impl BuildError {
    pub(crate) fn new(subject: impl Into<String>, cause: impl Into<BuildCause>) -> Self {
        Self { subject: subject.into(), cause: Box::new(cause.into()) }
    }

    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.cause.kind()
    }
}

impl BuildCause {
    /// What sort of error this is.
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

/// What is wrong with a node, an edge or a question. Sizes and offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildCause {
    /// More or fewer arguments than the kernel has.
    #[error("arguments given: {given}, expected: {expected}{names}; give one for each parameter, in their order")]
    ArgumentCount {
        /// Arguments of the kernel.
        expected: u32,
        /// Arguments given.
        given: usize,
        /// The kernel's parameters, where the program tells, ready to be read.
        names: String,
    },
    /// An argument of another kind than the kernel's parameter.
    #[error("argument {index}{name} is {expected}, and {given} was given: give what the kernel declares")]
    ArgumentKind {
        /// Which argument, from 0.
        index: usize,
        /// Its name, where the program tells, ready to be read.
        name: String,
        /// What the kernel declares.
        expected: String,
        /// What was given.
        given: &'static str,
    },
    /// An image that is to be used otherwise than its parameter says.
    #[error(
        "argument {index}{name} is {qualifier}, and the image is given as {declared}: give it as the kernel declares it"
    )]
    ImageAccess {
        /// Which argument, from 0.
        index: usize,
        /// Its name, where the program tells, ready to be read.
        name: String,
        /// What the kernel declares.
        qualifier: &'static str,
        /// What was said.
        declared: &'static str,
    },
    /// A kernel that has an image twice, or with the buffer that it is made of, and writes to one.
    #[error(
        "argument {image} is an image of the same memory as argument {other}, and one of them is written: what a kernel then \
         finds is undefined; use two kernels, or other memory"
    )]
    ImageShared {
        /// The image, from 0.
        image: usize,
        /// The other argument.
        other: usize,
    },
    /// A part that is not inside an image.
    #[error(
        "{what}: region {region:?} from {origin:?} on is not inside an {shape}: origin and region together must not exceed its sizes"
    )]
    ImageArea {
        /// Which image.
        what: &'static str,
        /// Where it starts.
        origin: [usize; 3],
        /// How much it is.
        region: [usize; 3],
        /// The image.
        shape: String,
    },
    /// A copy between images of different formats.
    #[error(
        "the source has format {src}, and the destination {dst}: a copy takes pixels as they are; use images of one format, or a \
         kernel"
    )]
    ImageFormats {
        /// That of the source.
        src: ImageFormat,
        /// That of the destination.
        dst: ImageFormat,
    },
    /// A colour of other numbers than an image has.
    #[error("a colour of {given} for an image of format {format}, which has {has}: give a `Color` of those")]
    ImageColor {
        /// The image's format.
        format: ImageFormat,
        /// The numbers that it has.
        has: &'static str,
        /// The numbers given.
        given: &'static str,
    },
    /// A by-value argument of another size than the kernel's parameter.
    #[error(
        "argument {index}{name} is {type_name} of {expected} bytes, and what was given has {given}: give a value of that size"
    )]
    ArgumentSize {
        /// Which argument, from 0.
        index: usize,
        /// Its name, where the program tells, ready to be read.
        name: String,
        /// The OpenCL C type.
        type_name: String,
        /// Bytes that the kernel takes.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// A floating-point number where the kernel's parameter is a whole number, or the other way round.
    #[error(
        "argument {index}{name} is `{type_name}`, and {given} was given: give {expected}, or its bytes as an array"
    )]
    ArgumentType {
        /// Which argument, from 0.
        index: usize,
        /// Its name, ready to be read.
        name: String,
        /// The OpenCL C type.
        type_name: String,
        /// The Rust type given, ready to be read.
        given: String,
        /// The Rust type of such a number, ready to be read.
        expected: &'static str,
    },
    /// A by-value argument of no bytes, or more bytes of values than the device takes for one kernel.
    #[error(
        "argument {index} has {given} bytes, after {before} of earlier values: a value has at least 1, and all together at most \
         {limit} (CL_DEVICE_MAX_PARAMETER_SIZE); put large ones in a buffer"
    )]
    ArgumentBytes {
        /// Which argument, from 0.
        index: usize,
        /// Bytes given.
        given: usize,
        /// Bytes of the values before it.
        before: usize,
        /// The device's limit in bytes.
        limit: usize,
    },
    /// No range was given to a kernel node.
    #[error("it has no range: give the global work size with `range`")]
    NoRange,
    /// An offset or a work-group size with another number of dimensions than the range.
    #[error("the {what} has {given} dimensions, and {of} has {range}: give as many")]
    Dimensions {
        /// `work-group size`, `global offset` or `new range`.
        what: &'static str,
        /// Dimensions given.
        given: u32,
        /// `the range` or `the node's range`.
        of: &'static str,
        /// Dimensions of that.
        range: u32,
    },
    /// A work-group size that the kernel or the device forbids, or a range that the device cannot count.
    #[error("{0}")]
    WorkGroup(String),
    /// An argument of no local memory.
    #[error("argument {index} asks for no bytes of local memory: ask for at least one element")]
    NoLocalMemory {
        /// Which argument, from 0.
        index: usize,
    },
    /// More local memory than the device has.
    #[error(
        "it needs {needed} bytes of local memory ({own} of its own), and the device has {limit}: ask for less, as smaller work-groups may do"
    )]
    LocalMemory {
        /// Bytes in all.
        needed: u64,
        /// Bytes that the kernel itself declares.
        own: u64,
        /// The device's limit in bytes.
        limit: u64,
    },
    /// An object of another context than the graph's or the queue's.
    #[error(
        "{what} belongs to another OpenCL context than the graph or queue that it is given to: make it in that context"
    )]
    OtherContext {
        /// Which object.
        what: String,
    },
    /// An executable of another device than the graph's.
    #[error("{what} is for device `{device}`, and the graph for `{graph_device}`: finalize it for that one")]
    OtherDevice {
        /// Which object.
        what: &'static str,
        /// Its device.
        device: String,
        /// The graph's.
        graph_device: String,
    },
    /// A range outside a buffer.
    #[error(
        "{what} bytes {offset}..{end} are outside the buffer, which has {len}: name a part of it, or use a larger one"
    )]
    OutOfBounds {
        /// `source` or `destination` or the like.
        what: &'static str,
        /// First byte.
        offset: u64,
        /// One past the last byte.
        end: u64,
        /// Bytes of the buffer.
        len: u64,
    },
    /// A copy whose source and destination share bytes.
    #[error("source {src} and destination {dst} of one buffer or image overlap: a copy needs them apart")]
    Overlap {
        /// The source: bytes of the underlying buffer, or pixels.
        src: String,
        /// The destination.
        dst: String,
    },
    /// Two sides of a transfer with different sizes.
    #[error("{left} has {left_bytes} bytes and {right} has {right_bytes}: they must be equal")]
    SizeMismatch {
        /// One side.
        left: &'static str,
        /// Its bytes.
        left_bytes: u64,
        /// The other side.
        right: &'static str,
        /// Its bytes.
        right_bytes: u64,
    },
    /// No region was given to a rectangular copy.
    #[error("it has no region: say how much to copy with `region`")]
    NoRegion,
    /// A rectangle that does not fit its pitches.
    #[error("{what}: {why}")]
    Rect {
        /// `source` or `destination`.
        what: &'static str,
        /// What does not fit.
        why: String,
    },
    /// A fill whose pattern has no bytes.
    #[error("a fill pattern of no bytes: give it at least one element, of a type that has a size")]
    EmptyPattern,
    /// A fill whose range is no whole number of patterns.
    #[error("the range has {len} bytes, which is no multiple of the pattern's {pattern} bytes: fill less, or more")]
    PatternRange {
        /// Bytes of the range.
        len: u64,
        /// Bytes of the pattern.
        pattern: u64,
    },
    /// An access that the buffer was created without.
    #[error("{what} was created with {flag}, which forbids {access}: create it without that flag")]
    AccessForbidden {
        /// Which buffer or image.
        what: String,
        /// The OpenCL flag.
        flag: &'static str,
        /// What the node would do.
        access: &'static str,
    },
    /// A host task that maps memory of which its node does not say that it uses it so.
    #[error(
        "the node of the task does not say that it {access} this memory, or not all of it, so nothing orders it against other nodes: \
         say it by `{by}` when the task is added, of the buffer or image that is mapped"
    )]
    Undeclared {
        /// What the map would do.
        access: &'static str,
        /// The method that says so.
        by: &'static str,
    },
    /// A node of another graph, or of one that is gone.
    #[error("{node} belongs to another graph, or to one that is gone: use a node of this graph")]
    OtherGraph {
        /// The node given.
        node: Node,
    },
    /// An event of work that runs, where a node belongs.
    #[error("an event of work that runs is no node: wait for it when the executable is submitted")]
    NotANode,
    /// A queue records into the graph.
    #[error("a queue records into the graph: end the recording before adding to it explicitly")]
    Recording,
    /// An edge from a node to itself.
    #[error("an edge from {node} to itself would close a cycle: leave it out")]
    SameNode {
        /// The node given twice.
        node: Node,
    },
    /// An edge that would close a cycle.
    #[error("the edge would close a cycle: {}; leave it, or one of those, out", super::show_path(nodes))]
    Cycle {
        /// The nodes on the cycle, in order; the new edge leads from the last to the first.
        nodes: Vec<Node>,
    },
    /// A parameter registered with an argument that it does not fit.
    #[error(
        "argument {index} is registered with a parameter that is {parameter}, and is {argument}: make a parameter of that"
    )]
    Parameter {
        /// The argument.
        index: usize,
        /// What the parameter is.
        parameter: String,
        /// What the argument is.
        argument: String,
    },
    /// A parameter on a queue that executes.
    #[error(
        "argument {index} is a parameter, which only nodes of graphs can have: record the queue, or give its value"
    )]
    ParameterExecuted {
        /// The argument.
        index: usize,
    },
    /// A node of another kind than the call needs: it cannot become what was given, has no range, is no host write or host read,
    /// or follows a command group.
    #[error("{node} is {is}, so {given} is not possible: {why}")]
    OtherKind {
        /// The node.
        node: Node,
        /// What it is.
        is: String,
        /// What was given or asked for.
        given: String,
        /// Why not.
        why: &'static str,
    },
    /// A command group that cannot be made or used.
    #[error("{why}")]
    Group {
        /// What is wrong.
        why: String,
    },
    /// What was given cannot be put in the place of a node.
    #[error("it does not fit there: {why}")]
    Replace {
        /// The node.
        node: Node,
        /// What does not fit.
        why: String,
    },
    /// A range beyond the bound that the promise of the kernel node covers.
    #[error("the range {range:?} from offset {offset:?} is beyond the node's bound, {bound}")]
    RangeBound {
        /// Work-items by dimension.
        range: Vec<usize>,
        /// Where ids start.
        offset: Vec<usize>,
        /// The bound, and how to get another.
        bound: String,
    },
    /// More nodes, arguments or bytes than a graph can count.
    #[error(
        "the graph is full: it holds at most {limit} nodes, as many edges, as many arguments, and as many bytes of values"
    )]
    Full {
        /// The limit.
        limit: u64,
    },
    /// Something that this device, or clgraph, does not have.
    #[error("{what} is not supported: {why}")]
    NotSupported {
        /// The feature.
        what: String,
        /// Where it is missing, and what to do instead.
        why: String,
    },
    /// No memory on the host for what is to be read.
    #[error("the host has no memory for the {bytes} bytes to be read: read them in parts")]
    HostMemory {
        /// Bytes of the result.
        bytes: usize,
    },
    /// Times of another executable.
    #[error("the profile is of a submission of another executable: give one of this executable's")]
    OtherExecutable,
    /// A graph with so many nodes that nobody could look at the drawing.
    #[error(
        "it has {nodes} nodes, and drawings of more than {most} are of no use: write `.dot`, or draw parts as graphs of their own"
    )]
    TooManyToDraw {
        /// Nodes of it, those of sub-graphs too where it was finalized.
        nodes: usize,
        /// As many as can be drawn.
        most: usize,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: {why}", path.display())]
    File {
        /// The path given.
        path: std::path::PathBuf,
        /// Why not.
        why: String,
    },
    /// Memory of a graph's own, somewhere else.
    #[error("{what} belongs to a graph and is used {by}: it is there only for nodes of its own graph")]
    GraphMemory {
        /// What it is in the command.
        what: String,
        /// Where it is used.
        by: &'static str,
    },
    /// The kernel that copies where OpenCL has no command could not be built.
    #[error("OpenCL has no command for this copy, and the kernel that does it instead could not be built: {0}")]
    CopyKernel(super::ProgramError),
    /// A device global.
    #[error(transparent)]
    Global(#[from] GlobalError),
    /// A part of a buffer could not be named.
    #[error(transparent)]
    Memory(#[from] super::MemoryError),
    /// The driver refused a query.
    #[error(transparent)]
    Driver(#[from] DriverError),
}
