//! Where a run stands, as a word with a dot.

use leptos::prelude::*;
use shared::run::RunStatus;

/// What people read instead of the API's word.
pub fn word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "Running",
        RunStatus::WaitingForHuman => "Waiting for a person",
        RunStatus::Completed => "Completed",
        RunStatus::Failed => "Failed",
        RunStatus::Cancelled => "Cancelled",
    }
}

/// A run's status.
#[component]
pub fn StatusTag(
    /// Where the run stands.
    status: RunStatus,
) -> impl IntoView {
    let tone = match status {
        RunStatus::Running => "tag status accent live",
        RunStatus::WaitingForHuman => "tag status warn",
        RunStatus::Completed => "tag status go",
        RunStatus::Failed => "tag status stop",
        RunStatus::Cancelled => "tag status",
    };
    view! { <span class=tone>{word(status)}</span> }
}
