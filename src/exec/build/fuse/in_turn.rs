//! How a device does launches in turn, and how large they may be.

use crate::caps::Caps;
use crate::opencl_c::fused::Form;
use crate::quirks;

#[derive(Clone, Copy)]
pub(in crate::exec) struct InTurn {
    pub(in crate::exec) form: Form,
    /// The most work-items of a launch that is fused: more are done faster by several cores. A work-group does more of them in the same time
    /// than one work-item does, if it makes no vectors.
    pub(in crate::exec) most_items: u64,
    /// The most work-items of a launch that is better in turn, where each work-item could do it on its own too: that is one more launch for
    /// the driver to divide.
    pub(in crate::exec) most_better: u64,
    /// If each work-group does its part of launches with promises launch after launch: how many work-items a part has.
    pub(in crate::exec) part: Option<u32>,
}

impl InTurn {
    pub(in crate::exec) fn of(caps: &Caps) -> Self {
        let (form, most_items, most_better) = match quirks::fuses_by_one_item(caps) {
            true => (Form::OneItem, 16_384, 4_096),
            false if quirks::makes_vectors_of_items(caps) => (Form::OneGroup, 16_384, 256),
            false => (Form::OneGroup, 4_096, 256),
        };
        Self { form, most_items, most_better, part: quirks::part_of_each_work_group(caps) }
    }
}
