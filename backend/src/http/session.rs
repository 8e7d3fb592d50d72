//! `/api/v1/session`: logging in and out.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum_extra::extract::cookie::{Cookie, SameSite};
use shared::api::LoginRequest;

use super::api::{Api, Operation};
use super::body::Json;
use super::problem::Result;
use super::{AppState, Caller};
use crate::auth::{SESSION_COOKIE, SESSION_LIFE};
use crate::client_address::ClientAddress;
use crate::store::CredentialKind;

const PATH: &str = "/api/v1/session";

pub(super) fn mount(api: &mut Api) {
    let login = Operation::new("Log in with a password or the secret of a link", "User").body("LoginRequest").open();
    api.post(PATH, login, post);
    api.delete(PATH, Operation::new("Log out", "").status(204).open(), delete);
}

async fn post(
    State(state): State<AppState>,
    headers: HeaderMap,
    client: ClientAddress,
    Json { value, .. }: Json<LoginRequest>,
) -> Result<Response> {
    let login = match value {
        LoginRequest::Password { username, password } => state.authenticator.login(&username, password, client).await?,
        LoginRequest::Link { token } => state.authenticator.redeem(&token, client).await?,
    };
    let cookie = cookie(&headers, login.session.expose(), SESSION_LIFE);
    Ok((AppendHeaders([(header::SET_COOKIE, cookie)]), axum::Json(login.user)).into_response())
}

/// Who is not logged in is logged out: no failure. A token is not ended by this.
async fn delete(State(state): State<AppState>, headers: HeaderMap, caller: Option<Caller>) -> Result<Response> {
    if let Some(Caller(identity)) = caller
        && identity.kind == CredentialKind::Session
    {
        state.authenticator.logout(&identity).await?;
    }
    let gone = cookie(&headers, String::new(), Duration::ZERO);
    Ok((StatusCode::NO_CONTENT, AppendHeaders([(header::SET_COOKIE, gone)])).into_response())
}

/// The session's cookie. `Secure` where the page that asks came over https; a server behind a proxy cannot tell
/// otherwise, and one on the loopback without https must work too.
fn cookie(headers: &HeaderMap, secret: String, life: Duration) -> String {
    let https = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let max_age = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
    let cookie = Cookie::build((SESSION_COOKIE, secret)).path("/").http_only(true).same_site(SameSite::Lax);
    // The builder's own `max_age` takes a type of a crate that nothing else here needs.
    format!("{}; Max-Age={max_age}", cookie.secure(https).build())
}
