//! The error of handlers: turns every error that a handler may have into the problem that it responds with.

use axum::response::{IntoResponse, Response};
use shared::access::{Access, Act, Principal, access};
use shared::error::{Code, Problem};

use crate::auth;
use crate::problem::{self, of_commit, of_store};
use crate::store;

/// The error response of a handler.
#[derive(Debug)]
pub struct Refused(pub Problem);

/// The result of a handler.
pub type Result<T> = std::result::Result<T, Refused>;

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<store::Error> for Refused {
    fn from(error: store::Error) -> Self {
        Self(of_store(&error))
    }
}

impl From<auth::Error> for Refused {
    fn from(error: auth::Error) -> Self {
        Self(match error {
            auth::Error::Unauthenticated(detail) => Problem::new(Code::Unauthenticated).detail(detail),
            auth::Error::SecondFactorRequired => Problem::new(Code::SecondFactorRequired).detail(error.to_string()),
            auth::Error::Problem(problem) => *problem,
            auth::Error::TooManyAttempts(seconds) => {
                let problem = Problem { retry_after: Some(seconds), ..Problem::new(Code::TooManyRequests) };
                problem.detail(error.to_string())
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

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        problem::response(self.0)
    }
}

/// Returns `403` or `404` unless the act is allowed.
pub fn allowed(principal: &Principal, act: Act<'_>) -> std::result::Result<(), Problem> {
    match access(principal, act) {
        Access::Allowed => Ok(()),
        Access::Denied(reason) => Err(Problem::new(Code::Forbidden).detail(reason)),
        Access::Hidden => Err(Problem::new(Code::NotFound)),
    }
}

/// Logs that the store returned an unexpected result, and returns `500`.
pub(super) fn unexpected() -> Refused {
    tracing::error!("the store returned an unexpected result");
    Refused(Problem::new(Code::Internal))
}
