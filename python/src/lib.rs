//! clgraph for Python: graphs of OpenCL commands that are built once and submitted often, beside pyopencl and numpy.
//!
//! The package is `python/clgraph`: this library is its module `_clgraph`, and `__init__.pyi` has its types. The guide is
//! `docs/guide/from_python.md`. This crate uses the public interface of the Rust crate only.
//!
//! | file | what is there |
//! |---|---|
//! | `gate.rs` | the ends of the interpreter and of the process, forks, and calls without the interpreter's lock |
//! | `errors.rs`, `raised.rs`, `texts.rs` | exceptions, their causes, and the names of Python in their texts |
//! | `interop.rs` | pyopencl's objects |
//! | `buffer.rs` | the buffer protocol |
//! | `numpy.rs` | types of elements, host data, results as arrays |
//! | `memory.rs` | memory of all kinds, and slices |
//! | `held.rs` | what graphs and executables keep of Python, and who owns it |
//! | `value.rs`, `parameter.rs`, `arguments.rs` | arguments of kernels |
//! | `launch.rs` | launches of kernels |
//! | `picture.rs` | parts of images, and colours |
//! | `node.rs` | handles of nodes |
//! | `graph.rs`, `adding.rs`, `transfer.rs` | graphs, and the nodes that they get |
//! | `control.rs` | branches and loops, of graphs and of queues |
//! | `queue.rs` | queues that execute or record |
//! | `program.rs` | device globals, and the programs that use them |
//! | `group.rs` | command groups |
//! | `uses.rs` | memory that functions say they use |
//! | `task.rs`, `native.rs` | host tasks, mapped memory, native commands |
//! | `event.rs` | events of queues, and user events |
//! | `executable.rs`, `submission.rs` | submitting, updating, results |
//! | `report.rs`, `profile.rs`, `device.rs` | what Python looks at |
//!
//! # Locks
//!
//! No call of clgraph that may block or take one of its locks for long is made with the interpreter's lock held
//! (`gate::call`), nor is anything of clgraph dropped with it (`gate::Own`). Threads of clgraph take the interpreter's lock
//! only where they hold none of clgraph's: in functions of the program, and where objects of the program are dropped
//! (`gate::attach`). The exception are functions of native commands, which run while clgraph holds the locks of a
//! submission: so nothing here may wait for these with the interpreter's lock held.
//!
//! # Safety
//!
//! - **live**: a handle that comes from an object of pyopencl is live while that object is, and clgraph retains it.
//! - **kernel**: the program promises that kernels stay inside their memory and use it as declared, as with pyopencl.
//! - **native**: the program promises of the commands of a native command what `Graph.native_command` says.
//! - **view**: a view that the interpreter asks for is filled in by the interpreter's own function.
#![allow(clippy::too_many_arguments)] // Options of Python's functions are arguments here.

mod adding;
mod arguments;
mod buffer;
mod capture;
mod control;
mod device;
mod errors;
mod event;
mod executable;
mod gate;
mod graph;
mod group;
mod held;
mod interop;
mod launch;
mod memory;
mod native;
mod node;
mod numpy;
mod parameter;
mod picture;
mod profile;
mod program;
mod queue;
mod raised;
mod report;
mod submission;
mod task;
mod texts;
mod transfer;
mod uses;
mod value;

use pyo3::prelude::*;

/// The part of the package that is written in Rust.
#[pymodule(gil_used = true)]
fn _clgraph(module: &Bound<'_, PyModule>) -> PyResult<()> {
    gate::check_interpreter(module.py())?;
    errors::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<executable::Executable>()?;
    module.add_class::<submission::Submission>()?;
    module.add_class::<queue::Queue>()?;
    module.add_class::<memory::Memory>()?;
    module.add_class::<node::Node>()?;
    module.add_class::<node::Read>()?;
    module.add_class::<node::Write>()?;
    module.add_class::<node::SubGraph>()?;
    module.add_class::<control::Branch>()?;
    module.add_class::<control::Loop>()?;
    module.add_class::<arguments::In>()?;
    module.add_class::<arguments::Out>()?;
    module.add_class::<arguments::InOut>()?;
    module.add_class::<arguments::Local>()?;
    module.add_class::<parameter::Param>()?;
    module.add_class::<event::Event>()?;
    module.add_class::<event::Pending>()?;
    module.add_class::<event::UserEvent>()?;
    module.add_class::<task::Task>()?;
    module.add_class::<native::NativeMemory>()?;
    module.add_class::<program::DeviceGlobal>()?;
    module.add_class::<program::Program>()?;
    module.add_class::<group::Described>()?;
    module.add_class::<group::CommandGroup>()?;
    module.add_class::<report::Report>()?;
    module.add_class::<report::MemoryMap>()?;
    module.add_class::<profile::Profile>()?;
    module.add_class::<profile::NodeProfile>()?;
    module.add_class::<capture::Capture>()?;
    module.add_function(wrap_pyfunction!(capture::capture, module)?)?;
    module.add_class::<device::Device>()?;
    device::register(module)?;
    profile::register(module)?;
    submission::register(module)?;
    gate::register(module)
}
