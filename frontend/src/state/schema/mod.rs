//! The parts of a JSON Schema that a form can use, for one field, and the initial value of a form. Validation is left to
//! the server.

mod declared;
mod initial;
mod number;
mod rules;
mod unparsed;

use serde_json::{Number, Value, json};
use shared::error::json_type;
pub use shared::json_schema::resolve;

use self::declared::is_derived;
pub use self::declared::{declared, looks_like_number};
pub use self::initial::{initial, initial_row};
pub use self::number::parse_number;
use self::rules::{TextRules, is_date};
pub use self::unparsed::unparsed_numbers;
use super::words::plain as label;

/// The nesting depth beyond which a field is edited as JSON; schemas may be recursive.
const MAX_DEPTH: usize = 8;
/// Texts whose maximum length is greater than this get several lines.
const LONG_TEXT: u64 = 240;

/// The description of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub title: Option<String>,
    pub description: Option<String>,
    /// An example, shown while the field is empty.
    pub example: Option<String>,
    pub default: Option<Value>,
    /// How the field is edited.
    pub kind: Kind,
    pub nullable: bool,
    /// Whether it is a number only because the proposed value has one there: text may take its place.
    pub derived: bool,
    pub rules: TextRules,
}

/// How a field is edited.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// One line of text: the `type` of its input, and the maximum number of characters.
    Line { input: &'static str, max: Option<u64> },
    /// Several lines of text: whether it is code, and the maximum number of characters.
    Text { code: bool, max: Option<u64> },
    /// A number, kept as typed: whether it is an integer, and its limits.
    Number { integer: bool, min: Option<Number>, max: Option<Number> },
    /// Yes or no.
    Switch,
    /// One of these values.
    Choice(Vec<FieldChoice>),
    /// Some of these values, each at most once, to be ticked.
    Several(Vec<FieldChoice>),
    /// A list: the schema of its items, and the limits on their number.
    List { item: Value, min: usize, max: usize },
    /// Named fields: name, schema, and whether it is required.
    Object(Vec<(String, Value, bool)>),
    /// Anything else, as JSON text: the expected type if the value has another one, and whether only an object is
    /// allowed.
    Json { expected: Option<String>, object: bool },
}

impl Kind {
    /// The value of an empty row of a list, which cannot be left out.
    pub fn blank(&self) -> Value {
        match self {
            Self::Line { .. } | Self::Text { .. } => json!(""),
            _ => Value::Null,
        }
    }
}

/// JSON of any type.
const JSON: Kind = Kind::Json { expected: None, object: false };

/// A value that the schema offers.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChoice {
    /// The value of the field when this is selected.
    pub value: Value,
    pub label: String,
    pub description: Option<String>,
}

impl FieldChoice {
    fn of(value: &Value) -> Self {
        Self { value: value.clone(), label: label(value), description: None }
    }
}

impl Shape {
    /// Describes a field with this value by `schema`, which is a part of `root`.
    pub fn of(root: &Value, schema: &Value, value: Option<&Value>, depth: usize) -> Self {
        let outer = schema;
        let schema = resolve(root, outer);
        // What stands beside a reference describes this use of it.
        let member = |key: &str| outer.get(key).or_else(|| schema.get(key));
        let (declared, nullable) = declared_type(schema);
        let value = value.filter(|value| !value.is_null());
        let kind = if depth > MAX_DEPTH { JSON } else { kind(root, schema, declared.as_deref(), value) };
        let text = |key: &str| member(key).and_then(Value::as_str).map(str::to_owned);
        let example = member("examples").and_then(|list| list.get(0)).map(label);
        Self {
            title: text("title"),
            description: text("description"),
            example,
            default: member("default").cloned(),
            kind,
            nullable,
            derived: is_derived(schema),
            rules: TextRules::of(schema),
        }
    }
}

/// The declared type other than null, if it is unique, and whether null is allowed.
fn declared_type(schema: &Value) -> (Option<String>, bool) {
    match schema.get("type") {
        Some(Value::String(one)) => (Some(one.clone()), false),
        Some(Value::Array(several)) => {
            let nullable = several.iter().any(|one| one == "null");
            let mut others = several.iter().filter_map(Value::as_str).filter(|one| *one != "null");
            let first = others.next().map(str::to_owned);
            (if others.next().is_some() { None } else { first }, nullable)
        }
        _ if schema.get("properties").is_some() => (Some("object".to_owned()), false),
        _ if schema.get("items").is_some() => (Some("array".to_owned()), false),
        _ => (None, false),
    }
}

fn kind(root: &Value, schema: &Value, declared: Option<&str>, value: Option<&Value>) -> Kind {
    if let Some(choices) = choices(schema, value.map_or(&[][..], std::slice::from_ref)) {
        return Kind::Choice(choices);
    }
    let Some(declared) = declared else {
        return match value {
            Some(value) if !has_alternatives(schema) => kind_of_value(value),
            _ => JSON,
        };
    };
    let is_text = |value: &&Value| value.as_str().is_some_and(|text| !looks_like_number(text));
    if let Some(value) = value.filter(is_text)
        && is_derived(schema)
    {
        return kind_of_value(value);
    }
    let count = |key: &str| schema.get(key).and_then(Value::as_u64);
    let size = |key: &str| count(key).and_then(|count| usize::try_from(count).ok());
    let number = |key: &str| schema.get(key).and_then(Value::as_number);
    let is_number = matches!(declared, "number" | "integer");
    // Text that is no number yet was typed in the field.
    let is_half_typed = |text: &str| {
        is_number && parse_number(text.trim(), declared == "integer", number("minimum"), number("maximum")).is_err()
    };
    if let Some(value) = value.filter(|value| !value.as_str().is_some_and(is_half_typed)) {
        let actual = json_type(value);
        let fits = actual == declared || (declared == "number" && actual == "integer");
        if !fits {
            return Kind::Json { expected: Some(declared.to_owned()), object: false };
        }
    }
    match declared {
        "string" => text_kind(schema, value.and_then(Value::as_str)),
        _ if is_number => Kind::Number {
            integer: declared == "integer",
            min: number("minimum").cloned(),
            max: number("maximum").cloned(),
        },
        "boolean" => Kind::Switch,
        "array" => match schema.get("items") {
            Some(item) if several(root, schema, item, value).is_some() => {
                Kind::Several(several(root, schema, item, value).unwrap_or_default())
            }
            Some(item) => Kind::List {
                item: item.clone(),
                min: size("minItems").unwrap_or(0),
                max: size("maxItems").unwrap_or(usize::MAX),
            },
            None => value.map_or(JSON, kind_of_value),
        },
        "object" => object_kind(schema, value),
        _ => JSON,
    }
}

fn has_alternatives(schema: &Value) -> bool {
    ["oneOf", "anyOf", "allOf", "if", "not"].iter().any(|key| schema.get(key).is_some())
}

/// The values of an `enum`, a `const`, or a `oneOf` or `anyOf` of constants. Current values that are not among them are
/// added, so that they are shown.
fn choices(schema: &Value, now: &[Value]) -> Option<Vec<FieldChoice>> {
    let mut choices: Vec<FieldChoice> = if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        values.iter().filter(|value| !value.is_null()).map(FieldChoice::of).collect()
    } else if let Some(only) = schema.get("const") {
        vec![FieldChoice::of(only)]
    } else {
        let several = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)?;
        let constant = |one: &Value| {
            let text = |key: &str| one.get(key).and_then(Value::as_str).map(str::to_owned);
            let plain = FieldChoice::of(one.get("const")?);
            Some(FieldChoice { label: text("title").unwrap_or(plain.label), description: text("description"), ..plain })
        };
        several.iter().map(constant).collect::<Option<_>>()?
    };
    for value in now {
        if !choices.iter().any(|choice| choice.value == *value) {
            let own = FieldChoice::of(value);
            choices.push(FieldChoice { label: format!("{} (not among the choices)", own.label), ..own });
        }
    }
    Some(choices)
}

/// The choices of a list of unique values; `None` if its items are no choices, or if a current value occurs twice.
fn several(root: &Value, schema: &Value, item: &Value, value: Option<&Value>) -> Option<Vec<FieldChoice>> {
    schema.get("uniqueItems").filter(|unique| **unique == Value::Bool(true))?;
    let now = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let twice = now.iter().enumerate().any(|(at, value)| now[..at].contains(value));
    choices(resolve(root, item), now).filter(|_| !twice)
}

fn text_kind(schema: &Value, value: Option<&str>) -> Kind {
    let word = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let max = schema.get("maxLength").and_then(Value::as_u64);
    let media = word("contentMediaType");
    let input = match word("format") {
        "date" if value.is_none_or(is_date) => "date",
        "time" => "time",
        "email" => "email",
        "uri" | "url" => "url",
        "password" => "password",
        "code" => return Kind::Text { code: true, max },
        "long-text" | "markdown" | "textarea" | "multiline" | "multi-line" => return Kind::Text { code: false, max },
        _ if media == "text/markdown" || media == "text/plain" => return Kind::Text { code: false, max },
        _ if !media.is_empty() => return Kind::Text { code: true, max },
        _ => "text",
    };
    let long = max.is_some_and(|max| max > LONG_TEXT)
        || value.is_some_and(|text| text.contains('\n') || text.len() as u64 > LONG_TEXT / 3);
    if long { Kind::Text { code: false, max } } else { Kind::Line { input, max } }
}

/// The named fields, then the value's other members, so that nothing stays hidden.
fn object_kind(schema: &Value, value: Option<&Value>) -> Kind {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<&str> = names.filter_map(Value::as_str).collect();
    let field = |name: &String, schema: &Value| (name.clone(), schema.clone(), required.contains(&name.as_str()));
    let declared = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut fields: Vec<_> = declared.map(|(name, schema)| field(name, schema)).collect();
    let rest = schema.get("additionalProperties").filter(|rest| rest.is_object()).cloned().unwrap_or(json!({}));
    if let Some(Value::Object(present)) = value {
        for name in present.keys() {
            if !fields.iter().any(|(known, ..)| known == name) {
                fields.push(field(name, &rest));
            }
        }
    }
    let object = schema.get("type").is_some_and(|declared| declared == "object");
    if fields.is_empty() { Kind::Json { expected: None, object } } else { Kind::Object(fields) }
}

/// How a value without a schema is edited; its type stays the same.
fn kind_of_value(value: &Value) -> Kind {
    match value {
        Value::String(text) => text_kind(&Value::Null, Some(text)),
        Value::Number(number) => Kind::Number { integer: !number.is_f64(), min: None, max: None },
        Value::Bool(_) => Kind::Switch,
        Value::Object(fields) if !fields.is_empty() => object_kind(&Value::Null, Some(value)),
        Value::Array(rows) => {
            let mut types = rows.iter().map(json_type);
            match types.next() {
                Some(first @ ("string" | "integer" | "boolean")) if types.all(|other| other == first) => {
                    Kind::List { item: json!({ "type": first }), min: 0, max: usize::MAX }
                }
                _ => JSON,
            }
        }
        Value::Object(_) | Value::Null => JSON,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_for(schema: &Value, value: Option<&Value>) -> Kind {
        Shape::of(schema, schema, value, 0).kind
    }

    #[test]
    fn a_value_of_another_type_is_shown_as_it_is() {
        let schema = json!({ "type": "string" });
        assert_eq!(kind_for(&schema, Some(&json!(5))), Kind::Json { expected: Some("string".into()), object: false });
    }

    #[test]
    fn no_key_of_a_value_is_hidden() {
        let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } } });
        let Kind::Object(fields) = kind_for(&schema, Some(&json!({ "title": "a", "notify": true }))) else {
            panic!("an object has fields");
        };
        assert_eq!(fields.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["title", "notify"]);
    }

    #[test]
    fn several_of_some_choices_are_ticked_and_no_value_is_lost() {
        let one =
            json!({ "oneOf": [{ "const": "s", "title": "Small", "description": "For a child" }, { "const": "l" }] });
        let schema = json!({ "$defs": { "one": one }, "type": "array", "uniqueItems": true, "items": { "$ref": "#/$defs/one" } });
        let Kind::Several(choices) = kind_for(&schema, Some(&json!(["l", "xl"]))) else { panic!("they are ticked") };
        let labels: Vec<_> = choices.iter().map(|choice| choice.label.as_str()).collect();
        assert_eq!(labels, ["Small", "l", "xl (not among the choices)"]);
        assert_eq!(choices[0].description.as_deref(), Some("For a child"));
        assert!(matches!(kind_for(&schema, Some(&json!(["l", "l"]))), Kind::List { .. }), "twice cannot be ticked");
        let list = json!({ "type": "array", "items": { "enum": ["s"] } });
        assert!(matches!(kind_for(&list, None), Kind::List { .. }), "one may be there twice");
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({ "$ref": "#" });
        assert_eq!(kind_for(&schema, None), JSON);
    }

    #[test]
    fn a_long_text_gets_lines_and_a_date_its_own_input() {
        assert_eq!(
            kind_for(&json!({ "type": "string", "maxLength": 4000 }), None),
            Kind::Text { code: false, max: Some(4000) }
        );
        let date = json!({ "type": "string", "format": "date" });
        assert_eq!(kind_for(&date, Some(&json!("2026-11-20"))), Kind::Line { input: "date", max: None });
        assert_eq!(kind_for(&date, Some(&json!("tomorrow"))), Kind::Line { input: "text", max: None });
    }
}
