//! What the planner makes of graphs: order, edges, kernel objects, steps. Also that the checker finds what is wrong.

use super::*;
use crate::error::ErrorKind;
use crate::plan::PlanError;
use crate::plan::check::check;

/// Rule D1
#[test]
fn data_orders_nodes_and_reads_do_not() {
    assert_plan(
        "buffer x 64
         buffer y 64
         w: write x 64
         a: kernel f read x write y
         b: kernel g read x
         c: kernel h update x
         r: read y 64",
        expect![[r#"
            replay (the device has no command buffers)
              w host write
              a kernel #0
              b kernel #1
              c kernel #2
              r host read
            edges w-a w-b a-c b-c a-r; 0 implied
        "#]],
    );
}

/// Rule D2
#[test]
fn ranges_and_sub_buffers_decide_what_conflicts() {
    assert_plan(
        "buffer x 64
         sub low x 0..32
         sub high x 32..64
         a: kernel f write low
         b: kernel f write high
         c: kernel g read low
         d: kernel g read x
         e: fill x[0..4] 4",
        expect![[r#"
            replay (the device has no command buffers)
              a kernel #0
              b kernel #1
              c kernel #2
              d kernel #3
              e fill
            edges a-c a-d b-d c-e d-e; 1 implied
        "#]],
    );
}

/// Rule D4
#[test]
fn edges_that_a_two_step_path_implies_are_removed() {
    assert_plan(
        "buffer x 64
         a: fill x 64
         b: kernel f update x after a
         c: kernel f update x after a b
         d: empty after b c",
        expect![[r#"
            replay (the device has no command buffers)
              a fill
              b kernel #0
              c kernel #0
            edges a-b b-c c-d; 2 implied
        "#]],
    );
}

#[test]
fn kernel_objects_are_shared_by_equal_values_only() {
    assert_plan(
        "buffer x 64
         a: kernel f update x value 1
         b: kernel f update x value 2
         c: kernel f update x value 1
         d: kernel g update x value 1
         e: kernel f update x local 4
         g: kernel f null value 1",
        expect![[r#"
            replay (the device has no command buffers)
              a kernel #0
              b kernel #1
              c kernel #0
              d kernel #2
              e kernel #3
              g kernel #4
            edges a-b b-c c-d d-e; 0 implied
        "#]],
    );
}

/// Rule U6: an update sets the argument of one launch, and no other launch has it.
#[test]
fn a_launch_with_a_parameter_has_a_kernel_object_of_its_own() {
    let reader = read(
        "buffer x 64
         a: kernel f update x value 1
         b: kernel f update x value 1
         c: kernel f update x value 1
         d: kernel f update x value 1",
    );
    // The second arguments of b and c.
    let options = Options { updatable: true, parameters: &[3, 5], ..asked(Path::Auto) };
    let good = plan(&reader.ir, &new_device(), &options).unwrap();
    let objects = |plan: &Plan| plan.steps.iter().map(|step| step.object.unwrap().0).collect::<Vec<_>>();
    assert_eq!(objects(&good), [0, 1, 2, 0]);
    let order: Vec<NodeId> = reader.ir.ids().collect();
    let mut wrong = good;
    wrong.steps[2].object = wrong.steps[1].object;
    assert!(check(&reader.ir, &order, &wrong, &options).unwrap_err().contains("node 2 shares a kernel object"));
}

#[test]
fn nodes_that_do_nothing_order_and_have_no_step() {
    assert_plan(
        "buffer x 64
         a: kernel f update x range 0
         b: empty after a
         c: copy x x[32..64] 0
         d: kernel f update x after b c",
        expect![[r#"
            replay (the device has no command buffers)
              d kernel #0
            edges a-b b-d c-d; 1 implied
        "#]],
    );
}

#[test]
fn an_edge_to_an_earlier_node_changes_the_order() {
    assert_plan(
        "buffer x 64
         buffer y 64
         a: fill x 64
         b: fill y 64
         edge b a",
        expect![[r#"
            replay (the device has no command buffers)
              b fill
              a fill
            edges b-a; 0 implied
        "#]],
    );
}

#[test]
fn an_empty_graph_has_an_empty_plan() {
    assert_plan(
        "",
        expect![[r#"
        edges ; 0 implied
    "#]],
    );
}

#[test]
fn the_path_that_was_asked_for_is_named_so() {
    let reader = read("buffer x 64\n a: fill x 64");
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Replay)).unwrap();
    assert_eq!(show(&reader, &plan), "replay (as asked)\n  a fill\nedges ; 0 implied\n");
}

/// Rule B4
#[test]
fn a_cycle_that_was_not_checked_is_found_by_the_planner() {
    let reader = read(
        "a: empty
         b: empty after a
         c: empty after b
         d: empty after c
         edge c b",
    );
    let error = plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap_err();
    let PlanError::Cycle(mut nodes) = error else { panic!("{error:?}") };
    nodes.sort();
    assert_eq!(nodes, [NodeId(1), NodeId(2)]);
}

/// Rule F5
#[test]
fn a_node_that_the_device_cannot_run_is_named_with_what_is_missing() {
    let old = Caps { version: Version::new(1, 1), ..new_device() };
    let oldest = Caps { version: Version::new(1, 0), ..new_device() };
    let fails = |graph: &str, caps: &Caps| match plan(&read(graph).ir, caps, &asked(Path::Auto)) {
        Err(PlanError::NotRunnable { node, missing, kind }) => (node.0, missing, kind),
        other => panic!("{other:?}"),
    };
    let fill = "buffer x 64\n a: empty\n b: fill x 64";
    let missing = "a fill needs OpenCL 1.2, but the device has 1.1".to_owned();
    assert_eq!(fails(fill, &old), (1, missing, ErrorKind::FeatureNotSupported));
    let rect = "buffer x 64\n buffer y 64\n a: rect x y 4x2x1";
    let missing = "a rectangular copy needs OpenCL 1.1, but the device has 1.0".to_owned();
    assert_eq!(fails(rect, &oldest), (0, missing, ErrorKind::FeatureNotSupported));
    let missing = "its program was not built for this device; build it for this device too".to_owned();
    assert_eq!(fails("a: unbuilt f", &new_device()), (0, missing, ErrorKind::KernelNotSupported));
}

/// The checker finds what it is for: each of these cases breaks a good plan in one way.
#[test]
fn the_checker_finds_broken_plans() {
    let reader = read(
        "buffer x 64
         a: fill x 64
         b: kernel f update x value 1
         c: kernel f update x value 2
         d: empty after a c",
    );
    let good = plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    let auto = asked(Path::Auto);
    let broken = |change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        check(&reader.ir, &order, &plan, &auto).unwrap_err()
    };
    let bad_order = |order: [u32; 4]| check(&reader.ir, &order.map(NodeId), &good, &auto).unwrap_err();
    assert_eq!(check(&reader.ir, &order, &good, &auto), Ok(()));
    assert!(bad_order([1, 0, 2, 3]).contains("not come after its predecessor"));
    assert!(bad_order([1, 1, 2, 3]).contains("twice in the order"));
    assert!(broken(&|plan| plan.steps.swap(0, 1)).contains("out of order"));
    assert!(broken(&|plan| plan.steps.truncate(2)).contains("has a step: false"));
    assert!(broken(&|plan| plan.segments[0].steps.end = 1).contains("segments end at 1"));
    let mixed = read("buffer x 64\n a: fill x 64\n b: write x 64");
    let mut wrong = plan(&mixed.ir, &new_device(), &asked(Path::Auto)).unwrap();
    wrong.segments[0].path = Path::Native;
    let order: Vec<NodeId> = mixed.ir.ids().collect();
    assert!(check(&mixed.ir, &order, &wrong, &auto).unwrap_err().contains("no command buffer can hold"));
    assert!(broken(&|plan| plan.edges.needed.truncate(2)).contains("do not reach"));
    assert!(broken(&|plan| plan.edges.implied_by_path += 1).contains("neither kept"));
    assert!(broken(&|plan| plan.objects[1] = plan.objects[0]).contains("alike"));
    assert!(broken(&|plan| plan.objects.swap(0, 1)).contains("other values"));
}

/// Rule D1: the checker sees memory that nobody has ordered, unless the program allows that.
#[test]
fn the_checker_sees_conflicts_without_an_edge() {
    let mut reader = read("buffer x 64\n buffer y 64\n a: fill x 64\n b: fill y 64");
    let options = |conflicts| Options { conflicts, ..asked(Path::Replay) };
    let good = plan(&reader.ir, &new_device(), &asked(Path::Replay)).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    reader.ir.accesses_mut(NodeId(1))[0].view = reader.views["x"];
    let found = |conflicts| check(&reader.ir, &order, &good, &options(conflicts));
    for conflicts in [Conflicts::Impossible, Conflicts::ToFind] {
        assert_eq!(found(conflicts).unwrap_err(), "nodes 0 and 1 share memory and no edges order them");
    }
    assert_eq!(found(Conflicts::Allowed), Ok(()));
}
