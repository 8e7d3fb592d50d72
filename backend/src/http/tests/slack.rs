//! Tests of decisions in Slack. A mock server stands in for Slack's API, and button presses are signed like Slack's.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header, request};
use ring::hmac;
use serde_json::{Value, json};
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::{Client, HttpOptions, Received, Site as World, Site, http_options};
use crate::auth::RequiredFor;
use crate::notify::{NotificationSecrets, Notifier, NotifierOptions};
use crate::rate_limit::{Budgets, WriteLimits};
use crate::store::tests::support::on_both;

on_both! {
    a_button_in_slack_decides_the_review_for_who_may_and_for_nobody_else,
    what_was_decided_elsewhere_is_shown_in_slack,
    a_channel_is_asked_and_told_when_others_are_and_when_it_is_over,
    who_lacks_a_required_second_factor_does_not_decide_in_slack,
    who_stops_with_a_reason_gives_it_in_a_dialog,
    a_channel_of_the_settings_gets_what_programs_ask,
    a_member_id_that_an_admin_entered_decides_nothing_until_its_owner_confirms_it,
}

pub(super) const SIGNING_SECRET: &str = "8f742231b10e8888abcd99";
const TOPIC: &str = "<!channel> & <https://evil.example|the ocean>";

/// Connects a site to a mock workspace, and starts a notifier for it.
pub(super) async fn workspace(site: Site) -> (Site, MockServer, Notifier) {
    workspace_with(site, http_options(), "").await
}

/// Like [`workspace`]; `channels` are settings below `[notifications]`.
pub(super) async fn workspace_with(mut site: Site, http: HttpOptions, channels: &str) -> (Site, MockServer, Notifier) {
    let slack = MockServer::start().await;
    let posted = json!({ "ok": true, "channel": "D1", "ts": "1700000000.000100" });
    for (at, answer) in [("/api/chat.postMessage", posted), ("/api/chat.update", json!({ "ok": true }))] {
        Mock::given(path(at)).respond_with(ResponseTemplate::new(200).set_body_json(answer)).mount(&slack).await;
    }
    let whispered = ResponseTemplate::new(200).set_body_json(json!({ "ok": true }));
    Mock::given(path("/api/chat.postEphemeral")).respond_with(whispered).mount(&slack).await;
    Mock::given(path("/respond")).respond_with(ResponseTemplate::new(200)).mount(&slack).await;
    let opened = ResponseTemplate::new(200).set_body_json(json!({ "ok": true }));
    Mock::given(path("/api/views.open")).respond_with(opened).mount(&slack).await;
    let toml = format!("allowed_hosts = [\"127.0.0.1\"]\n[slack]\napi = \"{}/api\"\n{channels}", slack.uri());
    let settings = toml::from_str(&toml).unwrap();
    let variables = [("COUNTERSIGN_SLACK_TOKEN", "xoxb-1"), ("COUNTERSIGN_SLACK_SIGNING_SECRET", SIGNING_SECRET)];
    let secrets = NotificationSecrets::from_env(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let url = "https://desk.example".to_owned();
    let (store, clock, first_wait) = (site.store.clone(), site.clock.clone(), Duration::from_secs(5));
    let options = NotifierOptions { store, clock, settings, secrets, url, first_wait };
    let notifier = Notifier::run(options).await.unwrap();
    site.tell(notifier.notifications(), http);
    (site, slack, notifier)
}

/// Waits for `count` requests to a path of the mock server, and returns their bodies.
pub(super) async fn requests(slack: &MockServer, at: &str, count: usize) -> Vec<Value> {
    for _ in 0..400 {
        let all = slack.received_requests().await.unwrap();
        let bodies = all.iter().filter(|request| request.url.path() == at);
        let bodies: Vec<Value> = bodies.map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
        if bodies.len() >= count {
            return bodies;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{at}: fewer than {count} requests");
}

/// Returns the value of a button of a message, by its label.
pub(super) fn button(message: &Value, label: &str) -> String {
    let blocks = message["blocks"].as_array().unwrap();
    let buttons = blocks.iter().find(|block| block["type"] == "actions").unwrap()["elements"].as_array().unwrap();
    let button = buttons.iter().find(|button| button["text"]["text"] == label).unwrap_or_else(|| panic!("{buttons:?}"));
    button["value"].as_str().unwrap().to_owned()
}

/// Presses a button as a Slack user, `ago` seconds in the past, signed with `secret`.
async fn press(site: &Site, slack: &MockServer, value: &str, user: &str, ago: i64, secret: &str) -> Received {
    let payload = json!({
        "type": "block_actions", "user": { "id": user }, "response_url": format!("{}/respond", slack.uri()),
        "trigger_id": "13.37", "actions": [{ "action_id": "decide-0", "value": value }],
    });
    interact(site, &payload, ago, secret).await
}

/// Sends what Slack says that somebody did with a message or a dialog.
async fn interact(site: &Site, payload: &Value, ago: i64, secret: &str) -> Received {
    let mut form = form_urlencoded::Serializer::new(String::new());
    let body = form.append_pair("payload", &payload.to_string()).finish();
    let at = site.clock.now().millis() / 1000 - ago;
    let request =
        Request::post("/api/v1/slack/interactions").header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    site.send(signed(request, body, at, secret)).await
}

/// Signs a request like Slack, at a time in seconds since 1970.
pub(super) fn signed(request: request::Builder, body: String, at: i64, secret: &str) -> Request<Body> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = format!("v0={}", hex::encode(hmac::sign(&key, format!("v0:{at}:{body}").as_bytes())));
    let request = request
        .header(header::HOST, "127.0.0.1")
        .header("x-slack-request-timestamp", at)
        .header("x-slack-signature", signature);
    request.body(Body::from(body)).unwrap()
}

/// Returns a developer, an editor with notifications in Slack, and a review that waits for her.
async fn asked(site: &Site) -> (Client<'_>, Client<'_>, Value) {
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/gate", super::story::FLOW).await.expect(200);
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    let tom = site.join("tom", &["reviewer"]).await;
    site.in_slack("ana", "U1").await;
    site.in_slack("tom", "U2").await;
    let rules = json!([{ "channel": "slack", "events": ["review.requested"] }]);
    let chosen = json!({ "rules": rules, "slack_user_id": "U1" });
    assert_eq!(ana.put("/api/v1/notifications", &chosen).await.expect(200)["available"], json!(["slack"]));
    // Tom gets notifications too, but may not decide this review.
    tom.put("/api/v1/notifications", &json!({ "rules": rules, "slack_user_id": "U2" })).await.expect(200);
    let launch = json!({ "flow": "gate", "input": { "topic": TOPIC } });
    let run = dev.post("/api/v1/runs", &launch).await.expect(201);
    (dev, ana, run)
}

async fn a_button_in_slack_decides_the_review_for_who_may_and_for_nobody_else(site: Site) {
    let (site, slack, notifier) = workspace(site).await;
    let (dev, ana, run) = asked(&site).await;
    let message = requests(&slack, "/api/chat.postMessage", 1).await.remove(0);
    assert_eq!(message["channel"], "U1");
    let shown = message.to_string();
    assert!(shown.contains("&lt;!channel&gt; &amp; &lt;https://evil.example|the ocean&gt;"), "{shown}");
    assert!(!shown.contains("<!channel>"), "{shown}");
    let approve = button(&message, "Publish");
    let status = async || ana.get("/api/v1/reviews").await.expect(200)["items"][0]["status"].clone();

    // A wrong signature, and one that is too old.
    assert_eq!(press(&site, &slack, &approve, "U1", 0, "another secret").await.code(401), "unauthenticated");
    assert_eq!(press(&site, &slack, &approve, "U1", 301, SIGNING_SECRET).await.code(401), "unauthenticated");
    // Valid signatures of an unknown user, and of one who may not decide.
    press(&site, &slack, &approve, "U9", 0, SIGNING_SECRET).await.expect(200);
    let told = requests(&slack, "/respond", 1).await.remove(0);
    assert_eq!(told["response_type"], "ephemeral");
    assert!(told["text"].as_str().unwrap().contains("does not know U9"), "{told}");
    press(&site, &slack, &approve, "U2", 0, SIGNING_SECRET).await.expect(200);
    let told = requests(&slack, "/respond", 2).await.remove(1);
    assert!(told["text"].as_str().unwrap().starts_with("Nothing was decided"), "{told}");
    // A press that names other content than the current one decides nothing.
    let other = approve.replace("\"v\":1", "\"v\":2");
    press(&site, &slack, &other, "U1", 0, SIGNING_SECRET).await.expect(200);
    let shown = requests(&slack, "/respond", 4).await;
    assert!(shown.iter().any(|one| one["text"].as_str().unwrap().contains("has changed")), "{shown:?}");
    assert_eq!(status().await, "pending");

    press(&site, &slack, &approve, "U1", 0, SIGNING_SECRET).await.expect(200);
    assert_eq!(status().await, "resolved");
    let review = ana.get("/api/v1/reviews").await.expect(200)["items"][0].clone();
    assert_eq!((&review["resolution"]["via"], &review["resolution"]["by"]), (&json!("slack"), &json!(["ana"])));
    let run = dev.get(&format!("/api/v1/runs/{}", run["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(run["status"], "completed");
    // The message is updated, and has no buttons any more.
    let changed = requests(&slack, "/api/chat.update", 1).await.remove(0);
    assert_eq!((&changed["channel"], &changed["ts"]), (&json!("D1"), &json!("1700000000.000100")));
    let text = changed["blocks"].to_string();
    assert!(text.contains("Approved by ana: “Publish”") && !text.contains("actions"), "{text}");
    // A second press changes nothing, and the reply says what was decided.
    press(&site, &slack, &button(&message, "Throw away"), "U1", 0, SIGNING_SECRET).await.expect(200);
    let told = requests(&slack, "/respond", 7).await;
    assert!(told.iter().any(|one| one["text"].as_str().unwrap().contains("Approved by ana")), "{told:?}");
    notifier.shutdown().await;
    assert_eq!(requests(&slack, "/api/chat.postMessage", 1).await.len(), 1, "one message, to one person");
}

async fn who_lacks_a_required_second_factor_does_not_decide_in_slack(site: Site) {
    let (mut site, slack, notifier) = workspace(site).await;
    asked(&site).await;
    let message = requests(&slack, "/api/chat.postMessage", 1).await.remove(0);
    let publish = button(&message, "Publish");
    site.policy.second_factor = RequiredFor::All;
    site.tell(notifier.notifications(), http_options());
    press(&site, &slack, &publish, "U1", 0, SIGNING_SECRET).await.expect(200);
    let told = requests(&slack, "/respond", 1).await.remove(0);
    assert!(told["text"].as_str().unwrap().contains("set up a second factor first"), "{told}");
    site.policy.second_factor = RequiredFor::Nobody;
    site.tell(notifier.notifications(), http_options());
    press(&site, &slack, &publish, "U1", 0, SIGNING_SECRET).await.expect(200);
    let changed = requests(&slack, "/respond", 2).await.remove(1);
    assert!(changed["blocks"].to_string().contains("Approved by ana"), "{changed}");
    notifier.shutdown().await;
}

async fn what_was_decided_elsewhere_is_shown_in_slack(site: Site) {
    let (site, slack, notifier) = workspace(site).await;
    let (_dev, ana, _run) = asked(&site).await;
    requests(&slack, "/api/chat.postMessage", 1).await;
    let review = ana.get("/api/v1/reviews?status=pending").await.expect(200)["items"][0].clone();
    let reject = super::story::decision(&review, "reject");
    let decisions = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap());
    ana.post(&decisions, &reject).await.expect(200);
    let changed = requests(&slack, "/api/chat.update", 1).await.remove(0);
    assert!(changed["blocks"].to_string().contains("Rejected by ana: “Throw away”"), "{changed}");
    notifier.shutdown().await;
}

async fn a_channel_is_asked_and_told_when_others_are_and_when_it_is_over(site: Site) {
    let (site, slack, notifier) = workspace(site).await;
    let flow = super::story::FLOW.replace(
        "reviewers: { roles: [editor] }",
        "reviewers: { roles: [editor] }\n      handlers: [{ slack: { channel: '#desk', timeout: 1s } }, human]",
    );
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/gate", &flow).await.expect(200);
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    // Ana's Slack account is known, but she gets no notifications herself.
    site.in_slack("ana", "U1").await;
    dev.post("/api/v1/runs", &json!({ "flow": "gate", "input": { "topic": TOPIC } })).await.expect(201);
    let message = requests(&slack, "/api/chat.postMessage", 1).await.remove(0);
    assert_eq!(message["channel"], "#desk");
    let publish = button(&message, "Publish");
    // Anyone in the channel can press a button, but only those who may decide have an effect.
    press(&site, &slack, &publish, "U9", 0, SIGNING_SECRET).await.expect(200);
    let told = requests(&slack, "/respond", 1).await.remove(0);
    assert!(told["text"].as_str().unwrap().contains("does not know U9"), "{told}");

    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let review = ana.get("/api/v1/reviews?status=pending").await.expect(200)["items"][0].clone();
    assert_eq!(review["asked"]["by"], "#desk");
    let path = |what: &str| format!("/api/v1/reviews/{}/{what}", review["id"].as_str().unwrap());
    ana.post(&path("claim"), &json!({})).await.expect(200);
    let changed = requests(&slack, "/api/chat.update", 1).await.remove(0);
    let text = changed["blocks"].to_string();
    assert!(text.contains("Nobody here decided in time") && !text.contains("decide-0"), "{text}");
    // The old button still works, because the content that it shows is unchanged.
    press(&site, &slack, &publish, "U1", 0, SIGNING_SECRET).await.expect(200);
    let changed = requests(&slack, "/api/chat.update", 2).await.remove(1);
    assert!(changed["blocks"].to_string().contains("Approved by ana: “Publish”"), "{changed}");
    notifier.shutdown().await;
    assert_eq!(requests(&slack, "/api/chat.postMessage", 1).await.len(), 1, "one message, to the channel");
}

async fn who_stops_with_a_reason_gives_it_in_a_dialog(site: Site) {
    let (site, slack, notifier) = workspace(site).await;
    let (_dev, ana, _run) = asked(&site).await;
    let message = requests(&slack, "/api/chat.postMessage", 1).await.remove(0);
    let review = async || ana.get("/api/v1/reviews").await.expect(200)["items"][0].clone();
    press(&site, &slack, &button(&message, "Throw away: give a reason"), "U1", 0, SIGNING_SECRET).await.expect(200);
    let opened = requests(&slack, "/api/views.open", 1).await.remove(0);
    assert_eq!(opened["trigger_id"], "13.37");
    assert_eq!(review().await["status"], "pending", "nothing is decided before it is given");

    let mut view = opened["view"].clone();
    view["state"] = json!({ "values": { "reason": { "reason": { "value": "It is too early." } } } });
    let given = |user: &str| json!({ "type": "view_submission", "user": { "id": user }, "view": view.clone() });
    // Tom may not decide this review. The dialog stays open, says so, and keeps what he typed.
    let kept = interact(&site, &given("U2"), 0, SIGNING_SECRET).await.expect(200);
    assert_eq!(kept["response_action"], "errors");
    assert!(kept["errors"]["reason"].as_str().unwrap().starts_with("Nothing was decided: "), "{kept}");
    assert_eq!(review().await["status"], "pending");
    assert_eq!(interact(&site, &given("U1"), 0, SIGNING_SECRET).await.expect(200), "", "it closes the dialog");
    let decided = review().await;
    assert_eq!((&decided["resolution"]["via"], &decided["resolution"]["by"]), (&json!("slack"), &json!(["ana"])));
    assert_eq!(decided["resolution"]["decision"]["comment"], "It is too early.");
    // Once it is over, the message shows that too.
    let kept = interact(&site, &given("U1"), 0, SIGNING_SECRET).await.expect(200);
    assert!(kept["errors"]["reason"].as_str().unwrap().contains("Rejected by ana"), "{kept}");
    let shown = requests(&slack, "/respond", 2).await;
    assert!(shown.iter().all(|one| one["replace_original"] == true), "nothing is told twice: {shown:?}");
    notifier.shutdown().await;
}

async fn a_channel_of_the_settings_gets_what_programs_ask(site: Site) {
    let channels = "[slack.channels.\"#money\"]\nroles = [\"finance\"]\nkinds = [\"approval\"]\n";
    let (site, slack, notifier) = workspace_with(site, http_options(), channels).await;
    let program = site.join("program", &["developer"]).await;
    site.join("fay", &["reviewer", "finance"]).await;
    site.in_slack("fay", "U3").await;
    let question = |role: &str| {
        json!({
            "kind": "approval", "description": "Pay back 20 € to Acme.", "action": { "name": "pay" },
            "reviewers": { "roles": [role] },
        })
    };
    program.post("/api/v1/reviews", &question("reviewer")).await.expect(201);
    let asked = program.post("/api/v1/reviews", &question("finance")).await.expect(201);
    let message = requests(&slack, "/api/chat.postMessage", 1).await.remove(0);
    assert_eq!(message["channel"], "#money");
    assert!(message["blocks"].to_string().contains("Pay back 20"), "{message}");
    let withdraw = format!("/api/v1/reviews/{}/withdraw", asked["id"].as_str().unwrap());
    program.post(&withdraw, &json!({ "reason": "Paid." })).await.expect(200);
    let changed = requests(&slack, "/api/chat.update", 1).await.remove(0);
    assert!(changed["blocks"].to_string().contains("Withdrawn"), "{changed}");
    notifier.shutdown().await;
    assert_eq!(requests(&slack, "/api/chat.postMessage", 1).await.len(), 1, "the other question is for other people");
}

async fn a_member_id_that_an_admin_entered_decides_nothing_until_its_owner_confirms_it(site: Site) {
    let (site, slack, notifier) = workspace(site).await;
    let (_dev, ana, _run) = asked(&site).await;
    let message = requests(&slack, "/api/chat.postMessage", 1).await.remove(0);
    let (admin, path) = (site.login("admin").await, "/api/v1/notifications");
    let of_ana = format!("{path}?user=ana");
    // U7 may be the admin's own.
    let entered = json!({ "slack_user_id": "U7", "slack_confirmed": true });
    assert_eq!(admin.put(&of_ana, &entered).await.expect(200).get("slack_confirmed"), None);
    assert_eq!(admin.put(&of_ana, &entered).await.code(403), "forbidden");
    press(&site, &slack, &button(&message, "Publish"), "U7", 0, SIGNING_SECRET).await.expect(200);
    let told = requests(&slack, "/respond", 1).await.remove(0);
    assert!(told["text"].as_str().unwrap().contains("who has not confirmed it"), "{told}");
    let status = async || ana.get("/api/v1/reviews").await.expect(200)["items"][0]["status"].clone();
    assert_eq!(status().await, "pending");
    assert_eq!(ana.put(path, &entered).await.expect(200)["slack_confirmed"], true);
    // Settings without it leave it as it is.
    ana.put(path, &json!({ "slack_user_id": "U7", "rules": [] })).await.expect(200);
    assert_eq!(admin.get(&of_ana).await.expect(200)["slack_confirmed"], true);
    press(&site, &slack, &button(&message, "Publish"), "U7", 0, SIGNING_SECRET).await.expect(200);
    assert_eq!(status().await, "resolved");
    notifier.shutdown().await;
}

#[tokio::test]
async fn without_an_app_no_press_is_believed() {
    let (site, slack) = (Site::new().await, MockServer::start().await);
    assert_eq!(press(&site, &slack, "{}", "U1", 0, SIGNING_SECRET).await.code(401), "unauthenticated");
}

#[tokio::test]
async fn what_is_pressed_in_slack_counts_as_written() {
    let limits = WriteLimits { bytes_per_minute: 2_000, ..WriteLimits::default() };
    let options = HttpOptions { budgets: Arc::new(Budgets::new(limits)), ..http_options() };
    let (site, slack, notifier) = workspace_with(Site::new().await, options, "").await;
    let (_dev, ana, _run) = asked(&site).await;
    let message = requests(&slack, "/api/chat.postMessage", 1).await.remove(0);
    let stale = button(&message, "Publish").replace("\"v\":1", "\"v\":2");
    for _ in 0..20 {
        press(&site, &slack, &stale, "U1", 0, SIGNING_SECRET).await.expect(200);
    }
    press(&site, &slack, &button(&message, "Publish"), "U1", 0, SIGNING_SECRET).await.expect(200);
    let told = requests(&slack, "/respond", 21).await;
    assert!(
        told.iter().any(|one| one["text"].as_str().unwrap().contains("has reached the limit of bytes")),
        "{told:?}"
    );
    assert_eq!(ana.get("/api/v1/reviews").await.expect(200)["items"][0]["status"], "pending", "it decided nothing");
    notifier.shutdown().await;
}
