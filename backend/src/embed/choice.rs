//! The choice of a reviewer, before it is bound to the review that it answers.

use std::error::Error as StdError;

use serde_json::Value;
use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::error::Mistake;
use shared::review::Review;

/// The choice of a reviewer: a decision on exactly the revision that the reviewer was given.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    verdict: ChoiceVerdict,
    edits: JsonMap,
    comment: Option<String>,
    metadata: JsonMap,
    instructions: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum ChoiceVerdict {
    Verdict(Verdict),
    /// The same answer to every action.
    Each(ActionDecision),
}

impl Choice {
    /// Chooses an option by its id.
    pub fn option(id: impl Into<String>) -> Self {
        Self::verdict(Verdict::Choose { option: id.into(), fields: JsonMap::new() })
    }

    /// Gives free text: a correction if there are options, otherwise the answer; it rejects all gated calls.
    pub fn text(text: impl Into<String>) -> Self {
        Self::verdict(Verdict::Text { text: text.into() })
    }

    /// Approves every gated call as requested. Several critical calls must be answered one by one: see
    /// [`Choice::actions`].
    pub fn approve() -> Self {
        Self::new(ChoiceVerdict::Each(ActionDecision::APPROVE))
    }

    /// Rejects every gated call, and tells the agent why.
    pub fn reject(message: impl Into<String>) -> Self {
        Self::new(ChoiceVerdict::Each(ActionDecision::Reject { message: Some(message.into()) }))
    }

    /// Answers each gated call, by the id of its action; every call needs an answer.
    pub fn actions<I: Into<String>>(decisions: impl IntoIterator<Item = (I, ActionDecision)>) -> Self {
        let decisions = decisions.into_iter().map(|(id, decision)| (id.into(), decision)).collect();
        Self::verdict(Verdict::Actions { decisions, instructions: None })
    }

    /// Makes any verdict of a decision.
    pub fn verdict(verdict: Verdict) -> Self {
        Self::new(ChoiceVerdict::Verdict(verdict))
    }

    fn new(verdict: ChoiceVerdict) -> Self {
        Self { verdict, edits: JsonMap::new(), comment: None, metadata: JsonMap::new(), instructions: None }
    }

    /// Changes an editable value, with an option that accepts or an answer.
    pub fn edit(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.edits.insert(key.into(), value.into());
        self
    }

    /// Adds a comment for the audit log, and for the step that a correction runs again.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// Adds metadata for the context of all later steps.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Sets a value of an option, by the name of its field.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        if let ChoiceVerdict::Verdict(Verdict::Choose { fields, .. }) = &mut self.verdict {
            fields.insert(name.into(), value.into());
        }
        self
    }

    /// Adds instructions for the agent to the answers to its calls.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Returns the decision on this review. `Err`: several critical calls cannot be approved at once.
    pub(crate) fn on(self, review: &Review) -> Result<DecisionRequest, Mistake> {
        let mut verdict = match self.verdict {
            ChoiceVerdict::Verdict(verdict) => verdict,
            ChoiceVerdict::Each(ActionDecision::Approve { .. }) if review.is_one_by_one() => {
                let message = format!("{} calls are critical: answer each by its id", review.actions.len());
                return Err(Mistake::new("/verdict/decisions", "not_allowed", message));
            }
            ChoiceVerdict::Each(decision) => {
                let decisions = review.actions.iter().map(|action| (action.id.clone(), decision.clone())).collect();
                Verdict::Actions { decisions, instructions: None }
            }
        };
        if let Verdict::Actions { instructions, .. } = &mut verdict {
            *instructions = self.instructions.or(instructions.take());
        }
        Ok(DecisionRequest {
            revision: review.revision,
            digest: review.digest.clone(),
            verdict,
            edits: self.edits,
            comment: self.comment,
            metadata: self.metadata,
        })
    }
}

/// The reason why a reviewer decides nothing.
pub type Declined = Box<dyn StdError + Send + Sync>;

/// The return value of a reviewer function: a choice, or a result with one.
pub trait IntoChoice {
    /// Returns the choice, or the reason why there is none.
    fn into_choice(self) -> Result<Choice, Declined>;
}

impl IntoChoice for Choice {
    fn into_choice(self) -> Result<Choice, Declined> {
        Ok(self)
    }
}

impl<E: Into<Declined>> IntoChoice for Result<Choice, E> {
    fn into_choice(self) -> Result<Choice, Declined> {
        self.map_err(Into::into)
    }
}
