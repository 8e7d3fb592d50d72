//! What is shown while something else is loading is not taken for the answer.

use serde_json::{Value, json};
use tests::locator::locate;
use tests::pages::{button, button_starting, wait_for_text};
use tests::reviewing::{Desk, NOTE};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

async fn value(driver: &WebDriver, script: &str) -> Value {
    driver.execute(script, Vec::new()).await.map(|value| value.json().clone()).expect("the page answers")
}

/// Waits until a script returns this value.
async fn becomes(driver: &WebDriver, script: &str, expected: Value) {
    eventually(&format!("`{script}` is {expected}"), async || (value(driver, script).await == expected).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_said_of_a_filter_before_it_is_answered() -> BrowserResult<()> {
    let Desk { server, browser, .. } = Desk::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    driver.goto(format!("{}/inbox?severity=critical", server.base)).await?;
    wait_for_text(driver, "No matches").await;
    wait_for_text(driver, "0 of 1 pending").await;
    browser.hold(Some("GET /api/v1/reviews")).await?;
    button(driver, "Show all").click().await?;
    browser.held().await;
    let list = "const list = document.querySelector('.list'); \
                return [list.ariaBusy, !!list.querySelector('[aria-label=Loading]'), list.innerText.includes('Nothing')]";
    becomes(driver, list, json!(["true", true, false])).await;
    browser.release(true).await?;
    becomes(driver, "return document.querySelectorAll('.rows .row').length", json!(1)).await;

    // Counts of the filter before do not stand in for those that could not be loaded.
    becomes(driver, "return document.querySelectorAll('.chip .count').length", json!(4)).await;
    browser.hold(Some("GET /api/v1/reviews/facets")).await?;
    button_starting(driver, "Critical").click().await?;
    wait_for_text(driver, "No matches").await;
    assert!(!value(driver, "return document.querySelector('h1').innerText").await.to_string().contains(" of "));
    browser.release(false).await?;
    becomes(driver, "return document.querySelectorAll('.chip .count').length", json!(0)).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_the_range_before_are_marked_and_can_be_refreshed() -> BrowserResult<()> {
    let Desk { server, browser, .. } = Desk::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    driver.goto(format!("{}/insights", server.base)).await?;
    button(driver, "7 days").await?;
    let busy = "return document.querySelector('.insights > .in').ariaBusy";
    becomes(driver, busy, json!("false")).await;
    browser.hold(Some("GET /api/v1/statistics")).await?;
    for css in [".insights .chip[aria-pressed=false]", ".insights [aria-label=Refresh]"] {
        locate(driver, By::Css(css)).click().await?;
        becomes(driver, busy, json!("true")).await;
        // The plots, and the table.
        for _ in 0..2 {
            browser.release(true).await?;
        }
        becomes(driver, busy, json!("false")).await;
    }
    browser.quit().await;
    Ok(())
}
