//! Checks maps: the list, the name of an item, and the restrictions of the node that runs for each item. Its items run
//! at the same time and end in the map, so no other edge leads to it or out of it, and it writes no state keys.

use serde_json::Value;
use shared::definition::{Builtin, FailureThen, Flow, Human, Join, MapNode, Node, NodeKind, ToolKind};
use shared::error::pointer;
use shared::id::NodeId;

use super::Checker;
use crate::flow::keys::{refused, writes};
use crate::flow::reachability::edges_of;

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    for (id, node) in &flow.nodes {
        if let NodeKind::Map(map) = &node.kind {
            let base = pointer(["nodes", id.as_str(), "map"]);
            list(checker, &base, node, map);
            name(checker, &base, map);
            // Unknown nodes are reported by `names`.
            if let Some(mapped) = flow.nodes.get(&map.node) {
                kind(checker, &base, id, map, mapped);
                settings(checker, id, map, mapped);
                entered(checker, id, map);
            }
        }
    }
}

fn list(checker: &mut Checker<'_>, base: &str, node: &Node, map: &MapNode) {
    if let Some(keys) = &node.read_keys
        && !keys.iter().any(|key| *key == map.over || key == "*")
    {
        checker.invalid(&format!("{base}/over"), format!("`{}` is not among the node's `read_keys`", map.over));
    }
}

fn name(checker: &mut Checker<'_>, base: &str, map: &MapNode) {
    let flow = checker.flow;
    let (path, name) = (format!("{base}/as"), &map.r#as);
    if let Some(why) = refused(name) {
        return checker.invalid(&path, why);
    }
    let given = flow.input.as_ref().and_then(|input| input.get("properties")).and_then(Value::as_object);
    // The mapped node may edit its item, under the item's name.
    let is_item = |id: &NodeId| {
        let mut kinds = flow.nodes.values().map(|node| &node.kind);
        kinds.any(|kind| matches!(kind, NodeKind::Map(of) if of.node == *id && of.r#as == *name))
    };
    let mut others = flow.nodes.iter().filter(|(id, _)| !is_item(id));
    let written = others.any(|(id, node)| writes(flow, id.as_str(), node).iter().any(|(_, key)| key == name));
    if written || given.is_some_and(|properties| properties.contains_key(name)) {
        checker.invalid(&path, format!("`{name}` is already a state key; choose another name for the item"));
    }
}

fn kind(checker: &mut Checker<'_>, base: &str, id: &NodeId, map: &MapNode, mapped: &Node) {
    let flow = checker.flow;
    let path = format!("{base}/node");
    if !mapped.kind.is_mappable() {
        let message = format!(
            "`{}` is a {} node; agent, team, tool, set, human and flow nodes can run for each item",
            map.node,
            mapped.kind.as_str()
        );
        return checker.invalid(&path, message);
    }
    let before = flow.nodes.iter().take_while(|(other, _)| *other != id);
    let twice = before.map(|(other, node)| (other, &node.kind)).find_map(|(other, kind)| match kind {
        NodeKind::Map(same) if same.node == map.node => Some(other),
        _ => None,
    });
    if let Some(other) = twice {
        checker.invalid(&path, format!("the map `{other}` already runs `{}`; give each map its own node", map.node));
    }
    let tools: Vec<&str> = match &mapped.kind {
        NodeKind::Tool { tool, .. } => tools_below(flow, [tool.as_str()], []),
        NodeKind::Agent { agent, .. } => tools_below(flow, [], [agent.as_str()]),
        NodeKind::Team(team) => tools_below(flow, [], team.named()),
        _ => Vec::new(),
    };
    let sets = |tool: &str| flow.tools.get(tool).is_some_and(|tool| tool.kind == ToolKind::Builtin(Builtin::SetState));
    if let Some(tool) = tools.into_iter().find(|tool| sets(tool)) {
        let message =
            format!("`{}` may call `{tool}`, and items that run at the same time would overwrite each other", map.node);
        checker.invalid(&path, message);
    }
}

/// Returns these tools and those of these agents, including the tools of agents that are tools.
fn tools_below<'f>(
    flow: &'f Flow,
    tools: impl IntoIterator<Item = &'f str>,
    agents: impl IntoIterator<Item = &'f str>,
) -> Vec<&'f str> {
    let tools_of = |agent: &str| flow.agents.get(agent).into_iter().flat_map(|agent| &agent.tools).map(String::as_str);
    let mut found: Vec<&str> = tools.into_iter().chain(agents.into_iter().flat_map(tools_of)).collect();
    let mut next = 0;
    while let Some(tool) = found.get(next).copied() {
        next += 1;
        if let Some(ToolKind::Agent(agent)) = flow.tools.get(tool).map(|tool| &tool.kind) {
            for tool in tools_of(agent) {
                if !found.contains(&tool) {
                    found.push(tool);
                }
            }
        }
    }
    found
}

/// Refuses settings that have no meaning at a mapped node.
fn settings(checker: &mut Checker<'_>, id: &NodeId, map: &MapNode, mapped: &Node) {
    let base = pointer(["nodes", map.node.as_str()]);
    let goto = mapped.failure.as_ref().is_some_and(|failure| matches!(failure.then, FailureThen::Goto(_)));
    let idle = [
        ("next", !mapped.next.is_empty()),
        ("join", mapped.join != Join::Any),
        ("max_visits", mapped.max_visits.is_some()),
        ("on_visit_limit", mapped.on_visit_limit.is_some()),
        ("failure/then", goto),
    ];
    for (key, _) in idle.into_iter().filter(|(_, is_written)| *is_written) {
        let message = format!("`{}` runs for each item of the map `{id}` and ends there; set this at `{id}`", map.node);
        checker.invalid(&format!("{base}/{key}"), message);
    }
    if let NodeKind::Human(human) = &mapped.kind {
        self::human(checker, &format!("{base}/human"), map, human);
    }
}

fn human(checker: &mut Checker<'_>, base: &str, map: &MapNode, human: &Human) {
    for (index, edit) in human.edit_keys.iter().enumerate().filter(|(_, edit)| edit.key != map.r#as) {
        let message = format!(
            "`{}` is not the item: several people could change it at the same time; only `{}` can be edited here",
            edit.key, map.r#as
        );
        checker.invalid(&format!("{base}/edit_keys/{index}"), message);
    }
    if human.corrects.is_some() {
        let message = "no step made something for this item alone; ask for corrections after the map";
        checker.invalid(&format!("{base}/corrects"), message);
    }
}

/// Checks that nothing except the map leads to its mapped node.
fn entered(checker: &mut Checker<'_>, id: &NodeId, map: &MapNode) {
    let flow = checker.flow;
    let message =
        |what: &str| format!("`{}` runs for each item of the map `{id}`; {what} must not lead to it", map.node);
    if flow.start() == Some(&map.node) {
        let path = if flow.start.is_some() { "/start".to_owned() } else { pointer(["nodes", map.node.as_str()]) };
        checker.invalid(&path, message("the start"));
    }
    for (from, node) in flow.nodes.iter().filter(|(from, _)| **from != map.node) {
        if edges_of(flow, node).iter().any(|(_, to)| **to == map.node) {
            checker.invalid(&pointer(["nodes", map.node.as_str()]), message(&format!("`{from}`")));
        }
        if node.kind.human().is_some_and(|human| human.corrects.as_ref() == Some(&map.node)) {
            let path = pointer(["nodes", from.as_str(), "human", "corrects"]);
            checker.invalid(&path, format!("`{}` runs for each item; name the map `{id}`", map.node));
        }
    }
}
