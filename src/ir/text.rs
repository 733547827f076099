//! A graph as text, for dumps and for the tests of passes: a line for each memory, and one for each node with what it
//! does, the bytes that it uses, and the nodes that it waits for.

use std::fmt;

use super::{Access, Body, ById, Ir, Mode, NodeId, View, ViewId, ViewKind};
use crate::command::{Arg, Command, ControlKind, Location};

impl fmt::Display for Ir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = vec![false; self.views.len()];
        self.ids().flat_map(|node| self.accesses(node)).for_each(|access| named[access.view.index()] = true);
        for (at, view) in self.views.iter().enumerate().filter(|(at, _)| named[*at]) {
            writeln!(f, "m{at}: {}", Memory(view))?;
        }
        self.ids().try_for_each(|node| writeln!(f, "{}", Line { ir: self, node }))
    }
}

struct Memory<'a>(&'a View);

impl fmt::Display for Memory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let View { root, root_size, offset, size, kind } = self.0;
        let what = match kind {
            ViewKind::Buffer => "buffer",
            ViewKind::SubBuffer => "sub-buffer",
            ViewKind::Image => "image",
            ViewKind::ImageOfBuffer => "image of a buffer",
            ViewKind::Pointer => "pointer",
            ViewKind::Foreign => "pointer of the program",
            ViewKind::Nothing => return f.write_str("nothing"),
            ViewKind::Owned(alloc) => return write!(f, "allocation {}, bytes {offset}..{}", alloc.0, offset + size),
            ViewKind::Placed { arena, start } => {
                return write!(f, "placed, bytes {}..{} of arena {}", start + offset, start + offset + size, arena.0);
            }
        };
        write!(f, "{what}, bytes {offset}..{} of root {} ({root_size})", offset + size, root.0)
    }
}

struct Line<'a> {
    ir: &'a Ir,
    node: NodeId,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ir, node } = *self;
        write!(f, "n{}: ", node.0)?;
        command(ir, ir.command(node), f)?;
        for Access { view, range, mode } in ir.accesses(node) {
            let verb = match mode {
                Mode::Read => "reads",
                Mode::Write => "writes",
                Mode::ReadWrite => "updates",
            };
            write!(f, ", {verb} m{}[{}..{}]", view.0, range.start, range.end)?;
        }
        let preds: Vec<String> = ir.topology.preds(node).map(|pred| format!(" n{}", pred.0)).collect();
        if preds.is_empty() { Ok(()) } else { write!(f, ", after{}", preds.concat()) }
    }
}

fn command(ir: &Ir, command: &Command<ById>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let at = |place: &Location<ViewId>| format!("m{}+{}", place.mem.0, place.offset);
    match command {
        Command::Empty => f.write_str("empty"),
        Command::Kernel { kernel, args, grid, .. } => {
            let args: Vec<String> = ir.args(*args).iter().map(|arg| argument(ir, *arg)).collect();
            let global = &grid.global[..grid.dims as usize];
            write!(f, "kernel {}({}) over {global:?}", ir.kernels[kernel.index()].name, args.join(", "))?;
            grid.local.map_or(Ok(()), |local| write!(f, " in groups of {:?}", &local[..grid.dims as usize]))?;
            f.write_str(if command.is_host() { " by the host" } else { "" })
        }
        Command::Copy { src, dst, size } => write!(f, "copy {size} bytes from {} to {}", at(src), at(dst)),
        Command::CopyRect(rect) => {
            write!(f, "copy {:?} bytes from m{} to m{}", rect.region, rect.src.0, rect.dst.0)
        }
        Command::CopyImage(copy) => write!(f, "copy {:?} pixels", copy.region),
        Command::Fill { dst, size, .. } => write!(f, "fill {size} bytes at {}", at(dst)),
        Command::Write { dst, size, data, .. } => write!(f, "write input {}, {size} bytes, to {}", data.0, at(dst)),
        Command::Read { src, size, output, .. } => {
            write!(f, "read {size} bytes at {} as result {}", at(src), output.0)
        }
        Command::Hint { of, size, .. } => write!(f, "hint for {size} bytes at {}", at(of)),
        Command::Native { functions, .. } => write!(f, "native command {}", functions.0),
        Command::Task(task) => write!(f, "host task {}", task.0),
        Command::Event { event, signals: false } => write!(f, "wait for event {}", event.0),
        Command::Event { event, signals: true } => write!(f, "signal event {}", event.0),
        Command::Alloc(alloc) => write!(f, "alloc {}, {} bytes", alloc.0, ir.allocs[alloc.index()].size),
        Command::Free(alloc) => write!(f, "free {}", alloc.0),
        Command::SubGraph(executable) => write!(f, "sub-graph {}", executable.0),
        Command::Control(control) => {
            f.write_str(match control.kind {
                ControlKind::When => "when",
                ControlKind::Switch => "switch",
                ControlKind::While { at_least_once: false, .. } => "repeat while",
                ControlKind::While { at_least_once: true, .. } => "repeat at least once while",
                ControlKind::Repeat { .. } => "repeat",
            })?;
            match control.kind {
                ControlKind::While { at_most: Some(most), .. } => write!(f, ", at most {most} times")?,
                ControlKind::Repeat { turns } => write!(f, " {turns} times")?,
                _ => {}
            }
            if let Some(condition) = &control.condition {
                write!(f, " at {}", at(condition))?;
            }
            control.bodies.of(&ir.bodies).iter().try_for_each(|body| match body {
                Body::Executable(executable) => write!(f, ", executable {}", executable.0),
                Body::Inlined { nodes, .. } => write!(f, ", nodes n{}..n{}", nodes.start, nodes.end),
            })
        }
    }
}

fn argument(ir: &Ir, arg: Arg<ById>) -> String {
    match arg {
        Arg::Memory(view) => format!("m{}", view.0),
        Arg::Indirect(view) => format!("indirect m{}", view.0),
        Arg::Global(view) => format!("global m{}", view.0),
        Arg::Unused(view) => format!("unused m{}", view.0),
        Arg::Null(_) => "null".to_owned(),
        Arg::Local(size) => format!("local {size}"),
        Arg::Sampler(sampler) => format!("sampler {}", sampler.0),
        Arg::Value(bytes) => ir.bytes(bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
