//! Applies guardrails to a value, and a second time to what they redact: a redacted value takes effect only if it still
//! fits its place, and if nothing is left in it to be blocked or redacted.

use shared::JsonMap;
use shared::definition::Effect;

use crate::engine::invoke::listed;
use crate::engine::ruling::Blocked;
use crate::flow::Compiled;
use crate::flow::guardrail::{Finding, GuardrailVerdict};

/// Returns a value as guardrails leave it, or the block, and all their findings. `look` applies guardrails; `fits` turns
/// redacted values into the value that takes effect, or says why that is impossible.
pub(super) fn guard<T>(
    value: T,
    look: impl Fn(&T) -> GuardrailVerdict,
    fits: impl FnOnce(JsonMap) -> Result<T, String>,
) -> (Result<T, Blocked>, Vec<Finding>) {
    let GuardrailVerdict { mut findings, redacted } = look(&value);
    if let Some(blocked) = Blocked::by(&findings) {
        return (Err(blocked), findings);
    }
    let Some(redacted) = redacted else { return (Ok(value), findings) };
    let left = match fits(redacted) {
        Ok(redacted) => {
            let again = look(&redacted).findings;
            let Some(left) = again.iter().find(|finding| finding.effect != Effect::Warn).cloned() else {
                let is_new = |finding: &Finding| findings.iter().all(|known| known.guardrail != finding.guardrail);
                let new: Vec<_> = again.into_iter().filter(is_new).collect();
                findings.extend(new);
                return (Ok(redacted), findings);
            };
            match left.effect {
                Effect::Redact => Finding { reason: format!("{}, even after redaction", left.reason), ..left },
                Effect::Block | Effect::Warn => left,
            }
        }
        Err(reason) => {
            let by = findings.iter().rfind(|finding| finding.effect == Effect::Redact);
            let guardrail = by.map(|finding| finding.guardrail.clone()).unwrap_or_default();
            Finding { guardrail, effect: Effect::Block, key: None, reason, inquiry: None }
        }
    };
    let left = Finding { effect: Effect::Block, ..left };
    let blocked = Blocked::of(&left);
    findings.push(left);
    (Err(blocked), findings)
}

/// Returns a redacted output if it still fits the flow's `output_schema`.
pub(super) fn fitting_output(flow: &Compiled, redacted: JsonMap) -> Result<JsonMap, String> {
    let mistakes = flow.check_output(&redacted, "");
    if mistakes.is_empty() {
        return Ok(redacted);
    }
    Err(format!("the redacted output does not match `output_schema`: {}", listed(&mistakes)))
}
