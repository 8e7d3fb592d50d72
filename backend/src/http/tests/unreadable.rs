//! Tests of rows that cannot be read: each list, page and export marks them, and still shows the others.

use serde_json::{Value, json};

use super::story::FLOW;
use super::{Client, Site, Site as World};
use crate::store::tests::support::on_both;

on_both! {
    one_unreadable_row_keeps_no_page_from_showing_the_others,
    a_run_that_cannot_be_read_is_cancelled,
}

/// Returns JSON that is nested too deeply to be read.
fn too_deep() -> String {
    format!("{}1{}", "[".repeat(200), "]".repeat(200))
}

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().expect("a page")
}

fn with<'a>(page: &'a Value, key: &str, value: &str) -> &'a Value {
    let found = items(page).iter().find(|item| item[key] == value);
    found.unwrap_or_else(|| panic!("nothing has the {key} {value}: {page}"))
}

/// Launches a run, and returns the ids of the run and of its review.
async fn launched(dev: &Client<'_>) -> (String, String) {
    let launch = json!({ "flow": "gate", "input": { "topic": "the ocean" } });
    let run = dev.post("/api/v1/runs", &launch).await.expect(201)["id"].as_str().expect("an id").to_owned();
    let reviews = dev.get(&format!("/api/v1/runs/{run}/reviews")).await.expect(200);
    (run, items(&reviews)[0]["id"].as_str().expect("an id").to_owned())
}

/// Returns an id as an SQL literal.
fn quote(site: &Site, id: &str) -> String {
    if site.is_postgres() { format!("'{id}'") } else { format!("x'{}'", id.replace('-', "")) }
}

async fn one_unreadable_row_keeps_no_page_from_showing_the_others(site: Site) {
    let admin = site.login("admin").await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["editor"]).await;
    dev.put_flow("/api/v1/flows/gate", FLOW).await.expect(200);
    dev.put_flow("/api/v1/flows/other", &FLOW.replace("id: gate", "id: other")).await.expect(200);
    let (good, good_review) = launched(&dev).await;
    let mut bad = Vec::new();
    for body in [too_deep(), "no JSON".to_owned(), "{}".to_owned()] {
        let (run, review) = launched(&dev).await;
        for (table, column, key, id) in [
            ("runs", "state", "id", &run),
            ("reviews", "body", "id", &review),
            ("runs", "steps", "id", &run),
            ("log", "body", "run_id", &run),
        ] {
            let sql = format!("UPDATE {table} SET {column} = '{body}' WHERE {key} = {}", quote(&site, id));
            assert!(site.database.execute(&sql).await.expect("runs") > 0, "{table}");
        }
        bad.push((run, review));
    }
    site.database.execute("UPDATE flows SET definition = '{}' WHERE id = 'other'").await.expect("runs");
    // A later version may have written words that this one does not know.
    for (table, words, id) in
        [("reviews", "kind = 'poll', severity = 'dire'", &bad[0].1), ("runs", "status = 'idle'", &bad[0].0)]
    {
        let sql = format!("UPDATE {table} SET {words} WHERE id = {}", quote(&site, id));
        assert_eq!(site.database.execute(&sql).await.expect("runs"), 1);
    }

    let runs = dev.get("/api/v1/runs").await.expect(200);
    assert_eq!((items(&runs).len(), &with(&runs, "id", &good)["title"]), (4, &json!("Ask before publishing")));
    let flows = dev.get("/api/v1/flows").await.expect(200);
    assert_eq!(with(&flows, "id", "other")["warnings"][0]["code"], "RECORD_UNREADABLE");
    assert_eq!(with(&flows, "id", "gate")["warnings"], Value::Null);
    let reviews = ana.get("/api/v1/reviews?status=pending").await.expect(200);
    assert_eq!(items(&reviews).len(), 4);
    let log = dev.get("/api/v1/log?limit=200").await.expect(200);
    let audit = admin.get("/api/v1/audit?limit=200").await.expect(200);
    let found = admin.get("/api/v1/audit?limit=200&q=unreadable").await.expect(200);
    let told = |page: &Value, run: &str| -> Vec<String> {
        let of_run = items(page).iter().filter(|entry| entry["run_id"] == *run);
        of_run.map(|entry| entry["kind"].as_str().expect("a kind").to_owned()).collect()
    };
    assert!(
        told(&log, &good).contains(&"review.requested".to_owned())
            && told(&audit, &good) == {
                let mut newest_first = told(&log, &good);
                newest_first.reverse();
                newest_first
            }
    );
    for (run, review) in &bad {
        let shown = with(&runs, "id", run);
        assert_eq!((&shown["error"]["code"], &shown["flow"]), (&json!("RECORD_UNREADABLE"), &json!("gate")));
        assert_eq!(dev.get(&format!("/api/v1/runs/{run}")).await.expect(200)["error"]["code"], "RECORD_UNREADABLE");
        let report = dev.get(&format!("/api/v1/runs/{run}/report")).await.expect(200);
        assert_eq!(report["steps"][0]["error"]["code"], "RECORD_UNREADABLE");
        let of_run = dev.get(&format!("/api/v1/runs/{run}/reviews")).await.expect(200);
        let one = dev.get(&format!("/api/v1/reviews/{review}")).await.expect(200);
        for shown in [with(&reviews, "id", review), &items(&of_run)[0], &one] {
            assert_eq!((&shown["unreadable"], &shown["status"]), (&json!(true), &json!("pending")));
            assert!(shown["problem"].as_str().is_some_and(|why| why.contains("a review of run")));
        }
        for page in [&log, &audit, &found] {
            assert_eq!(told(page, run), ["unreadable"]);
        }
    }
    assert_eq!(items(&found).len(), 3);
    let csv = admin.get("/api/v1/audit/export?format=csv").await.expect(200);
    let lines = admin.get("/api/v1/audit/export?format=jsonl").await.expect(200);
    for (text, mark) in [(csv, ",unreadable,"), (lines, "\"kind\":\"unreadable\"")] {
        let text = text.as_str().expect("text").to_owned();
        assert_eq!((text.matches(mark).count(), text.contains(&good_review)), (3, true), "{text}");
    }
    let check = admin.get("/api/v1/audit/verify").await.expect(200);
    assert_eq!(check["valid"], false);
    // The other runs continue.
    let review = ana.get(&format!("/api/v1/reviews/{good_review}")).await.expect(200);
    let body = super::story::decision(&review, "approve");
    ana.post(&format!("/api/v1/reviews/{good_review}/decisions"), &body).await.expect(200);
}

async fn a_run_that_cannot_be_read_is_cancelled(site: Site) {
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["editor"]).await;
    let timed = FLOW.replace("reviewers:", "timeout: 1h\n      on_timeout: reject\n      reviewers:");
    dev.put_flow("/api/v1/flows/gate", &timed).await.expect(200);
    let (good, _) = launched(&dev).await;
    for (body, of_run, of_review) in
        [(too_deep(), true, true), ("no JSON".to_owned(), true, false), ("{}".to_owned(), false, true)]
    {
        let (run, review) = launched(&dev).await;
        for (table, column, id) in
            [("runs", "state", of_run.then_some(&run)), ("reviews", "body", of_review.then_some(&review))]
        {
            let Some(id) = id else { continue };
            let sql = format!("UPDATE {table} SET {column} = '{body}' WHERE id = {}", quote(&site, id));
            assert_eq!(site.database.execute(&sql).await.expect("runs"), 1);
        }
        let path = format!("/api/v1/runs/{run}");
        let claim = ana.post(&format!("/api/v1/reviews/{review}/claim"), &json!({})).await;
        assert_eq!(claim.code(409), "unreadable", "nothing else can be done with it");
        assert_eq!(ana.post(&format!("{path}/cancel"), &json!({})).await.code(403), "forbidden");
        let ended = dev.post(&format!("{path}/cancel"), &json!({ "reason": "it hangs" })).await.expect(200);
        assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("RECORD_UNREADABLE")));
        let why = ended["error"]["message"].as_str().expect("why");
        assert!(why.starts_with("dev cancelled the run: it hangs; it could not continue: stored data: "), "{why}");
        assert_eq!(dev.get(&path).await.expect(200)["status"], "failed");
        assert_eq!(dev.get(&format!("/api/v1/reviews/{review}")).await.expect(200)["status"], "withdrawn");
        assert_eq!(dev.post(&format!("{path}/cancel"), &json!({})).await.code(409), "run_over");
        let left = format!("DELETE FROM tasks WHERE run_id = {}", quote(&site, &run));
        assert_eq!(site.database.execute(&left).await.expect("runs"), 0, "no timer is left");
    }
    // Only the review of the other run is still pending.
    let pending = ana.get("/api/v1/reviews?status=pending").await.expect(200);
    assert_eq!((items(&pending).len(), &items(&pending)[0]["run_id"]), (1, &json!(good)));
    let others = format!("UPDATE queue SET claimed_until = 0 WHERE id NOT IN ({})", {
        quote(&site, items(&pending)[0]["id"].as_str().expect("an id"))
    });
    assert_eq!(site.database.execute(&others).await.expect("runs"), 0, "nobody's count has it any more");
}
