//! The payload of a button: the choice, and the revision and digest of the review that was shown. The commit checks all
//! of them, so a press on an old message is refused if the review has changed or is over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::id::ReviewId;
use shared::review::Review;

/// A press of a button, as the button's value holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ButtonPress {
    /// The review that the button decides.
    #[serde(rename = "r")]
    pub review: ReviewId,
    /// The revision that was shown.
    #[serde(rename = "v")]
    pub revision: u32,
    /// The digest of what was shown.
    #[serde(rename = "d")]
    pub digest: String,
    /// The choice.
    #[serde(rename = "c")]
    pub chosen: ButtonChoice,
    /// Whether the person is asked for a reason before this counts.
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_reason: bool,
    /// The reason that they gave. No button holds one.
    #[serde(skip)]
    pub reason: Option<String>,
}

/// The choice that a button stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ButtonChoice {
    /// The option with this id.
    Option(String),
    /// Every action is approved.
    Approve,
    /// Every action is rejected.
    Reject,
}

impl ButtonPress {
    /// Makes a decision of it. The verdict names the review's current actions: if the digest matches, they are the ones
    /// that were shown, and otherwise the decision is refused.
    pub fn request(self, review: &Review) -> DecisionRequest {
        let each = |decision: ActionDecision| {
            let decisions: BTreeMap<_, _> =
                review.actions.iter().map(|action| (action.id.clone(), decision.clone())).collect();
            Verdict::Actions { decisions, instructions: None }
        };
        let (verdict, comment) = match self.chosen {
            ButtonChoice::Option(option) => (Verdict::Choose { option, fields: JsonMap::new() }, self.reason),
            ButtonChoice::Approve => (each(ActionDecision::APPROVE), self.reason),
            ButtonChoice::Reject => (each(ActionDecision::Reject { message: self.reason }), None),
        };
        DecisionRequest {
            revision: self.revision,
            digest: self.digest,
            verdict,
            edits: JsonMap::new(),
            comment,
            metadata: JsonMap::new(),
        }
    }
}
