//! `cl_khr_command_buffer`, in both of its forms.
//!
//! Revisions 0.9.0 to 0.9.4 record commands by functions that 0.9.5 and later call with one parameter more, `properties`
//! as the third. Only the kernel command and everything that is no command have one signature for all time.

use std::ffi::{CStr, c_void};

use opencl_sys::{CL_INVALID_VALUE, cl_command_queue, cl_event, cl_int, cl_kernel, cl_mem, cl_uint};

use super::{Address, Lookup};
use crate::caps::RecordAbi;

#[allow(non_camel_case_types)]
pub(crate) type cl_command_buffer_khr = *mut c_void;
#[allow(non_camel_case_types)]
pub(crate) type cl_mutable_command_khr = *mut c_void;
#[allow(non_camel_case_types)]
pub(crate) type cl_sync_point_khr = cl_uint;
/// A name and a value in turn, ended by 0. Of a command buffer, or of a command.
#[allow(non_camel_case_types)]
pub(crate) type cl_properties = u64;

pub(crate) const CL_COMMAND_BUFFER_FLAGS_KHR: cl_properties = 0x1293;
pub(crate) const CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR: u64 = 1 << 0;
pub(crate) const CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR: cl_uint = 0x129A;
pub(crate) const CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR: cl_uint = 0x12A9;
pub(crate) const CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR: cl_uint = 0x12AA;
pub(crate) const CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR: u64 = 1 << 0;
pub(crate) const CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR: u64 = 1 << 1;
pub(crate) const CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR: u64 = 1 << 2;
pub(crate) const CL_INCOMPATIBLE_COMMAND_QUEUE_KHR: cl_int = -1140;

/// Declares the functions that never changed, as fields.
macro_rules! fixed_functions {
    ($( $field:ident $name:literal: fn($($arg:ty),* $(,)?) -> $ret:ty; )*) => {
        /// The functions that all revisions share, with the types of the headers.
        pub(crate) struct CommandBufferFns {
            $( pub(crate) $field: unsafe extern "system" fn($($arg),*) -> $ret, )*
            record: Recorders,
        }

        impl CommandBufferFns {
            /// The table, or the names of the functions without which nothing can be recorded.
            pub(crate) fn load(lookup: Lookup<'_>) -> Result<Self, Vec<&'static str>> {
                let mut missing = Vec::new();
                $( let $field = lookup($name);
                   if $field.is_null() { missing.push(text($name)); } )*
                let record = Recorders::load(lookup);
                if record.barrier.is_none() { missing.push("clCommandBarrierWithWaitListKHR"); }
                if !missing.is_empty() {
                    return Err(missing);
                }
                Ok(Self {
                    $(
                        // SAFETY: **headers**, and it is not null.
                        $field: unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "system" fn($($arg),*) -> $ret>($field)
                        },
                    )*
                    record,
                })
            }
        }
    };
}

fixed_functions! {
    create c"clCreateCommandBufferKHR":
        fn(cl_uint, *const cl_command_queue, *const cl_properties, *mut cl_int) -> cl_command_buffer_khr;
    finalize c"clFinalizeCommandBufferKHR": fn(cl_command_buffer_khr) -> cl_int;
    release c"clReleaseCommandBufferKHR": fn(cl_command_buffer_khr) -> cl_int;
    enqueue c"clEnqueueCommandBufferKHR":
        fn(cl_uint, *mut cl_command_queue, cl_command_buffer_khr, cl_uint, *const cl_event, *mut cl_event) -> cl_int;
    kernel c"clCommandNDRangeKernelKHR":
        fn(cl_command_buffer_khr, cl_command_queue, *const cl_properties, cl_kernel, cl_uint, *const usize,
           *const usize, *const usize, cl_uint, *const cl_sync_point_khr, *mut cl_sync_point_khr,
           *mut cl_mutable_command_khr) -> cl_int;
}

/// What every function that records a command gets last: the sync points to wait for, and where the command's own sync
/// point and its handle go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    pub(crate) wait_count: cl_uint,
    pub(crate) waits: *const cl_sync_point_khr,
    pub(crate) sync_point: *mut cl_sync_point_khr,
    pub(crate) handle: *mut cl_mutable_command_khr,
}

impl Tail {
    /// Nothing to wait for, and nothing to hand back.
    pub(crate) const NONE: Self =
        Self { wait_count: 0, waits: std::ptr::null(), sync_point: std::ptr::null_mut(), handle: std::ptr::null_mut() };
}

/// Declares the functions with two signatures: a field for the address, and a method that calls by either.
macro_rules! record_functions {
    ($( $(#[$doc:meta])* $field:ident $name:literal: fn($($arg:ident: $ty:ty),* $(,)?); )*) => {
        struct Recorders { $( $field: Option<Address>, )* }

        impl Recorders {
            fn load(lookup: Lookup<'_>) -> Self {
                Self { $( $field: Address::find(lookup, $name), )* }
            }
        }

        impl CommandBufferFns {
            /// The names of the record functions that the driver lacks.
            pub(crate) fn missing_commands(&self) -> Vec<&'static str> {
                let mut missing = Vec::new();
                $( if self.record.$field.is_none() { missing.push(text($name)); } )*
                missing
            }

            $(
                $(#[$doc])*
                ///
                /// `None`: the driver lacks the function.
                ///
                /// # Safety
                /// As for the C function, whose signature `abi` names.
                #[allow(clippy::too_many_arguments)]
                pub(crate) unsafe fn $field(
                    &self, abi: RecordAbi, buffer: cl_command_buffer_khr, $($arg: $ty,)* tail: Tail,
                ) -> Option<cl_int> {
                    type Without = unsafe extern "system" fn(cl_command_buffer_khr, cl_command_queue, $($ty,)*
                        cl_uint, *const cl_sync_point_khr, *mut cl_sync_point_khr, *mut cl_mutable_command_khr) -> cl_int;
                    type With = unsafe extern "system" fn(cl_command_buffer_khr, cl_command_queue, *const cl_properties,
                        $($ty,)* cl_uint, *const cl_sync_point_khr, *mut cl_sync_point_khr,
                        *mut cl_mutable_command_khr) -> cl_int;
                    let address = self.record.$field?.0.as_ptr();
                    let queue: cl_command_queue = std::ptr::null_mut();
                    let Tail { wait_count, waits, sync_point, handle } = tail;
                    Some(match abi {
                        // SAFETY: **ABI**, **headers**, the caller's promise. Queue and properties may be null.
                        RecordAbi::WithoutProperties => unsafe {
                            std::mem::transmute::<*mut c_void, Without>(address)(
                                buffer, queue, $($arg,)* wait_count, waits, sync_point, handle)
                        },
                        // SAFETY: as above.
                        RecordAbi::WithProperties => unsafe {
                            std::mem::transmute::<*mut c_void, With>(address)(
                                buffer, queue, std::ptr::null(), $($arg,)* wait_count, waits, sync_point, handle)
                        },
                    })
                }
            )*
        }
    };
}

record_functions! {
    /// Waits for all commands before, and holds all commands behind.
    barrier c"clCommandBarrierWithWaitListKHR": fn();
    /// `size` bytes from buffer to buffer.
    copy c"clCommandCopyBufferKHR":
        fn(src: cl_mem, dst: cl_mem, src_offset: usize, dst_offset: usize, size: usize);
    /// A rectangle from buffer to buffer.
    copy_rect c"clCommandCopyBufferRectKHR":
        fn(src: cl_mem, dst: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize,
           src_row_pitch: usize, src_slice_pitch: usize, dst_row_pitch: usize, dst_slice_pitch: usize);
    /// A pattern over `size` bytes.
    fill c"clCommandFillBufferKHR":
        fn(dst: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize);
}

/// A name that the macros took from their own text.
fn text(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or_default()
}

impl CommandBufferFns {
    /// Which signature the record functions have, found by recording a barrier by the newer one.
    ///
    /// A driver with the newer signature succeeds and writes a sync point of 32 bits. One with the older sees the place for
    /// the sync point as that for a handle, which must be null, and refuses with CL_INVALID_VALUE; if it wrote one, it
    /// would be of 64 bits. Tried on PoCL 3.1 to 7.1, Intel's CPU runtime and the emulation layer; versions are no guide.
    /// `Err`: neither.
    ///
    /// # Safety
    /// `buffer` is a live command buffer that is recording and that nobody else uses.
    pub(crate) unsafe fn probe(&self, buffer: cl_command_buffer_khr) -> Result<RecordAbi, cl_int> {
        const MARK: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        let mut place = [MARK, 0];
        let tail = Tail { sync_point: place.as_mut_ptr().cast(), ..Tail::NONE };
        // SAFETY: the caller's promise; with either signature the driver gets a live buffer, null pointers, zeros, and
        // one place that is large enough for what either would write to it.
        let status = unsafe { self.barrier(RecordAbi::WithProperties, buffer, tail) }.unwrap_or(cl_int::MIN);
        let rest = place[0].to_ne_bytes()[4..] == MARK.to_ne_bytes()[4..] && place[1] == 0;
        match status {
            0 if rest => Ok(RecordAbi::WithProperties),
            0 => Ok(RecordAbi::WithoutProperties),
            CL_INVALID_VALUE if place == [MARK, 0] => Ok(RecordAbi::WithoutProperties),
            status => Err(status),
        }
    }
}
