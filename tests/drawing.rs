//! Drawings.

mod common;

use clgraph::{BuildCause, Detail};
use common::{Bench, cause};

/// Rule Q3
#[test]
fn print_graph_writes_dot_with_kinds_numbers_and_names() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 64]), bench.buffer(&[0; 64]));
    let graph = bench.graph();
    graph.write(&a, [1; 64]).add().unwrap();
    // SAFETY: each work-item touches its own element.
    unsafe {
        let scale = graph.kernel(&bench.kernel("scale")).read(&a.slice(..32).unwrap()).write(&b).arg(7_u32);
        scale.range(32).offset(0).work_group(8).add().unwrap();
        graph.kernel(&bench.kernel("group_sum")).read_write(&b).local::<u32>(8).range(32).work_group(8).add().unwrap();
    }
    graph.copy_rect(&b, &a).region([4, 4, 1]).src_pitch(8, 0).add().unwrap();
    graph.copy(&a.slice(..8).unwrap(), &b.slice(8..16).unwrap()).add().unwrap();
    graph.fill(&a, 0_u32).add().unwrap();
    graph.read(&b).add().unwrap();
    graph.empty().after_all_leaves().add().unwrap();

    let brief = graph.to_dot(Detail::Brief);
    assert!(brief.starts_with("digraph {"), "{brief}");
    let labels = [
        "0 host write",
        "1 scale",
        "2 group_sum",
        "3 rectangular copy",
        "4 copy",
        "5 fill",
        "6 host read",
        "7 empty node",
    ];
    for label in labels {
        assert!(brief.contains(&format!("label=\"{label}\"")), "{label} in {brief}");
    }
    assert!(brief.contains("0 -> 1") && !brief.contains("1 -> 0"), "{brief}");

    let verbose = graph.to_dot(Detail::Verbose);
    let parts = [
        "range [32] work-group [8]",
        "arg 0: read cl_mem 0x",
        "arg 1: write cl_mem 0x",
        "arg 2: 4 bytes 0x07000000",
        "arg 1: local 32 bytes",
        "region [16, 4, 1] (bytes, rows, slices)",
        "bytes 32..64",
        "pattern of 4 bytes",
    ];
    for part in parts {
        assert!(verbose.contains(part), "{part} in {verbose}");
    }

    let folder = std::env::temp_dir().join(format!("clgraph-drawing-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("graph.dot");
    graph.print_graph(&file, Detail::Verbose).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), verbose);

    let svg = folder.join("graph.svg");
    let why = "its extension must be `dot`".to_owned();
    assert_eq!(cause(graph.print_graph(&svg, Detail::Brief)), BuildCause::File { path: svg.clone(), why });
    assert!(!svg.exists());
    let BuildCause::File { path, .. } = cause(graph.print_graph(folder.join("none/graph.dot"), Detail::Brief)) else {
        panic!("a folder that does not exist cannot be written to")
    };
    assert!(path.ends_with("none/graph.dot"));
    std::fs::remove_dir_all(folder).unwrap();
}
