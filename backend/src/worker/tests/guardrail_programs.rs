//! Programs that guardrails ask over HTTP: by a worker about a handler's approval, and by the store about a person's
//! decision.

use std::time::Duration;

use shared::error::FlowCode;
use shared::time::Timestamp;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::flow::guardrail::GuardrailPrograms;
use crate::handler::{SigningKeys, WebhookOptions, Webhooks};
use crate::store::CommitError;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A flow with a gated call, and an output that a person may edit.
fn guarded(url: &str, gate: &Value, more: &Value) -> Value {
    let mut rules =
        json!({ "name": "house-rules", "on": ["actions", "edits"], "webhook": { "url": url, "timeout": "20s" } });
    rules["webhook"].as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    let options = json!([{ "id": "yes", "label": "Yes" }]);
    json!({
        "id": "test",
        "input": { "type": "object", "properties": { "note": { "type": "string", "default": "A note" } } },
        "guardrails": [rules],
        "tools": { "publish": { "builtin": "demo_publish" } },
        "gates": { "before_tool": { "publish": gate } },
        "nodes": {
            "go": { "tool": "publish", "arguments": { "title": "Ocean", "text": "Blue." }, "write_keys": ["said"], "next": "look" },
            "look": { "human": { "prompt": "Fine?", "edit_keys": ["note"], "options": options } },
        },
    })
}

fn programs(house: &House) -> Arc<Webhooks> {
    let options = WebhookOptions {
        allowed_hosts: vec!["127.0.0.1".to_owned()],
        keys: SigningKeys::read(SECRET),
        server: None,
        clock: Arc::clone(&house.clock),
    };
    let programs = Arc::new(Webhooks::new(options).unwrap());
    house.store.ask_guardrails_by(Arc::clone(&programs) as Arc<dyn GuardrailPrograms>);
    programs
}

fn worker(house: &House) -> BackgroundTask {
    start(WorkerOptions { programs: programs(house), ..house.worker(demo(), tools()) })
}

async fn answering(answer: ResponseTemplate) -> MockServer {
    let receiver = MockServer::start().await;
    Mock::given(method("POST")).respond_with(answer).mount(&receiver).await;
    receiver
}

/// Runs a flow with a call that an `auto` handler approves. Returns whether the guardrail blocked it, with the number
/// of requests to the program.
async fn outcome(answer: ResponseTemplate, more: &Value) -> (Result<(), String>, usize) {
    let receiver = answering(answer).await;
    let house = House::with(guarded(&receiver.uri(), &json!({ "handlers": [{ "auto": "approve" }] }), more)).await;
    let worker = worker(&house);
    let run = house.launch().await;
    let step = async || {
        let review = house.store.run_reviews(run).await.unwrap().into_iter().find(Review::is_pending);
        let state = house.store.run(run).await.unwrap().unwrap();
        match state.outcome {
            Some(RunOutcome::Failed { error, .. }) => {
                assert_eq!(error.code, FlowCode::GuardrailBlocked);
                Some(Err(error.message))
            }
            _ => review.map(|_| Ok(())),
        }
    };
    let outcome = house.until(step).await;
    worker.stop().await;
    (outcome, receiver.received_requests().await.unwrap().len())
}

#[tokio::test]
async fn a_program_is_asked_with_a_signature_of_what_is_about_to_happen() {
    let receiver = answering(ResponseTemplate::new(200).set_body_json(json!({ "allowed": true }))).await;
    let gate = json!({ "handlers": [{ "auto": "approve" }] });
    let house = House::with(guarded(&format!("{}/look?key=s3cret", receiver.uri()), &gate, &json!({}))).await;
    let worker = worker(&house);
    house.pending(house.launch().await).await;
    worker.stop().await;
    let requests = receiver.received_requests().await.unwrap();
    let [request] = &requests[..] else { panic!("{requests:?}") };
    let header = |name: &str| request.headers[name].to_str().unwrap();
    let body = std::str::from_utf8(&request.body).unwrap();
    let at = Timestamp(header("webhook-timestamp").parse::<i64>().unwrap() * 1_000_000);
    let expected = SigningKeys::read(SECRET).unwrap().headers(header("webhook-id"), at, body);
    assert!(expected.iter().all(|(name, value)| header(name) == value), "{expected:?}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["type"], "guardrail.look");
    assert_eq!(
        body["data"],
        json!({
            "guardrail": "house-rules", "on": "actions", "arguments": { "title": "Ocean", "text": "Blue." },
            "action": { "type": "tool", "name": "publish", "agent": null }, "request": body["data"]["request"],
        })
    );
}

#[tokio::test]
async fn what_it_answers_blocks_or_lets_pass_and_no_answer_blocks() {
    let says = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    let allows = json!({ "on_error": "allow" });
    let nonsense = "house-rules: it could not be asked: its answer cannot be read";
    let busy = ResponseTemplate::new(503).insert_header("retry-after", "18446744073709551615");
    for (answer, more, expected, asked) in [
        (says(json!({ "allowed": true })), json!({}), Ok(()), 1),
        (says(json!({ "allowed": false, "reason": "Not now." })), allows.clone(), Err("house-rules: Not now."), 1),
        (says(json!({ "allowed": false })), json!({}), Err("house-rules: its program rejects it"), 1),
        (says(json!({ "allow": true })), json!({}), Err(nonsense), 1),
        (says(json!([true])), json!({}), Err(nonsense), 1),
        (ResponseTemplate::new(202), json!({}), Err("house-rules: it could not be asked: Webhook returned 202"), 1),
        (ResponseTemplate::new(410), allows, Ok(()), 1),
        (busy, json!({}), Err("house-rules: it could not be asked: Webhook returned 503"), 1),
    ] {
        let (outcome, requests) = outcome(answer, &more).await;
        match (outcome, expected) {
            (Ok(()), Ok(())) => {}
            (Err(message), Err(expected)) => assert!(message.starts_with(expected), "{message}"),
            (outcome, expected) => panic!("{outcome:?} {expected:?}"),
        }
        assert_eq!(requests, asked);
    }
}

#[tokio::test]
async fn one_that_is_busy_is_asked_again_within_its_time() {
    let receiver = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(503)).up_to_n_times(1).mount(&receiver).await;
    let allows = ResponseTemplate::new(200).set_body_json(json!({ "allowed": true }));
    Mock::given(method("POST")).respond_with(allows).mount(&receiver).await;
    let gate = json!({ "handlers": [{ "auto": "approve" }] });
    let house = House::with(guarded(&receiver.uri(), &gate, &json!({}))).await;
    let worker = worker(&house);
    house.pending(house.launch().await).await;
    worker.stop().await;
    let requests = receiver.received_requests().await.unwrap();
    let ids: Vec<_> = requests.iter().map(|request| &request.headers["webhook-id"]).collect();
    assert_eq!((ids.len(), ids[0]), (2, ids[1]));

    let slow = ResponseTemplate::new(200).set_body_json(json!({ "allowed": true })).set_delay(Duration::from_secs(20));
    let (outcome, _) = outcome(slow, &json!({ "timeout": "1s" })).await;
    assert!(outcome.unwrap_err().ends_with("It did not answer in time."));
}

#[tokio::test]
async fn what_somebody_decides_is_written_only_when_the_program_has_answered() {
    let receiver = MockServer::start().await;
    let objects = json!({ "allowed": false, "reason": "Too short." });
    let objects = ResponseTemplate::new(200).set_body_json(objects);
    let about = wiremock::matchers::body_string_contains;
    Mock::given(about("\"edits\":{\"note\":\"No\"}")).respond_with(objects).mount(&receiver).await;
    let allows = ResponseTemplate::new(200).set_body_json(json!({ "allowed": true }));
    Mock::given(method("POST")).respond_with(allows).mount(&receiver).await;
    let house = House::with(guarded(&receiver.uri(), &json!(true), &json!({}))).await;
    let worker = worker(&house);
    let run = house.launch().await;
    let gated = house.pending(run).await;
    let approve = json!({ "type": "actions", "decisions": { "c1-1": { "type": "approve" } } });
    house.decide(&gated, approve).await;
    assert_eq!(receiver.received_requests().await.unwrap().len(), 1, "the decision waited for the answer");

    let review = house.pending(run).await;
    let edited = |note: &str| {
        let request = json!({
            "revision": review.revision, "digest": review.digest, "edits": { "note": note },
            "verdict": { "type": "choose", "option": "yes" },
        });
        let request: DecisionRequest = serde_json::from_value(request).unwrap();
        let input = Box::new(Input::decide(review.id, house.ana.clone(), Via::Human, request));
        let by = Some(Actor::of(house.ana.clone()));
        house.store.commit(Change { by, key: None, operation: Operation::Review { review: review.id, input } })
    };
    match edited("No").await {
        Err(CommitError::Refused(engine::Refusal::Invalid(mistakes))) => {
            assert_eq!((&*mistakes[0].path, &*mistakes[0].message), ("/edits/note", "house-rules: Too short."));
        }
        other => panic!("{other:?}"),
    }
    edited("A longer note").await.unwrap();
    assert_eq!(house.ended(run).await.keys["note"], "A longer note");
    worker.stop().await;
}

#[tokio::test]
async fn a_decision_in_time_is_made_without_the_answer_that_would_make_it_late() {
    let slow = ResponseTemplate::new(200).set_body_json(json!({ "allowed": true })).set_delay(Duration::from_secs(20));
    let receiver = answering(slow).await;
    let gate = json!({ "timeout": "1h", "on_timeout": "approve" });
    // The deadline passes on this clock only, so the commit is in time however long it takes.
    let clock = ManualClock::now();
    let house = House::at(clock.clone(), guarded(&receiver.uri(), &gate, &json!({}))).await;
    programs(&house);
    let gated = house.pending(house.launch().await).await;
    clock.advance(Duration::from_secs(60 * 60 - 1));
    house.decide(&gated, json!({ "type": "actions", "decisions": { "c1-1": { "type": "approve" } } })).await;
    let review = house.store.review(gated.id).await.unwrap().unwrap();
    let resolution = review.resolution.unwrap();
    assert!(resolution.at < review.expires_at.unwrap(), "{resolution:?}");
    assert_eq!((review.status, &resolution.by[..]), (ReviewStatus::Resolved, &[house.ana.username.clone()][..]));
    let why: Vec<_> = resolution.vetoes.iter().map(|veto| veto.reason.as_str()).collect();
    assert_eq!(why, ["it could not be asked: there was no time left"], "what nobody looked at does not happen");
}
