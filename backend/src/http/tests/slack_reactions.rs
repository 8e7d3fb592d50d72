//! Tests of decisions by a reaction to a message in a Slack channel.

use std::time::Duration;

use axum::http::{Request, header};
use serde_json::{Value, json};
use shared::notification::{DeliveryQuery, DeliveryStatus};
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::slack::{SIGNING_SECRET, requests, signed, workspace};
use super::{Client, Received, Site as World, Site};
use crate::store::tests::support::on_both;

on_both! {
    a_reaction_decides_as_the_first_button_of_its_kind_does_for_who_may,
    a_reaction_decides_nothing_where_a_button_asks_once_more_or_the_flow_does_not_want_it,
    what_slack_refuses_is_sent_as_a_headline_and_a_link_that_decide_nothing,
}

const HANDLERS: &str =
    "reviewers: { roles: [editor] }\n      handlers: [{ slack: { channel: '#desk', reactions: true } }]";

/// Sends an event like Slack's Events API, signed with `secret`, and marked as repeated if `retry`.
async fn event(site: &Site, sent: &Value, secret: &str, retry: bool) -> Received {
    let mut request = Request::post("/api/v1/slack/events").header(header::CONTENT_TYPE, "application/json");
    if retry {
        request = request.header("x-slack-retry-num", "1");
    }
    site.send(signed(request, sent.to_string(), site.clock.now().millis() / 1000, secret)).await
}

fn reaction(name: &str, user: &str, ts: &str) -> Value {
    json!({ "type": "event_callback", "event_id": format!("Ev{user}{name}{ts}"), "event": {
        "type": "reaction_added", "user": user, "reaction": name, "item_user": "B1",
        "item": { "type": "message", "channel": "D1", "ts": ts },
    } })
}

const TS: &str = "1700000000.000100";

/// Waits for `count` messages and returns the last. A reaction has no effect before the server has stored what was sent.
async fn message(site: &Site, slack: &MockServer, count: usize) -> Value {
    let message = requests(slack, "/api/chat.postMessage", count).await.remove(count - 1);
    let query = DeliveryQuery { status: Some(DeliveryStatus::Sent), ..DeliveryQuery::default() };
    while site.store.deliveries(&query).await.expect("reads").items.len() < count {
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    message
}

/// Returns a developer, and an editor with the Slack id U1; adds tom, who is no editor, with the Slack id U2.
async fn people(site: &Site) -> (Client<'_>, Client<'_>) {
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    site.join("tom", &["reviewer"]).await;
    site.in_slack("ana", "U1").await;
    site.in_slack("tom", "U2").await;
    (dev, ana)
}

async fn launch(dev: &Client<'_>, handlers: &str) {
    let flow = super::story::FLOW.replace("reviewers: { roles: [editor] }", handlers);
    dev.put_flow("/api/v1/flows/gate", &flow).await.expect(200);
    dev.post("/api/v1/runs", &json!({ "flow": "gate", "input": { "topic": "Tides" } })).await.expect(201);
}

async fn a_reaction_decides_as_the_first_button_of_its_kind_does_for_who_may(site: Site) {
    let (site, slack, notifier) = workspace(site).await;
    let (dev, ana) = people(&site).await;
    launch(&dev, HANDLERS).await;
    let message = message(&site, &slack, 1).await;
    let hint = "A reaction decides too: \u{2705} Publish   \u{274c} Throw away";
    assert!(message["blocks"].to_string().contains(hint), "{message}");
    let review = async || ana.get("/api/v1/reviews").await.expect(200)["items"][0].clone();

    // Slack's challenge is answered; events with another signature are refused.
    let challenge = json!({ "type": "url_verification", "challenge": "3eZbrw1a" });
    assert_eq!(event(&site, &challenge, SIGNING_SECRET, false).await.expect(200), json!({ "challenge": "3eZbrw1a" }));
    let accepts = reaction("white_check_mark", "U1", TS);
    assert_eq!(event(&site, &accepts, "another secret", false).await.code(401), "unauthenticated");
    // Other reactions, other messages and other people have no effect.
    for sent in [
        reaction("tada", "U1", TS),
        reaction("white_check_mark", "U1", "1700000000.000200"),
        reaction("white_check_mark", "U2", TS),
        reaction("x", "U9", TS),
    ] {
        event(&site, &sent, SIGNING_SECRET, false).await.expect(200);
    }
    let told = requests(&slack, "/api/chat.postEphemeral", 2).await;
    let told: Vec<_> = told.iter().map(|one| (one["user"].as_str().unwrap(), one["text"].as_str().unwrap())).collect();
    let heard = |user: &str, words: &str| told.iter().any(|(to, text)| *to == user && text.contains(words));
    assert!(heard("U2", "Nothing was decided") && heard("U9", "does not know U9"), "{told:?}");
    assert_eq!(review().await["status"], "pending");

    event(&site, &accepts, SIGNING_SECRET, false).await.expect(200);
    let resolution = review().await["resolution"].clone();
    assert_eq!((&resolution["via"], &resolution["by"]), (&json!("slack"), &json!(["ana"])));
    let changed = requests(&slack, "/api/chat.update", 1).await.remove(0);
    assert!(changed["blocks"].to_string().contains("Approved by ana: \u{201c}Publish\u{201d}"), "{changed}");
    // For a repeated event and a later reaction, no one gets a message that nothing was decided.
    event(&site, &accepts, SIGNING_SECRET, true).await.expect(200);
    event(&site, &reaction("x", "U1", TS), SIGNING_SECRET, false).await.expect(200);
    notifier.shutdown().await;
    assert_eq!(review().await["resolution"], resolution);
    assert_eq!(requests(&slack, "/api/chat.postEphemeral", 2).await.len(), 2);
}

async fn a_reaction_decides_nothing_where_a_button_asks_once_more_or_the_flow_does_not_want_it(site: Site) {
    let (site, slack, notifier) = workspace(site).await;
    let (dev, ana) = people(&site).await;
    let quiet = HANDLERS.replace(", reactions: true", "");
    let severe = format!("{HANDLERS}\n      severity: high");
    for (number, handlers) in [quiet, severe].iter().enumerate() {
        launch(&dev, handlers).await;
        let message = message(&site, &slack, number + 1).await;
        assert!(!message["blocks"].to_string().contains("A reaction decides"), "{message}");
        event(&site, &reaction("white_check_mark", "U1", TS), SIGNING_SECRET, false).await.expect(200);
    }
    let reviews = ana.get("/api/v1/reviews").await.expect(200);
    assert!(reviews["items"].as_array().unwrap().iter().all(|review| review["status"] == "pending"), "{reviews}");
    notifier.shutdown().await;
}

async fn what_slack_refuses_is_sent_as_a_headline_and_a_link_that_decide_nothing(site: Site) {
    let (site, slack, notifier) = workspace(site).await;
    let refused = ResponseTemplate::new(200).set_body_json(json!({ "ok": false, "error": "invalid_blocks" }));
    let first = Mock::given(path("/api/chat.postMessage")).respond_with(refused).up_to_n_times(1).with_priority(1);
    first.mount(&slack).await;
    let (dev, ana) = people(&site).await;
    launch(&dev, HANDLERS).await;
    let sent = requests(&slack, "/api/chat.postMessage", 2).await.remove(1);
    message(&site, &slack, 1).await;
    let review = ana.get("/api/v1/reviews").await.expect(200)["items"][0].clone();
    let blocks = sent["blocks"].to_string();
    for shown in [review["title"].as_str().unwrap(), &format!("/reviews/{}", review["id"].as_str().unwrap())] {
        assert!(blocks.contains(shown), "{shown} in {blocks}");
    }
    assert!(!blocks.contains("decide-0") && !blocks.contains("A reaction decides"), "{blocks}");

    event(&site, &reaction("white_check_mark", "U1", TS), SIGNING_SECRET, false).await.expect(200);
    notifier.shutdown().await;
    assert_eq!(ana.get("/api/v1/reviews").await.expect(200)["items"][0]["status"], "pending");
}
