//! Where chains are cut, and why.

use crate::ir::NodeId;

/// Two neighbours that fit, but not into one chain; or twice the same launch, for which there is no room even alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The last launch of what could have been one chain with the next one.
    pub(crate) before: NodeId,
    pub(crate) behind: NodeId,
    pub(crate) why: Apart,
}

/// Why a launch is not in the chain of the launch before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Something that is no such launch has to come between them, or was added between them where the order of adding is kept.
    Between,
    /// The texts of their programs cannot be one.
    Programs,
    /// Each work-item does one of them on its own, and not the other, or over another range.
    Ranges,
    /// They wait for different nodes of the host.
    Hosts,
    /// There is no room for more arguments.
    Arguments,
    /// There are as many launches as each work-item may do on its own.
    Many,
    /// Their work-items wait for each other in work-groups of different sizes.
    WorkGroups,
    /// There is no room for more local memory.
    Local,
    /// One work-group would do too many work-groups in turn.
    Rounds,
    /// One writes memory that a compiler takes for constant in the other.
    Constant,
    /// They touch the same bytes by different types.
    Types,
    /// A work-item of one touches bytes that another work-item of the other writes.
    Elements,
}
