//! Where chains are cut, and why.

use std::fmt;

use crate::ir::NodeId;

/// Two neighbours that fit, but not into one chain; or twice the same launch, for which there is no room even alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The last launch of what could have been one chain with the next one.
    pub(crate) before: NodeId,
    pub(crate) behind: NodeId,
    pub(crate) why: WhyApart,
}

/// Why two launches, one right behind the other, are not in one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhyApart {
    /// Something that is no launch of this kind comes between them: an edge has it so, or the order of adding where that is kept.
    Between,
    /// Their programs cannot be one: they have other build options, a name means something else in each, or they are too many.
    Programs,
    /// Work-items or work-groups do one of them on their own ([`KernelNode::elementwise`](crate::KernelNode::elementwise)), and not the other, or
    /// over another range.
    Ranges,
    /// They wait for different host tasks, events, branches or loops.
    Hosts,
    /// The driver does not let a kernel have so many bytes of arguments.
    Arguments,
    /// There are too many launches for one kernel of which each work-item does its part on its own.
    Many,
    /// A kernel of all would be too long for the driver's compiler: it calls a function for each launch that is no turn of a loop.
    Calls,
    /// The work-items of one wait for each other in work-groups, and one work-item does all work-items of the other.
    Forms,
    /// Their work-items wait for each other in work-groups of different sizes.
    WorkGroups,
    /// The device has not so much local memory.
    Local,
    /// The work-items of one wait for each other, and the other has more work-groups than one does in turn.
    Rounds,
    /// One writes memory that the other has as `constant`.
    Constant,
    /// They touch the same bytes by different types, which lets a compiler change their order.
    Types,
    /// A work-item of one touches bytes that another work-item of the other writes.
    Elements,
}

impl fmt::Display for WhyApart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Between => "something that cannot be fused comes between them",
            Self::Programs => "their programs cannot be one, or they are too many",
            Self::Ranges => "work-items do one of them on their own, and not the other, or over another range",
            Self::Hosts => "they wait for different host tasks, events, branches or loops",
            Self::Arguments => "together they have too many bytes of arguments",
            Self::Many => "there are too many launches for work-items that do their parts on their own",
            Self::Calls => "one kernel would be too long for the driver's compiler: it would have a call for each of too many launches, or too many barriers",
            Self::Forms => "the work-items of one wait for each other in work-groups, and one work-item does all of the other",
            Self::WorkGroups => "their work-items wait for each other in work-groups of different sizes",
            Self::Local => "together they need too much local memory",
            Self::Rounds => {
                "the work-items of one wait for each other, and one work-group would do too many of the other in turn"
            }
            Self::Constant => "one writes memory that the other has as `constant`",
            Self::Types => "they touch the same bytes by different types",
            Self::Elements => "a work-item of one touches bytes that another work-item of the other writes",
        })
    }
}
