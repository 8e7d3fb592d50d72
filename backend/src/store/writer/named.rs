//! The objects that changes name, which must be read before they are decided.

use std::collections::BTreeSet;

use shared::id::{DeputyId, FlowId, GrantId, ReviewId, RunId, TaskId, Username};
use uuid::Uuid;

use super::super::{Change, Operation, ProviderAccount, SignIn};
use crate::engine::Input;
use crate::flow::calls;

/// What changes name.
#[derive(Default)]
pub(super) struct Named<'a> {
    pub keys: BTreeSet<(&'a str, &'a str)>,
    pub users: BTreeSet<&'a str>,
    pub accounts: BTreeSet<&'a ProviderAccount>,
    pub credentials: BTreeSet<&'a [u8; 32]>,
    pub tokens: BTreeSet<Uuid>,
    pub deputyships: BTreeSet<DeputyId>,
    pub grants: BTreeSet<GrantId>,
    pub slack_users: BTreeSet<&'a str>,
    pub runs: BTreeSet<RunId>,
    pub reviews: BTreeSet<ReviewId>,
    pub tasks: BTreeSet<TaskId>,
    /// Flows of which the newest version is named.
    pub newest: BTreeSet<&'a FlowId>,
    /// Flows of which one more version is to be saved.
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
            self.users.insert(&actor.principal.username);
            self.credentials.extend(actor.credential.as_ref());
        }
        if let Some(key) = &change.key {
            self.keys.insert((&key.scope, &key.key));
        }
        match &change.operation {
            Operation::Launch { run, flow, version, .. } => {
                self.runs.insert(*run);
                match version {
                    Some(version) => {
                        self.versions.insert((flow.clone(), *version));
                    }
                    None => {
                        self.newest.insert(flow);
                    }
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
            Operation::CreateUser(record) => self.user(&record.user.username),
            Operation::UpdateUser(change) => self.user(&change.username),
            Operation::NameDeputy(span) => {
                self.user(&span.person);
                self.user(&span.deputy);
            }
            Operation::RemoveDeputy(id) => {
                self.deputyships.insert(*id);
            }
            Operation::RevokeGrant(id) => {
                self.grants.insert(*id);
            }
            Operation::ChooseNotifications(chosen) => {
                self.user(&chosen.username);
                self.slack_users.extend(chosen.notifications.slack_user_id.as_deref());
            }
            Operation::AddCredential(new) => self.user(&new.credential.username),
            Operation::StartSession(new) => {
                self.user(&new.session.credential.username);
                match &new.by {
                    SignIn::Password(_) => {}
                    SignIn::Link(link) => {
                        self.credentials.insert(link);
                    }
                    SignIn::Provider(by) => {
                        self.accounts.insert(&by.account);
                        self.credentials.insert(&by.attempt.digest);
                    }
                }
                self.credentials.extend(new.replaces.as_ref());
            }
            Operation::RefuseSignIn(refused) => {
                self.users.extend(refused.username.as_ref().map(Username::as_str));
                self.accounts.insert(&refused.account);
            }
            Operation::LinkAccount { username, account } => {
                self.user(username);
                self.accounts.extend(account.as_ref());
            }
            Operation::EndSession { digest } => {
                self.credentials.insert(digest);
            }
            Operation::RevokeToken { id, .. } => {
                self.tokens.insert(id.0);
            }
            Operation::ChangeSecondFactor { username, .. }
            | Operation::LoginFailed { username }
            | Operation::EraseUser(username) => self.user(username),
            // What a password is of is the caller's own.
            Operation::ChangePassword(_)
            | Operation::AcceptHead { .. }
            | Operation::ArchiveRuns(_)
            | Operation::EraseEntries(_) => {}
        }
    }

    fn input(&mut self, input: &'a Input) {
        self.users.extend(input.by().map(|by| by.username.as_str()));
        if let Input::Delegate { to, .. } = input {
            self.user(to);
        }
    }

    fn user(&mut self, name: &'a Username) {
        self.users.insert(name);
    }
}
