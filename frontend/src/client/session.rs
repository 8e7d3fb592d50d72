//! Who is logged in, and what they may do. Asks the server nothing: `login` does.

use leptos::prelude::*;
use shared::access::{Access, Act, Principal, access, voice};
use shared::api::User;
use shared::id::Username;
use shared::review::Review;

use super::GlobalSignal;

/// Who is logged in. Cheap to copy into closures.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// The person; none while that is not known, and after logging out.
    pub me: GlobalSignal<Option<User>>,
    /// Why that could not be found out.
    pub error: RwSignal<Option<String>>,
    /// The server has said that nobody is logged in.
    pub signed_out: RwSignal<bool>,
    /// How many times somebody was found to be logged in on this page: what was asked before says nothing of who is now.
    pub logins: StoredValue<u32>,
    /// The server has said that the person must set up a second factor before anything else.
    pub factor_missing: RwSignal<bool>,
}

impl Session {
    /// A session in which nobody is known yet.
    pub fn new() -> Self {
        Self {
            me: GlobalSignal::new(None),
            error: RwSignal::new(None),
            signed_out: RwSignal::new(false),
            logins: StoredValue::new(0),
            factor_missing: RwSignal::new(false),
        }
    }

    /// The session of the page.
    pub fn expect() -> Self {
        expect_context()
    }

    /// Somebody has logged in.
    pub fn entered(self, user: User) {
        self.error.set(None);
        self.signed_out.set(false);
        self.logins.update_value(|logins| *logins += 1);
        self.me.set(Some(user));
    }

    /// Whether the person may do `act`. Follows the session.
    pub fn may(self, act: Act<'_>) -> bool {
        self.access(act) == Access::Allowed
    }

    /// Whether the person may do `act`, and if not, why. Follows the session.
    pub fn access(self, act: Act<'_>) -> Access {
        self.principal().map_or(Access::Hidden, |me| access(&me, act))
    }

    /// In whose name the person decides a review, where that is not their own. Follows the session.
    pub fn decides_for(self, review: &Review) -> Option<Username> {
        voice(&self.principal()?, review).ok()?
    }

    /// The person, as rights are asked for. Follows the session.
    pub fn principal(self) -> Option<Principal> {
        self.me.with(|me| {
            let me = me.as_ref()?;
            let all = Principal::new(me.username.clone(), me.roles.iter().cloned().collect());
            Some(Principal { stands_for: me.stands_for.clone(), ..all })
        })
    }

    /// Their username. Follows the session.
    pub fn username(self) -> Option<String> {
        self.me.with(|me| me.as_ref().map(|me| me.username.to_string()))
    }
}
