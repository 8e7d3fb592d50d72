//! The saved views of the person who is logged in, as the server has them.

use leptos::prelude::*;
use shared::error::{Code, Problem};
use shared::id::Username;
use shared::saved_view::{SavedView, Views};

use super::GlobalSignal;
use super::http::Api;
use super::session::Session;
use super::storage;
use crate::state::saved_views::{FIRST_QUERY, first_query, storage_key};

/// The saved views. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct SavedViews {
    /// The views with their owner; `None` until they are loaded.
    loaded: GlobalSignal<Option<(Username, Views)>>,
    api: Api,
    session: Session,
}

impl SavedViews {
    pub fn new(api: Api, session: Session) -> Self {
        Self { loaded: GlobalSignal::new(None), api, session }
    }

    /// The views of the person who is logged in; `None` until they are loaded. Follows them.
    pub fn get(self) -> Option<Views> {
        let me = self.session.username()?;
        self.loaded.with(|loaded| loaded.as_ref().filter(|(owner, _)| *owner == me).map(|(_, views)| views.clone()))
    }

    /// The views as this browser has stored them, before they are loaded.
    pub fn stored(self) -> Option<Views> {
        storage::read(&storage_key(&untrack(move || self.session.username())?))
    }

    /// Loads the views. Without an answer, the inbox is shown without them.
    pub async fn load(self) {
        let Some(me) = untrack(move || self.session.username()) else { return };
        if let Ok(views) = self.api.saved_views().await {
            self.keep(me, views);
        }
    }

    /// Replaces the views of this revision. After a failure they are loaded again: if the server has these views, only
    /// its answer was lost; if they were changed elsewhere, the problem says so.
    pub async fn save(self, revision: u64, views: Vec<SavedView>) -> Result<(), Problem> {
        let Some(me) = untrack(move || self.session.username()) else {
            return Err(Problem::new(Code::Unauthenticated));
        };
        let wanted = Views { revision, views };
        let problem = match self.api.save_views(&wanted).await {
            Ok(views) => {
                self.keep(me, views);
                return Ok(());
            }
            Err(problem) => problem,
        };
        let Ok(now) = self.api.saved_views().await else { return Err(problem) };
        let (is_saved, is_newer) = (now.views == wanted.views, now.revision != revision);
        self.keep(me, now);
        match (is_saved, is_newer) {
            (true, _) => Ok(()),
            (false, true) => Err(Problem::new(Code::Conflict)),
            (false, false) => Err(problem),
        }
    }

    fn keep(self, owner: Username, views: Views) {
        // Revisions only grow: what was asked for before a change and arrives after it is older.
        let known = |(known, before): &(Username, Views)| *known == owner && before.revision >= views.revision;
        if !self.loaded.with_untracked(|loaded| loaded.as_ref().is_some_and(known)) {
            // Nothing stays of a person who has logged out meanwhile.
            if untrack(move || self.session.username()).as_ref() == Some(&owner) {
                storage::write(&storage_key(&owner), &views);
                match first_query(&views.views) {
                    Some(query) => drop(storage::write_text(FIRST_QUERY, &query)),
                    None => storage::remove(FIRST_QUERY),
                }
            }
            self.loaded.set(Some((owner, views)));
        }
    }
}
