//! How the console reads JSON objects: field by field.
//!
//! What serde derives reads an object while it streams by, whatever the order of its fields, and is compiled for each
//! type: it was an eighth of the console's bundle. The console takes each field out of a [`Value`] instead. Everybody
//! else reads with what is derived; the tests hold the two against each other. Imports nothing of this crate.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Map, Result, Value};

/// The fields of an object that have not been read yet.
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Those of a value.
    pub fn of(value: Value) -> Result<Self> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Error::custom("expected an object")),
        }
    }

    fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// A field that must be there.
    pub fn need<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T> {
        let value = self.remove(name).ok_or_else(|| Error::missing_field(name))?;
        serde_json::from_value(value)
    }

    /// A field that may be missing.
    pub fn may<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        match self.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value).map(Some),
        }
    }

    /// A field that has a default.
    pub fn or_default<T: DeserializeOwned + Default>(&mut self, name: &str) -> Result<T> {
        match self.remove(name) {
            None => Ok(T::default()),
            Some(value) => serde_json::from_value(value),
        }
    }

    /// A field that has a default of its own.
    pub fn or<T: DeserializeOwned>(&mut self, name: &str, default: fn() -> T) -> Result<T> {
        Ok(self.may(name)?.unwrap_or_else(default))
    }

    /// A field whose own fields stand among these; read last.
    pub fn rest<T: DeserializeOwned>(&mut self, _: &str) -> Result<T> {
        serde_json::from_value(Value::Object(std::mem::take(&mut self.0)))
    }
}

/// What can be read field by field.
pub trait Read: Sized {
    /// Reads it.
    fn read(fields: &mut Fields) -> Result<Self>;
}

/// Says how each field of a type is read, in the order in which they are.
macro_rules! read_fields {
    ($name:ident $(<$parameter:ident>)? { $($how:ident $(($default:ident))? $field:ident $(= $word:literal)?,)* }) => {
        impl$(<$parameter: serde::de::DeserializeOwned>)? crate::read::Read for $name$(<$parameter>)? {
            fn read(fields: &mut crate::read::Fields) -> serde_json::Result<Self> {
                $(let $field = fields.$how(crate::read::word!($field $($word)?) $(, $default)?)?;)*
                Ok(Self { $($field),* })
            }
        }

        crate::read::read_on_the_web!($name $(<$parameter>)?);
    };
}

/// Lets the console read a type that is [`Read`].
macro_rules! read_on_the_web {
    ($name:ident $(<$parameter:ident>)?) => {
        #[cfg(target_family = "wasm")]
        impl<'de $(, $parameter: serde::de::DeserializeOwned)?> serde::Deserialize<'de> for $name$(<$parameter>)? {
            fn deserialize<De: serde::Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
                let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
                let read = crate::read::Fields::of(value).and_then(|mut fields| crate::read::Read::read(&mut fields));
                read.map_err(serde::de::Error::custom)
            }
        }
    };
}

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

pub(crate) use {read_fields, read_on_the_web, word};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::ServerMessage;

    fn same<T: Read + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &Value) {
        let derived: T = serde_json::from_value(value.clone()).expect("what is derived reads it");
        let read =
            Fields::of(value.clone()).and_then(|mut fields| T::read(&mut fields)).expect("it is read field by field");
        assert_eq!(derived, read);
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
            json!({"type": "actions", "decisions": {"1": {"type": "reject", "message": "no"}, "2": {"type": "approve"},
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
    fn reviews_and_runs_are_read_alike() {
        let (id, at) = ("01a1fe15-02bf-70db-ac07-93a1800b6c6a", "2026-01-01T00:00:00Z");
        same::<crate::review::Review>(&json!({
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
            "reviewers": {"roles": ["reviewer"], "users": ["ana"], "not_requester": true},
            "claimed_by": {"by": "ana", "until": at}, "comments": [{"by": "ana", "at": at, "text": "hm"}],
            "decisions": [], "resolution": {"status": "resolved", "outcome": "accepted", "by": ["ana"], "at": at,
                "via": "human", "reason": "r"},
            "context": {"user": "u", "metadata": {"k": 1}},
            "usage": {"agent_calls": [], "total_tokens": 3, "total_cost_usd": 0.1, "elapsed_ms": 9},
            "requested_by": "dev", "created_at": at, "expires_at": at, "on_timeout": "reject", "escalated": ["lead"],
        }));
        same::<crate::run::Run>(&json!({
            "id": id, "flow": "article", "title": "An article", "version": 3, "status": "waiting_for_human",
            "revision": 4, "requested_by": "dev", "created_at": at, "updated_at": at, "pending_reviews": 1,
            "input": {"topic": "x"}, "state": {"draft": "y"}, "context": {"metadata": {}},
            "positions": [{"node": "review", "visit": 1, "activity": "waiting", "review": id}],
        }));
    }
}
