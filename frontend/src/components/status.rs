//! The status of a run, as a word with a dot.

use leptos::prelude::*;
use shared::error::RunError;
use shared::run::RunStatus;

use crate::state::ending;

/// A run's status.
#[component]
pub fn StatusTag(
    /// Where the run stands.
    status: RunStatus,
    /// The error with which it ended.
    error: Option<RunError>,
) -> impl IntoView {
    let (word, class) = ending::tag(status, error.as_ref());
    view! { <span class=class>{word}</span> }
}
