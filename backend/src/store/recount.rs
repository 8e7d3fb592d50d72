//! Reviews that depend on which users exist, and reviews for no one: both are checked again when users change.
//!
//! A review that only names people and roles costs its run nothing extra: whether these exist is checked here, outside
//! of commits, for each class of the queue.

use std::collections::BTreeSet;

use shared::id::{ReviewId, RunId};
use shared::review::Review;
use uuid::Uuid;

use super::db::{Conn, Sql};
use super::log_index::padded;
use super::{Error, Store, visibility};

impl Store {
    /// Returns runs with pending reviews that depend on which users exist, because that decides who may vote, or
    /// whether anyone may. Continues after the review `after`.
    pub async fn runs_to_recount(&self, after: Option<ReviewId>, limit: u32) -> Result<Vec<(ReviewId, RunId)>, Error> {
        let mut conn = self.inner.db.read().await?;
        let classes = self.classes(&mut conn).await?.into_iter();
        let watched = classes
            .filter(|(_, outline)| (outline.depends_on_people() || is_delegated(outline)) && !outline.unreadable);
        let watched = watched.map(|(class, _)| class);
        conn.runs_of(watched.collect(), after, limit).await
    }

    /// Returns runs with pending reviews that only name people and roles that do not exist, and are not marked as such
    /// yet. Continues after the review `after`.
    pub async fn runs_without_reviewers(
        &self,
        after: Option<ReviewId>,
        limit: u32,
    ) -> Result<Vec<(ReviewId, RunId)>, Error> {
        let mut conn = self.inner.db.read().await?;
        let classes = self.classes(&mut conn).await?.into_iter();
        let named = classes
            .filter(|(_, outline)| !outline.depends_on_people() && !is_delegated(outline) && !outline.unreadable);
        let named = named.filter_map(|(class, outline)| Some((class, named_by(&outline)?)));
        let mut named: Vec<(Uuid, BTreeSet<String>)> = named.collect();
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let somebodys: BTreeSet<String> =
            self.people().await?.iter().flat_map(visibility::names).flat_map(|name| name.own).collect();
        named.retain(|(_, named)| named.is_disjoint(&somebodys));
        conn.runs_of(named.into_iter().map(|(class, _)| class).collect(), after, limit).await
    }
}

impl Conn {
    /// Returns the runs of the pending reviews of these classes, by the ids of the reviews.
    async fn runs_of(
        &mut self,
        classes: Vec<Uuid>,
        after: Option<ReviewId>,
        limit: u32,
    ) -> Result<Vec<(ReviewId, RunId)>, Error> {
        let after = after.map_or(Uuid::nil(), |id| id.0);
        let sql = Sql::new("SELECT v.id, r.run_id FROM queue v JOIN reviews r ON r.id = v.id WHERE v.class");
        let sql =
            sql.among(padded(&classes)).push(" AND v.id > ").bind(after).push(" ORDER BY v.id LIMIT ").bind(limit);
        let rows = self.fetch(sql).await?;
        rows.iter().map(|row| Ok((ReviewId(row.uuid(0)?), RunId(row.uuid(1)?)))).collect()
    }
}

/// Whether someone has delegated their vote to another person, who may be gone.
fn is_delegated(outline: &Review) -> bool {
    !outline.delegations.is_empty()
}

/// The roles and people that the reviews of a class name. `None` if they name none.
fn named_by(outline: &Review) -> Option<BTreeSet<String>> {
    let named: BTreeSet<String> = visibility::audience_keys(outline).into_iter().filter(|key| names(key)).collect();
    (!named.is_empty()).then_some(named)
}

/// Whether an audience key is a named role or person.
fn names(key: &str) -> bool {
    key.starts_with("role:") || key.starts_with("user:")
}
