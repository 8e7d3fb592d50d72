//! Reads the data that a group of changes depends on: a few queries for each kind of object, no matter how large the
//! group is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shared::id::{FlowId, GrantId, ReviewId, RunId, Username};
use shared::single_sign_on::Trouble;
use shared::time::Timestamp;

use super::super::blobs::{Reader, digest};
use super::super::db::{Arg, Conn, Sql};
use super::super::{Change, Error, Inner, Operation, SignIn, UserRecord, grants};
use super::group::{Group, RunWork, UsedKey};
use super::named::Named;
use crate::flow::Compiled;

/// Returns the runs of these reviews. A review never moves to another run.
pub(super) async fn runs_of(conn: &mut Conn, reviews: &BTreeSet<ReviewId>) -> Result<BTreeMap<ReviewId, RunId>, Error> {
    let sql = Sql::new("SELECT id, run_id FROM reviews WHERE id").among(reviews.iter().map(|id| id.0));
    let rows = conn.fetch(sql).await?;
    rows.iter().map(|row| Ok((ReviewId(row.uuid(0)?), RunId(row.uuid(1)?)))).collect()
}

impl Group {
    /// Reads the data that these changes depend on. `run_of` has the runs of the reviews that they name. Without
    /// `compile`, reading ends if a flow is not compiled yet: see [`Group::uncompiled`].
    pub async fn load(
        inner: &Inner,
        conn: &mut Conn,
        changes: &[Change],
        mut named: Named<'_>,
        run_of: BTreeMap<ReviewId, RunId>,
        compile: bool,
    ) -> Result<Self, Error> {
        let mut group = Self {
            environment: Arc::clone(&inner.environment),
            longest_grant: inner.longest_grant,
            run_of,
            ..Self::default()
        };
        group.load_people(conn, &named, inner.clock.now()).await?;
        group.load_open_questions(conn, changes).await?;
        group.load_live_tokens(conn, changes, inner.clock.now()).await?;
        group.load_runs(inner, conn, &mut named).await?;
        group.load_flows(inner, conn, &named.newest, &named.saved, named.versions, compile).await?;
        if !group.uncompiled.is_empty() {
            return Ok(group);
        }
        group.load_grants(conn, changes, named.grants, inner.clock.now()).await?;
        group.load_feedback(conn, changes).await?;
        group.load_keys(conn, &named.keys).await?;
        group.load_archiving(conn, changes).await?;
        group.load_erasures(conn, changes, inner.clock.now().0).await?;
        let asks_who_there_is = |change: &Change| match &change.operation {
            Operation::Run { input, .. } | Operation::Review { input, .. } => input.needs_people(),
            Operation::UpdateUser(change) => change.takes_admin(),
            Operation::StartSession(new) => matches!(&new.by, SignIn::Provider(by) if by.takes_admin()),
            Operation::RefuseSignIn(_) => true,
            _ => false,
        };
        if group.compiled.values().any(|flow| flow.needs_people())
            || group.runs.values().any(RunWork::has_delegations)
            || changes.iter().any(asks_who_there_is)
        {
            group.active = inner.people.active(conn).await?;
        }
        Ok(group)
    }

    /// Whether a change needs a flow that is not compiled yet.
    pub fn waits_for_flow(&self, change: &Change) -> bool {
        let named = Named::of_all(std::slice::from_ref(change));
        let runs = named.runs.iter().chain(named.reviews.iter().filter_map(|review| self.run_of.get(review)));
        let states = runs.filter_map(|run| Some(&self.runs.get(run)?.snapshot.as_ref()?.state));
        let of_runs = states.map(|state| (state.flow.clone(), state.version));
        let newest = named.newest.iter().filter_map(|flow| Some(((*flow).clone(), self.newest.get(*flow)?.0)));
        let mut needed = of_runs.chain(newest).chain(named.versions.iter().cloned());
        needed.any(|version| self.uncompiled.contains(&version))
    }

    async fn load_people(&mut self, conn: &mut Conn, named: &Named<'_>, now: Timestamp) -> Result<(), Error> {
        for (digest, credential, person) in conn.credentials(named.credentials.keys().copied()).await? {
            self.credentials.insert(digest, credential);
            self.users.insert(person.user.username.clone(), person);
        }
        let known: BTreeSet<&str> = self.users.keys().map(Username::as_str).collect();
        let others: Vec<&str> = named.users.keys().copied().filter(|name| !known.contains(name)).collect();
        let mut more = conn.users(others).await?;
        more.extend(conn.people_of(named.accounts.iter().copied()).await?);
        self.add_people(more);
        // Makes no query if none of these people is a deputy.
        let mut more = conn.absent(self.users.values(), now).await?;
        more.extend(conn.deputies_of(named.deputyships.iter().copied()).await?);
        self.add_people(more);
        for (id, name) in conn.slack_users(named.slack_users.iter().copied()).await? {
            let name = name.parse().map_err(|error| Error::Stored(format!("a person in Slack: {error}")))?;
            self.slack_users.insert(id, name);
        }
        for (name, choice) in conn.notifications_of(named.notified.iter().copied()).await? {
            let name = name.parse().map_err(|error| Error::Stored(format!("notification settings: {error}")))?;
            self.notifications.insert(name, choice);
        }
        for (name, views) in conn.saved_views_of(named.viewers.iter().copied()).await? {
            let name = name.parse().map_err(|error| Error::Stored(format!("saved views: {error}")))?;
            self.saved_views.insert(name, views);
        }
        self.credentials.extend(conn.tokens(named.tokens.iter().copied()).await?);
        Ok(())
    }

    /// Adds people who are not known yet.
    fn add_people(&mut self, people: Vec<UserRecord>) {
        for person in people {
            self.users.entry(person.user.username.clone()).or_insert(person);
        }
    }

    async fn load_flows(
        &mut self,
        inner: &Inner,
        conn: &mut Conn,
        newest: &BTreeSet<&FlowId>,
        saved: &BTreeSet<&FlowId>,
        mut versions: BTreeSet<(FlowId, u32)>,
        compile: bool,
    ) -> Result<(), Error> {
        // One query for each different flow of the group, of which there are few.
        for flow in newest {
            let Some(newest) = conn.newest_version(flow).await? else { continue };
            versions.insert(((*flow).clone(), newest));
            // The change that saves the next version compares it with this one. It can save even if this one cannot be
            // read.
            let version = if saved.contains(flow) {
                match conn.flow(flow, Some(newest)).await {
                    Err(Error::Stored(_)) => None,
                    version => version?,
                }
            } else {
                None
            };
            self.newest.insert((*flow).clone(), (newest, version));
        }
        for (flow, version) in versions {
            if !compile && !inner.flows.has(&flow, version) {
                self.uncompiled.push((flow, version));
                continue;
            }
            match inner.compiled_in(conn, &flow, version).await {
                Ok(Some(compiled)) => {
                    self.compiled.insert((flow, version), compiled);
                }
                Ok(None) => {}
                // Only the changes that depend on this version are refused.
                Err(Error::Stored(why)) => {
                    self.unreadable.insert((flow, version), why);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads grants. Makes no query unless a flow has a gate, or a change names grants or takes rights.
    async fn load_grants(
        &mut self,
        conn: &mut Conn,
        changes: &[Change],
        named: BTreeSet<GrantId>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let gated = |(_, compiled): &(&(FlowId, u32), &Arc<Compiled>)| compiled.has_gates();
        let mut places: Vec<String> =
            self.compiled.iter().filter(gated).map(|((flow, version), _)| grants::of_flow(flow, *version)).collect();
        if !places.is_empty() {
            let runs = self.runs.iter().filter(|(_, work)| {
                work.snapshot.as_ref().is_some_and(|snapshot| {
                    let version = (snapshot.state.flow.clone(), snapshot.state.version);
                    self.compiled.get(&version).is_some_and(|compiled| compiled.has_gates())
                })
            });
            places.extend(runs.map(|(run, _)| grants::of_run(*run)));
        }
        let steers = |change: &Change| {
            matches!(change.operation, Operation::Launch { .. } | Operation::Run { .. } | Operation::Review { .. })
        };
        if changes.iter().any(steers) {
            self.grants.extend(conn.grants_at(places, now).await?.into_iter().map(|grant| (grant.id, grant)));
        }
        let losers = changes.iter().filter_map(|change| match &change.operation {
            Operation::UpdateUser(change) if change.takes_rights() => Some(&change.username),
            Operation::StartSession(new) => match &new.by {
                SignIn::Provider(by) if by.roles.is_some() => Some(&new.session.credential.username),
                _ => None,
            },
            Operation::RefuseSignIn(refused) if refused.trouble == Trouble::Groups => {
                self.known(&refused.account).map(|known| &known.user.username)
            }
            _ => None,
        });
        let losers: BTreeSet<Username> = losers.cloned().collect();
        let mut more = conn.grants_of(losers.iter().map(Username::as_str)).await?;
        more.extend(conn.grants(named).await?);
        self.grants.extend(more.into_iter().map(|grant| (grant.id, grant)));
        let givers = self.grants.values().map(|grant| &grant.given_by).filter(|name| !self.users.contains_key(*name));
        let givers: BTreeSet<Username> = givers.cloned().collect();
        let people = conn.held_users(givers.iter().map(Username::as_str)).await?;
        self.add_people(people);
        Ok(())
    }

    async fn load_keys(&mut self, conn: &mut Conn, keys: &BTreeSet<(&str, &str)>) -> Result<(), Error> {
        let sql = Sql::new("SELECT i.scope, i.key, i.body, i.run_id, i.answer FROM (")
            .values(keys.iter().map(|(scope, key)| vec![Arg::from(*scope), Arg::from(*key)]))
            .push(") AS k JOIN idempotency i ON i.scope = k.column1 AND i.key = k.column2");
        for row in conn.fetch(sql).await? {
            let answer = match (row.uuid_opt(3)?, row.text_opt(4)?) {
                (_, None) => None,
                (Some(run), Some(stored)) => {
                    let mut reader = Reader::default();
                    reader.add(run, Ok(stored));
                    reader.finish("an answer", conn, &mut self.blobs).await?.pop()
                }
                (None, Some(plain)) => {
                    Some(serde_json::from_str(&plain).map_err(|error| Error::Stored(format!("an answer: {error}")))?)
                }
            };
            let used = UsedKey { body: digest(&row.blob(2)?)?, answer };
            self.keys.insert((row.text(0)?, row.text(1)?), used);
        }
        Ok(())
    }
}
