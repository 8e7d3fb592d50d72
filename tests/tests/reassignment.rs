//! A review that nobody can decide any more is given to somebody else by an admin, in the console.

use serde_json::json;
use shared::api::UserPatch;
use tests::locator::locate;
use tests::pages::{Inbox, button, field, wait_for_text};
use tests::reviewing::{NOTE, launch, open, pending, reading, server};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_review_without_reviewers_is_given_to_a_person_who_sees_it_at_once() -> BrowserResult<()> {
    let legal = NOTE.replace("      edit_keys: [text]\n", "      reviewers: { roles: [legal] }\n");
    let server = server(&[&legal]).await;
    server.person("mia", &["reviewer", "legal"]).await;
    server.person("tom", &["reviewer"]).await;
    launch(&server, "note", json!({})).await;
    let admin = server.admin().await;
    let review = pending(&admin).await;
    let patch = UserPatch { roles: Some(vec!["reviewer".to_owned()]), ..UserPatch::default() };
    admin.update_user("mia", &patch).await.expect("she loses the role");

    let tom = open(&server, "tom", "/inbox").await?;
    wait_for_text(&tom.driver, "Nothing is waiting for you").await;
    let browser = reading(&server, "admin", &review).await?;
    let driver = &browser.driver;
    wait_for_text(driver, "Nobody may decide this, which is for legal").await;
    locate(driver, By::Css(".decide .banner.stop button")).usable().click().await?;
    locate(driver, By::XPath("//dialog[@open]//option[@value='user:tom']")).click().await?;
    let send = locate(driver, By::Css("dialog[open] .actions button")).usable();
    send.click().await?;
    wait_for_text(driver, "Say why.").await;
    let unchanged = admin.review(review.id).await.expect("the review");
    assert!(unchanged.reassignments.is_empty(), "nothing is sent without a reason: {:?}", unchanged.reassignments);
    field(driver, "reason (recorded)").send_keys("Mia works elsewhere now.").await?;
    send.click().await?;
    eventually("the dialog is closed", async || {
        driver.find_all(By::Css("dialog[open]")).await.ok()?.is_empty().then_some(())
    })
    .await;
    eventually("the problem is gone", async || {
        driver.find_all(By::Css(".decide .banner.stop")).await.ok()?.is_empty().then_some(())
    })
    .await;

    Inbox(&tom.driver).open_card(&review.title).await?;
    wait_for_text(&tom.driver, "admin reassigned this from the role legal to tom: Mia works elsewhere now.").await;
    button(&tom.driver, "Send it").await?;
    tokio::join!(browser.quit(), tom.quit());
    Ok(())
}
