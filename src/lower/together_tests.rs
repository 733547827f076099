//! Which launches may be in one chain, by their memory and work-groups. No device is needed.

use super::fuse::{BYTES, MOST_ROUNDS, Need, Pointer, Waiting, WhyApart};
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
    let set = |graph: &mut Written, node: u32, group: Option<usize>, items: u64| {
        let piece = graph.pieces.get_mut(&NodeId(node)).unwrap();
        piece.waiting = group.map(|group| Waiting { group, own_local: 64, most_local: 100, is_apart: false });
        piece.items = items;
    };
    for (node, group) in nodes.iter().zip([None, Some(8), None, Some(8), Some(4), None]) {
        set(&mut graph, *node, group, 8);
    }
    assert_eq!(graph.launches(1024), [&nodes[..4], &nodes[4..]]);
    assert_eq!(graph.cuts(1024), [(nodes[3], nodes[4], WhyApart::WorkGroups)]);
    // A work-group does only so many work-items of others.
    set(&mut graph, nodes[2], None, 8 * MOST_ROUNDS);
    assert_eq!(graph.launches(1024), [&nodes[..4], &nodes[4..]]);
    set(&mut graph, nodes[2], None, 8 * MOST_ROUNDS + 1);
    assert_eq!(graph.launches(1024), [&nodes[..2], &nodes[4..]]);
    assert_eq!(graph.cuts(1024)[0], (nodes[1], nodes[2], WhyApart::Rounds));
    // Local memory of kernels is added up, once for each, and so is what launches are given, once for each place and size.
    let mut graph = Written::new(1);
    let nodes: Vec<u32> = (0..6).map(|number| graph.launch(0, number, &[])).collect();
    graph.keeps_order = true;
    for (at, node) in nodes.iter().enumerate() {
        set(&mut graph, *node, Some(8), 8);
        let local = [8, 8, 28, 8, 1, 8][at];
        graph.pieces.get_mut(&NodeId(*node)).unwrap().needs.push(Need::Local(0, local));
    }
    assert_eq!(graph.launches(1024), [&nodes[..4], &nodes[4..]]);
    assert_eq!(graph.cuts(1024), [(nodes[3], nodes[4], WhyApart::Local)]);
    graph.other_kernel(nodes[1]);
    assert_eq!(graph.launches(1024), [&nodes[2..4], &nodes[4..]]);
    // One that has no room even alone stays where it is.
    set(&mut graph, nodes[3], Some(8), 8);
    graph.pieces.get_mut(&NodeId(nodes[3])).unwrap().needs.push(Need::Local(1, 90));
    assert_eq!(graph.launches(1024), [&nodes[4..]]);
    graph.pieces.get_mut(&NodeId(nodes[1])).unwrap().needs.push(Need::Local(1, 90));
    graph.pieces.get_mut(&NodeId(nodes[3])).unwrap().needs.pop();
    assert_eq!(graph.launches(1024), [&nodes[2..4], &nodes[4..]]);
}
