//! The list agrees with the types: one specimen of each type that is stored about a run, with every member that is data
//! of users.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::log::Event;
use shared::review::Review;
use shared::time::Timestamp;

use super::*;
use crate::clock::Moment;
use crate::engine::{Granted, Input, RunStart, RunState};
use crate::store::Committed;
use crate::store::blobs::{Owner, typed};
use crate::store::log_row::{Cause, NewBody, Recorded};

const ID: &str = "01900000-0000-7000-8000-000000000001";
const AT: &str = "2026-01-01T00:00:00Z";

/// Data of users.
fn own() -> Value {
    json!({"k": {"by": "someone"}})
}

fn context() -> Value {
    json!({"user": "u", "metadata": own()})
}

fn request() -> Value {
    json!({"type": "http", "method": "POST", "url": "https://x/", "headers": {"a": "b"}, "body": own(),
        "secrets": [{"at": "/url", "start": 0, "end": 1, "name": "K"}]})
}

fn verdicts() -> [Value; 2] {
    let approve = json!({"type": "approve", "remember": {"scope": "run", "arguments": ["a"]}});
    let edit = json!({"type": "edit", "arguments": own()});
    [
        json!({"type": "choose", "option": "yes", "fields": own()}),
        json!({"type": "actions", "decisions": {"c1-1": edit, "c1-2": approve}}),
    ]
}

fn decision(verdict: &Value) -> Value {
    json!({"by": "ana", "at": AT, "via": "human", "revision": 1, "digest": "d", "verdict": verdict, "edits": own(),
        "shown": {"revision": 1, "digest": "d", "values": own()}, "metadata": own(), "requests": {"c1-1": request()}})
}

fn program_answer() -> Value {
    json!({"revision": 1, "digest": "d", "verdict": verdicts()[1], "edits": own(), "metadata": own(),
        "modifications": {"toolArgs": own(), "output": own(), "instructions": "i"}})
}

fn changes() -> Value {
    json!({"arguments": {"c1-1": own()}, "edits": own()})
}

fn advice() -> Value {
    json!([{"by": "x.test", "via": "webhook", "at": AT, "reason": "r", "changes": changes(), "answer": program_answer()}])
}

fn agent_call() -> Value {
    json!({"agent": "a", "model": "m", "tokens": 1, "cost_usd": 0.5, "duration_ms": 1, "input": "i", "output": "o",
        "tools": [{"id": "c1-1", "name": "t", "arguments": own(), "result": own()}]})
}

fn review() -> Value {
    let whole = json!({
        "id": ID, "revision": 1, "digest": "d", "version": 1, "kind": "approval", "status": "resolved", "title": "t",
        "prompt": "p", "requested_by": "ana", "created_at": AT, "reviewers": {"roles": ["r"], "users": ["ana"]},
        "items": [{"key": "k", "content_type": "json", "value": own(), "editable": true, "schema": own()}],
        "options": [{"id": "yes", "kind": "accept", "label": "Yes", "fields": own()}],
        "actions": [{"id": "c1-1", "type": "tool", "name": "t", "arguments": own(), "request": request(),
            "schema": own(), "allowed_decisions": ["approve"]}],
        "advice": advice(), "claimed_by": {"by": "ana", "until": AT}, "comments": [{"by": "ana", "at": AT, "text": "t"}],
        "delegations": [{"from": "ana", "to": "zoe", "at": AT}], "decisions": verdicts().each_ref().map(decision),
        "resolution": {"status": "resolved", "outcome": "decided", "by": ["ana"], "at": AT, "via": "human",
            "decision": decision(&verdicts()[1]), "answer": own()},
        "context": context(), "usage": {"agent_calls": [agent_call()]},
    });
    let whole: Review = typed("a review", whole).expect("a review");
    json!(whole)
}

fn grant() -> Value {
    json!({"id": ID, "tool": "t", "arguments": own(), "scope": "run", "flow": "f", "version": 1, "run_id": ID,
        "review_id": ID, "given_by": "ana", "given_at": AT, "expires_at": AT})
}

fn step() -> Value {
    json!({"id": ID, "node": "n", "visit": 1, "kind": "agent", "status": "running", "started_at": AT})
}

fn tool_call() -> Value {
    json!({"id": "c1-1", "tool": "t", "arguments": own(), "request": request(), "reads": own(), "digest": "d",
        "passes": [{"gate": 0, "digest": "d"}], "state": {"state": "done", "result": own()}})
}

fn conversation() -> Value {
    let call = json!({"provider_id": "p", "tool": "t", "arguments": own()});
    json!({"agent": "a", "turn": 1, "calls": [tool_call()], "specialist": {"model": "m", "made_by": "a"}, "messages": [
        {"role": "user", "text": "t"}, {"role": "assistant", "text": "t", "calls": [call]},
        {"role": "tool", "provider_id": "p", "tool": "t", "content": own()},
    ]})
}

fn phases() -> [Value; 4] {
    [
        json!({"phase": "agent", "step": step(), "conversation": conversation()}),
        json!({"phase": "tool", "step": step(), "call": tool_call(), "wrote": ["k"]}),
        json!({"phase": "map", "step": step(), "first": 1, "items": [own()], "results": [[0, own()]]}),
        json!({"phase": "team", "step": step(), "team": {"prompt": "p", "strategy": "debate", "rounds": 1,
            "members": ["a"], "lead": "a", "said": [{"agent": "a", "round": 1, "value": own()}]}}),
    ]
}

fn questions() -> Value {
    let mut judged = changes();
    judged["output"] = own();
    let judged = json!({"approved": true, "confidence": 0.5, "reasoning": "r", "modifications": judged});
    let inquiry = json!({"id": "i", "guardrail": "g", "webhook": {"url": "https://x/"}, "on": "actions",
        "action": {"type": "tool"}, "values": own(), "request": request()});
    let asked = |approval: Value| json!({"asked": "guardrails", "leave": approval, "task": ID, "inquiries": [inquiry]});
    let handoff = json!({"about": "handoff", "step": step(), "call": tool_call()});
    [
        json!({"asked": "judge", "conversation": conversation(), "digest": "d"}),
        asked(json!({"leave": "judge", "said": judged, "digest": "d"})),
        asked(json!({"leave": "program", "said": program_answer(), "digest": "d"})),
    ]
    .map(|asked| json!({"review": ID, "subject": handoff, "advice": advice(), "asked": asked}))
    .into_iter()
    .collect()
}

fn state() -> Value {
    let branch = |phase: Value| json!({"node": "n", "phase": phase});
    let [one, two, three, four] = phases().map(branch);
    json!({
        "format": RunState::FORMAT, "id": ID, "flow": "f", "title": "t", "version": 1, "revision": 1,
        "requested_by": "ana", "created_at": AT, "updated_at": AT, "input": own(), "context": context(), "keys": own(),
        "frames": {"n:1": {"input": own(), "keys": own()}}, "decisions": {"n": own()}, "deciders": {"n": ["ana"]},
        "branches": {"1": one, "2": two, "3": three, "4": four}, "questions": questions(), "next_branch": 5,
        "agent_calls": [agent_call()], "unanswered": {ID: {"call": "tool", "step": step(), "tool_call": tool_call()}},
    })
}

fn run() -> Value {
    json!({"id": ID, "flow": "f", "title": "t", "version": 1, "status": "running", "revision": 1, "requested_by": "ana",
        "created_at": AT, "updated_at": AT})
}

fn events() -> Vec<Event> {
    let called = json!({"step_id": ID, "node": "n", "visit": 1, "turn": 1, "text": "t", "usage": agent_call(),
        "calls": [{"tool": "t", "arguments": own()}]});
    let executed = json!({"step_id": ID, "node": "n", "visit": 1, "call": "c1-1", "tool": "t", "arguments": own(),
        "request": request(), "digest": "d", "result": own()});
    let kinds = [
        ("run.completed", json!({"run": run(), "output": own()})),
        ("step.completed", json!({"step": step(), "writes": own()})),
        ("model.answered", called),
        ("tool.executed", executed),
        ("review.updated", json!({"review": review(), "change": "content", "voided": ["ana"]})),
        ("review.resolved", json!({"review": review()})),
        ("grant.used", json!({"grant": grant(), "call": "c1-1"})),
    ];
    kinds.map(|(kind, data)| typed("an event", json!({"kind": kind, "at": AT, "data": data})).expect("an event")).into()
}

fn inputs() -> Vec<Recorded> {
    let principal = json!({"username": "ana", "roles": ["reviewer"]});
    let of_task = |mut input: Value| {
        input["task"] = json!(ID);
        input["attempt"] = json!(1);
        input
    };
    let decide = |verdict: &Value| {
        let request = json!({"revision": 1, "digest": "d", "verdict": verdict, "edits": own(), "metadata": own()});
        json!({"input": "decide", "review": ID, "by": principal, "via": "human", "request": request})
    };
    let model = json!({"text": "t", "calls": [{"provider_id": "p", "tool": "t", "arguments": own()}], "tokens": 1,
        "cost_usd": 0.5, "duration_ms": 1});
    let [choose, actions] = verdicts();
    let inputs = [
        decide(&choose),
        decide(&actions),
        of_task(json!({"input": "model_answered", "answer": model})),
        of_task(json!({"input": "tool_returned", "result": own()})),
        of_task(
            json!({"input": "handler_answered", "digest": "d", "answer": {"said": "decides", "answer": program_answer()}}),
        ),
        json!({"input": "call_back", "review": ID, "task": ID, "answer": program_answer()}),
    ];
    let moment = Moment { now: Timestamp(0), seed: [0; 16] };
    let inputs = inputs.map(|input| Recorded::of(moment, typed::<Input>("an input", input).expect("an input")));
    let launch =
        json!({"run": ID, "flow": "f", "version": 1, "input": own(), "context": context(), "requested_by": "ana"});
    let launch: RunStart = typed("a launch", launch).expect("a launch");
    let granted: Granted = typed("a grant", json!({"grant": grant(), "giver": principal})).expect("a grant");
    let launch = Recorded { cause: Cause::Launch(Box::new(launch)), grants: vec![granted], ..inputs[0].clone() };
    inputs.into_iter().chain([launch]).collect()
}

/// Compares the list with the owner of each object and array that contains no other. Returns the paths where they
/// differ, and notes the paths of the list that it meets.
fn differences(path: &mut Vec<String>, value: &Value, owner: &Owner, met: &mut BTreeSet<usize>) -> Vec<String> {
    let listed = (1..=path.len()).find_map(|end| path_index(&path[..end]));
    met.extend(listed);
    let members: Vec<(Option<&str>, &Value, &Owner)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (None, item, owner.item(index))).collect(),
        Value::Object(all) => all.iter().map(|(key, of)| (Some(key.as_str()), of, owner.member(key))).collect(),
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    if !members.is_empty()
        && !members.iter().any(|(_, member, _)| member.is_object() || member.is_array())
        && (*owner == Owner::Users) != listed.is_some()
    {
        found.push(path.join("/"));
    }
    for (key, member, owner) in members {
        path.extend(key.map(str::to_owned));
        found.extend(differences(path, member, owner, met));
        path.truncate(path.len() - usize::from(key.is_some()));
    }
    found
}

#[test]
fn the_list_and_the_types_agree() {
    let mut met = BTreeSet::new();
    let mut compare = |root: &str, value: Value, owner: Owner| {
        assert_eq!(differences(&mut vec![root.to_owned()], &value, &owner, &mut met), [""; 0], "{root}");
    };
    let run_state: RunState = typed("a state", state()).expect("a state");
    compare(STATE, json!(run_state), Owner::of(&run_state));
    let shown: Review = typed("a review", review()).expect("a review");
    compare("review", json!(shown), Owner::of(&shown));
    let (events, inputs) = (events(), inputs());
    let row = NewBody::pack(Timestamp(0), None, &events).with_inputs(Timestamp(0), &inputs, RunState::FORMAT);
    compare("row", json!(row), row.owner());
    let mut whole = run();
    for (name, value) in
        [("input", own()), ("state", own()), ("calls", own()), ("output", own()), ("context", context())]
    {
        whole[name] = value;
    }
    for answer in [
        json!({"answer": "run", "run": whole}),
        json!({"answer": "decided", "decided": {"outcome": "resolved", "review": review()}}),
    ] {
        let answer: Committed = typed("an answer", answer).expect("an answer");
        compare("answer", json!(answer), Owner::of(&answer));
    }
    let unmet: Vec<_> =
        (0..USER_DATA_PATHS.len()).filter(|index| !met.contains(index)).map(|index| USER_DATA_PATHS[index]).collect();
    assert_eq!(unmet, [&[""; 0]; 0], "no type has these");
}
