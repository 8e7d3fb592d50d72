//! `/api/v1/callbacks/{secret}`: the decision of a program that was asked as a handler and answers later. Anyone with
//! the secret may decide, once. The decision is checked like that of a person, but is attributed to no one.

use std::time::Duration;

use axum::extract::{FromRequest as _, Path, Request, State};
use axum::response::NoContent;
use shared::decision::ProgramAnswer;
use shared::error::{Code, Problem};

use super::AppState;
use super::api::{Api, OperationDoc};
use super::body::Json;
use super::problem::Result;
use crate::engine::{Input, Refusal};
use crate::problem::of_commit;
use crate::store::{Change, CommitError, Operation};

/// How many times a secret may be tried in a burst. After that, one further attempt is allowed every [`BETWEEN_TRIES`].
pub(super) const TRIES: u32 = 20;
pub(super) const BETWEEN_TRIES: Duration = Duration::from_secs(1);

pub(super) fn mount(api: &mut Api) {
    let answer = OperationDoc::new("Send the later answer to the decision request of a webhook handler").open();
    api.post("/api/v1/callbacks/{secret}", answer.body::<ProgramAnswer>("application/json"), self::answer);
}

async fn answer(State(state): State<AppState>, Path(secret): Path<String>, request: Request) -> Result<NoContent> {
    // The secret is checked before the body is read, so that nothing is parsed for strangers.
    let key = state.outside.callbacks.as_ref();
    let callback = key.and_then(|key| key.open(&secret)).ok_or_else(|| Problem::new(Code::NotFound))?;
    if let Err(seconds) = state.callback_limit.take(&callback.task, state.clock.uptime()) {
        return Err(Problem { retry_after: Some(seconds), ..Problem::new(Code::TooManyRequests) }.into());
    }
    let Json { value: answer, .. } = Json::<ProgramAnswer>::from_request(request, &state).await?;
    let input = Input::call_back(callback.review, callback.task, answer);
    let change = Change::by_server(Operation::Run { run: callback.run, input: Box::new(input) });
    match state.store.commit(change).await {
        Ok(_) => {
            tracing::info!(review = %callback.review, "a webhook decided a review with a callback");
            Ok(NoContent)
        }
        Err(error) => Err(refused(error).into()),
    }
}

/// Returns the problem for an answer that was refused. It may contain the review's resolution or current content,
/// because the holder of the secret was shown the review.
fn refused(error: CommitError) -> Problem {
    match error {
        CommitError::Refused(overtaken @ Refusal::Overtaken { .. }) => {
            let why = overtaken.to_string();
            refused(CommitError::Refused(overtaken.met())).detail(why)
        }
        CommitError::Refused(Refusal::ReviewResolved(review)) => {
            let resolution = review.seen_by(None).resolution.map(Box::new);
            Problem { resolution, ..Problem::new(Code::ReviewResolved) }
        }
        CommitError::Refused(Refusal::RevisionChanged(review)) => {
            let review = Some(Box::new(review.seen_by(None)));
            Problem { review, ..Problem::new(Code::RevisionChanged) }.detail("check what has changed, and decide again")
        }
        error => of_commit(error, None),
    }
}
