//! The typed client of the API over the browser's `fetch`.

use gloo_net::http::{Method, RequestBuilder};
use leptos::prelude::*;
use serde::Deserialize;
use shared::client::{ApiRequest, ApiResponse, Client, Transport, USER_HEADER};
use shared::error::{Code, ConfirmWith, Problem};

use super::early;
use super::session::Session;

/// The API, typed. Cheap to copy into closures.
pub type Api = Client<FetchTransport, Outline>;

/// A version of a flow, as the console reads it.
pub type FlowVersion = shared::api::FlowVersion<Outline>;

/// The part of a flow's definition that the console reads; the rest of what it shows is in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Outline {
    #[serde(default)]
    pub tags: Vec<String>,
}

/// How long a request may take, in milliseconds; longer than the server allows one to take. Without it, a server that
/// never answers, or a network that loses the answer, would block the page for ever.
pub const REQUEST_TIMEOUT: u32 = 45_000;

/// The message for a request that took longer.
const TOO_LATE: &str = "The server did not answer in time.";

pub fn use_api() -> Api {
    expect_context()
}

/// Creates an API that informs the session if no one is logged in, or if the person must first set up a second factor
/// or confirm that it is they.
pub fn api(session: Session) -> Api {
    Client::reading(FetchTransport(session))
}

/// Sends requests with `fetch`; the browser adds the session's cookie.
#[derive(Debug, Clone, Copy)]
pub struct FetchTransport(Session);

impl Transport for FetchTransport {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, String> {
        let method: Method = request.method.parse().unwrap_or_default();
        let login = request.path.starts_with("/api/v1/session");
        if request.method == "GET"
            && let Some(body) = early::answer(&request.path).await
        {
            return Ok(ApiResponse { status: 200, body });
        }
        let patience = web_sys::AbortSignal::timeout_with_u32(REQUEST_TIMEOUT);
        let mut builder = RequestBuilder::new(&request.path)
            .method(method)
            .abort_signal(Some(&patience))
            .header("Accept", "application/json");
        if let Some(key) = &request.idempotency_key {
            builder = builder.header("Idempotency-Key", key);
        }
        let Self(session) = self;
        // The server refuses requests in the name of another person, who may have logged in in another tab.
        if let Some(user) = untrack(|| session.username())
            && !login
        {
            builder = builder.header(USER_HEADER, &user);
        }
        let ready = match request.body {
            Some((kind, body)) => builder.header("Content-Type", kind).body(body),
            None => builder.build(),
        };
        let logins = session.logins.get_value();
        let failed = |why: &str| if patience.aborted() { TOO_LATE.to_owned() } else { why.to_owned() };
        let ready = ready.map_err(|error| error.to_string())?;
        let response = ready.send().await.map_err(|_| failed("The server cannot be reached."))?;
        // A response to a request from before the last login belongs to the session before.
        let is_overtaken = logins != session.logins.get_value();
        if response.status() == 401 && !login && !is_overtaken {
            session.signed_out.set(true);
        }
        let lost = |_| failed("The connection was lost before the response was read.");
        let body = response.text().await.map_err(lost)?;
        if response.status() == 403
            && !is_overtaken
            && let Ok(problem) = shared::client::read::<Problem>(&body)
        {
            match problem.code {
                Code::SecondFactorMissing => session.factor_missing.set(true),
                Code::ConfirmationRequired => {
                    session.unconfirmed.set(Some(problem.confirm_with.unwrap_or(ConfirmWith::Password)));
                }
                _ => {}
            }
        }
        Ok(ApiResponse { status: response.status(), body })
    }
}

/// Sends a write of `user` without reading its response, so that it arrives even while the page is being closed.
pub fn send_on_leaving<B: serde::Serialize>(path: &str, body: &B, key: &str, user: &str) {
    let Ok(body) = serde_json::to_string(body) else { return };
    let options = web_sys::RequestInit::new();
    options.set_method("POST");
    options.set_body(&body.into());
    // web-sys has no setter for `keepalive`; setting a field of a new plain object cannot fail.
    drop(js_sys::Reflect::set(&options, &"keepalive".into(), &true.into()));
    let Ok(request) = web_sys::Request::new_with_str_and_init(path, &options) else { return };
    let headers = request.headers();
    let set = [("Content-Type", "application/json"), ("Idempotency-Key", key), (USER_HEADER, user)];
    if set.into_iter().all(|(name, value)| headers.set(name, value).is_ok()) {
        drop(window().fetch_with_request(&request));
    }
}
