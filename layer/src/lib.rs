//! A layer between the OpenCL loader and the drivers (`OPENCL_LAYERS=libclgraph_layer.so program`). docs/layer.md says how
//! programs use it.
//!
//! Devices get command buffers that do not have them, and queues can be captured; `CLGRAPH_LAYER` says which. With
//! `CLGRAPH_LAYER_REPORT` the layer looks at what the program enqueues, and tells at the end what could be captured. What a
//! program does not use costs it a look at one number a call.
//!
//! - [`settings`]: the variables.
//! - [`command_buffer`]: command buffers, as the specification has them. Safe code, and no OpenCL.
//! - [`report`]: what was seen, as data, and the text that it becomes. Safe code, and no OpenCL.
//! - [`ffi`]: what loaders call, the wrappers, the end of the process. All unsafe code is there. Its page has the rules that
//!   keep a stranger's process as it is.

mod command_buffer;
mod ffi;
mod report;
mod settings;
