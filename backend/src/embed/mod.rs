//! Countersign inside a program: the same engine, store and worker as on a server, with functions as reviewers.
//!
//! [`Options`] set the reviewers and the functions that are tools; [`Options::start`] returns a [`Countersign`], which
//! runs flows. The command `countersign flow run` is such a program: its reviewer is the terminal.
//!
//! Builds on `crate::app`.

mod ask;
mod choice;
mod decide;
mod error;
mod function;
mod handler;
mod options;
mod reviewer;
mod reviewer_loop;
mod running;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use shared::access::{DEVELOPER, Principal};
use shared::definition::Flow;
use shared::error::Mistake;
use shared::id::{ReviewId, RunId, Username};
use shared::log::Entry;
use shared::review::Review;
use shared::run::Context;
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio::time::Instant;

pub use choice::{Choice, Declined, IntoChoice};
pub use decide::DecideError;
pub use error::{RunError, StartError};
pub use handler::Handled;
pub use options::Options;
pub use reviewer::{Reviewer, reviewer_fn};
pub use running::{Finished, Running};
pub use stream::TextStream;

use crate::app::{ANSWER_LIMIT, Runner, Server};
use crate::background::BackgroundTask;
use crate::clock::{Moment, SharedClock};
use crate::flow::{self, Reach};
use crate::live::{Listening, Observe};
use crate::store::{self, Actor, Change, CommitError, Committed, NewFlow, Operation, Store};
use crate::token_stream::Streams;
use function::Functions;
use handler::Handlers;

/// Runs flows in this program.
pub struct Countersign {
    inner: Arc<Inner>,
    notifier: Option<BackgroundTask>,
    server: Option<Server>,
    links: Vec<(Username, String)>,
    /// The receivers of run entries, which are sent only while someone listens.
    _listening: Listening,
    runner: Option<Runner>,
    /// A folder that is removed at the end.
    folder: Option<TempDir>,
}

impl Countersign {
    /// Returns [`Options`] to configure it.
    pub fn options() -> Options {
        Options::new()
    }

    /// Runs a flow to its end, asking reviewers on the way. `input` is an object. If the run does not complete, this is
    /// a [`RunError`]; if a person stopped it, [`RunError::Rejected`].
    pub async fn run(&self, flow: &Flow, input: impl Serialize) -> Result<Finished, RunError> {
        self.launch(flow, input, Context::default()).await?.finished().await
    }

    /// Saves a flow that others call, and returns its version. Save the calling flows after it.
    pub async fn add(&self, flow: &Flow) -> Result<u32, RunError> {
        let mut missing = self.inner.functions.missing(flow);
        missing.extend(self.inner.handlers.missing(flow));
        missing.extend(flow::unreachable(flow, &self.inner.reach));
        if missing.is_empty() { self.inner.save(flow).await } else { Err(RunError::Invalid(missing)) }
    }

    /// Starts a run for a person, and returns without waiting for it.
    pub async fn launch(&self, flow: &Flow, input: impl Serialize, context: Context) -> Result<Running, RunError> {
        let not_an_object = |why: String| RunError::Invalid(vec![Mistake::new("/input", "invalid", why)]);
        let input = match serde_json::to_value(input) {
            Ok(Value::Object(input)) => input,
            Ok(other) => {
                let why = format!("expected an object, but this is {}", shared::error::json_type(&other));
                return Err(not_an_object(why));
            }
            Err(error) => return Err(not_an_object(error.to_string())),
        };
        let version = self.add(flow).await?;
        let id = RunId(Moment::of(&*self.inner.clock).ids().uuid());
        let news = self.inner.news.subscribe();
        self.inner.watch(Awaited::Run(id));
        let running = Running::new(id, Arc::clone(&self.inner), news);
        let operation = Operation::Launch {
            run: id,
            flow: flow.id.clone(),
            version: Some(version),
            input,
            context: Box::new(context),
            callback_url: None,
        };
        self.inner.commit(operation).await?;
        Ok(running)
    }

    /// Returns the address of the console, if it is served.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(Server::address)
    }

    /// Returns the one-time login secrets of all people for the console, by name: open `/login#token=<secret>`. Empty if
    /// the console is not served.
    pub fn links(&self) -> &[(Username, String)] {
        &self.links
    }

    /// Finishes or releases the work in progress, and closes the database. Waiting runs continue if the database is
    /// kept and a program or a server is started on it.
    pub async fn shutdown(mut self) {
        if let Some(notifier) = self.notifier.take() {
            notifier.stop().await;
        }
        let server = self.server.take();
        server.iter().for_each(Server::stop);
        if let Some(runner) = self.runner.take() {
            runner.stop().await;
        }
        if let Some(server) = server {
            server.stopped(Instant::now() + ANSWER_LIMIT).await;
        }
        self.inner.store.close().await;
        drop(self.folder.take());
    }
}

impl Drop for Countersign {
    fn drop(&mut self) {
        self.server.iter().for_each(Server::stop);
        self.runner.iter().for_each(|runner| runner.hub.stop());
    }
}

/// The state that runs and the notifier share.
struct Inner {
    store: Store,
    clock: SharedClock,
    requester: Username,
    functions: Functions,
    handlers: Handlers,
    reach: Reach,
    news: broadcast::Sender<News>,
    watched: Mutex<Watched>,
    /// Set once the runner has started.
    streams: OnceLock<Streams>,
}

/// What the program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Awaited {
    /// A run.
    Run(RunId),
    /// The answer to a question without a run.
    Review(ReviewId),
}

impl Awaited {
    /// Returns what waits for this review.
    fn of(review: &Review) -> Self {
        review.run_id.map_or(Self::Review(review.id), Self::Run)
    }
}

/// What is waited for; with a review that no one will decide, and why, if there is one.
type Watched = HashMap<Awaited, Option<(Box<Review>, String)>>;

/// A message to those who wait.
#[derive(Clone)]
enum News {
    /// An entry of the log.
    Entry(Arc<Entry>),
    /// The program has attached to a run or a question of before.
    Attached(Awaited),
    /// Something may not continue on its own.
    Recheck,
}

impl Inner {
    async fn commit(&self, operation: Operation) -> Result<Committed, CommitError> {
        let by = Some(Actor::of(self.requester()));
        self.store.commit(Change { by, key: None, operation }).await
    }

    /// Returns the principal who starts and cancels runs.
    fn requester(&self) -> Principal {
        Principal::new(self.requester.clone(), [DEVELOPER.to_owned()].into())
    }

    /// Saves a flow unless it is the newest version; returns the version.
    async fn save(&self, flow: &Flow) -> Result<u32, RunError> {
        let source = serde_json::to_string_pretty(flow)
            .map_err(|error| RunError::Invalid(vec![Mistake::new("", "invalid", error.to_string())]))?;
        let digest = flow::digest(&source);
        let new = NewFlow { flow: flow.clone(), source, digest };
        match self.commit(Operation::SaveFlow(Box::new(new))).await? {
            Committed::Flow { flow } => Ok(flow.version),
            _ => Err(RunError::Commit(CommitError::NotFound)),
        }
    }

    fn watch(&self, awaited: Awaited) {
        self.watched.lock().insert(awaited, None);
    }

    fn forget(&self, awaited: Awaited) {
        self.watched.lock().remove(&awaited);
    }

    /// Records that no one will decide this review.
    fn undecided(&self, review: &Review, why: String) {
        tracing::warn!(review = %review.id, why, "a review was not decided");
        if let Some(watched) = self.watched.lock().get_mut(&Awaited::of(review)) {
            *watched = Some((Box::new(review.clone()), why));
            // It is no failure if nobody listens.
            let _ = self.news.send(News::Recheck);
        }
    }

    fn is_undecided(&self, awaited: Awaited) -> bool {
        self.watched.lock().get(&awaited).is_some_and(Option::is_some)
    }

    fn take_undecided(&self, awaited: Awaited) -> Option<(Box<Review>, String)> {
        self.watched.lock().get_mut(&awaited).and_then(Option::take)
    }

    /// Returns the pending reviews that have to be decided, in the order in which they were requested.
    async fn pending(&self, awaited: Awaited) -> Result<Vec<Review>, store::Error> {
        let mut reviews = match awaited {
            Awaited::Run(run) => self.store.run_reviews(run).await?,
            Awaited::Review(review) => self.store.review(review).await?.into_iter().collect(),
        };
        reviews.retain(Review::is_pending);
        reviews.sort_by_key(|review| (review.created_at, review.id));
        Ok(reviews)
    }
}

/// Passes on new entries of the log.
struct NewsObserver(broadcast::Sender<News>);

impl Observe for NewsObserver {
    fn entry(&self, entry: &Entry) {
        let _ = self.0.send(News::Entry(Arc::new(entry.clone())));
    }

    fn lost(&self) {
        let _ = self.0.send(News::Recheck);
    }
}
