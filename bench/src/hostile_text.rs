//! How long the console takes to lay out a megabyte of text that was written to freeze it: the real console in
//! Chromium, from the click on the review's row until its text is painted.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tests::Browser;

use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, below, median, wait};

/// The hostile texts: a name, and the markup that is repeated. The first opens a link at each place, the second a
/// comment.
const SHAPES: [(&str, &str); 2] = [("links", "[]("), ("comments", "a <!--")];
/// The length of a text, in bytes.
const LENGTH: usize = 1_000_000;
/// The target for the layout, in milliseconds.
const LIMIT: f64 = 200.0;

/// A flow that puts a text under review. The run joins it from two halves, since a whole one is too large for a
/// request.
const FLOW: &str = r#"{"id": "text", "input": {"type": "object", "properties": {"half": {"type": "string"}}}, "nodes": {
    "join": {"set": {"text": "{{ half }}{{ half }}"}, "next": "ask"},
    "ask": {"human": {"prompt": "Fine?", "review_keys": [{"key": "text", "type": "markdown"}],
        "options": [{"id": "yes", "label": "Yes"}]}}}}"#;

/// A script that opens a review in the list, and stores in `took` after how many milliseconds `length` characters of
/// its text were painted.
const OPEN: &str = "
    const [id, length] = arguments;
    const began = performance.now();
    window.took = 0;
    const is_there = () => document.querySelector('article.read .main')?.textContent.length >= length;
    const watch = new MutationObserver(() => {
        if (!is_there()) return;
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => { took = performance.now() - began }));
    });
    watch.observe(document.body, { childList: true, subtree: true });
    document.getElementById(`row-${id}`).click();";

/// Measures the layout of each hostile text, in milliseconds.
pub async fn laid_out(options: &Options) -> Result<Vec<Row>> {
    let mut data = Data::new(None).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    let mut connection = server.connect().await?;
    connection.send("PUT", "/api/v1/flows/text", "application/json", FLOW).await?;
    let mut reviews = Vec::new();
    for half in [String::from("Short. "), half_of(SHAPES[0].1), half_of(SHAPES[1].1)] {
        let run = connection.post("/api/v1/runs", &json!({ "flow": "text", "input": { "half": half } })).await?;
        let path = format!("/api/v1/runs/{}/reviews", run["id"].as_str().context("no run")?);
        let asked = connection.get(&path).await?;
        reviews.push(asked["items"][0]["id"].as_str().context("no review")?.to_owned());
    }
    let browser = Browser::start(1440, 900).await;
    let rows = measured(options, &browser, &server, &reviews).await;
    browser.quit().await;
    rows
}

fn half_of(shape: &str) -> String {
    shape.repeat(LENGTH / 2 / shape.len())
}

async fn measured(options: &Options, browser: &Browser, server: &Server, reviews: &[String]) -> Result<Vec<Row>> {
    server.log_in_to_console(browser).await?;
    browser.driver.goto(format!("http://{}/inbox", server.address)).await?;
    let rows = format!("document.querySelectorAll('.rows .row').length === {}", reviews.len());
    wait(browser, &rows).await?;
    let (short, long) = reviews.split_first().context("no reviews")?;
    let mut all = Vec::new();
    for ((name, shape), review) in SHAPES.into_iter().zip(long) {
        let length = half_of(shape).len() * 2;
        let mut figures = Vec::new();
        for _ in 0..options.rounds {
            // Opening a short review first loads the part of the program that shows reviews, and closes the long one.
            open(browser, short, 1).await?;
            figures.push(open(browser, review, length).await?);
        }
        all.push(below(&format!("bundle_hostile_{name}"), median(figures), "ms", LIMIT));
    }
    Ok(all)
}

async fn open(browser: &Browser, review: &str, length: usize) -> Result<f64> {
    browser.driver.execute(OPEN, vec![json!(review), json!(length)]).await?;
    wait(browser, "took > 0").await?;
    // The rest of the page, such as the column beside the text, delays no reader; it must not count in the next figure.
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(browser.driver.execute("return took", Vec::new()).await?.convert()?)
}
