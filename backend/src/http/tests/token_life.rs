//! Tests of what ends tokens, and of what a session must prove before it creates what outlives it.

use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use serde_json::{Value, json};

use super::account::{cookie, enter, seconds};
use super::{Client, PASSWORD, Received, Site};
use crate::auth::{code_at, login_link};
use crate::store::testing::ManualClock;
use crate::store::{Change, Operation, ProviderAccount};

/// Sends a body with a token.
async fn by_token(site: &Site, token: &Value, method: &str, path: &str, body: &Value) -> Received {
    let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
    let request = Client { site, cookie: None }.request(method, path).header(header::AUTHORIZATION, bearer);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    site.send(request.body(Body::from(body.to_string())).unwrap()).await
}

/// Asks who a token is.
async fn as_token(site: &Site, token: &Value) -> Received {
    by_token(site, token, "GET", "/api/v1/me", &Value::Null).await
}

#[tokio::test]
async fn a_stolen_session_lets_nobody_else_in() {
    let (site, clock) = Site::at_rest().await;
    let ana = site.join("ana", &["reviewer"]).await;
    site.join("tom", &["reviewer"]).await;
    let until = site.clock.now().after(Duration::from_hours(24)).to_string();
    let token = json!({ "name": "ci", "roles": ["reviewer"] });
    let deputy = json!({ "deputy": "tom", "until": until });
    let address = |email: &str| json!({ "rules": [], "email": email });
    // Whoever has just logged in is asked for nothing.
    ana.put("/api/v1/notifications", &address("ana@desk.example")).await.expect(200);
    clock.advance(Duration::from_mins(11));
    let tokens = ana.post("/api/v1/tokens", &token).await.expect(403);
    assert_eq!(tokens["code"], "confirmation_required");
    assert!(tokens["detail"].as_str().unwrap().contains("/api/v1/me/confirm"), "{tokens}");
    assert_eq!(ana.post("/api/v1/deputies", &deputy).await.code(403), "confirmation_required");
    let elsewhere = ana.put("/api/v1/notifications", &address("eve@else.example")).await;
    assert_eq!(elsewhere.code(403), "confirmation_required");
    // Whatever sends nothing elsewhere needs no confirmation.
    ana.put("/api/v1/notifications", &address("ana@desk.example")).await.expect(200);
    ana.put("/api/v1/notifications", &json!({ "rules": [] })).await.expect(200);

    let wrong = ana.post("/api/v1/me/confirm", &json!({ "password": "a wrong password" })).await.expect(422);
    assert_eq!(wrong["errors"][0]["path"], "/password");
    assert_eq!(ana.post("/api/v1/tokens", &token).await.code(403), "confirmation_required");
    ana.post("/api/v1/me/confirm", &json!({ "password": PASSWORD })).await.expect(204);
    ana.post("/api/v1/tokens", &token).await.expect(201);
    ana.post("/api/v1/deputies", &deputy).await.expect(201);
    ana.put("/api/v1/notifications", &address("ana@new.example")).await.expect(200);
    clock.advance(Duration::from_mins(11));
    assert_eq!(ana.post("/api/v1/tokens", &token).await.code(403), "confirmation_required");
}

/// A site whose admin logged in eleven minutes ago. Ana is a reviewer with a second factor, and Tom may not log in.
/// Returns the sessions of the admin and of Ana, and a token of the admin.
async fn eleven_minutes_later<'a>(site: &'a Site, clock: &ManualClock) -> (Client<'a>, Client<'a>, Value) {
    let ana = site.join("ana", &["reviewer"]).await;
    let factor = ana.post("/api/v1/me/totp", &json!({ "password": PASSWORD })).await.expect(201);
    let code = code_at(factor["secret"].as_str().unwrap(), seconds(site));
    ana.post("/api/v1/me/totp/confirm", &json!({ "code": code })).await.expect(200);
    site.join("tom", &["reviewer"]).await;
    let admin = site.login("admin").await;
    admin.patch("/api/v1/users/tom", &json!({ "active": false })).await.expect(200);
    let token = admin.post("/api/v1/tokens", &json!({ "name": "ci", "roles": ["admin"] })).await.expect(201);
    clock.advance(Duration::from_mins(11));
    (admin, ana, token)
}

#[tokio::test]
async fn a_stolen_session_of_an_admin_gives_nobody_access() {
    let (site, clock) = Site::at_rest().await;
    let (admin, ana, _) = eleven_minutes_later(&site, &clock).await;
    site.join("lea", &["reviewer"]).await;
    admin.patch("/api/v1/users/lea", &json!({ "active": false })).await.expect(200);
    let (of_ana, of_tom) = ("/api/v1/users/ana", "/api/v1/users/tom");
    let eve = json!({ "username": "eve", "password": "Quartz-Lemur-93", "roles": ["admin"] });
    let changes = [
        ("POST", "/api/v1/users", eve, 201),
        ("PATCH", of_ana, json!({ "roles": ["reviewer", "developer"] }), 200),
        ("PATCH", of_ana, json!({ "roles": ["developer"], "display_name": "Ana" }), 200),
        ("PATCH", of_ana, json!({ "email": "eve@else.example" }), 200),
        ("PATCH", of_ana, json!({ "slack_user_id": "U024BE7LH" }), 200),
        ("PATCH", of_tom, json!({ "active": true }), 200),
        ("DELETE", "/api/v1/users/ana/totp", Value::Null, 204),
        ("PATCH", of_ana, json!({ "password": "Quartz-Lemur-93" }), 200),
        ("DELETE", "/api/v1/users/lea/personal-data", Value::Null, 200),
    ];
    let send = async |method: &str, path: &str, body: &Value| {
        let request = admin.request(method, path).header(header::CONTENT_TYPE, "application/json");
        site.send(request.body(Body::from(body.to_string())).unwrap()).await
    };
    let before = admin.get("/api/v1/users").await.expect(200);
    for &(method, path, ref body, _) in &changes {
        assert_eq!(send(method, path, body).await.code(403), "confirmation_required", "{method} {path} {body}");
    }
    assert_eq!(admin.get("/api/v1/users").await.expect(200), before, "nothing has changed");
    // A new password would have ended her session.
    assert_eq!(ana.get("/api/v1/me/totp").await.expect(200)["enabled"], true);

    admin.post("/api/v1/me/confirm", &json!({ "password": PASSWORD })).await.expect(204);
    for &(method, path, ref body, status) in &changes {
        send(method, path, body).await.expect(status);
    }
    ana.get("/api/v1/me").await.expect(401);
    let login = json!({ "username": "ana", "password": "Quartz-Lemur-93" });
    Client { site: &site, cookie: None }.post("/api/v1/session", &login).await.expect(200);
}

#[tokio::test]
async fn names_and_what_takes_access_away_need_no_recent_login() {
    let (site, clock) = Site::at_rest().await;
    let (admin, ana, _) = eleven_minutes_later(&site, &clock).await;
    let patch = async |body: Value| admin.patch("/api/v1/users/ana", &body).await.expect(200);
    assert_eq!(patch(json!({ "display_name": "Ana Novak" })).await["display_name"], "Ana Novak");
    // What she has already, as a form sends it again.
    patch(json!({ "roles": ["reviewer"], "active": true, "email": "", "slack_user_id": "" })).await;
    assert_eq!(patch(json!({ "roles": [] })).await["roles"], json!([]));
    assert_eq!(patch(json!({ "active": false })).await["active"], false);
    ana.get("/api/v1/me").await.expect(401);
}

#[tokio::test]
async fn what_somebody_has_already_is_not_given_to_them() {
    let (site, clock) = Site::at_rest().await;
    let lea = site.join("lea", &["admin"]).await;
    let path = "/api/v1/users/lea";
    let admin = site.login("admin").await;
    admin.patch(path, &json!({ "slack_user_id": "U024BE7LH", "email": "lea@desk.example" })).await.expect(200);
    clock.advance(Duration::from_mins(11));
    // An admin is a developer too.
    let less = json!({ "slack_user_id": "U024BE7LH", "email": "lea@desk.example", "roles": ["developer", "reviewer"] });
    admin.patch(path, &less).await.expect(200);
    assert_eq!(lea.get("/api/v1/me").await.expect(200)["roles"], less["roles"]);
    let more = admin.patch(path, &json!({ "roles": ["admin"] })).await.expect(403);
    assert_eq!((&more["code"], &more["confirm_with"]), (&json!("confirmation_required"), &json!("password")));
}

#[tokio::test]
async fn whoever_has_a_second_factor_confirms_with_it_and_wrong_guesses_are_in_the_audit_log() {
    let (site, clock) = Site::at_rest().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let admin = site.login("admin").await;
    let factor = ana.post("/api/v1/me/totp", &json!({ "password": PASSWORD })).await.expect(201);
    let code = || code_at(factor["secret"].as_str().unwrap(), seconds(&site));
    ana.post("/api/v1/me/totp/confirm", &json!({ "code": code() })).await.expect(200);
    clock.advance(Duration::from_mins(11));
    let token = json!({ "name": "ci", "roles": ["reviewer"] });
    let refused = ana.post("/api/v1/tokens", &token).await.expect(403);
    assert_eq!(refused["confirm_with"], "password_and_code");
    let confirm = async |body: Value| ana.post("/api/v1/me/confirm", &body).await;
    let place = |answer: Value| answer["errors"][0]["path"].clone();
    assert_eq!(place(confirm(json!({ "password": "a wrong password" })).await.expect(422)), "/password");
    assert_eq!(place(confirm(json!({ "password": PASSWORD })).await.expect(422)), "/code");
    assert_eq!(place(confirm(json!({ "password": PASSWORD, "code": "000000" })).await.expect(422)), "/code");
    assert_eq!(ana.post("/api/v1/tokens", &token).await.code(403), "confirmation_required");

    let code = code();
    confirm(json!({ "password": PASSWORD, "code": code })).await.expect(204);
    ana.post("/api/v1/tokens", &token).await.expect(201);
    // A code works once.
    assert_eq!(place(confirm(json!({ "password": PASSWORD, "code": code })).await.expect(422)), "/code");
    let told = async |kind: &str| admin.get(&format!("/api/v1/audit?kind={kind}")).await.expect(200)["items"].clone();
    let confirmed = told("session.confirmed").await;
    assert_eq!(confirmed[0]["data"], json!({ "username": "ana", "second_factor": "code" }));
    assert_eq!(confirmed[1], Value::Null, "nobody else has confirmed anything");
    // They are recorded in the background, after the response.
    let mut failed = Vec::new();
    for _ in 0..500 {
        failed = told("login.failed").await.as_array().unwrap().iter().map(|entry| entry["data"].clone()).collect();
        if failed.len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let count = |data: Value| failed.iter().filter(|known| **known == data).count();
    assert_eq!(count(json!({ "username": "ana", "in_session": true })), 1, "{failed:?}");
    assert_eq!(count(json!({ "username": "ana", "in_session": true, "wrong_code": true })), 2, "{failed:?}");
}

#[tokio::test]
async fn whoever_has_just_changed_their_password_is_asked_for_nothing() {
    let (site, clock) = Site::at_rest().await;
    let ana = site.join("ana", &["reviewer"]).await;
    clock.advance(Duration::from_mins(11));
    let token = json!({ "name": "ci", "roles": ["reviewer"] });
    assert_eq!(ana.post("/api/v1/tokens", &token).await.code(403), "confirmation_required");
    let change = json!({ "current": PASSWORD, "new": "two otters on a raft" });
    ana.put("/api/v1/me/password", &change).await.expect(204);
    ana.post("/api/v1/tokens", &token).await.expect(201);

    // Unless they have a second factor, for which this does not ask.
    let lea = site.join("lea", &["reviewer"]).await;
    let factor = lea.post("/api/v1/me/totp", &json!({ "password": PASSWORD })).await.expect(201);
    let code = code_at(factor["secret"].as_str().unwrap(), seconds(&site));
    lea.post("/api/v1/me/totp/confirm", &json!({ "code": code })).await.expect(200);
    clock.advance(Duration::from_mins(11));
    lea.put("/api/v1/me/password", &change).await.expect(204);
    assert_eq!(lea.post("/api/v1/tokens", &token).await.code(403), "confirmation_required");
}

#[tokio::test]
async fn wrong_codes_in_a_session_do_not_keep_its_owner_from_logging_in() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let factor = ana.post("/api/v1/me/totp", &json!({ "password": PASSWORD })).await.expect(201);
    let code = |ahead| code_at(factor["secret"].as_str().unwrap(), seconds(&site) + ahead);
    ana.post("/api/v1/me/totp/confirm", &json!({ "code": code(0) })).await.expect(200);
    let wrong = json!({ "code": "000000" });
    while ana.post("/api/v1/me/totp/remove", &wrong).await.status.as_u16() != 429 {}
    let login = json!({ "username": "ana", "password": PASSWORD, "code": code(30) });
    Client { site: &site, cookie: None }.post("/api/v1/session", &login).await.expect(200);
}

#[tokio::test]
async fn a_token_adds_people_and_changes_their_roles_however_long_ago_it_was_created() {
    let (site, clock) = Site::at_rest().await;
    let (_, ana, token) = eleven_minutes_later(&site, &clock).await;
    let new = json!({ "username": "lea", "password": "Quartz-Lemur-93", "roles": ["reviewer"] });
    by_token(&site, &token, "POST", "/api/v1/users", &new).await.expect(201);
    let roles = json!({ "roles": ["reviewer", "developer"] });
    by_token(&site, &token, "PATCH", "/api/v1/users/ana", &roles).await.expect(200);
    assert_eq!(ana.get("/api/v1/me").await.expect(200)["roles"], roles["roles"]);
    by_token(&site, &token, "PATCH", "/api/v1/users/tom", &json!({ "active": true })).await.expect(200);
    site.login("tom").await;
}

#[tokio::test]
async fn a_token_lets_no_admin_in_again() {
    let site = Site::new().await;
    let tom = site.join("tom", &["admin"]).await;
    let token = tom.post("/api/v1/tokens", &json!({ "name": "ci", "roles": ["admin"] })).await.expect(201);
    let lea = site.join("lea", &["admin"]).await;
    let path = "/api/v1/users/lea";
    by_token(&site, &token, "PATCH", path, &json!({ "active": false })).await.expect(200);
    lea.get("/api/v1/me").await.expect(401);
    let refused = by_token(&site, &token, "PATCH", path, &json!({ "active": true })).await.expect(403);
    assert!(refused["detail"].as_str().unwrap().contains("admin"), "{refused}");
    tom.patch(path, &json!({ "active": true })).await.expect(200);
    site.login("lea").await;
}

#[tokio::test]
async fn who_changes_their_password_can_end_their_tokens_with_it() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let token = ana.post("/api/v1/tokens", &json!({ "name": "ci", "roles": ["reviewer"] })).await.expect(201);
    let me = async || as_token(&site, &token).await;
    let (second, third) = ("two otters on a raft", "three otters on a raft");
    ana.put("/api/v1/me/password", &json!({ "current": PASSWORD, "new": second })).await.expect(204);
    me().await.expect(200);
    ana.put("/api/v1/me/password", &json!({ "current": second, "new": third, "end_tokens": true })).await.expect(204);
    me().await.expect(401);
    ana.get("/api/v1/me").await.expect(200);
    let audit = site.login("admin").await.get("/api/v1/audit?kind=user.updated").await.expect(200);
    assert_eq!(audit["items"][0]["data"]["tokens_ended"], true, "{audit}");
}

#[tokio::test]
async fn tokens_lapse_when_their_owner_no_longer_signs_in_with_the_identity_provider() {
    let (site, clock) = Site::at_rest().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let account = ProviderAccount { issuer: "https://id.example".to_owned(), subject: "7".to_owned() };
    let link = Operation::LinkAccount { username: "ana".parse().unwrap(), account: Some(account) };
    site.store.commit(Change::by_server(link)).await.unwrap();
    let link = login_link(&site.store, &site.clock, "ana".parse().unwrap()).await.unwrap();
    ana.get("/api/v1/me").await.expect(401);
    let entered = enter(&site, "192.0.2.1", "", &json!({ "token": link })).await;
    let ana = Client { site: &site, cookie: Some(cookie(&entered, "countersign_session")) };
    let token = ana.post("/api/v1/tokens", &json!({ "name": "ci", "roles": ["reviewer"] })).await.expect(201);
    let me = async || as_token(&site, &token).await;
    clock.advance(Duration::from_hours(29 * 24));
    me().await.expect(200);
    clock.advance(Duration::from_hours(2 * 24));
    let lapsed = me().await.expect(401);
    assert!(lapsed["detail"].as_str().unwrap().contains("identity provider"), "{lapsed}");
    // As a sign-in does.
    let now = format!("UPDATE users SET signed_in_at = {} WHERE username = 'ana'", site.clock.now().0);
    assert_eq!(site.database.execute(&now).await.unwrap(), 1);
    me().await.expect(200);
}

#[tokio::test]
async fn admins_see_when_the_tokens_of_others_were_last_used_and_revoke_them() {
    let (site, clock) = Site::at_rest().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let token = ana.post("/api/v1/tokens", &json!({ "name": "ci", "roles": ["reviewer"] })).await.expect(201);
    let admin = site.login("admin").await;
    let path = "/api/v1/tokens?user=ana";
    assert_eq!(site.join("tom", &["developer"]).await.get(path).await.code(403), "forbidden");
    assert_eq!(admin.get(path).await.expect(200)["items"][0]["last_used_at"], Value::Null);
    clock.advance(Duration::from_hours(3));
    let me = async || as_token(&site, &token).await;
    me().await.expect(200);
    let used = site.clock.now().to_string();
    // It is recorded in the background, after the response.
    for _ in 0..500 {
        if admin.get(path).await.expect(200)["items"][0]["last_used_at"] == used.as_str() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let listed = admin.get(path).await.expect(200);
    assert_eq!(listed["items"][0]["last_used_at"], used.as_str(), "{listed}");
    admin.delete(&format!("/api/v1/tokens/{}", token["id"].as_str().unwrap())).await.expect(204);
    me().await.expect(401);
}
