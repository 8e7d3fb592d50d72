//! Large values, stored once for a run and digest.
//!
//! Before JSON is stored, any string over [`MAX_STRING`] and any user's container over [`MAX_CONTAINER`] is replaced,
//! from the inside out, by a reference `{"$blob": "<s|a|o><sha256>"}`; the same draft in a run's state, review and log
//! is stored once. An object of a user that looks like a reference is wrapped in `{"$literal": …}`.
//!
//! A container of the engine's own (the messages of a conversation) is never replaced: it changes with every step, and
//! each change would leave a blob behind.

mod read;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::Error;

pub(super) use read::Reader;

/// Encoded strings longer than this are replaced.
const MAX_STRING: usize = 1024;
/// Encoded containers longer than this are replaced.
const MAX_CONTAINER: usize = 4096;

const REFERENCE: &str = "$blob";
const LITERAL: &str = "$literal";

/// Keys whose value is a user's, whole.
const VALUES: [&str; 5] = ["value", "arguments", "content", "result", "schema"];
/// Keys whose members are users' values.
const MAPS: [&str; 8] = ["keys", "input", "state", "output", "writes", "decisions", "metadata", "edits"];

/// A blob of a run.
pub(super) type Key = (Uuid, [u8; 32]);

/// Blobs by run and digest.
#[derive(Debug, Default, Clone)]
pub(super) struct Blobs(pub BTreeMap<Key, Value>);

/// Blobs to be written, encoded, in the order of their keys.
pub(super) type NewBlobs = BTreeMap<Key, String>;

/// Encodes a value of a run; what is large goes to `blobs`.
pub(super) fn encode<T: Serialize>(run: Uuid, value: &T, blobs: &mut NewBlobs) -> Result<String, Error> {
    let text = serde_json::to_string(value).map_err(|error| Error::Stored(error.to_string()))?;
    // Most rows are small: they are not looked at value by value.
    if text.len() <= MAX_CONTAINER && !is_marked(&text) && longest_string(&text) <= MAX_STRING {
        return Ok(text);
    }
    let value = serde_json::to_value(value).map_err(|error| Error::Stored(error.to_string()))?;
    let (value, _) = shrink(run, value, Place::Engine, true, blobs);
    Ok(value.to_string())
}

/// Whether there may be a reference in encoded JSON, or what looks like one.
pub(super) fn is_marked(text: &str) -> bool {
    text.contains("\"$")
}

/// The length of the longest string in encoded JSON.
fn longest_string(text: &str) -> usize {
    let (mut longest, mut begun) = (0, None);
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (byte, begun) {
            (b'"', None) => begun = Some(at),
            (b'"', Some(from)) => {
                longest = longest.max(at + 1 - from);
                begun = None;
            }
            (b'\\', Some(_)) => {
                bytes.next();
            }
            _ => {}
        }
    }
    longest
}

/// Whose a container is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Engine,
    Map,
    User,
}

impl Place {
    fn below(self, key: &str) -> Self {
        match self {
            Self::User | Self::Map => Self::User,
            Self::Engine if VALUES.contains(&key) => Self::User,
            Self::Engine if MAPS.contains(&key) => Self::Map,
            Self::Engine => Self::Engine,
        }
    }
}

/// Replaces what is large; answers with the value and its encoded length.
fn shrink(run: Uuid, value: Value, place: Place, root: bool, blobs: &mut NewBlobs) -> (Value, usize) {
    let (value, length, kind, large) = match value {
        Value::String(text) => {
            // Escapes only make it longer: the exact length is not worth an encoding.
            let length = text.len() + 2;
            (Value::String(text), length, 's', length > MAX_STRING)
        }
        Value::Array(items) => {
            let mut length = 2;
            let items = items
                .into_iter()
                .map(|item| {
                    let (item, size) = shrink(run, item, place, false, blobs);
                    length += size + 1;
                    item
                })
                .collect();
            (Value::Array(items), length, 'a', place == Place::User && length > MAX_CONTAINER)
        }
        Value::Object(members) => {
            let ambiguous = is_ambiguous(&members);
            let mut length = 2;
            let mut shrunk = Map::with_capacity(members.len());
            for (key, member) in members {
                let (member, size) = shrink(run, member, place.below(&key), false, blobs);
                length += key.len() + size + 4;
                shrunk.insert(key, member);
            }
            let mut value = Value::Object(shrunk);
            if ambiguous {
                value = wrapped(LITERAL, value);
                length += LITERAL.len() + 6;
            }
            (value, length, 'o', place == Place::User && length > MAX_CONTAINER)
        }
        small => {
            let length = 8;
            (small, length, 'n', false)
        }
    };
    if root || !large {
        return (value, length);
    }
    let body = value.to_string();
    let digest: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    blobs.insert((run, digest), body);
    let name = format!("{kind}{}", hex::encode(digest));
    let length = name.len() + 14;
    (wrapped(REFERENCE, Value::String(name)), length)
}

fn wrapped(key: &str, value: Value) -> Value {
    let mut map = Map::with_capacity(1);
    map.insert(key.to_owned(), value);
    Value::Object(map)
}

fn is_ambiguous(members: &Map<String, Value>) -> bool {
    members.len() == 1 && members.keys().all(|key| key == REFERENCE || key == LITERAL)
}

/// The reference that an object is, if it is one: its kind and digest.
fn reference(value: &Value) -> Option<(char, [u8; 32])> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    let name = members.get(REFERENCE)?.as_str()?;
    let kind = name.chars().next()?;
    let mut digest = [0; 32];
    hex::decode_to_slice(name.get(1..)?, &mut digest).ok()?;
    Some((kind, digest))
}

/// The value with everything that is a reference left empty: for what needs none of it.
pub(super) fn hollow(value: &mut Value) {
    if let Some((kind, _)) = reference(value) {
        *value = match kind {
            'a' => Value::Array(Vec::new()),
            'o' => Value::Object(Map::new()),
            _ => Value::String(String::new()),
        };
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(hollow),
        Value::Object(members) => members.values_mut().for_each(hollow),
        _ => {}
    }
}

/// A digest as it is stored.
pub(super) fn digest(bytes: &[u8]) -> Result<[u8; 32], Error> {
    bytes.try_into().map_err(|_| Error::Stored("a digest that has not 32 bytes".to_owned()))
}

/// Reads a typed value that was stored.
pub(super) fn typed<T: DeserializeOwned>(what: &str, value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| Error::Stored(format!("{what}: {error}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::read::restore;
    use super::*;

    const RUN: Uuid = Uuid::nil();

    fn roundtrip(value: &Value, place: Place) -> (Value, usize) {
        let mut new = NewBlobs::new();
        let (stored, _) = shrink(RUN, value.clone(), place, true, &mut new);
        let count = new.len();
        let blobs = Blobs(
            new.into_iter().map(|(key, body)| (key, serde_json::from_str(&body).expect("a blob is JSON"))).collect(),
        );
        (restore(RUN, stored, &blobs).expect("every blob is there"), count)
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[a-z$\"\\\\é]{0,8}".prop_map(Value::String),
            (900_usize..1300).prop_map(|length| Value::String("é\"".repeat(length / 3))),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|n| json!(n)),
            text
        ];
        let key = prop_oneof![
            4 => "[a-z]{1,5}".boxed(),
            1 => Just(REFERENCE.to_owned()).boxed(),
            1 => Just(LITERAL.to_owned()).boxed(),
            1 => Just("keys".to_owned()).boxed(),
        ];
        leaf.prop_recursive(5, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((key.clone(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_replaced_comes_back(value in json_value()) {
            for place in [Place::Engine, Place::User] {
                let (back, _) = roundtrip(&value, place);
                prop_assert_eq!(back.to_string(), value.to_string());
            }
        }
    }

    #[test]
    fn an_object_that_looks_like_a_reference_stays_what_it_is() {
        let fake =
            json!({"keys": {"a": {"$blob": format!("s{}", "00".repeat(32))}, "b": {"$literal": {"$blob": "x"}}}});
        assert_eq!(roundtrip(&fake, Place::Engine), (fake, 0));
    }

    #[test]
    fn the_same_draft_is_stored_once() {
        let draft = "x".repeat(5000);
        let mut new = NewBlobs::new();
        encode(RUN, &json!({"keys": {"draft": draft}}), &mut new).expect("encodes");
        encode(RUN, &json!({"items": [{"value": draft}]}), &mut new).expect("encodes");
        assert_eq!(new.len(), 1);
    }

    #[test]
    fn containers_of_the_engine_are_never_replaced() {
        let messages: Vec<Value> = (0..200).map(|n| json!({"role": "user", "text": format!("number {n}")})).collect();
        assert_eq!(roundtrip(&json!({"messages": messages}), Place::Engine).1, 0);
        assert_eq!(roundtrip(&json!({"keys": {"list": messages}}), Place::Engine).1, 1);
    }
}
