//! Graphs as text before and after a pass, without a device; and random graphs, compared by what reaches what.

use std::collections::HashMap;

use expect_test::expect;
use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::*;
use crate::command::{Arg, Command, Control, ControlKind, Elementwise, Grid, Location};
use crate::ir::flows::Flows;
use crate::ir::{Access, AllocDecl, AllocId, Body, ChildId, KernelDecl, Mode, RootId, View, ViewKind};

/// Numbers objects of all sources in the order in which they are asked for.
#[derive(Default)]
struct Numbers {
    ir: Ir,
    views: HashMap<(Source, ViewId), ViewId>,
    kernels: HashMap<(Source, KernelId), KernelId>,
    /// What each new number of a kind stands for.
    asked: Vec<String>,
    grouped: Option<(Source, NodeId)>,
}

impl Output for Numbers {
    fn ir(&mut self) -> &mut Ir {
        &mut self.ir
    }

    fn view(&mut self, of: Source, view: ViewId) -> Option<ViewId> {
        let views = &mut self.ir.views;
        Some(*self.views.entry((of, view)).or_insert_with(|| {
            let root = RootId(views.len() as u32);
            views.push(View { root, root_size: 64, offset: 0, size: 64, kind: ViewKind::Buffer });
            ViewId(root.0)
        }))
    }

    fn kernel(&mut self, of: Source, kernel: KernelId) -> Option<KernelId> {
        let kernels = &mut self.ir.kernels;
        Some(*self.kernels.entry((of, kernel)).or_insert_with(|| {
            kernels.push(KernelDecl { name: format!("f{}", kernels.len()).into(), built: true, checked: true });
            KernelId(kernels.len() as u32 - 1)
        }))
    }

    fn sampler(&mut self, _: Source, sampler: SamplerId) -> Option<SamplerId> {
        Some(sampler)
    }

    fn data(&mut self, of: Source, data: DataId) -> Option<DataId> {
        self.asked.push(format!("{of:?} {}", data.0));
        self.ir.data += 1;
        Some(DataId(self.ir.data - 1))
    }

    fn result(&mut self, of: Source, result: ResultId) -> Option<ResultId> {
        self.asked.push(format!("{of:?} {}", result.0));
        self.ir.results += 1;
        // The table of results has room for two.
        (self.ir.results <= 2).then(|| ResultId(self.ir.results - 1))
    }

    fn task(&mut self, _: Source, _: TaskId) -> Option<TaskId> {
        self.ir.tasks += 1;
        Some(TaskId(self.ir.tasks - 1))
    }

    fn native(&mut self, _: Source, _: NativeId) -> Option<NativeId> {
        self.ir.natives += 1;
        Some(NativeId(self.ir.natives - 1))
    }

    fn external(&mut self) -> Option<ExternalId> {
        self.ir.externals += 1;
        Some(ExternalId(self.ir.externals - 1))
    }

    fn sets_command(&self, of: Source, node: NodeId) -> bool {
        self.grouped == Some((of, node))
    }
}

fn push(ir: &mut Ir, command: Command<crate::ir::ById>, uses: &[(u32, Mode)], after: &[u32]) -> NodeId {
    let accesses: Vec<Access> =
        uses.iter().map(|(view, mode)| Access { view: ViewId(*view), range: 0..64, mode: *mode }).collect();
    let mut after = after.iter().copied().map(NodeId).collect();
    ir.push_node(command, accesses.into_iter(), &mut after).unwrap()
}

fn with_views(count: u32, kind: ViewKind) -> Ir {
    let view = |root| View { root: RootId(root), root_size: 64, offset: 0, size: 64, kind };
    let mut ir = Ir::default();
    ir.views = (0..count).map(view).collect();
    ir
}

/// A write, a kernel, and a read of one buffer.
fn child() -> Ir {
    let mut ir = with_views(1, ViewKind::Buffer);
    ir.kernels.push(KernelDecl { name: "g".into(), built: true, checked: true });
    let place = Location { mem: ViewId(0), offset: 0 };
    push(&mut ir, Command::Write { dst: place, size: 64, data: DataId(0), area: None }, &[(0, Mode::Write)], &[]);
    let value = ir.push_bytes(&7_u32.to_le_bytes()).unwrap();
    let args = ir.push_args([Arg::Memory(ViewId(0)), Arg::Value(value), Arg::Local(16)].into_iter()).unwrap();
    let grid = Grid { dims: 1, offset: [0; 3], global: [16, 1, 1], local: None };
    let kernel = Command::Kernel { kernel: KernelId(0), args, grid, bound: None, prints: false, elementwise: None };
    push(&mut ir, kernel, &[(0, Mode::ReadWrite)], &[0]);
    let read = Command::Read { src: place, size: 64, output: ResultId(0), area: None };
    push(&mut ir, read, &[(0, Mode::Read)], &[1]);
    (ir.data, ir.results) = (1, 1);
    ir
}

/// Rule Z4: launches with a promise, or all, become nodes of the host.
#[test]
fn the_host_does_launches_that_are_checked() {
    let mut graph = child();
    assert_eq!(checked(&graph, false).map(|ir| ir.to_string()), None);
    let by_host = graph.to_string().replace(" over [16]", " over [16] by the host");
    assert_eq!(checked(&graph, true).unwrap().to_string(), by_host);
    let Command::Kernel { elementwise, .. } = graph.command_mut(NodeId(1)) else { panic!("no kernel") };
    *elementwise = Elementwise::of(vec![(0, 4)]);
    let done = checked(&graph, false).unwrap();
    assert_eq!(done.to_string(), by_host);
    let Command::Kernel { elementwise: Some(promise), .. } = done.command(NodeId(1)) else { panic!("no promise") };
    assert_eq!((promise.bytes(0), promise.bytes(1)), (Some(4), None));
    assert_eq!(unchecked(&done).unwrap().to_string(), graph.to_string());
    assert!(unchecked(&graph).is_none());
    assert!(std::sync::Arc::ptr_eq(&graph.topology, &done.topology));
}

/// Rule N1
#[test]
fn a_sub_graph_becomes_an_entry_its_nodes_and_an_exit() {
    let mut graph = with_views(1, ViewKind::Buffer);
    let place = Location { mem: ViewId(0), offset: 0 };
    let pattern = graph.push_bytes(&[1]).unwrap();
    let fill = Command::Fill { dst: place, size: 64, pattern, area: None };
    push(&mut graph, fill.clone(), &[(0, Mode::Write)], &[]);
    push(&mut graph, Command::SubGraph(ChildId(0)), &[(0, Mode::ReadWrite)], &[0]);
    push(&mut graph, Command::SubGraph(ChildId(0)), &[(0, Mode::ReadWrite)], &[1]);
    push(&mut graph, fill, &[(0, Mode::Write)], &[2]);
    let (child, mut output) = (child(), Numbers::default());
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        n0: fill 64 bytes at m0+0, writes m0[0..64]
        n1: sub-graph 0, updates m0[0..64], after n0
        n2: sub-graph 0, updates m0[0..64], after n1
        n3: fill 64 bytes at m0+0, writes m0[0..64], after n2
    "#]]
    .assert_eq(&graph.to_string());
    let done = inline(&graph, |_| &child, &mut output).unwrap();
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        m1: buffer, bytes 0..64 of root 1 (64)
        m2: buffer, bytes 0..64 of root 2 (64)
        n0: fill 64 bytes at m0+0, writes m0[0..64]
        n1: empty, after n0
        n2: write input 0, 64 bytes, to m1+0, writes m1[0..64], after n1
        n3: kernel f0(m1, 07000000, local 16) over [16], updates m1[0..64], after n2
        n4: read 64 bytes at m1+0 as result 0, reads m1[0..64], after n3
        n5: empty, after n4 n1
        n6: empty, after n5
        n7: write input 1, 64 bytes, to m2+0, writes m2[0..64], after n6
        n8: kernel f1(m2, 07000000, local 16) over [16], updates m2[0..64], after n7
        n9: read 64 bytes at m2+0 as result 1, reads m2[0..64], after n8
        n10: empty, after n9 n6
        n11: fill 64 bytes at m0+0, writes m0[0..64], after n10
    "#]]
    .assert_eq(&output.ir.to_string());
    let second = Source::Child { node: NodeId(2), child: ChildId(0), nth: 0 };
    assert_eq!((done.place(Source::Graph, NodeId(3)), done.place(second, NodeId(1))), (NodeId(11), NodeId(8)));
    assert_eq!(done.origins[8], Origin { node: NodeId(2), part: 0 });
}

/// Rules K1, K3: each body has an entry, and the bodies are between the branch and its exit, one after another.
#[test]
fn a_branch_becomes_its_node_its_bodies_and_an_exit() {
    let mut graph = with_views(1, ViewKind::Buffer);
    let place = Location { mem: ViewId(0), offset: 0 };
    let pattern = graph.push_bytes(&[1]).unwrap();
    let fill = Command::Fill { dst: place, size: 64, pattern, area: None };
    let bodies = graph.push_bodies([ChildId(0), ChildId(1)].map(Body::Executable).into_iter()).unwrap();
    let branch = Control { kind: ControlKind::When, condition: Some(Location { offset: 8, ..place }), bodies };
    push(&mut graph, Command::Control(Box::new(branch)), &[(0, Mode::ReadWrite)], &[]);
    push(&mut graph, fill, &[(0, Mode::Write)], &[0]);
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        n0: when at m0+8, executable 0, executable 1, updates m0[0..64]
        n1: fill 64 bytes at m0+0, writes m0[0..64], after n0
    "#]]
    .assert_eq(&graph.to_string());
    // The second body is a graph with a loop, as it is after its own inlining.
    let mut inner = with_views(1, ViewKind::Buffer);
    let nodes = inner.push_bodies([Body::Inlined { of: NodeId(0), nodes: 1..3 }].into_iter()).unwrap();
    let repeat = Control { kind: ControlKind::Repeat { turns: 3 }, condition: None, bodies: nodes };
    push(&mut inner, Command::Control(Box::new(repeat)), &[], &[]);
    for before in 0..3 {
        push(&mut inner, Command::Empty, &[], &[before]);
    }
    let (mut small, mut output) = (with_views(1, ViewKind::Buffer), Numbers::default());
    let read = Command::Read { src: place, size: 64, output: ResultId(0), area: None };
    push(&mut small, read, &[(0, Mode::Read)], &[]);
    small.results = 1;
    let done = inline(&graph, |child| [&small, &inner][child.index()], &mut output).unwrap();
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        m1: buffer, bytes 0..64 of root 1 (64)
        n0: when at m0+8, nodes n1..n3, nodes n3..n8, updates m0[0..64]
        n1: empty, after n0
        n2: read 64 bytes at m1+0 as result 0, reads m1[0..64], after n1
        n3: empty, after n2 n1
        n4: repeat 3 times, nodes n5..n7, after n3
        n5: empty, after n4
        n6: empty, after n5
        n7: empty, after n6
        n8: empty, after n7 n3 n0
        n9: fill 64 bytes at m0+0, writes m0[0..64], after n8
    "#]]
    .assert_eq(&output.ir.to_string());
    let second = Source::Child { node: NodeId(0), child: ChildId(1), nth: 1 };
    assert_eq!((done.place(Source::Graph, NodeId(1)), done.place(second, NodeId(0))), (NodeId(9), NodeId(4)));
    let origin = |node: usize| (done.origins[node].node, done.origins[node].part);
    assert_eq!([origin(0), origin(2), origin(4)], [(NodeId(0), OWN), (NodeId(0), 0), (NodeId(0), 0)]);
    let flows = Flows::new(&output.ir);
    let of: Vec<usize> = output.ir.ids().map(|node| flows.of(node)).collect();
    assert_eq!((of, flows.count()), (vec![0, 1, 1, 2, 2, 3, 3, 2, 0, 0], 4));
}

/// A flat graph: a fill, loops with these turns inside each other, of which the innermost has a fill, and a fill.
fn nested_loops(turns: &[u64]) -> Ir {
    let mut ir = with_views(1, ViewKind::Buffer);
    let place = Location { mem: ViewId(0), offset: 0 };
    let pattern = ir.push_bytes(&[1]).unwrap();
    let fill = Command::Fill { dst: place, size: 64, pattern, area: None };
    push(&mut ir, fill.clone(), &[(0, Mode::Write)], &[]);
    let depth = turns.len() as u32;
    let mut before = 0;
    for (at, turns) in (0..).zip(turns) {
        // The loop, the entry of its body, what is inside, and the exit.
        let of = before + 1;
        let nodes = of + 1..3 * depth + 1 - at;
        let bodies = ir.push_bodies([Body::Inlined { of: NodeId(of), nodes }].into_iter()).unwrap();
        let repeat = Control { kind: ControlKind::Repeat { turns: *turns }, condition: None, bodies };
        push(&mut ir, Command::Control(Box::new(repeat)), &[(0, Mode::Write)], &[before]);
        before = push(&mut ir, Command::Empty, &[], &[of]).0;
    }
    let mut last = push(&mut ir, fill.clone(), &[(0, Mode::Write)], &[before]).0;
    for at in (0..depth).rev() {
        last = push(&mut ir, Command::Empty, &[], &[last, 2 * at + 2, 2 * at + 1]).0;
    }
    push(&mut ir, fill, &[(0, Mode::Write)], &[last]);
    ir
}

/// Rule K7
#[test]
fn a_short_loop_becomes_its_turns() {
    let ir = nested_loops(&[2]);
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        n0: fill 64 bytes at m0+0, writes m0[0..64]
        n1: repeat 2 times, nodes n2..n4, writes m0[0..64], after n0
        n2: empty, after n1
        n3: fill 64 bytes at m0+0, writes m0[0..64], after n2
        n4: empty, after n3 n2 n1
        n5: fill 64 bytes at m0+0, writes m0[0..64], after n4
    "#]]
    .assert_eq(&ir.to_string());
    let Unrolled { ir, origins, loops, places } = unroll(&ir).unwrap();
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        n0: fill 64 bytes at m0+0, writes m0[0..64]
        n1: empty, after n0
        n2: empty, after n1
        n3: fill 64 bytes at m0+0, writes m0[0..64], after n2
        n4: empty, after n3 n2
        n5: fill 64 bytes at m0+0, writes m0[0..64], after n4
        n6: empty, after n5 n4 n1
        n7: fill 64 bytes at m0+0, writes m0[0..64], after n6
    "#]]
    .assert_eq(&ir.to_string());
    assert_eq!(origins, [0, 1, 2, 3, 2, 3, 4, 5].map(NodeId));
    assert_eq!(loops, [(NodeId(1), 2)]);
    assert_eq!(places, [UnrolledAt { begin: NodeId(1), end: NodeId(6), turns: 2 }]);
    // Without a turn.
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        n0: fill 64 bytes at m0+0, writes m0[0..64]
        n1: empty, after n0
        n2: empty, after n1
        n3: fill 64 bytes at m0+0, writes m0[0..64], after n2
    "#]]
    .assert_eq(&unroll(&nested_loops(&[0])).unwrap().ir.to_string());
}

/// Rules K1, K7
#[test]
fn loops_in_loops_are_replaced_and_what_is_too_long_stays() {
    let Unrolled { ir, origins, loops, places } = unroll(&nested_loops(&[2, 3])).unwrap();
    let fills = |ir: &Ir| ir.ids().filter(|node| matches!(ir.command(*node), Command::Fill { .. })).count();
    assert_eq!((fills(&ir), ir.bodies.len(), repeats(&ir).len()), (2 + 2 * 3, 0, 0));
    assert_eq!((ir.len(), origins.len()), (origins.len(), ir.topology.len()));
    assert_eq!(loops, [(NodeId(1), 2), (NodeId(3), 3)]);
    let at = |begin: u32, end: u32, turns: u64| UnrolledAt { begin: NodeId(begin), end: NodeId(end), turns };
    assert_eq!(places, [at(1, 20, 2), at(3, 10, 3), at(12, 19, 3)], "{ir}");
    // Every fill is after all before it.
    let all: Vec<NodeId> = ir.ids().filter(|node| matches!(ir.command(*node), Command::Fill { .. })).collect();
    assert!(all.windows(2).all(|pair| reaches(&ir, pair[0], pair[1])));
    // The outer loop is too long, so it stays, with the unrolled one in its body.
    let Unrolled { ir, loops, .. } = unroll(&nested_loops(&[200, 3])).unwrap();
    assert_eq!(loops, [(NodeId(3), 3)]);
    let left = repeats(&ir);
    assert_eq!(left, [Repeat { node: NodeId(1), turns: 200, stays: Some(Stays::Long) }]);
    let Command::Control(control) = ir.command(NodeId(1)) else { panic!("{ir}") };
    let [Body::Inlined { of, nodes }] = control.bodies.of(&ir.bodies) else { panic!("{ir}") };
    assert_eq!((*of, nodes.clone()), (NodeId(1), 2..11));
    // A loop without a turn, in each turn.
    let Unrolled { ir, origins, loops, places } = unroll(&nested_loops(&[2, 0])).unwrap();
    assert_eq!((loops, fills(&ir), origins.len()), (vec![(NodeId(1), 2), (NodeId(3), 0)], 2, ir.len()), "{ir}");
    let mut empty = places.iter().filter(|place| place.turns == 0);
    assert!(places.len() == 3 && empty.clone().count() == 2 && empty.all(|place| place.end.0 == place.begin.0 + 1));
    assert!(ir.ids().zip(ir.ids().skip(1)).all(|(one, next)| reaches(&ir, one, next)), "{ir}");
    assert!(unroll(&nested_loops(&[256])).is_some() && unroll(&nested_loops(&[257])).is_none());
    assert!(unroll(&nested_loops(&[u64::MAX])).is_none());
}

/// Rule K9: a loop beside a host task begins when that has ended, or not at all.
#[test]
fn loops_beside_what_the_host_does_stay() {
    let mut ir = nested_loops(&[2]);
    push(&mut ir, Command::Task(TaskId(0)), &[], &[5]);
    assert_eq!(repeats(&ir)[0].stays, Some(Stays::Beside(NodeId(6))));
    assert!(unroll(&ir).is_none());
    // In the body of another loop, nothing is beside it.
    let mut ir = nested_loops(&[300, 2]);
    push(&mut ir, Command::Task(TaskId(0)), &[], &[8]);
    assert_eq!(unroll(&ir).unwrap().loops, [(NodeId(3), 2)]);
    // An input is one for all turns.
    let mut ir = nested_loops(&[2]);
    let place = Location { mem: ViewId(0), offset: 0 };
    *ir.command_mut(NodeId(3)) = Command::Write { dst: place, size: 64, data: DataId(0), area: None };
    assert_eq!(repeats(&ir)[0].stays, Some(Stays::Node(NodeId(3))));
}

/// Rules M5, N3: a sub-graph has its memory already; the graph has not.
#[test]
fn allocations_of_a_sub_graph_are_there_already() {
    let with_memory = |kind| {
        let mut ir = with_views(1, kind);
        ir.allocs.push(AllocDecl { size: 64, zero: false, node: NodeId(0) });
        push(&mut ir, Command::Alloc(AllocId(0)), &[(0, Mode::Write)], &[]);
        push(&mut ir, Command::Free(AllocId(0)), &[(0, Mode::Write)], &[0]);
        ir
    };
    let (child, mut graph) = (with_memory(ViewKind::Buffer), with_memory(ViewKind::Owned(AllocId(0))));
    push(&mut graph, Command::SubGraph(ChildId(0)), &[], &[]);
    let mut output = Numbers::default();
    inline(&graph, |_| &child, &mut output).unwrap();
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        n0: alloc 0, 64 bytes, writes m0[0..64]
        n1: free 0, writes m0[0..64], after n0
        n2: empty
        n3: empty, after n2
        n4: empty, after n3
        n5: empty, after n4 n2
    "#]]
    .assert_eq(&output.ir.to_string());
    assert!(output.ir.shares_bytes);
}

#[test]
fn a_full_table_ends_the_pass_and_the_caller_may_set_a_command() {
    let child = child();
    let sub_graphs = |count| {
        let mut graph = Ir::default();
        for _ in 0..count {
            push(&mut graph, Command::SubGraph(ChildId(0)), &[], &[]);
        }
        graph
    };
    let (two, three) = (sub_graphs(2), sub_graphs(3));
    assert!(inline(&two, |_| &child, &mut Numbers::default()).is_some());
    assert!(inline(&three, |_| &child, &mut Numbers::default()).is_none(), "the third result");
    let grouped = Some((Source::Child { node: NodeId(1), child: ChildId(0), nth: 0 }, NodeId(1)));
    let mut output = Numbers { grouped, ..Numbers::default() };
    let done = inline(&two, |_| &child, &mut output).unwrap();
    let node = done.place(Source::Child { node: NodeId(1), child: ChildId(0), nth: 0 }, NodeId(1));
    assert_eq!((output.ir.command(node), output.ir.accesses(node).len()), (&Command::Empty, 1));
    assert_eq!(output.kernels.len(), 1, "the arguments of that launch are not copied");
}

/// Edges of a graph, and for some of its nodes the edges of the graph in it. An edge leads from the first to the second
/// number, modulo the number of nodes.
#[derive(Clone, Debug)]
struct Random(Vec<(u8, u8)>, Vec<(u8, Vec<(u8, u8)>)>);

const NODES: u32 = 6;

impl Arbitrary for Random {
    fn arbitrary(g: &mut Gen) -> Self {
        Self(Arbitrary::arbitrary(g), Arbitrary::arbitrary(g))
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        Box::new((self.0.clone(), self.1.clone()).shrink().map(|(edges, inner)| Self(edges, inner)))
    }
}

fn graph_of(edges: &[(u8, u8)], kind: impl Fn(u32) -> Command<crate::ir::ById>) -> Ir {
    let mut ir = Ir::default();
    for node in 0..NODES {
        push(&mut ir, kind(node), &[], &[]);
    }
    for (from, to) in edges {
        let (from, to) = (NodeId(u32::from(*from) % NODES), NodeId(u32::from(*to) % NODES));
        if from != to {
            // An edge that would close a cycle is refused.
            let _ = std::sync::Arc::make_mut(&mut ir.topology).add_edge(from, to, true);
        }
    }
    ir
}

fn reaches(ir: &Ir, from: NodeId, to: NodeId) -> bool {
    let mut todo = vec![to];
    let mut seen = vec![false; ir.len()];
    while let Some(node) = todo.pop() {
        if node == from {
            return true;
        }
        todo.extend(ir.topology.preds(node).filter(|pred| !std::mem::replace(&mut seen[pred.index()], true)));
    }
    false
}

/// Rules N1, N2: all nodes of a sub-graph are where its node was, and ordered as in its executable.
#[test]
fn what_reaches_what_stays() {
    fn property(Random(edges, inner): Random) -> bool {
        let children: Vec<Ir> = inner.iter().map(|(_, edges)| graph_of(edges, |_| Command::Empty)).collect();
        let child_at =
            |node: u32| inner.iter().position(|(at, _)| u32::from(*at) % NODES == node).map(|at| ChildId(at as u32));
        let graph = graph_of(&edges, |node| child_at(node).map_or(Command::Empty, Command::SubGraph));
        let mut output = Numbers::default();
        let done = inline(&graph, |child| &children[child.index()], &mut output).unwrap();
        let flat = &output.ir;
        let nodes_of = |node: NodeId| match child_at(node.0) {
            Some(child) => {
                let place = |id| done.place(Source::Child { node, child, nth: 0 }, id);
                children[child.index()].ids().map(place).collect()
            }
            None => vec![done.place(Source::Graph, node)],
        };
        let between = graph.ids().all(|a| {
            graph.ids().filter(|b| a != *b).all(|b| {
                let expected = reaches(&graph, a, b);
                nodes_of(a).iter().all(|a| nodes_of(b).iter().all(|b| reaches(flat, *a, *b) == expected))
            })
        });
        let within = graph.ids().all(|node| {
            child_at(node.0).is_none_or(|number| {
                let child = &children[number.index()];
                let place = |id| done.place(Source::Child { node, child: number, nth: 0 }, id);
                child.ids().all(|a| child.ids().all(|b| reaches(child, a, b) == reaches(flat, place(a), place(b))))
            })
        });
        let origins = flat.ids().all(|id| {
            let node = done.origins[id.index()].node;
            done.place(Source::Graph, node) <= id
        });
        between && within && origins && done.origins.len() == flat.len()
    }
    QuickCheck::new().tests(300).quickcheck(property as fn(Random) -> bool);
}
