//! Everyone who may log in, as last read by a writer. Votes and exclusions depend on who there is, and reading thousands
//! of people for each group of changes would take longer than the rest of the group.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shared::access::Principal;
use shared::id::Username;

use super::Error;
use super::db::{Conn, Row, Sql};

type People = Arc<BTreeMap<Username, Principal>>;

/// The people of the newest revision that was read. A trigger counts revisions in the transaction that changes people,
/// whichever server makes it. On PostgreSQL, it uses one of many counters, so that such transactions do not wait for
/// each other.
#[derive(Default)]
pub(super) struct PeopleCache(Mutex<Option<(i64, People)>>);

impl PeopleCache {
    /// Returns everyone who may log in, with their roles, from the cache if they have not changed.
    pub async fn active(&self, conn: &mut Conn) -> Result<People, Error> {
        // Before the people: a change in between then belongs to a revision that is not known yet.
        let sql = Sql::new("SELECT CAST(SUM(revision) AS BIGINT) FROM people_revision");
        let revision = conn.first(sql, Row::int).await?;
        let revision = revision.ok_or_else(|| Error::Stored("the table people_revision is empty".to_owned()))?;
        let kept = self.0.lock().as_ref().filter(|(at, _)| *at == revision).map(|(_, people)| Arc::clone(people));
        if let Some(people) = kept {
            return Ok(people);
        }
        let people = Arc::new(conn.active().await?);
        *self.0.lock() = Some((revision, Arc::clone(&people)));
        Ok(people)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::tests::support::{World, on_both};

    on_both! {
        people_are_read_again_once_any_server_has_changed_them,
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn transactions_that_change_different_people_do_not_wait_for_each_other() {
        let Some(world) = World::postgres().await else { return };
        let mut open = Vec::new();
        for name in ["ana", "tom"] {
            let mut conn = world.store.inner.db.write_on_this_thread().await.expect("begins");
            let row = conn.fetch_one(Sql::new("SELECT CAST(pg_backend_pid() % 64 AS BIGINT)")).await.expect("reads");
            let slot = row.expect("a row").int(0).expect("a number");
            // Two connections in 64 share a counter.
            if open.iter().all(|(other, _)| *other != slot) {
                let change = Sql::new("UPDATE users SET active = 0 WHERE username = ").bind(name);
                let changed = tokio::time::timeout(Duration::from_secs(20), conn.execute(change)).await;
                changed.expect("it does not wait").expect("it is changed");
            }
            open.push((slot, conn));
        }
        for (_, conn) in open {
            conn.rollback().await.expect("ends");
        }
    }

    async fn people_are_read_again_once_any_server_has_changed_them(world: World) {
        let inner = &world.store.inner;
        let read = async || {
            let mut conn = inner.db.write_on_this_thread().await.expect("begins");
            let people = inner.people.active(&mut conn).await.expect("reads");
            conn.rollback().await.expect("ends");
            people
        };
        let (first, again) = (read().await, read().await);
        assert!(Arc::ptr_eq(&first, &again), "nobody has changed");
        world.launch("hello").await;
        assert!(Arc::ptr_eq(&first, &read().await), "a run changes nobody");
        world.database.execute("UPDATE users SET active = 0 WHERE username = 'tom'").await.expect("runs");
        let names: Vec<_> = read().await.keys().map(|name| name.as_str().to_owned()).collect();
        assert_eq!(names, ["ana", "boss", "dev"]);
    }
}
