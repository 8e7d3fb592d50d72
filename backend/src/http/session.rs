//! `/api/v1/session`: logging in and out.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use shared::access::Principal;
use shared::api::{LinkSecret, LoginRequest, User};
use shared::single_sign_on::LoginWays;

use super::AppState;
use super::api::{Api, OperationDoc};
use super::body::Json;
use super::caller::InSession;
use super::cookies::{Cookies, SESSION_PATH as PATH};
use super::me::user_of;
use super::origin::came_over_https;
use super::problem::Result;
use crate::auth::{Attempt, BROWSER_COOKIE, BROWSER_LIFE, Login, Secret, cookie, session_cookie};
use crate::client_address::ClientAddress;

pub(super) fn mount(api: &mut Api) {
    let login = OperationDoc::new("Log in with a password or the secret of a login link").answer::<User>().open();
    api.post(PATH, login, post);
    api.get(PATH, OperationDoc::new("List the login methods besides passwords and links").open(), login_methods);
    api.delete(PATH, OperationDoc::new("Log out").status(204).open(), delete);
    let link = OperationDoc::new("Get the user of a login link, without using it up").open();
    api.post("/api/v1/session/link", link, self::link);
}

async fn login_methods(State(state): State<AppState>) -> axum::Json<LoginWays> {
    let single_sign_on = state.authenticator.provider().map(|provider| provider.label().to_owned());
    axum::Json(LoginWays { single_sign_on })
}

async fn post(
    State(state): State<AppState>,
    headers: HeaderMap,
    client: ClientAddress,
    Json { value, .. }: Json<LoginRequest>,
) -> Result<Response> {
    let mut attempt = attempt(&headers, client);
    let login = match value {
        LoginRequest::Password { username, password, code } => {
            attempt.code = code;
            state.authenticator.login(&username, password, attempt).await?
        }
        LoginRequest::Link { token, code } => {
            attempt.code = code;
            state.authenticator.redeem(&token, attempt).await?
        }
    };
    let Login { user, session, browser } = login;
    // A login writes a session and a log entry. It is never refused because of what the person has written before, since
    // a session is what ends other sessions and tokens; logins have limits of their own.
    let roles = user.roles.iter().cloned().collect();
    state.options.budgets.count(&Principal::new(user.username.clone(), roles), state.clock.uptime());
    // The session has begun, and a link is used up: whatever fails now must not keep the cookies back.
    let user = as_me(&state, &session).await.unwrap_or_else(|error| {
        tracing::warn!(error = %error.0, "after a login, the person could not be read");
        user
    });
    let life = state.authenticator.policy().session_life.0;
    let secure = is_https(&state, &headers);
    let mut response = axum::Json(user).into_response();
    Cookies::session(secure, session.expose(), life).put(&mut response);
    if let Some(browser) = browser {
        Cookies::one(secure, BROWSER_COOKIE, browser.expose(), PATH, BROWSER_LIFE).put(&mut response);
    }
    Ok(response)
}

/// Returns the owner of a session as `GET /api/v1/me` does.
async fn as_me(state: &AppState, session: &Secret) -> Result<User> {
    let identity = state.authenticator.look_up(session.digest()).await?;
    user_of(state, &identity).await
}

async fn link(
    State(state): State<AppState>,
    Json { value: LinkSecret { token }, .. }: Json<LinkSecret>,
) -> Result<axum::Json<User>> {
    Ok(axum::Json(state.authenticator.link_owner(&token).await?))
}

/// Logs the caller out. Without a session, this is not an error; it does not end a token.
async fn delete(State(state): State<AppState>, headers: HeaderMap, caller: Option<InSession>) -> Result<Response> {
    if let Some(InSession { identity, .. }) = caller {
        state.authenticator.logout(&identity).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    Cookies::session(is_https(&state, &headers), String::new(), Duration::ZERO).put(&mut response);
    Ok(response)
}

/// Returns a login attempt with what is known about the client, but without a code.
pub(super) fn attempt(headers: &HeaderMap, client: ClientAddress) -> Attempt {
    Attempt {
        agent: headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).map(str::to_owned),
        session: session_cookie(headers).map(str::to_owned),
        browser: cookie(headers, BROWSER_COOKIE).map(str::to_owned),
        ..Attempt::from(client)
    }
}

/// Whether the requesting page was loaded over https, or the request names a public host that is. Behind a proxy, the
/// server cannot know it in another way, and on the loopback address logins must work without https.
fn is_https(state: &AppState, headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"))
        || came_over_https(headers, &state.options.public_origins)
}
