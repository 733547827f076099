//! What a command is, as plain data: one description for builders, queues, graphs, plans and OpenCL calls.
//!
//! [`Command`] has a variant for each kind of node, and [`Arg`] for each kind of kernel argument. Their parameter says
//! how they refer to memory, kernels and data:
//!
//! | parameter | refers to things by | used by |
//! |---|---|---|
//! | `ByHandle` (`graph/nodes/request.rs`) | owned handles | builders, and queues that execute |
//! | `ById` (`ir/mod.rs`) | numbers of tables | graphs, plans, executables, updates, drawings |
//! | `ByRef` (`cl/commands/command.rs`) | references | the calls that enqueue and that record |
//!
//! [`Command::translate`] makes one form of another, so whoever only passes commands on does not look at their kind. Where
//! the kind decides, a `match` names all kinds, and the compiler asks there about a new one:
//!
//! - in this file: what it is, and how it is translated;
//! - `cl/commands/command.rs`: the call that enqueues it, and the call that records it;
//! - `lower/inline.rs`, `ir/mod.rs`: what it refers to in a sub-graph, and whether executables are inside it;
//! - `plan/runnable.rs`, `plan/command_kind.rs`, `plan/check.rs`: what a device needs, and what command buffers hold;
//! - `graph/edit/assign.rs`: what an update cannot change;
//! - `exec/submit/tasks.rs`, `exec/build/guards.rs`: what the host does for it, and what a loop ahead does;
//! - `graph/query.rs`, `graph/drawing.rs`, `ir/text.rs`: its name, its picture, and its line in a dump.

use crate::images::Area;

/// How a command refers to things.
pub(crate) trait Refs {
    /// A buffer, an image, or memory with an address.
    type Mem;
    type Kernel;
    /// The arguments of a kernel.
    type Args;
    /// The pattern of a fill.
    type Bytes;
    /// The host data of a write.
    type Data;
    /// The result of a read.
    type Output;
    /// The function of a host task.
    type Task;
    /// An event that each submission is given.
    type Event;
    /// The functions of a native command.
    type Native;
    /// An executable.
    type Executable;
    /// The bodies of a branch or loop.
    type Bodies;
    /// Memory that belongs to the graph.
    type Alloc;
}

/// By argument, how many bytes of its memory belong to each work-item: the one with linear index `i` touches only the bytes from `i` times
/// as many on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elementwise {
    /// In order of the arguments.
    list: Vec<(usize, usize)>,
    /// Whether the host does the launch, and looks whether it is so.
    is_checked: bool,
}

impl Elementwise {
    /// Returns None for an empty list. The list has no argument twice with different numbers.
    pub(crate) fn of(mut list: Vec<(usize, usize)>) -> Option<Box<Self>> {
        list.sort_unstable();
        list.dedup();
        (!list.is_empty()).then(|| Box::new(Self { list, is_checked: false }))
    }

    /// Returns the same promise, if there is one, of a launch that the host does.
    pub(crate) fn checked(of: Option<&Self>) -> Box<Self> {
        Box::new(Self { is_checked: true, ..of.cloned().unwrap_or_default() })
    }

    /// Returns the same promise, if it is one, of a launch that the device does; None if that is this one.
    pub(crate) fn unchecked(&self) -> Option<Option<Box<Self>>> {
        self.is_checked.then(|| Self::of(self.list.clone()))
    }

    /// Returns the arguments, each with its bytes of a work-item.
    pub(crate) fn list(&self) -> Vec<(usize, usize)> {
        self.list.clone()
    }

    /// Returns how many bytes of an argument belong to a work-item.
    pub(crate) fn bytes(&self, argument: usize) -> Option<usize> {
        let at = self.list.binary_search_by_key(&argument, |(argument, _)| *argument).ok()?;
        Some(self.list[at].1)
    }
}

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command<R: Refs> {
    Empty,
    Kernel {
        kernel: R::Kernel,
        args: R::Args,
        grid: Grid,
        /// The largest range to which safe code may change it, by dimension. None if safe code may not.
        bound: Option<Box<[usize; 3]>>,
        prints: bool,
        /// Which bytes its work-items touch, if that was promised.
        elementwise: Option<Box<Elementwise>>,
    },
    Copy {
        src: Location<R::Mem>,
        dst: Location<R::Mem>,
        size: usize,
    },
    CopyRect(CopyRect<R::Mem>),
    /// From image to image, from a buffer to an image, or from an image to a buffer.
    CopyImage(CopyImage<R::Mem>),
    Fill {
        dst: Location<R::Mem>,
        size: usize,
        pattern: R::Bytes,
        /// For an image: the area, and the pattern is a colour.
        area: Option<Area>,
    },
    Write {
        dst: Location<R::Mem>,
        size: usize,
        data: R::Data,
        /// For an image.
        area: Option<Area>,
    },
    Read {
        src: Location<R::Mem>,
        size: usize,
        output: R::Output,
        /// For an image.
        area: Option<Area>,
    },
    Hint {
        of: Location<R::Mem>,
        size: usize,
        hint: Hint,
    },
    /// A native command: the program's function enqueues or records.
    Native {
        functions: R::Native,
        form: Form,
    },
    /// A host task: a function that the host calls between commands.
    Task(R::Task),
    /// Waits for an external event, or completes it.
    Event {
        event: R::Event,
        signals: bool,
    },
    /// From here on the bytes of an allocation of the graph exist. Only orders other nodes.
    Alloc(R::Alloc),
    /// From here on the bytes of an allocation are not needed. Only orders other nodes.
    Free(R::Alloc),
    /// An executable. It is inlined before anything is planned.
    SubGraph(R::Executable),
    /// A branch or a loop. The host decides it between commands.
    Control(Box<Control<R::Mem, R::Bodies>>),
}

impl<R: Refs> Command<R> {
    /// Returns whether the device does it, even if there is nothing to run.
    pub(crate) fn is_command(&self) -> bool {
        match self {
            Self::Empty | Self::SubGraph(_) | Self::Alloc(_) | Self::Free(_) => false,
            Self::Task(_) | Self::Event { .. } | Self::Control(_) => false,
            Self::Kernel { .. } => !self.is_host(),
            Self::Native { .. } | Self::Hint { .. } => true,
            Self::Copy { .. } | Self::CopyRect(_) | Self::CopyImage(_) => true,
            Self::Fill { .. } | Self::Write { .. } | Self::Read { .. } => true,
        }
    }

    /// Returns whether the host does it, between commands.
    pub(crate) fn is_host(&self) -> bool {
        match self {
            Self::Task(_) | Self::Event { .. } | Self::Control(_) => true,
            Self::Empty | Self::SubGraph(_) | Self::Alloc(_) | Self::Free(_) => false,
            Self::Kernel { elementwise, .. } => elementwise.as_deref().is_some_and(|of| of.is_checked),
            Self::Native { .. } | Self::Hint { .. } => false,
            Self::Copy { .. } | Self::CopyRect(_) | Self::CopyImage(_) => false,
            Self::Fill { .. } | Self::Write { .. } | Self::Read { .. } => false,
        }
    }

    /// Returns whether there is nothing to run: such a node only orders others. Drivers disagree about commands of size
    /// zero.
    #[inline]
    pub(crate) fn is_noop(&self) -> bool {
        match self {
            // The host does these, or nobody: there is nothing to enqueue.
            Self::Empty | Self::Alloc(_) | Self::Free(_) => true,
            Self::Task(_) | Self::Event { .. } | Self::Control(_) => true,
            Self::SubGraph(_) | Self::Native { .. } => false,
            Self::Kernel { grid, .. } => grid.is_empty(),
            Self::CopyRect(rect) => rect.region.contains(&0),
            Self::CopyImage(copy) => copy.region.contains(&0),
            Self::Copy { size, .. }
            | Self::Fill { size, .. }
            | Self::Write { size, .. }
            | Self::Read { size, .. }
            | Self::Hint { size, .. } => *size == 0,
        }
    }

    /// Returns whether both are the same OpenCL command, or the same kind of node, perhaps with other values.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::CopyImage(one), Self::CopyImage(other)) => one.is_alike(other),
            (Self::Fill { area, .. }, Self::Fill { area: other, .. })
            | (Self::Write { area, .. }, Self::Write { area: other, .. })
            | (Self::Read { area, .. }, Self::Read { area: other, .. }) => area.is_some() == other.is_some(),
            (Self::Event { signals, .. }, Self::Event { signals: other, .. }) => signals == other,
            (Self::Control(one), Self::Control(other)) => one.is_alike(other),
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }

    /// Returns the same command, which refers to things in another way.
    #[inline]
    pub(crate) fn translate<'a, S: Refs, T: Translate<'a, R, S>>(&'a self, to: &mut T) -> Result<Command<S>, T::Error> {
        Ok(match self {
            Self::Empty => Command::Empty,
            Self::Kernel { kernel, args, grid, bound, prints, elementwise } => {
                let (kernel, args) = to.kernel(kernel, args)?;
                let (bound, elementwise) = (bound.clone(), elementwise.clone());
                Command::Kernel { kernel, args, grid: *grid, bound, prints: *prints, elementwise }
            }
            Self::Copy { src, dst, size } => {
                Command::Copy { src: src.translate(to)?, dst: dst.translate(to)?, size: *size }
            }
            Self::CopyRect(rect) => {
                let CopyRect { src, dst, src_origin, dst_origin, region, pitches } = rect;
                Command::CopyRect(CopyRect {
                    src: to.mem(src)?,
                    dst: to.mem(dst)?,
                    src_origin: *src_origin,
                    dst_origin: *dst_origin,
                    region: *region,
                    pitches: *pitches,
                })
            }
            Self::CopyImage(CopyImage { src, dst, region }) => {
                Command::CopyImage(CopyImage { src: src.translate(to)?, dst: dst.translate(to)?, region: *region })
            }
            Self::Fill { dst, size, pattern, area } => {
                Command::Fill { dst: dst.translate(to)?, size: *size, pattern: to.bytes(pattern)?, area: *area }
            }
            Self::Write { dst, size, data, area } => {
                Command::Write { dst: dst.translate(to)?, size: *size, data: to.data(data, *size)?, area: *area }
            }
            Self::Read { src, size, output, area } => {
                Command::Read { src: src.translate(to)?, size: *size, output: to.output(output, *size)?, area: *area }
            }
            Self::Hint { of, size, hint } => Command::Hint { of: of.translate(to)?, size: *size, hint: *hint },
            Self::Native { functions, form } => Command::Native { functions: to.native(functions)?, form: *form },
            Self::Task(task) => Command::Task(to.task(task)?),
            Self::Event { event, signals } => Command::Event { event: to.event(event)?, signals: *signals },
            Self::Alloc(alloc) => Command::Alloc(to.alloc(alloc)?),
            Self::Free(alloc) => Command::Free(to.alloc(alloc)?),
            Self::SubGraph(executable) => Command::SubGraph(to.executable(executable)?),
            Self::Control(control) => {
                let condition = control.condition.as_ref().map(|place| place.translate(to)).transpose()?;
                Command::Control(Box::new(Control {
                    kind: control.kind,
                    condition,
                    bodies: to.bodies(&control.bodies)?,
                }))
            }
        })
    }
}

/// Finds what the things that a command refers to are in another form of the command.
pub(crate) trait Translate<'a, A: Refs, B: Refs> {
    type Error;

    fn mem(&mut self, mem: &'a A::Mem) -> Result<B::Mem, Self::Error>;
    fn kernel(&mut self, kernel: &'a A::Kernel, args: &'a A::Args) -> Result<(B::Kernel, B::Args), Self::Error>;
    fn bytes(&mut self, bytes: &'a A::Bytes) -> Result<B::Bytes, Self::Error>;
    /// `size` is in bytes.
    fn data(&mut self, data: &'a A::Data, size: usize) -> Result<B::Data, Self::Error>;
    /// `size` is in bytes.
    fn output(&mut self, output: &'a A::Output, size: usize) -> Result<B::Output, Self::Error>;
    fn task(&mut self, task: &'a A::Task) -> Result<B::Task, Self::Error>;
    fn event(&mut self, event: &'a A::Event) -> Result<B::Event, Self::Error>;
    fn native(&mut self, functions: &'a A::Native) -> Result<B::Native, Self::Error>;
    fn executable(&mut self, executable: &'a A::Executable) -> Result<B::Executable, Self::Error>;
    fn bodies(&mut self, bodies: &'a A::Bodies) -> Result<B::Bodies, Self::Error>;
    fn alloc(&mut self, alloc: &'a A::Alloc) -> Result<B::Alloc, Self::Error>;
}

/// How a kernel argument refers to things.
pub(crate) trait ArgRefs {
    /// Memory, with its use where that matters.
    type Mem;
    /// What is known of memory that is not there.
    type NoMem;
    type Value;
    type Sampler;
}

/// A kernel argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg<R: ArgRefs> {
    /// A buffer, an image, or memory with an address.
    Memory(R::Mem),
    /// Memory that the kernel reaches through pointers in other memory. These come after the kernel's own arguments.
    Indirect(R::Mem),
    /// Memory of a device global of the kernel's program. These come after the indirect ones; the program does not set
    /// them, because every object of the kernel has them since it was made.
    Global(R::Mem),
    /// No argument of the kernel: it gives all launches of a command group the same number of uses. These come after
    /// all others.
    Unused(R::NoMem),
    /// A null pointer for an argument that takes memory.
    Null(R::NoMem),
    /// Bytes of local memory.
    Local(usize),
    Value(R::Value),
    Sampler(R::Sampler),
}

/// A byte offset in a buffer, in a sub-buffer, or from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location<M> {
    pub(crate) mem: M,
    pub(crate) offset: usize,
}

impl<M> Location<M> {
    fn translate<'a, A: Refs<Mem = M>, B: Refs, T: Translate<'a, A, B>>(
        &'a self,
        to: &mut T,
    ) -> Result<Location<B::Mem>, T::Error> {
        Ok(Location { mem: to.mem(&self.mem)?, offset: self.offset })
    }
}

/// A copy of a rectangle: origins and region in bytes, rows and slices; pitches in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyRect<M> {
    pub(crate) src: M,
    pub(crate) dst: M,
    pub(crate) src_origin: [usize; 3],
    pub(crate) dst_origin: [usize; 3],
    pub(crate) region: [usize; 3],
    /// The pitches of a row and a slice of the source, and those of the destination.
    pub(crate) pitches: [usize; 4],
}

/// A copy of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyImage<M> {
    pub(crate) src: Pixels<M>,
    pub(crate) dst: Pixels<M>,
    pub(crate) region: [usize; 3],
}

impl<M> CopyImage<M> {
    /// Returns whether both copies are between the same kinds of memory. Otherwise they are different OpenCL commands.
    fn is_alike(&self, other: &Self) -> bool {
        let is_image = |side: &Pixels<M>| matches!(side, Pixels::Image(..));
        (is_image(&self.src), is_image(&self.dst)) == (is_image(&other.src), is_image(&other.dst))
    }
}

/// Where pixels are: from an origin on in an image, or packed in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pixels<M> {
    Image(M, [usize; 3]),
    Buffer(Location<M>),
}

impl<M> Pixels<M> {
    fn translate<'a, A: Refs<Mem = M>, B: Refs, T: Translate<'a, A, B>>(
        &'a self,
        to: &mut T,
    ) -> Result<Pixels<B::Mem>, T::Error> {
        Ok(match self {
            Self::Image(mem, origin) => Pixels::Image(to.mem(mem)?, *origin),
            Self::Buffer(location) => Pixels::Buffer(location.translate(to)?),
        })
    }
}

/// A branch or a loop: what decides, and the bodies that it decides about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Control<M, B> {
    pub(crate) kind: ControlKind,
    /// Where the condition is, a number of 32 bits. None if the kind knows the number of turns.
    pub(crate) condition: Option<Location<M>>,
    pub(crate) bodies: B,
}

impl<M, B> Control<M, B> {
    /// Returns whether both are the same kind of branch or loop, perhaps with other bounds.
    fn is_alike(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
    }
}

/// How a branch or a loop is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlKind {
    /// The first body if the condition is not zero; otherwise the second one, if there is one.
    When,
    /// The body whose index the condition is, if there is one.
    Switch,
    /// The body, as long as the condition is not zero before a turn.
    While {
        /// The first turn happens whatever the condition is.
        at_least_once: bool,
        /// More turns are an error.
        at_most: Option<u64>,
    },
    /// The body, so many times.
    Repeat { turns: u64 },
}

/// How a native command gets to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its function enqueues commands.
    Enqueued,
    /// Its function records commands.
    Recorded,
    /// It has a function for each.
    Either,
}

/// What a hint tells the driver about memory. The driver may ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// The memory is needed on the device.
    ToDevice,
    /// The memory is needed on the host.
    ToHost,
    /// How the memory is going to be used, as a number that the driver defines.
    Advice(u32),
}

/// Returns whether a range of work-items has none.
#[inline(always)]
pub(crate) fn is_empty_range(global: &[usize; 3]) -> bool {
    global.contains(&0)
}

/// An ND-range: the number of work-items, their offset, and the size of a work-group. Unused dimensions are 1 (their
/// offset is 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) dims: u32,
    pub(crate) offset: [usize; 3],
    pub(crate) global: [usize; 3],
    /// None if the driver chooses.
    pub(crate) local: Option<[usize; 3]>,
}

impl Grid {
    /// Returns whether it has no work-item.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        is_empty_range(&self.global)
    }
}
