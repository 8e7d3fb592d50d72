//! Maps: a node runs once for each item of a list, all at the same time. Each item is a branch of its own at the mapped
//! node, with its own tasks and reviews; the map's branch waits for them, and gives the results in the list's order.
//!
//! An item is known by the visit of the mapped node: the visits of one map follow each other. What leads out of the
//! mapped node (`on_reject`, a timer's `goto`) leaves the map as a whole, and an item that fails, fails it; what the
//! other items were doing is ended then.

use serde_json::Value;
use shared::JsonMap;
use shared::definition::{MapNode, NodeKind};
use shared::error::{FlowCode, RunError, json_type};
use shared::id::NodeId;
use shared::run::Step;

use super::branch::Arrival;
use super::builder::{Builder, failure};
use super::scope;
use super::state::{Branch, Phase, RunState};
use crate::flow::Compiled;

/// Which item of which map a step is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The map's branch.
    map: u32,
    /// Its place in the list, from 0.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Builder<'_> {
    /// A branch enters a map.
    pub(super) fn enter_map(&mut self, branch: u32, mut step: Step, map: &MapNode, correction: Option<&str>) {
        let flow = self.flow;
        let items = match self.items(&step, map) {
            Ok(items) => items,
            Err(why) => {
                let error = failure(FlowCode::FlowCondition, &step.node, why);
                return self.fail_step(branch, step, error);
            }
        };
        let mapped = step.node.beside(&map.node);
        let own = flow.map_of(&mapped).is_some_and(|(id, _)| id == step.node);
        let Some(node) = flow.node(&mapped).filter(|node| own && node.kind.is_mappable()) else {
            let message = format!("`{}` cannot run for each item", map.node);
            let error = failure(FlowCode::FlowInvalid, &step.node, message);
            return self.fail_step(branch, step, error);
        };
        step.note = Some(format!("{} items", items.len()));
        if items.is_empty() {
            return self.map_done(branch, step, Vec::new());
        }
        let first = self.state.visits.get(&mapped).copied().unwrap_or(0) + 1;
        let (id, count) = (step.node.clone(), items.len());
        self.settle(branch, &id, Phase::Map { step, first, items, results: Vec::new() });
        for _ in 0..count {
            let number = self.next_number();
            self.enter(number, &mapped, node, correction.map(str::to_owned));
            // One that is decided at once may have ended the run, or left the map.
            if !self.state.branches.contains_key(&branch) {
                return;
            }
        }
    }

    /// The list, as it is now.
    fn items(&self, step: &Step, map: &MapNode) -> Result<Vec<Value>, String> {
        let over = &map.over;
        match self.state.keys_of(&step.node).get(over) {
            Some(Value::Array(items)) if items.len() > MapNode::MAX_ITEMS => {
                let most = MapNode::MAX_ITEMS;
                Err(format!("`{over}` has {} items; a map takes at most {most}: split the list", items.len()))
            }
            Some(Value::Array(items)) => Ok(items.clone()),
            None => Err(format!("`{over}` has no value yet; a map needs a list")),
            Some(other) => Err(format!("`{over}` is of type {}; a map needs a list", json_type(other))),
        }
    }

    /// Which item a step is, where it is one.
    pub(super) fn part(&self, step: &Step) -> Option<Part> {
        part(self.flow, &self.state, &step.node, step.visit).map(|(part, _)| part)
    }

    /// The same as people are told; else which item the call is that led to the flow that the step is in.
    pub(super) fn part_around(&self, node: &NodeId, visit: u32) -> Option<shared::run::Part> {
        let mut calls = std::iter::successors(Some((node.clone(), visit)), |(node, _)| node.caller());
        calls.find_map(|(at, visit)| {
            let (part, _) = part(self.flow, &self.state, &at, visit)?;
            Some(shared::run::Part { number: part.index + 1, of: part.of, inside: at != *node })
        })
    }

    /// A value that a step sees under a name: its item, or a state key.
    pub(super) fn value(&self, step: &Step, key: &str) -> Option<&Value> {
        match item(self.flow, &self.state, &step.node, step.visit) {
            Some((name, item)) if name == key => Some(item),
            _ => self.state.keys_of(&step.node).get(key),
        }
    }

    /// What a step may see of these properties of a schema, where nobody says what it gives to what it calls.
    pub(super) fn readable_of(&self, step: &Step, properties: Option<&JsonMap>) -> JsonMap {
        let node = self.flow.node(&step.node);
        let names = properties.into_iter().flat_map(JsonMap::keys);
        let readable = names.filter(|name| node.is_none_or(|node| scope::may_read(node, name)));
        readable.filter_map(|name| Some((name.clone(), self.value(step, name)?.clone()))).collect()
    }

    /// The step of an item is done; with the last one, the map is.
    pub(super) fn item_done(&mut self, part: Part, mut step: Step, writes: &JsonMap) {
        let result = self.result(&step, writes);
        self.complete_step(&mut step, &JsonMap::new());
        let Some(Branch { phase: Phase::Map { items, results, .. }, .. }) = self.state.branches.get_mut(&part.map)
        else {
            return;
        };
        results.push((part.index, result));
        if results.len() < items.len() {
            return;
        }
        if let Some(Branch { phase: Phase::Map { step, mut results, .. }, .. }) = self.state.branches.remove(&part.map)
        {
            results.sort_by_key(|(index, _)| *index);
            self.map_done(part.map, step, results.into_iter().map(|(_, result)| result).collect());
        }
    }

    /// What came of an item: the decision, where somebody chose or edited something; else what the node writes, as it
    /// is under its one key, or as an object.
    fn result(&self, step: &Step, writes: &JsonMap) -> Value {
        let Some(node) = self.flow.node(&step.node) else { return Value::Null };
        if let NodeKind::Human(human) = &node.kind
            && !(human.options.is_empty() && human.edit_keys.is_empty())
        {
            return self.state.decisions.get(&step.node).cloned().unwrap_or_default();
        }
        match scope::write_keys(self.flow, &step.node, node).as_slice() {
            [key] => writes.get(key).cloned().unwrap_or_default(),
            _ => Value::Object(writes.clone()),
        }
    }

    fn map_done(&mut self, branch: u32, step: Step, results: Vec<Value>) {
        let node = self.flow.node(&step.node);
        let key = node.and_then(|node| scope::result_key(self.flow, &step.node, node));
        let writes = key.map(|key| (key, Value::Array(results))).into_iter().collect();
        self.finish_step(branch, step, &writes);
    }

    /// An item failed, and with it the map: its own failure policy says what happens.
    pub(super) fn item_failed(&mut self, part: Part, error: RunError) {
        if let Some(step) = self.end_map(part, "another item of the list failed") {
            self.fail_step(part.map, step, error);
        }
    }

    /// An item leads out of the map: to `on_reject`, or where a timer goes.
    pub(super) fn leave_map(&mut self, part: Part, node: NodeId) {
        if let Some(mut step) = self.end_map(part, "another item of the list ended the map") {
            step.note = Some(format!("left for `{node}` at item {} of {}", part.index + 1, part.of));
            self.complete_step(&mut step, &JsonMap::new());
            self.arrivals.push_back(Arrival::at(part.map, node));
        }
    }

    /// Ends what the items of a map are doing, and gives the map's step.
    fn end_map(&mut self, part: Part, why: &str) -> Option<Step> {
        let all = self.state.branches.iter();
        let parts = all.filter(|(_, branch)| {
            branch.phase.step().and_then(|step| self.part(step)).is_some_and(|other| other.map == part.map)
        });
        let numbers: Vec<u32> = parts.map(|(number, _)| *number).collect();
        for number in numbers {
            self.end_branch(number, None, why);
        }
        match self.state.branches.remove(&part.map)?.phase {
            Phase::Map { step, .. } => Some(step),
            _ => None,
        }
    }
}

/// The item of a visit of a mapped node, with the name under which it is seen.
pub(super) fn item<'s>(
    flow: &'s Compiled,
    state: &'s RunState,
    node: &NodeId,
    visit: u32,
) -> Option<(&'s str, &'s Value)> {
    let (_, item) = part(flow, state, node, visit)?;
    Some((flow.map_of(node)?.1.r#as.as_str(), item))
}

fn part<'s>(flow: &Compiled, state: &'s RunState, node: &NodeId, visit: u32) -> Option<(Part, &'s Value)> {
    let (map, _) = flow.map_of(node)?;
    state.branches.iter().find_map(|(number, branch)| match &branch.phase {
        Phase::Map { first, items, .. } if branch.node == map => {
            let index = visit.checked_sub(*first)?;
            let item = items.get(usize::try_from(index).ok()?)?;
            let of = u32::try_from(items.len()).unwrap_or(u32::MAX);
            Some((Part { map: *number, index, of }, item))
        }
        _ => None,
    })
}
