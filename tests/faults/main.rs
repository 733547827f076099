//! Every OpenCL call that a program makes fails once. The result must be an error or the right bytes, nothing leaks,
//! nothing hangs, and afterwards everything works.
//!
//! A layer between the loader and the driver counts calls and makes them fail: `tests/layer`. It has to exist before
//! the first OpenCL call, so the work is done in a child process.
//!
//! A sweep tries a place of about every eighth function of each use (every 16th, where the environment names a path), and
//! of two at least, by chance. It prints its seed; `CLGRAPH_TEST_SEED` tries the same places again. `CLGRAPH_TEST_PLACES` is
//! the number of places (`all`: up to 50 of each function and use).
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod addresses;
mod control;
mod external_events;
mod globals;
mod hangs;
mod host_tasks;
mod images;
mod layer;
#[path = "../common/layer.rs"]
mod layer_place;
#[path = "../common/native.rs"]
mod native;
mod native_commands;
mod paths;
mod profiles;
mod updates;
mod uses;
mod wrapped;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use clgraph::{Caps, Error, Path, ProgramError, Status, SubmitError};
use layer::Layer;
use layer_place::layer_file;
use uses::{USES, Use};

const CHILD: &str = "CLGRAPH_TEST_CHILD";
/// The number of places of one function and use.
const PLACES: u32 = 50;
/// A child that prints nothing for so long hangs.
const LONGEST: Duration = Duration::from_secs(60);
/// After so many findings the sweep stops: they are enough to look into, and each may have taken long.
const ENOUGH: usize = 10;

/// Counts panics on any thread: the library's own threads catch and log them.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// What a sweep has found.
#[derive(Default)]
struct Sweep {
    places: usize,
    /// How many places were reached, and at how many of them a use met an error.
    errors: usize,
    wrong: Vec<String>,
}

/// Calls that uses of opencl3 make. Its errors end the use, and its destructors panic.
fn by_opencl3(one: &Use, function: &str) -> bool {
    one.name == "objects of opencl3" && (function.starts_with("clRelease") || function == "clSetUserEventStatus")
}

/// How many places of a function and use are tried; None for one of some functions and uses: see [`one_in`].
fn sample() -> Option<usize> {
    match std::env::var("CLGRAPH_TEST_PLACES") {
        Ok(all) if all == "all" => Some(PLACES as usize),
        Ok(count) => Some(count.parse().expect("CLGRAPH_TEST_PLACES is a number, or `all`")),
        Err(_) => None,
    }
}

/// Of so many functions about one is tried. Where the environment names a path, the uses run a second time.
fn one_in() -> u32 {
    if std::env::var_os("CLGRAPH_PATH").is_some() { 16 } else { 8 }
}

/// The seed.
fn seed() -> u64 {
    let given = std::env::var("CLGRAPH_TEST_SEED").ok();
    given.map_or_else(|| fastrand::u64(0..1_000_000), |seed| seed.parse().expect("CLGRAPH_TEST_SEED is a number"))
}

/// Returns some of the calls of each function, spread over all of them. The numbers are those of a use's calls.
fn places(calls: &[u32], chance: &mut fastrand::Rng) -> Vec<Vec<u32>> {
    let each = sample();
    let mut some: Vec<usize> =
        calls.iter().map(|_| each.unwrap_or_else(|| usize::from(chance.u32(..one_in()) == 0))).collect();
    if each.is_none() {
        // Uses with few functions have some of them tried, too.
        let taken = some.iter().sum::<usize>();
        let left: Vec<usize> = (0..some.len()).filter(|at| some[*at] == 0 && calls[*at] > 0).collect();
        for at in chance.choose_multiple(left, 2_usize.saturating_sub(taken)) {
            some[at] = 1;
        }
    }
    let of = |(calls, some): (&u32, usize)| {
        let count = (*calls).min(PLACES);
        let spread = (0..count).map(|at| (u64::from(at) * u64::from(*calls) / u64::from(count)) as u32);
        let mut some = chance.choose_multiple(spread, some);
        some.sort_unstable();
        some
    };
    calls.iter().zip(some).map(of).collect()
}

impl Sweep {
    /// Fails each call of a use once.
    fn sweep(&mut self, layer: &Layer, one: &Use, seed: u64) {
        // It tries the same calls, whatever other uses do.
        let mix = |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte));
        let mut chance = fastrand::Rng::with_seed(one.name.bytes().fold(seed, mix));
        let begin = Instant::now();
        // The library keeps nothing from one use to the next. (Earlier leaks were reported before.)
        let mut before = layer.live();
        if self.wrong.is_empty() {
            before.iter_mut().for_each(|(_, references)| *references = 0);
        }
        layer.reset();
        let results = one.run().unwrap();
        if let Err(leak) = layer.wait_for(&before) {
            self.wrong.push(format!("{}: {leak}, without a failure", one.name));
            return;
        }
        let mut functions = layer.functions();
        functions.retain(|name| !by_opencl3(one, name.to_str().unwrap()));
        let calls: Vec<u32> = functions.iter().map(|name| layer.calls(name)).collect();
        let chosen = places(&calls, &mut chance);
        let tried: usize = chosen.iter().map(Vec::len).sum();
        let first = self.places;
        for ((count, function), skips) in calls.into_iter().zip(functions).zip(chosen) {
            let name = function.to_str().unwrap();
            // A command buffer may also be refused temporarily, and is then replayed.
            let statuses: &[i32] = if name == "clEnqueueCommandBufferKHR" { &[-5, -59] } else { &[-5] };
            for (skip, status) in skips.into_iter().flat_map(|skip| statuses.iter().map(move |status| (skip, *status)))
            {
                if self.wrong.len() >= ENOUGH {
                    return;
                }
                let place = format!("{}: {name} {skip} of {count} fails with {status}", one.name);
                println!("PLACE {place}");
                let panics = PANICS.load(SeqCst);
                layer.reset();
                layer.fail(&function, skip, status);
                let outcome = one.run();
                let (failed, met) = (layer.has_failed(), uses::take_errors());
                layer.reset();
                if failed {
                    self.places += 1;
                    self.errors += usize::from(outcome.is_err() || !met.first.is_empty());
                }
                let mut say = |what: String| self.wrong.push(format!("{place}: {what}"));
                if !met.second.is_empty() {
                    say(format!("it fails once more: {met:?}"));
                }
                for error in met.first.iter().chain(outcome.as_ref().err()) {
                    // What opencl3 returns is a status only, and the use gives it the name of opencl3's function.
                    let status_only = |call: clgraph::DriverError| call.status == Status(status);
                    let of_opencl3 = one.name == "objects of opencl3" && error.driver_error().is_some_and(status_only);
                    if !names_it(error, name, status) && !of_opencl3 {
                        say(format!("an error that does not tell what failed: {error}"));
                    }
                }
                match outcome {
                    Ok(got) if got != results => say("wrong results".to_owned()),
                    Err(error) if !failed => say(format!("failed by itself: {error}")),
                    _ => {}
                }
                if PANICS.load(SeqCst) != panics {
                    say("a panic".to_owned());
                }
                if let Err(leak) = layer.wait_for(&before) {
                    say(leak);
                    before = layer.live();
                }
            }
        }
        // In a small sample each failed call may be one that was not reached.
        if self.places == first && tried > 8 {
            self.wrong.push(format!("{}: none of its calls has failed", one.name));
        }
        assert_eq!(one.run().unwrap(), results, "{}: everything works afterwards", one.name);
        if !is_idle() {
            self.wrong.push(format!("{}: a thread never rests again", one.name));
        }
        println!("TIME {}: {} places in {:?}", one.name, self.places - first, begin.elapsed());
    }
}

/// Returns whether nothing runs any more: a driver may lose a thread in a loop, and continue with the others.
fn is_idle() -> bool {
    // Hundredths of a second in user and system mode: the 14th and 15th field. The 2nd field may contain spaces.
    let ticks = || {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields = stat.rsplit_once(')').unwrap().1;
        fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
    };
    // A driver may spin for a while before it sleeps.
    (0..20).any(|_| {
        let before = ticks();
        std::thread::sleep(Duration::from_millis(100));
        ticks() - before < 5
    })
}

/// Returns whether an error says which call failed, and with what status. What it says is searched for that, because
/// functions of tasks return texts, and drivers without a device are told of in a text.
fn names_it(error: &Error, function: &str, status: i32) -> bool {
    // A log follows, and what is built is named.
    if let ("clBuildProgram", Error::Program(ProgramError::BuildFailed { status: of, .. })) = (function, error) {
        return of.0 == status;
    }
    // It returns no status.
    let status = if function == "clSVMAlloc" { -4 } else { status };
    match error.driver_error() {
        Some(call) => (call.call, call.status) == (function, Status(status)),
        // What a host task fails with, and why there is no device, are texts.
        None => error.to_string().contains(&format!("{function} failed with {}", Status(status))),
    }
}

/// Functions that can be made to fail, and that nothing has called so far.
fn not_called(layer: &Layer) -> BTreeSet<String> {
    let functions = layer.functions().into_iter().filter(|function| layer.calls(function) == 0);
    functions.map(|function| function.into_string().unwrap()).collect()
}

/// Functions that no use can call on a device.
fn beyond_reach(layer: &Layer, caps: &Caps) -> BTreeSet<String> {
    let buffers = caps.command_buffers.as_ref().filter(|_| caps.can_record(clgraph::CommandKind::Kernel).is_ok());
    let lacks = |function: &str| buffers.is_some_and(|buffers| buffers.missing_commands.contains(&function));
    let (maps, il) =
        (!caps.platform.starts_with("Portable") || !caps.driver_version.starts_with("7."), &caps.il_versions);
    let svm = caps.has_memory(clgraph::MemoryKind::SvmCoarse);
    let can = |name: &str| match name {
        "clUpdateMutableCommandsKHR" => buffers.is_some_and(|buffers| buffers.mutable.is_some()),
        name if name.ends_with("KHR") => buffers.is_some() && !lacks(name),
        name if name.contains("GlobalVariable") => caps.named_global_access,
        name if name.ends_with("INTEL") => caps.usm.is_some(),
        // See `docs/drivers.md`: memory that a command has mapped is never released.
        "clEnqueueSVMMap" | "clEnqueueSVMUnmap" => svm && maps,
        name if name.contains("SVM") => svm,
        name if name.contains("Image") || name.contains("Sampler") => caps.images.is_some(),
        // Nothing waits by `clFinish` (see `Queue::finish`), except for what Intel's driver needs: it keeps dropped queues.
        "clFinish" => caps.platform.starts_with("Intel"),
        "clCreateProgramWithIL" => !il.is_empty(),
        "clCreateProgramWithBuiltInKernels" => !caps.builtin_kernels.is_empty(),
        _ => true,
    };
    layer.functions().into_iter().map(|name| name.into_string().unwrap()).filter(|name| !can(name)).collect()
}

/// Checks that the layer counts live objects. If it did not, the sweep would find no leaks.
fn the_layer_sees_what_is_held(layer: &Layer) {
    let of = |kind: &str| layer.live().into_iter().find(|(name, _)| name == kind).unwrap().1;
    let kinds = ["context", "queue", "mem", "program", "kernel"];
    // Other threads release some.
    let nothing: Vec<_> = layer.live().into_iter().map(|(kind, _)| (kind, 0)).collect();
    layer.wait_for(&nothing).unwrap();
    let queue = uses::setup().unwrap();
    let buffer = clgraph::Buffer::<u32>::new(&queue, 1).unwrap();
    let kernel =
        clgraph::Program::from_source(&queue, uses::SOURCE).and_then(|program| program.kernel("stir")).unwrap();
    for kind in kinds {
        assert!(of(kind) > 0, "a {kind} is held");
    }
    drop((buffer, kernel, queue));
    layer.wait_for(&nothing).unwrap();
}

/// The memory of device globals on a device that has neither SVM nor USM, as far as the layer can make one.
fn globals_are_buffers_where_nothing_has_an_address(layer: &Layer, expected: &[Vec<u32>]) {
    layer.reset();
    let caps = clgraph::best_device().unwrap().caps().clone();
    let queries = layer.calls(c"clGetDeviceInfo");
    let kind =
        |caps: &Caps| clgraph::MemoryKind::ALL.into_iter().find(|kind| kind.is_pointer() && caps.has_memory(*kind));
    // One query fails at a time, and USM has several.
    let alone = caps.usm.is_none();
    let hidden = (0..queries).any(|skip| {
        layer.reset();
        layer.fail(c"clGetDeviceInfo", skip, -30);
        let Ok(device) = clgraph::best_device() else { return false };
        layer.reset();
        kind(device.caps()).is_none() && {
            let queue = clgraph::Queue::new(&device).unwrap();
            assert_eq!(globals::TOTAL.on(&queue).unwrap().kind(), clgraph::MemoryKind::Buffer);
            assert_eq!(device.caps().global_access(), [clgraph::GlobalAccess::Argument]);
            assert_eq!(globals::on(&queue, Path::Auto).unwrap(), expected);
            true
        }
    });
    layer.reset();
    assert_eq!(hidden, alone, "{caps:?}");
}

/// H7: a task whose memory cannot be unmapped fails, and reports it.
fn what_stays_mapped_fails_its_task(layer: &Layer) {
    let queue = uses::setup().unwrap();
    let buffer = clgraph::Buffer::from_slice(&queue, &[1_u32; 64]).unwrap();
    let graph = clgraph::Graph::new(&queue).unwrap();
    // SAFETY: nothing else uses the buffer.
    let map = unsafe { graph.map(&buffer, clgraph::MapRead, |_, _: &mut clgraph::Mapped<u32>| ()) };
    map.add().unwrap();
    let executable = graph.finalize(clgraph::Finalize::new()).unwrap();
    layer.fail(c"clEnqueueUnmapMemObject", 0, -5);
    let outcome = executable.submit(&queue).unwrap().wait();
    assert!(layer.has_failed());
    layer.reset();
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Submit(SubmitError::HostTask { .. })), "{error}");
    assert!(names_it(&error, "clEnqueueUnmapMemObject", -5), "{error}");
    executable.submit(&queue).unwrap().wait().unwrap();
}

/// The other half of the test below. By itself it runs the uses once without failures. To look into a use, set the
/// variable to its name, and OPENCL_LAYERS to the layer's file.
#[test]
fn the_child_fails_every_call_once() {
    let everything: Vec<_> = USES.iter().map(|one| one.run().unwrap()).collect();
    let of = |name: &str| &everything[USES.iter().position(|one| one.name == name).unwrap()];
    assert!(
        everything[..8].iter().all(|results| *results == everything[0]),
        "all paths and queues give the same bytes"
    );
    for name in [
        "updated",
        "addresses",
        "owned memory",
        "images",
        "globals",
        "mapped for tasks",
        "unrolled",
        "recorded native commands",
    ] {
        assert_eq!(of(name), of(&format!("{name}, native")), "both paths give the same bytes");
    }
    let every = of("every instruction");
    for path in ["native", "replay"] {
        assert_eq!(of(&format!("every instruction, timed, {path}"))[..every.len()], every[..], "{path}");
    }
    // Where nothing fails, command buffers are used if the driver has them.
    let (with, caps) = (paths::WITH_COMMAND_BUFFERS.load(SeqCst), clgraph::best_device().unwrap().caps().clone());
    let expected = [false, true].into_iter().filter(|profiled| native::records(&caps, *profiled)).count();
    assert_eq!(with, expected, "of two uses that ask for command buffers");
    let Ok(only) = std::env::var(CHILD) else { return };
    let layer = Layer::open();
    assert!(!layer.live().is_empty() && layer.calls(c"clGetDeviceInfo") > 0, "OPENCL_LAYERS does not name the layer");
    let (not_called, beyond) = (not_called(&layer), beyond_reach(&layer, clgraph::best_device().unwrap().caps()));
    assert_eq!(not_called, beyond, "functions of the layer that no use calls, and those that no use can call here");
    the_layer_sees_what_is_held(&layer);
    globals_are_buffers_where_nothing_has_an_address(&layer, of("globals"));
    what_stays_mapped_fails_its_task(&layer);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, SeqCst);
        hook(panic);
    }));
    let mut sweep = Sweep::default();
    let share = only.split_once(" of ").and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
    let uses: Vec<_> = match share {
        Some((at, of)) => USES.iter().filter(|one| one.is_swept()).skip(at).step_by(of).collect(),
        None => USES.iter().filter(|one| only == one.name).collect(),
    };
    assert!(!uses.is_empty(), "{CHILD} is {only}, and no use has that name");
    let seed = seed();
    uses.into_iter().for_each(|one| sweep.sweep(&layer, one, seed));
    println!("RESULT {} {}; {} END", sweep.places, sweep.errors, sweep.wrong.join("\n"));
}

/// The outcome of a child that sweeps a share of the uses: its places and errors, its output, and what was wrong.
fn swept(share: &str, seed: u64) -> (usize, usize, String, String) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "the_child_fails_every_call_once", "--nocapture"])
        .env(CHILD, share)
        .env("CLGRAPH_TEST_SEED", seed.to_string());
    child.env("OPENCL_LAYERS", layer_file()).stdin(Stdio::null());
    let log = std::env::temp_dir().join(format!("clgraph-faults-{}-{share}", std::process::id()));
    let file = std::fs::File::create(&log).unwrap();
    let mut child = child.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let (mut length, mut grew) = (0, Instant::now());
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        let now = std::fs::metadata(&log).unwrap().len();
        if now != length {
            (length, grew) = (now, Instant::now());
        } else if grew.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap()).into_owned();
    std::fs::remove_file(&log).unwrap();
    let last = text.lines().rev().find(|line| line.contains("PLACE ")).unwrap_or("before the first place").to_owned();
    let Some(status) = status else { panic!("it hangs at {last} (seed {seed})") };
    let result = text.split_once("RESULT ").and_then(|(_, rest)| rest.split_once(" END"));
    let Some((result, _)) = result else { panic!("{status}, at {last} (seed {seed}): {text}") };
    let (numbers, wrong) = result.split_once("; ").unwrap();
    let (places, errors) = numbers.split_once(' ').unwrap();
    (places.parse().unwrap(), errors.parse().unwrap(), wrong.to_owned(), text)
}

/// Rules E2, E3: each OpenCL call that these programs make is failed once.
#[test]
fn a_call_that_fails_is_a_clean_error_wherever_it_is() {
    let (begin, shares) = (Instant::now(), std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4)));
    let seed = seed();
    // At once: a driver may end the process.
    writeln!(std::io::stdout(), "sweep: seed {seed}").unwrap();
    let all: Vec<_> = std::thread::scope(|scope| {
        let children: Vec<_> =
            (0..shares).map(|at| scope.spawn(move || swept(&format!("{at} of {shares}"), seed))).collect();
        children.into_iter().map(|child| child.join()).collect()
    });
    let (mut places, mut errors, mut wrong) = (0, 0, String::new());
    // Printed past the harness, which shows no output of a test that passes.
    let mut out = std::io::stdout();
    for one in all {
        let (its_places, its_errors, its_wrong, text) = one.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        places += its_places;
        errors += its_errors;
        wrong += &its_wrong;
        for (_, time) in text.lines().filter_map(|line| line.split_once("TIME ")) {
            writeln!(out, "sweep: {time}").unwrap();
        }
    }
    for one in USES.iter().filter(|one| !one.is_swept()) {
        writeln!(out, "sweep: {} is left out: as without CLGRAPH_PATH", one.name).unwrap();
    }
    let each = sample().map_or_else(|| format!("1 of every {}th", one_in()), |places| format!("{places} a"));
    let which = format!("seed {seed}, {each} function and use");
    writeln!(out, "CLGRAPH_TEST_SEED={seed}").unwrap();
    writeln!(out, "sweep: {places} places ({which}), {errors} with an error, in {:?}", begin.elapsed()).unwrap();
    assert!(wrong.is_empty(), "{wrong} ({which}: CLGRAPH_TEST_SEED and CLGRAPH_TEST_PLACES try the same again)");
    // How many a sample has is chance; each child has seen by its counts that the layer is there.
    assert!(places > 0 && errors > 0, "{places} places, {errors} with an error: the sample is too small");
}

/// Calls that a process makes only once fail in a process of their own, at its first calls.
#[test]
fn a_first_call_that_fails_is_a_clean_error_and_not_for_ever() {
    let functions = [
        "clGetPlatformIDs",
        "clGetPlatformInfo",
        "clGetDeviceIDs",
        "clGetDeviceInfo",
        "clCreateContext",
        "clCreateCommandQueueWithProperties",
        "clCreateCommandBufferKHR",
        "clCommandBarrierWithWaitListKHR",
        "clFinalizeCommandBufferKHR",
    ];
    let mut reached = 0;
    for (function, skip) in functions.iter().flat_map(|function| (0..3).map(move |skip| (function, skip))) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "the_child_fails_a_first_call", "--nocapture"]);
        child.env("OPENCL_LAYERS", layer_file()).env(CHILD, format!("{function} {skip}"));
        let output = child.stdin(Stdio::null()).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{function} {skip}: {stdout}{}", String::from_utf8_lossy(&output.stderr));
        assert!(stdout.contains("RESULT"), "{function} {skip}: it did nothing: {stdout}");
        reached += usize::from(stdout.contains("RESULT REACHED"));
    }
    assert!(reached >= 10, "{reached} are too few: does the layer see first calls?");
}

/// Rules Z2, Z6, Z7: what fails in the background keeps a graph from being fused. A compiler that never returns costs the thread that builds fused
/// kernels. Everything else goes on, and the process ends. A fused kernel that is slow is given up.
#[test]
fn a_compiler_that_never_returns_holds_nothing_up() {
    if std::env::var(CHILD).is_ok_and(|name| name == hangs::NAME) {
        hangs::run(&Layer::open());
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_compiler_that_never_returns_holds_nothing_up", "--nocapture"]);
    child.env("OPENCL_LAYERS", layer_file()).env(CHILD, hangs::NAME);
    // Only what is left to clgraph is fused unasked.
    child.env_remove("CLGRAPH_PATH");
    let output = child.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(hangs::ENDED), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The other half of the test of first calls.
#[test]
fn the_child_fails_a_first_call() {
    let Ok(place) = std::env::var(CHILD) else { return };
    let Some((function, skip)) = place.rsplit_once(' ') else { return };
    let Ok(skip) = skip.parse() else { return };
    let layer = Layer::open();
    layer.fail(&std::ffi::CString::new(function).unwrap(), skip, -5);
    let first = USES[1].run();
    let errors = uses::take_errors();
    let reached = layer.has_failed();
    layer.reset();
    assert!(errors.second.is_empty(), "it fails once more: {errors:?}");
    let results = USES[1].run().unwrap();
    match first {
        Ok(first) => assert_eq!(first, results),
        Err(error) => {
            assert!(reached && names_it(&error, function, -5), "an error that does not tell what failed: {error}");
        }
    }
    let nothing: Vec<_> = layer.live().into_iter().map(|(kind, _)| (kind, 0)).collect();
    layer.wait_for(&nothing).unwrap();
    println!("RESULT {}", if reached { "REACHED" } else { "PASSED" });
}
