//! Tests of how people find again what they decided, runs by what they know of them, and where archived reviews are.

use serde_json::{Value, json};

use super::story::{FLOW, decision};
use super::{Client, Site};

/// Starts a run about a topic, and returns its id and its review.
async fn launched(dev: &Client<'_>, topic: &str) -> (String, Value) {
    let launch = json!({ "flow": "gate", "input": { "topic": topic } });
    let run = dev.post("/api/v1/runs", &launch).await.expect(201)["id"].as_str().unwrap().to_owned();
    let reviews = dev.get(&format!("/api/v1/runs/{run}/reviews")).await.expect(200);
    (run, reviews["items"][0].clone())
}

async fn decide(client: &Client<'_>, review: &Value) {
    let path = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap());
    client.post(&path, &decision(review, "approve")).await.expect(200);
}

/// Returns the ids in a list.
async fn ids(client: &Client<'_>, path: &str) -> Vec<String> {
    let page = client.get(path).await.expect(200);
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn people_list_what_they_decided_and_only_admins_what_others_did() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    dev.put_flow("/api/v1/flows/gate", FLOW).await.expect(200);
    let (_, one) = launched(&dev, "the ocean").await;
    let (_, other) = launched(&dev, "a lake").await;
    decide(&ana, &other).await;
    decide(&ana, &one).await;
    let decided = [&one, &other].map(|review| review["id"].as_str().unwrap().to_owned());
    let admin = site.login("admin").await;
    assert_eq!(ids(&ana, "/api/v1/reviews?decided_by=me").await, decided);
    assert_eq!(ids(&ana, "/api/v1/reviews?decided_by=ana&q=lake").await, decided[1..]);
    assert_eq!(ids(&admin, "/api/v1/reviews?decided_by=ana").await, decided);
    assert_eq!(ids(&dev, "/api/v1/reviews?decided_by=me").await, [""; 0]);
    for path in ["/api/v1/reviews?decided_by=ana", "/api/v1/reviews/search?decided_by=ana&q=lake"] {
        assert_eq!(dev.get(path).await.code(403), "forbidden", "{path}");
    }
    for (query, place) in [
        ("?decided_by=Not%20a%20name", "/decided_by"),
        ("?decided_by=me&order=urgency", "/decided_by"),
        ("?decided_by=me&assigned=me", "/assigned"),
        ("/facets?decided_by=me", "/decided_by"),
    ] {
        let refused = ana.get(&format!("/api/v1/reviews{query}")).await.expect(422);
        assert_eq!(refused["errors"][0]["path"], place, "{query}");
    }
    let next = ana.get("/api/v1/reviews?decided_by=me&limit=1").await.expect(200)["next_cursor"].clone();
    let next = next.as_str().unwrap();
    assert_eq!(ids(&ana, &format!("/api/v1/reviews?decided_by=me&cursor={next}")).await, decided[1..]);
    let elsewhere = ana.get(&format!("/api/v1/reviews?cursor={next}")).await.expect(422);
    assert_eq!(elsewhere["errors"][0]["path"], "/cursor", "its places are decisions");
}

#[tokio::test]
async fn runs_are_searched_by_those_who_may_see_them() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    let tom = site.join("tom", &["reviewer"]).await;
    dev.put_flow("/api/v1/flows/gate", FLOW).await.expect(200);
    let (ocean, _) = launched(&dev, "the ocean").await;
    let (lake, _) = launched(&dev, "a lake").await;
    for client in [&dev, &ana] {
        assert_eq!(ids(client, "/api/v1/runs?q=publishing%20oce").await, [ocean.as_str()]);
        assert_eq!(ids(client, "/api/v1/runs?q=ask&requested_by=dev").await, [lake.as_str(), ocean.as_str()]);
        assert_eq!(ids(client, "/api/v1/runs?requested_by=admin").await, [""; 0]);
        assert_eq!(ids(client, "/api/v1/runs?started_before=2026-01-01T00:00:00Z").await, [""; 0]);
    }
    assert_eq!(ids(&dev, "/api/v1/runs?requested_by=me").await, [lake.as_str(), ocean.as_str()]);
    assert_eq!(ids(&tom, "/api/v1/runs?q=ask").await, [""; 0]);
    for (query, place) in [
        (format!("q={}", "x".repeat(501)), "/q"),
        ("requested_by=Not%20a%20name".to_owned(), "/requested_by"),
        ("started_after=yesterday".to_owned(), "/started_after"),
    ] {
        let refused = dev.get(&format!("/api/v1/runs?{query}")).await.expect(422);
        assert_eq!(refused["errors"][0]["path"], place, "{query}");
    }
    let next = dev.get("/api/v1/runs?q=ask&limit=1").await.expect(200)["next_cursor"].clone();
    let next = next.as_str().unwrap();
    assert_eq!(ids(&dev, &format!("/api/v1/runs?q=ask&cursor={next}")).await, [ocean.as_str()]);
    assert_eq!(dev.get(&format!("/api/v1/runs?cursor={next}")).await.expect(422)["errors"][0]["path"], "/cursor");
}

#[tokio::test]
async fn a_link_to_an_archived_review_says_where_its_run_is() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    dev.put_flow("/api/v1/flows/gate", FLOW).await.expect(200);
    let (run, review) = launched(&dev, "the ocean").await;
    decide(&ana, &review).await;
    // As the archiver leaves it.
    for sql in [
        "INSERT INTO archives VALUES (1, 1, '2026-08-25.jsonl.gz', 0, 10, 1787616000000000, 1)",
        "INSERT INTO archived_runs SELECT id, flow, requested_by, created_at, 1, 1 FROM runs",
        "INSERT INTO archived_reviews SELECT id, run_id FROM reviews",
        "DELETE FROM reviews",
        "DELETE FROM log WHERE run_id IS NOT NULL",
        "DELETE FROM runs",
    ] {
        site.database.execute(sql).await.unwrap();
    }
    let review = review["id"].as_str().unwrap();
    let admin = site.login("admin").await;
    for (client, path) in [
        (&dev, format!("/api/v1/reviews/{review}")),
        (&admin, format!("/api/v1/reviews/{review}")),
        (&admin, format!("/api/v1/audit?review={review}")),
        (&admin, format!("/api/v1/audit?run={run}")),
        (&admin, format!("/api/v1/audit/export?run={run}")),
        (&admin, format!("/api/v1/audit/export?format=jsonl&review={review}")),
        (&admin, format!("/api/v1/audit/search?q=ocean&review={review}")),
    ] {
        let gone = client.get(&path).await.expect(410);
        assert_eq!((&gone["code"], &gone["archived"]["id"]), (&json!("run_archived"), &json!(run)), "{path}");
        let detail = gone["detail"].as_str().unwrap();
        assert!(
            detail.contains("2026-08-25.jsonl.gz") && detail.contains(&run),
            "it names the place and the remedy: {detail}"
        );
    }
    // Who may not know of the run cannot tell it from one that never was.
    assert_eq!(ana.get(&format!("/api/v1/reviews/{review}")).await.code(404), "not_found");
    let unknown = "0198c2aa-1b2c-7000-8000-0123456789ab";
    assert_eq!(admin.get(&format!("/api/v1/reviews/{unknown}")).await.code(404), "not_found");
    assert_eq!(admin.get(&format!("/api/v1/audit?review={unknown}")).await.expect(200)["items"], json!([]));
}
