//! The questions of human nodes, and the formats of their values.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::definition::{
    Alternative, AlternativeChoice, ChoiceKind, ContentType, Human, HumanOption, Reviewers, Stakes, TemplateText,
    as_read, option_text, read_twice,
};
use shared::error::{FlowCode, FlowError};
use shared::id::NodeId;
use shared::review::{Item, ReviewKind, ReviewOption, Source};
use shared::run::Step;
use shared::topic::{topic, topic_of};

use super::stakes::alike;
use super::title;
use super::{Content, Rules, schema_of};
use crate::engine::builder::{Builder, failure};
use crate::engine::item;
use crate::engine::scope::{self, Visit};

/// The most options that a state key may hold.
const MAX_OPTIONS: usize = 20;
/// The prompt of a human node that has none.
const DEFAULT_PROMPT: &str = "Please review.";

impl Builder<'_> {
    /// Builds the current content of a human node's review.
    pub(in crate::engine::ask) fn content_of_node(&self, step: &Step, human: &Human) -> Result<Content, FlowError> {
        let prompt = self.human_prompt(step, human)?;
        let source = self.source(&step.node);
        let stakes = self.stakes_of(step, human.stakes(), Visit::default())?;
        let options = self.options(step, human, &stakes)?;
        let items = self.shown_items(step, human);
        let (timeout, on_timeout) = self.time_at_node(step, human);
        Ok(Content {
            kind: ReviewKind::Approval,
            title: self.human_title(step, human, &prompt),
            prompt,
            stakes,
            reviewers: self.reviewers_at(&step.node, &human.reviewers),
            timeout,
            on_timeout,
            items,
            free_text: options.is_empty() || (source.is_some() && human.allow_free_text != Some(false)),
            options,
            source,
            rules: Rules { policy: human.policy.clone(), deny: human.deny, blind: human.blind },
            ..Content::default()
        })
    }

    /// Returns the items that a human node shows, with their current values.
    pub(in crate::engine::ask) fn shown_items(&self, step: &Step, human: &Human) -> Vec<Item> {
        items(
            human,
            |key| scope::step_may_read(self.flow, &self.state, step, key),
            |key| scope::value(self.flow, &self.state, step, key),
        )
    }

    /// Returns who may decide at a node, given the reviewers that it or its gate names.
    pub(in crate::engine::ask) fn reviewers_at(&self, node: &NodeId, own: &Reviewers) -> Reviewers {
        self.flow.of(node).flow.reviewers_at(node.own(), own)
    }

    /// Returns the options: those of the flow or of a state key, with the alternatives after the last accept option.
    fn options(&self, step: &Step, human: &Human, stakes: &Stakes) -> Result<Vec<ReviewOption>, FlowError> {
        let mut options = match &human.options_key {
            None => human.options.iter().map(option).collect(),
            Some(key) => self.options_held(step, key)?,
        };
        if let Some(twice) = stakes.choices().find(|choice| options.iter().any(|option| option.id == choice.id)) {
            let message = format!("an option and an alternative have the id `{}`", twice.id);
            return Err(failure(FlowCode::FlowCondition, &step.node, message));
        }
        // Texts in the flow itself were checked when it was saved. Texts from the state and from templates were not.
        let is_held = human.options_key.is_some();
        let text = |option: &ReviewOption| option_text(&option.label, option.description.as_deref());
        let held = options.iter().filter(|_| is_held).map(text);
        let offered: BTreeSet<_> = options.iter().map(|option| as_read(&text(option))).collect();
        let written = human.alternatives.iter().filter_map(Alternative::choice);
        let made =
            stakes.choices().zip(written).filter(|(_, written)| is_held || TemplateText::is_one(&written.description));
        let mut made = made.map(|(choice, _)| choice.description.clone());
        if let Some(twice) = read_twice(held).or_else(|| made.find(|text| offered.contains(&as_read(text)))) {
            return Err(alike(&step.node, &twice));
        }
        let behind = options.iter().rposition(|option| option.kind == ChoiceKind::Accept).map_or(0, |last| last + 1);
        options.splice(behind..behind, stakes.choices().map(alternative));
        Ok(options)
    }

    /// Reads the options from a state key.
    fn options_held(&self, step: &Step, key: &str) -> Result<Vec<ReviewOption>, FlowError> {
        let wrong =
            |why: String| failure(FlowCode::FlowCondition, &step.node, format!("the options in `{key}`: {why}"));
        let held = Some(key).filter(|key| scope::step_may_read(self.flow, &self.state, step, key));
        let held = held.and_then(|key| scope::value(self.flow, &self.state, step, key)).and_then(Value::as_array);
        let held = held.ok_or_else(|| wrong("expected a list".to_owned()))?;
        if held.is_empty() || held.len() > MAX_OPTIONS {
            return Err(wrong(format!("expected 1 to {MAX_OPTIONS}, found {}", held.len())));
        }
        let mut options: Vec<ReviewOption> = Vec::new();
        for (index, value) in held.iter().enumerate() {
            let choice: HumanOption = match value {
                Value::String(text) => Ok(HumanOption::of_text(text)),
                value => serde_json::from_value(value.clone()).map_err(|error| wrong(format!("{index}: {error}"))),
            }?;
            if choice.id.trim().is_empty() || options.iter().any(|option| option.id == choice.id) {
                return Err(wrong(format!("{index}: the id `{}` is empty or used twice", choice.id)));
            }
            if choice.kind == ChoiceKind::Correct && self.source(&step.node).is_none() {
                return Err(wrong(format!(
                    "{index}: `{}` is of the kind correct, but there is no step to correct",
                    choice.id
                )));
            }
            options.push(option(&choice));
        }
        Ok(options)
    }

    /// Returns the title of a human node's review: the flow's own, or else the question, followed by the topic of the
    /// run if the question is the same in every run. A title that cannot be rendered does not keep anybody from being
    /// asked.
    fn human_title(&self, step: &Step, human: &Human, prompt: &str) -> String {
        let rendered = human.title.as_ref().map(|title| self.render(step, title, Visit::default()));
        if let Some(title) = rendered.and_then(Result::ok).and_then(|title| title::of_template(&title)) {
            return title;
        }
        let is_fixed = human.prompt.as_ref().is_none_or(|template| template == prompt);
        let item = item::item(self.flow, &self.state, &step.node, step.visit);
        let item = item.and_then(|(_, item)| topic_of(item));
        let about = item.or_else(|| topic(self.state.input_of(&step.node))).filter(|_| is_fixed);
        title::of_prompt(prompt, about.as_deref())
    }

    /// Returns the prompt: the value under `prompt_key` in the state or else in `context.metadata`, or else the
    /// template.
    fn human_prompt(&self, step: &Step, human: &Human) -> Result<String, FlowError> {
        let held = human.prompt_key.as_ref().and_then(|key| {
            let readable = self.flow.node(&step.node).is_none_or(|node| scope::may_read(node, key));
            let from_state = self.state.keys_of(&step.node).get(key).filter(|_| readable);
            from_state.or_else(|| self.state.context.metadata.get(key)).filter(|value| !value.is_null())
        });
        match (held, &human.prompt) {
            (Some(Value::String(text)), _) => Ok(text.clone()),
            (Some(value), _) => Ok(value.to_string()),
            (None, Some(template)) => self.render(step, template, Visit::default()),
            (None, None) => Ok(DEFAULT_PROMPT.to_owned()),
        }
    }

    /// Returns the step that a correction at a human node runs again, with its current visits.
    pub(in crate::engine) fn source(&self, human: &NodeId) -> Option<Source> {
        let node = self.flow.source_of(human)?;
        let max_visits = self.flow.node(&node)?.max_visits();
        let visits = self.state.visits.get(&node).copied().unwrap_or(0);
        Some(Source { node, visits, max_visits })
    }
}

fn option(choice: &HumanOption) -> ReviewOption {
    ReviewOption {
        id: choice.id.clone(),
        kind: choice.kind,
        label: choice.label.clone(),
        message: choice.message.clone(),
        description: choice.description.clone(),
        fields: None,
        alternative: false,
    }
}

/// Returns the option by which an alternative is chosen.
pub(in crate::engine::ask) fn alternative(choice: &AlternativeChoice) -> ReviewOption {
    ReviewOption {
        id: choice.id.clone(),
        kind: ChoiceKind::Accept,
        label: choice.description.clone(),
        message: None,
        description: choice.tradeoffs.clone(),
        fields: None,
        alternative: true,
    }
}

/// Returns the items of the review keys, then of the other edit keys. A key that is both is one item; one that the node
/// may not read is left out.
fn items<'s>(human: &Human, may_read: impl Fn(&str) -> bool, value: impl Fn(&str) -> Option<&'s Value>) -> Vec<Item> {
    let value = |key: &str| value(key).cloned().unwrap_or(Value::Null);
    let edit_key = |key: &str| human.edit_keys.iter().find(|edit| edit.key == key);
    let shown = human.review_keys.iter().map(|review| (&review.key, Some(review), edit_key(&review.key)));
    let is_shown = |key: &str| human.review_keys.iter().any(|review| review.key == key);
    let rest = human.edit_keys.iter().filter(|edit| !is_shown(&edit.key)).map(|edit| (&edit.key, None, Some(edit)));
    shown
        .chain(rest)
        .filter(|(key, ..)| may_read(key))
        .map(|(key, review, edit)| {
            let value = value(key);
            let content_type = review
                .and_then(|review| review.content_type)
                .or_else(|| edit.and_then(|edit| edit.content_type))
                .unwrap_or_else(|| guess_content_type(&value));
            let label =
                review.and_then(|review| review.label.clone()).or_else(|| edit.and_then(|edit| edit.label.clone()));
            let schema = edit.map(|edit| edit.schema.clone().unwrap_or_else(|| schema_of(&value)));
            Item { key: key.clone(), label, content_type, value, editable: edit.is_some(), schema }
        })
        .collect()
}

/// Guesses how a value is shown: a string with line breaks or signs of markup as Markdown, another string as text, a
/// list of objects as a table.
fn guess_content_type(value: &Value) -> ContentType {
    match value {
        Value::String(text) if looks_like_markdown(text) => ContentType::Markdown,
        Value::String(_) => ContentType::Text,
        Value::Array(rows) if !rows.is_empty() && rows.iter().all(Value::is_object) => ContentType::Table,
        _ => ContentType::Json,
    }
}

fn looks_like_markdown(text: &str) -> bool {
    let starts = ["# ", "## ", "### ", "- ", "* ", "> ", "1. "];
    text.contains('\n')
        || ["**", "__", "`", "]("].iter().any(|sign| text.contains(sign))
        || starts.iter().any(|start| text.starts_with(start))
}
