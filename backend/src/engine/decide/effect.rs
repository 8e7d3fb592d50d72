//! What a decision does to the run.

use shared::JsonMap;
use shared::decision::Decision;
use shared::definition::{ChoiceKind, NodeKind};
use shared::error::FlowCode;
use shared::id::{NodeId, ReviewId, Username};
use shared::review::Outcome;
use shared::run::Step;

use super::{Answer, Said, waits_for};
use crate::engine::branch::Arrival;
use crate::engine::builder::{Builder, failure};
use crate::engine::decision_scope::Remembered;
use crate::engine::guardrail::{PutIn, Rulings};
use crate::engine::scope;
use crate::engine::state::{Asked, Branch, Phase};

/// A decision that counts.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Counted<'a> {
    /// What was decided, as it was sent.
    pub decision: &'a Decision,
    /// What of it goes into the state.
    pub put_in: &'a PutIn,
    /// In whose name.
    pub by: &'a [Username],
}

impl Builder<'_> {
    /// Resolves a review by a decision that fits it, in the name of those who made it, and does what it says. None where
    /// no branch waits for it.
    pub(in crate::engine) fn carry_out(&mut self, id: ReviewId, said: Said, counted: Counted<'_>) -> Option<()> {
        let Counted { decision, by, .. } = counted;
        let asked = self.asked(id)?;
        let (number, Branch { phase, .. }) = self.take_branch(waits_for(id))?;
        match (phase, said) {
            (Phase::Human { step, .. }, Said::Node(answer)) => {
                self.merge_metadata(decision);
                self.human_decided(number, step, asked, answer, counted);
            }
            (phase @ (Phase::Agent { .. } | Phase::Tool { .. }), Said::Actions(decisions, instructions)) => {
                self.merge_metadata(decision);
                let rulings = self.rule_phase(&phase, &decisions);
                self.resolve(asked, Outcome::Decided, decision, by, &rulings);
                self.actions_decided(number, phase, id, rulings, instructions);
            }
            // What was said fits the review, and the review fits its phase: nothing else comes together.
            (phase, _) => {
                let node = phase.step()?.node.clone();
                self.settle(number, &node, phase);
                return None;
            }
        }
        Some(())
    }

    /// What somebody said beside a decision is known to all later steps. What the launch said stays as it was.
    fn merge_metadata(&mut self, decision: &Decision) {
        let state = &mut self.state;
        let added = decision.metadata.iter().filter(|(key, _)| !state.launch_metadata.contains(*key));
        state.context.metadata.extend(added.map(|(key, value)| (key.clone(), value.clone())));
    }

    fn human_decided(&mut self, number: u32, mut step: Step, asked: Asked, answer: Answer, counted: Counted<'_>) {
        let Counted { decision, put_in, by } = counted;
        let outcome = match answer {
            Answer::Accept(_) => Outcome::Accepted,
            Answer::Correct { .. } => Outcome::Corrected,
            Answer::Stop(_) => Outcome::Stopped,
            Answer::Text(_) => Outcome::Answered,
        };
        self.resolve(asked, outcome, decision, by, &Rulings::default());
        self.tell_put_in(asked.review, put_in);
        let edits = &put_in.edits;
        let (option, kind, text) = match &answer {
            Answer::Accept(option) | Answer::Stop(option) => (Some(option), Some(option.kind), None),
            Answer::Correct { option, text, .. } => (option.as_ref(), Some(ChoiceKind::Correct), text.as_deref()),
            Answer::Text(text) => (None, None, Some(put_in.text.as_deref().unwrap_or(text))),
        };
        let remembered = Remembered {
            option: option.map(|option| option.id.as_str()),
            kind,
            text,
            comment: decision.comment.as_deref(),
            edits,
            metadata: &decision.metadata,
            by,
            at: self.now,
            via: decision.via,
        };
        self.remember(&step.node, &remembered);
        step.note = Some(option.map_or_else(|| "free text".to_owned(), |option| option.label.clone()));
        match answer {
            Answer::Accept(_) => self.finish_step(number, step, edits),
            Answer::Text(text) => {
                let text = put_in.text.as_deref().unwrap_or(&text);
                let mut writes = self.answer_writes(&step.node, text, edits);
                writes.extend(edits.clone());
                self.finish_step(number, step, &writes);
            }
            Answer::Correct { message, .. } => {
                let source = self.flow.source_of(&step.node);
                self.complete_step(&mut step, &JsonMap::new());
                if let Some(node) = source {
                    self.arrivals.push_back(Arrival { correction: Some(message), ..Arrival::at(number, node) });
                }
            }
            Answer::Stop(option) => {
                let message = decision.comment.clone().filter(|comment| !comment.trim().is_empty());
                let message = message.or(option.message).unwrap_or(option.label);
                self.stop(number, step, message);
            }
        }
    }

    /// A person, or a timer that acts as one, stops the flow, or sends the branch to `on_reject`.
    pub(in crate::engine) fn stop(&mut self, number: u32, mut step: Step, message: String) {
        let on_reject = self.flow.node(&step.node).and_then(|node| match &node.kind {
            NodeKind::Human(human) => human.on_reject.clone(),
            _ => None,
        });
        if let Some(node) = on_reject {
            self.leave_for(number, step, &node);
        } else {
            let error = failure(FlowCode::FlowHumanRejected, &step.node, message);
            self.failed_step(&mut step, error.clone());
            self.fail_flow(&step.node, error);
        }
    }

    /// The answer goes to the node's write keys, except those that the same decision edits.
    fn answer_writes(&self, id: &NodeId, text: &str, edits: &JsonMap) -> JsonMap {
        let keys = self.flow.node(id).map(|node| scope::write_keys(self.flow, id, node)).unwrap_or_default();
        keys.into_iter().filter(|key| !edits.contains_key(key)).map(|key| (key, text.into())).collect()
    }
}
