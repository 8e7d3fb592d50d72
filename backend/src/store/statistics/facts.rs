//! The data of a review for statistics, stored beside it in its row, so that counting reads no reviews.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use shared::decision::{ActionDecision, ProgramAnswer, Verdict, Via};
use shared::definition::ActionKind;
use shared::id::Username;
use shared::inbox;
use shared::review::{ActionType, Outcome, Resolution, Review, ReviewKind, ReviewStatus};
use shared::statistics::{EscalationReason, JudgeFigures};

use super::super::Error;

/// The outcome of a review, as statistics count it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Became {
    #[default]
    Pending,
    Approved,
    Corrected,
    Rejected,
    Answered,
    Expired,
    Withdrawn,
}

/// The data of a review that are counted, except for its flow, its kind and the time of the request, which are columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::store) struct Facts {
    pub(super) became: Became,
    /// The time until people decided, in milliseconds. `None` if no person decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_ms: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) by: Vec<Username>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) tools: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) agents: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) roles: BTreeSet<String>,
    /// Whether a value that was shown was changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<EscalationReason>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) vetoes: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) judge: Option<JudgeFigures>,
}

pub(in crate::store) fn column_of(review: &Review) -> Result<String, Error> {
    serde_json::to_string(&Facts::of(review)).map_err(|error| Error::Stored(error.to_string()))
}

/// The column of a review that cannot be read, which is not counted.
pub(in crate::store) const UNREADABLE: &str = "null";

impl Facts {
    pub(super) fn of(review: &Review) -> Self {
        let resolution = review.resolution.as_ref();
        let decided = resolution.filter(|resolution| is_by_people(resolution));
        let actions = |of: ActionType| review.actions.iter().filter(move |action| action.action_type == of);
        let wanting = review.actions.iter().filter_map(|action| action.agent.clone());
        let became = became(review);
        let mut vetoes = BTreeMap::new();
        for veto in resolution.iter().flat_map(|resolution| &resolution.vetoes) {
            *vetoes.entry(veto.guardrail.clone()).or_default() += 1;
        }
        Self {
            became,
            response_ms: decided.map(|resolution| millis(resolution.at.since(review.created_at))),
            by: decided.map(|resolution| resolution.by.clone()).unwrap_or_default(),
            tools: actions(ActionType::Tool).map(|action| action.name.clone()).collect(),
            agents: actions(ActionType::Agent).map(|action| action.name.clone()).chain(wanting).collect(),
            roles: inbox::roles(review).map(str::to_owned).collect(),
            changed: changed(review),
            reason: reason(review),
            vetoes,
            judge: judge(review, became, decided.is_some()),
        }
    }
}

/// The time until people decided, in seconds. `None` if no person has decided.
pub(in crate::store) fn response_seconds(review: &Review) -> Option<f64> {
    let resolution = review.resolution.as_ref().filter(|resolution| is_by_people(resolution))?;
    Some(resolution.at.since(review.created_at).as_secs_f64())
}

fn millis(length: std::time::Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Whether people decided when they were asked. A grant does not count, since it was given before, nor does a program
/// with a token. People at a terminal use a token too.
fn is_by_people(resolution: &Resolution) -> bool {
    let by_person = match resolution.via {
        Via::Human => resolution.token.is_none(),
        Via::Slack | Via::Cli => true,
        Via::Timeout | Via::Auto | Via::Judge | Via::Webhook | Via::Run => false,
    };
    resolution.status == ReviewStatus::Resolved && by_person
}

fn became(review: &Review) -> Became {
    let Some(resolution) = &review.resolution else { return Became::Pending };
    match resolution.outcome {
        // Neither an approval nor a rejection, as it would be at a gate.
        Outcome::Accepted if review.chosen_alternative().is_some() || asks_openly(review.kind) => Became::Answered,
        Outcome::Accepted => Became::Approved,
        Outcome::Corrected => Became::Corrected,
        Outcome::Stopped => Became::Rejected,
        Outcome::Answered => Became::Answered,
        Outcome::Expired => Became::Expired,
        Outcome::Withdrawn => Became::Withdrawn,
        Outcome::Decided => match &resolution.decision {
            Some(decision) => of_verdict(&decision.verdict),
            None => handled(review, resolution),
        },
    }
}

/// Whether nothing is proposed that could be approved: an agent does not know, or hands its work over.
fn asks_openly(kind: ReviewKind) -> bool {
    matches!(kind, ReviewKind::Clarification | ReviewKind::Escalation | ReviewKind::Handoff)
}

/// The outcome of a verdict. Several calls count as the gravest decision on one of them; a verdict without decisions on
/// calls rejects all.
fn of_verdict(verdict: &Verdict) -> Became {
    let Verdict::Actions { decisions, .. } = verdict else { return Became::Rejected };
    let has = |kind| decisions.values().map(ActionDecision::kind).any(|said| said == kind);
    if has(ActionKind::Reject) {
        Became::Rejected
    } else if has(ActionKind::Edit) {
        Became::Corrected
    } else if has(ActionKind::Approve) {
        Became::Approved
    } else {
        Became::Answered
    }
}

/// The outcome of a review that a handler resolved, for which there is no decision, only its advice. A program without
/// a usable answer rejects if the flow does not let it pass on; an `auto` handler gives a reason only if it rejects.
fn handled(review: &Review, resolution: &Resolution) -> Became {
    let approved = |approved: bool, changed: bool| match (approved, changed) {
        (false, _) => Became::Rejected,
        (true, true) => Became::Corrected,
        (true, false) => Became::Approved,
    };
    let Some(advice) = review.deciding_advice() else { return approved(resolution.reason.is_none(), false) };
    let has_changed = advice.changes.as_ref().is_some_and(|changes| !changes.arguments.is_empty());
    match (advice.verdict, advice.answer.as_deref()) {
        (Some(judged), _) => approved(judged.approved, has_changed),
        (None, Some(ProgramAnswer { verdict: Some(verdict), .. })) => of_verdict(verdict),
        (None, Some(answer)) => {
            let changes = answer.modifications.as_ref();
            let has_changed = changes.is_some_and(|changes| changes.tool_args.is_some() || changes.output.is_some());
            approved(answer.approved == Some(true), has_changed)
        }
        (None, None) => Became::Rejected,
    }
}

/// Whether a value that was shown was changed by people, or by the handler that decided.
fn changed(review: &Review) -> bool {
    let by_people = review.resolution.as_ref().and_then(|made| made.decision.as_ref());
    by_people.is_some_and(|decision| !decision.edits.is_empty())
        || review.deciding_advice().is_some_and(|advice| {
            let changes = advice.changes.as_ref().is_some_and(|changes| !changes.edits.is_empty());
            let answer = advice.answer.as_deref().is_some_and(|answer| {
                let output = answer.modifications.as_ref().and_then(|changes| changes.output.as_ref());
                !answer.edits.is_empty() || output.is_some_and(|output| !output.is_empty())
            });
            changes || answer
        })
}

fn reason(review: &Review) -> Option<EscalationReason> {
    let category = review.stakes.category.as_deref().filter(|_| review.kind == ReviewKind::Escalation)?;
    EscalationReason::of_word(category)
}

fn judge(review: &Review, became: Became, by_people: bool) -> Option<JudgeFigures> {
    let judges: Vec<_> = review.advice.iter().filter(|advice| advice.via == Via::Judge).collect();
    if judges.is_empty() {
        return None;
    }
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let decided = u64::from(review.resolution.as_ref().is_some_and(|resolution| resolution.via == Via::Judge));
    let asked = count(judges.len());
    let failed = count(judges.iter().filter(|advice| advice.verdict.is_none()).count());
    let mut figures = JudgeFigures {
        asked,
        decided,
        failed,
        passed_on: asked.saturating_sub(decided).saturating_sub(failed),
        ..JudgeFigures::default()
    };
    let accepted = match became {
        Became::Approved => Some(true),
        Became::Corrected | Became::Rejected => Some(false),
        Became::Pending | Became::Answered | Became::Expired | Became::Withdrawn => None,
    };
    if let Some(accepted) = accepted.filter(|_| by_people) {
        for said in judges.iter().filter_map(|advice| advice.verdict) {
            *(if said.approved == accepted { &mut figures.agreed } else { &mut figures.disagreed }) += 1;
        }
    }
    Some(figures)
}
