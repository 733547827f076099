//! Times of submissions and nodes, labels, and traces.

mod common;

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use clgraph::{
    Buffer, BuildCause, Clock, DrawingDetail, Error, Executable, Finalize, Graph, GroupError, NativeCommand, NodeKind,
    Path, PathReason, Profile, Queue, QueueProperties, RanOn, RecordError, SubmitError, Trace, UserEvent,
};
use common::{Bench, cause};
use serde_json::Value;

const LEN: usize = 1 << 12;
const PATHS: [Path; 3] = [Path::Auto, Path::Native, Path::Replay];

fn queues(bench: &Bench) -> Vec<Queue> {
    let both = [false, true];
    let all = both.iter().flat_map(|ooo| both.map(|times| QueueProperties::new().out_of_order(*ooo).profiling(times)));
    all.map(|properties| Queue::with_properties(&bench.queue, bench.queue.device(), properties).unwrap()).collect()
}

/// A chain of all kinds of nodes, each after the one before.
fn chain(bench: &Bench) -> (Graph, Buffer<u32>) {
    let graph = bench.graph();
    let (a, b) = (bench.buffer(&[1; LEN]), bench.buffer(&[2; LEN]));
    graph.write(&a, vec![3; LEN]).label("the input").add().unwrap();
    // SAFETY: each work-item touches its own element.
    unsafe {
        graph
            .kernel(&bench.kernel("scale"))
            .read(&a)
            .write(&b)
            .arg(5_u32)
            .range(LEN)
            .label("first half")
            .add()
            .unwrap();
        graph.kernel(&bench.kernel("stir")).read_write(&b).range([LEN]).add().unwrap();
    }
    graph.fill(&b.slice(..8).unwrap(), 9).add().unwrap();
    graph.empty().after_all_leaves().add().unwrap();
    graph.copy(&b, &a).add().unwrap();
    graph.read(&a).add().unwrap();
    (graph, a)
}

fn profile(executable: &Executable, queue: &Queue) -> Profile {
    let run = executable.submit(queue).unwrap();
    run.wait().unwrap();
    run.profile().unwrap()
}

#[track_caller]
fn check_order(profile: &Profile) {
    let mut last = profile.submit;
    assert_eq!(profile.start, profile.nodes.iter().map(|node| node.start).min().unwrap());
    assert_eq!(profile.end, profile.nodes.iter().map(|node| node.end).max().unwrap());
    assert!(profile.submit <= profile.start, "{profile}");
    for node in &profile.nodes {
        assert!(node.queued <= node.start && last <= node.start && node.start <= node.end, "{node:?}\n{profile}");
        // All of them, one after another.
        last = node.end;
    }
}

/// Rules Q1, Q2, F1
#[test]
fn each_node_of_a_chain_has_its_times_on_every_path_and_queue() {
    for path in PATHS {
        let bench = Bench::new();
        let (graph, a) = chain(&bench);
        let plain = graph.finalize(Finalize::new().path(path)).unwrap();
        let executable = graph.finalize(Finalize::new().path(path).profiling()).unwrap();
        for queue in queues(&bench) {
            plain.submit(&queue).unwrap().wait().unwrap();
            let expected = bench.content(&a);
            let begin = Instant::now();
            let run = executable.submit(&queue).unwrap();
            run.wait().unwrap();
            let took = begin.elapsed();
            let profile = run.profile().unwrap();
            assert_eq!(bench.content(&a), expected);
            assert_eq!(profile.clock, Clock::Device);
            assert_eq!(profile.device, bench.queue.device().name());
            check_order(&profile);
            let all = Duration::from_nanos(profile.end - profile.submit);
            assert!(all <= took + Duration::from_millis(5), "{all:?} of {took:?}: the host's times are the device's");
            assert!(profile.duration() <= all);
            let names: Vec<_> = profile.nodes.iter().map(|node| (node.node.index(), &*node.name, node.kind)).collect();
            assert_eq!(
                names,
                [
                    (0, "host write", NodeKind::Write),
                    (1, "scale", NodeKind::Kernel),
                    (2, "stir", NodeKind::Kernel),
                    (3, "fill", NodeKind::Fill),
                    (5, "copy", NodeKind::Copy),
                    (6, "host read", NodeKind::Read),
                ]
            );
            let labels: Vec<_> = profile.nodes.iter().filter_map(|node| node.label.as_deref()).collect();
            assert_eq!(labels, ["the input", "first half"]);
            assert_eq!((profile.nodes[1].title(), profile.nodes[2].title()), ("first half", "stir"));
            assert_eq!((&profile.nodes[1].range, &profile.nodes[3].range), (&vec![LEN], &vec![]));
            // A second query returns the same times.
            assert_eq!(run.profile().unwrap(), profile);
        }
        let segments = &executable.report().segments;
        match path {
            // The environment may add to this.
            Path::Auto if std::env::var_os("CLGRAPH_PATH").is_some() => {}
            Path::Auto => assert!(segments.iter().all(|one| one.why == PathReason::Profiled)),
            Path::Native => {
                let native = segments.iter().filter(|one| one.path == Path::Native);
                assert!(native.clone().all(|one| one.commands == one.command_buffers), "a command buffer a command");
                let by = profile(&executable, &bench.queue).nodes[1].runner;
                assert_eq!(by, RanOn::Device(if native.count() > 0 { Path::Native } else { Path::Replay }));
            }
            _ => assert!(segments.iter().all(|one| one.path == Path::Replay)),
        }
    }
}

/// Rule Q1
#[test]
fn asking_without_the_option_or_too_early_is_an_error() {
    let bench = Bench::new();
    let (graph, _) = chain(&bench);
    let properties = QueueProperties::new().profiling(true);
    let queue = Queue::with_properties(&bench.queue, bench.queue.device(), properties).unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&queue).unwrap();
    run.wait().unwrap();
    assert_eq!(run.profile(), Err(SubmitError::NotProfiled.into()));
    assert_eq!(run.profile().unwrap_err(), SubmitError::NotProfiled.into());

    let executable = graph.finalize(Finalize::new().profiling()).unwrap();
    let gate = UserEvent::new(&bench.queue).unwrap();
    let run = executable.submit_to(&bench.queue).after(&gate).submit().unwrap();
    assert_eq!(run.profile(), Err(SubmitError::NotComplete.into()));
    gate.complete().unwrap();
    run.wait().unwrap();
    check_order(&run.profile().unwrap());

    let gate = UserEvent::new(&bench.queue).unwrap();
    let run = executable.submit_to(&bench.queue).after(&gate).submit().unwrap();
    gate.fail("no").unwrap();
    let error = run.wait().unwrap_err();
    assert_eq!(run.profile(), Err(error));

    let recorded = bench.graph().record(&bench.queue, || executable.submit(&bench.queue)).unwrap();
    assert!(matches!(recorded.profile(), Err(Error::Record(RecordError::Recorded { .. }))));
    // Nobody can query these times.
    executable.submit_to(&bench.queue).submit_detached().unwrap();
    bench.queue.finish().unwrap();
}

/// Rules Q2, H1, X1, I4: the times of the host's work are between those of the device's work, on one clock.
#[test]
fn host_tasks_events_and_native_commands_have_times_too() {
    const PAUSE: Duration = Duration::from_millis(20);
    for path in PATHS {
        let bench = Bench::new();
        let graph = bench.graph();
        let a = bench.buffer(&[1; LEN]);
        graph.fill(&a, 2).add().unwrap();
        graph.host_task(|_| std::thread::sleep(PAUSE)).reads_and_writes(&a).label("think").add().unwrap();
        let native = NativeCommand::enqueued(|to| {
            let queue = to.to_opencl3().unwrap();
            // SAFETY: there are no events to wait for.
            drop(unsafe { queue.enqueue_marker_with_wait_list(&[]) });
        });
        // SAFETY: it enqueues a marker.
        let native = unsafe { graph.native_command(native.reads_and_writes(&a)).add() }.unwrap();
        let signal = graph.signal_event().after(native).add().unwrap();
        let wait = graph.wait_event().after(signal).add().unwrap();
        graph.read(&a).after(wait).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(path).profiling()).unwrap();
        for queue in queues(&bench) {
            let (signalled, go) = (UserEvent::new(&queue).unwrap(), UserEvent::new(&queue).unwrap());
            let run =
                executable.submit_to(&queue).with_signal(&signal, &signalled).with_event(&wait, &go).submit().unwrap();
            signalled.wait().unwrap();
            std::thread::sleep(PAUSE);
            go.complete().unwrap();
            run.wait().unwrap();
            let profile = run.profile().unwrap();
            let mut nodes = profile.nodes.clone();
            nodes.sort_by_key(|node| node.node);
            let runners: Vec<_> = nodes.iter().map(|node| (node.node.index(), node.runner == RanOn::Host)).collect();
            assert_eq!(runners, [(0, false), (1, true), (2, false), (3, true), (4, true), (5, false)]);
            for at in [1, 4] {
                // The second may begin a little after the test begins to sleep.
                assert!(nodes[at].duration() >= PAUSE / 2, "{profile}");
            }
            // The host's times and the device's: a few microseconds at worst, and this machine is noisy.
            let slack = 2_000_000;
            for pair in nodes.windows(2) {
                assert!(pair[0].end <= pair[1].start + slack && pair[0].start <= pair[0].end, "{profile}");
            }
            let trace = Trace::new().add(&profile).to_json();
            let trace: Value = serde_json::from_str(&trace).unwrap();
            let think = event(&trace, "think");
            assert!(think["dur"].as_f64().unwrap() >= PAUSE.as_micros() as f64 / 2.0);
            assert_eq!((&think["tid"], &event(&trace, "fill")["tid"]), (&Value::from(1_000), &Value::from(1)));
        }
    }
}

fn event<'a>(trace: &'a Value, name: &str) -> &'a Value {
    let events = trace["traceEvents"].as_array().unwrap();
    events.iter().find(|event| event["name"] == name).unwrap_or_else(|| panic!("no {name} in {trace}"))
}

/// Rule Q1: the host's clock, if nothing runs on the device.
#[test]
fn a_submission_of_host_tasks_alone_has_the_hosts_clock() {
    let bench = Bench::new();
    let graph = bench.graph();
    let meet = Arc::new(Barrier::new(2));
    for name in ["one", "two"] {
        let meet = Arc::clone(&meet);
        let task = graph.host_task(move |_| {
            meet.wait();
        });
        task.label(name).add().unwrap();
    }
    let executable = graph.finalize(Finalize::new().profiling()).unwrap();
    let (first, second) = (profile(&executable, &bench.queue), profile(&executable, &bench.queue));
    assert_eq!((first.clock, first.nodes.len()), (Clock::Host, 2));
    assert!(first.end <= second.submit);
    // They overlap, so they have tracks of their own.
    let trace: Value = serde_json::from_str(&Trace::new().add(&first).to_json()).unwrap();
    assert_ne!(event(&trace, "one")["tid"], event(&trace, "two")["tid"]);
    let empty = profile(&bench.graph().finalize(Finalize::new().profiling()).unwrap(), &bench.queue);
    assert_eq!((empty.nodes.len(), empty.duration()), (0, Duration::ZERO));
    assert_eq!((empty.submit, empty.end), (empty.start, empty.start));
}

/// Rules Q2, N1
#[test]
fn nodes_of_sub_graphs_are_distinguished() {
    let bench = Bench::new();
    let (child, _) = chain(&bench);
    let child = child.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    graph.sub_graph(&child).add().unwrap();
    graph.sub_graph(&child).add().unwrap();
    let a = bench.buffer(&[1; LEN]);
    graph.fill(&a, 2).after_all_leaves().add().unwrap();
    let profile = profile(&graph.finalize(Finalize::new().profiling()).unwrap(), &bench.queue);
    let of: Vec<_> = profile.nodes.iter().map(|node| (node.node.index(), node.inside)).collect();
    let inside = |node: usize| [0, 1, 2, 3, 5, 6].map(|inside| (node, Some(inside)));
    assert_eq!(of, [inside(0).as_slice(), &inside(1), &[(2, None)]].concat());
    assert_eq!(profile.nodes[7].title(), "first half");
    check_order(&profile);
    assert!(profile.to_string().contains("1.5 copy by "), "{profile}");
}

/// Rules Q2, C1, U2: the kernel that ran.
#[test]
fn a_node_of_a_group_has_the_name_of_the_kernel_that_ran() {
    let bench = Bench::new();
    let a = bench.buffer(&[1; LEN]);
    let graph = bench.graph();
    let launch = |name: &str| graph.kernel(&bench.kernel(name));
    // SAFETY: each work-item touches its own element, or its group's, and the scratch is as large as the work-group.
    let group = unsafe {
        let sum = launch("group_sum").read_write(&a).local::<u32>(8).range(LEN).work_group(8);
        graph.command_group([launch("stir").read_write(&a).range(LEN), sum])
    }
    .unwrap();
    let node = graph.command_group_node(&group).label("switch").add().unwrap();
    let executable = graph.finalize(Finalize::new().profiling().updatable()).unwrap();
    let before = executable.submit(&bench.queue).unwrap();
    group.set_active_index(1).unwrap();
    executable.update(&node).unwrap();
    let after = profile(&executable, &bench.queue);
    before.wait().unwrap();
    let names = [&before.profile().unwrap(), &after].map(|profile| profile.nodes[0].name.clone());
    assert_eq!(names, ["stir", "group_sum"]);
    assert_eq!(after.nodes[0].title(), "switch");
}

/// Rule Q2
#[test]
fn labels_are_given_changed_taken_away_and_shown() {
    let bench = Bench::new();
    let a = bench.buffer(&[1; LEN]);
    let graph = bench.graph();
    let fill = graph.fill(&a, 1).label("clear \"it\"").add().unwrap();
    assert_eq!(graph.label(fill).unwrap().as_deref(), Some("clear \"it\""));
    assert!(
        graph.to_dot(DrawingDetail::Brief).contains(r#"label="0 fill\lclear \"it\"\l""#),
        "{}",
        graph.to_dot(DrawingDetail::Brief)
    );
    graph.fill(&a, 2).replace(fill).unwrap();
    assert_eq!(graph.label(fill).unwrap().as_deref(), Some("clear \"it\""));
    graph.fill(&a, 2).label("other").replace(fill).unwrap();
    assert_eq!(graph.label(fill).unwrap().as_deref(), Some("other"));
    let recorded = graph.record(&bench.queue, || {
        let event = bench.queue.enqueue_fill_buffer(&a, &[3], 0, 64, &[])?;
        let node = graph.node_of(&event)?;
        graph.set_label(node, "recorded")?;
        clgraph::Result::Ok(node)
    });
    let recorded = recorded.unwrap();
    assert_eq!(graph.label(recorded).unwrap().as_deref(), Some("recorded"));
    let executable = graph.finalize(Finalize::new().profiling()).unwrap();
    graph.set_label(recorded, "").unwrap();
    assert_eq!(graph.label(recorded).unwrap(), None);
    let profile = profile(&executable, &bench.queue);
    assert_eq!(profile.nodes.iter().map(|node| node.title()).collect::<Vec<_>>(), ["other", "recorded"]);
    let elsewhere = bench.graph();
    assert!(matches!(cause(elsewhere.set_label(fill, "x")), BuildCause::OtherGraph { .. }));
    assert!(matches!(cause(elsewhere.label(fill)), BuildCause::OtherGraph { .. }));
    let labelled = graph.kernel(&bench.kernel("stir")).read_write(&a).range(LEN).label("no");
    // SAFETY: each work-item touches its own element.
    let error = unsafe { graph.command_group([labelled]) };
    assert!(matches!(cause(error), BuildCause::Group(GroupError::Options { .. })));
}

/// Rule Q2
#[test]
fn tables_and_traces_show_what_ran() {
    let bench = Bench::new();
    let (graph, _) = chain(&bench);
    let executable = graph.finalize(Finalize::new().profiling()).unwrap();
    let (first, second) = (profile(&executable, &bench.queue), profile(&executable, &bench.queue));
    let sums = first.by_title();
    assert_eq!(sums.len(), 6);
    assert!(sums.windows(2).all(|pair| pair[0].duration >= pair[1].duration));
    let table = first.to_string();
    for part in ["device clock", "first half", "the input", "1 scale (first half) [4096] by ", "share", "queued"] {
        assert!(table.contains(part), "{part} in\n{table}");
    }
    let mut trace = Trace::new();
    trace.add(&first).add(&second);
    let json: Value = serde_json::from_str(&trace.to_json()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    assert_eq!((of("X").len(), of("b").len(), of("e").len()), (12, 2, 2));
    let nodes = of("X");
    let at = |event: &Value, key: &str| event[key].as_f64().unwrap();
    // One queue, one track: nothing overlaps, and the second submission is after the first.
    assert!(nodes.windows(2).all(|pair| at(pair[0], "ts") + at(pair[0], "dur") <= at(pair[1], "ts") + 0.01));
    let details = &event(&json, "first half")["args"];
    assert_eq!(details["range"], Value::from(vec![LEN]));
    assert_eq!((&details["name"], &details["node"]), (&Value::from("scale"), &Value::from(1)));
    assert!(event(&json, "process_name")["args"]["name"].as_str().unwrap().contains("device clock"));

    // Nodes that overlap have tracks of their own, and all submissions have one track.
    let both: Value = serde_json::from_str(&Trace::new().add(&first).add(&first).to_json()).unwrap();
    let both = both["traceEvents"].as_array().unwrap();
    let lanes: Vec<u64> =
        both.iter().filter(|event| event["name"] == "stir").map(|event| event["tid"].as_u64().unwrap()).collect();
    assert_eq!(lanes, [1, 2]);
    assert_eq!(both.iter().filter(|event| event["name"] == "submission").count(), 4);

    let folder = std::env::temp_dir().join(format!("clgraph-profiling-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("trace.json");
    trace.write(&file).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&std::fs::read_to_string(&file).unwrap()).unwrap(), json);
    let wrong = |path: std::path::PathBuf| match cause(trace.write(path)) {
        BuildCause::File { why, .. } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(wrong(folder.join("trace.txt")), "the extension of the file must be `json`");
    assert!(!wrong(folder.join("missing").join("trace.json")).is_empty());
    std::fs::remove_dir_all(folder).unwrap();
}

/// Rule Q2: a kernel that takes nearly all of a submission's time has that time by every path. (Intel's CPU runtime
/// needs twice as long for it in a command buffer.)
#[test]
fn the_time_of_a_kernel_is_that_of_the_kernel_on_every_path() {
    let bench = Bench::new();
    let a = bench.buffer(&[1; 64]);
    let graph = bench.graph();
    graph.fill(&a, 1).add().unwrap();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("spin")).read_write(&a).arg(1_000_000_u32).range(64).add() }.unwrap();
    for path in PATHS {
        let executable = graph.finalize(Finalize::new().path(path).profiling()).unwrap();
        let share = || {
            let begin = Instant::now();
            let profile = profile(&executable, &bench.queue);
            profile.nodes[1].duration().as_secs_f64() / begin.elapsed().as_secs_f64()
        };
        // Other tests use a part of the processor.
        let most = (0..9).map(|_| share()).fold(0.0, f64::max);
        assert!((0.5..=1.0).contains(&most), "{path}: {most} of the time");
    }
}
