//! The bodies and queries of the HTTP API.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
use crate::access::Absent;
pub use crate::account::{
    BeginSecondFactor, LinkSecret, LoginRequest, NewPassword, NewSecondFactor, RecoveryCodes, SecondFactorCode,
    SecondFactorState, SessionConfirmation, SessionInfo,
};
use crate::definition::Flow;
use crate::error::Mistake;
pub use crate::graph::{Graph, GraphEdge, GraphEdgeKind, GraphNode};
use crate::id::{FlowId, RunId, TokenId, Username};
pub use crate::inbox::ReviewQuery;
use crate::person_filter::PersonFilter;
use crate::review::Review;
use crate::run::{Context, Ending, RunStatus};
use crate::time::Timestamp;

/// The largest body that a request can have, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;

/// A page of a list, usually newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PageOf{T}"))]
pub struct Page<T> {
    /// The rows of this page, at most `limit` of them. A page may have fewer rows, or none, although another page
    /// follows: only `next_cursor` says whether one does.
    pub items: Vec<T>,
    /// The cursor of the next page; none: this is the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The default number of rows of a page.
pub const DEFAULT_LIMIT: u32 = 50;
/// The most rows of a page.
pub const MAX_LIMIT: u32 = 200;

/// A user, as everyone may see them.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct User {
    /// The unique name by which they log in and the API names them. It never changes; when the person is erased, a
    /// pseudonym replaces it.
    pub username: Username,
    /// The display name.
    pub display_name: Option<String>,
    /// The e-mail address; only admins and the person see it.
    pub email: Option<String>,
    /// System roles and the organisation's own.
    pub roles: Vec<String>,
    /// Whether they may log in.
    #[serde(default = "yes")]
    pub active: bool,
    /// The time at which the account was added.
    pub created_at: Timestamp,
    /// Whether they log in with the identity provider: they have no password, and their roles come from there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_sign_on: bool,
    /// The member ID in Slack, whose button presses count as this person's; only in `GET /api/v1/users`, and in the answer
    /// to a change of the person.
    pub slack_user_id: Option<String>,
    /// The people they currently stand in for; only in `/api/v1/me` and in the answer to a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<Absent>,
}

impl User {
    /// Creates a user who may log in and of whom nothing else is known.
    pub fn new(username: Username, roles: Vec<String>, created_at: Timestamp) -> Self {
        Self {
            username,
            display_name: None,
            email: None,
            roles,
            active: true,
            created_at,
            single_sign_on: false,
            slack_user_id: None,
            stands_for: Vec::new(),
        }
    }
}

fn yes() -> bool {
    true
}

/// `DELETE /api/v1/users/{username}/personal-data`: the progress of the erasure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Erasure {
    /// The pseudonym that replaces the username.
    pub username: Username,
    /// Whether nothing in the database names them any longer.
    pub done: bool,
    /// The number of archived runs that they launched; the files still name them, until the files are deleted.
    pub archived_runs: u64,
}

/// The body of `POST /api/v1/users`. In a session, it needs a recent login or confirmation.
#[serde_with::skip_serializing_none]
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewUser {
    /// The username to log in with. It cannot be changed later; `409` if another person has it.
    pub username: Username,
    /// 12 to 128 characters; common or easily guessed passwords are refused.
    pub password: String,
    /// The display name.
    pub display_name: Option<String>,
    /// The e-mail address.
    pub email: Option<String>,
    /// System roles and the organisation's own.
    #[serde(default)]
    pub roles: Vec<String>,
}

/// `PATCH /api/v1/users/{username}`: omitted members stay as they are. In a session, what gives access (a password, a new
/// role, a new address, a member ID, or letting the person log in again) needs a recent login or confirmation.
#[serde_with::skip_serializing_none]
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct UserPatch {
    /// A new password; ends all sessions, tokens and login links of the person.
    pub password: Option<String>,
    /// The display name.
    pub display_name: Option<String>,
    /// The e-mail address.
    pub email: Option<String>,
    /// All of their new roles.
    pub roles: Option<Vec<String>>,
    /// Whether they may log in.
    pub active: Option<bool>,
    /// The member ID in Slack, such as `U024BE7LH`; empty: removes it. `409` if it is another person's. A token may not
    /// change it, and nobody sets their own.
    pub slack_user_id: Option<String>,
}

/// A token for programs, without its secret.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Token {
    /// Names the token in `DELETE /api/v1/tokens/{id}`; it is not the secret.
    pub id: TokenId,
    /// The purpose of the token.
    pub name: String,
    /// Its creator, as whom it acts.
    pub owner: Username,
    /// Its roles, a subset of the creator's.
    pub roles: Vec<String>,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time at which it expires; missing: never.
    pub expires_at: Option<Timestamp>,
    /// The time of its last use, accurate to some minutes; missing: it was not used yet.
    pub last_used_at: Option<Timestamp>,
    /// The secret; only in the answer that created it.
    pub secret: Option<String>,
}

/// The body of `POST /api/v1/tokens`. Only a session may create a token, soon after a login or a confirmation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewToken {
    /// The purpose of the token.
    pub name: String,
    /// A subset of the creator's roles.
    pub roles: Vec<String>,
    /// The time at which the token expires, which must be in the future. Default: the latest time that the server's
    /// settings allow, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A version of a flow. `D` is the part of its definition that is read: the console needs little of it, and would
/// otherwise load the code that reads everything.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FlowVersion"))]
#[serde(bound(serialize = "D: Serialize", deserialize = "D: Deserialize<'de>"))]
pub struct FlowVersion<D = Flow> {
    /// The flow's id, the same in all its versions.
    pub id: FlowId,
    /// Its version, from 1.
    pub version: u32,
    /// The title of the flow.
    pub title: String,
    /// The description of the flow.
    pub description: Option<String>,
    /// JSON Schema of its input.
    pub input: Option<Value>,
    /// The parsed flow; omitted in lists.
    pub definition: Option<Box<D>>,
    /// The file as it was saved; omitted in lists.
    pub source: Option<String>,
    /// `sha256:` of the source.
    pub digest: String,
    /// The graph of the flow; omitted in lists.
    pub graph: Option<Graph>,
    /// The person who saved it.
    pub saved_by: Option<Username>,
    /// The time at which this version was saved.
    pub saved_at: Timestamp,
    /// Warnings; only in the answer to saving it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Mistake>,
}

/// The answer of `POST /api/v1/flows/validate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Validation {
    /// Whether the flow could be saved.
    pub valid: bool,
    /// Every error that prevents saving, with its line and column if they are known; empty if `valid` is true.
    pub errors: Vec<Mistake>,
    /// Warnings about valid but doubtful parts.
    pub warnings: Vec<Mistake>,
    /// The graph of the flow, if it can be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
}

/// The body of `POST /api/v1/runs`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Launch {
    /// The id of a saved flow; `404` if there is none.
    pub flow: FlowId,
    /// The version; default: the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The input, which is checked against the flow's `input`.
    #[serde(default)]
    pub input: JsonMap,
    /// On whose behalf the run is launched; templates and conditions read it as `context`. Default: empty.
    #[serde(default)]
    pub context: Context,
    /// The URL to which the end of the run is posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
}

impl Launch {
    /// Creates the launch of the newest version of a flow, without any input.
    pub fn new(flow: FlowId) -> Self {
        Self { flow, version: None, input: JsonMap::new(), context: Context::default(), callback_url: None }
    }
}

/// `POST /api/v1/runs/{id}/cancel` and `POST /api/v1/reviews/{id}/withdraw`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Reason {
    /// The reason, for the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The body of `POST /api/v1/reviews/{id}/comments`, for those who may decide the review while it is pending.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewComment {
    /// The comment: plain text.
    pub text: String,
}

/// The effect of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DecisionEffect {
    /// It counts, but the review is still pending.
    Recorded,
    /// The review is resolved.
    Resolved,
}

/// The answer to a decision or a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decided {
    /// The effect of the decision.
    pub outcome: DecisionEffect,
    /// The review after the decision.
    pub review: Review,
}

/// The query of `GET /api/v1/runs`, which lists the runs that the caller may see, newest first; a run must match every
/// filter.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct RunQuery {
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// Only failed runs that a decision or a deadline stopped, as the flow says.
    pub ending: Option<Ending>,
    /// Only for this flow.
    pub flow: Option<String>,
    /// Words in the flow's id and title, the topic, the name of the person who launched the run, and the run's id; all
    /// must occur, each at the beginning of a word. A beginning of the run's id is enough.
    pub q: Option<String>,
    /// Only runs that this person launched: `me`, or a username.
    pub requested_by: Option<PersonFilter>,
    /// Only runs that were launched at this time or later.
    pub started_after: Option<Timestamp>,
    /// Only runs that were launched before this time.
    pub started_before: Option<Timestamp>,
    /// The most rows of the page.
    pub limit: Option<u32>,
    /// The cursor at which the page begins.
    pub cursor: Option<String>,
}

impl RunQuery {
    /// Whether runs are searched for words, and not only filtered.
    pub fn has_words(&self) -> bool {
        self.q.as_ref().is_some_and(|q| !q.trim().is_empty())
    }
}

/// `GET /api/v1/log`: ascending.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct LogQuery {
    /// Only for this run.
    pub run: Option<RunId>,
    /// Only entries after this cursor; `end`: no entries, only the current cursor.
    pub after: Option<String>,
    /// The most rows of the page.
    pub limit: Option<u32>,
}

/// `GET /api/v1/audit`: newest first.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct AuditQuery {
    /// Only entries at this time or later.
    pub from: Option<Timestamp>,
    /// Only entries before this time.
    pub to: Option<Timestamp>,
    /// Only entries of this person.
    pub actor: Option<String>,
    /// Only entries of this kind, such as `review.resolved`.
    pub kind: Option<String>,
    /// Only these acts on reviews ([`crate::log::ReviewAct`]), separated by commas.
    pub act: Option<String>,
    /// Only for this run.
    pub run: Option<String>,
    /// Only for this review.
    pub review: Option<String>,
    /// Words to search for in the entry.
    pub q: Option<String>,
    /// The most rows of the page.
    pub limit: Option<u32>,
    /// The cursor at which the page begins.
    pub cursor: Option<String>,
}
