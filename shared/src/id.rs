//! Identifiers: UUIDv7 for objects that the server creates, and checked names that people choose.

use std::{borrow::Borrow, fmt, str::FromStr};

use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use crate::json_text::text_schema;

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

        text_schema!($name, { "type": "string", "format": "uuid" });

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    )+};
}

uuid_id! {
    /// The id of a run: one execution of one flow version.
    RunId,
    /// The id of a review: one question to people.
    ReviewId,
    /// The id of a task: a unit of work that a worker claims.
    TaskId,
    /// The id of a step: one visit of a node in a run.
    StepId,
    /// The id of a token for programs.
    TokenId,
    /// The id of a browser session.
    SessionId,
    /// The id of a feedback on an agent.
    FeedbackId,
    /// The id of a delivery: one message to one receiver.
    DeliveryId,
    /// The id of a transaction of the store.
    CommitId,
    /// The id of a grant: a remembered approval for a tool.
    GrantId,
    /// The id of a deputyship.
    DeputyId,
}

/// The error for an invalid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a valid {what}: {rule}")]
pub struct InvalidName {
    /// The name that was refused.
    pub name: String,
    /// The kind of name, such as `flow id`.
    pub what: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
}

macro_rules! name {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $rule:literal, $check:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(into = "String"))]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the name.
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

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

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

/// The longest accepted name, in bytes.
pub const MAX_NAME: usize = 100;
/// The maximum nesting depth of flow calls.
pub const MAX_CALLS: usize = 8;

fn made_of(name: &str, first: fn(char) -> bool, rest: fn(char) -> bool) -> bool {
    let mut chars = name.chars();
    name.len() <= MAX_NAME && chars.next().is_some_and(first) && chars.all(rest)
}

/// `next` at the end of a branch; in a run, the place where a flow's output waits for approval.
const END: &str = "end";

fn is_node(id: &str) -> bool {
    let (calls, own) = id.rsplit_once('/').map_or((None, id), |(calls, own)| (Some(calls), own));
    let named = |name: &str| {
        name != END && made_of(name, |c| c.is_ascii_lowercase(), |c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'))
    };
    let called = |call: &str| {
        call.split_once(':').is_some_and(|(name, visit)| named(name) && visit.parse::<u32>().is_ok_and(|n| n > 0))
    };
    (own == END || named(own))
        && calls.is_none_or(|calls| calls.split('/').count() <= MAX_CALLS && calls.split('/').all(called))
}

name! {
    /// The id of a flow: `[a-z0-9-]+`.
    FlowId: "flow id", "1 to 100 of a-z, 0-9 and -",
        |name| made_of(name, |c| matches!(c, 'a'..='z' | '0'..='9' | '-'), |c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    /// The id of a node. In its flow: `[a-z][a-z0-9_-]*`. In a run, also the id of a node of a nested flow, after the
    /// calls that lead there, each with its visit: `check:2/review`; and `end`, where the output of a flow waits for
    /// approval.
    NodeId: "node id", "a-z first, then a-z, 0-9, _ and -, at most 100",
        is_node;
    /// The name of a user: `[a-z0-9][a-z0-9._-]*`, at most 100 characters.
    Username: "username", "a-z or 0-9 first, then also . _ and -, at most 100",
        |name| made_of(name, |c| matches!(c, 'a'..='z' | '0'..='9'), |c| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-'));
}

impl NodeId {
    /// Returns the calls that lead to the node's flow, such as `check:2`; empty in the run's own flow. It identifies
    /// that execution of the flow in the run.
    pub fn frame(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(calls, _)| calls)
    }

    /// Returns the node's id in its own flow, without the calls that lead there.
    pub fn own(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, own)| own)
    }

    /// Returns the calls that lead to the node, and its own id, without visits: `check/review`. It is the same for all
    /// visits of a call.
    pub fn place(&self) -> String {
        let names: Vec<&str> =
            self.0.split('/').map(|call| call.split_once(':').map_or(call, |(name, _)| name)).collect();
        names.join("/")
    }

    /// Returns the id of another node of the same frame; `own` is its id in the flow.
    #[must_use]
    pub fn beside(&self, own: &Self) -> Self {
        Self::within(self.frame(), own)
    }

    /// Creates the id of a node in a frame; `own` is its id in the flow.
    pub fn within(frame: &str, own: &Self) -> Self {
        if frame.is_empty() { own.clone() } else { Self(format!("{frame}/{own}")) }
    }

    /// Creates the id of the end of a frame, where the flow's output waits for approval.
    pub fn end_of(frame: &str) -> Self {
        Self::within(frame, &Self(END.to_owned()))
    }

    /// Whether it is the end of a flow, not one of its nodes.
    pub fn is_end(&self) -> bool {
        self.own() == END
    }

    /// Returns the frame of the flow that this visit of the node calls, such as `check:2`.
    pub fn call(&self, visit: u32) -> String {
        format!("{self}:{visit}")
    }

    /// Returns the node, and its visit, that called the flow of this node; `None` in the run's own flow.
    pub fn caller(&self) -> Option<(Self, u32)> {
        let (node, visit) = self.frame().rsplit_once(':')?;
        Some((Self(node.to_owned()), visit.parse().ok()?))
    }

    /// Whether the node is in this frame or in one nested in it. The empty frame contains all nodes.
    pub fn is_inside(&self, frame: &str) -> bool {
        frame.is_empty() || self.0.strip_prefix(frame).is_some_and(|rest| rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_a_nested_flow_is_named_by_the_calls_that_lead_to_it() {
        let node: NodeId = "check:2/legal:1/review".parse().unwrap();
        assert_eq!((node.frame(), node.own()), ("check:2/legal:1", "review"));
        assert_eq!(node.place(), "check/legal/review");
        assert_eq!(&*node.beside(&"draft".parse().unwrap()), "check:2/legal:1/draft");
        assert_eq!(node.caller(), Some(("check:2/legal".parse().unwrap(), 1)));
        assert!(node.is_inside("check:2") && node.is_inside("") && !node.is_inside("check:20"));
        assert!(!node.is_inside("check:2/legal:1/review"));
        let deep = "a:1/".repeat(MAX_CALLS) + "b";
        assert!(deep.parse::<NodeId>().is_ok());
        for bad in ["check/review", "check:0/review", "check:x/review", "/review", "check:1/", "end:1/a", "a:1"] {
            assert!(bad.parse::<NodeId>().is_err(), "{bad}");
        }
        assert!(("a:1/".to_owned() + &deep).parse::<NodeId>().is_err());
        let end = NodeId::end_of("check:2");
        assert_eq!(("check:2/end".parse(), end.is_end()), (Ok(end), true));
    }
}
