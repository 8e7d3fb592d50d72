//! How long a reviewer waits for the first rows of the inbox, and until the program has taken them over: the real
//! console in Chromium, on a line of 10 Mbit/s and a processor that is four times slower, with a cold and a warm browser
//! cache. Beside them, in turns: how long the same browser takes to paint a page that has nothing but a line of text,
//! and the first rows with a warm cache on the processor as it is.

use anyhow::Result;
use serde_json::json;
use tests::Browser;

use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, below, median, wait};

/// The number of pending reviews: a full page of the inbox.
const PENDING: usize = 60;
/// The throughput of a line of 10 Mbit/s, in bytes per second.
const LINE: u32 = 10_000_000 / 8;
/// The round-trip time of a request, in milliseconds.
const LATENCY: u32 = 20;
/// The factor by which the emulated processor is slower than this machine.
const SLOWDOWN: u32 = 4;
/// A script that stores in `window.firstRow` when the first row was painted, and in `window.programRow` when the first
/// one of the program was, both in milliseconds since the navigation began.
const WATCH: &str = "
    const first = (name, css) => {
        const painted = () => requestAnimationFrame(() => setTimeout(() => { window[name] ??= performance.now(); }));
        const look = () => document.querySelector(css) && (watch.disconnect(), painted());
        const watch = new MutationObserver(look);
        watch.observe(document, { childList: true, subtree: true });
    };
    first('firstRow', \"a.row[href^='/reviews/']\");
    first('programRow', \"a.row[id][href^='/reviews/']\");";

/// Measures the medians with a cold and a warm cache.
pub async fn painted(options: &Options) -> Result<Vec<Row>> {
    let mut data = Data::new(None).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    let mut connection = server.connect().await?;
    for _ in 0..PENDING {
        connection.post("/api/v1/runs", &json!({ "flow": "ask" })).await?;
    }
    let browser = Browser::start(1440, 900).await;
    let result = measured(options, &browser, &server).await;
    browser.quit().await;
    result
}

async fn measured(options: &Options, browser: &Browser, server: &Server) -> Result<Vec<Row>> {
    server.log_in_to_console(browser).await?;
    let cdp = browser.driver.cdp();
    for (method, parameters) in [
        ("Network.enable", json!({})),
        ("Page.enable", json!({})),
        ("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH })),
        (
            "Network.emulateNetworkConditions",
            json!({ "offline": false, "latency": LATENCY, "downloadThroughput": LINE, "uploadThroughput": LINE }),
        ),
    ] {
        cdp.send_raw(method, parameters).await?;
    }
    let inbox = format!("http://{}/inbox", server.address);
    let (mut cold, mut warm, mut line, mut unslowed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        cdp.send_raw("Emulation.setCPUThrottlingRate", json!({ "rate": SLOWDOWN })).await?;
        cdp.send_raw("Network.clearBrowserCache", json!({})).await?;
        cold.push(first_rows(browser, &inbox).await?);
        warm.push(first_rows(browser, &inbox).await?);
        line.push(first_line(browser).await?);
        cdp.send_raw("Emulation.setCPUThrottlingRate", json!({ "rate": 1 })).await?;
        unslowed.push(first_rows(browser, &inbox).await?.0);
    }
    let mut rows = Vec::new();
    for (cache, loads, first, program) in [("cold", cold, 1000.0, 2000.0), ("warm", warm, 300.0, 1500.0)] {
        let (shown, taken_over): (Vec<f64>, Vec<f64>) = loads.into_iter().unzip();
        let row = below(&format!("bundle_first_rows_{cache}"), median(shown), "ms", first);
        rows.push(row.beside(median(line.clone())));
        rows.push(below(&format!("bundle_program_rows_{cache}"), median(taken_over), "ms", program));
    }
    rows.push(below("bundle_first_rows_warm_unslowed", median(unslowed), "ms", 300.0));
    Ok(rows)
}

/// Opens the inbox in an empty tab, and returns when its first row was painted, and when the first row of the program
/// was, in milliseconds.
async fn first_rows(browser: &Browser, inbox: &str) -> Result<(f64, f64)> {
    browser.driver.goto("about:blank").await?;
    browser.driver.goto(inbox).await?;
    wait(browser, "window.programRow").await?;
    Ok(browser.driver.execute("return [window.firstRow, window.programRow]", Vec::new()).await?.convert()?)
}

/// Opens a page with one line of text, which needs no server, in an empty tab, and returns when the line was painted, in
/// milliseconds.
async fn first_line(browser: &Browser) -> Result<f64> {
    browser.driver.goto("about:blank").await?;
    browser.driver.goto("data:text/html,<!doctype html><a class=row href=/reviews/>A line</a>").await?;
    wait(browser, "window.firstRow").await?;
    Ok(browser.driver.execute("return window.firstRow", Vec::new()).await?.convert()?)
}
