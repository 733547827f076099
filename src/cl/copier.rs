//! The kernels that copy where OpenCL has no command.

use super::context::Context;
use super::kernel::Kernel;
use super::program::Program;
use crate::error::Result;

/// The kernel that copies elements of 1, 4 or 16 bytes.
///
/// Its program is built once for a context, and is there as long as a kernel of it is used.
pub(crate) fn kernel(context: &Context, element: usize) -> Result<Kernel> {
    let mut known = context.copier();
    let program = match known.upgrade() {
        Some(program) => program,
        None => {
            let program = Program::from_source(context, include_str!("../../kernels-cl/copy.cl"))?;
            *known = program.downgrade();
            program
        }
    };
    program.kernel(match element {
        16 => "clgraph_copy_16",
        4 => "clgraph_copy_4",
        _ => "clgraph_copy_1",
    })
}
