//! Checks what guardrails would do with a decision before it is made, while a person edits it.

use axum::Json;
use shared::access::Act;
use shared::decision::DecisionRequest;
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::review::Checked;
use tokio::time::Instant;

use crate::clock::Moment;
use crate::engine::{self, Refusal, Snapshot};
use crate::http::Caller;
use crate::http::body::{self, Id};
use crate::http::problem::Result;
use crate::problem::of_commit;
use crate::store::{self, CommitError};

/// Checks a decision without writing anything. The state is read after the review: if the review has changed in the
/// meantime, the response is the same as for the decision.
pub(super) async fn check(
    caller: Caller,
    Id(id): Id<ReviewId>,
    body: body::Json<DecisionRequest>,
) -> Result<Json<Checked>> {
    let not_found = || Problem::new(Code::NotFound);
    let review = caller.state.store.review(id).await?.ok_or_else(not_found)?;
    caller.may(Act::SeeReview(&review))?;
    let run = caller.state.store.run_of(id).await?.ok_or_else(not_found)?;
    let flow = caller.state.store.flow_of(&run).await?;
    let flow = flow.map_err(|why| Problem::new(Code::Unreadable).detail(why))?;
    let snapshot = Snapshot::new(run, [review]);
    let moment = Moment::of(&*caller.state.clock);
    let principal = caller.principal();
    let mut looked = Vec::new();
    let until = Instant::now() + store::GUARDRAIL_TIME;
    loop {
        let checked = engine::check(&flow, snapshot.clone(), id, principal, &body.value, &looked, moment);
        match checked {
            Err(Refusal::Unasked { inquiries, .. }) if Instant::now() < until => {
                looked.extend(caller.state.store.look(inquiries, until).await);
            }
            checked => {
                return Ok(Json(checked.map_err(|refusal| of_commit(CommitError::Refused(refusal), Some(principal)))?));
            }
        }
    }
}
