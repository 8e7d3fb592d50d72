//! The limits of the tool calls of an agent.

use super::*;

const FLOW: &str = r#"
id: a
agents: { sage: { model: demo/sage, tools: [look] } }
tools:
  look: { http: { url: "https://x" } }
nodes:
  think: { agent: sage, prompt: Think. }
"#;

fn results(play: &Play) -> Vec<Value> {
    let content = |message: Message| match message {
        Message::Tool { content, .. } => Some(content),
        _ => None,
    };
    play.heard("think").into_iter().filter_map(content).collect()
}

#[test]
fn the_surplus_calls_of_a_turn_are_not_made_and_the_model_is_told() {
    let mut play = Play::start(FLOW, json!({}));
    play.model("think", calls([(); 100].map(|()| ("look", json!({})))));
    assert_eq!(play.tasks.len(), 64);
    for number in 1..=64 {
        let look = play.call_task(&format!("c1-{number}"));
        play.returned(&look, json!("seen"));
    }
    let heard = play.heard("think");
    let Message::Assistant { calls: said, .. } = &heard[1] else { panic!("{:?}", heard[1]) };
    assert_eq!((said.len(), results(&play).len()), (64, 64), "each call that the model sees has a result");
    let told = "At most 64 calls are made in a turn: your last 36 were not made.".to_owned();
    assert_eq!(heard.last(), Some(&Message::User { text: told }));
    play.model("think", text("done"));
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn a_review_asks_about_the_calls_that_can_be_made() {
    let gated = FLOW.replace("\"https://x\" }", "\"https://x\" }, ask_permission: true");
    let mut play = Play::start(&gated, json!({}));
    play.model("think", calls([(); 100].map(|()| ("look", json!({})))));
    assert_eq!(play.review().actions.len(), 64);
    assert_eq!(play.snapshot.state.agent_calls[0].tools.len(), 64);
}

#[test]
fn results_for_which_a_conversation_has_no_room_are_left_out() {
    let mut play = Play::start(FLOW, json!({}));
    play.model("think", calls([(); 3].map(|()| ("look", json!({})))));
    let large = json!("x".repeat(3 * 1024 * 1024));
    for call in ["c1-3", "c1-2", "c1-1"] {
        let look = play.call_task(call);
        play.returned(&look, large.clone());
    }
    let left_out = "TOOL_FAILED: the call has a result, but it is left out: the results of all your calls in this step \
                    may have 8 MiB together";
    assert!(results(&play) == [large.clone(), large.clone(), json!(left_out)], "two of them fit");
    play.model("think", calls([("look", json!({})), ("look", json!({}))]));
    let look = play.call_task("c2-1");
    play.returned(&look, large.clone());
    let look = play.call_task("c2-2");
    play.returned(&look, json!("seen"));
    assert!(results(&play)[3..] == [json!(left_out), json!("seen")], "the earlier turns count");
    // Small results are kept even where the conversation is full: answers of people are among them.
    play.model("think", calls([(); 2].map(|()| ("look", json!({})))));
    let full = json!("x".repeat(2 * 1024 * 1024 - 16));
    for (call, result) in [("c3-1", full), ("c3-2", json!("yes, ".repeat(1000)))] {
        let look = play.call_task(call);
        play.returned(&look, result);
    }
    assert_eq!(results(&play)[6], json!("yes, ".repeat(1000)));
}
