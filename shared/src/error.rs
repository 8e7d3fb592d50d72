//! The errors of the API and of flow files.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

pub use crate::flow_error::{FlowCode, FlowError};
use crate::review::{Resolution, Review};
use crate::run::ArchivedRun;
use crate::topic::beginning;

/// The greatest number of characters that are kept of the words of a response that is none of this API.
const MAX_FOREIGN_WORDS: usize = 300;

/// The code of an API error. It is stable: clients match on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Code {
    /// 400: the request cannot be read.
    BadRequest,
    /// 401: not logged in.
    Unauthenticated,
    /// 401: the password or link is correct, but the code of the second factor is required: `code`.
    SecondFactorRequired,
    /// 403: visible, but not allowed.
    Forbidden,
    /// 403: a second factor must be set up first.
    SecondFactorMissing,
    /// 403: the login is too long ago; confirm with the password, or log in again.
    ConfirmationRequired,
    /// 403: a write or an upgrade that was sent by another site.
    ForeignOrigin,
    /// 404: does not exist, or is not visible.
    NotFound,
    /// 405: the path exists, but does not support this method.
    MethodNotAllowed,
    /// 409: the review is no longer pending; `resolution` says how it ended.
    ReviewResolved,
    /// 409: the content has changed; `review` is the current review.
    RevisionChanged,
    /// 409: someone else has claimed the review.
    ReviewClaimed,
    /// 409: the run is over.
    RunOver,
    /// 409: the name is taken, or a token's secret was already shown.
    Conflict,
    /// 409: this version of the server cannot read the stored data. Nothing was changed.
    Unreadable,
    /// 410: the run was archived; `archived` says where it is.
    RunArchived,
    /// 413: the body has more than 1 MiB (1,048,576 bytes).
    TooLarge,
    /// 415: the path does not accept this `Content-Type`; `detail` names those that it accepts.
    UnsupportedMediaType,
    /// 422: readable, but not valid; `errors` names each place.
    Invalid,
    /// 422: the flow has errors; `errors` names each place.
    FlowInvalid,
    /// 422: a correction of a step that has no visits left.
    VisitLimit,
    /// 422: an idempotency key was used again with another body.
    KeyReused,
    /// 429: too many writes, failed logins, live sockets or other requests; retry after `retry_after` seconds.
    TooManyRequests,
    /// 429: this caller already has too many pending questions.
    TooManyPending,
    /// 500: the server failed; only its own log has the reason.
    Internal,
    /// 503: the server is starting or stopping, or the database is not available.
    Unavailable,
}

impl Code {
    /// Returns the HTTP status of the code.
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthenticated | Self::SecondFactorRequired => 401,
            Self::Forbidden | Self::ForeignOrigin | Self::SecondFactorMissing | Self::ConfirmationRequired => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::ReviewResolved
            | Self::RevisionChanged
            | Self::ReviewClaimed
            | Self::RunOver
            | Self::Conflict
            | Self::Unreadable => 409,
            Self::RunArchived => 410,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid | Self::FlowInvalid | Self::VisitLimit | Self::KeyReused => 422,
            Self::TooManyRequests | Self::TooManyPending => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }

    /// Returns a short title for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "The request cannot be read",
            Self::Unauthenticated => "Please log in",
            Self::SecondFactorRequired => "The code of your second factor is required",
            Self::Forbidden => "You may not do this",
            Self::SecondFactorMissing => "Please set up a second factor first",
            Self::ConfirmationRequired => "Please confirm that it is you",
            Self::ForeignOrigin => "The request came from another site",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::ReviewResolved => "The review has already been resolved",
            Self::RevisionChanged => "The content has changed since you saw it",
            Self::ReviewClaimed => "Someone else has claimed the review",
            Self::RunOver => "The run is over",
            Self::Conflict => "Conflict",
            Self::Unreadable => "This version cannot read the stored data",
            Self::RunArchived => "The run is archived",
            Self::TooLarge => "The request is too large",
            Self::UnsupportedMediaType => "Unsupported media type",
            Self::Invalid => "Not valid",
            Self::FlowInvalid => "The flow has errors",
            Self::VisitLimit => "The step has no visits left",
            Self::KeyReused => "The idempotency key was used with another body",
            Self::TooManyRequests => "Too many requests",
            Self::TooManyPending => "Too many pending questions",
            Self::Internal => "The server failed",
            Self::Unavailable => "Not available right now",
        }
    }
}

/// RFC 9457 `application/problem+json`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The code of the error, for programs.
    pub code: Code,
    /// The HTTP status.
    pub status: u16,
    /// The error in a few words.
    pub title: String,
    /// The details of this error, and the remedy.
    pub detail: Option<String>,
    /// Every error in the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Mistake>,
    /// With `review_resolved`: who resolved it, and how.
    pub resolution: Option<Box<Resolution>>,
    /// With `review_resolved` and `revision_changed`: the review as it is now.
    pub review: Option<Box<Review>>,
    /// With `run_archived`: where the run is.
    pub archived: Option<Box<ArchivedRun>>,
    /// Seconds to wait, with `too_many_requests` and `unavailable`.
    pub retry_after: Option<u64>,
    /// With `confirmation_required`: how this person proves that it is they.
    pub confirm_with: Option<ConfirmWith>,
}

/// How a person proves that it is they, after a login that was too long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConfirmWith {
    /// With their password: `POST /api/v1/me/confirm {"password"}`.
    Password,
    /// With their password and a code of their second factor: `POST /api/v1/me/confirm {"password", "code"}`.
    PasswordAndCode,
    /// By logging in again at the identity provider.
    SingleSignOn,
    /// By logging in again with a new link: they have no password.
    Link,
}

impl Problem {
    /// Creates a problem with the title of its code.
    pub fn new(code: Code) -> Self {
        Self {
            code,
            status: code.status(),
            title: code.title().to_owned(),
            detail: None,
            errors: Vec::new(),
            resolution: None,
            review: None,
            archived: None,
            retry_after: None,
            confirm_with: None,
        }
    }

    /// Reads the body of a failed response. If it is none of this API, a proxy sent it, or a server that is newer than
    /// this program: then the code and the title follow from the status, and the beginning of the words is kept if there
    /// are any.
    pub fn of_response(status: u16, body: &str) -> Self {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        Self::deserialize(&body).unwrap_or_else(|_| {
            let code = match status {
                413 => Code::TooLarge,
                429 => Code::TooManyRequests,
                502..=504 => Code::Unavailable,
                _ => Code::Internal,
            };
            let title = format!("{} (a response with status {status})", code.title());
            let words = ["detail", "title"].iter().find_map(|field| body[field].as_str());
            let detail = words.map(|words| beginning(words, MAX_FOREIGN_WORDS));
            Self { status, title, detail, ..Self::new(code) }
        })
    }

    /// Adds a sentence that names the place and the remedy.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the errors in the input.
    pub fn errors(mut self, errors: Vec<Mistake>) -> Self {
        self.errors = errors;
        self
    }

    /// Creates an `invalid` problem at one place.
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Code::Invalid).errors(vec![Mistake::new(path, "invalid", message)])
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.detail.as_deref().unwrap_or(&self.title))?;
        for mistake in &self.errors {
            write!(f, "; {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// An error in a flow file, a form or a body.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mistake {
    /// The place, as a JSON pointer (RFC 6901); empty for the whole.
    pub path: String,
    /// The line in the source, from 1.
    pub line: Option<u32>,
    /// The column in the source, from 1, in characters.
    pub column: Option<u32>,
    /// The kind of error: a [`FlowCode`] in its written form, or `invalid`, `required`, `unknown`, ….
    pub code: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Mistake {
    /// Creates an error whose place in the source is not known.
    pub fn new(path: impl Into<String>, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, column: None, code: code.into(), message: message.into() }
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "{line}:{column}: ")?,
            _ if !self.path.is_empty() => write!(f, "{}: ", self.path)?,
            _ => {}
        }
        write!(f, "{} [{}]", self.message, self.code)
    }
}

/// Builds a JSON pointer: `pointer(["nodes", "draft", "next"])` is `/nodes/draft/next`.
pub fn pointer<I: IntoIterator<Item = S>, S: AsRef<str>>(segments: I) -> String {
    segments.into_iter().fold(String::new(), |mut path, segment| {
        path.push('/');
        path.push_str(&segment.as_ref().replace('~', "~0").replace('/', "~1"));
        path
    })
}

/// Returns the type of a JSON value in the words of JSON Schema.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
