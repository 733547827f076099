//! By which path the segments of a graph run, and why.

use std::collections::BTreeMap;

use super::*;
use crate::caps::{CommandBufferCaps, DetectedBy, QueueKinds};
use crate::error::{DriverError, Status};
use crate::plan::check::check;
use crate::plan::{CommandKind, PlanError, Segment};

/// A device that has command buffers and no known quirks.
pub(super) fn recording_device() -> Caps {
    let command_buffers = Some(CommandBufferCaps { simultaneous_use: true, ..CommandBufferCaps::default() });
    Caps { command_buffers, ..new_device() }
}

#[track_caller]
fn segments(graph: &str, caps: &Caps, options: &Options<'_>) -> Vec<String> {
    let plan = plan(&read(graph).ir, caps, options).unwrap();
    plan.segments
        .iter()
        .map(|partition| format!("{:?} {} ({})", partition.steps, partition.path, partition.why))
        .collect()
}

const MIXED: &str = "buffer x 64
    w: write x 64
    a: kernel f update x
    b: kernel f update x prints
    c: copy x x[32..64] 32
    r: read x 64
    e: fill x 64";

/// Rule F4
#[test]
fn what_a_command_buffer_cannot_hold_runs_beside_it() {
    let why = |text: &str| format!("({text})");
    let (asked_so, no) = (why("as asked"), why("command buffers have no such command"));
    let prints = why("recorded kernels cannot print on this device");
    assert_eq!(
        segments(MIXED, &recording_device(), &asked(Path::Native)),
        [
            format!("0..1 replay {no}"),
            format!("1..2 command buffers {asked_so}"),
            format!("2..3 replay {prints}"),
            format!("3..4 command buffers {asked_so}"),
            format!("4..5 replay {no}"),
            format!("5..6 command buffers {asked_so}"),
        ]
    );
    let mut caps = recording_device();
    let command_buffers = caps.command_buffers.as_mut().unwrap();
    command_buffers.kernel_printf = true;
    command_buffers.missing_commands = vec!["clCommandCopyBufferKHR"];
    assert_eq!(
        segments(MIXED, &caps, &asked(Path::Native)),
        [
            format!("0..1 replay {no}"),
            format!("1..3 command buffers {asked_so}"),
            "3..4 replay (the driver lists cl_khr_command_buffer, but lacks clCommandCopyBufferKHR)".to_owned(),
            format!("4..5 replay {no}"),
            format!("5..6 command buffers {asked_so}"),
        ]
    );
}

/// Rule F4: a driver that refuses a node is not asked again for that node; a driver that refuses all nodes is not asked
/// for any.
#[test]
fn what_the_driver_refused_is_replayed() {
    let error = DriverError::new("clCommandNDRangeKernelKHR", Status(-59));
    let denied = BTreeMap::from([(NodeId(1), PathReason::Refused(error))]);
    let options = Options { denied: &denied, ..asked(Path::Native) };
    let partitions =
        segments("buffer x 64\n a: fill x 64\n b: kernel f update x\n c: fill x 64", &recording_device(), &options);
    let text = "the driver refused: clCommandNDRangeKernelKHR failed with CL_INVALID_OPERATION (-59)";
    let expected =
        ["0..1 command buffers (as asked)", &format!("1..2 replay ({text})"), "2..3 command buffers (as asked)"];
    assert_eq!(partitions, expected);
    let options = Options { no_native: Some(PathReason::Unusable), ..asked(Path::Native) };
    let partitions = segments("buffer x 64\n a: fill x 64\n b: fill x 64", &recording_device(), &options);
    assert_eq!(partitions, ["0..2 replay (the driver's functions for command buffers cannot be called)"]);
}

/// Rule F4
#[test]
fn a_device_that_cannot_record_replays_and_says_why() {
    let with = |change: &dyn Fn(&mut CommandBufferCaps)| {
        let mut caps = recording_device();
        change(caps.command_buffers.as_mut().unwrap());
        caps
    };
    let why = |caps: &Caps| caps.can_record(CommandKind::Kernel).unwrap_err();
    assert_eq!(why(&new_device()), PathReason::NoCommandBuffers);
    assert_eq!(why(&with(&|caps| caps.detected_by = DetectedBy::Hidden)), PathReason::NotListed);
    let missing = "clFinalizeCommandBufferKHR";
    assert_eq!(why(&with(&|caps| caps.missing = vec![missing])), PathReason::MissingFunction(missing));
    let queues = QueueKinds { out_of_order: true, ..QueueKinds::default() };
    assert_eq!(why(&with(&|caps| caps.required_queue = queues)), PathReason::QueueProperties);
    assert_eq!(with(&|caps| caps.detected_by = DetectedBy::Assumed).can_record(CommandKind::Kernel), Ok(()));
    let partitions = segments("buffer x 64\n a: fill x 64", &new_device(), &asked(Path::Native));
    assert_eq!(partitions, ["0..1 replay (the device has no command buffers)"]);
}

#[test]
fn the_path_is_chosen_by_what_is_known_of_the_driver() {
    let on = |platform: &str, gpu: bool| Caps { platform: platform.to_owned(), gpu, ..recording_device() }.path();
    assert_eq!(on("Portable Computing Language", false), (Path::Replay, PathReason::Slower));
    assert_eq!(
        on("Portable Computing Language", true),
        (Path::Native, PathReason::Available),
        "a driver of another device"
    );
    assert_eq!(on("Intel(R) OpenCL", false), (Path::Replay, PathReason::SlowerAndLeaks));
    let emulator = "Intel(R) FPGA Emulation Platform for OpenCL(TM)";
    assert_eq!(on(emulator, false), (Path::Replay, PathReason::SlowerAndLeaks));
    assert_eq!(on("Intel(R) OpenCL Graphics", true), (Path::Native, PathReason::Available));
    assert_eq!(on("Another", false), (Path::Native, PathReason::Available));
    assert_eq!(new_device().path(), (Path::Replay, PathReason::NoCommandBuffers));
    let options = Options { from_environment: true, ..asked(Path::Native) };
    let partitions = segments("buffer x 64\n a: fill x 64", &recording_device(), &options);
    assert_eq!(partitions, ["0..1 command buffers (as CLGRAPH_PATH says)"]);
}

/// The automatic path does not make command buffers of one or two commands; a program that asks for the native path
/// gets them.
#[test]
fn short_segments_are_recorded_only_on_demand() {
    let graph = "buffer x 64
        a: fill x 64
        b: fill x 64
        w: write x 64
        c: fill x 64
        d: fill x 64
        e: fill x 64
        g: fill x 64
        p: kernel f update x prints
        h: fill x 64";
    assert_eq!(
        segments(graph, &recording_device(), &asked(Path::Auto)),
        [
            "0..2 replay (too few commands for a command buffer)",
            "2..3 replay (command buffers have no such command)",
            "3..7 command buffers (the driver supports them)",
            "7..8 replay (recorded kernels cannot print on this device)",
            "8..9 replay (too few commands for a command buffer)",
        ]
    );
    assert_eq!(segments(graph, &recording_device(), &asked(Path::Native))[0], "0..2 command buffers (as asked)");
}

/// PoCL 3.1 crashes when a kernel is recorded with a buffer of another device of the context.
#[test]
fn buffers_above_the_largest_allocation_are_replayed() {
    let graph = "buffer x 128
        sub s x 0..16
        buffer y 64
        a: fill y 64
        b: kernel f write s
        c: fill y 4";
    let caps = Caps { max_allocation: 64, ..recording_device() };
    assert_eq!(
        segments(graph, &caps, &asked(Path::Native)),
        [
            "0..1 command buffers (as asked)",
            "1..2 replay (it uses a buffer that is larger than the device's largest allocation)",
            "2..3 command buffers (as asked)",
        ]
    );
}

/// The same for sub-buffers.
#[test]
fn sub_buffers_that_are_not_aligned_are_replayed() {
    let graph = "buffer x 128
        sub s x 64..128
        sub t x 32..64
        a: kernel f write s
        b: kernel f write t";
    let caps = Caps { sub_buffer_align: 64, ..recording_device() };
    assert_eq!(
        segments(graph, &caps, &asked(Path::Native)),
        [
            "0..1 command buffers (as asked)",
            "1..2 replay (it uses a sub-buffer that is not aligned as the device requires)"
        ]
    );
}

fn strategies(nodes: usize, caps: &Caps, options: &Options<'_>) -> Vec<String> {
    let graph: String = (0..nodes).map(|node| format!("n{node}: fill x 64\n")).collect();
    let plan = plan(&read(&format!("buffer x 64\n{graph}")).ir, caps, options).unwrap();
    plan.strategies.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_known_to_pay_comes_first_and_the_rest_is_timed() {
    let pocl = Caps { platform: "Portable Computing Language".to_owned(), ..recording_device() };
    let auto = asked(Path::Auto);
    assert_eq!(strategies(1, &pocl, &auto), ["replay"], "one command waits for nothing");
    assert_eq!(strategies(99, &pocl, &auto), ["replay", "gated replay"]);
    assert_eq!(strategies(100, &pocl, &auto), ["gated replay", "replay"], "its command buffers are known to be slower");
    let other = recording_device();
    assert_eq!(strategies(3, &other, &auto), ["replay", "gated replay"], "too short for a command buffer");
    assert_eq!(strategies(64, &other, &auto), ["command buffers of 64", "replay", "gated replay"]);
    let all = ["command buffers of 64", "command buffers of 1024", "replay", "gated replay"];
    assert_eq!(strategies(65, &other, &auto), all);
}

#[test]
fn what_is_asked_for_is_not_timed() {
    let other = recording_device();
    let (auto, eight) = (asked(Path::Auto), Options { chunk: Some(8), ..asked(Path::Auto) });
    assert_eq!(strategies(100, &other, &eight), ["command buffers of 8", "replay", "gated replay"]);
    assert_eq!(strategies(100, &other, &Options { autotune: false, ..auto }), ["command buffers of 64"]);
    assert_eq!(strategies(100, &other, &Options { profiled: true, ..auto }), ["replay"]);
    assert_eq!(strategies(100, &other, &asked(Path::Native)), ["command buffers of 64"]);
    assert_eq!(strategies(100, &other, &asked(Path::Replay)), ["replay"]);
    assert_eq!(strategies(100, &other, &asked(Path::Gated)), ["gated replay"]);
    assert_eq!(strategies(1, &other, &asked(Path::Gated)), ["replay"]);
    let strategies = |graph: &str| plan(&read(graph).ir, &other, &auto).unwrap().strategies.len();
    assert_eq!(
        strategies("buffer x 64\na: fill x 64\nt: task update x\nb: fill x 64"),
        1,
        "between host tasks partitions go alone"
    );
}

#[test]
fn long_segments_are_divided_into_even_chunks() {
    for len in [1, 63, 64, 65, 100, 1000] {
        let partition = Segment { steps: 7..7 + len, path: Path::Native, why: PathReason::Asked };
        let chunks: Vec<_> = partition.chunks(64).collect();
        assert_eq!(chunks.len(), len.div_ceil(64));
        assert_eq!((chunks[0].start, chunks[chunks.len() - 1].end), (7, 7 + len));
        assert!(chunks.windows(2).all(|pair| pair[0].end == pair[1].start));
        let sizes = || chunks.iter().map(ExactSizeIterator::len);
        assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1 && sizes().max().unwrap() <= 64);
    }
}

/// Rule S4
#[test]
fn the_start_is_marked_where_the_driver_does_not_tell_it() {
    let marked = |graph: &str, platform: &str, path: Path| {
        let caps = Caps { platform: platform.to_owned(), ..recording_device() };
        plan(&read(&format!("buffer x 64\n{graph}")).ir, &caps, &asked(path)).unwrap().marked
    };
    assert!(marked("a: fill x 64", "Another", Path::Native));
    assert!(!marked("a: fill x 64", "Another", Path::Replay));
    assert!(!marked("w: write x 64\n a: fill x 64", "Another", Path::Native), "the write tells");
    assert!(marked("a: fill x 64", "rusticl", Path::Replay));
}

/// Rule U6: a node that is not to be recorded is replayed, with its reason, also if command buffers are chosen
/// automatically.
#[test]
fn nodes_with_parameters_are_replayed_where_they_cannot_change() {
    let reader = read(
        "buffer x 64
         a: kernel f update x
         b: kernel f update x
         c: kernel f update x
         d: kernel f update x
         e: kernel f update x value 1",
    );
    let denied = BTreeMap::from([(NodeId(4), PathReason::Parameters)]);
    let caps = Caps { command_buffers: Some(CommandBufferCaps::default()), ..new_device() };
    let plan = plan(&reader.ir, &caps, &Options { denied: &denied, updatable: true, ..asked(Path::Auto) }).unwrap();
    let partitions: Vec<_> =
        plan.segments.iter().map(|partition| (partition.path, partition.why, partition.steps.len())).collect();
    assert_eq!(partitions, [(Path::Native, PathReason::Available, 4), (Path::Replay, PathReason::Parameters, 1)]);
}

/// Rules F4, F5, I4
#[test]
fn native_commands_go_where_one_of_their_forms_can_go() {
    const GRAPH: &str = "buffer x 64
        a: kernel f update x
        n: native either write x
        b: kernel f update x
        m: native enqueued write x
        c: kernel f update x
        o: native recorded write x
        d: kernel f update x";
    let recorded = "5..6 command buffers (a native command that can only be recorded)";
    assert_eq!(
        segments(GRAPH, &recording_device(), &asked(Path::Native)),
        [
            "0..3 command buffers (as asked)",
            "3..4 replay (a native command that enqueues)",
            "4..5 command buffers (as asked)",
            recorded,
            "6..7 command buffers (as asked)",
        ]
    );
    let reader = read(GRAPH);
    let whole = super::plan(&reader.ir, &recording_device(), &asked(Path::Native)).unwrap();
    expect![[r#"
        0: in command buffers a n b
        0: m
        0: in command buffers c
        0: only in command buffers o
        0: in command buffers d
    "#]]
    .assert_eq(&lines(&instructions(&reader, &whole, whole.main(), &whole.main().schedule)));
    let slow = "replay (as asked)";
    assert_eq!(
        segments(GRAPH, &recording_device(), &asked(Path::Replay)),
        [format!("0..5 {slow}"), recorded.to_owned(), format!("6..7 {slow}")]
    );
    let excluded = super::plan(&read(GRAPH).ir, &recording_device(), &asked(Path::Auto)).unwrap().excluded;
    assert!(excluded.contains(&(Path::Replay, Exclusion::OnlyRecorded)), "{excluded:?}");
    // Too short to pay, but the native command can only be recorded.
    let auto = segments(GRAPH, &recording_device(), &asked(Path::Auto));
    assert_eq!(auto[auto.len() - 2], recorded);
    let lacks = |caps: &Caps, options: &Options<'_>| match plan(&read(GRAPH).ir, caps, options) {
        Err(PlanError::NotRunnable { node: NodeId(5), missing, .. }) => missing,
        other => panic!("{other:?}"),
    };
    let no = "it can only be recorded, but this is not possible: the device has no command buffers";
    assert_eq!(lacks(&new_device(), &asked(Path::Native)), no);
    let refused = DriverError::new("clFinalizeCommandBufferKHR", Status(-6));
    let denied = BTreeMap::from([(NodeId(5), PathReason::Refused(refused))]);
    let options = Options { denied: &denied, ..asked(Path::Native) };
    assert!(lacks(&recording_device(), &options).starts_with(
        "it can only be recorded, but this is not possible: the \
                                                              driver refused: "
    ));
}

/// Rule I4: the checker sees a schedule that does not do what the segments say.
#[test]
fn the_checker_sees_commands_that_go_another_way_than_their_segment() {
    let reader = read(
        "buffer x 64
         a: kernel f update x
         m: native enqueued write x
         o: native recorded write x",
    );
    let options = asked(Path::Native);
    let good = super::plan(&reader.ir, &recording_device(), &options).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    let checked = |plan: &Plan| check(&reader.ir, &order, plan, &options);
    assert_eq!(checked(&good), Ok(()));
    let with = |at: usize, instruction: Instruction| {
        let mut plan = good.clone();
        plan.flows[0].schedule.instructions[at] = instruction;
        checked(&plan)
    };
    let run = |step: usize| Instruction::Run { stream: 0, steps: step..step + 1, event: None };
    let native = |step: usize, only| Instruction::Native { stream: 0, steps: step..step + 1, event: None, only };
    assert_eq!(with(0, run(0)), Ok(()), "what is in a command buffer can be replayed too");
    for only in [false, true] {
        let why = "step 1 is taken from a command buffer, but its segment is replayed";
        assert_eq!(with(1, native(1, only)).unwrap_err(), why);
    }
    for replayed in [run(2), native(2, false)] {
        assert_eq!(with(2, replayed).unwrap_err(), "node 2 can only be recorded, but step 2 may be replayed");
    }
    assert_eq!(with(2, run(3)).unwrap_err(), "step 3 is in no segment");
    let mut wrong = good.clone();
    wrong.segments[2].path = Path::Replay;
    assert_eq!(checked(&wrong).unwrap_err(), "node 2 can only be recorded");
    wrong.segments[1].path = Path::Native;
    assert_eq!(checked(&wrong).unwrap_err(), "node 1 cannot be recorded");
}
