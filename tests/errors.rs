//! Errors: what they carry, what they say, and that they leave nothing over.

mod common;

use clgraph::{
    BuildError, DriverError, Error, ErrorKind, Finalize, FinalizeError, MemoryError, MemoryKind, Program, ProgramError,
    SetupError, Status, SubmitError,
};
use common::{Bench, UserEvent, text};

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
    assert_eq!(
        argument.to_string(),
        "node 0 (kernel `f`): the driver refused argument 2: clSetKernelArg failed with CL_INVALID_ARG_SIZE (-51)"
    );
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
        return common::skip(common::Reason::TypesAreTold);
    };
    let ((a, tell), b) = (bench.telling_buffer(&[0; 8]), bench.buffer(&[1; 8]));
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element, and the second node is refused before it runs.
    unsafe {
        graph.kernel(&bench.kernel("stir")).read_write(&a).range(8).add().unwrap();
        let wrong = graph.kernel(&kernel);
        let wrong = if argument == 0 { wrong } else { wrong.read(&a).write(&b) };
        let node = wrong.bytes(&[0; 64]).range(8).add().unwrap();
        let error = graph.finalize(Finalize::new()).unwrap_err().to_string();
        let expected = format!("{node} (kernel `{}`): the driver refused argument {argument}", kernel.name());
        assert!(error.starts_with(&expected), "{error}");
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
        text(executable.submit_to(&bench.queue).after(&failed.0).submit());
        text(executable.submit_to(&bench.queue).with(&write, [1; 7]).submit());
        let later = UserEvent::new(&bench.queue);
        let run = executable.submit_to(&bench.queue).with(&write, [2; 8]).after(&later.0).submit().unwrap();
        later.set(-1);
        assert!(run.wait().is_err());
        assert!(text(executable.submit(&bench.queue)).contains("all 1 result slots"), "the failed run holds the slot");
        drop(run);
        // The event reaper releases the failed run a moment after it has ended.
        let run = loop {
            match executable.submit(&bench.queue) {
                Ok(run) => break run,
                Err(error) => assert!(error.to_string().contains("all 1 result slots"), "{error}"),
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
