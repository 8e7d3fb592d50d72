//! The objects that changes name, which are locked and read before they are decided.

use std::collections::{BTreeMap, BTreeSet};

use shared::id::{DeputyId, FlowId, GrantId, ReviewId, RunId, TaskId, Username};
use shared::reassignment::Assignee;
use uuid::Uuid;

use super::super::{Change, NewSession, Operation, ProviderAccount, SignIn};
use crate::engine::Input;
use crate::flow::calls;

/// The objects that changes name.
#[derive(Default)]
pub(super) struct Named<'a> {
    pub keys: BTreeSet<(&'a str, &'a str)>,
    /// People by name, with whether a change writes them.
    pub users: BTreeMap<&'a str, bool>,
    pub accounts: BTreeSet<&'a ProviderAccount>,
    /// Credentials by digest, with whether a change uses them up.
    pub credentials: BTreeMap<&'a [u8; 32], bool>,
    pub tokens: BTreeSet<Uuid>,
    pub deputyships: BTreeSet<DeputyId>,
    pub grants: BTreeSet<GrantId>,
    pub slack_users: BTreeSet<&'a str>,
    /// People whose notification settings are needed.
    pub notified: BTreeSet<&'a str>,
    /// People whose saved views are needed.
    pub viewers: BTreeSet<&'a str>,
    pub runs: BTreeSet<RunId>,
    pub reviews: BTreeSet<ReviewId>,
    pub tasks: BTreeSet<TaskId>,
    /// The flows whose newest version is needed.
    pub newest: BTreeSet<&'a FlowId>,
    /// The flows of which a new version is saved.
    pub saved: BTreeSet<&'a FlowId>,
    pub versions: BTreeSet<(FlowId, u32)>,
}

impl<'a> Named<'a> {
    pub fn of_all(changes: &'a [Change]) -> Self {
        let mut named = Self::default();
        for change in changes {
            named.of(change);
        }
        named
    }

    fn of(&mut self, change: &'a Change) {
        if let Some(actor) = &change.by {
            // A password or a session to confirm is always that of the actor; a proof is used up in the person's row.
            let is_written = matches!(change.operation, Operation::ChangePassword(_) | Operation::ConfirmSession(_));
            self.user(&actor.principal.username, is_written);
            if let Some(digest) = &actor.credential {
                self.credential(digest, is_written);
            }
        }
        if let Some(key) = &change.key {
            self.keys.insert((&key.scope, &key.key));
        }
        self.operation(&change.operation);
    }

    fn operation(&mut self, operation: &'a Operation) {
        match operation {
            Operation::Launch { run, flow, version, .. } => {
                self.runs.insert(*run);
                match version {
                    Some(version) => self.versions.extend([(flow.clone(), *version)]),
                    None => self.newest.extend([flow]),
                }
            }
            Operation::Run { run, input } => {
                self.runs.insert(*run);
                self.tasks.extend(input.task().map(|(task, _)| task));
                self.reviews.extend(input.review());
                self.input(input);
            }
            Operation::Ask { run, .. } | Operation::GiveFeedback { run, .. } => {
                self.runs.insert(*run);
            }
            Operation::Review { review, input } => {
                self.reviews.insert(*review);
                self.reviews.extend(input.review());
                self.input(input);
            }
            Operation::SaveFlow(flow) => {
                self.newest.insert(&flow.flow.id);
                self.saved.insert(&flow.flow.id);
                for (_, call) in calls(&flow.flow) {
                    self.newest.insert(&call.id);
                    self.versions.extend(call.version.map(|version| (call.id.clone(), version)));
                }
            }
            Operation::CreateUser(record) => self.user(&record.user.username, true),
            Operation::UpdateUser(change) => {
                self.user(&change.username, true);
                self.notified.insert(&change.username);
                self.slack_users.extend(change.slack_user_id().flatten());
            }
            // The deputy is written, and the person must not change meanwhile.
            Operation::NameDeputy(span) => {
                self.user(&span.person, false);
                self.user(&span.deputy, true);
            }
            Operation::RemoveDeputy(id) => {
                self.deputyships.insert(*id);
            }
            Operation::RevokeGrant(id) => {
                self.grants.insert(*id);
            }
            Operation::ChooseNotifications(chosen) => {
                self.user(&chosen.username, true);
                self.notified.insert(&chosen.username);
                self.slack_users.extend(chosen.notifications.slack_user_id.as_deref());
            }
            Operation::SaveViews { username, .. } => {
                self.user(username, true);
                self.viewers.insert(username);
            }
            Operation::AddCredential(new) => self.user(&new.credential.username, false),
            Operation::StartSession(new) => self.session(new),
            Operation::RefuseSignIn(refused) => {
                refused.username.iter().for_each(|name| self.user(name, true));
                self.accounts.insert(&refused.account);
            }
            Operation::LinkAccount { username, account } => {
                self.user(username, true);
                self.accounts.extend(account.as_ref());
            }
            Operation::EndSession { digest } => self.credential(digest, true),
            Operation::RevokeToken(id) => {
                self.tokens.insert(id.0);
            }
            Operation::ChangeSecondFactor { username, .. } | Operation::EraseUser(username) => {
                self.user(username, true);
            }
            Operation::LoginFailed(failed) => self.user(&failed.username, false),
            Operation::ChangePassword(_)
            | Operation::ConfirmSession(_)
            | Operation::RetractFeedback(_)
            | Operation::AcceptHead { .. }
            | Operation::ArchiveRuns(_)
            | Operation::EraseEntries(_) => {}
        }
    }

    fn session(&mut self, new: &'a NewSession) {
        // A proof of the second factor is used up in the person's row.
        self.user(&new.session.credential.username, new.proof.is_some());
        match &new.by {
            SignIn::Password(_) => {}
            SignIn::Link(link) => self.credential(link, true),
            SignIn::Provider(by) => {
                self.user(&new.session.credential.username, true);
                self.accounts.insert(&by.account);
                self.credential(&by.attempt.digest, true);
            }
        }
        new.replaces.iter().for_each(|digest| self.credential(digest, true));
    }

    fn input(&mut self, input: &'a Input) {
        if let Some(by) = input.by() {
            self.user(&by.username, false);
        }
        if let Input::Delegate { to, .. } | Input::Reassign { to: Assignee::User(to), .. } = input {
            self.user(to, false);
        }
    }

    fn user(&mut self, name: &'a Username, is_written: bool) {
        *self.users.entry(name).or_default() |= is_written;
    }

    fn credential(&mut self, digest: &'a [u8; 32], is_used_up: bool) {
        *self.credentials.entry(digest).or_default() |= is_used_up;
    }
}
