//! Which launches become chains, and the graphs in which they are one node. No device is needed.

use std::collections::HashMap;

use expect_test::expect;

use super::elementwise::Uses;
use super::fuse::{BYTES, Chains, EachItem, Fused, Limits, Need, Piece, Pointer, WhyApart, chains, writes_otherwise};
use crate::command::{Arg, Command, Control, ControlKind, Elementwise, Grid, Location};
use crate::ir::{
    Access, Body, ExternalId, Ir, KernelDecl, KernelId, Mode, NodeId, RootId, TaskId, View, ViewId, ViewKind,
};

/// A graph of launches of `f`, each of which reads and writes memory, and other nodes.
#[derive(Default)]
pub(super) struct Written {
    pub(super) ir: Ir,
    pub(super) keeps_order: bool,
    pub(super) pieces: HashMap<NodeId, Piece>,
}

impl Written {
    pub(super) fn new(memory: u32) -> Self {
        let mut ir = Ir::default();
        let view = |root| View { root: RootId(root), root_size: 64, offset: 0, size: 64, kind: ViewKind::Buffer };
        ir.views = (0..memory).map(view).collect();
        ir.kernels.push(KernelDecl { name: "f".into(), built: true, checked: true });
        Self { ir, keeps_order: false, pieces: HashMap::new() }
    }

    fn push(&mut self, command: Command<crate::ir::ById>, uses: &[(u32, Mode)], after: &[u32]) -> u32 {
        let uses = uses.iter().map(|(view, mode)| Access { view: ViewId(*view), range: 0..64, mode: *mode });
        let uses: Vec<Access> = uses.collect();
        let mut after = after.iter().copied().map(NodeId).collect();
        self.ir.push_node(command, uses.into_iter(), &mut after).unwrap().0
    }

    /// A launch that changes memory, with a number of its own.
    pub(super) fn launch(&mut self, memory: u32, number: u8, after: &[u32]) -> u32 {
        self.launch_of(0, memory, number, after)
    }

    fn launch_of(&mut self, program: usize, memory: u32, number: u8, after: &[u32]) -> u32 {
        let value = self.ir.push_bytes(&[number; 4]).unwrap();
        let args = self.ir.push_args([Arg::Memory(ViewId(memory)), Arg::Value(value)].into_iter()).unwrap();
        let grid = Grid { dims: 1, offset: [0; 3], global: [8, 1, 1], local: None };
        let kernel = Command::Kernel { kernel: KernelId(0), args, grid, bound: None, prints: false, elementwise: None };
        let node = self.push(kernel, &[(memory, Mode::ReadWrite)], after);
        let needs = vec![Need::Memory(ViewId(memory)), Need::Value(0, vec![number; 4]), Need::Size(8)];
        self.pieces.insert(
            NodeId(node),
            Piece {
                program,
                needs,
                shares: Vec::new(),
                pointers: Vec::new(),
                in_turn: true,
                items: 8,
                waiting: None,
                each_item: None,
                turns: false,
                begins: false,
                launch: true,
            },
        );
        node
    }

    /// A launch over the range with this number, with uses of memory as (memory, mode, bytes of a work-item or 0). It fits in turn only if
    /// the range is that with number 0, and even there each work-item is better on its own. Returns None if it fits in no way.
    pub(super) fn launch_each(&mut self, range: usize, uses: &[(u32, Mode, usize)], after: &[u32]) -> Option<u32> {
        let args = uses.iter().map(|(memory, ..)| Arg::Memory(ViewId(*memory)));
        let args = self.ir.push_args(args.collect::<Vec<_>>().into_iter()).unwrap();
        let promised = (0..).zip(uses).filter(|(_, (.., bytes))| *bytes > 0).map(|(at, (.., bytes))| (at, *bytes));
        let grid = Grid { dims: 1, offset: [0; 3], global: [8 + range, 1, 1], local: None };
        let elementwise = Elementwise::of(promised.collect());
        let kernel = Command::Kernel { kernel: KernelId(0), args, grid, bound: None, prints: false, elementwise };
        let modes: Vec<(u32, Mode)> = uses.iter().map(|(memory, mode, _)| (*memory, *mode)).collect();
        let node = self.push(kernel, &modes, after);
        let mut needs: Vec<Need> = uses.iter().map(|(memory, ..)| Need::Memory(ViewId(*memory))).collect();
        needs.push(Need::Size(8 + range as u32));
        let each_item =
            Uses::of(&self.ir, NodeId(node)).map(|uses| EachItem { range, uses, is_better: true, in_groups: false });
        let piece = Piece {
            program: 0,
            needs,
            shares: Vec::new(),
            pointers: Vec::new(),
            in_turn: range == 0,
            items: 8,
            waiting: None,
            each_item,
            turns: false,
            begins: false,
            launch: true,
        };
        if piece.each_item.is_none() && !piece.in_turn {
            return None;
        }
        self.pieces.insert(NodeId(node), piece);
        Some(node)
    }

    /// Makes a launch one of another kernel.
    pub(super) fn other_kernel(&mut self, node: u32) {
        if let Command::Kernel { kernel, .. } = self.ir.command_mut(NodeId(node)) {
            *kernel = KernelId(1);
        }
    }

    pub(super) fn read(&mut self, memory: u32, after: &[u32]) -> u32 {
        let src = Location { mem: ViewId(memory), offset: 0 };
        let output = crate::ir::ResultId(self.ir.results);
        self.ir.results += 1;
        self.push(Command::Read { src, size: 64, output, area: None }, &[(memory, Mode::Read)], after)
    }

    pub(super) fn empty(&mut self, after: &[u32]) -> u32 {
        self.push(Command::Empty, &[], after)
    }

    pub(super) fn chains(&self, bytes: usize) -> Chains {
        chains(&self.ir, Limits { bytes, each_item: 256 }, self.keeps_order, |node| self.pieces.get(&node))
    }

    pub(super) fn launches(&self, most: usize) -> Vec<Vec<u32>> {
        let of = self.chains(most).chains;
        of.iter().map(|chain| chain.launches.iter().map(|node| node.0).collect()).collect()
    }

    /// Where chains are cut: a launch, and the next one.
    pub(super) fn cuts(&self, most: usize) -> Vec<(u32, u32, WhyApart)> {
        self.chains(most).cuts.iter().map(|cut| (cut.before.0, cut.behind.0, cut.why)).collect()
    }

    pub(super) fn fused(&self) -> Fused {
        let chains = self.chains(1024);
        let mut ir = self.ir.clone();
        ir.kernels.push(KernelDecl { name: "fused".into(), built: true, checked: true });
        let grid = Grid { dims: 1, offset: [0; 3], global: [1; 3], local: None };
        let command = |chain: &super::fuse::Chain| {
            let args = chain.needs.iter().filter_map(|need| match need {
                Need::Memory(view) => Some(Arg::Memory(*view)),
                Need::Value(..) | Need::Size(_) | Need::Local(..) => None,
            });
            let args = ir.push_args(args.collect::<Vec<_>>().into_iter()).unwrap();
            Some(Command::Kernel { kernel: KernelId(1), args, grid, bound: None, prints: false, elementwise: None })
        };
        let commands: Vec<_> = chains.chains.iter().map(command).collect();
        chains.write(&ir, &commands).unwrap()
    }
}

/// Rule Z1
#[test]
fn launches_one_after_another_become_one_node() {
    let mut graph = Written::new(2);
    let a = graph.launch(0, 1, &[]);
    let b = graph.launch(1, 2, &[]);
    let c = graph.launch(0, 3, &[a, b]);
    let read = graph.read(0, &[c]);
    graph.read(1, &[b]);
    graph.launch(0, 3, &[read]);
    assert_eq!(graph.launches(1024), [[a, b, c]]);
    let Fused { ir, origins } = graph.fused();
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        m1: buffer, bytes 0..64 of root 1 (64)
        n0: kernel fused(m0, m1) over [1], updates m0[0..64], updates m1[0..64]
        n1: read 64 bytes at m0+0 as result 0, reads m0[0..64], after n0
        n2: read 64 bytes at m1+0 as result 1, reads m1[0..64], after n0
        n3: kernel f(m0, 03030303) over [8], updates m0[0..64], after n1
    "#]]
    .assert_eq(&ir.to_string());
    assert_eq!(origins[0], [a, b, c].map(NodeId));
    assert_eq!(origins.len(), ir.len());
    let needs = &graph.chains(1024).chains[0].needs;
    assert_eq!(needs.len(), 2 + 3 + 1, "each once");
}

/// Rule Z5: arguments that get other values by themselves are not one, although they are equal now.
#[test]
fn equal_arguments_are_one_only_where_they_stay_equal() {
    let places = |shares: [&[u32]; 4]| {
        let mut graph = Written::new(2);
        let nodes = [(0, 7), (0, 7), (1, 7), (0, 7)].map(|(memory, number)| graph.launch(memory, number, &[]));
        for (node, shares) in nodes.iter().zip(shares) {
            graph.pieces.get_mut(&NodeId(*node)).unwrap().shares = shares.to_vec();
        }
        let mut chains = graph.chains(1024).chains;
        assert_eq!(chains.len(), 1);
        let super::fuse::Chain { needs, places, .. } = chains.remove(0);
        // Each argument is what the launch needs.
        for (node, places) in nodes.iter().zip(&places) {
            let given: Vec<&Need> = places.iter().map(|place| &needs[*place as usize]).collect();
            assert_eq!(given, graph.pieces[&NodeId(*node)].needs.iter().collect::<Vec<_>>());
        }
        (needs.len(), places)
    };
    assert_eq!(places([&[]; 4]), (4, vec![vec![0, 1, 2], vec![0, 1, 2], vec![3, 1, 2], vec![0, 1, 2]]));
    // Two launches have a parameter, and one has a number of its own.
    let (count, found) = places([&[0, 1, 0], &[0, 2, 0], &[0, 1, 0], &[]]);
    assert_eq!((count, found), (6, vec![vec![0, 1, 2], vec![0, 3, 2], vec![4, 1, 2], vec![0, 5, 2]]));
    // Sizes and memory too.
    let (count, found) = places([&[3, 0, 0], &[3, 0, 0], &[], &[0, 0, 4]]);
    assert_eq!((count, found), (6, vec![vec![0, 1, 2], vec![0, 1, 2], vec![3, 1, 2], vec![4, 1, 5]]));
}

/// Rules Z5, Z8: whether launches may still be one when their memory has changed.
#[test]
fn launches_are_together_only_if_their_memory_allows_it() {
    let mut graph = Written::new(3);
    let nodes = [0, 1, 2].map(|memory| NodeId(graph.launch(memory, 1, &[])));
    let takes = |constant: [&[u32]; 3]| {
        let mut together = super::fuse::Together::default();
        let pointer = |to: &u32| Pointer { to: ViewId(*to), is_constant: true, element: Some(0) };
        let pointers = |of: &[u32]| of.iter().map(pointer).collect::<Vec<_>>();
        nodes
            .iter()
            .zip(constant)
            .filter(|(node, of)| together.takes(&graph.ir, **node, &pointers(of), None).is_ok())
            .count()
    };
    assert_eq!(takes([&[], &[], &[]]), 3);
    assert_eq!(takes([&[0], &[], &[]]), 3, "what a launch does with its own memory is its own affair");
    assert_eq!(takes([&[1], &[], &[]]), 2, "a later one writes it");
    assert_eq!(takes([&[], &[], &[0]]), 2, "an earlier one has written it");
    assert_eq!(takes([&[2], &[2], &[]]), 2);
}

/// Nodes that only order others do not divide a chain, and are part of it where they are between its launches.
#[test]
fn nodes_that_only_order_are_part_of_a_chain() {
    let mut graph = Written::new(2);
    let begin = graph.empty(&[]);
    let a = graph.launch(0, 1, &[begin]);
    let between = graph.empty(&[a]);
    let b = graph.launch(1, 2, &[between]);
    let end = graph.empty(&[b]);
    graph.read(1, &[end]);
    assert_eq!(graph.launches(1024), [[a, b]]);
    let Fused { ir, origins } = graph.fused();
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        m1: buffer, bytes 0..64 of root 1 (64)
        n0: empty
        n1: kernel fused(m0, m1) over [1], updates m0[0..64], updates m1[0..64], after n0
        n2: empty, after n1
        n3: read 64 bytes at m1+0 as result 0, reads m1[0..64], after n2
    "#]]
    .assert_eq(&ir.to_string());
    assert_eq!(origins[1], [a, b, between].map(NodeId));
}

/// A node of another kind that has to come between two launches divides them; one that may come before or after does not.
#[test]
fn what_has_to_come_between_divides() {
    let mut graph = Written::new(3);
    let a = graph.launch(0, 1, &[]);
    let other = graph.read(2, &[]);
    let b = graph.launch(0, 2, &[a]);
    let read = graph.read(0, &[b]);
    let c = graph.launch(1, 3, &[a, other]);
    let d = graph.launch(0, 4, &[read]);
    let e = graph.launch(0, 5, &[d]);
    assert_eq!(graph.launches(1024), [vec![a, b, c], vec![d, e]]);
    assert_eq!(graph.cuts(1024), [(c, d, WhyApart::Between)]);
    let Fused { ir, .. } = graph.fused();
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        m1: buffer, bytes 0..64 of root 1 (64)
        m2: buffer, bytes 0..64 of root 2 (64)
        n0: read 64 bytes at m2+0 as result 0, reads m2[0..64]
        n1: kernel fused(m0, m1) over [1], updates m0[0..64], updates m1[0..64], after n0
        n2: read 64 bytes at m0+0 as result 1, reads m0[0..64], after n1
        n3: kernel fused(m0) over [1], updates m0[0..64], after n2
    "#]]
    .assert_eq(&ir.to_string());
}

/// Rule Z3: launches of different programs, or with too many arguments, are not in one chain.
/// Rule Z1: launches that wait for different host nodes stay apart, with what only orders others. Together, a host node could wait for
/// what waits for it, without an edge between them.
#[test]
fn what_waits_for_the_host_stays_apart_from_what_does_not() {
    for alone in [false, true] {
        let mut graph = Written::new(4);
        let task = graph.push(Command::Task(TaskId(0)), &[], &[]);
        let empty = graph.empty(&[task]);
        let (a, b) = (graph.launch(0, 1, &[empty]), graph.launch(1, 2, &[]));
        let (c, d) = (graph.launch(0, 3, &[a]), graph.launch(1, 4, &[b]));
        let other = graph.empty(&[d]);
        graph.push(Command::Event { event: ExternalId(0), signals: true }, &[], &[other]);
        graph.ir.shares_bytes = alone;
        // With a fixed order they are no neighbours.
        let expected = if alone { vec![] } else { vec![vec![b, d], vec![a, c]] };
        let mut launches = graph.launches(1024);
        launches.sort_by_key(|chain| std::cmp::Reverse(chain[0]));
        assert_eq!(launches, expected);
        assert!(graph.cuts(1024).iter().all(|(.., why)| *why == WhyApart::Hosts) && !graph.cuts(1024).is_empty());
        let Fused { ir, .. } = graph.fused();
        let signals = |node: &NodeId| matches!(ir.command(*node), Command::Event { .. });
        let (signal, task) = (ir.ids().find(signals).unwrap(), NodeId(task));
        let tasks = |node: &NodeId| matches!(ir.command(*node), Command::Task(_));
        assert!(!ir.topology.is_after(signal, ir.ids().find(tasks).unwrap_or(task)), "{ir}");
    }
    // The same host nodes, by different ways.
    let mut graph = Written::new(2);
    let tasks = [0, 1].map(|number| graph.push(Command::Task(TaskId(number)), &[], &[]));
    let both = graph.empty(&tasks);
    let (a, b) = (graph.launch(0, 1, &tasks), graph.launch(1, 2, &[both]));
    let c = graph.launch(0, 3, &[tasks[1], a]);
    // Lane by lane: no edge orders `b`.
    assert_eq!(graph.launches(1024), [[a, c, b]]);
}

#[test]
fn programs_and_arguments_divide() {
    let mut graph = Written::new(4);
    let [a, b] = [0, 1].map(|at| graph.launch_of(0, at, 1, &[]));
    let c = graph.launch_of(1, 2, 1, &[a]);
    let d = graph.launch_of(1, 3, 1, &[b, c]);
    let e = graph.launch_of(0, 0, 2, &[d]);
    assert_eq!(graph.launches(1024), [[a, b], [c, d]]);
    let f = graph.launch_of(0, 1, 3, &[e]);
    assert_eq!(graph.launches(1024), [[a, b], [c, d], [e, f]]);
    assert_eq!(graph.cuts(1024), [(b, c, WhyApart::Programs), (d, e, WhyApart::Programs)]);
    // Two launches need two addresses, a number or two, and a size: 8 + 8 + 4 + 4, or 28 bytes. A table is 8 bytes.
    assert_eq!(graph.launches(28), [[a, b], [c, d], [e, f]]);
    assert_eq!(graph.launches(24), [[a, b], [c, d], [e, f]]);
    assert_eq!(graph.launches(23), Vec::<Vec<u32>>::new());
    let why = graph.cuts(23).into_iter().map(|(.., why)| why).collect::<Vec<_>>();
    assert_eq!(
        why,
        [WhyApart::Arguments, WhyApart::Programs, WhyApart::Arguments, WhyApart::Programs, WhyApart::Arguments]
    );
}

/// Rule Z8: memory that a compiler takes for constant in one launch is not written by another of its chain.
#[test]
fn constant_memory_divides() {
    let mut graph = Written::new(2);
    let a = graph.launch(0, 1, &[]);
    let b = graph.launch(1, 2, &[a]);
    graph.pieces.get_mut(&NodeId(b)).unwrap().pointers =
        vec![Pointer { to: ViewId(0), is_constant: true, element: Some(0) }];
    let c = graph.launch(1, 3, &[b]);
    let d = graph.launch(0, 4, &[c]);
    let e = graph.launch(1, 5, &[d]);
    assert_eq!(graph.launches(1024), [[b, c], [d, e]]);
    assert_eq!(graph.cuts(1024), [(a, b, WhyApart::Constant), (c, d, WhyApart::Constant)]);
}

/// Fills and copies are bytes, which may be in a chain with any type, and are no chain without a launch.
#[test]
fn what_clgraph_writes_is_worth_a_kernel_only_beside_a_launch() {
    let mut graph = Written::new(1);
    let nodes = [0, 1, 2].map(|number| graph.launch(0, number, &[]));
    for (node, element) in nodes.iter().zip([BYTES, 4, BYTES]) {
        let piece = graph.pieces.get_mut(&NodeId(*node)).unwrap();
        piece.pointers = vec![Pointer { to: ViewId(0), is_constant: false, element: Some(element) }];
        piece.launch = element != BYTES;
    }
    assert_eq!(graph.launches(1024), [nodes]);
    graph.pieces.get_mut(&NodeId(nodes[1])).unwrap().launch = false;
    assert_eq!(graph.launches(1024), Vec::<Vec<u32>>::new());
}

/// Rule Z9: a kernel that looks at a word sees what a launch writes there by a type of words, and all that is elsewhere.
#[test]
fn a_condition_is_written_as_a_word() {
    let mut graph = Written::new(2);
    let node = NodeId(graph.launch(0, 1, &[]));
    let view = ViewId(0);
    let size = graph.ir.views[0].size;
    let pointer = |element| [Pointer { to: view, is_constant: false, element }];
    let otherwise = |element: Option<u32>, of: ViewId, bytes: std::ops::Range<usize>| {
        writes_otherwise(&graph.ir, node, &pointer(element), (of, bytes), |number| number == 7)
    };
    assert!(!otherwise(Some(7), view, 0..4));
    assert!(otherwise(Some(6), view, 0..4));
    assert!(otherwise(None, view, 0..4));
    assert!(!otherwise(Some(6), ViewId(1), 0..4));
    assert!(!otherwise(Some(6), view, size..size + 4));
}

/// A fill comes before launches that each work-item does on its own, and does not divide them.
#[test]
fn fills_do_not_divide_launches_on_their_own() {
    let mut graph = Written::new(2);
    let first = graph.launch_each(1, &[(0, Mode::ReadWrite, 4)], &[]).unwrap();
    let fill = graph.launch(1, 1, &[]);
    graph.pieces.get_mut(&NodeId(fill)).unwrap().launch = false;
    let mut all = vec![first];
    for _ in 0..4 {
        let after = [*all.last().unwrap(), fill];
        all.push(graph.launch_each(1, &[(0, Mode::ReadWrite, 4)], &after).unwrap());
    }
    assert_eq!(graph.launches(1024), [all]);
}

/// Rules Z1, Z8: launches that touch the same bytes by several types are not one kernel, in which a compiler may change their order.
#[test]
fn types_divide() {
    let mut graph = Written::new(2);
    let nodes = [0, 0, 1].map(|memory| NodeId(graph.launch(memory, 1, &[])));
    let read = {
        let args = graph.ir.push_args([Arg::Memory(ViewId(0))].into_iter()).unwrap();
        let grid = Grid { dims: 1, offset: [0; 3], global: [8, 1, 1], local: None };
        let kernel = Command::Kernel { kernel: KernelId(0), args, grid, bound: None, prints: false, elementwise: None };
        [(); 2].map(|()| NodeId(graph.push(kernel.clone(), &[(0, Mode::Read)], &[])))
    };
    let takes = |launches: &[(NodeId, u32, Option<u32>)]| {
        let mut together = super::fuse::Together::default();
        let fits = |(node, to, element): &&(NodeId, u32, Option<u32>)| {
            let pointer = Pointer { to: ViewId(*to), is_constant: false, element: *element };
            let taken = together.takes(&graph.ir, *node, &[pointer], None);
            assert!(matches!(taken, Ok(()) | Err(WhyApart::Types)));
            taken.is_ok()
        };
        launches.iter().filter(fits).count()
    };
    let [a, b, other] = nodes;
    assert_eq!(takes(&[(a, 0, Some(1)), (b, 0, Some(1)), (other, 1, Some(2))]), 3, "other memory");
    assert_eq!(takes(&[(a, 0, Some(1)), (b, 0, Some(2)), (a, 0, Some(1))]), 2, "another type");
    assert_eq!(takes(&[(a, 0, None), (b, 0, None), (b, 0, Some(1))]), 1, "any type");
    assert_eq!(takes(&[(read[0], 0, Some(1)), (read[1], 0, Some(2)), (read[0], 0, None)]), 3, "only read");
    assert_eq!(takes(&[(read[0], 0, Some(1)), (a, 0, Some(2)), (a, 0, Some(1))]), 2, "read before it is written");
}

/// Rule M3: nodes that share bytes keep their order, so only neighbours are a chain.
#[test]
fn nodes_that_share_bytes_keep_their_order() {
    let mut graph = Written::new(2);
    let a = graph.launch(0, 1, &[]);
    let read = graph.read(1, &[]);
    let b = graph.launch(0, 2, &[a]);
    let c = graph.launch(0, 3, &[b]);
    assert_eq!(graph.launches(1024), [[a, b, c]]);
    // So they do where conflicts without an order are allowed.
    graph.keeps_order = true;
    assert_eq!(graph.launches(1024), [[b, c]]);
    (graph.keeps_order, graph.ir.shares_bytes) = (false, true);
    assert_eq!(graph.launches(1024), [[b, c]]);
    std::sync::Arc::make_mut(&mut graph.ir.topology).add_edge(NodeId(c), NodeId(read), false).unwrap();
    assert_eq!(graph.launches(1024), Vec::<Vec<u32>>::new());
}

/// Rule K3: bodies have chains of their own, and stay bodies.
#[test]
fn bodies_have_their_own_chains() {
    let mut graph = Written::new(2);
    let a = graph.launch(0, 1, &[]);
    let bodies = [Body::Inlined { of: NodeId(1), nodes: 2..5 }, Body::Inlined { of: NodeId(1), nodes: 5..7 }];
    let bodies = graph.ir.push_bodies(bodies.into_iter()).unwrap();
    let condition = Some(Location { mem: ViewId(1), offset: 0 });
    let branch = Control { kind: ControlKind::When, condition, bodies };
    let branch = graph.push(Command::Control(Box::new(branch)), &[(0, Mode::ReadWrite), (1, Mode::Read)], &[a]);
    let then = graph.empty(&[branch]);
    let b = graph.launch(0, 2, &[then]);
    let c = graph.launch(0, 3, &[b]);
    let otherwise = graph.empty(&[c, then]);
    let d = graph.launch(0, 4, &[otherwise]);
    let exit = graph.empty(&[d, otherwise, branch]);
    let e = graph.launch(0, 5, &[exit]);
    let f = graph.launch(1, 6, &[]);
    assert_eq!(graph.launches(1024), [vec![a, f], vec![b, c]]);
    let Fused { ir, origins } = graph.fused();
    expect![[r#"
        m0: buffer, bytes 0..64 of root 0 (64)
        m1: buffer, bytes 0..64 of root 1 (64)
        n0: kernel fused(m0, m1) over [1], updates m0[0..64], updates m1[0..64]
        n1: when at m1+0, nodes n2..n4, nodes n4..n6, updates m0[0..64], reads m1[0..64], after n0
        n2: empty, after n1
        n3: kernel fused(m0) over [1], updates m0[0..64], after n2
        n4: empty, after n3 n2
        n5: kernel f(m0, 04040404) over [8], updates m0[0..64], after n4
        n6: empty, after n5 n4 n1
        n7: kernel f(m0, 05050505) over [8], updates m0[0..64], after n6
    "#]]
    .assert_eq(&ir.to_string());
    assert!(origins.iter().any(|of| *of == [NodeId(e)]));
}
