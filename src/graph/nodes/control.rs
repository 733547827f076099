//! A branch or a loop, as a request: executables as bodies, and what decides which of them run, and how often.

use crate::cl::memory::region::Region;
use crate::cl::objects::context::Context;
use crate::cl::objects::device::Device;
use crate::command::{Command, Control as Decision, ControlKind};
use crate::error::BuildCause;
use crate::graph::flat::Flat;
use crate::graph::nodes::request::{Request, Target};
use crate::graph::nodes::transfer::check_read;
use crate::graph::tables::{Child, UseHandle};
use crate::graph::writer::Writer;
use crate::ir::{Access, Body, ById, Mode};

/// A branch or a loop as a request.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) kind: ControlKind,
    /// The number that decides: the first four bytes.
    pub(crate) condition: Option<Region>,
    pub(crate) bodies: Vec<ControlBody>,
    /// The exclusive uses of all bodies, each once.
    uses: Vec<UseHandle>,
}

/// An executable as a body.
#[derive(Clone, Debug)]
pub(crate) struct ControlBody {
    pub(crate) context: Context,
    pub(crate) device: Device,
    pub(crate) child: Child,
    /// What it runs, as the executable was when the request was made.
    pub(crate) flat: Flat,
}

impl Control {
    pub(crate) fn new(kind: ControlKind, condition: Option<Region>, bodies: Vec<ControlBody>) -> Self {
        let mut uses: Vec<UseHandle> = Vec::new();
        for one in bodies.iter().flat_map(|body| &body.child.exclusive) {
            if uses.iter().all(|other| other.address() != one.address()) {
                uses.push(one.clone());
            }
        }
        Self { kind, condition, bodies, uses }
    }

    /// The range of bytes that decides.
    fn number(&self) -> Option<Region> {
        let condition = self.condition.as_ref()?;
        Some(Region { size: NUMBER, ..condition.clone() })
    }
}

/// The size of a condition in bytes.
const NUMBER: usize = size_of::<u32>();

impl Request for Control {
    type Checked = ();

    fn subject(&self) -> String {
        match self.kind {
            ControlKind::When => "branch `when`",
            ControlKind::Switch => "branch `switch`",
            ControlKind::While { .. } => "loop `repeat_while`",
            ControlKind::Repeat { .. } => "loop `repeat`",
        }
        .to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        if let Some(condition) = &self.condition {
            let start = condition.mem.offset_in_root() + condition.offset;
            if condition.size < NUMBER {
                return Err(BuildCause::ConditionEmpty);
            }
            if !start.is_multiple_of(NUMBER) {
                return Err(BuildCause::ConditionMisaligned { offset: start });
            }
            check_read(target, condition, "the condition")?;
        }
        for (index, body) in self.bodies.iter().enumerate() {
            if body.context != *target.context {
                return Err(BuildCause::OtherContext { what: format!("body {index}") });
            }
            if body.device != *target.device {
                let (device, graph_device) = (body.device.name().to_owned(), target.device.name().to_owned());
                return Err(BuildCause::OtherDevice { what: "the body", device, graph_device });
            }
            if body.flat.tables.ir.externals > 0 {
                return Err(BuildCause::EventInBody { body: index });
            }
        }
        Ok(())
    }

    fn uses(&self) -> &[UseHandle] {
        &self.uses
    }

    fn lower(self, (): (), to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        let condition = self.number().map(|number| {
            let access = to.access(&number, Mode::Read);
            let place = crate::command::Location { mem: access.view, offset: number.offset };
            accesses.push(access);
            place
        });
        let mut bodies = Vec::with_capacity(self.bodies.len());
        for body in self.bodies {
            for access in body.flat.footprint() {
                let view = to.view(body.flat.tables.mem(access.view)?);
                to.keep(view);
                accesses.push(Access { view, ..access.clone() });
            }
            bodies.push(Body::Executable(to.child(body.child)?));
        }
        let bodies = to.ir.push_bodies(bodies.into_iter())?;
        Some(Command::Control(Box::new(Decision { kind: self.kind, condition, bodies })))
    }
}
