//! Reviews that depend on who there is, and reviews that are for nobody: what is looked at again when people change.
//!
//! A review for people who are only named costs its run nothing more: whether there is anybody is asked here, beside
//! the commits, of what the lists' index has already.

use std::collections::BTreeSet;

use shared::id::{ReviewId, RunId};

use super::db::Sql;
use super::{Error, Store, visibility};

/// So many names that are nobody's are looked at together.
const MOST_NAMES: usize = 500;

impl Store {
    /// Runs with pending reviews that depend on who there is, after a place: who may vote, or whether anybody may.
    pub async fn runs_to_recount(&self, after: Option<ReviewId>, limit: u32) -> Result<Vec<(ReviewId, RunId)>, Error> {
        let sql = Sql::new("SELECT v.id, v.run_id FROM review_audience a JOIN reviews v ON v.id = a.review_id ")
            .push("WHERE a.pending = 1 AND a.subject = ")
            .bind(visibility::WATCHED);
        self.runs_of(sql, after, limit).await
    }

    /// Runs with pending reviews that name only people and roles behind whom is nobody, and do not say so yet, after a
    /// place.
    pub async fn runs_without_reviewers(
        &self,
        after: Option<ReviewId>,
        limit: u32,
    ) -> Result<Vec<(ReviewId, RunId)>, Error> {
        let mut named: BTreeSet<String> = self.subjects().await?.into_iter().filter(|one| names(one)).collect();
        if named.is_empty() {
            return Ok(Vec::new());
        }
        for person in self.people().await? {
            for name in visibility::names(&person) {
                named.retain(|subject| !name.own.contains(subject));
            }
        }
        let nobodys: Vec<&str> = named.iter().map(String::as_str).take(MOST_NAMES).collect();
        if nobodys.is_empty() {
            return Ok(Vec::new());
        }
        let sql = Sql::new(
            "SELECT DISTINCT v.id, v.run_id FROM review_audience a JOIN reviews v ON v.id = a.review_id ",
        )
        .push("WHERE a.pending = 1 AND a.subject IN (")
        .list(nobodys.iter().copied())
        .push(") AND NOT EXISTS (SELECT 1 FROM review_audience o WHERE o.review_id = a.review_id AND (o.subject = ")
        .bind(visibility::WATCHED)
        .push(" OR ((o.subject LIKE 'role:%' OR o.subject LIKE 'user:%' OR o.subject LIKE 'handed:%') ")
        .push("AND o.subject NOT IN (")
        .list(nobodys.iter().copied())
        .push("))))");
        self.runs_of(sql, after, limit).await
    }

    async fn runs_of(&self, sql: Sql, after: Option<ReviewId>, limit: u32) -> Result<Vec<(ReviewId, RunId)>, Error> {
        let after = after.map_or(uuid::Uuid::nil(), |id| id.0);
        let sql = sql.push(" AND v.id > ").bind(after).push(" ORDER BY v.id LIMIT ").bind(limit);
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(|row| Ok((ReviewId(row.uuid(0)?), RunId(row.uuid(1)?)))).collect()
    }

    /// Every subject under which a pending review is found. From one to the next along the index: there are few, and
    /// there may be very many reviews.
    async fn subjects(&self) -> Result<Vec<String>, Error> {
        let sql = Sql::new("WITH RECURSIVE s(subject) AS (SELECT MIN(subject) FROM review_audience UNION ALL ")
            .push("SELECT (SELECT MIN(n.subject) FROM review_audience n WHERE n.subject > s.subject) FROM s ")
            .push("WHERE s.subject IS NOT NULL) SELECT s.subject FROM s WHERE EXISTS ")
            .push("(SELECT 1 FROM review_audience a WHERE a.subject = s.subject AND a.pending = 1)");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(|row| Ok(row.text(0)?)).collect()
    }
}

/// Whether a subject is a role or person that a review is for.
fn names(subject: &str) -> bool {
    subject.starts_with("role:") || subject.starts_with("user:")
}
