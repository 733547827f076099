//! Work-items and work-groups of a launch: the checks that `clEnqueueNDRangeKernel` does.

use opencl_sys::{
    CL_INVALID_GLOBAL_OFFSET, CL_INVALID_GLOBAL_WORK_SIZE, CL_INVALID_VALUE, CL_INVALID_WORK_DIMENSION,
    CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE,
};

use super::ranges::Place;
use super::{Checked, ensure};

/// What a device can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// The most work-items of a work-group, by dimensions.
    pub(crate) most: Vec<usize>,
    /// Work-groups at the end of a dimension may be smaller.
    pub(crate) has_non_uniform: bool,
    /// The largest number of the device's `size_t`.
    pub(crate) widest: usize,
}

/// What a kernel can do on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// The most work-items of a work-group.
    pub(crate) most: usize,
    /// The size of work-groups that its source requires (`reqd_work_group_size`).
    pub(crate) required: Option<Place>,
    /// The program was built with work-groups that are all of one size.
    pub(crate) is_uniform: bool,
}

/// The work-items of a launch. Only the first `dimensions` places count; the others are those of nothing: 0, and 1 for `local`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) dimensions: usize,
    pub(crate) offset: Place,
    pub(crate) global: Place,
    /// Work-items of a work-group, if the program gave them.
    pub(crate) local: Option<Place>,
}

impl Range {
    /// No work-item runs. The launch succeeds, since OpenCL 2.1.
    pub(crate) fn is_empty(&self) -> bool {
        self.global[..self.dimensions].contains(&0)
    }

    /// The work-items of a work-group, as drivers are given them: also those that the kernel's source requires, because some
    /// drivers refuse such a launch without them.
    pub(crate) fn group(&self, kernel: &Kernel) -> Option<Place> {
        self.local.or(kernel.required)
    }

    /// Whether all work-groups are of one size. Drivers choose sizes that make them so.
    pub(crate) fn is_uniform(&self) -> bool {
        let divides =
            |local: Place| (0..self.dimensions).all(|at| local[at] != 0 && self.global[at].is_multiple_of(local[at]));
        self.local.is_none_or(divides)
    }

    pub(crate) fn check(&self, device: &Device, kernel: &Kernel) -> Checked {
        let dimensions = self.dimensions;
        ensure((1..=device.most.len().min(3)).contains(&dimensions), CL_INVALID_WORK_DIMENSION)?;
        for at in 0..dimensions {
            ensure(self.global[at] <= device.widest, CL_INVALID_GLOBAL_WORK_SIZE)?;
            let end = self.offset[at].checked_add(self.global[at]);
            ensure(end.is_some_and(|end| end <= device.widest), CL_INVALID_GLOBAL_OFFSET)?;
        }
        let Some(group) = self.group(kernel) else { return Ok(()) };
        let (group, global) = (&group[..dimensions], &self.global[..dimensions]);
        if let Some(required) = kernel.required {
            let rest_is_1 = required[dimensions..].iter().all(|size| *size == 1);
            ensure(group == &required[..dimensions] && rest_is_1, CL_INVALID_WORK_GROUP_SIZE)?;
        }
        ensure(!group.contains(&0), CL_INVALID_WORK_GROUP_SIZE)?;
        ensure(group.iter().zip(&device.most).all(|(size, most)| size <= most), CL_INVALID_WORK_ITEM_SIZE)?;
        let items = group.iter().try_fold(1_usize, |items, size| items.checked_mul(*size));
        ensure(items.is_some_and(|items| items <= kernel.most), CL_INVALID_WORK_GROUP_SIZE)?;
        // A required size divides, whatever the device can do.
        if !device.has_non_uniform || kernel.is_uniform || kernel.required.is_some() {
            let divides = global.iter().zip(group).all(|(all, size)| all.is_multiple_of(*size));
            ensure(divides, CL_INVALID_WORK_GROUP_SIZE)?;
        }
        Ok(())
    }
}

/// What an update gives for a range; `None` leaves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) offset: Option<Place>,
    pub(crate) global: Option<Place>,
    pub(crate) local: Option<Place>,
}

impl Change {
    pub(crate) fn of(self, range: Range) -> Range {
        Range {
            dimensions: range.dimensions,
            offset: self.offset.unwrap_or(range.offset),
            global: self.global.unwrap_or(range.global),
            local: self.local.or(range.local),
        }
    }
}

/// A program that promises to add no work-groups says how large they are.
pub(crate) fn promise(no_more_groups: bool, local: Option<Place>) -> Checked {
    ensure(!no_more_groups || local.is_some(), CL_INVALID_VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Kernel = Kernel { most: 64, required: None, is_uniform: false };
    const ALL_OF_ONE_SIZE: Kernel = Kernel { is_uniform: true, ..ANY };

    fn device() -> Device {
        Device { most: vec![64, 64, 8], has_non_uniform: true, widest: usize::MAX }
    }

    fn range(dimensions: usize, global: Place, local: Option<Place>) -> Range {
        Range { dimensions, offset: [0; 3], global, local }
    }

    fn check(range: Range, kernel: Kernel) -> Checked {
        range.check(&device(), &kernel)
    }

    #[test]
    fn dimensions_offsets_and_groups_fit() {
        assert_eq!(check(range(1, [100, 0, 0], None), ANY), Ok(()));
        for dimensions in [0, 4] {
            assert_eq!(check(range(dimensions, [1; 3], None), ANY), Err(CL_INVALID_WORK_DIMENSION));
        }
        let flat = Device { most: vec![64], has_non_uniform: true, widest: usize::MAX };
        assert_eq!(range(2, [1; 3], None).check(&flat, &ANY), Err(CL_INVALID_WORK_DIMENSION));
        let far = Range { offset: [usize::MAX, 0, 0], ..range(1, [1, 0, 0], None) };
        assert_eq!(check(far, ANY), Err(CL_INVALID_GLOBAL_OFFSET));
        assert_eq!(check(range(2, [8, 8, 0], Some([8, 8, 1])), ANY), Ok(()));
        assert_eq!(check(range(2, [8, 16, 0], Some([8, 16, 1])), ANY), Err(CL_INVALID_WORK_GROUP_SIZE));
        assert_eq!(check(range(3, [1, 1, 16], Some([1, 1, 16])), ANY), Err(CL_INVALID_WORK_ITEM_SIZE));
        assert_eq!(check(range(1, [8, 0, 0], Some([0, 1, 1])), ANY), Err(CL_INVALID_WORK_GROUP_SIZE));
        // Nothing runs, and nothing is wrong.
        assert!(range(2, [8, 0, 0], None).is_empty() && !range(1, [8, 0, 0], None).is_empty());
        assert_eq!(check(range(1, [0; 3], Some([8, 1, 1])), ANY), Ok(()));
    }

    #[test]
    fn groups_that_do_not_divide() {
        let uneven = range(1, [100, 0, 0], Some([8, 1, 1]));
        assert_eq!(check(uneven, ANY), Ok(()));
        assert!(!uneven.is_uniform() && Range { local: None, ..uneven }.is_uniform());
        assert!(range(1, [104, 0, 0], Some([8, 1, 1])).is_uniform());
        assert_eq!(check(uneven, ALL_OF_ONE_SIZE), Err(CL_INVALID_WORK_GROUP_SIZE));
        let old = Device { has_non_uniform: false, ..device() };
        assert_eq!(uneven.check(&old, &ANY), Err(CL_INVALID_WORK_GROUP_SIZE));
        assert_eq!(range(1, [104, 0, 0], Some([8, 1, 1])).check(&old, &ALL_OF_ONE_SIZE), Ok(()));
    }

    #[test]
    fn a_required_size_is_filled_in() {
        let kernel = Kernel { required: Some([8, 2, 1]), ..ANY };
        assert_eq!(range(2, [16, 4, 0], None).group(&kernel), Some([8, 2, 1]));
        assert_eq!(check(range(2, [16, 4, 0], None), kernel), Ok(()));
        assert_eq!(check(range(2, [16, 4, 0], Some([8, 2, 1])), kernel), Ok(()));
        for wrong in [range(2, [16, 4, 0], Some([4, 4, 1])), range(2, [17, 4, 0], None), range(1, [16, 0, 0], None)] {
            assert_eq!(check(wrong, kernel), Err(CL_INVALID_WORK_GROUP_SIZE));
        }
    }

    #[test]
    fn a_change_leaves_what_it_does_not_name() {
        let before = Range { offset: [1, 0, 0], ..range(1, [8, 0, 0], Some([4, 1, 1])) };
        assert_eq!(Change::default().of(before), before);
        let change = Change { global: Some([16, 0, 0]), ..Change::default() };
        assert_eq!(change.of(before), Range { global: [16, 0, 0], ..before });
        assert_eq!(promise(true, None), Err(CL_INVALID_VALUE));
        assert_eq!([promise(false, None), promise(true, before.local)], [Ok(()); 2]);
    }
}
