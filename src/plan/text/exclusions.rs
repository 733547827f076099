//! What excludes a path, for each reason that there is.

use std::collections::HashSet;

use strum::VariantArray;

use super::paths::recording_device;
use super::*;

/// Two branches, and what else a graph has.
fn branches(more: &str) -> Ir {
    read(&format!("buffer x 64\nbuffer y 64\na: fill x 64\nb: fill y 64\n{more}")).ir
}

/// Rule F1: a path that was asked for, or may be faster, and that is not taken, has its reason in the report.
#[test]
fn each_path_that_is_not_taken_has_its_reason() {
    let mut seen = HashSet::new();
    let mut check = |ir: &Ir, caps: &Caps, options: &Options<'_>, expected: &[(Path, Exclusion)]| {
        let plan = plan(ir, caps, options).unwrap();
        assert_eq!(plan.excluded, expected, "{options:?}\n{ir}");
        for (path, why) in expected {
            assert!(plan.strategies.iter().all(|strategy| strategy.path != *path), "{path}, although {why}");
            seen.insert(*why);
        }
    };
    let (any, queues, gated, auto) = (new_device(), asked(Path::Queues), asked(Path::Gated), asked(Path::Auto));
    let device = |platform: &str| Caps { platform: platform.to_owned(), ..new_device() };
    let two = branches("");
    for options in [&queues, &gated, &auto, &asked(Path::Replay), &asked(Path::Native)] {
        check(&two, &any, options, &[]);
    }

    // Several queues.
    let on_queues = |why| [(Path::Queues, why)];
    check(&read("buffer x 64\na: fill x 64\nb: fill x 64").ir, &any, &queues, &on_queues(Exclusion::OneChain));
    check(&two, &device("rusticl"), &queues, &on_queues(Exclusion::UnsafeOverlap));
    let mut shared = two.clone();
    shared.shares_bytes = true;
    check(&shared, &any, &queues, &[]);
    let updatable = Options { updatable: true, ..queues };
    check(&two, &any, &updatable, &[]);
    check(&shared, &any, &updatable, &on_queues(Exclusion::GraphMemory));
    let conflicts = Options { conflicts: Conflicts::Allowed, ..queues };
    check(&two, &any, &conflicts, &on_queues(Exclusion::AllowedConflicts));
    check(&branches("l: repeat 2 update x\nc: fill x 8\nend"), &any, &queues, &on_queues(Exclusion::Control));
    check(&branches("h: hint x 64"), &any, &queues, &on_queues(Exclusion::Hint));
    check(&branches("n: native either read x"), &any, &queues, &on_queues(Exclusion::NativeCommand));
    let many: String =
        (0..9).map(|at| format!("buffer z{at} 64\nt{at}: task write z{at}\nc{at}: fill z{at} 64\n")).collect();
    check(&read(&many).ir, &any, &queues, &on_queues(Exclusion::ManyBranches));

    // A gate.
    let on_gate = |why| [(Path::Gated, why)];
    check(&read("buffer x 64\na: fill x 64").ir, &any, &gated, &on_gate(Exclusion::OneCommand));
    let basic = Caps { name: "basic-x".to_owned(), ..device("Portable Computing Language") };
    check(&two, &basic, &gated, &on_gate(Exclusion::NoThreads));
    for host in ["t: task read x", "e: wait", "e: signal", "l: repeat 2 update x\nc: fill x 8\nend"] {
        check(&branches(host), &any, &gated, &on_gate(Exclusion::HostNode));
    }
    check(&two, &any, &Options { profiled: true, ..gated }, &on_gate(Exclusion::Profiled));
    check(&branches("n: native either read x"), &any, &gated, &on_gate(Exclusion::NativeCommand));
    for transfer in ["w: write x 64", "r: read x 64"] {
        // A program that asks for a gate has looked at its transfers.
        check(&branches(transfer), &any, &gated, &[]);
        check(&branches(transfer), &any, &auto, &on_gate(Exclusion::HostTransfer));
        check(&branches(transfer), &device("Portable Computing Language"), &auto, &[]);
    }

    // Both, and replay.
    let both = |why| [(Path::Queues, why), (Path::Gated, why)];
    check(&branches("n: native either read x"), &any, &auto, &both(Exclusion::NativeCommand));
    let mut all = both(Exclusion::NativeCommand).to_vec();
    all.push((Path::Replay, Exclusion::OnlyRecorded));
    check(&branches("n: native recorded read x"), &recording_device(), &auto, &all);
    // What nobody wants is not excluded.
    for options in [asked(Path::Replay), Options { autotune: false, ..auto }] {
        check(&branches("n: native either read x"), &any, &options, &[]);
    }

    let unseen: Vec<_> = Exclusion::VARIANTS.iter().filter(|why| !seen.contains(*why)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}
