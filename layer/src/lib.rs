//! A layer between the OpenCL loader and the drivers (`OPENCL_LAYERS=libclgraph_layer.so program`). docs/layer.md says how
//! programs use it.
//!
//! Without a variable that asks for something it wraps no function: every call goes from the loader to the driver as if the
//! layer were not there. With `CLGRAPH_LAYER_REPORT` it looks at what the program enqueues, and tells at the end what could be
//! captured in a graph.
//!
//! - [`settings`]: the variables.
//! - [`report`]: what was seen, as data, and the text that it becomes. Safe code, and no OpenCL.
//! - [`ffi`]: what loaders call, the wrappers, the end of the process. All unsafe code is there. Its page has the rules that
//!   keep a stranger's process as it is.

mod command_buffer;
mod ffi;
mod report;
mod settings;
