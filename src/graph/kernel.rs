//! Kernel nodes: arguments, ranges, and everything that can be checked about them before a driver sees them.

use bytemuck::Pod;
use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};

use super::request::{Request, Target};
use super::tables::Writer;
use super::transfer::forbid;
use super::{After, Graph, Node, after_methods};
use crate::caps::Caps;
use crate::cl::buffer::{AsRegion, Region};
use crate::cl::context::InContext;
use crate::cl::kernel::{DeviceFacts, Kernel, Param, Space};
use crate::error::{BuildCause, Result};
use crate::ir::{Access, Arg, Grid, Mode, NodeId, Op, Warning};

impl Graph {
    /// Starts a kernel node.
    ///
    /// Arguments are given in the order of the kernel's parameters, each by the method that says what it is. How a
    /// buffer is used decides which nodes wait for which, so say `read` where a kernel only reads.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let source = "kernel void scale(global const float *in, global float *out, float by) {
    ///     out[get_global_id(0)] = in[get_global_id(0)] * by;
    /// }";
    /// let scale = Program::from_source(&queue, source)?.kernel("scale")?;
    /// let (a, b) = (Buffer::<f32>::new(&queue, 256)?, Buffer::<f32>::new(&queue, 256)?);
    /// let graph = Graph::new(&queue)?;
    /// // SAFETY: a work-item touches its own element of each buffer, and there are as many as elements.
    /// unsafe { graph.kernel(&scale).read(&a).write(&b).arg(0.5_f32).range(256).work_group(64).add()? };
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clEnqueueNDRangeKernel")]
    pub fn kernel(&self, kernel: &Kernel) -> KernelNode<'_> {
        KernelNode { graph: self, after: After::default(), launch: Launch::new(kernel) }
    }
}

/// A kernel node to be added. See [`Graph::kernel`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct KernelNode<'g> {
    graph: &'g Graph,
    after: After,
    launch: Launch,
}

/// A kernel with its arguments and its range.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) args: Vec<Given>,
    /// The by-value arguments, one behind the other.
    pub(crate) bytes: Vec<u8>,
    pub(crate) range: Option<Extent>,
    pub(crate) offset: Option<Extent>,
    pub(crate) work_group: Option<Extent>,
    pub(crate) prints: bool,
}

impl Launch {
    pub(crate) fn new(kernel: &Kernel) -> Self {
        Self {
            kernel: kernel.clone(),
            args: Vec::with_capacity(kernel.num_args() as usize),
            bytes: Vec::new(),
            range: None,
            offset: None,
            work_group: None,
            prints: false,
        }
    }

    /// Gives the next argument, a buffer: read or written where it can be nothing else, by its flags or because its
    /// parameter points to constant memory; otherwise read and written.
    pub(crate) fn buffer(&mut self, region: Region) {
        let flags = region.mem.flags();
        if flags & CL_MEM_WRITE_ONLY != 0 {
            return self.args.push(Given::Buffer(region, Mode::Write));
        }
        let reads = flags & CL_MEM_READ_ONLY != 0
            || self.kernel.params().and_then(|params| params.get(self.args.len())).is_some_and(|param| param.is_const);
        self.args.push(Given::Buffer(region, if reads { Mode::Read } else { Mode::ReadWrite }));
    }

    /// Forgets all but the kernel.
    pub(crate) fn clear(&mut self) {
        self.args.clear();
        self.bytes.clear();
        (self.range, self.offset, self.work_group, self.prints) = (None, None, None, false);
    }

    /// Gives the next argument, a value.
    pub(crate) fn value(&mut self, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.args.push(Given::Value(start..self.bytes.len()));
    }
}

/// An argument as it was given.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Buffer(Region, Mode),
    Null,
    Local(usize),
    /// A range of the builder's bytes.
    Value(std::ops::Range<usize>),
}

impl Given {
    fn what(&self) -> &'static str {
        match self {
            Self::Buffer(..) => "a buffer",
            Self::Null => "a null buffer",
            Self::Local(_) => "a size of local memory",
            Self::Value(_) => "a value",
        }
    }
}

/// One, two or three sizes: `n`, `[x, y]` or `[x, y, z]` converts into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    dims: u32,
    sizes: [usize; 3],
}

impl Extent {
    /// One with these sizes. More than three, or none, are found when the range is checked.
    pub(crate) fn of(sizes: &[usize]) -> Self {
        sizes
            .iter()
            .fold(None, |extent, size| Some(Self::and(extent, *size)))
            .unwrap_or(Self { dims: 0, sizes: [1; 3] })
    }

    /// One with a dimension more.
    pub(crate) fn and(extent: Option<Self>, size: usize) -> Self {
        let mut extent = extent.unwrap_or(Self { dims: 0, sizes: [1; 3] });
        if let Some(place) = extent.sizes.get_mut(extent.dims as usize) {
            *place = size;
        }
        extent.dims = extent.dims.saturating_add(1);
        extent
    }
}

impl From<usize> for Extent {
    fn from(x: usize) -> Self {
        Self { dims: 1, sizes: [x, 1, 1] }
    }
}

impl From<[usize; 1]> for Extent {
    fn from([x]: [usize; 1]) -> Self {
        x.into()
    }
}

impl From<[usize; 2]> for Extent {
    fn from([x, y]: [usize; 2]) -> Self {
        Self { dims: 2, sizes: [x, y, 1] }
    }
}

impl From<[usize; 3]> for Extent {
    fn from(sizes: [usize; 3]) -> Self {
        Self { dims: 3, sizes }
    }
}

impl KernelNode<'_> {
    after_methods!();

    /// Gives a buffer that the kernel only reads. A slice says which part; the argument is the whole buffer.
    pub fn read<T>(self, buffer: &impl AsRegion<T>) -> Self {
        self.given(Given::Buffer(buffer.region(), Mode::Read))
    }

    /// Gives a buffer that the kernel writes without reading what was in it.
    pub fn write<T>(self, buffer: &impl AsRegion<T>) -> Self {
        self.given(Given::Buffer(buffer.region(), Mode::Write))
    }

    /// Gives a buffer that the kernel reads and writes, or of which it is not known how it is used.
    pub fn read_write<T>(self, buffer: &impl AsRegion<T>) -> Self {
        self.given(Given::Buffer(buffer.region(), Mode::ReadWrite))
    }

    /// Gives a null pointer where a buffer belongs.
    pub fn null(self) -> Self {
        self.given(Given::Null)
    }

    /// Gives local memory for `len` elements of type `T` a work-group.
    pub fn local<T>(self, len: usize) -> Self {
        self.given(Given::Local(len.saturating_mul(size_of::<T>())))
    }

    /// Gives a value: a scalar, an array for a vector, or a `#[repr(C)]` struct that derives `bytemuck::Pod`. A vector of
    /// three elements has the size of four in OpenCL C: give `[f32; 4]` for a `float3`.
    pub fn arg<T: Pod>(self, value: T) -> Self {
        self.bytes(bytemuck::bytes_of(&value))
    }

    /// Gives a value as raw bytes.
    pub fn bytes(mut self, value: &[u8]) -> Self {
        self.launch.value(value);
        self
    }

    fn given(mut self, arg: Given) -> Self {
        self.launch.args.push(arg);
        self
    }

    /// The range: how many work-items, by dimension. A range with a zero in it is valid and runs nothing.
    #[doc(alias = "global_work_size")]
    pub fn range(mut self, range: impl Into<Extent>) -> Self {
        self.launch.range = Some(range.into());
        self
    }

    /// Where global ids start, by dimension. Zero if not given.
    #[doc(alias = "global_work_offset")]
    pub fn offset(mut self, offset: impl Into<Extent>) -> Self {
        self.launch.offset = Some(offset.into());
        self
    }

    /// How many work-items make a work-group, by dimension. The driver chooses if not given, or the kernel's
    /// `reqd_work_group_size` holds.
    #[doc(alias = "local_work_size")]
    pub fn work_group(mut self, size: impl Into<Extent>) -> Self {
        self.launch.work_group = Some(size.into());
        self
    }

    /// Says that the kernel calls `printf`. OpenCL cannot tell, and some devices let no recorded kernel print: there the
    /// node is replayed.
    pub fn prints(mut self) -> Self {
        self.launch.prints = true;
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ArgumentCount`]; [`BuildCause::ArgumentKind`] and [`BuildCause::ArgumentSize`] where the program
    /// tells its parameters; [`BuildCause::ArgumentBytes`], [`BuildCause::LocalMemory`],
    /// [`BuildCause::NoLocalMemory`]; [`BuildCause::NoRange`],
    /// [`BuildCause::Dimensions`], [`BuildCause::WorkGroup`]; [`BuildCause::AccessForbidden`];
    /// [`BuildCause::OtherContext`] for the kernel or a buffer; [`BuildCause::NotSupported`] for a kernel that takes
    /// images, samplers or pipes; and those of [`EmptyNode::add`](super::EmptyNode::add).
    ///
    /// # Safety
    /// With these arguments and this range, and whatever it finds in memory, the kernel touches nothing outside the
    /// ranges that are declared for it here, uses them as declared, and every value has the type that the kernel
    /// expects. This is the only promise that is asked for: finalizing and submitting are safe.
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.launch, &self.after)?)
    }
}

impl Request for Launch {
    type Checked = Checked;

    fn subject(&self) -> String {
        format!("kernel `{}`", self.kernel.name())
    }

    #[inline]
    fn check(&self, target: &Target<'_>) -> Result<Checked, BuildCause> {
        if self.kernel.program().context() != target.context {
            return Err(BuildCause::OtherContext { what: "the kernel's program".to_owned() });
        }
        let caps = target.device.caps();
        check_args(target, &self.kernel, &self.args, caps)?;
        let facts = self.kernel.facts(target.device);
        let grid = check_grid(self.range, self.offset, self.work_group, facts, caps)?;
        check_local(&self.args, facts, caps)?;
        Ok(Checked { grid, built: facts.is_some() })
    }

    fn lower(self, checked: Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let Self { kernel, args, bytes, prints, .. } = self;
        let id = state.kernel(&kernel, checked.built);
        let base = state.ir.push_bytes(&bytes)?;
        let node = NodeId(state.ir.len() as u32);
        let mut lowered = Vec::with_capacity(args.len());
        for (index, arg) in args.into_iter().enumerate() {
            lowered.push(match arg {
                Given::Buffer(region, mode) => {
                    let access = state.access(&region, mode);
                    let view = access.view;
                    accesses.push(access);
                    if mode.writes() && kernel.params().is_some_and(|params| params[index].is_const) {
                        state.ir.warnings.push(Warning::WritesConst { node, index });
                    }
                    Arg::Buffer(view)
                }
                Given::Null => Arg::Null,
                Given::Local(size) => Arg::Local(size),
                Given::Value(range) => Arg::Value(base.part(range)),
            });
        }
        let args = state.ir.push_args(lowered.into_iter())?;
        Some(Op::Kernel { kernel: id, args, grid: checked.grid, prints })
    }
}

/// What the checks of a launch found out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    pub(crate) grid: Grid,
    /// Whether the program was built for the device.
    pub(crate) built: bool,
}

fn check_args(target: &Target<'_>, kernel: &Kernel, args: &[Given], caps: &Caps) -> Result<(), BuildCause> {
    let params = kernel.params();
    // First, because without the count nobody knows which argument belongs where.
    if args.len() != kernel.num_args() as usize {
        let names = params.map_or_else(String::new, |params| format!(": it is `{}`", signature(kernel.name(), params)));
        return Err(BuildCause::ArgumentCount { expected: kernel.num_args(), given: args.len(), names });
    }
    for (index, arg) in args.iter().enumerate() {
        if let Some(param) = params.map(|params| &params[index]) {
            check_param(index, arg, param)?;
        }
        match arg {
            Given::Buffer(region, mode) => {
                target.check_context(region, format_args!("argument {index}"))?;
                // A kernel that reads what it must not, or writes it, is undefined (OpenCL 3.0, clCreateBuffer).
                if mode.writes() {
                    forbid(region, CL_MEM_READ_ONLY, "CL_MEM_READ_ONLY", "a kernel's write")?;
                }
                if *mode != Mode::Write {
                    forbid(region, CL_MEM_WRITE_ONLY, "CL_MEM_WRITE_ONLY", "a kernel's read")?;
                }
            }
            Given::Value(range) => {
                // The limit is that of all arguments together; values lie one behind the other.
                if range.is_empty() || range.end > caps.max_parameter_size {
                    let (given, before, limit) = (range.len(), range.start, caps.max_parameter_size);
                    return Err(BuildCause::ArgumentBytes { index, given, before, limit });
                }
            }
            Given::Local(0) => return Err(BuildCause::NoLocalMemory { index }),
            Given::Null | Given::Local(_) => {}
        }
    }
    Ok(())
}

fn check_param(index: usize, arg: &Given, param: &Param) -> Result<(), BuildCause> {
    let unsupported = |what: &str| BuildCause::NotSupported {
        what: format!("argument {index} `{}`, {what}", param.name),
        why: "clgraph has buffers, values and local memory as arguments so far: use a buffer".to_owned(),
    };
    let fits = match param.space {
        Space::Buffer => matches!(arg, Given::Buffer(..) | Given::Null),
        Space::Local => matches!(arg, Given::Local(_)),
        Space::Value => matches!(arg, Given::Value(_)),
        Space::Image => return Err(unsupported("an image")),
        Space::Sampler => return Err(unsupported("a sampler")),
        Space::Pipe => return Err(unsupported("a pipe")),
    };
    let name = format!(" `{}`", param.name);
    if !fits {
        let expected = match param.space {
            Space::Buffer => format!("a buffer (`{}`)", param.type_name),
            Space::Local => format!("local memory (`{}`)", param.type_name),
            _ => format!("a value (`{}`)", param.type_name),
        };
        return Err(BuildCause::ArgumentKind { index, name, expected, given: arg.what() });
    }
    if let (Given::Value(range), Some(expected)) = (arg, param.value_size)
        && range.len() != expected
    {
        let type_name = format!("`{}`", param.type_name);
        return Err(BuildCause::ArgumentSize { index, name, type_name, expected, given: range.len() });
    }
    Ok(())
}

fn signature(name: &str, params: &[Param]) -> String {
    let params: Vec<_> = params
        .iter()
        .map(|param| {
            let space = if param.space == Space::Local { "local " } else { "" };
            format!("{space}{} {}", param.type_name, param.name)
        })
        .collect();
    format!("{name}({})", params.join(", "))
}

#[inline]
fn check_grid(
    range: Option<Extent>,
    offset: Option<Extent>,
    work_group: Option<Extent>,
    facts: Option<&DeviceFacts>,
    caps: &Caps,
) -> Result<Grid, BuildCause> {
    let Some(range) = range.filter(|range| range.dims > 0) else { return Err(BuildCause::NoRange) };
    if range.dims > 3 {
        return Err(BuildCause::WorkGroup(format!("a range of {} dimensions: OpenCL has 1, 2 or 3", range.dims)));
    }
    let required = facts.and_then(|facts| facts.required_work_group.as_ref());
    if offset.is_none() && work_group.is_none() && required.is_none() && is_small(&range.sizes) {
        // As most launches are.
        return Ok(Grid { dims: range.dims, offset: [0; 3], global: range.sizes, local: None });
    }
    for (what, given) in [("global offset", offset), ("work-group size", work_group)] {
        if let Some(given) = given.filter(|given| given.dims != range.dims) {
            return Err(BuildCause::Dimensions { what, given: given.dims, range: range.dims });
        }
    }
    let offset = offset.map_or([0; 3], |offset| {
        let mut sizes = offset.sizes;
        sizes[offset.dims as usize..].fill(0);
        sizes
    });
    if !is_small(&range.sizes) || !is_small(&offset) {
        check_countable(range, &offset, caps)?;
    }
    let required = required.copied();
    let local = match (work_group, required) {
        (Some(given), Some(required)) if given.sizes != required => {
            let text =
                format!("work-group size {:?}, and the kernel has reqd_work_group_size {required:?}", given.sizes);
            return Err(BuildCause::WorkGroup(text));
        }
        (given, required) => given.map(|given| given.sizes).or(required),
    };
    if let Some(required) = required.filter(|required| required[range.dims as usize..].iter().any(|&size| size > 1)) {
        let text =
            format!("the range has {} dimensions, and the kernel has reqd_work_group_size {required:?}", range.dims);
        return Err(BuildCause::WorkGroup(text));
    }
    if let Some(local) = local {
        check_work_group(range, local, facts, caps)?;
    }
    Ok(Grid { dims: range.dims, offset, global: range.sizes, local })
}

/// Whether these numbers cannot overflow anything: sums and products stay below 2^32.
fn is_small(sizes: &[usize; 3]) -> bool {
    (sizes[0] | sizes[1] | sizes[2]) < 1 << 10 || (sizes[0] < 1 << 31 && sizes[1] == 1 && sizes[2] == 1)
}

/// Whether the device can count the work-items, and their ids.
fn check_countable(range: Extent, offset: &[usize; 3], caps: &Caps) -> Result<(), BuildCause> {
    // "CL_INVALID_GLOBAL_WORK_SIZE if any of the values ... exceed the maximum value representable by size_t on the
    // device", and the same for global ids (OpenCL 3.0, clEnqueueNDRangeKernel).
    let most = if caps.address_bits == 32 { u64::from(u32::MAX) } else { u64::MAX };
    for (dim, (&size, &start)) in range.sizes.iter().zip(offset).enumerate() {
        if (size as u64).checked_add(start as u64).is_none_or(|end| end > most) {
            let text = format!("range {size} from offset {start} in dimension {dim} does not fit the device's size_t");
            return Err(BuildCause::WorkGroup(text));
        }
    }
    // Work-items are numbered by a size_t, and PoCL 6.0 divides by zero when there are more.
    let items = range.sizes.iter().try_fold(1_u64, |items, &size| items.checked_mul(size as u64));
    if !range.sizes.contains(&0) && items.is_none_or(|items| items > most) {
        let sizes = &range.sizes[..range.dims as usize];
        let text = format!("range {sizes:?} has more work-items than the device's size_t can count");
        return Err(BuildCause::WorkGroup(text));
    }
    Ok(())
}

fn check_work_group(
    range: Extent,
    local: [usize; 3],
    facts: Option<&DeviceFacts>,
    caps: &Caps,
) -> Result<(), BuildCause> {
    let fail = |text: String| Err(BuildCause::WorkGroup(text));
    if local.contains(&0) {
        return fail(format!("work-group size {local:?} has a zero: leave it out and the driver chooses"));
    }
    for (dim, (&size, &limit)) in local.iter().zip(&caps.max_work_item_sizes).enumerate() {
        if size > limit {
            return fail(format!(
                "work-group size {size} in dimension {dim} is more than the device's {limit} (CL_DEVICE_MAX_WORK_ITEM_SIZES)"
            ));
        }
    }
    let items = local.iter().try_fold(1_usize, |items, &size| items.checked_mul(size));
    let limit = facts.map_or(caps.max_work_group_size, |facts| facts.max_work_group.min(caps.max_work_group_size));
    if items.is_none_or(|items| items > limit) {
        return fail(format!(
            "work-group size {local:?} has more work-items than the {limit} that this kernel can have on the device \
             (CL_KERNEL_WORK_GROUP_SIZE)"
        ));
    }
    let uniform = facts.map_or(!caps.non_uniform_work_groups, |facts| facts.uniform);
    if uniform && !range.sizes.contains(&0) {
        for (dim, (&size, &local)) in range.sizes.iter().zip(&local).enumerate() {
            if size % local != 0 {
                return fail(format!(
                    "range {size} in dimension {dim} is no multiple of work-group size {local}, and the device or the \
                     program's OpenCL C version takes only full work-groups: round the range up to {}",
                    size.div_ceil(local).saturating_mul(local)
                ));
            }
        }
    }
    Ok(())
}

fn check_local(args: &[Given], facts: Option<&DeviceFacts>, caps: &Caps) -> Result<(), BuildCause> {
    let own = facts.map_or(0, |facts| facts.local_memory);
    let needed = args.iter().fold(own, |sum, arg| match arg {
        Given::Local(size) => sum.saturating_add(*size as u64),
        _ => sum,
    });
    if needed > caps.local_memory {
        return Err(BuildCause::LocalMemory { needed, own, limit: caps.local_memory });
    }
    Ok(())
}
