//! Describes the progress of a run, one line per event.

use shared::definition::Effect;
use shared::log::{Event, EventData};
use shared::review::Review;
use shared::run::Step;

use super::super::terminal::text;

/// Returns the line for an event; `None` if it is shown in another way, or not at all.
pub fn narrate(event: &Event) -> Option<String> {
    Some(match event.read()? {
        EventData::RunStarted(of) => format!("run {} of `{}` was launched", event.run_id?, of.run.flow),
        EventData::StepStarted(of) if of.step.kind == "human" => return None,
        EventData::StepStarted(of) => format!("{}: started", place(&of.step)),
        EventData::StepCompleted(done) => {
            let note = done.step.note.as_deref().map(|note| format!(": {}", text::line(note))).unwrap_or_default();
            format!("{}: done{note}", place(&done.step))
        }
        EventData::StepRetrying(failed) => {
            format!("{}: failed, retrying: {}", place(&failed.step), text::line(&failed.error.message))
        }
        EventData::StepFailed(of) => {
            let why = of.step.error.as_ref().map(|error| text::line(&error.message)).unwrap_or_default();
            format!("{}: failed: {why}", place(&of.step))
        }
        EventData::ToolExecuted(call) => {
            let (tool, at) = (text::line(&call.tool), text::line(&call.node));
            match &call.error {
                Some(error) => format!("{at}: {tool} failed: {}", text::line(&error.message)),
                None => format!("{at}: {tool} was called"),
            }
        }
        EventData::SpecialistMade(made) => {
            let (by, role) = (text::line(&made.by), text::line(&made.role));
            format!("{}: {by} created the specialist {role}", text::line(made.node.as_str()))
        }
        EventData::StrategyChanged(changed) => {
            let (by, to) = (text::line(&changed.by), changed.to.as_str());
            format!("{}: {by} changed the strategy to {to}", text::line(changed.node.as_str()))
        }
        EventData::GuardrailFired(fired) => {
            let what = fired.key.or(fired.action).map(|what| format!(" ({})", text::line(&what))).unwrap_or_default();
            let (guardrail, reason) = (text::line(&fired.guardrail), text::line(&fired.reason));
            match fired.effect {
                Effect::Block => format!("{guardrail} blocked this{what}: {reason}"),
                Effect::Redact => format!("{guardrail} redacted what it found{what}: {reason}"),
                Effect::Warn => format!("{guardrail} warns{what}: {reason}"),
            }
        }
        EventData::ReviewResolved(of) => resolved(&of.review)?,
        EventData::RunCompleted(_) => "the run has completed".to_owned(),
        _ => return None,
    })
}

fn place(step: &Step) -> String {
    let visit = if step.visit > 1 { format!(" (visit {})", step.visit) } else { String::new() };
    text::line(&step.node) + &visit
}

fn resolved(review: &Review) -> Option<String> {
    let resolution = review.resolution.as_ref()?;
    let at = review.node.as_ref().map(|node| text::line(node)).unwrap_or_default();
    let handler = || review.deciding_handler().map(|handler| text::line(&handler));
    let by = resolution.by.first().map(|by| text::line(by)).or_else(handler);
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let reason = resolution.reason.as_deref().map(|reason| format!(": {}", text::line(reason))).unwrap_or_default();
    Some(format!("{at}: {}{by}{reason}", resolution.outcome.in_words(review)))
}
