//! `auto` handlers: nobody waits, and everything is recorded.

use super::*;

const AUTO: &str = r#"
id: auto
input: { type: object, properties: { draft: { type: string, default: A text } } }
nodes:
  ask:
    human:
      prompt: Fine?
      review_keys: [draft]
      options: [{ id: no, kind: stop, label: No }, { id: yes, label: Fine }, { id: also, label: Also fine }]
      handlers: [HANDLER]
    next: after
  after: { set: { said: "{{ decisions.ask.option }} {{ decisions.ask.via }} {{ decisions.ask.by | length }}" } }
"#;

#[test]
fn a_node_that_is_approved_automatically_never_waits_and_is_on_the_record_with_its_content() {
    let play = Play::start(&AUTO.replace("HANDLER", "{ auto: approve }"), json!({}));
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("yes auto 0")));
    let told: Vec<_> = play.events.iter().filter(|event| event.kind.is_review()).collect();
    assert_eq!(
        told.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(),
        ["review.requested", "review.resolved"]
    );
    for event in told {
        assert_eq!(event.data["review"]["status"], "resolved", "it is never shown as pending");
        assert_eq!(event.data["review"]["items"][0]["value"], "A text");
    }
    let review = play.snapshot.reviews.values().next().unwrap().clone();
    insta::assert_json_snapshot!("auto", review.resolution.unwrap());
    assert!(play.tasks.is_empty());
}

#[test]
fn a_node_that_is_rejected_automatically_stops_with_the_reason_or_goes_on_at_on_reject() {
    let reject = AUTO.replace("HANDLER", "{ auto: { reject: Not on Sundays } }");
    let play = Play::start(&reject, json!({}));
    assert_eq!(play.error(), (FlowCode::FlowHumanRejected, "Not on Sundays".to_owned()));
    let play = Play::start(&reject.replace("      handlers", "      on_reject: after\n      handlers"), json!({}));
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("no auto 0")));
}

#[test]
fn the_defaults_handler_counts_where_a_node_or_gate_names_none() {
    let source = AUTO.replace("handlers: [HANDLER]", "severity: low") + "defaults: { handlers: [{ auto: approve }] }\n";
    assert_eq!(Play::start(&source, json!({})).key("said"), &json!("yes auto 0"));
    let person = source.replace("severity: low", "handlers: [human]");
    assert_eq!(Play::start(&person, json!({})).status(), RunStatus::WaitingForHuman);
}

#[test]
fn gated_calls_are_approved_or_rejected_at_once_and_the_others_wait() {
    let source = r#"
id: g
agents: { a: { model: demo/a, tools: [read, send, wipe] } }
tools:
  read: { http: { url: "https://x" } }
  send: { http: { url: "https://x" } }
  wipe: { http: { url: "https://x" } }
nodes: { a: { agent: a, next: go }, go: { tool: read, arguments: {} } }
gates:
  before_tool:
    read: { handlers: [{ auto: approve }] }
    wipe: { handlers: [{ auto: { reject: Never }}] }
    send: true
"#;
    let mut play = Play::start(source, json!({}));
    play.model("a", calls([("read", json!({})), ("send", json!({})), ("wipe", json!({}))]));
    assert_eq!(play.snapshot.reviews.len(), 3);
    let send = play.review();
    assert!(play.tasks.is_empty(), "a call that is approved waits for the gated ones of its turn");
    play.decide_on(&send, answer_actions([("c1-2", ActionDecision::APPROVE)]));
    for call in ["c1-1", "c1-2"] {
        let task = play.call_task(call);
        play.returned(&task, json!("ok"));
    }
    let heard = play.heard("a");
    let Some(Message::Tool { content, .. }) = heard.last() else { panic!("{heard:?}") };
    assert_eq!(content, "TOOL_PERMISSION_DENIED: Never");
    play.model("a", text("done"));
    let task = play.task_at("go");
    play.returned(&task, json!("ok"));
    assert_eq!(play.status(), RunStatus::Completed);
}
