//! Creating users: the first one, those of the demo, and those that an admin adds.

use std::time::Duration;

use shared::access::{ADMIN, REVIEWER};
use shared::api::{Erasure, NewUser, User, UserPatch};
use shared::error::{Mistake, pointer};
use shared::id::Username;

use super::credential::credential;
use super::{Error, Passwords, Secret};
use crate::clock::SharedClock;
use crate::store::{
    Actor, Change, CommitError, Committed, CredentialKind, NewUserRecord, Operation, Store, UserChange,
};

/// The lifetime of a login link.
const LINK_LIFE: Duration = Duration::from_hours(24);
const MAX_ROLES: usize = 50;

/// Creates the user `admin` if there are no users. Returns the secret of a one-time login link whenever `admin` has
/// neither a password nor an account at the provider, so that losing a link locks nobody out.
pub async fn bootstrap(
    store: &Store,
    clock: &SharedClock,
    admin_password: Option<String>,
) -> Result<Option<String>, Error> {
    if store.users().await?.is_empty() {
        let admin = person(ADMIN, None, &[ADMIN], clock)?;
        let password_hash = match admin_password {
            Some(password) => {
                let passwords = Passwords::new(clock.clone());
                Some(passwords.hash(None, password, known_of(&admin), "COUNTERSIGN_ADMIN_PASSWORD").await?)
            }
            None => None,
        };
        match create(store, None, admin, password_hash).await {
            // Another server that starts on the same database was faster.
            Ok(_) | Err(Error::Commit(CommitError::Conflict(_))) => {}
            Err(error) => return Err(error),
        }
    }
    match store.user(ADMIN).await? {
        Some(admin) if admin.user.active && admin.password_hash.is_none() && admin.account.is_none() => {
            login_link(store, clock, admin.user.username).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Creates a link that logs a person in, once within a day. Returns its secret.
pub async fn login_link(store: &Store, clock: &SharedClock, username: Username) -> Result<String, Error> {
    let secret = Secret::new(CredentialKind::Link, &**clock);
    let link = credential(CredentialKind::Link, username, secret.digest(), clock.now(), LINK_LIFE);
    store.commit(Change::by_server(Operation::AddCredential(Box::new(link)))).await?;
    Ok(secret.expose())
}

/// Creates the two reviewers of the demo. Returns a login link for each.
pub async fn demo_users(store: &Store, clock: &SharedClock) -> Result<Vec<(Username, String)>, Error> {
    let mut links = Vec::new();
    // Together they have every role that the examples ask for.
    let ana = ("ana", "Ana Novak", [REVIEWER, "editor", "shift-lead"]);
    let tom = ("tom", "Tom Meyer", [REVIEWER, "legal", "manager"]);
    for (name, display_name, roles) in [ana, tom] {
        let user = person(name, Some(display_name), &roles, clock)?;
        let username = user.username.clone();
        match create(store, None, user, None).await {
            Ok(_) | Err(Error::Commit(CommitError::Conflict(_))) => {}
            Err(error) => return Err(error),
        }
        links.push((username.clone(), login_link(store, clock, username).await?));
    }
    Ok(links)
}

/// Adds a user with a password. `by` is `None` at the server's terminal.
pub async fn add_user(
    store: &Store,
    clock: &SharedClock,
    passwords: &Passwords,
    by: Option<Actor>,
    new: NewUser,
) -> Result<User, Error> {
    let roles = check_roles(new.roles)?;
    check_text("/display_name", new.display_name.as_deref())?;
    check_text("/email", new.email.as_deref())?;
    let user = User::new(new.username, roles, clock.now());
    let user = User { display_name: new.display_name, email: new.email, ..user };
    let creator = by.as_ref().map(|by| &by.principal.username);
    let hash = passwords.hash(creator, new.password, known_of(&user), "/password").await?;
    create(store, by, user, Some(hash)).await
}

/// Sets a user's password at the server's terminal.
pub async fn set_password(
    store: &Store,
    passwords: &Passwords,
    username: &Username,
    password: String,
) -> Result<(), Error> {
    let person = store.user(username).await?.ok_or(CommitError::NotFound)?;
    let hash = passwords.hash(None, password, known_of(&person.user), "/password").await?;
    let (username, patch) = (username.clone(), UserPatch::default());
    let change = UserChange { username, patch, password_hash: Some(hash) };
    store.commit(Change::by_server(Operation::UpdateUser(Box::new(change)))).await?;
    Ok(())
}

/// Erases a user who may no longer log in. If the user was erased before, only returns the progress. `by` is `None` at
/// the server's terminal.
pub async fn erase_user(store: &Store, by: Option<Actor>, username: Username) -> Result<Erasure, Error> {
    if let Some(erasure) = store.erasure(&username).await? {
        return Ok(erasure);
    }
    let erased = store.commit(Change { by, key: None, operation: Operation::EraseUser(username) }).await?;
    let Committed::User { user } = erased else { return Err(CommitError::NotFound.into()) };
    Ok(store.erasure(&user.username).await?.ok_or(CommitError::NotFound)?)
}

/// Checks that each role is a valid name, and removes duplicates.
pub fn check_roles(roles: Vec<String>) -> Result<Vec<String>, Error> {
    if roles.len() > MAX_ROLES {
        return invalid("/roles", format!("at most {MAX_ROLES} roles"));
    }
    let mut checked = Vec::with_capacity(roles.len());
    for (index, role) in roles.into_iter().enumerate() {
        // Roles follow the rules of usernames: both occur in flow files and lists.
        if role.parse::<Username>().is_err() {
            let path = pointer(["roles", &index.to_string()]);
            return invalid(
                path,
                format!("`{role}` is not a role: a-z or 0-9 first, then also . _ and -, at most 100"),
            );
        }
        if !checked.contains(&role) {
            checked.push(role);
        }
    }
    Ok(checked)
}

/// Returns what others know of a user, which a password should not consist of.
pub(crate) fn known_of(user: &User) -> Vec<String> {
    let known = [Some(user.username.to_string()), user.display_name.clone(), user.email.clone()];
    known.into_iter().flatten().collect()
}

/// Refuses names and addresses that are too long for lists or contain control characters.
pub(crate) fn check_text(path: &str, text: Option<&str>) -> Result<(), Error> {
    match text {
        Some(text) if text.chars().count() > 200 => invalid(path, "at most 200 characters"),
        Some(text) if text.chars().any(char::is_control) => invalid(path, "control characters are not allowed"),
        _ => Ok(()),
    }
}

fn invalid<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Invalid(vec![Mistake::new(path, "invalid", message)]))
}

fn person(name: &str, display_name: Option<&str>, roles: &[&str], clock: &SharedClock) -> Result<User, Error> {
    let username = name.parse().or_else(|error: shared::id::InvalidName| invalid("/username", error.to_string()))?;
    let roles = roles.iter().map(|&role| role.to_owned()).collect();
    Ok(User { display_name: display_name.map(str::to_owned), ..User::new(username, roles, clock.now()) })
}

async fn create(store: &Store, by: Option<Actor>, user: User, password_hash: Option<String>) -> Result<User, Error> {
    let record = Box::new(NewUserRecord { user: user.clone(), password_hash });
    match store.commit(Change { by, key: None, operation: Operation::CreateUser(record) }).await? {
        Committed::User { user } => Ok(*user),
        _ => Ok(user),
    }
}
