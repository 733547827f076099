//! Branches and loops in a graph: executables that run if, or as long as, a number in memory says so.

use std::sync::Arc;

use crate::cl::completion::reentrancy;
use crate::cl::memory::host::Element;
use crate::cl::memory::region::{AsSource, Region};
use crate::command::ControlKind;
use crate::error::{Result, SubmitError};
use crate::exec::executable::Executable;
use crate::exec::sub_graph::SubGraph;
use crate::graph::nodes::control::Control;
use crate::graph::{After, Graph, Nodes, sealed};
use crate::handles::{Node, Port, RawNode};
use crate::lower::OWN;

/// A type of number that decides a branch or loop: `u32` or `i32`. Not zero means true. Other crates cannot implement it.
pub trait Condition: Element + sealed_condition::Sealed {}

impl Condition for u32 {}
impl Condition for i32 {}

mod sealed_condition {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
}

impl Graph {
    /// Starts a branch: `then` runs if the first number of `condition` is not zero when the node is reached. With
    /// [`otherwise`](WhenNode::otherwise), another executable runs if it is zero.
    ///
    /// The bodies are executables, as in sub-graphs: they can have inputs, results, host tasks, branches and loops of
    /// their own, and are used in any number of places. They have no external events. The node reads the condition and
    /// uses all memory that its bodies use: edges follow from that.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (flag, data) = (Buffer::from_slice(&queue, &[1_u32])?, Buffer::<u32>::new(&queue, 4)?);
    /// let body = |value: u32| -> clgraph::Result<_> {
    ///     let graph = Graph::new(&queue)?;
    ///     graph.fill(&data, value).add()?;
    ///     graph.finalize(Finalize::new())
    /// };
    /// let graph = Graph::new(&queue)?;
    /// let input = graph.write(&flag, [0_u32]).add()?;
    /// let branch = graph.when(&flag, &body(1)?).otherwise(&body(2)?).add()?;
    /// let result = graph.read(&data).add()?;
    /// let executable = graph.finalize(Finalize::new())?;
    /// for (flag, expected) in [(0, 2), (5, 1)] {
    ///     let run = executable.submit_to(&queue).with(&input, [flag]).submit()?;
    ///     run.wait()?;
    ///     assert_eq!((*run.get(&result)?)[0], expected);
    ///     assert_eq!(run.turns(&branch)?, 1);
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias("cudaGraphConditionalNodeCreate", "cudaGraphCondTypeIf", "if"))]
    pub fn when<T: Condition>(&self, condition: &impl AsSource<T>, then: &Executable) -> WhenNode<'_> {
        WhenNode(Building::new(self, ControlKind::When, Some(condition.region()), vec![then.clone()]))
    }

    /// Starts a branch with several cases: the body runs whose index, from 0, is the first number of `index` when the node
    /// is reached. No body runs if there is none with this index. Otherwise as [`when`](Self::when).
    #[doc(alias("cudaGraphCondTypeSwitch", "match"))]
    pub fn switch<'e, T: Condition>(
        &self,
        index: &impl AsSource<T>,
        cases: impl IntoIterator<Item = &'e Executable>,
    ) -> SwitchNode<'_> {
        let cases = cases.into_iter().cloned().collect();
        SwitchNode(Building::new(self, ControlKind::Switch, Some(index.region()), cases))
    }

    /// Starts a loop: the body runs as long as the first number of `condition` is not zero. The number is read before each
    /// turn, after all commands of the turn before.
    ///
    /// A loop can go on for ever: set a bound with [`at_most`](RepeatWhileNode::at_most), or end a submission with
    /// [`Submission::cancel`](crate::Submission::cancel). While it runs it keeps one of the threads for host tasks. Inputs are
    /// used in each turn, host tasks run in each turn, and a result is that of the last turn. Otherwise as
    /// [`when`](Self::when).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// // Newton's method for a square root, until it does not change.
    /// let source = "kernel void iterate(global float *x, global uint *goes_on) {
    ///     const float next = 0.5f * (*x + 2.0f / *x);
    ///     *goes_on = fabs(next - *x) > 1e-6f;
    ///     *x = next;
    /// }";
    /// let iterate = Program::from_source(&queue, source)?.kernel("iterate")?;
    /// let x = Buffer::from_slice(&queue, &[1.0_f32])?;
    /// let goes_on = Buffer::from_slice(&queue, &[1_u32])?;
    /// let body = Graph::new(&queue)?;
    /// // SAFETY: one work-item touches one element of each buffer.
    /// unsafe { body.kernel(&iterate).read_write(&x).write(&goes_on).range(1).add()? };
    /// let body = body.finalize(Finalize::new())?;
    ///
    /// let graph = Graph::new(&queue)?;
    /// let newton = graph.repeat_while(&goes_on, &body).at_most(100).add()?;
    /// let root = graph.read(&x).add()?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert!((run.get(&root)?[0] - 2.0_f32.sqrt()).abs() < 1e-6);
    /// assert!(run.turns(&newton)? < 10);
    /// # Ok(()) }
    /// ```
    #[doc(alias("cudaGraphCondTypeWhile", "while", "loop"))]
    pub fn repeat_while<T: Condition>(&self, condition: &impl AsSource<T>, body: &Executable) -> RepeatWhileNode<'_> {
        let kind = ControlKind::While { at_least_once: false, at_most: None };
        RepeatWhileNode(Building::new(self, kind, Some(condition.region()), vec![body.clone()]))
    }

    /// Starts a loop with a known number of turns. Otherwise as [`repeat_while`](Self::repeat_while).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let twice = Program::from_source(&queue, "kernel void twice(global uint *x) { *x *= 2; }")?.kernel("twice")?;
    /// let x = Buffer::from_slice(&queue, &[1_u32])?;
    /// let body = Graph::new(&queue)?;
    /// // SAFETY: one work-item touches one element.
    /// unsafe { body.kernel(&twice).read_write(&x).range(1).add()? };
    /// let graph = Graph::new(&queue)?;
    /// graph.repeat(10, &body.finalize(Finalize::new())?).add()?;
    /// let result = graph.read(&x).add()?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [1024]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "for")]
    pub fn repeat(&self, turns: u64, body: &Executable) -> RepeatNode<'_> {
        RepeatNode(Building::new(self, ControlKind::Repeat { turns }, None, vec![body.clone()]))
    }
}

/// What all builders of branches and loops have.
#[derive(Debug)]
struct Building<'g> {
    graph: &'g Graph,
    after: After,
    kind: ControlKind,
    condition: Option<Region>,
    bodies: Vec<Executable>,
}

impl<'g> Building<'g> {
    fn new(graph: &'g Graph, kind: ControlKind, condition: Option<Region>, bodies: Vec<Executable>) -> Self {
        Self { graph, after: After::default(), kind, condition, bodies }
    }

    fn request(&self) -> Control {
        let bodies = self.bodies.iter().map(Executable::as_body).collect();
        Control::new(self.kind, self.condition.clone(), bodies)
    }

    fn add(self) -> Result<(Node, Arc<[Executable]>)> {
        reentrancy::check_call()?;
        let node = self.graph.insert(self.request(), &self.after)?;
        Ok((node, self.bodies.into()))
    }

    fn replace(self, node: Node) -> Result<()> {
        reentrancy::check_call()?;
        self.graph.replace(node, self.request(), &self.after)
    }
}

/// Defines a builder of a branch or loop.
macro_rules! control_builder {
    ($(#[$doc:meta])* $name:ident -> $handle:ident, $(#[doc = $errors:literal])*) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "a node is not in the graph until `add` is called"]
        pub struct $name<'g>(Building<'g>);

        impl $name<'_> {
            /// Makes the node wait for other nodes, besides those found from memory accesses. May be called repeatedly.
            #[doc(alias = "depends_on")]
            pub fn after(mut self, nodes: impl Nodes) -> Self {
                nodes.for_each_node(|node| self.0.after.nodes.push(node));
                self
            }

            /// Makes the node wait for every node that has no successor when this node is added.
            #[doc(alias = "depends_on_all_leaves")]
            pub fn after_all_leaves(mut self) -> Self {
                self.0.after.all_leaves = true;
                self
            }

            /// Gives the node a label, for drawings, profiles and traces. See
            /// [`Graph::set_label`](crate::Graph::set_label).
            pub fn label(mut self, label: impl Into<String>) -> Self {
                self.0.after.label = Some(label.into().into());
                self
            }

            /// Adds the node.
            ///
            /// # Errors
            $(#[doc = $errors])*
            /// [`BuildCause::EventInBody`](crate::BuildCause::EventInBody),
            /// [`BuildCause::OtherContext`](crate::BuildCause::OtherContext) and
            /// [`BuildCause::OtherDevice`](crate::BuildCause::OtherDevice) for a body, and those of
            /// [`EmptyNode::add`](crate::EmptyNode::add);
            /// [`SubmitError::InsideNativeCommand`](crate::SubmitError::InsideNativeCommand).
            pub fn add(self) -> Result<$handle> {
                let (node, bodies) = self.0.add()?;
                Ok($handle::new(node, bodies))
            }

            /// Replaces a node of the same kind by this one: another condition, or other bounds. The bodies have to be the
            /// same executables; values that these have got since are taken over.
            ///
            /// Edges stay, and executables get the change when they are updated.
            ///
            /// # Errors
            /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::CopyNode::replace). After an error
            /// nothing has changed.
            pub fn replace(self, node: impl Into<Node>) -> Result<()> {
                self.0.replace(node.into())
            }
        }
    };
}

control_builder! {
    /// Builds a branch with one or two bodies. See [`Graph::when`].
    WhenNode -> Branch,
    /// [`BuildCause::ConditionEmpty`](crate::BuildCause::ConditionEmpty),
    /// [`BuildCause::ConditionMisaligned`](crate::BuildCause::ConditionMisaligned), and those of
    /// [`ReadNode::add`](crate::ReadNode::add) for the condition;
}
control_builder! {
    /// Builds a branch with several cases. See [`Graph::switch`].
    SwitchNode -> Branch,
    /// [`BuildCause::ConditionEmpty`](crate::BuildCause::ConditionEmpty),
    /// [`BuildCause::ConditionMisaligned`](crate::BuildCause::ConditionMisaligned), and those of
    /// [`ReadNode::add`](crate::ReadNode::add) for the condition;
}
control_builder! {
    /// Builds a loop that a number in memory ends. See [`Graph::repeat_while`].
    RepeatWhileNode -> Loop,
    /// [`BuildCause::ConditionEmpty`](crate::BuildCause::ConditionEmpty),
    /// [`BuildCause::ConditionMisaligned`](crate::BuildCause::ConditionMisaligned), and those of
    /// [`ReadNode::add`](crate::ReadNode::add) for the condition;
}
control_builder! {
    /// Builds a loop with a known number of turns. See [`Graph::repeat`].
    RepeatNode -> Loop,
}

impl WhenNode<'_> {
    /// Sets the body that runs if the condition is zero. The last call counts.
    #[doc(alias = "else")]
    pub fn otherwise(mut self, otherwise: &Executable) -> Self {
        self.0.bodies.truncate(1);
        self.0.bodies.push(otherwise.clone());
        self
    }
}

impl RepeatWhileNode<'_> {
    /// Makes the first turn happen whatever the condition is: the condition is read after it.
    #[doc(alias = "do_while")]
    pub fn at_least_once(mut self) -> Self {
        if let ControlKind::While { at_least_once, .. } = &mut self.0.kind {
            *at_least_once = true;
        }
        self
    }

    /// Sets a bound: a submission fails with [`SubmitError::TooManyTurns`] if the loop would go on after so many turns.
    /// Memory is then as the last turn left it.
    pub fn at_most(mut self, turns: u64) -> Self {
        if let ControlKind::While { at_most, .. } = &mut self.0.kind {
            *at_most = Some(turns);
        }
        self
    }
}

/// The bounds of a loop that a number in memory ends, for queues: see [`Queue::repeat_while_with`](crate::Queue::repeat_while_with).
/// Without them a loop may have no turn, and may go on for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct LoopBounds {
    pub(in crate::exec) at_least_once: bool,
    pub(in crate::exec) at_most: Option<u64>,
}

impl LoopBounds {
    /// Returns no bounds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the first turn happen whatever the condition is: the condition is read after it.
    #[doc(alias = "do_while")]
    pub fn at_least_once(self) -> Self {
        Self { at_least_once: true, ..self }
    }

    /// Sets a bound: the loop fails with [`SubmitError::TooManyTurns`] if it would go on after so many turns.
    pub fn at_most(self, turns: u64) -> Self {
        Self { at_most: Some(turns), ..self }
    }
}

/// A handle of a branch or a loop: [`Branch`] or [`Loop`]. Other crates cannot implement it.
pub trait ControlHandle: Nodes {
    /// Returns the handle as numbers, for bindings to other languages.
    fn to_raw(&self) -> RawNode;
}

/// Returns where a branch or loop is.
pub(in crate::exec) fn port(of: &impl ControlHandle) -> Port {
    let raw = of.to_raw();
    Port { node: Node::from_raw(raw), index: raw.part }
}

/// Defines a handle of a branch or loop.
macro_rules! control_handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// It is only `Clone`, because it keeps the bodies' [`Executable`]s; a clone costs one reference count. Handles are equal if
        /// they name the same place, with their bodies or without ([`from_raw`](Self::from_raw)).
        #[derive(Clone, Debug)]
        pub struct $name {
            node: Node,
            part: u32,
            bodies: Arc<[Executable]>,
        }

        impl $name {
            pub(in crate::exec) fn new(node: Node, bodies: Arc<[Executable]>) -> Self {
                Self { node, part: OWN, bodies }
            }

            /// Returns the node.
            #[must_use]
            pub fn node(&self) -> Node {
                self.node
            }

            /// Returns the handle for numbers that [`to_raw`](ControlHandle::to_raw) returned, without its bodies. Those of
            /// a node itself have `u32::MAX` as part. Calls with a handle that does not fit return errors, so any numbers
            /// are safe.
            #[must_use]
            pub fn from_raw(raw: RawNode) -> Self {
                Self { node: Node::from_raw(raw), part: raw.part, bodies: Arc::new([]) }
            }

            fn nth(&self, nth: usize) -> Option<SubGraph> {
                SubGraph::nth(self.node, &self.bodies, nth).filter(|_| self.part == OWN)
            }

            /// Returns the same branch or loop as part of a node that has the executable in it.
            pub(in crate::exec) fn within(&self, node: Node, part: u32) -> Self {
                Self { node, part, bodies: Arc::clone(&self.bodies) }
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                (self.node, self.part) == (other.node, other.part)
            }
        }

        impl Eq for $name {}

        impl ControlHandle for $name {
            fn to_raw(&self) -> RawNode {
                RawNode { part: self.part, ..self.node.to_raw() }
            }
        }

        impl sealed::Nodes for $name {}

        impl Nodes for $name {
            fn for_each_node(&self, mut each: impl FnMut(Option<Node>)) {
                each(Some(self.node));
            }
        }

        impl From<$name> for Node {
            fn from(handle: $name) -> Self {
                handle.node
            }
        }

        impl From<&$name> for Node {
            fn from(handle: &$name) -> Self {
                handle.node
            }
        }
    };
}

control_handle! {
    /// A branch in a graph, by [`Graph::when`] or [`Graph::switch`].
    Branch
}
control_handle! {
    /// A loop in a graph, by [`Graph::repeat_while`] or [`Graph::repeat`].
    Loop
}

impl Branch {
    /// Returns a body as a sub-graph, which finds its writes, reads, branches and loops as those of the outer graph: 0 is
    /// the body of `when`, and 1 that of `otherwise`; for `switch` it is the case. `None` if there is no such body, or if
    /// the branch is itself part of a sub-graph.
    #[must_use]
    pub fn body(&self, index: usize) -> Option<SubGraph> {
        self.nth(index)
    }
}

impl Loop {
    /// Returns the body as a sub-graph, which finds its writes, reads, branches and loops as those of the outer graph.
    /// `None` if the loop is itself part of a sub-graph.
    #[must_use]
    pub fn body(&self) -> Option<SubGraph> {
        self.nth(0)
    }
}

impl SubGraph {
    /// Returns a branch of the executable as one of the outer graph.
    ///
    /// # Errors
    /// [`SubmitError::NotAControl`].
    pub fn branch(&self, branch: &Branch) -> Result<Branch> {
        let (node, part) = self.control(branch)?;
        Ok(branch.within(node, part))
    }

    /// Returns a loop of the executable as one of the outer graph.
    ///
    /// # Errors
    /// [`SubmitError::NotAControl`].
    pub fn repeat(&self, repeat: &Loop) -> Result<Loop> {
        let (node, part) = self.control(repeat)?;
        Ok(repeat.within(node, part))
    }

    fn control(&self, of: &impl ControlHandle) -> Result<(Node, u32)> {
        let port = port(of);
        let at = self.executable().0.fixed.controls.iter().position(|(one, _)| *one == port);
        let at = at.ok_or(SubmitError::NotAControl { node: port.node })?;
        Ok((self.node(), self.base().controls + at as u32))
    }
}
