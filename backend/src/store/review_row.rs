//! The rows of a review: what is stored of it, and under which subjects it is found.

use shared::id::RunId;
use shared::review::Review;

use serde_json::Value;

use super::blobs::{NewBlobs, encode};
use super::compact_review::{Compact, compact};
use super::db::Arg;
use super::packed::pack;
use super::{Error, queue, search, statistics, visibility};

/// What [`review_row`] is written by.
pub(super) const INTO: &str = "INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, \
                               not_requester, created_at, search, body, facts, due, severity_rank, irreversible, \
                               claimed_until, class) ";
/// What [`audience_rows`] are written by.
pub(super) const AUDIENCE: &str = "INSERT INTO review_audience (review_id, subject, pending, created_at) ";

/// A review's row, as it is written; `shown`: the review is JSON already.
pub(super) fn review_row(
    run: RunId,
    review: &Review,
    shown: Option<Compact<'_>>,
    blobs: &mut NewBlobs,
) -> Result<Vec<Arg>, Error> {
    let body = match shown {
        Some(shown) => {
            debug_assert_eq!(serde_json::to_value(shown).ok(), compact(review).ok().map(Value::Object));
            encode(run.0, &shown, blobs)?
        }
        None => encode(run.0, &compact(review)?, blobs)?,
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
    ];
    row.extend(queue::columns_of(review)?);
    Ok(row)
}

/// A row for each subject of a review.
pub(super) fn audience_rows(review: &Review) -> impl Iterator<Item = Vec<Arg>> {
    let (id, pending, at) = (review.id.0, review.is_pending(), review.created_at.0);
    let subjects = visibility::subjects_of(review).into_iter();
    subjects.map(move |subject| vec![id.into(), subject.into(), pending.into(), at.into()])
}
