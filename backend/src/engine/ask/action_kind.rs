//! The kind of action of a call, as people, conditions and guardrails see it.

use serde_json::Value;
use shared::definition::{Builtin, ToolKind};
use shared::review::ActionType;
use shared::run::Step;

use crate::engine::builder::Builder;
use crate::engine::conversation::ToolCall;

impl Builder<'_> {
    /// Returns the kind of action of a call, and its name: that of the tool, the role of a specialist, or the new
    /// strategy.
    pub(super) fn kind_of(&self, step: &Step, call: &ToolCall) -> (ActionType, String) {
        let tool = self.flow.of(&step.node).tool(&call.tool);
        match tool.as_ref().map(|tool| &tool.kind) {
            Some(ToolKind::Builtin(Builtin::SpawnSpecialist)) => (ActionType::Emergent, named(call, "role")),
            Some(ToolKind::Builtin(Builtin::SetStrategy)) => (ActionType::StrategyOverride, named(call, "to")),
            _ => (ActionType::Tool, call.tool.clone()),
        }
    }
}

fn named(call: &ToolCall, argument: &str) -> String {
    call.arguments.get(argument).and_then(Value::as_str).unwrap_or_default().to_owned()
}
