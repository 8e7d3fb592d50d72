//! The payload of a button: the choice, and the revision and digest of the review that was shown. The commit checks all
//! of them, so a press on an old message is refused if the review has changed or is over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
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
        let verdict = match self.chosen {
            ButtonChoice::Option(option) => Verdict::Choose { option, fields: JsonMap::new() },
            ButtonChoice::Approve => each(ActionDecision::APPROVE),
            ButtonChoice::Reject => each(ActionDecision::Reject { message: None }),
        };
        DecisionRequest {
            revision: self.revision,
            digest: self.digest,
            verdict,
            edits: JsonMap::new(),
            comment: None,
            metadata: JsonMap::new(),
        }
    }
}

/// A press of a button, as Slack sends it.
#[derive(Debug, Clone)]
pub struct Interaction {
    /// The person who pressed it, by their member ID in Slack.
    pub user: String,
    /// The payload of the button.
    pub press: ButtonPress,
    /// The URL for the reply.
    pub(in super::super) response_url: String,
}

impl Interaction {
    /// Reads the body of a request. `None` if it is not a press of a button that decides.
    pub fn read(body: &[u8]) -> Option<Self> {
        let (_, payload) = form_urlencoded::parse(body).find(|(name, _)| name == "payload")?;
        let payload: Value = serde_json::from_str(&payload).ok()?;
        if payload["type"] != "block_actions" {
            return None;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let press = serde_json::from_str(payload["actions"][0]["value"].as_str()?).ok()?;
        let response_url = text(&payload["response_url"]).unwrap_or_default();
        Some(Self { user: text(&payload["user"]["id"])?, press, response_url })
    }
}
