//! What a client says: reading it, and carrying out what it asks for.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use shared::api::Decided;
use shared::decision::{DecisionRequest, Via};
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::protocol::{Answer, ClientMessage, ServerMessage};

use crate::engine::Input;
use crate::problem;
use crate::store::{self, Actor, Change, IdempotencyKey, Operation, Store};

/// The longest `ref`, in bytes: that of an idempotency key.
const MAX_REF: usize = 255;

/// Why a frame was not understood.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// It has a `ref`: whoever sent it is told under it.
    Reply(Box<ServerMessage>),
    /// It has none: nobody could tell what an answer belongs to.
    Close(String),
}

/// Reads a frame.
pub(super) fn read(text: &str) -> Result<ClientMessage, Unreadable> {
    /// As much of a frame as an answer needs.
    #[derive(Deserialize)]
    struct Referring {
        r#ref: String,
    }

    serde_json::from_str(text).map_err(|error| match serde_json::from_str::<Referring>(text) {
        Ok(Referring { r#ref }) => {
            let problem = Problem::new(Code::Invalid).detail(error.to_string());
            Unreadable::Reply(Box::new(reply(r#ref, Err(problem))))
        }
        Err(_) => Unreadable::Close(error.to_string()),
    })
}

/// Decides a review; said again with the same `ref`, it answers the same again.
pub(super) async fn decide(
    store: &Store,
    actor: &Actor,
    r#ref: String,
    review: ReviewId,
    request: DecisionRequest,
) -> ServerMessage {
    let body = serde_json::to_vec(&request).unwrap_or_default();
    let by = actor.principal.clone();
    let input = Input::Decide { review, by, via: Via::Human, request };
    commit(store, actor, r#ref, "decide", review, &body, input).await
}

/// Claims a review.
pub(super) async fn claim(store: &Store, actor: &Actor, r#ref: String, review: ReviewId) -> ServerMessage {
    let input = Input::Claim { review, by: actor.principal.clone(), via: Via::Human };
    commit(store, actor, r#ref, "claim", review, &[], input).await
}

async fn commit(
    store: &Store,
    actor: &Actor,
    r#ref: String,
    what: &str,
    review: ReviewId,
    body: &[u8],
    input: Input,
) -> ServerMessage {
    if r#ref.is_empty() || r#ref.len() > MAX_REF {
        let problem = Problem::invalid("/ref", format!("`ref` has 1 to {MAX_REF} bytes"));
        return reply(r#ref, Err(problem));
    }
    let key = IdempotencyKey {
        scope: format!("{} WS /api/v1/live {what} {review}", actor.principal.username),
        key: r#ref.clone(),
        body: Sha256::digest(body).into(),
    };
    let operation = Operation::Review { review, input: Box::new(input) };
    let change = Change { by: Some(actor.clone()), key: Some(key), operation };
    let answer = match store.commit(change).await {
        Ok(store::Answer::Decided { decided }) => Ok(decided),
        Ok(other) => {
            tracing::error!(?other, "a change of a review answered with something else");
            Err(Problem::new(Code::Internal))
        }
        Err(error) => Err(problem::of_commit(error, Some(&actor.principal))),
    };
    reply(r#ref, answer)
}

fn reply(r#ref: String, answer: Result<Box<Decided>, Problem>) -> ServerMessage {
    let answer = answer.map_or_else(|problem| Answer::Problem(Box::new(problem)), Answer::Ok);
    ServerMessage::Reply { r#ref, answer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_decision_is_read_as_it_is_written_in_the_contract() {
        let review = ReviewId(uuid::Uuid::from_u128(7));
        let frame = json!({
            "type": "decide", "ref": "r1", "review": review, "revision": 2, "digest": "sha256:ab",
            "verdict": { "type": "choose", "option": "approve" }, "comment": "fine"
        });
        let Ok(ClientMessage::Decide { r#ref, review: named, decision }) = read(&frame.to_string()) else {
            panic!("not read as a decision")
        };
        assert_eq!((r#ref.as_str(), named, decision.revision), ("r1", review, 2));
        assert_eq!(decision.comment.as_deref(), Some("fine"));
    }

    #[test]
    fn what_cannot_be_read_is_answered_under_its_ref() {
        let frame = json!({ "type": "decide", "ref": "r1", "review": "no id" }).to_string();
        let Err(Unreadable::Reply(reply)) = read(&frame) else { panic!("not answered") };
        let reply = serde_json::to_value(&reply).expect("JSON");
        assert_eq!(
            (&reply["type"], &reply["ref"], &reply["problem"]["code"]),
            (&json!("reply"), &json!("r1"), &json!("invalid"))
        );
        assert!(matches!(read("{"), Err(Unreadable::Close(_))));
        assert!(matches!(read(r#"{"type":"dance"}"#), Err(Unreadable::Close(_))));
    }
}
