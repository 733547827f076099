//! Memory that is refused: freed, foreign, misaligned, or shorter than a command needs.

mod common;

use clgraph::{
    Buffer, BuildCause, Error, Event, Executable, Finalize, MapRead, Memory, MemoryError, MemoryKind, MemorySlice,
    NodeKind, Path, Queue, Status, SubmitError,
};
use common::{Bench, UserEvent, assert_error, cause};
use opencl3::memory::ClMem;

const LEN: usize = 256;

fn kinds(queue: &Queue) -> impl Iterator<Item = MemoryKind> + use<> {
    let caps = queue.device().caps().clone();
    MemoryKind::ALL.into_iter().filter(move |kind| caps.has_memory(*kind))
}

fn content(queue: &Queue, memory: &Memory<u32>) -> Vec<u32> {
    let mut data = vec![0; memory.len()];
    queue.enqueue_read_buffer(memory, 0, &mut data, &[]).unwrap();
    data
}

fn out_of_bounds<T>(result: clgraph::Result<T>) -> bool {
    match result {
        Err(Error::Build(error)) => matches!(*error.cause, BuildCause::OutOfBounds { .. }),
        Err(Error::Memory(error)) => matches!(error, MemoryError::OutOfBounds { .. }),
        _ => false,
    }
}

/// No command reaches beyond an allocation of any kind, executed or recorded. After the error nothing has changed.
#[test]
fn no_command_goes_beyond_an_allocation() {
    let bench = Bench::new();
    let queue = &bench.queue;
    for kind in kinds(queue) {
        let [a, b] = [3, 4].map(|value| {
            let memory = Memory::<u32>::with_kind(queue, kind, LEN).unwrap();
            queue.enqueue_fill_buffer(&memory, &[value], 0, LEN * 4, &[]).unwrap();
            memory
        });
        let graph = bench.graph();
        let all = LEN * 4;
        let commands = || {
            let rect = |origin: [usize; 3], region: [usize; 3]| {
                queue.enqueue_copy_buffer_rect(&a, &b, [0; 3], origin, region, 64, 0, 64, 0, &[]).map(|_| ())
            };
            vec![
                queue.enqueue_copy_buffer(&a, &b, 4, 0, all, &[]).map(|_| ()),
                queue.enqueue_copy_buffer(&a, &b, 0, 4, all, &[]).map(|_| ()),
                queue.enqueue_copy_buffer(&a, &b, usize::MAX, 0, 4, &[]).map(|_| ()),
                queue.enqueue_copy_buffer(&a, &b, 0, 0, usize::MAX, &[]).map(|_| ()),
                queue.enqueue_fill_buffer(&b, &[1_u32], all, 4, &[]).map(|_| ()),
                queue.enqueue_write_buffer(&b, 4, &[0; LEN], &[]).map(|_| ()),
                queue.enqueue_write_buffer_owned(&b, 4, vec![0; LEN], &[]).map(|_| ()),
                queue.enqueue_read_buffer_owned(&a, 4, LEN, &[]).map(|_| ()),
                rect([0, 16, 0], [4, 1, 1]),
                rect([0, 0, 0], [4, 17, 1]),
                rect([0, 0, 1], [64, 16, 1]),
            ]
        };
        for (at, refused) in commands().into_iter().enumerate() {
            assert!(out_of_bounds(refused), "{kind}, command {at}");
        }
        let recorded = graph.record(queue, || Ok(commands()));
        for (at, refused) in recorded.unwrap().into_iter().enumerate() {
            assert!(out_of_bounds(refused), "{kind}, recorded command {at}");
        }
        assert!(graph.is_empty());
        assert!(out_of_bounds(
            graph.copy_rect(&a, &b).dst_origin([0, 16, 0]).region([4, 1, 1]).src_pitch(64, 0).dst_pitch(64, 0).add()
        ));
        assert!(out_of_bounds(queue.enqueue_read_buffer(&a, 4, &mut [0_u32; LEN], &[])));
        assert_eq!((content(queue, &a), content(queue, &b)), (vec![3; LEN], vec![4; LEN]), "{kind}");
    }
}

/// Rule F6: a buffer over host memory is recognised, also if the host memory is SVM.
#[test]
fn buffers_over_memory_of_the_host_are_recognised() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let over = |pointer: *mut u32| {
        let context = queue.context().to_opencl3().unwrap();
        // SAFETY: memory of so many bytes, which outlives the buffer.
        let buffer = unsafe {
            opencl3::memory::Buffer::<u32>::create(&context, opencl3::memory::CL_MEM_USE_HOST_PTR, LEN, pointer.cast())
        };
        let buffer = buffer.unwrap();
        // SAFETY: a live buffer.
        unsafe { Buffer::<u32>::from_raw(queue, buffer.get()) }
    };
    let mut host = vec![0_u32; LEN + 1024];
    let start = host.as_mut_ptr().addr().next_multiple_of(4096) - host.as_ptr().addr();
    assert_error!(
        over(host[start / 4..].as_mut_ptr()),
        MemoryError::HostMemory { what: "buffer", flag: "CL_MEM_USE_HOST_PTR", .. },
    );
    for kind in kinds(queue).filter(|kind| matches!(kind, MemoryKind::SvmCoarse | MemoryKind::SvmFine)) {
        let memory = Memory::<u32>::with_kind(queue, kind, LEN).unwrap();
        assert_error!(
            over(memory.as_ptr().unwrap()),
            MemoryError::HostMemory { what: "buffer", flag: "CL_MEM_USES_SVM_POINTER", .. },
            "{kind}",
        );
    }
}

/// USM can report about an address; SVM cannot.
#[test]
fn addresses_of_freed_memory_are_refused_where_the_driver_knows() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let usm = [MemoryKind::UsmDevice, MemoryKind::UsmHost, MemoryKind::UsmShared];
    for kind in kinds(queue).filter(|kind| usm.contains(kind)) {
        let memory = Memory::<u32>::with_kind(queue, kind, LEN).unwrap();
        let pointer = memory.as_ptr().unwrap();
        // SAFETY: it is not used.
        let known = unsafe { Memory::from_raw(queue, kind, pointer, LEN) };
        assert_eq!(known.unwrap().as_ptr(), Some(pointer));
        drop(memory);
        if queue.device().caps().usm.unwrap().system {
            continue;
        }
        // SAFETY: as above.
        let freed = unsafe { Memory::from_raw(queue, kind, pointer, LEN) };
        // There it is freed a while later, and nothing else gets the address before that.
        let caps = queue.device().caps();
        if caps.platform == "Portable Computing Language" && caps.driver_version.starts_with("7.") {
            assert!(freed.is_ok());
            continue;
        }
        assert!(matches!(freed, Err(Error::Memory(MemoryError::UnknownPointer))), "{kind}: {freed:?}");
    }
}

/// Elements must start at a multiple of their type's alignment, for kernels and for the host.
#[test]
fn elements_are_aligned() {
    let bench = Bench::new();
    let queue = &bench.queue;
    for kind in kinds(queue).filter(|kind| kind.is_pointer()) {
        let memory = Memory::<u32>::with_kind(queue, kind, LEN).unwrap();
        let odd = memory.slice(1..3).unwrap();
        // Foreign memory may start anywhere.
        let bytes = memory.cast::<u8>().unwrap().as_ptr().unwrap();
        // SAFETY: `memory` lives, and nothing else uses it.
        let wrapped = unsafe { Memory::<u64>::from_raw(queue, kind, bytes.wrapping_add(4).cast(), 4) }.unwrap();
        // SAFETY: errors.
        let mapped = unsafe { queue.map(&wrapped, MapRead, &[]) };
        if kind == MemoryKind::UsmDevice {
            assert!(matches!(mapped, Err(Error::Memory(MemoryError::NotHostAccessible { .. }))));
        } else {
            assert!(matches!(mapped, Err(Error::Memory(MemoryError::ElementAlign { align: 8 }))), "{kind}");
        }
        let cast: clgraph::Result<MemorySlice<u64>> = odd.cast();
        assert!(matches!(cast, Err(Error::Memory(MemoryError::ElementAlign { align: 8 }))), "{kind}");
        assert_eq!(odd.cast::<[u32; 2]>().unwrap().len(), 1);
        assert_eq!(memory.slice(2..4).unwrap().cast::<u64>().unwrap().len(), 1);
    }
}

/// A map waits for the events of its list, and reports the one that failed.
#[test]
fn a_map_waits_for_its_list() {
    let bench = Bench::new();
    let (queue, other) = (&bench.queue, bench.another_queue(false));
    for kind in kinds(queue).filter(|kind| *kind != MemoryKind::UsmDevice) {
        let memory = Memory::<u32>::with_kind(queue, kind, LEN).unwrap();
        queue.enqueue_fill_buffer(&memory, &[1], 0, LEN * 4, &[]).unwrap().wait().unwrap();
        let gate = UserEvent::new(queue);
        let event = |gate: &UserEvent| Event::from_opencl3(&gate.0).unwrap();
        let late = other.enqueue_fill_buffer(&memory, &[7], 0, LEN * 4, &[&event(&gate)]).unwrap();
        let setter = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            gate.set(0);
        });
        // SAFETY: nothing else uses the memory when the list is complete.
        let mapped = unsafe { queue.map(&memory, MapRead, &[&late]) }.unwrap();
        setter.join().unwrap();
        assert_eq!(*mapped, [7; LEN], "{kind}");
        mapped.unmap().unwrap();
        let failed = UserEvent::new(queue);
        failed.set(-5);
        // SAFETY: an error.
        let mapped = unsafe { queue.map(&memory, MapRead, &[&event(&failed)]) };
        let of_event = |cause: &Error| cause.driver_error().is_some_and(|error| error.status == Status(-5));
        assert_error!(mapped, SubmitError::EventFailed { index: 0, cause } if of_event(cause), "{kind}");
    }
}

fn run(executable: &Executable, queue: &Queue) {
    executable.submit(queue).unwrap().wait().unwrap();
}

/// Rules B2, I5: hints and rectangles of all kinds of memory, recorded from a queue.
#[test]
fn hints_and_rectangles_are_recorded() {
    let bench = Bench::new();
    let queue = &bench.queue;
    for (from, into) in kinds(queue).flat_map(|a| kinds(queue).map(move |b| (a, b))) {
        let new = |kind, data: Vec<u32>| {
            let memory = Memory::<u32>::with_kind(queue, kind, LEN).unwrap();
            queue.enqueue_write_buffer(&memory, 0, &data, &[]).unwrap();
            memory
        };
        let (a, b) = (new(from, (0..LEN as u32).collect()), new(into, vec![0; LEN]));
        let graph = bench.graph();
        let outcome = graph.record(queue, || {
            queue.enqueue_prefetch(&a, &[])?;
            queue.enqueue_advise(&a, 0, &[])?;
            queue.enqueue_copy_buffer_rect(&a, &b, [4, 1, 0], [8, 0, 1], [16, 3, 2], 32, 128, 24, 120, &[])?;
            queue.enqueue_prefetch_to_host(&b, &[])
        });
        let last = graph.node_of(&outcome.unwrap()).unwrap();
        let kinds: Vec<NodeKind> = graph.nodes().iter().map(|node| graph.kind(*node).unwrap()).collect();
        assert_eq!((graph.len(), graph.kind(last).unwrap()), (4, NodeKind::Prefetch));
        assert_eq!((kinds[0], kinds[1]), (NodeKind::Prefetch, NodeKind::Advise));
        // As words: from 8, 32 of them, and from 6, 30 of them.
        let mut expected = vec![0; LEN];
        for (z, y, x) in (0..2).flat_map(|z| (0..3).flat_map(move |y| (0..4).map(move |x| (z, y, x)))) {
            expected[2 + x + y * 6 + (z + 1) * 30] = (1 + x + (y + 1) * 8 + z * 32) as u32;
        }
        for path in [Path::Replay, Path::Native, Path::Auto] {
            queue.enqueue_fill_buffer(&b, &[0], 0, LEN * 4, &[]).unwrap();
            run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
            assert_eq!(content(queue, &b), expected, "{from} to {into}, {path}");
        }
    }
    let buffer = bench.buffer(&[0; 4]);
    let graph = bench.graph();
    let context = common::elsewhere();
    let refused = graph.record(queue, || queue.enqueue_prefetch(&context.buffer(&[0; 4]), &[]));
    assert!(matches!(cause(refused), BuildCause::OtherContext { .. }));
    graph.prefetch_to_host(&buffer).add().unwrap();
    run(&graph.finalize(Finalize::new()).unwrap(), queue);
}
