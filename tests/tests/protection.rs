//! Protection from strangers on the network, and from other users of the same machine.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tests::reviewing;
use tests::{Database, HttpTransport, Options, Server, eventually};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

#[tokio::test]
async fn half_requests_keep_nobody_out() {
    let options = Options { open_files: Some(256), ..Options::on(Database::Sqlite) };
    let server = Server::start(options).await;
    let address = server.base.strip_prefix("http://").expect("an address");
    let mut held = Vec::new();
    for number in 0..400 {
        let mut stream = TcpStream::connect(address).await.expect("accepted");
        let part: &[u8] = if number % 2 == 0 { b"GET / HTTP/1.1\r\nhost: " } else { b"" };
        // Fails if the server has already closed this connection to make room.
        let _ = stream.write_all(part).await;
        held.push(stream);
    }
    let answer = HttpTransport::new(&server.base).raw(Method::GET, "/readyz").timeout(Duration::from_secs(5));
    assert!(answer.send().await.expect("a new caller is answered").status().is_success());
    server.admin().await;
}

#[tokio::test]
async fn what_is_stored_is_read_by_its_owner_only() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    for file in ["countersign.db", "countersign.db-wal", "countersign.db-shm", "seal.key"] {
        let mode = std::fs::metadata(server.data().join(file)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test]
async fn numbers_are_for_this_machine_and_for_who_has_the_token() {
    let mut options = Options::on(Database::Sqlite);
    options.environment.push(("COUNTERSIGN_METRICS_TOKEN".to_owned(), "for the tests only".to_owned()));
    let server = Server::start(options).await;
    let scrape = || HttpTransport::new(&server.base).raw(Method::GET, "/metrics");
    eventually("rows are counted", async || {
        let local = scrape().send().await.ok()?;
        assert_eq!((local.status().as_u16(), local.headers().get_all("content-type").iter().count()), (200, 1));
        local.text().await.ok()?.contains("countersign_rows").then_some(())
    })
    .await;
    let proxied = scrape().header("x-forwarded-for", "203.0.113.7");
    assert_eq!(proxied.send().await.expect("answered").status(), 401);
    let with_token = scrape().header("x-forwarded-for", "203.0.113.7").bearer_auth("for the tests only");
    assert_eq!(with_token.send().await.expect("answered").status(), 200);
}

#[tokio::test]
async fn reviews_are_measured_by_kind_outcome_and_channel() {
    let server = reviewing::server(&[reviewing::NOTE]).await;
    let admin = server.admin().await;
    let scrape = async || {
        let answer = HttpTransport::new(&server.base).raw(Method::GET, "/metrics").send().await.expect("answered");
        answer.text().await.expect("text")
    };
    let line = |text: &str, name: &str, labels: &[&str]| {
        let found = text.lines().find(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)));
        found.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    reviewing::launch(&server, "note", json!({})).await;
    let asked = reviewing::pending(&admin).await;
    let waits = ["kind=\"approval\"", "severity=\"medium\""];
    // The server counts in the background, at most once a second.
    let shows = async |count: &str| {
        eventually(&format!("{count} pending"), async || {
            let text = scrape().await;
            (line(&text, "countersign_reviews_pending", &waits)? == count).then_some(text)
        })
        .await
    };
    shows("1").await;
    reviewing::decide(&admin, &asked, reviewing::choose("send"), json!({})).await;
    let text = shows("0").await;
    let decided = ["kind=\"approval\"", "outcome=\"accepted\"", "via=\"human\""];
    assert_eq!(line(&text, "countersign_reviews_total", &decided).as_deref(), Some("1"));
    let bucket = line(&text, "countersign_review_response_seconds_bucket", &["le=\"+Inf\""]);
    assert_eq!(bucket.as_deref(), Some("1"));
}

#[tokio::test]
async fn every_answer_makes_browsers_careful() {
    let options = Options::on(Database::Sqlite).arguments(["--origin", "https://reviews.example.org"]);
    let server = Server::start(options).await;
    for path in ["/api/v1/live", "/api/v1/me", "/api/openapi.json", "/nothing.js", "/healthz", "/"] {
        let answer = HttpTransport::new(&server.base).raw(Method::GET, path).send().await.expect("answered");
        for header in ["x-content-type-options", "content-security-policy", "strict-transport-security", "x-request-id"]
        {
            assert_eq!(answer.headers().get_all(header).iter().count(), 1, "{header} of {path}");
        }
        assert_eq!(answer.headers().get_all("content-type").iter().count(), 1, "{path}");
    }
    let rebound = HttpTransport::new(&server.base).raw(Method::GET, "/api/v1/me").header("host", "evil.example");
    assert_eq!(rebound.send().await.expect("answered").status(), 400);
}
