//! The commands that talk to a server: the real binary against the real server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};
use shared::api::NewToken;
use shared::id::{ReviewId, RunId};
use shared::review::Review;
use tests::reviewing::launch_as;
use tests::{Api, Database, Options, Server, binary, eventually};

const FLOW: &str = r#"id: letter
title: Write a letter
output: [letter, send]
tools:
  send:
    builtin: demo_publish
    ask_permission: true
nodes:
  write:
    set: { letter: "Dear all" }
    write_keys: [letter]
    next: review
  review:
    human:
      prompt: Is it good?
      review_keys: [letter]
      edit_keys: [letter]
      options:
        - { id: fine, label: It is }
        - { id: never, kind: stop, label: Never }
    next: send
  send:
    tool: send
    arguments: { title: "{{ letter }}", text: "{{ letter }}" }
"#;

/// A flow whose agent makes a gated call with an alternative, and then escalates.
const DESK: &str = "id: desk
agents:
  clerk:
    model: demo/clerk
    tools: [pay, stuck]
    demo:
      tool_calls:
        - { tool: pay, arguments: { title: Pay, text: It. } }
        - { tool: stuck, arguments: { reason: out_of_scope, explanation: Not mine. } }
tools: { pay: { builtin: demo_publish }, stuck: { builtin: escalate } }
gates: { before_tool: { pay: { alternatives: [{ id: voucher, description: Send a voucher }] } } }
nodes: { serve: { agent: clerk, prompt: Serve. } }
";

struct House {
    server: Server,
    api: Api,
    token: String,
}

impl House {
    async fn start() -> Self {
        let server = Server::start(Options::on(Database::Sqlite)).await;
        server.save(FLOW).await;
        let api = server.person("ana", &["reviewer", "developer"]).await;
        let roles = vec!["reviewer".to_owned(), "developer".to_owned()];
        let token = api.create_token(&NewToken { name: "terminal".into(), roles, expires_at: None }).await;
        let token = token.expect("a token").secret.expect("its secret");
        Self { server, api, token }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).env("COUNTERSIGN_SERVER", &self.server.base).env("COUNTERSIGN_TOKEN", &self.token);
        command.env_remove("COUNTERSIGN_LOG").stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (status.code().expect("no signal"), text(stdout), text(stderr))
    }

    async fn launch(&self, flow: &str) -> RunId {
        launch_as(&self.api, flow, Value::Null).await
    }

    async fn pending(&self, run: RunId, node: &str) -> Review {
        eventually("a review is asked", async || {
            let reviews = self.api.run_reviews(run).await.ok()?.items;
            reviews.into_iter().find(|review| review.is_pending() && review.node.as_deref() == Some(node))
        })
        .await
    }

    async fn review(&self, id: ReviewId) -> Review {
        self.api.review(id).await.expect("a review")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_found_shown_and_decided_at_a_terminal() {
    let house = House::start().await;
    let run = house.launch("letter").await;
    let review = house.pending(run, "review").await;
    let id = review.id.to_string();

    let (code, listed, _) = house.run(&["review", "list"]);
    assert!(code == 0 && listed.starts_with("REVIEW ") && listed.contains(&id), "{listed}");
    let (_, listed, _) = house.run(&["review", "list", "--json", "--mine"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["items"][0]["id"], json!(id));
    let (code, listed, _) =
        house.run(&["review", "list", "--order", "urgency", "--assigned", "unclaimed", "--age", "0s"]);
    assert!(code == 0 && listed.contains(&id), "{listed}");
    let (_, listed, _) = house.run(&["review", "list", "--order", "urgency", "--assigned", "claimed"]);
    assert!(!listed.contains(&id), "{listed}");
    let (code, _, said) = house.run(&["review", "list", "--order", "urgency", "--status", "resolved"]);
    assert!(code == 3 && said.contains("/status"), "{said}");
    let (_, shown, _) = house.run(&["review", "show", &id]);
    for seen in [review.digest.as_str(), " | Dear all", "  [1] It is", " option fine: It is (accept)", " pending"] {
        assert!(shown.contains(seen), "{seen:?} is missing in {shown}");
    }

    // An invalid decision is refused with the place of the mistake, and changes nothing.
    let (code, _, said) = house.run(&["review", "decide", &id, "--option", "maybe"]);
    assert!(
        code == 3 && said.contains("[invalid]") && said.contains("/verdict/option: `maybe` is not an option"),
        "{said}"
    );
    let (code, _, said) = house.run(&["review", "decide", &id]);
    assert!(code == 7 && said.contains("standard input is not a terminal"), "{said}");
    // The digest must be that of the current content.
    let (code, _, said) = house.run(&["review", "decide", &id, "--option", "fine", "--digest", "sha256:old"]);
    assert!(code == 10 && said.contains("the content has changed since you saw it"), "{said}");
    assert!(house.review(review.id).await.decisions.is_empty());

    let decide = ["review", "decide", &id, "--option", "fine", "--edit", "letter=Dear Tom", "--comment", "good"];
    let (code, said, shown) = house.run(&[&decide[..], &["--digest", &review.digest]].concat());
    assert_eq!(code, 0, "{shown}");
    assert!(
        said.starts_with("resolved: approved by a token of ana") && shown.contains(&review.digest),
        "{said}{shown}"
    );
    let decision = house.review(review.id).await.decisions.remove(0);
    assert_eq!((decision.via, decision.comment.as_deref()), (shared::decision::Via::Cli, Some("good")));
    let (code, _, said) = house.run(&["review", "decide", &id, "--option", "fine"]);
    assert!(code == 10 && said.contains("[review_resolved]") && said.contains("approved by a token of ana"), "{said}");

    // A gated call is decided by its id.
    let call = house.pending(run, "send").await;
    let answer = format!(r#"{}=edit:{{"title": "T", "text": "Dear Tom"}}"#, call.actions[0].id);
    let (code, _, said) = house.run(&["review", "decide", &call.id.to_string(), "--action", &answer]);
    assert_eq!(code, 0, "{said}");
    let shown = eventually("the run completes", async || {
        let (_, shown, _) = house.run(&["run", "show", &run.to_string()]);
        shown.contains("\ncompleted").then_some(shown)
    })
    .await;
    assert!(shown.contains("NODE") && shown.contains("https://example.org/t"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alternative_to_a_call_is_chosen_and_what_goes_with_an_option_is_sent() {
    let house = House::start().await;
    house.server.save(DESK).await;
    let run = house.launch("desk").await;
    let call = house.pending(run, "serve").await;
    let id = call.id.to_string();
    let choose = |alternative: &str| format!("{}=choose:{alternative}", call.actions[0].id);
    let (code, _, said) = house.run(&["review", "decide", &id, "--action", &choose("gift")]);
    assert!(code == 3 && said.contains("/alternative"), "{said}");
    let (code, said, _) = house.run(&["review", "decide", &id, "--action", &choose("voucher")]);
    assert!(code == 0 && said.starts_with("resolved: decided by a token of ana"), "{said}");

    let stuck = eventually("it cannot go on", async || {
        house.api.run_reviews(run).await.ok()?.items.into_iter().find(Review::is_pending)
    })
    .await;
    let decide = ["review", "decide", &stuck.id.to_string(), "--option", "agent_continue", "--fields"];
    let with = |fields: &str| house.run(&[&decide[..], &[fields]].concat());
    let (code, _, said) = with("{}");
    assert!(code == 3 && said.contains("/verdict/fields/guidance"), "{said}");
    let (code, _, said) = with("guidance");
    assert!(code == 3, "{said}");
    let file = house.server.file("fields.json");
    std::fs::write(&file, r#"{"guidance": "Be kind."}"#).expect("written");
    let (code, said, shown) = with(&format!("@{}", file.display()));
    assert!(code == 0 && said.starts_with("resolved: answered by a token of ana"), "{said}{shown}");
    let output = eventually("the run completes", async || house.api.run(run).await.ok()?.output).await;
    let told = output["serve"].as_str().expect("a report");
    assert!(told.contains("voucher") && told.contains("Be kind."), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_and_cancelled_and_each_kind_of_refusal_has_its_exit_code() {
    let house = House::start().await;
    let run = house.launch("letter").await.to_string();
    let (code, listed, _) = house.run(&["run", "list", "--flow", "letter"]);
    assert!(code == 0 && listed.contains(&run) && listed.starts_with("RUN "), "{listed}");
    let (code, said, _) = house.run(&["run", "cancel", &run, "--reason", "not needed"]);
    assert!(code == 0 && said.contains("cancelled: not needed"), "{said}");
    let (code, _, said) = house.run(&["run", "cancel", &run]);
    assert!(code == 10 && said.contains("[run_over]"), "{said}");
    let (code, _, said) = house.run(&["run", "show", "00000000-0000-7000-8000-000000000000"]);
    assert!(code == 8 && said.contains("[not_found]"), "{said}");
    let nobody = house.command(&["run", "list"]).env("COUNTERSIGN_TOKEN", "wrong").output().expect("it runs");
    assert_eq!(nobody.status.code(), Some(9));
    let away = house.command(&["run", "list"]).env("COUNTERSIGN_SERVER", "http://127.0.0.1:9").output();
    assert_eq!(away.expect("it runs").status.code(), Some(11));
    let without = house.command(&["run", "list"]).env_remove("COUNTERSIGN_TOKEN").output().expect("it runs");
    assert!(without.status.code() == Some(9) && String::from_utf8_lossy(&without.stderr).contains("COUNTERSIGN_TOKEN"));
}

/// A flow without people, whose input is a text.
const GREET: &str = r#"id: greet
title: Greet somebody
input: { type: object, required: [name], properties: { name: { type: string } } }
output: [greeting]
nodes: { write: { set: { greeting: "Hello {{ name }}" } } }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_is_saved_and_started_and_the_exit_code_says_how_its_run_stands() {
    let house = House::start().await;
    let file = house.server.file("greet.yaml");
    let path = file.display().to_string();
    std::fs::write(&file, GREET).expect("written");
    for _ in 0..2 {
        let (code, said, _) = house.run(&["flow", "save", &path]);
        assert!(code == 0 && said.contains("`greet` version 1"), "{said}");
    }
    std::fs::write(&file, GREET.replace("{ set:", "{ sett:")).expect("written");
    let (code, _, said) = house.run(&["flow", "save", &path]);
    assert!(code == 3 && said.contains("sett"), "{said}");

    let (code, said, _) = house.run(&["run", "start", "greet", "--input", "name=7", "--wait"]);
    assert!(code == 0 && said.contains("\ncompleted") && said.contains("Hello 7"), "{said}");
    let (code, _, said) = house.run(&["run", "start", "greet"]);
    assert!(code == 3 && said.contains("/input/name"), "{said}");
    assert_eq!(house.run(&["run", "start", "nobody"]).0, 8);

    let (code, said, shown) = house.run(&["run", "start", "letter", "--wait"]);
    assert!(code == 7 && said.contains("waiting for review") && shown.contains("waits for people"), "{said}{shown}");
    let again = ["run", "start", "letter", "--idempotency-key", "k1", "--json"];
    let started = |(code, said, _): (i32, String, String)| {
        assert_eq!(code, 0, "{said}");
        serde_json::from_str::<Value>(&said).expect("a run")["id"].clone()
    };
    assert_eq!(started(house.run(&again)), started(house.run(&again)));
}

/// A process that is killed when this is dropped, even if the test fails.
struct Follower(Child);

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Collects entries into `seen` until one says that this run waits.
async fn heard(told: &Receiver<Value>, seen: &mut Vec<Value>, run: RunId) {
    eventually("the run is told", async || {
        seen.extend(told.try_iter());
        let waits = |entry: &&Value| entry["kind"] == "workflow.waiting" && entry["run_id"] == json!(run);
        seen.iter().find(waits).map(|_| ())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn following_the_log_survives_a_restart_of_the_server_and_misses_nothing() {
    let mut house = House::start().await;
    let mut command = house.command(&["log", "--follow", "--json"]);
    let mut follower = Follower(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts"));
    let lines = BufReader::new(follower.0.stdout.take().expect("a pipe")).lines();
    let (send, receive) = mpsc::channel::<Value>();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = send.send(serde_json::from_str(&line).expect("a line of JSON"));
        }
    });
    let first = house.launch("letter").await;
    let mut seen = Vec::new();
    heard(&receive, &mut seen, first).await;
    house.server.restart().await;
    let second = house.launch("letter").await;
    heard(&receive, &mut seen, second).await;
    // The follower has printed exactly the entries of the log, each once and in order.
    let (_, whole, _) = house.run(&["log", "--json"]);
    let whole: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let cursors = |entries: &[Value]| entries.iter().map(|entry| entry["cursor"].clone()).collect::<Vec<_>>();
    let told = cursors(&seen);
    assert_eq!(told, cursors(&whole)[..told.len()]);
    let (_, table, _) = house.run(&["log", "--run", &second.to_string()]);
    assert!(table.contains("run.started") && !table.contains(&first.to_string()), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_label_of_a_decision_is_the_callers_only_where_a_token_calls() {
    let house = House::start().await;
    let review = house.pending(house.launch("letter").await, "review").await;
    // With a browser's session, the header `countersign-via` is ignored.
    let body = json!({
        "revision": review.revision, "digest": review.digest, "verdict": { "type": "choose", "option": "fine" },
    });
    let path = format!("/api/v1/reviews/{}/decisions", review.id);
    let request = house.api.transport.raw(reqwest::Method::POST, &path).header("countersign-via", "cli").json(&body);
    assert!(request.send().await.expect("an answer").status().is_success());
    assert_eq!(house.review(review.id).await.decisions[0].via, shared::decision::Via::Human);
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let Output { status, stdout, .. } =
            Command::new(binary()).args(["completions", shell]).output().expect("it runs");
        let script = String::from_utf8_lossy(&stdout).into_owned();
        assert!(status.success() && script.contains("review") && script.contains("decide"), "{shell}");
    }
}
