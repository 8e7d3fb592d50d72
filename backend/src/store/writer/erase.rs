//! Erases a person: the account at once, and then, step by step, the other data that name them. A step was prepared
//! before this transaction, so it is only carried out if nothing that it depends on has changed since.

use std::collections::BTreeSet;

use shared::access::{Act, Principal};
use shared::api::User;
use shared::id::{RunId, Username};
use shared::log::{EventData, UserErased};
use shared::review::Review;
use shared::run::RunStatus;
use uuid::Uuid;

use super::super::archives::signed;
use super::super::batch::Table;
use super::super::db::{Arg, Conn, Row, Sql};
use super::super::log_index::padded;
use super::super::packed::unpack;
use super::super::users::{USER, USERS, user, user_row};
use super::super::{Change, CommitError, Committed, Error, NewErasure, Operation, SignIn, UserRecord, visibility};
use super::group::{ChangeResult, EndedAccess, Group};
use super::pending::ErasedPerson;
use super::rights::{LastLogin, allow};
use crate::clock::Moment;

const ERASURES: Table = Table { name: "erasures", key: "number", others: "seq" };

impl Group {
    /// Reads the data that erasing depends on. Makes no query if nothing in the group erases, archives, or adds or
    /// changes people.
    pub async fn load_erasures(&mut self, conn: &mut Conn, changes: &[Change], now: i64) -> Result<(), Error> {
        let (mut names, mut erased, mut runs) = (BTreeSet::new(), Vec::new(), Vec::new());
        let (mut numbers, mut erases) = (false, false);
        for change in changes {
            match &change.operation {
                Operation::CreateUser(new) => _ = names.insert(new.user.username.as_str()),
                Operation::UpdateUser(change) => _ = names.insert(&change.username),
                Operation::LinkAccount { username, .. } => _ = names.insert(username),
                Operation::StartSession(new) if matches!(new.by, SignIn::Provider(_)) => {
                    names.insert(&new.session.credential.username);
                }
                Operation::EraseUser(username) => erased.push(username),
                Operation::EraseEntries(new) => {
                    (numbers, erases) = (true, true);
                    runs.extend(new.step.run.map(|(run, _)| run.0));
                }
                Operation::ArchiveRuns(_) => numbers = true,
                _ => {}
            }
        }
        names.extend(erased.iter().map(|name| name.as_str()));
        if !names.is_empty() {
            let sql = Sql::new("SELECT pseudonym, username FROM erased_users WHERE pseudonym").among(names.clone());
            for row in conn.fetch(sql.push(" OR username").among(names)).await? {
                for name in [Some(row.text(0)?), row.text_opt(1)?].into_iter().flatten() {
                    self.erasures.names.extend(name.parse::<Username>().ok());
                }
            }
        }
        for name in erased {
            let waiting = conn.waiting_for(name, now).await?;
            self.erasures.waiting.insert(name.clone(), waiting);
            for record in conn.deputies_naming(name).await? {
                self.erasures.deputies.insert(record.user.username.clone(), record);
            }
        }
        if numbers {
            self.erasures.last = conn.last_erasure().await?;
        }
        if erases {
            // An indexer that has read rows before this commit must not store them without seeing it.
            self.erasures.indexed_to = conn.hold_index().await?;
        }
        for run in runs {
            let sql = Sql::new("SELECT MAX(l.seq) FROM runs r JOIN log l ON l.run_id = r.id WHERE r.id = ").bind(run);
            let last = conn.first(sql, Row::int_opt).await?.flatten();
            self.erasures.rows.extend(last.map(|last| (RunId(run), last)));
        }
        Ok(())
    }

    pub fn erase_user(
        &mut self,
        by: Option<&Principal>,
        last_login: LastLogin,
        name: &Username,
        moment: Moment,
    ) -> ChangeResult {
        allow(by, Act::ManagePeople)?;
        // It cannot be undone.
        last_login.require_recent()?;
        let record = self.users.get(name).ok_or(CommitError::NotFound)?;
        if self.erasures.names.contains(name) {
            // The person was erased already.
            return Ok(Committed::User { user: Box::new(record.user.clone()) });
        }
        if record.user.active {
            return Err(CommitError::Conflict(format!("{name} may still log in: deactivate the account first")));
        }
        let (runs, reviews) = self.erasures.waiting.get(name).copied().unwrap_or_default();
        if reviews > 0 {
            let reviews =
                if reviews == 1 { "1 review is pending".to_owned() } else { format!("{reviews} reviews are pending") };
            return Err(CommitError::Conflict(format!(
                "{reviews} for {name}, who is named in them or has claimed them: have them decided, reassigned or \
                 withdrawn first"
            )));
        }
        if runs > 0 {
            let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
            return Err(CommitError::Conflict(format!(
                "{name} has launched or decided in {runs} still in progress: let them end, or cancel them, first"
            )));
        }
        let account = record.account.clone();
        let random = moment.ids().uuid().into_bytes();
        let pseudonym = format!("erased-{}", hex::encode(&random[12..]));
        let pseudonym: Username =
            pseudonym.parse().map_err(|_| CommitError::Failed(format!("the name {pseudonym}")))?;
        let user = User { active: false, ..User::new(pseudonym.clone(), Vec::new(), record.user.created_at) };
        let erased = UserRecord::new(user.clone());
        for (deputy, read) in std::mem::take(&mut self.erasures.deputies) {
            if deputy == *name {
                continue;
            }
            let record = self.users.entry(deputy.clone()).or_insert(read);
            record.deputyships.retain(|span| span.person != *name);
            for span in record.deputyships.iter_mut().filter(|span| span.made_by == *name) {
                span.made_by = pseudonym.clone();
            }
            self.out.users.insert(deputy);
        }
        self.users.remove(name);
        self.out.users.remove(name);
        self.end_access(name, EndedAccess::All);
        self.credentials.retain(|_, credential| credential.username != *name);
        self.emit(by, &EventData::UserErased(UserErased { username: pseudonym.clone() }), moment);
        self.erasures.names.extend([name.clone(), pseudonym.clone()]);
        self.users.insert(pseudonym, erased.clone());
        self.erasures.erased.push(ErasedPerson { username: name.clone(), account, record: erased });
        Ok(Committed::User { user: Box::new(user) })
    }

    pub fn erase_entries(&mut self, new: &NewErasure, moment: Moment) -> ChangeResult {
        let last = self.erasures.last;
        if !new.erased_entries.iter().zip(last + 1..).all(|(erased_entries, number)| erased_entries.erasure == number) {
            return Err(CommitError::Conflict(format!("this step does not follow erasure {last}")));
        }
        if let Some((run, last_row)) = new.step.run {
            // Other changes of the run in this group depend on its present data.
            if self.erasures.rows.get(&run) != Some(&last_row) || self.runs.contains_key(&run) {
                return Err(CommitError::Conflict(format!("run {run} has changed since it was read")));
            }
        }
        if new.step.erasures != last {
            return Err(CommitError::Conflict("something was erased after it was read".to_owned()));
        }
        let indexed = new.step.indexed_to..self.erasures.indexed_to;
        if new.step.rows().iter().any(|row| indexed.contains(&row.number)) {
            return Err(CommitError::Conflict("more of the log was indexed after it was read".to_owned()));
        }
        for erased_entries in &new.erased_entries {
            self.erasures.last = erased_entries.erasure;
            self.erasures.entries.push((self.out.events.len(), erased_entries.erasure));
            self.emit(None, &EventData::EntriesErased(erased_entries.clone()), moment);
        }
        self.erasures.steps.push(new.clone());
        Ok(Committed::Done)
    }

    /// Replaces the accounts of people who were erased, after all other people were written.
    pub(super) async fn write_erased_people(&self, conn: &mut Conn, now: i64) -> Result<(), Error> {
        for ErasedPerson { username: name, account, record } in &self.erasures.erased {
            for of in [
                "notifications WHERE username = ",
                "views WHERE username = ",
                "grants WHERE given_by = ",
                "users WHERE username = ",
            ] {
                conn.execute(Sql::new("DELETE FROM ").push(of).bind(name.as_str())).await?;
            }
            conn.insert(&USERS, vec![user_row(record)], "").await?;
            let account = account.as_ref().map(ToString::to_string);
            let row = vec![record.user.username.as_str().into(), name.as_str().into(), now.into(), Arg::from(account)];
            let sql = Sql::new("INSERT INTO erased_users (pseudonym, username, at, provider_account) ");
            conn.execute(sql.values([row])).await?;
        }
        Ok(())
    }

    /// Executes the statements of the steps, before the first log row is written.
    pub(super) async fn write_erasure_steps(&self, conn: &mut Conn) -> Result<(), Error> {
        for NewErasure { step, .. } in &self.erasures.steps {
            for sql in &step.statements {
                conn.execute(sql.clone()).await?;
            }
            if let (Some((run, _)), true) = (step.run, step.reviews) {
                conn.index_reviews(&BTreeSet::from([run])).await?;
            }
        }
        Ok(())
    }

    /// Records where the log entries about erased entries are. `first` is the number of the first log row that no
    /// change of a run caused.
    pub(super) async fn write_erasures(&mut self, conn: &mut Conn, first: i64) -> Result<(), Error> {
        let entries = std::mem::take(&mut self.erasures.entries).into_iter().map(|(entry, number)| {
            let row = first.saturating_add(i64::try_from(entry).unwrap_or(i64::MAX));
            vec![signed(number).into(), row.into()]
        });
        Ok(conn.insert(&ERASURES, entries.collect(), "").await?)
    }
}

impl Conn {
    /// Returns the people with a deputyship that names this person.
    pub(super) async fn deputies_naming(&mut self, name: &Username) -> Result<Vec<UserRecord>, Error> {
        let sql = Sql::new("SELECT ").push(USER).push(" FROM users u WHERE u.deputyships LIKE ");
        let rows =
            self.fetch(sql.bind(format!("%\"{}\"%", name.as_str().replace('_', "\\_"))).push(" ESCAPE '\\'")).await?;
        rows.iter().map(|row| user(row, 0)).collect()
    }

    /// Counts the unfinished runs that a person has started or been involved in, and the pending reviews that name them
    /// or that they have claimed.
    async fn waiting_for(&mut self, name: &Username, now: i64) -> Result<(i64, i64), Error> {
        const NAMES: [&str; 3] = ["user:", "handed:", "voter:"];
        let not_over = |sql: Sql| sql.push("status NOT IN (").list(RunStatus::OVER.map(RunStatus::as_str)).push(")");
        let keys = ["user", "asked", "decided", "handed", "gave", "voter", "barred"];
        let keys: Vec<String> = keys.iter().map(|kind| format!("{kind}:{name}")).collect();
        let mut sql = Sql::new("SELECT COUNT(*) FROM (");
        for carriers in ["0", "1"] {
            sql = sql.push("SELECT id FROM runs WHERE carries_question = ").push(carriers).push(" AND requested_by = ");
            sql = not_over(sql.bind(name.as_str()).push(" AND ")).push(" UNION ");
        }
        let sql = sql.push("SELECT r.id FROM review_audience a JOIN reviews v ON v.id = a.review_id ");
        let sql = sql.push("JOIN runs r ON r.id = v.run_id WHERE a.subject IN (").list(keys.iter());
        let runs = self.first(not_over(sql.push(") AND r.")).push(") AS u"), Row::int).await?.unwrap_or(0);
        let names: Vec<&String> = keys.iter().filter(|one| NAMES.iter().any(|kind| one.starts_with(kind))).collect();
        let names_them = |outline: &Review| {
            let keys = visibility::audience_keys(outline);
            names.iter().any(|key| keys.contains(*key))
        };
        let mut named = self.classes_where(names_them).await?;
        // PostgreSQL does not accept an empty list.
        named.push(Uuid::nil());
        let named = padded(&named);
        let sql = Sql::new("SELECT COUNT(*) FROM queue WHERE class").among(named.iter().copied());
        let reviews = self.first(sql, Row::int).await?.unwrap_or(0);
        // Only the review itself says who has claimed it; few are claimed at a time.
        let sql = Sql::new("SELECT r.body FROM queue v JOIN reviews r ON r.id = v.id WHERE v.class NOT").among(named);
        let claim = format!("\"claimed_by\":{{\"by\":\"{name}\"");
        let mut claimed = 0;
        for row in self.fetch(sql.push(" AND v.claimed_until > ").bind(now)).await? {
            claimed += i64::from(unpack(row.text(0)?)?.contains(&claim));
        }
        Ok((runs, reviews + claimed))
    }
}
