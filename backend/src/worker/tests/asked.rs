//! Webhooks that decide, asked by a worker on a real store.

use std::collections::BTreeSet;
use std::time::Instant;

use shared::error::{FlowCode, FlowError};
use shared::time::Timestamp;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::*;
use crate::handler::{CallbackKey, CallbackUrl, SigningKeys, WebhookOptions, Webhooks};

/// The secrets of the webhook specification's examples.
const SECRETS: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn asking(url: &str) -> Value {
    asking_by(&json!({ "url": url }))
}

fn asking_by(webhook: &Value) -> Value {
    let options = json!([{ "id": "no", "kind": "stop", "label": "No" }, { "id": "yes", "label": "Yes" }]);
    let handlers = json!([{ "webhook": webhook }]);
    let human = json!({ "prompt": "Publish?", "options": options, "handlers": handlers });
    json!({ "id": "test", "nodes": { "ask": { "human": human } } })
}

fn webhooks(house: &House, secrets: &str, allowed: &[&str]) -> Webhooks {
    let key = Some(CallbackKey::new([7; 32]));
    let options = WebhookOptions {
        allowed_hosts: allowed.iter().map(|host| (*host).to_owned()).collect(),
        keys: SigningKeys::read(secrets),
        server: Some(CallbackUrl { server: "https://desk.example".to_owned(), key }),
        clock: Arc::clone(&house.clock),
    };
    Webhooks::new(options).unwrap()
}

/// Starts a worker that may ask webhooks on loopback.
fn worker(house: &House) -> BackgroundTask {
    let programs = Arc::new(webhooks(house, SECRETS, &["127.0.0.1"]));
    start(WorkerOptions { programs, ..house.worker(demo(), tools()) })
}

/// Runs a flow whose webhook gives this answer. Returns the run, and the requests.
async fn answered(answer: ResponseTemplate) -> (RunState, Vec<Request>) {
    let receiver = MockServer::start().await;
    Mock::given(method("POST")).and(path("/decide")).respond_with(answer).mount(&receiver).await;
    let house = House::with(asking(&format!("{}/decide?key=s3cret", receiver.uri()))).await;
    let worker = worker(&house);
    let state = house.ended(house.launch().await).await;
    worker.stop().await;
    (state, receiver.received_requests().await.unwrap())
}

fn error(state: &RunState) -> &FlowError {
    match &state.outcome {
        Some(RunOutcome::Failed { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_webhook_is_asked_with_a_signature_and_told_where_to_answer_later() {
    let (state, requests) = answered(ResponseTemplate::new(200).set_body_json(json!({ "approved": true }))).await;
    assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);
    let [request] = &requests[..] else { panic!("{requests:?}") };
    let header = |name: &str| request.headers[name].to_str().unwrap();
    let body = std::str::from_utf8(&request.body).unwrap();
    let at = Timestamp(header("webhook-timestamp").parse::<i64>().unwrap() * 1_000_000);
    let expected = SigningKeys::read(SECRETS).unwrap().headers(header("webhook-id"), at, body);
    assert_eq!(expected[2].1.split(' ').count(), 2, "signed with both secrets");
    assert!(expected.iter().all(|(name, value)| header(name) == value), "{expected:?}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["type"], &body["data"]["review"]["prompt"]), (&json!("review.decide"), &json!("Publish?")));
    let review = body["data"]["review"]["id"].as_str().unwrap();
    assert_eq!(body["data"]["url"], format!("https://desk.example/reviews/{review}"));
    let callback = body["data"]["callback_url"].as_str().unwrap();
    let secret = callback.strip_prefix("https://desk.example/api/v1/callbacks/").unwrap();
    let opened = CallbackKey::new([7; 32]).open(secret).unwrap();
    assert_eq!((opened.run, opened.review.to_string()), (state.id, review.to_owned()));
}

#[tokio::test]
async fn an_answer_that_is_no_decision_rejects_and_says_why() {
    let huge = format!("{{\"approved\": true, \"reason\": \"{}\"}}", "x".repeat(1024 * 1024));
    for (answer, why) in [
        (ResponseTemplate::new(204), "Webhook returned 204"),
        (ResponseTemplate::new(302).insert_header("location", "/elsewhere"), "Webhook returned 302"),
        (ResponseTemplate::new(400), "Webhook returned 400"),
        (ResponseTemplate::new(410), "Webhook returned 410"),
        (ResponseTemplate::new(200).set_body_string("yes"), "its answer cannot be read"),
        (ResponseTemplate::new(200).set_body_json(json!({ "approve": true })), "its answer cannot be read"),
        (ResponseTemplate::new(200).set_body_string(huge), "its answer is larger than 1 MiB"),
    ] {
        let (state, requests) = answered(answer).await;
        assert!(error(&state).message.starts_with(why), "{why}: {:?}", error(&state));
        assert_eq!(requests.len(), 1, "{why}: asked once, and never elsewhere");
    }
}

#[tokio::test]
async fn a_webhook_that_is_busy_is_asked_again_with_the_same_id() {
    let receiver = MockServer::start().await;
    let busy = Mock::given(method("POST")).respond_with(ResponseTemplate::new(503)).up_to_n_times(1);
    busy.mount(&receiver).await;
    let decides = ResponseTemplate::new(200).set_body_json(json!({ "approved": false, "reason": "Not today." }));
    Mock::given(method("POST")).respond_with(decides).mount(&receiver).await;
    let house = House::with(asking(&receiver.uri())).await;
    let worker = worker(&house);
    let state = house.ended(house.launch().await).await;
    worker.stop().await;
    assert_eq!(error(&state).message, "Not today.");
    let requests = receiver.received_requests().await.unwrap();
    let ids: Vec<_> = requests.iter().map(|request| &request.headers["webhook-id"]).collect();
    assert_eq!((ids.len(), ids[0]), (2, ids[1]));
}

#[tokio::test]
async fn a_webhook_that_wants_to_be_left_alone_is_asked_no_sooner() {
    let receiver = MockServer::start().await;
    let busy = ResponseTemplate::new(429).insert_header("retry-after", "2");
    Mock::given(method("POST")).respond_with(busy).up_to_n_times(1).mount(&receiver).await;
    let decides = ResponseTemplate::new(200).set_body_json(json!({ "approved": true }));
    Mock::given(method("POST")).respond_with(decides).mount(&receiver).await;
    let house = House::with(asking(&receiver.uri())).await;
    let worker = worker(&house);
    let begun = Instant::now();
    let state = house.ended(house.launch().await).await;
    worker.stop().await;
    assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);
    assert!(begun.elapsed() >= Duration::from_secs(2), "after {:?}", begun.elapsed());
    assert_eq!(receiver.received_requests().await.unwrap().len(), 2);
}

/// The webhook's timeout is five seconds: a first attempt and, if a retry may help, at least one more a second later.
#[tokio::test]
async fn a_webhook_that_has_not_decided_in_its_time_rejects_or_passes_on_as_the_flow_says() {
    let down = || ResponseTemplate::new(503);
    let for_long = || ResponseTemplate::new(429).insert_header("retry-after", "60");
    let slow =
        || ResponseTemplate::new(200).set_body_json(json!({ "approved": true })).set_delay(Duration::from_mins(1));
    for (answer, why, tries) in [
        (down(), "Webhook returned 503", 2..=4),
        (for_long(), "Webhook returned 429", 1..=1),
        (slow(), "It did not answer in time.", 1..=1),
    ] {
        let receiver = MockServer::start().await;
        Mock::given(method("POST")).respond_with(answer).mount(&receiver).await;
        let asking = |on_error| asking_by(&json!({ "url": receiver.uri(), "timeout": "5s", "on_error": on_error }));
        let rejects = House::with(asking("reject")).await;
        let passes = House::with(asking("pass")).await;
        let workers = [worker(&rejects), worker(&passes)];
        let (rejected, passed) = (rejects.launch().await, passes.launch().await);
        let state = rejects.ended(rejected).await;
        assert_eq!((error(&state).code, &*error(&state).message), (FlowCode::FlowHumanRejected, why));
        let review = passes.pending(passed).await;
        assert_eq!((&*review.advice[0].reason, &review.asked), (why, &None), "people are asked, and read why");
        for worker in workers {
            worker.stop().await;
        }
        let requests = receiver.received_requests().await.unwrap();
        let ids: BTreeSet<_> = requests.iter().map(|request| request.headers["webhook-id"].to_str().unwrap()).collect();
        assert_eq!(ids.len(), 2, "{why}: each question has one id at every try");
        let each = |id: &str| requests.iter().filter(|request| request.headers["webhook-id"] == *id).count();
        assert!(ids.iter().all(|id| tries.contains(&each(id))), "{why}: {} in all", requests.len());
    }
}

#[tokio::test]
async fn a_webhook_that_takes_its_time_lets_people_decide() {
    let receiver = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(202)).mount(&receiver).await;
    let house = House::with(asking(&receiver.uri())).await;
    let worker = worker(&house);
    let run = house.launch().await;
    let review = house.pending(run).await;
    assert_eq!(review.asked.as_ref().map(|asked| (&*asked.by, asked.via)), Some(("127.0.0.1", Via::Webhook)));
    house.decide(&review, json!({ "type": "choose", "option": "yes" })).await;
    assert!(matches!(house.ended(run).await.outcome, Some(RunOutcome::Completed { .. })));
    worker.stop().await;
}

#[tokio::test]
async fn private_hosts_are_not_asked_and_nothing_is_asked_unsigned() {
    let receiver = MockServer::start().await;
    for (secrets, allowed, why) in [
        (SECRETS, &[][..], "`127.0.0.1` is not on the public internet"),
        ("", &["127.0.0.1"][..], "webhooks need a secret"),
    ] {
        let house = House::with(asking(&format!("{}/decide?key=s3cret", receiver.uri()))).await;
        let programs = Arc::new(webhooks(&house, secrets, allowed));
        let worker = start(WorkerOptions { programs, ..house.worker(demo(), tools()) });
        let state = house.ended(house.launch().await).await;
        assert!(error(&state).message.starts_with(why), "{:?}", error(&state));
        assert!(!error(&state).message.contains("s3cret"));
        worker.stop().await;
    }
    assert_eq!(receiver.received_requests().await.unwrap().len(), 0);
}
