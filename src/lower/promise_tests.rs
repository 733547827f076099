//! Launches that work-items or work-groups do on their own, by their promises: which are chains. No device is needed.

use expect_test::expect;

use super::fuse::{Need, Order, WhyApart};
use super::fuse_tests::Written;
use crate::ir::{ArenaId, Mode, NodeId, RootId, View, ViewId, ViewKind};

/// Rule Z4: in all launches of a chain, work-items have the same bytes of all memory that one of them writes. What is only read is free.
#[test]
fn work_items_on_their_own_share_no_bytes() {
    const A: Mode = Mode::Read;
    const W: Mode = Mode::Write;
    let mut graph = Written::new(4);
    let a = graph.launch_each(1, &[(0, A, 0), (1, W, 4)], &[]).unwrap();
    let b = graph.launch_each(1, &[(1, A, 4), (0, A, 0), (2, Mode::ReadWrite, 8)], &[a]).unwrap();
    let c = graph.launch_each(1, &[(2, A, 8), (1, W, 4)], &[b]).unwrap();
    graph.read(1, &[c]);
    assert_eq!(graph.launches(1024), [[a, b, c]]);
    let chain = &graph.chains(1024).chains[0];
    assert_eq!(chain.order, Order::EachItem);
    // The sizes are those of the range.
    assert_eq!(chain.needs, [0, 1, 2].map(|view| Need::Memory(ViewId(view))));
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        m1: buffer, bytes 0..64 of root 1 (64)
        m2: buffer, bytes 0..64 of root 2 (64)
        n0: kernel fused(m0, m1, m2) over [1], reads m0[0..64], writes m1[0..64], reads m1[0..64], updates m2[0..64], reads m2[0..64]
        n1: read 64 bytes at m1+0 as result 0, reads m1[0..64], after n0
    "#]]
    .assert_eq(&graph.fused().ir.to_string());
    // Launches that the next one does not fit: other bytes, no promise, another range, and memory that was only read so far.
    for (range, uses) in [
        (1, &[(2, A, 4), (1, W, 4)][..]),
        (1, &[(2, A, 0), (1, W, 4)]),
        (2, &[(2, A, 8), (1, W, 4)]),
        (1, &[(0, W, 4)]),
        (1, &[(0, Mode::ReadWrite, 4), (1, A, 4)]),
    ] {
        let mut other = Written { ir: graph.ir.clone(), keeps_order: false, pieces: graph.pieces.clone() };
        let d = other.launch_each(range, uses, &[c]).unwrap();
        let e = other.launch_each(range, uses, &[d]).unwrap();
        assert_eq!(other.launches(1024), [vec![a, b, c], vec![d, e]], "{uses:?}");
        let why = if range == 2 { WhyApart::Ranges } else { WhyApart::Elements };
        assert_eq!(other.cuts(1024), [(c, d, why)], "{uses:?}");
    }
    // Launches that fit on no account: memory that is written without a promise, or by two arguments of which one has none.
    for uses in [&[(0, W, 0)][..], &[(0, W, 4), (0, A, 0)], &[(0, W, 4), (0, A, 8)], &[(0, W, 4), (1, W, 0)]] {
        assert_eq!(graph.launch_each(1, uses, &[]), None, "{uses:?}");
    }
}

/// Rule Z4: a kernel whose work-groups are on their own is given sizes, may have any number of launches, and is cut where it would be long.
#[test]
fn work_groups_on_their_own_take_sizes_and_many_launches() {
    let mut graph = Written::new(2);
    let mut last = graph.launch_each(1, &[(0, Mode::ReadWrite, 4)], &[]).unwrap();
    for _ in 0..399 {
        last = graph.launch_each(1, &[(0, Mode::ReadWrite, 4)], &[last]).unwrap();
    }
    for piece in graph.pieces.values_mut() {
        piece.each_item.as_mut().unwrap().in_groups = true;
    }
    let chains = graph.chains(1024).chains;
    assert_eq!((chains.len(), chains[0].launches.len(), chains[0].order), (1, 400, Order::EachGroup));
    assert_eq!(chains[0].needs, [Need::Memory(ViewId(0)), Need::Size(9)]);
    assert!(chains[0].lane_ends.is_empty());
    graph.pieces.get_mut(&NodeId(150)).unwrap().begins = true;
    assert_eq!(graph.chains(1024).chains.iter().map(|chain| chain.launches.len()).collect::<Vec<_>>(), [150, 250]);
    assert_eq!(graph.cuts(1024), [(149, 150, WhyApart::Calls)]);
    // The promises hold for them too.
    let other = graph.launch_each(1, &[(0, Mode::ReadWrite, 8)], &[last]).unwrap();
    assert_eq!(graph.cuts(1024)[1..], [(399, 400, WhyApart::Ranges)], "a work-item does it on its own");
    graph.pieces.get_mut(&NodeId(other)).unwrap().each_item.as_mut().unwrap().in_groups = true;
    assert_eq!(graph.cuts(1024), [(149, 150, WhyApart::Calls), (399, 400, WhyApart::Elements)]);
}

/// Rule Z4: parts of one buffer are the same memory if they start at the same byte.
#[test]
fn work_items_on_their_own_need_the_same_start() {
    let launches = |views: [(RootId, usize, usize, ViewKind); 2]| {
        let mut graph = Written::new(2);
        for (view, (root, offset, size, kind)) in graph.ir.views.iter_mut().zip(views) {
            *view = View { root, root_size: 64, offset, size, kind };
        }
        let a = graph.launch_each(1, &[(0, Mode::ReadWrite, 4)], &[]).unwrap();
        graph.launch_each(1, &[(1, Mode::Read, 4)], &[a]).unwrap();
        graph.launches(1024).len()
    };
    let root = RootId(0);
    let (all, part) = (ViewKind::Buffer, ViewKind::SubBuffer);
    assert_eq!(launches([(root, 0, 64, all), (root, 0, 32, part)]), 1);
    assert_eq!(launches([(root, 0, 64, all), (root, 16, 32, part)]), 0);
    assert_eq!(launches([(root, 0, 32, part), (root, 16, 32, part)]), 0);
    assert_eq!(launches([(root, 0, 32, part), (root, 32, 32, part)]), 1, "no byte is in both");
    // Memory that an executable has placed may share bytes.
    let placed = |start| ViewKind::Placed { arena: ArenaId(0), start };
    assert_eq!(launches([(root, 0, 64, placed(0)), (RootId(1), 0, 64, placed(64))]), 1);
    assert_eq!(launches([(root, 0, 64, placed(0)), (RootId(1), 0, 64, placed(32))]), 0);
    assert_eq!(launches([(root, 0, 64, placed(0)), (RootId(1), 0, 64, placed(0))]), 1);
}

/// Work-items are on their own where that is better. Where launches fit in turn too, four are needed.
#[test]
fn launches_fit_in_turn_or_on_their_own() {
    let mut graph = Written::new(2);
    let uses = |memory| [(memory, Mode::ReadWrite, 4)];
    let mut last = graph.launch_each(0, &uses(0), &[]).unwrap();
    let mut next = |graph: &mut Written, memory: u32, plain: bool| {
        last = match plain {
            true => graph.launch(memory, 1, &[last]),
            false => graph.launch_each(0, &uses(memory), &[last]).unwrap(),
        };
        last
    };
    // Three on their own, and one that fits in turn only: all in turn.
    for _ in 0..2 {
        next(&mut graph, 0, false);
    }
    next(&mut graph, 1, true);
    let forms = |graph: &Written| -> Vec<(usize, Order)> {
        graph.chains(1024).chains.iter().map(|chain| (chain.launches.len(), chain.order)).collect()
    };
    assert_eq!(forms(&graph), [(4, Order::InTurn)]);
    // Four more on their own.
    for _ in 0..4 {
        next(&mut graph, 1, false);
    }
    assert_eq!(forms(&graph), [(4, Order::InTurn), (4, Order::EachItem)]);
    next(&mut graph, 1, true);
    next(&mut graph, 1, true);
    assert_eq!(forms(&graph), [(4, Order::InTurn), (4, Order::EachItem), (2, Order::InTurn)]);
    // As many as compilers do in good time.
    let mut graph = Written::new(1);
    for _ in 0..600 {
        graph.launch_each(1, &uses(0), &[]).unwrap();
    }
    assert_eq!(forms(&graph), [(256, Order::EachItem), (256, Order::EachItem), (88, Order::EachItem)]);
    assert_eq!(graph.cuts(1024), [(255, 256, WhyApart::Many), (511, 512, WhyApart::Many)]);
}
