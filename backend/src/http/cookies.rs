//! Sets the cookies of browsers, and removes those that another host has set.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use axum_extra::extract::cookie::{Cookie, SameSite};

use crate::auth::{SECURE_SESSION_COOKIE, SESSION_COOKIE};

/// The path of cookies that are needed only for logging in.
pub(super) const SESSION_PATH: &str = "/api/v1/session";

#[derive(Default)]
pub(super) struct Cookies(Vec<String>);

/// Removes the session cookie that is not bound to this host. Over https, this server sets only the bound one, so another
/// host of the same domain has set it.
pub(super) fn remove_unbound(headers: &mut HeaderMap) {
    let is_unbound = |cookie: &&str| cookie.trim().split_once('=').is_some_and(|(name, _)| name == SESSION_COOKIE);
    let kept = |value: &HeaderValue| {
        let cookies = value.to_str().ok()?.split(';').filter(|cookie| !is_unbound(cookie));
        HeaderValue::from_str(cookies.collect::<Vec<_>>().join(";").trim()).ok()
    };
    let kept: Vec<_> = headers.get_all(header::COOKIE).iter().filter_map(kept).collect();
    headers.remove(header::COOKIE);
    for value in kept.into_iter().filter(|value| !value.is_empty()) {
        headers.append(header::COOKIE, value);
    }
}

impl Cookies {
    /// Creates one cookie that scripts cannot read, and that browsers do not send with writes of other sites. If
    /// `secure`, it is sent only over https.
    pub fn one(secure: bool, name: &'static str, value: String, path: &'static str, life: Duration) -> Self {
        let max_age = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
        let cookie = Cookie::build((name, value)).path(path).http_only(true).same_site(SameSite::Lax);
        // The builder's own `max_age` needs a type of another crate.
        Self(vec![format!("{}; Max-Age={max_age}", cookie.secure(secure).build())])
    }

    /// Creates the session cookie; over https, it is bound to this host. An older cookie without that binding would
    /// remain valid after the new session has ended, so it is removed.
    pub fn session(secure: bool, secret: String, life: Duration) -> Self {
        if !secure {
            return Self::one(false, SESSION_COOKIE, secret, "/", life);
        }
        let older = Self::one(true, SESSION_COOKIE, String::new(), "/", Duration::ZERO);
        Self::one(true, SECURE_SESSION_COOKIE, secret, "/", life).and(older)
    }

    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Adds a `Set-Cookie` header to a response for each cookie.
    pub fn put(self, response: &mut Response) {
        for cookie in self.0 {
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                response.headers_mut().append(header::SET_COOKIE, cookie);
            }
        }
    }
}
