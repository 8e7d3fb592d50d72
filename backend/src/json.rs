//! Strict JSON: no duplicate keys, no U+0000, no integers of more than 64 bits, nothing over the limits of
//! [`crate::limits`], and a JSON pointer to every error. Everything from clients is read here, over HTTP and over the
//! socket; answers of tools may contain duplicate keys and U+0000.

use std::fmt;

use serde::de::{self, DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_path_to_error::Segment;
use shared::JsonMap;
use shared::decision::ActionDecision;
use shared::error::{Code, Mistake, Problem, pointer};

use crate::limits::{self, Exceeded, MAX_DEPTH, Size};

/// Reads a body, which must be an object. Fails with `400` if it is not JSON, and with `422` if it breaks a rule or
/// does not fit `T`.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value = check(bytes)?;
    object("", &value)?;
    check_verdict(&value)?;
    fit(value)
}

/// Checks the verdict of a decision, if there is one, and each answer to an action in it. Serde buffers internally
/// tagged enums (also from a list) and loses the place of a mistake, so they are checked separately.
pub fn check_verdict(decision: &Value) -> Result<(), Problem> {
    let Some(verdict) = decision.get("verdict").filter(|verdict| !verdict.is_null()) else { return Ok(()) };
    let answers = object("/verdict", verdict)?.get("decisions").and_then(Value::as_object);
    for (id, answer) in answers.into_iter().flatten() {
        let place = pointer(["verdict", "decisions", id]);
        object(&place, answer)?;
        fit::<ActionDecision, _>(answer.clone()).map_err(|mut problem| {
            for mistake in &mut problem.errors {
                mistake.path.insert_str(0, &place);
            }
            problem
        })?;
    }
    Ok(())
}

fn object<'v>(place: &str, value: &'v Value) -> Result<&'v JsonMap, Problem> {
    value.as_object().ok_or_else(|| Problem::invalid(place, "expected an object"))
}

/// Reads JSON by the rules of this module.
pub fn check(bytes: &[u8]) -> Result<Value, Problem> {
    read(bytes, true).map_err(|fault| match fault {
        JsonFault::Mistake(mistake) => Problem::new(Code::Invalid).errors(vec![mistake]),
        JsonFault::Syntax(error) => Problem::new(Code::BadRequest).detail(format!("this is not valid JSON: {error}")),
    })
}

/// Reads the answer of another program: of duplicate keys the last one counts, and U+0000 is allowed. Returns
/// `Ok(None)` if it is not JSON, and `Err` if it exceeds a limit.
pub fn answer(bytes: &[u8]) -> Result<Option<Value>, String> {
    match read(bytes, false) {
        Ok(value) => Ok(Some(value)),
        Err(JsonFault::Syntax(_)) => Ok(None),
        Err(JsonFault::Mistake(mistake)) => Err(mistake.message),
    }
}

fn read(bytes: &[u8], strict: bool) -> Result<Value, JsonFault> {
    let long_integer = if strict { limits::long_integer(bytes) } else { None };
    let mut walk = Walk { strict, long_integer, numbers: 0, path: Vec::new(), size: Size::default(), fault: None };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = Seed(&mut walk).deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| walk.fault.map_or(JsonFault::Syntax(error), JsonFault::Mistake))
}

/// The reason why a text could not be read.
enum JsonFault {
    /// It breaks a rule of this module.
    Mistake(Mistake),
    /// It is not JSON.
    Syntax(serde_json::Error),
}

/// Converts a value to a type. Reports the place of the first mistake.
pub fn fit<'de, T: de::Deserialize<'de>, D: de::Deserializer<'de>>(value: D) -> Result<T, Problem>
where
    D::Error: fmt::Display,
{
    serde_path_to_error::deserialize(value).map_err(|error| {
        let mut path: Vec<String> = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                Segment::Seq { index } => Some(index.to_string()),
                Segment::Map { key } => Some(key.clone()),
                Segment::Enum { .. } | Segment::Unknown => None,
            })
            .collect();
        let message = error.inner().to_string();
        let (code, field) = kind(&message);
        // Serde reports the place of the object when a field is missing or unknown; the field itself is more precise.
        if let Some(field) = field
            && path.last().is_none_or(|last| last != field)
        {
            path.push(field.to_owned());
        }
        let mistake = Mistake::new(pointer(&path), code, message);
        Problem::new(Code::Invalid).errors(vec![mistake])
    })
}

/// Returns the code of the mistake that serde's message describes, and the field that the message names.
fn kind(message: &str) -> (&'static str, Option<&str>) {
    let field = |prefix: &str| message.strip_prefix(prefix)?.split('`').next();
    if let Some(name) = field("missing field `") {
        ("required", Some(name))
    } else if let Some(name) = field("unknown field `") {
        ("unknown", Some(name))
    } else {
        ("invalid", None)
    }
}

/// The state of reading: the position, the counters, and the mistake that ended it.
struct Walk {
    /// Whether duplicate keys, U+0000 and long integers are mistakes.
    strict: bool,
    /// The number of numbers before the first integer of more than 64 bits.
    long_integer: Option<usize>,
    /// The number of numbers read so far.
    numbers: usize,
    path: Vec<String>,
    size: Size,
    fault: Option<Mistake>,
}

impl Walk {
    fn fail<E: de::Error>(&mut self, message: &str) -> E {
        self.fault = Some(Mistake::new(pointer(&self.path), "invalid", message));
        E::custom(message)
    }

    /// Begins an array or object: checks the depth and counts it.
    fn open<E: de::Error>(&mut self) -> Result<(), E> {
        let deep = if self.path.len() >= MAX_DEPTH { Err(Exceeded::Depth) } else { self.size.one() };
        deep.map_err(|exceeded| self.fail(&exceeded.to_string()))
    }

    fn one<E: de::Error>(&mut self, value: Value) -> Result<Value, E> {
        self.size.one().map_err(|exceeded| self.fail(&exceeded.to_string()))?;
        Ok(value)
    }

    fn number<E: de::Error>(&mut self, number: Number) -> Result<Value, E> {
        if self.long_integer == Some(self.numbers) {
            return Err(self.fail(limits::LONG_INTEGER));
        }
        self.numbers += 1;
        self.one(Value::Number(number))
    }

    fn text<E: de::Error>(&mut self, text: &str) -> Result<(), E> {
        self.size.text(text).map_err(|exceeded| self.fail(&exceeded.to_string()))?;
        if self.strict && text.contains('\0') { Err(self.fail("U+0000 is not allowed in text")) } else { Ok(()) }
    }
}

struct Seed<'a>(&'a mut Walk);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;
    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        self.0.one(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        self.0.one(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        self.0.number(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        self.0.number(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        match Number::from_f64(value) {
            Some(number) => self.0.number(number),
            None => Err(self.0.fail("not a number that JSON can represent")),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        self.0.text(text)?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let Self(walk) = self;
        walk.open()?;
        let mut list = Vec::new();
        loop {
            walk.path.push(list.len().to_string());
            let item = items.next_element_seed(Seed(walk))?;
            walk.path.pop();
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let Self(walk) = self;
        walk.open()?;
        let mut map = JsonMap::new();
        while let Some(key) = entries.next_key::<String>()? {
            walk.path.push(key.clone());
            walk.text(&key)?;
            if walk.strict && map.contains_key(&key) {
                return Err(walk.fail("this key appears twice"));
            }
            let value = entries.next_value_seed(Seed(walk))?;
            walk.path.pop();
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use shared::api::{Launch, NewToken};
    use shared::decision::{DecisionRequest, ProgramAnswer};

    use super::*;

    fn fault<T: DeserializeOwned>(body: &str) -> (u16, String, String) {
        let Err(problem) = from_slice::<T>(body.as_bytes()) else { panic!("{body} was accepted") };
        let mistake = problem.errors.first().cloned();
        let (path, code) = mistake.map(|mistake| (mistake.path, mistake.code)).unwrap_or_default();
        (problem.status, path, code)
    }

    fn at(status: u16, path: &str, code: &str) -> (u16, String, String) {
        (status, path.to_owned(), code.to_owned())
    }

    #[test]
    fn each_mistake_has_its_place() {
        assert_eq!(fault::<Value>(r#"{"a": {"b": 1, "b": 2}}"#), at(422, "/a/b", "invalid"));
        assert_eq!(fault::<Value>(r#"{"a": ["x", "\u0000"]}"#), at(422, "/a/1", "invalid"));
        assert_eq!(fault::<Value>(r#"{"a\u0000": 1}"#), at(422, "/a\0", "invalid"));
        let long =
            r#"{"s": "\"-99999999999999999999", "e": 1e20, "a": [100000000000000000000.0, 1, 18446744073709551616]}"#;
        assert_eq!(fault::<Value>(long), at(422, "/a/2", "invalid"));
        assert_eq!(fault::<Value>(r#"{"a": -9223372036854775809}"#), at(422, "/a", "invalid"));
        assert!(
            from_slice::<Value>(
                br#"{"a": [-9223372036854775808, 18446744073709551615, 1e30, 0.1, 99999999999999999999.5]}"#
            )
            .is_ok()
        );
        assert_eq!(fault::<Value>("{"), at(400, "", ""));
        assert_eq!(fault::<Value>("{} {}"), at(400, "", ""));
        assert_eq!(fault::<Launch>("{}"), at(422, "/flow", "required"));
        assert_eq!(fault::<Launch>(r#"{"flow": "A"}"#), at(422, "/flow", "invalid"));
        assert_eq!(fault::<Launch>(r#"{"flow": "a", "contxt": {}}"#), at(422, "/contxt", "unknown"));
        assert_eq!(fault::<Launch>(r#"{"flow": "a", "context": {"users": 1}}"#), at(422, "/context/users", "unknown"));
        assert_eq!(fault::<NewToken>(r#"{"name": "n", "roles": ["a", 1]}"#), at(422, "/roles/1", "invalid"));
        let decision = r#"{"revision": 1, "digest": "d", "verdict": {"type": "shout"}}"#;
        assert_eq!(fault::<DecisionRequest>(decision), at(422, "/verdict/type", "invalid"));
    }

    #[test]
    fn a_mistake_in_the_answer_to_an_action_has_its_place_and_a_list_is_no_object() {
        let body = |verdict: &str| format!(r#"{{"revision": 1, "digest": "d", "verdict": {verdict}}}"#);
        let answered = |answer: &str| body(&format!(r#"{{"type": "actions", "decisions": {{"c1-1": {answer}}}}}"#));
        for (answer, below, code) in [
            ("{}", "/type", "required"),
            (r#"{"type": "edit"}"#, "/arguments", "required"),
            (r#"{"type": "perhaps"}"#, "/type", "invalid"),
            (r#"{"type": "edit", "arguments": 7}"#, "", "invalid"),
            (r#"{"type": "reject", "reason": "x"}"#, "/reason", "unknown"),
            (r#""approve""#, "", "invalid"),
            (r#"["approve"]"#, "", "invalid"),
            (r#"["edit", {}]"#, "", "invalid"),
        ] {
            let place = format!("/verdict/decisions/c1-1{below}");
            assert_eq!(fault::<DecisionRequest>(&answered(answer)), at(422, &place, code), "{answer}");
            assert_eq!(fault::<ProgramAnswer>(&answered(answer)), at(422, &place, code), "{answer}");
        }
        assert_eq!(fault::<DecisionRequest>(&body(r#"["choose", "yes"]"#)), at(422, "/verdict", "invalid"));
        assert_eq!(fault::<DecisionRequest>(r#"[1, "d", {"type": "text", "text": "x"}]"#), at(422, "", "invalid"));
        assert_eq!(fault::<Launch>(r#"["article"]"#), at(422, "", "invalid"));
        for right in [r#"{"type": "approve"}"#, r#"{"type": "choose", "alternative": "a"}"#] {
            assert!(from_slice::<DecisionRequest>(answered(right).as_bytes()).is_ok(), "{right}");
        }
    }

    #[test]
    fn sixty_four_levels_are_read_and_no_more() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check(nested(64).as_bytes()).is_ok());
        assert_eq!(fault::<Value>(&nested(65)).0, 422);
        assert_eq!(fault::<Value>(&nested(100_000)).0, 422);
        let empty = |depth: usize| format!("{}{{}}{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert!(check(empty(64).as_bytes()).is_ok());
        assert_eq!(fault::<Value>(&empty(65)).0, 422);
    }
    #[test]
    fn no_more_than_a_hundred_thousand_values_are_read() {
        let list = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        assert!(check(list(99_999).as_bytes()).is_ok());
        assert_eq!(fault::<Value>(&list(100_000)), at(422, "/99999", "invalid"));
    }

    #[test]
    fn an_answer_from_outside_is_read_within_the_limits() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(matches!(answer(nested(64).as_bytes()), Ok(Some(_))));
        for depth in [65, 126, 127, 128, 100_000] {
            assert_eq!(answer(nested(depth).as_bytes()), Err("nested deeper than 64".to_owned()), "{depth}");
        }
        assert_eq!(answer(br#"{"a": 1, "a": "\u0000"}"#), Ok(Some(serde_json::json!({ "a": "\0" }))));
        for text in ["1e400", r#""\ud800""#, "NaN", "{} {}", "plain"] {
            assert_eq!(answer(text.as_bytes()), Ok(None), "{text}");
        }
    }
}
