//! Extractors for bodies and queries, which check the size, the content type, the rules of [`crate::json`], and then
//! the type.

use std::collections::HashSet;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::{HeaderMap, header, request::Parts};
use futures::StreamExt as _;
use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeOwned, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use sha2::{Digest, Sha256};
pub use shared::api::MAX_BODY;
use shared::error::{Code, Mistake, Problem, pointer};

use super::problem::Refused;
use crate::json;

/// How many bytes of a body that is too large are read and discarded. A client that is cut off while it is sending sees
/// a broken connection instead of the response.
const MAX_DISCARDED: usize = 32 * 1024 * 1024;

/// A JSON body, with the digest of its bytes for the idempotency key.
#[derive(Debug)]
pub struct Json<T> {
    /// What the body is read as.
    pub value: T,
    /// The SHA-256 of the body's bytes.
    pub digest: [u8; 32],
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        content_type(&parts.headers, &["application/json"])?;
        let bytes = read(&parts.headers, body).await?;
        Ok(Self { value: json::from_slice(&bytes)?, digest: Sha256::digest(&bytes).into() })
    }
}

/// A JSON body that may be empty, which stands for the default value.
#[derive(Debug)]
pub struct OptionalJson<T>(pub Json<T>);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let bytes = read(&parts.headers, body).await?;
        let digest = Sha256::digest(&bytes).into();
        if bytes.is_empty() {
            return Ok(Self(Json { value: T::default(), digest }));
        }
        content_type(&parts.headers, &["application/json"])?;
        Ok(Self(Json { value: json::from_slice(&bytes)?, digest }))
    }
}

/// A body with the source of a flow in YAML or JSON, which is not parsed yet.
#[derive(Debug)]
pub struct FlowSource(pub Json<String>);

impl<S: Send + Sync> FromRequest<S> for FlowSource {
    type Rejection = Refused;
    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let is_json = content_type(&parts.headers, &["application/yaml", "application/json"])? == "application/json";
        let bytes = read(&parts.headers, body).await?;
        if is_json {
            json::check(&bytes)?;
        }
        let digest = Sha256::digest(&bytes).into();
        let value = String::from_utf8(bytes)
            .map_err(|error| Problem::new(Code::BadRequest).detail(format!("the flow is not UTF-8: {error}")))?;
        if value.contains('\0') {
            return Err(Problem::invalid("", "U+0000 is not allowed in a flow").into());
        }
        Ok(Self(Json { value, digest }))
    }
}

/// Returns the content type of the body if it is one of `accepted`, otherwise `415`.
fn content_type(headers: &HeaderMap, accepted: &[&'static str]) -> Result<&'static str, Problem> {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = named.split(';').next().unwrap_or_default().trim();
    accepted.iter().copied().find(|one| one.eq_ignore_ascii_case(essence)).ok_or_else(|| {
        Problem::new(Code::UnsupportedMediaType).detail(format!("send `Content-Type: {}`", accepted.join("` or `")))
    })
}

/// Reads a whole body, with or without a `Content-Length`; `413` if it has more than [`MAX_BODY`] bytes.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Problem> {
    let too_large = || Problem::new(Code::TooLarge).detail(format!("the body is too large: at most {MAX_BODY} bytes"));
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let mut chunks = body.into_data_stream();
    if announced.is_some_and(|length| length > MAX_BODY) {
        // A client that sends `Expect: 100-continue` has not sent the body yet.
        if !headers.contains_key(header::EXPECT) {
            discard(&mut chunks).await;
        }
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(announced.unwrap_or(0));
    while let Some(chunk) = chunks.next().await {
        let chunk =
            chunk.map_err(|error| Problem::new(Code::BadRequest).detail(format!("the body ended early: {error}")))?;
        if bytes.len() + chunk.len() > MAX_BODY {
            discard(&mut chunks).await;
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

async fn discard(chunks: &mut BodyDataStream) {
    let mut discarded = 0;
    while let Some(Ok(chunk)) = chunks.next().await {
        discarded += chunk.len();
        if discarded > MAX_DISCARDED {
            return;
        }
    }
}

/// The query of a request. Unknown keys are errors; a key without a value is ignored.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        Ok(Self(fit_params(params(parts)?)?))
    }
}

/// Returns the pairs of a query, without those whose value is empty. Fails if a key occurs twice.
pub(crate) fn params(parts: &Parts) -> Result<Vec<(String, String)>, Problem> {
    let Query(mut pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
        .map_err(|error| Problem::new(Code::BadRequest).detail(error.body_text()))?;
    let mut keys = HashSet::with_capacity(pairs.len());
    for (key, value) in &pairs {
        if key.contains('\0') || value.contains('\0') {
            return Err(Problem::invalid(pointer([key]), "U+0000 is not allowed in text"));
        }
        if !keys.insert(key) {
            return Err(Problem::invalid(pointer([key]), "this key appears twice"));
        }
    }
    pairs.retain(|(_, value)| !value.is_empty());
    Ok(pairs)
}

pub(crate) fn fit_params<T: DeserializeOwned>(pairs: Vec<(String, String)>) -> Result<T, Problem> {
    let pairs = pairs.into_iter().map(|(key, value)| (key, Param(value)));
    json::fit(MapDeserializer::<_, de::value::Error>::new(pairs))
}

/// A value of a query. Numbers and booleans are parsed from the text if the type expects them.
struct Param(String);

impl IntoDeserializer<'_> for Param {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for Param {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0.parse() {
            Ok(whether) => visitor.visit_bool(whether),
            Err(_) => Err(de::Error::custom(format!("`{}` is neither `true` nor `false`", self.0))),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0.parse() {
            Ok(number) => visitor.visit_u32(number),
            Err(_) => Err(de::Error::custom(format!("`{}` is not a whole number", self.0))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let word: de::value::StringDeserializer<Self::Error> = self.0.into_deserializer();
        word.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Returns the number of rows of a page: the requested number within `1..=200`, or 50.
pub(super) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked {
        None => Ok(shared::api::DEFAULT_LIMIT),
        Some(0) => Err(Problem::new(Code::Invalid).errors(vec![Mistake::new("/limit", "invalid", "at least 1")])),
        Some(limit) => Ok(limit.min(shared::api::MAX_LIMIT)),
    }
}

/// Refuses the first of these members of a request that is wrong, with the reason.
pub(super) fn refuse<const N: usize>(members: [(&str, bool, &str); N]) -> Result<(), Problem> {
    let wrong = members.into_iter().find(|(_, is_wrong, _)| *is_wrong);
    wrong.map_or(Ok(()), |(path, _, why)| Err(Problem::invalid(path, why)))
}

/// The id or name in a path; an invalid one is not found (`404`).
#[derive(Debug, Clone)]
pub struct Id<T>(pub T);

impl<T: std::str::FromStr, S: Send + Sync> FromRequestParts<S> for Id<T> {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let named = Path::<String>::from_request_parts(parts, state).await.ok();
        let id = named.and_then(|Path(text)| text.parse().ok());
        id.map(Self).ok_or_else(|| Problem::new(Code::NotFound).into())
    }
}

#[cfg(test)]
mod tests {
    use shared::api::{AuditQuery, ReviewQuery};
    use shared::review::ReviewStatus;

    use super::*;

    async fn query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
        let request = Request::get(format!("/?{query}")).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        Params::from_request_parts(&mut parts, &()).await.map(|Params(value)| value).map_err(|Refused(problem)| problem)
    }

    #[tokio::test]
    async fn a_query_is_read_strictly() {
        let read: ReviewQuery = query("status=pending&limit=7&q=a%20b&flow=").await.unwrap();
        let expected = ReviewQuery {
            status: Some(ReviewStatus::Pending),
            limit: Some(7),
            q: Some("a b".into()),
            ..<_>::default()
        };
        assert_eq!(read, expected);
        assert!(query::<AuditQuery>("from=2026-01-02T03:04:05Z").await.unwrap().from.is_some());
        for (wrong, path) in [
            ("state=x", "/state"),
            ("limit=x", "/limit"),
            ("status=none", "/status"),
            ("q=a&q=b", "/q"),
            ("q=%00", "/q"),
        ] {
            let problem = query::<ReviewQuery>(wrong).await.unwrap_err();
            assert_eq!((problem.status, problem.errors[0].path.as_str()), (422, path), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_body_over_its_limit_is_refused_with_and_without_a_length() {
        let large =
            || Body::from_stream(futures::stream::iter((0..17).map(|_| Ok::<_, std::io::Error>(vec![b' '; 65_536]))));
        let request = |length: bool| {
            let request = Request::post("/").header("content-type", "application/json");
            let request = if length { request.header("content-length", "1114112") } else { request };
            request.body(large()).unwrap()
        };
        for length in [true, false] {
            let Refused(problem) = Json::<serde_json::Value>::from_request(request(length), &()).await.unwrap_err();
            assert_eq!(problem.code, Code::TooLarge);
        }
    }

    #[tokio::test]
    async fn another_content_type_is_refused() {
        for (given, code) in [("application/json; charset=utf-8", None), ("text/plain", Some(415)), ("", Some(415))] {
            let request = Request::post("/").header("content-type", given).body(Body::from("{}")).unwrap();
            let read = Json::<serde_json::Value>::from_request(request, &()).await;
            assert_eq!(read.err().map(|Refused(problem)| problem.status), code, "{given}");
        }
    }
}
