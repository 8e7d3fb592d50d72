//! A client of the HTTP API without typed messages, as in other languages: a token, and JSON in and out.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shared::api::NewToken;

use crate::server::Server;
use crate::transport::{Api, HttpTransport};

/// A client that authenticates with a token, and gets a status and a body for each request.
#[derive(Debug)]
pub struct Caller(HttpTransport);

/// The status of a response, and its body: `Null` where it is not JSON.
pub type ApiResponse = (StatusCode, Value);

impl Caller {
    /// Sends a request, with `key` as its `Idempotency-Key`.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>, key: Option<&str>) -> ApiResponse {
        let mut request = self.0.raw(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        (status, serde_json::from_slice(&answer.bytes().await.expect("a body")).unwrap_or(Value::Null))
    }

    /// Posts JSON without an idempotency key, and returns the response whatever its status.
    pub async fn post(&self, path: &str, body: &Value) -> ApiResponse {
        self.send(Method::POST, path, Some(body), None).await
    }

    /// Gets the JSON at `path`. Panics if the status is not 200.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, None, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    /// Asks a question, and returns its review.
    pub async fn ask(&self, question: &Value) -> Value {
        let (status, review) = self.post("/api/v1/reviews", question).await;
        assert_eq!(status, StatusCode::CREATED, "{review}");
        review
    }

    /// Waits up to a minute until a review is no longer pending, and returns its resolution.
    pub async fn resolution(&self, review: &Value) -> Value {
        let review = self.get(&format!("{}?wait=60s", path_of(review))).await;
        assert_ne!(review["status"], "pending", "{review}");
        review["resolution"].clone()
    }

    /// Sends a decision on the current revision of a review.
    pub async fn decide(&self, review: &Value, decision: &Value) -> ApiResponse {
        let seen = self.get(&path_of(review)).await;
        let mut body = json!({ "revision": seen["revision"], "digest": seen["digest"] });
        body.as_object_mut().expect("an object").extend(decision.as_object().expect("an object").clone());
        self.post(&format!("{}/decisions", path_of(review)), &body).await
    }
}

/// The path of a review in the API.
pub fn path_of(review: &Value) -> String {
    format!("/api/v1/reviews/{}", review["id"].as_str().expect("an id"))
}

/// The body of a decision that chooses an option, without revision and digest.
pub fn choose(option: &str) -> Value {
    json!({ "verdict": { "type": "choose", "option": option } })
}

/// Creates a person with these roles, and returns a caller with a token of that person that has the same roles.
pub async fn caller(server: &Server, name: &str, roles: &[&str]) -> Caller {
    Caller(HttpTransport::with_token(&server.base, &token(server, name, roles).await))
}

/// Creates a person with these roles, and returns a token of that person that has the same roles.
pub async fn token(server: &Server, name: &str, roles: &[&str]) -> String {
    token_of(&server.person(name, roles).await, roles).await
}

/// Returns a caller with a token of the admin that has the role `admin`.
pub async fn admin(server: &Server) -> Caller {
    Caller(HttpTransport::with_token(&server.base, &token_of(&server.admin().await, &["admin"]).await))
}

async fn token_of(person: &Api, roles: &[&str]) -> String {
    let roles = roles.iter().map(ToString::to_string).collect();
    let token = NewToken { name: "of a test".into(), roles, expires_at: None };
    person.create_token(&token).await.expect("a token").secret.expect("its secret")
}
