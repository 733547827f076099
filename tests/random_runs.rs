//! Random graphs, compared with an eager run. Their nodes use several parts of memory, and buffers beside their own
//! sub-buffers, also in sub-graphs and host tasks, and wait for events and complete events. They run several times on
//! several queues, with input whose owner calls clgraph when it is dropped, wakers that submit, and events that fail.
//! What ran gives the bytes of the eager run, what nothing can stop runs, and everything ends.
//!
//! `CLGRAPH_TEST_RANDOM` is the number of graphs.

mod common;

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use clgraph::{
    Buffer, Error, Event, EventSignal, EventWait, Executable, Finalize, Graph, HostData, HostRead, HostWrite, Kernel,
    Node, Path, Program, Queue, Submission, SubmitError,
};
use common::{Bench, UserEvent};
use quickcheck::{Arbitrary, Gen, QuickCheck};

const BUFFERS: usize = 3;
/// Elements of a buffer: two halves of 512 bytes, which can be sub-buffers on every device that was tried.
const LEN: usize = 256;
const LONG: Duration = Duration::from_secs(300);
/// A kernel that reads two buffers. OpenCL allows them to be a buffer and its own sub-buffer.
const BLEND: &str = "__kernel void blend(__global const uint *a, __global const uint *b, __global uint *to) {
    size_t i = get_global_id(0);
    to[i] = a[i] * 7 + b[i];
}";

/// Elements of a buffer or of one of its halves. The numbers are arbitrary, and are brought into range.
#[derive(Clone, Copy, Debug)]
struct Part {
    view: u8,
    start: u16,
    len: u16,
}

impl Part {
    fn buffer(self) -> usize {
        usize::from(self.view) % BUFFERS
    }

    /// The whole buffer, or one of its halves; with the first element in the buffer, and the number of elements.
    fn side(self) -> (usize, usize, usize) {
        match usize::from(self.view) / BUFFERS % 3 {
            0 => (0, 0, LEN),
            1 => (1, 0, LEN / 2),
            _ => (2, LEN / 2, LEN / 2),
        }
    }

    /// First element in the view, and how many.
    fn range(self) -> (usize, usize) {
        let len = self.side().2;
        let start = usize::from(self.start) % len;
        (start, usize::from(self.len) % (len - start) + 1)
    }

    /// The elements in the buffer.
    fn place(self) -> std::ops::Range<usize> {
        let (start, len) = self.range();
        let first = self.side().1 + start;
        first..first + len
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Use {
    Reads,
    Writes,
    Both,
}

#[derive(Clone, Debug)]
enum Op {
    Fill(Part, u32),
    Copy(Part, Part),
    Stir(Part),
    Scale(Part, Part, u32),
    /// Reads two views, which may be a buffer and its own half, and writes a third.
    Blend(Part, Part, Part),
    /// A node that waits for an event of the submission.
    Wait,
    /// A node that completes an event of the submission.
    Signal,
    /// Reads its views, and writes a number made from them.
    Task(Vec<(Part, Use)>, u32),
    /// Data that each submission sets.
    Input(Part),
    Read(Part),
    Sub(Vec<Op>),
}

impl Arbitrary for Part {
    fn arbitrary(g: &mut Gen) -> Self {
        Self { view: u8::arbitrary(g), start: u16::arbitrary(g), len: u16::arbitrary(g) }
    }
}

fn op(g: &mut Gen, depth: usize) -> Op {
    let part = Part::arbitrary;
    match u8::arbitrary(g) % if depth > 0 { 16 } else { 14 } {
        0 => Op::Fill(part(g), u32::arbitrary(g)),
        1 | 2 => Op::Copy(part(g), part(g)),
        3 => Op::Stir(part(g)),
        4 | 5 => Op::Scale(part(g), part(g), u32::arbitrary(g)),
        6 | 7 => {
            let uses = (0..u8::arbitrary(g) % 4 + 1).map(|_| {
                let how = *g.choose(&[Use::Reads, Use::Reads, Use::Writes, Use::Both]).unwrap();
                (part(g), how)
            });
            Op::Task(uses.collect(), u32::arbitrary(g))
        }
        8 => Op::Input(part(g)),
        9 => Op::Read(part(g)),
        10 | 11 => Op::Blend(part(g), part(g), part(g)),
        12 => Op::Wait,
        13 => Op::Signal,
        _ => Op::Sub((0..u8::arbitrary(g) % 5).map(|_| op(g, depth - 1)).collect()),
    }
}

/// What a submission waits for.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Nothing,
    Completes,
    Fails,
    Before,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    queue: u8,
    wait: Wait,
    /// A plain command before it on the in-order queue, whose wait list fails: at once, or later.
    failing: Option<bool>,
    /// That command is after one that waits until the event has failed. On PoCL this is always so.
    held: bool,
    /// What the owner of its input does when it is dropped.
    owner: u8,
    /// Something awaits it, and its waker submits.
    awaited: bool,
    detached: bool,
    /// Its external events are complete before it is submitted.
    early: bool,
    input: u32,
}

#[derive(Clone, Debug)]
struct Case {
    ops: Vec<Op>,
    runs: Vec<Run>,
    path: u8,
}

impl Arbitrary for Case {
    fn arbitrary(g: &mut Gen) -> Self {
        let runs = (0..u8::arbitrary(g) % 4 + 1).map(|_| Run {
            queue: u8::arbitrary(g),
            wait: *g.choose(&[Wait::Nothing, Wait::Nothing, Wait::Completes, Wait::Fails, Wait::Before]).unwrap(),
            failing: *g.choose(&[None, None, None, Some(true), Some(false)]).unwrap(),
            held: bool::arbitrary(g),
            owner: u8::arbitrary(g),
            awaited: bool::arbitrary(g),
            detached: u8::arbitrary(g) % 4 == 0,
            early: bool::arbitrary(g),
            input: u32::arbitrary(g),
        });
        let runs = runs.collect();
        Self { ops: (0..u8::arbitrary(g) % 12 + 1).map(|_| op(g, 2)).collect(), runs, path: u8::arbitrary(g) }
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let (this, other) = (self.clone(), self.clone());
        let ops = (0..this.ops.len()).map(move |at| {
            let mut case = this.clone();
            case.ops.remove(at);
            case
        });
        let runs = (0..other.runs.len()).map(move |at| {
            let mut case = other.clone();
            case.runs.remove(at);
            case
        });
        Box::new(ops.chain(runs))
    }
}

/// What all cases share.
struct Shared {
    bench: Bench,
    tasks: Queue,
    stir: Kernel,
    scale: Kernel,
    blend: Kernel,
    /// For owners and wakers that submit.
    other: Executable,
}

thread_local!(static SHARED: Shared = {
    let bench = Bench::new();
    let graph = bench.graph();
    graph.fill(&bench.buffer(&[0; LEN]), 1).add().unwrap();
    Shared {
        tasks: bench.another_queue(false),
        stir: bench.kernel("stir"),
        scale: bench.kernel("scale"),
        blend: Program::from_source(&bench.queue, BLEND).unwrap().kernel("blend").unwrap(),
        other: graph.finalize(Finalize::new()).unwrap(),
        bench,
    }
});

type Views = Vec<[Buffer<u32>; 3]>;

fn view(views: &Views, part: Part) -> &Buffer<u32> {
    &views[part.buffer()][part.side().0]
}

/// What graphs are made of.
struct Maker<'a> {
    shared: &'a Shared,
    views: &'a Views,
    inputs: Vec<(HostWrite<u32>, Part)>,
    reads: Vec<HostRead<u32>>,
    waits: Vec<EventWait>,
    signals: Vec<EventSignal>,
}

/// Leaves out a case that OpenCL or clgraph refuses.
fn allowed(op: &Op) -> bool {
    match op {
        Op::Copy(from, to) => {
            let (len, from_place, to_place) = copied(*from, *to);
            let apart = from_place + len <= to_place || to_place + len <= from_place;
            // A buffer beside its own sub-buffer in one command, with one of them written.
            from.buffer() != to.buffer() || (from.side().0 == to.side().0 && apart)
        }
        Op::Scale(from, to, _) => from.buffer() != to.buffer(),
        Op::Blend(a, b, to) => a.buffer() != to.buffer() && b.buffer() != to.buffer(),
        _ => true,
    }
}

/// Returns how many elements a copy has, and where they are in the buffers.
fn copied(from: Part, to: Part) -> (usize, usize, usize) {
    (from.place().len().min(to.place().len()), from.place().start, to.place().start)
}

fn number(read: impl Iterator<Item = u32>, by: u32) -> u32 {
    read.fold(by, |sum, x| sum.wrapping_mul(31).wrapping_add(x))
}

impl Maker<'_> {
    /// Adds the nodes in this order. A node with an event is after the node before it, and before the node after it.
    fn add_all(&mut self, graph: &Graph, ops: &[Op], outermost: bool) -> clgraph::Result<()> {
        let mut last: Option<(Node, bool)> = None;
        for op in ops {
            let Some(node) = self.add(graph, op, outermost)? else { continue };
            let is_event = matches!(op, Op::Wait | Op::Signal);
            if let Some((last, _)) = last.filter(|(_, was_event)| is_event || *was_event) {
                graph.add_edge(last, node)?;
            }
            last = Some((node, is_event));
        }
        Ok(())
    }

    /// Adds a node, unless there is none for this.
    fn add(&mut self, graph: &Graph, op: &Op, outermost: bool) -> clgraph::Result<Option<Node>> {
        let node = match op {
            _ if !allowed(op) => return Ok(None),
            Op::Fill(part, value) => {
                let (start, len) = part.range();
                graph.fill(&view(self.views, *part).slice(start..start + len)?, *value).add()?
            }
            Op::Copy(from, to) => {
                let len = copied(*from, *to).0;
                let (src, dst) = (from.range().0, to.range().0);
                let src = view(self.views, *from).slice(src..src + len)?;
                graph.copy(&src, &view(self.views, *to).slice(dst..dst + len)?).add()?
            }
            Op::Stir(part) => {
                let buffer = view(self.views, *part);
                // SAFETY: each work-item touches its own element.
                unsafe { graph.kernel(&self.shared.stir).read_write(buffer).range(buffer.len()).add() }?
            }
            Op::Scale(from, to, by) => {
                let (from, to) = (view(self.views, *from), view(self.views, *to));
                let n = from.len().min(to.len());
                let (from, to) = (from.slice(..n)?, to.slice(..n)?);
                // SAFETY: each work-item touches its own element, and there are as many as the shorter one has.
                unsafe { graph.kernel(&self.shared.scale).read(&from).write(&to).arg(*by).range(n).add() }?
            }
            Op::Blend(a, b, to) => {
                let [a, b, to] = [a, b, to].map(|part| view(self.views, *part));
                let n = a.len().min(b.len()).min(to.len());
                let (a, b, to) = (a.slice(..n)?, b.slice(..n)?, to.slice(..n)?);
                // SAFETY: as above.
                unsafe { graph.kernel(&self.shared.blend).read(&a).read(&b).write(&to).range(n).add() }?
            }
            Op::Wait if outermost => {
                let wait = graph.wait_event().add()?;
                self.waits.push(wait);
                wait.into()
            }
            Op::Signal if outermost => {
                let signal = graph.signal_event().add()?;
                self.signals.push(signal);
                signal.into()
            }
            Op::Task(uses, by) => self.task(graph, uses, *by)?,
            Op::Input(part) if outermost => {
                let (start, len) = part.range();
                let input = graph.write(&view(self.views, *part).slice(start..start + len)?, vec![0; len]).add()?;
                self.inputs.push((input, *part));
                input.into()
            }
            Op::Read(part) if outermost => {
                let (start, len) = part.range();
                let read = graph.read(&view(self.views, *part).slice(start..start + len)?).add()?;
                self.reads.push(read);
                read.into()
            }
            Op::Input(_) | Op::Read(_) | Op::Wait | Op::Signal => return Ok(None),
            Op::Sub(ops) => {
                let child = self.shared.bench.graph();
                self.add_all(&child, ops, false)?;
                graph.sub_graph(&child.finalize(Finalize::new())?).add()?.into()
            }
        };
        Ok(Some(node))
    }

    fn task(&self, graph: &Graph, uses: &[(Part, Use)], by: u32) -> clgraph::Result<Node> {
        let queue = self.shared.tasks.clone();
        let buffers: Vec<_> = uses.iter().map(|(part, how)| (view(self.views, *part).clone(), *part, *how)).collect();
        let mut node = graph.host_task(move |_| -> clgraph::Result<()> {
            let mut read = Vec::new();
            for (buffer, part, _) in buffers.iter().filter(|(.., how)| *how != Use::Writes) {
                let (start, len) = part.range();
                let mut data = vec![0; len];
                queue.enqueue_read_buffer(buffer, start * 4, &mut data, &[])?;
                read.extend(data);
            }
            let value = number(read.into_iter(), by);
            for (buffer, part, _) in buffers.iter().filter(|(.., how)| *how != Use::Reads) {
                let (start, len) = part.range();
                let data: Vec<u32> = (0..len as u32).map(|i| value.wrapping_add(i)).collect();
                queue.enqueue_write_buffer(buffer, start * 4, &data, &[])?;
            }
            Ok(())
        });
        for (part, how) in uses {
            let (start, len) = part.range();
            let slice = view(self.views, *part).slice(start..start + len)?;
            node = match how {
                Use::Reads => node.reads(&slice),
                Use::Writes => node.writes(&slice),
                Use::Both => node.reads_and_writes(&slice),
            };
        }
        node.add()
    }
}

/// Does on the CPU what a submission does.
struct Eager<'a> {
    content: &'a mut Vec<Vec<u32>>,
    input: u32,
    reads: Vec<Vec<u32>>,
}

impl Eager<'_> {
    fn run(&mut self, op: &Op, outermost: bool) {
        match op {
            _ if !allowed(op) => {}
            Op::Fill(part, value) => self.content[part.buffer()][part.place()].fill(*value),
            Op::Copy(from, to) => {
                let (len, src, dst) = copied(*from, *to);
                let data = self.content[from.buffer()][src..src + len].to_vec();
                self.content[to.buffer()][dst..dst + len].copy_from_slice(&data);
            }
            Op::Stir(part) => {
                let (_, first, len) = part.side();
                let data = &mut self.content[part.buffer()][first..first + len];
                data.iter_mut().zip(0..).for_each(|(x, i)| *x = x.wrapping_mul(5).wrapping_add(i));
            }
            Op::Scale(from, to, by) => {
                let ((_, src, n), (_, dst, m)) = (from.side(), to.side());
                let data = self.content[from.buffer()][src..src + n.min(m)].to_vec();
                let into = &mut self.content[to.buffer()][dst..dst + n.min(m)];
                into.iter_mut().zip(data).for_each(|(x, y)| *x = y.wrapping_mul(3).wrapping_add(*by));
            }
            Op::Blend(a, b, to) => {
                let sides = [a, b, to].map(|part| part.side());
                let len = sides.iter().map(|(_, _, len)| *len).min().unwrap_or(0);
                let of = |part: &Part| &self.content[part.buffer()][part.side().1..][..len];
                let sums = of(a).iter().zip(of(b)).map(|(a, b)| a.wrapping_mul(7).wrapping_add(*b));
                let sums: Vec<u32> = sums.collect();
                self.content[to.buffer()][sides[2].1..][..len].copy_from_slice(&sums);
            }
            Op::Task(uses, by) => {
                let read = uses.iter().filter(|(_, how)| *how != Use::Writes);
                let read = read.flat_map(|(part, _)| self.content[part.buffer()][part.place()].to_vec());
                let value = number(read.collect::<Vec<_>>().into_iter(), *by);
                for (part, _) in uses.iter().filter(|(_, how)| *how != Use::Reads) {
                    let data = &mut self.content[part.buffer()][part.place()];
                    data.iter_mut().zip(0..).for_each(|(x, i)| *x = value.wrapping_add(i));
                }
            }
            Op::Input(part) if outermost => self.content[part.buffer()][part.place()].fill(self.input),
            Op::Read(part) if outermost => self.reads.push(self.content[part.buffer()][part.place()].to_vec()),
            Op::Input(_) | Op::Read(_) | Op::Wait | Op::Signal => {}
            Op::Sub(ops) => ops.iter().for_each(|op| self.run(op, false)),
        }
    }
}

/// Input whose owner calls clgraph when it is dropped.
struct Owner {
    data: Vec<u32>,
    what: u8,
    queue: Queue,
    other: Executable,
}

impl AsRef<[u32]> for Owner {
    fn as_ref(&self) -> &[u32] {
        &self.data
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A failure on the queue is reported elsewhere.
        let _ = match self.what % 4 {
            0 => self.queue.finish(),
            1 => self.other.submit(&self.queue).and_then(|run| run.wait()),
            2 => self.other.submit_to(&self.queue).submit_detached(),
            _ => Ok(()),
        };
    }
}

struct Submits(Executable, Queue, AtomicU32);

impl Wake for Submits {
    fn wake(self: Arc<Self>) {
        let _ = self.0.submit(&self.1).and_then(|run| run.wait());
        self.2.fetch_add(1, Ordering::SeqCst);
    }
}

/// Whether a submission runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Runs,
    /// It waits for an event that fails.
    Fails,
    /// It waits for the submission of this number.
    After(usize),
    /// A command before it on its queue fails, and the driver decides (rule S9).
    Unknown,
}

struct Started {
    submission: Option<Submission>,
    input: u32,
    fate: Fate,
    awaited: bool,
    signals: Vec<clgraph::UserEvent>,
}

/// Checks that an error says that the submission did not run.
fn did_not_run(error: &Error) {
    let did_not =
        matches!(error, Error::Submit(SubmitError::DependencyFailed { .. } | SubmitError::EventFailed { .. }));
    assert!(did_not, "{error:?}");
}

fn check(case: &Case, shared: &Shared) -> bool {
    let (bench, mut events) = (&shared.bench, Vec::new());
    // A queue on which something fails may be unusable afterwards.
    let queues = [bench.another_queue(false), bench.another_queue(false), bench.another_queue(true)];
    let start: Vec<Vec<u32>> = (0..BUFFERS).map(|at| (0..LEN as u32).map(|i| i * 7 + at as u32).collect()).collect();
    let views: Views = start
        .iter()
        .map(|data| {
            let whole = bench.buffer(data);
            let (low, high) = (whole.sub_buffer(..LEN / 2).unwrap(), whole.sub_buffer(LEN / 2..).unwrap());
            [whole, low, high]
        })
        .collect();
    let graph = bench.graph();
    let (inputs, reads, waits, signals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut maker = Maker { shared, views: &views, inputs, reads, waits, signals };
    maker.add_all(&graph, &case.ops, true).unwrap();
    let Maker { inputs, reads, waits, signals, .. } = maker;
    let path = [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues][usize::from(case.path) % 5];
    let executable = graph.finalize(Finalize::new().path(path).commands_per_buffer(3).result_slots(8)).unwrap();
    let scratch = bench.buffer(&[0; LEN]);
    let mut runs: Vec<Started> = Vec::new();
    let mut broken = [false; 3];
    let mut external: Vec<clgraph::UserEvent> = Vec::new();
    let mut late: Vec<(UserEvent, UserEvent)> = Vec::new();
    for run in &case.runs {
        let at = usize::from(run.queue) % 3;
        let queue = &queues[at];
        if let (Some(at_once), false) = (run.failing, queue.properties().out_of_order) {
            let (held, user) = (UserEvent::new(&bench.queue), UserEvent::new(&bench.queue));
            if run.held {
                queue.enqueue_marker_with_wait_list(&[&Event::from_opencl3(&held.0).unwrap()]).unwrap();
            }
            let event = Event::from_opencl3(&user.0).unwrap();
            broken[at] = true;
            queue.enqueue_fill_buffer(&scratch, &[1], 0, 4 * LEN, &[&event]).unwrap();
            queue.flush().unwrap();
            if at_once {
                user.set(-5);
                held.set(0);
            } else {
                late.push((held, user));
            }
        }
        let event = UserEvent::new(&bench.queue);
        let mut submit = executable.submit_to(queue);
        for (input, part) in &inputs {
            let owner = Owner {
                data: vec![run.input; part.range().1],
                what: run.owner,
                queue: queues[usize::from(run.owner) / 4 % 3].clone(),
                other: shared.other.clone(),
            };
            submit = submit.with(input, HostData::shared(Arc::new(owner)));
        }
        for wait in &waits {
            let event = clgraph::UserEvent::new(&bench.queue).unwrap();
            if run.early {
                event.complete().unwrap();
            } else {
                external.push(event.clone());
            }
            submit = submit.with_event(wait, &event);
        }
        let promised: Vec<_> = signals.iter().map(|_| clgraph::UserEvent::new(&bench.queue).unwrap()).collect();
        for (signal, event) in signals.iter().zip(&promised) {
            submit = submit.with_signal(signal, event);
        }
        let before = runs.iter().rposition(|run| run.submission.is_some());
        let mut fate = if broken[at] { Fate::Unknown } else { Fate::Runs };
        match (run.wait, before) {
            (Wait::Completes, _) => submit = submit.after(&event.0),
            (Wait::Fails, _) => {
                submit = submit.after(&event.0);
                fate = Fate::Fails;
            }
            (Wait::Before, Some(before)) => {
                submit = submit.after(runs[before].submission.as_ref().unwrap());
                if fate == Fate::Runs {
                    fate = Fate::After(before);
                }
            }
            _ => {}
        }
        // Without a handle it is unknown whether it ran, so this is only done if nothing can fail.
        let is_plain =
            case.runs.iter().all(|run| run.failing.is_none()) && !matches!(run.wait, Wait::Fails | Wait::Before);
        if run.detached && is_plain && reads.is_empty() {
            submit.submit_detached().unwrap();
            runs.push(Started { submission: None, input: run.input, fate, awaited: false, signals: promised });
        } else {
            match submit.submit() {
                Ok(submission) => runs.push(Started {
                    submission: Some(submission),
                    input: run.input,
                    fate,
                    awaited: run.awaited,
                    signals: promised,
                }),
                // The event that it was to wait for has failed already.
                Err(error) => {
                    assert!(matches!(fate, Fate::After(_) | Fate::Unknown), "{fate:?}: {error}");
                    did_not_run(&error);
                }
            }
        }
        events.push((event, if matches!(run.wait, Wait::Fails) { -5 } else { 0 }));
    }
    let mut awaited = Vec::new();
    for run in &runs {
        if let (true, Some(submission)) = (run.awaited, &run.submission) {
            let queue = &queues[0];
            let waker = Arc::new(Submits(shared.other.clone(), queue.clone(), AtomicU32::new(0)));
            awaited.push((submission.clone().into_future(), waker));
        }
    }
    for (future, waker) in &mut awaited {
        let waker = Waker::from(Arc::clone(waker));
        let _ = pin!(future).poll(&mut Context::from_waker(&waker));
    }
    late.iter().for_each(|(_, user)| user.set(-5));
    late.iter().for_each(|(held, _)| held.set(0));
    events.iter().for_each(|(event, status)| event.set(*status));
    external.iter().for_each(|event| event.complete().unwrap());
    drop((graph, executable));
    let (mut content, mut well) = (start, true);
    let mut ran = Vec::new();
    for Started { submission, input, fate, signals, .. } in &runs {
        let outcome = submission.as_ref().map_or(Ok(()), |submission| submission.wait_for(LONG));
        let expected = match fate {
            Fate::Runs => Some(true),
            Fate::Fails => Some(false),
            Fate::After(before) => Some(ran[*before]),
            Fate::Unknown => None,
        };
        assert!(expected.is_none_or(|expected| expected == outcome.is_ok()), "{fate:?}, {ran:?}: {outcome:?}");
        // What was promised ends, and as the submission does.
        for event in signals {
            assert_eq!(event.wait_for(LONG).is_ok(), outcome.is_ok(), "{fate:?}: {outcome:?}");
        }
        ran.push(outcome.is_ok());
        if let Err(error) = outcome {
            did_not_run(&error);
            continue;
        }
        let mut eager = Eager { content: &mut content, input: *input, reads: Vec::new() };
        case.ops.iter().for_each(|op| eager.run(op, true));
        if let Some(submission) = submission {
            let results = reads.iter().map(|read| submission.get(read).unwrap().to_vec());
            well &= results.eq(eager.reads.iter().cloned());
        }
    }
    // A driver may refuse a queue on which something failed.
    let _ = queues.iter().try_for_each(Queue::finish);
    well && views.iter().zip(&content).all(|([whole, ..], content)| bench.content(whole) == *content)
}

/// Rules D1, D2, S3, S7, S9, F4, X1
#[test]
fn random_graphs_and_runs_give_the_bytes_of_an_eager_run_whatever_fails_beside_them() {
    fn property(case: Case) -> bool {
        SHARED.with(|shared| check(&case, shared))
    }
    let count = std::env::var("CLGRAPH_TEST_RANDOM").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    QuickCheck::new().tests(count).max_tests(count).quickcheck(property as fn(Case) -> bool);
}
