//! Options with fields: their form must be filled in before the decision, and mistakes are shown at their fields.

use serde_json::{Value, json};
use shared::JsonMap;
use shared::decision::Verdict;
use shared::review::{Review, ReviewStatus};
use tests::locator::locate;
use tests::pages::{button, field, send_now, stored, wait_for_text, wait_for_title, wait_until_drawn};
use tests::reviewing::{NOTE, ReviewSetup, press_key, text_of};
use tests::{BrowserResult, Server, eventually};
use thirtyfour::prelude::*;

/// Replaces the options of a stored review.
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
async fn an_option_with_fields_is_sent_once_they_are_given() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
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

    // The option's key only opens the form. Sending it incomplete sends nothing.
    press_key(driver, "2").await?;
    field(driver, "instructions").await?;
    button(driver, "Delegate it").click().await?;
    wait_for_text(driver, "Check the fields marked above. Nothing was sent.").await;
    assert_eq!(text_of(driver, ".option-form").await.matches("This is required.").count(), 2);
    browser.screen(390, 844).await;
    driver.execute("document.querySelector('.decide').scrollIntoView()", Vec::new()).await?;
    browser.is_readable("option-form", &[(390, 844, false), (1024, 768, false)]).await;
    browser.screen(1440, 900).await;

    // Mistakes that only the server finds are shown at the field too, and a reload keeps the draft.
    locate(driver, By::XPath("//label[contains(@class, 'radio')][contains(., 'editor')]")).click().await?;
    field(driver, "instructions").send_keys("Shorter.").await?;
    button(driver, "Delegate it").click().await?;
    send_now(driver).await;
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
    let instructions = field(driver, "instructions");
    assert_eq!(instructions.value().await?.as_deref(), Some("Shorter."));

    instructions.send_keys(" By half.").await?;
    instructions.send_keys(Key::Control + Key::Enter).await?;
    send_now(driver).await;
    wait_for_text(driver, "Sent with the decision").await;
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

/// A script that acts as if another tab of this browser had changed the draft of another review.
const ANOTHER_DRAFT: &str = "
    const key = 'countersign.draft.ana/review/00000000-0000-7000-8000-000000000001';
    dispatchEvent(new StorageEvent('storage', { key, newValue: JSON.stringify({ text: 'Of another one.' }) }));
    return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))));";

#[tokio::test(flavor = "multi_thread")]
async fn a_form_shows_what_it_would_send_whatever_another_tab_does() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let fields = json!({ "type": "object", "properties": {
        "reason": { "type": "string", "title": "Reason", "default": "Not now." },
        "days": { "type": "integer", "title": "Days", "default": 3 },
    } });
    offer(&server, &review, &json!([{ "id": "later", "kind": "accept", "label": "Later", "fields": fields }]));
    let driver = &browser.driver;
    driver.refresh().await?;
    button(driver, "Later…").click().await?;
    let holds = async || -> BrowserResult<[Option<String>; 2]> {
        Ok([field(driver, "reason").await?.value().await?, field(driver, "days").await?.value().await?])
    };
    let now = |reason: &str, days: &str| [Some(reason.to_owned()), Some(days.to_owned())];
    assert_eq!(holds().await?, now("Not now.", "3"));
    driver.execute(ANOTHER_DRAFT, Vec::new()).await?;
    assert_eq!(holds().await?, now("Not now.", "3"), "the defaults are shown, as they would be sent");
    field(driver, "days").send_keys(".").await?;
    driver.execute(ANOTHER_DRAFT, Vec::new()).await?;
    assert_eq!(holds().await?, now("Not now.", "3."), "what is half typed stays");

    for name in ["reason", "days"] {
        field(driver, name).send_keys(Key::Control + "a").await?;
        field(driver, name).send_keys(Key::Backspace).await?;
    }
    let is_kept = async || (stored(driver, "draft.ana/review/").await.ok()? > 0).then_some(());
    eventually("the draft is kept", is_kept).await;
    driver.refresh().await?;
    eventually("it is still empty", async || (holds().await.ok()? == now("", "")).then_some(())).await;
    button(driver, "Later").click().await?;
    send_now(driver).await;
    wait_for_text(driver, "Decided.").await;
    let over = ana.review(review.id).await.expect("it is there");
    let decision = over.resolution.and_then(|resolution| resolution.decision).expect("a decision");
    let given: Value = serde_json::to_value(&decision.verdict).expect("JSON");
    assert!(given.get("fields").is_none_or(|fields| *fields == json!({})), "{given}");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_cannot_be_read_stays_as_typed_and_no_part_of_it_is_sent() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let fields = json!({ "type": "object", "required": ["reason"], "properties": {
        "amount": { "type": "number", "title": "Amount" }, "reason": { "type": "string", "title": "Reason" },
    } });
    offer(&server, &review, &json!([{ "id": "pay", "kind": "accept", "label": "Pay it", "fields": fields }]));
    let driver = &browser.driver;
    browser.with_axe().await;
    driver.refresh().await?;
    button(driver, "Pay it…").click().await?;

    // As JSON, there are no fields that a mistake could be shown at.
    button(driver, "JSON").click().await?;
    button(driver, "Pay it").click().await?;
    wait_for_text(driver, "/reason: This is required.").await;
    let screens = [(390, 844, false), (390, 844, true), (1024, 768, true), (1440, 900, false)];
    browser.is_readable("json-mistakes", &screens).await;
    browser.screen(1440, 900).await;
    button(driver, "Form").click().await?;

    field(driver, "amount").send_keys("12,50").await?;
    field(driver, "reason").send_keys("As agreed.").await?;
    let kept = "return Object.values(localStorage).some(draft => draft.includes('As agreed.'))";
    eventually("the other field is kept meanwhile", async || {
        driver.execute(kept, Vec::new()).await.ok()?.convert::<bool>().ok()?.then_some(())
    })
    .await;
    driver.refresh().await?;
    let amount = field(driver, "amount");
    assert_eq!(amount.value().await?.as_deref(), Some("12,50"));
    wait_for_text(driver, "A number, such as 12.5").await;
    button(driver, "Pay it").click().await?;
    wait_for_text(driver, "Nothing was sent. Amount: A number, such as 12.5").await;
    browser.is_readable("number-unparsed", &screens).await;
    browser.screen(1440, 900).await;

    amount.send_keys(Key::Control + "a").await?;
    amount.send_keys("12.5").await?;
    button(driver, "Pay it").click().await?;
    send_now(driver).await;
    wait_for_text(driver, "Decided.").await;
    let over = ana.review(review.id).await.expect("it is there");
    let decision = over.resolution.and_then(|resolution| resolution.decision).expect("a decision");
    let Value::Object(given) = json!({ "amount": 12.5, "reason": "As agreed." }) else { unreachable!() };
    assert_eq!(decision.verdict, Verdict::Choose { option: "pay".to_owned(), fields: given });
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_may_be_left_out_is_sent_only_once_it_is_begun() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let answer = json!({ "type": "object", "required": ["approved", "reason"], "properties": {
        "approved": { "type": "boolean", "title": "Approved" }, "reason": { "type": "string", "title": "Reason" },
    } });
    let fields = json!({
        "$defs": { "answer": answer }, "type": "object",
        "properties": { "instructions": { "type": "string" }, "answer": { "$ref": "#/$defs/answer" } },
    });
    offer(&server, &review, &json!([{ "id": "take", "kind": "accept", "label": "Take over", "fields": fields }]));
    let driver = &browser.driver;
    driver.refresh().await?;
    button(driver, "Take over…").click().await?;
    field(driver, "instructions").send_keys("I call them.").await?;
    let choice = |label: &str| {
        let radio = format!("//label[contains(@class, 'radio')][normalize-space()='{label}']");
        locate(driver, By::XPath(radio)).usable()
    };
    let chosen = "return [...document.querySelectorAll('.option-form .radio')] \
        .filter(radio => radio.querySelector('input').checked).map(radio => radio.textContent.trim())";
    let is_chosen = async |label: &str| {
        let shown = driver.execute(chosen, Vec::new()).await.expect("it is shown");
        assert_eq!(shown.json(), &json!([label]));
    };
    is_chosen("Not set").await;
    // Who has begun the answer must complete it, or take it back.
    choice("No").click().await?;
    button(driver, "Take over").click().await?;
    wait_for_text(driver, "Check the fields marked above. Nothing was sent.").await;
    assert_eq!(text_of(driver, ".option-form").await.matches("This is required.").count(), 1);
    choice("Not set").click().await?;
    is_chosen("Not set").await;
    button(driver, "Take over").click().await?;
    send_now(driver).await;
    wait_for_text(driver, "Decided.").await;
    let over = ana.review(review.id).await.expect("it is there");
    let decision = over.resolution.and_then(|resolution| resolution.decision).expect("a decision");
    let Value::Object(given) = json!({ "instructions": "I call them." }) else { unreachable!() };
    assert_eq!(decision.verdict, Verdict::Choose { option: "take".to_owned(), fields: given });
    browser.quit().await;
    Ok(())
}

/// A script that returns whether the focused field, and all of the form around it, is in view.
const IN_VIEW: &str = "
    const field = document.activeElement;
    const form = field.closest('.decide, .edit, dialog');
    const seen = (part) => {
        const { top, bottom } = part.getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight;
    };
    return field.matches('input, select, textarea') && form !== null && seen(field) && seen(form);";

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_a_form_that_opens_comes_into_view_with_the_focus_in_its_first_field() -> BrowserResult<()> {
    let long = NOTE.replace("The original.", &"One more line of the original.\\n\\n".repeat(40));
    let long = long.replace("default: ", "default: \"").replace(" } } }", "\" } } }");
    let ReviewSetup { server, review, browser, .. } = ReviewSetup::open(&[&long], "note").await?;
    let fields = json!({ "type": "object", "properties": {
        "reason": { "type": "string", "title": "Reason" },
        "until": { "type": "string", "title": "Until when" },
    } });
    offer(
        &server,
        &review,
        &json!([
            { "id": "send", "kind": "accept", "label": "Send it" },
            { "id": "shorter", "kind": "correct", "label": "Shorter" },
            { "id": "later", "kind": "stop", "label": "Later", "fields": fields },
        ]),
    );
    let driver = &browser.driver;
    browser.screen(390, 844).await;
    let reduced = json!({ "features": [{ "name": "prefers-reduced-motion", "value": "reduce" }] });
    driver.cdp().send_raw("Emulation.setEmulatedMedia", reduced).await?;
    driver.refresh().await?;
    wait_for_text(driver, "Later…").await;
    let comes_into_view = async |what: &str| {
        eventually(&format!("{what} is in view"), async || {
            driver.execute(IN_VIEW, Vec::new()).await.ok()?.convert::<bool>().ok()?.then_some(())
        })
        .await;
        driver.active_element().await
    };

    // With reduced motion, the page jumps there at once.
    let count = "window.moves = 0; document.querySelector('.read').addEventListener('scroll', () => window.moves++)";
    driver.execute(count, Vec::new()).await?;
    button(driver, "Later…").click().await?;
    let first = comes_into_view("the form of the option").await?;
    assert_eq!(first.id().await?, field(driver, "reason").await?.id().await?);
    wait_until_drawn(driver).await?;
    assert_eq!(driver.execute("return window.moves", Vec::new()).await?.convert::<u32>()?, 1);
    button(driver, "Back to the options").click().await?;

    // Otherwise it scrolls there smoothly.
    driver.cdp().send_raw("Emulation.setEmulatedMedia", json!({ "features": [] })).await?;
    driver.execute("document.querySelector('.read > .body').scrollTop = 200", Vec::new()).await?;
    button(driver, "Later…").click().await?;
    comes_into_view("the form of the option").await?;
    button(driver, "Back to the options").click().await?;

    // A note that must be filled in, and a dialog.
    button(driver, "Shorter").click().await?;
    let note = comes_into_view("the note").await?;
    assert_eq!(note.attr("aria-invalid").await?.as_deref(), Some("true"));
    button(driver, "Delegate").click().await?;
    let who = comes_into_view("the dialog").await?;
    assert_eq!(who.attr("aria-label").await?.as_deref(), Some("Who decides instead"));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_escape_closes_a_form_or_a_menu_and_not_the_review_below() -> BrowserResult<()> {
    let ReviewSetup { server, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let fields = json!({ "type": "object", "properties": { "reason": { "type": "string", "title": "Reason" } } });
    offer(&server, &review, &json!([{ "id": "later", "kind": "stop", "label": "Later", "fields": fields }]));
    let driver = &browser.driver;
    browser.screen(390, 844).await;
    driver.refresh().await?;
    button(driver, "Later…").click().await?;
    field(driver, "reason").send_keys(Key::Escape).await?;
    button(driver, "Later…").await?;
    locate(driver, By::Css(".who")).click().await?;
    button(driver, "Log out").send_keys(Key::Escape).await?;
    eventually("the menu is closed", async || {
        driver.find_all(By::Css("#account")).await.ok()?.is_empty().then_some(())
    })
    .await;
    assert_eq!(driver.current_url().await?.path(), format!("/reviews/{}", review.id));
    // With nothing else open, it leads back to the list.
    press_key(driver, Key::Escape).await?;
    wait_for_title(driver, "(1) Inbox · Countersign").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn json_that_cannot_be_read_stays_as_typed_and_the_value_before_it_is_not_sent() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let fields = json!({ "type": "object", "properties": { "reason": { "type": "string", "title": "Reason" } } });
    offer(&server, &review, &json!([{ "id": "pay", "kind": "accept", "label": "Pay it", "fields": fields }]));
    let driver = &browser.driver;
    driver.refresh().await?;
    button(driver, "Pay it…").click().await?;
    button(driver, "JSON").click().await?;
    let text = || locate(driver, By::Css(".option-form textarea"));
    text().send_keys(Key::Control + "a").await?;
    text().send_keys("{ \"reason\": \"As agreed").await?;
    let kept = "return Object.values(localStorage).some(draft => draft.includes('As agreed'))";
    eventually("the text is kept", async || {
        driver.execute(kept, Vec::new()).await.ok()?.convert::<bool>().ok()?.then_some(())
    })
    .await;
    driver.refresh().await?;
    eventually("the text is there again", async || {
        (text().value().await.ok()?.as_deref() == Some("{ \"reason\": \"As agreed")).then_some(())
    })
    .await;
    wait_for_text(driver, "Not valid JSON").await;
    button(driver, "Pay it").click().await?;
    wait_for_text(driver, "Nothing was sent.").await;
    assert!(ana.review(review.id).await.expect("it is there").is_pending());
    browser.quit().await;
    Ok(())
}
