//! The messages of `GET /api/v1/live`, subprotocol `countersign.v1`: JSON text frames, tagged by `type`.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::api::Decided;
use crate::decision::DecisionRequest;
use crate::error::Problem;
use crate::id::{NodeId, ReviewId, RunId, TaskId, Username};
use crate::log::{Cursor, Entry};
use crate::review::Review;
use crate::time::Timestamp;

/// The WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "countersign.v1";

/// A message of a client. The server reads it piece by piece, so that each error has its place.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "messages are made one at a time and moved once")]
pub enum ClientMessage {
    /// Subscribes to entries; a later subscription replaces an earlier one.
    Subscribe {
        /// The last cursor that the client saw; none: a snapshot comes first.
        after: Option<Cursor>,
        /// `reviews`, `runs`, `run:<id>`, `inbox`; none: `reviews` and `runs`.
        topics: Option<Vec<Topic>>,
    },
    /// Decides a review.
    Decide {
        /// The idempotency key, which the reply repeats.
        r#ref: String,
        /// The id of the review; if it is no longer pending, the reply is `review_resolved`.
        review: ReviewId,
        /// The decision itself.
        #[serde(flatten)]
        decision: DecisionRequest,
    },
    /// Claims a review.
    Claim {
        /// A reference, which the reply repeats.
        r#ref: String,
        /// The id of a pending review; if someone else has claimed it, the reply is `review_claimed`.
        review: ReviewId,
    },
    /// Checks that the connection is alive.
    Ping,
}

/// A topic of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
#[serde(try_from = "String", into = "String")]
pub enum Topic {
    /// All reviews that the client may see.
    Reviews,
    /// The starts, waits and ends of all runs that the client may see.
    Runs,
    /// Everything about one run, including its token streams.
    Run(RunId),
    /// How many reviews wait for the client, and when its rights change.
    Inbox,
}

impl TryFrom<String> for Topic {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "reviews" => Ok(Self::Reviews),
            "runs" => Ok(Self::Runs),
            "inbox" => Ok(Self::Inbox),
            other => other
                .strip_prefix("run:")
                .and_then(|id| id.parse().ok())
                .map(Self::Run)
                .ok_or_else(|| format!("`{text}` is not a topic: expected reviews, runs, inbox or run:<id>")),
        }
    }
}

impl From<Topic> for String {
    fn from(topic: Topic) -> String {
        match topic {
            Topic::Reviews => "reviews".to_owned(),
            Topic::Runs => "runs".to_owned(),
            Topic::Inbox => "inbox".to_owned(),
            Topic::Run(id) => format!("run:{id}"),
        }
    }
}

/// A message of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The first message.
    Welcome {
        /// The user of the connection.
        user: Username,
        /// The current end of the log.
        cursor: Cursor,
        /// The server's clock, which deadlines refer to.
        server_time: Timestamp,
    },
    /// The pending reviews at one moment, before the entries that follow it.
    Snapshot {
        /// The place in the log at which the reviews were read; the entries that follow come after it.
        cursor: Cursor,
        /// The number of pending reviews.
        pending: u64,
        /// The first page of the reviews, most urgent first.
        #[serde(deserialize_with = "by_value")]
        reviews: Vec<Review>,
    },
    /// How many reviews wait for this person: with the topic `inbox`, after each subscription and whenever it changes.
    Inbox {
        /// The place in the log at which they were counted.
        cursor: Cursor,
        /// The number of pending reviews that they may see.
        pending: u64,
        /// The number of these reviews that they may decide.
        mine: u64,
        /// The number of these reviews that no run waits for.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        handed_over: u64,
    },
    /// The user's rights have changed: request `/me` again. With the topic `inbox`, before the `resync` that follows.
    Rights,
    /// A log entry of a subscribed topic that this person may see.
    Entry(#[serde(deserialize_with = "by_value")] Entry),
    /// A review is no longer visible to this person.
    #[serde(rename = "review.gone")]
    Gone {
        /// The place in the log.
        cursor: Cursor,
        /// The id of the review, which this socket was sent while it was pending.
        review_id: ReviewId,
    },
    /// The reply to a message with `ref`.
    Reply {
        /// The reference of the message.
        r#ref: String,
        /// `ok`, or `problem`.
        #[serde(flatten)]
        answer: Answer,
    },
    /// Text of a running agent; it is not committed, and may be dropped.
    Stream {
        /// The run, whose topic `run:<id>` is subscribed to.
        run: RunId,
        /// The node whose agent runs; in a called flow, the calls that lead to it come first: `check:2/review`.
        node: NodeId,
        /// The visit of the node, from 1.
        visit: u32,
        /// The agent that writes; `judge` for a judge.
        agent: String,
        /// The task of the model call, a different one for each turn: agents that write at the same time differ in it.
        task: TaskId,
        /// The attempt of the model call, from 1; a later one restarts the text.
        attempt: u32,
        /// Where the text begins, in bytes of the answer so far.
        offset: u64,
        /// The next piece of the answer, which begins at `offset`.
        text: String,
    },
    /// The client is too slow, or its rights have changed: subscribe again.
    Resync,
    /// The reply to `ping`.
    Pong {
        /// The current end of the log.
        cursor: Cursor,
        /// The server's clock.
        server_time: Timestamp,
    },
}

/// The reply to a message with `ref`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The message was executed.
    Ok(#[serde(deserialize_with = "by_value")] Box<Decided>),
    /// The message was refused; nothing was changed.
    Problem(#[serde(deserialize_with = "by_value")] Box<Problem>),
}

/// Deserializes the content of a tagged message from a [`Value`], as [`crate::client::read`] does. Otherwise, serde
/// would read it with a second copy of the code that reads a review.
fn by_value<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
}
