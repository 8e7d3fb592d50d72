//! Problems as answers: `application/problem+json` (RFC 9457), and the problem that each refusal is.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use shared::access::{Access, Act, Principal, access};
use shared::error::{Code, Problem};
use shared::review::Review;

use crate::auth;
use crate::engine::Refusal;
use crate::store::{self, CommitError};

/// What a handler answers where it cannot do what was asked.
#[derive(Debug)]
pub struct Failure(pub Problem);

/// What a handler answers.
pub type Result<T> = std::result::Result<T, Failure>;

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        Self(of_store(&error))
    }
}

impl From<auth::Error> for Failure {
    fn from(error: auth::Error) -> Self {
        Self(match error {
            auth::Error::Unauthenticated(detail) => Problem::new(Code::Unauthenticated).detail(detail),
            auth::Error::TooManyAttempts { retry_after } => {
                let problem = Problem { retry_after: Some(retry_after), ..Problem::new(Code::TooManyRequests) };
                problem.detail(format!("too many failed attempts; try again in {retry_after} s"))
            }
            auth::Error::Invalid(mistakes) => Problem::new(Code::Invalid).errors(mistakes),
            auth::Error::Commit(error) => of_commit(error, None),
            auth::Error::Store(error) => of_store(&error),
            auth::Error::Hash(why) => {
                tracing::error!(%why, "a password could not be hashed");
                Problem::new(Code::Internal)
            }
        })
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(problem) = self;
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
}

/// Lets through what is allowed.
pub fn allowed(principal: &Principal, act: Act<'_>) -> std::result::Result<(), Problem> {
    match access(principal, act) {
        Access::Allowed => Ok(()),
        Access::Denied(reason) => Err(Problem::new(Code::Forbidden).detail(reason)),
        Access::Hidden => Err(Problem::new(Code::NotFound)),
    }
}

/// Why a commit was not made, as somebody may know it: a review goes along only to those who see it.
pub fn of_commit(error: CommitError, viewer: Option<&Principal>) -> Problem {
    match error {
        CommitError::Refused(refusal) => of_refusal(refusal, viewer),
        CommitError::NotFound => Problem::new(Code::NotFound),
        CommitError::Unauthenticated => Problem::new(Code::Unauthenticated).detail("log in again"),
        CommitError::Forbidden(why) => Problem::new(Code::Forbidden).detail(why),
        CommitError::Conflict(why) => Problem::new(Code::Conflict).detail(why),
        CommitError::KeyReused => Problem::new(Code::KeyReused).detail("use a new key for a new request"),
        CommitError::Unavailable(why) => unavailable(why),
        CommitError::Database(error) => {
            tracing::error!(%error, "a commit failed");
            Problem::new(Code::Internal).detail("the database failed; nothing was changed")
        }
    }
}

/// The same of a refusal of the engine.
pub fn of_refusal(refusal: Refusal, viewer: Option<&Principal>) -> Problem {
    let seen = |review: Box<Review>| {
        viewer.is_some_and(|viewer| access(viewer, Act::SeeReview(&review)).is_allowed()).then_some(review)
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
                .detail("look at what has changed, and decide again"),
            None => Problem::new(Code::NotFound),
        },
        Refusal::ReviewClaimed(review) => match seen(review) {
            Some(review) => {
                let by = review.claimed_by.as_ref().map(|claim| format!("{} works on it", claim.by));
                let problem = Problem { review: Some(review), ..Problem::new(Code::ReviewClaimed) };
                Problem { detail: by, ..problem }
            }
            None => Problem::new(Code::NotFound),
        },
        Refusal::Invalid(mistakes) => Problem::new(Code::Invalid).errors(mistakes),
        Refusal::VisitLimit(why) => Problem::new(Code::VisitLimit).detail(why),
        Refusal::RunOver => Problem::new(Code::RunOver),
        // Only workers answer tasks; a client cannot cause it.
        Refusal::TaskOver => Problem::new(Code::Conflict).detail(message),
    }
}

/// `503`, to be tried again soon.
pub fn unavailable(why: impl Into<String>) -> Problem {
    Problem { retry_after: Some(1), ..Problem::new(Code::Unavailable) }.detail(why)
}

/// `500` for an answer of the store that does not belong to the question.
pub(super) fn unexpected() -> Failure {
    tracing::error!("the store answered something else than was asked");
    Failure(Problem::new(Code::Internal))
}

fn of_store(error: &store::Error) -> Problem {
    tracing::error!(%error, "a query failed");
    match error {
        store::Error::Database(_) => unavailable("the database does not answer; try again"),
        store::Error::Stored(_) | store::Error::Settings(_) => Problem::new(Code::Internal),
    }
}
