//! How long sessions, tokens and links last, and who must have a second factor.

use std::time::Duration;

use serde::Deserialize;
use shared::time::{Span, Timestamp};

use crate::store::UserRecord;

/// The table `[logins]` of the settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginPolicy {
    /// How long a session lasts without being used.
    pub session_idle: Span,
    /// How long a session lasts at most.
    pub session_life: Span,
    /// The maximum lifetime of a token, and the default of new ones; `None`: no limit.
    pub token_life: Option<Span>,
    /// How long the tokens of people who sign in with the identity provider work after their last sign-in there. The
    /// server is not told who was disabled there.
    pub token_sign_in: Span,
    /// How recent a login or a confirmation must be for what lets others in: tokens, deputies, addresses,
    /// accounts and their rights.
    pub confirm_after: Span,
    /// Who must have a second factor.
    pub second_factor: RequiredFor,
}

impl Default for LoginPolicy {
    fn default() -> Self {
        Self {
            session_idle: Span(Duration::from_hours(24)),
            session_life: Span(Duration::from_hours(14 * 24)),
            token_life: None,
            token_sign_in: Span(Duration::from_hours(30 * 24)),
            confirm_after: Span(Duration::from_mins(10)),
            second_factor: RequiredFor::Nobody,
        }
    }
}

impl LoginPolicy {
    /// Whether this person must set up a second factor before anything else.
    pub fn lacks_factor(&self, person: &UserRecord) -> bool {
        person.confirmed_factor().is_none() && self.second_factor.includes(person)
    }

    /// Returns when the tokens of this person lapse unless they sign in with the identity provider before that. `None`
    /// for people who do not sign in there.
    pub fn tokens_until(&self, person: &UserRecord) -> Option<Timestamp> {
        let signed_in = person.signed_in_at.unwrap_or(person.user.created_at);
        person.account.as_ref().map(|_| signed_in.after(self.token_sign_in.0))
    }

    /// Returns the end of a session that is used at `now`.
    pub fn session_until(&self, created_at: Timestamp, now: Timestamp) -> Timestamp {
        now.after(self.session_idle.0).min(created_at.after(self.session_life.0))
    }
}

/// Who must have a second factor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequiredFor {
    /// Nobody; a second factor is optional.
    #[default]
    Nobody,
    /// Only people with the role `admin`.
    Admins,
    /// Everyone who logs in with a password.
    All,
}

impl RequiredFor {
    /// Whether this person must have a second factor. For those who sign in with the identity provider, the provider
    /// decides.
    pub fn includes(self, person: &UserRecord) -> bool {
        match self {
            _ if person.account.is_some() => false,
            Self::Nobody => false,
            Self::Admins => person.user.roles.iter().any(|role| role == shared::access::ADMIN),
            Self::All => true,
        }
    }
}
