//! What happened, in words: decisions and resolutions, for the timeline of a run and for the audit.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use shared::decision::{ActionDecision, Decision, Verdict, Via};
use shared::definition::{ChoiceKind, OnTimeout};
use shared::log::{Entry, EntryKind, ReviewAct};
use shared::review::{Outcome, Resolution, Review};

use super::words;

/// How a decision is meant for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It goes on.
    Go,
    /// Something is made again, or was changed.
    Again,
    /// Something ends.
    Stop,
    /// None of these.
    Plain,
}

/// What somebody said, without who: `approved “Review the draft” with an edit to draft`.
pub fn decided(review: &Review, decision: &Decision) -> (String, Tone) {
    let title = quoted(&review.title);
    let (mut text, tone) = match &decision.verdict {
        Verdict::Choose { option, .. } => match review.options.iter().find(|one| one.id == *option) {
            Some(chosen) => {
                let (verb, tone) = match chosen.kind {
                    ChoiceKind::Accept => ("approved", Tone::Go),
                    ChoiceKind::Correct => ("asked for changes to", Tone::Again),
                    ChoiceKind::Stop => ("rejected", Tone::Stop),
                };
                (format!("{verb} {title}: {}", quoted(&chosen.label)), tone)
            }
            None => (format!("chose {option} for {title}"), Tone::Plain),
        },
        Verdict::Text { .. } if !review.actions.is_empty() => (format!("rejected {title}"), Tone::Stop),
        Verdict::Text { .. } if review.options.is_empty() => (format!("answered {title}"), Tone::Go),
        Verdict::Text { .. } => (format!("asked for changes to {title}"), Tone::Again),
        Verdict::Actions { decisions, .. } => actions(review, decisions),
    };
    if decision.grant.is_some() {
        text += " under a remembered approval";
    }
    if let Some(owner) = &decision.on_behalf_of {
        text = format!("{text} on behalf of {owner}");
    }
    if !decision.edits.is_empty() {
        let keys: Vec<&str> = decision.edits.keys().map(String::as_str).collect();
        let what = if keys.len() == 1 { "an edit" } else { "edits" };
        text = format!("{text}, with {what} to {}", listed(&keys));
    }
    (text, tone)
}

/// `approved publish and rejected delete_file`.
fn actions(review: &Review, decisions: &BTreeMap<String, ActionDecision>) -> (String, Tone) {
    let mut verbs: Vec<((&str, &str), Vec<&str>)> = Vec::new();
    let mut tone = Tone::Go;
    for action in &review.actions {
        let verb = match decisions.get(&action.id) {
            Some(ActionDecision::Approve { .. }) => ("approved", ""),
            Some(ActionDecision::Edit { .. }) => ("approved", " with an edit"),
            Some(ActionDecision::Reject { .. }) => {
                tone = Tone::Stop;
                ("rejected", "")
            }
            Some(ActionDecision::Respond { .. }) => ("responded without running", ""),
            None => continue,
        };
        match verbs.iter_mut().find(|(known, _)| *known == verb) {
            Some((_, names)) => names.push(&action.name),
            None => verbs.push((verb, vec![&action.name])),
        }
    }
    let parts: Vec<String> =
        verbs.iter().map(|((verb, how), names)| format!("{verb} {}{how}", listed(names))).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    (listed(&parts), tone)
}

/// What became of a review where no person's decision says it: a timer, a withdrawal, a handler.
pub fn resolved(review: &Review, resolution: &Resolution) -> (String, Tone) {
    let title = quoted(&review.title);
    let reason = resolution.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    match (resolution.outcome, resolution.via) {
        (Outcome::Withdrawn, _) => (format!("{title} was withdrawn{reason}"), Tone::Plain),
        (_, Via::Timeout) => {
            let tone = match &review.on_timeout {
                Some(OnTimeout::Approve) => Tone::Go,
                Some(OnTimeout::Follow | OnTimeout::Goto { .. }) => Tone::Again,
                _ => Tone::Stop,
            };
            (format!("the time for {title} was up: {}", words::timed_out(review)), tone)
        }
        (outcome, _) => {
            let (verb, tone) = match outcome {
                Outcome::Accepted => ("approved", Tone::Go),
                Outcome::Corrected => ("sent back", Tone::Again),
                Outcome::Stopped => ("rejected", Tone::Stop),
                Outcome::Answered => ("answered", Tone::Go),
                Outcome::Decided => ("decided", Tone::Plain),
                Outcome::Expired => ("expired", Tone::Stop),
                Outcome::Withdrawn => ("withdrawn", Tone::Plain),
            };
            (format!("{title} was {verb}{}{reason}", channel(resolution.via)), tone)
        }
    }
}

/// The review that an entry carries (`data.review`).
pub fn review_of(entry: &Entry) -> Option<Review> {
    Review::deserialize(entry.event.data.get("review")?).ok()
}

/// The decision that an entry is about: the resolution's, or the actor's newest vote.
pub fn decision_of<'a>(review: &'a Review, entry: &Entry) -> Option<&'a Decision> {
    let resolved = review.resolution.as_ref().and_then(|resolution| resolution.decision.as_deref());
    let vote = || review.decisions.iter().rev().find(|decision| Some(&decision.by) == entry.event.actor.as_ref());
    resolved.or_else(|| ReviewAct::Vote.is_told_by(&entry.event).then(vote).flatten())
}

/// What an entry tells, as the end of a sentence that begins with who did it: `approved “Review the draft”`.
pub fn told(entry: &Entry) -> (String, Tone) {
    let data = &entry.event.data;
    let word = |path: &str| {
        let mut place = path.split('/').map(str::to_owned);
        let first = place.next().and_then(|key| data.get(&key));
        place.try_fold(first?, |value, key| value.get(key)).map(words::plain)
    };
    let text = |path: &str| word(path).unwrap_or_default();
    let run = || word("run/title").map_or_else(|| "a run".to_owned(), |title| quoted(&title));
    let roles = || {
        let roles: Vec<&str> =
            data.get("roles").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        listed(&roles)
    };
    let plain = |text: String| (text, Tone::Plain);
    match entry.event.kind {
        EntryKind::RunStarted => plain(format!("started {}", run())),
        EntryKind::RunResumed => plain(format!("resumed {}", run())),
        EntryKind::WorkflowWaiting => plain(format!("paused {} for a person", run())),
        EntryKind::RunCompleted => (format!("completed {}", run()), Tone::Go),
        EntryKind::RunFailed => (format!("failed {}: {}", run(), text("run/error/message")), Tone::Stop),
        EntryKind::RunCancelled => {
            let why = word("reason").map(|why| format!(": {why}")).unwrap_or_default();
            (format!("cancelled {}{why}", run()), Tone::Stop)
        }
        EntryKind::StepStarted => plain(format!("started {}", text("step/node"))),
        EntryKind::StepRetrying => {
            (format!("is retrying {}: {}", text("step/node"), text("error/message")), Tone::Again)
        }
        EntryKind::StepCompleted => plain(format!("finished {}", text("step/node"))),
        EntryKind::StepFailed => {
            (format!("failed at {}: {}", text("step/node"), text("step/error/message")), Tone::Stop)
        }
        EntryKind::ModelAnswered => plain(format!("received a model's answer at {}", text("node"))),
        EntryKind::ToolExecuted => match word("error/message").or_else(|| word("error")) {
            Some(error) => (format!("{} failed: {error}", text("tool")), Tone::Stop),
            None => plain(format!("called {}", text("tool"))),
        },
        EntryKind::ReviewRequested => plain(format!("requested {}", quoted(&text("review/title")))),
        EntryKind::ReviewExpiring => {
            (format!("warned of the deadline of {}", quoted(&text("review/title"))), Tone::Again)
        }
        EntryKind::ReviewUpdated => {
            let title = quoted(&text("review/title"));
            if ReviewAct::Vote.is_told_by(&entry.event) {
                let review = review_of(entry);
                let vote = review.as_ref().and_then(|review| Some((review, decision_of(review, entry)?)));
                return plain(match vote {
                    Some((review, decision)) => format!("voted: {}", decided(review, decision).0),
                    // A secret vote.
                    None => format!("voted on {title}"),
                });
            }
            match text("change").as_str() {
                "content" => (format!("changed the content of {title}"), Tone::Again),
                "voters" => plain(format!("changed who may vote on {title}")),
                "claim" => plain(format!("claimed {title}")),
                "release" => plain(format!("released {title}")),
                "delegated" => plain(format!("delegated {title}")),
                "comment" => plain(format!("commented on {title}")),
                "escalated" => (format!("escalated {title}"), Tone::Again),
                _ => plain(format!("changed {title}")),
            }
        }
        EntryKind::ReviewResolved => match review_of(entry) {
            Some(review) => match &review.resolution {
                Some(Resolution { decision: Some(decision), .. }) => decided(&review, decision),
                Some(resolution) => {
                    let (what, tone) = resolved(&review, resolution);
                    (format!("recorded that {what}"), tone)
                }
                None => plain(format!("resolved {}", quoted(&review.title))),
            },
            None => plain("resolved a review".to_owned()),
        },
        EntryKind::ReviewViewed => {
            let title = word("title").map_or_else(|| "a review".to_owned(), |title| quoted(&title));
            plain(format!("viewed {title}, revision {}", text("revision")))
        }
        EntryKind::FlowSaved => plain(format!("saved the flow {}, version {}", text("flow"), text("version"))),
        EntryKind::UserCreated => match roles() {
            roles if roles.is_empty() => plain(format!("added {}, without roles", text("username"))),
            roles => plain(format!("added {} as {roles}", text("username"))),
        },
        EntryKind::UserUpdated => match roles() {
            roles if roles.is_empty() => plain(format!("changed {}", text("username"))),
            roles => plain(format!("changed {}, now {roles}", text("username"))),
        },
        EntryKind::GrantMade => plain(format!("remembered an approval for {}", text("grant/tool"))),
        EntryKind::GrantUsed => {
            plain(format!("ran {} under the remembered approval of {}", text("grant/tool"), text("grant/given_by")))
        }
        EntryKind::GrantRevoked => plain(format!("revoked the remembered approval for {}", text("grant/tool"))),
        kind @ (EntryKind::DeputyNamed | EntryKind::DeputyRemoved) => {
            let verb = if kind == EntryKind::DeputyNamed { "named" } else { "removed" };
            plain(format!("{verb} {} as deputy of {}", text("deputy"), text("deputyship/person")))
        }
        EntryKind::TokenCreated => match roles() {
            roles if roles.is_empty() => plain(format!("created the token {}, without roles", quoted(&text("name")))),
            roles => plain(format!("created the token {} with {roles}", quoted(&text("name")))),
        },
        EntryKind::TokenRevoked => plain("revoked a token".to_owned()),
        EntryKind::LinkCreated => plain(format!("created a login link for {}", text("username"))),
        EntryKind::SessionStarted => plain("logged in".to_owned()),
        EntryKind::SessionEnded => plain("logged out".to_owned()),
        EntryKind::LoginFailed => (format!("refused to log in {}", text("username")), Tone::Again),
        EntryKind::Unreadable => (format!("recorded what cannot be read: {}", text("reason")), Tone::Stop),
        EntryKind::HeadAccepted => plain("accepted a new head of the audit".to_owned()),
    }
}

/// Through what a decision came, where that is worth a word.
pub fn channel(via: Via) -> &'static str {
    match via {
        Via::Human | Via::Run => "",
        Via::Timeout => " by the timer",
        Via::Auto => " automatically",
        Via::Judge => " by a judge",
        Via::Webhook => " through a webhook",
        Via::Slack => " in Slack",
        Via::Cli => " at the terminal",
    }
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A title in quotation marks.
pub fn quoted(text: &str) -> String {
    format!("“{text}”")
}

/// With a capital at the start.
pub fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_people_write_them() {
        assert_eq!(listed(&[]), "");
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }
}
