//! Escalations, checkpoints and handoffs of agents.

use super::*;
use shared::review::{Outcome, ReviewKind};

const HELP: &str = "
id: help
agents:
  clerk: { model: demo/clerk, tools: [stuck, progress, over, look, which, draft] }
  expert: { model: demo/expert, instructions: You know. }
  strict: { model: demo/strict, tools: [stuck], output_schema: { type: object, required: [size], properties: { size: { type: integer } } } }
tools:
  stuck: { builtin: escalate, reviewers: { roles: [support] } }
  progress: { builtin: checkpoint, timeout: 1h }
  over: { builtin: handoff }
  look: { http: { url: 'https://example.com' }, idempotent: true }
  which: { builtin: ask_human }
  draft: { builtin: request_edit }
guardrails: [{ name: own, pattern: Falcon }]
GATES
nodes:
  serve: { agent: AGENT, prompt: Serve them., failure: { then: { goto: sorry } }, next: after }
  after: { set: { seen: '{{ serve | default(\"-\") }}' }, next: end }
  sorry: { set: { apology: yes } }
";

fn start_with(agent: &str, gates: &str) -> Play {
    Play::start(&HELP.replace("AGENT", agent).replace("GATES", gates), json!({}))
}

fn start() -> Play {
    start_with("clerk", "")
}

fn support() -> Principal {
    person("sue", &["reviewer", "support"])
}

fn stuck() -> Value {
    json!({
        "reason": "conflicting_instructions", "explanation": "They want two sizes. I cannot choose.", "urgency": "critical",
        "attempted": ["Asked for the order"], "recommendations": ["Call them"], "state": { "order": 7 },
    })
}

fn say_with(option: &str, fields: Value) -> Verdict {
    Verdict::Choose { option: option.to_owned(), fields: object(fields) }
}

fn escalated(play: &mut Play) -> Review {
    play.model("serve", calls([("look", json!({})), ("stuck", stuck())]));
    let review = play.review();
    assert_eq!(review.kind, ReviewKind::Escalation);
    review
}

fn answered(play: &mut Play, option: &str, fields: Value) -> Review {
    let review = play.review();
    play.try_decide(review.id, &support(), request(&review, say_with(option, fields))).unwrap();
    play.past(review.id).clone()
}

#[test]
fn a_problem_is_shown_with_what_was_tried_and_the_answers_ask_for_what_they_need() {
    let mut play = start();
    let review = escalated(&mut play);
    assert_eq!(review.title, "They want two sizes. I cannot choose");
    assert!(review.prompt.starts_with("Agent `clerk` cannot continue (conflicting instructions): They want"));
    let severity = shared::definition::Severity::Critical;
    assert_eq!(
        (review.stakes.severity, review.stakes.category.as_deref()),
        (severity, Some("conflicting_instructions"))
    );
    let keys: Vec<_> = review.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["attempted", "recommendations", "state"]);
    let ids: Vec<_> = review.options.iter().map(|option| option.id.as_str()).collect();
    assert_eq!(ids, ["human_takeover", "agent_continue", "delegate", "abort"]);
    let wrong = [
        ("agent_continue", json!({}), "/verdict/fields/guidance", "required"),
        ("abort", json!({ "reason": "" }), "/verdict/fields/reason", "invalid"),
        ("delegate", json!({ "agent": "clerk", "instructions": "x" }), "/verdict/fields/agent", "invalid"),
        ("human_takeover", json!({ "answer": 7 }), "/verdict/fields/answer", "invalid"),
        ("human_takeover", json!({ "answer": "Falcon" }), "/verdict/fields/answer", "GUARDRAIL_BLOCKED"),
    ];
    for (option, fields, place, code) in wrong {
        let refused = play.try_decide(review.id, &support(), request(&review, say_with(option, fields))).unwrap_err();
        assert_eq!(mistakes(refused), [(place.to_owned(), code.to_owned())], "{option}");
    }
}

#[test]
fn an_agent_that_is_told_how_goes_on() {
    let mut play = start();
    escalated(&mut play);
    let look = play.call_task("c1-1");
    play.returned(&look, json!("seen"));
    answered(&mut play, "agent_continue", json!({ "guidance": "Send both.", "adjusted_parameters": { "sizes": 2 } }));
    let heard = play.heard("serve");
    let Some(Message::Tool { content, .. }) = heard.last() else { panic!("{heard:?}") };
    assert_eq!((&content["decision"], &content["guidance"]), (&json!("agent_continue"), &json!("Send both.")));
    assert_eq!((&content["adjusted_parameters"]["sizes"], &content["by"]), (&json!(2), &json!("sue")));
    play.model("serve", text("Sent both."));
    assert_eq!((play.status(), play.key("seen")), (RunStatus::Completed, &json!("Sent both.")));
}

#[test]
fn somebody_answers_in_place_of_an_agent_and_what_it_had_begun_ends() {
    let mut play = start();
    escalated(&mut play);
    answered(&mut play, "human_takeover", json!({ "answer": "Take the large one." }));
    assert_eq!((play.status(), play.key("seen")), (RunStatus::Completed, &json!("Take the large one.")));
    assert_eq!(play.steps()[0].2, StepStatus::Completed);

    let mut strict = start_with("strict", "");
    strict.model("serve", calls([("stuck", stuck())]));
    let review = strict.review();
    let wrong = request(&review, say_with("human_takeover", json!({ "answer": { "size": "large" } })));
    let refused = strict.try_decide(review.id, &support(), wrong).unwrap_err();
    assert_eq!(mistakes(refused), [("/verdict/fields/answer/size".to_owned(), "invalid".to_owned())]);
    answered(&mut strict, "human_takeover", json!({ "answer": { "size": 3 } }));
    assert_eq!((strict.status(), strict.key("size")), (RunStatus::Completed, &json!(3)));
}

#[test]
fn an_answer_in_place_of_an_agent_fits_a_schema_that_refers_to_its_own_parts() {
    let own = "output_schema: { type: object, required: [size], properties: { size: { type: integer } } }";
    let refers = "output_schema: { type: object, required: [size], additionalProperties: false, $defs: { size: { type: integer } }, \
                  properties: { size: { $ref: '#/$defs/size' }, next: { $ref: '#' } } }";
    let source = HELP.replace(own, refers).replace("AGENT", "strict").replace("GATES", "");
    let mut play = Play::start(&source, json!({}));
    play.model("serve", calls([("stuck", stuck())]));
    let review = play.review();
    let take_over = |answer: Value| request(&review, say_with("human_takeover", json!({ "answer": answer })));
    for (answer, place) in [
        (json!({ "size": "large" }), "/verdict/fields/answer/size"),
        (json!({ "size": 1, "next": { "answer": {} } }), "/verdict/fields/answer/next/answer"),
    ] {
        let refused = mistakes(play.try_decide(review.id, &support(), take_over(answer)).unwrap_err());
        assert_eq!(refused[0].0, place);
    }
    play.try_decide(review.id, &support(), take_over(json!({ "size": 7, "next": { "size": 8 } }))).unwrap();
    assert_eq!(play.key("size"), 7);
}

#[test]
fn who_takes_over_without_an_answer_writes_what_the_agent_was_to_write() {
    let mut play = start();
    escalated(&mut play);
    answered(&mut play, "human_takeover", json!({ "instructions": "I call them." }));
    let review = play.review();
    assert_eq!((review.kind, review.items[0].key.as_str()), (ReviewKind::Edit, "serve"));
    assert_eq!(review.asked_by, None, "the flow asks, and not the agent");
    let users: Vec<_> = review.reviewers.users.iter().map(shared::id::Username::as_str).collect();
    assert_eq!((users, review.reviewers.roles.len()), (vec!["sue"], 0), "who took over is asked");
    let edits = object(json!({ "serve": "Settled by phone." }));
    let done = DecisionRequest { edits, ..request(&review, choose("done")) };
    play.try_decide(review.id, &support(), done).unwrap();
    assert_eq!((play.status(), play.key("seen")), (RunStatus::Completed, &json!("Settled by phone.")));

    let shut_out = HELP.replace("roles: [support]", "roles: [support], not_requester: true");
    let mut play = Play::start(&shut_out.replace("AGENT", "clerk").replace("GATES", ""), json!({}));
    escalated(&mut play);
    answered(&mut play, "human_takeover", json!({}));
    let dev = person("dev", &["reviewer", "support"]);
    let (review, to) = (play.review().id, dev.username.clone());
    let handed = Input::Delegate { review, by: support(), via: Via::Human, to, person: Some(dev) };
    let refused = play.try_apply(handed).unwrap_err();
    assert_eq!(
        mistakes(refused),
        [("/to".to_owned(), "not_allowed".to_owned())],
        "whom it was not for, it is not handed"
    );

    let mut taken_back = start();
    escalated(&mut taken_back);
    answered(&mut taken_back, "human_takeover", json!({}));
    let review = taken_back.review().id;
    taken_back.apply(Input::Withdraw { review, by: person("dev", &[]), via: Via::Human, reason: None });
    assert_eq!(taken_back.key("apology"), &json!("yes"), "nobody writes it: the step fails");
}

#[test]
fn another_agent_takes_over_with_all_that_was_said_and_behind_its_own_gate() {
    let mut play = start_with("clerk", "gates: { before_agent: { expert: true } }");
    escalated(&mut play);
    answered(&mut play, "delegate", json!({ "agent": "expert", "instructions": "Be kind." }));
    let gate = play.review();
    assert_eq!((gate.kind, &*gate.actions[0].name), (ReviewKind::Agent, "expert"));
    play.decide_on(&gate, answer_actions([("agent", ActionDecision::APPROVE)]));
    let heard = play.heard("serve");
    let Some(Message::User { text: prompt }) = heard.first() else { panic!("{heard:?}") };
    for part in ["Serve them.", "I cannot choose", "Be kind.", "`clerk` has worked on this"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    play.model("serve", text("Kindly settled."));
    assert_eq!((play.status(), play.key("seen")), (RunStatus::Completed, &json!("Kindly settled.")));
}

#[test]
fn an_aborted_step_fails_and_its_failure_policy_routes() {
    let mut play = start();
    escalated(&mut play);
    let review = answered(&mut play, "abort", json!({ "reason": "They left." }));
    assert_eq!(review.resolution.unwrap().outcome, Outcome::Stopped);
    assert_eq!((play.status(), play.key("apology")), (RunStatus::Completed, &json!("yes")));
    let failed = play.steps.iter().find(|step| step.status == StepStatus::Failed).unwrap();
    assert_eq!(failed.error.as_ref().unwrap().to_string(), "FLOW_HUMAN_REJECTED: They left.");
}

#[test]
fn an_agent_that_asks_whether_to_go_on_goes_on_changes_its_plan_or_ends() {
    let progress = json!({ "phase": "Research", "progress": 0.4, "done": ["Read"], "issues": ["One source is gone"] });
    let mut play = start();
    play.model("serve", calls([("progress", progress.clone())]));
    let review = play.review();
    assert_eq!((review.kind, &*review.title), (ReviewKind::Checkpoint, "Checkpoint: Research (40 %)"));
    assert_eq!(review.stakes.severity, shared::definition::Severity::High, "there are issues");
    let fields = json!({ "goal": "Only the first half", "skip": ["Appendix"] });
    let modify =
        DecisionRequest { comment: Some("Be brief.".to_owned()), ..request(&review, say_with("modify", fields)) };
    play.try_decide(review.id, &support(), modify).unwrap();
    let heard = play.heard("serve");
    let Some(Message::Tool { content, .. }) = heard.last() else { panic!("{heard:?}") };
    assert_eq!((&content["decision"], &content["instructions"]), (&json!("modify"), &json!("Be brief.")));
    assert_eq!(content["modifications"]["skip"], json!(["Appendix"]));
    play.model("serve", calls([("progress", progress)]));
    answered(&mut play, "abort", json!({ "reason": "Enough." }));
    assert_eq!(play.key("apology"), &json!("yes"), "what is declined does not go on");
}

#[test]
fn a_paused_agent_waits_without_a_time_limit_until_it_is_resumed() {
    let mut play = start();
    play.model("serve", calls([("progress", json!({ "phase": "Research", "progress": 0.4 }))]));
    let before = play.review();
    assert!(before.expires_at.is_some());
    play.try_decide(before.id, &support(), request(&before, choose("pause"))).unwrap();
    let review = play.review();
    assert_eq!((review.id, review.expires_at), (before.id, None));
    assert_eq!(review.paused.as_ref().map(|paused| paused.by.as_str()), Some("sue"));
    assert_eq!(review.decisions[0].by.as_str(), "sue", "who paused it is on the record");
    assert!(play.tasks.is_empty(), "no time runs: {:?}", play.tasks);
    let ids: Vec<_> = review.options.iter().map(|option| option.id.as_str()).collect();
    assert_eq!(ids, ["resume", "modify", "abort"]);
    let stale = play.try_decide(before.id, &support(), request(&before, choose("continue")));
    assert!(matches!(stale, Err(Refusal::RevisionChanged(_))), "{stale:?}");
    play.now = play.now.after(Duration::from_hours(48));
    play.try_decide(review.id, &support(), request(&review, choose("resume"))).unwrap();
    let heard = play.heard("serve");
    let Some(Message::Tool { content, .. }) = heard.last() else { panic!("{heard:?}") };
    assert_eq!(content["decision"], "continue");
}

#[test]
fn what_is_handed_over_holds_nothing_up_and_outlives_the_run() {
    let mut play = start();
    let tools = play.model_work("serve").tools;
    let offered = tools.iter().find(|tool| tool.name == "over").unwrap().parameters.as_ref().unwrap();
    assert_eq!(offered["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["to", "reason", "summary"]);
    // A time limit is accepted nevertheless.
    let over = json!({ "to": "finance", "reason": "Book the refund", "summary": "20 euros", "timeout": "1h" });
    play.model("serve", calls([("over", over), ("over", json!({ "to": "no body", "reason": "?" }))]));
    let heard = play.heard("serve");
    let told = heard.iter().filter_map(|message| match message {
        Message::Tool { content, .. } => Some(content.clone()),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    let review = play.review();
    assert_eq!(told[0], json!({ "handed_off": true, "review": review.id }));
    assert!(told[1].as_str().unwrap().contains("neither a role nor a username"), "{told:?}");
    assert_eq!((review.kind, review.expires_at, play.status()), (ReviewKind::Handoff, None, RunStatus::Running));
    play.model("serve", text("Done."));
    assert_eq!(play.status(), RunStatus::Completed);
    let review = play.review();
    let refused = play.try_decide(review.id, &support(), request(&review, choose("taken")));
    assert!(matches!(refused, Err(Refusal::Forbidden(_) | Refusal::NotFound)), "only finance is told: {refused:?}");
    let finance = person("fay", &["reviewer", "finance"]);
    play.try_decide(review.id, &finance, request(&review, choose("taken"))).unwrap();
    assert_eq!(play.past(review.id).resolution.as_ref().unwrap().outcome, Outcome::Accepted);
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn a_question_may_have_several_answers_and_a_draft_of_json_stays_json() {
    let mut play = start();
    let options =
        json!([{ "id": "s", "label": "Small" }, { "id": "l", "label": "Large" }, { "id": "x", "label": "None" }]);
    let which = json!({ "question": "Which sizes?", "options": options, "multiple": true });
    let draft = json!({ "content": "{}", "content_type": "json", "purpose": "The order" });
    play.model("serve", calls([("which", which), ("draft", draft)]));
    let of = |play: &Play, kind| play.snapshot.reviews.values().find(|review| review.kind == kind).unwrap().clone();
    let question = of(&play, ReviewKind::Clarification);
    for options in [json!([]), json!(["s", "s"]), json!(["m"])] {
        let verdict = request(&question, say_with("answer", json!({ "options": options })));
        let refused = play.try_decide(question.id, &support(), verdict).unwrap_err();
        let at = mistakes(refused);
        assert!(at.iter().all(|(place, _)| place.starts_with("/verdict/fields/options")), "{at:?}");
    }
    let both = request(&question, say_with("answer", json!({ "options": ["s", "l"] })));
    play.try_decide(question.id, &support(), both).unwrap();
    let draft = of(&play, ReviewKind::Edit);
    let edit = |content: &str| DecisionRequest {
        edits: object(json!({ "content": content })),
        ..request(&draft, choose("done"))
    };
    let refused = play.try_decide(draft.id, &support(), edit("{")).unwrap_err();
    assert_eq!(mistakes(refused), [("/edits/content".to_owned(), "invalid".to_owned())]);
    play.try_decide(draft.id, &support(), edit("{\"size\": 1}")).unwrap();
    let heard = play.heard("serve");
    let Some(Message::Tool { content, .. }) = heard.get(heard.len() - 2) else { panic!("{heard:?}") };
    assert_eq!((&content["options"], content.get("option")), (&json!(["s", "l"]), None));
}

#[test]
fn who_takes_over_writes_nothing_that_somebody_else_writes_at_the_same_time() {
    let source = "
id: both
agents:
  clerk: { model: demo/clerk, tools: [stuck], output_schema: { type: object, properties: { own: { type: string }, total: { type: number } } } }
  counter: { model: demo/counter }
tools: { stuck: { builtin: escalate } }
nodes:
  fork: { router: {}, next: [serve, count] }
  serve: { agent: clerk, prompt: Serve., write_keys: ['*'], next: end }
  count: { agent: counter, prompt: Count., write_keys: [total] }
";
    let mut play = Play::start(source, json!({}));
    play.model("serve", calls([("stuck", stuck())]));
    let of = |play: &Play, kind: ReviewKind| {
        let mut all = play.snapshot.reviews.values().filter(|review| review.is_pending() && review.kind == kind);
        all.next().cloned().unwrap()
    };
    let escalation = of(&play, ReviewKind::Escalation);
    play.try_decide(escalation.id, &ana(), request(&escalation, say_with("human_takeover", json!({})))).unwrap();
    let written = of(&play, ReviewKind::Edit);
    let keys: Vec<_> = written.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["own"], "`total` is what the branch beside writes");
}

#[test]
fn what_is_handed_over_has_no_deadline_whatever_its_review_says() {
    let mut play = start();
    play.model("serve", calls([("over", json!({ "to": "finance", "reason": "Book the refund", "summary": "-" }))]));
    let id = play.review().id;
    play.snapshot.reviews.get_mut(&id).unwrap().expires_at = Some(play.now);
    play.model("serve", text("Done."));
    assert_eq!((play.review().id, play.status()), (id, RunStatus::Completed));
}
