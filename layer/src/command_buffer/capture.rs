//! How a capture stands, and what its words are in numbers.

use opencl_sys::{CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_SUCCESS, cl_int, cl_uint, cl_ulong};

use super::properties::List;
use super::{Checked, ensure};

/// What waits do in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They spoil it.
    Strict,
    /// Waits for the queue, and for captured events, return at once.
    Relaxed,
}

impl Mode {
    /// `CL_CAPTURE_MODE_CLG`
    pub(crate) const NAME: cl_ulong = 0x434C_4701;

    /// # Errors
    /// `CL_INVALID_VALUE` for a mode that there is not.
    pub(crate) fn of(list: &List) -> Checked<Self> {
        match list.get(1) {
            None | Some(0) => Ok(Self::Strict),
            Some(1) => Ok(Self::Relaxed),
            Some(_) => Err(CL_INVALID_VALUE),
        }
    }
}

/// What `CL_CAPTURE_STATUS_CLG` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    None = 0,
    Active = 1,
    Invalid = 2,
}

impl Status {
    /// `CL_CAPTURE_STATUS_CLG`
    pub(crate) const STATUS: cl_uint = 0x434C_4702;
    /// `CL_CAPTURE_COMMAND_COUNT_CLG`
    pub(crate) const COUNT: cl_uint = 0x434C_4703;
    /// `CL_CAPTURE_FAULT_CLG`
    pub(crate) const FAULT: cl_uint = 0x434C_4704;
}

/// Whether a capture goes on, or which call has spoilt it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct State(Option<&'static str>);

impl State {
    pub(crate) fn check(&self) -> Checked {
        ensure(self.0.is_none(), CL_INVALID_OPERATION)
    }

    /// The first call that spoils it is kept.
    pub(crate) fn spoil(&mut self, call: &'static str) {
        self.0.get_or_insert(call);
    }

    pub(crate) fn fault(&self) -> Option<&'static str> {
        self.0
    }

    /// What a wait returns.
    pub(crate) fn wait(&mut self, mode: Mode, call: &'static str) -> cl_int {
        if mode == Mode::Strict {
            self.spoil(call);
        }
        self.check().err().unwrap_or(CL_SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes() {
        assert_eq!(Mode::of(&vec![]), Ok(Mode::Strict));
        assert_eq!(Mode::of(&vec![0]), Ok(Mode::Strict));
        let of = |value| Mode::of(&vec![Mode::NAME, value, 0]);
        assert_eq!([of(0), of(1), of(2)], [Ok(Mode::Strict), Ok(Mode::Relaxed), Err(CL_INVALID_VALUE)]);
    }

    #[test]
    fn the_first_call_that_spoils_it_is_told() {
        let mut state = State::default();
        assert_eq!((state.check(), state.wait(Mode::Relaxed, "clFinish")), (Ok(()), CL_SUCCESS));
        assert_eq!(state.wait(Mode::Strict, "clFinish"), CL_INVALID_OPERATION);
        state.spoil("clEnqueueMapBuffer");
        assert_eq!((state.fault(), state.check()), (Some("clFinish"), Err(CL_INVALID_OPERATION)));
        // A spoilt one is spoilt in any mode.
        assert_eq!(state.wait(Mode::Relaxed, "clFlush"), CL_INVALID_OPERATION);
    }
}
