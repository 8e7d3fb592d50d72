//! Entries of the log, in commit order. The live socket, the audit log and `GET /api/v1/log` all show
//! the same entries.

mod agents;
mod audience;
mod change;
mod credential;
mod data;
mod occasion;
mod record;
mod rights;

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
use crate::author::Author;
use crate::id::{ReviewId, RunId, TokenId, Username};
use crate::notification::Occasion;
use crate::review::{Review, ReviewStatus};
use crate::run::{RunSummary, Step};
use crate::time::Timestamp;

pub use agents::{SpecialistMade, StrategyChanged};
pub use audience::Audience;
pub use change::{LoggedIn, LoginFailed, ReviewChange, SecondFactorChange, SingleSignOn, UserChanged};
pub use credential::{SessionEnded, TokenCreated, TokenRevoked};
pub use data::*;
pub use occasion::{Announced, AnnouncedSubject, has_started, is_asked, takes_part};
pub use record::{EntriesErased, HeadAccepted, RunsArchived, Unreadable, UserErased};
pub use rights::{ChangedRights, RightsChange};

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
    /// Returns the notification event of entries of this kind; `None` for most kinds.
    pub fn occasion(self) -> Option<Occasion> {
        Occasion::of_word(self.as_str())
    }

    /// Whether entries of this kind are about a review itself, which was requested, changed, opened or resolved, or
    /// whose deadline is near.
    pub fn is_review(self) -> bool {
        matches!(
            self,
            Self::ReviewRequested
                | Self::ReviewExpiring
                | Self::ReviewUpdated
                | Self::ReviewResolved
                | Self::ReviewViewed
        )
    }
}

/// An act on a review, by people or a timer, used to filter the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewAct {
    /// A decision resolved the review, or paused it.
    Decision,
    /// A vote was cast, including one that resolved it.
    Vote,
    /// A comment was added.
    Comment,
    /// The review was claimed or released.
    Claim,
    /// The review was delegated.
    Delegation,
    /// The review was reassigned by an admin.
    Reassignment,
    /// The review was withdrawn, or its run ended or continued without it.
    Withdrawal,
    /// The review's timer expired, which resolved or escalated the review.
    Timeout,
}

impl EventData {
    /// Returns the review as it was after the commit; `None` for other data, and for `review.viewed`.
    pub fn review(&self) -> Option<&Review> {
        match self {
            Self::ReviewRequested(of) | Self::ReviewExpiring(of) | Self::ReviewResolved(of) => Some(&of.review),
            Self::ReviewUpdated(updated) => Some(&updated.review),
            _ => None,
        }
    }
}

/// The acts on a review that an entry records: a vote, another act, both or none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReviewActs {
    vote: bool,
    other: Option<ReviewAct>,
}

impl ReviewActs {
    /// Whether the entry records `act`.
    pub fn has(self, act: ReviewAct) -> bool {
        if act == ReviewAct::Vote { self.vote } else { self.other == Some(act) }
    }

    /// Returns the acts in the data of an entry that `actor` caused at `at`.
    fn of(data: &EventData, actor: Option<&Username>, at: Timestamp) -> Self {
        match data {
            EventData::ReviewUpdated(updated) => Self::of_change(&updated.change, actor),
            EventData::ReviewResolved(OfReview { review }) => {
                let mut votes = review.decisions.iter().map(|vote| vote.at);
                Self::of_end(review.status, review.voting.is_some() && votes.any(|vote| vote == at))
            }
            _ => Self::default(),
        }
    }

    fn of_change(change: &ReviewChange, actor: Option<&Username>) -> Self {
        let one = |act| Self { vote: false, other: Some(act) };
        let vote = Self { vote: true, other: None };
        match change {
            ReviewChange::Vote => vote,
            // A change by the run itself has no actor. A secret vote has none either, but is marked as a vote.
            ReviewChange::Content { vote: voted, .. } if *voted || actor.is_some() => vote,
            ReviewChange::Comment { .. } => one(ReviewAct::Comment),
            ReviewChange::Paused { .. } => one(ReviewAct::Decision),
            ReviewChange::Claim { .. } | ReviewChange::Release { .. } => one(ReviewAct::Claim),
            ReviewChange::Delegated { .. } => one(ReviewAct::Delegation),
            ReviewChange::Reassigned { .. } => one(ReviewAct::Reassignment),
            ReviewChange::Escalated { .. } => one(ReviewAct::Timeout),
            ReviewChange::Content { .. } | ReviewChange::Voters { .. } | ReviewChange::Asked | ReviewChange::Other => {
                Self::default()
            }
        }
    }

    /// The acts that end a review with this status. `vote`: it takes votes, and one of them was cast at that time.
    fn of_end(status: ReviewStatus, vote: bool) -> Self {
        let one = |act| Self { vote: false, other: Some(act) };
        match status {
            ReviewStatus::Resolved => Self { vote, other: Some(ReviewAct::Decision) },
            ReviewStatus::Expired => one(ReviewAct::Timeout),
            ReviewStatus::Withdrawn => one(ReviewAct::Withdrawal),
            ReviewStatus::Pending => Self::default(),
        }
    }
}

/// The members of a resolved review on which the acts depend.
#[derive(Deserialize)]
struct EndOfReview {
    status: ReviewStatus,
    voting: Option<IgnoredAny>,
    #[serde(default)]
    decisions: Vec<TimeOfDecision>,
}

/// The members of a review that say who decided it.
#[derive(Deserialize)]
struct DecidedReview {
    #[serde(default)]
    decisions: Vec<Decider>,
    #[serde(default)]
    blind: bool,
    voting: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Decider {
    by: Username,
    at: Timestamp,
    grant: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct TimeOfDecision {
    at: Timestamp,
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

impl std::str::FromStr for EntryKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::of_word(text).ok_or_else(|| format!("`{text}` is not a kind of entry"))
    }
}

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// The entry's place in the log.
    pub cursor: Cursor,
    /// The number of its seal; only in the audit log, and none until it is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<u64>,
    /// The event itself.
    #[serde(flatten)]
    pub event: Event,
}

/// An event before it has a place in the log.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The kind of the event.
    pub kind: EntryKind,
    /// The time of the commit, on the server's clock.
    pub at: Timestamp,
    /// The run that it is about.
    pub run_id: Option<RunId>,
    /// The review that it is about.
    pub review_id: Option<ReviewId>,
    /// The person or program that did it; none for the server itself.
    pub actor: Option<Username>,
    /// The token with which a program did it in the name of the actor; none if they did it themselves, and in entries of
    /// older versions.
    pub token: Option<TokenId>,
    /// The data as JSON: [`Event::read`] returns them typed.
    #[serde(default)]
    pub data: JsonMap,
}

impl Event {
    /// Creates an event without a run and a review.
    pub fn new(at: Timestamp, by: Option<Author>, data: &EventData) -> Self {
        let (actor, token) = by.map(|by| (by.name, by.token)).unzip();
        let token = token.flatten();
        Self { kind: data.kind(), at, run_id: None, review_id: None, actor, token, data: data.to_json() }
    }

    /// Returns who did it; `None` for the server itself.
    pub fn author(&self) -> Option<Author> {
        self.actor.clone().map(|name| Author { name, token: self.token })
    }

    /// Returns the typed data; `None` if this version does not know their form.
    pub fn read(&self) -> Option<EventData> {
        EventData::read(self.kind, &self.data).ok()
    }

    /// Returns the acts on a review that the event records. Parses the data; if they are parsed already, use
    /// [`Self::acts_of`].
    pub fn acts(&self) -> ReviewActs {
        if !matches!(self.kind, EntryKind::ReviewUpdated | EntryKind::ReviewResolved) {
            return ReviewActs::default();
        }
        self.read().map_or_else(ReviewActs::default, |data| self.acts_of(&data))
    }

    /// Returns the same as [`Self::acts`] much faster: it only reads the data on which the acts depend. So it may return
    /// acts although [`Self::read`] fails, which an index may do whose matches are checked.
    pub fn possible_acts(&self) -> ReviewActs {
        let acts = match self.kind {
            EntryKind::ReviewUpdated => {
                let others = self.data.iter().filter(|(name, _)| *name != "review");
                let others: JsonMap = others.map(|(name, value)| (name.clone(), value.clone())).collect();
                let change = ReviewChange::deserialize(&others).ok();
                change.map(|change| ReviewActs::of_change(&change, self.actor.as_ref()))
            }
            EntryKind::ReviewResolved => {
                let end = self.data.get("review").and_then(|review| EndOfReview::deserialize(review).ok());
                end.map(|EndOfReview { status, voting, decisions }| {
                    ReviewActs::of_end(status, voting.is_some() && decisions.iter().any(|vote| vote.at == self.at))
                })
            }
            _ => None,
        };
        acts.unwrap_or_default()
    }

    /// Returns the acts on a review that the event records, from its parsed data.
    pub fn acts_of(&self, data: &EventData) -> ReviewActs {
        ReviewActs::of(data, self.actor.as_ref(), self.at)
    }

    /// Returns who decided or voted with this event; for the end of a secret vote, all who voted, since no event named
    /// them before. What a remembered approval decided is left out: its giver decided an earlier review.
    pub fn deciders(&self) -> BTreeSet<Username> {
        if !matches!(self.kind, EntryKind::ReviewUpdated | EntryKind::ReviewResolved) {
            return BTreeSet::new();
        }
        let Some(Ok(review)) = self.data.get("review").map(DecidedReview::deserialize) else { return BTreeSet::new() };
        let revealed = self.kind == EntryKind::ReviewResolved && review.blind && review.voting.is_some();
        let decisions = review.decisions.into_iter().filter(|decision| decision.grant.is_none());
        decisions.filter(|decision| revealed || decision.at == self.at).map(|decision| decision.by).collect()
    }

    /// Returns the review in the data; `None` if there is none, or if it cannot be read.
    pub fn review(&self) -> Option<Review> {
        self.kind
            .is_review()
            .then(|| self.data.get("review"))
            .flatten()
            .and_then(|review| Review::deserialize(review).ok())
    }

    /// Returns the step in the data; `None` if there is none, or if it cannot be read.
    pub fn step(&self) -> Option<Step> {
        self.data.get("step").and_then(|step| Step::deserialize(step).ok())
    }

    /// Returns the run in the data; `None` if there is none, or if it cannot be read.
    pub fn run(&self) -> Option<RunSummary> {
        self.data.get("run").and_then(|run| RunSummary::deserialize(run).ok())
    }
}

impl ReviewViewed {
    /// Creates the data of a view of this review, as it is.
    pub fn of(review: &Review) -> Self {
        Self { title: review.title.clone(), revision: review.revision, digest: review.digest.clone(), token: false }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An event with a review that has these members, by `ana` or by the run itself.
    fn event(kind: &str, by_run: bool, of_review: &Value, mut data: Value) -> Event {
        let mut review = json!({
            "id": uuid::Uuid::nil(), "revision": 1, "digest": "", "version": 1, "kind": "approval", "status": "pending",
            "title": "", "prompt": "", "requested_by": "dev", "created_at": "2026-01-01T00:00:00Z",
        });
        review.as_object_mut().expect("an object").extend(of_review.as_object().expect("an object").clone());
        data["review"] = review;
        let actor = (!by_run).then_some("ana");
        let event = json!({ "kind": kind, "at": "2026-01-01T02:00:00Z", "actor": actor, "data": data });
        serde_json::from_value(event).expect("an event")
    }

    #[test]
    fn possible_acts_are_those_of_data_that_can_be_read() {
        let mut events = Vec::new();
        for status in ["pending", "resolved", "expired", "withdrawn"] {
            for voting in [Value::Null, json!({ "voters": ["ana"], "votes": 1, "standing": "" })] {
                for hour in [1, 2] {
                    let vote = json!({ "by": "ana", "at": format!("2026-01-01T0{hour}:00:00Z"), "via": "human",
                        "revision": 1, "digest": "", "verdict": { "type": "text", "text": "no" } });
                    let review = json!({ "status": status, "voting": voting, "decisions": [vote] });
                    events.push(event("review.resolved", false, &review, json!({})));
                }
                events.push(event("review.resolved", true, &json!({ "status": status, "voting": voting }), json!({})));
            }
        }
        let changes =
            "vote voters claim release comment delegated reassigned escalated paused asked content of_a_later_version";
        for change in changes.split(' ') {
            for (by_run, vote) in [(false, false), (true, false), (true, true)] {
                let data = json!({ "change": change, "vote": vote, "via": "cli", "voided": ["tom"] });
                events.push(event("review.updated", by_run, &json!({}), data));
            }
        }
        events.push(event("review.requested", false, &json!({ "status": "resolved" }), json!({})));
        for event in &events {
            assert!(event.read().is_some(), "{event:?}");
            assert_eq!(event.possible_acts(), event.acts(), "{event:?}");
        }
        for act in ReviewAct::ALL {
            assert!(events.iter().any(|event| event.acts().has(*act)), "{act:?}");
        }
    }
}
