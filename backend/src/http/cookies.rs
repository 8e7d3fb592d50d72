//! Cookies of browsers: how they are read and set.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use axum_extra::extract::cookie::{Cookie, SameSite};

use crate::auth::{SECURE_SESSION_COOKIE, SESSION_COOKIE};

/// Below which cookies go that only logging in needs.
pub(super) const SESSION_PATH: &str = "/api/v1/session";

/// Cookies that a request brings.
pub(super) struct Brought<'a>(&'a HeaderMap);

impl Brought<'_> {
    /// The value of one.
    pub fn get(&self, name: &str) -> Option<String> {
        let cookies = self.0.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    }

    /// The secret of the session.
    pub fn session(&self) -> Option<String> {
        self.get(SECURE_SESSION_COOKIE).or_else(|| self.get(SESSION_COOKIE))
    }
}

/// Cookies that an answer sets.
#[derive(Default)]
pub(super) struct Cookies(Vec<String>);

impl Cookies {
    /// Those that a request brings.
    pub fn of(headers: &HeaderMap) -> Brought<'_> {
        Brought(headers)
    }

    /// A cookie that scripts cannot read and other sites cannot make the browser send with what changes anything;
    /// `secure`: over https alone.
    pub fn one(secure: bool, name: &'static str, value: String, path: &'static str, life: Duration) -> Self {
        let max_age = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
        let cookie = Cookie::build((name, value)).path(path).http_only(true).same_site(SameSite::Lax);
        // The builder's own `max_age` takes a type of a crate that nothing else here needs.
        Self(vec![format!("{}; Max-Age={max_age}", cookie.secure(secure).build())])
    }

    /// The session's: over https for this host alone. One of the other name is older, and would let its bearer in after
    /// this one has ended, so it goes.
    pub fn session(secure: bool, secret: String, life: Duration) -> Self {
        if !secure {
            return Self::one(false, SESSION_COOKIE, secret, "/", life);
        }
        let older = Self::one(true, SESSION_COOKIE, String::new(), "/", Duration::ZERO);
        Self::one(true, SECURE_SESSION_COOKIE, secret, "/", life).and(older)
    }

    /// These, and others.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Adds a `Set-Cookie` header to a response for each of them.
    pub fn put(self, response: &mut Response) {
        for cookie in self.0 {
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                response.headers_mut().append(header::SET_COOKIE, cookie);
            }
        }
    }
}
