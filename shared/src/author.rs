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

impl From<&Principal> for Author {
    fn from(by: &Principal) -> Self {
        Self { name: by.username.clone(), token: by.token_id }
    }
}

impl From<&Decision> for Author {
    fn from(decision: &Decision) -> Self {
        Self { name: decision.by.clone(), token: decision.token }
    }
}

impl From<&Comment> for Author {
    fn from(comment: &Comment) -> Self {
        Self { name: comment.by.clone(), token: comment.token }
    }
}

impl From<&Claim> for Author {
    fn from(claim: &Claim) -> Self {
        Self { name: claim.by.clone(), token: claim.token }
    }
}

impl From<&Delegation> for Author {
    fn from(delegation: &Delegation) -> Self {
        Self { name: delegation.from.clone(), token: delegation.token }
    }
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
