//! What a device and its driver have, read once and kept as plain data.
//!
//! Input: a device or a platform. Output: [`Caps`](crate::caps::Caps) and tables of extension functions.
//!
//! | file | what is there |
//! |---|---|
//! | `capabilities.rs` | fills in [`Caps`](crate::caps::Caps): read this first |
//! | `extensions.rs` | the functions of extensions, which each platform is asked for by name |
//! | `info.rs` | the `clGet*Info` calls, which all have the same form |
//!
//! A new capability is a field of `caps.rs` and a query in `capabilities.rs`. A new extension is a table of functions
//! in `ffi`, which `extensions.rs` loads. What a driver does not say, or says wrongly, belongs in `quirks.rs`. What is
//! reported of a device is rule Q4.

pub(in crate::cl) mod capabilities;
pub(crate) mod extensions;
pub(in crate::cl) mod info;
