//! The templates of a step: renders them from what its node sees.

use serde_json::Value;
use shared::JsonMap;
use shared::error::FlowError;
use shared::run::Step;

use super::builder::{Builder, unevaluated};
use super::item;
use super::scope::{self, Visit};
use crate::flow::is_plain;

impl Builder<'_> {
    /// Renders a text of a step. `seen` is what it sees besides the names that every template of the node sees.
    pub(super) fn render(&self, step: &Step, template: &str, seen: Visit<'_>) -> Result<String, FlowError> {
        // Many texts are plain: what the node sees, which may be large, is not copied for them.
        if is_plain(template) {
            return Ok(template.to_owned());
        }
        let scope = scope::of(self.flow, &self.state, &step.node, Visit { number: step.visit, ..seen });
        self.flow.of(&step.node).render(template, &scope).map_err(|error| unevaluated(&step.node, &error))
    }

    /// Renders the templates in an object, given the correction of the step.
    pub(super) fn render_object(
        &self,
        step: &Step,
        templates: &JsonMap,
        correction: Option<&str>,
    ) -> Result<Value, FlowError> {
        let visit = Visit { number: step.visit, correction, ..Visit::default() };
        let scope = scope::of(self.flow, &self.state, &step.node, visit);
        let rendered = self.flow.of(&step.node).render_value(&Value::Object(templates.clone()), &scope);
        rendered.map_err(|error| unevaluated(&step.node, &error))
    }

    /// Returns the rendered prompt for an agent, or else what the step is about.
    pub(super) fn prompt(&self, step: &Step, template: Option<&str>) -> Result<String, FlowError> {
        template.map_or_else(|| Ok(self.material(step)), |template| self.render(step, template, Visit::default()))
    }

    /// Returns what a step is about as JSON, for agents without a prompt: its map item, or else the keys that its node
    /// may read.
    pub(super) fn material(&self, step: &Step) -> String {
        if let Some((_, item)) = item::item(self.flow, &self.state, &step.node, step.visit) {
            return format!("{item:#}");
        }
        let id = &step.node;
        let node = self.flow.node(id);
        let readable = |key: &&String| node.is_none_or(|node| scope::may_read(node, key));
        let keys = self.state.keys_of(id).iter().filter(|(key, _)| readable(key));
        let keys: JsonMap = keys.map(|(key, value)| (key.clone(), value.clone())).collect();
        format!("{:#}", Value::Object(keys))
    }
}
