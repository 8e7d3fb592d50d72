//! Changes of a review or a person, as log entries describe them.

use serde::{Deserialize, Serialize};

use crate::decision::Via;
use crate::id::Username;
use crate::notification::Notifications;

/// A change of a review. While votes are secret, it names no one.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum ReviewChange {
    /// The content changed, which makes a new revision.
    Content {
        /// The people whose votes the change voided; `None` while votes are secret, or if it voided none.
        voided: Option<Vec<Username>>,
        /// Whether a vote changed the content; the vote's decision has the details (`shown`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        vote: bool,
    },
    /// A vote was added or replaced that does not change the content, and the review is still pending.
    Vote,
    /// The set of people who may vote changed.
    Voters {
        /// The people who may no longer vote.
        lost: Option<Vec<Username>>,
        /// The people who may vote now.
        added: Option<Vec<Username>>,
        /// The people who have got the review back from somebody who can no longer decide it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        given_back: Vec<Username>,
    },
    /// The review was claimed.
    Claim {
        /// `human` (console or API) or `cli`; `None` in entries of older versions.
        via: Option<Via>,
    },
    /// The review was released.
    Release {
        /// `human` (console or API) or `cli`; `None` in entries of older versions.
        via: Option<Via>,
    },
    /// A comment was added.
    Comment {
        /// `human` (console or API) or `cli`; `None` in entries of older versions.
        via: Option<Via>,
    },
    /// The review was delegated.
    Delegated {
        /// `human` (console or API) or `cli`; `None` in entries of older versions.
        via: Option<Via>,
    },
    /// The review was reassigned; the last of its `reassignments` has the details.
    Reassigned {
        /// `human` (console or API) or `cli`.
        via: Via,
    },
    /// The timer expired, and the people with another role are asked too.
    Escalated {
        /// The role that may decide now.
        #[serde(default)]
        role: String,
    },
    /// The review was paused, which makes a new revision.
    Paused {
        /// The channel of the decision to pause, such as `human` or `slack`; `None` in entries of older versions.
        via: Option<Via>,
    },
    /// A handler that was asked alongside people did not answer in time, or the next one is asked.
    Asked,
    /// A change that this version does not know.
    #[serde(other)]
    Other,
}

/// An account that was added or changed. Members that did not change are `None` or `false`. Never contains a password.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserChanged {
    /// The person whose account it is; the entry's actor made the change.
    pub username: Username,
    /// The new roles.
    pub roles: Option<Vec<String>>,
    /// Whether they may log in now.
    pub active: Option<bool>,
    /// The new display name; empty if it was removed.
    pub display_name: Option<String>,
    /// The new e-mail address; empty if it was removed.
    pub email: Option<String>,
    /// Whether the password changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub password: bool,
    /// Whether the person ended their tokens along with a change of their password. When someone else sets it, they
    /// always end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_ended: bool,
    /// The change of the second factor.
    pub second_factor: Option<SecondFactorChange>,
    /// The new account at the identity provider; `Linked(true)` if a login made the change, `Linked(false)` if the
    /// account was unlinked.
    pub single_sign_on: Option<SingleSignOn>,
    /// The new notification settings.
    pub notifications: Option<Notifications>,
    /// Whether the saved views changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub views: bool,
}

impl UserChanged {
    /// Creates an empty change of this person: the caller sets the members that changed.
    pub fn of(username: Username) -> Self {
        Self {
            username,
            roles: None,
            active: None,
            display_name: None,
            email: None,
            password: false,
            tokens_ended: false,
            second_factor: None,
            single_sign_on: None,
            notifications: None,
            views: false,
        }
    }

    /// Whether the person's rights may have changed.
    pub fn concerns_rights(&self) -> bool {
        self.roles.is_some() || self.active.is_some()
    }
}

/// The change of a second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondFactorChange {
    /// Set-up began; logins do not need the second factor yet.
    Begun,
    /// The second factor was confirmed with a code; every login needs one from now on.
    On,
    /// The second factor was removed.
    Off,
}

/// Details of single sign-on in an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SingleSignOn {
    /// The account at the identity provider.
    Account {
        /// The provider, a URL.
        issuer: String,
        /// The person's id at the provider.
        subject: String,
    },
    /// Whether there is an account.
    Linked(bool),
}

/// A login, or a link that was created to log in once.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedIn {
    /// The person whose session begins, or for whom the link was created.
    pub username: Username,
    /// The account at the identity provider; `None` for a login without single sign-on.
    pub single_sign_on: Option<SingleSignOn>,
    /// Whether a one-time link logged them in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub link: bool,
    /// The proof of the second factor: `code` or `recovery`; `None` if it was not used.
    pub second_factor: Option<String>,
}

impl LoggedIn {
    /// Creates a login with only a password.
    pub fn of(username: Username) -> Self {
        Self { username, single_sign_on: None, link: false, second_factor: None }
    }
}

/// A failed login.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoginFailed {
    /// The username, if it is known.
    pub username: Option<Username>,
    /// The account at the identity provider; `None` without single sign-on, or if it is not known.
    pub single_sign_on: Option<SingleSignOn>,
    /// Why single sign-on failed; `None` for other logins.
    pub reason: Option<String>,
    /// The number of failures of the same person before this one that were too many to record. `None` if all of them are
    /// in the log.
    pub unrecorded: Option<u64>,
    /// Whether somebody in a session of the person failed to prove that it is theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_session: bool,
    /// Whether the code of the second factor was wrong, after the right password or link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrong_code: bool,
}
