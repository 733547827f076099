//! How submissions are compared, and `Debug` and `Display` of submissions and their progress.

use std::fmt;
use std::sync::Arc;

use crate::exec::submit::submission::{Progress, Submission};

impl PartialEq for Submission {
    /// Returns whether both are handles of the same submission.
    fn eq(&self, other: &Self) -> bool {
        match (self.parts(), other.parts()) {
            (Ok(one), Ok(other)) => Arc::ptr_eq(one, other),
            (Err(one), Err(other)) => one.node == other.node,
            _ => false,
        }
    }
}

impl Eq for Submission {}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
        })
    }
}
