//! Graphs whose commands use several queues: which queue each command goes to, and what waits for what.

use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::*;
use crate::plan::check::check;

/// Returns the commands by queue, with the commands of other queues that they wait for, and what the end waits for.
fn streams(graph: &str) -> Vec<String> {
    let reader = read(graph);
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Queues)).unwrap();
    let Some(streams) = &plan.streams else { return Vec::new() };
    let name = |step: usize| reader.names[plan.steps[step].node.index()].clone();
    let list = |steps: &mut dyn Iterator<Item = usize>| steps.map(name).collect::<Vec<_>>().join("+");
    let shown = |step: usize| match list(&mut streams.waits(step)) {
        waits if waits.is_empty() => name(step),
        waits => format!("{}({waits})", name(step)),
    };
    let on = |stream: usize| (0..plan.steps.len()).filter(move |step| streams.stream(*step) == stream);
    let mut all: Vec<_> =
        (0..streams.count).map(|stream| on(stream).map(shown).collect::<Vec<_>>().join(" ")).collect();
    all.push(format!("end {}", list(&mut streams.ends())).trim().to_owned());
    all
}

#[test]
fn a_chain_is_in_one_row() {
    assert!(streams("buffer x 64\na: fill x 64\nb: fill x 64\nc: fill x 64").is_empty());
    assert!(streams("buffer x 64").is_empty());
}

#[test]
fn chains_have_a_queue_each_and_the_end_waits_for_the_others() {
    let graph = "buffer x 64
        buffer y 64
        a: fill x 64
        p: fill y 64
        b: fill x 64
        q: fill y 64
        c: fill x 64";
    assert_eq!(streams(graph), ["a b c", "p q", "end q"]);
}

#[test]
fn forks_and_joins_wait_once() {
    let graph = "buffer x 64
        buffer y 64
        buffer z 64
        start: kernel f write x write y write z
        a: kernel f update x
        b: kernel f update y
        c: kernel f update z
        both: kernel f read x read y
        all: kernel f update x update y update z
        more: kernel f update x";
    // `c` waits for the start; `all` is after that too, and by `both` after `a`.
    assert_eq!(streams(graph), ["start a", "b(start) both(a) all(c) more", "c(start)", "end more"]);
}

#[test]
fn more_chains_than_queues_stay_where_they_are() {
    let mut graph = String::new();
    for chain in 0..11 {
        writeln!(graph, "buffer x{chain} 64").unwrap();
    }
    for round in 0..3 {
        for chain in 0..11 {
            writeln!(graph, "n{chain}-{round}: fill x{chain} 64").unwrap();
        }
    }
    let shown = streams(&graph);
    assert_eq!(shown.len(), 8 + 1, "{shown:#?}");
    assert!(!shown[..8].iter().any(|stream| stream.contains('(')), "nothing waits: {shown:#?}");
    assert_eq!(shown[0], "n0-0 n8-0 n0-1 n8-1 n0-2 n8-2");
}

#[test]
fn what_has_only_the_order_of_the_steps_is_in_one_row() {
    let two = |more: &str| streams(&format!("buffer x 64\nbuffer y 64\na: fill x 64\nb: fill y 64\n{more}"));
    assert_eq!(two("").len(), 3);
    assert!(two("t: task update x").is_empty(), "host tasks");
    let reader = read("buffer x 64\nbuffer y 64\na: fill x 64\nb: fill y 64");
    let count =
        |options: &Options<'_>| plan(&reader.ir, &new_device(), options).unwrap().streams.map(|streams| streams.count);
    assert_eq!(count(&asked(Path::Queues)), Some(2));
    assert_eq!(count(&asked(Path::Auto)), Some(2));
    assert_eq!(count(&asked(Path::Replay)), None);
    assert_eq!(count(&Options { autotune: false, ..asked(Path::Auto) }), None);
    assert_eq!(count(&Options { conflicts: Conflicts::Allowed, ..asked(Path::Queues) }), None);
    assert_eq!(count(&Options { profiled: true, ..asked(Path::Queues) }), None);
}

/// A graph of fills of up to twelve buffers, and of kernels over two or three of them.
#[derive(Clone, Debug)]
struct Random(Vec<(u8, u8, u8)>);

impl Arbitrary for Random {
    fn arbitrary(g: &mut Gen) -> Self {
        Self(Vec::arbitrary(g))
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        Box::new(self.0.shrink().map(Self))
    }
}

impl Random {
    fn text(&self) -> String {
        let mut text: String = (0..12).map(|buffer| format!("buffer x{buffer} 64\n")).collect();
        for (number, (a, b, kind)) in self.0.iter().enumerate() {
            let (a, b) = (a % 12, b % 12);
            match kind % 4 {
                0 => writeln!(text, "n{number}: fill x{a} 64"),
                1 if a != b => writeln!(text, "n{number}: kernel f read x{a} update x{b}"),
                2 if a != b => writeln!(text, "n{number}: kernel f read x{a} read x{b} update x{}", (a + b) % 12),
                _ => writeln!(text, "n{number}: kernel f update x{a}"),
            }
            .unwrap();
        }
        text
    }
}

/// The planner checks every plan in tests, with code of its own: this test makes many plans.
#[test]
fn random_graphs_are_in_order_on_several_queues() {
    fn property(graph: Random) -> bool {
        let reader = read(&graph.text());
        let plan = plan(&reader.ir, &new_device(), &asked(Path::Queues)).unwrap();
        plan.streams.is_none_or(|streams| streams.count >= 2)
    }
    QuickCheck::new().tests(2_000).quickcheck(property as fn(Random) -> bool);
}

#[test]
fn a_wait_that_is_missing_is_found() {
    let graph = "buffer x 64
        buffer y 64
        a: kernel f update x
        b: kernel f update y
        c: kernel f update x update y
        d: kernel f update y
        e: kernel f update x";
    let reader = read(graph);
    let options = asked(Path::Queues);
    let good = plan(&reader.ir, &new_device(), &options).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    assert_eq!(check(&reader.ir, &order, &good, &options), Ok(()));
    let broken = |change: &dyn Fn(&mut crate::plan::Streams)| {
        let mut bad = good.clone();
        change(bad.streams.as_mut().unwrap());
        check(&reader.ir, &order, &bad, &options).unwrap_err()
    };
    assert_eq!(broken(&|streams| streams.forget_waits(2)), "step 2 does not come after step 0");
    assert_eq!(broken(&|streams| streams.forget_ends()), "the end does not come after step 3");
}
