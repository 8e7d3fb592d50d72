//! Which entries may change what people may do.

use super::{Event, EventData};
use crate::id::Username;

/// A possible change of what somebody may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RightsChange {
    /// The person; `None` if it may be anyone.
    pub person: Option<Username>,
    /// What may have changed.
    pub what: ChangedRights,
}

/// What a change of rights is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedRights {
    /// The person's roles, or whether they may log in.
    Roles,
    /// Whom the person stands in for.
    Deputyships,
    /// Only the person's sessions or tokens, some of which may have ended.
    Credentials,
}

impl Event {
    /// Returns whose rights the event may change; `None` if nobody's. An event that this version cannot read may change
    /// anyone's: a newer server may have written it.
    pub fn rights_change(&self) -> Option<RightsChange> {
        use ChangedRights::{Credentials, Deputyships, Roles};
        // Entries of runs and reviews change the rights of nobody, and are many.
        if self.run_id.is_some() || self.review_id.is_some() {
            return None;
        }
        let (person, what) = match self.read() {
            Some(EventData::UserCreated(changed) | EventData::UserUpdated(changed)) => {
                let what = if changed.concerns_rights() { Roles } else { Credentials };
                (Some(changed.username), what)
            }
            Some(EventData::DeputyNamed(named) | EventData::DeputyRemoved(named)) => (Some(named.deputy), Deputyships),
            // Others may have stood in for them, under the name that was replaced.
            Some(EventData::UserErased(erased)) => (Some(erased.username), Deputyships),
            Some(EventData::SessionEnded(ended)) => (Some(ended.username), Credentials),
            // Without an owner, in entries of older versions, it is anyone's.
            Some(EventData::TokenRevoked(revoked)) => (revoked.owner, Credentials),
            Some(EventData::Unreadable(_)) | None => (None, Roles),
            Some(_) => return None,
        };
        Some(RightsChange { person, what })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::id::RunId;
    use crate::log::EntryKind;

    fn event(kind: EntryKind, data: serde_json::Value) -> Event {
        let serde_json::Value::Object(data) = data else { panic!("{data} is no object") };
        Event { kind, at: crate::time::Timestamp(0), run_id: None, review_id: None, actor: None, token: None, data }
    }

    #[test]
    fn what_cannot_be_read_may_change_anyones_rights_except_in_a_run() {
        let anyones = Some(RightsChange { person: None, what: ChangedRights::Roles });
        let unknown = event(EntryKind::Unreadable, json!({ "reason": "unknown variant `user.merged`" }));
        assert_eq!(unknown.rights_change(), anyones);
        assert_eq!(event(EntryKind::UserUpdated, json!({ "person": "ana" })).rights_change(), anyones);
        let of_run = Event { run_id: Some(RunId(Uuid::nil())), ..unknown };
        assert_eq!(of_run.rights_change(), None);
    }

    #[test]
    fn a_change_says_whose_rights_it_concerns_and_which() {
        let ana = |what| Some(RightsChange { person: Some("ana".parse().unwrap()), what });
        let change = |kind, data| event(kind, data).rights_change();
        let roles = json!({ "username": "ana", "roles": [] });
        assert_eq!(change(EntryKind::UserCreated, roles.clone()), ana(ChangedRights::Roles));
        assert_eq!(change(EntryKind::UserUpdated, roles), ana(ChangedRights::Roles));
        let password = json!({ "username": "ana", "password": true });
        assert_eq!(change(EntryKind::UserUpdated, password), ana(ChangedRights::Credentials));
        assert_eq!(change(EntryKind::SessionEnded, json!({ "username": "ana" })), ana(ChangedRights::Credentials));
        assert_eq!(change(EntryKind::LinkCreated, json!({ "username": "ana" })), None);
    }
}
