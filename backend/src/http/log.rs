//! `/api/v1/log`: the entries that the caller may see, in commit order.

use std::collections::HashMap;

use axum::Json;
use shared::access::{Act, Principal, access};
use shared::api::{LogQuery, Page};
use shared::error::{Code, Problem};
use shared::id::{ReviewId, RunId, Username};
use shared::log::{Audience, Cursor, Entry};

use super::Caller;
use super::api::Api;
use super::body::{Params, limit};
use super::problem::Result;
use crate::store::Store;

/// The value of `after` that stands for the end of the log.
const END: &str = "end";

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/log", "List log entries in commit order", get);
}

async fn get(caller: Caller, Params(query): Params<LogQuery>) -> Result<Json<Page<Entry>>> {
    let limit = limit(query.limit)?;
    let mut visibility = CallerVisibility::new(caller.principal(), &caller.state.store);
    if let Some(run) = query.run
        && !visibility.run(run).await?
    {
        return Err(Problem::new(Code::NotFound).into());
    }
    let after = match query.after {
        // No entries: only the cursor from which later entries can be read.
        Some(after) if after == END => {
            let head = caller.state.store.head().await?;
            return Ok(Json(Page { items: Vec::new(), next_cursor: Some(head.to_string()) }));
        }
        Some(after) => Cursor(after),
        None => caller.state.store.origin(),
    };
    let page = caller.state.store.log(&after, query.run, limit).await?.ok_or_else(|| {
        Problem::invalid("/after", "this place is no longer in the log; leave `after` out to read from the start")
    })?;
    let mut items = Vec::with_capacity(page.entries.len());
    for entry in page.entries {
        if visibility.entry(&entry).await? {
            items.push(entry);
        }
    }
    let next_cursor = page.more.then(|| page.cursor.to_string());
    Ok(Json(Page { items, next_cursor }))
}

/// Decides which entries the caller may see, and caches the answer for each run and review.
struct CallerVisibility<'a> {
    caller: &'a Principal,
    store: &'a Store,
    runs: HashMap<RunId, bool>,
    reviews: HashMap<ReviewId, bool>,
}

impl<'a> CallerVisibility<'a> {
    fn new(caller: &'a Principal, store: &'a Store) -> Self {
        Self { caller, store, runs: HashMap::new(), reviews: HashMap::new() }
    }

    async fn entry(&mut self, entry: &Entry) -> Result<bool> {
        match entry.event.audience() {
            Audience::Flows => Ok(access(self.caller, Act::SeeFlows).is_allowed()),
            Audience::Viewer(review, actor) => Ok(self.by_me(actor) && self.review(review).await?),
            Audience::Review(review) => self.review(review).await,
            Audience::Run(run) => self.run(run).await,
            Audience::Feedback(run, by) => {
                Ok(access(self.caller, Act::SeeFeedback(by)).is_allowed() && self.run(run).await?)
            }
            Audience::Actor(actor) => Ok(self.by_me(actor)),
        }
    }

    /// Whether the caller is the actor of an event, or an admin.
    fn by_me(&self, actor: Option<&Username>) -> bool {
        access(self.caller, Act::SeeEntryBy(actor)).is_allowed()
    }

    async fn run(&mut self, id: RunId) -> Result<bool> {
        if let Some(seen) = self.runs.get(&id) {
            return Ok(*seen);
        }
        let seen = self.store.visible_summary(self.caller, id).await?.is_some();
        self.runs.insert(id, seen);
        Ok(seen)
    }

    /// Whether the caller may see a review as it is now, no matter who could see it at the time of the entry.
    async fn review(&mut self, id: ReviewId) -> Result<bool> {
        if let Some(seen) = self.reviews.get(&id) {
            return Ok(*seen);
        }
        let review = self.store.review_outline(id).await?;
        let seen = review.is_some_and(|review| access(self.caller, Act::SeeReview(&review)).is_allowed());
        self.reviews.insert(id, seen);
        Ok(seen)
    }
}

/// Whether the API lets this person see an entry.
#[cfg(test)]
pub(crate) async fn lets_see(store: &Store, entry: &Entry, principal: &Principal) -> bool {
    CallerVisibility::new(principal, store).entry(entry).await.unwrap_or_else(|_| panic!("the store reads"))
}
