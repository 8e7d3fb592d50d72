//! Teams of agents, agents as tools, and what members may change about their team.

use super::*;
use shared::review::ReviewKind;

pub(super) const TEAM: &str = "
id: team
agents:
  researcher: { model: demo/r, instructions: You research., tools: [look, put, grow, steer] }
  critic: { model: demo/c, instructions: You find fault., tools: [look] }
  editor: { model: demo/e, instructions: You edit., tools: [grow, steer] }
tools:
  look: { http: { url: 'https://example.com' }, idempotent: true }
  put: { builtin: set_state }
  grow: { builtin: spawn_specialist }
  steer: { builtin: set_strategy }
GATES
nodes:
  work: { team: { agents: [researcher, critic], lead: editor, prompt: 'Answer {{ input.q }}.', MORE }, write_keys: [work, found], max_visits: 3, next: check }
  check: { human: { prompt: Good?, options: [{ id: ok, kind: accept, label: OK }, { id: no, kind: correct, label: Again, message: Be brief. }] } }
";

pub(super) fn start_with(more: &str, gates: &str) -> Play {
    Play::start(&TEAM.replace("MORE", more).replace("GATES", gates), json!({ "q": "it" }))
}

/// Returns the agents whose turns are due, in order.
pub(super) fn due(play: &Play) -> Vec<String> {
    let state = &play.snapshot.state;
    let talks = |branch: &Branch| branch.phase.conversation().filter(|talk| talk.model_task.is_some()).cloned();
    state.branches.values().filter_map(talks).map(|talk| talk.agent).collect()
}

pub(super) fn task_of(play: &Play, agent: &str) -> TaskId {
    let mut talks = play.snapshot.state.branches.values().filter_map(|branch| branch.phase.conversation());
    let talk = talks.find(|talk| talk.agent == agent && talk.model_task.is_some());
    talk.unwrap_or_else(|| panic!("{agent} has no turn: {:?}", due(play))).model_task.unwrap()
}

pub(super) fn says(play: &mut Play, agent: &str, answer: ModelAnswer) {
    let task = task_of(play, agent);
    play.apply(Input::ModelAnswered { task, attempt: 1, answer });
}

pub(super) fn request_of(play: &Play, agent: &str) -> ModelRequest {
    let task = play.tasks[&task_of(play, agent)].clone();
    match work(&play.flow, &play.snapshot.state, &task) {
        Some(Work::Model(request)) => *request,
        other => panic!("{other:?}"),
    }
}

pub(super) fn prompt(play: &Play, agent: &str) -> String {
    match &request_of(play, agent).messages[0] {
        Message::User { text } => text.clone(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn tools(play: &Play, agent: &str) -> Vec<String> {
    request_of(play, agent).tools.into_iter().map(|tool| tool.name).collect()
}

pub(super) fn results(play: &Play, agent: &str) -> Vec<Value> {
    let tool = |message: &Message| match message {
        Message::Tool { content, .. } => Some(content.clone()),
        _ => None,
    };
    request_of(play, agent).messages.iter().filter_map(tool).collect()
}

#[test]
fn in_a_row_each_hears_the_answer_before_and_the_last_answer_is_the_teams() {
    let mut play = start_with("strategy: sequential", "");
    assert_eq!((due(&play), prompt(&play, "researcher")), (vec!["researcher".to_owned()], "Answer it.".to_owned()));
    says(&mut play, "researcher", calls([("look", json!({})), ("put", json!({ "key": "found", "value": 3 }))]));
    let look = play.call_task("researcher.1-c1-1");
    assert!(play.tool_work(&look).idempotency_key.ends_with("work.1.researcher.1-c1-1"), "the member is in the key");
    play.returned(&look, json!("seen"));
    says(&mut play, "researcher", text("It is so."));
    assert_eq!(due(&play), ["critic"]);
    assert!(prompt(&play, "critic").ends_with("The answer of `researcher` before you:\n\nIt is so."));
    says(&mut play, "critic", text("Perhaps."));
    assert_eq!((play.key("work"), play.key("found")), (&json!("Perhaps."), &json!(3)));
    let step = play.steps.iter().find(|step| step.node.as_str() == "work").unwrap();
    assert_eq!(step.note.as_deref(), Some("critic ×1 (10 tokens), researcher ×1 (20 tokens)"));
    play.decide(choose("no"));
    let again = prompt(&play, "researcher");
    assert!(again.contains("The last answer was:\n\nPerhaps.") && again.ends_with("Be brief."), "{again}");
}

#[test]
fn at_the_same_time_nobody_hears_the_others_and_the_lead_hears_all_in_the_order_of_the_members() {
    let mut play = start_with("strategy: parallel", "");
    assert_eq!(due(&play), ["researcher", "critic"]);
    says(&mut play, "critic", text("No."));
    assert_eq!((due(&play), prompt(&play, "researcher")), (vec!["researcher".to_owned()], "Answer it.".to_owned()));
    says(&mut play, "researcher", text("Yes."));
    let heard = prompt(&play, "editor");
    assert!(heard.ends_with("What was said so far:\n\n[researcher]: Yes.\n\n[critic]: No."), "{heard}");
    assert_eq!(tools(&play, "editor"), ["grow", "steer"], "nobody is called as a tool");
    says(&mut play, "editor", text("Both."));
    assert_eq!(play.key("work"), "Both.");
}

#[test]
fn in_a_debate_each_hears_all_that_was_said_in_every_round() {
    let mut play = start_with("strategy: debate, rounds: 2", "");
    for (agent, said) in [("researcher", "A"), ("critic", "B"), ("researcher", "C")] {
        assert_eq!(due(&play), [agent]);
        says(&mut play, agent, text(said));
    }
    let heard = prompt(&play, "critic");
    let all = "[researcher, round 1]: A\n\n[critic, round 1]: B\n\n[researcher, round 2]: C";
    assert!(heard.ends_with(all), "{heard}");
    says(&mut play, "critic", text("D"));
    says(&mut play, "editor", text("E"));
    assert_eq!(play.key("work"), "E");
    let step = play.steps.iter().find(|step| step.node.as_str() == "work").unwrap();
    let note = "critic ×2 (20 tokens), editor ×1 (10 tokens), researcher ×2 (20 tokens)";
    assert_eq!(step.note.as_deref(), Some(note), "each turn counts once");
}

#[test]
fn a_routing_lead_calls_members_as_tools_and_answers_itself() {
    let mut play = start_with("strategy: router", "gates: { before_agent: { critic: true } }");
    assert_eq!((due(&play), tools(&play, "editor").len()), (vec!["editor".to_owned()], 4));
    let request = request_of(&play, "editor");
    let delegate = request.tools.iter().find(|tool| tool.name == "delegate_to_critic").unwrap();
    assert_eq!(delegate.description.as_deref(), Some("You find fault."));
    let ask = |task: &str| json!({ "task": task });
    says(&mut play, "editor", calls([("delegate_to_researcher", ask("Look.")), ("delegate_to_critic", ask("Think."))]));
    assert_eq!((due(&play), prompt(&play, "researcher")), (vec!["researcher".to_owned()], "Look.".to_owned()));
    assert_eq!(play.status(), RunStatus::Running);
    says(&mut play, "researcher", text("Seen."));
    let review = play.review();
    assert_eq!((review.kind, &*review.actions[0].name), (ReviewKind::Agent, "critic"));
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    let reject = ActionDecision::Reject { message: Some("Not now.".to_owned()) };
    play.decide_on(&review, answer_actions([("agent", reject)]));
    assert_eq!(results(&play, "editor"), [json!("Seen."), json!("FLOW_HUMAN_REJECTED: Not now.")]);
    says(&mut play, "editor", text("As seen."));
    assert_eq!(play.key("work"), "As seen.");
    let note = "critic ×1 (0 tokens), editor ×1 (20 tokens), researcher ×1 (10 tokens)";
    assert_eq!(play.steps[0].note.as_deref(), Some(note));
}

#[test]
fn who_is_not_let_begin_is_left_out_and_the_lead_is_told() {
    let gates = "gates: { before_agent: { critic: true } }";
    let reject = || ActionDecision::Reject { message: Some("Too harsh.".to_owned()) };
    let mut play = start_with("strategy: parallel", gates);
    play.decide_on(&play.review(), answer_actions([("agent", reject())]));
    says(&mut play, "researcher", text("Yes."));
    assert!(prompt(&play, "editor").ends_with("[critic]: (was left out: a person did not let it answer)"));
    says(&mut play, "editor", text("Yes."));
    assert_eq!(play.key("work"), "Yes.");

    let mut alone =
        start_with("strategy: debate, rounds: 1", "gates: { before_agent: { critic: true, researcher: true } }");
    for _ in 0..2 {
        alone.decide_on(&alone.review(), answer_actions([("agent", reject())]));
    }
    assert_eq!(alone.error(), (FlowCode::FlowHumanRejected, "every member of the team was left out".to_owned()));

    let mut row = start_with("strategy: sequential", gates);
    says(&mut row, "researcher", text("Yes."));
    row.decide_on(&row.review(), answer_actions([("agent", reject())]));
    assert_eq!(row.error(), (FlowCode::FlowHumanRejected, "Too harsh.".to_owned()));
}

#[test]
fn what_a_guardrail_blocks_fails_the_step_of_any_team() {
    let gates = "gates: { before_agent: { critic: true } }\nguardrails: [{ name: own, pattern: Falcon }]";
    for strategy in ["parallel", "debate", "sequential"] {
        let mut play = start_with(&format!("strategy: {strategy}"), gates);
        if strategy != "parallel" {
            says(&mut play, "researcher", text("Yes."));
        }
        let prompt = json!({ "prompt": "Ask Falcon.", "instructions": "You find fault." });
        let edit = ActionDecision::Edit { arguments: prompt.as_object().unwrap().clone() };
        play.decide_on(&play.review(), answer_actions([("agent", edit)]));
        assert_eq!(play.error().0, FlowCode::GuardrailBlocked, "{strategy}");
    }
}

#[test]
fn a_member_that_fails_fails_the_team_and_ends_the_others() {
    let mut play = start_with("strategy: parallel", "");
    let task = play.tasks[&task_of(&play, "critic")].clone();
    play.failed(&task, FlowCode::ModelFailed, false);
    assert_eq!((play.status(), play.error().0), (RunStatus::Failed, FlowCode::ModelFailed));
    assert!(play.snapshot.state.unanswered.len() == 1, "what the other was asked is still paid for");
}

const TOOLS: &str = "
id: desk
agents:
  desk: { model: demo/d, tools: [ask_expert, look] }
  expert: { model: demo/x, instructions: You know., tools: [publish, ask_expert] }
tools:
  ask_expert: { agent: expert, description: Ask somebody who knows. }
  look: { http: { url: 'https://example.com' }, idempotent: true }
  publish: { builtin: demo_publish, ask_permission: true }
nodes: { serve: { agent: desk, prompt: Serve. } }
";

fn task(text: &str) -> Value {
    json!({ "task": text })
}

#[test]
fn an_agent_is_a_tool_of_another_and_its_own_calls_are_reviewed_in_its_name() {
    let mut play = Play::start(TOOLS, json!({}));
    assert_eq!(tools(&play, "desk"), ["ask_expert", "look"]);
    says(&mut play, "desk", calls([("ask_expert", task("Publish it.")), ("look", json!({}))]));
    let look = play.call_task("c1-2");
    play.returned(&look, json!("seen"));
    let publish = json!({ "title": "T", "text": "x" });
    says(&mut play, "expert", calls([("publish", publish.clone()), ("publish", publish)]));
    let review = play.review();
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    let ids: Vec<_> = review.actions.iter().map(|action| (&*action.id, action.agent.as_deref())).collect();
    assert_eq!(ids, [("c1-1-c1-1", Some("expert")), ("c1-1-c1-2", Some("expert"))]);
    assert_eq!(review.title, "publish ×2: T (for desk)");
    assert!(
        review.prompt.starts_with("Agent `expert` wants to call `publish`, for agent `desk`."),
        "{}",
        review.prompt
    );
    let reject = ActionDecision::Reject { message: Some("Once.".to_owned()) };
    play.decide_on(&review, answer_actions([("c1-1-c1-1", ActionDecision::APPROVE), ("c1-1-c1-2", reject)]));
    let run = play.call_task("c1-1-c1-1");
    play.returned(&run, json!("https://…"));
    assert_eq!(results(&play, "expert")[1], "TOOL_PERMISSION_DENIED: Once.");
    says(&mut play, "expert", text("Published."));
    assert_eq!(results(&play, "desk"), ["Published.", "seen"]);
    says(&mut play, "desk", text("Done."));
    assert_eq!(play.status(), RunStatus::Completed);
    assert_eq!(play.steps[0].note.as_deref(), Some("40 tokens, 0.004 US dollars"), "of both");
}

#[test]
fn agents_call_each_other_only_so_deep_and_a_cancelled_run_ends_them_all() {
    let mut play = Play::start(TOOLS, json!({}));
    says(&mut play, "desk", calls([("ask_expert", task("1"))]));
    for depth in 2..=7 {
        let newest = play.snapshot.state.branches.values().next_back().unwrap();
        let due = newest.phase.conversation().unwrap().model_task.unwrap();
        let answer = calls([("ask_expert", task(&depth.to_string()))]);
        play.apply(Input::ModelAnswered { task: due, attempt: 1, answer });
    }
    let mut cancelled = play.again();
    let newest = play.snapshot.state.branches.values().next_back().unwrap();
    let due = newest.phase.conversation().unwrap().model_task.unwrap();
    play.apply(Input::ModelAnswered { task: due, attempt: 1, answer: calls([("ask_expert", task("9"))]) });
    let told = results(&play, "expert");
    assert!(
        told[0].as_str().unwrap().starts_with("TOOL_FAILED: calls between agents are nested at most 8 deep"),
        "{told:?}"
    );
    cancelled.apply(Input::Cancel { by: person("dev", &[]), reason: None });
    assert_eq!((cancelled.status(), cancelled.snapshot.state.unanswered.len()), (RunStatus::Cancelled, 1));
}

#[test]
fn a_tool_node_calls_an_agent() {
    let source = TOOLS.replace(
        "nodes: { serve: { agent: desk, prompt: Serve. } }",
        "nodes: { serve: { tool: ask_expert, arguments: { task: 'Tell.' } } }",
    );
    let mut play = Play::start(&source, json!({}));
    assert_eq!(prompt(&play, "expert"), "Tell.");
    says(&mut play, "expert", text("Told."));
    assert_eq!((play.status(), play.key("serve")), (RunStatus::Completed, &json!("Told.")));
}

#[test]
fn what_an_agent_writes_that_a_tool_node_calls_is_written_by_the_node() {
    let source = "
id: node
agents: { expert: { model: demo/x, tools: [put] } }
tools: { ask: { agent: expert }, put: { builtin: set_state } }
nodes: { serve: { tool: ask, arguments: { task: Look. }, write_keys: [serve, size] } }
";
    let mut play = Play::start(source, json!({}));
    says(&mut play, "expert", calls([("put", json!({ "key": "size", "value": 3 }))]));
    says(&mut play, "expert", text("Small."));
    assert_eq!(
        (play.status(), play.key("serve"), play.key("size")),
        (RunStatus::Completed, &json!("Small."), &json!(3))
    );
    let event = play.events.iter().find(|event| event.kind == EntryKind::StepCompleted).unwrap();
    assert_eq!(event.data["writes"], json!({ "serve": "Small.", "size": 3 }));
}

#[test]
fn the_limits_of_a_member_hold_for_all_its_turns_in_the_step() {
    let source = TEAM.replace("MORE", "strategy: debate, rounds: 2").replace("GATES", "").replace(
        "instructions: You find fault., tools: [look]",
        "instructions: You find fault., tools: [look], max_turns: 2",
    );
    let mut play = Play::start(&source, json!({ "q": "it" }));
    says(&mut play, "researcher", text("A"));
    says(&mut play, "critic", calls([("look", json!({}))]));
    let look = play.call_task("critic.2-c1-1");
    play.returned(&look, json!("seen"));
    says(&mut play, "critic", text("B"));
    says(&mut play, "researcher", text("C"));
    // This is its third model call.
    says(&mut play, "critic", calls([("look", json!({}))]));
    assert_eq!(play.error().0, FlowCode::ModelFailed, "{:?}", play.error());
}

#[test]
fn a_turn_that_another_agent_takes_over_is_still_its_members() {
    let source = TEAM
        .replace("MORE", "strategy: sequential")
        .replace("GATES", "")
        .replace("tools: [look, put, grow, steer]", "tools: [look, stuck]")
        .replace("  look:", "  stuck: { builtin: escalate }\n  look:");
    let source = source.replace("  grow: { builtin: spawn_specialist }\n  steer: { builtin: set_strategy }\n", "");
    let source = source.replace("tools: [grow, steer]", "tools: [look]");
    let mut play = Play::start(&source, json!({ "q": "it" }));
    let stuck = json!({ "reason": "out_of_scope", "explanation": "Not mine." });
    says(&mut play, "researcher", calls([("look", json!({})), ("stuck", stuck)]));
    let look = play.call_task("researcher.1-c1-1");
    play.returned(&look, json!("seen"));
    let fields = object(json!({ "agent": "editor", "instructions": "Help out." }));
    play.decide(Verdict::Choose { option: "delegate".to_owned(), fields });
    let told = prompt(&play, "editor");
    assert!(told.contains("`look` returned: \"seen\"") && told.contains("Help out."), "{told}");
    says(&mut play, "editor", text("Done."));
    assert_eq!(due(&play), ["critic"], "the researcher's turn is over");
    says(&mut play, "critic", text("Fine."));
    assert_eq!(play.key("work"), "Fine.");
}
