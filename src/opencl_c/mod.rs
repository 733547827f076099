//! What clgraph reads in OpenCL C: which kernels a source defines, and what they may do. It changes no source and calls no driver.
//!
//! [`tokens`] splits the text, [`source`] reads it as declarations with the [`words`] that matter, [`unreadable`] says why one is not
//! read, and [`guard`] writes kernels that call the kernels of a source only if a number in memory is not zero. [`fused`] writes
//! kernels that do what several launches do. There is no preprocessor here: conditions count as true and false at once, and macros
//! are looked at, not expanded. What this cannot see through it refuses, with a reason: it never calls a source harmless that it has
//! not read to the end.

mod builtins;
pub(crate) mod fused;
pub(crate) mod guard;
pub(crate) mod options;
pub(crate) mod source;
mod tokens;
pub(crate) mod unreadable;
mod words;

#[cfg(test)]
mod folder_tests;
#[cfg(test)]
mod fused_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod hidden_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;
