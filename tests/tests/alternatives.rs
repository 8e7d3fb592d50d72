//! Alternatives that a flow offers, at a call and at a human node: they are chosen in the console, and reach the run.

use serde_json::{Value, json};
use shared::decision::{ActionDecision, Verdict};
use tests::BrowserResult;
use tests::pages::{button, send_now, wait_for_text};
use tests::reviewing::{ReviewSetup, pending, text_of};

const FLOW: &str = "
id: refund
tools:
  refund:
    description: Pays money back
    builtin: demo_publish
    parameters: { type: object, properties: { title: { type: string }, text: { type: string } } }
gates:
  before_tool:
    refund:
      severity: high
      alternatives: [Do nothing., { id: voucher, description: Send a voucher, tradeoffs: it is only good here }]
nodes:
  pay: { tool: refund, arguments: { title: Refund, text: 40 EUR }, write_keys: [paid], next: look }
  look:
    human:
      prompt: Is the customer told?
      options: [{ id: told, label: They are told }, { id: stop, kind: stop, label: Stop }]
      alternatives: [{ id: call, description: Call them first }]
    next: note
  note: { set: { how: \"{{ decisions.look.alternative }}\" } }
";

#[tokio::test(flavor = "multi_thread")]
async fn an_alternative_is_chosen_in_place_of_a_call_and_as_an_option() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[FLOW], "refund").await?;
    let run = review.run_id.expect("a run");
    let driver = &browser.driver;
    wait_for_text(driver, "Send a voucher (it is only good here)").await;
    button(driver, "Choose this instead").click().await?;
    let card = text_of(driver, "section.action").await;
    assert!(card.contains("an alternative is chosen"), "{card}");
    let bar = text_of(driver, ".acts").await;
    assert!(bar.contains("Nothing runs; your answer is used as the result."), "{bar}");
    button(driver, "Choose “Send a voucher”").click().await?;
    send_now(driver).await;
    wait_for_text(driver, "chose “Send a voucher” in place of refund").await;
    let over = ana.review(review.id).await.expect("the review");
    let decision = over.resolution.and_then(|resolution| resolution.decision).expect("a decision");
    let chosen = ActionDecision::Choose { alternative: "voucher".to_owned(), message: None };
    let Verdict::Actions { decisions, .. } = decision.verdict else { panic!("{:?}", decision.verdict) };
    assert_eq!(decisions.into_values().collect::<Vec<_>>(), [chosen]);

    let review = pending(&ana).await;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    button(driver, "Call them first").click().await?;
    send_now(driver).await;
    driver.goto(format!("{}/runs/{run}", server.base)).await?;
    wait_for_text(driver, "Completed").await;
    let run = server.admin().await.run(run).await.expect("the run");
    let output = Value::Object(run.output.expect("its output"));
    assert_eq!((&output["paid"]["decision"]["alternative"], &output["how"]), (&json!("voucher"), &json!("call")));
    browser.quit().await;
    Ok(())
}
