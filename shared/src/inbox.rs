//! The queue of reviews: the order of urgency, what narrows it down, and how it is counted. The server's lists and
//! counts and the console's list use the same.
//!
//! Imports of this crate what reviews are made of, and `access`.

mod facets;
mod outline;
mod query;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use strum::{IntoStaticStr, VariantArray};

use crate::access::{Act, Principal, REVIEWER, access};
use crate::definition::Severity;
use crate::id::ReviewId;
use crate::review::{Review, ReviewKind, ReviewStatus};
use crate::time::{Span, Timestamp};

pub use facets::{AgeGroup, Count, Counts, Facets, Nearness, SOON, TODAY};
pub use outline::outline;
pub use query::ReviewQuery;

/// The order of a list of reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewOrder {
    /// What was asked last comes first.
    #[default]
    Newest,
    /// By [`Urgency`]; of what is pending only.
    Urgency,
}

/// Where a review stands in the order of urgency, the most urgent first: the soonest deadline, and none last; then what
/// has the most at stake; then what was asked first; then the id. No two reviews are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    /// Its deadline; [`Timestamp::MAX`] where it has none.
    pub due: Timestamp,
    /// From 0 (critical) to 3 (low).
    pub severity: u8,
    /// When it was asked.
    pub asked: Timestamp,
    /// The review's id, by which reviews are ordered that are equal in everything else.
    pub id: ReviewId,
}

impl Urgency {
    /// That of a review.
    pub fn of(review: &Review) -> Self {
        let due = review.expires_at.unwrap_or(Timestamp::MAX);
        Self { due, severity: rank(review.stakes.severity), asked: review.created_at, id: review.id }
    }
}

fn rank(severity: Severity) -> u8 {
    match severity {
        Severity::Critical => 0,
        Severity::High => 1,
        Severity::Medium => 2,
        Severity::Low => 3,
    }
}

/// The assignment of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Assigned {
    /// I may decide it.
    Me,
    /// Somebody works on it.
    Claimed,
    /// Nobody has claimed it, or the claim has run out.
    Unclaimed,
}

/// Restricts a list of reviews to what one person has asked; `me` is the only value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    /// I did, or I started the run.
    Me,
}

/// By when the time of a review is up: within a length of time (`30m`), by a point in time, or never (`none`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// So soon from now, or already.
    Within(Span),
    /// At this time or before.
    By(Timestamp),
    /// It has no deadline.
    Never,
}

impl Due {
    /// The latest deadline that fits; nothing where none does.
    pub fn latest(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Within(span) => Some(now.after(span.0)),
            Self::By(time) => Some(time),
            Self::Never => None,
        }
    }

    fn fits(self, deadline: Option<Timestamp>, now: Timestamp) -> bool {
        match (deadline, self.latest(now)) {
            (Some(deadline), Some(latest)) => deadline <= latest,
            (deadline, latest) => deadline.is_none() && latest.is_none(),
        }
    }
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within(span) => span.fmt(f),
            Self::By(time) => time.fmt(f),
            Self::Never => f.write_str("none"),
        }
    }
}

impl FromStr for Due {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Never);
        }
        let time = text.parse().map(Self::By).ok();
        time.or_else(|| text.parse().map(Self::Within).ok())
            .ok_or_else(|| format!("`{text}` is not a length of time such as 30m, an RFC 3339 time in UTC, or `none`"))
    }
}

impl Serialize for Due {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Due {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Due {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Due".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// A part of a filter by which the queue is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum Facet {
    /// What is asked.
    Kind,
    /// How much is at stake.
    Severity,
    /// Which flow asks.
    Flow,
    /// For which roles.
    Role,
    /// Which tags are needed besides.
    Tag,
    /// By [`Assigned`]: whether I may decide it, and whether somebody has claimed it.
    Assigned,
    /// By when its time is up.
    Due,
    /// How long ago it was asked.
    Age,
}

impl Facet {
    /// All of them, in the order of [`Facets`].
    pub const ALL: &[Self] = Self::VARIANTS;
}

/// What narrows a list of reviews down, but for the words that are searched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Where they stand.
    pub status: Option<ReviewStatus>,
    /// What is asked.
    pub kind: Option<ReviewKind>,
    /// How much is at stake.
    pub severity: Option<Severity>,
    /// Of this flow.
    pub flow: Option<String>,
    /// For this role, also by escalation.
    pub role: Option<String>,
    /// Needing this tag.
    pub tag: Option<String>,
    /// Those that I may decide, that somebody has claimed, or that nobody has claimed.
    pub assigned: Option<Assigned>,
    /// By when their time is up.
    pub due: Option<Due>,
    /// Whether what they do can be undone: `true`, where it cannot.
    pub irreversible: Option<bool>,
    /// Asked so long ago, or longer.
    pub age: Option<Span>,
}

impl From<&ReviewQuery> for Filter {
    fn from(query: &ReviewQuery) -> Self {
        Self {
            status: query.status,
            kind: query.kind,
            severity: query.severity,
            flow: query.flow.clone(),
            role: query.role.clone(),
            tag: query.tag.clone(),
            assigned: query.assigned,
            due: query.due,
            irreversible: query.irreversible,
            age: query.age,
        }
    }
}

impl Filter {
    /// Whether a review fits at a moment. Whether `principal` may see it is not asked.
    pub fn matches(&self, review: &Review, principal: &Principal, now: Timestamp) -> bool {
        self.misses(review, principal, now).next().is_none()
    }

    /// What a review does not fit, part by part; nothing named: a part that is no facet.
    pub fn misses(
        &self,
        review: &Review,
        principal: &Principal,
        now: Timestamp,
    ) -> impl Iterator<Item = Option<Facet>> + use<> {
        let stakes = &review.stakes;
        let fits = [
            (None, self.status.is_none_or(|status| review.status == status)),
            (None, self.irreversible.is_none_or(|wanted| is_irreversible(review) == wanted)),
            (Some(Facet::Kind), self.kind.is_none_or(|kind| review.kind == kind)),
            (Some(Facet::Severity), self.severity.is_none_or(|severity| stakes.severity == severity)),
            (Some(Facet::Flow), self.flow.as_ref().is_none_or(|flow| review.flow.as_deref() == Some(flow))),
            (Some(Facet::Role), self.role.as_ref().is_none_or(|role| roles(review).any(|one| one == role))),
            (Some(Facet::Tag), self.tag.as_ref().is_none_or(|tag| review.reviewers.tags.contains(tag))),
            (Some(Facet::Assigned), self.assigned.is_none_or(|with| is_with(with, review, principal, now))),
            (Some(Facet::Due), self.due.is_none_or(|due| due.fits(review.expires_at, now))),
            (Some(Facet::Age), self.oldest(now).is_none_or(|oldest| review.created_at <= oldest)),
        ];
        fits.into_iter().filter(|(_, fits)| !fits).map(|(facet, _)| facet)
    }

    /// The latest time at which a review can have been asked to be as old as is wanted.
    pub fn oldest(&self, now: Timestamp) -> Option<Timestamp> {
        self.age.map(|age| now.before(age.0))
    }
}

/// Whether what a review does is said to be for good.
pub fn is_irreversible(review: &Review) -> bool {
    review.stakes.reversible == Some(false)
}

/// The roles that a review is for: those that the flow names (reviewers, where it names nobody), and those to which it
/// was escalated.
pub fn roles(review: &Review) -> impl Iterator<Item = &str> {
    let reviewers = &review.reviewers;
    let everyone = reviewers.roles.is_empty() && reviewers.users.is_empty();
    let named = reviewers.roles.iter().chain(&review.escalated).map(String::as_str);
    named.chain(everyone.then_some(REVIEWER))
}

/// Whether a review is with somebody, as `assigned` says it.
pub fn is_with(assigned: Assigned, review: &Review, principal: &Principal, now: Timestamp) -> bool {
    let claimed = review.claimed_by.as_ref().is_some_and(|claim| claim.until > now);
    match assigned {
        Assigned::Me => access(principal, Act::Decide(review)).is_allowed(),
        Assigned::Claimed => claimed,
        Assigned::Unclaimed => !claimed,
    }
}
