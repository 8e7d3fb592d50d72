//! `/api/v1/session/oidc`: redirects to the identity provider and back. Browsers open these addresses as pages, so
//! errors are redirects to the login page.

use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use shared::single_sign_on::{BEGIN, Trouble, is_own_page};

use super::AppState;
use super::api::{Api, OperationDoc};
use super::cookies::{Cookies, SESSION_PATH};
use crate::auth::oidc::{LIFE, Returned};
use crate::auth::{Entered, cookie};
use crate::client_address::ClientAddress;

/// The cookie that holds the state of a sign-in while the browser is at the provider. [`SECURE_COOKIE`] replaces it
/// over https.
const COOKIE: &str = "countersign_sign_in";
const SECURE_COOKIE: &str = "__Host-countersign_sign_in";

pub(super) fn mount(api: &mut Api) {
    let begin = OperationDoc::new("Begin a login with the identity provider; for browsers");
    api.get(BEGIN, begin.query(&["next", "again"]).status(303).open(), self::begin);
    let back = OperationDoc::new("Return from the identity provider; for browsers");
    let back = back.query(&["state", "code", "error", "iss"]).status(303).open();
    api.get("/api/v1/session/oidc/callback", back, callback);
}

async fn begin(State(state): State<AppState>, RawQuery(query): RawQuery) -> Response {
    let next = one(query.as_deref(), "next").filter(|next| is_own_page(next));
    let again = one(query.as_deref(), "again").as_deref() == Some("true");
    // At least half of the time is left for what needs a recent login.
    let max_age = again.then(|| state.authenticator.policy().confirm_after.0 / 2);
    let Some(provider) = state.authenticator.provider() else { return failed(Trouble::Off, next.as_deref()) };
    match provider.begin(next.clone(), max_age).await {
        Ok((url, cookie)) => {
            let mut response = see(&url);
            pending(provider.is_https(), cookie, LIFE).put(&mut response);
            response
        }
        Err(error) => {
            tracing::warn!(%error, "a login with the identity provider could not be begun");
            failed(Trouble::Provider, next.as_deref())
        }
    }
}

async fn callback(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    client: ClientAddress,
) -> Response {
    let Some(provider) = state.authenticator.provider() else { return failed(Trouble::Off, None) };
    let secure = provider.is_https();
    let cookie = cookie(&headers, if secure { SECURE_COOKIE } else { COOKIE });
    let begun = cookie.and_then(|cookie| provider.begun(cookie));
    let next = begun.as_ref().and_then(|begun| begun.next.clone());
    let get = |name: &str| one(query.as_deref(), name);
    let returned = Returned { state: get("state"), code: get("code"), error: get("error"), issuer: get("iss") };
    let entered = match &begun {
        Some(begun) => state.authenticator.sign_in(begun, returned, super::session::attempt(&headers, client)).await,
        None => Err(Trouble::Attempt),
    };
    // A response that does not belong to this attempt does not end it: the right one may still come.
    let ended = !matches!(entered, Err(Trouble::Attempt));
    let mut response = match entered {
        Ok(Entered::Session(session)) => {
            let mut response = see(next.as_deref().unwrap_or("/"));
            let life = state.authenticator.policy().session_life.0;
            Cookies::session(secure, session.expose(), life).put(&mut response);
            response
        }
        // The secret is in the fragment, as in every login link.
        Ok(Entered::Link(link)) => see(&format!("{}#token={}", login(&[], next.as_deref()), link.expose())),
        Err(trouble) => failed(trouble, next.as_deref()),
    };
    if ended {
        pending(secure, String::new(), Duration::ZERO).put(&mut response);
    }
    response
}

fn pending(secure: bool, value: String, life: Duration) -> Cookies {
    let (name, path) = if secure { (SECURE_COOKIE, "/") } else { (COOKIE, SESSION_PATH) };
    Cookies::one(secure, name, value, path, life)
}

/// Returns the value of a name in a query; `None` if it is missing or occurs twice.
fn one(query: Option<&str>, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut values = pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let value = values.next();
    value.filter(|_| values.next().is_none())
}

fn login(pairs: &[(&str, &str)], next: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs).extend_pairs(next.map(|next| ("next", next)));
    let query = query.finish();
    if query.is_empty() { "/login".to_owned() } else { format!("/login?{query}") }
}

fn failed(trouble: Trouble, next: Option<&str>) -> Response {
    see(&login(&[("trouble", trouble.as_str())], next))
}

/// Redirects the browser to another page.
fn see(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_comes_twice_counts_as_none() {
        let query = Some("state=a&code=b%26c&state=d&x");
        assert_eq!((one(query, "state"), one(query, "code").as_deref(), one(query, "iss")), (None, Some("b&c"), None));
        assert_eq!(one(None, "state"), None);
    }

    #[test]
    fn the_login_page_is_told_where_to_go_on() {
        assert_eq!(login(&[], None), "/login");
        assert_eq!(login(&[("trouble", "token")], Some("/runs?a=b")), "/login?trouble=token&next=%2Fruns%3Fa%3Db");
    }
}
