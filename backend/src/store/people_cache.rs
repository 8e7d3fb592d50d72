//! Everyone who may log in, as last read by a writer. Votes and exclusions depend on who there is, and reading thousands
//! of people for each group of changes would take longer than the rest of the group.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shared::access::Principal;
use shared::id::Username;

use super::Error;
use super::db::{Conn, Sql};

type People = Arc<BTreeMap<Username, Principal>>;

/// The people of the newest revision that was read. A trigger counts revisions in the transaction that changes people,
/// whichever server makes it.
#[derive(Default)]
pub(super) struct PeopleCache(Mutex<Option<(i64, People)>>);

impl PeopleCache {
    /// Returns everyone who may log in, with their roles, from the cache if they have not changed.
    pub async fn active(&self, conn: &mut Conn) -> Result<People, Error> {
        // Before the people: a change in between then belongs to a revision that is not known yet.
        let row = conn.fetch_one(Sql::new("SELECT revision FROM people_revision WHERE one = 1")).await?;
        let row = row.ok_or_else(|| Error::Stored("the table people_revision is empty".to_owned()))?;
        let revision = row.int(0)?;
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
    use super::*;
    use crate::store::tests::support::{World, on_both};

    on_both! {
        people_are_read_again_once_any_server_has_changed_them,
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
