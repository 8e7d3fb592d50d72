//! Agents and routers without people.

use super::*;

fn agent(settings: &str, node: &str) -> String {
    format!(
        "id: a\nagents:\n  sage: {{ model: demo/sage{settings} }}\ntools:\n  look: {{ http: {{ url: \"https://x\" }} }}\n\
         nodes:\n  think: {{ agent: sage, prompt: Think.{node} }}\n"
    )
}

fn rescued(settings: &str) -> String {
    agent(settings, ", failure: { then: { goto: rescue } }, next: end") + "  rescue: { set: { saved: true } }\n"
}

#[test]
fn an_answer_that_does_not_fit_its_schema_is_sent_back_while_turns_are_left() {
    let schema = ", max_turns: 2, output_schema: { type: object, required: [score], \
        properties: { score: { type: integer }, why: { type: string } } }";
    let mut play = Play::start(&rescued(schema), json!({}));
    play.model("think", text("about seven"));
    let Some(Message::User { text: told }) = play.heard("think").pop() else { unreachable!() };
    assert!(told.contains("not JSON"), "{told}");
    play.model("think", text("```json\n{\"score\": 7, \"why\": \"x\", \"other\": 1}\n```"));
    assert_eq!(play.snapshot.state.keys, object(json!({ "score": 7, "why": "x" })));

    let mut play = Play::start(&rescued(schema), json!({}));
    play.model("think", text("{}"));
    play.model("think", text("{}"));
    assert_eq!(play.steps[0].error.as_ref().unwrap().code, FlowCode::ModelFailed);
    assert_eq!((play.status(), play.key("saved")), (RunStatus::Completed, &json!(true)));
}

#[test]
fn turns_and_budgets_end_an_agent() {
    let mut play = Play::start(&agent(", tools: [look], max_turns: 1", ""), json!({}));
    play.model("think", calls([("look", json!({}))]));
    assert_eq!(play.error().0, FlowCode::ModelFailed);

    let mut play = Play::start(&agent(", budget: { tokens: 9 }", ""), json!({}));
    play.model("think", text("costly"));
    assert_eq!(play.error(), (FlowCode::BudgetExceeded, "agent `sage` used 10 tokens of 9".to_owned()));

    // Each answer costs 0.001: the first two are within the budget, the third is not.
    let mut play = Play::start(&agent(", tools: [look], budget: { cost_usd: 0.0025 }", ""), json!({}));
    for turn in 1..=2 {
        play.model("think", calls([("look", json!({}))]));
        let look = play.call_task(&format!("c{turn}-1"));
        play.returned(&look, json!("seen"));
    }
    play.model("think", text("costly"));
    let message = "agent `sage` used 0.003 US dollars of 0.0025".to_owned();
    assert_eq!(play.error(), (FlowCode::BudgetExceeded, message));
    assert!((play.snapshot.state.total_cost_usd - 0.003).abs() < 1e-9, "what was used counts all the same");
}

#[test]
fn a_failed_model_is_tried_again_as_often_as_the_node_says() {
    let mut play = Play::start(&agent("", ", failure: { retries: 2, initial: 1s }"), json!({}));
    let task = play.task_at("think");
    let mut waits = Vec::new();
    for _ in 0..2 {
        play.failed(&task, FlowCode::ModelFailed, true);
        waits.push(play.task_at("think").due_at.since(play.now).as_secs_f64());
    }
    assert!((0.75..1.25).contains(&waits[0]) && (1.5..2.5).contains(&waits[1]), "{waits:?}");
    play.failed(&task, FlowCode::ModelFailed, true);
    assert_eq!(play.error(), (FlowCode::ModelFailed, "no luck".to_owned()));
    let gone = play.try_apply(Input::ModelAnswered { task: task.id, attempt: 1, answer: text("late") });
    assert_eq!(gone, Err(Refusal::TaskOver));

    let mut play = Play::start(&agent("", ", failure: { retries: 2 }"), json!({}));
    let task = play.task_at("think");
    play.failed(&task, FlowCode::ModelFailed, false);
    assert_eq!(play.status(), RunStatus::Failed, "what cannot help is not tried again");
}

/// Fails the call of a model after it has used as much as one answer.
fn cut_off(play: &mut Play, task: &Task) {
    let usage = Some(text("").usage());
    let failure = TaskFailure { retryable: true, usage, ..TaskFailure::new(FlowCode::ModelFailed, "cut off") };
    play.apply(Input::TaskFailed { task: task.id, attempt: 1, failure });
}

#[test]
fn what_failed_calls_of_a_model_used_counts_and_ends_the_retries_at_the_budget() {
    let mut play = Play::start(&agent(", budget: { tokens: 20 }", ", failure: { retries: 5 }"), json!({}));
    let task = play.task_at("think");
    for used in [10, 20] {
        cut_off(&mut play, &task);
        assert_eq!((play.kinds(), play.snapshot.state.total_tokens), (vec!["model.answered", "step.retrying"], used));
        let told = &play.events[0].data;
        assert_eq!((&told["usage"]["tokens"], &told["error"]["message"]), (&json!(10), &json!("cut off")));
    }
    cut_off(&mut play, &task);
    let over = "agent `sage` used 30 tokens of 20; its last call failed: cut off".to_owned();
    assert_eq!(play.error(), (FlowCode::BudgetExceeded, over));
    assert_eq!(play.snapshot.state.agent_calls.len(), 3);
    assert!((play.snapshot.state.total_cost_usd - 0.003).abs() < 1e-9);

    let mut play = Play::start(&agent(", budget: { tokens: 20 }", ", failure: { retries: 5 }"), json!({}));
    let task = play.task_at("think");
    cut_off(&mut play, &task);
    play.model("think", text("Done."));
    assert_eq!(play.status(), RunStatus::Completed);
    assert_eq!(play.steps[0].note.as_deref(), Some("20 tokens, 0.002 US dollars"), "of both calls");

    let mut play = Play::start(&agent(", budget: { tokens: 9 }", ""), json!({}));
    let task = play.task_at("think");
    cut_off(&mut play, &task);
    assert_eq!(play.error(), (FlowCode::ModelFailed, "cut off".to_owned()), "no retry was left");
}

#[test]
fn who_asks_to_be_left_alone_is_left_alone_that_long_but_an_hour_at_most() {
    let hour = 3600.0;
    for (asked, waits) in [(None, 0.5), (Some(0), 0.5), (Some(90), 90.0), (Some(86_400), hour)] {
        let mut play =
            Play::start(&agent("", ", failure: { retries: 1, initial: 500ms, max: 500ms, backoff: fixed }"), json!({}));
        let task = play.task_at("think");
        let retry_after = asked.map(shared::time::Span::secs);
        let failure =
            TaskFailure { retryable: true, retry_after, ..TaskFailure::new(FlowCode::ModelFailed, "slow down") };
        play.apply(Input::TaskFailed { task: task.id, attempt: 1, failure });
        let waited = play.task_at("think").due_at.since(play.now).as_secs_f64();
        assert!((waited - waits).abs() < 1e-6, "{asked:?}: {waited}");
    }
}

const ROUTER: &str = r#"
id: r
agents: { guide: { model: demo/guide, max_turns: 2 } }
nodes:
  where: { router: { agent: guide, prompt: "Where to?" }, next: [left, right] }
  left: { set: { left: "{{ visit }}" }, max_visits: 1, next: where }
  right: { set: { right: true } }
"#;

#[test]
fn a_routers_agent_chooses_among_the_targets_that_have_visits_left() {
    let mut play = Play::start(ROUTER, json!({}));
    assert_eq!(
        play.heard("where"),
        [Message::User { text: "Where to?\n\nAnswer with exactly one of: left, right".to_owned() }]
    );
    let described = ROUTER.replace("left: { set", "left: { description: Back to where we came from., set");
    let told = Play::start(&described, json!({})).heard("where");
    let expected = "Where to?\n\n- left: Back to where we came from.\n\nAnswer with exactly one of: left, right";
    assert_eq!(told, [Message::User { text: expected.to_owned() }]);
    play.model("where", text("hm"));
    play.model("where", text("`Left`."));
    // `left` has no visits left now, so `right` is taken without asking a model.
    assert_eq!(play.status(), RunStatus::Completed);
    assert_eq!(play.snapshot.state.keys, object(json!({ "left": 1, "right": true })));

    let mut play = Play::start(ROUTER, json!({}));
    play.model("where", text("{\"next\": \"right\"}"));
    assert_eq!(play.key("right"), &json!(true));

    let mut play = Play::start(ROUTER, json!({}));
    play.model("where", text("up"));
    play.model("where", text("down"));
    assert_eq!(play.error().0, FlowCode::FlowNoMatchingEdge);
}
