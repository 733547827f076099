//! Submissions: waiting, results, times.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rust::{HostRead, Progress, ResultGuard, Submission, Trace};

use crate::event::{clg_event, give_event};
use crate::execute::{clg_sub_graph, give_sub_graph};
use crate::graph::clg_node;
use crate::handle::{self, handled};
use crate::pointers::{self, Target, UserData};
use crate::status::{Failure, Outcome, clg_status, end_child, enter};

/// A submission, with the results that the program looks at.
#[derive(Clone)]
pub(crate) struct Run(Arc<RunInner>);

impl Run {
    pub(crate) fn submission(&self) -> &Submission {
        &self.0.submission
    }
}

struct RunInner {
    submission: Submission,
    results: Mutex<Vec<(clg_node, ResultGuard<u8>)>>,
}

/// What a `clg_submission` names.
pub struct clg_submission_object {
    _private: [u8; 0],
}

/// One run of an executable.
pub type clg_submission = *mut clg_submission_object;

handled!(Run, 9, "clg_submission");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_retain(object: clg_submission) -> clg_status {
    enter(|| handle::retain::<Run>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_release(object: clg_submission) -> clg_status {
    enter(|| handle::release::<Run>(object.addr()))
}

/// Puts a submission where C wants it.
pub(crate) fn give_submission(run: Submission, to: Target<'_, clg_submission>) -> Outcome<()> {
    if let Some(to) = to {
        to.set(handle::new(Run(Arc::new(RunInner { submission: run, results: Mutex::default() })))? as clg_submission);
    }
    Ok(())
}

/// Copies a result to memory of C, which must have its size.
///
/// # Safety
/// **caller**: `data` is null or has room for `size` bytes.
pub(crate) unsafe fn copy_out(result: &[u8], data: *mut c_void, size: usize) -> Outcome<()> {
    if result.len() != size {
        return Err(Failure::invalid(format!("the result has {} bytes, and there is room for {size}", result.len())));
    }
    if data.is_null() && size > 0 {
        return Err(Failure::null("data"));
    }
    if size > 0 {
        // SAFETY: the caller's promise; there is room.
        unsafe { std::ptr::copy_nonoverlapping(result.as_ptr(), data.cast::<u8>(), size) };
    }
    Ok(())
}

pub(crate) fn run_of(submission: clg_submission) -> Outcome<Run> {
    handle::get::<Run>(submission.addr())
}

/// Blocks until the submission has ended. Returns its error if it failed.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_wait(submission: clg_submission) -> clg_status {
    enter(|| Ok(run_of(submission)?.submission().wait()?))
}

/// Blocks until the submission has ended, but at most for a time, in nanoseconds. Then it returns CLG_NOT_READY.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_wait_for(submission: clg_submission, nanoseconds: u64) -> clg_status {
    enter(|| Ok(run_of(submission)?.submission().wait_for(Duration::from_nanos(nanoseconds))?))
}

/// Returns whether the submission has ended, well or not.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_is_done(submission: clg_submission, result: *mut bool) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(run_of(submission)?.submission().is_done()?);
        Ok(())
    })
}

/// Copies the result of a read. `size` is the size of the read.
///
/// # Safety
/// `data` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_get(
    submission: clg_submission,
    read: clg_node,
    data: *mut c_void,
    size: usize,
) -> clg_status {
    enter(|| {
        let result = run_of(submission)?.submission().get(&HostRead::<u8>::from_raw(read.raw()))?;
        // SAFETY: **caller**.
        unsafe { copy_out(&result, data, size) }
    })
}

/// Returns where the result of a read is. It stays there, and does not change, until the last reference to the
/// submission is released.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_result(
    submission: clg_submission,
    read: clg_node,
    data: *mut *const c_void,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (data, size) = unsafe { (pointers::place("data", data)?, pointers::place("size", size)?) };
        let run = run_of(submission)?;
        let result = run.0.submission.get(&HostRead::<u8>::from_raw(read.raw()))?;
        data.set(result.as_ptr().cast());
        size.set(result.len());
        let mut results = run.0.results.lock().unwrap_or_else(PoisonError::into_inner);
        if !results.iter().any(|(node, _)| node.raw() == read.raw()) {
            results.push((read, result));
        }
        Ok(())
    })
}

/// Calls a function when the submission has ended: with CLG_SUCCESS and null, or with the kind and the text of its
/// error. The text is valid during the call, and `clg_last_cl_status` has the status of the OpenCL call that failed, if one
/// did, until another call fails. The function runs on a thread of clgraph, one such function after the
/// other; it may call clgraph. `release` is called exactly once when `user` is no longer used.
///
/// # Safety
/// The functions may be called on any thread. No C++ exception may leave them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_on_complete(
    submission: clg_submission,
    function: Option<extern "C" fn(status: clg_status, text: *const c_char, user: *mut c_void)>,
    user: *mut c_void,
    release: Option<extern "C" fn(user: *mut c_void)>,
) -> clg_status {
    enter(|| {
        let user = UserData::new(user, release);
        let function = function.ok_or_else(|| Failure::null("function"))?;
        run_of(submission)?.submission().on_complete(move |outcome| {
            let user = user;
            match outcome {
                Ok(()) => function(clg_status::CLG_SUCCESS, std::ptr::null(), user.pointer),
                Err(error) => {
                    let failure = Failure::from(error);
                    // A text of its own: calls of the function that fail replace that of the thread.
                    let (text, status) = (failure.c_text(), failure.keep());
                    function(status, text.as_ptr(), user.pointer);
                }
            }
            end_child(0);
        });
        Ok(())
    })
}

/// Writes the times of a submission and of its nodes as a table. The executable was finalized with `profiling`.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_profile(
    submission: clg_submission,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let profile = run_of(submission)?.submission().profile()?.to_string();
        // SAFETY: **caller**.
        unsafe { pointers::give_text(profile, room, text, size) }
    })
}

/// Writes the times of submissions as a trace, which Perfetto and Chrome show.
///
/// # Safety
/// `submissions` points to as many submissions as `num_submissions` says; `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submissions_trace(
    submissions: *const clg_submission,
    num_submissions: usize,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let mut trace = Trace::new();
        // SAFETY: **caller**.
        for run in unsafe { pointers::list("submissions", submissions, num_submissions) }? {
            trace.add(&run_of(*run)?.submission().profile()?);
        }
        // SAFETY: **caller**.
        unsafe { pointers::give_text(trace.to_json(), room, text, size) }
    })
}

/// The times of a submission, in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_submission_times {
    /// When it was submitted.
    pub submit: u64,
    /// When its first node started.
    pub start: u64,
    /// When its last node ended.
    pub end: u64,
}

/// Returns the times of a submission. The executable was finalized with `profiling`.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_get_times(
    submission: clg_submission,
    result: *mut clg_submission_times,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let profile = run_of(submission)?.submission().profile()?;
        place.set(clg_submission_times { submit: profile.submit, start: profile.start, end: profile.end });
        Ok(())
    })
}

/// The times of a node, in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_node_times {
    /// The node of the finalized graph.
    pub node: clg_node,
    /// For a node in a sub-graph or a body: its index, from 0, among the nodes that this was inlined to; otherwise `UINT64_MAX`.
    pub inside: u64,
    /// For a node in a loop: in which turn of the innermost loop it ran, from 0 on; otherwise `UINT64_MAX`. A loop inside of another
    /// one goes on counting in each turn of that.
    pub turn: u64,
    /// When its command was enqueued.
    pub queued: u64,
    /// When it started.
    pub start: u64,
    /// When it ended.
    pub end: u64,
}

/// Lists the times of the nodes that ran, in the order of their starts: `count` gets how many there are, and `times`
/// all of them if it has room.
///
/// # Safety
/// `times` is null or has room for `room` of them; `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_node_times(
    submission: clg_submission,
    room: usize,
    times: *mut clg_node_times,
    count: *mut usize,
) -> clg_status {
    enter(|| {
        let nodes = run_of(submission)?.submission().profile()?.nodes;
        let nodes = nodes.into_iter().map(|one| {
            let node = one.node.to_raw().into();
            let inside = one.inside.map_or(u64::MAX, |inside| inside as u64);
            let turn = one.turn.unwrap_or(u64::MAX);
            clg_node_times { node, inside, turn, queued: one.queued, start: one.start, end: one.end }
        });
        // SAFETY: **caller**.
        unsafe { pointers::give_list("times", nodes, room, times, count) }
    })
}

/// How far a submission is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_progress {
    /// Its first command has not started.
    CLG_PROGRESS_WAITING = 0,
    /// Its first command has started.
    CLG_PROGRESS_RUNNING = 1,
    /// All its commands are complete.
    CLG_PROGRESS_COMPLETE = 2,
    /// It failed.
    CLG_PROGRESS_FAILED = 3,
}

/// Returns how far a submission is, without waiting: a `clg_progress`.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_progress(submission: clg_submission, result: *mut i32) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(match run_of(submission)?.submission().progress()? {
            Progress::Running => clg_progress::CLG_PROGRESS_RUNNING,
            Progress::Complete => clg_progress::CLG_PROGRESS_COMPLETE,
            Progress::Failed => clg_progress::CLG_PROGRESS_FAILED,
            _ => clg_progress::CLG_PROGRESS_WAITING,
        } as i32);
        Ok(())
    })
}

/// Returns an event that is complete when the submission has ended, well or not; or the event of a recorded command if
/// the queue recorded.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_event(submission: clg_submission, result: *mut clg_event) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let result = unsafe { pointers::target("result", result) }?;
        give_event(run_of(submission)?.submission().event()?, result)
    })
}

/// Returns the sub-graph that the submission stands for, if the queue recorded.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_sub_graph(submission: clg_submission, result: *mut clg_sub_graph) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let result = unsafe { pointers::target("result", result) }?;
        let sub_graph = run_of(submission)?.submission().sub_graph();
        let sub_graph = sub_graph.ok_or_else(|| Failure::invalid("the queue did not record an executable"))?;
        give_sub_graph(sub_graph, result)
    })
}
