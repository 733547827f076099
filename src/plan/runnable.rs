//! Whether the device can run every node at all, by any path.

use super::CommandKind;
use super::{Options, PathReason, PlanError};
use crate::caps::{Caps, Version};
use crate::command::{Command, Form};
use crate::error::ErrorKind;
use crate::ir::{Ir, NodeId};

/// Returns an error for a graph with a node that no path can run on the device.
pub(super) fn check_runnable(ir: &Ir, caps: &Caps, options: &Options<'_>) -> Result<(), PlanError> {
    for node in ir.ids() {
        can_run(node, ir, caps, options).map_err(|(missing, kind)| PlanError::NotRunnable { node, missing, kind })?;
    }
    Ok(())
}

fn can_run(node: NodeId, ir: &Ir, caps: &Caps, options: &Options<'_>) -> Result<(), (String, ErrorKind)> {
    let needs = |version: Version, what: &str| {
        if caps.version >= version {
            return Ok(());
        }
        let missing = format!("{what} needs OpenCL {version}, but the device has {}", caps.version);
        Err((missing, ErrorKind::FeatureNotSupported))
    };
    match ir.command(node) {
        Command::Native { form: Form::Recorded, .. } => {
            let why_not = options.denied.get(&node).copied().or(options.no_native);
            match why_not.or_else(|| caps.can_record(CommandKind::Kernel).err()) {
                Some(why) => {
                    // What a driver refuses for want of memory, it may accept later.
                    let kind = match why {
                        PathReason::Refused(error) => error.kind(),
                        _ => ErrorKind::FeatureNotSupported,
                    };
                    Err((format!("it can only be recorded, but this is not possible: {why}"), kind))
                }
                None => Ok(()),
            }
        }
        Command::Kernel { kernel, .. } if !ir.kernels[kernel.index()].built => Err((
            "its program was not built for this device; build it for this device too".to_owned(),
            ErrorKind::KernelNotSupported,
        )),
        Command::CopyRect(_) => needs(Version::new(1, 1), "a rectangular copy"),
        Command::Fill { .. } => needs(Version::new(1, 2), "a fill"),
        // Every kind is named: the compiler asks what a new one needs.
        Command::Kernel { .. } | Command::Native { .. } | Command::Hint { .. } => Ok(()),
        Command::Copy { .. } | Command::CopyImage(_) | Command::Write { .. } | Command::Read { .. } => Ok(()),
        Command::Empty | Command::Alloc(_) | Command::Free(_) | Command::SubGraph(_) => Ok(()),
        Command::Task(_) | Command::Event { .. } | Command::Control(_) => Ok(()),
    }
}
