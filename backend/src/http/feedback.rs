//! `/api/v1/feedback` lists and retracts feedback on agents, and `/api/v1/runs/{id}/feedback` gives it.

use axum::Json;
use axum::response::NoContent;
use shared::access::Involvement;
use shared::api::Page;
use shared::error::{Code, Problem};
use shared::feedback::{Feedback, FeedbackQuery, NewFeedback};
use shared::id::{FeedbackId, RunId};

use super::api::Api;
use super::body::{self, Id, Params, limit};
use super::outputs::Created;
use super::pagination::List;
use super::problem::{Result, unexpected};
use super::{Caller, Write};
use crate::store::{self, Committed};

const FEEDBACK: List = List("feedback");

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/feedback", "List feedback on agents, newest first", list);
    api.post("/api/v1/runs/{id}/feedback", "Give feedback on an agent of a run", give);
    api.delete("/api/v1/feedback/{id}", "Retract feedback; agents are not told it any more", retract);
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
) -> Result<Created<Feedback>> {
    let caller = &write.caller;
    let not_found = || Problem::new(Code::NotFound);
    let summary = caller.state.store.find_run(run).await?.ok_or_else(not_found)?.summary();
    // The transaction checks access again with the rights at that time, but relies on this involvement, which does not
    // change on its own.
    let seen = caller.state.store.seen_through(caller.principal(), &summary).await?;
    let involvement = seen.unwrap_or(Involvement::None);
    let give = store::Operation::GiveFeedback { run, involvement, feedback: Box::new(value) };
    let Committed::Feedback { feedback } = write.commit(digest, give).await? else { return Err(unexpected()) };
    Ok(Created(*feedback))
}

async fn retract(write: Write, Id(id): Id<FeedbackId>) -> Result<NoContent> {
    write.commit_without_body(store::Operation::RetractFeedback(id)).await
}
