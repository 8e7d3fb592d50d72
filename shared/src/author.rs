//! Who did something: a person themselves, or a program with a token of theirs.

use std::fmt;

use crate::access::Principal;
use crate::collaboration::{Claim, Comment, Delegation};
use crate::decision::Decision;
use crate::id::{TokenId, Username};
use crate::review::Resolution;

/// A person who did something, and the token with which it was done. The server takes both from the credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The person; for a token, its creator.
    pub name: Username,
    /// The token; `None` for a session, for the server on the person's behalf (as by a button in Slack), and in records
    /// of older versions.
    pub token: Option<TokenId>,
}

/// Formats it for people: `tom`, or `a token of tom`.
impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = if self.token.is_some() { "a token of " } else { "" };
        write!(f, "{with}{}", self.name)
    }
}

/// Implements `From` for records that have the name and the token of their author.
macro_rules! authors {
    ($($record:ty: $name:ident, $token:ident;)+) => {$(
        impl From<&$record> for Author {
            fn from(record: &$record) -> Self {
                Self { name: record.$name.clone(), token: record.$token }
            }
        }
    )+};
}

authors! {
    Principal: username, token_id;
    Decision: by, token;
    Comment: by, token;
    Claim: by, token;
    Delegation: from, token;
}

impl From<Username> for Author {
    fn from(name: Username) -> Self {
        Self { name, token: None }
    }
}

impl Resolution {
    /// Returns who resolved the review, given its decisions. Each vote has its own token.
    pub fn authors(&self, decisions: &[Decision]) -> Vec<Author> {
        let by_one = self.by.len() == 1;
        let token = |name: &Username| {
            let vote = decisions.iter().rev().find(|decision| decision.by == *name).filter(|_| !by_one);
            vote.map_or(self.token, |vote| vote.token)
        };
        self.by.iter().map(|name| Author { name: name.clone(), token: token(name) }).collect()
    }
}
