//! `POST /api/v1/reviews`: questions of programs without a flow.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use shared::access::Act;
use shared::error::{Code, Problem};
use shared::id::RunId;
use shared::new_review::NewReview;

use crate::clock::Moment;
use crate::engine::Carrier;
use crate::http::Write;
use crate::http::body;
use crate::http::problem::{Result, unexpected};
use crate::store::{Committed, Operation};

pub(super) async fn ask(write: Write, body::Json { value: asked, digest }: body::Json<NewReview>) -> Result<Response> {
    let caller = &write.caller;
    caller.may(Act::Ask)?;
    let question = Carrier::of(&asked).map_err(|mistakes| Problem::new(Code::Invalid).errors(mistakes))?;
    caller.state.outside.check_callback(asked.callback_url.as_deref())?;
    let run = RunId(Moment::of(&*caller.state.clock).ids().uuid());
    let ask = Operation::Ask { run, question: Box::new(question) };
    let Committed::Review { review } = write.commit(digest, ask).await? else { return Err(unexpected()) };
    let location = format!("/api/v1/reviews/{}", review.id);
    Ok((StatusCode::CREATED, AppendHeaders([(header::LOCATION, location)]), Json(review)).into_response())
}
