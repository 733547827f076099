//! Large graphs: nothing is quadratic, and nothing recurses over depth.

mod common;

use std::time::Duration;

use clgraph::{Executable, Finalize, Graph, Kernel, Path, UserEvent};
use common::Bench;
use cpu_time::ThreadTime;

const NODES: usize = 100_000;

/// A chain by data: every node waits for the one before, and no two nodes have the same arguments.
fn chain(bench: &Bench, stir: &Kernel, nodes: usize) -> Graph {
    let buffers = [bench.buffer(&[0; 64]), bench.buffer(&[0; 64])];
    let graph = bench.graph();
    for at in 0..nodes {
        let (from, into) = (&buffers[at % 2], &buffers[(at + 1) % 2]);
        // SAFETY: the one work-item touches the first element of each.
        unsafe { graph.kernel(stir).read(from).write(into).arg(at as u32).range(1).add() }.unwrap();
    }
    graph
}

/// Rules D5, E3: on a thread with a stack of 256 KiB, so that recursion over depth would overflow it.
#[test]
fn a_chain_of_100_000_nodes_is_built_finalized_submitted_and_dropped_on_a_small_stack() {
    for path in [Path::Replay, Path::Native, Path::Auto] {
        let bench = Bench::new();
        let scale = bench.kernel("scale");
        let work = move || {
            let graph = chain(&bench, &scale, NODES);
            assert_eq!(graph.predecessors(graph.nodes()[NODES - 1]).unwrap(), [graph.nodes()[NODES - 2]]);
            assert_eq!(graph.to_dot(clgraph::DrawingDetail::Brief).lines().count(), 2 * NODES + 1);
            let executable = graph.finalize(Finalize::new().path(path)).unwrap();
            assert_eq!(executable.report().kernel_objects, NODES);
            let run = executable.submit(&bench.queue).unwrap();
            drop(graph);
            run.wait().unwrap();
            drop((run, executable));
        };
        std::thread::Builder::new().stack_size(256 * 1024).spawn(work).unwrap().join().unwrap();
    }
}

/// Rule D5: four times the nodes take about four times as long; a scan of all nodes for each node would take sixteen
/// times. The shortest of several attempts counts on each side, because the machine does other things too.
#[test]
fn building_and_finalizing_are_linear_in_the_number_of_nodes() {
    let bench = Bench::new();
    let scale = bench.kernel("scale");
    let time = |nodes| {
        let tries = (0..3).map(|_| {
            let begin = ThreadTime::now();
            chain(&bench, &scale, nodes).finalize(Finalize::new()).unwrap();
            begin.elapsed()
        });
        tries.min().unwrap_or(Duration::MAX)
    };
    let (small, large) = (time(10_000), time(40_000));
    assert!(large < small * 10, "10 000 nodes took {small:?}, 40 000 took {large:?}");
}

/// Each edge that leads backwards needs a search. The search looks only at nodes that it reaches.
#[test]
fn edges_that_lead_backwards_cost_what_they_reach() {
    let bench = Bench::new();
    let graph = bench.graph();
    let nodes: Vec<_> = (0..NODES).map(|_| graph.empty().add().unwrap()).collect();
    for pair in nodes.chunks(2) {
        graph.add_edge(pair[1], pair[0]).unwrap();
    }
    bench.run(&graph);
}

/// A node that joins very many nodes, with very many nodes after it: linear as well.
#[test]
fn wide_joins_and_forks_are_linear() {
    let bench = Bench::new();
    let graph = bench.graph();
    for _ in 0..3 {
        let join = graph.empty().after_all_leaves().add().unwrap();
        for _ in 0..NODES / 4 {
            graph.empty().after(join).add().unwrap();
        }
    }
    let last = graph.empty().after_all_leaves().add().unwrap();
    assert_eq!(graph.predecessors(last).unwrap().len(), NODES / 4);
    // An edge that exists already, between two nodes of which one has very many others.
    let join = graph.nodes()[0];
    let leaf = graph.successors(join).unwrap()[NODES / 8];
    for _ in 0..1000 {
        graph.add_edge(join, leaf).unwrap();
    }
    bench.run(&graph);
}

/// Rule S5: what waits behind an event costs the same for each, however many wait: six times as many take about six times as
/// long. A look at all that waits, for each of them, would take thirty-six times.
#[test]
fn what_waits_on_an_out_of_order_queue_is_enqueued_in_linear_time() {
    let bench = Bench::new();
    let all: Vec<Executable> =
        (0..50).map(|_| Graph::new(&bench.queue).unwrap().finalize(Finalize::new()).unwrap()).collect();
    let time = |count: usize| {
        let tries = (0..3).map(|_| {
            let queue = bench.another_queue(true);
            let go = UserEvent::new(&queue).unwrap();
            let begin = ThreadTime::now();
            for at in 0..count {
                let run = all[at % all.len()].submit_to(&queue).after(&go).submit().unwrap();
                // A barrier or marker without a list waits for all before it, which takes PoCL's time.
                if at % 10 == 0 {
                    queue.enqueue_barrier_with_wait_list(&[&run.event().unwrap()]).unwrap();
                }
            }
            let took = begin.elapsed();
            go.complete().unwrap();
            queue.finish().unwrap();
            took
        });
        tries.min().unwrap_or(Duration::MAX)
    };
    // Few enough for drivers that need quadratic time themselves.
    let (small, large) = (time(300), time(1800));
    assert!(large < small * 15, "300 submissions took {small:?}, 1800 took {large:?}");
}
