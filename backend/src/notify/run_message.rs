//! The text of a message about a run, in plain words. Its title, its topic and its error may be foreign text, so they are
//! made inert.

use shared::notification::Occasion;
use shared::run::{Ending, RunSummary};

use super::message::{Quotation, one_line, quoted};

/// The longest title, in characters.
const MAX_TITLE: usize = 150;
/// The longest excerpt of an error, in characters.
const MAX_ERROR: usize = 1000;

/// What happened to a run, and its title and topic, in one line.
pub(super) fn headline(occasion: Occasion, run: &RunSummary) -> String {
    let topic = run.topic.as_ref().map(|topic| format!(" ({topic})")).unwrap_or_default();
    format!("{}: {}", verb(occasion, run), one_line(&format!("{}{topic}", run.title), MAX_TITLE))
}

fn verb(occasion: Occasion, run: &RunSummary) -> &'static str {
    match (occasion, Ending::of(run.error.as_ref())) {
        (Occasion::RunWaiting, _) => "Waits for people",
        (Occasion::RunCancelled, _) => "Cancelled",
        (Occasion::RunFailed, Some(Ending::Rejected)) => "Rejected",
        (Occasion::RunFailed, Some(Ending::TimedOut)) => "Expired",
        (Occasion::RunFailed, None) => "Failed",
        _ => "Completed",
    }
}

pub(super) fn origin(run: &RunSummary) -> String {
    format!("run of {}, version {} · launched by {}", run.flow, run.version, run.requested_by)
}

/// The line of ours that says where a run failed, and its error as a quotation. `None` if it has not failed.
pub(super) fn error(run: &RunSummary) -> Option<(String, Quotation)> {
    let error = run.error.as_ref()?;
    let place = error.node.as_ref().map(|node| format!(" at {node}")).unwrap_or_default();
    Some((format!("{}{place}:", error.code), quoted(&error.message, MAX_ERROR)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_that_people_stopped_has_not_failed_and_nothing_in_its_text_is_ours() {
        let run = |code: &str| -> RunSummary {
            let error = json!({ "code": code, "message": "No.\nCompleted: all", "node": "send" });
            let run = json!({
                "id": uuid::Uuid::nil(), "flow": "mail", "title": "Mail", "topic": "a\nb\u{202e}", "version": 2,
                "status": "failed", "revision": 3, "requested_by": "ada", "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z", "error": error,
            });
            serde_json::from_value(run).expect("a run")
        };
        let failed = run("TOOL_FAILED");
        assert_eq!(headline(Occasion::RunFailed, &failed), "Failed: Mail (a b<U+202E>)");
        assert_eq!(origin(&failed), "run of mail, version 2 · launched by ada");
        let (place, quotation) = error(&failed).expect("an error");
        assert_eq!((place.as_str(), quotation.text.as_str()), ("TOOL_FAILED at send:", "> No.\n> Completed: all"));
        assert!(headline(Occasion::RunFailed, &run("FLOW_HUMAN_REJECTED")).starts_with("Rejected: "));
        assert!(headline(Occasion::RunFailed, &run("FLOW_HUMAN_TIMEOUT")).starts_with("Expired: "));
    }
}
