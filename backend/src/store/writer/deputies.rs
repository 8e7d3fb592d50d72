//! Writes deputyships, which are stored in the deputy's row.

use shared::access::{Act, Principal, REVIEWER};
use shared::deputy::Deputyship;
use shared::error::Mistake;
use shared::id::DeputyId;
use shared::log::{EventData, OfDeputy};

use super::super::{CommitError, Committed};
use super::group::{ChangeResult, Group};
use super::rights::{LastLogin, allow};
use crate::clock::Moment;
use crate::engine::Refusal;

/// The largest number of deputyships that one person may hold, now or later.
const MAX_DEPUTYSHIPS: usize = 100;
/// The largest number of them for the same person, so that nobody can use up all that a colleague may hold.
const MAX_OF_ONE: usize = 5;

impl Group {
    pub fn name_deputy(
        &mut self,
        by: Option<&Principal>,
        last_login: LastLogin,
        span: Deputyship,
        moment: Moment,
    ) -> ChangeResult {
        allow(by, Act::NameDeputy(&span.person, &span.deputy))?;
        last_login.require_recent()?;
        let refused = |path: &str, message: String| {
            Err(CommitError::Refused(Refusal::Invalid(vec![Mistake::new(path, "not_allowed", message)])))
        };
        if self.active(&span.person).is_err() {
            return refused("/person", format!("there is no active user `{}`", span.person));
        }
        let Ok(deputy) = self.active(&span.deputy) else {
            return refused("/deputy", format!("there is no active user `{}`", span.deputy));
        };
        if span.deputy == span.person {
            return refused("/deputy", "you cannot be your own deputy".to_owned());
        }
        if !deputy.principal(None).has(REVIEWER) {
            return refused("/deputy", format!("`{}` does not have the role reviewer", span.deputy));
        }
        let Some(record) = self.users.get_mut(&span.deputy) else { return Err(CommitError::NotFound) };
        record.deputyships.retain(|other| moment.now < other.until);
        if record.deputyships.iter().filter(|other| other.person == span.person).count() >= MAX_OF_ONE {
            let message =
                format!("`{}` stands in for `{}` {MAX_OF_ONE} times already: remove one", span.deputy, span.person);
            return refused("/deputy", message);
        }
        if record.deputyships.len() >= MAX_DEPUTYSHIPS {
            let message = format!("`{}` already stands in for {MAX_DEPUTYSHIPS} others: remove one", span.deputy);
            return refused("/deputy", message);
        }
        record.deputyships.push(span.clone());
        self.out.users.insert(span.deputy.clone());
        let named = OfDeputy { deputy: span.deputy.clone(), deputyship: span.clone() };
        self.emit(by, &EventData::DeputyNamed(named), moment);
        Ok(Committed::Deputy { deputyship: Box::new(span) })
    }

    pub fn remove_deputy(&mut self, by: Option<&Principal>, id: DeputyId, moment: Moment) -> ChangeResult {
        let all = self.users.values().flat_map(|record| &record.deputyships);
        let span = all.into_iter().find(|span| span.id == id).cloned().ok_or(CommitError::NotFound)?;
        // The deputy may decline. For everyone else, the deputyship does not exist.
        let declines = by.is_some_and(|by| by.username == span.deputy && !by.token);
        if !declines {
            allow(by, Act::RemoveDeputy(&span.person)).map_err(|_| CommitError::NotFound)?;
        }
        if let Some(record) = self.users.get_mut(&span.deputy) {
            record.deputyships.retain(|other| other.id != id);
        }
        self.out.users.insert(span.deputy.clone());
        self.emit(by, &EventData::DeputyRemoved(OfDeputy { deputy: span.deputy.clone(), deputyship: span }), moment);
        Ok(Committed::Done)
    }
}
