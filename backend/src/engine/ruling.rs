//! The outcome of decided actions after the checks of guardrails.

use std::collections::BTreeMap;

use serde_json::Value;
use shared::definition::Effect;
use shared::error::FlowCode;
use shared::review::{Review, Veto, Warning};

use super::conversation::ToolCall;
use crate::flow::guardrail::{Finding, Inquiry};

/// What becomes of an action that was decided.
#[derive(Debug)]
pub(super) enum Ruling<T> {
    /// It happens, as it stands here.
    Proceeds(T),
    /// It does not happen; this is its result.
    Answered(Value),
    /// It does not happen, because of this.
    Refused(FlowCode, String),
}

/// What becomes of calls that were decided together, by their ids.
pub(super) type CallRulings = BTreeMap<String, Ruling<ToolCall>>;

/// What guardrails found in what was decided, in order; each with the id of the action that it is about, where it is
/// about one.
#[derive(Debug, Default)]
pub(super) struct Findings(pub Vec<(Option<String>, Finding)>);

impl Findings {
    /// Those of one action.
    pub(super) fn of(action: &str, findings: Vec<Finding>) -> Self {
        Self(findings.into_iter().map(|finding| (Some(action.to_owned()), finding)).collect())
    }

    /// What programs are to be asked before anything follows.
    pub(super) fn inquiries(&self) -> Vec<Inquiry> {
        inquiries(self.0.iter().map(|(_, finding)| finding))
    }

    /// Puts on a review that is resolved what does not happen, and what happens otherwise than it shows.
    pub(super) fn note(&self, review: &mut Review) {
        let with = |effect| self.0.iter().filter(move |(_, finding)| finding.effect == effect);
        for action in &mut review.actions {
            let is_its = |(id, _): &(Option<String>, Finding)| id.as_ref() == Some(&action.id);
            action.redacted = with(Effect::Redact).any(is_its) && !with(Effect::Block).any(is_its);
        }
        if let Some(resolution) = &mut review.resolution {
            resolution.vetoes = with(Effect::Block).map(veto).collect();
        }
    }
}

/// What programs are to be asked before these findings say anything.
pub(super) fn inquiries<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Inquiry> {
    findings.into_iter().filter_map(|finding| finding.inquiry.as_deref().cloned()).collect()
}

/// That it does not run, where something of it is blocked.
pub(super) fn blocked<T>(findings: &[Finding]) -> Option<Ruling<T>> {
    let veto = findings.iter().find(|finding| finding.effect == Effect::Block)?;
    Some(Ruling::Refused(FlowCode::GuardrailBlocked, words(veto)))
}

pub(super) fn words(finding: &Finding) -> String {
    format!("{}: {}", finding.guardrail, finding.reason)
}

pub(super) fn veto((action, finding): &(Option<String>, Finding)) -> Veto {
    let Finding { guardrail, key, reason, .. } = finding.clone();
    Veto { guardrail, action: action.clone(), key, reason }
}

pub(super) fn warning((action, finding): &(Option<String>, Finding)) -> Warning {
    let Finding { guardrail, key, reason, effect, inquiry: _ } = finding.clone();
    Warning { guardrail, action: action.clone(), key, reason, effect }
}
