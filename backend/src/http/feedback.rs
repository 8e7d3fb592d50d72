//! `/api/v1/feedback` lists and retracts feedback on agents, and `/api/v1/runs/{id}/feedback` gives it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use shared::access::Involvement;
use shared::api::Page;
use shared::error::{Code, Problem};
use shared::feedback::{Feedback, FeedbackQuery, NewFeedback};
use shared::id::{FeedbackId, RunId};

use super::api::{Api, OperationDoc};
use super::body::{self, Id, Params, limit};
use super::pagination::List;
use super::problem::{Result, unexpected};
use super::{Caller, Write};
use crate::store::{self, Committed};

const FEEDBACK: List = List("feedback");

pub(super) fn mount(api: &mut Api) {
    let list = OperationDoc::new("List feedback on agents, newest first").answer::<Page<Feedback>>();
    api.get("/api/v1/feedback", list, self::list);
    let give = OperationDoc::new("Give feedback on an agent of a run").answer::<Feedback>().status(201);
    api.post("/api/v1/runs/{id}/feedback", give, self::give);
    let retract = OperationDoc::new("Retract feedback; agents are not told it any more").status(204);
    api.delete("/api/v1/feedback/{id}", retract, self::retract);
}

async fn list(caller: Caller, Params(mut query): Params<FeedbackQuery>) -> Result<Json<Page<Feedback>>> {
    query.limit = Some(limit(query.limit)?);
    query.cursor = FEEDBACK.place(query.cursor)?;
    Ok(Json(FEEDBACK.page(caller.state.store.feedback(caller.principal(), &query).await?)))
}

async fn give(
    write: Write,
    Id(run): Id<RunId>,
    body::Json { value, digest }: body::Json<NewFeedback>,
) -> Result<Response> {
    let caller = &write.caller;
    let not_found = || Problem::new(Code::NotFound);
    let summary = caller.state.store.find_run(run).await?.ok_or_else(not_found)?.summary();
    // The transaction checks access again with the rights at that time, but relies on this involvement, which does not
    // change on its own.
    let seen = caller.state.store.seen_through(caller.principal(), &summary).await?;
    let involvement = seen.unwrap_or(Involvement::None);
    let give = store::Operation::GiveFeedback { run, involvement, feedback: Box::new(value) };
    let Committed::Feedback { feedback } = write.commit(digest, give).await? else {
        return Err(unexpected());
    };
    Ok((StatusCode::CREATED, Json(feedback)).into_response())
}

async fn retract(write: Write, Id(id): Id<FeedbackId>) -> Result<StatusCode> {
    write.commit_without_body(store::Operation::RetractFeedback(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
