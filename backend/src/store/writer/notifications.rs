//! The notification settings of people.

use shared::access::{Act, Principal};
use shared::log::{EventData, UserChanged};

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
            // Anyone who presses a button in Slack acts with all roles of the person, but a token may have few of them.
            return Err(CommitError::Forbidden("a token cannot set a Slack member ID; log in to do so".to_owned()));
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
        let changed = UserChanged { notifications: Some(notifications.clone()), ..UserChanged::of(username.clone()) };
        self.emit(by, &EventData::UserUpdated(changed), moment);
        self.out.notifications.insert(username, notifications);
        Ok(Committed::Done)
    }
}
