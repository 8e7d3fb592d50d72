//! State keys: their allowed names, and the nodes that write them.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::definition::{Builtin, Flow, Node, NodeKind, ToolKind};
use shared::error::pointer;

/// The names that templates and conditions see in addition to the state keys. No state key may have them.
pub const RESERVED: [&str; 11] =
    ["agent", "arguments", "context", "decision", "decisions", "env", "input", "response", "run", "secret", "visit"];

/// The entry of `write_keys` that stands for any key that no other node writes at the same time.
pub const ANY: &str = "*";

/// Whether a node may write any key that nothing else writes at the same time.
pub fn writes_any(node: &Node) -> bool {
    node.write_keys.iter().flatten().any(|key| key == ANY)
}

/// Returns why a name is not allowed for a state key. `None` if it is allowed.
pub fn refused(key: &str) -> Option<String> {
    let mut chars = key.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        Some(format!("`{key}` is not a state key: letters, digits and _, not starting with a digit"))
    } else if RESERVED.contains(&key) {
        Some(format!("`{key}` is reserved in templates; choose another name for the state key"))
    } else {
        None
    }
}

/// Returns the key to which a node's result goes if it is among its `write_keys`: that of its name, with `_` for `-`,
/// which no key has. Where a node writes this key by default, the name of the node must be a valid key.
pub fn own_key(id: &str) -> String {
    id.replace('-', "_")
}

/// Returns the keys that a node may write, each with the place that names it. If the node may write any key, [`ANY`] is
/// included in addition to the keys that it always writes.
pub fn writes(flow: &Flow, id: &str, node: &Node) -> Vec<(String, String)> {
    let base = pointer(["nodes", id]);
    let named = node.write_keys.iter().flatten().enumerate();
    let mut keys: Vec<_> = named.map(|(index, key)| (format!("{base}/write_keys/{index}"), key.clone())).collect();
    let names_none = !keys.is_empty() && keys.iter().all(|(_, key)| key == ANY);
    if node.write_keys.is_none() || names_none {
        keys.extend(written_by_default(flow, id, node, &base));
    }
    if let NodeKind::Human(human) = &node.kind {
        for (index, edit) in human.edit_keys.iter().enumerate() {
            keys.push((format!("{base}/human/edit_keys/{index}"), edit.key.clone()));
        }
    }
    keys
}

fn written_by_default(flow: &Flow, id: &str, node: &Node, base: &str) -> Vec<(String, String)> {
    // With `*`, the keys of the answer that something else may write at the same time are left out.
    let of_answer = if writes_any(node) { Vec::new() } else { keys_of_answer(flow, node) };
    match &node.kind {
        _ if !of_answer.is_empty() => of_answer,
        NodeKind::Set(values) => {
            values.keys().map(|key| (format!("{base}/set{}", pointer([key])), key.clone())).collect()
        }
        NodeKind::Human(human) if human.has_options() => Vec::new(),
        NodeKind::Router(_) => Vec::new(),
        // A name that is no key is refused there, so it is not turned into one.
        _ => vec![(base.to_owned(), id.to_owned())],
    }
}

/// Returns the keys that a node may write, including those of its agent's output schema.
pub fn may_write(flow: &Flow, id: &str, node: &Node) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = writes(flow, id, node).into_iter().map(|(_, key)| key).collect();
    if writes_any(node) {
        keys.extend(keys_of_answer(flow, node).into_iter().map(|(_, key)| key));
    }
    keys
}

/// Returns the keys of the answer that the agent of a node gives, each with its place in the agent's output schema.
/// Empty if the node has no agent, or its agent no such schema.
pub fn keys_of_answer(flow: &Flow, node: &Node) -> Vec<(String, String)> {
    let agent = match &node.kind {
        NodeKind::Agent { agent, .. } => agent,
        NodeKind::Team(team) => team.answers(),
        _ => return Vec::new(),
    };
    let schema = flow.agents.get(agent).and_then(|agent| agent.output_schema.as_ref());
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let place = |key: &String| pointer(["agents", agent, "output_schema", "properties", key]);
    properties.into_iter().flat_map(|properties| properties.keys()).map(|key| (place(key), key.clone())).collect()
}

/// Returns all possible names of a run's state keys and map items. `None` if the flow allows any name.
pub fn known(flow: &Flow) -> Option<BTreeSet<String>> {
    let sets_any = |kind: &ToolKind| matches!(kind, ToolKind::Builtin(Builtin::SetState));
    if flow.tools.values().any(|tool| sets_any(&tool.kind)) || flow.nodes.values().any(writes_any) {
        return None;
    }
    let mut keys: BTreeSet<String> = BTreeSet::new();
    if let Some(input) = &flow.input {
        let closed = input.get("additionalProperties") == Some(&Value::Bool(false));
        match input.get("properties").and_then(Value::as_object) {
            Some(properties) => keys.extend(properties.keys().cloned()),
            None if !closed => return None,
            None => {}
        }
    }
    for (id, node) in &flow.nodes {
        keys.extend(may_write(flow, id, node));
        if let NodeKind::Map(map) = &node.kind {
            keys.insert(map.r#as.clone());
        }
    }
    Some(keys)
}
