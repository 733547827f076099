//! Errors: what they carry, what they say, and that they leave nothing over.

mod common;

use std::time::Duration;

use clgraph::{
    BuildCause, BuildError, DriverError, Error, ErrorKind, Finalize, FinalizeError, GlobalAccess, GlobalError,
    GroupError, ImageAccess, ImageFormat, ImageKind, MemoryError, MemoryKind, NodeKind, ParameterError, PoolKind,
    Program, ProgramError, RecordError, RectError, SetupError, Status, Strayed, SubmitError, UpdateError,
    WorkGroupError,
};
use common::{Bench, UserEvent, assert_error};

/// Rule E1
#[test]
fn driver_errors_carry_the_call_and_the_name_of_the_status() {
    let error = DriverError::new("clEnqueueNDRangeKernel", Status(-54));
    assert_eq!(error.to_string(), "clEnqueueNDRangeKernel failed with CL_INVALID_WORK_GROUP_SIZE (-54)");
    assert_eq!(format!("{:?}", Status(-5)), "CL_OUT_OF_RESOURCES (-5)");
    // A number that no header lists is shown as well.
    assert!(Status(-7777).to_string().contains("(-7777)"));
    fn is_public_error<T: std::error::Error + Clone + Send + Sync + 'static>() {}
    is_public_error::<Error>();
    is_public_error::<SetupError>();
    is_public_error::<MemoryError>();
    is_public_error::<ProgramError>();
    is_public_error::<BuildError>();
    is_public_error::<FinalizeError>();
    is_public_error::<SubmitError>();
    is_public_error::<DriverError>();
}

/// Rule E4
#[test]
fn errors_have_kinds_to_match() {
    let driver = |status| Error::from(DriverError::new("clCreateBuffer", Status(status))).kind();
    assert_eq!([-4, -5, -6].map(driver), [ErrorKind::OutOfMemory; 3]);
    assert_eq!(driver(-30), ErrorKind::Driver);
    assert_eq!(Error::from(SetupError::NoPlatform).kind(), ErrorKind::FeatureNotSupported);
    let none = SetupError::NoDevice { platforms: "one, another".to_owned() };
    assert_eq!(Error::from(none).kind(), ErrorKind::FeatureNotSupported);
    assert_eq!(Error::from(SetupError::DeviceQueue).kind(), ErrorKind::Invalid);
    let refused = ProgramError::BinaryRefused { device: "a device".to_owned() };
    assert_eq!(Error::from(refused).kind(), ErrorKind::KernelNotSupported);
    assert_eq!(Error::from(SubmitError::NotComplete).kind(), ErrorKind::NotReady);
    assert_eq!(Error::from(FinalizeError::MemoryTooLarge).kind(), ErrorKind::OutOfMemory);
    let memory = |source| Error::from(FinalizeError::Memory { bytes: 8, source }).kind();
    let refused = |status| MemoryError::from(DriverError::new("clCreateBuffer", Status(status)));
    assert_eq!(memory(refused(-4)), ErrorKind::OutOfMemory);
    assert_eq!(memory(refused(-30)), ErrorKind::Driver);
    let large = MemoryError::TooLarge { asked: 1, limit: 0, device: "a".to_owned() };
    assert_eq!(memory(large), ErrorKind::OutOfMemory);
    let none = MemoryError::NoImages { device: "a".to_owned() };
    assert_eq!(Error::from(none).kind(), ErrorKind::FeatureNotSupported);
    let held = MemoryError::HeldByHost { kind: MemoryKind::SvmCoarse };
    assert_eq!(Error::from(held).kind(), ErrorKind::NotReady);
    let failed = |cause| SubmitError::EventFailed { index: 0, cause };
    assert_eq!(Error::from(failed(Box::new(SubmitError::UserEventDropped.into()))).kind(), ErrorKind::Failed);
    let cause = Box::new(Error::from(DriverError::new("a", Status(-5))));
    assert_eq!(Error::from(SubmitError::DependencyFailed { cause }).kind(), ErrorKind::OutOfMemory);
    let source = DriverError::new("clSetKernelArg", Status(-51));
    let node = Bench::new().graph().empty().add().unwrap();
    let argument = FinalizeError::Argument { node, kernel: "f".to_owned(), index: 2, source };
    assert_eq!(Error::from(argument).kind(), ErrorKind::Driver);
}

/// Rule E2: an argument that only the driver can check fails at finalize, and leaves the graph and its objects as
/// they were.
#[test]
fn a_failure_in_the_middle_of_finalize_leaks_nothing_and_changes_nothing() {
    let bench = Bench::new();
    // Without argument information, so that nothing is found before. Some drivers tell it without being asked to, and
    // not of intermediate languages.
    let context = clgraph::InContext::context(&bench.queue).to_opencl3().unwrap();
    let plain = opencl3::program::Program::create_and_build_from_source(&context, common::SOURCE, "").unwrap();
    let source = Program::from_opencl3(&bench.queue, &plain).unwrap().kernel("scale").unwrap();
    // SAFETY: a valid module.
    let il = unsafe { Program::from_il(&bench.queue, include_bytes!("../kernels-cl/specialize.spv")) };
    let il = il.map(|program| program.kernel("step_up").unwrap()).ok();
    let silent = [(Some(source), 2), (il, 0)].into_iter().filter_map(|(kernel, argument)| Some((kernel?, argument)));
    let Some((kernel, argument)) = silent.into_iter().find(|(kernel, _)| !kernel.has_arg_info()) else {
        return common::skip(common::Reason::KnowsArgumentTypes);
    };
    let ((a, tell), b) = (bench.telling_buffer(&[0; 8]), bench.buffer(&[1; 8]));
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element, and the second node is refused before it runs.
    unsafe {
        graph.kernel(&bench.kernel("stir")).read_write(&a).range(8).add().unwrap();
        let wrong = graph.kernel(&kernel);
        let wrong = if argument == 0 { wrong } else { wrong.read(&a).write(&b) };
        let node = wrong.bytes(&[0; 64]).range(8).add().unwrap();
        assert_error!(
            graph.finalize(Finalize::new()),
            FinalizeError::Argument { node: of, kernel: name, index, .. }
                if (*of, &**name, *index) == (node, kernel.name(), argument),
        );
    }
    assert_eq!(graph.len(), 2);
    drop((graph, a));
    tell.wait_until_gone();
}

/// Rule E2: after a submission that failed in any way, executable, queue and buffers are usable, and nothing is left
/// over.
#[test]
fn failures_at_submit_leave_everything_usable() {
    let bench = Bench::new();
    let (a, tell) = bench.telling_buffer(&[0; 8]);
    let graph = bench.graph();
    let write = graph.write(&a, [1; 8]).add().unwrap();
    let read = graph.read(&a).add().unwrap();
    let executable = graph.finalize(Finalize::new().result_slots(1)).unwrap();
    for _ in 0..50 {
        let begin = std::time::Instant::now();
        let failed = UserEvent::new(&bench.queue);
        failed.set(-1);
        assert_error!(
            executable.submit_to(&bench.queue).after(&failed.0).submit(),
            SubmitError::EventFailed { index: 0, .. },
        );
        assert_error!(
            executable.submit_to(&bench.queue).with(&write, [1; 7]).submit(),
            SubmitError::InputSize { expected: 32, given: 28, .. },
        );
        let later = UserEvent::new(&bench.queue);
        let run = executable.submit_to(&bench.queue).with(&write, [2; 8]).after(&later.0).submit().unwrap();
        later.set(-1);
        assert_error!(run.wait(), SubmitError::DependencyFailed { .. });
        assert_error!(
            executable.submit(&bench.queue),
            SubmitError::NoSlot { slots: 1, .. },
            "the failed run holds the slot",
        );
        drop(run);
        // The event reaper releases the failed run a moment after it has ended.
        let run = loop {
            match executable.submit(&bench.queue) {
                Ok(run) => break run,
                Err(error) => assert_error!(error, SubmitError::NoSlot { slots: 1, .. }),
            }
            assert!(begin.elapsed() < std::time::Duration::from_secs(60), "nobody lets go of the slot");
            std::thread::yield_now();
        };
        run.wait().unwrap();
        assert_eq!(run.get(&read).unwrap()[..], [1; 8]);
    }
    bench.queue.finish().unwrap();
    drop((graph, executable, a));
    tell.wait_until_gone();
}

/// Rule E3: objects are dropped in any order, used or not, without a panic; depth is no matter (see `scale.rs`).
#[test]
fn nothing_panics_in_drop() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 8]);
    let graph = bench.graph();
    graph.write(&a, [1; 8]).add().unwrap();
    let read = graph.read(&a).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let event = UserEvent::new(&bench.queue);
    let waiting = executable.submit_to(&bench.queue).after(&event.0).submit().unwrap();
    let callback = waiting.clone();
    callback.on_complete(|_| ());
    let future = std::future::IntoFuture::into_future(&waiting);
    // Everything but the queue goes while the submission waits; then it may run.
    drop((graph, executable, a, read, waiting, callback, future));
    event.set(0);
    bench.queue.finish().unwrap();
    // Builders that are never added.
    let graph = bench.graph();
    let _ = graph.empty().after_all_leaves();
    let _ = graph.kernel(&bench.kernel("stir")).arg(1_u32);
    assert!(graph.is_empty());
}

/// Rule E1: `tests/messages.txt` has the message of each error, one a line. Other tests look at errors, and not at
/// their words.
#[test]
fn every_error_has_its_message() {
    let (found, written) = (messages(), include_str!("messages.txt"));
    for (line, message) in written.lines().zip(&found) {
        assert_eq!(line, message, "tests/messages.txt: if the message of the error is meant, write it there");
    }
    assert_eq!(
        written.lines().count(),
        found.len(),
        "tests/messages.txt has a line for each error:\n{}",
        found.join("\n")
    );
    // Of an enum's variants, as `src/error` has them, none is missing.
    let sources = [
        include_str!("../src/error/build.rs"),
        include_str!("../src/error/command.rs"),
        include_str!("../src/error/global.rs"),
        include_str!("../src/error/record.rs"),
        include_str!("../src/error/run.rs"),
        include_str!("../src/error/setup.rs"),
        include_str!("../src/error/update.rs"),
    ];
    let (mut name, mut count) = ("", 0);
    for line in sources.iter().flat_map(|source| source.lines()) {
        let variant = line.strip_prefix("    ").filter(|line| line.starts_with(char::is_uppercase));
        if let Some(of) = line.strip_prefix("pub enum ") {
            name = of.trim_end_matches(" {");
        } else if line == "}" {
            name = "";
        } else if let Some(variant) = variant.filter(|_| !name.is_empty()) {
            let end = variant.find(|char: char| !char.is_alphanumeric()).unwrap();
            let start = format!("{name}::{}: ", &variant[..end]);
            assert!(found.iter().any(|message| message.starts_with(&start)), "`{start}`: add it to the function below");
            count += 1;
        }
    }
    assert_eq!(count, found.len());
}

/// Returns the message of an error of each variant, after the name of the variant.
fn messages() -> Vec<String> {
    let graph = Bench::new().graph();
    let [a, b, c] = [(); 3].map(|()| graph.empty().add().unwrap());
    let driver = DriverError::new("clCreateBuffer", Status(-30));
    let cause = || Box::new(Error::from(SubmitError::UserEventDropped));
    let text = str::to_owned;
    let mut all = Vec::new();
    macro_rules! of {
        ($kind:ident: $($variant:ident $({ $($field:tt)* })? $(($of:expr))?,)*) => {
            $(all.push(format!(
                "{}::{}: {}",
                stringify!($kind),
                stringify!($variant),
                $kind::$variant $({ $($field)* })? $(($of))?
            ));)*
        };
    }
    of!(SetupError:
        NoLibrary { tried: text("libOpenCL.so: not found"), instead: "set OPENCL_DYLIB_PATH to its file" },
        MissingFunction { library: text("libOpenCL.so"), function: "clCreateContext", needs: "1.2" },
        NoPlatform,
        BrokenDriver {
            library: text("libOpenCL.so"),
            file: text("/etc/OpenCL/vendors/one.icd"),
            why: text("it has no platform"),
        },
        NoDriverWorks { broken: vec![SetupError::NoPlatform, SetupError::DeviceQueue] },
        NoDevice { platforms: text("one") },
        DeviceOutsideContext { device: text("a device"), of_context: text("another device") },
        QueueProperty { device: text("a device"), property: "out-of-order" },
        DeviceQueue,
        NoThread { error: text("Resource temporarily unavailable") },
        Environment { variable: "CLGRAPH_PATH", given: text("fast"), allowed: "`auto` or `native`" },
        CommandBufferAbi { device: text("a device"), why: text("a call failed") },
        NoDevices,
        NullHandle { what: "cl_mem" },
    );
    of!(MemoryError:
        Empty { what: "a buffer" },
        TooLarge { asked: 24, limit: 4096, device: text("a device") },
        OutOfBounds { what: "elements", start: 28, end: 40, len: 36 },
        Misaligned { offset: 24, align: 28 },
        SubBufferOfSubBuffer,
        ElementSize { bytes: 24, element: 28 },
        HostMemory { what: "buffer", flag: "CL_MEM_USE_HOST_PTR", instead: "use a copy" },
        OtherContext,
        NotABuffer { object_type: 0x10F1 },
        NoImages { device: text("a device") },
        ImageFormat {
            format: ImageFormat::RGBA_U8,
            kind: ImageKind::Image2d,
            access: ImageAccess::Read,
            device: text("a device"),
            has: text("RGBA FLOAT"),
        },
        ImageSize { shape: text("image2d_t of 9 x 6 pixels"), limits: [64, 32, 1], device: text("a device") },
        PixelBytes { given: 24, bytes: 28, shape: text("image2d_t of 9 x 6 pixels"), format: ImageFormat::RGBA_U8 },
        ImageOfBuffer { why: text("use a larger buffer") },
        NotAnImage { object_type: 0x10F0 },
        UnknownFormat { format: ImageFormat::RGBA_U8 },
        NoHandle { what: text("USM") },
        NoLayers { kind: ImageKind::Image2d },
        Sampler,
        PoolNotOfDevice { kind: PoolKind::Host },
        NoSuchMemory { kind: MemoryKind::SvmCoarse, device: text("a device"), has: text("buffer") },
        NotHostReachable { device: text("a device"), has: text("buffer") },
        NotAPointer,
        UnknownPointer,
        BeyondAllocation { offset: 24, size: 28, len: 32 },
        NotHostAccessible { kind: MemoryKind::SvmCoarse },
        ElementAlign { align: 24 },
        Busy { kind: MemoryKind::SvmCoarse, why: "another guard holds it" },
        HeldByHost { kind: MemoryKind::SvmCoarse },
        Driver(driver),
    );
    of!(ProgramError:
        BuildFailed { device: text("a device"), options: text("-w"), status: Status(-11), log: text("line 1: no") },
        FormNotSupported { device: text("a device"), form: text("SPIR-V"), why: text("build it from source") },
        BinaryRefused { device: text("a device") },
        BuiltInUnusable { device: text("a device"), names: text("`count`"), status: Status(-11) },
        ZeroByte { what: "the source", position: 28 },
        Empty { what: "the source" },
        NoSuchKernel { name: text("scala"), has: text("`scale`") },
        OtherContext,
        NotBuilt,
        NoBinary { device: text("a device") },
        NotBuiltFor { kernel: text("scale"), device: text("a device") },
        Argument { kernel: text("scale"), index: 1, source: driver },
        Driver(driver),
    );
    of!(GlobalError:
        NameClash { name: "a::COUNT", first: "a.rs:1", first_type: "u32", second: "b.rs:2", second_type: "f32" },
        Empty { name: text("a::COUNT") },
        InitialSize { name: text("a::COUNT"), size: 28, given: 32 },
        NotAName { c_name: text("2nd"), name: "a::COUNT" },
        ListedTwice {
            c_name: text("count"),
            second: "a::COUNT",
            for_what: text("also lists the same global as `one`"),
        },
        NotDeclared { c_name: text("count"), name: "a::COUNT", log: text("line 1: no") },
        Size { name: "a::COUNT", type_name: "u64", size: 32, c_name: text("count"), in_c: 40 },
        Access { access: GlobalAccess::Argument, why: text("the only access is by a hidden argument") },
        NoParameter { c_name: text("count"), name: "a::COUNT", log: text("line 1: no") },
        NotInProgram { names: text("`count`"), access: GlobalAccess::Argument },
        ProgramGone,
        HiddenArguments { kernel: text("scale"), source: driver },
        OtherArguments { kernel: text("scale"), name: text("by") },
        OtherProgram { name: "a::COUNT" },
        NoProgram { name: "a::COUNT", why: "no program has the global" },
        NotListed { name: "a::COUNT", has: text("none") },
    );
    of!(BuildCause:
        ArgumentCount { expected: 24, given: 28, signature: Some(text("scale(uint* in, uint by)")) },
        ArgumentIndex { index: 5, count: 2 },
        ArgumentKind { index: 1, name: text("by"), expected: text("a value"), given: text("a sampler") },
        ImageAccess { index: 1, name: text("by"), qualifier: "read_only", declared: "written" },
        ImageShared { image: 24, other: 28 },
        ConditionEmpty,
        ConditionMisaligned { offset: 6 },
        EventInBody { body: 1 },
        ImageArea {
            what: "the source",
            origin: [1, 2, 0],
            region: [9, 6, 1],
            shape: text("image2d_t of 9 x 6 pixels"),
        },
        ImageFormats { src: ImageFormat::RGBA_U8, dst: ImageFormat::RGBA_F32 },
        ImageColor { format: ImageFormat::RGBA_U8, has: "unsigned integers", given: "floating-point numbers" },
        ArgumentSize { index: 1, name: text("by"), type_name: text("uint"), expected: 36, given: 40 },
        ArgumentType {
            index: 1,
            name: text("by"),
            type_name: text("uint"),
            given: text("a `u32`"),
            expected: "an `f32`",
        },
        ArgumentBytes { index: 1, given: 28, before: 32, limit: 4096 },
        NoRange,
        RangeDimensions { given: 24 },
        Dimensions { what: "global offset", given: 28, of: "the range", range: 36 },
        RangeTooLarge { range: vec![8], offset: vec![1] },
        WorkGroup(WorkGroupError::Empty { given: [0, 1, 1] }),
        NoLocalMemory { index: 1 },
        LocalMemory { needed: 24, own: 28, limit: 4096 },
        OtherContext { what: text("the source") },
        OtherDevice { what: "the executable", device: text("a device"), graph_device: text("another device") },
        OutOfBounds { what: "the source", offset: 28, end: 40, len: 36 },
        Overlap { src: text("bytes 0..8"), dst: text("bytes 4..12") },
        SizeMismatch { left: "the data", left_bytes: 28, right: "the destination", right_bytes: 36 },
        NoRegion,
        Rect(RectError::TooLarge { what: "source" }),
        EmptyPattern,
        PatternRange { len: 24, pattern: 28 },
        AccessForbidden { what: text("argument 0"), flag: "CL_MEM_FLAG", access: "a host read" },
        Undeclared { access: "reads", by: "reads" },
        OtherGraph { node: a },
        NotANode,
        Recording,
        SameNode { node: a },
        Cycle { nodes: vec![a, b] },
        Parameter { index: 1, parameter: text("a buffer"), argument: text("a value") },
        ParameterExecuted { index: 1 },
        OtherKind { node: a, is: text("a host read"), given: text("a range"), why: "build it from source" },
        Group(GroupError::OtherGraph),
        Replace { node: a, why: text("it is a fill, but a copy was given") },
        Elementwise { index: 1, why: text("it is a value, not memory") },
        RangeBound { range: vec![8], offset: vec![1], bound: vec![4] },
        RangeFixed,
        Full { limit: 4096 },
        NotSupported { what: text("a read of 3 bytes"), why: text("build it from source") },
        HostMemory { bytes: 24 },
        OtherExecutable,
        TooManyToDraw { nodes: 24, most: 28 },
        File { path: text("/nowhere").into(), why: text("build it from source") },
        GraphMemory { what: text("the source"), by: "in another graph" },
        CopyKernel(ProgramError::NotBuilt),
        Global(GlobalError::ProgramGone),
        Memory(MemoryError::SubBufferOfSubBuffer),
        Driver(driver),
    );
    of!(WorkGroupError:
        Required { given: [4, 1, 1], required: [8, 1, 1] },
        RequiredDimensions { given: 24, required: [8, 1, 1] },
        Empty { given: [4, 1, 1] },
        ItemSize { dimension: 24, given: 28, limit: 4096 },
        TooLarge { given: [4, 1, 1], limit: 4096 },
        TooMany { groups: 1 << 33, limit: 4_294_967_295 },
        Uneven { dimension: 24, range: 28, work_group: 32 },
    );
    of!(RectError:
        TooLarge { what: "source" },
        RowPitch { what: "source", given: 28, row: 32 },
        SlicePitch { what: "source", given: 28, rows: 32, least: 36 },
        SlicePitchRows { what: "source", slice: 28, row: 32 },
        PitchesDiffer { src: [32, 64], dst: [16, 32] },
        Wraps { what: "source", bytes: 28, start: 32, row: 36 },
    );
    of!(GroupError:
        Empty { what: "launch" },
        Options { what: "launch" },
        Accesses { what: "launch" },
        Index { what: "launch", index: 1, count: 32 },
        OtherGraph,
        GraphGone,
    );
    of!(FinalizeError:
        GraphMemoryFreed { alloc: a, freed: b, node: c, why: "is freed twice", remedy: "free it once" },
        GraphMemoryNotAllocated { alloc: a, node: b },
        Memory { bytes: 24, source: MemoryError::SubBufferOfSubBuffer },
        MemoryTooLarge,
        NotRunnable {
            node: a,
            what: text("kernel `scale`"),
            device: text("a device"),
            missing: text("its program was not built for this device"),
            kind: ErrorKind::KernelNotSupported,
        },
        Argument { node: a, kernel: text("scale"), index: 1, source: driver },
        Kernel { node: a, kernel: text("scale"), source: ProgramError::NotBuilt },
        Cycle { nodes: vec![a, b] },
        Defect { what: text("a step is missing") },
        Conflict {
            first: a,
            first_use: text("fill writes bytes 0..8"),
            second: b,
            second_use: text("copy reads bytes 0..8"),
        },
        Node { node: a, cause: BuildCause::NoRange },
        Dump { path: text("/nowhere"), error: text("not a folder") },
        Full { limit: 4096 },
        NativeCommand { node: a, text: text("no paper") },
        Option { option: "result_slots", given: text("0"), allowed: "at least 1" },
    );
    of!(RecordError:
        AlreadyRecording { index: 1, into: "this" },
        SameQueue { first: 0, second: 1 },
        OtherQueue { index: 1, what: "context" },
        OtherRecording { index: 1 },
        NotRecording,
        AroundBody,
        EndedInBody,
        NotRecordable { what: "finishing a queue", instead: "use a copy" },
        Recorded { node: a, what: "waited for" },
        RunningEvent { index: 1 },
        OtherGraph { index: 1, node: a },
        RecordingEnded { index: 1, node: a },
        CannotJoin { index: 1, node: a, what: "context" },
        NoLayer { platform: text("a platform") },
        AlreadyCaptured,
        NotCaptured,
        CaptureSpoilt { call: text("clFinish") },
        NotCapturable { place: 1, what: "a kernel", why: text("its argument 2 was not seen") },
    );
    of!(SubmitError:
        OtherQueue { what: "context", device: text("a device") },
        OtherContext { index: 1 },
        EventFailed { index: 1, cause: cause() },
        NoSlot { node: a, slots: 28 },
        HostMemory { node: a, bytes: 28 },
        NotAnInput { node: a },
        InputSize { node: a, expected: 28, given: 32 },
        NotAResult { node: a },
        NotRun { node: a },
        NotAControl { node: a },
        TooManyTurns { node: Some(a), what: "loop `repeat_while`, \"inner\", inside of it".to_owned(), turns: 100 },
        Cancelled { node: a, what: "loop `repeat_while`".to_owned(), turns: 7 },
        NotComplete,
        NotProfiled,
        NotAfterRead { task: a, read: b },
        TimedOut(Duration::from_millis(20)),
        Enqueue { node: a, commands: 28, fused: false, enqueued: 32, total: 36, source: driver },
        CommandFailed(driver),
        DependencyFailed { cause: cause() },
        HostTask { node: a, what: text("host task"), text: text("no paper") },
        BrokenPromise {
            node: a,
            kernel: text("smooth"),
            strayed: Box::new(Strayed { argument: 1, bytes: 4, items: 0..31, wrote: false, changed: 0, byte: 120 }),
        },
        NativeCommand { node: a, text: text("no paper") },
        EventMissing { node: a, method: "with_event" },
        EventTwice { node: a },
        NotAnEvent { node: a },
        EventContext { node: a },
        OwnEvent { node: a },
        ExternalEvent { node: a, cause: cause() },
        UserEvent { text: text("no paper") },
        UserEventDropped,
        UserEventEnded,
        UserEventInUse,
        UserEventAwaited,
        InsideNativeCommand,
        OwnSubmission,
        OwnQueue,
        NoThread { threads: 24 },
        InputTaken { node: a },
        Driver(driver),
    );
    of!(ParameterError:
        OutOfBound { given: text("10"), bound: text("1..=9") },
        Unbounded,
        Size { size: 24, given: 28 },
        TooSmall { needed: 24, given: 28 },
        NeverNull,
        Image { expected: text("image2d_t of 9 x 6 pixels"), given: text("image1d_t of 9 pixels") },
        Offset { offset: 24 },
        OtherContext,
    );
    of!(UpdateError:
        NotUpdatable,
        GraphMemory { node: a, alloc: b, why: "before it is allocated" },
        GraphGone { node: a },
        NotANode { index: 1 },
        NotInExecutable { node: a, why: "it belongs to another graph" },
        Fixed { node: a, kind: NodeKind::Alloc },
        Node { node: a, cause: BuildCause::NoRange },
        Conflict {
            first: a,
            first_use: text("fill writes bytes 0..8"),
            second: b,
            second_use: text("copy reads bytes 0..8"),
        },
        Differs { difference: text("the graph has another context") },
        NativeCommand { node: a, text: text("no paper") },
        Driver { node: a, argument: Some(2), source: driver },
    );
    // A log has lines of its own, and one message has the size of this machine's `usize`.
    let size = format!("`usize` of {} bits", usize::BITS);
    all.into_iter().map(|message| message.replace('\n', " / ").replace(&size, "`usize` of 64 bits")).collect()
}
