//! Submissions as they are compared, and their progress as text.

use std::fmt;
use std::sync::Arc;

use super::submission::{Progress, Submission};

impl PartialEq for Submission {
    /// The same submission.
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
