//! Checks what guardrails would do with a decision before it is made, while a person edits it.

use std::sync::Arc;

use axum::Json;
use shared::access::Act;
use shared::decision::DecisionRequest;
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::review::Checked;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::clock::Moment;
use crate::engine::{self, Refusal, Snapshot};
use crate::flow::Compiled;
use crate::http::Caller;
use crate::http::body::{self, Id};
use crate::http::problem::{Refused, Result};
use crate::problem::of_commit;
use crate::rate_limit::LimitHolder;
use crate::store::{self, CommitError};

/// Limits how many checks run guardrails on blocking threads at the same time.
static CHECKING: Semaphore = Semaphore::const_new(2);
/// How many programs one check asks concurrently. The limit leaves capacity for the programs that decisions ask.
const ASKED_AT_ONCE: usize = 2;

/// Nothing is written. The state is read after the review: where the review has changed meanwhile, that is answered as it
/// would be to the decision.
pub(super) async fn check(
    caller: Caller,
    Id(id): Id<ReviewId>,
    body: body::Json<DecisionRequest>,
) -> Result<Json<Checked>> {
    let not_found = || Problem::new(Code::NotFound);
    let review = caller.state.store.review(id).await?.ok_or_else(not_found)?;
    caller.may(Act::SeeReview(&review))?;
    let mut running = caller.state.checks.begin(LimitHolder::of(caller.principal()), id)?;
    let run = caller.state.store.run_of(id).await?.ok_or_else(not_found)?;
    let flow = caller.state.store.flow_of(&run).await?;
    let flow = flow.map_err(|why| Problem::new(Code::Unreadable).detail(why))?;
    let snapshot = Snapshot::new(run, [review]);
    tokio::select! {
        checked = checked(&caller, id, flow, snapshot, body.value) => checked,
        replaced = running.replaced() => Err(Refused(replaced)),
    }
}

async fn checked(
    caller: &Caller,
    id: ReviewId,
    flow: Arc<Compiled>,
    snapshot: Snapshot,
    request: DecisionRequest,
) -> Result<Json<Checked>> {
    let moment = Moment::of(&*caller.state.clock);
    let (principal, request) = (Arc::new(caller.principal().clone()), Arc::new(request));
    let mut replies = Vec::new();
    let until = Instant::now() + store::GUARDRAIL_TIME;
    loop {
        // An edit may contain long texts, so it is checked on a blocking thread.
        let permit = CHECKING.acquire().await;
        let check = {
            let (flow, principal, request) = (Arc::clone(&flow), Arc::clone(&principal), Arc::clone(&request));
            let (snapshot, replies) = (snapshot.clone(), replies.clone());
            move || {
                let _permit = permit;
                engine::check(&flow, snapshot, id, &principal, &request, &replies, moment)
            }
        };
        let checked = spawn_blocking(check).await.map_err(|error| {
            tracing::error!(%error, "a decision could not be checked");
            Refused(Problem::new(Code::Internal))
        })?;
        match checked {
            Err(Refusal::Unasked { inquiries, .. }) if Instant::now() < until => {
                replies.extend(caller.state.store.inquire(inquiries, until, ASKED_AT_ONCE).await);
            }
            checked => {
                let by = Some(&*principal);
                return Ok(Json(checked.map_err(|refusal| of_commit(CommitError::Refused(refusal), by))?));
            }
        }
    }
}
