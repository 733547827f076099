//! The undo log of an edit: the overwritten values, and how they are restored.

use crate::cl::memory::host::HostBytes;
use crate::command::{Arg, Command, Grid};
use crate::graph::nodes::host_task::TaskFn;
use crate::graph::nodes::native_command::NativeFn;
use crate::graph::writer::Writer;
use crate::ir::{Access, ById, DataId, NativeId, NodeId, Span, TaskId, ViewId};

/// The number of entries whose capacity is kept.
const ROOM: usize = 4096;

/// Empties a vector, and keeps its capacity if that is not large.
pub(crate) fn empty<T>(room: &mut Vec<T>) {
    room.clear();
    room.shrink_to(ROOM);
}

/// The overwritten values, in order. An edit ends by [`commit`](Self::commit) or by [`roll_back`](Self::roll_back), and
/// can then begin again.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    log: Vec<Undo>,
    /// Spans of bytes, in order, each with the start of its old bytes in `bytes`. They are apart from the log because
    /// there are many of them, and nothing else is written there.
    values: Vec<(Span, usize)>,
    bytes: Vec<u8>,
    grids: Vec<Grid>,
    /// Memory that the edit has named, perhaps for the first time.
    views: Vec<ViewId>,
}

#[derive(Debug)]
enum Undo {
    Command(NodeId, Box<Command<ById>>),
    /// The node, and the index of its old range in `grids`.
    Grid(NodeId, usize),
    Arg(Span, usize, Arg<ById>),
    Access(NodeId, usize, Access),
    Data(DataId, HostBytes),
    Task(TaskId, TaskFn),
    Native(NativeId, NativeFn),
    /// A command group, and the index of the launch that was active.
    Active(usize, usize),
}

/// Data of users, to be dropped where no lock is held.
#[derive(Debug)]
pub(crate) enum Owned {
    Data(#[expect(dead_code, reason = "it is there to be dropped")] HostBytes),
    Task(#[expect(dead_code, reason = "as above")] TaskFn),
    Native(#[expect(dead_code, reason = "as above")] NativeFn),
}

impl Edit {
    pub(in crate::graph) fn command(&mut self, to: &mut Writer<'_>, node: NodeId, op: Command<ById>) {
        let old = std::mem::replace(to.tables.ir.command_mut(node), op);
        self.log.push(Undo::Command(node, Box::new(old)));
    }

    pub(in crate::graph) fn grid(&mut self, to: &mut Writer<'_>, node: NodeId, grid: Grid) {
        if let Some(of) = to.tables.ir.grid_mut(node) {
            self.log.push(Undo::Grid(node, self.grids.len()));
            self.grids.push(std::mem::replace(of, grid));
        }
    }

    pub(in crate::graph) fn arg(&mut self, to: &mut Writer<'_>, args: Span, index: usize, arg: Arg<ById>) {
        if let Some(view) = arg.view() {
            to.keep(view);
        }
        let old = std::mem::replace(&mut to.tables.ir.args_mut(args)[index], arg);
        self.log.push(Undo::Arg(args, index, old));
    }

    pub(in crate::graph) fn bytes(&mut self, to: &mut Writer<'_>, span: Span, bytes: &[u8]) {
        self.values.push((span, self.bytes.len()));
        let place = to.tables.ir.bytes_mut(span);
        self.bytes.extend_from_slice(place);
        place.copy_from_slice(bytes);
    }

    pub(in crate::graph) fn access(&mut self, to: &mut Writer<'_>, node: NodeId, slot: usize, access: Access) {
        to.keep(access.view);
        let old = std::mem::replace(&mut to.tables.ir.accesses_mut(node)[slot], access);
        self.log.push(Undo::Access(node, slot, old));
    }

    pub(in crate::graph) fn data(&mut self, to: &mut Writer<'_>, id: DataId, data: HostBytes) {
        let old = std::mem::replace(&mut to.tables.data[id.index()], data);
        self.log.push(Undo::Data(id, old));
    }

    pub(in crate::graph) fn task(&mut self, to: &mut Writer<'_>, id: TaskId, task: TaskFn) {
        let old = std::mem::replace(&mut to.tables.tasks[id.index()], task);
        self.log.push(Undo::Task(id, old));
    }

    pub(in crate::graph) fn native(&mut self, to: &mut Writer<'_>, id: NativeId, functions: NativeFn) {
        let old = std::mem::replace(&mut to.tables.natives[id.index()], functions);
        self.log.push(Undo::Native(id, old));
    }

    /// Makes another launch of a command group the active one.
    pub(in crate::graph) fn active(&mut self, to: &mut Writer<'_>, group: usize, active: usize) {
        let old = std::mem::replace(&mut to.tables.groups[group].active, active);
        self.log.push(Undo::Active(group, old));
    }

    /// Notes that memory was named, perhaps for the first time.
    pub(in crate::graph) fn named(&mut self, view: ViewId) {
        self.views.push(view);
    }

    /// The overwritten accesses: the node, the index of the access, and its old value.
    pub(crate) fn old_accesses(&self) -> impl Iterator<Item = (NodeId, usize, &Access)> {
        self.log.iter().filter_map(|undo| match undo {
            Undo::Access(node, slot, old) => Some((*node, *slot, old)),
            _ => None,
        })
    }

    /// Ends the edit and forgets the old values. Returns the old data of users, to be dropped where no lock is held.
    pub(crate) fn commit(&mut self, to: &mut Writer<'_>) -> Vec<Owned> {
        let mut dropped = Vec::new();
        for undo in self.log.drain(..) {
            match undo {
                Undo::Arg(_, _, arg) => arg.view().into_iter().for_each(|view| to.release(view)),
                Undo::Access(_, _, access) => to.release(access.view),
                Undo::Data(_, data) => dropped.push(Owned::Data(data)),
                Undo::Task(_, task) => dropped.push(Owned::Task(task)),
                Undo::Native(_, functions) => dropped.push(Owned::Native(functions)),
                Undo::Command(..) | Undo::Grid(..) | Undo::Active(..) => {}
            }
        }
        self.empty();
        dropped
    }

    /// Ends the edit and restores all old values. Returns the new data of users, to be dropped where no lock is held.
    pub(crate) fn roll_back(&mut self, to: &mut Writer<'_>) -> Vec<Owned> {
        let mut dropped = Vec::new();
        for undo in self.log.drain(..).rev() {
            match undo {
                Undo::Command(node, old) => *to.tables.ir.command_mut(node) = *old,
                Undo::Grid(node, at) => {
                    to.tables.ir.grid_mut(node).into_iter().for_each(|grid| *grid = self.grids[at]);
                }
                Undo::Active(group, old) => to.tables.groups[group].active = old,
                Undo::Arg(args, index, old) => {
                    let new = std::mem::replace(&mut to.tables.ir.args_mut(args)[index], old);
                    if let Some(view) = new.view() {
                        to.release(view);
                    }
                }
                Undo::Access(node, slot, old) => {
                    let new = std::mem::replace(&mut to.tables.ir.accesses_mut(node)[slot], old);
                    to.release(new.view);
                }
                Undo::Data(id, old) => {
                    dropped.push(Owned::Data(std::mem::replace(&mut to.tables.data[id.index()], old)));
                }
                Undo::Task(id, old) => {
                    dropped.push(Owned::Task(std::mem::replace(&mut to.tables.tasks[id.index()], old)));
                }
                Undo::Native(id, old) => {
                    dropped.push(Owned::Native(std::mem::replace(&mut to.tables.natives[id.index()], old)));
                }
            }
        }
        for (span, start) in self.values.drain(..).rev() {
            to.tables.ir.bytes_mut(span).copy_from_slice(&self.bytes[start..start + span.len()]);
        }
        self.views.drain(..).for_each(|view| to.release_unused(view));
        self.empty();
        dropped
    }

    fn empty(&mut self) {
        let Self { log, values, bytes, grids, views } = self;
        empty(log);
        empty(values);
        empty(bytes);
        empty(grids);
        empty(views);
    }
}
