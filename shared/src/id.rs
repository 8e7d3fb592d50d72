//! Identifiers: UUIDv7 for what the server makes, checked names for what people choose.

use std::{borrow::Borrow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::read::read_text;

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": "uuid" })
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }

        read_text!($name);
    )+};
}

uuid_id! {
    /// One execution of one flow version.
    RunId,
    /// One thing that a person is asked.
    ReviewId,
    /// A unit of work that a worker claims.
    TaskId,
    /// One visit of a node in a run.
    StepId,
    /// One token for programs.
    TokenId,
    /// One message to one receiver.
    DeliveryId,
    /// One transaction of the store.
    CommitId,
    /// One standing leave for a tool.
    GrantId,
    /// One span of time in which somebody stands in for somebody else.
    DeputyId,
}

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a valid {what}: {rule}")]
pub struct InvalidName {
    /// What was written.
    pub name: String,
    /// What it should have been the name of.
    pub what: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
}

macro_rules! name {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $rule:literal, $check:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(name: String) -> Result<Self, InvalidName> {
                let check: fn(&str) -> bool = $check;
                if check(&name) { Ok(Self(name)) } else { Err(InvalidName { name, what: $what, rule: $rule }) }
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::try_from(text.to_owned())
            }
        }

        read_text!($name);

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl std::ops::Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )+};
}

/// Longest name that is accepted, in bytes.
pub const MAX_NAME: usize = 100;

fn made_of(name: &str, first: fn(char) -> bool, rest: fn(char) -> bool) -> bool {
    let mut chars = name.chars();
    name.len() <= MAX_NAME && chars.next().is_some_and(first) && chars.all(rest)
}

name! {
    /// The id of a flow: `[a-z0-9-]+`.
    FlowId: "flow id", "1 to 100 of a-z, 0-9 and -",
        |name| made_of(name, |c| matches!(c, 'a'..='z' | '0'..='9' | '-'), |c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    /// The id of a node in its flow: `[a-z][a-z0-9_-]*`, and not `end`, which ends a branch.
    NodeId: "node id", "a-z first, then a-z, 0-9, _ and -, at most 100, and not `end`",
        |name| name != "end" && made_of(name, |c| c.is_ascii_lowercase(), |c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'));
    /// How a person is named everywhere: `[a-z0-9][a-z0-9._-]*`, at most 100.
    Username: "username", "a-z or 0-9 first, then also . _ and -, at most 100",
        |name| made_of(name, |c| matches!(c, 'a'..='z' | '0'..='9'), |c| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-'));
}
