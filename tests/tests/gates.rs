//! Gates before agents and before the output: their cards in the console, and the effects of decisions.

use serde_json::json;
use shared::decision::{ActionDecision, Verdict};
use tests::BrowserResult;
use tests::locator::locate;
use tests::pages::{button, field, send_now, wait_for_text};
use tests::reviewing::{ReviewSetup, decide, pending, text_of};
use thirtyfour::prelude::*;

const ANSWER: &str = "
id: answer
title: Answer a customer
agents: { billing: { model: demo/billing, instructions: You know the bills. } }
gates:
  before_agent: { billing: { title: 'Let {{ agent }} answer?' } }
  before_return: { consequences: [The customer reads it.] }
nodes: { reply: { agent: billing, prompt: Answer Ann. } }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_in_place_of_an_agent_and_another_changes_the_output() -> BrowserResult<()> {
    let ReviewSetup { server, tom, review, browser: ana, .. } = ReviewSetup::open(&[ANSWER], "answer").await?;
    wait_for_text(&ana.driver, "Let billing answer?").await;
    let card = text_of(&ana.driver, "section.action").await;
    for said in ["agent about to run", "Answer Ann.", "You know the bills.", "Edit prompt", "Answer in its place"] {
        assert!(card.contains(said), "{said}: {card}");
    }
    assert!(!card.contains("Also approve later calls"), "only approvals of calls can be remembered: {card}");
    let bar = text_of(&ana.driver, ".acts").await;
    assert!(bar.contains("Approve billing") && bar.contains("Reject billing"), "{bar}");

    // Tom answers in the agent's place. The gate before the output asks next.
    let respond = ActionDecision::Respond { message: "Dear Ann, it was a mistake.".to_owned() };
    let decisions = [("agent".to_owned(), respond)].into();
    decide(&tom, &review, Verdict::Actions { decisions, instructions: None }, json!({})).await;
    wait_for_text(&ana.driver, "answered, does not run").await;
    let review = pending(&tom).await;
    ana.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(&ana.driver, "about to end and return its output.").await;
    let card = text_of(&ana.driver, "section.action").await;
    assert!(card.contains("final output") && card.contains("is returned if you approve"), "{card}");
    assert!(!card.contains("Respond"), "nobody would hear it: {card}");
    button(&ana.driver, "Edit output").click().await?;
    let reply = field(&ana.driver, "reply");
    reply.send_keys(Key::Control + "a").await?;
    reply.send_keys("Dearest Ann, it was a mistake.").await?;
    reply.send_keys(Key::Tab).await?;
    wait_for_text(&ana.driver, "is returned with your output").await;
    button(&ana.driver, "Approve the output with your edit").click().await?;
    wait_for_text(&ana.driver, "approved with changed output").await;
    ana.driver.goto(format!("{}/runs/{}", server.base, review.run_id.expect("a run"))).await?;
    wait_for_text(&ana.driver, "Dearest Ann, it was a mistake.").await;
    wait_for_text(&ana.driver, "Completed").await;
    ana.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn words_beside_the_rejection_of_an_agent_are_its_reason_since_nobody_is_instructed() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[ANSWER], "answer").await?;
    let driver = &browser.driver;
    let words = "I have called Ann myself.";
    locate(driver, By::Css(".say textarea")).send_keys(words).await?;
    button(driver, "Reject billing").click().await?;
    send_now(driver).await;
    wait_for_text(driver, "rejected billing").await;
    let over = ana.review(review.id).await.expect("the review");
    let [decision] = over.decisions.as_slice() else { panic!("one decision: {:?}", over.decisions) };
    let Verdict::Actions { decisions, instructions } = &decision.verdict else { panic!("{:?}", decision.verdict) };
    assert_eq!(*instructions, None, "no agent reads any");
    let ActionDecision::Reject { message } = &decisions["agent"] else { panic!("{decisions:?}") };
    assert_eq!(message.as_deref(), Some(words));
    // The page of the run shows the reason.
    driver.goto(format!("{}/runs/{}", server.base, review.run_id.expect("a run"))).await?;
    wait_for_text(driver, words).await;
    browser.quit().await;
    Ok(())
}
