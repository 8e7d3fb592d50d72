//! What a decision does to the run.

use serde_json::json;
use shared::JsonMap;
use shared::decision::Decision;
use shared::definition::{ChoiceKind, NodeKind};
use shared::error::FlowCode;
use shared::id::{NodeId, ReviewId};
use shared::review::Outcome;
use shared::run::Step;

use super::{Said, waits_for};
use crate::engine::branch::Arrival;
use crate::engine::builder::{Builder, failure};
use crate::engine::scope;
use crate::engine::state::{Asked, Branch, Phase};

impl Builder<'_> {
    /// Resolves a review by a decision that fits it, and does what it says. None where no branch waits for it.
    pub(super) fn carry_out(&mut self, id: ReviewId, said: Said, decision: &Decision) -> Option<()> {
        let asked = self.asked(id)?;
        let (number, Branch { phase, .. }) = self.take_branch(waits_for(id))?;
        self.state.context.metadata.extend(decision.metadata.clone());
        match (phase, said) {
            (Phase::Human { step, .. }, said) => self.human_decided(number, step, asked, said, decision),
            (phase, Said::Actions(decisions, instructions)) => {
                self.resolve(asked, Outcome::Decided, decision);
                self.actions_decided(number, phase, id, &decisions, instructions);
            }
            // Nothing else fits a review of actions.
            (phase, _) => {
                let node = phase.step().map(|step| step.node.clone())?;
                self.settle(number, &node, phase);
                return None;
            }
        }
        Some(())
    }

    fn human_decided(&mut self, number: u32, mut step: Step, asked: Asked, said: Said, decision: &Decision) {
        let outcome = match said {
            Said::Accept(_) => Outcome::Accepted,
            Said::Correct { .. } => Outcome::Corrected,
            Said::Stop(_) => Outcome::Stopped,
            Said::Answer(_) => Outcome::Answered,
            Said::Actions(..) => Outcome::Decided,
        };
        self.resolve(asked, outcome, decision);
        let (option, kind, text) = match &said {
            Said::Accept(option) | Said::Stop(option) => (Some(option), Some(option.kind), None),
            Said::Correct { option, text, .. } => (option.as_ref(), Some(ChoiceKind::Correct), text.as_deref()),
            Said::Answer(text) => (None, None, Some(text.as_str())),
            Said::Actions(..) => (None, None, None),
        };
        let remembered = json!({
            "option": option.map(|option| &option.id),
            "kind": kind,
            "text": text,
            "comment": decision.comment,
            "edits": decision.edits,
            "metadata": decision.metadata,
            "by": [decision.by],
            "at": self.now,
            "via": decision.via,
        });
        self.state.decisions.insert(step.node.clone(), remembered);
        step.note = Some(option.map_or_else(|| "free text".to_owned(), |option| option.label.clone()));
        match said {
            Said::Accept(_) => self.finish_step(number, step, &decision.edits),
            Said::Answer(text) => {
                let mut writes = self.answer_writes(&step.node, &text, &decision.edits);
                writes.extend(decision.edits.clone());
                self.finish_step(number, step, &writes);
            }
            Said::Correct { message, .. } => {
                let source = self.flow.source_of(&step.node).cloned();
                self.complete_step(&mut step, &JsonMap::new());
                if let Some(node) = source {
                    self.arrivals.push_back(Arrival { correction: Some(message), ..Arrival::at(number, node) });
                }
            }
            Said::Stop(option) => {
                let message = decision.comment.clone().filter(|comment| !comment.trim().is_empty());
                let message = message.or(option.message).unwrap_or(option.label);
                self.stop(number, step, message);
            }
            Said::Actions(..) => self.leave(number, &step),
        }
    }

    /// A person, or a timer that acts as one, stops the run, or sends the branch to `on_reject`.
    pub(in crate::engine) fn stop(&mut self, number: u32, mut step: Step, message: String) {
        let on_reject = self.flow.node(&step.node).and_then(|node| match &node.kind {
            NodeKind::Human(human) => human.on_reject.clone(),
            _ => None,
        });
        if let Some(node) = on_reject {
            self.complete_step(&mut step, &JsonMap::new());
            self.arrivals.push_back(Arrival::at(number, node));
        } else {
            let error = failure(FlowCode::FlowHumanRejected, &step.node, message);
            self.failed_step(&mut step, error.clone());
            self.fail_run(error);
        }
    }

    /// The answer goes to the node's write keys, except those that the same decision edits.
    fn answer_writes(&self, id: &NodeId, text: &str, edits: &JsonMap) -> JsonMap {
        let keys = self.flow.node(id).map(|node| scope::write_keys(self.flow, id, node)).unwrap_or_default();
        keys.into_iter().filter(|key| !edits.contains_key(key)).map(|key| (key, text.into())).collect()
    }
}
