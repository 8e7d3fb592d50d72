//! The query of lists and counts of reviews, and which reviews match it.

use serde::{Deserialize, Serialize};

use super::{Asker, Assigned, Due, Facet, ReviewOrder, is_irreversible, is_with, roles};
use crate::access::Principal;
use crate::definition::Severity;
use crate::id::RunId;
use crate::person_filter::PersonFilter;
use crate::review::{Review, ReviewKind, ReviewStatus};
use crate::time::{Span, Timestamp};

/// `GET /api/v1/reviews`; without `run`, `requested_by`, `decided_by`, `order`, `limit` and `cursor` also
/// `GET /api/v1/reviews/facets`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct ReviewQuery {
    /// Only reviews with this status.
    pub status: Option<ReviewStatus>,
    /// Only reviews of this kind.
    pub kind: Option<ReviewKind>,
    /// Only reviews that this role may decide.
    pub role: Option<String>,
    /// Only reviews of this severity.
    pub severity: Option<Severity>,
    /// Only reviews of this flow, by its id.
    pub flow: Option<String>,
    /// Only reviews of this run, by its id.
    pub run: Option<RunId>,
    /// Only reviews whose reviewers, where they are asked by role, must have this tag.
    pub tag: Option<String>,
    /// Only reviews that are due within this time (`30m`), by this time, or never (`none`).
    pub due: Option<Due>,
    /// `true`: only reviews whose consequences cannot be undone; `false`: only the others.
    pub irreversible: Option<bool>,
    /// Only reviews of at least this age: `2h`.
    pub age: Option<Span>,
    /// Words in title, prompt, flow title, node, requester, actions, consequences, arguments and items; all must occur.
    pub q: Option<String>,
    /// Only reviews with this assignment.
    pub assigned: Option<Assigned>,
    /// `me`: only reviews that the caller requested, or of runs that the caller launched. Refused with the order
    /// `urgency` and for facets.
    pub requested_by: Option<Asker>,
    /// `me`, or a username: only reviews that this person decided or voted on, newest decision first. Only admins may
    /// name somebody else, whose decisions are listed once their reviews are over. Refused with `assigned`, with the
    /// order `urgency`, and for facets.
    pub decided_by: Option<PersonFilter>,
    /// The order of the list.
    pub order: Option<ReviewOrder>,
    /// The most reviews on a page.
    pub limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

impl ReviewQuery {
    /// Whether a review matches at a moment, apart from `run`, `q`, `requested_by` and
    /// `decided_by`. Does not check whether `principal`
    /// may see it.
    pub fn matches(&self, review: &Review, principal: &Principal, now: Timestamp) -> bool {
        self.misses(review, principal, now).next().is_none()
    }

    /// Returns the parts of the filter that the review does not match; `None` stands for a part that is not a facet.
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

    /// Returns the latest time of request with which a review has the minimum age; `None` if no age is required.
    pub fn oldest(&self, now: Timestamp) -> Option<Timestamp> {
        self.age.map(|age| now.before(age.0))
    }
}
