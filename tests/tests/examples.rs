//! The examples in `flows/`: each runs to each of its ends at a terminal, and is listed in `flows/README.md`.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;
use shared::run::{RunStatus, StepStatus};
use tests::reviewing::{chosen, launch_as};
use tests::{Database, Options, Server, binary, eventually};

const COMPLETED: i32 = 0;
const FAILED: i32 = 4;
const STOPPED: i32 = 5;
const UNANSWERED: i32 = 7;

/// An end of an example: name, arguments, answers on standard input, exit code, and a text that the output contains.
type End = (&'static str, &'static [&'static str], &'static str, i32, &'static str);

const TWO: [&str; 4] = ["--as", "ana", "--as", "tom"];
const OCEAN: &[&str] = &["-i", "topic=the ocean"];
const ORDER: &[&str] = &["-i", "order=A-1", "-i", "amount=100"];
const PAYMENT: &[&str] = &["-i", "amount=12", "-i", "to=Lind", TWO[0], TWO[1], TWO[2], TWO[3]];
const RELEASE: &[&str] = &["-i", "release=1", TWO[0], TWO[1], TWO[2], TWO[3]];
const COMPLAINT: &[&str] = &["-i", "complaint=broken", "-i", "order_total=12"];
const GOLD: &[&str] = &["--context", r#"{"user": "Mara", "tenant": "Acme", "metadata": {"plan": "gold"}}"#];

const ENDS: &[End] = &[
    ("announcement", &[], "1\n2\n1\n1\n", COMPLETED, "Abrimos segunda-feira"),
    ("announcement", &[], "1\n1\n2\n", STOPPED, "Do not announce it"),
    ("answer", &[], "yes\nyes\n", COMPLETED, "You get 20 EUR back within three days."),
    ("answer", &[], "yes\nedit reply\nYou get it back.\n.\nyes\n", COMPLETED, "\"reply\": \"You get it back.\""),
    ("answer", &[], "respond We look into it.\nyes\n", COMPLETED, "\"reply\": \"We look into it.\""),
    ("answer", &[], "no\nno not to them\n", STOPPED, "not to them"),
    ("article", OCEAN, "2\n1\nyes\n", COMPLETED, "https://example.org/the-ocean"),
    ("article", OCEAN, "edit draft\nMine.\n.\n1\nyes\n", COMPLETED, "\"draft\": \"Mine.\""),
    ("article", OCEAN, "4\nLonger, please.\n1\nno it is too long\n", FAILED, "TOOL_PERMISSION_DENIED: it is too long"),
    ("article", OCEAN, "3\n", STOPPED, "FLOW_HUMAN_REJECTED: Reject, stop the flow"),
    ("auto", &["-i", "order=A-1"], "", COMPLETED, "refund-of-a-1"),
    ("auto", ORDER, "1\n", COMPLETED, "refund-of-a-1"),
    ("auto", ORDER, "2\n", STOPPED, "Do not pay"),
    ("auto", &["-i", "order=A-1", "-i", "amount=5000"], "", COMPLETED, "made by the bank only."),
    ("batch", &[], "1\n2\n1\n", COMPLETED, "\"option\": \"refuse\""),
    ("batch", &[], "1\n3\n", STOPPED, "Stop the whole batch"),
    ("committee", &["-i", "occasion=outage"], "2\n1\n", COMPLETED, "Nothing was lost. We are sorry.\""),
    ("committee", &["-i", "occasion=outage"], "3\n", STOPPED, "Say nothing"),
    ("contract", &["-i", "contract=chairs"], "2\n1\n", COMPLETED, "three months' notice"),
    ("contract", &["-i", "contract=chairs"], "3\n", STOPPED, "Do not sign"),
    ("deploy", RELEASE, "yes\nyes\nyes\nyes\n", COMPLETED, "run in staging"),
    ("deploy", RELEASE, "no\nno\nno too early\nno\n", COMPLETED, "too early"),
    ("deploy", &["-i", "release=1", "--as", "ana"], "yes\n", UNANSWERED, "`--as NAME`"),
    ("escalation", &["-i", "customer=Lind"], "edit credit\n90\n.\n1\n", COMPLETED, "A credit of 90 EUR"),
    ("escalation", &["-i", "customer=Lind"], "2\n", COMPLETED, "else ask manager too; within 10m more"),
    ("four-eyes", PAYMENT, "1\n1\n", COMPLETED, "12 EUR to Lind"),
    ("four-eyes", PAYMENT, "1\n2\n", STOPPED, "Hold it back"),
    ("four-eyes", PAYMENT, "2\n", STOPPED, "Do not pay"),
    ("guarded", &[], "", COMPLETED, "code-safety blocked this (c1-1): it deletes everything (`rm -rf`)"),
    (
        "guarded",
        &["-i", "command=sudo ls"],
        "",
        COMPLETED,
        "perform: decided by a judge: It says \"sudo\", which the criteria rule out.",
    ),
    ("guarded", &["-i", "command=rm -rf ./build"], "", COMPLETED, "perform: shell was called"),
    ("guarded", &[], "", COMPLETED, "[redacted] paid 20 EUR with the card [redacted]. Thank you!"),
    (
        "helpdesk",
        &[],
        "continue\nagent_continue\n{\"guidance\":\"Fetch one.\"}\n",
        COMPLETED,
        "we fetch the second chair on Monday",
    ),
    (
        "helpdesk",
        &[],
        "1\ndelegate\n{\"agent\":\"expert\",\"instructions\":\"Say how it is.\"}\n",
        COMPLETED,
        "\"answer\": \"A-17: one chair ordered and paid, two sent.\"",
    ),
    ("helpdesk", &[], "1\nhuman_takeover\n{\"answer\":\"Keep both.\"}\n", COMPLETED, "Keep both."),
    ("helpdesk", &[], "1\nabort\n{\"reason\":\"Call them.\"}\n", COMPLETED, "A colleague will call you today."),
    ("judge", &["-i", "reply=It is on its way."], "", COMPLETED, "https://example.org/reply"),
    ("onboarding", &["-i", "name=Rosa"], "edit equipment\na chair\n.\n1\n", COMPLETED, "Equipment: a chair. Monday"),
    ("onboarding", &["-i", "name=Rosa"], "2\n", STOPPED, "No, stop here"),
    ("permission", &[], "yes\n", COMPLETED, "publish_notice was called"),
    ("permission", &[], "no because\n", COMPLETED, "has been dealt with"),
    ("permission", &[], "maybe\n", COMPLETED, "has been dealt with"),
    ("polish", &[], "2\n1\n", COMPLETED, "\"round\": 4"),
    ("question", &["-i", "event=the party"], "At six, bring salad.\n", COMPLETED, "invitation"),
    ("release-notes", &[], "yes\nno\n", COMPLETED, "publish_page was called"),
    ("release-notes", &[], "yes\nchoose team-first\n", COMPLETED, "publish_page was called"),
    ("release-notes", &[], "respond later\nyes\n", COMPLETED, "send_newsletter was called"),
    ("research", &[], "1\n1\n2\n", COMPLETED, "The report is written, with what you told me."),
    ("research", &[], "3\nA school.\nedit content\nThe sea follows.\n.\n1\n3\n", COMPLETED, "report: done"),
    ("support", GOLD, "1\nyes\n", COMPLETED, "your-request-acme"),
    ("support", &[], "2\n", STOPPED, "Not for us"),
    ("survey", &["-i", "customer=Lind"], "1\nToo short.\n", UNANSWERED, "Please say it in a whole sentence."),
    ("survey", &["-i", "customer=Lind"], "edit seats\n3\n.\n1\nThey wait too long for us.\n", COMPLETED, "3 seats"),
    ("team", &[], "yes\nyes\n", COMPLETED, "discuss: critic changed the strategy to parallel"),
    ("team", &[], "yes\nno\nno\n", COMPLETED, "discuss: critic created the specialist operator"),
    ("team", &[], "no\nno\nno\nno\n", COMPLETED, "Ship it on Friday morning"),
    ("translate", &["-i", "text=Hello", "-i", "language=Portuguese"], "2\n1\n", COMPLETED, "Abrimos segunda-feira"),
    ("triage", COMPLAINT, "1\n", COMPLETED, "Refund of 12 EUR"),
    ("triage", COMPLAINT, "2\n", COMPLETED, "A new item is on its way."),
    ("triage", COMPLAINT, "3\n", COMPLETED, "choose: decided by"),
    ("triage", COMPLAINT, "4\n", STOPPED, "Not a complaint."),
    (
        "venue",
        &[],
        "2\n",
        COMPLETED,
        "We meet for the team's day out at: The market hall (25 EUR for each; loud at noon).",
    ),
    ("venue", &[], "4\nCloser to the station.\nroof\n", COMPLETED, "Our own roof"),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../flows")
}

/// Runs an example with these answers, and returns the exit code and all output.
fn run(name: &str, arguments: &[&str], answers: &str) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    command.args(["flow", "run"]).arg(folder().join(name).with_extension("yaml")).args(arguments);
    command.env("COUNTERSIGN_DEMO_PAUSE", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // Fails if the program ends before it has read all answers.
    let _ = child.stdin.take().expect("a pipe").write_all(answers.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let shown = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn every_example_runs_to_each_of_its_ends() {
    for (name, arguments, answers, code, seen) in ENDS {
        let (ended, shown) = run(name, arguments, answers);
        assert!(ended == Some(*code) && shown.contains(seen), "{name} {answers:?}: {ended:?}, not {seen:?}\n{shown}");
    }
}

#[test]
fn what_happens_in_one_commit_is_told_whole() {
    let (_, shown) = run("auto", &["-i", "order=A-1", "-i", "amount=5000"], "");
    assert!(shown.contains("never: rejected") && shown.contains("the run has completed"), "{shown}");
}

#[test]
fn the_list_of_examples_has_every_example() {
    let list = std::fs::read_to_string(folder().join("README.md")).expect("the list");
    for entry in std::fs::read_dir(folder()).expect("the examples").flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".yaml") else { continue };
        assert!(list.contains(&format!("[{name}]({file})")), "{file} is not in flows/README.md");
        assert!(ENDS.iter().any(|end| end.0 == name), "{file} is not run");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_with_the_examples_warns_of_nothing() {
    let options = Options { flows: Some(folder()), ..Options::on(Database::Sqlite) }.arguments(["--demo"]);
    let server = Server::start(options).await;
    assert!(!server.admin().await.flows().await.expect("listed").items.is_empty());
    let log = server.log_text();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

/// While one branch waits for a person, the other runs on to the node that joins them.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_goes_on_while_another_waits_for_a_person() {
    let server = Server::start(Options { flows: Some(folder()), ..Options::on(Database::Sqlite) }).await;
    let (admin, ana) = (server.admin().await, server.person("ana", &["reviewer"]).await);
    let run = launch_as(&admin, "onboarding", json!({ "name": "Rosa" })).await;
    eventually("the plan is there, and somebody is asked", async || {
        let report = admin.report(run).await.ok()?;
        let done =
            |node: &str| report.steps.iter().any(|s| s.node.as_str() == node && s.status == StepStatus::Completed);
        (done("plan") && admin.run(run).await.ok()?.summary.status == RunStatus::WaitingForHuman).then_some(())
    })
    .await;
    let review = ana.run_reviews(run).await.expect("seen").items.remove(0);
    ana.decide(review.id, &chosen(&review, "order"), None).await.expect("decided");
    eventually("both come together", async || {
        let run = admin.run(run).await.ok()?;
        (run.summary.status == RunStatus::Completed).then_some(())
    })
    .await;
}
