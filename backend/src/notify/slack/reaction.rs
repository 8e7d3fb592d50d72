//! Reactions to messages in channels: their meaning, and their events in Slack's Events API. A reaction names only the
//! message, so the content of the message is stored with its delivery.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::review::Review;

use super::Receipt;
use super::button::ButtonPress;
use super::decisions::by_reaction;

/// The events of Slack's Events API that are handled.
#[derive(Debug, Clone)]
pub enum SlackEvent {
    /// Slack verifies the address that an admin has set, and expects this text in response.
    Challenge(String),
    /// A reaction was added to a message.
    Reaction(Reaction),
}

/// A reaction that may decide.
#[derive(Debug, Clone)]
pub struct Reaction {
    /// The person who reacted, by their member ID in Slack.
    pub user: String,
    /// Whether the reaction accepts; otherwise it stops.
    pub accepts: bool,
    /// The id of the event, the same however often it is sent. `None` if it is missing or longer than 255 bytes.
    pub event: Option<String>,
    message: Receipt,
}

/// The version of a review that a message shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownReview {
    revision: u32,
    digest: String,
}

impl SlackEvent {
    /// Reads the body of a request. `None` if it is not an event that is handled.
    pub fn read(body: &[u8]) -> Option<Self> {
        let sent: Value = serde_json::from_slice(body).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if sent["type"] == "url_verification" {
            return text(&sent["challenge"]).map(Self::Challenge);
        }
        let event = &sent["event"];
        if sent["type"] != "event_callback" || event["type"] != "reaction_added" || event["item"]["type"] != "message" {
            return None;
        }
        let accepts = match event["reaction"].as_str()? {
            "white_check_mark" => true,
            "x" => false,
            _ => return None,
        };
        let message = serde_json::from_value(event["item"].clone()).ok()?;
        let id = text(&sent["event_id"]).filter(|id| id.len() <= 255);
        Some(Self::Reaction(Reaction { user: text(&event["user"])?, accepts, event: id, message }))
    }
}

impl Reaction {
    /// The receipt of the message, in the form in which its delivery stores it.
    pub fn receipt(&self) -> String {
        serde_json::to_string(&self.message).unwrap_or_default()
    }

    /// The channel of the message.
    pub fn channel(&self) -> &str {
        &self.message.channel
    }

    /// Returns the button press for which the reaction stands. `None` if the message does not show the review's current
    /// version, or no button fits.
    pub fn press(&self, review: &Review, shown: &ShownReview) -> Option<ButtonPress> {
        // A posted message still shows the version it was posted with.
        if *shown != ShownReview::of(review) {
            return None;
        }
        by_reaction(review, self.accepts)?.press
    }
}

impl ShownReview {
    /// The current version of a review.
    pub fn of(review: &Review) -> Self {
        Self { revision: review.revision, digest: review.digest.clone() }
    }
}
