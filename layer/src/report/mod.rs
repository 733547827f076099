//! What a program enqueues, as data, and the report that it becomes. There is no OpenCL here: handles are numbers.
//!
//! A *run* is what one thread enqueues to one queue between two waits of that thread. [`recorder`] takes one call after another,
//! and closes runs. [`runs`] has a queue's runs: equal ones are one entry with a count, and with marks at what was not the same
//! in all of them. [`repeats`] finds loops in sequences. [`advice`] says what keeps a run from being captured, and [`text`] puts
//! it into words.
//!
//! Memory is bounded, however long a program runs: see [`limits`]. The report says what was left out.

pub(crate) mod advice;
pub(crate) mod call;
pub(crate) mod limits;
pub(crate) mod recorder;
pub(crate) mod repeats;
pub(crate) mod runs;
pub(crate) mod text;

#[cfg(test)]
mod tests;
