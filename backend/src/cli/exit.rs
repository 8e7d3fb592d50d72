//! How commands end: one number for each kind of end, the same for every command.

use std::fmt::Write as _;

use shared::error::{Code, Problem};

use super::terminal::text;

/// The exit codes. `0` is success, and clap takes `2` for a command line that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Anything else went wrong.
    Error = 1,
    /// The flow, the input or the decision has mistakes.
    Invalid = 3,
    /// The run failed.
    Failed = 4,
    /// A person stopped the run.
    Rejected = 5,
    /// The run was cancelled.
    Cancelled = 6,
    /// Somebody was asked, and there was no answer, or none that fits.
    Unanswered = 7,
    /// There is no such thing, or none that one may see.
    NotFound = 8,
    /// Nobody is logged in, or they may not do this.
    Forbidden = 9,
    /// It is too late, or what was seen has changed.
    Conflict = 10,
    /// The server cannot be reached, or is too busy.
    Unavailable = 11,
    /// Ctrl+C, or a signal to stop.
    Interrupted = 130,
}

/// The end of a command that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Quit {
    /// The exit code.
    pub exit: Exit,
    /// Why, for people; may have several lines.
    pub message: String,
}

impl Quit {
    /// An end with this code.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }
}

/// A problem with its code, its words, and each mistake on a line of its own.
impl From<Problem> for Quit {
    fn from(problem: Problem) -> Self {
        let exit = match problem.code {
            Code::Unauthenticated
            | Code::SecondFactorRequired
            | Code::Forbidden
            | Code::SecondFactorMissing
            | Code::ForeignOrigin => Exit::Forbidden,
            Code::NotFound | Code::RunArchived => Exit::NotFound,
            Code::ReviewResolved
            | Code::RevisionChanged
            | Code::ReviewClaimed
            | Code::RunOver
            | Code::Conflict
            | Code::Unreadable => Exit::Conflict,
            Code::Invalid | Code::FlowInvalid | Code::VisitLimit | Code::KeyReused | Code::TooLarge => Exit::Invalid,
            Code::TooManyRequests | Code::TooManyPending | Code::Unavailable => Exit::Unavailable,
            Code::BadRequest | Code::MethodNotAllowed | Code::UnsupportedMediaType | Code::Internal => Exit::Error,
        };
        let mut message = format!("{} [{}]", problem.title, problem.code.as_str());
        if let Some(detail) = &problem.detail {
            message.push_str(": ");
            message.push_str(detail);
        }
        if let Some(resolution) = &problem.resolution {
            let by: Vec<&str> = resolution.by.iter().map(std::ops::Deref::deref).collect();
            let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) };
            let _ = write!(message, ": {}{by}, {}", resolution.outcome.as_str(), resolution.at);
        }
        for mistake in &problem.errors {
            let _ = write!(message, "\n  {mistake}");
        }
        if problem.code == Code::Unauthenticated {
            message.push_str("\nA token says who is calling: make one in the console (Tokens), for COUNTERSIGN_TOKEN");
        }
        // It may quote what agents wrote.
        Self { exit, message: text::lines(&message).join("\n") }
    }
}
