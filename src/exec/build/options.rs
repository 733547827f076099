//! The options of finalize, and the path that the program or the environment asks for.

use std::path::PathBuf;
use std::time::Duration;

use strum::VariantArray;

use crate::caps::Caps;
use crate::cl::objects::device::Device;
use crate::env;
use crate::error::{Result, SetupError};
use crate::plan::{CommandKind, Path, PathReason};
use crate::quirks;

/// Options for finalizing a graph.
///
/// ```
/// use clgraph::{Finalize, Path};
/// let options = Finalize::new().path(Path::Replay).result_slots(8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Finalize {
    pub(in crate::exec) path: Path,
    pub(in crate::exec) result_slots: Option<usize>,
    pub(in crate::exec) commands_per_buffer: Option<usize>,
    pub(in crate::exec) autotune: bool,
    pub(in crate::exec) updatable: bool,
    pub(in crate::exec) allow_conflicts: bool,
    pub(in crate::exec) separate_memory: bool,
    pub(in crate::exec) profiling: bool,
    pub(in crate::exec) tuning_cache: Option<PathBuf>,
    pub(in crate::exec) loops: Loops,
    pub(in crate::exec) fuse: Option<Fuse>,
    pub(in crate::exec) fuse_after: Option<Duration>,
}

impl Finalize {
    /// Returns the default options: the path is chosen automatically, and results are held as long as the program
    /// likes.
    pub const fn new() -> Self {
        Self {
            path: Path::Auto,
            result_slots: None,
            commands_per_buffer: None,
            autotune: true,
            updatable: false,
            allow_conflicts: false,
            separate_memory: false,
            profiling: false,
            tuning_cache: None,
            loops: Loops::Auto,
            fuse: None,
            fuse_after: None,
        }
    }

    /// Gives each allocation of the graph's own memory its own bytes, even if lifetimes do not overlap: see
    /// [`Graph::alloc`](crate::Graph::alloc).
    pub const fn separate_memory(mut self) -> Self {
        self.separate_memory = true;
        self
    }

    /// Makes submissions record when they and their nodes run: [`Submission::profile`](crate::Submission::profile).
    ///
    /// Each command then has an event and is enqueued alone; with [`Path::Native`] it is in a command buffer of its
    /// own, and the automatic path replays it. The commands run on a queue with profiling: the one submitted to, or the
    /// executable's own.
    ///
    /// Profiling costs time: half a microsecond a command on CPU drivers, several on drivers that are slow to make
    /// events. The advantage of command buffers is lost. The kernels themselves take as long as without profiling. A
    /// submission keeps about half a kilobyte a command until its times are read or its last handle is dropped.
    pub const fn profiling(mut self) -> Self {
        self.profiling = true;
        self
    }

    /// Sets the path by which commands get to the device. The default is [`Path::Auto`]. Commands that cannot take the
    /// path are replayed, and the report says why. The environment variable `CLGRAPH_PATH` counts only if this is
    /// [`Path::Auto`].
    pub const fn path(mut self, path: Path) -> Self {
        self.path = path;
        self
    }

    /// Makes the executable updatable: [`Executable::update`](crate::Executable::update),
    /// [`Executable::update_from`](crate::Executable::update_from). The executable then keeps its own copy of the
    /// graph's values. If the device cannot change arguments of recorded kernels, the automatic
    /// path replays the kernels that have parameters. The graph may be dropped, unless it has sub-graphs that are to be
    /// updated.
    pub const fn updatable(mut self) -> Self {
        self.updatable = true;
        self
    }

    /// Allows nodes to use the same memory without an order between them, after parameters or updates have given them
    /// other memory than when their edges were made. The program is then responsible for the order; otherwise the
    /// result depends on chance.
    pub const fn allow_conflicts(mut self) -> Self {
        self.allow_conflicts = true;
        self
    }

    /// Sets how many submissions may hold results of one host read at once, at least 1. By default there is no bound.
    ///
    /// A submission holds one slot of each host read from the call that makes it, whether or not anybody reads the
    /// result. The slot is free when the submission's last handle and the last [`ResultGuard`](crate::ResultGuard) of
    /// the result are dropped. If all slots are held, submitting does not wait: it fails with
    /// [`SubmitError::NoSlot`](crate::SubmitError::NoSlot). A slot has as many bytes as the node reads. Its memory is
    /// allocated when no other slot is free, and released little by little when many slots are free.
    pub const fn result_slots(mut self, slots: usize) -> Self {
        self.result_slots = Some(slots);
        self
    }

    /// Sets how many commands a native command buffer holds at most, at least 1. The default is 64; on Intel's CPU
    /// runtime it is 256 for an executable that is [`updatable`](Self::updatable); the automatic path may find another
    /// number to be faster.
    ///
    /// A longer segment gets several command buffers. PoCL needs time that grows with the square of the number of
    /// commands, and stack for each command; on a driver that submits a command buffer to the hardware as a whole, more
    /// commands may be faster.
    pub const fn commands_per_buffer(mut self, commands: usize) -> Self {
        self.commands_per_buffer = Some(commands);
        self
    }

    /// Sets a file that keeps what the automatic path has found, so that the next process starts with it. If the
    /// program names no file, the environment variable `CLGRAPH_TUNING_CACHE` may name one.
    ///
    /// The file is read at finalize. When the autotuner has found something, the file is created or changed, on a
    /// thread of clgraph's own. Programs and devices can share the file: an entry is for one device, driver version,
    /// and list of commands with sizes and edges. A damaged file, or one with other content, is left alone, with a
    /// warning in the log. An entry with a strategy that the graph does not have is ignored, also with a warning. The
    /// format may change with the version of clgraph.
    ///
    /// A folder beside the file, whose name is the file's and `.programs`, keeps fused kernels as binaries, so that the next process builds
    /// them in milliseconds. They are written when fused kernels were built, also with [`Fuse::Now`]. Binaries are code: if another user can
    /// write to the folder or to a file, it is not used, with a warning. The files have at most 64 MiB.
    pub fn tuning_cache(mut self, file: impl Into<PathBuf>) -> Self {
        self.tuning_cache = Some(file.into());
        self
    }

    /// Sets how loops run: whether turns go ahead of a condition, and whether a fused kernel may do turns. The default is [`Loops::Auto`]. A loop that cannot go ahead is decided by the
    /// host, and [`Report::loops`](crate::Report::loops) says why. The environment variable `CLGRAPH_LOOPS` counts only if this is
    /// [`Loops::Auto`].
    pub const fn loops(mut self, loops: Loops) -> Self {
        self.loops = loops;
        self
    }

    /// Sets whether small launches are fused. Without this call it is [`Fuse::Auto`], unless the environment variable `CLGRAPH_FUSE`
    /// says otherwise; on drivers where that is not known to be safe it is [`Fuse::Off`] (PoCL 6.0, rusticl, NVIDIA, and all that were not tested). [`Report::fused`](crate::Report::fused) and [`Report::not_fused`](crate::Report::not_fused) say what became of
    /// each.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Fuse, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let source = "kernel void add(global uint *to, uint by) { to[get_global_id(0)] += by; }";
    /// let add = Program::from_source(&queue, source)?.kernel("add")?;
    /// let (graph, data) = (Graph::new(&queue)?, Buffer::from_slice(&queue, &[1_u32; 64])?);
    /// for by in 0..100_u32 {
    ///     // SAFETY: each work-item touches its own element.
    ///     unsafe { graph.kernel(&add).read_write(&data).arg(by).range(64).add()? };
    /// }
    /// let result = graph.read(&data).add()?;
    /// let executable = graph.finalize(Finalize::new().fuse(Fuse::Now))?;
    /// assert!(executable.report().commands < 10); // in place of 101
    /// let run = executable.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [4951; 64]);
    /// # Ok(()) }
    /// ```
    pub const fn fuse(mut self, fuse: Fuse) -> Self {
        self.fuse = Some(fuse);
        self
    }

    /// With [`Fuse::Auto`]: sets how long submissions run, all together, before fused kernels are built. Without this call it is twelve
    /// times as long as the last build in the process took, or half of a longer one before. Before the first one it is 24 times as
    /// long as the longest build of a program in the process took, and 6 s at least. The environment variable `CLGRAPH_FUSE_AFTER`
    /// counts, in milliseconds, only if the program does not call this.
    pub const fn fuse_after(mut self, submissions: Duration) -> Self {
        self.fuse_after = Some(submissions);
        self
    }

    /// Sets whether the automatic path is found by timing the first submissions. The default is true. With false, the
    /// executable uses the path that is known to be good on the driver.
    pub const fn autotune(mut self, yes: bool) -> Self {
        self.autotune = yes;
        self
    }
}

/// How loops run ([`Graph::repeat_while`](crate::Graph::repeat_while), [`Graph::repeat`](crate::Graph::repeat)). Memory, results and
/// counts are the same in each way. Where launches are [fused](Fuse), a kernel does the turns of a loop if its body is nothing but launches
/// that become one kernel, and if it is not unrolled; with another way than `Auto` it does not.
///
/// The variants speak of loops that a condition ends. Short loops with a known number of turns are unrolled, except with
/// [`HostDecided`](Self::HostDecided), in updatable executables and in those that profile:
/// [`Report::loops`](crate::Report::loops) says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Loops {
    /// clgraph times both ways in the first turns, and takes the faster one. If the environment variable `CLGRAPH_LOOPS` is set
    /// (`auto`, `host-decided` or `ahead`), it chooses instead.
    #[default]
    Auto,
    /// The host reads the condition before each turn. Loops with a known number of turns are not unrolled.
    HostDecided,
    /// Several turns are enqueued, and then the host reads whether the loop goes on. Each kernel of a turn runs only if the
    /// condition was true at the head of its turn.
    ///
    /// For this clgraph builds the kernels' programs a second time at finalize, from their source. These are decided by the host
    /// all the same: bodies with anything but kernels, and fills, copies, writes and reads of memory; kernels without source, or whose source
    /// clgraph cannot read (files that are included, variables at program scope); on PoCL, kernels
    /// with barriers.
    Ahead,
}

impl Loops {
    /// Returns the way with a name, as `CLGRAPH_LOOPS` writes it, or None if there is none.
    ///
    /// ```
    /// use clgraph::Loops;
    /// assert_eq!((Loops::named("host-decided"), Loops::named("fast")), (Some(Loops::HostDecided), None));
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|loops| name == <&str>::from(loops))
    }
}

/// Returns the way of loops that is asked for.
pub(in crate::exec) fn asked_loops(option: Loops) -> Result<Loops, SetupError> {
    let Some(given) = env::loops().filter(|_| option == Loops::Auto) else { return Ok(option) };
    let allowed = "`auto`, `host-decided` or `ahead`";
    Loops::named(&given).ok_or(SetupError::Environment { variable: "CLGRAPH_LOOPS", given, allowed })
}

/// Whether small launches become one: a kernel that clgraph writes from the source of the program, and that does what they do, one
/// after the other. Memory, results and errors stay the same, to the last bit, as far as the driver's compiler makes the same of a kernel
/// and of a function. The signs of NaNs may differ. On NVIDIA's driver (580) and rusticl (Mesa 26.2) last bits of floating point may differ,
/// so nothing is fused there that the program does not ask for.
///
/// A launch of few work-items costs a driver many times what its work costs: fused, a thousand of them take a few hundredths of the
/// time. What is not fused, and why, is in the report ([`Report::not_fused`](crate::Report::not_fused)): kernels without source or
/// whose source clgraph cannot read, with atomic functions or `printf`, on some drivers with barriers or local memory; images and samplers as
/// arguments; large launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Fuse {
    /// Each launch is a launch.
    Off,
    /// The executable starts with launches. When its submissions have taken twelve times as long as a build takes
    /// ([`Finalize::fuse_after`]), the fused kernels are built on a thread in the background, and timed among the next submissions. They stay if they are faster. Nothing waits
    /// for that, except the end of the process, because drivers crash otherwise. It needs the automatic path ([`Path::Auto`], with
    /// [`autotune`](Finalize::autotune)); other executables, and those that [profile](Finalize::profiling), stay as they are.
    /// [`Report::fusing`](crate::Report::fusing) tells.
    Auto,
    /// Fused kernels are built at finalize, and run once without their work, because drivers compile a kernel when it first runs. Finalize
    /// waits for that, behind what the device does then. It takes a second or more, on drivers with a cache of kernels for the first time
    /// only. Graphs of the same programs with the same launches share them. Executables that can
    /// be [updated](Finalize::updatable) are fused only where they are replayed ([`Path::Auto`], [`Path::Replay`], [`Path::Gated`]). Those that
    /// [profile](Finalize::profiling) have the times of fused kernels, if [`Finalize::fuse`] says so (`CLGRAPH_FUSE` does not) and they cannot be updated. If an
    /// update changes what fused kernels do not follow, the executable goes on without them, and they are built again in the background.
    Now,
}

impl Fuse {
    /// Returns the choice with a name, as `CLGRAPH_FUSE` writes it, or None if there is none.
    ///
    /// ```
    /// use clgraph::Fuse;
    /// assert_eq!((Fuse::named("now"), Fuse::named("fast")), (Some(Fuse::Now), None));
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|fuse| name == <&str>::from(fuse))
    }
}

/// Returns whether launches are fused.
pub(in crate::exec) fn asked_fuse(option: Option<Fuse>, caps: &Caps) -> Result<Fuse, SetupError> {
    let given = match option {
        Some(fuse) => return Ok(fuse),
        None => env::fuse(),
    };
    let Some(given) = given else {
        return Ok(if quirks::fuses_unasked(caps) { Fuse::Auto } else { Fuse::Off });
    };
    Fuse::named(&given).ok_or(SetupError::Environment {
        variable: "CLGRAPH_FUSE",
        given,
        allowed: "`off`, `auto` or `now`",
    })
}

/// Returns after how many nanoseconds of submissions fused kernels are built, if somebody says so.
pub(in crate::exec) fn asked_fuse_after(option: Option<Duration>) -> Result<Option<u64>, SetupError> {
    match option {
        Some(after) => Ok(Some(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX))),
        None => env::fuse_after(),
    }
}

impl Default for Finalize {
    fn default() -> Self {
        Self::new()
    }
}

impl Device {
    /// Returns the path that kernels take on the device if the program leaves it to clgraph, and why. It is
    /// [`Caps::path`](crate::Caps::path), unless the environment variable `CLGRAPH_PATH` sets another path, or the
    /// driver's functions cannot be called.
    ///
    /// # Errors
    /// [`SetupError::Environment`] for a wrong `CLGRAPH_PATH`.
    pub fn path(&self) -> Result<(Path, PathReason)> {
        let (path, why) = match asked_path(Path::Auto)? {
            (Path::Auto, _) => self.caps().path(),
            (path, _) => (path, PathReason::Environment),
        };
        if path != Path::Native {
            return Ok((path, why));
        }
        let abi = || {
            self.abi().map_err(|error| {
                log::info!("{error}");
                PathReason::Unusable
            })
        };
        let usable = self.caps().can_record(CommandKind::Kernel).and_then(|()| abi());
        Ok(usable.map_or_else(|why| (Path::Replay, why), |_| (path, why)))
    }
}

/// Returns the path that is asked for, and whether the environment asks for it. The environment counts only if the
/// program leaves the path to clgraph.
pub(in crate::exec) fn asked_path(option: Path) -> Result<(Path, bool), SetupError> {
    match env::path() {
        Some(given) if option == Path::Auto => match Path::named(&given) {
            Some(path) => Ok((path, path != Path::Auto)),
            None => {
                let allowed = "`auto`, `native`, `replay`, `gated` or `queues`";
                Err(SetupError::Environment { variable: "CLGRAPH_PATH", given, allowed })
            }
        },
        _ => Ok((option, false)),
    }
}
