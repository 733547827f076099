//! How much memory graphs need, without the driver's: in this process only clgraph uses Rust's allocator.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use clgraph::{Finalize, Path};
use common::Bench;

/// The system allocator, which counts the bytes in use.
struct Counting;

static IN_USE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// One test, so that nothing else allocates.
#[test]
fn a_node_takes_400_bytes_at_most_and_a_dropped_graph_none() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[1; 64]), bench.buffer(&[2; 64]));
    let scale = bench.kernel("scale");
    let of = |len: usize, path: Path| {
        let before = IN_USE.load(Ordering::Relaxed);
        let graph = bench.graph();
        for number in 0..len {
            let (from, into) = if number % 2 == 0 { (&a, &b) } else { (&b, &a) };
            // SAFETY: its one work-item touches the first elements.
            unsafe { graph.kernel(&scale).read(from).write(into).arg(number as u32).range(1).add() }.unwrap();
        }
        let built = IN_USE.load(Ordering::Relaxed) - before;
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        let all = IN_USE.load(Ordering::Relaxed) - before;
        drop((graph, executable));
        bench.queue.finish().unwrap();
        (built, all, IN_USE.load(Ordering::Relaxed) - before)
    };
    for path in [Path::Replay, Path::Native, Path::Auto] {
        // Memory that is allocated only once.
        of(10, path);
        for len in [1_000, 10_000, 100_000] {
            let (built, all, left) = of(len, path);
            let a_node = |bytes: isize| bytes as f64 / len as f64;
            println!(
                "{path}, {len} nodes: {:.0} bytes a node as a graph, {:.0} with its executable",
                a_node(built),
                a_node(all)
            );
            assert!(a_node(all) <= 400.0, "{path}, {len} nodes: {:.0} bytes a node", a_node(all));
            assert!(left < 4096, "{path}, {len} nodes: {left} bytes are left");
        }
    }
}
