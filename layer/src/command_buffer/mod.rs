//! Command buffers as the specification has them: what is right, and in which order commands run. There is no OpenCL call and no
//! unsafe code here, so all of it is tested without a device.
//!
//! - [`version`]: the revision that the layer reports, and the lists of extensions with it.
//! - [`properties`]: lists of names and values.
//! - [`ranges`]: what buffer, image and pointer commands may touch.
//! - [`launch`]: work-items and work-groups.
//! - [`order`]: which commands a command runs after.
//! - [`arguments`]: which values the arguments of a kernel have.
//! - [`capture`]: how a capture stands.
//! - [`handles`]: live objects by their handles, and sync points.
//!
//! A check returns the status that the specification has for the fault.

pub(crate) mod arguments;
pub(crate) mod capture;
pub(crate) mod handles;
pub(crate) mod launch;
pub(crate) mod order;
pub(crate) mod properties;
pub(crate) mod ranges;
pub(crate) mod version;

use opencl_sys::cl_int;

/// A result with a status of OpenCL for the fault.
pub(crate) type Checked<T = ()> = Result<T, cl_int>;

/// Fails with a status unless something holds.
pub(crate) fn ensure(holds: bool, status: cl_int) -> Checked {
    if holds { Ok(()) } else { Err(status) }
}
