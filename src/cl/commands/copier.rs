//! The kernel that copies data where OpenCL has no command for the copy.

use crate::cl::objects::context::Context;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::program::Program;
use crate::error::Result;

/// Returns the kernel that copies boxes of elements of 1, 4 or 16 bytes. Its program is built once for each context,
/// and the context keeps it.
pub(crate) fn kernel(context: &Context) -> Result<Kernel> {
    let mut known = context.copier();
    let program = match &*known {
        Some(handle) => Program::of_handle(context, handle.try_clone()?),
        None => {
            let program = Program::from_source(context, include_str!("../../../kernels-cl/copy.cl"))?;
            // Only the handle is kept: a `Program` would keep its context, and the context itself keeps this.
            *known = Some(program.handle().try_clone()?);
            program
        }
    };
    program.kernel("clgraph_copy")
}
