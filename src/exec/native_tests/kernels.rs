//! Kernels on that driver, recorded and changed.

use std::sync::atomic::Ordering::SeqCst;

use opencl_sys::CL_OUT_OF_RESOURCES;

use super::{BOTH, Setting, WithProperties, WithoutProperties, paths};
use crate::caps::{ExtensionVersion, MutableCaps, UpdateAbi};
use crate::cl::buffer::Buffer;
use crate::cl::fake::{Fake, KERNELS, inside};
use crate::cl::program::Program;
use crate::exec::{Executable, Finalize};
use crate::graph::{Graph, HostRead, KernelNode, Node, Parameter};
use crate::plan::Path;

/// Three launches, each of the values of the one before and a number of its own, and a read of the last.
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
            inside(KernelNode::add, node.range(ranges[at])).unwrap()
        };
        let nodes = (0..3).map(launch).collect();
        let read = graph.read(&buffers[3]).add().unwrap();
        Self { graph, numbers, nodes, read }
    }

    /// What must come of these ranges and numbers. Nobody has written the rest.
    #[track_caller]
    fn assert_runs(&self, executable: &Executable, setting: &Setting, ranges: [usize; 3], numbers: [u32; 3]) {
        let run = executable.submit(&setting.queue).unwrap();
        run.wait().unwrap();
        let expected = numbers.iter().fold(2, |value, number| value * 3 + number);
        let written = *ranges.iter().min().unwrap();
        assert_eq!(run.get(&self.read).unwrap()[..written], vec![expected; written]);
    }
}

/// Rule F4: kernels as all other commands.
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

/// Rule U6: a driver that can changes recorded kernels in place, called by the signature that goes with its version.
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
        // One that it refuses half-way: the command buffer is recorded again.
        setting.fake.update_status.store(CL_OUT_OF_RESOURCES, SeqCst);
        chain.numbers[0].set(6).unwrap();
        chain.numbers[1].set(8).unwrap();
        executable.update(&chain.nodes).unwrap();
        assert_eq!(updated(), 3);
        assert_ne!(executable.command_buffers(), before, "{update}: recorded again");
        chain.assert_runs(&executable, &setting, [16; 3], [6, 8, 7]);
        drop((executable, chain));
        assert_eq!(setting.live(), 0, "every command buffer is released");
    }
}

/// A driver whose version and record functions contradict each other: updating is not tried.
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
    let before = executable.command_buffers();
    chain.numbers[1].set(9).unwrap();
    executable.update(&chain.nodes).unwrap();
    assert_ne!(executable.command_buffers(), before);
    assert_eq!(setting.fake.updated.load(SeqCst), 0);
    chain.assert_runs(&executable, &setting, [16; 3], [1, 9, 1]);
}
