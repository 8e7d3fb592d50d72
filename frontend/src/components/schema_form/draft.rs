//! The draft of a form: a tree of signals in the shape of the schema. It keeps the text as typed, so that `1.0` stays
//! `1.0` and a half-typed number is not lost, and converts itself to a JSON value of the right types.

#[cfg(test)]
mod tests;

use std::mem::discriminant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leptos::prelude::*;
use serde_json::{Map, Value, json};
use shared::error::pointer;

use crate::state::diffs::text_of;
use crate::state::schema::{FieldChoice, Kind, Shape, initial_row, looks_like_number, parse_number};
use crate::state::unparsed::Unparsed;

#[derive(Debug, Clone)]
pub struct FieldDraft {
    /// The description of the field in the schema.
    pub shape: Arc<Shape>,
    /// Whether the schema requires the field.
    pub required: bool,
    /// Whether the field may be left out, alone or with an optional object around it.
    pub optional: bool,
    /// What was typed or chosen.
    pub content: Content,
    /// Whether the schema alone gives the field its kind, and those around it theirs: then a number whose text cannot be
    /// read is known for one when the form is opened again, and the text takes its place in the value.
    declared: bool,
    /// The value while nothing is typed; `None` if the field is left out then.
    empty: Option<Value>,
    /// The value when the form was opened, which stands in for a text that cannot be read.
    before: Option<Value>,
    /// The whole schema, for references.
    root: Arc<Value>,
    /// The nesting depth of the field.
    depth: usize,
}

/// The place of a field in its form, and what the fields around it pass on.
struct FieldContext<'a> {
    root: &'a Arc<Value>,
    /// The JSON pointer of the field in the value of the form.
    at: String,
    optional: bool,
    declared: bool,
    depth: usize,
}

impl FieldContext<'_> {
    /// The context of a member or a row.
    fn inside(&self, name: &str) -> Self {
        Self { at: format!("{}{}", self.at, pointer([name])), depth: self.depth + 1, ..*self }
    }
}

/// The input of a field, by kind.
#[derive(Debug, Clone)]
pub enum Content {
    /// The text of a line, several lines, a number, or JSON.
    Text(ArcRwSignal<String>),
    /// The index of the selected choice.
    Choice(ArcRwSignal<Option<usize>>),
    /// The indices of the ticked choices.
    Several(ArcRwSignal<Vec<usize>>),
    /// Yes, no, or not set.
    Switch(ArcRwSignal<Option<bool>>),
    /// The rows, each with a key that stays when rows move.
    List(ArcRwSignal<Vec<ListRow>>),
    /// The fields of an object, by name.
    Object(Vec<(String, FieldDraft)>),
}

#[derive(Debug, Clone)]
pub struct ListRow {
    /// Identifies the row when rows move.
    pub key: u64,
    pub draft: FieldDraft,
}

static NEXT_KEY: AtomicU64 = AtomicU64::new(1);

/// Returns a number that is unique on the page, for rows of lists and for ids of elements.
pub fn next_key() -> u64 {
    NEXT_KEY.fetch_add(1, Ordering::Relaxed)
}

impl FieldDraft {
    /// Creates the draft of a form for `schema` with this value, and takes the texts of its fields out of `unparsed`.
    pub fn new(schema: &Value, value: &Value, unparsed: &mut Unparsed) -> Self {
        let root = Arc::new(schema.clone());
        let context = FieldContext { root: &root, at: String::new(), optional: false, declared: true, depth: 0 };
        Self::build(context, schema, Some(value), true, unparsed)
    }

    fn build(
        mut context: FieldContext,
        schema: &Value,
        value: Option<&Value>,
        required: bool,
        unparsed: &mut Unparsed,
    ) -> Self {
        let FieldContext { root, depth, optional, .. } = context;
        let mut shape = Shape::of(root, schema, value, depth);
        let bare = Shape::of(root, schema, None, depth).kind;
        let declared = context.declared && discriminant(&bare) == discriminant(&shape.kind);
        context.declared = declared;
        let typed = unparsed.take(&context.at);
        // A text that could not be read stays one, whatever the value beside it is.
        if typed.is_some() && !matches!(shape.kind, Kind::Number { .. } | Kind::Json { .. }) {
            let object = matches!(bare, Kind::Json { object: true, .. });
            shape.kind = Kind::Json { expected: None, object };
        }
        let given = value.filter(|value| !value.is_null());
        let text = |text: String| Content::Text(ArcRwSignal::new(text));
        let content = match &shape.kind {
            Kind::Line { .. } | Kind::Text { .. } => text(given.and_then(Value::as_str).unwrap_or_default().to_owned()),
            // One that cannot be sent yet is kept as the text that was typed.
            Kind::Number { .. } => text(typed.or_else(|| given.map(text_of)).unwrap_or_default()),
            Kind::Json { .. } => {
                let pretty = |value| serde_json::to_string_pretty(value).ok();
                text(typed.or_else(|| given.and_then(pretty)).unwrap_or_default())
            }
            Kind::Switch => Content::Switch(ArcRwSignal::new(given.and_then(Value::as_bool))),
            Kind::Choice(choices) => Content::Choice(ArcRwSignal::new(given.and_then(|value| at(choices, value)))),
            Kind::Several(choices) => {
                let ticked = given.and_then(Value::as_array).into_iter().flatten();
                Content::Several(ArcRwSignal::new(ticked.filter_map(|value| at(choices, value)).collect()))
            }
            Kind::List { item, .. } => {
                let row =
                    |(at, value): (usize, &Value)| Self::row(context.inside(&at.to_string()), item, value, unparsed);
                let rows = given.and_then(Value::as_array).into_iter().flatten().enumerate().map(row).collect();
                Content::List(ArcRwSignal::new(rows))
            }
            Kind::Object(fields) => {
                let field = |(name, schema, required): &(String, Value, bool)| {
                    let value = given.and_then(|value| value.get(name));
                    let context = FieldContext { optional: optional || !required, ..context.inside(name) };
                    (name.clone(), Self::build(context, schema, value, *required, unparsed))
                };
                Content::Object(fields.iter().map(field).collect())
            }
        };
        let empty = match (&shape.kind, value) {
            (_, Some(Value::Null)) => Some(Value::Null),
            (Kind::Line { .. } | Kind::Text { .. }, Some(_)) => Some(json!("")),
            (Kind::List { .. } | Kind::Several(_), Some(_)) => Some(json!([])),
            (Kind::Object(_), Some(_)) | (Kind::Json { .. }, Some(Value::Object(_))) => Some(json!({})),
            _ => None,
        };
        let before = value.filter(|_| matches!(shape.kind, Kind::Number { .. } | Kind::Json { .. })).cloned();
        let (shape, root) = (Arc::new(shape), Arc::clone(root));
        Self { shape, required, optional, content, declared, empty, before, root, depth }
    }

    fn row(context: FieldContext, item: &Value, value: &Value, unparsed: &mut Unparsed) -> ListRow {
        let context = FieldContext { optional: false, ..context };
        ListRow { key: next_key(), draft: Self::build(context, item, Some(value), true, unparsed) }
    }

    /// Creates a row for this list; `None` if this is no list.
    pub fn new_row(&self) -> Option<ListRow> {
        let Kind::List { item, .. } = &self.shape.kind else { return None };
        let (root, depth) = (&self.root, self.depth + 1);
        let context = FieldContext { root, at: String::new(), optional: false, declared: self.declared, depth };
        Some(Self::row(context, item, &initial_row(root, item, depth), &mut Unparsed::default()))
    }

    /// The current value; `None` if it is left out.
    pub fn read(&self) -> Option<Value> {
        match &self.content {
            Content::Text(text) => {
                let text = text.get();
                if text.is_empty() {
                    self.empty.clone()
                } else {
                    match self.parse(&text) {
                        Ok(value) => Some(value),
                        Err(_) if self.keeps_text() => Some(Value::String(text)),
                        Err(_) => self.before.clone(),
                    }
                }
            }
            Content::Switch(on) => on.get().map(Value::Bool).or_else(|| self.empty.clone()),
            Content::Choice(at) => {
                let Kind::Choice(choices) = &self.shape.kind else { return None };
                let chosen = at.get().and_then(|at| choices.get(at)).map(|choice| choice.value.clone());
                chosen.or_else(|| self.empty.clone())
            }
            Content::Several(ticked) => {
                let Kind::Several(choices) = &self.shape.kind else { return None };
                let values = ticked.get().into_iter().filter_map(|at| Some(choices.get(at)?.value.clone()));
                let values: Vec<Value> = values.collect();
                if values.is_empty() { self.empty.clone() } else { Some(Value::Array(values)) }
            }
            Content::List(rows) => {
                let values: Vec<Value> = rows
                    .get()
                    .iter()
                    .map(|row| row.draft.read().unwrap_or_else(|| row.draft.shape.kind.blank()))
                    .collect();
                if values.is_empty() { self.empty.clone() } else { Some(Value::Array(values)) }
            }
            Content::Object(fields) => {
                let values: Map<String, Value> =
                    fields.iter().filter_map(|(name, field)| Some((name.clone(), field.read()?))).collect();
                if values.is_empty() { self.empty.clone() } else { Some(Value::Object(values)) }
            }
        }
    }

    fn parse(&self, text: &str) -> Result<Value, String> {
        match &self.shape.kind {
            Kind::Number { integer, min, max } => {
                let parsed = parse_number(text.trim(), *integer, min.as_ref(), max.as_ref());
                let is_text = parsed.is_err() && self.shape.derived && !looks_like_number(text);
                if is_text { Ok(Value::String(text.to_owned())) } else { parsed }
            }
            Kind::Json { object, .. } => parse_json(text, *object),
            _ => Ok(Value::String(text.to_owned())),
        }
    }

    /// The mistake in this field's text, as far as the browser can tell; `None` for fields without text.
    pub fn mistake(&self) -> Option<String> {
        let Content::Text(text) = &self.content else { return None };
        let text = text.get();
        // The server checks that required fields are there; an empty text that will be sent must have a valid length.
        if text.is_empty() && !matches!(self.empty, Some(Value::String(_))) {
            return None;
        }
        match self.shape.kind {
            Kind::Line { .. } | Kind::Text { .. } => self.shape.rules.mistake(&text),
            _ if text.is_empty() => None,
            _ => self.parse(&text).err(),
        }
    }

    /// The first mistake in this field or inside it, after the title of its field; `name` is the key of this one.
    pub fn flaw(&self, name: &str) -> Option<String> {
        let name = self.shape.title.as_deref().unwrap_or(name);
        match &self.content {
            Content::Text(_) => {
                let mistake = self.mistake()?;
                Some(if name.is_empty() { mistake } else { format!("{name}: {mistake}") })
            }
            Content::Switch(_) | Content::Choice(_) | Content::Several(_) => None,
            Content::List(rows) => {
                let flaw = |(at, row): (usize, &ListRow)| row.draft.flaw(&format!("{name} {}", at + 1));
                rows.get().iter().enumerate().find_map(flaw)
            }
            Content::Object(fields) => fields.iter().find_map(|(name, field)| field.flaw(name)),
        }
    }

    /// Whether a text that cannot be read takes its place in the value.
    fn keeps_text(&self) -> bool {
        self.declared && matches!(self.shape.kind, Kind::Number { .. })
    }

    /// Adds the texts in this field or inside it that cannot be read, and for which an older value stands in. `at` is the
    /// JSON pointer of the field in the value of the form.
    pub fn collect_unparsed(&self, at: &str, unparsed: &mut Unparsed) {
        match &self.content {
            Content::Text(text) => {
                let text = text.get();
                if !text.is_empty() && !self.keeps_text() && self.parse(&text).is_err() {
                    unparsed.insert(at, text);
                }
            }
            Content::Switch(_) | Content::Choice(_) | Content::Several(_) => {}
            Content::List(rows) => {
                rows.get()
                    .iter()
                    .enumerate()
                    .for_each(|(row, one)| one.draft.collect_unparsed(&format!("{at}/{row}"), unparsed));
            }
            Content::Object(fields) => {
                let inside = |name: &str| format!("{at}{}", pointer([name]));
                for (name, field) in fields {
                    field.collect_unparsed(&inside(name), unparsed);
                }
            }
        }
    }
}

fn at(choices: &[FieldChoice], value: &Value) -> Option<usize> {
    choices.iter().position(|choice| choice.value == *value)
}

/// Parses JSON. `object`: only an object is accepted.
pub fn parse_json(text: &str, object: bool) -> Result<Value, String> {
    let says = |error: serde_json::Error| {
        if error.is_eof() { "something is missing at its end".to_owned() } else { error.to_string() }
    };
    let value: Value = serde_json::from_str(text).map_err(|error| format!("Not valid JSON: {}", says(error)))?;
    if object && !value.is_object() {
        Err("This must be an object, such as {\"ticket\": 42}".to_owned())
    } else {
        Ok(value)
    }
}
