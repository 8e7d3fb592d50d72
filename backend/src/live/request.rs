//! Reads the messages of a client, and executes them.

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use shared::JsonMap;
use shared::api::Decided;
use shared::decision::{DecisionRequest, Via};
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::log::Cursor;
use shared::protocol::{Answer, ClientMessage, ServerMessage, Topic};

use crate::engine::Input;
use crate::json;
use crate::problem;
use crate::store::{self, Actor, Change, Operation, Store};

/// The maximum length of `ref`, in bytes: that of an idempotency key.
const MAX_REF: usize = 255;

/// The reason why a frame was not understood.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// The frame has a `ref`, so the sender gets a reply.
    Reply(Box<ServerMessage>),
    /// The frame has no `ref`, so no reply could be attributed to it.
    Close(String),
}

pub(crate) fn read(text: &str) -> Result<ClientMessage, FrameError> {
    /// The part of a frame that a reply needs.
    #[derive(Deserialize)]
    struct Referring {
        r#ref: String,
    }

    json::check(text.as_bytes()).and_then(message).map_err(|problem| match serde_json::from_str::<Referring>(text) {
        Ok(Referring { r#ref }) => FrameError::Reply(Box::new(reply(r#ref, Err(problem)))),
        Err(_) => FrameError::Close(problem.to_string()),
    })
}

/// Reads a message member by member, as HTTP reads a body, so that each mistake has its place and unknown keys are
/// mistakes.
fn message(value: Value) -> Result<ClientMessage, Problem> {
    #[derive(Deserialize)]
    struct Type {
        r#type: String,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Subscribe {
        after: Option<Cursor>,
        topics: Option<Vec<Topic>>,
    }
    #[derive(Deserialize)]
    struct Addressed {
        r#ref: String,
        review: ReviewId,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct EmptyBody {}

    let mut fields: JsonMap = json::fit(value)?;
    let Type { r#type } = json::fit(taken(&mut fields, &["type"]))?;
    match r#type.as_str() {
        "subscribe" => {
            let Subscribe { after, topics } = json::fit(Value::Object(fields))?;
            Ok(ClientMessage::Subscribe { after, topics })
        }
        "decide" => {
            let Addressed { r#ref, review } = json::fit(taken(&mut fields, &["ref", "review"]))?;
            let decision = Value::Object(fields);
            json::check_verdict(&decision)?;
            Ok(ClientMessage::Decide { r#ref, review, decision: json::fit(decision)? })
        }
        "claim" => {
            let Addressed { r#ref, review } = json::fit(taken(&mut fields, &["ref", "review"]))?;
            let EmptyBody {} = json::fit(Value::Object(fields))?;
            Ok(ClientMessage::Claim { r#ref, review })
        }
        "ping" => Ok(ClientMessage::Ping),
        other => {
            let message = format!("`{other}` is not one of subscribe, decide, claim and ping");
            Err(Problem::invalid("/type", message))
        }
    }
}

/// Removes the members with these names from a message.
fn taken(fields: &mut JsonMap, names: &[&str]) -> Value {
    Value::Object(names.iter().filter_map(|name| fields.remove_entry(*name)).collect())
}

/// Decides a review. Repeated with the same `ref`, it returns the same answer.
pub(super) async fn decide(
    store: &Store,
    actor: &Actor,
    r#ref: String,
    review: ReviewId,
    request: DecisionRequest,
) -> ServerMessage {
    let body = serde_json::to_vec(&request).unwrap_or_default();
    let by = actor.principal.clone();
    let input = Input::decide(review, by, Via::Human, request);
    commit(store, actor, r#ref, "decide", review, &body, input).await
}

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
    let key = actor.key(&format!("WS /api/v1/live {what} {review}"), r#ref.clone(), Sha256::digest(body).into());
    let operation = Operation::Review { review, input: Box::new(input) };
    let change = Change { by: Some(actor.clone()), key: Some(key), operation };
    let answer = match store.commit(change).await {
        Ok(store::Committed::Decided { decided }) => Ok(decided),
        Ok(other) => {
            tracing::error!(?other, "a change of a review returned an unexpected result");
            Err(Problem::new(Code::Internal))
        }
        Err(error) => Err(problem::of_commit(error, Some(&actor.principal))),
    };
    reply(r#ref, answer)
}

/// Builds the reply to the message with this `ref`.
pub(super) fn reply(r#ref: String, answer: Result<Box<Decided>, Problem>) -> ServerMessage {
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
        let Err(FrameError::Reply(reply)) = read(&frame) else { panic!("not answered") };
        let reply = serde_json::to_value(&reply).expect("JSON");
        assert_eq!(
            (&reply["type"], &reply["ref"], &reply["problem"]["code"]),
            (&json!("reply"), &json!("r1"), &json!("invalid"))
        );
        let refused = |frame: String| match read(&frame) {
            Err(FrameError::Reply(reply)) => {
                let mistake = serde_json::to_value(&reply).expect("JSON")["problem"]["errors"][0].clone();
                (mistake["path"].as_str().unwrap_or_default().to_owned(), mistake["code"].clone())
            }
            other => panic!("{frame}: {other:?}"),
        };
        let with =
            |more: &str| format!(r#"{{"type":"decide","ref":"r","review":"{}",{more}}}"#, uuid::Uuid::from_u128(7));
        let verdict = r#""revision":1,"digest":"d","verdict":{"type":"choose","option":"a"}"#;
        for (more, path, code) in [
            (r#""revision":1,"digest":"d""#.to_owned(), "/verdict", "required"),
            (format!(r#"{verdict},"colour":"red""#), "/colour", "unknown"),
            (format!(r#"{verdict},"comment":"a","comment":"b""#), "/comment", "invalid"),
            (format!(r#"{verdict},"comment":"a\u0000""#), "/comment", "invalid"),
            (format!(r#"{verdict},"metadata":{{"a":{}{}}}"#, "[".repeat(63), "]".repeat(63)), "", "invalid"),
        ] {
            let (at, kind) = refused(with(&more));
            assert!(at.starts_with(path) && kind == code, "{more}: {at} {kind}");
        }
        assert!(matches!(read(r#"{"type":"subscribe","topcs":[]}"#), Err(FrameError::Close(_))));
        assert!(matches!(read(r#"{"type":"ping","type":"ping"}"#), Err(FrameError::Close(_))));
        assert!(matches!(read("{"), Err(FrameError::Close(_))));
        assert!(matches!(read(r#"{"type":"dance"}"#), Err(FrameError::Close(_))));
    }
}
