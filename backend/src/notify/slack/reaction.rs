//! Reactions to messages in channels: their meaning, and their events in Slack's Events API. A reaction names only the
//! message, so the content of the message is stored with its delivery.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::review::Review;

use super::Receipt;
use super::blocks::by_reaction;
use super::button::ButtonPress;

/// The reaction that accepts, by its name in Slack.
const ACCEPTS: &str = "white_check_mark";
/// The reaction that stops.
const STOPS: &str = "x";

/// What Slack's Events API sends that matters here.
#[derive(Debug, Clone)]
pub enum SlackEvent {
    /// Slack asks whether this is the address that an admin has set: it wants this text back.
    Challenge(String),
    /// Somebody has reacted to a message.
    Reaction(Reaction),
}

/// A reaction that may decide.
#[derive(Debug, Clone)]
pub struct Reaction {
    /// Who has reacted, by their member ID.
    pub user: String,
    /// Whether it accepts; else it stops.
    pub accepts: bool,
    /// The event that tells of it: the same however often it is sent. At most 255 bytes.
    pub event: Option<String>,
    message: Receipt,
}

/// What a message shows of its review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownReview {
    revision: u32,
    digest: String,
}

impl SlackEvent {
    /// Reads the body of a request; none where nothing follows from it.
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
            ACCEPTS => true,
            STOPS => false,
            _ => return None,
        };
        let message = serde_json::from_value(event["item"].clone()).ok()?;
        let id = text(&sent["event_id"]).filter(|id| id.len() <= 255);
        Some(Self::Reaction(Reaction { user: text(&event["user"])?, accepts, event: id, message }))
    }
}

impl Reaction {
    /// The message, as its delivery names it.
    pub fn receipt(&self) -> String {
        serde_json::to_string(&self.message).unwrap_or_default()
    }

    /// The channel in which the message stands.
    pub fn channel(&self) -> &str {
        &self.message.channel
    }

    /// The button that it stands for, on the message that showed this; none where no button of the review fits.
    pub fn press(&self, review: &Review, shown: ShownReview) -> Option<ButtonPress> {
        // What it shows now, the message does not: it stays as it was posted.
        if shown != ShownReview::of(review) {
            return None;
        }
        let (chosen, _) = by_reaction(review, self.accepts)?;
        let ShownReview { revision, digest } = shown;
        Some(ButtonPress { review: review.id, revision, digest, chosen })
    }
}

impl ShownReview {
    /// A review as it is now.
    pub fn of(review: &Review) -> Self {
        Self { revision: review.revision, digest: review.digest.clone() }
    }
}
