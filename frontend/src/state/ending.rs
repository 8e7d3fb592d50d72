//! The status of a run in words. A run whose status in the API is `failed` may have failed, or a decision or a deadline
//! may have stopped it as the flow says.

use shared::error::FlowError;
pub use shared::run::Ending;
use shared::run::RunStatus;

/// The label for an ending that is no failure.
pub fn ending_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Rejected => "Rejected",
        Ending::TimedOut => "Expired",
    }
}

/// The label of a status.
pub fn word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "Running",
        RunStatus::WaitingForHuman => "Waiting for a person",
        RunStatus::Completed => "Completed",
        RunStatus::Failed => "Failed",
        RunStatus::Cancelled => "Cancelled",
    }
}

/// The label of a run's status, given the error that it ended with, and the CSS class of its tag.
pub fn tag(status: RunStatus, error: Option<&FlowError>) -> (&'static str, &'static str) {
    let class = match (status, Ending::of(error)) {
        (RunStatus::Failed, Some(ending)) => return (ending_word(ending), "tag status"),
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
    use shared::error::FlowCode;

    use super::*;

    #[test]
    fn what_people_stop_is_no_failure() {
        let of = |code| tag(RunStatus::Failed, Some(&FlowError { code, message: "no".to_owned(), node: None }));
        assert_eq!(of(FlowCode::FlowHumanRejected), ("Rejected", "tag status"));
        assert_eq!(of(FlowCode::FlowHumanTimeout), ("Expired", "tag status"));
        assert_eq!(of(FlowCode::ModelFailed), ("Failed", "tag status stop"));
        assert_eq!(tag(RunStatus::Failed, None), ("Failed", "tag status stop"));
        assert_eq!(tag(RunStatus::Completed, None), ("Completed", "tag status go"));
    }
}
