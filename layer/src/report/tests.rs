//! What programs do, as calls of a recorder, and the reports that they get.

use expect_test::{Expect, expect};

use super::call::{Kind, What};
use super::limits;
use super::recorder::{Enqueued, Properties, Recorder};
use super::text;

const IN_ORDER: Properties = Properties { out_of_order: false, profiling: false, device: 1 };

/// A program with kernels `scale` (100) and `add` (200), and memory at 1000 and 2000.
struct Program {
    recorder: Recorder,
    thread: usize,
}

impl Program {
    fn new() -> Self {
        let mut recorder = Recorder::default();
        recorder.queue_was_made(1, Some(IN_ORDER));
        recorder.kernel_was_made(100, b"scale", 9);
        recorder.kernel_was_made(200, b"add", 9);
        recorder.memory_was_made(1000);
        recorder.memory_was_made(2000);
        Self { recorder, thread: 7 }
    }

    fn enqueue(&mut self, call: Enqueued<'_>) {
        let queue = if call.queue == 0 { 1 } else { call.queue };
        self.recorder.enqueued(&Enqueued { thread: self.thread, nanoseconds: 2000, queue, ..call });
    }

    fn launch(&mut self, kernel: usize, items: u64) {
        self.enqueue(Enqueued {
            kernel,
            parts: &[(What::Range, items)],
            ..command("clEnqueueNDRangeKernel", Kind::Kernel)
        });
    }

    fn copy(&mut self, from: u64, to: u64) {
        let parts = &[(What::Memory, from), (What::Memory, to), (What::Bytes, 64)];
        self.enqueue(Enqueued { parts, ..command("clEnqueueCopyBuffer", Kind::Copy) });
    }

    fn write(&mut self, host: u64, blocking: bool) {
        let parts = &[(What::Memory, 1000), (What::Host, host)];
        self.enqueue(Enqueued { parts, blocking, ..command("clEnqueueWriteBuffer", Kind::Write) });
    }

    fn argument(&mut self, kernel: usize, index: u32, value: usize) {
        self.recorder.argument_was_set(kernel, index, Ok(&value.to_ne_bytes()));
    }

    fn finish(&mut self) {
        self.recorder.waited(self.thread, 1, "clFinish");
    }

    fn report(mut self) -> String {
        self.recorder.finish();
        let text = text::report(&self.recorder, "program", 42);
        // The head is the same everywhere.
        text.lines().skip(2).flat_map(|line| [line, "\n"]).collect()
    }

    fn is(self, expected: &Expect) {
        expected.assert_eq(&self.report());
    }
}

fn command(function: &'static str, kind: Kind) -> Enqueued<'static> {
    Enqueued {
        function,
        kind,
        thread: 0,
        queue: 0,
        kernel: 0,
        blocking: false,
        form: 0,
        parts: &[],
        wait_list: &[],
        event: 0,
        nanoseconds: 0,
    }
}

#[test]
fn a_report_begins_with_what_it_is() {
    let text = text::report(&Recorder::default(), "program", 42);
    expect![[r#"
        clgraph_layer: what program (process 42) enqueues again and again
        A run is what a thread enqueues between two of its waits. Captured in a graph, a run is enqueued by one call.
        Nothing was enqueued.
    "#]]
    .assert_eq(&text);
}

#[test]
fn what_is_the_same_each_time_can_be_captured() {
    let mut program = Program::new();
    for _ in 0..1000 {
        program.copy(1000, 2000);
        program.launch(100, 64);
        program.launch(100, 64);
        program.launch(200, 64);
        program.finish();
    }
    program.is(&expect![[r#"
        queue 1 (in order): 4 000 calls in 1 000 runs
          run 1: 4 calls (3 kernels, 1 copy), then clFinish
            clEnqueueCopyBuffer, scale x 2, add
            1 000 times; to enqueue it takes 8.0 us (the first time 8.0 us)
            It can be captured as it is.
    "#]]);
}

#[test]
fn what_changes_is_named() {
    let mut program = Program::new();
    for turn in 0..5 {
        program.write(5000 + turn, false);
        program.argument(100, 0, 1000);
        program.argument(100, 1, turn as usize);
        program.launch(100, 64 + turn);
        program.copy(1000, 2000);
        program.finish();
    }
    program.is(&expect![[r#"
        queue 1 (in order): 15 calls in 5 runs
          run 1: 3 calls (1 kernel, 1 copy, 1 write), then clFinish
            clEnqueueWriteBuffer, scale, clEnqueueCopyBuffer
            5 times; to enqueue it takes 6.0 us (the first time 6.0 us)
            It can be captured. Each submission has to give:
            - argument 1 of scale (call 2)
            - the program's memory of clEnqueueWriteBuffer (call 1)
            - the work-items of scale (call 2)
    "#]]);
}

/// The handle of a buffer is that of another one before it.
#[test]
fn memory_that_is_made_for_each_run_is_other_memory() {
    let mut program = Program::new();
    for _ in 0..3 {
        program.recorder.memory_was_made(3000);
        program.argument(200, 0, 3000);
        program.launch(200, 64);
        program.copy(3000, 2000);
        program.finish();
    }
    program.is(&expect![[r#"
        queue 1 (in order): 6 calls in 3 runs
          run 1: 2 calls (1 kernel, 1 copy), then clFinish
            add, clEnqueueCopyBuffer
            3 times; to enqueue it takes 4.0 us (the first time 4.0 us)
            It can be captured. Each submission has to give:
            - the memory in argument 0 of add (call 1)
            - the memory of clEnqueueCopyBuffer (call 2)
    "#]]);
}

#[test]
fn obstacles_are_named_with_their_calls() {
    let mut program = Program::new();
    program.recorder.user_event_was_made(70);
    for _ in 0..2 {
        program.enqueue(command("clEnqueueMapBuffer", Kind::Map));
        program.enqueue(command("clEnqueueUnmapMemObject", Kind::Unmap));
        program.enqueue(command("clEnqueueNativeKernel", Kind::Native));
        program.enqueue(command("clEnqueueAcquireGLObjects", Kind::Share));
        program.enqueue(command("clEnqueueSVMFree", Kind::Free));
        program.enqueue(Enqueued { queue: 2, event: 71, ..command("clEnqueueMarkerWithWaitList", Kind::Order) });
        // An event of the run itself is none.
        program.enqueue(Enqueued { event: 72, ..command("clEnqueueMarkerWithWaitList", Kind::Order) });
        program.enqueue(Enqueued { wait_list: &[70, 71, 72], ..command("clEnqueueCopyBuffer", Kind::Copy) });
        program.launch(100, 1);
        program.recorder.callback_was_set(7);
        program.recorder.callback_was_set(7);
        program.finish();
    }
    program.is(&expect![[r#"
        queue 1 (in order): 16 calls in 2 runs
          run 1: 8 calls (1 kernel, 1 copy, 1 map, 1 unmap, 1 native kernel, 1 marker or barrier, 1 change of owner, 1 free), then clFinish
            clEnqueueMapBuffer, clEnqueueUnmapMemObject, clEnqueueNativeKernel, clEnqueueAcquireGLObjects, clEnqueueSVMFree, clEnqueueMarkerWithWaitList, clEnqueueCopyBuffer, scale
            2 times; to enqueue it takes 16 us (the first time 16 us)
            It cannot be captured as it is:
            - clEnqueueMapBuffer (call 1): the host works on mapped memory: enqueue a read or a write, or make it a host task
            - clEnqueueUnmapMemObject (call 2): it goes with the map
            - clEnqueueNativeKernel (call 3): make the function a host task
            - clEnqueueAcquireGLObjects (call 4): take and give back the objects before and after the graph
            - clEnqueueSVMFree (call 5): free the memory when the graph is not needed any more
            - clEnqueueCopyBuffer (call 7) waits for an event that the program completes: make it an external event
            - clEnqueueCopyBuffer (call 7) waits for another queue: record both queues into one graph, or give the event to the submission
            - clSetEventCallback after call 8, 2 times a run: set it for the event of the whole submission
        queue 2: 2 calls in 2 runs
          run 1: 1 call (1 marker or barrier), then clFinish of another queue
            clEnqueueMarkerWithWaitList
            2 times; to enqueue it takes 2.0 us (the first time 2.0 us)
            It is one call: a graph saves nothing here.
    "#]]);
}

/// What CLBlast does to solve triangular systems.
#[test]
fn waits_inside_what_could_be_one_run_are_named() {
    let mut program = Program::new();
    for _ in 0..4 {
        program.copy(1000, 2000);
        program.launch(100, 64);
        program.recorder.waited(7, 0, "clWaitForEvents");
        program.launch(200, 64);
        program.finish();
        program.copy(2000, 1000);
        program.write(5000, true);
    }
    program.is(&expect![[r#"
        queue 1 (in order): 20 calls in 12 runs
          run 1: 2 calls (1 kernel, 1 copy), then clWaitForEvents
            clEnqueueCopyBuffer, scale
            4 times; to enqueue it takes 4.0 us (the first time 4.0 us)
            It can be captured as it is.
          run 2: 1 call (1 kernel), then clFinish
            add
            4 times; to enqueue it takes 2.0 us (the first time 2.0 us)
          run 3: 2 calls (1 copy, 1 write), of which the last, clEnqueueWriteBuffer, waits
            clEnqueueCopyBuffer, clEnqueueWriteBuffer
            4 times; to enqueue it takes 2.0 us (the first time 2.0 us)
            It can be captured as it is.
            Call 2 reads the same memory of the program each time: it has to stay, or each submission gives the data.
          Runs 1, 2 and 3 come one after another, 4 times or more. They are one run of 5 calls for a program that does without these waits: clWaitForEvents after call 2; clFinish after call 3.
    "#]]);
}

#[test]
fn a_loop_between_two_waits_is_seen() {
    let mut program = Program::new();
    program.write(5000, false);
    for turn in 0..100 {
        program.argument(100, 0, turn);
        program.launch(100, 64);
        program.launch(200, 64);
        program.copy(1000, 2000);
    }
    program.finish();
    program.is(&expect![[r#"
        queue 1 (in order): 301 calls in 1 run
          run 1: 301 calls (200 kernels, 100 copies, 1 write), then clFinish
            clEnqueueWriteBuffer, scale, add, clEnqueueCopyBuffer
            once; to enqueue it takes 602 us
            Calls 2 to 4 come 100 times in a row: capture them once, or several turns of them.
            It can be captured. Each submission has to give:
            - argument 0 of scale (call 2)
    "#]]);
}

#[test]
fn more_calls_than_are_kept_tell_runs_apart() {
    let mut program = Program::new();
    for run in 0..4_usize {
        for _ in 0..limits::CALLS + 10 {
            program.launch(100, 64);
        }
        program.launch(if run == 3 { 200 } else { 100 }, 64);
        program.finish();
    }
    program.is(&expect![[r#"
        queue 1 (in order): 16 428 calls in 4 runs
          run 1: 4 107 calls (4 107 kernels), then clFinish
            scale
            3 times; to enqueue it takes 8 214 us (the first time 8 214 us)
            Its first 4 096 calls were looked at one by one:
            Call 1 comes 4 096 times or more in a row: capture several of them.
            It can be captured as it is.
          run 2: 4 107 calls (4 107 kernels), then clFinish
            scale
            once; to enqueue it takes 8 214 us
            Its first 4 096 calls were looked at one by one:
            Call 1 comes 4 096 times or more in a row: capture several of them.
            It can be captured as it is.
    "#]]);
}

/// A thread's wait ends what that thread has enqueued.
#[test]
fn threads_have_runs_of_their_own() {
    let mut program = Program::new();
    for _ in 0..3 {
        for (thread, kernel) in [(7, 100), (8, 200), (7, 200), (8, 100)] {
            program.thread = thread;
            program.launch(kernel, 64);
        }
        for thread in [8, 7] {
            program.thread = thread;
            program.finish();
        }
    }
    program.is(&expect![[r#"
        queue 1 (in order): 12 calls in 6 runs by 2 threads
          run 1: 2 calls (2 kernels), then clFinish
            add, scale
            3 times; to enqueue it takes 4.0 us (the first time 4.0 us)
            It can be captured as it is.
          run 2: 2 calls (2 kernels), then clFinish
            scale, add
            3 times; to enqueue it takes 4.0 us (the first time 4.0 us)
            It can be captured as it is.
    "#]]);
}

/// Turns of a loop may differ where the run as a whole does not.
#[test]
fn a_run_with_a_loop_that_is_the_same_each_time_can_be_captured_as_it_is() {
    let report = |rounds: &[u64]| {
        let mut program = Program::new();
        for first in rounds {
            for memory in 0..3 {
                let parts = &[(What::Memory, first + memory), (What::Host, 5000)];
                program.enqueue(Enqueued { parts, ..command("clEnqueueWriteBuffer", Kind::Write) });
            }
            program.finish();
        }
        program.report()
    };
    let same = report(&[1, 1, 1, 1]);
    assert!(same.contains("It can be captured as it is.") && !same.contains("in a row"), "{same}");
    assert!(same.contains("the same memory of the program each time"), "{same}");
    let other = report(&[1, 1, 2, 1]);
    assert!(
        other.contains("Each submission has to give:") && other.contains("Call 1 comes 3 times in a row"),
        "{other}"
    );
}

/// Names that are cut for the report are told apart all the same, and what is left out is said.
#[test]
fn long_names_and_late_arguments() {
    let mut program = Program::new();
    let long = "x".repeat(300);
    for (handle, end) in [(300, "a"), (400, "b")] {
        program.recorder.kernel_was_made(handle, format!("{long}{end}").as_bytes(), 9);
    }
    for kernel in [300, 400, 300] {
        program.launch(kernel, 64);
        program.launch(kernel, 64);
        program.finish();
    }
    program.recorder.argument_was_set(300, 130, Ok(&[1, 2]));
    let text = program.report();
    assert!(text.contains("6 calls in 3 runs") && text.contains("2 times;"), "{text}");
    assert!(text.contains("arguments from 128 on were set, 1 time"), "{text}");
}

#[test]
fn a_wait_ends_what_the_thread_has_on_other_queues() {
    let mut program = Program::new();
    program.recorder.queue_was_made(2, Some(Properties { out_of_order: true, ..IN_ORDER }));
    for _ in 0..3 {
        for queue in [1, 2] {
            for _ in 0..2 {
                program.enqueue(Enqueued { queue, ..command("clEnqueueBarrierWithWaitList", Kind::Order) });
            }
        }
        program.finish();
    }
    program.is(&expect![[r#"
        queue 1 (in order): 6 calls in 3 runs
          run 1: 2 calls (2 markers or barriers), then clFinish
            clEnqueueBarrierWithWaitList x 2
            3 times; to enqueue it takes 4.0 us (the first time 4.0 us)
            It can be captured as it is.
        queue 2 (out of order): 6 calls in 3 runs
          run 1: 2 calls (2 markers or barriers), then clFinish of another queue
            clEnqueueBarrierWithWaitList x 2
            3 times; to enqueue it takes 4.0 us (the first time 4.0 us)
            It can be captured as it is.
    "#]]);
}

#[test]
fn queues_that_come_one_after_another_are_one() {
    let mut program = Program::new();
    for handle in [3, 3, 4, 5] {
        program.recorder.queue_was_made(handle, Some(Properties { out_of_order: true, ..IN_ORDER }));
        program.recorder.queue_was_retained(handle);
        for _ in 0..2 {
            program.enqueue(Enqueued { queue: handle, ..command("clEnqueueBarrierWithWaitList", Kind::Order) });
            program.recorder.queue_will_be_released(handle);
        }
    }
    program.is(&expect![[r#"
        queue 2 (out of order): 8 calls in 4 runs
          These are 4 queues, one after another: a graph can be submitted to any of them.
          run 1: 2 calls (2 markers or barriers), then the release of the queue
            clEnqueueBarrierWithWaitList x 2
            4 times; to enqueue it takes 4.0 us (the first time 4.0 us)
            It can be captured as it is.
    "#]]);
}

#[test]
fn what_cannot_be_seen_is_said() {
    let mut program = Program::new();
    program.recorder.failed = 1;
    program.recorder.times = 1200;
    program.recorder.refused = true;
    for name in
        ["clEnqueueMemcpyINTEL", "clCreateCommandBufferKHR", "clEnqueueMemcpyINTEL", "clSetKernelArgMemPointerINTEL"]
    {
        program.recorder.function_was_asked_for(name.as_bytes());
    }
    program.launch(100, 64);
    program.is(&expect![[r#"
        queue 1 (in order): 1 call in 1 run
          Nothing comes again.
        note: 1 call failed: the runs are without them
        note: the times of single commands were asked for 1 200 times (clGetEventProfilingInfo): a graph that profiles has them
        note: the program asked for functions by name, and calls of these are not seen: clEnqueueMemcpyINTEL, clSetKernelArgMemPointerINTEL
        note: the layer is loaded once: a second OpenCL loader, or a second entry in OPENCL_LAYERS, goes without
    "#]]);
}

/// A process that runs for days keeps no more than one that runs for a minute.
#[test]
fn tables_are_bounded() {
    let mut program = Program::new();
    for number in 0..limits::QUEUES + 10 {
        program.enqueue(Enqueued { queue: 50 + number, ..command("clEnqueueBarrierWithWaitList", Kind::Order) });
    }
    program.finish();
    // Runs that are never the same, and one that comes again behind them.
    for number in 0..limits::RUNS as u64 * 3 {
        program.enqueue(Enqueued { form: number, ..command("clEnqueueFillBuffer", Kind::Fill) });
        program.finish();
    }
    for _ in 0..5 {
        program.launch(100, 64);
        program.launch(200, 64);
        program.finish();
    }
    // Handles that are never the same.
    for handle in 0..3 * limits::HANDLES {
        program.recorder.memory_was_made(handle + 10_000);
        program.recorder.user_event_was_made(handle);
        program.recorder.kernel_was_made(handle, format!("kernel {handle}").as_bytes(), 9);
        program.recorder.argument_was_set(handle, u32::MAX, Err(8));
    }
    // Threads that do not wait.
    for thread in 0..limits::THREADS + 10 {
        program.thread = 1000 + thread;
        program.launch(100, 64);
    }
    assert_eq!(program.recorder.names.len(), limits::NAMES);
    program.is(&expect![[r#"
        queue 1 (in order): 1 034 calls in 1 029 runs by four threads or more
          run 1: 2 calls (2 kernels), then clFinish
            scale, add
            5 times; to enqueue it takes 4.0 us (the first time 4.0 us)
            It can be captured as it is.
          run 2: 1 call (1 kernel), then the end of the program
            clEnqueueNDRangeKernel
            256 times; to enqueue it takes 2.0 us (the first time 2.0 us)
            It is one call: a graph saves nothing here.
          768 other runs came once.
        queue 2: 1 call in 1 run
          Nothing comes again.
        queue 3: 1 call in 1 run
          Nothing comes again.
        queue 4: 1 call in 1 run
          Nothing comes again.
        queue 5: 1 call in 1 run
          Nothing comes again.
        queue 6: 1 call in 1 run
          Nothing comes again.
        queue 7: 1 call in 1 run
          Nothing comes again.
        queue 8: 1 call in 1 run
          Nothing comes again.
        queue 9: 1 call in 1 run
          Nothing comes again.
        queue 10: 1 call in 1 run
          Nothing comes again.
        queue 11: 1 call in 1 run
          Nothing comes again.
        queue 12: 1 call in 1 run
          Nothing comes again.
        queue 13: 1 call in 1 run
          Nothing comes again.
        queue 14: 1 call in 1 run
          Nothing comes again.
        queue 15: 1 call in 1 run
          Nothing comes again.
        queue 16: 1 call in 1 run
          Nothing comes again.
        48 more queues: 48 calls
        note: 21 calls are left out: there were too many queues, or too many threads at once
        note: kernels and memory objects were too many to know all by their handles, 26 times: changes may be told that were none
        note: 192 514 kernels are not told apart by name: there were too many names
        note: arguments from 128 on were set, 196 608 times: whether they changed is not looked at
    "#]]);
}

/// Runs that take all the room for calls one by one are counted nevertheless.
#[test]
fn without_room_calls_are_counted() {
    let mut program = Program::new();
    let runs = (limits::ROOM / limits::CALLS + 10) as u64;
    for again in 0..2 {
        for run in 0..runs {
            for call in 0..limits::CALLS as u64 {
                // No loop is in it.
                let form = run << 32 | call;
                program.enqueue(Enqueued { form, ..command("clEnqueueFillBuffer", Kind::Fill) });
            }
            program.finish();
        }
        assert_eq!(program.recorder.queues[0].runs.ended, (again + 1) * runs);
    }
    let report = program.report();
    assert!(report.contains("4 096 calls (4 096 fills), then clFinish"), "{report}");
}
