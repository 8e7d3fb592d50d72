//! Entries of the log: what was committed, in commit order. The live socket, the audit and `GET /api/v1/log` all show
//! the same entries.

use serde::{Deserialize, Serialize};

use crate::JsonMap;
use crate::id::{ReviewId, RunId, Username};
use crate::time::Timestamp;

/// An opaque place in the log. Only the server that made it can read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Cursor(pub String);

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal),+ $(,)?) => {
        /// What an entry tells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum EntryKind {
            $($(#[$doc])* #[serde(rename = $word)] #[strum(serialize = $word)] $name,)+
        }

        impl EntryKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];
        }
    };
}

kinds! {
    /// A run started; `data.run`.
    RunStarted = "run.started",
    /// A run goes on after it waited; `data.run`.
    RunResumed = "run.resumed",
    /// A run waits for a person; `data.run`.
    WorkflowWaiting = "workflow.waiting",
    /// `data.run`, `data.output`.
    RunCompleted = "run.completed",
    /// `data.run`.
    RunFailed = "run.failed",
    /// `data.run`, `data.reason`.
    RunCancelled = "run.cancelled",
    /// `data.step`.
    StepStarted = "step.started",
    /// A step is tried again later; `data.step`, `data.error`, `data.due_at`.
    StepRetrying = "step.retrying",
    /// `data.step`, `data.writes` (the state keys that it wrote).
    StepCompleted = "step.completed",
    /// `data.step`.
    StepFailed = "step.failed",
    /// A model answered; `data.step_id`, `data.node`, `data.visit`, `data.turn`, `data.text`, `data.calls`, `data.usage`.
    /// `data.late` is true where the run was over by then, and nothing follows from it; where such a call failed,
    /// `data.error` stands in the place of text, calls and usage.
    ModelAnswered = "model.answered",
    /// A tool was called with exactly these arguments; `data.step_id`, `data.node`, `data.call`, `data.tool`,
    /// `data.arguments`, `data.digest`, `data.result` or `data.error`; `data.late` as above.
    ToolExecuted = "tool.executed",
    /// `data.review`; one that a handler resolved at once is resolved here already.
    ReviewRequested = "review.requested",
    /// Nobody has decided, and the time is nearly up; once before each deadline, with `data.review`.
    ReviewExpiring = "review.expiring",
    /// Content, votes, claims or comments changed, or nobody decided in time and others are asked too; `data.review`,
    /// `data.change` (`content`, `vote`, `voters`, `claim`, `release`, `comment`, `delegated`, `escalated`). With
    /// `content`, `data.voided` names whose votes are void; with `voters`, `data.lost` and `data.added` name who may no
    /// longer vote and who may now; `data.vote` is true where a vote changed the content, which its decision tells
    /// (`shown`). Nobody is named while votes are secret.
    ReviewUpdated = "review.updated",
    /// `data.review` (with its resolution, also when expired or withdrawn).
    ReviewResolved = "review.resolved",
    /// Somebody opened a review; `data.revision` and `data.digest`: what they were shown.
    ReviewViewed = "review.viewed",
    /// `data.flow`, `data.version`, `data.digest`.
    FlowSaved = "flow.saved",
    /// `data.username`, `data.roles`.
    UserCreated = "user.created",
    /// `data.username` and what changed, never a password.
    UserUpdated = "user.updated",
    /// Somebody allows later calls of a tool too; `data.grant`.
    GrantMade = "grant.made",
    /// A call was approved by a grant; `data.grant`, `data.call`. The review that it would have asked follows, resolved.
    GrantUsed = "grant.used",
    /// A grant was taken back before its time; `data.grant`.
    GrantRevoked = "grant.revoked",
    /// Somebody stands in for somebody else for a while; `data.deputy` (the person), `data.deputyship`.
    DeputyNamed = "deputy.named",
    /// They no longer do, or will not; `data.deputy`, `data.deputyship`.
    DeputyRemoved = "deputy.removed",
    /// `data.id`, `data.name`, `data.roles`.
    TokenCreated = "token.created",
    /// `data.id`.
    TokenRevoked = "token.revoked",
    /// A link that logs somebody in once was made; `data.username`.
    LinkCreated = "link.created",
    /// `data.username`; `data.link` is true where a one-time link let them in.
    SessionStarted = "session.started",
    /// `data.username`.
    SessionEnded = "session.ended",
    /// `data.username`.
    LoginFailed = "login.failed",
    /// In the place of what is stored here and cannot be read; `data.reason`.
    Unreadable = "unreadable",
    /// An operator accepted that the record ends otherwise than it did, such as after a backup was restored;
    /// `data.previous` and `data.head`, each absent where nothing was sealed.
    HeadAccepted = "audit.head_accepted",
}

impl EntryKind {
    /// Whether it speaks of a review (`data.review`).
    pub fn is_review(self) -> bool {
        self.as_str().starts_with("review.")
    }

    /// Whether it speaks of a run or of one of its steps.
    pub fn is_run(self) -> bool {
        let word = self.as_str();
        ["run.", "step.", "workflow.", "model.", "tool."].iter().any(|prefix| word.starts_with(prefix))
    }
}

/// What is done to a review, by people or by time. The audit is filtered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewAct {
    /// It was resolved by a decision.
    Decision,
    /// Somebody voted, also where that resolved it.
    Vote,
    /// Somebody said something beside it.
    Comment,
    /// Somebody claimed or released it.
    Claim,
    /// Somebody handed it over.
    Delegation,
    /// It was taken back, or its run ended.
    Withdrawal,
    /// Its time was up, and that resolved it or asked others.
    Timeout,
}

impl ReviewAct {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Decision, Self::Vote, Self::Comment, Self::Claim, Self::Delegation, Self::Withdrawal, Self::Timeout];

    /// Whether an entry tells of it.
    pub fn is_told_by(self, event: &Event) -> bool {
        let told = match event.kind {
            EntryKind::ReviewUpdated => match event.data.get("change").and_then(|change| change.as_str()) {
                Some("vote") => Self::Vote,
                // What the run itself changed has no actor. A secret vote has none either, and says that it is one.
                Some("content") if event.actor.is_some() || event.data.contains_key("vote") => Self::Vote,
                Some("comment") => Self::Comment,
                Some("claim" | "release") => Self::Claim,
                Some("delegated") => Self::Delegation,
                Some("escalated") => Self::Timeout,
                _ => return false,
            },
            EntryKind::ReviewResolved => {
                let review = event.data.get("review");
                match review.and_then(|review| review.get("status")?.as_str()) {
                    Some("resolved") if self == Self::Vote => return was_voted_on_now(event),
                    Some("resolved") => Self::Decision,
                    Some("expired") => Self::Timeout,
                    Some("withdrawn") => Self::Withdrawal,
                    _ => return false,
                }
            }
            _ => return false,
        };
        self == told
    }
}

/// Whether the review of an entry takes votes, and one was cast in the same moment.
fn was_voted_on_now(event: &Event) -> bool {
    let Some(review) = event.data.get("review").filter(|review| review.get("voting").is_some()) else { return false };
    let votes = review.get("decisions").and_then(|votes| votes.as_array());
    let now = event.at.to_string();
    votes.into_iter().flatten().any(|vote| vote.get("at").is_some_and(|at| *at == now))
}

impl std::str::FromStr for ReviewAct {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|act| act.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is not one of {all}")
        })
    }
}

impl std::fmt::Display for EntryKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for EntryKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no kind of entry"))
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Its place in the log.
    pub cursor: Cursor,
    /// The number of the seal that holds it; told by the audit only, and none as long as it waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<u64>,
    /// What it tells, and what it tells it of.
    #[serde(flatten)]
    pub event: Event,
}

/// An entry before it has its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// What it tells.
    pub kind: EntryKind,
    /// When.
    pub at: Timestamp,
    /// The run that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The review that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_id: Option<ReviewId>,
    /// Who did it; nobody for the server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Username>,
    /// What goes with it, as the kind says.
    #[serde(default)]
    pub data: JsonMap,
}
