//! JSON that is typed in a field and cannot be read: it stays as typed, beside the other fields, and nothing is sent.

use serde_json::json;
use shared::api::UserPatch;
use tests::locator::{Locator, locate};
use tests::pages::{Inbox, button, field, send_now, stored, wait_for_text};
use tests::reviewing::{ReviewSetup, choose, decide, wait_for_review};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

/// A flow that asks Ana and Tom whether to send an offer, with a title and terms, which both may edit.
const OFFER: &str = "
id: offer
input: { type: object, properties: { offer: { default: { title: Lamp, terms: [1, { days: 14 }] } } } }
nodes:
  ask:
    human:
      prompt: Send this?
      review_keys: [{ key: offer, label: Offer }]
      edit_keys: [offer]
      policy: { groups: { editor: 1, legal: 1 } }
      options: [{ id: send, label: Send it }, { id: stop, kind: stop, label: Stop }]
";

/// Replaces the text of a field.
async fn retype(field: Locator<'_>, text: &str) -> WebDriverResult<()> {
    field.send_keys(Key::Control + "a").await?;
    field.send_keys(text).await
}

/// Waits until a field holds this text, apart from spaces and line breaks.
async fn holds(driver: &WebDriver, name: &str, expected: &str) {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    eventually(&format!("`{name}` holds {expected}"), async || {
        let value = field(driver, name).await.ok()?.value().await.ok()??;
        (bare(&value) == bare(expected)).then_some(())
    })
    .await;
}

async fn wait_until_kept(driver: &WebDriver, text: &str) {
    let kept = "return Object.values(localStorage).some(draft => draft.includes(arguments[0]))";
    eventually(&format!("{text} is kept"), async || {
        driver.execute(kept, vec![json!(text)]).await.ok()?.convert::<bool>().ok()?.then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_in_a_field_is_there_again_beside_the_other_fields() -> BrowserResult<()> {
    let ReviewSetup { server, ana, tom, review, browser } = ReviewSetup::open(&[OFFER], "offer").await?;
    let driver = &browser.driver;
    button(driver, "Edit").click().await?;
    field(driver, "title").send_keys(" for Monday").await?;
    retype(field(driver, "terms"), "[14, ").await?;
    wait_until_kept(driver, "[14, ").await;
    driver.refresh().await?;
    holds(driver, "title", "Lamp for Monday").await;
    holds(driver, "terms", "[14, ").await;
    wait_for_text(driver, "Not valid JSON").await;
    Inbox(driver).press("Send it, with your edit").await?;
    wait_for_text(driver, "Nothing was sent. terms: Not valid JSON").await;

    // Another tab shows it, too, and may mend it.
    let first = driver.window().await?;
    driver.switch_to_window(driver.new_tab().await?).await?;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    holds(driver, "terms", "[14, ").await;
    retype(field(driver, "terms"), "[14, {}]").await?;
    driver.switch_to_window(first).await?;
    holds(driver, "terms", "[14, {}]").await;

    // On a newer revision it is there, too, and can be mended and sent.
    retype(field(driver, "terms"), "[15, ").await?;
    wait_until_kept(driver, "[15, ").await;
    let other = json!({ "offer": { "title": "Lamp, by Tom", "terms": [1, { "days": 14 }] } });
    decide(&tom, &review, choose("send"), other).await;
    wait_for_text(driver, "This has changed since revision 1, which you were reading.").await;
    driver.refresh().await?;
    wait_for_review(driver, &review).await;
    button(driver, "I have seen it").click().await?;
    button(driver, "Edit").click().await?;
    holds(driver, "terms", "[15, ").await;
    let decided = ana.review(review.id).await.expect("the review").decisions;
    assert!(decided.iter().all(|decision| decision.by.as_str() != "ana"), "nothing of it was sent: {decided:?}");
    retype(field(driver, "terms"), "[15, {}]").await?;
    Inbox(driver).press("Send it, with your edit").await?;
    send_now(driver).await;
    let sent = eventually("it is sent", async || {
        let decisions = ana.review(review.id).await.ok()?.decisions;
        decisions.into_iter().find(|decision| decision.by.as_str() == "ana")
    });
    let edits = json!(sent.await.edits);
    assert_eq!(edits, json!({ "offer": { "title": "Lamp for Monday", "terms": [15, {}] } }));
    eventually("no draft is left", async || (stored(driver, "draft.ana/review/").await.ok()? == 0).then_some(())).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_that_starts_a_run_keeps_json_that_cannot_be_read() -> BrowserResult<()> {
    let ReviewSetup { server, browser, .. } = ReviewSetup::open(&[OFFER], "offer").await?;
    let driver = &browser.driver;
    let roles = ["reviewer", "legal", "developer"].map(ToOwned::to_owned).to_vec();
    let patch = UserPatch { roles: Some(roles), ..UserPatch::default() };
    server.admin().await.update_user("ana", &patch).await.expect("she may start runs");
    driver.goto(format!("{}/flows/offer", server.base)).await?;
    field(driver, "title").send_keys(" for Monday").await?;
    retype(field(driver, "terms"), "[14, ").await?;
    wait_until_kept(driver, "[14, ").await;
    driver.refresh().await?;
    holds(driver, "title", "Lamp for Monday").await;
    holds(driver, "terms", "[14, ").await;
    let start = locate(driver, By::Css(".launch-form .primary"));
    assert_eq!(start.attr("aria-disabled").await?.as_deref(), Some("true"), "the terms of before are not sent");

    button(driver, "Clear the form").click().await?;
    holds(driver, "terms", "[1, {\"days\": 14}]").await;
    eventually("the draft is gone", async || (stored(driver, "draft.ana/form/").await.ok()? == 0).then_some(())).await;

    // The same holds for the JSON of the whole form.
    button(driver, "JSON").click().await?;
    retype(field(driver, "The value as JSON"), "{ \"offer\": ").await?;
    wait_until_kept(driver, "offer\\\": ").await;
    driver.refresh().await?;
    holds(driver, "The value as JSON", "{ \"offer\": ").await;
    browser.quit().await;
    Ok(())
}
