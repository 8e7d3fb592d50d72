//! Routers: nothing but `next`, or an agent that chooses among the targets that have visits left.

use serde_json::Value;
use shared::JsonMap;
use shared::definition::{RouterNode, Target};
use shared::error::{FlowCode, RunError};
use shared::run::Step;

use crate::engine::builder::{Builder, failure, unevaluated};
use crate::engine::conversation::{Conversation, Message, Purpose};
use crate::engine::next::StepEnd;
use crate::engine::scope::{self, Visit};

impl Builder<'_> {
    /// A branch enters a router.
    pub(in crate::engine) fn enter_router(&mut self, branch: u32, step: Step, router: &RouterNode) {
        let Some(agent) = &router.agent else {
            return self.finish_step(branch, step, JsonMap::new());
        };
        let targets = match self.targets(&step.node, step.visit) {
            Ok(targets) => targets,
            Err(error) => return self.fail_step(branch, step, error),
        };
        let mut choices: Vec<Target> = Vec::new();
        for target in &targets {
            let open = match target {
                Target::Node(node) => self.visits_left(&step.node.beside(node)) > 0,
                Target::End => true,
            };
            if open && !choices.contains(target) {
                choices.push(target.clone());
            }
        }
        // Where no target has visits left, the first one's own rule (`on_visit_limit`, or the error) applies.
        let only = if choices.is_empty() { targets.first() } else { choices.first().filter(|_| choices.len() == 1) };
        if let Some(only) = only.cloned() {
            return self.end(branch, step, StepEnd::Chose { targets: vec![only] });
        }
        let opened = self.router_prompt(&step, router).and_then(|prompt| {
            let text = format!("{prompt}\n\n{}", request(&choices));
            self.converse(&step, agent, vec![Message::User { text }])
        });
        match opened {
            Ok(conversation) => {
                let conversation = Conversation { purpose: Purpose::Choice(choices), ..conversation };
                self.start_turn(branch, step, conversation);
            }
            Err(error) => self.fail_step(branch, step, error),
        }
    }

    fn router_prompt(&self, step: &Step, router: &RouterNode) -> Result<String, RunError> {
        let scope = scope::of(self.flow, &self.state, &step.node, Visit { number: step.visit, ..Visit::default() });
        match &router.prompt {
            Some(template) => {
                self.flow.of(&step.node).render(template, &scope).map_err(|error| unevaluated(&step.node, &error))
            }
            None => Ok(format!("Choose where to go next.\n\n{}", self.readable_keys(&step.node))),
        }
    }

    /// A router's agent has answered.
    pub(in crate::engine) fn chose(
        &mut self,
        branch: u32,
        mut step: Step,
        mut conversation: Conversation,
        choices: &[Target],
        text: &str,
    ) {
        if let Some(chosen) = chosen(choices, text) {
            step.note = Some(name(chosen));
            self.end(branch, step, StepEnd::Chose { targets: vec![chosen.clone()] });
        } else if conversation.turn < self.max_turns(&step.node, &conversation.agent) {
            conversation.messages.push(Message::User { text: request(choices) });
            conversation.turn += 1;
            self.start_turn(branch, step, conversation);
        } else {
            let message = format!("agent `{}` named none of the nodes that it may choose", conversation.agent);
            let error = failure(FlowCode::FlowNoMatchingEdge, &step.node, message);
            self.fail_step(branch, step, error);
        }
    }
}

fn request(choices: &[Target]) -> String {
    let names: Vec<_> = choices.iter().map(name).collect();
    format!("Answer with exactly one of: {}", names.join(", "))
}

fn name(target: &Target) -> String {
    String::from(target.clone())
}

/// The target that an answer names: alone, in quotes, or as `{"next": …}`; upper and lower case are the same.
fn chosen<'a>(choices: &'a [Target], text: &str) -> Option<&'a Target> {
    let text = crate::engine::model_call::without_fence(text);
    let next = serde_json::from_str::<Value>(text).ok().and_then(|answer| match answer {
        Value::Object(mut answer) => answer.remove("next"),
        other => Some(other),
    });
    let named = match next {
        Some(Value::String(next)) => next,
        _ => text.to_owned(),
    };
    let named = named.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '.'));
    choices.iter().find(|target| name(target).eq_ignore_ascii_case(named))
}
