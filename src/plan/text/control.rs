//! Branches and loops: the schedule of the graph, in which they are host tasks, and those of their bodies.

use super::paths::recording_device;
use super::*;
use crate::plan::check::check;

/// A branch or loop whose bodies are being read.
pub(super) struct Open {
    name: String,
    node: NodeId,
    /// The bodies that are still to be read.
    bodies: Range<usize>,
    /// The entry of the body that is being read.
    pub(super) entry: NodeId,
    /// What is known of memory outside.
    outside: Hazards,
}

/// Bodies are written among the nodes of the graph, as `lower/` leaves them: an entry and the nodes of each, one body
/// after another, and an exit.
impl Reader {
    pub(super) fn control(&mut self, words: &[&str]) -> (Command<ById>, Vec<Access>) {
        let number = |word: &str| word.parse::<usize>().unwrap();
        let (kind, count, uses) = match words[0] {
            "repeat" => (ControlKind::Repeat { turns: number(words[1]) as u64 }, 1, &words[2..]),
            "while" => (ControlKind::While { at_least_once: false, at_most: None }, 1, &words[2..]),
            "when" => (ControlKind::When, number(words[2]), &words[3..]),
            _ => (ControlKind::Switch, number(words[2]), &words[3..]),
        };
        let mode = |word| if word == "read" { Mode::Read } else { Mode::ReadWrite };
        let mut accesses: Vec<Access> = uses.chunks(2).map(|pair| self.access(pair[1], mode(pair[0]))).collect();
        let decides = !matches!(kind, ControlKind::Repeat { .. });
        let condition = decides.then(|| Location { mem: self.view(words[1]), offset: 0 });
        accesses.extend(decides.then(|| self.access(&format!("{}[0..4]", words[1]), Mode::Read)));
        let of = NodeId(self.ir.len() as u32);
        let bodies = self.ir.push_bodies((0..count).map(|_| Body::Inlined { of, nodes: 0..0 })).unwrap();
        (Command::Control(Box::new(Control { kind, condition, bodies })), accesses)
    }

    /// From here on nodes are in the first body of a branch or loop.
    pub(super) fn open_bodies(&mut self, name: &str, node: NodeId, bodies: Range<usize>) {
        let outside = std::mem::take(&mut self.hazards);
        self.open.push(Open { name: name.to_owned(), node, bodies, entry: node, outside });
        self.begin_body(vec![node]);
    }

    pub(super) fn next_body(&mut self) {
        let last = self.end_body();
        self.begin_body(last);
    }

    pub(super) fn end_bodies(&mut self) {
        let mut last = self.end_body();
        let Open { name, node, bodies, outside, .. } = self.open.pop().unwrap();
        assert!(bodies.is_empty(), "{name} has more bodies");
        last.push(node);
        self.hazards = outside;
        let exit = self.push(&format!("{name}-exit"), Command::Empty, vec![], last);
        self.exits.insert(node, exit);
        self.nodes.insert(name, exit);
    }

    fn begin_body(&mut self, after: Vec<NodeId>) {
        self.hazards = Hazards::default();
        let entry = self.push("entry", Command::Empty, vec![], after);
        let open = self.open.last_mut().unwrap();
        open.bodies.next().expect("one body more than the node has");
        open.entry = entry;
    }

    /// Returns the last nodes of the body.
    fn end_body(&mut self) -> Vec<NodeId> {
        let Open { node: of, entry, bodies, .. } = self.open.last().unwrap();
        let nodes = entry.0..self.ir.len() as u32;
        let is_leaf = |node: &NodeId| self.ir.topology.succs(*node).next().is_none();
        let mut last: Vec<NodeId> = nodes.clone().skip(1).map(NodeId).filter(is_leaf).collect();
        last.push(*entry);
        self.ir.bodies[bodies.start - 1] = Body::Inlined { of: *of, nodes };
        last
    }
}

/// Draws the schedules of the graph and of all bodies.
fn schedules(graph: &str, caps: &Caps, path: Path) -> String {
    let reader = read(graph);
    let plan = plan(&reader.ir, caps, &asked(path)).unwrap();
    let mut text = String::new();
    for (number, flow) in plan.flows.iter().enumerate() {
        match number.checked_sub(1).map(|body| (body, &reader.ir.bodies[body])) {
            Some((body, Body::Inlined { of, .. })) => {
                let Command::Control(control) = reader.ir.command(*of) else { panic!("{of:?}") };
                let nth = body - control.bodies.ends().0 as usize;
                writeln!(text, "body {nth} of {}", reader.names[of.index()]).unwrap();
            }
            _ => text.push_str("the graph\n"),
        }
        let shown = instructions(&reader, &plan, flow, &flow.schedule);
        shown.iter().for_each(|line| writeln!(text, "  {line}").unwrap());
    }
    text
}

/// Rule K1: the graph is cut where the host decides, and a turn of the body is a schedule of its own.
#[test]
fn a_loop_has_its_body_beside_the_graph() {
    let graph = "buffer x 64
        buffer y 64
        a: fill x 64
        other: fill y 64
        l: repeat 3 update x
            b: kernel f update x
            c: kernel g update x
        end
        d: copy x y 64";
    expect![[r#"
        the graph
          partition 0
          0: a, event 0
          partition 1
          0: other, event 1
          partition 2
          0: d, event 2
          l waits for 0
        body 0 of l
          0: b c
    "#]]
    .assert_eq(&schedules(graph, &new_device(), Path::Replay));
    expect![[r#"
        the graph
          partition 0
          0: in command buffers a, event 0
          partition 1
          0: in command buffers other, event 1
          partition 2
          0: in command buffers d, event 2
          l waits for 0
        body 0 of l
          0: in command buffers b c
    "#]]
    .assert_eq(&schedules(graph, &recording_device(), Path::Native));
}

#[test]
fn a_branch_has_a_schedule_for_each_way() {
    let graph = "buffer x 64
        buffer y 64
        a: kernel f write x
        i: when x 2 update y
            b: fill y 64
        next
            c: write y 8
            d: kernel g update y
        end
        r: read y 64";
    expect![[r#"
        the graph
          partition 0
          0: a, event 0
          partition 1
          0: r, event 1
          i waits for 0
        body 0 of i
          0: b
        body 1 of i
          0: c d
    "#]]
    .assert_eq(&schedules(graph, &new_device(), Path::Replay));
}

#[test]
fn a_switch_has_a_schedule_for_each_case() {
    let graph = "buffer x 64
        buffer y 64
        s: switch x 3 update y
            a: fill y 64
        next
        next
            b: fill y 8
            c: fill y 16
        end
        r: read y 64";
    expect![[r#"
        the graph
          partition 0
          0: r, event 0
          s waits for
        body 0 of s
          0: a
        body 1 of s
        body 2 of s
          0: b c
    "#]]
    .assert_eq(&schedules(graph, &new_device(), Path::Replay));
}

/// A host task and a branch cut the body that they are in, and nothing else.
#[test]
fn bodies_are_cut_by_what_is_in_them() {
    let graph = "buffer x 64
        buffer y 64
        l: while x update y update x
            a: kernel f update y
            t: task read y
            b: kernel g update y
            i: when x 1 update y
                c: fill y 64
            end
            d: kernel f update x
        end
        r: read y 64";
    expect![[r#"
        the graph
          partition 0
          0: r, event 0
          l waits for
        body 0 of l
          partition 0
          0: a, event 0
          partition 1
          0: b, event 1
          partition 2
          0: d, event 2
          t waits for 0
          i waits for 1
        body 0 of i
          0: c
    "#]]
    .assert_eq(&schedules(graph, &new_device(), Path::Replay));
}

/// Rule K1: the checker sees commands and tasks that are not in their body, and mistakes inside a body.
#[test]
fn the_checker_sees_wrong_flows() {
    let reader = read(
        "buffer x 64
         buffer y 64
         p: fill y 64
         i: when x 2 update y
             a: fill y 64
             t: task read y
             b: fill y 64
         next
             c: fill y 8
             d: fill y 16
         end",
    );
    let options = asked(Path::Replay);
    let good = plan(&reader.ir, &new_device(), &options).unwrap();
    let named = |name: &str| reader.nodes[name].0;
    let order: Vec<NodeId> = reader.ir.ids().collect();
    let checked = |plan: &Plan| check(&reader.ir, &order, plan, &options);
    assert_eq!(checked(&good), Ok(()));
    let broken = |change: &dyn Fn(&mut Vec<Flow>)| {
        let mut plan = good.clone();
        change(&mut plan.flows);
        checked(&plan).unwrap_err()
    };
    // The steps are `p`, `a` and `b`, `c` and `d`.
    assert_eq!(broken(&|flows| flows[1].steps.start = 2), "flow 1 starts at step 2, and not at 1");
    assert_eq!(broken(&|flows| flows[2].steps.end = 4), "3 flows end at step 4 of 5");
    let moved = |flows: &mut Vec<Flow>| (flows[1].steps.end, flows[2].steps.start) = (2, 2);
    let why = |name: &str, flow: usize| format!("node {} is in flow {flow}, which is not its body", named(name));
    assert_eq!(broken(&moved), why("b", 2));
    let out = |flows: &mut Vec<Flow>| flows[0].tasks = std::mem::take(&mut flows[1].tasks);
    assert_eq!(broken(&out), why("t", 0));
    let out = |flows: &mut Vec<Flow>| flows[2].tasks = flows[1].tasks.clone();
    assert_eq!(broken(&out), why("t", 2));
    let empty = |flows: &mut Vec<Flow>| flows.push(Flow { steps: 5..5, tasks: vec![], ..flows[2].clone() });
    assert_eq!(broken(&empty), "4 flows end at step 5 of 5");
    // The other rules, inside a body.
    let without = |flows: &mut Vec<Flow>| flows[1].schedule.tasks[0].clear();
    assert_eq!(broken(&without), format!("task {} does not wait for step 1", named("t")));
    let short = |flows: &mut Vec<Flow>| flows[2].schedule.blocks[0].end -= 1;
    assert_eq!(broken(&short), "the instructions end at step 3 of 5");
    let late = |flows: &mut Vec<Flow>| flows[1].partitions[1].tasks.clear();
    assert_eq!(broken(&late), format!("the partition of node {} does not wait for the tasks before it", named("b")));
}
