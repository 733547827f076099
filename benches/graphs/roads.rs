//! The loops of `examples/09_road_network`: a breadth-first search by levels, and page rank until it is at rest, compared with the
//! same by hand, where the host reads a number after each turn and decides.

#[path = "../../examples/09_road_network/by_hand.rs"]
mod by_hand;
#[path = "../../examples/09_road_network/graph.rs"]
mod graph;
#[path = "../../examples/09_road_network/network.rs"]
mod network;

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use by_hand::ByHand;
use clgraph::{Element, Finalize, Fuse, Loops, Queue};
use graph::Looped;
use network::{MINNEAPOLIS, Network};

use crate::Failure;
use crate::control::whole;
use crate::rounds::Variant;
use crate::submissions::settle_fused;

/// The roads, and the loops by hand over them.
pub struct Roads {
    network: Network,
    from: usize,
    by_hand: RefCell<ByHand>,
}

impl Roads {
    pub fn new(queue: &Queue) -> Result<Self, Failure> {
        let network =
            Network::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/minnesota_roads.csv.gz"))?;
        let (from, by_hand) = (network.nearest(MINNEAPOLIS), ByHand::new(&queue.context().to_opencl3()?, &network)?);
        Ok(Self { network, from, by_hand: RefCell::new(by_hand) })
    }

    /// The crossings: a launch has a work-item for each.
    pub fn crossings(&self) -> usize {
        self.network.places.len()
    }

    pub fn search<'a>(&'a self, queue: &'a Queue) -> Result<Vec<Variant<'a>>, Failure> {
        let by_hand = |known| {
            let mut by_hand = self.by_hand.borrow_mut();
            by_hand.known = known;
            by_hand.search(self.from)
        };
        let graph = |options| Ok(graph::search(queue, &self.network, self.from, options)?);
        variants(queue, by_hand, graph)
    }

    pub fn rank<'a>(&'a self, queue: &'a Queue) -> Result<Vec<Variant<'a>>, Failure> {
        let by_hand = |known| {
            let mut by_hand = self.by_hand.borrow_mut();
            by_hand.known = known;
            by_hand.rank()
        };
        variants(queue, by_hand, |options| Ok(graph::rank(queue, &self.network, options)?))
    }
}

/// All variants, which must go round equally often and find the same.
fn variants<'a, T: Element + PartialEq>(
    queue: &'a Queue,
    by_hand: impl Fn(Option<u64>) -> Result<(Vec<T>, u64), Failure> + Copy + 'a,
    graph: impl Fn(Finalize) -> Result<Looped<T>, Failure>,
) -> Result<Vec<Variant<'a>>, Failure> {
    let found = by_hand(None)?;
    let turns = found.1;
    let (looped, unseen) = (move || by_hand(None).map(drop), move || by_hand(Some(turns)).map(drop));
    let mut variants = vec![whole("loop", looped), whole("loop_again", looped), whole("unseen", unseen)];
    let ways = [
        ("host_decided", Some(Loops::HostDecided), Fuse::Off),
        ("ahead", Some(Loops::Ahead), Fuse::Off),
        ("unfused", None, Fuse::Off),
        ("fused", None, Fuse::Now),
        ("auto", None, Fuse::Auto),
    ];
    for (variant, loops, fuse) in ways {
        // Without an option CLGRAPH_LOOPS counts.
        let options = Finalize::new().fuse(fuse).fuse_after(Duration::ZERO);
        let looped = graph(loops.map_or(options.clone(), |loops| options.loops(loops)))?;
        settle_fused(&looped.executable, queue)?;
        if looped.run(queue)? != found {
            return Err(format!("{variant} and the loop by hand find different values").into());
        }
        variants.push(whole(variant, move || Ok(looped.run(queue).map(drop)?)));
    }
    Ok(variants)
}
