//! Questions that programs and agents ask by themselves, answered in the console.

use serde_json::json;
use shared::api::ReviewQuery;
use shared::review::{Review, ReviewKind, ReviewStatus};
use tests::caller::caller;
use tests::locator::locate;
use tests::pages::{button, field, wait_for_text};
use tests::reviewing::{launch, reading, server, text_of};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

const RESEARCH: &str = "
id: research
agents:
  clerk:
    model: demo/clerk
    tools: [ask, edit]
    demo:
      tool_calls:
        - - tool: ask
            arguments:
              question: Who will read it?
              context: The tone depends on it.
              options: [{ id: public, label: Everybody }, { id: experts, label: Experts }]
          - tool: edit
            arguments: { content: The moon pulls the sea., purpose: The first line, confidence: 0.4 }
      replies: [Thank you.]
tools:
  ask: { builtin: ask_human }
  edit: { builtin: request_edit }
nodes: { report: { agent: clerk, prompt: Report. } }
";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_asks_is_answered_in_the_console_and_says_who_asks() -> BrowserResult<()> {
    let server = server(&[]).await;
    let program = caller(&server, "program", &["developer"]).await;
    server.person("ana", &["reviewer"]).await;
    let question = json!({ "kind": "clarification", "question": "Which **size**?", "context": "It is for a child." });
    let asked = program.ask(&question).await;
    let review: Review = serde_json::from_value(asked.clone()).expect("a review");
    let page = reading(&server, "ana", &review).await?;
    wait_for_text(&page.driver, "It is for a child.").await;
    locate(&page.driver, By::Css(".decide textarea")).send_keys("Small.").await?;
    button(&page.driver, "Send answer").click().await?;
    wait_for_text(&page.driver, "answered").await;
    assert_eq!(program.resolution(&asked).await["answer"]["text"], "Small.");
    assert_eq!(text_of(&page.driver, ".trail").await, "asked by program");
    page.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_in_words_and_a_draft_is_changed() -> BrowserResult<()> {
    let server = server(&[RESEARCH]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    launch(&server, "research", json!({})).await;
    let pending = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
    let both = eventually("both are asked", async || {
        let all: Vec<Review> = ana.reviews(&pending).await.expect("a page").items;
        (all.len() == 2).then_some(all)
    })
    .await;
    let of = |kind: ReviewKind| both.iter().find(|review| review.kind == kind).expect("one of each").clone();
    let question = of(ReviewKind::Clarification);
    let page = reading(&server, "ana", &question).await?;
    wait_for_text(&page.driver, "The tone depends on it.").await;
    let bar = text_of(&page.driver, ".acts").await;
    assert!(bar.contains("Everybody") && bar.contains("Experts") && !bar.contains("Send back"), "{bar}");
    locate(&page.driver, By::Css(".decide textarea")).send_keys("A school class.").await?;
    button(&page.driver, "Send answer").click().await?;
    wait_for_text(&page.driver, "answered").await;

    let draft = of(ReviewKind::Edit);
    page.driver.goto(format!("{}/reviews/{}", server.base, draft.id)).await?;
    wait_for_text(&page.driver, "It is 40 % sure of it.").await;
    button(&page.driver, "Edit").click().await?;
    let text = field(&page.driver, "Edit Draft");
    text.send_keys(Key::Control + "a").await?;
    text.send_keys("The sea follows the moon.").await?;
    button(&page.driver, "Use this text, with your edit").click().await?;
    page.driver.goto(format!("{}/runs/{}", server.base, draft.run_id.expect("a run"))).await?;
    wait_for_text(&page.driver, "Completed").await;
    wait_for_text(&page.driver, "Thank you.").await;
    page.quit().await;
    Ok(())
}
