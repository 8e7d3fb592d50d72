//! Who has access at all: the end of a person's credentials, the last admin, and names that an erasure takes.

use shared::access::ADMIN;
use shared::id::Username;

use super::super::{CommitError, Credential, CredentialKind};
use super::group::{EndedAccess, Group};

impl Group {
    /// Ends credentials of a person, also for later changes in the same group.
    pub(super) fn end_access(&mut self, name: &Username, ended: EndedAccess) {
        let ends = |digest: &[u8; 32], credential: &Credential| {
            credential.username == *name
                && match ended {
                    EndedAccess::All => true,
                    EndedAccess::AllBut(kept) => *digest != kept,
                    EndedAccess::AllButTokensAnd(kept) => credential.kind != CredentialKind::Token && *digest != kept,
                }
        };
        self.credentials.retain(|digest, credential| !ends(digest, credential));
        self.out.new_credentials.retain(|digest, credential| !ends(digest, credential));
        self.out.ended_access.push((name.clone(), ended));
    }

    /// Whether this person is the only admin. In PostgreSQL, writers check this one after the other, under a lock.
    pub(super) fn is_last_admin(&self, name: &Username) -> bool {
        let people = self.everybody();
        let mut admins = people.values().filter(|person| person.has(ADMIN)).map(|person| &person.username).peekable();
        admins.peek().is_some() && admins.all(|admin| admin == name)
    }

    /// Returns an error if the name cannot be used because of an erasure: it is being erased, or is a pseudonym.
    pub(super) fn check_not_erased(&self, name: &Username) -> Result<(), CommitError> {
        if !self.erasures.names.contains(name) {
            return Ok(());
        }
        Err(CommitError::Conflict(if self.users.contains_key(name) {
            format!("{name} is the pseudonym of an erased person: no one can log in with it")
        } else {
            format!("a person named {name} is being erased: the name is free when this is done")
        }))
    }
}
