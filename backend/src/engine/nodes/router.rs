//! Routers: only `next`, or an agent that chooses among the targets that have visits left.

use shared::JsonMap;
use shared::definition::{RouterNode, Target};
use shared::error::FlowError;
use shared::run::Step;

use crate::engine::answer::listed;
use crate::engine::builder::Builder;
use crate::engine::conversation::{Conversation, Message, Purpose};
use crate::engine::next::StepEnd;
use crate::engine::scope::Visit;

impl Builder<'_> {
    /// Enters a router: follows `next`, or starts the agent that chooses among the targets. `Err` if the step fails.
    pub(in crate::engine) fn enter_router(
        &mut self,
        branch: u32,
        step: Step,
        router: &RouterNode,
    ) -> Result<(), FlowError> {
        let Some(agent) = &router.agent else {
            self.finish_step(branch, step, JsonMap::new());
            return Ok(());
        };
        let targets = self.targets(&step.node, step.visit)?;
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
            self.end(branch, step, StepEnd::Chose { targets: vec![only] });
            return Ok(());
        }
        let prompt = self.router_prompt(&step, router)?;
        let text = format!("{prompt}\n\n{}{}", self.described(&step, &choices), request(&choices));
        let conversation = self.converse(&step, agent, vec![Message::User { text }])?;
        self.begin(branch, step, Conversation { purpose: Purpose::Choice(choices), ..conversation });
        Ok(())
    }

    /// Returns the descriptions of the targets, one per line.
    fn described(&self, step: &Step, choices: &[Target]) -> String {
        let flow = &self.flow.of(&step.node).flow;
        let lines = choices.iter().filter_map(|target| {
            let Target::Node(node) = target else { return None };
            let description = flow.nodes.get(node)?.description.as_ref()?;
            Some(format!("- {node}: {description}\n"))
        });
        let lines: String = lines.collect();
        if lines.is_empty() { lines } else { lines + "\n" }
    }

    fn router_prompt(&self, step: &Step, router: &RouterNode) -> Result<String, FlowError> {
        match &router.prompt {
            Some(template) => self.render(step, template, Visit::default()),
            None => Ok(format!("Choose where to go next.\n\n{}", self.material(step))),
        }
    }

    /// Completes a router's step with the target that its agent, or somebody in its place, has chosen.
    pub(super) fn chose(&mut self, branch: u32, mut step: Step, target: Target) {
        step.note = Some(String::from(target.clone()));
        self.end(branch, step, StepEnd::Chose { targets: vec![target] });
    }
}

fn request(choices: &[Target]) -> String {
    format!("Answer with exactly one of: {}", listed(choices))
}
