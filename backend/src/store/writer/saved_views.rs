//! The saved views of people.

use shared::access::Principal;
use shared::id::Username;
use shared::log::{EventData, UserChanged};
use shared::saved_view::Views;

use super::super::{CommitError, Committed};
use super::group::{ChangeResult, Group};
use crate::clock::Moment;

impl Group {
    pub fn save_views(
        &mut self,
        by: Option<&Principal>,
        username: &Username,
        views: &Views,
        moment: Moment,
    ) -> ChangeResult {
        if by.is_some_and(|by| by.token || by.username != *username) {
            return Err(CommitError::Forbidden("people save only their own views, and not with a token".to_owned()));
        }
        if !self.users.contains_key(username) {
            return Err(CommitError::NotFound);
        }
        let stored = self.saved_views.get(username).cloned().unwrap_or_default();
        if views.revision != stored.revision {
            return Err(CommitError::Conflict(
                "these views were changed elsewhere meanwhile; read them again before you change them".to_owned(),
            ));
        }
        let saved = stored.replaced_by(&views.views);
        let saved = saved.map_err(|error| CommitError::Failed(format!("the views cannot be stored: {error}")))?;
        // What somebody looks for is nobody else's business, so the entry only says that it changed.
        self.emit(
            by,
            &EventData::UserUpdated(UserChanged { views: true, ..UserChanged::of(username.clone()) }),
            moment,
        );
        self.saved_views.insert(username.clone(), saved.clone());
        self.out.saved_views.insert(username.clone(), saved);
        Ok(Committed::Done)
    }
}
