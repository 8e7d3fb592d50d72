//! The forms of options: the values that an option's schema asks for, as they are typed, and what is still missing. All
//! other checks against the schema are left to the server.

use serde_json::Value;
use shared::JsonMap;
use shared::decision::{DecisionRequest, Verdict};
use shared::error::{Mistake, pointer};
use shared::review::{Review, ReviewOption};

use super::drafts::Draft;
use super::outbox::{Sending, Stage};
use super::schema::{Shape, initial, resolve, unparsed_numbers};
use super::sentences::{listed, quoted};

/// The place of the fields in a decision, as a JSON pointer; mistakes name it.
pub const FIELDS_PATH: &str = "/verdict/fields";

/// The place under which a draft keeps the texts of an option's form that cannot be read.
pub fn unparsed_place(option: &str) -> String {
    format!("{FIELDS_PATH}{}", pointer([option]))
}

/// The values of an option's form as typed now, or what is missing. Empty for an option without a form; blank values
/// are left out.
pub fn given(option: &ReviewOption, draft: &Draft) -> Result<JsonMap, Vec<Mistake>> {
    let Some(schema) = &option.fields else { return Ok(JsonMap::new()) };
    let untouched = || initial(schema).as_object().cloned().unwrap_or_default();
    let typed = draft.fields.get(&option.id).cloned().unwrap_or_else(untouched);
    let mut mistakes = Vec::new();
    let fields = members(schema, schema, &typed, FIELDS_PATH, &mut mistakes);
    mistakes.extend(unparsed_numbers(schema, &Value::Object(typed), FIELDS_PATH));
    mistakes.extend(draft.unparsed.of(&unparsed_place(&option.id)).mistakes(FIELDS_PATH));
    if mistakes.is_empty() { Ok(fields) } else { Err(mistakes) }
}

/// The members of an object that are not blank. Adds missing required members, and mistakes inside, to `mistakes`.
/// `schema` is a part of `root`.
fn members(root: &Value, schema: &Value, typed: &JsonMap, place: &str, mistakes: &mut Vec<Mistake>) -> JsonMap {
    let at = |name: &str| format!("{place}{}", pointer([name]));
    let schema = resolve(root, schema);
    let mut inside = Vec::new();
    let given = typed.iter().filter_map(|(name, value)| {
        let inner = property(root, schema, name).unwrap_or(&Value::Null);
        Some((name.clone(), present(root, inner, value, &at(name), &mut inside)?))
    });
    let given: JsonMap = given.collect();
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !given.contains_key(*name));
    mistakes.extend(missing.map(|name| Mistake::new(at(name), "required", "This is required.")));
    mistakes.append(&mut inside);
    given
}

/// A value without its blank parts; `None` if all of it is blank. Parts without a schema stay as typed.
fn present(root: &Value, schema: &Value, value: &Value, place: &str, mistakes: &mut Vec<Mistake>) -> Option<Value> {
    let schema = resolve(root, schema);
    let least = |key: &str| schema.get(key).and_then(Value::as_u64).unwrap_or(0);
    let too_few = |least: u64, of: &str| Mistake::new(place, "invalid", format!("At least {least}{of}."));
    match value {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => {
            if (text.chars().count() as u64) < least("minLength") {
                mistakes.push(too_few(least("minLength"), " characters"));
            }
            Some(value.clone())
        }
        Value::Array(rows) => {
            let rows: Vec<Value> = match schema.get("items") {
                Some(item) => {
                    let row = |(at, row): (usize, &Value)| present(root, item, row, &format!("{place}/{at}"), mistakes);
                    rows.iter().enumerate().filter_map(row).collect()
                }
                None => rows.clone(),
            };
            if !rows.is_empty() && (rows.len() as u64) < least("minItems") {
                mistakes.push(too_few(least("minItems"), ""));
            }
            (!rows.is_empty()).then_some(Value::Array(rows))
        }
        Value::Object(typed) if schema.get("properties").is_some() => {
            // Missing members count only if the object has others.
            let mut inside = Vec::new();
            let given = members(root, schema, typed, place, &mut inside);
            (!given.is_empty()).then(|| {
                mistakes.append(&mut inside);
                Value::Object(given)
            })
        }
        Value::Object(typed) => (!typed.is_empty()).then(|| value.clone()),
        other => Some(other.clone()),
    }
}

/// The schema of a member of an object.
fn property<'a>(root: &'a Value, schema: &'a Value, name: &str) -> Option<&'a Value> {
    resolve(root, schema).get("properties")?.get(name)
}

/// The option whose form is open: that of `held`, a decision on its way, or else the first one with typed values.
pub fn begun(review: &Review, draft: &Draft, held: Option<&DecisionRequest>) -> Option<String> {
    let is_typed = |id: &String| draft.fields.contains_key(id) || draft.unparsed.has(&unparsed_place(id));
    let begun = |option: &&ReviewOption| option.fields.is_some() && is_typed(&option.id);
    let begun = || review.options.iter().find(begun).map(|option| option.id.clone());
    held.and_then(|request| with_form(review, request)).or_else(begun)
}

/// The option whose form is open after a decision has ended; `open` is the one that was open.
pub fn after(review: &Review, ended: &Sending, open: Option<String>) -> Option<String> {
    match ended.stage {
        // An accepted draft is dropped, so its form is empty.
        Stage::Sending | Stage::Accepted(..) => None,
        Stage::Held(_) | Stage::Unsent(_) | Stage::Refused(_) | Stage::Overtaken => {
            with_form(review, &ended.request).or(open)
        }
    }
}

fn with_form(review: &Review, request: &DecisionRequest) -> Option<String> {
    let Verdict::Choose { option, .. } = &request.verdict else { return None };
    let is_its = |known: &&ReviewOption| known.id == *option && known.fields.is_some();
    review.options.iter().find(is_its).map(|known| known.id.clone())
}

/// What was chosen, in quotation marks: the option, or the ticked answers of a question that allows several.
pub fn answers(review: &Review, option: &str, fields: &JsonMap) -> String {
    let known = review.options.iter().find(|known| known.id == option);
    let ticked = || {
        let root = known?.fields.as_ref()?;
        let several = property(root, root, "options")?;
        let values = fields.get("options")?.as_array()?;
        labels_of(root, several, values).filter(|all| !all.is_empty())
    };
    let labels = ticked().unwrap_or_else(|| vec![known.map_or(option, |known| known.label.as_str()).to_owned()]);
    let labels: Vec<_> = labels.iter().map(|label| quoted(label)).collect();
    listed(&labels)
}

/// The title of a value in a schema with `oneOf` or `anyOf`.
fn label_of(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let schema = resolve(root, schema);
    let several = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let own = several.iter().find(|one| one.get("const") == Some(value))?;
    own.get("title").and_then(Value::as_str).map(str::to_owned)
}

/// The titles of the values of a list; `None` if one of them has none.
fn labels_of(root: &Value, list: &Value, values: &[Value]) -> Option<Vec<String>> {
    let items = resolve(root, list).get("items")?;
    values.iter().map(|value| label_of(root, items, value)).collect()
}

/// The values that were sent with an option, with the titles of their fields.
pub fn named(review: &Review, option: &str, fields: &JsonMap) -> Vec<(String, Value)> {
    let known = review.options.iter().find(|known| known.id == option);
    let root = known.and_then(|known| known.fields.as_ref()).unwrap_or(&Value::Null);
    let field = |(name, value): (&String, &Value)| {
        let schema = property(root, root, name).unwrap_or(&Value::Null);
        let title = Shape::of(root, schema, None, 0).title.unwrap_or_else(|| name.clone());
        (title, in_words(root, schema, value))
    };
    fields.iter().map(field).collect()
}

/// A value by its titles in the schema, if all its parts have one; otherwise the value itself.
fn in_words(root: &Value, schema: &Value, value: &Value) -> Value {
    let several = || Some(labels_of(root, schema, value.as_array()?)?.join("\n"));
    label_of(root, schema, value).or_else(several).map_or_else(|| value.clone(), Value::String)
}

#[cfg(test)]
mod tests;
