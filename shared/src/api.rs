//! Bodies and queries of the HTTP API.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
use crate::access::Absent;
pub use crate::account::{
    LinkSecret, LoginRequest, NewPassword, NewSecondFactor, RecoveryCodes, SecondFactorCode, SecondFactorState,
    SessionInfo,
};
use crate::definition::Flow;
use crate::error::Mistake;
pub use crate::graph::{Graph, GraphEdge, GraphEdgeKind, GraphNode};
use crate::id::{FlowId, TokenId, Username};
pub use crate::inbox::ReviewQuery;
use crate::review::Review;
use crate::run::{Context, RunStatus};
use crate::time::Timestamp;

/// The largest body that a request can have, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;

/// A page of a list, in the order of that list: usually newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PageOf{T}"))]
pub struct Page<T> {
    /// The rows of this page, at most `limit` of them. A page may have fewer rows, or none, although another page
    /// follows: only `next_cursor` says whether one does.
    pub items: Vec<T>,
    /// Where the next page begins; none: this was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// How many rows a page has where nothing is said.
pub const DEFAULT_LIMIT: u32 = 50;
/// How many rows a page has at most.
pub const MAX_LIMIT: u32 = 200;

/// A person, as everybody may see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct User {
    /// The unique name by which they log in and the API names them. It never changes; when the person is erased, a
    /// pseudonym replaces it.
    pub username: Username,
    /// What people call them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Where to write to; only admins and the person see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// System roles and the organisation's own.
    pub roles: Vec<String>,
    /// Whether they may log in.
    #[serde(default = "yes")]
    pub active: bool,
    /// When the account was added.
    pub created_at: Timestamp,
    /// Whether they sign in by the identity provider: they have no password here, and their roles come from there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_sign_on: bool,
    /// For whom they stand in now; only in `/api/v1/me`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<Absent>,
}

fn yes() -> bool {
    true
}

/// `DELETE /api/v1/users/{username}/personal-data`: how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Erasure {
    /// The name that stands in the place of the person's, for ever.
    pub username: Username,
    /// Whether nothing in the database names them any more.
    pub done: bool,
    /// How many of the runs that they started are archived: the files still name them, until these are deleted.
    pub archived_runs: u64,
}

/// The body of `POST /api/v1/users`.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewUser {
    /// The name by which they log in. It cannot be changed later; `409` where another person has it.
    pub username: Username,
    /// 12 to 128 characters, and not one that is known or guessed soon.
    pub password: String,
    /// What people call them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Where to write to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// System roles and the organisation's own.
    #[serde(default)]
    pub roles: Vec<String>,
}

/// `PATCH /api/v1/users/{username}`: what is left out stays.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct UserPatch {
    /// A new password; ends all sessions, tokens and links of the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// What people call them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Where to write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// All roles that they have from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// Whether they may log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
}

/// A token for programs, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Token {
    /// Names the token in `DELETE /api/v1/tokens/{id}`; it is not the secret.
    pub id: TokenId,
    /// What it is for.
    pub name: String,
    /// Its maker, as whom it acts.
    pub owner: Username,
    /// The subset of the maker's roles that it has.
    pub roles: Vec<String>,
    /// When it was created; it is valid from then on.
    pub created_at: Timestamp,
    /// From this time on it is refused; missing: it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The secret; only in the answer that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The body of `POST /api/v1/tokens`. Only a session may create a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// A subset of the maker's roles.
    pub roles: Vec<String>,
    /// From this time on the token is refused; it must not be past. Left out: the latest time that the server's
    /// settings allow, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// One version of a flow. `D` is what is read of its definition: the console needs little of it, and would load the code
/// that reads all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FlowVersion"))]
#[serde(bound(serialize = "D: Serialize", deserialize = "D: Deserialize<'de>"))]
pub struct FlowVersion<D = Flow> {
    /// The flow's id, the same in all its versions.
    pub id: FlowId,
    /// Its version, from 1.
    pub version: u32,
    /// What people call it.
    pub title: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The parsed flow; left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<D>>,
    /// The file as it was saved; left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `sha256:` of the source.
    pub digest: String,
    /// The picture of it; left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// Who saved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_by: Option<Username>,
    /// The time at which this version was saved.
    pub saved_at: Timestamp,
    /// What is allowed but doubtful; only in the answer that saved it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Mistake>,
}

/// The answer of `POST /api/v1/flows/validate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Validation {
    /// Whether it could be saved.
    pub valid: bool,
    /// Every mistake that keeps the flow from being saved, with its line and column where they are known; empty where
    /// `valid` is true.
    pub errors: Vec<Mistake>,
    /// What is allowed but doubtful.
    pub warnings: Vec<Mistake>,
    /// The picture of it, where it can be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
}

/// The body of `POST /api/v1/runs`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Launch {
    /// The id of a saved flow; `404` where there is none.
    pub flow: FlowId,
    /// Which version; default: the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Checked against the flow's `input`.
    #[serde(default)]
    pub input: JsonMap,
    /// On whose behalf the run is started; templates and conditions read it as `context`. Default: empty.
    #[serde(default)]
    pub context: Context,
}

/// `POST /api/v1/runs/{id}/cancel` and `POST /api/v1/reviews/{id}/withdraw`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Reason {
    /// The reason, for those who see it in the record.
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

/// What a decision did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DecisionEffect {
    /// It counts; the review still waits.
    Recorded,
    /// The review is resolved.
    Resolved,
}

/// The answer to a decision or a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decided {
    /// What it did.
    pub outcome: DecisionEffect,
    /// The review as it is now.
    pub review: Review,
}

/// The query of `GET /api/v1/runs`, which lists runs newest first; a run must fit all that is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct RunQuery {
    /// Where they stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Of this flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// How many rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/v1/log`: ascending.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct LogQuery {
    /// Of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// After this entry; `end`: nothing, but where it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// `GET /api/v1/audit`: newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct AuditQuery {
    /// Only entries of this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Only entries before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Only entries of this person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Only entries of this kind, such as `review.resolved`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What was done to reviews ([`crate::log::ReviewAct`]): one, or several with commas between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
    /// Of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Of this review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// Words anywhere in the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// How many rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
