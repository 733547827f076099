//! Loops in random launches: their turns are the launches again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::rolled::{InMemory, Lane, Part, Place, Rolled, Table, args, rolled};
use super::{Callee, FusedArg, FusedKernel, FusedLaunch, FusedParam, ValueType};

const MEMORY: usize = 12;
const VALUES: usize = 12;

/// Parameters: memory, then values, then sizes.
fn params(bytes: usize) -> Vec<FusedParam> {
    let mut all = vec![FusedParam::Memory; MEMORY];
    all.extend(vec![FusedParam::Value(ValueType::Plain("pair".to_owned()), bytes); VALUES]);
    all.extend([FusedParam::Size, FusedParam::Size]);
    all
}

fn launch(kernel: usize, memory: [usize; 2], value: usize, size: usize) -> FusedLaunch {
    let (zero, one) = (FusedArg::Number(0), FusedArg::Number(1));
    let size = if size == 0 { one } else { FusedArg::Param(MEMORY + VALUES + size - 1) };
    let values = [memory[0], memory[1], MEMORY + value].map(FusedArg::Param);
    FusedLaunch {
        kernel: Callee { unit: 0, kernel: format!("k{kernel}") },
        args: values.to_vec(),
        dims: 1,
        range: [[zero; 3], [size, one, one], [one; 3]],
    }
}

/// Returns the launches that a kernel does: by number, with arguments.
fn unrolled(kernel: &FusedKernel, rolled: &Rolled) -> Vec<(Callee, u32, Vec<FusedArg>)> {
    let mut all = Vec::new();
    for part in rolled.parts() {
        match part {
            Part::Launch(at) => {
                let launch = &kernel.launches[*at];
                all.push((launch.kernel.clone(), launch.dims, args(launch).copied().collect()));
            }
            Part::Loop(of) => {
                for turn in 0..of.turns {
                    for (launch, places) in kernel.launches[of.start..].iter().zip(&of.args) {
                        let arg = |place: &Place| match place {
                            Place::Same(arg) => *arg,
                            Place::Table(table, ahead) => rolled.tables[*table].entries[turn + ahead],
                        };
                        all.push((launch.kernel.clone(), launch.dims, places.iter().map(arg).collect()));
                    }
                }
            }
        }
    }
    all
}

fn check(kernel: &FusedKernel) -> Rolled {
    let rolled = rolled(kernel);
    let launches = kernel.launches.iter();
    let expected: Vec<_> =
        launches.map(|launch| (launch.kernel.clone(), launch.dims, args(launch).copied().collect())).collect();
    assert_eq!(unrolled(kernel, &rolled), expected);
    let kind = |arg: &FusedArg| match arg {
        FusedArg::Param(at) => kernel.params[*at].clone(),
        FusedArg::Number(_) => FusedParam::Size,
    };
    for Table { kind: of, entries } in &rolled.tables {
        assert!(entries.iter().all(|entry| kind(entry) == *of));
    }
    rolled
}

/// Pieces of launches that come again with arguments that are the same, walk, or are random.
fn random(rng: &mut Rng, pieces: usize) -> Vec<FusedLaunch> {
    let mut all = Vec::new();
    for _ in 0..pieces {
        let period = if rng.u8(..4) == 0 { rng.usize(10..80) } else { rng.usize(1..10) };
        let turns = rng.usize(1..20);
        let shape: Vec<(usize, [usize; 3], [usize; 4])> = (0..period)
            .map(|_| (rng.usize(..3), [(); 3].map(|()| rng.usize(..3)), [(); 4].map(|()| rng.usize(..MEMORY))))
            .collect();
        for turn in 0..turns {
            for (kernel, ways, numbers) in &shape {
                let mut number = |way: usize, at: usize| match way {
                    0 => numbers[at],
                    1 => (numbers[at] + turn) % MEMORY,
                    _ => rng.usize(..MEMORY),
                };
                let memory = [number(ways[0], 0), number(ways[0], 1)];
                let (value, size) = (number(ways[1], 2) % VALUES, number(ways[2], 3) % 3);
                all.push(launch(*kernel, memory, value, size));
            }
        }
    }
    all
}

#[test]
fn unrolled_loops_are_the_launches() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let (mut lines, mut launches) = (0, 0);
    for _ in 0..300 {
        let pieces = rng.usize(..12);
        let all = random(&mut rng, pieces);
        let lanes = if all.is_empty() || rng.bool() { 0 } else { rng.usize(..4) };
        let lane_ends: BTreeSet<usize> = (0..lanes).map(|_| rng.usize(..all.len())).filter(|end| *end > 0).collect();
        let lane_ends: Vec<usize> = lane_ends.into_iter().collect();
        let tabled = if rng.bool() { 0 } else { rng.usize(..=VALUES + 2) };
        let kernel = FusedKernel {
            params: params(rng.usize(1..600)),
            tabled,
            launches: all,
            lane_ends,
            group: None,
            turns: false,
        };
        let rolled = check(&kernel);
        // Each lane has its own launches.
        let of_lane = |lane: &Lane| -> usize {
            lane.parts.iter().map(|part| if let Part::Loop(of) = part { of.turns * of.args.len() } else { 1 }).sum()
        };
        let counts: Vec<usize> = rolled.lanes.iter().map(of_lane).collect();
        assert_eq!(counts, kernel.lanes().map(|lane| lane.len()).collect::<Vec<_>>());
        launches += kernel.launches.len();
        lines += rolled.parts().map(|part| if let Part::Loop(of) = part { of.args.len() } else { 1 }).sum::<usize>();
        let memory = InMemory::of(&kernel);
        let size = |table: &Table| match &table.kind {
            // Its entries are those of the kernel's own table.
            _ if table.in_memory(&memory).is_some() => 0,
            FusedParam::Memory | FusedParam::Local => 8,
            FusedParam::Value(_, bytes) => *bytes,
            FusedParam::Size => 4,
        };
        let bytes: usize = rolled.tables.iter().map(|table| size(table) * table.entries.len()).sum();
        assert!(bytes <= 16 << 10, "{bytes}");
    }
    assert!(lines * 10 < launches * 9, "{lines} lines for {launches} launches");
}

fn chain(count: usize, launch: impl Fn(usize) -> FusedLaunch) -> Rolled {
    check(&FusedKernel {
        params: params(4),
        launches: (0..count).map(launch).collect(),
        tabled: 0,
        lane_ends: Vec::new(),
        group: None,
        turns: false,
    })
}

#[test]
fn walks_share_a_table() {
    // Towards higher numbers, with the written argument first, and towards lower ones.
    let walks: [fn(usize) -> [usize; 2]; 3] = [|at| [at, at + 1], |at| [at + 1, at], |at| [11 - at, 10 - at]];
    for walk in walks {
        let found = chain(11, |at| launch(0, walk(at), 0, 0));
        assert_eq!((found.parts().count(), found.tables.len()), (1, 1), "{found:?}");
        assert_eq!(found.tables[0].entries.len(), 12);
    }
}

#[test]
fn two_buffers_in_turn_need_no_table() {
    let found = chain(100, |at| launch(0, [at % 2, 1 - at % 2], 0, 1));
    assert_eq!((found.parts().count(), found.tables.len()), (1, 0), "{found:?}");
    // With values of their own only these are in tables.
    let found = chain(100, |at| launch(0, [at % 2, 1 - at % 2], at % 11, 1));
    assert!(found.tables.iter().all(|table| table.kind != FusedParam::Memory), "{found:?}");
    // Each eighth launch is another one.
    let found = chain(96, |at| launch(usize::from(at % 8 == 7), [0, 1], 0, 1));
    assert_eq!((found.parts().count(), found.tables.len()), (1, 0), "{found:?}");
}

/// Where loops begin, their turns, and the launches of a turn.
fn loops_of(rolled: &Rolled) -> Vec<(usize, usize, usize)> {
    let of = |part: &Part| if let Part::Loop(of) = part { Some((of.start, of.turns, of.args.len())) } else { None };
    rolled.parts().filter_map(of).collect()
}

/// A time step of many kernels, over two buffers in turn.
#[test]
fn turns_may_be_of_many_launches() {
    let step = |at: usize| launch(at * 7 % 59, [at % 2, 1 - at % 2], 0, 1);
    let found = chain(929, step);
    // 59 is odd, so each turn begins with the other buffer: a table of two.
    let [Part::Loop(of), lines @ ..] = &*found.lanes[0].parts else { panic!("{found:?}") };
    assert_eq!((of.start, of.turns, of.args.len(), lines.len(), found.tables.len()), (0, 15, 59, 929 - 15 * 59, 1));
    // Some launches come first, and the walk needs a table.
    let found = chain(20 + 5 * 40, |at| {
        if at < 20 { launch(at, [0, 1], 0, 1) } else { launch(20 + at % 40, [at / 40, at / 40 + 1], 0, 1) }
    });
    let loops: Vec<_> =
        found.parts().filter_map(|part| if let Part::Loop(of) = part { Some(of) } else { None }).collect();
    let [of] = &*loops else { panic!("{found:?}") };
    assert!(of.start <= 20 + 15 && (of.turns, of.args.len()) == (4, 40), "{found:?}");
    // Parts of a turn are short loops of their own.
    let found = chain(5 * 48, |at| launch(at % 48 / 4, [at / 48, at / 48 + 1], 0, 1));
    assert_eq!(loops_of(&found), [(0, 5, 48)], "{found:?}");
    // The arguments come again after six times as many launches as the kernels, for which tables have no room.
    let found = chain(200 * 300, |at| launch(at % 50, [at % 300 * 7 % 11, 11], at % 300 * 5 % 12, 1));
    assert_eq!((loops_of(&found), found.tables.len()), (vec![(0, 200, 300)], 0), "{found:?}");
    // Beyond what is looked for.
    let found = chain(5 * 1025, |at| launch(at % 1025, [0, 1], 0, 1));
    assert_eq!(found.parts().count(), 5 * 1025);
}

#[test]
fn few_launches_are_lines() {
    for count in 0..4 {
        assert_eq!(chain(count, |at| launch(0, [at, at + 1], 0, 0)).parts().count(), count);
    }
    // Three turns of four.
    assert_eq!(chain(12, |at| launch(at % 4, [0, 1], 0, 0)).parts().count(), 12);
}

#[test]
fn what_has_no_room_in_tables_is_written_as_it_is() {
    let mut rng = Rng::with_seed(1);
    let values: Vec<usize> = (0..1000).map(|_| rng.usize(..VALUES)).collect();
    let launches = values.iter().map(|value| launch(0, [0, 1], *value, 0)).collect();
    let found = check(&FusedKernel {
        params: params(128),
        launches,
        tabled: 0,
        lane_ends: Vec::new(),
        group: None,
        turns: false,
    });
    assert_eq!(found.tables[0].entries.len(), (16 << 10) / 128);
    assert!(found.parts().count() > 500);
}

/// The time grows as the launches do.
#[test]
fn long_chains_take_little_time() {
    let mut rng = Rng::with_seed(2);
    let launches: Vec<Vec<FusedLaunch>> = vec![
        (0..100_000).map(|at| launch(0, [at % 2, 1 - at % 2], 0, 1)).collect(),
        (0..100_000).map(|_| launch(0, [rng.usize(..12), rng.usize(..12)], rng.usize(..12), rng.usize(..3))).collect(),
        (0..100_000).map(|_| launch(rng.usize(..2), [rng.usize(..12), 0], 0, rng.usize(..3))).collect(),
        (0..100_000).map(|at| launch(usize::from(at % 1025 == 0), [rng.usize(..12), 0], 0, 0)).collect(),
        (0..100_000).map(|at| launch(at % 1021, [rng.usize(..12), 0], 0, 0)).collect(),
        // Short loops in turns whose arguments have no room in tables.
        (0..100_000).map(|at| launch(at % 100 / 5, [if at % 5 == 4 { rng.usize(..12) } else { 0 }, 1], 0, 0)).collect(),
        (0..100_000).map(|at| launch(at % 100 / 5, [rng.usize(..12), 1], rng.usize(..12), 0)).collect(),
        random(&mut rng, 1_000),
    ];
    for launches in launches {
        let kernel =
            FusedKernel { params: params(8), launches, tabled: 0, lane_ends: Vec::new(), group: None, turns: false };
        let start = Instant::now();
        rolled(&kernel);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}
