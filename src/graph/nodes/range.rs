//! Ranges of kernels, and checks that a device can run them.

use crate::caps::Caps;
use crate::cl::objects::kernel::DeviceFacts;
use crate::command::Grid;
use crate::error::{BuildCause, WorkGroupError};
use crate::quirks;

/// One, two or three sizes. `n`, `[x, y]` and `[x, y, z]` convert into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Extent {
    pub(in crate::graph) dims: u32,
    pub(in crate::graph) sizes: [usize; 3],
}

impl Extent {
    /// An extent with these sizes. The check of the range finds an error if there are none, or more than three.
    pub(crate) fn of(sizes: &[usize]) -> Self {
        let mut extent = Self { dims: 0, sizes: [1; 3] };
        sizes.iter().for_each(|size| extent.add(*size));
        extent
    }

    /// The sizes given.
    pub(in crate::graph) fn sizes(&self) -> &[usize] {
        &self.sizes[..(self.dims as usize).min(3)]
    }

    /// Adds a dimension.
    fn add(&mut self, size: usize) {
        if let Some(place) = self.sizes.get_mut(self.dims as usize) {
            *place = size;
        }
        self.dims = self.dims.saturating_add(1);
    }

    /// Adds a dimension to an extent that may not exist yet.
    pub(crate) fn add_to(extent: &mut Option<Self>, size: usize) {
        match extent {
            Some(extent) => extent.add(size),
            None => *extent = Some(size.into()),
        }
    }
}

impl From<usize> for Extent {
    fn from(x: usize) -> Self {
        Self { dims: 1, sizes: [x, 1, 1] }
    }
}

/// For languages whose arrays have no length: one to three numbers. Any other length is an error of the command.
impl From<&[usize]> for Extent {
    fn from(sizes: &[usize]) -> Self {
        Self::of(sizes)
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

/// The range of a kernel (`clEnqueueNDRangeKernel`): the work-items for each dimension, where their ids start, and the
/// size of a work-group.
///
/// The number of work-items alone converts into it: `n`, `[x, y]` or `[x, y, z]`.
///
/// ```
/// let range = clgraph::NdRange::new([64, 32]).offset([0, 16]).work_group([8, 8]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct NdRange {
    pub(in crate::graph) range: Extent,
    pub(in crate::graph) offset: Option<Extent>,
    pub(in crate::graph) work_group: Option<Extent>,
}

impl NdRange {
    /// Creates a range of so many work-items, for dimensions 0, 1 and 2 as `get_global_id` counts them.
    ///
    /// Ids start at zero, and the driver chooses the size of work-groups.
    pub fn new(range: impl Into<Extent>) -> Self {
        Self { range: range.into(), offset: None, work_group: None }
    }

    /// Sets where ids start.
    pub fn offset(mut self, offset: impl Into<Extent>) -> Self {
        self.offset = Some(offset.into());
        self
    }

    /// Sets the number of work-items in a work-group. By default the kernel's `reqd_work_group_size` holds, or else the
    /// driver chooses.
    pub fn work_group(mut self, size: impl Into<Extent>) -> Self {
        self.work_group = Some(size.into());
        self
    }
}

impl From<usize> for NdRange {
    fn from(x: usize) -> Self {
        Self::new(x)
    }
}

impl<const DIMS: usize> From<[usize; DIMS]> for NdRange
where
    Extent: From<[usize; DIMS]>,
{
    fn from(range: [usize; DIMS]) -> Self {
        Self::new(range)
    }
}

/// Checks that a range is within what the safety promise covers.
pub(in crate::graph) fn check_bound(grid: &Grid, bound: Option<Extent>) -> Result<(), BuildCause> {
    let Some(bound) = bound else { return Ok(()) };
    let dims = grid.dims as usize;
    let beyond = bound.dims != grid.dims
        || (0..dims).any(|dim| grid.offset[dim].saturating_add(grid.global[dim]) > bound.sizes[dim]);
    if beyond {
        return Err(BuildCause::RangeBound {
            range: grid.global[..dims].to_vec(),
            offset: grid.offset[..dims].to_vec(),
            bound: bound.sizes().to_vec(),
        });
    }
    Ok(())
}

/// A range as drivers take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes<'a> {
    pub(crate) dims: u32,
    pub(crate) offset: &'a [usize; 3],
    pub(crate) global: &'a [usize; 3],
    /// `None` if the driver chooses.
    pub(crate) local: Option<&'a [usize; 3]>,
}

impl<'a> Sizes<'a> {
    /// The sizes of a checked range, without copies, because every launch on a queue calls this.
    #[inline]
    pub(in crate::graph) fn of(
        range: Option<&'a Extent>,
        offset: Option<&'a Extent>,
        work_group: Option<&'a Extent>,
        facts: Option<&'a DeviceFacts>,
    ) -> Self {
        let required = facts.and_then(|facts| facts.required_work_group.as_ref());
        Self {
            dims: range.map_or(0, |range| range.dims),
            offset: offset.map_or(&[0; 3], |offset| &offset.sizes),
            global: range.map_or(&[0; 3], |range| &range.sizes),
            local: work_group.map(|size| &size.sizes).or(required),
        }
    }

    pub(in crate::graph) fn grid(&self) -> Grid {
        let mut offset = *self.offset;
        offset.iter_mut().skip(self.dims as usize).for_each(|start| *start = 0);
        Grid { dims: self.dims, offset, global: *self.global, local: self.local.copied() }
    }
}

/// Checks that a device can run a kernel over a range.
#[inline(always)] // See `ExecuteKernel::go`.
pub(in crate::graph) fn check_range(
    range: Option<&Extent>,
    offset: Option<&Extent>,
    work_group: Option<&Extent>,
    facts: Option<&DeviceFacts>,
    caps: &Caps,
) -> Result<(), BuildCause> {
    let required = facts.and_then(|facts| facts.required_work_group.as_ref());
    match range {
        // The common case, tested first because every launch on a queue pays for it.
        Some(Extent { dims: 1..=3, sizes })
            if offset.is_none() && work_group.is_none() && required.is_none() && is_small(sizes) =>
        {
            Ok(())
        }
        _ => check_any_range(range.copied(), offset.copied(), work_group.copied(), facts, caps),
    }
}

fn check_any_range(
    range: Option<Extent>,
    offset: Option<Extent>,
    work_group: Option<Extent>,
    facts: Option<&DeviceFacts>,
    caps: &Caps,
) -> Result<(), BuildCause> {
    let Some(range) = range.filter(|range| range.dims > 0) else { return Err(BuildCause::NoRange) };
    if range.dims > 3 {
        return Err(BuildCause::RangeDimensions { given: range.dims });
    }
    let required = facts.and_then(|facts| facts.required_work_group.as_ref());
    for (what, given) in [("global offset", offset), ("work-group size", work_group)] {
        if let Some(given) = given.filter(|given| given.dims != range.dims) {
            return Err(BuildCause::Dimensions { what, given: given.dims, of: "the range", range: range.dims });
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
            return Err(WorkGroupError::Required { given: given.sizes, required }.into());
        }
        (given, required) => given.map(|given| given.sizes).or(required),
    };
    if let Some(required) = required.filter(|required| required[range.dims as usize..].iter().any(|&size| size > 1)) {
        return Err(WorkGroupError::RequiredDimensions { given: range.dims, required }.into());
    }
    if let Some(local) = local {
        check_work_group(range, local, facts, caps)?;
    }
    if is_small(&range.sizes) {
        return Ok(());
    }
    // A driver that chooses the work-group size takes one of 1 for a range whose sizes are prime.
    let local = local.unwrap_or([1; 3]);
    let groups = range.sizes.iter().zip(local).map(|(&size, local)| size.div_ceil(local) as u64);
    let groups = groups.fold(1, u64::saturating_mul);
    let limit = quirks::max_work_groups(caps);
    if groups > limit { Err(WorkGroupError::TooMany { groups, limit }.into()) } else { Ok(()) }
}

/// Whether sums and products of these numbers cannot overflow: they stay below 2^32.
#[inline]
fn is_small(sizes: &[usize; 3]) -> bool {
    (sizes[0] | sizes[1] | sizes[2]) < 1 << 10 || (sizes[0] < 1 << 31 && sizes[1] == 1 && sizes[2] == 1)
}

/// Checks that the device can count the work-items and their ids.
fn check_countable(range: Extent, offset: &[usize; 3], caps: &Caps) -> Result<(), BuildCause> {
    // "CL_INVALID_GLOBAL_WORK_SIZE if any of the values ... exceed the maximum value representable by size_t on the
    // device", and the same for global ids (OpenCL 3.0, clEnqueueNDRangeKernel).
    let most = if caps.address_bits == 32 { u64::from(u32::MAX) } else { u64::MAX };
    let too_large = || {
        let dims = range.dims as usize;
        Err(BuildCause::RangeTooLarge { range: range.sizes[..dims].to_vec(), offset: offset[..dims].to_vec() })
    };
    for (&size, &start) in range.sizes.iter().zip(offset) {
        if (size as u64).checked_add(start as u64).is_none_or(|end| end > most) {
            return too_large();
        }
    }
    // Work-items are numbered by a size_t, and PoCL 6.0 divides by zero when there are more.
    let items = range.sizes.iter().try_fold(1_u64, |items, &size| items.checked_mul(size as u64));
    if !range.sizes.contains(&0) && items.is_none_or(|items| items > most) {
        return too_large();
    }
    Ok(())
}

fn check_work_group(
    range: Extent,
    local: [usize; 3],
    facts: Option<&DeviceFacts>,
    caps: &Caps,
) -> Result<(), BuildCause> {
    if local.contains(&0) {
        return Err(WorkGroupError::Empty { given: local }.into());
    }
    for (dimension, (&given, &limit)) in local.iter().zip(&caps.max_work_item_sizes).enumerate() {
        if given > limit {
            return Err(WorkGroupError::ItemSize { dimension, given, limit }.into());
        }
    }
    let items = local.iter().try_fold(1_usize, |items, &size| items.checked_mul(size));
    let limit = facts.map_or(caps.max_work_group_size, |facts| facts.max_work_group.min(caps.max_work_group_size));
    if items.is_none_or(|items| items > limit) {
        return Err(WorkGroupError::TooLarge { given: local, limit }.into());
    }
    let uniform = facts.map_or(!caps.non_uniform_work_groups, |facts| facts.uniform);
    if uniform && !range.sizes.contains(&0) {
        for (dimension, (&range, &work_group)) in range.sizes.iter().zip(&local).enumerate() {
            if range % work_group != 0 {
                return Err(WorkGroupError::Uneven { dimension, range, work_group }.into());
            }
        }
    }
    Ok(())
}

/// Checks that the device has enough local memory for all arguments together and for the kernel's own local variables.
#[inline]
pub(in crate::graph) fn check_local(given: u64, facts: Option<&DeviceFacts>, caps: &Caps) -> Result<(), BuildCause> {
    let own = facts.map_or(0, |facts| facts.local_memory);
    let needed = own.saturating_add(given);
    if needed > caps.local_memory {
        return Err(BuildCause::LocalMemory { needed, own, limit: caps.local_memory });
    }
    Ok(())
}
