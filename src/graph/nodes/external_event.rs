//! External events: nodes that wait for an event that each submission gets, or complete such an event.

use std::marker::PhantomData;

use crate::command::Command;
use crate::error::{BuildCause, Result};
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, Nodes, after_methods, sealed};
use crate::handles::{Node, Port, RawNode};
use crate::ir::{Access, ById};

impl Graph {
    /// Starts a node that waits for an external event. Each submission gets its own event by
    /// [`Submit::with_event`](crate::Submit::with_event).
    ///
    /// Nodes after this node run when the event is complete; other nodes do not wait for it. Submitting returns without
    /// waiting for the event. The submission holds its queue by an event until it has ended: OpenCL objects that are
    /// dropped meanwhile are released only then.
    ///
    /// If the event fails, the submission fails too. Nodes after this node then do not run, and all other nodes do.
    ///
    /// The submission must not depend on itself: it waits for ever for an event that completes only after the
    /// submission, or whose command comes after the submission on the same queue.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue, UserEvent};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (left, right) = (Buffer::<u32>::new(&queue, 4)?, Buffer::<u32>::new(&queue, 4)?);
    /// let graph = Graph::new(&queue)?;
    /// graph.fill(&left, 1).add()?;
    /// let half = graph.signal_event().after_all_leaves().add()?;
    /// let go_on = graph.wait_event().add()?;
    /// graph.fill(&right, 2).after(go_on).add()?;
    /// let executable = graph.finalize(Finalize::new())?;
    ///
    /// let (filled, may_go_on) = (UserEvent::new(&queue)?, UserEvent::new(&queue)?);
    /// let run = executable.submit_to(&queue).with_signal(&half, &filled).with_event(&go_on, &may_go_on).submit()?;
    /// filled.wait()?;
    /// assert!(!run.is_done()?);
    /// may_go_on.complete()?;
    /// run.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "cudaGraphAddEventWaitNode")]
    #[doc(alias = "cudaGraphAddExternalSemaphoresWaitNode")]
    pub fn wait_event(&self) -> EventNode<'_, EventWait> {
        EventNode { graph: self, after: After::default(), handle: PhantomData }
    }

    /// Starts a node that completes an external event when the nodes before it are complete. Each submission gets its
    /// own event by [`Submit::with_signal`](crate::Submit::with_signal).
    ///
    /// If the submission fails before that, the event fails with the same error.
    #[doc(alias = "cudaGraphAddEventRecordNode")]
    #[doc(alias = "cudaGraphAddExternalSemaphoresSignalNode")]
    pub fn signal_event(&self) -> EventNode<'_, EventSignal> {
        EventNode { graph: self, after: After::default(), handle: PhantomData }
    }
}

/// A node with an external event, to be added. See [`Graph::wait_event`] and [`Graph::signal_event`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct EventNode<'g, H> {
    graph: &'g Graph,
    after: After,
    handle: PhantomData<H>,
}

impl<H: EventHandle> EventNode<'_, H> {
    after_methods!();

    /// Adds the node, and returns its handle, by which a submission gets the event.
    ///
    /// # Errors
    /// Those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<H> {
        let node = self.graph.insert(ExternalEvent { signals: H::SIGNALS }, &self.after)?;
        Ok(H::of_part(node, 0))
    }
}

/// The handle of a node with an external event: [`EventWait`] or [`EventSignal`]. It cannot be implemented outside this
/// crate.
pub trait EventHandle: Copy + sealed::EventHandle {
    #[doc(hidden)]
    const SIGNALS: bool;
    #[doc(hidden)]
    fn of_part(node: Node, index: u32) -> Self;
}

macro_rules! handles {
    ($( $(#[$doc:meta])* $name:ident, $signals:literal; )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct $name(Port);

            impl $name {
                /// Returns the node of this handle.
                #[must_use]
                pub fn node(&self) -> Node {
                    self.0.node
                }

                /// Returns the handle as numbers, for bindings to other languages.
                #[must_use]
                pub fn to_raw(self) -> RawNode {
                    RawNode { part: self.0.index, ..self.0.node.to_raw() }
                }

                /// Returns the handle for numbers that [`to_raw`](Self::to_raw) returned. Calls with a handle that does
                /// not fit return errors, so any numbers are safe.
                #[must_use]
                pub fn from_raw(raw: RawNode) -> Self {
                    Self(Port { node: Node::from_raw(raw), index: raw.part })
                }

                pub(crate) fn part(self) -> Port {
                    self.0
                }
            }

            impl EventHandle for $name {
                const SIGNALS: bool = $signals;

                fn of_part(node: Node, index: u32) -> Self {
                    Self(Port { node, index })
                }
            }

            impl Nodes for $name {
                fn for_each_node(&self, mut each: impl FnMut(Option<Node>)) {
                    each(Some(self.node()));
                }
            }

            impl From<$name> for Node {
                fn from(handle: $name) -> Self {
                    handle.node()
                }
            }
        )*
    };
}

handles! {
    /// A node that waits for an event. See [`Graph::wait_event`].
    EventWait, false;
    /// A node that completes an event. See [`Graph::signal_event`].
    EventSignal, true;
}

/// A node with an external event, as a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExternalEvent {
    pub(crate) signals: bool,
}

impl Request for ExternalEvent {
    type Checked = ();

    fn subject(&self) -> String {
        if self.signals { "event signal" } else { "event wait" }.to_owned()
    }

    fn check(&self, _: &Target<'_>) -> Result<(), BuildCause> {
        Ok(())
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for ExternalEvent {
    fn command(self, (): ()) -> Requested {
        Requested::new(Command::Event { event: (), signals: self.signals }, [])
    }
}
