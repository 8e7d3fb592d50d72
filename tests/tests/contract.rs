//! Parts of the API's contract that span several requests: pages of lists, flow files at the start, tokens that expire
//! while in use.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use shared::api::{Launch, NewToken};
use shared::error::{Code, Problem};
use shared::protocol::{ServerMessage, Topic};
use shared::time::Timestamp;
use tests::reviewing::launch_of;
use tests::{Api, Database, HttpTransport, Options, Server, Socket, flows};

/// Sends a GET request, and returns the status and the JSON body.
async fn get(api: &Api, path: &str) -> (u16, Value) {
    let response = api.transport.raw(Method::GET, path).send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.json().await.expect("JSON"))
}

fn launch(text: &str) -> Launch {
    launch_of("question", json!({ "text": text }))
}

fn token(name: &str, expires_at: Option<Timestamp>) -> NewToken {
    NewToken { name: name.to_owned(), roles: vec!["reviewer".to_owned()], expires_at }
}

async fn pages(database: Database) {
    let server = Server::start(Options::on(database)).await;
    let admin = server.admin().await;
    server.save(&flows::question("question", "{ roles: [editor] }")).await;
    server.save(&flows::question("other", "{ roles: [editor] }")).await;
    for index in 0..5 {
        admin.launch(&launch(&index.to_string()), None).await.expect("launched");
        admin.create_token(&token(&index.to_string(), None)).await.expect("a token");
    }
    server.person("edith", &["editor"]).await;
    let lists = ["runs", "reviews", "flows", "users", "tokens", "audit"].map(|list| format!("/api/v1/{list}"));
    let mut cursors = Vec::new();
    for list in &lists {
        let (_, first) = get(&admin, &format!("{list}?limit=1")).await;
        let cursor = first["next_cursor"].as_str().expect("there are more").to_owned();
        let (_, two) = get(&admin, &format!("{list}?limit=2")).await;
        let (_, second) = get(&admin, &format!("{list}?limit=1&cursor={cursor}")).await;
        let ids = |page: &Value, at: usize| {
            let row = &page["items"][at];
            ["id", "cursor", "username"].map(|key| row[key].clone())
        };
        assert_eq!([ids(&first, 0), ids(&second, 0)], [ids(&two, 0), ids(&two, 1)], "{list}");
        cursors.push(cursor);
    }
    for (index, list) in lists.iter().enumerate() {
        for other in (0..lists.len()).filter(|other| *other != index) {
            let (status, problem) = get(&admin, &format!("{list}?cursor={}", cursors[other])).await;
            assert_eq!((status, &problem["errors"][0]["path"]), (422, &json!("/cursor")), "{list}: {}", lists[other]);
        }
        for garbage in ["garbage", "AAAA", "%F0%9F%92%A5", &cursors[index][1..]] {
            let (status, problem) = get(&admin, &format!("{list}?cursor={garbage}")).await;
            assert_eq!((status, &problem["code"]), (422, &json!("invalid")), "{list}: {garbage}");
        }
    }
    // The last row of a page is deleted before the next page is requested.
    let (_, all) = get(&admin, "/api/v1/tokens").await;
    let (_, first) = get(&admin, "/api/v1/tokens?limit=2").await;
    let last = first["items"][1]["id"].as_str().expect("an id").to_owned();
    let gone = admin.transport.raw(Method::DELETE, &format!("/api/v1/tokens/{last}")).send().await.expect("an answer");
    assert_eq!(gone.status(), 204);
    let next = first["next_cursor"].as_str().expect("there are more");
    let (_, second) = get(&admin, &format!("/api/v1/tokens?limit=200&cursor={next}")).await;
    assert_eq!(second["items"].as_array().map(Vec::as_slice), Some(&all["items"].as_array().expect("a list")[2..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_goes_on_where_the_last_ended_and_no_cursor_leads_astray_on_sqlite() {
    pages(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_goes_on_where_the_last_ended_and_no_cursor_leads_astray_on_postgres() {
    pages(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_does_not_undo_what_was_saved_since_the_folder_was_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = "id: greet\ntitle: First\nnodes:\n  a: { set: { x: 1 } }\n";
    let write = |text: &str| std::fs::write(folder.path().join("greet.yaml"), text).expect("written");
    write(file);
    let options = Options { flows: Some(folder.path().to_owned()), ..Options::on(Database::Sqlite) };
    let mut server = Server::start(options).await;
    let version = async |server: &Server| {
        let flow = get(&server.admin().await, "/api/v1/flows/greet").await.1;
        (flow["version"].as_u64().expect("a number"), flow["title"].as_str().expect("a title").to_owned())
    };
    assert_eq!(version(&server).await, (1, "First".to_owned()));
    server.save(&file.replace("First", "Edited in the console")).await;
    server.restart().await;
    assert_eq!(version(&server).await, (2, "Edited in the console".to_owned()));
    // A changed file becomes a new version at the next start.
    write(&file.replace("First", "Second"));
    server.restart().await;
    assert_eq!(version(&server).await, (3, "Second".to_owned()));
    server.restart().await;
    assert_eq!(version(&server).await, (3, "Second".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_runs_out_takes_its_socket_along() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let rita = server.person("rita", &["reviewer"]).await;
    let mut first = Socket::open(&server.base, &rita, &[]).await.expect("let in");
    let ServerMessage::Welcome { server_time, .. } = first.next().await else { panic!("not a welcome") };
    let soon = server_time.after(Duration::from_secs(6));
    let secret = rita.create_token(&token("short", Some(soon))).await.expect("a token").secret.expect("its secret");
    let api = Api::new(HttpTransport::with_token(&server.base, &secret));
    let mut socket = Socket::open(&server.base, &api, &[]).await.expect("let in");
    socket.welcome().await;
    socket.subscribe(None, &[Topic::Reviews]).await;
    assert!(matches!(socket.next().await, ServerMessage::Snapshot { .. }));
    // Neither new entries nor messages of the client cause the close.
    assert_eq!(socket.closed().await, Some(4401));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_saved_under_another_id_is_told_so_in_its_place_beside_its_other_mistakes() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let source = "title: T\nid: one\nnodes:\n  a: { set: { x: 1 }, next: nowhere }\n";
    let request = server.admin().await.transport.raw(Method::PUT, "/api/v1/flows/other");
    let response = request.header("content-type", "application/yaml").body(source).send().await.expect("an answer");
    let problem: Problem = response.json().await.expect("a problem");
    assert_eq!(problem.code, Code::FlowInvalid);
    let places: Vec<_> = problem.errors.iter().map(|one| (one.path.as_str(), one.line, one.column)).collect();
    assert_eq!(places, [("/id", Some(2), Some(5)), ("/nodes/a/next", Some(4), Some(29))]);
}
