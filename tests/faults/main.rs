//! Every OpenCL call that a program makes fails once: the result is an error or the right bytes, nothing leaks, nothing hangs,
//! and afterwards everything works.
//!
//! A layer between the loader and the driver counts and fails: `tests/layer`. It has to be there before the first OpenCL
//! call, so the work is done in a process of its own.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod layer;
mod uses;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use layer::{Layer, layer_file};
use uses::{USES, Use};

const CHILD: &str = "CLGRAPH_TEST_CHILD";
/// Places of one function and use at which it fails.
const PLACES: u32 = 50;
/// A child that says nothing for so long hangs.
const LONGEST: Duration = Duration::from_secs(60);
/// So many findings are enough to look into, and each may have taken its time.
const ENOUGH: usize = 10;

/// What a sweep has seen.
#[derive(Default)]
struct Sweep {
    places: usize,
    errors: usize,
    wrong: Vec<String>,
}

impl Sweep {
    /// Fails each call of a use once.
    fn sweep(&mut self, layer: &Layer, one: &Use) {
        let begin = Instant::now();
        // The library keeps nothing from one use to the next.
        let mut before: Vec<_> = layer.live().into_iter().map(|(kind, _)| (kind, 0)).collect();
        layer.reset();
        let results = (one.run)().unwrap();
        layer.wait_for(&before).unwrap_or_else(|leak| panic!("{}: {leak}", one.name));
        let calls: Vec<_> = layer.functions().into_iter().map(|name| (layer.calls(&name), name)).collect();
        let first = self.places;
        for (count, name) in calls {
            for skip in 0..count.min(PLACES) {
                if self.wrong.len() >= ENOUGH {
                    return;
                }
                let place = format!("{}: {} {skip} of {count}", one.name, name.to_str().unwrap());
                println!("PLACE {place}");
                layer.reset();
                layer.fail(&name, skip, -5); // CL_OUT_OF_RESOURCES
                let outcome = (one.run)();
                let failed = layer.has_failed();
                layer.reset();
                self.places += 1;
                self.errors += usize::from(outcome.is_err());
                let mut say = |what: String| self.wrong.push(format!("{place}: {what}"));
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
        assert_eq!((one.run)().unwrap(), results, "{}: everything works afterwards", one.name);
        println!("TIME {}: {} places in {:?}", one.name, self.places - first, begin.elapsed());
    }
}

/// The other half of the test below; by itself it does what is swept, once, with nothing that fails. A developer who looks
/// into a use sets the variable to its name.
#[test]
fn the_child_fails_every_call_once() {
    let everything: Vec<_> = USES.iter().map(|one| (one.run)().unwrap()).collect();
    let forms = everything.iter().filter(|results| results.len() == 3 && results[0].len() == 256);
    assert!(forms.clone().count() == 8, "the first eight uses are one program");
    assert!(forms.into_iter().all(|results| *results == everything[0]), "all paths and queues give the same bytes");
    let Ok(only) = std::env::var(CHILD) else { return };
    let layer = Layer::open();
    let mut sweep = Sweep::default();
    for one in USES.iter().filter(|one| only == "all" || only == one.name) {
        sweep.sweep(&layer, one);
    }
    println!("RESULT {} {}; {} END", sweep.places, sweep.errors, sweep.wrong.join("\n"));
}

/// Rules E2, E3: each OpenCL call that these programs make is failed once.
#[test]
fn a_call_that_fails_is_a_clean_error_wherever_it_is() {
    let begin = Instant::now();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_child_fails_every_call_once", "--nocapture"]).env(CHILD, "all");
    child.env("OPENCL_LAYERS", layer_file()).stdin(Stdio::null());
    let said = std::env::temp_dir().join(format!("clgraph-faults-{}", std::process::id()));
    let file = std::fs::File::create(&said).unwrap();
    let mut child = child.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let (mut length, mut grew) = (0, begin);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        let now = std::fs::metadata(&said).unwrap().len();
        if now != length {
            (length, grew) = (now, Instant::now());
        } else if grew.elapsed() > LONGEST {
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
    text.lines().filter_map(|line| line.split_once("TIME ")).for_each(|(_, time)| println!("{time}"));
    println!("{} places, {} of them with an error, in {:?}", numbers[0], numbers[1], begin.elapsed());
    assert!(wrong.is_empty(), "{wrong}");
    assert!(numbers[0] > 1500 && numbers[1] > 1000, "{numbers:?} are too few: is the layer there?");
}
