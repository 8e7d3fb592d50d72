//! Programs that are asked before people: webhooks and functions, at nodes and gates, at once and later.

use shared::review::Outcome;

use super::*;

pub(super) const ASKED: &str = r#"
id: asked
input: { type: object, properties: { draft: { type: string, default: A text } } }
agents: { writer: { model: demo/writer } }
nodes:
  write: { agent: writer, prompt: Write., write_keys: [draft], max_visits: 2, next: ask }
  ask:
    human:
      prompt: Fine?
      edit_keys: [draft]
      options:
        - { id: no, kind: stop, label: No }
        - { id: again, kind: correct, label: Again }
        - { id: yes, label: Fine }
      timeout: 1h
      handlers: [HANDLERS]
    next: after
  after: { set: { said: "{{ decisions.ask.option }} {{ decisions.ask.via }} {{ decisions.ask.by | length }}" } }
"#;

const WEBHOOK: &str = "{ webhook: { url: 'https://ok.test:8443/decide?key=s3cret' } }";
pub(super) const PASSING: &str = "{ webhook: { url: 'https://soft.test/decide', on_error: pass, timeout: 10m } }";

/// Returns the flow with these handlers; people have an hour if they are asked at all.
pub(super) fn source(handlers: &str) -> String {
    let timeout = if handlers.contains("auto") { "" } else { "      timeout: 1h\n" };
    ASKED.replace("      timeout: 1h\n", timeout).replace("HANDLERS", handlers)
}

pub(super) fn asked(handlers: &str) -> Play {
    let mut play = Play::start(&source(handlers), json!({}));
    play.model("write", text("A text"));
    play
}

fn program(answer: Value) -> ProgramAnswer {
    serde_json::from_value(answer).unwrap()
}

impl Play {
    /// Returns what the program that is asked at a node is shown.
    pub(super) fn shown(&self, node: &str) -> Review {
        match work(&self.flow, &self.snapshot.state, &self.task_at(node)) {
            Some(Work::Ask { composed: Some(composed), .. }) => *composed,
            Some(Work::Ask { review, .. }) => self.past(review).clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn says(&mut self, node: &str, answer: HandlerAnswer) {
        let (task, digest) = (self.task_at(node).id, self.shown(node).digest);
        self.apply(Input::HandlerAnswered { task, attempt: 1, digest, answer });
    }

    fn answers(&mut self, node: &str, answer: Value) {
        self.says(node, HandlerAnswer::Decides { answer: Box::new(program(answer)) });
    }

    pub(super) fn fails(&mut self, node: &str, message: &str, retryable: bool) {
        let task = self.task_at(node);
        let code = FlowCode::HandlerFailed;
        let failure = TaskFailure { retryable, ..TaskFailure::new(code, message) };
        self.apply(Input::TaskFailed { task: task.id, attempt: 1, failure });
    }

    fn calls_back(&mut self, review: &Review, task: TaskId, mut answer: Value) -> Result<Option<Refusal>, Refusal> {
        answer["revision"] = json!(review.revision);
        answer["digest"] = json!(review.digest);
        self.try_apply(Input::call_back(review.id, task, program(answer)))
    }

    /// Fires the only deadline.
    pub(super) fn deadline(&mut self) {
        let timer = self.tasks.values().find(|task| matches!(task.kind, TaskKind::Deadline { .. })).unwrap().clone();
        self.now = self.now.max(timer.due_at);
        self.apply(Input::Due { task: timer.id });
    }

    pub(super) fn only_review(&self) -> &Review {
        assert_eq!(self.snapshot.reviews.len(), 1);
        self.snapshot.reviews.values().next().unwrap()
    }
}

#[test]
fn a_webhook_that_decides_at_once_is_on_the_record_and_nobody_is_asked() {
    let mut play = asked(WEBHOOK);
    assert_eq!((play.status(), play.snapshot.reviews.len()), (RunStatus::Running, 0), "people see nothing yet");
    let shown = play.shown("ask");
    assert_eq!((shown.items[0].value.clone(), shown.expires_at), (json!("A text"), None));
    play.answers(
        "ask",
        json!({
            "verdict": { "type": "choose", "option": "yes" }, "edits": { "draft": "Another" },
            "comment": "With a change.", "metadata": { "case": 7 },
        }),
    );
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("yes webhook 0")));
    assert_eq!((play.key("draft"), &play.snapshot.state.context.metadata["case"]), (&json!("Another"), &json!(7)));
    let review = play.only_review();
    assert_eq!((review.id, &review.digest), (shown.id, &shown.digest), "what it was shown is on the record");
    assert_eq!(review.advice[0].to_string(), "ok.test decided: With a change.");
    let verdict = review.advice[0].answer.as_ref().unwrap().verdict.clone();
    assert_eq!(verdict, Some(choose("yes")), "what it said stands there as it was sent");
    let resolution = review.resolution.as_ref().unwrap();
    assert_eq!((resolution.outcome, resolution.via, resolution.by.len()), (Outcome::Accepted, Via::Webhook, 0));
    assert!(!json!(review).to_string().contains("s3cret"), "the URL may hold a secret");
    let step = play.steps.iter().find(|step| &*step.node == "ask").unwrap();
    assert_eq!(step.note.as_deref(), Some("Fine (by a webhook)"));
}

#[test]
fn yes_or_no_are_the_first_option_that_accepts_and_a_stop() {
    let mut play = asked(WEBHOOK);
    play.answers("ask", json!({ "approved": true, "modifications": { "output": { "draft": "Better" } } }));
    assert_eq!((play.key("said"), play.key("draft")), (&json!("yes webhook 0"), &json!("Better")));

    let mut play = asked(WEBHOOK);
    play.answers("ask", json!({ "approved": false, "reason": "Too long." }));
    assert_eq!(play.error(), (FlowCode::FlowHumanRejected, "Too long.".to_owned()));
    assert_eq!(play.only_review().resolution.as_ref().unwrap().outcome, Outcome::Stopped);
}

#[test]
fn a_webhook_may_send_the_step_before_back_with_a_message() {
    let mut play = asked(WEBHOOK);
    play.answers("ask", json!({ "verdict": { "type": "choose", "option": "again" }, "comment": "Shorter." }));
    let heard = play.heard("write");
    assert!(matches!(heard.last(), Some(Message::User { text }) if text.contains("Shorter.")), "{heard:?}");
    play.model("write", text("Short"));
    play.answers("ask", json!({ "verdict": { "type": "text", "text": "Still too long." } }));
    assert!(play.snapshot.state.branches.is_empty() || play.review().advice[0].reason.contains("all of its 2 visits"));
    assert_eq!(play.error().0, FlowCode::FlowHumanRejected, "no visit is left: what it says does not fit");
}

#[test]
fn what_does_not_fit_decides_nothing_and_rejects_unless_the_flow_says_otherwise() {
    let answers = [
        json!({ "verdict": { "type": "choose", "option": "maybe" } }),
        json!({ "verdict": { "type": "choose", "option": "yes" }, "edits": { "other": 1 } }),
        json!({ "verdict": { "type": "choose", "option": "yes" }, "edits": { "draft": 5 } }),
        json!({ "verdict": { "type": "choose", "option": "yes" }, "approved": true }),
        json!({ "approved": true, "modifications": { "toolArgs": { "x": 1 } } }),
        json!({ "approved": false, "modifications": { "output": { "draft": "x" } } }),
        json!({}),
    ];
    for answer in answers {
        let mut play = asked(WEBHOOK);
        play.answers("ask", answer.clone());
        let (code, why) = play.error();
        assert_eq!(code, FlowCode::FlowHumanRejected, "{answer}");
        assert!(why.starts_with("Its answer is not valid: "), "{answer}: {why}");

        let mut play = asked(PASSING);
        play.answers("ask", answer.clone());
        assert!(play.review().advice[0].reason.starts_with("Its answer is not valid: "), "{answer}");
        assert_eq!(play.review().advice[0].answer, None, "what does not count is not told as its answer");
    }
}

#[test]
fn a_webhook_that_fails_rejects_with_its_status_or_passes_on() {
    let mut play = asked(WEBHOOK);
    play.fails("ask", "Webhook returned 403", false);
    assert_eq!(play.error(), (FlowCode::FlowHumanRejected, "Webhook returned 403".to_owned()));
    let advice = &play.only_review().advice[0];
    assert_eq!(advice.to_string(), "ok.test did not decide: Webhook returned 403");

    let mut play = asked(&format!("{PASSING}, {{ auto: {{ reject: Closed. }} }}"));
    play.fails("ask", "Webhook returned 410", false);
    assert_eq!(play.error().1, "Closed.");
    assert_eq!(play.only_review().resolution.as_ref().unwrap().via, Via::Auto);
}

#[test]
fn a_webhook_is_asked_again_under_the_same_task_as_long_as_it_has_time() {
    let mut play = asked(WEBHOOK);
    let (first, mut tries) = (play.task_at("ask"), 1);
    loop {
        play.now = play.now.max(play.task_at("ask").due_at);
        play.fails("ask", "Webhook returned 503", true);
        if play.status().is_over() {
            break;
        }
        tries += 1;
        assert_eq!(play.task_at("ask").id, first.id, "the receiver can tell that it was asked before");
    }
    assert!((4..=7).contains(&tries), "{tries} tries in 30 s");
    assert_eq!(play.error().1, "Webhook returned 503");

    let mut play = asked(WEBHOOK);
    play.deadline();
    assert_eq!(play.error().1, "It did not answer in time.", "one that hangs has not decided");
}

#[test]
fn while_a_webhook_takes_its_time_people_may_decide_and_whoever_is_first_has_decided() {
    let mut play = asked(PASSING);
    let (task, shown) = (play.task_at("ask").id, play.shown("ask"));
    play.says("ask", HandlerAnswer::Later);
    let review = play.review();
    assert_eq!((review.id, &review.digest, review.expires_at), (shown.id, &shown.digest, None));
    let handler = review.asked.clone().unwrap();
    assert_eq!((&*handler.by, handler.via, handler.until.is_some()), ("soft.test", Via::Webhook, true));
    assert_eq!(play.status(), RunStatus::WaitingForHuman);

    let mut by_person = play.again();
    by_person.decide(choose("yes"));
    assert_eq!(by_person.key("said"), &json!("yes human 1"));
    let late = by_person.calls_back(&review, task, json!({ "approved": false })).unwrap_err();
    let Refusal::ReviewResolved(over) = late else { panic!("{late:?}") };
    assert_eq!((over.resolution.unwrap().via, over.asked), (Via::Human, None));

    let changed = play.try_apply(Input::call_back(
        review.id,
        task,
        program(json!({ "approved": true, "revision": 1, "digest": "sha256:00" })),
    ));
    assert!(matches!(changed, Err(Refusal::RevisionChanged(_))), "{changed:?}");
    let unnamed = program(json!({ "approved": true }));
    let unnamed = play.try_apply(Input::call_back(review.id, task, unnamed)).unwrap_err();
    assert_eq!(mistakes(unnamed).len(), 2);
    let misfit = play.calls_back(&review, task, json!({ "verdict": { "type": "choose", "option": "maybe" } }));
    assert_eq!(mistakes(misfit.unwrap_err())[0].0, "/verdict/option", "it may try again");
    assert_eq!(play.calls_back(&review, task, json!({ "approved": true, "reason": "Fine." })), Ok(None));
    assert_eq!(play.key("said"), &json!("yes webhook 0"));
    let over = play.past(review.id);
    assert_eq!(over.advice[0].to_string(), "soft.test approved: Fine.");
    assert_eq!((over.version > review.version, &over.asked), (true, &None));
    let second = play.calls_back(&review, task, json!({ "approved": false })).unwrap_err();
    assert!(matches!(second, Refusal::ReviewResolved(_)), "one of two wins: {second:?}");
}

#[test]
fn a_webhook_that_calls_back_before_its_answer_is_known_has_decided() {
    let mut play = asked(PASSING);
    let (task, shown) = (play.task_at("ask").id, play.shown("ask"));
    assert_eq!(play.calls_back(&shown, task, json!({ "approved": true })), Ok(None));
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("yes webhook 0")));
    assert_eq!(play.only_review().status, ReviewStatus::Resolved, "nobody was asked");
}

#[test]
fn when_its_time_is_over_the_next_is_asked_and_the_time_of_people_begins() {
    let mut play = asked(PASSING);
    let task = play.task_at("ask").id;
    play.says("ask", HandlerAnswer::Later);
    play.deadline();
    let review = play.review();
    assert_eq!((&*review.advice[0].reason, &review.asked), ("It did not answer in time.", &None));
    assert_eq!(review.expires_at, Some(play.now.after(Duration::from_hours(1))));
    let late = play.calls_back(&review, task, json!({ "approved": true })).unwrap_err();
    assert!(matches!(&late, Refusal::NoLongerAsked(waits) if waits.is_pending()), "{late:?}");
    play.now = review.expires_at.unwrap();
    let late = play.calls_back(&review, task, json!({ "approved": true })).unwrap();
    assert!(matches!(&late, Some(Refusal::ReviewResolved(over)) if over.status == ReviewStatus::Expired), "{late:?}");
}

#[test]
fn what_changed_while_a_webhook_was_asked_it_does_not_decide() {
    let mut play = asked(PASSING);
    let task = play.task_at("ask").id;
    let answer = HandlerAnswer::Decides { answer: Box::new(program(json!({ "approved": true }))) };
    play.apply(Input::HandlerAnswered { task, attempt: 1, digest: "sha256:00".to_owned(), answer });
    assert_eq!(play.review().advice[0].reason, "The content changed while it was asked.");
}

#[test]
fn a_webhook_that_is_asked_when_the_run_ends_is_heard_no_more() {
    for later in [false, true] {
        let mut play = asked(PASSING);
        let (task, shown) = (play.task_at("ask").id, play.shown("ask"));
        if later {
            play.says("ask", HandlerAnswer::Later);
        }
        play.apply(Input::Cancel { by: person("dev", &["developer"]), reason: None });
        let late = play.calls_back(&shown, task, json!({ "approved": true })).unwrap_err();
        match late {
            Refusal::RunOver => assert!(!later),
            Refusal::ReviewResolved(review) => assert_eq!((later, review.status), (true, ReviewStatus::Withdrawn)),
            other => panic!("{other:?}"),
        }
    }
}

const GATED: &str = r#"
id: gated
agents: { clerk: { model: demo/clerk, tools: [pay, mail] } }
tools:
  pay:
    http: { url: "https://x" }
    parameters: { type: object, properties: { amount: { type: number, maximum: 100 } } }
  mail: { http: { url: "https://y" } }
defaults: { handlers: [{ webhook: { url: "https://ok.test/decide" } }] }
gates: { before_tool: { pay: true, mail: true } }
nodes: { serve: { agent: clerk, prompt: Serve. } }
"#;

fn gated<const N: usize>(made: [(&str, Value); N]) -> Play {
    let mut play = Play::start(GATED, json!({}));
    play.model("serve", calls(made));
    play
}

#[test]
fn a_webhook_of_the_defaults_decides_about_calls_each_by_itself() {
    let mut play = gated([("pay", json!({ "amount": 7 })), ("mail", json!({}))]);
    play.answers(
        "serve",
        json!({ "verdict": { "type": "actions", "decisions": {
            "c1-1": { "type": "edit", "arguments": { "amount": 5 } }, "c1-2": { "type": "reject", "message": "No mail." },
        } } }),
    );
    let made: Vec<_> = play.tasks.values().map(|task| play.tool_work(task)).collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].arguments, object(json!({ "amount": 5 })));
}

#[test]
fn one_yes_does_not_approve_several_calls_if_one_is_critical() {
    fn asked<const N: usize>(tools: [&str; N]) -> Play {
        let mut play = Play::start(&GATED.replace("pay: true", "pay: { severity: critical }"), json!({}));
        play.model("serve", calls(tools.map(|tool| (tool, json!({})))));
        play
    }
    let running = |play: &Play| play.tasks.values().filter(|task| matches!(task.kind, TaskKind::Tool { .. })).count();
    let mut play = asked(["pay", "mail"]);
    play.answers("serve", json!({ "approved": true }));
    assert_eq!(running(&play), 0);
    let why = &play.only_review().advice[0].reason;
    assert!(why.starts_with("Its answer is not valid: ") && why.contains("needs its own answer"), "{why}");

    let mut play = asked(["pay", "mail"]);
    let approve = json!({ "type": "approve" });
    let decisions = json!({ "c1-1": approve, "c1-2": approve });
    play.answers("serve", json!({ "verdict": { "type": "actions", "decisions": decisions } }));
    assert_eq!(running(&play), 2);
    let mut play = asked(["pay"]);
    play.answers("serve", json!({ "approved": true }));
    assert_eq!(running(&play), 1, "this is the answer to the one call");
}

#[test]
fn tool_args_are_laid_over_those_of_the_one_call_and_checked_whole() {
    let mut play = gated([("pay", json!({ "amount": 7, "to": "Ana" }))]);
    play.answers("serve", json!({ "approved": true, "modifications": { "toolArgs": { "amount": 5 } } }));
    let pay = play.tool_work(&play.task_at("serve"));
    assert_eq!(pay.arguments, object(json!({ "amount": 5, "to": "Ana" })));

    let mut play = gated([("pay", json!({ "amount": 7 }))]);
    play.answers("serve", json!({ "approved": true, "modifications": { "toolArgs": { "amount": 500 } } }));
    let Some(Message::Tool { content, .. }) = play.heard("serve").pop() else { unreachable!() };
    assert!(content.as_str().unwrap().starts_with("TOOL_PERMISSION_DENIED: Its answer is not valid: "), "{content}");
}
