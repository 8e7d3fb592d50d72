//! Calls from approval to request: a server records what it gets, which must be what was approved.

use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::*;

/// A payment whose request uses the state, and at the same time a question with which a person can change the state.
fn payment(server: &MockServer, tool: &Value) -> Value {
    let mut pay = json!({
        "http": {
            "url": format!("{}/pay/{{{{ account }}}}", server.uri()),
            "headers": { "x-account": "{{ account }}" },
            "body": { "to": "{{ arguments.to }}", "amount": "{{ amount }}" },
        },
        "ask_permission": true,
    });
    pay.as_object_mut().unwrap().extend(tool.as_object().unwrap().clone());
    json!({
        "id": "test",
        "tools": { "pay": pay },
        "nodes": {
            "begin": { "set": { "account": "A-1", "amount": 10 }, "next": ["pay", "ask"] },
            "pay": {
                "tool": "pay",
                "arguments": { "to": "acme" },
                "failure": { "retries": 2, "initial": "1h", "backoff": "fixed" },
            },
            "ask": {
                "human": {
                    "prompt": "Anything else?",
                    "edit_keys": ["account", "amount"],
                    "options": [{ "id": "no", "label": "No" }],
                },
                "next": "again",
            },
            "again": { "tool": "pay", "arguments": { "to": "acme" } },
        },
    })
}

async fn answering(status: u16) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(status)).mount(&server).await;
    server
}

fn reaching(server: &MockServer) -> Tools {
    let allowed_hosts = vec![server.address().to_string()];
    Tools::new(ToolOptions { allowed_hosts, ..ToolOptions::default() }).unwrap()
}

impl House {
    /// Returns the pending review at a node.
    async fn at_node(&self, run: RunId, node: &str) -> Review {
        let here = |review: &Review| review.is_pending() && review.node.as_ref().is_some_and(|at| &**at == node);
        self.until(async || self.store.run_reviews(run).await.unwrap().into_iter().find(here)).await
    }

    async fn approve(&self, review: &Review, remember: Value) {
        let mut approve = json!({ "type": "approve" });
        if !remember.is_null() {
            approve["remember"] = remember;
        }
        let decisions = json!({ review.actions[0].id.clone(): approve });
        self.decide(review, json!({ "type": "actions", "decisions": decisions })).await;
    }

    /// Changes the state that the payment was rendered from.
    async fn change(&self, run: RunId, edits: Value) {
        let review = self.at_node(run, "ask").await;
        let request: DecisionRequest = serde_json::from_value(json!({
            "revision": review.revision, "digest": review.digest,
            "verdict": { "type": "choose", "option": "no" }, "edits": edits,
        }))
        .unwrap();
        let input = Input::decide(review.id, self.ana.clone(), Via::Human, request);
        self.commit(Operation::Review { review: review.id, input: Box::new(input) }).await;
    }

    async fn received(&self, server: &MockServer, count: usize) -> Vec<Request> {
        let look = async || server.received_requests().await.filter(|all| all.len() >= count);
        let all = self.until(look).await;
        assert_eq!(all.len(), count);
        all
    }
}

fn sent(request: &Request) -> (String, Value) {
    (request.url.path().to_owned(), serde_json::from_slice(&request.body).unwrap())
}

fn hostile() -> Value {
    json!({ "account": "ATTACKER", "amount": 1_000_000 })
}

#[tokio::test]
async fn a_gate_shows_the_whole_request_and_later_edits_of_the_state_do_not_change_it() {
    let server = answering(200).await;
    let house = House::with(payment(&server, &json!({}))).await;
    let worker = start(house.worker(demo(), reaching(&server)));
    let run = house.launch().await;
    let asked = house.at_node(run, "pay").await;
    let shown = serde_json::to_value(&asked.actions[0].request).unwrap();
    let expected = json!({
        "type": "http",
        "method": "POST",
        "url": format!("{}/pay/A-1", server.uri()),
        "headers": { "content-type": "application/json", "x-account": "A-1" },
        "body": { "to": "acme", "amount": 10 },
    });
    assert_eq!(shown, expected);
    house.change(run, hostile()).await;
    house.at_node(run, "again").await;
    house.approve(&asked, Value::Null).await;
    let [request] = house.received(&server, 1).await.try_into().unwrap();
    assert_eq!(sent(&request), ("/pay/A-1".to_owned(), json!({ "to": "acme", "amount": 10 })));
    assert_eq!(request.headers["x-account"], "A-1");
    worker.stop().await;
}

#[tokio::test]
async fn an_edit_of_the_arguments_changes_nothing_else_and_is_on_the_record_with_its_request() {
    let server = answering(200).await;
    let house = House::with(payment(&server, &json!({}))).await;
    let worker = start(house.worker(demo(), reaching(&server)));
    let run = house.launch().await;
    let asked = house.at_node(run, "pay").await;
    house.change(run, hostile()).await;
    house.at_node(run, "again").await;
    let id = asked.actions[0].id.clone();
    let edit = json!({ id.clone(): { "type": "edit", "arguments": { "to": "globex" } } });
    house.decide(&asked, json!({ "type": "actions", "decisions": edit })).await;
    let [request] = house.received(&server, 1).await.try_into().unwrap();
    let body = json!({ "to": "globex", "amount": 10 });
    assert_eq!(sent(&request), ("/pay/A-1".to_owned(), body.clone()));
    let decided = house.store.review(asked.id).await.unwrap().unwrap();
    let recorded = serde_json::to_value(&decided.decisions[0].requests[&id]).unwrap();
    assert_eq!((&recorded["url"], &recorded["body"]), (&json!(format!("{}/pay/A-1", server.uri())), &body));
    worker.stop().await;
}

#[tokio::test]
async fn every_try_sends_the_same() {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(503)).up_to_n_times(1).mount(&server).await;
    Mock::given(any()).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    let clock = ManualClock::now();
    let house = House::at(clock.clone(), payment(&server, &json!({ "idempotent": true }))).await;
    let worker = start(house.worker(demo(), reaching(&server)));
    let run = house.launch().await;
    house.approve(&house.at_node(run, "pay").await, Value::Null).await;
    house.received(&server, 1).await;
    let waits = async || {
        let state = house.store.run(run).await.unwrap()?;
        state.branches.values().any(|branch| branch.phase.tasks().iter().any(|(_, tries)| *tries == 2)).then_some(())
    };
    house.until(waits).await;
    house.change(run, hostile()).await;
    house.at_node(run, "again").await;
    clock.advance(Duration::from_hours(1));
    // Wakes the worker.
    house.launch().await;
    let [first, second] = house.received(&server, 2).await.try_into().unwrap();
    assert_eq!(sent(&first), sent(&second));
    assert_eq!(first.headers["idempotency-key"], second.headers["idempotency-key"]);
    worker.stop().await;
}

#[tokio::test]
async fn a_grant_does_not_reach_a_call_whose_request_is_made_of_another_state() {
    let server = answering(200).await;
    for (edits, runs) in [(json!({}), true), (json!({ "amount": 999_999 }), false)] {
        let house = House::with(payment(&server, &json!({}))).await;
        let worker = start(house.worker(demo(), reaching(&server)));
        let run = house.launch().await;
        let asked = house.at_node(run, "pay").await;
        house.approve(&asked, json!({ "scope": "run", "arguments": ["to"] })).await;
        house.change(run, edits).await;
        if runs {
            let state = house.ended(run).await;
            assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);
        } else {
            let asked = house.at_node(run, "again").await;
            let request = serde_json::to_value(&asked.actions[0].request).unwrap();
            assert_eq!(request["body"]["amount"], 999_999);
        }
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_call_that_may_not_be_repeated_is_not_repeated_after_a_timeout_or_a_server_error() {
    let slow = ResponseTemplate::new(200).set_delay(Duration::from_mins(1));
    for (answer, why, timeout) in [(slow, "timeout", "2s"), (ResponseTemplate::new(500), "HTTP 500", "20s")] {
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(answer).up_to_n_times(1).mount(&server).await;
        Mock::given(any()).respond_with(ResponseTemplate::new(200)).mount(&server).await;
        let house = House::with(payment(&server, &json!({ "timeout": timeout }))).await;
        let worker = start(house.worker(demo(), reaching(&server)));
        let run = house.launch().await;
        let asked = house.at_node(run, "pay").await;
        house.approve(&asked, Value::Null).await;
        let lost = async || {
            let reviews = house.store.run_reviews(run).await.unwrap();
            reviews.into_iter().find(|review| review.is_pending() && review.title.contains("lost in flight"))
        };
        let lost = house.until(lost).await;
        assert!(lost.prompt.contains(why), "{}", lost.prompt);
        assert_eq!(lost.actions[0].request, asked.actions[0].request);
        house.received(&server, 1).await;
        house.approve(&lost, Value::Null).await;
        let [first, second] = house.received(&server, 2).await.try_into().unwrap();
        assert_eq!(
            (sent(&first), &first.headers["idempotency-key"]),
            (sent(&second), &second.headers["idempotency-key"])
        );
        worker.stop().await;
    }
}
