//! Sessions, passwords and second factors: everything checked before the transaction is checked again in it.

use shared::access::{Act, Principal};
use shared::error::Mistake;
use shared::id::Username;
use shared::log::{EventData, LoggedIn, SecondFactorChange, SessionEnded, UserChanged};

use super::super::{
    CommitError, Committed, ConfirmedSession, Credential, CredentialKind, FactorChange, NewSession, PasswordChange,
    Proof, SecondFactor, SignIn, UserRecord,
};
use super::group::{ChangeResult, EndedAccess, Group};
use super::provider::account;
use super::rights::{LastLogin, allow};
use crate::clock::Moment;
use crate::engine::Refusal;

impl Group {
    pub fn start_session(&mut self, new: NewSession, moment: Moment) -> ChangeResult {
        let NewSession { session, by, proof, replaces, browser } = new;
        let name = session.credential.username.clone();
        let link = match &by {
            SignIn::Password(phc) => {
                if self.active(&name)?.password_hash.as_ref() != Some(phc) {
                    return Err(CommitError::Unauthenticated);
                }
                None
            }
            SignIn::Provider(by) => {
                self.check_provider(&name, by)?;
                None
            }
            SignIn::Link(link) => {
                self.active(&name)?;
                let holds = |credential: &&Credential| {
                    credential.kind == CredentialKind::Link
                        && credential.username == name
                        && !credential.is_over(moment.now)
                };
                self.credentials.get(link).filter(holds).ok_or(CommitError::NotFound)?;
                Some(*link)
            }
        };
        // A new person has no second factor. With a link, the code comes later.
        let is_session = session.credential.kind == CredentialKind::Session;
        let proven = match self.users.get_mut(&name) {
            Some(record) if is_session => use_up(record, proof)?,
            _ => None,
        };
        // From here on, nothing is refused.
        let mut logged_in = LoggedIn::of(name.clone());
        if let SignIn::Provider(by) = by {
            logged_in.single_sign_on = Some(account(&by.account));
            self.follow_provider(&name, *by, moment);
        }
        let user = self.active_mut(&name)?.user.clone();
        if let Some(link) = link {
            self.end_credential(&link);
        }
        if let Some(replaced) = replaces {
            self.end_session(None, &replaced, moment)?;
        }
        for new in std::iter::once(session).chain(browser) {
            self.credentials.insert(new.digest, new.credential.clone());
            self.out.new_credentials.insert(new.digest, new.credential);
        }
        logged_in.link = link.is_some();
        if let Some(proven) = proven {
            logged_in.second_factor = Some(proven.to_owned());
            self.out.users.insert(name.clone());
        }
        let what = if is_session { EventData::SessionStarted } else { EventData::LinkCreated };
        self.emit_by(Some(&name), &what(logged_in), moment);
        Ok(Committed::User { user: Box::new(user) })
    }

    /// Ends a session: the actor's own, or any if the server itself acts.
    pub fn end_session(&mut self, by: Option<&Principal>, digest: &[u8; 32], moment: Moment) -> ChangeResult {
        let session = self.credentials.get(digest).filter(|credential| credential.kind == CredentialKind::Session);
        let Some(name) = session.map(|session| session.username.clone()) else { return Ok(Committed::Done) };
        if by.is_some_and(|by| by.username != name) {
            return Err(CommitError::NotFound);
        }
        self.end_credential(digest);
        let ended = EventData::SessionEnded(SessionEnded { username: name.clone() });
        self.emit_by(Some(&name), &ended, moment);
        Ok(Committed::Done)
    }

    pub fn change_password(&mut self, by: Option<&Principal>, change: PasswordChange, moment: Moment) -> ChangeResult {
        let by = by.filter(|by| !by.token).ok_or(CommitError::Unauthenticated)?;
        let record = self.active_mut(&by.username)?;
        if record.password_hash.as_ref() != Some(&change.from) {
            return Err(CommitError::Conflict("the password was changed a moment ago".to_owned()));
        }
        record.password_hash = Some(change.to);
        let has_factor = record.confirmed_factor().is_some();
        self.out.users.insert(by.username.clone());
        // Whoever has a second factor has not proved it here.
        if !has_factor {
            self.prove_session(change.keep, moment);
        }
        let ended = if change.end_tokens { EndedAccess::AllBut } else { EndedAccess::AllButTokensAnd };
        self.end_access(&by.username, ended(change.keep));
        let changed =
            UserChanged { password: true, tokens_ended: change.end_tokens, ..UserChanged::of(by.username.clone()) };
        self.emit(Some(by), &EventData::UserUpdated(changed), moment);
        Ok(Committed::Done)
    }

    /// Confirms a session of the actor with their password and second factor.
    pub fn confirm_session(
        &mut self,
        by: Option<&Principal>,
        confirmed: &ConfirmedSession,
        moment: Moment,
    ) -> ChangeResult {
        let by = by.filter(|by| !by.token).ok_or(CommitError::Unauthenticated)?;
        let session = self.credentials.get(&confirmed.session);
        let is_theirs =
            |session: &&Credential| session.kind == CredentialKind::Session && session.username == by.username;
        session.filter(is_theirs).ok_or(CommitError::Unauthenticated)?;
        let record = self.active_mut(&by.username)?;
        if record.password_hash.as_ref() != Some(&confirmed.password) {
            return Err(CommitError::Conflict("the password was changed a moment ago".to_owned()));
        }
        let proven = use_up(record, confirmed.proof).map_err(|_| wrong_code())?;
        if proven.is_some() {
            self.out.users.insert(by.username.clone());
        }
        self.prove_session(confirmed.session, moment);
        let second_factor = proven.map(str::to_owned);
        let confirmed = LoggedIn { second_factor, ..LoggedIn::of(by.username.clone()) };
        self.emit(Some(by), &EventData::SessionConfirmed(confirmed), moment);
        Ok(Committed::Done)
    }

    /// Records that the owner of a session has just proved that it is theirs.
    fn prove_session(&mut self, digest: [u8; 32], moment: Moment) {
        if let Some(session) = self.credentials.get_mut(&digest) {
            session.confirmed_at = Some(moment.now);
            self.out.confirmed_sessions.insert(digest, moment.now);
        }
    }

    pub fn change_second_factor(
        &mut self,
        by: Option<&Principal>,
        last_login: LastLogin,
        name: &Username,
        change: FactorChange,
        moment: Moment,
    ) -> ChangeResult {
        let own = by.is_some_and(|by| by.username == *name && !by.token);
        let by_admin = matches!(change, FactorChange::Remove(None));
        if by_admin {
            allow(by, Act::ResetAccess(name))?;
            last_login.require_recent()?;
        } else if !own {
            return Err(CommitError::Forbidden("only the person can set up their second factor".to_owned()));
        }
        let record = self.users.get_mut(name).ok_or(CommitError::NotFound)?;
        let is_on = record.confirmed_factor().is_some();
        let conflict = |why: &str| Err(CommitError::Conflict(why.to_owned()));
        let became = match change {
            FactorChange::Begin(_) | FactorChange::Confirm { .. } if is_on => {
                return conflict("there is already a second factor; remove it first");
            }
            FactorChange::Begin(secret) => {
                // Whoever has a password gives it.
                if record.password_hash.is_none() {
                    last_login.require_recent()?;
                }
                let factor = SecondFactor { secret, confirmed: false, used_step: 0, recovery: Vec::new() };
                record.second_factor = Some(factor);
                SecondFactorChange::Begun
            }
            FactorChange::Confirm { secret, step, recovery } => {
                if record.second_factor.as_ref().is_none_or(|factor| factor.secret != secret) {
                    return conflict("another secret was set in the meantime; start again");
                }
                record.second_factor = Some(SecondFactor { secret, confirmed: true, used_step: step, recovery });
                SecondFactorChange::On
            }
            FactorChange::Remove(proof) => {
                if !by_admin {
                    use_up(record, proof).map_err(|_| wrong_code())?;
                }
                if record.second_factor.take().is_none() {
                    return Ok(Committed::Done);
                }
                SecondFactorChange::Off
            }
        };
        self.out.users.insert(name.clone());
        let changed = UserChanged { second_factor: Some(became), ..UserChanged::of(name.clone()) };
        self.emit(by, &EventData::UserUpdated(changed), moment);
        Ok(Committed::Done)
    }

    fn end_credential(&mut self, digest: &[u8; 32]) {
        self.credentials.remove(digest);
        self.out.new_credentials.remove(digest);
        self.out.ended_credentials.insert(*digest);
    }

    fn active_mut(&mut self, name: &Username) -> Result<&mut UserRecord, CommitError> {
        self.users.get_mut(name).filter(|record| record.user.active).ok_or(CommitError::Unauthenticated)
    }
}

/// The refusal of a proof in a session, which stays valid.
fn wrong_code() -> CommitError {
    let why = "the code was used a moment ago; wait for the next one";
    CommitError::Refused(Refusal::Invalid(vec![Mistake::new("/code", "invalid", why)]))
}

/// Uses up the proof of a second factor. Returns its kind, or `None` if the person has no second factor.
fn use_up(record: &mut UserRecord, proof: Option<Proof>) -> Result<Option<&'static str>, CommitError> {
    let Some(factor) = record.second_factor.as_mut().filter(|factor| factor.confirmed) else { return Ok(None) };
    match proof {
        Some(Proof::Step(step)) if step > factor.used_step => {
            factor.used_step = step;
            Ok(Some("code"))
        }
        Some(Proof::Recovery(digest)) => {
            let digest = hex::encode(digest);
            let place = factor.recovery.iter().position(|known| *known == digest);
            factor.recovery.remove(place.ok_or(CommitError::Unauthenticated)?);
            Ok(Some("recovery"))
        }
        Some(Proof::Step(_)) | None => Err(CommitError::Unauthenticated),
    }
}
