//! Cases as plain data: the nodes of a graph, how it is finalized, and its submissions.

use quickcheck::{Arbitrary, Gen};

pub const BUFFERS: usize = 3;
/// Places for memory of the graph. Each graph has its own, also in a graph.
pub const OWNED: usize = 2;
const MEMORIES: usize = BUFFERS + OWNED;
/// Elements of a memory: two halves of 512 bytes, which can be sub-buffers on every device that was tried.
pub const LEN: usize = 256;
/// So many submissions of one executable that the autotuner times each strategy several times.
const MANY: usize = 30;

/// Elements of a memory or of one of its halves. The numbers are arbitrary, and are brought into range.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    view: u8,
    start: u16,
    len: u16,
}

impl Part {
    /// The buffers come first, and then the memory of the graph.
    pub fn memory(self) -> usize {
        usize::from(self.view) % MEMORIES
    }

    /// Which memory of the graph it is in. None for a buffer.
    pub fn owned(self) -> Option<usize> {
        self.memory().checked_sub(BUFFERS)
    }

    /// The whole memory, or one of its halves; with the first element in the memory, and the number of elements.
    pub fn side(self) -> (usize, usize, usize) {
        match usize::from(self.view) / MEMORIES % 3 {
            0 => (0, 0, LEN),
            1 => (1, 0, LEN / 2),
            _ => (2, LEN / 2, LEN / 2),
        }
    }

    /// First element in the view, and how many. Parts of the graph's memory begin where devices can address them.
    pub fn range(self) -> (usize, usize) {
        let len = self.side().2;
        let start = if self.owned().is_some() { 0 } else { usize::from(self.start) % len };
        (start, usize::from(self.len) % (len - start) + 1)
    }

    /// The elements in the memory.
    pub fn place(self) -> std::ops::Range<usize> {
        let (start, len) = self.range();
        let first = self.side().1 + start;
        first..first + len
    }

    /// The part itself, or one of a buffer if the graph's memory is not allocated.
    fn allocated(self, live: &[bool; OWNED]) -> Self {
        match self.owned() {
            Some(at) if !live[at] => Self { view: (self.side().0 * MEMORIES + at) as u8, ..self },
            _ => self,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Use {
    Reads,
    Writes,
    Both,
}

/// The forms of a native command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Enqueued,
    /// Both, where nothing can be recorded.
    Recorded,
    Both,
}

#[derive(Clone, Debug)]
pub enum Op {
    Fill(Part, u32),
    Copy(Part, Part),
    Stir(Part),
    Scale(Part, Part, u32),
    /// Reads two views, which may be a memory and its own half, and writes a third.
    Blend(Part, Part, Part),
    /// A node that waits for an event of the submission.
    Wait,
    /// A node that completes an event of the submission.
    Signal,
    /// Reads its views, and writes a number made from them. Memory of the graph is only named, because the function
    /// cannot get to it.
    Task(Vec<(Part, Use)>, u32),
    /// A native command that fills.
    Native(Part, u32, Form),
    /// A native command that enqueues a copy.
    NativeCopy(Part, Part),
    /// Memory of the graph, and a fill of all of it, because its content is undefined.
    Alloc(usize, u32),
    Free(usize),
    /// Data that each submission sets.
    Input(Part),
    Read(Part),
    Sub(Vec<Op>),
}

/// Returns the operations that become nodes: without those that OpenCL or clgraph refuses, and with buffers where memory
/// of the graph is not allocated.
pub fn valid(ops: &[Op]) -> Vec<Op> {
    let (mut live, mut all) = ([false; OWNED], Vec::new());
    for op in ops {
        let part = |part: &Part| part.allocated(&live);
        let op = match op {
            Op::Fill(to, value) => Op::Fill(part(to), *value),
            Op::Copy(from, to) => Op::Copy(part(from), part(to)),
            Op::Stir(to) => Op::Stir(part(to)),
            Op::Scale(from, to, by) => Op::Scale(part(from), part(to), *by),
            Op::Blend(a, b, to) => Op::Blend(part(a), part(b), part(to)),
            Op::Task(uses, by) => {
                let of = |(at, how): &(Part, Use)| {
                    let at = part(at);
                    (at, if at.owned().is_some() { Use::Reads } else { *how })
                };
                Op::Task(uses.iter().map(of).collect(), *by)
            }
            Op::Native(to, value, form) => Op::Native(part(to), *value, *form),
            Op::NativeCopy(from, to) => Op::NativeCopy(part(from), part(to)),
            Op::Input(to) => Op::Input(part(to)),
            Op::Read(from) => Op::Read(part(from)),
            Op::Alloc(at, value) => {
                let at = at % OWNED;
                if std::mem::replace(&mut live[at], true) {
                    all.push(Op::Free(at));
                }
                Op::Alloc(at, *value)
            }
            Op::Free(at) if std::mem::take(&mut live[at % OWNED]) => Op::Free(at % OWNED),
            Op::Free(_) => continue,
            Op::Sub(ops) => Op::Sub(valid(ops)),
            Op::Wait | Op::Signal => op.clone(),
        };
        if allowed(&op) {
            all.push(op);
        }
    }
    all
}

fn allowed(op: &Op) -> bool {
    match op {
        Op::Copy(from, to) | Op::NativeCopy(from, to) => {
            let (len, from_place, to_place) = copied(*from, *to);
            let apart = from_place + len <= to_place || to_place + len <= from_place;
            // A buffer beside its own sub-buffer in one command, with one of them written.
            from.memory() != to.memory() || (from.side().0 == to.side().0 && apart)
        }
        Op::Scale(from, to, _) => from.memory() != to.memory(),
        Op::Blend(a, b, to) => a.memory() != to.memory() && b.memory() != to.memory(),
        _ => true,
    }
}

/// Returns how many elements a copy has, and where they are in the memories.
pub fn copied(from: Part, to: Part) -> (usize, usize, usize) {
    (from.place().len().min(to.place().len()), from.place().start, to.place().start)
}

/// What a task makes of what it reads.
pub fn number(read: impl Iterator<Item = u32>, by: u32) -> u32 {
    read.fold(by, |sum, x| sum.wrapping_mul(31).wrapping_add(x))
}

impl Arbitrary for Part {
    fn arbitrary(g: &mut Gen) -> Self {
        Self { view: u8::arbitrary(g), start: u16::arbitrary(g), len: u16::arbitrary(g) }
    }
}

fn op(g: &mut Gen, depth: usize) -> Op {
    let part = Part::arbitrary;
    match u8::arbitrary(g) % if depth > 0 { 21 } else { 19 } {
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
        14 => {
            let form = *g.choose(&[Form::Enqueued, Form::Recorded, Form::Both]).unwrap();
            Op::Native(part(g), u32::arbitrary(g), form)
        }
        15 => Op::NativeCopy(part(g), part(g)),
        16 | 17 => Op::Alloc(usize::arbitrary(g), u32::arbitrary(g)),
        18 => Op::Free(usize::arbitrary(g)),
        _ => Op::Sub((0..u8::arbitrary(g) % 5).map(|_| op(g, depth - 1)).collect()),
    }
}

/// What a submission waits for.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    Nothing,
    Completes,
    Fails,
    Before,
}

/// How an update before a submission is made.
#[derive(Clone, Copy, Debug)]
pub enum Update {
    /// By a list of the nodes that change.
    Nodes,
    /// By the whole graph.
    Graph,
}

#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub queue: u8,
    pub wait: Wait,
    /// A plain command before it on the in-order queue, whose wait list fails: at once, or later.
    pub failing: Option<bool>,
    /// That command is after one that waits until the event has failed. On PoCL this is always so.
    pub held: bool,
    /// What the owner of its input does when it is dropped.
    pub owner: u8,
    /// Something awaits it, and its waker submits.
    pub awaited: bool,
    pub detached: bool,
    /// Its external events are complete before it is submitted.
    pub early: bool,
    /// The program waits for it before it goes on.
    pub alone: bool,
    pub input: u32,
    /// By how much the values of the executable are larger from this submission on, if it can be updated.
    pub update: Option<(Update, u32)>,
}

fn update(g: &mut Gen) -> Option<(Update, u32)> {
    let how = *g.choose(&[None, None, Some(Update::Nodes), Some(Update::Graph)]).unwrap();
    how.map(|how| (how, u32::arbitrary(g)))
}

impl Arbitrary for Run {
    fn arbitrary(g: &mut Gen) -> Self {
        Self {
            queue: u8::arbitrary(g),
            wait: *g.choose(&[Wait::Nothing, Wait::Nothing, Wait::Completes, Wait::Fails, Wait::Before]).unwrap(),
            failing: *g.choose(&[None, None, None, Some(true), Some(false)]).unwrap(),
            held: bool::arbitrary(g),
            owner: u8::arbitrary(g),
            awaited: bool::arbitrary(g),
            detached: u8::arbitrary(g) % 4 == 0,
            early: bool::arbitrary(g),
            alone: false,
            input: u32::arbitrary(g),
            update: update(g),
        }
    }
}

impl Run {
    /// One that waits for nothing, and with which nothing fails: the autotuner times no other.
    fn timed(g: &mut Gen) -> Self {
        let alone = bool::arbitrary(g);
        Self { wait: Wait::Nothing, failing: None, early: true, alone, ..Self::arbitrary(g) }
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    pub ops: Vec<Op>,
    pub runs: Vec<Run>,
    /// The number of a path.
    pub path: u8,
    pub profiled: bool,
    pub updatable: bool,
}

impl Case {
    /// A small graph that is submitted so often that the autotuner chooses.
    fn timed(g: &mut Gen) -> Self {
        // With these a graph has fewer strategies.
        let fewer = |op: &Op| matches!(op, Op::Native(..) | Op::NativeCopy(..) | Op::Task(..) | Op::Wait | Op::Signal);
        let several = bool::arbitrary(g);
        let ops = std::iter::repeat_with(|| op(g, 0)).filter(|op| !several || !fewer(op)).take(4).collect();
        let runs = (0..MANY).map(|_| Run::timed(g)).collect();
        Self { ops, runs, path: 0, profiled: u8::arbitrary(g) % 4 == 0, updatable: bool::arbitrary(g) }
    }
}

impl Arbitrary for Case {
    fn arbitrary(g: &mut Gen) -> Self {
        if u8::arbitrary(g) % 16 == 0 {
            return Self::timed(g);
        }
        let runs = (0..u8::arbitrary(g) % 4 + 1).map(|_| Run::arbitrary(g)).collect();
        Self {
            ops: (0..u8::arbitrary(g) % 12 + 1).map(|_| op(g, 2)).collect(),
            runs,
            path: u8::arbitrary(g),
            profiled: u8::arbitrary(g) % 4 == 0,
            updatable: bool::arbitrary(g),
        }
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
        let plainer = [Self { profiled: false, ..self.clone() }, Self { updatable: false, ..self.clone() }];
        let plainer =
            plainer.into_iter().zip([self.profiled, self.updatable]).filter(|(_, is)| *is).map(|(case, _)| case);
        Box::new(ops.chain(runs).chain(plainer.collect::<Vec<_>>()))
    }
}
