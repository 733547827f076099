//! The log of an edit: what it has written over, and how that comes back.

use super::host_task::TaskFn;
use super::native_command::NativeFn;
use super::tables::Writer;
use crate::cl::host::HostBytes;
use crate::ir::{Access, Arg, DataId, Grid, NativeId, NodeId, Op, Span, TaskId, ViewId};

/// Entries for which room is kept.
const ROOM: usize = 4096;

/// Empties what is kept for its room, if that is not large.
pub(crate) fn empty<T>(room: &mut Vec<T>) {
    room.clear();
    room.shrink_to(ROOM);
}

/// What was written over, in order. It ends by [`commit`](Self::commit) or by [`roll_back`](Self::roll_back), and may begin anew.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    log: Vec<Undo>,
    /// Spans of bytes, in order: there are many of them, and nothing else is written there. Each with where its bytes start
    /// in the edit's own.
    values: Vec<(Span, usize)>,
    bytes: Vec<u8>,
    grids: Vec<Grid>,
    /// Memory that was named, perhaps for the first time.
    views: Vec<ViewId>,
}

#[derive(Debug)]
enum Undo {
    Op(NodeId, Box<Op>),
    /// Which of the edit's own.
    Grid(NodeId, usize),
    Arg(Span, usize, Arg),
    Access(NodeId, usize, Access),
    Data(DataId, HostBytes),
    Task(TaskId, TaskFn),
    Native(NativeId, NativeFn),
    /// A command group, and which launch was active.
    Active(usize, usize),
}

/// What users own: to be dropped where no lock is held.
#[derive(Debug)]
pub(crate) enum Owned {
    Data(#[expect(dead_code, reason = "it is there to be dropped")] HostBytes),
    Task(#[expect(dead_code, reason = "as above")] TaskFn),
    Native(#[expect(dead_code, reason = "as above")] NativeFn),
}

impl Edit {
    pub(super) fn op(&mut self, to: &mut Writer<'_>, node: NodeId, op: Op) {
        let old = std::mem::replace(to.tables.ir.op_mut(node), op);
        self.log.push(Undo::Op(node, Box::new(old)));
    }

    pub(super) fn grid(&mut self, to: &mut Writer<'_>, node: NodeId, grid: Grid) {
        if let Some(of) = to.tables.ir.grid_mut(node) {
            self.log.push(Undo::Grid(node, self.grids.len()));
            self.grids.push(std::mem::replace(of, grid));
        }
    }

    pub(super) fn arg(&mut self, to: &mut Writer<'_>, args: Span, index: usize, arg: Arg) {
        if let Some(view) = arg.view() {
            to.keep(view);
        }
        let old = std::mem::replace(&mut to.tables.ir.args_mut(args)[index], arg);
        self.log.push(Undo::Arg(args, index, old));
    }

    pub(super) fn bytes(&mut self, to: &mut Writer<'_>, span: Span, bytes: &[u8]) {
        self.values.push((span, self.bytes.len()));
        let place = to.tables.ir.bytes_mut(span);
        self.bytes.extend_from_slice(place);
        place.copy_from_slice(bytes);
    }

    pub(super) fn access(&mut self, to: &mut Writer<'_>, node: NodeId, slot: usize, access: Access) {
        to.keep(access.view);
        let old = std::mem::replace(&mut to.tables.ir.accesses_mut(node)[slot], access);
        self.log.push(Undo::Access(node, slot, old));
    }

    pub(super) fn data(&mut self, to: &mut Writer<'_>, id: DataId, data: HostBytes) {
        let old = std::mem::replace(&mut to.tables.data[id.index()], data);
        self.log.push(Undo::Data(id, old));
    }

    pub(super) fn task(&mut self, to: &mut Writer<'_>, id: TaskId, task: TaskFn) {
        let old = std::mem::replace(&mut to.tables.tasks[id.index()], task);
        self.log.push(Undo::Task(id, old));
    }

    pub(super) fn native(&mut self, to: &mut Writer<'_>, id: NativeId, functions: NativeFn) {
        let old = std::mem::replace(&mut to.tables.natives[id.index()], functions);
        self.log.push(Undo::Native(id, old));
    }

    /// Makes another launch of a command group the active one.
    pub(super) fn active(&mut self, to: &mut Writer<'_>, group: usize, active: usize) {
        let old = std::mem::replace(&mut to.tables.groups[group].active, active);
        self.log.push(Undo::Active(group, old));
    }

    /// Memory was named, perhaps for the first time.
    pub(super) fn named(&mut self, view: ViewId) {
        self.views.push(view);
    }

    /// The accesses that were written over: node, which of its accesses, and what it was.
    pub(crate) fn old_accesses(&self) -> impl Iterator<Item = (NodeId, usize, &Access)> {
        self.log.iter().filter_map(|undo| match undo {
            Undo::Access(node, slot, old) => Some((*node, *slot, old)),
            _ => None,
        })
    }

    /// Lets go of what was written over. Host data is given back, to be dropped where no lock is held.
    pub(crate) fn commit(&mut self, to: &mut Writer<'_>) -> Vec<Owned> {
        let mut dropped = Vec::new();
        for undo in self.log.drain(..) {
            match undo {
                Undo::Arg(_, _, arg) => arg.view().into_iter().for_each(|view| to.release(view)),
                Undo::Access(_, _, access) => to.release(access.view),
                Undo::Data(_, data) => dropped.push(Owned::Data(data)),
                Undo::Task(_, task) => dropped.push(Owned::Task(task)),
                Undo::Native(_, functions) => dropped.push(Owned::Native(functions)),
                Undo::Op(..) | Undo::Grid(..) | Undo::Active(..) => {}
            }
        }
        self.empty();
        dropped
    }

    /// Writes everything back.
    pub(crate) fn roll_back(&mut self, to: &mut Writer<'_>) -> Vec<Owned> {
        let mut dropped = Vec::new();
        for undo in self.log.drain(..).rev() {
            match undo {
                Undo::Op(node, old) => *to.tables.ir.op_mut(node) = *old,
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
