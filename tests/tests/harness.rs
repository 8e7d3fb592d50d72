//! The harness itself: what a test starts ends with it.

use sqlx::{Connection, PgConnection};
use tests::postgres::Postgres;
use tests::{Browser, Port, eventually};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Counts the processes whose command line contains `text`.
fn processes(text: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("Linux").flatten();
    all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(text))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_fresh_and_ends_with_its_test() {
    let postgres = Postgres::start().await;
    let mut connection = PgConnection::connect(&postgres.url).await.expect("let in");
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        .fetch_one(&mut connection)
        .await
        .expect("an answer");
    assert_eq!(tables, 0);
    drop(postgres);
    if std::env::var_os("COUNTERSIGN_TEST_POSTGRES").is_none() {
        assert!(sqlx::query("SELECT 1").execute(&mut connection).await.is_err(), "the cluster is gone");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_stays_with_its_test_while_its_server_is_restarted() {
    let port = Port::reserve();
    for _ in 0..2 {
        let server = TcpListener::bind(port.address()).await.expect("the server listens");
        TcpStream::connect(port.address()).await.expect("it connects");
        drop(server);
        TcpStream::connect(port.address()).await.expect_err("nobody listens");
        let other = TcpSocket::new_v4().expect("a socket");
        let taken = other.bind(port.address()).expect_err("the port is taken");
        assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_ends_with_its_test() {
    let browser = Browser::start(1024, 768).await;
    browser.driver.goto("data:text/html,<title>Here</title>").await.expect("a page");
    assert_eq!(browser.driver.title().await.expect("a title"), "Here");
    let profile = browser.profile().display().to_string();
    assert!(processes(&profile) > 0);
    browser.quit().await;
    // A process that was ended is listed until its parent has waited for it.
    eventually("every process ends", async || (processes(&profile) == 0).then_some(())).await;
}
