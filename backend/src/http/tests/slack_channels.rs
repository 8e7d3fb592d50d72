//! Tests of channels in Slack that get reviews by the settings, beside flows that ask there, and of reassigned reviews.

use std::time::Duration;

use serde_json::json;
use shared::notification::{DeliveryQuery, DeliveryStatus};
use wiremock::matchers::{body_partial_json, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::slack::{requests, workspace_with};
use super::{Site as World, Site, http_options};
use crate::store::tests::support::on_both;

on_both! {
    a_flow_that_wants_reactions_asks_in_a_channel_that_has_a_message_without,
    a_flow_asks_no_second_time_where_the_first_message_still_waits,
    a_channel_loses_its_buttons_once_a_review_is_reassigned_to_others,
}

const DESK: &str = "[slack.channels.\"#desk\"]\n";

/// Returns the channels of the deliveries with a status.
async fn channels(site: &Site, status: DeliveryStatus) -> Vec<String> {
    let query = DeliveryQuery { status: Some(status), ..DeliveryQuery::default() };
    let mut channels: Vec<_> =
        site.store.deliveries(&query).await.expect("reads").items.into_iter().map(|one| one.target).collect();
    channels.sort();
    channels
}

/// Waits until the deliveries that are sent are those to `sent`. The change of a message is a delivery of its own.
async fn delivered(site: &Site, sent: &[&str]) {
    while channels(site, DeliveryStatus::Sent).await != sent {
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Starts a run that asks in `#first` for a second and then in `#desk`. Waits until the messages to `sent` are sent and a
/// message to each channel was tried, and passes the review on.
async fn asked_in_both(site: &Site, slack: &MockServer, sent: &[&str], second: &str) {
    let flow = super::story::FLOW.replace(
        "reviewers: { roles: [editor] }",
        &format!(
            "reviewers: {{ roles: [editor] }}\n      \
             handlers: [{{ slack: {{ channel: '#first', timeout: 1s }} }}, {{ slack: {second} }}]"
        ),
    );
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/gate", &flow).await.expect(200);
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    dev.post("/api/v1/runs", &json!({ "flow": "gate", "input": { "topic": "Tides" } })).await.expect(201);
    requests(slack, "/api/chat.postMessage", 2).await;
    delivered(site, sent).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let review = ana.get("/api/v1/reviews?status=pending").await.expect(200)["items"][0].clone();
    ana.post(&format!("/api/v1/reviews/{}/claim", review["id"].as_str().unwrap()), &json!({})).await.expect(200);
    let changed = requests(slack, "/api/chat.update", 1).await.remove(0);
    assert!(changed["blocks"].to_string().contains("Nobody here decided in time"), "{changed}");
}

async fn a_flow_that_wants_reactions_asks_in_a_channel_that_has_a_message_without(site: Site) {
    let (site, slack, notifier) = workspace_with(site, http_options(), DESK).await;
    asked_in_both(&site, &slack, &["#desk", "#first"], "{ channel: '#desk', reactions: true }").await;
    let messages = requests(&slack, "/api/chat.postMessage", 3).await;
    let hint = "A reaction decides too";
    assert!(messages[..2].iter().all(|message| !message["blocks"].to_string().contains(hint)), "{messages:?}");
    assert_eq!(messages[2]["channel"], "#desk");
    assert!(messages[2]["blocks"].to_string().contains(hint), "{}", messages[2]);
    notifier.shutdown().await;
}

async fn a_flow_asks_no_second_time_where_the_first_message_still_waits(site: Site) {
    let (site, slack, notifier) = workspace_with(site, http_options(), DESK).await;
    let busy = ResponseTemplate::new(200).set_body_json(json!({ "ok": false, "error": "internal_error" }));
    let to_desk = Mock::given(path("/api/chat.postMessage")).and(body_partial_json(json!({ "channel": "#desk" })));
    to_desk.respond_with(busy).with_priority(1).mount(&slack).await;
    asked_in_both(&site, &slack, &["#first"], "{ channel: '#desk' }").await;
    delivered(&site, &["#first", "#first"]).await;
    assert_eq!(channels(&site, DeliveryStatus::Waiting).await, ["#desk"]);
    notifier.shutdown().await;
}

async fn a_channel_loses_its_buttons_once_a_review_is_reassigned_to_others(site: Site) {
    let money = "[slack.channels.\"#money\"]\nroles = [\"finance\"]\n";
    let (site, slack, notifier) = workspace_with(site, http_options(), money).await;
    let program = site.join("program", &["developer"]).await;
    site.join("fay", &["reviewer", "finance"]).await;
    site.join("tom", &["reviewer"]).await;
    let question = json!({
        "kind": "approval", "description": "Pay back 20 € to Acme.", "action": { "name": "pay" },
        "reviewers": { "roles": ["finance"] },
    });
    let asked = program.post("/api/v1/reviews", &question).await.expect(201);
    let message = requests(&slack, "/api/chat.postMessage", 1).await.remove(0);
    assert!(message["blocks"].to_string().contains("decide-0"), "{message}");
    let reassign = format!("/api/v1/reviews/{}/reassign", asked["id"].as_str().unwrap());
    let to_tom = json!({ "to": { "user": "tom" }, "reason": "Fay is on leave" });
    site.login("admin").await.post(&reassign, &to_tom).await.expect(200);
    let changed = requests(&slack, "/api/chat.update", 1).await.remove(0);
    let text = changed["blocks"].to_string();
    assert!(
        text.contains("The review is still open, and others are asked now.") && !text.contains("decide-0"),
        "{text}"
    );
    assert!(!text.contains("Nobody here decided in time"), "{text}");
    notifier.shutdown().await;
}
