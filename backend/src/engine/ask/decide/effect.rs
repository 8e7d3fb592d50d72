//! What a decision says to what waits for it.

use serde_json::json;
use shared::decision::Decision;
use shared::definition::ChoiceKind;
use shared::id::{ReviewId, Username};
use shared::review::Outcome;

use super::verdict::{NodeVerdict, Said};
use crate::engine::ask::decision_scope::Remembered;
use crate::engine::ask::guardrail::PutIn;
use crate::engine::builder::Builder;
use crate::engine::next::{Answer, NodeAnswer, Then};
use crate::engine::question::Subject;

/// A decision that counts.
#[derive(Clone, Copy)]
pub(in crate::engine::ask) struct Counted<'a> {
    /// What was decided, as it was sent.
    pub decision: &'a Decision,
    /// What of it goes into the state.
    pub put_in: &'a PutIn,
    /// In whose name.
    pub by: &'a [Username],
}

impl Builder<'_> {
    /// Resolves a review by a decision that fits it, in the name of those who made it. None where nothing waits for it.
    pub(in crate::engine::ask) fn carry_out(&mut self, id: ReviewId, said: Said, counted: Counted<'_>) -> Option<()> {
        let Counted { decision, by, put_in } = counted;
        let subject = self.state.question(id).filter(|question| question.is_pending())?.subject.clone();
        let (outcome, answer) = match (&subject, said) {
            (Subject::Node { .. }, Said::Node(verdict)) => {
                self.merge_metadata(decision);
                (outcome(&verdict), Answer::Node(self.node_decided(verdict, counted)))
            }
            (Subject::Ask { .. }, Said::Node(verdict)) => {
                self.merge_metadata(decision);
                (outcome(&verdict), Answer::Reply(self.reply(&subject, decision, put_in, by)))
            }
            (_, Said::Actions(decisions, instructions)) => {
                self.merge_metadata(decision);
                (Outcome::Decided, self.rule(&subject, &decisions, instructions))
            }
            // What was said fits the review, and the review its subject: nothing else comes together.
            _ => return None,
        };
        self.resolve(id, outcome, decision, by, answer.findings());
        self.tell_put_in(id, put_in);
        self.answer(subject, answer);
        Some(())
    }

    /// What somebody said beside a decision is known to all later steps. What the launch said stays as it was.
    fn merge_metadata(&mut self, decision: &Decision) {
        let state = &mut self.state;
        let added = decision.metadata.iter().filter(|(key, _)| !state.launch_metadata.contains(*key));
        state.context.metadata.extend(added.map(|(key, value)| (key.clone(), value.clone())));
    }

    fn node_decided(&self, verdict: NodeVerdict, counted: Counted<'_>) -> NodeAnswer {
        let Counted { decision, put_in, by } = counted;
        let edits = &put_in.edits;
        let (option, kind, text) = match &verdict {
            NodeVerdict::Accept(option) | NodeVerdict::Stop(option) => (Some(option), Some(option.kind), None),
            NodeVerdict::Correct { option, text, .. } => (option.as_ref(), Some(ChoiceKind::Correct), text.as_deref()),
            NodeVerdict::Text(text) => (None, None, Some(put_in.text.as_deref().unwrap_or(text))),
        };
        let remembered = json!(Remembered {
            option: option.map(|option| option.id.as_str()),
            kind,
            text,
            comment: decision.comment.as_deref(),
            edits,
            metadata: &decision.metadata,
            by,
            at: self.now,
            via: decision.via,
        });
        let note = Some(option.map_or_else(|| "free text".to_owned(), |option| option.label.clone()));
        let then = match verdict {
            NodeVerdict::Accept(_) => Then::GoOn { edits: edits.clone() },
            NodeVerdict::Text(text) => Then::Write { text: put_in.text.clone().unwrap_or(text), edits: edits.clone() },
            NodeVerdict::Correct { message, .. } => Then::Correct { message },
            NodeVerdict::Stop(option) => {
                let message = decision.comment.clone().filter(|comment| !comment.trim().is_empty());
                Then::Stop { message: message.or(option.message).unwrap_or(option.label) }
            }
        };
        NodeAnswer { decision: remembered, note, then }
    }
}

fn outcome(verdict: &NodeVerdict) -> Outcome {
    match verdict {
        NodeVerdict::Accept(_) => Outcome::Accepted,
        NodeVerdict::Correct { .. } => Outcome::Corrected,
        NodeVerdict::Stop(_) => Outcome::Stopped,
        NodeVerdict::Text(_) => Outcome::Answered,
    }
}
