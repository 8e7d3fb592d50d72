//! `/api/v1/reviews`: what people are asked, and what they say.

mod view;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use shared::access::Act;
use shared::api::{Decided, NewComment, Page, Reason, ReviewQuery};
use shared::decision::{DecisionRequest, Via};
use shared::deputy::Delegate;
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::review::Review;

use super::api::{Api, Operation};
use super::body::{self, Id, OptionalJson, Params, limit};
use super::idempotency::Key;
use super::problem::{Result, unexpected};
use super::{AppState, Caller};
use crate::engine::Input;
use crate::store::{self, Answer, CredentialKind, IdempotencyKey};

pub(super) use view::Views;

/// A body that says nothing.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

pub(super) fn mount(api: &mut Api) {
    let list = Operation::new("Reviews, newest first", "PageOfReviews")
        .query(&["status", "kind", "role", "severity", "flow", "q", "assigned", "limit", "cursor"]);
    api.get("/api/v1/reviews", list, self::list);
    api.get("/api/v1/reviews/{id}", Operation::new("One review", "Review"), get);
    let decide = Operation::new("Decide a review", "Decided").body("DecisionRequest");
    api.post("/api/v1/reviews/{id}/decisions", decide, self::decide);
    api.post("/api/v1/reviews/{id}/claim", Operation::new("Say that one works on it", "Decided"), claim);
    api.post("/api/v1/reviews/{id}/release", Operation::new("Say that one no longer does", "Decided"), release);
    let delegate = Operation::new("Hand it to somebody, who decides it from then on", "Decided").body("Delegate");
    api.post("/api/v1/reviews/{id}/delegate", delegate, self::delegate);
    let comment = Operation::new("Say something beside it", "Decided").body("NewComment");
    api.post("/api/v1/reviews/{id}/comments", comment, self::comment);
    let withdraw = Operation::new("Take it back: what was asked counts as refused", "Decided").body("Reason");
    api.post("/api/v1/reviews/{id}/withdraw", withdraw, self::withdraw);
}

async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(mut query): Params<ReviewQuery>,
) -> Result<Json<Page<Review>>> {
    query.limit = Some(limit(query.limit)?);
    if query.assigned.as_deref().is_some_and(|assigned| assigned != "me") {
        return Err(Problem::invalid("/assigned", "`me`, or nothing").into());
    }
    Ok(Json(state.store.reviews(caller.principal(), &query).await?))
}

async fn get(State(state): State<AppState>, caller: Caller, Id(id): Id<ReviewId>) -> Result<Json<Review>> {
    let review = state.store.review(id).await?.ok_or_else(|| Problem::new(Code::NotFound))?;
    caller.may(Act::SeeReview(&review))?;
    view::record(&state, &caller, &review).await;
    Ok(Json(review.seen_by(Some(&caller.principal().username))))
}

async fn decide(
    State(state): State<AppState>,
    caller: Caller,
    Id(id): Id<ReviewId>,
    key: Key,
    headers: HeaderMap,
    body::Json { value: request, digest }: body::Json<DecisionRequest>,
) -> Result<Json<Decided>> {
    let via = via(&caller, &headers);
    let input = Input::Decide { review: id, by: caller.principal().clone(), via, request };
    commit(&state, &caller, key.of(&caller, digest), id, input).await
}

/// What the record says that it came through. It is a label and gives no right; only a program may choose it, so
/// that what came from a browser is never taken for something else.
fn via(caller: &Caller, headers: &HeaderMap) -> Via {
    let said = headers.get("countersign-via").is_some_and(|said| said == "cli");
    if said && caller.0.kind == CredentialKind::Token { Via::Cli } else { Via::Human }
}

async fn claim(
    State(state): State<AppState>,
    caller: Caller,
    Id(id): Id<ReviewId>,
    key: Key,
    headers: HeaderMap,
    OptionalJson(body::Json { digest, .. }): OptionalJson<Nothing>,
) -> Result<Json<Decided>> {
    let input = Input::Claim { review: id, by: caller.principal().clone(), via: via(&caller, &headers) };
    commit(&state, &caller, key.of(&caller, digest), id, input).await
}

async fn release(
    State(state): State<AppState>,
    caller: Caller,
    Id(id): Id<ReviewId>,
    key: Key,
    headers: HeaderMap,
    OptionalJson(body::Json { digest, .. }): OptionalJson<Nothing>,
) -> Result<Json<Decided>> {
    let input = Input::Release { review: id, by: caller.principal().clone(), via: via(&caller, &headers) };
    commit(&state, &caller, key.of(&caller, digest), id, input).await
}

async fn delegate(
    State(state): State<AppState>,
    caller: Caller,
    Id(id): Id<ReviewId>,
    key: Key,
    headers: HeaderMap,
    body::Json { value, digest }: body::Json<Delegate>,
) -> Result<Json<Decided>> {
    let input = Input::Delegate {
        review: id,
        by: caller.principal().clone(),
        via: via(&caller, &headers),
        to: value.to,
        person: None,
    };
    commit(&state, &caller, key.of(&caller, digest), id, input).await
}

async fn comment(
    State(state): State<AppState>,
    caller: Caller,
    Id(id): Id<ReviewId>,
    key: Key,
    headers: HeaderMap,
    body::Json { value, digest }: body::Json<NewComment>,
) -> Result<Json<Decided>> {
    let input =
        Input::Comment { review: id, by: caller.principal().clone(), via: via(&caller, &headers), text: value.text };
    commit(&state, &caller, key.of(&caller, digest), id, input).await
}

async fn withdraw(
    State(state): State<AppState>,
    caller: Caller,
    Id(id): Id<ReviewId>,
    key: Key,
    headers: HeaderMap,
    OptionalJson(body::Json { value, digest }): OptionalJson<Reason>,
) -> Result<Json<Decided>> {
    let input = Input::Withdraw {
        review: id,
        by: caller.principal().clone(),
        via: via(&caller, &headers),
        reason: value.reason,
    };
    commit(&state, &caller, key.of(&caller, digest), id, input).await
}

/// The engine asks who may, with the rights and the review of the transaction: asking here too would read it twice.
async fn commit(
    state: &AppState,
    caller: &Caller,
    key: Option<IdempotencyKey>,
    review: ReviewId,
    input: Input,
) -> Result<Json<Decided>> {
    let operation = store::Operation::Review { review, input: Box::new(input) };
    let Answer::Decided { decided } = caller.commit(&state.store, key, operation).await? else {
        return Err(unexpected());
    };
    Ok(Json(*decided))
}
