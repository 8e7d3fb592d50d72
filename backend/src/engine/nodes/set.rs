//! Set nodes, which set state keys. All values are rendered from the state at entry, so their order does not matter.

use indexmap::IndexMap;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::Node;
use shared::error::FlowCode;
use shared::run::Step;

use crate::engine::builder::{Builder, failure, unevaluated};
use crate::engine::scope::{self, Visit};

impl Builder<'_> {
    /// Enters a set node: renders its values, and completes the step.
    pub(in crate::engine) fn enter_set(
        &mut self,
        branch: u32,
        step: Step,
        node: &Node,
        values: &IndexMap<String, Value>,
    ) {
        let scope = scope::of(self.flow, &self.state, &step.node, Visit { number: step.visit, ..Visit::default() });
        let mut writes = JsonMap::new();
        for (key, template) in values {
            if !scope::may_write(self.flow, &step.node, node, key) {
                let message = format!("`{key}` is not among the write_keys of `{}`", step.node);
                let error = failure(FlowCode::FlowInvalid, &step.node, message);
                return self.fail_step(branch, step, error);
            }
            match self.flow.of(&step.node).render_value(template, &scope) {
                Ok(value) => writes.insert(key.clone(), value),
                Err(error) => {
                    let error = unevaluated(&step.node, &error);
                    return self.fail_step(branch, step, error);
                }
            };
        }
        self.finish_step(branch, step, writes);
    }
}
