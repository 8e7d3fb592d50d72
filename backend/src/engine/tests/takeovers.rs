//! Steps that are handed from agent to agent: the limits of each agent hold for all that it does in the step.

use super::teams::{due, prompt, results, says, task_of};
use super::*;

const STEP: &str = "
id: step
agents:
  clerk: { model: demo/c, tools: [stuck], LIMITS }
  expert: { model: demo/x, tools: [stuck] }
tools: { stuck: { builtin: escalate } }
nodes: { serve: { agent: clerk, prompt: Serve. } }
";

const TEAM: &str = "
id: team
agents:
  one: { model: demo/1, tools: [stuck, look], LIMITS }
  two: { model: demo/2, tools: [look], budget: { tokens: 25 } }
  lead: { model: demo/l }
tools:
  stuck: { builtin: escalate }
  look: { http: { url: 'https://example.com' }, idempotent: true }
nodes: { work: { team: { agents: [one, two], lead: lead, prompt: Work., MORE } } }
";

fn step(limits: &str) -> Play {
    Play::start(&STEP.replace("LIMITS", limits), json!({}))
}

fn team(more: &str, limits: &str) -> Play {
    Play::start(&TEAM.replace("MORE", more).replace("LIMITS", limits), json!({}))
}

fn stuck() -> ModelAnswer {
    calls([("stuck", json!({ "reason": "out_of_scope", "explanation": "Not mine." }))])
}

/// Lets an agent escalate, and gives its step to another one.
fn hands_over(play: &mut Play, from: &str, to: &str) {
    says(play, from, stuck());
    let fields = object(json!({ "agent": to, "instructions": "Help out." }));
    play.decide(Verdict::Choose { option: "delegate".to_owned(), fields });
}

/// Returns the same answer with a usage of no tokens.
fn for_nothing(answer: ModelAnswer) -> ModelAnswer {
    ModelAnswer { tokens: 0, ..answer }
}

/// Lets a person write the output of a step in place of its agent.
fn writes(play: &mut Play, values: Value) {
    play.decide(choose("human_takeover"));
    let review = play.review();
    let written = DecisionRequest { edits: object(values), ..request(&review, choose("done")) };
    play.try_decide(review.id, &ana(), written).unwrap();
}

#[test]
fn an_agent_that_has_its_step_back_goes_on_with_what_it_had_used() {
    let back = |limits: &str| {
        let mut play = step(limits);
        hands_over(&mut play, "clerk", "expert");
        hands_over(&mut play, "expert", "clerk");
        play
    };
    let mut play = back("budget: { tokens: 15 }");
    says(&mut play, "clerk", text("Done."));
    assert_eq!(play.error(), (FlowCode::BudgetExceeded, "agent `clerk` used 20 tokens of 15".to_owned()));

    let mut play = back("max_turns: 2");
    says(&mut play, "clerk", stuck());
    assert_eq!(play.error(), (FlowCode::ModelFailed, "agent `clerk` had no answer after 2 turns".to_owned()));

    let mut play = back("max_asks: 1");
    says(&mut play, "clerk", stuck());
    let heard = play.heard("serve");
    let Some(Message::Tool { content, .. }) = heard.last() else { panic!("{heard:?}") };
    assert_eq!(content, "TOOL_FAILED: you have asked people 1 times in this step, and may not ask again");
    says(&mut play, "clerk", text("Done."));
    assert_eq!((play.status(), play.key("serve")), (RunStatus::Completed, &json!("Done.")));
    assert_eq!(play.steps[0].note.as_deref(), Some("40 tokens, 0.004 US dollars"), "of both");
}

#[test]
fn who_takes_over_a_turn_uses_its_own_account_and_leaves_the_members_as_it_is() {
    let mut play = team("strategy: debate, rounds: 2", "budget: { tokens: 15 }");
    hands_over(&mut play, "one", "two");
    says(&mut play, "two", for_nothing(text("In its place.")));
    says(&mut play, "two", text("Mine."));
    assert_eq!(due(&play), ["one"]);
    let mut over = play.again();
    says(&mut over, "one", text("More."));
    assert_eq!(over.error(), (FlowCode::BudgetExceeded, "agent `one` used 20 tokens of 15".to_owned()));
    says(&mut play, "one", for_nothing(text("Little.")));
    says(&mut play, "two", text("Mine."));
    says(&mut play, "lead", text("All."));
    let note = "lead ×1 (10 tokens), one ×2 (10 tokens), two ×2 (20 tokens)";
    assert_eq!((play.status(), play.steps[0].note.as_deref()), (RunStatus::Completed, Some(note)));

    let mut play = team("strategy: debate, rounds: 2", "max_turns: 9");
    hands_over(&mut play, "one", "two");
    says(&mut play, "two", text("In its place."));
    says(&mut play, "two", text("Mine."));
    says(&mut play, "one", text("More."));
    says(&mut play, "two", text("Mine."));
    assert_eq!(play.error(), (FlowCode::BudgetExceeded, "agent `two` used 30 tokens of 25".to_owned()));
}

#[test]
fn an_agent_that_has_two_turns_at_once_has_one_account() {
    let mut play = team("strategy: parallel", "max_turns: 9");
    says(&mut play, "two", calls([("look", json!({}))]));
    hands_over(&mut play, "one", "two");
    let taken_over = task_of(&play, "two");
    let look = play.call_task("two.2-c1-1");
    play.returned(&look, json!("seen"));
    play.apply(Input::ModelAnswered { task: taken_over, attempt: 1, answer: text("In its place.") });
    says(&mut play, "two", text("Mine."));
    assert_eq!(play.error(), (FlowCode::BudgetExceeded, "agent `two` used 30 tokens of 25".to_owned()));
}

#[test]
fn the_limits_of_a_member_hold_for_all_calls_of_a_routing_lead() {
    let mut play = team("strategy: router", "max_turns: 2");
    let to = |member: &str| (format!("delegate_to_{member}"), json!({ "task": "Look." }));
    let (one, two) = (to("one"), to("two"));
    let (one, two) = ((&*one.0, one.1), (&*two.0, two.1));
    says(&mut play, "lead", calls([one.clone(), two.clone(), two.clone()]));
    says(&mut play, "one", text("Seen."));
    says(&mut play, "two", text("Seen."));
    says(&mut play, "two", text("Seen."));
    says(&mut play, "lead", calls([one, two]));
    says(&mut play, "one", calls([("look", json!({}))]));
    says(&mut play, "two", text("More."));
    let told = results(&play, "lead").split_off(3);
    let refused =
        ["MODEL_FAILED: agent `one` had no answer after 2 turns", "BUDGET_EXCEEDED: agent `two` used 30 tokens of 25"];
    assert_eq!(told, refused);
}

const DRAFT: &str = "
id: draft
agents: { clerk: { model: demo/c, tools: [stuck] } }
tools: { stuck: { builtin: escalate } }
nodes:
  write: { agent: clerk, prompt: Write., max_visits: 3, next: check }
  check: { human: { prompt: Good?, options: [{ id: ok, label: OK }, { id: no, kind: correct, label: Again, message: Shorter. }] } }
";

#[test]
fn a_correction_continues_from_what_a_person_wrote_in_place_of_the_agent() {
    let mut play = Play::start(DRAFT, json!({}));
    says(&mut play, "clerk", text("The first."));
    play.decide(choose("no"));
    says(&mut play, "clerk", stuck());
    writes(&mut play, json!({ "write": "The second." }));
    play.decide(choose("no"));
    let said = |text: &str| Message::Assistant { text: text.to_owned(), calls: Vec::new() };
    assert_eq!(play.heard("write")[1], said("The second."));
}

#[test]
fn who_takes_over_writes_values_of_the_types_that_the_agent_was_to_write() {
    let typed = "tools: [stuck], output_schema: { type: object, required: [title, score], $defs: { score: { type: integer } }, \
                 properties: { title: { type: string }, score: { $ref: '#/$defs/score' }, tags: { type: array } } }";
    let mut play = Play::start(&DRAFT.replace("tools: [stuck]", typed), json!({}));
    says(&mut play, "clerk", stuck());
    play.decide(choose("human_takeover"));
    let review = play.review();
    let written = |values: Value| DecisionRequest { edits: object(values), ..request(&review, choose("done")) };
    for (values, place, code) in [
        (json!({ "title": "News" }), "/edits/score", "required"),
        (json!({ "title": "News", "score": "5" }), "/edits/score", "invalid"),
        (json!({ "title": " ", "score": 5 }), "/edits/title", "required"),
    ] {
        let refused = play.try_decide(review.id, &ana(), written(values)).unwrap_err();
        assert_eq!(mistakes(refused), [(place.to_owned(), code.to_owned())]);
    }
    let news = json!({ "title": "News", "score": 5 });
    play.try_decide(review.id, &ana(), written(news.clone())).unwrap();
    assert_eq!(play.key("score"), &json!(5));
    play.decide(choose("no"));
    let heard = play.heard("write");
    let Message::Assistant { text, .. } = &heard[1] else { panic!("{heard:?}") };
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), news, "as if the agent had answered it");
}

const HELPED: &str = "
id: helped
agents:
  clerk: { model: demo/c, tools: [ask_expert, stuck] }
  expert: { model: demo/x, tools: [refund, look] }
  other: { model: demo/o }
tools:
  ask_expert: { agent: expert }
  refund: { http: { url: 'https://example.com/refund' } }
  look: { http: { url: 'https://example.com/look' }, idempotent: true }
  stuck: { builtin: escalate }
nodes: { serve: { agent: clerk, prompt: Serve. } }
";

#[test]
fn who_takes_over_is_told_what_agents_did_for_the_one_before() {
    let mut play = Play::start(HELPED, json!({}));
    let escalation = json!({ "reason": "out_of_scope", "explanation": "Not mine." });
    says(&mut play, "clerk", calls([("ask_expert", json!({ "task": "Help them." })), ("stuck", escalation)]));
    says(&mut play, "expert", calls([("refund", json!({ "amount": 20 }))]));
    let refund = play.call_task("c1-1-c1-1");
    play.returned(&refund, json!("refunded"));
    says(&mut play, "expert", calls([("look", json!({}))]));
    let fields = object(json!({ "agent": "other", "instructions": "Finish it." }));
    play.decide(Verdict::Choose { option: "delegate".to_owned(), fields });
    let told = prompt(&play, "other");
    for part in [
        "`ask_expert` was under way, and did not return",
        "refund({\"amount\":20})",
        "`refund` returned: \"refunded\"",
        "`look` was under way",
        "Finish it.",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("was not called"), "{told}");
}
