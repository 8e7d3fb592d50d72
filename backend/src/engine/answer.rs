//! Reads the final answer of a conversation: that of an agent against its schema, that of a router's agent as one of
//! its targets.

use serde_json::Value;
use shared::definition::Target;
use shared::id::NodeId;

use super::conversation::{Conversation, Purpose};
use super::model_call::{parse, without_fence};
use crate::flow::Compiled;

/// A final answer that is valid.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParsedAnswer {
    /// The agent's result: the parsed JSON, or `None` if the agent has no schema and its text is the result.
    Made(Option<Value>),
    /// The target that a router's agent chose.
    Chose(Target),
}

/// Reads an answer. `Err` tells the model what is wrong with it.
pub(super) fn read_answer(
    flow: &Compiled,
    node: &NodeId,
    conversation: &Conversation,
    text: &str,
) -> Result<ParsedAnswer, String> {
    match &conversation.purpose {
        Purpose::Answer | Purpose::Turn { .. } | Purpose::Task { .. } => {
            let schema = conversation.agent_in(flow, node).and_then(|agent| agent.output_schema.as_ref());
            let of = flow.of(node);
            schema.map(|schema| parse(|value| of.check(schema, value, ""), text)).transpose().map(ParsedAnswer::Made)
        }
        Purpose::Choice(choices) => {
            let chosen = chosen(choices, text).cloned().map(ParsedAnswer::Chose);
            chosen.ok_or_else(|| format!("expected one of: {}", listed(choices)))
        }
    }
}

/// Lists the targets, in the form in which the choosing agent is told them.
pub(super) fn listed(choices: &[Target]) -> String {
    choices.iter().map(|choice| String::from(choice.clone())).collect::<Vec<_>>().join(", ")
}

/// Returns the target that an answer names: alone, in quotes, or as `{"next": …}`, ignoring ASCII case.
fn chosen<'a>(choices: &'a [Target], text: &str) -> Option<&'a Target> {
    let text = without_fence(text);
    let next = serde_json::from_str::<Value>(text).ok().and_then(|answer| match answer {
        Value::Object(mut answer) => answer.remove("next"),
        other => Some(other),
    });
    let named = match next {
        Some(Value::String(next)) => next,
        _ => text.to_owned(),
    };
    let named = named.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '.'));
    choices.iter().find(|target| String::from((*target).clone()).eq_ignore_ascii_case(named))
}
