//! The saved views of people. Each view is read by itself: one that a later version has saved may be unreadable, and must
//! not keep the others from being shown or replaced. It is kept for that version.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::saved_view::{MAX_VIEW_NAME, MAX_VIEWS, SavedView, Views};

use super::batch::Table;
use super::db::{Conn, Row, Sql};
use super::unreadable::reason;
use super::{Error, Store};

pub(super) const VIEWS: Table = Table { name: "views", key: "username", others: "body" };

/// The stored form of [`Views`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredViews {
    pub revision: u64,
    views: Vec<Value>,
}

impl StoredViews {
    /// Returns the next revision, with these views in place of those that can be read. The others follow, as far as there
    /// is room, and give way: the person does not see them, so they may have chosen the same name, or another default.
    pub fn replaced_by(self, views: &[SavedView]) -> serde_json::Result<Self> {
        let mut replaced = views.iter().map(serde_json::to_value).collect::<serde_json::Result<Vec<_>>>()?;
        // Names that differ only in case are the same.
        let mut names: BTreeSet<String> = views.iter().map(|view| view.name.to_lowercase()).collect();
        let has_default = views.iter().any(|view| view.default);
        let unreadable = self.views.into_iter().filter(|view| SavedView::deserialize(view).is_err());
        for mut kept in unreadable.take(MAX_VIEWS.saturating_sub(views.len())) {
            if has_default && let Some(members) = kept.as_object_mut() {
                members.remove("default");
            }
            if let Some(Value::String(name)) = kept.get_mut("name") {
                *name = free_name(name, &names);
                names.insert(name.to_lowercase());
            }
            replaced.push(kept);
        }
        Ok(Self { revision: self.revision + 1, views: replaced })
    }
}

/// Returns the name if it is free, or else with a number: `Mine (2)`.
fn free_name(name: &str, taken: &BTreeSet<String>) -> String {
    let mut free = name.to_owned();
    for number in 2.. {
        if !taken.contains(&free.to_lowercase()) {
            break;
        }
        let end = format!(" ({number})");
        free = name.chars().take(MAX_VIEW_NAME - end.len()).collect::<String>() + &end;
    }
    free
}

impl Store {
    /// Returns a person's views, without those that cannot be read.
    pub async fn saved_views(&self, username: &str) -> Result<Views, Error> {
        let sql = Sql::new("SELECT body FROM views WHERE username = ").bind(username);
        let Some(row) = self.inner.db.read().await?.fetch_one(sql).await? else { return Ok(Views::default()) };
        let StoredViews { revision, views } = stored(&row, 0)?;
        let views = views.into_iter().filter_map(|view| serde_json::from_value(view).inspect_err(report).ok());
        Ok(Views { revision, views: views.collect() })
    }
}

impl Conn {
    pub async fn saved_views_of<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<(String, StoredViews)>, Error> {
        let rows = self.fetch(Sql::new("SELECT username, body FROM views WHERE username").among(names)).await?;
        rows.iter().map(|row| Ok((row.text(0)?, stored(row, 1)?))).collect()
    }
}

/// Reads stored views. What cannot be read at all is as if there were none.
fn stored(row: &Row, at: usize) -> Result<StoredViews, Error> {
    Ok(serde_json::from_str(&row.text(at)?).inspect_err(report).unwrap_or_default())
}

fn report(error: &serde_json::Error) {
    tracing::error!(error = %reason(error), "a saved view cannot be read");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_view_that_cannot_be_read_is_kept_and_gives_way_to_those_of_the_person() {
        let later = |name: &str| json!({ "name": name, "filter": "of a later version", "default": true });
        assert!(SavedView::deserialize(later("Mine")).is_err());
        let long = "x".repeat(MAX_VIEW_NAME);
        let kept = ["mine", "Mine (2)", &long, "Other"].map(later).to_vec();
        let stored = StoredViews { revision: 4, views: kept };
        let view = |name: &str, default| SavedView { name: name.to_owned(), default, ..SavedView::default() };

        let replaced = stored.clone().replaced_by(&[view("Mine", true), view(&long, false)]).unwrap();
        let names: Vec<&str> = replaced.views.iter().filter_map(|view| view["name"].as_str()).collect();
        let cut = format!("{} (2)", &long[4..]);
        assert_eq!(names, ["Mine", &long, "mine (2)", "Mine (2) (2)", &cut, "Other"]);
        let defaults: Vec<usize> = (0..6).filter(|at| replaced.views[*at]["default"] == true).collect();
        assert_eq!((replaced.revision, defaults), (5, vec![0]));
        assert_eq!(replaced.views[5]["filter"], later("")["filter"]);

        let replaced = stored.replaced_by(&[view("First", false)]).unwrap();
        assert_eq!(replaced.views[4], later("Other"), "nothing stands in its way");
    }
}
