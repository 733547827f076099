//! External events: nodes that wait for an event that a submission is given, or complete one.

use std::marker::PhantomData;

use super::request::{Request, Target};
use super::tables::Writer;
use super::{After, Graph, Node, Nodes, Part, after_methods, sealed};
use crate::error::{BuildCause, Result};
use crate::ir::{Access, ExternalId, Op};

impl Graph {
    /// Starts a node that waits for an event, which each submission is given
    /// ([`Submit::with_event`](crate::Submit::with_event)): what comes behind the node runs when that is complete, everything else
    /// does not wait for it. A submission returns before it is.
    ///
    /// Such a submission holds its queue by an event until it has ended: OpenCL objects that are dropped meanwhile are released then.
    ///
    /// If the event fails, so does the submission; what waits for the node does not run, everything else does.
    ///
    /// An event that is complete only when the submission is, or that stands behind it on the queue that it is submitted to, never
    /// comes: the submission then waits for ever.
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

    /// Starts a node that completes an event, which each submission is given
    /// ([`Submit::with_signal`](crate::Submit::with_signal)), when what it waits for is complete. If that never comes to be, because
    /// the submission has failed before, the event fails with the error.
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

    /// Adds the node, and gives the handle by which a submission is given the event.
    ///
    /// # Errors
    /// Those of [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<H> {
        let node = self.graph.insert(ExternalEvent { signals: H::SIGNALS }, &self.after)?;
        Ok(H::of_part(node, 0))
    }
}

/// What stands for a node with an external event: [`EventWait`] or [`EventSignal`]. It cannot be implemented elsewhere.
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
            pub struct $name(Part);

            impl $name {
                /// The node that it stands for.
                #[must_use]
                pub fn node(&self) -> Node {
                    self.0.node
                }

                pub(crate) fn part(self) -> Part {
                    self.0
                }
            }

            impl EventHandle for $name {
                const SIGNALS: bool = $signals;

                fn of_part(node: Node, index: u32) -> Self {
                    Self(Part { node, index })
                }
            }

            impl Nodes for $name {
                fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>)) {
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

    fn lower(self, (): (), to: &mut Writer<'_>, _: &mut Vec<Access>) -> Option<Op> {
        to.external(self.signals)
    }
}

impl Writer<'_> {
    /// Takes a node with an external event.
    pub(super) fn external(&mut self, signals: bool) -> Option<Op> {
        let event = ExternalId(self.ir.externals);
        self.ir.externals = event.0.checked_add(1)?;
        Some(Op::Event { event, signals })
    }
}
