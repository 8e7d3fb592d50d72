//! What guardrails redact is checked a second time before it takes effect, wherever it is: it must still fit its place,
//! and nothing may be left in it.

use super::*;

/// A flow that returns `answer`, with a gate before its output or without one, and as a called flow with a gate.
fn outputs(schema: &str, guardrails: &str, answer: &str) -> [Play; 3] {
    let source = |id: &str, gates: &str| {
        format!(
            "id: {id}\n{gates}input: {{ type: object, properties: {{ answer: {{ type: string }} }} }}\noutput: [answer]\n\
             output_schema: {schema}\nguardrails: {guardrails}\nnodes: {{ done: {{ set: {{ beside: 1 }} }} }}\n"
        )
    };
    let gate = "gates: { before_return: true }\n";
    let input = || json!({ "answer": answer });
    let mut gated = Play::start(&source("gated", gate), input());
    gated.decide(approved());
    let calling = "
id: calling
guardrails: false
input: { type: object, properties: { answer: { type: string } } }
nodes: { call: { flow: { id: called, input: { answer: '{{ input.answer }}' } }, write_keys: [answer] } }
";
    let mut library = flow::Library::default();
    library.add(Arc::new(compile(&source("called", gate))));
    let calling = flow::check(calling).flow.unwrap();
    let mut calling = Play::try_start(Compiled::calling(calling, 1, &library).unwrap(), input()).unwrap();
    calling.decide(approved());
    [Play::start(&source("plain", ""), input()), gated, calling]
}

fn approved() -> Verdict {
    answer_actions([("output", ActionDecision::APPROVE)])
}

fn fired(play: &Play) -> Vec<String> {
    let fired = play.events.iter().filter(|event| event.kind == EntryKind::GuardrailFired);
    fired.map(|event| format!("{} {}", event.data["guardrail"], event.data["effect"]).replace('"', "")).collect()
}

#[test]
fn a_redacted_output_still_fits_the_schema_of_its_flow() {
    let rules = "[{ name: names, pattern: Ann, effect: redact, on: [outputs] }]";
    let schema = "{ properties: { answer: { type: string, maxLength: 8 } } }";
    for play in outputs(schema, rules, "Dear Ann") {
        let (code, message) = play.error();
        assert_eq!(code, FlowCode::GuardrailBlocked, "{}", play.flow.flow.id);
        let why = "names: the redacted output does not match `output_schema`: /answer: must be at most 8 characters long [invalid]";
        assert!(message.ends_with(why), "{message}");
        assert_eq!(fired(&play), ["names redact", "names block"]);
    }
    for play in outputs("{ properties: { answer: { type: string, maxLength: 15 } } }", rules, "Dear Ann") {
        assert_eq!((play.status(), play.key("answer")), (RunStatus::Completed, &json!("Dear [redacted]")));
    }
}

#[test]
fn what_redaction_uncovers_is_redacted_too() {
    for play in outputs("{}", "[pii-redaction]", "4111111111111111,5105105105105100") {
        assert_eq!((play.status(), play.key("answer")), (RunStatus::Completed, &json!("[redacted],[redacted]")));
    }
}

#[test]
fn what_redaction_brings_about_is_found_in_outputs_too() {
    let redact = "{ name: names, pattern: Ann, effect: redact, on: [outputs] }";
    for play in outputs("{}", &format!("[{{ name: own, pattern: 'd\\]t' }}, {redact}]"), "Annt") {
        let (code, message) = play.error();
        assert_eq!(code, FlowCode::GuardrailBlocked, "{}", play.flow.flow.id);
        assert!(message.ends_with("own: it matches the pattern"), "{message}");
    }
    for play in outputs("{}", "[{ name: names, pattern: Ann|act, effect: redact, on: [outputs] }]", "Ann") {
        let (code, message) = play.error();
        assert_eq!(code, FlowCode::GuardrailBlocked, "{}", play.flow.flow.id);
        assert!(message.ends_with("names: it matches the pattern, even after redaction"), "{message}");
    }
    // A warning that only the redacted output gives is noted.
    for play in outputs("{}", &format!("[{{ name: soft, pattern: 'd\\]t', effect: warn }}, {redact}]"), "Annt") {
        assert_eq!(play.status(), RunStatus::Completed);
        assert_eq!(fired(&play), ["names redact", "soft warn"]);
    }
}

#[test]
fn what_redaction_uncovers_in_what_people_put_in_is_redacted_too() {
    const NUMBERS: &str = "4111111111111111,5105105105105100";
    const REDACTED: &str = "[redacted],[redacted]";
    let human = |more: &str| {
        format!(
            "id: edit\ninput: {{ type: object, properties: {{ draft: {{ type: string, default: A }} }} }}\n\
             nodes: {{ ask: {{ human: {{ prompt: Fine?, edit_keys: [draft]{more} }} }} }}\n"
        )
    };
    let mut play = Play::start(&human(", options: [{ id: yes, label: Fine }]"), json!({}));
    let review = play.review();
    let edited = DecisionRequest { edits: object(json!({ "draft": NUMBERS })), ..request(&review, choose("yes")) };
    play.try_decide(review.id, &ana(), edited).unwrap();
    assert_eq!(json!(play.snapshot.state.decisions)["ask"]["edits"]["draft"], REDACTED);

    let mut play = Play::start(&human(""), json!({}));
    let review = play.review();
    play.try_decide(review.id, &ana(), request(&review, say(NUMBERS))).unwrap();
    assert_eq!(json!(play.snapshot.state.decisions)["ask"]["text"], REDACTED);

    let source = "
id: respond
agents: { clerk: { model: demo/clerk, tools: [look] } }
tools: { look: { http: { url: 'https://example.com' } } }
nodes: { serve: { agent: clerk, prompt: Serve. } }
gates: { before_tool: { look: true } }
";
    let mut play = Play::start(source, json!({}));
    play.model("serve", calls([("look", json!({}))]));
    play.decide(answer_actions([("c1-1", ActionDecision::Respond { message: NUMBERS.to_owned() })]));
    assert!(
        play.heard("serve")
            .iter()
            .any(|message| matches!(message, Message::Tool { content, .. } if content == REDACTED))
    );
}
