//! An option that takes more than a press: its form is filled in first, and what is wrong is said at its field.

use serde_json::{Value, json};
use shared::JsonMap;
use shared::decision::Verdict;
use shared::review::{Review, ReviewStatus};
use tests::pages::{button, field, wait_for_text};
use tests::reviewing::{Desk, NOTE, press_key, text_of};
use tests::{Server, eventually};
use thirtyfour::prelude::*;

/// Has the stored review offer these options.
fn offer(server: &Server, review: &Review, options: &Value) {
    let database = rusqlite::Connection::open(server.data().join("countersign.db")).expect("opens");
    database.busy_timeout(std::time::Duration::from_secs(10)).expect("waits");
    let mut body = serde_json::to_value(review).expect("JSON");
    body["options"] = options.clone();
    let changed = database
        .execute("UPDATE reviews SET body = ?1 WHERE id = ?2", (body.to_string(), review.id.0.as_bytes().as_slice()))
        .expect("writes");
    assert_eq!(changed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_option_with_fields_is_sent_once_they_are_given() -> WebDriverResult<()> {
    let Desk { server, ana, review, browser, .. } = Desk::open(&[NOTE], "note").await?;
    let fields = json!({
        "type": "object", "required": ["agent", "instructions"],
        "properties": {
            "agent": { "enum": ["writer", "editor"], "title": "Agent" },
            "instructions": { "type": "string", "title": "Instructions", "pattern": "half", "format": "long-text" },
        },
    });
    let delegate = json!({ "id": "delegate", "kind": "accept", "label": "Delegate it", "fields": fields });
    offer(&server, &review, &json!([{ "id": "send", "kind": "accept", "label": "Send it" }, delegate]));
    let driver = &browser.driver;
    browser.with_axe().await;
    driver.refresh().await?;
    wait_for_text(driver, "Delegate it…").await;

    // A key opens the form, and so does it again: nothing is on its way.
    press_key(driver, "2").await?;
    field(driver, "instructions").await?;
    button(driver, "Delegate it").await?.click().await?;
    wait_for_text(driver, "Check the fields marked above. Nothing was sent.").await;
    assert_eq!(text_of(driver, ".option-form").await.matches("This is required.").count(), 2);
    browser.screen(390, 844).await;
    driver.execute("document.querySelector('.option-form').scrollIntoView()", Vec::new()).await?;
    browser.is_readable("option-form", &[(390, 844, false), (1024, 768, false)]).await;
    browser.screen(1440, 900).await;

    // What only the server knows is said at the field, and what was typed is there, also in another tab.
    driver.find(By::XPath("//label[contains(@class, 'radio')][contains(., 'editor')]")).await?.click().await?;
    field(driver, "instructions").await?.send_keys("Shorter.").await?;
    button(driver, "Delegate it").await?.click().await?;
    button(driver, "Send now").await?.click().await?;
    eventually("it is said at its field", async || {
        let said = driver.find(By::XPath("//div[contains(@class, 'bad')][contains(., 'Instructions')]")).await.ok()?;
        said.text().await.ok()?.contains("must match").then_some(())
    })
    .await;
    let kept = "return Object.values(localStorage).some(draft => draft.includes('Shorter.'))";
    eventually("the draft is kept", async || {
        driver.execute(kept, Vec::new()).await.ok()?.convert::<bool>().ok()?.then_some(())
    })
    .await;
    driver.refresh().await?;
    let instructions = field(driver, "instructions").await?;
    assert_eq!(instructions.value().await?.as_deref(), Some("Shorter."));

    instructions.send_keys(" By half.").await?;
    instructions.send_keys(Key::Control + Key::Enter).await?;
    button(driver, "Send now").await?.click().await?;
    wait_for_text(driver, "What went with the decision").await;
    let over = ana.review(review.id).await.expect("it is there");
    assert_eq!(over.status, ReviewStatus::Resolved);
    let Value::Object(given) = json!({ "agent": "editor", "instructions": "Shorter. By half." }) else {
        unreachable!()
    };
    let decision = over.resolution.and_then(|resolution| resolution.decision).expect("a decision");
    assert_eq!(decision.verdict, Verdict::Choose { option: "delegate".to_owned(), fields: given });
    assert_eq!(decision.metadata, JsonMap::new());
    browser.quit().await;
    Ok(())
}
