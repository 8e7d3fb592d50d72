//! The notification settings of people.

use shared::access::{ADMIN, Act, Principal};
use shared::id::Username;
use shared::log::{EventData, UserChanged};
use shared::notification::Notifications;

use super::super::{ChosenNotifications, CommitError, Committed};
use super::group::Group;
use super::rights::allow;
use crate::clock::Moment;

impl Group {
    pub fn choose_notifications(
        &mut self,
        by: Option<&Principal>,
        chosen: ChosenNotifications,
        moment: Moment,
    ) -> Result<Committed, CommitError> {
        let ChosenNotifications { username, notifications } = chosen;
        if by.is_some_and(|by| by.username != username) {
            allow(by, Act::ManagePeople)?;
        }
        if by.is_some_and(|by| by.token) {
            return Err(CommitError::Forbidden("a token cannot change notifications; log in to do so".to_owned()));
        }
        let known = self.notifications.get(&username).and_then(|known| known.slack_user_id.as_ref());
        if notifications.slack_user_id.is_some() && notifications.slack_user_id.as_ref() != known {
            may_set_slack_user(by, &username)?;
        }
        if !self.users.contains_key(&username) {
            return Err(CommitError::NotFound);
        }
        self.slack_users.retain(|_, name| *name != username);
        if let Some(id) = &notifications.slack_user_id {
            if let Some(name) = self.slack_users.get(id) {
                return Err(CommitError::Conflict(format!("{name} already uses the Slack member ID {id}")));
            }
            self.slack_users.insert(id.clone(), username.clone());
        }
        self.store_notifications(by, username, notifications, moment);
        Ok(Committed::Done)
    }

    /// Removes a person's Slack member ID, if they have one: what it lets somebody do ends with their other access.
    pub(super) fn forget_slack_user(&mut self, by: Option<&Principal>, username: &Username, moment: Moment) {
        let Some(known) = self.notifications.get(username).filter(|known| known.slack_user_id.is_some()) else {
            return;
        };
        let notifications = Notifications { slack_user_id: None, ..known.clone() };
        self.slack_users.retain(|_, name| name != username);
        self.store_notifications(by, username.clone(), notifications, moment);
    }

    fn store_notifications(
        &mut self,
        by: Option<&Principal>,
        username: Username,
        notifications: Notifications,
        moment: Moment,
    ) {
        let changed = UserChanged { notifications: Some(notifications.clone()), ..UserChanged::of(username.clone()) };
        self.emit(by, &EventData::UserUpdated(changed), moment);
        self.notifications.insert(username.clone(), notifications.clone());
        self.out.notifications.insert(username, notifications);
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
