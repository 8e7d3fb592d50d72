//! Who is logged in, and their rights. Requests to the server are in `login`.

use leptos::prelude::*;
use shared::access::{Access, Act, Principal, access, voice};
use shared::api::User;
use shared::error::{Code, ConfirmWith, Problem};
use shared::id::Username;
use shared::review::Review;

use super::GlobalSignal;

/// The session. Cheap to copy into closures.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// The person; `None` while unknown, and after logging out.
    pub me: GlobalSignal<Option<User>>,
    /// The error, if this could not be determined.
    pub error: GlobalSignal<Option<String>>,
    /// Whether the server has said that no one is logged in.
    pub signed_out: GlobalSignal<bool>,
    /// The number of logins on this page: responses from before the last one do not belong to the current person.
    pub logins: StoredValue<u32>,
    /// Whether the server has said that the person must first set up a second factor.
    pub factor_missing: GlobalSignal<bool>,
    /// How the person confirms that it is they, after the server has said that they must.
    pub unconfirmed: GlobalSignal<Option<ConfirmWith>>,
}

/// Returns the refusal that is shown where it was caused; `None` if the dialog that follows [`Session::unconfirmed`] asks
/// for what was missing, since the message would still be there once the person has given it.
pub fn to_show(refused: Problem) -> Option<Problem> {
    (refused.code != Code::ConfirmationRequired).then_some(refused)
}

impl Session {
    /// Creates a session in which no person is known yet.
    pub fn new() -> Self {
        Self {
            me: GlobalSignal::new(None),
            error: GlobalSignal::new(None),
            signed_out: GlobalSignal::new(false),
            logins: StoredValue::new(0),
            factor_missing: GlobalSignal::new(false),
            unconfirmed: GlobalSignal::new(None),
        }
    }

    /// Records that a person has logged in.
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

    /// Why the person may not do `act`; `None` if they may, or if nobody is logged in. Follows the session.
    pub fn denied(self, act: Act<'_>) -> Option<&'static str> {
        match self.access(act) {
            Access::Denied(why) => Some(why),
            Access::Allowed | Access::Hidden => None,
        }
    }

    /// Whether the person may do `act`, and if not, why. Follows the session.
    pub fn access(self, act: Act<'_>) -> Access {
        self.principal().map_or(Access::Hidden, |me| access(&me, act))
    }

    /// Returns the person in whose name this one decides a review; `None` if in their own. Follows the session.
    pub fn decides_for(self, review: &Review) -> Option<Username> {
        voice(&self.principal()?, review).ok()?
    }

    /// Returns the person as a principal. Follows the session.
    pub fn principal(self) -> Option<Principal> {
        self.me.with(|me| {
            let me = me.as_ref()?;
            let all = Principal::new(me.username.clone(), me.roles.iter().cloned().collect());
            Some(Principal { stands_for: me.stands_for.clone(), ..all })
        })
    }

    /// Returns their username. Follows the session.
    pub fn username(self) -> Option<Username> {
        self.me.with(|me| me.as_ref().map(|me| me.username.clone()))
    }
}
