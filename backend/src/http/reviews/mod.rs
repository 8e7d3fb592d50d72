//! `/api/v1/reviews`: questions to people, and their decisions.

mod ask;
mod check;
mod checks_at_once;
mod list;
mod viewed;

pub(super) use self::list::wrong_filter;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, Method};
use shared::access::{Act, Principal};
use shared::api::{Decided, NewComment, Reason};
use shared::decision::{DecisionRequest, Via};
use shared::deputy::Delegate;
use shared::id::ReviewId;
use shared::reassignment::Reassign;
use shared::review::Review;
use shared::time::Span;

use super::api::{Api, OperationDoc};
use super::archived::review_gone;
use super::body::{self, Id, OptionalJson, Params, refuse};
use super::inputs::{Inputs, OperationInput};
use super::problem::{Result, unexpected};
use super::wait::{Wait, WaitTarget};
use super::{AppState, Caller, Write};
use crate::engine::{Input, Refusal};
use crate::problem::of_refusal;
use crate::store::{self, Committed, CredentialKind};

pub(super) use checks_at_once::ChecksAtOnce;
pub(super) use viewed::ViewedReviews;

pub(super) const REVIEW: &str = "/api/v1/reviews/{id}";

/// The query of `GET /api/v1/reviews/{id}`, which returns a review to those who may see it.
#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ReadQuery {
    /// How long to wait for the end of the review.
    wait: Option<Span>,
    /// The number of comments that the caller knows: the wait also ends when the review has more. Only with `wait`.
    comments_after: Option<u32>,
    /// Whether the person is shown the review, which is recorded once for each revision; default: true. `HEAD` shows
    /// nothing, and a link on another site, which a person may follow without meaning to, records nothing.
    view: Option<bool>,
    /// The revision that the person has been shown; `409` if the review has another one by now. Default: the returned
    /// one. Not with `view=false`.
    viewed: Option<u32>,
}

/// An empty body of a request.
#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmptyBody {}

pub(super) fn mount(api: &mut Api) {
    list::mount(api);
    let ask = OperationDoc::new("Ask people a question without a flow").answer::<Review>().status(201);
    api.post("/api/v1/reviews", ask, ask::ask);
    let about =
        "Get a review; `wait`, of at most 60s, waits until it is over, with `comments_after` also for a comment";
    api.get(REVIEW, about, get);
    api.post("/api/v1/reviews/{id}/decisions", "Decide a review", decide);
    api.post("/api/v1/reviews/{id}/check", "Check a decision against guardrails without making it", check::check);
    api.post("/api/v1/reviews/{id}/claim", "Claim a review", claim);
    api.post("/api/v1/reviews/{id}/release", "Release a claim", release);
    api.post("/api/v1/reviews/{id}/delegate", "Delegate a review to someone else", delegate);
    api.post("/api/v1/reviews/{id}/reassign", "Reassign a review to another person or role", reassign);
    api.post("/api/v1/reviews/{id}/comments", "Comment on a review", comment);
    api.post("/api/v1/reviews/{id}/withdraw", "Withdraw a review; it counts as rejected", withdraw);
}

async fn get(
    method: Method,
    caller: Caller,
    headers: HeaderMap,
    Id(id): Id<ReviewId>,
    Params(ReadQuery { wait, comments_after, view, viewed }): Params<ReadQuery>,
) -> Result<Json<Review>> {
    let is_alone = comments_after.is_some() && wait.is_none();
    refuse([
        ("/viewed", view == Some(false) && viewed.is_some(), "not with `view=false`, which records nothing"),
        ("/comments_after", is_alone, "only with `wait`, which a further comment ends"),
    ])?;
    let target = comments_after.map_or(WaitTarget::Review(id), |seen| WaitTarget::Comment(id, seen));
    let wait = Wait::begin(&caller, target, wait)?;
    let mut review = visible(&caller, id).await?;
    if let Some(viewed) = viewed.filter(|viewed| *viewed != review.revision) {
        let problem = of_refusal(Refusal::RevisionChanged(Box::new(review)), Some(caller.principal()));
        return Err(problem.detail(format!("it is not at revision {viewed}, so no view was recorded")).into());
    }
    if view != Some(false) && viewed::shows(&caller, &method, &headers) {
        viewed::record(&caller, &review).await;
    }
    let person = caller.principal().username.clone();
    let is_commented = comments_after.is_some_and(|seen| review.comments.len() > seen as usize);
    if let Some(wait) = wait.filter(|_| review.is_pending() && !is_commented) {
        review = visible(&wait.end(caller, &headers).await?, id).await?;
    }
    Ok(Json(review.seen_by(Some(&person))))
}

async fn visible(caller: &Caller, id: ReviewId) -> Result<Review> {
    let Some(review) = caller.state.store.review(id).await? else {
        return Err(review_gone(caller, id).await?.into());
    };
    caller.may(Act::SeeReview(&review))?;
    Ok(review)
}

/// The inputs of a write to a review, except its body.
#[derive(FromRequestParts)]
#[from_request(state(AppState))]
pub(super) struct ReviewWrite {
    write: Write,
    #[from_request(via(Id))]
    review: ReviewId,
    headers: HeaderMap,
}

impl OperationInput for ReviewWrite {
    fn describe(inputs: &mut Inputs<'_>) {
        Write::describe(inputs);
    }
}

impl ReviewWrite {
    /// Commits an input of the caller. Only the engine checks rights, inside the transaction: checking them here too
    /// would read the review twice.
    async fn commit(
        self,
        body: [u8; 32],
        input: impl FnOnce(ReviewId, Principal, Via) -> Input,
    ) -> Result<Json<Decided>> {
        let Self { write, review, headers } = self;
        let caller = &write.caller;
        let input = Box::new(input(review, caller.principal().clone(), via(caller, &headers)));
        let operation = store::Operation::Review { review, input };
        let Committed::Decided { decided } = write.commit(body, operation).await? else { return Err(unexpected()) };
        Ok(Json(*decided))
    }
}

/// Returns the channel for the audit log, which is only a label and gives no rights. Only requests with a token may
/// choose it, so that decisions in browsers are always recorded as such.
fn via(caller: &Caller, headers: &HeaderMap) -> Via {
    let said = headers.get("countersign-via").is_some_and(|said| said == "cli");
    if said && caller.identity.kind == CredentialKind::Token { Via::Cli } else { Via::Human }
}

async fn decide(write: ReviewWrite, body: body::Json<DecisionRequest>) -> Result<Json<Decided>> {
    let request = body.value;
    write.commit(body.digest, |review, by, via| Input::decide(review, by, via, request)).await
}

async fn claim(write: ReviewWrite, OptionalJson(body): OptionalJson<EmptyBody>) -> Result<Json<Decided>> {
    write.commit(body.digest, |review, by, via| Input::Claim { review, by, via }).await
}

async fn release(write: ReviewWrite, OptionalJson(body): OptionalJson<EmptyBody>) -> Result<Json<Decided>> {
    write.commit(body.digest, |review, by, via| Input::Release { review, by, via }).await
}

async fn delegate(write: ReviewWrite, body: body::Json<Delegate>) -> Result<Json<Decided>> {
    let to = body.value.to;
    write.commit(body.digest, |review, by, via| Input::Delegate { review, by, via, to, person: None }).await
}

async fn reassign(write: ReviewWrite, body: body::Json<Reassign>) -> Result<Json<Decided>> {
    let Reassign { from, to, reason } = body.value;
    write.commit(body.digest, |review, by, via| Input::Reassign { review, by, via, from, to, reason }).await
}

async fn comment(write: ReviewWrite, body: body::Json<NewComment>) -> Result<Json<Decided>> {
    let text = body.value.text;
    write.commit(body.digest, |review, by, via| Input::Comment { review, by, via, text }).await
}

async fn withdraw(write: ReviewWrite, OptionalJson(body): OptionalJson<Reason>) -> Result<Json<Decided>> {
    let reason = body.value.reason;
    write.commit(body.digest, |review, by, via| Input::Withdraw { review, by, via, reason }).await
}
