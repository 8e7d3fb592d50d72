//! The rows of a review: its stored data, its place among pending or undecided reviews, and the keys under which it
//! is found.

use shared::id::RunId;
use shared::review::{Review, ReviewStatus};

use serde_json::Value;

use super::batch::Table;
use super::blobs::{NewBlobs, Owner, encode_owned};
use super::compact_review::{Compact, compact};
use super::db::Arg;
use super::packed::pack;
use super::{Error, queue, search, statistics, visibility};

pub(super) const REVIEWS: Table = Table {
    name: "reviews",
    key: "id",
    others: "run_id, status, kind, severity, flow, requested_by, not_requester, created_at, search, body, facts, tags, \
             due, severity_rank, irreversible, claimed_until, comments",
};
/// The table of the keys under which reviews are found.
pub(super) const AUDIENCE: Table = Table { name: "review_audience", key: "subject, created_at, review_id", others: "" };
/// The table of reviews that ended without a decision.
pub(super) const UNDECIDED: Table = Table { name: "undecided_reviews", key: "status, created_at, id", others: "" };

/// The row of a review. `shown` is the review as JSON, if it is known already.
pub(super) fn review_row(
    run: RunId,
    review: &Review,
    shown: Option<Compact<'_>>,
    blobs: &mut NewBlobs,
) -> Result<Vec<Arg>, Error> {
    let body = match shown {
        Some(shown) => {
            debug_assert_eq!(serde_json::to_value(shown).ok(), compact(review).ok().map(Value::Object));
            encode_owned(run.0, &shown, || Owner::of(review), blobs)?
        }
        None => encode_owned(run.0, &compact(review)?, || Owner::of(review), blobs)?,
    };
    let mut row = vec![
        review.id.0.into(),
        run.0.into(),
        review.status.as_str().into(),
        review.kind.as_str().into(),
        review.stakes.severity.as_str().into(),
        review.flow.as_ref().map(ToString::to_string).into(),
        review.requested_by.as_str().into(),
        review.reviewers.not_requester.into(),
        review.created_at.0.into(),
        search::text_of(review).into(),
        pack(body).into(),
        statistics::column_of(review)?.into(),
        tags_of(review).into(),
    ];
    row.extend(queue::columns_of(review));
    row.push(i64::try_from(review.comments.len()).unwrap_or(i64::MAX).into());
    Ok(row)
}

/// The tags that reviewers need, as JSON. `None` if they need none.
pub(super) fn tags_of(review: &Review) -> Option<String> {
    let tags = &review.reviewers.tags;
    (!tags.is_empty()).then(|| tags.iter().map(String::as_str).collect::<Value>().to_string())
}

pub(super) fn audience_row(review: &Review, key: String) -> Vec<Arg> {
    vec![key.into(), review.created_at.0.into(), review.id.0.into()]
}

pub(super) fn audience_rows(review: &Review) -> impl Iterator<Item = Vec<Arg>> {
    visibility::audience_keys(review).into_iter().map(|key| audience_row(review, key))
}

/// The row of a review that ended without a decision. `None` for other reviews.
pub(super) fn undecided_row(review: &Review) -> Option<Vec<Arg>> {
    let undecided = matches!(review.status, ReviewStatus::Expired | ReviewStatus::Withdrawn);
    undecided.then(|| vec![review.status.as_str().into(), review.created_at.0.into(), review.id.0.into()])
}
