//! The page of a run follows the run through failures of the server, and what is done there counts once.

use serde_json::json;
use shared::api::ReviewQuery;
use shared::review::ReviewStatus;
use tests::pages::{button, field, wait_for_text};
use tests::reviewing::{NOTE, ReviewSetup, choose, decide, launch, pending, reading};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

/// A script that lets requests for a run fail while `fail` is set.
const FAIL: &str = "
    const fetched = window.fetch;
    window.fetch = async (request, ...more) => {
        if (window.fail && String(request.url ?? request).includes('/api/v1/runs/')) return new Response('', { status: 503 });
        return fetched(request, ...more);
    };
";

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_reloaded_is_said_to_be_old_and_reloaded_by_itself() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let run = review.run_id.expect("a run");
    driver.goto(format!("{}/runs/{run}", server.base)).await?;
    wait_for_text(driver, "The original.").await;
    driver.execute(format!("{FAIL} window.fail = true"), Vec::new()).await?;
    decide(&ana, &review, choose("send"), json!({ "text": "Edited by Ana." })).await;
    wait_for_text(driver, "This page may be out of date").await;
    button(driver, "Try again").click().await?;
    driver.execute("window.fail = false", Vec::new()).await?;
    wait_for_text(driver, "Edited by Ana.").await;
    eventually("it is up to date", async || driver.find_all(By::Css(".partly")).await.ok()?.is_empty().then_some(()))
        .await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cancelled_again_after_a_lost_answer_is_cancelled_once() -> BrowserResult<()> {
    let ReviewSetup { server, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let admin = reading(&server, "admin", &review).await?;
    let driver = &admin.driver;
    driver.goto(format!("{}/runs/{}", server.base, review.run_id.expect("a run"))).await?;
    button(driver, "Cancel the run").click().await?;
    admin.hold(Some("POST .*/cancel")).await?;
    let send = driver.query(By::Css("dialog[open] .b.stop")).and_displayed().first().await?;
    send.click().await?;
    admin.release(false).await?;
    wait_for_text(driver, "The server cannot be reached.").await;
    send.click().await?;
    admin.release(true).await?;
    wait_for_text(driver, "The run is cancelled.").await;
    tokio::join!(admin.quit(), browser.quit());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_over_is_started_again_from_a_form_with_its_input() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    decide(&ana, &review, choose("stop"), json!({})).await;
    let run = launch(&server, "note", json!({ "text": "A text for Monday." })).await;
    let second = pending(&ana).await;
    let admin = reading(&server, "admin", &second).await?;
    decide(&ana, &second, choose("stop"), json!({})).await;
    let driver = &admin.driver;
    driver.goto(format!("{}/runs/{run}", server.base)).await?;
    button(driver, "Run again").click().await?;
    eventually("its input is in the form", async || {
        let text = field(driver, "text").value().await.ok()?;
        (text.as_deref() == Some("A text for Monday.")).then_some(())
    })
    .await;
    button(driver, "Launch the run").click().await?;
    let query = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
    let third = eventually("another run asks", async || ana.reviews(&query).await.ok()?.items.pop()).await;
    assert_ne!(third.run_id, Some(run));
    assert_eq!(third.items[0].value, json!("A text for Monday."));
    tokio::join!(admin.quit(), browser.quit());
    Ok(())
}
