//! Warnings and vetoes of guardrails on calls and edits: on the page before the decision, and in the record afterwards.

use serde_json::json;
use shared::decision::{ActionDecision, Verdict};
use shared::review::Review;
use tests::BrowserResult;
use tests::locator::locate;
use tests::pages::{button, field, wait_for_text};
use tests::reviewing::{NOTE, ReviewSetup, choose, decide, edit_text, launch, pending, text_of};
use thirtyfour::prelude::*;

const SHELL: &str = "
id: shell
tools:
  shell:
    description: Runs a command
    builtin: demo_publish
    parameters: { type: object, properties: { title: { type: string }, text: { type: string } } }
gates: { before_tool: { shell: true } }
nodes:
  tidy: { tool: shell, arguments: { title: Tidy up, text: COMMAND } }
";

fn approve(review: &Review) -> Verdict {
    let decisions = review.actions.iter().map(|action| (action.id.clone(), ActionDecision::APPROVE)).collect();
    Verdict::Actions { decisions, instructions: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_would_be_blocked_says_so_before_and_after_it_is_decided() -> BrowserResult<()> {
    let ReviewSetup { server: _server, tom, review, browser: ana, .. } =
        ReviewSetup::open(&[&SHELL.replace("COMMAND", "rm -rf /")], "shell").await?;
    wait_for_text(&ana.driver, "code-safety would block this: it deletes everything").await;
    let code = text_of(&ana.driver, "section.action .guardrails code").await;
    assert_eq!(code, "rm -rf", "what stands between backticks is code");
    // The card and the bar agree.
    let card = text_of(&ana.driver, "section.action").await;
    assert!(card.contains("would be blocked") && !card.contains("runs"), "{card}");
    let bar = text_of(&ana.driver, ".acts").await;
    assert!(bar.contains("Nothing would run: a guardrail would block it."), "{bar}");
    decide(&tom, &review, approve(&review), json!({})).await;
    wait_for_text(&ana.driver, "code-safety blocked this: it deletes everything").await;
    let card = text_of(&ana.driver, "section.action").await;
    assert!(card.contains("blocked, did not run") && !card.contains("would b"), "{card}");
    assert!(!card.contains("will be sent"), "nothing was: {card}");
    wait_for_text(&ana.driver, "Blocked by code-safety, though").await;
    let bar = locate(&ana.driver, By::Css(".decide .banner.stop")).text().await?;
    assert!(bar.contains("tom approved") && bar.contains("(rm -rf)"), "{bar}");
    ana.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_arguments_and_edits_are_checked_when_their_field_loses_the_focus() -> BrowserResult<()> {
    let note = format!(
        "{NOTE}guardrails: [pii-redaction, {{ name: names, pattern: falcon, message: Leave the name out. }}]\n"
    );
    let ReviewSetup { server, tom, review, browser: ana, .. } =
        ReviewSetup::open(&[&SHELL.replace("COMMAND", "ls"), &note], "shell").await?;
    button(&ana.driver, "Edit arguments").click().await?;
    let text = field(&ana.driver, "text");
    text.send_keys(Key::Control + "a").await?;
    text.send_keys("rm -rf /").await?;
    let card = text_of(&ana.driver, "section.action").await;
    assert!(card.contains("not checked yet") && !card.contains("runs"), "nothing is known of it yet: {card}");
    text.send_keys(Key::Tab).await?;
    wait_for_text(&ana.driver, "code-safety would block this: it deletes everything").await;
    let card = text_of(&ana.driver, "section.action").await;
    assert!(card.contains("would be blocked") && !card.contains("runs"), "{card}");
    let text = field(&ana.driver, "text");
    text.send_keys(Key::Control + "a").await?;
    text.send_keys("rm -rf ./build").await?;
    text.send_keys(Key::Tab).await?;
    wait_for_text(&ana.driver, "runs with your arguments").await;
    let card = text_of(&ana.driver, "section.action").await;
    assert!(!card.contains("block"), "it passes: {card}");
    decide(&tom, &review, approve(&review), json!({})).await;

    launch(&server, "note", json!({})).await;
    let review = pending(&tom).await;
    ana.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(&ana.driver, "The original.").await;
    edit_text(&ana.driver, " About a falcon.").await?;
    field(&ana.driver, "Edit Text").send_keys(Key::Tab).await?;
    wait_for_text(&ana.driver, "names would block this: Leave the name out.").await;
    // The refusal is shown at the field, which is opened for changes.
    button(&ana.driver, "Read").click().await?;
    button(&ana.driver, "Send it, with your edit").click().await?;
    wait_for_text(&ana.driver, "names: Leave the name out.").await;
    let field = field(&ana.driver, "Edit Text");
    assert_eq!(field.attr("aria-invalid").await?.as_deref(), Some("true"));
    let focused = ana.driver.active_element().await?;
    assert_eq!(focused.attr("aria-label").await?.as_deref(), Some("Edit Text"));
    field.send_keys(Key::Control + "a").await?;
    field.send_keys("Card 4111 1111 1111 1111.").await?;
    field.send_keys(Key::Tab).await?;
    wait_for_text(&ana.driver, "pii-redaction would redact this: it holds a card number").await;
    decide(&tom, &review, choose("send"), json!({})).await;
    ana.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_says_nothing_of_what_was_typed_since() -> BrowserResult<()> {
    let note = format!("{NOTE}guardrails: [{{ name: names, pattern: falcon, message: Leave the name out. }}]\n");
    let ReviewSetup { server: _server, browser, .. } = ReviewSetup::open(&[&note], "note").await?;
    let driver = &browser.driver;
    browser.hold(Some("POST .*/check")).await?;
    edit_text(driver, " About a bird.").await?;
    field(driver, "Edit Text").send_keys(Key::Tab).await?;
    browser.held().await;
    browser.hold(None).await?;
    field(driver, "Edit Text").send_keys(Key::Control + Key::End).await?;
    field(driver, "Edit Text").send_keys(" About a falcon.").await?;
    field(driver, "Edit Text").send_keys(Key::Tab).await?;
    wait_for_text(driver, "names would block this: Leave the name out.").await;
    browser.release(true).await?;
    let drawn = "const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => done(true)), 200)";
    driver.execute_async(drawn, Vec::new()).await?;
    wait_for_text(driver, "names would block this: Leave the name out.").await;
    browser.quit().await;
    Ok(())
}
