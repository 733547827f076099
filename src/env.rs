//! The environment variables that clgraph reads. Each is read when it is needed.
//!
//! | variable | read | effect |
//! |---|---|---|
//! | `CLGRAPH_PATH` | at finalize | `auto`, `native`, `replay`, `gated` or `queues`: the execution path, unless the program sets one |
//! | `CLGRAPH_LOOPS` | at finalize | `auto`, `host-decided` or `ahead`: how loops run, unless the program says so |
//! | `CLGRAPH_FUSE` | at finalize | `off`, `auto` or `now`: whether small launches are fused, unless the program says so |
//! | `CLGRAPH_FUSE_AFTER` | at finalize | with `auto`: how many milliseconds of submissions come before the fused kernels are built |
//! | `CLGRAPH_CHECK_ELEMENTWISE` | at finalize | `1`: submissions check the promises `elementwise` of launches; `0`: they do not |
//! | `CLGRAPH_TUNING_CACHE` | at finalize | the file that keeps the measurements of the automatic path, beside which fused kernels are kept, unless the program names one |
//! | `CLGRAPH_DUMP` | at finalize | a folder: each finalize, and each fusing after it, writes its report and its graph there |
//! | `CLGRAPH_GLOBALS` | when a program with device globals is built | `named`, `kernel` or `argument`: how kernels access device globals, unless the program sets it |
//! | `CLGRAPH_ASSUME` | when a device is wrapped | a list of features that the driver has and does not report: see [`Assume`] |
//!
//! `OPENCL_DYLIB_PATH` names the OpenCL library to load, as for `opencl3`.

use std::env;
use std::path::PathBuf;

use crate::error::SetupError;

/// Features that clgraph assumes although the driver does not report them. For experts: a driver may crash if it lacks
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assume {
    /// `command_buffer`: the functions of `cl_khr_command_buffer` may be used although the device does not list the
    /// extension.
    pub(crate) command_buffer: bool,
    /// `simultaneous_use`: a command buffer may be enqueued again while it runs.
    pub(crate) simultaneous_use: bool,
    /// `kernel_printf`: recorded kernels may print.
    pub(crate) kernel_printf: bool,
}

/// Returns the value of a variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

/// Reads `CLGRAPH_ASSUME`.
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

/// Returns the text of `CLGRAPH_PATH`.
pub(crate) fn path() -> Option<String> {
    variable("CLGRAPH_PATH")
}

/// Returns the text of `CLGRAPH_LOOPS`.
pub(crate) fn loops() -> Option<String> {
    variable("CLGRAPH_LOOPS")
}

/// Returns the text of `CLGRAPH_FUSE`.
pub(crate) fn fuse() -> Option<String> {
    variable("CLGRAPH_FUSE")
}

/// Returns the value of `CLGRAPH_FUSE_AFTER`, in nanoseconds.
pub(crate) fn fuse_after() -> Result<Option<u64>, SetupError> {
    let Some(given) = variable("CLGRAPH_FUSE_AFTER") else { return Ok(None) };
    match given.parse::<u64>() {
        Ok(millis) => Ok(Some(millis.saturating_mul(1_000_000))),
        Err(_) => {
            let allowed = "a number of milliseconds, at least 0";
            Err(SetupError::Environment { variable: "CLGRAPH_FUSE_AFTER", given, allowed })
        }
    }
}

/// Returns whether `CLGRAPH_CHECK_ELEMENTWISE` asks for checks.
pub(crate) fn check_elementwise() -> Result<bool, SetupError> {
    match variable("CLGRAPH_CHECK_ELEMENTWISE").as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(given) => Err(SetupError::Environment {
            variable: "CLGRAPH_CHECK_ELEMENTWISE",
            given: given.to_owned(),
            allowed: "`0` or `1`",
        }),
    }
}

/// Returns the text of `CLGRAPH_GLOBALS`.
pub(crate) fn globals() -> Option<String> {
    variable("CLGRAPH_GLOBALS")
}

fn path_in(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the path in `CLGRAPH_TUNING_CACHE`.
pub(crate) fn tuning_cache() -> Option<PathBuf> {
    path_in("CLGRAPH_TUNING_CACHE")
}

/// Returns the path in `CLGRAPH_DUMP`.
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
