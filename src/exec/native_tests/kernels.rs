//! Kernels on the fake driver, recorded and changed.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use opencl_sys::CL_OUT_OF_RESOURCES;

use super::{BOTH, Setting, WithProperties, WithoutProperties, paths};
use crate::caps::{ExtensionVersion, MutableCaps, UpdateAbi};
use crate::cl::fake::{Fake, KERNELS, all_inside, inside};
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::program::Program;
use crate::cl::objects::queue::QueueProperties;
use crate::exec::{Executable, Finalize, UserEvent};
use crate::graph::{
    Graph, HostRead, KernelNode, NativeCommand, NativeCommandNode, NativeRecording, NdRange, Parameter,
};
use crate::handles::Node;
use crate::plan::{Path, PathReason};
use crate::record::Queue;

/// Three launches, each of which uses the values of the one before and a number of its own, and a read of the last
/// result.
struct Chain {
    graph: Graph,
    numbers: [Parameter<u32>; 3],
    nodes: Vec<Node>,
    read: HostRead<u32>,
}

impl Chain {
    fn new(setting: &Setting, ranges: [usize; 3]) -> Self {
        let kernel = Program::from_source(&setting.queue, KERNELS).unwrap().kernel("scale").unwrap();
        let graph = Graph::new(&setting.queue).unwrap();
        let buffers = [(); 4].map(|()| Buffer::<u32>::new(&setting.queue, 16).unwrap());
        graph.fill(&buffers[0], 2).add().unwrap();
        let numbers = [(); 3].map(|()| Parameter::any(1_u32));
        let launch = |at: usize| {
            let node = graph.kernel(&kernel).read(&buffers[at]).write(&buffers[at + 1]).arg(&numbers[at]);
            inside(KernelNode::add, node.range(ranges[at]).range_up_to(ranges[at])).unwrap()
        };
        let nodes = (0..3).map(launch).collect();
        let read = graph.read(&buffers[3]).add().unwrap();
        Self { graph, numbers, nodes, read }
    }

    /// Checks the results for these ranges and numbers. No kernel writes the other elements.
    #[track_caller]
    fn assert_runs(&self, executable: &Executable, setting: &Setting, ranges: [usize; 3], numbers: [u32; 3]) {
        let run = executable.submit(&setting.queue).unwrap();
        run.wait().unwrap();
        let expected = numbers.iter().fold(2, |value, number| value * 3 + number);
        let written = *ranges.iter().min().unwrap();
        assert_eq!(run.get(&self.read).unwrap()[..written], vec![expected; written]);
    }
}

/// Rule F4: kernels follow the same rules as all other commands.
#[test]
fn a_refused_kernel_is_replayed_and_the_others_are_recorded() {
    for abi in BOTH {
        let setting = Setting::new(abi);
        setting.fake.refused_kernel.store(8, SeqCst);
        let chain = Chain::new(&setting, [16, 8, 4]);
        let executable = setting.finalize(&chain.graph);
        let expected = [(Path::Native, 2), (Path::Replay, 1), (Path::Native, 1), (Path::Replay, 1)];
        assert_eq!(paths(&executable), expected, "{abi}");
        let refused = "the driver refused: clCommandNDRangeKernelKHR failed with CL_INVALID_OPERATION (-59)";
        assert_eq!(executable.report().segments[1].why.to_string(), refused);
        chain.assert_runs(&executable, &setting, [16, 8, 4], [1, 1, 1]);
    }
}

/// Rule U6: a driver that can changes recorded kernels in place. It is called by the signature of its version.
#[test]
fn an_update_reaches_recorded_kernels_by_either_signature() {
    let versions =
        [(WithoutProperties, [0, 9, 1], UpdateAbi::LinkedList), (WithProperties, [0, 9, 3], UpdateAbi::Array)];
    for (abi, [major, minor, patch], update) in versions {
        let fake = Fake::new(abi, &[]);
        fake.updates.store(true, SeqCst);
        let setting = Setting::with(fake, |says| {
            let version = Some(ExtensionVersion::new(major, minor, patch));
            says.mutable = Some(MutableCaps { version, arguments: true, global_size: true, ..MutableCaps::default() });
        });
        assert_eq!(setting.device.abi().unwrap().unwrap().update, Some(update));
        let chain = Chain::new(&setting, [16; 3]);
        let executable = chain.graph.finalize(Finalize::new().path(Path::Native).updatable()).unwrap();
        chain.assert_runs(&executable, &setting, [16; 3], [1, 1, 1]);
        let before = executable.command_buffers();
        let updated = || setting.fake.updated.load(SeqCst);
        chain.numbers[0].set(5).unwrap();
        chain.numbers[2].set(7).unwrap();
        executable.update(&chain.nodes).unwrap();
        assert_eq!((executable.command_buffers(), updated()), (before.clone(), 2), "{update}: in place");
        chain.assert_runs(&executable, &setting, [16; 3], [5, 1, 7]);
        // The driver refuses an update half-way, so the command buffer is recorded again.
        setting.fake.update_status.store(CL_OUT_OF_RESOURCES, SeqCst);
        chain.numbers[0].set(6).unwrap();
        chain.numbers[1].set(8).unwrap();
        executable.update(&chain.nodes).unwrap();
        assert_eq!(updated(), 2 + 2, "the direct way, and the full update");
        assert_ne!(executable.command_buffers(), before, "{update}: recorded again");
        chain.assert_runs(&executable, &setting, [16; 3], [6, 8, 7]);
        drop((executable, chain));
        assert_eq!(setting.live(), 0, "every command buffer is released");
    }
}

/// Makes a setting whose driver changes recorded kernels. `fields`: what the device says that it can change.
fn that_updates(fields: MutableCaps) -> Setting {
    let fake = Fake::new(WithProperties, &[]);
    fake.updates.store(true, SeqCst);
    Setting::with(fake, |says| {
        says.mutable = Some(MutableCaps { version: Some(ExtensionVersion::new(0, 9, 3)), ..fields });
    })
}

/// Rule U4: an update that fails half-way, and after which recording again fails too, has changed nothing.
#[test]
fn an_update_that_fails_half_way_is_rolled_back() {
    let setting = that_updates(MutableCaps { arguments: true, ..MutableCaps::default() });
    let chain = Chain::new(&setting, [16, 8, 4]);
    let options = Finalize::new().path(Path::Native).updatable().commands_per_buffer(1);
    let executable = chain.graph.finalize(options).unwrap();
    chain.assert_runs(&executable, &setting, [16, 8, 4], [1, 1, 1]);
    // No command buffer is changed in place, and the one of the second launch cannot be recorded again.
    setting.fake.update_status.store(CL_OUT_OF_RESOURCES, SeqCst);
    setting.fake.refused_kernel.store(8, SeqCst);
    for (number, value) in chain.numbers.iter().zip([5, 6, 7]) {
        number.set(value).unwrap();
    }
    let error = executable.update(&chain.nodes).unwrap_err().to_string();
    assert!(error.contains("node 2 could not be updated: clCommandNDRangeKernelKHR failed"), "{error}");
    assert_eq!(
        setting.fake.updated.load(SeqCst),
        1 + 2,
        "the direct way stops at the first; the full update tries both"
    );
    chain.assert_runs(&executable, &setting, [16, 8, 4], [1, 1, 1]);
    // The same update after the driver works again.
    setting.fake.update_status.store(opencl_sys::CL_SUCCESS, SeqCst);
    setting.fake.refused_kernel.store(0, SeqCst);
    executable.update(&chain.nodes).unwrap();
    chain.assert_runs(&executable, &setting, [16, 8, 4], [5, 6, 7]);
    drop((executable, chain));
    assert_eq!(setting.live(), 0, "every command buffer is released");
}

/// Rules U4, I4: command buffers that an update has broken, and that cannot be recorded again at once, are recorded by the next
/// submission, so that a command that can only be recorded is not lost.
#[test]
fn what_an_update_has_broken_is_recorded_by_the_next_submission() {
    let setting = that_updates(MutableCaps { arguments: true, ..MutableCaps::default() });
    let chain = Chain::new(&setting, [16, 8, 4]);
    let calls = Arc::new(AtomicUsize::new(0));
    let counts = {
        let calls = Arc::clone(&calls);
        move |_: &NativeRecording<'_>| _ = calls.fetch_add(1, SeqCst)
    };
    inside(NativeCommandNode::add, chain.graph.native_command(NativeCommand::recorded(counts))).unwrap();
    let executable = chain.graph.finalize(Finalize::new().path(Path::Native).updatable()).unwrap();
    chain.assert_runs(&executable, &setting, [16, 8, 4], [1, 1, 1]);
    let (buffers, recorded) = (executable.command_buffers().len(), calls.load(SeqCst));
    // Neither can a kernel be changed in place, nor its command buffer be recorded again.
    setting.fake.update_status.store(CL_OUT_OF_RESOURCES, SeqCst);
    setting.fake.refused_kernel.store(8, SeqCst);
    chain.numbers[1].set(6).unwrap();
    let outcome = executable.update(&chain.nodes);
    let numbers = if outcome.is_ok() { [1, 6, 1] } else { [1, 1, 1] };
    let error = executable.submit(&setting.queue).unwrap_err();
    assert!(error.to_string().contains("clCommandNDRangeKernelKHR failed"), "{error}");
    setting.fake.update_status.store(opencl_sys::CL_SUCCESS, SeqCst);
    setting.fake.refused_kernel.store(0, SeqCst);
    chain.assert_runs(&executable, &setting, [16, 8, 4], numbers);
    assert_eq!(executable.command_buffers().len(), buffers);
    assert!(calls.load(SeqCst) > recorded, "the command is recorded again");
    drop((executable, chain));
    assert_eq!(setting.live(), 0, "every command buffer is released");
}

/// Rule U4: an update of values is direct, and a full update if the driver refuses there.
#[test]
fn an_update_that_comes_again_is_refused_as_any_other() {
    let setting = that_updates(MutableCaps { arguments: true, ..MutableCaps::default() });
    let chain = Chain::new(&setting, [16, 8, 4]);
    let options = Finalize::new().path(Path::Native).updatable().commands_per_buffer(1);
    let executable = chain.graph.finalize(options).unwrap();
    let updated = || setting.fake.updated.swap(0, SeqCst);
    let set =
        |values: [u32; 3]| chain.numbers.iter().zip(values).for_each(|(number, value)| number.set(value).unwrap());
    let before = executable.command_buffers();
    for round in 2..6 {
        set([round; 3]);
        executable.update(&chain.nodes).unwrap();
        assert_eq!((updated(), executable.command_buffers()), (3, before.clone()), "in place");
        chain.assert_runs(&executable, &setting, [16, 8, 4], [round; 3]);
    }
    executable.update(&chain.nodes).unwrap();
    assert_eq!(updated(), 0, "there is nothing new");
    chain.numbers[1].set(9).unwrap();
    executable.update(&chain.nodes).unwrap();
    assert_eq!(updated(), 1, "one is");
    chain.assert_runs(&executable, &setting, [16, 8, 4], [5, 9, 5]);
    // A change in place is refused, which is tried twice; then the command buffer is recorded again.
    setting.fake.update_status.store(CL_OUT_OF_RESOURCES, SeqCst);
    set([6, 9, 7]);
    executable.update(&chain.nodes).unwrap();
    assert_eq!(updated(), 1 + 2, "the direct way stops at the first; the full update tries both");
    chain.assert_runs(&executable, &setting, [16, 8, 4], [6, 9, 7]);
    // Recording again is refused too: nothing has changed.
    setting.fake.refused_kernel.store(8, SeqCst);
    set([1, 2, 3]);
    let error = executable.update(&chain.nodes).unwrap_err().to_string();
    assert!(error.contains("node 2 could not be updated: clCommandNDRangeKernelKHR failed"), "{error}");
    chain.assert_runs(&executable, &setting, [16, 8, 4], [6, 9, 7]);
    setting.fake.update_status.store(opencl_sys::CL_SUCCESS, SeqCst);
    setting.fake.refused_kernel.store(0, SeqCst);
    for round in 1..4 {
        set([round, 2, 3]);
        executable.update(&chain.nodes).unwrap();
        chain.assert_runs(&executable, &setting, [16, 8, 4], [round, 2, 3]);
    }
    drop((executable, chain));
    assert_eq!(setting.live(), 0, "every command buffer is released");
}

/// Returns how many updates of an executable went straight to where the values are.
fn direct(executable: &Executable) -> usize {
    executable.0.lock_state().editing.as_ref().unwrap().destinations.direct
}

/// Rule U6: an update of values is direct from the first on. After another change of a node, one update is not.
#[test]
fn updates_of_values_are_direct() {
    for path in [Path::Replay, Path::Native] {
        let setting = that_updates(MutableCaps { arguments: true, ..MutableCaps::default() });
        let chain = Chain::new(&setting, [16, 8, 4]);
        let executable = chain.graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let update = |nodes: &[Node], values: [u32; 3]| {
            chain.numbers.iter().zip(values).for_each(|(number, value)| number.set(value).unwrap());
            executable.update(nodes).map(|()| direct(&executable)).unwrap()
        };
        assert_eq!(update(&chain.nodes, [2, 3, 4]), 1, "{path}");
        chain.assert_runs(&executable, &setting, [16, 8, 4], [2, 3, 4]);
        assert_eq!(update(&chain.nodes[..1], [3, 3, 4]), 2, "{path}: another list");
        assert_eq!(update(&chain.nodes[1..], [3, 5, 6]), 3, "{path}: and another");
        assert_eq!(update(&[chain.nodes[2], chain.nodes[0], chain.nodes[2]], [4, 5, 7]), 4, "{path}: in any order");
        chain.assert_runs(&executable, &setting, [16, 8, 4], [4, 5, 7]);
        // Another range of one node.
        chain.graph.set_nd_range(chain.nodes[2], 2).unwrap();
        assert_eq!(update(&chain.nodes[..2], [5, 6, 7]), 5, "{path}: nodes without a change");
        assert_eq!(update(&chain.nodes, [6, 7, 8]), 5, "{path}: the range");
        chain.assert_runs(&executable, &setting, [16, 8, 2], [6, 7, 8]);
        assert_eq!(update(&chain.nodes, [7, 8, 9]), 6, "{path}: values again");
        chain.assert_runs(&executable, &setting, [16, 8, 2], [7, 8, 9]);
    }
}

/// Rule U6: the first update of launches that were alike is direct.
#[test]
fn launches_that_are_alike_are_updated_one_by_one() {
    for path in [Path::Replay, Path::Native] {
        let setting = that_updates(MutableCaps { arguments: true, ..MutableCaps::default() });
        let kernel = Program::from_source(&setting.queue, KERNELS).unwrap().kernel("scale").unwrap();
        let graph = Graph::new(&setting.queue).unwrap();
        let [from, to] = [(); 2].map(|()| Buffer::<u32>::new(&setting.queue, 16).unwrap());
        graph.fill(&from, 2).add().unwrap();
        let (numbers, both) = ([(); 2].map(|()| Parameter::any(1_u32)), Parameter::any(1_u32));
        let mut launch = |number: &Parameter<u32>| {
            let launch = graph.kernel(&kernel).read(&from).write(&to).arg(number).range(16);
            let node = inside(KernelNode::add, launch).unwrap();
            (node, graph.read(&to).add().unwrap())
        };
        let all = [&numbers[0], &numbers[1], &both, &both].map(&mut launch);
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        assert_eq!(executable.report().kernel_objects, 4);
        numbers[1].set(5).unwrap();
        both.set(7).unwrap();
        executable.update(&[all[1].0, all[2].0]).unwrap();
        assert_eq!(direct(&executable), 1, "{path}");
        let run = executable.submit(&setting.queue).unwrap();
        run.wait().unwrap();
        let results = all.map(|(_, read)| run.get(&read).unwrap()[0]);
        assert_eq!(results, [7, 11, 13, 7], "{path}");
    }
}

/// Rule U6: a launch without work-items has no command buffer. That does not affect the other command buffers.
#[test]
fn a_list_with_a_launch_of_nothing_records_nothing_again() {
    let setting = that_updates(MutableCaps { arguments: true, ..MutableCaps::default() });
    let chain = Chain::new(&setting, [16, 8, 0]);
    let options = Finalize::new().path(Path::Native).updatable().commands_per_buffer(1);
    let executable = chain.graph.finalize(options).unwrap();
    let mut made = Vec::new();
    for round in 2..20 {
        chain.numbers.iter().for_each(|number| number.set(round).unwrap());
        executable.update(&chain.nodes).unwrap();
        made.push(executable.command_buffers());
        chain.assert_runs(&executable, &setting, [16, 8, 0], [round; 3]);
    }
    assert!(made.iter().all(|buffers| buffers[..2] == made[0][..2]), "the others stay what they are");
}

/// Rule U6: only what the device reports as changeable is changed in place.
#[test]
fn fields_that_the_device_does_not_change_are_recorded_again() {
    for has in 0..16 {
        let [arguments, global_offset, global_size, local_size] = [1, 2, 4, 8].map(|bit| has & bit != 0);
        let fields = MutableCaps { arguments, global_offset, global_size, local_size, ..MutableCaps::default() };
        let setting = that_updates(MutableCaps { exec_info: true, ..fields });
        let kernel = Program::from_source(&setting.queue, KERNELS).unwrap().kernel("tell").unwrap();
        let (graph, out) = (Graph::new(&setting.queue).unwrap(), Buffer::<u32>::new(&setting.queue, 16).unwrap());
        graph.fill(&out, 0).add().unwrap();
        let number = Parameter::any(1_u32);
        let launch = graph.kernel(&kernel).write(&out).arg(&number).range(8).work_group(2).range_up_to(16);
        let node = inside(KernelNode::add, launch).unwrap();
        let read = graph.read(&out).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(Path::Native).updatable()).unwrap();
        assert_eq!(executable.report().updates.unwrap().in_place, fields.fields(), "nobody tells it of exec info");
        let (mut buffers, mut updates) = (executable.command_buffers(), 0);
        let changes = [
            (arguments, 9, NdRange::new(8).work_group(2), (0, 8, 2)),
            (global_offset, 9, NdRange::new(8).offset(4).work_group(2), (4, 8, 2)),
            (global_size, 9, NdRange::new(12).offset(4).work_group(2), (4, 12, 2)),
            (local_size, 9, NdRange::new(12).offset(4).work_group(4), (4, 12, 4)),
            (arguments && global_offset && global_size && local_size, 3, NdRange::new(4).work_group(1), (0, 4, 1)),
        ];
        for (in_place, value, range, (offset, global, local)) in changes {
            number.set(value).unwrap();
            graph.set_nd_range(node, range).unwrap();
            executable.update(&node).unwrap();
            let before = std::mem::replace(&mut buffers, executable.command_buffers());
            assert_eq!(buffers == before, in_place, "{fields:?}: {range:?}");
            updates += usize::from(in_place);
            assert_eq!(setting.fake.updated.load(SeqCst), updates);
            let run = executable.submit(&setting.queue).unwrap();
            run.wait().unwrap();
            let code = value * 1_000_000 + offset * 10_000 + global * 100 + local;
            let expected = (0..16).map(|at| if (offset..offset + global).contains(&at) { code } else { 0 });
            assert_eq!(*run.get(&read).unwrap(), expected.collect::<Vec<_>>(), "{fields:?}: {range:?}");
        }
    }
}

/// Rule U6: kernels that are recorded again get the objects of the time before the last, which nothing uses any more.
#[test]
fn kernel_objects_that_were_replaced_come_again() {
    // This driver reads the arguments of recorded kernels when they are enqueued.
    let setting = Setting::new(WithProperties);
    let chain = Chain::new(&setting, [16; 3]);
    let executable = chain.graph.finalize(Finalize::new().path(Path::Native).updatable()).unwrap();
    let objects = || -> Vec<usize> {
        let exec_state = executable.0.lock_state();
        exec_state.values.objects.0.iter().flatten().map(|object| Arc::as_ptr(object).addr()).collect()
    };
    let update = |values: [u32; 3]| {
        chain.numbers.iter().zip(values).for_each(|(number, value)| number.set(value).unwrap());
        executable.update(&chain.nodes).unwrap();
        objects()
    };
    let before = update([3, 4, 5]);
    let after = update([4, 5, 6]);
    assert!(before.iter().all(|object| !after.contains(object)));
    for round in 5..9 {
        let numbers = [round, round + 1, 2 * round];
        assert_eq!(update(numbers), *if round % 2 == 1 { &before } else { &after }, "{round}");
        chain.assert_runs(&executable, &setting, [16; 3], numbers);
    }
    // What a deferred submission is going to run stays the same.
    let go = UserEvent::new(&setting.queue).unwrap();
    let run = executable.submit_to(&setting.queue).after(&go).submit().unwrap();
    let meanwhile = [update([10, 11, 12]), update([20, 21, 22])];
    assert!(meanwhile[1].iter().all(|object| !meanwhile[0].contains(object) && !after.contains(object)));
    go.complete().unwrap();
    run.wait().unwrap();
    assert_eq!(run.get(&chain.read).unwrap()[0], ((2 * 3 + 8) * 3 + 9) * 3 + 16, "with the values that it was given");
    chain.assert_runs(&executable, &setting, [16; 3], [20, 21, 22]);
}

/// Rules U3, U6: no command buffer names an object whose arguments change, even if other holders of the object got a
/// new one for another command buffer, and an update had failed.
#[test]
fn a_kernel_object_that_a_command_buffer_names_stays_as_it_is() {
    let setting = Setting::new(WithProperties);
    let kernel = Program::from_source(&setting.queue, KERNELS).unwrap().kernel("scale").unwrap();
    let graph = Graph::new(&setting.queue).unwrap();
    let [from, to] = [(); 2].map(|()| Buffer::<u32>::new(&setting.queue, 16).unwrap());
    graph.fill(&from, 2).add().unwrap();
    // The two launches are alike, so they share one object.
    let launch = |number: u32| graph.kernel(&kernel).read(&from).write(&to).arg(number).range(16);
    let [first, second] = [(); 2].map(|()| inside(KernelNode::add, launch(1)).unwrap());
    let set = |node: Node, number: u32| all_inside(KernelNode::replace, launch(number), node).unwrap();
    let read = graph.read(&to).add().unwrap();
    let executable = graph.finalize(Finalize::new().path(Path::Native).updatable().commands_per_buffer(1)).unwrap();
    assert_eq!(executable.report().kernel_objects, 1);
    let assert_gives = |queue: &Queue, number: u32| {
        let run = executable.submit(queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&read).unwrap(), [6 + number; 16]);
    };
    set(second, 9);
    setting.fake.refused_kernel.store(16, SeqCst);
    executable.update(&second).unwrap_err();
    setting.fake.refused_kernel.store(0, SeqCst);
    let profiling =
        Queue::with_properties(&setting.queue, &setting.device, QueueProperties::new().profiling(true)).unwrap();
    assert_gives(&profiling, 1);
    for number in 5..8 {
        set(first, number);
        executable.update(&first).unwrap();
        assert_gives(&setting.queue, 1);
        assert_gives(&profiling, 1);
    }
    executable.update(&second).unwrap();
    assert_gives(&setting.queue, 9);
    assert_gives(&profiling, 9);
}

/// Rule U4: after a failed update, command buffers that are made later have the values that an earlier update changed
/// in place.
#[test]
fn what_was_changed_in_place_stays_when_another_update_fails() {
    let setting = that_updates(MutableCaps { arguments: true, ..MutableCaps::default() });
    let chain = Chain::new(&setting, [16; 3]);
    let executable = chain.graph.finalize(Finalize::new().path(Path::Native).updatable()).unwrap();
    let before = executable.command_buffers();
    chain.numbers[0].set(5).unwrap();
    executable.update(&chain.nodes[0]).unwrap();
    assert_eq!(executable.command_buffers(), before, "in place");
    chain.graph.set_nd_range(chain.nodes[2], 8).unwrap();
    setting.fake.refused_kernel.store(8, SeqCst);
    let error = executable.update(&chain.nodes[2]).unwrap_err().to_string();
    assert!(error.contains("clCommandNDRangeKernelKHR failed"), "{error}");
    setting.fake.refused_kernel.store(0, SeqCst);
    chain.assert_runs(&executable, &setting, [16; 3], [5, 1, 1]);
    let profiling =
        Queue::with_properties(&setting.queue, &setting.device, QueueProperties::new().profiling(true)).unwrap();
    let run = executable.submit(&profiling).unwrap();
    run.wait().unwrap();
    assert_eq!(run.get(&chain.read).unwrap()[0], ((2 * 3 + 5) * 3 + 1) * 3 + 1);
}

/// Rules C3, U6: the other launch of a group replaces the first in its command buffer, and the other command buffers
/// stay.
#[test]
fn another_launch_of_a_group_records_its_command_buffer_only() {
    let setting = that_updates(MutableCaps { arguments: true, ..MutableCaps::default() });
    let kernel = Program::from_source(&setting.queue, KERNELS).unwrap().kernel("scale").unwrap();
    let graph = Graph::new(&setting.queue).unwrap();
    let buffers = [(); 2].map(|()| Buffer::<u32>::new(&setting.queue, 16).unwrap());
    for _ in 0..3 {
        graph.fill(&buffers[0], 2).add().unwrap();
    }
    let launch = |number: u32| graph.kernel(&kernel).read(&buffers[0]).write(&buffers[1]).arg(number).range(16);
    let group = all_inside(Graph::command_group, &graph, vec![launch(1), launch(5)]).unwrap();
    let node = graph.command_group_node(&group).add().unwrap();
    let read = graph.read(&buffers[1]).add().unwrap();
    let options = Finalize::new().path(Path::Native).updatable().commands_per_buffer(2);
    let executable = graph.finalize(options).unwrap();
    let buffers_of = || executable.command_buffers();
    let result = || {
        let run = executable.submit(&setting.queue).unwrap();
        run.wait().unwrap();
        run.get(&read).unwrap().to_vec()
    };
    assert_eq!(result(), [7; 16]);
    let before = buffers_of();
    group.set_active_index(1).unwrap();
    executable.update(&node).unwrap();
    let after = buffers_of();
    assert_eq!((before.len(), before.len()), (2, after.len()));
    assert!(before[0] == after[0] && before[1] != after[1], "the second command buffer has the launch");
    assert_eq!(result(), [11; 16]);
}

/// Rule U6: if the path is left open, launches with parameters are replayed on a driver where each update would record
/// them again.
#[test]
fn launches_that_are_going_to_change_are_not_recorded_where_they_cannot_be_changed() {
    if std::env::var_os("CLGRAPH_PATH").is_some() {
        return; // The test is about the path that clgraph chooses.
    }
    for (arguments, path) in [(false, Path::Replay), (true, Path::Native)] {
        let setting = that_updates(MutableCaps { arguments, ..MutableCaps::default() });
        let chain = Chain::new(&setting, [16; 3]);
        let launches = |executable: &Executable| {
            let segments = executable.report().segments.into_iter();
            let of = segments.filter(|segment| segment.commands >= 3).map(|segment| (segment.path, segment.why));
            of.collect::<Vec<_>>()
        };
        let changing = chain.graph.finalize(Finalize::new().updatable()).unwrap();
        let expected = if arguments { PathReason::Available } else { PathReason::Parameters };
        assert_eq!(launches(&changing), [(path, expected)], "{arguments}");
        chain.assert_runs(&changing, &setting, [16; 3], [1, 1, 1]);
        // Launches are recorded if the program asks for the path, or if the executable is not updatable.
        let pinned = chain.graph.finalize(Finalize::new().updatable().path(Path::Native)).unwrap();
        assert_eq!(launches(&pinned)[0].0, Path::Native);
        let fixed = chain.graph.finalize(Finalize::new()).unwrap();
        assert_eq!(launches(&fixed), [(Path::Native, PathReason::Available)]);
    }
}

/// A driver whose version and record functions contradict each other: changes in place are not tried.
#[test]
fn kernels_are_recorded_again_where_the_signature_of_updates_is_not_known() {
    let fake = Fake::new(WithProperties, &[]);
    fake.updates.store(true, SeqCst);
    let setting = Setting::with(fake, |says| {
        let version = Some(ExtensionVersion::new(0, 9, 1));
        says.mutable = Some(MutableCaps { version, arguments: true, ..MutableCaps::default() });
    });
    assert_eq!(setting.device.abi().unwrap().unwrap().update, None);
    let chain = Chain::new(&setting, [16; 3]);
    let executable = chain.graph.finalize(Finalize::new().path(Path::Native).updatable()).unwrap();
    assert!(executable.report().updates.as_ref().unwrap().in_place.is_empty(), "nothing is promised");
    let before = executable.command_buffers();
    chain.numbers[1].set(9).unwrap();
    executable.update(&chain.nodes).unwrap();
    assert_ne!(executable.command_buffers(), before);
    assert_eq!(setting.fake.updated.load(SeqCst), 0);
    chain.assert_runs(&executable, &setting, [16; 3], [1, 9, 1]);
}
