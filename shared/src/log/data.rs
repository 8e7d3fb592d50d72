//! What entries say, by their kind: `data` of an entry in types.
//!
//! An entry is stored, sealed and sent as JSON, so that whoever passes it on loses nothing of it. Whoever makes one, or
//! wants to know what it says, does so by [`EventData`]. A member that an earlier version did not write has a default.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonMap;
use crate::definition::Effect;
use crate::deputy::Deputyship;
use crate::error::RunError;
use crate::feedback::Feedback;
use crate::grant::Grant;
use crate::id::{FlowId, NodeId, ReviewId, StepId, TokenId, Username};
use crate::request::Request;
use crate::review::Review;
use crate::run::{AgentCall, RunSummary, Step};
use crate::time::Timestamp;

use super::agents::{SpecialistMade, StrategyChanged};
use super::change::{LoggedIn, LoginFailed, ReviewChange, UserChanged};
use super::record::{EntriesErased, HeadAccepted, RunsArchived, Unreadable, UserErased};

macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident($data:ty) = $word:literal),+ $(,)?) => {
        /// What an entry tells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum EntryKind {
            $($(#[$doc])* #[serde(rename = $word)] #[strum(serialize = $word)] $name,)+
        }

        /// What an entry says, as its kind has it.
        #[derive(Debug, Clone, PartialEq)]
        pub enum EventData {
            $($(#[$doc])* $name($data),)+
        }

        impl EventData {
            /// The kind of an entry that says this.
            pub fn kind(&self) -> EntryKind {
                match self { $(Self::$name(_) => EntryKind::$name,)+ }
            }

            /// The members of `data`.
            pub fn to_json(&self) -> JsonMap {
                let json = match self { $(Self::$name(data) => serde_json::to_value(data),)+ };
                match json {
                    Ok(Value::Object(members)) => members,
                    // Every type below is a struct of strings, numbers and JSON values, which cannot fail.
                    _ => JsonMap::new(),
                }
            }

            /// What an entry of this kind says. An error where its data are not what this version knows.
            pub(super) fn read(kind: EntryKind, data: &JsonMap) -> serde_json::Result<Self> {
                Ok(match kind { $(EntryKind::$name => Self::$name(Deserialize::deserialize(data)?),)+ })
            }
        }
    };
}

entries! {
    /// A run started; `data.run`.
    RunStarted(OfRun) = "run.started",
    /// A run goes on after it waited; `data.run`.
    RunResumed(OfRun) = "run.resumed",
    /// A run waits for a person; `data.run`.
    WorkflowWaiting(OfRun) = "workflow.waiting",
    /// A run completed, since no branch is left; `data.run`, `data.output`.
    RunCompleted(RunCompleted) = "run.completed",
    /// A run ended with an error; `data.run`, whose `error` says why.
    RunFailed(OfRun) = "run.failed",
    /// Somebody cancelled a run; `data.run`, `data.reason` (null where none was given).
    RunCancelled(RunCancelled) = "run.cancelled",
    /// A node was entered; `data.step`.
    StepStarted(OfStep) = "step.started",
    /// A step is tried again later; `data.step`, `data.error`, `data.due_at`.
    StepRetrying(StepRetrying) = "step.retrying",
    /// `data.step`, `data.writes` (the state keys that it wrote).
    StepCompleted(StepCompleted) = "step.completed",
    /// A step failed and is not tried again; `data.step`, whose `error` says why. The run may go on all the same.
    StepFailed(OfStep) = "step.failed",
    /// A model answered; `data.step_id`, `data.node`, `data.visit`, `data.turn`, `data.text`, `data.calls`, `data.usage`.
    /// `data.late` is true where the run was over by then, and nothing follows from it; where such a call failed,
    /// `data.error` stands in the place of text, calls and usage.
    ModelAnswered(Box<ModelAnswered>) = "model.answered",
    /// A tool was called with exactly these arguments; `data.step_id`, `data.node`, `data.call`, `data.tool`,
    /// `data.arguments`, `data.digest`, `data.result` or `data.error`; `data.late` as above.
    ToolExecuted(Box<ToolExecuted>) = "tool.executed",
    /// `data.review`; one that a handler resolved at once is resolved here already.
    ReviewRequested(OfReview) = "review.requested",
    /// Nobody has decided, and the time is nearly up; once before each deadline, with `data.review`.
    ReviewExpiring(OfReview) = "review.expiring",
    /// Content, votes, claims or comments changed, or nobody decided in time and others are asked too; `data.review`,
    /// `data.change` (`content`, `vote`, `voters`, `claim`, `release`, `comment`, `delegated`, `escalated`, `paused`, `asked`). With
    /// `content`, `data.voided` names whose votes are void; with `voters`, `data.lost` and `data.added` name who may no
    /// longer vote and who may now; `data.vote` is true where a vote changed the content, which its decision tells
    /// (`shown`). Nobody is named while votes are secret.
    ReviewUpdated(ReviewUpdated) = "review.updated",
    /// `data.review` (with its resolution, also when expired or withdrawn).
    ReviewResolved(OfReview) = "review.resolved",
    /// Somebody opened a review; `data.revision` and `data.digest`: what they were shown.
    ReviewViewed(ReviewViewed) = "review.viewed",
    /// `data.flow`, `data.version`, `data.digest`.
    FlowSaved(FlowSaved) = "flow.saved",
    /// Somebody was added; `data.username`, `data.roles`; `data.single_sign_on` where a sign-in added them.
    UserCreated(UserChanged) = "user.created",
    /// `data.username` and what changed, never a password.
    UserUpdated(UserChanged) = "user.updated",
    /// A guardrail found something in what leave was given for; `data.guardrail`, `data.effect` (`block`, `redact`,
    /// `warn`), `data.reason`; `data.review`, the id of the review, and `data.action` or `data.key`, where there is one.
    GuardrailFired(GuardrailFired) = "guardrail.fired",
    /// An agent made another one for its team; `data.node`, `data.role`, `data.by` (the agent), `data.instructions`.
    SpecialistMade(SpecialistMade) = "specialist.made",
    /// An agent changed how its team works; `data.node`, `data.from`, `data.to`, `data.rounds`, `data.by` (the agent),
    /// `data.reason`.
    StrategyChanged(StrategyChanged) = "strategy.changed",
    /// Somebody said how an agent of the run worked; `data.feedback`.
    FeedbackGiven(OfFeedback) = "feedback.given",
    /// Somebody allows later calls of a tool too; `data.grant`.
    GrantMade(OfGrant) = "grant.made",
    /// A call was approved by a grant; `data.grant`, `data.call`. The review that it would have asked follows, resolved.
    GrantUsed(GrantUsed) = "grant.used",
    /// A grant was taken back before its time; `data.grant`.
    GrantRevoked(OfGrant) = "grant.revoked",
    /// Somebody stands in for somebody else for a while; `data.deputy` (the person), `data.deputyship`.
    DeputyNamed(OfDeputy) = "deputy.named",
    /// They no longer do, or will not; `data.deputy`, `data.deputyship`.
    DeputyRemoved(OfDeputy) = "deputy.removed",
    /// `data.id`, `data.name`, `data.roles`.
    TokenCreated(TokenCreated) = "token.created",
    /// A token was revoked, and is refused from then on; `data.id`.
    TokenRevoked(TokenRevoked) = "token.revoked",
    /// A link that logs somebody in once was made; `data.username`.
    LinkCreated(LoggedIn) = "link.created",
    /// `data.username`; `data.link` is true where a one-time link let them in.
    SessionStarted(LoggedIn) = "session.started",
    /// Somebody logged out, ended one of their sessions, or replaced it by a new login; `data.username`.
    SessionEnded(SessionEnded) = "session.ended",
    /// A login failed; `data.username` where it is known, after single sign-on also `data.single_sign_on` and
    /// `data.reason`. A wrong password for a username that nobody has is not recorded.
    LoginFailed(LoginFailed) = "login.failed",
    /// In the place of what is stored here and cannot be read; `data.reason`.
    Unreadable(Unreadable) = "unreadable",
    /// An operator accepted that the record ends otherwise than it did, such as after a backup was restored;
    /// `data.previous` and `data.head`, each absent where nothing was sealed.
    HeadAccepted(HeadAccepted) = "audit.head_accepted",
    /// Finished runs were written to a file, and what the database has of them is removed from then on; `data.archive`,
    /// `data.file`, `data.position`, `data.bytes`, `data.digest`, `data.runs`, `data.first_ended_at`,
    /// `data.last_ended_at`, `data.entries` (the numbers of their entries in the record).
    RunsArchived(RunsArchived) = "runs.archived",
    /// The personal data of somebody's account were erased; `data.username` is the name that stands in the place of theirs
    /// from then on.
    UserErased(UserErased) = "user.erased",
    /// Older entries no longer have the name and the words of somebody who was erased; `data.erasure`, `data.username`,
    /// `data.entries` (their numbers in the record), `data.hashes` (what each hashes to since).
    EntriesErased(EntriesErased) = "entries.erased",
}

/// Declares what entries say. Every member is public; an `Option` without a value, an empty list and `false` are left
/// out.
macro_rules! data {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $member:ident: $type:ty,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[$field])* pub $member: $type,)+ }
    )+};
}

data! {
    /// Of a run.
    OfRun {
        /// As it is after the commit.
        run: Box<RunSummary>,
    }

    /// A run completed.
    RunCompleted {
        /// As it is after the commit.
        run: Box<RunSummary>,
        /// What it gives out.
        output: JsonMap,
    }

    /// A run was cancelled.
    RunCancelled {
        /// As it is after the commit.
        run: Box<RunSummary>,
        /// Why, in the words of who did it.
        #[serde(default)]
        reason: Option<String>,
    }

    /// Of a step.
    OfStep {
        /// As it is now.
        step: Step,
    }

    /// A step is tried again.
    StepRetrying {
        /// As it is now.
        step: Step,
        /// Why it failed.
        error: RunError,
        /// When it is tried again.
        due_at: Timestamp,
    }

    /// A step completed.
    StepCompleted {
        /// As it is now.
        step: Step,
        /// The keys of the state that it wrote, with their values.
        writes: JsonMap,
    }

    /// A call that a model asked for.
    ModelCall {
        /// The tool's name as the model wrote it; the agent may have no such tool.
        tool: String,
        /// With what; whatever the model said, which may be no object.
        arguments: Value,
    }

    /// What came of a call of a model.
    ModelAnswered {
        /// The visit of `node` in which the model was called.
        step_id: StepId,
        /// The node; in a called flow, the calls that lead to it come first: `check:2/review`.
        node: NodeId,
        /// The visit, from 1.
        visit: u32,
        /// The turn of the conversation, from 1.
        turn: u32,
        /// What it said; none where the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// What it asked to be called; none where the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        calls: Option<Vec<ModelCall>>,
        /// What it cost; none where the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<AgentCall>,
        /// Why the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<RunError>,
        /// The run, or the map that it belongs to, was over by then: nothing follows from it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    }

    /// What came of a call of a tool.
    ToolExecuted {
        /// The visit of `node` in which the tool was called.
        step_id: StepId,
        /// The node; in a called flow, the calls that lead to it come first: `check:2/review`.
        node: NodeId,
        /// The visit, from 1.
        visit: u32,
        /// The id of the call.
        call: String,
        /// The tool's name in the flow, or `delegate_to_<agent>` where the lead of a team called a member.
        tool: String,
        /// The arguments of the call, after edits by reviewers and redactions by guardrails.
        arguments: JsonMap,
        /// What was sent; none where nothing is.
        #[serde(default)]
        request: Option<Request>,
        /// Of the arguments and of what was sent.
        digest: String,
        /// What it answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<RunError>,
        /// The run, or the map that it belongs to, was over by then: nothing follows from it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    }

    /// Of a review.
    OfReview {
        /// As it is now, with its resolution where it is over.
        review: Box<Review>,
    }

    /// A review changed.
    ReviewUpdated {
        /// As it is now.
        review: Box<Review>,
        /// `data.change`, and the members that belong to it.
        #[serde(flatten)]
        change: ReviewChange,
    }

    /// Somebody opened a review.
    ReviewViewed {
        /// The review's title at that time; empty in entries of older versions.
        #[serde(default)]
        title: String,
        /// The revision that they were shown.
        revision: u32,
        /// The digest of what they were shown.
        digest: String,
    }

    /// A guardrail found something.
    GuardrailFired {
        /// The guardrail's name: a built-in one (`pii-redaction`, …) or one of the flow's own.
        guardrail: String,
        /// What it does.
        effect: Effect,
        /// Why, in words; never what was found.
        reason: String,
        /// The review whose decision it looked at; none for the output of a run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        review: Option<ReviewId>,
        /// The id of the action.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        /// The key of the edit or of the output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }

    /// What `feedback.given` tells.
    OfFeedback {
        /// As it was given.
        feedback: Box<Feedback>,
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

    /// Of a grant.
    OfGrant {
        /// As it was made.
        grant: Box<Grant>,
    }

    /// A call was approved by a grant.
    GrantUsed {
        /// As it was made.
        grant: Box<Grant>,
        /// The id of the call.
        call: String,
    }

    /// Of a deputy.
    OfDeputy {
        /// Who stands in.
        deputy: Username,
        /// For whom, and when.
        deputyship: Deputyship,
    }

    /// Somebody made a token.
    TokenCreated {
        /// The id by which the token is revoked; its secret is in no entry.
        id: TokenId,
        /// What it is for.
        name: String,
        /// The roles that it has.
        roles: Vec<String>,
    }

    /// A token was revoked.
    TokenRevoked {
        /// The token's id, as in `token.created`.
        id: TokenId,
    }

    /// Somebody logged out.
    SessionEnded {
        /// The person whose session it was, who is also the entry's actor.
        username: Username,
    }
}
