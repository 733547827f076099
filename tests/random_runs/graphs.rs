//! Graphs of cases.

use clgraph::{
    Buffer, BufferSlice, EventSignal, EventWait, Executable, Finalize, Graph, GraphMemory, HostRead, HostTaskNode,
    HostWrite, Kernel, MemorySlice, NativeCommand, NativeQueue, NativeRecording, Node, Parameter, Program, Queue,
};

use crate::case::{Form, LEN, OWNED, Op, Part, Use, copied, number};
use crate::common::Bench;
use crate::native;

/// A kernel that reads two buffers. OpenCL allows them to be a buffer and its own sub-buffer.
const BLEND: &str = "__kernel void blend(__global const uint *a, __global const uint *b, __global uint *to) {
    size_t i = get_global_id(0);
    to[i] = a[i] * 7 + b[i];
}";

/// What all cases share.
pub struct Shared {
    pub bench: Bench,
    tasks: Queue,
    stir: Kernel,
    scale: Kernel,
    blend: Kernel,
    /// For owners and wakers that submit.
    pub other: Executable,
}

impl Shared {
    pub fn new() -> Self {
        let bench = Bench::new();
        let graph = bench.graph();
        graph.fill(&bench.buffer(&[0; LEN]), 1).add().unwrap();
        Self {
            tasks: bench.another_queue(false),
            stir: bench.kernel("stir"),
            scale: bench.kernel("scale"),
            blend: Program::from_source(&bench.queue, BLEND).unwrap().kernel("blend").unwrap(),
            other: graph.finalize(Finalize::new()).unwrap(),
            bench,
        }
    }
}

pub type Views = Vec<[Buffer<u32>; 3]>;

/// Memory that a node uses.
#[derive(Clone)]
enum Place {
    Buffer(BufferSlice<u32>),
    Owned(MemorySlice<u32>),
}

/// Does the same with memory of either kind.
macro_rules! with {
    ($place:expr, |$memory:ident| $what:expr) => {
        match $place {
            Place::Buffer($memory) => $what,
            Place::Owned($memory) => $what,
        }
    };
}

/// A node whose value updates change.
enum Valued {
    Fill(Node, Place, u32),
    Scale(Node, Parameter<u32>, u32),
    Task(Node, Vec<(Part, Use, Place)>, u32),
    Native(Node, Place, u32, Form),
}

/// The memory of the graph that is made.
type Owned = [Option<GraphMemory<u32>>; OWNED];

/// What graphs are made of.
pub struct Maker<'a> {
    pub shared: &'a Shared,
    pub views: &'a Views,
    /// Whether native commands can be ones that can only be recorded.
    pub records: bool,
    pub updatable: bool,
    pub inputs: Vec<(HostWrite<u32>, Part)>,
    pub reads: Vec<HostRead<u32>>,
    pub waits: Vec<EventWait>,
    pub signals: Vec<EventSignal>,
    valued: Vec<Valued>,
    owned: Owned,
    /// Updates of a whole graph look into them.
    children: Vec<Graph>,
}

impl<'a> Maker<'a> {
    pub fn new(shared: &'a Shared, views: &'a Views, records: bool, updatable: bool) -> Self {
        let (inputs, reads, waits, signals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (valued, owned, children) = (Vec::new(), Owned::default(), Vec::new());
        Self { shared, views, records, updatable, inputs, reads, waits, signals, valued, owned, children }
    }

    /// Some elements of the view of a part, counted from the view's start.
    fn elements(&self, part: Part, elements: std::ops::Range<usize>) -> clgraph::Result<Place> {
        let (side, first, _) = part.side();
        Ok(match part.owned() {
            None => Place::Buffer(self.views[part.memory()][side].slice(elements)?),
            Some(at) => {
                let memory = self.owned[at].as_ref().expect("only what is allocated is used");
                Place::Owned(memory.slice(first + elements.start..first + elements.end)?)
            }
        })
    }

    fn place(&self, part: Part) -> clgraph::Result<Place> {
        let (start, len) = part.range();
        self.elements(part, start..start + len)
    }

    /// The places of a copy.
    fn places(&self, from: Part, to: Part) -> clgraph::Result<(Place, Place)> {
        let len = copied(from, to).0;
        let (src, dst) = (from.range().0, to.range().0);
        Ok((self.elements(from, src..src + len)?, self.elements(to, dst..dst + len)?))
    }

    /// Adds the nodes in this order. A node with an event is after the node before it, and before the node after it.
    pub fn add_all(&mut self, graph: &Graph, ops: &[Op], outermost: bool) -> clgraph::Result<()> {
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
            Op::Fill(part, value) => {
                let to = self.place(*part)?;
                let node = with!(&to, |to| graph.fill(to, *value).add())?;
                self.value(outermost, Valued::Fill(node, to, *value));
                node
            }
            Op::Copy(from, to) => {
                let (from, to) = self.places(*from, *to)?;
                with!(&from, |from| with!(&to, |to| graph.copy(from, to).add()))?
            }
            Op::Stir(part) => {
                let len = part.side().2;
                let node = graph.kernel(&self.shared.stir);
                let node = with!(&self.elements(*part, 0..len)?, |all| node.read_write(all));
                // SAFETY: each work-item touches its own element.
                unsafe { node.range(len).add() }?
            }
            Op::Scale(from, to, by) => {
                let len = from.side().2.min(to.side().2);
                let node = graph.kernel(&self.shared.scale);
                let node = with!(&self.elements(*from, 0..len)?, |from| node.read(from));
                let node = with!(&self.elements(*to, 0..len)?, |to| node.write(to));
                let number = Parameter::any(*by);
                let node = if self.updatable { node.arg(&number) } else { node.arg(*by) };
                // SAFETY: each work-item touches its own element, and there are as many as the shorter one has.
                let node = unsafe { node.range(len).add() }?;
                self.value(outermost, Valued::Scale(node, number, *by));
                node
            }
            Op::Blend(a, b, to) => {
                let len = [a, b, to].map(|part| part.side().2).into_iter().min().unwrap_or(0);
                let mut node = graph.kernel(&self.shared.blend);
                for from in [a, b] {
                    node = with!(&self.elements(*from, 0..len)?, |from| node.read(from));
                }
                let node = with!(&self.elements(*to, 0..len)?, |to| node.write(to));
                // SAFETY: as above.
                unsafe { node.range(len).add() }?
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
            Op::Task(uses, by) => {
                let uses = uses.iter().map(|(part, how)| Ok((*part, *how, self.place(*part)?)));
                let uses = uses.collect::<clgraph::Result<Vec<_>>>()?;
                let node = self.task(graph, &uses, *by).add()?;
                self.value(outermost, Valued::Task(node, uses, *by));
                node
            }
            Op::Native(part, value, form) => {
                let to = self.place(*part)?;
                // SAFETY: what it enqueues and records touches the memory that it names.
                let node = unsafe { graph.native_command(self.native(&to, *value, *form)).add() }?;
                self.value(outermost, Valued::Native(node, to, *value, *form));
                node
            }
            Op::NativeCopy(from, to) => {
                let (from, to) = self.places(*from, *to)?;
                let command = NativeCommand::enqueued(native::copy);
                let command = with!(&from, |from| command.reads(from));
                let command = with!(&to, |to| command.writes(to));
                // SAFETY: as above.
                unsafe { graph.native_command(command).add() }?
            }
            Op::Alloc(at, value) => {
                let memory = graph.alloc(LEN).add()?;
                let node = graph.fill(&memory, *value).add()?;
                self.owned[*at] = Some(memory);
                node
            }
            Op::Free(at) => graph.free(&self.owned[*at].take().expect("it is allocated")).add()?,
            Op::Input(part) if outermost => {
                let len = part.range().1;
                let input = with!(&self.place(*part)?, |to| graph.write(to, vec![0; len]).add())?;
                self.inputs.push((input, *part));
                input.into()
            }
            Op::Read(part) if outermost => {
                let read = with!(&self.place(*part)?, |from| graph.read(from).add())?;
                self.reads.push(read);
                read.into()
            }
            Op::Input(_) | Op::Read(_) | Op::Wait | Op::Signal => return Ok(None),
            Op::Sub(ops) => {
                let child = self.shared.bench.graph();
                let outer = std::mem::take(&mut self.owned);
                self.add_all(&child, ops, false)?;
                self.owned = outer;
                let node = graph.sub_graph(&child.finalize(Finalize::new())?).add()?;
                self.children.push(child);
                node.into()
            }
        };
        Ok(Some(node))
    }

    fn native(&self, to: &Place, value: u32, form: Form) -> NativeCommand {
        let enqueue = move |to: &NativeQueue<'_>| native::fill(to, to.memory(0), value);
        let record = move |to: &NativeRecording<'_>| native::record_fill(to, to.memory(0), value);
        let command = match form {
            Form::Enqueued => NativeCommand::enqueued(enqueue),
            Form::Recorded if self.records => NativeCommand::recorded(record),
            _ => NativeCommand::enqueued(enqueue).or_recorded(record),
        };
        with!(to, |to| command.writes(to))
    }

    fn task<'g>(&self, graph: &'g Graph, uses: &[(Part, Use, Place)], by: u32) -> HostTaskNode<'g> {
        let queue = self.shared.tasks.clone();
        let mut buffers = Vec::new();
        for (part, how, _) in uses.iter().filter(|(part, ..)| part.owned().is_none()) {
            buffers.push((self.views[part.memory()][part.side().0].clone(), *part, *how));
        }
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
        for (_, how, place) in uses {
            node = with!(place, |memory| match how {
                Use::Reads => node.reads(memory),
                Use::Writes => node.writes(memory),
                Use::Both => node.reads_and_writes(memory),
            });
        }
        node
    }

    /// Notes a node of the graph itself.
    fn value(&mut self, outermost: bool, node: Valued) {
        if outermost && self.updatable {
            self.valued.push(node);
        }
    }

    /// Adds a number to the values that nodes were made with. Returns the nodes.
    pub fn change(&self, graph: &Graph, shift: u32) -> clgraph::Result<Vec<Node>> {
        let mut nodes = Vec::new();
        for one in &self.valued {
            nodes.push(match one {
                Valued::Fill(node, to, value) => {
                    with!(to, |to| graph.fill(to, value.wrapping_add(shift)).replace(*node))?;
                    *node
                }
                Valued::Scale(node, number, by) => {
                    number.set(by.wrapping_add(shift))?;
                    *node
                }
                Valued::Task(node, uses, by) => {
                    self.task(graph, uses, by.wrapping_add(shift)).replace(*node)?;
                    *node
                }
                Valued::Native(node, to, value, form) => {
                    let command = self.native(to, value.wrapping_add(shift), *form);
                    // SAFETY: as above.
                    unsafe { graph.native_command(command).replace(*node) }?;
                    *node
                }
            });
        }
        Ok(nodes)
    }
}
