//! Tests of delegated and reassigned reviews, and of deputies.

use std::time::Duration;

use serde_json::{Value, json};
use shared::time::Timestamp;

use super::{Client, PASSWORD, Site};

const FLOW: &str = r"
id: contract
nodes:
  check:
    human:
      prompt: Sign?
      options: [{ id: yes, label: Sign }, { id: no, kind: stop, label: Do not sign }]
      reviewers: { roles: [legal], not_requester: true }
";

async fn launch(client: &Client<'_>) -> (Value, String) {
    let run = client.post("/api/v1/runs", &json!({ "flow": "contract", "input": {} })).await.expect(201);
    let reviews = client.get(&format!("/api/v1/runs/{}/reviews", run["id"].as_str().unwrap())).await.expect(200);
    let review = reviews["items"][0].clone();
    let path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    (review, path)
}

fn sign(review: &Value) -> Value {
    let verdict = json!({ "type": "choose", "option": "yes" });
    json!({ "revision": review["revision"], "digest": review["digest"], "verdict": verdict })
}

async fn assigned(client: &Client<'_>) -> usize {
    let list = client.get("/api/v1/reviews?status=pending&assigned=me").await.expect(200);
    list["items"].as_array().unwrap().len()
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|user| user["username"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_review_is_handed_to_somebody_who_decides_it_and_both_stand_in_the_record() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer", "reviewer"]).await;
    dev.put_flow("/api/v1/flows/contract", FLOW).await.expect(200);
    let lea = site.join("lea", &["reviewer", "legal"]).await;
    let tom = site.join("tom", &["reviewer"]).await;
    site.join("eve", &["editor"]).await;
    let (review, path) = launch(&dev).await;
    assert_eq!((assigned(&lea).await, assigned(&tom).await), (1, 0));

    let candidates = lea.get(&format!("/api/v1/reviewers?review={}", review["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(names(&candidates), ["admin", "tom"], "who started the run may not decide it");
    for (to, why) in [
        ("eve", "`eve` may not decide this review: they do not have the role reviewer"),
        ("dev", "`dev` may not decide this review: this review is not for the person who launched the run"),
        ("nobody", "there is no active user `nobody`"),
    ] {
        let refused = lea.post(&format!("{path}/delegate"), &json!({ "to": to })).await.expect(422);
        assert_eq!((&refused["errors"][0]["path"], &refused["errors"][0]["message"]), (&json!("/to"), &json!(why)));
    }
    assert_eq!(tom.post(&format!("{path}/delegate"), &json!({ "to": "tom" })).await.code(404), "not_found");

    let handed = lea.post(&format!("{path}/delegate"), &json!({ "to": "tom" })).await.expect(200);
    assert_eq!((&handed["outcome"], &handed["review"]["delegations"][0]["to"]), (&json!("recorded"), &json!("tom")));
    assert_eq!((assigned(&lea).await, assigned(&tom).await), (0, 1));
    lea.get(&path).await.expect(200);
    assert_eq!(lea.post(&format!("{path}/decisions"), &sign(&review)).await.code(403), "forbidden");
    let signed = tom.post(&format!("{path}/decisions"), &sign(&review)).await.expect(200);
    let decision = &signed["review"]["resolution"]["decision"];
    assert_eq!((&decision["by"], &decision["on_behalf_of"]), (&json!("tom"), &json!("lea")));
    lea.get(&path).await.expect(200);

    let audit = format!("/api/v1/audit?review={}&kind=review.updated", review["id"].as_str().unwrap());
    let audit = site.login("admin").await.get(&audit).await.expect(200);
    let entry = &audit["items"][0];
    assert_eq!((&entry["actor"], &entry["data"]["change"]), (&json!("lea"), &json!("delegated")));
}

#[tokio::test]
async fn a_review_that_an_admin_reassigns_is_lost_to_who_had_it_and_decided_by_who_gets_it() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/contract", FLOW).await.expect(200);
    let lea = site.join("lea", &["reviewer", "legal"]).await;
    let tom = site.join("tom", &["editor"]).await;
    let admin = site.login("admin").await;
    let (review, path) = launch(&dev).await;
    let path_to = format!("{path}/reassign");
    let request = json!({ "to": { "user": "tom" }, "reason": "Lea is on leave" });
    assert_eq!(dev.post(&path_to, &request).await.code(403), "forbidden");
    assert_eq!(tom.post(&path_to, &request).await.code(404), "not_found");
    admin.post(&path_to, &json!({ "to": { "user": "tom" } })).await.expect(422);
    let refused = admin.post(&path_to, &json!({ "to": { "user": "dev" }, "reason": "x" })).await.expect(422);
    assert_eq!(refused["errors"][0]["path"], "/to", "who started the run may not decide it");

    let key = [("Idempotency-Key", "once")];
    let given = admin.post_with(&path_to, &request, &key).await.expect(200);
    assert_eq!(admin.post_with(&path_to, &request, &key).await.expect(200), given);
    let expected = json!({ "by": "admin", "at": given["review"]["reassignments"][0]["at"], "from": [{ "role": "legal" }],
        "to": { "user": "tom" }, "reason": "Lea is on leave" });
    assert_eq!(given["review"]["reassignments"], json!([expected]));
    assert_eq!((assigned(&lea).await, assigned(&tom).await, assigned(&admin).await), (0, 1, 0));
    assert_eq!(lea.get(&path).await.code(404), "not_found");
    assert_eq!(admin.post(&format!("{path}/decisions"), &sign(&review)).await.code(403), "forbidden");
    tom.post(&format!("{path}/decisions"), &sign(&review)).await.expect(200);
    assert_eq!(admin.post(&path_to, &request).await.code(409), "review_resolved");
}

#[tokio::test]
async fn who_is_away_has_a_deputy_for_a_while() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/contract", FLOW).await.expect(200);
    let lea = site.join("lea", &["reviewer", "legal"]).await;
    let tom = site.join("tom", &["reviewer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let (review, path) = launch(&dev).await;
    assert_eq!(tom.get(&path).await.code(404), "not_found");

    let in_hours = |hours: u64| site.clock.now().after(Duration::from_hours(hours)).to_string();
    let away = json!({ "deputy": "tom", "until": in_hours(24), "note": "At the sea" });
    for (wrong, place) in [
        (json!({ "deputy": "dev", "until": in_hours(24) }), "/deputy"),
        (json!({ "deputy": "lea", "until": in_hours(24) }), "/deputy"),
        (json!({ "deputy": "tom", "until": in_hours(0) }), "/until"),
        (json!({ "deputy": "tom", "until": in_hours(24 * 400) }), "/until"),
    ] {
        let refused = lea.post("/api/v1/deputies", &wrong).await.expect(422);
        assert_eq!(refused["errors"][0]["path"], place, "{refused}");
    }
    let for_her = json!({ "person": "lea", "deputy": "ana", "until": in_hours(1) });
    assert_eq!(ana.post("/api/v1/deputies", &for_her).await.code(403), "forbidden");
    let admin = site.login("admin").await;
    let for_himself = json!({ "person": "lea", "deputy": "admin", "until": in_hours(1) });
    assert_eq!(admin.post("/api/v1/deputies", &for_himself).await.code(403), "forbidden");
    let span = lea.post("/api/v1/deputies", &away).await.expect(201);
    assert_eq!((&span["person"], &span["made_by"]), (&json!("lea"), &json!("lea")));
    // A deputy of the deputy gets no rights.
    tom.post("/api/v1/deputies", &json!({ "deputy": "ana", "until": in_hours(24) })).await.expect(201);

    let me = tom.get("/api/v1/me").await.expect(200);
    assert_eq!(me["stands_for"][0]["username"], "lea");
    let nobody = Client { site: &site, cookie: None };
    let login = json!({ "username": "tom", "password": PASSWORD });
    assert_eq!(nobody.post("/api/v1/session", &login).await.expect(200), me, "a login is answered alike");
    assert_eq!((assigned(&tom).await, assigned(&ana).await), (1, 0));
    assert_eq!(ana.get(&path).await.code(404), "not_found");
    let later = json!({ "deputy": "ana", "from": in_hours(1), "until": in_hours(2) });
    lea.post("/api/v1/deputies", &later).await.expect(201);
    assert_eq!(ana.get(&path).await.code(404), "not_found", "not yet");

    let signed = tom.post(&format!("{path}/decisions"), &sign(&review)).await.expect(200);
    let decision = &signed["review"]["decisions"][0];
    assert_eq!((&decision["by"], &decision["on_behalf_of"]), (&json!("tom"), &json!("lea")));

    let listed = lea.get("/api/v1/deputies").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "hers, and not his: {listed}");
    let id = span["id"].as_str().unwrap();
    assert_eq!(ana.delete(&format!("/api/v1/deputies/{id}")).await.code(404), "not_found");
    lea.delete(&format!("/api/v1/deputies/{id}")).await.expect(204);
    let (_, next) = launch(&dev).await;
    assert_eq!(tom.get(&next).await.code(404), "not_found");
    let _: Timestamp = span["until"].as_str().unwrap().parse().unwrap();
    let audit = site.login("admin").await.get("/api/v1/audit?kind=deputy.removed").await.expect(200);
    assert_eq!(audit["items"][0]["data"]["deputyship"]["note"], "At the sea");
}
