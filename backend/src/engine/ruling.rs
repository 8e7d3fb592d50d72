//! What becomes of calls that were decided, once guardrails have looked at them.

use std::collections::BTreeMap;

use shared::definition::Effect;
use shared::error::FlowCode;
use shared::review::{Review, Veto, Warning};

use super::conversation::ToolCall;
use crate::flow::guardrail::Finding;

/// What becomes of a call that was decided.
#[derive(Debug)]
pub(super) enum Ruling {
    /// It runs, as it stands here.
    Runs(Box<ToolCall>),
    /// It does not run; this is its result.
    Answered(String),
    /// It does not run, because of this.
    Refused(FlowCode, String),
}

/// What becomes of calls that were decided together, and what guardrails found in them.
#[derive(Debug, Default)]
pub(super) struct Rulings {
    /// By the call's id.
    pub calls: BTreeMap<String, Ruling>,
    /// In order, each with the call's id where it is about one.
    pub findings: Vec<(Option<String>, Finding)>,
}

impl Rulings {
    /// What becomes of a call; none where nobody decided about it.
    pub(super) fn take(&mut self, call: &str) -> Option<Ruling> {
        self.calls.remove(call)
    }

    /// Puts on a review that is resolved what does not happen, and what happens otherwise than it shows.
    pub(super) fn note(&self, review: &mut Review) {
        let with = |effect| self.findings.iter().filter(move |(_, finding)| finding.effect == effect);
        for action in &mut review.actions {
            let is_its = |(id, _): &(Option<String>, Finding)| id.as_ref() == Some(&action.id);
            action.redacted = with(Effect::Redact).any(is_its) && !with(Effect::Block).any(is_its);
        }
        if let Some(resolution) = &mut review.resolution {
            resolution.vetoes = with(Effect::Block).map(veto).collect();
        }
    }
}

/// That it does not run, where something of it is blocked.
pub(super) fn blocked(findings: &[Finding]) -> Option<Ruling> {
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
    let Finding { guardrail, key, reason, effect } = finding.clone();
    Warning { guardrail, action: action.clone(), key, reason, effect }
}
