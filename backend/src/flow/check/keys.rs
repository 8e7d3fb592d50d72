//! Checks state keys: their names, and keys that nothing writes.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::definition::{Builtin, Flow, Node, NodeKind, ToolKind};
use shared::error::pointer;
use shared::id::NodeId;

use super::Checker;
use crate::flow::keys::{ANY, keys_of_answer, known, own_key, refused, writes, writes_any};

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let properties = flow.input.as_ref().and_then(|input| input.get("properties")).and_then(Value::as_object);
    for key in properties.into_iter().flat_map(|properties| properties.keys()) {
        if let Some(why) = refused(key) {
            checker.invalid_key(&pointer(["input", "properties", key]), why);
        }
    }
    for (id, node) in &flow.nodes {
        let of_answer = keys_of_answer(flow, node);
        for (path, key) in writes(flow, id, node).into_iter().filter(|(_, key)| key != ANY) {
            let by_default = path == pointer(["nodes", id.as_str()]);
            match refused(&key) {
                // People can still be shown such a key, and it can be returned.
                Some(why) if of_answer.iter().any(|(place, _)| *place == path) => {
                    let message =
                        format!("{why}; no template reads what `{id}` writes there, unless another key is used");
                    checker.warn(&path, message);
                }
                Some(why) if by_default => {
                    let message =
                        format!("{why}; the node writes the key of its own name: set another in `write_keys`");
                    checker.invalid(&path, message);
                }
                Some(why) if matches!(node.kind, NodeKind::Set(_)) && node.write_keys.is_none() => {
                    checker.invalid_key(&path, why);
                }
                Some(why) => checker.invalid(&path, why),
                None => {}
            }
        }
        if let (NodeKind::Set(values), Some(allowed), false) = (&node.kind, &node.write_keys, writes_any(node)) {
            let allowed: BTreeSet<&str> = allowed.iter().map(String::as_str).collect();
            for key in values.keys().filter(|key| !allowed.contains(key.as_str())) {
                let path = format!("{}{}", pointer(["nodes", id.as_str(), "set"]), pointer([key]));
                checker.invalid_key(&path, format!("`{key}` is not among the node's `write_keys`"));
            }
        }
    }
    if checker.whole {
        unused(checker);
        unreadable(checker);
    }
    if checker.whole
        && let Some(known) = known(flow)
    {
        unwritten(checker, &known);
    }
}

/// Warns of keys that a node may write but never does, since its only result goes to one key.
fn unused(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let sets_any = |name: &String| {
        let kind = flow.tools.get(name).map(|tool| &tool.kind);
        matches!(kind, Some(ToolKind::Builtin(Builtin::SetState)))
    };
    for (id, node) in &flow.nodes {
        let what = match &node.kind {
            NodeKind::Agent { agent, .. } => match flow.agents.get(agent) {
                Some(agent) if agent.output_schema.is_none() && !agent.tools.iter().any(sets_any) => {
                    "the answer of an agent without `output_schema`"
                }
                _ => continue,
            },
            NodeKind::Tool { tool, .. } if !sets_any(tool) => "the result of a tool",
            NodeKind::Map(_) => "the list of a map's results",
            _ => continue,
        };
        let Some(keys) = node.write_keys.as_ref().filter(|keys| keys.len() > 1 && !writes_any(node)) else { continue };
        let own = own_key(id);
        let taken = keys.iter().position(|key| *key == own).unwrap_or(0);
        for (index, key) in keys.iter().enumerate().filter(|(index, _)| *index != taken) {
            let path = format!("{}/{index}", pointer(["nodes", id.as_str(), "write_keys"]));
            let message = format!("nothing is written to `{key}`: {what} goes to a single key, here `{}`", keys[taken]);
            checker.warn(&path, message);
        }
    }
}

/// Warns of keys that a human node shows or lets people edit, but may not read.
fn unreadable(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    for (id, node) in &flow.nodes {
        let NodeKind::Human(human) = &node.kind else { continue };
        let reviewed = human.review_keys.iter().enumerate().map(|(index, item)| ("review_keys", index, &item.key));
        let edited = human.edit_keys.iter().enumerate().map(|(index, item)| ("edit_keys", index, &item.key));
        let may_read = |key: &str| may_read(flow, id, node, key);
        for (list, index, key) in reviewed.chain(edited).filter(|(.., key)| !may_read(key)) {
            let path = format!("{}/{list}/{index}", pointer(["nodes", id.as_str(), "human"]));
            checker.warn(&path, format!("`{key}` is not shown: it is not among the node's `read_keys`"));
        }
        if let Some(key) = human.options_key.as_deref().filter(|key| !may_read(key)) {
            let path = format!("{}/options_key", pointer(["nodes", id.as_str(), "human"]));
            checker
                .invalid(&path, format!("`{key}` is not among the node's `read_keys`, so its options cannot be read"));
        }
    }
}

/// Whether a node may read a key: all, those among its `read_keys`, and always the item of a `map` that runs it.
pub fn may_read(flow: &Flow, id: &NodeId, node: &Node, key: &str) -> bool {
    let is_item = |other: &Node| matches!(&other.kind, NodeKind::Map(map) if map.node == *id && map.r#as == key);
    node.read_keys.as_ref().is_none_or(|keys| keys.iter().any(|known| known == "*" || known == key))
        || flow.nodes.values().any(is_item)
}

/// Warns of keys that are read, shown or returned, and that nothing writes.
fn unwritten(checker: &mut Checker<'_>, known: &BTreeSet<String>) {
    let flow = checker.flow;
    let mut read: Vec<(String, &str)> = Vec::new();
    for (index, key) in flow.output.iter().flatten().enumerate() {
        read.push((format!("/output/{index}"), key));
    }
    for (id, node) in &flow.nodes {
        let base = pointer(["nodes", id.as_str()]);
        for (index, key) in node.read_keys.iter().flatten().enumerate().filter(|(_, key)| *key != "*") {
            read.push((format!("{base}/read_keys/{index}"), key));
        }
        if let NodeKind::Map(map) = &node.kind {
            read.push((format!("{base}/map/over"), &map.over));
        }
        if let NodeKind::Human(human) = &node.kind {
            for (index, review) in human.review_keys.iter().enumerate() {
                read.push((format!("{base}/human/review_keys/{index}"), &review.key));
            }
        }
    }
    for (path, key) in read {
        if !known.contains(key) {
            let guess = checker.guess(key, known.iter().map(String::as_str));
            checker.warn(&path, format!("nothing writes the state key `{key}`{guess}"));
        }
    }
}
