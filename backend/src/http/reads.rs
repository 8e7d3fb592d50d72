//! Limits for concurrent reads, per person and for all tokens of a person. A holder has a few reads answered at once;
//! further ones wait in a line of the holder, and beyond its end they are refused with `429`. So one holder never has all
//! connections to the database, however many requests they send.

use std::sync::{Arc, OnceLock};

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use futures::TryStreamExt as _;
use shared::error::Problem;

use crate::problem::too_many;
use crate::rate_limit::LimitHolder;
use crate::waiting_lines::{Turn, WaitingLines};

/// The most reads of a holder that are answered at once: half of the connections that the database has for reads.
const AT_ONCE: usize = 4;
/// The most reads of a holder that are answered or wait.
const CAPACITY: usize = 256;

/// The reads that are answered or wait.
#[derive(Debug, Default)]
pub(super) struct ReadsAtOnce(WaitingLines<LimitHolder>);

/// The turn of a request, as an extension of it. Empty until its caller is known.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadTurn(Arc<OnceLock<Turn<LimitHolder>>>);

impl ReadsAtOnce {
    /// Waits for the turn of a read of this holder; `429` if too many of theirs wait already. Does nothing for requests
    /// that are not counted.
    pub async fn admit(&self, parts: &Parts, holder: LimitHolder) -> Result<(), Problem> {
        let read_turn = parts.extensions.get::<ReadTurn>().filter(|read_turn| read_turn.0.get().is_none());
        let Some(ReadTurn(turn)) = read_turn else { return Ok(()) };
        let _ = turn.set(self.turn(holder).await?);
        Ok(())
    }

    async fn turn(&self, holder: LimitHolder) -> Result<Turn<LimitHolder>, Problem> {
        let turn = self.0.turn(holder, CAPACITY, AT_ONCE).await;
        turn.ok_or_else(|| too_many(format!("{CAPACITY} of your requests are being answered already")))
    }
}

impl ReadTurn {
    /// Has a request counted if it reads. One that waits for a review or a run has a limit of its own, and would keep others of
    /// its holder waiting.
    pub fn of(request: &mut Request, waits: bool) -> Option<Self> {
        if waits || !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let read_turn = Self::default();
        request.extensions_mut().insert(read_turn.clone());
        Some(read_turn)
    }

    /// Ends the turn with the response: at once if its size is known, and otherwise, as with exports, at its end.
    pub fn end_with(self, response: Response) -> Response {
        if self.0.get().is_none() || response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| {
            Body::from_stream(body.into_data_stream().inspect_ok(move |_| {
                let _ = &self;
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, poll, stream};
    use shared::error::Code;

    use super::*;

    fn person(name: &str) -> LimitHolder {
        LimitHolder::Person(name.parse().unwrap())
    }

    #[tokio::test]
    async fn reads_of_one_holder_wait_for_each_other_up_to_a_limit() {
        let reads = ReadsAtOnce::default();
        let mut turns: Vec<_> = (0..CAPACITY).map(|_| Box::pin(reads.turn(person("eve")))).collect();
        let mut answered = Vec::new();
        for turn in turns.drain(..AT_ONCE) {
            answered.push(turn.await.unwrap());
        }
        for turn in &mut turns {
            assert!(poll!(turn).is_pending());
        }
        let refused = reads.turn(person("eve")).await.unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (Code::TooManyRequests, Some(1)));
        reads.turn(person("tom")).await.unwrap();
        reads.turn(LimitHolder::TokensOf("eve".parse().unwrap())).await.unwrap();
        answered.pop();
        assert!(poll!(&mut turns[0]).is_ready(), "the next one takes the place");
        drop((turns, answered));
        assert_eq!(reads.0.count(), 0);
    }

    #[tokio::test]
    async fn a_turn_lasts_until_the_response_is_sent() {
        let reads = ReadsAtOnce::default();
        let read = async || {
            let read_turn = ReadTurn::of(&mut Request::get("/").body(Body::empty()).unwrap(), false).unwrap();
            read_turn.0.set(reads.turn(person("eve")).await.unwrap()).unwrap();
            read_turn
        };
        let known = read().await.end_with(Response::new(Body::from("{}")));
        assert_eq!(reads.0.count(), 0);
        assert_eq!(known.body().size_hint().exact(), Some(2));
        let pages = Body::from_stream(stream::iter(["a", "b"].map(Ok::<_, std::io::Error>)));
        let mut export = read().await.end_with(Response::new(pages)).into_body().into_data_stream();
        export.next().await.unwrap().unwrap();
        assert_eq!(reads.0.count(), 1);
        drop(export);
        assert_eq!(reads.0.count(), 0);
    }
}
