//! The payload of a button: the review as it was shown, and the choice. The commit checks all of it; an old message
//! answers a review that has changed or is over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::id::ReviewId;
use shared::review::Review;

/// A press of a button.
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
    /// What was chosen.
    #[serde(rename = "c")]
    pub chosen: ButtonChoice,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ButtonChoice {
    /// An option, by its id.
    Option(String),
    /// Every action is approved.
    Approve,
    /// Every action is rejected.
    Reject,
}

impl ButtonPress {
    /// The decision that it is. The actions are those of now: they are the ones that were shown where the digest is the
    /// same, and else the decision is refused.
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

/// What Slack sends where a button was pressed.
#[derive(Debug, Clone)]
pub struct Interaction {
    /// Who pressed it, by their member ID.
    pub user: String,
    /// What it says.
    pub press: ButtonPress,
    /// Where to answer.
    pub(in super::super) response_url: String,
}

impl Interaction {
    /// Reads the body of a request; none where it is of a button that decides nothing.
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
