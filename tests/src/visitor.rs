//! A browser without a console: it keeps cookies, and shows where pages lead instead of going there.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;

use crate::transport::install_tls;

/// Somebody at such a browser.
#[derive(Debug)]
pub struct Visitor {
    http: Client,
    base: String,
    cookies: Mutex<BTreeMap<String, String>>,
}

impl Visitor {
    /// Somebody who visits the server at `base` for the first time.
    pub fn new(base: &str) -> Self {
        install_tls();
        let http = Client::builder().redirect(Policy::none()).build().expect("an HTTP client");
        Self { http, base: base.to_owned(), cookies: Mutex::default() }
    }

    /// The cookies of the server, by name.
    pub fn jar(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let cookies: Vec<String> = self.jar().iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.http.request(method, format!("{}{path}", self.base)).header(COOKIE, cookies.join("; "))
    }

    /// Opens a page of the server that leads to another one: to which.
    pub async fn open(&self, path: &str) -> String {
        let answer = self.request(Method::GET, path).send().await.expect("the server answers");
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{path}");
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let cookie = cookie.to_str().expect("plain");
            assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
            let (name, value) = cookie.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie");
            if cookie.contains("Max-Age=0") {
                self.jar().remove(name);
            } else {
                self.jar().insert(name.to_owned(), value.to_owned());
            }
        }
        answer.headers()[LOCATION].to_str().expect("plain").to_owned()
    }

    /// Goes to the identity provider, without the cookies of the server: the page of the server that it leads back to.
    pub async fn at_provider(&self, url: &str) -> String {
        let answer = self.http.get(url).send().await.expect("the provider answers");
        assert_eq!(answer.status(), StatusCode::FOUND, "the provider takes the request");
        let back = Url::parse(answer.headers()[LOCATION].to_str().expect("plain")).expect("a URL");
        assert!(back.as_str().starts_with(&self.base), "{back}");
        format!("{}?{}", back.path(), back.query().unwrap_or_default())
    }

    /// Signs in by the provider, from the page `next`: where that leads in the end.
    pub async fn sign_in(&self, next: &str) -> String {
        let provider = self.open(&format!("/api/v1/session/oidc?next={next}")).await;
        if provider.starts_with('/') {
            return provider;
        }
        self.open(&self.at_provider(&provider).await).await
    }

    /// What the API answers.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        answered(self.request(Method::GET, path)).await
    }

    /// What the API answers to a body.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        answered(self.request(method, path).json(body)).await
    }
}

async fn answered(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.expect("the server answers");
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}
