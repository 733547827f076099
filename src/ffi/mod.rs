//! The only place that knows C function types: one file a function table.
//!
//! `core` holds the functions that the OpenCL library itself exports. Tables of extension functions, which no
//! library exports, get a file each beside it.
//!
//! # Safety
//!
//! Nothing is called here. A table is sound when every field has the type that the OpenCL headers give the function
//! of that name; that is what a reader has to check, and the only thing.
#![allow(unsafe_code)]

pub(crate) mod core;
