//! JSON Schema: validates values, with messages for people who have never heard of it.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use shared::error::{FlowCode, Mistake, json_type, pointer};

use super::limits::{MAX_MISTAKES, MAX_NESTING};
use super::pattern::Pattern;
use super::schema_work;
use super::stack::on_large_stack;
use super::value_size::{ValueSize, value_size};
use super::work_limit;

/// The maximum number of backtracking steps of a pattern, after which it counts as not matched.
const MAX_BACKTRACKING: usize = 20_000;
/// The maximum size of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 1024 * 1024;
/// The number of states counted for a pattern with lookaround or backreferences, which is not a plain automaton.
const STATES_OF_OTHERS: usize = 1000;

/// The maximum work of checking a value. It limits two products: the number of times that the schema may check a value
/// (at least its own number of values) times the number of checked values, and the number of states of its patterns
/// times the bytes of the value. A list whose items may have many forms is checked once for each form.
const MAX_WORK: usize = 200_000_000;

/// The units of work of a subschema that checks a value.
const PER_PASS: usize = 16;
/// The number of values of a schema that one unit pays for, per checked value. Few of them are compared with it.
const VALUES_PER_UNIT: usize = 4;
/// The number of states that one unit pays for, per byte. A text is checked against few of the patterns, an automaton
/// reads a byte in one step, and where there is none, few states are visited for each byte.
const STATES_PER_UNIT: usize = 64;

/// A compiled schema.
#[derive(Debug)]
pub enum Schema {
    /// A schema whose work is bounded.
    Bounded {
        /// The compiled schema, which checks formats too.
        validator: Box<Validator>,
        /// Its own number of values.
        size: usize,
        /// The maximum number of its subschemas that apply to one value.
        passes: usize,
        /// The number of states of all its patterns.
        states: usize,
    },
    /// A schema that could check a value endlessly, with the reason. No value is valid.
    Unbounded(String),
}

/// Compiles a schema for a flow that is being saved. Formats are checked, and nothing is fetched. The path of a mistake
/// begins at the schema.
pub fn compile(schema: &Value) -> Result<Schema, Mistake> {
    match compile_stored(schema)? {
        Schema::Unbounded(why) => Err(Mistake::new("", FlowCode::FlowInvalid.as_str(), why)),
        bounded @ Schema::Bounded { .. } => Ok(bounded),
    }
}

/// Compiles a schema of a saved flow, which may be older than the limit of work: the rest of the flow stays usable.
pub fn compile_stored(schema: &Value) -> Result<Schema, Mistake> {
    let invalid = |path: &str, message: String| Mistake::new(path, FlowCode::FlowInvalid.as_str(), message);
    let ValueSize { values, nesting, .. } = on_large_stack(|| value_size(schema));
    if nesting > MAX_NESTING {
        return Err(invalid("", format!("a JSON Schema is nested at most {MAX_NESTING} deep")));
    }
    let passes = match on_large_stack(|| schema_work::passes(schema)) {
        Ok(passes) => passes,
        Err(why) => return Ok(Schema::Unbounded(why)),
    };
    let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKING).size_limit(MAX_PATTERN);
    let options = jsonschema::options().should_validate_formats(true).with_pattern_options(patterns);
    let compiled = on_large_stack(|| options.build(schema));
    let bounded = |validator| {
        let (validator, states) = (Box::new(validator), pattern_states(schema));
        Schema::Bounded { validator, size: values, passes, states }
    };
    compiled.map(bounded).map_err(|error| {
        let reason = match error.kind() {
            ValidationErrorKind::AnyOf { .. } => format!("{} is not allowed here", error.instance()),
            _ => error.to_string(),
        };
        invalid(error.instance_path().as_str(), format!("this is not a valid JSON Schema: {reason}"))
    })
}

/// Whether a schema may describe an object: it names this type, or none.
pub fn is_of_object(schema: &Value) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|of| of == "object"),
        Some(of) => of == "object",
    }
}

/// Returns all mistakes of a value against a JSON Schema, with paths below `base`. A schema that does not compile is a
/// mistake.
pub fn check_value(schema: &Value, value: &Value, base: &str) -> Vec<Mistake> {
    match compile(schema) {
        Ok(schema) => schema.check(value, base),
        Err(mistake) => vec![Mistake::new(base, "invalid", mistake.message)],
    }
}

/// Counts the regular expressions of a schema, which take far longer to compile than the rest.
pub fn patterns(schema: &Value) -> usize {
    let mut count = 0;
    each_pattern(schema, &mut |_| count += 1);
    count
}

/// Counts the states of a schema's regular expressions. In the worst case, all of them are visited for each byte of a
/// text.
fn pattern_states(schema: &Value) -> usize {
    let mut states = 0_usize;
    each_pattern(schema, &mut |pattern| {
        let own = Pattern::new(pattern, MAX_PATTERN).map_or(STATES_OF_OTHERS, |pattern| pattern.states());
        states = states.saturating_add(own);
    });
    states
}

fn each_pattern(schema: &Value, seen: &mut dyn FnMut(&str)) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| each_pattern(item, seen)),
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("pattern", Value::String(pattern)) => seen(pattern),
                    ("patternProperties", Value::Object(of)) => of.keys().for_each(|pattern| seen(pattern)),
                    _ => {}
                }
                each_pattern(member, seen);
            }
        }
        _ => {}
    }
}

impl Schema {
    /// Returns all mistakes of a value, with paths below `base`.
    pub fn check(&self, value: &Value, base: &str) -> Vec<Mistake> {
        let (validator, size, passes, states) = match self {
            Self::Bounded { validator, size, passes, states } => (validator, *size, *passes, *states),
            Self::Unbounded(why) => {
                return vec![Mistake::new(base, "invalid", format!("its JSON Schema is refused: {why}"))];
            }
        };
        let ValueSize { values, bytes, .. } = on_large_stack(|| value_size(value));
        if bytes.saturating_mul(states) > MAX_WORK {
            let message = format!(
                "has too much text for the patterns of its JSON Schema: {bytes} bytes against {states} states; shorten \
                 the text, or repeat less in the patterns (`[a-z]` has fewer states than `\\w`)"
            );
            return vec![Mistake::new(base, "invalid", message)];
        }
        let work = size.max(passes);
        if values.saturating_mul(work) > MAX_WORK {
            let message = format!("is too large for its JSON Schema: {values} values against {work}");
            return vec![Mistake::new(base, "invalid", message)];
        }
        if let Err(spent) = work_limit::check() {
            return vec![Mistake::new(base, "invalid", format!("cannot be checked against its JSON Schema: {spent}"))];
        }
        // The products above bound the worst case of one check. Hardly any check comes near it, so what checks take
        // together is estimated: the sum of their worst cases would refuse what takes milliseconds.
        let per_value = passes * PER_PASS + size / VALUES_PER_UNIT;
        let texts = bytes + bytes.saturating_mul(states) / STATES_PER_UNIT;
        work_limit::count((values * per_value + texts) as u64);
        on_large_stack(|| {
            validator.iter_errors(value).flat_map(|error| mistakes(&error, base)).take(MAX_MISTAKES).collect()
        })
    }
}

fn mistakes(error: &ValidationError<'_>, base: &str) -> Vec<Mistake> {
    let place = format!("{base}{}", error.instance_path().as_str());
    let below = |name: &str| format!("{place}{}", pointer([name]));
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![Mistake::new(below(name), "required", format!("`{name}` is missing"))]
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected
            .iter()
            .map(|name| Mistake::new(below(name), "unknown", format!("`{name}` is not expected here")))
            .collect(),
        kind => vec![Mistake::new(place, "invalid", words(kind, error))],
    }
}

fn words(kind: &ValidationErrorKind, error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let of = |count: &u64, one: &str, many: &str| format!("{count} {}", if *count == 1 { one } else { many });
    match kind {
        Kind::Type { kind } => format!("must be {}, but is {}", types(kind), a(json_type(error.instance()))),
        Kind::Enum { options } => match options.as_array() {
            Some(options) => {
                format!("must be one of {}", options.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
            None => "must be one of the listed values".to_owned(),
        },
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinLength { limit } => format!("must be at least {} long", of(limit, "character", "characters")),
        Kind::MaxLength { limit } => format!("must be at most {} long", of(limit, "character", "characters")),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinItems { limit } => format!("must have at least {}", of(limit, "entry", "entries")),
        Kind::MaxItems { limit } => format!("must have at most {}", of(limit, "entry", "entries")),
        Kind::MinProperties { limit } => format!("must have at least {}", of(limit, "key", "keys")),
        Kind::MaxProperties { limit } => format!("must have at most {}", of(limit, "key", "keys")),
        Kind::UniqueItems => "must not have the same entry twice".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        Kind::Format { format } => format!("must be {}", formatted(format)),
        Kind::FalseSchema => "is not expected here".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => "matches none of the allowed forms".to_owned(),
        Kind::OneOfMultipleValid { .. } => "matches several of the allowed forms instead of exactly one".to_owned(),
        _ => error.to_string(),
    }
}

fn formatted(format: &str) -> &str {
    match format {
        "email" | "idn-email" => "an e-mail address",
        "uri" | "iri" => "a web address",
        "date" => "a date such as 2026-01-31",
        "date-time" => "a date and time such as 2026-01-31T09:30:00Z",
        "time" => "a time such as 09:30:00Z",
        "uuid" => "a UUID",
        other => other,
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => a(one.as_str()),
        TypeKind::Multiple(several) => several.iter().map(|one| a(one.as_str())).collect::<Vec<_>>().join(" or "),
    }
}

fn a(name: &str) -> String {
    match name {
        "null" => "nothing (null)".to_owned(),
        "array" => "a list".to_owned(),
        "object" => "an object".to_owned(),
        "integer" => "a whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "string" => "text".to_owned(),
        other => format!("a {other}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ordinary_checks_take_little_of_what_a_transition_may_take() {
        let all_valid = |schema: &Value, value: &Value, times: usize| {
            let schema = compile(schema).expect("a sound schema");
            work_limit::within(work_limit::MAX_AT_ONCE / 4, || {
                (0..times).for_each(|_| assert_eq!(schema.check(value, ""), []));
                assert!(!work_limit::is_spent());
            });
        };
        // The items of a map, each with an address and a body.
        let message = json!({ "type": "object", "required": ["to", "body"], "properties": {
            "to": { "type": "string", "pattern": "^[\\w.+-]+@[\\w-]+\\.[\\w.-]+$" }, "body": { "type": "string" },
        } });
        all_valid(&message, &json!({ "to": "ana@example.com", "body": "x".repeat(6_000) }), 200);
        // The calls of a turn.
        let call = json!({ "type": "object", "properties": {
            "path": { "type": "string", "pattern": "^[\\w./-]+$" }, "text": { "type": "string" },
            "tags": { "items": { "anyOf": [{ "type": "string", "pattern": "^\\w+$" }, { "type": "null" }] } },
        } });
        all_valid(&call, &json!({ "path": "a/b.txt", "text": "x".repeat(19_000), "tags": ["x", null] }), 64);
    }

    #[test]
    fn checks_of_large_values_add_up() {
        let forms: Vec<Value> = (0..50).map(|form| json!({ "const": form })).collect();
        let schema = compile(&json!({ "items": { "oneOf": forms } })).expect("a sound schema");
        let list = Value::from(vec![1; 1_000]);
        work_limit::within(1_000_000, || {
            let checked = (0..20).take_while(|_| schema.check(&list, "").is_empty()).count();
            assert_eq!(checked, 2);
            assert!(schema.check(&list, "")[0].message.contains("too much work together"));
        });
    }

    #[test]
    fn text_beyond_what_the_patterns_of_a_schema_may_take_is_refused() {
        let schema =
            json!({ "properties": { "name": { "pattern": "^[a-z]{1,40}$" } }, "patternProperties": { "^x-": {} } });
        assert_eq!(patterns(&schema), 2);
        let long = |length: usize| json!({ "name": "ana", "text": "x".repeat(length) });
        assert_eq!(check_value(&schema, &long(1_000_000), ""), []);
        let heavy = json!({ "properties": { "text": { "pattern": "^(x|y)*x(x|y){1000}z" } } });
        assert_eq!(check_value(&heavy, &json!({ "text": "xyz" }), "").len(), 1, "it does not match");
        let refused = check_value(&heavy, &long(900_000), "/input");
        assert_eq!((refused.len(), refused[0].path.as_str()), (1, "/input"));
        assert!(refused[0].message.contains("too much text for the patterns of its JSON Schema"), "{refused:?}");
        let looks_around = json!({ "properties": { "text": { "pattern": "^(?=.*[0-9]).{8,}$" } } });
        assert_eq!(check_value(&looks_around, &json!({ "text": "abcdefg1" }), ""), []);
        assert_eq!(check_value(&looks_around, &long(900_000), "").len(), 1);
    }
}
