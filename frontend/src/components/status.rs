//! The status of a run, as a word with a dot.

use leptos::prelude::*;
use shared::error::FlowError;
use shared::run::RunStatus;

use crate::state::ending;

#[component]
pub fn StatusTag(
    status: RunStatus,
    /// The error with which the run ended, if any.
    error: Option<FlowError>,
) -> impl IntoView {
    let (word, class) = ending::tag(status, error.as_ref());
    view! { <span class=class>{word}</span> }
}
