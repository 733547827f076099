//! The function of `cl_khr_command_buffer_mutable_dispatch`, in both signatures.
//!
//! Revisions 0.9.0 and 0.9.1 take an update as a linked list of structs that contain their type. 0.9.2 and later take
//! arrays of structs without these two fields.

use std::ffi::c_void;

use opencl_sys::{cl_int, cl_uint};

use super::command_buffer::{cl_command_buffer_khr, cl_mutable_command_khr};
use super::{Address, Lookup};
use crate::caps::UpdateAbi;

pub(crate) const CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR: cl_uint = 0x12B0;
pub(crate) const CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR: u64 = 1 << 0;
pub(crate) const CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR: u64 = 1 << 1;
pub(crate) const CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR: u64 = 1 << 2;
pub(crate) const CL_MUTABLE_DISPATCH_ARGUMENTS_KHR: u64 = 1 << 3;
pub(crate) const CL_MUTABLE_DISPATCH_EXEC_INFO_KHR: u64 = 1 << 4;

/// `cl_mutable_dispatch_arg_khr`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatchArg {
    pub(crate) index: cl_uint,
    pub(crate) size: usize,
    pub(crate) value: *const c_void,
}

/// `cl_mutable_dispatch_exec_info_khr`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatchExecInfo {
    pub(crate) name: cl_uint,
    pub(crate) size: usize,
    pub(crate) value: *const c_void,
}

/// `cl_mutable_dispatch_config_khr` of 0.9.2 and later: the changes of one command. Null and zero mean no change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatchConfig {
    pub(crate) command: cl_mutable_command_khr,
    pub(crate) num_args: cl_uint,
    pub(crate) num_svm_args: cl_uint,
    pub(crate) num_exec_infos: cl_uint,
    pub(crate) work_dim: cl_uint,
    pub(crate) args: *const DispatchArg,
    pub(crate) svm_args: *const DispatchArg,
    pub(crate) exec_infos: *const DispatchExecInfo,
    pub(crate) global_offset: *const usize,
    pub(crate) global_size: *const usize,
    pub(crate) local_size: *const usize,
}

/// `cl_mutable_dispatch_config_khr` of 0.9.0 and 0.9.1.
#[repr(C)]
struct LinkedConfig {
    kind: cl_uint,
    next: *const c_void,
    config: DispatchConfig,
}

/// `cl_mutable_base_config_khr` of 0.9.0 and 0.9.1.
#[repr(C)]
struct BaseConfig {
    kind: cl_uint,
    next: *const c_void,
    count: cl_uint,
    list: *const LinkedConfig,
}

/// `CL_STRUCTURE_TYPE_MUTABLE_BASE_CONFIG_KHR` of 0.9.0 and 0.9.1.
const BASE_CONFIG: cl_uint = 0;
/// `CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR` of 0.9.0 and 0.9.1.
const LINKED_CONFIG: cl_uint = 1;
/// `CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR` of 0.9.2 and later.
const ARRAY_CONFIG: cl_uint = 0;

/// `clUpdateMutableCommandsKHR`.
pub(crate) struct MutableDispatchFns {
    update: Address,
}

impl MutableDispatchFns {
    pub(crate) fn load(lookup: Lookup<'_>) -> Option<Self> {
        Some(Self { update: Address::find(lookup, c"clUpdateMutableCommandsKHR")? })
    }

    /// Updates recorded commands, with either signature.
    ///
    /// # Safety
    /// As for the C function, whose signature is `abi`. Each command appears at most once.
    pub(crate) unsafe fn update(
        &self,
        abi: UpdateAbi,
        buffer: cl_command_buffer_khr,
        configs: &[DispatchConfig],
    ) -> cl_int {
        type Arrays =
            unsafe extern "system" fn(cl_command_buffer_khr, cl_uint, *const cl_uint, *const *const c_void) -> cl_int;
        type Linked = unsafe extern "system" fn(cl_command_buffer_khr, *const BaseConfig) -> cl_int;
        let address = self.update.0.as_ptr();
        let count = configs.len() as cl_uint;
        match abi {
            UpdateAbi::Array => {
                let kinds = vec![ARRAY_CONFIG; configs.len()];
                let places: Vec<*const c_void> =
                    configs.iter().map(|config| std::ptr::from_ref(config).cast()).collect();
                let (kinds, places) = if configs.is_empty() {
                    (std::ptr::null(), std::ptr::null())
                } else {
                    (kinds.as_ptr(), places.as_ptr())
                };
                // SAFETY: **ABI**, **headers**, the caller's promise; both arrays have `count` entries.
                unsafe { std::mem::transmute::<*mut c_void, Arrays>(address)(buffer, count, kinds, places) }
            }
            UpdateAbi::LinkedList => {
                let list: Vec<LinkedConfig> = configs
                    .iter()
                    .map(|&config| LinkedConfig { kind: LINKED_CONFIG, next: std::ptr::null(), config })
                    .collect();
                let list = if list.is_empty() { std::ptr::null() } else { list.as_ptr() };
                let base = BaseConfig { kind: BASE_CONFIG, next: std::ptr::null(), count, list };
                // SAFETY: **ABI**, **headers**, the caller's promise; the list has `count` entries.
                unsafe { std::mem::transmute::<*mut c_void, Linked>(address)(buffer, &raw const base) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::mem::{align_of, offset_of, size_of};

    use super::*;

    /// The layouts that C compilers give to the structs of the headers, with pointers of 64 and of 32 bits.
    #[test]
    fn structs_have_the_layout_of_the_headers() {
        let wide = size_of::<usize>() == 8;
        let by = |wide_size: usize, narrow_size: usize| if wide { wide_size } else { narrow_size };
        let aligned = [
            align_of::<DispatchArg>(),
            align_of::<DispatchExecInfo>(),
            align_of::<DispatchConfig>(),
            align_of::<LinkedConfig>(),
            align_of::<BaseConfig>(),
        ];
        assert_eq!(aligned, [by(8, 4); 5]);
        assert_eq!(size_of::<DispatchArg>(), by(24, 12));
        assert_eq!(size_of::<DispatchExecInfo>(), by(24, 12));
        assert_eq!(size_of::<DispatchConfig>(), by(72, 44));
        assert_eq!(size_of::<LinkedConfig>(), by(88, 52));
        assert_eq!(size_of::<BaseConfig>(), by(32, 16));
        let offsets = [
            offset_of!(DispatchConfig, command),
            offset_of!(DispatchConfig, num_args),
            offset_of!(DispatchConfig, num_svm_args),
            offset_of!(DispatchConfig, num_exec_infos),
            offset_of!(DispatchConfig, work_dim),
            offset_of!(DispatchConfig, args),
            offset_of!(DispatchConfig, svm_args),
            offset_of!(DispatchConfig, exec_infos),
            offset_of!(DispatchConfig, global_offset),
            offset_of!(DispatchConfig, global_size),
            offset_of!(DispatchConfig, local_size),
        ];
        let narrow = [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40];
        assert_eq!(offsets, if wide { [0, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64] } else { narrow });
        assert_eq!(
            [offset_of!(DispatchArg, index), offset_of!(DispatchArg, size), offset_of!(DispatchArg, value)],
            [0, by(8, 4), by(16, 8)]
        );
        let exec_info = [
            offset_of!(DispatchExecInfo, name),
            offset_of!(DispatchExecInfo, size),
            offset_of!(DispatchExecInfo, value),
        ];
        assert_eq!(exec_info, [0, by(8, 4), by(16, 8)]);
        assert_eq!(
            [offset_of!(LinkedConfig, kind), offset_of!(LinkedConfig, next), offset_of!(LinkedConfig, config)],
            [0, by(8, 4), by(16, 8)]
        );
        let base = [
            offset_of!(BaseConfig, kind),
            offset_of!(BaseConfig, next),
            offset_of!(BaseConfig, count),
            offset_of!(BaseConfig, list),
        ];
        assert_eq!(base, [0, by(8, 4), by(16, 8), by(24, 12)]);
    }

    thread_local! {
        /// The command, the number of arguments and the first global size of each config that a fake driver received.
        static SEEN: RefCell<Vec<(usize, u32, usize)>> = const { RefCell::new(Vec::new()) };
    }

    unsafe fn note(config: *const DispatchConfig) {
        // SAFETY: `update` passes addresses of live configs.
        let config = unsafe { &*config };
        // SAFETY: the tests pass one size.
        let size = unsafe { *config.global_size };
        SEEN.with_borrow_mut(|seen| seen.push((config.command.addr(), config.num_args, size)));
    }

    unsafe extern "system" fn arrays(
        _: cl_command_buffer_khr,
        count: cl_uint,
        kinds: *const cl_uint,
        configs: *const *const c_void,
    ) -> cl_int {
        for at in 0..count as usize {
            // SAFETY: both arrays have `count` entries.
            unsafe {
                assert_eq!(*kinds.add(at), 0);
                note((*configs.add(at)).cast());
            }
        }
        -9
    }

    unsafe extern "system" fn linked(_: cl_command_buffer_khr, base: *const BaseConfig) -> cl_int {
        // SAFETY: `update` passes a live struct.
        let base = unsafe { &*base };
        assert_eq!((base.kind, base.next.is_null()), (0, true));
        for at in 0..base.count as usize {
            // SAFETY: the list has `count` entries.
            let config = unsafe { &*base.list.add(at) };
            assert_eq!((config.kind, config.next.is_null()), (1, true));
            // SAFETY: as above.
            unsafe { note(&raw const config.config) };
        }
        -10
    }

    #[test]
    fn one_update_reaches_the_driver_by_either_signature() {
        let size = 7_usize;
        let config = |command: usize| DispatchConfig {
            command: std::ptr::without_provenance_mut(command),
            num_args: command as cl_uint + 1,
            num_svm_args: 0,
            num_exec_infos: 0,
            work_dim: 0,
            args: std::ptr::null(),
            svm_args: std::ptr::null(),
            exec_infos: std::ptr::null(),
            global_offset: std::ptr::null(),
            global_size: &raw const size,
            local_size: std::ptr::null(),
        };
        let configs = [config(8), config(16)];
        let expected = [(8, 9, 7), (16, 17, 7)];
        for (abi, function, status) in
            [(UpdateAbi::Array, arrays as *mut c_void, -9), (UpdateAbi::LinkedList, linked as *mut c_void, -10)]
        {
            let fns = MutableDispatchFns::load(&|name| {
                assert_eq!(name, c"clUpdateMutableCommandsKHR");
                function
            })
            .unwrap();
            // SAFETY: the fake drivers have the signature `abi`, and use nothing but the configs.
            unsafe {
                assert_eq!(fns.update(abi, std::ptr::null_mut(), &configs), status);
                assert_eq!(SEEN.take(), expected);
                assert_eq!(fns.update(abi, std::ptr::null_mut(), &[]), status);
                assert_eq!(SEEN.take(), []);
            }
        }
        assert!(MutableDispatchFns::load(&|_| std::ptr::null_mut()).is_none());
    }
}
