//! `/api/v1/tokens`: tokens for programs, the caller's own; for admins, also those of others.

use axum::Json;
use axum::response::NoContent;
use serde::Deserialize;
use shared::access::Act;
use shared::api::{NewToken, Page, Token};
use shared::error::{Code, Problem, pointer};
use shared::id::{TokenId, Username};

use super::api::Api;
use super::body::{self, Id, Params, refuse};
use super::outputs::Created;
use super::pagination::{List, Paging};
use super::problem::{Result, unexpected};
use super::{Caller, Write};
use crate::auth::{Secret, check_roles};
use crate::clock::Moment;
use crate::store::{self, Committed, Credential, CredentialKind, NewCredential};

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/tokens", "List your tokens; admins may list those of others", list);
    api.post("/api/v1/tokens", "Create a token, soon after a login; its secret is shown once", create);
    api.delete("/api/v1/tokens/{id}", "Revoke a token; admins may revoke those of others", revoke);
}

/// The person whose tokens are listed; default: the caller.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct TokenQuery {
    user: Option<Username>,
    /// The most rows of the page.
    limit: Option<u32>,
    /// The cursor at which the page begins.
    cursor: Option<String>,
}

async fn list(caller: Caller, Params(query): Params<TokenQuery>) -> Result<Json<Page<Token>>> {
    let TokenQuery { user, limit, cursor } = query;
    let owner = user.unwrap_or_else(|| caller.principal().username.clone());
    caller.may(Act::ManageTokens(&owner))?;
    let items = caller.state.store.tokens(&owner).await?;
    let paging = Paging { limit, cursor };
    Ok(Json(List("tokens").newest(items, paging, |token| (token.created_at, token.id))?))
}

async fn create(write: Write, body::Json { value, digest }: body::Json<NewToken>) -> Result<Created<Token>> {
    let caller = &write.caller;
    caller.may(Act::CreateToken(&caller.principal().username))?;
    caller.in_session()?;
    let name = value.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        return Err(Problem::invalid("/name", "must have 1 to 100 characters that say what the token is for").into());
    }
    let roles = check_roles(value.roles)?;
    if let Some(index) = roles.iter().position(|role| !caller.principal().has(role)) {
        let path = pointer(["roles", &index.to_string()]);
        return Err(Problem::invalid(path, "a token can have only roles that its creator has").into());
    }
    let moment = Moment::of(&*caller.state.clock);
    let is_past = value.expires_at.is_some_and(|at| at <= moment.now);
    refuse([("/expires_at", is_past, "this time is in the past")])?;
    let latest = caller.state.authenticator.policy().token_life.map(|life| moment.now.after(life.0));
    if let (Some(at), Some(latest)) = (value.expires_at, latest)
        && at > latest
    {
        return Err(
            Problem::invalid("/expires_at", format!("the server's settings allow {latest} at the latest")).into()
        );
    }
    let id = TokenId(moment.ids().uuid());
    let secret = Secret::new(CredentialKind::Token, &*caller.state.clock);
    let credential = Credential {
        kind: CredentialKind::Token,
        id: Some(id),
        name: Some(name),
        username: caller.principal().username.clone(),
        roles: Some(roles),
        created_at: moment.now,
        expires_at: value.expires_at.or(latest),
        last_used_at: None,
        client: None,
        confirmed_at: None,
    };
    let new = Box::new(NewCredential { digest: secret.digest(), credential });
    let answer = write.commit(digest, store::Operation::AddCredential(new)).await?;
    let Committed::Token { token } = answer else { return Err(unexpected()) };
    if token.id != id {
        let detail = format!("this request already created token {}; its secret was shown then", token.id);
        return Err(Problem::new(Code::Conflict).detail(detail).into());
    }
    Ok(Created(Token { secret: Some(secret.expose()), ..*token }))
}

/// Revokes a token; admins may revoke anyone's.
async fn revoke(write: Write, Id(id): Id<TokenId>) -> Result<NoContent> {
    let caller = &write.caller;
    caller.may(Act::ManageTokens(&caller.principal().username))?;
    write.commit_without_body(store::Operation::RevokeToken(id)).await?;
    caller.state.authenticator.invalidate();
    Ok(NoContent)
}
