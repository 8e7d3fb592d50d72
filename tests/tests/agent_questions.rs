//! The escalation of an agent that is stuck, and a program's question with several answers, answered through forms in
//! the console.

use serde_json::{Value, json};
use shared::api::ReviewQuery;
use shared::decision::Verdict;
use shared::review::{Review, ReviewKind, ReviewStatus};
use tests::caller::caller;
use tests::locator::locate;
use tests::pages::{button, field, send_now, wait_for_text};
use tests::reviewing::{ReviewSetup, press_key, reading, server, text_of};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_paused_resumed_and_told_how_to_go_on() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review: checkpoint, browser, .. } = ReviewSetup::open(&[], "helpdesk").await?;
    let run = checkpoint.run_id.expect("a run");
    let driver = &browser.driver;
    wait_for_text(driver, "Agent clerk continues as planned.").await;
    button(driver, "Pause").click().await?;
    send_now(driver).await;
    wait_for_text(driver, "Paused by you since").await;
    let page = text_of(driver, "article.read").await;
    assert!(!page.contains("This changed while you were reading"), "she changed it herself: {page}");
    button(driver, "Resume").click().await?;
    send_now(driver).await;

    let stuck = eventually("it cannot go on", async || {
        let query = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
        let reviews: Vec<Review> = ana.reviews(&query).await.ok()?.items;
        reviews.into_iter().find(|review| review.kind == ReviewKind::Escalation)
    })
    .await;
    driver.goto(format!("{}/reviews/{}", server.base, stuck.id)).await?;
    wait_for_text(driver, "conflicting instructions").await;
    button(driver, "Let it continue…").click().await?;
    // The form can be sent from the note too, but only once it is complete.
    let note = driver.query(By::Css(".say textarea")).first().await?;
    note.send_keys("Be kind.").await?;
    note.send_keys(Key::Control + Key::Enter).await?;
    wait_for_text(driver, "This is required.").await;
    field(driver, "guidance").send_keys("Fetch the second chair.").await?;
    locate(driver, By::Css(".say textarea")).send_keys(Key::Control + Key::Enter).await?;
    send_now(driver).await;
    driver.goto(format!("{}/runs/{run}", server.base)).await?;
    wait_for_text(driver, "Completed").await;
    let over = ana.review(stuck.id).await.expect("the review");
    let decision = over.resolution.and_then(|resolution| resolution.decision).expect("a decision");
    let Value::Object(fields) = json!({ "guidance": "Fetch the second chair." }) else { unreachable!() };
    assert_eq!(decision.verdict, Verdict::Choose { option: "agent_continue".to_owned(), fields });
    assert_eq!(decision.comment.as_deref(), Some("Be kind."));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn several_answers_are_ticked_and_no_key_answers_before_that() -> BrowserResult<()> {
    let server = server(&[]).await;
    let program = caller(&server, "program", &["developer"]).await;
    server.person("ana", &["reviewer"]).await;
    let sizes = ["s", "m", "l"].map(|id| json!({ "id": id, "label": format!("Size {id}") }));
    let question = json!({ "kind": "clarification", "question": "Which sizes?", "options": sizes, "multiple": true });
    let asked = program.ask(&question).await;
    let review: Review = serde_json::from_value(asked.clone()).expect("a review");
    let browser = reading(&server, "ana", &review).await?;
    let driver = &browser.driver;
    wait_for_text(driver, "Answer…").await;
    press_key(driver, "a").await?;
    assert!(driver.find_all(By::Css(".option-form")).await?.is_empty(), "no answer goes before the others");
    press_key(driver, "1").await?;
    button(driver, "Answer").click().await?;
    wait_for_text(driver, "This is required.").await;
    for size in ["Size l", "Size s"] {
        locate(driver, By::XPath(format!("//label[contains(., '{size}')]"))).click().await?;
    }
    button(driver, "Answer").click().await?;
    send_now(driver).await;
    wait_for_text(driver, "answered “Size s” and “Size l”").await;
    assert_eq!(program.resolution(&asked).await["answer"]["options"], json!(["s", "l"]));
    browser.quit().await;
    Ok(())
}
