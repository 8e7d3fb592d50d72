//! What changed about a review or a person, as entries say it.

use serde::{Deserialize, Serialize};

use crate::decision::Via;
use crate::id::Username;
use crate::notification::Notifications;

/// What changed about a review. Nobody is named while votes are secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum ReviewChange {
    /// What is shown: a new revision.
    Content {
        /// Whose votes are void.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voided: Option<Vec<Username>>,
        /// A vote changed it, which its decision tells (`shown`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        vote: bool,
    },
    /// A vote was added or replaced that changes nothing of the content, and the review is still pending.
    Vote,
    /// Who may vote.
    Voters {
        /// Who may no longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<Vec<Username>>,
        /// Who may now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<Vec<Username>>,
    },
    /// Somebody claimed it.
    Claim {
        /// `human` (console or API) or `cli`; `None` in entries of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Via>,
    },
    /// Somebody released it.
    Release {
        /// `human` (console or API) or `cli`; `None` in entries of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Via>,
    },
    /// Somebody said something beside it.
    Comment {
        /// `human` (console or API) or `cli`; `None` in entries of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Via>,
    },
    /// Somebody handed it over.
    Delegated {
        /// `human` (console or API) or `cli`; `None` in entries of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Via>,
    },
    /// Nobody decided in time, and others are asked too.
    Escalated {
        /// Who has it may decide now.
        #[serde(default)]
        role: String,
    },
    /// It was told to wait: a new revision.
    Paused {
        /// The channel of the decision to wait, such as `human` or `slack`; `None` in entries of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Via>,
    },
    /// A handler that was asked beside people said nothing in its time, or the next one is asked.
    Asked,
    /// Something that this version does not know.
    #[serde(other)]
    Other,
}

/// Somebody was added, or something about them changed: what did is there, and a password never is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserChanged {
    /// The person whose account it is; who changed it is the entry's actor.
    pub username: Username,
    /// Their roles now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// Whether they may log in now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// Their name now; empty: they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Their address now; empty: they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Their password changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub password: bool,
    /// What became of their second factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_factor: Option<SecondFactorChange>,
    /// Their account at the identity provider now, or that it says this of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_sign_on: Option<SingleSignOn>,
    /// Of what they want to be told now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Notifications>,
}

impl UserChanged {
    /// A change of this person in which nothing is set yet: the caller sets the members that changed.
    pub fn of(username: Username) -> Self {
        Self {
            username,
            roles: None,
            active: None,
            display_name: None,
            email: None,
            password: false,
            second_factor: None,
            single_sign_on: None,
            notifications: None,
        }
    }

    /// Whether their rights may be others now.
    pub fn concerns_rights(&self) -> bool {
        self.roles.is_some() || self.active.is_some()
    }
}

/// What became of a second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondFactorChange {
    /// It is being set up, and does not count yet.
    Begun,
    /// It was confirmed with a code; every login needs one from now on.
    On,
    /// It was removed.
    Off,
}

/// What an entry says of single sign-on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SingleSignOn {
    /// The account at the identity provider.
    Account {
        /// The provider, a URL.
        issuer: String,
        /// The person there.
        subject: String,
    },
    /// Whether there is one.
    Linked(bool),
}

/// Somebody was let in, or a link was made that lets them in once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedIn {
    /// The person whose session begins, or for whom the link was made.
    pub username: Username,
    /// The account by which they signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_sign_on: Option<SingleSignOn>,
    /// A one-time link let them in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub link: bool,
    /// What they proved their second factor by: `code` or `recovery`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_factor: Option<String>,
}

impl LoggedIn {
    /// Let in by nothing but a password.
    pub fn of(username: Username) -> Self {
        Self { username, single_sign_on: None, link: false, second_factor: None }
    }
}

/// Somebody was not let in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoginFailed {
    /// Under which name, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<Username>,
    /// The account by which they tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_sign_on: Option<SingleSignOn>,
    /// Why, where it was by single sign-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
