//! Reads the capabilities of a device, once.

use std::ffi::c_void;

use opencl_sys::{
    CL_DEVICE_ADDRESS_BITS, CL_DEVICE_BUILT_IN_KERNELS, CL_DEVICE_COMPILER_AVAILABLE,
    CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
    CL_DEVICE_EXTENSIONS, CL_DEVICE_EXTENSIONS_WITH_VERSION, CL_DEVICE_GLOBAL_MEM_SIZE,
    CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, CL_DEVICE_IL_VERSION, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE,
    CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, CL_DEVICE_IMAGE_PITCH_ALIGNMENT, CL_DEVICE_IMAGE_SUPPORT,
    CL_DEVICE_IMAGE2D_MAX_HEIGHT, CL_DEVICE_IMAGE2D_MAX_WIDTH, CL_DEVICE_IMAGE3D_MAX_DEPTH,
    CL_DEVICE_IMAGE3D_MAX_HEIGHT, CL_DEVICE_IMAGE3D_MAX_WIDTH, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_COMPUTE_UNITS,
    CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_PARAMETER_SIZE,
    CL_DEVICE_MAX_READ_IMAGE_ARGS, CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, CL_DEVICE_MAX_SAMPLERS,
    CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_MAX_WRITE_IMAGE_ARGS,
    CL_DEVICE_MEM_BASE_ADDR_ALIGN, CL_DEVICE_NAME, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT,
    CL_DEVICE_QUEUE_PROPERTIES, CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL,
    CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, CL_DEVICE_SVM_ATOMICS, CL_DEVICE_SVM_CAPABILITIES,
    CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, CL_DEVICE_SVM_FINE_GRAIN_SYSTEM,
    CL_DEVICE_TYPE, CL_DEVICE_TYPE_GPU, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION, CL_PLATFORM_NAME,
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROFILING_ENABLE, cl_device_info, cl_platform_id,
};

use crate::caps::{
    Caps, CommandBufferCaps, DetectedBy, ExtensionVersion, ImageCaps, MutableCaps, QueueKinds, Svm, Usm, Version,
};
use crate::cl::query::extensions::Extensions;
use crate::cl::query::info::{self, ask};
use crate::env::Assume;
use crate::error::DriverError;
use crate::ffi::command_buffer as cb;
use crate::ffi::core::Core;
use crate::ffi::mutable_dispatch as md;

/// Makes the queries of one device.
#[derive(Clone, Copy)]
struct Ask {
    core: &'static Core,
    device: *mut c_void,
}

const CALL: &str = "clGetDeviceInfo";

impl Ask {
    fn text(self, name: cl_device_info) -> Result<String, DriverError> {
        info::text(CALL, ask!(self.core, clGetDeviceInfo, self.device, name))
    }

    fn number(self, name: cl_device_info) -> Result<u32, DriverError> {
        info::value(CALL, ask!(self.core, clGetDeviceInfo, self.device, name))
    }

    /// Also used for bit fields.
    fn long(self, name: cl_device_info) -> Result<u64, DriverError> {
        info::value(CALL, ask!(self.core, clGetDeviceInfo, self.device, name))
    }

    fn size(self, name: cl_device_info) -> Result<usize, DriverError> {
        info::value(CALL, ask!(self.core, clGetDeviceInfo, self.device, name))
    }
}

/// Queries the driver, and adds what the expert assumes in `assume`.
pub(in crate::cl) fn read(
    core: &'static Core,
    platform: cl_platform_id,
    device: *mut c_void,
    extensions: &Extensions,
    assume: Assume,
) -> Result<Caps, DriverError> {
    let ask = Ask { core, device };
    let words = |text: String, mark: char| -> Vec<String> {
        text.split(mark).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let version = Version::parse(&ask.text(CL_DEVICE_VERSION)?).unwrap_or_default();
    let item_sizes = info::values::<usize>(CALL, ask!(core, clGetDeviceInfo, device, CL_DEVICE_MAX_WORK_ITEM_SIZES))?;
    let mut max_work_item_sizes = [1; 3];
    for (limit, size) in max_work_item_sizes.iter_mut().zip(item_sizes) {
        *limit = size;
    }
    let queue_properties = ask.long(CL_DEVICE_QUEUE_PROPERTIES)?;
    let listed = words(ask.text(CL_DEVICE_EXTENSIONS)?, ' ');
    let has = |name: &str| listed.iter().any(|extension| extension == name);
    let versions = if version.major >= 3 { extension_versions(ask) } else { Vec::new() };
    // These are queries of OpenCL 2.0; older drivers refuse them.
    let newer = version.major >= 2;
    Ok(Caps {
        name: ask.text(CL_DEVICE_NAME)?,
        vendor: ask.text(CL_DEVICE_VENDOR)?,
        platform: info::text("clGetPlatformInfo", ask!(core, clGetPlatformInfo, platform, CL_PLATFORM_NAME))?,
        driver_version: ask.text(CL_DRIVER_VERSION)?,
        version,
        gpu: ask.long(CL_DEVICE_TYPE)? & CL_DEVICE_TYPE_GPU != 0,
        compiler: ask.number(CL_DEVICE_COMPILER_AVAILABLE)? != 0,
        address_bits: ask.number(CL_DEVICE_ADDRESS_BITS)?,
        compute_units: ask.number(CL_DEVICE_MAX_COMPUTE_UNITS)?,
        max_work_group_size: ask.size(CL_DEVICE_MAX_WORK_GROUP_SIZE)?,
        max_work_item_sizes,
        // OpenCL 2.x always has them, OpenCL 3.0 has a query for them, and 1.x never has them.
        non_uniform_work_groups: match version.major {
            0 | 1 => false,
            2 => true,
            _ => ask.number(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT).unwrap_or(0) != 0,
        },
        global_memory: ask.long(CL_DEVICE_GLOBAL_MEM_SIZE)?,
        max_allocation: ask.long(CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        local_memory: ask.long(CL_DEVICE_LOCAL_MEM_SIZE)?,
        max_parameter_size: ask.size(CL_DEVICE_MAX_PARAMETER_SIZE)?,
        sub_buffer_align: (ask.number(CL_DEVICE_MEM_BASE_ADDR_ALIGN)? as usize / 8).max(1),
        out_of_order: queue_properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0,
        profiling: queue_properties & CL_QUEUE_PROFILING_ENABLE != 0,
        // This is a query of OpenCL 2.1; drivers without it have no intermediate language.
        il_versions: words(ask.text(CL_DEVICE_IL_VERSION).unwrap_or_default(), ' '),
        builtin_kernels: words(ask.text(CL_DEVICE_BUILT_IN_KERNELS)?, ';'),
        svm: if newer { svm(ask) } else { Svm::default() },
        usm: (has("cl_intel_unified_shared_memory") && extensions.usm.is_some()).then(|| usm(ask)),
        max_global_variable_size: if newer { ask.size(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE).unwrap_or(0) } else { 0 },
        named_global_access: extensions.global_variables.is_some(),
        images: images(ask, &has, version)?,
        command_buffers: command_buffers(&has, &versions, Answers::of(ask), extensions, assume),
        extensions: listed,
    })
}

fn images(ask: Ask, has: &dyn Fn(&str) -> bool, version: Version) -> Result<Option<ImageCaps>, DriverError> {
    if ask.number(CL_DEVICE_IMAGE_SUPPORT)? == 0 || version < Version::new(1, 2) {
        return Ok(None);
    }
    // These are queries of OpenCL 2.0.
    let newer = |name| if version.major >= 2 { ask.number(name).unwrap_or(0) } else { 0 };
    let pitch = newer(CL_DEVICE_IMAGE_PITCH_ALIGNMENT) as usize;
    Ok(Some(ImageCaps {
        max_2d: [ask.size(CL_DEVICE_IMAGE2D_MAX_WIDTH)?, ask.size(CL_DEVICE_IMAGE2D_MAX_HEIGHT)?],
        max_3d: [
            ask.size(CL_DEVICE_IMAGE3D_MAX_WIDTH)?,
            ask.size(CL_DEVICE_IMAGE3D_MAX_HEIGHT)?,
            ask.size(CL_DEVICE_IMAGE3D_MAX_DEPTH)?,
        ],
        max_layers: ask.size(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE)?,
        max_buffer: ask.size(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE)?,
        max_read: ask.number(CL_DEVICE_MAX_READ_IMAGE_ARGS)?,
        max_write: ask.number(CL_DEVICE_MAX_WRITE_IMAGE_ARGS)?,
        max_read_write: newer(CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS),
        max_samplers: ask.number(CL_DEVICE_MAX_SAMPLERS)?,
        // OpenCL 2.0 always has them; in OpenCL 3.0 the query returns 0 if the device has none.
        buffer_pitch: (has("cl_khr_image2d_from_buffer") || version.major == 2)
            .then_some(pitch)
            .filter(|pitch| *pitch > 0),
        writes_3d: has("cl_khr_3d_image_writes") || version.major == 2,
    }))
}

fn svm(ask: Ask) -> Svm {
    let bits = ask.long(CL_DEVICE_SVM_CAPABILITIES).unwrap_or(0);
    Svm {
        coarse_grain_buffer: bits & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER != 0,
        fine_grain_buffer: bits & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0,
        fine_grain_system: bits & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0,
        atomics: bits & CL_DEVICE_SVM_ATOMICS != 0,
    }
}

fn usm(ask: Ask) -> Usm {
    let has = |name| ask.long(name).unwrap_or(0) != 0;
    Usm {
        host: has(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL),
        device: has(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL),
        shared: has(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL),
        cross_device: has(CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL),
        system: has(CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL),
    }
}

/// Reads `CL_DEVICE_EXTENSIONS_WITH_VERSION`: an array of `cl_name_version`, each a version and a name of 64 bytes.
fn extension_versions(ask: Ask) -> Vec<(String, ExtensionVersion)> {
    let query = ask!(ask.core, clGetDeviceInfo, ask.device, CL_DEVICE_EXTENSIONS_WITH_VERSION);
    let bytes = info::bytes(CALL, query).unwrap_or_default();
    let entry = |entry: &[u8]| {
        let (version, name) = entry.split_first_chunk::<4>()?;
        let name = name.split(|byte| *byte == 0).next()?;
        Some((String::from_utf8_lossy(name).into_owned(), ExtensionVersion::unpack(u32::from_ne_bytes(*version))))
    };
    bytes.chunks_exact(68).filter_map(entry).collect()
}

/// The driver's answers to the queries of `cl_khr_command_buffer` and of mutable dispatch. An answer is 0 if the driver
/// refuses the query.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    capabilities: u64,
    required_queue: u64,
    /// Revision 0.9.6 introduced this query.
    supported_queue: Option<u64>,
    mutable: u64,
}

impl Answers {
    fn of(ask: Ask) -> Self {
        let bits = |name| ask.long(name).unwrap_or(0);
        Self {
            capabilities: bits(cb::CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR),
            required_queue: bits(cb::CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR),
            supported_queue: ask.long(cb::CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR).ok(),
            mutable: bits(md::CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR),
        }
    }
}

/// Returns the command-buffer capabilities that clgraph believes.
fn command_buffers(
    has: &dyn Fn(&str) -> bool,
    versions: &[(String, ExtensionVersion)],
    answers: Answers,
    extensions: &Extensions,
    assume: Assume,
) -> Option<CommandBufferCaps> {
    // The layer enqueues the commands of a command buffer one by one: replay does it with less.
    if extensions.capture.is_some() {
        return None;
    }
    let version = |name: &str| versions.iter().find(|(of, _)| of == name).map(|(_, version)| *version);
    let detected_by = match (has("cl_khr_command_buffer"), &extensions.command_buffer) {
        (true, _) => DetectedBy::Listed,
        (false, Ok(_)) if assume.command_buffer => DetectedBy::Assumed,
        (false, Ok(_)) => DetectedBy::Hidden,
        (false, Err(_)) => return None,
    };
    let fields = answers.mutable;
    let listed_mutable = has("cl_khr_command_buffer_mutable_dispatch");
    // The emulation layer over a driver with its own command buffers reports the capabilities, but not the extension
    // name.
    let mutable = (extensions.mutable_dispatch.is_some() && (listed_mutable || fields != 0)).then(|| MutableCaps {
        version: version("cl_khr_command_buffer_mutable_dispatch"),
        global_offset: fields & md::CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR != 0,
        global_size: fields & md::CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR != 0,
        local_size: fields & md::CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR != 0,
        arguments: fields & md::CL_MUTABLE_DISPATCH_ARGUMENTS_KHR != 0,
        exec_info: fields & md::CL_MUTABLE_DISPATCH_EXEC_INFO_KHR != 0,
    });
    let has = |bit: u64| answers.capabilities & bit != 0;
    let printf = has(cb::CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR);
    let simultaneous = has(cb::CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR);
    let assumed = [
        ("command_buffer", detected_by == DetectedBy::Assumed),
        ("simultaneous_use", assume.simultaneous_use && !simultaneous),
        ("kernel_printf", assume.kernel_printf && !printf),
    ];
    let missing = extensions.missing_command_buffer_functions();
    Some(CommandBufferCaps {
        detected_by,
        assumed: assumed.into_iter().filter_map(|(word, assumed)| assumed.then_some(word)).collect(),
        version: version("cl_khr_command_buffer"),
        missing: missing.essential,
        missing_commands: missing.commands,
        kernel_printf: assume.kernel_printf || printf,
        device_side_enqueue: has(cb::CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR),
        simultaneous_use: assume.simultaneous_use || simultaneous,
        required_queue: queue_kinds(answers.required_queue),
        supported_queue: answers.supported_queue.map(queue_kinds),
        mutable,
    })
}

fn queue_kinds(bits: u64) -> QueueKinds {
    QueueKinds {
        out_of_order: bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0,
        profiling: bits & CL_QUEUE_PROFILING_ENABLE != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::RecordAbi;
    use crate::cl::fake::Fake;

    const NAME: &str = "cl_khr_command_buffer";

    fn read(listed: &[&str], answers: Answers, extensions: &Extensions, assume: Assume) -> Option<CommandBufferCaps> {
        let versions = [(NAME.to_owned(), ExtensionVersion::new(0, 9, 7))];
        command_buffers(&|name| listed.contains(&name), &versions, answers, extensions, assume)
    }

    /// Rule F4: the listed extensions and the existing functions decide together.
    #[test]
    fn command_buffers_are_listed_assumed_hidden_or_absent() {
        let (none, assume) = (Assume::default(), Assume { command_buffer: true, ..Assume::default() });
        let has = Fake::new(RecordAbi::WithProperties, &[]).extensions();
        let lacks = Fake::new(RecordAbi::WithProperties, &[c"clFinalizeCommandBufferKHR"]).extensions();
        let detected_by = |listed: &[&str], extensions: &Extensions, assume: Assume| {
            read(listed, Answers::default(), extensions, assume)
                .map(|caps| (caps.detected_by, caps.assumed, caps.missing))
        };
        let nothing = Vec::<&str>::new;
        assert_eq!(detected_by(&[NAME], &has, none), Some((DetectedBy::Listed, nothing(), nothing())));
        assert_eq!(
            detected_by(&[NAME], &has, assume),
            Some((DetectedBy::Listed, nothing(), nothing())),
            "nothing to assume"
        );
        assert_eq!(detected_by(&[], &has, none), Some((DetectedBy::Hidden, nothing(), nothing())));
        assert_eq!(detected_by(&[], &has, assume), Some((DetectedBy::Assumed, vec!["command_buffer"], nothing())));
        let missing = vec!["clFinalizeCommandBufferKHR"];
        assert_eq!(detected_by(&[NAME], &lacks, none), Some((DetectedBy::Listed, nothing(), missing)));
        assert_eq!(detected_by(&[], &lacks, assume), None, "functions cannot be assumed");
    }

    #[test]
    fn answers_and_assumptions_are_read_bit_by_bit() {
        let has = Fake::new(RecordAbi::WithProperties, &[c"clCommandCopyBufferRectKHR"]).extensions();
        let answers =
            Answers { capabilities: 0b010, required_queue: 0b10, supported_queue: Some(0b01), mutable: 0b01010 };
        let caps = read(&[NAME], answers, &has, Assume::default()).unwrap();
        assert_eq!(caps.version, Some(ExtensionVersion::new(0, 9, 7)));
        assert_eq!((caps.kernel_printf, caps.device_side_enqueue, caps.simultaneous_use), (false, true, false));
        assert_eq!((caps.required_queue.out_of_order, caps.required_queue.profiling), (false, true));
        let supported = caps.supported_queue.unwrap();
        assert_eq!((supported.out_of_order, supported.profiling), (true, false));
        let lacks = [
            "clCommandCopyBufferRectKHR",
            "clCommandCopyImageKHR",
            "clCommandCopyImageToBufferKHR",
            "clCommandCopyBufferToImageKHR",
            "clCommandFillImageKHR",
            "clCommandSVMMemcpyKHR",
            "clCommandSVMMemFillKHR",
        ];
        assert_eq!(caps.missing_commands, lacks);
        assert_eq!(caps.mutable, None, "the function to update is not there");

        let assume = Assume { simultaneous_use: true, kernel_printf: true, ..Assume::default() };
        let caps = read(&[NAME], Answers { capabilities: 0b001, ..answers }, &has, assume).unwrap();
        assert_eq!((caps.kernel_printf, caps.simultaneous_use), (true, true));
        assert_eq!(caps.assumed, ["simultaneous_use"], "printing is reported");
        let caps = read(&[NAME], Answers::default(), &has, Assume::default()).unwrap();
        assert_eq!((caps.supported_queue, caps.mutable), (None, None));
    }

    #[test]
    fn fields_to_update_are_told_by_name_or_by_capabilities() {
        let fake = Fake::new(RecordAbi::WithProperties, &[]);
        fake.updates.store(true, std::sync::atomic::Ordering::SeqCst);
        let has = fake.extensions();
        let mutable = |listed: &[&str], mutable| {
            read(listed, Answers { mutable, ..Answers::default() }, &has, Assume::default()).unwrap().mutable
        };
        let fields = |mutable: Option<MutableCaps>| mutable.map(|mutable| mutable.fields());
        assert_eq!(fields(mutable(&[NAME], 0b01010)), Some(vec!["global size", "arguments"]));
        assert_eq!(fields(mutable(&[NAME], 0b10101)), Some(vec!["global offset", "local size", "exec info"]));
        assert_eq!(fields(mutable(&[NAME, "cl_khr_command_buffer_mutable_dispatch"], 0)), Some(vec![]));
        assert_eq!(mutable(&[NAME], 0), None);
    }
}
