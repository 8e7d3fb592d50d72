//! Handoffs of agents and tool nodes: a review that nothing waits for.

use serde_json::{Value, json};
use shared::run::Step;

use crate::engine::builder::Builder;
use crate::engine::conversation::ToolCall;
use crate::engine::question::Subject;

impl Builder<'_> {
    /// Opens the review of a handoff, which nothing waits for. Returns the result of the call.
    pub(super) fn hand_over_to(&mut self, step: &Step, agent: Option<&str>, call: &ToolCall) -> Value {
        let (step, agent, call) = (Box::new(step.clone()), agent.map(str::to_owned), Box::new(call.clone()));
        let review = self.ask(Subject::Handoff { step, agent, call });
        json!({ "handed_off": true, "review": review })
    }
}
