//! What happened to an account, in words: an admin who changes their own rights, or in whose name somebody decides in
//! Slack, must stand out in the audit log.

use shared::author::Author;
use shared::log::UserChanged;

use super::sentences::listed;

/// Returns what somebody did when they changed an account.
pub fn account_changed(by: Option<&Author>, changed: &UserChanged) -> String {
    let name = &changed.username;
    let own = by.is_some_and(|by| by.name == *name);
    if let Some(roles) = &changed.roles {
        let roles = if roles.is_empty() { "without roles".to_owned() } else { listed(roles) };
        return if own {
            format!("changed their own roles, now {roles}")
        } else {
            format!("changed {name}, now {roles}")
        };
    }
    match changed.notifications.as_ref() {
        Some(now) if !own => match &now.slack_user_id {
            Some(id) if now.slack_confirmed => format!("changed {name}, whose member ID in Slack is {id}"),
            Some(id) => format!("changed {name}, whose member ID in Slack is {id}, which {name} has not confirmed"),
            None => format!("changed {name}, who has no member ID in Slack"),
        },
        _ if own => "changed their own account".to_owned(),
        _ => format!("changed {name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_admin_who_changes_their_own_rights_or_a_member_id_stands_out() {
        let by = |name: &str| Some(Author::from(name.parse::<shared::id::Username>().expect("a name")));
        let told = |who: &str, change: Value| {
            let change = serde_json::from_value(change).expect("a change");
            account_changed(by(who).as_ref(), &change)
        };
        let roles = json!({ "username": "boss", "roles": ["admin", "legal"] });
        assert_eq!(told("boss", roles.clone()), "changed their own roles, now admin and legal");
        assert_eq!(told("eve", roles), "changed boss, now admin and legal");
        let member = |confirmed: bool| json!({ "username": "ana", "notifications": { "slack_user_id": "U1", "slack_confirmed": confirmed } });
        let open = "changed ana, whose member ID in Slack is U1, which ana has not confirmed";
        assert_eq!(told("boss", member(false)), open);
        assert_eq!(told("boss", member(true)), "changed ana, whose member ID in Slack is U1");
        assert_eq!(told("ana", member(true)), "changed their own account");
        assert_eq!(told("boss", json!({ "username": "ana", "password": true })), "changed ana");
    }
}
