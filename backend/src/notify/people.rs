//! The people whom the feeder may notify. They are all accounts of the server if the settings have rules for everyone, so
//! they are not read for each review, but only after an entry of the log that may change them, and when a deputyship
//! begins or ends.

use std::sync::Arc;

use shared::log::Entry;
use shared::time::Timestamp;

use super::Outlets;
use super::recipients::Recipient;
use crate::store::{self, Store};

/// The people who have rules, their own or those of the settings, as they were last read.
#[derive(Default)]
pub(super) struct People(Option<Known>);

struct Known {
    people: Arc<[Recipient]>,
    /// The time at which somebody's rights change by themselves.
    until: Option<Timestamp>,
}

impl People {
    /// Forgets everyone, because entries of the log were not followed.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Returns those who may be notified of these entries, which follow the entries of the call before. Empty if no entry
    /// is an occasion for that.
    pub async fn concerned(
        &mut self,
        entries: &[Entry],
        store: &Store,
        outlets: &Outlets,
        now: Timestamp,
    ) -> Result<Arc<[Recipient]>, store::Error> {
        // Entries that belong to no run and no review are few. All changes of people and their rules are among them.
        if entries.iter().any(|entry| entry.event.run_id.is_none() && entry.event.review_id.is_none()) {
            self.forget();
        }
        let has_occasion = |entry: &Entry| entry.event.kind.occasion().is_some() || entry.event.announces().is_some();
        if outlets.channels().is_empty() || !entries.iter().any(has_occasion) {
            return Ok(Arc::default());
        }
        if let Some(Known { people, until }) = &self.0
            && until.is_none_or(|until| now < until)
        {
            return Ok(Arc::clone(people));
        }
        let mut people = Vec::new();
        for (record, choice) in store.notified(!outlets.default_rules.is_empty()).await? {
            let choice = outlets.with_defaults(choice);
            if !choice.applied().is_empty() {
                people.push(Recipient::of(store, record, choice).await?);
            }
        }
        let until = people.iter().filter_map(|person| person.changes_at).min();
        let people: Arc<[Recipient]> = people.into();
        self.0 = Some(Known { people: Arc::clone(&people), until });
        Ok(people)
    }
}
