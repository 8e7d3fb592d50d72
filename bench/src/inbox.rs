//! The console's inbox at 100,000 pending reviews, in a real Chromium with the release bundle: how soon the first rows
//! appear, how soon the effect of a key is painted, how long the longest task of the page is, and whether its memory
//! stays flat while others decide.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::Browser;
use tokio::time::{interval, sleep};

use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, below, cycles, median, percentile, queue, wait};

/// The number of times that the page is loaded.
const LOADS: usize = 5;
/// The interval at which a held key repeats.
const REPEAT: Duration = Duration::from_millis(33);
/// The number of events of the held key.
const REPEATS: usize = 200;
/// The text that is typed into the search, three times; `TYPING` is the time between two letters.
const WORDS: &str = "review 4711 people ";
const TYPING: Duration = Duration::from_millis(120);
/// The runs per second that others launch and decide in the storm. Each sends two entries to the inbox.
const RUNS_PER_SECOND: u32 = 25;
/// The interval between two measurements of the page's memory in the storm. For a storm of less than ten minutes, it is
/// the length divided by `SAMPLES`.
const SAMPLE_EVERY: Duration = Duration::from_mins(1);
const SAMPLES: u32 = 10;

/// A flow whose reviews expire soon, and so are near the top of the inbox.
const SOON: &str = r#"{"id": "ask", "nodes": {"ask": {"human": {"prompt": "Go on?", "timeout": "5m",
    "options": [{"id": "yes", "label": "Yes"}]}}}}"#;

/// A script that runs in the page before the console, and collects figures in `window.probe`, by the page's own clock.
const PROBE: &str = "
    const probe = window.probe = { open: 0, rows: 0, keys: [], long: [], measured: [], wasm: () => 0 };
    const Socket = WebSocket;
    window.WebSocket = class extends Socket {
        constructor(...all) { super(...all); this.addEventListener('open', () => { probe.open ||= performance.now() }) }
    };
    const start = WebAssembly.instantiate;
    WebAssembly.instantiate = async (...all) => {
        const started = await start.apply(WebAssembly, all);
        const { memory } = started.exports;
        probe.wasm = () => memory.buffer.byteLength;
        return started;
    };
    const painted = then => requestAnimationFrame(() => setTimeout(then));
    const look = () => {
        // The rows of the program, which alone have ids: those of the page before are there earlier.
        if (document.querySelector('.rows .row[id]')) painted(() => { probe.rows = performance.now() });
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

/// Measures all figures with one kind of database; `name` becomes part of the rows' names.
pub async fn in_a_browser(options: &Options, name: &str, postgres: Option<&str>) -> Result<Vec<Row>> {
    let mut data = Data::new(postgres).await?;
    // The first start creates the tables and the admin.
    drop(Server::start(&options.binary, &mut data).await?);
    let file = format!("sqlite:{}", data.path().join("countersign.db").display());
    queue::fill(data.database().unwrap_or(&file)).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    let mut connection = server.connect().await?;
    connection.send("PUT", "/api/v1/flows/ask", "application/json", SOON).await?;
    // Without a person who has the roles, the server would look again and again for who may decide these reviews.
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
        // The pause in the reset lets the page open the selected review first.
        self.reset().await?;
        self.press("/", Value::Null).await?;
        wait(self.browser, "document.activeElement.matches('.search input')").await?;
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
        self.server.log_in_to_console(self.browser).await?;
        self.cdp("Page.enable", json!({})).await?;
        self.cdp("Network.enable", json!({})).await?;
        self.cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": PROBE })).await?;
        Ok(())
    }

    /// Loads the inbox, and returns the milliseconds from the opening of the socket to the first painted rows.
    async fn load(&self) -> Result<f64> {
        self.browser.driver.goto(format!("http://{}/inbox", self.server.address)).await?;
        wait(self.browser, "probe.rows && probe.open").await?;
        // The first responses have arrived and been drawn, counts included.
        wait(self.browser, "document.querySelector('.chip .count')?.innerText.trim()").await?;
        Ok((self.number("probe.rows - probe.open").await?).max(0.0))
    }

    /// Holds the key `j`, which moves down the list, and waits until a review is open.
    async fn hold(&self) -> Result<()> {
        let mut ticks = interval(REPEAT);
        for number in 0..REPEATS {
            ticks.tick().await;
            self.press("j", json!(number > 0)).await?;
        }
        wait(self.browser, "location.pathname.startsWith('/reviews/')").await
    }

    async fn type_words(&self) -> Result<()> {
        let mut ticks = interval(TYPING);
        for letter in WORDS.repeat(3).chars() {
            ticks.tick().await;
            self.press(&letter.to_string(), Value::Null).await?;
        }
        wait(self.browser, "location.search.includes('q=')").await
    }

    /// Launches and decides runs for `length`, as others would, and moves in the list now and then. Returns how fast
    /// the memory of the page grows in the second half, in megabytes per minute. Prints each sample.
    async fn storm(&self, length: Duration) -> Result<f64> {
        let mut others = self.server.connect().await?;
        let begun = Instant::now();
        let mut ticks = interval(Duration::from_secs(1) / RUNS_PER_SECOND);
        let every = SAMPLE_EVERY.min(length / SAMPLES);
        let mut samples = vec![self.sample(begun).await?];
        let mut number = 0_usize;
        while begun.elapsed() < length {
            ticks.tick().await;
            cycles::cycle(&mut others).await?;
            number += 1;
            if number.is_multiple_of(10) {
                self.press(if number.is_multiple_of(40) { "k" } else { "j" }, Value::Null).await?;
            }
            if samples.last().is_some_and(|last| begun.elapsed() > last.after + every) {
                samples.push(self.sample(begun).await?);
            }
        }
        // The last sample. The page still shows the reviews that were resolved last.
        samples.push(self.sample(begun).await?);
        let before = samples.iter().find(|sample| sample.after > length / 2).context("too short")?;
        let after = samples.last().context("no sample")?;
        Ok((after.megabytes() - before.megabytes()) / after.after.saturating_sub(before.after).as_secs_f64() * 60.0)
    }

    /// Collects garbage, then measures and prints what the page holds.
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
        // Standard error, apart from the table. A closed one is no reason to stop measuring.
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

    /// Measures the time from a key to the next paint since the last reset (median and 95th percentile), and the
    /// longest task.
    async fn keys(&self, name: &str) -> Result<[Row; 3]> {
        let keys: Vec<f64> = serde_json::from_value(self.run("return probe.keys").await?)?;
        Ok([
            below(&format!("{name}_median"), median(keys.clone()), "ms", 50.0),
            below(&format!("{name}_p95"), percentile(keys, 95), "ms", 50.0),
            // The browser only reports tasks of 50 ms and more.
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

/// What the page holds `after` some time of the storm, with all garbage collected.
struct Sample {
    after: Duration,
    /// The memory of JavaScript, in megabytes.
    heap: f64,
    /// The memory of WebAssembly, which never shrinks, in megabytes.
    wasm: f64,
    nodes: f64,
    listeners: f64,
}

impl Sample {
    fn megabytes(&self) -> f64 {
        self.heap + self.wasm
    }
}
