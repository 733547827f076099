//! Launches that are fused while the executable is used: rules Z1, Z2, Z6 and Z7. Whatever form a submission takes, memory and results
//! are the same.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clgraph::{
    Buffer, Executable, Finalize, Fuse, FusingState, Graph, HostTaskContext, Kernel, Path, Program, TuningState,
};
use common::Bench;

const LEN: usize = 64;
const LAUNCHES: u32 = 40;
const PATIENCE: Duration = Duration::from_secs(120);

const SOURCE: &str = "
    kernel void advance(global uint *x, uint by) { size_t i = get_global_id(0); x[i] = x[i] * 3 + by + (uint)i; }
    kernel void count(global uint *x) { atomic_inc(x + get_local_id(0)); }
";

fn model(x: &mut [u32], launches: u32) {
    for by in 0..launches {
        x.iter_mut().enumerate().for_each(|(i, x)| *x = x.wrapping_mul(3).wrapping_add(by + i as u32));
    }
}

fn kernels(bench: &Bench) -> [Kernel; 2] {
    let program = Program::from_source(&bench.queue, SOURCE).unwrap();
    ["advance", "count"].map(|name| program.kernel(name).unwrap())
}

fn add_steps(graph: &Graph, step: &Kernel, x: &Buffer<u32>, launches: u32) {
    for by in 0..launches {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(step).read_write(x).arg(by).range(LEN).add() }.unwrap();
    }
}

/// At once, so that the test need not wait.
fn auto() -> Finalize {
    Finalize::new().fuse(Fuse::Auto).fuse_after(Duration::ZERO)
}

/// Calls `once` until it is known whether the executable stays fused, and some times more. Returns what was found.
fn until_settled(executable: &Executable, mut once: impl FnMut()) -> FusingState {
    let begun = Instant::now();
    let mut more = 0;
    loop {
        once();
        let report = executable.report();
        let is_known = !matches!(report.fusing, FusingState::Waiting | FusingState::Building | FusingState::Trying);
        more += u32::from(is_known);
        if more > 100 {
            return report.fusing;
        }
        assert!(begun.elapsed() < PATIENCE, "{report}");
    }
}

fn taken_or_not(executable: &Executable, found: FusingState) {
    let report = executable.report();
    match found {
        FusingState::Taken => {
            let taken = report.tuning.strategies.iter().find(|strategy| strategy.taken).unwrap();
            assert!(taken.fused, "{report}");
            // And copies beside them.
            let fused = report.fused.iter().map(|of| of.nodes.len()).sum::<usize>();
            assert!((LAUNCHES as usize..=LAUNCHES as usize + 2).contains(&fused), "{report}");
            assert!(report.commands < LAUNCHES as usize, "{report}");
        }
        FusingState::NotFaster => {
            // What it took is still said.
            let fused = report.tuning.strategies.iter().find(|strategy| strategy.fused);
            assert!(fused.is_some_and(|fused| !fused.taken && fused.total_nanos.is_some()), "{report}");
            assert_eq!(report.fused, []);
        }
        other => panic!("{other}: {report}"),
    }
    assert!(report.fuse_build.is_some(), "{report}");
    assert!(report.to_string().contains(&format!("fusing     {found}: a submission takes ")), "{report}");
}

/// Rules Z1, Z2, Z6
#[test]
fn each_form_gives_the_same_memory_and_results() {
    let bench = Bench::new();
    let [step, _] = kernels(&bench);
    let x = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    let input = graph.write(&x, [0; LEN]).add().unwrap();
    add_steps(&graph, &step, &x, LAUNCHES);
    let result = graph.read(&x).add().unwrap();
    let later = graph.finalize(auto().fuse_after(Duration::from_secs(3600))).unwrap();
    for _ in 0..20 {
        later.submit(&bench.queue).unwrap().wait().unwrap();
    }
    assert_eq!((later.report().fusing, later.report().fuse_build), (FusingState::Waiting, None));
    let executable = graph.finalize(auto().result_slots(3)).unwrap();
    let (mut number, mut held) = (0_u32, Vec::new());
    let found = until_settled(&executable, || {
        number += 1;
        let start: Vec<u32> = (0..LEN as u32).map(|i| i * number).collect();
        let run = executable.submit_to(&bench.queue).with(&input, start.clone()).submit().unwrap();
        held.push((run, start));
        // Several are in flight at once, and hold their results.
        if held.len() == 3 {
            for (run, mut expected) in held.drain(..) {
                run.wait().unwrap();
                model(&mut expected, LAUNCHES);
                assert_eq!(*run.get(&result).unwrap(), *expected);
            }
        }
    });
    taken_or_not(&executable, found);
}

/// Rule Z2: state that memory keeps goes from one form to the other, on any queue, with events and host tasks.
#[test]
fn forms_follow_each_other_on_all_queues() {
    let bench = Bench::new();
    let [step, _] = kernels(&bench);
    let x = bench.buffer(&[1; LEN]);
    let graph = bench.graph();
    // Memory of the graph's own is the same memory in each form.
    let own = graph.alloc::<u32>(LEN).zero_init().add().unwrap();
    add_steps(&graph, &step, &x, LAUNCHES / 2);
    graph.copy(&own, &x).add().unwrap();
    add_steps(&graph, &step, &x, LAUNCHES / 2);
    graph.copy(&x, &own).add().unwrap();
    let executable = graph.finalize(auto()).unwrap();
    let queues = [bench.another_queue(false), bench.another_queue(true), bench.queue.clone()];
    let (mut number, mut expected) = (0, vec![0; LEN]);
    let found = until_settled(&executable, || {
        let queue = &queues[number % 3];
        if number % 7 == 3 {
            let gate = common::UserEvent::new(&bench.queue);
            let run = executable.submit_to(queue).after(&gate.0).submit().unwrap();
            gate.set(0);
            run.wait().unwrap();
        } else {
            executable.submit(queue).unwrap().wait().unwrap();
        }
        number += 1;
        model(&mut expected, LAUNCHES / 2);
        assert_eq!(bench.content(&x), expected, "submission {number}");
    });
    taken_or_not(&executable, found);
}

/// Rules Z2, K1, S2: host tasks, branches, loops, and sub-graphs, which are in both forms.
#[test]
fn host_tasks_and_branches_are_in_each_form() {
    let bench = Bench::new();
    let [step, _] = kernels(&bench);
    let (x, flag) = (bench.buffer(&[1; LEN]), bench.buffer(&[0]));
    let executable_of = |launches: u32| {
        let graph = bench.graph();
        add_steps(&graph, &step, &x, launches);
        graph.finalize(Finalize::new().fuse(Fuse::Off)).unwrap()
    };
    let (five, three) = (executable_of(5), executable_of(3));
    let graph = bench.graph();
    let given = graph.write(&flag, [0]).add().unwrap();
    graph.sub_graph(&five).add().unwrap();
    let branch = graph.when(&flag, &five).otherwise(&three).add().unwrap();
    graph.repeat(4, &three).add().unwrap();
    let tasks = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&tasks);
    let count = move |_: &HostTaskContext<'_>| {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    graph.host_task(count).reads_and_writes(&x).add().unwrap();
    add_steps(&graph, &step, &x, 6);
    let executable = graph.finalize(auto()).unwrap();
    let (mut number, mut expected) = (0, vec![1; LEN]);
    let found = until_settled(&executable, || {
        let run = executable.submit_to(&bench.queue).with(&given, [number % 2]).submit().unwrap();
        run.wait().unwrap();
        number += 1;
        let branched = if number % 2 == 0 { 5 } else { 3 };
        [5, branched, 3, 3, 3, 3, 6].into_iter().for_each(|launches| model(&mut expected, launches));
        assert_eq!(bench.content(&x), expected, "submission {number}");
        assert_eq!(tasks.load(Ordering::Relaxed), number);
        assert_eq!(run.turns(&branch).unwrap(), 1);
    });
    assert!(matches!(found, FusingState::Taken | FusingState::NotFaster), "{}", executable.report());
}

/// Rule Z2: what cannot change, or has nothing to gain, costs what it costs without fusing.
#[test]
fn what_is_never_fused_says_so() {
    let bench = Bench::new();
    let [step, count] = kernels(&bench);
    let x = bench.buffer(&[1; LEN]);
    let graph = bench.graph();
    add_steps(&graph, &step, &x, 4);
    for options in
        [Finalize::new().fuse(Fuse::Off), auto().path(Path::Replay), auto().autotune(false), auto().profiling()]
    {
        let executable = graph.finalize(options.clone()).unwrap();
        assert_eq!(executable.report().fusing, FusingState::Off, "{options:?}");
    }
    // One launch has nothing beside it.
    let alone = bench.graph();
    add_steps(&alone, &step, &x, 1);
    assert_eq!(alone.finalize(auto()).unwrap().report().fusing, FusingState::Off);
    // What a kernel does is looked at in the background.
    let graph = bench.graph();
    for _ in 0..3 {
        // SAFETY: one work-group, whose work-items touch their own elements.
        unsafe { graph.kernel(&count).read_write(&x).range(LEN).work_group(LEN).add() }.unwrap();
    }
    let executable = graph.finalize(auto()).unwrap();
    let found = until_settled(&executable, || executable.submit(&bench.queue).unwrap().wait().unwrap());
    let report = executable.report();
    assert_eq!((found, report.fuse_build), (FusingState::Nothing, None), "{report}");
    assert_eq!(report.not_fused.len(), 3, "{report}");
    assert!(report.to_string().contains("fusing     nothing fits together"), "{report}");
    if report.tuning.strategies.len() == 1 {
        assert_eq!(report.tuning.state, TuningState::Fixed);
    }
}

/// Rule Z7: nothing waits for a build, and nothing is lost if the executable goes meanwhile.
#[test]
fn an_executable_may_be_dropped_while_its_form_is_built() {
    let bench = Bench::new();
    for round in 0..6 {
        let [step, _] = kernels(&bench);
        let x = bench.buffer(&[1; LEN]);
        let graph = bench.graph();
        add_steps(&graph, &step, &x, 3 + round);
        let executable = graph.finalize(auto()).unwrap();
        let mut expected = vec![1; LEN];
        let mut times = 0;
        while matches!(executable.report().fusing, FusingState::Waiting) && times < 2000 {
            executable.submit(&bench.queue).unwrap();
            model(&mut expected, 3 + round);
            times += 1;
        }
        thread::sleep(Duration::from_millis(u64::from(round) * 10));
        drop(executable);
        assert_eq!(bench.content(&x), expected, "round {round}");
    }
}

const CHILD: &str = "CLGRAPH_TEST_CHILD";

/// Rule Z7: a process may end while a form is built.
#[test]
fn a_process_may_end_while_a_form_is_built() {
    if std::env::var_os(CHILD).is_some() {
        let bench = Bench::new();
        let [step, _] = kernels(&bench);
        let x = bench.buffer(&[1; LEN + 7]);
        let graph = bench.graph();
        // A number of its own, so that no cache of kernels has it.
        let number = std::process::id();
        for by in 0..60 {
            // SAFETY: each work-item touches its own element.
            unsafe { graph.kernel(&step).read_write(&x).arg(by + number).range(LEN + by as usize % 7).add() }.unwrap();
        }
        let executable = graph.finalize(auto()).unwrap();
        while executable.report().fusing == FusingState::Waiting {
            executable.submit(&bench.queue).unwrap().wait().unwrap();
        }
        thread::sleep(Duration::from_millis(u64::from(number % 200)));
        std::process::exit(7);
    }
    let name = "a_process_may_end_while_a_form_is_built";
    for _ in 0..4 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = child.args([name, "--exact"]).env(CHILD, "1").output().unwrap();
        assert_eq!(ended.status.code(), Some(7), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}
