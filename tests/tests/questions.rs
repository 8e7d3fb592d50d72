//! A program asks people questions over HTTP, without a flow, and waits for the answers, even across a restart of the
//! server.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shared::api::{AuditQuery, LogQuery, RunQuery};
use shared::log::{Audience, Entry};
use shared::protocol::{ServerMessage, Topic};
use tests::caller::{self, caller, choose, path_of};
use tests::{Database, Options, Server, Socket, eventually, on_both};

on_both! {
    each_kind_is_asked_and_its_answer_comes_within_a_second,
    a_question_and_its_answer_survive_a_kill,
    no_more_than_a_hundred_of_a_kind_wait_of_one_caller,
    several_people_vote_on_a_draft_and_the_text_that_they_agree_on_is_the_answer,
}

fn contains(whole: &Value, part: &Value) -> bool {
    part.as_object().is_some_and(|members| members.iter().all(|(name, value)| whole[name] == *value))
}

/// A question of each kind, the body of a decision, and members that the answer must contain.
fn each_kind() -> Vec<(Value, Value, Value)> {
    let stuck = json!({
        "kind": "escalation", "reason": "low_confidence", "explanation": "Nobody answers my mails.", "attempted": ["Two mails"],
    });
    let leave = json!({
        "kind": "approval", "description": "Pay back 20 € to Acme.", "severity": "high",
        "action": { "name": "refund", "arguments": { "amount": 20 } },
        "alternatives": [{ "id": "voucher", "description": "Send a voucher" }],
    });
    let which = json!({
        "kind": "clarification", "title": "A size", "question": "Which size, {{ secret.key }}?", "context": "For a child.",
        "options": [{ "id": "s", "label": "Small" }, { "id": "l", "label": "Large" }],
    });
    let draft = json!({
        "kind": "edit", "content": "Dear all", "purpose": "The greeting", "confidence": 0.4,
        "context": { "user": "u-1", "metadata": { "ticket": 7 } },
    });
    vec![
        (leave.clone(), choose("approve"), json!({ "approved": true, "by": "ana" })),
        (
            leave.clone(),
            json!({ "verdict": { "type": "choose", "option": "reject" }, "comment": "Too much." }),
            json!({ "approved": false, "reason": "Too much." }),
        ),
        (leave, choose("voucher"), json!({ "approved": false, "alternative": "voucher" })),
        (which.clone(), choose("l"), json!({ "option": "l", "by": "ana" })),
        (which.clone(), json!({ "verdict": { "type": "text", "text": "Medium." } }), json!({ "text": "Medium." })),
        (
            draft,
            json!({ "verdict": { "type": "choose", "option": "done" }, "edits": { "content": "Dear Ann" } }),
            json!({ "content": "Dear Ann", "changed": true, "summary": "1 word added, 1 removed" }),
        ),
        (
            stuck.clone(),
            json!({ "verdict": { "type": "choose", "option": "agent_continue", "fields": { "guidance": "Call them." } } }),
            json!({ "decision": "agent_continue", "guidance": "Call them.", "by": "ana" }),
        ),
        (
            stuck,
            json!({ "verdict": { "type": "choose", "option": "abort", "fields": { "reason": "Leave it." } } }),
            json!({ "decision": "abort", "reason": "Leave it." }),
        ),
        (
            json!({ "kind": "checkpoint", "phase": "Import", "progress": 0.4, "issues": ["It is slow."] }),
            json!({ "verdict": { "type": "choose", "option": "continue" }, "comment": "Slowly." }),
            json!({ "decision": "continue", "instructions": "Slowly." }),
        ),
        (
            json!({ "kind": "handoff", "to": "reviewer", "reason": "The day is over." }),
            choose("taken"),
            json!({ "taken": true, "by": "ana" }),
        ),
        // Guardrails redact answers.
        (
            which,
            json!({ "verdict": { "type": "text", "text": "Any, on card 4111 1111 1111 1111." } }),
            json!({ "text": "Any, on card [redacted]." }),
        ),
    ]
}

async fn each_kind_is_asked_and_its_answer_comes_within_a_second(database: Database) {
    let server = Server::start(Options::on(database)).await;
    let program = caller(&server, "program", &["developer"]).await;
    let ana = caller(&server, "ana", &["reviewer"]).await;
    let admin = server.admin().await;
    let mut socket = Socket::follow(&server.base, &admin, &[Topic::Reviews, Topic::Runs]).await;
    let mut asked = Vec::new();
    for (question, decision, expected) in each_kind() {
        let review = program.ask(&question).await;
        assert_eq!((&review["kind"], &review["status"]), (&question["kind"], &json!("pending")));
        assert_eq!(review["asked_by"], "program");
        for hidden in ["run_id", "flow", "flow_title", "node", "visit"] {
            assert_eq!(review.get(hidden), None, "{hidden} of {review}");
        }
        assert_eq!(review["requested_by"], "program");
        let listed = program.get("/api/v1/reviews?requested_by=me&status=pending").await;
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
        assert_eq!(ana.get("/api/v1/reviews?requested_by=me").await["items"], json!([]));
        assert_eq!(ana.get("/api/v1/reviews?order=urgency&assigned=me").await["items"][0]["id"], review["id"]);

        let decide = async {
            let (status, decided) = ana.decide(&review, &decision).await;
            assert_eq!(status, StatusCode::OK, "{decided}");
            Instant::now()
        };
        let wait = async { (program.resolution(&review).await, Instant::now()) };
        let ((resolution, told), decided) = tokio::join!(wait, decide);
        assert!(contains(&resolution["answer"], &expected), "{resolution} of {question}");
        assert_eq!((&resolution["status"], &resolution["by"]), (&json!("resolved"), &json!(["ana"])));
        let late = told.saturating_duration_since(decided);
        assert!(late < Duration::from_secs(1), "told {late:?} after the decision");
        asked.push(review);
    }
    assert_eq!(asked[0]["title"], "Pay back 20 € to Acme");
    assert_eq!((&asked[3]["title"], &asked[3]["prompt"]), (&json!("A size"), &json!("Which size, {{ secret.key }}?")));
    assert_eq!(asked[3]["items"][0]["value"], "For a child.");
    assert_eq!((&asked[5]["context"]["user"], &asked[5]["severity"]), (&json!("u-1"), &json!("high")));

    assert_eq!(admin.runs(&RunQuery::default()).await.expect("a list").items, [], "what carries a question is no run");
    let log = admin.log(&LogQuery::default()).await.expect("the log").items;
    let of_questions: Vec<&Entry> = log.iter().filter(|entry| entry.event.review_id.is_some()).collect();
    assert!(of_questions.iter().all(|entry| entry.event.run_id.is_none()));
    let others = log.iter().filter(|entry| matches!(entry.event.audience(), Audience::Run(_)));
    assert_eq!(others.count(), 0, "the log tells of no run and no step");
    let mut heard = Vec::new();
    while heard.len() < 2 * asked.len() {
        if let ServerMessage::Entry(entry) = socket.next().await {
            assert!(entry.event.kind.is_review(), "{entry:?}");
            heard.extend(matches!(entry.event.kind.as_str(), "review.requested" | "review.resolved").then_some(entry));
        }
    }
    let query = AuditQuery { review: asked[0]["id"].as_str().map(str::to_owned), ..AuditQuery::default() };
    let audit = admin.audit(&query).await.expect("the audit").items;
    let mut kinds: Vec<&str> = audit.iter().map(|entry| entry.event.kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["review.requested", "review.resolved", "review.viewed"]);
    let sealed = async || admin.verify_audit().await.ok().filter(|check| check.sealed >= check.entries);
    assert!(eventually("all of it is sealed", sealed).await.valid);
    let counted = caller::admin(&server).await.get("/api/v1/statistics?by=kind").await;
    assert_eq!((&counted["requests"], &counted["clarifications"]), (&json!(asked.len()), &json!(3)), "{counted}");
}

async fn a_question_and_its_answer_survive_a_kill(database: Database) {
    let mut server = Server::start(Options::on(database)).await;
    let program = caller(&server, "program", &["developer"]).await;
    let ana = caller(&server, "ana", &["reviewer"]).await;
    let (question, decision, expected) = each_kind().swap_remove(5);
    let (_, first) = program.send(Method::POST, "/api/v1/reviews", Some(&question), Some("k1")).await;
    let timed = json!({ "kind": "approval", "description": "Go on?", "action": { "name": "go" }, "timeout": "3s" });
    let [rejects, approves, fails] = ["reject", "approve", "error"].map(|then| {
        let mut question = timed.clone();
        question["on_timeout"] = then.into();
        question
    });
    let [rejects, approves, fails] =
        [program.ask(&rejects).await, program.ask(&approves).await, program.ask(&fails).await];
    server.kill();
    server.restart().await;

    let (status, again) = program.send(Method::POST, "/api/v1/reviews", Some(&question), Some("k1")).await;
    assert_eq!((status, &again["id"]), (StatusCode::CREATED, &first["id"]), "the same key asks once");
    let (status, problem) = program.send(Method::POST, "/api/v1/reviews", Some(&timed), Some("k1")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("key_reused")));

    let (status, decided) = ana.decide(&first, &decision).await;
    assert_eq!(status, StatusCode::OK, "{decided}");
    server.kill();
    server.restart().await;
    assert!(contains(&program.resolution(&first).await["answer"], &expected));
    for (review, answer) in [
        (rejects, json!({ "approved": false, "reason": "nobody decided in time" })),
        (approves, json!({ "approved": true })),
        (fails, Value::Null),
    ] {
        let resolution = program.resolution(&review).await;
        assert_eq!((&resolution["status"], &resolution["answer"]), (&json!("expired"), &answer));
    }
}

async fn no_more_than_a_hundred_of_a_kind_wait_of_one_caller(database: Database) {
    let server = Server::start(Options::on(database)).await;
    let program = caller(&server, "program", &["developer"]).await;
    let question = json!({ "kind": "clarification", "question": "Who?" });
    let all = (0..120).map(|_| program.post("/api/v1/reviews", &question));
    let (mut asked, mut refused) = (Vec::new(), 0);
    for (status, body) in futures::future::join_all(all).await {
        if status == StatusCode::CREATED {
            asked.push(body);
        } else {
            assert_eq!((status, &body["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_pending")), "{body}");
            refused += 1;
        }
    }
    assert_eq!((asked.len(), refused), (100, 20));
    let draft = json!({ "kind": "edit", "content": "Dear all", "purpose": "The greeting" });
    program.ask(&draft).await;
    let other = caller(&server, "other", &["developer"]).await;
    other.ask(&question).await;

    let withdraw = format!("{}/withdraw", path_of(&asked[0]));
    let (status, problem) = other.post(&withdraw, &json!({ "reason": "Mine now." })).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    let (waited, (status, _)) = tokio::join!(program.resolution(&asked[0]), async {
        program.post(&withdraw, &json!({ "reason": "Found it." })).await
    });
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&waited["status"], &waited["reason"]), (&json!("withdrawn"), &json!("Found it.")));
    assert_eq!(waited.get("answer"), None);
    program.ask(&question).await;
}

async fn several_people_vote_on_a_draft_and_the_text_that_they_agree_on_is_the_answer(database: Database) {
    let server = Server::start(Options::on(database)).await;
    let program = caller(&server, "program", &["developer", "reviewer"]).await;
    let (ana, tom) = (caller(&server, "ana", &["reviewer"]).await, caller(&server, "tom", &["reviewer"]).await);
    let review = program
        .ask(&json!({
            "kind": "edit", "content": "Dear all", "purpose": "The greeting", "policy": { "quorum": 2 },
            "reviewers": { "roles": ["reviewer"], "not_requester": true },
        }))
        .await;
    assert_eq!(review["voting"]["voters"], json!(["admin", "ana", "tom"]), "four eyes: {review}");
    let (status, problem) = program.decide(&review, &choose("done")).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    let edited = json!({ "verdict": { "type": "choose", "option": "done" }, "edits": { "content": "Dear Ann" } });
    let (_, first) = ana.decide(&review, &edited).await;
    assert_eq!(first["outcome"], "recorded", "{first}");
    let (_, second) = tom.decide(&review, &choose("done")).await;
    assert_eq!(second["outcome"], "resolved", "{second}");
    let resolution = program.resolution(&review).await;
    assert_eq!(resolution["answer"]["content"], "Dear Ann", "{resolution}");
    assert_eq!(resolution["answer"]["by"], "ana, tom");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_cannot_be_asked_is_refused_at_its_place() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let program = caller(&server, "program", &["developer"]).await;
    let ana = caller(&server, "ana", &["reviewer"]).await;
    let question = json!({ "kind": "clarification", "question": "Who?" });
    let (status, problem) = ana.post("/api/v1/reviews", &question).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("forbidden")));
    for (wrong, path) in [
        (json!({ "kind": "riddle" }), "/kind"),
        (json!({ "question": null }), "/question"),
        (json!({ "question": "" }), "/question"),
        (json!({ "allow_free_text": false }), ""),
        (json!({ "options": [{ "id": "a", "label": "A" }] }), "/options"),
        (json!({ "answer": 42 }), "/answer"),
        (json!({ "context": 42 }), "/context"),
        (json!({ "timeout": "0s" }), "/timeout"),
        (json!({ "on_timeout": "reject" }), "/on_timeout"),
        (json!({ "timeout": "1h", "on_timeout": "follow" }), "/on_timeout"),
        (json!({ "policy": "majority" }), ""),
        (json!({ "policy": { "quorum": 0 } }), "/policy/quorum"),
        (json!({ "reviewers": { "not_same_as": "ask" } }), "/reviewers/not_same_as"),
        (json!({ "reviewers": { "role": ["legal"] } }), "/reviewers/role"),
        (json!({ "callback_url": "https://example.com" }), "/callback_url"),
    ] {
        let mut body = question.clone();
        body.as_object_mut().expect("an object").extend(wrong.as_object().expect("an object").clone());
        let (status, problem) = program.post("/api/v1/reviews", &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}: {problem}");
        let places = problem["errors"].as_array().into_iter().flatten().map(|mistake| &mistake["path"]);
        assert!(places.into_iter().any(|place| place == path), "{wrong}: {problem}");
    }
    let handoff = json!({ "kind": "handoff", "to": "reviewer", "reason": "x", "timeout": "1h" });
    let (status, review) = program.post("/api/v1/reviews", &handoff).await;
    assert_eq!((status, &review["expires_at"]), (StatusCode::CREATED, &Value::Null), "nobody waits for it: {review}");
    for path in ["/api/v1/reviews/facets?requested_by=me", "/api/v1/reviews?requested_by=me&order=urgency"] {
        assert_eq!(program.send(Method::GET, path, None, None).await.0, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
    }
    let review = program.ask(&question).await;
    let too_long = format!("{}?wait=61s", path_of(&review));
    assert_eq!(program.send(Method::GET, &too_long, None, None).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let brief = program.get(&format!("{}?wait=1s", path_of(&review))).await;
    assert_eq!(brief["status"], "pending", "who has waited long enough sees it as it is");
}
