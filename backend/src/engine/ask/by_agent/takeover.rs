//! The review in which somebody writes the output of an agent's step that they have taken over: each key by its schema
//! in the agent's `output_schema`.

use serde_json::{Value, json};
use shared::definition::{Node, Reviewers};
use shared::error::{Mistake, pointer};
use shared::id::NodeId;
use shared::review::{Item, Review, ReviewKind};
use shared::run::Step;

use super::presentation;
use crate::engine::ask::content::Content;
use crate::engine::ask::content::title;
use crate::engine::ask::guardrails::check::PutIn;
use crate::engine::builder::Builder;
use crate::engine::scope;
use crate::flow::{Compiled, check_value, embed, has_references, reference};

/// The name of an agent's `output_schema` in the schema of a key that refers to it.
const OUTPUT: &str = "output";

impl Builder<'_> {
    /// Builds the content of the review in which somebody writes the output of a step that they took over.
    pub(in crate::engine::ask) fn content_of_takeover(&self, step: &Step, reviewers: Reviewers) -> Option<Content> {
        let node = self.flow.node(&step.node)?;
        let items = scope::write_keys(self.flow, &step.node, node).into_iter().map(|key| {
            let value = scope::value(self.flow, &self.state, step, &key).cloned();
            let schema = schema_of_key(self.flow, &step.node, node, &key);
            presentation::written(key, value, schema)
        });
        let place = step.node.place();
        Some(Content {
            kind: ReviewKind::Edit,
            title: title::of_prompt(&format!("Write the output of `{place}`"), None),
            prompt: format!("You have taken over the step `{place}`. Write its output, and the run continues with it."),
            reviewers,
            items: items.collect(),
            options: vec![presentation::done()],
            ..Content::default()
        })
    }

    /// Checks that whoever took over a step leaves no text blank, and nothing else as it is that the agent could not
    /// have written. What they edit has been checked already.
    pub(in crate::engine::ask) fn check_written(&self, review: &Review, put_in: &PutIn) -> Result<(), Vec<Mistake>> {
        let is_unwritten = |item: &&Item| match (put_in.edits.get(&item.key), &item.value) {
            (Some(Value::String(text)), _) | (None, Value::String(text)) if text.trim().is_empty() => true,
            (Some(_), _) => false,
            (None, Value::Null) if self.may_be_left_out(review, &item.key) => false,
            (None, value) => item.schema.as_ref().is_some_and(|schema| !check_value(schema, value, "").is_empty()),
        };
        let mistakes = review.items.iter().filter(is_unwritten).map(|item| {
            let what = if item.value.is_string() { "text" } else { "value" };
            let message = format!("write the {what} with which the run continues");
            Mistake::new(pointer(["edits", &item.key]), "required", message)
        });
        let mistakes: Vec<_> = mistakes.collect();
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }

    /// Whether the agent could leave out a key: it is a property that its `output_schema` does not require.
    fn may_be_left_out(&self, review: &Review, key: &str) -> bool {
        let node = review.node.as_ref().and_then(|id| Some((id, self.flow.node(id)?)));
        let Some(whole) = node.and_then(|(id, node)| scope::answer_schema(self.flow, id, node)) else { return false };
        let required = whole.get("required").and_then(Value::as_array);
        scope::has_property(whole, key) && !required.is_some_and(|names| names.iter().any(|name| name == key))
    }
}

/// Returns the schema of what the agent of a node writes to a key; `None` if it has none.
fn schema_of_key(flow: &Compiled, id: &NodeId, node: &Node, key: &str) -> Option<Value> {
    let whole = scope::answer_schema(flow, id, node)?;
    if let Some(property) = whole.get("properties").and_then(|properties| properties.get(key)) {
        if !has_references(property) {
            return Some(property.clone());
        }
        // References are relative to the whole schema, so it is needed, too.
        let mut schema = json!({ "$ref": reference(&pointer(["$defs", OUTPUT, "properties", key])) });
        embed(&mut schema, "$defs", OUTPUT, whole);
        return Some(schema);
    }
    // An answer that has none of the keys is written as a whole.
    let has_parts = scope::write_keys(flow, id, node).iter().any(|key| scope::has_property(whole, key));
    (!has_parts && scope::result_key(flow, id, node).as_deref() == Some(key)).then(|| whole.clone())
}
