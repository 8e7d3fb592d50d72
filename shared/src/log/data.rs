//! The `data` of log entries, typed by their kind.
//!
//! An entry is stored, sealed and sent as JSON, so that nothing is lost when it is passed on. [`EventData`] creates and
//! reads it. A member that an earlier version did not write has a default.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::JsonMap;
use crate::definition::Effect;
use crate::deputy::Deputyship;
use crate::error::FlowError;
use crate::feedback::Feedback;
use crate::grant::Grant;
use crate::id::{FeedbackId, FlowId, NodeId, ReviewId, StepId, Username};
use crate::request::Request;
use crate::review::Review;
use crate::run::{AgentCall, RunSummary, Step};
use crate::time::Timestamp;

use super::agents::{SpecialistMade, StrategyChanged};
use super::change::{LoggedIn, LoginFailed, ReviewChange, UserChanged};
use super::credential::{SessionEnded, TokenCreated, TokenRevoked};
use super::record::{EntriesErased, HeadAccepted, RunsArchived, Unreadable, UserErased};

macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident($data:ty) = $word:literal),+ $(,)?) => {
        /// The kind of an entry.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum EntryKind {
            $($(#[$doc])* #[serde(rename = $word)] #[strum(serialize = $word)] $name,)+
        }

        /// The data of an entry, by kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum EventData {
            $($(#[$doc])* $name($data),)+
        }

        impl EventData {
            /// Returns the kind of an entry with this data.
            pub fn kind(&self) -> EntryKind {
                match self { $(Self::$name(_) => EntryKind::$name,)+ }
            }

            /// Returns the members of `data`.
            pub fn to_json(&self) -> JsonMap {
                match serde_json::to_value(self) {
                    Ok(Value::Object(members)) => members,
                    // Cannot happen: every type below is a struct of strings, numbers and JSON values, which becomes an
                    // object.
                    _ => JsonMap::new(),
                }
            }

            /// Reads the data of an entry of this kind. Fails if this version does not know their form.
            pub fn read(kind: EntryKind, data: &JsonMap) -> serde_json::Result<Self> {
                Ok(match kind { $(EntryKind::$name => Self::$name(Deserialize::deserialize(data)?),)+ })
            }
        }

        /// Without the kind: as `data` of an entry.
        impl Serialize for EventData {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$name(data) => data.serialize(serializer),)+ }
            }
        }
    };
}

entries! {
    /// A run started; `data.run`.
    RunStarted(OfRun) = "run.started",
    /// A run continues after it waited; `data.run`.
    RunResumed(OfRun) = "run.resumed",
    /// A run waits for a person; `data.run`.
    WorkflowWaiting(OfRun) = "workflow.waiting",
    /// A run completed because no branch is left; `data.run`, `data.output`.
    RunCompleted(RunCompleted) = "run.completed",
    /// A run ended with an error; `data.run` with its `error`.
    RunFailed(OfRun) = "run.failed",
    /// A run was cancelled; `data.run`, `data.reason` (null if none was given).
    RunCancelled(RunCancelled) = "run.cancelled",
    /// A node was entered; `data.step`.
    StepStarted(OfStep) = "step.started",
    /// A step is retried later; `data.step`, `data.error`, `data.due_at`.
    StepRetrying(StepRetrying) = "step.retrying",
    /// A step completed; `data.step`, `data.writes` (the state keys that it wrote).
    StepCompleted(StepCompleted) = "step.completed",
    /// A step failed and is not retried; `data.step` with its `error`. The run may continue nevertheless.
    StepFailed(OfStep) = "step.failed",
    /// A model answered; `data.step_id`, `data.node`, `data.visit`, `data.turn`, `data.text`, `data.calls`,
    /// `data.usage`. If a call failed that used tokens, `data.error` replaces text and calls. `data.late` is true if the
    /// run was already over, so that nothing follows from it.
    ModelAnswered(Box<ModelAnswered>) = "model.answered",
    /// A tool was called with exactly these arguments; `data.step_id`, `data.node`, `data.call`, `data.tool`,
    /// `data.arguments`, `data.digest`, `data.result` or `data.error`; `data.late` as above.
    ToolExecuted(Box<ToolExecuted>) = "tool.executed",
    /// A review was requested; `data.review`. If a handler resolved it at once, it is already resolved here.
    ReviewRequested(OfReview) = "review.requested",
    /// No one has decided, and the deadline is near; once before each deadline, with `data.review`.
    ReviewExpiring(OfReview) = "review.expiring",
    /// Content, votes, claims or comments changed, or no one decided in time and others are asked too; `data.review`,
    /// `data.change` (`content`, `vote`, `voters`, `claim`, `release`, `comment`, `delegated`, `reassigned`,
    /// `escalated`, `paused`, `asked`). With `content`, `data.voided` names the people whose votes are void; with `voters`, `data.lost` and
    /// `data.added` name those who may no longer vote and those who may vote now; `data.vote` is true if a vote changed
    /// the content (see `shown` of its decision). While votes are secret, no one is named.
    ReviewUpdated(ReviewUpdated) = "review.updated",
    /// A review was resolved; `data.review` (with its resolution, also if it expired or was withdrawn).
    ReviewResolved(OfReview) = "review.resolved",
    /// A person opened a review; `data.revision` and `data.digest` are what they were shown.
    ReviewViewed(ReviewViewed) = "review.viewed",
    /// A flow was saved; `data.flow`, `data.version`, `data.digest`.
    FlowSaved(FlowSaved) = "flow.saved",
    /// A person was added; `data.username`, `data.roles`; `data.single_sign_on` if a login added them.
    UserCreated(UserChanged) = "user.created",
    /// A person was changed; `data.username` and what changed, but never a password.
    UserUpdated(UserChanged) = "user.updated",
    /// A guardrail found something in what was approved; `data.guardrail`, `data.effect` (`block`, `redact`, `warn`),
    /// `data.reason`; if they apply, `data.review` (the id of the review) and `data.action` or `data.key`.
    GuardrailFired(GuardrailFired) = "guardrail.fired",
    /// An agent created a specialist; `data.node`, `data.role`, `data.by` (the agent), `data.instructions`.
    SpecialistMade(SpecialistMade) = "specialist.made",
    /// An agent changed the strategy of its team; `data.node`, `data.from`, `data.to`, `data.rounds`, `data.by` (the
    /// agent), `data.reason`.
    StrategyChanged(StrategyChanged) = "strategy.changed",
    /// Feedback on an agent of the run was given; `data.feedback`.
    FeedbackGiven(OfFeedback) = "feedback.given",
    /// Feedback was retracted, so agents are not told it any more; `data.feedback` (its id), `data.flow`, `data.agent`.
    FeedbackRetracted(FeedbackRetracted) = "feedback.retracted",
    /// Later calls of a tool were approved too; `data.grant`.
    GrantMade(OfGrant) = "grant.made",
    /// A grant approved a call; `data.grant`, `data.call`. The review that it would have requested follows, resolved.
    GrantUsed(GrantUsed) = "grant.used",
    /// A grant was revoked before it expired; `data.grant`.
    GrantRevoked(OfGrant) = "grant.revoked",
    /// A deputy was named; `data.deputy` (the person), `data.deputyship`.
    DeputyNamed(OfDeputy) = "deputy.named",
    /// A deputyship was ended; `data.deputy`, `data.deputyship`.
    DeputyRemoved(OfDeputy) = "deputy.removed",
    /// A token was created; `data.id`, `data.name`, `data.roles`.
    TokenCreated(TokenCreated) = "token.created",
    /// A token was revoked, and is refused from then on; `data.id`.
    TokenRevoked(TokenRevoked) = "token.revoked",
    /// A one-time login link was created; `data.username`.
    LinkCreated(LoggedIn) = "link.created",
    /// A login; `data.username`; `data.link` is true for a one-time link.
    SessionStarted(LoggedIn) = "session.started",
    /// A person logged out, ended one of their sessions, or replaced it by a new login; `data.username`.
    SessionEnded(SessionEnded) = "session.ended",
    /// A person confirmed, with their password, that their session is theirs; `data.username`, `data.second_factor`.
    SessionConfirmed(LoggedIn) = "session.confirmed",
    /// A login failed; `data.username` if it is known, after single sign-on also `data.single_sign_on` and
    /// `data.reason`. A wrong password for an unknown username is not recorded. `data.in_session` is true if somebody
    /// in a session failed to prove that it is theirs, `data.wrong_code` if only the code was wrong.
    LoginFailed(LoginFailed) = "login.failed",
    /// Replaces a stored entry that cannot be read; `data.reason`.
    Unreadable(Unreadable) = "unreadable",
    /// An operator accepted another head of the audit log, for example after restoring a backup; `data.previous` and
    /// `data.head`, each absent if nothing was sealed.
    HeadAccepted(HeadAccepted) = "audit.head_accepted",
    /// Finished runs were written to a file, and are then removed from the database; `data.archive`,
    /// `data.file`, `data.position`, `data.bytes`, `data.digest`, `data.runs`, `data.first_ended_at`,
    /// `data.last_ended_at`, `data.entries` (the numbers of their entries in the audit log).
    RunsArchived(RunsArchived) = "runs.archived",
    /// The personal data of an account were erased; `data.username` is the pseudonym that replaces the username.
    UserErased(UserErased) = "user.erased",
    /// The name and the words of an erased person were removed from older entries; `data.erasure`, `data.username`,
    /// `data.entries` (their numbers in the audit log), `data.hashes` (the new hash of each).
    EntriesErased(EntriesErased) = "entries.erased",
}

/// Declares the data of entries. Every member is public; an `Option` without a value, an empty list and `false` are
/// omitted.
macro_rules! data {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $member:ident: $type:ty,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[$field])* pub $member: $type,)+ }
    )+};
}

data! {
    /// The data of an entry about a run.
    OfRun {
        /// The run after the commit.
        run: Box<RunSummary>,
    }

    /// A run completed.
    RunCompleted {
        /// The run after the commit.
        run: Box<RunSummary>,
        /// The output of the run.
        #[serde(serialize_with = "crate::user_data::members")]
        output: JsonMap,
    }

    /// A run was cancelled.
    RunCancelled {
        /// The run after the commit.
        run: Box<RunSummary>,
        /// The reason that was given.
        reason: Option<String>,
    }

    /// The data of an entry about a step.
    OfStep {
        /// The step after the commit.
        step: Step,
    }

    /// The data of a retry.
    StepRetrying {
        /// The step after the commit.
        step: Step,
        /// The error of the failed attempt.
        error: FlowError,
        /// The time of the next attempt.
        due_at: Timestamp,
    }

    /// A step completed.
    StepCompleted {
        /// The step after the commit.
        step: Step,
        /// The state keys that it wrote, with their values.
        #[serde(serialize_with = "crate::user_data::members")]
        writes: JsonMap,
    }

    /// A call that a model asked for.
    ModelCall {
        /// The tool's name as the model wrote it; the agent may have no such tool.
        tool: String,
        /// The arguments as the model wrote them, which may not be an object.
        #[serde(serialize_with = "crate::user_data::value")]
        arguments: Value,
    }

    /// The result of a model call.
    #[serde_with::skip_serializing_none]
    ModelAnswered {
        /// The visit of `node` in which the model was called.
        step_id: StepId,
        /// The node; in a called flow, the calls that lead to it come first: `check:2/review`.
        node: NodeId,
        /// The visit, from 1.
        visit: u32,
        /// The turn of the conversation, from 1.
        turn: u32,
        /// What the model was told since its last answer in this conversation, whole: the prompt, a correction, or what
        /// was wrong with that answer. Results of tools are in `tool.executed`. Absent if the result came too late.
        input: Option<String>,
        /// The text of the answer; `None` if the call failed.
        text: Option<String>,
        /// The tool calls that the model requested; `None` if the call failed.
        calls: Option<Vec<ModelCall>>,
        /// The usage; `None` if the call failed without any.
        usage: Option<AgentCall>,
        /// The error; `None` if the call succeeded.
        error: Option<FlowError>,
        /// Whether the run, or the map that it belongs to, was already over, so that nothing follows from it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    }

    /// The result of a tool call.
    ToolExecuted {
        /// The visit of `node` in which the tool was called.
        step_id: StepId,
        /// The node; in a called flow, the calls that lead to it come first: `check:2/review`.
        node: NodeId,
        /// The visit, from 1.
        visit: u32,
        /// The id of the call.
        call: String,
        /// The tool's name in the flow, or `delegate_to_<agent>` if the lead of a team called a member.
        tool: String,
        /// The arguments of the call, after edits by reviewers and redactions by guardrails.
        #[serde(serialize_with = "crate::user_data::value")]
        arguments: JsonMap,
        /// The request that was sent; `None` if there was none.
        request: Option<Request>,
        /// The digest of the arguments and of the request.
        digest: String,
        /// The result; `None` if the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(serialize_with = "crate::user_data::value")]
        result: Option<Value>,
        /// The error; `None` if the call succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<FlowError>,
        /// Whether the run, or the map that it belongs to, was already over, so that nothing follows from it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    }

    /// The data of an entry about a review.
    OfReview {
        /// The review after the commit, with its resolution if it is over.
        review: Box<Review>,
    }

    /// A review changed.
    ReviewUpdated {
        /// The review after the commit.
        review: Box<Review>,
        /// `data.change`, and the members that belong to it.
        #[serde(flatten)]
        change: ReviewChange,
    }

    /// The data of a view of a review.
    ReviewViewed {
        /// The review's title at that time; empty in entries of older versions.
        #[serde(default)]
        title: String,
        /// The revision that the person was shown.
        revision: u32,
        /// The digest of that revision.
        digest: String,
        /// Whether a token of the person read it, which does not mean that they saw it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        token: bool,
    }

    /// A guardrail found something.
    #[serde_with::skip_serializing_none]
    GuardrailFired {
        /// The guardrail's name: a built-in one (`pii-redaction`, …) or one of the flow's own.
        guardrail: String,
        /// What the guardrail did.
        effect: Effect,
        /// The reason in words, without the content that was found.
        reason: String,
        /// The review whose decision was checked; `None` for the output of a run.
        review: Option<ReviewId>,
        /// The id of the action that was checked; `None` for an edit or an output.
        action: Option<String>,
        /// The state key of the edit or output that was checked; `None` for an action.
        key: Option<String>,
    }

    /// The data of `feedback.given`.
    OfFeedback {
        /// The feedback as it was given.
        feedback: Box<Feedback>,
    }

    /// Retracted feedback.
    FeedbackRetracted {
        /// The id of the feedback; the entry `feedback.given` has its text.
        feedback: FeedbackId,
        /// The flow of the agent.
        flow: FlowId,
        /// The agent that the feedback is about.
        agent: String,
    }

    /// A version of a flow.
    FlowSaved {
        /// The id under which the flow was saved.
        flow: FlowId,
        /// The version, from 1.
        version: u32,
        /// `sha256:` of the source, as in [`crate::api::FlowVersion::digest`].
        digest: String,
    }

    /// The data of an entry about a grant.
    OfGrant {
        /// The grant as it was made.
        grant: Box<Grant>,
    }

    /// The data of an approval by a grant.
    GrantUsed {
        /// The grant as it was made.
        grant: Box<Grant>,
        /// The id of the call.
        call: String,
    }

    /// The data of an entry about a deputy.
    OfDeputy {
        /// The person who stands in.
        deputy: Username,
        /// The person they stand in for, and the time.
        deputyship: Deputyship,
    }
}
