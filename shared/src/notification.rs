//! Notifications outside the console: the settings of each person, and the deliveries.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::definition::Severity;
use crate::id::{DeliveryId, ReviewId, RunId};
use crate::time::{Span, Timestamp};

/// The most rules per person.
pub const MAX_RULES: usize = 20;

/// The events of notifications, named like the kinds of log entries; a comment is a `review.updated` in the log. Those of
/// reviews come first, then those of runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Occasion {
    /// The person is asked.
    #[serde(rename = "review.requested")]
    #[strum(serialize = "review.requested")]
    Requested,
    /// The deadline is near.
    #[serde(rename = "review.expiring")]
    #[strum(serialize = "review.expiring")]
    Expiring,
    /// It is over: decided, expired or withdrawn.
    #[serde(rename = "review.resolved")]
    #[strum(serialize = "review.resolved")]
    Resolved,
    /// Somebody commented on it.
    #[serde(rename = "review.commented")]
    #[strum(serialize = "review.commented")]
    Commented,
    /// A run waits for people.
    #[serde(rename = "workflow.waiting")]
    #[strum(serialize = "workflow.waiting")]
    RunWaiting,
    /// A run has completed.
    #[serde(rename = "run.completed")]
    #[strum(serialize = "run.completed")]
    RunCompleted,
    /// A run has failed.
    #[serde(rename = "run.failed")]
    #[strum(serialize = "run.failed")]
    RunFailed,
    /// A run was cancelled.
    #[serde(rename = "run.cancelled")]
    #[strum(serialize = "run.cancelled")]
    RunCancelled,
}

impl Occasion {
    /// The events of reviews.
    pub const OF_REVIEWS: [Self; 4] = [Self::Requested, Self::Expiring, Self::Resolved, Self::Commented];

    /// Whether it is the end of a run.
    pub fn ends_run(self) -> bool {
        matches!(self, Self::RunCompleted | Self::RunFailed | Self::RunCancelled)
    }
}

/// The channels of notifications, besides the console and the browser.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Channel {
    /// A message in Slack with buttons to decide.
    Slack,
    /// A mail with a link.
    Email,
}

/// A notification rule: which events, on which channel, after which delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Rule {
    /// The channel of the message.
    pub channel: Channel,
    /// The events of the rule.
    pub events: Vec<Occasion>,
    /// The delay; after it, a request is sent only if it is still pending. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
    /// Only reviews of these severities; none: all reviews. Runs have no severity, so this does not limit them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub severities: Vec<Severity>,
}

/// `GET` and `PUT /api/v1/notifications`: the settings of a person.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Notifications {
    /// The rules that the person chose; none: they have chosen nothing, and `default_rules` apply.
    pub rules: Option<Vec<Rule>>,
    /// The member ID in Slack, such as `U024BE7LH`: messages go there, and its button presses count as this person's
    /// once they have confirmed it.
    /// Only an admin can set that of somebody else; people can remove theirs, and do so by settings without it.
    pub slack_user_id: Option<String>,
    /// Whether the person has confirmed that this member ID is theirs: only then its button presses count. Only they can
    /// confirm it, by setting this with the ID that an admin set; one that was set at the server's terminal is confirmed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub slack_confirmed: bool,
    /// The e-mail address; default: the address that an admin set.
    pub email: Option<String>,
    /// The channels that this server has; read-only.
    pub available: Vec<Channel>,
    /// The rules that this server's settings have for people who chose none; read-only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub default_rules: Vec<Rule>,
}

impl Notifications {
    /// Returns the rules that apply: those that the person chose, or those of the server.
    pub fn applied(&self) -> &[Rule] {
        self.rules.as_deref().unwrap_or(&self.default_rules)
    }

    /// Returns the person's own rules, to change them. At first, they are those of the server.
    pub fn own_rules(&mut self) -> &mut Vec<Rule> {
        self.rules.get_or_insert_with(|| self.default_rules.clone())
    }
}

/// The body of `POST /api/v1/notifications/test`, which sends the caller a message on this channel at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct TestNotification {
    /// The channel of the message.
    pub channel: Channel,
}

/// The status of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DeliveryStatus {
    /// It is waiting to be sent or retried.
    Waiting,
    /// It was accepted.
    Sent,
    /// It was no longer needed.
    Dropped,
    /// It failed too often, or permanently.
    GivenUp,
}

/// A message to one receiver, for admins.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delivery {
    /// The same for every attempt; a webhook's receiver sees it as `webhook-id`.
    pub id: DeliveryId,
    /// `webhook`, `callback`, `slack`, `slack_channel` or `email`.
    pub channel: String,
    /// The name of the webhook, of the person or of the channel.
    pub target: String,
    /// The event of the message.
    pub event: String,
    /// The review; none if the message is about a run.
    pub review_id: Option<ReviewId>,
    /// The run, if any.
    pub run_id: Option<RunId>,
    /// The status of the delivery.
    pub status: DeliveryStatus,
    /// The number of attempts.
    pub attempts: u32,
    /// Whether it became part of another message, or changed one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// The last error, or the reason why it was dropped.
    pub error: Option<String>,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time of the next attempt, or of its end.
    pub at: Timestamp,
}

/// The query of `GET /api/v1/notifications/deliveries`, which lists deliveries newest first; admins only.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct DeliveryQuery {
    /// Only deliveries with this status; default: `given_up`.
    pub status: Option<DeliveryStatus>,
    /// The most rows of the page.
    pub limit: Option<u32>,
    /// The cursor at which the page begins.
    pub cursor: Option<String>,
}
