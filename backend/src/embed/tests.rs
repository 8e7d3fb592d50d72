//! Programs that embed Countersign: who is asked, what the outcome is, and what is left untouched.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use shared::decision::Via;
use shared::definition::{Escalate, McpTool, OnTimeout, ToolKind};
use shared::error::FlowCode;
use shared::id::NodeId;
use shared::review::Outcome;
use shared::run::RunStatus;
use shared::time::Span;

use super::reviewer::reviewer_fn;
use super::*;
use crate::flow::builder::{self, Human, Tool, accept, stop};
use crate::tool::tests::mcp::{Program, eventually, runs};

fn ask(human: Human) -> Flow {
    let human = human.option(accept("yes", "Yes")).option(stop("no", "No"));
    builder::Flow::new("ask").human("ask", human).build().unwrap()
}

/// A tool node whose tool asks for permission itself.
fn deletes() -> Flow {
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let tool = shared::definition::Tool {
        ask_permission: shared::definition::AskPermission::Switch(true),
        ..builder::function("Deletes a file", parameters)
    };
    let node = Tool::new("delete_file").settings(tool).argument("path", "/tmp/x");
    builder::Flow::new("deletes").node("delete", node).build().unwrap()
}

/// Options with the function `delete_file`, which counts its calls.
fn with_deletion(deleted: &Arc<AtomicU32>) -> Options {
    let deleted = Arc::clone(deleted);
    Options::new().tool("delete_file", move |arguments| {
        let deleted = Arc::clone(&deleted);
        async move {
            deleted.fetch_add(1, Ordering::SeqCst);
            Ok::<_, String>(json!({ "deleted": arguments["path"] }))
        }
    })
}

/// On Linux only, since `/proc` shows whether the MCP server still runs.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_cancelled_run_cancels_its_mcp_call_and_a_shutdown_ends_the_server() {
    let program = Program::new();
    let settings = crate::config::SettingsFile { mcp: program.settings(), ..crate::config::SettingsFile::default() };
    let countersign = Options::new().settings(settings).start().await.unwrap();
    let kind = ToolKind::Mcp(McpTool { server: "sh".to_owned(), tool: "wait".to_owned() });
    let tool = shared::definition::Tool { kind, ..builder::function("Waits", json!({ "type": "object" })) };
    let flow = builder::Flow::new("waits").node("wait", Tool::new("wait").settings(tool)).build().unwrap();
    let running = countersign.launch(&flow, json!({}), Context::default()).await.unwrap();
    eventually("it is called", || !program.lines("waiting").is_empty()).await;
    running.cancel(None).await.unwrap();
    eventually("it is told", || program.lines("cancelled").len() == 1).await;
    countersign.shutdown().await;
    let pids = program.lines("pids");
    assert_eq!(pids.len(), 1);
    eventually("it has ended", || !runs(&pids[0])).await;
}

#[tokio::test]
async fn a_denial_never_touches_the_function() {
    let deleted = Arc::new(AtomicU32::new(0));
    let countersign =
        with_deletion(&deleted).reviewer(|_| async { Choice::reject("not this one") }).start().await.unwrap();
    let error = countersign.run(&deletes(), json!({})).await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!(failure.code, FlowCode::ToolPermissionDenied);
    assert!(failure.message.contains("not this one"), "{failure}");
    assert_eq!(deleted.load(Ordering::SeqCst), 0);
    countersign.shutdown().await;
}

#[tokio::test]
async fn an_approved_call_gets_the_arguments_that_were_shown() {
    let deleted = Arc::new(AtomicU32::new(0));
    let countersign = with_deletion(&deleted).reviewer(|_| async { Choice::approve() }).start().await.unwrap();
    let finished = countersign.run(&deletes(), json!({})).await.unwrap();
    assert_eq!(finished.output["delete"], json!({ "deleted": "/tmp/x" }));
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
    assert_eq!(finished.report.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_function_that_is_missing_is_found_before_the_run() {
    let countersign = Options::new().start().await.unwrap();
    let error = countersign.run(&deletes(), json!({})).await.unwrap_err();
    let RunError::Invalid(mistakes) = error else { panic!("{error}") };
    assert_eq!(mistakes[0].path, "/tools/delete_file");
    assert!(countersign.run(&ask(Human::new("?")), json!([1])).await.unwrap_err().to_string().contains("object"));
}

#[tokio::test]
async fn a_handler_that_is_a_function_decides_or_leaves_it_to_the_reviewer() {
    let limits = |review: Review| async move {
        match review.usage.agent_calls.len() {
            0 if review.title.contains("small") => Handled::Decide(Choice::option("yes").comment("It is small.")),
            0 if review.title.contains("odd") => Choice::option("maybe").into(),
            0 if review.title.contains("wordy") => Choice::option("yes").metadata("note", "x".repeat(17_000)).into(),
            _ => Handled::Pass("Too much for me.".to_owned()),
        }
    };
    let reviewer = |review: Review| async move {
        assert_eq!(review.advice[0].by, "limits");
        Choice::option("no").comment(review.advice[0].reason.clone())
    };
    let countersign = Options::new().handler("limits", limits).reviewer(reviewer).start().await.unwrap();
    let asks = |prompt: &str| ask(Human::new(prompt).handler("limits"));
    let finished = countersign.run(&asks("A small one?"), json!({})).await.unwrap();
    let resolution = finished.report.reviews[0].resolution.clone().unwrap();
    assert_eq!(
        (resolution.via, resolution.by.len(), resolution.reason.as_deref()),
        (Via::Auto, 0, Some("It is small."))
    );
    for (prompt, why) in [
        ("A large one?", "Too much for me."),
        ("An odd one?", "Its answer is not valid: "),
        ("A wordy one?", "Its answer is not valid: /metadata"),
    ] {
        let error = countersign.run(&asks(prompt), json!({})).await.unwrap_err();
        let message = error.failure().unwrap().message.clone();
        assert!(message.starts_with(why), "{message}");
    }
    let missing = countersign.run(&ask(Human::new("?").handler("other")), json!({})).await.unwrap_err();
    let RunError::Invalid(mistakes) = missing else { panic!("{missing}") };
    assert_eq!(mistakes[0].path, "/nodes/ask/human/handlers/0");
    assert!(mistakes[0].message.contains("add it with `handler`"), "{mistakes:?}");
    let webhook = countersign.run(&ask(Human::new("?").webhook("https://ok.test")), json!({})).await.unwrap_err();
    assert!(webhook.to_string().contains("COUNTERSIGN_HANDLER_SECRET"), "{webhook}");
    countersign.shutdown().await;
}

#[tokio::test]
async fn a_review_that_nobody_here_may_decide_ends_the_waiting_and_says_for_whom_it_is() {
    let countersign = Options::new().reviewer(|_| async { Choice::option("yes") }).start().await.unwrap();
    let error = countersign.run(&ask(Human::new("?").role("legal")), json!({})).await.unwrap_err();
    let RunError::Undecided { review, why } = error else { panic!("{error}") };
    assert_eq!(review.node, Some("ask".parse::<NodeId>().unwrap()));
    assert!(why.contains("the role legal"), "{why}");
}

#[tokio::test]
async fn each_of_several_people_is_asked_what_they_may_decide() {
    let by = |option: &'static str| reviewer_fn(move |_| async move { Choice::option(option) });
    let countersign = Options::new()
        .person("ana", ["editor"], Via::Human, by("yes"))
        .person("tom", ["legal"], Via::Slack, by("no"))
        .start()
        .await
        .unwrap();
    let finished = countersign.run(&ask(Human::new("?").role("editor")), json!({})).await.unwrap();
    let resolution = finished.report.reviews[0].resolution.as_ref().unwrap();
    assert_eq!((resolution.by[0].as_str(), resolution.via), ("ana", Via::Human));
    let error = countersign.run(&ask(Human::new("?").role("legal")), json!({})).await.unwrap_err();
    assert!(error.is_rejected());
}

#[tokio::test]
async fn a_reviewer_who_fails_or_breaks_down_or_says_what_does_not_fit_cannot_be_overlooked() {
    let failing = |_: Review| async { Err::<Choice, _>("the chat is away") };
    let unknown = |_: Review| async { Ok::<_, String>(Choice::option("maybe")) };
    let breaking = |_: Review| async { if true { panic!("a bug") } else { Choice::option("yes") } };
    let options =
        [Options::new().reviewer(failing), Options::new().reviewer(unknown), Options::new().reviewer(breaking)];
    let mut said = Vec::new();
    for options in options {
        let countersign = options.start().await.unwrap();
        said.push(countersign.run(&ask(Human::new("?")), json!({})).await.unwrap_err().to_string());
    }
    assert!(said[0].contains("the chat is away") && said[1].contains("`maybe` is not an option"), "{said:?}");
    assert!(said[2].contains("panicked"), "{said:?}");
}

#[tokio::test]
async fn the_time_is_up_while_the_reviewer_thinks() {
    let countersign = Options::new().reviewer(|_| std::future::pending::<Choice>()).start().await.unwrap();
    let human = Human::new("?").timeout(Span(Duration::from_millis(200)), OnTimeout::Approve);
    let finished = countersign.run(&ask(human), json!({})).await.unwrap();
    assert_eq!(finished.report.reviews[0].resolution.as_ref().unwrap().outcome, Outcome::Expired);
}

#[tokio::test]
async fn whoever_an_escalation_adds_is_asked_as_well() {
    let ana = reviewer_fn(|_| std::future::pending::<Choice>());
    let lea = reviewer_fn(|_| async { Choice::option("yes") });
    let options = Options::new().person("ana", ["editor"], Via::Human, ana).person("lea", ["lead"], Via::Human, lea);
    let countersign = options.start().await.unwrap();
    let then = Box::new(OnTimeout::Reject);
    let escalate = Escalate { escalate: "lead".to_owned(), extend: Span(Duration::from_hours(1)), then };
    let human = Human::new("?").role("editor").timeout(Span(Duration::from_millis(200)), OnTimeout::Escalate(escalate));
    let flow = ask(human);
    let finished = tokio::time::timeout(Duration::from_secs(20), countersign.run(&flow, json!({})));
    let finished = finished.await.expect("lea is asked").unwrap();
    assert_eq!(finished.report.reviews[0].resolution.as_ref().unwrap().by[0].as_str(), "lea");
}

#[tokio::test]
async fn the_console_of_a_program_follows_the_settings() {
    let settings = "origins = [\"https://reviews.example.org\"]\n\
        network.hosts = [\"console.internal\"]\n\
        logins.second_factor = \"all\"";
    let options = Options::new().settings(toml::from_str(settings).unwrap()).listen(([127, 0, 0, 1], 0).into());
    let countersign = options.reviewer(|_| std::future::pending::<Choice>()).start().await.unwrap();
    let api = format!("http://{}/api/v1", countersign.address().unwrap());
    let client = crate::http_client::builder().no_proxy().build().unwrap();
    let status =
        async |host: &str| client.get(format!("{api}/me")).header("host", host).send().await.unwrap().status().as_u16();
    assert_eq!((status("reviews.example.org").await, status("console.internal").await), (401, 401));
    assert_eq!(status("elsewhere.example").await, 400);

    let secret = json!({ "token": countersign.links()[0].1 });
    let login = client.post(format!("{api}/session")).header("host", "reviews.example.org").json(&secret);
    let login = login.header("origin", "https://reviews.example.org").send().await.unwrap();
    assert_eq!(login.status().as_u16(), 200);
    let cookie = login.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap();
    let refused = client.get(format!("{api}/reviews")).header("cookie", cookie).send().await.unwrap();
    assert!(refused.text().await.unwrap().contains("second_factor_missing"));
    countersign.shutdown().await;
}

#[tokio::test]
async fn people_who_are_not_asked_can_log_in_to_the_console() {
    let options = Options::new().decider("ana", ["editor"]).decider("tom", []).listen(([127, 0, 0, 1], 0).into());
    let options = options.person("tom", [], Via::Human, reviewer_fn(|_| std::future::pending::<Choice>()));
    let countersign = options.start().await.unwrap();
    let names: Vec<_> = countersign.links().iter().map(|(username, _)| username.as_str()).collect();
    assert_eq!(names, ["ana", "tom"]);
    countersign.shutdown().await;
}

#[tokio::test]
async fn the_number_of_workers_has_the_limits_of_a_server() {
    let settings = crate::config::SettingsFile { workers: Some(0), ..crate::config::SettingsFile::default() };
    let error = Options::new().settings(settings).start().await.err().unwrap();
    assert!(matches!(error, StartError::Settings(_)), "{error}");
}

#[tokio::test]
async fn a_run_that_waits_goes_on_in_the_next_program() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("kept.db").display());
    let first = Options::new().database(&url).reviewer(|_| std::future::pending::<Choice>()).start().await.unwrap();
    let mut running = first.launch(&ask(Human::new("?")), json!({}), Context::default()).await.unwrap();
    let run = running.id();
    while let Some(event) = running.next().await {
        if event.kind == shared::log::EntryKind::WorkflowWaiting {
            break;
        }
    }
    drop(running);
    first.shutdown().await;

    let second = Options::new().database(&url).reviewer(|_| async { Choice::option("yes") }).start().await.unwrap();
    let mut news = second.inner.news.subscribe();
    let completed = async {
        while second.inner.store.run(run).await.unwrap().unwrap().outcome.is_none() {
            let _ = news.recv().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), completed).await.unwrap();
    second.shutdown().await;
}

#[tokio::test]
async fn who_goes_on_with_a_run_that_nobody_here_may_decide_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("kept.db").display());
    let options = || Options::new().database(&url).reviewer(|_| async { Choice::option("yes") });
    let first = options().start().await.unwrap();
    let flow = ask(Human::new("?").role("legal"));
    let running = first.launch(&flow, json!({}), Context::default()).await.unwrap();
    let run = running.id();
    assert!(matches!(running.finished().await, Err(RunError::Undecided { .. })));
    first.shutdown().await;

    let second = options().start().await.unwrap();
    let finished = second.attach(run).await.unwrap().unwrap().finished();
    let error = tokio::time::timeout(Duration::from_secs(20), finished).await.expect("it is told").unwrap_err();
    let RunError::Undecided { why, .. } = error else { panic!("{error}") };
    assert!(why.contains("the role legal"), "{why}");
    second.shutdown().await;
}

#[tokio::test]
async fn a_reviewer_who_has_declined_is_asked_again_when_the_program_attaches_to_the_run() {
    let asked = Arc::new(AtomicU32::new(0));
    let reviewer = move |_: Review| {
        let is_first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if is_first { Err("the chat is away") } else { Ok(Choice::option("yes")) } }
    };
    let countersign = Options::new().reviewer(reviewer).start().await.unwrap();
    let running = countersign.launch(&ask(Human::new("?")), json!({}), Context::default()).await.unwrap();
    let run = running.id();
    assert!(matches!(running.finished().await, Err(RunError::Undecided { .. })));
    let finished = countersign.attach(run).await.unwrap().unwrap().finished();
    let finished = tokio::time::timeout(Duration::from_secs(20), finished).await.expect("it is asked again");
    assert_eq!(finished.unwrap().report.status, RunStatus::Completed);
    countersign.shutdown().await;
}

#[tokio::test]
async fn a_program_decides_when_it_likes_and_goes_on_with_a_run_of_an_earlier_start() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("kept.db").display());
    let options = || Options::new().database(url.clone()).decider("ana", ["editor"]).decider("tom", []);
    let flow = ask(Human::new("Go on?").role("editor"));

    let first = options().start().await.unwrap();
    let mut running = first.launch(&flow, json!({}), Context::default()).await.unwrap();
    let run = running.id();
    let asked = running.paused().await.unwrap().expect("it waits");
    assert_eq!(asked.iter().map(|review| review.prompt.as_str()).collect::<Vec<_>>(), ["Go on?"]);
    drop(running);
    first.shutdown().await;

    let second = options().start().await.unwrap();
    let mut running = second.attach(run).await.unwrap().expect("it is kept");
    assert_eq!(running.paused().await.unwrap().map(|asked| asked.len()), Some(1));
    let review = second.pending(run).await.unwrap().remove(0);
    let refused = second.decide(&review, Choice::option("yes"), "tom").await;
    assert!(matches!(refused, Err(DecideError::Forbidden(_) | DecideError::NotFound(_))), "{refused:?}");
    let refused = second.decide(&review, Choice::option("perhaps"), "ana").await;
    assert!(matches!(refused, Err(DecideError::Invalid(_))), "{refused:?}");
    let wordy = Choice::option("yes").metadata("note", "x".repeat(17_000));
    match second.decide(&review, wordy, "ana").await {
        Err(DecideError::Invalid(mistakes)) => {
            assert_eq!((&*mistakes[0].path, &*mistakes[0].code), ("/metadata", "too_long"));
        }
        other => panic!("{other:?}"),
    }
    let nobody = second.decide(&review, Choice::option("yes"), "eve").await;
    assert!(matches!(nobody, Err(DecideError::NotFound(_))), "{nobody:?}");
    let decided = second.decide(&review, Choice::option("yes"), "ana").await.unwrap();
    assert_eq!(decided.resolution.as_ref().unwrap().outcome, Outcome::Accepted);
    match second.decide(&review, Choice::option("no"), "ana").await {
        Err(DecideError::Over(review)) => assert_eq!(review.resolution, decided.resolution),
        other => panic!("{other:?}"),
    }
    assert_eq!(running.paused().await.unwrap(), None, "it has gone on, and is over");
    assert_eq!(running.finished().await.unwrap().report.status, RunStatus::Completed);
    assert!(second.attach(RunId(uuid::Uuid::nil())).await.unwrap().is_none());
    second.shutdown().await;
}

#[tokio::test]
async fn a_question_without_a_flow_is_answered_or_it_is_said_why_it_will_not_be() {
    let countersign = Options::new().reviewer(|_| async { Choice::option("approve") }).start().await.unwrap();
    let question = |more: Value| {
        let mut question = json!({
            "kind": "approval", "description": "Pay back 20 € to Acme.",
            "action": { "name": "refund", "arguments": { "amount": 20 } },
        });
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value::<shared::new_review::NewReview>(question).unwrap()
    };
    let asked = countersign.ask(&question(json!({}))).await.unwrap();
    let answered = tokio::time::timeout(Duration::from_secs(20), countersign.answered(asked.id)).await.unwrap();
    let resolution = answered.unwrap().resolution.unwrap();
    assert_eq!((&resolution.answer.unwrap()["approved"], resolution.by.len()), (&json!(true), 1));

    let for_others = countersign.ask(&question(json!({ "reviewers": { "roles": ["legal"] } }))).await.unwrap();
    let answered = tokio::time::timeout(Duration::from_secs(20), countersign.answered(for_others.id)).await.unwrap();
    let RunError::Undecided { review, why } = answered.unwrap_err() else { panic!("it is not answered") };
    assert!(review.id == for_others.id && why.contains("the role legal"), "{why}");

    for (wrong, place) in [
        (json!({ "callback_url": "https://example.org" }), "/callback_url"),
        (json!({ "on_timeout": "reject" }), "/on_timeout"),
    ] {
        let refused = countersign.ask(&question(wrong)).await.unwrap_err();
        let RunError::Invalid(mistakes) = refused else { panic!("{refused}") };
        assert_eq!(mistakes[0].path, place);
    }
    countersign.shutdown().await;
}
