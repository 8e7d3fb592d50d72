//! Decides a change of a group on top of the earlier ones: dispatches it to the part of the group that does so, and
//! returns earlier results of the same change. It is above all modules that read and decide.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shared::access::Principal;
use shared::log::{EventData, HeadAccepted};

use super::super::{Change, CommitError, Committed, Operation};
use super::group::{ChangeResult, Group, UsedKey};
use super::rights::{LastLogin, allow_again};
use crate::clock::Moment;

impl Group {
    /// Decides one change on top of those before it. After an error, nothing of the change is written, except for the
    /// expiry of a deadline that it missed, and for entries that say what guardrails blocked in it.
    pub fn decide(&mut self, change: &Change, moment: Moment) -> ChangeResult {
        let Change { by, key, operation } = change;
        let principal = by.as_ref().map(|actor| self.principal(actor, moment.now)).transpose()?;
        let last_login = self.last_login(by.as_ref(), moment.now)?;
        if let Some(key) = key
            && let Some(used) = self.keys.get(&(key.scope.clone(), key.key.clone()))
        {
            if used.body != key.body {
                return Err(CommitError::KeyReused);
            }
            let answer = used.answer.clone().ok_or_else(|| {
                CommitError::Conflict("this was already done, and its secret is shown only once".to_owned())
            })?;
            allow_again(principal.as_ref(), operation, &answer)?;
            return Ok(answer);
        }
        // A flow that triggers a bug in the engine must not stop the writer.
        let answer = catch_unwind(AssertUnwindSafe(|| self.operate(operation, principal.as_ref(), last_login, moment)))
            .unwrap_or_else(|_| Err(CommitError::Failed("this change failed; see the server's log".to_owned())))?;
        if let Some(key) = key {
            let kept = (!matches!(answer, Committed::Token { .. })).then(|| answer.clone());
            self.keys.insert((key.scope.clone(), key.key.clone()), UsedKey { body: key.body, answer: kept.clone() });
            self.out.keys.push((key.clone(), moment.now, kept));
        }
        Ok(answer)
    }

    fn operate(
        &mut self,
        operation: &Operation,
        by: Option<&Principal>,
        last_login: LastLogin,
        moment: Moment,
    ) -> ChangeResult {
        match operation {
            Operation::Launch { run, flow, version, input, context, callback_url } => {
                let launched = self.launch(by, *run, flow, *version, input.clone(), (**context).clone(), moment)?;
                self.out.callbacks.extend(callback_url.clone().map(|url| (*run, url)));
                Ok(launched)
            }
            Operation::Ask { run, question } => self.ask(by, *run, question, moment),
            Operation::Run { run, input } => self.apply_to_run(by, *run, (**input).clone(), moment),
            Operation::Review { review, input } => self.apply_to_review(by, *review, (**input).clone(), moment),
            Operation::GiveFeedback { run, involvement, feedback } => {
                self.give_feedback(by, *run, *involvement, (**feedback).clone(), moment)
            }
            Operation::RetractFeedback(id) => self.retract_feedback(by, *id, moment),
            Operation::SaveFlow(flow) => self.save_flow(by, (**flow).clone(), moment),
            Operation::CreateUser(record) => self.create_user(by, last_login, (**record).clone(), moment),
            Operation::UpdateUser(change) => self.update_user(by, last_login, (**change).clone(), moment),
            Operation::NameDeputy(span) => self.name_deputy(by, last_login, (**span).clone(), moment),
            Operation::RemoveDeputy(id) => self.remove_deputy(by, *id, moment),
            Operation::RevokeGrant(id) => self.revoke_grant(by, *id, moment),
            Operation::ChooseNotifications(chosen) => {
                self.choose_notifications(by, last_login, (**chosen).clone(), moment)
            }
            Operation::SaveViews { username, views } => self.save_views(by, username, views, moment),
            Operation::AddCredential(new) => self.add_credential(by, last_login, (**new).clone(), moment),
            Operation::StartSession(new) => self.start_session((**new).clone(), moment),
            Operation::RefuseSignIn(refused) => Ok(self.refuse_sign_in(refused, moment)),
            Operation::ChangePassword(change) => self.change_password(by, (**change).clone(), moment),
            Operation::ChangeSecondFactor { username, change } => {
                self.change_second_factor(by, last_login, username, change.clone(), moment)
            }
            Operation::LinkAccount { username, account } => self.link_account(by, username, account.as_ref(), moment),
            Operation::ConfirmSession(confirmed) => self.confirm_session(by, confirmed, moment),
            Operation::EndSession { digest } => self.end_session(by, digest, moment),
            Operation::RevokeToken(id) => self.revoke_token(by, *id, moment),
            Operation::LoginFailed(failed) => Ok(self.login_failed(failed, moment)),
            Operation::ArchiveRuns(archive) => self.archive_runs(archive, moment),
            Operation::EraseUser(username) => self.erase_user(by, last_login, username, moment),
            Operation::EraseEntries(new) => self.erase_entries(new, moment),
            Operation::AcceptHead { previous, head } => {
                let (previous, head) = (previous.clone(), head.clone());
                self.emit(by, &EventData::HeadAccepted(HeadAccepted { previous, head }), moment);
                Ok(Committed::Done)
            }
        }
    }
}
