//! The kernels of the fake driver, and how it updates them.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use opencl_sys::{CL_INVALID_OPERATION, CL_SUCCESS, cl_command_queue, cl_int, cl_kernel, cl_uint};

use super::{buffer, record};
use crate::ffi::command_buffer::{cl_command_buffer_khr, cl_mutable_command_khr, cl_properties, cl_sync_point_khr};
use crate::ffi::core::Core;
use crate::ffi::mutable_dispatch::DispatchConfig;

/// Adds a node with the promise of a launch, for the kernels of [`KERNELS`], whose work-items only use their own
/// element. Tests outside of `cl` must not contain unsafe code.
pub(crate) fn inside<N, R>(add: unsafe fn(N) -> R, node: N) -> R {
    // SAFETY: the tests give ranges within the buffers.
    unsafe { add(node) }
}

/// As [`inside`], for a function with two arguments: it adds a list of nodes, or replaces a node.
pub(crate) fn all_inside<G, N, R>(add: unsafe fn(G, N) -> R, to: G, nodes: N) -> R {
    // SAFETY: as above.
    unsafe { add(to, nodes) }
}

/// The source of the kernels that tests launch.
pub(crate) const KERNELS: &str = "
__kernel void scale(__global const uint *in, __global uint *out, uint by) {
    size_t i = get_global_id(0);
    out[i] = in[i] * 3u + by;
}
__kernel void tell(__global uint *out, uint number) {
    out[get_global_id(0)] = number * 1000000u + (uint)get_global_offset(0) * 10000u + (uint)get_global_size(0) * 100u
                          + (uint)get_local_size(0);
}";

/// A recorded kernel.
pub(super) struct Launch {
    kernel: cl_kernel,
    /// Whether the kernel object is a clone, which has the arguments of the moment at which it was recorded.
    cloned: bool,
    dims: cl_uint,
    offset: Option<[usize; 3]>,
    global: Option<[usize; 3]>,
    local: Option<[usize; 3]>,
}

// SAFETY: **threads**: handles may be used on any thread.
unsafe impl Send for Launch {}

impl Launch {
    fn enqueue(&self, core: &Core, queue: cl_command_queue) -> cl_int {
        let at = |sizes: &Option<[usize; 3]>| sizes.as_ref().map_or(std::ptr::null(), |sizes| sizes.as_ptr());
        let (offset, global, local, none) = (at(&self.offset), at(&self.global), at(&self.local), std::ptr::null_mut());
        // SAFETY: clgraph keeps the kernel alive as long as the command buffer, or it is a clone.
        unsafe {
            (core.clEnqueueNDRangeKernel)(
                queue,
                self.kernel,
                self.dims,
                offset,
                global,
                local,
                0,
                std::ptr::null(),
                none,
            )
        }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if self.cloned {
            // SAFETY: a clone, which is released once.
            assert_eq!(unsafe { (Core::get().unwrap().clReleaseKernel)(self.kernel) }, CL_SUCCESS);
        }
    }
}

/// Returns three sizes, or `None` for null.
///
/// # Safety
/// The list is null, or has three entries.
unsafe fn sizes(list: *const usize) -> Option<[usize; 3]> {
    // SAFETY: the caller's promise.
    (!list.is_null()).then(|| unsafe { *list.cast::<[usize; 3]>() })
}

pub(super) unsafe extern "system" fn kernel(
    handle: cl_command_buffer_khr,
    queue: cl_command_queue,
    properties: *const cl_properties,
    kernel: cl_kernel,
    dims: cl_uint,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
    num_waits: cl_uint,
    waits: *const cl_sync_point_khr,
    sync_point: *mut cl_sync_point_khr,
    place: *mut cl_mutable_command_khr,
) -> cl_int {
    assert!(queue.is_null() && properties.is_null() && sync_point.is_null());
    assert!(num_waits == 0 && waits.is_null());
    // SAFETY: a live handle.
    let mutable = unsafe { buffer(handle) }.mutable;
    assert_eq!(!place.is_null(), mutable, "handles are wanted of what can be changed");
    // SAFETY: three sizes each, or null.
    let (offset, global, local) = unsafe { (sizes(offset), sizes(global), sizes(local)) };
    // SAFETY: as above.
    if global.is_some_and(|global| global[0] == unsafe { buffer(handle) }.fake.refused_kernel.load(Ordering::SeqCst)) {
        return CL_INVALID_OPERATION;
    }
    let kernel = if mutable { cloned(kernel) } else { kernel };
    let launch = Arc::new(Mutex::new(Launch { kernel, cloned: mutable, dims, offset, global, local }));
    if mutable {
        // SAFETY: a valid address for a handle, and a live handle.
        unsafe {
            *place = Arc::as_ptr(&launch).cast_mut().cast();
            buffer(handle).launches.push(Arc::clone(&launch));
        }
    }
    record(handle, Box::new(move |core, queue| launch.lock().unwrap().enqueue(core, queue)))
}

fn cloned(kernel: cl_kernel) -> cl_kernel {
    let mut status = 0;
    // SAFETY: a live kernel, whose arguments nothing changes now.
    let clone = unsafe { Core::get().unwrap().clCloneKernel.unwrap()(kernel, &raw mut status) };
    assert_eq!(status, CL_SUCCESS);
    clone
}

/// Updates kernels, for both signatures.
fn update(handle: cl_command_buffer_khr, configs: &[&DispatchConfig]) -> cl_int {
    let core = Core::get().unwrap();
    // SAFETY: updates are called with live handles.
    let buffer = unsafe { buffer(handle) };
    assert!(buffer.finalized && buffer.mutable);
    let status = buffer.fake.update_status.load(Ordering::SeqCst);
    let changed = if status == CL_SUCCESS { configs.len() } else { 1 };
    for config in &configs[..changed] {
        let is_it = |launch: &&Arc<Mutex<Launch>>| Arc::as_ptr(launch).addr() == config.command.addr();
        let mut launch = buffer.launches.iter().find(is_it).unwrap().lock().unwrap();
        assert_eq!((config.work_dim, config.num_svm_args, config.num_exec_infos), (0, 0, 0));
        for at in 0..config.num_args as usize {
            // SAFETY: the list has that many arguments, each with a value of its size; the kernel is a clone.
            let set = unsafe {
                let arg = &*config.args.add(at);
                (core.clSetKernelArg)(launch.kernel, arg.index, arg.size, arg.value)
            };
            assert_eq!(set, CL_SUCCESS);
        }
        // SAFETY: three sizes each, or null.
        let (offset, global, local) =
            unsafe { (sizes(config.global_offset), sizes(config.global_size), sizes(config.local_size)) };
        launch.offset = offset.or(launch.offset);
        launch.global = global.or(launch.global);
        launch.local = local.or(launch.local);
        buffer.fake.updated.fetch_add(1, Ordering::SeqCst);
    }
    status
}

/// Updates with the signature of revision 0.9.2 and later.
pub(super) unsafe extern "system" fn update_by_arrays(
    handle: cl_command_buffer_khr,
    count: cl_uint,
    kinds: *const cl_uint,
    configs: *const *const DispatchConfig,
) -> cl_int {
    // SAFETY: both arrays have `count` entries, and the second has live structs.
    let configs: Vec<&DispatchConfig> = unsafe {
        assert!((0..count as usize).all(|at| *kinds.add(at) == 0));
        (0..count as usize).map(|at| &**configs.add(at)).collect()
    };
    update(handle, &configs)
}

/// A struct of the headers of revisions 0.9.0 and 0.9.1: its type and a link come before the fields of a config.
#[repr(C)]
pub(super) struct Linked<T> {
    kind: cl_uint,
    next: *const c_void,
    rest: T,
}

#[repr(C)]
pub(super) struct List {
    count: cl_uint,
    configs: *const Linked<DispatchConfig>,
}

/// Updates with the signature of revisions 0.9.0 and 0.9.1.
pub(super) unsafe extern "system" fn update_by_list(
    handle: cl_command_buffer_khr,
    base: *const Linked<List>,
) -> cl_int {
    // SAFETY: a live struct, whose list has `count` live structs.
    let configs: Vec<&DispatchConfig> = unsafe {
        assert_eq!(((*base).kind, (*base).next.is_null()), (0, true));
        let list = &(*base).rest;
        let linked = (0..list.count as usize).map(|at| &*list.configs.add(at));
        linked.inspect(|config| assert_eq!((config.kind, config.next.is_null()), (1, true))).map(|c| &c.rest).collect()
    };
    update(handle, &configs)
}
