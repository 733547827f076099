//! How the loops of an executable run, and why.

use std::fmt;

use crate::handles::NodeKind;

/// A loop, by [`Graph::repeat_while`](crate::Graph::repeat_while) or [`Graph::repeat`](crate::Graph::repeat).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopReport {
    /// The node's index. A loop in a sub-graph, or in a body, has that of the sub-graph's or body's node.
    pub node: usize,
    /// How many turns it has. None if a condition ends it.
    pub turns: Option<u64>,
    /// Why the host begins each turn. None if a fused kernel does the turns, if a loop with a condition can have turns that are enqueued before their condition is
    /// known, and if another is unrolled: its turns are commands like all others. Updates can change it.
    pub host_decided: Option<HostDecided>,
    /// Whether turns are enqueued before their condition is known. None if that is not measured yet. It changes as submissions
    /// are made.
    pub ahead: Option<bool>,
    /// Whether a fused kernel does the turns, many in a launch: see [`Fuse`](crate::Fuse).
    pub on_device: bool,
    /// The flow of its body.
    pub(crate) flow: usize,
}

impl LoopReport {
    /// A loop of which nothing is known yet.
    pub(crate) fn new(node: usize) -> Self {
        Self { node, turns: None, host_decided: None, ahead: None, on_device: false, flow: usize::MAX }
    }
}

impl fmt::Display for LoopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.on_device {
            return f.write_str("a fused kernel does its turns");
        }
        match (self.turns, &self.host_decided, self.ahead) {
            (Some(turns), None, _) => write!(f, "its {turns} turns are unrolled"),
            (Some(turns), Some(why), _) => write!(f, "the host begins each of its {turns} turns: {why}"),
            (None, Some(why), _) => write!(f, "the host decides each turn: {why}"),
            (None, None, Some(true)) => f.write_str("turns are enqueued ahead"),
            (None, None, Some(false)) => f.write_str("the host decides each turn: that was faster"),
            (None, None, None) => f.write_str("the faster way is not measured yet"),
        }
    }
}

/// Why the host decides or begins each turn of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HostDecided {
    /// [`Finalize::loops`](crate::Finalize::loops) or `CLGRAPH_LOOPS` says so.
    Asked,
    /// The executable profiles.
    Profiled,
    /// The executable is updatable, so that the number of turns may change.
    Updatable,
    /// Beside the loop is a node that runs on the host.
    Beside(NodeKind),
    /// The turns would be more than 512 nodes.
    Long,
    /// The body has a node that would do something after the loop's end.
    Node(NodeKind),
    /// The body has no kernel.
    NoKernel,
    /// The body has a fill with a pattern of more than 16 bytes.
    Pattern,
    /// A kernel cannot be guarded.
    Kernel {
        /// The kernel's name.
        kernel: String,
        /// Why.
        why: String,
    },
    /// A kernel asks how its range is divided into work-groups, and the driver may divide it.
    Divided {
        /// The kernel's name.
        kernel: String,
    },
    /// A kernel has a loop, and its work-groups may have one work-item. Then the driver (PoCL 7.1) computes something else behind a guard.
    OneItem {
        /// The kernel's name.
        kernel: String,
    },
    /// The condition is in memory that may begin at any address, such as memory of the host. Kernels read whole words.
    Anywhere,
    /// The condition, or what a fill, copy, write or read of the body touches, is in a buffer that kernels must not read or write: it has
    /// the flag `CL_MEM_WRITE_ONLY` or `CL_MEM_READ_ONLY`. Turns ahead touch it by kernels.
    Access,
    /// The driver refused an object that turns ahead need.
    Driver,
}

impl fmt::Display for HostDecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("as asked"),
            Self::Profiled => f.write_str("each command is timed"),
            Self::Node(kind) => write!(f, "its body has a {kind}"),
            Self::Updatable => f.write_str("the executable can be updated"),
            Self::Beside(kind) => write!(f, "beside it is a {kind}"),
            Self::Long => f.write_str("they would be more than 512 nodes"),
            Self::NoKernel => f.write_str("its body has no kernel"),
            Self::Pattern => f.write_str("its body has a fill with a pattern of more than 16 bytes"),
            Self::Kernel { kernel, why } => write!(f, "kernel `{kernel}` cannot be guarded: {why}"),
            Self::Divided { kernel } => {
                write!(f, "kernel `{kernel}` depends on work-groups, and its range has no local size")
            }
            Self::OneItem { kernel } => {
                write!(
                    f,
                    "kernel `{kernel}` has a loop, which the driver compiles wrongly for work-groups of one work-item"
                )
            }
            Self::Anywhere => f.write_str("its condition is in memory of the host, which may begin at any address"),
            Self::Access => f.write_str(
                "kernels must not touch some of its memory, which is in a buffer for reading or writing only",
            ),
            Self::Driver => f.write_str("the driver refused an object that it needs"),
        }
    }
}
