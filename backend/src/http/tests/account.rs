//! Tests of the caller's own account: limits of logins, passwords, sessions, the second factor.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, header};
use serde_json::{Value, json};
use shared::time::Span;

use super::{Client, PASSWORD, Received, Site};
use crate::auth::{LoginPolicy, RequiredFor, code_at, demo_users, login_link};

/// Sends a login from an address, with cookies.
pub(super) async fn enter(site: &Site, address: &str, cookies: &str, body: &Value) -> Received {
    let mut request = Request::builder()
        .method("POST")
        .uri("/api/v1/session")
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, "Browser/1.0")
        .header(header::COOKIE, cookies)
        .body(Body::from(body.to_string()))
        .unwrap();
    let peer = SocketAddr::new(address.parse::<IpAddr>().unwrap(), 4242);
    request.extensions_mut().insert(ConnectInfo(peer));
    site.send(request).await
}

fn password(username: &str, password: &str) -> Value {
    json!({ "username": username, "password": password })
}

/// Returns a cookie that a response set, in the form `name=value` in which a browser sends it back.
pub(super) fn cookie(answer: &Received, name: &str) -> String {
    let cookies = answer.headers.get_all(header::SET_COOKIE).iter().map(|cookie| cookie.to_str().unwrap());
    let cookie = cookies.into_iter().find(|cookie| cookie.starts_with(name)).expect("the cookie is set");
    cookie.split(';').next().unwrap().to_owned()
}

/// The time of a server as an authenticator app counts it.
pub(super) fn seconds(site: &Site) -> u64 {
    u64::try_from(site.clock.now().0 / 1_000_000).unwrap()
}

#[tokio::test]
async fn a_right_password_is_not_refused_because_others_guess() {
    let (site, _) = Site::at_rest().await;
    let known = enter(&site, "192.0.2.1", "", &password("admin", PASSWORD)).await;
    let known = cookie(&known, "countersign_browser");
    for guess in 0..12 {
        // The eleventh attempt has to wait, whether or not the user exists.
        for name in ["admin", "nobody"] {
            let answer = enter(&site, "198.51.100.7", "", &password(name, "a wrong password")).await;
            answer.expect(if guess < 10 { 401 } else { 429 });
        }
    }
    for address in 0..30 {
        enter(&site, &format!("203.0.113.{address}"), "", &password("admin", "a wrong password")).await.expect(401);
    }
    enter(&site, "192.0.2.1", "", &password("admin", PASSWORD)).await.expect(200);
    // At the guesser's address, a browser that has logged in before may still log in, and so may a login link.
    enter(&site, "198.51.100.7", "", &password("admin", PASSWORD)).await.expect(429);
    enter(&site, "198.51.100.7", &known, &password("admin", PASSWORD)).await.expect(200);
    let link = login_link(&site.store, &site.clock, "admin".parse().unwrap()).await.unwrap();
    enter(&site, "198.51.100.7", "", &json!({ "token": link })).await.expect(200);
    // The cookie that identifies a known browser is no session, and counts only for the account that logged in there.
    let as_session = known.replace("countersign_browser", "countersign_session");
    let me = Client { site: &site, cookie: Some(as_session) };
    assert_eq!(me.get("/api/v1/me").await.code(401), "unauthenticated");
}

#[tokio::test]
async fn a_program_that_logs_in_again_and_again_has_to_wait_and_keeps_nobody_out() {
    let (site, clock) = Site::at_rest().await;
    let right = password("admin", PASSWORD);
    let known = cookie(&enter(&site, "192.0.2.1", "", &right).await, "countersign_browser");
    for network in 1..30 {
        enter(&site, &format!("198.51.100.{network}"), "", &right).await.expect(200);
    }
    let refused = enter(&site, "203.0.113.7", "", &right).await;
    assert_eq!(refused.headers[header::RETRY_AFTER], "6");
    assert_eq!(refused.expect(429)["detail"], "too many attempts; try again in 6 s");
    enter(&site, "192.0.2.1", &known, &right).await.expect(200);
    clock.advance(Duration::from_secs(6));
    enter(&site, "203.0.113.7", "", &right).await.expect(200);
    enter(&site, "203.0.113.7", "", &right).await.expect(429);
}

#[tokio::test]
async fn people_change_their_password_and_what_let_others_in_ends() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let other = site.login("ana").await;
    let link = login_link(&site.store, &site.clock, "ana".parse().unwrap()).await.unwrap();
    let token = ana.post("/api/v1/tokens", &json!({ "name": "ci", "roles": ["reviewer"] })).await.expect(201);
    let path = "/api/v1/me/password";
    for (current, new, place) in [
        ("a wrong password", "two otters on a raft", "/current"),
        (PASSWORD, "password1234", "/new"),
        (PASSWORD, "ana ana ana ana", "/new"),
        (PASSWORD, "eleven char", "/new"),
    ] {
        let refused = ana.put(path, &json!({ "current": current, "new": new })).await.expect(422);
        assert_eq!(refused["errors"][0]["path"], place, "{refused}");
    }
    ana.put(path, &json!({ "current": PASSWORD, "new": "two otters on a raft" })).await.expect(204);
    ana.get("/api/v1/me").await.expect(200);
    assert_eq!(other.get("/api/v1/me").await.code(401), "unauthenticated");
    enter(&site, "192.0.2.1", "", &json!({ "token": link })).await.expect(401);
    enter(&site, "192.0.2.1", "", &password("ana", PASSWORD)).await.expect(401);
    let entered = enter(&site, "192.0.2.1", "", &password("ana", "two otters on a raft")).await;
    assert_eq!(entered.status, 200);

    let request = |secret: &str| {
        let nobody = Client { site: &site, cookie: None };
        let request = nobody.request("PUT", path).header(header::AUTHORIZATION, format!("Bearer {secret}"));
        let body = json!({ "current": "two otters on a raft", "new": PASSWORD }).to_string();
        request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body)).unwrap()
    };
    let secret = token["secret"].as_str().unwrap();
    assert_eq!(site.send(request(secret)).await.code(403), "forbidden", "a token is not the person");
    site.login("admin").await.patch("/api/v1/users/ana", &json!({ "password": PASSWORD })).await.expect(200);
    assert_eq!(site.send(request(secret)).await.code(401), "unauthenticated", "a reset ends tokens too");
}

#[tokio::test]
async fn a_session_does_not_let_anyone_guess_the_password() {
    let (site, _) = Site::at_rest().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let path = "/api/v1/me/password";
    let guess = json!({ "current": "a wrong password", "new": "two otters on a raft" });
    let answers = futures::future::join_all((0..60).map(|_| ana.put(path, &guess))).await;
    let heard = answers.iter().filter(|answer| answer.status == 422).count();
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert!((1..=10).contains(&heard) && heard + refused == 60, "{heard} heard, {refused} refused");

    // A change with the right password costs as much work as a guess, and counts like one.
    let tom = site.join("tom", &["reviewer"]).await;
    let (mut current, mut new) = (PASSWORD, "two otters on a raft");
    for _ in 0..10 {
        tom.put(path, &json!({ "current": current, "new": "weak" })).await.expect(422);
        tom.put(path, &json!({ "current": current, "new": new })).await.expect(204);
        (current, new) = (new, current);
    }
    let again = json!({ "current": current, "new": new });
    assert_eq!(tom.put(path, &again).await.code(429), "too_many_requests");
}

#[tokio::test]
async fn people_see_and_end_their_sessions() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let tom = site.join("tom", &["reviewer"]).await;
    let first = enter(&site, "192.0.2.1", "", &password("ana", PASSWORD)).await;
    let first = cookie(&first, "countersign_session");
    let list = ana.get("/api/v1/me/sessions").await.expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    let other = list["items"].as_array().unwrap().iter().find(|one| one["current"] == false).unwrap();
    assert_eq!((&other["address"], &other["agent"]), (&json!("192.0.2.1"), &json!("Browser/1.0")));
    let path = format!("/api/v1/me/sessions/{}", other["id"].as_str().unwrap());
    assert_eq!(tom.delete(&path).await.code(404), "not_found");
    ana.delete(&path).await.expect(204);
    let gone = Client { site: &site, cookie: Some(first.clone()) };
    assert_eq!(gone.get("/api/v1/me").await.code(401), "unauthenticated");

    // A login ends the previous session of the browser.
    let second = enter(&site, "192.0.2.1", "", &password("ana", PASSWORD)).await;
    let second = cookie(&second, "countersign_session");
    enter(&site, "192.0.2.1", &second, &password("ana", PASSWORD)).await.expect(200);
    let gone = Client { site: &site, cookie: Some(second) };
    assert_eq!(gone.get("/api/v1/me").await.code(401), "unauthenticated");
    ana.delete("/api/v1/me/sessions").await.expect(204);
    assert_eq!(ana.get("/api/v1/me/sessions").await.expect(200)["items"].as_array().unwrap().len(), 1);
    tom.get("/api/v1/me").await.expect(200);
}

#[tokio::test]
async fn a_second_factor_is_asked_for_and_each_code_counts_once() {
    let (site, _) = Site::at_rest().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let new = ana.post("/api/v1/me/totp", &json!({ "password": PASSWORD })).await.expect(201);
    let secret = new["secret"].as_str().unwrap().to_owned();
    assert!(new["uri"].as_str().unwrap().starts_with("otpauth://totp/"), "{new}");
    assert!(new["qr_svg"].as_str().unwrap().starts_with("<svg"));
    // The second factor counts only once it is confirmed.
    site.login("ana").await;
    let wrong = ana.post("/api/v1/me/totp/confirm", &json!({ "code": "000000x" })).await.expect(422);
    assert_eq!(wrong["errors"][0]["path"], "/code");
    // Uses the code of the previous time step, so that the current code is still unused for the login below.
    let earlier = code_at(&secret, seconds(&site) - 30);
    let codes = ana.post("/api/v1/me/totp/confirm", &json!({ "code": earlier })).await.expect(200);
    let recovery = codes["recovery_codes"][0].as_str().unwrap().to_owned();
    assert_eq!(codes["recovery_codes"].as_array().unwrap().len(), 10);
    assert_eq!(ana.get("/api/v1/me/totp").await.expect(200)["enabled"], true);

    let with = |code: &str| json!({ "username": "ana", "password": PASSWORD, "code": code });
    let site = &site;
    let enter = |body: Value| async move { enter(site, "192.0.2.1", "", &body).await };
    assert_eq!(enter(password("ana", PASSWORD)).await.code(401), "second_factor_required");
    assert_eq!(enter(password("ana", "a wrong password")).await.code(401), "unauthenticated");
    assert_eq!(enter(with(&earlier)).await.code(401), "unauthenticated", "it was used");
    let code = code_at(&secret, seconds(site));
    enter(with(&code)).await.expect(200);
    assert_eq!(enter(with(&code)).await.code(401), "unauthenticated", "it was used");
    enter(with(&recovery.to_uppercase())).await.expect(200);
    assert_eq!(enter(with(&recovery)).await.code(401), "unauthenticated", "it was used");
    let link = login_link(&site.store, &site.clock, "ana".parse().unwrap()).await.unwrap();
    let owner = Client { site, cookie: None }.post("/api/v1/session/link", &json!({ "token": link })).await.expect(200);
    assert_eq!(owner["username"], "ana");
    assert_eq!(enter(json!({ "token": link })).await.code(401), "second_factor_required");
    let another = codes["recovery_codes"][1].as_str().unwrap();
    enter(json!({ "token": link, "code": another })).await.expect(200);

    for _ in 0..7 {
        enter(with("000000x")).await.expect(401);
    }
    assert_eq!(enter(with("000000x")).await.code(429), "too_many_requests");
    let last = codes["recovery_codes"][2].as_str().unwrap();
    enter(with(last)).await.expect(200);

    let admin = site.login("admin").await;
    assert_eq!(ana.delete("/api/v1/users/ana/totp").await.code(403), "forbidden");
    admin.delete("/api/v1/users/ana/totp").await.expect(204);
    enter(password("ana", PASSWORD)).await.expect(200);
    let audit = admin.get("/api/v1/audit?kind=user.updated").await.expect(200).to_string();
    assert!(audit.contains("\"second_factor\":\"on\"") && audit.contains("\"second_factor\":\"off\""), "{audit}");
    let all = admin.get("/api/v1/audit?limit=200").await.expect(200).to_string();
    assert!(!all.contains(&secret) && !all.contains(&recovery), "no secret is in the record");
}

#[tokio::test]
async fn a_session_alone_does_not_set_up_a_second_factor() {
    let (site, clock) = Site::at_rest().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let own = json!({ "password": PASSWORD });
    ana.post("/api/v1/me/totp", &own).await.expect(201);
    for body in [json!({}), json!({ "password": "a wrong password" })] {
        let refused = ana.post("/api/v1/me/totp", &body).await.expect(422);
        assert_eq!(refused["errors"][0]["path"], "/password", "{refused}");
    }
    for _ in 0..8 {
        ana.post("/api/v1/me/totp", &json!({ "password": "a wrong password" })).await.expect(422);
    }
    assert_eq!(ana.post("/api/v1/me/totp", &own).await.code(429), "too_many_requests");

    // Who has no password has just logged in.
    let links = demo_users(&site.store, &site.clock).await.unwrap();
    let (_, link) = links.into_iter().find(|(name, _)| name.as_str() == "tom").unwrap();
    let entered = enter(&site, "192.0.2.1", "", &json!({ "token": link })).await;
    let tom = Client { site: &site, cookie: Some(cookie(&entered, "countersign_session")) };
    tom.post("/api/v1/me/totp", &json!({})).await.expect(201);
    clock.advance(Duration::from_mins(11));
    assert_eq!(tom.post("/api/v1/me/totp", &json!({})).await.code(403), "confirmation_required");
}

#[tokio::test]
async fn who_must_have_a_second_factor_sets_it_up_before_anything_else() {
    let (mut site, _) = Site::at_rest().await;
    site.logins(LoginPolicy { second_factor: RequiredFor::Admins, ..LoginPolicy::default() });
    let admin = site.login("admin").await;
    assert_eq!(admin.get("/api/v1/users").await.code(403), "second_factor_missing");
    admin.get("/api/v1/me").await.expect(200);
    assert_eq!(admin.get("/api/v1/me/totp").await.expect(200)["required"], true);
    let new = admin.post("/api/v1/me/totp", &json!({ "password": PASSWORD })).await.expect(201);
    let code = code_at(new["secret"].as_str().unwrap(), seconds(&site));
    admin.post("/api/v1/me/totp/confirm", &json!({ "code": code })).await.expect(200);
    admin.get("/api/v1/users").await.expect(200);
}

#[tokio::test]
async fn a_session_that_is_not_used_ends_and_a_token_has_a_longest_life() {
    let (mut site, clock) = Site::at_rest().await;
    let (used, idle) = (site.login("admin").await, site.login("admin").await);
    clock.advance(Duration::from_hours(20));
    used.get("/api/v1/me").await.expect(200);
    // The last use is recorded in the background, after the response.
    for _ in 0..500 {
        let sessions = used.get("/api/v1/me/sessions").await.expect(200);
        let noted = |one: &Value| one["current"] == true && one["last_used_at"] != one["created_at"];
        if sessions["items"].as_array().unwrap().iter().any(noted) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    clock.advance(Duration::from_hours(20));
    used.get("/api/v1/me").await.expect(200);
    assert_eq!(idle.get("/api/v1/me").await.code(401), "unauthenticated");
    site.logins(LoginPolicy { token_life: Some(Span(Duration::from_hours(24))), ..LoginPolicy::default() });
    let admin = site.login("admin").await;
    let token = admin.post("/api/v1/tokens", &json!({ "name": "ci", "roles": [] })).await.expect(201);
    assert!(token["expires_at"].is_string());
    let late = site.clock.now().after(Duration::from_hours(25)).to_string();
    let refused = admin.post("/api/v1/tokens", &json!({ "name": "ci", "roles": [], "expires_at": late })).await;
    assert_eq!(refused.expect(422)["errors"][0]["path"], "/expires_at");
}

#[tokio::test]
async fn a_login_is_answered_even_if_the_person_cannot_be_read_afterwards() {
    let site = Site::new().await;
    site.join("ana", &["reviewer"]).await;
    let broken = "CREATE TRIGGER broken AFTER INSERT ON credentials WHEN NEW.kind = 'session'
        BEGIN UPDATE users SET deputyships = 'no JSON'; END";
    site.database.execute(broken).await.unwrap();
    let answer = enter(&site, "192.0.2.1", "", &password("ana", PASSWORD)).await;
    assert!(!cookie(&answer, "countersign_session").is_empty());
    assert_eq!(answer.expect(200)["username"], "ana");
}

#[tokio::test]
async fn a_person_has_a_limited_number_of_tokens() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let new = json!({ "name": "ci", "roles": [] });
    for _ in 0..200 {
        ana.post("/api/v1/tokens", &new).await.expect(201);
    }
    assert_eq!(ana.post("/api/v1/tokens", &new).await.code(409), "conflict");
    let newest = ana.get("/api/v1/tokens").await.expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    ana.delete(&format!("/api/v1/tokens/{newest}")).await.expect(204);
    ana.post("/api/v1/tokens", &new).await.expect(201);
}
