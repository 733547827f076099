//! Values of fused kernels that are in a table in memory.

use super::fuse::Need;
use super::fuse_tests::Written;
use crate::ir::{KernelDecl, Mode, NodeId, ViewId};

/// Numbers and sizes for which there is no room among the arguments are in a table, behind all others.
#[test]
fn values_beyond_the_arguments_are_in_a_table() {
    let mut graph = Written::new(3);
    for number in 0..100 {
        let node = graph.launch(number % 2, number as u8, &[]);
        if number % 5 == 0 {
            graph.other_kernel(node);
        }
    }
    graph.ir.kernels.push(KernelDecl { name: "g".into(), built: true, checked: true });
    let chain = |most: usize| {
        let mut chains = graph.chains(most).chains;
        assert_eq!(chains.len(), 1);
        let chain = chains.remove(0);
        for (node, places) in chain.launches.iter().zip(&chain.places) {
            let given: Vec<&Need> = places.iter().map(|place| &chain.needs[*place as usize]).collect();
            assert_eq!(given, graph.pieces[node].needs.iter().collect::<Vec<_>>());
        }
        chain
    };
    // Two addresses, 100 numbers and a size.
    assert_eq!(chain(8 + 8 + 400 + 4).tabled, 0);
    let found = chain(8 + 8 + 400 + 4 - 1);
    assert_eq!((found.needs.len(), found.tabled), (2 + 100 + 1, 101));
    assert_eq!(found.needs[..2], [0, 1].map(|at| Need::Memory(ViewId(at))));
    // The numbers of one kernel follow each other, in the order of its launches.
    let numbers = |kernel: bool| -> Vec<u32> {
        let of = found.launches.iter().zip(&found.places).filter(|(node, _)| (node.0 % 5 == 0) == kernel);
        of.map(|(_, places)| places[1]).collect()
    };
    for places in [numbers(false), numbers(true)] {
        assert!(places.windows(2).all(|two| two[1] == two[0] + 1), "{places:?}");
    }
    // What is no value divides.
    assert_eq!(chain(24).tabled, 101);
    assert_eq!(graph.chains(23).chains.len(), 0);
    // A table has a most of bytes.
    let mut graph = Written::new(1);
    for number in 0..10_000_u32 {
        let node = graph.launch(0, 0, &[]);
        graph.pieces.get_mut(&NodeId(node)).unwrap().needs[1] = Need::Value(0, number.to_ne_bytes().to_vec());
    }
    let found = graph.chains(1024).chains;
    assert_eq!(found.iter().map(|chain| chain.launches.len()).collect::<Vec<_>>(), [4_095, 4_095, 1_810]);
    assert_eq!(found[0].tabled, 4_096);
}

/// Work-items that are on their own have no table: compilers know that arguments do not change.
#[test]
fn work_items_on_their_own_have_no_table() {
    let mut graph = Written::new(1);
    for number in 0..20_u8 {
        let node = graph.launch_each(1, &[(0, Mode::ReadWrite, 4)], &[]).unwrap();
        graph.pieces.get_mut(&NodeId(node)).unwrap().needs.push(Need::Value(0, vec![number; 4]));
    }
    let found = graph.chains(8 + 4 * 10).chains;
    assert_eq!(found.iter().map(|chain| (chain.launches.len(), chain.tabled)).collect::<Vec<_>>(), [(10, 0), (10, 0)]);
}
