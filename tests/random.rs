//! Random graphs, compared with an eager run: valid graphs give the same bytes, invalid ones an error, and none panics.

mod common;

use clgraph::{Buffer, Event, ExecuteKernel, Finalize, Fuse, HostRead, Kernel, Path, PendingRead, Queue};
use common::Bench;
use opencl3::memory::ClMem;
use quickcheck::{Arbitrary, Gen, QuickCheck};

const BUFFERS: usize = 4;
/// Elements of a buffer: two halves of 512 bytes, which can be sub-buffers on every device that was tried.
const LEN: usize = 256;

/// A command as plain data. Its numbers are arbitrary: some uses bring them into range, others do not.
#[derive(Clone, Debug)]
struct Command {
    kind: u8,
    a: u8,
    b: u8,
    start: u16,
    other: u16,
    len: u16,
    value: u32,
    /// An earlier node that it names as a further dependency, if any.
    after: Option<u8>,
}

impl Arbitrary for Command {
    fn arbitrary(g: &mut Gen) -> Self {
        Self {
            kind: u8::arbitrary(g),
            a: u8::arbitrary(g),
            b: u8::arbitrary(g),
            start: u16::arbitrary(g),
            other: u16::arbitrary(g),
            len: u16::arbitrary(g),
            value: u32::arbitrary(g),
            after: Option::arbitrary(g),
        }
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let this = self.clone();
        Box::new((self.len > 0).then_some(Self { len: this.len / 2, ..this }).into_iter())
    }
}

/// The memory: whole buffers, and for each its two halves as sub-buffers.
struct Memory {
    views: Vec<[Buffer<u32>; 3]>,
}

impl Memory {
    fn new(bench: &Bench) -> Self {
        let views = (0..BUFFERS).map(|at| {
            let whole = bench.buffer(&(0..LEN as u32).map(|i| i * 7 + at as u32).collect::<Vec<_>>());
            let (low, high) = (whole.sub_buffer(..LEN / 2).unwrap(), whole.sub_buffer(LEN / 2..).unwrap());
            [whole, low, high]
        });
        Self { views: views.collect() }
    }

    /// A buffer or one of its halves, with its first element in the whole buffer.
    fn view(&self, number: u8) -> (&Buffer<u32>, usize) {
        let number = usize::from(number);
        let part = (number / BUFFERS) % 3;
        (&self.views[number % BUFFERS][part], if part == 2 { LEN / 2 } else { 0 })
    }

    fn content(&self, queue: &Queue) -> Vec<Vec<u32>> {
        self.views.iter().map(|[whole, ..]| common::content(queue, whole)).collect()
    }
}

/// Returns a range inside a view.
fn range(start: u16, len: u16, of: usize) -> (usize, usize) {
    let start = usize::from(start) % of;
    (start, usize::from(len) % (of - start) + 1)
}

/// Does what every command does, on the CPU, one after another: the expected result.
struct Eager {
    content: Vec<Vec<u32>>,
    reads: Vec<Vec<u32>>,
}

/// The kernels that the commands use.
struct Kernels {
    stir: Kernel,
    scale: Kernel,
    add: Kernel,
}

/// What all cases of a property share.
struct Shared {
    bench: Bench,
    out_of_order: Queue,
    kernels: Kernels,
}

thread_local!(static SHARED: Shared = {
    let bench = Bench::new();
    let kernels = Kernels { stir: bench.kernel("stir"), scale: bench.kernel("scale"), add: bench.kernel("add") };
    Shared { out_of_order: bench.another_queue(true), bench, kernels }
});

/// Adds the command to the graph, and does it eagerly. An invalid command does neither.
fn apply(
    command: &Command,
    graph: &clgraph::Graph,
    memory: &Memory,
    kernels: &Kernels,
    eager: &mut Eager,
    reads: &mut Vec<HostRead<u32>>,
) -> clgraph::Result<()> {
    let nodes = graph.nodes();
    let after: Vec<_> = command
        .after
        .filter(|_| !nodes.is_empty())
        .map(|at| nodes[usize::from(at) % nodes.len()])
        .into_iter()
        .collect();
    let ((a, a_base), (b, b_base)) = (memory.view(command.a), memory.view(command.b));
    let (a_index, b_index) = (usize::from(command.a) % BUFFERS, usize::from(command.b) % BUFFERS);
    let (start, len) = range(command.start, command.len, a.len());
    let slice = a.slice(start..start + len)?;
    let at = a_base + start;
    match command.kind % 7 {
        0 => {
            graph.fill(&slice, command.value).after(&after).add()?;
            eager.content[a_index][at..at + len].fill(command.value);
        }
        1 => {
            let data: Vec<u32> = (0..len as u32).map(|i| i ^ command.value).collect();
            graph.write(&slice, &data).after(&after).add()?;
            eager.content[a_index][at..at + len].copy_from_slice(&data);
        }
        2 => {
            reads.push(graph.read(&slice).after(&after).add()?);
            eager.reads.push(eager.content[a_index][at..at + len].to_vec());
        }
        3 => {
            // Arbitrary: it may be out of bounds or overlap, and is then refused.
            let other = usize::from(command.other) % LEN;
            graph.copy(&slice, &b.slice(other..other + len)?).after(&after).add()?;
            let bytes = eager.content[a_index][at..at + len].to_vec();
            eager.content[b_index][b_base + other..b_base + other + len].copy_from_slice(&bytes);
        }
        4 => {
            // Arbitrary too: rows of a rectangle of 16 columns.
            let (width, rows) = (len % 8 + 1, usize::from(command.other) % 5);
            let (from, into) = (usize::from(command.start) % 16, usize::from(command.len) % 16);
            let rect = graph.copy_rect(a, b).region([width, rows, 1]).src_pitch(16, 0).dst_pitch(16, 0);
            rect.src_origin([from, 0, 0]).dst_origin([into, 1, 0]).after(&after).add()?;
            let source = eager.content[a_index].clone();
            for row in 0..rows {
                let (from, into) = (a_base + from + 16 * row, b_base + into + 16 * (row + 1));
                eager.content[b_index][into..into + width].copy_from_slice(&source[from..from + width]);
            }
        }
        5 => {
            let n = a.len();
            // SAFETY: each work-item touches its own element.
            unsafe { graph.kernel(&kernels.stir).read_write(a).range(n).after(&after).add() }?;
            let part = &mut eager.content[a_index][a_base..a_base + n];
            part.iter_mut().zip(0..).for_each(|(x, i)| *x = x.wrapping_mul(5).wrapping_add(i));
        }
        _ => {
            let n = a.len().min(b.len());
            if a_index == b_index {
                return Ok(()); // The kernels must not get the same memory twice.
            }
            let source = eager.content[a_index][a_base..a_base + n].to_vec();
            let target = &mut eager.content[b_index][b_base..b_base + n];
            let (into, from) = (b.slice(..n)?, a.slice(..n)?);
            // SAFETY: each work-item touches its own element, and there are as many as the shorter one has.
            unsafe {
                if command.value.is_multiple_of(2) {
                    graph.kernel(&kernels.add).read_write(&into).read(&from).range(n).after(&after).add()?;
                    target.iter_mut().zip(source).for_each(|(x, y)| *x = x.wrapping_add(y));
                } else {
                    let scale = graph.kernel(&kernels.scale).read(&from).write(&into).arg(command.value);
                    scale.range(n).work_group(if n.is_multiple_of(32) { 32 } else { 1 }).after(&after).add()?;
                    let by = |y: u32| y.wrapping_mul(3).wrapping_add(command.value);
                    target.iter_mut().zip(source).for_each(|(x, y)| *x = by(y));
                }
            }
        }
    }
    Ok(())
}

const PATHS: [Path; 5] = [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues];

/// Fuses the launches of one graph of eight, because compilers take their time. `CLGRAPH_FUSE=now` fuses those of all.
fn some_fused(number: u8) -> Finalize {
    let options = Finalize::new();
    if (usize::from(number) / PATHS.len()).is_multiple_of(8) { options.fuse(Fuse::Now) } else { options }
}

/// Rule F4: valid commands give the bytes of an eager run, whatever invalid commands were refused in between, on every
/// queue and by every path.
#[test]
fn random_graphs_give_the_bytes_of_an_eager_run() {
    fn property(commands: Vec<Command>, on_out_of_order: bool, number: u8) -> bool {
        SHARED.with(|Shared { bench, out_of_order, kernels }| {
            let queue = if on_out_of_order { out_of_order } else { &bench.queue };
            let memory = Memory::new(bench);
            let graph = bench.graph();
            let mut eager = Eager { content: memory.content(&bench.queue), reads: Vec::new() };
            let mut reads = Vec::new();
            for command in &commands {
                let before = graph.to_dot(clgraph::DrawingDetail::Verbose);
                if let Err(error) = apply(command, &graph, &memory, kernels, &mut eager, &mut reads) {
                    assert_eq!(
                        graph.to_dot(clgraph::DrawingDetail::Verbose),
                        before,
                        "a refused node changes nothing: {error}"
                    );
                    assert_eq!(error.kind(), clgraph::ErrorKind::Invalid, "{error}");
                }
            }
            let path = PATHS[usize::from(number) % PATHS.len()];
            let executable = graph.finalize(some_fused(number).path(path).commands_per_buffer(3)).unwrap();
            let run = executable.submit(queue).unwrap();
            run.wait().unwrap();
            let results: Vec<Vec<u32>> = reads.iter().map(|read| run.get(read).unwrap().to_vec()).collect();
            results == eager.reads && memory.content(&bench.queue) == eager.content
        })
    }
    QuickCheck::new().tests(150).quickcheck(property as fn(Vec<Command>, bool, u8) -> bool);
}

/// Enqueues the command on a queue, after an earlier command if it names one, and does it eagerly. An invalid command
/// does neither.
fn enqueue(
    command: &Command,
    queue: &Queue,
    memory: &Memory,
    kernels: &Kernels,
    eager: &mut Eager,
    (events, reads): (&mut Vec<Event>, &mut Vec<PendingRead<u32>>),
) -> clgraph::Result<()> {
    let waits: Vec<&Event> = command.after.and_then(|at| events.get(usize::from(at) % 8)).into_iter().collect();
    let ((a, a_base), (b, b_base)) = (memory.view(command.a), memory.view(command.b));
    let (a_index, b_index) = (usize::from(command.a) % BUFFERS, usize::from(command.b) % BUFFERS);
    let (start, len) = range(command.start, command.len, a.len());
    let (at, offset, size) = (a_base + start, start * 4, len * 4);
    let event = match command.kind % 7 {
        0 => {
            let event = queue.enqueue_fill_buffer(a, &[command.value], offset, size, &waits)?;
            eager.content[a_index][at..at + len].fill(command.value);
            event
        }
        1 => {
            let data: Vec<u32> = (0..len as u32).map(|i| i ^ command.value).collect();
            let event = if command.value.is_multiple_of(2) {
                queue.enqueue_write_buffer(a, offset, &data, &waits)?
            } else {
                queue.enqueue_write_buffer_owned(a, offset, data.clone(), &waits)?
            };
            eager.content[a_index][at..at + len].copy_from_slice(&data);
            event
        }
        2 => {
            let read = queue.enqueue_read_buffer_owned(a, offset, len, &waits)?;
            eager.reads.push(eager.content[a_index][at..at + len].to_vec());
            let event = read.event().clone();
            reads.push(read);
            event
        }
        3 => {
            let other = usize::from(command.other) % LEN;
            let event = queue.enqueue_copy_buffer(a, b, offset, other * 4, size, &waits)?;
            let bytes = eager.content[a_index][at..at + len].to_vec();
            eager.content[b_index][b_base + other..b_base + other + len].copy_from_slice(&bytes);
            event
        }
        4 => {
            let (width, rows) = (len % 8 + 1, usize::from(command.other) % 5);
            let (from, into) = (usize::from(command.start) % 16, usize::from(command.len) % 16);
            let (origins, region) = (([from * 4, 0, 0], [into * 4, 1, 0]), [width * 4, rows, 1]);
            let event = queue.enqueue_copy_buffer_rect(a, b, origins.0, origins.1, region, 64, 0, 64, 0, &waits)?;
            let source = eager.content[a_index].clone();
            for row in 0..rows {
                let (from, into) = (a_base + from + 16 * row, b_base + into + 16 * (row + 1));
                eager.content[b_index][into..into + width].copy_from_slice(&source[from..from + width]);
            }
            event
        }
        5 => {
            let mut launch = ExecuteKernel::new(&kernels.stir);
            launch.set_arg(a).set_global_work_size(a.len()).set_event_wait_list(&waits);
            // SAFETY: each work-item touches its own element.
            let event = unsafe { launch.enqueue_nd_range(queue) }?;
            let part = &mut eager.content[a_index][a_base..a_base + a.len()];
            part.iter_mut().zip(0..).for_each(|(x, i)| *x = x.wrapping_mul(5).wrapping_add(i));
            event
        }
        _ if command.value.is_multiple_of(3) => queue.enqueue_barrier_with_wait_list(&waits)?,
        _ => {
            let n = a.len().min(b.len());
            if a_index == b_index {
                return Ok(()); // The kernels must not get the same memory twice.
            }
            let mut launch = ExecuteKernel::new(&kernels.scale);
            launch.set_arg(&a.slice(..n)?).set_arg_write(&b.slice(..n)?).set_arg(&command.value);
            launch.set_global_work_sizes(&[n]).set_event_wait_list(&waits);
            // SAFETY: each work-item touches its own element, and there are as many as the shorter one has.
            let event = unsafe { launch.enqueue_nd_range(queue) }?;
            let source = eager.content[a_index][a_base..a_base + n].to_vec();
            let by = |y: u32| y.wrapping_mul(3).wrapping_add(command.value);
            eager.content[b_index][b_base..b_base + n].iter_mut().zip(source).for_each(|(x, y)| *x = by(y));
            event
        }
    };
    events.push(event);
    Ok(())
}

/// Rule F4: commands give the same bytes when a queue executes them, and when they are recorded from two queues and run
/// by any path, also twice as sub-graphs.
#[test]
fn random_commands_give_the_bytes_of_an_eager_run_executed_and_recorded() {
    fn property(commands: Vec<Command>, recorded: bool, number: u8, nested: bool) -> bool {
        SHARED.with(|Shared { bench, out_of_order, kernels }| {
            let memory = Memory::new(bench);
            let graph = bench.graph();
            let mut eager = Eager { content: memory.content(&bench.queue), reads: Vec::new() };
            let (mut events, mut reads) = (Vec::new(), Vec::new());
            if recorded {
                graph.begin_recording(&[&bench.queue, out_of_order]).unwrap();
            }
            for command in &commands {
                // Recorded commands are ordered by their data; executed ones only by the queue.
                let queue = if recorded && command.b % 2 == 1 { out_of_order } else { &bench.queue };
                let before = graph.len();
                let outcome = enqueue(command, queue, &memory, kernels, &mut eager, (&mut events, &mut reads));
                if let Err(error) = outcome {
                    assert_eq!(error.kind(), clgraph::ErrorKind::Invalid, "{error}");
                    assert_eq!(graph.len(), before, "{error}");
                }
            }
            let path = PATHS[usize::from(number) % PATHS.len()];
            let results: Vec<Vec<u32>> = if recorded {
                graph.end_all_recording();
                let mut executable = graph.finalize(some_fused(number).path(path).commands_per_buffer(3)).unwrap();
                let mut reads: Vec<HostRead<u32>> = reads.iter().map(|read| read.host_read().unwrap()).collect();
                if nested {
                    let parent = bench.graph();
                    let sub = parent.sub_graph(&executable).add().unwrap();
                    reads = reads.iter().map(|read| sub.read(read).unwrap()).collect();
                    executable = parent.finalize(some_fused(number).path(path)).unwrap();
                }
                let run = executable.submit(&bench.queue).unwrap();
                run.wait().unwrap();
                reads.iter().map(|read| run.get(read).unwrap().to_vec()).collect()
            } else {
                reads.iter().map(|read| read.wait().unwrap()).collect()
            };
            results == eager.reads && memory.content(&bench.queue) == eager.content
        })
    }
    QuickCheck::new().tests(150).quickcheck(property as fn(Vec<Command>, bool, u8, bool) -> bool);
}

/// Arbitrary edges never panic and never make a cycle, and a refused edge changes nothing.
#[test]
fn random_edges_never_close_a_cycle() {
    fn property(nodes: u8, edges: Vec<(u8, u8)>) -> bool {
        SHARED.with(|Shared { bench, .. }| {
            let graph = bench.graph();
            let nodes: Vec<_> = (0..nodes % 20 + 1).map(|_| graph.empty().add().unwrap()).collect();
            for (from, to) in edges {
                let (from, to) = (nodes[usize::from(from) % nodes.len()], nodes[usize::from(to) % nodes.len()]);
                let before = graph.to_dot(clgraph::DrawingDetail::Brief);
                if graph.add_edge(from, to).is_err() && graph.to_dot(clgraph::DrawingDetail::Brief) != before {
                    return false;
                }
            }
            graph.finalize(Finalize::new()).is_ok()
        })
    }
    QuickCheck::new().tests(50).quickcheck(property as fn(u8, Vec<(u8, u8)>) -> bool);
}

/// A number of any size: small, at a border, or enormous.
#[derive(Clone, Copy, Debug)]
struct Wild(usize);

impl Arbitrary for Wild {
    fn arbitrary(g: &mut Gen) -> Self {
        let near = usize::arbitrary(g) % 9;
        Self(*g.choose(&[near, 64, 128, 256, LEN - 1, LEN, usize::MAX, usize::MAX / 4, 1 << 32, 1 << 61]).unwrap())
    }
}

/// A kernel node with any number of arguments of any kind, any range and any work-group: an error or a node, never a
/// panic, and a refusal changes nothing. (Accepted nodes do not run, because nothing promises that they are right.)
#[test]
fn wild_kernel_nodes_never_panic() {
    type Numbers = (Wild, Wild, Wild);
    fn property(
        kernel: u8,
        args: Vec<(u8, Wild)>,
        range: Numbers,
        offset: Option<Numbers>,
        group: Option<Numbers>,
    ) -> bool {
        SHARED.with(|Shared { bench, .. }| {
            let names =
                ["scale", "stir", "group_sum", "add_or_one", "affine", "grid", "by_eight", "by_rows", "takes_an_image"];
            let kernel = bench.kernel(names[usize::from(kernel) % names.len()]);
            let buffer = bench.buffer(&[0; LEN]);
            let graph = bench.graph();
            let sizes = |(x, y, z): Numbers| [x.0, y.0, z.0];
            let mut node = graph.kernel(&kernel).range(sizes(range));
            for (kind, number) in args {
                node = match kind % 7 {
                    0 => node.read(&buffer),
                    1 => node.write(&buffer),
                    2 => node.null(),
                    3 => node.local::<u64>(number.0),
                    4 => node.arg(number.0 as u32),
                    5 => node.bytes(&vec![0; number.0 % 5000]),
                    _ => node.read_write(&buffer.slice(..number.0 % LEN).unwrap()),
                };
            }
            if let Some(offset) = offset {
                node = node.offset(sizes(offset));
            }
            if let Some(group) = group {
                node = node.work_group(sizes(group));
            }
            // SAFETY: it is not run.
            let added = unsafe { node.add() }.is_ok();
            let as_counted = graph.len() == usize::from(added);
            let finalized = match graph.finalize(Finalize::new()) {
                Ok(executable) => executable.report().nodes == graph.len(),
                // A driver may still refuse an argument whose type is unknown.
                Err(clgraph::Error::Finalize(clgraph::FinalizeError::Argument { .. })) => {
                    added && (!kernel.has_arg_info() || kernel.name() == "affine")
                }
                Err(_) => false,
            };
            as_counted && finalized
        })
    }
    type Case = fn(u8, Vec<(u8, Wild)>, Numbers, Option<Numbers>, Option<Numbers>) -> bool;
    QuickCheck::new().tests(500).quickcheck(property as Case);
}

/// Rectangles with any numbers, between any two views: an error or a node, never a panic.
#[test]
fn wild_rectangles_never_panic() {
    fn property(views: (u8, u8), region: (Wild, Wild, Wild), places: Vec<Wild>) -> bool {
        SHARED.with(|Shared { bench, .. }| {
            let memory = Memory::new(bench);
            let graph = bench.graph();
            let at = |index: usize| places.get(index).map_or(0, |wild| wild.0);
            let ((src, _), (dst, _)) = (memory.view(views.0), memory.view(views.1));
            let rect = graph.copy_rect(src, dst).region([region.0.0, region.1.0, region.2.0]);
            let rect = rect.src_origin([at(0), at(1), at(2)]).dst_origin([at(3), at(4), at(5)]);
            let added = rect.src_pitch(at(6), at(7)).dst_pitch(at(8), at(9)).add().is_ok();
            if added {
                bench.run(&graph);
            }
            graph.len() == usize::from(added)
        })
    }
    QuickCheck::new().tests(500).quickcheck(property as fn((u8, u8), (Wild, Wild, Wild), Vec<Wild>) -> bool);
}

/// Wrapped objects are released: the memory of the random graphs does not accumulate.
#[test]
fn what_random_graphs_use_is_released() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; LEN]);
    let plain = buffer.to_opencl3().unwrap();
    let before = plain.reference_count().unwrap();
    for value in 0..50 {
        let graph = bench.graph();
        graph.fill(&buffer, value).add().unwrap();
        graph.write(&buffer, vec![value; LEN]).add().unwrap();
        bench.run(&graph);
    }
    bench.queue.finish().unwrap();
    // A driver releases what a command used a moment after the command's event is complete.
    let begin = std::time::Instant::now();
    while plain.reference_count().unwrap() != before {
        assert!(
            begin.elapsed() < std::time::Duration::from_secs(60),
            "{} references",
            plain.reference_count().unwrap()
        );
        std::thread::yield_now();
    }
}
