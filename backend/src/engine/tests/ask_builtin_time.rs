//! Questions of agents that nobody answers in time: each builtin with each setting of `on_timeout`.

use shared::definition::OnTimeout;

use super::*;

const DESK: &str = "
id: desk
agents: { clerk: { model: demo/clerk, tools: [ask] } }
tools: { ask: { builtin: BUILTIN, timeout: 1h TIMER } }
nodes:
  serve: { agent: clerk, prompt: Serve., failure: { then: { goto: sorry } }, next: end }
  sorry: { set: { apology: yes } }
";

/// A call of each builtin that waits for people.
fn asks() -> [(&'static str, Value); 6] {
    [
        ("ask_human", json!({ "question": "Why?" })),
        ("request_edit", json!({ "content": "Dear all", "purpose": "The letter" })),
        ("request_approval", json!({ "description": "Pay", "action": { "name": "refund", "arguments": { "n": 1 } } })),
        ("checkpoint", json!({ "phase": "Half", "progress": 0.5 })),
        ("escalate", json!({ "reason": "out_of_scope", "explanation": "Not mine." })),
        ("review_calls", json!({ "actions": [{ "name": "refund", "arguments": { "n": 1 } }] })),
    ]
}

fn start(builtin: &str, timer: &str, arguments: &Value) -> Play {
    let timer = if timer.is_empty() { String::new() } else { format!(", on_timeout: {timer}") };
    let mut play = Play::start(&DESK.replace("BUILTIN", builtin).replace("TIMER", &timer), json!({}));
    play.model("serve", calls([("ask", arguments.clone())]));
    play
}

fn time_is_up(play: &mut Play) {
    let expires = play.review().expires_at.unwrap();
    play.now = Timestamp(expires.0 - 1_000_000);
    let task = *play.tasks.keys().next().unwrap();
    play.apply(Input::Due { task });
}

/// Returns the result that the agent gets, or the error with which its step fails.
fn came(play: &Play) -> Value {
    if let Some(step) = play.steps.iter().find(|step| step.status == StepStatus::Failed) {
        assert_eq!((play.status(), play.key("apology")), (RunStatus::Completed, &json!("yes")));
        return json!(step.error.as_ref().unwrap().to_string().replace("FLOW_HUMAN", "step fails: FLOW_HUMAN"));
    }
    match play.heard("serve").last() {
        Some(Message::Tool { content, .. }) => content.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_builtin_with_each_timer_comes_to_what_the_flow_says() {
    let late = || json!("FLOW_HUMAN_TIMEOUT: nobody answered in time");
    let unchanged = || json!({ "content": "Dear all", "changed": false, "feedback": "nobody reviewed it in time" });
    let aborted = || json!("step fails: FLOW_HUMAN_REJECTED: nobody decided in time");
    let refused = || json!({ "approved": false, "reason": "nobody decided in time" });
    let proceeds = || json!({ "decision": "continue" });
    let runs = json!({ "decisions": [{ "id": "call-1", "type": "approve", "arguments": { "n": 1 } }] });
    let no_call =
        || json!({ "decisions": [{ "id": "call-1", "type": "reject", "message": "nobody decided in time" }] });
    for (builtin, arguments) in asks() {
        // In this order: no setting, approve, reject, error, follow.
        let comes = match builtin {
            "ask_human" => [late(), late(), late(), late(), late()],
            "request_edit" => [unchanged(), unchanged(), late(), late(), unchanged()],
            "request_approval" => [refused(), json!({ "approved": true }), refused(), late(), late()],
            "checkpoint" => [late(), proceeds(), aborted(), late(), proceeds()],
            "review_calls" => [no_call(), runs.clone(), no_call(), late(), no_call()],
            _ => [late(), late(), aborted(), late(), late()],
        };
        for (timer, comes) in ["", "approve", "reject", "error", "follow"].into_iter().zip(comes) {
            let mut play = start(builtin, timer, &arguments);
            let review = play.review();
            time_is_up(&mut play);
            assert_eq!(play.past(review.id).status, ReviewStatus::Expired);
            assert_eq!(came(&play), comes, "{builtin}, on_timeout: {timer}");

            // After an escalation, whose people have their own time, the outcome is the same.
            if !timer.is_empty() {
                let escalates = format!("{{ escalate: boss, extend: 2h, then: {timer} }}");
                let mut play = start(builtin, &escalates, &arguments);
                time_is_up(&mut play);
                let review = play.review();
                assert_eq!(review.reviewers.roles, ["reviewer", "boss"], "{builtin}");
                assert_ne!(review.on_timeout.as_ref().map(OnTimeout::last), None);
                time_is_up(&mut play);
                assert_eq!(came(&play), comes, "{builtin}, escalated, then {timer}");
            }
        }
    }
}

#[test]
fn the_default_time_of_the_flow_does_not_apply_to_escalations_and_checkpoints() {
    let defaults = "defaults: { timeout: 24h, on_timeout: reject }\nagents:";
    let flow = DESK.replace("agents:", defaults).replace(", timeout: 1h TIMER", "");
    for (builtin, arguments) in asks() {
        let mut play = Play::start(&flow.replace("BUILTIN", builtin), json!({}));
        play.model("serve", calls([("ask", arguments)]));
        let has_time = play.review().expires_at.is_some();
        assert_eq!(has_time, !matches!(builtin, "escalate" | "checkpoint"), "{builtin}");
    }
}

#[test]
fn an_agent_that_asked_for_leave_is_told_who_gave_it_and_what_they_said() {
    for (option, comment, told) in [
        ("approve", Some("Once."), json!({ "approved": true, "instructions": "Once.", "by": "ana" })),
        ("approve", None, json!({ "approved": true, "by": "ana" })),
        ("reject", None, json!({ "approved": false, "by": "ana" })),
    ] {
        let (builtin, arguments) = &asks()[2];
        let mut play = start(builtin, "", arguments);
        let review = play.review();
        assert_eq!(review.options.iter().map(|option| &*option.id).collect::<Vec<_>>(), ["approve", "reject"]);
        let comment = comment.map(str::to_owned);
        play.try_decide(review.id, &ana(), DecisionRequest { comment, ..request(&review, choose(option)) }).unwrap();
        let mut told_at = came(&play);
        assert_eq!(told_at.as_object_mut().unwrap().remove("at"), Some(json!(play.now)));
        assert_eq!(told_at, told);
    }
}
