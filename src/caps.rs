//! What a device can do, as plain data. The planner and the checks of every front end read this, never a driver.

use std::fmt;

/// A version of OpenCL or OpenCL C, for example 3.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The number before the dot.
    pub major: u32,
    /// The number behind it.
    pub minor: u32,
}

impl Version {
    /// A version from its two numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Reads the first `major.minor` of texts such as `OpenCL 3.0 PoCL HSTR: ...` or `OpenCL C 1.2 PoCL`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let (major, minor) = word.split_once('.')?;
            Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a device can do and where its limits are, read once from the driver.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// let device = clgraph::best_device()?;
/// let caps = device.caps();
/// println!("{}: OpenCL {}, {} compute units", caps.name, caps.version, caps.compute_units);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Caps {
    /// `CL_DEVICE_NAME`.
    pub name: String,
    /// `CL_DEVICE_VENDOR`.
    pub vendor: String,
    /// `CL_PLATFORM_NAME`.
    pub platform: String,
    /// `CL_DRIVER_VERSION`, as the driver writes it.
    pub driver_version: String,
    /// The version of OpenCL that the device has.
    pub version: Version,
    /// Whether the device is a GPU, as far as it says so.
    pub gpu: bool,
    /// Whether it has a compiler for OpenCL C.
    pub compiler: bool,
    /// Bits of its addresses: 32 or 64.
    pub address_bits: u32,
    /// Number of compute units.
    pub compute_units: u32,
    /// Work-items of the largest work-group.
    pub max_work_group_size: usize,
    /// Work-items of the largest work-group, by dimension.
    pub max_work_item_sizes: [usize; 3],
    /// Whether the last work-group of a range may be smaller than the others.
    pub non_uniform_work_groups: bool,
    /// Bytes of global memory.
    pub global_memory: u64,
    /// Bytes of the largest buffer.
    pub max_allocation: u64,
    /// Bytes of local memory of a work-group.
    pub local_memory: u64,
    /// Bytes of all arguments of a kernel together.
    pub max_parameter_size: usize,
    /// Sub-buffers start at a multiple of this many bytes.
    pub sub_buffer_align: usize,
    /// Whether host queues may be out of order.
    pub out_of_order: bool,
    /// Whether host queues may profile.
    pub profiling: bool,
    /// The intermediate languages that programs may be made of, for example `SPIR-V_1.2`. Often none.
    pub il_versions: Vec<String>,
    /// The names of its built-in kernels. Often none.
    pub builtin_kernels: Vec<String>,
    /// The names of its extensions.
    pub extensions: Vec<String>,
}

impl Caps {
    /// Whether the device lists an extension, for example `cl_khr_fp64`.
    #[must_use]
    pub fn has_extension(&self, name: &str) -> bool {
        self.extensions.iter().any(|extension| extension == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    /// Drivers put any text behind the two numbers, and some put it before.
    #[test]
    fn versions_are_read_from_the_texts_that_drivers_write() {
        assert_eq!(Version::parse("OpenCL 3.0 PoCL HSTR: x"), Some(Version::new(3, 0)));
        assert_eq!(Version::parse("OpenCL C 1.2 PoCL"), Some(Version::new(1, 2)));
        assert_eq!(Version::parse("OpenCL 2.1"), Some(Version::new(2, 1)));
        assert_eq!(Version::parse("OpenCL"), None);
        assert!(Version::new(1, 2) < Version::new(2, 0));
    }
}
