//! What clgraph reads in OpenCL C: which kernels a source defines, and what they may do. It changes no source and calls no driver.
//!
//! [`tokens`] splits the text, [`source`] reads it as declarations with the [`words`] that matter, [`unreadable`] says why one is not
//! read, and [`guard`] writes kernels that call the kernels of a source only if a number in memory is not zero. [`fused`] writes
//! kernels that do what several launches do. Conditions of the preprocessor count as true and false at once there, and macros are
//! looked at. Where that does not suffice, [`plain`] reads a text of the same meaning: without [`conditions`], which the compiler
//! decides (it has macros of its own: [`compiler_macros`]), and with macros [`expand`]ed. What cannot be seen through is refused, with a reason: no source is called harmless that was
//! not read to the end.

mod builtins;
mod compiler_macros;
mod conditions;
mod expand;
pub(crate) mod fused;
pub(crate) mod guard;
pub(crate) mod options;
pub(crate) mod plain;
pub(crate) mod source;
mod tokens;
pub(crate) mod unreadable;
mod words;

#[cfg(all(test, target_os = "linux"))]
mod expand_tests;
#[cfg(test)]
mod folder_tests;
#[cfg(test)]
mod fused_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod hidden_tests;
#[cfg(test)]
mod product_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;
