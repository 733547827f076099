//! Commands of a queue, which execute at once or are recorded into a graph.
//!
//! They are as those of OpenCL with the same names, with handles of clgraph and the use of memory of kernels declared.

use std::ffi::c_void;
use std::sync::Arc;

use rust::{CommandGroup, ExecuteKernel, GraphMemory, Kernel, PendingRead, Queue};

use crate::event::{clg_event, give_event, wait_list};
use crate::graph::{clg_node, give_node};
use crate::group::clg_command_group;
use crate::handle::{self, handled};
use crate::image::{AnyImage, clg_area, color, packed};
use crate::launch::{clg_launch, fill_in};
use crate::objects::{AnyMemory, clg_memory, clg_queue, clg_range, with_slice};
use crate::pointers::{self, Release, UserData};
use crate::status::{Failure, clg_status, enter};
use crate::transfer::{clg_hint, clg_rect, graph_memory};

/// Runs code for a command: on the queue if C wants the event, and else on the queue without events, where a driver need
/// not make one.
macro_rules! enqueue {
    ($queue:expr, $num_events:expr, $list:expr, $event:expr, |$on:ident, $waits:ident| $call:expr) => {{
        let queue = handle::get::<Queue>($queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list($num_events, $list) }?;
        let $waits = &waits.iter().collect::<Vec<_>>()[..];
        if $event.is_none() {
            let $on = &queue.detached();
            let (): () = $call?;
            Ok(())
        } else {
            let $on = &queue;
            let event: rust::Event = $call?;
            give_event(event, $event)
        }
    }};
}

/// Copies bytes from memory to memory, of ranges of one size.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_copy_buffer(
    queue: clg_queue,
    from: clg_range,
    to: clg_range,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let (from, to) = (from.slice()?, to.slice()?);
        let size = with_slice!(from, |from| from.size());
        let other = with_slice!(to, |to| to.size());
        if size != other {
            return Err(Failure::invalid(format!("the source has {size} bytes, and the destination {other}")));
        }
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| with_slice!(from, |from| with_slice!(
            to,
            |to| queue.enqueue_copy_buffer(from, to, 0, 0, size, waits)
        )))
    })
}

/// Copies a rectangle or a box from memory to memory.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_copy_buffer_rect(
    queue: clg_queue,
    from: clg_range,
    to: clg_range,
    rect: *const clg_rect,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        // SAFETY: **caller**.
        let rect = *unsafe { pointers::read("rect", rect) }?;
        let (from, to) = (from.slice()?, to.slice()?);
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| {
            with_slice!(from, |from| with_slice!(to, |to| queue.enqueue_copy_buffer_rect(
                from,
                to,
                rect.src_origin,
                rect.dst_origin,
                rect.region,
                rect.src_row_pitch,
                rect.src_slice_pitch,
                rect.dst_row_pitch,
                rect.dst_slice_pitch,
                waits
            )))
        })
    })
}

/// Fills memory with a pattern, of a size that divides the size of the range.
///
/// # Safety
/// `pattern` points to as many bytes as `pattern_size` says; the other pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_fill_buffer(
    queue: clg_queue,
    to: clg_range,
    pattern: *const c_void,
    pattern_size: usize,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let to = to.slice()?;
        let size = with_slice!(to, |to| to.size());
        // SAFETY: **caller**.
        let pattern = unsafe { pointers::pattern(pattern, pattern_size, size) }?;
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| with_slice!(to, |to| queue
            .enqueue_fill_buffer(to, pattern, 0, to.size(), waits)))
    })
}

/// Writes host data to memory, and does not block. Without `release` the data is copied. With `release` it is used where
/// it is, until `release(user)` gives it back: it is called exactly once, on any thread, also if this call fails.
///
/// # Safety
/// `data` points to `data_size` bytes; the other pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_write_buffer(
    queue: clg_queue,
    to: clg_range,
    data: *const c_void,
    data_size: usize,
    release: Option<extern "C" fn(user: *mut c_void)>,
    user: *mut c_void,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        let user = UserData::new(user, release as Release);
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let to = to.slice()?;
        let size = with_slice!(to, |to| to.size());
        // SAFETY: **caller**.
        let data = unsafe { pointers::data(data, data_size, size, user) }?;
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| with_slice!(to, |to| queue
            .enqueue_write_buffer_owned(to, 0, data, waits)))
    })
}

/// Copies pixels between images of one format. The area of `to` counts only by its image and origin.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_copy_image(
    queue: clg_queue,
    from: clg_area,
    to: clg_area,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let ((src, src_origin, region), dst) = (from.parts()?, AnyImage::whole(to.image)?);
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| queue
            .enqueue_copy_image(&src, &dst, src_origin, to.origin, region, waits))
    })
}

/// Copies pixels of an image to memory, where they are packed.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_copy_image_to_buffer(
    queue: clg_queue,
    from: clg_area,
    to: clg_range,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let ((src, origin, region), to) = (from.parts()?, to.slice()?);
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| with_slice!(to, |to| queue
            .enqueue_copy_image_to_buffer(&src, to, origin, region, 0, waits)))
    })
}

/// Copies packed pixels in memory to an image.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_copy_buffer_to_image(
    queue: clg_queue,
    from: clg_range,
    to: clg_area,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let (from, (dst, origin, region)) = (from.slice()?, to.parts()?);
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| with_slice!(from, |from| queue
            .enqueue_copy_buffer_to_image(from, &dst, 0, origin, region, waits)))
    })
}

/// Fills an image with one colour: four channels of the kind `color_kind`, a `clg_color_kind`.
///
/// # Safety
/// `color` points to 16 bytes; the other pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_fill_image(
    queue: clg_queue,
    to: clg_area,
    color_kind: i32,
    color: *const c_void,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        // SAFETY: **caller**.
        let color = unsafe { self::color(color_kind, color) }?;
        let (image, origin, region) = to.parts()?;
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| queue
            .enqueue_fill_image(&image, color, origin, region, waits))
    })
}

/// Writes packed pixels of the host to an image, and does not block. As `clg_enqueue_write_buffer` otherwise.
///
/// # Safety
/// `data` points to `data_size` bytes; the other pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_write_image(
    queue: clg_queue,
    to: clg_area,
    data: *const c_void,
    data_size: usize,
    release: Option<extern "C" fn(user: *mut c_void)>,
    user: *mut c_void,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        let user = UserData::new(user, release as Release);
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let (image, origin, region) = to.parts()?;
        // SAFETY: **caller**.
        let data = unsafe { pointers::data(data, data_size, packed(&image, region)?, user) }?;
        enqueue!(queue, num_events, event_wait_list, event, |queue, waits| queue
            .enqueue_write_image_owned(&image, origin, region, data, waits))
    })
}

/// Launches a kernel, or records the launch. The kernel uses its memory as declared, so that recorded nodes wait for
/// each other.
///
/// # Safety
/// The promise of `clg_graph_kernel`. The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_kernel(
    queue: clg_queue,
    launch: *const clg_launch,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let (waits, launch) = unsafe { (wait_list(num_events, event_wait_list)?, pointers::read("launch", launch)?) };
        let kernel = handle::get::<Kernel>(launch.kernel.addr())?;
        let mut execute = ExecuteKernel::new(&kernel);
        // SAFETY: **caller**.
        unsafe { fill_in(&mut execute, launch) }?;
        execute.set_event_wait_list(&waits.iter().collect::<Vec<_>>());
        if event.is_none() {
            // SAFETY: **caller**: the promise of this function.
            return Ok(unsafe { execute.enqueue_nd_range_detached(&queue) }?);
        }
        // SAFETY: **caller**: the promise of this function, and that of `event`.
        unsafe { give_event(execute.enqueue_nd_range(&queue)?, event) }
    })
}

/// Enqueues or records a marker: its event is complete when the wait list is, or everything before it if that is empty.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_marker(
    queue: clg_queue,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let waits = &waits.iter().collect::<Vec<_>>()[..];
        give_event(queue.enqueue_marker_with_wait_list(waits)?, event)
    })
}

/// Enqueues or records a barrier: everything after it waits for it.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_barrier(
    queue: clg_queue,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let waits = &waits.iter().collect::<Vec<_>>()[..];
        give_event(queue.enqueue_barrier_with_wait_list(waits)?, event)
    })
}

/// Gives or records a hint about memory: a `clg_hint`, and for CLG_HINT_ADVICE a number of the vendor's extension.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_hint(
    queue: clg_queue,
    range: clg_range,
    hint: i32,
    advice: u32,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let waits = &waits.iter().collect::<Vec<_>>()[..];
        let range = range.slice()?;
        let is = |of: clg_hint| hint == of as i32;
        let given = if is(clg_hint::CLG_HINT_TO_DEVICE) {
            with_slice!(range, |range| queue.enqueue_prefetch(range, waits))
        } else if is(clg_hint::CLG_HINT_TO_HOST) {
            with_slice!(range, |range| queue.enqueue_prefetch_to_host(range, waits))
        } else if is(clg_hint::CLG_HINT_ADVICE) {
            with_slice!(range, |range| queue.enqueue_advise(range, advice, waits))
        } else {
            return Err(Failure::invalid(format!("{hint} is no hint (clg_hint)")));
        }?;
        give_event(given, event)
    })
}

/// Records a node of a group. The queue records into the graph of the group.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_command_group(
    queue: clg_queue,
    group: clg_command_group,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let waits = &waits.iter().collect::<Vec<_>>()[..];
        let group = handle::get::<CommandGroup>(group.addr())?;
        give_event(queue.enqueue_command_group(&group, waits)?, event)
    })
}

/// Records the end of the life of memory of the graph. The queue records into that graph.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_free(
    queue: clg_queue,
    memory: clg_memory,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let waits = &waits.iter().collect::<Vec<_>>()[..];
        give_event(queue.enqueue_free(&graph_memory(memory)?, waits)?, event)
    })
}

/// Records an allocation of memory of the graph that the queue records into.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_allocate(
    queue: clg_queue,
    size: usize,
    zero_init: bool,
    num_events: u32,
    event_wait_list: *const clg_event,
    memory: *mut clg_memory,
) -> clg_status {
    enter(|| {
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let (place, waits) = unsafe { (pointers::place("memory", memory)?, wait_list(num_events, event_wait_list)?) };
        let pool = rust::MemoryPool::new();
        let pool = if zero_init { pool.zero_init() } else { pool };
        let made: GraphMemory<u8> = queue.enqueue_alloc_from_pool(pool, size, &waits.iter().collect::<Vec<_>>())?;
        place.set(handle::new(AnyMemory::Graph(made))? as clg_memory);
        Ok(())
    })
}

/// A read that was enqueued or recorded.
#[derive(Clone)]
pub(crate) struct Pending(Arc<PendingRead<u8>>);

/// What a `clg_pending_read` names.
pub struct clg_pending_read_object {
    _private: [u8; 0],
}

/// A read that was enqueued, whose data is not there yet; or one that was recorded.
pub type clg_pending_read = *mut clg_pending_read_object;

handled!(Pending, 13, "clg_pending_read");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_pending_read_retain(object: clg_pending_read) -> clg_status {
    enter(|| handle::retain::<Pending>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_pending_read_release(object: clg_pending_read) -> clg_status {
    enter(|| handle::release::<Pending>(object.addr()))
}

/// Enqueues or records a read of memory, and does not block.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_read_buffer(
    queue: clg_queue,
    from: clg_range,
    num_events: u32,
    event_wait_list: *const clg_event,
    result: *mut clg_pending_read,
) -> clg_status {
    enter(|| {
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let (place, waits) = unsafe { (pointers::place("result", result)?, wait_list(num_events, event_wait_list)?) };
        let (from, waits) = (from.slice()?, waits.iter().collect::<Vec<_>>());
        let read = with_slice!(from, |from| queue.enqueue_read_buffer_owned(from, 0, from.size(), &waits))?;
        place.set(handle::new(Pending(Arc::new(read)))? as clg_pending_read);
        Ok(())
    })
}

/// Enqueues or records a read of an image, and does not block. The pixels are packed.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_read_image(
    queue: clg_queue,
    from: clg_area,
    num_events: u32,
    event_wait_list: *const clg_event,
    result: *mut clg_pending_read,
) -> clg_status {
    enter(|| {
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let (place, waits) = unsafe { (pointers::place("result", result)?, wait_list(num_events, event_wait_list)?) };
        let ((image, origin, region), waits) = (from.parts()?, waits.iter().collect::<Vec<_>>());
        let read = queue.enqueue_read_image_owned(&image, origin, region, &waits)?;
        place.set(handle::new(Pending(Arc::new(read)))? as clg_pending_read);
        Ok(())
    })
}

/// Blocks until a read is complete, and copies its data. `size` is the size of the read.
///
/// # Safety
/// `data` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_pending_read_wait(read: clg_pending_read, data: *mut c_void, size: usize) -> clg_status {
    enter(|| {
        let bytes = handle::get::<Pending>(read.addr())?.0.wait()?;
        // SAFETY: **caller**.
        unsafe { crate::submission::copy_out(&bytes, data, size) }
    })
}

/// Returns the event of a read.
///
/// # Safety
/// `event` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_pending_read_event(read: clg_pending_read, event: *mut clg_event) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let read = handle::get::<Pending>(read.addr())?;
        give_event(read.0.event().clone(), event)
    })
}

/// Returns the node of a read that was recorded: the name of the result of each submission.
#[unsafe(no_mangle)]
pub extern "C" fn clg_pending_read_node(read: clg_pending_read, node: *mut clg_node) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        unsafe { pointers::place("node", node) }?;
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        give_node(handle::get::<Pending>(read.addr())?.0.host_read()?.to_raw(), node)
    })
}
