//! Fused kernels that a process keeps for the next one, beside the tuning cache. Whatever is in the files, results are the same.
//!
//! A process has one logger, so the tests are one.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clgraph::{Buffer, Executable, Finalize, Fuse, Graph, Program};
use common::Bench;
use log::{Level, LevelFilter, Log, Metadata, Record};

const LEN: usize = 64;
const LAUNCHES: u32 = 40;
const PATIENCE: Duration = Duration::from_secs(120);

const SOURCE: &str = "
    kernel void advance(global uint *x, uint by) { size_t i = get_global_id(0); x[i] = x[i] * 3 + by + (uint)i; }
";

/// A process that has this variable uses the file that it names, and ends.
const CHILD: &str = "CLGRAPH_TEST_KEPT";

/// Stores what clgraph says of kept programs.
struct Lines(Mutex<Vec<(Level, String)>>);

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("clgraph")
    }

    fn log(&self, record: &Record<'_>) {
        let text = record.args().to_string();
        if self.enabled(record.metadata()) && text.starts_with("kept program ") {
            self.0.lock().unwrap().push((record.level(), text));
        }
    }

    fn flush(&self) {}
}

static LINES: Lines = Lines(Mutex::new(Vec::new()));

/// Returns a graph of a program that no other graph has: graphs of one program share fused kernels.
fn chain(bench: &Bench, x: &Buffer<u32>) -> Graph {
    chain_of(bench, &Program::from_source(&bench.queue, SOURCE).unwrap(), x)
}

fn chain_of(bench: &Bench, program: &Program, x: &Buffer<u32>) -> Graph {
    let (graph, kernel) = (bench.graph(), program.kernel("advance").unwrap());
    for by in 0..LAUNCHES {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&kernel).read_write(x).arg(by).range(LEN).add() }.unwrap();
    }
    graph
}

fn model(mut x: Vec<u32>) -> Vec<u32> {
    for by in 0..LAUNCHES {
        x.iter_mut().enumerate().for_each(|(i, x)| *x = x.wrapping_mul(3).wrapping_add(by + i as u32));
    }
    x
}

/// Finalizes a chain, submits it, and checks what it did. Returns what was said of kept programs.
fn once(bench: &Bench, options: Finalize) -> (Executable, Vec<(Level, String)>) {
    bench.let_threads_run();
    LINES.0.lock().unwrap().clear();
    let x = bench.buffer(&[7; LEN]);
    let executable = chain(bench, &x).finalize(options).unwrap();
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!(bench.content(&x), model(vec![7; LEN]));
    // The log is written on a thread of clgraph's.
    bench.let_threads_run();
    let lines = std::mem::take(&mut *LINES.0.lock().unwrap());
    (executable, lines)
}

/// Waits until there are so many files in a folder that are complete, and returns them.
fn files(folder: &Path, count: usize) -> Vec<PathBuf> {
    let begun = Instant::now();
    loop {
        let all = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let complete: Vec<PathBuf> = all.filter(|path| path.extension().is_none()).collect();
        if complete.len() >= count {
            return complete;
        }
        assert!(begun.elapsed() < PATIENCE, "there are {complete:?} in {}", folder.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a file has other content: what is damaged is replaced.
fn until_changed(file: &Path, content: &[u8]) {
    let begun = Instant::now();
    while fs::read(file).unwrap() == content {
        assert!(begun.elapsed() < PATIENCE, "{} was not replaced", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn is_used(lines: &[(Level, String)]) -> bool {
    lines.iter().any(|(level, text)| *level == Level::Debug && text.ends_with(": used"))
}

/// Returns whether one warning has this in it, and nothing else was said.
fn warns(lines: &[(Level, String)], of: &str) -> bool {
    matches!(lines, [(Level::Warn, text)] if text.contains(of))
}

/// Rule Z10
#[test]
fn fused_kernels_are_kept_for_the_next_process() {
    log::set_logger(&LINES).unwrap();
    log::set_max_level(LevelFilter::Debug);
    let bench = Bench::new();
    if let Some(cache) = std::env::var_os(CHILD) {
        let (_, said) = once(&bench, Finalize::new().fuse(Fuse::Now).tuning_cache(PathBuf::from(cache)));
        return println!("said: {said:?}");
    }
    let place = folder("all");
    let (cache, programs) = (place.join("tuning.json"), place.join("tuning.json.programs"));
    let now = || Finalize::new().fuse(Fuse::Now).tuning_cache(&cache);

    let (executable, said) = once(&bench, now());
    let fused = executable.report().fused.clone();
    assert_eq!(fused.iter().map(|of| of.nodes.len()).sum::<usize>(), LAUNCHES as usize, "{}", executable.report());
    assert_eq!(said, [], "nothing was kept yet");
    let kept = files(&programs, 1);
    let [file] = kept.as_slice() else { panic!("one program, and {kept:?}") };

    // An executable that can be updated has another program, because other arguments are apart.
    let (executable, said) = once(&bench, now());
    assert!(is_used(&said), "{said:?}");
    assert_eq!(executable.report().fused, fused);
    assert_eq!(executable.report().unchecked_kernels, Vec::<String>::new());
    assert_eq!(executable.report().warnings, Vec::<String>::new());
    let (_, said) = once(&bench, now().updatable());
    assert!(said.iter().all(|(level, _)| *level == Level::Debug), "{said:?}");
    let (_, said) = once(&bench, now().updatable());
    assert!(is_used(&said), "{said:?}");

    // Without a tuning cache, nothing is kept and nothing is read.
    let (_, said) = once(&bench, Finalize::new().fuse(Fuse::Now));
    assert_eq!(said, []);

    // Damaged, in every part.
    let good = fs::read(file).unwrap();
    let head = good.iter().position(|byte| *byte == b'\n').unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut first = good.clone();
    first[head + 1 + SOURCE.len()] ^= 1;
    let mut longer = good.clone();
    longer.push(0);
    let damaged = [
        (Vec::new(), "damaged"),
        (good[..head].to_vec(), "damaged"),
        (good[..=head].to_vec(), "damaged"),
        (good[..good.len() - 1].to_vec(), "damaged"),
        (longer, "damaged"),
        (flipped, "damaged"),
        (b"{}\nx".to_vec(), "not of this version of clgraph"),
        (b"\xff\xfe\n".to_vec(), "damaged"),
        (vec![b' '; (16 << 20) + 1], "more than"),
    ];
    for (content, why) in damaged {
        fs::write(file, &content).unwrap();
        let (executable, said) = once(&bench, now());
        assert!(warns(&said, why) && warns(&said, "builds the program again"), "{said:?} for {} bytes", content.len());
        assert_eq!(executable.report().fused, fused);
        until_changed(file, &content);
    }

    // For another text, device or driver: as if there were none.
    let text = |good: &[u8]| String::from_utf8_lossy(&good[..head]).into_owned();
    for (old, new) in [("\"device\":\"", "\"device\":\"another "), ("\"options\":\"", "\"options\":\"-w ")] {
        let mut other = text(&good).replacen(old, new, 1).into_bytes();
        other.extend_from_slice(&good[head..]);
        fs::write(file, &other).unwrap();
        let (_, said) = once(&bench, now());
        assert_eq!(said, []);
        until_changed(file, &other);
    }
    fs::write(file, &first).unwrap();
    let (_, said) = once(&bench, now());
    assert_eq!(said, []);
    until_changed(file, &first);

    // A folder in the place of a file, and a file in the place of the folder.
    fs::remove_file(file).unwrap();
    fs::create_dir(file).unwrap();
    let (_, said) = once(&bench, now());
    let is_told = |(level, text): &(Level, String)| *level == Level::Warn && text.contains("folder");
    assert!(said.first().is_some_and(is_told) && said.iter().any(|(_, text)| text.contains("is not kept")), "{said:?}");
    fs::remove_dir_all(&programs).unwrap();
    fs::write(&programs, "").unwrap();
    let (_, said) = once(&bench, now());
    assert!(said.len() == 2 && said.iter().all(is_told), "{said:?}");
    fs::remove_file(&programs).unwrap();

    // What others may write is not used.
    once(&bench, now());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let modes = |place: &Path| fs::metadata(place).unwrap().permissions().mode() & 0o777;
        assert_eq!((modes(&programs), modes(file)), (0o700, 0o600));
        for (place, open, closed) in [(programs.as_path(), 0o770, 0o700), (file.as_path(), 0o602, 0o600)] {
            fs::set_permissions(place, fs::Permissions::from_mode(open)).unwrap();
            let (_, said) = once(&bench, now());
            let told = "other users may write to";
            assert!(said.first().is_some_and(|(level, text)| *level == Level::Warn && text.contains(told)), "{said:?}");
            fs::set_permissions(place, fs::Permissions::from_mode(closed)).unwrap();
            let (_, said) = once(&bench, now());
            assert!(is_used(&said), "{said:?}");
        }
    }

    // The oldest go, and what is not clgraph's stays.
    let fake = |name: &str, bytes| fs::File::create(programs.join(name)).unwrap().set_len(bytes).unwrap();
    let foreign = ["deadbeefdeadbeef.tar.gz", "d41d8cd98f00b204e9800998ecf8427e", "0123456789abcdef text", "README"];
    foreign.iter().for_each(|name| fake(name, 40 << 20));
    (0..5).for_each(|at| fake(&format!("000000000000000{at}"), 14 << 20));
    fake("0123456789abcdef.17-5-0", 14 << 20);
    fs::remove_file(file).unwrap();
    let (_, said) = once(&bench, now());
    assert_eq!(said, []);
    let there = |name: &str| programs.join(name).exists();
    assert!(foreign.iter().all(|name| there(name)) && file.exists());
    let left = (0..5).filter(|at| there(&format!("000000000000000{at}"))).count();
    assert_eq!(left + usize::from(there("0123456789abcdef.17-5-0")), 4);

    // What was fused without a cache is kept when there is one.
    fs::remove_file(file).unwrap();
    let (program, x) = (Program::from_source(&bench.queue, SOURCE).unwrap(), bench.buffer(&[7; LEN]));
    let graph = chain_of(&bench, &program, &x);
    graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    assert!(!file.exists());
    graph.finalize(now()).unwrap();
    assert!(file.exists());

    // Other processes use them, and leave them for the next.
    let process = |cache: &Path| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["fused_kernels_are_kept_for_the_next_process", "--exact", "--nocapture"]).env(CHILD, cache);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(process(&cache).contains(": used"));
    let other = place.join("other.json");
    assert!(process(&other).contains("said: []"));
    assert!(process(&other).contains(": used"));

    // No other folder is made, and a name that is no file's keeps nothing.
    for (file, warnings) in [(place.join("no/such/tuning.json"), 1), (place.join("no/"), 0), (PathBuf::from(".."), 0)] {
        let (_, said) = once(&bench, Finalize::new().fuse(Fuse::Now).tuning_cache(&file));
        assert_eq!(said.len(), warnings, "{said:?}");
        assert!(!place.join("no").exists());
    }
    let _ = fs::remove_dir_all(&place);

    // In the background too.
    let place = folder("auto");
    let auto = || Finalize::new().fuse(Fuse::Auto).fuse_after(Duration::ZERO).tuning_cache(place.join("tuning.json"));
    let x = bench.buffer(&[7; LEN]);
    let executable = chain(&bench, &x).finalize(auto()).unwrap();
    let begun = Instant::now();
    while fs::read_dir(place.join("tuning.json.programs")).is_err() {
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert!(begun.elapsed() < PATIENCE, "{}", executable.report());
    }
    files(&place.join("tuning.json.programs"), 1);
    drop(executable);
    let executable = chain(&bench, &x).finalize(auto()).unwrap();
    LINES.0.lock().unwrap().clear();
    let begun = Instant::now();
    while !is_used(&LINES.0.lock().unwrap()) {
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert!(begun.elapsed() < PATIENCE, "{}", executable.report());
    }
    drop(executable);
    let _ = fs::remove_dir_all(&place);
}
