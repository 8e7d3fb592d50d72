//! Rechecks who may decide pending reviews. When someone's rights change, the reviews that depend on the existing users
//! are checked again, so that none waits unnoticed for people who are gone. A vote triggers a check itself; this is for
//! runs that receive none.
//!
//! Reviews for roles or people without any user behind them are also found here, soon after the request and not in its
//! commit: a rare case should not cost every run that names its reviewers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use shared::id::{ReviewId, RunId};
use shared::log::{ChangedRights, Entry};
use tokio::sync::Notify;

use crate::background::BackgroundTask;
use crate::engine::{Input, Refusal};
use crate::live::Observe;
use crate::store::{Change, CommitError, Error, Operation, Store};

const PAGE: u32 = 500;
/// The minimum interval between checks while runs are being committed.
const PAUSE: Duration = Duration::from_secs(5);
/// The maximum number of remembered reviews whose runs cannot be changed.
const MOST_FAILED: usize = 10_000;

/// Starts the task that rechecks reviews: once at the start, since rights may have changed while no server ran, and
/// whenever the returned observer sees that rights have changed. After commits, it looks for reviews that nobody may
/// decide.
pub fn start(store: Store) -> (Arc<dyn Observe>, BackgroundTask) {
    let changed = Arc::new(Notify::new());
    changed.notify_one();
    let heard = Arc::clone(&changed);
    let background = store.background().clone();
    let work = async move {
        let mut commits = store.commits();
        let mut recounts = Recounts { store, failed: HashSet::new() };
        loop {
            let checked = tokio::select! {
                () = heard.notified() => recounts.look_again().await,
                Ok(()) = commits.changed() => recounts.look_for_nobody().await,
                else => return,
            };
            if let Err(error) = checked {
                tracing::warn!(%error, "could not recheck who may decide; trying again");
                tokio::time::sleep(PAUSE).await;
                heard.notify_one();
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = heard.notified() => heard.notify_one(),
            }
        }
    };
    (Arc::new(Watch(changed)), background.run("recount", work))
}

struct Watch(Arc<Notify>);

impl Observe for Watch {
    fn entry(&self, entry: &Entry) {
        if entry.event.rights_change().is_some_and(|change| change.what == ChangedRights::Roles) {
            self.0.notify_one();
        }
    }

    fn lost(&self) {
        self.0.notify_one();
    }
}

#[derive(Debug, thiserror::Error)]
enum RecountError {
    #[error(transparent)]
    Read(#[from] Error),
    #[error(transparent)]
    Write(#[from] CommitError),
}

struct Recounts {
    store: Store,
    /// Reviews whose runs cannot be changed, for example because this server cannot read them. They are not tried again
    /// until rights change.
    failed: HashSet<ReviewId>,
}

impl Recounts {
    /// Rechecks every review that depends on the existing users.
    async fn look_again(&mut self) -> Result<(), RecountError> {
        self.failed.clear();
        let mut after = None;
        loop {
            let page = self.store.runs_to_recount(after, PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            self.recount(page).await?;
        }
        self.look_for_nobody().await
    }

    /// Rechecks reviews that nobody may decide and that are not marked as such.
    async fn look_for_nobody(&mut self) -> Result<(), RecountError> {
        let mut after = None;
        loop {
            let page = self.store.runs_without_reviewers(after, PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(*last);
            self.recount(page).await?;
        }
    }

    /// Rechecks a page of reviews. Fails if the store is unavailable; skips runs that cannot be changed.
    async fn recount(&mut self, page: Vec<(ReviewId, RunId)>) -> Result<(), CommitError> {
        for (review, run) in page {
            if self.failed.contains(&review) {
                continue;
            }
            let recount = Operation::Run { run, input: Box::new(Input::Recount) };
            match self.store.commit(Change::by_server(recount)).await {
                Ok(_) | Err(CommitError::Refused(Refusal::Unchanged)) => {}
                Err(error @ (CommitError::Unavailable(_) | CommitError::Unknown(_))) => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, %run, %review, "could not recheck who may decide a review");
                    if self.failed.len() >= MOST_FAILED {
                        self.failed.clear();
                    }
                    self.failed.insert(review);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::JsonMap;
    use shared::api::UserPatch;
    use shared::review::Review;

    use super::*;
    use crate::store::tests::support::{World, actor, decide, decided, new_run, on_both};
    use crate::store::{NewFlow, UserChange};

    on_both! {
        a_review_for_nobody_says_so_until_there_is_somebody,
    }

    /// Starts a run that asks these people.
    async fn asked(world: &World, id: &str, reviewers: serde_json::Value) -> Review {
        let options = json!([{ "id": "yes", "label": "Yes" }]);
        let human = json!({ "prompt": "Well?", "options": options, "reviewers": reviewers });
        let flow = json!({ "id": id, "nodes": { "ask": { "human": human } } });
        let new = NewFlow {
            flow: serde_json::from_value(flow.clone()).expect("a flow"),
            source: flow.to_string(),
            digest: format!("sha256:{id}"),
        };
        world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("saved");
        let (run, flow) = (new_run(), id.parse().expect("an id"));
        let operation = Operation::launch(run, flow, JsonMap::new());
        world.store.commit(Change { by: Some(actor("dev")), key: None, operation }).await.expect("the run starts");
        world.review_of(run).await
    }

    fn recounts(world: &World) -> Recounts {
        Recounts { store: world.store.clone(), failed: HashSet::new() }
    }

    async fn roles(world: &World, name: &str, roles: &[&str]) {
        let roles = Some(roles.iter().map(ToString::to_string).collect());
        let patch = UserPatch { roles, ..UserPatch::default() };
        let change = UserChange { username: name.parse().expect("a name"), patch, password_hash: None };
        world.store.commit(Change::by_server(Operation::UpdateUser(Box::new(change)))).await.expect("changed");
        recounts(world).look_again().await.expect("looks");
    }

    async fn a_review_for_nobody_says_so_until_there_is_somebody(world: World) {
        let legal = asked(&world, "legal", json!({ "roles": ["legal"], "users": ["gone"] })).await;
        let tom = asked(&world, "tom", json!({ "roles": ["legal"], "users": ["tom"] })).await;
        let anybody = asked(&world, "anybody", json!({})).await;
        let problem = async |of: &Review| world.store.review(of.id).await.expect("reads").expect("is there").problem;
        assert_eq!(problem(&legal).await, None, "the commit that asks looks at nobody");

        recounts(&world).look_for_nobody().await.expect("looks");
        let found = problem(&legal).await.expect("it says so");
        assert!(found.starts_with("nobody may decide this, which is for legal and gone: an admin can"), "{found}");
        assert_eq!((problem(&tom).await, problem(&anybody).await), (None, None));
        assert_eq!(world.store.runs_without_reviewers(None, 10).await.expect("reads"), [], "and is looked at once");

        roles(&world, "tom", &["reviewer", "legal"]).await;
        assert_eq!(problem(&legal).await, None);
        roles(&world, "tom", &["reviewer"]).await;
        assert!(problem(&legal).await.is_some() && problem(&tom).await.is_none());

        // A decision rechecks the review itself.
        world.add_user("lea", &["legal"]).await;
        let review = world.store.review(legal.id).await.expect("reads").expect("is there");
        let answer = decided(world.store.commit(decide(&review, "lea", "yes")).await).expect("decided");
        assert_eq!((answer.review.is_pending(), answer.review.problem), (false, None));
    }
}
