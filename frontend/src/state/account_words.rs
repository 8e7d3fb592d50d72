//! What happened to an account, in words. The audit log shows each part of a change, since any of them may be how
//! somebody got in: an admin who changes their own rights, a new password, a second factor that is off.

use shared::author::Author;
use shared::log::{SecondFactorChange, SingleSignOn, UserChanged};
use shared::notification::Notifications;

use super::sentences::listed;

/// Returns what somebody did when they changed an account.
pub fn account_changed(by: Option<&Author>, changed: &UserChanged) -> String {
    let own = by.is_some_and(|by| by.name == changed.username);
    let whose = if own { "their own account" } else { changed.username.as_str() };
    let parts = parts(own, changed);
    if parts.is_empty() { format!("changed {whose}") } else { format!("changed {whose}: {}", listed(&parts)) }
}

fn parts(own: bool, changed: &UserChanged) -> Vec<String> {
    let roles = changed.roles.as_ref().map(|roles| match roles.as_slice() {
        [] => "no roles".to_owned(),
        [role] => format!("the role {role}"),
        roles => format!("the roles {}", listed(roles)),
    });
    let given = |text: &Option<String>, what: &str| {
        let text = text.as_ref()?;
        Some(if text.is_empty() { format!("no {what}") } else { format!("a new {what}") })
    };
    let is = |is: bool, words: &str| is.then(|| words.to_owned());
    let active = changed.active.map(|active| if active { "may log in" } else { "may no longer log in" }.to_owned());
    let second_factor = changed.second_factor.map(|change| match change {
        SecondFactorChange::Begun => "a second factor, not confirmed yet",
        SecondFactorChange::On => "the second factor is on",
        SecondFactorChange::Off => "the second factor is off",
    });
    let single_sign_on = changed.single_sign_on.as_ref().map(|change| match change {
        SingleSignOn::Linked(false) => "no account at the identity provider",
        SingleSignOn::Linked(true) => "as the identity provider says",
        SingleSignOn::Account { .. } => "a new account at the identity provider",
    });
    [
        roles,
        active,
        given(&changed.display_name, "name"),
        given(&changed.email, "e-mail address"),
        is(changed.password, "a new password"),
        is(changed.tokens_ended, "no tokens"),
        second_factor.map(str::to_owned),
        single_sign_on.map(str::to_owned),
        changed.notifications.as_ref().map(|now| notifications(own, &changed.username, now)),
        is(changed.views, "saved views"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Admins change only the member ID, in whose name somebody decides in Slack.
fn notifications(own: bool, name: &str, now: &Notifications) -> String {
    match &now.slack_user_id {
        _ if own => "notifications".to_owned(),
        Some(id) if now.slack_confirmed => format!("the member ID in Slack is {id}"),
        Some(id) => format!("the member ID in Slack is {id}, which {name} has not confirmed"),
        None => "no member ID in Slack".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_part_of_a_change_is_told() {
        let by = |name: &str| Some(Author::from(name.parse::<shared::id::Username>().expect("a name")));
        let told = |who: &str, change: Value| {
            let change = serde_json::from_value(change).expect("a change");
            account_changed(by(who).as_ref(), &change)
        };
        let roles = json!({ "username": "boss", "roles": ["admin", "legal"] });
        assert_eq!(told("boss", roles.clone()), "changed their own account: the roles admin and legal");
        assert_eq!(told("eve", roles), "changed boss: the roles admin and legal");
        let several = json!({ "username": "ana", "roles": [], "active": false, "email": "", "password": true });
        let expected = "changed ana: no roles, may no longer log in, no e-mail address and a new password";
        assert_eq!(told("boss", several), expected);
        let factor = json!({ "username": "ana", "second_factor": "off" });
        assert_eq!(told("boss", factor.clone()), "changed ana: the second factor is off");
        assert_eq!(told("ana", factor), "changed their own account: the second factor is off");
        let member = |confirmed: bool| json!({ "username": "ana", "notifications": { "slack_user_id": "U1", "slack_confirmed": confirmed } });
        let open = "changed ana: the member ID in Slack is U1, which ana has not confirmed";
        assert_eq!(told("boss", member(false)), open);
        assert_eq!(told("boss", member(true)), "changed ana: the member ID in Slack is U1");
        assert_eq!(told("ana", member(true)), "changed their own account: notifications");
        assert_eq!(told("boss", json!({ "username": "ana" })), "changed ana");
    }
}
