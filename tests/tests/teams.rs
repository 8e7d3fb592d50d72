//! Teams and checkpoints across a kill of the server: members that have answered do not answer again, questions stay
//! pending, and a paused checkpoint stays paused.

use reqwest::StatusCode;
use serde_json::{Value, json};
use shared::api::LogQuery;
use shared::log::EntryKind;
use shared::run::RunStatus;
use tests::caller::caller;
use tests::{Database, Options, Server, eventually, on_both};

on_both! {
    a_team_goes_on_with_the_next_member_after_a_kill,
    an_agent_that_was_told_to_pause_waits_through_a_kill_until_it_is_resumed,
}

const TEAM: &str = "
id: pair
agents:
  first: { model: demo/first, demo: { replies: [Red.] } }
  second: { model: demo/second, demo: { replies: [Blue.] } }
gates: { before_agent: { second: true } }
nodes: { talk: { team: { agents: [first, second], strategy: sequential, prompt: Which colour? } } }
";

async fn a_team_goes_on_with_the_next_member_after_a_kill(database: Database) {
    let mut server = Server::start(Options::on(database)).await;
    server.save(TEAM).await;
    let (dev, ana) = (caller(&server, "dev", &["developer"]).await, caller(&server, "ana", &["reviewer"]).await);
    let (status, run) = dev.post("/api/v1/runs", &json!({ "flow": "pair" })).await;
    assert_eq!(status, StatusCode::CREATED, "{run}");
    let path = format!("/api/v1/runs/{}", run["id"].as_str().expect("an id"));
    let review = eventually("the second is asked about", async || {
        dev.get(&format!("{path}/reviews")).await["items"].as_array()?.first().cloned()
    })
    .await;
    server.kill();
    server.restart().await;

    let prompt = review["actions"][0]["arguments"]["prompt"].as_str().expect("a prompt").to_owned();
    assert!(prompt.ends_with("The answer of `first` before you:\n\nRed."), "{prompt}");
    let approve = json!({ "verdict": { "type": "actions", "decisions": { "agent": { "type": "approve" } } } });
    let (status, decided) = ana.decide(&review, &approve).await;
    assert_eq!(status, StatusCode::OK, "{decided}");
    let over = eventually("the team has answered", async || {
        let run = dev.get(&path).await;
        (run["status"] == json!(RunStatus::Completed)).then_some(run)
    })
    .await;
    assert_eq!(over["output"]["talk"], "Blue.");
    let admin = server.admin().await;
    let id = run["id"].as_str().expect("an id").parse().expect("an id");
    let query = LogQuery { run: Some(id), limit: Some(200), after: None };
    let log = admin.log(&query).await.expect("the log").items;
    let answers = log.iter().filter(|entry| entry.event.kind == EntryKind::ModelAnswered).count();
    assert_eq!(answers, 2, "each has answered once");
}

async fn an_agent_that_was_told_to_pause_waits_through_a_kill_until_it_is_resumed(database: Database) {
    let mut server = Server::start(Options::on(database)).await;
    let (program, ana) =
        (caller(&server, "program", &["developer"]).await, caller(&server, "ana", &["reviewer"]).await);
    let question = json!({ "kind": "checkpoint", "phase": "Migration", "progress": 0.4, "timeout": "1h" });
    let review = program.ask(&question).await;
    let choose =
        |option: &str| json!({ "verdict": { "type": "choose", "option": option }, "metadata": { "why": option } });
    let (status, paused) = ana.decide(&review, &choose("pause")).await;
    assert_eq!(status, StatusCode::OK, "{paused}");
    server.kill();
    server.restart().await;

    let seen = ana.get(&format!("/api/v1/reviews/{}", review["id"].as_str().expect("an id"))).await;
    assert_eq!((&seen["status"], &seen["paused"]["by"]), (&json!("pending"), &json!("ana")));
    assert_eq!(seen["expires_at"], Value::Null, "no time runs meanwhile");
    let offered = seen["options"].as_array().expect("options").iter().map(|option| option["id"].clone());
    assert_eq!(offered.collect::<Vec<_>>(), ["resume", "modify", "abort"]);
    let (status, resumed) = ana.decide(&seen, &choose("resume")).await;
    assert_eq!(status, StatusCode::OK, "{resumed}");
    let answer = program.resolution(&review).await["answer"].clone();
    assert_eq!((&answer["decision"], &answer["by"]), (&json!("continue"), &json!("ana")));
}
