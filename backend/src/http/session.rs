//! `/api/v1/session`: logging in and out.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum_extra::extract::cookie::{Cookie, SameSite};
use shared::api::{LinkSecret, LoginRequest, User};

use super::AppState;
use super::account::InSession;
use super::api::{Api, Operation};
use super::body::Json;
use super::problem::Result;
use crate::auth::{Attempt, BROWSER_COOKIE, BROWSER_LIFE, SECURE_SESSION_COOKIE, SESSION_COOKIE};
use crate::client_address::ClientAddress;

const PATH: &str = "/api/v1/session";

pub(super) fn mount(api: &mut Api) {
    let login = Operation::new("Log in with a password or the secret of a link", "User").body("LoginRequest").open();
    api.post(PATH, login, post);
    api.delete(PATH, Operation::new("Log out", "").status(204).open(), delete);
    let link = Operation::new("Whom a link logs in; asking does not use it up", "User").body("LinkSecret").open();
    api.post("/api/v1/session/link", link, self::link);
}

async fn post(
    State(state): State<AppState>,
    headers: HeaderMap,
    client: ClientAddress,
    Json { value, .. }: Json<LoginRequest>,
) -> Result<Response> {
    let mut attempt = Attempt {
        agent: headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).map(str::to_owned),
        session: cookie_of(&headers, SECURE_SESSION_COOKIE).or_else(|| cookie_of(&headers, SESSION_COOKIE)),
        browser: cookie_of(&headers, BROWSER_COOKIE),
        ..Attempt::from(client)
    };
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
    let life = state.authenticator.policy().session_life;
    let session = session_cookies(&headers, login.session.expose(), life);
    let browser = login.browser.map(|secret| cookie(&headers, BROWSER_COOKIE, secret.expose(), PATH, BROWSER_LIFE));
    let mut response = axum::Json(login.user).into_response();
    set_cookies(&mut response, session.into_iter().chain(browser));
    Ok(response)
}

async fn link(
    State(state): State<AppState>,
    Json { value: LinkSecret { token }, .. }: Json<LinkSecret>,
) -> Result<axum::Json<User>> {
    Ok(axum::Json(state.authenticator.link_owner(&token).await?))
}

/// Who is not logged in is logged out: no failure. A token is not ended by this.
async fn delete(State(state): State<AppState>, headers: HeaderMap, caller: Option<InSession>) -> Result<Response> {
    if let Some(InSession(identity)) = caller {
        state.authenticator.logout(&identity).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookies(&mut response, session_cookies(&headers, String::new(), Duration::ZERO));
    Ok(response)
}

fn set_cookies(response: &mut Response, cookies: impl IntoIterator<Item = String>) {
    for cookie in cookies {
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
}

/// The session's cookie: over https for this host alone. One of the other name is older, and would let its bearer in
/// after this one has ended, so it goes.
fn session_cookies(headers: &HeaderMap, secret: String, life: Duration) -> Vec<String> {
    if !is_https(headers) {
        return vec![cookie(headers, SESSION_COOKIE, secret, "/", life)];
    }
    let older = cookie(headers, SESSION_COOKIE, String::new(), "/", Duration::ZERO);
    vec![cookie(headers, SECURE_SESSION_COOKIE, secret, "/", life), older]
}

/// The value of a cookie of the request.
fn cookie_of(headers: &HeaderMap, name: &str) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// Whether the page that asks came over https. A server behind a proxy cannot tell otherwise, and one on the loopback
/// without https must work too.
fn is_https(headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"))
}

/// A cookie, over https for https alone.
fn cookie(headers: &HeaderMap, name: &'static str, secret: String, path: &'static str, life: Duration) -> String {
    let max_age = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
    let cookie = Cookie::build((name, secret)).path(path).http_only(true).same_site(SameSite::Lax);
    // The builder's own `max_age` takes a type of a crate that nothing else here needs.
    format!("{}; Max-Age={max_age}", cookie.secure(is_https(headers)).build())
}
