//! Tests of the saved views of the inbox.

use axum::body::Body;
use axum::http::header;
use serde_json::{Value, json};

use super::{Client, Site as World};
use crate::store::tests::support::on_both;

on_both! {
    everybody_has_their_own_views,
    views_are_not_overwritten_unseen,
    views_that_cannot_be_read_are_left_out_and_kept_when_others_are_replaced,
}

const PATH: &str = "/api/v1/me/views";

async fn everybody_has_their_own_views(site: World) {
    let (ana, tom) = (site.join("ana", &["reviewer"]).await, site.join("tom", &["reviewer"]).await);
    assert_eq!(ana.get(PATH).await.expect(200), json!({ "revision": 0, "views": [] }));
    let filter = json!({ "severity": "high", "due": "30m", "flow": "gone", "irreversible": true, "q": "two words" });
    let views = json!([{ "name": "Soon", "filter": filter, "default": true }, { "name": "All", "filter": {} }]);
    let saved = ana.put(PATH, &json!({ "revision": 0, "views": views })).await.expect(200);
    assert_eq!(saved, json!({ "revision": 1, "views": views }));
    assert_eq!(ana.get(PATH).await.expect(200), saved);
    assert_eq!(tom.get(PATH).await.expect(200)["views"], json!([]));
    let admin = site.login("admin").await;
    assert_eq!(admin.get(PATH).await.expect(200)["views"], json!([]), "not even an admin sees or changes hers");

    // The log says that they changed, and not what somebody looks for.
    let entries = admin.get("/api/v1/audit?kind=user.updated").await.expect(200)["items"].clone();
    let changed = &entries[0]["data"];
    assert_eq!(*changed, json!({ "username": "ana", "views": true }));
    let token = ana.post("/api/v1/tokens", &json!({ "name": "ci", "roles": ["reviewer"] })).await.expect(201);
    let nobody = Client { site: &site, cookie: None };
    for method in ["GET", "PUT"] {
        let request = nobody.request(method, PATH).header(header::CONTENT_TYPE, "application/json");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", token["secret"].as_str().unwrap()));
        let body = Body::from(json!({ "revision": 1, "views": [] }).to_string());
        let answer = site.send(request.body(body).unwrap()).await;
        assert_eq!(answer.code(403), "forbidden", "{method}: a token is not the person");
    }
}

async fn views_are_not_overwritten_unseen(site: World) {
    let ana = site.join("ana", &["reviewer"]).await;
    let one = |revision: u64, name: &str| json!({ "revision": revision, "views": [{ "name": name, "filter": {} }] });
    ana.put(PATH, &one(0, "First")).await.expect(200);
    assert_eq!(ana.put(PATH, &one(0, "Second")).await.code(409), "conflict", "made from what another tab has replaced");
    assert_eq!(ana.get(PATH).await.expect(200)["views"][0]["name"], "First");
    assert_eq!(ana.put(PATH, &one(1, " Second ")).await.expect(200)["views"][0]["name"], "Second");

    let places = async |views: Value| {
        let body = json!({ "revision": 2, "views": views });
        let errors = ana.put(PATH, &body).await.expect(422)["errors"].clone();
        errors.as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let view = |name: &str, filter: Value| json!({ "name": name, "filter": filter });
    let wrong = json!([
        view("", json!({})),
        view("Mine", json!({ "q": "x".repeat(501) })),
        view("mine", json!({ "cursor": "x" })),
        view(&"x".repeat(61), json!({ "status": "resolved" })),
        { "name": "a", "filter": {}, "default": true },
        { "name": "b", "filter": {}, "default": true },
    ]);
    let expected = [
        "/views/0/name",
        "/views/1/filter/q",
        "/views/2/name",
        "/views/2/filter/cursor",
        "/views/3/name",
        "/views/3/filter/status",
        "/views/5/default",
    ];
    assert_eq!(places(wrong).await, expected);
    let many: Vec<_> = (0..31).map(|number| view(&number.to_string(), json!({}))).collect();
    assert_eq!(places(json!(many)).await, ["/views"]);
    assert_eq!(places(json!([view("Mine", json!({ "colour": "red" }))])).await, ["/views/0/filter/colour"]);
    assert_eq!(places(json!([view("Mine", json!({ "severity": "huge" }))])).await, ["/views/0/filter/severity"]);
    assert_eq!(ana.get(PATH).await.expect(200)["revision"], 2, "nothing of it was saved");
}

async fn views_that_cannot_be_read_are_left_out_and_kept_when_others_are_replaced(site: World) {
    let ana = site.join("ana", &["reviewer"]).await;
    let view = |name: &str| json!({ "name": name, "filter": {} });
    ana.put(PATH, &json!({ "revision": 0, "views": [view("First")] })).await.expect(200);
    // As a later version may store them, and then as no version does.
    let later = json!({ "revision": 7, "views": [view("First"), { "name": "New", "filter": { "colour": "red" } }] });
    for (body, revision, left, kept) in
        [(later.to_string(), 7, json!([view("First")]), &["views"][..]), ("{}".to_owned(), 0, json!([]), &[])]
    {
        let stored = site.database.execute(&format!("UPDATE views SET body = '{body}' WHERE username = 'ana'")).await;
        assert_eq!(stored.expect("runs"), 1);
        assert_eq!(ana.get(PATH).await.expect(200), json!({ "revision": revision, "views": left }));
        let replaced = json!({ "revision": revision, "views": [view("Mine")] });
        assert_eq!(ana.put(PATH, &replaced).await.expect(200)["revision"], revision + 1);
        assert_eq!(ana.get(PATH).await.expect(200)["views"], json!([view("Mine")]));
        assert_eq!(site.database.holding("colour").await.expect("reads"), kept, "the later version still has it");
    }
}
