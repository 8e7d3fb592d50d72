//! How people are told of reviews outside the console: what each of them chooses, and the messages that were given up.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::definition::Severity;
use crate::id::{DeliveryId, ReviewId, RunId};
use crate::time::{Span, Timestamp};

/// The most rules that one person has.
pub const MAX_RULES: usize = 20;

/// What people are told of: the kinds of entries of the log of the same names.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Occasion {
    /// Somebody is asked.
    #[serde(rename = "review.requested")]
    #[strum(serialize = "review.requested")]
    Requested,
    /// The time is nearly up.
    #[serde(rename = "review.expiring")]
    #[strum(serialize = "review.expiring")]
    Expiring,
    /// It is over: decided, expired or withdrawn.
    #[serde(rename = "review.resolved")]
    #[strum(serialize = "review.resolved")]
    Resolved,
}

/// Where people are told, beside the console and the browser.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Channel {
    /// A message in Slack, in which one can decide.
    Slack,
    /// A mail with a link.
    Email,
}

/// One thing that somebody wants: to be told of this, there, after so long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Rule {
    /// The channel by which they are told.
    pub channel: Channel,
    /// The occasions on which they are told.
    pub events: Vec<Occasion>,
    /// How long to wait; whoever is asked is then told only if it is still pending. Default: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
    /// Only of reviews of these severities; none: of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub severities: Vec<Severity>,
}

/// `GET` and `PUT /api/v1/notifications`: what somebody chose. Nobody is told anything before they choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Notifications {
    /// What they want to be told, where and when.
    pub rules: Vec<Rule>,
    /// Who they are in Slack, such as `U024BE7LH`: messages go there, and buttons that this person presses count as
    /// theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack_user_id: Option<String>,
    /// Where mails go; default: the address that admins gave them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// What this server can do; not to be set.
    pub available: Vec<Channel>,
}

/// The body of `POST /api/v1/notifications/test`: the caller is sent a message on this channel, at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct TestNotification {
    /// The channel by which they are told.
    pub channel: Channel,
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DeliveryStatus {
    /// It is to be sent, for the first time or again.
    Waiting,
    /// It was taken.
    Sent,
    /// There was nothing to tell any more.
    Dropped,
    /// It failed too often, or in a way that does not mend.
    GivenUp,
}

/// One message to one receiver, for admins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delivery {
    /// The same for every attempt; a webhook's receiver sees it as `webhook-id`.
    pub id: DeliveryId,
    /// `webhook`, `callback`, `slack`, `slack_channel` or `email`.
    pub channel: String,
    /// The name of the webhook, of the person or of the channel.
    pub target: String,
    /// What it tells.
    pub event: String,
    /// Of which review.
    pub review_id: ReviewId,
    /// Of which run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// How often it was tried.
    pub attempts: u32,
    /// What it tells was part of another message, or changed one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// Why it failed last, or was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it is tried next, or was ended.
    pub at: Timestamp,
}

/// The query of `GET /api/v1/notifications/deliveries`, which lists deliveries newest first; admins only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct DeliveryQuery {
    /// Where they stand; default: `given_up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<DeliveryStatus>,
    /// How many rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
