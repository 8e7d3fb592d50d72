//! The notification settings of people.

use shared::access::{ADMIN, Act, Principal};
use shared::id::Username;
use shared::log::{EventData, UserChanged};
use shared::notification::Notifications;

use super::super::notifications::StoredNotifications;
use super::super::{ChosenNotifications, CommitError, Committed};
use super::group::{ChangeResult, Group};
use super::rights::{LastLogin, allow};
use crate::clock::Moment;

impl Group {
    pub fn choose_notifications(
        &mut self,
        by: Option<&Principal>,
        last_login: LastLogin,
        chosen: ChosenNotifications,
        moment: Moment,
    ) -> ChangeResult {
        let ChosenNotifications { username, mut notifications } = chosen;
        allow(by, Act::ManageNotifications(&username))?;
        self.check_slack_user(by, &username, notifications.slack_user_id.as_deref())?;
        if !self.users.contains_key(&username) {
            return Err(CommitError::NotFound);
        }
        notifications.slack_confirmed = self.is_slack_confirmed(by, &username, &notifications)?;
        if self.is_new_address(&username, &notifications) {
            last_login.require_recent()?;
        }
        let changed = UserChanged { notifications: Some(notifications.clone()), ..UserChanged::of(username.clone()) };
        self.emit(by, &EventData::UserUpdated(changed), moment);
        self.store_notifications(username, notifications.into());
        Ok(Committed::Done)
    }

    /// Whether settings send messages to an address that did not get them before, or let a member of Slack decide. If the
    /// settings so far cannot be read, an e-mail address is new.
    fn is_new_address(&self, username: &Username, chosen: &Notifications) -> bool {
        let known = self.notifications.get(username).map(|known| &known.chosen);
        let is_new = |address: fn(&Notifications) -> &Option<String>| {
            address(chosen).is_some() && known.is_none_or(|known| address(known) != address(chosen))
        };
        let confirms = chosen.slack_confirmed && known.is_none_or(|known| !known.slack_confirmed);
        is_new(|chosen| &chosen.email) || is_new(|chosen| &chosen.slack_user_id) || confirms
    }

    /// Refuses a Slack member ID that the person may not get. Everyone may lose theirs.
    pub(super) fn check_slack_user(
        &self,
        by: Option<&Principal>,
        username: &Username,
        id: Option<&str>,
    ) -> Result<(), CommitError> {
        let known = self.notifications.get(username).and_then(|known| known.chosen.slack_user_id.as_deref());
        let Some(id) = id.filter(|id| Some(*id) != known) else { return Ok(()) };
        may_set_slack_user(by, username)?;
        match self.slack_users.get(id).filter(|name| *name != username) {
            Some(name) => Err(CommitError::Conflict(format!("{name} already uses the Slack member ID {id}"))),
            None => Ok(()),
        }
    }

    /// Whether a Slack member ID counts as confirmed with these settings. Only its owner can confirm it, and only as it
    /// is stored: an admin who enters their own ID for somebody else would decide in their name. At the server's
    /// terminal, the operator vouches for it.
    fn is_slack_confirmed(
        &self,
        by: Option<&Principal>,
        username: &Username,
        chosen: &Notifications,
    ) -> Result<bool, CommitError> {
        let known = self.notifications.get(username).map(|known| &known.chosen);
        let Some(known) = known.filter(|known| known.slack_user_id == chosen.slack_user_id) else {
            return Ok(by.is_none() && chosen.slack_user_id.is_some());
        };
        if known.slack_user_id.is_none() || known.slack_confirmed || !chosen.slack_confirmed {
            return Ok(known.slack_confirmed);
        }
        match by.filter(|by| by.username != *username) {
            Some(_) => Err(CommitError::Forbidden(format!(
                "only {username} can confirm that this Slack member ID is theirs: they log in and do so in their \
                 notification settings"
            ))),
            None => Ok(true),
        }
    }

    /// Sets or removes a person's Slack member ID, and returns their settings if they change. A new ID is not confirmed,
    /// unless it was set at the server's terminal.
    pub(super) fn set_slack_user(
        &mut self,
        by: Option<&Principal>,
        username: &Username,
        id: Option<String>,
    ) -> Option<Notifications> {
        let mut stored = self.notifications.get(username).cloned().unwrap_or_default();
        let is_same = stored.chosen.slack_user_id == id;
        let confirmed = id.is_some() && (by.is_none() || (is_same && stored.chosen.slack_confirmed));
        if is_same && stored.chosen.slack_confirmed == confirmed {
            return None;
        }
        stored.chosen.slack_confirmed = confirmed;
        stored.chosen.slack_user_id = id;
        let chosen = stored.chosen.clone();
        self.store_notifications(username.clone(), stored);
        Some(chosen)
    }

    fn store_notifications(&mut self, username: Username, stored: StoredNotifications) {
        self.slack_users.retain(|_, name| *name != username);
        self.slack_users.extend(stored.chosen.slack_user_id.clone().map(|id| (id, username.clone())));
        self.notifications.insert(username.clone(), stored.clone());
        self.out.notifications.insert(username, stored);
    }
}

/// Whoever presses a button in Slack acts with all roles of the person, without their password or second factor, and
/// nothing proves whose member ID it is. So only an admin sets it, and only that of others: somebody else's session must
/// not suffice to take over an account.
fn may_set_slack_user(by: Option<&Principal>, username: &Username) -> Result<(), CommitError> {
    let Some(by) = by else { return Ok(()) };
    let why = if !by.has(ADMIN) {
        "only an admin can set a Slack member ID; you can remove yours"
    } else if by.username == *username {
        "another admin, or `countersign user slack`, sets your Slack member ID"
    } else {
        return Ok(());
    };
    Err(CommitError::Forbidden(why.to_owned()))
}
