//! When the memory that a graph owns is needed.

use super::*;
use crate::plan::PlanError;
use crate::plan::check::check;

const GRAPH: &str = "
    buffer x 64
    t: alloc 64
    a: write t 64
    b: copy t x 64
    f: free t
    k: alloc 64
    c: fill k 64
    z: alloc 64 zero
    d: copy z k 64
    g: free z
    n: alloc 64";

/// Rules M3, M8
#[test]
fn lifetimes_are_from_the_first_use_to_the_last_and_zeros_from_the_start() {
    assert_plan(
        GRAPH,
        expect![[r#"
            replay (the device has no command buffers)
              a host write
              b copy
              c fill
              d copy
            edges t-a a-b b-f k-c c-d z-d d-g; 0 implied
            t is needed 1..3
            k is needed 0..10
            z is needed 0..8
            n is needed nowhere
        "#]],
    );
}

/// Rule U7: with updates, an allocation is needed everywhere between its two nodes.
#[test]
fn with_updates_lifetimes_are_all_that_lies_between() {
    let reader = read(GRAPH);
    let options = Options { updatable: true, ..asked(Path::Auto) };
    let plan = plan(&reader.ir, &new_device(), &options).unwrap();
    let needed: Vec<_> = plan.lifetimes.of.iter().flatten().map(|life| life.needed.clone()).collect();
    assert_eq!(needed, [0..3, 0..10, 0..8, 0..10]);
    let between: Vec<_> = plan.lifetimes.of.iter().flatten().map(|life| life.between.clone()).collect();
    assert_eq!(between, [1..3, 5..10, 7..8, 10..10]);
}

/// Rule M2
#[test]
fn uses_in_no_order_or_out_of_time_are_named() {
    let wrong = |graph: &str| {
        let reader = read(graph);
        let options = Options { conflicts: Conflicts::Allowed, ..asked(Path::Auto) };
        let name = |node: NodeId| reader.names[node.index()].clone();
        match plan(&reader.ir, &new_device(), &options).unwrap_err() {
            PlanError::Early { node, .. } => format!("{} is early", name(node)),
            PlanError::Late { freed, node, why, .. } => format!("{} {why} by {}", name(node), name(freed)),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(wrong("t: alloc 8\n f: free t\n a: fill t 8"), "a is used after it is freed by f");
    assert_eq!(wrong("t: alloc 8\n f: free t\n g: free t"), "g is freed twice by f");
    let mut reader = read("buffer x 8\n a: fill x 8\n t: alloc 8");
    reader.ir.accesses_mut(NodeId(0))[0].view = reader.views["t"];
    let options = Options { conflicts: Conflicts::Allowed, ..asked(Path::Auto) };
    let error = plan(&reader.ir, &new_device(), &options).unwrap_err();
    assert_eq!(error, PlanError::Early { alloc: AllocId(0), node: NodeId(0) });
}

#[test]
fn the_checker_sees_lifetimes_that_are_too_short() {
    let reader = read(GRAPH);
    let order: Vec<NodeId> = reader.ir.ids().collect();
    let (fixed, changing) = (asked(Path::Auto), Options { updatable: true, ..asked(Path::Auto) });
    for options in [&fixed, &changing] {
        let good = plan(&reader.ir, &new_device(), options).unwrap();
        let broken = |change: &dyn Fn(&mut Plan)| {
            let mut plan = good.clone();
            change(&mut plan);
            check(&reader.ir, &order, &plan, options).unwrap_err()
        };
        let life = |alloc: usize, needed: std::ops::Range<usize>| {
            broken(&|plan| plan.lifetimes.of[alloc].as_mut().unwrap().needed = needed.clone())
        };
        assert!(life(0, 1..2).contains("is used at 2"));
        assert!(life(1, 1..10).contains("too short"));
        assert!(life(2, 1..8).contains("too short"));
        assert!(broken(&|plan| plan.lifetimes.of[0] = None).contains("has no life"));
        assert!(broken(&|plan| plan.lifetimes.of[0].as_mut().unwrap().between = 0..3).contains("exists in 0..3"));
        assert!(broken(&|plan| plan.lifetimes.of[0].as_mut().unwrap().kept = true).contains("exists in"));
        assert!(broken(&|plan| plan.lifetimes.of.truncate(1)).contains("1 lifetimes for 4"));
        assert!(broken(&|plan| plan.lifetimes.place[3] = 0).contains("node 3 is not known to be at 3"));
        if options.updatable {
            assert!(life(0, 1..3).contains("too short"));
            assert!(broken(&|plan| plan.lifetimes.of[3] = None).contains("has no life"));
        }
    }
}
