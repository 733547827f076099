//! The environment variables that clgraph reads, each when it is needed.
//!
//! | variable | read | what it does |
//! |---|---|---|
//! | `CLGRAPH_PATH` | at finalize | `auto`, `native`, `replay`, `gated` or `queues`: the path, where the program leaves it to clgraph |
//! | `CLGRAPH_CHOICES` | at finalize | a file that keeps what the automatic path has found, where the program names none |
//! | `CLGRAPH_DUMP` | at finalize | a folder, into which each finalize writes its report and its graph |
//! | `CLGRAPH_GLOBALS` | when a program with device globals is built | `named`, `kernel` or `argument`: how kernels get to them, where the program leaves it to clgraph |
//! | `CLGRAPH_ASSUME` | when a device is wrapped | a list of what a driver does not tell and has: see [`Assume`] |
//!
//! `OPENCL_DYLIB_PATH` is the OpenCL library to load, as for `opencl3`.

use std::env;
use std::path::PathBuf;

use crate::error::SetupError;

/// What is taken for granted although the driver does not say it. For experts: a driver may crash over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assume {
    /// `command_buffer`: its functions may be used although it does not list `cl_khr_command_buffer`.
    pub(crate) command_buffer: bool,
    /// `simultaneous_use`: a command buffer may be enqueued again while it runs.
    pub(crate) simultaneous_use: bool,
    /// `kernel_printf`: recorded kernels may print.
    pub(crate) kernel_printf: bool,
}

/// A variable that is set, and not to nothing.
fn variable(name: &str) -> Option<String> {
    env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

/// `CLGRAPH_ASSUME`.
pub(crate) fn assume() -> Result<Assume, SetupError> {
    variable("CLGRAPH_ASSUME").map_or(Ok(Assume::default()), |text| read_assume(&text))
}

fn read_assume(text: &str) -> Result<Assume, SetupError> {
    let mut assume = Assume::default();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "command_buffer" => assume.command_buffer = true,
            "simultaneous_use" => assume.simultaneous_use = true,
            "kernel_printf" => assume.kernel_printf = true,
            _ => {
                return Err(SetupError::Environment {
                    variable: "CLGRAPH_ASSUME",
                    given: text.to_owned(),
                    allowed: "a list, divided by commas, of `command_buffer`, `simultaneous_use` and `kernel_printf`",
                });
            }
        }
    }
    Ok(assume)
}

/// `CLGRAPH_PATH`, as it is written.
pub(crate) fn path() -> Option<String> {
    variable("CLGRAPH_PATH")
}

/// `CLGRAPH_GLOBALS`, as it is written.
pub(crate) fn globals() -> Option<String> {
    variable("CLGRAPH_GLOBALS")
}

fn path_in(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `CLGRAPH_CHOICES`.
pub(crate) fn choices() -> Option<PathBuf> {
    path_in("CLGRAPH_CHOICES")
}

/// `CLGRAPH_DUMP`.
pub(crate) fn dump() -> Option<PathBuf> {
    path_in("CLGRAPH_DUMP")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumptions_are_a_list_and_an_unknown_one_is_an_error_that_tells_all() {
        assert_eq!(read_assume(""), Ok(Assume::default()));
        let two = Assume { command_buffer: true, kernel_printf: true, ..Assume::default() };
        assert_eq!(read_assume("command_buffer, kernel_printf"), Ok(two));
        let error = read_assume("command_buffers").unwrap_err().to_string();
        assert_eq!(
            error,
            "the environment variable CLGRAPH_ASSUME is `command_buffers`: it must be a list, divided by commas, of \
             `command_buffer`, `simultaneous_use` and `kernel_printf`"
        );
    }
}
