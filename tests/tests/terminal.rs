//! Flows at a terminal: the real binary, with its answers piped in.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{DEADLINE, binary};

/// The path of an example flow.
fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../flows").join(name)
}

/// A process that is killed when this is dropped, even if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(file: &PathBuf, arguments: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(["flow", "run"]).arg(file).args(arguments).env_remove("COUNTERSIGN_LOG").env("USER", "ana");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    /// Waits for the end of the process. Panics after [`DEADLINE`].
    fn end(mut self) -> Ended {
        let begun = Instant::now();
        while self.0.try_wait().expect("a status").is_none() {
            assert!(begun.elapsed() < DEADLINE, "it hangs");
            thread::sleep(Duration::from_millis(20));
        }
        let read = |from: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            from.expect("a pipe").read_to_string(&mut text).expect("UTF-8");
            text
        };
        let stdout = read(self.0.stdout.as_mut().map(|out| out as &mut dyn std::io::Read));
        let stderr = read(self.0.stderr.as_mut().map(|out| out as &mut dyn std::io::Read));
        let code = self.0.wait().expect("a status").code().expect("no signal ended it");
        Ended { code, stdout, stderr }
    }
}

#[derive(Debug)]
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs a flow with these answers on standard input.
fn run(file: &PathBuf, arguments: &[&str], answers: &str) -> Ended {
    let mut running = Running::start(file, arguments);
    let mut stdin = running.0.stdin.take().expect("a pipe");
    // Fails if the program ends before it has read all answers.
    let _ = stdin.write_all(answers.as_bytes());
    drop(stdin);
    running.end()
}

/// Writes a flow to a file in a temporary folder.
fn file(flow: &Value) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flow.json");
    std::fs::write(&path, flow.to_string()).expect("written");
    (folder, path)
}

fn question(more: &Value) -> Value {
    let mut human = json!({ "prompt": "Shall we?", "options": [
        { "id": "yes", "label": "Yes" },
        { "id": "no", "kind": "stop", "label": "No", "message": "Not today." },
    ] });
    human.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({ "id": "question", "output": ["ask"], "nodes": { "ask": { "human": human } } })
}

#[test]
fn a_script_corrects_approves_and_allows_the_call() {
    let ended = run(&example("article.yaml"), &["--input", "topic=the ocean"], "2\n1\nyes\n");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let output: Value = serde_json::from_str(&ended.stdout).expect("the output alone, as JSON");
    assert_eq!(output["publish"]["url"], "https://example.org/the-ocean");
    for seen in [
        " human validation: review\n",
        "\n  [1] Looks good, continue\n  [2] Needs revision\n  [3] Reject, stop the flow\n  [4] provide custom message\n",
        " your choice [1-4]: 2\n",
        "draft (visit 2): done",
        " tool permission: publish\n",
        " - The article can be read by everybody at once.\n",
        " allow it? [yes/no/edit]: yes\n",
        "publish: publish was called",
    ] {
        assert!(ended.stderr.contains(seen), "{seen:?} is missing in\n{}", ended.stderr);
    }
}

#[test]
fn a_stop_is_typed_and_has_its_own_exit_code() {
    let ended = run(&example("article.yaml"), &["--input", "topic=the ocean", "--quiet"], "3\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (5, ""));
    assert!(ended.stderr.ends_with("FLOW_HUMAN_REJECTED: Reject, stop the flow (at `review`)\n"), "{}", ended.stderr);
}

#[test]
fn without_a_terminal_and_without_answers_it_says_so_at_once() {
    for answers in ["", "2\n"] {
        let ended = run(&example("article.yaml"), &["--input", "topic=the ocean"], answers);
        assert_eq!((ended.code, ended.stdout.as_str()), (7, ""));
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.contains("`review` is not decided: there is no answer: standard input is not a"), "{last}");
    }
    let ended = run(&example("article.yaml"), &["--input", "topic=the ocean"], "9\n");
    assert_eq!(ended.code, 7);
    assert!(ended.stderr.ends_with("`9` is not a choice of review: 1 to 4, edit draft\n"), "{}", ended.stderr);
}

#[test]
fn a_judge_decides_what_is_plain_and_a_person_the_rest() {
    let judged =
        |reply: &str, answers: &str| run(&example("judge.yaml"), &["--input", &format!("reply={reply}")], answers);
    let sent = judged("Your part is on its way.", "");
    assert!(sent.code == 0 && sent.stderr.contains("check: done: Send it (by a judge)\n"), "{}", sent.stderr);
    let dropped = judged("You get a full refund.", "");
    let reason = "FLOW_HUMAN_REJECTED: It says \"refund\", which the criteria rule out. (at `check`)\n";
    assert!(dropped.code == 5 && dropped.stderr.ends_with(reason), "{}", dropped.stderr);
    let asked = judged(&"We are looking into it. ".repeat(20), "2\n");
    let said = " - demo/judge would approve, but is 65% sure and decides from 70%: Nothing that the criteria rule out";
    assert!(asked.code == 5 && asked.stderr.contains(said), "{}", asked.stderr);
}

#[test]
fn a_denial_never_touches_the_tool() {
    let ended = run(&example("permission.yaml"), &[], "no too early\n");
    assert_eq!(ended.code, 0, "the agent is told, and goes on: {}", ended.stderr);
    assert!(!ended.stderr.contains("was called"), "{}", ended.stderr);
    let ended = run(&example("permission.yaml"), &[], "y\n");
    assert!(ended.code == 0 && ended.stderr.contains("publish_notice was called"), "{}", ended.stderr);
    // A tool node has no agent that could be told, so it fails.
    let flow = json!({
        "id": "delete",
        "tools": { "delete": { "builtin": "demo_publish", "ask_permission": true } },
        "nodes": { "delete": { "tool": "delete", "arguments": { "title": "x", "text": "y" } } },
    });
    let (_folder, path) = file(&flow);
    let ended = run(&path, &[], "no\n");
    assert!(ended.code == 4 && ended.stderr.contains("TOOL_PERMISSION_DENIED"), "{ended:?}");
}

#[test]
fn mistakes_of_the_flow_and_of_the_input_are_found_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flow.yaml");
    std::fs::write(&path, "id: wrong\nnodes:\n  ask:\n    humn: {}\n").expect("written");
    let ended = run(&path, &[], "");
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("flow.yaml:4:5: "), "{}", ended.stderr);
    let ended = run(&example("article.yaml"), &["--input", "topik=x"], "");
    assert!(ended.code == 3 && ended.stderr.contains("/input/topic"), "{}", ended.stderr);
}

#[test]
fn inputs_are_text_where_the_flow_says_so_and_json_elsewhere() {
    let flow = json!({
        "id": "echo",
        "input": { "type": "object", "properties": { "a": { "type": "string" }, "b": {}, "c": {}, "d": {} } },
        "nodes": { "last": { "router": {} } },
    });
    let (folder, path) = file(&flow);
    let object = folder.path().join("input.json");
    std::fs::write(&object, r#"{"d": 4, "b": 1}"#).expect("written");
    let object = format!("@{}", object.display());
    let ended = run(&path, &["--input-json", &object, "-i", "a=1", "-i", "b=2", "-i", "c=x=y"], "");
    let output: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!(output, json!({ "d": 4, "b": 2, "a": "1", "c": "x=y" }));
}

#[test]
fn answers_come_from_a_file_too() {
    let (folder, path) = file(&question(&json!({})));
    let answers = folder.path().join("answers");
    std::fs::write(&answers, "yes\n").expect("written");
    let ended = run(&path, &["--answers", answers.to_str().expect("UTF-8")], "no\n");
    let output: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!(output, json!({}));
    assert!(ended.stderr.contains("ask: approved by ana"), "{}", ended.stderr);
}

#[test]
fn a_timer_fires_while_the_terminal_waits() {
    let (_folder, path) = file(&question(&json!({ "timeout": "1s", "on_timeout": "error" })));
    let ended = {
        let mut running = Running::start(&path, &[]);
        // Standard input stays open and silent.
        let _stdin = running.0.stdin.take();
        running.end()
    };
    assert!(ended.code == 4 && ended.stderr.contains("FLOW_HUMAN_TIMEOUT"), "{ended:?}");
}

#[test]
fn an_interrupt_cancels_the_run() {
    let (_folder, path) = file(&question(&json!({})));
    let mut running = Running::start(&path, &[]);
    let _stdin = running.0.stdin.take();
    // Waits until the question is shown.
    let mut stderr = running.0.stderr.take().expect("a pipe");
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("your choice") {
        let mut more = [0; 1024];
        let count = std::io::Read::read(&mut stderr, &mut more).expect("it is read");
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&shown));
        shown.extend(&more[..count]);
    }
    running.0.stderr = Some(stderr);
    let id = running.0.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().expect("kill");
    let ended = running.end();
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(ended.stderr.contains("the run was cancelled: interrupted at the terminal"), "{}", ended.stderr);
}

#[test]
fn who_decides_is_named_and_nobody_approves_their_own_run_where_that_is_forbidden() {
    let (_folder, path) = file(&question(&json!({ "reviewers": { "not_requester": true } })));
    let ended = run(&path, &["--as", "ana"], "1\n");
    assert!(ended.code == 7 && ended.stderr.contains("not for the person who launched the run"), "{}", ended.stderr);
    let ended = run(&path, &["--as", "ana", "--as", "tom"], "1\n");
    assert!(ended.code == 0 && ended.stderr.contains("ask: approved by tom"), "{}", ended.stderr);
}

#[test]
fn the_help_names_every_exit_code() {
    let Output { stdout, .. } = Command::new(binary()).args(["flow", "run", "--help"]).output().expect("it runs");
    let help = String::from_utf8_lossy(&stdout).into_owned();
    for code in ["0 ", "3 ", "4 ", "5 ", "6 ", "7 ", "130 "] {
        assert!(help.contains(&format!("\n  {code}")), "{code}: {help}");
    }
}

#[test]
fn nobody_is_added_to_a_database_that_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("mistyped");
    let link = Command::new(binary()).args(["user", "link", "ana", "--data"]).arg(&data).output().expect("it ends");
    let said = String::from_utf8(link.stderr).expect("UTF-8");
    assert!(!link.status.success() && said.contains("start a server first, or name its folder (--data)"), "{said}");
    assert!(!data.exists(), "nothing is created");
}
