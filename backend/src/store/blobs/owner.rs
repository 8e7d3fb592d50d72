//! Whose data the parts of a value are, as its type says ([`shared::user_data`]).

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_content::{Data, Serializer, Value as Content};
use serde_json::Value;
use shared::user_data;

/// The owner of a value that is stored as JSON, and of its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) enum Owner {
    /// Users own it, with everything in it.
    Users,
    /// The engine owns it, with everything in it.
    #[default]
    Engine,
    /// The engine owns an object, some of whose members are owned otherwise.
    Members(BTreeMap<String, Owner>),
    /// The engine owns an array of items.
    Items(Vec<Owner>),
}

impl Owner {
    /// The owners in a value. If it cannot be serialised, it is the engine's.
    pub fn of<T: Serialize>(value: &T) -> Self {
        // As JSON: ids are texts.
        Serializer::new().human_readable().serialize(value).map_or(Self::Engine, Self::in_content)
    }

    /// The member of this name of a stored value, with its owner. If it is not there or cannot be read as `T`, it is the
    /// engine's.
    pub fn read_member<T: Serialize + DeserializeOwned>(value: &Value, name: &str) -> (String, Self) {
        let read = value.get(name).and_then(|member| T::deserialize(member).ok());
        (name.to_owned(), read.map_or(Self::Engine, |member| Self::of(&member)))
    }

    /// The owner of a member.
    pub fn member(&self, key: &str) -> &Self {
        match self {
            Self::Users => &Self::Users,
            Self::Members(members) => members.get(key).unwrap_or(&Self::Engine),
            _ => &Self::Engine,
        }
    }

    /// The owner of an item.
    pub fn item(&self, index: usize) -> &Self {
        match self {
            Self::Users => &Self::Users,
            Self::Items(items) => items.get(index).unwrap_or(&Self::Engine),
            _ => &Self::Engine,
        }
    }

    /// An object of the engine whose members have these owners.
    pub fn members(members: impl IntoIterator<Item = (String, Self)>) -> Self {
        let members: BTreeMap<_, _> = members.into_iter().filter(|(_, owner)| *owner != Self::Engine).collect();
        if members.is_empty() { Self::Engine } else { Self::Members(members) }
    }

    /// An array of the engine whose items have these owners.
    pub fn items(items: impl IntoIterator<Item = Self>) -> Self {
        let items: Vec<_> = items.into_iter().collect();
        if items.iter().all(|item| *item == Self::Engine) { Self::Engine } else { Self::Items(items) }
    }

    fn in_content(content: Content<'_>) -> Self {
        match content {
            Content::Struct(of) if of.name == user_data::NAME => Self::Users,
            Content::Struct(of) => Self::in_data(of.data),
            // Variants of enums are externally tagged, unless they are structs with a tag by now.
            Content::Enum(of) => Self::members([(of.variant.into_owned(), Self::in_data(of.data))]),
            Content::Option(Some(value)) => Self::in_content(*value),
            Content::Seq(items) | Content::Tuple(items) => Self::items(items.into_iter().map(Self::in_content)),
            Content::Map(members) => Self::members(
                members.into_iter().filter_map(|(key, value)| Some((key_of(key)?, Self::in_content(value)))),
            ),
            _ => Self::Engine,
        }
    }

    fn in_data(data: Data<'_>) -> Self {
        match data {
            Data::Unit => Self::Engine,
            Data::NewType { value } => Self::in_content(value),
            Data::Tuple { values } => Self::items(values.into_iter().map(Self::in_content)),
            Data::Struct { fields } => {
                Self::members(fields.into_iter().map(|(name, value)| (name.into_owned(), Self::in_content(value))))
            }
        }
    }
}

/// A key as JSON has it.
fn key_of(key: Content<'_>) -> Option<String> {
    match key {
        Content::String(key) => Some(key.into_owned()),
        Content::Enum(of) => Some(of.variant.into_owned()),
        Content::Struct(of) => match of.data {
            Data::NewType { value } => key_of(value),
            _ => None,
        },
        other => serde_json::to_value(other).ok().map(|number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;
    use shared::JsonMap;

    use super::*;

    #[derive(Serialize)]
    struct Whole {
        #[serde(flatten)]
        more: More,
        by_number: BTreeMap<u32, Tagged>,
        kinds: Vec<Kind>,
        #[serde(serialize_with = "user_data::numbered")]
        results: Vec<(u32, Value)>,
    }

    #[derive(Serialize)]
    struct More {
        #[serde(serialize_with = "user_data::members")]
        keys: JsonMap,
        #[serde(serialize_with = "user_data::value")]
        maybe: Option<Value>,
    }

    #[derive(Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        One {
            #[serde(serialize_with = "user_data::value")]
            fields: Value,
            by: String,
        },
        Other(Box<More>),
    }

    #[derive(Serialize)]
    enum Kind {
        Plain,
        With(Tagged),
    }

    #[test]
    fn the_owner_of_each_part_follows_from_the_type() {
        let more = || More { keys: JsonMap::from_iter([("a".to_owned(), json!([]))]), maybe: Some(json!({})) };
        let one = || Tagged::One { fields: json!({"type": 1}), by: "x".to_owned() };
        let whole = Whole {
            more: more(),
            by_number: [(1, one()), (2, Tagged::Other(Box::new(more())))].into(),
            kinds: vec![Kind::Plain, Kind::With(one())],
            results: vec![(7, json!({"a": 1}))],
        };
        let owner = Owner::of(&whole);
        let at = |path: &str| {
            path.split('/').fold(&owner, |owner, key| match key.parse() {
                Ok(index) if matches!(owner, Owner::Items(_)) => owner.item(index),
                _ => owner.member(key),
            })
        };
        let users = ["keys/a", "maybe", "by_number/1/fields", "by_number/2/keys/a", "by_number/2/maybe"];
        for path in users.into_iter().chain(["kinds/1/With/fields", "kinds/1/With/fields/deep", "results/0/1"]) {
            assert_eq!(*at(path), Owner::Users, "{path}");
        }
        for path in ["keys", "by_number/1/by", "by_number/2", "kinds/0", "kinds/1/With", "results", "results/0"] {
            assert_ne!(*at(path), Owner::Users, "{path}");
        }
        let text = serde_json::to_value(&whole).expect("JSON");
        assert_eq!(text["by_number"]["1"], json!({"type": "One", "fields": {"type": 1}, "by": "x"}), "JSON as always");
    }
}
