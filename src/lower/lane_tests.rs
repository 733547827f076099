//! Which launches of a chain may run side by side. No device is needed.

use super::fuse::WhyApart;
use super::fuse_tests::Written;
use crate::ir::NodeId;

/// Launches that no edge orders are in lanes of their own, and nodes that only order connect what is before them to what is after.
#[test]
fn launches_without_an_order_are_in_lanes() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut most = 0;
    for _ in 0..300 {
        let count = rng.u32(2..24);
        let mut graph = Written::new(count);
        // By node: the launches before it, and it, if it is one.
        let mut before: Vec<Vec<u32>> = Vec::new();
        for node in 0..count {
            let chosen = |rng: &mut fastrand::Rng| (rng.u8(..3) == 0).then(|| rng.u32(..node.max(1)));
            let after: Vec<u32> = (0..2).filter_map(|_| chosen(&mut rng)).filter(|pred| *pred < node).collect();
            let is_order = rng.u8(..4) == 0;
            let new = if is_order { graph.empty(&after) } else { graph.launch(node, 1, &after) };
            assert_eq!(new, node);
            let mut all: Vec<u32> = after.iter().flat_map(|pred| before[*pred as usize].clone()).collect();
            all.extend((!is_order).then_some(node));
            before.push(all);
        }
        for chain in graph.chains(1024).chains {
            let ends = chain.lane_ends.iter().copied().chain([chain.launches.len()]);
            let lane_of = |at: usize| chain.lane_ends.iter().filter(|end| **end <= at).count();
            assert!(chain.lane_ends.is_sorted() && ends.clone().all(|end| end > 0));
            assert_eq!(chain.launches.len(), chain.places.len());
            let at = |node: u32| chain.launches.iter().position(|launch| launch.0 == node);
            let mut connects = vec![false; chain.launches.len()];
            for (place, launch) in chain.launches.iter().enumerate() {
                for other in before[launch.index()].iter().filter(|other| **other != launch.0) {
                    let Some(other) = at(*other) else { continue };
                    assert!(other < place && lane_of(other) == lane_of(place), "{chain:?}");
                    (connects[other], connects[place]) = (true, true);
                }
            }
            // What nothing orders is alone.
            for place in (0..connects.len()).filter(|place| !connects[*place]) {
                assert_eq!(
                    (0..connects.len()).filter(|other| lane_of(*other) == lane_of(place)).count(),
                    1,
                    "{chain:?}"
                );
            }
            most = most.max(chain.lane_ends.len() + 1);
        }
    }
    assert!(most > 4, "{most}");
    // There is a most of lanes, which have about as many launches each; the sets in them stay whole.
    let most = super::fuse::MOST_LANES as u32;
    for (pairs, lanes) in [(most - 1, most - 1), (most, most), (most + 1, most), (10 * most, most)] {
        let mut graph = Written::new(1);
        let firsts: Vec<u32> = (0..pairs).map(|_| graph.launch(0, 1, &[])).collect();
        firsts.iter().for_each(|first| _ = graph.launch(0, 1, &[*first]));
        let [chain] = graph.chains(1024).chains.try_into().unwrap();
        let ends: Vec<usize> = [0].into_iter().chain(chain.lane_ends.clone()).chain([2 * pairs as usize]).collect();
        assert!(ends.len() - 1 <= lanes as usize && ends.len() > lanes as usize / 2, "{ends:?}");
        let sizes = ends.windows(2).map(|ends| ends[1] - ends[0]);
        let few = 2 * (pairs / lanes) as usize;
        assert!(sizes.clone().all(|size| size.is_multiple_of(2) && size >= few.min(2) && size <= few + 2), "{ends:?}");
        assert!(chain.launches.chunks(2).all(|two| two[0].0 + pairs == two[1].0));
    }
    // A long row of nodes that only order is no work for each launch before it.
    let mut graph = Written::new(1);
    let before: Vec<u32> = (0..10_000).map(|_| graph.launch(0, 1, &[])).collect();
    let mut last = graph.empty(&before);
    (0..10_000).for_each(|_| last = graph.empty(&[last]));
    assert_eq!(graph.chains(1024).chains[0].lane_ends.len() as u32 + 1, most);
    graph.launch(0, 1, &[last]);
    assert!(graph.chains(1024).chains[0].lane_ends.is_empty());
    // Where nodes without an edge keep their order, they are in one lane.
    let mut graph = Written::new(2);
    (0..2).for_each(|memory| _ = graph.launch(memory, 1, &[]));
    assert_eq!(graph.chains(1024).chains[0].lane_ends, [1]);
    graph.keeps_order = true;
    assert!(graph.chains(1024).chains[0].lane_ends.is_empty());
}

/// A chain that is too long for one kernel is several.
#[test]
fn a_launch_that_begins_a_kernel_divides() {
    let mut graph = Written::new(2);
    let mut nodes = [graph.launch(0, 1, &[]), graph.launch(1, 1, &[])];
    let mut all = nodes.to_vec();
    for number in 2..6 {
        nodes = [graph.launch(0, number, &nodes[..1]), graph.launch(1, number, &nodes[1..])];
        all.extend(nodes);
    }
    // Two lanes, which have the launches of the graph by turns.
    let chains = graph.chains(1024);
    let [chain] = &chains.chains[..] else { panic!("{chains:?}") };
    assert_eq!(chain.lane_ends, [5]);
    let in_order: Vec<u32> = chains.in_order(chain).iter().map(|node| node.0).collect();
    assert_eq!(in_order, all);
    for begin in [4, 8] {
        graph.pieces.get_mut(&NodeId(all[begin])).unwrap().begins = true;
    }
    let lanes = |of: &[u32]| -> Vec<u32> { (0..2).flat_map(|lane| of.iter().skip(lane).step_by(2).copied()).collect() };
    assert_eq!(graph.launches(1024), [lanes(&all[..4]), lanes(&all[4..8]), lanes(&all[8..])]);
    assert_eq!(graph.cuts(1024), [4, 8].map(|at| (all[at - 1], all[at], WhyApart::Calls)));
}
