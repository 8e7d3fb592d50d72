//! What needs a recent login: how people confirm that it is they, in the console and at an identity provider.

use reqwest::Method;
use serde_json::json;
use tests::identity_provider::{CLIENT, SECRET};
use tests::locator::locate;
use tests::pages::{button, field, wait_for_text};
use tests::reviewing::{open, text_of};
use tests::{
    Api, Browser, BrowserResult, Database, HttpTransport, IdentityProvider, Options, PASSWORD, Person, Server, Visitor,
    eventually, totp,
};
use thirtyfour::prelude::*;

/// Moves all logins an hour into the past, as if the sessions were that old.
async fn an_hour_passes(server: &mut Server) {
    server.kill();
    let database = rusqlite::Connection::open(server.file("countersign.db")).expect("opens");
    let earlier = "UPDATE credentials SET created_at = created_at - 3600 * 1000000 WHERE kind = 'session'";
    assert_ne!(database.execute(earlier, []).expect("writes"), 0, "somebody is logged in");
    database.close().expect("closes");
    server.restart().await;
}

/// A server with the reviewer Ana, and the page at a path as an admin sees it who logged in an hour ago.
async fn open_an_hour_later(path: &str) -> BrowserResult<(Server, Browser)> {
    let mut server = Server::start(Options::on(Database::Sqlite)).await;
    server.person("ana", &["reviewer"]).await;
    let browser = open(&server, "admin", "/inbox").await?;
    // No page is open that would lose the server in the middle of a load.
    browser.driver.goto("about:blank").await?;
    an_hour_passes(&mut server).await;
    browser.driver.goto(format!("{}{path}", server.base)).await?;
    Ok((server, browser))
}

/// The dialog that asks for the password.
fn asks() -> By {
    By::Css("dialog[open][aria-label='Confirm that it is you']")
}

/// Gives the password to the dialog that asks for it, and waits until it has closed.
async fn confirm(driver: &WebDriver) -> BrowserResult<()> {
    field(driver, "your password").send_keys(PASSWORD).await?;
    button(driver, "Confirm").click().await?;
    wait_for_text(driver, "Confirmed. You can continue now.").await;
    eventually("nothing is asked any more", async || driver.find_all(asks()).await.ok()?.is_empty().then_some(()))
        .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_logged_in_long_ago_confirms_that_it_is_they_before_a_token_is_created() -> BrowserResult<()> {
    let (server, browser) = open_an_hour_later("/people?tab=tokens").await?;
    let driver = &browser.driver;
    wait_for_text(driver, "You have no tokens").await;
    locate(driver, By::Css(".page > header .b.primary")).usable().click().await?;
    field(driver, "what is it for?").send_keys("nightly import").await?;
    let create = locate(driver, By::Css("dialog[open][aria-label='Create token'] .actions .b.primary")).usable();
    create.click().await?;

    // A wrong password is refused where it is asked for, and nothing is created.
    let password = field(driver, "your password");
    password.send_keys("a wrong password").await?;
    button(driver, "Confirm").click().await?;
    wait_for_text(driver, "this is not your password").await;
    assert_eq!(driver.find_all(asks()).await?.len(), 1);
    let admin = server.admin().await;
    assert!(admin.tokens().await.expect("the tokens").items.is_empty());
    password.clear().await?;
    confirm(driver).await?;

    // The form is as it was, and no longer says that a login is needed.
    assert!(!text_of(driver, "dialog[open]").await.contains("this needs a login"));
    assert_eq!(field(driver, "what is it for?").value().await?.as_deref(), Some("nightly import"));
    create.click().await?;
    wait_for_text(driver, "Token created").await;
    let secret = text_of(driver, "dialog[open] .secret code").await;
    let program = Api::new(HttpTransport::with_token(&server.base, &secret));
    assert_eq!(program.me().await.expect("the token lets it in").username.as_str(), "admin");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_logged_in_long_ago_confirms_that_it_is_they_before_a_person_gets_a_role() -> BrowserResult<()> {
    let (server, browser) = open_an_hour_later("/people").await?;
    let driver = &browser.driver;
    let roles = async || server.login("ana").await.expect("she gets in").me().await.expect("her account").roles;
    locate(driver, By::Css("button[aria-label='Edit ana']")).usable().click().await?;
    field(driver, "e-mail").send_keys("ana@desk.example").await?;
    locate(driver, By::XPath("//dialog[@open]//label[contains(., 'saves flows')]")).click().await?;
    button(driver, "Save").click().await?;
    wait_for_text(driver, "Confirm that it is you").await;
    assert_eq!(roles().await, ["reviewer"], "nothing is given yet");
    confirm(driver).await?;

    // The form is as it was, and no longer says that a login is needed.
    assert!(!text_of(driver, "dialog[open]").await.contains("this needs a login"));
    assert_eq!(field(driver, "e-mail").value().await?.as_deref(), Some("ana@desk.example"));
    button(driver, "Save").click().await?;
    wait_for_text(driver, "ana is saved.").await;
    assert!(roles().await.contains(&"developer".to_owned()));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_a_second_factor_confirms_with_it_before_that_of_somebody_else_is_removed() -> BrowserResult<()> {
    let (server, browser) = open_an_hour_later("/people").await?;
    let driver = &browser.driver;
    let admin = server.admin().await;
    let factor = admin.begin_second_factor(Some(PASSWORD.to_owned())).await.expect("it begins");
    let codes = admin.confirm_second_factor(totp::code(&factor.secret)).await.expect("it is on").recovery_codes;
    locate(driver, By::Css("button[aria-label='Edit ana']")).usable().click().await?;
    locate(driver, By::XPath("//dialog[@open]//summary[contains(., 'Second factor')]")).click().await?;
    button(driver, "Remove it…").click().await?;
    button(driver, "Remove it").click().await?;
    field(driver, "code of your second factor").send_keys(&codes[0]).await?;
    confirm(driver).await?;
    // The question is still open, and nothing says that it was refused.
    assert!(!text_of(driver, ".notices").await.contains("Not removed"));
    button(driver, "Remove it").click().await?;
    wait_for_text(driver, "ana can log in without a second factor.").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_factor_of_another_person_is_removed_once_that_is_confirmed() -> BrowserResult<()> {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.person("ana", &["reviewer"]).await;
    let browser = open(&server, "admin", "/people").await?;
    let driver = &browser.driver;
    browser.hold(Some("DELETE .*/totp")).await?;
    locate(driver, By::Css("button[aria-label='Edit ana']")).usable().click().await?;
    locate(driver, By::XPath("//dialog[@open]//summary[contains(., 'Second factor')]")).click().await?;
    button(driver, "Remove it…").click().await?;
    wait_for_text(driver, "Remove the second factor of ana?").await;
    let asked = driver.execute("return held.length", Vec::new()).await?;
    assert_eq!(asked.json(), 0);
    button(driver, "Remove it").click().await?;
    browser.release(true).await?;
    wait_for_text(driver, "ana can log in without a second factor.").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_password_is_told_how_to_log_in_again() -> BrowserResult<()> {
    let (server, browser) = open_an_hour_later("/people?tab=tokens").await?;
    let database = rusqlite::Connection::open(server.file("countersign.db")).expect("opens");
    let removed = "UPDATE users SET password_hash = NULL WHERE username = 'admin'";
    assert_eq!(database.execute(removed, []).expect("writes"), 1);
    let driver = &browser.driver;
    locate(driver, By::Css(".page > header .b.primary")).usable().click().await?;
    field(driver, "what is it for?").send_keys("nightly import").await?;
    locate(driver, By::Css("dialog[open][aria-label='Create token'] .actions .b.primary")).usable().click().await?;
    wait_for_text(driver, "countersign user link admin").await;
    button(driver, "Close").click().await?;
    assert_eq!(field(driver, "what is it for?").value().await?.as_deref(), Some("nightly import"));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_at_the_provider_long_ago_is_no_recent_login() {
    let nora = Person { authenticated_ago: Some(3600), ..Person::new("subject-1", "nora", &["staff"]) };
    let provider = IdentityProvider::start(nora).await;
    let settings = format!("[oidc]\nissuer = \"{}\"\nclient_id = \"{CLIENT}\"\n", provider.issuer)
        + "[oidc.roles]\nstaff = [\"reviewer\"]\n";
    let environment = vec![("COUNTERSIGN_OIDC_SECRET".to_owned(), SECRET.to_owned())];
    let server = Server::start(Options { settings, environment, ..Options::on(Database::Sqlite) }).await;
    let visitor = Visitor::new(&server.base);
    let create = async || {
        let token = json!({ "name": "ci", "roles": ["reviewer"] });
        visitor.send(Method::POST, "/api/v1/tokens", &token).await
    };
    assert_eq!(visitor.sign_in("").await, "/");
    let (status, refused) = create().await;
    assert_eq!((status, &refused["confirm_with"]), (403, &json!("single_sign_on")), "{refused}");
    // The provider asks her who she is only where it is told to.
    assert_eq!(visitor.sign_in("").await, "/");
    assert_eq!(create().await.0, 403);
    assert_eq!(visitor.sign_in("/people&again=true").await, "/people");
    assert_eq!(create().await.0, 201);
}
