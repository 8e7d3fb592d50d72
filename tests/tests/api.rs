//! The contract of the HTTP API: which requests are refused, with which status and code, and that they have no effect.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use shared::api::{DecisionEffect, NewToken};
use shared::error::{Code, Problem};
use shared::id::{ReviewId, RunId};
use shared::review::{Review, ReviewStatus};
use shared::run::RunStatus;
use tests::reviewing::launch_as;
use tests::{Api, Database, HttpTransport, Options, Recorder, Server, Socket, eventually, flows};

/// Sends a request that must be refused, and returns the status and the problem.
async fn answer(
    api: &Api,
    method: Method,
    path: &str,
    content_type: &str,
    body: impl Into<reqwest::Body>,
) -> (u16, Problem) {
    let request = api.transport.raw(method.clone(), path).header("content-type", content_type).body(body);
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type").cloned();
    let text = response.text().await.expect("a body");
    let problem: Problem =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method} {path}: {error}: {text}"));
    assert_eq!(kind.expect("a content type"), "application/problem+json", "{method} {path}");
    assert_eq!(problem.status, status, "{method} {path}");
    (status, problem)
}

async fn post(api: &Api, path: &str, body: &Value) -> (u16, Problem) {
    answer(api, Method::POST, path, "application/json", body.to_string()).await
}

async fn save(api: &Api, id: &str, source: &str) -> (u16, Problem) {
    answer(api, Method::PUT, &format!("/api/v1/flows/{id}"), "application/yaml", source.to_owned()).await
}

async fn pending(api: &Api, run: RunId) -> Review {
    eventually("the run has a pending review", async || {
        let reviews = api.run_reviews(run).await.ok()?.items;
        reviews.into_iter().find(|review| review.status == ReviewStatus::Pending)
    })
    .await
}

fn decision(review: &Review, verdict: impl Into<Value>) -> Value {
    let verdict: Value = verdict.into();
    json!({ "revision": review.revision, "digest": review.digest, "verdict": verdict })
}

/// A description of the mistake, the flow's source, and the line (0 for any) and code that must be reported, if given.
type WrongFlow = (&'static str, String, Option<(u32, &'static str)>);

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_a_flow_is_found_when_it_is_saved() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let admin = server.admin().await;
    let node = "nodes:\n  a: { set: { x: 1 } }\n";
    let human = |rest: &str| format!("id: bad\ntitle: Bad\nnodes:\n  a:\n    human:\n      prompt: Well?\n{rest}");
    let cases: &[WrongFlow] = &[
        ("malformed YAML", "id: bad\ntitle: [unclosed\nnodes: {}\n".to_owned(), None),
        ("an unknown key", format!("id: bad\ntitle: Bad\ncolour: red\n{node}"), Some((3, "FLOW_INVALID"))),
        ("an unknown key of a node", human("      colour: red\n"), Some((7, "FLOW_INVALID"))),
        ("a target that is not there", format!("id: bad\ntitle: Bad\n{}", "nodes:\n  a: { set: { x: 1 }, next: b }\n"), None),
        ("no nodes", "id: bad\ntitle: Bad\nnodes: {}\n".to_owned(), None),
        ("two nodes of one name", format!("id: bad\ntitle: Bad\n{node}  a: {{ set: {{ x: 2 }} }}\n"), None),
        ("two kinds at once", "id: bad\ntitle: Bad\nnodes:\n  a: { set: { x: 1 }, router: {} }\n".to_owned(), None),
        ("a channel that nobody can be reached in", human("      handlers: [{ slack: { channel: x } }]\n"), Some((7, "FLOW_INVALID"))),
        ("a policy without options to vote on", human("      policy: majority\n"), Some((7, "FLOW_INVALID"))),
        ("a validator that is no CEL", human("      validator: { when: 'response.text ==' }\n"), Some((7, "FLOW_INVALID"))),
        ("an escalation circle", human("      timeout: 1h\n      on_timeout: { escalate: lead, extend: 1h, then: { escalate: lead, extend: 1h, then: reject } }\n"), Some((8, "FLOW_INVALID"))),
        ("two ways of resolving at once", human("      handlers: [{ auto: approve }, human]\n"), Some((7, "FLOW_INVALID"))),
        ("a condition that is no CEL", "id: bad\ntitle: Bad\nnodes:\n  a: { set: { x: 1 }, next: [{ to: b, when: 'x ==' }, { to: b, else: true }] }\n  b: { set: { y: 1 } }\n".to_owned(), None),
        ("a template that does not end", "id: bad\ntitle: Bad\nnodes:\n  a: { set: { x: '{{ oops' } }\n".to_owned(), None),
        ("an unreachable node", format!("id: bad\ntitle: Bad\n{node}  b: {{ set: {{ y: 1 }} }}\n"), None),
        ("a tool that is not there", "id: bad\ntitle: Bad\nnodes:\n  a: { tool: none }\n".to_owned(), None),
        ("a filter that is not there", "id: bad\ntitle: Bad\nnodes:\n  a: { set: { x: '{{ 1 | urlencod }}' } }\n".to_owned(), Some((4, "FLOW_INVALID"))),
        ("a correction of nothing", human("      options: [{ id: c, kind: correct, label: C }]\n"), None),
    ];
    for (what, source, place) in cases {
        let (status, problem) = save(&admin, "bad", source).await;
        assert_eq!((status, problem.code), (422, Code::FlowInvalid), "{what}: {problem}");
        assert!(!problem.errors.is_empty(), "{what}: every mistake is named");
        for mistake in &problem.errors {
            assert!(mistake.line.is_some() && mistake.column.is_some(), "{what}: {mistake} has no place");
        }
        if let Some((line, code)) = place {
            let named =
                |mistake: &shared::error::Mistake| mistake.code == *code && (*line == 0 || mistake.line == Some(*line));
            assert!(problem.errors.iter().any(named), "{what}: {problem}");
        }
        let checked = admin.validate_flow(source).await.expect("validation answers");
        assert!(!checked.valid && !checked.errors.is_empty(), "{what}: validate says otherwise");
    }
    let (status, _) = save(&admin, "another", &format!("id: bad\ntitle: Bad\n{node}")).await;
    assert_eq!(status, 422, "the id in the path is not that of the file");
    let (status, problem) = save(&admin, "Bad_Id", &format!("id: bad\ntitle: Bad\n{node}")).await;
    assert_eq!((status, problem.errors[0].path.as_str()), (422, "/id"), "{problem}");
    let (_, problem) = answer(&admin, Method::GET, "/api/v1/flows/bad", "application/json", "").await;
    assert_eq!(problem.code, Code::NotFound, "nothing was saved");
}

#[tokio::test(flavor = "multi_thread")]
async fn delegating_to_a_person_and_to_a_node_at_once_is_refused() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let admin = server.admin().await;
    let source = "id: bad\ntitle: Bad\nagents:\n  w: { model: demo/w }\nnodes:\n  write: { agent: w, prompt: Go, next: [check, send] }\n  \
                  check:\n    human:\n      prompt: Well?\n      options: [{ id: ok, label: Fine }]\n  send: { set: { sent: true } }\n";
    let (_, problem) = save(&admin, "bad", source).await;
    assert!(problem.errors.iter().any(|mistake| mistake.code == "FLOW_INVALID_DELEGATION"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_cannot_be_meant_are_refused() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flows::question("question", "{ roles: [reviewer] }")).await;
    let admin = server.admin().await;
    let json = "application/json";
    let deep = |depth: usize| {
        format!(r#"{{"flow":"question","input":{{"text":{}1{}}}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    let big = "x".repeat(10 << 20);
    let runs = "/api/v1/runs";
    let cases: &[(&str, &str, &str, String, u16)] = &[
        ("no JSON", runs, json, "{\"flow\":".to_owned(), 400),
        ("no object", runs, json, "[]".to_owned(), 422),
        ("an unknown field", runs, json, r#"{"flow":"question","colour":"red"}"#.to_owned(), 422),
        ("a doubled key", runs, json, r#"{"flow":"question","flow":"question"}"#.to_owned(), 422),
        ("a doubled key inside", runs, json, r#"{"flow":"question","input":{"text":"a","text":"b"}}"#.to_owned(), 422),
        ("U+0000", runs, json, "{\"flow\":\"question\",\"input\":{\"text\":\"a\\u0000\"}}".to_owned(), 422),
        ("nesting", runs, json, deep(100), 422),
        ("a lot of nesting", runs, json, deep(50_000), 422),
        ("10 MB", runs, json, format!(r#"{{"flow":"question","input":{{"text":"{big}"}}}}"#), 413),
        ("another content type", runs, "text/plain", r#"{"flow":"question"}"#.to_owned(), 415),
        ("input that does not fit", runs, json, r#"{"flow":"question","input":{"text":7}}"#.to_owned(), 422),
        ("a flow that is not there", runs, json, r#"{"flow":"none"}"#.to_owned(), 404),
        ("a version that is not there", runs, json, r#"{"flow":"question","version":9}"#.to_owned(), 404),
        ("an id that is none", "/api/v1/runs/7/cancel", json, "{}".to_owned(), 404),
        ("a short password", "/api/v1/users", json, r#"{"username":"eve","password":"short"}"#.to_owned(), 422),
        (
            "a name that is none",
            "/api/v1/users",
            json,
            r#"{"username":"E V E","password":"long enough"}"#.to_owned(),
            422,
        ),
    ];
    for (what, path, content_type, body, expected) in cases {
        let (status, problem) = answer(&admin, Method::POST, path, content_type, body.clone()).await;
        assert_eq!(status, *expected, "{what}: {problem}");
    }
    assert_eq!(admin.runs(&shared::api::RunQuery::default()).await.expect("a list").items, [], "nothing was started");
    let (status, _) = answer(&admin, Method::GET, "/api/v1/nowhere", json, "").await;
    assert_eq!(status, 404);
    let (status, _) = answer(&admin, Method::DELETE, "/api/v1/runs", json, "").await;
    assert_eq!(status, 405);
    let (status, problem) = answer(&admin, Method::GET, "/api/v1/runs?limit=some", json, "").await;
    assert_eq!(status, 422, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_does_not_fit_changes_nothing() {
    let recorder = Recorder::start(Duration::ZERO).await;
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flows::article(&recorder.url)).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let admin = server.admin().await;
    let run = launch_as(&admin, "article", json!({ "topic": "the sea" })).await;
    let review = pending(&ana, run).await;
    let path = format!("/api/v1/reviews/{}/decisions", review.id);
    let with = |verdict: Value, more: Value| {
        let mut body = decision(&review, verdict);
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    let choose = |option: &str| json!({ "type": "choose", "option": option });
    let cases: &[(&str, Value, u16, Code)] = &[
        ("an unknown option", with(choose("maybe"), json!({})), 422, Code::Invalid),
        (
            "actions, where there are none",
            with(json!({ "type": "actions", "decisions": {} }), json!({})),
            422,
            Code::Invalid,
        ),
        (
            "an edit of a key that is not editable",
            with(choose("approve"), json!({ "edits": { "topic": "x" } })),
            422,
            Code::Invalid,
        ),
        (
            "an edit of a key that is not shown",
            with(choose("approve"), json!({ "edits": { "other": "x" } })),
            422,
            Code::Invalid,
        ),
        (
            "edits beside a correction",
            with(choose("shorten"), json!({ "edits": { "draft": "x" } })),
            422,
            Code::Invalid,
        ),
        ("a correction without a message", with(choose("rewrite"), json!({})), 422, Code::Invalid),
        ("an unknown field", with(choose("approve"), json!({ "colour": "red" })), 422, Code::Invalid),
        ("an unknown verdict", with(json!({ "type": "dance" }), json!({})), 422, Code::Invalid),
        (
            "an older revision",
            with(choose("approve"), json!({ "revision": review.revision + 1 })),
            409,
            Code::RevisionChanged,
        ),
        ("another digest", with(choose("approve"), json!({ "digest": "sha256:00" })), 409, Code::RevisionChanged),
        ("no digest", json!({ "revision": 1, "verdict": choose("approve") }), 422, Code::Invalid),
    ];
    for (what, body, status, code) in cases {
        let (got, problem) = post(&ana, &path, body).await;
        assert_eq!((got, problem.code), (*status, *code), "{what}: {problem}");
        if *code == Code::RevisionChanged {
            assert_eq!(problem.review.expect("the current review").digest, review.digest, "{what}");
        } else {
            assert!(!problem.errors.is_empty(), "{what}: the field is named");
        }
    }
    let unchanged = ana.review(review.id).await.expect("seen");
    assert_eq!((unchanged.status, unchanged.decisions.len()), (ReviewStatus::Pending, 0));

    let nothing = ReviewId(uuid::Uuid::nil());
    let (status, _) =
        post(&ana, &format!("/api/v1/reviews/{nothing}/decisions"), &with(choose("approve"), json!({}))).await;
    assert_eq!(status, 404);

    // The same decision with the same key gets the same answer; another decision with that key is refused.
    let body = decision(&review, json!({ "type": "choose", "option": "approve" }));
    let request = serde_json::from_value(body.clone()).expect("a decision");
    let first = ana.decide(review.id, &request, Some("k1")).await.expect("decided");
    let again = ana.decide(review.id, &request, Some("k1")).await.expect("the same answer");
    assert_eq!((first.outcome, &first), (DecisionEffect::Resolved, &again));
    let other = shared::decision::DecisionRequest { comment: Some("other".to_owned()), ..request };
    assert_eq!(ana.decide(review.id, &other, Some("k1")).await.expect_err("refused").code, Code::KeyReused);
    let late = ana.decide(review.id, &other, None).await.expect_err("refused");
    assert_eq!(late.code, Code::ReviewResolved);
    assert_eq!(late.resolution.expect("who and how").by[0].as_str(), "ana");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_what_was_approved() {
    let recorder = Recorder::start(Duration::ZERO).await;
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flows::article(&recorder.url)).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let admin = server.admin().await;
    let run = launch_as(&admin, "article", json!({ "topic": "the sea" })).await;
    let draft = pending(&ana, run).await;
    let mut body = decision(&draft, json!({ "type": "choose", "option": "approve" }));
    body["edits"] = json!({ "draft": "What Ana wrote." });
    ana.decide(draft.id, &serde_json::from_value(body).expect("a decision"), None).await.expect("decided");

    let gate = eventually("the gate asks", async || {
        let reviews = ana.run_reviews(run).await.ok()?.items;
        reviews.into_iter().find(|review| review.id != draft.id && review.status == ReviewStatus::Pending)
    })
    .await;
    assert_eq!(gate.actions.len(), 1);
    let action = &gate.actions[0];
    assert_eq!(action.arguments["text"], "What Ana wrote.");
    assert_eq!(recorder.calls(), [], "nothing runs before it is allowed");

    let path = format!("/api/v1/reviews/{}/decisions", gate.id);
    let answers = |answer: Value| json!({ "type": "actions", "decisions": { (&action.id): answer } });
    let cases = [
        ("an action left out", json!({ "type": "actions", "decisions": {} })),
        ("an action that is not there", json!({ "type": "actions", "decisions": { "other": { "type": "approve" } } })),
        (
            "one too many",
            json!({ "type": "actions", "decisions": { (&action.id): { "type": "approve" }, "other": { "type": "approve" } } }),
        ),
        ("a decision that is not allowed", answers(json!({ "type": "respond", "message": "no" }))),
        (
            "arguments that break the schema",
            answers(json!({ "type": "edit", "arguments": { "topic": 1, "text": "x" } })),
        ),
        (
            "an argument too many",
            answers(json!({ "type": "edit", "arguments": { "topic": "a", "text": "x", "to": "all" } })),
        ),
        ("an option, where there are none", json!({ "type": "choose", "option": "approve" })),
    ];
    for (what, verdict) in cases {
        let (status, problem) = post(&ana, &path, &decision(&gate, verdict)).await;
        assert_eq!((status, problem.code), (422, Code::Invalid), "{what}: {problem}");
    }
    assert_eq!(recorder.calls(), [], "nothing runs because of what was refused");

    let edited = json!({ "type": "edit", "arguments": { "topic": "the sea", "text": "Changed at the gate." } });
    let body = decision(&gate, answers(edited));
    ana.decide(gate.id, &serde_json::from_value(body).expect("a decision"), None).await.expect("decided");
    eventually("the run is over", async || {
        let run = admin.run(run).await.ok()?;
        (run.summary.status == RunStatus::Completed).then_some(())
    })
    .await;
    let calls = recorder.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].arguments, json!({ "topic": "the sea", "text": "Changed at the gate." }));
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_sees_and_does_only_what_they_may() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flows::question("question", "{ roles: [editor] }")).await;
    server.save(&flows::question("own", "{ not_requester: true }")).await;
    let admin = server.admin().await;
    let editor = server.person("edith", &["reviewer", "editor"]).await;
    let reviewer = server.person("rita", &["reviewer"]).await;
    let developer = server.person("dora", &["developer", "reviewer"]).await;
    let run = launch_as(&developer, "question", json!({ "text": "x" })).await;
    let review = pending(&admin, run).await;
    let approve = decision(&review, json!({ "type": "choose", "option": "approve" }));
    let path = format!("/api/v1/reviews/{}/decisions", review.id);

    // A reviewer without the role does not even see it.
    assert_eq!(reviewer.review(review.id).await.expect_err("hidden").status, 404);
    assert_eq!(reviewer.run(run).await.expect_err("hidden").status, 404);
    assert_eq!(post(&reviewer, &path, &approve).await.0, 404);
    // Those who see all runs see it, but may not decide it; being an admin includes no other role.
    for person in [&developer, &admin] {
        let (status, problem) = post(person, &path, &approve).await;
        assert_eq!((status, problem.code), (403, Code::Forbidden));
    }
    // Neither a caller without credentials nor one with an invalid token may decide.
    let stranger = Api::new(HttpTransport::with_token(&server.base, "no-token"));
    for nobody in [&server.nobody(), &stranger] {
        let (status, problem) = post(nobody, &path, &approve).await;
        assert_eq!((status, problem.code), (401, Code::Unauthenticated));
    }
    // Requests from pages of other sites are refused; those from this site, or from no page, are not.
    let foreign = |origin: &str| {
        editor.transport.raw(Method::POST, &path).header("origin", origin.to_owned()).json(&approve).send()
    };
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let response = foreign(origin).await.expect("an answer");
        assert_eq!(response.status(), 403, "{origin}");
        let problem: Problem = response.json().await.expect("a problem");
        assert_eq!(problem.code, Code::ForeignOrigin, "{origin}");
        assert_eq!(Socket::open(&server.base, &editor, &[("origin", origin)]).await.err(), Some(403), "{origin}");
    }
    assert_eq!(Socket::open(&server.base, &server.nobody(), &[]).await.err(), Some(401));
    assert!(Socket::open(&server.base, &editor, &[("origin", &server.base)]).await.is_ok());
    // A token with some of its owner's roles has only these.
    let token = |roles: &[&str]| NewToken {
        name: "t".to_owned(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        expires_at: None,
    };
    let weak = editor.create_token(&token(&["reviewer"])).await.expect("a token").secret.expect("its secret");
    let weak = Api::new(HttpTransport::with_token(&server.base, &weak));
    assert_eq!(weak.review(review.id).await.expect_err("hidden").status, 404);
    assert!(editor.create_token(&token(&["admin"])).await.is_err(), "nobody gives what they do not have");
    // Only admins manage people and read the audit log.
    for path in ["/api/v1/audit", "/api/v1/users"] {
        let (status, _) = answer(&editor, Method::GET, path, "application/json", "").await;
        assert_eq!(status, 403, "{path}");
    }
    assert_eq!(foreign(&server.base).await.expect("an answer").status(), 200);

    // If the review excludes its requester, they may not approve it, neither over HTTP nor over the socket.
    let run = launch_as(&developer, "own", json!({ "text": "x" })).await;
    let review = pending(&admin, run).await;
    let body = decision(&review, json!({ "type": "choose", "option": "approve" }));
    let (status, _) = post(&developer, &format!("/api/v1/reviews/{}/decisions", review.id), &body).await;
    assert_eq!(status, 403);
    let mut socket = Socket::open(&server.base, &developer, &[]).await.expect("let in");
    let request = serde_json::from_value(body).expect("a decision");
    let message =
        shared::protocol::ClientMessage::Decide { r#ref: "r".to_owned(), review: review.id, decision: request };
    socket.send(&message).await;
    let refused = socket
        .wait_for(|message| match message {
            shared::protocol::ServerMessage::Reply { answer: shared::protocol::Answer::Problem(problem), .. } => {
                Some(problem.code)
            }
            shared::protocol::ServerMessage::Reply { .. } => Some(Code::Internal),
            _ => None,
        })
        .await;
    assert_eq!(refused, Code::Forbidden);
}
