//! Tests that tokens have rights only through roles, never through the name of their creator alone, and that views of
//! reviews are recorded for whom they were.

use axum::body::Body;
use axum::http::header;
use serde_json::{Value, json};

use super::{Client, Received, Site};

const FLOW: &str = r"
id: ask
title: Ask somebody
input: { type: object, properties: { text: { type: string } } }
tools: { send: { http: { url: 'https://inside.example/send', method: POST } } }
nodes:
  check:
    human:
      prompt: May it go out?
      options: [{ id: yes, kind: accept, label: 'Yes' }, { id: no, kind: stop, label: 'No' }]
";

/// A client that uses a token.
struct Program<'a> {
    nobody: Client<'a>,
    secret: String,
}

impl Program<'_> {
    async fn call(&self, method: &str, path: &str, body: Option<&Value>, key: &str) -> Received {
        let request =
            self.nobody.request(method, path).header(header::AUTHORIZATION, format!("Bearer {}", self.secret));
        let request = if key.is_empty() { request } else { request.header("idempotency-key", key) };
        let request = match body {
            Some(body) => request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        self.nobody.site.send(request.unwrap()).await
    }
}

async fn program<'a>(maker: &Client<'a>, roles: &[&str]) -> Program<'a> {
    let token = maker.post("/api/v1/tokens", &json!({ "name": "ci", "roles": roles })).await.expect(201);
    let secret = token["secret"].as_str().unwrap().to_owned();
    Program { nobody: Client { site: maker.site, cookie: None }, secret }
}

#[tokio::test]
async fn a_token_has_nothing_of_its_makers_but_by_a_role() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer", "reviewer"]).await;
    dev.put_flow("/api/v1/flows/ask", FLOW).await.expect(200);
    let (none, all) = (program(&dev, &[]).await, program(&dev, &["developer"]).await);
    let launch = json!({ "flow": "ask", "input": {} });
    let run = dev.post_with("/api/v1/runs", &launch, &[("idempotency-key", "once")]).await.expect(201);
    let run = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    let review = dev.get(&format!("{run}/reviews")).await.expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    let review = format!("/api/v1/reviews/{review}");
    let token = dev.get("/api/v1/tokens").await.expect(200)["items"][0]["id"].as_str().unwrap().to_owned();

    for (method, path, status) in [
        ("GET", run.clone(), 404),
        ("GET", review.clone(), 404),
        ("POST", format!("{review}/withdraw"), 404),
        ("POST", format!("{run}/cancel"), 404),
        ("GET", "/api/v1/tokens".to_owned(), 403),
        ("DELETE", format!("/api/v1/tokens/{token}"), 403),
        ("GET", "/api/v1/flows".to_owned(), 403),
        ("GET", "/api/v1/notifications".to_owned(), 403),
        ("GET", "/api/v1/reviewers".to_owned(), 403),
    ] {
        none.call(method, &path, None, "").await.expect(status);
    }
    assert_eq!(none.call("POST", "/api/v1/runs", Some(&launch), "once").await.code(403), "forbidden");
    for list in ["runs", "reviews", "log", "deputies", "grants"] {
        let listed = none.call("GET", &format!("/api/v1/{list}"), None, "").await.expect(200);
        assert_eq!(listed["items"], json!([]), "{list}");
    }

    all.call("GET", &review, None, "").await.expect(200);
    let another = all.call("POST", "/api/v1/runs", Some(&launch), "once").await.expect(201);
    assert_ne!(format!("/api/v1/runs/{}", another["id"].as_str().unwrap()), run, "a token has keys of its own");
    let again = all.call("POST", "/api/v1/runs", Some(&launch), "once").await.expect(201);
    assert_eq!(again["id"], another["id"]);
    all.call("POST", &format!("{review}/withdraw"), None, "").await.expect(200);
}

#[tokio::test]
async fn a_token_that_only_asks_has_its_questions_and_nothing_else() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let saved = dev.put_flow("/api/v1/flows/ask", FLOW).await.expect(200);
    let run = dev.post("/api/v1/runs", &json!({ "flow": "ask", "input": {} })).await.expect(201);
    let run = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    let reviews = dev.get(&format!("{run}/reviews")).await.expect(200);
    let of_run = format!("/api/v1/reviews/{}", reviews["items"][0]["id"].as_str().unwrap());
    let agent = program(&dev, &["asker"]).await;
    for (method, path, status) in [
        ("GET", run.clone(), 404),
        ("POST", format!("{run}/cancel"), 404),
        ("GET", of_run.clone(), 404),
        ("POST", format!("{of_run}/withdraw"), 404),
        ("GET", "/api/v1/flows".to_owned(), 403),
        ("GET", "/api/v1/flows/ask".to_owned(), 403),
        ("GET", "/api/v1/statistics".to_owned(), 403),
        ("GET", "/api/v1/reviewers".to_owned(), 403),
        ("GET", "/api/v1/tokens".to_owned(), 403),
    ] {
        agent.call(method, &path, None, "").await.expect(status);
    }
    let launch = json!({ "flow": "ask", "input": {} });
    assert_eq!(agent.call("POST", "/api/v1/runs", Some(&launch), "").await.code(403), "forbidden");
    assert_eq!(dev.get("/api/v1/flows/ask").await.expect(200)["version"], saved["version"]);

    let options = json!([{ "id": "yes", "label": "Yes" }, { "id": "no", "label": "No" }]);
    let question = json!({ "kind": "clarification", "question": "May I?", "options": options });
    let asked = agent.call("POST", "/api/v1/reviews", Some(&question), "").await.expect(201);
    let path = format!("/api/v1/reviews/{}", asked["id"].as_str().unwrap());
    agent.call("GET", &path, None, "").await.expect(200);
    for list in ["/api/v1/reviews", "/api/v1/reviews?requested_by=me", "/api/v1/reviews?status=pending&requested_by=me"]
    {
        let listed = agent.call("GET", list, None, "").await.expect(200);
        let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|review| review["id"].clone()).collect();
        assert_eq!(ids, [asked["id"].clone()], "{list}");
    }
    agent.call("POST", &format!("{path}/comments"), Some(&json!({ "text": "Please." })), "").await.expect(200);
    agent.call("POST", &format!("{path}/withdraw"), None, "").await.expect(200);
    // It cannot ask itself.
    let itself = json!({ "kind": "clarification", "question": "May I?", "options": options,
        "reviewers": { "roles": ["asker"] } });
    let asked = agent.call("POST", "/api/v1/reviews", Some(&itself), "").await.expect(201);
    let verdict = json!({ "type": "choose", "option": "yes" });
    let decision = json!({ "revision": asked["revision"], "digest": asked["digest"], "verdict": verdict });
    let path = format!("/api/v1/reviews/{}/decisions", asked["id"].as_str().unwrap());
    agent.call("POST", &path, Some(&decision), "").await.expect(403);
    // Who has the role has no more than that, and passes it on to their programs.
    let bot = site.join("bot", &["asker"]).await;
    bot.post("/api/v1/reviews", &question).await.expect(201);
    program(&bot, &["asker"]).await;
    let more = json!({ "name": "ci", "roles": ["developer"] });
    assert_eq!(bot.post("/api/v1/tokens", &more).await.expect(422)["errors"][0]["path"], "/roles/0");
}

#[tokio::test]
async fn who_has_lost_a_role_is_not_given_the_old_answer() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/ask", FLOW).await.expect(200);
    let launch = json!({ "flow": "ask", "input": {} });
    let key = [("idempotency-key", "once")];
    let run = dev.post_with("/api/v1/runs", &launch, &key).await.expect(201);
    assert_eq!(site.login("dev").await.post_with("/api/v1/runs", &launch, &key).await.expect(201)["id"], run["id"]);
    let admin = site.login("admin").await;
    admin.patch("/api/v1/users/dev", &json!({ "roles": ["reviewer"] })).await.expect(200);
    let dev = site.login("dev").await;
    assert_eq!(dev.post_with("/api/v1/runs", &launch, &key).await.code(403), "forbidden");
    admin.patch("/api/v1/users/dev", &json!({ "roles": ["developer"] })).await.expect(200);
    assert_eq!(site.login("dev").await.post_with("/api/v1/runs", &launch, &key).await.expect(201)["id"], run["id"]);
}

#[tokio::test]
async fn reviewers_see_what_a_flow_is_and_not_its_source() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let saved = dev.put_flow("/api/v1/flows/ask", FLOW).await.expect(200);
    assert_eq!(dev.get("/api/v1/flows/ask").await.expect(200)["source"], FLOW);
    let seen = ana.get("/api/v1/flows/ask").await.expect(200);
    assert!(!seen.to_string().contains("inside.example"), "{seen}");
    for part in ["title", "input", "graph", "digest"] {
        assert_eq!(seen[part], saved[part], "{part}");
    }
    assert!(!ana.get("/api/v1/flows").await.expect(200).to_string().contains("inside.example"));
    let check = ana.request("POST", "/api/v1/flows/validate").header(header::CONTENT_TYPE, "application/yaml");
    assert_eq!(site.send(check.body(Body::from(FLOW)).unwrap()).await.code(403), "forbidden");
}

#[tokio::test]
async fn who_opened_a_review_is_for_the_audit_and_for_themselves() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let (ana, tom) = (site.join("ana", &["reviewer"]).await, site.join("tom", &["reviewer"]).await);
    dev.put_flow("/api/v1/flows/ask", FLOW).await.expect(200);
    dev.post("/api/v1/runs", &json!({ "flow": "ask", "input": {} })).await.expect(201);
    let review = ana.get("/api/v1/reviews").await.expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    // A page that reads a review without showing it says so.
    ana.get(&format!("/api/v1/reviews/{review}?view=false")).await.expect(200);
    let views = |log: Value| log["items"].as_array().unwrap().iter().filter(|e| e["kind"] == "review.viewed").count();
    assert_eq!(views(ana.get("/api/v1/log?limit=200").await.expect(200)), 0);
    // Nor is a revision that it does not have any longer, or not yet, recorded as the one that it has.
    let problem = ana.get(&format!("/api/v1/reviews/{review}?viewed=2")).await.expect(409);
    assert_eq!(
        (&problem["code"], problem["detail"].as_str().unwrap().contains("decide")),
        (&json!("revision_changed"), false)
    );
    ana.get(&format!("/api/v1/reviews/{review}?viewed=1&view=false")).await.expect(422);
    assert_eq!(views(ana.get("/api/v1/log?limit=200").await.expect(200)), 0);
    // Nor is anything shown without a body, or by a link on another site.
    let path = format!("/api/v1/reviews/{review}");
    let head = ana.request("HEAD", &path).body(Body::empty()).unwrap();
    assert_eq!(site.send(head).await.status, 200);
    let link = ana.request("GET", &path).header("sec-fetch-site", "cross-site").body(Body::empty()).unwrap();
    site.send(link).await.expect(200);
    assert_eq!(views(ana.get("/api/v1/log?limit=200").await.expect(200)), 0);
    ana.get(&format!("/api/v1/reviews/{review}?viewed=1")).await.expect(200);
    let admin = site.login("admin").await;
    for (client, seen) in [(&ana, 1), (&tom, 0), (&dev, 0), (&admin, 1)] {
        assert_eq!(views(client.get("/api/v1/log?limit=200").await.expect(200)), seen);
    }
}

#[tokio::test]
async fn what_a_token_reads_is_not_what_its_person_has_seen() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    dev.put_flow("/api/v1/flows/ask", FLOW).await.expect(200);
    dev.post("/api/v1/runs", &json!({ "flow": "ask", "input": {} })).await.expect(201);
    let review = ana.get("/api/v1/reviews").await.expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/reviews/{review}");
    let program = program(&ana, &["reviewer"]).await;
    for _ in 0..2 {
        program.call("GET", &path, None, "").await.expect(200);
        ana.get(&path).await.expect(200);
    }
    let log = ana.get("/api/v1/log?limit=200").await.expect(200);
    let views = log["items"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "review.viewed");
    assert_eq!(views.map(|entry| &entry["data"]["token"]).collect::<Vec<_>>(), [&json!(true), &Value::Null]);
}

#[tokio::test]
async fn the_record_tells_what_a_program_did_with_a_token_from_what_its_person_did() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    dev.put_flow("/api/v1/flows/ask", FLOW).await.expect(200);
    dev.post("/api/v1/runs", &json!({ "flow": "ask", "input": {} })).await.expect(201);
    let shown = ana.get("/api/v1/reviews").await.expect(200)["items"][0].clone();
    let path = format!("/api/v1/reviews/{}", shown["id"].as_str().unwrap());
    let program = program(&ana, &["reviewer"]).await;
    let token = ana.get("/api/v1/tokens").await.expect(200)["items"][0]["id"].clone();
    let comment = json!({ "text": "Fine." });
    ana.post(&format!("{path}/comments"), &comment).await.expect(200);
    program.call("POST", &format!("{path}/comments"), Some(&comment), "").await.expect(200);
    program.call("POST", &format!("{path}/claim"), None, "").await.expect(200);
    let verdict = json!({ "type": "choose", "option": shown["options"][0]["id"] });
    let decision = json!({ "revision": shown["revision"], "digest": shown["digest"], "verdict": verdict });
    let forged = json!({ "revision": 1, "digest": shown["digest"], "verdict": verdict, "token": null });
    let decisions = format!("{path}/decisions");
    program.call("POST", &decisions, Some(&forged), "").await.expect(422);
    let decided = program.call("POST", &decisions, Some(&decision), "").await.expect(200);
    let review = &decided["review"];
    assert_eq!((&review["decisions"][0]["token"], &review["resolution"]["token"]), (&token, &token));
    assert_eq!((&review["comments"][0]["token"], &review["comments"][1]["token"]), (&Value::Null, &token));

    let admin = site.login("admin").await;
    let tokens = async |query: &str| {
        let found = admin.get(&format!("/api/v1/audit?actor=ana{query}")).await.expect(200);
        let mut tokens: Vec<_> =
            found["items"].as_array().unwrap().iter().map(|entry| entry["token"].clone()).collect();
        tokens.reverse();
        tokens
    };
    assert_eq!(tokens("&act=comment").await, [Value::Null, token.clone()]);
    assert_eq!(tokens("&act=claim,decision").await, [token.clone(), token.clone()]);
    let search = format!("&act=claim&q={}", token.as_str().unwrap());
    assert_eq!(tokens(&search).await, std::slice::from_ref(&token), "its id finds what it did");
}
