//! What is shown while something else is loading is not taken for the answer.

use serde_json::{Value, json};
use shared::invisible_characters::is_invisible;
use tests::locator::locate;
use tests::pages::{button, button_starting, wait_for_text};
use tests::reviewing::{self, NOTE, ReviewSetup};
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
    let ReviewSetup { server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
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
    let counted =
        "return [...document.querySelectorAll('.chip .count')].filter((count) => count.innerText.trim()).length";
    becomes(driver, counted, json!(4)).await;
    browser.hold(Some("GET /api/v1/reviews/facets")).await?;
    button_starting(driver, "Critical").click().await?;
    wait_for_text(driver, "No matches").await;
    assert!(!value(driver, "return document.querySelector('h1').innerText").await.to_string().contains(" of "));
    browser.release(false).await?;
    becomes(driver, counted, json!(0)).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_the_range_before_are_marked_and_can_be_refreshed() -> BrowserResult<()> {
    let ReviewSetup { server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
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

/// A flow whose reviews have the topic of the run as their title, and its severity.
const TOPIC: &str = "
id: topic
title: A topic
input: { type: object, properties: { topic: { type: string }, severity: { type: string } } }
nodes:
  ask:
    human: { prompt: '{{ input.topic }}', severity: '{{ input.severity }}', options: [{ id: done, label: Done }] }
";

/// Agents write titles, so the page shows them as text that hides nothing, as the program does.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_rows_can_be_read_and_opened_before_the_program_is_there() -> BrowserResult<()> {
    let server = reviewing::server(&[TOPIC]).await;
    let topics = [
        ("The first", "critical"),
        ("<b>Bold</b> \u{202e}and\u{3164}reversed", "high"),
        ("The third", "medium"),
        ("The last", "low"),
    ];
    for (topic, severity) in topics {
        reviewing::launch(&server, "topic", json!({ "topic": topic, "severity": severity })).await;
    }
    let browser = reviewing::open(&server, "admin", "/inbox").await?;
    let driver = &browser.driver;
    let rows = "return [...document.querySelectorAll('a.row')].map((row) => {
        const { x, y, width, height } = row.getBoundingClientRect();
        const text = (css) => row.querySelector(css).innerText;
        const colour = getComputedStyle(row.querySelector('i')).backgroundColor;
        const title = row.querySelector('b').getBoundingClientRect().y;
        const severity = text('.m').match(/^(critical|high|low)/)?.[0];
        return [row.pathname, text('b'), text('.cut'), severity, colour, title, x, y, width, height];
    })";
    for width in [1440, 1024, 390] {
        driver.set_window_rect(0, 0, width, 900).await?;
        browser.hold(Some("GET /program/frontend_bg.wasm")).await?;
        driver.refresh().await?;
        becomes(driver, "return document.querySelectorAll('#boot a.row').length", json!(4)).await;
        let mut early = value(driver, rows).await;
        assert_eq!(early[1][1], "<b>Bold</b> \u{fffd}and\u{fffd}reversed");
        browser.release(true).await?;
        becomes(driver, "return document.querySelectorAll('a.row[id]').length", json!(4)).await;
        assert_eq!(value(driver, "return document.getElementById('boot')").await, Value::Null);
        let program = value(driver, rows).await;
        // The program says which character is hidden.
        early[1][1] = program[1][1].clone();
        assert_eq!(early, program, "they stay where they are");
    }
    let hidden = "
        const characters = Array.from({ length: 0x110000 }, (_, number) => String.fromCodePoint(number));
        return characters.flatMap((character, number) => (character.replace(hidden, '') === '' ? [number] : []))";
    let invisible: Vec<u32> = ('\0'..=char::MAX).filter(|c| is_invisible(*c)).map(u32::from).collect();
    assert_eq!(value(driver, hidden).await, json!(invisible), "the page hides nothing, as the program does");
    // Without an answer to who is logged in, the program goes on alone.
    browser.hold(Some("GET /api/v1/me")).await?;
    driver.refresh().await?;
    browser.held().await;
    becomes(driver, "return document.getElementById('boot')", Value::Null).await;
    browser.release(true).await?;
    becomes(driver, "return document.querySelectorAll('a.row[id]').length", json!(4)).await;
    // Somebody with a default view stays in it.
    browser.hold(Some("GET /program/frontend_bg.wasm")).await?;
    let view = "localStorage.setItem('countersign.first-query', 'severity=critical&order=urgency&limit=20')";
    driver.execute(view, Vec::new()).await?;
    driver.refresh().await?;
    let link = "return document.querySelector('#boot a.row')?.search";
    becomes(driver, link, json!("?severity=critical")).await;
    locate(driver, By::Css("#boot a.row")).click().await?;
    becomes(driver, "return location.pathname.startsWith('/reviews/')", json!(true)).await;
    browser.release(true).await?;
    eventually("the review is open", async || {
        driver.find(By::Css("article.read .head h1")).await.ok()?.text().await.ok()?.contains("The first").then_some(())
    })
    .await;
    browser.quit().await;
    Ok(())
}
