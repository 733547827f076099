//! Events that fail in the wait list of a plain command. The command ends at once, while earlier commands of its queue
//! still run.

mod common;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use clgraph::{
    ErrorKind, Event, Executable, ExecuteKernel, ExecutionStatus, Finalize, HostRead, MapRead, Memory, MemoryError,
    Path, Queue,
};
use common::{Bench, Reason, UserEvent, assert_error, skip};

const LEN: usize = 64;
/// How many rounds the slow kernel makes: it runs long enough that the test makes its calls meanwhile, and not much
/// longer, as drivers differ by a factor of twenty.
fn rounds(bench: &Bench) -> u32 {
    static ROUNDS: OnceLock<u32> = OnceLock::new();
    *ROUNDS.get_or_init(|| {
        const TRIED: u32 = 1 << 23;
        let (memory, kernel) = (bench.buffer(&[1; LEN]), bench.kernel("spin"));
        let queue = bench.another_queue(false);
        let took = [(); 2].map(|()| {
            let mut launch = ExecuteKernel::new(&kernel);
            launch.set_arg(&memory).set_arg(&TRIED).set_global_work_size(1);
            let begin = Instant::now();
            // SAFETY: the work-item touches the first element.
            unsafe { launch.enqueue_nd_range(&queue) }.unwrap().wait().unwrap();
            begin.elapsed()
        });
        // The first launch may compile.
        let slower = Duration::from_millis(150).as_nanos() / took[1].as_nanos().max(1);
        TRIED.saturating_mul(slower.clamp(1, 12) as u32)
    })
}

/// Returns what the kernel makes of a number. A round is a step of a linear recurrence, and so are several rounds
/// together.
fn spun(x: u32, mut rounds: u32) -> u32 {
    let (mut factor, mut plus) = (1_u32, 0_u32);
    let (mut step, mut more) = (1_664_525_u32, 1_013_904_223_u32);
    while rounds > 0 {
        if rounds % 2 == 1 {
            (factor, plus) = (factor.wrapping_mul(step), plus.wrapping_mul(step).wrapping_add(more));
        }
        (step, more) = (step.wrapping_mul(step), more.wrapping_mul(step).wrapping_add(more));
        rounds /= 2;
    }
    x.wrapping_mul(factor).wrapping_add(plus)
}

fn is_over(event: &Event) -> bool {
    matches!(event.command_execution_status().unwrap(), ExecutionStatus::Complete | ExecutionStatus::Failed(_))
}

/// Launches a kernel that runs for a while over memory.
fn slow<T: clgraph::KernelArg>(bench: &Bench, memory: &T) -> Event {
    let kernel = bench.kernel("spin");
    let mut launch = ExecuteKernel::new(&kernel);
    launch.set_arg(memory).set_arg(&rounds(bench)).set_global_work_size(1);
    // SAFETY: the work-item touches the first element.
    let event = unsafe { launch.enqueue_nd_range(&bench.queue) }.unwrap();
    bench.queue.flush().unwrap();
    event
}

/// Enqueues a fill whose wait list fails while the command before it runs.
fn failing_fill<T>(bench: &Bench, memory: &T)
where
    T: clgraph::AsDestination<u32>,
{
    let user = UserEvent::new(&bench.queue);
    let event = Event::from_opencl3(&user.0).unwrap();
    bench.queue.enqueue_fill_buffer(memory, &[9], 128, 4, &[&event]).unwrap();
    bench.queue.flush().unwrap();
    user.set(-5);
}

fn shared(bench: &Bench) -> Option<Memory<u32>> {
    let memory = Memory::host_accessible(&bench.queue, LEN).ok();
    if memory.is_none() {
        skip(Reason::NoSharedMemory);
    }
    memory
}

/// Takes a guard as soon as that is possible, which is not before the kernel has ended. (rusticl runs nothing more on a
/// queue on which something failed.)
#[track_caller]
fn first_guard(bench: &Bench, memory: &Memory<u32>, event: &Event, before: u32) -> u32 {
    loop {
        bench.queue.flush().unwrap();
        match memory.host_mut() {
            Ok(mut guard) => {
                assert!(is_over(event), "the host has the memory while a kernel writes it");
                let ran = matches!(event.command_execution_status().unwrap(), ExecutionStatus::Complete);
                assert_eq!(guard[0], if ran { spun(before, rounds(bench)) } else { before });
                guard[1] = 1;
                return guard[0];
            }
            Err(error) => assert!(matches!(error, clgraph::Error::Memory(MemoryError::Busy { .. })), "{error}"),
        }
        std::thread::yield_now();
    }
}

/// The host gets no memory that a command before the failed one still uses.
#[test]
fn memory_is_not_the_hosts_while_a_command_before_one_that_failed_uses_it() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    bench.queue.enqueue_fill_buffer(&memory, &[1], 0, LEN * 4, &[]).unwrap();
    // Compiled now, so that it starts soon.
    bench.queue.finish().unwrap();
    let mut value = 1;
    for again in 0..3 {
        value = first_guard(&bench, &memory, &slow(&bench, &memory), value);
        let kernel = slow(&bench, &memory);
        for _ in 0..again {
            failing_fill(&bench, &memory);
        }
        // After a command that has failed it fails too, or it runs at once, beside the kernel.
        bench.queue.enqueue_fill_buffer(&memory, &[4], 8, 4, &[]).unwrap();
        value = first_guard(&bench, &memory, &kernel, value);
    }
}

/// Rule F6: memory that is dropped stays until the command before the failed one has ended.
#[test]
fn memory_is_not_freed_while_a_command_before_one_that_failed_uses_it() {
    let bench = Bench::new();
    for _ in 0..3 {
        let Some(memory) = shared(&bench) else { return };
        bench.queue.enqueue_fill_buffer(&memory, &[1], 0, LEN * 4, &[]).unwrap();
        let kernel = slow(&bench, &memory);
        failing_fill(&bench, &memory);
        drop(memory);
        // Freed memory would soon be allocated again.
        let others: Vec<_> = (0..16).map(|_| Memory::<u32>::host_accessible(&bench.queue, LEN).unwrap()).collect();
        others.iter().for_each(|memory| memory.host_mut().unwrap().fill(3));
        let _ = kernel.wait();
        for memory in others {
            assert_eq!(*memory.host_mut().unwrap(), [3; LEN]);
        }
    }
}

/// Returns an executable that spins over memory and reads it.
fn spinner(bench: &Bench, memory: &Memory<u32>, path: Path) -> (Executable, HostRead<u32>) {
    let graph = bench.graph();
    let part = memory.slice(..1).unwrap();
    // SAFETY: the work-item touches the first element.
    unsafe { graph.kernel(&bench.kernel("spin")).read_write(&part).arg(rounds(bench)).range(1).add() }.unwrap();
    let read = graph.read(&part).add().unwrap();
    (graph.finalize(Finalize::new().path(path)).unwrap(), read)
}

fn start(bench: &Bench, memory: &Memory<u32>) {
    bench.queue.enqueue_fill_buffer(memory, &[1], 0, LEN * 4, &[]).unwrap();
    bench.queue.finish().unwrap();
}

/// Rule S3: submissions of one executable never overlap, whatever a plain command between them does; and the memory of
/// all of them stays.
#[test]
fn submissions_follow_each_other_over_a_command_that_failed() {
    for path in [Path::Replay, Path::Gated, Path::Native] {
        for detached in [false, true] {
            let bench = Bench::new();
            let other = bench.another_queue(false);
            let Some(memory) = shared(&bench) else { return };
            start(&bench, &memory);
            let (executable, read) = spinner(&bench, &memory, path);
            let first = if detached {
                executable.submit_to(&bench.queue).submit_detached().unwrap();
                None
            } else {
                Some(executable.submit(&bench.queue).unwrap())
            };
            failing_fill(&bench, &memory);
            // Whether it runs depends on the driver.
            let second = executable.submit(&bench.queue).unwrap();
            let third = executable.submit(&other).unwrap();
            // Submissions run.
            assert_error!(memory.host_mut(), MemoryError::Busy { .. });
            third.wait().unwrap();
            let runs = 2 + u32::from(second.wait().is_ok());
            let expected = (0..runs).fold(1, |x, _| spun(x, rounds(&bench)));
            assert_eq!(third.get(&read).unwrap()[0], expected, "{path} {runs} runs");
            if let Some(first) = first {
                first.wait().unwrap();
                assert_eq!(first.get(&read).unwrap()[0], spun(1, rounds(&bench)));
            }
            drop(executable);
            loop {
                if let Ok(guard) = memory.host_mut() {
                    assert_eq!(guard[0], expected);
                    break;
                }
                std::thread::yield_now();
            }
        }
    }
}

/// Rule F3: after an executable is dropped, everything stays for its running submissions.
#[test]
fn what_an_executable_leaves_outlives_a_submission_before_a_command_that_failed() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    start(&bench, &memory);
    let (executable, _) = spinner(&bench, &memory, Path::Auto);
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    drop(executable.submit(&bench.queue).unwrap());
    failing_fill(&bench, &memory);
    let second = executable.submit(&bench.queue).unwrap();
    let _ = second.wait();
    drop((second, executable, memory));
    let others: Vec<Vec<u8>> = (0..64).map(|_| vec![7; 4 * LEN]).collect();
    let _ = bench.queue.finish();
    assert!(others.iter().flatten().all(|byte| *byte == 7));
}

/// Rule S9: on some drivers the order of a queue is broken for good; its end is still the end of everything.
#[test]
fn finishing_and_mapping_wait_for_what_is_before_a_command_that_failed() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[1; LEN]);
    let queue: &Queue = &bench.queue;
    let ends: [&dyn Fn(); 3] = [
        &|| drop(queue.finish()),
        &|| while !queue.is_empty().unwrap() {},
        // SAFETY: nothing else uses the buffer.
        &|| drop(unsafe { queue.map(&buffer, MapRead, &[]) }),
    ];
    for end in ends {
        let kernel = slow(&bench, &buffer);
        failing_fill(&bench, &buffer);
        end();
        assert!(is_over(&kernel));
    }
}

/// Rule S2: two wrappers of one queue know the same about its order.
#[test]
fn wrappers_of_one_queue_share_its_order() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    start(&bench, &memory);
    let wrapper = Queue::from_opencl3(&common::plain_queue(&bench.queue)).unwrap();
    let kernel = slow(&bench, &memory);
    let user = UserEvent::new(&bench.queue);
    let event = Event::from_opencl3(&user.0).unwrap();
    wrapper.enqueue_fill_buffer(&memory, &[9], 128, 4, &[&event]).unwrap();
    wrapper.flush().unwrap();
    user.set(-5);
    let after = bench.queue.enqueue_fill_buffer(&memory, &[4], 8, 4, &[]);
    assert!(after.is_ok());
    first_guard(&bench, &memory, &kernel, 1);
}

/// Rule S2: a queue that is wrapped anew after its last wrapper is gone knows no less.
#[test]
fn a_queue_wrapped_anew_keeps_the_order_of_its_commands() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    start(&bench, &memory);
    let plain = common::plain_queue(&bench.another_queue(false));
    let queue = Queue::from_opencl3(&plain).unwrap();
    let kernel = bench.kernel("spin");
    let mut launch = ExecuteKernel::new(&kernel);
    launch.set_arg(&memory).set_arg(&rounds(&bench)).set_global_work_size(1);
    // SAFETY: the work-item touches the first element.
    let running = unsafe { launch.enqueue_nd_range(&queue) }.unwrap();
    queue.flush().unwrap();
    drop(queue);
    let queue = Queue::from_opencl3(&plain).unwrap();
    let user = UserEvent::new(&bench.queue);
    let event = Event::from_opencl3(&user.0).unwrap();
    queue.enqueue_fill_buffer(&memory, &[9], 128, 4, &[&event]).unwrap();
    user.set(-5);
    first_guard(&bench, &memory, &running, 1);
    queue.finish().unwrap();
}

/// Rule S9: the event of a `UserEvent` is an event whose status the program can set.
#[test]
fn the_driver_event_of_a_user_event_may_fail() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    start(&bench, &memory);
    let kernel = slow(&bench, &memory);
    let user = clgraph::UserEvent::new(&bench.queue).unwrap();
    let event = user.event();
    bench.queue.enqueue_fill_buffer(&memory, &[9], 128, 4, &[&event]).unwrap();
    opencl3::event::set_user_event_status(event.raw().unwrap(), -5).unwrap();
    first_guard(&bench, &memory, &kernel, 1);
    bench.queue.finish().unwrap();
}

/// Rule S9: a command whose list fails does not run and reports the failure. What the queue does next comes after everything
/// before it, and sees its bytes, whatever kind of command it is and of either kind of queue.
#[test]
fn only_the_command_whose_list_fails_does_not_run() {
    let bench = Bench::new();
    for out_of_order in [false, true] {
        let queue = bench.another_queue(out_of_order);
        let (buffer, other) = (bench.buffer(&[1; LEN]), bench.buffer(&[1; LEN]));
        let kernel = bench.kernel("spin");
        let mut launch = ExecuteKernel::new(&kernel);
        launch.set_arg(&buffer).set_arg(&rounds(&bench)).set_global_work_size(1);
        // SAFETY: the work-item touches the first element.
        let running = unsafe { launch.enqueue_nd_range(&queue) }.unwrap();
        let user = UserEvent::new(&bench.queue);
        let event = Event::from_opencl3(&user.0).unwrap();
        let list: &[&Event] = &[&event];
        let stirs = bench.kernel("stir");
        let mut stir = ExecuteKernel::new(&stirs);
        stir.set_arg(&other).set_global_work_size(LEN).set_event_wait_list(list);
        let events = [
            queue.enqueue_fill_buffer(&other, &[9], 0, 4 * LEN, list).unwrap(),
            queue.enqueue_copy_buffer(&buffer, &other, 0, 0, 4 * LEN, list).unwrap(),
            queue.enqueue_write_buffer_owned(&other, 0, vec![9; LEN], list).unwrap(),
            // SAFETY: each work-item touches its own element.
            unsafe { stir.enqueue_nd_range(&queue) }.unwrap(),
            queue.enqueue_marker_with_wait_list(list).unwrap(),
            queue.enqueue_barrier_with_wait_list(list).unwrap(),
        ];
        let read = queue.enqueue_read_buffer_owned(&other, 0, LEN, list).unwrap();
        assert!(events.iter().all(|event| !is_over(event)));
        // It waits for one that may fail, so it may fail as well.
        let after = queue.enqueue_fill_buffer(&other, &[8], 0, 4, &[&events[0]]).unwrap();
        user.set(-5);
        let mut place = [0; LEN];
        let waits: Vec<&Event> = if out_of_order { vec![&running] } else { Vec::new() };
        queue.enqueue_read_buffer(&buffer, 0, &mut place, &waits).unwrap();
        assert_eq!(place[0], spun(1, rounds(&bench)));
        queue.finish().unwrap();
        assert!(is_over(&running));
        assert_eq!(read.wait().unwrap_err().kind(), ErrorKind::Driver);
        for event in events.iter().chain([&after]) {
            assert_eq!(event.wait().unwrap_err().kind(), ErrorKind::Driver);
            assert!(matches!(event.command_execution_status().unwrap(), ExecutionStatus::Failed(_)));
        }
        assert_eq!(bench.content(&other), [1; LEN], "nothing of it ran");
        queue.enqueue_fill_buffer(&other, &[7], 0, 4 * LEN, &[]).unwrap();
        queue.finish().unwrap();
        assert_eq!(bench.content(&other), [7; LEN]);
    }
}

/// Rule R16: what is wrong with a command is an error of the call, whatever is in its wait list.
#[test]
fn a_command_that_waits_is_checked_at_once() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[1; LEN]);
    let user = UserEvent::new(&bench.queue);
    let event = Event::from_opencl3(&user.0).unwrap();
    let (kernel, amount) = (bench.kernel("spin"), clgraph::Parameter::any(1_u32));
    let mut launch = ExecuteKernel::new(&kernel);
    launch.set_arg(&buffer).set_arg(&amount).set_global_work_size(1).set_wait_event(&event);
    // SAFETY: the work-item touches the first element.
    let refused = unsafe { launch.enqueue_nd_range(&bench.queue) };
    let clgraph::Error::Build(error) = refused.unwrap_err() else { panic!("another error") };
    assert!(matches!(*error.cause, clgraph::BuildCause::ParameterExecuted { index: 1 }));
    user.set(0);
    bench.queue.finish().unwrap();
}

/// Rule D6: on an out-of-order queue, a command that waited on the host, or a marker, ends without the commands before it.
#[test]
fn on_an_out_of_order_queue_what_waits_for_an_event_ends_without_earlier_commands() {
    let bench = Bench::new();
    if ["rusticl", "NVIDIA CUDA"].contains(&bench.queue.device().caps().platform.as_str()) {
        return skip(Reason::RunsInOrder);
    }
    let queue = bench.another_queue(true);
    let (buffer, other) = (bench.buffer(&[1; LEN]), bench.buffer(&[1; LEN]));
    let (held, free) = (UserEvent::new(&bench.queue), UserEvent::new(&bench.queue));
    let [first, go] = [&held, &free].map(|user| Event::from_opencl3(&user.0).unwrap());
    let earlier = queue.enqueue_fill_buffer(&buffer, &[3], 0, 16, &[&first]).unwrap();
    let later = queue.enqueue_fill_buffer(&other, &[3], 0, 16, &[&go]).unwrap();
    let marker = queue.enqueue_marker_with_wait_list(&[&later]).unwrap();
    let read = queue.enqueue_read_buffer_owned(&other, 0, 4, &[&marker]).unwrap();
    free.set(0);
    assert_eq!(read.wait().unwrap(), [3; 4]);
    later.wait().unwrap();
    marker.wait().unwrap();
    assert!(!is_over(&earlier));
    held.set(0);
    earlier.wait().unwrap();
    // A submission's event, too.
    let executable = clgraph::Graph::new(&queue).unwrap().finalize(Finalize::new()).unwrap();
    let held = UserEvent::new(&bench.queue);
    let first = Event::from_opencl3(&held.0).unwrap();
    let earlier = queue.enqueue_fill_buffer(&buffer, &[4], 0, 16, &[&first]).unwrap();
    let run = executable.submit(&queue).unwrap();
    let after = queue.enqueue_fill_buffer(&other, &[5], 0, 16, &[&run.event().unwrap()]).unwrap();
    after.wait().unwrap();
    assert!(!is_over(&earlier));
    held.set(0);
    earlier.wait().unwrap();
}

/// Rules S2, S9: the program can set the status of an event that it has, where that is one of clgraph's user events. Then the
/// command is affected whose event it is, and nothing else: no driver gets such an event.
#[test]
fn an_event_that_the_program_sets_fails_its_own_command_alone() {
    for out_of_order in [false, true] {
        let bench = Bench::new();
        let queue = bench.another_queue(out_of_order);
        let (a, b) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
        let user = clgraph::UserEvent::new(&queue).unwrap();
        let fill = queue.enqueue_fill_buffer(&a, &[1_u32], 0, 16, &[&user.event()]).unwrap();
        queue.enqueue_barrier_with_wait_list(&[]).unwrap();
        let graph = bench.graph();
        graph.fill(&b, 7).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        let run = executable.submit(&queue).unwrap();
        // Most drivers have an event of a command there, which cannot be set.
        let _ = opencl3::event::set_user_event_status(fill.raw().unwrap(), -5);
        user.complete().unwrap();
        run.wait().unwrap();
        assert_eq!(bench.content(&b), [7; LEN]);
        for queue in [&queue, &bench.another_queue(true), &bench.another_queue(false)] {
            executable.submit(queue).unwrap().wait().unwrap();
            queue.enqueue_fill_buffer(&b, &[1_u32], 0, 16, &[]).unwrap().wait().unwrap();
        }
    }
}
