//! The functions of `cl_khr_command_buffer`, in both signatures.
//!
//! The record functions of revisions 0.9.5 and later have one more parameter than those of 0.9.0 to 0.9.4:
//! `properties`, as the third. The kernel command and all functions that do not record have only one signature.

use std::ffi::{CStr, c_void};

use opencl_sys::{cl_command_queue, cl_event, cl_int, cl_kernel, cl_mem, cl_uint};

use super::{Address, Lookup};
use crate::caps::RecordAbi;

#[allow(non_camel_case_types)]
pub(crate) type cl_command_buffer_khr = *mut c_void;
#[allow(non_camel_case_types)]
pub(crate) type cl_mutable_command_khr = *mut c_void;
#[allow(non_camel_case_types)]
pub(crate) type cl_sync_point_khr = cl_uint;
/// Properties of a command buffer or of a command: names and values in alternation, ended by 0.
#[allow(non_camel_case_types)]
pub(crate) type cl_properties = u64;

pub(crate) const CL_COMMAND_BUFFER_FLAGS_KHR: cl_properties = 0x1293;
pub(crate) const CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR: u64 = 1 << 0;
pub(crate) const CL_COMMAND_BUFFER_MUTABLE_KHR: u64 = 1 << 1;
pub(crate) const CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR: cl_uint = 0x129A;
pub(crate) const CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR: cl_uint = 0x12A9;
pub(crate) const CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR: cl_uint = 0x12AA;
pub(crate) const CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR: u64 = 1 << 0;
pub(crate) const CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR: u64 = 1 << 1;
pub(crate) const CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR: u64 = 1 << 2;
pub(crate) const CL_INCOMPATIBLE_COMMAND_QUEUE_KHR: cl_int = -1140;

/// Functions that a driver lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The functions without which nothing can be recorded.
    pub(crate) essential: Vec<&'static str>,
    /// The functions that record one kind of command.
    pub(crate) commands: Vec<&'static str>,
}

/// Declares the functions that have one signature, as fields.
macro_rules! fixed_functions {
    ($( $field:ident $name:literal: fn($($arg:ty),* $(,)?) -> $ret:ty; )*) => {
        /// The functions that all revisions share, with the types of the headers.
        pub(crate) struct CommandBufferFns {
            $( pub(crate) $field: unsafe extern "system" fn($($arg),*) -> $ret, )*
            /// Records a barrier. Only `probe` uses it, because command buffers for in-order queues need no barriers.
            barrier: Address,
            record: Recorders,
        }

        impl CommandBufferFns {
            /// Loads the table, or returns what is missing.
            pub(crate) fn load(lookup: Lookup<'_>) -> Result<Self, Missing> {
                let mut essential = Vec::new();
                $( let $field = lookup($name);
                   if $field.is_null() { essential.push(text($name)); } )*
                let record = Recorders::load(lookup);
                let barrier = Address::find(lookup, BARRIER);
                if barrier.is_none() { essential.push(text(BARRIER)); }
                let Some(barrier) = barrier.filter(|_| essential.is_empty()) else {
                    return Err(Missing { essential, commands: record.missing() });
                };
                Ok(Self {
                    barrier,
                    $(
                        // SAFETY: **headers**, and the address is not null.
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

/// The last parameters of every function that records a command: the sync points to wait for, and where to write the
/// command's own sync point and its handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    pub(crate) wait_count: cl_uint,
    pub(crate) waits: *const cl_sync_point_khr,
    pub(crate) sync_point: *mut cl_sync_point_khr,
    pub(crate) handle: *mut cl_mutable_command_khr,
}

impl Tail {
    /// Waits for nothing, and asks for no sync point and no handle.
    pub(crate) const NONE: Self =
        Self { wait_count: 0, waits: std::ptr::null(), sync_point: std::ptr::null_mut(), handle: std::ptr::null_mut() };
}

/// Declares the functions with two signatures: a field for the address, and a method that calls it with either
/// signature.
macro_rules! record_functions {
    ($( $(#[$doc:meta])* $field:ident $name:literal: fn($($arg:ident: $ty:ty),* $(,)?); )*) => {
        struct Recorders { $( $field: Option<Address>, )* }

        impl Recorders {
            fn load(lookup: Lookup<'_>) -> Self {
                Self { $( $field: Address::find(lookup, $name), )* }
            }

            fn missing(&self) -> Vec<&'static str> {
                let all = [$( (self.$field.is_none(), text($name)) ),*];
                all.into_iter().filter(|(missing, _)| *missing).map(|(_, name)| name).collect()
            }
        }

        impl CommandBufferFns {
            /// Returns the record functions that the driver lacks.
            pub(crate) fn missing(&self) -> Missing {
                Missing { essential: Vec::new(), commands: self.record.missing() }
            }

            $(
                $(#[$doc])*
                ///
                /// Returns `None` if the driver lacks the function.
                ///
                /// # Safety
                /// As for the C function, whose signature is `abi`.
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
    /// Records a copy of `size` bytes from buffer to buffer.
    copy c"clCommandCopyBufferKHR":
        fn(src: cl_mem, dst: cl_mem, src_offset: usize, dst_offset: usize, size: usize);
    /// Records a copy of a rectangle from buffer to buffer.
    copy_rect c"clCommandCopyBufferRectKHR":
        fn(src: cl_mem, dst: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize,
           src_row_pitch: usize, src_slice_pitch: usize, dst_row_pitch: usize, dst_slice_pitch: usize);
    /// Records a fill of `size` bytes of a buffer with a pattern.
    fill c"clCommandFillBufferKHR":
        fn(dst: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize);
    /// Records a copy of pixels from image to image.
    copy_image c"clCommandCopyImageKHR":
        fn(src: cl_mem, dst: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize);
    /// Records a copy of pixels from an image to a buffer.
    image_to_buffer c"clCommandCopyImageToBufferKHR":
        fn(src: cl_mem, dst: cl_mem, src_origin: *const usize, region: *const usize, dst_offset: usize);
    /// Records a copy of pixels from a buffer to an image.
    buffer_to_image c"clCommandCopyBufferToImageKHR":
        fn(src: cl_mem, dst: cl_mem, src_offset: usize, dst_origin: *const usize, region: *const usize);
    /// Records a fill of an area of an image with a colour.
    fill_image c"clCommandFillImageKHR":
        fn(image: cl_mem, color: *const c_void, origin: *const usize, region: *const usize);
    /// Records a copy of `size` bytes from address to address. Since 0.9.4.
    memcpy c"clCommandSVMMemcpyKHR": fn(dst: *mut c_void, src: *const c_void, size: usize);
    /// Records a fill of `size` bytes at an address with a pattern. Since 0.9.4.
    mem_fill c"clCommandSVMMemFillKHR":
        fn(dst: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize);
}

/// The function whose answers show the signature of the other functions.
const BARRIER: &CStr = c"clCommandBarrierWithWaitListKHR";

/// Converts a name that the macros made from their own text.
fn text(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or_default()
}

impl CommandBufferFns {
    /// Finds the signature of the record functions by recording barriers. Each answer must be proved; if neither is,
    /// the error is what the driver returned.
    ///
    /// There are two calls. The first is correct with the newer signature; in the older signature, its address for a
    /// sync point is an address for a handle, which must be null. The second is correct with the older signature; in
    /// the newer signature, its address for a sync point is a wait list of no events, which must be null.
    ///
    /// A sync point has 32 bits, and a handle has the size of a pointer. Where a pointer is larger, the newer signature
    /// is tried first, because some drivers crash on wrong wait lists, but none on wrong handles. Versions are not
    /// reliable: see `docs/drivers.md`.
    ///
    /// # Safety
    /// `buffer` is a live command buffer that is being recorded and that nothing else uses.
    pub(crate) unsafe fn probe(&self, buffer: cl_command_buffer_khr) -> Result<RecordAbi, cl_int> {
        use RecordAbi::{WithProperties, WithoutProperties};
        let order = if size_of::<usize>() > size_of::<cl_sync_point_khr>() {
            [WithProperties, WithoutProperties]
        } else {
            [WithoutProperties, WithProperties]
        };
        let mut last = 0;
        for abi in order {
            // SAFETY: the caller's promise.
            match unsafe { self.barrier_by(abi, buffer) } {
                Ok(true) => return Ok(abi),
                Ok(false) => last = 0,
                Err(status) => last = status,
            }
        }
        Err(last)
    }

    /// Records a barrier with a signature. Returns whether the driver wrote a sync point.
    ///
    /// # Safety
    /// As for [`Self::probe`].
    unsafe fn barrier_by(&self, abi: RecordAbi, buffer: cl_command_buffer_khr) -> Result<bool, cl_int> {
        const MARK: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        // Seven words. Parameters that are narrower than a word are zero here, and the older signature ignores the
        // seventh.
        type Words = unsafe extern "system" fn(usize, usize, usize, usize, usize, usize, usize) -> cl_int;
        let mut place = [MARK; 2];
        let sync_point = place.as_mut_ptr().expose_provenance();
        let (fifth, sixth) = match abi {
            RecordAbi::WithoutProperties => (sync_point, 0),
            RecordAbi::WithProperties => (0, sync_point),
        };
        // SAFETY: **ABI**: where the caller cleans the stack, a call with words is correct for both signatures. By the
        // caller's promise the driver gets a live command buffer, nulls, zeros, and one address with room for whatever
        // it may write there.
        let status = unsafe {
            let barrier = std::mem::transmute::<*mut c_void, Words>(self.barrier.0.as_ptr());
            barrier(buffer.expose_provenance(), 0, 0, 0, fifth, sixth, 0)
        };
        let rest = place[0].to_ne_bytes()[4..] == MARK.to_ne_bytes()[4..] && place[1] == MARK;
        if status == 0 { Ok(place[0] != MARK && rest) } else { Err(status) }
    }
}
