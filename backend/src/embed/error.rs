//! The errors of starting Countersign, and of runs that do not complete.

use shared::error::{FlowCode, FlowError as Failure, Mistake};
use shared::review::Review;
use shared::run::Report;

use crate::store::{self, CommitError};
use crate::{agent, auth, config, tool};

/// The error of starting Countersign.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The temporary folder cannot be created.
    #[error("a temporary folder cannot be created: {0}")]
    Folder(#[from] std::io::Error),
    /// The name of a person is not valid.
    #[error(transparent)]
    Name(#[from] shared::id::InvalidName),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The people cannot be added.
    #[error(transparent)]
    People(#[from] auth::Error),
    /// The people cannot be added.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// Models cannot be called.
    #[error(transparent)]
    Models(#[from] agent::Error),
    /// Tools cannot be called.
    #[error(transparent)]
    Tools(#[from] tool::Error),
    /// A setting is wrong.
    #[error(transparent)]
    Settings(#[from] config::Error),
    /// The console cannot be served, or flows cannot be loaded.
    #[error(transparent)]
    App(#[from] anyhow::Error),
}

/// The error of a run that did not complete. A rejection by a person is a separate error, so a program that continues
/// only with approved results needs no further check.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A person stopped it: `FLOW_HUMAN_REJECTED`.
    #[error("{failure}")]
    Rejected {
        /// The code, the node, and what the person said.
        failure: Failure,
        /// The report of the run until then.
        report: Box<Report>,
    },
    /// It failed with an error that is not a person's rejection.
    #[error("{failure}")]
    Failed {
        /// The code, the node, and what happened.
        failure: Failure,
        /// The report of the run until then.
        report: Box<Report>,
    },
    /// It was cancelled.
    #[error("the run was cancelled{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Cancelled {
        /// The reason that was given, if any.
        reason: Option<String>,
        /// The report of the run until then.
        report: Box<Report>,
    },
    /// The flow or the input has errors; nothing was started.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Mistake>),
    /// A review will not be decided, because no one may, or those who may have declined. The run is still waiting.
    #[error("`{}` is not decided: {why}", .review.node.as_ref().map_or(.review.title.as_str(), |node| node.as_str()))]
    Undecided {
        /// The review in question.
        review: Box<Review>,
        /// Why there is no answer.
        why: String,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The change could not be stored.
    #[error(transparent)]
    Commit(CommitError),
}

impl RunError {
    /// Returns the code, node and message with which the run ended, if it was rejected or failed.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Rejected { failure, .. } | Self::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// Whether a person stopped the run.
    pub fn is_rejected(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    pub(super) fn ended(failure: Failure, report: Report) -> Self {
        let report = Box::new(report);
        if failure.code == FlowCode::FlowHumanRejected {
            Self::Rejected { failure, report }
        } else {
            Self::Failed { failure, report }
        }
    }
}

impl From<CommitError> for RunError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Refused(crate::engine::Refusal::Invalid(mistakes)) => Self::Invalid(mistakes),
            other => Self::Commit(other),
        }
    }
}
