//! The native path on the real driver, beside replay. On a device without command buffers everything is replayed; the
//! tests that are only about command buffers say what they expect then.
//!
//! The rest of the suite runs on this path too, with `CLGRAPH_PATH=native`: see `ci/test`.

mod common;

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::process::Command as Process;
use std::ptr;

use clgraph::{
    Buffer, CommandKind, Executable, Finalize, Graph, HostRead, Path, PathReason, Program, Queue, QueueProperties,
};
use common::{Bench, content, plain_queue};

const PATHS: [Path; 3] = [Path::Native, Path::Replay, Path::Auto];

/// Whether the device records.
fn records(bench: &Bench) -> bool {
    bench.queue.device().caps().can_record(CommandKind::Kernel).is_ok()
}

/// A graph with every kind of node, longer than one command buffer, with a host write in its middle.
fn all_kinds(bench: &Bench, rounds: u32) -> (Graph, HostRead<u32>) {
    let graph = bench.graph();
    let (a, b) = (bench.buffer(&[3; 256]), bench.buffer(&[5; 256]));
    let (low, high) = (a.sub_buffer(..128).unwrap(), b.sub_buffer(128..).unwrap());
    let (scale, sum, add) = (bench.kernel("scale"), bench.kernel("group_sum"), bench.kernel("add_or_one"));
    for round in 0..rounds {
        // SAFETY: each work-item touches its own element of each, and a scratch as large as its work-group.
        unsafe {
            graph.kernel(&scale).read(&low).write(&high).arg(round).range(128).add().unwrap();
            graph.kernel(&sum).read_write(&b).local::<u32>(8).range(256).work_group(8).add().unwrap();
            graph.kernel(&add).read_write(&a).null().range([100]).offset(20).add().unwrap();
        }
        graph.copy(&b.slice(0..4).unwrap(), &a.slice(60..64).unwrap()).add().unwrap();
        let rect = graph.copy_rect(&high, &low).region([4, 3, 1]).src_pitch(8, 0).dst_pitch(8, 0);
        rect.src_origin([1, 1, 0]).dst_origin([3, 2, 0]).add().unwrap();
        graph.fill(&a.slice(100..).unwrap(), round).add().unwrap();
        graph.empty().after_all_leaves().add().unwrap();
        if round == rounds / 2 {
            graph.write(&a.slice(0..2).unwrap(), [round, 9]).add().unwrap();
        }
    }
    graph.copy(&a.slice(32..64).unwrap(), &b.slice(0..32).unwrap()).add().unwrap();
    let read = graph.read(&b).add().unwrap();
    (graph, read)
}

fn finalize(graph: &Graph, path: Path) -> Executable {
    graph.finalize(Finalize::new().path(path)).unwrap()
}

/// Rule F4: the same bytes by every path, on queues of every kind, several times in a row.
#[test]
fn all_kinds_of_node_give_the_same_bytes_by_every_path() {
    let run = |path: Path, properties: QueueProperties| -> Vec<Vec<u32>> {
        let bench = Bench::new();
        let queue = Queue::with_properties(&bench.queue, bench.queue.device(), properties).unwrap();
        let (graph, read) = all_kinds(&bench, 40);
        let executable = finalize(&graph, path);
        (0..3)
            .map(|_| {
                let run = executable.submit(&queue).unwrap();
                run.wait().unwrap();
                run.get(&read).unwrap().to_vec()
            })
            .collect()
    };
    let expected = run(Path::Replay, QueueProperties::new());
    assert!(expected[0] != expected[1], "a submission goes on from what the one before left");
    let caps = clgraph::best_device().unwrap().caps().clone();
    for path in PATHS {
        for (out_of_order, profiling) in [(false, false), (false, true), (true, false), (true, true)] {
            if (out_of_order && !caps.out_of_order) || (profiling && !caps.profiling) {
                continue;
            }
            let properties = QueueProperties::new().out_of_order(out_of_order).profiling(profiling);
            assert_eq!(run(path, properties), expected, "{path}, {properties:?}");
        }
    }
}

/// Rules F1, F4: segments, paths, command buffers and reasons.
#[test]
fn the_report_says_which_part_runs_by_which_path_and_why() {
    let bench = Bench::new();
    let (graph, _) = all_kinds(&bench, 40);
    let executable = finalize(&graph, Path::Native);
    let report = executable.report();
    assert_eq!(report.segments.iter().map(|part| part.commands).sum::<usize>(), report.commands);
    let shown = report.to_string();
    if records(&bench) {
        let paths: Vec<_> = report.segments.iter().map(|part| (part.path, part.why)).collect();
        let (native, replay) = ((Path::Native, PathReason::Asked), (Path::Replay, PathReason::NoSuchCommand));
        assert_eq!(paths, [native, replay, native, replay]);
        let buffers: usize = report.segments.iter().map(|part| part.command_buffers).sum();
        assert_eq!(executable.command_buffers().len(), buffers);
        // At most 64 commands in each, and no more command buffers than that needs.
        assert_eq!(report.segments[0].command_buffers, report.segments[0].commands.div_ceil(64));
        assert!(report.segments[0].command_buffers > 1);
        let first = format!(
            "segment 0  {} commands by {} command buffers (as asked): nodes ",
            report.segments[0].commands, report.segments[0].command_buffers
        );
        assert!(
            shown.contains(&first) && shown.contains("1 command by replay (command buffers have no such command)"),
            "{shown}"
        );
    } else {
        assert!(report.segments.iter().all(|part| part.path == Path::Replay && part.command_buffers == 0), "{shown}");
        assert!(executable.command_buffers().is_empty());
    }
}

/// Rule Q4
#[test]
fn a_device_tells_what_it_does_natively_and_what_by_replay() {
    let lacks = |caps: &clgraph::Caps, name| {
        caps.command_buffers.as_ref().is_some_and(|buffers| buffers.missing_commands.contains(&name))
    };
    let bench = Bench::new();
    let device = bench.queue.device();
    let caps = device.caps();
    assert_eq!(device.abi().unwrap().is_some(), records(&bench));
    for command in CommandKind::ALL {
        let transfer = matches!(command, CommandKind::Write | CommandKind::Read | CommandKind::Hint);
        let why_not = caps.can_record(command).err();
        if transfer && records(&bench) {
            assert_eq!(why_not, Some(PathReason::NoSuchCommand));
        }
        let can = match command {
            CommandKind::Write | CommandKind::Read | CommandKind::Hint => false,
            // Since 0.9.4.
            CommandKind::Memcpy => !lacks(caps, "clCommandSVMMemcpyKHR"),
            CommandKind::MemFill => !lacks(caps, "clCommandSVMMemFillKHR"),
            CommandKind::PrintingKernel => caps.command_buffers.as_ref().is_some_and(|buffers| buffers.kernel_printf),
            _ => true,
        };
        assert_eq!(why_not.is_none(), records(&bench) && can, "{command}: {why_not:?}");
    }
    let (path, why) = caps.path();
    match caps.platform.as_str() {
        _ if !records(&bench) => assert_eq!(path, Path::Replay),
        "Portable Computing Language" => assert_eq!((path, why), (Path::Replay, PathReason::Slower)),
        "Intel(R) OpenCL" => assert_eq!((path, why), (Path::Replay, PathReason::SlowerAndLeaks)),
        _ => assert_eq!((path, why), (Path::Native, PathReason::Available)),
    }
    let fields = caps.command_buffers.as_ref().and_then(|buffers| buffers.mutable).map(|mutable| mutable.fields());
    let update = device.abi().unwrap().and_then(|abi| abi.update);
    assert!(update.is_none() || fields.is_some(), "what can be updated has fields");
}

/// Rule F4: functions of extensions belong to a platform. `./ci/test --drivers` runs this test with two drivers in one
/// process.
#[test]
fn every_device_runs_by_the_functions_of_its_platform() {
    let devices = clgraph::devices().unwrap();
    let made = devices.iter().map(|device| {
        let queue = Queue::new(device).unwrap();
        let program = Program::from_source(&queue, common::SOURCE).unwrap();
        let a = Buffer::<u32>::from_slice(&queue, &[2; 64]).unwrap();
        let graph = Graph::new(&queue).unwrap();
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&program.kernel("stir").unwrap()).read_write(&a).range(64).add() }.unwrap();
        graph.fill(&a.slice(..8).unwrap(), 7).add().unwrap();
        let read = graph.read(&a).add().unwrap();
        (queue, finalize(&graph, Path::Native), read)
    });
    // All of them exist before the first one runs.
    let made: Vec<_> = made.collect();
    let mut expected = [2_u32; 64];
    for _ in 0..3 {
        expected.iter_mut().zip(0..).for_each(|(x, i)| *x = x.wrapping_mul(5).wrapping_add(i));
        expected[..8].fill(7);
        for (queue, executable, read) in &made {
            let native = queue.device().caps().can_record(CommandKind::Kernel).is_ok();
            assert_eq!(executable.report().segments[0].path == Path::Native, native);
            let run = executable.submit(queue).unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(read).unwrap(), expected, "{}", queue.device().name());
        }
    }
}

/// Rules S1, S3: many submissions in a row, without waiting in between, keep their order although all use the same
/// command buffers.
#[test]
fn submissions_follow_each_other_without_waiting() {
    for path in PATHS {
        let bench = Bench::new();
        let (a, b) = (bench.buffer(&[0; 64]), bench.buffer(&[1; 64]));
        let graph = bench.graph();
        for _ in 0..3 {
            // SAFETY: each work-item touches its own element.
            unsafe {
                graph.kernel(&bench.kernel("stir")).read_write(&a).range(64).add().unwrap();
                graph.kernel(&bench.kernel("add")).read_write(&b).read(&a).range(64).add().unwrap();
            }
        }
        let executable = finalize(&graph, path);
        let other = bench.another_queue(false);
        for round in 0..400 {
            let queue = if round % 100 == 99 { &other } else { &bench.queue };
            if round % 7 == 0 {
                drop(executable.submit(queue).unwrap());
            } else {
                executable.submit_to(queue).submit_detached().unwrap();
            }
        }
        bench.queue.finish().unwrap();
        other.finish().unwrap();
        let (mut x, mut y) = ([0_u32; 64], [1_u32; 64]);
        for _ in 0..400 * 3 {
            x.iter_mut().zip(0..).for_each(|(x, i)| *x = x.wrapping_mul(5).wrapping_add(i));
            y.iter_mut().zip(&x).for_each(|(y, x)| *y = y.wrapping_add(*x));
        }
        assert_eq!((bench.content(&a), bench.content(&b)), (x.to_vec(), y.to_vec()), "{path}");
    }
}

/// Rule F3: drivers do not keep the arguments of recorded kernels.
#[test]
fn an_executable_that_is_dropped_while_it_runs_finishes() {
    for path in PATHS {
        let bench = Bench::new();
        let (out, kept) = bench.telling_buffer(&[7; 64]);
        let (only_here, gone) = bench.telling_buffer(&[2; 64]);
        let graph = bench.graph();
        // SAFETY: each work-item touches its own element.
        unsafe {
            graph.kernel(&bench.kernel("spin")).read_write(&only_here).arg(3_000_000_u32).range(64).add().unwrap();
            graph.kernel(&bench.kernel("scale")).read(&only_here).write(&out).arg(1_u32).range(64).add().unwrap();
        }
        drop(only_here);
        let executable = finalize(&graph, path);
        drop(graph);
        for _ in 0..3 {
            executable.submit_to(&bench.queue).submit_detached().unwrap();
        }
        drop(executable);
        bench.queue.finish().unwrap();
        let mut x = 2_u32;
        for _ in 0..3 * 3_000_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        }
        assert_eq!(bench.content(&out), [x.wrapping_mul(3).wrapping_add(1); 64], "{path}");
        gone.wait_until_gone();
        assert!(!kept.is_gone());
        drop(out);
        kept.wait_until_gone();
    }
}

/// Rule I3: a kernel that prints is recorded if the device can, and otherwise replayed.
#[test]
fn a_kernel_that_prints_runs_by_every_path() {
    let bench = Bench::new();
    let a = bench.buffer(&[41; 8]);
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element, or reads the first.
    unsafe {
        graph.kernel(&bench.kernel("stir")).read_write(&a).range(8).add().unwrap();
        graph.kernel(&bench.kernel("print")).read(&a).range(1).prints().add().unwrap();
    }
    for path in PATHS {
        finalize(&graph, path).submit(&bench.queue).unwrap().wait().unwrap();
    }
    let prints = bench.queue.device().caps().can_record(CommandKind::PrintingKernel);
    let report = finalize(&graph, Path::Native).report();
    let last = report.segments.last().unwrap();
    assert_eq!(last.path == Path::Native, prints.is_ok(), "{report}");
}

/// Rule I1: what a program can do with the command buffers itself.
#[test]
fn native_command_buffers_can_be_enqueued_by_hand() {
    type Enqueue =
        unsafe extern "system" fn(u32, *mut *mut c_void, *mut c_void, u32, *const *mut c_void, *mut *mut c_void) -> i32;
    type Address = unsafe extern "system" fn(*mut c_void, *const c_char) -> *mut c_void;
    let bench = Bench::new();
    let a = bench.buffer(&[0; 64]);
    let graph = bench.graph();
    for _ in 0..100 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("stir")).read_write(&a).range(64).add() }.unwrap();
    }
    // In the last one; another order would give other bytes.
    graph.fill(&a.slice(..8).unwrap(), 7).add().unwrap();
    let executable = finalize(&graph, Path::Native);
    let buffers = executable.command_buffers();
    assert_eq!(buffers.len(), if records(&bench) { 2 } else { 0 });
    assert!(finalize(&graph, Path::Replay).command_buffers().is_empty());
    let platform = opencl3::device::Device::new(bench.queue.device().raw()).platform().unwrap();
    let library = std::env::var("OPENCL_DYLIB_PATH").unwrap_or_else(|_| "libOpenCL.so.1".to_owned());
    let library = dlopen2::raw::Library::open(library).unwrap();
    // SAFETY: the function of that name.
    let address: Address = unsafe { library.symbol("clGetExtensionFunctionAddressForPlatform") }.unwrap();
    let mut queue = bench.queue.raw();
    for buffer in buffers {
        // SAFETY: the function of that name, live objects, no lists, and the executable lives.
        let status = unsafe {
            let enqueue = address(platform, c"clEnqueueCommandBufferKHR".as_ptr());
            std::mem::transmute::<*mut c_void, Enqueue>(enqueue)(
                1,
                &raw mut queue,
                buffer,
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        };
        assert_eq!(status, 0);
    }
    plain_queue(&bench.queue).finish().unwrap();
    let mut expected = [0_u32; 64];
    if records(&bench) {
        for _ in 0..100 {
            expected.iter_mut().zip(0..).for_each(|(x, i)| *x = x.wrapping_mul(5).wrapping_add(i));
        }
        expected[..8].fill(7);
    }
    assert_eq!(content(&bench.queue, &a), expected);
}

/// Returns what the process below prints with these variables.
fn child(variables: &[(&str, &str)]) -> String {
    child_of(Process::new(std::env::current_exe().unwrap()), variables)
}

/// As above, of a command to which the arguments of the process are added.
fn child_of(mut child: Process, variables: &[(&str, &str)]) -> String {
    child
        .args(["--exact", "the_child_finalizes_and_prints_what_came_of_it", "--nocapture"])
        .env("CLGRAPH_TEST_CHILD", "1");
    for name in ["CLGRAPH_PATH", "CLGRAPH_DUMP"] {
        child.env_remove(name);
    }
    let output = child.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let result = text.split_once("RESULT ").and_then(|(_, rest)| rest.split_once(" END"));
    result.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))).0.to_owned()
}

/// The other half of the tests below.
#[test]
fn the_child_finalizes_and_prints_what_came_of_it() {
    let run = || -> clgraph::Result<String> {
        let queue = Queue::new(&clgraph::best_device()?)?;
        let graph = Graph::new(&queue)?;
        graph.fill(&clgraph::Buffer::<u32>::new(&queue, 8)?, 1).add()?;
        let auto = graph.finalize(Finalize::new())?;
        let whole = Graph::new(&queue)?;
        whole.sub_graph(&auto).add()?;
        whole.fill(&whole.alloc::<u8>(64).add()?, 0).add()?;
        let pinned = whole.finalize(Finalize::new().path(Path::Replay))?;
        let why = |executable: &Executable| executable.report().segments[0].why;
        Ok(format!("{:?} {:?} {}", why(&auto), why(&pinned), queue.context().devices().len()))
    };
    let result = run();
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_some() {
        println!(
            "RESULT {} END",
            result.unwrap_or_else(|error| format!("{:?}: {}", error.kind(), common::shown(&error)))
        );
    } else {
        assert!(result.unwrap().contains("Asked"));
    }
}

/// Rule F1: the environment decides if the program does not.
#[test]
fn the_path_can_be_chosen_by_the_environment() {
    let bench = Bench::new();
    let native =
        bench.queue.device().caps().can_record(CommandKind::Fill).map_or_else(|why| why, |()| PathReason::Environment);
    assert_eq!(child(&[("CLGRAPH_PATH", "native")]), format!("{native:?} Asked 1"));
    assert_eq!(child(&[("CLGRAPH_PATH", "replay")]), "Environment Asked 1");
    let (_, auto) = bench.queue.device().caps().path();
    assert_eq!(child(&[("CLGRAPH_PATH", "auto")]), format!("{auto:?} Asked 1"));
    assert_eq!(child(&[("CLGRAPH_PATH", "")]), format!("{auto:?} Asked 1"));
    for (variable, given) in [("CLGRAPH_PATH", "Native"), ("CLGRAPH_ASSUME", "everything")] {
        let output = child(&[(variable, given)]);
        let error = format!("Invalid: Environment {{ variable: {variable:?}, given: {given:?}, ");
        assert!(output.starts_with(&error), "{output}");
    }
}

/// Rule F1: each finalize leaves its report and its graph.
#[test]
fn finalize_writes_its_report_and_graph_where_the_environment_asks_for_it() {
    let folder = std::env::temp_dir().join(format!("clgraph-dump-{}", std::process::id()));
    let inside = folder.join("new");
    child(&[("CLGRAPH_DUMP", inside.to_str().unwrap())]);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&inside).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let extensions: Vec<_> = files.iter().map(|file| file.extension().unwrap().to_str().unwrap()).collect();
    assert_eq!(extensions, ["dot", "graph", "txt", "dot", "graph", "txt"]);
    let read = |file: &PathBuf| std::fs::read_to_string(file).unwrap();
    assert!(read(&files[0]).starts_with("digraph"), "{}", read(&files[0]));
    let nothing = |pass: &str| format!("\n(`{pass}` changes nothing)\n");
    let none = ["inline", "unroll", "fuse", "place memory"].map(nothing).concat();
    assert!(read(&files[1]).contains("n0: fill ") && read(&files[1]).ends_with(&none), "{}", read(&files[1]));
    // The graph before the pass has the sub-graph, and the graph after it has the fill.
    let dumped = read(&files[4]);
    let (before, after) = dumped.split_once("\nafter `inline`:\n").unwrap_or_else(|| panic!("{dumped}"));
    let (after, rest) = after.split_once(&(nothing("unroll") + &nothing("fuse"))).unwrap_or_else(|| panic!("{dumped}"));
    assert_eq!(rest.split_once("\nafter").unwrap().0, "");
    let (_, placed) = rest.split_once("\nafter `place memory`:\n").unwrap_or_else(|| panic!("{dumped}"));
    let fills = |text: &str| text.matches(": fill ").count();
    assert_eq!((fills(before), fills(after), fills(placed)), (1, 2, 2), "{dumped}");
    assert!(
        after.contains("allocation 0, bytes 0..64") && placed.contains("placed, bytes 0..64 of arena 0"),
        "{dumped}"
    );
    assert!(read(&files[5]).contains("segment 0  2 commands by replay (as asked)"), "{}", read(&files[5]));
    let blocked = files[0].join("below-a-file");
    let output = child(&[("CLGRAPH_DUMP", blocked.to_str().unwrap())]);
    assert!(
        output.starts_with(&format!("Invalid: Dump {{ path: {:?}, error: ", blocked.to_str().unwrap())),
        "{output}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Rule F1: files of these names are not overwritten, and links of these names are not followed.
#[cfg(unix)]
#[test]
fn a_report_goes_to_the_next_number_where_a_file_or_a_link_has_its_name() {
    let folder = std::env::temp_dir().join(format!("clgraph-links-{}", std::process::id()));
    let inside = folder.join("dump");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(folder.join("other"), "mine").unwrap();
    // The shell has the process number of the program that it becomes. Each number but 5 and 7 has a taken name: links
    // to a file and to nothing, and a file.
    let script = r#"
        cd "$CLGRAPH_DUMP" && ln -s ../other $$-0.txt && ln -s ../other $$-1.dot && ln -s ../new $$-2.txt &&
        ln -s ../new $$-3.dot && echo mine >$$-4.txt && echo mine >$$-6.dot && exec "$0" "$@"
    "#;
    let mut shell = Process::new("sh");
    shell.args(["-c", script]).arg(std::env::current_exe().unwrap());
    child_of(shell, &[("CLGRAPH_DUMP", inside.to_str().unwrap())]);
    let mut files: Vec<String> = std::fs::read_dir(&inside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().split_once('-').unwrap().1.to_owned())
        .collect();
    files.sort();
    assert_eq!(
        files,
        [
            "0.txt", "1.dot", "2.txt", "3.dot", "4.txt", "5.dot", "5.graph", "5.txt", "6.dot", "7.dot", "7.graph",
            "7.txt"
        ]
    );
    assert_eq!(std::fs::read_to_string(folder.join("other")).unwrap(), "mine");
    assert!(!folder.join("new").exists());
    for file in std::fs::read_dir(&inside).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with("-4.txt") || name.ends_with("-6.dot") {
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine\n");
        } else if name.ends_with("-5.dot") || name.ends_with("-7.dot") {
            assert!(std::fs::read_to_string(&path).unwrap().starts_with("digraph"));
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
