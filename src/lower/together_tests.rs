//! Which launches may be in one chain, by their memory and work-groups. No device is needed.

use super::fuse::{BYTES, Pointer};
use super::fuse_tests::Written;
use crate::ir::{NodeId, ViewId, ViewKind};

/// Memory that is not clgraph's may be any memory, also that of another handle (rules Z8, D3).
#[test]
fn memory_of_others_divides_by_types_and_constants() {
    let mut graph = Written::new(3);
    graph.ir.views[1].kind = ViewKind::Foreign;
    graph.ir.views[2].kind = ViewKind::Foreign;
    let nodes = [(0, 0), (1, 1), (2, 2), (1, 3)].map(|(memory, number)| graph.launch(memory, number, &[]));
    graph.keeps_order = true;
    let mut found = |types: [Option<u32>; 4], constant: [bool; 4]| {
        for (at, node) in nodes.iter().enumerate() {
            let to = ViewId([0, 1, 2, 1][at]);
            let pointer = Pointer { to, is_constant: constant[at], element: types[at] };
            graph.pieces.get_mut(&NodeId(*node)).unwrap().pointers = vec![pointer];
        }
        graph.launches(1024)
    };
    let [a, b, c, d] = nodes;
    let none = [false; 4];
    assert_eq!(found([Some(0); 4], none), [vec![a, b, c, d]]);
    assert_eq!(found([Some(0), Some(0), Some(1), Some(1)], none), [[a, b], [c, d]]);
    assert_eq!(found([Some(1), Some(0), Some(0), Some(BYTES)], none), [[b, c, d]]);
    assert_eq!(found([Some(0), Some(0), Some(0), None], none), [[a, b, c]]);
    assert_eq!(found([Some(0); 4], [false, false, true, false]), [[a, b]]);
    assert_eq!(found([Some(0); 4], [true, false, false, false]), [[b, c, d]]);
}

/// Launches whose work-items wait for each other have work-groups of one size, and others beside them have any.
#[test]
fn work_groups_of_other_sizes_divide() {
    let mut graph = Written::new(1);
    let nodes: Vec<u32> = (0..6).map(|number| graph.launch(0, number, &[])).collect();
    graph.keeps_order = true;
    for (node, group) in nodes.iter().zip([None, Some(8), None, Some(8), Some(4), None]) {
        graph.pieces.get_mut(&NodeId(*node)).unwrap().group = group;
    }
    assert_eq!(graph.launches(1024), [&nodes[..4], &nodes[4..]]);
}
