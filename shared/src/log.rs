//! Entries of the log: what was committed, in commit order. The live socket, the audit and `GET /api/v1/log` all show
//! the same entries.

mod agents;
mod change;
mod data;
mod record;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
use crate::id::{ReviewId, RunId, Username};
use crate::notification::Occasion;
use crate::review::{Review, ReviewStatus};
use crate::run::{RunSummary, Step};
use crate::time::Timestamp;

pub use agents::{SpecialistMade, StrategyChanged};
pub use change::{LoggedIn, LoginFailed, ReviewChange, SecondFactorChange, SingleSignOn, UserChanged};
pub use data::*;
pub use record::{EntriesErased, HeadAccepted, RunsArchived, Unreadable, UserErased};

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

impl EntryKind {
    /// What it speaks of.
    pub fn subject(self) -> EntrySubject {
        match self {
            Self::ReviewRequested
            | Self::ReviewExpiring
            | Self::ReviewUpdated
            | Self::ReviewResolved
            | Self::ReviewViewed => EntrySubject::Review,
            Self::RunStarted
            | Self::RunResumed
            | Self::WorkflowWaiting
            | Self::RunCompleted
            | Self::RunFailed
            | Self::RunCancelled
            | Self::StepStarted
            | Self::StepRetrying
            | Self::StepCompleted
            | Self::StepFailed
            | Self::ModelAnswered
            | Self::ToolExecuted
            | Self::GuardrailFired
            | Self::SpecialistMade
            | Self::StrategyChanged
            | Self::FeedbackGiven
            | Self::Unreadable => EntrySubject::Run,
            Self::FlowSaved
            | Self::UserCreated
            | Self::UserUpdated
            | Self::UserErased
            | Self::GrantMade
            | Self::GrantUsed
            | Self::GrantRevoked
            | Self::DeputyNamed
            | Self::DeputyRemoved
            | Self::TokenCreated
            | Self::TokenRevoked
            | Self::LinkCreated
            | Self::SessionStarted
            | Self::SessionEnded
            | Self::LoginFailed
            | Self::HeadAccepted
            | Self::RunsArchived
            | Self::EntriesErased => EntrySubject::Other,
        }
    }

    /// What people are told of by it; most kinds are no occasion.
    pub fn occasion(self) -> Option<Occasion> {
        Occasion::of_word(self.as_str())
    }

    /// Whether it speaks of a review (`data.review`).
    pub fn is_review(self) -> bool {
        self.subject() == EntrySubject::Review
    }
}

/// What an entry speaks of: who may see it follows from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntrySubject {
    /// A review, which was requested, changed, opened or resolved, or whose deadline is near.
    Review,
    /// A run, one of its steps, or what was done in them; also an entry that cannot be read, which may be of a run.
    Run,
    /// Flows, people, their rights and logins, and the log itself.
    Other,
}

/// What is done to a review, by people or by time. The audit is filtered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
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

impl EventData {
    /// The review that it shows, where it speaks of a review as a whole.
    pub fn review(&self) -> Option<&Review> {
        match self {
            Self::ReviewRequested(of) | Self::ReviewExpiring(of) | Self::ReviewResolved(of) => Some(&of.review),
            Self::ReviewUpdated(updated) => Some(&updated.review),
            _ => None,
        }
    }
}

/// The acts that an entry tells of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReviewActs {
    vote: bool,
    other: Option<ReviewAct>,
}

impl ReviewActs {
    /// Whether it is one of them.
    pub fn has(self, act: ReviewAct) -> bool {
        if act == ReviewAct::Vote { self.vote } else { self.other == Some(act) }
    }

    /// Of the entry of an actor at a time.
    fn of(data: &EventData, actor: Option<&Username>, at: Timestamp) -> Self {
        let one = |act| Self { vote: false, other: Some(act) };
        let vote = Self { vote: true, other: None };
        match data {
            EventData::ReviewUpdated(updated) => match &updated.change {
                ReviewChange::Vote => vote,
                // What the run itself changed has no actor. A secret vote has none either, and says that it is one.
                ReviewChange::Content { vote: voted, .. } if *voted || actor.is_some() => vote,
                ReviewChange::Comment { .. } => one(ReviewAct::Comment),
                ReviewChange::Paused { .. } => one(ReviewAct::Decision),
                ReviewChange::Claim { .. } | ReviewChange::Release { .. } => one(ReviewAct::Claim),
                ReviewChange::Delegated { .. } => one(ReviewAct::Delegation),
                ReviewChange::Escalated { .. } => one(ReviewAct::Timeout),
                ReviewChange::Content { .. }
                | ReviewChange::Voters { .. }
                | ReviewChange::Asked
                | ReviewChange::Other => Self::default(),
            },
            EventData::ReviewResolved(OfReview { review }) => match review.status {
                ReviewStatus::Resolved => Self { vote: was_voted_on(review, at), other: Some(ReviewAct::Decision) },
                ReviewStatus::Expired => one(ReviewAct::Timeout),
                ReviewStatus::Withdrawn => one(ReviewAct::Withdrawal),
                ReviewStatus::Pending => Self::default(),
            },
            _ => Self::default(),
        }
    }
}

/// Whether a review takes votes, and one was cast in this moment.
fn was_voted_on(review: &Review, at: Timestamp) -> bool {
    review.voting.is_some() && review.decisions.iter().any(|vote| vote.at == at)
}

impl std::str::FromStr for ReviewAct {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::of_word(text).ok_or_else(|| {
            let all = Self::ALL.iter().map(|act| act.as_str()).collect::<Vec<_>>().join(", ");
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
        Self::of_word(text).ok_or_else(|| format!("`{text}` is not a kind of entry"))
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
    /// The time of the commit, on the server's clock.
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
    /// What it says, as JSON: [`Event::read`] gives it in types.
    #[serde(default)]
    pub data: JsonMap,
}

impl Event {
    /// Something that happened, of no run and no review.
    pub fn new(at: Timestamp, actor: Option<Username>, data: &EventData) -> Self {
        Self { kind: data.kind(), at, run_id: None, review_id: None, actor, data: data.to_json() }
    }

    /// What it says. None where that is not what this version knows of its kind.
    pub fn read(&self) -> Option<EventData> {
        EventData::read(self.kind, &self.data).ok()
    }

    /// What is done to a review that it tells of. Reads it: whoever has done so takes [`Self::acts_of`].
    pub fn acts(&self) -> ReviewActs {
        if !matches!(self.kind, EntryKind::ReviewUpdated | EntryKind::ReviewResolved) {
            return ReviewActs::default();
        }
        self.read().map_or_else(ReviewActs::default, |data| self.acts_of(&data))
    }

    /// What is done to a review, by what was read of it.
    pub fn acts_of(&self, data: &EventData) -> ReviewActs {
        ReviewActs::of(data, self.actor.as_ref(), self.at)
    }

    /// The review that it shows, where it speaks of a review as a whole.
    pub fn review(&self) -> Option<Review> {
        self.kind
            .is_review()
            .then(|| self.data.get("review"))
            .flatten()
            .and_then(|review| Review::deserialize(review).ok())
    }

    /// The step that it shows, where it speaks of one as a whole.
    pub fn step(&self) -> Option<Step> {
        self.data.get("step").and_then(|step| Step::deserialize(step).ok())
    }

    /// The run that it shows, where it speaks of a run as a whole.
    pub fn run(&self) -> Option<RunSummary> {
        self.data.get("run").and_then(|run| RunSummary::deserialize(run).ok())
    }
}
