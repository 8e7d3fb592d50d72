//! The console's inbox at 100,000 pending reviews, in a real Chromium with the release bundle: how soon the first rows
//! are there, how soon a key is painted, how long the page is busy at a stretch, and whether its memory stays flat
//! while others decide.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::Browser;
use tokio::time::{interval, sleep};

use crate::client::Connection;
use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, below, cycles, median, queue};

/// How often the page is loaded.
const LOADS: usize = 5;
/// How often a held key repeats.
const REPEAT: Duration = Duration::from_millis(33);
/// How many times it does.
const REPEATS: usize = 200;
/// What is typed into the search, again and again, and how fast.
const WORDS: &str = "review 4711 people ";
const TYPING: Duration = Duration::from_millis(120);
/// So many runs are started and decided a second while others work: each is two entries that the inbox hears of.
const RUNS_PER_SECOND: u32 = 25;
/// How often the memory of the page is measured while others work; more often where they do so for a few minutes only.
const SAMPLE_EVERY: Duration = Duration::from_mins(1);
const SAMPLES: u32 = 10;
/// How long something may take that is only waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A flow whose reviews stand among the most urgent.
const SOON: &str = r#"{"id": "ask", "nodes": {"ask": {"human": {"prompt": "Go on?", "timeout": "5m",
    "options": [{"id": "yes", "label": "Yes"}]}}}}"#;

/// Runs in the page before the console does. Times are of the page's own clock.
const PROBE: &str = "
    const probe = window.probe = { open: 0, rows: 0, keys: [], long: [], measured: [], wasm: () => 0 };
    const Socket = WebSocket;
    window.WebSocket = class extends Socket {
        constructor(...all) { super(...all); this.addEventListener('open', () => { probe.open ||= performance.now() }) }
    };
    const start = WebAssembly.instantiateStreaming;
    WebAssembly.instantiateStreaming = async (...all) => {
        const started = await start.apply(WebAssembly, all);
        // The parts that are loaded later have none of their own.
        const { memory } = started.instance.exports;
        if (memory) probe.wasm = () => memory.buffer.byteLength;
        return started;
    };
    const painted = then => requestAnimationFrame(() => setTimeout(then));
    const look = () => {
        if (document.querySelector('.rows .row')) painted(() => { probe.rows = performance.now() });
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    new PerformanceObserver(list => {
        for (const { startTime, duration } of list.getEntries()) {
            // To collect garbage, which is needed to measure memory, is no task of the page.
            const of_probe = probe.measured.some(([from, to]) => startTime < to && startTime + duration > from);
            if (!of_probe) probe.long.push([startTime, duration]);
        }
    }).observe({ type: 'longtask' });
    probe.longest = () => Math.max(0, ...probe.long.map(([, duration]) => duration));
    addEventListener('keydown', event => {
        painted(() => { probe.keys.push(performance.now() - event.timeStamp) });
    }, true);
";

/// All rows of one database.
pub async fn in_a_browser(options: &Options, name: &str, postgres: Option<&str>) -> Result<Vec<Row>> {
    let mut data = Data::new(postgres).await?;
    // Makes the tables, and whoever logs in.
    drop(Server::start(&options.binary, &mut data).await?);
    let file = format!("sqlite:{}", data.path().join("countersign.db").display());
    queue::fill(data.database().unwrap_or(&file), queue::now()).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    let mut connection = server.connect().await?;
    connection.send("PUT", "/api/v1/flows/ask", "application/json", SOON).await?;
    // Otherwise the server would look again and again for who may decide these.
    let somebody = json!({ "username": "somebody", "password": "Quartz-Lemur-Bicycle-93", "roles": queue::ROLES });
    connection.send("POST", "/api/v1/users", "application/json", &somebody.to_string()).await?;
    let browser = Browser::start(1440, 900).await;
    let rows = Page { browser: &browser, server: &server }.measure(options, name).await;
    browser.quit().await;
    drop(server);
    if let Some(postgres) = postgres {
        cycles::forget(postgres, [data.database(), None]).await?;
    }
    rows
}

struct Page<'a> {
    browser: &'a Browser,
    server: &'a Server,
}

impl Page<'_> {
    async fn measure(&self, options: &Options, name: &str) -> Result<Vec<Row>> {
        let named = |figure: &str| format!("inbox_{name}_{figure}");
        self.log_in().await?;
        let mut first = Vec::new();
        for _ in 0..LOADS {
            first.push(self.load().await?);
        }
        let mut rows = vec![below(&named("first_rows"), median(first), "ms", 300.0)];

        self.reset().await?;
        self.hold().await?;
        rows.extend(self.keys(&named("j")).await?);
        // Where one stands is opened first.
        self.reset().await?;
        self.press("/", Value::Null).await?;
        self.wait("document.activeElement.matches('.search input')").await?;
        self.type_words().await?;
        rows.extend(self.keys(&named("letter")).await?);

        self.load().await?;
        self.reset().await?;
        let growth = self.storm(Duration::from_secs(options.storm)).await?;
        rows.push(below(&named("longest_task"), self.number("probe.longest()").await?, "ms", 50.0));
        rows.push(below(&named("growth"), growth, "MB/min", 1.0));
        Ok(rows)
    }

    async fn log_in(&self) -> Result<()> {
        let header = self.server.log_in("admin").await?;
        let (name, value) =
            header.strip_prefix("cookie: ").and_then(|pair| pair.split_once('=')).context("no cookie")?;
        let url = format!("http://{}", self.server.address);
        self.cdp("Page.enable", json!({})).await?;
        self.cdp("Network.enable", json!({})).await?;
        self.cdp("Network.setCookie", json!({ "name": name, "value": value, "url": url, "httpOnly": true })).await?;
        self.cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": PROBE })).await?;
        Ok(())
    }

    /// Loads the inbox: milliseconds from the open socket to the first rows.
    async fn load(&self) -> Result<f64> {
        self.browser.driver.goto(format!("http://{}/inbox", self.server.address)).await?;
        self.wait("probe.rows && probe.open").await?;
        // What was asked for first has come, and been drawn.
        self.wait("document.querySelector('.chip .count')").await?;
        Ok((self.number("probe.rows - probe.open").await?).max(0.0))
    }

    /// Presses `j` as a held key repeats, which goes down the list, and waits until a review is open.
    async fn hold(&self) -> Result<()> {
        let mut ticks = interval(REPEAT);
        for number in 0..REPEATS {
            ticks.tick().await;
            self.press("j", json!(number > 0)).await?;
        }
        self.wait("location.pathname.startsWith('/reviews/')").await
    }

    async fn type_words(&self) -> Result<()> {
        let mut ticks = interval(TYPING);
        for letter in WORDS.repeat(3).chars() {
            ticks.tick().await;
            self.press(&letter.to_string(), Value::Null).await?;
        }
        self.wait("location.search.includes('q=')").await
    }

    /// Others work, and one walks a little: how fast the memory of the page grows in the second half, in megabytes a
    /// minute. Tells of its samples as they are taken.
    async fn storm(&self, length: Duration) -> Result<f64> {
        let mut others = self.server.connect().await?;
        let begun = Instant::now();
        let mut ticks = interval(Duration::from_secs(1) / RUNS_PER_SECOND);
        let every = SAMPLE_EVERY.min(length / SAMPLES);
        let mut samples = vec![self.sample(begun).await?];
        let mut number = 0_usize;
        while begun.elapsed() < length {
            ticks.tick().await;
            ask_and_decide(&mut others).await?;
            number += 1;
            if number.is_multiple_of(10) {
                self.press(if number.is_multiple_of(40) { "k" } else { "j" }, Value::Null).await?;
            }
            if samples.last().is_some_and(|last| begun.elapsed() > last.after + every) {
                samples.push(self.sample(begun).await?);
            }
        }
        // What was resolved last is still shown for a while.
        samples.push(self.sample(begun).await?);
        let before = samples.iter().find(|sample| sample.after > length / 2).context("too short")?;
        let after = samples.last().context("no sample")?;
        Ok((after.megabytes() - before.megabytes()) / after.after.saturating_sub(before.after).as_secs_f64() * 60.0)
    }

    /// What the page holds now.
    async fn sample(&self, begun: Instant) -> Result<Sample> {
        self.run("probe.measured.push([performance.now(), Infinity])").await?;
        self.cdp("HeapProfiler.collectGarbage", json!({})).await?;
        self.cdp("Performance.enable", json!({})).await?;
        let metrics = self.cdp("Performance.getMetrics", json!({})).await?;
        self.run("probe.measured.at(-1)[1] = performance.now()").await?;
        let metrics = metrics["metrics"].as_array().context("no metrics")?;
        let metric = |name: &str| {
            let metric = metrics.iter().find(|metric| metric["name"] == name);
            metric.and_then(|metric| metric["value"].as_f64()).with_context(|| format!("no {name}"))
        };
        let sample = Sample {
            after: begun.elapsed(),
            heap: metric("JSHeapUsedSize")? / 1e6,
            wasm: self.number("probe.wasm()").await? / 1e6,
            nodes: metric("Nodes")?,
            listeners: metric("JSEventListeners")?,
        };
        let Sample { after, heap, wasm, nodes, listeners } = &sample;
        // Beside the table. A reader that has gone away is no reason to stop measuring.
        let _ = writeln!(
            std::io::stderr(),
            "after {:>4} s: {heap:.2} MB of JavaScript, {wasm:.2} MB of WebAssembly, {nodes} nodes, {listeners} listeners",
            after.as_secs()
        );
        Ok(sample)
    }

    async fn reset(&self) -> Result<()> {
        sleep(Duration::from_millis(500)).await;
        self.run("probe.long = []; probe.keys = []").await?;
        Ok(())
    }

    /// How soon keys were painted since the last reset, and how long the page was busy at a stretch.
    async fn keys(&self, name: &str) -> Result<[Row; 3]> {
        let mut keys: Vec<f64> = serde_json::from_value(self.run("return probe.keys").await?)?;
        keys.sort_by(f64::total_cmp);
        let p95 = keys.get(keys.len() * 95 / 100).copied().unwrap_or(f64::NAN);
        Ok([
            below(&format!("{name}_median"), median(keys), "ms", 50.0),
            below(&format!("{name}_p95"), p95, "ms", 50.0),
            // Only tasks of 50 ms and more are told of.
            below(&format!("{name}_longest_task"), self.number("probe.longest()").await?, "ms", 50.0),
        ])
    }

    async fn press(&self, key: &str, repeats: Value) -> Result<()> {
        let down = json!({ "type": "keyDown", "key": key, "text": key, "autoRepeat": repeats == json!(true) });
        self.cdp("Input.dispatchKeyEvent", down).await?;
        if repeats != json!(true) {
            self.cdp("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key })).await?;
        }
        Ok(())
    }

    async fn wait(&self, condition: &str) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while self.run(&format!("return !!({condition})")).await? != json!(true) {
            anyhow::ensure!(Instant::now() < end, "after {PATIENCE:?} still not: {condition}");
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn number(&self, expression: &str) -> Result<f64> {
        self.run(&format!("return {expression}")).await?.as_f64().with_context(|| format!("{expression} is no number"))
    }

    async fn run(&self, script: &str) -> Result<Value> {
        Ok(self.browser.driver.execute(script, Vec::new()).await?.json().clone())
    }

    async fn cdp(&self, method: &str, parameters: Value) -> Result<Value> {
        Ok(self.browser.driver.cdp().send_raw(method, parameters).await?)
    }
}

/// What the page holds at some time, after all garbage was collected.
struct Sample {
    after: Duration,
    /// Of JavaScript, in megabytes.
    heap: f64,
    /// Of WebAssembly, which never gives any back, in megabytes.
    wasm: f64,
    nodes: f64,
    listeners: f64,
}

impl Sample {
    fn megabytes(&self) -> f64 {
        self.heap + self.wasm
    }
}

async fn ask_and_decide(connection: &mut Connection) -> Result<()> {
    let run = cycles::launch(connection).await?;
    let path = format!("/api/v1/runs/{}/reviews", run["id"].as_str().context("no run")?);
    let reviews = connection.get(&path).await?;
    cycles::decide(connection, &reviews["items"][0]).await?;
    Ok(())
}
