//! Results that come after the end of the run.

use super::*;

/// Two agents side by side.
const FLOW: &str = r#"
id: l
agents: { sage: { model: demo/sage, tools: [send, nap] } }
tools:
  send: { http: { url: "https://x" } }
  nap: { builtin: sleep }
nodes:
  fork: { set: { forked: true }, next: [think, muse] }
  think: { agent: sage, prompt: Think. }
  muse: { agent: sage, prompt: Muse. }
"#;

/// Returns a run that was cancelled while a model call, a tool call and a sleep were under way.
fn cancelled() -> (Play, Task, Task, Task) {
    let mut play = Play::start(FLOW, json!({}));
    play.model("think", calls([("send", json!({ "to": "ana" })), ("nap", json!({ "duration": "1h" }))]));
    let (model, send, nap) = (play.task_at("muse"), play.call_task("c1-1"), play.call_task("c1-2"));
    play.apply(Input::Cancel { by: person("dev", &[]), reason: None });
    assert_eq!((play.status(), play.tasks.len()), (RunStatus::Cancelled, 0));
    (play, model, send, nap)
}

#[test]
fn a_late_result_is_recorded_once_and_has_no_effect() {
    let (mut play, model, send, nap) = cancelled();
    let used = play.snapshot.state.total_tokens;

    play.returned(&send, json!({ "sent": true }));
    insta::assert_json_snapshot!("late", play.events);
    let again = Input::ToolReturned { task: send.id, attempt: 1, result: json!({ "sent": true }) };
    assert_eq!(play.try_apply(again), Err(Refusal::TaskOver));

    play.apply(Input::ModelAnswered { task: model.id, attempt: 1, answer: text("An idea.") });
    let told = &play.events[0].data;
    assert_eq!(
        (&told["late"], &told["text"], &told["usage"]["tokens"]),
        (&json!(true), &json!("An idea."), &json!(10))
    );
    assert_eq!(play.snapshot.state.total_tokens, used, "only the record has it");
    assert_eq!(play.try_apply(Input::Due { task: nap.id }), Err(Refusal::TaskOver), "a sleep leaves nothing to tell");
    assert!(play.abandoned.is_empty());
}

#[test]
fn a_late_failure_is_recorded_and_not_tried_again() {
    let (mut play, model, send, _) = cancelled();
    play.failed(&model, FlowCode::ModelFailed, true);
    assert_eq!((play.kinds(), &play.events[0].data["error"]["message"]), (vec!["model.answered"], &json!("no luck")));
    play.failed(&send, FlowCode::ToolFailed, true);
    assert_eq!((play.kinds(), &play.events[0].data["late"]), (vec!["tool.executed"], &json!(true)));
    assert!(play.tasks.is_empty());
}

#[test]
fn what_does_not_answer_the_call_is_refused() {
    let (mut play, model, ..) = cancelled();
    let other = Input::ToolReturned { task: model.id, attempt: 1, result: Value::Null };
    assert_eq!(play.try_apply(other), Err(Refusal::TaskOver));
    play.apply(Input::ModelAnswered { task: model.id, attempt: 1, answer: text("x") });
}
