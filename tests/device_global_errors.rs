//! Device globals: errors, after which nothing has changed; and globals that belong to one program.

mod common;

use std::process::Command;

use clgraph::{
    DeviceGlobal, DynamicGlobal, Error, ErrorKind, ExecuteKernel, Finalize, GlobalAccess, GlobalError, Kernel,
    MemoryError, Path, Program, ProgramBuilder, ProgramError, Queue, device_global, scope,
};
use common::{Bench, assert_error, elsewhere};

device_global! {
    static COUNT: u32 = 3;
    static LARGE: [u64; 2];
    #[device_image_scope]
    static OWN: [u32; 2] = [10, 20];
    #[device_image_scope]
    static ALSO: u64;
}

const COUNTS: &str = "CLG_DEVICE_GLOBAL(uint, count);
    kernel void tick(CLG_ONLY_PARAMS) { CLG_GLOBAL(count)++; }";

const OWNS: &str = "CLG_DEVICE_GLOBAL_ARRAY(uint, own, [2]);
    kernel void tick(CLG_ONLY_PARAMS) { CLG_GLOBAL(own)[0]++; CLG_GLOBAL(own)[1] += 2; }
    kernel void load(global uint *out CLG_PARAMS) { out[get_global_id(0)] = CLG_GLOBAL(own)[get_global_id(0)]; }";

fn accesses(queue: &Queue) -> Vec<GlobalAccess> {
    queue.device().caps().global_access()
}

fn run(queue: &Queue, kernel: &Kernel) {
    // SAFETY: the kernel touches the globals of its program only.
    unsafe { ExecuteKernel::new(kernel).set_global_work_size(1).enqueue_nd_range(queue).unwrap().wait().unwrap() };
}

fn own(queue: &Queue) -> Vec<u32> {
    let mut data = vec![0; 2];
    queue.enqueue_read_buffer(&OWN.on(queue).unwrap(), 0, &mut data, &[]).unwrap();
    data
}

fn count(queue: &Queue) -> u32 {
    let mut data = [0];
    queue.enqueue_read_buffer(&COUNT.on(queue).unwrap(), 0, &mut data, &[]).unwrap();
    data[0]
}

/// Rule G5: the variable belongs to one program. It starts with its initial value and goes with the program.
#[test]
fn a_global_with_image_scope_belongs_to_one_program() {
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let list = || ProgramBuilder::new(queue).global("own", &OWN).global_access(access);
        // No program.
        let error = OWN.on(queue).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::KernelNotSupported);
        assert_error!(
            &error,
            GlobalError::NoProgram { name: "device_global_errors::OWN", why: "no program has the global" },
        );
        let program = list().source(OWNS).unwrap();
        let bound = &program.globals()[0];
        assert!(bound.is_image_scope && bound.access == access);
        assert_eq!(bound.is_variable, access == GlobalAccess::NamedWrite, "{bound}");
        // A copy before any kernel.
        assert_eq!(own(queue), [10, 20], "{access}");
        run(queue, &program.kernel("tick").unwrap());
        assert_eq!(own(queue), [11, 22], "{access}");
        queue.enqueue_write_buffer(&OWN.on(queue).unwrap().slice(1..).unwrap(), 0, &[7], &[]).unwrap();
        queue.enqueue_fill_buffer(&OWN.on(queue).unwrap(), &[5], 0, 4, &[]).unwrap();
        run(queue, &program.kernel("tick").unwrap());
        assert_eq!(own(queue), [6, 9], "{access}");
        // A second program while the first exists; a kernel keeps the first.
        let tick = program.kernel("tick").unwrap();
        drop(program);
        let error = list().source(OWNS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_error!(&error, GlobalError::OtherProgram { name: "device_global_errors::OWN" });
        run(queue, &tick);
        assert_eq!(own(queue), [7, 11], "{access}");
        // Another context has its own.
        let elsewhere = Bench::new();
        let theirs =
            ProgramBuilder::new(&elsewhere.queue).global("own", &OWN).global_access(access).source(OWNS).unwrap();
        assert_eq!(own(&elsewhere.queue), [10, 20], "{access}");
        drop((tick, theirs));
        // Built again: a new instance.
        let again = list().options("-DAGAIN").source(OWNS).unwrap();
        assert_eq!(own(queue), [10, 20], "{access}");
        drop(again);
        assert_eq!(OWN.on(queue).unwrap_err().kind(), ErrorKind::KernelNotSupported);
        // A program that fails to build does not count.
        list().source("CLG_DEVICE_GLOBAL_ARRAY(uint, own, [2]); nonsense").unwrap_err();
        list().source(OWNS).unwrap();
    }
}

/// Rules G5, F3: graphs and slices keep what they use.
#[test]
fn a_graph_keeps_the_memory_of_a_program_that_is_gone() {
    for access in accesses(&Bench::new().queue) {
        for path in [Path::Replay, Path::Native, Path::Auto] {
            let bench = Bench::new();
            let queue = &bench.queue;
            let list = || ProgramBuilder::new(queue).global("own", &OWN).global_access(access);
            let program = list().source(OWNS).unwrap();
            let (out, graph) = (bench.buffer(&[0; 2]), bench.graph());
            let (slice, load) = (OWN.on(queue).unwrap(), program.kernel("load").unwrap());
            graph.write(&slice, [1, 2]).add().unwrap();
            // SAFETY: a work-item writes its own element.
            unsafe { graph.kernel(&load).write(&out).range(2).add().unwrap() };
            let result = graph.read(&slice).add().unwrap();
            let executable = graph.finalize(Finalize::new().path(path)).unwrap();
            drop((program, load, graph));
            for _ in 0..2 {
                let run = executable.submit(queue).unwrap();
                run.wait().unwrap();
                assert_eq!(
                    (bench.content(&out), run.get(&result).unwrap().to_vec()),
                    (vec![1, 2], vec![1, 2]),
                    "{access}"
                );
            }
            // The executable keeps the kernel, so the variable is still in use.
            assert!(matches!(list().source(OWNS), Err(Error::Global(GlobalError::OtherProgram { .. }))));
            drop(executable);
            // A slice keeps the memory, but does not keep the variable in use.
            let again = list().source(OWNS).unwrap();
            assert_eq!(own(queue), [10, 20]);
            let mut old = [0; 2];
            queue.enqueue_read_buffer(&slice, 0, &mut old, &[]).unwrap();
            assert_eq!(old, [1, 2], "{access}");
            drop(again);
        }
    }
}

/// Rule G5: a program without kernels does not count.
#[test]
fn a_program_without_kernels_makes_no_use_of_a_global() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let source = "CLG_DEVICE_GLOBAL(ulong, also); void nobody(CLG_ONLY_PARAMS) { CLG_GLOBAL(also)++; }";
    for access in accesses(queue) {
        let Ok(_program) = ProgramBuilder::new(queue).global("also", &ALSO).global_access(access).source(source) else {
            // Some compilers require a kernel.
            continue;
        };
        let error = ALSO.on(queue).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::KernelNotSupported);
        assert_error!(
            &error,
            GlobalError::NoProgram {
                name: "device_global_errors::ALSO",
                why: "the program that has the global has no kernel",
            },
        );
    }
}

/// Rule G5: several threads, of which one gets the variable.
#[test]
fn of_programs_that_are_built_at_once_one_gets_the_global() {
    let bench = Bench::new();
    let built: Vec<_> = std::thread::scope(|scope| {
        let build = || ProgramBuilder::new(&bench.queue).global("own", &OWN).source(OWNS);
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(built.iter().filter(|program| program.is_ok()).count(), 1);
    assert_eq!(own(&bench.queue), [10, 20]);
    // Globals that are shared have the same memory, made once.
    let queue = &bench.queue;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let program = ProgramBuilder::new(queue).global("count", &COUNT).source(COUNTS).unwrap();
                // In turns: the kernel has no atomics.
                static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
                let _turn = TURN.lock().unwrap();
                run(queue, &program.kernel("tick").unwrap());
            });
        }
    });
    assert_eq!(count(queue), 7);
}

/// Rules G1, G10: two variables with one name.
#[test]
fn a_second_variable_of_one_name_is_an_error_that_names_both() {
    fn first() -> &'static DeviceGlobal<u32> {
        device_global! { static SAME: u32; }
        &SAME
    }
    fn second() -> &'static DeviceGlobal<[f32; 2]> {
        device_global! { static SAME: [f32; 2]; }
        &SAME
    }
    let bench = Bench::new();
    first().on(&bench.queue).unwrap();
    for error in [
        second().on(&bench.queue).unwrap_err(),
        ProgramBuilder::new(&bench.queue).global("same", second()).source("kernel void f() {}").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_error!(
            error,
            GlobalError::NameClash {
                name: "device_global_errors::SAME",
                first,
                first_type: "u32",
                second,
                second_type: "[f32; 2]",
            } if first != second && [first, second].iter().all(|at| at.starts_with("tests/device_global_errors.rs:")),
        );
    }
    first().on(&bench.queue).unwrap();
    // In another context the other variable may come first.
    second().on(&elsewhere().queue).unwrap();
}

/// Rule G15
#[test]
fn names_in_c_are_checked() {
    let bench = Bench::new();
    let list = || ProgramBuilder::new(&bench.queue);
    let source = "kernel void f(global int *a) { a[0] = 1; }";
    for name in ["", "a::b", "2nd", "a b", "ä"] {
        let error = list().global(name, &COUNT).source(source).unwrap_err();
        assert!(matches!(&error, Error::Global(GlobalError::NotAName { c_name, .. }) if c_name == name), "{error}");
    }
    assert_error!(
        list().global("one", &COUNT).global("one", &LARGE).source(source),
        GlobalError::ListedTwice { c_name, second: "device_global_errors::LARGE", for_what }
            if c_name == "one" && for_what == "also lists `device_global_errors::COUNT` by this name",
    );
    assert_error!(
        list().global("one", &COUNT).global("two", &COUNT).source(source),
        GlobalError::ListedTwice { c_name, second: "device_global_errors::COUNT", for_what }
            if c_name == "two" && for_what == "also lists the same global as `one`",
    );
}

/// Rule G4: sizes on both sides; what the source lacks, and what it has too much.
#[test]
fn what_the_source_declares_otherwise_is_reported() {
    let bench = Bench::new();
    for access in accesses(&bench.queue) {
        let list = || ProgramBuilder::new(&bench.queue).global("count", &COUNT).global_access(access);
        let error = list().source(&COUNTS.replace("uint", "ulong")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_error!(
            &error,
            GlobalError::Size { name: "device_global_errors::COUNT", type_name: "u32", size: 4, c_name, in_c: 8 }
                if c_name == "count",
            "{access}",
        );
        let Error::Global(GlobalError::NotDeclared { c_name, log, .. }) =
            list().source("kernel void f(global int *a) { a[0] = 1; }").unwrap_err()
        else {
            panic!("it is not declared, by {access}")
        };
        assert!(c_name == "count" && log.contains("clgraph_type_count"), "{log}");
        // A function that does not get the global. If the program uses a pointer, nothing is missing.
        let helper = "void up(void) { CLG_GLOBAL(count)++; } kernel void f(CLG_ONLY_PARAMS) { up(); }";
        let built = list().source(&format!("CLG_DEVICE_GLOBAL(uint, count); {helper}"));
        if access == GlobalAccess::Argument {
            let Error::Global(GlobalError::NoParameter { c_name, log, .. }) = built.unwrap_err() else {
                panic!("it has no parameter")
            };
            assert!(c_name == "count" && log.contains("clgraph_argument_count"), "{log}");
        } else {
            built.unwrap();
        }
        // A name that is a macro, and a second declaration, with warnings as errors.
        let list_as =
            |name| ProgramBuilder::new(&bench.queue).global(name, &COUNT).global_access(access).options("-Werror");
        let twice = "CLG_DEVICE_GLOBAL(uint, NAME); CLG_DEVICE_GLOBAL(uint, NAME);
            kernel void f(global uint *a CLG_PARAMS) { a[0] = CLG_GLOBAL(NAME); }";
        for name in ["count", "NULL", "M_PI"] {
            list_as(name).source(&twice.replace("NAME", name)).unwrap().kernel("f").unwrap();
        }
        // For undeclared names the log is the compiler's.
        let error = list().source(&COUNTS.replace("GLOBAL(count)++", "GLOBAL(nothing)++")).unwrap_err();
        assert_error!(error, ProgramError::BuildFailed { log, .. } if log.contains("CLGRAPH_LVALUE_nothing"));
        let built = list().source(&format!("{COUNTS}\nCLG_DEVICE_GLOBAL(uint, more);"));
        assert_error!(built, ProgramError::BuildFailed { log, .. } if log.contains("CLGRAPH_SIZE_more"));
        // Line numbers are those of the source.
        let built = list().source(&format!("{COUNTS}\n\nkernel void g(global int *a) {{ missing(a); }}"));
        // (Two compilers count the lines before it too.)
        let is_counted = !["rusticl", "NVIDIA CUDA"].contains(&&*bench.queue.device().caps().platform);
        assert_error!(built, ProgramError::BuildFailed { log, .. } if log.contains(":4:") || !is_counted);
    }
    // A parameter after the hidden ones.
    let list = ProgramBuilder::new(&bench.queue).global("count", &COUNT).global_access(GlobalAccess::Argument);
    let last = COUNTS.replace("(CLG_ONLY_PARAMS)", "(global uint *a CLG_PARAMS, uint by)");
    let error = list.source(&last).unwrap().kernel("tick").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_error!(&error, GlobalError::OtherArguments { kernel, name } if kernel == "tick" && name == "by");
    assert_eq!(count(&bench.queue), 3);
    // Without a list the macros do not exist.
    let error = Program::from_source(&bench.queue, COUNTS).unwrap_err();
    assert!(matches!(error, Error::Program(ProgramError::BuildFailed { .. })));
}

/// Rule G8: an access that the device does not have, by the builder and by the environment.
#[test]
fn an_access_that_is_not_there_is_refused() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let has = accesses(queue);
    for access in [GlobalAccess::NamedWrite, GlobalAccess::Kernel, GlobalAccess::Argument] {
        let built = ProgramBuilder::new(queue).global("count", &COUNT).global_access(access).source(COUNTS);
        match built {
            Ok(program) => assert_eq!((has.contains(&access), program.globals()[0].access), (true, access)),
            Err(error) => {
                assert!(!has.contains(&access));
                assert_eq!(error.kind(), ErrorKind::FeatureNotSupported);
                assert_error!(
                    error,
                    GlobalError::Access { access: given, why }
                        if *given == access && why.starts_with("the only access on device `"),
                );
            }
        }
    }
    // The best access is chosen; arguments if the program must not have variables.
    let list = || ProgramBuilder::new(queue).global("count", &COUNT);
    if std::env::var_os("CLGRAPH_GLOBALS").is_none() {
        assert_eq!(list().source(COUNTS).unwrap().globals()[0].access, has[0]);
    }
    let old = list().options("-cl-std=CL1.2").source(COUNTS).unwrap();
    assert_eq!(old.globals()[0].access, GlobalAccess::Argument);
    run(queue, &old.kernel("tick").unwrap());
    assert_eq!(count(queue), 4);
    if has[0] != GlobalAccess::Argument {
        let error = list().options("-cl-std=CL1.2").global_access(has[0]).source(COUNTS).unwrap_err();
        assert_error!(
            &error,
            GlobalError::Access { why, .. } if why.contains("a version of OpenCL C that has no variables"),
        );
    }
}

/// Rule G8
#[test]
fn the_environment_may_set_the_access() {
    let bench = Bench::new();
    for (name, access) in
        [("named", GlobalAccess::NamedWrite), ("kernel", GlobalAccess::Kernel), ("argument", GlobalAccess::Argument)]
    {
        let expected =
            if accesses(&bench.queue).contains(&access) { format!("{access}") } else { "refused".to_owned() };
        assert_eq!(in_child(name), expected);
    }
    assert_eq!(
        in_child("pointer"),
        "the environment variable CLGRAPH_GLOBALS is `pointer`: it must be `named`, `kernel` or `argument`"
    );
}

/// Returns the access of a program that a process with this variable builds.
fn in_child(globals: &str) -> String {
    let exe = std::env::current_exe().unwrap();
    let mut child = Command::new(exe);
    child.args(["child_tells_the_way", "--exact", "--nocapture"]).env("CLGRAPH_TEST_CHILD", "access");
    let output = child.env("CLGRAPH_GLOBALS", globals).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text.lines().find_map(|line| line.split_once("the access: ")).unwrap().1.to_owned()
}

/// Does nothing unless `the_environment_may_set_the_access` runs it.
#[test]
fn child_tells_the_way() {
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_none_or(|child| child != "access") {
        return;
    }
    let bench = Bench::new();
    match ProgramBuilder::new(&bench.queue).global("count", &COUNT).source(COUNTS) {
        Ok(program) => println!("the access: {}", program.globals()[0].access),
        Err(error @ Error::Global(_)) => {
            assert_eq!(error.kind(), ErrorKind::FeatureNotSupported);
            println!("the access: refused");
        }
        Err(error) => println!("the access: {error}"),
    }
}

/// A device with too little memory fails at the first use, and nothing is left over. (A type of 2^44 bytes does not
/// exist on a 32-bit machine.)
#[cfg(target_pointer_width = "64")]
#[test]
fn a_global_that_is_too_large_for_the_device_is_refused() {
    device_global! {
        static HUGE: [[[u64; 1024]; 1024]; 1 << 21];
    }
    let bench = Bench::new();
    for _ in 0..2 {
        let error = HUGE.on_whole(&bench.queue).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert_error!(error, MemoryError::TooLarge { asked, .. } if *asked == HUGE.size() as u64);
    }
    let list = ProgramBuilder::new(&bench.queue).global("count", &COUNT).global("huge", &HUGE);
    assert_eq!(list.source(COUNTS).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!(count(&bench.queue), 3);
}

/// The types of different scopes are different.
#[test]
fn the_scope_is_part_of_the_type() {
    fn is_own<T: 'static, A>(_: &'static DeviceGlobal<T, A, scope::DeviceImage>) {}
    is_own(&OWN);
    is_own(&ALSO);
    let _: &DeviceGlobal<u32> = &COUNT;
}

/// Rule G17
#[test]
fn globals_are_declared_at_run_time() {
    assert!(
        matches!(DynamicGlobal::new("none", 0, None), Err(Error::Global(error)) if matches!(error, GlobalError::Empty { .. }))
    );
    let short = DynamicGlobal::new("short", 8, Some(&[1; 4]));
    assert!(
        matches!(short, Err(Error::Global(error)) if matches!(error, GlobalError::InitialSize { size: 8, given: 4, .. }))
    );
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let first = DynamicGlobal::new("errors::dynamic", 4, Some(&5_u32.to_ne_bytes())).unwrap();
        let list = |global: &DynamicGlobal| ProgramBuilder::new(queue).global("count", global).global_access(access);
        let clone = first;
        run(queue, &list(&first).source(COUNTS).unwrap().kernel("tick").unwrap());
        run(queue, &list(&clone).source(COUNTS).unwrap().kernel("tick").unwrap());
        let mut now = [0_u32];
        queue.enqueue_read_buffer(&clone.on(queue).unwrap().cast().unwrap(), 0, &mut now, &[]).unwrap();
        assert_eq!(now, [7]);
        // The same name again is another variable, which clashes.
        let second = DynamicGlobal::new("errors::dynamic", 4, None).unwrap();
        assert_error!(
            list(&second).source(COUNTS),
            GlobalError::NameClash {
                name: "errors::dynamic",
                first: "a declaration at run time",
                second: "a declaration at run time",
                ..
            },
        );
        // One for each program.
        let own = DynamicGlobal::of_program("errors::own", 4, None).unwrap();
        assert_eq!(own.on(queue).unwrap_err().kind(), ErrorKind::KernelNotSupported);
        let program = list(&own).source(COUNTS).unwrap();
        run(queue, &program.kernel("tick").unwrap());
        assert_error!(list(&own).source(COUNTS), GlobalError::OtherProgram { name: "errors::own" });
        queue.enqueue_read_buffer(&own.on(queue).unwrap().cast().unwrap(), 0, &mut now, &[]).unwrap();
        assert_eq!(now, [1]);
    }
}
