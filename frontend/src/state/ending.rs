//! The status of a run in words; for a run that the API calls failed, whether something broke, or a decision or a
//! deadline stopped it as the flow says.

use shared::error::{FlowCode, RunError};
use shared::run::RunStatus;

/// What stopped a run, or a step of it, though nothing is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Something was rejected: by a person, or by a judge or a deadline in their place.
    Rejected,
    /// Nobody decided in time.
    TimedOut,
}

impl Ending {
    /// How something ended with an error; none: it has failed.
    pub fn of(error: Option<&RunError>) -> Option<Self> {
        match error?.code {
            FlowCode::FlowHumanRejected | FlowCode::ToolPermissionDenied => Some(Self::Rejected),
            FlowCode::FlowHumanTimeout => Some(Self::TimedOut),
            _ => None,
        }
    }

    /// As a label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rejected => "Rejected",
            Self::TimedOut => "Timed out",
        }
    }
}

/// What people read in place of the API's word for a status.
pub fn word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "Running",
        RunStatus::WaitingForHuman => "Waiting for a person",
        RunStatus::Completed => "Completed",
        RunStatus::Failed => "Failed",
        RunStatus::Cancelled => "Cancelled",
    }
}

/// The same of a run that ended with `error`, and the class of its tag.
pub fn tag(status: RunStatus, error: Option<&RunError>) -> (&'static str, &'static str) {
    let class = match (status, Ending::of(error)) {
        (RunStatus::Failed, Some(ending)) => return (ending.word(), "tag status"),
        (RunStatus::Running, _) => "tag status accent live",
        (RunStatus::WaitingForHuman, _) => "tag status warn",
        (RunStatus::Completed, _) => "tag status go",
        (RunStatus::Failed, None) => "tag status stop",
        (RunStatus::Cancelled, _) => "tag status",
    };
    (word(status), class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_stop_is_no_failure() {
        let of = |code| tag(RunStatus::Failed, Some(&RunError { code, message: "no".to_owned(), node: None }));
        assert_eq!(of(FlowCode::FlowHumanRejected), ("Rejected", "tag status"));
        assert_eq!(of(FlowCode::FlowHumanTimeout), ("Timed out", "tag status"));
        assert_eq!(of(FlowCode::ModelFailed), ("Failed", "tag status stop"));
        assert_eq!(tag(RunStatus::Failed, None), ("Failed", "tag status stop"));
        assert_eq!(tag(RunStatus::Completed, None), ("Completed", "tag status go"));
    }
}
