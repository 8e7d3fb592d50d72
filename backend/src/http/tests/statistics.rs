//! Tests of statistics over HTTP: what is counted, for whom, and what is refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shared::statistics::Statistics;
use shared::time::Timestamp;

use super::{Client, Site, http_options};
use crate::store::testing::{Database, ManualClock};
use crate::store::tests::support::on_both;

on_both! {
    reviews_are_counted_by_what_became_of_them_and_how_long_people_took,
    everybody_has_counted_what_is_theirs,
}

/// A flow with a human node. `NOTE` has a gated call that a guardrail blocks, and in `AUTO` an `auto` handler decides.
const ASK: &str = "
id: ask
nodes:
  check:
    human:
      prompt: May it go out?
      options:
        - { id: yes, kind: accept, label: Send }
        - { id: no, kind: stop, label: Drop }
      reviewers: { roles: [editor] }
";
const NOTE: &str = "
id: note
guardrails: [{ name: names, pattern: falcon, message: Leave the name out. }]
tools:
  note:
    builtin: set_state
    parameters: { type: object, properties: { key: { type: string }, value: { type: string } } }
gates: { before_tool: { note: true } }
nodes:
  one: { tool: note, arguments: { key: done, value: a falcon }, write_keys: [done] }
";
const AUTO: &str = "
id: auto
nodes:
  check:
    human:
      prompt: Fine?
      options: [{ id: yes, kind: accept, label: Fine }]
      handlers: [{ auto: approve }]
";

struct World {
    site: Site,
    clock: Arc<ManualClock>,
}

impl World {
    async fn sqlite() -> Self {
        Self::on(Database::sqlite().unwrap()).await
    }

    async fn postgres() -> Option<Self> {
        Some(Self::on(Database::postgres().await.unwrap()?).await)
    }

    async fn on(database: Database) -> Self {
        let clock = ManualClock::now();
        Self { site: Site::with(database, clock.clone(), http_options()).await, clock }
    }

    /// Creates six reviews, requested by two developers and decided by two people after 1, 2, 3 and 4 minutes.
    async fn worked(&self) -> (Client<'_>, Client<'_>, Client<'_>, Client<'_>) {
        let site = &self.site;
        let dev = site.join("dev", &["developer"]).await;
        let other = site.join("other", &["developer"]).await;
        let ana = site.join("ana", &["reviewer", "editor"]).await;
        let tom = site.join("tom", &["reviewer", "editor"]).await;
        for (client, id, source) in [(&dev, "ask", ASK), (&dev, "auto", AUTO), (&other, "note", NOTE)] {
            client.put_flow(&format!("/api/v1/flows/{id}"), source).await.expect(200);
        }
        let choose = |option: &str| json!({ "type": "choose", "option": option });
        let call = |said: Value| json!({ "type": "actions", "decisions": { "c1-1": said } });
        let edit = json!({ "type": "edit", "arguments": { "key": "done", "value": "a bird" } });
        self.decided(&dev, "ask", &ana, choose("yes"), 1).await;
        self.decided(&other, "note", &ana, call(edit), 2).await;
        self.decided(&dev, "ask", &tom, choose("no"), 3).await;
        self.decided(&other, "note", &tom, call(json!({ "type": "approve" })), 4).await;
        launch(&dev, "ask").await;
        launch(&dev, "auto").await;
        self.clock.advance(Duration::from_secs(1));
        (dev, other, ana, tom)
    }

    /// Launches a flow, and lets `who` decide its review after `minutes`.
    async fn decided(&self, by: &Client<'_>, flow: &str, who: &Client<'_>, verdict: Value, minutes: u64) {
        let run = launch(by, flow).await;
        let review = by.get(&format!("/api/v1/runs/{run}/reviews")).await.expect(200)["items"][0].clone();
        self.clock.advance(Duration::from_mins(minutes));
        let said = json!({ "revision": review["revision"], "digest": review["digest"], "verdict": verdict });
        let path = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap());
        who.post(&path, &said).await.expect(200);
    }
}

async fn launch(client: &Client<'_>, flow: &str) -> String {
    let run = client.post("/api/v1/runs", &json!({ "flow": flow, "input": {} })).await.expect(201);
    run["id"].as_str().unwrap().to_owned()
}

async fn counted(client: &Client<'_>, query: &str) -> Statistics {
    let answer = client.get(&format!("/api/v1/statistics?{query}")).await.expect(200);
    serde_json::from_value(answer).unwrap()
}

fn groups(statistics: &Statistics) -> BTreeMap<&str, u64> {
    statistics.groups.iter().map(|group| (group.key.as_str(), group.figures.requests)).collect()
}

async fn reviews_are_counted_by_what_became_of_them_and_how_long_people_took(world: World) {
    world.worked().await;
    let admin = world.site.login("admin").await;
    let all = counted(&admin, "").await;
    let figures = &all.figures;
    assert_eq!((figures.requests, figures.approved, figures.corrected, figures.rejected), (6, 3, 1, 1));
    assert_eq!((figures.pending, figures.answered, figures.expired, figures.withdrawn), (1, 0, 0, 0));
    assert_eq!(figures.approval_rate, Some(0.6));
    let minute = 60_000;
    let times = figures.response_ms;
    assert_eq!((times.avg, times.p50, times.p95), (Some(5 * minute / 2), Some(2 * minute), Some(4 * minute)));
    assert_eq!(figures.vetoes, BTreeMap::from([("names".to_owned(), 1)]));
    assert_eq!(figures.escalations_by_reason.len(), 10);

    for (by, expected) in [
        ("flow", vec![("ask", 3), ("note", 2), ("auto", 1)]),
        ("kind", vec![("approval", 4), ("tool_calls", 2)]),
        ("reviewer", vec![("ana", 2), ("tom", 2)]),
        ("tool", vec![("note", 2)]),
        ("agent", vec![]),
    ] {
        let grouped = counted(&admin, &format!("by={by}")).await;
        assert_eq!(groups(&grouped), expected.into_iter().collect(), "{by}");
        assert_eq!(grouped.figures, all.figures, "{by}");
    }
    let by_kind = counted(&admin, "by=kind").await;
    assert_eq!(by_kind.groups[0].key, "approval", "most requests first");
    let by_day = counted(&admin, "by=day").await;
    assert_eq!(by_day.groups.iter().map(|group| group.figures.requests).sum::<u64>(), 6);

    for (query, requests) in [
        ("flow=ask", 3),
        ("kind=tool_calls", 2),
        ("tool=note", 2),
        ("role=editor", 3),
        ("role=reviewer", 3),
        ("reviewer=tom", 2),
        ("reviewer=tom&flow=note", 1),
        ("agent=writer", 0),
        ("kind=escalation", 0),
    ] {
        assert_eq!(counted(&admin, query).await.figures.requests, requests, "{query}");
    }
    // Ranges select reviews by the time of the request.
    let from = Timestamp(all.to.0 - 9 * 60_000_000);
    assert_eq!(counted(&admin, &format!("from={from}")).await.figures.requests, 4);
    assert_eq!(counted(&admin, &format!("to={from}")).await.figures.requests, 2);
}

async fn everybody_has_counted_what_is_theirs(world: World) {
    let (dev, other, ana, _) = world.worked().await;
    let nobody = world.site.join("mia", &["reviewer"]).await;
    assert_eq!(groups(&counted(&dev, "by=flow").await), BTreeMap::from([("ask", 3), ("auto", 1)]));
    assert_eq!(groups(&counted(&other, "by=flow").await), BTreeMap::from([("note", 2)]));
    assert_eq!(groups(&counted(&ana, "by=reviewer").await), BTreeMap::from([("ana", 2)]));
    let none = counted(&nobody, "by=day").await;
    assert_eq!((none.figures.requests, none.figures.approval_rate, none.groups.len()), (0, None, 0));
    let token = world.site.join("pam", &["developer"]).await;
    let token = token.post("/api/v1/tokens", &json!({ "name": "ci", "roles": [] })).await.expect(201);
    let nobody = Client { site: &world.site, cookie: None };
    let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
    let request = nobody.request("GET", "/api/v1/statistics").header("authorization", bearer);
    assert_eq!(world.site.send(request.body(axum::body::Body::empty()).unwrap()).await.code(403), "forbidden");
}

#[tokio::test]
async fn what_makes_no_sense_or_is_too_much_is_refused_in_its_place() {
    let site = Site::new().await;
    let admin = site.login("admin").await;
    let long = "x".repeat(201);
    for (query, path) in [
        ("by=month", "/by"),
        ("kind=question", "/kind"),
        ("from=yesterday", "/from"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z", "/from"),
        ("from=2024-01-01T00:00:00Z&to=2026-01-02T00:00:01Z", "/from"),
        ("by=hour&from=2026-01-01T00:00:00Z&to=2026-02-12T00:00:00Z", "/by"),
        (&format!("agent={long}"), "/agent"),
        ("outcome=approved", "/outcome"),
    ] {
        let problem = admin.get(&format!("/api/v1/statistics?{query}")).await.expect(422);
        assert_eq!(problem["errors"][0]["path"], path, "{query}");
    }
    counted(&admin, "by=hour&from=2026-01-01T00:00:00Z&to=2026-02-11T00:00:00Z").await;
    counted(&admin, "by=day&from=2024-01-01T00:00:00Z&to=2026-01-01T00:00:00Z").await;
}
