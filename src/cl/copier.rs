//! The kernel that copies where OpenCL has no command.

use super::context::Context;
use super::kernel::Kernel;
use super::program::Program;
use crate::error::Result;

/// The kernel that copies boxes of elements of 1, 4 or 16 bytes. Its program is built once for a context, which keeps it.
pub(crate) fn kernel(context: &Context) -> Result<Kernel> {
    let mut known = context.copier();
    let program = match &*known {
        Some(handle) => Program::of_handle(context, handle.try_clone()?),
        None => {
            let program = Program::from_source(context, include_str!("../../kernels-cl/copy.cl"))?;
            // The handle alone: a program keeps its context.
            *known = Some(program.handle().try_clone()?);
            program
        }
    };
    program.kernel("clgraph_copy")
}
