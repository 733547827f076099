//! The program of `examples/02_record_existing`, before and after it moved to clgraph: executed, and recorded by each
//! path.

#[path = "../examples/02_record_existing/after.rs"]
mod after;
#[path = "../examples/02_record_existing/before.rs"]
mod before;

use clgraph::{CommandKind, Finalize, Graph, Path, Queue, QueueProperties};

const SOURCE: &str = include_str!("../kernels-cl/heat.cl");
const STEPS: usize = 40;
const EVERY: usize = 5;
const RATE: f32 = 0.24;

const WIDTH: usize = 61;
const HEIGHT: usize = 37;

/// Rules D1, F4, R3, R8, R18: a program that was ported by changing types gives the same bytes in every form.
#[test]
fn a_ported_program_gives_the_same_bytes_executed_and_recorded() {
    let cells = WIDTH * HEIGHT;
    let hot: Vec<f32> = (0..cells).map(|at| (at * 7919 % 1000) as f32 / 1000.0).collect();
    let conducts: Vec<f32> = (0..cells).map(|at| (at * 31 % 97) as f32 / 97.0).collect();
    let device = clgraph::best_device().unwrap();
    let mut plain = before::Plate::new(&device.to_opencl3(), WIDTH, HEIGHT).unwrap();
    let expected = plain.simulate(&hot, &conducts).unwrap();
    assert_ne!(expected.0, hot);

    let first = Queue::new(&device).unwrap();
    let unordered = QueueProperties::new().out_of_order(true);
    // Recording is the same whether or not the queue profiles.
    let profiling = QueueProperties::new().profiling(true);
    let other = |properties| Queue::with_properties(&first, &device, properties).unwrap();
    let queues = [first.clone(), other(unordered), other(profiling)];
    let records = device.caps().can_record(CommandKind::Kernel).is_ok();
    let plate = after::Plate::new(&first, WIDTH, HEIGHT).unwrap();
    let executed = plate.simulate(&hot, &conducts).unwrap();
    assert_eq!((executed.0.wait().unwrap(), executed.1.wait().unwrap()), expected);
    for queue in &queues {
        let plate = after::Plate::new(queue, WIDTH, HEIGHT).unwrap();
        let graph = Graph::new(queue).unwrap();
        let (field, history) = graph.record(queue, || plate.simulate(&hot, &conducts)).unwrap();
        let (field, history) = (field.host_read().unwrap(), history.host_read().unwrap());
        for path in [Path::Native, Path::Replay, Path::Auto] {
            let executable = graph.finalize(Finalize::new().path(path)).unwrap();
            let native = executable.report().segments.iter().any(|segment| segment.path == Path::Native);
            assert!(path != Path::Native || native == records, "{}", executable.report());
            for _ in 0..2 {
                let run = executable.submit(queue).unwrap();
                run.wait().unwrap();
                assert_eq!(*run.get(&field).unwrap(), expected.0, "{path:?}");
                assert_eq!(*run.get(&history).unwrap(), expected.1, "{path:?}");
            }
        }
    }
}
