//! Host tasks, and the view that tasks have of their submission.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use rust::{DriverError, Graph, HostRead, HostTaskContext, HostTaskNode, HostWrite, Queue, SubmitError};

use crate::event::{clg_event, wait_list};
use crate::graph::{add_or_replace, clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::group::clg_command_group;
use crate::handle::{self, handled};
use crate::image::clg_image;
use crate::objects::{clg_queue, clg_range, with_slice};
use crate::pointers::{self, Flag, UserData};
use crate::status::{Failure, Outcome, call_program, clg_status, enter};
use crate::submission::{clg_submission, give_submission};

/// The view that a task has of its submission, while the task runs: None after its function has returned.
#[derive(Clone)]
pub(crate) struct Task(Arc<Mutex<Option<Context>>>);

/// What a task has while its function runs.
struct Context {
    address: *const HostTaskContext<'static>,
    /// How to unmap what the function has mapped.
    mapped: Vec<Box<dyn FnOnce() -> Result<(), DriverError> + Send>>,
}

// SAFETY: the address is used under the lock of the task only, and taken away under that lock before the context ends. What
// it leads to is used through `&self`.
unsafe impl Send for Context {}

/// What a `clg_task` names.
pub struct clg_task_object {
    _private: [u8; 0],
}

/// A host task that runs: the handle is valid until its function returns.
pub type clg_task = *mut clg_task_object;

handled!(Task, 7, "clg_task");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_task_retain(object: clg_task) -> clg_status {
    enter(|| handle::retain::<Task>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_task_release(object: clg_task) -> clg_status {
    enter(|| handle::release::<Task>(object.addr()))
}

/// Memory or an image that a command uses.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_use {
    /// The memory, if there is no image.
    pub range: clg_range,
    /// An image, or null.
    pub image: clg_image,
    /// Whether the command reads it.
    pub reads: Flag,
    /// Whether the command writes it.
    pub writes: Flag,
}

/// A host task.
#[repr(C)]
pub struct clg_host_task {
    /// The function. It runs once in each submission, on a thread of clgraph, and never twice at the same time. If it
    /// returns anything but 0, the submission fails, with the text of `clg_fail`. No C++ exception may leave it.
    pub function: Option<extern "C" fn(task: clg_task, user: *mut c_void) -> c_int>,
    /// What the function gets.
    pub user: *mut c_void,
    /// Called exactly once when `user` is no longer used, on any thread, also if the node is not added. May be null.
    pub release: Option<extern "C" fn(user: *mut c_void)>,
    /// The memory that the function uses, so that nodes with the same memory wait for each other.
    pub uses: *const clg_use,
    /// How many.
    pub num_uses: usize,
}

fn has_returned() -> Failure {
    Failure::invalid("the host task has returned")
}

impl Task {
    pub(crate) fn of(handle: clg_task) -> Outcome<Self> {
        handle::get::<Self>(handle.addr())
    }

    fn with<R>(&self, call: impl FnOnce(&HostTaskContext<'_>) -> Outcome<R>) -> Outcome<R> {
        let context = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let context = context.as_ref().ok_or_else(has_returned)?;
        // SAFETY: the context lives until it is taken out of the task, under the lock that is held here.
        call(unsafe { &*context.address })
    }

    /// Maps something until the function returns. `map` also returns how to unmap it.
    pub(crate) fn map<R, U: FnOnce() -> Result<(), DriverError> + Send + 'static>(
        &self,
        map: impl FnOnce(&HostTaskContext<'_>) -> Outcome<(R, U)>,
    ) -> Outcome<R> {
        let mut context = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let context = context.as_mut().ok_or_else(has_returned)?;
        // SAFETY: as above.
        let (result, unmap) = map(unsafe { &*context.address })?;
        context.mapped.push(Box::new(unmap));
        Ok(result)
    }

    /// Takes the context away, and unmaps what the function has mapped. What was written is lost if the driver refuses.
    fn end(&self) -> Result<(), String> {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Without the lock: other threads of the program may ask for the task meanwhile.
        let mapped = ended.map(|context| context.mapped).unwrap_or_default();
        let outcomes: Vec<_> = mapped.into_iter().map(|unmap| unmap()).collect();
        let outcome: Result<(), DriverError> = outcomes.into_iter().collect();
        outcome.map_err(|error| format!("what the task mapped cannot be unmapped: {error}"))
    }
}

/// Runs a function of the program as a host task.
fn run(
    context: &HostTaskContext<'_>,
    function: extern "C" fn(clg_task, *mut c_void) -> c_int,
    user: &UserData,
) -> Result<(), String> {
    run_as_task(context, |task| function(task, user.pointer))
}

/// Gives a function of the program a handle of the task, which ends when the function returns.
pub(crate) fn run_as_task(
    context: &HostTaskContext<'_>,
    function: impl FnOnce(clg_task) -> c_int,
) -> Result<(), String> {
    let address = std::ptr::from_ref(context).cast::<HostTaskContext<'static>>();
    let task = Task(Arc::new(Mutex::new(Some(Context { address, mapped: Vec::new() }))));
    let handle = handle::new(task.clone()).map_err(|failure| failure.into_text())?;
    let outcome = call_program(|| function(handle as clg_task));
    let unmapped = task.end();
    // The program may have released it; then the handle is dead already.
    let _ = handle::release::<Task>(handle);
    outcome.and(unmapped)
}

/// Declares the use of memory at a builder of a host task or of a native command.
macro_rules! with_use {
    ($builder:expr, $one:expr) => {{
        let access = $crate::launch::Access::of($one.reads, $one.writes)?;
        let builder = $builder;
        macro_rules! declared {
            ($memory:expr) => {
                match access {
                    $crate::launch::Access::Read => builder.reads($memory),
                    $crate::launch::Access::Write => builder.writes($memory),
                    $crate::launch::Access::ReadWrite => builder.reads_and_writes($memory),
                }
            };
        }
        if $one.image.is_null() {
            with_slice!($one.range.slice()?, |memory| declared!(memory))
        } else {
            match $crate::handle::get::<$crate::image::AnyImage>($one.image.addr())? {
                $crate::image::AnyImage::Whole(image) => declared!(&image),
                $crate::image::AnyImage::Layers(layers) => declared!(&layers),
            }
        }
    }};
}
pub(crate) use with_use;

/// A host task of the program, to be given to a builder.
type Function = Box<dyn FnMut(&HostTaskContext<'_>) -> Result<(), String> + Send>;

/// The parts of a host task that are read from C: what runs, and what it uses.
type Given<'a> = (Function, &'a [clg_use]);

/// Reads a host task from C. Its data is given back, whatever is wrong.
///
/// # Safety
/// **caller**.
unsafe fn given<'a>(task: *const clg_host_task) -> Outcome<Given<'a>> {
    // SAFETY: **caller**.
    let task: &'a clg_host_task = unsafe { pointers::read("task", task) }?;
    let user = UserData::new(task.user, task.release);
    let function = task.function.ok_or_else(|| Failure::null("task->function"))?;
    // SAFETY: **caller**.
    let uses = unsafe { pointers::list("task->uses", task.uses, task.num_uses) }?;
    Ok((Box::new(move |context| run(context, function, &user)), uses))
}

fn host_task_of(graph: &Graph, mut function: Function) -> HostTaskNode<'_> {
    graph.host_task(move |context: &HostTaskContext<'_>| function(context))
}

/// Adds a host task: a function that runs on the host between the nodes before and after it.
///
/// # Safety
/// The function may be called on any thread. The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_host_task(
    graph: clg_graph,
    task: *const clg_host_task,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**. The task comes first: its data is given back whatever is wrong.
        let (function, uses) = unsafe { given(task) }?;
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let mut builder = host_task_of(&graph, function);
        for one in uses {
            builder = with_use!(builder, one);
        }
        add_or_replace!(builder, options, node, |old| old.node())
    })
}

/// Makes a group of host tasks, of which the first is active. They use the same memory in the same ways. A node of it
/// is added by `clg_graph_command_group_node`.
///
/// # Safety
/// As of `clg_graph_host_task`. `tasks` points to as many tasks as `num_tasks` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_host_task_group(
    graph: clg_graph,
    tasks: *const clg_host_task,
    num_tasks: usize,
    result: *mut clg_command_group,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**. The tasks come first: their data is given back whatever is wrong.
        let all = unsafe { pointers::list("tasks", tasks, num_tasks) }?;
        // SAFETY: **caller**.
        let given: Vec<Outcome<Given<'_>>> = all.iter().map(|one| unsafe { given(one) }).collect();
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        let mut builders = Vec::new();
        for (index, one) in given.into_iter().enumerate() {
            let (function, uses) = one.map_err(|failure| failure.within(format!("task {index}")))?;
            let mut builder = host_task_of(&graph, function);
            for one in uses {
                builder = with_use!(builder, one);
            }
            builders.push(builder);
        }
        place.set(handle::new(graph.host_task_group(builders)?)? as clg_command_group);
        Ok(())
    })
}

/// Enqueues a host task, or records it. `submission` gets a handle of its run, or of what was recorded.
///
/// # Safety
/// As of `clg_graph_host_task`. `event_wait_list` points to as many events as `num_events` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_host_task(
    queue: clg_queue,
    task: *const clg_host_task,
    num_events: u32,
    event_wait_list: *const clg_event,
    submission: *mut clg_submission,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (mut function, uses) = unsafe { given(task) }?;
        // SAFETY: **caller**.
        let submission = unsafe { pointers::target("submission", submission) }?;
        if !uses.is_empty() {
            return Err(Failure::invalid(
                "a task on a queue waits for all commands before it, and declares no uses of memory",
            ));
        }
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let waits: Vec<_> = waits.iter().collect();
        let run = queue.enqueue_host_task(move |context: &HostTaskContext<'_>| function(context), &waits)?;
        give_submission(run, submission)
    })
}

/// Copies the result of a read that comes before the task. `size` is the size of the read.
///
/// # Safety
/// `data` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_task_get(task: clg_task, read: clg_node, data: *mut c_void, size: usize) -> clg_status {
    enter(|| {
        let result = Task::of(task)?.with(|context| Ok(context.get(&HostRead::<u8>::from_raw(read.raw()))?))?;
        // SAFETY: **caller**.
        unsafe { crate::submission::copy_out(&result, data, size) }
    })
}

/// Sets the data of a write that comes after the task, for this submission. The data is copied.
///
/// # Safety
/// `data` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_task_put(task: clg_task, write: clg_node, data: *const c_void, size: usize) -> clg_status {
    enter(|| {
        let write = HostWrite::<u8>::from_raw(write.raw());
        Task::of(task)?.with(|context| {
            // Data of a wrong size is refused, and the error says which size it has to have: a write has bytes.
            let expected = match context.put(&write, Vec::new()) {
                Err(rust::Error::Submit(SubmitError::InputSize { expected, .. })) => expected,
                other => return Ok(other?),
            };
            // SAFETY: **caller**.
            let data = unsafe { pointers::data(data, size, expected, UserData::new(std::ptr::null_mut(), None)) }?;
            Ok(context.put(&write, data)?)
        })
    })
}
