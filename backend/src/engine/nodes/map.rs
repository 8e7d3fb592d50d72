//! Maps: run a node once for each item of a list, all at the same time. Each item is a separate branch at the mapped
//! node, with its own tasks and reviews; the map's branch waits for them, and returns the results in the list's order.
//!
//! The visit of the mapped node identifies an item: the visits of a map are consecutive. An exit from the mapped node
//! (`on_reject`, a timer's `goto`) leaves the whole map, and an item that fails makes it fail; the other items are then
//! ended.

use serde_json::Value;
use shared::JsonMap;
use shared::definition::MapNode;
use shared::error::{FlowCode, FlowError, json_type};
use shared::id::NodeId;
use shared::run::Step;

use crate::engine::builder::{Builder, failure};
use crate::engine::item::{self, MapItem};
use crate::engine::next::Arrival;
use crate::engine::phase::{Branch, Phase};
use crate::engine::scope;

impl Builder<'_> {
    /// Enters a map: sends a branch to the mapped node for each item. `Err` if the step fails.
    pub(in crate::engine) fn enter_map(
        &mut self,
        branch: u32,
        mut step: Step,
        map: &MapNode,
        correction: Option<&str>,
    ) -> Result<(), FlowError> {
        let flow = self.flow;
        let items = self.items(&step, map).map_err(|why| failure(FlowCode::FlowCondition, &step.node, why))?;
        let mapped = step.node.beside(&map.node);
        let own = flow.map_of(&mapped).is_some_and(|(id, _)| id == step.node);
        if !flow.node(&mapped).is_some_and(|node| own && node.kind.is_mappable()) {
            let message = format!("`{}` cannot run for each item", map.node);
            return Err(failure(FlowCode::FlowInvalid, &step.node, message));
        }
        step.note = Some(format!("{} items", items.len()));
        if items.is_empty() {
            self.map_done(branch, step, Vec::new());
            return Ok(());
        }
        let first = self.state.visits.get(&mapped).copied().unwrap_or(0) + 1;
        let count = items.len();
        self.settle(branch, Phase::Map { step, first, items, results: Vec::new() });
        // Before all other arrivals, so that the visits of one map are consecutive.
        let items: Vec<_> = (0..count)
            .map(|_| Arrival {
                correction: correction.map(str::to_owned),
                item_of: Some(branch),
                ..Arrival::at(self.next_number(), mapped.clone())
            })
            .collect();
        for item in items.into_iter().rev() {
            self.arrivals.push_front(item);
        }
        Ok(())
    }

    /// Returns the current list. `Err` says why the map cannot use it.
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

    /// Completes the step of an item, and with the last one the map.
    pub(in crate::engine) fn item_done(&mut self, part: MapItem, mut step: Step, writes: &JsonMap) {
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

    /// Returns the result of an item: the decision of a human node at which something can be chosen or edited;
    /// otherwise the value under the node's only write key, or else all writes as an object.
    fn result(&self, step: &Step, writes: &JsonMap) -> Value {
        let Some(node) = self.flow.node(&step.node) else { return Value::Null };
        if node.kind.human().is_some_and(|human| human.has_options() || !human.edit_keys.is_empty()) {
            return self.state.decisions.get(&step.node).cloned().unwrap_or_default();
        }
        match scope::write_keys(self.flow, &step.node, node).as_slice() {
            [key] if writes.is_empty() || writes.contains_key(key) => writes.get(key).cloned().unwrap_or_default(),
            _ => Value::Object(writes.clone()),
        }
    }

    fn map_done(&mut self, branch: u32, step: Step, results: Vec<Value>) {
        let node = self.flow.node(&step.node);
        let key = node.and_then(|node| scope::result_key(self.flow, &step.node, node));
        let writes = key.map(|key| (key, Value::Array(results))).into_iter().collect();
        self.finish_step(branch, step, writes);
    }

    /// Fails the map of an item that failed. The map's own failure policy applies.
    pub(in crate::engine) fn item_failed(&mut self, part: MapItem, error: FlowError) {
        if let Some(step) = self.end_map(part, "another item of the list failed") {
            self.fail_step(part.map, step, error);
        }
    }

    /// Leaves a map because one of its items goes to another node, through `on_reject` or a timer's `goto`.
    pub(in crate::engine) fn leave_map(&mut self, part: MapItem, node: NodeId) {
        if let Some(mut step) = self.end_map(part, "another item of the list ended the map") {
            step.note = Some(format!("left for `{node}` at item {} of {}", part.index + 1, part.of));
            self.complete_step(&mut step, &JsonMap::new());
            self.arrivals.push_back(Arrival::at(part.map, node));
        }
    }

    /// Ends all items of a map, and returns the map's step.
    fn end_map(&mut self, part: MapItem, why: &str) -> Option<Step> {
        self.arrivals.retain(|arrival| arrival.item_of != Some(part.map));
        let all = self.state.branches.iter();
        let is_part =
            |step: &Step| item::map_item(self.flow, &self.state, step).is_some_and(|other| other.map == part.map);
        let parts = all.filter(|(_, branch)| branch.phase.step().is_some_and(is_part));
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
