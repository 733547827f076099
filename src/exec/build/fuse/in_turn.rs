//! How a device does launches in turn, and how large they may be.

use crate::caps::Caps;
use crate::opencl_c::fused::Form;
use crate::quirks;

/// The most work-items of a launch that is fused: several cores do more of them faster. Of so many, 32 launches in one kernel take 0.12 to 0.61 of
/// the time that they take one by one on an H200, and 1.0 to 1.3 if each computes as much as 32 rounds of a hash.
pub(in crate::exec) const MOST_ITEMS: u64 = 16_384;

#[derive(Clone, Copy)]
pub(in crate::exec) struct InTurn {
    pub(in crate::exec) form: Form,
    /// The most work-items of a launch that is better in turn, where each work-item could do it on its own too: that is one more launch for
    /// the driver to divide.
    pub(in crate::exec) most_better: u64,
    /// If each work-group does its part of launches with promises launch after launch: how many work-items a part has.
    pub(in crate::exec) part: Option<u32>,
}

impl InTurn {
    pub(in crate::exec) fn of(caps: &Caps) -> Self {
        let (form, most_better) = match quirks::fuses_by_one_item(caps) {
            true => (Form::OneItem, 4_096),
            false => (Form::OneGroup, 256),
        };
        Self { form, most_better, part: quirks::part_of_each_work_group(caps) }
    }
}
