//! Branches and loops: nodes with bodies, and the calls of a queue that decide or record.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use rust::{Branch, ControlHandle, Executable, Graph, Loop, LoopBounds, Queue, RawNode, SubmitError};

use crate::execute::{clg_executable, clg_sub_graph, give_sub_graph};
use crate::graph::{clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle::{self, handled};
use crate::objects::{clg_queue, clg_range, with_slice};
use crate::pointers::{self, Target};
use crate::status::{Failure, Outcome, call_program, clg_status, enter};
use crate::submission::{clg_submission, run_of};

/// A branch or a loop.
#[derive(Clone)]
pub(crate) enum Control {
    Branch(Branch),
    Loop(Loop),
}

impl From<Branch> for Control {
    fn from(branch: Branch) -> Self {
        Self::Branch(branch)
    }
}

impl From<Loop> for Control {
    fn from(of: Loop) -> Self {
        Self::Loop(of)
    }
}

/// What a `clg_control` names.
pub struct clg_control_object {
    _private: [u8; 0],
}

/// A branch or a loop of a graph, which finds its bodies.
pub type clg_control = *mut clg_control_object;

handled!(Control, 20, "clg_control");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_control_retain(object: clg_control) -> clg_status {
    enter(|| handle::retain::<Control>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_control_release(object: clg_control) -> clg_status {
    enter(|| handle::release::<Control>(object.addr()))
}

/// Returns a node as C has it: the branch or loop itself is part 0, as any node is, and those inside it come after it.
/// Rust counts those inside from 0, and the node itself has the greatest number.
pub(crate) fn node_of(control: &impl ControlHandle) -> RawNode {
    let raw = control.to_raw();
    RawNode { part: raw.part.wrapping_add(1), ..raw }
}

/// Returns the branch or loop of a node of C. It is as good as a branch as it is as a loop.
pub(crate) fn control_of(node: RawNode) -> Loop {
    Loop::from_raw(RawNode { part: node.part.wrapping_sub(1), ..node })
}

/// Puts a branch or loop where C wants it.
fn give<C: ControlHandle + Into<Control>>(
    made: C,
    node: Target<'_, clg_node>,
    control: Target<'_, clg_control>,
) -> Outcome<()> {
    give_node(node_of(&made), node)?;
    if let Some(to) = control {
        to.set(handle::new::<Control>(made.into())? as clg_control);
    }
    Ok(())
}

/// Puts what a queue has recorded where C wants it: nothing, if it executed.
fn give_recorded<C: ControlHandle + Into<Control>>(
    made: Option<C>,
    node: Target<'_, clg_node>,
    control: Target<'_, clg_control>,
) -> Outcome<()> {
    if let Some(made) = made {
        return give(made, node, control);
    }
    give_node(clg_node::default().raw(), node)?;
    if let Some(to) = control {
        to.set(std::ptr::null_mut());
    }
    Ok(())
}

/// Runs code with the number that some memory begins with. What is too small for one has none.
macro_rules! with_number {
    ($range:expr, |$number:ident| $code:expr) => {
        with_slice!($range.slice()?, |memory| {
            let size = if memory.len() < size_of::<u32>() { 0 } else { size_of::<u32>() };
            let $number = &memory.slice(..size)?.cast::<u32>()?;
            $code
        })
    };
}

/// Returns where the node and the handle of a branch or loop go.
///
/// # Safety
/// **caller**: as of [`pointers::target`].
unsafe fn targets<'a>(
    node: *mut clg_node,
    control: *mut clg_control,
) -> Outcome<(Target<'a, clg_node>, Target<'a, clg_control>)> {
    // SAFETY: **caller**.
    unsafe { Ok((pointers::target("node", node)?, pointers::target("control", control)?)) }
}

/// Adds the node of a builder, or gives its decision to the node that the options name.
macro_rules! add_or_replace {
    ($builder:expr, $options:expr, $node:expr, $control:expr) => {{
        let (options, node, control) = ($options, $node, $control);
        let replaces = options.replaces;
        if replaces.is_some() && control.is_some() {
            return Err(Failure::invalid(
                "a node that is replaced keeps its bodies, and the `clg_control` that it has: pass null for `control`",
            ));
        }
        let builder = with_options!($builder, options);
        match replaces {
            None => give(builder.add()?, node, control),
            Some(old) => {
                builder.replace(old.node())?;
                give_node(old.raw(), node)
            }
        }
    }};
}

/// Adds a branch: `then` runs if the number at the start of `condition` is not zero, and `otherwise`, which may be null, if it
/// is.
///
/// The number is a `cl_uint` or `cl_int`, and is read behind everything that the node waits for. The bodies are executables,
/// as in sub-graphs, and the node keeps them: they can have inputs, results, host tasks, branches and loops, but no events
/// that each submission is given. The node reads the number and uses all memory that its bodies use.
///
/// `node` and `control` may be null; `control` is for the inputs, results, branches and loops of the bodies, and is released
/// by the program. A node can be replaced by one of the same kind with the same bodies, with another condition; then
/// `control` is null.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_when(
    graph: clg_graph,
    condition: clg_range,
    then: clg_executable,
    otherwise: clg_executable,
    options: *const clg_node_options,
    node: *mut clg_node,
    control: *mut clg_control,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (node, control) = unsafe { targets(node, control) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        let then = handle::get::<Executable>(then.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let mut builder = with_number!(condition, |number| graph.when(number, &then));
        if !otherwise.is_null() {
            builder = builder.otherwise(&handle::get::<Executable>(otherwise.addr())?);
        }
        add_or_replace!(builder, options, node, control)
    })
}

/// Adds a branch with several cases: the one runs whose index, from 0, is the number at the start of `index`, and none if
/// there is no such case. Otherwise as `clg_graph_when`.
///
/// # Safety
/// As of `clg_graph_when`. `cases` points to as many executables as `num_cases` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_switch(
    graph: clg_graph,
    index: clg_range,
    cases: *const clg_executable,
    num_cases: usize,
    options: *const clg_node_options,
    node: *mut clg_node,
    control: *mut clg_control,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (node, control) = unsafe { targets(node, control) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let cases = unsafe { pointers::list("cases", cases, num_cases) }?.iter().enumerate().map(|(number, case)| {
            handle::get::<Executable>(case.addr()).map_err(|failure| failure.within(format!("case {number}")))
        });
        let cases = cases.collect::<Outcome<Vec<Executable>>>()?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let builder = with_number!(index, |number| graph.switch(number, &cases));
        add_or_replace!(builder, options, node, control)
    })
}

/// Adds a loop: `body` runs as long as the number at the start of `condition` is not zero, which is read before each turn;
/// with `at_least_once` not before the first one.
///
/// A submission fails if the loop would go on after `at_most` turns; 0 is no bound, and then a loop can go on for ever, until
/// `clg_submission_cancel`. Inputs are used in each turn, host tasks run in each turn, and a result is that of the last turn.
/// Replacing changes the condition and the bounds. Otherwise as `clg_graph_when`.
///
/// # Safety
/// As of `clg_graph_when`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_repeat_while(
    graph: clg_graph,
    condition: clg_range,
    body: clg_executable,
    at_least_once: bool,
    at_most: u64,
    options: *const clg_node_options,
    node: *mut clg_node,
    control: *mut clg_control,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (node, control) = unsafe { targets(node, control) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        let body = handle::get::<Executable>(body.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let mut builder = with_number!(condition, |number| graph.repeat_while(number, &body));
        if at_least_once {
            builder = builder.at_least_once();
        }
        if at_most > 0 {
            builder = builder.at_most(at_most);
        }
        add_or_replace!(builder, options, node, control)
    })
}

/// Adds a loop with a known number of turns, which replacing changes. Otherwise as `clg_graph_repeat_while`.
///
/// # Safety
/// As of `clg_graph_when`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_repeat(
    graph: clg_graph,
    turns: u64,
    body: clg_executable,
    options: *const clg_node_options,
    node: *mut clg_node,
    control: *mut clg_control,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (node, control) = unsafe { targets(node, control) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        let body = handle::get::<Executable>(body.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        add_or_replace!(graph.repeat(turns, &body), options, node, control)
    })
}

/// Returns a body as a sub-graph of the node, for `clg_sub_graph_port`. `index` is 0 for the body of a loop and for `then`, 1
/// for `otherwise`, and the case for `clg_graph_switch`. The program releases `result`.
#[unsafe(no_mangle)]
pub extern "C" fn clg_control_body(control: clg_control, index: usize, result: *mut clg_sub_graph) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let result = unsafe { pointers::target("result", result) }?.ok_or_else(|| Failure::null("result"))?;
        let body = match handle::get::<Control>(control.addr())? {
            Control::Branch(branch) => branch.body(index),
            Control::Loop(of) => of.body().filter(|_| index == 0),
        };
        let body = body.ok_or_else(|| Failure::invalid(format!("the branch or loop has no body {index}")))?;
        give_sub_graph(body, Some(result))
    })
}

/// Returns how many turns a loop had so far; for a branch, how often it ran a body. Nothing is waited for. `of` is the node, or
/// a branch or loop inside a sub-graph or a body, by `clg_sub_graph_port`: then it is all turns together.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_turns(submission: clg_submission, of: clg_node, result: *mut u64) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(run_of(submission)?.submission().turns(&control_of(of.raw()))?);
        Ok(())
    })
}

/// Stops a submission at the next decision of a branch or loop: it fails with CLG_FAILED. What is enqueued already still runs,
/// so memory is as the last whole turn left it. A submission that decides nothing any more ends as it would have.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_cancel(submission: clg_submission) -> clg_status {
    enter(|| Ok(run_of(submission)?.submission().cancel()?))
}

/// A function that enqueues commands on the queue that it is given, and on no other. The queue is the library's, and is
/// released when the function returns. If the function returns anything but 0, the call that has called it fails with
/// CLG_FAILED and the text of `clg_fail`. No C++ exception may leave it.
pub type clg_body_function = Option<extern "C" fn(queue: clg_queue, user: *mut c_void) -> c_int>;

/// The same for one of several cases, which are counted from 0.
pub type clg_case_function = Option<extern "C" fn(queue: clg_queue, index: usize, user: *mut c_void) -> c_int>;

/// Why a function of the program failed, until the call that has called it returns.
#[derive(Default)]
struct Failed(Cell<Option<Failure>>);

impl Failed {
    /// Calls a function of the program with a queue.
    fn call(&self, queue: &Queue, function: impl FnOnce(clg_queue) -> c_int) -> Result<(), rust::Error> {
        let outcome = handle::new(queue.clone()).and_then(|handle| {
            let outcome = call_program(|| function(handle as clg_queue));
            // The program may have released it; then the handle is dead already.
            let _ = handle::release::<Queue>(handle);
            outcome.map_err(Failure::failed)
        });
        outcome.map_err(|failure| {
            self.0.set(Some(failure));
            // It only ends the call: `decided` returns the failure itself.
            SubmitError::NotComplete.into()
        })
    }
}

/// Runs a call that calls functions of the program. Their failure is that of the call.
fn decided<C>(call: impl FnOnce(&Failed) -> Result<Option<C>, rust::Error>) -> Outcome<Option<C>> {
    let failed = Failed::default();
    let result = call(&failed);
    match failed.0.into_inner() {
        Some(failure) => Err(failure),
        None => Ok(result?),
    }
}

/// Calls `then` if the number at the start of `condition` is not zero, and `otherwise`, which may be null, if it is.
///
/// Where the queue executes, this waits for the queue, reads the number, and calls one of the functions or none. Where the queue
/// records, each function is called once, and the commands that it enqueues become a body of a node of `clg_graph_when`. In
/// both cases the functions are called on this thread, before this returns. A function uses the queue that it is given: while a
/// body is recorded, the queues that record into the graph around it refuse commands of this thread. After a failure of a function
/// nothing was recorded.
///
/// `node` and `control` may be null; they get the node, and its bodies as of `clg_graph_when`, or zeros and null where the
/// queue executed.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_queue_when(
    queue: clg_queue,
    condition: clg_range,
    then: clg_body_function,
    otherwise: clg_body_function,
    user: *mut c_void,
    node: *mut clg_node,
    control: *mut clg_control,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (node, control) = unsafe { targets(node, control) }?;
        let then = then.ok_or_else(|| Failure::null("then"))?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let made = with_number!(condition, |number| decided(|failed| {
            let then = |queue: &Queue| failed.call(queue, |queue| then(queue, user));
            match otherwise {
                None => queue.when(number, then),
                Some(otherwise) => {
                    queue.when_else(number, then, |queue| failed.call(queue, |queue| otherwise(queue, user)))
                }
            }
        }))?;
        give_recorded(made, node, control)
    })
}

/// Calls `function` with the number at the start of `index`, if that is less than `num_cases`. Where the queue records, it is
/// called once for each index. Otherwise as `clg_queue_when`, with the node of `clg_graph_switch`.
///
/// # Safety
/// As of `clg_queue_when`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_queue_switch(
    queue: clg_queue,
    index: clg_range,
    num_cases: usize,
    function: clg_case_function,
    user: *mut c_void,
    node: *mut clg_node,
    control: *mut clg_control,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (node, control) = unsafe { targets(node, control) }?;
        let function = function.ok_or_else(|| Failure::null("function"))?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let made = with_number!(index, |number| decided(|failed| {
            let case = |queue: &Queue, index| failed.call(queue, |queue| function(queue, index, user));
            queue.switch(number, num_cases, case)
        }))?;
        give_recorded(made, node, control)
    })
}

/// Calls `body` as long as the number at the start of `condition` is not zero; with `at_least_once` the number is not read before
/// the first turn. This fails if the loop would go on after `at_most` turns; 0 is no bound. Where the queue records, `body` is
/// called once. Otherwise as `clg_queue_when`, with the node of `clg_graph_repeat_while`.
///
/// # Safety
/// As of `clg_queue_when`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_queue_repeat_while(
    queue: clg_queue,
    condition: clg_range,
    body: clg_body_function,
    user: *mut c_void,
    at_least_once: bool,
    at_most: u64,
    node: *mut clg_node,
    control: *mut clg_control,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (node, control) = unsafe { targets(node, control) }?;
        let body = body.ok_or_else(|| Failure::null("body"))?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let mut bounds = LoopBounds::new();
        if at_least_once {
            bounds = bounds.at_least_once();
        }
        if at_most > 0 {
            bounds = bounds.at_most(at_most);
        }
        let made = with_number!(condition, |number| decided(|failed| {
            queue.repeat_while_with(number, bounds, |queue| failed.call(queue, |queue| body(queue, user)))
        }))?;
        give_recorded(made, node, control)
    })
}

/// Calls `body` so many times. Where the queue records, it is called once. Otherwise as `clg_queue_when`, with the node of
/// `clg_graph_repeat`.
///
/// # Safety
/// As of `clg_queue_when`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_queue_repeat(
    queue: clg_queue,
    turns: u64,
    body: clg_body_function,
    user: *mut c_void,
    node: *mut clg_node,
    control: *mut clg_control,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (node, control) = unsafe { targets(node, control) }?;
        let body = body.ok_or_else(|| Failure::null("body"))?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let made = decided(|failed| queue.repeat(turns, |queue| failed.call(queue, |queue| body(queue, user))))?;
        give_recorded(made, node, control)
    })
}
