//! The exit codes, which are the same for every command.

use std::fmt::Write as _;
use std::path::Path;

use shared::error::{Code, Problem};

use super::terminal::text;

/// The exit codes. `0` is success, and clap uses `2` for an invalid command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Any other error.
    Error = 1,
    /// The flow, the input or the decision has errors.
    Invalid = 3,
    /// The run failed.
    Failed = 4,
    /// A person stopped the run.
    Rejected = 5,
    /// The run was cancelled.
    Cancelled = 6,
    /// A person was asked, and there was no valid answer (yet).
    Unanswered = 7,
    /// Not found, or not visible to the caller.
    NotFound = 8,
    /// Not logged in, or not allowed.
    Forbidden = 9,
    /// Too late, or the content has changed.
    Conflict = 10,
    /// The server cannot be reached or is too busy.
    Unavailable = 11,
    /// Interrupted by Ctrl+C or a stop signal.
    Interrupted = 130,
}

/// The error of a command, with the exit code of the process.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Quit {
    /// The exit code.
    pub exit: Exit,
    /// The reason, for people; may have several lines.
    pub message: String,
}

impl Quit {
    /// Creates an error with this exit code.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// Creates the error for a file or folder that cannot be read.
    pub fn unread(path: impl AsRef<Path>, error: &std::io::Error) -> Self {
        let path = text::line(&path.as_ref().display().to_string());
        Self::new(Exit::Error, format!("{path} cannot be read: {error}"))
    }
}

/// Converts a problem to its exit code and text, with each error on its own line.
impl From<Problem> for Quit {
    fn from(problem: Problem) -> Self {
        let exit = match problem.code {
            Code::Unauthenticated
            | Code::SecondFactorRequired
            | Code::Forbidden
            | Code::SecondFactorMissing
            | Code::ConfirmationRequired
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
            let decisions = problem.review.as_ref().map(|review| &review.decisions[..]).unwrap_or_default();
            let by: Vec<String> = resolution.authors(decisions).iter().map(ToString::to_string).collect();
            let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) };
            let outcome = match &problem.review {
                Some(review) => resolution.outcome.in_words(review),
                None => resolution.outcome.as_str(),
            };
            let _ = write!(message, ": {outcome}{by}, {}", resolution.at);
        }
        for mistake in &problem.errors {
            let _ = write!(message, "\n  {mistake}");
        }
        if problem.code == Code::Unauthenticated {
            message.push_str("\nSet COUNTERSIGN_TOKEN to a token; create one in the console, under You (for admins: People), Your tokens");
        }
        // The message may quote untrusted text of agents.
        Self { exit, message: text::lines(&message).join("\n") }
    }
}
