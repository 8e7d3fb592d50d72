//! The page of people: what an admin changes there, and tokens.

use serde_json::json;
use shared::notification::Notifications;
use tests::locator::locate;
use tests::pages::{button, field, wait_for_text};
use tests::reviewing::open;
use tests::{BrowserResult, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

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
