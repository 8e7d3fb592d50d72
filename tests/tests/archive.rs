//! The server is killed again and again while it archives finished runs. In the end, each run is in the files once, and
//! the audit log can be verified over all of them.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use rand::RngExt;
use serde_json::{Value, json};
use shared::error::Code;
use shared::id::RunId;
use shared::run::RunStatus;
use tests::reviewing::launch_of;
use tests::wait::eventually_within;
use tests::{Api, Database, Options, Server, binary, eventually, settings};

/// The time limit for archiving a run after the last kill.
const SETTLE: Duration = Duration::from_mins(3);
const RUNS: usize = 300;

const NOTE: &str = "
id: note
input: { type: object, properties: { text: { type: string } } }
nodes:
  keep:
    set: { note: '{{ text }}' }
";

async fn launched(admin: &Api, number: usize) -> RunId {
    // Every other run has a value that is large enough to be stored apart.
    let text = format!("{number} ").repeat(if number.is_multiple_of(2) { 1 } else { 2000 });
    let run = admin.launch(&launch_of("note", json!({ "text": text })), None).await.expect("it starts").summary;
    assert_eq!(run.status, RunStatus::Completed);
    run.id
}

/// Runs a command of the server's binary on its data.
fn countersign(server: &Server, database: Database, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(arguments).arg("--data").arg(server.data());
    if database == Database::Postgres {
        command.args(["--database", &server.postgres().url]);
    }
    command.output().expect("it runs")
}

/// Counts how often each run is in the archive's files.
fn in_files(server: &Server) -> BTreeMap<String, usize> {
    let mut runs = BTreeMap::new();
    for file in std::fs::read_dir(server.data().join("archive")).expect("a folder") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|end| end != "gz") {
            continue;
        }
        let file = std::fs::File::open(&path).expect("opens");
        let text = std::io::read_to_string(MultiGzDecoder::new(file)).expect("every archive is whole");
        for line in text.lines().filter(|line| line.starts_with("{\"run\":")) {
            let line: Value = serde_json::from_str(line).expect("JSON");
            *runs.entry(line["run"].as_str().expect("an id").to_owned()).or_default() += 1;
        }
    }
    runs
}

async fn survives(database: Database) {
    let settings = "[limits]\nwrites_per_second = 0\n[retention]\nruns = \"1s\"\n".to_owned();
    let mut server = Server::start(Options { settings, ..Options::on(database) }).await;
    server.save(NOTE).await;
    let admin = server.admin().await;
    let mut runs = Vec::new();
    for number in 0..RUNS {
        runs.push(launched(&admin, number).await);
    }
    eventually("everything is sealed", async || {
        let check = admin.verify_audit().await.ok()?;
        (check.valid && check.sealed == check.entries).then_some(())
    })
    .await;
    let mut random = settings::random();
    for _ in 0..settings::kills() {
        // The server archives as soon as it has started; the random pause decides how far it gets.
        server.restart().await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..150))).await;
        server.kill();
    }
    server.restart().await;
    let admin = server.admin().await;
    for run in &runs {
        let problem = eventually_within(SETTLE, &format!("run {run} is archived"), async || {
            admin.run(*run).await.err().filter(|problem| problem.code == Code::RunArchived)
        })
        .await;
        let archived = problem.archived.expect("it says where");
        assert_eq!((archived.id, archived.flow.as_str()), (*run, "note"));
    }
    // All runs are archived now; the files must be complete.
    server.kill();
    let once: BTreeMap<String, usize> = runs.iter().map(|run| (run.to_string(), 1)).collect();
    assert_eq!(in_files(&server), once);
    let verified = countersign(&server, database, &["audit", "verify", "--archive"]);
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success(), "{said}{}", String::from_utf8_lossy(&verified.stderr));
    assert!(said.contains("are archived, and are in the files"), "{said}");
    let shown = countersign(&server, database, &["archive", "show", &runs[1].to_string()]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["run"]["state"]["note"], "1 ".repeat(2000));
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_while_archiving_lose_nothing_on_sqlite() {
    survives(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_while_archiving_lose_nothing_on_postgres() {
    survives(Database::Postgres).await;
}
