//! Graphs with host tasks: how they are divided into partitions.

use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::*;
use crate::plan::check::check;

/// Checks the lines about partitions and tasks.
#[track_caller]
fn assert_partitions(graph: &str, expected: Expect) {
    let reader = read(graph);
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap();
    let shown = show(&reader, &plan);
    let lines = shown.lines().filter(|line| line.starts_with("partition") || line.contains("waits for"));
    expected.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

/// Rule H2
#[test]
fn a_task_in_a_chain_cuts_it_in_two() {
    assert_partitions(
        "buffer x 64
         a: fill x 64
         b: fill x 64
         t: task read x
         c: fill x 64
         d: fill x 64",
        expect![[r#"
            partition 0: a b for t
            partition 1 after t: c d
            t waits for partition 0
        "#]],
    );
}

/// Rules H2, Z4: a launch that the host does is no command.
#[test]
fn a_launch_that_is_checked_is_a_task() {
    for checked in [Options { updatable: true, ..asked(Path::Auto) }, asked(Path::Auto)] {
        let reader = read(
            "buffer x 64
             a: fill x 64
             k: kernel f update x range 16 checked
             b: fill x 64
             l: kernel f update x range 16",
        );
        let plan = plan(&reader.ir, &new_device(), &checked).unwrap();
        let shown = show(&reader, &plan);
        let lines: Vec<&str> =
            shown.lines().filter(|line| line.starts_with("partition") || line.contains("waits for")).collect();
        assert_eq!(lines, ["partition 0: a for k", "partition 1 after k: b l", "k waits for partition 0"]);
    }
}

/// Rule H2: each partition is a block, whose last command has an event for the task.
#[test]
fn the_blocks_of_one_queue_are_between_tasks() {
    let reader = read(
        "buffer x 64
         a: fill x 64
         r: read x 64
         t: task read x
         c: fill x 64
         u: task read x",
    );
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Replay)).unwrap();
    expect![[r#"
        partition 0
        0: a, event 0
        partition 1
        0: r, event 1
        partition 2
        0: c, event 2
        t waits for 0
        u waits for 2
    "#]]
    .assert_eq(&lines(&instructions(&reader, &plan, plan.main(), &plan.main().schedule)));
}

/// Rule H2
#[test]
fn what_has_nothing_to_do_with_a_task_goes_at_once_and_after_what_the_task_waits_for() {
    assert_partitions(
        "buffer x 64
         buffer y 64
         free: fill y 64
         a: fill x 64
         t: task read x
         b: fill x 64",
        expect![[r#"
            partition 0: a for t
            partition 1: free
            partition 2 after t: b
            t waits for partition 0
        "#]],
    );
}

/// Rule H2
#[test]
fn forks_and_joins_wait_for_the_last_tasks_only() {
    assert_partitions(
        "buffer x 64
         first: task
         left: task after first
         right: task after first
         a: fill x 64 after left
         b: read x 64 after right
         last: task after a b right",
        expect![[r#"
            partition 0 after left: a for last
            partition 1 after left right: b for last
            first waits for
            left waits for task first
            right waits for task first
            last waits for partition 0 partition 1 task left right
        "#]],
    );
}

/// Rules H2, X1
#[test]
fn external_events_cut_as_tasks_do() {
    assert_partitions(
        "buffer x 64
         a: fill x 64
         s: signal after a
         w: wait after s
         b: fill x 64 after w",
        expect![[r#"
            partition 0: a for s
            partition 1 after w: b
            s waits for partition 0
            w waits for task s
        "#]],
    );
}

/// Rule H2: plans of random graphs are right, according to the checker, which checks every plan in tests.
#[test]
fn random_graphs_are_cut_right() {
    #[derive(Clone, Debug)]
    struct Nodes(Vec<(bool, Vec<u8>)>);

    impl Arbitrary for Nodes {
        fn arbitrary(g: &mut Gen) -> Self {
            let mut nodes: Vec<(bool, Vec<u8>)> = Vec::arbitrary(g);
            nodes.truncate(40);
            nodes.iter_mut().for_each(|(_, after)| after.truncate(3));
            Self(nodes)
        }
    }

    fn is_cut_right(Nodes(nodes): Nodes) {
        let mut text = "buffer x 64\n".to_owned();
        for (at, (is_task, after)) in nodes.iter().enumerate() {
            let what = if *is_task { "task" } else { "read x 8" };
            let after: String = match at {
                0 => String::new(),
                _ => after.iter().map(|of| format!(" n{}", usize::from(*of) % at)).collect(),
            };
            writeln!(text, "n{at}: {what} after{after}").unwrap();
        }
        let reader = read(&text);
        for path in [Path::Auto, Path::Queues] {
            let made = plan(&reader.ir, &new_device(), &asked(path));
            made.unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        }
    }
    QuickCheck::new().tests(300).quickcheck(is_cut_right as fn(Nodes));
}

/// Rule H2: the checker finds mistakes in partitions.
#[test]
fn the_checker_sees_wrong_parts() {
    let reader = read(
        "buffer x 64
         a: fill x 64
         t: task read x
         b: fill x 64
         u: task read x
         c: fill x 64",
    );
    let auto = asked(Path::Auto);
    let good = plan(&reader.ir, &new_device(), &auto).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    assert_eq!(check(&reader.ir, &order, &good, &auto), Ok(()));
    let broken = |change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        check(&reader.ir, &order, &plan, &auto).unwrap_err()
    };
    assert!(
        broken(&|plan| plan.flows[0].partitions[1].steps.start = 2)
            .contains("a partition starts at step 2, and not at 1")
    );
    assert!(broken(&|plan| plan.flows[0].partitions.truncate(2)).contains("the partitions end at step 2 of 3"));
    assert!(
        broken(&|plan| plan.flows[0].partitions[2].tasks.clear()).contains("the partition of node 4 does not wait")
    );
    assert!(
        broken(&|plan| plan.flows[0].partitions[0].tasks.push(0)).contains("the partition of node 0 does not wait")
    );
    assert!(broken(&|plan| plan.flows[0].tasks[1].tasks.clear()).contains("task 3 does not wait for the tasks"));
    assert!(broken(&|plan| plan.flows[0].tasks[1].partitions.clear()).contains("task 3 does not wait for node 2"));
    assert!(broken(&|plan| plan.flows[0].tasks[0].partitions.clear()).contains("task 1 does not wait for node 0"));
}

/// Rule H2: the checker finds mistakes in the schedule of one queue.
#[test]
fn the_checker_sees_wrong_schedules() {
    let reader = read(
        "buffer x 64
         a: fill x 64
         t: task read x
         b: fill x 64
         u: task read x
         c: fill x 64",
    );
    let auto = asked(Path::Auto);
    let good = plan(&reader.ir, &new_device(), &auto).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    let broken = |change: &dyn Fn(&mut Schedule)| {
        let mut plan = good.clone();
        change(&mut plan.flows[0].schedule);
        check(&reader.ir, &order, &plan, &auto).unwrap_err()
    };
    let with =
        |at: usize, instruction: Instruction| broken(&|schedule| schedule.instructions[at] = instruction.clone());
    let run = |steps: Range<usize>, event| Instruction::Run { stream: 0, steps, event };
    assert_eq!(broken(&|schedule| schedule.tasks[0].clear()), "task 1 does not wait for step 0");
    assert_eq!(broken(&|schedule| schedule.tasks[1].clear()), "task 3 does not wait for step 1");
    assert_eq!(broken(&|schedule| schedule.tasks[1] = vec![0]), "task 3 does not wait for step 1");
    assert_eq!(with(0, run(0..1, None)), "task 1 does not wait for step 0");
    assert_eq!(with(1, run(2..3, Some(1))), "steps 2..3 where 1 comes next");
    assert_eq!(with(2, Instruction::Wait { stream: 0, event: 2 }), "a wait for event 2, which nothing has made");
    assert_eq!(with(2, Instruction::Barrier { stream: 0, event: None }), "the instructions end at step 2 of 3");
    assert_eq!(broken(&|schedule| schedule.blocks.swap(0, 1)), "steps 1..2 where 0 comes next");
    let waits = |schedule: &mut Schedule| {
        schedule.end = 3..4;
        schedule.instructions.push(Instruction::Barrier { stream: 0, event: None });
    };
    assert_eq!(broken(&waits), "a wait on a single queue");
}
