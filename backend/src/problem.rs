//! Converts refusals of the store and the engine to problems of the API, and problems to responses: one mapping for HTTP
//! and the live socket.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use shared::access::{Act, Principal, access};
use shared::author::Author;
use shared::error::{Code, ConfirmWith, Problem};
use shared::review::Review;

use crate::engine::Refusal;
use crate::store::{self, CommitError, ErrorKind};

/// Builds the response for a problem, as `application/problem+json` (RFC 9457).
pub fn response(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let retry_after = problem.retry_after;
    let unauthenticated = problem.code == Code::Unauthenticated;
    let mut response = (status, Json(problem)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Converts the failure of a commit to a problem. It includes the review only if `viewer` may see it.
pub fn of_commit(error: CommitError, viewer: Option<&Principal>) -> Problem {
    match error {
        CommitError::Refused(refusal) => of_refusal(refusal, viewer),
        CommitError::NotFound => Problem::new(Code::NotFound),
        CommitError::Unauthenticated => Problem::new(Code::Unauthenticated).detail("log in again"),
        CommitError::Forbidden(why) => Problem::new(Code::Forbidden).detail(why),
        CommitError::ConfirmationRequired { within, confirm_with } => {
            let remedy = match confirm_with {
                ConfirmWith::Password => "confirm with your password (POST /api/v1/me/confirm), or log in again",
                ConfirmWith::PasswordAndCode => {
                    "confirm with your password and a code of your second factor (POST /api/v1/me/confirm), or log in \
                     again"
                }
                ConfirmWith::SingleSignOn => "log in again with the identity provider",
                ConfirmWith::Link => {
                    "log in again, with a new link (`countersign user link`) or after setting a password"
                }
            };
            let detail = format!("this needs a login within the last {within}: {remedy}");
            Problem { confirm_with: Some(confirm_with), ..Problem::new(Code::ConfirmationRequired).detail(detail) }
        }
        CommitError::Conflict(why) => Problem::new(Code::Conflict).detail(why),
        CommitError::TooManyPending(why) => Problem::new(Code::TooManyPending).detail(why),
        CommitError::KeyReused => Problem::new(Code::KeyReused).detail("use a new key for a new request"),
        CommitError::Unavailable(why) | CommitError::NewerFormat(why) => unavailable(why),
        CommitError::Unreadable(why) => {
            let remedy = "cancel the run, save the flow again, or use the version of the server that wrote it";
            Problem::new(Code::Unreadable).detail(format!("{why}; nothing was changed; {remedy}"))
        }
        CommitError::Failed(error) => {
            tracing::error!(%error, "a commit failed");
            Problem::new(Code::Internal).detail("the server failed; nothing was changed")
        }
        CommitError::Unknown(error) => {
            tracing::error!(%error, "the outcome of a commit is not known");
            unavailable(
                "the connection to the database was lost, so it is not known whether this was done: check, or send it \
                 again with the same Idempotency-Key",
            )
        }
    }
}

/// Converts a refusal of the engine to a problem. It includes the review only if `viewer` may see it.
pub fn of_refusal(refusal: Refusal, viewer: Option<&Principal>) -> Problem {
    let seen = |review: Box<Review>| {
        let viewer = viewer.filter(|viewer| access(viewer, Act::SeeReview(&review)).is_allowed())?;
        Some(Box::new(review.seen_by(Some(&viewer.username))))
    };
    let message = refusal.to_string();
    match refusal {
        Refusal::NotFound => Problem::new(Code::NotFound),
        Refusal::Forbidden(why) => Problem::new(Code::Forbidden).detail(why),
        Refusal::ReviewResolved(review) => match seen(review) {
            Some(review) => Problem {
                resolution: review.resolution.clone().map(Box::new),
                review: Some(review),
                ..Problem::new(Code::ReviewResolved)
            },
            None => Problem::new(Code::NotFound),
        },
        Refusal::RevisionChanged(review) => match seen(review) {
            Some(review) => Problem { review: Some(review), ..Problem::new(Code::RevisionChanged) }
                .detail("check what has changed, and decide again"),
            None => Problem::new(Code::NotFound),
        },
        Refusal::NoLongerAsked(review) => {
            let detail = format!("{message}; the review is waiting for others");
            Problem { review: seen(review), ..Problem::new(Code::Conflict) }.detail(detail)
        }
        Refusal::ReviewClaimed(review) => match seen(review) {
            Some(review) => {
                let by = review.claimed_by.as_ref().map(|claim| format!("{} has claimed it", Author::from(claim)));
                let problem = Problem { review: Some(review), ..Problem::new(Code::ReviewClaimed) };
                Problem { detail: by, ..problem }
            }
            None => Problem::new(Code::NotFound),
        },
        Refusal::Overtaken { by, .. } => {
            let problem = of_refusal(*by, viewer);
            if problem.code == Code::NotFound { problem } else { problem.detail(message) }
        }
        Refusal::Invalid(mistakes) => Problem::new(Code::Invalid).errors(mistakes),
        Refusal::VisitLimit(why) => Problem::new(Code::VisitLimit).detail(why),
        Refusal::RunOver => Problem::new(Code::RunOver),
        // Only workers answer tasks, and only the server checks again who is asked, so no client can cause this.
        Refusal::Unasked { .. } => Problem::new(Code::Unavailable).detail(message),
        Refusal::TaskOver | Refusal::Unchanged => Problem::new(Code::Conflict).detail(message),
    }
}

/// Returns a `422` for a cursor that does not belong to the list.
pub fn unknown_cursor() -> Problem {
    Problem::invalid("/cursor", "this is not a cursor of this list; leave it out to start at the first page")
}

/// Returns a `503` that invites a retry after a second.
pub fn unavailable(why: impl Into<String>) -> Problem {
    Problem { retry_after: Some(1), ..Problem::new(Code::Unavailable) }.detail(why)
}

/// Returns a `429` that invites a retry after a second.
pub fn too_many(why: impl Into<String>) -> Problem {
    Problem { retry_after: Some(1), ..Problem::new(Code::TooManyRequests) }.detail(why)
}

/// Converts a failed query to a problem. The details go only to the server's log.
pub fn of_store(error: &store::Error) -> Problem {
    let problem = match (error, error.kind()) {
        // A mistake of the client, not a failure.
        (store::Error::Cursor, _) => return unknown_cursor(),
        (_, ErrorKind::Unavailable(why)) => unavailable(why),
        (_, ErrorKind::Contended) => unavailable("the database is busy with other changes; try again in a moment"),
        (_, ErrorKind::Unreadable | ErrorKind::Refused) => Problem::new(Code::Internal),
    };
    tracing::error!(%error, "a query failed");
    problem
}
