//! Applies guardrails to a value, and again to what they redact: a redacted value takes effect only if it still fits its
//! place, and if nothing is left in it to be blocked or redacted.

use shared::JsonMap;
use shared::definition::Effect;

use crate::engine::invoke::listed;
use crate::engine::ruling::Blocked;
use crate::flow::Compiled;
use crate::flow::guardrail::{Finding, GuardrailVerdict};

/// The maximum number of times that a value is redacted.
const ROUNDS: usize = 8;

/// Returns a value as guardrails leave it, or the block, and all their findings. `check` applies guardrails; `fits` turns
/// redacted values into the value that takes effect, or says why that is impossible.
pub(in crate::engine::ask) fn apply_guardrails<T>(
    value: T,
    check: impl Fn(&T) -> GuardrailVerdict,
    fits: impl Fn(JsonMap) -> Result<T, String>,
) -> (Result<T, Blocked>, Vec<Finding>) {
    let GuardrailVerdict { mut findings, mut redacted } = check(&value);
    if let Some(blocked) = Blocked::by(&findings) {
        return (Err(blocked), findings);
    }
    let mut value = value;
    for round in 1..=ROUNDS {
        let Some(values) = redacted else { return (Ok(value), findings) };
        value = match fits(values) {
            Ok(value) => value,
            Err(reason) => {
                let by = findings.iter().rfind(|finding| finding.effect == Effect::Redact);
                let guardrail = by.map(|finding| finding.guardrail.clone()).unwrap_or_default();
                return blocked(
                    findings,
                    Finding { guardrail, effect: Effect::Block, key: None, reason, inquiry: None },
                );
            }
        };
        let again = check(&value);
        let by_effect = |effect| again.findings.iter().find(|finding| finding.effect == effect).cloned();
        if let Some(block) = by_effect(Effect::Block) {
            return blocked(findings, block);
        }
        // What was redacted may uncover more, such as the second of two numbers between which there is only a comma.
        if let Some(left) = by_effect(Effect::Redact)
            && (round == ROUNDS || again.redacted.is_none())
        {
            let reason = format!("{}, even after redaction", left.reason);
            return blocked(findings, Finding { reason, ..left });
        }
        let is_new = |finding: &Finding| findings.iter().all(|known| known.guardrail != finding.guardrail);
        let new: Vec<_> = again.findings.into_iter().filter(is_new).collect();
        findings.extend(new);
        redacted = again.redacted;
    }
    (Ok(value), findings)
}

fn blocked<T>(mut findings: Vec<Finding>, by: Finding) -> (Result<T, Blocked>, Vec<Finding>) {
    let by = Finding { effect: Effect::Block, ..by };
    let blocked = Blocked::of(&by);
    findings.push(by);
    (Err(blocked), findings)
}

/// Returns a redacted output if it still fits the flow's `output_schema`.
pub(in crate::engine::ask) fn fitting_output(flow: &Compiled, redacted: JsonMap) -> Result<JsonMap, String> {
    let mistakes = flow.check_output(&redacted, "");
    if mistakes.is_empty() {
        return Ok(redacted);
    }
    Err(format!("the redacted output does not match `output_schema`: {}", listed(&mistakes)))
}
