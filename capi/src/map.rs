//! Host tasks that get memory or a part of an image mapped.

use std::ffi::{c_int, c_void};

use rust::{Graph, HostTaskContext, MapMode, MapRead, MapWrite, MapWriteInvalidate, Mapped, MappedImage, Queue};

use crate::event::{clg_event, wait_list};
use crate::graph::{add_or_replace, clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle;
use crate::image::clg_area;
use crate::objects::{clg_queue, clg_range, with_slice};
use crate::pointers::{self, UserData};
use crate::status::{Failure, Outcome, clg_status, enter};
use crate::submission::{clg_submission, give_submission};
use crate::task::{Task, clg_task, run_as_task};

/// How the host uses memory that is mapped for it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_map_mode {
    /// It only reads.
    CLG_MAP_READ = 0,
    /// It reads and writes.
    CLG_MAP_WRITE = 1,
    /// It writes all of it; what was there before is undefined.
    CLG_MAP_WRITE_INVALIDATE = 2,
}

/// Where mapped memory is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_mapped {
    /// Its first byte.
    pub data: *mut c_void,
    /// How many bytes there are from the first to the last.
    pub size: usize,
    /// The bytes from one row of an image to the next.
    pub row_pitch: usize,
    /// The bytes from one slice of an image to the next.
    pub slice_pitch: usize,
}

/// A function of the program that gets mapped memory.
#[repr(C)]
pub struct clg_map_task {
    /// The function. It runs once in each submission, on a thread of clgraph, and never twice at the same time. `data`
    /// is valid until it returns: `size` bytes, or for an image its rows, `row_pitch` bytes from one to the next, and
    /// `slice_pitch` bytes from one slice to the next. If it returns anything but 0, the submission fails, with the
    /// text of `clg_fail`. No C++ exception may leave it.
    pub function: Option<
        extern "C" fn(
            task: clg_task,
            data: *mut c_void,
            size: usize,
            row_pitch: usize,
            slice_pitch: usize,
            user: *mut c_void,
        ) -> c_int,
    >,
    /// What the function gets.
    pub user: *mut c_void,
    /// Called exactly once when `user` is no longer used, on any thread, also if the node is not added. May be null.
    pub release: Option<extern "C" fn(user: *mut c_void)>,
}

type MapFunction = extern "C" fn(clg_task, *mut c_void, usize, usize, usize, *mut c_void) -> c_int;

/// Reads a function for mapped memory from C. Its data is given back, whatever is wrong.
///
/// # Safety
/// **caller**.
unsafe fn map_task(task: *const clg_map_task) -> Outcome<(MapFunction, UserData)> {
    // SAFETY: **caller**.
    let task = unsafe { pointers::read("task", task) }?;
    let user = UserData::new(task.user, task.release);
    Ok((task.function.ok_or_else(|| Failure::null("task->function"))?, user))
}

/// Runs code once for the mode that a number of C names.
macro_rules! with_mode {
    ($mode:expr, |$name:ident| $code:expr) => {{
        let mode = $mode;
        if mode == clg_map_mode::CLG_MAP_READ as i32 {
            let $name = MapRead;
            $code
        } else if mode == clg_map_mode::CLG_MAP_WRITE as i32 {
            let $name = MapWrite;
            $code
        } else if mode == clg_map_mode::CLG_MAP_WRITE_INVALIDATE as i32 {
            let $name = MapWriteInvalidate;
            $code
        } else {
            return Err(Failure::invalid(format!("{mode} is no way to map (clg_map_mode)")));
        }
    }};
}

/// Where mapped memory begins: an address through which it may be written if the mode says so.
trait Start: MapMode {
    fn of_bytes(mapped: &mut Mapped<u8, Self>) -> *mut u8;
    fn of_image(mapped: &mut MappedImage<u8, Self>) -> *mut u8;
}

impl Start for MapRead {
    fn of_bytes(mapped: &mut Mapped<u8, Self>) -> *mut u8 {
        mapped.as_ptr().cast_mut()
    }

    fn of_image(mapped: &mut MappedImage<u8, Self>) -> *mut u8 {
        mapped.row(0, 0).map_or(std::ptr::null_mut(), |row| row.as_ptr().cast_mut())
    }
}

macro_rules! writable {
    ($($mode:ty)*) => {
        $(
            impl Start for $mode {
                fn of_bytes(mapped: &mut Mapped<u8, Self>) -> *mut u8 {
                    mapped.as_mut_ptr()
                }

                fn of_image(mapped: &mut MappedImage<u8, Self>) -> *mut u8 {
                    mapped.row_mut(0, 0).map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr)
                }
            }
        )*
    };
}
writable!(MapWrite MapWriteInvalidate);

impl clg_mapped {
    fn of_bytes<M: Start>(mapped: &mut Mapped<u8, M>) -> Self {
        let size = mapped.len();
        Self { data: M::of_bytes(mapped).cast(), size, row_pitch: size, slice_pitch: size }
    }

    fn of_image<M: Start>(mapped: &mut MappedImage<u8, M>, row_bytes: usize) -> Self {
        let [_, rows, slices] = mapped.region();
        let at = |y, z| mapped.row(y, z).map_or(std::ptr::null(), <[u8]>::as_ptr);
        let start: *const u8 = at(0, 0);
        let row_pitch = if rows > 1 { at(1, 0).addr() - start.addr() } else { row_bytes };
        let slice_pitch = if slices > 1 { at(0, 1).addr() - start.addr() } else { row_pitch * rows };
        let size = slice_pitch * (slices - 1) + row_pitch * (rows - 1) + row_bytes;
        Self { data: M::of_image(mapped).cast(), size, row_pitch, slice_pitch }
    }
}

/// Runs a function of the program with mapped memory.
fn run_mapped(
    context: &HostTaskContext<'_>,
    function: MapFunction,
    user: &UserData,
    place: &clg_mapped,
) -> Result<(), String> {
    run_as_task(context, |task| {
        function(task, place.data, place.size, place.row_pitch, place.slice_pitch, user.pointer)
    })
}

/// Adds a function that gets memory mapped, between the nodes before and after it. `mode` is a `clg_map_mode`.
///
/// # Safety
/// The function may be called on any thread, writes only if the mode says so, and stays inside the memory. Nothing else
/// uses the memory meanwhile that the graph does not know. The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_map(
    graph: clg_graph,
    range: clg_range,
    mode: i32,
    task: *const clg_map_task,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (function, user) = unsafe { map_task(task) }?;
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let memory = range.slice()?;
        with_mode!(mode, |mode| {
            // SAFETY: **caller**: the promise of this function.
            let builder = with_slice!(memory, |memory| unsafe {
                graph.map(memory, mode, move |context: &HostTaskContext<'_>, mapped: &mut Mapped<u8, _>| {
                    run_mapped(context, function, &user, &clg_mapped::of_bytes(mapped))
                })
            });
            add_or_replace!(builder, options, node, |old| old.node())
        })
    })
}

/// Adds a function that gets a part of an image mapped. As `clg_graph_map` otherwise.
///
/// # Safety
/// As of `clg_graph_map`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_map_image(
    graph: clg_graph,
    area: clg_area,
    mode: i32,
    task: *const clg_map_task,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (function, user) = unsafe { map_task(task) }?;
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let (image, origin, region) = area.parts()?;
        let row_bytes = region[0].saturating_mul(image.pixel_size());
        with_mode!(mode, |mode| {
            // SAFETY: **caller**: the promise of this function.
            let builder = unsafe {
                graph.map_image(
                    &image,
                    origin,
                    region,
                    mode,
                    move |context: &HostTaskContext<'_>, mapped: &mut MappedImage<u8, _>| {
                        run_mapped(context, function, &user, &clg_mapped::of_image(mapped, row_bytes))
                    },
                )
            };
            add_or_replace!(builder, options, node, |old| old.node())
        })
    })
}

/// Enqueues a function that gets memory mapped, or records it. `submission` gets a handle of its run, or of what was
/// recorded.
///
/// # Safety
/// As of `clg_graph_map`. `event_wait_list` points to as many events as `num_events` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_map(
    queue: clg_queue,
    range: clg_range,
    mode: i32,
    task: *const clg_map_task,
    num_events: u32,
    event_wait_list: *const clg_event,
    submission: *mut clg_submission,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (function, user) = unsafe { map_task(task) }?;
        // SAFETY: **caller**.
        let submission = unsafe { pointers::target("submission", submission) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let (memory, waits) = (range.slice()?, waits.iter().collect::<Vec<_>>());
        let run = with_mode!(mode, |mode| {
            // SAFETY: **caller**: the promise of this function.
            with_slice!(memory, |memory| unsafe {
                queue.enqueue_map(
                    memory,
                    mode,
                    move |context: &HostTaskContext<'_>, mapped: &mut Mapped<u8, _>| {
                        run_mapped(context, function, &user, &clg_mapped::of_bytes(mapped))
                    },
                    &waits,
                )
            })
        })?;
        give_submission(run, submission)
    })
}

/// Enqueues a function that gets a part of an image mapped, or records it. As `clg_enqueue_map` otherwise.
///
/// # Safety
/// As of `clg_enqueue_map`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_map_image(
    queue: clg_queue,
    area: clg_area,
    mode: i32,
    task: *const clg_map_task,
    num_events: u32,
    event_wait_list: *const clg_event,
    submission: *mut clg_submission,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (function, user) = unsafe { map_task(task) }?;
        // SAFETY: **caller**.
        let submission = unsafe { pointers::target("submission", submission) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let (image, origin, region) = area.parts()?;
        let (row_bytes, waits) = (region[0].saturating_mul(image.pixel_size()), waits.iter().collect::<Vec<_>>());
        let run = with_mode!(mode, |mode| {
            // SAFETY: **caller**: the promise of this function.
            unsafe {
                queue.enqueue_map_image(
                    &image,
                    origin,
                    region,
                    mode,
                    move |context: &HostTaskContext<'_>, mapped: &mut MappedImage<u8, _>| {
                        run_mapped(context, function, &user, &clg_mapped::of_image(mapped, row_bytes))
                    },
                    &waits,
                )
            }
        })?;
        give_submission(run, submission)
    })
}

/// Maps memory for the function of a host task, until that function returns. The task has declared that it uses the memory:
/// that it reads for CLG_MAP_READ, that it writes for CLG_MAP_WRITE_INVALIDATE, and both for CLG_MAP_WRITE. `mode` is a
/// `clg_map_mode`. If the memory cannot be unmapped, the task fails.
///
/// # Safety
/// The memory is written only if the mode says so, nobody uses what is mapped after the function has returned, and nothing
/// else uses the memory meanwhile that the graph does not know. `result` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_task_map(
    task: clg_task,
    range: clg_range,
    mode: i32,
    result: *mut clg_mapped,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let (task, memory) = (Task::of(task)?, range.slice()?);
        let at = with_mode!(mode, |mode| with_slice!(memory, |memory| task.map(|context| {
            // SAFETY: **caller**: the promise of this function.
            let mut mapped = unsafe { context.map::<u8, _>(memory, mode) }?;
            Ok((clg_mapped::of_bytes(&mut mapped), move || mapped.unmap()))
        })))?;
        place.set(at);
        Ok(())
    })
}

/// Maps a part of an image for the function of a host task, until that function returns. As `clg_task_map` otherwise.
///
/// # Safety
/// As of `clg_task_map`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_task_map_image(
    task: clg_task,
    area: clg_area,
    mode: i32,
    result: *mut clg_mapped,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let (task, (image, origin, region)) = (Task::of(task)?, area.parts()?);
        let row_bytes = region[0].saturating_mul(image.pixel_size());
        let at = with_mode!(mode, |mode| task.map(|context| {
            // SAFETY: **caller**: the promise of this function.
            let mut mapped = unsafe { context.map_image::<u8, _>(&image, origin, region, mode) }?;
            Ok((clg_mapped::of_image(&mut mapped, row_bytes), move || mapped.unmap()))
        }))?;
        place.set(at);
        Ok(())
    })
}
