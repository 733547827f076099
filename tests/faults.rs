//! Every OpenCL call that a program makes fails once: the result is an error or the right bytes, nothing leaks, nothing hangs,
//! and afterwards everything works.
//!
//! A layer between the loader and the driver counts and fails: `tests/layer`. It has to be there before the first OpenCL
//! call, so the work is done in a process of its own.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod common;

use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clgraph::{Buffer, DriverError, Finalize, Graph, InContext, Path, Program, Queue, QueueProperties, Result};
use common::SOURCE;
use dlopen2::raw::Library;

const CHILD: &str = "CLGRAPH_TEST_CHILD";
/// Places of one function and scenario at which it fails.
const PLACES: u32 = 50;
/// A child that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(300);

/// The layer that cargo has built beside the tests.
fn layer_file() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let file = deps.ancestors().nth(2).unwrap().join("examples/libfault_layer.so");
    assert!(file.exists(), "{}: `cargo build --example fault_layer` builds it", file.display());
    file
}

/// The layer's functions for tests.
struct Layer {
    function: extern "C" fn(usize) -> *const c_char,
    calls: extern "C" fn(*const c_char) -> u32,
    reset: extern "C" fn(),
    fail: extern "C" fn(*const c_char, u32, i32),
    has_failed: extern "C" fn() -> bool,
    live: extern "C" fn(usize) -> i64,
    kind: extern "C" fn(usize) -> *const c_char,
    _library: Library,
}

impl Layer {
    fn open() -> Self {
        let library = Library::open(layer_file()).unwrap();
        // SAFETY: the layer's own signatures.
        unsafe {
            Self {
                function: library.symbol("layer_function").unwrap(),
                calls: library.symbol("layer_calls").unwrap(),
                reset: library.symbol("layer_reset").unwrap(),
                fail: library.symbol("layer_fail").unwrap(),
                has_failed: library.symbol("layer_has_failed").unwrap(),
                live: library.symbol("layer_live").unwrap(),
                kind: library.symbol("layer_kind").unwrap(),
                _library: library,
            }
        }
    }

    fn functions(&self) -> Vec<CString> {
        self.names(self.function)
    }

    fn names(&self, of: extern "C" fn(usize) -> *const c_char) -> Vec<CString> {
        // SAFETY: the layer's names end with zero and live as long as it.
        let name = |raw: *const c_char| (!raw.is_null()).then(|| unsafe { CStr::from_ptr(raw) }.to_owned());
        (0..).map_while(|index| name(of(index))).collect()
    }

    /// References by kind.
    fn live(&self) -> Vec<(String, i64)> {
        let kinds = self.names(self.kind);
        kinds.iter().enumerate().map(|(at, kind)| (kind.to_str().unwrap().to_owned(), (self.live)(at))).collect()
    }

    /// Waits until the references are those of before: some are given back by other threads.
    fn wait_for(&self, before: &[(String, i64)]) -> std::result::Result<(), String> {
        let begin = Instant::now();
        loop {
            let now = self.live();
            if now == before {
                return Ok(());
            }
            if begin.elapsed() > Duration::from_secs(3) {
                return Err(format!("{now:?} are alive, {before:?} were before"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A use of the library, from the device to the results.
struct Scenario {
    name: &'static str,
    path: Path,
    queue: QueueProperties,
    end: End,
}

/// How a scenario goes on when it has an executable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It submits, and waits.
    Wait,
    /// It submits behind an event that is complete only later.
    Defer,
    /// It submits and drops the executable while it may run, and is told of the end by a callback.
    Drop,
}

const PLAIN: QueueProperties = QueueProperties::new();

const SCENARIOS: [Scenario; 8] = [
    Scenario { name: "replay", path: Path::Replay, queue: PLAIN, end: End::Wait },
    Scenario { name: "native", path: Path::Native, queue: PLAIN, end: End::Wait },
    Scenario { name: "out of order", path: Path::Auto, queue: PLAIN.out_of_order(true), end: End::Wait },
    Scenario { name: "native, profiling", path: Path::Native, queue: PLAIN.profiling(true), end: End::Wait },
    Scenario { name: "deferred", path: Path::Replay, queue: PLAIN, end: End::Defer },
    Scenario { name: "deferred, out of order", path: Path::Native, queue: PLAIN.out_of_order(true), end: End::Defer },
    Scenario { name: "dropped", path: Path::Replay, queue: PLAIN, end: End::Drop },
    Scenario { name: "dropped, native", path: Path::Native, queue: PLAIN, end: End::Drop },
];

/// A user event that is complete at last, whatever happens.
struct Later(opencl3::event::Event);

impl Later {
    fn new(queue: &Queue) -> Result<Self> {
        let raw = opencl3::event::create_user_event(queue.context().raw());
        let failed = |status| DriverError::new("clCreateUserEvent", clgraph::Status(status));
        Ok(Self(opencl3::event::Event::new(raw.map_err(failed)?)))
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        opencl3::event::set_user_event_status(self.0.get(), 0).unwrap();
    }
}

impl Scenario {
    /// Everything that is made is dropped. The result of each of three submissions.
    fn run(&self) -> Result<Vec<Vec<u32>>> {
        let device = clgraph::best_device()?;
        let first = Queue::new(&device)?;
        let queue = Queue::with_properties(&first, &device, self.queue)?;
        let program = Program::from_source(&queue, SOURCE)?;
        let (stir, scale) = (program.kernel("stir")?, program.kernel("scale")?);
        let (a, b) = (Buffer::<u32>::new(&queue, 256)?, Buffer::<u32>::from_slice(&queue, &[1; 256])?);
        let half = b.sub_buffer(128..)?;
        let graph = Graph::new(&queue)?;
        let input = graph.write(&a, [1; 256]).add()?;
        // SAFETY: each work-item touches its own element.
        unsafe {
            graph.kernel(&stir).read_write(&a).range(256).add()?;
            graph.kernel(&scale).read(&a).write(&half).arg(3_u32).range(128).add()?;
        }
        graph.fill(&a.slice(..8)?, 7).add()?;
        graph.copy(&half.slice(..4)?, &a.slice(8..12)?).add()?;
        graph.copy_rect(&half, &a).region([2, 2, 1]).src_pitch(8, 0).dst_pitch(8, 0).dst_origin([2, 4, 0]).add()?;
        let output = graph.read(&a).add()?;
        let executable = graph.finalize(Finalize::new().path(self.path))?;
        let later = if self.end == End::Defer { Some(Later::new(&queue)?) } else { None };
        let submit = executable.submit_to(&queue);
        let submit = if let Some(later) = &later { submit.after(&later.0) } else { submit };
        let runs = [
            submit.submit()?,
            executable.submit_to(&queue).with(&input, [2; 256]).submit()?,
            executable.submit(&first)?,
        ];
        executable.submit_to(&queue).submit_detached()?;
        drop(later);
        if self.end == End::Drop {
            let (tell, told) = std::sync::mpsc::channel();
            runs[2].on_complete(move |outcome| tell.send(outcome).unwrap());
            drop((executable, graph));
            told.recv().unwrap()?;
        }
        let results = runs.iter().map(|run| {
            run.wait()?;
            Ok(run.get(&output)?.to_vec())
        });
        let results = results.collect();
        queue.finish()?;
        results
    }
}

/// The other half of the test below; by itself it does what is swept, once, with nothing that fails.
#[test]
fn the_child_fails_every_call_once() {
    let expected: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.run().unwrap()).collect();
    assert!(expected.iter().all(|results| *results == expected[0]), "all paths and queues give the same bytes");
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let layer = Layer::open();
    let (mut wrong, mut places, mut errors) = (Vec::new(), 0, 0);
    for scenario in &SCENARIOS {
        // The library keeps nothing from one use to the next.
        let mut before: Vec<_> = layer.live().into_iter().map(|(kind, _)| (kind, 0)).collect();
        (layer.reset)();
        let results = scenario.run().unwrap();
        layer.wait_for(&before).unwrap_or_else(|leak| panic!("{}: {leak}", scenario.name));
        let calls: Vec<_> = layer.functions().into_iter().map(|name| ((layer.calls)(name.as_ptr()), name)).collect();
        for (count, name) in calls {
            for skip in 0..count.min(PLACES) {
                println!("PLACE {}: {} {skip} of {count}", scenario.name, name.to_str().unwrap());
                (layer.reset)();
                (layer.fail)(name.as_ptr(), skip, -5); // CL_OUT_OF_RESOURCES
                let outcome = scenario.run();
                let failed = (layer.has_failed)();
                (layer.reset)();
                places += 1;
                let mut say = |what: String| wrong.push(format!("{}: {name:?} {skip}: {what}", scenario.name));
                errors += usize::from(outcome.is_err());
                match outcome {
                    Ok(got) if got != results => say("wrong results".to_owned()),
                    Err(error) if !failed => say(format!("failed by itself: {error}")),
                    _ => {}
                }
                if let Err(leak) = layer.wait_for(&before) {
                    say(leak);
                    before = layer.live();
                }
            }
        }
        assert_eq!(scenario.run().unwrap(), results, "everything works afterwards");
    }
    println!("RESULT {places} {errors}; {} END", wrong.join("\n"));
}

/// Rules E2, E3: each OpenCL call that these programs make is failed once.
#[test]
fn a_call_that_fails_is_a_clean_error_wherever_it_is() {
    let begin = Instant::now();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_child_fails_every_call_once", "--nocapture"]).env(CHILD, "1");
    child.env("OPENCL_LAYERS", layer_file()).stdin(Stdio::null());
    let said = std::env::temp_dir().join(format!("clgraph-faults-{}", std::process::id()));
    let file = std::fs::File::create(&said).unwrap();
    let mut child = child.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if begin.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = String::from_utf8_lossy(&std::fs::read(&said).unwrap()).into_owned();
    std::fs::remove_file(&said).unwrap();
    let last = text.lines().rev().find(|line| line.contains("PLACE ")).unwrap_or("before the first place").to_owned();
    let Some(status) = status else { panic!("it hangs at {last}") };
    let result = text.split_once("RESULT ").and_then(|(_, rest)| rest.split_once(" END"));
    let Some((result, _)) = result else { panic!("{status}, at {last}: {text}") };
    let (numbers, wrong) = result.split_once("; ").unwrap();
    let numbers: Vec<usize> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    println!("{} places, {} of them with an error, in {:?}", numbers[0], numbers[1], begin.elapsed());
    assert!(wrong.is_empty(), "{wrong}");
    assert!(numbers[0] > 300 && numbers[1] > 200, "{numbers:?} are too few: is the layer there?");
}
