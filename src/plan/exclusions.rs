//! What excludes a path: the one table of what cannot be combined.

use std::fmt;

use super::{Conflicts, Options, Path, Step};
use crate::caps::Caps;
use crate::command::Command;
use crate::ir::Ir;
use crate::quirks;

/// Why the submissions of an executable never take a path, although it was asked for or might be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[non_exhaustive]
pub enum Exclusion {
    /// Several queues: no two commands can run at the same time.
    OneChain,
    /// Several queues: the driver corrupts memory when several queues run kernels at once.
    UnsafeOverlap,
    /// Several queues: allocations of the graph, or of a sub-graph, share bytes in the order of one queue. More memory
    /// would be needed to keep those apart that several queues use at once. A program that asks for
    /// [`Path::Queues`] gets that memory; the memory of a sub-graph stays as it is.
    GraphMemory,
    /// Several queues: conflicts are allowed, and only the order of one queue makes them harmless.
    AllowedConflicts,
    /// Several queues: a branch or loop is decided on one queue.
    Control,
    /// Several queues: a prefetch or advice may turn out to be no command.
    Hint,
    /// Several queues: the host tasks leave more independent branches than there are queues.
    ManyBranches,
    /// Several queues, or a gate: the function of a native command gets one queue, and may wait for it. One that can only
    /// be recorded needs a command buffer, which these paths do not have.
    NativeCommand,
    /// Replay: a native command can only be recorded.
    OnlyRecorded,
    /// A gate: it holds back all commands, and the host waits for some of them: for a host task, an external event, or a branch or
    /// loop.
    HostNode,
    /// A gate: each command is timed, and would seem to wait.
    Profiled,
    /// A gate: on this driver a transfer of host memory may block until the gate is open.
    HostTransfer,
    /// A gate: the device has no threads of its own, and hangs when a gate is opened.
    NoThreads,
    /// A gate: there is nothing to hold back.
    OneCommand,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneChain => "no two commands can run at the same time",
            Self::UnsafeOverlap => "the driver corrupts memory when several queues run kernels at once",
            Self::GraphMemory => "memory of the graph is shared in the order of one queue",
            Self::AllowedConflicts => "conflicts are allowed, so commands keep the order of one queue",
            Self::Control => "a branch or loop is decided on one queue",
            Self::Hint => "the driver may ignore a prefetch or advice",
            Self::ManyBranches => "host tasks leave more independent branches than there are queues",
            Self::NativeCommand => "a native command may wait for its queue, or needs a command buffer",
            Self::OnlyRecorded => "a native command can only be recorded",
            Self::HostNode => "the host waits for some of the commands, for a host task, an event, a branch or a loop",
            Self::Profiled => "each command is timed",
            Self::HostTransfer => "a transfer of host memory may block on this driver",
            Self::NoThreads => "the device has no threads of its own, and hangs when a user event is completed",
            Self::OneCommand => "there is only one command",
        })
    }
}

/// What is known of a graph before its streams are.
pub(super) struct Facts<'a> {
    pub(super) ir: &'a Ir,
    pub(super) steps: &'a [Step],
    pub(super) has_tasks: bool,
    pub(super) caps: &'a Caps,
    pub(super) options: &'a Options<'a>,
}

impl Facts<'_> {
    fn any(&self, is: impl Fn(&Command<crate::ir::ById>) -> bool) -> bool {
        self.steps.iter().any(|step| is(self.ir.command(step.node)))
    }

    /// Returns whether the program asked for a path, or left it to be found by measuring.
    pub(super) fn wants(&self, path: Path) -> bool {
        self.options.path == path || (self.options.path == Path::Auto && self.options.autotune)
    }

    /// Returns why several queues cannot be used, as far as that is known without the streams.
    pub(super) fn no_queues(&self) -> Option<Exclusion> {
        let rules = [
            (Exclusion::UnsafeOverlap, !quirks::runs_queues_at_once(self.caps)),
            // An update may bring a use of the memory of a sub-graph.
            (Exclusion::GraphMemory, self.ir.shares_bytes && self.options.updatable),
            (Exclusion::AllowedConflicts, self.options.conflicts == Conflicts::Allowed),
            (Exclusion::NativeCommand, self.any(|command| matches!(command, Command::Native { .. }))),
            (Exclusion::Control, !self.ir.bodies.is_empty()),
            (Exclusion::Hint, self.any(|command| matches!(command, Command::Hint { .. }))),
        ];
        rules.into_iter().find(|(_, holds)| *holds).map(|(why, _)| why)
    }

    /// Returns why a gate cannot be used.
    pub(super) fn no_gate(&self) -> Option<Exclusion> {
        // A program that asks for a gate has looked at its transfers.
        let blocks = || {
            let of_host = |command: &Command<_>| matches!(command, Command::Write { .. } | Command::Read { .. });
            self.options.path == Path::Auto && !quirks::gated_transfers_do_not_block(self.caps) && self.any(of_host)
        };
        let rules = [
            (Exclusion::NoThreads, quirks::hangs_when_a_gate_is_opened(self.caps)),
            (Exclusion::OneCommand, self.steps.len() < 2),
            (Exclusion::HostNode, self.has_tasks),
            (Exclusion::Profiled, self.options.profiled),
            (Exclusion::NativeCommand, self.any(|command| matches!(command, Command::Native { .. }))),
            (Exclusion::HostTransfer, blocks()),
        ];
        rules.into_iter().find(|(_, holds)| *holds).map(|(why, _)| why)
    }
}
