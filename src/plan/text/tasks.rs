//! Graphs with host tasks: how they are cut.

use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::*;
use crate::plan::check::check;

/// The lines about parts and tasks.
#[track_caller]
fn assert_parts(graph: &str, expected: &[&str]) {
    let reader = read(graph);
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap();
    let shown = show(&reader, &plan);
    let lines: Vec<&str> =
        shown.lines().filter(|line| line.starts_with("part") || line.contains("waits for")).collect();
    assert_eq!(lines, expected, "\n{shown}");
}

/// Rule H2
#[test]
fn a_task_in_a_chain_cuts_it_in_two() {
    assert_parts(
        "buffer x 64
         a: fill x 64
         b: fill x 64
         t: task read x
         c: fill x 64
         d: fill x 64",
        &["part 0: a b for t", "part 1 behind t: c d", "t waits for part 0"],
    );
}

/// Rule H2
#[test]
fn what_has_nothing_to_do_with_a_task_goes_at_once_and_behind_what_the_task_waits_for() {
    assert_parts(
        "buffer x 64
         buffer y 64
         free: fill y 64
         a: fill x 64
         t: task read x
         b: fill x 64",
        &["part 0: a for t", "part 1: free", "part 2 behind t: b", "t waits for part 0"],
    );
}

/// Rule H2
#[test]
fn forks_and_joins_wait_for_the_last_tasks_only() {
    assert_parts(
        "buffer x 64
         first: task
         left: task after first
         right: task after first
         a: fill x 64 after left
         b: read x 64 after right
         last: task after a b right",
        &[
            "part 0 behind left: a for last",
            "part 1 behind left right: b for last",
            "first waits for",
            "left waits for task first",
            "right waits for task first",
            "last waits for part 0 part 1 task left right",
        ],
    );
}

/// Rules H2, X1
#[test]
fn external_events_cut_as_tasks_do() {
    assert_parts(
        "buffer x 64
         a: fill x 64
         s: signal after a
         w: wait after s
         b: fill x 64 after w",
        &["part 0: a for s", "part 1 behind w: b", "s waits for part 0", "w waits for task s"],
    );
}

/// Rule H2: a plan of random nodes is right, says the checker that looks at every plan in tests.
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
        plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap();
    }
    QuickCheck::new().tests(300).quickcheck(is_cut_right as fn(Nodes));
}

/// Rule H2: the checker finds what is wrong with parts.
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
    assert!(broken(&|plan| plan.parts[1].steps.start = 2).contains("a part starts at step 2, and not at 1"));
    assert!(broken(&|plan| plan.parts.truncate(2)).contains("the parts end at step 2 of 3"));
    assert!(broken(&|plan| plan.parts[2].tasks.clear()).contains("the part of node 4 does not wait"));
    assert!(broken(&|plan| plan.parts[0].tasks.push(0)).contains("the part of node 0 does not wait"));
    assert!(broken(&|plan| plan.tasks[1].tasks.clear()).contains("task 3 does not wait for the tasks"));
    assert!(broken(&|plan| plan.tasks[1].parts.clear()).contains("task 3 does not wait for node 2"));
    assert!(broken(&|plan| plan.tasks[0].parts.clear()).contains("task 1 does not wait for node 0"));
}
