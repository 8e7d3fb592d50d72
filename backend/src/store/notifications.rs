//! The notification settings of people.

use std::collections::HashMap;

use shared::JsonMap;
use shared::notification::Notifications;

use super::batch::Table;
use super::blobs::encode_whole;
use super::db::{Arg, Conn, Row, Sql};
use super::users::{USER, USER_COLUMNS, user};
use super::{Error, Store, UserRecord};

pub(super) const NOTIFICATIONS: Table = Table { name: "notifications", key: "username", others: "slack_user_id, body" };

impl Store {
    /// Returns a person's choice, or `None` if they have not made one.
    pub async fn notifications(&self, username: &str) -> Result<Option<Notifications>, Error> {
        let sql = Sql::new("SELECT body FROM notifications WHERE username = ").bind(username);
        let row = self.inner.db.read().await?.fetch_one(sql).await?;
        row.map(|row| choice(&row, 0)).transpose()
    }

    /// Returns those who made a choice and may log in, with that choice; with `all`, also those who made none.
    pub async fn notified(&self, all: bool) -> Result<Vec<(UserRecord, Option<Notifications>)>, Error> {
        let join = if all { "LEFT JOIN" } else { "JOIN" };
        let sql = Sql::new("SELECT ").push(USER).push(", n.body FROM users u ").push(join);
        let sql = sql.push(" notifications n ON n.username = u.username WHERE u.active <> 0");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        let read = rows.iter().filter_map(|row| {
            let choice = match row.text_opt(USER_COLUMNS).ok()? {
                Some(_) => Some(readable(row, USER_COLUMNS)?),
                None => None,
            };
            Some((user(row, 0).ok()?, choice))
        });
        Ok(read.collect())
    }

    /// Returns the Slack member IDs of people, by their names.
    pub async fn slack_user_ids(&self) -> Result<HashMap<String, String>, Error> {
        let sql = Sql::new("SELECT username, slack_user_id FROM notifications WHERE slack_user_id IS NOT NULL");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
    }

    /// Returns the person whose Slack member ID this is, if any, and whether they have confirmed it.
    pub async fn person_of_slack(&self, slack_user_id: &str) -> Result<Option<(UserRecord, bool)>, Error> {
        let sql = Sql::new("SELECT ")
            .push(USER)
            .push(", n.body FROM notifications n JOIN users u ON u.username = n.username WHERE n.slack_user_id = ")
            .bind(slack_user_id);
        let row = self.inner.db.read().await?.fetch_one(sql).await?;
        let confirmed = |row: &Row| readable(row, USER_COLUMNS).is_some_and(|chosen| chosen.slack_confirmed);
        row.map(|row| Ok((user(&row, 0)?, confirmed(&row)))).transpose()
    }
}

impl Conn {
    /// Returns the Slack member IDs among these that are in use, each with its username.
    pub async fn slack_users<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<(String, String)>, Error> {
        let sql = Sql::new("SELECT slack_user_id, username FROM notifications WHERE slack_user_id").among(ids);
        let rows = self.fetch(sql).await?;
        rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
    }

    /// Returns the notification settings of these people, also those that cannot be read.
    pub async fn notifications_of<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<(String, StoredNotifications)>, Error> {
        let sql = Sql::new("SELECT username, body, slack_user_id FROM notifications WHERE username").among(names);
        let rows = self.fetch(sql).await?;
        let read = rows.iter().map(|row| {
            let stored = match readable(row, 1) {
                Some(chosen) => StoredNotifications::from(chosen),
                None => StoredNotifications {
                    chosen: Notifications { slack_user_id: row.text_opt(2)?, ..Notifications::default() },
                    unreadable: Some(row.text(1)?),
                },
            };
            Ok((row.text(0)?, stored))
        });
        read.collect()
    }
}

/// Someone's notification settings, as a writer changes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StoredNotifications {
    /// The settings. Of those that cannot be read, only the Slack member ID.
    pub chosen: Notifications,
    /// The stored body, if it cannot be read. A newer version may have written it, so only the Slack member ID in it is
    /// changed.
    pub unreadable: Option<String>,
}

impl From<Notifications> for StoredNotifications {
    fn from(chosen: Notifications) -> Self {
        Self { chosen, unreadable: None }
    }
}

impl StoredNotifications {
    pub fn row(&self, username: &str) -> Result<Vec<Arg>, Error> {
        let id = self.chosen.slack_user_id.clone();
        let body = match &self.unreadable {
            Some(body) => with_slack_user_id(body, id.as_deref()),
            None => encode_whole(&self.chosen)?,
        };
        Ok(vec![username.into(), id.into(), body.into()])
    }
}

/// Sets or removes the Slack member ID in the body of settings that cannot be read, where no ID counts as confirmed. A
/// body that is not even JSON stays as it is.
fn with_slack_user_id(body: &str, id: Option<&str>) -> String {
    let Ok(mut fields) = serde_json::from_str::<JsonMap>(body) else { return body.to_owned() };
    match id {
        Some(id) => fields.insert("slack_user_id".to_owned(), id.into()),
        None => fields.remove("slack_user_id"),
    };
    fields.remove("slack_confirmed");
    serde_json::Value::Object(fields).to_string()
}

/// Reads a choice. One that cannot be read is skipped, so that it does not keep others from being notified.
fn readable(row: &Row, at: usize) -> Option<Notifications> {
    choice(row, at).inspect_err(|error| tracing::error!(%error, "someone's notification settings cannot be read")).ok()
}

fn choice(row: &Row, at: usize) -> Result<Notifications, Error> {
    serde_json::from_str(&row.text(at)?).map_err(|error| Error::Stored(format!("notification settings: {error}")))
}
