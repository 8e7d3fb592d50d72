//! Random flows: any graph over a few nodes of every kind, with every setting that changes whom they ask and when.

use shared::definition::Flow;

use super::super::*;
use crate::engine::Carrier;
use crate::flow::Library;

/// One node: its kind, the nodes that it leads to, whether it waits for all, how often it may be visited, and a detail.
pub(super) type Shape = (u8, u8, bool, u8, u8);

/// Returns any graph over a few nodes that call another flow, including graphs that `flow::check` would refuse: the
/// engine must cope with all of them.
pub(super) fn random_flow(shapes: &[Shape], called: &[Shape]) -> Compiled {
    let mut library = Library::default();
    library.add(Arc::new(Compiled::new(some_flow("called", called, 7), 1).unwrap()));
    Compiled::calling(some_flow("random", shapes, 9), 1, &library).unwrap()
}

fn some_flow(id: &str, shapes: &[Shape], kinds: u8) -> Flow {
    let name = |index: usize| format!("n{index}");
    let judge = json!({ "judge": { "model": "demo/judge", "criteria": "Hm." } });
    let on_error = ["reject", "pass"][usize::from(shapes[0].4 % 2)];
    let webhook = json!({ "webhook": { "url": "https://ok.test/decide", "timeout": "1h", "on_error": on_error } });
    let slack = json!({ "slack": { "channel": "#desk", "timeout": "1h" } });
    let mut nodes = JsonMap::new();
    for (index, (kind, next, join, visits, detail)) in shapes.iter().enumerate() {
        let mut node = match kind % kinds {
            0 => json!({ "agent": "a", "prompt": "{{ visit }}", "write_keys": ["k1", "k2"] }),
            1 => json!({ "tool": "plain", "arguments": { "x": "{{ visit }}" }, "write_keys": ["k2"] }),
            2 => json!({ "tool": "gated", "arguments": {}, "write_keys": ["k3"], "failure": { "retries": 1 } }),
            3 => {
                json!({ "set": { "k1": "{{ visit }}", "k3": [1, { "a": 2 }], "menu": ["n1", { "id": "n2", "label": "Two", "kind": "stop" }] } })
            }
            6 => json!({
                "map": { "over": "k3", "as": "one", "node": name(usize::from(*detail) % shapes.len()) },
                "write_keys": ["k4"],
            }),
            7 if detail % 2 == 0 => json!({ "flow": { "id": "called" }, "write_keys": ["k1", "k3"] }),
            7 => json!({ "flow": { "id": "called", "input": { "k1": "{{ visit }}" } }, "write_keys": ["k2"] }),
            8 => json!({ "team": {
                "agents": ["a", "b"], "lead": (["a", "b", "c"][usize::from(detail % 3)]), "rounds": detail % 2 + 1,
                "strategy": (["sequential", "parallel", "router", "debate"][usize::from(detail / 2 % 4)]),
                "emergent": { "enabled": true, "max": 2, "judge": if detail % 4 == 0 { judge["judge"].clone() } else { Value::Null } },
            }, "write_keys": ["k1"] }),
            4 => json!({ "router": if detail % 2 == 0 { json!({}) } else { json!({ "agent": "a" }) } }),
            _ => json!({ "human": {
                "prompt": "?",
                "review_keys": ["k1", "k2", "one"],
                "edit_keys": ["k2"],
                "options": if detail % 2 == 0 { json!([]) } else { json!([
                    { "id": "yes", "label": "Yes" },
                    { "id": "redo", "kind": "correct", "label": "Redo", "message": "again" },
                    { "id": "no", "kind": "stop", "label": "No" },
                ]) },
                "options_key": ([None, None, Some("menu"), None, Some("k1"), None][usize::from(detail % 6)]),
                "allow_free_text": if detail % 5 == 1 { json!(false) } else { Value::Null },
                "alternatives": if detail % 7 == 1 { some_alternatives() } else { json!([]) },
                "reviewers": {
                    "not_requester": detail % 9 == 1,
                    "not_same_as": if detail % 10 == 3 { json!(name(usize::from(detail / 10) % shapes.len())) } else { Value::Null },
                },
                "policy": (["first", "majority", "first", "unanimous"][usize::from(detail % 4)]),
                "deny": if detail % 8 == 3 { json!(2) } else { Value::Null },
                "timeout": if detail % 3 == 0 { json!("1h") } else { Value::Null },
                "on_timeout": ([
                    json!("approve"),
                    json!("reject"),
                    json!("error"),
                    json!("follow"),
                    json!({ "goto": name(usize::from(detail / 5) % shapes.len()) }),
                    json!({ "escalate": "reviewer", "extend": "1h", "then": "follow" }),
                    json!({ "escalate": "x", "extend": "1s", "then": { "escalate": "y", "extend": "2m", "then": "reject" } }),
                ][usize::from(detail / 3 % 7)]),
                "handlers": match detail % 11 {
                    4 => json!([{ "auto": "approve" }]),
                    7 => json!([{ "auto": { "reject": "no" } }]),
                    1 => json!([judge, judge, "human"]),
                    9 => json!([judge]),
                    3 => json!([webhook, judge, "human"]),
                    5 => json!([webhook, webhook, { "auto": "reject" }]),
                    8 => json!([{ "function": "own" }, webhook]),
                    0 => json!([slack, judge, "human"]),
                    2 => json!([judge, slack, "cli"]),
                    6 => json!([{ "slack": { "channel": "#quiet" } }]),
                    _ => json!(["human"]),
                },
                "on_reject": if detail % 13 < 3 { json!(name(usize::from(detail / 2) % shapes.len())) } else { Value::Null },
            } }),
        };
        let leads = |target: usize| {
            let onward = target == index + 1 && next % 4 != 0;
            onward || (next & (next >> 3)) >> target & 1 == 1
        };
        let targets: Vec<_> =
            (0..shapes.len()).filter(|target| leads(*target)).map(|target| json!(name(target))).collect();
        if !targets.is_empty() {
            node["next"] = json!(targets);
        }
        node["max_visits"] = json!(visits % 6 + 1);
        if *join {
            node["join"] = json!("all");
        }
        if detail % 5 < 2 {
            node["on_visit_limit"] = json!(name(usize::from(*detail) % shapes.len()));
        }
        if detail % 7 < 3 {
            node["failure"] = json!({ "retries": 1, "then": { "goto": name(usize::from(detail / 7) % shapes.len()) } });
        }
        nodes.insert(name(index), node);
    }
    serde_json::from_value(json!({
        "id": id,
        "agents": { "a": { "model": "demo/a", "tools": ["plain", "gated", "nap", "put", "ask", "draft", "leave", "stuck", "progress", "over", "help", "grow", "steer"], "max_turns": 3, "max_asks": 3 }, "b": { "model": "demo/b", "tools": ["gated", "help"], "feedback": 2, "gates": { "before_tool": own_gates(shapes[0].0) } }, "c": { "model": "demo/c" } },
        "tools": {
            "plain": { "http": { "url": "https://x/{{ k2 | default('') | urlencode }}" }, "idempotent": true },
            "gated": { "http": {
                "url": "https://x",
                "headers": { "key": "{{ secret.KEY }}" },
                "body": { "v": "{{ visit }}", "k": "{{ k1 | default(0) }}", "all": "{{ arguments }}" },
            }, "ask_permission": true },
            "nap": { "builtin": "sleep" },
            "put": { "builtin": "set_state" },
            "ask": { "builtin": "ask_human", "timeout": "1h", "on_timeout": (["error", "reject", "approve", "follow"][usize::from(shapes[0].0 % 4)]) },
            "draft": { "builtin": "request_edit", "timeout": "2h", "severity": "high" },
            "help": { "agent": "b" },
            "grow": { "builtin": "spawn_specialist" },
            "steer": { "builtin": "set_strategy" },
            "stuck": { "builtin": "escalate", "timeout": "3h" },
            "progress": { "builtin": "checkpoint", "timeout": "1h", "on_timeout": (["error", "reject", "approve"][usize::from(shapes[0].0 % 3)]) },
            "over": { "builtin": "handoff" },
            "leave": { "builtin": "request_approval", "ask_permission": shapes[0].1.is_multiple_of(2) },
        },
        "gates": { "before_tool": {
            "nap": { "when": "visit == 2", "timeout": "2h", "on_timeout": { "escalate": "x", "extend": "1h", "then": "approve" } },
            "plain": { "when": "visit == 3", "handlers": if shapes[0].4.is_multiple_of(2) { json!([{ "auto": "approve" }]) } else { json!([judge, { "auto": "approve" }]) } },
            "put": { "when": "visit == 1", "handlers": [judge, webhook, "human"] },
            "gated": if shapes[0].1.is_multiple_of(3) { json!({ "alternatives": some_alternatives() }) } else { json!(true) },
        }, "before_agent": {
            "a": { "when": "visit == 2", "timeout": "2h", "handlers": if shapes[0].4.is_multiple_of(3) { json!([judge]) } else { json!([webhook]) } },
            "b": some_gate(shapes[0].1, &judge, &webhook, &slack),
        },
        "before_emergent": some_gate(shapes[0].2.into(), &judge, &webhook, &slack),
        "before_strategy_override": some_gate(shapes[0].3, &judge, &webhook, &slack),
        "before_return": some_gate(shapes[0].3 / 3, &judge, &webhook, &slack) },
        "guardrails": some_guardrails(shapes[0].4),
        "nodes": nodes,
    }))
    .unwrap()
}

/// Returns any question that a program may ask without a flow.
pub(super) fn some_question((kind, detail): (u8, u8)) -> Carrier {
    let mut asked = match kind % 6 {
        0 => json!({
            "kind": "approval", "description": "May I?", "action": { "name": "go", "arguments": { "to": "{{ k1 }}" } },
            "policy": (["first", "majority", "unanimous"][usize::from(detail % 3)]),
        }),
        1 => json!({
            "kind": "clarification", "question": "Which?", "allow_free_text": detail % 2 == 0, "multiple": detail % 4 < 2,
            "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }], "context": "some",
        }),
        2 => json!({ "kind": "edit", "content": "some text", "purpose": "a letter", "confidence": 0.2 }),
        3 => json!({ "kind": "escalation", "reason": "out_of_scope", "explanation": "some text" }),
        4 => json!({ "kind": "checkpoint", "phase": "half", "progress": 0.5 }),
        _ => json!({ "kind": "handoff", "to": "desk", "reason": "some text" }),
    };
    // Work that was handed off waits as long as it takes.
    if detail % 5 < 3 && asked["kind"] != "handoff" {
        asked["timeout"] = json!("1h");
        let happens = [json!("reject"), json!("approve"), json!("error"), Value::Null];
        asked["on_timeout"] = happens[usize::from(detail / 5 % 4)].clone();
    }
    asked["reviewers"] = json!({ "not_requester": detail % 7 == 1 });
    Carrier::of(&serde_json::from_value(asked).unwrap()).unwrap()
}

/// Returns settings of a gate for anything but a tool call.
fn some_gate(pick: u8, judge: &Value, webhook: &Value, slack: &Value) -> Value {
    match pick % 9 {
        0 => json!(false),
        1 => json!(true),
        2 => json!({ "when": "has(arguments.k2)", "timeout": "1h", "on_timeout": "approve" }),
        3 => json!({ "allowed_decisions": ["approve"], "handlers": [judge, { "auto": "reject" }] }),
        4 => json!({ "timeout": "1h", "on_timeout": { "escalate": "x", "extend": "1h", "then": "error" } }),
        5 => json!({ "handlers": [slack, webhook, "human"], "reviewers": { "not_requester": true } }),
        6 => json!({ "allowed_decisions": ["edit", "reject"], "timeout": "2h", "guardrails": false }),
        7 => json!({ "handlers": [judge, "cli"], "timeout": "1h", "on_timeout": "reject" }),
        _ => json!({ "handlers": [webhook, slack], "timeout": "1h" }),
    }
}

/// Returns gates of an agent, which take precedence over those of the flow.
fn own_gates(pick: u8) -> Value {
    match pick % 4 {
        0 => json!({ "gated": false, "*": true }),
        1 => json!({ "help": { "when": "agent == 'b'", "timeout": "1h", "on_timeout": "approve" } }),
        _ => json!({}),
    }
}

/// Returns alternatives, to a call or among options.
fn some_alternatives() -> Value {
    json!(["Nothing.", { "id": "alt", "description": "Something else", "tradeoffs": "some" }])
}

/// Returns guardrails whose words occur in the random answers and arguments.
fn some_guardrails(pick: u8) -> Value {
    let program = |name: &str, more: Value| {
        let mut program = json!({ "name": name, "webhook": { "url": "https://x.test" } });
        program.as_object_mut().unwrap().extend(object(more));
        program
    };
    match pick % 7 {
        0 => Value::Null,
        1 => json!(false),
        2 => json!([{ "name": "own", "pattern": "edited|done|some text|n4" }]),
        6 => {
            json!([{ "name": "own", "pattern": "done|some|n[0-3]", "effect": "redact" }, { "name": "soft", "pattern": "y", "effect": "warn" }])
        }
        3 | 5 => {
            json!([program("dice", json!({})), { "name": "own", "pattern": "done|some", "effect": "redact" }, program("more-dice", json!({}))])
        }
        4 => json!([program("soft-dice", json!({ "effect": "warn" })), program("dice", json!({ "on": ["actions"] }))]),
        _ => {
            json!([{ "name": "own", "when": "arguments.y == 1" }, { "name": "more", "when": "text.contains('n1')", "on": ["outputs"] }])
        }
    }
}
