//! A flow that asks one question, a browser in which a person reads the review, and what that person does there.

use reqwest::Method;
use serde_json::{Value, json};
use shared::JsonMap;
use shared::api::{Launch, ReviewQuery};
use shared::decision::{DecisionRequest, Verdict};
use shared::id::RunId;
use shared::review::{Review, ReviewStatus};
use thirtyfour::prelude::*;

use crate::locator::locate;
use crate::pages::{Login, button, field, wait_for_text};
use crate::{Api, Browser, BrowserResult, Database, Options, Server, Visitor, eventually};

/// A flow that asks whether to send a text, which may be edited.
pub const NOTE: &str = "
id: note
input: { type: object, properties: { text: { default: The original. } } }
nodes:
  ask:
    human:
      prompt: Send this?
      review_keys: [{ key: text, label: Text }]
      edit_keys: [text]
      options: [{ id: send, label: Send it }, { id: stop, kind: stop, label: Stop }]
";

/// Starts a server with the example flows and the flows of these sources.
pub async fn server(flows: &[&str]) -> Server {
    let mut options = Options::on(Database::Sqlite);
    options.flows = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../flows").into());
    let server = Server::start(options).await;
    for flow in flows {
        server.save(flow.trim_start()).await;
    }
    server
}

/// Launches a run as the admin.
pub async fn launch(server: &Server, flow: &str, input: Value) -> RunId {
    launch_as(&server.admin().await, flow, input).await
}

/// Launches so many runs as the admin, who logs in once: logins are limited.
pub async fn launch_many(server: &Server, flow: &str, runs: usize) {
    let admin = server.admin().await;
    for _ in 0..runs {
        launch_as(&admin, flow, Value::Null).await;
    }
}

/// Launches a run as this person.
pub async fn launch_as(person: &Api, flow: &str, input: Value) -> RunId {
    person.launch(&launch_of(flow, input), None).await.expect("it starts").summary.id
}

/// The launch of the newest version of a flow; an input that is no object is empty.
pub fn launch_of(flow: &str, input: Value) -> Launch {
    let input = if let Value::Object(input) = input { input } else { JsonMap::new() };
    Launch { input, ..Launch::new(flow.parse().expect("an id")) }
}

const GATED: &str = "id: gated
tools: { note: { builtin: set_state } }
gates: { before_tool: { note: { severity: high, allowed_decisions: [approve, reject] } } }
nodes: { one: { tool: note, arguments: { key: done, value: yes }, write_keys: [done] } }
";

/// Lets the visitor approve a gated call, and with a grant also later calls in its flow.
pub async fn remember(server: &Server, visitor: &Visitor) {
    server.save(GATED).await;
    launch(server, "gated", json!({})).await;
    let review = eventually("they are asked", async || visitor.get("/api/v1/reviews").await.1["items"].get(0).cloned());
    let review = review.await;
    let approve = json!({ "type": "approve", "remember": { "scope": "flow" } });
    let call = review["actions"][0]["id"].as_str().expect("a call");
    let verdict = json!({ "type": "actions", "decisions": { call: approve } });
    let decision = json!({ "revision": review["revision"], "digest": review["digest"], "verdict": verdict });
    let path = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().expect("an id"));
    assert_eq!(visitor.send(Method::POST, &path, &decision).await.0, 200);
}

/// Waits until exactly one review is pending, and returns it.
pub async fn pending(api: &Api) -> Review {
    eventually("a review is pending", async || {
        let query = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
        let mut page = api.reviews(&query).await.ok()?;
        (page.items.len() == 1).then(|| page.items.pop()).flatten()
    })
    .await
}

/// Decides a review through the API.
pub async fn decide(api: &Api, review: &Review, verdict: Verdict, edits: Value) {
    let edits = edits.as_object().cloned().unwrap_or_default();
    let request = DecisionRequest { edits, ..decision(review, verdict) };
    api.decide(review.id, &request, None).await.expect("it is decided");
}

/// The decision with this verdict on what a review shows.
pub fn decision(review: &Review, verdict: Verdict) -> DecisionRequest {
    let (revision, digest) = (review.revision, review.digest.clone());
    DecisionRequest { revision, digest, verdict, edits: JsonMap::new(), comment: None, metadata: JsonMap::new() }
}

/// The decision that chooses the option with this id, without fields.
pub fn chosen(review: &Review, option: &str) -> DecisionRequest {
    decision(review, choose(option))
}

/// The verdict that chooses the option with this id, without fields.
pub fn choose(option: &str) -> Verdict {
    Verdict::Choose { option: option.to_owned(), fields: JsonMap::new() }
}

/// A pending review, two people who may decide it, and the browser in which one of them, Ana, reads it.
#[derive(Debug)]
pub struct ReviewSetup {
    /// The server with the example flows, on SQLite.
    pub server: Server,
    /// Ana's client of the API. She has the roles `reviewer` and `legal`.
    pub ana: Api,
    /// Tom's client of the API. He has the roles `reviewer` and `editor`.
    pub tom: Api,
    /// The review as it was when it was requested; later changes are not in it.
    pub review: Review,
    /// The browser in which Ana is logged in, with the review open.
    pub browser: Browser,
}

impl ReviewSetup {
    /// Starts a server with the example flows and the flows of these sources, and launches a run of `flow`.
    pub async fn open(flows: &[&str], flow: &str) -> BrowserResult<Self> {
        let server = server(flows).await;
        let ana = server.person("ana", &["reviewer", "legal"]).await;
        let tom = server.person("tom", &["reviewer", "editor"]).await;
        launch(&server, flow, json!({})).await;
        let review = pending(&tom).await;
        let browser = reading(&server, "ana", &review).await?;
        Ok(Self { server, ana, tom, review, browser })
    }
}

/// Starts a browser, logs this person in, and opens the page at a path.
pub async fn open(server: &Server, username: &str, path: &str) -> BrowserResult<Browser> {
    let browser = Browser::start(1440, 900).await;
    Login(&browser.driver).log_in(&server.base, username).await?;
    wait_for_text(&browser.driver, "Inbox").await;
    browser.driver.goto(format!("{}{path}", server.base)).await?;
    Ok(browser)
}

/// Starts a browser, logs this person in, and opens a review.
pub async fn reading(server: &Server, username: &str, review: &Review) -> BrowserResult<Browser> {
    let browser = open(server, username, &format!("/reviews/{}", review.id)).await?;
    wait_for_review(&browser.driver, review).await;
    Ok(browser)
}

/// Waits until a review is open and takes keys. Its title alone would not show that: the row of the list has it earlier.
pub async fn wait_for_review(driver: &WebDriver, review: &Review) {
    eventually(&format!("`{}` is open", review.title), async || {
        let title = driver.find(By::Css("article.read .head h1")).await.ok()?.text().await.ok()?;
        title.contains(&review.title).then_some(())
    })
    .await;
}

/// The text of the first element that a CSS selector matches.
pub async fn text_of(driver: &WebDriver, css: &str) -> String {
    locate(driver, By::Css(css)).text().await.expect("it is on the page, with a text")
}

/// Appends `more` to the text under review, without sending the edit.
pub async fn edit_text(driver: &WebDriver, more: &str) -> WebDriverResult<()> {
    button(driver, "Edit").click().await?;
    field(driver, "Edit Text").send_keys(Key::Control + Key::End).await?;
    field(driver, "Edit Text").send_keys(more).await
}

/// Sends a key to the body of the page.
pub async fn press_key(driver: &WebDriver, key: impl Into<TypingData>) -> WebDriverResult<()> {
    locate(driver, By::Tag("body")).send_keys(key).await
}
