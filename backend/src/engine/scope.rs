//! The values that templates and conditions of a node see, and the keys that the node may write.
//!
//! A node may write its `write_keys`. Without them (or with only `*`, which adds all others that may be written), it
//! writes the keys that `set` sets, the properties of an agent's `output_schema`, nothing for a router, and otherwise
//! one key with the node's name, with `_` for `-` because state keys have no hyphens.

use serde_json::{Value, json};
use shared::JsonMap;
use shared::definition::{Node, NodeKind};
use shared::id::NodeId;
use shared::run::Step;

use super::item;
use super::state::RunState;
use crate::flow::{ANY, Compiled, Scope, own_key, work_limit};

/// What one visit adds to the names that every node sees.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Visit<'a> {
    /// The number of the visit.
    pub number: u32,
    /// A person's correction, for a source step that is not an agent's.
    pub correction: Option<&'a str>,
    /// In tools and gates: the arguments of the call or of another action.
    pub arguments: Option<&'a JsonMap>,
    /// In gates: the agent that makes the call, or is about to begin.
    pub agent: Option<&'a str>,
    /// In validators of human nodes: what a decision says, before it counts.
    pub response: Option<&'a Value>,
}

/// Returns the names that a node's templates and conditions see. Reserved names come last, so that no state key can
/// hide them.
pub(super) fn of(flow: &Compiled, state: &RunState, node: &NodeId, visit: Visit<'_>) -> Scope {
    let mut names = JsonMap::new();
    for (key, value) in state.keys_of(node) {
        if flow.node(node).is_none_or(|node| may_read(node, key)) {
            names.insert(key.clone(), value.clone());
        }
    }
    let item = item::item(flow, state, node, visit.number);
    names.extend(item.map(|(name, item)| (name.to_owned(), item.clone())));
    let frame = || state.frames.get(node.frame());
    let correction = visit.correction.or_else(|| frame()?.correction.as_deref());
    names.extend(correction.map(|correction| ("correction".to_owned(), correction.into())));
    let beside = state.decisions.iter().filter(|(other, _)| other.frame() == node.frame());
    let decisions: JsonMap = beside.map(|(node, value)| (node.own().to_owned(), value.clone())).collect();
    let fixed = json!({
        "input": state.input_of(node),
        "context": context(state),
        "decision": state.decisions.get(node),
        "decisions": decisions,
        "visit": visit.number,
        "env": flow.of(node).env(),
        "run": run(state),
    });
    if let Value::Object(fixed) = fixed {
        names.extend(fixed);
    }
    names.extend(visit.arguments.map(|arguments| ("arguments".to_owned(), Value::Object(arguments.clone()))));
    if let Some(agent) = visit.agent {
        // A flow that was saved before the name was reserved may have a state key of this name, which its conditions
        // refer to.
        names.entry("agent").or_insert_with(|| agent.into());
    }
    names.extend(visit.response.map(|response| ("response".to_owned(), response.clone())));
    work_limit::count_copy(&names);
    Scope(names)
}

/// Returns what guardrails see of a run, besides the values that they check.
pub(super) fn of_run(state: &RunState) -> Scope {
    let mut names = JsonMap::new();
    names.insert("context".to_owned(), context(state));
    names.insert("run".to_owned(), run(state));
    Scope(names)
}

fn context(state: &RunState) -> Value {
    let context = &state.context;
    json!({
        "user": context.user,
        "tenant": context.tenant,
        "session": context.session,
        "metadata": context.metadata,
    })
}

fn run(state: &RunState) -> Value {
    json!({
        "id": state.id,
        "flow": state.flow,
        "version": state.version,
        "requested_by": state.requested_by,
    })
}

/// Returns the value that a step sees under a name: its map item, or a state key.
pub(super) fn value<'s>(flow: &'s Compiled, state: &'s RunState, step: &Step, key: &str) -> Option<&'s Value> {
    match item::item(flow, state, &step.node, step.visit) {
        Some((name, item)) if name == key => Some(item),
        _ => state.keys_of(&step.node).get(key),
    }
}

/// Returns what a step may read for these properties of a schema: the default input of what it calls.
pub(super) fn readable_of(flow: &Compiled, state: &RunState, step: &Step, properties: Option<&JsonMap>) -> JsonMap {
    let node = flow.node(&step.node);
    let names = properties.into_iter().flat_map(JsonMap::keys);
    let readable = names.filter(|name| node.is_none_or(|node| may_read(node, name)));
    readable.filter_map(|name| Some((name.clone(), value(flow, state, step, name)?.clone()))).collect()
}

/// Whether a node may see a state key.
pub(super) fn may_read(node: &Node, key: &str) -> bool {
    node.read_keys.as_ref().is_none_or(|keys| keys.iter().any(|readable| readable == "*" || readable == key))
}

/// Whether a step may see a value under a name: its map item always, a state key if its node may.
pub(super) fn step_may_read(flow: &Compiled, state: &RunState, step: &Step, key: &str) -> bool {
    let is_item = item::item(flow, state, &step.node, step.visit).is_some_and(|(name, _)| name == key);
    is_item || flow.node(&step.node).is_none_or(|node| may_read(node, key))
}

/// Whether a node may write a state key.
pub(super) fn may_write(flow: &Compiled, id: &NodeId, node: &Node, key: &str) -> bool {
    if node.write_keys.iter().flatten().any(|key| key == ANY) {
        return flow.may_write_any(id, key);
    }
    write_keys(flow, id, node).iter().any(|writable| writable == key)
}

/// Returns the state keys that a node may write, except for those that only `*` allows.
pub(super) fn write_keys(flow: &Compiled, id: &NodeId, node: &Node) -> Vec<String> {
    let named = || node.write_keys.iter().flatten().filter(|key| *key != ANY).cloned();
    if node.write_keys.as_ref().is_some_and(|keys| keys.is_empty() || named().next().is_some()) {
        return named().collect();
    }
    let own = || vec![own_key(id.own())];
    match &node.kind {
        NodeKind::Set(values) => values.keys().cloned().collect(),
        NodeKind::Router(_) => Vec::new(),
        NodeKind::Agent { .. } | NodeKind::Team(_) => {
            let schema = answer_schema(flow, id, node);
            let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
            // `*` does not include keys that something else may write at the same time.
            let any = node.write_keys.is_some();
            let may = |key: &&String| !any || flow.may_write_any(id, key);
            let keys: Vec<_> = properties.into_iter().flat_map(JsonMap::keys).filter(may).cloned().collect();
            if keys.is_empty() { own() } else { keys }
        }
        _ => own(),
    }
}

/// Returns the `output_schema` of the agent whose answer is the result of a node; `None` if there is none.
pub(super) fn answer_schema<'f>(flow: &'f Compiled, id: &NodeId, node: &Node) -> Option<&'f Value> {
    let agent = match &node.kind {
        NodeKind::Team(team) => team.answers(),
        NodeKind::Agent { agent, .. } => agent,
        _ => return None,
    };
    flow.of(id).flow.agents.get(agent)?.output_schema.as_ref()
}

/// Whether a schema of an object describes this property.
pub(super) fn has_property(schema: &Value, key: &str) -> bool {
    schema.get("properties").is_some_and(|properties| properties.get(key).is_some())
}

/// Returns the key for a node's result: the key with the node's name if it may write that, or else its first write key.
pub(super) fn result_key(flow: &Compiled, id: &NodeId, node: &Node) -> Option<String> {
    let own = own_key(id.own());
    let mut keys = write_keys(flow, id, node);
    if keys.contains(&own) { Some(own) } else { (!keys.is_empty()).then(|| keys.swap_remove(0)) }
}
