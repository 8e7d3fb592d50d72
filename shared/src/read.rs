//! How the console reads JSON: from a value, objects field by field.
//!
//! What serde derives reads an object while it streams by, whatever the order of its fields, and is compiled for each
//! type and each way of reading: it was an eighth of the console's bundle. The console takes each field out of a
//! [`Value`] instead. The server reads with what is derived; the tests hold the two against each other. Imports nothing
//! of this crate.

mod text;

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde::de::Error as _;
use serde_json::{Error, Map, Result, Value};

/// What can be read from a JSON value.
pub trait FromJson: Sized {
    /// Reads it.
    fn from_json(value: Value) -> Result<Self>;
}

/// What is an object, and can be read from its fields.
pub trait Read: Sized {
    /// Reads it.
    fn read(fields: &mut Fields) -> Result<Self>;
}

/// The fields of an object that have not been read yet.
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Those of a value.
    pub fn of(value: Value) -> Result<Self> {
        Map::from_json(value).map(Self)
    }

    fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// A field that must be there.
    pub fn need<T: FromJson>(&mut self, name: &'static str) -> Result<T> {
        T::from_json(self.remove(name).ok_or_else(|| Error::missing_field(name))?)
    }

    /// A field that may be missing.
    pub fn may<T: FromJson>(&mut self, name: &str) -> Result<Option<T>> {
        Option::from_json(self.remove(name).unwrap_or_default())
    }

    /// A field that has a default.
    pub fn or_default<T: FromJson + Default>(&mut self, name: &str) -> Result<T> {
        self.remove(name).map_or_else(|| Ok(T::default()), T::from_json)
    }

    /// A field that has a default of its own.
    pub fn or<T: FromJson>(&mut self, name: &str, default: fn() -> T) -> Result<T> {
        Ok(self.may(name)?.unwrap_or_else(default))
    }

    /// A field whose own fields stand among these; read last.
    pub fn rest<T: FromJson>(&mut self, _: &str) -> Result<T> {
        T::from_json(Value::Object(std::mem::take(&mut self.0)))
    }
}

/// Says how each field of a type is read, in the order in which they are.
#[macro_export]
macro_rules! read_fields {
    ($name:ident $(<$parameter:ident>)? { $($how:ident $(($default:ident))? $field:ident $(= $word:literal)?,)* }) => {
        impl$(<$parameter: $crate::read::FromJson>)? $crate::read::Read for $name$(<$parameter>)? {
            fn read(fields: &mut $crate::read::Fields) -> serde_json::Result<Self> {
                $(let $field = fields.$how($crate::word!($field $($word)?) $(, $default)?)?;)*
                Ok(Self { $($field),* })
            }
        }

        $crate::read_object!($name $(<$parameter>)?);
    };
}

/// Lets a type that is [`Read`] be read from a value.
#[macro_export]
macro_rules! read_object {
    ($name:ident $(<$parameter:ident>)?) => {
        impl$(<$parameter: $crate::read::FromJson>)? $crate::read::FromJson for $name$(<$parameter>)? {
            fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
                $crate::read::Read::read(&mut $crate::read::Fields::of(value)?)
            }
        }

        $crate::read_on_the_web!($name $(<$parameter>)?);
    };
}

/// The words of a type that is one of some, and how it is read from one.
#[macro_export]
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// The word of the API.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl $crate::read::FromJson for $name {
            fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
                $crate::read::place_of(&value, &[$($word),+]).map(|place| [$(Self::$variant),+][place])
            }
        }

        $crate::read_on_the_web!($name);
    };
}

/// Says that a type is written as a text that it can be parsed from.
#[macro_export]
macro_rules! read_text {
    ($name:ident) => {
        impl $crate::read::FromJson for $name {
            fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
                <String as $crate::read::FromJson>::from_json(value)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Says that a type is read as serde derives it: for what is rarely read, or not by the console.
#[macro_export]
macro_rules! read_derived {
    ($name:ident) => {
        impl $crate::read::FromJson for $name {
            fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
                serde_json::from_value(value)
            }
        }
    };
}

/// Lets what can be read from a value be a part of what the console reads otherwise.
#[macro_export]
macro_rules! read_on_the_web {
    ($name:ident $(<$parameter:ident>)?) => {
        #[cfg(target_family = "wasm")]
        impl<'de $(, $parameter: $crate::read::FromJson)?> serde::Deserialize<'de> for $name$(<$parameter>)? {
            fn deserialize<De: serde::Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
                let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
                $crate::read::FromJson::from_json(value).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// The word of a field: its name, or another.
#[macro_export]
#[doc(hidden)]
macro_rules! word {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $word:literal) => {
        $word
    };
}

/// What is said of a variant that is not known.
pub fn unknown(variant: &str) -> Error {
    Error::custom(format_args!("unknown variant `{variant}`"))
}

/// Which of these words a value is.
pub fn place_of(value: &Value, words: &[&str]) -> Result<usize> {
    let word = value.as_str().ok_or_else(|| expected("a word"))?;
    words.iter().position(|known| *known == word).ok_or_else(|| unknown(word))
}

fn expected(what: &str) -> Error {
    Error::custom(format_args!("expected {what}"))
}

impl FromJson for Value {
    fn from_json(value: Value) -> Result<Self> {
        Ok(value)
    }
}

impl FromJson for () {
    fn from_json(_: Value) -> Result<Self> {
        Ok(())
    }
}

impl FromJson for bool {
    fn from_json(value: Value) -> Result<Self> {
        value.as_bool().ok_or_else(|| expected("true or false"))
    }
}

impl FromJson for u64 {
    fn from_json(value: Value) -> Result<Self> {
        value.as_u64().ok_or_else(|| expected("a whole number"))
    }
}

macro_rules! small_numbers {
    ($($number:ty),+) => {$(
        impl FromJson for $number {
            fn from_json(value: Value) -> Result<Self> {
                u64::from_json(value)?.try_into().map_err(Error::custom)
            }
        }
    )+};
}

small_numbers!(u16, u32);

impl FromJson for f64 {
    fn from_json(value: Value) -> Result<Self> {
        value.as_f64().ok_or_else(|| expected("a number"))
    }
}

impl FromJson for String {
    fn from_json(value: Value) -> Result<Self> {
        match value {
            Value::String(text) => Ok(text),
            _ => Err(expected("a text")),
        }
    }
}

impl FromJson for Map<String, Value> {
    fn from_json(value: Value) -> Result<Self> {
        match value {
            Value::Object(fields) => Ok(fields),
            _ => Err(expected("an object")),
        }
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json(value: Value) -> Result<Self> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }
}

impl<T: FromJson> FromJson for Box<T> {
    fn from_json(value: Value) -> Result<Self> {
        T::from_json(value).map(Self::new)
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: Value) -> Result<Self> {
        match value {
            Value::Array(items) => items.into_iter().map(T::from_json).collect(),
            _ => Err(expected("a list")),
        }
    }
}

impl FromJson for BTreeSet<String> {
    fn from_json(value: Value) -> Result<Self> {
        Vec::from_json(value).map(Self::from_iter)
    }
}

impl<T: FromJson> FromJson for BTreeMap<String, T> {
    fn from_json(value: Value) -> Result<Self> {
        Map::from_json(value)?.into_iter().map(|(key, value)| Ok((key, T::from_json(value)?))).collect()
    }
}

impl<T: FromJson> FromJson for IndexMap<String, T> {
    fn from_json(value: Value) -> Result<Self> {
        Map::from_json(value)?.into_iter().map(|(key, value)| Ok((key, T::from_json(value)?))).collect()
    }
}

impl FromJson for (f64, f64) {
    fn from_json(value: Value) -> Result<Self> {
        match Vec::from_json(value)?[..] {
            [first, second] => Ok((first, second)),
            _ => Err(expected("two numbers")),
        }
    }
}

pub use text::value;
pub use {read_derived, read_fields, read_object, read_on_the_web, read_text, words};

#[cfg(test)]
pub(crate) mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;
    use crate::protocol::ServerMessage;

    pub fn same<T: FromJson + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &Value) {
        let derived: T = serde_json::from_value(value.clone()).expect("what is derived reads it");
        assert_eq!(derived, T::from_json(value.clone()).expect("it is read field by field"));
    }

    #[test]
    fn field_by_field_reads_what_is_derived() {
        let decision = json!({
            "by": "ana", "at": "2026-01-01T00:00:00Z", "via": "human", "revision": 1, "digest": "sha256:0",
            "verdict": {"type": "choose", "option": "approve"}, "edits": {"draft": "b"}, "comment": "good"
        });
        same::<crate::decision::Decision>(&decision);
        for verdict in [
            json!({"type": "text", "text": "no"}),
            json!({"type": "choose", "option": "a", "fields": {"x": 1}}),
            json!({"type": "actions", "decisions": {"1": {"type": "reject", "message": "no"}, "2": {"type": "approve", "remember": {"scope": "run", "arguments": ["to"]}},
                "3": {"type": "edit", "arguments": {}}, "4": {"type": "respond", "message": "x"}}}),
        ] {
            same::<crate::decision::Verdict>(&verdict);
        }
        let run = "01a1fe15-02bf-70db-ac07-93a1800b6c6a";
        let entry =
            json!({"cursor": "7", "kind": "run.started", "at": "2026-01-01T00:00:00Z", "run_id": run, "actor": "ana"});
        same::<crate::log::Entry>(&entry);
        let user = json!({"username": "ana", "roles": ["reviewer"], "created_at": "2026-01-01T00:00:00Z"});
        same::<crate::api::User>(&user);
        same::<crate::error::Problem>(
            &json!({"code": "invalid", "status": 422, "title": "Not valid", "errors": [{"path": "/a", "code": "value", "message": "m"}]}),
        );
        for message in [
            json!({"type": "welcome", "user": "ana", "cursor": "1", "server_time": "2026-01-01T00:00:00Z"}),
            json!({"type": "snapshot", "cursor": "1", "pending": 0, "reviews": []}),
            json!({"type": "resync"}),
            json!({"type": "reply", "ref": "k", "problem": {"code": "forbidden", "status": 403, "title": "t"}}),
            json!({"type": "stream", "run": run, "node": "a", "visit": 1, "attempt": 1, "offset": 0, "text": "x"}),
        ] {
            same::<ServerMessage>(&message);
        }
        same::<crate::graph::Graph>(&json!({
            "width": 10.0, "height": 5.5, "nodes": [{"id": "a", "kind": "human", "x": 1, "y": 2, "width": 3, "height": 4}],
            "edges": [{"from": "a", "to": "end", "kind": "next", "points": [[1.0, 2.0], [3.0, 4.0]]}],
        }));
    }

    #[test]
    fn words_and_what_has_several_shapes_are_read_alike() {
        for policy in [json!("first"), json!("unanimous"), json!({"quorum": 2}), json!({"groups": {"b": 1, "a": 2}})] {
            same::<crate::definition::Policy>(&policy);
        }
        let chain =
            json!({"escalate": "lead", "extend": "2h", "then": {"escalate": "cto", "extend": "30m", "then": "follow"}});
        for on_timeout in [json!("reject"), json!("error"), json!({"goto": "draft"}), chain] {
            same::<crate::definition::OnTimeout>(&on_timeout);
        }
        for kind in crate::log::EntryKind::ALL {
            same::<crate::log::EntryKind>(&json!(kind));
        }
        for wrong in [json!("never"), json!(1), json!({})] {
            assert!(crate::definition::OnTimeout::from_json(wrong.clone()).is_err(), "{wrong}");
            assert!(crate::review::Outcome::from_json(wrong).is_err());
        }
    }

    #[test]
    fn reviews_and_runs_are_read_alike() {
        let (id, at) = ("01a1fe15-02bf-70db-ac07-93a1800b6c6a", "2026-01-01T00:00:00Z");
        let more = json!({"voting": {"voters": ["ana"], "votes": 1, "standing": "s", "groups": [{"role": "legal", "voters": ["ana"]}],
                "voided": ["ana"], "edited": [{"key": "draft", "replaces": "sha256:0"}]}, "problem": "p", "barred": ["tom"],
            "advice": [{"by": "m/j", "via": "judge", "at": at, "reason": "r",
                "verdict": {"approved": true, "confidence": 0.5, "threshold": 0.7}}]});
        let mut review = json!({
            "id": id, "revision": 2, "digest": "sha256:0", "version": 7, "kind": "tool_calls", "status": "resolved",
            "run_id": id, "flow": "article", "flow_title": "An article", "node": "review", "visit": 2,
            "source": {"node": "draft", "visits": 2, "max_visits": 5}, "title": "Review: Draft", "prompt": "Publish?",
            "severity": "high", "category": "public", "reversible": false, "consequences": ["All see it"],
            "estimated_cost": {"amount": 2.5, "currency": "EUR"}, "alternatives": ["Wait"],
            "items": [{"key": "draft", "label": "Draft", "content_type": "markdown", "value": "# Hi", "editable": true,
                "schema": {"type": "string"}}],
            "options": [{"id": "ok", "kind": "accept", "label": "Approve", "message": "m", "description": "d"}],
            "free_text": true, "policy": "first", "deny": 1, "blind": true,
            "actions": [{"id": "1", "type": "tool", "name": "publish", "agent": "writer", "arguments": {"a": 1},
                "allowed_decisions": ["approve", "edit"]}],
            "reviewers": {"roles": ["reviewer"], "users": ["ana"], "tags": ["eu"], "not_requester": true},
            "claimed_by": {"by": "ana", "until": at}, "comments": [{"by": "ana", "at": at, "text": "hm"}],
            "decisions": [], "resolution": {"status": "resolved", "outcome": "accepted", "by": ["ana"], "at": at,
                "via": "human", "reason": "r"},
            "context": {"user": "u", "metadata": {"k": 1}},
            "usage": {"agent_calls": [], "total_tokens": 3, "total_cost_usd": 0.1, "elapsed_ms": 9},
            "requested_by": "dev", "created_at": at, "expires_at": at, "on_timeout": "reject", "escalated": ["lead"],
        });
        review.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        same::<crate::review::Review>(&review);
        same::<crate::run::Run>(&json!({
            "id": id, "flow": "article", "title": "An article", "version": 3, "status": "waiting_for_human",
            "revision": 4, "requested_by": "dev", "created_at": at, "updated_at": at, "pending_reviews": 1,
            "input": {"topic": "x"}, "state": {"draft": "y"}, "context": {"metadata": {}},
            "positions": [{"node": "review", "visit": 1, "activity": "waiting", "review": id}],
        }));
    }
}
