//! `/api/v1/runs`: starting, watching and cancelling runs.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde::Deserialize;
use shared::JsonMap;
use shared::access::{Act, access};
use shared::api::{Launch, Page, Reason, RunQuery};
use shared::error::{Code, Problem};
use shared::id::RunId;
use shared::review::{Review, ReviewStatus};
use shared::run::{Context, Report, Run, RunStatus, RunSummary};
use shared::time::Span;

use super::api::{Api, OperationDoc};
use super::archived::run_gone;
use super::body::{self, Id, OptionalJson, Params, limit};
use super::pagination::List;
use super::problem::{Result, unexpected};
use super::wait::{Wait, WaitTarget};
use super::{Caller, Write};
use crate::clock::Moment;
use crate::engine::{self, Input};
use crate::store::{self, Committed, FoundRun};

pub(super) const RUN: &str = "/api/v1/runs/{id}";
const RUNS: List = List("runs");
const RUNS_WITH_WORDS: List = List("found runs");
/// The longest search, in characters.
const MAX_SEARCH: usize = 500;
const RUN_REVIEWS: List = List("run reviews");

/// The query of `GET /api/v1/runs/{id}`, which returns a run to those who may see it.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ReadQuery {
    /// How long to wait until the run ends or stops for people.
    wait: Option<Span>,
}

/// The query of `GET /api/v1/runs/{id}/reviews`, which lists the reviews of a run, newest first.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RunReviews {
    /// Only reviews with this status.
    status: Option<ReviewStatus>,
    limit: Option<u32>,
    cursor: Option<String>,
}

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/runs", "List or search runs, newest first", list);
    api.post("/api/v1/runs", OperationDoc::new("Launch a run").answer::<Run>().status(201), launch);
    api.get(RUN, "Get a run; `wait`, of at most 60s, waits until it ends or stops for people", get);
    api.get("/api/v1/runs/{id}/report", "Get the report of a run: what each visit of each node did", report);
    api.get("/api/v1/runs/{id}/reviews", "List the reviews of a run, pending and past", reviews);
    api.post("/api/v1/runs/{id}/cancel", "Cancel a run", cancel);
}

async fn list(caller: Caller, Params(mut query): Params<RunQuery>) -> Result<Json<Page<RunSummary>>> {
    query.limit = Some(limit(query.limit)?);
    if query.q.as_ref().is_some_and(|q| q.chars().count() > MAX_SEARCH) {
        return Err(Problem::invalid("/q", format!("at most {MAX_SEARCH} characters")).into());
    }
    let list = if query.has_words() { RUNS_WITH_WORDS } else { RUNS };
    query.cursor = list.place(query.cursor)?;
    Ok(Json(list.page(caller.state.store.runs(caller.principal(), &query).await?)))
}

async fn launch(write: Write, body::Json { value, digest }: body::Json<Launch>) -> Result<Response> {
    write.caller.may(Act::Launch)?;
    let run = RunId(Moment::of(&*write.caller.state.clock).ids().uuid());
    let Launch { flow, version, input, context, callback_url } = value;
    write.caller.state.outside.check_callback(callback_url.as_deref())?;
    let launch = store::Operation::Launch { run, flow, version, input, context: Box::new(context), callback_url };
    let Committed::Run { run } = write.commit(digest, launch).await? else { return Err(unexpected()) };
    let location = format!("/api/v1/runs/{}", run.summary.id);
    Ok((StatusCode::CREATED, AppendHeaders([(header::LOCATION, location)]), Json(run)).into_response())
}

async fn get(
    mut caller: Caller,
    headers: HeaderMap,
    Id(id): Id<RunId>,
    Params(ReadQuery { wait }): Params<ReadQuery>,
) -> Result<Json<Run>> {
    let wait = Wait::begin(&caller, WaitTarget::Run(id), wait)?;
    let (mut run, mut summary) = visible(&caller, id).await?;
    if let Some(wait) = wait.filter(|_| summary.status == RunStatus::Running) {
        caller = wait.end(caller, &headers).await?;
        (run, summary) = visible(&caller, id).await?;
    }
    let FoundRun::Read(run) = run else { return Ok(Json(unreadable(summary))) };
    let compiled = caller.state.store.flow_of(&run).await?.ok();
    Ok(Json(engine::shown_run(compiled.as_deref(), &run)))
}

async fn report(caller: Caller, Id(id): Id<RunId>) -> Result<Json<Report>> {
    let (run, reviews) = visible_with_reviews(&caller, id).await?;
    let steps = caller.state.store.steps(id).await?;
    let output = match &run {
        FoundRun::Read(run) => {
            let compiled = caller.state.store.flow_of(run).await?.ok();
            compiled.and_then(|flow| engine::given_out(&flow, run))
        }
        FoundRun::Unreadable(_) => None,
    };
    Ok(Json(engine::report(&run.summary(), output, steps, reviews, caller.state.clock.now())))
}

async fn reviews(
    caller: Caller,
    Id(id): Id<RunId>,
    Params(RunReviews { status, limit, cursor }): Params<RunReviews>,
) -> Result<Json<Page<Review>>> {
    let (limit, cursor) = (body::limit(limit)?, RUN_REVIEWS.place(cursor)?);
    match caller.state.store.page_of_run(caller.principal(), id, status, limit, cursor.as_deref()).await? {
        Some(page) => Ok(Json(RUN_REVIEWS.page(page))),
        None => Err(run_gone(&caller, id).await?.into()),
    }
}

async fn cancel(
    write: Write,
    Id(id): Id<RunId>,
    OptionalJson(body::Json { value, digest }): OptionalJson<Reason>,
) -> Result<Json<Run>> {
    let caller = &write.caller;
    let Some(summary) = caller.state.store.visible_summary(caller.principal(), id).await? else {
        return Err(run_gone(caller, id).await?.into());
    };
    caller.may(Act::CancelRun(&summary))?;
    let input = Input::Cancel { by: caller.principal().clone(), reason: value.reason };
    let cancel = store::Operation::Run { run: id, input: Box::new(input) };
    let Committed::Run { run } = write.commit(digest, cancel).await? else { return Err(unexpected()) };
    Ok(Json(*run))
}

/// Returns a run whose state cannot be read: only its summary.
fn unreadable(summary: RunSummary) -> Run {
    Run {
        summary,
        input: JsonMap::new(),
        state: JsonMap::new(),
        calls: JsonMap::new(),
        output: None,
        context: Context::default(),
        positions: Vec::new(),
        agents: Vec::new(),
        cancel_reason: None,
    }
}

/// Returns a run that the caller may see; otherwise `404`, or `410` for an archived run.
async fn visible(caller: &Caller, id: RunId) -> Result<(FoundRun, RunSummary)> {
    let Some(run) = caller.state.store.find_run(id).await? else { return Err(run_gone(caller, id).await?.into()) };
    let summary = run.summary();
    must_see(caller, &summary).await?;
    Ok((run, summary))
}

/// Returns `404` unless the caller may see a run.
async fn must_see(caller: &Caller, run: &RunSummary) -> Result<()> {
    let seen = caller.state.store.seen_through(caller.principal(), run).await?;
    seen.map(drop).ok_or_else(|| Problem::new(Code::NotFound).into())
}

/// Returns a run that the caller may see, with its reviews that they may see, in the order of the requests.
async fn visible_with_reviews(caller: &Caller, id: RunId) -> Result<(FoundRun, Vec<Review>)> {
    let Some((run, mut reviews)) = caller.state.store.run_with_reviews(id).await? else {
        return Err(run_gone(caller, id).await?.into());
    };
    must_see(caller, &run.summary()).await?;
    reviews.retain(|review| access(caller.principal(), Act::SeeReview(review)).is_allowed());
    let viewer = Some(&caller.principal().username);
    Ok((run, reviews.into_iter().map(|review| review.seen_by(viewer)).collect()))
}
