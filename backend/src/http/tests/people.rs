//! Tests of logins, users and tokens.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use super::{Client, PASSWORD, Site};
use crate::auth::{Attempt, Authenticator, demo_users, login_link};
use crate::client_address::ClientAddress;

#[tokio::test]
async fn a_session_lasts_until_it_is_ended() {
    let site = Site::new().await;
    let admin = site.login("admin").await;
    let me = admin.get("/api/v1/me").await.expect(200);
    assert_eq!((&me["username"], &me["roles"]), (&json!("admin"), &json!(["admin"])));
    let gone = admin.delete("/api/v1/session").await;
    assert!(gone.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    gone.expect(204);
    assert_eq!(admin.get("/api/v1/me").await.code(401), "unauthenticated");
    admin.delete("/api/v1/session").await.expect(204);
}

#[tokio::test]
async fn guessing_is_slowed_down_and_stands_in_the_audit() {
    let (site, _) = Site::at_rest().await;
    let admin = site.login("admin").await;
    let nobody = Client { site: &site, cookie: None };
    for name in ["admin", "nobody-of-this-name"] {
        let wrong = json!({ "username": name, "password": "wrong" });
        for _ in 0..10 {
            assert_eq!(nobody.post("/api/v1/session", &wrong).await.code(401), "unauthenticated");
        }
        let answer = nobody.post("/api/v1/session", &wrong).await;
        assert!(answer.headers.contains_key(header::RETRY_AFTER));
        assert_eq!(answer.code(429), "too_many_requests");
    }
    // Failed logins are recorded in the background, after the response.
    let mut audit = json!({ "items": [] });
    for _ in 0..100 {
        audit = admin.get("/api/v1/audit?kind=login.failed").await.expect(200);
        if audit["items"].as_array().unwrap().len() == 10 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(audit["items"].as_array().unwrap().len(), 10, "{audit}");
    assert!(!audit.to_string().contains("wrong"));
}

#[tokio::test]
async fn a_link_logs_in_once() {
    let site = Site::new().await;
    let nobody = Client { site: &site, cookie: None };
    let links = demo_users(&site.store, &site.clock).await.unwrap();
    let [(ana, link), (tom, _)] = &links[..] else { panic!("two reviewers") };
    assert_eq!((ana.as_str(), tom.as_str()), ("ana", "tom"));
    let redeem = json!({ "token": link });
    let me = nobody.post("/api/v1/session", &redeem).await.expect(200);
    assert_eq!(
        (&me["display_name"], &me["roles"]),
        (&json!("Ana Novak"), &json!(["reviewer", "editor", "shift-lead"]))
    );
    assert_eq!(nobody.post("/api/v1/session", &redeem).await.code(401), "unauthenticated");
    let another = login_link(&site.store, &site.clock, ana.clone()).await.unwrap();
    nobody.post("/api/v1/session", &json!({ "token": another })).await.expect(200);
    demo_users(&site.store, &site.clock).await.unwrap();
}

#[tokio::test]
async fn people_are_the_admins_to_change_and_lose_their_sessions_with_their_password() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer", "editor", "editor"]).await;
    assert_eq!(ana.get("/api/v1/me").await.expect(200)["roles"], json!(["reviewer", "editor"]));
    assert_eq!(ana.get("/api/v1/users").await.code(403), "forbidden");
    let admin = site.login("admin").await;
    let again = json!({ "username": "ana", "password": PASSWORD });
    assert_eq!(admin.post("/api/v1/users", &again).await.code(409), "conflict");
    let short = json!({ "username": "eve", "password": "short" });
    assert_eq!(admin.post("/api/v1/users", &short).await.expect(422)["errors"][0]["path"], "/password");
    let names = admin.get("/api/v1/users?limit=1").await.expect(200);
    assert_eq!(names["items"][0]["username"], "admin");
    let next = names["next_cursor"].as_str().expect("there are more");
    let names = admin.get(&format!("/api/v1/users?limit=1&cursor={next}")).await.expect(200);
    assert_eq!((&names["items"][0]["username"], names.get("next_cursor")), (&json!("ana"), None));

    let user = admin.patch("/api/v1/users/ana", &json!({ "roles": ["reviewer", "legal"] })).await.expect(200);
    assert_eq!(user["roles"], json!(["reviewer", "legal"]));
    assert_eq!(ana.get("/api/v1/me").await.expect(200)["roles"], json!(["reviewer", "legal"]));
    admin.patch("/api/v1/users/ana", &json!({ "password": "battery staple" })).await.expect(200);
    assert_eq!(ana.get("/api/v1/me").await.code(401), "unauthenticated");
    let audit = admin.get("/api/v1/audit?kind=user.updated").await.expect(200);
    assert!(!audit.to_string().contains("battery"), "{audit}");

    let last = admin.patch("/api/v1/users/admin", &json!({ "active": false })).await;
    assert_eq!(last.code(409), "conflict");
    assert_eq!(admin.patch("/api/v1/users/nobody", &json!({})).await.code(404), "not_found");
}

#[tokio::test]
async fn nobody_keeps_an_account_with_a_token_or_an_open_session() {
    let site = Site::new().await;
    let admin = site.login("admin").await;
    site.join("ana", &["reviewer"]).await;
    let made = admin.post("/api/v1/tokens", &json!({ "name": "ci", "roles": ["admin"] })).await.expect(201);
    let secret = made["secret"].as_str().unwrap();
    let by_token = async |method: &str, path: &str, body: Value| {
        let request = Client { site: &site, cookie: None }.request(method, path);
        let request = request.header(header::AUTHORIZATION, format!("Bearer {secret}"));
        let request = request.header("content-type", "application/json").body(Body::from(body.to_string()));
        site.send(request.unwrap()).await
    };
    for (who, patch) in [
        ("ana", json!({ "password": "Quartz-Lemur-93" })),
        ("ana", json!({ "roles": ["admin"] })),
        ("admin", json!({ "password": "Quartz-Lemur-93" })),
        ("ana", json!({ "email": "thief@away.example" })),
        ("admin", json!({ "email": "thief@away.example" })),
    ] {
        let path = format!("/api/v1/users/{who}");
        assert_eq!(by_token("PATCH", &path, patch.clone()).await.code(403), "forbidden", "{patch}");
    }
    assert_eq!(by_token("DELETE", "/api/v1/users/ana/totp", Value::Null).await.code(403), "forbidden");
    for (method, path) in [
        ("PUT", "/api/v1/notifications?user=ana"),
        ("PUT", "/api/v1/notifications"),
        ("GET", "/api/v1/notifications?user=ana"),
    ] {
        assert_eq!(by_token(method, path, json!({})).await.code(403), "forbidden", "{method} {path}");
    }
    // A program can add people with their addresses, and send these again with what it changes.
    let new = json!({ "username": "tom", "password": "Quartz-Lemur-93", "email": "tom@desk.example", "roles": [] });
    by_token("POST", "/api/v1/users", new).await.expect(201);
    let same = json!({ "email": "tom@desk.example", "display_name": "Tom", "roles": ["reviewer"] });
    by_token("PATCH", "/api/v1/users/tom", same).await.expect(200);
    by_token("PATCH", "/api/v1/users/ana", json!({ "roles": ["developer"] })).await.expect(200);
    for own in [
        admin.patch("/api/v1/users/admin", &json!({ "password": "Quartz-Lemur-93" })).await,
        admin.delete("/api/v1/users/admin/totp").await,
    ] {
        assert!(own.body["detail"].as_str().unwrap().contains("/api/v1/me"), "{:?}", own.body);
        assert_eq!(own.code(403), "forbidden");
    }
    admin.patch("/api/v1/users/ana", &json!({ "password": "Quartz-Lemur-93" })).await.expect(200);
}

#[tokio::test]
async fn a_token_acts_as_its_maker_with_no_more_than_its_roles() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer", "developer"]).await;
    let with = |secret: &str, method: &str, path: &str| {
        let nobody = Client { site: &site, cookie: None };
        nobody.request(method, path).header(header::AUTHORIZATION, format!("Bearer {secret}"))
    };
    let more = json!({ "name": "ci", "roles": ["admin"] });
    assert_eq!(ana.post("/api/v1/tokens", &more).await.expect(422)["errors"][0]["path"], "/roles/0");

    let new = json!({ "name": "ci", "roles": ["reviewer"] });
    let token = ana.post_with("/api/v1/tokens", &new, &[("idempotency-key", "t1")]).await.expect(201);
    let secret = token["secret"].as_str().unwrap();
    assert!(secret.starts_with("cs_token_"));
    assert_eq!(ana.post_with("/api/v1/tokens", &new, &[("idempotency-key", "t1")]).await.code(409), "conflict");
    let listed = ana.get("/api/v1/tokens").await.expect(200);
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["secret"]), (&token["id"], &json!(null)));

    let me = site.send(with(secret, "GET", "/api/v1/me").body(Body::empty()).unwrap()).await.expect(200);
    assert_eq!((&me["username"], &me["roles"]), (&json!("ana"), &json!(["reviewer"])));
    let save = with(secret, "PUT", "/api/v1/flows/a").header("content-type", "application/yaml");
    assert_eq!(site.send(save.body(Body::from("id: a")).unwrap()).await.code(403), "forbidden");
    let make = with(secret, "POST", "/api/v1/tokens").header("content-type", "application/json");
    assert_eq!(site.send(make.body(Body::from(new.to_string())).unwrap()).await.code(403), "forbidden");

    let path = format!("/api/v1/tokens/{}", token["id"].as_str().unwrap());
    assert_eq!(site.join("tom", &["reviewer"]).await.delete(&path).await.code(404), "not_found");
    ana.delete(&path).await.expect(204);
    let gone = with(secret, "GET", "/api/v1/me").body(Body::empty()).unwrap();
    assert_eq!(site.send(gone).await.code(401), "unauthenticated");
    let audit = site.login("admin").await.get("/api/v1/audit?kind=token.revoked").await.expect(200);
    assert_eq!(audit["items"][0]["data"], json!({ "id": token["id"], "owner": "ana" }));
}

#[tokio::test]
async fn the_first_start_makes_an_admin_who_can_get_in() {
    let site = Site::new().await;
    let again = crate::auth::bootstrap(&site.store, &site.clock, Some("another one".to_owned())).await.unwrap();
    assert_eq!(again, None, "a server that has people is not started for the first time");
    site.login("admin").await;
    let nobody = Authenticator::new(site.store.clone(), site.clock.clone());
    assert!(nobody.login("admin", "another one".to_owned(), Attempt::from(ClientAddress::UNKNOWN)).await.is_err());
}

#[tokio::test]
async fn only_admins_see_what_went_out() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer", "developer"]).await;
    let path = "/api/v1/notifications/deliveries";
    assert_eq!(ana.get(path).await.code(403), "forbidden");
    let admin = site.login("admin").await;
    assert_eq!(admin.get(path).await.expect(200)["items"], json!([]));
    assert_eq!(admin.get(&format!("{path}?status=lost")).await.code(422), "invalid");
    let retry = format!("{path}/{}/retry", uuid::Uuid::nil());
    assert_eq!(ana.post(&retry, &json!({})).await.code(403), "forbidden");
    assert_eq!(admin.post(&retry, &json!({})).await.code(404), "not_found");
}

#[tokio::test]
async fn everybody_chooses_what_they_are_told_and_nobody_takes_anothers_name_in_slack() {
    let site = Site::new().await;
    let (ana, tom) = (site.join("ana", &["reviewer"]).await, site.join("tom", &["reviewer"]).await);
    let path = "/api/v1/notifications";
    assert_eq!(ana.get(path).await.expect(200), json!({ "available": [] }), "nothing is chosen");
    let rules = json!([{ "channel": "email", "events": ["review.requested"], "after": "10m", "severities": ["high"] }]);
    let chosen = json!({ "rules": rules, "slack_user_id": "U1", "email": "ana@desk.example" });
    assert_eq!(ana.put(path, &chosen).await.code(403), "forbidden", "nothing proves that U1 is ana");
    site.in_slack("ana", "U1").await;
    assert_eq!(ana.put(path, &chosen).await.expect(200)["rules"], rules);
    assert_eq!(ana.get(path).await.expect(200)["slack_user_id"], "U1");
    assert_eq!(tom.put(path, &json!({ "rules": [] })).await.expect(200)["rules"], json!([]), "none is a choice too");
    assert_eq!(tom.put(path, &json!({})).await.expect(200), json!({ "available": [] }), "and can be taken back");
    assert_eq!(tom.get(&format!("{path}?user=ana")).await.code(403), "forbidden");
    let admin = site.login("admin").await;
    assert_eq!(admin.get(&format!("{path}?user=ana")).await.expect(200)["email"], "ana@desk.example");
    let of_tom = format!("{path}?user=tom");
    assert_eq!(admin.put(&of_tom, &json!({ "slack_user_id": "U1" })).await.code(409), "conflict");
    admin.put(&of_tom, &json!({ "slack_user_id": "U2" })).await.expect(200);
    assert_eq!(tom.get(path).await.expect(200)["slack_user_id"], "U2");
    assert_eq!(admin.put(path, &json!({ "slack_user_id": "U3" })).await.code(403), "forbidden", "not one's own");
    // People remove theirs, and a new password from an admin removes it too.
    ana.put(path, &json!({ "rules": rules, "email": "ana@desk.example" })).await.expect(200);
    assert_eq!(ana.put(path, &chosen).await.code(403), "forbidden");
    admin.patch("/api/v1/users/tom", &json!({ "password": PASSWORD })).await.expect(200);
    assert_eq!(admin.get(&of_tom).await.expect(200)["slack_user_id"], json!(null));
    // As a field of the person, it leaves the settings as they are.
    let of_ana = "/api/v1/users/ana";
    for (id, status) in [("U2", 200), ("ana", 422)] {
        admin.patch(of_ana, &json!({ "slack_user_id": id })).await.expect(status);
    }
    assert_eq!(
        ana.get(path).await.expect(200),
        json!({
            "rules": rules, "slack_user_id": "U2", "email": "ana@desk.example", "available": []
        })
    );
    let listed = async || admin.get("/api/v1/users").await.expect(200)["items"][1]["slack_user_id"].clone();
    assert_eq!(listed().await, "U2");
    assert!(ana.get("/api/v1/me").await.expect(200).get("slack_user_id").is_none());
    assert_eq!(admin.patch("/api/v1/users/tom", &json!({ "slack_user_id": "U2" })).await.code(409), "conflict");
    assert_eq!(admin.patch("/api/v1/users/admin", &json!({ "slack_user_id": "U3" })).await.code(403), "forbidden");
    let removed = admin.patch(of_ana, &json!({ "slack_user_id": "" })).await.expect(200);
    assert_eq!((&removed["username"], listed().await), (&json!("ana"), json!(null)));
    let both = json!({ "slack_user_id": "U2", "password": PASSWORD });
    assert_eq!(admin.patch(of_ana, &both).await.expect(200)["slack_user_id"], "U2");
    // A new password removes it also from settings that cannot be read,
    // and leaves the rest of them: a newer version may have written them.
    for (stored, left) in [
        (r#"{"rules":[],"slack_user_id":"U2","sounds":true}"#, r#"{"rules":[],"sounds":true}"#),
        ("no JSON", "no JSON"),
    ] {
        let newer = format!("UPDATE notifications SET body = '{stored}', slack_user_id = 'U2' WHERE username = 'ana'");
        assert_eq!(site.database.execute(&newer).await.unwrap(), 1);
        assert_eq!(listed().await, "U2");
        admin.patch(of_ana, &json!({ "password": PASSWORD })).await.expect(200);
        assert_eq!(listed().await, json!(null));
        let unchanged = format!("UPDATE notifications SET body = body WHERE username = 'ana' AND body = '{left}'");
        assert_eq!(site.database.execute(&unchanged).await.unwrap(), 1, "{stored}");
    }
    let ana = site.login("ana").await;
    // New settings replace such ones.
    ana.put(path, &json!({ "rules": rules })).await.expect(200);
    let wrong = json!({ "rules": [{ "channel": "email", "events": [] }], "slack_user_id": "ana", "email": "nowhere" });
    let errors = ana.put(path, &wrong).await.expect(422)["errors"].clone();
    let places: Vec<_> = errors.as_array().unwrap().iter().map(|mistake| mistake["path"].clone()).collect();
    assert_eq!(places, ["/rules/0/events", "/slack_user_id", "/email"]);
    let answer = ana.post(&format!("{path}/test"), &json!({ "channel": "email" })).await.expect(422);
    assert!(answer["errors"][0]["message"].as_str().unwrap().contains("no notification channels"), "{answer}");
}

#[tokio::test]
async fn admins_erase_whoever_may_no_longer_log_in() {
    let site = Site::new().await;
    let (ana, admin) = (site.join("ana", &["reviewer", "developer"]).await, site.login("admin").await);
    let path = "/api/v1/users/ana/personal-data";
    assert_eq!(ana.delete(path).await.code(403), "forbidden");
    let token = |roles: &[&str]| json!({ "name": "t", "roles": roles });
    let by_token = |token: Value| {
        let secret = token["secret"].as_str().unwrap().to_owned();
        let request =
            Request::builder().method("DELETE").uri(path).header(header::AUTHORIZATION, format!("Bearer {secret}"));
        site.send(request.body(Body::empty()).unwrap())
    };
    let narrow = admin.post("/api/v1/tokens", &token(&[])).await.expect(201);
    assert_eq!(by_token(narrow).await.code(403), "forbidden");
    let refused = admin.delete(path).await;
    assert!(refused.body["detail"].as_str().unwrap().contains("deactivate"), "{:?}", refused.body);
    assert_eq!(refused.code(409), "conflict");
    assert_eq!(admin.delete("/api/v1/users/nobody/personal-data").await.code(404), "not_found");
    admin.patch("/api/v1/users/ana", &json!({ "active": false })).await.expect(200);
    let wide = admin.post("/api/v1/tokens", &token(&["admin"])).await.expect(201);
    let erased = by_token(wide).await.expect(200);
    let name = erased["username"].as_str().unwrap();
    assert!(name.starts_with("erased-") && erased["archived_runs"] == 0, "{erased}");
    let again = admin.delete(&format!("/api/v1/users/{name}/personal-data")).await.expect(200);
    assert_eq!(again["username"], name);
    let audit = admin.get("/api/v1/audit?kind=user.erased").await.expect(200);
    assert_eq!(
        (&audit["items"][0]["actor"], &audit["items"][0]["data"]),
        (&json!("admin"), &json!({ "username": name }))
    );
    let people = admin.get("/api/v1/users").await.expect(200).to_string();
    assert!(people.contains(name) && !people.contains("\"ana\""), "{people}");
}
