//! What a device can do, as plain data. The planner and the checks of every front end read this, never a driver.

use std::fmt;

/// A version of OpenCL or OpenCL C, for example 3.0. It has these two numbers, and gets no others.
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

/// A version of an extension, for example 0.9.5. Drivers are known to say wrong ones, so clgraph takes it as a hint.
/// It has these three numbers (`cl_version`), and gets no others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtensionVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl ExtensionVersion {
    /// A version from its three numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Unpacks a `cl_version`: 10, 10 and 12 bits.
    pub(crate) const fn unpack(bits: u32) -> Self {
        Self::new(bits >> 22, (bits >> 12) & 0x3FF, bits & 0xFFF)
    }
}

impl fmt::Display for ExtensionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Written as its text.
#[cfg(feature = "serde")]
impl serde::Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Written as its text.
#[cfg(feature = "serde")]
impl serde::Serialize for ExtensionVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    /// The version of OpenCL that the device has (`CL_DEVICE_VERSION`).
    pub version: Version,
    /// Whether the device is a GPU, as far as it says so (`CL_DEVICE_TYPE`).
    pub gpu: bool,
    /// Whether it has a compiler for OpenCL C (`CL_DEVICE_COMPILER_AVAILABLE`).
    pub compiler: bool,
    /// Bits of its addresses: 32 or 64 (`CL_DEVICE_ADDRESS_BITS`).
    pub address_bits: u32,
    /// Number of compute units (`CL_DEVICE_MAX_COMPUTE_UNITS`).
    pub compute_units: u32,
    /// Work-items of the largest work-group (`CL_DEVICE_MAX_WORK_GROUP_SIZE`). A kernel may have less.
    pub max_work_group_size: usize,
    /// Work-items of the largest work-group in each of the first three dimensions (`CL_DEVICE_MAX_WORK_ITEM_SIZES`).
    pub max_work_item_sizes: [usize; 3],
    /// Whether the last work-group of a range may be smaller than the others
    /// (`CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT`).
    pub non_uniform_work_groups: bool,
    /// Bytes of global memory (`CL_DEVICE_GLOBAL_MEM_SIZE`).
    pub global_memory: u64,
    /// Bytes of the largest buffer (`CL_DEVICE_MAX_MEM_ALLOC_SIZE`).
    pub max_allocation: u64,
    /// Bytes of local memory of a work-group (`CL_DEVICE_LOCAL_MEM_SIZE`).
    pub local_memory: u64,
    /// Bytes of all arguments of a kernel together (`CL_DEVICE_MAX_PARAMETER_SIZE`).
    pub max_parameter_size: usize,
    /// Sub-buffers start at a multiple of this many bytes (`CL_DEVICE_MEM_BASE_ADDR_ALIGN`, which is in bits).
    pub sub_buffer_align: usize,
    /// Whether host queues may be out of order (`CL_DEVICE_QUEUE_PROPERTIES`).
    pub out_of_order: bool,
    /// Whether host queues may profile (`CL_DEVICE_QUEUE_PROPERTIES`).
    pub profiling: bool,
    /// The intermediate languages that programs may be made of, for example `SPIR-V_1.2` (`CL_DEVICE_IL_VERSION`).
    /// Often none.
    pub il_versions: Vec<String>,
    /// The names of its built-in kernels (`CL_DEVICE_BUILT_IN_KERNELS`). Often none.
    pub builtin_kernels: Vec<String>,
    /// The names of its extensions (`CL_DEVICE_EXTENSIONS`).
    pub extensions: Vec<String>,
    /// Kinds of shared virtual memory.
    pub svm: Svm,
    /// Kinds of unified shared memory (`cl_intel_unified_shared_memory`), where the device has any.
    pub usm: Option<Usm>,
    /// Bytes of the largest program-scope variable (`CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE`); 0 where programs cannot have
    /// any.
    pub max_global_variable_size: usize,
    /// Whether the driver can read and write program-scope variables by name (`cl_intel_global_variable_access`). Intel's
    /// CPU runtime has the functions and does not list the extension, so this tells of the functions.
    pub named_global_access: bool,
    /// Images, where the device has any.
    pub images: Option<ImageCaps>,
    /// Command buffers, where the driver lists `cl_khr_command_buffer` or has its functions.
    pub command_buffers: Option<CommandBufferCaps>,
}

/// What a device can do with images, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ImageCaps {
    /// Width and height of the largest image of two dimensions (`CL_DEVICE_IMAGE2D_MAX_WIDTH`, `_HEIGHT`); the width is
    /// that of one dimension too.
    pub max_2d: [usize; 2],
    /// Sizes of the largest image of three dimensions (`CL_DEVICE_IMAGE3D_MAX_WIDTH`, `_HEIGHT`, `_DEPTH`).
    pub max_3d: [usize; 3],
    /// Layers of the largest array (`CL_DEVICE_IMAGE_MAX_ARRAY_SIZE`).
    pub max_layers: usize,
    /// Pixels of the largest `image1d_buffer_t` (`CL_DEVICE_IMAGE_MAX_BUFFER_SIZE`).
    pub max_buffer: usize,
    /// How many images a kernel can read (`CL_DEVICE_MAX_READ_IMAGE_ARGS`).
    pub max_read: u32,
    /// How many images a kernel can write (`CL_DEVICE_MAX_WRITE_IMAGE_ARGS`).
    pub max_write: u32,
    /// How many images a kernel can both read and write (`CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS`); 0 where it cannot.
    pub max_read_write: u32,
    /// How many samplers a kernel can have (`CL_DEVICE_MAX_SAMPLERS`).
    pub max_samplers: u32,
    /// Pixels of which the row pitch of an image of two dimensions that is made of a buffer is a multiple
    /// (`CL_DEVICE_IMAGE_PITCH_ALIGNMENT`). None where there are no such images.
    pub buffer_pitch: Option<usize>,
    /// Whether kernels can write images of three dimensions.
    pub writes_3d: bool,
}

/// Kinds of shared virtual memory that a device has (`CL_DEVICE_SVM_CAPABILITIES`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Svm {
    /// Buffers that the host maps to use.
    pub coarse_grain_buffer: bool,
    /// Buffers that host and device use at once.
    pub fine_grain_buffer: bool,
    /// All memory of the host.
    pub fine_grain_system: bool,
    /// Atomics that host and device share.
    pub atomics: bool,
}

/// Kinds of unified shared memory that a device has, and whether kernels may use them at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Usm {
    /// Host allocations (`CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL`).
    pub host: bool,
    /// Device allocations (`CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL`).
    pub device: bool,
    /// Shared allocations of one device (`CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL`).
    pub shared: bool,
    /// Shared allocations of several devices (`CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL`).
    pub cross_device: bool,
    /// All memory of the host (`CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL`).
    pub system: bool,
}

/// How kernels get to device globals ([`DeviceGlobal`](crate::DeviceGlobal)): to the memory that all programs share, or that is
/// one program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum GlobalWay {
    /// The program has a pointer, which is written by its name (`cl_intel_global_variable_access`). What is one program's own is
    /// a variable of the program, where the driver tells its address.
    NamedWrite,
    /// The program has a pointer, which a small kernel sets when the program was built.
    Kernel,
    /// Kernels have an argument more, which users do not see.
    Argument,
}

impl fmt::Display for GlobalWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NamedWrite => "a pointer that is written by name",
            Self::Kernel => "a pointer that a kernel sets",
            Self::Argument => "a hidden argument",
        })
    }
}

impl Caps {
    /// The ways by which kernels can get to device globals, best first. The first is taken, unless
    /// [`ProgramBuilder::globals_by`](crate::ProgramBuilder::globals_by) or the environment variable `CLGRAPH_GLOBALS` says
    /// another, or the program is built for a version of OpenCL C without variables.
    #[must_use]
    pub fn global_ways(&self) -> Vec<GlobalWay> {
        let mut ways = Vec::new();
        let has_pointers = self.max_global_variable_size >= size_of::<u64>() && self.own_memory_kind().is_pointer();
        if has_pointers && self.named_global_access {
            ways.push(GlobalWay::NamedWrite);
        }
        if has_pointers {
            ways.push(GlobalWay::Kernel);
        }
        ways.push(GlobalWay::Argument);
        ways
    }

    /// What the device has for its own use: memory with an address, where there is such.
    pub(crate) fn own_memory_kind(&self) -> MemoryKind {
        let kinds = [MemoryKind::UsmDevice, MemoryKind::SvmCoarse];
        kinds.into_iter().find(|kind| self.has_memory(*kind)).unwrap_or(MemoryKind::Buffer)
    }
}

/// Kinds of memory that kernels take as a global pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum MemoryKind {
    /// A `cl_mem`, which every device has. It has no address on the host.
    Buffer,
    /// USM on the device, which the host cannot reach (`clDeviceMemAllocINTEL`).
    UsmDevice,
    /// USM on the host, which the device can reach (`clHostMemAllocINTEL`).
    UsmHost,
    /// USM that moves between host and device (`clSharedMemAllocINTEL`).
    UsmShared,
    /// SVM that the host maps before it reaches it (`clSVMAlloc`).
    SvmCoarse,
    /// SVM that host and device reach alike (`clSVMAlloc` with `CL_MEM_SVM_FINE_GRAIN_BUFFER`).
    SvmFine,
}

impl MemoryKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Buffer, Self::UsmDevice, Self::UsmHost, Self::UsmShared, Self::SvmCoarse, Self::SvmFine];

    /// Whether the host may read and write it by its address while no command uses it: see [`Memory::host`](crate::Memory::host).
    #[must_use]
    pub const fn is_host_accessible(self) -> bool {
        matches!(self, Self::UsmHost | Self::UsmShared | Self::SvmFine)
    }

    /// Whether it is reached by an address instead of a `cl_mem`.
    #[must_use]
    pub const fn is_pointer(self) -> bool {
        !matches!(self, Self::Buffer)
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffer => "buffer",
            Self::UsmDevice => "USM device memory",
            Self::UsmHost => "USM host memory",
            Self::UsmShared => "USM shared memory",
            Self::SvmCoarse => "coarse-grain SVM",
            Self::SvmFine => "fine-grain SVM",
        })
    }
}

impl Caps {
    /// Whether a device has memory of a kind.
    #[must_use]
    pub fn has_memory(&self, kind: MemoryKind) -> bool {
        let usm = self.usm.unwrap_or_default();
        match kind {
            MemoryKind::Buffer => true,
            MemoryKind::UsmDevice => usm.device,
            MemoryKind::UsmHost => usm.host,
            MemoryKind::UsmShared => usm.shared,
            MemoryKind::SvmCoarse => self.svm.coarse_grain_buffer,
            MemoryKind::SvmFine => self.svm.fine_grain_buffer,
        }
    }
}

/// How it is known that a driver has command buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Claim {
    /// The device lists `cl_khr_command_buffer`.
    Listed,
    /// It does not, and `CLGRAPH_ASSUME` says so.
    Assumed,
    /// It does not, and the driver has functions of it. clgraph does not use them.
    Hidden,
}

/// What a device says of its command buffers (`cl_khr_command_buffer`), and what its driver lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CommandBufferCaps {
    /// How it is known that the driver has command buffers.
    pub claim: Claim,
    /// The revision that the driver names, where it names one.
    pub version: Option<ExtensionVersion>,
    /// What `CLGRAPH_ASSUME` says of it and the driver does not, in the words of that variable.
    pub assumed: Vec<&'static str>,
    /// Functions that the driver does not have, and without which nothing can be recorded.
    pub missing: Vec<&'static str>,
    /// Functions that the driver does not have, and that record one kind of command.
    pub missing_commands: Vec<&'static str>,
    /// Recorded kernels may print (this and the next two: `CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR`).
    pub kernel_printf: bool,
    /// Recorded kernels may enqueue kernels.
    pub device_side_enqueue: bool,
    /// A command buffer may be enqueued again while it runs.
    pub simultaneous_use: bool,
    /// Properties that a queue must have to record for it, and to run it
    /// (`CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR`).
    pub required_queue: QueueKinds,
    /// Properties that a queue may have (`CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR`). `None`: the driver
    /// does not tell (before 0.9.6).
    pub supported_queue: Option<QueueKinds>,
    /// What can be changed in recorded kernels (`cl_khr_command_buffer_mutable_dispatch`), where the device can.
    pub mutable: Option<MutableCaps>,
}

impl Default for CommandBufferCaps {
    /// A device that lists the extension and says no more.
    fn default() -> Self {
        Self {
            claim: Claim::Listed,
            version: None,
            assumed: Vec::new(),
            missing: Vec::new(),
            missing_commands: Vec::new(),
            kernel_printf: false,
            device_side_enqueue: false,
            simultaneous_use: false,
            required_queue: QueueKinds::default(),
            supported_queue: None,
            mutable: None,
        }
    }
}

/// Properties of queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct QueueKinds {
    /// Out-of-order queues.
    pub out_of_order: bool,
    /// Queues that profile.
    pub profiling: bool,
}

/// What can be changed in recorded kernels (`CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MutableCaps {
    /// The revision that the driver names, where it names one.
    pub version: Option<ExtensionVersion>,
    /// The global offset.
    pub global_offset: bool,
    /// The range.
    pub global_size: bool,
    /// The work-group size.
    pub local_size: bool,
    /// Arguments.
    pub arguments: bool,
    /// Lists of indirectly used memory.
    pub exec_info: bool,
}

impl MutableCaps {
    /// The names of the fields that can be changed, in the order of the specification.
    #[must_use]
    pub fn fields(&self) -> Vec<&'static str> {
        let all = [
            (self.global_offset, "global offset"),
            (self.global_size, "global size"),
            (self.local_size, "local size"),
            (self.arguments, "arguments"),
            (self.exec_info, "exec info"),
        ];
        all.into_iter().filter_map(|(has, name)| has.then_some(name)).collect()
    }
}

/// Which of the two signatures a driver's functions that record commands have: see [`Device::abi`](crate::Device::abi).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum RecordAbi {
    /// That of revisions 0.9.0 to 0.9.4.
    WithoutProperties,
    /// That of revision 0.9.5 and later.
    WithProperties,
}

impl fmt::Display for RecordAbi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WithoutProperties => "without properties (0.9.0 to 0.9.4)",
            Self::WithProperties => "with properties (0.9.5 and later)",
        })
    }
}

/// Which of its two signatures a driver's `clUpdateMutableCommandsKHR` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum UpdateAbi {
    /// That of revisions 0.9.0 and 0.9.1.
    LinkedList,
    /// That of revision 0.9.2 and later.
    Array,
}

impl UpdateAbi {
    /// The signature that fits what a driver says and what was found of its record functions: arrays came with the newer
    /// record functions. Where the two contradict each other there is none, and updating is not tried.
    pub(crate) fn credible(version: Option<ExtensionVersion>, record: RecordAbi) -> Option<Self> {
        let arrays = version.map(|version| version >= ExtensionVersion::new(0, 9, 2));
        match (arrays, record) {
            (Some(true) | None, RecordAbi::WithProperties) => Some(Self::Array),
            (Some(false) | None, RecordAbi::WithoutProperties) => Some(Self::LinkedList),
            _ => None,
        }
    }
}

impl fmt::Display for UpdateAbi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LinkedList => "linked list (0.9.0 and 0.9.1)",
            Self::Array => "arrays (0.9.2 and later)",
        })
    }
}

/// The signatures of a driver's command-buffer functions. Versions are no guide to them: clgraph tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Abi {
    /// Of the functions that record.
    pub record: RecordAbi,
    /// Of the function that changes what was recorded, where the driver has one that can be called with confidence.
    pub update: Option<UpdateAbi>,
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
    use super::*;

    #[test]
    fn extension_versions_are_unpacked_as_the_specification_packs_them() {
        assert_eq!(ExtensionVersion::unpack((9 << 12) | 5), ExtensionVersion::new(0, 9, 5));
        assert_eq!(ExtensionVersion::unpack(1 << 22), ExtensionVersion::new(1, 0, 0));
        assert_eq!(ExtensionVersion::new(0, 9, 5).to_string(), "0.9.5");
    }

    #[test]
    fn versions_that_contradict_the_record_functions_are_not_believed() {
        use RecordAbi::{WithProperties, WithoutProperties};
        let version = |patch| Some(ExtensionVersion::new(0, 9, patch));
        assert_eq!(UpdateAbi::credible(version(1), WithoutProperties), Some(UpdateAbi::LinkedList));
        assert_eq!(UpdateAbi::credible(version(3), WithProperties), Some(UpdateAbi::Array));
        assert_eq!(UpdateAbi::credible(None, WithProperties), Some(UpdateAbi::Array));
        assert_eq!(UpdateAbi::credible(None, WithoutProperties), Some(UpdateAbi::LinkedList));
        assert_eq!(UpdateAbi::credible(version(1), WithProperties), None);
        assert_eq!(UpdateAbi::credible(version(2), WithoutProperties), None);
    }

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
