//! When the memory that a graph owns is needed, and where it lies.

use quickcheck::QuickCheck;

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

/// Where the allocations of a graph lie, and the number of streams or why there is one.
fn placed(graph: &str, options: &Options<'_>) -> String {
    let reader = read(graph);
    let plan = plan(&reader.ir, &new_device(), options).unwrap();
    let MemoryLayout { allocs, placement, .. } = &plan.layout;
    let spot = |((alloc, _), spot): (&(AllocId, bool), &Spot)| {
        let name = &reader.names[reader.ir.allocs[alloc.index()].node.index()];
        format!("{name} {}+{} ", spot.arena, spot.offset)
    };
    let spots: String = allocs.iter().zip(&placement.spots).map(spot).collect();
    let streams = plan.on_streams.map(|on| on.streams.to_string());
    let why = plan.excluded.iter().find(|(path, _)| *path == Path::Queues).map(|(_, why)| format!("{why:?}"));
    format!("{spots}- {}", streams.or(why).unwrap_or_default())
}

/// Two branches, each with memory of its own.
const BRANCHES: &str = "
    buffer x 64
    buffer y 64
    t: alloc 64
    a: kernel f read x write t
    b: kernel f read t write x
    f: free t
    u: alloc 64
    c: kernel f read y write u
    d: kernel f read u write y
    g: free u";

#[test]
fn branches_do_not_share_memory_if_they_are_to_use_several_queues() {
    assert_eq!(placed(BRANCHES, &asked(Path::Replay)), "t 0+0 u 0+0 - ");
    assert_eq!(placed(BRANCHES, &asked(Path::Queues)), "t 0+0 u 0+64 - 2");
    // Several queues may be faster, but would need more memory.
    assert_eq!(placed(BRANCHES, &asked(Path::Auto)), "t 0+0 u 0+0 - GraphMemory");
    // If nothing is shared anyway, they need no more.
    let apart =
        |options: Options<'static>| Options { memory: MemoryOptions { share: false, ..options.memory }, ..options };
    assert_eq!(placed(BRANCHES, &apart(asked(Path::Auto))), "t 0+0 u 0+64 - 2");
    assert_eq!(placed(&BRANCHES.replace("f: free t", ""), &asked(Path::Auto)), "t 0+0 u 0+64 - 2");
}

#[test]
fn branches_share_memory_with_what_is_before_and_after_them() {
    let graph = "
        buffer x 64
        buffer y 64
        s: alloc 64
        first: kernel f write s
        second: kernel f read s write x write y
        e: free s"
        .to_owned()
        + &BRANCHES.replace("buffer x 64", "").replace("buffer y 64", "")
        + "
        v: alloc 128
        last: kernel f read x read y write v
        h: free v";
    assert_eq!(placed(&graph, &asked(Path::Queues)), "s 0+0 t 0+0 u 0+64 v 0+0 - 2");
    // One queue needs as much, so several may be tried.
    assert_eq!(placed(&graph, &asked(Path::Auto)), "s 0+0 t 0+0 u 0+64 v 0+0 - 2");
}

/// Rule H2: no clock shows that a host task is over. A command before the task may have had the bytes.
#[test]
fn memory_of_host_tasks_is_shared_with_nothing_after_them() {
    let graph = "
        buffer x 64
        buffer y 64
        s: alloc 64
        first: kernel f write s
        second: kernel f read s write x write y
        e: free s
        other: fill y 64
        t: alloc 64
        a: kernel f read x write t
        task: task update t
        b: kernel f read t write x
        f: free t
        u: alloc 64
        c: kernel f read x write u
        g: free u";
    assert_eq!(placed(graph, &asked(Path::Queues)), "s 0+0 t 0+0 u 0+64 - 2");
}

/// Rule U7: an update may bring a use to any command between the two nodes in the order, also to one that no edge orders.
#[test]
fn with_updates_memory_is_shared_only_with_what_is_after_all_between_its_nodes() {
    let graph = |between: &str| {
        format!(
            "buffer x 64
            buffer y 64
            t: alloc 64
            a: kernel f read x write t
            {between}
            f: free t
            b: kernel f update x
            u: alloc 64
            c: kernel f read x write u
            g: free u
            d: fill y 64"
        )
    };
    let options = Options { updatable: true, ..asked(Path::Queues) };
    assert_eq!(placed(&graph(""), &options), "t 0+0 u 0+0 - 2");
    assert_eq!(placed(&graph("e: fill y 64"), &options), "t 0+0 u 0+64 - 2");
    assert_eq!(placed(&graph("e: fill y 64"), &asked(Path::Queues)), "t 0+0 u 0+0 - 2");
}

/// A graph with memory of its own: what a node does, and with which memory.
impl Random {
    fn with_memory(&self) -> String {
        let mut text: String = (0..4).map(|buffer| format!("buffer x{buffer} 64\n")).collect();
        let mut live: Vec<usize> = Vec::new();
        for (number, (kind, a, b)) in self.0.iter().enumerate() {
            let of = |which: u8| (!live.is_empty()).then(|| format!("t{}", live[usize::from(which) % live.len()]));
            let other = || of(*b).filter(|other| of(*a).as_ref() != Some(other));
            let size = 8 + usize::from(*a) % 7 * 8;
            match (kind % 9, of(*a)) {
                (0 | 1, _) | (_, None) => {
                    live.push(number);
                    let zero = if b % 8 == 0 { "zero" } else { "" };
                    writeln!(text, "t{number}: alloc {size} {zero}")
                }
                (2, Some(memory)) => {
                    live.remove(usize::from(*a) % live.len());
                    writeln!(text, "f{number}: free {memory}")
                }
                (3, Some(memory)) => writeln!(text, "n{number}: kernel f read x{} write {memory}", b % 4),
                (4, Some(memory)) => writeln!(text, "n{number}: kernel f read {memory} write x{}", b % 4),
                (5, Some(memory)) if b % 4 == 0 => writeln!(text, "n{number}: task update {memory}"),
                (_, Some(memory)) => match other() {
                    Some(other) => writeln!(text, "n{number}: kernel f read {memory} update {other}"),
                    None => writeln!(text, "n{number}: kernel f update {memory}"),
                },
            }
            .unwrap();
        }
        text
    }
}

/// The planner checks every plan in tests, with code of its own: this test makes many plans.
#[test]
fn random_graphs_with_memory_are_right_on_several_queues() {
    fn property(graph: Random, updatable: bool, auto: bool) -> bool {
        let reader = read(&graph.with_memory());
        let options = Options { updatable, ..asked(if auto { Path::Auto } else { Path::Queues }) };
        let several = plan(&reader.ir, &new_device(), &options).unwrap();
        let one = plan(&reader.ir, &new_device(), &Options { path: Path::Replay, ..options }).unwrap();
        let (several, one) = (several.layout.placement.total(), one.layout.placement.total());
        // Several queues need more memory only if the program has asked for them.
        !auto || several <= one
    }
    QuickCheck::new().tests(500).quickcheck(property as fn(Random, bool, bool) -> bool);
}

#[test]
fn the_checker_sees_branches_that_share_memory() {
    let reader = read(BRANCHES);
    let order: Vec<NodeId> = reader.ir.ids().collect();
    let options = asked(Path::Queues);
    let mut plan = plan(&reader.ir, &new_device(), &options).unwrap();
    plan.layout.placement.spots[1].offset = 32;
    assert!(check(&reader.ir, &order, &plan, &options).unwrap_err().contains("share bytes and are used at once"));
}
