//! Drawings of graphs and executables.

mod common;

use clgraph::{BuildCause, DrawingDetail, Finalize, Fuse, Graph, Path};
use common::{Bench, cause};

/// Returns how often a text is in a drawing, whatever its line breaks.
fn count(svg: &str, what: &str) -> usize {
    svg.replace('\n', "").matches(what).count()
}

/// Counts boxes: only boxes have rounded corners.
fn boxes(svg: &str) -> usize {
    count(svg, "rx=\"4\"")
}

/// A fork and a join around a host task, and a sub-graph.
fn fork(bench: &Bench) -> Graph {
    let (a, b) = (bench.buffer(&[0; 64]), bench.buffer(&[0; 64]));
    let graph = bench.graph();
    graph.fill(&a, 1).label("left <&> \"half\"").add().unwrap();
    graph.fill(&b, 2).add().unwrap();
    graph.host_task(|_| ()).reads(&a).reads(&b).label("decide").add().unwrap();
    let child = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { child.kernel(&bench.kernel("stir")).read_write(&a).range(64).add() }.unwrap();
    child.copy(&a, &b).add().unwrap();
    let child = child.finalize(Finalize::new()).unwrap();
    graph.sub_graph(&child).label("the rest").after_all_leaves().add().unwrap();
    graph
}

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

    let brief = graph.to_dot(DrawingDetail::Brief);
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

    let verbose = graph.to_dot(DrawingDetail::Verbose);
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
    graph.print_graph(&file, DrawingDetail::Verbose).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), verbose);

    let svg = folder.join("graph.svg");
    graph.print_graph(&svg, DrawingDetail::Verbose).unwrap();
    assert_eq!(std::fs::read_to_string(&svg).unwrap(), graph.to_svg(DrawingDetail::Verbose).unwrap());
    let png = folder.join("graph.png");
    let why = "the extension of the file must be `dot` or `svg`".to_owned();
    assert_eq!(cause(graph.print_graph(&png, DrawingDetail::Brief)), BuildCause::File { path: png.clone(), why });
    assert!(!png.exists());
    let BuildCause::File { path, .. } = cause(graph.print_graph(folder.join("none/graph.dot"), DrawingDetail::Brief))
    else {
        panic!("a folder that does not exist cannot be written to")
    };
    assert!(path.ends_with("none/graph.dot"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Rule Q3
#[test]
fn a_graph_as_svg_has_its_nodes_edges_labels_and_kinds() {
    let bench = Bench::new();
    let graph = fork(&bench);
    let svg = graph.to_svg(DrawingDetail::Brief).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert_eq!((boxes(&svg), count(&svg, "marker-end")), (4, 4), "{svg}");
    for part in ["left &lt;&amp;&gt; \"half\"", "1 fill", "2 host task", "the rest", "4 nodes, 4 edges", ">sub-graph<"]
    {
        assert!(count(&svg, part) > 0, "{part} in {svg}");
    }
    // The full description of a node is in its tooltip, and in the picture only if that is asked for.
    assert_eq!(count(&svg, "pattern of 4 bytes"), 2);
    assert_eq!(count(&graph.to_svg(DrawingDetail::Verbose).unwrap(), "pattern of 4 bytes"), 4);
    // Characters that XML does not have.
    graph.set_label(graph.nodes()[0], "a\0b\u{1b}c\u{ffff}").unwrap();
    let svg = graph.to_svg(DrawingDetail::Brief).unwrap();
    assert!(svg.contains("a\u{fffd}b\u{fffd}c\u{fffd}") && !svg.contains('\0'));
    let empty = bench.graph().to_svg(DrawingDetail::Brief).unwrap();
    assert_eq!(boxes(&empty), 0);
}

/// Rules Q3, Q2
#[test]
fn an_executable_as_svg_says_where_nodes_run_and_how_long() {
    let bench = Bench::new();
    let graph = fork(&bench);
    for path in [Path::Native, Path::Replay] {
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let svg = executable.to_svg(DrawingDetail::Brief, None).unwrap();
        // The sub-graph is inlined, between its entry and its exit.
        assert_eq!(boxes(&svg), 7, "{svg}");
        assert_eq!((count(&svg, ">3 the rest<"), count(&svg, ">begins<"), count(&svg, "3.1 copy")), (2, 1, 2));
        let (nodes, commands) = (executable.report().nodes, executable.report().commands);
        assert_eq!(
            (nodes, count(&svg, &format!(": 4 nodes, {commands} commands"))),
            (4, 1),
            "as the report says: {svg}"
        );
        let native = executable.report().segments.iter().any(|segment| segment.path == Path::Native);
        assert_eq!(
            (count(&svg, ">command buffer 0<"), count(&svg, ">replay<"), count(&svg, ">host<")),
            // In the legend; and the number of a command buffer in its two boxes.
            (3 * usize::from(native), usize::from(!native), 1)
        );
        assert!(!svg.contains("share of the whole time"));
    }
    let executable = graph.finalize(Finalize::new().profiling()).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    let profile = run.profile().unwrap();
    let svg = executable.to_svg(DrawingDetail::Brief, Some(&profile)).unwrap();
    // In the box and in its tooltip.
    assert_eq!(
        (count(&svg, " us, "), svg.contains("share of the whole time")),
        (2 * profile.nodes.len(), true),
        "{svg}"
    );

    let folder = std::env::temp_dir().join(format!("clgraph-drawing-exec-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("graph.svg");
    executable.print_graph(&file, DrawingDetail::Brief, Some(&profile)).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), svg);
    // As text for Graphviz: the same nodes, edges and times.
    let file = folder.join("graph.dot");
    executable.print_graph(&file, DrawingDetail::Brief, Some(&profile)).unwrap();
    let dot = std::fs::read_to_string(&file).unwrap();
    assert!(dot.starts_with("digraph {") && dot.ends_with("}\n"), "{dot}");
    assert_eq!(
        (count(&dot, " us, "), count(&dot, "[label="), count(&dot, " -> ")),
        (profile.nodes.len(), 7, 6),
        "{dot}"
    );
    let wrong = executable.print_graph(folder.join("graph.png"), DrawingDetail::Brief, None);
    assert!(
        matches!(cause(wrong), BuildCause::File { why, .. } if why == "the extension of the file must be `dot` or \
                                                                           `svg`")
    );
    std::fs::remove_dir_all(folder).unwrap();
    // Times of another graph.
    let other = fork(&bench).finalize(Finalize::new()).unwrap();
    assert!(matches!(cause(other.to_svg(DrawingDetail::Brief, Some(&profile))), BuildCause::OtherExecutable));
    let again = graph.finalize(Finalize::new()).unwrap();
    assert!(matches!(cause(again.to_svg(DrawingDetail::Brief, Some(&profile))), BuildCause::OtherExecutable));
}

/// Rule Q3: the bodies of branches and loops are in frames, and an unrolled loop is a loop, with all its turns in one frame.
#[test]
fn bodies_of_branches_and_loops_have_frames() {
    let bench = Bench::new();
    let (flag, data) = (bench.buffer(&[0; 4]), bench.buffer(&[0; 64]));
    let flag = flag.slice(..1).unwrap();
    let body = |value: u32, inner: u64| {
        let graph = bench.graph();
        graph.fill(&data, value).label(format!("fill {value}")).add().unwrap();
        if inner > 0 {
            let turn = bench.graph();
            turn.fill(&data, 9_u32).label("within").add().unwrap();
            graph.repeat(inner, &turn.finalize(Finalize::new()).unwrap()).add().unwrap();
        }
        graph.finalize(Finalize::new()).unwrap()
    };
    let frames = |graph: &Graph| {
        let executable = graph.finalize(Finalize::new()).unwrap();
        let svg = executable.to_svg(DrawingDetail::Full, None).unwrap();
        let folder = std::env::temp_dir().join(format!("clgraph-drawing-frames-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("graph.dot");
        executable.print_graph(&file, DrawingDetail::Full, None).unwrap();
        let dot = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        (svg, dot)
    };
    let has = |text: &str, all: &[(&str, usize)]| {
        for (what, times) in all {
            assert_eq!(count(text, what), *times, "{what}: {text}");
        }
    };
    let graph = bench.graph();
    graph.when(&flag, &body(1, 0)).otherwise(&body(2, 0)).add().unwrap();
    graph.repeat_while(&flag, &body(3, 3)).label("until it is done").add().unwrap();
    let (svg, dot) = frames(&graph);
    let titles = [("then of 0", 1), ("otherwise of 0", 1), ("body of 1", 1), ("body of 1, 3 turns", 1)];
    has(
        &svg,
        &titles.map(|(title, times)| (format!(">{title}<"), times)).each_ref().map(|(text, times)| (&**text, *times)),
    );
    has(&svg, &[(">turn 1<", 0), ("turn 2<", 1), ("turn 3<", 1), (">1 until it is done<", 2), ("sub-graph", 0)]);
    let clusters = titles.map(|(title, times)| (format!("label=\"{title}\""), times));
    has(&dot, &clusters.each_ref().map(|(text, times)| (&**text, *times)));
    has(&dot, &[("subgraph cluster_", 4), ("{", 5), ("}", 5)]);
    // The unrolled turns are in the frame of the loop's body.
    let place = |what: &str| dot.find(what).unwrap();
    let inner = place("body of 1, 3 turns")..place("1 until it is done\\lends");
    assert!(place("\"body of 1\"") < inner.start && inner.contains(&place("within")), "{dot}");

    let graph = bench.graph();
    graph.repeat(3, &body(4, 0)).add().unwrap();
    graph.repeat(2, &body(5, 2)).label("twice").add().unwrap();
    graph.repeat(0, &body(6, 0)).add().unwrap();
    graph.sub_graph(&body(7, 0)).add().unwrap();
    let (svg, dot) = frames(&graph);
    has(&svg, &[(">body of 0, 3 turns<", 1), ("fill 4<", 3), ("within<", 4), ("fill 5<", 2), ("fill 6<", 0)]);
    // The frame of the outer loop, and one in each of its turns.
    has(&svg, &[(">body of 1, 2 turns<", 3)]);
    has(&svg, &[(">0 loop `repeat`<", 2), (">1 twice<", 2), (">2 loop `repeat`<", 2), (">3 sub-graph<", 2)]);
    has(&dot, &[("subgraph cluster_", 4), ("body of 0, 3 turns", 1), ("{", 5), ("}", 5)]);
}

/// Rule Q3
#[test]
fn more_nodes_than_anybody_could_look_at_are_not_drawn() {
    let bench = Bench::new();
    let graph = bench.graph();
    for _ in 0..5_000 {
        graph.empty().add().unwrap();
    }
    assert_eq!(boxes(&graph.to_svg(DrawingDetail::Full).unwrap()), 5_000);
    graph.empty().add().unwrap();
    let error = graph.to_svg(DrawingDetail::Full);
    assert_eq!(cause(error), BuildCause::TooManyToDraw { nodes: 5_001, most: 5_000 });
    let of_executable = graph.finalize(Finalize::new()).unwrap().to_svg(DrawingDetail::Full, None);
    assert_eq!(cause(of_executable), BuildCause::TooManyToDraw { nodes: 5_001, most: 5_000 });
    // What repeats is drawn once.
    let svg = graph.to_svg(DrawingDetail::Brief).unwrap();
    assert_eq!((boxes(&svg), count(&svg, "× 5001 without order")), (1, 1));
}

/// Graphviz ends a text at a NUL, and takes none above 16 KiB; XML takes no control characters.
#[test]
fn labels_of_any_text_and_length_can_be_drawn() {
    let bench = common::Bench::new();
    let graph = bench.graph();
    let buffer = bench.buffer(&[0; 8]);
    graph.fill(&buffer, 1).label("a\0b\u{1b}[31m\nc").add().unwrap();
    graph.fill(&buffer, 2).label("long ".repeat(10_000)).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let folder = std::env::temp_dir().join(format!("clgraph-drawing-labels-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("graph.dot");
    executable.print_graph(&file, DrawingDetail::Brief, None).unwrap();
    let ours = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    let drawings = [
        graph.to_dot(clgraph::DrawingDetail::Verbose),
        graph.to_svg(clgraph::DrawingDetail::Verbose).unwrap(),
        executable.to_svg(DrawingDetail::Brief, None).unwrap(),
        ours,
    ];
    for drawing in drawings {
        assert!(!drawing.contains(|c: char| c.is_control() && c != '\n'), "{drawing:?}");
        assert!(drawing.contains("a\u{fffd}b\u{fffd}[31m\u{fffd}c") && drawing.contains("long long"), "{drawing}");
        assert!(drawing.len() < 8 << 10, "{} bytes", drawing.len());
    }
}

/// Rule Q3: with its launches, in their order, whether finalize fuses or an executable that can be updated.
#[test]
fn fused_kernels_are_frames_with_their_launches() {
    let bench = Bench::new();
    let data = bench.buffer(&[0; 64]);
    let graph = bench.graph();
    graph.host_task(|_| ()).reads(&data).label("before").add().unwrap();
    for turn in 0..40 {
        let node = graph.kernel(&bench.kernel("stir")).read_write(&data).range(64);
        // SAFETY: each work-item touches its own element.
        unsafe { if turn == 0 { node.label("first") } else { node }.add().unwrap() };
    }
    graph.read(&data).add().unwrap();
    let folder = std::env::temp_dir().join(format!("clgraph-drawing-fused-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("graph.dot");
    for options in [Finalize::new(), Finalize::new().updatable()] {
        let executable = graph.finalize(options.clone().fuse(Fuse::Now)).unwrap();
        let [fused] = &*executable.report().fused else { panic!("{}", executable.report()) };
        assert_eq!(fused.nodes, (1..=40).collect::<Vec<_>>());
        let svg = executable.to_svg(DrawingDetail::Full, None).unwrap();
        // Of the frame, 40 launches, the host's task and the read.
        assert_eq!((count(&svg, "stroke-dasharray=\"6 3\""), boxes(&svg)), (1, 42), "{svg}");
        // In its box, and when the mouse points at it.
        assert_eq!((count(&svg, ">1 first<"), count(&svg, ">2 stir<"), count(&svg, ">40 stir<")), (2, 2, 2), "{svg}");
        assert!(svg.contains("fused: 40 commands"), "{svg}");
        // What repeats is drawn once.
        let brief = executable.to_svg(DrawingDetail::Brief, None).unwrap();
        assert!(boxes(&brief) < 10 && count(&brief, "stroke-dasharray=\"6 3\"") == 1, "{brief}");
        executable.print_graph(&file, DrawingDetail::Full, None).unwrap();
        let dot = std::fs::read_to_string(&file).unwrap();
        assert_eq!((count(&dot, "subgraph cluster_in_"), count(&dot, "40 stir"), count(&dot, "{")), (1, 1, 2), "{dot}");
        // Unfused, it has no frame.
        let executable = graph.finalize(options.fuse(Fuse::Off)).unwrap();
        assert_eq!(count(&executable.to_svg(DrawingDetail::Full, None).unwrap(), "stroke-dasharray=\"6 3\""), 0);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
