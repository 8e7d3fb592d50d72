//! The saved views of people.

use shared::access::Principal;
use shared::id::Username;
use shared::log::{EventData, UserChanged};
use shared::view::Views;

use super::super::{CommitError, Committed};
use super::group::Group;
use crate::clock::Moment;

impl Group {
    pub fn save_views(
        &mut self,
        by: Option<&Principal>,
        username: &Username,
        views: Views,
        moment: Moment,
    ) -> Result<Committed, CommitError> {
        if by.is_some_and(|by| by.token || by.username != *username) {
            return Err(CommitError::Forbidden("people save only their own views, and not with a token".to_owned()));
        }
        if !self.users.contains_key(username) {
            return Err(CommitError::NotFound);
        }
        let revision = self.view_revisions.get(username).copied().unwrap_or(0);
        if views.revision != revision {
            return Err(CommitError::Conflict(
                "these views were changed elsewhere meanwhile; read them again before you change them".to_owned(),
            ));
        }
        // What somebody looks for is nobody else's business, so the entry only says that it changed.
        self.emit(
            by,
            &EventData::UserUpdated(UserChanged { views: true, ..UserChanged::of(username.clone()) }),
            moment,
        );
        let revision = revision + 1;
        self.view_revisions.insert(username.clone(), revision);
        self.out.views.insert(username.clone(), Views { revision, ..views });
        Ok(Committed::Done)
    }
}
