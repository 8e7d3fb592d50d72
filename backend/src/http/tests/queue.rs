//! Tests of the queue over HTTP: its order, its filters, its counts, and what is refused.

use serde_json::{Value, json};

use super::{Client, Site};

const FLOW: &str = "
id: mail
nodes:
  ask:
    human:
      prompt: Send it?
      review_keys: [text]
      options: [{ id: yes, label: Send }]
      reviewers: { roles: [editor] }
";

async fn site() -> Site {
    let site = Site::new().await;
    let admin = site.login("admin").await;
    for (id, more) in [
        ("mail", ""),
        ("urgent", "      timeout: 10m\n"),
        ("grave", "      severity: critical\n      reversible: false\n"),
    ] {
        let source = FLOW.replace("id: mail", &format!("id: {id}")) + more;
        let status = admin.put_flow(&format!("/api/v1/flows/{id}"), &source).await.status;
        assert!(status.is_success(), "{id}: {status}");
    }
    for id in ["mail", "urgent", "grave", "mail"] {
        let launch = json!({ "flow": id, "input": { "text": format!("words of {id}") } });
        admin.post("/api/v1/runs", &launch).await.expect(201);
    }
    site
}

async fn flows(client: &Client<'_>, query: &str) -> Vec<String> {
    let page = client.get(&format!("/api/v1/reviews?{query}")).await.expect(200);
    let items = page["items"].as_array().unwrap();
    items.iter().map(|review| review["flow"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_most_urgent_comes_first_where_that_is_asked_for() {
    let site = site().await;
    let edith = site.join("edith", &["editor"]).await;
    assert_eq!(flows(&edith, "").await, ["mail", "grave", "urgent", "mail"], "newest first, as ever");
    assert_eq!(flows(&edith, "order=urgency").await, ["urgent", "grave", "mail", "mail"]);
    assert_eq!(flows(&edith, "order=urgency&due=30m").await, ["urgent"]);
    assert_eq!(flows(&edith, "order=urgency&irreversible=true&assigned=unclaimed").await, ["grave"]);
    assert_eq!(flows(&edith, "q=words%20urgent").await, ["urgent"], "what is shown is searched");
    let first = edith.get("/api/v1/reviews?order=urgency&limit=1").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(flows(&edith, &format!("order=urgency&limit=2&cursor={cursor}")).await, ["grave", "mail"]);
    // Each order has its own cursors.
    assert_eq!(
        edith.get(&format!("/api/v1/reviews?cursor={cursor}")).await.expect(422)["errors"][0]["path"],
        "/cursor"
    );
    let newest = edith.get("/api/v1/reviews?limit=1").await.expect(200);
    let cursor = newest["next_cursor"].as_str().unwrap();
    edith.get(&format!("/api/v1/reviews?order=urgency&cursor={cursor}")).await.expect(422);
}

#[tokio::test]
async fn counts_are_those_of_whoever_asks() {
    let site = site().await;
    let edith = site.join("edith", &["editor"]).await;
    let facets = edith.get("/api/v1/reviews/facets?flow=mail").await.expect(200);
    let values = |values: Value| json!({ "values": values });
    let one = |value: &str, count: u32| values(json!([{ "value": value, "count": count }]));
    let expected = json!({
        "total": 2, "mine": 2,
        "kind": one("approval", 2), "severity": one("medium", 2),
        "flow": values(json!([
            { "value": "mail", "count": 2 }, { "value": "grave", "count": 1 }, { "value": "urgent", "count": 1 },
        ])),
        "role": one("editor", 2), "tag": values(json!([])),
        "assigned": values(json!([{ "value": "me", "count": 2 }, { "value": "unclaimed", "count": 2 }])),
        "due": one("none", 2), "age": one("minutes", 2),
    });
    assert_eq!(facets, expected);
    let rita = site.join("rita", &["reviewer"]).await;
    assert_eq!(rita.get("/api/v1/reviews/facets").await.expect(200)["total"], 0, "nothing of what she may not see");
    let dev = site.join("dev", &["developer"]).await;
    let facets = dev.get("/api/v1/reviews/facets").await.expect(200);
    assert_eq!((&facets["total"], &facets["mine"]), (&json!(4), &json!(0)), "seen, and not hers to decide");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_its_place() {
    let site = Site::new().await;
    let admin = site.login("admin").await;
    let long = "x".repeat(501);
    for (query, path) in [
        ("?order=oldest", "/order"),
        ("?assigned=tom", "/assigned"),
        ("?due=soon", "/due"),
        ("?age=old", "/age"),
        ("?irreversible=maybe", "/irreversible"),
        ("?order=urgency&status=resolved", "/status"),
        (&format!("?q={long}"), "/q"),
        (&format!("?tag={long}"), "/tag"),
        ("?order=urgency&cursor=AAAA", "/cursor"),
        ("/facets?limit=3", "/limit"),
        ("/facets?order=urgency", "/order"),
        ("/facets?cursor=AAAA", "/cursor"),
        ("/facets?status=expired", "/status"),
    ] {
        let problem = admin.get(&format!("/api/v1/reviews{query}")).await.expect(422);
        assert_eq!(problem["errors"][0]["path"], path, "{query}");
    }
}

#[tokio::test]
async fn a_search_marks_what_it_finds_and_shows_nobody_more_than_lists_do() {
    let site = site().await;
    let edith = site.join("edith", &["reviewer", "editor"]).await;
    let found = edith.get("/api/v1/reviews/search?q=word%20grave").await.expect(200);
    let items = found["items"].as_array().unwrap();
    assert_eq!((items.len(), &found.get("at_least")), (1, &None));
    assert_eq!(items[0]["item"]["flow"], "grave");
    let marked = items[0]["excerpts"].as_array().unwrap();
    assert!(
        marked.iter().any(|part| part["text"] == "words of grave"
            && part["marks"] == json!([{ "start": 0, "end": 5 }, { "start": 9, "end": 14 }])),
        "{marked:?}"
    );
    let rita = site.join("rita", &["reviewer"]).await;
    assert_eq!(rita.get("/api/v1/reviews/search?q=words").await.expect(200)["items"], json!([]));
    assert_eq!(rita.get("/api/v1/audit/search?q=words").await.status, 403);

    let admin = site.login("admin").await;
    let found = admin.get("/api/v1/audit/search?q=mail&kind=review.requested").await.expect(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    assert_eq!(found["items"][0]["item"]["kind"], "review.requested");
    for (query, path) in [("", "/q"), ("?q=a&cursor=AAAA", "/cursor")] {
        let refused = admin.get(&format!("/api/v1/audit/search{query}")).await.expect(422);
        assert_eq!(refused["errors"][0]["path"], path, "{query}");
    }
}
