//! Graphs of what was captured: `Graph::capture` of clgraph, which is another copy of its code than the layer.
//!
//! A test runs once more, in a process of its own that has the layer.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod common;

use std::ffi::c_void;
use std::ptr;

use clgraph::{
    Addressing, Buffer, BuildCause, CaptureMode, Context, Error, Filter, Finalize, Graph, Image, ImageFormat,
    ImageShape, MemoryKind, NodeKind, Program, Queue, QueueProperties, RecordError, Sampler, best_device,
};
use common::in_a_process_with_layer as with_layer;
use opencl3::command_queue as calls;
use opencl3::command_queue::{
    CL_QUEUE_ON_DEVICE, CL_QUEUE_ON_DEVICE_DEFAULT, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROPERTIES,
};
use opencl3::device::{CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, CL_DEVICE_PLATFORM};
use opencl3::kernel as kernels;
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_event, cl_kernel, cl_mem};

const LEN: usize = 64;
const SOURCE: &str = "
    kernel void add(global uint *a, uint number) { a[get_global_id(0)] += number; }
    kernel void scale(global const uint *from, global uint *to, uint by) { to[get_global_id(0)] = from[get_global_id(0)] * by; }
    kernel void sums(global uint *a, local uint *part) {
        part[get_local_id(0)] = a[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        a[get_global_id(0)] = part[0] + part[get_local_size(0) - 1];
    }
    kernel void tell(global uint *a, global uint *none, ulong number) {
        if (get_global_id(0) == 0) { a[0] = none == 0; a[1] = (uint)number; }
    }";

struct World {
    queue: Queue,
    program: Program,
    graph: Graph,
}

impl World {
    fn new(out_of_order: bool) -> Self {
        let device = best_device().unwrap();
        let properties = QueueProperties::new().out_of_order(out_of_order);
        let queue =
            Queue::with_properties(&Context::new(std::slice::from_ref(&device)).unwrap(), &device, properties).unwrap();
        let program = Program::from_source(&queue, SOURCE).unwrap();
        let graph = Graph::new(&queue).unwrap();
        Self { queue, program, graph }
    }

    fn buffer(&self, value: u32) -> Buffer<u32> {
        Buffer::from_slice(&self.queue, &[value; LEN]).unwrap()
    }

    fn read(&self, buffer: &Buffer<u32>) -> Vec<u32> {
        let mut back = vec![0; LEN];
        self.queue.enqueue_read_buffer(buffer, 0, &mut back, &[]).unwrap();
        back
    }

    /// A kernel object as a library has it.
    fn raw(&self, name: &str) -> cl_kernel {
        let object = self.program.kernel(name).unwrap().to_opencl3().unwrap();
        let raw = object.get();
        std::mem::forget(object);
        raw
    }

    fn run(&self) {
        self.graph.finalize(Finalize::new()).unwrap().submit(&self.queue).unwrap().wait().unwrap();
    }
}

/// What a library does with one kernel: sets its arguments, launches and forgets it.
struct Library {
    queue: *mut c_void,
}

impl Library {
    fn launch(&self, kernel: cl_kernel, waits: &[cl_event]) -> cl_event {
        // One work-group has all of them.
        let (global, local) = ([LEN], [LEN]);
        let list = if waits.is_empty() { ptr::null() } else { waits.as_ptr() };
        // SAFETY: live objects.
        unsafe {
            let count = waits.len() as u32;
            calls::enqueue_nd_range_kernel(
                self.queue,
                kernel,
                1,
                ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                count,
                list,
            )
            .unwrap()
        }
    }

    fn set<T>(&self, kernel: cl_kernel, index: u32, value: &T) {
        // SAFETY: a live kernel, and a value of its parameter's type.
        unsafe { kernels::set_kernel_arg(kernel, index, size_of::<T>(), ptr::from_ref(value).cast()).unwrap() };
    }

    fn add(&self, kernel: cl_kernel, to: cl_mem, number: u32, waits: &[cl_event]) -> cl_event {
        self.set(kernel, 0, &to);
        self.set(kernel, 1, &number);
        self.launch(kernel, waits)
    }

    fn fill(&self, to: cl_mem, value: u32) {
        let pattern = ptr::from_ref(&value).cast();
        // SAFETY: a live buffer of that size.
        let event =
            unsafe { calls::enqueue_fill_buffer(self.queue, to, pattern, 4, 0, 4 * LEN, 0, ptr::null()).unwrap() };
        release(event);
    }
}

fn release(event: cl_event) {
    // SAFETY: a live event, once.
    unsafe { opencl3::event::release_event(event).unwrap() };
}

fn library(world: &World) -> Library {
    Library { queue: world.queue.raw() }
}

/// Rule L3: captured calls are nodes, in the order of the queue, beside other nodes that use the same memory.
#[test]
fn what_is_captured_becomes_nodes() {
    with_layer("what_is_captured_becomes_nodes", || {
        let world = World::new(false);
        let (a, b) = (world.buffer(1), world.buffer(2));
        world.graph.fill(&a, 5).add().unwrap();
        let (add, scale, sums) = (world.raw("add"), world.raw("scale"), world.raw("sums"));
        let mut host = vec![0_u32; LEN];
        let read_to = host.as_mut_ptr();
        let of = library(&world);
        // SAFETY: work-items touch their own elements, and the host memory outlives the graph.
        let captured = unsafe {
            world.graph.capture(&world.queue, || {
                release(of.add(add, a.raw(), 3, &[]));
                of.set(scale, 0, &a.raw());
                of.set(scale, 1, &b.raw());
                of.set(scale, 2, &10_u32);
                release(of.launch(scale, &[]));
                let written: Vec<u32> = (0..LEN as u32).collect();
                let data = written.as_ptr().cast();
                let event =
                    calls::enqueue_write_buffer(of.queue, a.raw(), CL_NON_BLOCKING, 0, 4 * LEN, data, 0, ptr::null())
                        .unwrap();
                release(event);
                drop(written);
                of.set(sums, 0, &a.raw());
                kernels::set_kernel_arg(sums, 1, 4 * LEN, ptr::null()).unwrap();
                release(of.launch(sums, &[]));
                let event = calls::enqueue_read_buffer(
                    of.queue,
                    a.raw(),
                    CL_NON_BLOCKING,
                    0,
                    4 * LEN,
                    read_to.cast(),
                    0,
                    ptr::null(),
                )
                .unwrap();
                release(event);
                for kernel in [add, scale, sums] {
                    kernels::release_kernel(kernel).unwrap();
                }
                Ok("done")
            })
        }
        .unwrap();
        assert_eq!((captured.value, captured.nodes.len()), ("done", 5));
        assert_eq!((world.read(&a), world.read(&b)), (vec![1; LEN], vec![2; LEN]), "nothing has run");
        let kinds: Vec<NodeKind> = captured.nodes.iter().map(|node| world.graph.kind(*node).unwrap()).collect();
        let kernel = NodeKind::Kernel;
        assert_eq!(kinds, [kernel, kernel, NodeKind::Copy, kernel, NodeKind::NativeCommand]);
        // The first one comes after the fill of its memory, and each after the one before.
        assert_eq!(world.graph.predecessors(captured.nodes[0]).unwrap(), [world.graph.nodes()[0]]);
        for two in captured.nodes.windows(2) {
            assert!(world.graph.predecessors(two[1]).unwrap().contains(&two[0]));
        }
        let result = world.graph.read(&b).add().unwrap();
        let executable = world.graph.finalize(Finalize::new()).unwrap();
        for _ in 0..2 {
            let run = executable.submit(&world.queue).unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(&result).unwrap(), [80; LEN]);
        }
        let sum = LEN as u32 - 1;
        assert_eq!(world.read(&a)[0], sum);
        // SAFETY: the submission is over.
        assert_eq!(unsafe { read_to.read_volatile() }, sum);
        drop(host);
    });
}

/// Rule L3: on a queue out of order, events and barriers are the order.
#[test]
fn events_are_the_order_of_a_queue_out_of_order() {
    with_layer("events_are_the_order_of_a_queue_out_of_order", || {
        let world = World::new(true);
        let (a, b) = (world.buffer(1), world.buffer(1));
        let (one, two, three) = (world.raw("add"), world.raw("add"), world.raw("add"));
        let of = library(&world);
        // SAFETY: work-items touch their own elements.
        let captured = unsafe {
            world.graph.capture(&world.queue, || {
                let first = of.add(one, a.raw(), 1, &[]);
                let second = of.add(two, b.raw(), 1, &[first]);
                release(calls::enqueue_barrier_with_wait_list(of.queue, 0, ptr::null()).unwrap());
                release(of.add(three, world.buffer(0).raw(), 1, &[]));
                release(first);
                release(second);
                Ok(())
            })
        }
        .unwrap();
        let [first, second, barrier, third] = captured.nodes[..] else { panic!("{captured:?}") };
        let before = |node| world.graph.predecessors(node).unwrap();
        assert_eq!((before(first), before(second)), (vec![], vec![first]));
        assert_eq!((before(barrier), before(third)), (vec![second], vec![barrier]));
        world.run();
        assert_eq!((world.read(&a), world.read(&b)), (vec![2; LEN], vec![2; LEN]));
    });
}

/// Rules L3, P2: arguments and ranges of captured kernels change.
#[test]
fn captured_kernels_are_updated() {
    with_layer("captured_kernels_are_updated", || {
        let world = World::new(false);
        let (a, b) = (world.buffer(1), world.buffer(1));
        let add = world.raw("add");
        let of = library(&world);
        // SAFETY: work-items touch their own elements.
        let captured = unsafe {
            world.graph.capture(&world.queue, || {
                release(of.add(add, a.raw(), 1, &[]));
                Ok(())
            })
        };
        let node = captured.unwrap().nodes[0];
        let executable = world.graph.finalize(Finalize::new().updatable()).unwrap();
        executable.submit(&world.queue).unwrap().wait().unwrap();
        // SAFETY: as above.
        unsafe {
            world.graph.set_arg(node, 0, &b).unwrap();
            world.graph.set_arg(node, 1, &41_u32).unwrap();
        }
        executable.update(&node).unwrap();
        executable.submit(&world.queue).unwrap().wait().unwrap();
        assert_eq!((world.read(&a), world.read(&b)), (vec![2; LEN], vec![42; LEN]));
        // SAFETY: nothing runs.
        let wrong = unsafe { world.graph.set_arg(node, 2, &1_u32) }.unwrap_err();
        assert!(
            matches!(&wrong, Error::Build(error) if matches!(*error.cause, BuildCause::ArgumentIndex { index: 2, count: 2 })),
            "{wrong}"
        );
        // SAFETY: nothing runs.
        let wrong = unsafe { world.graph.set_arg(node, 1, &1_u64) }.unwrap_err();
        assert!(wrong.to_string().starts_with(&format!("argument 1 of {node}")), "{wrong}");
    });
}

fn spoilt(world: &World, mode: CaptureMode, code: impl FnOnce()) -> String {
    // SAFETY: nothing runs.
    let captured = unsafe {
        world.graph.capture_with(&world.queue, mode, || {
            code();
            Ok(())
        })
    };
    match captured.unwrap_err() {
        Error::Record(RecordError::CaptureSpoilt { call }) => call,
        error => panic!("{error}"),
    }
}

/// Rule L3: what spoils a capture is named, the graph has not changed, and the queue runs.
#[test]
fn what_spoils_a_capture_is_named() {
    with_layer("what_spoils_a_capture_is_named", || {
        let world = World::new(false);
        let a = world.buffer(1);
        let of = library(&world);
        let mut back = [0_u32; LEN];
        let blocks = || {
            let data = back.as_mut_ptr().cast();
            of.fill(a.raw(), 3);
            // SAFETY: live objects, and room for so many bytes.
            let read =
                unsafe { calls::enqueue_read_buffer(of.queue, a.raw(), CL_BLOCKING, 0, 4 * LEN, data, 0, ptr::null()) };
            assert_eq!(read.unwrap_err(), -59);
        };
        assert_eq!(spoilt(&world, CaptureMode::Relaxed, blocks), "clEnqueueReadBuffer");
        assert_eq!(spoilt(&world, CaptureMode::Strict, || assert_eq!(calls::finish(of.queue), Err(-59))), "clFinish");
        // SAFETY: nothing runs.
        let relaxed = unsafe {
            world.graph.capture_with(&world.queue, CaptureMode::Relaxed, || {
                of.fill(a.raw(), 4);
                calls::finish(of.queue).unwrap();
                Ok(())
            })
        };
        assert_eq!(relaxed.unwrap().nodes.len(), 1);
        assert_eq!((world.graph.len(), world.read(&a)), (1, vec![1; LEN]));
        world.run();
        assert_eq!(world.read(&a), [4; LEN]);
    });
}

/// Rules L3, R1: captures and recordings of one queue.
#[test]
fn captures_begin_and_end() {
    with_layer("captures_begin_and_end", || {
        let world = World::new(false);
        let (a, of) = (world.buffer(1), library(&world));
        let (graph, queue) = (&world.graph, &world.queue);
        let refused = |outcome: clgraph::Result<()>| match outcome.unwrap_err() {
            Error::Record(error) => error,
            error => panic!("{error}"),
        };
        // SAFETY: nothing runs.
        assert_eq!(refused(unsafe { graph.end_capture(queue) }.map(drop)), RecordError::NotCaptured);
        graph.begin_capture(queue, CaptureMode::Strict).unwrap();
        assert_eq!(refused(graph.begin_capture(queue, CaptureMode::Strict)), RecordError::AlreadyCaptured);
        of.fill(a.raw(), 9);
        // SAFETY: a fill.
        assert_eq!(unsafe { graph.end_capture(queue) }.unwrap().len(), 1);
        graph.begin_recording(queue).unwrap();
        let again = refused(graph.begin_capture(queue, CaptureMode::Strict));
        assert_eq!(again, RecordError::AlreadyRecording { index: 0, into: "this" });
        graph.end_recording(queue).unwrap();
        let other = World::new(false);
        let elsewhere = refused(graph.begin_capture(&other.queue, CaptureMode::Strict));
        assert_eq!(elsewhere, RecordError::OtherQueue { index: 0, what: "context" });
        // An error and a panic end the capture, and nothing is added.
        // SAFETY: nothing runs.
        let failed = unsafe {
            graph.capture(queue, || -> clgraph::Result<()> {
                of.fill(a.raw(), 7);
                Err(RecordError::NotRecording.into())
            })
        };
        assert_eq!(refused(failed.map(drop)), RecordError::NotRecording);
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // SAFETY: nothing runs.
            unsafe {
                graph.capture(queue, || -> clgraph::Result<()> {
                    of.fill(a.raw(), 7);
                    panic!("on purpose")
                })
            }
        }));
        assert!(panics.is_err());
        assert_eq!(graph.len(), 1);
        world.run();
        assert_eq!(world.read(&a), [9; LEN]);
    });
}

/// Rule L3: memory with an address is not tracked, and the order of the queue holds.
#[test]
fn addresses_are_captured() {
    with_layer("addresses_are_captured", || {
        let world = World::new(false);
        let memory = clgraph::Memory::<u32>::with_kind(&world.queue, MemoryKind::SvmCoarse, LEN).unwrap();
        let address = memory.as_ptr().unwrap().cast::<c_void>();
        let (add, of) = (world.raw("add"), library(&world));
        let pattern = 5_u32;
        // SAFETY: work-items touch their own elements, and the memory outlives the graph.
        let captured = unsafe {
            world.graph.capture(&world.queue, || {
                let pattern = ptr::from_ref(&pattern).cast();
                release(calls::enqueue_svm_mem_fill(of.queue, address, pattern, 4, 4 * LEN, 0, ptr::null()).unwrap());
                kernels::set_kernel_arg_svm_pointer(add, 0, address).unwrap();
                of.set(add, 1, &2_u32);
                release(of.launch(add, &[]));
                Ok(())
            })
        };
        assert_eq!(captured.unwrap().nodes.len(), 2);
        world.run();
        let mut back = vec![0; LEN];
        world.queue.enqueue_read_buffer(&memory, 0, &mut back, &[]).unwrap();
        assert_eq!(back, [7; LEN]);
    });
}

type Find = unsafe extern "system" fn(isize, *const std::ffi::c_char) -> *mut c_void;
type SetPointer = unsafe extern "system" fn(cl_kernel, u32, *const c_void) -> i32;

/// Rule L3: as memory that is shared with the host, memory that the device has by an address of its own.
#[test]
fn addresses_of_the_device_are_captured() {
    with_layer("addresses_of_the_device_are_captured", || {
        let world = World::new(false);
        if world.queue.device().caps().usm.is_none() {
            println!("no USM");
            return;
        }
        let memory = clgraph::Memory::<u32>::with_kind(&world.queue, MemoryKind::UsmDevice, LEN).unwrap();
        world.queue.enqueue_write_buffer(&memory, 0, &[5; LEN], &[]).unwrap();
        let address = memory.as_ptr().unwrap().cast::<c_void>();
        let (add, of) = (world.raw("add"), library(&world));
        // SAFETY: the library is loaded already, and the function has that type.
        let set = unsafe {
            let library = libc::dlopen(c"libOpenCL.so.1".as_ptr(), libc::RTLD_NOW);
            let find = libc::dlsym(library, c"clGetExtensionFunctionAddressForPlatform".as_ptr());
            let find = std::mem::transmute::<*mut c_void, Find>(find);
            let platform = opencl3::device::get_device_info(world.queue.device().raw(), CL_DEVICE_PLATFORM).unwrap();
            let function = find(isize::from(platform), c"clSetKernelArgMemPointerINTEL".as_ptr());
            std::mem::transmute::<*mut c_void, SetPointer>(function)
        };
        // SAFETY: work-items touch their own elements, and the memory outlives the graph.
        let captured = unsafe {
            world.graph.capture(&world.queue, || {
                assert_eq!(set(add, 0, address), 0);
                of.set(add, 1, &2_u32);
                release(of.launch(add, &[]));
                release(of.launch(add, &[]));
                Ok(())
            })
        };
        assert_eq!(captured.unwrap().nodes.len(), 2);
        let mut back = vec![0; LEN];
        world.queue.enqueue_read_buffer(&memory, 0, &mut back, &[]).unwrap();
        assert_eq!(back, [5; LEN], "nothing has run");
        world.run();
        world.queue.enqueue_read_buffer(&memory, 0, &mut back, &[]).unwrap();
        assert_eq!(back, [9; LEN]);
    });
}

/// Rule L3: kernels that print, and kernels that enqueue kernels, do so when the graph runs.
#[test]
fn kernels_that_print_or_enqueue_are_captured() {
    let said = with_layer("kernels_that_print_or_enqueue_are_captured", || {
        let world = World::new(false);
        let (a, of) = (world.buffer(1), library(&world));
        let captures = |source: &str, options: &str, name: &str| {
            let program = clgraph::ProgramBuilder::new(&world.queue).options(options).source(source).unwrap();
            let object = program.kernel(name).unwrap().to_opencl3().unwrap();
            // SAFETY: the work-items touch their own elements.
            let captured = unsafe {
                world.graph.capture(&world.queue, || {
                    of.set(object.get(), 0, &a.raw());
                    release(of.launch(object.get(), &[]));
                    Ok(())
                })
            };
            assert_eq!(captured.unwrap().nodes.len(), 1);
        };
        let source = r#"kernel void tell(global uint *a) {
            a[get_global_id(0)] += 1;
            if (get_global_id(0) == 0) printf("the kernel printed %u\n", a[0]);
        }"#;
        captures(source, "-cl-std=CL1.2", "tell");
        world.run();
        assert_eq!(world.read(&a), [2; LEN]);

        let device = world.queue.device();
        let can = opencl3::device::get_device_info(device.raw(), CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES);
        if u64::from(can.unwrap()) == 0 {
            println!("no kernels that enqueue kernels");
            return;
        }
        let on_device = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT;
        let list = [u64::from(CL_QUEUE_PROPERTIES), on_device, 0];
        // SAFETY: live objects, and a list that ends with 0.
        let queue = unsafe {
            calls::create_command_queue_with_properties(world.queue.context().raw(), device.raw(), list.as_ptr())
        };
        let source = "kernel void parent(global uint *a) {
            if (get_global_id(0) > 0) return;
            enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(64), ^{ a[get_global_id(0)] += 10; });
        }";
        captures(source, "-cl-std=CL2.0", "parent");
        world.run();
        assert_eq!(world.read(&a), [13; LEN]);
        // SAFETY: the queue is live, and nothing uses it.
        unsafe { calls::release_command_queue(queue.unwrap()) }.unwrap();
    });
    // The process with the layer says nothing to itself.
    assert!(said.is_none_or(|said| said.matches("the kernel printed 2").count() == 1));
}

/// Rule L3: commands of images, rectangles of buffers, and kernels with images, samplers and structs are nodes as others are.
#[test]
fn images_and_rectangles_are_captured() {
    const SOURCE: &str = "
        typedef struct { uint by; ushort2 pair; } Numbers;
        kernel void sample(read_only image2d_t from, sampler_t at_edge, global uint *to, Numbers numbers) {
            int at = get_global_id(0);
            uint4 pixel = read_imageui(from, at_edge, (int2)(at % 8 + 1, at / 8));
            to[at] = pixel.x * numbers.by + numbers.pair.y;
        }
        kernel void draw(write_only image2d_t to) {
            int2 at = (int2)(get_global_id(0) % 8, get_global_id(0) / 8);
            write_imageui(to, at, (uint4)(at.x + 8 * at.y, 0, 0, 0));
        }";
    with_layer("images_and_rectangles_are_captured", || {
        let world = World::new(false);
        if world.queue.device().caps().images.is_none() {
            return;
        }
        let program = Program::from_source(&world.queue, SOURCE).unwrap();
        let raw = |name: &str| {
            let object = program.kernel(name).unwrap().to_opencl3().unwrap();
            let raw = object.get();
            std::mem::forget(object);
            raw
        };
        let (shape, format) = (ImageShape::image_2d(8, 8), ImageFormat::RGBA_U8);
        let images = [(); 2].map(|()| Image::new(&world.queue, shape, format).unwrap());
        let [from, into] = images.each_ref().map(Image::raw);
        let sampler = Sampler::new(&world.queue, false, Addressing::ClampToEdge, Filter::Nearest).unwrap();
        let (a, b) = (world.buffer(1), world.buffer(2));
        let (sample, draw, of) = (raw("sample"), raw("draw"), library(&world));
        let (begin, row, all) = ([0_usize; 3], [8_usize, 1, 1], [8_usize, 8, 1]);
        // SAFETY: live objects, areas inside of them, and kernels whose work-items touch their own elements.
        let captured = unsafe {
            world.graph.capture(&world.queue, || {
                of.set(draw, 0, &from);
                release(of.launch(draw, &[]));
                let (begin, row, all) = (begin.as_ptr(), row.as_ptr(), all.as_ptr());
                let (none, no) = (ptr::null(), 0);
                release(calls::enqueue_copy_image(of.queue, from, into, begin, begin, all, no, none).unwrap());
                let colour = [100_u32; 4];
                let colour = colour.as_ptr().cast();
                release(calls::enqueue_fill_image(of.queue, into, colour, begin, row, no, none).unwrap());
                of.set(sample, 0, &into);
                of.set(sample, 1, &sampler.to_opencl3().unwrap().get());
                of.set(sample, 2, &a.raw());
                of.set(sample, 3, &[3_u32, 7 << 16]);
                release(of.launch(sample, &[]));
                // Two rows of four elements, from the third row on.
                let (origin, area) = ([0_usize, 2, 0], [16_usize, 2, 1]);
                let (origin, area) = (origin.as_ptr(), area.as_ptr());
                let rect = calls::enqueue_copy_buffer_rect(
                    of.queue,
                    a.raw(),
                    b.raw(),
                    origin,
                    begin,
                    area,
                    32,
                    0,
                    32,
                    0,
                    no,
                    none,
                );
                release(rect.unwrap());
                release(
                    calls::enqueue_copy_image_to_buffer(of.queue, into, b.raw(), begin, row, 128, no, none).unwrap(),
                );
                Ok(())
            })
        };
        let captured = captured.unwrap();
        assert_eq!(captured.nodes.len(), 6);
        for _ in 0..2 {
            world.run();
            let pixel = |x: u32, y: u32| if y == 0 { 100 } else { x + 8 * y };
            let expected: Vec<u32> = (0..64).map(|at| 3 * pixel((at % 8 + 1).min(7), at / 8) + 7).collect();
            assert_eq!(world.read(&a), expected);
            let mut second = vec![2; LEN];
            second[..4].copy_from_slice(&expected[16..20]);
            second[8..12].copy_from_slice(&expected[24..28]);
            second[32..40].fill(u32::from_ne_bytes([100; 4]));
            assert_eq!(world.read(&b), second);
        }
    });
}

/// Rule L3: of memory that was made before clgraph looked at the platform, the layer does not know what it is.
#[test]
fn memory_that_was_not_seen_is_refused() {
    with_layer("memory_that_was_not_seen_is_refused", || {
        let platform = opencl3::platform::get_platforms().unwrap().remove(0);
        let device = platform.get_devices(opencl3::device::CL_DEVICE_TYPE_ALL).unwrap()[0];
        let context = opencl3::context::Context::from_device(&opencl3::device::Device::new(device)).unwrap();
        // SAFETY: a live context, and no memory of the host.
        let early = unsafe { opencl3::memory::create_buffer(context.get(), 1, 4 * LEN, ptr::null_mut()).unwrap() };
        let context = Context::from_opencl3(&context).unwrap();
        let queue = Queue::with_properties(&context, &context.devices()[0], QueueProperties::new()).unwrap();
        let graph = Graph::new(&queue).unwrap();
        // Without what the source says of the arguments, eight bytes may be anything.
        for options in ["", "-cl-kernel-arg-info"] {
            let of = Library { queue: queue.raw() };
            let add = unseen(&queue, options, "add");
            // SAFETY: nothing runs.
            let captured = unsafe {
                graph.capture(&queue, || {
                    release(of.add(add, early, 1, &[]));
                    Ok(())
                })
            };
            let error = captured.unwrap_err();
            let is_told = matches!(&error, Error::Record(RecordError::NotCapturable { place: 0, .. }));
            assert!(is_told && error.to_string().contains("argument 0 of kernel `add` was not seen"), "{error}");
        }
        assert_eq!(graph.len(), 0);
        // SAFETY: it has one reference.
        unsafe { opencl3::memory::release_mem_object(early).unwrap() };
    });
}

/// A kernel of a program that clgraph has not built.
fn unseen(queue: &Queue, options: &str, name: &str) -> cl_kernel {
    let options = std::ffi::CString::new(options).unwrap();
    let name = std::ffi::CString::new(name).unwrap();
    let program = opencl3::program::create_program_with_source(queue.context().raw(), &[SOURCE]).unwrap();
    opencl3::program::build_program(program, &[queue.device().raw()], &options, None, ptr::null_mut()).unwrap();
    kernels::create_kernel(program, &name).unwrap()
}

clgraph::device_global! { static COUNTED: u32 = 5; }

/// Rules G1, L3: device globals are used by captured kernels, too, with edges.
#[test]
fn captured_kernels_use_device_globals() {
    with_layer("captured_kernels_use_device_globals", || {
        let source = "CLG_DEVICE_GLOBAL(uint, counted);
            kernel void put(uint value CLG_PARAMS) { CLG_GLOBAL(counted) = value; }
            kernel void get(global uint *a CLG_PARAMS) { a[get_global_id(0)] = CLG_GLOBAL(counted); }";
        for access in World::new(false).queue.device().caps().global_access() {
            let world = World::new(false);
            let builder = clgraph::ProgramBuilder::new(&world.queue).global("counted", &COUNTED).global_access(access);
            let program = builder.source(source).unwrap();
            // SAFETY: one work-item.
            let put =
                unsafe { world.graph.kernel(&program.kernel("put").unwrap()).arg(42_u32).range(1).add().unwrap() };
            let (a, of) = (world.buffer(0), library(&world));
            let object = program.kernel("get").unwrap().to_opencl3().unwrap();
            // SAFETY: work-items touch their own elements.
            let captured = unsafe {
                world.graph.capture(&world.queue, || {
                    of.set(object.get(), 0, &a.raw());
                    release(of.launch(object.get(), &[]));
                    Ok(())
                })
            };
            let node = captured.unwrap().nodes[0];
            assert_eq!(world.graph.predecessors(node).unwrap(), [put], "{access:?}");
            world.run();
            assert_eq!(world.read(&a), [42; LEN], "{access:?}");
        }
    });
}

/// Rules R11, L3: a barrier without a list is behind all that the queue has recorded, also by captures before.
#[test]
fn a_barrier_is_behind_earlier_captures() {
    with_layer("a_barrier_is_behind_earlier_captures", || {
        let world = World::new(true);
        let (of, buffers) = (library(&world), [world.buffer(1), world.buffer(1)]);
        let launch = |at: usize, barrier: bool| {
            let object = world.raw("add");
            // SAFETY: work-items touch their own elements.
            unsafe {
                world.graph.capture(&world.queue, || {
                    release(of.add(object, buffers[at].raw(), 1, &[]));
                    if barrier {
                        release(calls::enqueue_barrier_with_wait_list(of.queue, 0, ptr::null()).unwrap());
                    }
                    Ok(())
                })
            }
            .unwrap()
            .nodes
        };
        let (first, second) = (launch(0, false), launch(1, true));
        assert_eq!(world.graph.predecessors(second[1]).unwrap(), [first[0], second[0]]);
    });
}

/// Rule L3: what was enqueued before a capture is sent and waited for in it.
#[test]
fn a_capture_holds_up_nothing_that_came_before() {
    with_layer("a_capture_holds_up_nothing_that_came_before", || {
        for flushes in [true, false] {
            let world = World::new(true);
            let (a, of) = (world.buffer(1), library(&world));
            let event = of.add(world.raw("add"), a.raw(), 1, &[]);
            // SAFETY: nothing is captured.
            let captured = unsafe {
                world.graph.capture_with(&world.queue, CaptureMode::Relaxed, || {
                    if flushes {
                        calls::flush(of.queue).unwrap();
                        opencl3::event::wait_for_events(&[event]).unwrap();
                    } else {
                        calls::finish(of.queue).unwrap();
                    }
                    let status = opencl3::event::Event::new(event).command_execution_status().unwrap().0;
                    assert_eq!(status, 0);
                    Ok(())
                })
            };
            assert!(captured.unwrap().nodes.is_empty());
            assert_eq!(world.read(&a), [2; LEN]);
        }
    });
}

/// Rule L3: a pointer to a null handle is a null pointer, and a number may be any.
#[test]
fn null_handles_and_numbers_like_handles_are_what_they_are() {
    with_layer("null_handles_and_numbers_like_handles_are_what_they_are", || {
        let world = World::new(false);
        let (a, of) = (world.buffer(0), library(&world));
        for options in ["", "-cl-kernel-arg-info"] {
            let tell = unseen(&world.queue, options, "tell");
            let number = a.raw().addr() as u64;
            let graph = Graph::new(&world.queue).unwrap();
            // SAFETY: one work-item writes two numbers.
            let captured = unsafe {
                graph.capture(&world.queue, || {
                    of.set(tell, 0, &a.raw());
                    of.set(tell, 1, &ptr::null_mut::<c_void>());
                    of.set(tell, 2, &number);
                    release(of.launch(tell, &[]));
                    Ok(())
                })
            };
            captured.unwrap();
            graph.finalize(Finalize::new()).unwrap().submit(&world.queue).unwrap().wait().unwrap();
            assert_eq!(world.read(&a)[..2], [1, number as u32], "{options}");
        }
    });
}

/// Rule L3: without the layer an error says how to have it.
#[test]
fn without_the_layer_an_error_says_how_to_have_it() {
    if std::env::var_os("OPENCL_LAYERS").is_some() {
        return;
    }
    let world = World::new(false);
    // SAFETY: nothing runs.
    let error = unsafe { world.graph.capture(&world.queue, || Ok(())) }.unwrap_err();
    assert!(matches!(error, Error::Record(RecordError::NoLayer { .. })) && error.to_string().contains("OPENCL_LAYERS"));
}

/// Rule F4: clgraph replays where the command buffers are the layer's.
#[test]
fn the_layers_command_buffers_are_not_recorded_into() {
    with_layer("the_layers_command_buffers_are_not_recorded_into", || {
        assert_eq!(best_device().unwrap().caps().command_buffers, None);
    });
}
