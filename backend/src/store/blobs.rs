//! Large values, stored once for each run and digest.
//!
//! Before JSON is stored, any string over [`MAX_STRING`] and any container of users over [`MAX_CONTAINER`] is replaced,
//! from the inside out, by a reference `{"$blob": "<s|a|o><sha256>"}`; the same draft in a run's state, review and log
//! is stored once. An object of a user that looks like a reference has its key written as `$literal$…`; older rows wrap
//! it in `{"$literal": …}`. Neither what is written nor a blob is nested deeper than [`MAX_STORED_DEPTH`].
//!
//! A container of the engine's own (the messages of a conversation) is never replaced: it changes with every step, and
//! each change would leave a blob behind. The type of a value says whose its containers are ([`Owner`]). Reading follows
//! references wherever they are, so this may change; earlier versions also moved containers of the engine, by their keys.

mod owner;
mod read;
mod shape;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::Error;

pub(super) use owner::Owner;
pub(super) use read::Reader;
use shape::Shape;

/// Encoded strings longer than this are replaced.
const MAX_STRING: usize = 1024;
/// Encoded containers longer than this are replaced.
const MAX_CONTAINER: usize = 4096;
/// The length as which a number, a boolean or null is counted.
const SCALAR: usize = 8;

/// The deepest nesting of stored JSON. `serde_json` reads 127 levels. A value has at most [`MAX_DEPTH`] of its own, and
/// no row wraps one in more than a dozen; the remaining levels are left for the responses that contain it.
///
/// [`MAX_DEPTH`]: crate::limits::MAX_DEPTH
const MAX_STORED_DEPTH: usize = 100;

const REFERENCE: &str = "$blob";
const LITERAL: &str = "$literal";
/// The prefix of the key in an object that only looks like a reference.
const ESCAPE: &str = "$literal$";

/// The key of a blob: the id of its run and the SHA-256 of its value.
pub(super) type BlobKey = (Uuid, [u8; 32]);

#[derive(Debug, Default, Clone)]
pub(super) struct Blobs(pub BTreeMap<BlobKey, Value>);

/// Blobs to be written, encoded, in the order of their keys.
pub(super) type NewBlobs = BTreeMap<BlobKey, String>;

/// Encodes a value of a run, and moves large values to `blobs`. Returns [`Error::TooDeep`] if the value could not be
/// read back.
pub(super) fn encode<T: Serialize>(run: Uuid, value: &T, blobs: &mut NewBlobs) -> Result<String, Error> {
    encode_owned(run, value, || Owner::of(value), blobs)
}

/// Like [`encode`], for a value that is JSON already or contains such. If nothing in it is large, nobody has to ask
/// `owner` whose the parts are.
pub(super) fn encode_owned<T: Serialize>(
    run: Uuid,
    value: &T,
    owner: impl FnOnce() -> Owner,
    blobs: &mut NewBlobs,
) -> Result<String, Error> {
    let text = json(value)?;
    let shape = Shape::checked(&text)?;
    // Most rows have nothing to move, and need no look at each value.
    if text.len() <= MAX_CONTAINER && shape.longest_string <= MAX_STRING && !is_marked(&text) {
        return Ok(text);
    }
    without_large(run, value, &owner(), blobs)
}

/// Encodes a value with references in place of large values.
fn without_large<T: Serialize>(run: Uuid, value: &T, owner: &Owner, blobs: &mut NewBlobs) -> Result<String, Error> {
    let value = serde_json::to_value(value).map_err(|error| Error::Stored(error.to_string()))?;
    let (value, _) = shrink(run, value, owner, true, blobs);
    Ok(value.to_string())
}

/// Encodes a value without moving anything out. Returns [`Error::TooDeep`] if the value could not be read back.
pub(super) fn encode_whole<T: Serialize>(value: &T) -> Result<String, Error> {
    let text = json(value)?;
    // Each level takes at least two bytes.
    if text.len() > 2 * MAX_STORED_DEPTH {
        Shape::checked(&text)?;
    }
    Ok(text)
}

fn json<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Stored(error.to_string()))
}

/// Whether encoded JSON may contain a reference, or an object that looks like one.
pub(super) fn is_marked(text: &str) -> bool {
    text.contains("\"$")
}

/// Replaces large values. Returns the value and the approximate length of its encoding.
fn shrink(run: Uuid, value: Value, owner: &Owner, root: bool, blobs: &mut NewBlobs) -> (Value, usize) {
    let (value, length, kind, large) = match value {
        Value::String(text) => {
            // Escapes make the encoding longer than this, but the exact length is not worth computing.
            let length = text.len() + 2;
            (Value::String(text), length, 's', length > MAX_STRING)
        }
        Value::Array(items) => {
            let mut length = 2;
            let items = items
                .into_iter()
                .enumerate()
                .map(|(index, item)| {
                    let (item, size) = shrink(run, item, owner.item(index), false, blobs);
                    length += size + 1;
                    item
                })
                .collect();
            (Value::Array(items), length, 'a', *owner == Owner::Users && length > MAX_CONTAINER)
        }
        Value::Object(members) => {
            let ambiguous = is_ambiguous(&members);
            let mut length = 2;
            let mut shrunk = Map::with_capacity(members.len());
            for (key, member) in members {
                let (member, size) = shrink(run, member, owner.member(&key), false, blobs);
                // Escaped in place: wrapping the object would double the depth of what is stored.
                let key = if ambiguous { format!("{ESCAPE}{key}") } else { key };
                length += key.len() + size + 4;
                shrunk.insert(key, member);
            }
            (Value::Object(shrunk), length, 'o', *owner == Owner::Users && length > MAX_CONTAINER)
        }
        small => (small, SCALAR, 'n', false),
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
    members.len() == 1 && members.keys().all(|key| key == REFERENCE || key == LITERAL || key.starts_with(ESCAPE))
}

/// The kind and the digest of a reference, or `None` if the object is not one.
fn reference(value: &Value) -> Option<(char, [u8; 32])> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    let name = members.get(REFERENCE)?.as_str()?;
    let kind = name.chars().next()?;
    let mut digest = [0; 32];
    hex::decode_to_slice(name.get(1..)?, &mut digest).ok()?;
    Some((kind, digest))
}

/// Replaces every reference by an empty value of its kind, for callers that do not need the blobs.
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

/// Reads a stored digest.
pub(super) fn digest(bytes: &[u8]) -> Result<[u8; 32], Error> {
    bytes.try_into().map_err(|_| Error::Stored("a digest that has not 32 bytes".to_owned()))
}

/// Reads a typed value from stored JSON; `what` names it in the error.
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

    /// The engine's object whose `keys` are values of users.
    fn of_keys() -> Owner {
        Owner::members([("keys".to_owned(), Owner::Users)])
    }

    fn roundtrip(value: &Value, owner: &Owner) -> (Value, usize) {
        let mut new = NewBlobs::new();
        let stored = encode_owned(RUN, value, || owner.clone(), &mut new).expect("encodes");
        let stored = serde_json::from_str(&stored).expect("it is JSON");
        let count = new.len();
        let blobs = Blobs(
            new.into_iter().map(|(key, body)| (key, serde_json::from_str(&body).expect("a blob is JSON"))).collect(),
        );
        (restore(RUN, stored, &blobs).expect("every blob is there"), count)
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|n| json!(n)),
            "[a-z$\"\\\\é]{0,8}".prop_map(Value::String),
            (900_usize..1300).prop_map(|length| Value::String("é\"".repeat(length / 3))),
            (0_usize..600).prop_map(|count| json!(vec![7; count])),
        ];
        let key = prop_oneof![
            4 => "[a-z]{1,5}".boxed(),
            1 => Just(REFERENCE.to_owned()).boxed(),
            1 => Just(LITERAL.to_owned()).boxed(),
            1 => Just("keys".to_owned()).boxed(),
            1 => Just("$literal$blob".to_owned()).boxed(),
        ];
        leaf.prop_recursive(5, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((key.clone(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// The measures of a value, found by looking at each part.
    fn measured(value: &Value) -> Shape {
        let parts: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            Value::String(_) => return Shape { longest_string: value.to_string().len(), depth: 0 },
            _ => return Shape::default(),
        };
        let keys = value.as_object().into_iter().flat_map(Map::keys).map(|key| json!(key).to_string().len());
        let parts: Vec<Shape> = parts.into_iter().map(measured).collect();
        Shape {
            longest_string: parts.iter().map(|part| part.longest_string).chain(keys).max().unwrap_or(0),
            depth: 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0),
        }
    }

    proptest! {
        #[test]
        fn what_was_replaced_comes_back(value in json_value()) {
            for owner in [Owner::Engine, Owner::Users, of_keys()] {
                let (back, _) = roundtrip(&value, &owner);
                prop_assert_eq!(back.to_string(), value.to_string());
            }
        }

        #[test]
        fn encoded_json_is_measured_without_parsing_it(value in json_value()) {
            prop_assert_eq!(Shape::of(&value.to_string()), measured(&value));
        }
    }

    #[test]
    fn an_object_that_looks_like_a_reference_stays_what_it_is() {
        let fake =
            json!({"keys": {"a": {"$blob": format!("s{}", "00".repeat(32))}, "b": {"$literal": {"$blob": "x"}}}});
        assert_eq!(roundtrip(&fake, &of_keys()), (fake, 0));
        // As servers of earlier versions wrote it.
        let wrapped = json!({"keys": {"a": {"$literal": {"$blob": "x"}}}});
        assert_eq!(
            restore(RUN, wrapped, &Blobs::default()).expect("no reference"),
            json!({"keys": {"a": {"$blob": "x"}}})
        );
    }

    #[test]
    fn whatever_is_written_can_be_read() {
        let nested = |key: &str, depth: usize| (0..depth).fold(json!(1), |value, _| json!({ key: value }));
        for key in ["a", REFERENCE, LITERAL, "$literal$blob"] {
            for depth in [64, 99, 100, 101, 127, 500] {
                let mut new = NewBlobs::new();
                match encode(RUN, &nested(key, depth), &mut new) {
                    Ok(text) => {
                        let stored = serde_json::from_str(&text).expect("it can be read");
                        let back = restore(RUN, stored, &Blobs::default()).expect("no reference");
                        assert!(depth <= MAX_STORED_DEPTH && back == nested(key, depth), "{key} {depth}");
                    }
                    Err(error) => assert!(matches!(error, Error::TooDeep) && depth > MAX_STORED_DEPTH, "{key} {depth}"),
                }
            }
        }
    }

    #[test]
    fn the_same_draft_is_stored_once() {
        let draft = "x".repeat(5000);
        let mut new = NewBlobs::new();
        encode(RUN, &json!({"keys": {"draft": draft}}), &mut new).expect("encodes");
        encode_owned(RUN, &json!({"items": [{"value": draft}]}), || Owner::Users, &mut new).expect("encodes");
        assert_eq!(new.len(), 1);
    }

    #[test]
    fn containers_of_the_engine_are_never_replaced() {
        let messages: Vec<Value> = (0..200).map(|n| json!({"role": "user", "text": format!("number {n}")})).collect();
        assert_eq!(roundtrip(&json!({"messages": messages}), &of_keys()).1, 0);
        assert_eq!(roundtrip(&json!({"keys": {"list": messages}}), &of_keys()).1, 1);
    }
}
