//! What happens in a run, in a line for people.

use serde_json::Value;
use shared::decision::Via;
use shared::log::{EntryKind, Event};

use super::super::terminal::text;

/// The line of an event; none where it says nothing that is not seen otherwise.
pub fn narrate(event: &Event) -> Option<String> {
    let data = Value::Object(event.data.clone());
    let word = |path: &str| data.pointer(path).and_then(Value::as_str).map(text::line);
    let node = word("/step/node").unwrap_or_default();
    let visit = data.pointer("/step/visit").and_then(Value::as_u64).filter(|visit| *visit > 1);
    let visit = visit.map(|visit| format!(" (visit {visit})")).unwrap_or_default();
    let error = || word("/step/error/message").or_else(|| word("/error/message")).unwrap_or_default();
    Some(match event.kind {
        EntryKind::RunStarted => {
            format!("run {} of `{}` has started", event.run_id?, word("/run/flow").unwrap_or_default())
        }
        EntryKind::StepStarted if word("/step/kind").as_deref() == Some("human") => return None,
        EntryKind::StepStarted => format!("{node}{visit}: started"),
        EntryKind::StepCompleted => {
            let note = word("/step/note").map(|note| format!(": {note}")).unwrap_or_default();
            format!("{node}{visit}: done{note}")
        }
        EntryKind::StepRetrying => format!("{node}{visit}: failed, and is tried again: {}", error()),
        EntryKind::StepFailed => format!("{node}{visit}: failed: {}", error()),
        EntryKind::ToolExecuted => {
            let (tool, at) = (word("/tool").unwrap_or_default(), word("/node").unwrap_or_default());
            match data.pointer("/error") {
                Some(error) => {
                    let why = error.get("message").unwrap_or(error);
                    let why = why.as_str().map_or_else(|| why.to_string(), str::to_owned);
                    format!("{at}: {tool} was not successful: {}", text::line(&why))
                }
                None => format!("{at}: {tool} was called"),
            }
        }
        EntryKind::ReviewResolved => {
            let at = word("/review/node").unwrap_or_default();
            let outcome = word("/review/resolution/outcome").unwrap_or_default();
            let by = data.pointer("/review/resolution/by/0").and_then(Value::as_str).map(text::line);
            let judge = data.pointer("/review/resolution/via").is_some_and(|via| via == Via::Judge.as_str());
            let by = by.or(judge.then(|| "a judge".to_owned())).map(|by| format!(" by {by}")).unwrap_or_default();
            let reason = word("/review/resolution/reason").map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("{at}: {outcome}{by}{reason}")
        }
        EntryKind::RunCompleted => "the run has completed".to_owned(),
        _ => return None,
    })
}
