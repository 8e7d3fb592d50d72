//! What reading costs after years of use: every kind of read on the real server, in turn on a log of ten million
//! entries (`--entries`) and on one of a hundredth of that size. Each row is the median, with that of the smaller log
//! as its limit; the 99th percentile follows. Targets: at most three times the smaller log's, 50 ms, and 250 ms.

mod copies;
mod data;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::Connection;
use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, below, cycles, median, percentile};

/// The number of reads of each kind in a round.
const READS: usize = 20;
/// The targets for a read: `MEDIAN` and `P99` in milliseconds, and `RATIO` to the median of the smaller log.
const MEDIAN: f64 = 50.0;
const P99: f64 = 250.0;
const RATIO: f64 = 3.0;
/// The target for a start of the server, in milliseconds.
const START: f64 = 1000.0;
/// Medians below this, in milliseconds, need not meet the ratio: such differences are noise.
const NOISE: f64 = 1.0;

/// The kinds of reads: name, reader, and path. `MIDDLE` stands for a time in the middle of the log.
const KINDS: [(&str, Reader, &str); 29] = [
    ("audit_first", Reader::Admin, "/api/v1/audit"),
    ("audit_rare_kind", Reader::Admin, "/api/v1/audit?kind=user.created"),
    ("audit_common_kind", Reader::Admin, "/api/v1/audit?kind=run.completed"),
    ("audit_unknown_actor", Reader::Admin, "/api/v1/audit?actor=nobody"),
    ("audit_kind_and_actor", Reader::Admin, "/api/v1/audit?kind=run.started&actor=rita"),
    ("audit_act", Reader::Admin, "/api/v1/audit?act=delegation,withdrawal"),
    ("audit_middle", Reader::Admin, "/api/v1/audit?to=MIDDLE"),
    ("audit_middle_kind", Reader::Admin, "/api/v1/audit?to=MIDDLE&kind=review.resolved"),
    ("audit_rare_word", Reader::Admin, "/api/v1/audit?q=zebra"),
    ("audit_common_word", Reader::Admin, "/api/v1/audit?q=refund"),
    ("audit_unknown_word", Reader::Admin, "/api/v1/audit?q=unheard"),
    ("export_first_byte", Reader::Export, "/api/v1/audit/export?format=jsonl"),
    ("export_rare_first_byte", Reader::Export, "/api/v1/audit/export?format=jsonl&kind=user.created"),
    ("runs_first", Reader::Admin, "/api/v1/runs"),
    ("runs_failed", Reader::Admin, "/api/v1/runs?status=failed"),
    ("runs_of_a_flow", Reader::Admin, "/api/v1/runs?flow=ask"),
    ("runs_of_a_reviewer", Reader::Reviewer, "/api/v1/runs"),
    ("runs_of_a_person", Reader::Admin, "/api/v1/runs?requested_by=rita"),
    ("runs_rare_word", Reader::Admin, "/api/v1/runs?q=zebra"),
    ("runs_common_word", Reader::Admin, "/api/v1/runs?q=ask"),
    // The reviewer decided nothing, and the admin everything.
    ("reviews_decided", Reader::Reviewer, "/api/v1/reviews?decided_by=me"),
    ("reviews_all_decided", Reader::Admin, "/api/v1/reviews?decided_by=admin"),
    ("reviews_decided_other_kind", Reader::Admin, "/api/v1/reviews?decided_by=admin&kind=tool_calls"),
    ("reviews_decided_rare_word", Reader::Admin, "/api/v1/reviews?decided_by=admin&q=zebra"),
    ("reviews_first", Reader::Reviewer, "/api/v1/reviews"),
    ("reviews_rare_word", Reader::Reviewer, "/api/v1/reviews?order=urgency&q=zebra"),
    ("reviews_common_word", Reader::Reviewer, "/api/v1/reviews?order=urgency&q=refund"),
    ("history_rare_word", Reader::Reviewer, "/api/v1/reviews?status=resolved&q=zebra"),
    ("metrics", Reader::Admin, "/metrics"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Admin,
    Reviewer,
    /// An admin, who only reads up to the first byte of the body.
    Export,
}

/// A server on a filled database, with connections of its two readers.
struct House {
    data: Data,
    server: Server,
    admin: Connection,
    reviewer: Connection,
    /// The header that authenticates the reviewer.
    cookie: String,
    middle: String,
}

/// Measures each kind of read, a launch and a start in milliseconds, and the creation of the large log in seconds.
pub async fn reads(options: &Options, name: &str, postgres: Option<&str>) -> Result<Vec<Row>> {
    let mut small = House::build(options, options.entries / 100, postgres).await?;
    let started = Instant::now();
    let mut large = House::build(options, options.entries, postgres).await?;
    let mut rows = vec![below(&format!("years_{name}_data"), started.elapsed().as_secs_f64(), "s", 1800.0)];
    for (kind, reader, path) in KINDS {
        let mut took = [Vec::new(), Vec::new()];
        // The server may have closed connections that were idle for long.
        small.connect().await?;
        large.connect().await?;
        // The first read of each kind loads pages into memory, and is not counted.
        for round in 0..=options.rounds * READS {
            for (house, took) in [&mut small, &mut large].into_iter().zip(&mut took) {
                let started = Instant::now();
                house.read(reader, path).await?;
                if round > 0 {
                    took.push(started.elapsed().as_secs_f64() * 1000.0);
                }
            }
        }
        rows.extend(beside(&format!("years_{name}_{kind}"), took, (MEDIAN, P99)));
    }
    small.connect().await?;
    large.connect().await?;
    for (kind, what) in [("launch", true), ("start", false)] {
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..options.rounds {
            for (house, took) in [&mut small, &mut large].into_iter().zip(&mut took) {
                took.push(if what { house.launch().await? } else { house.start_again(options).await? });
            }
        }
        let targets = if what { (MEDIAN, P99) } else { (START, START) };
        rows.extend(beside(&format!("years_{name}_{kind}"), took, targets));
    }
    let databases = [small.data.database().map(str::to_owned), large.data.database().map(str::to_owned)];
    drop((small, large));
    if let Some(admin) = postgres {
        cycles::forget(admin, [databases[0].as_deref(), databases[1].as_deref()]).await?;
    }
    Ok(rows)
}

fn beside(name: &str, [small, large]: [Vec<f64>; 2], (most, most_p99): (f64, f64)) -> [Row; 2] {
    let (small, middle, p99) = (median(small), median(large.clone()), percentile(large, 99));
    let met = middle < most && (middle < NOISE || middle <= small * RATIO);
    let row = below(name, middle, "ms", most).beside(small);
    [Row { met, ..row }, below(&format!("{name}_p99"), p99, "ms", most_p99)]
}

impl House {
    async fn build(options: &Options, entries: usize, postgres: Option<&str>) -> Result<Self> {
        let mut data = Data::new(postgres).await?;
        let server = Server::start(&options.binary, &mut data).await?;
        let user = json!({"username": "rita", "password": crate::server::PASSWORD, "roles": ["reviewer"]});
        server.connect().await?.post("/api/v1/users", &user).await?;
        server.connect().await?.send("PUT", "/api/v1/flows/years", "application/json", data::FLOW).await?;
        drop(server);
        let middle = data::make(&data, entries).await?;
        let server = Server::start(&options.binary, &mut data).await?;
        let mut admin = server.connect().await?;
        wait_for_index(&mut admin).await?;
        let cookie = server.log_in("rita").await?;
        let reviewer = Connection::open(&server.address, &cookie).await?;
        Ok(Self { data, server, admin, reviewer, cookie, middle })
    }

    async fn connect(&mut self) -> Result<()> {
        self.admin = self.server.connect().await?;
        self.reviewer = Connection::open(&self.server.address, &self.cookie).await?;
        Ok(())
    }

    async fn read(&mut self, reader: Reader, path: &str) -> Result<()> {
        let path = path.replace("MIDDLE", &self.middle);
        match reader {
            Reader::Admin => self.admin.get(&path).await.map(drop),
            Reader::Reviewer => self.reviewer.get(&path).await.map(drop),
            Reader::Export => self.first_byte(&path).await,
        }
    }

    /// Reads up to the first byte of the body, and closes the connection.
    async fn first_byte(&self, path: &str) -> Result<()> {
        let mut stream = TcpStream::connect(&self.server.address).await?;
        let Server { address, credential, .. } = &self.server;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{credential}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        while answer.windows(4).position(|end| end == b"\r\n\r\n").is_none_or(|end| answer.len() <= end + 4) {
            if stream.read_buf(&mut answer).await? == 0 {
                bail!("the export ended early");
            }
        }
        if !answer.starts_with(b"HTTP/1.1 200") {
            bail!("{path} was refused");
        }
        Ok(())
    }

    async fn launch(&mut self) -> Result<f64> {
        let started = Instant::now();
        cycles::launch(&mut self.admin).await?;
        Ok(started.elapsed().as_secs_f64() * 1000.0)
    }

    async fn start_again(&mut self, options: &Options) -> Result<f64> {
        // The old server must be gone before the new one opens the database.
        self.server.stop();
        self.server = Server::start(&options.binary, &mut self.data).await?;
        self.admin = self.server.connect().await?;
        Ok(self.server.ready_after.as_secs_f64() * 1000.0)
    }
}

/// Waits until the whole log is indexed.
async fn wait_for_index(admin: &mut Connection) -> Result<()> {
    loop {
        let ready: Value = admin.get("/readyz").await?;
        let lag = ready["log_lag_seconds"]["index"].as_f64().context("the index has no lag")?;
        if lag <= 0.0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
