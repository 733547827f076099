//! The capabilities of a device, as plain data. The planner and the checks of the API read this data; they never ask a
//! driver.

use std::fmt;

/// A version of OpenCL or OpenCL C, for example 3.0. These two numbers are all that it will ever have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

impl Version {
    /// Makes a version from its two numbers.
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

/// A version of an extension, for example 0.9.5 (`cl_version`). Some drivers report a wrong version, so clgraph uses it
/// as a hint only. These three numbers are all that it will ever have.
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
    /// Makes a version from its three numbers.
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

/// Serialized as text, for example `3.0`.
#[cfg(feature = "serde")]
impl serde::Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Serialized as text, for example `0.9.5`.
#[cfg(feature = "serde")]
impl serde::Serialize for ExtensionVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The capabilities and limits of a device, read once from the driver.
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
    /// The version of OpenCL that the device supports (`CL_DEVICE_VERSION`).
    pub version: Version,
    /// Whether the device reports that it is a GPU (`CL_DEVICE_TYPE`).
    pub gpu: bool,
    /// Whether the device has a compiler for OpenCL C (`CL_DEVICE_COMPILER_AVAILABLE`).
    pub compiler: bool,
    /// Number of bits of an address: 32 or 64 (`CL_DEVICE_ADDRESS_BITS`).
    pub address_bits: u32,
    /// Number of compute units (`CL_DEVICE_MAX_COMPUTE_UNITS`).
    pub compute_units: u32,
    /// Largest number of work-items in a work-group (`CL_DEVICE_MAX_WORK_GROUP_SIZE`). The limit of a kernel may be
    /// lower.
    pub max_work_group_size: usize,
    /// Largest number of work-items of a work-group in each of the first three dimensions
    /// (`CL_DEVICE_MAX_WORK_ITEM_SIZES`).
    pub max_work_item_sizes: [usize; 3],
    /// Whether the last work-group of a range may be smaller than the others
    /// (`CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT`).
    pub non_uniform_work_groups: bool,
    /// Size of global memory in bytes (`CL_DEVICE_GLOBAL_MEM_SIZE`).
    pub global_memory: u64,
    /// Size of the largest buffer in bytes (`CL_DEVICE_MAX_MEM_ALLOC_SIZE`).
    pub max_allocation: u64,
    /// Size of the local memory of a work-group in bytes (`CL_DEVICE_LOCAL_MEM_SIZE`).
    pub local_memory: u64,
    /// Largest size in bytes of all arguments of a kernel together (`CL_DEVICE_MAX_PARAMETER_SIZE`).
    pub max_parameter_size: usize,
    /// A sub-buffer must start at a multiple of this number of bytes (`CL_DEVICE_MEM_BASE_ADDR_ALIGN`, which is in
    /// bits).
    pub sub_buffer_align: usize,
    /// Whether host queues can be out-of-order (`CL_DEVICE_QUEUE_PROPERTIES`).
    pub out_of_order: bool,
    /// Whether host queues can profile (`CL_DEVICE_QUEUE_PROPERTIES`).
    pub profiling: bool,
    /// The intermediate languages from which programs can be made, for example `SPIR-V_1.2` (`CL_DEVICE_IL_VERSION`).
    /// Many devices have none.
    pub il_versions: Vec<String>,
    /// The names of the built-in kernels (`CL_DEVICE_BUILT_IN_KERNELS`). Many devices have none.
    pub builtin_kernels: Vec<String>,
    /// The names of the extensions (`CL_DEVICE_EXTENSIONS`).
    pub extensions: Vec<String>,
    /// The supported kinds of shared virtual memory.
    pub svm: Svm,
    /// The supported kinds of unified shared memory (`cl_intel_unified_shared_memory`), or `None` if the device has
    /// none.
    pub usm: Option<Usm>,
    /// Size in bytes of the largest program-scope variable (`CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE`), or 0 if programs
    /// cannot have such variables.
    pub max_global_variable_size: usize,
    /// Whether the driver can read and write program-scope variables by name. True if the driver has the functions of
    /// `cl_intel_global_variable_access`: Intel's CPU runtime has the functions, but does not list the extension.
    pub named_global_access: bool,
    /// Limits of images, or `None` if the device has no images.
    pub images: Option<ImageCaps>,
    /// Command-buffer capabilities, or `None` if the driver neither lists `cl_khr_command_buffer` nor has its
    /// functions.
    pub command_buffers: Option<CommandBufferCaps>,
}

/// The limits of a device for images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ImageCaps {
    /// Largest width and height in pixels of a two-dimensional image (`CL_DEVICE_IMAGE2D_MAX_WIDTH`, `_HEIGHT`). The
    /// width is the limit for one-dimensional images too.
    pub max_2d: [usize; 2],
    /// Largest width, height and depth in pixels of a three-dimensional image (`CL_DEVICE_IMAGE3D_MAX_WIDTH`,
    /// `_HEIGHT`, `_DEPTH`).
    pub max_3d: [usize; 3],
    /// Largest number of layers of an image array (`CL_DEVICE_IMAGE_MAX_ARRAY_SIZE`).
    pub max_layers: usize,
    /// Largest number of pixels of an `image1d_buffer_t` (`CL_DEVICE_IMAGE_MAX_BUFFER_SIZE`).
    pub max_buffer: usize,
    /// How many images one kernel can read (`CL_DEVICE_MAX_READ_IMAGE_ARGS`).
    pub max_read: u32,
    /// How many images one kernel can write (`CL_DEVICE_MAX_WRITE_IMAGE_ARGS`).
    pub max_write: u32,
    /// How many images one kernel can both read and write (`CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS`), or 0 if kernels
    /// cannot.
    pub max_read_write: u32,
    /// How many samplers one kernel can have (`CL_DEVICE_MAX_SAMPLERS`).
    pub max_samplers: u32,
    /// The row pitch of a two-dimensional image that is made of a buffer must be a multiple of this number of pixels
    /// (`CL_DEVICE_IMAGE_PITCH_ALIGNMENT`). `None` if the device has no such images.
    pub buffer_pitch: Option<usize>,
    /// Whether kernels can write three-dimensional images.
    pub writes_3d: bool,
}

/// The kinds of shared virtual memory that a device supports (`CL_DEVICE_SVM_CAPABILITIES`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Svm {
    /// Coarse-grain buffers, which the host must map before it uses them.
    pub coarse_grain_buffer: bool,
    /// Fine-grain buffers, which host and device can use at once.
    pub fine_grain_buffer: bool,
    /// Kernels can use all host memory.
    pub fine_grain_system: bool,
    /// Atomic operations that host and device share.
    pub atomics: bool,
}

/// The kinds of unified shared memory that kernels of a device can use.
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
    /// All host memory (`CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL`).
    pub system: bool,
}

/// How kernels access device globals ([`DeviceGlobal`](crate::DeviceGlobal)). The memory of a device global is shared
/// by all programs of a context, or belongs to one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum GlobalAccess {
    /// The program has a pointer, and clgraph writes the pointer by its name (`cl_intel_global_variable_access`). A
    /// device global that belongs to one program is a variable of that program, if the driver reports its address.
    NamedWrite,
    /// The program has a pointer, and a small kernel sets it after the program is built.
    Kernel,
    /// Kernels have one additional argument for each device global. clgraph sets it, and users do not see it.
    Argument,
}

impl fmt::Display for GlobalAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NamedWrite => "a pointer that is written by name",
            Self::Kernel => "a pointer that a kernel sets",
            Self::Argument => "a hidden argument",
        })
    }
}

impl Caps {
    /// Returns the access methods by which kernels can reach device globals, best first.
    ///
    /// clgraph uses the first method, unless [`ProgramBuilder::global_access`](crate::ProgramBuilder::global_access) or
    /// the environment variable `CLGRAPH_GLOBALS` names another. A program that is built for a version of OpenCL C
    /// without program-scope variables uses [`GlobalAccess::Argument`].
    #[must_use]
    pub fn global_access(&self) -> Vec<GlobalAccess> {
        let mut methods = Vec::new();
        let has_pointers = self.max_global_variable_size >= size_of::<u64>() && self.own_memory_kind().is_pointer();
        if has_pointers && self.named_global_access {
            methods.push(GlobalAccess::NamedWrite);
        }
        if has_pointers {
            methods.push(GlobalAccess::Kernel);
        }
        methods.push(GlobalAccess::Argument);
        methods
    }

    /// Returns the kind of memory that clgraph allocates on the device for its own use: memory with an address if the
    /// device has such memory.
    pub(crate) fn own_memory_kind(&self) -> MemoryKind {
        let kinds = [MemoryKind::UsmDevice, MemoryKind::SvmCoarse];
        kinds.into_iter().find(|kind| self.has_memory(*kind)).unwrap_or(MemoryKind::Buffer)
    }
}

/// Where the memory of a [`MemoryPool`](crate::MemoryPool) lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PoolKind {
    /// Device memory.
    #[default]
    Device,
    /// Host memory that the device can access.
    Host,
    /// Memory that moves between host and device.
    Shared,
}

impl fmt::Display for PoolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "device",
            Self::Host => "host",
            Self::Shared => "shared",
        })
    }
}

/// The kinds of memory that a kernel can take as a global pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum MemoryKind {
    /// A `cl_mem`. Every device has this kind. It has no address on the host.
    Buffer,
    /// USM on the device, which the host cannot access (`clDeviceMemAllocINTEL`).
    UsmDevice,
    /// USM on the host, which the device can access (`clHostMemAllocINTEL`).
    UsmHost,
    /// USM that moves between host and device (`clSharedMemAllocINTEL`).
    UsmShared,
    /// SVM that the host must map before it accesses it (`clSVMAlloc`).
    SvmCoarse,
    /// SVM that host and device can access without a map (`clSVMAlloc` with `CL_MEM_SVM_FINE_GRAIN_BUFFER`).
    SvmFine,
}

impl MemoryKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Buffer, Self::UsmDevice, Self::UsmHost, Self::UsmShared, Self::SvmCoarse, Self::SvmFine];

    /// Returns whether the host may read and write this memory through its address while no command uses it: see
    /// [`Memory::host`](crate::Memory::host).
    #[must_use]
    pub const fn is_host_accessible(self) -> bool {
        matches!(self, Self::UsmHost | Self::UsmShared | Self::SvmFine)
    }

    /// Returns whether this memory is an address instead of a `cl_mem`.
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
    /// Returns whether the device has this kind of memory.
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

    /// Returns whether command buffers run on queues with profiling.
    pub(crate) fn records_for_profiling(&self) -> bool {
        let queues = self.command_buffers.as_ref().and_then(|caps| caps.supported_queue);
        queues.is_none_or(|queues| queues.profiling)
    }
}

/// How clgraph knows that a driver has command buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum DetectedBy {
    /// The device lists `cl_khr_command_buffer`.
    Listed,
    /// The device does not list the extension, but `CLGRAPH_ASSUME` says that the device has it.
    Assumed,
    /// The device does not list the extension, but the driver has functions of it. clgraph does not use them.
    Hidden,
}

/// The command-buffer capabilities that a device reports (`cl_khr_command_buffer`), and what its driver lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CommandBufferCaps {
    /// How clgraph knows that the driver has command buffers.
    pub detected_by: DetectedBy,
    /// The revision that the driver reports, or `None` if it reports none.
    pub version: Option<ExtensionVersion>,
    /// The features that `CLGRAPH_ASSUME` adds and the driver does not report, in the words of that variable.
    pub assumed: Vec<&'static str>,
    /// Functions that the driver lacks, and without which clgraph cannot record anything.
    pub missing: Vec<&'static str>,
    /// Functions that the driver lacks, each of which records one kind of command.
    pub missing_commands: Vec<&'static str>,
    /// Whether recorded kernels may print (this and the next two fields: `CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR`).
    pub kernel_printf: bool,
    /// Whether recorded kernels may enqueue kernels.
    pub device_side_enqueue: bool,
    /// Whether a command buffer may be enqueued again while it runs.
    pub simultaneous_use: bool,
    /// Properties that a queue must have if a command buffer is recorded for it or runs on it
    /// (`CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR`).
    pub required_queue: QueueKinds,
    /// Properties that a queue may have (`CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR`), or `None` if the
    /// driver does not report them (before revision 0.9.6).
    pub supported_queue: Option<QueueKinds>,
    /// What can be changed in recorded kernels (`cl_khr_command_buffer_mutable_dispatch`), or `None` if nothing can.
    pub mutable: Option<MutableCaps>,
}

impl Default for CommandBufferCaps {
    /// Returns the capabilities of a device that lists the extension and reports nothing else.
    fn default() -> Self {
        Self {
            detected_by: DetectedBy::Listed,
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
    /// The revision that the driver reports, or `None` if it reports none.
    pub version: Option<ExtensionVersion>,
    /// The global offset.
    pub global_offset: bool,
    /// The global size.
    pub global_size: bool,
    /// The work-group size.
    pub local_size: bool,
    /// Arguments.
    pub arguments: bool,
    /// The list of memory that the kernel uses indirectly (`clSetKernelExecInfo`).
    pub exec_info: bool,
}

impl MutableCaps {
    /// Returns the names of the fields that can be changed, in the order of the specification.
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

/// The two signatures that a driver's functions that record commands can have: see [`Device::abi`](crate::Device::abi).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum RecordAbi {
    /// The signature of revisions 0.9.0 to 0.9.4.
    WithoutProperties,
    /// The signature of revision 0.9.5 and later.
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

/// The two signatures that a driver's `clUpdateMutableCommandsKHR` can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum UpdateAbi {
    /// The signature of revisions 0.9.0 and 0.9.1.
    LinkedList,
    /// The signature of revision 0.9.2 and later.
    Array,
}

impl UpdateAbi {
    /// Returns the signature that agrees with both the version that the driver reports and the signature of its record
    /// functions. The signature with arrays is as new as the newer record functions.
    ///
    /// Returns `None` if the two contradict each other. clgraph then does not update recorded commands.
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

/// The signatures of a driver's command-buffer functions. clgraph finds them by trial, because the reported versions
/// are not reliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Abi {
    /// The signature of the functions that record commands.
    pub record: RecordAbi,
    /// The signature of the function that updates recorded commands, or `None` if the driver has none or its signature
    /// is uncertain.
    pub update: Option<UpdateAbi>,
}

impl Caps {
    /// Returns whether the device lists an extension, for example `cl_khr_fp64`.
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

    /// Drivers write any text after the two numbers, and some write text before them.
    #[test]
    fn versions_are_read_from_the_texts_that_drivers_write() {
        assert_eq!(Version::parse("OpenCL 3.0 PoCL HSTR: x"), Some(Version::new(3, 0)));
        assert_eq!(Version::parse("OpenCL C 1.2 PoCL"), Some(Version::new(1, 2)));
        assert_eq!(Version::parse("OpenCL 2.1"), Some(Version::new(2, 1)));
        assert_eq!(Version::parse("OpenCL"), None);
        assert!(Version::new(1, 2) < Version::new(2, 0));
    }
}
