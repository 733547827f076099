//! Copies for which OpenCL has no command, as launches of a kernel: rectangles between addresses, and all copies
//! between an address and a buffer.

use crate::cl::commands::copier;
use crate::cl::memory::region::Region;
use crate::error::{BuildCause, Error};
use crate::graph::nodes::launch::Launch;
use crate::graph::nodes::range::Extent;
use crate::graph::nodes::request::Target;
use crate::ir::Mode;

/// A side of a copy in bytes: the region that it touches, and the pitches of rows and slices.
#[derive(Clone, Debug)]
pub(in crate::graph) struct CopySide {
    pub(in crate::graph) region: Region,
    pub(in crate::graph) row: usize,
    pub(in crate::graph) slice: usize,
}

/// Whether a kernel has to copy, because OpenCL has no command for these two kinds of memory.
pub(in crate::graph) fn is_needed(src: &Region, dst: &Region, is_rect: bool) -> bool {
    let (from, into) = (src.mem.kind().is_pointer(), dst.mem.kind().is_pointer());
    from != into || (is_rect && from)
}

/// The launch that copies `size` (bytes of a row, rows, slices).
pub(in crate::graph) fn launch(
    target: &Target<'_>,
    src: &CopySide,
    dst: &CopySide,
    size: [usize; 3],
) -> Result<Launch, BuildCause> {
    // The largest element size that divides all offsets and sizes.
    let of = |side: &CopySide| [side.region.mem.base(), side.region.offset, side.row, side.slice];
    let fits =
        |element: &usize| [of(src), of(dst)].iter().flatten().chain([&size[0]]).all(|bytes| bytes % element == 0);
    let element = [16, 4].into_iter().find(fits).unwrap_or(1);
    let kernel = copier::kernel(target.context).map_err(|error| match error {
        Error::Program(error) => BuildCause::CopyKernel(error),
        Error::Driver(error) => BuildCause::Driver(error),
        error => BuildCause::NotSupported { what: "this copy".to_owned(), why: error.to_string() },
    })?;
    let mut launch = Launch::new(&kernel);
    launch.region(src.region.clone(), Some(Mode::Read));
    launch.region(dst.region.clone(), Some(Mode::Write));
    for side in [src, dst] {
        for bytes in [side.region.offset, side.row, side.slice] {
            launch.value(&((bytes / element) as u64).to_ne_bytes());
        }
    }
    launch.value(&(element as u32).to_ne_bytes());
    launch.range = Some(Extent::of(&[size[0] / element, size[1], size[2]]));
    Ok(launch)
}
