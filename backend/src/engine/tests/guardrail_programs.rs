//! Guardrails that ask a program: nothing happens before it has answered, whoever approved.

use shared::definition::Effect;
use shared::grant::{GrantScope, Remember};

use super::*;
use crate::flow::guardrail::GuardrailAnswer;

mod ends;
mod votes;

impl Play {
    /// Returns the answers of the programs that a task of guardrails asks.
    pub(super) fn replied(&self, task: &Task) -> Input {
        let Some(Work::Inquire(inquiries)) = work(&self.flow, &self.snapshot.state, task) else {
            return Input::GuardrailsAnswered { task: task.id, attempt: 1, replies: Vec::new() };
        };
        let replies = inquiries.iter().map(|inquiry| GuardrailReply::new(inquiry, program(inquiry))).collect();
        Input::GuardrailsAnswered { task: task.id, attempt: 1, replies }
    }
}

/// Returns the answer of a guardrail's program: it objects to falcons, and fails at whatever is broken. Dice answer any
/// inquiry at random, but always in the same way.
pub(super) fn program(inquiry: &Inquiry) -> GuardrailAnswer {
    let holds = |what: &str| json!(inquiry).to_string().contains(what);
    let dice = inquiry.guardrail.contains("dice").then(|| digest_of_inquiry(inquiry).bytes().last().unwrap_or(0) % 4);
    if holds("falcon") || dice == Some(0) {
        GuardrailAnswer::Objects { reason: Some("it names the bird".to_owned()) }
    } else if holds("broken") || dice == Some(1) {
        GuardrailAnswer::Fails { reason: "Webhook returned 503".to_owned() }
    } else {
        GuardrailAnswer::Allows
    }
}

const FLOW: &str = r#"
id: guarded
agents:
  clerk: { model: demo/clerk, tools: [shell], max_turns: 5 }
tools:
  shell:
    http: { url: "https://example.com/run", body: { command: "{{ arguments.command }}" } }
    parameters: { type: object, properties: { command: { type: string } } }
nodes:
  serve: { agent: clerk, prompt: Serve., write_keys: [answer] }
gates: { before_tool: { shell: { GATE } } }
guardrails:
  - MORE
  - { name: house-rules, webhook: { url: "https://rules.example.com/look", on_error: ON_ERROR } }
"#;

fn start(gate: &str, more: &str, on_error: &str) -> Play {
    let source = FLOW.replace("GATE", gate).replace("ON_ERROR", on_error);
    let source = if more.is_empty() { source.replace("  - MORE\n", "") } else { source.replace("MORE", more) };
    Play::start(&source, json!({}))
}

/// A decision of Ana about which the guardrails' programs were asked.
fn decision(review: &Review, request: DecisionRequest, replies: Vec<GuardrailReply>) -> Input {
    let request = Box::new(request);
    Input::Decide { review: review.id, by: ana(), via: Via::Human, request, replies, longest_grant_ms: None }
}

fn run(play: &mut Play, command: &str) {
    play.model("serve", calls([("shell", json!({ "command": command }))]));
}

/// Returns the task that asks programs.
fn inquiry_task(play: &Play) -> Option<Task> {
    play.tasks.values().find(|task| matches!(task.kind, TaskKind::Inquire { .. })).cloned()
}

fn answer(play: &mut Play) {
    let task = inquiry_task(play).expect("programs are asked");
    play.apply(play.replied(&task));
}

/// Returns how the call ended: its result for the agent, or that it runs.
fn outcome(play: &Play) -> String {
    let runs = play.tasks.values().find(|task| matches!(task.kind, TaskKind::Tool { .. }));
    runs.map_or_else(
        || match play.heard("serve").last() {
            Some(Message::Tool { content, .. }) => content.as_str().unwrap_or_default().to_owned(),
            other => panic!("{other:?}"),
        },
        |task| format!("runs {}", play.tool_work(task).arguments["command"].as_str().unwrap_or_default()),
    )
}

const BLOCKED: &str = "GUARDRAIL_BLOCKED: house-rules: it names the bird";
const AWAY: &str = "GUARDRAIL_BLOCKED: house-rules: it could not be asked: Webhook returned 503";

#[test]
fn what_a_person_decides_is_asked_about_before_it_is_written() {
    for (command, expected) in [("ls", "runs ls"), ("falcon", BLOCKED), ("broken", AWAY)] {
        let mut play = start("severity: high", "", "block");
        run(&mut play, command);
        let review = play.review();
        assert_eq!(review.warnings, [], "what a program would say is not known yet");
        let decide = Input::decide(
            review.id,
            ana(),
            Via::Human,
            request(&review, answer_actions([("c1-1", ActionDecision::APPROVE)])),
        );
        let Err(Refusal::Unasked { inquiries, .. }) = play.try_apply_once(decide) else { panic!("it is asked first") };
        let [inquiry] = &inquiries[..] else { panic!("{inquiries:?}") };
        assert_eq!((&*inquiry.guardrail, &inquiry.values["command"]), ("house-rules", &json!(command)));
        assert_eq!(inquiry.action, json!({ "type": "tool", "name": "shell", "agent": "clerk" }));
        assert!(play.review().is_pending() && inquiry_task(&play).is_none(), "nothing has happened");

        play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
        assert_eq!(outcome(&play), expected);
        let vetoes = play.past(review.id).resolution.as_ref().map(|resolution| resolution.vetoes.len());
        assert_eq!(vetoes, Some(usize::from(expected != "runs ls")));
    }
}

#[test]
fn an_answer_counts_for_what_was_asked_and_for_nothing_else() {
    let mut play = start("severity: high", "", "block");
    run(&mut play, "ls");
    let review = play.review();
    let approved = request(&review, answer_actions([("c1-1", ActionDecision::APPROVE)]));
    let mut asked = Vec::new();
    let decide = Input::decide(review.id, ana(), Via::Human, approved);
    if let Err(Refusal::Unasked { inquiries, .. }) = play.try_apply_once(decide) {
        asked.extend(inquiries.iter().map(|inquiry| GuardrailReply::new(inquiry, GuardrailAnswer::Allows)));
    }
    let edit = ActionDecision::Edit { arguments: object(json!({ "command": "falcon" })) };
    let other = decision(&review, request(&review, answer_actions([("c1-1", edit)])), asked);
    assert!(matches!(play.try_apply_once(other), Err(Refusal::Unasked { .. })));
}

type Give = fn(&mut Play);

/// Gates at which nobody who approves waits for an answer, and how each approves.
fn givers() -> [(&'static str, Give); 4] {
    [
        ("handlers: [{ auto: approve }]", |_| {}),
        ("timeout: 1h, on_timeout: approve", |play| {
            play.now = play.review().expires_at.unwrap();
            let task = play.tasks.values().find(|task| matches!(task.kind, TaskKind::Deadline { .. })).unwrap().id;
            play.apply(Input::Due { task });
        }),
        ("handlers: [{ judge: { model: demo/judge, criteria: Fine? } }]", |play| {
            let said = json!({ "approved": true, "confidence": 1, "reasoning": "Fine." });
            play.model("serve", text(&said.to_string()));
        }),
        ("handlers: [{ webhook: { url: 'https://example.com/decide' } }]", |play| {
            let task = play.task_at("serve");
            let answer = Box::new(ProgramAnswer { approved: Some(true), ..ProgramAnswer::default() });
            let (digest, answer) = (play.shown("serve").digest, HandlerAnswer::Decides { answer });
            play.apply(Input::HandlerAnswered { task: task.id, attempt: 1, digest, answer });
        }),
    ]
}

#[test]
fn leave_of_a_handler_or_a_timer_waits_for_the_answer() {
    for (gate, give) in givers() {
        for (command, on_error, expected) in [
            ("ls", "block", "runs ls"),
            ("falcon", "allow", BLOCKED),
            ("broken", "block", AWAY),
            ("broken", "allow", "runs broken"),
        ] {
            let mut play = start(gate, "", on_error);
            run(&mut play, command);
            give(&mut play);
            assert!(
                !play.tasks.values().any(|task| matches!(task.kind, TaskKind::Tool { .. })),
                "{gate}: nothing runs"
            );
            assert!(play.snapshot.reviews.values().all(Review::is_pending), "{gate}: nothing is resolved");
            answer(&mut play);
            assert_eq!(outcome(&play), expected, "{gate}");
            let review = play.snapshot.reviews.values().next().expect("it is on the record");
            let vetoes = review.resolution.as_ref().map(|resolution| resolution.vetoes.len());
            assert_eq!(vetoes, Some(usize::from(!expected.starts_with("runs"))), "{gate}: {review:?}");
            let warned = play
                .events
                .iter()
                .any(|event| event.data.get("effect").is_some_and(|effect| effect == Effect::Warn.as_str()));
            assert_eq!(warned, command == "broken" && on_error == "allow", "{gate}");
        }
    }
}

#[test]
fn an_action_that_an_agent_asks_to_approve_waits_for_the_answer_too() {
    let leave = "  leave: { builtin: request_approval, timeout: 1h, on_timeout: approve }\n  shell:\n";
    let source = FLOW.replace("[shell]", "[shell, leave]").replace("  shell:\n", leave).replace("  - MORE\n", "");
    let source = source.replace("GATE", "severity: high").replace("ON_ERROR", "block");
    for (about, by_timer) in [("falcon", false), ("falcon", true), ("sparrow", false), ("sparrow", true)] {
        let mut play = Play::start(&source, json!({}));
        let action = json!({ "name": "mail", "arguments": { "about": about } });
        play.model("serve", calls([("leave", json!({ "description": "Write to them", "action": action }))]));
        let review = play.review();
        if by_timer {
            givers()[1].1(&mut play);
            assert!(play.review().is_pending(), "nothing is resolved");
            answer(&mut play);
        } else {
            let decide = Input::decide(review.id, ana(), Via::Human, request(&review, choose("approve")));
            let Err(Refusal::Unasked { inquiries, .. }) = play.try_apply_once(decide) else { panic!("asked first") };
            assert_eq!(inquiries[0].action, json!({ "type": "tool", "name": "mail", "agent": "clerk" }));
            play.decide(choose("approve"));
        }
        let vetoes = play.past(review.id).resolution.as_ref().map(|resolution| resolution.vetoes.len());
        let Some(Message::Tool { content, .. }) = play.heard("serve").pop() else { panic!("a result") };
        if about == "falcon" {
            assert_eq!((content, vetoes), (json!(BLOCKED), Some(1)));
        } else {
            assert_eq!((&content["approved"], vetoes), (&json!(true), Some(0)));
        }
    }
}

#[test]
fn what_was_allowed_before_waits_for_the_answer_too() {
    let mut play = start("severity: low", "", "block");
    run(&mut play, "ls");
    let remember = Some(Remember { scope: GrantScope::Run, for_ms: None, arguments: Vec::new() });
    play.decide(answer_actions([("c1-1", ActionDecision::Approve { remember })]));
    play.returned(&play.call_task("c1-1"), json!("done"));
    for (turn, (command, expected)) in [("ls -l", "runs ls -l"), ("falcon", BLOCKED)].into_iter().enumerate() {
        let before = play.snapshot.reviews.len();
        run(&mut play, command);
        assert_eq!(play.snapshot.reviews.len(), before, "nothing is on the record yet");
        assert!(!play.tasks.values().any(|task| matches!(task.kind, TaskKind::Tool { .. })));
        answer(&mut play);
        assert_eq!(outcome(&play), expected);
        let review = play.snapshot.reviews.values().max_by_key(|review| review.created_at).unwrap();
        assert!(review.resolution.as_ref().unwrap().decision.as_ref().unwrap().grant.is_some(), "{review:?}");
        if turn == 0 {
            play.returned(&play.call_task("c2-1"), json!("done"));
        }
    }
}

#[test]
fn while_programs_are_asked_a_person_may_still_decide() {
    let mut play = start("timeout: 1h, on_timeout: approve", "", "block");
    run(&mut play, "ls");
    let review = play.review();
    play.now = review.expires_at.unwrap();
    let task = play.tasks.values().find(|task| matches!(task.kind, TaskKind::Deadline { .. })).unwrap().id;
    play.apply(Input::Due { task });
    assert_eq!(play.status(), RunStatus::Running);
    let late = inquiry_task(&play).unwrap();
    let answered = play.replied(&late);
    play.decide(answer_actions([("c1-1", ActionDecision::Reject { message: Some("No.".to_owned()) })]));
    assert_eq!(outcome(&play), "TOOL_PERMISSION_DENIED: No.");
    assert_eq!(play.try_apply(answered), Err(Refusal::TaskOver));
}

#[test]
fn a_program_sees_what_the_guardrails_before_it_left_and_is_asked_again_of_what_changes() {
    let redacts = "{ name: names, pattern: anna, effect: redact }";
    let mut play = start("handlers: [{ auto: approve }]", redacts, "block");
    run(&mut play, "greet anna");
    let Some(Work::Inquire(inquiries)) = work(&play.flow, &play.snapshot.state, &inquiry_task(&play).unwrap()) else {
        panic!()
    };
    assert_eq!(inquiries[0].values["command"], "greet [redacted]");
    while inquiry_task(&play).is_some() {
        answer(&mut play);
    }
    assert_eq!(outcome(&play), "runs greet [redacted]");
}

#[test]
fn two_calls_that_are_alike_are_two_questions() {
    let mut play = start("severity: high", "", "block");
    let twice = ("shell", json!({ "command": "ls" }));
    play.model("serve", calls([twice.clone(), twice]));
    let review = play.review();
    let all = answer_actions([("c1-1", ActionDecision::APPROVE), ("c1-2", ActionDecision::APPROVE)]);
    let Err(Refusal::Unasked { inquiries, .. }) =
        play.try_apply_once(Input::decide(review.id, ana(), Via::Human, request(&review, all.clone())))
    else {
        panic!("both are asked about")
    };
    let answers = [GuardrailAnswer::Allows, GuardrailAnswer::Objects { reason: None }];
    let replies = GuardrailReply::all(&inquiries, answers.to_vec());
    play.apply(decision(&review, request(&review, all), replies));
    let vetoes = play.past(review.id).resolution.as_ref().unwrap().vetoes.clone();
    assert_eq!(vetoes.iter().map(|veto| veto.action.as_deref()).collect::<Vec<_>>(), [Some("c1-2")]);
}

#[test]
fn what_a_judge_would_change_does_not_count_once_something_else_is_shown() {
    let source = "
id: judged
tools: { look: { http: { url: 'https://x.test' } } }
input: { type: object, properties: { draft: { type: string, default: A }, note: { type: string, default: B } } }
guardrails: [{ name: house-rules, webhook: { url: 'https://rules.example.com/look' } }]
nodes:
  fork: { router: {}, next: [pass, beside] }
  pass: { set: { passed: true }, next: look }
  beside: { tool: look, arguments: {}, next: write }
  write: { set: { note: Something else } }
  look:
    human:
      prompt: Fine?
      review_keys: [note]
      edit_keys: [draft]
      options: [{ id: yes, label: Fine }]
      handlers: [{ judge: { model: demo/judge, criteria: Fine? } }, human]
";
    let mut play = Play::start(source, json!({}));
    let said = json!({ "approved": true, "confidence": 1, "reasoning": "Fine.", "modifications": { "edits": { "draft": "C" } } });
    play.model("look", text(&said.to_string()));
    let task = inquiry_task(&play).expect("the edit is asked about");
    let beside = play.task_at("beside");
    play.returned(&beside, json!("ok"));
    play.apply(play.replied(&task));
    let review = play.review();
    assert!(review.advice[0].to_string().contains("changed while it was judged"), "{:?}", review.advice);
    assert_eq!(play.key("draft"), "A");
}

#[test]
fn a_worker_that_gives_up_counts_as_no_answer() {
    let mut play = start("handlers: [{ auto: approve }]", "", "block");
    run(&mut play, "ls");
    let task = inquiry_task(&play).unwrap();
    play.failed(&task, FlowCode::TaskAbandoned, false);
    assert_eq!(outcome(&play), "GUARDRAIL_BLOCKED: house-rules: it could not be asked: no luck");
}

#[test]
fn the_output_of_a_run_waits_for_the_answer() {
    for (said, expected) in [("Fine.", None), ("A falcon.", Some("it names the bird"))] {
        let mut play = start("severity: high", "", "block");
        play.model("serve", text(said));
        assert_eq!(play.status(), RunStatus::Running);
        assert_eq!(given_out(&play.flow, &play.snapshot.state), None, "nothing is given yet");
        answer(&mut play);
        match expected {
            None => assert_eq!(given_out(&play.flow, &play.snapshot.state).unwrap()["answer"], said),
            Some(why) => {
                let (code, message) = play.error();
                assert_eq!(code, FlowCode::GuardrailBlocked);
                assert!(message.contains(why), "{message}");
            }
        }
    }
    let mut play = start("severity: high", "", "block");
    play.model("serve", text("Fine."));
    play.apply(Input::Cancel { by: person("dev", &[]), reason: None });
    assert_eq!((play.status(), inquiry_task(&play)), (RunStatus::Cancelled, None));
}

#[test]
fn an_edit_that_a_program_objects_to_is_a_mistake_at_its_place() {
    let source = "
id: edited
input: { type: object, properties: { draft: { type: string, default: A text } } }
guardrails: [{ name: house-rules, webhook: { url: 'https://rules.example.com/look' } }]
nodes:
  look: { human: { prompt: Fine?, edit_keys: [draft], options: [{ id: yes, label: Fine }] } }
";
    let mut play = Play::start(source, json!({}));
    let review = play.review();
    let mut edited = request(&review, choose("yes"));
    edited.edits = object(json!({ "draft": "A falcon" }));
    let refused = play.try_decide(review.id, &ana(), edited.clone()).unwrap_err();
    assert_eq!(mistakes(refused), [("/edits/draft".to_owned(), "GUARDRAIL_BLOCKED".to_owned())]);
    assert!(play.review().is_pending());
    edited.edits = object(json!({ "draft": "A sparrow" }));
    play.try_decide(review.id, &ana(), edited).unwrap();
    assert_eq!(play.key("draft"), "A sparrow");
}
