//! The calls that a grant may cover: used to offer it to people, to refuse others, and to check a grant when it is
//! used.

use shared::definition::{ActionKind, Gate, Severity};
use shared::review::ActionType;

use crate::engine::builder::Builder;
use crate::engine::conversation::{CallSite, ToolCall};

impl Builder<'_> {
    /// Returns why no grant can cover calls like this one, whoever gives it; `None` if one can.
    pub(in crate::engine::ask) fn ungrantable(
        &self,
        at: CallSite<'_>,
        call: &ToolCall,
        gate: Option<&Gate>,
    ) -> Option<&'static str> {
        if at.agent.is_some_and(|agent| agent.is_specialist()) {
            Some("calls of a specialist are approved one by one: another specialist may have the same name")
        } else if self.kind_of(at.step, call).0 != ActionType::Tool {
            Some("changes of a team are decided one by one")
        } else if gate.is_none_or(|gate| !grantable(gate)) {
            Some("critical calls are decided one by one")
        } else {
            None
        }
    }
}

/// Whether calls behind a gate may be allowed beforehand.
fn grantable(gate: &Gate) -> bool {
    // A severity that a template gives may be critical.
    gate.severity.value().is_some_and(|severity| *severity != Severity::Critical)
        && gate.allowed_decisions().contains(&ActionKind::Approve)
}
