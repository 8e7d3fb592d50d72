//! Live sockets miss nothing, and clients that are slow or misbehave cost the others nothing.

use futures::StreamExt;
use futures::stream;
use rand::RngExt;
use serde_json::{Value, json};
use shared::api::UserPatch;
use shared::error::Code;
use shared::log::{Cursor, EntryKind};
use shared::protocol::{Answer, ClientMessage, ServerMessage, Topic};
use shared::review::Review;
use tests::log::{is_heard, log_after};
use tests::reviewing::{chosen, launch_of};
use tests::wait::eventually_within;
use tests::{Api, Database, Options, Server, Socket, flows, settings};
use tokio_tungstenite::tungstenite::Message;

/// Launches `count` runs that each ask somebody, 16 at a time.
async fn load(api: &Api, count: usize, text: &str) {
    let launch = launch_of("question", json!({ "text": text }));
    let launches = (0..count).map(|_| api.launch(&launch, None));
    let answers: Vec<_> = stream::iter(launches).buffer_unordered(16).collect().await;
    for answer in answers {
        answer.expect("launched");
    }
}

/// Writes entries through the first and the last server while a client of the last one reads them over sockets that it
/// closes and reopens. Checks that it receives each entry once and in order.
async fn sees_all(servers: &[Server]) {
    let (Some(server), Some(first)) = (servers.last(), servers.first()) else { panic!("a server") };
    server.save(&flows::question("question", "{ roles: [reviewer] }")).await;
    let (admin, other) = (server.admin().await, first.admin().await);
    let listener = server.person("dora", &["developer", "reviewer"]).await;
    let mut socket = Socket::open(&server.base, &listener, &[]).await.expect("let in");
    let start = socket.welcome().await;
    drop(socket);

    let goal = settings::entries();
    let writing = async { tokio::join!(load(&admin, goal.div_ceil(6), "x"), load(&other, goal.div_ceil(6), "y")) };
    let reading = async {
        let mut random = settings::random();
        let (mut seen, mut last) = (Vec::<Cursor>::new(), start.clone());
        while seen.len() < goal {
            let mut socket = Socket::open(&server.base, &listener, &[]).await.expect("let in");
            socket.welcome().await;
            socket.subscribe(Some(last.clone()), &[Topic::Reviews, Topic::Runs]).await;
            for _ in 0..random.random_range(1..=400) {
                let entry = match socket.next().await {
                    ServerMessage::Entry(entry) => entry,
                    // Too slow for the server's buffer: reconnects, as after a lost connection.
                    ServerMessage::Resync => break,
                    other => panic!("not an entry: {other:?}"),
                };
                last = entry.cursor.clone();
                seen.push(entry.cursor);
                if seen.len() >= goal {
                    break;
                }
            }
        }
        seen
    };
    let (_, seen) = tokio::join!(writing, reading);
    let expected: Vec<Cursor> = log_after(&admin, &start)
        .await
        .into_iter()
        .filter(|entry| is_heard(entry.event.kind))
        .map(|entry| entry.cursor)
        .take(goal)
        .collect();
    assert_eq!(seen.len(), expected.len());
    let first_difference = seen.iter().zip(&expected).position(|(one, other)| one != other);
    let around = first_difference.map(|at| {
        let around = at.saturating_sub(2)..(at + 3).min(seen.len());
        (at, seen[around.clone()].to_vec(), expected[around].to_vec())
    });
    assert_eq!(around, None, "every entry once and in order: what was heard, what the log has");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_and_goes_sees_every_entry_once_and_in_order_on_sqlite() {
    sees_all(&[Server::start(Options::on(Database::Sqlite)).await]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_and_goes_sees_every_entry_once_and_in_order_on_postgres() {
    sees_all(&[Server::start(Options::on(Database::Postgres)).await]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_and_goes_sees_what_was_written_on_another_server_too() {
    let one = Server::start(Options::on(Database::Postgres)).await;
    let other = one.beside().await;
    sees_all(&[one, other]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_read_costs_no_memory() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flows::question("question", "{ roles: [reviewer] }")).await;
    let admin = server.admin().await;
    let deaf = server.person("dora", &["developer", "reviewer"]).await;
    let text = "A long draft. ".repeat(800);
    // Warms up, so that memory that every request needs is not counted as growth.
    load(&admin, 50, &text).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(Socket::follow(&server.base, &deaf, &[Topic::Reviews, Topic::Runs]).await);
    }
    let before = server.memory();
    // If entries were kept for each socket, 50 sockets times 2,000 reviews of 11 KB would take 1.1 GB.
    load(&admin, 2_000, &text).await;
    let grown = server.memory().saturating_sub(before) >> 20;
    assert!(grown < 150, "the server grew by {grown} MB");
    // The server closes all of them: their owner, who may have 50 sockets, can open 50 others.
    let mut others = Vec::new();
    while others.len() < 50 {
        let other = eventually_within(tests::DEADLINE, "let in instead of one that does not read", async || {
            Socket::open(&server.base, &deaf, &[]).await.ok()
        });
        others.push(other.await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_socket_costs_little() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let mut people = Vec::new();
    for number in 0..8 {
        people.push(server.person(&format!("person{number}"), &["reviewer"]).await);
    }
    let mut sockets = Vec::new();
    for person in &people {
        sockets.push(Socket::follow(&server.base, person, &[Topic::Reviews, Topic::Runs]).await);
    }
    let before = server.memory();
    for person in &people {
        for _ in 0..49 {
            sockets.push(Socket::follow(&server.base, person, &[Topic::Reviews, Topic::Runs]).await);
        }
        let one_more = Socket::open(&server.base, person, &[]).await.err();
        assert_eq!(one_more, Some(429), "at most 50 of one person");
    }
    let each = server.memory().saturating_sub(before) / (8 * 49);
    assert!(each < 10_000, "{each} bytes each");
    drop(sockets);
    // Closed sockets no longer count.
    eventually_within(tests::DEADLINE, "let in again", async || Socket::open(&server.base, &people[0], &[]).await.ok())
        .await;
}

/// Subscribes without a cursor, and returns the number of pending reviews and those in the snapshot.
async fn snapshot(socket: &mut Socket) -> (u64, Vec<Review>) {
    socket.subscribe(None, &[Topic::Reviews]).await;
    match socket.next().await {
        ServerMessage::Snapshot { pending, reviews, .. } => (pending, reviews),
        other => panic!("not a snapshot: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_subscribes_gets_what_is_pending_and_then_what_follows() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flows::question("question", "{ roles: [editor] }")).await;
    let admin = server.admin().await;
    let edith = server.person("edith", &["reviewer", "editor"]).await;
    let rita = server.person("rita", &["reviewer"]).await;
    load(&admin, 2, "before").await;

    let mut editor = Socket::open(&server.base, &edith, &[]).await.expect("let in");
    editor.welcome().await;
    let (pending, reviews) = snapshot(&mut editor).await;
    assert_eq!((pending, reviews.len()), (2, 2));
    let mut other = Socket::open(&server.base, &rita, &[]).await.expect("let in");
    other.welcome().await;
    assert_eq!(snapshot(&mut other).await.0, 0, "nothing that is not hers");

    load(&admin, 1, "after").await;
    let entry = editor.entry().await;
    assert_eq!(entry.event.kind, EntryKind::ReviewRequested);
    let review: Review = serde_json::from_value(entry.event.data["review"].clone()).expect("a review");
    assert_eq!(review.items[0].value, "after");

    // A decision over the socket is answered with its ref, and gets the same answer when it is repeated.
    let decision = chosen(&review, "approve");
    let decide =
        |r#ref: &str| ClientMessage::Decide { r#ref: r#ref.to_owned(), review: review.id, decision: decision.clone() };
    let reply = |message: &ServerMessage| match message {
        ServerMessage::Reply { r#ref, answer } => Some((r#ref.clone(), answer.clone())),
        _ => None,
    };
    editor.send(&decide("one")).await;
    let (r#ref, first) = editor.wait_for(reply).await;
    let Answer::Ok(decided) = &first else { panic!("refused: {first:?}") };
    assert_eq!((r#ref.as_str(), decided.review.id), ("one", review.id));
    editor.send(&decide("one")).await;
    assert_eq!(editor.wait_for(reply).await, ("one".to_owned(), first));
    editor.send(&decide("two")).await;
    let (_, Answer::Problem(problem)) = editor.wait_for(reply).await else { panic!("decided twice") };
    assert_eq!(problem.code, Code::ReviewResolved);
    assert_eq!(problem.resolution.expect("who and how").by[0].as_str(), "edith");
    other.send(&decide("three")).await;
    // The first message that Rita receives is the refusal, since she may see none of this.
    let ServerMessage::Reply { answer: Answer::Problem(problem), .. } = other.next().await else {
        panic!("not a refusal")
    };
    assert_eq!(problem.code, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_rights_is_felt_at_once() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flows::question("question", "{ roles: [editor] }")).await;
    let admin = server.admin().await;
    let edith = server.person("edith", &["reviewer", "editor"]).await;
    load(&admin, 1, "x").await;
    let mut socket = Socket::open(&server.base, &edith, &[]).await.expect("let in");
    let cursor = socket.welcome().await;
    assert_eq!(snapshot(&mut socket).await.0, 1);

    let roles = UserPatch { roles: Some(vec!["reviewer".to_owned()]), ..UserPatch::default() };
    admin.update_user("edith", &roles).await.expect("changed");
    assert_eq!(socket.next().await, ServerMessage::Resync);
    // A cursor from before does not help: after a change of rights, the client must start from a snapshot.
    socket.subscribe(Some(cursor), &[Topic::Reviews]).await;
    let ServerMessage::Snapshot { pending, .. } = socket.next().await else { panic!("not a snapshot") };
    assert_eq!(pending, 0);
    load(&admin, 1, "y").await;

    let inactive = UserPatch { active: Some(false), ..UserPatch::default() };
    admin.update_user("edith", &inactive).await.expect("changed");
    assert_eq!(socket.next().await, ServerMessage::Resync, "and nothing of what was not for her before it");
    assert_eq!(socket.closed().await, Some(4401));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_misbehaves_is_let_go() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let cases: [(&str, Vec<Message>, u16); 5] = [
        ("no JSON", vec![Message::text("{")], 1007),
        ("no message that there is", vec![Message::text(r#"{"type":"dance"}"#)], 1007),
        ("bytes", vec![Message::binary(vec![1, 2, 3])], 1003),
        ("more than 256 KiB", vec![Message::text("x".repeat(300 * 1024))], 1009),
        ("too many", vec![Message::text(r#"{"type":"ping"}"#); 100], 1008),
    ];
    for (what, messages, code) in cases {
        let mut socket = Socket::open(&server.base, &ana, &[]).await.expect("let in");
        socket.welcome().await;
        for message in messages {
            socket.send_raw(message).await;
        }
        assert_eq!(socket.closed().await, Some(code), "{what}");
    }
    let foreign = [("sec-websocket-protocol", "other.v1")];
    assert_eq!(Socket::open(&server.base, &ana, &foreign).await.err(), Some(400), "another subprotocol");
    // A message that has a ref is answered with it, even if it is invalid.
    let mut socket = Socket::open(&server.base, &ana, &[]).await.expect("let in");
    socket.welcome().await;
    socket.send_raw(Message::text(r#"{"type":"decide","ref":"r1"}"#)).await;
    let ServerMessage::Reply { r#ref, answer: Answer::Problem(problem) } = socket.next().await else {
        panic!("not answered")
    };
    assert_eq!((r#ref.as_str(), problem.code), ("r1", Code::Invalid));
    socket.send(&ClientMessage::Ping).await;
    assert!(matches!(socket.next().await, ServerMessage::Pong { .. }), "and it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_a_run_sees_each_of_its_steps_and_reads_along() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flows::essay()).await;
    let admin = server.admin().await;
    let ana = server.person("ana", &["reviewer"]).await;
    let run = admin.launch(&launch_of("essay", Value::Null), None).await.expect("launched").summary.id;
    let other = admin.launch(&launch_of("essay", Value::Null), None).await.expect("launched").summary.id;
    let mut socket = Socket::follow(&server.base, &ana, &[Topic::Run(run)]).await;
    for run in [other, run] {
        let review = ana.run_reviews(run).await.expect("seen").items.remove(0);
        ana.decide(review.id, &chosen(&review, "approve"), None).await.expect("decided");
    }
    let (mut kinds, mut read) = (Vec::new(), String::new());
    while kinds.last() != Some(&EntryKind::RunCompleted) {
        match socket.next().await {
            ServerMessage::Entry(entry) => {
                assert_eq!(entry.event.run_id, Some(run), "nothing of the other run");
                if entry.event.kind == EntryKind::ModelAnswered {
                    assert_eq!(entry.event.data["text"], read, "what was streamed is what was answered");
                }
                kinds.push(entry.event.kind);
            }
            ServerMessage::Stream { run: of, offset, text, .. } => {
                assert_eq!((of, usize::try_from(offset).expect("small")), (run, read.len()));
                read.push_str(&text);
            }
            message => panic!("not of a run: {message:?}"),
        }
    }
    for kind in [EntryKind::ReviewResolved, EntryKind::StepStarted, EntryKind::ModelAnswered, EntryKind::StepCompleted]
    {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_an_escalation_asks_gets_the_review_whole_and_at_once() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let late =
        "{ roles: [editor] }\n      timeout: 300ms\n      on_timeout: { escalate: lead, extend: 1h, then: reject }";
    server.save(&flows::question("question", late)).await;
    let lia = server.person("lia", &["lead"]).await;
    let mut socket = Socket::open(&server.base, &lia, &[]).await.expect("let in");
    socket.welcome().await;
    assert_eq!(snapshot(&mut socket).await.0, 0, "it is not hers yet");
    load(&server.admin().await, 1, "urgent").await;
    let entry = socket.entry().await;
    assert_eq!((entry.event.kind, &entry.event.data["change"]), (EntryKind::ReviewUpdated, &json!("escalated")));
    let review: Review = serde_json::from_value(entry.event.data["review"].clone()).expect("a review");
    assert_eq!((review.items[0].value.as_str(), &review.escalated[..]), (Some("urgent"), &["lead".to_owned()][..]));
    lia.decide(review.id, &chosen(&review, "approve"), None).await.expect("she may decide");
}
