//! Gates that no branch reaches, and gates that stay open: nobody is asked, and nothing waits.

use super::*;

/// One branch for each kind of gate, and one without a gate; all of them meet.
const WAYS: &str = r#"
id: ways
input: { type: object, properties: { ways: { type: array } } }
agents: { clerk: { model: demo/clerk, tools: [send] } }
tools: { send: { http: { url: "https://example.com" } } }
gates: { before_tool: { send: true }, before_agent: { clerk: true } }
nodes:
  fork:
    router: {}
    next:
      - { to: call, when: "'call' in input.ways" }
      - { to: ask, when: "'ask' in input.ways" }
      - { to: work, when: "'work' in input.ways" }
      - free
  call: { tool: send, arguments: {}, next: meet }
  ask: { human: { prompt: Well? }, next: meet }
  work: { agent: clerk, prompt: Go., next: meet }
  free: { set: { free: true }, next: meet }
  meet: { set: { met: "{{ visit }}" }, join: all }
"#;

fn pending(play: &Play) -> Vec<Review> {
    let mut pending: Vec<_> = play.snapshot.reviews.values().filter(|review| review.is_pending()).cloned().collect();
    pending.sort_by_key(|review| review.node.clone());
    pending
}

/// Approves a review, and lets succeed what then happens.
fn goes(play: &mut Play, review: &Review) {
    match &*review.node.clone().unwrap() {
        "ask" => play.decide_on(review, say("Fine.")),
        node => {
            play.decide_on(review, answer_actions([(&review.actions[0].id, ActionDecision::APPROVE)]));
            if node == "call" {
                let task = play.task_at(node);
                play.returned(&task, json!("sent"));
            } else {
                play.model(node, text("Gone."));
            }
        }
    }
}

#[test]
fn a_gate_inside_a_branch_that_is_skipped_asks_nobody_and_those_beside_it_still_ask() {
    for chosen in 0..8_usize {
        let gated = ["ask", "call", "work"];
        let taken: Vec<_> = (0..3).filter(|place| chosen >> place & 1 == 1).map(|place| gated[place]).collect();
        let mut play = Play::start(WAYS, json!({ "ways": taken }));
        let asked = pending(&play);
        assert_eq!(asked.iter().map(|review| review.node.clone().unwrap().to_string()).collect::<Vec<_>>(), taken);
        for review in &asked {
            assert_eq!((play.status(), play.key("met")), (RunStatus::WaitingForHuman, &Value::Null), "{taken:?}");
            goes(&mut play, review);
        }
        assert_eq!((play.status(), play.key("met")), (RunStatus::Completed, &json!(1)), "{taken:?}");
        let mut made: Vec<_> = play.steps().into_iter().map(|(node, ..)| node).collect();
        made.retain(|node| gated.contains(&&**node));
        made.sort();
        assert_eq!(made, taken, "what is skipped has no step");
        assert_eq!(play.snapshot.reviews.len(), taken.len(), "nor a review, also once the run is over");
    }
}

/// Every kind of gate, none of which closes; a human node and a gated call that no edge leads to; joins behind all of it.
const OPEN: &str = r#"
id: open
input: { type: object, properties: { n: { type: integer, default: 1 } } }
agents:
  clerk: { model: demo/clerk, tools: [send, grow, steer] }
  other: { model: demo/other }
tools: { send: { http: { url: "https://example.com" } }, grow: { builtin: spawn_specialist }, steer: { builtin: set_strategy } }
gates:
  before_tool: { send: { when: "arguments.n > 9" } }
  before_agent: { "*": { when: "agent == 'nobody'", handlers: [{ judge: { model: demo/judge, criteria: Hm. } }] } }
  before_emergent: { when: "arguments.role == 'boss'" }
  before_strategy_override: { when: "arguments.to == 'router'" }
  before_return: { when: "!has(arguments.met)", timeout: 1h }
nodes:
  begin: { set: { list: [] }, next: fork }
  fork: { router: {}, next: [call, team, { to: ask, when: "input.n > 9" }, each] }
  call: { tool: send, arguments: { n: "{{ input.n }}" }, next: meet }
  team: { team: { agents: [clerk, other], emergent: { enabled: true } }, next: meet }
  ask: { human: { prompt: Well? }, next: meet }
  far: { tool: send, arguments: { n: 10 } }
  each: { map: { over: list, as: one, node: far }, next: meet }
  meet: { set: { met: "{{ visit }}" }, join: all, next: last }
  last: { set: { done: true }, join: all }
"#;

#[test]
fn a_skipped_gate_does_not_park_the_run_for_ever() {
    use super::teams::says;

    let mut play = Play::start(OPEN, json!({}));
    let task = play.task_at("call");
    play.returned(&task, json!("sent"));
    let spawn = json!({ "role": "tester", "instructions": "You test." });
    let change = json!({ "strategy": "debate", "rounds": 1, "reason": "We disagree." });
    says(&mut play, "clerk", calls([("send", json!({ "n": 2 })), ("grow", spawn), ("steer", change)]));
    let task = play.call_task("clerk.1-c1-1");
    play.returned(&task, json!("sent"));
    for (agent, said) in [("clerk", "A"), ("clerk", "B"), ("tester", "C"), ("other", "D")] {
        assert_eq!(play.status(), RunStatus::Running);
        says(&mut play, agent, text(said));
    }
    assert!(play.snapshot.reviews.is_empty(), "nobody was asked: {:?}", play.snapshot.reviews);
    assert_eq!((play.status(), play.key("met"), play.key("done")), (RunStatus::Completed, &json!(1), &json!(true)));
    assert!(play.tasks.is_empty() && play.snapshot.state.questions.is_empty());
    assert!(!play.steps().iter().any(|(node, ..)| ["ask", "far"].contains(&&**node)));
}
