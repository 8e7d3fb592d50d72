//! Failures around the server stay contained: a flow that cannot be read, connections that the network forgot, a
//! database that cannot be written, clients that hang, and servers that start at the same time.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use shared::api::{Reason, RunQuery};
use shared::error::{Code, FlowCode, Problem};
use shared::run::{Run, RunStatus};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tests::postgres::Postgres;
use tests::process::Process;
use tests::reviewing::launch_of;
use tests::wait::eventually_within;
use tests::{Api, Database, HttpTransport, Options, Proxy, Recorder, Server, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn launch(api: &Api, flow: &str) -> Result<Run, Problem> {
    let input = if flow == "asks" { json!({}) } else { json!({ "topic": "t" }) };
    api.launch(&launch_of(flow, input), None).await
}

/// Returns the status of `/readyz`, and the result of a write.
async fn condition(server: &Server, api: &Api) -> (StatusCode, Result<Run, Problem>) {
    let ready = HttpTransport::new(&server.base).raw(Method::GET, "/readyz").send().await.expect("an answer");
    (ready.status(), launch(api, "asks").await)
}

fn is_unavailable((ready, written): &(StatusCode, Result<Run, Problem>)) -> bool {
    let refused =
        written.as_ref().is_err_and(|problem| problem.code == Code::Unavailable && problem.retry_after.is_some());
    *ready == StatusCode::SERVICE_UNAVAILABLE && refused
}

fn is_well((ready, written): &(StatusCode, Result<Run, Problem>)) -> bool {
    *ready == StatusCode::OK && written.is_ok()
}

const TIMED: &str = "id: timed
nodes:
  ask:
    human:
      prompt: \"Go on with {{ topic }}?\"
      options: [{ id: approve, label: Yes }]
      timeout: 5s
      on_timeout: reject
input:
  type: object
  properties: { topic: { type: string } }
";

const QUICK: &str = "id: quick
tools:
  record: { http: { url: \"URL\" }, idempotent: true }
nodes:
  call:
    tool: record
    arguments: { topic: \"Write about {{ topic }}\" }
input:
  type: object
  properties: { topic: { type: string } }
";

const ASKS: &str = "id: asks
nodes:
  ask:
    human:
      prompt: Well?
      options: [{ id: approve, label: Yes }]
";

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_that_cannot_be_read_fails_its_runs_and_nothing_else() {
    // No call is answered, so that none is over before the server is killed.
    let recorder = Recorder::start(Duration::from_mins(10)).await;
    let mut server = Server::start(Options::on(Database::Sqlite)).await;
    let quick = QUICK.replace("URL", &recorder.url);
    server.save(&quick).await;
    server.save(TIMED).await;
    server.save(&TIMED.replace("id: timed", "id: patient").replace("timeout: 5s", "timeout: 1h")).await;
    server.save(ASKS).await;
    let admin = server.admin().await;
    // More runs than there are slots for calls, and one timer. Then their flows become unreadable.
    let mut broken = Vec::new();
    for _ in 0..20 {
        broken.push(launch(&admin, "quick").await.expect("launched").summary.id);
    }
    let cancelled = launch(&admin, "patient").await.expect("launched").summary.id;
    let timed = launch(&admin, "timed").await.expect("launched").summary.id;
    server.kill();
    let database = rusqlite::Connection::open(server.data().join("countersign.db")).expect("opens");
    for (good, bad) in [("Write about {{ topic }}", "Write about {{ topic? "), ("Go on with {{ topic }}", "Go {{ on?")]
    {
        database.execute("UPDATE flows SET definition = replace(definition, ?1, ?2)", [good, bad]).expect("written");
    }
    database.close().expect("closes");
    server.restart().await;

    let admin = server.admin().await;
    let other = launch(&admin, "asks").await.expect("other flows go on");
    assert_eq!(other.summary.status, RunStatus::WaitingForHuman);
    let cancelled = admin.cancel(cancelled, &Reason::default(), None).await.expect("it can be cancelled");
    assert_eq!(cancelled.summary.status, RunStatus::Cancelled);
    for run in broken.iter().chain([&timed]) {
        let ended = eventually("the run fails", async || {
            let run = admin.run(*run).await.expect("its page is shown");
            run.summary.status.is_over().then_some(run)
        })
        .await;
        let error = ended.summary.error.expect("why");
        // The run that waits for a person fails when its timer fires.
        assert_eq!((ended.summary.status, error.code), (RunStatus::Failed, FlowCode::FlowUnreadable), "{error}");
        assert!(!admin.report(*run).await.expect("reported").steps.is_empty());
    }
    admin.runs(&RunQuery::default()).await.expect("listed");
    admin.flows().await.expect("listed");
    admin.flow("quick", None).await.expect("shown");
    let unreadable = launch(&admin, "quick").await.expect_err("not launched");
    assert_eq!(unreadable.code, Code::Unreadable, "{unreadable}");
    server.save(&quick).await;
    launch(&admin, "quick").await.expect("the mended version runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_the_network_forgot_are_replaced_in_seconds() {
    let postgres = Postgres::start().await;
    let (scheme, rest) = postgres.url.split_once("://").expect("a URL");
    let (user, place) = rest.split_once('@').expect("a user");
    let (host, database) = place.split_once('/').expect("a database");
    let proxy = Proxy::start(host).await;
    let url = format!("{scheme}://{user}@{}/{database}", proxy.address);
    let mut server = Server::start(Options::on(Database::Sqlite).arguments(["--database", &url])).await;
    server.save(ASKS).await;
    let admin = server.admin().await;
    launch(&admin, "asks").await.expect("launched");

    proxy.forget();
    let well = async || is_well(&condition(&server, &admin).await).then_some(());
    eventually_within(Duration::from_secs(40), "it writes again over new connections", well).await;

    proxy.mute();
    let ready = async || {
        let ready = HttpTransport::new(&server.base).raw(Method::GET, "/readyz").send().await.ok()?;
        (ready.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    };
    eventually_within(Duration::from_secs(20), "it says that it is not ready", ready).await;
    proxy.unmute();
    eventually_within(Duration::from_mins(1), "it is well again", well).await;
    proxy.mute();
    server.signal("TERM");
    let status = server.ended(Duration::from_secs(40)).await;
    assert!(status.success(), "a database that does not answer keeps no server from stopping: {status}");
}

const LONG: &str = "id: long
nodes:
  ask:
    human:
      prompt: Well?
      options: [{ id: approve, label: Yes }]
input:
  type: object
  properties: { text: { type: string } }
";

/// Launches a run with a text of `bytes` bytes.
async fn launch_long(api: &Api, bytes: usize) -> Result<Run, Problem> {
    api.launch(&launch_of("long", json!({ "text": "x".repeat(bytes) })), None).await
}

/// Checks logins while the database cannot be written: the right password gets `unavailable`, since no session can be
/// stored, and a wrong one is still refused as wrong.
async fn nobody_gets_in(server: &Server) {
    let refused = server.login("admin").await.expect_err("the session cannot be kept");
    assert!(refused.code == Code::Unavailable && refused.retry_after.is_some(), "{refused:?}");
    let wrong = tests::transport::login(&server.base, "admin", "not the password").await.expect_err("it is wrong");
    assert_eq!(wrong.code, Code::Unauthenticated, "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_only_allows_reading_is_unavailable_and_not_ready() {
    let server = Server::start(Options::on(Database::Postgres)).await;
    server.save(ASKS).await;
    let admin = server.admin().await;
    let mut database = PgConnection::connect(&server.postgres().url).await.expect("let in");
    let name: String = sqlx::query_scalar("SELECT current_database()").fetch_one(&mut database).await.expect("named");
    let set = async |database: &mut PgConnection, value: &str| {
        let set = format!("ALTER DATABASE {name} SET default_transaction_read_only = {value}");
        sqlx::query(AssertSqlSafe("SET default_transaction_read_only = off".to_owned()))
            .execute(&mut *database)
            .await
            .expect("set");
        sqlx::query(AssertSqlSafe(set)).execute(&mut *database).await.expect("set");
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sqlx::query(end).execute(&mut *database).await.expect("ended");
    };
    set(&mut database, "on").await;
    let demoted = async || is_unavailable(&condition(&server, &admin).await).then_some(());
    eventually("it says so", demoted).await;
    // Connections that were ended are found by a failed read if they were in use in the last second, and else by a
    // check before they are used.
    let mut reads_in_a_row = 0;
    eventually("reading goes on", async || {
        reads_in_a_row = if admin.runs(&RunQuery::default()).await.is_ok() { reads_in_a_row + 1 } else { 0 };
        (reads_in_a_row > 60).then_some(())
    })
    .await;
    nobody_gets_in(&server).await;
    set(&mut database, "off").await;
    eventually("it is well again", async || is_well(&condition(&server, &admin).await).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_sqlite_file_that_another_program_locks_is_unavailable_and_not_ready() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(ASKS).await;
    let admin = server.admin().await;
    let database = rusqlite::Connection::open(server.data().join("countersign.db")).expect("opens");
    database.execute_batch("BEGIN IMMEDIATE").expect("locked");
    // Requests wait for the lock, and fail with 503 after a while. This client leaves before that.
    let impatient = tokio::time::timeout(Duration::from_secs(1), launch(&admin, "asks")).await;
    assert!(impatient.is_err(), "it waits");
    let locked = async || is_unavailable(&condition(&server, &admin).await).then_some(());
    eventually_within(Duration::from_mins(1), "it says so", locked).await;
    nobody_gets_in(&server).await;
    database.execute_batch("ROLLBACK").expect("released");
    eventually("it is well again", async || is_well(&condition(&server, &admin).await).then_some(())).await;
    let runs = admin.runs(&RunQuery::default()).await.expect("listed").items;
    let well = runs.len();
    assert!(well <= 2, "nothing is made later for those who were refused or had gone: {well} runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_within_its_time_whatever_clients_do_and_at_once_by_a_second_signal() {
    for (signals, limit) in [(1, Duration::from_secs(20)), (2, Duration::from_secs(3))] {
        let mut server = Server::start(Options::on(Database::Sqlite)).await;
        let address = server.base.strip_prefix("http://").expect("an address");
        let mut hanging = Vec::new();
        for half in
            ["GET /healthz HTTP/1.1\r\nHos", "POST /api/v1/session HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{"]
        {
            let mut client = TcpStream::connect(address).await.expect("let in");
            client.write_all(half.as_bytes()).await.expect("sent");
            hanging.push(client);
        }
        // Once a later request is answered, the server has accepted both.
        server.nobody().me().await.expect_err("no one is logged in");
        for n in 0..signals {
            server.signal("TERM");
            let stopping = async || (n + 1 == signals || server.log_tail().contains("stopping:")).then_some(());
            eventually("the first signal is heard", stopping).await;
        }
        let status = server.ended(limit).await;
        assert_eq!(status.success(), signals == 1, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_within_its_time_though_an_export_is_not_read() {
    let mut server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(LONG).await;
    let admin = server.admin().await;
    // More than fits into the buffers of both sides.
    for _ in 0..12 {
        launch_long(&admin, 900_000).await.expect("launched");
    }
    let (name, secret) = admin.transport.credential().expect("logged in");
    let address = server.base.strip_prefix("http://").expect("an address");
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("set");
    let mut client = socket.connect(address.parse().expect("an address")).await.expect("let in");
    let ask = format!("GET /api/v1/audit/export?format=jsonl HTTP/1.1\r\nhost: {address}\r\n{name}: {secret}\r\n\r\n");
    client.write_all(ask.as_bytes()).await.expect("sent");
    let mut head = [0; 15];
    client.read_exact(&mut head).await.expect("it has begun");
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    server.signal("TERM");
    let status = server.ended(Duration::from_secs(26)).await;
    assert!(status.success(), "{status}");
}

async fn start_together(arguments: &[String], count: usize) -> Vec<Process> {
    let folder = |n: usize| std::env::temp_dir().join(format!("countersign-together-{}-{n}", std::process::id()));
    // All servers on one database share the key.
    let keys = tempfile::tempdir().expect("a folder");
    let mut servers = Vec::new();
    for n in 0..count {
        let mut command = std::process::Command::new(tests::binary());
        let log = folder(n).join("log");
        std::fs::create_dir_all(folder(n)).expect("a folder");
        command.args(["serve", "--demo", "--listen", "127.0.0.1:0", "--data"]).arg(folder(n)).args(arguments);
        command.arg("--seal-key").arg(keys.path().join("seal.key"));
        command.stdout(std::fs::File::create(&log).expect("a log")).stderr(std::process::Stdio::null());
        servers.push(Process::spawn(command));
    }
    for (n, server) in servers.iter_mut().enumerate() {
        let log = folder(n).join("log");
        eventually("every server is up", async || {
            let ended = server.child.try_wait().expect("its state");
            assert!(ended.is_none(), "server {n} ended: {ended:?}");
            std::fs::read_to_string(&log).ok()?.contains("listening on").then_some(())
        })
        .await;
        std::fs::remove_dir_all(folder(n)).expect("removed");
    }
    servers
}

#[tokio::test(flavor = "multi_thread")]
async fn five_servers_start_at_once_on_an_empty_postgresql() {
    let postgres = Postgres::start().await;
    drop(start_together(&["--database".to_owned(), postgres.url.clone()], 5).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_start_at_once_on_an_empty_sqlite_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("one.db").display());
    drop(start_together(&["--database".to_owned(), url], 5).await);
}
