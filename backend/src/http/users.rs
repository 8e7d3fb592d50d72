//! `/api/v1/users`: the users, for admins.

use axum::Json;
use axum::response::NoContent;
use shared::access::Act;
use shared::api::{Erasure, NewUser, Page, User, UserPatch};
use shared::error::{Code, Problem};
use shared::id::Username;

use super::api::Api;
use super::body::{self, Id, Params};
use super::idempotency::RequestKey;
use super::notifications::NO_SLACK_USER_ID;
use super::outputs::Created;
use super::pagination::{List, Paging};
use super::problem::{Result, unexpected};
use super::{Caller, Write};
use crate::auth::{add_user, check_roles, check_text, erase_user, known_of};
use crate::notify::is_slack_user_id;
use crate::store::{self, Committed, FactorChange, UserChange};

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/users", "List people, by name", list);
    api.post("/api/v1/users", "Add a person", create);
    api.patch("/api/v1/users/{username}", "Change a person", update);
    let about = "Remove a person's second factor, soon after a login, for example if their device is lost";
    api.delete("/api/v1/users/{username}/totp", about, reset_totp);
    let about = "Erase the personal data of a person who may no longer log in, soon after a login";
    api.delete("/api/v1/users/{username}/personal-data", about, erase);
}

async fn list(caller: Caller, Params(paging): Params<Paging>) -> Result<Json<Page<User>>> {
    caller.may(Act::ManagePeople)?;
    let mut items = caller.state.store.users().await?;
    let mut slack_user_ids = caller.state.store.slack_user_ids().await?;
    for user in &mut items {
        user.slack_user_id = slack_user_ids.remove(user.username.as_str());
    }
    Ok(Json(List("users").by_name(items, paging, |user| user.username.to_string())?))
}

/// Takes no idempotency key: a digest of the body would be one of the password.
async fn create(caller: Caller, body::Json { value, .. }: body::Json<NewUser>) -> Result<Created<User>> {
    caller.may(Act::GiveRoles(&value.roles))?;
    let passwords = caller.state.authenticator.passwords();
    let user =
        add_user(&caller.state.store, &caller.state.clock, passwords, Some(caller.identity.actor()), value).await?;
    Ok(Created(user))
}

async fn reset_totp(write: Write, Id(username): Id<Username>) -> Result<NoContent> {
    write.caller.may(Act::ResetAccess(&username))?;
    let remove = store::Operation::ChangeSecondFactor { username, change: FactorChange::Remove(None) };
    write.commit_without_body(remove).await?;
    write.caller.state.authenticator.invalidate();
    Ok(NoContent)
}

/// Takes no idempotency key: it would keep the name, and doing it again changes nothing.
async fn erase(caller: Caller, Id(username): Id<Username>) -> Result<Json<Erasure>> {
    caller.may(Act::ManagePeople)?;
    let erased = erase_user(&caller.state.store, Some(caller.identity.actor()), username).await;
    // The person may be erased even if what follows failed.
    caller.state.authenticator.invalidate();
    Ok(Json(erased?))
}

async fn update(
    caller: Caller,
    Id(username): Id<Username>,
    key: RequestKey,
    body::Json { value: mut patch, digest }: body::Json<UserPatch>,
) -> Result<Json<User>> {
    caller.may(Act::ManagePeople)?;
    if let Some(roles) = patch.roles.take() {
        patch.roles = Some(check_roles(roles)?);
    }
    if let Some(roles) = &patch.roles {
        caller.may(Act::GiveRoles(roles))?;
    }
    if patch.password.is_some() {
        caller.may(Act::ResetAccess(&username))?;
    }
    check_text("/display_name", patch.display_name.as_deref())?;
    check_text("/email", patch.email.as_deref())?;
    if let Some(id) = &mut patch.slack_user_id {
        *id = id.trim().to_owned();
        if !id.is_empty() && !is_slack_user_id(id) {
            return Err(Problem::invalid("/slack_user_id", NO_SLACK_USER_ID).into());
        }
    }
    let person = caller.state.store.user(&username).await?.ok_or_else(|| Problem::new(Code::NotFound))?.user;
    let (key, password_hash) = match patch.password.take() {
        Some(password) => {
            let known = known_of(&person);
            let passwords = caller.state.authenticator.passwords();
            (None, Some(passwords.hash(Some(&caller.principal().username), password, known, "/password").await?))
        }
        None => (key.of(&caller.identity, digest), None),
    };
    let change = Box::new(UserChange { username, patch, password_hash });
    let answer = caller.commit(key, store::Operation::UpdateUser(change)).await?;
    caller.state.authenticator.invalidate();
    let Committed::User { user } = answer else { return Err(unexpected()) };
    Ok(Json(*user))
}
