//! An HTTP client that keeps cookies as a browser does, and returns redirects instead of following them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;

use crate::transport::install_tls;

/// A client of one server with a cookie jar.
#[derive(Debug)]
pub struct Visitor {
    http: Client,
    base: String,
    cookies: Mutex<BTreeMap<String, String>>,
}

impl Visitor {
    /// A client of the server at `base`, without cookies.
    pub fn new(base: &str) -> Self {
        install_tls();
        let http = Client::builder().redirect(Policy::none()).build().expect("an HTTP client");
        Self { http, base: base.to_owned(), cookies: Mutex::default() }
    }

    /// The cookies that the server has set, by name.
    pub fn jar(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let cookies: Vec<String> = self.jar().iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.http.request(method, format!("{}{path}", self.base)).header(COOKIE, cookies.join("; "))
    }

    /// Opens a page of the server, which must answer 303, stores the cookies, and returns the `Location`.
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

    /// Opens the provider's page at `url`, without cookies, and returns the path and query to which it redirects back.
    pub async fn at_provider(&self, url: &str) -> String {
        let answer = self.http.get(url).send().await.expect("the provider answers");
        assert_eq!(answer.status(), StatusCode::FOUND, "the provider takes the request");
        let back = Url::parse(answer.headers()[LOCATION].to_str().expect("plain")).expect("a URL");
        assert!(back.as_str().starts_with(&self.base), "{back}");
        format!("{}?{}", back.path(), back.query().unwrap_or_default())
    }

    /// Logs in through the identity provider, and returns the page of the server to which that leads in the end:
    /// `next`, or the login page with the reason of the failure.
    pub async fn sign_in(&self, next: &str) -> String {
        let provider = self.open(&format!("/api/v1/session/oidc?next={next}")).await;
        if provider.starts_with('/') {
            return provider;
        }
        self.open(&self.at_provider(&provider).await).await
    }

    /// Sends a GET request to the API, and returns the status and the JSON body (`Null` if it is not JSON).
    pub async fn get(&self, path: &str) -> (u16, Value) {
        answered(self.request(Method::GET, path)).await
    }

    /// Sends a request with a JSON body to the API. Returns the status and the JSON body (`Null` if it is not JSON).
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        answered(self.request(method, path).json(body)).await
    }
}

async fn answered(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.expect("the server answers");
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}
