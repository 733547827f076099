//! Rule 4 of the checker: by which path commands go.

use super::fail;
use crate::command::{Command, Form};
use crate::ir::Ir;
use crate::plan::{Instruction, Path, Plan, Schedule};

/// What segments hold.
pub(super) fn segments(ir: &Ir, plan: &Plan) -> Result<(), String> {
    let mut next = 0;
    for segment in &plan.segments {
        if segment.steps.start != next || segment.steps.is_empty() {
            return fail(format!("a segment covers {:?} where {next} comes next", segment.steps));
        }
        next = segment.steps.end;
        for step in &plan.steps[segment.steps.clone()] {
            match (ir.command(step.node), segment.path == Path::Native) {
                (Command::Native { form: Form::Enqueued, .. }, true) => {
                    return fail(format!("node {} cannot be recorded", step.node.0));
                }
                (Command::Native { form: Form::Recorded, .. }, false) => {
                    return fail(format!("node {} can only be recorded", step.node.0));
                }
                (Command::Kernel { .. } | Command::Native { .. } | Command::Fill { .. }, true) | (_, false) => {}
                (Command::Copy { .. } | Command::CopyRect(_) | Command::CopyImage(_), true) => {}
                // A transfer from or to the host, a hint, or a new kind: whether it can be held has to be said here.
                (_, true) => return fail(format!("no command buffer can hold node {}", step.node.0)),
            }
        }
    }
    if next == plan.steps.len() { Ok(()) } else { fail(format!("segments end at {next} of {}", plan.steps.len())) }
}

/// What the instructions of a schedule do with segments.
pub(super) fn instructions(ir: &Ir, plan: &Plan, schedule: &Schedule) -> Result<(), String> {
    for instruction in &schedule.instructions {
        let (steps, from_buffers, may_replay) = match instruction {
            Instruction::Run { steps, .. } => (steps, false, true),
            Instruction::Native { steps, only, .. } => (steps, true, !only),
            Instruction::Wait { .. } | Instruction::Barrier { .. } => continue,
        };
        for step in steps.clone() {
            let segment = plan.segments.partition_point(|segment| segment.steps.end <= step);
            let Some(segment) = plan.segments.get(segment) else {
                return fail(format!("step {step} is in no segment"));
            };
            if from_buffers && segment.path != Path::Native {
                return fail(format!("step {step} is taken from a command buffer, but its segment is replayed"));
            }
            let node = plan.steps[step].node;
            if may_replay && matches!(ir.command(node), Command::Native { form: Form::Recorded, .. }) {
                return fail(format!("node {} can only be recorded, but step {step} may be replayed", node.0));
            }
        }
    }
    Ok(())
}
