//! The effect of a decision on the subject that waits for it.

use std::collections::BTreeMap;

use serde_json::json;
use shared::JsonMap;
use shared::decision::{ActionDecision, Decision, Via};
use shared::definition::ChoiceKind;
use shared::id::{ReviewId, Username};
use shared::review::{Outcome, Review, ReviewOption};

use super::verdict::{CheckedVerdict, NodeVerdict};
use crate::engine::ask::decision_scope::Remembered;
use crate::engine::ask::guardrails::check::PutIn;
use crate::engine::builder::Builder;
use crate::engine::next::{NodeAnswer, QuestionAnswer, Then};
use crate::engine::question::Subject;

/// The parts of a decision that take effect, whoever made it.
#[derive(Clone, Copy)]
pub(in crate::engine::ask) struct Counted<'a> {
    /// The values that it puts in, as guardrails have left them.
    pub put_in: &'a PutIn,
    pub comment: Option<&'a str>,
    /// Metadata for all later steps.
    pub metadata: &'a JsonMap,
    /// The channel through which it came.
    pub via: Via,
    /// The people in whose name it is made; empty for a handler.
    pub by: &'a [Username],
}

impl Builder<'_> {
    /// Resolves a review by a decision that fits it, in the name of `by`. `None` if nothing waits for it.
    pub(in crate::engine::ask) fn carry_out(
        &mut self,
        id: ReviewId,
        said: CheckedVerdict,
        decision: &Decision,
        put_in: &PutIn,
        by: &[Username],
    ) -> Option<()> {
        let subject = self.state.question(id).filter(|question| question.pending)?.subject.clone();
        if self.pauses(id, &said) {
            return self.pause(id, decision);
        }
        let Decision { comment, metadata, via, .. } = decision;
        let counted = Counted { put_in, comment: comment.as_deref(), metadata, via: *via, by };
        let review = self.reviews.get(&id)?.clone();
        let (outcome, answer) = self.effect(&review, &subject, said, counted)?;
        self.resolve(id, outcome, decision, by, &answer);
        self.emit_edit_findings(id, put_in);
        self.answer(subject, answer);
        Some(())
    }

    /// Returns the outcome of a decision, and the answer to its subject. `None` if the verdict does not match the
    /// subject, which cannot be so for a decision that fits its review.
    pub(in crate::engine::ask) fn effect(
        &mut self,
        review: &Review,
        subject: &Subject,
        said: CheckedVerdict,
        counted: Counted<'_>,
    ) -> Option<(Outcome, QuestionAnswer)> {
        Some(match (subject, said) {
            (Subject::Node { .. }, CheckedVerdict::Node(verdict)) => {
                self.merge_metadata(counted.metadata);
                (outcome(&verdict), QuestionAnswer::Node(self.node_decided(verdict, counted)))
            }
            (Subject::Takeover { .. }, CheckedVerdict::Node(verdict)) => {
                (outcome(&verdict), QuestionAnswer::Written(counted.put_in.edits.clone()))
            }
            (Subject::Ask { .. } | Subject::Handoff { .. }, CheckedVerdict::Node(verdict)) => {
                self.merge_metadata(counted.metadata);
                let option = chosen(&verdict).map(|option| option.id.as_str());
                let reply = self.reply(subject, option, counted.comment, counted.put_in, counted.metadata, counted.by);
                (outcome(&verdict), self.guarded_reply(subject, option, reply))
            }
            (Subject::Ask { .. }, CheckedVerdict::Actions(decisions, instructions)) => {
                self.merge_metadata(counted.metadata);
                let answer = self.rule(review, subject, &decisions, instructions.as_deref());
                (Outcome::Decided, self.signed(answer, counted.comment, counted.by))
            }
            (
                Subject::Node { .. } | Subject::Takeover { .. } | Subject::Handoff { .. },
                CheckedVerdict::Actions(..),
            ) => return None,
            (_, CheckedVerdict::Actions(mut decisions, instructions)) => {
                self.merge_metadata(counted.metadata);
                if let (Subject::Agent { .. } | Subject::Output { .. }, Some(comment)) = (subject, counted.comment)
                    && !comment.trim().is_empty()
                {
                    give_reason(&mut decisions, comment);
                }
                (Outcome::Decided, self.rule(review, subject, &decisions, instructions.as_deref()))
            }
            _ => return None,
        })
    }

    fn node_decided(&self, verdict: NodeVerdict, counted: Counted<'_>) -> NodeAnswer {
        let Counted { put_in, comment, metadata, via, by } = counted;
        let edits = &put_in.edits;
        let (option, kind, text) = match &verdict {
            NodeVerdict::Accept(option) | NodeVerdict::Stop(option) => (Some(option), Some(option.kind), None),
            NodeVerdict::Refuse => (None, Some(ChoiceKind::Stop), None),
            NodeVerdict::Correct { option, text, .. } => (option.as_ref(), Some(ChoiceKind::Correct), text.as_deref()),
            NodeVerdict::Text(text) => (None, None, Some(put_in.text.as_deref().unwrap_or(text))),
        };
        let remembered = json!(Remembered {
            option: option.map(|option| option.id.as_str()),
            alternative: option.filter(|option| option.alternative).map(|option| option.id.as_str()),
            kind,
            text,
            comment,
            edits: edits.clone(),
            metadata: metadata.clone(),
            by,
            at: self.now,
            via,
        });
        let label = option.map(|option| option.label.as_str());
        let reason = comment.filter(|comment| !comment.trim().is_empty());
        // The reason of a handler that refuses says more than the option that stands for it.
        let what = if by.is_empty() && kind == Some(ChoiceKind::Stop) { reason.or(label) } else { label };
        let note = format!("{}{}", what.unwrap_or("free text"), handler_in_words(via));
        let then = match verdict {
            NodeVerdict::Accept(_) => Then::GoOn { edits: edits.clone() },
            NodeVerdict::Text(text) => Then::Write { text: put_in.text.clone().unwrap_or(text), edits: edits.clone() },
            NodeVerdict::Correct { message, .. } => Then::Correct { message },
            NodeVerdict::Stop(option) => {
                let message = reason.map(str::to_owned).or(option.message);
                Then::Stop { message: message.unwrap_or(option.label) }
            }
            NodeVerdict::Refuse => Then::Stop { message: reason.unwrap_or("Rejected.").to_owned() },
        };
        NodeAnswer { decision: remembered, note, then }
    }
}

/// Returns the option that was chosen, whatever its kind.
pub(in crate::engine::ask) fn chosen(verdict: &NodeVerdict) -> Option<&ReviewOption> {
    match verdict {
        NodeVerdict::Accept(option) | NodeVerdict::Stop(option) => Some(option),
        NodeVerdict::Correct { option, .. } => option.as_ref(),
        NodeVerdict::Refuse | NodeVerdict::Text(_) => None,
    }
}

/// Returns a suffix that says which kind of handler decided; empty for people.
fn handler_in_words(via: Via) -> &'static str {
    match via {
        Via::Auto => " (automatically)",
        Via::Judge => " (by a judge)",
        Via::Webhook => " (by a webhook)",
        Via::Human | Via::Slack | Via::Cli | Via::Timeout | Via::Run => "",
    }
}

fn outcome(verdict: &NodeVerdict) -> Outcome {
    match verdict {
        NodeVerdict::Accept(_) => Outcome::Accepted,
        NodeVerdict::Correct { .. } => Outcome::Corrected,
        NodeVerdict::Stop(_) | NodeVerdict::Refuse => Outcome::Stopped,
        NodeVerdict::Text(_) => Outcome::Answered,
    }
}

/// A rejection ends the step with a reason: if it has none of its own, the comment is the reason, as at a human node.
fn give_reason(decisions: &mut BTreeMap<String, ActionDecision>, comment: &str) {
    for decision in decisions.values_mut() {
        if let ActionDecision::Reject { message } = decision
            && message.as_deref().is_none_or(|message| message.trim().is_empty())
        {
            *message = Some(comment.to_owned());
        }
    }
}
