//! Tests of the reviews of a run by status and by page, and of its report.

use serde_json::{Value, json};

use super::story::{FLOW, decision};
use super::{Client, Site};

async fn launch(client: &Client<'_>, topic: &str) -> String {
    let launch = json!({ "flow": "gate", "input": { "topic": topic } });
    client.post("/api/v1/runs", &launch).await.expect(201)["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn reviews_of_a_run_are_listed_by_where_they_stand_and_its_report_says_how_it_ended() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    dev.put_flow("/api/v1/flows/gate", FLOW).await.expect(200);
    let (one, other) = (launch(&dev, "the ocean").await, launch(&dev, "a lake").await);
    let titles = async |client: &Client<'_>, path: String| {
        let page = client.get(&path).await.expect(200);
        page["items"].as_array().unwrap().iter().map(|review| review["run_id"].clone()).collect::<Vec<Value>>()
    };
    let report = format!("/api/v1/runs/{one}/report");
    let before = dev.get(&report).await.expect(200);
    assert_eq!((&before["flow"], &before["version"]), (&json!("gate"), &json!(1)));
    assert_eq!((before.get("output"), before.get("error")), (None, None), "it waits");

    let review = dev.get(&format!("/api/v1/runs/{one}/reviews")).await.expect(200)["items"][0].clone();
    for (status, count) in [("pending", 1), ("resolved", 0)] {
        assert_eq!(titles(&dev, format!("/api/v1/runs/{one}/reviews?status={status}")).await.len(), count);
    }
    let decide = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap());
    ana.post(&decide, &decision(&review, "approve")).await.expect(200);
    for (status, count) in [("pending", 0), ("resolved", 1)] {
        assert_eq!(titles(&dev, format!("/api/v1/runs/{one}/reviews?status={status}")).await.len(), count);
    }
    assert_eq!(dev.get(&report).await.expect(200)["output"]["message"], "Published the ocean");

    for client in [&dev, &ana] {
        assert_eq!(titles(client, format!("/api/v1/reviews?run={other}")).await, [other.as_str()]);
        assert_eq!(titles(client, format!("/api/v1/reviews?run={other}&status=resolved")).await, [""; 0]);
        assert_eq!(titles(client, format!("/api/v1/reviews?run={one}&status=resolved")).await, [one.as_str()]);
    }
    let review = dev.get(&format!("/api/v1/runs/{other}/reviews")).await.expect(200)["items"][0].clone();
    let decide = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap());
    ana.post(&decide, &decision(&review, "reject")).await.expect(200);
    let stopped = dev.get(&format!("/api/v1/runs/{other}/report")).await.expect(200);
    assert_eq!((&stopped["status"], &stopped["error"]["code"]), (&json!("failed"), &json!("FLOW_HUMAN_REJECTED")));
    assert!(stopped.get("output").is_none());

    for (path, place) in [
        (format!("/api/v1/runs/{one}/reviews?status=open"), "/status"),
        ("/api/v1/reviews?run=one".to_owned(), "/run"),
        (format!("/api/v1/reviews?order=urgency&run={one}"), "/order"),
        (format!("/api/v1/reviews/facets?run={one}"), "/run"),
    ] {
        assert_eq!(dev.get(&path).await.expect(422)["errors"][0]["path"], place, "{path}");
    }
}

#[tokio::test]
async fn the_reviews_of_a_run_are_read_page_by_page() {
    const PARALLEL: &str = "
id: parallel
input: { type: object, properties: { text: { type: string } } }
nodes:
  begin: { set: { a: 1 }, next: [one, two, three] }
  one: { human: { prompt: One?, reviewers: { roles: [editor] } } }
  two: { human: { prompt: Two?, reviewers: { roles: [legal] } } }
  three: { human: { prompt: Three?, reviewers: { roles: [editor] } } }
";
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    dev.put_flow("/api/v1/flows/parallel", PARALLEL).await.expect(200);
    let run = dev
        .post("/api/v1/runs", &json!({ "flow": "parallel", "input": { "text": "long ".repeat(5000) } }))
        .await
        .expect(201)["id"]
        .clone();
    let path = format!("/api/v1/runs/{}/reviews?limit=1", run.as_str().unwrap());
    for (client, nodes) in [(&dev, vec!["one", "three", "two"]), (&ana, vec!["one", "three"])] {
        let (mut found, mut next) = (Vec::new(), Some(String::new()));
        while let Some(cursor) = next {
            let page = client.get(&format!("{path}{cursor}")).await.expect(200);
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= 1, "{page}");
            found.extend(items.iter().map(|review| review["node"].as_str().unwrap().to_owned()));
            next = page["next_cursor"].as_str().map(|cursor| format!("&cursor={cursor}"));
        }
        found.sort_unstable();
        assert_eq!(found, nodes);
    }
    // The large values of the run are not read for it.
    site.database.execute("ALTER TABLE blobs RENAME TO other_blobs").await.unwrap();
    let resolved = format!("/api/v1/runs/{}/reviews?status=resolved", run.as_str().unwrap());
    assert_eq!(dev.get(&resolved).await.expect(200)["items"], json!([]));
}
