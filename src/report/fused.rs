//! Which launches of an executable one kernel does, and why others are launches of their own.

use std::fmt;

pub use crate::lower::WhyApart;
use crate::report::summary::count;

/// Launches, fills and copies that one kernel does: see [`Fuse`](crate::Fuse).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FusedReport {
    /// The indices of their nodes, in order. One in a sub-graph, or in a body, has that of the sub-graph's or body's node.
    pub nodes: Vec<usize>,
    /// How the kernel runs their work-items.
    pub form: FusedForm,
    /// How many work-items, or work-groups, run side by side, each of them nodes that no edges order with those of the others. 1 for
    /// [`FusedForm::EachItem`] and [`FusedForm::EachGroup`].
    pub lanes: usize,
    /// Why the launch that comes next is not in this kernel. None if none comes that could be in one.
    pub ends: Option<WhyApart>,
}

/// How a fused kernel runs the work-items of its launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FusedForm {
    /// One work-item runs all of them, in order.
    OneItem,
    /// The work-items of one work-group share them.
    OneGroup,
    /// Each work-item of the range does its part of all launches: see [`KernelNode::elementwise`](crate::KernelNode::elementwise).
    EachItem,
    /// Each work-group does its part of the range, launch after launch, with the same promise.
    EachGroup,
}

impl fmt::Display for FusedForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneItem => "one work-item",
            Self::OneGroup => "one work-group",
            Self::EachItem => "each work-item on its own",
            Self::EachGroup => "each work-group on its own",
        })
    }
}

impl fmt::Display for FusedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.title(), Nodes(&self.nodes))
    }
}

impl FusedReport {
    /// Says how many commands the kernel does, and how.
    pub(crate) fn title(&self) -> String {
        let Self { nodes, form, lanes, ends: _ } = self;
        let form = match form {
            FusedForm::OneItem if *lanes > 1 => format!("{lanes} work-items side by side"),
            FusedForm::OneGroup if *lanes > 1 => format!("{lanes} work-groups side by side"),
            _ => form.to_string(),
        };
        format!("{} by {form}", count(nodes.len(), "command"))
    }
}

/// Some nodes as a report names them: `node 3`, or `nodes 3, 5 to 9`.
pub(in crate::report) struct Nodes<'a>(pub &'a [usize]);

impl fmt::Display for Nodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.to_vec();
        sorted.sort_unstable();
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for node in sorted {
            match runs.last_mut() {
                Some((_, last)) if node <= *last + 1 => *last = node,
                _ => runs.push((node, node)),
            }
        }
        f.write_str(if runs.len() == 1 && runs[0].0 == runs[0].1 { "node " } else { "nodes " })?;
        for (at, (first, last)) in runs.iter().take(SHOWN).enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{first} to {last}")? }
        }
        if runs.len() > SHOWN { f.write_str(", ...") } else { Ok(()) }
    }
}

/// How many runs of nodes are shown.
const SHOWN: usize = 4;

/// A launch that is not fused, although [`Fuse`](crate::Fuse) asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotFusedReport {
    /// The node's index. A launch in a sub-graph, or in a body, has that of the sub-graph's or body's node.
    pub node: usize,
    /// Why it is not.
    pub why: WhyNotFused,
}

/// Why a launch is not fused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhyNotFused {
    /// The executable is updatable, and its path is not replay, with or without a gate.
    Updatable,
    /// An update took the fused form away.
    Update {
        /// What it has changed that fused kernels do not follow.
        change: String,
    },
    /// The executable profiles.
    Profiled,
    /// The launches of the executable are checked: `CLGRAPH_CHECK_ELEMENTWISE` is set.
    Checked,
    /// It is in the body of a loop with a condition, and no kernel can do the turns: the body has other commands, or the condition is not
    /// in plain memory, or another way is asked for. Turns that go ahead of the condition save more then.
    InLoop,
    /// It has too many work-items, or none. [`KernelNode::elementwise`](crate::KernelNode::elementwise) allows any number.
    Size {
        /// How many.
        items: u64,
    },
    /// Its range ends beyond 31 bits, or a size does.
    Range,
    /// The kernel asks how its range is divided into work-groups, and the driver may divide it; or the range is no multiple of its
    /// work-group.
    Divided {
        /// The kernel's name.
        kernel: String,
    },
    /// Its work-items wait for each other, and the driver's compiler is right only for work-groups of a multiple of some work-items.
    WorkGroup {
        /// The kernel's name.
        kernel: String,
        /// The work-items of a work-group.
        items: usize,
        /// What they must be a multiple of.
        multiple: usize,
    },
    /// Its work-items wait for each other, and it has more work-groups than one does in turn.
    WorkGroups {
        /// The kernel's name.
        kernel: String,
        /// How many work-groups it has.
        groups: u64,
        /// The most that one does.
        most: u64,
    },
    /// An argument is neither a value nor plain memory.
    Argument {
        /// The kernel's name.
        kernel: String,
        /// The argument.
        argument: usize,
    },
    /// The kernel reaches memory through pointers in other memory, of which clgraph does not know how it is used.
    Indirect {
        /// The kernel's name.
        kernel: String,
    },
    /// The kernel cannot be part of another.
    Kernel {
        /// The kernel's name.
        kernel: String,
        /// Why.
        why: String,
    },
    /// No other launch is right before or behind it that could be in one kernel with it.
    Alone,
    /// It is not in one kernel with the launch before or behind it.
    Apart {
        /// Why.
        why: WhyApart,
    },
    /// The driver refused something that its fused form needs.
    Refused {
        /// What it refused.
        error: String,
    },
}

impl fmt::Display for WhyNotFused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Updatable => f.write_str("the executable can be updated, and is not replayed"),
            Self::Update { change } => write!(f, "an update has changed {change}"),
            Self::Profiled => f.write_str("each command is timed"),
            Self::Checked => f.write_str("CLGRAPH_CHECK_ELEMENTWISE has its promises checked"),
            Self::InLoop => f.write_str("it is in the body of a loop with a condition, whose turns no kernel can do"),
            Self::Size { items } => write!(f, "{items} work-items are too many, or none"),
            Self::Range => f.write_str("its range ends beyond 31 bits"),
            Self::Divided { kernel } => {
                write!(f, "kernel `{kernel}` depends on work-groups, and its range has no local size that divides it")
            }
            Self::WorkGroup { kernel, items, multiple } => write!(
                f,
                "the work-items of kernel `{kernel}` wait for each other in work-groups of {items}, which is no multiple of {multiple}"
            ),
            Self::WorkGroups { kernel, groups, most } => write!(
                f,
                "the work-items of kernel `{kernel}` wait for each other, and one work-group would do {groups} in turn: {most} at most"
            ),
            Self::Argument { kernel, argument } => {
                write!(f, "argument {argument} of kernel `{kernel}` is neither a value nor plain memory")
            }
            Self::Indirect { kernel } => {
                write!(f, "kernel `{kernel}` reaches memory through pointers in other memory")
            }
            Self::Kernel { kernel, why } => write!(f, "kernel `{kernel}`: {why}"),
            Self::Alone => f.write_str("no other launch is beside it that could be in one kernel with it"),
            Self::Apart { why } => write!(f, "it is not in one kernel with the launch beside it: {why}"),
            Self::Refused { error } => write!(f, "its fused form cannot be built: {error}"),
        }
    }
}

/// What has become of the fused form of an executable with [`Fuse::Auto`](crate::Fuse::Auto), or of one that can be updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FusingState {
    /// None is wanted, or finalize has decided it for an executable that cannot be updated:
    /// [`Report::fused`](crate::Report::fused) and [`Report::not_fused`](crate::Report::not_fused) tell.
    #[default]
    Off,
    /// Submissions have not yet taken a multiple of what a build takes.
    Waiting,
    /// An update has changed something that it does not follow. It is built again later;
    /// [`Report::not_fused`](crate::Report::not_fused) has the reason.
    Outdated,
    /// It is being built in the background.
    Building,
    /// It is built, and timed among the program's submissions.
    Trying,
    /// Submissions use it.
    Taken,
    /// It was timed, and is not faster.
    NotFaster,
    /// No launches fit together.
    Nothing,
    /// The driver refused something that it needs: [`Report::not_fused`](crate::Report::not_fused) has the error.
    Refused,
}

impl fmt::Display for FusingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Waiting => "not yet: submissions have taken little time so far",
            Self::Outdated => "not now: an update does not fit it",
            Self::Building => "being built",
            Self::Trying => "being timed",
            Self::Taken => "used",
            Self::NotFaster => "not faster when timed",
            Self::Nothing => "nothing fits together",
            Self::Refused => "the driver refused it",
        })
    }
}
