//! The typed client of the HTTP API, over any transport: `fetch` in the console, others in tests and programs.

mod account;
mod feedback;
mod notifications;
mod people;
mod statistics;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::{
    AuditQuery, Decided, FlowVersion, Launch, LogQuery, LoginRequest, MAX_LIMIT, NewComment, Page, Reason, ReviewQuery,
    RunQuery, User, Validation,
};
use crate::decision::DecisionRequest;
use crate::definition::Flow;
use crate::deputy::{Delegate, Deputyship, NewDeputy};
use crate::error::{Code, Problem};
use crate::grant::Grant;
use crate::id::{DeputyId, GrantId, ReviewId, RunId};
use crate::inbox::Facets;
use crate::log::Entry;
use crate::reassignment::Reassign;
use crate::review::{Checked, Review};
use crate::run::{Report, Run, RunSummary};
use crate::seal::{SealCheck, SealHead};
use crate::time::Span;

/// The header that names the user as whom a client acts. A request that arrives with the session or token of another
/// user has no effect. Tabs of a browser share a session, so a page cannot know whose session its requests carry.
pub const USER_HEADER: &str = "Countersign-User";

/// A request before it is sent.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The method: `GET`, `POST`, ….
    pub method: &'static str,
    /// The path and the query, beginning with `/`.
    pub path: String,
    /// The content type and the body.
    pub body: Option<(&'static str, String)>,
    /// The `Idempotency-Key` header: a write that is repeated with it takes effect once.
    pub idempotency_key: Option<String>,
}

/// A response of the server.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body as text; empty if the server sends none (`204`).
    pub body: String,
}

/// A way to send requests to the server.
pub trait Transport {
    /// Sends one request. The error says in words why it could not be sent.
    fn send(&self, request: ApiRequest) -> impl Future<Output = Result<ApiResponse, String>>;
}

/// The typed client. `D` is the type that flow definitions are read as: the whole [`Flow`], unless the caller needs
/// less.
#[derive(Debug)]
pub struct Client<T, D = Flow> {
    /// The transport for requests.
    pub transport: T,
    definition: PhantomData<fn() -> D>,
}

impl<T: Clone, D> Clone for Client<T, D> {
    fn clone(&self) -> Self {
        Self::reading(self.transport.clone())
    }
}

impl<T: Copy, D> Copy for Client<T, D> {}

type ApiResult<T> = Result<T, Problem>;

impl<T> Client<T> {
    /// Creates a client over `transport`.
    pub fn new(transport: T) -> Self {
        Self::reading(transport)
    }
}

impl<T, D> Client<T, D> {
    /// Creates a client over `transport` that reads flow definitions as `D`.
    pub fn reading(transport: T) -> Self {
        Self { transport, definition: PhantomData }
    }
}

/// Reads JSON by way of a [`Value`]. Use it for types that are also read from values: deserializing them directly from
/// text would compile a second copy of the code.
pub fn read<A: DeserializeOwned>(text: &str) -> serde_json::Result<A> {
    A::deserialize(&serde_json::from_str::<Value>(text)?)
}

fn unreadable(status: u16, error: &serde_json::Error) -> Problem {
    Problem { status, ..Problem::new(Code::Internal) }
        .detail(format!("the response with status {status} could not be read: {error}"))
}

impl<T: Transport, D: DeserializeOwned> Client<T, D> {
    async fn call<A: DeserializeOwned>(&self, request: ApiRequest) -> ApiResult<A> {
        let (status, body) = self.exchange(request).await?;
        A::deserialize(&body).map_err(|error| unreadable(status, &error))
    }

    /// Returns the status and the body of a successful response. Separate from [`Self::call`], so that sending is
    /// compiled once, not for each type of response.
    async fn exchange(&self, request: ApiRequest) -> ApiResult<(u16, Value)> {
        let response = self.transport.send(request).await.map_err(|why| Problem::new(Code::Unavailable).detail(why))?;
        let status = response.status;
        let body = if response.body.is_empty() { "null" } else { &response.body };
        if (200..300).contains(&status) {
            let body = serde_json::from_str(body).map_err(|error| unreadable(status, &error))?;
            Ok((status, body))
        } else {
            Err(Problem::of_response(status, body))
        }
    }

    async fn get<A: DeserializeOwned>(&self, path: String) -> ApiResult<A> {
        self.call(ApiRequest { method: "GET", path, body: None, idempotency_key: None }).await
    }

    /// Returns a whole list as one page, by reading its pages one after the other. Rows that are added in the meantime
    /// to pages already read are missing.
    async fn get_all<A: DeserializeOwned>(&self, path: &str) -> ApiResult<Page<A>> {
        let mut items = Vec::new();
        let mut place = String::new();
        let mark = if path.contains('?') { '&' } else { '?' };
        loop {
            let page: Page<A> = self.get(format!("{path}{mark}limit={MAX_LIMIT}{place}")).await?;
            items.extend(page.items);
            match page.next_cursor {
                // Cursors are URL-safe base64, so they need no escaping.
                Some(next) => place = format!("&cursor={next}"),
                None => return Ok(Page { items, next_cursor: None }),
            }
        }
    }

    async fn send<B: Serialize, A: DeserializeOwned>(
        &self,
        method: &'static str,
        path: String,
        body: &B,
        key: Option<&str>,
    ) -> ApiResult<A> {
        let body =
            serde_json::to_string(body).map_err(|error| Problem::new(Code::BadRequest).detail(error.to_string()))?;
        let idempotency_key = key.map(str::to_owned);
        self.call(ApiRequest { method, path, body: Some(("application/json", body)), idempotency_key }).await
    }

    /// `POST /api/v1/session`: logs a person in by password or link, sets the session cookie, and returns
    /// what [`Self::me`] returns.
    pub async fn login(&self, login: &LoginRequest) -> ApiResult<User> {
        self.send("POST", "/api/v1/session".into(), login, None).await
    }

    /// `DELETE /api/v1/session`: ends the caller's session; without one, or with a token, it does nothing.
    pub async fn logout(&self) -> ApiResult<()> {
        self.send("DELETE", "/api/v1/session".into(), &(), None).await
    }

    /// `GET /api/v1/me`: the caller, with the roles that this session or token gives them.
    pub async fn me(&self) -> ApiResult<User> {
        self.get("/api/v1/me".into()).await
    }

    /// `GET /api/v1/flows`: the newest version of each flow.
    pub async fn flows(&self) -> ApiResult<Page<FlowVersion<D>>> {
        self.get_all("/api/v1/flows").await
    }

    /// `GET /api/v1/flows/{id}[?version=]`: a version, or the newest; only developers get source and definition.
    pub async fn flow(&self, id: &str, version: Option<u32>) -> ApiResult<FlowVersion<D>> {
        let version = version.map(|version| format!("?version={version}")).unwrap_or_default();
        self.get(format!("/api/v1/flows/{}{version}", segment(id)?)).await
    }

    /// `PUT /api/v1/flows/{id}` with a YAML source (JSON is YAML too).
    pub async fn save_flow(&self, id: &str, source: &str) -> ApiResult<FlowVersion<D>> {
        let body = Some(("application/yaml", source.to_owned()));
        let path = format!("/api/v1/flows/{}", segment(id)?);
        self.call(ApiRequest { method: "PUT", path, body, idempotency_key: None }).await
    }

    /// `POST /api/v1/flows/validate`: checks a YAML source without saving it; developers only.
    pub async fn validate_flow(&self, source: &str) -> ApiResult<Validation> {
        let body = Some(("application/yaml", source.to_owned()));
        self.call(ApiRequest { method: "POST", path: "/api/v1/flows/validate".into(), body, idempotency_key: None })
            .await
    }

    /// `POST /api/v1/runs`: launches a run, and returns it; developers only. Repeated with the same `key`, it launches
    /// one.
    pub async fn launch(&self, launch: &Launch, key: Option<&str>) -> ApiResult<Run> {
        self.send("POST", "/api/v1/runs".into(), launch, key).await
    }

    /// `GET /api/v1/runs`: the runs that the caller may see, newest first, a page at a time.
    pub async fn runs(&self, query: &RunQuery) -> ApiResult<Page<RunSummary>> {
        self.get(format!("/api/v1/runs{}", query_string(query))).await
    }

    /// `GET /api/v1/runs/{id}`: a run with its state and output, for those who may see it; `404` for others.
    pub async fn run(&self, id: RunId) -> ApiResult<Run> {
        self.get(format!("/api/v1/runs/{id}")).await
    }

    /// `GET /api/v1/runs/{id}?wait=`: a run once it has ended or stopped for people, or after this time, at most 60 s.
    pub async fn wait_for_run(&self, id: RunId, wait: Span) -> ApiResult<Run> {
        self.get(format!("/api/v1/runs/{id}?wait={}ms", wait.0.as_millis())).await
    }

    /// `GET /api/v1/runs/{id}/report`: the steps of a run, and those of its reviews that the caller may see.
    pub async fn report(&self, id: RunId) -> ApiResult<Report> {
        self.get(format!("/api/v1/runs/{id}/report")).await
    }

    /// `GET /api/v1/runs/{id}/reviews`: all reviews of a run that the caller may see, newest first.
    pub async fn run_reviews(&self, id: RunId) -> ApiResult<Page<Review>> {
        self.get_all(&format!("/api/v1/runs/{id}/reviews")).await
    }

    /// `POST /api/v1/runs/{id}/cancel`: cancels a run, and returns it; for developers and the person who launched it.
    pub async fn cancel(&self, id: RunId, reason: &Reason, key: Option<&str>) -> ApiResult<Run> {
        self.send("POST", format!("/api/v1/runs/{id}/cancel"), reason, key).await
    }

    /// `GET /api/v1/log`: the entries that the caller may see, in commit order, a page at a time.
    pub async fn log(&self, query: &LogQuery) -> ApiResult<Page<Entry>> {
        self.get(format!("/api/v1/log{}", query_string(query))).await
    }

    /// `GET /api/v1/reviews`: the matching reviews that the caller may see, a page at a time.
    pub async fn reviews(&self, query: &ReviewQuery) -> ApiResult<Page<Review>> {
        self.get(format!("/api/v1/reviews{}", query_string(query))).await
    }

    /// `GET /api/v1/reviews/facets`: the number of matching pending reviews that the caller may see, in total and by
    /// facet.
    pub async fn facets(&self, query: &ReviewQuery) -> ApiResult<Facets> {
        self.get(format!("/api/v1/reviews/facets{}", query_string(query))).await
    }

    /// `GET /api/v1/reviews/{id}`: a review; the first time that a person who may decide it reads a revision is logged.
    pub async fn review(&self, id: ReviewId) -> ApiResult<Review> {
        self.get(format!("/api/v1/reviews/{id}")).await
    }

    /// `GET /api/v1/reviews/{id}?view=false`: a review that nobody is shown, so that no view is logged.
    pub async fn unviewed_review(&self, id: ReviewId) -> ApiResult<Review> {
        self.get(format!("/api/v1/reviews/{id}?view=false")).await
    }

    /// `GET /api/v1/reviews/{id}?viewed=`: logs that the caller has been shown this revision of a review, and returns it;
    /// `409` if it has another revision by now.
    pub async fn viewed_review(&self, id: ReviewId, revision: u32) -> ApiResult<Review> {
        self.get(format!("/api/v1/reviews/{id}?viewed={revision}")).await
    }

    /// `POST /api/v1/reviews/{id}/decisions`: decides a review, or votes on it; for those who may decide it.
    pub async fn decide(&self, id: ReviewId, decision: &DecisionRequest, key: Option<&str>) -> ApiResult<Decided> {
        self.send("POST", format!("/api/v1/reviews/{id}/decisions"), decision, key).await
    }

    /// `POST /api/v1/reviews/{id}/check`: what guardrails would do with a decision; for those who may make it.
    pub async fn check(&self, id: ReviewId, decision: &DecisionRequest) -> ApiResult<Checked> {
        self.send("POST", format!("/api/v1/reviews/{id}/check"), decision, None).await
    }

    /// `POST /api/v1/reviews/{id}/claim`: claims a review for 15 minutes; others may still decide it.
    pub async fn claim(&self, id: ReviewId) -> ApiResult<Decided> {
        self.send("POST", format!("/api/v1/reviews/{id}/claim"), &serde_json::json!({}), None).await
    }

    /// `POST /api/v1/reviews/{id}/release`: ends the caller's claim; `409` if someone else has claimed the review.
    pub async fn release(&self, id: ReviewId) -> ApiResult<Decided> {
        self.send("POST", format!("/api/v1/reviews/{id}/release"), &serde_json::json!({}), None).await
    }

    /// `POST /api/v1/reviews/{id}/delegate`: delegates the caller's votes to another person, who must be a reviewer.
    pub async fn delegate(&self, id: ReviewId, to: &Delegate, key: Option<&str>) -> ApiResult<Decided> {
        self.send("POST", format!("/api/v1/reviews/{id}/delegate"), to, key).await
    }

    /// `POST /api/v1/reviews/{id}/reassign`: gives a pending review to another person or role; for admins.
    pub async fn reassign(&self, id: ReviewId, request: &Reassign, key: Option<&str>) -> ApiResult<Decided> {
        self.send("POST", format!("/api/v1/reviews/{id}/reassign"), request, key).await
    }

    /// `GET /api/v1/reviewers`: the people to whom a review may be delegated; without a review, all reviewers.
    pub async fn reviewers(&self, review: Option<ReviewId>) -> ApiResult<Page<User>> {
        let review = review.map(|id| format!("?review={id}")).unwrap_or_default();
        self.get(format!("/api/v1/reviewers{review}")).await
    }

    /// `GET /api/v1/deputies`: the caller's deputyships that are not over, as person or deputy; admins get all.
    pub async fn deputies(&self) -> ApiResult<Page<Deputyship>> {
        self.get_all("/api/v1/deputies").await
    }

    /// `POST /api/v1/deputies`: names a deputy of the caller; admins do so for others too, but never name themselves.
    pub async fn name_deputy(&self, new: &NewDeputy, key: Option<&str>) -> ApiResult<Deputyship> {
        self.send("POST", "/api/v1/deputies".into(), new, key).await
    }

    /// `DELETE /api/v1/deputies/{id}`: ends a deputyship early; for the person, the deputy and admins.
    pub async fn remove_deputy(&self, id: DeputyId) -> ApiResult<()> {
        self.send("DELETE", format!("/api/v1/deputies/{id}"), &(), None).await
    }

    /// `GET /api/v1/grants`: all valid grants that the caller gave; for admins, everyone's.
    pub async fn grants(&self) -> ApiResult<Page<Grant>> {
        self.get_all("/api/v1/grants").await
    }

    /// `DELETE /api/v1/grants/{id}`: revokes a grant, so that later calls ask again; for its giver and admins.
    pub async fn revoke_grant(&self, id: GrantId) -> ApiResult<()> {
        self.send("DELETE", format!("/api/v1/grants/{id}"), &(), None).await
    }

    /// `POST /api/v1/reviews/{id}/comments`: comments on a pending review; for those who may decide it.
    pub async fn comment(&self, id: ReviewId, comment: &NewComment, key: Option<&str>) -> ApiResult<Decided> {
        self.send("POST", format!("/api/v1/reviews/{id}/comments"), comment, key).await
    }

    /// `POST /api/v1/reviews/{id}/withdraw`: withdraws a review, which counts as rejected; for its requester and admins.
    pub async fn withdraw(&self, id: ReviewId, reason: &Reason, key: Option<&str>) -> ApiResult<Decided> {
        self.send("POST", format!("/api/v1/reviews/{id}/withdraw"), reason, key).await
    }

    /// `GET /api/v1/audit`: the matching entries of the audit log, newest first, a page at a time; admins only.
    pub async fn audit(&self, query: &AuditQuery) -> ApiResult<Page<Entry>> {
        self.get(format!("/api/v1/audit{}", query_string(query))).await
    }

    /// `GET /api/v1/audit/seal`: the newest seal of the audit log, `404` before the first; admins only.
    pub async fn seal(&self) -> ApiResult<SealHead> {
        self.get("/api/v1/audit/seal".into()).await
    }

    /// `GET /api/v1/audit/verify`: checks the audit log against its seals, which reads all of it; admins only.
    pub async fn verify_audit(&self) -> ApiResult<SealCheck> {
        self.get("/api/v1/audit/verify".into()).await
    }
}

/// Formats a query as `?a=b&c=d`, without unset values; empty if nothing is set.
pub fn query_string<Q: Serialize>(query: &Q) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return String::new() };
    let pairs: Vec<String> = fields
        .iter()
        .filter_map(|(name, value)| {
            let text = match value {
                Value::Null => return None,
                Value::String(text) => text.clone(),
                other => serde_json::to_string(other).unwrap_or_default(),
            };
            Some(format!("{name}={}", escape(&text)))
        })
        .collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn escape(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

/// Escapes an id as one segment of a path. Refuses `.` and `..`, which browsers resolve even if they are escaped, and
/// an empty id, which would name the list.
fn segment(id: &str) -> ApiResult<PercentEncode<'_>> {
    if matches!(id, "" | "." | "..") {
        return Err(Problem::new(Code::NotFound).detail(format!("`{id}` is not an id")));
    }
    Ok(escape(id))
}
