//! Guardrails: what was approved is checked before it happens, whoever approved it.

use shared::definition::Effect;
use shared::grant::{GrantScope, Remember};
use shared::review::{Checked, ReviewStatus};

use super::*;
use crate::flow::Library;

const SHELL: &str = r#"
id: guarded
input: { type: object, properties: { place: { type: string, default: /tmp } } }
agents:
  clerk: { model: demo/clerk, tools: [shell, look], max_turns: 5 }
tools:
  shell:
    http: { url: "https://example.com/run", body: { in: "{{ place }}", command: "{{ arguments.command }}" } }
    parameters: { type: object, required: [command], properties: { command: { type: string, maxLength: 60 } } }
  look: { http: { url: "https://example.com/look" }, idempotent: true }
nodes:
  serve: { agent: clerk, prompt: Serve. }
gates:
  before_tool:
    shell: { GATE }
"#;

const DESTROYS: &str = "rm -rf /";
const CARD: &str = "4111 1111 1111 1111";

fn shell(gate: &str, more: &str) -> Play {
    Play::start(&(SHELL.replace("GATE", gate) + more), json!({}))
}

fn run(play: &mut Play, command: &str) {
    play.model("serve", calls([("shell", json!({ "command": command }))]));
}

fn heard(play: &Play) -> Vec<String> {
    let tool = |message| match message {
        Message::Tool { content, .. } => Some(content.as_str().map_or_else(|| content.to_string(), str::to_owned)),
        _ => None,
    };
    play.heard("serve").into_iter().filter_map(tool).collect()
}

fn fired(play: &Play) -> Vec<String> {
    let fired = play.events.iter().filter(|event| event.kind == EntryKind::GuardrailFired);
    let word =
        |event: &shared::log::Event, key: &str| event.data.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
    let words = |event| ["guardrail", "effect", "action", "key"].map(|key| word(event, key)).join(" ");
    fired.map(words).collect()
}

const VETOED: &str = "GUARDRAIL_BLOCKED: code-safety: it deletes everything (`rm -rf`)";

fn is_vetoed(play: &Play, review: ReviewId) {
    assert_eq!(heard(play).last().map(String::as_str), Some(VETOED));
    let review = play.past(review);
    let resolution = review.resolution.as_ref().expect("it is resolved");
    assert_eq!(resolution.vetoes.len(), 1, "{resolution:?}");
    assert_eq!(
        (&*resolution.vetoes[0].guardrail, resolution.vetoes[0].action.as_deref()),
        ("code-safety", Some(&*review.actions[0].id))
    );
    let entry = play.events.iter().find(|event| event.kind == EntryKind::GuardrailFired).expect("it is told");
    assert_eq!((entry.review_id, &entry.data["review"]), (Some(review.id), &json!(review.id)));
    assert!(!play.tasks.values().any(|task| matches!(task.kind, TaskKind::Tool { .. })), "nothing runs");
}

#[test]
fn a_person_approves_and_nothing_is_destroyed() {
    let mut play = shell("severity: high", "");
    run(&mut play, DESTROYS);
    let review = play.review();
    let warning = &review.warnings[0];
    assert_eq!(
        (&*warning.guardrail, warning.action.as_deref(), warning.effect),
        ("code-safety", Some("c1-1"), Effect::Block)
    );
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    is_vetoed(&play, review.id);

    let mut play = shell("severity: high", "");
    run(&mut play, "ls");
    assert_eq!(play.review().warnings, []);
    let review = play.review();
    let arguments = object(json!({ "command": DESTROYS }));
    play.decide(answer_actions([("c1-1", ActionDecision::Edit { arguments })]));
    is_vetoed(&play, review.id);
}

#[test]
fn what_is_safe_runs_and_an_empty_list_lets_everything_run() {
    for (more, command) in [("", "ls -l"), ("guardrails: []", DESTROYS), ("guardrails: false", DESTROYS)] {
        let mut play = shell("severity: high", more);
        run(&mut play, command);
        play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
        assert_eq!(play.tool_work(&play.call_task("c1-1")).arguments["command"], command);
        assert_eq!(fired(&play), [""; 0]);
    }
    let mut play = shell("guardrails: false", "");
    run(&mut play, DESTROYS);
    assert_eq!(play.review().warnings, []);
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    play.call_task("c1-1");
}

#[test]
fn what_is_approved_automatically_or_by_the_time_is_looked_at_too() {
    let mut play = shell("handlers: [{ auto: approve }]", "");
    run(&mut play, DESTROYS);
    let review = *play.snapshot.reviews.keys().next().expect("it is on the record");
    is_vetoed(&play, review);

    let mut play = shell("timeout: 1h, on_timeout: approve", "");
    run(&mut play, DESTROYS);
    let review = play.review();
    play.now = review.expires_at.unwrap();
    let task = *play.tasks.keys().next().unwrap();
    play.apply(Input::Due { task });
    assert_eq!(play.past(review.id).status, ReviewStatus::Expired);
    is_vetoed(&play, review.id);
}

#[test]
fn a_grant_lets_nothing_pass_that_its_giver_could_not() {
    let mut play = shell("severity: high", "");
    run(&mut play, "ls");
    let remember = Remember { scope: GrantScope::Run, for_ms: Some(3_600_000), arguments: Vec::new() };
    play.decide(answer_actions([("c1-1", ActionDecision::Approve { remember: Some(remember) })]));
    let task = play.call_task("c1-1");
    play.returned(&task, json!("a b"));
    run(&mut play, DESTROYS);
    assert!(play.kinds().contains(&"grant.used"));
    let resolved = play.events.iter().find(|event| event.kind == EntryKind::ReviewResolved).expect("on the record");
    let id = resolved.review_id.unwrap();
    is_vetoed(&play, id);
}

#[test]
fn a_call_that_was_lost_is_looked_at_before_it_runs_again() {
    let mut play = shell("when: 'false'", "");
    run(&mut play, DESTROYS);
    let task = play.call_task("c1-1").id;
    play.apply(Input::TaskLost { task, attempt: 1, again: false });
    let review = play.review();
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    is_vetoed(&play, review.id);
}

#[test]
fn the_other_calls_of_a_turn_run_beside_one_that_is_vetoed() {
    let mut play = shell("severity: high", "");
    play.model(
        "serve",
        calls([("shell", json!({ "command": DESTROYS })), ("look", json!({})), ("shell", json!({ "command": "ls" }))]),
    );
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE), ("c1-3", ActionDecision::APPROVE)]));
    for call in ["c1-2", "c1-3"] {
        let task = play.call_task(call);
        play.returned(&task, json!(call));
    }
    assert_eq!(heard(&play), [VETOED, "c1-2", "c1-3"]);
}

#[test]
fn a_tool_node_fails_with_the_veto_and_its_policy_says_where_to() {
    let node = |more: &str| {
        let serve = format!("serve: {{ tool: shell, arguments: {{ command: rm -rf / }}{more}");
        let source = SHELL.replace("GATE", "handlers: [{ auto: approve }]");
        Play::start(&source.replace("serve: { agent: clerk, prompt: Serve. }", &serve), json!({}))
    };
    let play = node(" }");
    assert_eq!(play.error(), (FlowCode::GuardrailBlocked, VETOED.split_once(": ").unwrap().1.to_owned()));
    let play = node(", failure: { then: { goto: after } } }\n  after: { set: { said: vetoed } }");
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("vetoed")));
}

#[test]
fn a_redacted_call_is_another_call_and_exactly_that_is_sent_at_every_try() {
    let redact = "guardrails: [{ name: pii-redaction, effect: redact }]";
    let mut play = shell("severity: high", redact);
    run(&mut play, &format!("pay {CARD}"));
    let review = play.review();
    let shown = digest::of_call("shell", &review.actions[0].arguments, review.actions[0].request.as_ref());
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    assert_eq!(fired(&play), ["pii-redaction redact c1-1 -"]);
    let past = play.past(review.id);
    assert!(past.actions[0].redacted && past.resolution.as_ref().unwrap().vetoes.is_empty());
    assert_eq!(past.actions[0].arguments["command"], format!("pay {CARD}"), "what was approved stays on the record");
    assert_eq!(past.digest, review.digest);
    let task = play.call_task("c1-1");
    let sent = play.tool_work(&task);
    assert_eq!(sent.arguments["command"], "pay [redacted]");
    let shared::request::Request::Http(http) = &sent.request else { panic!("{:?}", sent.request) };
    assert_eq!(http.body, Some(json!({ "in": "/tmp", "command": "pay [redacted]" })));
    play.returned(&task, json!("paid"));
    let told = play.events.iter().find(|event| event.kind == EntryKind::ToolExecuted).unwrap();
    assert_eq!(told.data["arguments"]["command"], "pay [redacted]");
    assert_ne!(told.data["digest"], json!(shown));
}

#[test]
fn what_redaction_does_not_reach_does_not_happen() {
    let redact = "guardrails: [{ name: pii-redaction, effect: redact }]";
    let source = SHELL.replace("GATE", "severity: high") + redact;
    let mut play = Play::start(&source, json!({ "place": CARD }));
    run(&mut play, &format!("pay {CARD}"));
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    assert_eq!(
        heard(&play),
        ["GUARDRAIL_BLOCKED: pii-redaction: it holds a card number, but nothing can be redacted here"]
    );
    let mut play = Play::start(&source, json!({ "place": CARD }));
    run(&mut play, "ls");
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    assert_eq!(
        heard(&play),
        ["GUARDRAIL_BLOCKED: pii-redaction: it holds a card number, but nothing can be redacted here"]
    );
    let source = source.replace("maxLength: 60", "pattern: '^[0-9 ]+$'");
    let mut play = Play::start(&source, json!({}));
    run(&mut play, CARD);
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    assert!(heard(&play)[0].contains("arguments are not valid for the tool"), "{:?}", heard(&play));
}

#[test]
fn what_a_request_says_beyond_the_arguments_is_looked_at() {
    let source = SHELL
        .replace("GATE", "severity: high")
        .replace("body: { in: \"{{ place }}\"", "body: { in: \"{{ place }}; reboot\"");
    let mut play = Play::start(&source, json!({}));
    run(&mut play, "ls");
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    assert_eq!(heard(&play), ["GUARDRAIL_BLOCKED: code-safety: it restarts the machine (`reboot`)"]);
}

#[test]
fn an_answer_in_the_place_of_a_result_is_looked_at_as_an_edit() {
    let respond = |more: &str, message: &str| {
        let mut play = shell("severity: high", more);
        run(&mut play, "ls");
        let message = message.to_owned();
        play.decide(answer_actions([("c1-1", ActionDecision::Respond { message })]));
        (heard(&play).remove(0), fired(&play))
    };
    let (said, fired) = respond("", &format!("paid with {CARD}"));
    assert_eq!((said.as_str(), fired), ("paid with [redacted]", vec!["pii-redaction redact c1-1 -".to_owned()]));
    assert_eq!(respond("", "kill -9").0, "kill -9", "an answer runs nothing");
    let (said, _) = respond("guardrails: [{ name: own, pattern: falcon }]", "the falcon");
    assert_eq!(said, "GUARDRAIL_BLOCKED: own: it matches the pattern");
}

const EDIT: &str = r"
id: edit
input: { type: object, properties: { draft: { type: string, default: A text }, note: { type: string, default: Another } } }
guardrails: [pii-redaction, { name: names, pattern: falcon, message: Leave the name out. }]
nodes:
  ask:
    human:
      prompt: Fine?
      edit_keys: [draft, note]
      options: [{ id: yes, label: Fine }]
";

fn edit(play: &mut Play, edits: Value) -> Result<(), Refusal> {
    let review = play.review();
    let request = DecisionRequest { edits: object(edits), ..request(&review, choose("yes")) };
    play.try_decide(review.id, &ana(), request)
}

#[test]
fn a_vetoed_edit_is_a_mistake_at_its_place_and_nothing_has_happened() {
    let mut play = Play::start(EDIT, json!({}));
    let refused = edit(&mut play, json!({ "draft": "the falcon", "note": "fine" })).unwrap_err();
    let Refusal::Invalid(found) = refused else { panic!("{refused:?}") };
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].path, &*found[0].code, &*found[0].message),
        ("/edits/draft", "GUARDRAIL_BLOCKED", "names: Leave the name out.")
    );
    assert!(play.review().is_pending());
    edit(&mut play, json!({ "draft": format!("Card {CARD}"), "note": "fine" })).unwrap();
    assert_eq!((play.key("draft"), play.key("note")), (&json!("Card [redacted]"), &json!("fine")));
    assert_eq!(json!(play.snapshot.state.decisions)["ask"]["edits"]["draft"], "Card [redacted]");
    assert_eq!(fired(&play), ["pii-redaction redact - draft"], "the output has nothing left to redact");
    let mut play = Play::start(&EDIT.replace("prompt: Fine?", "prompt: Fine?\n      guardrails: false"), json!({}));
    edit(&mut play, json!({ "draft": "the falcon" })).unwrap();
    assert_eq!(play.error().0, FlowCode::GuardrailBlocked, "the output is looked at all the same");
}

#[test]
fn an_answer_in_words_is_looked_at_and_a_correction_or_a_comment_is_not() {
    let source = EDIT.replace("      options: [{ id: yes, label: Fine }]\n", "");
    let mut play = Play::start(&source, json!({}));
    let review = play.review();
    let refused = play.try_decide(review.id, &ana(), request(&review, say("the falcon"))).unwrap_err();
    assert_eq!(mistakes(refused), [("/verdict/text".to_owned(), "GUARDRAIL_BLOCKED".to_owned())]);
    let comment = Some("the falcon".to_owned());
    let said = DecisionRequest { comment, ..request(&review, say(&format!("pay {CARD}"))) };
    play.try_decide(review.id, &ana(), said).unwrap();
    assert_eq!(play.key("ask"), &json!("pay [redacted]"));
    assert_eq!(json!(play.snapshot.state.decisions)["ask"]["text"], "pay [redacted]");
}

#[test]
fn an_edit_beside_a_vote_is_redacted_before_others_see_it() {
    let source = EDIT.replace("prompt: Fine?", "prompt: Fine?\n      policy: unanimous");
    let people = [ana(), person("tom", &["reviewer"])];
    let mut play = Play::try_start_among(compile(&source), json!({}), &people).unwrap();
    let review = play.review();
    let vote = |edits: Value| DecisionRequest { edits: object(edits), ..request(&review, choose("yes")) };
    let refused = play.try_decide(review.id, &people[0], vote(json!({ "note": "a falcon" }))).unwrap_err();
    assert_eq!(mistakes(refused), [("/edits/note".to_owned(), "GUARDRAIL_BLOCKED".to_owned())]);
    play.try_decide(review.id, &people[0], vote(json!({ "note": CARD }))).unwrap();
    assert_eq!(fired(&play), ["pii-redaction redact - note"]);
    let shown = play.review();
    assert_eq!(shown.items.iter().find(|item| item.key == "note").unwrap().value, "[redacted]");
    play.try_decide(shown.id, &people[1], request(&shown, choose("yes"))).unwrap();
    assert_eq!((play.status(), play.key("note")), (RunStatus::Completed, &json!("[redacted]")));
}

#[test]
fn the_output_is_looked_at_when_it_is_given() {
    let source = "id: out\ninput: { type: object, properties: { a: { type: string }, b: { type: string } } }\noutput: [a]\n\
                  nodes: { n: { set: { c: 1 } } }\n";
    let play = Play::start(source, json!({ "a": format!("Card {CARD}"), "b": CARD }));
    assert_eq!(play.status(), RunStatus::Completed);
    assert_eq!((play.key("a"), play.key("b")), (&json!("Card [redacted]"), &json!(CARD)), "what is not given stays");
    let completed = play.events.iter().find(|event| event.kind == EntryKind::RunCompleted).unwrap();
    assert_eq!(completed.data["output"], json!({ "a": "Card [redacted]" }));
    let run = shown_run(Some(&play.flow), &play.snapshot.state);
    assert_eq!(run.output, Some(object(json!({ "a": "Card [redacted]" }))));
    assert_eq!(fired(&play), ["pii-redaction redact - a"]);

    let strict = format!("{source}guardrails: [{{ name: pii-redaction, effect: block }}]\n");
    let play = Play::start(&strict, json!({ "a": CARD }));
    let (code, message) = play.error();
    assert_eq!(code, FlowCode::GuardrailBlocked);
    assert_eq!(message, "the output may not be returned: pii-redaction: it holds a card number");
    assert!(!play.kinds().contains(&"run.completed"));
    let off = format!("{source}guardrails: false\n");
    assert_eq!(Play::start(&off, json!({ "a": CARD })).key("a"), &json!(CARD));
}

#[test]
fn a_called_flow_has_its_own_guardrails_and_its_output_goes_through_those_of_the_run() {
    let called = SHELL.replace("GATE", "handlers: [{ auto: approve }]").replace("id: guarded", "id: called").replace(
        "serve: { agent: clerk, prompt: Serve. }",
        "serve: { tool: shell, arguments: { command: rm -rf / }, failure: { then: { goto: after } } }\n  after: { set: { said: '4111111111111111' } }",
    );
    let run = |more: &str| {
        let mut library = Library::default();
        library.add(Arc::new(compile(&(called.clone() + more))));
        let caller =
            "id: caller\nguardrails: [pii-redaction]\nnodes: { go: { flow: { id: called }, write_keys: [said] } }\n";
        let flow = flow::check(caller).flow.unwrap();
        Play::try_start(Compiled::calling(flow, 1, &library).unwrap(), json!({})).unwrap()
    };
    let play = run("");
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("[redacted]")));
    assert_eq!(fired(&play), ["code-safety block c1-1 -", "pii-redaction redact - said"]);
    let play = run("guardrails: false\n");
    assert_eq!(play.status(), RunStatus::Running, "the call of the called flow runs");
}

#[test]
fn a_decision_can_be_checked_before_it_is_made() {
    let checked = |play: &Play, request: &DecisionRequest| -> Result<Checked, Refusal> {
        let review = play.review();
        check(&play.flow, play.snapshot.clone(), review.id, &ana(), request, &[], Play::moment(play.now, 9))
    };
    let mut play = shell("severity: high", "");
    run(&mut play, "ls");
    let review = play.review();
    let edited = |command: &str| {
        let arguments = object(json!({ "command": command }));
        request(&review, answer_actions([("c1-1", ActionDecision::Edit { arguments })]))
    };
    assert_eq!(checked(&play, &edited("ls -l")).unwrap(), Checked::default());
    let found = checked(&play, &edited(DESTROYS)).unwrap();
    assert_eq!((found.vetoes.len(), found.vetoes[0].action.as_deref()), (1, Some("c1-1")));
    assert!(play.review().is_pending());
    let behind = DecisionRequest { revision: 7, ..edited("ls") };
    assert!(matches!(checked(&play, &behind), Err(Refusal::RevisionChanged(_))));

    let play = Play::start(EDIT, json!({}));
    let review = play.review();
    let edits = object(json!({ "note": "a falcon", "draft": CARD }));
    let found = checked(&play, &DecisionRequest { edits, ..request(&review, choose("yes")) }).unwrap();
    let expected = json!({
        "vetoes": [{ "guardrail": "names", "key": "note", "reason": "Leave the name out." }],
        "redactions": [
            { "guardrail": "pii-redaction", "key": "draft", "reason": "it holds a card number", "effect": "redact" },
        ],
    });
    assert_eq!(json!(found), expected);
}
