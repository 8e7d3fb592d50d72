//! The outcome of decided actions after the checks of guardrails.

use std::collections::BTreeMap;

use serde_json::Value;
use shared::definition::Effect;
use shared::error::FlowCode;
use shared::review::{Review, Veto, Warning};

use super::conversation::ToolCall;
use crate::flow::guardrail::{Finding, Inquiry};

/// The outcome of a decided action.
#[derive(Debug)]
pub(super) enum Ruling<T> {
    /// It happens, in this form.
    Proceeds(T),
    /// It does not happen; this is its result.
    Answered(Value),
    /// It does not happen, for this reason.
    Refused(FlowCode, String),
}

/// The rulings on calls that were decided together, by their ids.
pub(super) type CallRulings = BTreeMap<String, Ruling<ToolCall>>;

/// The findings of guardrails about a decision, in order, each with the id of its action if it is about one.
#[derive(Debug, Default)]
pub(super) struct Findings(pub Vec<(Option<String>, Finding)>);

impl Findings {
    /// Creates findings about one action.
    pub(super) fn of(action: &str, findings: Vec<Finding>) -> Self {
        Self(findings.into_iter().map(|finding| (Some(action.to_owned()), finding)).collect())
    }

    /// Returns what programs must be asked before the decision can take effect.
    pub(super) fn inquiries(&self) -> Vec<Inquiry> {
        inquiries(self.0.iter().map(|(_, finding)| finding))
    }

    /// Returns the findings as warnings before a decision. Programs are asked only after approval, so what is left to
    /// them is not known yet.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        self.0.iter().filter(|(_, finding)| finding.inquiry.is_none()).map(warning).collect()
    }

    /// Notes on a resolved review which actions are redacted, and what is blocked.
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

/// Returns what programs must be asked before these findings are final.
pub(super) fn inquiries<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Inquiry> {
    findings.into_iter().filter_map(|finding| finding.inquiry.as_deref().cloned()).collect()
}

/// The block of a guardrail, with its reason.
#[derive(Debug)]
pub(super) struct Blocked(String);

impl Blocked {
    /// Returns the first block among findings.
    pub(super) fn by(findings: &[Finding]) -> Option<Self> {
        findings.iter().find(|finding| finding.effect == Effect::Block).map(Self::of)
    }

    pub(super) fn of(finding: &Finding) -> Self {
        Self(words(finding))
    }

    /// Returns the name of the guardrail and its reason.
    pub(super) fn into_words(self) -> String {
        self.0
    }
}

impl<T> From<Blocked> for Ruling<T> {
    fn from(blocked: Blocked) -> Self {
        Self::Refused(FlowCode::GuardrailBlocked, blocked.into_words())
    }
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
