//! Set nodes, which set state keys. All values are rendered from the state at entry, so their order does not matter.

use indexmap::IndexMap;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::Node;
use shared::error::{FlowCode, FlowError};
use shared::run::Step;

use crate::engine::builder::{Builder, failure, unevaluated};
use crate::engine::scope::{self, Visit};

impl Builder<'_> {
    /// Enters a set node: renders its values, and completes the step. `Err` if the step fails.
    pub(in crate::engine) fn enter_set(
        &mut self,
        branch: u32,
        step: Step,
        node: &Node,
        values: &IndexMap<String, Value>,
    ) -> Result<(), FlowError> {
        let scope = scope::of(self.flow, &self.state, &step.node, Visit { number: step.visit, ..Visit::default() });
        let mut writes = JsonMap::new();
        for (key, template) in values {
            if !scope::may_write(self.flow, &step.node, node, key) {
                let message = format!("`{key}` is not among the write_keys of `{}`", step.node);
                return Err(failure(FlowCode::FlowInvalid, &step.node, message));
            }
            let value = self.flow.of(&step.node).render_value(template, &scope);
            writes.insert(key.clone(), value.map_err(|error| unevaluated(&step.node, &error))?);
        }
        self.finish_step(branch, step, writes);
        Ok(())
    }
}
