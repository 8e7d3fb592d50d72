//! Events in words: decisions and resolutions, for the timeline of a run and for the audit log.

use std::fmt::Write as _;

use shared::decision::{ActionDecision, Decision, Verdict, Via};
use shared::definition::{ChoiceKind, Effect, OnTimeout};
use shared::log::{Entry, EventData, ReviewAct, ReviewActs, ReviewChange, ReviewUpdated};
use shared::review::{Outcome, Resolution, Review, ReviewKind};

use super::account_words::account_changed;
use super::ending::Ending;
use super::sentences::{listed, quoted};
use super::{calls, effects, option_fields, outcomes, record, words};

/// The tone of an event, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTone {
    /// The run continues.
    Go,
    /// Something is repeated, or was changed.
    Again,
    /// Something is rejected, fails, is blocked or expires.
    Stop,
    /// None of these.
    Plain,
}

/// A decision in words, without the person: `approved “Review the draft”, with an edit to draft`.
pub fn decided(review: &Review, decision: &Decision) -> (String, EventTone) {
    let title = quoted(&review.title);
    let (mut text, tone) = match &decision.verdict {
        Verdict::Choose { option, fields } => {
            // An alternative does not approve what was asked.
            let offered = review.options.iter().find(|one| one.id == *option && !one.alternative);
            let kind = offered.map(|chosen| chosen.kind);
            let tone = match kind {
                Some(ChoiceKind::Accept) if review.has_several_ways() => EventTone::Plain,
                Some(ChoiceKind::Accept) => EventTone::Go,
                Some(ChoiceKind::Correct) => EventTone::Again,
                Some(ChoiceKind::Stop) => EventTone::Stop,
                None => EventTone::Plain,
            };
            (chose(review, &title, kind, &option_fields::answers(review, option, fields)), tone)
        }
        Verdict::Text { .. } if !review.actions.is_empty() => (format!("rejected {title}"), EventTone::Stop),
        Verdict::Text { .. } if review.answers_in_words() => (format!("answered {title}"), EventTone::Go),
        Verdict::Text { .. } => (format!("sent back {title}"), EventTone::Again),
        Verdict::Actions { decisions, .. } => {
            let refuses = decisions.values().any(|decision| matches!(decision, ActionDecision::Reject { .. }));
            (calls::decided(review, decisions), if refuses { EventTone::Stop } else { EventTone::Go })
        }
    };
    if decision.grant.is_some() {
        let _ = write!(text, " under the remembered approval of {}", decision.by);
    }
    if let Some(owner) = &decision.on_behalf_of {
        text = format!("{text} on behalf of {owner}");
    }
    let tone = match blocked(review) {
        Some(blocked) => {
            text += &blocked;
            EventTone::Stop
        }
        None => tone,
    };
    if !decision.edits.is_empty() {
        let keys: Vec<&str> = decision.edits.keys().map(String::as_str).collect();
        let what = if keys.len() == 1 { "an edit" } else { "edits" };
        text = format!("{text}, with {what} to {}", listed(&keys));
    }
    (text, tone)
}

/// The words for choosing an option: an edit is finished, a question answered, a gate approved.
fn chose(review: &Review, title: &str, kind: Option<ChoiceKind>, answer: &str) -> String {
    match (review.kind, kind) {
        (ReviewKind::Clarification, Some(_)) => format!("answered {title}: {answer}"),
        (ReviewKind::Handoff, Some(_)) => format!("took {title}"),
        (ReviewKind::Edit, Some(_)) => format!("finished {title}"),
        (ReviewKind::Escalation | ReviewKind::Checkpoint, _) | (_, None) => format!("chose {answer} for {title}"),
        // The option may be a refusal.
        (_, Some(ChoiceKind::Accept)) if review.has_several_ways() => format!("chose {answer} for {title}"),
        (_, Some(ChoiceKind::Accept)) => format!("approved {title}: {answer}"),
        (_, Some(ChoiceKind::Correct)) => format!("sent back {title}: {answer}"),
        (_, Some(ChoiceKind::Stop)) => format!("rejected {title}: {answer}"),
    }
}

/// That guardrails blocked what was approved, to follow a sentence; `None` if they did not.
fn blocked(review: &Review) -> Option<String> {
    let vetoes: Vec<&str> = record::vetoes(review).collect();
    (!vetoes.is_empty()).then(|| format!(", and {} blocked it", listed(&vetoes)))
}

/// The outcome of a review in words if it has no person's decision: by a timer, a withdrawal or a handler.
pub fn resolved(review: &Review, resolution: &Resolution) -> (String, EventTone) {
    let title = quoted(&review.title);
    let reason = resolution.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    match (resolution.outcome, resolution.via) {
        (Outcome::Withdrawn, _) => (format!("{title} was withdrawn{reason}"), EventTone::Plain),
        (_, Via::Timeout) => {
            let tone = match &review.on_timeout {
                Some(OnTimeout::Approve) => EventTone::Go,
                Some(OnTimeout::Follow | OnTimeout::Goto { .. }) => EventTone::Again,
                _ => EventTone::Stop,
            };
            (format!("{title} expired: {}", effects::timed_out(review)), tone)
        }
        (outcome, via) => {
            let verb = outcomes::word(review, outcome);
            let tone = match outcome {
                Outcome::Accepted | Outcome::Answered => EventTone::Go,
                Outcome::Corrected => EventTone::Again,
                Outcome::Stopped | Outcome::Expired => EventTone::Stop,
                Outcome::Decided => match record::is_approved(review) {
                    Some(true) => EventTone::Go,
                    Some(false) => EventTone::Stop,
                    None => EventTone::Plain,
                },
                Outcome::Withdrawn => EventTone::Plain,
            };
            let by = match outcomes::handler(review) {
                Some(judge) if via == Via::Judge => format!(" by {judge}"),
                _ => channel(via).to_owned(),
            };
            // What a handler said of something that was then blocked is in the details.
            match blocked(review) {
                Some(blocked) => (format!("{title} was {verb}{by}{blocked}"), EventTone::Stop),
                None => (format!("{title} was {verb}{by}{reason}"), tone),
            }
        }
    }
}

/// The decision that an entry is about: the one that resolved the review, or the actor's latest vote.
pub fn decision_of<'a>(entry: &Entry, acts: ReviewActs, review: &'a Review) -> Option<&'a Decision> {
    let resolved = review.resolution.as_ref().and_then(|resolution| resolution.decision.as_deref());
    let vote = || review.decisions.iter().rev().find(|decision| Some(&decision.by) == entry.event.actor.as_ref());
    resolved.or_else(|| acts.has(ReviewAct::Vote).then(vote).flatten())
}

/// An entry in words, to follow the name of the actor: `approved “Review the draft”`.
pub fn describe(entry: &Entry) -> (String, EventTone) {
    let plain = |text: String| (text, EventTone::Plain);
    let Some(data) = entry.event.read() else { return plain(format!("recorded “{}”", entry.event.kind)) };
    let acts = entry.event.acts_of(&data);
    match data {
        EventData::RunStarted(of) => plain(format!("launched {}", quoted(&of.run.title))),
        EventData::RunResumed(of) => plain(format!("resumed {}", quoted(&of.run.title))),
        EventData::WorkflowWaiting(of) => plain(format!("paused {} for a person", quoted(&of.run.title))),
        EventData::RunCompleted(done) => (format!("completed {}", quoted(&done.run.title)), EventTone::Go),
        EventData::RunFailed(of) => {
            let (title, error) = (quoted(&of.run.title), of.run.error.as_ref());
            let why = error.map(|error| error.message.as_str()).unwrap_or_default();
            let what = match Ending::of(error) {
                Some(Ending::Rejected) => format!("ended {title}, since it was rejected: {why}"),
                Some(Ending::TimedOut) => format!("ended {title}, since nobody decided in time"),
                None => format!("could not finish {title}: {why}"),
            };
            (what, EventTone::Stop)
        }
        EventData::RunCancelled(cancelled) => {
            let why = cancelled.reason.map(|why| format!(": {why}")).unwrap_or_default();
            (format!("cancelled {}{why}", quoted(&cancelled.run.title)), EventTone::Stop)
        }
        EventData::StepStarted(of) => plain(format!("started {}", of.step.node)),
        EventData::StepRetrying(failed) => {
            (format!("is retrying {}: {}", failed.step.node, failed.error.message), EventTone::Again)
        }
        EventData::StepCompleted(done) => plain(format!("finished {}", done.step.node)),
        EventData::StepFailed(of) => {
            let (node, error) = (&of.step.node, of.step.error.as_ref());
            let why = error.map(|error| error.message.as_str()).unwrap_or_default();
            let what = match Ending::of(error) {
                Some(Ending::Rejected) => format!("stopped at {node}, since it was rejected: {why}"),
                Some(Ending::TimedOut) => format!("stopped at {node}, since nobody decided in time"),
                None => format!("failed at {node}: {why}"),
            };
            (what, EventTone::Stop)
        }
        EventData::ModelAnswered(answered) => match answered.error {
            Some(error) => {
                (format!("got no answer from the model at {}: {}", answered.node, error.message), EventTone::Stop)
            }
            None => plain(format!("received a model's answer at {}", answered.node)),
        },
        EventData::ToolExecuted(call) => match call.error {
            Some(error) => (format!("{} failed: {}", call.tool, error.message), EventTone::Stop),
            None => plain(format!("called {}", call.tool)),
        },
        EventData::FeedbackGiven(of) => {
            let (what, agent) = (of.feedback.feedback_type.as_str(), &of.feedback.agent);
            plain(format!("gave {agent} feedback ({what}): {}", quoted(&words::cut(&of.feedback.content))))
        }
        EventData::FeedbackRetracted(of) => plain(format!("retracted feedback on {}", of.agent)),
        EventData::SpecialistMade(made) => {
            plain(format!("created the specialist {} at {}, for {}", made.role, made.node, made.by))
        }
        EventData::StrategyChanged(changed) => {
            let (from, to) = (changed.from.as_str(), changed.to.as_str());
            let why = quoted(&words::cut(&changed.reason));
            plain(format!("changed the strategy at {} from {from} to {to}, for {}: {why}", changed.node, changed.by))
        }
        EventData::GuardrailFired(fired) => {
            let what = match (fired.action, fired.key, fired.review) {
                (Some(_), ..) => "a call".to_owned(),
                (None, Some(key), Some(_)) => format!("an edit to {key}"),
                (None, Some(key), None) => format!("the output {key}"),
                (None, None, Some(_)) => "an answer".to_owned(),
                (None, None, None) => "the output".to_owned(),
            };
            let why = format!("{what} ({}): {}", fired.guardrail, fired.reason);
            match fired.effect {
                // Only the refusal of a decision has an actor: the person who sent it.
                Effect::Block if entry.event.actor.is_some() => (format!("was refused {why}"), EventTone::Stop),
                Effect::Block => (format!("blocked {why}"), EventTone::Stop),
                Effect::Redact => (format!("redacted {why}"), EventTone::Again),
                Effect::Warn => (format!("noted {why}"), EventTone::Again),
            }
        }
        EventData::ReviewRequested(of) => plain(format!("requested {}", quoted(&of.review.title))),
        EventData::ReviewExpiring(of) => {
            (format!("warned about the deadline of {}", quoted(&of.review.title)), EventTone::Again)
        }
        EventData::ReviewUpdated(updated) => changed(entry, acts, &updated),
        EventData::ReviewResolved(of) => match &of.review.resolution {
            Some(Resolution { decision: Some(decision), .. }) => decided(&of.review, decision),
            Some(Resolution { outcome: Outcome::Withdrawn, reason, .. }) if entry.event.actor.is_some() => {
                let why = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                plain(format!("withdrew {}{why}", quoted(&of.review.title)))
            }
            Some(resolution) => {
                let (what, tone) = resolved(&of.review, resolution);
                (format!("recorded that {what}"), tone)
            }
            None => plain(format!("resolved {}", quoted(&of.review.title))),
        },
        EventData::ReviewViewed(viewed) => {
            let title = if viewed.title.is_empty() { "a review".to_owned() } else { quoted(&viewed.title) };
            // The author says so too, except in entries of older versions.
            let by_token = if viewed.token && entry.event.token.is_none() { ", with a token" } else { "" };
            plain(format!("viewed {title}, revision {}{by_token}", viewed.revision))
        }
        EventData::FlowSaved(saved) => plain(format!("saved the flow {}, version {}", saved.flow, saved.version)),
        EventData::UserCreated(added) => match roles(added.roles.as_deref()) {
            roles if roles.is_empty() => plain(format!("added {}, without roles", added.username)),
            roles => plain(format!("added {} as {roles}", added.username)),
        },
        EventData::UserUpdated(changed) => plain(account_changed(entry.event.author().as_ref(), &changed)),
        EventData::GrantMade(of) => plain(format!("remembered an approval for {}", of.grant.tool)),
        EventData::GrantUsed(used) => {
            plain(format!("ran {} under the remembered approval of {}", used.grant.tool, used.grant.given_by))
        }
        EventData::GrantRevoked(of) => plain(format!("revoked the remembered approval for {}", of.grant.tool)),
        EventData::DeputyNamed(of) => plain(format!("named {} as deputy of {}", of.deputy, of.deputyship.person)),
        EventData::DeputyRemoved(of) => plain(format!("removed {} as deputy of {}", of.deputy, of.deputyship.person)),
        EventData::TokenCreated(token) => match roles(Some(&token.roles)) {
            roles if roles.is_empty() => plain(format!("created the token {}, without roles", quoted(&token.name))),
            roles => plain(format!("created the token {} with {roles}", quoted(&token.name))),
        },
        EventData::TokenRevoked(token) => {
            let other = token.owner.filter(|owner| entry.event.actor.as_ref() != Some(owner));
            plain(other.map_or_else(|| "revoked a token".to_owned(), |owner| format!("revoked a token of {owner}")))
        }
        EventData::LinkCreated(link) => plain(format!("created a login link for {}", link.username)),
        EventData::SessionStarted(_) => plain("logged in".to_owned()),
        EventData::SessionEnded(_) => plain("logged out".to_owned()),
        EventData::SessionConfirmed(_) => plain("confirmed their session".to_owned()),
        EventData::LoginFailed(failed) => {
            let name = failed.username.map_or_else(|| "somebody".to_owned(), |name| name.to_string());
            let before = failed.unrecorded.map(|count| format!(", after {count} refusals that were not recorded"));
            let what = match (failed.in_session, failed.wrong_code) {
                (false, false) => "refused a login as",
                (false, true) => "refused, for a wrong code, a login as",
                (true, false) => "refused a wrong password in a session of",
                (true, true) => "refused a wrong code in a session of",
            };
            (format!("{what} {name}{}", before.unwrap_or_default()), EventTone::Again)
        }
        EventData::Unreadable(row) => {
            (format!("recorded an entry that cannot be read: {}", row.reason), EventTone::Stop)
        }
        EventData::HeadAccepted(_) => plain("accepted a new head of the audit log".to_owned()),
        EventData::RunsArchived(archived) => {
            let (count, runs) = (archived.runs, if archived.runs == 1 { "run" } else { "runs" });
            plain(format!("archived {count} {runs} in {}", archived.file))
        }
        EventData::UserErased(erased) => plain(format!("erased the personal data of {}", erased.username)),
        EventData::EntriesErased(erased) => {
            let (count, entries) = (erased.entries.len(), if erased.entries.len() == 1 { "entry" } else { "entries" });
            plain(format!("erased {} from {count} {entries}", erased.username))
        }
    }
}

fn changed(entry: &Entry, acts: ReviewActs, updated: &ReviewUpdated) -> (String, EventTone) {
    let plain = |text: String| (text, EventTone::Plain);
    let title = quoted(&updated.review.title);
    if acts.has(ReviewAct::Vote) {
        return plain(match decision_of(entry, acts, &updated.review) {
            Some(decision) => format!("voted: {}", decided(&updated.review, decision).0),
            // A secret vote.
            None => format!("voted on {title}"),
        });
    }
    match &updated.change {
        ReviewChange::Content { .. } => (format!("changed the content of {title}"), EventTone::Again),
        ReviewChange::Voters { .. } => plain(format!("changed who may decide {title}")),
        ReviewChange::Claim { .. } => plain(format!("claimed {title}")),
        ReviewChange::Release { .. } => plain(format!("released {title}")),
        ReviewChange::Delegated { .. } => plain(format!("delegated {title}")),
        ReviewChange::Reassigned { .. } => plain(match updated.review.reassignments.last() {
            Some(reassignment) => format!("reassigned {title} {}", reassignment.change()),
            None => format!("reassigned {title}"),
        }),
        ReviewChange::Comment { .. } => plain(format!("commented on {title}")),
        ReviewChange::Escalated { .. } => (format!("escalated {title}"), EventTone::Again),
        ReviewChange::Paused { .. } => (format!("paused {title}"), EventTone::Again),
        ReviewChange::Asked => plain(format!("asked the next handler about {title}")),
        ReviewChange::Vote | ReviewChange::Other => plain(format!("changed {title}")),
    }
}

fn roles(roles: Option<&[String]>) -> String {
    listed(roles.unwrap_or_default())
}

/// Through what a decision came, where that is worth a word.
pub fn channel(via: Via) -> &'static str {
    match via {
        Via::Human | Via::Run => "",
        Via::Timeout => " by the timer",
        Via::Auto => " automatically",
        Via::Judge => " by a judge",
        Via::Webhook => " by a webhook",
        Via::Slack => " in Slack",
        Via::Cli => " at the terminal",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_record_says_what_was_done_and_no_approval_of_what_was_none() {
        let said = |kind: ReviewKind| {
            let mut review = resolved_by_tom();
            review.kind = kind;
            decided(&review, review.decisions.first().unwrap()).0
        };
        assert_eq!(said(ReviewKind::Approval), "approved “Review the draft”: “Looks good”");
        assert_eq!(said(ReviewKind::Clarification), "answered “Review the draft”: “Looks good”");
        assert_eq!(said(ReviewKind::Escalation), "chose “Looks good” for “Review the draft”");
        assert_eq!(said(ReviewKind::Edit), "finished “Review the draft”");
        assert_eq!(said(ReviewKind::Handoff), "took “Review the draft”");
    }

    #[test]
    fn what_a_judge_decided_is_told_as_what_it_was() {
        let mut judged = crate::state::fixtures::calls(1, 2);
        let mut told = |approved: bool, vetoes: serde_json::Value| {
            let judgement = json!({ "approved": approved, "confidence": 0.95, "threshold": 0.7 });
            judged.advice =
                serde_json::from_value(json!([{ "by": "demo", "via": "judge", "at": "2026-11-20T10:05:00Z",
                "verdict": judgement, "reason": "Because." }]))
                .unwrap();
            let resolution: Resolution = serde_json::from_value(json!({ "status": "resolved", "outcome": "decided",
                "by": [], "at": "2026-11-20T10:05:00Z", "via": "judge", "reason": "Because.", "vetoes": vetoes }))
            .unwrap();
            judged.resolution = Some(resolution.clone());
            resolved(&judged, &resolution)
        };
        let own = |text: &str, tone| (format!("“Review the draft” was {text}"), tone);
        assert_eq!(told(true, json!([])), own("approved by a judge (95% sure): Because.", EventTone::Go));
        assert_eq!(told(false, json!([])), own("rejected by a judge (95% sure): Because.", EventTone::Stop));
        let veto = json!([{ "action": "a1", "guardrail": "code-safety", "reason": "A shell." }]);
        let blocked = own("approved by a judge (95% sure), and code-safety blocked it", EventTone::Stop);
        assert_eq!(told(true, veto), blocked);
    }

    fn resolved_by_tom() -> Review {
        crate::state::fixtures::resolved(1, 2, "tom")
    }
}
