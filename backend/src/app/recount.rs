//! Pending reviews follow the people: when somebody's rights change, the reviews that depend on who there is are looked
//! at again, so that none waits unseen for people who are gone. A vote looks again by itself; this is for the runs to
//! which nobody comes.

use std::sync::Arc;

use shared::log::{Entry, EntryKind};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::engine::{Input, Refusal};
use crate::live::Observe;
use crate::store::{Change, CommitError, Error, Operation, Store};

/// How many reviews are read at once.
const PAGE: u32 = 500;

/// Looks again at the start, since a server may have been stopped in between, and whenever the observer hears that
/// rights have changed.
pub fn start(store: Store, stopping: CancellationToken) -> Arc<dyn Observe> {
    let changed = Arc::new(Notify::new());
    changed.notify_one();
    let heard = Arc::clone(&changed);
    tokio::spawn(stopping.run_until_cancelled_owned(async move {
        loop {
            heard.notified().await;
            if let Err(error) = look_again(&store).await {
                tracing::warn!(%error, "who may vote could not be looked at again");
            }
        }
    }));
    Arc::new(Watch(changed))
}

struct Watch(Arc<Notify>);

impl Observe for Watch {
    fn entry(&self, entry: &Entry) {
        let data = &entry.event.data;
        let rights = || data.contains_key("roles") || data.contains_key("active");
        if matches!(entry.event.kind, EntryKind::UserCreated | EntryKind::UserUpdated) && rights() {
            self.0.notify_one();
        }
    }

    fn lost(&self) {
        self.0.notify_one();
    }
}

async fn look_again(store: &Store) -> Result<(), Error> {
    let mut after = None;
    loop {
        let page = store.watched_runs(after, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(*last);
        for (_, run) in page {
            let recount = Operation::Run { run, input: Box::new(Input::Recount) };
            match store.commit(Change::by_server(recount)).await {
                Ok(_) | Err(CommitError::Refused(Refusal::Unchanged)) => {}
                Err(error) => tracing::warn!(%error, %run, "who may vote could not be looked at again"),
            }
        }
    }
}
