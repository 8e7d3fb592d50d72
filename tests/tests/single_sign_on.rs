//! Login through an OpenID Connect provider: with the real server, on both databases, and with a provider that makes
//! every mistake that matters.

use std::time::UNIX_EPOCH;

use reqwest::Method;
use serde_json::{Value, json};
use shared::api::{AuditQuery, UserPatch};
use shared::error::Code;
use shared::log::Entry;
use tests::identity_provider::{CLIENT, SECRET};
use tests::reviewing::remember;
use tests::{Api, Database, Fault, IdentityProvider, Options, Person, Server, Visitor, eventually};

const ROLES: &str =
    "[oidc.roles]\neditors = [\"reviewer\", \"editor\"]\nstaff = [\"reviewer\"]\nbosses = [\"admin\"]\n";

fn options(database: Database, provider: &IdentityProvider, more: &str) -> Options {
    let settings = format!(
        "[oidc]\nissuer = \"{}\"\nclient_id = \"{CLIENT}\"\nlabel = \"Example\"\n{more}{ROLES}",
        provider.issuer
    );
    let environment = vec![("COUNTERSIGN_OIDC_SECRET".to_owned(), SECRET.to_owned())];
    Options { settings, environment, ..Options::on(database) }
}

async fn audit(admin: &Api, kind: &str) -> Vec<Entry> {
    let query = AuditQuery { kind: Some(kind.to_owned()), ..AuditQuery::default() };
    admin.audit(&query).await.expect("reads").items
}

fn nora(groups: &[&str]) -> Person {
    Person::new("subject-1", "nora", groups)
}

/// People log in for the first time and again with other groups, and those whom the server must refuse are refused.
async fn people_come_and_their_groups_change(database: Database) {
    let provider = IdentityProvider::start(nora(&["editors", "everybody"])).await;
    let server = Server::start(options(database, &provider, "")).await;
    let admin = server.admin().await;
    assert_eq!(admin.login_ways().await.expect("public").single_sign_on.as_deref(), Some("Example"));
    assert_eq!(provider.requests_to("/.well-known/openid-configuration"), 0, "it is asked when somebody signs in");

    // The first login creates the account, with the roles of the groups, and leads back to the page where it began.
    let visitor = Visitor::new(&server.base);
    assert_eq!(visitor.sign_in("/runs%3Fa%3Db").await, "/runs?a=b");
    let (_, me) = visitor.get("/api/v1/me").await;
    assert_eq!((&me["username"], &me["roles"]), (&json!("nora"), &json!(["editor", "reviewer"])));
    assert_eq!((&me["email"], &me["single_sign_on"]), (&json!("nora@example.org"), &json!(true)));
    let made = audit(&admin, "user.created").await.remove(0).event;
    let account = json!({ "issuer": provider.issuer, "subject": "subject-1" });
    assert_eq!((&made.data["username"], &made.data["single_sign_on"]), (&json!("nora"), &account));
    let entered = audit(&admin, "session.started").await.remove(0).event;
    assert_eq!((&entered.data["username"], &entered.data["single_sign_on"]), (&json!("nora"), &account));

    // The second login takes over the current groups, and recognises the person by the subject, not by the username.
    remember(&server, &visitor).await;
    provider.seat(Person::new("subject-1", "nora-lind", &["staff"]));
    let other = Visitor::new(&server.base);
    assert_eq!(other.sign_in("").await, "/");
    let (_, me) = visitor.get("/api/v1/me").await;
    assert_eq!((&me["username"], &me["roles"]), (&json!("nora"), &json!(["reviewer"])), "in the older session too");
    let updated = audit(&admin, "user.updated").await.remove(0).event;
    assert_eq!(updated.data["roles"], json!(["reviewer"]));
    assert_eq!(audit(&admin, "grant.revoked").await.len(), 1, "what they approved for later goes with the role");
    assert_eq!(audit(&admin, "user.created").await.len(), 2, "the admin, and Nora once");

    // The session is listed and can be ended like any other.
    let (_, sessions) = other.get("/api/v1/me/sessions").await;
    assert_eq!(sessions["items"].as_array().expect("a list").len(), 2);
    let (status, _) = other.send(Method::DELETE, "/api/v1/me/sessions", &json!(null)).await;
    assert_eq!((status, visitor.get("/api/v1/me").await.0), (204, 401));

    // The account has no password, and none can be set.
    let patch = UserPatch { password: Some("three blue otters swim".to_owned()), ..UserPatch::default() };
    assert_eq!(admin.update_user("nora", &patch).await.expect_err("refused").code, Code::Conflict);
    assert_eq!(server.login("nora").await.expect_err("refused").code, Code::Unauthenticated);
    let change = json!({ "current": "x", "new": "three blue otters swim" });
    let (status, refused) = other.send(Method::PUT, "/api/v1/me/password", &change).await;
    assert_eq!((status, refused["code"].as_str()), (409, Some("conflict")), "{refused}");

    // Refused: a person with the username of another account, one without a group that has roles, and an invalid name.
    for (person, trouble) in [
        (Person::new("subject-2", "admin", &["bosses"]), "taken"),
        (Person::new("subject-3", "nora", &["staff"]), "taken"),
        (Person::new("subject-4", "olaf", &["everybody"]), "groups"),
        (Person::new("subject-5", "Not A Name!", &["staff"]), "claims"),
    ] {
        provider.seat(person.clone());
        let visitor = Visitor::new(&server.base);
        assert_eq!(visitor.sign_in("/runs").await, format!("/login?trouble={trouble}&next=%2Fruns"), "{person:?}");
        assert_eq!(visitor.get("/api/v1/me").await.0, 401);
        let refused = audit(&admin, "login.failed").await.remove(0).event;
        assert_eq!(refused.data["reason"], trouble);
        assert_eq!(refused.data["single_sign_on"]["subject"], person.subject.as_str());
    }
    let roles = admin.users().await.expect("reads").items;
    let names: Vec<&str> = roles.iter().map(|user| user.username.as_str()).collect();
    assert_eq!(names, ["admin", "nora"]);
    assert_eq!(roles[0].roles, ["admin"]);

    // A person who is no longer in such a group loses all roles, even in sessions that are still open.
    provider.seat(nora(&["everybody"]));
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/login?trouble=groups");
    assert_eq!(other.get("/api/v1/me").await.1["roles"], json!([]));
    // A deactivated account cannot log in, whatever the provider says.
    let away = UserPatch { active: Some(false), ..UserPatch::default() };
    admin.update_user("nora", &away).await.expect("changed");
    provider.seat(nora(&["editors"]));
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/login?trouble=inactive");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_come_and_their_groups_change_on_sqlite() {
    people_come_and_their_groups_change(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_come_and_their_groups_change_on_postgres() {
    people_come_and_their_groups_change(Database::Postgres).await;
}

async fn the_last_admin_stays_one(database: Database) {
    let provider = IdentityProvider::start(nora(&["bosses"])).await;
    let server = Server::start(options(database, &provider, "")).await;
    let visitor = Visitor::new(&server.base);
    visitor.sign_in("").await;
    let away = json!({ "active": false });
    let (status, _) = visitor.send(Method::PATCH, "/api/v1/users/admin", &away).await;
    assert_eq!(status, 200);
    for groups in [&["staff"][..], &["everybody"]] {
        provider.seat(nora(groups));
        Visitor::new(&server.base).sign_in("").await;
        let (status, me) = visitor.get("/api/v1/me").await;
        let roles: Vec<String> = serde_json::from_value(me["roles"].clone()).expect("roles");
        assert!(status == 200 && roles.contains(&"admin".to_owned()), "{groups:?}: {me}");
    }
    // With another admin, the role is taken away.
    let back = json!({ "active": true });
    visitor.send(Method::PATCH, "/api/v1/users/admin", &back).await;
    provider.seat(nora(&["staff"]));
    Visitor::new(&server.base).sign_in("").await;
    assert_eq!(visitor.get("/api/v1/me").await.1["roles"], json!(["reviewer"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_admin_stays_one_on_sqlite() {
    the_last_admin_stays_one(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_admin_stays_one_on_postgres() {
    the_last_admin_stays_one(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_hold_lets_nobody_in() {
    let provider = IdentityProvider::start(nora(&["staff"])).await;
    let server = Server::start(options(Database::Sqlite, &provider, "")).await;
    for (fault, trouble) in [
        (Fault::ForeignKey, "token"),
        (Fault::NoSignature, "token"),
        (Fault::ClientSecret, "token"),
        (Fault::OtherAudience, "token"),
        (Fault::MoreAudiences, "token"),
        (Fault::OtherIssuer, "token"),
        (Fault::OtherNonce, "token"),
        (Fault::NoNonce, "token"),
        (Fault::Expired, "token"),
        (Fault::OtherAccessToken, "token"),
        (Fault::OtherSender, "token"),
        (Fault::NoSender, "token"),
        (Fault::Denied, "denied"),
    ] {
        provider.fail_with(Some(fault));
        let visitor = Visitor::new(&server.base);
        assert_eq!(visitor.sign_in("").await, format!("/login?trouble={trouble}"), "{fault:?}");
        assert!(visitor.jar().is_empty(), "{fault:?}");
    }
    assert_eq!(server.admin().await.users().await.expect("reads").items.len(), 1);
    provider.fail_with(Some(Fault::UnverifiedEmail));
    let visitor = Visitor::new(&server.base);
    assert_eq!(visitor.sign_in("").await, "/");
    assert_eq!(visitor.get("/api/v1/me").await.1["email"], Value::Null, "an address that may be somebody else's");
    let log = server.log_tail();
    for secret in ["eyJ", "code=", SECRET, "what only the server's log may hold"] {
        assert!(!log.contains(secret), "{secret:?} is in the log:\n{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_once_and_only_in_the_browser_that_began() {
    let provider = IdentityProvider::start(nora(&["staff"])).await;
    let server = Server::start(options(Database::Sqlite, &provider, "")).await;
    let (own, other, nobody) = (Visitor::new(&server.base), Visitor::new(&server.base), Visitor::new(&server.base));
    let attempt = "/login?trouble=attempt";

    // One browser's callback in another one: that would log the other person in to this account.
    let back = own.at_provider(&own.open("/api/v1/session/oidc").await).await;
    other.open("/api/v1/session/oidc").await;
    assert_eq!(other.open(&back).await, attempt);
    assert_eq!(nobody.open(&back).await, attempt);
    let cookie = own.jar()["countersign_sign_in"].clone();
    for wrong in [format!("{cookie}A"), cookie.replace(&cookie[20..24], "AAAA"), String::new()] {
        let changed = Visitor::new(&server.base);
        changed.jar().insert("countersign_sign_in".to_owned(), wrong.clone());
        assert_eq!(changed.open(&back).await, attempt, "{wrong}");
    }
    for wrong in ["?code=x&state=y", "?code=x", "", &back.replace("state=", "state=x&state=")] {
        let path = wrong.strip_prefix("/api/v1/session/oidc/callback").unwrap_or(wrong);
        assert_eq!(own.open(&format!("/api/v1/session/oidc/callback{path}")).await, attempt, "{wrong}");
    }
    assert_eq!(provider.requests_to("/token"), 0, "nothing of this reaches the provider");

    // After all that, the attempt itself still works, once.
    assert_eq!(own.open(&back).await, "/");
    assert_eq!(own.get("/api/v1/me").await.0, 200);
    assert!(!own.jar().contains_key("countersign_sign_in"));
    assert_eq!(own.open(&back).await, attempt);
    // A thief with the callback and its cookie gets nothing: the provider redeems a code once.
    let thief = Visitor::new(&server.base);
    thief.jar().insert("countersign_sign_in".to_owned(), cookie);
    assert_eq!(thief.open(&back).await, "/login?trouble=denied");
    // The cookie cannot start a second session with another code either.
    let provider_page = own.open("/api/v1/session/oidc").await;
    let (first, second) = (own.at_provider(&provider_page).await, own.at_provider(&provider_page).await);
    thief.jar().insert("countersign_sign_in".to_owned(), own.jar()["countersign_sign_in"].clone());
    assert_eq!((own.open(&first).await.as_str(), thief.open(&second).await.as_str()), ("/", attempt));
    assert_eq!(thief.get("/api/v1/me").await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_leads_to_pages_of_this_server_only() {
    let provider = IdentityProvider::start(nora(&["staff"])).await;
    let server = Server::start(options(Database::Sqlite, &provider, "")).await;
    for next in ["//evil.example", "https%3A%2F%2Fevil.example", "%2F%5Cevil.example", "%2F%09%2Fevil.example"] {
        assert_eq!(Visitor::new(&server.base).sign_in(next).await, "/", "{next}");
        provider.fail_with(Some(Fault::Denied));
        assert_eq!(Visitor::new(&server.base).sign_in(next).await, "/login?trouble=denied", "{next}");
        provider.fail_with(None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_of_the_provider_is_fetched_but_not_for_everybody_who_asks() {
    let provider = IdentityProvider::start(nora(&["staff"])).await;
    let server = Server::start(options(Database::Sqlite, &provider, "")).await;
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/");
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/");
    assert_eq!(provider.requests_to("/keys"), 1, "the keys are kept");
    provider.change_key("2");
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/");
    assert_eq!(provider.requests_to("/keys"), 2);
    // The keys were fetched a moment ago, and are not fetched again so soon.
    provider.change_key("3");
    for _ in 0..3 {
        assert_eq!(Visitor::new(&server.base).sign_in("").await, "/login?trouble=token");
    }
    assert_eq!(provider.requests_to("/keys"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_keeps_nobody_else_out() {
    let provider = IdentityProvider::start(nora(&["staff"])).await;
    provider.fail_with(Some(Fault::Down));
    let server = Server::start(options(Database::Sqlite, &provider, "")).await;
    for _ in 0..20 {
        assert_eq!(Visitor::new(&server.base).sign_in("/runs").await, "/login?trouble=provider&next=%2Fruns");
    }
    let asked = provider.requests_to("/.well-known/openid-configuration");
    assert!(asked <= 2, "it is asked {asked} times");
    server.admin().await;
    provider.fail_with(None);
    eventually("the provider is asked again", async || {
        (Visitor::new(&server.base).sign_in("").await == "/").then_some(())
    })
    .await;
    // The same if the provider goes down in the middle of a login.
    let visitor = Visitor::new(&server.base);
    let back = visitor.at_provider(&visitor.open("/api/v1/session/oidc").await).await;
    provider.fail_with(Some(Fault::Down));
    assert_eq!(visitor.open(&back).await, "/login?trouble=provider");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_whom_the_settings_let_in_comes_in() {
    let provider = IdentityProvider::start(nora(&["staff"])).await;
    let server = Server::start(options(Database::Sqlite, &provider, "create_people = false\n")).await;
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/login?trouble=unknown");
    let server = Server::start(options(Database::Sqlite, &provider, "required_group = \"vpn\"\n")).await;
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/login?trouble=groups");
    provider.seat(nora(&["staff", "vpn"]));
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/");
    let server = Server::start(Options::on(Database::Sqlite)).await;
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/login?trouble=off");
    assert_eq!(server.nobody().login_ways().await.expect("public").single_sign_on, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_factor_that_somebody_has_here_is_asked_for() {
    let provider = IdentityProvider::start(nora(&["staff"])).await;
    let required = "[logins]\nsecond_factor = \"all\"\n";
    let mut options = options(Database::Sqlite, &provider, "");
    options.settings.push_str(required);
    let server = Server::start(options).await;
    let visitor = Visitor::new(&server.base);
    visitor.sign_in("").await;
    // `second_factor = "all"` does not apply, since the provider is responsible for how people log in.
    assert_eq!(visitor.get("/api/v1/runs").await.0, 200);
    let (_, new) = visitor.send(Method::POST, "/api/v1/me/totp", &json!({})).await;
    let secret = totp_rs::Secret::try_from_base32(new["secret"].as_str().expect("a secret")).expect("base 32");
    let totp = totp_rs::Builder::new().with_secret(secret).with_account_name("nora").build().expect("a secret");
    let now = UNIX_EPOCH.elapsed().expect("it is after 1970").as_secs();
    let code = json!({ "code": totp.generate(now).to_string() });
    let (status, codes) = visitor.send(Method::POST, "/api/v1/me/totp/confirm", &code).await;
    assert_eq!(status, 200, "{codes}");

    let again = Visitor::new(&server.base);
    let page = again.sign_in("/runs").await;
    let token = page.strip_prefix("/login?next=%2Fruns#token=").expect("the login page asks for the code");
    assert_eq!(again.get("/api/v1/me").await.0, 401);
    let (status, asked) = again.send(Method::POST, "/api/v1/session", &json!({ "token": token })).await;
    assert_eq!((status, asked["code"].as_str()), (401, Some("second_factor_required")));
    let with_code = json!({ "token": token, "code": codes["recovery_codes"][0] });
    let (status, user) = again.send(Method::POST, "/api/v1/session", &with_code).await;
    assert_eq!((status, user["username"].as_str()), (200, Some("nora")), "{user}");
}

async fn who_has_a_password_here_is_linked_by_an_operator(database: Database) {
    let provider = IdentityProvider::start(nora(&["staff"])).await;
    let server = Server::start(options(database, &provider, "create_people = false\n")).await;
    let before = server.person("nora", &["developer"]).await;
    let taken = Visitor::new(&server.base);
    assert_eq!(taken.sign_in("").await, "/login?trouble=unknown");
    let link = |arguments: &[&str]| {
        let mut command = std::process::Command::new(tests::binary());
        command.args(["user", "single-sign-on"]).args(arguments).arg("--data").arg(server.data());
        if database == Database::Postgres {
            command.args(["--database", &server.postgres().url]);
        }
        let output = command.output().expect("it ends");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (linked, said) = link(&["nora", "--subject", "subject-1"]);
    assert!(linked, "{said}");
    let visitor = Visitor::new(&server.base);
    assert_eq!(visitor.sign_in("").await, "/");
    let (_, me) = visitor.get("/api/v1/me").await;
    assert_eq!((&me["username"], &me["roles"]), (&json!("nora"), &json!(["reviewer"])));
    // The password is removed, and sessions that began with it are ended.
    assert_eq!(server.login("nora").await.expect_err("refused").code, Code::Unauthenticated);
    assert_eq!(before.me().await.expect_err("refused").code, Code::Unauthenticated);
    // An account of the provider can only be linked to one person.
    let (linked, said) = link(&["admin", "--subject", "subject-1"]);
    assert!(!linked && said.contains("this account already belongs to nora"), "{said}");
    assert!(link(&["nora", "--remove"]).0);
    assert_eq!(Visitor::new(&server.base).sign_in("").await, "/login?trouble=unknown");
    eventually("the session has ended", async || (visitor.get("/api/v1/me").await.0 == 401).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_a_password_here_is_linked_by_an_operator_on_sqlite() {
    who_has_a_password_here_is_linked_by_an_operator(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_a_password_here_is_linked_by_an_operator_on_postgres() {
    who_has_a_password_here_is_linked_by_an_operator(Database::Postgres).await;
}

#[test]
fn a_server_whose_settings_do_not_hold_does_not_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = folder.path().join("countersign.toml");
    for (oidc, named) in [
        ("issuer = \"http://login.example.org\"\nclient_id = \"a\"", "[oidc] issuer"),
        ("issuer = \"https://login.example.org\"", "client_id"),
        ("issuer = \"https://login.example.org\"\nclient_id = \"a\"\nroles = { a = [\"B B\"] }", "[oidc] roles: a"),
    ] {
        std::fs::write(&settings, format!("[oidc]\n{oidc}\n")).expect("written");
        let mut command = std::process::Command::new(tests::binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
        let output = command.output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(named), "{oidc}: {said}");
        assert!(!folder.path().join("countersign.db").exists(), "nothing was written");
    }
}
