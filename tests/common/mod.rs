//! What the tests share: a device, its kernels, and how to look at memory without clgraph.
//!
//! A test that finds no OpenCL device fails: there is no silent skip.
#![allow(dead_code)] // Each test file uses its own part of this one.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use clgraph::{
    Buffer, Device, Element, Error, Executable, Finalize, Graph, InContext, Kernel, Program, Queue, QueueProperties,
};
use opencl3::command_queue::CommandQueue;

/// The kernels of `kernels-cl/tests.cl`.
pub const SOURCE: &str = include_str!("../../kernels-cl/tests.cl");

/// Why a test cannot run on a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The device cannot be divided.
    NoSubDevices,
    /// Out-of-order queues run in order, which OpenCL allows.
    RunsInOrder,
    /// The driver does not always report when a command starts.
    NoStartTime,
    /// The device has no memory that the host reaches by address.
    NoSharedMemory,
    /// The device has no images.
    NoImages,
    /// The driver does not release samplers that launches used.
    KeepsSamplers,
    /// The driver reports the types of all arguments, so none is checked by the driver alone.
    KnowsArgumentTypes,
    /// The driver cannot be made to have no device.
    AlwaysHasDevice,
    /// A thread that waits for a command runs kernels, or asks again and again.
    WorksInWaits,
    /// The compiler makes other values of some fused kernels.
    ComputesOtherwise,
}

impl Reason {
    /// The name in `tests/drivers.toml`.
    fn name(self) -> &'static str {
        match self {
            Self::NoSubDevices => "no-sub-devices",
            Self::RunsInOrder => "runs-in-order",
            Self::NoStartTime => "no-start-time",
            Self::NoSharedMemory => "no-shared-memory",
            Self::NoImages => "no-images",
            Self::KeepsSamplers => "keeps-samplers",
            Self::KnowsArgumentTypes => "knows-argument-types",
            Self::AlwaysHasDevice => "always-has-device",
            Self::WorksInWaits => "works-in-waits",
            Self::ComputesOtherwise => "computes-otherwise",
        }
    }
}

/// Skips a test if `tests/drivers.toml` lists it for this driver and this reason; otherwise the test fails. The caller
/// returns.
#[track_caller]
pub fn skip(reason: Reason) {
    #[derive(serde::Deserialize)]
    struct File {
        driver: Vec<Driver>,
        skip: Vec<Skip>,
    }
    #[derive(serde::Deserialize)]
    struct Driver {
        name: String,
        platform: String,
        version: String,
    }
    #[derive(serde::Deserialize)]
    struct Skip {
        drivers: Vec<String>,
        test: String,
        reason: String,
    }
    let file: File = toml::from_str(include_str!("../drivers.toml")).unwrap();
    let caps = clgraph::best_device().unwrap().caps().clone();
    let is_it = |driver: &&Driver| caps.platform == driver.platform && caps.driver_version.starts_with(&driver.version);
    let driver = file.driver.iter().find(is_it).map(|driver| driver.name.clone());
    let test = format!("{}::{}", env!("CARGO_CRATE_NAME"), std::thread::current().name().unwrap());
    let listed = file.skip.iter().any(|skip| {
        driver.as_ref().is_some_and(|driver| skip.drivers.contains(driver))
            && skip.test == test
            && skip.reason == reason.name()
    });
    assert!(
        listed,
        "{test} cannot run on {} {} ({}), and tests/drivers.toml does not list it",
        caps.platform,
        caps.driver_version,
        reason.name()
    );
    println!("skipped: {test}: {}", reason.name());
    if let Some(file) = std::env::var_os("CLGRAPH_TEST_SKIPS") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        std::io::Write::write_all(&mut file, format!("{test} {}\n", reason.name()).as_bytes()).unwrap();
    }
}

/// Divides a device into sub-devices of one compute unit each. None if it cannot be divided.
pub fn sub_devices(device: &Device) -> Option<Vec<opencl3::device::SubDevice>> {
    let plain = device.to_opencl3();
    let parts = plain.create_sub_devices(&[0x1086, 1, 0]); // CL_DEVICE_PARTITION_EQUALLY
    parts.ok().filter(|parts| parts.len() > 1)
}

/// A queue and the tests' kernels in one context.
pub struct Bench {
    pub queue: Queue,
    pub program: Program,
}

impl Bench {
    /// Makes an in-order queue in a new context.
    pub fn new() -> Self {
        let _ = env_logger::builder().is_test(true).try_init();
        let device = clgraph::best_device().expect("the tests need an OpenCL device, such as PoCL");
        let queue = Queue::new(&device).unwrap();
        let program = Program::from_source(&queue, SOURCE).unwrap();
        Self { queue, program }
    }

    pub fn kernel(&self, name: &str) -> Kernel {
        self.program.kernel(name).unwrap()
    }

    pub fn graph(&self) -> Graph {
        Graph::new(&self.queue).unwrap()
    }

    pub fn buffer(&self, data: &[u32]) -> Buffer<u32> {
        Buffer::from_slice(&self.queue, data).unwrap()
    }

    /// Makes another queue of the same context.
    pub fn another_queue(&self, out_of_order: bool) -> Queue {
        let properties = QueueProperties::new().out_of_order(out_of_order);
        Queue::with_properties(&self.queue, self.queue.device(), properties).unwrap()
    }

    /// Reads a buffer by plain OpenCL after the queue has finished.
    pub fn content(&self, buffer: &Buffer<u32>) -> Vec<u32> {
        content(&self.queue, buffer)
    }

    /// Writes other numbers into each buffer, and returns them.
    pub fn start(&self, buffers: &[Buffer<u32>]) -> Vec<Vec<u32>> {
        let numbers = |(at, buffer): (usize, &Buffer<u32>)| {
            let data: Vec<u32> = (0..buffer.len()).map(|i| (i * 7 + at * 1000 + 1) as u32).collect();
            self.queue.enqueue_write_buffer(buffer, 0, &data, &[]).unwrap();
            data
        };
        let memory = buffers.iter().enumerate().map(numbers).collect();
        self.queue.finish().unwrap();
        memory
    }

    /// Reads buffers as [`content`](Self::content) does.
    pub fn contents(&self, buffers: &[Buffer<u32>]) -> Vec<Vec<u32>> {
        buffers.iter().map(|buffer| self.content(buffer)).collect()
    }

    /// Returns whether a queue says that it is empty within a minute. `Queue::is_empty` tells what the driver reports at once,
    /// and some report the end of an empty queue's marker when their own thread has run.
    pub fn becomes_empty(&self, queue: &Queue) -> bool {
        let begin = Instant::now();
        while !queue.is_empty().unwrap() {
            if begin.elapsed() > std::time::Duration::from_secs(60) {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Waits until each of clgraph's threads has handled something that came later than everything before. Whatever did
    /// not happen until then was not going to happen.
    pub fn let_threads_run(&self) {
        let graph = self.graph();
        graph.fill(&self.buffer(&[0; 64]), 1).add().unwrap();
        graph.host_task(|_| ()).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        for _ in 0..3 {
            let (sender, receiver) = std::sync::mpsc::channel();
            let run = executable.submit(&self.another_queue(false)).unwrap();
            run.on_complete(move |outcome| sender.send(outcome).unwrap());
            receiver.recv_timeout(std::time::Duration::from_secs(60)).unwrap().unwrap();
        }
    }

    /// Finalizes a graph, submits it once, and waits.
    pub fn run(&self, graph: &Graph) -> Executable {
        let executable = graph.finalize(Finalize::new()).unwrap();
        executable.submit(&self.queue).unwrap().wait().unwrap();
        executable
    }
}

/// Reads a buffer by a blocking read of plain OpenCL.
pub fn content<T: Element>(queue: &Queue, buffer: &Buffer<T>) -> Vec<T> {
    let raw = plain_queue(queue);
    let mut data = vec![T::zeroed(); buffer.len()];
    let mem = buffer.to_opencl3().unwrap();
    // SAFETY: the destination is as long as the buffer, and the call blocks.
    unsafe { raw.enqueue_read_buffer(&mem, opencl3::types::CL_TRUE, 0, &mut data, &[]) }.unwrap();
    data
}

/// Returns the same queue for `opencl3`.
pub fn plain_queue(queue: &Queue) -> CommandQueue {
    queue.to_opencl3().unwrap()
}

/// Returns a second context of the same device, with a queue.
pub fn elsewhere() -> &'static Bench {
    static ELSEWHERE: OnceLock<Bench> = OnceLock::new();
    ELSEWHERE.get_or_init(Bench::new)
}

/// A result or an error, from which [`assert_error`] takes the error.
pub trait Failure {
    fn failure(self) -> Error;
}

impl<T, E: Into<Error>> Failure for Result<T, E> {
    #[track_caller]
    fn failure(self) -> Error {
        match self {
            Ok(_) => panic!("an error was expected, and it worked"),
            Err(error) => error.into(),
        }
    }
}

impl<T> Failure for &Result<T, Error> {
    #[track_caller]
    fn failure(self) -> Error {
        self.as_ref().map(drop).map_err(Error::clone).failure()
    }
}

impl Failure for Error {
    fn failure(self) -> Error {
        self
    }
}

impl Failure for &Error {
    fn failure(self) -> Error {
        self.clone()
    }
}

/// The error of one phase, as it is in an [`Error`].
pub trait Phase: Sized {
    fn of(error: &Error) -> Option<&Self>;
}

impl Phase for Error {
    fn of(error: &Error) -> Option<&Self> {
        Some(error)
    }
}

impl Phase for clgraph::BuildCause {
    fn of(error: &Error) -> Option<&Self> {
        if let Error::Build(error) = error { Some(&error.cause) } else { None }
    }
}

macro_rules! phases {
    ($($variant:ident: $error:ident),*) => {
        $(impl Phase for clgraph::$error {
            fn of(error: &Error) -> Option<&Self> {
                if let Error::$variant(error) = error { Some(error) } else { None }
            }
        })*

        /// Shows an error with its fields.
        pub fn shown(error: &Error) -> String {
            match error {
                $(Error::$variant(error) => format!("{error:?}"),)*
                other => other.to_string(),
            }
        }
    };
}

phases!(
    Setup: SetupError, Memory: MemoryError, Program: ProgramError, Global: GlobalError, Build: BuildError,
    Finalize: FinalizeError, Record: RecordError, Submit: SubmitError, Parameter: ParameterError, Update: UpdateError,
    Driver: DriverError
);

/// Asserts that a result or an error is the error of a pattern. The pattern is of the enum of a phase, of
/// [`BuildCause`] or of [`Error`]. A text with values may follow, which says where the test is.
///
/// [`BuildCause`]: clgraph::BuildCause
#[allow(unused_macros)] // As above.
macro_rules! assert_error {
    ($result:expr, $pattern:pat $(if $guard:expr)? $(, $at:literal $(, $value:expr)*)? $(,)?) => {{
        let error = $crate::common::Failure::failure($result);
        match $crate::common::Phase::of(&error) {
            Some($pattern) $(if $guard)? => {}
            _ => {
                let at: &[String] = &[$(format!($at $(, $value)*) + ": ")?];
                let wanted = stringify!($pattern $(if $guard)?);
                panic!("{}expected {wanted}, but the error is {}", at.concat(), $crate::common::shown(&error))
            }
        }
    }};
}
#[allow(unused_imports)] // As above.
pub(crate) use assert_error;

/// Returns the cause of a [`clgraph::BuildError`].
#[track_caller]
pub fn cause<T: std::fmt::Debug>(result: Result<T, Error>) -> clgraph::BuildCause {
    match result {
        Err(Error::Build(error)) => *error.cause,
        other => panic!("a BuildError was expected, not {other:?}"),
    }
}

/// Shows whether OpenCL has released a buffer: no handle, command or executable holds it any more. It watches the
/// buffer's memory.
pub struct Tell(Weak<Box<[u32]>>);

impl Tell {
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Waits until the buffer is released. Drivers release it a moment after a command is complete.
    #[track_caller]
    pub fn wait_until_gone(&self) {
        let begin = Instant::now();
        while !self.is_gone() {
            assert!(begin.elapsed() < Duration::from_secs(60), "the buffer is never released");
            std::thread::yield_now();
        }
    }
}

impl Bench {
    /// Makes a buffer that shows when it is released.
    pub fn telling_buffer(&self, data: &[u32]) -> (Buffer<u32>, Tell) {
        use opencl3::memory::{self, ClMem};
        let context = self.queue.context().to_opencl3().unwrap();
        let mut memory: Box<[u32]> = data.into();
        let place = memory.as_mut_ptr().cast();
        // SAFETY: the memory goes to the wrapper as its owner, and nobody else touches it.
        let plain = unsafe { memory::Buffer::<u32>::create(&context, memory::CL_MEM_USE_HOST_PTR, data.len(), place) };
        let (plain, owner) = (plain.unwrap(), Arc::new(memory));
        let tell = Tell(Arc::downgrade(&owner));
        // SAFETY: as above.
        let buffer = unsafe { Buffer::from_raw_with_owner(&self.queue, plain.get(), owner) }.unwrap();
        (buffer, tell)
    }
}

/// A user event of plain OpenCL. The test completes or fails it.
pub struct UserEvent(pub opencl3::event::Event);

impl UserEvent {
    pub fn new(context: &impl InContext) -> Self {
        let raw = opencl3::event::create_user_event(context.context().raw()).unwrap();
        Self(opencl3::event::Event::new(raw))
    }

    pub fn set(&self, status: i32) {
        opencl3::event::set_user_event_status(self.0.get(), status).unwrap();
    }
}

/// What the threads of this process that have such a name have run, in nanoseconds.
#[cfg(target_os = "linux")]
pub fn ran(name: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let is_named = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end().starts_with(name))
    };
    // A thread may end meanwhile.
    let time = |task: std::path::PathBuf| {
        let line = std::fs::read_to_string(task.join("schedstat")).ok()?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    tasks.filter(is_named).filter_map(time).sum()
}

/// Runs a test of this program in a process of its own, with a variable. Returns what it prints between `RESULT` and `END`; it may know by
/// `CLGRAPH_TEST_CHILD` that it is to.
pub fn result_of_child(test: &str, variable: &str, given: &str) -> String {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env("CLGRAPH_TEST_CHILD", "1").env(variable, given);
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let result = text.split_once("RESULT ").and_then(|(_, rest)| rest.split_once(" END"));
    result.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))).0.to_owned()
}
