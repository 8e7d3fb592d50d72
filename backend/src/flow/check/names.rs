//! Checks names of agents, tools and nodes.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use shared::definition::{FailureThen, GateSetting, NodeKind, OnTimeout, Target};
use shared::error::pointer;
use shared::id::NodeId;

use super::Checker;
use crate::flow::agents::{delegates, used};
use crate::flow::compiled::matches;
use crate::flow::limits::MAX_GATES;

struct Names {
    nodes: BTreeSet<String>,
    agents: BTreeSet<String>,
    tools: BTreeSet<String>,
}

/// The ids that the API uses below `/api/v1/flows`.
const RESERVED_IDS: [&str; 2] = ["schema", "validate"];

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let names = Names {
        nodes: checker.written("nodes", flow.nodes.keys().map(NodeId::as_str)),
        agents: checker.written("agents", flow.agents.keys().map(String::as_str)),
        tools: checker.written("tools", flow.tools.keys().map(String::as_str)),
    };
    if RESERVED_IDS.contains(&flow.id.as_str()) {
        checker.invalid(
            "/id",
            format!("`{}` is a path of the API (`/api/v1/flows/{}`): choose another id", flow.id, flow.id),
        );
    }
    if let Some(start) = &flow.start {
        expect(checker, "/start", "node", start, &names.nodes);
    }
    let delegates: Vec<_> = delegates(flow).collect();
    for (name, agent) in &flow.agents {
        for (index, tool) in agent.tools.iter().enumerate() {
            expect(checker, &format!("{}/{index}", pointer(["agents", name, "tools"])), "tool", tool, &names.tools);
        }
        let tools: BTreeSet<&str> = agent.tools.iter().chain(&delegates).map(String::as_str).collect();
        for (turn, calls) in agent.demo.iter().flat_map(|demo| demo.tool_calls.iter().enumerate()) {
            for call in calls.calls().iter().filter(|call| !tools.contains(call.tool.as_str())) {
                let path = format!("{}/{turn}", pointer(["agents", name, "demo", "tool_calls"]));
                let guess = checker.guess(&call.tool, agent.tools.iter().map(String::as_str));
                checker.warn(&path, format!("the agent `{name}` has no tool `{}`{guess}", call.tool));
            }
        }
    }
    if let Some(FailureThen::Goto(to)) = flow.defaults.failure.as_ref().map(|failure| &failure.then) {
        expect(checker, "/defaults/failure/then/goto", "node", to, &names.nodes);
    }
    goto(checker, "/defaults/on_timeout", flow.defaults.on_timeout.as_ref(), &names);
    for (id, node) in &flow.nodes {
        let base = pointer(["nodes", id.as_str()]);
        if !id.frame().is_empty() {
            checker
                .invalid_key(&base, format!("`{id}` names a node of a flow that is called; a node id has no : and /"));
        }
        if id.is_end() {
            checker.invalid_key(&base, "`end` is where a branch ends; choose another name for the node");
        }
        match &node.kind {
            NodeKind::Agent { agent, .. } => {
                expect(checker, &format!("{base}/agent"), "agent", agent, &names.agents);
            }
            NodeKind::Tool { tool, .. } => expect(checker, &format!("{base}/tool"), "tool", tool, &names.tools),
            NodeKind::Router(router) => {
                if let Some(agent) = &router.agent {
                    expect(checker, &format!("{base}/router/agent"), "agent", agent, &names.agents);
                }
            }
            NodeKind::Human(human) => {
                if let Some(to) = &human.on_reject {
                    expect(checker, &format!("{base}/human/on_reject"), "node", to, &names.nodes);
                }
                goto(checker, &format!("{base}/human/on_timeout"), human.on_timeout.as_ref(), &names);
                if let Some(source) = &human.corrects {
                    expect(checker, &format!("{base}/human/corrects"), "node", source, &names.nodes);
                }
            }
            NodeKind::Map(map) => expect(checker, &format!("{base}/map/node"), "node", &map.node, &names.nodes),
            NodeKind::Set(_) | NodeKind::Team(_) | NodeKind::Flow(_) => {}
        }
        for (index, edge) in node.next.0.iter().enumerate() {
            if let Target::Node(to) = &edge.to {
                expect(checker, &format!("{base}/next/{index}/to"), "node", to, &names.nodes);
            }
        }
        if let Some(to) = &node.on_visit_limit {
            expect(checker, &format!("{base}/on_visit_limit"), "node", to, &names.nodes);
        }
        if let Some(FailureThen::Goto(to)) = node.failure.as_ref().map(|failure| &failure.then) {
            expect(checker, &format!("{base}/failure/then/goto"), "node", to, &names.nodes);
        }
    }
    if checker.whole {
        gates(checker);
    }
}

/// Checks the node to which a timer leads after all escalations.
fn goto(checker: &mut Checker<'_>, path: &str, on_timeout: Option<&OnTimeout>, names: &Names) {
    if let Some(on_timeout) = on_timeout
        && let OnTimeout::Goto { goto } = on_timeout.last()
    {
        let path = format!("{path}{}/goto", "/then".repeat(on_timeout.escalations().count()));
        expect(checker, &path, "node", goto, &names.nodes);
    }
}

/// Checks for gates that can never apply.
fn gates(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let by_agents = flow.agents.values().flat_map(|agent| agent.tools.iter());
    let by_nodes = flow.nodes.values().filter_map(|node| match &node.kind {
        NodeKind::Tool { tool, .. } => Some(tool),
        _ => None,
    });
    let delegates: Vec<_> = delegates(flow).collect();
    let tools: BTreeSet<&str> = by_agents.chain(by_nodes).chain(&delegates).map(String::as_str).collect();
    let by = ("tool", "is used by an agent or a tool node");
    fires(checker, "/gates/before_tool", &flow.gates.before_tool, &tools, by);
    for (name, agent) in &flow.agents {
        let base = pointer(["agents", name, "gates", "before_tool"]);
        let own = agent.tools.iter().chain(&delegates).map(String::as_str).collect();
        fires(checker, &base, &agent.gates.before_tool, &own, ("tool", "is among the tools of this agent"));
    }
    fires(checker, "/gates/before_agent", &flow.gates.before_agent, &used(flow), ("agent", "is used"));
}

/// Checks that each gate matches something that is used.
fn fires(
    checker: &mut Checker<'_>,
    base: &str,
    gates: &IndexMap<String, GateSetting>,
    used: &BTreeSet<&str>,
    (what, by): (&str, &str),
) {
    if gates.len() > MAX_GATES {
        let message = format!("a flow has at most {MAX_GATES} gates of one kind; this one has {}", gates.len());
        checker.invalid(base, message);
    }
    for (pattern, setting) in gates.iter().take(MAX_GATES) {
        let path = base.to_owned() + &pointer([pattern]);
        if !used.iter().any(|name| matches(pattern, name)) {
            let guess = checker.guess(pattern, used.iter().copied());
            let named = if pattern.contains('*') { "whose name fits" } else { "of this name" };
            checker.invalid(&path, format!("this gate can never apply: no {what} {named} {by}{guess}"));
        }
        let tool = checker.flow.tools.get(pattern).filter(|_| what == "tool").map(|tool| &tool.ask_permission);
        match tool {
            Some(asks) if !asks.is_no() && *setting == GateSetting::Switch(false) => {
                checker.invalid(&path, "the tool has `ask_permission`, but this gate is false; remove one of them");
            }
            Some(asks) if asks.allowed_decisions().is_some() => {
                let message = "the tool's `ask_permission` has `allowed_decisions` of its own; write them here instead, \
                               with `ask_permission: true`";
                checker.invalid(&path, message);
            }
            _ => {}
        }
    }
}

/// Reports a name that nothing has.
pub fn expect(checker: &mut Checker<'_>, path: &str, what: &str, name: &str, names: &BTreeSet<String>) {
    if !names.contains(name) {
        let guess = checker.guess(name, names.iter().map(String::as_str));
        checker.invalid(path, format!("there is no {what} `{name}`{guess}"));
    }
}
