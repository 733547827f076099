//! Graphs whose commands use several queues: which queue each command goes to, and what waits for what.

use quickcheck::QuickCheck;

use super::*;
use crate::plan::check::check;

/// Returns the instructions of the schedule with several queues. Nothing if there is one queue.
fn streams(graph: &str) -> Vec<String> {
    let reader = read(graph);
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Queues)).unwrap();
    plan.on_streams.as_ref().map(|schedule| instructions(&reader, &plan, plan.main(), schedule)).unwrap_or_default()
}

#[test]
fn a_chain_is_in_one_row() {
    assert!(streams("buffer x 64\na: fill x 64\nb: fill x 64\nc: fill x 64").is_empty());
    assert!(streams("buffer x 64").is_empty());
}

#[test]
fn chains_have_a_queue_each_and_the_end_waits_for_the_others() {
    let graph = "buffer x 64
        buffer y 64
        a: fill x 64
        p: fill y 64
        b: fill x 64
        q: fill y 64
        c: fill x 64";
    expect![[r#"
        0: barrier, event 0
        0: a
        1: wait 0
        1: p
        0: b
        1: q, event 1
        0: c
        end
        0: wait 1
        0: barrier
    "#]]
    .assert_eq(&lines(&streams(graph)));
}

#[test]
fn forks_and_joins_wait_once() {
    let graph = "buffer x 64
        buffer y 64
        buffer z 64
        start: kernel f write x write y write z
        a: kernel f update x
        b: kernel f update y
        c: kernel f update z
        both: kernel f read x read y
        all: kernel f update x update y update z
        more: kernel f update x";
    // `c` waits for the start; `all` is after that too, and by `both` after `a`.
    expect![[r#"
        0: barrier, event 0
        0: start, event 1
        0: a, event 2
        1: wait 0
        1: wait 1
        1: b
        2: wait 0
        2: wait 1
        2: c, event 3
        1: wait 2
        1: both
        1: wait 3
        1: all more, event 4
        end
        0: wait 4
        0: barrier
    "#]]
    .assert_eq(&lines(&streams(graph)));
}

#[test]
fn more_chains_than_queues_stay_where_they_are() {
    let mut graph = String::new();
    for chain in 0..11 {
        writeln!(graph, "buffer x{chain} 64").unwrap();
    }
    for round in 0..3 {
        for chain in 0..11 {
            writeln!(graph, "n{chain}-{round}: fill x{chain} 64").unwrap();
        }
    }
    let shown = streams(&graph);
    let on = |stream: usize| shown.iter().filter(move |line| line.starts_with(&format!("{stream}: n"))).cloned();
    assert_eq!(shown.iter().filter(|line| line.contains("wait")).count(), 7 + 7, "begin and end only: {shown:#?}");
    assert_eq!(on(0).collect::<Vec<_>>().join(" "), "0: n0-0 0: n8-0 0: n0-1 0: n8-1 0: n0-2 0: n8-2");
    assert_eq!((0..8).flat_map(on).count(), 33);
}

#[test]
fn what_has_only_the_order_of_the_steps_is_in_one_row() {
    let two = |more: &str| streams(&format!("buffer x 64\nbuffer y 64\na: fill x 64\nb: fill y 64\n{more}"));
    assert!(!two("").is_empty());
    assert!(!two("t: task update x").is_empty(), "host tasks");
    assert!(two("n: native either read x").is_empty(), "native commands");
    let reader = read("buffer x 64\nbuffer y 64\na: fill x 64\nb: fill y 64");
    let count =
        |options: &Options<'_>| plan(&reader.ir, &new_device(), options).unwrap().on_streams.map(|on| on.streams);
    assert_eq!(count(&asked(Path::Queues)), Some(2));
    assert_eq!(count(&asked(Path::Auto)), Some(2));
    assert_eq!(count(&asked(Path::Replay)), None);
    assert_eq!(count(&Options { autotune: false, ..asked(Path::Auto) }), None);
    assert_eq!(count(&Options { conflicts: Conflicts::Allowed, ..asked(Path::Queues) }), None);
    assert_eq!(count(&Options { profiled: true, ..asked(Path::Queues) }), Some(2));
}

/// A graph of fills of up to twelve buffers, and of kernels over two or three of them.
impl Random {
    fn of_buffers(&self) -> String {
        let mut text: String = (0..12).map(|buffer| format!("buffer x{buffer} 64\n")).collect();
        for (number, (a, b, kind)) in self.0.iter().enumerate() {
            let (a, b) = (a % 12, b % 12);
            match kind % 4 {
                0 => writeln!(text, "n{number}: fill x{a} 64"),
                1 if a != b => writeln!(text, "n{number}: kernel f read x{a} update x{b}"),
                2 if a != b => writeln!(text, "n{number}: kernel f read x{a} read x{b} update x{}", (a + b) % 12),
                _ => writeln!(text, "n{number}: kernel f update x{a}"),
            }
            .unwrap();
        }
        text
    }
}

/// The planner checks every plan in tests, with code of its own: this test makes many plans.
#[test]
fn random_graphs_are_in_order_on_several_queues() {
    fn property(graph: Random) -> bool {
        let reader = read(&graph.of_buffers());
        let plan = plan(&reader.ir, &new_device(), &asked(Path::Queues)).unwrap();
        plan.on_streams.is_none_or(|on| on.streams >= 2)
    }
    QuickCheck::new().tests(2_000).quickcheck(property as fn(Random) -> bool);
}

#[test]
fn a_wait_that_is_missing_is_found() {
    let graph = "buffer x 64
        buffer y 64
        a: kernel f update x
        b: kernel f update y
        c: kernel f update x update y
        d: kernel f update y
        e: kernel f update x";
    let reader = read(graph);
    let options = asked(Path::Queues);
    let good = plan(&reader.ir, &new_device(), &options).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    assert_eq!(check(&reader.ir, &order, &good, &options), Ok(()));
    let broken = |change: &dyn Fn(&mut Vec<Instruction>)| {
        let mut bad = good.clone();
        change(&mut bad.on_streams.as_mut().unwrap().instructions);
        check(&reader.ir, &order, &bad, &options).unwrap_err()
    };
    let is_wait = |one: &Instruction, of: usize| matches!(one, Instruction::Wait { event, .. } if *event == of);
    let without = |of: usize| {
        broken(&|all| {
            for one in all.iter_mut().filter(|one| is_wait(one, of)) {
                *one = Instruction::Wait { stream: 1, event: 0 };
            }
        })
    };
    assert_eq!(without(1), "step 2 does not come after step 0");
    let last = |all: &mut Vec<Instruction>| {
        let last = all.iter_mut().rev().find(|one| matches!(one, Instruction::Wait { .. })).unwrap();
        *last = Instruction::Wait { stream: 1, event: 0 };
    };
    assert_eq!(broken(&last), "the end does not come after step 3");
}

/// Rule H2: branches with host tasks have a queue each. What comes after a task waits for nothing that the task has waited
/// for.
#[test]
fn branches_with_tasks_have_a_queue_each() {
    let graph = "buffer x 64
        buffer y 64
        a: fill x 64
        p: fill y 64
        t: task update x
        u: task update y
        b: fill x 64
        q: fill y 64
        both: kernel f read x read y";
    expect![[r#"
        0: barrier, event 0
        partition 0
        0: a, event 3
        partition 1
        1: wait 0
        1: p, event 4
        partition 2
        0: b, event 1
        partition 3
        1: q
        partition 4
        1: wait 1
        1: both, event 2
        end
        0: wait 2
        0: barrier
        t waits for 3
        u waits for 4
    "#]]
    .assert_eq(&lines(&streams(graph)));
}

/// Rule H2: the checker sees streams whose order nobody knows, or that begin too early, and tasks that begin too early.
#[test]
fn streams_and_tasks_that_do_not_wait_are_found() {
    let reader = read(
        "buffer x 64
         buffer y 64
         a: fill x 64
         p: fill y 64
         t: task update x
         u: task update y
         b: fill x 64
         q: fill y 64",
    );
    let options = asked(Path::Queues);
    let good = plan(&reader.ir, &new_device(), &options).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    assert_eq!(check(&reader.ir, &order, &good, &options), Ok(()));
    let broken = |change: &dyn Fn(&mut Schedule)| {
        let mut bad = good.clone();
        change(bad.on_streams.as_mut().unwrap());
        check(&reader.ir, &order, &bad, &options).unwrap_err()
    };
    let too_early = |schedule: &mut Schedule| {
        let to_begin = |one: &&mut Instruction| matches!(one, Instruction::Wait { stream: 1, event: 0 });
        *schedule.instructions.iter_mut().find(to_begin).unwrap() = Instruction::Wait { stream: 0, event: 0 };
    };
    assert_eq!(broken(&too_early), "stream 1 does not wait for the begin");
    // `b` and `q` wait for different tasks.
    let on_one = |schedule: &mut Schedule| {
        let last = schedule.instructions.iter_mut().filter(|one| matches!(one, Instruction::Run { .. })).last();
        let Some(Instruction::Run { stream, steps, .. }) = last else { panic!("no command") };
        assert_eq!((*stream, steps.clone()), (1, 3..4));
        *stream = 0;
    };
    assert_eq!(broken(&on_one), "nobody knows which of the steps 2 and 3 comes first on stream 0");
    assert_eq!(broken(&|schedule| schedule.tasks[0].clear()), "task 2 does not wait for step 0");
    assert_eq!(broken(&|schedule| schedule.tasks.swap(0, 1)), "task 2 does not wait for step 0");
    assert_eq!(broken(&|schedule| schedule.tasks[1].clear()), "task 3 does not wait for step 1");
}

/// Nobody knows in which order branches go on after their tasks, so each needs a queue.
#[test]
fn many_branches_with_tasks_are_on_one_queue() {
    let branches = |count: usize| {
        let mut text: String = (0..count).map(|branch| format!("buffer x{branch} 64\n")).collect();
        for branch in 0..count {
            writeln!(
                text,
                "a{branch}: fill x{branch} 64\nt{branch}: task update x{branch}\nb{branch}: fill x{branch} 64"
            )
            .unwrap();
        }
        let reader = read(&text);
        let plan = plan(&reader.ir, &new_device(), &asked(Path::Queues)).unwrap();
        (plan.on_streams.map(|on| on.streams), plan.excluded)
    };
    assert_eq!(branches(8), (Some(8), vec![]));
    assert_eq!(branches(9), (None, vec![(Path::Queues, Exclusion::ManyBranches)]));
}
