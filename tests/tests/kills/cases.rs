//! The cases of everything that a run can wait for: a flow that leads there, and the decisions.

use serde_json::{Value, json};

/// A flow whose run waits for something, its decisions, and the expected effects.
pub struct Case {
    /// The name of the case, which is also the id of its flow.
    pub name: &'static str,
    /// The source of the flow, without the parts that [`Self::source`] adds to each.
    flow: &'static str,
    /// The decisions in order, each with the kind of its review.
    pub decisions: Vec<(&'static str, Value)>,
    /// The number of decisions that are made before the kill.
    pub before: usize,
    /// A text in the argument `said` of the tool call at the end, which shows that the decisions have reached the run.
    pub said: &'static str,
    /// The total number of answers of models.
    pub answers: usize,
    /// A further kind of entry that must be in the log once.
    pub tells: Option<&'static str>,
}

impl Case {
    /// The complete source of the flow, which calls a tool at `url` once.
    pub fn source(&self, url: &str) -> String {
        let Self { name, flow, .. } = self;
        let flow = flow.trim_start().replace("ACT", &format!("tool: act, arguments: {{ case: {name}, said: SAID }}"));
        let flow = flow.replace("SAID", if flow.contains("serve:") { "'{{ serve }}'" } else { "done" });
        format!(
            "id: {name}\n{flow}\n  act: {{ http: {{ url: '{url}' }}, idempotent: true, parameters: {{ type: object }} }}\n"
        )
    }

    fn new(name: &'static str, flow: &'static str, decisions: Vec<(&'static str, Value)>) -> Self {
        Self { name, flow, decisions, before: 0, said: "done", answers: 0, tells: None }
    }
}

/// A placeholder that stands for this decision on every action of a review.
fn each(decision: &Value) -> Value {
    json!({ "each": decision })
}

fn approve() -> Value {
    each(&json!({ "type": "approve" }))
}

fn choose(option: &str, fields: &Value) -> Value {
    json!({ "verdict": { "type": "choose", "option": option, "fields": fields } })
}

fn written(text: &str) -> Value {
    json!({ "verdict": { "type": "choose", "option": "done" }, "edits": { "serve": text } })
}

/// Returns all cases.
pub fn cases() -> Vec<Case> {
    let takes_over = || vec![("escalation", choose("human_takeover", &json!({}))), ("edit", written("By phone."))];
    vec![
        Case::new("gate", GATE, vec![("tool_calls", approve())]),
        Case::new("output", OUTPUT, vec![("output", approve())]),
        Case {
            answers: 4,
            tells: Some("specialist.made"),
            ..Case::new("emergent", EMERGENT, vec![("emergent", approve())])
        },
        Case {
            answers: 5,
            tells: Some("strategy.changed"),
            ..Case::new("strategy", STRATEGY, vec![("strategy_override", approve())])
        },
        Case { answers: 1, ..Case::new("passed-on", PASSED_ON, vec![("approval", choose("yes", &json!({})))]) },
        Case { answers: 1, ..Case::new("judged", JUDGED, vec![]) },
        Case { answers: 4, said: "paid", ..Case::new("sub-agent", SUB_AGENT, vec![("tool_calls", approve())]) },
        Case { answers: 2, ..Case::new("handoff", HANDOFF, vec![("handoff", choose("taken", &json!({})))]) },
        Case {
            answers: 2,
            said: "A school.",
            ..Case::new(
                "question",
                QUESTION,
                vec![("clarification", json!({ "verdict": { "type": "text", "text": "A school." } }))],
            )
        },
        Case { answers: 1, said: "By phone.", ..Case::new("escalation", ESCALATION, takes_over()) },
        Case { answers: 1, said: "By phone.", before: 1, ..Case::new("takeover", ESCALATION, takes_over()) },
        Case {
            said: "voucher",
            ..Case::new(
                "instead",
                INSTEAD,
                vec![("tool_calls", each(&json!({ "type": "choose", "alternative": "voucher" })))],
            )
        },
        Case { said: "call", ..Case::new("alternative", ALTERNATIVE, vec![("approval", choose("call", &json!({})))]) },
        Case { answers: 1, said: "bread", ..Case::new("menu", MENU, vec![("approval", choose("bread", &json!({})))]) },
        Case {
            answers: 2,
            said: "\"approved\":true",
            ..Case::new("leave", LEAVE, vec![("approval", choose("approve", &json!({})))])
        },
    ]
}

const GATE: &str = "
gates: { before_tool: { act: true } }
nodes: { go: { ACT } }
tools:";

const OUTPUT: &str = "
gates: { before_return: true }
nodes: { go: { ACT } }
tools:";

const EMERGENT: &str = "
agents:
  one:
    model: demo/one
    tools: [grow]
    demo:
      tool_calls: [{ tool: grow, arguments: { role: tester, instructions: You test., model: demo/two } }]
      replies: [Yes.]
  two: { model: demo/two, demo: { replies: [No.] } }
gates: { before_emergent: true }
nodes:
  talk: { team: { agents: [one, two], emergent: { enabled: true } }, next: go }
  go: { ACT }
tools:
  grow: { builtin: spawn_specialist }";

const STRATEGY: &str = "
agents:
  one:
    model: demo/one
    tools: [steer]
    demo:
      tool_calls: [{ tool: steer, arguments: { strategy: debate, rounds: 1, reason: We disagree. } }]
      replies: [Yes.]
  two: { model: demo/two, demo: { replies: [No.] } }
gates: { before_strategy_override: true }
nodes:
  talk: { team: { agents: [one, two] }, next: go }
  go: { ACT }
tools:
  steer: { builtin: set_strategy }";

/// A judge whose model is never as sure as the threshold requires, so that it passes the question on to people.
const PASSED_ON: &str = "
nodes:
  ask:
    human:
      prompt: Well?
      options: [{ id: yes, label: Fine }]
      handlers: [{ judge: { model: demo/judge, criteria: Is it fine?, threshold: 1 } }]
    next: go
  go: { ACT }
tools:";

/// A judge whose model has not answered yet when the server is killed.
const JUDGED: &str = "
nodes:
  ask:
    human:
      prompt: Well?
      options: [{ id: yes, label: Fine }]
      handlers: [{ judge: { model: ollama/judge, criteria: Is it fine? } }]
    next: go
  go: { ACT }
tools:";

const SUB_AGENT: &str = "
agents:
  desk: { model: demo/desk, tools: [expert], demo: { tool_calls: [{ tool: expert, arguments: { task: Pay. } }], replies: [paid] } }
  expert:
    model: demo/expert
    tools: [act]
    demo: { tool_calls: [{ tool: act, arguments: { case: sub-agent, said: paid } }], replies: [Paid.] }
gates: { before_tool: { act: true } }
nodes: { serve: { agent: desk, prompt: Serve. } }
tools:
  expert: { agent: expert }";

const HANDOFF: &str = "
agents:
  clerk:
    model: demo/clerk
    tools: [over]
    demo: { tool_calls: [{ tool: over, arguments: { to: reviewer, reason: Book it. } }], replies: [done] }
nodes:
  serve: { agent: clerk, prompt: Serve., next: go }
  go: { ACT }
tools:
  over: { builtin: handoff }";

const QUESTION: &str = "
agents:
  clerk:
    model: demo/clerk
    tools: [ask]
    demo: { tool_calls: [{ tool: ask, arguments: { question: Who reads it? } }] }
nodes:
  serve: { agent: clerk, prompt: Serve., next: go }
  go: { ACT }
tools:
  ask: { builtin: ask_human }";

const ESCALATION: &str = "
agents:
  clerk:
    model: demo/clerk
    tools: [stuck]
    demo: { tool_calls: [{ tool: stuck, arguments: { reason: out_of_scope, explanation: Not mine. } }] }
nodes:
  serve: { agent: clerk, prompt: Serve., next: go }
  go: { ACT }
tools:
  stuck: { builtin: escalate }";

const INSTEAD: &str = "
gates: { before_tool: { pay: { alternatives: [{ id: voucher, description: Send a voucher }] } } }
nodes:
  serve: { tool: pay, arguments: { title: Pay, text: It. }, next: go }
  go: { ACT }
tools:
  pay: { builtin: demo_publish }";

const ALTERNATIVE: &str = "
nodes:
  ask: { human: { prompt: Told?, options: [{ id: yes, label: Yes }], alternatives: [{ id: call, description: Call }] }, next: serve }
  serve: { set: { serve: '{{ decisions.ask.alternative }}' }, next: go }
  go: { ACT }
tools:";

const MENU: &str = "
agents:
  scout:
    model: demo/scout
    output_schema: { type: object, required: [menu], properties: { menu: { type: array, items: { type: string } } } }
    demo: { replies: ['{ \"menu\": [\"soup\", \"bread\"] }'] }
nodes:
  look: { agent: scout, prompt: Look., write_keys: [menu], next: pick }
  pick: { human: { prompt: Which?, options_key: menu }, next: serve }
  serve: { set: { serve: '{{ decisions.pick.option }}' }, next: go }
  go: { ACT }
tools:";

const LEAVE: &str = "
agents:
  clerk:
    model: demo/clerk
    tools: [leave]
    demo: { tool_calls: [{ tool: leave, arguments: { description: Pay, action: { name: pay } } }] }
nodes:
  serve: { agent: clerk, prompt: Serve., next: go }
  go: { ACT }
tools:
  leave: { builtin: request_approval }";
