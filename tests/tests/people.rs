//! The page of people: what an admin changes there, and tokens.

use serde_json::json;
use shared::notification::Notifications;
use tests::locator::locate;
use tests::pages::{button, field, wait_for_text};
use tests::reviewing::{open, text_of};
use tests::{Api, Browser, BrowserResult, Database, HttpTransport, Options, PASSWORD, Server, eventually};
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
async fn a_member_id_is_saved_without_undoing_what_the_person_has_changed_meanwhile() -> BrowserResult<()> {
    let slack =
        [("COUNTERSIGN_SLACK_TOKEN", "xoxb-1"), ("COUNTERSIGN_SLACK_SIGNING_SECRET", "8f742231b10e8888abcd99yy")];
    let environment = slack.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let settings = "[notifications.slack]\n".to_owned();
    let server = Server::start(Options { environment, settings, ..Options::on(Database::Sqlite) }).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let browser = open(&server, "admin", "/people").await?;
    let driver = &browser.driver;
    let edit = driver.query(By::Css("button[aria-label='Edit ana']")).and_displayed().first().await?;
    edit.click().await?;
    locate(driver, By::XPath("//dialog[@open]//summary[contains(., 'Slack')]")).click().await?;
    let member = field(driver, "member id");

    let rules = json!([{ "channel": "slack", "events": ["review.requested"], "severities": ["critical"] }]);
    let now = ana.notifications(None).await.expect("her settings");
    let changed = Notifications { rules: serde_json::from_value(rules).expect("rules"), ..now };
    let changed = ana.choose_notifications(None, &changed).await.expect("she changes them");
    member.send_keys("U024BE7LH").await?;
    button(driver, "Save").click().await?;
    wait_for_text(driver, "ana is saved.").await;
    let expected = Notifications { slack_user_id: Some("U024BE7LH".to_owned()), ..changed };
    assert_eq!(ana.notifications(None).await.expect("her settings"), expected);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dialog_says_once_the_token_is_created() -> BrowserResult<()> {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let browser = open(&server, "admin", "/people?tab=tokens").await?;
    let driver = &browser.driver;
    wait_for_text(driver, "You have no tokens").await;
    let title = async || driver.find(By::Css("dialog[open] h2")).await.ok()?.text().await.ok();
    let says = async |words: &str| eventually(words, async || (title().await? == words).then_some(())).await;
    locate(driver, By::Css(".page > header .b.primary")).usable().click().await?;
    says("Create token").await;
    field(driver, "what is it for?").send_keys("nightly import").await?;
    // The secret is shown only once, so the dialog stays until it is there.
    browser.hold(Some("POST .*/tokens")).await?;
    locate(driver, By::Css("dialog[open] .actions .b.primary")).usable().click().await?;
    browser.held().await;
    for _ in 0..2 {
        driver.active_element().await?.send_keys(Key::Escape).await?;
    }
    says("Create token").await;
    browser.release(true).await?;
    says("Token created").await;
    button(driver, "Done").click().await?;
    locate(driver, By::Css(".page > header .b.primary")).usable().click().await?;
    says("Create token").await;
    browser.quit().await;
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
async fn who_logged_in_long_ago_confirms_that_it_is_they_before_a_second_factor_is_removed() -> BrowserResult<()> {
    let (_server, browser) = open_an_hour_later("/people").await?;
    let driver = &browser.driver;
    locate(driver, By::Css("button[aria-label='Edit ana']")).usable().click().await?;
    locate(driver, By::XPath("//dialog[@open]//summary[contains(., 'Second factor')]")).click().await?;
    button(driver, "Remove it…").click().await?;
    button(driver, "Remove it").click().await?;
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
