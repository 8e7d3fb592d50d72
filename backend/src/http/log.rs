//! `/api/v1/log`: the entries that the caller may see, in commit order.

use std::collections::HashMap;

use axum::Json;
use shared::access::{Act, access};
use shared::api::{LogQuery, Page};
use shared::error::{Code, Problem};
use shared::id::{ReviewId, RunId};
use shared::log::{Cursor, Entry, EntryKind, Event};

use super::Caller;
use super::api::{Api, OperationDoc};
use super::body::{Params, limit};
use super::problem::Result;
use super::runs::sees;

/// The value of `after` that stands for the end of the log.
const END: &str = "end";

pub(super) fn mount(api: &mut Api) {
    let list = OperationDoc::new("List log entries in commit order").answer::<Page<Entry>>();
    api.get("/api/v1/log", list, get);
}

async fn get(caller: Caller, Params(query): Params<LogQuery>) -> Result<Json<Page<Entry>>> {
    let limit = limit(query.limit)?;
    let mut visibility = CallerVisibility { caller: &caller, runs: HashMap::new(), reviews: HashMap::new() };
    let run = match query.run {
        Some(text) => {
            let run = text.parse().map_err(|_| Problem::invalid("/run", "the id of a run"))?;
            if !visibility.run(run).await? {
                return Err(Problem::new(Code::NotFound).into());
            }
            Some(run)
        }
        None => None,
    };
    let after = match query.after {
        // No entries: only the cursor from which later entries can be read.
        Some(after) if after == END => {
            let head = caller.state.store.head().await?;
            return Ok(Json(Page { items: Vec::new(), next_cursor: Some(head.to_string()) }));
        }
        Some(after) => Cursor(after),
        None => caller.state.store.origin(),
    };
    let page = caller.state.store.log(&after, run, limit).await?.ok_or_else(|| {
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
    caller: &'a Caller,
    runs: HashMap<RunId, bool>,
    reviews: HashMap<ReviewId, bool>,
}

impl CallerVisibility<'_> {
    async fn entry(&mut self, entry: &Entry) -> Result<bool> {
        let event = &entry.event;
        match (event.kind, event.review_id, event.run_id) {
            (EntryKind::FlowSaved, ..) => Ok(access(self.caller.principal(), Act::SeeFlows).is_allowed()),
            // Only admins and the viewers themselves may see who opened a review.
            (EntryKind::ReviewViewed, Some(review), _) => Ok(self.by_me(event) && self.review(review).await?),
            (_, Some(review), _) => self.review(review).await,
            (_, None, Some(run)) => self.run(run).await,
            _ => Ok(self.by_me(event)),
        }
    }

    /// Whether the caller is the actor of the event, or an admin.
    fn by_me(&self, event: &Event) -> bool {
        access(self.caller.principal(), Act::SeeEntryBy(event.actor.as_ref())).is_allowed()
    }

    async fn run(&mut self, id: RunId) -> Result<bool> {
        if let Some(seen) = self.runs.get(&id) {
            return Ok(*seen);
        }
        let seen = match self.caller.state.store.run_summary(id).await? {
            Some(run) => sees(self.caller, &run).await?,
            None => false,
        };
        self.runs.insert(id, seen);
        Ok(seen)
    }

    /// Whether the caller may see a review as it is now, no matter who could see it at the time of the entry.
    async fn review(&mut self, id: ReviewId) -> Result<bool> {
        if let Some(seen) = self.reviews.get(&id) {
            return Ok(*seen);
        }
        let review = self.caller.state.store.review_outline(id).await?;
        let seen = review.is_some_and(|review| access(self.caller.principal(), Act::SeeReview(&review)).is_allowed());
        self.reviews.insert(id, seen);
        Ok(seen)
    }
}
