//! Checks the structure of a flow file: reports every unknown key, missing key and wrong type at once, each with its
//! place.
//!
//! The structure is the JSON Schema made from the model's types, so there is no second description of the format.
//! Invalid parts are removed from the value, so that the rest can be read and checked too.

use std::sync::LazyLock;

use serde_json::Value;
use shared::definition::{Target, TemplateText};
use shared::error::{FlowCode, Mistake, json_type, pointer};
use shared::id::{FlowId, NodeId, Username};
use shared::time::Span;

use super::limits::MAX_MISTAKES;
use super::source::{SourceText, mistake_at};
use super::suggest::did_you_mean;

static SCHEMA: LazyLock<Value> = LazyLock::new(super::schema);

/// Removes the parts of `value` that do not have the structure of a flow, and reports them. Returns `false` if nothing
/// is left.
pub fn fit(source: &SourceText, value: &mut Value, mistakes: &mut Vec<Mistake>) -> bool {
    Fitter { source, mistakes }.fit(&SCHEMA, value, "")
}

/// The name of the type of templates in place of a value.
const TEMPLATE: &str = "TemplateText";

struct Fitter<'a> {
    source: &'a SourceText,
    mistakes: &'a mut Vec<Mistake>,
}

impl Fitter<'_> {
    /// Removes and reports invalid parts. Returns whether the rest is valid.
    fn fit(&mut self, schema: &Value, value: &mut Value, path: &str) -> bool {
        let mut forms = Vec::new();
        flatten("", schema, &mut forms);
        let own = json_type(value);
        let fitting: Vec<NamedForm<'_>> = forms.iter().copied().filter(|form| takes(form.schema, own)).collect();
        if fitting.is_empty() {
            let mut wanted: Vec<String> = Vec::new();
            for name in forms.iter().flat_map(|form| names_of(form.schema)).filter(|name| name != "nothing") {
                if !wanted.contains(&name) {
                    wanted.push(name);
                }
            }
            self.wrong(path, format!("expected {}, but this is {}", wanted.join(" or "), type_name(own)));
            return false;
        }
        match value {
            Value::String(text) => self.text(&fitting, text, path),
            Value::Number(number) => {
                let positive = fitting.iter().any(|form| form.schema.get("minimum").is_some());
                let fits = !positive || number.as_u64().is_some();
                if !fits {
                    self.wrong(path, "expected a whole number that is not negative".to_owned());
                }
                fits
            }
            Value::Array(items) => {
                let Some(schema) = fitting.iter().find_map(|form| form.schema.get("items")) else { return true };
                let mut index = 0;
                items.retain_mut(|item| {
                    let fits = self.fit(schema, item, &format!("{path}/{index}"));
                    index += 1;
                    fits
                });
                true
            }
            Value::Object(_) => self.object(best(&fitting, value), value, path),
            _ => true,
        }
    }

    fn text(&mut self, fitting: &[NamedForm<'_>], text: &str, path: &str) -> bool {
        let words: Vec<&str> = fitting.iter().filter_map(|form| form.schema.get("const")?.as_str()).collect();
        let templates = fitting.iter().filter(|form| form.name == TEMPLATE).count();
        if templates > 0 && (TemplateText::is_one(text) || words.contains(&text)) {
            return true;
        }
        if templates == fitting.len() {
            self.wrong(path, format!("`{text}` is neither the value nor a template for it: `{{{{ … }}}}`"));
            return false;
        }
        if words.len() + templates == fitting.len() && !words.contains(&text) {
            let guess = did_you_mean(text, words.iter().copied());
            self.wrong(path, format!("`{text}` is not one of {}{guess}", words.join(", ")));
            return false;
        }
        match fitting.iter().find_map(|form| named(form.name, text).err()) {
            Some(message) => {
                self.wrong(path, message);
                false
            }
            None => true,
        }
    }

    fn object(&mut self, schema: &Value, value: &mut Value, path: &str) -> bool {
        let Some(map) = value.as_object_mut() else { return false };
        let known = schema.get("properties").and_then(Value::as_object);
        let more = schema.get("additionalProperties");
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut whole = true;
        map.retain(|key, value| {
            let below = format!("{path}{}", pointer([key]));
            match (known.and_then(|known| known.get(key)), more) {
                (Some(schema), _) => {
                    let fits = self.fit(schema, value, &below);
                    whole &= fits || !required.contains(&key.as_str());
                    fits
                }
                (None, Some(Value::Bool(false))) if self.mistakes.len() > MAX_MISTAKES => false,
                (None, Some(Value::Bool(false))) => {
                    let keys = || known.into_iter().flat_map(|known| known.keys().map(String::as_str));
                    let guess = did_you_mean(key, keys());
                    let guess = if guess.is_empty() { expected(keys()) } else { guess };
                    let spot = self.source.key_spot(&below);
                    let message = format!("unknown key `{key}`{guess}");
                    self.mistakes.push(mistake_at(spot, &below, FlowCode::FlowInvalid, message));
                    false
                }
                (None, Some(schema)) => {
                    if path == "/nodes"
                        && let Err(error) = NodeId::try_from(key.clone())
                    {
                        let spot = self.source.key_spot(&below);
                        self.mistakes.push(mistake_at(spot, &below, FlowCode::FlowInvalid, error.to_string()));
                        return false;
                    }
                    schema.is_boolean() || self.fit(schema, value, &below)
                }
                (None, None) => true,
            }
        });
        let given = |name: &str| self.source.value.pointer(&format!("{path}{}", pointer([name]))).is_some();
        let missing: Vec<_> = required.into_iter().filter(|name| !map.contains_key(*name) && !given(name)).collect();
        for name in &missing {
            let spot = self.source.key_spot(path);
            let message = format!("`{name}` is missing");
            self.mistakes.push(mistake_at(spot, &format!("{path}{}", pointer([name])), FlowCode::FlowInvalid, message));
        }
        whole && missing.is_empty()
    }

    fn wrong(&mut self, path: &str, message: String) {
        if self.mistakes.len() > MAX_MISTAKES {
            return;
        }
        self.mistakes.push(mistake_at(self.source.spot(path), path, FlowCode::FlowInvalid, message));
    }
}

/// Checks a text against the type that the schema names.
fn named(name: &str, text: &str) -> Result<(), String> {
    fn parsed<T, E: ToString>(result: Result<T, E>) -> Result<(), String> {
        result.map(|_| ()).map_err(|error| error.to_string())
    }
    match name {
        "NodeId" => parsed(NodeId::try_from(text.to_owned())),
        "Target" => parsed(Target::try_from(text.to_owned())),
        "FlowId" => parsed(FlowId::try_from(text.to_owned())),
        "Username" => parsed(Username::try_from(text.to_owned())),
        "Span" => text
            .parse::<Span>()
            .map(|_| ())
            .map_err(|error| format!("`{text}` is not a length of time such as 30s, 5m or 24h: {error}")),
        _ => Ok(()),
    }
}

/// An alternative of a schema, with the name of its type, or an empty name.
#[derive(Clone, Copy)]
struct NamedForm<'a> {
    name: &'a str,
    schema: &'a Value,
}

/// Collects the alternatives of a schema, resolving references and nested alternatives.
fn flatten<'a>(name: &'a str, schema: &'a Value, forms: &mut Vec<NamedForm<'a>>) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.trim_start_matches("#/$defs/");
        return flatten(name, &SCHEMA["$defs"][name], forms);
    }
    match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        Some(several) => several.iter().for_each(|one| flatten(name, one, forms)),
        None => forms.push(NamedForm { name, schema }),
    }
}

/// Whether a schema accepts values of a JSON type.
fn takes(schema: &Value, json_type: &str) -> bool {
    let fits = |wanted: &str| wanted == json_type || (wanted == "number" && json_type == "integer");
    match schema.get("type") {
        Some(Value::String(wanted)) => fits(wanted),
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).any(fits),
        _ => true,
    }
}

/// Returns the alternative whose keys match those of the object best.
fn best<'a>(fitting: &[NamedForm<'a>], value: &Value) -> &'a Value {
    let keys = value.as_object();
    let score = |schema: &Value| {
        let known = schema.get("properties").and_then(Value::as_object);
        let has = |key: &String| known.is_some_and(|known| known.contains_key(key));
        let matched = keys.map_or(0, |keys| keys.keys().filter(|key| has(key)).count());
        let required = schema["required"].as_array().map_or(0, Vec::len);
        (matched, std::cmp::Reverse(required))
    };
    fitting.iter().rev().map(|form| form.schema).max_by_key(|schema| score(schema)).unwrap_or(&Value::Null)
}

fn names_of(schema: &Value) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(name)) => match schema.get("const").and_then(Value::as_str) {
            Some(word) => vec![format!("`{word}`")],
            None => vec![type_name(name).to_owned()],
        },
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).map(|name| type_name(name).to_owned()).collect()
        }
        _ => vec!["a value".to_owned()],
    }
}

fn type_name(json_type: &str) -> &'static str {
    match json_type {
        "null" => "nothing",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "text",
        "array" => "a list",
        _ => "an object",
    }
}

fn expected<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let keys: Vec<_> = keys.collect();
    if keys.is_empty() { String::new() } else { format!("; expected {}", keys.join(", ")) }
}
